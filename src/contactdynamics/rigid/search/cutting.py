"""Where two convex polyhedra touch by a given axis (3D).

A face that is chosen carries the common tangent plane: the face of the other body that looks at it is cut to its
outline, and the corners of what is left are the candidates of contact, all of them: fewer could not bear every moment
that the joint can. Two edges have one contact, where they are nearest.

*Names.* A corner of the joint is a corner of the first body (c, -1), of the second one (-1, c), or the crossing of an
edge of each (e, f), numbers in their parts. Impulses carry over by name.
"""

import numpy as np

from ..._jit import kernel
from .axes import ALIKE, PARALLEL
from .solids import CORNER, EDGE, EDGE_ONE, EDGE_TWO, FACE, NX, NY, NZ, ONE, OTHER, face_level, lowest

MERGED = 1e-6  # of the size: corners nearer to an edge than this lie on it
CLOSE = 1e-4  # of the size: corners of a joint nearer to each other than this are one
DEGENERATE = 1e-5  # of the size: parallel faces that overlap by less meet along a line and pass each other


@kernel(inline=True)
def nearest_of_edges(vectors, p, q, r, s):
    """The points of the edges pq and rs nearest to each other, as shares of their lengths, kept within them."""
    dx, dy, dz = vectors[q, 0] - vectors[p, 0], vectors[q, 1] - vectors[p, 1], vectors[q, 2] - vectors[p, 2]
    ex, ey, ez = vectors[s, 0] - vectors[r, 0], vectors[s, 1] - vectors[r, 1], vectors[s, 2] - vectors[r, 2]
    x, y, z = vectors[p, 0] - vectors[r, 0], vectors[p, 1] - vectors[r, 1], vectors[p, 2] - vectors[r, 2]
    dd, ee, de = dx * dx + dy * dy + dz * dz, ex * ex + ey * ey + ez * ez, dx * ex + dy * ey + dz * ez
    dw, ew = dx * x + dy * y + dz * z, ex * x + ey * y + ez * z
    det = dd * ee - de * de
    return (de * ew - ee * dw) / det, (dd * ew - de * dw) / det


@kernel
def cut_edges(solids, meetings, m, i, j, at):
    """The one contact of two edges; returns whether they are nearest within their lengths."""
    vectors, edges, starts = solids.vectors, solids.edges, solids.starts
    e, g = starts[i, EDGE] + meetings.index[m, EDGE_ONE], starts[j, EDGE] + meetings.index[m, EDGE_TWO]
    p, q, r, s = edges[e, 0], edges[e, 1], edges[g, 0], edges[g, 1]
    along, across = nearest_of_edges(vectors, p, q, r, s)
    inside = -1e-9 <= along <= 1.0 + 1e-9 and -1e-9 <= across <= 1.0 + 1e-9
    along, across = min(1.0, max(0.0, along)), min(1.0, max(0.0, across))
    bound, points, names = meetings.bound, meetings.points, meetings.names
    for c in range(3):
        one = vectors[p, c] + along * (vectors[q, c] - vectors[p, c])
        two = vectors[r, c] + across * (vectors[s, c] - vectors[r, c])
        points[at, c] = 0.5 * (one + two)
    x, y, z = vectors[r, 0] - vectors[p, 0], vectors[r, 1] - vectors[p, 1], vectors[r, 2] - vectors[p, 2]
    points[at, 3] = bound[m, NX] * x + bound[m, NY] * y + bound[m, NZ] * z
    names[at, 0], names[at, 1] = meetings.index[m, EDGE_ONE], meetings.index[m, EDGE_TWO]
    return inside


@kernel(inline=True)
def facing(vectors, starts, rim_starts, rims, q, nx, ny, nz, low, near):
    """The face of q that looks most against a normal among those with a corner at the height ``low``."""
    total, chosen, best = starts[starts.shape[0] - 1, CORNER], starts[q, FACE], 2.0
    for f in range(starts[q, FACE], starts[q + 1, FACE]):
        row = total + f
        along = nx * vectors[row, 0] + ny * vectors[row, 1] + nz * vectors[row, 2]
        if along < best:
            height = np.inf
            for k in range(rim_starts[f], rim_starts[f + 1]):
                c = rims[k, 0]
                height = min(height, nx * vectors[c, 0] + ny * vectors[c, 1] + nz * vectors[c, 2])
            if height <= low + near:
                best, chosen = along, f
    return chosen, best


