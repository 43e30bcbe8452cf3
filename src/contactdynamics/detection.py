"""Which bodies touch: neighbour lists that follow the motion, and the active pairs of a step.

*Neighbours.* Each ball i owns a list of the balls j > i that are nearer than the sum of their two margins. A ball has
its own reference place; while it has not moved farther than its margin, the lists are complete for it. A ball that has
is looked up again alone: cells, its own list, and its entry in the lists of others. Fast balls have larger margins, up
to a bound: memory and time of a search do not grow with the speed. So a few falling grains cost nothing to a heap at
rest; when many balls need it, all lists are built anew.

*Active pairs* are found in lexicographic order, balls first and planes after them, and take over the memory of the last
step by a merge of the two sorted lists. The order of the contacts, and so every bit of the result, does not depend on
when the lists were built. The memory (impulse, moment, status) is that of 2003, section 8.
"""

from typing import NamedTuple

import numpy as np

from . import quaternions
from ._jit import kernel
from .state import FREE, OPEN, SEPARATING

CELL_GROWTH = 2.0  # buckets of the hash table per ball
ROUNDING = 1e-10  # of a radius: a gap above zero that is zero in exact numbers, and taken as such
REACH = 10.0  # of the largest radius: the farthest that is looked ahead; `watch` tells of bodies that go farther
SLACK = 3  # empty places in a list, so that a neighbour can come without a rebuild


class Pairs(NamedTuple):
    """The active pairs of a step (K,): pairs of balls, then pairs of a plane and a ball; with their memory."""

    first: np.ndarray  # (K,) ball, or plane for the rows from `balls` on
    second: np.ndarray  # (K,) ball
    law: np.ndarray  # (K,)
    simple: np.ndarray  # (K,) the fast kernels apply
    gap: np.ndarray  # (K,) m
    normal: np.ndarray  # (K, 3) from the first to the second
    impulse: np.ndarray  # (K, 3) in space, on the second body, N s
    moment: np.ndarray  # (K, 3) in space, N m s
    status: np.ndarray  # (K,)
    source: np.ndarray  # (K,) row of the same pair in the list before, -1 where it is new
    balls: int  # number of pairs of balls


def pair_arrays(room: int) -> Pairs:
    """Arrays for ``room`` pairs, none of them used."""
    rows = [np.empty(room, dtype=np.int32) for _ in range(3)]
    vectors = np.empty((room, 3)), np.empty((room, 3)), np.zeros((room, 3))
    return Pairs(
        *rows, np.empty(room, dtype=bool), np.empty(room), *vectors, np.empty(room, dtype=np.int8),
        np.empty(room, dtype=np.int32), 0,
    )  # fmt: skip


def no_pairs() -> Pairs:
    """An empty list."""
    return pair_arrays(0)


class Neighbours(NamedTuple):
    """Neighbour lists and the cells they come from; S balls."""

    start: np.ndarray  # (S+1,) where the list of a ball begins
    count: np.ndarray  # (S,) its length
    other: np.ndarray  # (room,) the neighbours j > i, sorted in each list
    reference: np.ndarray  # (S, 3) where the ball was looked up last
    margin: np.ndarray  # (S,) how far it may move from there
    bucket: np.ndarray  # (S,) its bucket in the hash table of cells
    head: np.ndarray  # (buckets,) first ball of a bucket, -1 where empty
    after: np.ndarray  # (S,) next ball in the bucket
    before: np.ndarray  # (S,) previous one, -1 at the head
    cell: float  # size of a cell, m
    base: float  # the margin of slow balls, m
    largest: float  # radius of the largest ball, m


@kernel
def place_balls(position, orientation, centre, body, out):
    """Centres of the balls in space (S, 3)."""
    for i in range(body.size):
        k = body[i]
        x, y, z = position[k, 0], position[k, 1], position[k, 2]
        if centre[i, 0] != 0.0 or centre[i, 1] != 0.0 or centre[i, 2] != 0.0:
            dx, dy, dz = quaternions.rotate(orientation[k], centre[i, 0], centre[i, 1], centre[i, 2])
            x, y, z = x + dx, y + dy, z + dz
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


@kernel(inline=True)
def _bucket(x, y, z, mask):
    return (x * 73856093 ^ y * 19349663 ^ z * 83492791) & mask


