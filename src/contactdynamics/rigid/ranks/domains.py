"""Who sweeps what: the groups of slabs of each rank, the bodies that its contacts act on, and those that it shares.

A rank has neighbouring groups, the same of both parities: see `order`. A free body has contacts in one even and one
odd group at most, those of its own slab and of the one before. Where these belong to two ranks the body is shared:
after the even groups its velocity goes to the rank of the odd one, after the odd groups back. All others are a rank's
own until the step is solved.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ..equations.contract import GROUPS


class Border(NamedTuple):
    """The bodies shared with other ranks whose contacts of one parity are swept here."""

    bodies: np.ndarray  # (n,) rank by rank
    parts: list  # (rank, begin, end) in ``bodies``
    box: np.ndarray  # (n, 6) their velocities and spins in a message


class Domains(NamedTuple):
    """The domains of all ranks in one step, as one of them sees it; N bodies."""

    own: np.ndarray  # the free bodies that contacts of this rank may act on
    borders: tuple  # of the even and of the odd groups, a `Border` each
    owned: np.ndarray  # free bodies, those that each rank answers for one after the other
    bounds: np.ndarray  # (ranks + 1,) where those of each rank begin


def first_group(rank: int, ranks: int) -> int:
    """The first group of each parity of a rank; that of the next one is where its own end."""
    return GROUPS * rank // ranks


@kernel
def mark_homes(rows, home, group, rank_of, out):
    """The rank whose even groups, and that whose odd ones may act on each free body, into ``out`` (2, N).

    A body in a slab has contacts in this one and in that before. -1: none, as for what does not move freely, which is
    known everywhere. ``home`` (N,) slabs, ``group`` of each slab, ``rank_of`` (GROUPS,).
    """
    for i in range(home.size):
        out[0, i] = out[1, i] = -1
        if rows[i, 6] > 0.0:
            slab = home[i]
            out[slab % 2, i] = rank_of[group[slab] % GROUPS]
            if slab > 0:
                out[(slab - 1) % 2, i] = rank_of[group[slab - 1] % GROUPS]


def _border(home, rank: int, parity: int) -> Border:
    """The bodies whose contacts of this parity are swept here and those of the other parity elsewhere."""
    mine, other = home[parity], home[1 - parity]
    bodies = np.flatnonzero((mine == rank) & (other >= 0) & (other != rank))
    bodies = bodies[np.argsort(other[bodies], kind="stable")]
    ranks, begins = np.unique(other[bodies], return_index=True)
    ends = np.append(begins, len(bodies))[1:]
    parts = list(zip(ranks.tolist(), begins.tolist(), ends.tolist(), strict=True))
    return Border(bodies, parts, np.empty((len(bodies), 6)))


def divide(rows: np.ndarray, slabs: np.ndarray, group: np.ndarray, rank: int, ranks: int) -> Domains:
    """The domains of ``ranks`` processes, by the ``slabs`` (N,) of the bodies and the ``group`` of each slab."""
    home = np.empty((2, len(rows)), dtype=np.int8)
    cuts = [first_group(k, ranks) for k in range(ranks + 1)]
    mark_homes(rows, slabs, group, np.repeat(np.arange(ranks, dtype=np.int8), np.diff(cuts)), home)
    own = np.flatnonzero((home == rank).any(axis=0)).astype(np.uint32)
    owner = np.where(home[0] >= 0, home[0], home[1])
    order = np.argsort(owner, kind="stable")
    owned = order[np.count_nonzero(owner < 0) :].astype(np.uint32)
    bounds = np.searchsorted(owner[owned], np.arange(ranks + 1))
    borders = _border(home, rank, 0), _border(home, rank, 1)
    return Domains(own, borders, owned, bounds)
