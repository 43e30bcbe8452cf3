"""What is done with contacts group by group, in the order of the sweeps: their first guess, their memory, their works.

Of all kinds but diagonal ones, which stand in that order (`diagonal_fill`, `diagonal_books`). Each worker has its own
groups, as in a sweep; sums are taken by group and then added up, so that neither threads nor processes change a bit.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..._jit import Settled, kernel
from ..crew import enlist
from ..threads import own_part, share_out
from .contract import ALL, GROUPS, SHARED, own_groups, put_together
from .held import Held


class ByGroups(NamedTuple):
    """The kernels of one kind of equations, of the contacts ``some``, one after the other.

    ``push(rows, mobility, contacts, some)`` adds their impulses to the velocities. ``store(rows, contacts, some,
    tolerance, found)`` stores status, impulse and moment with those ``found``, of which one on its cone sticks where it
    hardly slips; returns the largest distance to a cone and the sum of |P|^2. ``book(before, rows, sorts, driven, h,
    found, contacts, some, works)`` adds their works to ``works`` (L, 4): normal, tangential, rolling, drive; it enters
    with those ``found`` what the solver has left in a step of length h, and returns the largest, m. ``sorts``: kind and
    held directions of all bodies; ``driven`` (3, 3): which components of the velocity gradient of a moving cell are
    imposed.
    """

    push: object
    store: object
    book: object


BY_GROUPS: dict[type, ByGroups] = {}


def _verb(name: str):
    """A function that calls the kernel of this name for the type of its ``contacts``, compiled or not."""
    at = {"push": 2, "store": 1, "book": 6}[name]

    def verb(*arguments):
        return getattr(BY_GROUPS[type(arguments[at])], name)(*arguments)

    @overload(verb)
    def _compiled(*arguments):
        chosen = getattr(BY_GROUPS[arguments[at].instance_class], name)
        return lambda *arguments: chosen(*arguments)

    return verb


push_some, store_some, book_some = map(_verb, ByGroups._fields)


@kernel
def sum_of(shares, some):
    """The sum of the first column of the ``shares`` (m, 2) of the contacts ``some``."""
    total = 0.0
    for at in range(some.size):
        total += shares[some[at], 0]
    return total


@kernel
def guess_groups(rows, mobility, contacts, order, cuts, shares, scales, meeting):
    """Add the impulses and moments that the contacts start with to the velocities.

    Returns the sum of the first column of their ``shares`` (m, 2), by group in ``scales`` (ALL,), zeros.
    """
    enlist(meeting)
    first, after = own_part(meeting, GROUPS)
    for parity in range(2):
        for group in range(parity * GROUPS + first, parity * GROUPS + after):
            if cuts[group] < cuts[group + 1]:
                some = order[cuts[group] : cuts[group + 1]]
                push_some(rows, mobility, contacts, some)
                scales[group] = sum_of(shares, some)
        share_out(meeting, rows, parity)
    scale = 0.0
    if meeting.thread == 0:
        some = order[cuts[SHARED] : cuts[ALL]]
        push_some(rows, mobility, contacts, some)
        scales[SHARED] = sum_of(shares, some)
        for group in range(ALL):
            scale += scales[group]
    return scale


@kernel
def store_groups(rows, contacts, tolerance, found, order, cuts, parts, meeting):
    """`store_some` of all contacts; returns the largest distance to a cone and sum |P|^2: ``parts`` (ALL, 2), zeros."""
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        for k in range(first, after):
            if cuts[k] < cuts[k + 1]:
                some = order[cuts[k] : cuts[k + 1]]
                parts[k, 0], parts[k, 1] = store_some(rows, contacts, some, tolerance, found)
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, parts[k, 0]), size + parts[k, 1]
    return cone, size


@kernel
def book_groups(before, rows, sorts, driven, h, found, contacts, works, order, cuts, parts, meeting):
    """`book_some` of all contacts, in ``parts`` (ALL, L + 1, 4), zeros: their works, and last what they lost."""
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        for k in range(first, after):
            if cuts[k] < cuts[k + 1]:
                some = order[cuts[k] : cuts[k + 1]]
                most = book_some(before, rows, sorts, driven, h, found, contacts, some, parts[k])
                parts[k, works.shape[0], 0] = most
    share_out(meeting, rows, 0)
    return put_together(parts, works, meeting.thread == 0)


@kernel
def add_left(contacts, order, begin, end, group, sums):
    """Add the powers that `measure` has left with the contacts to the ``sums`` (G, 2) of their groups: `add_known`."""
    for n in range(begin, end):
        k = order[n]
        at = group[contacts.a[k]]
        at = at if at >= 0 else group[contacts.b[k]]
        sums[at, 0] += contacts.power[k]
        sums[at, 1] += abs(contacts.power[k])
    return True


class Grouped(Held):
    """The verbs of `Equations` that go group by group: see `ByGroups`."""

    def clear(self) -> None:
        """No active contacts."""
        super().clear()
        self._guess, self._store, self._book = map(Settled, (guess_groups, store_groups, book_groups))

    def guess(self, rows, mobility, team) -> float:
        """Add the first guess to ``rows``; returns the sum of (rho b)^2, which are in the plan's shares."""
        scales, plan = np.zeros(ALL), self._plan

        def exchange(parity):
            team.pass_on(rows, parity, *((scales,) if parity else ()))

        columns = rows, mobility, self.active, plan.order, plan.cuts, plan.shares, scales
        return team.split(exchange, self._guess, *columns)

    def store(self, found, rows, mobility, tolerance, team) -> tuple[float, float]:
        """Keep impulse, moment and status with those ``found``; the largest distance to a cone and sum |P|^2."""
        parts = np.zeros((ALL, 2))

        def exchange(stage):
            team.add_up(parts)

        columns = rows, self.active, tolerance, self.memory(found), self._plan.order, self._plan.cuts, parts
        return team.split(exchange, self._store, *columns)

    def book(self, found, step, rows, bodies, works, team) -> float:
        """Add the works of the contacts to ``works`` (L, 4), and keep by how much they are too deep; the largest, m."""
        parts, sorts = np.zeros((ALL, len(works) + 1, 4)), (bodies.kind, bodies.held)

        def exchange(stage):
            team.add_up(parts)

        return team.split(
            exchange, self._book, step.before, rows, sorts, step.driven, step.h, found, self.active, works,
            self._plan.order, self._plan.cuts, parts,
        )  # fmt: skip
