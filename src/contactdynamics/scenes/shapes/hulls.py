"""Closed surfaces of convex polyhedra as corners (k, 3) and faces: moments, convex hull, cuts, unions.

A face is the list of its corners, counter-clockwise as seen from outside.

Integrals over a polyhedron are sums over the tetrahedra (o, a, b, c) between a point o and the triangles of its faces,
with det = (a - o) . (b - o) x (c - o): volume det / 6, first moments det / 24 (a + b + c), second moments
det / 120 (s s^T + a a^T + b b^T + c c^T) with s = a + b + c, all from o.
"""

import math

import numpy as np

from ...errors import InputError, as_numbers
from .balls import MassProperties, tensor

SMALL = 1e-10  # of the size: corners nearer than this are one, faces flatter than this are one
LONGEST, MOST_POINTS = 1e60, 10_000


def moments(vertices: np.ndarray, faces) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, first (3,) and second (3, 3) moments about the origin of a closed surface."""
    tip = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
    a, b, c = (vertices[np.array(column)] for column in zip(*tip, strict=True))
    det = (a * np.cross(b, c)).sum(axis=1)
    total = a + b + c
    second = sum(np.einsum("k,ki,kj->ij", det, x, x) for x in (total, a, b, c))
    return float(det.sum() / 6), (det[:, None] * total).sum(axis=0) / 24, second / 120


def face_normals(vertices: np.ndarray, faces) -> np.ndarray:
    """Outward unit normals (F, 3), from all corners of each face (Newell)."""
    out = np.empty((len(faces), 3))
    for k, face in enumerate(faces):
        rim = vertices[list(face)] - vertices[face[0]]
        n = np.cross(rim, np.roll(rim, -1, axis=0)).sum(axis=0)
        out[k] = n / math.sqrt(n @ n)
    return out


# ---- the convex hull -------------------------------------------------------------------------------------------------


def checked(kind: str, points) -> np.ndarray:
    """The points (k, 3) of a body with a volume; one sentence where they are none."""
    p = as_numbers(f"The points of a {kind}", points)
    if p.ndim != 2 or p.shape[1] != 3:
        raise InputError(f"{kind} got points of shape {p.shape}; give a list of corners (x, y, z).")
    if len(p) < 4:
        raise InputError(f"{kind} got {len(p)} points; give at least 4 corners (x, y, z).")
    if len(p) > MOST_POINTS:
        raise InputError(f"{kind} got {len(p)} points; give at most {MOST_POINTS}, or several bodies.")
    if not np.isfinite(p).all():
        raise InputError(f"{kind} got a point that is not a finite number; give finite corners (x, y, z).")
    if np.abs(p).max() > LONGEST:
        raise InputError(f"{kind} got a point {np.abs(p).max():g} away; give lengths up to {LONGEST:g}.")
    middle = p - p.mean(axis=0)
    spread = np.linalg.svd(middle, compute_uv=False)
    if not spread[2] > SMALL * spread[0]:
        raise InputError(f"{kind} got points in one plane: its volume is zero; move one of them out of the plane.")
    return p


def hull(points: np.ndarray) -> tuple[np.ndarray, list]:
    """Corners (k, 3) and faces of the convex hull; triangles in one plane are one face, points inside are left out."""
    from scipy.spatial import ConvexHull

    middle = points.mean(axis=0)
    size = float(np.abs(points - middle).max())
    scaled = (points - middle) / size
    found = ConvexHull(scaled)
    parent = list(range(len(found.simplices)))

    def root(k):
        while parent[k] != k:
            k = parent[k]
        return k

    normal, level = found.equations[:, :3], found.equations[:, 3]
    for k, neighbours in enumerate(found.neighbors):
        for other in neighbours:
            one, two = (
                np.abs(scaled[found.simplices[x]] @ normal[y] + level[y]).max() for x, y in ((k, other), (other, k))
            )
            if other > k and max(one, two) <= SMALL:
                parent[root(k)] = root(other)
    groups: dict[int, set] = {}
    for k, simplex in enumerate(found.simplices):
        groups.setdefault(root(k), set()).update(simplex.tolist())
    rims = [_rim(scaled, sorted(corners), normal[k]) for k, corners in groups.items()]
    met = np.bincount(np.concatenate(rims), minlength=len(points))
    rims = [[corner for corner in rim if met[corner] >= 3] for rim in rims]  # on an edge between two faces: no corner
    vertices, faces = _compact(points, rims)
    return vertices, sorted(faces)


def _rim(points, corners, normal) -> list:
    """The corners of a convex face, counter-clockwise about its ``normal``, the one with the least number first."""
    place = points[corners] - points[corners].mean(axis=0)
    across = place[np.argmax((place**2).sum(axis=1))]
    angle = np.arctan2(place @ np.cross(normal, across), place @ across)
    ring = [corners[k] for k in np.argsort(angle)]
    first = ring.index(min(ring))
    return ring[first:] + ring[:first]


# ---- unions of convex parts ------------------------------------------------------------------------------------------


def cut(vertices: np.ndarray, faces, normal, level, small) -> tuple[np.ndarray, list] | None:
    """What a convex polyhedron has where ``normal`` . x <= ``level``; None where that is nothing.

    Corners within ``small`` of the plane lie in it.
    """
    height = vertices @ normal - level
    height[np.abs(height) <= small] = 0.0
    if (height <= 0).all():
        return vertices, list(faces)
    if (height >= 0).all():
        return None
    points, new, kept = list(vertices), {}, []
    for face in faces:
        rim = []
        for k, one in enumerate(face):
            two = face[(k + 1) % len(face)]
            if height[one] <= 0:
                rim.append(one)
            if height[one] * height[two] < 0:
                key = (min(one, two), max(one, two))
                if key not in new:
                    low, high = key
                    share = height[low] / (height[low] - height[high])
                    new[key] = len(points)
                    points.append(vertices[low] + share * (vertices[high] - vertices[low]))
                rim.append(new[key])
        if len(rim) >= 3 and any(corner >= len(vertices) or height[corner] < 0 for corner in rim):
            kept.append(tuple(rim))
    points = np.array(points)
    cap = [*new.values(), *np.flatnonzero(height == 0).tolist()]
    if len(cap) >= 3:
        kept.append(tuple(_rim(points, cap, np.asarray(normal))))
    return _compact(points, kept)


def _compact(points: np.ndarray, faces) -> tuple[np.ndarray, list]:
    """Without the points that belong to no face."""
    used = np.unique(np.concatenate(faces))
    number = np.full(len(points), -1)
    number[used] = np.arange(len(used))
    return points[used], [tuple(int(number[corner]) for corner in face) for face in faces]


def disjoint(parts: list) -> list:
    """Convex pieces (vertices, faces) that overlap nowhere, with the same union as the ``parts``."""
    out = []
    for number, part in enumerate(parts):
        pieces = [part]
        for vertices, faces in parts[:number]:
            planes = [(n, n @ vertices[face[0]]) for n, face in zip(face_normals(vertices, faces), faces, strict=True)]
            small, left = SMALL * float(np.ptp(vertices, axis=0).max()), []
            for piece in pieces:
                if any((piece[0] @ n - level).min() >= -small for n, level in planes):  # apart
                    left.append(piece)
                    continue
                for n, level in planes:  # what is outside this plane, and inside those before
                    outside = cut(*piece, -n, -level, small)
                    piece = cut(*piece, n, level, small)
                    if outside is not None:
                        left.append(outside)
                    if piece is None:
                        break
            pieces = left
        out += pieces
    return out


def union_of_polyhedra(parts: list) -> MassProperties:
    """Mass properties of the union of convex ``parts`` (vertices, faces), with its centre in their frame."""
    middle = np.concatenate([vertices for vertices, _ in parts]).mean(axis=0)
    pieces = disjoint([(vertices - middle, faces) for vertices, faces in parts])
    sums = [moments(*piece) for piece in pieces]
    found = tensor(*(sum(column) for column in zip(*sums, strict=True)))
    found.centre = found.centre + middle
    return found


def ball_of(vertices: np.ndarray, centre: np.ndarray) -> float:
    """Radius of the ball about ``centre`` that holds the corners, m."""
    return float(np.sqrt(((vertices - centre) ** 2).sum(axis=1)).max() * (1 + 1e-12))
