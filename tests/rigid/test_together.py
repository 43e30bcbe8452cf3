"""All contacts of a step together (`solver="auto"`): solved where sweeps are not, and the same where they are."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.errors import InputError
from contactdynamics.experiments import _bridge, arch_thickness, bridge
from contactdynamics.problem import graphs
from contactdynamics.rigid import contact_set, questions, step_solver, together
from contactdynamics.state import SLIDING, STICKING
from rigid_tools import ball, floor, vector, world

pytestmark = pytest.mark.filterwarnings("ignore:.*were not solved to the tolerance")


def pushed_bridge(friction, **options):
    """The bridge of the experiment."""
    parameters = {name: option.default if hasattr(option, "default") else option
                  for name, option in bridge.PARAMETERS.items()}  # fmt: skip
    made = _bridge.bridge(parameters, friction)
    options = {"time_step": 2e-3, "tolerance": 1e-8, "on_failure": "raise"} | options
    return cd.Simulation(made.scene, **options), made


def tower(d, kind="balls", count=25, **law):
    """Bodies on top of each other, a heavy one uppermost: sweeps carry its weight down slowly."""
    scene = world(d, density=100.0, **({"friction": 0.5} | law))
    floor(scene)
    for k in range(count):
        last = {"mass": 200.0} if k == count - 1 else {}
        if kind == "balls" or (kind == "mixed" and k % 2):
            scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1 + 0.2 * k), **last)
        else:
            block = cd.Rectangle(0.3, 0.2) if d == 2 else cd.Box((0.3, 0.2, 0.2))
            scene.add(block, material="m", position=vector(d, 0, 0.1 + 0.2 * k), **last)
    return scene


def started(scene, solver="auto", **options):
    options = {"time_step": 1e-3, "tolerance": 1e-8, "on_failure": "ignore"} | options
    return cd.Simulation(scene, solver=solver, **options)


def by_interior(problem, guess, tolerance, max_iterations, callback):
    """A solver of the user's own."""
    return cd.solve(problem, guess, solver="interior", tolerance=0.01 * tolerance)


# ---- every step is solved --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", [0.6, 0.3])
def test_every_step_of_the_bridge_is_solved(friction):
    """From the first step on, at which the object meets the full resistance of the structure."""
    sim, _ = pushed_bridge(friction)
    used = 0
    for _ in range(60):
        report = sim.step().report
        assert report.residual <= 1e-8 and report.converged
        used += dict(report.stages).get("together", 0)
    assert used > 60  # sweeps alone do not do it
    assert sim.energy.created <= 1e-9 * abs(sim.energy.drive_work)


def test_the_first_force_on_the_bridge_does_not_depend_on_the_step():
    """The structure is rigid: it resists at once. Its positions at the middle of the step differ by less than 1e-6."""
    forces = []
    for h in (2e-3, 1e-3, 5e-4):
        sim, made = pushed_bridge(0.6, time_step=h)
        sim.step()
        forces.append(bridge._upward(sim.contacts, made.object) / h)
    weight = 9.81 * sim.bodies.mass[sim.bodies.kind == 0].sum()
    assert min(forces) > weight and max(forces) - min(forces) <= 1e-5 * max(forces)


@pytest.mark.parametrize(
    "d, kind", [(2, "balls"), (3, "balls"), (2, "blocks"), (3, "blocks"), (2, "mixed"), (3, "mixed")]
)
def test_a_tower_under_a_weight(d, kind):
    """More than so many sweeps can do; the ground carries everything and nothing moves."""
    scene = tower(d, kind)
    sim = started(scene, max_iterations=40)
    total = 0.0
    for _ in range(3):
        report = sim.step().report
        assert report.converged, report.message
        total += dict(report.stages).get("together", 0)
    assert total > 0
    weight = 9.81 * sim.bodies.mass[sim.bodies.kind == 0].sum()
    ground = sim.contacts.bodies.min(axis=1) == 0
    lifted = np.einsum("k,ki->i", sim.contacts.impulse[ground, 0], sim.contacts.normal[ground]) / 1e-3
    assert abs(lifted[-1]) == pytest.approx(weight, rel=1e-5)
    assert np.abs(sim.velocities).max() < 1e-5 * 9.81e-3


