"""The convex parts of a block that is not convex, from its surface."""

import math

import numpy as np

from ...errors import InputError
from . import meshes
from .hulls import SMALL, cut, hull, moments
from .polyhedra import Polyhedron, solid

MOST_PARTS = 200  # convex parts of a block that is cut into them


def split(mesh: meshes.Mesh) -> list[Polyhedron]:
    """Convex parts with the same union as the inside of a surface.

    The hull is cut by planes of triangles that go through it, and each piece again by those that go through this piece,
    until none does; of the planes that may be taken the one that cuts the fewest triangles. Pieces whose centre is
    outside the surface are left out, and pairs that are convex together are one.
    """
    middle, small = mesh.corners.mean(axis=0), SMALL * mesh.size
    surface = mesh._replace(corners=mesh.corners - middle)
    whole = hull(surface.corners)
    todo, parts = [(whole, _through(whole, [surface.corners[t] for t in surface.triangles], small))], []
    while todo and len(parts) <= 5 * MOST_PARTS:
        part, inner = todo.pop()
        if not inner:
            parts.append(part)
            continue
        normal, level = _best_plane(inner, small)
        for sign in (1.0, -1.0):
            piece = cut(*part, sign * normal, sign * level, small)
            if piece is not None and _thick(piece, small):
                rest = [_clipped(polygon, sign * normal, sign * level, small) for polygon in inner]
                todo.append((piece, _through(piece, [polygon for polygon in rest if polygon is not None], small)))
    solids = [solid(*part) for part in parts]
    kept = meshes.inside(surface, np.array([part.center_of_mass for part in solids])) if solids else ()
    found = _joined([part for part, stays in zip(solids, kept, strict=True) if stays])
    total = sum(part.volume for part in found)
    if todo or len(found) > MOST_PARTS or abs(total - mesh.volume) > 1e-6 * mesh.volume:
        raise InputError(
            f"{mesh.name} could not be cut into {MOST_PARTS} convex parts or less; cut it where it was drawn, or take "
            "its convex hull (nonconvex='hull')."
        )
    for part in found:
        part.center_of_mass = part.center_of_mass + middle
    return found


def _plane(polygon: np.ndarray) -> tuple[np.ndarray, float]:
    """Unit normal and level of a polygon (k, 3)."""
    arms = polygon[1:] - polygon[0]
    normal = np.cross(arms[:-1], arms[1:]).sum(axis=0)
    normal = normal / np.sqrt(normal @ normal)
    return normal, float((polygon @ normal).mean())


def _through(part, polygons, small: float) -> list:
    """Those of the polygons that go through the inside of a convex part, and lie not in one of its faces."""
    corners, faces = part
    sides = [_plane(corners[list(face)]) for face in faces]
    normals, levels = np.array([n for n, _ in sides]), np.array([level for _, level in sides])
    return [p for p in polygons if not (p @ normals.T >= levels - 10 * small).all(axis=0).any()]


def _clipped(polygon: np.ndarray, normal, level, small: float) -> np.ndarray | None:
    """What a convex polygon (k, 3) has where ``normal`` . x <= ``level``; None where that has no area."""
    height = polygon @ normal - level
    if (height <= small).all():
        return None if (height >= -small).all() else polygon
    if (height >= -small).all():
        return None
    found = []
    for k, (one, two) in enumerate(zip(height, np.roll(height, -1), strict=True)):
        if one <= small:
            found.append(polygon[k])
        if (one > small and two < -small) or (one < -small and two > small):
            found.append(polygon[k] + one / (one - two) * (polygon[(k + 1) % len(polygon)] - polygon[k]))
    return np.array(found) if len(found) >= 3 else None


def _best_plane(polygons, small: float) -> tuple[np.ndarray, float]:
    """The plane of one of the polygons: that which cuts the fewest others, and of these has the most in it."""
    best, chosen = (math.inf, 0), None
    for polygon in polygons[:: max(1, len(polygons) // 60)]:
        normal, level = _plane(polygon)
        high = [(other @ normal - level) for other in polygons]
        crossed = sum(h.max() > small and h.min() < -small for h in high)
        within = sum(np.abs(h).max() <= small for h in high)
        if (crossed, -within) < best:
            best, chosen = (crossed, -within), (normal, level)
    return chosen


def _joined(parts: list) -> list:
    """The parts, those pairs as one whose hull has no more than both."""
    parts, k = list(parts), 0
    while k < len(parts):
        for j in range(k + 1, len(parts)):
            one, two = parts[k], parts[j]
            corners = [part.vertices + part.center_of_mass for part in (one, two)]
            (low, high), (under, over) = ((c.min(axis=0), c.max(axis=0)) for c in corners)
            if np.maximum(under - high, low - over).max() > 1e-9 * (high - low).max():  # far from each other
                continue
            both = solid(*hull(np.concatenate(corners)))
            if both.volume <= (1 + 1e-9) * (one.volume + two.volume):
                parts[k] = both
                del parts[j]
                k = -1
                break
        k += 1
    return parts


def _thick(part, small: float) -> bool:
    """Whether a piece has a volume beyond rounding."""
    volume, _, _ = moments(part[0] - part[0].mean(axis=0), part[1])
    return volume > small**3
