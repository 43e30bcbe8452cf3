"""Where polygons touch: separating axes with persistent features (2D).

*Two polygons.* An axis is the outward normal of an edge of either; its separation is the least height of the other
polygon over the line of the edge. The polygons overlap where no separation is positive. The edge that is chosen carries
the common tangent plane; the edge of the other polygon that faces it is cut to its length, and the two ends of what is
left are the candidates of contact: each is a corner of one polygon over an edge of the other. A corner over an edge
thus has one contact (the other end is open), an edge on an edge two.

*Which edge.* A pair that touched in the last step keeps its edge while that is nearly as good as the best one, so that
the normal does not jump. Otherwise the choice is the papers' remark on asperities (2004, section 4.2): where two
corners meet by their points, non-interpenetration is no finite set of inequalities, and the motion must say which plane
is plausible. Every axis with separation s and rate s' crosses zero at the time -s / s'; the polygons begin to overlap
when the last one does. Among the axes that the relative motion of one step cannot tell apart, this last one is taken.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from .pairs import rows_before
from .touches import AXIS, FIRST, SECOND

WATCH = 1e-3  # of the size: pairs up to this are looked at
ALIKE = 1e-7  # of the size: heights that differ by less are the same
HELD = 1e-2  # of the size: an edge is kept that is worse than the best one by this, or as much as that overlaps
DEGENERATE = 1e-9  # of the size: parallel edges that overlap by less meet in a point and pass each other
LEFT, RIGHT = 0, 1
ON_SECOND = 1 << 20  # feature: corner of the second polygon; axis: edge of the second polygon


class Outlines(NamedTuple):
    """Convex parts of polygons by ball; S balls, C corners. A disk has no corners."""

    start: np.ndarray  # (S+1,) ball s holds the corners start[s] to start[s+1]
    local: np.ndarray  # (C, 4) corner, and outward normal of the edge to the next one, in the axes of the body, m
    body: np.ndarray  # (C,)
    size: np.ndarray  # (S,) radius of the ball inside the part, about its middle, m; overlaps are measured by it
    world: np.ndarray  # (C, 2) in space at the present position, m
    normal: np.ndarray  # (C, 2) outward normal of the edge from a corner to the next one


def outlines(balls, corners) -> Outlines:
    """Sort the corners of a model by the ball that holds them."""
    count = len(balls.radius)
    first_ball = np.searchsorted(balls.body, corners.body)
    ball = first_ball + corners.part
    start = np.searchsorted(ball, np.arange(count + 1))
    local, flat, after = np.zeros((len(ball), 4)), np.flatnonzero(np.diff(start)), np.arange(1, len(ball) + 1)
    after[start[flat + 1] - 1] = start[flat]
    place = corners.place[:, :2]
    edge = place[after] - place
    normal = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.sqrt((edge**2).sum(axis=1))[:, None]
    local[:, :2], local[:, 2:] = place, normal
    size, heights = balls.radius.copy(), ((place - balls.centre[ball, :2]) * normal).sum(axis=1)
    if len(flat):
        size[flat] = np.minimum.reduceat(heights, start[flat])
    return Outlines(start, local, corners.body, size, np.empty((len(ball), 2)), np.empty((len(ball), 2)))


@kernel
def place_corners(pose, outline, begin, end):
    """Corners ``begin`` to ``end`` and the normals of their edges in space, at the ``pose``."""
    position, orientation = pose
    local, body, world, normal = outline.local, outline.body, outline.world, outline.normal
    for k in range(begin, end):
        i = body[k]
        w, z = orientation[i, 0], orientation[i, 3]
        c, s = w * w - z * z, 2.0 * w * z
        world[k, 0] = position[i, 0] + c * local[k, 0] - s * local[k, 1]
        world[k, 1] = position[i, 1] + s * local[k, 0] + c * local[k, 1]
        normal[k, 0], normal[k, 1] = c * local[k, 2] - s * local[k, 3], s * local[k, 2] + c * local[k, 3]


@kernel
def place_some(pose, outline, balls):
    """The same of the parts of some ``balls`` (n,)."""
    for n in range(balls.size):
        place_corners(pose, outline, outline.start[balls[n]], outline.start[balls[n] + 1])


class Meetings(NamedTuple):
    """Pairs that may touch, on their way through the search; M of them at most."""

    index: np.ndarray  # (M, 7) balls ONE and OTHER, LISTED where, first ROW and ROWS of memory, EDGE, CORNER over it
    bound: np.ndarray  # (M, 2) WAY in a step, inf where the same features are taken again; LIMIT of the gap, m
    ends: np.ndarray  # (M, 8) point and gap of both ends of the overlap, normal from one to the other
    names: np.ndarray  # (M, 5) COUNT of the ends; feature and end of each


class Scratch(NamedTuple):
    """What the search notes from step to step."""

    apart: np.ndarray  # one axis for each place in the neighbour lists: that which last kept the two apart
    heights: np.ndarray  # (2, most corners of a part)
    disks: bool  # whether there are disks beside the polygons


ONE, OTHER, LISTED, ROW, ROWS, EDGE, CORNER = range(7)
WAY, LIMIT = range(2)
COUNT = 0


def meeting_arrays(room: int) -> Meetings:
    """Arrays for ``room`` pairs."""
    return Meetings(
        np.empty((room, 7), dtype=np.int32), np.empty((room, 2)), np.empty((room, 8)),
        np.empty((room, 5), dtype=np.int32),
    )  # fmt: skip


@kernel(inline=True)
def speed(rows, a, b, reach_a, reach_b):
    """A bound of the relative speed of two bodies."""
    x, y = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1]
    spin = abs(rows[a, 5]) / rows[a, 7] * reach_a + abs(rows[b, 5]) / rows[b, 7] * reach_b
    return np.sqrt(x * x + y * y) + spin


@kernel
def near_pairs(outline, spheres, lists, outlook, known, planes, apart, share, out):
    """Pairs of polygons, and of a polygon and a disk, that may touch, in order, into ``out``; returns their number.

    The first of each is one of the balls of the ``share``.
    ``apart`` has an axis for each place in the neighbour lists, the one that last kept the two apart: most pairs are
    done with by a look at it. It is only a hint; where lists have changed, it misses.
    """
    start, sizes, world, normal = outline.start, outline.size, outline.world, outline.normal
    index, bound = out.index, out.bound
    places, radius, body = spheres.places, spheres.radius, spheres.body
    lists_start, lists_count, other = lists.start, lists.count, lists.other
    one, two, h, slack, anticipate, keep = outlook
    found, k = 0, rows_before(known[:, FIRST], planes, share.begin)
    for i in range(share.begin, share.end):
        flat = start[i] < start[i + 1]
        for n in range(lists_start[i], lists_start[i] + lists_count[i]):
            j = other[n]
            both = flat and start[j] < start[j + 1]
            if not flat and start[j] == start[j + 1]:
                continue
            a, b, way = body[i], body[j], 0.0
            if anticipate:
                way = h * max(speed(one, a, b, radius[i], radius[j]), speed(two, a, b, radius[i], radius[j]))
            limit = slack + max(way, WATCH * min(sizes[i], sizes[j]))
            x, y, reach = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], radius[i] + radius[j] + limit
            if x * x + y * y > reach * reach and not keep:
                continue
            while k < planes and (known[k, FIRST] < i or (known[k, FIRST] == i and known[k, SECOND] < j)):
                k += 1
            rows = 0
            while k + rows < planes and known[k + rows, FIRST] == i and known[k + rows, SECOND] == j:
                rows += 1
            if both and not keep and rows == 0:
                p, q, e = (i, j, apart[n]) if apart[n] < ON_SECOND else (j, i, apart[n] - ON_SECOND)
                e += start[p]
                if e < start[p + 1]:
                    nx, ny, height = normal[e, 0], normal[e, 1], np.inf
                    for c in range(start[q], start[q + 1]):
                        height = min(height, nx * world[c, 0] + ny * world[c, 1])
                    if height - (nx * world[e, 0] + ny * world[e, 1]) > limit:
                        continue
            if keep and rows > 0:  # the bodies have not moved since: the same features, whatever the velocity
                way = np.inf
            elif rows == 0 and not anticipate:
                way = h * max(speed(one, a, b, radius[i], radius[j]), speed(two, a, b, radius[i], radius[j]))
            index[found, ONE], index[found, OTHER], index[found, LISTED] = i, j, n
            index[found, ROW], index[found, ROWS], index[found, CORNER] = k, rows, -1
            index[found, EDGE] = known[k, AXIS] if rows > 0 else -1
            bound[found, WAY], bound[found, LIMIT] = way, limit
            found += 1
    return found


@kernel(inline=True)
def _height(world, normal, edge, begin, end):
    """Least height of the corners ``begin`` to ``end`` over the line of ``edge``, without a branch."""
    nx, ny = normal[edge, 0], normal[edge, 1]
    best = np.inf
    for k in range(begin, end):
        best = min(best, nx * world[k, 0] + ny * world[k, 1])
    return best - (nx * world[edge, 0] + ny * world[edge, 1])


@kernel
def choose_axis(i, j, start, world, normal, places, sizes, previous, velocity, travel, limit, heights):
    """The edge that carries the tangent plane of two polygons, and whether none keeps them apart by ``limit``.

    ``velocity`` (2,) is that of j with respect to i, ``travel`` its way in a step. ``heights`` is scratch,
    (2, most corners of a part). An edge is passed over where the ball inside the other polygon (``sizes``, about
    ``places``) is enough to show that it is not among the best.
    """
    best, code, kept, (ux, uy) = -np.inf, -1, -np.inf, velocity
    if previous >= 0:
        one, two, e = (i, j, previous) if previous < ON_SECOND else (j, i, previous - ON_SECOND)
        kept = _height(world, normal, start[one] + e, start[two], start[two + 1])
        if kept > limit:
            return previous, False
        best, code = kept, previous
    for side in range(2):
        one, two = (i, j) if side == 0 else (j, i)
        x, y, inside = places[two, 0], places[two, 1], sizes[two]
        for e in range(start[one], start[one + 1]):
            bound = normal[e, 0] * (x - world[e, 0]) + normal[e, 1] * (y - world[e, 1]) - inside
            heights[side, e - start[one]] = -np.inf
            if bound < best - travel:
                continue
            nx, ny, height = normal[e, 0], normal[e, 1], np.inf  # `_height`, written out: this is the hottest loop
            for k in range(start[two], start[two + 1]):
                height = min(height, nx * world[k, 0] + ny * world[k, 1])
            height -= nx * world[e, 0] + ny * world[e, 1]
            if height > limit:
                return side * ON_SECOND + e - start[one], False
            heights[side, e - start[one]] = height
            if height > best:
                best, code = height, side * ON_SECOND + e - start[one]
    if previous >= 0:
        size = min(sizes[i], sizes[j])
        near_best = kept >= best - (min(max(0.0, -best), HELD * size) + ALIKE * size)
        return previous if near_best else code, True
    latest = -1e300
    for side in range(2):
        one, sign = (i, 1.0) if side == 0 else (j, -1.0)
        for k in range(start[one], start[one + 1]):
            height = heights[side, k - start[one]]
            rate = sign * (ux * normal[k, 0] + uy * normal[k, 1])
            if height < best - travel or rate >= 0.0:
                continue
            if -height / rate > latest + 1e-12 * abs(latest):
                latest, code = -height / rate, side * ON_SECOND + k - start[one]
    return code, True


@kernel
def choose_axes(meetings, count, outline, places, body, one, heights, apart):
    """The edge that carries the tangent plane of each pair of polygons; -1, and a hint in ``apart``, where none meet.

    A pair that touched keeps its edge where the corners of that edge, and those of the edge that faces it, are enough
    to show that no other edge is better (`choose_axis` asks all corners).
    """
    start, sizes, world, normal = outline.start, outline.size, outline.world, outline.normal
    index, bound = meetings.index, meetings.bound
    for m in range(count):
        i, j, previous = index[m, ONE], index[m, OTHER], index[m, EDGE]
        if start[i] == start[i + 1] or start[j] == start[j + 1] or bound[m, WAY] == np.inf:
            continue
        size, limit, settled = min(sizes[i], sizes[j]), bound[m, LIMIT], False
        if previous >= 0:
            p, q, e = (i, j, start[i] + previous) if previous < ON_SECOND else (j, i, start[j] + previous - ON_SECOND)
            nx, ny, kept, corner = normal[e, 0], normal[e, 1], np.inf, start[q]
            for c in range(start[q], start[q + 1]):
                height = nx * world[c, 0] + ny * world[c, 1]
                if height < kept:
                    kept, corner = height, c
            kept -= nx * world[e, 0] + ny * world[e, 1]
            index[m, CORNER] = corner
            back = corner - 1 if corner > start[q] else start[q + 1] - 1
            facing = corner
            if nx * normal[back, 0] + ny * normal[back, 1] < nx * normal[corner, 0] + ny * normal[corner, 1]:
                facing = back
            after, end = e + 1 if e + 1 < start[p + 1] else start[p], facing + 1
            end = end if end < start[q + 1] else start[q]
            highest = kept
            for f in range(start[p], start[p + 1]):
                nx, ny, level = normal[f, 0], normal[f, 1], normal[f, 0] * world[f, 0] + normal[f, 1] * world[f, 1]
                height = min(nx * world[facing, 0] + ny * world[facing, 1], nx * world[end, 0] + ny * world[end, 1])
                highest = max(highest, height - level if f != e else kept)
            for f in range(start[q], start[q + 1]):
                nx, ny, level = normal[f, 0], normal[f, 1], normal[f, 0] * world[f, 0] + normal[f, 1] * world[f, 1]
                height = min(nx * world[e, 0] + ny * world[e, 1], nx * world[after, 0] + ny * world[after, 1])
                highest = max(highest, height - level)
            settled = highest <= min(limit, kept + min(max(0.0, -0.4 * kept), HELD * size) + 0.5 * ALIKE * size)
        if not settled:
            a, b = body[i], body[j]
            velocity = one[b, 0] - one[a, 0], one[b, 1] - one[a, 1]
            axis, near = choose_axis(i, j, start, world, normal, places, sizes, previous, velocity, bound[m, WAY],
                                     limit, heights)  # fmt: skip
            index[m, CORNER] = index[m, CORNER] if axis == previous else -1
            index[m, EDGE] = axis if near else -1
            if not near:
                apart[index[m, LISTED]] = axis


@kernel
def cut_edges(meetings, count, outline):
    """The ends of the overlap of each chosen edge with the edge that faces it."""
    start, sizes, world, normal = outline.start, outline.size, outline.world, outline.normal
    index, bound, ends, names = meetings
    for m in range(count):
        i, j, code, way = index[m, ONE], index[m, OTHER], index[m, EDGE], bound[m, WAY]
        if start[i] == start[i + 1] or start[j] == start[j + 1]:
            continue
        names[m, COUNT] = 0
        if code < 0:
            continue
        side = 0 if code < ON_SECOND else 1
        p, q, e = (i, j, start[i] + code) if side == 0 else (j, i, start[j] + code - ON_SECOND)
        after = e + 1 if e + 1 < start[p + 1] else start[p]
        nx, ny, x0, y0 = normal[e, 0], normal[e, 1], world[e, 0], world[e, 1]
        tx, ty = -ny, nx
        length = tx * (world[after, 0] - x0) + ty * (world[after, 1] - y0)
        corner = index[m, CORNER]
        if corner < 0:
            best = np.inf
            for c in range(start[q], start[q + 1]):
                height = nx * world[c, 0] + ny * world[c, 1]
                if height < best:
                    best, corner = height, c
        lowest = nx * world[corner, 0] + ny * world[corner, 1] - (nx * x0 + ny * y0)
        back = corner - 1 if corner > start[q] else start[q + 1] - 1
        facing = corner
        if nx * normal[back, 0] + ny * normal[back, 1] < nx * normal[corner, 0] + ny * normal[corner, 1]:
            facing = back
        other = facing + 1 if facing + 1 < start[q + 1] else start[q]
        sign = 1.0 if side == 0 else -1.0
        ends[m, 6], ends[m, 7] = sign * nx, sign * ny
        # The facing edge runs against the tangent: its end `other` is the left one.
        xl = tx * (world[other, 0] - x0) + ty * (world[other, 1] - y0)
        yl = nx * (world[other, 0] - x0) + ny * (world[other, 1] - y0)
        xr = tx * (world[facing, 0] - x0) + ty * (world[facing, 1] - y0)
        yr = nx * (world[facing, 0] - x0) + ny * (world[facing, 1] - y0)
        left, right = max(0.0, xl), min(length, xr)
        mine, its = (0, ON_SECOND) if side == 0 else (ON_SECOND, 0)
        if left > right:
            # Corners that miss each other unless they overlap, or move over each other within the step.
            xc = tx * (world[corner, 0] - x0) + ty * (world[corner, 1] - y0)
            if lowest > 0.0 and not -way <= xc <= length + way:
                continue
            xc = min(length, max(0.0, xc))
            ends[m, 0], ends[m, 1] = x0 + xc * tx + 0.5 * lowest * nx, y0 + xc * ty + 0.5 * lowest * ny
            ends[m, 2], names[m, 1] = lowest, its + corner - start[q]
            names[m, COUNT], names[m, 2] = 1, LEFT if corner == other else RIGHT
            continue
        slope = (yr - yl) / (xr - xl) if xr > xl else 0.0
        if right - left <= DEGENERATE * min(sizes[i], sizes[j]) and abs(slope) < 1e-6:
            continue
        for k in range(2):
            x, own = (left, xl >= 0.0) if k == 0 else (right, xr <= length)
            at = k if side == 0 else 1 - k  # seen along the normal from the first to the second
            y = (yl if k == 0 else yr) if own else yl + slope * (x - xl)
            corner = (other if k == 0 else facing) if own else (e if k == 0 else after)
            ends[m, 3 * at], ends[m, 3 * at + 1] = x0 + x * tx + 0.5 * y * nx, y0 + x * ty + 0.5 * y * ny
            ends[m, 3 * at + 2], names[m, 2 + 2 * at] = y, at
            names[m, 1 + 2 * at] = its + corner - start[q] if own else mine + corner - start[p]
        names[m, COUNT] = 2


@kernel
def disks_on_polygons(meetings, count, outline, places, radius):
    """The contact of each pair of a disk and a polygon; the edge is the nearest, or begins at the nearest corner."""
    start, world, normal = outline.start, outline.world, outline.normal
    index, _, ends, names = meetings
    for m in range(count):
        i, j = index[m, ONE], index[m, OTHER]
        flat = start[i] < start[i + 1]
        if flat and start[j] < start[j + 1]:
            continue
        q, disk, sign = (i, j, 1.0) if flat else (j, i, -1.0)
        x, y = places[disk, 0], places[disk, 1]
        best, edge = -np.inf, start[q]
        for e in range(start[q], start[q + 1]):
            height = normal[e, 0] * (x - world[e, 0]) + normal[e, 1] * (y - world[e, 1])
            if height > best:
                best, edge = height, e
        nx, ny = normal[edge, 0], normal[edge, 1]
        after = edge + 1 if edge + 1 < start[q + 1] else start[q]
        if best > 0.0:
            for corner in (edge, after):
                ahead = -ny * (x - world[corner, 0]) + nx * (y - world[corner, 1])
                if (corner == edge and ahead < 0.0) or (corner == after and ahead > 0.0):
                    dx, dy = x - world[corner, 0], y - world[corner, 1]
                    distance = np.sqrt(dx * dx + dy * dy)
                    nx, ny, best = dx / distance, dy / distance, distance
                    edge = corner
                    break
        gap = best - radius[disk]
        reach = radius[disk] + 0.5 * gap
        ends[m, 0], ends[m, 1], ends[m, 2] = x - reach * nx, y - reach * ny, gap
        ends[m, 6], ends[m, 7], index[m, EDGE] = sign * nx, sign * ny, edge - start[q]
        names[m, COUNT], names[m, 1], names[m, 2] = 1, 0, LEFT


@kernel
def meet(outline, spheres, lists, outlook, known, planes, scratch, share, out):
    """All stages: where polygons touch each other, and disks where there are any; returns the number of pairs.

    ``known`` is the index of the present `Touches`, ``planes`` the row of the first one with a half-plane.
    """
    count = near_pairs(outline, spheres, lists, outlook, known, planes, scratch.apart, share, out)
    choose_axes(out, count, outline, spheres.places, spheres.body, outlook.one, scratch.heights, scratch.apart)
    cut_edges(out, count, outline)
    if scratch.disks:
        disks_on_polygons(out, count, outline, spheres.places, spheres.radius)
    return count
