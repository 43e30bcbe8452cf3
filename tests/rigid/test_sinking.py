"""What the solver leaves lets no contact sink: it is kept for each contact, and given back beyond a bound."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.rigid import contact_set
from contactdynamics.rigid.contact_set import KEPT, LOST
from contactdynamics.rigid.equations import diagonal, diagonal_rows, full
from contactdynamics.rigid.solvers import FINER, aim
from contactdynamics.rigid.step import Goal, Step
from contactdynamics.rigid.step_solver import polish
from contactdynamics.rigid.threads import ALONE

H, GRAVITY, R = 1e-3, 9.81, 0.01


def tower(count: int, **options) -> cd.Simulation:
    """Spheres on top of each other, swept three times in a step, which leaves most of the weight."""
    scene = cd.Scene(gravity=(0, 0, -GRAVITY))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    for k in range(count):
        scene.add(cd.Sphere(R), material="m", position=(0, 0, R * (1 + 2 * k)))
    settings = {"solver": "nlgs", "max_iterations": 3, "on_failure": "ignore"}
    return cd.Simulation(scene, time_step=H, **(settings | options))


def shaken(dimension: int, clusters: bool, **options) -> cd.Simulation:
    """A box of balls, or of pairs of glued balls, whose floor goes up and down: the load changes in every step."""
    rng, d = np.random.default_rng(1), dimension
    scene = cd.Scene(gravity=(0.0,) * (d - 1) + (-GRAVITY,))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.3)
    wall = cd.Plane if d == 3 else cd.HalfPlane
    up = (0.0,) * (d - 1) + (1.0,)
    drive = cd.Drive(velocity=lambda t: tuple(0.02 * np.sin(400.0 * t) * x for x in up))
    scene.add(wall(up), material="m", motion=drive)
    for axis in range(d - 1):
        for sign in (1.0, -1.0):
            normal = tuple(sign * (c == axis) for c in range(d))
            scene.add(wall(normal), material="m", position=tuple(-3.2 * R * x for x in normal), fixed=True)
    shape = (3,) * (d - 1) + (6,)
    for place in np.ndindex(*shape):
        at = 2.05 * R * (np.array(place) + 0.5 - np.array([1.5] * (d - 1) + [0.0])) + rng.uniform(0, 2e-4, d)
        pair = [(-0.3 * R,) + (0.0,) * (d - 1), (0.3 * R,) + (0.0,) * (d - 1)]
        ball = cd.Cluster([0.6 * R] * 2, pair) if clusters else (cd.Sphere if d == 3 else cd.Disk)(R)
        scene.add(ball, material="m", position=at)
    return cd.Simulation(scene, time_step=H, **({"on_failure": "ignore"} | options))


def shares(sim) -> np.ndarray:
    """What each contact has lost, over the smaller radius."""
    search = sim.contact_set.searches[0]
    return search.found.lost / search._sizes(sim.model.balls.radius, np.arange(len(search.found.lost)))


def blocks(dimension: int, count: int, **options) -> cd.Simulation:
    """Blocks on top of each other, none exactly upon the next, swept three times in a step, as `tower`."""
    d = dimension
    scene = cd.Scene(gravity=(0.0,) * (d - 1) + (-GRAVITY,))
    scene.material("m", density=2000)
    scene.contact("m", "m", friction=0.6)
    wall = cd.Plane if d == 3 else cd.HalfPlane
    scene.add(wall((0,) * (d - 1) + (1,)), material="m", fixed=True)
    shape = cd.Box((0.2, 0.2, 0.1)) if d == 3 else cd.Polygon([(-0.1, -0.05), (0.1, -0.05), (0.1, 0.05), (-0.1, 0.05)])
    for k in range(count):
        scene.add(shape, material="m", position=(0.01 * (k % 2),) + (0.0,) * (d - 2) + (0.05 + 0.1 * k,))
    settings = {"solver": "accelerated", "max_iterations": 3, "on_failure": "ignore"}
    return cd.Simulation(scene, time_step=H, **(settings | options))


def block_shares(sim) -> np.ndarray:
    """What each contact of blocks has lost, over the size of the smaller one."""
    found = sim.contact_set.searches[-1].found
    return found.lost / found.place[:, 0]


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_blocks_that_are_hardly_solved_do_not_sink(dimension, penetration, monkeypatch):
    """As a tower of balls. What a contact has lost is the sum of h (r - U_n) while its name stays."""
    ends = []
    for bound in (LOST, np.inf):
        monkeypatch.setattr(contact_set, "LOST", bound)
        sim, deepest, before = blocks(dimension, 20, penetration=penetration, max_iterations=2), [], {}
        for _ in range(300):
            given = block_shares(sim).max(initial=0.0) > bound
            sim.step()
            deepest.append(sim.report.relative_penetration)
            e, found, now, left = sim.contact_set.equations[-1], sim.contact_set.searches[-1].found, {}, 0.0
            speeds, targets = e.separations(sim.rows), np.minimum(e.targets, 0.0)
            for place, speed, target in zip(e.places.tolist(), speeds, targets, strict=True):
                name = (place >= found.planes, *found.index[place, :4].tolist())
                now[name], left = float(found.lost[place]), max(left, H * (target - speed))
                if name in before and not given:
                    assert now[name] == pytest.approx(max(0.0, before[name] - H * (speed - target)), abs=1e-16)
            before = now
            if bound == LOST:
                assert block_shares(sim).max() <= LOST + left / found.place[:, 0].min()
        ends.append(max(deepest))
        assert sim.energy.created == 0.0 and (sim.energy.recovery_work > 0) == (bound == LOST)
    assert ends[0] < 1.5 * LOST and ends[1] > 1.5 * ends[0]


@pytest.mark.parametrize("dimension", [2, 3])
def test_blocks_give_back_what_they_have_lost(dimension, tmp_path):
    """Opened to about KEPT, with the work against gravity; a spin turns with its body; the file knows what was lost."""
    sim = blocks(dimension, 4, max_iterations=1000, tolerance=1e-8)
    sim.step()
    found, size, d = sim.contact_set.searches[-1].found, 0.05, dimension
    found.lost[:] = sim.contact_set.lost = 2 * LOST * size
    sim.bodies.position[1:, d - 1] -= 2 * LOST * size * np.arange(1, 5)
    path, place = tmp_path / "lost.h5", sim.positions.copy()
    recorder = cd.HDF5(path)
    recorder.begin(sim)
    recorder.end(sim)
    sim.step()
    assert block_shares(sim).max() <= 1.1 * KEPT
    moved = (sim.positions - place)[1:, d - 1] / size
    assert moved == pytest.approx((2 * LOST - KEPT) * np.arange(1, 5), abs=0.5 * KEPT)
    assert sim.energy.recovery_work == pytest.approx(sim.bodies.mass[1] * GRAVITY * moved.sum() * size, rel=1e-6)
    assert abs(sim.velocities).max() < 1e-8 and sim.energy.created == 0.0
    again = cd.Simulation.from_file(path)
    again.step()
    assert np.array_equal(again.positions, sim.positions) and np.array_equal(block_shares(again), block_shares(sim))


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_a_tower_that_is_hardly_solved_does_not_sink(penetration, monkeypatch):
    """A contact has lost LOST at most and what the step has left; without giving back it loses ten times as much."""
    ends = []
    for bound in (LOST, np.inf):
        monkeypatch.setattr(contact_set, "LOST", bound)
        sim, deepest = tower(40, penetration=penetration), []
        for _ in range(800):
            sim.step()
            deepest.append(sim.report.relative_penetration)
            if bound == LOST:
                e = sim.contact_set.equations[0]
                left = np.minimum(e.active.row[:, diagonal_rows.TARGET], 0.0) - e.separations(sim.rows)
                assert shares(sim).max() <= LOST + H * left.max(initial=0.0) / R
        ends.append(max(deepest))
        assert sim.energy.created == 0.0 and (sim.energy.recovery_work > 0) == (bound == LOST)
        if bound == LOST:  # at rest it does not grow
            assert max(deepest[400:]) <= LOST
    assert ends[0] < 1.5 * LOST and ends[1] > 10 * ends[0]


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")  # fast, and hardly solved
@pytest.mark.parametrize("clusters", [False, True], ids=["balls", "clusters"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_what_a_contact_loses_is_bounded_and_counted(dimension, clusters):
    """Against sums of h (r - U_n) over the steps, pair by pair; what was given back is missing in them."""
    sim, expected, count = shaken(dimension, clusters, tolerance=0.1, max_iterations=2), {}, 0
    for _ in range(400):
        given = shares(sim).max(initial=0.0) > LOST
        sim.step()
        before, expected, count = expected, {}, count + given
        search, left = sim.contact_set.searches[0], 0.0
        for e in sim.contact_set.equations:
            target = dict(zip(e.explicit(sim.rows, dimension).place.tolist(), e.targets.tolist(), strict=True))
            for place, speed in zip(e.places.tolist(), e.separations(sim.rows).tolist(), strict=True):
                pair = (int(search.found.first[place]), int(search.found.second[place]), place >= search.found.balls)
                lost = max(0.0, before.get(pair, 0.0) - H * (speed - min(0.0, target[place])))
                expected[pair] = float(search.found.lost[place]) if given else lost
                assert search.found.lost[place] == pytest.approx(expected[pair], abs=1e-16)
                left = max(left, H * (min(0.0, target[place]) - speed))
        assert shares(sim).max(initial=0.0) <= LOST + left / (0.6 * R if clusters else R)
    assert count > 0


def test_twin_of_lose():
    """The kernels of both kinds of contacts of balls against the formula."""
    for clusters, module in ((False, diagonal), (True, full)):
        sim = shaken(3, clusters)
        for _ in range(60):
            sim.step()
        e, rng = sim.contact_set.equations[-1], np.random.default_rng(2)
        rows = sim.rows + rng.normal(size=sim.rows.shape) * [1, 1, 1, 1, 1, 1, 0, 0]
        lost = rng.uniform(0, 1e-4, len(sim.contact_set.searches[0].found.lost))
        expected = lost.copy()
        speed, target = e.separations(rows), e.active.row[:, 6] if module is diagonal else e.active.target[:, 0]
        expected[e.places] = np.maximum(0.0, lost[e.places] - H * (speed - np.minimum(target, 0.0)))
        step = Step(0.0, H, 0.0, False, False, sim._before, sim._free)
        found = sim.contact_set.searches[0].found
        found.lost[:] = lost
        every, mobility = np.arange(e.count, dtype=np.uint32), sim.contact_set.mobility(sim.model)
        e.kernels.measure(rows, mobility, e.active, every, np.empty((e.count, 2)))  # as solvers do in the end
        e.book(found, step, rows, sim.bodies, np.zeros((len(sim.model.laws), 4)), ALONE)
        assert found.lost == pytest.approx(expected, abs=1e-15) and (expected[e.places] > lost.max() * 1e-3).any()


def test_going_on_from_a_file_knows_what_was_lost(tmp_path):
    """A run that goes on gives back at the same steps, with the same bits."""
    path = tmp_path / "run.h5"
    for until in (0.2, 0.1):
        sim = tower(20, recorders=cd.HDF5(path, every=0.1, overwrite=True))
        sim.run(until=until, progress=False)
        if until == 0.2:
            whole = sim
    assert shares(sim).max() > 0.0
    again = cd.Simulation.from_file(path)
    assert np.array_equal(shares(again), shares(sim)) and again.contact_set.lost == sim.contact_set.lost
    again.run(until=0.2, progress=False)
    assert np.array_equal(again.positions, whole.positions) and np.array_equal(again.velocities, whole.velocities)
    assert again.energy.recovery_work == whole.energy.recovery_work > 0


def test_quiet_steps_are_improved_where_contacts_have_lost():
    """Of many balls; a tenth of the first error, a hundredth of the tolerance at most. Few are always solved finely."""
    goal = Goal(1.0, np.zeros((1, 8)), 1e-3, 100, True, False)
    assert aim(goal, 5e-4) == aim(goal, 5e-3) == 1e-3  # below the tolerance: solved
    calm = goal._replace(polish=10, quiet=1e-2)
    assert aim(calm, 5e-3) == 1e-3 and aim(calm, 5e-4) == pytest.approx(5e-5) and aim(calm, 5e-5) == 1e-5
    assert aim(goal._replace(few=True), 5e-4) == pytest.approx(FINER * 1e-3)
    sim = tower(3)
    sim.step()
    sets = sim.contact_set
    assert polish(sets.count, [], sets.sinks)[1]
    for lost, quiet in ((1.4e-3 * R, 1.0), (1.6e-3 * R, 1e-2)):
        sets.lost = sets.searches[0].lost[0] = lost
        assert polish(10_000, [], sets.sinks) == (10, False, quiet)
    sets.count = 2000
    assert not sets.sinks  # one of so many is given back, and nothing is asked of the others


def test_what_is_given_back_goes_up_the_row():
    """Each contact of a column has lost 2 LOST: all are opened to about KEPT, and the work is that against gravity."""
    sim = tower(5, max_iterations=1000, tolerance=1e-8)
    sim.step()
    sim.contact_set.searches[0].found.lost[:] = sim.contact_set.lost = 2 * LOST * R
    sim.bodies.position[1:, 2] -= 2 * LOST * R * np.arange(1, 6)
    place = sim.positions.copy()
    sim.step()
    assert shares(sim).max() <= 1.1 * KEPT
    moved = (sim.positions - place)[1:, 2] / R
    assert moved == pytest.approx((2 * LOST - KEPT) * np.arange(1, 6), abs=0.5 * KEPT)
    mass = 4 / 3 * np.pi * R**3 * 1000
    assert sim.energy.recovery_work == pytest.approx(mass * GRAVITY * moved.sum() * R, rel=1e-6)
    assert abs(sim.velocities).max() < 1e-9 and sim.energy.created == 0.0


def test_held_bodies_stay_where_they_are_held():
    """What overlaps is opened along the ways that are free; a body that is held in this direction stays."""
    scene = cd.Scene(gravity=(0.0, 0.0))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.0)
    scene.add(cd.Disk(R), material="m", position=(0, 0), free="y turn")
    scene.add(cd.Disk(R), material="m", position=(1.99 * R, 0))
    sim = cd.Simulation(scene, time_step=H, recovery=1.0)
    sim.run(until=5 * H, progress=False)
    assert sim.positions[0].tolist() == [0.0, 0.0] and sim.positions[1, 0] > 1.999 * R