@kernel(inline=True)
def face_axes(vectors, rim_starts, rims, face, nx, ny, nz):
    """The first corner of a face, and two unit vectors in its plane: towards its second corner, and across."""
    o, c = rims[rim_starts[face], 0], rims[rim_starts[face] + 1, 0]
    tx, ty, tz = vectors[c, 0] - vectors[o, 0], vectors[c, 1] - vectors[o, 1], vectors[c, 2] - vectors[o, 2]
    f = 1.0 / np.sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = f * tx, f * ty, f * tz
    return o, tx, ty, tz, ny * tz - nz * ty, nz * tx - nx * tz, nx * ty - ny * tx


@kernel(inline=True)
def crossing(polygon, labels, here, back, m, share, kept, names):
    """The corner of a joint where its side from ``back`` to ``m`` crosses the line of an edge of the face."""
    there, (number, mine, corner, first) = 1 - here, names
    for n in range(3):
        polygon[there, kept, n] = polygon[here, back, n] + share * (polygon[here, m, n] - polygon[here, back, n])
    edge = labels[here, back, 2]
    if edge >= 0:
        labels[there, kept, 0], labels[there, kept, 1] = mine, edge
    else:  # it runs along an edge of the face: edge k - 1 and k meet at corner k, the last and 0 at 0
        labels[there, kept, 0], labels[there, kept, 1] = corner if number == -edge else first, -1


@kernel(inline=True)
def cut_side(polygon, labels, here, count, small, line, names):
    """What lies to the left of the ``line`` through (u, v) along (eu, ev), an edge of the face, into the other row.

    ``names``: the number of this edge in the face, its name, and those of its corner and of the face's first corner.
    Returns the number of corners.
    """
    there, kept, number, (u, v, eu, ev) = 1 - here, 0, names[0], line
    inside = eu * (polygon[here, count - 1, 1] - v) - ev * (polygon[here, count - 1, 0] - u)
    for m in range(count if count + number + 4 < polygon.shape[1] else 0):
        back = m - 1 if m > 0 else count - 1
        before, inside = inside, eu * (polygon[here, m, 1] - v) - ev * (polygon[here, m, 0] - u)
        if (before < -small and inside > small) or (before > small and inside < -small):
            crossing(polygon, labels, here, back, m, before / (before - inside), kept, names)
            labels[there, kept, 2] = labels[here, back, 2] if inside > small else -1 - number
            kept += 1
        if inside >= -small:
            for n in range(3):
                polygon[there, kept, n] = polygon[here, m, n]
                labels[there, kept, n] = labels[here, m, n]
            after = m + 1 if m + 1 < count else 0
            if inside <= small and eu * (polygon[here, after, 1] - v) - ev * (polygon[here, after, 0] - u) < -small:
                labels[there, kept, 2] = -1 - number  # on the line, and the next one is outside
            kept += 1
    return kept


@kernel(inline=True)
def corners_apart(polygon, labels, here, count, near):
    """The corners farther than ``near`` from the one before and from the first, into row 0.

    Returns their number, and how many of all are corners of the face, and of the other one.
    """
    mine, its, kept = 0, 0, 0
    for m in range(count):
        mine += labels[here, m, 1] == -1
        its += labels[here, m, 0] == -1
        alone = True
        for back in (kept - 1, 0):
            if 0 <= back < kept:
                x, y = polygon[here, m, 0] - polygon[0, back, 0], polygon[here, m, 1] - polygon[0, back, 1]
                alone = alone and x * x + y * y > near**2
        if alone:
            for n in range(3):
                polygon[0, kept, n], labels[0, kept, n] = polygon[here, m, n], labels[here, m, n]
            kept += 1
    return kept, mine, its


