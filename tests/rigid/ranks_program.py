"""What `test_ranks` runs under mpiexec: `python ranks_program.py JOB ...`, with the processes there are.

The same functions run in one process for comparison.
"""

import fcntl
import os
import sys
from pathlib import Path

import numpy as np

import contactdynamics as cd
from contactdynamics import _jit
from contactdynamics.bench import heaps
from contactdynamics.rigid import contact_set, simulation
from contactdynamics.rigid import ranks as processes
from contactdynamics.rigid.ranks import team, world
from contactdynamics.rigid.search.contract import DIAGONAL, FULL
from contactdynamics.rigid.search.touching import Touching

H, END = 1e-3, 0.12


def share_always():
    """Few contacts are shared too, and bodies are sorted often."""
    contact_set.SMALL, simulation.SORT_FROM, simulation.SORT_EVERY = 0, 50, 40
    processes.FEWEST = 0
    world.PATIENCE = 0.0  # cores are shared with other tests: who waits by looking takes the time of those it waits for


class ByTurns:
    """The lock of Numba's compiler, held by one of all processes: others find in the cache what it has compiled."""

    def __init__(self, path):
        self.file, self.depth, self.kept = path.open("a"), 0, _jit.global_compiler_lock

    def __enter__(self):
        self.kept.__enter__()
        self.depth += 1
        if self.depth == 1:
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *error):
        self.depth -= 1
        if self.depth == 0:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        return self.kept.__exit__(*error)


