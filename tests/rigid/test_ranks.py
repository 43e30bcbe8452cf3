"""Several processes on one scene: the same bits, one file, failures in one sentence.

Programs run under mpiexec; where there is no MPI, these tests are left out and say so.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import h5py
import numpy as np
import pytest
import ranks_program

import contactdynamics as cd
from contactdynamics.bench import scaling
from contactdynamics.rigid import contact_set, simulation
from contactdynamics.rigid.equations.contract import GROUPS
from contactdynamics.rigid.ranks import domains, world

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
TIMES = {"detection", "frames", "solve", "integrate", "record", "seconds"}


def has_mpi():
    try:
        import_module("mpi4py.MPI")
    except (ImportError, RuntimeError):
        return False
    return MPIEXEC is not None


mpi = pytest.mark.skipif(not has_mpi(), reason="no MPI here: pip install contactdynamics[mpi]")


def launched(ranks, *arguments, program=None, ends=0):
    """Run the program on so many processes; what it printed."""
    program = [Path(__file__).with_name("ranks_program.py")] if program is None else program
    command = [MPIEXEC, "-n", str(ranks), sys.executable, *program, *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert (done.returncode == 0) == (ends == 0), done.stdout + done.stderr
    return done.stdout + done.stderr


def contents(path):
    """All frames, the log and the checkpoint of a result file, but the times that were measured.

    Bodies that came and went between two frames may be in its tables or not, as the disk has time.
    """
    found = {}

    def visit(name, node):
        group, _, last = name.rpartition("/")
        if isinstance(node, h5py.Dataset) and group not in ("bodies", "balls") and last not in TIMES:
            found[name] = np.asarray(node[()]).tobytes()

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


@pytest.fixture
def shared_always(monkeypatch):
    monkeypatch.setattr(contact_set, "SMALL", 0)
    monkeypatch.setattr(simulation, "SORT_FROM", 50)
    monkeypatch.setattr(simulation, "SORT_EVERY", 40)


def check_same_files(tmp_path, ranks, modes, cut, **options):
    """Runs on ``ranks`` processes, one of them cut and gone on with by one process, against one process."""
    alone = {}
    for mode in modes:  # before the others: they find its kernels compiled
        path = tmp_path / f"{mode} alone.h5"
        ranks_program.poured(path, penetration=mode, **options)
        alone[mode] = contents(path)
    jobs = [(str(tmp_path / f"{mode}.h5"), ranks_program.END, {"penetration": mode} | options) for mode in modes]
    jobs.append((str(tmp_path / "cut.h5"), cut, {"penetration": modes[0]} | options))
    launched(ranks, "pour", repr(jobs))
    for mode in modes:
        assert contents(tmp_path / f"{mode}.h5") == alone[mode]
    ranks_program.poured(tmp_path / "cut.h5", goes_on=True, penetration=modes[0], **options)
    again, whole = contents(tmp_path / "cut.h5"), alone[modes[0]]
    final = {name for name in whole if name.startswith("checkpoint/")}
    assert final and all(again[name] == whole[name] for name in final)
    assert again["frames/hash"][-8:] == whole["frames/hash"][-8:]


@mpi
def test_two_ranks_make_the_file_of_one_process_and_one_process_goes_on_with_it(tmp_path, shared_always):
    # By few sweeps: in each of them processes wait for each other, and a core may be shared with other work.
    check_same_files(tmp_path, 2, ["moreau"], 0.05, solver="nlgs", tolerance=1e-2)


@mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_usual_solver_on_any_number_of_ranks_makes_the_same_file_too(tmp_path, shared_always, ranks):
    check_same_files(tmp_path, ranks, ["moreau", "anticipate"], 0.063)


@mpi
@pytest.mark.slow
def test_disks_that_resist_rolling_make_the_same_file_too(tmp_path, shared_always):
    check_same_files(tmp_path, 2, ["moreau"], 0.05, rolling=0.002)


@mpi
@pytest.mark.slow
def test_a_run_goes_on_with_other_numbers_of_ranks(tmp_path, shared_always):
    path = tmp_path / "run.h5"
    for ranks, until in ((2, 0.04), (3, 0.08)):
        launched(ranks, "pour", repr([(str(path), until, {"goes_on": ranks > 2})]))
    ranks_program.poured(path, goes_on=True)
    ranks_program.poured(tmp_path / "alone.h5")
    one, several = (contents(p) for p in (tmp_path / "alone.h5", path))
    assert all(one[name] == several[name] for name in one if name.startswith("checkpoint/"))


@mpi
@pytest.mark.parametrize(("name", "penetration"), [
    ("clusters 2D", "moreau"), ("glued spheres", "moreau"), ("polyhedra", "anticipate"),
    ("disks beside polygons", "anticipate"), ("glued polygons", "moreau"),
    *(pytest.param(*more, marks=pytest.mark.slow) for more in (
        ("rolling disks beside polygons", "moreau"), ("spheres beside polyhedra", "anticipate"),
        ("clusters 3D", "anticipate"),
    )),
])  # fmt: skip
def test_every_kind_of_contact_has_the_same_bits(tmp_path, monkeypatch, name, penetration):
    """By interpreted kernels, which for few contacts and sweeps take less time than the compiler."""
    options = {"penetration": penetration, "solver": "nlgs", "max_iterations": 4}
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    found = []
    for ranks in (1, 2):
        launched(ranks, "kinds", repr([(name, options)]), tmp_path / "texts")
        found.append((tmp_path / "texts").read_text())
    assert found[0] == found[1].replace("(True,", "(False,")
    assert len(found[0]) > 1000 and "(True," in found[1]  # each has its own contacts


def check_it_goes_on(path):
    sim = cd.Simulation(ranks_program.scene(), time_step=ranks_program.H).restore(path)
    steps = sim.steps
    with pytest.warns(UserWarning, match="in before_step and goes on with nothing"):
        sim.step()
    assert sim.steps == steps + 1


@mpi
def test_a_rank_that_raises_stops_all_with_a_file_to_go_on_from(tmp_path, shared_always):
    said = launched(2, "broken", tmp_path / "run.h5", ends=2)
    assert "RankError: Rank 1 of 2 stopped at t = 0.04: MemoryError: no room for rank one" in said
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording.times[-1] == pytest.approx(0.04)
    check_it_goes_on(tmp_path / "run.h5")


@mpi
@pytest.mark.slow
def test_a_rank_that_is_killed_ends_all_with_a_file_to_go_on_from(tmp_path):
    launched(2, "die", tmp_path / "run.h5", ends=2)
    with cd.open(tmp_path / "run.h5") as recording:
        assert 0 <= recording.times[-1] < 0.0605
    check_it_goes_on(tmp_path / "run.h5")


@mpi
def test_contacts_are_read_by_all_ranks_or_by_none():
    """By all, by a recorder, by one after a run; one that reads alone between steps is told."""
    said = launched(2, "read", ends=2)
    assert "InputError: rank 1 makes a step while rank 0 reads contacts: the processes share the contacts" in said
    said += launched(2, "read", "leaves", ends=2)
    assert "RankError: Rank 1 of 2 has ended its program while others wait for it" in said
    assert "AssertionError" not in said


@mpi
@pytest.mark.slow
@pytest.mark.parametrize("levers", [(), ("levers",)])
def test_bodies_are_known_by_some_ranks_and_by_all_that_ask(levers):
    """Bodies cross from rank to rank, come and go; their bits are those of one process, and unknown ones are nan."""
    assert "Error" not in launched(3, "apart", *levers)


@mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_contacts_with_lever_arms_and_of_rolling_disks_are_shared_as_all_others(monkeypatch, ranks):
    monkeypatch.setenv("MALLOC_PERTURB_", "165")  # new memory is not zero by chance
    assert "Error" not in launched(ranks, "alike")


@pytest.mark.slow
@mpi
def test_what_contacts_lose_and_what_functions_change_on_two_ranks():
    assert "Error" not in launched(2, "coarse")


@mpi
def test_bodies_are_read_by_all_ranks_or_by_none():
    """After all that three ranks do in the longer tier, one rank reads alone."""
    said = launched(2, "apart", "alone", ends=2)
    assert "InputError: rank 1 makes a step while rank 0 reads bodies: the processes share the bodies" in said
    assert "AssertionError" not in said


@mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_blocks_bodies_on_rails_and_friction_with_an_axis(ranks):
    """Each has its bodies and what they may touch, with the bits of one process, in all sorts of steps."""
    assert "Error" not in launched(ranks, "angular")


@mpi
def test_ranks_share_bodies_on_rails_and_one_cannot_search(monkeypatch):
    """By interpreted kernels, a few steps of bodies on rails, with forces; then the search of one process raises."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    said = launched(2, "grains", ends=2)
    assert "RankError: Rank 1 of 2 stopped at t = 0.006: MemoryError: no room for rank one" in said
    assert "AssertionError" not in said


