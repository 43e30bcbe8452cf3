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

*Identity.* A contact is the corner that makes it. While blocks slide, an end of the overlap may pass from a corner of
one polygon to a corner of the other; the contact then goes on as the same end (the left or the right one, seen along
the normal). So impulses and status carry over.

*Activity.* Gaps up to 1e-4 of the size of a body are in the active set, in both modes, with the target U_n >= -g / h:
a contact that opens by a rounding, or by the error of the solver, does not let its block fall for a step before it is
found again. Blocks at rest would otherwise creep by some g h^2 per lost contact.
"""

from typing import NamedTuple

import numpy as np

from ._jit import kernel
from .detection import normal_velocity
from .state import OPEN, SEPARATING

NEAR = 1e-4  # of the size: gaps up to this are in the active set
WATCH = 1e-3  # of the size: pairs up to this are looked at
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


class Touches(NamedTuple):
    """Active contacts with polygons (K,), in the order of their pairs, those with half-planes last; with memory."""

    index: np.ndarray  # (K, 6) FIRST ball (or plane, from row `planes` on), SECOND ball, FEATURE, END, AXIS, LAW
    place: np.ndarray  # (K, 6) GAP, SIZE of the smaller body, normal (from first to second), point (halfway in the gap)
    memory: np.ndarray  # (K, 3) impulse on the second body in space (N s), moment (N m s)
    status: np.ndarray  # (K,)
    planes: int  # row of the first contact with a half-plane


FIRST, SECOND, FEATURE, END, AXIS, LAW = range(6)
GAP, SIZE, NX, NY, X, Y = range(6)


def touch_arrays(room: int) -> Touches:
    """Arrays for ``room`` contacts, none of them used."""
    return Touches(
        np.zeros((room, 6), dtype=np.int32), np.zeros((room, 6)), np.zeros((room, 3)), np.zeros(room, dtype=np.int8), 0
    )


def head_of(touches: Touches, count: int, planes: int) -> Touches:
    """The first ``count`` rows."""
    index, place, memory, status, _ = touches
    return Touches(index[:count], place[:count], memory[:count], status[:count], planes)


def outlines(balls, corners) -> Outlines:
    """Sort the corners of a model by the ball that holds them."""
    count = len(balls.radius)
    first_ball = np.searchsorted(balls.body, corners.body)
    ball = first_ball + corners.part
    start = np.searchsorted(ball, np.arange(count + 1))
    local = np.zeros((len(ball), 4))
    local[:, :2] = corners.place[:, :2]
    size = balls.radius.copy()
    for s in np.flatnonzero(np.diff(start)):
        part = local[start[s] : start[s + 1], :2]
        edge = np.roll(part, -1, axis=0) - part
        normal = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.sqrt((edge**2).sum(axis=1))[:, None]
        local[start[s] : start[s + 1], 2:] = normal
        size[s] = ((part - balls.centre[s, :2]) * normal).sum(axis=1).min()
    return Outlines(start, local, corners.body, size, np.empty((len(ball), 2)), np.empty((len(ball), 2)))


@kernel
def place_corners(position, orientation, local, body, world, normal):
    """Corners and edge normals in space."""
    for k in range(body.size):
        i = body[k]
        w, z = orientation[i, 0], orientation[i, 3]
        c, s = w * w - z * z, 2.0 * w * z
        world[k, 0] = position[i, 0] + c * local[k, 0] - s * local[k, 1]
        world[k, 1] = position[i, 1] + s * local[k, 0] + c * local[k, 1]
        normal[k, 0], normal[k, 1] = c * local[k, 2] - s * local[k, 3], s * local[k, 2] + c * local[k, 3]


@kernel(inline=True)
def _lowest(world, normal, edge, begin, end):
    """Least height of the corners ``begin`` to ``end`` over the line of ``edge``, and the corner that has it."""
    nx, ny = normal[edge, 0], normal[edge, 1]
    level = nx * world[edge, 0] + ny * world[edge, 1]
    best, corner = np.inf, begin
    for k in range(begin, end):
        height = nx * world[k, 0] + ny * world[k, 1]
        if height < best:
            best, corner = height, k
    return best - level, corner


@kernel(inline=True)
def _height(world, normal, edge, begin, end):
    """Least height of the corners ``begin`` to ``end`` over the line of ``edge``, without a branch."""
    nx, ny = normal[edge, 0], normal[edge, 1]
    best = np.inf
    for k in range(begin, end):
        best = min(best, nx * world[k, 0] + ny * world[k, 1])
    return best - (nx * world[edge, 0] + ny * world[edge, 1])


@kernel
def separated(i, j, start, world, normal, code, limit):
    """Whether the axis ``code`` (any number) shows that two polygons are farther apart than ``limit``."""
    one, two, e = (i, j, code) if code < ON_SECOND else (j, i, code - ON_SECOND)
    if e >= start[one + 1] - start[one]:
        return False
    return _height(world, normal, start[one] + e, start[two], start[two + 1]) > limit


@kernel
def choose_axis(i, j, start, world, normal, places, sizes, previous, ux, uy, travel, limit, heights):
    """The edge that carries the tangent plane of two polygons, and whether none keeps them apart by ``limit``.

    ``ux, uy`` is the velocity of j with respect to i, ``travel`` its way in a step. ``heights`` is scratch,
    (2, most corners of a part). An edge is passed over where the ball inside the other polygon (``sizes``, about
    ``places``) is enough to show that it is not among the best.
    """
    best, code, kept = -np.inf, -1, -np.inf
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
        near_best = kept >= best - (max(0.0, -best) + 1e-7 * min(sizes[i], sizes[j]))
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
def cut_edges(i, j, code, start, world, normal, travel, size, points, gaps, features, ends):
    """The ends of the overlap of the chosen edge with the edge that faces it; returns how many there are.

    ``points`` (2, 2), ``gaps`` (2,), ``features`` (2,) and ``ends`` (2,) are filled.
    """
    side = 0 if code < ON_SECOND else 1
    one, two = (i, j) if side == 0 else (j, i)
    e = start[one] + (code if side == 0 else code - ON_SECOND)
    after = e + 1 if e + 1 < start[one + 1] else start[one]
    nx, ny = normal[e, 0], normal[e, 1]
    tx, ty = -ny, nx
    x0, y0 = world[e, 0], world[e, 1]
    length = tx * (world[after, 0] - x0) + ty * (world[after, 1] - y0)
    lowest, corner = _lowest(world, normal, e, start[two], start[two + 1])
    back = corner - 1 if corner > start[two] else start[two + 1] - 1
    facing = corner
    if nx * normal[back, 0] + ny * normal[back, 1] < nx * normal[corner, 0] + ny * normal[corner, 1]:
        facing = back
    other = facing + 1 if facing + 1 < start[two + 1] else start[two]
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
        if lowest > 0.0 and not -travel <= xc <= length + travel:
            return 0
        xc = min(length, max(0.0, xc))
        points[0, 0], points[0, 1] = x0 + xc * tx + 0.5 * lowest * nx, y0 + xc * ty + 0.5 * lowest * ny
        gaps[0], features[0], ends[0] = lowest, its + corner - start[two], LEFT if corner == other else RIGHT
        return 1
    slope = (yr - yl) / (xr - xl) if xr > xl else 0.0
    if right - left <= DEGENERATE * size and abs(slope) < 1e-6:
        return 0
    for k in range(2):
        x = left if k == 0 else right
        at = k if side == 0 else 1 - k  # seen along the normal from the first to the second
        own = xl >= 0.0 if k == 0 else xr <= length
        y = (yl if k == 0 else yr) if own else yl + slope * (x - xl)
        corner = (other if k == 0 else facing) if own else (e if k == 0 else after)
        points[at, 0], points[at, 1] = x0 + x * tx + 0.5 * y * nx, y0 + x * ty + 0.5 * y * ny
        gaps[at], ends[at] = y, at
        features[at] = its + corner - start[two] if own else mine + corner - start[one]
    return 2


@kernel
def disk_on_polygon(q, x, y, radius, start, world, normal, out):
    """Gap, outward normal and point of a disk at (x, y) on polygon ``q`` into ``out`` (5,); returns the feature."""
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
    gap = best - radius
    reach = radius + 0.5 * gap
    out[0], out[1], out[2], out[3], out[4] = gap, nx, ny, x - reach * nx, y - reach * ny
    return edge - start[q]


@kernel
def takes_part(gap, held, status, keep, sticky, anticipate, one, two, a, b, nx, ny, px, py, position, h, size):
    """Whether a contact with a gap above `NEAR` is active (see `detection.takes_part`)."""
    if held and status > SEPARATING and (anticipate or sticky):
        return True
    if not anticipate:
        return False
    if held and keep:
        return True
    u = min(
        normal_velocity(one, a, b, nx, ny, 0.0, px, py, 0.0, position),
        normal_velocity(two, a, b, nx, ny, 0.0, px, py, 0.0, position),
    )
    return gap + h * u < -1e-9 * size


@kernel(inline=True)
def enter(index, place, memory, status, at, first, second, feature, end, axis, law, size, gap, nx, ny, px, py, old, was,
          k, held):  # fmt: skip
    """Write an active contact, with the memory ``old`` and the status ``was`` of row ``k`` where ``held``."""
    if at >= status.size:
        return
    index[at, FIRST], index[at, SECOND], index[at, FEATURE] = first, second, feature
    index[at, END], index[at, AXIS], index[at, LAW] = end, axis, law
    place[at, GAP], place[at, SIZE], place[at, NX], place[at, NY] = gap, size, nx, ny
    place[at, X], place[at, Y] = px, py
    for c in range(3):
        memory[at, c] = old[k, c] if held else 0.0
    status[at] = was[k] if held else OPEN


@kernel(inline=True)
def _remembered(n, count, features, ends, old, k, rows):
    """The row of the memory ``old`` (its index) that goes on as contact ``n`` of ``count``; -1 where there is none.

    The memory of the pair is in ``rows`` rows from ``k`` on.
    """
    for r in range(k, k + rows):
        if old[r, FEATURE] == features[n]:
            return r
    for r in range(k, k + rows):
        if old[r, END] == ends[n]:
            taken = False
            for m in range(count):
                taken = taken or old[r, FEATURE] == features[m]
            if not taken:
                return r
    return -1


@kernel(inline=True)
def _way(one, two, a, b, reach_a, reach_b, h):
    """A bound of the relative motion of two bodies in a step, at the velocities ``one`` and ``two``."""
    longest = 0.0
    for rows in (one, two):
        x, y = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1]
        spin = abs(rows[a, 5]) / rows[a, 7] * reach_a + abs(rows[b, 5]) / rows[b, 7] * reach_b
        longest = max(longest, np.sqrt(x * x + y * y) + spin)
    return h * longest


@kernel
def find_pairs(
    outline, places, radius, body, material, lists_start, lists_count, other, law_index, sticky_law, position, one, two,
    h, slack, anticipate, keep, old, out, heights, apart,
):  # fmt: skip
    """Active contacts of polygons with polygons and disks, in order, into ``out``; returns their number.

    ``apart`` has an axis for each place in the neighbour lists, the one that last kept the two apart: most pairs are
    done with by a look at it. It is only a hint; where lists have changed, it misses.
    """
    start, world, normal = outline.start, outline.world, outline.normal
    points, gaps = np.empty((2, 2)), np.empty(2)
    features, ends, contact = np.empty(2, dtype=np.int32), np.empty(2, dtype=np.int32), np.empty(5)
    found, k = 0, 0
    known, kept, was, planes = old.index, old.memory, old.status, old.planes
    index, place, memory, status = out.index, out.place, out.memory, out.status
    sizes = outline.size
    for i in range(radius.size):
        flat = start[i] < start[i + 1]
        for n in range(lists_start[i], lists_start[i] + lists_count[i]):
            j = other[n]
            if not flat and start[j] == start[j + 1]:
                continue
            x, y = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1]
            a, b = body[i], body[j]
            size = min(sizes[i], sizes[j])
            way = _way(one, two, a, b, radius[i], radius[j], h) if anticipate else 0.0
            limit = slack + max(way, WATCH * size)
            reach = radius[i] + radius[j] + limit
            if x * x + y * y > reach * reach and not keep:
                continue
            both = flat and start[j] < start[j + 1]
            if both and not keep and separated(i, j, start, world, normal, apart[n], limit):
                continue
            while k < planes and (known[k, FIRST] < i or (known[k, FIRST] == i and known[k, SECOND] < j)):
                k += 1
            rows = 0
            while k + rows < planes and known[k + rows, FIRST] == i and known[k + rows, SECOND] == j:
                rows += 1
            again = keep and rows > 0  # the bodies have not moved since: the same features, whatever the velocity
            law = law_index[material[i], material[j]]
            count, axis, nx, ny = 1, 0, 0.0, 0.0
            if both:
                axis, near = known[k, AXIS] if rows else -1, True
                if not again:
                    if rows == 0:
                        way = _way(one, two, a, b, radius[i], radius[j], h)
                    axis, near = choose_axis(i, j, start, world, normal, places, sizes, axis, one[b, 0] - one[a, 0],
                                             one[b, 1] - one[a, 1], way, limit, heights)  # fmt: skip
                if not near:
                    apart[n] = axis
                    continue
                count = cut_edges(i, j, axis, start, world, normal, np.inf if again else way, size, points, gaps,
                                  features, ends)  # fmt: skip
                e = start[i] + axis if axis < ON_SECOND else start[j] + axis - ON_SECOND
                sign = 1.0 if axis < ON_SECOND else -1.0
                nx, ny = sign * normal[e, 0], sign * normal[e, 1]
            else:
                q, disk, sign = (i, j, 1.0) if flat else (j, i, -1.0)
                axis = disk_on_polygon(q, places[disk, 0], places[disk, 1], radius[disk], start, world, normal, contact)
                gaps[0], nx, ny = contact[0], sign * contact[1], sign * contact[2]
                points[0, 0], points[0, 1], features[0], ends[0] = contact[3], contact[4], 0, LEFT
            for c in range(count):
                gap = gaps[c] - slack
                row = _remembered(c, count, features, ends, known, k, rows)
                held = row >= 0
                if gap <= NEAR * size or takes_part(
                    gap, held, was[row] if held else OPEN, keep, sticky_law[law], anticipate, one, two, a, b, nx, ny,
                    points[c, 0], points[c, 1], position, h, size,
                ):  # fmt: skip
                    enter(index, place, memory, status, found, i, j, features[c], ends[c], axis, law, size, gap, nx, ny,
                          points[c, 0], points[c, 1], kept, was, row, held)  # fmt: skip
                    found += 1
    return found


@kernel
def find_on_planes(
    outline, places, radius, body, material, kind, normals, points, plane_body, plane_material, law_index, sticky_law,
    position, one, two, h, slack, anticipate, keep, old, at, free, out,
):  # fmt: skip
    """Active contacts of corners with half-planes into ``out`` from row ``at`` on; returns the row after them."""
    found, k, start, world, sizes = at, old.planes, outline.start, outline.world, outline.size
    known, kept, was = old.index, old.memory, old.status
    index, place, memory, status = out.index, out.place, out.memory, out.status
    for p in range(plane_body.size):
        a, nx, ny = plane_body[p], normals[p, 0], normals[p, 1]
        level = nx * points[p, 0] + ny * points[p, 1] + slack
        for i in range(radius.size):
            b = body[i]
            if start[i] == start[i + 1] or kind[b] != free:
                continue
            size = sizes[i]
            way = _way(one, two, a, b, 0.0, radius[i], h) if anticipate else 0.0
            if anticipate:  # a plane that turns moves the farther, the farther away
                far = np.sqrt((places[i, 0] - points[p, 0]) ** 2 + (places[i, 1] - points[p, 1]) ** 2) + radius[i]
                way += h * far * max(abs(one[a, 5]), abs(two[a, 5]))
            if nx * places[i, 0] + ny * places[i, 1] - level - radius[i] > max(way, NEAR * size) and not keep:
                continue
            law = law_index[plane_material[p], material[i]]
            while k < was.size and (known[k, FIRST] < p or (known[k, FIRST] == p and known[k, SECOND] < i)):
                k += 1
            for c in range(start[i], start[i + 1]):
                gap = nx * world[c, 0] + ny * world[c, 1] - level
                row, held = k, False
                while row < was.size and known[row, FIRST] == p and known[row, SECOND] == i and not held:
                    held = known[row, FEATURE] == c - start[i]
                    row += 1
                row -= 1 if held else 0
                px, py = world[c, 0] - 0.5 * gap * nx, world[c, 1] - 0.5 * gap * ny
                if gap <= NEAR * size or takes_part(
                    gap, held, was[row] if held else OPEN, keep, sticky_law[law], anticipate, one, two, a, b, nx, ny,
                    px, py, position, h, size,
                ):  # fmt: skip
                    enter(index, place, memory, status, found, p, i, c - start[i], LEFT, 0, law, size, gap, nx, ny, px,
                          py, kept, was, row, held)  # fmt: skip
                    found += 1
    return found
