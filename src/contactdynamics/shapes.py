"""Shapes and their mass properties: Sphere, Disk, Plane, HalfPlane, Cluster.

All geometry is kept in three dimensions; a two-dimensional scene lives in the plane z = 0 and turns about z. A disk is
a cylinder of unit thickness: densities of 2D scenes are masses per unit area.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .errors import InputError, as_numbers, is_number

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


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
    if not (is_number(value) and value > 0):
        raise InputError(f"{kind} got {name}={value!r}; give a positive length.")
    return float(value)


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


class Plane(_Wall):
    """A plane in three dimensions; ``normal`` points to where the bodies are."""

    dimension = 3


class HalfPlane(_Wall):
    """A half-plane in two dimensions; ``normal`` points to where the bodies are."""

    dimension = 2


class Cluster:
    """Several spheres or disks as one rigid body.

    ``radii`` (k,) and ``centres`` (k, 2 or 3) in any frame; the body's position is its centre of mass
    (``center_of_mass`` in that frame). Overlapping parts count once: the mass properties are those of the union
    (exact for disks; for spheres by Gauss integration over exact plane sections, relative error about 1e-6 at most).
    """

    def __init__(self, radii, centres):
        self.radii = np.atleast_1d(as_numbers("radii of a Cluster", radii))
        given = np.atleast_2d(as_numbers("centres of a Cluster", centres))
        if len(self.radii) == 0 or given.ndim != 2 or given.shape[1] not in (2, 3) or len(given) != len(self.radii):
            raise InputError(
                f"Cluster got {len(self.radii)} radii and centres of shape {given.shape}; give as many of both, "
                "centres with 2 or 3 columns."
            )
        if not (np.isfinite(given).all() and np.isfinite(self.radii).all() and (self.radii > 0).all()):
            raise InputError("Cluster got a radius or a centre that is not a finite number; give positive radii.")
        self.dimension = given.shape[1]
        centres = np.zeros((len(given), 3))
        centres[:, : self.dimension] = given
        union = _union_of_disks if self.dimension == 2 else _union_of_spheres
        self._properties = union(self.radii, centres)
        self.center_of_mass = self._properties.centre[: self.dimension]
        self._centres = centres - self._properties.centre

    def __repr__(self):
        return f"Cluster of {len(self.radii)} {'disks' if self.dimension == 2 else 'spheres'}"

    def mass_properties(self) -> MassProperties:
        return MassProperties(self._properties.volume, np.zeros(3), self._properties.inertia)

    def balls(self):
        """The spheres or disks that make up the shape: radii (k,) and centres (k, 3), from the centre of mass."""
        return self.radii, self._centres


def _free_arcs(radii, centres):
    """Arcs (circle, begin, end) of the boundary of a union of disks: those parts of circles inside no other disk."""
    arcs = []
    for i, (r, c) in enumerate(zip(radii, centres, strict=True)):
        covered, hidden = [], False
        for j, (s, e) in enumerate(zip(radii, centres, strict=True)):
            if i == j:
                continue
            d = e[:2] - c[:2]
            distance = math.hypot(*d)
            if distance >= r + s or (distance + s <= r and not (distance == 0 and r == s)):
                continue
            if distance + r <= s:
                # Inside the other disk; of two equal disks the first one counts.
                hidden = hidden or not (distance == 0 and r == s and i < j)
                continue
            half = math.acos(max(-1.0, min(1.0, (distance**2 + r**2 - s**2) / (2 * distance * r))))
            middle = math.atan2(d[1], d[0])
            covered.append(((middle - half) % (2 * math.pi), 2 * half))
        if not hidden:
            arcs += [(i, begin, end) for begin, end in _complement(covered)]
    return arcs


def _complement(covered):
    """The intervals of [0, 2 pi) left free by (begin, length) intervals that may wrap around."""
    pieces = []
    for begin, length in covered:
        end = begin + length
        pieces += [(begin, end)] if end <= 2 * math.pi else [(begin, 2 * math.pi), (0.0, end - 2 * math.pi)]
    free, at = [], 0.0
    for begin, end in sorted(pieces):
        if begin > at:
            free.append((at, begin))
        at = max(at, end)
    return free + ([(at, 2 * math.pi)] if at < 2 * math.pi else [])


def _area_integrals(radii, centres):
    """Integrals of 1, x, y, x^2, y^2, xy over a union of disks, by Green's theorem along its boundary arcs."""
    total = np.zeros(6)
    for i, begin, end in _free_arcs(radii, centres):
        parts = max(1, math.ceil((end - begin) / (math.pi / 2)))
        edges = np.linspace(begin, end, parts + 1)
        for low, high in pairwise(edges):
            angle = 0.5 * (low + high) + 0.5 * (high - low) * _NODES
            weight = 0.5 * (high - low) * _WEIGHTS * radii[i]
            x, y = centres[i, 0] + radii[i] * np.cos(angle), centres[i, 1] + radii[i] * np.sin(angle)
            dx, dy = -np.sin(angle), np.cos(angle)
            forms = (0.5 * (x * dy - y * dx), 0.5 * x**2 * dy, -0.5 * y**2 * dx, x**3 / 3 * dy, -(y**3) / 3 * dx,
                     0.5 * x**2 * y * dy)  # fmt: skip
            total += [weight @ f for f in forms]
    return total