def pouring(sim):
    """Grains come, and some go; by the number of the step alone, so that a resumed run does the same."""
    if sim.steps in (30, 70):
        rng = np.random.default_rng(sim.steps)
        x = np.linspace(-0.9, 0.85, 30)
        y = 0.3 + 0.005 * sim.steps + 0.05 * rng.uniform(size=30)
        sim.add_many(rng.uniform(0.015, 0.025, 30), material="m", position=np.stack([x, y], axis=1))
    if sim.steps in (50, 95):
        free = sim.identities[3:]
        sim.remove(free[:: len(free) // 7])


def scene(rolling=0.0):
    """A long box of disks, tilted, one end of which is driven inwards."""
    scene = cd.Scene(gravity=(1.0, -9.81))
    scene.material("m", density=1000.0, friction=0.4, restitution=0.1, rolling=rolling)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.HalfPlane((1, 0)), material="m", position=(-1.0, 0), motion=cd.Drive(velocity=(0.1, 0.0)))
    scene.add(cd.HalfPlane((-1, 0)), material="m", position=(0.9, 0), fixed=True)
    rng = np.random.default_rng(5)
    grid = np.stack(np.meshgrid(np.arange(36), np.arange(6), indexing="ij"), -1).reshape(-1, 2)
    grid = np.stack([grid[:, 0] + 0.5 * (grid[:, 1] % 2), 0.866 * grid[:, 1]], axis=1)
    place = (-0.96, 0.026) + 0.0515 * grid + rng.uniform(-5e-4, 5e-4, grid.shape)
    scene.add_many(rng.uniform(0.02, 0.0255, len(place)), material="m", position=rng.permutation(place))
    return scene


def poured(path, ranks=None, until=END, goes_on=False, rolling=0.0, **options):
    """A simulation with all that may happen, to the time ``until``, recorded; or the file there ``goes_on``."""
    sim = cd.Simulation(scene(rolling), time_step=H, ranks=ranks, recorders=cd.HDF5(path, every=20), **options)
    sim.before_step = pouring
    if goes_on:
        sim.restore(path)
    return sim.run(until=until, progress=False)


def bed(name, ranks=None, **options):
    """The digits of a scene of `test_kinds` after two steps, with the memory of its contacts."""
    from test_kinds import bed as made

    sim = made(name, ranks=ranks, **options)
    for _ in range(2):
        sim.step()
    divided = sim.contact_set.divided
    memory = {key: array.tobytes().hex() for key, array in sim.contact_set.memory().items()}
    return repr(
        (divided, sim.rows.tobytes().hex(), sim.bodies.position.tobytes().hex(), memory, sim.energy, sim.report.message)
    )


def broken(path, ranks):
    """One process raises in the middle of a run."""

    def fails(sim):
        if sim.steps == 40 and ranks.Get_rank() == 1:
            raise MemoryError("no room for rank one")

    sim = cd.Simulation(scene(), time_step=H, ranks=ranks, solver="nlgs", recorders=cd.HDF5(path, every=10))
    sim.before_step = [fails]
    sim.run(until=END, progress=False)


def read(ranks, leaves=False):
    """Contacts are read by all processes, after a run by one, and by one alone while another steps, or ``leaves``."""
    options = {"time_step": H, "solver": "nlgs", "tolerance": 1e-2}
    sim = cd.Simulation(scene(), ranks=ranks, recorders=[Reader()], **options)
    if not leaves:
        read_by_all(sim, cd.Simulation(scene(), **options))
        if ranks.Get_rank() == 0:
            assert sim.recorders[0].seen == [len(sim.rows)] * 100
    else:
        for _ in range(60):
            sim.step()
    sim.recorders = []
    sim.step()
    own = sim.contact_set.searches[0].found
    assert sim.contact_set.divided and 0 < len(own.a) < sim.contact_set.count
    if ranks.Get_rank() == 0:
        len(sim.contacts.gap)
    if not leaves:
        sim.step()


def read_by_all(sim, alone):
    """The contacts of a simulation that all processes run are those of one that each runs ``alone``."""
    seen = []
    for one in (alone, sim):
        for _ in range(80):
            one.step()
        seen.append(one.contacts)
        assert one.contact_set.divided is False
        one.step()
        seen.append((one.report.worst, one.contact_set.deepest(one.model)))
        one.run(until=0.1, progress=False)
    assert len(seen[0].gap) > 50 and all(np.array_equal(x, y) for x, y in zip(seen[0], seen[2], strict=True))
    assert seen[1] == seen[3]
    if sim.recorders[0].seen:
        assert np.array_equal(alone.contacts.impulse, sim.contacts.impulse)


def streams(ranks=None, levers=False, **options):
    """Layers of disks on a floor that go past each other, so that bodies cross from process to process.

    With ``levers``, some are clusters of two, and others resist rolling.
    """
    scene = cd.Scene(gravity=(0.0, -9.81))
    scene.material("m", density=1000.0, friction=0.3)
    scene.material("r", density=1000.0, friction=0.3)
    scene.contact("r", "r", friction=0.3, rolling=0.002)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.HalfPlane((-1, 0)), material="m", position=(4.5, 0), motion=cd.Drive(velocity=(-0.2, 0.0)))
    scene.add_many(0.02, material="m", position=[(0.2 + 0.11 * k, -0.0195) for k in range(30)], fixed=True)
    rng, x = np.random.default_rng(8), 0.041 * np.arange(100)
    for layer, speed in enumerate((2.0, -2.0, 3.0)):
        place = np.stack([x, np.full(100, 0.0208 + 0.0402 * layer)], axis=1)
        radius = rng.uniform(0.018, 0.02, 100)
        few = 50 if levers and layer == 1 else 100
        scene.add_many(radius[:few], material="mr"[levers and layer == 2], position=place[:few], velocity=(speed, 0.0))
        two = cd.Cluster([0.011, 0.011], [(-0.009, 0.0), (0.009, 0.0)])
        for at in place[few:]:
            scene.add(two, material="r", position=at, velocity=(speed, 0.0), rotation=rng.uniform(0.0, 3.0))
    return cd.Simulation(scene, time_step=H, ranks=ranks, **{"solver": "nlgs", "tolerance": 1e-2} | options)


def digest(sim):
    """The digits of the bodies, read by all processes."""
    return [array.tobytes() for array in (sim.positions, sim.rotations, sim.velocities, sim.spins)]


