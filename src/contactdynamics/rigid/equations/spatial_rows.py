"""A contact of polyhedra in memory: the columns of its row, its velocity, what an impulse does, its block of W."""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel

# Columns of a contact's row: frame, arms of a and b over c, impulse, target, friction, W, its inverse, the step rho,
# the place in its joint along t, s and n.
N, T, S, A, B, P, R = 0, 3, 6, 9, 12, 15, 18
C1, C2, WNN, WNT, WNS, WTT, WTS, WSS, INN, INT, INS, ITT, ITS, ISS, STEP, JX, JY, JZ = range(21, 39)
COLUMNS = 40
GLUE, PULL, ROLL, SPIN, MOMENT = range(5)  # columns of what only some laws need; the moment has three
JOINT = 35  # columns of what the contacts of a joint have in common: see `joints`


class SpatialContacts(NamedTuple):
    """Contacts in the order of their touches (m,)."""

    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    row: np.ndarray  # (m, 40) see the columns above
    law: np.ndarray  # (m, 7) cohesion h, tension h, rolling and spinning length, moment in the frame
    status: np.ndarray  # (m,)
    sink: np.ndarray  # (m,) speed below the target that the solver may leave to this contact, m/s
    joint: np.ndarray  # (m,) how many contacts from this one on are solved together; 0 within a joint, 1 for one alone
    wrench: np.ndarray  # (m, 35) of a joint, in the row of its first contact: see the columns above
    power: np.ndarray  # (m,) P . (U - r) and that of the moment, as the residual was last measured, J
    special: np.ndarray  # (1,) whether some law needs more than Coulomb's


def spatial_contacts(room: int) -> SpatialContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(2)]
    return SpatialContacts(
        *rows, np.empty((room, COLUMNS)), np.zeros((room, 7)), np.zeros(room, dtype=np.int8), np.empty(room),
        np.ones(room, dtype=np.int32), np.empty((room, JOINT)), np.zeros(room), np.zeros(1, dtype=bool),
    )  # fmt: skip


@kernel(inline=True)
def velocity(rows, a, b, row, k):
    """U (n, t, s) of a contact."""
    x = rows[b, 0] - rows[a, 0] + rows[b, 4] * row[k, B + 2] - rows[b, 5] * row[k, B + 1]
    y = rows[b, 1] - rows[a, 1] + rows[b, 5] * row[k, B] - rows[b, 3] * row[k, B + 2]
    z = rows[b, 2] - rows[a, 2] + rows[b, 3] * row[k, B + 1] - rows[b, 4] * row[k, B]
    x -= rows[a, 4] * row[k, A + 2] - rows[a, 5] * row[k, A + 1]
    y -= rows[a, 5] * row[k, A] - rows[a, 3] * row[k, A + 2]
    z -= rows[a, 3] * row[k, A + 1] - rows[a, 4] * row[k, A]
    return (
        row[k, N] * x + row[k, N + 1] * y + row[k, N + 2] * z,
        row[k, T] * x + row[k, T + 1] * y + row[k, T + 2] * z,
        row[k, S] * x + row[k, S + 1] * y + row[k, S + 2] * z,
    )


@kernel(inline=True)
def turned(inverse, body, x, y, z):
    """The product of a body's inverse inertia and a vector."""
    return (
        inverse[body, 0, 0] * x + inverse[body, 0, 1] * y + inverse[body, 0, 2] * z,
        inverse[body, 1, 0] * x + inverse[body, 1, 1] * y + inverse[body, 1, 2] * z,
        inverse[body, 2, 0] * x + inverse[body, 2, 1] * y + inverse[body, 2, 2] * z,
    )


@kernel(inline=True)
def kick(rows, inverse, body, x, y, z, tx, ty, tz):
    """Change the velocities of a body by an impulse, and by its moment over c."""
    mass, square = rows[body, 6], rows[body, 7] * rows[body, 7]
    tx, ty, tz = turned(inverse, body, tx, ty, tz)
    rows[body, 0] += mass * x
    rows[body, 1] += mass * y
    rows[body, 2] += mass * z
    rows[body, 3] += square * tx
    rows[body, 4] += square * ty
    rows[body, 5] += square * tz


@kernel(inline=True)
def push(rows, inverse, a, b, row, k, p, q, r):
    """Apply an impulse (n, t, s) to the two bodies."""
    x = row[k, N] * p + row[k, T] * q + row[k, S] * r
    y = row[k, N + 1] * p + row[k, T + 1] * q + row[k, S + 1] * r
    z = row[k, N + 2] * p + row[k, T + 2] * q + row[k, S + 2] * r
    kick(rows, inverse, b, x, y, z, row[k, B + 1] * z - row[k, B + 2] * y, row[k, B + 2] * x - row[k, B] * z,
         row[k, B] * y - row[k, B + 1] * x)  # fmt: skip
    kick(rows, inverse, a, -x, -y, -z, row[k, A + 2] * y - row[k, A + 1] * z, row[k, A] * z - row[k, A + 2] * x,
         row[k, A + 1] * x - row[k, A] * y)  # fmt: skip


