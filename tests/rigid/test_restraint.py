"""What a step leaves creates no energy: at any tolerance, in any number of sweeps, for all kinds of contacts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import ranks_program

import contactdynamics as cd
from contactdynamics.rigid import contact_set, gains, motion, restraint
from contactdynamics.rigid.entries import table
from contactdynamics.rigid.equations import diagonal, diagonal_measure, diagonal_rows, held
from contactdynamics.rigid.equations.contract import ALL, GROUPS, Kind, Mobility
from contactdynamics.rigid.ranks import domains
from contactdynamics.rigid.ranks.domains import first_group
from contactdynamics.rigid.ranks.team import RankTeam
from contactdynamics.rigid.step_solver import StepSolver
from contactdynamics.rigid.threads import ALONE, Team

H, GRAVITY, ONE = 2e-3, 9.81, ALONE._meetings[0]
PLANE = Mobility(np.zeros((0, 3, 3)), 2.0, 2)


def base(dimension: int, **law) -> cd.Scene:
    """A scene with a floor, without restitution."""
    scene = cd.Scene(gravity=(0, -GRAVITY) if dimension == 2 else (0, 0, -GRAVITY))
    scene.material("m", density=1000)
    scene.contact("m", "m", **({"friction": 0.4} | law))
    floor = cd.HalfPlane((0, 1)) if dimension == 2 else cd.Plane((0, 0, 1))
    scene.add(floor, material="m", fixed=True)
    return scene


def spheres(rng, **law):
    """A loose block of spheres that falls and is squeezed."""
    scene = base(3, **law)
    for x, y, z in np.ndindex(3, 3, 4):
        place = 0.021 * np.array([x, y, z + 0.5]) + rng.uniform(-3e-4, 3e-4, 3)
        scene.add(cd.Sphere(0.01), material="m", position=place, velocity=rng.normal((0, 0, -1), 0.3))
    return scene


def disks(rng, **law):
    """A pyramid of disks of many sizes."""
    scene = base(2, **law)
    for layer in range(5):
        for k in range(6 - layer):
            place = (0.021 * (k + layer / 2) + rng.uniform(-2e-4, 2e-4), 0.011 + 0.0185 * layer)
            scene.add(cd.Disk(rng.uniform(0.009, 0.01)), material="m", position=place, velocity=(rng.normal(), -1.0))
    return scene


def clusters(rng, **law):
    """Pairs of glued disks, with rolling friction: full equations and moments."""
    scene = base(2, **({"rolling": 1e-3} | law))
    for k in range(8):
        shape = cd.Cluster([0.01, 0.01], [(-0.008, 0), (0.008, 0)])
        scene.add(shape, material="m", position=(0.01 * (k % 2), 0.02 + 0.025 * k), rotation=rng.uniform(0, 3),
                  velocity=(rng.normal(), -1.0))  # fmt: skip
    return scene


def polygons(rng, **law):
    """Blocks and disks thrown together: planar and diagonal equations."""
    scene = base(2, **law)
    for k in range(8):
        shape = cd.Rectangle(0.03, 0.02) if k % 3 else cd.Disk(0.01)
        scene.add(shape, material="m", position=(0.005 * rng.normal(), 0.02 + 0.04 * k), velocity=(rng.normal(), -2.0))
    return scene


def boxes(rng, **law):
    """Boxes thrown together, with rolling friction: spatial equations and moments."""
    scene = base(3, **({"rolling": 1e-3} | law))
    for k in range(6):
        place = (0.005 * rng.normal(), 0.005 * rng.normal(), 0.02 + 0.035 * k)
        scene.add(cd.Box((0.04, 0.03, 0.02)), material="m", position=place, velocity=(*rng.normal(size=2), -2.0))
    return scene


SCENES = {"spheres": spheres, "disks": disks, "clusters": clusters, "polygons": polygons, "boxes": boxes}


@pytest.mark.parametrize("make", SCENES.values(), ids=SCENES)
@pytest.mark.parametrize("solver", ["accelerated", "nlgs"])
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")  # deep overlaps are wanted here
def test_contacts_never_create_energy(make, solver):
    """Kinetic energy after the contacts is at most that before them, whatever is left (law: P . (U - r) <= 0)."""
    for penetration in ("moreau", "anticipate"):
        for tolerance, most in ((1e-1, 1), (1e-1, 1000), (1e-3, 3), (1e-3, 1000), (1e-8, 1000)):
            sim = cd.Simulation(
                make(np.random.default_rng(1)), time_step=H, tolerance=tolerance, max_iterations=most, solver=solver,
                penetration=penetration, on_failure="ignore", check=False,
            )  # fmt: skip
            for _ in range(60):
                sim.step()
                b = sim.bodies
                state = (b.kind, b.mass, b.inertia, b.orientation, b.held)
                after, free = (motion.energies(*[rows] * 3, *state)[0] for rows in (sim.rows, sim._free))
                assert after <= free * (1 + 1e-12)
            assert sim.energy.created == 0.0
            assert sim.energy.closure <= 1e-9 * max(sim.energy.kinetic, abs(sim.energy.force_work), 1e-9)


def powers(sim) -> tuple[float, float, float]:
    """Sums over the contacts of P . (U + U_free) / 2, P . (r + U_free) / 2 and |P| |U_free|, written out.

    The first is what the contacts add to the kinetic energy of the free motion.
    """
    added = bound = size = 0.0
    for equations in sim.contact_set.equations:
        x, speeds = equations.explicit(sim.rows, sim.model.dimension), []
        for rows in (sim.rows, sim._free):
            spin = rows[:, 3:6] / rows[:, 7:]
            u = rows[x.b, :3] + np.cross(spin[x.b], x.arm_b) - rows[x.a, :3] - np.cross(spin[x.a], x.arm_a)
            speeds.append(np.einsum("kij,kj->ki", x.frame, u))
        added += 0.5 * (x.impulse * sum(speeds)).sum()
        bound += 0.5 * (x.impulse * (x.target + speeds[1])).sum()
        size += np.abs(x.impulse * speeds[1]).sum()
    return added, bound, size


@pytest.mark.parametrize("make", SCENES.values(), ids=SCENES)
@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.EnergyWarning")
def test_restitution_gives_what_its_targets_give(make, friction):
    """T <= T_free + sum P . (r + U_free) / 2 at any tolerance, as if it were exact; without friction none is made."""
    law = {"friction": friction, "restitution": 0.7, "rolling": 0.0}
    for penetration in ("moreau", "anticipate"):
        for solver, tolerance, most in (("nlgs", 1e-1, 1), ("accelerated", 1e-1, 3), ("auto", 1e-1, 1000),
                                        ("nlgs", 1e-3, 1000), ("auto", 1e-8, 1000)):  # fmt: skip
            sim = cd.Simulation(
                make(np.random.default_rng(1), **law), time_step=H, tolerance=tolerance, max_iterations=most,
                solver=solver, penetration=penetration, on_failure="ignore", check=False,
            )  # fmt: skip
            for _ in range(40):
                sim.step()
                b = sim.bodies
                state = (b.kind, b.mass, b.inertia, b.orientation, b.held)
                after, free = (motion.energies(*[rows] * 3, *state)[0] for rows in (sim.rows, sim._free))
                added, bound, size = powers(sim)
                rounding = 1e-12 * (free + size)
                assert added <= bound + rounding
                if make is not boxes:  # their inertia has turned since
                    assert after - free == pytest.approx(added, abs=1e-9 * (free + size))
            assert friction > 0.0 or sim.energy.created == 0.0


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")
def test_impulses_and_velocities_stay_together():
    """Impulses that were shrunk are those that the velocities have: momentum balances to rounding."""
    sim = cd.Simulation(
        spheres(np.random.default_rng(2)),
        time_step=H,
        max_iterations=1,
        on_failure="ignore",
        check=False,
        solver="nlgs",
    )
    for _ in range(40):
        sim.step()
        contacts = sim.contacts
        given = np.einsum("ki,kij->kj", contacts.impulse, contacts.frame)
        change = ((sim.rows - sim._free)[:, :3] * sim.bodies.mass[:, None])[sim.bodies.kind == 0]
        for number in range(1, 37):
            mine = given[contacts.bodies[:, 1] == number].sum(axis=0) - given[contacts.bodies[:, 0] == number].sum(
                axis=0
            )
            assert np.allclose(mine, change[number - 1], atol=1e-12)


def test_groups_are_those_that_hang_together():
    """Against a search through the graph of contacts between free bodies; fixed bodies join nothing."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, m = 30, rng.integers(1, 40)
        a, b = (rng.integers(0, n, m).astype(np.uint32) for _ in range(2))
        rows = np.zeros((n, 8))
        rows[:, 6] = rng.uniform(size=n) > 0.2
        group = np.where(rows[:, 6] > 0, np.arange(n), -1).astype(np.int32)
        gains.join(a, b, np.arange(m, dtype=np.uint32), group)
        count = gains.label(group)
        reached = np.eye(n, dtype=bool)
        for i, j in zip(a, b, strict=True):
            if rows[i, 6] and rows[j, 6]:
                reached[i, j] = reached[j, i] = True
        for _ in range(n):
            reached = reached @ reached
        free = rows[:, 6] > 0
        assert np.array_equal(reached[free][:, free], group[free][:, None] == group[free][None, :])
        assert (group[~free] == -1).all() and count == len(set(group[free].tolist())) == group.max() + 1