def apart(ranks, alone_asks=False, **options):
    """Between steps a process knows some bodies alone; all of them where all ask, and at last where one alone asks."""
    alone, sim, guests, owners = streams(**options), streams(ranks, **options), 0, set()
    for step in range(95):
        alone.step(), sim.step()
        mine = sim.contact_set.apart
        if mine is not None:
            guests += len(mine._guests)
            unknown = np.isnan(sim.roster.rows[:, 0])
            known = ~unknown
            assert np.array_equal(known[mine.known], np.ones(len(mine.known), dtype=bool))
            assert unknown.any() and not unknown[mine.first : mine.after].any()
            assert np.isnan(sim.roster.model.bodies.position[unknown]).all()
            assert np.array_equal(sim.roster.rows[known], alone.rows[known])
            owners.add(tuple(sim.roster.model.bodies.identity[mine.first : mine.after].tolist()))
        assert (sim.ledger.kinetic, sim.report.message) == (alone.ledger.kinetic, alone.report.message)
        if step % 9 == 0:
            assert sim.energy.potential == alone.energy.potential
            assert sim.contact_set.apart is mine  # energies are added up where bodies are
        if step % 17 == 16:
            assert mine is not None
            assert digest(sim) == digest(alone) and sim.body(40).position.tolist() == alone.body(40).position.tolist()
            assert sim.contact_set.apart is None
    assert mine is not None and len(owners) > 1
    assert sum(ranks.allgather(guests)) > 50  # bodies that are swept by another process than has them
    for one in (alone, sim):
        one.force(50, force=(0.0, 3.0))
        one.step(), one.step()
        one.spring(50, 52, stiffness=5.0)  # from now on all bodies are known at the begin of a step
        one.step(), one.step()
        one.remove(np.arange(60, 70)), one.add(cd.Disk(0.02), material="m", position=(1.0, 0.5))
        one.step()
    assert digest(sim) == digest(alone) and repr(sim.energy) == repr(alone.energy)
    for all_ask in (True, False)[: 1 + alone_asks]:
        sim.step()
        if ranks.Get_rank() == 0 or all_ask:
            sim.positions.sum()
        sim.step()


def same_steps(alone, sim, steps, every=10, act=None):
    """Both make the same ``steps``, with the same bits; how many of them by processes with contacts of their own.

    ``act`` is called with both and the number of the step before each.
    """
    divided = 0
    for step in range(steps):
        if act is not None:
            act(step, alone, sim)
        alone.step(), sim.step()
        assert (sim.ledger.kinetic, sim.report) == (alone.ledger.kinetic, alone.report), step
        divided += sim.contact_set.divided
        if step % every == every - 1:
            assert digest(sim) == digest(alone)
            assert all(map(np.array_equal, sim.contacts, alone.contacts))
            assert sim.contact_set.deepest(sim.model) == alone.contact_set.deepest(alone.model)
    assert repr(sim.energy) == repr(alone.energy)
    return divided


HARDLY = {"tolerance": 0.3, "max_iterations": 2, "on_failure": "ignore"}


def alike(ranks):
    """Reports, energies, bodies and contacts of all sorts of steps, some of which are hardly solved, with levers."""
    for options in (
        {"penetration": "anticipate"}, {"solver": "auto", "tolerance": 1e-3, "threads": 2},
        {"solver": "accelerated", "tolerance": 1e-4}, {"solver": "accelerated", **HARDLY},
    ):  # fmt: skip
        alone, sim = (streams(given, levers=True, **options) for given in (None, ranks))
        assert same_steps(alone, sim, 130) > 100
        assert min(sim.contact_set._counts[kind] for kind in (DIAGONAL, FULL)) > 20


def spheres(ranks):
    """Spheres that resist rolling on others that are fixed, whom not every process knows."""
    options = {"tolerance": 1e-2, "max_iterations": 20}
    alone, sim = (heaps.lattice(600, 3, 0.01, ranks=given, **options) for given in (None, ranks))
    rng = np.random.default_rng(4)
    for _ in range(4):
        kick = rng.uniform(-1.0, 1.0, (len(sim.roster.rows), 3)) * (sim.roster.rows[:, 6:7] > 0.0)
        for one in (alone, sim):
            one.roster.rows[:, :3] += kick
            one.step()
        assert sim.contact_set.divided and sim.report == alone.report
    assert digest(sim) == digest(alone) and repr(sim.energy) == repr(alone.energy)


def coarse(ranks):
    """Steps that are hardly solved: what contacts lose is given back, and groups of bodies are held back.

    Once with a function that reads and changes bodies before each step.
    """
    coarse = {"solver": "accelerated", "tolerance": 0.3, "max_iterations": 2}
    for hooks, options in (([], coarse), ([pushes], {"penetration": "anticipate", "threads": 2})):
        found = []
        for given in (None, ranks):
            sim = cd.Simulation(scene(), time_step=H, ranks=given, before_step=hooks, on_failure="ignore", **options)
            for _ in range(70):
                sim.step()
            found.append((digest(sim), sim.energy._replace(normal_work=0, tangential_work=0, rolling_work=0)))
            assert hooks or sim.ledger.recovery_work != 0.0
        assert found[0] == found[1]


