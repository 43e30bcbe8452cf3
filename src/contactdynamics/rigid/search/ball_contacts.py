"""Where balls touch each other and planes: which pairs are active, in one kernel for all of them.

Pairs are found in lexicographic order, balls first and planes after them, and take over the memory of the last step by
a merge of the two sorted lists.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN, SEPARATING
from ..crew import enlist
from ..fetch import fetch
from ..space import image, shortest
from ..threads import meet, part
from .contract import BORDER, DIAGONAL, FULL, NEAR
from .laws import own_law
from .pairs import deepest_pair, move_down, recall, rows_before

ROUNDING = 1e-10  # of a radius: a gap above zero that is zero in exact numbers, and taken as such
HERE = 0.0, 0.0, 0.0  # shift of a body that is not met in an image
SPARE = 8  # rows for new pairs of the balls of a thread, beside its part of a 32nd of all
PAIR = 4  # balls that take as long as a pair, where balls are divided among threads
SOME = 128  # pairs looked at together: what is measured of them stays in the nearest cache
# Where the columns of a chunk begin in one array: vector from ball to ball, distance at which they touch, and how much
# nearer they come; then normal and gap.
X, Y, Z, TOUCH, FAR, NX, NY, NZ, GAP = COLUMNS = tuple(np.uint64(SOME * k) for k in range(9))
WARY = 2.0  # times the speed of a pair is how fast its gap may close for all that is known before the contacts act


class Rules(NamedTuple):
    """What decides which equations a pair of balls has, and whether it may pull."""

    law_index: np.ndarray  # (M, M) law of a pair of materials
    simple_law: np.ndarray  # (L,) Coulomb's, isotropic
    sticky: np.ndarray  # (L,) with cohesion or tension
    near: np.ndarray  # (L,) gap, over the size, up to which a pair that pushed stays active; none where it bounces
    simple_body: np.ndarray  # (N,) without lever arms
    outlined: np.ndarray  # (S,) balls that only hold a part of a polygon: left out
    pulls: bool  # whether some law is sticky
    shaped: bool  # whether some ball is outlined
    material: np.ndarray  # (S,) of the balls
    moments: bool  # whether some pair may have a moment
    border: bool  # whether contacts across the border of the cell act on it: it moves
    length: float  # of a cell that moves, else 0: see `equations.full`, m
    joints: np.ndarray  # (J, 3) see `laws`


@kernel(inline=True)
def normal_velocity(rows, a, b, normal, point, shift, position):
    """U_n of a pair of bodies at the ``point`` of b, ``shift`` from its image; the spin of a ball has no part in it."""
    (nx, ny, nz), (px, py, pz), (sx, sy, sz) = normal, point, shift
    u = (rows[b, 0] - rows[a, 0]) * nx + (rows[b, 1] - rows[a, 1]) * ny + (rows[b, 2] - rows[a, 2]) * nz
    for side in range(2):
        body, sign = (a, -1.0) if side == 0 else (b, 1.0)
        if rows[body, 7] == 1.0:  # not a ball: w x arm, with s = w
            x, y, z = px - position[body, 0], py - position[body, 1], pz - position[body, 2]
            if side == 0:
                x, y, z = x + sx, y + sy, z + sz
            wx, wy, wz = rows[body, 3], rows[body, 4], rows[body, 5]
            u += sign * (nx * (wy * z - wz * y) + ny * (wz * x - wx * z) + nz * (wx * y - wy * x))
    return u


@kernel(inline=True)
def image_velocity(rows, nx, ny, nz, sx, sy, sz, length):
    """The part of U_n of a moving cell: see `equations.full`."""
    u, cell = 0.0, rows.shape[0] - 3
    for k, s in ((0, sx), (1, sy), (2, sz)):
        u += s / length * (nx * rows[cell + k, 0] + ny * rows[cell + k, 1] + nz * rows[cell + k, 2])
    return u


@kernel(inline=True)
def closing(rows, a, b, nx, ny, nz, wary):
    """U_n of two balls, less `WARY` times their relative speed where ``wary`` (not where one that acts may pull or
    bounce, though its gap stays open).
    """
    wary = WARY if wary else 0.0
    x, y, z = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[b, 2] - rows[a, 2]
    return x * nx + y * ny + z * nz - wary * np.sqrt(x * x + y * y + z * z)


@kernel(inline=True)
def takes_part(gap, held, status, keep, sticky, near, anticipate, u, h, size):
    """Whether a pair with this gap is active; ``held``: it stands in the memory with this ``status``.

    ``anticipate``: also pairs whose gap would close within the step at the normal velocity ``u``, and those that pushed
    in the last step. Before the contacts act, more than those that will: one that is left out costs a second solution.
    ``keep``: everything in the memory stays. ``sticky``: cohesion or tension holds the pair once it has touched. A
    rounding of the gap does not decide: balls that touch in exact numbers take part. Nor does what the solver left: a
    pair that pushed stays active up to a gap of ``near`` and may close it again, no more.
    """
    if gap <= ROUNDING * size or (held and status > SEPARATING and gap <= near * size):
        return True
    if sticky and (gap <= 1e-9 * size or (held and status > SEPARATING)):
        return True
    if not anticipate:
        return False
    return (held and (keep or status > SEPARATING)) or gap + h * u < -1e-9 * size


@kernel
def ways(one, two, body, time):
    """(S,) how far balls go in this time at the faster of two velocities, spins left out; (0,) in no time."""
    out = np.empty(body.size if time > 0.0 else 0)
    for i in range(out.size):
        a = body[i]
        u, v = one[a, 0] ** 2 + one[a, 1] ** 2 + one[a, 2] ** 2, two[a, 0] ** 2 + two[a, 1] ** 2 + two[a, 2] ** 2
        out[i] = time * np.sqrt(max(u, v))
    return out


class Chunk(NamedTuple):
    """`SOME` pairs of balls from the neighbour lists, looked at together."""

    one: np.ndarray  # (SOME,) balls
    two: np.ndarray  # (SOME,)
    way: np.ndarray  # (S,) of all balls: see `ways`
    columns: np.ndarray  # what is measured of them, see `X` and others
    near: np.ndarray  # (SOME,) which of them may touch, and then, which are active
    law: np.ndarray  # (SOME,) of these
    source: np.ndarray  # (SOME,) rows in the list before, -1 where they are new


@kernel
def any_gap(rules, outlook):
    """Whether pairs with gaps of any size may take part."""
    return rules.pulls or (outlook.anticipate and (outlook.keep or rules.moments or rules.border))


@kernel
def measure_chunk(space, spheres, slack, wide, chunk, count):
    """Vectors, gaps and normals of the first ``count`` pairs; returns how many may touch, which are in ``near``.

    There are more pairs than touch: no branch, which nobody could foresee, and each operation for several at once.
    """
    places, radius, goes = spheres.places, spheres.radius, chunk.way.size > 0
    one, two, way, c, near, _, _ = chunk
    for n in range(np.uint64(count)):  # unsigned, here and below: no test for negative indices
        i, j = np.uint64(one[n]), np.uint64(two[n])
        c[X + n], c[Y + n], c[Z + n] = shortest(
            space, places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
        )
        c[TOUCH + n], c[FAR + n] = radius[i] + slack + radius[j], way[i] + way[j] if goes else 0.0
    for n in range(np.uint64(count)):
        x, y, z, far = c[X + n], c[Y + n], c[Z + n], c[TOUCH + n] + c[FAR + n]
        square = x * x + y * y + z * z
        distance = np.sqrt(square)
        f = 1.0 / distance
        c[NX + n], c[NY + n], c[NZ + n], c[GAP + n] = x * f, y * f, z * f, distance - c[TOUCH + n]
        c[FAR + n] = square - far * far * (1.0 + 2.0 * NEAR)
    chosen = np.uint64(0)
    for n in range(np.uint64(count)):
        near[chosen] = n
        chosen += np.uint64(1) if wide or c[FAR + n] <= 0.0 else np.uint64(0)
    return chosen


@kernel(inline=True)
def joined(first, second):
    """Two balls as one number in the order of pairs: one comparison, which the processor foresees, in place of two."""
    return np.int64(first) << 32 | np.int64(second)


@kernel
def choose_active(space, spheres, rules, position, outlook, old, chunk, few, k):
    """Choose those of the ``few`` near pairs of a chunk that are active, into the first places of ``near``.

    With their laws and the rows of ``old`` in which they stand, -1 for new ones; ``k`` is the row of ``old`` that is
    looked at. Returns how many there are, and the next ``k``.
    """
    # Arrays out of the tuples once: taken inside the loop, each is counted as a reference again and again.
    places, radius, body, material = spheres.places, spheres.radius, spheres.body, rules.material
    law_index, sticky_law, near_law, joints = rules.law_index, rules.sticky, rules.near, rules.joints
    one, two, h, anticipate, keep = outlook.one, outlook.two, outlook.h, outlook.anticipate, outlook.keep
    known_first, known_second, known_status, known = old.first, old.second, old.status, np.uint64(old.balls)
    (ones, twos, _, c, near, laws, rows), chosen, k = chunk, np.uint64(0), np.uint64(k)
    for m in range(np.uint64(few)):
        n = near[m]
        i, j, gap = np.uint64(ones[n]), np.uint64(twos[n]), c[GAP + n]
        if rules.shaped and (rules.outlined[i] or rules.outlined[j]):  # holds a polygon: see `outlines`
            continue
        key = joined(ones[n], twos[n])
        while k < known and joined(known_first[k], known_second[k]) < key:
            k += np.uint64(1)
        held = k < known and joined(known_first[k], known_second[k]) == key
        law = law_index[np.uint64(material[i]), np.uint64(material[j])]
        if joints.shape[0] > 0:
            law = own_law(joints, body[i], body[j], law)
        if gap > 0.0:
            u, r = 0.0, radius[j]
            if anticipate:
                a, b, nx, ny, nz = np.uint64(body[i]), np.uint64(body[j]), c[NX + n], c[NY + n], c[NZ + n]
                wary = not keep and near_law[law] > 0.0 and not sticky_law[law]
                u, v = closing(one, a, b, nx, ny, nz, wary), closing(two, a, b, nx, ny, nz, wary)
                sx, sy, sz = image(
                    space, places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
                )
                if one[a, 7] == 1.0 or one[b, 7] == 1.0:  # not balls: their spins have a part in it
                    along, shift = (nx, ny, nz), (sx, sy, sz)
                    point = places[j, 0] - r * nx, places[j, 1] - r * ny, places[j, 2] - r * nz
                    u = normal_velocity(one, a, b, along, point, shift, position)
                    v = normal_velocity(two, a, b, along, point, shift, position)
                if rules.border:
                    u += image_velocity(one, nx, ny, nz, sx, sy, sz, rules.length)
                    v += image_velocity(two, nx, ny, nz, sx, sy, sz, rules.length)
                u = min(u, v)
            status = known_status[k] if held else OPEN
            if not takes_part(gap, held, status, keep, sticky_law[law], near_law[law], anticipate, u, h, r):
                continue
            c[GAP + n] = gap if gap > ROUNDING * r else 0.0
        near[chosen], laws[chosen], rows[chosen] = n, law, np.int64(k) if held else -1
        chosen += np.uint64(1)
    return chosen, np.int64(k)


@kernel
def enter_chunk(spheres, rules, chunk, few, begin, room, out):
    """Enter the ``few`` active pairs of a chunk into ``out`` from row ``begin`` on; nothing beyond its ``room``."""
    places, body = spheres.places, spheres.body
    first, second, rule, kind = out.first, out.second, out.law, out.kind
    place, source, bodies_a, bodies_b = out.place, out.source, out.a, out.b
    simple_body, simple_law, border = rules.simple_body, rules.simple_law, rules.border
    one, two, _, c, near, laws, rows = chunk
    for m in range(np.uint64(max(0, min(np.int64(few), room - begin)))):
        n, at, law = near[m], np.uint64(begin) + m, np.uint64(laws[m])
        i, j = np.uint64(one[n]), np.uint64(two[n])
        a, b = np.uint64(body[i]), np.uint64(body[j])
        first[at], second[at], rule[at], source[at] = one[n], two[n], laws[m], rows[m]
        bodies_a[at], bodies_b[at] = a, b
        place[at, 0], place[at, 1], place[at, 2], place[at, 3] = c[NX + n], c[NY + n], c[NZ + n], c[GAP + n]
        diagonal = simple_body[a] & simple_body[b] & simple_law[law]
        kind[at] = DIAGONAL if diagonal else FULL
        if border and diagonal:  # of places themselves: their difference is the shortest vector
            x, y, z = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
            if c[X + n] != x or c[Y + n] != y or c[Z + n] != z:
                kind[at] = BORDER


@kernel
def take_chunk(space, spheres, rules, position, outlook, old, out, chunk, count, at):
    """Enter the active ones of the first ``count`` pairs of a chunk into ``out``.

    ``at``: the row to begin with, that after the last one, and the row of ``old`` that is looked at; returns the first
    and the last of these for the next chunk.
    """
    found, room, k = at
    few = measure_chunk(space, spheres, outlook.slack, any_gap(rules, outlook), chunk, count)
    few, k = choose_active(space, spheres, rules, position, outlook, old, chunk, few, k)
    enter_chunk(spheres, rules, chunk, few, found, room, out)
    return found + np.int64(few), k


@kernel
def find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where):
    """Active pairs of balls, in order, into ``out``; returns the row after them (more than its room: do it again).

    ``where``: the first ball and that after the last one, the row to begin with, and that after the last one.
    """
    start, count, other = lists.start, lists.count, lists.other
    places, radius, body = spheres.places, spheres.radius, spheres.body
    begin, end, found, room = where
    k, held, full = rows_before(old.first, old.balls, begin), np.uint64(0), np.uint64(SOME)
    time = (1.0 + WARY) * outlook.h if outlook.anticipate and not any_gap(rules, outlook) else 0.0
    one, two = np.empty(SOME, np.int32), np.empty(SOME, np.int32)
    laws, rows = np.empty(SOME, np.int32), np.empty(SOME, np.int32)
    way = ways(outlook.one, outlook.two, spheres.body, time)
    chunk = Chunk(one, two, way, np.empty(len(COLUMNS) * SOME), np.empty(SOME, np.uint64), laws, rows)
    for i in range(np.uint64(begin), np.uint64(end)):
        for n in range(np.uint64(start[i]), np.uint64(start[i] + count[i])):
            one[held], two[held] = i, other[n]
            fetch(places, two[held])
            fetch(radius, two[held])
            fetch(body, two[held])
            held += np.uint64(1)
            if held == full:
                at = found, room, k
                found, k = take_chunk(space, spheres, rules, position, outlook, old, out, chunk, held, at)
                held = np.uint64(0)
    at = found, room, k
    return take_chunk(space, spheres, rules, position, outlook, old, out, chunk, held, at)[0]


@kernel
def plane_row(old, plane, ball):
    """The first row of the list ``old`` that is of this ``plane`` and ``ball``, or of later ones."""
    low, high = old.balls, old.first.size
    while low < high:
        middle = (low + high) // 2
        if old.first[middle] < plane or (old.first[middle] == plane and old.second[middle] < ball):
            low = middle + 1
        else:
            high = middle
    return low


class OnPlanes(NamedTuple):
    """The active pairs of each plane with some balls: as many as there are of them (planes, balls)."""

    ball: np.ndarray
    gap: np.ndarray  # m
    law: np.ndarray
    source: np.ndarray  # row in the list before, -1 where it is new


@kernel
def find_plane_contacts(spheres, flats, rules, position, outlook, old, begin, end, out, counts):
    """Active pairs of a plane and a ball from ``begin`` on, before ``end``, in order, into ``out`` (`OnPlanes`).

    How many each plane has, into ``counts`` (planes,).
    """
    ball, gaps, rule, source = out.ball, out.gap, out.law, out.source
    places, radius, body, body_kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    normals, points, plane_body, plane_material = flats.normals, flats.points, flats.body, flats.material
    law_index, sticky_law, near_law = rules.law_index, rules.sticky, rules.near
    outlined, material = rules.outlined, rules.material
    one, two, h, slack, anticipate, keep = (
        outlook.one, outlook.two, outlook.h, outlook.slack, outlook.anticipate, outlook.keep
    )  # fmt: skip
    known_first, known_second, known_status = old.first, old.second, old.status
    known, joints, wide = old.first.size, rules.joints, outlook.anticipate or rules.pulls
    for p in range(plane_body.size):
        a, found, k = plane_body[p], 0, plane_row(old, p, begin)
        nx, ny, nz = normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * points[p, 0] + ny * points[p, 1] + nz * points[p, 2] + slack
        turns = one[a, 3] != 0.0 or one[a, 4] != 0.0 or one[a, 5] != 0.0  # a plane's spin is prescribed: `two` has it
        for i in range(begin, end):
            gap = nx * places[i, 0] + ny * places[i, 1] + nz * places[i, 2] - level - radius[i]
            b = body[i]
            if (gap > NEAR * radius[i] and not wide) or body_kind[b] != FREE or outlined[i]:
                continue
            while k < known and known_first[k] == p and known_second[k] < i:
                k += 1
            held = k < known and known_first[k] == p and known_second[k] == i
            law, u, r = own_law(joints, a, b, law_index[plane_material[p], material[i]]), 0.0, radius[i]
            if anticipate:
                wary = not keep and near_law[law] > 0.0 and not sticky_law[law]
                u, v = closing(one, a, b, nx, ny, nz, wary), closing(two, a, b, nx, ny, nz, wary)
                if turns or one[b, 7] == 1.0:
                    point = places[i, 0] - r * nx, places[i, 1] - r * ny, places[i, 2] - r * nz
                    u = normal_velocity(one, a, b, (nx, ny, nz), point, HERE, position)
                    v = normal_velocity(two, a, b, (nx, ny, nz), point, HERE, position)
                u = min(u, v)
            status = known_status[k] if held else OPEN
            if not takes_part(gap, held, status, keep, sticky_law[law], near_law[law], anticipate, u, h, r):
                continue
            ball[p, found], rule[p, found], source[p, found] = i, law, k if held else -1
            gaps[p, found] = gap if gap <= 0.0 or gap > ROUNDING * r else 0.0
            found += 1
        counts[p] = found


@kernel
def enter_plane_contacts(some, counts, spheres, flats, rules, at, out, thread):
    """Put what a ``thread`` has found on planes into the list ``out``: row ``at`` is the first of all planes.

    ``counts`` (threads, planes): the pairs of a plane stand together, those of the threads one after the other.
    """
    simple_body, simple_law = rules.simple_body, rules.simple_law
    for p in range(flats.body.size):
        a = flats.body[p]
        for other in range(thread):
            at += counts[other, p]
        for n in range(counts[thread, p]):
            k = at + n
            i, law = some.ball[p, n], some.law[p, n]
            b = spheres.body[i]
            out.first[k], out.second[k], out.law[k], out.place[k, 3] = p, i, law, some.gap[p, n]
            out.a[k], out.b[k], out.source[k] = a, b, some.source[p, n]
            out.kind[k] = DIAGONAL if simple_body[a] and simple_body[b] and simple_law[law] else FULL
            for c in range(3):
                out.place[k, c] = flats.normals[p, c]
        for other in range(thread, counts.shape[0]):
            at += counts[other, p]


@kernel
def first_of(old, span, base, number, parts):
    """The first ball of a thread, and where its rows begin: as many old pairs and balls are before it as in each part.

    ``base``: the rows of the list ``old`` before those of the ``span``.
    """
    first, last = old.first, rows_before(old.first, old.balls, span[1])
    target = (span[1] - span[0] + PAIR * (last - base)) * number // parts
    low, high = base, last
    while low < high:
        middle = (low + high) // 2
        if first[middle] - span[0] + PAIR * (middle - base) < target:
            low = middle + 1
        else:
            high = middle
    before, after = span
    if low > base:
        before = max(before, np.int64(first[low - 1]))
    if low < last:
        after = min(after, np.int64(first[low]))
    ball = span[1] if number == parts else max(before, min(after, span[0] + target - PAIR * (low - base)))
    spare = SPARE + old.balls // (32 * parts)
    return ball, rows_before(first, old.balls, ball) - base + number * spare


@kernel
def find_pairs(space, spheres, lists, flats, rules, position, outlook, old, out, span, ends, on_planes, deep, meeting):
    """All active pairs of the balls of a ``span``, with the memory of the ``old`` ones, into ``out``.

    ``span``: the first ball and that after the last one; a pair belongs to its first ball. Returns their number, and
    how many are of balls; more than its room: do it again. Each thread has some of the balls, and room for as many
    pairs as they had before and some more; what they find is put together. ``ends`` (2, threads + 1): where the rows of
    each end, and where they begin then; ``on_planes`` (threads, planes) how many are of planes; ``deep`` (threads, 4):
    the deepest of those that each thread looks at in the end, see `deepest_pair`.
    """
    enlist(meeting)
    thread, threads, room = meeting.thread, meeting.threads, out.first.size
    counts, cuts, base = ends[0], ends[1], rows_before(old.first, old.balls, span[0])
    (begin, at), (end, limit) = (span[0], 0), (span[1], room)
    if threads > 1:
        begin, at = first_of(old, span, base, thread, threads)
        end, limit = first_of(old, span, base, thread + 1, threads)
    where = begin, end, at, min(limit, room)
    counts[thread] = find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where)
    shape = flats.body.size, end - begin  # most of it is never touched
    some = OnPlanes(np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.int32), np.empty(shape, np.int32))
    find_plane_contacts(spheres, flats, rules, position, outlook, old, begin, end, some, on_planes[thread])
    meet(meeting, outlook.one)
    cuts[0], fits, flat = 0, True, 0
    for other in range(threads):
        at, last = first_of(old, span, base, other, threads)[1], first_of(old, span, base, other + 1, threads)[1]
        fits &= threads == 1 or counts[other] <= min(room, last)
        cuts[other + 1] = cuts[other] + counts[other] - at
        for p in range(flats.body.size):
            flat += on_planes[other, p]
    count = cuts[threads]
    total = count + flat
    if total > room:
        return total, count
    if not fits:  # many are new: again, each behind those before it
        where = begin, end, cuts[thread], cuts[thread + 1]
        find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where)
    else:
        for other in range(1, threads):
            at = first_of(old, span, base, other, threads)[1]
            move_down(out, at, counts[other], cuts[other], meeting)
    meet(meeting, outlook.one)
    enter_plane_contacts(some, on_planes, spheres, flats, rules, count, out, thread)
    meet(meeting, outlook.one)
    begin, end = part(total, meeting)
    recall(old, out, begin, end, rules.moments)
    depth, share, worst, wide = deepest_pair(out.place, out.first, out.second, count, spheres.radius, begin, end)
    deep[thread, 0], deep[thread, 1], deep[thread, 2], deep[thread, 3] = depth, share, worst, wide
    return total, count


@kernel
def crossing(space, places, pairs, out):
    """Which of the pairs of balls meet across the border, into ``out`` (K,)."""
    for k in range(out.size):
        out[k] = False
        if k < pairs.balls:
            i, j = pairs.first[k], pairs.second[k]
            x, y, z = image(
                space, places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
            )
            out[k] = x != 0.0 or y != 0.0 or z != 0.0