def test_heaps_of_balls_stay_with_the_sweeps():
    """A step that the sweeps solve is the same to the bit with and without the other method."""
    motions = []
    for solver in ("auto", "accelerated"):
        scene = world(2, friction=0.4)
        floor(scene)
        for row in range(6):  # a pyramid that spreads: more contacts than rows and towers have
            for k in range(6 - row):
                place = (0.1 * k + 0.05 * row, 0.05 * (1 + math.sqrt(3) * row))
                scene.add(cd.Disk(0.05), material="m", position=place)
        sim = started(scene, solver, tolerance=1e-4, time_step=2e-3)
        for _ in range(80):
            sim.step()
            assert len(sim.report.stages) == 1 and sim.report.converged
            assert sim.report.contacts > step_solver.SLENDER * 21
        motions.append(sim.positions.copy())
    assert np.array_equal(*motions)


@pytest.mark.parametrize("count", [30, 300])
def test_towers_of_balls_do_not_wait_for_the_sweeps(count):
    """The first step of a tower takes some n^2 sweeps; its contacts are eliminated one after the other."""
    scene = world(3, friction=0.4)
    floor(scene)
    for k in range(count):
        scene.add(cd.Sphere(0.05), material="m", position=(0, 0, 0.05 + 0.1 * k))
    sim = started(scene, tolerance=1e-3)
    report = sim.step().report
    assert (
        report.converged and report.iterations < 250 and len(report.stages) == (2 if count > 30 else len(report.stages))
    )
    ground = sim.contacts.bodies.min(axis=1) == 0
    weight = 9.81 * sim.bodies.mass[sim.bodies.kind == 0].sum() * sim.time_step
    assert sim.contacts.impulse[ground, 0].sum() == pytest.approx(weight, rel=1e-4)


# ---- the same solution where there is one ----------------------------------------------------------------------------


def slides(d, slope, kind, **law):
    """A body on a slope: few contacts, and one solution for the velocities."""
    scene = world(d, slope=slope, density=100.0, **law)
    floor(scene)
    if kind == "polygon":
        scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0, 0.1), velocity=(0.3, -0.5), spin=0.2)
    elif kind == "polyhedron":
        scene.add(cd.Box((0.4, 0.3, 0.2)), material="m", position=(0, 0, 0.1), velocity=(0.3, 0.1, -0.5))
    else:
        shape = cd.Cluster([0.1] * 2, [(-0.3, 0), (0.3, 0)]) if d == 2 else cd.Cluster(
            [0.1] * 3, [(-0.3, -0.3, 0), (-0.3, 0.3, 0), (0.3, 0, 0)])  # fmt: skip
        scene.add(shape, material="m", position=vector(d, 0, 0.1), velocity=vector(d, 0.3, -0.5))
    return scene


@pytest.mark.parametrize("mode", ["moreau", "anticipate"])
@pytest.mark.parametrize("law", [{"friction": 0.3}, {"friction": 0.0}, {"friction": 0.2, "static_friction": 0.5},
                                 {"friction": 0.4, "restitution": 0.5},
                                 {"friction": 0.3, "cohesion": 20.0}])  # fmt: skip
@pytest.mark.parametrize("d, kind", [(2, "cluster"), (3, "cluster"), (2, "polygon"), (3, "polyhedron")])
def test_the_same_as_gauss_seidel(d, kind, law, mode):
    """Velocities, status and, summed over the contacts, impulses."""
    ended = []
    for solver, most in (("auto", 1), ("nlgs", 100_000)):
        sim = started(slides(d, 0.3, kind, **law), solver, tolerance=1e-10, max_iterations=most, penetration=mode)
        for _ in range(25):
            sim.step()
        assert sim.failures == 0
        c = sim.contacts
        push = np.einsum("kij,ki->j", c.frame, c.impulse) if len(c.gap) else np.zeros(d)
        ended.append((sim.velocities.copy(), sim.positions.copy(), push, sorted(c.status.tolist())))
    for one, two in zip(ended[0][:3], ended[1][:3], strict=True):
        assert one == pytest.approx(two, abs=1e-7)
    assert len(ended[0][3]) == len(ended[1][3])


@pytest.mark.parametrize("d, kind", [(2, "polygon"), (3, "polyhedron")])
def test_impulses_are_in_their_cones_whatever_is_left(d, kind, monkeypatch):
    """An interior point that is called solved may be outside by its residual; an audit of the file would find it."""
    kept = together.Together._free

    def beyond(self, *given):
        found, before, best, done = kept(self, *given)
        return found * np.array([1.0 - 1e-5] + [1.0 + 1e-5] * (d - 1)), before, best, done

    monkeypatch.setattr(together.Together, "_free", beyond)
    sim = started(slides(d, 0.5, kind, friction=0.3), tolerance=1e-4, max_iterations=1)
    for _ in range(5):
        sim.step()
        impulse = sim.contacts.impulse
        assert (np.linalg.norm(impulse[:, 1:], axis=1) <= 0.3 * impulse[:, 0] * (1 + 1e-12)).all()
    assert sim.report.converged and impulse[:, 0].max() > 0


