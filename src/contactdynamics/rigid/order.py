"""In which order the contacts of a step are swept.

The bodies in contact are cut into slabs, wider than the distance between any two bodies in contact, across the axis
along which they spread most. A contact belongs to the slab of the lower one of its bodies. Contacts of two even slabs
share no free body, so that threads may work on them at the same time; then come the odd ones. The slabs of each kind
are put together to groups of about as many contacts, the same for all kinds of equations: 8 of them or, where there are
many contacts, more, `GROUPS` at most, evenly over the places that there are for them. Which thread takes which group
changes nothing: the result is the same to the bit for any number of threads. Each takes neighbouring ones, so that its
bodies stay in the cache of its core.

In a periodic cell bodies stand where they lie inside it. Contacts between the first and the last slabs, and those that
act on a cell that moves, are in a group of their own, which one thread sweeps after all others.

Diagonal contacts stand in memory in the order of a sweep. In a group, contacts from `STREAMS` distant places of its
list follow each other: two contacts of one body in a row would make the processor wait for the velocity just written
(22 against 17 ns per contact). The other kinds stay as they are found, slab by slab.
"""

from typing import NamedTuple

import numpy as np
from numba import literal_unroll

from .._jit import kernel
from ..state import FREE
from .crew import enlist
from .equations.contract import ALL, GROUPS, SHARED
from .search.contract import BORDER, DIAGONAL
from .threads import meet, part

STREAMS, SLABS = 4, 512
FEWEST, WORTH = 8, 8192  # groups of a parity at least; contacts for which there is one more


@kernel
def stride(contacts):
    """Some thousand of so many contacts tell the spread of all: one in so many."""
    return 1 + contacts // 4096


@kernel
def spread(position, bodies, every, total, square):
    """Add up places of one in ``every`` of the bodies (K,) and their squares; returns how many."""
    for k in range(0, bodies.size, every):
        i = bodies[k]
        for c in range(3):
            total[c] += position[i, c]
            square[c] += position[i, c] * position[i, c]
    return (bodies.size + every - 1) // every


@kernel
def grid(total, square, count, open_, reach):
    """The slabs: their axis, width, the first one and how many there are.

    ``total``, ``square``, ``count`` of `spread`; ``open_`` is the largest gap. The axis is that along which the
    contacts spread most; slabs hold nearly all of them, the outer ones what is beyond. ``reach``: no two free bodies
    in contact are farther from each other than this and their gap. The width is ``reach`` times a power of 1.25, and
    the bounds are its multiples: they stay where they are from step to step.
    """
    best, axis, middle, count = 0.0, 0, 0.0, max(1, count)
    for c in range(3):
        mean = total[c] / count
        variance = square[c] / count - mean * mean
        if variance > 1.5 * best:  # the first axis where there is little to choose: slabs do not turn from step to step
            best, axis, middle = variance, c, mean
    extent = 6.0 * np.sqrt(best)
    width = reach if reach > 0.0 else 1.0
    least = max(1.001 * (reach + open_), extent / SLABS)
    while width < least:
        width *= 1.25
    first = np.floor((middle - 0.5 * extent) / width)
    return axis, width, first, int(np.floor((middle + 0.5 * extent) / width) - first) + 1


def slices(position, bodies, reach) -> np.ndarray:
    """The order (N,) of bodies slab by slab; in a slab row by row. ``bodies`` (K,) the second ones of the contacts.

    Where there are none yet, all bodies say along which axis. Gaps do not count: they are in no checkpoint.
    """
    total, square = np.zeros(3), np.zeros(3)
    bodies = bodies if len(bodies) else np.arange(len(position))  # no contact yet
    count = spread(position, bodies, stride(len(bodies)), total, square)
    axis, width, _, _ = grid(total, square, count, 0.0, reach)
    two, three = (k for k in np.argsort(-np.var(position, axis=0), kind="stable") if k != axis)
    cells = np.floor(position / width)
    return np.lexsort((position[:, three], cells[:, two], cells[:, axis]))


@kernel(inline=True)
def slab_of(one, two, kind, across, slabs):
    """The slab of a contact between bodies at home in these slabs; that after the last where it is shared."""
    shared = (kind == BORDER) | across | ((abs(one - two) > 1) & (max(one, two) < slabs))
    return slabs if shared else min(one, two, slabs - 1)


@kernel
def find_slabs(some, home, slabs, begin, end, out):
    """The slabs of the contacts ``some`` (`Candidates`) from ``begin`` on, before ``end``, into ``out`` (end - begin,).

    Without a branch: several contacts at once.
    """
    one, two, kind, across, known, last = some.a, some.b, some.kind, some.across, some.across.size > 0, np.int32(slabs)
    for k in range(np.uint64(begin), np.uint64(end)):
        out[k - np.uint64(begin)] = slab_of(home[one[k]], home[two[k]], kind[k], known and across[k], last)


