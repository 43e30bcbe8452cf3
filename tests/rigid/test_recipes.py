"""Recipes of ARCHITECTURE.md, followed as written: a shape, a solver of scenes, a scheme; that no kind ignores a law.

A space is followed in `test_space`, an experiment in `tests/experiments/test_copying.py`.
"""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics._jit import kernel
from contactdynamics.rigid.solvers import SOLVERS, Solution, measure_all, sweep_all
from contactdynamics.scenes.shapes.balls import MassProperties
from contactdynamics.systems.schemes import SCHEMES, midpoint
from rigid_tools import vector, wall


class Dumbbell:
    """Two equal balls beside each other, on a bar without mass."""

    dimension = 3

    def __init__(self, radius, half):
        self.radius, self.half = radius, half

    def balls(self):
        return np.full(2, self.radius), np.array([[-self.half, 0, 0], [self.half, 0, 0]])

    def mass_properties(self):
        one = 4 / 3 * np.pi * self.radius**3
        moments = 0.8 * one * self.radius**2 + 2 * one * self.half**2 * np.array([0.0, 1.0, 1.0])
        return MassProperties(2 * one, np.zeros(3), np.diag(moments))


def test_a_shape_of_ones_own():
    """It falls on its side and comes to rest as the cluster of the same balls does."""
    places = []
    for shape in (Dumbbell(0.1, 0.2), cd.Cluster([0.1, 0.1], [(-0.2, 0, 0), (0.2, 0, 0)])):
        scene = cd.Scene(gravity=(0, 0, -9.81))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.5)
        scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
        body = scene.add(shape, material="m", position=(0, 0, 0.35), rotation=(np.cos(0.4), 0, np.sin(0.4), 0))
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9)
        sim.run(until=1.5, progress=False)
        assert sim.body(body).position[2] == pytest.approx(0.1, abs=1e-3)
        places.append(sim.body(body).position)
    assert places[0] == pytest.approx(places[1], abs=1e-6)


@kernel
def thirty_sweeps(rows, mobility, kinds, goal, scratch, meeting):
    """Always as many sweeps, whatever is left."""
    for n in range(30):
        sweep_all(rows, mobility, kinds, n < 0, -1.0, scratch.changes[n % 2], meeting)
    found, _, _, _ = measure_all(rows, mobility, kinds, goal, scratch, meeting)
    return Solution(30, found.residual, found.left, found.kind, found.worst, found.bipotential)


@pytest.fixture
def solver():
    SOLVERS["thirty"] = thirty_sweeps
    yield "thirty"
    del SOLVERS["thirty"]


def test_a_solver_of_ones_own(solver):
    """A disk on a slope below the angle of friction: the weight is carried, and it rolls without slipping."""
    slope = 0.2
    scene = cd.Scene(gravity=(9.81 * np.sin(slope), -9.81 * np.cos(slope)))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    disk = scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
    sim = cd.Simulation(scene, time_step=1e-3, solver=solver, tolerance=1e-9)
    sim.run(until=0.5, progress=False)
    assert sim.report.iterations == 30 and sim.failures == 0
    assert sim.body(disk).velocity == pytest.approx([2 / 3 * 9.81 * np.sin(slope) * 0.5, 0.0], abs=1e-9)


def two_halves(system, state, h, **options):
    """Two steps of the midpoint scheme as one."""
    one = midpoint(system, state, h / 2, **options)
    two = midpoint(system, one.state, h / 2, **options)
    return two._replace(
        force_work=one.force_work + two.force_work, contact_work=one.contact_work + two.contact_work,
        boundary_work=one.boundary_work + two.boundary_work, kinetic_before=one.kinetic_before,
        kinetic_free=np.inf,
    )  # fmt: skip


