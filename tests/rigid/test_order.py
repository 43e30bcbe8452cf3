"""The order of the sweeps, threads, and what the solver may leave to a contact."""

from itertools import pairwise

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics._jit import kernel
from contactdynamics.bench import heaps
from contactdynamics.rigid import contact_set, order
from contactdynamics.rigid.equations.contract import GROUPS
from contactdynamics.rigid.search.contract import DIAGONAL
from contactdynamics.rigid.threads import ALONE, Team, meet
from contactdynamics.state import FIXED, FREE


def lattice(d, count, **options):
    """A long loose block of balls in a trough, in a random order of numbers."""
    scene = cd.Scene(gravity=(0.3,) + (0.0,) * (d - 2) + (-9.81,))
    scene.material("m", density=1000.0, friction=0.4)
    up = np.eye(d)[-1]
    scene.add(cd.Plane(up) if d == 3 else cd.HalfPlane(up), material="m", fixed=True)
    if d == 3:
        scene.add(cd.Plane((0, 1, 0)), material="m", position=(0, -0.06, 0), fixed=True)
        scene.add(cd.Plane((0, -1, 0)), material="m", position=(0, 0.27, 0), fixed=True)
    rng = np.random.default_rng(2)
    shape = (count // 12, 3, 4) if d == 3 else (count // 4, 4)
    grid = np.stack(np.meshgrid(*(np.arange(k) for k in shape), indexing="ij"), -1).reshape(-1, d)
    places = 0.105 * grid + 0.055 * up + rng.uniform(-2e-3, 2e-3, grid.shape)
    scene.add_many(rng.uniform(0.04, 0.05, len(places)), material="m", position=rng.permutation(places))
    return cd.Simulation(scene, **{"time_step": 1e-3, "max_iterations": 20_000} | options)


@pytest.mark.parametrize("d", [2, 3])
def test_groups_of_one_kind_share_no_free_body(d):
    sim = lattice(d, 480)
    sim.run(until=0.2, progress=False)
    c, plan = sim.contact_set.equations[0].kind
    m, pairs = len(c.pair), sim.contact_set.searches[0].found
    assert m > 300
    assert sorted(c.pair.tolist()) == np.flatnonzero(pairs.kind == DIAGONAL).tolist()  # every contact once
    assert plan.order.tolist() == list(range(m))
    assert plan.cuts[0] == 0 and plan.cuts[-1] == m and (np.diff(plan.cuts) >= 0).all()
    used = 0
    for kind in range(2):
        seen = set()
        for group in range(kind * GROUPS, (kind + 1) * GROUPS):
            rows = plan.order[plan.cuts[group] : plan.cuts[group + 1]]
            bodies = {int(b) for b in np.concatenate([c.a[rows], c.b[rows]]) if sim.rows[b, 6] > 0}
            assert not bodies & seen
            seen |= bodies
            used += bool(bodies)
    assert used == 2 * order.group_count(m) == 16  # the block is long: no group is empty
    # Two contacts in a row seldom share a body.
    ends = [{int(c.a[k]), int(c.b[k])} for k in plan.order]
    fixed = set(np.flatnonzero(sim.rows[:, 6] == 0).tolist())
    shared = [one & two - fixed for one, two in pairwise(ends)]
    assert np.mean([bool(s) for s in shared]) < 0.1


@pytest.mark.parametrize("state", [{"fixed": True}, {"motion": (0.01, 0.0)}])
@pytest.mark.parametrize("first", [True, False])
def test_a_wide_base_does_not_put_all_contacts_into_one_group(monkeypatch, state, first):
    """Slabs are as wide as bodies that move freely; what is fixed or driven may be as wide as it likes."""
    monkeypatch.setattr(contact_set, "SMALL", 0)
    scene = cd.Scene(gravity=(0.0, -9.81))
    scene.material("m", density=1000.0, friction=0.4)
    base = {"material": "m", "position": (2.0, -0.1)} | state
    if first:
        scene.add(cd.Rectangle(6.0, 0.2), **base)
    for k in np.random.default_rng(2).permutation(80).tolist():
        scene.add(cd.Rectangle(0.1, 0.1), material="m", position=(0.1001 * (k % 40), 0.05 + 0.1 * (k // 40)))
    if not first:
        scene.add(cd.Rectangle(6.0, 0.2), **base)
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    c, plan = sim.contact_set.equations[0].kind
    assert len(c.a) == 160 and np.diff(plan.cuts).max() < 30
    for begin in (0, GROUPS):
        groups = pairwise(plan.cuts[begin : begin + GROUPS + 1])
        bodies = [np.unique(np.concatenate([c.a[plan.order[x:y]], c.b[plan.order[x:y]]])) for x, y in groups]
        bodies = np.concatenate([some[sim.rows[some, 6] > 0.0] for some in bodies])
        assert len(bodies) == len(np.unique(bodies)) > 20


@pytest.mark.parametrize("solver", ["accelerated", "nlgs"])
def test_threads_change_no_bit(solver, monkeypatch, tmp_path):
    # In the last steps: more threads than cores wait for each other after each half of a sweep.
    monkeypatch.setattr(contact_set, "SMALL", 0)
    path, states = tmp_path / "run.h5", []
    lattice(3, 240, solver=solver, recorders=cd.HDF5(path, every=1000)).run(until=0.112, progress=False)
    for threads in (1, 3):
        sim = lattice(3, 240, solver=solver, threads=threads).restore(path)
        sim.run(until=0.12, progress=False)
        assert sim.steps == 120 and sim.contact_set.count > 200 and sim.failures == 0
        impulse = sim.contact_set.searches[0].found.impulse
        states.append((sim.rows.tobytes(), sim.bodies.position.tobytes(), impulse.tobytes()))
    assert states[0] == states[1]


@pytest.mark.parametrize("contacts, groups", [(10, 8), (131_071, 8), (131_072, 16), (10**6, 64), (10**9, 64)])
def test_many_contacts_have_more_groups(contacts, groups):
    """As many workers find some: groups of either parity have about as many contacts, in the order of the slabs."""
    rng = np.random.default_rng(3)
    sizes = rng.multinomial(contacts, np.full(300, 1 / 300))
    group = order.group_slabs(np.append(sizes, 0)[None])
    assert order.group_count(contacts) == groups and group[-1] == 2 * GROUPS
    for parity in range(2):
        mine, held = group[parity:-1:2] - parity * GROUPS, sizes[parity::2]
        assert (np.diff(mine) >= 0).all() and (mine % (GROUPS // groups) == 0).all() and mine[0] >= 0
        found = np.bincount(mine // (GROUPS // groups), weights=held, minlength=groups)
        assert len(found) == groups and abs(found - held.sum() / groups).max() <= 1.1 * held.max()


def test_more_threads_than_groups_have_the_bits_of_one(monkeypatch):
    monkeypatch.setattr(contact_set, "SMALL", 0)
    states = []
    for threads in (1, 9):
        sim = heaps.lattice(300, threads=threads, max_iterations=3, on_failure="ignore")
        for _ in range(2):
            sim.step()
        assert sim.contact_set.count > 500
        states.append((sim.rows.tobytes(), sim.bodies.position.tobytes()))
    assert states[0] == states[1]


@pytest.mark.parametrize("threads", [0, 1.5, 65, "two"])
def test_wrong_number_of_threads(threads):
    with pytest.raises(cd.InputError, match=r"threads is .*; give a whole number from 1 to 64"):
        lattice(2, 8, threads=threads)


@kernel
def _rounds(table, rows, rounds, meeting):
    """Every thread writes its round, and after the barrier counts how many others have written the same one."""
    seen = 0
    for k in range(1, rounds + 1):
        table[meeting.thread] = k
        meet(meeting, rows)
        for other in range(meeting.threads):
            seen += table[other] == k
        meet(meeting, rows)
    return seen


def test_nobody_passes_the_barrier_alone():
    threads, rounds = 3, 200
    table, rows = np.zeros(threads, dtype=np.int64), np.zeros((1, 8))
    assert Team(threads).share(_rounds, table, rows, rounds) == threads * rounds


def test_a_stack_keeps_its_forces_in_every_step():
    # Weights above each contact, in every step of "moreau": no contact is lost by a rounding of its gap.
    scene = cd.Scene(gravity=(0, 0, -10.0))
    scene.material("m", density=1.0, friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    for k in range(8):
        scene.add(cd.Sphere(0.5), material="m", position=(0, 0, 0.5 + k), mass=1.0 + k)
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-12, max_iterations=10_000)
    expected = 10.0 * np.arange(1, 9)[::-1].cumsum()[::-1]
    for step in range(100):
        sim.step()
        if step > 0:
            assert np.sort(sim.contacts.impulse[:, 0] / 1e-3)[::-1] == pytest.approx(expected, rel=1e-7), step


def test_anticipation_bounds_the_overlaps():
    # A coarse tolerance: the residual is relative to all impulses and would leave deep overlaps in the compaction.
    sim = lattice(3, 480, tolerance=1e-2, penetration="anticipate")
    deepest = 0.0
    for _ in range(300):
        deepest = max(deepest, sim.step().report.relative_penetration)
    assert sim.failures == 0 and 0 < deepest < 0.01


def test_rows_without_a_place_have_no_slab():
    """A cell that moves has three rows after those of the bodies, and no places: what lies behind these is not read."""
    behind = np.array([[0.5, 0, 0], [1.5, 0, 0], [2.5, 0, 0], [np.nan, 0, 0], [7.5, 0, 0]])
    place, home = behind[:2], np.full(5, -1, dtype=np.int32)
    kind = np.array([FREE, FIXED])  # it follows the others
    order.settle(place, kind, 0, 1.0, 0.0, 4, home, ALONE._meetings[0])
    assert home.tolist() == [0, 4, -1, -1, -1]