@pytest.fixture(scope="module")
def said_shortly():
    """What short jobs print, one after the other: to start the processes takes longer than each of them."""
    return launched(2, "short", ends=2)


@mpi
def test_ranks_tell_each_other_arrays_of_any_length(said_shortly):
    said = next(line for line in said_shortly.splitlines() if line.startswith("["))
    assert eval(said) == [[[[10.0] * 2, [11.0] * 2, [11.0] * 2], [0], [], [1.0, 2.0, 0.0]]] * 2


@mpi
def test_ranks_that_differ_are_told(said_shortly):
    assert "InputError: Rank 1 has another state than rank 0 at t = " in said_shortly
    assert "give functions that draw random numbers a fixed seed" in said_shortly


@mpi
def test_more_ranks_than_groups_of_slabs(said_shortly):
    assert (
        "A scene got 2 ranks of 64 threads each, and is cut into 64 groups of slabs at most; start 1 processes at most"
        in said_shortly
    )


@mpi
@pytest.mark.slow
def test_ranks_without_work_are_told():
    said = launched(4, "idle")
    assert re.search(r"\d of 4 ranks have nothing to sweep: the \d+ contacts lie in too few slabs", said)
    assert said.count("have nothing to sweep") == 1


@pytest.mark.parametrize("wrong", [4, "world", object()])
def test_what_is_no_communicator(wrong):
    with pytest.raises(cd.InputError, match=r"Simulation got ranks=.*; give a communicator of mpi4py, such as MPI"):
        cd.Simulation(ranks_program.scene(), time_step=1e-3, ranks=wrong)


