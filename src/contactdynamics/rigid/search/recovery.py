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
from .touches import NX, NY, PLACE, SIZE, X, Y

ROUNDS = 1000  # at most, over pairs of balls
NX_3, NY_3, NZ_3, X_3, Y_3, Z_3 = PLACE


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
    one, two, normal = pairs.a, pairs.b, pairs.normal
    for _ in range(ROUNDS):
        moved, count = 0.0, 0
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
                touched[a] = inverse[a, 0] + inverse[a, 1] + inverse[a, 2] > 0.0
                touched[b] = inverse[b, 0] + inverse[b, 1] + inverse[b, 2] > 0.0
        if moved < 0.1 * keep:
            break
    work = moved_by(shift, position, most, gravity, mass)
    for k in range(which.size):
        pair = which[k]
        for c in range(3):
            depth[k] -= normal[pair, c] * (shift[two[pair], c] - shift[one[pair], c]) / pair_size(pairs, radius, pair)
    return work


@kernel
def recover_touches(position, orientation, rows, touches, inverse, depth, keep, most, gravity, mass):
    """Move and turn polygons apart; ``inverse`` (N, 3, 3) of the inertias."""
    shift, place = np.zeros((rows.shape[0], 6)), touches.place
    for _ in range(100):
        moved = 0.0
        for k in range(depth.size):
            a, b, nx, ny, size = touches.a[k], touches.b[k], place[k, NX], place[k, NY], place[k, SIZE]
            lever_a = (place[k, X] - position[a, 0]) * ny - (place[k, Y] - position[a, 1]) * nx
            lever_b = (place[k, X] - position[b, 0]) * ny - (place[k, Y] - position[b, 1]) * nx
            opened = nx * (shift[b, 0] - shift[a, 0]) + ny * (shift[b, 1] - shift[a, 1])
            opened += lever_b * shift[b, 5] - lever_a * shift[a, 5]
            wanted = (depth[k] - keep) * size - opened
            if wanted > 0.0:
                moved = max(moved, wanted / size)
                turn_a, turn_b = inverse[a, 2, 2] * lever_a, inverse[b, 2, 2] * lever_b
                p = wanted / (rows[a, 6] + rows[b, 6] + turn_a * lever_a + turn_b * lever_b)
                for body, sign, turn in ((a, -p, turn_a), (b, p, turn_b)):
                    shift[body, 0] += sign * rows[body, 6] * nx
                    shift[body, 1] += sign * rows[body, 6] * ny
                    shift[body, 5] += sign * turn
        if moved < 0.1 * keep:
            break
    work = moved_by(shift, position, most, gravity, mass)
    for i in range(shift.shape[0]):
        half = 0.5 * shift[i, 5]
        if half != 0.0:
            c, s, w, z = np.cos(half), np.sin(half), orientation[i, 0], orientation[i, 3]
            orientation[i, 0], orientation[i, 3] = c * w - s * z, c * z + s * w
    return work


@kernel
def turned(inverse, body, x, y, z):
    """The product of a body's inverse inertia and a vector."""
    m = inverse[body]
    return (m[0, 0] * x + m[0, 1] * y + m[0, 2] * z, m[1, 0] * x + m[1, 1] * y + m[1, 2] * z,
            m[2, 0] * x + m[2, 1] * y + m[2, 2] * z)  # fmt: skip


@kernel
def recover_joints(position, orientation, rows, touches, inverse, depth, keep, most, gravity, mass):
    """Move and turn polyhedra apart, and their spins with them; ``inverse`` (N, 3, 3) of the inertias."""
    shift, place = np.zeros((rows.shape[0], 6)), touches.place
    for _ in range(100):
        moved = 0.0
        for k in range(depth.size):
            a, b, size = touches.a[k], touches.b[k], place[k, SIZE]
            nx, ny, nz = place[k, NX_3], place[k, NY_3], place[k, NZ_3]
            opened, heavy = 0.0, 0.0
            for side in range(2):
                body, sign = (a, -1.0) if side == 0 else (b, 1.0)
                x, y, z = (place[k, X_3] - position[body, 0], place[k, Y_3] - position[body, 1],
                           place[k, Z_3] - position[body, 2])  # fmt: skip
                lx, ly, lz = y * nz - z * ny, z * nx - x * nz, x * ny - y * nx
                tx, ty, tz = turned(inverse, body, lx, ly, lz)
                heavy += rows[body, 6] + lx * tx + ly * ty + lz * tz
                opened += sign * (nx * shift[body, 0] + ny * shift[body, 1] + nz * shift[body, 2])
                opened += sign * (lx * shift[body, 3] + ly * shift[body, 4] + lz * shift[body, 5])
            wanted = (depth[k] - keep) * size - opened
            if wanted <= 0.0:
                continue
            moved = max(moved, wanted / size)
            for side in range(2):
                body, p = (a, -wanted / heavy) if side == 0 else (b, wanted / heavy)
                x, y, z = (place[k, X_3] - position[body, 0], place[k, Y_3] - position[body, 1],
                           place[k, Z_3] - position[body, 2])  # fmt: skip
                tx, ty, tz = turned(inverse, body, y * nz - z * ny, z * nx - x * nz, x * ny - y * nx)
                shift[body, 0] += p * rows[body, 6] * nx
                shift[body, 1] += p * rows[body, 6] * ny
                shift[body, 2] += p * rows[body, 6] * nz
                shift[body, 3] += p * tx
                shift[body, 4] += p * ty
                shift[body, 5] += p * tz
        if moved < 0.1 * keep:
            break
    work = moved_by(shift, position, most, gravity, mass)
    for i in range(shift.shape[0]):
        x, y, z = shift[i, 3], shift[i, 4], shift[i, 5]
        if x != 0.0 or y != 0.0 or z != 0.0:
            turn = exponential(x, y, z)
            q = orientation[i]
            q[0], q[1], q[2], q[3] = multiply(turn[0], turn[1], turn[2], turn[3], q[0], q[1], q[2], q[3])
            rows[i, 3], rows[i, 4], rows[i, 5] = rotate(turn, rows[i, 3], rows[i, 4], rows[i, 5])
    return work
