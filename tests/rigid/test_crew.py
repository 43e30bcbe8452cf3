"""Kernels that call the other threads themselves: native work, what goes wrong in it, and sleep."""

import gc
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import ranks_program
from numba.core.errors import LoweringError, TypingError

import contactdynamics as cd
from contactdynamics._jit import CALLS, Settled, kernel
from contactdynamics.rigid import contact_set
from contactdynamics.rigid.crew import DONE, SHORTEST, Crew, enlist, sleep
from contactdynamics.rigid.fetch import shift_down
from contactdynamics.rigid.threads import Team, meet

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="kernels are not compiled")


@kernel
def _counts(rows, counts, who, meeting):
    """All count, then meet; the one that it is about raises."""
    enlist(meeting)
    if meeting.thread == who:
        raise ValueError("one of them")
    counts[meeting.thread] += 1
    meet(meeting, rows)
    return counts.copy(), meeting.threads


@kernel
def _counts_twice(rows, counts, meeting):
    """Calls a kernel that would call the others."""
    enlist(meeting)
    _counts(rows, counts, -1, meeting)
    return _counts(rows, counts, -1, meeting)


@kernel
def _many(rows, arrays, meeting):
    """Gets more than a frame holds."""
    enlist(meeting)
    return rows[0, 0]


@kernel
def _leaves(some, out, meeting):
    """The first thread is done at once; the others look at parts of what they got for some milliseconds more."""
    enlist(meeting)
    if meeting.thread > 0:
        parts = [some[:4]]
        for k in range(40):
            sleep(SHORTEST)
            parts[0] = some[k : k + 4]
            out[meeting.thread] += parts[0].sum()


class Work:
    """A team, and what its first kernels get; Python gives out what is in ``given``."""

    def __init__(self, threads, monkeypatch):
        self.given = given = []
        give_out = Crew._give_out

        def noting(crew, *job):
            if job:  # without one, a team that is gone ends its threads
                given.append(job)
            give_out(crew, *job)

        monkeypatch.setattr(Crew, "_give_out", noting)
        self.team, self.rows, self.counts = Team(threads), np.zeros((1, 8)), np.zeros(threads, dtype=np.int64)

    def share(self, function=_counts, who=-1):
        """What all threads count."""
        return self.team.share(function, self.rows, self.counts, who)[0].tolist()

    def falls_asleep(self):
        """Whether all threads but the first come to wait for a bell."""
        end = time.monotonic() + 20
        while len(self.team._crew._asleep) < self.team.threads - 1 and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.team._crew._asleep) == self.team.threads - 1


def test_the_first_thread_may_leave_a_kernel_before_the_others():
    """Its arrays stay those of Python: what the others count of references ends with no one's memory."""
    team, some, out = Team(3), np.arange(44.0), np.zeros(3)
    counts = [sys.getrefcount(array) for array in (some, out)]
    for _ in range(20):
        team.share(_leaves, some, out)
    assert out.tolist() == [0.0, *[20 * sum(4 * k + 6.0 for k in range(40))] * 2]
    assert [sys.getrefcount(array) for array in (some, out)] == counts


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_a_kernel_calls_the_others_without_python(threads, monkeypatch):
    """As machine code, after some calls, too; all wake up after a pause."""
    work, settled = Work(threads, monkeypatch), Settled(_counts)
    for k in range(20):
        assert work.share(settled if k % 2 else _counts) == [k + 1] * threads
        assert k % 7 != 6 or work.falls_asleep()
    assert settled.call != settled._look and not work.given


def test_it_calls_them_once(monkeypatch):
    """Neither in a kernel that another one calls, nor where Python has given out the work."""
    work = Work(3, monkeypatch)
    assert work.team.share(_counts_twice, work.rows, work.counts)[0].tolist() == [2] * 3 and not work.given
    work.team.share(lambda meeting: _counts(work.rows, work.counts, -1, meeting))
    assert work.counts.tolist() == [3] * 3 and len(work.given) == 1
    assert work.share() == [4] * 3 and len(work.given) == 1


@pytest.mark.parametrize("who", [0, 1, 2])
def test_an_error_of_one_is_told_and_all_work_on(who, monkeypatch):
    """The first one says what it is."""
    work = Work(3, monkeypatch)
    for _ in range(3):
        with pytest.raises(RuntimeError if who else ValueError, match="threads=1" if who else "one of them"):
            work.share(who=who)
    work.counts[:] = 0
    assert work.share() == [1] * 3 and work.share() == [2] * 3 and not work.given


def test_a_kernel_that_gets_nonsense_calls_nobody(monkeypatch):
    """Neither before nor after its types are settled; and nobody waits for it for ever."""
    work, settled = Work(3, monkeypatch), Settled(_counts)
    for k in range(CALLS + 2):
        with pytest.raises((TypeError, TypingError)):
            work.team.share(settled, work.rows, "counts", -1)
        assert work.falls_asleep() and work.share(settled) == [k + 1] * 3
    assert settled.call != settled._look and not work.given


def test_too_much_for_a_frame_is_an_error_of_the_compiler():
    with pytest.raises(LoweringError, match=r"crew\.WORDS"):
        Team(2).share(_many, np.zeros((1, 8)), (np.zeros(3),) * 300)


@pytest.mark.parametrize("asleep", [False, True])
def test_threads_end_with_their_team(asleep, monkeypatch):
    work = Work(3, monkeypatch)
    assert work.share() == [1] * 3 and (not asleep or work.falls_asleep())
    threads = work.team._crew.threads
    del work
    gc.collect()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_a_step_gives_out_nothing_by_python(monkeypatch):
    monkeypatch.setattr(contact_set, "SMALL", 0)
    work = Work(2, monkeypatch)
    sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads=2)
    for _ in range(20):
        sim.step()
    assert sim._team._crew.counters[DONE] > 100 and not work.given


PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = sys.argv[1:]
import ranks_program
import contactdynamics as cd
from contactdynamics import _jit
from contactdynamics.rigid import contact_set
contact_set.SMALL = 0
sim = cd.Simulation(ranks_program.scene(), time_step=1e-3, threads=2)
for _ in range(10):
    sim.step()
print(_jit.COMPILATION.seconds, sim.rows.tobytes().hex()[:4000])
"""


def test_a_second_process_compiles_nothing():
    """What a kernel needs to call the others is in the cache as well."""
    command, said = [sys.executable, "-c", PROGRAM, str(Path(ranks_program.__file__).parent)], []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert float(said[1][0]) == 0.0 and said[0][1] == said[1][1]


def test_rows_are_moved_down(rng):
    """They may overlap; compiled as in NumPy."""

    @kernel
    def move(column, begin, end, at):
        shift_down(column, begin, end, at)

    for shape, sort in (((50,), np.int8), ((50,), np.uint32), ((50, 3), float)):
        for begin, end, at in ((10, 40, 3), (10, 10, 0), (30, 50, 0), (5, 50, 4)):
            one = rng.integers(0, 100, shape).astype(sort)
            two = one.copy()
            move(one, begin, end, at)
            two[at : at + end - begin] = two[begin:end].copy()
            assert one.tolist() == two.tolist()
