"""Recovery: bodies are moved apart until no contact overlaps by more than ``keep``, each by ``most`` (m) at most.

Gauss-Seidel on displacements, without friction, in the metric of masses; velocities stay as they are. Of a body that is
turned, those are the components of its spin along its own axes, the u of the papers (2004, section 4.4): its inertia is
constant there, so that neither the size of its angular momentum nor its kinetic energy changes, whatever its shape. The
same spin in space would be another energy, after the ledger has booked the step. ``depth`` and ``keep`` are over the
size of the smaller body. Each kernel returns the work done against gravity, J.
"""

import numpy as np

from ..._jit import kernel
from ...quaternions import exponential, multiply, rotate
from .pairs import pair_size
from .touches import SIZE

ROUNDS = 1000  # at most


@kernel
def moved_by(shift, position, most, gravity, mass):
    """Move bodies by ``shift`` (N, 3), or (N, 6) with turns, scaled where it is more than ``most``; the work."""
    work = 0.0
    for i in range(position.shape[0]):  # the rows of a moving cell have no place
        size = np.sqrt(shift[i, 0] ** 2 + shift[i, 1] ** 2 + shift[i, 2] ** 2)
        scale = most / size if size > most else 1.0
        for c in range(shift.shape[1]):
            shift[i, c] *= scale
        for c in range(3):
            position[i, c] += shift[i, c]
            work -= mass[i] * gravity[c] * shift[i, c]
    return work


@kernel
def recover_pairs(position, inverse, pairs, which, depth, radius, keep, most, gravity, mass):
    """Move balls apart, over the pairs ``which``; ``depth`` is theirs, and becomes what is left of it.

    The shortest way: what one pair was pushed may be taken back for another. ``inverse`` (N, 3) masses by direction. A
    round goes over the pairs of bodies that have been moved, and those that are too deep.
    """
    shift, touched = np.zeros(position.shape), np.zeros(len(position), dtype=np.int8)
    near, given = np.empty(which.size, dtype=np.int64), np.zeros(which.size)
    one, two, normal = pairs.a, pairs.b, pairs.place
    count, more = 0, True
    for _ in range(ROUNDS):
        moved = 0.0
        if more:
            count, more = 0, False
            for k in range(which.size):
                near[count] = k
                pair = which[k]
                count += touched[one[pair]] or touched[two[pair]] or depth[k] > keep
        for at in range(count):
            k = near[at]
            pair = which[k]
            a, b, size, n = one[pair], two[pair], pair_size(pairs, radius, pair), normal[pair]
            open_, light = (depth[k] - keep) * size, 0.0
            for c in range(3):
                open_ -= n[c] * (shift[b, c] - shift[a, c])
                light += n[c] * n[c] * (inverse[a, c] + inverse[b, c])
            push = max(open_ / light, -given[k]) if light > 0.0 else 0.0
            if push != 0.0:
                moved, given[k] = max(moved, abs(push) * light / size), given[k] + push
                for c in range(3):
                    shift[a, c] -= inverse[a, c] * push * n[c]
                    shift[b, c] += inverse[b, c] * push * n[c]
                for body in (a, b):
                    if not touched[body] and inverse[body, 0] + inverse[body, 1] + inverse[body, 2] > 0.0:
                        touched[body], more = 1, True
        if moved < 0.1 * keep:
            break
    work = moved_by(shift, position, most, gravity, mass)
    for k in range(which.size):
        pair = which[k]
        for c in range(3):
            depth[k] -= normal[pair, c] * (shift[two[pair], c] - shift[one[pair], c]) / pair_size(pairs, radius, pair)
    return work


