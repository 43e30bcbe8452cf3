"""Which groups of bodies gain energy by what a solver left: see `restraint`.

In a heap it is mostly single grains that gain, while the heap itself does not. Which groups may is found from the
bodies: the impulses of a group have on its free bodies the power sum (u - u_free) . M u. Only the powers of the
contacts of these groups are then added up.

Each thread joins the bodies of its own groups of contacts, those of a sweep (`order`); processes that have different
contacts do it their own way (`ranks.groups`). Which groups of bodies may gain need not be exact. What decides is added
up contact by contact in the order of the sweeps: no bit hangs on who did it.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from .._jit import kernel
from .entries import BEYOND, PLACES, POWERS, TABLE, by_address, common, there
from .equations.contract import ALL, GROUPS, SHARED, add_beyond, add_powers
from .threads import meet, part

ROUNDING = 1e-14  # of the powers summed without sign: not a gain
SURE = 1e-9  # of the same, taken from the bodies: a loss of more than this is a loss


class Room(NamedTuple):
    """What is noted of the bodies: made once, since new memory takes longer than what is done with it."""

    own: np.ndarray  # (N,) its row where a body moves freely, else -1
    groups: np.ndarray  # (threads, N) by the contacts of each thread; the first gets those by all
    border: np.ndarray  # (N,) bodies that several threads have joined to others, in the part of each thread
    seen: np.ndarray  # (N,) the group where it may gain, else -1
    powers: np.ndarray  # (N, 2) on each body, with sign and without
    sums: np.ndarray  # (parts, N, 2) the same of groups, of each part of the bodies
    counts: np.ndarray  # (threads,) of what each thread has found
    ends: np.ndarray  # (kinds, ALL) where the contacts that may gain end in ``few``; they begin where their group does


def room(rows: np.ndarray, kinds: int, threads: int = 1, parts: int = 0) -> Room:
    """For the bodies ``rows`` (N, 8) and so many kinds of contacts; ``parts`` of sums, one for each thread or so many.

    Processes that may have different numbers of threads take one: they must find the same.
    """
    n = len(rows)
    own = np.where(rows[:, 6] > 0.0, np.arange(n), -1).astype(np.int32)
    places = [np.empty_like(own) for _ in range(2)]
    return Room(
        own, np.empty((threads, n), dtype=np.int32), *places, np.empty((n, 2)), np.empty((parts or threads, n, 2)),
        np.zeros(threads, dtype=np.int64), np.zeros((kinds, ALL), dtype=np.int64),
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
def join(a, b, some, group):
    """Join the groups of the two bodies of each of the contacts ``some``, if both have one.

    ``group`` (N,) has a row of the group of each body, none above its own; -1 where it does not move freely.
    """
    for n in range(some.size):
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
def add_own_powers(rows, free, kappa, own, begin, end, powers):
    """Add what impulses do to the free bodies from row ``begin`` on, before ``end``: (u - u_free) . M u of balls."""
    for i in range(begin, end):
        if own[i] >= 0:
            mass, power, size = 1.0 / rows[i, 6], powers[i, 0], powers[i, 1]
            turning = mass / kappa
            for c in range(3):
                x = mass * (rows[i, c] - free[i, c]) * rows[i, c]
                y = turning * (rows[i, 3 + c] - free[i, 3 + c]) * rows[i, 3 + c]
                power, size = power + x + y, size + abs(x) + abs(y)
            powers[i, 0], powers[i, 1] = power, size


@kernel
def add_to_groups(powers, group, begin, end, sums):
    """Add the ``powers`` of bodies from row ``begin`` on, before ``end``, to the ``sums`` (G, 2) of their groups."""
    for i in range(begin, end):
        g = group[i]
        if g >= 0:
            sums[g, 0] += powers[i, 0]
            sums[g, 1] += powers[i, 1]


@kernel
def may_gain(sums, g):
    """Whether a group may gain, by the ``sums`` (parts, G, 2) of parts of its bodies; all in contact are balls."""
    power, size = 0.0, 0.0
    for k in range(sums.shape[0]):
        power, size = power + sums[k, g, 0], size + sums[k, g, 1]
    return power > -SURE * size


@kernel
def suspects(room, group, count, rows, meeting):
    """Note in ``seen`` the groups, ``count`` of them, that may gain by the ``powers`` on their bodies."""
    sums, n = room.sums[:, :count], group.size
    for k in range(meeting.thread, sums.shape[0], meeting.threads):
        sums[k] = 0.0
        add_to_groups(room.powers, group, n * k // sums.shape[0], n * (k + 1) // sums.shape[0], sums[k])
    meet(meeting, rows)
    begin, end = part(count, meeting)
    for g in range(begin, end):
        room.border[g] = may_gain(sums, g)
    meet(meeting, rows)
    begin, end = part(n, meeting)
    for i in range(begin, end):
        g = group[i]
        room.seen[i] = g if g >= 0 and room.border[g] else -1


@kernel
def beyond_of_kind(place, rows, begin, end, own, powers):
    """`add_beyond` of the kind at a ``place``."""
    return add_beyond(rows, there(place).contacts, begin, end, own, powers)


@kernel
def powers_of_kind(place, free, rows, some, group, sums):
    """`add_powers` of the kind at a ``place``."""
    add_powers(free, rows, there(place).contacts, some, group, sums)


GROUP = types.Array(types.int32, 1, "C")
beyond = by_address(BEYOND, beyond_of_kind, types.boolean, TABLE, types.int64, types.int64, GROUP, TABLE)
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
def find_powers(rows, kinds, room, meeting):
    """The powers on bodies of targets and of other bodies; whether they are known: all bodies in contact are balls.

    A body gets them from its even group of contacts, then from its odd one.
    """
    own, powers, known = room.own, room.powers, True
    begin, end = part(own.size, meeting)
    powers[begin:end] = 0.0
    first, after = occupied_groups(kinds, meeting)
    for parity in range(2):
        meet(meeting, rows)
        for at in range(len(kinds)):
            cuts = common(kinds, at).plan.cuts
            low, high = cuts[parity * GROUPS + first], cuts[parity * GROUPS + after]
            known &= beyond(kinds, at, (rows, low, high, own, powers))
    meet(meeting, rows)
    if meeting.thread == 0:
        for at in range(len(kinds)):
            cuts = common(kinds, at).plan.cuts
            beyond(kinds, at, (rows, cuts[SHARED], cuts[ALL], own, powers))
    return known


@kernel
def join_own(kinds, room, meeting):
    """Join the bodies of a thread's contacts, in its own row of the ``groups``."""
    group = room.groups[meeting.thread]
    group[:] = room.own
    first, after = occupied_groups(kinds, meeting)
    for at in range(len(kinds)):
        kind = common(kinds, at)
        order, cuts = kind.plan.order, kind.plan.cuts
        for parity in range(2):
            join(kind.a, kind.b, order[cuts[parity * GROUPS + first] : cuts[parity * GROUPS + after]], group)
        if meeting.thread == 0:
            join(kind.a, kind.b, order[cuts[SHARED] :], group)


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
def find_own(rows, kinds, one, room, meeting):
    """What the contacts at hand join, and what they do beyond the powers on balls; whether this is known.

    The first row of ``groups`` then has a row of the group of each body, as `join` has it.
    """
    join_own(kinds, room, meeting)
    known = not one
    if known:
        known = find_powers(rows, kinds, room, meeting)
    meet(meeting, rows)
    if meeting.threads > 1:
        join_threads(room, rows, meeting)
        meet(meeting, rows)
    return known


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
            if mine:
                begin, end = plan.cuts[group], plan.cuts[group + 1]
                count = contacts_of(kind.a, kind.b, room.seen, plan.order[begin:end], plan.few[begin:end])
                room.ends[at, group] = begin + count