@kernel(inline=True)
def _speed(rows, body, centre, i):
    """A bound of the speed of the ball ``i`` at ``centre[i]`` of ``body``."""
    v = np.sqrt(rows[body, 0] ** 2 + rows[body, 1] ** 2 + rows[body, 2] ** 2)
    arm = centre[i, 0] ** 2 + centre[i, 1] ** 2 + centre[i, 2] ** 2
    if arm > 0.0:
        w = np.sqrt(rows[body, 3] ** 2 + rows[body, 4] ** 2 + rows[body, 5] ** 2) / rows[body, 7]
        v += w * np.sqrt(arm)
    return v


@kernel
def wanderers(places, centre, body, rows, reference, margin, ahead, out):
    """Balls that have left their margin, or would within the time ``ahead``; returns their number."""
    found = 0
    for i in range(margin.size):
        x, y, z = places[i, 0] - reference[i, 0], places[i, 1] - reference[i, 1], places[i, 2] - reference[i, 2]
        square = x * x + y * y + z * z
        if ahead > 0.0:
            square = (np.sqrt(square) + ahead * _speed(rows, body[i], centre, i)) ** 2
        if square >= margin[i] * margin[i]:
            out[found] = i
            found += 1
    return found


@kernel
def link_cells(places, cell, head, after, before, bucket):
    """Put all balls into the hash table of cells."""
    head[:] = -1
    mask = head.size - 1
    for i in range(places.shape[0] - 1, -1, -1):
        b = _bucket(
            int(np.floor(places[i, 0] / cell)), int(np.floor(places[i, 1] / cell)), int(np.floor(places[i, 2] / cell)),
            mask,
        )  # fmt: skip
        bucket[i], after[i], before[i] = b, head[b], -1
        if head[b] >= 0:
            before[head[b]] = i
        head[b] = i


