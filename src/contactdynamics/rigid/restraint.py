"""What a step leaves may not create energy.

In an exact solution every law has P . (U - r) <= 0: a contact that pushes does not open faster than its target r, and
friction acts against the slip. A solver that stops early leaves impulses that are too large in some places and too
small in others. Where their sum over a group of bodies that hang together is positive, all impulses of the group are
multiplied by the factor below one that makes it zero,

    s = 1 - sum P . (U - r) / sum P . (U - U_free),

which is the minimum of the kinetic energy along P, counted against the targets. The kinetic energy is then at most that
of the free motion less P . W P / 2, as in an exact solution, whatever the tolerance and the number of sweeps; all laws
allow a smaller impulse. The velocities of the group become those of the free motion and of the solution in the
proportion 1 - s to s, so that a heap sinks as one body, by what its ground could not carry.

In a heap it is mostly single grains that gain, while the heap itself does not. Which groups may is found from the
bodies: the impulses of a group have on its free bodies the power sum (u - u_free) . M u. Only the powers of the
contacts of these groups are then added up, and the residual is corrected by theirs alone.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from .._jit import kernel
from .entries import BEYOND, PLACES, POWERS, TABLE, by_address, common, there
from .equations.contract import ALL, GROUPS, SHARED, Mobility, add_beyond, add_powers
from .solvers import measure_groups
from .threads import meet, part

ROUNDING = 1e-14  # of the powers summed without sign: not a gain
SURE = 1e-9  # of the same, taken from the bodies: a loss of more than this is a loss
FEW = 0.5  # of contacts, residual and losses: what is restrained may be measured alone


class Room(NamedTuple):
    """What is noted of the bodies: made once, since new memory takes longer than what is done with it."""

    own: np.ndarray  # (N,) its row where a body moves freely, else -1
    every: np.ndarray  # (N,) all rows
    groups: np.ndarray  # (threads, N) by the contacts of each thread; the first gets those by all
    seen: np.ndarray  # (N,) that of `suspects`
    powers: np.ndarray  # (N, 2) on each body, with sign and without
    counts: np.ndarray  # (kinds, threads) contacts that each thread has found, then all of them


def room(rows: np.ndarray, kinds: int, threads: int = 1) -> Room:
    """For the bodies ``rows`` (N, 8) and so many kinds of contacts."""
    every = np.arange(len(rows), dtype=np.int32)
    own = np.where(rows[:, 6] > 0.0, every, -1).astype(np.int32)
    groups = np.empty((threads, len(rows)), dtype=np.int32)
    return Room(
        own, every, groups, np.empty_like(own), np.empty((len(rows), 2)), np.zeros((kinds, threads), dtype=np.int64)
    )


@kernel
def join(a, b, group):
    """Join the groups of the two bodies of each contact, if both have one; the smaller row leads.

    ``group`` (N,) has a row of the group of each body, -1 where it does not move freely.
    """
    for k in range(a.size):
        i, j = group[a[k]], group[b[k]]
        if i < 0 or j < 0 or i == j:
            continue
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        while group[j] != j:
            group[j] = group[group[j]]
            j = group[j]
        i, j = min(i, j), max(i, j)
        group[j] = group[a[k]] = group[b[k]] = i


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
def suspects(powers, group, count, out):
    """Into ``out`` the ``group``, -1 where it surely gains nothing; where all bodies in contact are balls."""
    sums = np.zeros((count, 2))
    for i in range(group.size):
        g = group[i]
        if g >= 0:
            sums[g, 0] += powers[i, 0]
            sums[g, 1] += powers[i, 1]
    for i in range(group.size):
        g = group[i]
        out[i] = g if g >= 0 and sums[g, 0] > -SURE * sums[g, 1] else -1


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
def find_powers(rows, free, kinds, kappa, room, meeting):
    """The powers on all bodies, into the ``room``; whether they are known: all bodies in contact are balls.

    A body gets what targets and other bodies do from its even group of contacts, then from its odd one.
    """
    own, powers, known = room.own, room.powers, True
    begin, end = part(own.size, meeting)
    powers[begin:end] = 0.0
    first, after = part(GROUPS, meeting)
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
    meet(meeting, rows)
    if known:
        add_own_powers(rows, free, kappa, own, begin, end, powers)
    return known


@kernel
def contacts_of(a, b, group, meeting, out):
    """Those contacts of a thread's part that have a ``group`` into its part of ``out`` (m,); returns how many."""
    begin, end = part(a.size, meeting)
    count = 0
    for k in range(np.uint64(begin), np.uint64(end)):
        out[begin + count] = k
        count += group[a[k]] >= 0 or group[b[k]] >= 0
    return count


@kernel
def put_together(out, counts, m):
    """Move what threads have found in their parts of ``out`` (m,) to its begin; returns it."""
    total, threads = counts[0], counts.size
    for other in range(1, threads):
        begin = m * other // threads
        for k in range(counts[other]):
            out[total + k] = out[begin + k]
        total += counts[other]
    return out[:total]