@kernel
def twist(rows, inverse, a, b, row, k, p, q, r):
    """Apply a moment about (n, t, s) to the two bodies."""
    x = row[k, N] * p + row[k, T] * q + row[k, S] * r
    y = row[k, N + 1] * p + row[k, T + 1] * q + row[k, S + 1] * r
    z = row[k, N + 2] * p + row[k, T + 2] * q + row[k, S + 2] * r
    f, g = 1.0 / rows[b, 7], -1.0 / rows[a, 7]
    kick(rows, inverse, b, 0.0, 0.0, 0.0, f * x, f * y, f * z)
    kick(rows, inverse, a, 0.0, 0.0, 0.0, g * x, g * y, g * z)


@kernel
def push_some(rows, mobility, contacts, some):
    """Add the impulses and moments of the contacts ``some`` to the velocities."""
    row, law, inverse = contacts.row, contacts.law, mobility.inverse
    for at in range(some.size):
        k = some[at]
        a, b = contacts.a[k], contacts.b[k]
        push(rows, inverse, a, b, row, k, row[k, P], row[k, P + 1], row[k, P + 2])
        if law[k, ROLL] > 0.0 or law[k, SPIN] > 0.0:
            twist(rows, inverse, a, b, row, k, law[k, MOMENT], law[k, MOMENT + 1], law[k, MOMENT + 2])


@kernel
def turning_part(rows, inverse, body, row, k, arm):
    """What the turning of a body adds to W (nn, nt, ns, tt, ts, ss): (arm x d) . c^2 I^-1 (arm x e)."""
    if rows[body, 6] == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    c, x, y, z = rows[body, 7], row[k, arm], row[k, arm + 1], row[k, arm + 2]
    x, y, z = c * x, c * y, c * z
    ax, ay, az = (
        y * row[k, N + 2] - z * row[k, N + 1],
        z * row[k, N] - x * row[k, N + 2],
        x * row[k, N + 1] - y * row[k, N],
    )
    bx, by, bz = (
        y * row[k, T + 2] - z * row[k, T + 1],
        z * row[k, T] - x * row[k, T + 2],
        x * row[k, T + 1] - y * row[k, T],
    )
    cx, cy, cz = (
        y * row[k, S + 2] - z * row[k, S + 1],
        z * row[k, S] - x * row[k, S + 2],
        x * row[k, S + 1] - y * row[k, S],
    )
    px, py, pz = turned(inverse, body, ax, ay, az)
    qx, qy, qz = turned(inverse, body, bx, by, bz)
    rx, ry, rz = turned(inverse, body, cx, cy, cz)
    return (
        ax * px + ay * py + az * pz, bx * px + by * py + bz * pz, cx * px + cy * py + cz * pz,
        bx * qx + by * qy + bz * qz, cx * qx + cy * qy + cz * qz, cx * rx + cy * ry + cz * rz,
    )  # fmt: skip


@kernel
def fill_block(rows, inverse, a, b, row, k):
    """The block of W of a contact, its inverse, and the step rho of the residual."""
    mass = rows[a, 6] + rows[b, 6]
    nn, nt, ns, tt, ts, ss = turning_part(rows, inverse, a, row, k, A)
    xx, xy, xz, yy, yz, zz = turning_part(rows, inverse, b, row, k, B)
    nn, nt, ns, tt, ts, ss = nn + xx + mass, nt + xy, ns + xz, tt + yy + mass, ts + yz, ss + zz + mass
    row[k, WNN], row[k, WNT], row[k, WNS], row[k, WTT], row[k, WTS], row[k, WSS] = nn, nt, ns, tt, ts, ss
    c1, c2, c3 = tt * ss - ts * ts, ns * ts - nt * ss, nt * ts - ns * tt
    f = 1.0 / (nn * c1 + nt * c2 + ns * c3)
    row[k, INN], row[k, INT], row[k, INS] = f * c1, f * c2, f * c3
    row[k, ITT], row[k, ITS], row[k, ISS] = f * (nn * ss - ns * ns), f * (nt * ns - nn * ts), f * (nn * tt - nt * nt)
    row[k, STEP] = 3.0 / (nn + tt + ss)


@kernel(inline=True)
def fill_matrix(row, k, w):
    """The block of W of a contact as a matrix (3, 3)."""
    w[0, 0], w[1, 1], w[2, 2] = row[k, WNN], row[k, WTT], row[k, WSS]
    w[0, 1] = w[1, 0] = row[k, WNT]
    w[0, 2] = w[2, 0] = row[k, WNS]
    w[1, 2] = w[2, 1] = row[k, WTS]


@kernel
def relative_spin(rows, a, b, row, k, out):
    """Relative spin (3,) of b with respect to a, in the frame of the contact."""
    x = rows[b, 3] / rows[b, 7] - rows[a, 3] / rows[a, 7]
    y = rows[b, 4] / rows[b, 7] - rows[a, 4] / rows[a, 7]
    z = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7]
    for c in range(3):
        out[c] = row[k, 3 * c] * x + row[k, 3 * c + 1] * y + row[k, 3 * c + 2] * z


@kernel
def moment_powers(rows, free, a, b, row, law, k):
    """The power of the moment of a contact, that beyond the velocities ``free``, and its parts without sign."""
    power, change, size = 0.0, 0.0, 0.0
    for c in range(3):
        for e in range(3):
            axis = law[k, MOMENT + c] * row[k, 3 * c + e]
            spin = rows[b, 3 + e] / rows[b, 7] - rows[a, 3 + e] / rows[a, 7]
            before = free[b, 3 + e] / rows[b, 7] - free[a, 3 + e] / rows[a, 7]
            power, change, size = power + axis * spin, change + axis * (spin - before), size + abs(axis * spin)
    return power, change, size
