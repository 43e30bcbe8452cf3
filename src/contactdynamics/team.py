"""Several threads in one kernel: a barrier on atomic counters.

All threads run the same kernel with their number; `wait` lets none pass before all have come. Threads that wait spin,
and after a while give their core away, so that a busy machine is slow but not stuck.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import types
from numba.extending import intrinsic

from ._jit import kernel

COME, ROUND = 0, 8  # places in the array of a barrier, on two lines of cache
SPINS = 4000  # looks at the counter before the core is given away

# give the core away: a function of the operating system
_yield = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def barrier() -> np.ndarray:
    """The counters of a barrier."""
    return np.zeros(16, dtype=np.int64)


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
def wait(counters, threads):
    """Return when all ``threads`` have called it."""
    if threads == 1:
        return
    now = _load(counters, ROUND)
    if _add(counters, COME, 1) == threads - 1:
        _add(counters, COME, -threads)
        _add(counters, ROUND, 1)
        return
    spins = 0
    while _load(counters, ROUND) == now:
        spins += 1
        if spins > SPINS:
            _yield()


class Team:
    """Runs a kernel on several threads; its last two arguments are the number of the thread and that of all."""

    def __init__(self, threads: int):
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __call__(self, function, *arguments):
        """Result of the first thread."""
        others = [self._pool.submit(function, *arguments, k, self.threads) for k in range(1, self.threads)]
        result = function(*arguments, 0, self.threads)
        for other in others:
            other.result()
        return result
