"""Regions of space: `Box`, `Cylinder` (a ring where it has an inner radius) and `Under` (a surface of revolution).

Each has a ``volume``, says which points it ``contains``, and between which ``heights`` it lies above given places.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError, as_numbers, explained, is_number


def fitting(region, frame):
    """The region, where it has the dimension of the frame; one of the user's own, with ``contains``, may have none."""
    d = getattr(region, "dimension", frame.dimension)
    if d != frame.dimension or not hasattr(region, "contains"):
        kind = f"has {d} dimensions" if hasattr(region, "contains") else "is none"
        raise InputError(
            f"The region {region!r} {kind}, and the frame has {frame.dimension} dimensions; give a "
            + ("Box with corners (x, y), or Under." if frame.dimension == 2 else "Box, Cylinder or Under.")
        )
    return region


def axis_of(frame, axis) -> np.ndarray:
    """The place (d-1,) of a vertical axis, the origin where it is None."""
    side = frame.dimension - 1
    place = np.zeros(side) if axis is None else np.atleast_1d(as_numbers("axis", axis))
    if place.shape != (side,) or not np.isfinite(place).all():
        raise InputError(f"The axis is {axis!r}; give its place, {'x' if side == 1 else '(x, y)'}.")
    return place


def positive(name: str, value) -> float:
    """A positive length."""
    if not (is_number(value) and value > 0):
        raise InputError(f"{name} is {value!r}; give a positive length.")
    return float(value)


def spatial(frame, what: str) -> None:
    """Complain where a frame has no meridian planes."""
    if frame.dimension != 3:
        raise InputError(f"{what} is taken about a vertical axis in space; give a frame of a scene in 3D.")


def distance(points, axis=None) -> np.ndarray:
    """Distance (k,) of points (k, d) or places (k, 2) from the vertical ``axis`` (2,)."""
    points = np.asarray(points, dtype=float)
    x, y = (0.0, 0.0) if axis is None else axis
    return np.hypot(points[:, 0] - x, points[:, 1] - y)


@explained
class Box(NamedTuple):
    """A box between two corners (d,)."""

    low: tuple
    high: tuple

    @property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def volume(self) -> float:
        return float(np.prod(np.subtract(self.high, self.low)))

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (d-1,) of its places."""
        return np.array(self.low[:-1], dtype=float), np.array(self.high[:-1], dtype=float)

    def contains(self, points) -> np.ndarray:
        return ((points >= np.array(self.low)) & (points < np.array(self.high))).all(axis=1)

    def heights(self, places) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.sides
        inside = ((places >= low) & (places < high)).all(axis=1)
        return np.where(inside, self.low[-1], 0.0), np.where(inside, self.high[-1], 0.0)


@explained
class Cylinder(NamedTuple):
    """An upright cylinder between two heights, without its core where ``inner`` > 0: a ring."""

    radius: float
    low: float
    high: float
    inner: float = 0.0
    axis: tuple = (0.0, 0.0)

    @property
    def dimension(self) -> int:
        return 3

    @property
    def volume(self) -> float:
        return math.pi * (self.radius**2 - self.inner**2) * (self.high - self.low)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.axis) - self.radius, np.array(self.axis) + self.radius

    def _around(self, points) -> np.ndarray:
        away = distance(points, self.axis)
        return (away >= self.inner) & (away < self.radius)

    def contains(self, points) -> np.ndarray:
        return self._around(points) & (points[:, -1] >= self.low) & (points[:, -1] < self.high)

    def heights(self, places) -> tuple[np.ndarray, np.ndarray]:
        inside = self._around(places)
        return np.where(inside, self.low, 0.0), np.where(inside, self.high, 0.0)


@explained
class Under(NamedTuple):
    """What lies above the height ``low`` and under the surface of revolution of ``tops`` (k,) over ``radii`` (k,).

    In 2D, under the curve that is symmetric about ``axis`` (1,). Nothing lies beyond the last radius.
    """

    radii: np.ndarray
    tops: np.ndarray
    low: float
    axis: tuple

    __repr__ = short

    @property
    def dimension(self) -> int:
        return len(self.axis) + 1

    @property
    def volume(self) -> float:
        r = np.linspace(0, self.radii[-1], 2001)
        thickness = np.maximum(0.0, np.interp(r, self.radii, self.tops) - self.low)
        around = 2 * np.pi * r if len(self.axis) == 2 else 2.0 * np.ones_like(r)
        return float(np.trapezoid(thickness * around, r))

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.axis) - self.radii[-1], np.array(self.axis) + self.radii[-1]

    def _tops(self, places) -> np.ndarray:
        away = np.sqrt(((np.asarray(places) - np.array(self.axis)) ** 2).sum(axis=1))
        return np.interp(away, self.radii, self.tops, right=-np.inf)

    def contains(self, points) -> np.ndarray:
        return (points[:, -1] >= self.low) & (points[:, -1] < self._tops(points[:, :-1]))

    def heights(self, places) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(places), self.low), np.maximum(self.low, self._tops(places))
