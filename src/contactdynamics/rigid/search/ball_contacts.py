"""Where balls touch each other and planes: which pairs are active, in one kernel for all of them.

Pairs are found in lexicographic order, balls first and planes after them, and take over the memory of the last step by
a merge of the two sorted lists.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN, SEPARATING
from ..space import image, shortest
from ..threads import COUNTED, FOUND, meet, own_part, part, share_out
from .contract import BORDER, DIAGONAL, FULL, NEAR
from .laws import own_law
from .pairs import deepest_pair, move_down, recall, rows_before

ROUNDING = 1e-10  # of a radius: a gap above zero that is zero in exact numbers, and taken as such
HERE = 0.0, 0.0, 0.0  # shift of a body that is not met in an image
SPARE = 8  # rows for new pairs of the balls of a worker, beside its part of a 32nd of all
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
def find_plane_contacts(spheres, flats, rules, position, outlook, old, at, out):
    """Active pairs of a plane and a ball, in order, into ``out`` from row ``at`` on; returns the row after them."""
    first, second, rule, kind, gaps, normal, source, bodies_a, bodies_b = (
        out.first, out.second, out.law, out.kind, out.gap, out.normal, out.source, out.a, out.b
    )  # fmt: skip
    places, radius, body, body_kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    normals, points, plane_body, plane_material = flats.normals, flats.points, flats.body, flats.material
    law_index, simple_law, sticky_law, near_law = rules.law_index, rules.simple_law, rules.sticky, rules.near
    simple_body, outlined, material = rules.simple_body, rules.outlined, rules.material
    one, two, h, slack, anticipate, keep = (
        outlook.one, outlook.two, outlook.h, outlook.slack, outlook.anticipate, outlook.keep
    )  # fmt: skip
    known_first, known_second, known_status = old.first, old.second, old.status
    found, k, known, room, joints = at, old.balls, old.first.size, first.size, rules.joints
    wide = anticipate or rules.pulls
    for p in range(plane_body.size):
        a = plane_body[p]
        nx, ny, nz = normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * points[p, 0] + ny * points[p, 1] + nz * points[p, 2] + slack
        turns = one[a, 3] != 0.0 or one[a, 4] != 0.0 or one[a, 5] != 0.0  # a plane's spin is prescribed: `two` has it
        for i in range(radius.size):
            gap = nx * places[i, 0] + ny * places[i, 1] + nz * places[i, 2] - level - radius[i]
            b = body[i]
            if (gap > NEAR * radius[i] and not wide) or body_kind[b] != FREE or outlined[i]:
                continue
            while k < known and (known_first[k] < p or (known_first[k] == p and known_second[k] < i)):
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
            gap = gap if gap <= 0.0 or gap > ROUNDING * r else 0.0
            if found < room:
                first[found], second[found], rule[found], gaps[found] = p, i, law, gap
                bodies_a[found], bodies_b[found] = a, b
                kind[found] = DIAGONAL if simple_body[a] and simple_body[b] and simple_law[law] else FULL
                normal[found, 0], normal[found, 1], normal[found, 2] = nx, ny, nz
                source[found] = k if held else -1
            found += 1
    return found


@kernel
def find_pairs(space, spheres, lists, flats, rules, position, outlook, old, out, ends, deep, meeting):
    """All active pairs, with the memory of the ``old`` ones, into ``out``; their number, and how many are of balls.

    More than its room: do it again. Each worker has some of the balls, and room for as many pairs as they had before
    and some more; what they find is put together. ``ends`` (2, workers + 2): where the rows of each end, and where they
    begin then; ``deep`` (threads, 3): the deepest of those that each thread looks at in the end, see `deepest_pair`.
    """
    thread, threads, balls, room = meeting.thread, meeting.threads, spheres.radius.size, out.first.size
    workers, counts, cuts = ends.shape[1] - 2, ends[0], ends[1]
    worker, _ = own_part(meeting, workers)
    begin, end = own_part(meeting, balls)
    spare = SPARE + old.balls // (32 * workers)
    at, limit = 0, room
    if workers > 1:
        at = rows_before(old.first, old.balls, begin) + worker * spare
        limit = min(room, rows_before(old.first, old.balls, end) + (worker + 1) * spare)
    where = begin, end, at, limit
    counts[worker] = find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where)
    share_out(meeting, outlook.one, COUNTED)
    cuts[0], fits = 0, True
    for other in range(workers):
        at = rows_before(old.first, old.balls, balls * other // workers) + other * spare
        last = rows_before(old.first, old.balls, balls * (other + 1) // workers) + (other + 1) * spare
        fits &= workers == 1 or counts[other] <= min(room, last)
        cuts[other + 1] = cuts[other] + counts[other] - at
    total = cuts[workers]
    if not fits:
        need = total + old.first.size - old.balls  # with as many of planes as before
        if need > room:
            return need, need
        where = begin, end, cuts[worker], cuts[worker + 1]  # many are new: again, each behind those before it
        find_ball_contacts(space, spheres, lists, rules, position, outlook, old, out, where)
    for other in range(1, workers if fits else 1):
        if 0 <= other - worker + thread < threads:  # of this process
            at = rows_before(old.first, old.balls, balls * other // workers) + other * spare
            move_down(out, at, counts[other], cuts[other], meeting)
    if workers > 1:
        share_out(meeting, outlook.one, FOUND)
    if thread == 0:
        counts[workers] = counts[workers + 1] = total
        if flats.body.size > 0:
            counts[workers] = find_plane_contacts(spheres, flats, rules, position, outlook, old, total, out)
    meet(meeting, outlook.one)
    total, count = counts[workers], counts[workers + 1]
    if total <= room:
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
