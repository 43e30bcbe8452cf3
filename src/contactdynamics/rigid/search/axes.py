"""Separating axes of two convex polyhedra (3D).

An axis is the outward normal of a face of either, or the common normal of two edges that face each other (their arcs
cross on the sphere of normals: only these can be the best, Gregorius 2013). Its separation is the least height of the
other body over it; the bodies overlap where no separation is positive. By its name an axis is a face (f, -1) of the
first body, a face (-1, f) of the second, or an edge of each (e, g), numbers in their parts.

Two edges are chosen only where they are better than any face by more than the gap up to which contacts act: faces that
are parallel but for a rounding meet as faces. For a new pair that overlaps by more than a graze the motion says which
plane was crossed last: see `outlines`, which does the same in the plane.
"""

import numpy as np

from ..._jit import kernel
from .solids import CORNER, EDGE, FACE, face_level, lowest

FLAT = 1e-4  # of the size: edges must be better than faces by this
ALIKE = 1e-7  # of the size: heights that differ by less are the same
HELD = 1e-2  # of the size: an axis is kept that is worse than the best one by this, or as much as that overlaps
SETTLED = 1e-5  # of the size: an overlap up to this does not ask for another axis
PARALLEL = 1e-6  # sine of the angle between edges that have no common normal


@kernel(inline=True)
def axis_known(starts, i, j, one, two):
    """Whether there is such an axis: a face of i (f, -1) or j (-1, f), or two edges. Memory may be from elsewhere."""
    if one >= 0 and two >= 0:
        return one < starts[i + 1, EDGE] - starts[i, EDGE] and two < starts[j + 1, EDGE] - starts[j, EDGE]
    if one >= 0:
        return one < starts[i + 1, FACE] - starts[i, FACE]
    return two >= 0 and two < starts[j + 1, FACE] - starts[j, FACE]


@kernel(inline=True)
def edge_axis(vectors, edges, e, g):
    """Separation and normal (from first to second) of the edges e and g; -inf where they do not face each other."""
    p, q, left, right = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
    r, s, back, front = edges[g, 0], edges[g, 1], edges[g, 2], edges[g, 3]
    dx, dy, dz = vectors[q, 0] - vectors[p, 0], vectors[q, 1] - vectors[p, 1], vectors[q, 2] - vectors[p, 2]
    one = -(vectors[back, 0] * dx + vectors[back, 1] * dy + vectors[back, 2] * dz)
    two = -(vectors[front, 0] * dx + vectors[front, 1] * dy + vectors[front, 2] * dz)
    if one * two >= 0.0:
        return -np.inf, 0.0, 0.0, 0.0
    ex, ey, ez = vectors[s, 0] - vectors[r, 0], vectors[s, 1] - vectors[r, 1], vectors[s, 2] - vectors[r, 2]
    three = vectors[left, 0] * ex + vectors[left, 1] * ey + vectors[left, 2] * ez
    four = vectors[right, 0] * ex + vectors[right, 1] * ey + vectors[right, 2] * ez
    if three * four >= 0.0 or one * four <= 0.0:
        return -np.inf, 0.0, 0.0, 0.0
    nx, ny, nz = dy * ez - dz * ey, dz * ex - dx * ez, dx * ey - dy * ex
    square = nx * nx + ny * ny + nz * nz
    if square <= PARALLEL**2 * (dx * dx + dy * dy + dz * dz) * (ex * ex + ey * ey + ez * ez):
        return -np.inf, 0.0, 0.0, 0.0
    out = nx * (vectors[left, 0] + vectors[right, 0]) + ny * (vectors[left, 1] + vectors[right, 1])
    out += nz * (vectors[left, 2] + vectors[right, 2])
    f = (1.0 if out > 0.0 else -1.0) / np.sqrt(square)
    nx, ny, nz = f * nx, f * ny, f * nz
    x, y, z = vectors[r, 0] - vectors[p, 0], vectors[r, 1] - vectors[p, 1], vectors[r, 2] - vectors[p, 2]
    return nx * x + ny * y + nz * z, nx, ny, nz


@kernel(inline=True)
def separation(vectors, starts, rim_starts, rims, edges, i, j, one, two):
    """Separation along an axis, and its normal from i to j."""
    if one >= 0 and two >= 0:
        return edge_axis(vectors, edges, starts[i, EDGE] + one, starts[j, EDGE] + two)
    p, q, sign = (i, j, 1.0) if one >= 0 else (j, i, -1.0)
    face = starts[p, FACE] + (one if one >= 0 else two)
    nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, face)
    height = lowest(vectors, starts[q, CORNER], starts[q + 1, CORNER], nx, ny, nz) - level
    return height, sign * nx, sign * ny, sign * nz


@kernel
def choose_axis(vectors, starts, rim_starts, rims, edges, i, j, size, velocity, travel, limit, fresh):
    """The axis of two polyhedra by its name, its separation, and whether none keeps them apart by ``limit``.

    ``velocity`` (3,) is that of j with respect to i, ``travel`` its way in a step; asked for a ``fresh`` pair.
    """
    best, one, two, (ux, uy, uz) = -np.inf, -1, -1, velocity
    for side in range(2):
        p, q = (i, j) if side == 0 else (j, i)
        begin, end = starts[q, CORNER], starts[q + 1, CORNER]
        for f in range(starts[p, FACE], starts[p + 1, FACE]):
            nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, f)
            height = lowest(vectors, begin, end, nx, ny, nz) - level
            if height > limit or not height <= best + ALIKE * size:
                best, number = height, f - starts[p, FACE]
                one, two = (number, -1) if side == 0 else (-1, number)
            if height > limit:
                return one, two, best, False
    needed, flat = best + FLAT * size, best
    for e in range(starts[i, EDGE], starts[i + 1, EDGE]):
        for g in range(starts[j, EDGE], starts[j + 1, EDGE]):
            height = edge_axis(vectors, edges, e, g)[0]
            if height > needed or height > limit:
                best, needed, one, two = height, height, e - starts[i, EDGE], g - starts[j, EDGE]
            if height > limit:
                return one, two, best, False
    if not fresh or best >= -SETTLED * size:
        return one, two, best, True
    # The axis that was crossed last: an axis with separation s and rate s' crosses zero at the time -s / s'.
    latest = -1e300
    for side in range(2):
        p, q, sign = (i, j, 1.0) if side == 0 else (j, i, -1.0)
        begin, end = starts[q, CORNER], starts[q + 1, CORNER]
        for f in range(starts[p, FACE], starts[p + 1, FACE]):
            nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, f)
            rate = sign * (ux * nx + uy * ny + uz * nz)
            if rate >= 0.0:
                continue
            height = lowest(vectors, begin, end, nx, ny, nz) - level
            if height >= best - travel and -height / rate > latest + 1e-12 * abs(latest):
                latest, number = -height / rate, f - starts[p, FACE]
                one, two = (number, -1) if side == 0 else (-1, number)
    for e in range(starts[i, EDGE], starts[i + 1, EDGE]):
        for g in range(starts[j, EDGE], starts[j + 1, EDGE]):
            height, nx, ny, nz = edge_axis(vectors, edges, e, g)
            rate = ux * nx + uy * ny + uz * nz
            if rate >= 0.0 or height < best - travel or height <= flat + FLAT * size:
                continue
            if -(height - FLAT * size) / rate > latest + 1e-12 * abs(latest):
                latest, one, two = -height / rate, e - starts[i, EDGE], g - starts[j, EDGE]
    return one, two, best, True
