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

Which groups these are is found in `gains`. The residual is corrected by their contacts alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._jit import kernel
from .entries import common
from .equations.contract import ALL, Mobility
from .solvers import measure_groups
from .threads import Team

FEW = 0.5  # of contacts, residual and losses: what is restrained may be measured alone


@kernel
def slow(rows, free, bodies, group, factor):
    """Velocities of the ``bodies`` when impulses are multiplied by the ``factor`` (G,) of each group."""
    for k in range(bodies.size):
        i = bodies[k]
        s = factor[group[i]]
        for c in range(6):
            rows[i, c] = free[i, c] + s * (rows[i, c] - free[i, c])


@kernel
def restrained(few, cuts, ends, a, b, group, factor):
    """The contacts of the groups of bodies whose ``factor`` is below one, in the order of the sweeps.

    They are among ``few`` from ``cuts`` on, before ``ends`` (ALL,). Returns also where those of each group of contacts
    begin (ALL + 1,).
    """
    total, count, begins = 0, 0, np.zeros(ALL + 1, dtype=np.int64)
    for one in range(ALL):
        total += ends[one] - cuts[one]
    out = np.empty(total, dtype=np.uint32)
    for one in range(ALL):
        for n in range(cuts[one], ends[one]):
            k = few[n]
            g = group[a[k]] if group[a[k]] >= 0 else group[b[k]]
            if factor[g] < 1.0:
                out[count] = k
                count += 1
        begins[one + 1] = count
    return out[:count], begins


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
def measure_some(rows, mobility, kinds, at, some, begins, out):
    """What `measure` has of the contacts ``some``, by group, into ``out`` (ALL, 10); then their number, and of all."""
    plan, found = common(kinds, at).plan, np.empty((ALL, 8))
    for group in range(ALL):
        begin, number = plan.cuts[group], begins[group + 1] - begins[group]
        for n in range(number):
            plan.few[begin + n] = some[begins[group] + n]
        plan.few_ends[group] = begin + number
    if some.size > 0:
        measure_groups(kinds, at, (rows, mobility, 0, ALL, True, found))
    for group in range(ALL):
        number = begins[group + 1] - begins[group]
        for c in range(8):
            out[group, c] = found[group, c] if number > 0 else 0.0
        out[group, 8], out[group, 9] = number, plan.cuts[group + 1] - plan.cuts[group]


@kernel
def enter(found, sums, sign):
    """Add what `measure_some` has ``found`` of one kind to its ``sums`` (ALL, 8): see `tally`."""
    number, every, error, e, lost, c, largest, l = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0
    for g in range(ALL):
        number, every = number + found[g, 8], every + found[g, 9]
        error, e, lost, c = error + sums[g, 0], e + found[g, 0], lost + sums[g, 6], c + found[g, 6]
        largest = max(largest, sums[g, 3])
        if found[g, 8] > 0.0:
            l = max(l, found[g, 3])
    well = number <= FEW * every and e <= FEW * error and c <= FEW * lost and l < largest
    for g in range(ALL):
        if found[g, 8] > 0.0:
            for k in (0, 1, 4, 5, 6, 7):
                sums[g, k] += sign * found[g, k]
            if sign > 0.0 and found[g, 3] > sums[g, 3]:
                sums[g, 2], sums[g, 3] = found[g, 2], found[g, 3]
    return well or number == 0.0


@kernel
def pushes_of(rows, free, bodies):
    """(n,) the kinetic sizes of what contacts do to the ``bodies`` (n,)."""
    out = np.empty(bodies.size)
    for k in range(bodies.size):
        i = bodies[k]
        x, y, z = rows[i, 0] - free[i, 0], rows[i, 1] - free[i, 1], rows[i, 2] - free[i, 2]
        out[k] = (x * x + y * y + z * z) / rows[i, 6]
    return out


@kernel
def tally_pushes(sizes, pushes, sign):
    """`tally` of the bodies, by their ``sizes`` (n,): see `pushes_of`."""
    for k in range(sizes.size):
        pushes[0] += sign * sizes[k]


class Restrained(NamedTuple):
    """What is restrained, and where it stands."""

    rows: np.ndarray  # (N, 8) velocities
    free: np.ndarray  # (N, 8) those without contacts
    mobility: Mobility
    kinds: np.ndarray  # the table of all kinds: see `entries`
    some: list  # of each kind, the contacts and where their groups begin: see `restrained`
    bodies: np.ndarray  # the rows of the bodies
    team: Team
    measure: Callable  # `measure_some`, settled


def tally(restrained: Restrained, sums, pushes, sign: float) -> bool:
    """Add what is restrained to the ``sums`` of the residual and to the ``pushes`` (see `solvers.Scratch`).

    With ``sign`` -1, before the impulses are multiplied, it is taken off. Returns whether that is worth it: where it is
    most of them, the difference would not be exact, and the contact that loses most may be another one.
    """
    rows, free, mobility, kinds, some, bodies, team, measure = restrained
    found = np.zeros((len(some), ALL, 10))
    for at, contacts in enumerate(some):
        measure(rows, mobility, kinds, at, *contacts, found[at])
    if team.divided:
        team.as_one(found[:, :, 2], found[:, :, 8] > 0.0, slice(0, ALL))
        team.add_up(found)
    well = [enter(found[at], sums[at], sign) for at in range(len(some))]
    sizes = team.by_rows(bodies, pushes_of(rows, free, bodies)) if team.divided else pushes_of(rows, free, bodies)
    tally_pushes(sizes, pushes, sign)
    return all(well)
