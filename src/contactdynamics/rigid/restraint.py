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
from numba import literal_unroll

from .._jit import kernel
from .equations.contract import ALL, add_beyond, add_powers, measure

ROUNDING = 1e-14  # of the powers summed without sign: not a gain
SURE = 1e-9  # of the same, taken from the bodies: a loss of more than this is a loss
FEW = 0.5  # of contacts, residual and losses: what is restrained may be measured alone


class Room(NamedTuple):
    """What is noted of the bodies: made once, since new memory takes longer than what is done with it."""

    own: np.ndarray  # (N,) its row where a body moves freely, else -1
    group: np.ndarray  # (N,)
    seen: np.ndarray  # (N,) that of `suspects`
    beyond: np.ndarray  # (N, 2) see `Kernels`


def room(rows: np.ndarray) -> Room:
    """For the bodies ``rows`` (N, 8)."""
    own = np.where(rows[:, 6] > 0.0, np.arange(len(rows)), -1).astype(np.int32)
    return Room(own, np.empty_like(own), np.empty_like(own), np.empty((len(rows), 2)))


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
def suspects(rows, free, kappa, group, count, beyond, out):
    """Into ``out`` the ``group``, -1 where it surely gains nothing; where all bodies in contact are balls.

    ``beyond`` (N, 2): see `Kernels`.
    """
    sums = np.zeros((count, 2))
    for i in range(group.size):
        g = group[i]
        if g >= 0:
            mass, power, size = 1.0 / rows[i, 6], beyond[i, 0], beyond[i, 1]
            turning = mass / kappa
            for c in range(3):
                x = mass * (rows[i, c] - free[i, c]) * rows[i, c]
                y = turning * (rows[i, 3 + c] - free[i, 3 + c]) * rows[i, 3 + c]
                power, size = power + x + y, size + abs(x) + abs(y)
            sums[g, 0] += power
            sums[g, 1] += size
    for i in range(group.size):
        g = group[i]
        out[i] = g if g >= 0 and sums[g, 0] > -SURE * sums[g, 1] else -1


@kernel
def gains(rows, free, kinds, kappa, one, room):
    """The group (N,) of each body, those that hang together by contacts, the factor (G,) of each, and the least one.

    Bodies that do not move freely have none, -1. ``one``: all hang together, by a cell that moves.
    """
    own, group, beyond, seen = room.own, room.group, room.beyond, room.group
    for i in range(group.size):
        group[i] = own[i]
        beyond[i, 0] = beyond[i, 1] = 0.0
    for kind in literal_unroll(kinds):
        join(kind.contacts.a, kind.contacts.b, group)
    count, known = label(group), not one
    if one:
        for i in range(group.size):
            group[i] = 0
        count = 1
    else:
        for kind in literal_unroll(kinds):
            known &= add_beyond(rows, kind.contacts, group, beyond)
    if known:
        seen = room.seen
        suspects(rows, free, kappa, group, count, beyond, seen)
    sums = np.zeros((count, 3))
    for kind in literal_unroll(kinds):
        add_powers(free, rows, kind.contacts, seen, sums)
    factor, least = factors(sums)
    return group, factor, least


@kernel
def slow(rows, free, group, factor):
    """Velocities of the impulses multiplied by the ``factor`` (G,) of each group."""
    for i in range(rows.shape[0]):
        if rows[i, 6] > 0.0 and factor[group[i]] < 1.0:
            s = factor[group[i]]
            for c in range(6):
                rows[i, c] = free[i, c] + s * (rows[i, c] - free[i, c])


@kernel
def restrained(a, b, group, factor):
    """The contacts of the groups whose ``factor`` is below one."""
    out, count = np.empty(a.size, dtype=np.uint32), 0
    for k in range(a.size):
        g = group[a[k]] if group[a[k]] >= 0 else group[b[k]]
        if factor[g] < 1.0:
            out[count] = k
            count += 1
    return out[:count]


@kernel
def tally_kind(rows, mobility, kind, group, factor, sums, sign):
    """`tally` of the contacts of one kind, and its ``sums`` (ALL, 8)."""
    some = restrained(kind.contacts.a, kind.contacts.b, group, factor)
    if some.size == 0:
        return True
    e, s, w, l, b, k, c, d = measure(rows, mobility, kind.contacts, some, kind.plan.shares)
    error, lost, largest, one = 0.0, 0.0, 0.0, sums[0]
    for g in range(ALL):
        error, lost, largest = error + sums[g, 0], lost + sums[g, 6], max(largest, sums[g, 3])
    well = some.size <= FEW * kind.contacts.a.size and e <= FEW * error and c <= FEW * lost and l < largest
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
def tally(rows, free, mobility, kinds, group, factor, sums, pushes, sign):
    """Add what is restrained to the ``sums`` of the residual and to the ``pushes`` (see `solvers.Scratch`).

    With ``sign`` -1, before the impulses are multiplied, it is taken off. Returns whether that is worth it: where it is
    most of them, the difference would not be exact, and the contact that loses most may be another one.
    """
    at, well = 0, True
    for kind in literal_unroll(kinds):
        well &= tally_kind(rows, mobility, kind, group, factor, sums[at], sign)
        at += 1
    for i in range(group.size):
        if group[i] >= 0 and factor[group[i]] < 1.0 and rows[i, 6] > 0.0:
            x, y, z = rows[i, 0] - free[i, 0], rows[i, 1] - free[i, 1], rows[i, 2] - free[i, 2]
            pushes[0] += sign * (x * x + y * y + z * z) / rows[i, 6]
    return well
