"""Pairs of convex polyhedra that meet, each other and spheres: by the axis that they had, or by the best (3D).

A pair that touched in the last step keeps its axis without a look at the others where the joint itself shows that none
is better: with points a of one and b of the other body, the separation along any axis d is d . (b - a) at most, so that
b - a = g n with a small gap g settles it. Else a pair keeps its axis while that is nearly as good as the best one, so
that the normal does not jump.
"""

import numpy as np

from ..._jit import kernel
from .axes import ALIKE, HELD, SETTLED, axis_known, choose_axis, edge_axis, separation
from .cutting import corner_alone, cut_edges, cut_faces, nearest_apart, write_joint
from .pairs import rows_before
from .solids import (
    CORNER,
    COUNT,
    EDGE,
    EDGE_ONE,
    EDGE_TWO,
    FACE,
    HOW,
    LIMIT,
    LISTED,
    NX,
    NY,
    NZ,
    ONE,
    OTHER,
    ROW,
    ROWS,
    WAY,
    face_level,
)
from .touches import AXIS, FIRST, NAME_ONE, NAME_TWO, SECOND

WATCH = 1e-3  # of the size: pairs up to this are looked at
ON_SECOND = 1 << 20  # axis: face of the second polyhedron
EDGES = 1 << 21  # axis: two edges, those of the contact's name


@kernel(inline=True)
def speed(rows, a, b, reach_a, reach_b):
    """A bound of the relative speed of two bodies."""
    x, y, z = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[b, 2] - rows[a, 2]
    spin_a = np.sqrt(rows[a, 3] ** 2 + rows[a, 4] ** 2 + rows[a, 5] ** 2) / rows[a, 7]
    spin_b = np.sqrt(rows[b, 3] ** 2 + rows[b, 4] ** 2 + rows[b, 5] ** 2) / rows[b, 7]
    return np.sqrt(x * x + y * y + z * z) + spin_a * reach_a + spin_b * reach_b


@kernel
def near_pairs(solids, spheres, lists, outlook, known, planes, scratch, share, out):
    """Pairs of polyhedra, and of a polyhedron and a sphere, that may touch, in order; returns their number.

    The first of each is one of the balls of the ``share``.
    """
    starts, sizes, index, bound, apart = solids.starts, solids.size, out.index, out.bound, scratch.apart
    vectors, rim_starts, rims, edges = solids.vectors, solids.rim_starts, solids.rims, solids.edges
    places, radius, body = spheres.places, spheres.radius, spheres.body
    lists_start, lists_count, other = lists.start, lists.count, lists.other
    one, two, h, slack, anticipate, keep = outlook
    found, k = 0, rows_before(known[:, FIRST], planes, share.begin)
    for i in range(share.begin, share.end):
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
        if kept >= best - (min(max(0.0, -best), HELD * size) + ALIKE * size):
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
def meet(solids, spheres, lists, outlook, known, planes, scratch, share, out):
    """Where polyhedra touch each other, and spheres; returns the numbers of pairs and of points.

    ``known`` is the index of the present contacts, ``planes`` the row of the first one with a plane. Where there are
    more points than room, their number alone is meant.
    """
    count = near_pairs(solids, spheres, lists, outlook, known, planes, scratch, share, out)
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
