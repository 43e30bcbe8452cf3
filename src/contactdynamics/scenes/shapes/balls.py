"""Shapes and their mass properties: Sphere, Disk, Plane, HalfPlane.

All geometry is kept in three dimensions; a two-dimensional scene lives in the plane z = 0 and turns about z. A disk is
a cylinder of unit thickness: densities of 2D scenes are masses per unit area.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ...errors import InputError, as_numbers, explained, is_number

LONGEST = 1e75  # so that its fourth power, in the moments of inertia, is a number


class MassProperties:
    """Mass integrals at unit density: volume (area in 2D), centre of mass (3,), inertia tensor about it (3, 3)."""

    def __init__(self, volume, centre, inertia):
        self.volume, self.centre, self.inertia = float(volume), np.asarray(centre), np.asarray(inertia)

    @property
    def principal(self) -> tuple[np.ndarray, np.ndarray]:
        """Principal moments (3,) and the rotation matrix whose columns are the principal axes (right-handed)."""
        moments, axes = np.linalg.eigh(self.inertia)
        off = self.inertia - np.diag(np.diag(self.inertia))
        if np.abs(off).max() <= 1e-14 * moments.max():  # keep the user's axes when they are principal already
            return np.diag(self.inertia).copy(), np.eye(3)
        if np.linalg.det(axes) < 0:
            axes[:, 0] = -axes[:, 0]
        return moments, axes


def _positive(kind: str, name: str, value) -> float:
    if not (is_number(value) and 0 < value <= LONGEST):
        raise InputError(f"{kind} got {name}={value!r}; give a positive length.")
    return float(value)


@explained
@dataclass(frozen=True)
class Sphere:
    """A solid sphere."""

    radius: float
    dimension: int = field(default=3, init=False, repr=False)

    def __post_init__(self):
        _positive("Sphere", "radius", self.radius)

    def mass_properties(self) -> MassProperties:
        volume = 4 / 3 * math.pi * self.radius**3
        return MassProperties(volume, np.zeros(3), 0.4 * volume * self.radius**2 * np.eye(3))

    def balls(self):
        """The spheres or disks that make up the shape: radii (k,) and centres (k, 3)."""
        return np.array([self.radius]), np.zeros((1, 3))


@explained
@dataclass(frozen=True)
class Disk:
    """A solid disk of unit thickness, in two dimensions."""

    radius: float
    dimension: int = field(default=2, init=False, repr=False)

    def __post_init__(self):
        _positive("Disk", "radius", self.radius)

    def mass_properties(self) -> MassProperties:
        area = math.pi * self.radius**2
        return MassProperties(area, np.zeros(3), np.diag([0.25, 0.25, 0.5]) * area * self.radius**2)

    def balls(self):
        """The spheres or disks that make up the shape: radii (k,) and centres (k, 3)."""
        return np.array([self.radius]), np.zeros((1, 3))


class _Wall:
    """A boundary without bounds, through the body's position; it is fixed or driven, never free."""

    dimension: int

    def __init__(self, normal):
        kind = type(self).__name__
        n = as_numbers(f"The normal of a {kind}", normal)
        if n.shape != (self.dimension,) or not np.isfinite(n).all() or not n @ n > 0:
            raise InputError(f"{kind} got normal={normal!r}; give {self.dimension} numbers, not all zero.")
        self.normal = np.zeros(3)
        self.normal[: self.dimension] = n / math.sqrt(n @ n)

    def __repr__(self):
        return f"{type(self).__name__}(normal={tuple(self.normal[: self.dimension].tolist())})"


@explained
class Plane(_Wall):
    """A plane in three dimensions; ``normal`` points to where the bodies are."""

    dimension = 3


@explained
class HalfPlane(_Wall):
    """A half-plane in two dimensions; ``normal`` points to where the bodies are."""

    dimension = 2


def tensor(volume, first, second):
    """Centre of mass and central inertia tensor from the integrals of 1, x (3,) and x x^T (3, 3)."""
    centre = first / volume
    central = second - volume * np.outer(centre, centre)
    return MassProperties(volume, centre, np.trace(central) * np.eye(3) - central)
