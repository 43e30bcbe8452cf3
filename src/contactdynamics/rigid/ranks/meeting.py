"""The kernels of workers of several processes: what they do where they see each other's work, see `threads.Verbs`.

MPI is not compiled in: the kernel calls a function of Python by its address (`team.RankTeam`), so that it is kept in
the cache as all others, and is the same for every MPI.
"""

import ctypes
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ..._jit import kernel
from ..threads import ODD, VERBS, Verbs, meet


class RankMeeting(NamedTuple):
    """Who works on a kernel: as `threads.Meeting`, and which process it is."""

    counters: np.ndarray  # (32,)
    thread: int
    threads: int
    rank: int
    ranks: int
    call: int  # address of the function of Python
    changes: np.ndarray  # (2 GROUPS,) on their way


@intrinsic
def _call(typing, address, code):
    """Call the C function int64 -> int64 at this address."""

    def build(context, builder, signature, args):
        whole = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(whole, [whole]).as_pointer())
        return builder.call(function, [args[1]])

    return types.int64(types.int64, types.int64), build


if config.DISABLE_JIT:  # the same by Python, where kernels are not compiled

    def _call(address, code):
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(code)


@kernel
def _own_part(meeting, count):
    """Neighbouring parts for a process, and in it for a thread."""
    worker, workers = meeting.rank * meeting.threads + meeting.thread, meeting.ranks * meeting.threads
    return count * worker // workers, count * (worker + 1) // workers


@kernel
def _share_out(meeting, rows, stage):
    """Tell the other processes what this one has done of a stage, and hear what they have."""
    meet(meeting, rows)
    if meeting.thread == 0:
        _call(meeting.call, stage)
    meet(meeting, rows)


@kernel
def _after_groups(meeting, rows, parity, changes):
    """Send and receive what is on the border; after the odd groups also the changes."""
    meet(meeting, rows)
    if meeting.thread == 0:
        sent, half = meeting.changes, meeting.changes.size // 2
        if parity == ODD:
            first, after = half * meeting.rank // meeting.ranks, half * (meeting.rank + 1) // meeting.ranks
            for group in range(sent.size):
                sent[group] = changes[group] if first <= group % half < after else 0.0
        _call(meeting.call, parity)
        if parity == ODD:
            for group in range(sent.size):
                changes[group] = sent[group]
    meet(meeting, rows)


VERBS[RankMeeting] = Verbs(_own_part, _share_out, _after_groups)


@kernel
def pack_rows(rows, bodies, out):
    """Velocities and spins of the ``bodies`` (k,) into ``out`` (k, 6): all that contacts change."""
    for k in range(bodies.size):
        for c in range(6):
            out[k, c] = rows[bodies[k], c]


@kernel
def unpack_rows(some, bodies, rows):
    """The other way round."""
    for k in range(bodies.size):
        for c in range(6):
            rows[bodies[k], c] = some[k, c]