@kernel
def write_ways(position, touches, apart, light, along, moves):
    """How contacts of two or three dimensions open: ``along`` (K, 2, 6), by the motion of a and of b (v, w); and how
    a push moves the bodies, ``moves`` (K, 2, 6). See `recover_touches`.
    """
    place, (linear, inverse), arm, n = touches.place, light, np.zeros(3), np.zeros(3)
    dimension = (place.shape[1] - 1) // 2
    for k in range(along.shape[0]):
        for c in range(dimension):
            n[c] = place[k, 1 + c]
        for side in range(2):
            body, sign = (touches.a[k], -1.0) if side == 0 else (touches.b[k], 1.0)
            for c in range(dimension):
                arm[c] = place[k, 1 + dimension + c] - position[body, c] - side * apart[k, c]
            for c in range(3):
                d, e = (c + 1) % 3, (c + 2) % 3
                along[k, side, c], along[k, side, 3 + c] = sign * n[c], sign * (arm[d] * n[e] - arm[e] * n[d])
                moves[k, side, c] = linear[body, c] * sign * n[c]
            for c in range(3):
                moves[k, side, 3 + c] = 0.0
                for d in range(3):
                    moves[k, side, 3 + c] += inverse[body, c, d] * along[k, side, 3 + d]


@kernel(inline=True)
def opened_by(along, k, shift, a, b):
    """By how much ``shift`` (N, 6) opens contact ``k``."""
    total = 0.0
    for c in range(6):
        total += along[k, 0, c] * shift[a, c] + along[k, 1, c] * shift[b, c]
    return total


@kernel
def recover_touches(pose, touches, apart, light, depth, keep, most, gravity, mass):
    """Move and turn polygons or polyhedra apart, the shortest way; ``depth`` becomes what is left of it.

    ``pose``: positions and orientations. ``apart`` (K, 3): how far b is met from where it is, in a cell. ``light``:
    inverse masses by direction (N, 3) and inverse inertias (N, 3, 3).
    """
    (position, orientation), one, two, size = pose, touches.a, touches.b, touches.place[:, SIZE]
    shift, given, heavy = np.zeros((position.shape[0], 6)), np.zeros(depth.size), np.zeros(depth.size)
    along, moves = np.empty((depth.size, 2, 6)), np.empty((depth.size, 2, 6))
    write_ways(position, touches, apart, light, along, moves)
    for k in range(depth.size):
        for c in range(6):
            heavy[k] += along[k, 0, c] * moves[k, 0, c] + along[k, 1, c] * moves[k, 1, c]
    for _ in range(ROUNDS):
        moved = 0.0
        for k in range(depth.size):
            a, b = one[k], two[k]
            wanted = (depth[k] - keep) * size[k] - opened_by(along, k, shift, a, b)
            push = max(wanted / heavy[k], -given[k]) if heavy[k] > 0.0 else 0.0
            if push != 0.0:
                moved, given[k] = max(moved, abs(push) * heavy[k] / size[k]), given[k] + push
                for c in range(6):
                    shift[a, c] += push * moves[k, 0, c]
                    shift[b, c] += push * moves[k, 1, c]
        if moved < 0.1 * keep:
            break
    work = moved_by(shift, position, most, gravity, mass)
    for k in range(depth.size):
        depth[k] -= opened_by(along, k, shift, one[k], two[k]) / size[k]
    for i in range(shift.shape[0]):
        x, y, z = shift[i, 3], shift[i, 4], shift[i, 5]
        if x != 0.0 or y != 0.0 or z != 0.0:
            turn, q = exponential(x, y, z), orientation[i]
            q[0], q[1], q[2], q[3] = multiply(turn[0], turn[1], turn[2], turn[3], q[0], q[1], q[2], q[3])
    return work


@kernel
def turn_spins(before, after, rows):
    """Turn the spins of bodies in ``rows`` (N, 8) as these were turned, from orientations ``before`` to ``after``."""
    for i in range(before.shape[0]):
        p, q = before[i], after[i]
        if p[0] != q[0] or p[1] != q[1] or p[2] != q[2] or p[3] != q[3]:
            turn = multiply(q[0], q[1], q[2], q[3], p[0], -p[1], -p[2], -p[3])
            rows[i, 3], rows[i, 4], rows[i, 5] = rotate(turn, rows[i, 3], rows[i, 4], rows[i, 5])
