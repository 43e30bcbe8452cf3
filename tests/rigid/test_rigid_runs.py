"""Runs as a whole: the same bits twice, bodies that come and go, the two solvers, the modes of Numba, the report."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.errors import ConvergenceError, ConvergenceWarning
from contactdynamics.quaternions import matrix
from rigid_tools import (
    DIMENSIONS,
    G,
    assert_closed,
    ball,
    ball_mass,
    floor,
    run,
    sled,
    start,
    step_through,
    vector,
    wall,
    world,
)  # fmt: skip


def box(d, *, friction=0.4, restitution=0.3, clusters=False, far=0):
    """Balls of two sizes, and clusters, above the floor of a box; ``far`` balls fly outside where nothing is."""
    scene = world(d, friction=friction, restitution=restitution)
    floor(scene)
    for axis in np.eye(d)[: d - 1]:
        for sign in (1, -1):
            scene.add(wall(d, sign * axis), material="m", position=-0.5 * sign * axis, fixed=True)
    rng = np.random.default_rng(7)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.33, 0.33, 4)] * (d - 1), np.arange(3) * 0.22 + 0.15))
    place = grid.reshape(d, -1).T + rng.uniform(-0.01, 0.01, (3 * 4 ** (d - 1), d))
    scene.add_many(rng.uniform(0.06, 0.1, len(place)), material="m", position=place, velocity=vector(d, 0.3, -1.0))
    if clusters:
        scene.add(cd.Cluster([0.08, 0.06], np.eye(d)[:2] * 0.06), material="m", position=vector(d, 0.1, 0.95))
    for k in range(far):
        scene.add(ball(d, 0.07), material="m", position=vector(d, 0.3, 50.0 + k), velocity=vector(d, 0.0, 1.0))
    return scene


def state(sim, bodies=None):
    """All bits that the motion of the bodies consists of."""
    rows = slice(None) if bodies is None else np.isin(sim.identities, bodies)
    return b"".join(
        a[rows].tobytes() for a in (sim.bodies.position, sim.bodies.orientation, sim.rows[:, :6])
    )  # fmt: skip


def memory(sim, bodies):
    """The contacts among ``bodies``: pairs of numbers, impulses to the bit, status."""
    c = sim.contacts
    return sorted(
        (tuple(pair), impulse.tobytes(), int(status))
        for pair, impulse, status in zip(c.bodies.tolist(), c.impulse, c.status, strict=True)
        if set(pair) <= set(bodies)
    )


# Coarse steps on purpose: what they do is told (test_watch), and computed all the same.
pytestmark = pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")

# ---- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_two_runs_give_the_same_bits(d, penetration):
    runs = []
    for _ in range(2):
        sim = start(box(d, clusters=True), 4e-3, tolerance=1e-5, penetration=penetration, on_failure="ignore")
        sim.run(until=0.6, progress=False)
        assert_closed(sim)
        runs.append((state(sim), sim.contacts.impulse.tobytes(), repr(sim.energy), sim.report))
    assert runs[0] == runs[1]


def test_stepping_by_hand_is_running():
    one = start(box(3), 4e-3, tolerance=1e-5, on_failure="ignore").run(until=0.4, progress=False)
    two = start(box(3), 4e-3, tolerance=1e-5, on_failure="ignore")
    for _ in range(100):
        two.step()
    three = start(box(3), 4e-3, tolerance=1e-5, on_failure="ignore")
    for t in (0.1, 0.2, 0.4):
        three.run(until=t, progress=False)
    assert state(one) == state(two) == state(three)
    assert one.time == two.time == three.time == 100 * 4e-3


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_lists_of_neighbours_do_not_show(d):
    # Rebuilt in every step, or when it is due: the same bits.
    one = start(box(d), 4e-3, tolerance=1e-5, on_failure="ignore").run(until=0.5, progress=False)
    two = start(box(d), 4e-3, tolerance=1e-5, on_failure="ignore")
    for _ in range(125):
        two.contact_set.near.lists = None
        two.step()
    assert state(one) == state(two)


# ---- nothing that touches is missed ----------------------------------------------------------------------------------


def touching(sim):
    """All pairs with a gap <= 0 at the midpoint, by brute force: balls, then (plane, ball)."""
    places, balls, planes, kind = sim.contact_set.near.places, sim.model.balls, sim.model.planes, sim.bodies.kind
    i, j = np.triu_indices(len(places), 1)
    may = (balls.body[i] != balls.body[j]) & ((kind[balls.body[i]] == 0) | (kind[balls.body[j]] == 0))
    i, j = i[may], j[may]
    near = np.sqrt(((places[i] - places[j]) ** 2).sum(axis=1)) <= balls.radius[i] + balls.radius[j]
    found = set(zip(i[near].tolist(), j[near].tolist(), strict=True))
    for p, body in enumerate(planes.body):
        normal = matrix(sim._turned[body]) @ planes.normal[p]
        heights = (places - sim._middle[body]) @ normal
        found |= {
            (-1 - p, int(k)) for k in np.flatnonzero(heights <= balls.radius) if kind[balls.body[k]] == 0
        }  # fmt: skip
    return found


def taken(sim):
    pairs = sim.contact_set.searches[0].found
    first = [int(f) if k < pairs.balls else -1 - int(f) for k, f in enumerate(pairs.first)]
    return set(zip(first, pairs.second.tolist(), strict=True))


def with_middle(sim):
    """Keep positions and orientations at the midpoint of each step, for `touching`."""
    detect = sim.contact_set.detect

    def spy(*arguments):
        sim._middle, sim._turned = sim.bodies.position.copy(), sim.bodies.orientation.copy()
        return detect(*arguments)

    sim.contact_set.detect = spy
    return sim


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.EnergyWarning")  # clusters that bounce, with friction
@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_no_contact_is_missed_in_a_shaken_box(d, penetration):
    scene = box(d, clusters=True, restitution=0.9)
    rng = np.random.default_rng(3)
    for k, push in enumerate(rng.normal(size=(3, d))):
        scene.force(2 * d - 1 + k, force=lambda t, push=push: 0.5 * np.sin(60 * t) * push)
    sim = with_middle(start(scene, 4e-3, tolerance=1e-4, penetration=penetration, on_failure="ignore"))
    for _ in step_through(sim, 200):
        missed = touching(sim) - taken(sim)
        assert not missed
    assert_closed(sim)


def test_no_contact_is_missed_among_bodies_that_swing_within_their_margin():
    # A ball that swings by less than its margin is never looked up again: those that come near must count with all
    # the places it may have, not with the one where they see it.
    for seed in (2, 34, 40, 179, 234, 270):
        rng = np.random.default_rng(seed)
        scene = world(2, gravity=0.0, restitution=1.0)
        amplitude, frequency = rng.uniform(0.12, 0.149) * 0.1, rng.uniform(0.5, 5)
        for k in range(6):
            swing = cd.loads.sine((2 * np.pi * frequency * amplitude, 0), frequency, np.pi / 2 + rng.uniform(0, 6))
            scene.add(cd.Disk(0.1), material="m", position=(0, 0.3 * k), motion=swing)
            place, speed = -0.3 - rng.uniform(0, 0.1), rng.uniform(0.05, 0.5)
            scene.add(cd.Disk(0.1), material="m", position=(place, 0.3 * k), velocity=(speed, 0))
        sim = with_middle(start(scene, 1e-3))
        for _ in step_through(sim, 1800):
            assert touching(sim) == taken(sim)


def test_one_large_ball_among_thousands_of_small_ones():
    # A list of neighbours may be as long as there are balls.
    n = 5000
    k = np.arange(n) + 0.5
    polar, azimuth = np.arccos(1 - 2 * k / n), np.pi * (1 + np.sqrt(5)) * k
    shell = np.column_stack([np.cos(azimuth) * np.sin(polar), np.sin(azimuth) * np.sin(polar), np.cos(polar)])
    scene = world(3, gravity=0.0)
    scene.add(cd.Sphere(1.0), material="m", fixed=True)
    scene.add_many(0.01, material="m", position=shell * 1.011, velocity=-0.5 * shell)
    sim = start(scene, 2e-3, tolerance=1e-6)
    for _ in range(2):
        sim.step()
    assert len(sim.contacts.gap) >= n


# ---- bodies that come and go -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_bodies_that_come_and_go_elsewhere_change_no_bit(d):
    known = list(range(2 * d - 1 + 3 * 4 ** (d - 1)))
    alone = start(box(d), 4e-3, tolerance=1e-5, on_failure="ignore")
    sim = start(box(d), 4e-3, tolerance=1e-5, on_failure="ignore")
    guests = []
    for k in range(120):
        if k in (30, 31, 75):
            guests.append(sim.add(ball(d, 0.07), material="m", position=vector(d, 0.2, 40.0 + k)))
            guests += sim.add_many(
                [0.05, 0.06], material="m", position=[vector(d, 0.1 * i, 90 + k) for i in (1, 3)]
            ).tolist()
        if k in (50, 90):
            sim.remove([guests.pop(0), guests.pop(1)])
        if k == 100:
            sim.remove(guests)
        alone.step()
        sim.step()
        assert state(sim, known) == state(alone)
        assert memory(sim, known) == memory(alone, known)
    assert_closed(sim)
    assert sim.identities.tolist() == known


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_guest_that_leaves_takes_no_memory_of_others_with_it(d):
    # Two stacks side by side; one loses its first ball, numbered before all others. The other stack does not notice.
    scene = world(d, friction=0.5)
    floor(scene)
    for x in (0.0, 5.0):
        for k in range(4):
            scene.add(ball(d, 0.1), material="m", position=vector(d, x, 0.1 + 0.2 * k))
    sim, twin = start(scene, 1e-3), start(scene, 1e-3)
    for s in (sim, twin):
        s.run(until=0.05, progress=False)
    sim.remove(1)
    pairs, held = (s.contact_set.searches[0].found for s in (sim, twin))
    kept = {tuple(p): i.tobytes() for p, i in zip(twin.contacts.bodies.tolist(), held.impulse, strict=True)}
    first = [int(sim.identities[b]) for b in sim.model.balls.body[pairs.first[: pairs.balls]]]
    second = [int(sim.identities[b]) for b in sim.model.balls.body[pairs.second[: pairs.balls]]]
    for a, b, impulse in zip(first, second, pairs.impulse, strict=False):
        assert kept[a, b] == impulse.tobytes()
    sim.step()
    twin.step()
    there = [
        force for pair, force in zip(sim.contacts.bodies.tolist(), sim.contacts.impulse, strict=True) if min(pair) > 4
    ]
    same = [
        force for pair, force in zip(twin.contacts.bodies.tolist(), twin.contacts.impulse, strict=True) if min(pair) > 4
    ]
    assert len(there) == 3 and np.abs(np.array(there) - same).max() < 1e-10 * np.abs(same).max()
    sim.run(until=0.5, progress=False)
    assert_closed(sim)
    assert sim.positions[1, -1] == pytest.approx(0.1, abs=5e-3)  # the second ball is now the lowest


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_ledger_knows_who_comes_and_goes(d):
    scene = world(d)
    floor(scene)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1), spin=3.0 if d == 2 else (0, 0, 3.0))
    sim = start(scene, 1e-3)
    sim.step()
    kinetic = sim.energy.kinetic
    number = sim.add(ball(d, 0.2), material="m", position=vector(d, 0, 9.0), velocity=vector(d, 4.0))
    gain = 0.5 * ball_mass(d, 0.2) * 16
    assert sim.energy.inflow == pytest.approx(gain) and sim.energy.kinetic == pytest.approx(kinetic + gain)
    sim.run(until=0.1, progress=False)
    sim.remove(number)
    assert sim.energy.inflow == pytest.approx(-0.5 * ball_mass(d, 0.2) * (G * 0.099) ** 2, rel=1e-9)
    assert_closed(sim)


def test_new_materials_planes_and_drives_during_a_run():
    scene = world(2, friction=0.3)
    floor(scene)
    scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
    sim = start(scene, 1e-3)
    sim.run(until=0.05, progress=False)
    sim.material("ice", density=0.5)
    sim.contact("ice", "m", friction=0.0)
    puck = sim.add(cd.Disk(0.1), material="ice", position=(1.0, 0.1), velocity=(1.0, 0))
    sim.add(cd.HalfPlane((-1, 0)), material="m", position=(3.0, 0), fixed=True)
    pusher = sim.add(cd.Disk(0.05), material="m", position=(-0.5, 0.05), motion=(1.0, 0.0))
    sim.run(until=0.25, progress=False)
    assert sim.body(puck).position[0] == pytest.approx(1.2, abs=2e-3) and sim.body(puck).spin == 0
    assert sim.body(pusher).velocity.tolist() == [1.0, 0.0]
    assert len(sim.energy.normal_work) == 2
    sim.run(until=3.0, progress=False)
    assert sim.body(puck).position[0] <= 2.9 + 1e-3
    assert_closed(sim)


def test_contacts_can_be_read_after_bodies_came():
    scene = world(3, friction=0.3)
    floor(scene)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.1))
    sim = start(scene, 1e-3)
    sim.run(until=0.02, progress=False)
    before = sim.contacts
    sim.add(cd.Sphere(0.1), material="m", position=(0, 0, 5.0))
    for one, two in zip(before, sim.contacts, strict=True):
        assert np.allclose(one, two, rtol=0, atol=1e-9)


def test_a_body_with_a_spring_can_be_removed():
    scene = world(2)
    a = scene.add(cd.Disk(0.1), material="m", position=(0.0, 1.0))
    b = scene.add(cd.Disk(0.1), material="m", position=(1.0, 1.0))
    scene.add(cd.Disk(0.1), material="m", position=(3.0, 1.0))
    scene.spring(a, b, stiffness=10.0)
    sim = start(scene, 1e-3)
    sim.step()
    sim.remove(b)  # its spring goes with it
    speed = sim.velocities[0, 0]
    sim.run(until=0.1, progress=False)
    assert sim.velocities[0, 0] == speed
    sim.add(cd.Disk(0.1), material="m", position=(5.0, 1.0))
    sim.run(until=0.2, progress=False)
    assert sim.velocities[0, 0] == speed
    assert_closed(sim)


def test_removing_what_is_not_there_changes_nothing():
    sim = start(box(2), 4e-3, tolerance=1e-5, on_failure="ignore")
    sim.run(until=0.1, progress=False)
    before = state(sim)
    with pytest.raises(cd.InputError, match="no present body"):
        sim.remove([4, 99])
    with pytest.raises(cd.InputError, match="no free body"):
        sim.remove(sim.identities[sim.bodies.kind == 0])
    assert state(sim) == before and len(sim.identities) == 15
    sim.run(until=0.2, progress=False)
    assert_closed(sim)


# ---- the solvers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_two_solvers_find_the_same_motion(d):
    # A frictionless problem has one solution for the velocities: both solvers must find it.
    ends = []
    for solver in ("nlgs", "accelerated"):
        sim = start(box(d, friction=0.0), 4e-3, tolerance=1e-10, solver=solver, on_failure="ignore")
        sim.run(until=0.15, progress=False)
        assert_closed(sim)
        ends.append(np.column_stack([sim.positions, sim.velocities]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-7


@pytest.mark.parametrize("solver", ["nlgs", "accelerated"])
def test_the_report_is_true(solver):
    # The residual of the report is the natural map of the state reached; see test_rigid_kernels for its twin.
    sim = start(box(3), 4e-3, tolerance=1e-6, solver=solver, on_failure="ignore")
    for _ in step_through(sim, 100):
        report, contacts = sim.report, sim.contacts
        assert report.converged == (report.residual <= 1e-6)
        assert report.contacts == len(contacts.gap)
        if report.contacts:
            assert report.penetration == pytest.approx(max(0.0, -contacts.gap.min()))
            assert ("Solved" in report.message) == report.converged
            tangential = np.linalg.norm(contacts.impulse[:, 1:], axis=1)
            assert (tangential <= 0.4 * contacts.impulse[:, 0] * (1 + 1e-9) + 1e-15).all()
            assert (contacts.impulse[:, 0] >= 0).all()
            assert report.cone_error < 1e-9


def test_the_report_of_clusters_has_errors_of_order_one_at_most():
    scene = world(2, friction=0.3)
    floor(scene)
    scene.add(sled(2), material="m", position=(0, 0.1), velocity=(0.5, 0))
    sim = run(scene, 1e-3, 0.1)
    assert sim.report.contacts == 2
    assert 0 <= sim.report.cone_error < 1e-9
    assert sim.report.relative_penetration < 0.01


def hard():
    """A step that cannot be solved in two sweeps."""
    scene = world(2, friction=0.5)
    floor(scene)
    for k in range(8):
        scene.add(cd.Disk(0.1), material="m", position=(0, 0.1 + 0.2 * k))
    return scene


def test_failures_are_told_once_and_counted():
    sim = cd.Simulation(hard(), time_step=1e-3, tolerance=1e-10, max_iterations=2, solver="nlgs")
    with pytest.warns(ConvergenceWarning, match="steps were not solved to the tolerance") as told:
        sim.run(until=0.02, progress=False)
    assert len(told) == 1 and sim.failures > 0
    assert str(sim.failures) in str(told[0].message)
    assert not sim.report.converged and "max_iterations" in sim.report.message
    with pytest.raises(ConvergenceError, match="Not solved"):
        cd.Simulation(hard(), time_step=1e-3, tolerance=1e-10, max_iterations=2, solver="nlgs", on_failure="raise").run(
            until=0.02, progress=False
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cd.Simulation(
            hard(), time_step=1e-3, tolerance=1e-10, max_iterations=2, solver="nlgs", on_failure="ignore"
        ).run(until=0.02, progress=False)


def test_a_run_that_is_not_solved_still_balances_its_books():
    # The ledger is an identity of the impulses applied, whatever their quality.
    sim = start(hard(), 1e-3, tolerance=1e-10, max_iterations=2, solver="nlgs", on_failure="ignore").run(
        until=0.1, progress=False
    )
    assert_closed(sim)


# ---- the modes of Numba ----------------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path[:0] = {tests!r}
from test_rigid_runs import small_scene
print(" ".join(x.hex() for x in small_scene()))
"""


