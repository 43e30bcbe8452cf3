"""Polygons in two dimensions: checked outlines, their mass, their convex parts.

Outlines turn counter-clockwise. A body's position is its centre of mass (`Polygon.center_of_mass` in the frame of the
vertices given). As for disks, densities are masses per unit area.

Integrals over an outline by Green's theorem, with c_k = x_k y_{k+1} - x_{k+1} y_k: area = sum c_k / 2, first moments
sum (x_k + x_{k+1}) c_k / 6, second moments sum (x_k^2 + x_k x_{k+1} + x_{k+1}^2) c_k / 12.
"""

import math
import warnings

import numpy as np

from ...errors import InputError, as_numbers, check_seed, explained, is_number, is_whole
from .balls import MassProperties

SMALL = 1e-12  # of the size of a polygon: shorter edges, flatter corners and thinner polygons are none

LONGEST, MOST_SIDES = 1e100, 10_000  # of a coordinate, so that its square is a number; of corners


def area_of(vertices: np.ndarray) -> float:
    """Area of an outline (k, 2), negative where it turns clockwise.

    >>> area_of(np.array([(0, 0), (2, 0), (2, 1), (0, 1)]))
    2.0
    """
    x, y = vertices.T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def _moments(vertices: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Area, centre (2,) and second moments about it (2, 2) of an outline (k, 2)."""
    origin = vertices[0]  # near the polygon: no digits are lost far from the origin
    p = vertices - origin
    q = np.roll(p, -1, axis=0)
    cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
    area = 0.5 * cross.sum()
    centre = ((p + q) * cross[:, None]).sum(axis=0) / (6.0 * area)
    products = np.einsum("ki,kj->kij", p, p) + np.einsum("ki,kj->kij", q, q)
    products += 0.5 * (np.einsum("ki,kj->kij", p, q) + np.einsum("ki,kj->kij", q, p))
    second = (products * cross[:, None, None]).sum(axis=0) / 12.0
    return float(area), centre + origin, second - area * np.outer(centre, centre)


def _turns(vertices: np.ndarray) -> np.ndarray:
    """Sine-like turn (k,) at each corner: > 0 to the left; relative to the lengths of the two edges."""
    before = vertices - np.roll(vertices, 1, axis=0)
    after = np.roll(vertices, -1, axis=0) - vertices
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    return cross / np.sqrt((before**2).sum(axis=1) * (after**2).sum(axis=1))


def _crossing(vertices: np.ndarray) -> tuple[int, int] | None:
    """Two edges that are not neighbours and meet, where there are any."""
    p, q = vertices, np.roll(vertices, -1, axis=0)

    def side(a, b, c):
        return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])

    def on(a, b, c):  # c, on the line through a and b, lies between them
        return ((np.minimum(a, b) <= c) & (c <= np.maximum(a, b))).all(axis=-1)

    k = len(p)
    for i in range(k - 2):
        j = np.arange(i + 2, k if i > 0 else k - 1)
        if not j.size:
            continue
        d1, d2 = side(p[i], q[i], p[j]), side(p[i], q[i], q[j])
        d3, d4 = side(p[j], q[j], p[i]), side(p[j], q[j], q[i])
        meet = (d1 * d2 < 0) & (d3 * d4 < 0)
        meet |= (d1 == 0) & on(p[i], q[i], p[j]) | (d2 == 0) & on(p[i], q[i], q[j])
        meet |= (d3 == 0) & on(p[j], q[j], p[i]) | (d4 == 0) & on(p[j], q[j], q[i])
        if meet.any():
            return i, int(j[np.argmax(meet)])
    return None


def _checked(kind: str, vertices) -> np.ndarray:
    """The outline (k, 2), counter-clockwise, without corners of 180 degrees; one sentence where it is none."""
    v = as_numbers(f"The vertices of a {kind}", vertices)
    if v.ndim != 2 or v.shape[1] != 2:
        raise InputError(f"{kind} got vertices of shape {v.shape}; give a list of corners (x, y).")
    if len(v) < 3:
        raise InputError(f"{kind} got {len(v)} vertices; give at least 3 corners (x, y).")
    if not np.isfinite(v).all():
        raise InputError(f"{kind} got a vertex that is not a finite number; give finite corners (x, y).")
    if np.abs(v).max() > LONGEST:
        raise InputError(f"{kind} got a vertex {np.abs(v).max():g} away; give lengths up to {LONGEST:g}.")
    size = float(np.ptp(v, axis=0).max())
    near = np.sqrt(((v[:, None] - v[None]) ** 2).sum(axis=2)) <= SMALL * size
    twice = np.argwhere(np.triu(near, 1))
    if len(twice):
        i, j = twice[0]
        raise InputError(f"{kind} got the vertex {tuple(v[i].tolist())} twice (numbers {i} and {j}); give it once.")
    area = area_of(v - v[0])
    if (abs(area) <= SMALL * size**2 and _crossing(v) is None) or (np.abs(_turns(v)) <= SMALL).all():
        raise InputError(f"{kind} got vertices on one line: its area is zero; move one of them off the line.")
    crossing = _crossing(v)
    if crossing is not None:
        i, j = crossing
        raise InputError(
            f"{kind} got an outline that meets itself (edges {i} and {j}, each from the vertex of that number to the "
            "next); give the corners in the order of the outline."
        )
    v = v if area > 0 else v[::-1]
    return np.ascontiguousarray(v[np.abs(_turns(v)) > SMALL])


# ---- convex parts --------------------------------------------------------------------------------------------------


def _triangles(v: np.ndarray) -> list[list[int]]:
    """Triangles of a simple outline by cutting ears, the least pointed first."""
    rest, found = list(range(len(v))), []

    def cross(a, b, c):
        return (v[b, 0] - v[a, 0]) * (v[c, 1] - v[a, 1]) - (v[b, 1] - v[a, 1]) * (v[c, 0] - v[a, 0])

    while len(rest) > 3:
        best, quality = None, -math.inf
        for n in range(len(rest)):
            a, b, c = rest[n - 1], rest[n], rest[(n + 1) % len(rest)]
            if cross(a, b, c) <= 0:
                continue
            inside = any(
                cross(a, b, p) >= 0 and cross(b, c, p) >= 0 and cross(c, a, p) >= 0 for p in rest if p not in (a, b, c)
            )
            edges = [v[b] - v[a], v[c] - v[b], v[a] - v[c]]
            fat = cross(a, b, c) / max(e @ e for e in edges)
            if not inside and fat > quality:
                best, quality = n, fat
        if best is None:  # rounding: no ear is left that is free of other corners
            best = max(range(len(rest)), key=lambda n: cross(rest[n - 1], rest[n], rest[(n + 1) % len(rest)]))
        found.append([rest[best - 1], rest[best], rest[(best + 1) % len(rest)]])
        del rest[best]
    return [*found, rest]


def _is_convex(v: np.ndarray) -> bool:
    return bool((_turns(v) > -SMALL).all())


def _convex_parts(v: np.ndarray) -> list[np.ndarray]:
    """Convex parts of a simple outline: triangles, joined across shared edges where the result stays convex."""
    parts, joined = _triangles(v), True
    while joined:
        joined = False
        for i in range(len(parts)):
            for j in range(i + 1, len(parts)):
                union = _joined(parts[i], parts[j])
                if union is not None and _is_convex(v[union]):
                    parts[i], joined = union, True
                    del parts[j]
                    break
            if joined:
                break
    out = [v[part] for part in parts]
    return [np.ascontiguousarray(part[np.abs(_turns(part)) > SMALL]) for part in out]


def _joined(one: list[int], two: list[int]) -> list[int] | None:
    """The outline of two parts that share an edge, None where they do not."""
    for n, a in enumerate(one):
        b = one[(n + 1) % len(one)]
        if a in two and b == two[two.index(a) - 1]:
            at = two.index(a)
            return one[: n + 1] + (two[at:] + two[:at])[1:-1] + one[n + 1 :]
    return None


# ---- shapes --------------------------------------------------------------------------------------------------------


@explained
class Polygon:
    """A solid polygon in two dimensions, from its corners in either orientation.

    ``vertices`` (k, 2) in any frame; the body's position is its centre of mass (``center_of_mass`` in that frame).
    Corners of 180 degrees are left out. A polygon that is not convex is split into convex parts of one rigid body, with
    a warning that says so.

    >>> Polygon([(0, 0), (2, 0), (2, 1), (0, 1)]).center_of_mass.tolist()
    [1.0, 0.5]
    """

    dimension = 2

    def __init__(self, vertices):
        kind = type(self).__name__
        outline = _checked(kind, vertices)
        area, self.center_of_mass, second = _moments(outline)
        self.vertices = outline - self.center_of_mass
        convex = _is_convex(outline)
        self.parts = [self.vertices] if convex else _convex_parts(self.vertices)
        if not convex:
            warnings.warn(
                f"The outline of a {kind} with {len(outline)} corners is not convex; it is split into "
                f"{len(self.parts)} convex parts of one rigid body.",
                stacklevel=3,
            )
        inertia = np.diag([second[1, 1], second[0, 0], second[0, 0] + second[1, 1]])
        inertia[0, 1] = inertia[1, 0] = -second[0, 1]
        self._properties = MassProperties(area, np.zeros(3), inertia)

    def __repr__(self):
        return f"{type(self).__name__} of {len(self.vertices)} corners"

    @property
    def area(self) -> float:
        """Area, m^2."""
        return self._properties.volume

    def mass_properties(self) -> MassProperties:
        return self._properties

    def balls(self):
        """Disks that hold the convex parts: radii (p,) and centres (p, 3) from the centre of mass."""
        radii, centres = np.empty(len(self.parts)), np.zeros((len(self.parts), 3))
        for n, part in enumerate(self.parts):
            if len(self.parts) > 1:
                centres[n, :2] = _moments(part)[1]
            radii[n] = np.sqrt(((part - centres[n, :2]) ** 2).sum(axis=1)).max() * (1 + 1e-12)
        return radii, centres

    @classmethod
    def regular(cls, sides: int, radius: float) -> "Polygon":
        """A regular polygon with its corners on a circle of ``radius``, the first one at angle 0.

        >>> Polygon.regular(4, radius=1.0).area
        2.0
        """
        if not (is_whole(sides, 3) and sides <= MOST_SIDES):
            raise InputError(f"Polygon.regular got sides={sides!r}; give a whole number >= 3.")
        if not (is_number(radius) and radius > 0):
            raise InputError(f"Polygon.regular got radius={radius!r}; give a positive length.")
        angle = 2 * np.pi * np.arange(int(sides)) / int(sides)
        return Polygon(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))

    @classmethod
    def irregular(cls, radius: float, *, sides=(5, 9), spread: float = 0.5, elongation: float = 1.0, seed=None):
        """A random convex polygon with its corners on a circle of ``radius``, such as a grain of sand.

        ``sides`` is their number, or the least and the largest of a random one. Corner k lies at the angle
        2 pi (k + x) / sides with x uniform in (-spread/2, spread/2), spread < 1; the whole is turned at random.
        ``elongation`` is the ratio of the axes of an ellipse in the place of the circle (its longer one 2 radius).
        ``seed`` is a number, or a ``numpy.random.Generator`` to go on drawing from.

        >>> len(Polygon.irregular(1.0, sides=7, seed=1).vertices)
        7
        """
        low, high = pair if (pair := np.atleast_1d(as_numbers("sides", sides))).shape == (2,) else [sides, sides]
        if not (is_whole(low, 3) and is_whole(high, 3) and low <= high <= MOST_SIDES):
            raise InputError(f"Polygon.irregular got sides={sides!r}; give a whole number >= 3, or two of them.")
        if not (is_number(radius) and radius > 0):
            raise InputError(f"Polygon.irregular got radius={radius!r}; give a positive length.")
        if not (is_number(spread) and 0 <= spread < 1):
            raise InputError(f"Polygon.irregular got spread={spread!r}; give a number from 0 to below 1.")
        if not (is_number(elongation) and elongation >= 1):
            raise InputError(f"Polygon.irregular got elongation={elongation!r}; give a number >= 1.")
        if not (seed is None or isinstance(seed, np.random.Generator)):
            check_seed("Polygon.irregular", seed)
        random = np.random.default_rng(seed)
        count = int(random.integers(int(low), int(high) + 1))
        angle = 2 * np.pi * (np.arange(count) + spread * (random.random(count) - 0.5)) / count
        turn = 2 * np.pi * random.random()
        x, y = np.cos(angle + turn), np.sin(angle + turn) / elongation
        c, s = np.cos(2 * turn), np.sin(2 * turn)
        return Polygon(radius * np.stack([c * x - s * y, s * x + c * y], axis=1))


@explained
class Rectangle(Polygon):
    """A solid rectangle, its width along the first axis of the body, its height along the second.

    >>> Rectangle(2.0, 1.0).area
    2.0
    """

    def __init__(self, width: float, height: float):
        for name, value in (("width", width), ("height", height)):
            if not (is_number(value) and value > 0):
                raise InputError(f"Rectangle got {name}={value!r}; give a positive length.")
        self.width, self.height = float(width), float(height)
        x, y = 0.5 * self.width, 0.5 * self.height
        super().__init__([(-x, -y), (x, -y), (x, y), (-x, y)])

    def __repr__(self):
        return f"Rectangle(width={self.width}, height={self.height})"
