"""Where balls touch each other and planes: which pairs are active, in one kernel for all of them.

Pairs are found in lexicographic order, balls first and planes after them, and take over the memory of the last step by
a merge of the two sorted lists.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN, SEPARATING
from ..space import image, shortest
from ..threads import meet, part
from .contract import BORDER, DIAGONAL, FULL, NEAR
from .laws import own_law
from .pairs import deepest_pair, move_down, recall, rows_before

ROUNDING = 1e-10  # of a radius: a gap above zero that is zero in exact numbers, and taken as such
HERE = 0.0, 0.0, 0.0  # shift of a body that is not met in an image
SPARE = 8  # rows for new pairs of the balls of a thread, beside its part of a 32nd of all
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
    """(S,) how far balls go in this time at the faster of two velocities, spins left out."""
    out = np.zeros(body.size)
    if time > 0.0:
        for i in range(body.size):
            a = body[i]
            u, v = one[a, 0] ** 2 + one[a, 1] ** 2 + one[a, 2] ** 2, two[a, 0] ** 2 + two[a, 1] ** 2 + two[a, 2] ** 2
            out[i] = time * np.sqrt(max(u, v))
    return out


@kernel(inline=True)
def choose_near(space, places, reach, i, others, way, radius, wide, near):
    """Put those of the ``others`` (k,) of ball ``i`` that may touch it at its ``reach`` into ``near``; their number."""
    xi, yi, zi, own, chosen = places[i, 0], places[i, 1], places[i, 2], way[i], 0
    for n in range(others.size):  # without a branch, which nobody could foresee
        j = others[n]
        x, y, z = shortest(space, places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi)
        far = reach + radius[j] + own + way[j]
        near[chosen] = j
        chosen += wide or x * x + y * y + z * z <= far * far * (1.0 + 2.0 * NEAR)
    return chosen


@kernel
def find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where):
    """Active pairs of balls, in order, into ``out``; returns the row after them (more than its room: do it again).

    ``where``: the first ball and that after the last one, the row to begin with, and that after the last one.
    """
    # Arrays out of the tuples once: taken inside the loop, each is counted as a reference again and again.
    first, second, rule, kind, gaps, normal, source, bodies_a, bodies_b = (
        out.first, out.second, out.law, out.kind, out.gap, out.normal, out.source, out.a, out.b
    )  # fmt: skip
    places, radius, body = spheres.places, spheres.radius, spheres.body
    start, count, other = lists.start, lists.count, lists.other
    law_index, simple_law, sticky_law, near_law = rules.law_index, rules.simple_law, rules.sticky, rules.near
    simple_body, outlined, material, shaped, border, length = (
        rules.simple_body, rules.outlined, rules.material, rules.shaped, rules.border, rules.length
    )  # fmt: skip
    one, two, h, slack, anticipate, keep = (
        outlook.one, outlook.two, outlook.h, outlook.slack, outlook.anticipate, outlook.keep
    )  # fmt: skip
    known_first, known_second, known_status, known = old.first, old.second, old.status, old.balls
    begin, end, found, room = where
    longest, k = 1, 0
    for i in range(begin, end):
        longest = max(longest, count[i] + 1)
    near = np.empty(longest, dtype=np.int32)
    if begin > 0:
        k = rows_before(known_first, known, begin)
    joints = rules.joints
    wide = rules.pulls or (anticipate and (keep or rules.moments or border))  # gaps of any size may take part
    way = ways(one, two, body, (1.0 + WARY) * h if anticipate and not wide else 0.0)
    for i in range(begin, end):
        a, made, plain = body[i], material[i], simple_body[body[i]]
        xi, yi, zi, ri = places[i, 0], places[i, 1], places[i, 2], radius[i] + slack
        others = other[start[i] : start[i] + count[i]]
        for n in range(choose_near(space, places, ri, i, others, way, radius, wide, near)):
            j = near[n]
            x, y, z = shortest(space, places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi)
            square = x * x + y * y + z * z
            touch = ri + radius[j]
            if shaped and (outlined[i] or outlined[j]):  # holds a polygon: see `outlines`
                continue
            distance = np.sqrt(square)
            gap, f = distance - touch, 1.0 / distance
            nx, ny, nz = x * f, y * f, z * f
            while k < known and (known_first[k] < i or (known_first[k] == i and known_second[k] < j)):
                k += 1
            held = k < known and known_first[k] == i and known_second[k] == j
            b = body[j]
            law = own_law(joints, a, b, law_index[made, material[j]])
            if gap > 0.0:
                u, r = 0.0, radius[j]
                if anticipate:
                    wary = not keep and near_law[law] > 0.0 and not sticky_law[law]
                    u, v = closing(one, a, b, nx, ny, nz, wary), closing(two, a, b, nx, ny, nz, wary)
                    sx, sy, sz = image(space, places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi)
                    if one[a, 7] == 1.0 or one[b, 7] == 1.0:  # not balls: their spins have a part in it
                        along, shift = (nx, ny, nz), (sx, sy, sz)
                        point = places[j, 0] - r * nx, places[j, 1] - r * ny, places[j, 2] - r * nz
                        u = normal_velocity(one, a, b, along, point, shift, position)
                        v = normal_velocity(two, a, b, along, point, shift, position)
                    if border:
                        u += image_velocity(one, nx, ny, nz, sx, sy, sz, length)
                        v += image_velocity(two, nx, ny, nz, sx, sy, sz, length)
                    u = min(u, v)
                status = known_status[k] if held else OPEN
                if not takes_part(gap, held, status, keep, sticky_law[law], near_law[law], anticipate, u, h, r):
                    continue
                gap = gap if gap > ROUNDING * r else 0.0
            if found < room:
                first[found], second[found], rule[found], gaps[found] = i, j, law, gap
                bodies_a[found], bodies_b[found] = a, b
                kind[found] = DIAGONAL if plain and simple_body[b] and simple_law[law] else FULL
                if border and kind[found] == DIAGONAL:  # of places themselves: their difference is the shortest vector
                    if x != places[j, 0] - xi or y != places[j, 1] - yi or z != places[j, 2] - zi:
                        kind[found] = BORDER
                normal[found, 0], normal[found, 1], normal[found, 2] = nx, ny, nz
                source[found] = k if held else -1
            found += 1
    return found


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
            out.first[k], out.second[k], out.law[k], out.gap[k] = p, i, law, some.gap[p, n]
            out.a[k], out.b[k], out.source[k] = a, b, some.source[p, n]
            out.kind[k] = DIAGONAL if simple_body[a] and simple_body[b] and simple_law[law] else FULL
            for c in range(3):
                out.normal[k, c] = flats.normals[p, c]
        for other in range(thread, counts.shape[0]):
            at += counts[other, p]


@kernel
def find_pairs(space, spheres, lists, flats, rules, position, outlook, old, out, span, ends, on_planes, deep, meeting):
    """All active pairs of the balls of a ``span``, with the memory of the ``old`` ones, into ``out``.

    ``span``: the first ball and that after the last one; a pair belongs to its first ball. Returns their number, and
    how many are of balls; more than its room: do it again. Each thread has some of the balls, and room for as many
    pairs as they had before and some more; what they find is put together. ``ends`` (2, threads + 1): where the rows of
    each end, and where they begin then; ``on_planes`` (threads, planes) how many are of planes; ``deep`` (threads, 3):
    the deepest of those that each thread looks at in the end, see `deepest_pair`.
    """
    thread, threads, room = meeting.thread, meeting.threads, out.first.size
    counts, cuts, balls, base = ends[0], ends[1], span[1] - span[0], rows_before(old.first, old.balls, span[0])
    begin, end = span[0] + balls * thread // threads, span[0] + balls * (thread + 1) // threads
    spare = SPARE + old.balls // (32 * threads)
    at, limit = 0, room
    if threads > 1:
        at = rows_before(old.first, old.balls, begin) - base + thread * spare
        limit = min(room, rows_before(old.first, old.balls, end) - base + (thread + 1) * spare)
    where = begin, end, at, limit
    counts[thread] = find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where)
    shape = flats.body.size, end - begin  # most of it is never touched
    some = OnPlanes(np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.int32), np.empty(shape, np.int32))
    find_plane_contacts(spheres, flats, rules, position, outlook, old, begin, end, some, on_planes[thread])
    meet(meeting, outlook.one)
    cuts[0], fits, flat = 0, True, 0
    for other in range(threads):
        at = rows_before(old.first, old.balls, span[0] + balls * other // threads) - base + other * spare
        last = rows_before(old.first, old.balls, span[0] + balls * (other + 1) // threads) - base + (other + 1) * spare
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
            at = rows_before(old.first, old.balls, span[0] + balls * other // threads) - base + other * spare
            move_down(out, at, counts[other], cuts[other], meeting)
    meet(meeting, outlook.one)
    enter_plane_contacts(some, on_planes, spheres, flats, rules, count, out, thread)
    meet(meeting, outlook.one)
    begin, end = part(total, meeting)
    recall(old, out, begin, end, rules.moments)
    depth, share, worst = deepest_pair(out.gap, out.first, out.second, count, spheres.radius, begin, end)
    deep[thread, 0], deep[thread, 1], deep[thread, 2] = depth, share, worst
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