def test_mpiexec_without_mpi4py(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(cd.InputError, match=r"A run on 4 processes needs mpi4py and an MPI; install them by `pip inst"):
        world.of_launcher()


@mpi
def test_mpiexec_of_another_mpi(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    with pytest.raises(cd.InputError, match=r"mpiexec has started 3 processes, but the MPI of mpi4py \(.*\) finds 1;"):
        world.of_launcher()


class Told:
    """A `World` of threads of this process: what one sends is there for the other when both have waited."""

    def __init__(self, rank, ranks, table, barrier):
        self.rank, self.ranks, self._table, self._barrier = rank, ranks, table, barrier

    def send(self, array, rank, tag):
        self._table[self.rank, rank, tag] = array

    def receive(self, array, rank, tag):
        return lambda: array.__setitem__(slice(None), self._table[rank, self.rank, tag])

    def gather(self, array, bounds):
        self._table[self.rank] = array[bounds[self.rank] : bounds[self.rank + 1]].copy()
        return lambda: array.__setitem__(slice(None), np.concatenate([self._table[k] for k in range(self.ranks)]))

    def wait(self, requests):
        self._barrier.wait(60)
        for request in filter(None, requests):
            request()
        self._barrier.wait(60)


def met(ranks, rows, acting, tray):
    """What `domains.meet` finds on each of so many processes, whose contacts act on the bodies ``acting``."""
    table, barrier, found = {}, threading.Barrier(ranks), [None] * ranks

    def one(rank):
        found[rank] = domains.meet(Told(rank, ranks, table, barrier), rows, acting[rank], tray.home, tray.group)

    workers = [threading.Thread(target=one, args=(rank,)) for rank in range(ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


def test_domains_share_out_all_contacts_and_bodies(shared_always):
    """Every free body that a contact acts on has one owner; borders of two ranks are the same list, in and out."""
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3)
    sim.run(until=0.07, progress=False)
    (contacts, plan), tray = sim.contact_set.equations[0].kind, sim.contact_set._tray
    every = np.unique(np.concatenate([contacts.a, contacts.b]))
    for ranks in (1, 2, 3, 8, 40):
        acting = []
        for rank in range(ranks):
            begin, end = (domains.first_group(rank + k, ranks) for k in range(2))
            some = np.concatenate([plan.order[plan.cuts[p + begin] : plan.cuts[p + end]] for p in (0, GROUPS)])
            touched = np.unique(np.concatenate([contacts.a[some], contacts.b[some]]))
            acting.append(touched[sim.rows[touched, 6] > 0])
        parts = met(ranks, sim.rows, acting, tray)
        owned = np.concatenate([part.pushed for part in parts])
        assert sorted(owned.tolist()) == every[sim.rows[every, 6] > 0].tolist()
        assert (np.bincount(np.concatenate([part.own for part in parts])) <= 2).all()
        for rank, part in enumerate(parts):
            for parity, border in enumerate(part.borders):
                for other, begin, end in border.parts:
                    back = parts[other].borders[1 - parity]
                    at = {one: slice(first, after) for one, first, after in back.parts}[rank]
                    assert border.bodies[begin:end].tolist() == back.bodies[at].tolist()
        shared = sum(len(border.bodies) for part in parts for border in part.borders)
        assert shared == 2 * (sum(map(len, acting)) - len(owned)) and (ranks < 2 or shared > 0)


def test_the_model_of_many_processes_is_that_of_its_page():
    one = {"seconds": {"detection": 1.0, "solve": 8.0, "record": 1.0}, "bodies": 100, "contacts": 200, "sweeps": 20.0}
    costs = scaling.fitted(one | {"cpu": 10.0})
    assert costs == pytest.approx((8.0 / 4000, 0.02, 2.0, 20.0))
    fast = scaling.Network("none", 0.0, np.inf)
    for way in scaling.WAYS:
        assert scaling.step_seconds(way, costs, fast, 100, 1) == pytest.approx(10.0)
    assert scaling.step_seconds("blocks", costs, fast, 100, 4) == pytest.approx(2.5)
    assert scaling.step_seconds("built", costs, fast, 100, 2) == pytest.approx(5.0)
    assert scaling.step_seconds("built", costs, fast, 100, 4) == pytest.approx(2.5)
    slow = scaling.Network("slow", 1e-3, 1e6)
    # two messages a sweep, each with a cut of 8^(2/3) grains, and log2 p for the sum
    parts = 20 * (2 * (1e-3 + 48 * 4.0 / 1e6) + 1e-3)
    assert scaling.step_seconds("built", costs, slow, 8, 2) == pytest.approx(20 * 2e-3 * 2 * 4 + 0.02 * 4 + parts)
    for network in scaling.NETWORKS:
        found = [scaling.efficiency("blocks", costs._replace(contact=2e-8), network, 1e9, p) for p in (8, 1e3, 1e5)]
        assert 1.0 >= found[0] > found[1] > found[2] > 0.0
