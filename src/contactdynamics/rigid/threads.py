"""Several threads in one kernel, and the point at which they meet.

All threads run the same kernel with a `Meeting` of their own; `meet` lets none pass before all have come. Threads that
wait spin, and after a while give their core away, so that a busy machine is slow but not stuck.

`meet` is the only place where the sweeps of different workers see each other: the solvers call it between even and odd
groups with the velocities that may have changed hands. An exchange between processes would stand here.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from .._jit import kernel

COME, ROUND = 0, 8  # places in the array of counters, on two lines of cache
SPINS = 4000  # looks at the counter before the core is given away

# give the core away: a function of the operating system
_yield = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


class Meeting(NamedTuple):
    """Who works on a kernel: the counters of all, the number of this worker and of all."""

    counters: np.ndarray  # (16,)
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
            _yield()


@kernel
def part(length, meeting):
    """The share of a worker in a loop: begin and end."""
    return length * meeting.thread // meeting.threads, length * (meeting.thread + 1) // meeting.threads


class Team:
    """Runs a kernel on several threads; its last argument is the `Meeting`."""

    def __init__(self, threads: int):
        self.threads = threads
        self._meetings = [Meeting(np.zeros(16, dtype=np.int64), 0, 1)]
        if threads > 1:
            counters = self._meetings[0].counters
            self._meetings = [Meeting(counters, k, threads) for k in range(threads)]
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __call__(self, function, *arguments):
        """Result of the first thread."""
        others = [self._pool.submit(function, *arguments, meeting) for meeting in self._meetings[1:]]
        result = function(*arguments, self._meetings[0])
        for other in others:
            other.result()
        return result