@pytest.mark.parametrize("d, kind", [(2, "polygon"), (3, "polyhedron"), (2, "cluster")])
def test_glue_holds_or_is_lost(d, kind):
    """Contacts of 60 N each hold a body that is pulled up with 50 N beyond its weight, and not one with 1000 N."""
    scene = world(d, density=100.0, friction=0.3, cohesion=60.0)
    floor(scene)
    shape = cd.Cluster([0.1] * 2, [(-0.3, 0), (0.3, 0)]) if kind == "cluster" else (
        cd.Rectangle(0.4, 0.2) if d == 2 else cd.Box((0.4, 0.3, 0.2)))  # fmt: skip
    body = scene.add(shape, material="m", position=vector(d, 0, 0.1))
    sim = started(scene, max_iterations=1, tolerance=1e-10)
    sim.step()
    mass = sim.body(body).mass
    sim.force(body, vector(d, 0.0, 9.81 * mass + 50.0))
    sim.step()
    assert sim.failures == 0 and np.abs(sim.velocities).max() < 1e-9
    assert sim.contacts.impulse[:, 0].sum() == pytest.approx(-50e-3, rel=1e-6)
    sim.force(body, vector(d, 0.0, 950.0))
    sim.step()
    assert sim.failures == 0 and not sim.contacts.impulse.any()
    assert sim.body(body).velocity == pytest.approx(vector(d, 0.0, 1.0 / mass), abs=1e-9)


def test_a_chain_of_glued_blocks_hangs():
    """The weight of what hangs is carried by glue: every joint pulls, and nothing moves."""
    scene = world(2, density=100.0, friction=0.5, cohesion=3000.0)
    scene.add(cd.Rectangle(0.3, 0.2), material="m", position=(0, 5.0), fixed=True)
    for k in range(20):
        scene.add(cd.Rectangle(0.3, 0.2), material="m", position=(0, 4.8 - 0.2 * k))
    sim = started(scene, max_iterations=40)
    for _ in range(3):
        assert sim.step().report.converged, sim.report.message
    above = sim.contacts.bodies.min(axis=1) == 0
    weight = 9.81e-3 * sim.bodies.mass[sim.bodies.kind == 0].sum()
    assert -sim.contacts.impulse[above, 0].sum() == pytest.approx(weight, rel=1e-5)
    assert np.abs(sim.velocities).max() < 1e-6


def test_anisotropic_friction_in_space():
    ended = []
    for solver, most in (("auto", 1), ("nlgs", 100_000)):
        scene = cd.Scene(gravity=(2.0, 1.5, -9.81))
        scene.material("m", density=100.0)
        scene.contact("m", "m", anisotropic=(0.1, 0.4), axis=(1, 0, 0))
        floor(scene)
        shape = cd.Cluster([0.1] * 3, [(-0.3, -0.3, 0), (-0.3, 0.3, 0), (0.3, 0, 0)])
        scene.add(shape, material="m", position=(0, 0, 0.1))
        sim = started(scene, solver, tolerance=1e-10, max_iterations=most)
        for _ in range(40):
            sim.step()
        assert sim.failures == 0
        ended.append(sim.velocities[-1].copy())
    assert ended[0] == pytest.approx(ended[1], abs=1e-8) and ended[0][0] > 0.01


@pytest.mark.parametrize("d", [2, 3])
def test_without_friction_the_velocities_are_those_of_gauss_seidel(d):
    """A convex problem: whatever the impulses, the velocities are unique; here with redundant contacts."""
    ended = []
    for solver, most in (("auto", 30), ("nlgs", 200_000)):
        sim = started(tower(d, "blocks", count=8, friction=0.0), solver, tolerance=1e-11, max_iterations=most)
        sim.step()
        assert sim.report.converged, sim.report.message
        ended.append(np.column_stack([sim.velocities, sim.spins.reshape(len(sim.spins), -1)]))
    assert ended[0] == pytest.approx(ended[1], abs=1e-8)


