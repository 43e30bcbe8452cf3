"""What the equations of polygons and polyhedra have in common: their contacts stand in the order of their touches."""

import numpy as np

from ..._jit import kernel
from ..search.touches import FIRST, SECOND
from ..threads import BLOCKS, block
from .grouped import Grouped


@kernel(inline=True)
def same_pair(index, k, planes):
    """Whether the touches k - 1 and k belong to the same two parts; from ``planes`` on the first one is a plane."""
    return (
        k > 0 and k != planes
        and index[k, FIRST] == index[k - 1, FIRST] and index[k, SECOND] == index[k - 1, SECOND]
    )  # fmt: skip


@kernel
def block_of_pairs(index, planes, k):
    """Begin and end of block ``k`` of touches; those of the same two parts are in one block."""
    begin, end = block(index.shape[0], k)
    while begin < index.shape[0] and same_pair(index, begin, planes):
        begin += 1
    while end < index.shape[0] and same_pair(index, end, planes):
        end += 1
    return begin, max(begin, end)


@kernel
def some_special(parts, special, first):
    """Whether the laws of some block are ``special``, by its ``parts`` (BLOCKS,), as the ``first`` thread notes."""
    if first:
        special[0] = False
        for k in range(parts.size):
            special[0] = special[0] or parts[k]


class Parted:
    """Contacts that are all touches of their search or, where some bodies are held in some directions, a part of them.

    What a kind keeps with its own part (memory, status, what was lost) goes back to the touches by `_give`.
    """

    number: int
    count: int
    _which = None  # (count,) the places of a part, None where it is all

    def _part(self, touches):
        """Those of this kind."""
        self._which = None if self.count == len(touches.status) else np.flatnonzero(touches.kind == self.number)
        if self._which is None:
            return touches
        planes = int(np.searchsorted(self._which, touches.planes))
        return type(touches)(*[array[self._which] for array in touches[:-1]], planes)

    def _give(self, touches, part) -> None:
        """Enter into the ``touches`` what their ``part`` keeps."""
        if part is not touches:
            for name in ("memory", "status", "lost"):
                getattr(touches, name)[self._which] = getattr(part, name)

    def have(self, numbers) -> None:
        """They stand in the order of their touches."""

    def regain(self, touches) -> None:
        """The list of their search is that of these ``touches``: see `Held.regain`."""
        self._part(touches)

    @property
    def places(self) -> np.ndarray:
        """(count,) their touches."""
        return np.arange(self.count) if self._which is None else self._which


class Angular(Parted, Grouped):
    """The contacts of polygons or polyhedra: see `Parted`; with laws beyond Coulomb's or without."""

    more, beyond = (1.3, 64), slice(0)  # columns of `law` that `together` does not know
    able = True  # no tension, no moments

    def make_room(self, count: int):
        """Arrays for ``count`` contacts; what is said of their laws stays."""
        special = self._contacts.special[0]
        plan = super().make_room(count)
        self._contacts.special[0] = special
        return plan

    def _hold(self, count: int) -> None:
        super()._hold(count)
        self.active = self.active._replace(special=self._contacts.special)  # it is no column
        self.kind = self.kind._replace(contacts=self.active)

    @property
    def columns(self) -> tuple:
        """The arrays with a row for each active contact."""
        return tuple([getattr(self.active, name) for name in self.active._fields if name != "special"])

    def _begin(self, given: tuple, rows, mobility, team) -> float:
        """Fill the contacts from what is ``given``, and add the first guess; returns the sum of (rho b)^2."""
        team.alike.share(self._fill, *given, self.active, self._plan.shares, np.empty(BLOCKS, dtype=np.bool_))
        special = self._contacts.special
        special[0] = team.any(special[0])
        self.able = not (special[0] and team.any(self.active.law[:, self.beyond].any()))
        return self.guess(rows, mobility, team)

    def store(self, touches, rows, mobility, tolerance, team) -> tuple[float, float]:
        """Keep impulse, moment and status with the touches; the largest distance to a cone and sum |P|^2."""
        part = self._part(touches)
        result = super().store(part, rows, mobility, tolerance, team)
        self._give(touches, part)
        return result

    def book(self, touches, step, rows, bodies, works, team) -> float:
        """Add the works of the contacts to ``works`` (L, 4), and keep by how much they are too deep; the largest, m."""
        part = self._part(touches)
        most = super().book(part, step, rows, bodies, works, team)
        self._give(touches, part)
        return most

    @property
    def ahead(self) -> bool:
        """Glue and moments are not extrapolated: a bond that overshoots lets go."""
        return not self._contacts.special[0]
