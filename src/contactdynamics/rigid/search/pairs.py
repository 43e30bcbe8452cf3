"""The list of active pairs of balls and planes, with its memory."""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import OPEN
from ..fetch import shift_down
from ..fours import lanes, put_side_by_side, smaller, spread


class Pairs(NamedTuple):
    """The active pairs of a step (K,): pairs of balls, then pairs of a plane and a ball; with their memory."""

    first: np.ndarray  # (K,) ball, or plane for the rows from `balls` on
    second: np.ndarray  # (K,) ball
    a: np.ndarray  # (K,) rows of their bodies
    b: np.ndarray  # (K,)
    law: np.ndarray  # (K,)
    kind: np.ndarray  # (K,) number of the equations that they belong to
    gap: np.ndarray  # (K,) m
    normal: np.ndarray  # (K, 3) from the first to the second
    impulse: np.ndarray  # (K, 3) in space, on the second body, N s
    moment: np.ndarray  # (K, 3) in space, N m s
    status: np.ndarray  # (K,)
    lost: np.ndarray  # (K,) how much deeper it is than the law has it, by what the solver left, m
    source: np.ndarray  # (K,) row of the same pair in the list before, -1 where it is new
    balls: int  # number of pairs of balls


SCRATCH = ("a", "b", "law", "kind", "gap", "normal", "source")  # of the present list alone: no memory


def pair_arrays(room: int, scratch: Pairs | None = None) -> Pairs:
    """Arrays for ``room`` pairs, none of them used; those that are no memory may be shared with another list."""
    first, second, law, source = (np.empty(room, dtype=np.int32) for _ in range(4))
    a, b = (np.empty(room, dtype=np.uint32) for _ in range(2))
    vectors = np.empty((room, 3)), np.empty((room, 3)), np.zeros((room, 3))
    pairs = Pairs(
        first, second, a, b, law, np.empty(room, dtype=np.int8), np.empty(room), *vectors,
        np.empty(room, dtype=np.int8), np.zeros(room), source, 0,
    )  # fmt: skip
    return pairs if scratch is None else pairs._replace(**{name: getattr(scratch, name)[:room] for name in SCRATCH})


class Kept(NamedTuple):
    """What the equations store with the pairs: see `Pairs`."""

    impulse: np.ndarray
    moment: np.ndarray
    status: np.ndarray


def kept(pairs: Pairs) -> Kept:
    """Those arrays alone: a kernel takes fewer of them faster."""
    return Kept(pairs.impulse, pairs.moment, pairs.status)


def renumber(pairs: Pairs, order: np.ndarray) -> Pairs:
    """The pairs when ball ``order[k]`` becomes ball k: sorted again; where the two change places, so does the sign."""
    new, n = np.argsort(order).astype(np.int32), pairs.balls
    first, second = pairs.first.copy(), new[pairs.second]
    first[:n] = new[first[:n]]
    sign = np.ones((len(first), 1))
    sign[:n][first[:n] > second[:n]] = -1.0
    low, high = np.minimum(first[:n], second[:n]), np.maximum(first[:n], second[:n])
    first[:n], second[:n] = low, high
    sort = np.lexsort((second, first, np.arange(len(first)) >= n))
    turned = pairs._replace(
        first=first, second=second, normal=sign * pairs.normal, impulse=sign * pairs.impulse,
        moment=sign * pairs.moment,
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
    impulse, moment, status, lost, source = out.impulse, out.moment, out.status, out.lost, out.source
    old_impulse, old_moment, old_status, old_lost = old.impulse, old.moment, old.status, old.lost
    for at in range(begin, end):
        k = source[at]
        if k < 0:
            status[at], lost[at] = OPEN, 0.0
            for c in range(3):
                impulse[at, c] = moment[at, c] = 0.0
        else:
            status[at], lost[at] = old_status[k], old_lost[k]
            for c in range(3):
                impulse[at, c] = old_impulse[k, c]
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
        shift_down(pairs.normal, begin, end, at)
        shift_down(pairs.law, begin, end, at)
    if meeting.thread == meeting.threads - 1:
        shift_down(pairs.first, begin, end, at)
        shift_down(pairs.second, begin, end, at)
        shift_down(pairs.a, begin, end, at)
        shift_down(pairs.b, begin, end, at)
        shift_down(pairs.kind, begin, end, at)
        shift_down(pairs.gap, begin, end, at)
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
def deepest_pair(gap, first, second, balls, radius, begin, end):
    """The largest overlap (m), the largest one over the smaller radius, and its pair; -1 where none overlaps.

    Of the rows from ``begin`` on, before ``end``.
    """
    depth, share, worst, least = 0.0, 0.0, -1, smallest(radius)
    for k in range(np.uint64(begin), np.uint64(end)):
        depth = max(depth, -gap[k])
        if -gap[k] > share * least:  # seldom: no radius is looked up for the others
            size = radius[second[k]]
            size = min(size, radius[first[k]]) if k < balls else size
            if -gap[k] > share * size:
                share, worst = -gap[k] / size, np.int64(k)
    return depth, share, worst


@kernel
def lost_most(lost, first, second, balls, radius):
    """The most that a pair has lost, over the smaller radius."""
    most = 0.0
    for k in range(lost.size):
        if lost[k] > 0.0:
            size = radius[second[k]]
            most = max(most, lost[k] / (min(size, radius[first[k]]) if k < balls else size))
    return most
