"""The list of active pairs of balls and planes, with its memory."""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import OPEN
from ..fetch import lines, shift_down
from ..fours import lanes, numbers_of, put_side_by_side, set_numbers_of, smaller, spread
from ..pages import zeros


class Pairs(NamedTuple):
    """The active pairs of a step (K,): pairs of balls, then pairs of a plane and a ball; with their memory."""

    first: np.ndarray  # (K,) ball, or plane for the rows from `balls` on
    second: np.ndarray  # (K,) ball
    a: np.ndarray  # (K,) rows of their bodies
    b: np.ndarray  # (K,)
    law: np.ndarray  # (K,)
    kind: np.ndarray  # (K,) number of the equations that they belong to
    place: np.ndarray  # (K, 4) normal from the first to the second, and gap, m
    memory: np.ndarray  # (K, 4) impulse in space, on the second body, N s; and what was lost, see `lost`
    moment: np.ndarray  # (K, 3) in space, N m s
    status: np.ndarray  # (K,)
    source: np.ndarray  # (K,) row of the same pair in the list before, -1 where it is new
    balls: int  # number of pairs of balls

    @property
    def normal(self) -> np.ndarray:
        """(K, 3) from the first to the second."""
        return self.place[:, :GAP]

    @property
    def gap(self) -> np.ndarray:
        """(K,) m."""
        return self.place[:, GAP]

    @property
    def impulse(self) -> np.ndarray:
        """(K, 3) in space, on the second body, N s."""
        return self.memory[:, :LOST]

    @property
    def lost(self) -> np.ndarray:
        """(K,) how much deeper it is than the law has it, by what the solver left, m."""
        return self.memory[:, LOST]


GAP = LOST = 3  # columns of ``place`` and ``memory``, after those of a vector: four numbers are read at once
ROOM = 1.05  # of arrays that follow the number of pairs, over what is needed
SCRATCH = ("a", "b", "law", "kind", "place", "source")  # of the present list alone: no memory


def pair_arrays(room: int, scratch: Pairs | None = None) -> Pairs:
    """Arrays for ``room`` pairs, none of them used; those that are no memory may be shared with another list."""
    first, second, law, source = (zeros(room, np.int32) for _ in range(4))
    a, b = (zeros(room, np.uint32) for _ in range(2))
    pairs = Pairs(
        first, second, a, b, law, zeros(room, np.int8), lines(room, 4), lines(room, 4), zeros((room, 3)),
        zeros(room, np.int8), source, 0,
    )  # fmt: skip
    return pairs if scratch is None else pairs._replace(**{name: getattr(scratch, name)[:room] for name in SCRATCH})


class Kept(NamedTuple):
    """What the equations store with the pairs: see `Pairs`."""

    memory: np.ndarray
    moment: np.ndarray
    status: np.ndarray


def kept(pairs: Pairs) -> Kept:
    """Those arrays alone: a kernel takes fewer of them faster."""
    return Kept(pairs.memory, pairs.moment, pairs.status)


def renumber(pairs: Pairs, order: np.ndarray) -> Pairs:
    """The pairs when ball ``order[k]`` becomes ball k: sorted again; where the two change places, so does the sign."""
    new, n = np.argsort(order).astype(np.int32), pairs.balls
    first, second = pairs.first.copy(), new[pairs.second]
    first[:n] = new[first[:n]]
    sign = np.ones((len(first), 4))
    sign[:n, :3][first[:n] > second[:n]] = -1.0
    low, high = np.minimum(first[:n], second[:n]), np.maximum(first[:n], second[:n])
    first[:n], second[:n] = low, high
    sort = np.lexsort((second, first, np.arange(len(first)) >= n))
    turned = pairs._replace(
        first=first, second=second, place=sign * pairs.place, memory=sign * pairs.memory,
        moment=sign[:, :3] * pairs.moment,
    )  # fmt: skip
    return Pairs(*(column[sort] for column in turned[:-1]), n)


@kernel(inline=True)
def pair_size(pairs, radius, k):
    """The smaller radius of pair ``k``."""
    size = radius[pairs.second[k]]
    return min(size, radius[pairs.first[k]]) if k < pairs.balls else size


@kernel
def recall(old, out, begin, end, moments):
    """Take over impulse, status and what was lost, and ``moments`` if there are, of the pairs that stand in ``old``.

    Of the rows from ``begin`` on, before ``end``.
    """
    memory, moment, status, source = out.memory, out.moment, out.status, out.source
    old_memory, old_moment, old_status = old.memory, old.moment, old.status
    for at in range(np.uint64(begin), np.uint64(end)):  # unsigned: no test for negative indices
        if source[at] < 0:
            status[at] = OPEN
            set_numbers_of(memory, at, 0, spread(0.0))
            for c in range(3):
                moment[at, c] = 0.0
        else:
            k = np.uint64(source[at])
            status[at] = old_status[k]
            set_numbers_of(memory, at, 0, numbers_of(old_memory, k, 0))
            if moments:
                for c in range(3):
                    moment[at, c] = old_moment[k, c]


@kernel
def rows_before(first, count, ball):
    """How many of the first ``count`` rows of the sorted list ``first`` are of balls before ``ball``."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if first[middle] < ball:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def move_down(pairs, begin, end, at, meeting):
    """Move what was found in the rows from ``begin`` on, before ``end``, down to row ``at``: some columns a thread."""
    if meeting.thread == 0:
        shift_down(pairs.place, begin, end, at)
        shift_down(pairs.law, begin, end, at)
    if meeting.thread == meeting.threads - 1:
        shift_down(pairs.first, begin, end, at)
        shift_down(pairs.second, begin, end, at)
        shift_down(pairs.a, begin, end, at)
        shift_down(pairs.b, begin, end, at)
        shift_down(pairs.kind, begin, end, at)
        shift_down(pairs.source, begin, end, at)


@kernel
def smallest(radius):
    """The smallest of the radii (S,), four at once: one alone would wait for the one before."""
    count, least, rest = np.uint64(radius.size), spread(np.inf), np.inf
    whole = count - count % np.uint64(4)
    for i in range(np.uint64(0), whole, np.uint64(4)):
        j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
        least = smaller(least, put_side_by_side(radius[i], radius[j], radius[k], radius[l]))
    for i in range(whole, count):
        rest = min(rest, radius[i])
    return min(rest, min(lanes(least)))


@kernel
def deepest_pair(place, first, second, balls, radius, begin, end):
    """The largest overlap (m), the largest one over the smaller radius, and its pair; -1 where none overlaps.

    Of the rows from ``begin`` on, before ``end``; and the largest gap among them, m.
    """
    depth, share, worst, least, wide = 0.0, 0.0, -1, smallest(radius), 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        deep = -place[k, GAP]
        depth, wide = max(depth, deep), max(wide, -deep)
        if deep > share * least:  # seldom: no radius is looked up for the others
            size = radius[second[k]]
            size = min(size, radius[first[k]]) if k < balls else size
            if deep > share * size:
                share, worst = deep / size, np.int64(k)
    return depth, share, worst, wide


@kernel
def lost_most(memory, first, second, balls, radius):
    """The most that a pair has lost, over the smaller radius."""
    most = 0.0
    for k in range(first.size):
        lost = memory[k, LOST]
        if lost > 0.0:
            size = radius[second[k]]
            most = max(most, lost / (min(size, radius[first[k]]) if k < balls else size))
    return most