@kernel
def join_all(rows, free, kinds, kappa, one, room, meeting):
    """The groups, into the ``room``, and how many there are: see `gains`. Those that may gain are seen."""
    thread, known = meeting.thread, not one
    group, seen = room.groups[thread], room.seen
    group[:] = room.own
    for at in range(len(kinds)):
        kind = common(kinds, at)
        begin, end = part(kind.a.size, meeting)
        join(kind.a[begin:end], kind.b[begin:end], group)
    if known:
        known = find_powers(rows, free, kinds, kappa, room, meeting)
    meet(meeting, rows)
    count = 1
    if thread == 0:
        for other in range(1, meeting.threads):
            join(room.every, room.groups[other], group)
        count = label(group)
        if one:
            group[:] = 0
            count = 1
        if known:
            suspects(room.powers, group, count, seen)
        else:
            seen[:] = group
    meet(meeting, rows)
    return count


@kernel
def gains(rows, free, kinds, kappa, one, room, meeting):
    """The group (N,) of each body, those that hang together by contacts, the factor (G,) of each, and the least one.

    Bodies that do not move freely have none, -1. ``one``: all hang together, by a cell that moves. The first thread
    joins what the others have found; the contacts of groups that may gain are left in ``few`` of the plans.
    """
    thread, counts = meeting.thread, room.counts
    count = join_all(rows, free, kinds, kappa, one, room, meeting)
    for at in range(len(kinds)):
        kind = common(kinds, at)
        counts[at, thread] = contacts_of(kind.a, kind.b, room.seen, meeting, kind.plan.few)
    meet(meeting, rows)
    factor, least = np.ones(1), 1.0
    if thread == 0:
        sums = np.zeros((count, 3))
        for at in range(len(kinds)):
            kind = common(kinds, at)
            some = put_together(kind.plan.few, counts[at], kind.a.size)
            powers_of(kinds, at, (free, rows, some, room.seen, sums))
            counts[at, 0] = some.size
        factor, least = factors(sums)
    return room.groups[0], factor, least


@kernel
def slow(rows, free, bodies, group, factor):
    """Velocities of the ``bodies`` when impulses are multiplied by the ``factor`` (G,) of each group."""
    for k in range(bodies.size):
        i = bodies[k]
        s = factor[group[i]]
        for c in range(6):
            rows[i, c] = free[i, c] + s * (rows[i, c] - free[i, c])


@kernel
def restrained(some, a, b, group, factor):
    """The contacts among ``some`` of the groups whose ``factor`` is below one."""
    out, count = np.empty(some.size, dtype=np.uint32), 0
    for n in range(some.size):
        k = some[n]
        g = group[a[k]] if group[a[k]] >= 0 else group[b[k]]
        if factor[g] < 1.0:
            out[count] = k
            count += 1
    return out[:count]


@kernel
def slowed(rows, group, factor):
    """The bodies of these groups."""
    out, count = np.empty(group.size, dtype=np.uint32), 0
    for i in range(group.size):
        if group[i] >= 0 and factor[group[i]] < 1.0 and rows[i, 6] > 0.0:
            out[count] = i
            count += 1
    return out[:count]


@kernel
def tally_kind(rows, mobility, kinds, at, some, sums, sign):
    """`tally` of the contacts ``some`` of the kind in row ``at`` of the table, and its ``sums`` (ALL, 8)."""
    if some.size == 0:
        return True
    plan, found = common(kinds, at).plan, np.empty((1, 8))
    for n in range(some.size):
        plan.few[n] = some[n]
    plan.few_ends[0] = some.size
    measure_groups(kinds, at, (rows, mobility, 0, 1, True, found))
    e, s, w, l = found[0, 0], found[0, 1], found[0, 2], found[0, 3]
    b, k, c, d = found[0, 4], found[0, 5], found[0, 6], found[0, 7]
    error, lost, largest, one = 0.0, 0.0, 0.0, sums[0]
    for g in range(ALL):
        error, lost, largest = error + sums[g, 0], lost + sums[g, 6], max(largest, sums[g, 3])
    well = some.size <= FEW * plan.order.size and e <= FEW * error and c <= FEW * lost and l < largest
    one[0] += sign * e
    one[1] += sign * s
    one[4] += sign * b
    one[5] += sign * k
    one[6] += sign * c
    one[7] += sign * d
    if sign > 0.0 and l > one[3]:
        one[2], one[3] = w, l
    return well


@kernel
def tally_pushes(rows, free, bodies, pushes, sign):
    """`tally` of the ``bodies``."""
    for k in range(bodies.size):
        i = bodies[k]
        x, y, z = rows[i, 0] - free[i, 0], rows[i, 1] - free[i, 1], rows[i, 2] - free[i, 2]
        pushes[0] += sign * (x * x + y * y + z * z) / rows[i, 6]


class Restrained(NamedTuple):
    """What is restrained, and where it stands."""

    rows: np.ndarray  # (N, 8) velocities
    free: np.ndarray  # (N, 8) those without contacts
    mobility: Mobility
    kinds: np.ndarray  # the table of all kinds: see `entries`
    some: list  # of each kind, the contacts
    bodies: np.ndarray  # the rows of the bodies


def tally(restrained: Restrained, sums, pushes, sign: float) -> bool:
    """Add what is restrained to the ``sums`` of the residual and to the ``pushes`` (see `solvers.Scratch`).

    With ``sign`` -1, before the impulses are multiplied, it is taken off. Returns whether that is worth it: where it is
    most of them, the difference would not be exact, and the contact that loses most may be another one.
    """
    rows, free, mobility, kinds, some, bodies = restrained
    well = [tally_kind(rows, mobility, kinds, at, contacts, sums[at], sign) for at, contacts in enumerate(some)]
    tally_pushes(rows, free, bodies, pushes, sign)
    return all(well)
