"""Which groups of bodies gain energy by what a solver left: see `restraint`.

In a heap it is mostly single grains that gain, while the heap itself does not. Which groups may is found from the
powers that the last look at the residual has left with its contacts. Only the contacts of these groups are then
measured again.

Each thread joins the bodies of its own groups of contacts, those of a sweep (`order`); processes that have different
contacts do it their own way (`ranks.groups`). Which groups of bodies may gain need not be exact. What decides is added
up contact by contact in the order of the sweeps: no bit hangs on who did it.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from .._jit import kernel
from .crew import enlist
from .entries import KNOWN, PLACES, POWERS, TABLE, by_address, common, there
from .equations.contract import ALL, GROUPS, SHARED, add_known, add_powers
from .growing import grown, longer
from .threads import meet, part

ROUNDING = 1e-14  # of the powers summed without sign: not a gain
HOOKS = 2  # rounds over all contacts before they are joined one by one; with one of two threads waits for the other
SURE = 1e-9  # of the powers as they were measured: a loss of more than this is a loss


class Room(NamedTuple):
    """What is noted of the bodies: made once, since new memory takes longer than what is done with it."""

    own: np.ndarray  # (N,) its row where a body moves freely, else -1
    groups: np.ndarray  # (threads, N) by the contacts of each thread; the first gets those by all
    border: np.ndarray  # (N,) bodies that several threads have joined to others, in the part of each thread
    seen: np.ndarray  # (N,) the group where it may gain, else -1
    sums: np.ndarray  # (threads, N, 2) powers of each group by the contacts of each thread, with sign and without
    counts: np.ndarray  # (threads,) of what each thread has found
    ends: np.ndarray  # (kinds, ALL) where the contacts that may gain end in ``few``; they begin where their group does


def room(rows: np.ndarray, kinds: int, threads: int = 1, known: Room | None = None) -> Room:
    """For the bodies ``rows`` (N, 8) and so many kinds of contacts.

    ``known``: that for the first of these bodies, which is used no more.
    """
    if known is None or len(known.groups) != threads:
        none = np.zeros(0, dtype=np.int32)
        counts, ends = np.zeros(threads, dtype=np.int64), np.zeros((kinds, ALL), dtype=np.int64)
        known = Room(none, none.reshape(threads, 0), none, none, np.empty((threads, 0, 2)), counts, ends)
    n, first = len(rows), len(known.own)
    own = np.where(rows[first:, 6] > 0.0, np.arange(first, n), -1).astype(np.int32)
    return known._replace(
        own=grown(known.own, first, own), groups=longer(known.groups, threads, n), border=longer(known.border, n),
        seen=longer(known.seen, n), sums=longer(known.sums, threads, n, 2),
    )  # fmt: skip


@kernel(inline=True)
def unite(i, j, group):
    """Join the groups of two bodies; the smaller row leads. ``group`` (N,): see `join`. Returns the row that leads."""
    while group[i] != i:
        group[i] = group[group[i]]
        i = group[i]
    while group[j] != j:
        group[j] = group[group[j]]
        j = group[j]
    i, j = min(i, j), max(i, j)
    group[j] = i
    return i


@kernel
def hook(a, b, some, group):
    """Let what leads the one body of each of the contacts ``some`` follow what leads the other, where that is lower.

    Each follows the lowest of those that it meets, so that not all are joined: see `join_own`. There is no branch,
    which nobody could foresee.
    """
    for n in range(np.uint64(some.size)):
        k = some[n]
        i, j = group[a[k]], group[b[k]]
        low, high = min(i, j), max(i, j)
        now = group[high]
        group[high] = low if (low >= 0) & (low < now) else now


@kernel
def look_up(group):
    """Let each body follow the one that leads; ``group`` (N,): see `join`."""
    for i in range(np.uint64(group.size)):
        if group[i] >= 0:
            group[i] = group[group[i]]


@kernel
def join(a, b, some, group):
    """Join the groups of the two bodies of each of the contacts ``some``, if both have one.

    ``group`` (N,) has a row of the group of each body, none above its own; -1 where it does not move freely.
    """
    for n in range(np.uint64(some.size)):
        k = some[n]
        i, j = group[a[k]], group[b[k]]
        if i < 0 or j < 0 or i == j:
            continue
        group[a[k]] = group[b[k]] = unite(i, j, group)


@kernel
def label(group):
    """Replace the rows in ``group`` (N,), none above its own, by the number of the group; returns their count."""
    count = 0
    for i in range(group.size):
        if group[i] == i:
            group[i] = count
            count += 1
        elif group[i] >= 0:
            group[i] = group[group[i]]
    return count


@kernel
def factors(sums):
    """(G,) by what the impulses of each group are to be multiplied, and the least; ``sums`` (G, 3): see `Kernels`."""
    out, least = np.empty(sums.shape[0]), 1.0
    for g in range(out.size):
        gain, size = sums[g, 0], sums[g, 1]
        out[g] = 1.0
        if gain > ROUNDING * sums[g, 2]:
            out[g] = max(0.0, 1.0 - gain / size) if size > 0.0 else 0.0
            least = min(least, out[g])
    return out, least


@kernel
def known_of_kind(place, begin, end, group, sums):
    """`add_known` of the kind at a ``place``."""
    kind = there(place)
    return add_known(kind.contacts, kind.plan.order, begin, end, group, sums)


@kernel
def powers_of_kind(place, free, rows, some, group, sums):
    """`add_powers` of the kind at a ``place``."""
    add_powers(free, rows, there(place).contacts, some, group, sums)


GROUP = types.Array(types.int32, 1, "C")
known_powers = by_address(KNOWN, known_of_kind, types.boolean, types.int64, types.int64, GROUP, TABLE)
powers_of = by_address(POWERS, powers_of_kind, types.none, TABLE, TABLE, PLACES, GROUP, TABLE)


@kernel
def occupied_groups(kinds, meeting):
    """The part of a thread in those groups of one parity that have contacts: the first, and that after the last."""
    first, after = GROUPS, 0
    for at in range(len(kinds)):
        cuts = common(kinds, at).plan.cuts
        for group in range(SHARED):
            if cuts[group] < cuts[group + 1]:
                first, after = min(first, group % GROUPS), max(after, group % GROUPS + 1)
    begin, end = part(max(after - first, 0), meeting)
    return first + begin, first + end


@kernel
def join_own(kinds, room, meeting):
    """Join the bodies of a thread's contacts, in its own row of the ``groups``.

    After some rounds of `hook` few contacts are left between different groups: these are joined one by one.
    """
    group = room.groups[meeting.thread]
    group[:] = room.own
    first, after = occupied_groups(kinds, meeting)
    for number in range(HOOKS + 1):
        for at in range(len(kinds)):
            kind = common(kinds, at)
            order, cuts = kind.plan.order, kind.plan.cuts
            for parity in range(2 + (meeting.thread == 0)):
                begin, end = cuts[SHARED], cuts[ALL]
                if parity < 2:
                    begin, end = cuts[parity * GROUPS + first], cuts[parity * GROUPS + after]
                if number < HOOKS:
                    hook(kind.a, kind.b, order[begin:end], group)
                else:
                    join(kind.a, kind.b, order[begin:end], group)
        if number < HOOKS:
            look_up(group)


@kernel
def join_threads(room, rows, meeting):
    """Join what the threads have joined, in the first row of the ``groups``.

    A body that leads there, or is alone, follows the one that it follows elsewhere: each thread sees to a part of the
    bodies. Few have contacts of several threads; these are left to the first one.
    """
    groups, border, count = room.groups, room.border, 0
    begin, end = part(border.size, meeting)
    for i in range(begin, end):
        for other in range(1, meeting.threads):
            if groups[other, i] == groups[0, i]:
                continue
            if groups[0, i] == i:
                groups[0, i], groups[other, i] = groups[other, i], i
            elif groups[other, i] != i:
                border[begin + count] = i
                count += 1
                break
    room.counts[meeting.thread] = count
    meet(meeting, rows)
    if meeting.thread == 0:
        for thread in range(meeting.threads):
            begin = border.size * thread // meeting.threads
            for k in range(begin, begin + room.counts[thread]):
                for other in range(1, meeting.threads):
                    unite(border[k], groups[other, border[k]], groups[0])


@kernel
def join_all(rows, kinds, room, meeting):
    """Join the bodies of all contacts at hand: the first row of ``groups`` then has a row of the group of each body."""
    join_own(kinds, room, meeting)
    meet(meeting, rows)
    if meeting.threads > 1:
        join_threads(room, rows, meeting)
        meet(meeting, rows)


@kernel
def add_to_groups(rows, kinds, count, room, meeting):
    """Add up the powers of the contacts at hand in ``sums``, for the ``count`` groups; whether all are known."""
    group, mine, known = room.groups[0], room.sums[meeting.thread, :count], True
    mine[:] = 0.0
    first, after = occupied_groups(kinds, meeting)
    for at in range(len(kinds)):
        cuts = common(kinds, at).plan.cuts
        for parity in range(2):
            begin, end = cuts[parity * GROUPS + first], cuts[parity * GROUPS + after]
            known &= known_powers(kinds, at, (begin, end, group, mine))
        if meeting.thread == 0:
            known_powers(kinds, at, (cuts[SHARED], cuts[ALL], group, mine))
    meet(meeting, rows)
    return known


@kernel
def may_gain(sums, g):
    """Whether a group may gain, by the ``sums`` (threads, G, 2)."""
    power, size = 0.0, 0.0
    for thread in range(sums.shape[0]):
        power, size = power + sums[thread, g, 0], size + sums[thread, g, 1]
    return power > -SURE * size


@kernel
def contacts_of(a, b, group, some, out):
    """Those of the contacts ``some`` that have a ``group`` into ``out``; returns how many."""
    count = 0
    for n in range(some.size):
        k = some[n]
        out[count] = k
        count += group[a[k]] >= 0 or group[b[k]] >= 0
    return count


@kernel
def find_contacts(kinds, room, meeting):
    """The contacts of groups of bodies that may gain, into ``few`` of the plans; each thread those of its groups."""
    first, after = occupied_groups(kinds, meeting)
    for at in range(len(kinds)):
        kind = common(kinds, at)
        plan = kind.plan
        for group in range(ALL):
            if group == SHARED:
                mine = meeting.thread == 0
            else:
                mine = first <= group % GROUPS < after
            begin, end = plan.cuts[group], plan.cuts[group + 1]
            if mine and begin < end:
                count = contacts_of(kind.a, kind.b, room.seen, plan.order[begin:end], plan.few[begin:end])
                room.ends[at, group] = begin + count


@kernel
def find_suspects(rows, kinds, count, known, room, meeting):
    """Find those of the ``count`` groups that may gain, and their contacts; all of them where powers are not known."""
    group, seen, suspect = room.groups[0], room.seen, room.border
    if meeting.thread == 0:
        for at in range(len(kinds)):
            room.ends[at] = common(kinds, at).plan.cuts[:ALL]
    begin, end = part(count, meeting)
    for g in range(begin, end):
        suspect[g] = not known or may_gain(room.sums, g)
    meet(meeting, rows)
    begin, end = part(group.size, meeting)
    for i in range(begin, end):
        g = group[i]
        seen[i] = g if g >= 0 and suspect[g] else -1
    meet(meeting, rows)
    find_contacts(kinds, room, meeting)
    meet(meeting, rows)


@kernel
def gains(rows, free, kinds, one, room, meeting):
    """The group (N,) of each body, those that hang together by contacts, the factor (G,) of each, and the least one.

    Bodies that do not move freely have none, -1. ``one``: all hang together, by a cell that moves. The contacts of
    groups that may gain are left in ``few`` of the plans: see `Room`. The residual was measured before.
    """
    enlist(meeting)
    group = room.groups[0]
    if one:
        if meeting.thread == 0:
            group[:] = 0
            room.counts[0] = 1
    else:
        join_all(rows, kinds, room, meeting)
        if meeting.thread == 0:
            room.counts[0] = label(group)
    meet(meeting, rows)
    count = room.counts[0]
    known = add_to_groups(rows, kinds, count, room, meeting) and not one
    find_suspects(rows, kinds, count, known, room, meeting)
    factor, least = np.ones(1), 1.0
    if meeting.thread == 0:
        sums = np.zeros((count, 3))
        for at in range(len(kinds)):
            plan = common(kinds, at).plan
            for contacts in range(ALL):
                begin, end = plan.cuts[contacts], room.ends[at, contacts]
                if begin < end:
                    powers_of(kinds, at, (free, rows, plan.few[begin:end], room.seen, sums))
        factor, least = factors(sums)
    return group, factor, least
