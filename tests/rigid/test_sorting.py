"""Bodies sorted in space: an order of memory that nobody outside sees."""

import h5py
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.files import hdf5 as storage
from contactdynamics.rigid import contact_set, order, simulation, solvers
from contactdynamics.rigid.search.pairs import renumber


@pytest.fixture
def sorted_always(monkeypatch):
    monkeypatch.setattr(simulation, "SORT_FROM", 2)
    monkeypatch.setattr(simulation, "SORT_EVERY", 7)


def rain(seed=3, count=60, dimension=3, law=None, **options):
    """Balls at random places (not in the order of their numbers) that fall on a plane; two are on a spring."""
    rng = np.random.default_rng(seed)
    d = dimension
    scene = cd.Scene(gravity=(0.0,) * (d - 1) + (-9.81,))
    scene.material("grain", density=2000.0)
    scene.contact("grain", "grain", **{"friction": 0.4} | (law or {}))
    up = (0.0,) * (d - 1) + (1.0,)
    floor = (cd.Plane if d == 3 else cd.HalfPlane)(up)
    scene.add(floor, material="grain", position=(0.0,) * d, fixed=True)
    side = 6 if d == 3 else 15
    places = np.stack(np.meshgrid(*[np.arange(side)] * d, indexing="ij"), -1).reshape(-1, d)
    places = rng.permutation(places[np.argsort(places[:, -1], kind="stable")][:count]) * 0.202 + 0.105
    places = places + rng.uniform(-1e-3, 1e-3, places.shape)
    numbers = scene.add_many(rng.uniform(0.085, 0.1, count), material="grain", position=places)
    scene.spring(int(numbers[5]), int(numbers[9]), stiffness=50.0, length=0.3)
    return cd.Simulation(scene, time_step=2e-3, tolerance=1e-10, max_iterations=100_000, **options)


@pytest.mark.parametrize(("dimension", "law"), [(2, {}), (3, {}), (2, {"rolling": 0.02, "cohesion": 0.5})])
def test_only_the_order_in_memory_changes(monkeypatch, dimension, law):
    """The same motion with and without sorting, body by body: the solutions differ by the tolerance alone."""
    plain, ordered = (rain(dimension=dimension, law=law) for _ in range(2))
    monkeypatch.setattr(simulation, "SORT_EVERY", 7)
    for limit, sim in ((10**9, plain), (2, ordered)):
        monkeypatch.setattr(simulation, "SORT_FROM", limit)
        for _ in range(40):
            sim.step()
    assert plain.report.contacts > 20 and (not law or np.abs(plain.contacts.moment).max() > 0)
    assert (np.diff(plain.bodies.identity) > 0).all()
    assert (np.diff(ordered.bodies.identity) < 0).any()  # it was sorted, indeed
    np.testing.assert_array_equal(ordered.identities, plain.identities)
    for name in ("positions", "velocities", "spins", "rotations"):
        np.testing.assert_allclose(getattr(ordered, name), getattr(plain, name), atol=2e-6, err_msg=name)
    assert ordered.energy.closure < 1e-10


def pairs_of(sim):
    return sim.contact_set.searches[0].found


def test_slabs_stand_together(sorted_always):
    """After sorting, the contacts of a slab are one run of the list: the order of sweeps jumps only between slabs."""
    sim = rain(count=200)
    for _ in range(120):
        sim.step()
    sim._sort()
    for _ in range(2):
        sim.step()
    m, pairs, total, square = sim.contact_set.count, pairs_of(sim), np.zeros(3), np.zeros(3)
    seen = order.spread(sim.bodies.position, pairs.b, order.stride(m), total, square)
    axis, width, first, slabs = order.grid(total, square, seen, pairs.gap.max(), sim.contact_set.near.reach)
    body = sim.model.balls.body[pairs.first[: pairs.balls]]
    slab = np.floor(sim.bodies.position[body, axis] / width) - first
    assert m > 100 and slabs > 3
    assert (np.diff(slab) < 0).sum() <= 0.05 * m  # a few bodies have crossed a bound since


def test_renumbered_pairs_are_the_same_contacts():
    """Each contact keeps gap and memory; where first and second change places, normal and impulse turn."""
    sim = rain(count=60)
    while len(pairs_of(sim).first) < 30:
        sim.step()
    new_order = np.random.default_rng(0).permutation(len(sim.model.balls.radius))
    old, new = pairs_of(sim), renumber(pairs_of(sim), new_order)
    assert new.balls == old.balls

    def table(pairs, number):
        rows = {}
        for k in range(len(pairs.first)):
            ball = k < pairs.balls
            i, j = (int(number[pairs.first[k]]) if ball else -1 - int(pairs.first[k])), int(number[pairs.second[k]])
            sign = -1.0 if ball and i > j else 1.0
            rows[min(i, j), max(i, j)] = np.concatenate(
                [[pairs.gap[k], pairs.status[k]], sign * pairs.normal[k], sign * pairs.impulse[k]]
            )
        return rows

    one, two = table(old, np.arange(len(new_order))), table(new, new_order)
    assert one.keys() == two.keys()
    for key, row in one.items():
        np.testing.assert_array_equal(row, two[key])
    first, second = new.first[: new.balls].astype(int), new.second[: new.balls].astype(int)
    assert (first < second).all() and (np.diff(first * len(new_order) + second) > 0).all()