def pushes(sim):
    """Lift the highest body now and then."""
    if sim.steps % 9 == 5:
        sim.rows[int(np.argmax(sim.bodies.position[:, 1])), 1] += 0.4


def gone(step, *both):
    """Two bodies are removed from both simulations before the sixth step."""
    for one in both if step == 5 else ():
        one.remove(one.identities[4:6])


TOGETHER = "glued polygons", {"penetration": "anticipate"}  # in each step all contacts are solved together
ANGULAR = (
    ("polygons", {}), TOGETHER, ("glued polygons", {"solver": "accelerated", "max_iterations": 50}),
    ("disks beside polygons", {"penetration": "anticipate"}), ("clusters beside polygons", HARDLY),
    ("polyhedra", {"penetration": "anticipate"}), ("polyhedra", {"solver": "accelerated", "threads": 2, **HARDLY}),
    ("spheres beside polyhedra", {}), ("glued polyhedra", {}),
    ("rolling disks beside polygons", {"solver": "nlgs", "max_iterations": 4}),
)  # fmt: skip


def angular(ranks):
    """Processes have their own polygons and polyhedra, what these may touch, and the contacts that they sweep."""
    from test_kinds import bed as made

    for name, options in ANGULAR:
        alone, sim = (made(name, ranks=given, **options) for given in (None, ranks))
        divided = same_steps(alone, sim, 50, 5, gone)
        assert divided >= 48 or (name, options) == TOGETHER, (name, divided)
        sim.step()
        if sim.contact_set.divided:
            mine = sim.contact_set.apart
            assert np.isnan(sim.roster.rows[:, 0]).any() and not np.isnan(sim.roster.rows[mine.known]).any()
            assert sum(ranks.allgather(len(sim.contact_set.searches[-1].found.a))) > 40


def grain(ranks, d=3, count=60, lid=False, **options):
    """Blocks and balls with grain, some on rails and some driven on these, pushed along a floor in any order."""
    scene = cd.Scene(gravity=(0.0,) * (d - 1) + (-9.81,))
    scene.material("wood", density=700.0)
    if d == 3:
        scene.contact("wood", "wood", anisotropic=(0.1, 0.6), axis=(0, 1, 0))
    else:
        scene.contact("wood", "wood", friction=0.4)
    scene.add((cd.Plane if d == 3 else cd.HalfPlane)((0,) * (d - 1) + (1,)), material="wood", fixed=True)
    rng = np.random.default_rng(6)
    for number, x in enumerate(rng.permutation(count).tolist()):
        block = cd.Box(0.1) if d == 3 else cd.Rectangle(0.1, 0.1)
        shape = block if x % 3 else cd.Sphere(0.05) if d == 3 else cd.Disk(0.05)
        free = {"free": "xy" if d == 2 else "xz"} if x % 5 == 1 else {}
        if x % 17 == 4:
            free = {"free": "x", "motion": (0.0,) * (d - 1) + (0.05,)}
        place = (0.0999 * x,) + (0.0,) * (d - 2) + (0.05,)
        body = scene.add(shape, material="wood", position=place, velocity=(0.6 - 0.02 * x,) + (0.0,) * (d - 1), **free)
        if number % 4 == 0:
            scene.force(body, lambda t: (5.0 * np.sin(300.0 * t),) + (0.0,) * (d - 2) + (2.0,))
    if lid:
        down = (0.0,) * (d - 1)
        scene.add((cd.Plane if d == 3 else cd.HalfPlane)((*down, -1.0)), material="wood", position=(*down, 0.1),
                  free="xyz"[d - 1], mass=2.0)  # fmt: skip
    kept = {"time_step": H, "check": False, "max_iterations": 300, "on_failure": "ignore"}
    return cd.Simulation(scene, ranks=ranks, **kept | options)


def grains(ranks, steps=60):
    """Friction with an axis, bodies on rails, forces: bodies are known by some alone with these as well."""
    cases = (3, {"threads": 2}), (2, {"penetration": "anticipate"}), (3, {"penetration": "anticipate"})
    few = {"solver": "nlgs", "max_iterations": 3, "count": 20}
    for d, options in cases if steps > 10 else ((d, options | few) for d, options in cases[1:]):
        alone, sim = (grain(given, d, **options) for given in (None, ranks))
        assert same_steps(alone, sim, steps, 9) >= steps - 9
        sim.step(), alone.step()
        assert np.isnan(sim.roster.rows[:, 0]).any() and sim.energy.force_work == alone.energy.force_work != 0.0
        assert sim.energy.potential == alone.energy.potential and sim.contact_set.apart is not None


