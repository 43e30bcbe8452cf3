"""Contacts of polygons and polyhedra in a cell, or of those held in some directions: full equations, point by point.

The joints of `planar` and `spatial` know neither images nor inverse masses by direction; `full` does. What their search
has found is put down as pairs of balls: a ball of the size of the smaller part, that touches where the parts do.
"""

import numpy as np

from ..search.contract import CELLULAR, FULL
from ..search.pairs import GAP, LOST, pair_arrays
from ..search.touches import FIRST, LAW, SECOND, SIZE
from ..space import images
from .angular import Parted
from .contract import Explicit
from .full import Full, Met


def as_pairs(model, near, touches) -> tuple:
    """The touches (K,) as `Pairs` of balls, the table of these balls (2 K,), and their places (2 K, 3)."""
    t, d, m = touches, model.dimension, len(touches.status)
    (point, apart, moment), (place, memory) = np.zeros((3, m, 3)), np.zeros((2, m, 4))
    place[:, :d], point[:, :d] = t.place[:, 1 : 1 + d], t.place[:, 1 + d : 1 + 2 * d]
    memory[:, :d], moment[:, 3 - (2 * d - 3) :] = t.memory[:, :d], t.memory[:, d:]
    place[:, GAP], memory[:, LOST] = t.gap, t.lost
    size, first, second = t.place[:, SIZE], t.index[:, FIRST].copy(), t.index[:, SECOND]
    apart[: t.planes] = near.places[second[: t.planes]] - near.places[first[: t.planes]]
    places = np.empty((2 * m, 3))  # of the second balls, then of the first ones
    places[:m] = point - images(near.space, apart) + (size + 0.5 * t.gap)[:, None] * place[:, :GAP]
    places[m:] = places[:m] - apart
    made = model.balls.material
    material = np.concatenate([made[second], made[np.where(np.arange(m) < t.planes, first, second)]])
    first[: t.planes] = m + np.arange(t.planes)
    pairs = pair_arrays(m)._replace(
        first=first, second=np.arange(m, dtype=np.int32), a=t.a, b=t.b, law=t.index[:, LAW].copy(),
        kind=np.full(m, FULL, dtype=np.int8), place=place, memory=memory, moment=moment, status=t.status.copy(),
        balls=t.planes,
    )  # fmt: skip
    return pairs, model.balls._replace(radius=np.append(size, size), material=material), places


class Cellular(Parted, Full):
    """The contacts of polygons or polyhedra in a cell, or of those that are held: see `Equations` and `Parted`."""

    number = CELLULAR

    def fill(self, model, near, touches, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        self._model, self._near = model, near
        self._pairs, balls, places = as_pairs(model, near, self._part(touches))
        met = Met(near.space, self._pairs, balls, model.planes, places)
        scale = self._begin(model, met, step, rows, mobility, team)
        self._look(bool(self.active.bound[:, 2:].any()), team)  # glue and moments are not extrapolated
        return scale

    def have(self, numbers) -> None:
        """They are put down as pairs in the order of their touches."""
        self.active.pair[:] = np.arange(self.count)

    def regain(self, touches) -> None:
        """The list of their search is that of these ``touches``: see `Held.regain`."""
        self._pairs = as_pairs(self._model, self._near, self._part(touches))[0]

    def store(self, touches, rows, mobility, tolerance, team) -> tuple[float, float]:
        """Keep impulse, moment and status with the touches; returns the largest distance to a cone and sum |P|^2."""
        result, d = super().store(self._pairs, rows, mobility, tolerance, team), mobility.dimension
        at = self.places
        touches.status[at], touches.memory[at, :d] = self._pairs.status, self._pairs.impulse[:, :d]
        touches.memory[at, d:] = self._pairs.moment[:, 3 - (2 * d - 3) :]
        return result

    def book(self, touches, step, rows, bodies, works, team) -> float:
        """Add the works of the contacts to ``works`` (L, 4), and keep by how much they are too deep; the largest, m."""
        most = super().book(self._pairs, step, rows, bodies, works, team)
        touches.lost[self.places] = self._pairs.lost
        return most

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out, in the order of their touches."""
        return super().explicit(rows, dimension)._replace(place=self.places)
