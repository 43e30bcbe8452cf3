"""Several threads in one kernel, and the point at which they meet.

All threads run the same kernel with a `Meeting` of their own; `meet` lets none pass before all have come. Threads that
wait spin, and after a while sleep, so that a core is free for the one that they wait for. Where one of them raises, the
others are let go: their results are not used. Sums are taken in `BLOCKS`, whatever the number of threads.

Workers see each other's work in a few places only, the *verbs* below: which part of a loop is a worker's own
(`own_part`), what comes after its part of a stage (`share_out`); and in a sweep, after its groups of one parity
(`after_groups`). For threads the latter are meetings. For processes, `ranks.team` enters what they do, by the type of
the meeting: which it is follows when the kernel is compiled.
"""

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from .._jit import kernel
from .fetch import lines

BLOCKS, LEAST = 64, 64  # parts of a loop in which sums are taken, whatever the number of threads; their least length
# Where those of a solver do: their groups of either parity are swept, their part is measured, what their contacts lose
# is summed up, their bodies that need work are marked, their contacts that do are chosen.
EVEN, ODD, MEASURED, SUMMED, MARKED, CHOSEN = range(6)
COME, STOP, ROUND, JOB, DONE = 0, 1, 8, 16, 24  # places in the array of counters, on lines of cache of their own
PAUSE = 20_000  # looks, 15 us: by then the first thread has left Python, of which there is one at a time
SLACK = 29  # PR_SET_TIMERSLACK, ns
NAPS = 30  # short sleeps, of some 60 us each or 6 (see `_sleep_lightly`), before a thread without work waits for a bell
SPINS = 120_000  # looks at the counter before a thread sleeps, 100 us: a sleep of 1 us takes some 60

# A function of the operating system: usleep(us), Sleep(ms). Not sched_yield: on a machine with other work a thread that
# yields comes back after the time slices of all others, and 10 000 meetings took 24 s in the place of 1.
_sleep = types.ExternalFunction("Sleep" if sys.platform == "win32" else "usleep", types.void(types.uint32))
SHORTEST = np.uint32(0 if sys.platform == "win32" else 1)


class Meeting(NamedTuple):
    """Who works on a kernel: the counters of all, the number of this worker and of all."""

    counters: np.ndarray  # (32,)
    thread: int
    threads: int


def _place(context, builder, signature, args):
    """Pointer to an element of an int64 array."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def _add(typing, counters, at, value):
    """Atomic counters[at] += value; returns the value before."""

    def code(context, builder, signature, args):
        return builder.atomic_rmw("add", _place(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), code


@intrinsic
def _load(typing, counters, at):
    """Atomic read of counters[at]."""

    def code(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)

    return types.int64(counters, types.int64), code


@kernel
def meet(meeting, rows):
    """Return when all workers have called it; ``rows`` (N, 8) are the velocities that they share."""
    if meeting.threads == 1:
        return
    counters = meeting.counters
    now = _load(counters, ROUND)
    if _add(counters, COME, 1) == meeting.threads - 1:
        _add(counters, COME, -meeting.threads)
        _add(counters, ROUND, 1)
        return
    spins = 0
    while _load(counters, ROUND) == now:
        spins += 1
        if spins > SPINS:
            if _load(counters, STOP) != 0:
                return
            _sleep(SHORTEST)


@kernel
def _until(counters, at, value, naps, pause):
    """Wait until counters[at] is ``value``, and ``pause`` looks more; False where it is not after so many ``naps``."""
    spins = 0
    while _load(counters, at) != value:
        spins += 1
        if spins > SPINS:
            if spins > SPINS + naps:
                return False
            _sleep(SHORTEST)
    for _ in range(pause):
        if _load(counters, STOP) != 0:
            break
    return True


@kernel
def _count(counters, at):
    """Count one more."""
    _add(counters, at, 1)


@kernel
def part(length, meeting):
    """The share of a worker in a loop: begin and end."""
    return length * meeting.thread // meeting.threads, length * (meeting.thread + 1) // meeting.threads


@kernel
def block(length, k):
    """Begin and end of block ``k`` of a loop; the last ones of a short loop are empty."""
    size = max(LEAST, (length + BLOCKS - 1) // BLOCKS)
    return min(size * k, length), min(size * (k + 1), length)


class Verbs(NamedTuple):
    """Where workers see each other's work; kernels, the first argument of each is the meeting."""

    own_part: object  # (meeting, count) -> first and after: which of the ``count`` parts of a loop are its own
    share_out: object  # (meeting, rows, stage): its part of a stage is done, for all to see: see `Team.split`
    after_groups: object  # (meeting, rows, parity, changes): its groups of this parity are swept


@kernel
def _meet_after_groups(meeting, rows, parity, changes):
    """All groups of one parity are swept, and the velocities there for all."""
    meet(meeting, rows)


@kernel
def _part_of(meeting, count):
    """Neighbouring groups, the same of both parities: see `order`."""
    return part(count, meeting)


@kernel
def _meet_after_stage(meeting, rows, stage):
    """All parts are there."""
    meet(meeting, rows)


VERBS = {Meeting: Verbs(_part_of, _meet_after_stage, _meet_after_groups)}


def _verb(name: str):
    """A function that calls the verb of the meeting's type, compiled or not."""

    def verb(meeting, *arguments):
        return getattr(VERBS[type(meeting)], name)(meeting, *arguments)

    @overload(verb)
    def _compiled(meeting, *arguments):
        chosen = getattr(VERBS[meeting.instance_class], name)
        return lambda meeting, *arguments: chosen(meeting, *arguments)

    return verb


