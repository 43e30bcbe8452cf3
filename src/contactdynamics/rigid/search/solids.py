"""Where convex polyhedra touch: separating axes with persistent features (3D).

*Two polyhedra.* An axis is the outward normal of a face of either, or the common normal of two edges that face each
other (their arcs cross on the sphere of normals: only these can be the best, Gregorius 2013). Its separation is the
least height of the other body over it; the bodies overlap where no separation is positive. A face that is chosen
carries the common tangent plane: the face of the other body that looks at it is cut to its outline, and the corners of
what is left are the candidates of contact, all of them: fewer could not bear every moment that the joint can. Two
edges have one contact, where they are nearest.

*Which axis.* Two edges are chosen only where they are better than any face by more than the gap up to which contacts
act: faces that are parallel but for a rounding meet as faces. A pair that touched in the last step keeps its axis
without a look at the others where the joint itself shows that none is better: with points a of one and b of the other
body, the separation along any axis d is d . (b - a) at most, so that b - a = g n with a small gap g settles it. Else a
pair keeps its axis while that is nearly as good as the best one, so that the normal does not jump. For a new pair that
overlaps by more than a graze the motion says which plane was crossed last: see `outlines`, which does the same in the
plane.

*Names.* A corner of the joint is a corner of the first body (c, -1), of the second one (-1, c), or the crossing of an
edge of each (e, f), numbers in their parts. Impulses carry over by name.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from .touches import AXIS, FIRST, NAME_ONE, NAME_TWO, SECOND

WATCH = 1e-3  # of the size: pairs up to this are looked at
FLAT = 1e-4  # of the size: edges must be better than faces by this
ALIKE = 1e-7  # of the size: heights that differ by less are the same
SETTLED = 1e-5  # of the size: an overlap up to this does not ask for another axis
MERGED = 1e-6  # of the size: corners nearer to an edge than this lie on it
CLOSE = 1e-4  # of the size: corners of a joint nearer to each other than this are one
DEGENERATE = 1e-5  # of the size: parallel faces that overlap by less meet along a line and pass each other
PARALLEL = 1e-6  # sine of the angle between edges that have no common normal
ON_SECOND = 1 << 20  # axis: face of the second polyhedron
EDGES = 1 << 21  # axis: two edges, those of the contact's name
CORNER, FACE, EDGE = range(3)  # columns of `starts`


class Solids(NamedTuple):
    """Convex polyhedra by the ball that holds them; S balls, C corners, F faces, E edges. A sphere has none of them."""

    starts: np.ndarray  # (S+1, 3) ball s has the corners, faces and edges from starts[s] to starts[s+1]
    local: np.ndarray  # (C+F, 3) corners (m) and outward unit normals of the faces, in the axes of the body
    vectors: np.ndarray  # (C+F, 3) the same in space, at the present position
    body: np.ndarray  # (C+F,)
    rim_starts: np.ndarray  # (F+1,) face f has the rim from rim_starts[f] to rim_starts[f+1]
    rims: np.ndarray  # (R, 2) corner, and edge to the next corner, counter-clockwise from outside
    edges: np.ndarray  # (E, 4) corners from and to, rows in `vectors` of the normals of the faces left and right
    size: np.ndarray  # (S,) radius of the ball inside the part, about the middle of its ball, m


def solids(balls, corners, rims) -> Solids:
    """Corners, faces and edges of a model, by ball."""
    count, total = len(balls.radius), len(corners.body)
    starts = np.zeros((count + 1, 3), dtype=np.int32)
    starts[:, CORNER] = np.searchsorted(np.searchsorted(balls.body, corners.body) + corners.part, np.arange(count + 1))
    ball = np.searchsorted(balls.body, rims.body) + rims.part
    most = 1 + int(rims.face.max(initial=0))
    begin = np.flatnonzero(np.diff(ball * most + rims.face, prepend=-1))
    rim_starts = np.append(begin, len(ball)).astype(np.int32)
    starts[:, FACE] = np.searchsorted(ball[begin], np.arange(count + 1))
    corner = starts[ball, CORNER] + rims.corner
    face = np.repeat(np.arange(len(begin)), np.diff(rim_starts))
    after = np.arange(1, len(ball) + 1)
    after[rim_starts[1:] - 1] = begin
    low, high = np.minimum(corner, corner[after]), np.maximum(corner, corner[after])
    _, number = np.unique(low * (total + 1) + high, return_inverse=True)  # in the order of the balls
    edges = np.zeros((len(ball) // 2, 4), dtype=np.int32)
    forward = corner < corner[after]
    edges[number[forward], 0], edges[number[forward], 1] = low[forward], high[forward]
    edges[number[forward], 2], edges[number[~forward], 3] = total + face[forward], total + face[~forward]
    starts[:, EDGE] = np.searchsorted(
        np.searchsorted(starts[:, CORNER], edges[:, 0], "right") - 1, np.arange(count + 1)
    )
    normals = _normals(corners.place, corner, after, rim_starts)
    local = np.concatenate([corners.place, normals])
    body = np.concatenate([corners.body, rims.body[begin]]).astype(np.int32)
    size = balls.radius.copy()
    heights = (normals * (corners.place[corner[begin]] - balls.centre[ball[begin]])).sum(axis=1)
    size[ball[begin]] = np.inf
    np.minimum.at(size, ball[begin], heights)
    rim = np.stack([corner, number], axis=1).astype(np.int32)
    return Solids(starts, local, np.empty_like(local), body, rim_starts, rim, edges, size)


def _normals(places, corner, after, rim_starts) -> np.ndarray:
    """Outward unit normals (F, 3) of faces, from all their corners (Newell)."""
    if not len(corner):
        return np.zeros((0, 3))
    origin = places[corner[np.repeat(rim_starts[:-1], np.diff(rim_starts))]]
    turns = np.cross(places[corner] - origin, places[corner[after]] - origin)
    normal = np.add.reduceat(turns, rim_starts[:-1])
    return normal / np.sqrt((normal**2).sum(axis=1))[:, None]


@kernel
def place_solids(position, orientation, local, body, corners, out):
    """Corners, which are the first ``corners`` rows, and normals in space."""
    last = -1
    xx = xy = xz = yx = yy = yz = zx = zy = zz = 0.0
    for k in range(body.size):
        i = body[k]
        if i != last:
            w, x, y, z = orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3]
            xx, xy, xz = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
            yx, yy, yz = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
            zx, zy, zz = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
            last = i
        x, y, z = local[k, 0], local[k, 1], local[k, 2]
        out[k, 0], out[k, 1], out[k, 2] = xx * x + xy * y + xz * z, yx * x + yy * y + yz * z, zx * x + zy * y + zz * z
        if k < corners:
            out[k, 0] += position[i, 0]
            out[k, 1] += position[i, 1]
            out[k, 2] += position[i, 2]


class Meetings(NamedTuple):
    """Pairs that may touch, on their way through the search; M of them, P points of contact."""

    index: np.ndarray  # (M, 9) balls ONE and OTHER, LISTED where, first ROW and ROWS of memory, HOW (the axis), its
    # edges EDGE_ONE and EDGE_TWO, COUNT of its points
    bound: np.ndarray  # (M, 5) WAY in a step, inf where the same axis is taken again; LIMIT of the gap, m; normal
    points: np.ndarray  # (P, 4) place, halfway in the gap, and gap, m; pair after pair
    names: np.ndarray  # (P, 2)


ONE, OTHER, LISTED, ROW, ROWS, HOW, EDGE_ONE, EDGE_TWO, COUNT = range(9)
WAY, LIMIT, NX, NY, NZ = range(5)


class Scratch(NamedTuple):
    """What the search notes from step to step, and room for a joint."""

    apart: np.ndarray  # (L, 2) for each place in the neighbour lists the axis that last kept the two apart, by its name
    polygon: np.ndarray  # (2, room, 3) corners of a joint: places in the plane of the face, height over it
    labels: np.ndarray  # (2, room, 3) names, and the edge to the next corner
    source: np.ndarray  # (room,) row of the memory of each corner
    used: np.ndarray  # (4 room,) rows of the memory of a pair that have gone on
    spheres: bool  # whether there are spheres beside the polyhedra


def scratch_arrays(room: int, spheres: bool) -> Scratch:
    """Arrays for joints of ``room`` corners; no pairs yet."""
    return Scratch(
        np.zeros((0, 2), dtype=np.int32), np.zeros((2, room, 3)), np.zeros((2, room, 3), np.int32),
        np.zeros(room, dtype=np.int32), np.zeros(4 * room, dtype=bool), spheres,
    )  # fmt: skip


def meeting_arrays(room: int, points: int) -> Meetings:
    """Arrays for ``room`` pairs and so many points."""
    return Meetings(
        np.empty((room, 9), dtype=np.int32), np.empty((room, 5)), np.empty((points, 4)),
        np.empty((points, 2), dtype=np.int32),
    )  # fmt: skip


@kernel(inline=True)
def speed(rows, a, b, reach_a, reach_b):
    """A bound of the relative speed of two bodies."""
    x, y, z = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[b, 2] - rows[a, 2]
    spin_a = np.sqrt(rows[a, 3] ** 2 + rows[a, 4] ** 2 + rows[a, 5] ** 2) / rows[a, 7]
    spin_b = np.sqrt(rows[b, 3] ** 2 + rows[b, 4] ** 2 + rows[b, 5] ** 2) / rows[b, 7]
    return np.sqrt(x * x + y * y + z * z) + spin_a * reach_a + spin_b * reach_b


@kernel
def near_pairs(solids, spheres, lists, outlook, known, planes, scratch, out):
    """Pairs of polyhedra, and of a polyhedron and a sphere, that may touch, in order; returns their number."""
    starts, sizes, index, bound, apart = solids.starts, solids.size, out.index, out.bound, scratch.apart
    vectors, rim_starts, rims, edges = solids.vectors, solids.rim_starts, solids.rims, solids.edges
    places, radius, body = spheres.places, spheres.radius, spheres.body
    lists_start, lists_count, other = lists.start, lists.count, lists.other
    one, two, h, slack, anticipate, keep = outlook
    found, k = 0, 0
    for i in range(radius.size):
        angular = starts[i, CORNER] < starts[i + 1, CORNER]
        for n in range(lists_start[i], lists_start[i] + lists_count[i]):
            j = other[n]
            both = angular and starts[j, CORNER] < starts[j + 1, CORNER]
            if not angular and starts[j, CORNER] == starts[j + 1, CORNER]:
                continue
            a, b, way = body[i], body[j], 0.0
            if anticipate:
                way = h * max(speed(one, a, b, radius[i], radius[j]), speed(two, a, b, radius[i], radius[j]))
            limit = slack + max(way, WATCH * min(sizes[i], sizes[j]))
            x, y, z = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
            reach = radius[i] + radius[j] + limit
            if x * x + y * y + z * z > reach * reach and not keep:
                continue
            while k < planes and (known[k, FIRST] < i or (known[k, FIRST] == i and known[k, SECOND] < j)):
                k += 1
            rows = 0
            while (
                k + rows < planes and rows < scratch.polygon.shape[1]
                and known[k + rows, FIRST] == i and known[k + rows, SECOND] == j
            ):  # fmt: skip
                rows += 1
            if both and not keep and rows == 0 and axis_known(starts, i, j, apart[n, 0], apart[n, 1]):
                if separation(vectors, starts, rim_starts, rims, edges, i, j, apart[n, 0], apart[n, 1])[0] > limit:
                    continue
            if keep and rows > 0:  # the bodies have not moved since: the same axis, whatever the velocity
                way = np.inf
            elif rows == 0 and not anticipate:
                way = h * max(speed(one, a, b, radius[i], radius[j]), speed(two, a, b, radius[i], radius[j]))
            index[found, ONE], index[found, OTHER], index[found, LISTED] = i, j, n
            index[found, ROW], index[found, ROWS], index[found, COUNT] = k, rows, 0
            index[found, EDGE_ONE], index[found, EDGE_TWO] = -1, -1
            if rows > 0 and both:
                how = known[k, AXIS]
                index[found, EDGE_ONE] = how if how < ON_SECOND else known[k, NAME_ONE] if how == EDGES else -1
                index[found, EDGE_TWO] = how - ON_SECOND if ON_SECOND <= how < EDGES else (
                    known[k, NAME_TWO] if how == EDGES else -1
                )  # fmt: skip
                if not axis_known(starts, i, j, index[found, EDGE_ONE], index[found, EDGE_TWO]):
                    index[found, EDGE_ONE], index[found, EDGE_TWO] = -1, -1
            bound[found, WAY], bound[found, LIMIT] = way, limit
            found += 1
    return found


@kernel(inline=True)
def axis_known(starts, i, j, one, two):
    """Whether there is such an axis: a face of i (f, -1) or j (-1, f), or two edges. Memory may be from elsewhere."""
    if one >= 0 and two >= 0:
        return one < starts[i + 1, EDGE] - starts[i, EDGE] and two < starts[j + 1, EDGE] - starts[j, EDGE]
    if one >= 0:
        return one < starts[i + 1, FACE] - starts[i, FACE]
    return two >= 0 and two < starts[j + 1, FACE] - starts[j, FACE]


@kernel(inline=True)
def face_level(vectors, starts, rim_starts, rims, face):
    """Normal of a face, and the level of its plane along it."""
    row, corner = starts[starts.shape[0] - 1, CORNER] + face, rims[rim_starts[face], 0]
    nx, ny, nz = vectors[row, 0], vectors[row, 1], vectors[row, 2]
    return nx, ny, nz, nx * vectors[corner, 0] + ny * vectors[corner, 1] + nz * vectors[corner, 2]


@kernel(inline=True)
def lowest(vectors, begin, end, nx, ny, nz):
    """The least height of the corners ``begin`` to ``end`` along a normal."""
    height = np.inf
    for k in range(begin, end):
        height = min(height, nx * vectors[k, 0] + ny * vectors[k, 1] + nz * vectors[k, 2])
    return height


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


@kernel
def cut_faces(vectors, starts, rim_starts, rims, polygon, labels, p, face, q, size):
    """The joint of a ``face`` of p with the face of q that looks at it: polygon with names, in row 0 of the scratch.

    Returns the number of its corners, the least height of q over the face, and whether the two faces are parallel and
    overlap along a line only.
    """
    nx, ny, nz, level = face_level(vectors, starts, rim_starts, rims, face)
    low = lowest(vectors, starts[q, CORNER], starts[q + 1, CORNER], nx, ny, nz)
    other, along = facing(vectors, starts, rim_starts, rims, q, nx, ny, nz, low, ALIKE * size)
    low -= level
    begin, end = rim_starts[face], rim_starts[face + 1]
    o, c = rims[begin, 0], rims[begin + 1, 0]
    ox, oy, oz = vectors[o, 0], vectors[o, 1], vectors[o, 2]
    tx, ty, tz = vectors[c, 0] - ox, vectors[c, 1] - oy, vectors[c, 2] - oz
    f = 1.0 / np.sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = f * tx, f * ty, f * tz
    sx, sy, sz = ny * tz - nz * ty, nz * tx - nx * tz, nx * ty - ny * tx
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
    small = MERGED * size
    for k in range(begin, end):
        c, d = rims[k, 0], rims[k + 1 if k + 1 < end else begin, 0]
        x, y, z = vectors[c, 0] - ox, vectors[c, 1] - oy, vectors[c, 2] - oz
        u, v = tx * x + ty * y + tz * z, sx * x + sy * y + sz * z
        x, y, z = vectors[d, 0] - ox, vectors[d, 1] - oy, vectors[d, 2] - oz
        eu, ev = tx * x + ty * y + tz * z - u, sx * x + sy * y + sz * z - v
        f = 1.0 / np.sqrt(eu * eu + ev * ev)
        eu, ev = f * eu, f * ev
        mine, there, kept = rims[k, 1] - starts[p, EDGE], 1 - here, 0
        if count == 0:
            break
        inside = eu * (polygon[here, count - 1, 1] - v) - ev * (polygon[here, count - 1, 0] - u)
        for m in range(count if count + k - begin + 4 < polygon.shape[1] else 0):
            back = m - 1 if m > 0 else count - 1
            before, inside = inside, eu * (polygon[here, m, 1] - v) - ev * (polygon[here, m, 0] - u)
            if (before < -small and inside > small) or (before > small and inside < -small):
                # the edge from `back` to `m` crosses: a corner of the face where it runs along one of its edges
                share = before / (before - inside)
                for n in range(3):
                    polygon[there, kept, n] = polygon[here, back, n] + share * (
                        polygon[here, m, n] - polygon[here, back, n]
                    )
                edge = labels[here, back, 2]
                if edge >= 0:
                    labels[there, kept, 0], labels[there, kept, 1] = mine, edge
                else:
                    at = k if k - begin == -edge else begin  # edge k - 1 and k meet at corner k, the last and 0 at 0
                    labels[there, kept, 0], labels[there, kept, 1] = rims[at, 0] - starts[p, CORNER], -1
                labels[there, kept, 2] = edge if inside > small else -1 - (k - begin)
                kept += 1
            if inside >= -small:
                for n in range(3):
                    polygon[there, kept, n] = polygon[here, m, n]
                    labels[there, kept, n] = labels[here, m, n]
                after = m + 1 if m + 1 < count else 0
                if inside <= small and eu * (polygon[here, after, 1] - v) - ev * (polygon[here, after, 0] - u) < -small:
                    labels[there, kept, 2] = -1 - (k - begin)  # on the line, and the next one is outside
                kept += 1
        here, count = there, kept
    mine, its, kept = 0, 0, 0
    for m in range(count):
        mine += labels[here, m, 1] == -1
        its += labels[here, m, 0] == -1
        alone = True
        for back in (kept - 1, 0):
            if 0 <= back < kept:
                x, y = polygon[here, m, 0] - polygon[0, back, 0], polygon[here, m, 1] - polygon[0, back, 1]
                alone = alone and x * x + y * y > (CLOSE * size) ** 2
        if alone:
            for n in range(3):
                polygon[0, kept, n], labels[0, kept, n] = polygon[here, m, n], labels[here, m, n]
            kept += 1
    whole = mine == end - begin or its == last - first  # one face lies within the other, be it as small as it may
    count = kept
    area, around = 0.0, 0.0
    for m in range(count):
        after = m + 1 if m + 1 < count else 0
        x, y = polygon[0, after, 0] - polygon[0, m, 0], polygon[0, after, 1] - polygon[0, m, 1]
        area += 0.5 * (polygon[0, m, 0] * polygon[0, after, 1] - polygon[0, after, 0] * polygon[0, m, 1])
        around += np.sqrt(x * x + y * y)
    return count, low, not whole and along < -1.0 + 1e-12 and area <= DEGENERATE * size * around


@kernel
def write_joint(solids, polygon, labels, count, face, first, points, names, at):
    """The corners of a joint as points of contact; ``first``: the face is one of the first body."""
    vectors, rims, rim_starts, starts = solids.vectors, solids.rims, solids.rim_starts, solids.starts
    nx, ny, nz, _ = face_level(vectors, starts, rim_starts, rims, face)
    o, c = rims[rim_starts[face], 0], rims[rim_starts[face] + 1, 0]
    tx, ty, tz = vectors[c, 0] - vectors[o, 0], vectors[c, 1] - vectors[o, 1], vectors[c, 2] - vectors[o, 2]
    f = 1.0 / np.sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = f * tx, f * ty, f * tz
    sx, sy, sz = ny * tz - nz * ty, nz * tx - nx * tz, nx * ty - ny * tx
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


@kernel
def settle(solids, meetings, m, scratch, at):
    """The joint of a pair by the axis that it had; returns its corners, -1 where another axis may be better, -2 where
    this one keeps them apart."""
    vectors, starts, rim_starts, rims = solids.vectors, solids.starts, solids.rim_starts, solids.rims
    index, bound = meetings.index, meetings.bound
    i, j, one, two = index[m, ONE], index[m, OTHER], index[m, EDGE_ONE], index[m, EDGE_TWO]
    size, limit, sure = min(solids.size[i], solids.size[j]), bound[m, LIMIT], bound[m, WAY] == np.inf
    if one >= 0 and two >= 0:
        e, g = starts[i, EDGE] + one, starts[j, EDGE] + two
        gap, bound[m, NX], bound[m, NY], bound[m, NZ] = edge_axis(vectors, solids.edges, e, g)
        if gap == -np.inf:
            return nearest_apart(solids, meetings, m, np.inf, at) if sure else -1
        inside = cut_edges(solids, meetings, m, i, j, at)
        if gap > limit and not sure:
            return -2
        return 1 if sure or (inside and gap >= -SETTLED * size) else -1
    p, q, sign = (i, j, 1.0) if one >= 0 else (j, i, -1.0)
    face = starts[p, FACE] + (one if one >= 0 else two)
    count, low, passing = cut_faces(
        vectors, starts, rim_starts, rims, scratch.polygon, scratch.labels, p, face, q, size
    )
    if low > limit and not sure:
        return -2
    least = np.inf
    for k in range(count):
        least = min(least, scratch.polygon[0, k, 2])
    if not sure and (count == 0 or passing or low < -SETTLED * size or least > low + SETTLED * size):
        return -1
    if sure and count == 0:
        count = corner_alone(solids, face, p, q, one >= 0, meetings.points, meetings.names, at)
    else:
        count = 0 if passing else count
        write_joint(solids, scratch.polygon, scratch.labels, count, face, one >= 0, meetings.points, meetings.names, at)
    row = starts[starts.shape[0] - 1, CORNER] + face
    bound[m, NX], bound[m, NY], bound[m, NZ] = sign * vectors[row, 0], sign * vectors[row, 1], sign * vectors[row, 2]
    return count


@kernel
def choose(solids, meetings, m, body, velocities, scratch, at):
    """The joint of a pair by the best axis; returns its corners, 0 where they are apart."""
    vectors, starts, rim_starts, rims, edges = (
        solids.vectors, solids.starts, solids.rim_starts, solids.rims, solids.edges
    )  # fmt: skip
    index, bound = meetings.index, meetings.bound
    i, j, old_one, old_two = index[m, ONE], index[m, OTHER], index[m, EDGE_ONE], index[m, EDGE_TWO]
    size, limit, way = min(solids.size[i], solids.size[j]), bound[m, LIMIT], bound[m, WAY]
    a, b, fresh = body[i], body[j], old_one < 0 and old_two < 0
    velocity = (velocities[b, 0] - velocities[a, 0], velocities[b, 1] - velocities[a, 1],
                velocities[b, 2] - velocities[a, 2])  # fmt: skip
    one, two, best, near = choose_axis(
        vectors, starts, rim_starts, rims, edges, i, j, size, velocity, way, limit, fresh
    )
    if not near:
        scratch.apart[index[m, LISTED], 0], scratch.apart[index[m, LISTED], 1] = one, two
        return 0
    if not fresh and (one != old_one or two != old_two):
        kept = separation(vectors, starts, rim_starts, rims, edges, i, j, old_one, old_two)[0]
        if kept >= best - (max(0.0, -best) + ALIKE * size):
            count = joint(solids, meetings, m, old_one, old_two, best, True, scratch, at)
            if count >= 0:
                return count
    return joint(solids, meetings, m, one, two, best, False, scratch, at)


@kernel
def joint(solids, meetings, m, one, two, best, whole, scratch, at):
    """The joint of a pair by an axis; returns its corners.

    ``whole``: -1 where the joint lacks the deepest place of the pair, which lies beside the face: by this axis it would
    be overlooked, however deep.
    """
    vectors, starts, rim_starts, rims, edges = (
        solids.vectors, solids.starts, solids.rim_starts, solids.rims, solids.edges
    )  # fmt: skip
    index, bound = meetings.index, meetings.bound
    i, j = index[m, ONE], index[m, OTHER]
    size, limit = min(solids.size[i], solids.size[j]), bound[m, LIMIT]
    index[m, EDGE_ONE], index[m, EDGE_TWO] = one, two
    _, bound[m, NX], bound[m, NY], bound[m, NZ] = separation(vectors, starts, rim_starts, rims, edges, i, j, one, two)
    if one >= 0 and two >= 0:
        inside = cut_edges(solids, meetings, m, i, j, at)
        return 1 if inside or not whole else -1
    p, q = (i, j) if one >= 0 else (j, i)
    face = starts[p, FACE] + (one if one >= 0 else two)
    count, low, passing = cut_faces(
        vectors, starts, rim_starts, rims, scratch.polygon, scratch.labels, p, face, q, size
    )
    if whole:
        least = np.inf
        for k in range(count):
            least = min(least, scratch.polygon[0, k, 2])
        if passing or least > low + SETTLED * size:
            return -1
    if passing:
        return 0
    if count == 0:
        if best > 0.0:
            return nearest_apart(solids, meetings, m, limit, at)
        return corner_alone(solids, face, p, q, one >= 0, meetings.points, meetings.names, at)
    write_joint(solids, scratch.polygon, scratch.labels, count, face, one >= 0, meetings.points, meetings.names, at)
    return count


@kernel
def sphere_on_solid(solids, q, x, y, z):
    """The point of a polyhedron nearest to (x, y, z): height over it, and the normal there; inside, by a face."""
    vectors, starts, rim_starts, rims = solids.vectors, solids.starts, solids.rim_starts, solids.rims
    best, nx, ny, nz, square, found = -np.inf, 0.0, 0.0, 0.0, np.inf, False
    for f in range(starts[q, FACE], starts[q + 1, FACE]):
        fx, fy, fz, level = face_level(vectors, starts, rim_starts, rims, f)
        height = fx * x + fy * y + fz * z - level
        if height > best and not found:
            best, nx, ny, nz = height, fx, fy, fz
        if height <= 0.0:
            continue
        begin, end, over = rim_starts[f], rim_starts[f + 1], True
        for k in range(begin, end):  # nearest to the face, or to one of its edges
            c, d = rims[k, 0], rims[k + 1 if k + 1 < end else begin, 0]
            ex, ey, ez = vectors[d, 0] - vectors[c, 0], vectors[d, 1] - vectors[c, 1], vectors[d, 2] - vectors[c, 2]
            px, py, pz = x - vectors[c, 0], y - vectors[c, 1], z - vectors[c, 2]
            if fx * (ey * pz - ez * py) + fy * (ez * px - ex * pz) + fz * (ex * py - ey * px) < 0.0:
                over = False
                along = (ex * px + ey * py + ez * pz) / (ex * ex + ey * ey + ez * ez)
                along = min(1.0, max(0.0, along))
                px, py, pz = px - along * ex, py - along * ey, pz - along * ez
                if px * px + py * py + pz * pz < square:
                    square, found = px * px + py * py + pz * pz, True
                    best = np.sqrt(square)
                    nx, ny, nz = px / best, py / best, pz / best
        if over:
            return height, fx, fy, fz
    return best, nx, ny, nz


@kernel
def spheres_on_solids(solids, meetings, m, places, radius, at):
    """The contact of a sphere and a polyhedron."""
    index, bound, points, names = meetings.index, meetings.bound, meetings.points, meetings.names
    i, j, starts = index[m, ONE], index[m, OTHER], solids.starts
    first = starts[i, CORNER] < starts[i + 1, CORNER]
    q, ball, sign = (i, j, 1.0) if first else (j, i, -1.0)
    height, nx, ny, nz = sphere_on_solid(solids, q, places[ball, 0], places[ball, 1], places[ball, 2])
    gap = height - radius[ball]
    reach = radius[ball] + 0.5 * gap
    points[at, 0], points[at, 1] = places[ball, 0] - reach * nx, places[ball, 1] - reach * ny
    points[at, 2], points[at, 3] = places[ball, 2] - reach * nz, gap
    names[at, 0], names[at, 1] = -1, -1
    bound[m, NX], bound[m, NY], bound[m, NZ] = sign * nx, sign * ny, sign * nz


@kernel
def meet(solids, spheres, lists, outlook, known, planes, scratch, out):
    """Where polyhedra touch each other, and spheres; returns the numbers of pairs and of points.

    ``known`` is the index of the present contacts, ``planes`` the row of the first one with a plane. Where there are
    more points than room, their number alone is meant.
    """
    count = near_pairs(solids, spheres, lists, outlook, known, planes, scratch, out)
    index, starts, places, radius, body = out.index, solids.starts, spheres.places, spheres.radius, spheres.body
    at, most = 0, scratch.polygon.shape[1]
    for m in range(count):
        i, j = index[m, ONE], index[m, OTHER]
        if at + most > out.points.shape[0]:
            at += most
            continue
        if starts[i, CORNER] == starts[i + 1, CORNER] or starts[j, CORNER] == starts[j + 1, CORNER]:
            spheres_on_solids(solids, out, m, places, radius, at)
            index[m, COUNT], index[m, HOW] = 1, 0
            at += 1
            continue
        corners = -1
        if index[m, EDGE_ONE] >= 0 or index[m, EDGE_TWO] >= 0:
            corners = settle(solids, out, m, scratch, at)
        if corners == -2:
            scratch.apart[index[m, LISTED], 0] = index[m, EDGE_ONE]
            scratch.apart[index[m, LISTED], 1] = index[m, EDGE_TWO]
        elif corners == -1:
            corners = choose(solids, out, m, body, outlook.one, scratch, at)
        one, two = index[m, EDGE_ONE], index[m, EDGE_TWO]
        index[m, HOW] = EDGES if one >= 0 and two >= 0 else one if one >= 0 else ON_SECOND + two
        index[m, COUNT] = max(corners, 0)
        at += index[m, COUNT]
    return count, at