@kernel
def move_in_cells(i, place, cell, head, after, before, bucket):
    """Take ball ``i`` out of its bucket and put it into that of its present ``place``."""
    b = _bucket(
        int(np.floor(place[0] / cell)), int(np.floor(place[1] / cell)), int(np.floor(place[2] / cell)), head.size - 1
    )
    if b == bucket[i]:
        return
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[bucket[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
    bucket[i], after[i], before[i] = b, head[b], -1
    if head[b] >= 0:
        before[head[b]] = i
    head[b] = i


@kernel(inline=True)
def _can_touch(i, j, body, kind):
    return body[i] != body[j] and (kind[body[i]] == FREE or kind[body[j]] == FREE)


@kernel(inline=True)
def _near(i, j, reference, radius, margin):
    """Whether i and j may meet without either leaving its margin: by their reference places, not the present ones."""
    x, y, z = (
        reference[j, 0] - reference[i, 0], reference[j, 1] - reference[i, 1], reference[j, 2] - reference[i, 2],
    )  # fmt: skip
    reach = radius[i] + radius[j] + margin[i] + margin[j]
    return x * x + y * y + z * z < reach * reach


@kernel
def search(i, places, radius, body, kind, deep, above, near, fast, reference, margin, head, after, cell, base, largest):
    """Neighbours of ball ``i`` (only j > i where ``above``) into ``near`` (S,), sorted, each once; returns how many.

    ``fast`` are the balls with margins above ``base``: they may be farther from i than its search by cells goes.
    """
    held = 0
    for n in range(fast.size):
        j = fast[n]
        if (j > i or not above) and j != i and _can_touch(i, j, body, kind) and _near(i, j, reference, radius, margin):
            near[held] = j
            held += 1
    reach = radius[i] + largest + margin[i] + 2.0 * base  # others have moved up to `base` from their cells
    steps = int(np.ceil(reach / cell))
    mask = head.size - 1
    cx, cy, cz = (
        int(np.floor(places[i, 0] / cell)), int(np.floor(places[i, 1] / cell)), int(np.floor(places[i, 2] / cell)),
    )  # fmt: skip
    for dx in range(-steps, steps + 1):
        for dy in range(-steps, steps + 1):
            for dz in range(-steps * deep, steps * deep + 1):
                x, y, z = cx + dx, cy + dy, cz + dz
                j = head[_bucket(x, y, z, mask)]
                while j >= 0:
                    if (j > i or not above) and j != i and margin[j] <= base and _near(i, j, reference, radius, margin):
                        # a bucket may hold several cells: take the ball only in its own one
                        own = (
                            int(np.floor(reference[j, 0] / cell)) == x and int(np.floor(reference[j, 1] / cell)) == y
                            and int(np.floor(reference[j, 2] / cell)) == z
                        )  # fmt: skip
                        if own and _can_touch(i, j, body, kind):
                            near[held] = j
                            held += 1
                    j = after[j]
    for k in range(1, held):  # insertion sort: a dozen neighbours
        value, at = near[k], k
        while at > 0 and near[at - 1] > value:
            near[at] = near[at - 1]
            at -= 1
        near[at] = value
    return held


@kernel
def build_lists(places, radius, body, kind, deep, near, fast, start, count, other, reference, margin, bucket, head,
                after, before, cell, base, largest):  # fmt: skip
    """All lists from the cells; returns the room they need. With too little room in ``other`` nothing is valid."""
    at = 0
    for i in range(radius.size):
        held = search(i, places, radius, body, kind, deep, True, near, fast, reference, margin, head, after, cell,
                      base, largest)  # fmt: skip
        start[i], count[i] = at, held
        if at + held <= other.size:
            other[at : at + held] = near[:held]
        at += held + SLACK
    start[radius.size] = at
    return at


@kernel
def insert(i, j, reference, radius, margin, start, count, other):
    """Enter j into the sorted list of i, if it is not there; False where the list is full even after a purge."""
    s = start[i]
    n = count[i]
    at = n
    while at > 0 and other[s + at - 1] >= j:
        at -= 1
    if at < n and other[s + at] == j:
        return True
    if s + n == start[i + 1]:  # full: drop those that have gone
        kept = 0
        for k in range(n):
            if _near(i, other[s + k], reference, radius, margin):
                other[s + kept] = other[s + k]
                kept += 1
        if kept == n:
            return False
        count[i] = n = kept
        at = n
        while at > 0 and other[s + at - 1] >= j:
            at -= 1
    for k in range(n, at, -1):
        other[s + k] = other[s + k - 1]
    other[s + at] = j
    count[i] += 1
    return True


@kernel(inline=True)
def own_margin(travel, base, far):
    """The margin of a ball that goes ``travel`` in a step; ``far`` at most, also where the speed is no number."""
    if 1.5 * travel <= base:
        return base
    return max(base, 3.0 * travel if 3.0 * travel < far else far)


@kernel
def own_margins(travel, base, far):
    """`own_margin` of many balls (S,)."""
    out = np.empty(travel.size)
    for i in range(travel.size):
        out[i] = own_margin(travel[i], base, far)
    return out


@kernel
def look_up(moved, places, radius, body, kind, centre, rows, deep, ahead, far, near, start, count, other, reference,
            margin, bucket, head, after, before, cell, base, largest):  # fmt: skip
    """Renew the lists of the balls ``moved``; False where a list overflows and all must be built anew."""
    for k in range(moved.size):
        i = moved[k]
        reference[i] = places[i]
        margin[i] = own_margin(ahead * _speed(rows, body[i], centre, i), base, far)
        move_in_cells(i, places[i], cell, head, after, before, bucket)
    fast = np.flatnonzero(margin > base)
    for k in range(moved.size):
        i = moved[k]
        held = search(i, places, radius, body, kind, deep, False, near, fast, reference, margin, head, after, cell,
                      base, largest)  # fmt: skip
        count[i] = 0
        for n in range(held):
            j = near[n]
            if not insert(min(i, j), max(i, j), reference, radius, margin, start, count, other):
                return False
    return True


def build(model, kind, places, rows, ahead: float, small: float, far: float) -> Neighbours:
    """Neighbour lists of all balls; margins follow the typical speed, those of fast balls their own, up to ``far``."""
    balls = model.balls
    s = len(balls.radius)
    speed = np.sqrt((rows[balls.body, :3] ** 2).sum(axis=1))
    arm = np.sqrt((balls.centre**2).sum(axis=1))
    if arm.any():
        speed = speed + arm * np.sqrt((rows[balls.body, 3:6] ** 2).sum(axis=1)) / rows[balls.body, 7]
    typical = float(np.quantile(speed, 0.9)) if s else 0.0
    largest = float(balls.radius.max()) if s else 1.0
    base = min(max(0.15 * small, 3.0 * ahead * typical), largest)
    margin = own_margins(ahead * speed, base, far)
    fast = np.flatnonzero(margin > base)
    buckets = 1 << max(4, int(np.ceil(np.log2(max(1, CELL_GROWTH * s)))))
    cell = 2.0 * largest + 3.0 * base
    links = [np.empty(s, dtype=np.int32) for _ in range(3)]
    head = np.empty(buckets, dtype=np.int32)
    reference = places.copy()
    bucket, after, before = links
    link_cells(reference, cell, head, after, before, bucket)
    near = np.empty(s, dtype=np.int32)
    start, count = np.empty(s + 1, dtype=np.int64), np.empty(s, dtype=np.int32)
    room = 8 * s
    while True:
        found = Neighbours(
            start,
            count,
            np.empty(room, dtype=np.int32),
            reference,
            margin,
            bucket,
            head,
            after,
            before,
            cell,
            base,
            largest,
        )
        need = build_lists(places, balls.radius, balls.body, kind, model.dimension - 2, near, fast, *found)
        if need <= room:
            break
        room = need
    return found


@kernel
def link_new(known, places, cell, head, after, before, bucket):
    """Put the balls from number ``known`` on into the hash table."""
    for i in range(known, places.shape[0]):
        b = _bucket(
            int(np.floor(places[i, 0] / cell)), int(np.floor(places[i, 1] / cell)), int(np.floor(places[i, 2] / cell)),
            head.size - 1,
        )  # fmt: skip
        bucket[i], after[i], before[i] = b, head[b], -1
        if head[b] >= 0:
            before[head[b]] = i
        head[b] = i


def extend(old: Neighbours, places: np.ndarray, radius: np.ndarray) -> Neighbours | None:
    """The lists with room for balls that were added at the end; None where they must be built anew.

    The new balls have no margin yet: the next step looks them up.
    """
    known, new = len(old.count), len(places) - len(old.count)
    if radius.max() > old.largest or len(places) > 2 * len(old.head):
        return None
    room = np.full(new, 16, dtype=np.int64)
    found = old._replace(
        start=np.concatenate([old.start, old.start[-1] + np.cumsum(room)]),
        count=np.concatenate([old.count, np.zeros(new, dtype=np.int32)]),
        other=np.concatenate([old.other[: old.start[-1]], np.zeros(room.sum(), dtype=np.int32)]),
        reference=np.concatenate([old.reference, places[known:]]),
        margin=np.concatenate([old.margin, np.zeros(new)]),
        **{name: np.concatenate([getattr(old, name), np.zeros(new, dtype=np.int32)])
           for name in ("bucket", "after", "before")},
    )  # fmt: skip
    link_new(known, places, found.cell, found.head, found.after, found.before, found.bucket)
    return found


def renumber(pairs: Pairs, order: np.ndarray) -> Pairs:
    """The pairs when ball ``order[k]`` becomes ball k: sorted again; where the two change places, so does the sign."""
    new, n = np.argsort(order).astype(np.int32), pairs.balls
    first, second = pairs.first.copy(), new[pairs.second]
    first[:n] = new[first[:n]]
    sign = np.ones((len(first), 1))
    sign[:n][first[:n] > second[:n]] = -1.0
    low, high = np.minimum(first[:n], second[:n]), np.maximum(first[:n], second[:n])
    first[:n], second[:n] = low, high
    sort = np.lexsort((second, first, np.arange(len(first)) >= n))
    columns = (first, second, pairs.law, pairs.simple, pairs.gap, sign * pairs.normal, sign * pairs.impulse,
               sign * pairs.moment, pairs.status, pairs.source)  # fmt: skip
    return Pairs(*(column[sort] for column in columns), n)


@kernel(inline=True)
def normal_velocity(rows, a, b, nx, ny, nz, px, py, pz, position):
    """U_n of a pair of bodies at the point p; the spin of a ball has no part in it."""
    u = (rows[b, 0] - rows[a, 0]) * nx + (rows[b, 1] - rows[a, 1]) * ny + (rows[b, 2] - rows[a, 2]) * nz
    for side in range(2):
        body, sign = (a, -1.0) if side == 0 else (b, 1.0)
        if rows[body, 7] == 1.0:  # not a ball: w x arm, with s = w
            x, y, z = px - position[body, 0], py - position[body, 1], pz - position[body, 2]
            wx, wy, wz = rows[body, 3], rows[body, 4], rows[body, 5]
            u += sign * (nx * (wy * z - wz * y) + ny * (wz * x - wx * z) + nz * (wx * y - wy * x))
    return u


@kernel(inline=True)
def takes_part(gap, held, status, keep, sticky, anticipate, u, h, size):
    """Whether a pair with this gap is active; ``held``: it stands in the memory with this ``status``.

    ``anticipate``: also pairs whose gap would close within the step at the normal velocity ``u``, and those that pushed
    in the last step. ``keep``: everything in the memory stays. ``sticky``: cohesion or tension holds the
    pair once it has touched. A rounding of the gap does not decide: balls that touch in exact numbers take part.
    """
    if gap <= ROUNDING * size:
        return True
    if sticky and (gap <= 1e-9 * size or (held and status > SEPARATING)):
        return True
    if not anticipate:
        return False
    return (held and (keep or status > SEPARATING)) or gap + h * u < -1e-9 * size


@kernel
def deepest(gap, first, second, balls, radius):
    """The largest overlap (m), the largest one over the smaller radius, and the pair of the latter (-1 for none)."""
    depth, share, pair = 0.0, 0.0, -1
    for k in range(gap.size):
        if gap[k] >= 0.0:
            continue
        size = min(radius[first[k]], radius[second[k]]) if k < balls else radius[second[k]]
        depth = max(depth, -gap[k])
        if -gap[k] > share * size:
            share, pair = -gap[k] / size, k
    return depth, share, pair


@kernel
def recall(old, out, total, moments):
    """Take over impulse and status, and ``moments`` where there may be some, of the pairs that stand in ``old``."""
    impulse, moment, status, source = out.impulse, out.moment, out.status, out.source
    old_impulse, old_moment, old_status = old.impulse, old.moment, old.status
    for at in range(total):
        k = source[at]
        if k < 0:
            status[at] = OPEN
            for c in range(3):
                impulse[at, c] = moment[at, c] = 0.0
        else:
            status[at] = old_status[k]
            for c in range(3):
                impulse[at, c] = old_impulse[k, c]
            if moments:
                for c in range(3):
                    moment[at, c] = old_moment[k, c]


@kernel
def find_ball_contacts(
    places, radius, body, material, start, count, other, law_index, simple_law, sticky_law, simple_body, position, one,
    two, h, slack, anticipate, keep, old, outlined, out,
):  # fmt: skip
    """Active pairs of balls, in order, into ``out``; returns their number (more than its room: do it again)."""
    # Arrays out of the tuples once: taken inside the loop, each is counted as a reference again and again.
    first, second, rule, simple, gaps, normal, source = (
        out.first, out.second, out.law, out.simple, out.gap, out.normal, out.source
    )  # fmt: skip
    known_first, known_second, known_status, known = old.first, old.second, old.status, old.balls
    found, k, room, near = 0, 0, first.size, np.empty(count.max() + 1 if count.size else 1, dtype=np.int32)
    wide, shaped = anticipate or sticky_law.any(), outlined.any()  # open gaps may take part; there are polygons
    for i in range(radius.size):
        a, made, plain = body[i], material[i], simple_body[body[i]]
        xi, yi, zi, ri = places[i, 0], places[i, 1], places[i, 2], radius[i] + slack
        chosen = 0
        for n in range(start[i], start[i] + count[i]):  # without a branch, which nobody could foresee
            j = other[n]
            x, y, z = places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi
            touch = ri + radius[j]
            near[chosen] = j
            chosen += wide or x * x + y * y + z * z <= touch * touch * (1.0 + ROUNDING)
        for n in range(chosen):
            j = near[n]
            x, y, z = places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi
            square = x * x + y * y + z * z
            touch = ri + radius[j]
            if shaped and (outlined[i] or outlined[j]):  # holds a polygon: see `narrow`
                continue
            distance = np.sqrt(square)
            gap, f = distance - touch, 1.0 / distance
            nx, ny, nz = x * f, y * f, z * f
            while k < known and (known_first[k] < i or (known_first[k] == i and known_second[k] < j)):
                k += 1
            held = k < known and known_first[k] == i and known_second[k] == j
            b = body[j]
            law = law_index[made, material[j]]
            if gap > 0.0:
                u, r = 0.0, radius[j]
                if anticipate:
                    u = (one[b, 0] - one[a, 0]) * nx + (one[b, 1] - one[a, 1]) * ny + (one[b, 2] - one[a, 2]) * nz
                    v = (two[b, 0] - two[a, 0]) * nx + (two[b, 1] - two[a, 1]) * ny + (two[b, 2] - two[a, 2]) * nz
                    if one[a, 7] == 1.0 or one[b, 7] == 1.0:  # not balls: their spins have a part in it
                        px, py, pz = places[j, 0] - r * nx, places[j, 1] - r * ny, places[j, 2] - r * nz
                        u = normal_velocity(one, a, b, nx, ny, nz, px, py, pz, position)
                        v = normal_velocity(two, a, b, nx, ny, nz, px, py, pz, position)
                    u = min(u, v)
                status = known_status[k] if held else OPEN
                if not takes_part(gap, held, status, keep, sticky_law[law], anticipate, u, h, r):
                    continue
                gap = gap if gap > ROUNDING * r else 0.0
            if found < room:
                first[found], second[found], rule[found], gaps[found] = i, j, law, gap
                simple[found] = plain and simple_body[b] and simple_law[law]
                normal[found, 0], normal[found, 1], normal[found, 2] = nx, ny, nz
                source[found] = k if held else -1
            found += 1
    return found


@kernel
def find_plane_contacts(
    places, radius, body, material, kind, normals, points, plane_body, plane_material, law_index, simple_law,
    sticky_law, simple_body, position, one, two, h, slack, anticipate, keep, old, outlined, at, out,
):  # fmt: skip
    """Active pairs of a plane and a ball, in order, into ``out`` from row ``at`` on; returns the row after them."""
    first, second, rule, simple, gaps, normal, source = (
        out.first, out.second, out.law, out.simple, out.gap, out.normal, out.source
    )  # fmt: skip
    known_first, known_second, known_status = old.first, old.second, old.status
    found, k, known, room = at, old.balls, old.first.size, first.size
    wide = anticipate or sticky_law.any()
    for p in range(plane_body.size):
        a = plane_body[p]
        nx, ny, nz = normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * points[p, 0] + ny * points[p, 1] + nz * points[p, 2] + slack
        turns = one[a, 3] != 0.0 or one[a, 4] != 0.0 or one[a, 5] != 0.0  # a plane's spin is prescribed: `two` has it
        for i in range(radius.size):
            gap = nx * places[i, 0] + ny * places[i, 1] + nz * places[i, 2] - level - radius[i]
            b = body[i]
            if (gap > ROUNDING * radius[i] and not wide) or kind[b] != FREE or outlined[i]:
                continue
            while k < known and (known_first[k] < p or (known_first[k] == p and known_second[k] < i)):
                k += 1
            held = k < known and known_first[k] == p and known_second[k] == i
            law, u, r = law_index[plane_material[p], material[i]], 0.0, radius[i]
            if anticipate:
                u = (one[b, 0] - one[a, 0]) * nx + (one[b, 1] - one[a, 1]) * ny + (one[b, 2] - one[a, 2]) * nz
                v = (two[b, 0] - two[a, 0]) * nx + (two[b, 1] - two[a, 1]) * ny + (two[b, 2] - two[a, 2]) * nz
                if turns or one[b, 7] == 1.0:
                    px, py, pz = places[i, 0] - r * nx, places[i, 1] - r * ny, places[i, 2] - r * nz
                    u = normal_velocity(one, a, b, nx, ny, nz, px, py, pz, position)
                    v = normal_velocity(two, a, b, nx, ny, nz, px, py, pz, position)
                u = min(u, v)
            if not takes_part(gap, held, known_status[k] if held else OPEN, keep, sticky_law[law], anticipate, u, h, r):
                continue
            gap = gap if gap <= 0.0 or gap > ROUNDING * r else 0.0
            if found < room:
                first[found], second[found], rule[found], gaps[found] = p, i, law, gap
                simple[found] = simple_body[a] and simple_body[b] and simple_law[law]
                normal[found, 0], normal[found, 1], normal[found, 2] = nx, ny, nz
                source[found] = k if held else -1
            found += 1
    return found