@kernel(inline=True)
def is_line(polygon, count, width):
    """Whether a joint is no wider than ``width``: its area over its circumference."""
    area, around = 0.0, 0.0
    for m in range(count):
        after = m + 1 if m + 1 < count else 0
        x, y = polygon[0, after, 0] - polygon[0, m, 0], polygon[0, after, 1] - polygon[0, m, 1]
        area += 0.5 * (polygon[0, m, 0] * polygon[0, after, 1] - polygon[0, after, 0] * polygon[0, m, 1])
        around += np.sqrt(x * x + y * y)
    return area <= width * around


@kernel
def cut_faces(vectors, starts, rim_starts, rims, polygon, labels, p, face, q, size):
    """The joint of a ``face`` of p with the face of q that looks at it: polygon with names, in row 0 of the scratch.

    Returns the number of its corners, the least height of q over the face, and whether the two faces are parallel and
    overlap along a line only.
    """
    nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, face)
    low = lowest(vectors, starts[q, CORNER], starts[q + 1, CORNER], nx, ny, nz)
    other, along = facing(vectors, starts, rim_starts, rims, q, nx, ny, nz, low, ALIKE * size)
    o, tx, ty, tz, sx, sy, sz = face_axes(vectors, rim_starts, rims, face, nx, ny, nz)
    ox, oy, oz = vectors[o, 0], vectors[o, 1], vectors[o, 2]
    count, here = 0, 0
    first, last = rim_starts[other], rim_starts[other + 1]
    for k in range(last - 1, first - 1, -1):  # the face is seen from inside: the other way round
        c = rims[k, 0]
        x, y, z = vectors[c, 0] - ox, vectors[c, 1] - oy, vectors[c, 2] - oz
        polygon[0, count, 0], polygon[0, count, 1] = tx * x + ty * y + tz * z, sx * x + sy * y + sz * z
        polygon[0, count, 2] = nx * x + ny * y + nz * z
        before = k - 1 if k > first else last - 1
        labels[0, count, 0], labels[0, count, 1] = -1, c - starts[q, CORNER]
        labels[0, count, 2] = rims[before, 1] - starts[q, EDGE]
        count += 1
    begin, end = rim_starts[face], rim_starts[face + 1]
    for k in range(begin, end):
        if count == 0:
            break
        c, d = rims[k, 0], rims[k + 1 if k + 1 < end else begin, 0]
        x, y, z = vectors[c, 0] - ox, vectors[c, 1] - oy, vectors[c, 2] - oz
        u, v = tx * x + ty * y + tz * z, sx * x + sy * y + sz * z
        x, y, z = vectors[d, 0] - ox, vectors[d, 1] - oy, vectors[d, 2] - oz
        eu, ev = tx * x + ty * y + tz * z - u, sx * x + sy * y + sz * z - v
        f = 1.0 / np.sqrt(eu * eu + ev * ev)
        names = (k - begin, rims[k, 1] - starts[p, EDGE], c - starts[p, CORNER], o - starts[p, CORNER])
        count = cut_side(polygon, labels, here, count, MERGED * size, (u, v, f * eu, f * ev), names)
        here = 1 - here
    count, mine, its = corners_apart(polygon, labels, here, count, CLOSE * size)
    whole = mine == end - begin or its == last - first  # one face lies within the other, be it as small as it may
    passing = not whole and along < -1.0 + 1e-12 and is_line(polygon, count, DEGENERATE * size)
    return count, low - level, passing


@kernel
def write_joint(solids, polygon, labels, count, face, first, points, names, at):
    """The corners of a joint as points of contact; ``first``: the face is one of the first body."""
    vectors, rims, rim_starts, starts = solids.vectors, solids.rims, solids.rim_starts, solids.starts
    nx, ny, nz, _ = face_level(vectors, starts, rim_starts, rims, face)
    o, tx, ty, tz, sx, sy, sz = face_axes(vectors, rim_starts, rims, face, nx, ny, nz)
    for m in range(count):
        u, v, w = polygon[0, m, 0], polygon[0, m, 1], polygon[0, m, 2]
        points[at + m, 0] = vectors[o, 0] + u * tx + v * sx + 0.5 * w * nx
        points[at + m, 1] = vectors[o, 1] + u * ty + v * sy + 0.5 * w * ny
        points[at + m, 2] = vectors[o, 2] + u * tz + v * sz + 0.5 * w * nz
        points[at + m, 3] = w
        names[at + m, 0] = labels[0, m, 0] if first else labels[0, m, 1]
        names[at + m, 1] = labels[0, m, 1] if first else labels[0, m, 0]


