"""Which groups of bodies gain energy, where each process has its own contacts and knows the bodies of these: `gains`.

A process joins the bodies of its contacts. Of groups that reach a border, and of these alone, it tells the bodies
there, whom they hang together with, and the powers; all processes put these together alike. The contacts of a group
that may gain are then added up in the order of the sweeps, even groups, odd ones, the shared one: by the process that
has the group, or by all where several have it.
"""

import numpy as np

from ..._jit import kernel
from ..crew import enlist
from ..entries import common
from ..equations.contract import ALL, GROUPS, SHARED
from ..gains import SURE, Room, factors, find_contacts, join, known_powers, occupied_groups, powers_of, unite
from ..threads import meet

PARTS = ((0, GROUPS), (GROUPS, SHARED), (SHARED, ALL))  # of the groups of contacts, in the order of the sweeps
LOCAL = -2  # a group of bodies that no other process has


@kernel
def join_here(rows, kinds, bodies, room, meeting):
    """Join the ``bodies`` (n,) of the contacts here, and find the powers of each group: in the row that leads it."""
    enlist(meeting)
    groups, thread = room.groups, meeting.thread
    group, powers = groups[thread], room.sums[thread]
    for k in range(bodies.size):
        i = bodies[k]
        group[i], powers[i, 0], powers[i, 1] = i, 0.0, 0.0
    first, after = occupied_groups(kinds, meeting)
    for parity in range(2):
        for at in range(len(kinds)):
            kind = common(kinds, at)
            cuts = kind.plan.cuts
            join(kind.a, kind.b, kind.plan.order[cuts[parity * GROUPS + first] : cuts[parity * GROUPS + after]], group)
    meet(meeting, rows)
    if thread == 0:
        for at in range(len(kinds)):
            kind = common(kinds, at)
            join(kind.a, kind.b, kind.plan.order[kind.plan.cuts[SHARED] :], group)
            room.ends[at] = kind.plan.cuts[:ALL]
        lead(groups, bodies)
    meet(meeting, rows)
    for parity in range(2):
        for at in range(len(kinds)):
            cuts = common(kinds, at).plan.cuts
            begin, end = cuts[parity * GROUPS + first], cuts[parity * GROUPS + after]
            known_powers(kinds, at, (begin, end, groups[0], powers))
    meet(meeting, rows)
    if thread == 0:
        for at in range(len(kinds)):
            cuts = common(kinds, at).plan.cuts
            known_powers(kinds, at, (cuts[SHARED], cuts[ALL], groups[0], powers))
        for k in range(bodies.size):
            i = bodies[k]
            for other in range(1, meeting.threads):
                powers[i, 0] += room.sums[other, i, 0]
                powers[i, 1] += room.sums[other, i, 1]


@kernel
def lead(groups, bodies):
    """Join in the first of the ``groups`` what threads have joined; each of the ``bodies`` then follows what leads."""
    group = groups[0]
    for k in range(bodies.size):
        i = np.int64(bodies[k])
        for other in range(1, groups.shape[0]):
            if groups[other, i] != i:
                unite(i, np.int64(groups[other, i]), group)
    for k in range(bodies.size):
        i = np.int64(group[bodies[k]])
        while group[i] != i:
            i = group[i]
        group[bodies[k]] = i


@kernel
def hang_together(pairs, group):
    """Join the ``pairs`` (n, 2) of places in ``group`` (g,), which then has the first place of each group."""
    for k in range(pairs.shape[0]):
        unite(pairs[k, 0], pairs[k, 1], group)
    for i in range(group.size):
        group[i] = group[group[i]]


@kernel
def number_groups(bodies, group, powers, marks, seen, count):
    """Number the groups that may gain, from ``count`` on, and note in ``seen`` those of the bodies; their number.

    ``marks`` (N,), where a row leads a group: the number of one that others have too, -1 where it gains nothing, or
    `LOCAL`.
    """
    for k in range(bodies.size):
        i = np.int64(bodies[k])
        if group[i] == i and marks[i] == LOCAL:
            marks[i] = -1
            if powers[i, 0] > -SURE * powers[i, 1]:
                marks[i], count = count, count + 1
    for k in range(bodies.size):
        seen[bodies[k]] = marks[group[bodies[k]]]
    return count