own_part, share_out, after_groups = map(_verb, Verbs._fields)


class Team:
    """Runs kernels on several threads; their last argument is the `Meeting`.

    ``least``: of contacts or bodies, fewer are left to one thread.
    """

    def __init__(self, threads: int, least: int = 0):
        self.threads = self.workers = threads
        self.least = least
        self._begin()

    def _begin(self) -> None:
        self._crew = Crew(self.threads - 1)
        self._meetings = [Meeting(self._crew.counters, k, self.threads) for k in range(self.threads)]
        self._process = os.getpid()
        self._dismissal = weakref.finalize(self, self._crew.dismiss)

    @property
    def alike(self) -> "Team":
        """The threads of this process, for what all processes do alike."""
        return self

    several = False  # whether there are other processes: see `ranks.team`
    divided = False  # whether each of them has the contacts that it sweeps, and no others: see `ranks.division`
    leads = True  # whether this process records and tells: see `ranks.world`

    def any(self, flag) -> bool:
        """Whether the ``flag`` is true on some process: this one is alone."""
        return bool(flag)

    def agree(self, simulation) -> None:
        """Nobody to agree with."""

    def stopping(self, simulation):
        """A block in which an error of one process stops all."""
        return contextlib.nullcontext()

    def of(self, size: int, least: int) -> "Team":
        """This team for a loop over so many things; where they are not more than ``least``, one thread is faster."""
        return self if size > max(least, self.least) else ALONE

    def __call__(self, function, kinds, *arguments):
        """Run a solver of the contacts of these ``kinds``: see `share`."""
        return self.share(function, *arguments)

    def split(self, exchange, function, *arguments):
        """Run a kernel on the threads of all processes, each of which has its own part; the result of the first one.

        Where workers see each other's work (`share_out`), processes call ``exchange`` with the number of the stage.
        """
        return self.share(getattr(function, "call", function), *arguments)

    def share(self, function, *arguments):
        """Run a kernel on the threads of this process; the result of the first one."""
        if self.threads == 1:
            return function(*arguments, self._meetings[0])
        if self._process != os.getpid():
            self._dismissal.detach()
            self._begin()  # a process that was forked off has the threads of its parent no more
        return self._run(function, arguments, self._meetings)

    def _run(self, function, arguments, meetings):
        """The result of the first of these workers; an error of one lets all others go, and is raised."""
        if self.threads == 1:
            return function(*arguments, meetings[0])
        crew, counters = self._crew, self._crew.counters
        try:
            crew.begin(function, arguments, meetings)
            result = function(*arguments, meetings[0])
        except BaseException:
            counters[STOP] = 1
            raise
        finally:
            errors = crew.end()
            if counters[STOP]:
                counters[:JOB] = 0
        if errors:
            raise errors[0]
        return result


class Crew:
    """Threads that wait for work: they look out for it as those do that meet, then sleep until a bell rings.

    From one kernel to the next of a step some 50 us pass, and to wake a thread by the operating system takes as long.
    """

    def __init__(self, size: int):
        self.counters, self._job, self._errors = lines(4, dtype=np.int64).ravel(), None, []
        self._bells, self._asleep = [threading.Event() for _ in range(size)], [False] * size
        self._number = -1  # of the work that is given out
        self.threads = [threading.Thread(target=_serve, args=(self, k), daemon=True) for k in range(size)]
        for thread in self.threads:
            thread.start()

    def begin(self, function, arguments, meetings) -> None:
        """Let all threads call the ``function``, each with its own one of the ``meetings`` but the first."""
        self._job = function, arguments, meetings
        self._call()

    def _call(self) -> None:
        self._number = int(self.counters[JOB]) + 1  # before it is given out: an interrupt may come in between
        self.counters[DONE], self.counters[JOB] = 0, self._number
        for bell, asleep in zip(self._bells, self._asleep, strict=True):
            if asleep:
                bell.set()

    def end(self) -> list:
        """Wait until all are done, if they have begun; returns their errors."""
        if self.counters[JOB] == self._number:
            _until(self.counters, DONE, len(self.threads), 1 << 62, 0)
        self._job, self._number, self._errors, errors = None, -1, [], self._errors
        return errors

    def dismiss(self) -> None:
        """End the threads, which wait."""
        self._job = None
        self._call()

    def work(self, place: int, number: int) -> bool:
        """Wait for the work of this ``number`` and do it; False where there is no more of it."""
        while not _until(self.counters, JOB, number, NAPS, PAUSE):
            self._asleep[place] = True
            if self.counters[JOB] != number:
                self._bells[place].wait()
            self._asleep[place] = False
            self._bells[place].clear()
        if self._job is None:
            return False
        function, arguments, meetings = self._job
        try:
            function(*arguments, meetings[place + 1])
        except BaseException as error:
            self._errors.append(error)
            self.counters[STOP] = 1
        _count(self.counters, DONE)
        return True


def _sleep_lightly() -> None:
    """Let the short sleeps of this thread end when they should, on Linux: else they are 50 us longer, to save power."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SLACK, ctypes.c_ulong(1000), 0, 0, 0)


def _serve(crew: Crew, place: int) -> None:
    """A thread of the crew."""
    _sleep_lightly()
    number = 1
    while crew.work(place, number):
        number += 1


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ALONE = Team(1)