@kernel
def count_slabs(kind, slab, counts):
    """Count contacts by ``kind`` and ``slab``, both (n,).

    Neighbours are mostly in one slab: a count just written would be waited for, so that a row of them is written once.
    """
    row, column, run = np.int8(0), np.int32(0), 0
    for k in range(np.uint64(slab.size)):
        if kind[k] != row or slab[k] != column:
            counts[row, column] += run
            row, column, run = kind[k], slab[k], 0
        run += 1
    counts[row, column] += run


class Tray(NamedTuple):
    """What the threads that arrange contacts put down for each other."""

    home: np.ndarray  # (N,) the slab of a body; those that do not move follow the others
    counts: np.ndarray  # (threads, kinds, slabs) contacts of each thread's part
    group: np.ndarray  # (slabs + 1,) the group of each slab, and room


def tray(bodies: int, kinds: int, threads: int) -> Tray:
    """For so many bodies, numbers of kinds and threads."""
    counts = np.empty((threads, kinds, SLABS + 3), dtype=np.int64)
    return Tray(np.empty(bodies, dtype=np.int32), counts, np.full(SLABS + 3, SHARED))


@kernel
def arrange(position, kind, rows, reach, candidates, plans, numbers, tray, meeting):
    """The order of a sweep: fills ``order`` and ``cuts`` of the ``plans``, one for each kind of equations.

    ``candidates`` are those of all searches, ``numbers`` says which kinds the plans are for. Of diagonal contacts,
    ``few`` says which pair is to stand at each place. Each thread has a part of the bodies and of the contacts, which
    it counts and then puts behind those of the threads before it: the order does not hang on their number.
    """
    enlist(meeting)
    thread, total, square, count, open_ = meeting.thread, np.zeros(3), np.zeros(3), 0, 0.0
    for some in literal_unroll(candidates):
        count += spread(position, some.b, stride(some.b.size), total, square)
        open_ = max(open_, some.open_)
    axis, width, first, slabs = grid(total, square, count, open_, reach)
    settle(position, kind, axis, 1.0 / width, first, slabs, tray.home, meeting)
    meet(meeting, rows)
    slab = count_all(candidates, slabs, tray, rows, meeting)
    every = add_up(tray.counts, slabs)
    group = group_slabs(every)
    if thread == 0:
        tray.group[: slabs + 1] = group
    put_in_order(candidates, slab, group, every, plans, numbers, tray, rows, meeting)


@kernel
def arrange_own(candidates, slabs, plans, numbers, tray, rows, meeting):
    """`arrange` where homes and groups of slabs are known: the order of those contacts alone."""
    enlist(meeting)
    slab = count_all(candidates, slabs, tray, rows, meeting)
    group = tray.group[: slabs + 1].copy()
    put_in_order(candidates, slab, group, add_up(tray.counts, slabs), plans, numbers, tray, rows, meeting)


@kernel
def count_all(candidates, slabs, tray, rows, meeting):
    """Count the contacts of each thread's part by kind and slab, into the ``tray``; returns their slabs."""
    counts, total, at = tray.counts[meeting.thread, :, : slabs + 1], 0, 0
    for some in literal_unroll(candidates):
        begin, end = part(some.kind.size, meeting)
        total += end - begin
    slab = np.empty(total, dtype=np.int32)
    for kind in range(counts.shape[0]):
        for k in range(slabs + 1):
            counts[kind, k] = 0
    for some in literal_unroll(candidates):
        begin, end = part(some.kind.size, meeting)
        find_slabs(some, tray.home, slabs, begin, end, slab[at:])
        count_slabs(some.kind[begin:end], slab[at : at + end - begin], counts)
        at += end - begin
    meet(meeting, rows)
    return slab


@kernel
def put_in_order(candidates, slab, group, every, plans, numbers, tray, rows, meeting):
    """Fill the ``plans``: ``every`` (kinds, slabs + 1) contacts, ``group`` (slabs + 1,) of each slab: see `arrange`.

    ``slab`` (n,) are those of the contacts of a thread's part.
    """
    counts, thread, slabs = tray.counts, meeting.thread, group.size - 1
    zero = 0 * thread  # a constant would be a type of its own, and what gets it compiled twice
    cuts, at = np.empty(ALL + 1, dtype=np.int64), 0
    for plan in literal_unroll(plans):
        kind = numbers[at]
        at += 1
        start, rank = cut_groups(every[kind], group, plan.cuts if thread == 0 else cuts), zero
        for other in range(thread):
            for k in range(slabs + 1):
                rank += counts[other, kind, k]
                start[k] += counts[other, kind, k]
        fill_order(candidates, slab, kind, start, rank, plan, meeting)
    meet(meeting, rows)
    at = 0
    for plan in literal_unroll(plans):
        if numbers[at] == DIAGONAL or numbers[at] == BORDER:
            stand_in_order(plan, meeting)
        at += 1


