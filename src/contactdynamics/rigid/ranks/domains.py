"""Who sweeps what: the groups of slabs of each rank, the bodies that its contacts act on, and those that it shares.

A rank has neighbouring groups, the same of both parities: see `order`. A free body has contacts in one even and one
odd group at most. Where these belong to two ranks the body is shared: after the even groups its velocity goes to the
rank of the odd one, after the odd groups back. All others are a rank's own until the step is solved.
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

    own: np.ndarray  # the free bodies that contacts of this rank act on
    local: np.ndarray  # (N,) whether a body is among them
    borders: tuple  # of the even and of the odd groups, a `Border` each
    owned: np.ndarray  # free bodies with contacts, those that each rank answers for one after the other
    bounds: np.ndarray  # (ranks + 1,) where those of each rank begin


def first_group(rank: int, ranks: int) -> int:
    """The first group of each parity of a rank; that of the next one is where its own end."""
    return GROUPS * rank // ranks


@kernel
def mark_homes(a, b, order, cuts, rank_of, home):
    """The rank whose even groups, and that whose odd ones act on each body, into ``home`` (2, N)."""
    for group in range(2 * GROUPS):
        parity, rank = group // GROUPS, rank_of[group % GROUPS]
        for at in range(cuts[group], cuts[group + 1]):
            k = order[at]
            home[parity, a[k]] = rank
            home[parity, b[k]] = rank


def _border(home, rank: int, parity: int) -> Border:
    """The bodies whose contacts of this parity are swept here and those of the other parity elsewhere."""
    mine, other = home[parity], home[1 - parity]
    bodies = np.flatnonzero((mine == rank) & (other >= 0) & (other != rank))
    bodies = bodies[np.argsort(other[bodies], kind="stable")]
    ranks, begins = np.unique(other[bodies], return_index=True)
    ends = np.append(begins, len(bodies))[1:]
    parts = list(zip(ranks.tolist(), begins.tolist(), ends.tolist(), strict=True))
    return Border(bodies, parts, np.empty((len(bodies), 6)))


def divide(rows: np.ndarray, lists, rank: int, ranks: int) -> Domains:
    """The domains of ``ranks`` processes, by the ``lists`` of contacts of all kinds.

    Each has their bodies a, b (m,), the order (m,) of the sweeps and where its groups begin (ALL + 1,).
    """
    home = np.full((2, len(rows)), -1, dtype=np.int8)
    cuts = [first_group(k, ranks) for k in range(ranks + 1)]
    rank_of = np.repeat(np.arange(ranks, dtype=np.int8), np.diff(cuts))
    for one in lists:
        mark_homes(*one, rank_of, home)
    home[:, rows[:, 6] == 0.0] = -1  # what does not move freely is known everywhere
    local = (home == rank).any(axis=0)
    owner = np.where(home[0] >= 0, home[0], home[1])
    order = np.argsort(owner, kind="stable")
    owned = order[np.count_nonzero(owner < 0) :].astype(np.uint32)
    bounds = np.searchsorted(owner[owned], np.arange(ranks + 1))
    borders = _border(home, rank, 0), _border(home, rank, 1)
    return Domains(np.flatnonzero(local).astype(np.uint32), local, borders, owned, bounds)