@kernel
def find_suspects(rows, free, kinds, kappa, one, known, room, meeting):
    """Number the groups in the first row of ``groups``, and find those that may gain, and their contacts.

    Returns how many groups there are.
    """
    group, seen, count = room.groups[0], room.seen, 1
    begin, end = part(group.size, meeting)
    if meeting.thread == 0:
        room.counts[0] = label(group)
        for at in range(len(kinds)):
            room.ends[at] = common(kinds, at).plan.cuts[:ALL]
    if known:
        add_own_powers(rows, free, kappa, room.own, begin, end, room.powers)
    meet(meeting, rows)
    if known:
        count = room.counts[0]
        suspects(room, group, count, rows, meeting)
    else:
        for i in range(begin, end):
            if one:
                group[i] = 0
            seen[i] = group[i]
        if not one:
            count = room.counts[0]
    meet(meeting, rows)
    find_contacts(kinds, room, meeting)
    meet(meeting, rows)
    return count


@kernel
def gains(rows, free, kinds, kappa, one, room, meeting):
    """The group (N,) of each body, those that hang together by contacts, the factor (G,) of each, and the least one.

    Bodies that do not move freely have none, -1. ``one``: all hang together, by a cell that moves. The contacts of
    groups that may gain are left in ``few`` of the plans: see `Room`.
    """
    known = find_own(rows, kinds, one, room, meeting)
    count = find_suspects(rows, free, kinds, kappa, one, known, room, meeting)
    factor, least = np.ones(1), 1.0
    if meeting.thread == 0:
        sums = np.zeros((count, 3))
        for at in range(len(kinds)):
            plan = common(kinds, at).plan
            for group in range(ALL):
                begin, end = plan.cuts[group], room.ends[at, group]
                if begin < end:
                    powers_of(kinds, at, (free, rows, plan.few[begin:end], room.seen, sums))
        factor, least = factors(sums)
    return room.groups[0], factor, least