def small_scene():
    """A short run through all kernels: clusters, planes that turn, springs, every law; positions and velocities."""
    out = []
    for d in DIMENSIONS:
        for penetration in ("moreau", "anticipate"):
            scene = world(d, friction=0.3, static_friction=0.4, restitution=0.2)
            for name, law in (
                ("sticky", {"friction": 0.4, "cohesion": 0.02, "rolling": 1e-3, "spinning": 1e-3}),
                ("super", {"friction": 2.0, "restitution": 0.8, "tangential_restitution": 0.7}),
                ("taut", {"friction": 0.1, "tension": 0.01}),
            ):
                scene.material(name, density=1.0)
                scene.contact(name, "m", **law)
                scene.contact(name, name, **law)
            if d == 3:
                scene.contact("sticky", "super", anisotropic=(0.1, 0.4), axis=(1, 0, 0))
            else:
                scene.contact("sticky", "super", friction=0.2)
            scene.contact("sticky", "taut", friction=0.2)
            scene.contact("super", "taut", friction=0.2)
            floor(
                scene, motion=cd.Drive(velocity=cd.loads.sine(vector(d, 0.2), 2.0), spin=0.1 if d == 2 else (0, 0, 0.3))
            )
            scene.add(wall(d, vector(d, 1.0)), material="m", position=vector(d, -0.6), fixed=True)
            for k, name in enumerate(("m", "sticky", "super", "taut")):
                scene.add(ball(d, 0.1), material=name, position=vector(d, -0.45 + 0.22 * k, 0.12 + 0.01 * k),
                          velocity=vector(d, 0.5 - k * 0.3, -1.0))  # fmt: skip
            one = scene.add(cd.Cluster([0.1, 0.08], np.eye(d)[:2] * 0.1), material="m", position=vector(d, -0.1, 0.42))
            scene.spring(one, 2, stiffness=3.0, damping=0.01, length=0.3, anchor=vector(d, 0.05))
            scene.force(one, force=lambda t, d=d: vector(d, 0.1 * np.sin(9 * t)))
            sim = cd.Simulation(
                scene, time_step=4e-3, tolerance=1e-8, max_iterations=500, penetration=penetration, recovery=0.01,
                on_failure="ignore",
            )  # fmt: skip
            for _ in range(8):
                sim.step()
            new = sim.add(ball(d, 0.05), material="super", position=vector(d, 0.3, 0.5), velocity=vector(d, 0, -3.0))
            for _ in range(8):
                sim.step()
            sim.remove(new)
            sim.step()
            sim.is_equilibrium(tolerance=1e-3)
            out += [*sim.positions.ravel().tolist(), *sim.velocities.ravel().tolist(), sim.energy.closure]
    return out


@pytest.mark.parametrize(  # with bounds checks all kernels are compiled anew: longer tier
    "mode", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=pytest.mark.slow)]
)
def test_interpreted_and_bounds_checked_the_run_is_the_same(mode):
    # An index out of range in compiled code reads garbage without a word; in these two modes it is an error. Numba's
    # cache does not know the option: the folder must be another one.
    cache = Path(tempfile.gettempdir()) / f"contactdynamics-{os.getuid()}-{mode.lower()}"  # kept for the next time
    environment = {**os.environ, mode: "1", "CONTACTDYNAMICS_CACHE": str(cache)}
    script = SCRIPT.format(tests=[str(folder) for folder in list(Path(__file__).parents)[:2]])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    other = np.array([float.fromhex(x) for x in done.stdout.split()])
    mine = np.array(small_scene())
    assert len(mine) == len(other) and np.isfinite(mine).all()
    assert np.abs(mine - other).max() < 1e-7
