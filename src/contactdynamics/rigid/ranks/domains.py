"""Who sweeps what: the groups of slabs of each rank, the bodies that its contacts act on, and those that it shares.

A rank has neighbouring groups, the same of both parities: see `order`. A free body has contacts in one even and one
odd group at most, those of its own slab and of the one before. Where these belong to two ranks the body is shared:
after the even groups its velocity goes to the rank of the odd one, after the odd groups back. All others are a rank's
own until the step is solved.

Two ranks tell each other which bodies their contacts act on, and share those that are on both lists: slabs would do,
but for bodies that one of them does not know.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ..equations.contract import GROUPS

MET = 20  # tag of the lists by which two ranks find what they share; of the odd ones, the next


class Border(NamedTuple):
    """The bodies shared with other ranks whose contacts of one parity are swept here."""

    bodies: np.ndarray  # (n,) rank by rank
    parts: list  # (rank, begin, end) in ``bodies``
    box: np.ndarray  # (n, 6) their velocities and spins in a message


class Domains(NamedTuple):
    """The domains of all ranks in one step, as one of them sees it; N bodies."""

    own: np.ndarray  # the free bodies that contacts of this rank may act on
    borders: tuple  # of the even and of the odd groups, a `Border` each
    pushed: np.ndarray  # of its own, those that this rank answers for: each body has one


def first_group(rank: int, ranks: int) -> int:
    """The first group of each parity of a rank; that of the next one is where its own end."""
    return GROUPS * rank // ranks


def ranks_of_groups(ranks: int) -> np.ndarray:
    """(GROUPS,) who sweeps the groups of either parity."""
    cuts = [first_group(k, ranks) for k in range(ranks + 1)]
    return np.repeat(np.arange(ranks, dtype=np.int8), np.diff(cuts))


@kernel
def mark_homes(rows, bodies, home, group, rank_of, out):
    """The rank whose even groups, and that whose odd ones may act on each of the ``bodies`` (n,), into ``out`` (2, n).

    A body in a slab has contacts in this one and in that before. -1: none, as for what does not move freely, which is
    known everywhere. ``home`` (N,) slabs, ``group`` of each slab, ``rank_of`` (GROUPS,).
    """
    for k in range(bodies.size):
        i = bodies[k]
        out[0, k] = out[1, k] = -1
        if rows[i, 6] > 0.0:
            slab = home[i]
            out[slab % 2, k] = rank_of[group[slab] % GROUPS]
            if slab > 0:
                out[(slab - 1) % 2, k] = rank_of[group[slab - 1] % GROUPS]


def _border(bodies, other) -> Border:
    """The shared ``bodies`` (n,), in the order of the rank that sweeps the ``other`` (n,) parity of each."""
    bodies, other = (column[np.argsort(other, kind="stable")] for column in (bodies, other))
    ranks, begins = np.unique(other, return_index=True)
    ends = np.append(begins, len(bodies))[1:]
    parts = list(zip(ranks.tolist(), begins.tolist(), ends.tolist(), strict=True))
    return Border(bodies, parts, np.empty((len(bodies), 6)))


def _shared(home, rank: int, parity: int) -> np.ndarray:
    """Which bodies have contacts of this parity that are swept here and others that are swept elsewhere."""
    mine, other = home[parity], home[1 - parity]
    return np.flatnonzero((mine == rank) & (other >= 0) & (other != rank))


def meet(world, rows: np.ndarray, bodies: np.ndarray, slabs: np.ndarray, group: np.ndarray) -> Domains:
    """The domain of this process, whose contacts act on these ``bodies`` (n,).

    ``slabs`` (N,) of all bodies, as far as they are known here, and the ``group`` of each slab.
    """
    me, ranks, home = world.rank, world.ranks, np.empty((2, len(bodies)), dtype=np.int8)
    mark_homes(rows, bodies, slabs, group, ranks_of_groups(ranks), home)
    mine, counts = {}, np.zeros((ranks, 2, ranks), dtype=np.int64)
    for parity in range(2):  # those that may be shared with each rank, row by row
        some = _shared(home, me, parity)
        for k in np.unique(home[1 - parity][some]).tolist():
            mine[parity, k] = np.sort(bodies[some[home[1 - parity][some] == k]])
            counts[me, parity, k] = len(mine[parity, k])
    world.wait([world.gather(counts, np.arange(ranks + 1))])
    # Of two ranks, the one's even list meets the other's odd one.
    theirs = {(p, k): np.empty(counts[k, 1 - p, me], dtype=bodies.dtype) for p, k in mine if counts[k, 1 - p, me]}
    requests = [world.receive(told, k, MET + 1 - parity) for (parity, k), told in theirs.items()]
    world.wait(requests + [world.send(mine[parity, k], k, MET + parity) for parity, k in theirs])
    borders = []
    for parity in range(2):
        both = {k: np.intersect1d(mine[p, k], told) for (p, k), told in theirs.items() if p == parity}
        other = np.repeat(np.array(list(both), dtype=np.int64), [len(some) for some in both.values()])
        borders.append(_border(np.concatenate([bodies[:0], *both.values()]), other))
    return Domains(bodies, tuple(borders), bodies[~np.isin(bodies, borders[1].bodies)])