def heaps(rng, **law):
    """Small heaps of disks far from each other, on which a driven floor pushes: many groups."""
    scene = cd.Scene(gravity=(0, -GRAVITY))
    scene.material("m", density=1000)
    scene.contact("m", "m", **({"friction": 0.4} | law))
    scene.add(cd.HalfPlane((0, 1)), material="m", motion=cd.Drive(velocity=(0.3, 0.1)))
    for heap in range(12):
        for k in range(4 + heap):
            place = (0.3 * heap + 0.021 * (k % 5), 0.011 + 0.02 * (k // 5) + rng.uniform(0, 1e-3))
            scene.add(cd.Disk(rng.uniform(0.009, 0.01)), material="m", position=place, velocity=rng.normal(size=2))
    return scene


def diagonal_shrink(contacts, group, by):
    """Multiply the impulses by the number of their group."""
    at = np.where(group[contacts.a] >= 0, group[contacts.a], group[contacts.b])
    contacts.row[:, diagonal_rows.PX : diagonal_rows.PZ + 1] *= by[at][:, None]


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.EnergyWarning")
@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_what_is_restrained_is_found_and_measured_alone(penetration, monkeypatch):
    """Groups that may gain are found from measured powers, the residual is corrected by theirs: as if all were seen."""
    monkeypatch.setattr(contact_set, "SMALL", 0)
    tally, suspects, corrected, gained, rng = restraint.tally, [], [], 0, np.random.default_rng(6)
    for full in (False, True):
        sim = cd.Simulation(
            heaps(np.random.default_rng(5), restitution=0.2), time_step=H, tolerance=1e-2, max_iterations=4,
            penetration=penetration, on_failure="ignore", check=False,
        )  # fmt: skip
        if full:
            monkeypatch.setattr(restraint, "tally", lambda *arguments: False)
        else:
            monkeypatch.setattr(restraint, "tally", lambda *a: corrected.append(tally(*a)) or corrected[-1])
        found, room = [], gains.room(sim.rows, 1)
        for _ in range(60):
            sim.step()
            kinds = tuple(equations.kind for equations in sim.contact_set.equations)
            group, factor, _ = gains.gains(sim.rows, sim._free, table(kinds), False, room, ONE)
            by = rng.choice([0.9, 1.0, 1.1], len(factor))  # some have too much
            contacts = kinds[0].contacts._replace(row=kinds[0].contacts.row.copy())
            diagonal_shrink(contacts, group, by)
            rows = np.where(group[:, None] < 0, sim.rows, sim._free + by[group][:, None] * (sim.rows - sim._free))
            rows[:, 6:] = sim.rows[:, 6:]
            twins = (kinds[0]._replace(contacts=contacts),)
            every = np.arange(len(contacts.a), dtype=np.uint32)
            diagonal_measure.measure_contacts(rows, PLANE, contacts, every, np.empty((len(every), 2)))  # powers
            group, factor, _ = gains.gains(rows, sim._free, table(twins), False, room, ONE)
            sums = np.zeros((len(factor), 3))
            diagonal.add_powers(sim._free, rows, contacts, every, group, sums)  # of all groups
            assert np.array_equal(gains.factors(sums)[0], factor) and gains.factors(sums)[1] == factor.min()
            suspects.append(len(set(room.seen.tolist()) - {-1}) / len(factor))
            gained += (factor < 1).sum()
            found.append((sim.report.residual, sim.report.left, sim.report.iterations, sim.report.worst))
        if not full:
            last, first = sim.rows.copy(), found
    assert np.array_equal(last, sim.rows)
    assert np.allclose(np.array(first), np.array(found), rtol=1e-9, atol=0)
    assert sum(corrected) > 10 and gained > 100 and np.mean(suspects) < 0.9


def test_only_the_group_that_gains_is_restrained():
    """Powers of +1 and -1 with a size of 4: the first group keeps 3/4 of its impulses, the second all."""
    sums = np.array([[1.0, 4.0, 5.0], [-1.0, 4.0, 5.0], [1e-18, 4.0, 5.0], [1.0, 0.5, 1.0]])
    assert gains.factors(sums)[0].tolist() == [0.75, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_tower_stands(penetration, tolerance):
    """A hundred spheres on top of each other neither rise nor sink, and the ground carries their weight."""
    scene = base(3)
    for k in range(100):
        scene.add(cd.Sphere(0.01), material="m", position=(0, 0, 0.01 + 0.02 * k))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=tolerance, penetration=penetration, on_failure="raise")
    start = sim.positions.copy()
    for _ in range(300):
        sim.step()
    moved = (sim.positions - start)[1:, 2] / 0.02
    assert moved.max() < 1e-4 and moved.min() > (-1e-2 if tolerance > 1e-2 else -1e-3)
    ground = (sim.contacts.bodies == 0).any(axis=1)
    weight = sim.bodies.mass[1:].sum() * GRAVITY
    assert sim.contacts.impulse[ground, 0].sum() / 1e-3 == pytest.approx(weight, rel=1e-3)
    assert sim.energy.created == 0.0


def test_a_contact_opened_by_an_error_stays_active():
    """A sphere that pushed and is lifted by less than 1e-4 of its radius may close the gap again, and no more."""
    scene = base(3)
    ball = scene.add(cd.Sphere(0.01), material="m", position=(0, 0, 0.01))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    sim.bodies.position[ball, 2] += 5e-7
    sim.step()
    assert len(sim.contacts.gap) == 1
    sim.step()
    assert abs(sim.positions[ball, 2] - 0.01) < 1e-9


@pytest.mark.parametrize("solver", ["accelerated", "nlgs"])
def test_a_ball_between_plates_that_close_is_not_called_solved(solver):
    # No velocity satisfies both contacts: impulses grow with the sweeps, and a residual relative to them falls.
    scene = cd.Scene(gravity=(0.0, 0.0))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.0)
    scene.add(cd.Disk(0.5), material="m", position=(0.0, 0.5))
    scene.add(cd.HalfPlane((0.0, 1.0)), material="m", motion=cd.Drive(velocity=(0.0, 1.0)))
    scene.add(cd.HalfPlane((0.0, -1.0)), material="m", position=(0.0, 1.0), fixed=True)
    sim = cd.Simulation(scene, time_step=1e-3, solver=solver, max_iterations=5000, on_failure="ignore", check=False)
    sim.step()
    assert sim.report.residual <= 1e-3 and not sim.report.converged and sim.report.left > 1.0


class Player(RankTeam):
    """One of several processes that are played by threads: what they tell each other lies on a table.

    Its contacts act on its ``own`` bodies, some of which ``others`` have too.
    """

    divided, rank = True, 0

    def __init__(self, rank, played, own, others):
        Team.__init__(self, 1)
        self.rank, (self.table, self.barrier), self._room = rank, played, None
        self._names = [(True, np.zeros(ALL + 1))]  # contacts of others before those of each group
        shared = domains.Border(own[np.isin(own, np.concatenate(others))], [], np.zeros(0))
        pushed = own[~np.isin(own, np.concatenate([own[:0], *others[:rank]]))]  # the first of them answers for a body
        self._own = domains.Domains(own, (shared, shared._replace(bodies=own[:0])), pushed)

    alike = property(lambda self: self)

    def tell(self, *arrays):
        self.table[self.rank] = arrays
        self.barrier.wait(60)
        told = [np.concatenate(some) for some in zip(*self.table, strict=True)]
        self.barrier.wait(60)
        return told

    def any(self, flag):
        return bool(self.tell(np.array([flag]))[0].any())

    def add_up(self, array):
        array[:] = self.tell(array[None])[0].sum(axis=0)


def parted(kind, rank, ranks):
    """The contacts of one kind that a rank sweeps, as a kind of its own."""
    cuts, begin, end = kind.plan.cuts, first_group(rank, ranks), first_group(rank + 1, ranks)
    mine = [begin <= group % GROUPS < end if group < 2 * GROUPS else rank == ranks - 1 for group in range(ALL)]
    which = np.concatenate([np.arange(*cuts[g : g + 2]) * mine[g] if mine[g] else [] for g in range(ALL)]).astype(int)
    plan = held.plan_arrays(len(which), 3)
    plan.order[:], plan.cuts[1:] = np.arange(len(which)), np.cumsum(np.diff(cuts) * mine)
    return Kind(type(kind.contacts)(*(array[which].copy() for array in kind.contacts)), plan), which


def restrained_by(team, kinds, rows, free, sums):
    """The sums of the residual corrected by what is restrained; factors of the bodies, velocities and impulses then."""
    tab, room, rows = table(kinds), gains.room(rows, 1, team.threads), rows.copy()
    pushes, sums = np.zeros(2 * GROUPS), sums.copy()
    if team.divided:
        group, factor, least = team.gains(rows, free, tab, room)
    else:
        group, factor, least = team.share(gains.gains, rows, free, tab, False, room)
    contacts, plan = kinds[0]
    some = [restraint.restrained(plan.few, plan.cuts, room.ends[0], contacts.a, contacts.b, group, factor)]
    bodies = team.slowed(group, factor) if team.divided else restraint.slowed(rows, group, factor)
    alone = restraint.Restrained(rows, free, PLANE, tab, some, bodies, team, restraint.measure_some)
    well = [restraint.tally(alone, sums, pushes, -1.0)]
    held.shrink(some[0][0], contacts.a, contacts.b, group, factor, contacts.row[:, diagonal_rows.PX :])
    restraint.slow(rows, free, bodies, group, factor)
    well.append(restraint.tally(alone, sums, pushes, 1.0))
    found = sums[:, :, [0, 1, 4, 5, 6, 7]].tobytes(), sums[:, :, 3].tobytes()
    solver = StepSolver(1)
    solver._scratch = SimpleNamespace(movable=np.flatnonzero(rows[:, 6]))
    touched = solver._touched(SimpleNamespace(resting=[], count=0, rows=rows, kinds=kinds, team=team))
    factors = np.where(group >= 0, np.append(factor, 1.0)[group], 1.0)
    return (least < 1.0, pushes.tobytes(), well, touched, *found), factors, rows, contacts.row.copy()


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")
@pytest.mark.filterwarnings("ignore::contactdynamics.errors.EnergyWarning")
@pytest.mark.parametrize("make", [heaps, lambda rng: ranks_program.scene()], ids=["heaps", "box"])
def test_what_has_only_its_own_contacts_finds_the_same(make, monkeypatch):
    """Two and three processes with the contacts that they sweep, and threads with all: the same bits."""
    monkeypatch.setattr(contact_set, "SMALL", 0)
    sim = cd.Simulation(make(np.random.default_rng(5)), time_step=H, tolerance=1e-2, max_iterations=3,
                        on_failure="ignore", check=False)  # fmt: skip
    least = []
    for step in range(31):
        sim.step()
        if step % 10 or not sim.contact_set.count:
            continue
        whole, free = sim.contact_set.equations[0].kind, sim._free
        rows, row = sim.rows.copy(), whole.contacts.row.copy()
        row[:, diagonal_rows.PX : diagonal_rows.PZ + 1] *= 1.2  # some have too much
        moves = rows[:, 6] > 0.0
        rows[moves, :6] = free[moves, :6] + 1.2 * (rows[moves, :6] - free[moves, :6])
        sums = np.zeros((1, ALL, 8))
        whole = whole._replace(contacts=whole.contacts._replace(row=row))
        every = np.arange(len(row), dtype=np.uint32)
        for g, (begin, end) in enumerate(pairwise(whole.plan.cuts)):
            some = every[begin:end]
            sums[0, g] = diagonal_measure.measure_contacts(rows, PLANE, whole.contacts, some, whole.plan.shares)
        parts = {ranks: [parted(whole, k, ranks) for k in range(ranks)] for ranks in (2, 3)}
        bits, factors, after, impulses = restrained_by(ALONE, (parted(whole, 0, 1)[0],), rows, free, sums)
        threads = restrained_by(Team(3), (parted(whole, 0, 1)[0],), rows, free, sums)
        assert threads[0] == bits and np.array_equal(threads[1], factors) and np.array_equal(threads[2], after)
        least.append(factors.min())
        for ranks, kinds in parts.items():
            played = [None] * ranks, threading.Barrier(ranks)
            acted = [np.unique(np.concatenate([kind.contacts.a, kind.contacts.b])) for (kind, _) in kinds]
            acted = [some[rows[some, 6] > 0.0].astype(np.uint32) for some in acted]
            others = [[acted[n] if n != k else acted[k][:0] for n in range(ranks)] for k in range(ranks)]
            given = [(Player(k, played, acted[k], others[k]), (kinds[k][0],), rows, free, sums) for k in range(ranks)]
            with ThreadPoolExecutor(ranks) as pool:
                found = list(pool.map(lambda one: restrained_by(*one), given))
            together = np.empty_like(impulses)
            for (_, which), own, (same, by, then, pushed) in zip(kinds, acted, found, strict=True):
                assert same == bits
                assert np.array_equal(by[own], factors[own]) and np.array_equal(then[own], after[own])
                together[which] = pushed
            assert np.array_equal(together, impulses)
    assert len(least) > 2 and min(least) < 1.0