@pytest.mark.parametrize("d, kind", [(2, "balls"), (3, "balls"), (2, "mixed"), (3, "mixed"), (3, "blocks")])
def test_the_graph_is_that_of_the_contact_problem(d, kind, rng):
    """U = b + W P by the graph of the bodies, against the matrices of `contact_problem`."""
    sim = started(tower(d, kind, count=6))
    for _ in range(3):
        sim.step()
    state = sim._state()
    model, rows, step = questions.next_step(state, 0.0)
    trial = state.contact_set.trial()
    trial.detect(model, step, rows)
    mobility = trial.mobility(model)
    scale, _ = trial.fill(model, step, rows, mobility)
    written, _ = trial.explicit(step.free, d)
    graph, cones, _ = together.Together()._graph(together.linked(written), step.free, mobility, d)
    rho = cones.rho
    problem = sim.contact_problem()
    p = rng.normal(size=problem.velocity.shape)
    u = np.empty_like(p)
    graphs.respond(graph, p, u)
    expected = problem.velocity + (problem.blocks @ p.ravel()).reshape(p.shape)
    assert u == pytest.approx(expected, abs=1e-10 * np.abs(expected).max())
    own = problem.blocks.diagonal().reshape(p.shape).mean(axis=1)
    assert rho == pytest.approx(1 / own, rel=1e-10)
    assert scale == pytest.approx(((rho[:, None] * problem.velocity) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("d, free", [(2, "y"), (2, "y turn"), (3, "z"), (3, "x z turn-y")])
def test_held_directions(d, free):
    """A heavy body on rails upon a tower that it cannot leave sideways."""
    ended = []
    for solver, most in (("auto", 10), ("nlgs", 200_000), (by_interior, 1000)):
        scene = tower(d, count=10)
        shape = cd.Cluster([0.1] * 2, [vector(d, -0.05), vector(d, 0.05)]) if "turn" in free else ball(d, 0.1)
        scene.add(shape, material="m", position=vector(d, 0.02, 2.1), free=free, mass=500.0)
        sim = started(scene, solver, tolerance=1e-10, max_iterations=most)
        for _ in range(4):
            sim.step()
        assert sim.failures == 0, sim.report.message
        ended.append(np.column_stack([sim.velocities, sim.spins.reshape(len(sim.spins), -1)]))
    assert ended[0] == pytest.approx(ended[1], abs=1e-6) and ended[2] == pytest.approx(ended[1], abs=1e-6)


def test_a_cell_that_moves_is_left_to_the_sweeps():
    scene = cd.Scene(gravity=(0, 0), cell=cd.Cell((1.0, 1.0), stress=500.0))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    place = (np.stack(np.meshgrid(np.arange(5), np.arange(5), indexing="ij"), -1).reshape(-1, 2) + 0.5) / 5
    scene.add_many(0.0999, material="m", position=place)
    sim = started(scene, max_iterations=2, tolerance=1e-12)
    for _ in range(60):
        sim.step()
    assert not sim.report.converged and "cells that move are left to the sweeps" in sim.report.message
    sim = started(scene, by_interior)
    with pytest.raises(InputError, match="knows no cell that moves"):
        for _ in range(60):
            sim.step()


def test_status_by_impulse():
    from contactdynamics.rigid.equations.held import status_of

    impulse = np.array([[1.0, 0.2, 0.0], [1.0, 0.3, 0.4], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    friction = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.0, 0.0], [0.5, 0.5]])
    found = status_of(impulse, friction, np.zeros(len(impulse)))
    assert found.tolist() == [STICKING, SLIDING, 1, SLIDING, STICKING]


# ---- bodies that come and go, files, threads -------------------------------------------------------------------------


def test_bodies_come_and_go():
    sim = started(tower(2, "mixed", count=8), max_iterations=20, on_failure="raise")
    sim.step()
    top = sim.add(cd.Rectangle(0.3, 0.2), material="m", position=(0, 1.7), mass=500.0)
    for _ in range(3):
        assert sim.step().report.converged
    weight = 9.81 * sim.bodies.mass[sim.bodies.kind == 0].sum()
    sim.remove(top)
    for _ in range(3):
        assert sim.step().report.converged
    ground = sim.contacts.bodies.min(axis=1) == 0
    assert sim.contacts.impulse[ground, 0].sum() / 1e-3 == pytest.approx(weight - 9.81 * 500.0, rel=1e-3)


def test_a_resumed_run_has_the_same_bits(tmp_path):
    whole, _ = pushed_bridge(0.6)
    for _ in range(24):
        whole.step()
    part, _ = pushed_bridge(0.6, recorders=[cd.HDF5(tmp_path / "run.h5", every=1e9)])
    part.run(until=12 * 2e-3, progress=False)
    rest = cd.Simulation.from_file(tmp_path / "run.h5", on_failure="raise")
    assert rest.solver == "auto"
    for _ in range(12):
        rest.step()
    assert rest.time == whole.time and np.array_equal(rest.positions, whole.positions)
    assert np.array_equal(rest.velocities, whole.velocities)


def test_threads_change_no_bit():
    ended = []
    for threads in (1, 2):
        scene = world(2, density=2000.0, friction=0.6)
        floor(scene)
        cd.packings.wall(scene, material="m", length=12.0, courses=12, block=(0.6, 0.3))
        scene.add(cd.Disk(0.2), material="m", position=(6.0, 3.8), mass=1e6)
        sim = started(scene, threads=threads)
        used = [dict(sim.step().report.stages).get("together", 0) for _ in range(3)]
        assert sim.contact_set.count > contact_set.SMALL and max(used) > 0
        ended.append(sim.velocities.copy())
    assert np.array_equal(*ended)


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_a_step_that_cannot_be_solved_is_given_up(monkeypatch):
    """A method that gets nowhere is tried until its iterations have cost enough, and no longer."""
    tries, first = [], 0

    def stuck(self, graph, c, p, glue, scale, tolerance, hard):
        tries.append(10 * self._cost)
        return p, 1.0, 1.0, 10

    monkeypatch.setattr(together.Together, "_free", stuck)
    for long, most in ((1e9, 100), (0.0, 1)):
        monkeypatch.setattr(together, "LONG", long)
        tries.clear()
        sim = started(tower(2, "blocks"), max_iterations=20)
        sim.step()
        assert not sim.report.converged and 1 <= len(tries) <= most
        assert sum(tries[:-1]) <= long
        first = len(tries) if long else first
    assert first > 1 and "was given up" in sim.report.message


def test_what_happened_is_said(monkeypatch):
    sim = started(tower(2, "balls"), max_iterations=40)
    sim.step()
    assert " sweeps and " in sim.report.message and "steps together" in sim.report.message
    assert sim.report.solver == "auto" and [name for name, _ in sim.report.stages] == ["accelerated", "together"]
    assert sim.report.iterations == sum(count for _, count in sim.report.stages)
    monkeypatch.setattr(together, "DEAR", 1.0)
    sim = started(tower(2, "balls"), max_iterations=40)
    sim.step()
    assert not sim.report.converged and "too long for so many contacts" in sim.report.message
    sim = started(tower(2, "balls", tension=1.0), max_iterations=40)
    sim.step()
    assert not sim.report.converged and "tension and moments are left to the sweeps" in sim.report.message


@pytest.mark.parametrize("d, kind", [(2, "balls"), (3, "balls"), (2, "mixed"), (3, "blocks")])
def test_a_solver_of_ones_own(d, kind):
    sim = started(tower(d, kind, count=5), by_interior, on_failure="raise")
    twin = started(tower(d, kind, count=5), "nlgs", max_iterations=100_000, on_failure="raise")
    for _ in range(3):
        sim.step()
        twin.step()
    assert sim.report.solver == "by_interior" and "iterations of by_interior" in sim.report.message
    assert sim.velocities == pytest.approx(twin.velocities, abs=1e-6)


def test_a_solver_of_ones_own_is_told_in_files(tmp_path):
    path = tmp_path / "run.h5"
    sim = started(tower(2, count=4), by_interior, recorders=[cd.HDF5(path, every=1e9)])
    sim.run(until=0.005, progress=False)
    with pytest.raises(InputError, match="by_interior, a function, which a file does not hold"):
        cd.Simulation.from_file(path)
    rest = cd.Simulation.from_file(path, solver=by_interior)
    rest.run(until=0.01, progress=False)
    whole = started(tower(2, count=4), by_interior)
    whole.run(until=0.01, progress=False)
    assert np.array_equal(rest.positions, whole.positions)
    other = started(tower(2, count=4)).restore(path)
    with pytest.warns(UserWarning, match="was made with the solver by_interior"):
        other.step()


@pytest.mark.parametrize("solver", ["second", None, 3, lambda problem: problem])
def test_wrong_solvers_are_refused(solver):
    with pytest.raises(InputError, match="solver"):
        started(tower(2, count=2), solver)


def test_a_solver_that_returns_nonsense_is_told():
    sim = started(tower(2, count=2), lambda problem, guess, tolerance, max_iterations, callback: None)
    with pytest.raises(InputError, match="returned NoneType"):
        sim.step()


# ---- equilibrium -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voussoirs", [16, 28])
def test_equilibrium_is_decided_near_the_limit(voussoirs):
    """An arch slightly thicker than its five hinges allow stands, a slightly thinner one falls."""
    limit = arch_thickness.by_hinges(voussoirs)
    for share, stands in ((1 + 1e-4, True), (1 - 1e-4, False)):
        answer = arch_thickness.trial(share * limit, voussoirs, 0.7).one_step()
        assert bool(answer) == stands and answer.report.converged
