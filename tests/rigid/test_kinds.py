"""One contract for all contacts: every search and every kind of equations, with both solvers, on any number of threads.

Each scene is a long bed of bodies that are a little too close, pushed sideways. The scenes have every set of kinds that
a `ContactSet` can have, some of them in the longer tier, and the laws that have kernels of their own. In a cell the bed
has no ends and no floor, and its bodies move at random; what a cell cannot do is refused in one sentence.
"""

import copy
import inspect
from functools import cache

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.rigid import contact_set
from contactdynamics.rigid.contact_set import ContactSet
from contactdynamics.rigid.equations.contract import GROUPS, Equations
from contactdynamics.rigid.kinds import EQUATIONS, SEARCHES
from contactdynamics.rigid.loading import Loading
from contactdynamics.rigid.neighbours import Neighbours
from contactdynamics.rigid.search.contract import DIAGONAL, FULL, PLANAR, SPATIAL, Search
from contactdynamics.rigid.solvers import LEFT
from contactdynamics.rigid.step import Step
from rigid_tools import vector, wall

STEPS, H, TOLERANCE = 6, 2e-3, 1e-3
SIZE = 0.1


def round_body(d, k, rng):
    return (cd.Disk if d == 2 else cd.Sphere)(0.5 * SIZE * rng.uniform(0.99, 1.01))


def cluster(d, k, rng):
    """Balls in the corners of a square or a cube."""
    corners = np.stack(np.meshgrid(*[(-0.2, 0.2)] * d), axis=-1).reshape(-1, d)
    return cd.Cluster([0.3 * SIZE] * len(corners), SIZE * corners)


def polygon(d, k, rng):
    return cd.Polygon.irregular(0.45 * SIZE, seed=rng) if k % 3 == 1 else cd.Rectangle(SIZE, SIZE)


def polyhedron(d, k, rng):
    return cd.Polyhedron.irregular(0.5 * SIZE, corners=10, seed=rng) if k % 3 == 1 else cd.Box(SIZE)


COULOMB = {"friction": 0.4}
ROLLING = {"friction": 0.4, "rolling": 0.003}
GLUE = ROLLING | {"cohesion": 300.0}
# dimension, bodies in turn, law, spin of the floor, the equations that have contacts
SCENES = {
    "disks": (2, [round_body], COULOMB | {"restitution": 0.1}, 0.0, {DIAGONAL}),
    "spheres": (3, [round_body], COULOMB | {"static_friction": 0.5}, 0.0, {DIAGONAL}),
    "clusters 2D": (2, [round_body, round_body, cluster], COULOMB, 0.0, {DIAGONAL, FULL}),
    "clusters 3D": (3, [round_body, round_body, cluster], COULOMB, 0.0, {DIAGONAL, FULL}),
    "glued disks": (2, [round_body], GLUE, 0.0, {FULL}),
    "glued spheres": (3, [round_body], GLUE | {"spinning": 0.002}, 0.0, {FULL}),
    "rolling spheres": (3, [round_body], ROLLING | {"spinning": 0.002}, 0.0, {FULL}),
    "turning floor 2D": (2, [round_body], COULOMB, 0.1, {DIAGONAL, FULL}),
    "turning floor 3D": (3, [round_body], COULOMB | {"restitution": 0.1}, 0.1, {DIAGONAL, FULL}),
    "polygons": (2, [polygon], COULOMB, 0.0, {PLANAR}),
    "glued polygons": (2, [polygon], COULOMB | {"cohesion": 300.0}, 0.0, {PLANAR}),
    "rolling disks beside polygons": (2, [round_body, round_body, polygon], ROLLING, 0.0, {FULL, PLANAR}),
    "polyhedra": (3, [polyhedron], COULOMB, 0.0, {SPATIAL}),
    "glued polyhedra": (3, [polyhedron], GLUE | {"spinning": 0.002}, 0.0, {SPATIAL}),
    "spheres beside polyhedra": (3, [round_body, polyhedron, polyhedron], COULOMB, 0.0, {DIAGONAL, SPATIAL}),
    "disks beside polygons": (2, [round_body, round_body, polygon], COULOMB, 0.0, {DIAGONAL, PLANAR}),
    "clusters beside polygons": (2, [round_body, round_body, polygon, cluster], COULOMB, 0.0, {DIAGONAL, FULL, PLANAR}),
}
# dimension, bodies in turn, what the cell does
CELLS = {
    "disks in a cell": (2, [round_body], {}),
    "disks in a cell under stress": (2, [round_body], {"stress": 200.0}),
    "clusters in a sheared cell": (2, [round_body, cluster], {"rate": [[0.0, 3.0], [0.0, 0.0]]}),
    "spheres in a cell under stress": (3, [round_body], {"stress": 200.0}),
    "polygons in a cell": (2, [polygon], {}),
    "polyhedra in a cell": (3, [polyhedron], {}),
}
# Kinds and laws that are all in others: in the longer tier.
MORE = {"glued disks", "rolling spheres", "rolling disks beside polygons", "spheres beside polyhedra",
        "clusters beside polygons", *list(CELLS)[1:]}  # fmt: skip


