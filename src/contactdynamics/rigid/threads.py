"""Several threads in one kernel, and the point at which they meet.

All threads run the same kernel with a `Meeting` of their own; `meet` lets none pass before all have come. Threads that
wait spin, and after a while sleep, so that a core is free for the one that they wait for. Where one of them raises, the
others are let go: their results are not used. Sums are taken in `BLOCKS`, whatever the number of threads. How they come
to the kernel says `crew`.

Workers see each other's work in a few places only, the *verbs* below: which part of a loop is a worker's own
(`own_part`), what comes after its part of a stage (`share_out`); and in a sweep, after its groups of one parity
(`after_groups`). For threads the latter are meetings. For processes, `ranks.team` enters what they do, by the type of
the meeting: which it is follows when the kernel is compiled.
"""

import contextlib
import os
import weakref
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._jit import kernel
from .crew import COME, ROUND, SHORTEST, SPINS, STOP, Crew, add, load, sleep

BLOCKS, LEAST = 64, 64  # parts of a loop in which sums are taken, whatever the number of threads; their least length
# Where those of a solver do: their groups of either parity are swept, their part is measured, what their contacts lose
# is summed up, their bodies that need work are marked, their contacts that do are chosen.
EVEN, ODD, MEASURED, SUMMED, MARKED, CHOSEN = range(6)


class Meeting(NamedTuple):
    """Who works on a kernel: the counters of all, the number of this worker and of all."""

    counters: np.ndarray  # see `crew`
    thread: int
    threads: int


@kernel
def meet(meeting, rows):
    """Return when all workers have called it; ``rows`` (N, 8) are the velocities that they share."""
    if meeting.threads == 1:
        return
    counters = meeting.counters
    now = load(counters, ROUND)
    if add(counters, COME, 1) == meeting.threads - 1:
        add(counters, COME, -meeting.threads)
        add(counters, ROUND, 1)
        return
    spins = 0
    while load(counters, ROUND) == now:
        spins += 1
        if spins > SPINS:
            if load(counters, STOP) != 0:
                return
            sleep(SHORTEST)


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
    rank = 0  # of this process

    def any(self, flag) -> bool:
        """Whether the ``flag`` is true on some process: this one is alone."""
        return bool(flag)

    def count(self, *numbers) -> list:
        """The whole ``numbers`` that each process gives."""
        return [numbers]

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
        return self.share(function, *arguments)

    def share(self, function, *arguments):
        """Run a kernel on the threads of this process; the result of the first one."""
        if self.threads == 1:
            return getattr(function, "call", function)(*arguments, self._meetings[0])
        if self._process != os.getpid():
            self._dismissal.detach()
            self._begin()  # a process that was forked off has the threads of its parent no more
        return self._run(function, arguments, self._meetings)

    def _run(self, function, arguments, meetings):
        """The result of the first of these workers; an error of one lets all others go, and is raised."""
        if self.threads == 1:
            return getattr(function, "call", function)(*arguments, meetings[0])
        return self._crew.run(function, arguments, meetings)


def cores() -> set:
    """The numbers of those that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


ALONE = Team(1)
