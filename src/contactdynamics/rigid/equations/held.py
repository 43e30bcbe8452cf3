"""What the equations of all kinds have in common: arrays with room for more than the active contacts, and their verbs.

`Held` has what follows from a kind's kernels and arrays alone; a kind says what differs.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import Settled, kernel
from ...state import SEPARATING, SLIDING, STICKING
from ..pages import zeros
from .contract import ALL, Kernels, Kind, Plan


@kernel
def status_of(impulse, friction, glue):
    """Status (m,) of contacts by their impulses (m, 3) in the frame; on the cone they slide, without friction too.

    With ``glue`` (m,) the cone starts at P_n = -glue; P = 0 says that it has been lost.
    """
    out = np.empty(impulse.shape[0], dtype=np.int8)
    for k in range(out.size):
        p_n, c0, c1 = impulse[k, 0], friction[k, 0], friction[k, 1]
        if glue[k] > 0.0 and (p_n != 0.0 or impulse[k, 1] != 0.0 or impulse[k, 2] != 0.0):
            p_n += glue[k]
        if p_n <= 0.0:
            out[k] = SEPARATING
        elif c0 > 0.0 and c1 > 0.0 and np.hypot(impulse[k, 1] / c0, impulse[k, 2] / c1) < (1.0 - 1e-9) * p_n:
            out[k] = STICKING
        else:
            out[k] = SLIDING
    return out


@kernel
def shrink(some, a, b, group, factor, impulses):
    """Multiply the ``impulses`` (m, c) of the contacts ``some`` by the ``factor`` of their group."""
    for at in range(some.size):
        k = some[at]
        s = factor[group[a[k]] if group[a[k]] >= 0 else group[b[k]]]
        for c in range(impulses.shape[1]):
            impulses[k, c] *= s


def head(table, count: int):
    """The first ``count`` rows of a named tuple of arrays."""
    return type(table)(*(array[:count] for array in table))


def plan_arrays(room: int, unknowns: int) -> Plan:
    """A plan for ``room`` contacts of so many unknowns."""
    order, few = (zeros(room, np.uint32) for _ in range(2))
    cuts, ends = (np.zeros(n, dtype=np.int64) for n in (ALL + 1, ALL))
    return Plan(order, cuts, few, ends, zeros((room, 2)), zeros((room, unknowns)))


def planned(plan: Plan, count: int) -> Plan:
    """The plan of the first ``count`` contacts."""
    order, cuts, few, few_ends, shares, last = plan
    return Plan(order[:count], cuts, few[:count], few_ends, shares[:count], last[:count])


class Held:
    """Half of the contract of `Equations`.

    A kind says how its arrays are made (``arrays(room)``), how many ``unknowns`` a contact has, by how much the room
    grows (``more``: a factor and a number), its ``kernels`` and that of `fill` (``filling``), and which of its arrays
    are impulses (``acting()``).
    """

    arrays, unknowns, more, filling = None, 3, (1.3, 8), None
    in_order = False  # whether contacts stand in the order of the sweeps, and not in that of their search
    kernels: Kernels

    def __init__(self):
        self._contacts, self._plan = self.arrays(0), plan_arrays(0, self.unknowns)
        self.clear()

    def clear(self) -> None:
        """No active contacts."""
        self._hold(0)
        self._fill = Settled(self.filling)

    def make_room(self, count: int) -> Plan:
        """Arrays for ``count`` contacts."""
        if count > len(self._contacts.a):
            room = int(self.more[0] * count) + self.more[1]
            self._contacts, self._plan = self.arrays(room), plan_arrays(room, self.unknowns)
        if count != self.count:  # as many as before have the same arrays
            self._hold(count)
        return self._plan

    def drop_room(self) -> None:
        """Give back all arrays: where a process has had the contacts of all for a while, they have too much room."""
        self._contacts, self._plan = self.arrays(0), plan_arrays(0, self.unknowns)
        self._hold(0)

    def _hold(self, count: int) -> None:
        self.count, self.active = count, head(self._contacts, count)
        self.kind = Kind(self.active, planned(self._plan, count))

    @property
    def places(self) -> np.ndarray:
        """(count,) their pairs."""
        return self.active.pair

    @property
    def columns(self) -> tuple:
        """The arrays with a row for each active contact."""
        return tuple(self.active)

    def have(self, numbers) -> None:
        """The contacts are those with these ``numbers`` (count,) in the list of their search, which is another one."""
        self.active.pair[:] = numbers

    def regain(self, found) -> None:
        """The list of their search is the one ``found``, since processes have put together what each had."""

    def rank(self, k: int) -> int:
        """The place of contact ``k`` in the order of the search, where they stand in it."""
        return k

    def cell_work(self, rows, driven) -> float:
        """Of the components ``driven`` (3, 3) of a moving cell, the last of ``rows``, on the present impulses, J."""
        return 0.0

    @staticmethod
    def memory(found) -> NamedTuple:
        """Those arrays of ``found`` that are stored."""
        return found

    def keep(self, found, step, rows, mobility, tolerance, bodies, works, team) -> tuple[float, float, float]:
        """`store` and `book`, one after the other: what both return."""
        cone, size = self.store(found, rows, mobility, tolerance, team)
        return cone, size, self.book(found, step, rows, bodies, works, team)

    def separations(self, rows) -> np.ndarray:
        """(count,) U_n."""
        return self.kernels.separations(rows, self.active)

    def shrink(self, some, group, factor) -> None:
        """Multiply the impulses of the contacts ``some`` by the ``factor`` (G,) of their group."""
        for impulses in self.acting():
            shrink(some, self.active.a, self.active.b, group, factor, impulses)