def test_a_resumed_run_has_the_same_bits(sorted_always, tmp_path):
    one = rain(count=50, recorders=[cd.HDF5(tmp_path / "one.h5", every=10)])
    one.run(until=0.1, progress=False)
    two = rain(count=50, recorders=[cd.HDF5(tmp_path / "two.h5", every=10)])
    two.run(until=0.046, progress=False)
    three = cd.Simulation.from_file(tmp_path / "two.h5")
    assert (np.diff(three.bodies.identity) < 0).any()
    three.run(until=0.1, progress=False)
    for name in ("positions", "velocities", "spins", "rotations"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name), err_msg=name)


def test_a_resumed_run_sorts_by_what_the_checkpoint_knows(sorted_always, monkeypatch, tmp_path):
    """Gaps are in no checkpoint: a run that goes on must not sort by them either."""
    one = rain(count=50, penetration="anticipate", recorders=[cd.HDF5(tmp_path / "run.h5", every=10)])
    for _ in range(31):
        one.step()
    assert len(pairs_of(one).gap) > 20 and pairs_of(one).gap.max() > 1e-4
    for recorder in one.recorders:
        recorder.end(one)
    two = cd.Simulation.from_file(tmp_path / "run.h5")
    seen, slices = [], contact_set.slices
    monkeypatch.setattr(contact_set, "slices", lambda *given: seen.append(given) or slices(*given))
    for sim in (one, two):
        sim._sort()
    for mine, resumed in zip(*seen, strict=True):
        np.testing.assert_array_equal(mine, resumed)


def test_files_of_unsorted_bodies_are_taken_over(tmp_path):
    """Older files do not say how rows are ordered: they stand as in the frame, also after bodies were removed."""
    sim = rain(count=30, recorders=[cd.HDF5(tmp_path / "old.h5", every=5)])
    sim.run(until=0.02, progress=False)
    sim.remove(sim.identities[[4, 9]])
    sim.run(until=0.04, progress=False)
    with h5py.File(tmp_path / "old.h5", "a") as file:
        del file["checkpoint/row_order"], file["checkpoint/ball_order"]
    again = cd.Simulation.from_file(tmp_path / "old.h5")
    for one in (sim, again):
        one.recorders = []
        one.run(until=0.06, progress=False)
    np.testing.assert_array_equal(again.positions, sim.positions)


def test_frames_are_in_the_order_of_the_numbers(sorted_always, tmp_path):
    """A frame of the simulation is the one of the file, and its balls belong to their bodies."""
    sim = rain(count=50, recorders=[cd.HDF5(tmp_path / "run.h5", every=10)])
    radii = sim.by_number()[1].radius
    sim.run(until=0.06, progress=False)
    mine = sim.frame()
    with storage.open(tmp_path / "run.h5") as recording:
        theirs = recording[-1]
    assert (np.diff(mine.identities) > 0).all()
    for name in mine._fields:
        if name not in ("contacts", "laws") and getattr(mine, name) is not None:
            np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), atol=1e-12, err_msg=name)
    assert mine.laws == theirs.laws
    np.testing.assert_array_equal(sim.by_number()[1].radius, radii)
    np.testing.assert_allclose(sim.positions, mine.positions)


def test_bodies_come_and_go(sorted_always):
    """Numbers stay with their bodies when others are added and removed between two sorts."""
    sim = rain(count=50)
    rng = np.random.default_rng(1)
    for k in range(40):
        if k % 5 == 2:
            new = sim.add(cd.Sphere(0.05), material="grain", position=(0.5, 0.5, 2.5 + 0.02 * k))
            at = int(np.searchsorted(sim.identities, new))
            np.testing.assert_allclose(sim.positions[at], (0.5, 0.5, 2.5 + 0.02 * k))
        if k % 6 == 4:
            gone = int(rng.choice(sim.identities[10:]))
            before = dict(zip(sim.identities.tolist(), sim.positions, strict=True))
            sim.remove(gone)
            after = dict(zip(sim.identities.tolist(), sim.positions, strict=True))
            assert before.keys() - after.keys() == {gone}
            for number, place in after.items():
                np.testing.assert_array_equal(before[number], place)
        sim.step()
    assert sim.energy.closure < 1e-9


def test_shares_that_may_stay():
    """All shares below the bound sum to what is allowed at most, and one bound higher they do not."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        shares = 10.0 ** rng.uniform(-25, -3, rng.integers(1, 300))
        shares[rng.random(len(shares)) < 0.1] = 0.0
        shares[rng.random(len(shares)) < 0.05] = np.inf
        allowed = 10.0 ** rng.uniform(-20, -2)
        losses = np.zeros((1, 2048), dtype=np.int64)
        both = np.stack([np.full(len(shares), np.inf), shares], axis=1)
        solvers.add_losses(np.arange(len(shares), dtype=np.uint32), 0, len(shares), both, 1, losses[0])
        limit, above = solvers.small_enough(losses, allowed)
        assert shares[shares < limit].sum() <= allowed * (1 + 1e-9)  # by 32 bits of each
        if np.isfinite(limit):
            assert shares[shares < 2 * limit].sum() > allowed or np.isinf(shares).any()
        share = np.mean(shares >= limit)
        assert share / (2 - share) - 1e-12 <= above <= 2 * share / (1 + share) + 1e-12  # each counts once to twice