def test_a_scheme_of_ones_own(monkeypatch):
    """It gives every second state of the midpoint scheme with half its step, and its ledger closes."""
    monkeypatch.setitem(SCHEMES, "two_halves", two_halves)
    floor = cd.Constraint(gap=lambda t, q: q[1], law=cd.Law(friction=0.3, restitution=0.5))
    system = cd.System(inertia=[2.0, 2.0], force=lambda t, q, u: (0, -20.0), constraints=[floor])
    start = {"q": (0, 0.3), "u": (1.0, 0.0), "until": 1.0}
    whole = cd.integrate(system, scheme="two_halves", step=0.01, **start)
    fine = cd.integrate(system, scheme="midpoint", step=0.005, **start)
    assert np.array_equal(whole.q, fine.q[::2]) and np.array_equal(whole.u, fine.u[::2])
    assert whole.ledger.closure == pytest.approx(0.0, abs=1e-12)


# What each law adds to Coulomb's, and where it has no meaning: there it must be refused, or change nothing on purpose.
LAWS = {
    "static_friction": ({"static_friction": 0.6}, ()),
    "anisotropic": ({"anisotropic": (0.6, 0.3), "axis": (1, 0, 0)}, ("disk", "polygon")),
    "restitution": ({"restitution": 0.5}, ()),
    "tangential_restitution": ({"tangential_restitution": 0.5}, ()),
    "rolling": ({"rolling": 0.02}, ()),
    "spinning": ({"spinning": 0.02}, ("disk", "polygon")),  # about the normal: nothing spins so in the plane
    "cohesion": ({"cohesion": 20.0}, ()),
    "tension": ({"tension": 20.0}, ()),
    "two_sided": ({"two_sided": (0.3, 0.5)}, ("disk", "sphere", "cluster", "polygon", "polyhedron")),
}
BODIES = {
    "disk": (2, cd.Disk(0.1)),
    "sphere": (3, cd.Sphere(0.1)),
    "cluster": (3, cd.Cluster([0.1] * 3, [(0.2, 0, 0), (-0.2, 0.2, 0), (-0.2, -0.2, 0)])),
    "polygon": (2, cd.Rectangle(0.6, 0.2)),
    "polyhedron": (3, cd.Box((0.6, 0.6, 0.2))),
}


def moved(kind, law):
    """Velocities and spins of a body of mass 1 in four motions: dropped with a spin, rolling, pushed, pulled up."""
    d, shape = BODIES[kind]
    spin = -8.0 if d == 2 else (0.0, 8.0, 8.0)
    push = 15.0 if kind in ("disk", "sphere") else 4.5  # friction 0.3 is not enough to hold, or to make it roll; 0.6 is
    found = []
    for velocity, spin_, force in (
        (vector(d, 1.0, -2.0), spin, vector(d, 0, 0)), (vector(d, 0.1, 0), spin, vector(d, 0, 0)),
        (vector(d, 0, 0), None, vector(d, push, 0)), (vector(d, 0, 0), None, vector(d, 0, 12.0)),
    ):  # fmt: skip
        scene = cd.Scene(gravity=vector(d, 0, -10.0))
        scene.material("m", density=1.0)
        scene.contact("m", "m", **law)
        scene.add(wall(d, vector(d, 0, 1)), material="m", fixed=True)
        place = vector(d, 0, 0.1 - 0.5e-3 * velocity[-1])  # it touches at the first midpoint
        body = scene.add(shape, material="m", position=place, velocity=velocity, spin=spin_, mass=1.0)
        scene.force(body, force)
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-10, check=False, on_failure="ignore")
        for _ in range(10):
            sim.step()
        found += [*np.ravel(sim.body(body).velocity), *np.ravel(sim.body(body).spin)]
    return np.array(found)


@pytest.mark.parametrize("kind", BODIES)
def test_no_kind_of_contact_ignores_a_law(kind):
    assert {*LAWS, "friction"} == set(cd.Law.__dataclass_fields__)  # a new law is tried here too
    plain = moved(kind, {"friction": 0.3})
    assert not np.allclose(plain, moved(kind, {"friction": 0.5}))
    for name, (options, without) in LAWS.items():
        law = options if name in ("anisotropic", "two_sided") else options | {"friction": 0.3}
        try:
            acts = np.abs(moved(kind, law) - plain).max() > 1e-6
        except cd.InputError:
            acts = False
        assert acts == (kind not in without), name