@kernel
def terms_of(free, rows, kinds, at, room, first, after, nobody):
    """(n, 4) of contacts that may gain, in the groups of contacts from ``first`` on, before ``after``.

    Each has its group of bodies, and what it adds to its sums. ``nobody`` (N,): zeros.
    """
    kind, total, n = common(kinds, at), 0, 0
    few, cuts, ends, seen = kind.plan.few, kind.plan.cuts, room.ends[at], room.seen
    for group in range(first, after):
        total += ends[group] - cuts[group]
    out, sums = np.empty((total, 4)), np.zeros((1, 3))
    for group in range(first, after):
        for k in range(cuts[group], ends[group]):
            i, j = kind.a[few[k]], kind.b[few[k]]
            sums[:] = 0.0
            powers_of(kinds, at, (free, rows, few[k : k + 1], nobody, sums))
            out[n, 0] = seen[i] if seen[i] >= 0 else seen[j]
            out[n, 1], out[n, 2], out[n, 3] = sums[0, 0], sums[0, 1], sums[0, 2]
            n += 1
    return out


@kernel
def add_terms(terms, sums):
    """Add the ``terms`` (n, 4) of `terms_of` to the ``sums`` (G, 3), one after the other."""
    for n in range(terms.shape[0]):
        g = int(terms[n, 0])
        for c in range(3):
            sums[g, c] += terms[n, 1 + c]


@kernel
def slowed(bodies, group, factor):
    """Those of the ``bodies`` (n,) whose group has a ``factor`` below one."""
    out, count = np.empty(bodies.size, dtype=np.uint32), 0
    for k in range(bodies.size):
        g = group[bodies[k]]
        if g >= 0 and factor[g] < 1.0:
            out[count] = bodies[k]
            count += 1
    return out[:count]


def _across(team, border, room: Room) -> int:
    """Mark the groups that reach the ``border`` (n,) with their numbers, from 0 on, the same on all processes.

    Those of other processes are known by the bodies there. Returns how many of them may gain.
    """
    leaders = np.unique(room.groups[0][border])
    told = np.stack([border, room.groups[0][border]], axis=1).astype(np.int64)
    pairs, sums = team.tell(told, np.concatenate([leaders[:, None], room.sums[0, leaders]], axis=1))
    nodes = np.unique(pairs)
    group, total = np.arange(len(nodes)), np.zeros((len(nodes), 2))
    hang_together(np.searchsorted(nodes, pairs), group)
    np.add.at(total, group[np.searchsorted(nodes, sums[:, 0])], sums[:, 1:])
    gains = (group == np.arange(len(nodes))) & (total[:, 0] > -SURE * total[:, 1])
    number = np.where(gains, np.cumsum(gains) - 1, -1)
    room.border[leaders] = number[group[np.searchsorted(nodes, leaders)]]
    return int(np.count_nonzero(gains))


def gains_of_all(team, domain, rows, free, kinds, room: Room, nobody) -> tuple:
    """`gains.gains` where processes know the bodies of their ``domain`` (`Domains`) alone; ``nobody`` (N,): zeros.

    Told are 16 bytes for a body on a border, 24 for each group there, and 32 for each contact of such a group that may
    gain. In the place of the least factor of all processes: 1 where none has less, else 0.
    """
    alike, bodies = team.alike, domain.own
    alike.share(join_here, rows, kinds, bodies, room)
    room.border[room.groups[0][bodies]] = LOCAL
    border = np.concatenate([border.bodies for border in domain.borders])
    across = _across(team, border, room)
    count = number_groups(bodies, room.groups[0], room.sums[0], room.border, room.seen, across)
    alike.share(find_contacts, kinds, room)
    mine = [terms_of(free, rows, kinds, k, room, *x, nobody) for k in range(len(kinds)) for x in PARTS]
    told = team.tell(*[terms[terms[:, 0] < across] for terms in mine]) if across else mine[:0]
    sums = np.zeros((count, 3))
    for terms in [terms[terms[:, 0] >= across] for terms in mine] + told:
        add_terms(terms, sums)
    factor, least = factors(sums)
    return room.seen, factor, 0.0 if team.any(least < 1.0) else 1.0