def _tensor(volume, first, second):
    """Centre of mass and central inertia tensor from the integrals of 1, x (3,) and x x^T (3, 3)."""
    centre = first / volume
    central = second - volume * np.outer(centre, centre)
    return MassProperties(volume, centre, np.trace(central) * np.eye(3) - central)


def _union_of_disks(radii, centres):
    area, sx, sy, sxx, syy, sxy = _area_integrals(radii, centres)
    return _tensor(area, np.array([sx, sy, 0.0]), np.array([[sxx, sxy, 0], [sxy, syy, 0], [0, 0, 0.0]]))


def _union_of_spheres(radii, centres):
    """Volume integrals over plane sections z = const; sections change their topology only between the breaks."""
    breaks = list(np.concatenate([centres[:, 2] - radii, centres[:, 2] + radii]))
    for i in range(len(radii)):
        for j in range(i):
            breaks += _extremes_of_intersection(radii[i], centres[i], radii[j], centres[j])
    breaks = np.unique(breaks)
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for low, high in pairwise(breaks):
        # z = middle + half sin(phi): smooth at both ends, where sections open and close like square roots.
        phi, weights = 0.5 * math.pi * _NODES, 0.5 * math.pi * _WEIGHTS
        heights = 0.5 * (low + high) + 0.5 * (high - low) * np.sin(phi)
        for z, weight in zip(heights, weights * 0.5 * (high - low) * np.cos(phi), strict=True):
            square = radii**2 - (z - centres[:, 2]) ** 2
            cut = square > 0
            a, sx, sy, sxx, syy, sxy = _area_integrals(np.sqrt(square[cut]), centres[cut])
            volume += weight * a
            first += weight * np.array([sx, sy, z * a])
            second += weight * np.array([[sxx, sxy, z * sx], [sxy, syy, z * sy], [z * sx, z * sy, z * z * a]])
    return _tensor(volume, first, second)


def _extremes_of_intersection(r, c, s, e):
    """The lowest and highest z of the circle in which two spheres meet, if they do."""
    axis = e - c
    distance = math.sqrt(axis @ axis)
    if not abs(r - s) < distance < r + s:
        return []
    along = (distance**2 + r**2 - s**2) / (2 * distance)
    radius = math.sqrt(max(0.0, r**2 - along**2))
    z = c[2] + axis[2] / distance * along
    reach = radius * math.sqrt(max(0.0, 1 - (axis[2] / distance) ** 2))
    return [z - reach, z + reach]