def tiers(names):
    return [pytest.param(name, marks=pytest.mark.slow if name in MORE else ()) for name in names]


ALL = pytest.mark.parametrize("name", tiers(SCENES))
EVERY = pytest.mark.parametrize("name", tiers([*SCENES, *CELLS]))
PENETRATIONS = ("moreau", "anticipate")
MODES = pytest.mark.parametrize("penetration", PENETRATIONS)
# Each solver in one mode; the other two in the longer tier.
BY_TURNS = pytest.mark.parametrize(
    ("solver", "penetration"),
    [
        ("accelerated", "anticipate"),
        ("nlgs", "moreau"),
        pytest.param("accelerated", "moreau", marks=pytest.mark.slow),
        pytest.param("nlgs", "anticipate", marks=pytest.mark.slow),
    ],
)


@pytest.fixture(autouse=True)
def threads_always(monkeypatch, watched):
    """Threads work and contacts are put in order, however few they are; kernels get the types they are settled for."""
    monkeypatch.setattr(contact_set, "SMALL", 0)


def periodic_bed(name, **options):
    """A simulation of a cell, at its start."""
    d, bodies, does = CELLS[name]
    rng, shape = np.random.default_rng(7), (16, 6) if d == 2 else (8, 5, 5)
    apart = 1.003 * SIZE  # closer, nothing could move: a jammed cell has no ends to push
    scene = cd.Scene(gravity=np.zeros(d), cell=cd.Cell(apart * np.array(shape), **does))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", **COULOMB)
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, d) + 0.5
    speed = 0.5 * rng.normal(size=grid.shape)
    for k, (place, velocity) in enumerate(zip(apart * grid, speed - speed.mean(axis=0), strict=True)):
        scene.add(bodies[k % len(bodies)](d, k, rng), material="m", position=place, velocity=velocity)
    kept = {"time_step": H, "tolerance": TOLERANCE, "max_iterations": 2000, "on_failure": "ignore"}
    return cd.Simulation(scene, **kept | options)