@kernel
def corner_alone(solids, face, p, q, first, points, names, at):
    """The lowest corner of q under a ``face`` of p whose outline it misses, as the one contact."""
    vectors, rims, rim_starts, starts = solids.vectors, solids.rims, solids.rim_starts, solids.starts
    nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, face)
    low, corner = np.inf, starts[q, CORNER]
    for c in range(starts[q, CORNER], starts[q + 1, CORNER]):
        height = nx * vectors[c, 0] + ny * vectors[c, 1] + nz * vectors[c, 2] - level
        if height < low:
            low, corner = height, c
    points[at, 0] = vectors[corner, 0] - 0.5 * low * nx
    points[at, 1] = vectors[corner, 1] - 0.5 * low * ny
    points[at, 2] = vectors[corner, 2] - 0.5 * low * nz
    points[at, 3] = low
    names[at, 0] = -1 if first else corner - starts[q, CORNER]
    names[at, 1] = corner - starts[q, CORNER] if first else -1
    return 1


@kernel
def nearest_apart(solids, meetings, m, limit, at):
    """The contact of two bodies apart, nearest by corners or edges: no face and no pair of edges has the normal.

    Returns 0 where they are farther apart than ``limit``.
    """
    vectors, edges, starts = solids.vectors, solids.edges, solids.starts
    i, j, bound, points, names = (
        meetings.index[m, ONE],
        meetings.index[m, OTHER],
        meetings.bound,
        meetings.points,
        meetings.names,
    )
    best = np.inf
    for e in range(starts[i, EDGE], starts[i + 1, EDGE]):
        p, q = edges[e, 0], edges[e, 1]
        dx, dy, dz = vectors[q, 0] - vectors[p, 0], vectors[q, 1] - vectors[p, 1], vectors[q, 2] - vectors[p, 2]
        dd = dx * dx + dy * dy + dz * dz
        for g in range(starts[j, EDGE], starts[j + 1, EDGE]):
            r, s = edges[g, 0], edges[g, 1]
            ex, ey, ez = vectors[s, 0] - vectors[r, 0], vectors[s, 1] - vectors[r, 1], vectors[s, 2] - vectors[r, 2]
            x, y, z = vectors[p, 0] - vectors[r, 0], vectors[p, 1] - vectors[r, 1], vectors[p, 2] - vectors[r, 2]
            ee, de = ex * ex + ey * ey + ez * ez, dx * ex + dy * ey + dz * ez
            dw, ew = dx * x + dy * y + dz * z, ex * x + ey * y + ez * z
            det, along = dd * ee - de * de, 0.0
            if det > PARALLEL**2 * dd * ee:
                along = min(1.0, max(0.0, (de * ew - ee * dw) / det))
            across = (de * along + ew) / ee
            if across < 0.0 or across > 1.0:
                across = min(1.0, max(0.0, across))
                along = min(1.0, max(0.0, (de * across - dw) / dd))
            x, y, z = across * ex - x - along * dx, across * ey - y - along * dy, across * ez - z - along * dz
            square = x * x + y * y + z * z
            if square < best:
                best = square
                bound[m, NX], bound[m, NY], bound[m, NZ] = x, y, z
                points[at, 0] = vectors[p, 0] + along * dx + 0.5 * x
                points[at, 1] = vectors[p, 1] + along * dy + 0.5 * y
                points[at, 2] = vectors[p, 2] + along * dz + 0.5 * z
                names[at, 0], names[at, 1] = e - starts[i, EDGE], g - starts[j, EDGE]
    gap = np.sqrt(best)
    if gap > limit or gap == 0.0:
        return 0
    points[at, 3] = gap
    bound[m, NX], bound[m, NY], bound[m, NZ] = bound[m, NX] / gap, bound[m, NY] / gap, bound[m, NZ] / gap
    meetings.index[m, EDGE_ONE], meetings.index[m, EDGE_TWO] = names[at, 0], names[at, 1]
    return 1