def lidded(ranks):
    """A lid touches bodies everywhere: each process does all the work, with the same bits."""
    alone, sim = (grain(given, 2, 20, True, solver="nlgs", max_iterations=3) for given in (None, ranks))
    assert same_steps(alone, sim, 3, 2) == 0 and (sim.contacts.bodies == sim.identities[-1]).any()


def torn(ranks):
    """The search for contacts raises on one process."""
    from test_kinds import bed as made

    sim, calls, search = made("polyhedra", ranks=ranks, solver="nlgs", max_iterations=4), [], Touching._searched

    def fails(*given):
        calls.append(given[-1])
        if len(calls) == 4 and ranks.Get_rank() == 1:
            raise MemoryError("no room for rank one")
        return search(*given)

    Touching._searched = fails
    for _ in range(8):
        sim.step()


class Reader:
    """A recorder that reads contacts, on the process that records."""

    def __init__(self):
        self.seen = []

    def begin(self, sim):
        """Nothing."""

    def __call__(self, sim):
        assert len(sim.contacts.gap) == sim.contact_set.count
        self.seen.append(len(sim.rows))

    end = begin


def too_many(ranks):
    """More threads than groups of slabs."""
    try:
        cd.Simulation(scene(), time_step=H, ranks=ranks, threads=64)
    except cd.InputError as error:
        if ranks.Get_rank() == 0:
            print(error, flush=True)


def unlike(ranks):
    """The processes do not do the same."""
    rng = np.random.default_rng(ranks.Get_rank())
    sim = cd.Simulation(scene(), time_step=H, ranks=ranks, solver="nlgs")
    sim.before_step = [lambda sim: sim.force(3 + int(rng.integers(200)), force=(0.1, 0.0))]
    sim.run(until=END, progress=False)


def tell(ranks):
    """Arrays of any length, and a sum, on all processes."""
    rank, one = ranks.Get_rank(), team.RankTeam(world.known(ranks), 1)
    mine = np.full((rank + 1, 2), 10.0 + rank), np.arange(rank, dtype=np.int32), np.zeros(0)
    total = np.array([rank == 0, 2.0 * (rank == 1), 0.0])
    one.add_up(total)
    said = ranks.gather([array.tolist() for array in (*one.tell(*mine), total)])
    if rank == 0:  # the lines of two processes may be mixed
        print(said, flush=True)


def main(job, *arguments):
    """Run a job on the processes of mpiexec; errors are printed by the first one."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    share_always()
    if _jit.CACHE:
        _jit.global_compiler_lock = ByTurns(Path(_jit.CACHE, "ranks.lock"))
    try:
        if job == "pour":
            for path, until, options in eval(arguments[0]):
                poured(path, comm, until, **options)
        elif job == "kinds":
            texts = [bed(name, comm, **options) for name, options in eval(arguments[0])]
            if comm.Get_rank() == 0:
                Path(arguments[1]).write_text(repr(texts))
        elif job == "broken":
            broken(arguments[0], comm)
        elif job == "die":
            sim = cd.Simulation(scene(), time_step=H, ranks=comm, recorders=cd.HDF5(arguments[0], every=1))
            last = 60 if comm.Get_rank() == 1 else -1
            sim.before_step = [lambda sim: os.kill(os.getpid(), 9) if sim.steps == last else None]
            sim.run(until=END, progress=False)
        elif job == "short":
            tell(comm)
            too_many(comm)
            unlike(comm)
        elif job == "read":
            read(comm, *arguments)
        elif job == "apart":
            apart(comm, "alone" in arguments, levers="levers" in arguments)
        elif job == "alike":
            spheres(comm)
            alike(comm)
        elif job == "coarse":
            coarse(comm)
        elif job == "angular":
            angular(comm)
            grains(comm)
        elif job == "grains":
            grains(comm, 3)
            lidded(comm)
            torn(comm)
        elif job == "idle":
            wide = scene()
            wide.add(cd.Disk(0.6), material="m", position=(0.0, 1.5))
            team.MANY = 100
            cd.Simulation(wide, time_step=H, ranks=comm).run(until=0.1, progress=False)
    except Exception as error:
        if comm.Get_rank() == 0:
            print(f"{type(error).__name__}: {error}", flush=True)
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