def bed(name, **options):
    """A simulation of the scene, at its start."""
    if name in CELLS:
        try:
            return periodic_bed(name, **options)
        except cd.InputError as error:
            pytest.skip(f"refused: {error}")
    d, bodies, law, spin, _ = SCENES[name]
    rng = np.random.default_rng(7)
    scene = cd.Scene(gravity=vector(d, 1.0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", **law)
    state = {"motion": cd.Drive(spin=spin if d == 2 else (0.0, spin, 0.0))} if spin else {"fixed": True}
    scene.add(wall(d, vector(d, 0, 1)), material="m", **state)
    # polyhedra have many contacts in one layer, and in two of them need thousands of sweeps
    shape = (24, 3) if d == 2 else (12, 2, 1) if polyhedron in bodies else (16, 2, 2)
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, d)
    middle = 0.5 * (np.array(shape) - 1) * (np.arange(d) < d - 1)
    for k, place in enumerate(0.995 * SIZE * (grid - middle)):
        shape_of_it = bodies[k % len(bodies)](d, k, rng)
        position = place + vector(d, 0, 0.5 * SIZE) + rng.uniform(-2e-3, 2e-3, d) * SIZE
        scene.add(shape_of_it, material="m", position=position)
    sweeps = 50 if may_fail(name, options.get("penetration")) else 2000
    kept = {"time_step": H, "tolerance": TOLERANCE, "max_iterations": sweeps, "on_failure": "ignore", "check": False}
    return cd.Simulation(scene, **kept | options)  # flat ones overlap by some hundredths of their inner radius


def may_fail(name, penetration):
    """Glue lets go at once where a contact opens: a step may then have no solution.

    All else holds there too.
    """
    return name in SCENES and "cohesion" in SCENES[name][2] and penetration == "anticipate"


@cache
def ran(name, solver="accelerated", penetration="moreau", threads=1):
    """The simulation after some steps, each solved to the tolerance; not to be changed."""
    sim = bed(name, solver=solver, penetration=penetration, threads=threads)
    for _ in range(STEPS):
        report = sim.step().report
        assert report.converged == (max(report.residual, report.left / LEFT) <= TOLERANCE)
        assert report.converged or may_fail(name, penetration), report.message
    return sim


def went_on(folder, name, solver, penetration, threads):
    """The same simulation: one thread makes all steps but two, and several those from its file."""
    options = {"solver": solver, "penetration": penetration}
    begun = bed(name, recorders=cd.HDF5(folder / "run.h5", every=STEPS), **options)
    begun.run(until=(STEPS - 2) * H, progress=False)
    sim = bed(name, threads=threads, **options).restore(folder / "run.h5")
    for _ in range(2):
        sim.step()
    assert sim.steps == STEPS
    return sim


def again(sim):
    """A simulation of its own that goes on from the state and the memory of another."""
    twin = copy.copy(sim)
    twin.roster = copy.copy(sim.roster)
    bodies = type(sim.bodies)(*map(np.copy, sim.bodies))
    twin.roster.model, twin.roster.rows = sim.model._replace(bodies=bodies), sim.rows.copy()
    twin.loading = Loading(twin.roster, sim.scene)
    twin.seconds, twin.ledger = dict(sim.seconds), copy.deepcopy(sim.ledger)
    near = sim.contact_set.near
    twin.contact_set, twin.cell_motion = ContactSet(near.space, near.length), copy.deepcopy(sim.cell_motion)
    twin.contact_set.cell_mass = sim.contact_set.cell_mass
    twin.contact_set.restore({key: array.copy() for key, array in sim.contact_set.memory().items()})
    twin.derive()
    return twin


def state(sim):
    """All bits of the motion: places, velocities, impulses."""
    b = sim.bodies
    memory = sim.contact_set.memory()
    memory |= {} if sim.cell_motion is None else sim.cell_motion.memory()
    return {"rows": sim.rows.tobytes(), "position": b.position.tobytes(), "orientation": b.orientation.tobytes()} | {
        key: array.tobytes() for key, array in memory.items()
    }


def works(sim):
    """All bits of the works of the contacts."""
    energy = sim.energy
    parts = energy.normal_work, energy.tangential_work, energy.rolling_work
    return [[float(x).hex() for x in part] for part in parts]


def arrays(item):
    """Copies of all arrays that a `ContactSet` holds, by the way to them."""
    if isinstance(item, np.ndarray):
        return {(): item.copy()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        parts = item._asdict().items()
    elif isinstance(item, list | tuple):
        parts = enumerate(item)
    elif isinstance(item, dict):
        parts = item.items()
    elif isinstance(item, (ContactSet, Neighbours, *SEARCHES, *EQUATIONS)):
        parts = vars(item).items()
    else:
        return {}
    return {(key, *way): array for key, part in parts for way, array in arrays(part).items()}


@pytest.mark.parametrize("kind", [*SEARCHES, *EQUATIONS])
def test_every_kind_has_the_verbs_of_its_contract(kind):
    # Type checkers see it too, but nobody has to run one: names, and as many arguments.
    contract, item = Search if kind in SEARCHES else Equations, kind()
    verbs = {name: verb for name, verb in vars(contract).items() if not name.startswith("_")}
    for name, verb in verbs.items():
        assert hasattr(kind, name), name
        if callable(verb):
            own, asked = (inspect.signature(one).parameters for one in (getattr(kind, name), verb))
            assert len(own) == len(asked), name
    assert all(hasattr(kind, name) or name in vars(item) for name in contract.__annotations__)


# Three threads share the groups unevenly; on two cores they take fifty times as long as one, so they make two steps.
@pytest.mark.parametrize("threads", [3, pytest.param(2, marks=pytest.mark.slow)])
@BY_TURNS
@ALL
def test_threads_change_no_bit_and_every_step_is_solved(name, solver, penetration, threads, tmp_path):
    one = ran(name, solver, penetration)
    several = ran(name, solver, penetration, 2) if threads == 2 else went_on(tmp_path, name, solver, penetration, 3)
    counts = {equations.number: equations.count for equations in one.contact_set.equations}
    assert {number for number, count in counts.items() if count} == SCENES[name][4]
    assert sum(counts.values()) == one.report.contacts == len(one.contacts.gap) > 60
    assert state(one) == state(several)
    assert works(one) == works(several)
    assert one.energy.closure <= 1e-10 * np.abs(one.energy.force_work)


@pytest.mark.parametrize("threads", [1, 3])
@MODES
@pytest.mark.parametrize("solver", ["auto", "accelerated", "nlgs"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in CELLS])
def test_cells_are_solved_or_refused(name, solver, penetration, threads):
    several, one = (ran(name, solver, penetration, number) for number in (threads, 1))
    assert state(one) == state(several)
    assert one.contact_set.count > 10 and one.energy.closure <= 1e-10 * one.energy.kinetic


@ALL
def test_groups_of_one_parity_share_no_free_body(name):
    sim = ran(name, penetration="anticipate")
    seen = [[set() for _ in range(GROUPS)] for _ in range(2)]
    for equations in sim.contact_set.equations:
        contacts, plan = equations.kind
        assert sorted(plan.order.tolist()) == list(range(equations.count))  # every contact once
        assert plan.cuts[0] == 0 and plan.cuts[-1] == equations.count and (np.diff(plan.cuts) >= 0).all()
        for group in range(2 * GROUPS):
            some = plan.order[plan.cuts[group] : plan.cuts[group + 1]]
            bodies = np.concatenate([contacts.a[some], contacts.b[some]])
            seen[group // GROUPS][group % GROUPS] |= set(bodies[sim.rows[bodies, 6] > 0].tolist())
            if equations.number == PLANAR:  # the two ends of an edge follow each other
                followers = np.append(some[1:], 0)
                assert (followers[contacts.joint[some]] == some[contacts.joint[some]] + 1).all()
    for groups in seen:
        assert sum(map(len, groups)) == len(set().union(*groups))
        assert sum(map(bool, groups)) >= 3  # there is work for several


def natural_residual(problem, impulses):
    """|P - proj(P - rho U^)| over all contacts, relative as in `SolveReport`; de Saxce's U^ = U + gamma |U_t| n."""
    m, d = impulses.shape
    gamma, p = problem.friction[:, 0], impulses
    u = (problem.delassus @ p.ravel()).reshape(m, d) + problem.velocity
    rho = d / np.diag(problem.delassus).reshape(m, d).sum(axis=1)
    x = p - rho[:, None] * u
    x[:, 0] -= rho * gamma * np.linalg.norm(u[:, 1:], axis=1)
    slip = np.linalg.norm(x[:, 1:], axis=1) + 1e-300
    nearest = x.copy()  # on the cone itself, in it
    outside = slip > gamma * x[:, 0]
    height = np.maximum(0.0, (x[:, 0] + gamma * slip) / (1 + gamma**2))[outside]
    nearest[outside, 0] = height
    nearest[outside, 1:] *= (gamma[outside] * height / slip[outside])[:, None]
    size = max(np.sum(p**2), np.sum((rho[:, None] * problem.velocity) ** 2))
    return np.sqrt(np.sum((p - nearest) ** 2) / size)


@BY_TURNS
@ALL
def test_the_solution_obeys_the_law(name, solver, penetration):
    # By matrices that the solvers never build, where the laws are Coulomb's; the others by bounds of their impulses.
    sim = again(ran(name, solver, penetration))
    law = SCENES[name][2]
    if "rolling" in law or "cohesion" in law:
        sim.step()
        assert sim.report.converged or may_fail(name, penetration)
        contacts, glue = sim.contacts, law.get("cohesion", 0.0)
        force, moment = contacts.impulse / H, np.linalg.norm(contacts.moment / H, axis=1)
        push = force[:, 0] + glue * force.any(axis=1)
        assert (push > -1e-9).all() and (force[:, 0] < 0).any() == (glue > 0)
        assert (np.linalg.norm(force[:, 1:], axis=1) <= law["friction"] * push * (1 + 1e-9) + 1e-9).all()
        most = np.hypot(law.get("rolling", 0.0), law.get("spinning", 0.0)) * np.maximum(force[:, 0], 0.0)
        assert (moment <= most * (1 + 1e-9) + 1e-12).all() and moment.any() == ("rolling" in law)
        return
    compared = 0
    for _ in range(6):
        problem = sim.contact_problem()
        sim.step()
        contacts = sim.contacts
        if penetration == "anticipate" and len(contacts.gap) != len(problem.gap):
            continue  # the solution closed gaps of pairs that the problem did not know
        compared += 1
        assert np.array_equal(contacts.gap, problem.gap)
        residual = natural_residual(problem, contacts.impulse)
        assert residual <= TOLERANCE * (1 + 1e-6)
        assert residual == pytest.approx(sim.report.residual, rel=1e-4, abs=1e-9)
        assert (np.linalg.norm(contacts.impulse[:, 1:], axis=1)
                <= problem.friction[:, 0] * contacts.impulse[:, 0] + 1e-9 * contacts.impulse.max()).all()  # fmt: skip
    assert compared


@BY_TURNS
@EVERY
def test_a_trial_leaves_the_contacts_as_they_are(name, solver, penetration):
    sim = ran(name, solver, penetration)
    held, rows = arrays(sim.contact_set), sim.rows.copy()
    if sim.cell_motion is not None and sim.cell_motion.moves:  # its rows are those after the bodies
        rows = np.concatenate([rows, sim.cell_motion.rows()])
    assert len(held) > 20
    bodies = sim.bodies._replace(position=sim.bodies.position + 1e-3 * SIZE)
    model, step = (
        sim.model._replace(bodies=bodies),
        Step(sim.time, H, 1e-4, penetration == "anticipate", False, rows.copy(), rows.copy()),
    )
    trial = sim.contact_set.trial()
    assert {key: array.tobytes() for key, array in trial.memory().items()} == {
        key: array.tobytes() for key, array in sim.contact_set.memory().items()
    }
    trial.detect(model, step, rows)
    trial.solve(model, step, rows, sim._settings())
    assert trial.count > (10 if name in CELLS else 50)
    sim.is_equilibrium(max_iterations=50)
    after = arrays(sim.contact_set)
    assert held.keys() == after.keys()
    for way, array in held.items():
        np.testing.assert_array_equal(array, after[way], err_msg=str(way))


@pytest.mark.parametrize(
    ("name", "penetration"),
    [
        pytest.param(name, mode, marks=pytest.mark.slow if name in MORE or mode == PENETRATIONS[k % 2] else ())
        for k, name in enumerate([*SCENES, *CELLS])
        for mode in PENETRATIONS
    ],
)
def test_memory_is_all_that_a_contact_set_must_be_given(name, penetration):
    # A set with nothing but the memory goes on with the same bits as one that kept its lists, and has the same memory.
    sim = bed(name, penetration=penetration)
    for _ in range(STEPS):
        sim.step()
    assert state(sim) == state(ran(name, "auto", penetration))
    fresh = again(sim)
    assert state(fresh) == state(sim)
    for _ in range(3):
        sim.step()
        fresh.step()
        assert state(fresh) == state(sim)