@kernel
def settle(position, kind, axis, scale, first, slabs, home, meeting):
    """The slabs of the bodies of a thread into ``home`` (N,); rows of a cell that moves, without places, have none."""
    (begin, end), axis, last = part(position.shape[0], meeting), np.uint64(axis), np.int32(slabs)
    for i in range(np.uint64(begin), np.uint64(end)):
        slab = np.floor(position[i, axis] * scale) - first
        slab = min(slab, slabs - 1.0) if slab > 0.0 else 0.0  # nan has one, too
        home[i] = np.int32(slab) if kind[i] == FREE else last


def as_found(plan, count: int) -> None:
    """Leave ``count`` contacts in the order in which they were found, as one group."""
    plan.order[:count] = np.arange(count)
    plan.cuts[0], plan.cuts[1:] = 0, count


@kernel
def fill_order(candidates, slab, kind, start, rank, plan, meeting):
    """The contacts of one kind in a thread's part, ``slab`` (n,) by slab, into the order of its plan.

    ``start`` (slabs + 1,) is where it begins in each slab, ``rank`` the number of its first contact. Diagonal contacts
    are told by their pairs. Neighbours are mostly in one slab: its next place stays at hand.
    """
    order, by_pair, at = plan.order, kind == DIAGONAL or kind == BORDER, np.uint64(0)
    home, next_ = np.int32(0), np.uint64(start[0])
    for some in literal_unroll(candidates):
        begin, end = part(some.kind.size, meeting)
        for k in range(np.uint64(begin), np.uint64(end)):
            if some.kind[k] == kind:
                if slab[at] != home:
                    start[home], home = next_, slab[at]
                    next_ = np.uint64(start[home])
                order[next_] = k if by_pair else rank
                next_ += np.uint64(1)
                rank += 1
            at += np.uint64(1)


@kernel
def stand_in_order(plan, meeting):
    """Interleave a thread's groups into ``few``; the contacts then stand in this order."""
    order, few, cuts = plan.order, plan.few, plan.cuts
    first, after = part(ALL, meeting)
    for group in range(first, after):
        begin, end = cuts[group], cuts[group + 1]
        interleave(order[begin:end], few[begin:])
        for k in range(np.uint64(begin), np.uint64(end)):
            order[k] = k


@kernel
def add_up(counts, slabs):
    """(kinds, slabs + 1) contacts, from the ``counts`` (threads, kinds, more) of each thread.

    By loops, here and above: Numba's sums over an axis and of two arrays take seconds to compile.
    """
    out = np.zeros((counts.shape[1], slabs + 1), dtype=np.int64)
    for thread in range(counts.shape[0]):
        for kind in range(out.shape[0]):
            for slab in range(slabs + 1):
                out[kind, slab] += counts[thread, kind, slab]
    return out


@kernel
def group_count(contacts):
    """How many groups of each parity so many contacts have: a power of two."""
    count = FEWEST
    while count < GROUPS and 2 * count * WORTH <= contacts:
        count *= 2
    return count


@kernel
def group_slabs(counts):
    """The group (slabs + 1,) of each slab: even and odd ones apart, of about as many contacts of all kinds."""
    slabs, every = counts.shape[1] - 1, 0
    group_of, sizes = np.full(slabs + 1, SHARED), np.zeros(slabs, dtype=np.int64)
    for kind in range(counts.shape[0]):
        for slab in range(slabs):
            sizes[slab] += counts[kind, slab]
            every += counts[kind, slab]
    groups = group_count(every)
    for parity in range(2):
        total, at, group = 0, 0, 0
        for slab in range(parity, slabs, 2):
            total += sizes[slab]
        for slab in range(parity, slabs, 2):
            # a slab goes where its middle is
            while group < groups - 1 and (2 * at + sizes[slab]) * groups > 2 * (group + 1) * total:
                group += 1
            group_of[slab] = parity * GROUPS + group * (GROUPS // groups)
            at += sizes[slab]
    return group_of


@kernel
def cut_groups(counts, group, cuts):
    """Where the groups of one kind of contacts begin, into ``cuts``; returns where each slab begins."""
    begin, at, last, slabs = np.zeros(counts.size, dtype=np.int64), 0, 0, counts.size - 1
    cuts[0] = 0
    for parity in range(2):
        for slab in range(parity, slabs, 2):
            while last < group[slab]:
                last += 1
                cuts[last] = at
            begin[slab] = at
            at += counts[slab]
    while last < SHARED:
        last += 1
        cuts[last] = at
    begin[slabs], cuts[ALL] = at, at + counts[slabs]
    return begin


@kernel
def interleave(list_, out):
    """Write ``list_`` so that contacts from `STREAMS` places of it follow each other."""
    length, one, two, three = np.uint64(list_.size), np.uint64(1), np.uint64(2), np.uint64(3)
    stride, at = (length + three) // np.uint64(STREAMS), np.uint64(0)
    whole = length - min(length, three * stride)  # so many rounds have contacts from all places: written out
    for i in range(whole):
        out[at], out[at + one] = list_[i], list_[i + stride]
        out[at + two], out[at + three] = list_[i + two * stride], list_[i + three * stride]
        at += np.uint64(STREAMS)
    for i in range(whole, stride):
        for k in range(i, length, stride):
            out[at] = list_[k]
            at += one
