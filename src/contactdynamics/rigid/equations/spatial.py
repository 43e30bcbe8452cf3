"""Spatial equations: contacts of polyhedra, with lever arms; three components, five lines of cache.

A contact has the components (n, t, s) of a frame in space. With the arms from the centres of the bodies to the contact
point over c, and s = c w the scaled spin of a body's row (see `contract`), U = (n, t, s) . (v_b + s_b x arm_b - v_a -
s_a x arm_a); the impulse F in space changes s by c^2 I^-1 (arm x F). A contact sticks where P - W^-1 U is in its cone;
where not, `laws.solve_three` solves its problem exactly. Anisotropic friction, rolling and spinning resistance,
cohesion and tension as in `full`, where the laws are explained.

*Joints.* The contacts of two faces share their normal and act between the same two bodies. Where all of them stick, the
impulse on the joint is the wrench that takes away the relative twist of the bodies, by a system of six equations. It is
added to the present impulses by the smallest change that has this wrench: with (x, y) the place of a contact in the
joint, from its middle, P_n changes by a + b y - c x and P_t by (d - e y, f + e x). Three equations for the four corners
of a joint: how they share the load is not determined, and follows from how they came together. Where a contact would
leave its cone, the problem of the joint is solved for its twist V by Newton's method:
C^-1 (V - V_0) = sum G_k^T (P_k - P_k0) with P_k = proj_K(P_k0 - rho_k U_k), U_k = G_k V and U_n + gamma |U_t| in the
place of U_n (de Saxce), which is one step of the method of multipliers. The projections on the cones are piecewise
smooth, their derivatives symmetric: six equations with a positive matrix, however many contacts there are.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...problem.laws import _project_wedge, natural_map, solve_three
from ...scenes.materials import COHESION, FRICTION_1, FRICTION_2, RHO, ROLLING, SPINNING, STATIC, TAU, TENSION
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..search import touches as touch
from ..search.contract import SPATIAL
from .contract import (
    KERNELS,
    Explicit,
    Held,
    Kernels,
    holds_static,
    local_frame,
    sinking_speed,
    status_of,
    target_velocity,
)
from .full import carried, contact_block, moment_error, solve_contact

NX, NY, NZ, X, Y, Z = touch.PLACE
# Columns of a contact's row: frame, arms of a and b over c, impulse, target, friction, W, its inverse, the step rho,
# the place in its joint along t, s and n.
N, T, S, A, B, P, R = 0, 3, 6, 9, 12, 15, 18
C1, C2, WNN, WNT, WNS, WTT, WTS, WSS, INN, INT, INS, ITT, ITS, ISS, STEP, JX, JY, JZ = range(21, 39)
COLUMNS = 40
GLUE, PULL, ROLL, SPIN, MOMENT = range(5)  # columns of what only some laws need; the moment has three
# Columns of a joint: arms of its middle, target of the twist (v_n, w_t, w_s), shares of the contacts (1 / m, inverse of
# sum (y y, -x y, x x), 1 / sum (x x + y y)), the factor of Cholesky of its compliance, row after row.
JA, JB, JR, JM, JF = 0, 3, 6, 9, 14
JOINT = JF + 21
MOST = 32  # contacts of a joint that are solved together
STIFF, ROUNDS = 100.0, 20  # rho over that of the residual; rounds of Newton at most
LEVEL = 1e-14  # of the size: targets that no motion of the bodies has, times h, beyond which they cannot all stick


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
    special: np.ndarray  # (1,) whether some law needs more than Coulomb's


def spatial_contacts(room: int) -> SpatialContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(2)]
    return SpatialContacts(
        *rows, np.empty((room, COLUMNS)), np.zeros((room, 7)), np.zeros(room, dtype=np.int8), np.empty(room),
        np.ones(room, dtype=np.int32), np.empty((room, JOINT)), np.zeros(1, dtype=bool),
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


@kernel
def fill_frames(touches, materials, plane_materials, orientation, position, laws, axes, rows, out):
    """Frames and arms of the contacts; ``materials`` of the balls. An axis of friction turns the frame."""
    place, index, planes, row, axis, frame = (
        touches.place, touches.index, touches.planes, out.row, np.empty(3), np.empty((3, 3))
    )  # fmt: skip
    for k in range(touches.status.size):
        a, b, law = touches.a[k], touches.b[k], index[k, touch.LAW]
        out.a[k], out.b[k] = a, b
        nx, ny, nz = place[k, NX], place[k, NY], place[k, NZ]
        row[k, N], row[k, N + 1], row[k, N + 2] = nx, ny, nz
        if laws[law, FRICTION_1] != laws[law, FRICTION_2]:
            first = index[k, touch.FIRST]
            one = materials[first] if k < planes else plane_materials[first]
            carried(axes[law], one, materials[index[k, touch.SECOND]], orientation[a], orientation[b], axis)
            local_frame(place[k, NX : NZ + 1], axis, False, frame)
            for c in range(3):
                row[k, T + c], row[k, S + c] = frame[1, c], frame[2, c]
        else:  # Duff et al. (2017)
            sign = 1.0 if nz >= 0.0 else -1.0
            f = -1.0 / (sign + nz)
            row[k, T], row[k, T + 1], row[k, T + 2] = 1.0 + sign * nx * nx * f, sign * nx * ny * f, -sign * nx
            row[k, S], row[k, S + 1], row[k, S + 2] = nx * ny * f, sign + ny * ny * f, -ny
        fa, fb = 1.0 / rows[a, 7], 1.0 / rows[b, 7]
        row[k, A], row[k, B] = fa * (place[k, X] - position[a, 0]), fb * (place[k, X] - position[b, 0])
        row[k, A + 1], row[k, B + 1] = fa * (place[k, Y] - position[a, 1]), fb * (place[k, Y] - position[b, 1])
        row[k, A + 2], row[k, B + 2] = fa * (place[k, Z] - position[a, 2]), fb * (place[k, Z] - position[b, 2])


@kernel
def fill_contacts(touches, step, rows, laws, mobility, out):
    """Blocks, targets and laws of the contacts, whose frames are there; adds their first guess to ``rows``.

    Returns the sum of (rho b)^2 over the contacts.
    """
    scale, special = 0.0, False
    index, place, gaps, memory, status = touches.index, touches.place, touches.gap, touches.memory, touches.status
    before, free, h, inverse = step.before, step.free, step.h, mobility.inverse
    one, two, row, law = out.a, out.b, out.row, out.law
    for k in range(status.size):
        a, b, rule, gap = one[k], two[k], index[k, touch.LAW], gaps[k]
        fill_block(rows, inverse, a, b, row, k)
        u, v, w = velocity(before, a, b, row, k)
        row[k, R] = target_velocity(gap, u, laws[rule, RHO], h, step.anticipate, step.opening)
        row[k, R + 1], row[k, R + 2] = -laws[rule, TAU] * v, -laws[rule, TAU] * w
        row[k, C1], row[k, C2] = laws[rule, FRICTION_1], laws[rule, FRICTION_2]
        if laws[rule, STATIC] > laws[rule, FRICTION_1] and holds_static(status[k], v * v + w * w, u, gap, h):
            row[k, C1] = row[k, C2] = laws[rule, STATIC]
        glue, pull = h * laws[rule, COHESION], h * laws[rule, TENSION]
        x, y, z = memory[k, 0], memory[k, 1], memory[k, 2]
        row[k, P] = max(-max(glue, pull), x * row[k, N] + y * row[k, N + 1] + z * row[k, N + 2])
        row[k, P + 1] = x * row[k, T] + y * row[k, T + 1] + z * row[k, T + 2]
        row[k, P + 2] = x * row[k, S] + y * row[k, S + 1] + z * row[k, S + 2]
        law[k, GLUE], law[k, PULL], law[k, ROLL], law[k, SPIN] = glue, pull, laws[rule, ROLLING], laws[rule, SPINNING]
        turning = laws[rule, ROLLING] > 0.0 or laws[rule, SPINNING] > 0.0
        special = special or glue > 0.0 or pull > 0.0 or turning
        out.sink[k] = sinking_speed(gap, place[k, touch.SIZE], h) if step.anticipate else np.inf
        u, v, w = velocity(free, a, b, row, k)
        u, v, w = u - row[k, R], v - row[k, R + 1], w - row[k, R + 2]
        scale += row[k, STEP] ** 2 * (u * u + v * v + w * w)
        push(rows, inverse, a, b, row, k, row[k, P], row[k, P + 1], row[k, P + 2])
        for c in range(3):
            law[k, MOMENT + c] = 0.0
        if turning:
            x, y, z = memory[k, 3], memory[k, 4], memory[k, 5]
            for c in range(3):
                law[k, MOMENT + c] = x * row[k, 3 * c] + y * row[k, 3 * c + 1] + z * row[k, 3 * c + 2]
            twist(rows, inverse, a, b, row, k, law[k, MOMENT], law[k, MOMENT + 1], law[k, MOMENT + 2])
    out.special[0] = special
    return scale


@kernel
def fill_joints(touches, rows, inverse, h, out):
    """Find the joints, and what their contacts have in common."""
    index, planes, joint, row, size = touches.index, touches.planes, out.joint, out.row, touches.status.size
    work, k = np.empty((6, 6)), 0
    while k < size:
        after = k + 1
        while (
            after < size and after != planes
            and index[after, touch.FIRST] == index[k, touch.FIRST]
            and index[after, touch.SECOND] == index[k, touch.SECOND]
        ):  # fmt: skip
            after += 1
        for n in range(k, after):
            joint[n] = 1
        if 1 < after - k <= MOST and row[k, C1] == row[k, C2]:
            measure_joint(row, out.wrench, k, after, LEVEL * touches.place[k, touch.SIZE] / h)
            if couple(rows, inverse, out.a[k], out.b[k], row, out.wrench, k, work):
                for n in range(k, after):
                    joint[n] = 0
                joint[k] = after - k
        k = after


@kernel
def measure_joint(row, wrench, k, after, level):
    """Middle, shares and target of the joint of the contacts k to ``after``.

    The shares are zero where they cannot all stick in one solution: where they lie on a line, or their targets differ
    by more than ``level`` from those of a motion.
    """
    share, wrench[k, JM] = 1.0 / (after - k), 0.0
    for c in range(3):
        wrench[k, JA + c] = wrench[k, JB + c] = 0.0
        for n in range(k, after):
            wrench[k, JA + c] += share * row[n, A + c]
            wrench[k, JB + c] += share * row[n, B + c]
    xx, xy, yy, r0, rx, ry = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for n in range(k, after):
        p, q, r = row[n, A] - wrench[k, JA], row[n, A + 1] - wrench[k, JA + 1], row[n, A + 2] - wrench[k, JA + 2]
        x, y = (
            p * row[k, T] + q * row[k, T + 1] + r * row[k, T + 2],
            p * row[k, S] + q * row[k, S + 1] + r * row[k, S + 2],
        )
        row[n, JX], row[n, JY], row[n, JZ] = x, y, p * row[k, N] + q * row[k, N + 1] + r * row[k, N + 2]
        xx, xy, yy = xx + x * x, xy + x * y, yy + y * y
        r0, rx, ry = r0 + row[n, R], rx + x * row[n, R], ry + y * row[n, R]
    det = xx * yy - xy * xy
    if not (det > 1e-8 * (xx + yy) ** 2 and row[k, C1] > 0.0):
        return
    # U_n = v + w_t y - w_s x: the sums of (y, -x)(y, -x)^T, and the motion nearest to the targets
    f = 1.0 / det
    one, two, three = f * xx, f * xy, f * yy
    wrench[k, JM + 1], wrench[k, JM + 2], wrench[k, JM + 3] = one, two, three
    wrench[k, JM + 4] = 1.0 / (xx + yy)
    wrench[k, JR] = share * r0
    wrench[k, JR + 1], wrench[k, JR + 2] = one * ry - two * rx, two * ry - three * rx
    for n in range(k, after):
        u = wrench[k, JR] + wrench[k, JR + 1] * row[n, JY] - wrench[k, JR + 2] * row[n, JX]
        if not (abs(u - row[n, R]) <= level and row[n, R + 1] == 0.0 and row[n, R + 2] == 0.0):
            return
    wrench[k, JM] = share


@kernel
def couple(rows, inverse, a, b, row, wrench, k, work):
    """The compliance of a joint at its middle, of (v, w) with respect to (force, torque), in its frame; its factor.

    Of one body with the arm r: [1/m + r~^T J r~, r~^T J; J r~, J], J the inverse inertia, r~ f = r x f.
    """
    for i in range(6):
        for j in range(i + 1):
            work[i, j] = rows[a, 6] + rows[b, 6] if i == j and i < 3 else 0.0
    for side in range(2):
        body, at = (a, JA) if side == 0 else (b, JB)
        if rows[body, 6] == 0.0:
            continue
        x, y, z = wrench[k, at], wrench[k, at + 1], wrench[k, at + 2]
        for j in range(6):  # the turning by a unit force or torque along an axis of the frame
            d = 3 * (j % 3)
            px, py, pz = row[k, d], row[k, d + 1], row[k, d + 2]
            if j < 3:
                px, py, pz = y * pz - z * py, z * px - x * pz, x * py - y * px
            px, py, pz = turned(inverse, body, px, py, pz)
            for i in range(max(j, 3), 6):
                d = 3 * (i - 3)
                work[i, j] += row[k, d] * px + row[k, d + 1] * py + row[k, d + 2] * pz
            if j < 3:
                px, py, pz = py * z - pz * y, pz * x - px * z, px * y - py * x
                for i in range(j, 3):
                    work[i, j] += row[k, 3 * i] * px + row[k, 3 * i + 1] * py + row[k, 3 * i + 2] * pz
    at = JF
    for i in range(6):  # Cholesky; the diagonal of the factor is kept inverted
        for j in range(i):
            total = work[i, j]
            for n in range(j):
                total -= work[i, n] * work[j, n]
            work[i, j] = total * work[j, j]
            wrench[k, at] = work[i, j]
            at += 1
        total = work[i, i]
        for n in range(i):
            total -= work[i, n] * work[i, n]
        if not total > 0.0:
            return False
        work[i, i] = wrench[k, at] = 1.0 / np.sqrt(total)
        at += 1
    return True


@kernel(inline=True)
def wrench_of(wrench, k, v1, v2, v3, w1, w2, w3):
    """The force and torque on a joint that give this change of its twist."""
    f = JF
    y1 = v1 * wrench[k, f]
    y2 = (v2 - wrench[k, f + 1] * y1) * wrench[k, f + 2]
    y3 = (v3 - wrench[k, f + 3] * y1 - wrench[k, f + 4] * y2) * wrench[k, f + 5]
    y4 = (w1 - wrench[k, f + 6] * y1 - wrench[k, f + 7] * y2 - wrench[k, f + 8] * y3) * wrench[k, f + 9]
    y5 = w2 - wrench[k, f + 10] * y1 - wrench[k, f + 11] * y2 - wrench[k, f + 12] * y3 - wrench[k, f + 13] * y4
    y5 *= wrench[k, f + 14]
    y6 = w3 - wrench[k, f + 15] * y1 - wrench[k, f + 16] * y2 - wrench[k, f + 17] * y3 - wrench[k, f + 18] * y4
    y6 = (y6 - wrench[k, f + 19] * y5) * wrench[k, f + 20]
    y6 *= wrench[k, f + 20]
    y5 = (y5 - wrench[k, f + 19] * y6) * wrench[k, f + 14]
    y4 = (y4 - wrench[k, f + 13] * y5 - wrench[k, f + 18] * y6) * wrench[k, f + 9]
    y3 = (y3 - wrench[k, f + 8] * y4 - wrench[k, f + 12] * y5 - wrench[k, f + 17] * y6) * wrench[k, f + 5]
    y2 = y2 - wrench[k, f + 4] * y3 - wrench[k, f + 7] * y4 - wrench[k, f + 11] * y5 - wrench[k, f + 16] * y6
    y2 *= wrench[k, f + 2]
    y1 = y1 - wrench[k, f + 1] * y2 - wrench[k, f + 3] * y3 - wrench[k, f + 6] * y4 - wrench[k, f + 10] * y5
    y1 = (y1 - wrench[k, f + 15] * y6) * wrench[k, f]
    return y1, y2, y3, y4, y5, y6


@kernel(inline=True)
def joint_twist(rows, a, b, row, wrench, k):
    """Relative velocity of two bodies at the middle of a joint, and their relative spin, in its frame."""
    p, q, r = wrench[k, JB], wrench[k, JB + 1], wrench[k, JB + 2]
    x = rows[b, 0] - rows[a, 0] + rows[b, 4] * r - rows[b, 5] * q
    y = rows[b, 1] - rows[a, 1] + rows[b, 5] * p - rows[b, 3] * r
    z = rows[b, 2] - rows[a, 2] + rows[b, 3] * q - rows[b, 4] * p
    p, q, r = wrench[k, JA], wrench[k, JA + 1], wrench[k, JA + 2]
    x -= rows[a, 4] * r - rows[a, 5] * q
    y -= rows[a, 5] * p - rows[a, 3] * r
    z -= rows[a, 3] * q - rows[a, 4] * p
    s, t, u = rows[b, 3] - rows[a, 3], rows[b, 4] - rows[a, 4], rows[b, 5] - rows[a, 5]
    return (
        row[k, N] * x + row[k, N + 1] * y + row[k, N + 2] * z,
        row[k, T] * x + row[k, T + 1] * y + row[k, T + 2] * z,
        row[k, S] * x + row[k, S + 1] * y + row[k, S + 2] * z,
        row[k, N] * s + row[k, N + 1] * t + row[k, N + 2] * u,
        row[k, T] * s + row[k, T + 1] * t + row[k, T + 2] * u,
        row[k, S] * s + row[k, S + 1] * t + row[k, S + 2] * u,
    )


@kernel(inline=True)
def stick_step(rows, a, b, row, wrench, k, count, trial):
    """The impulses of a joint whose contacts all stick, into ``trial`` (MOST, 4); whether they are in their cones."""
    v1, v2, v3, w1, w2, w3 = joint_twist(rows, a, b, row, wrench, k)
    f1, f2, f3, t1, t2, t3 = wrench_of(
        wrench, k, wrench[k, JR] - v1, -v2, -v3, -w1, wrench[k, JR + 1] - w2, wrench[k, JR + 2] - w3
    )
    share, turn = wrench[k, JM], t1 * wrench[k, JM + 4]
    one, two = wrench[k, JM + 1] * t2 + wrench[k, JM + 2] * t3, wrench[k, JM + 2] * t2 + wrench[k, JM + 3] * t3
    f1, f2, f3, square = f1 * share, f2 * share, f3 * share, row[k, C1] * row[k, C1]
    for n in range(count):
        m = k + n
        p = row[m, P] + f1 + one * row[m, JY] - two * row[m, JX]
        q, r = row[m, P + 1] + f2 - turn * row[m, JY], row[m, P + 2] + f3 + turn * row[m, JX]
        if not (p >= 0.0 and q * q + r * r <= square * p * p):
            return False
        trial[n, 0], trial[n, 1], trial[n, 2] = p, q, r
    return True


@kernel(inline=True)
def apply_joint(rows, inverse, a, b, row, wrench, k, count, trial):
    """Take the impulses ``trial`` of a joint; returns the kinetic size of the change."""
    change, f1, f2, f3, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for n in range(count):
        m = k + n
        p, q, r = trial[n, 0] - row[m, P], trial[n, 1] - row[m, P + 1], trial[n, 2] - row[m, P + 2]
        row[m, P], row[m, P + 1], row[m, P + 2] = trial[n, 0], trial[n, 1], trial[n, 2]
        change += row[m, WNN] * p * p + row[m, WTT] * q * q + row[m, WSS] * r * r
        x, y, z = row[m, JX], row[m, JY], row[m, JZ]
        f1, f2, f3 = f1 + p, f2 + q, f3 + r
        t1, t2, t3 = t1 + x * r - y * q, t2 + y * p - z * r, t3 + z * q - x * p
    x = row[k, N] * f1 + row[k, T] * f2 + row[k, S] * f3
    y = row[k, N + 1] * f1 + row[k, T + 1] * f2 + row[k, S + 1] * f3
    z = row[k, N + 2] * f1 + row[k, T + 2] * f2 + row[k, S + 2] * f3
    s = row[k, N] * t1 + row[k, T] * t2 + row[k, S] * t3
    t = row[k, N + 1] * t1 + row[k, T + 1] * t2 + row[k, S + 1] * t3
    u = row[k, N + 2] * t1 + row[k, T + 2] * t2 + row[k, S + 2] * t3
    p, q, r = wrench[k, JB], wrench[k, JB + 1], wrench[k, JB + 2]
    kick(rows, inverse, b, x, y, z, q * z - r * y + s, r * x - p * z + t, p * y - q * x + u)
    p, q, r = wrench[k, JA], wrench[k, JA + 1], wrench[k, JA + 2]
    kick(rows, inverse, a, -x, -y, -z, r * y - q * z - s, p * z - r * x - t, q * x - p * y - u)
    return change


@kernel(inline=True)
def projected(x, y, z, gamma):
    """The projection on a friction cone, its status, and its derivative (nn, nt, ns, tt, ts, ss)."""
    flat = np.sqrt(y * y + z * z)
    if flat <= gamma * x:
        return x, y, z, STICKING, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0
    if gamma * flat <= -x:
        return 0.0, 0.0, 0.0, SEPARATING, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    part, y, z = 1.0 / (1.0 + gamma * gamma), y / flat, z / flat
    p = part * (x + gamma * flat)
    along, across = part * gamma * gamma, gamma * p / flat
    return (
        p, gamma * p * y, gamma * p * z, SLIDING, part, part * gamma * y, part * gamma * z,
        along * y * y + across * z * z, (along - across) * y * z, along * z * z + across * y * y,
    )  # fmt: skip


@kernel
def newton_step(rows, a, b, row, wrench, k, count, trial, status, work):
    """The impulses of a joint by Newton's method for its twist, into ``trial``; whether it found them.

    What is solved is the minimum of d . C^-1 d / 2 + sum (|P_k|^2 / 2 rho_k + P_k0 . G_k d), d the change of the twist:
    a step that does not make it smaller is halved. ``work`` (8, 6) is scratch.
    """
    v1, v2, v3, w1, w2, w3 = joint_twist(rows, a, b, row, wrench, k)
    for n in range(count):  # what de Saxce adds to U_n, from the velocities at the start
        m = k + n
        q, r = v2 - w1 * row[m, JY] + w3 * row[m, JZ], v3 + w1 * row[m, JX] - w2 * row[m, JZ]
        trial[n, 3] = row[k, C1] * np.sqrt((q - row[m, R + 1]) ** 2 + (r - row[m, R + 2]) ** 2)
    d1, d2, d3, d4, d5, d6 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s1, s2, s3, s4, s5, s6 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    force, least, left, last, part = work[6], np.inf, 0.0, count < 0, 1.0
    for _ in range(ROUNDS):
        f1, f2, f3, t1, t2, t3 = wrench_of(wrench, k, d1, d2, d3, d4, d5, d6)
        force[0], force[1], force[2], force[3], force[4], force[5] = f1, f2, f3, t1, t2, t3
        height = 0.5 * (d1 * f1 + d2 * f2 + d3 * f3 + d4 * t1 + d5 * t2 + d6 * t3)
        for i in range(6):  # C^-1, by the columns of the unit matrix
            work[i, 0], work[i, 1], work[i, 2], work[i, 3], work[i, 4], work[i, 5] = wrench_of(
                wrench,
                k,
                1.0 * (i == 0),
                1.0 * (i == 1),
                1.0 * (i == 2),
                1.0 * (i == 3),
                1.0 * (i == 4),
                1.0 * (i == 5),
            )
        height += add_contacts(row, k, count, trial, status, work, (v1, v2, v3, w1, w2, w3), (d1, d2, d3, d4, d5, d6))
        if last:
            return True
        if not height <= least - 1e-4 * part * left + 1e-12 * abs(least):
            part *= 0.5
            d1, d2, d3, d4, d5, d6 = (d1 + part * s1, d2 + part * s2, d3 + part * s3, d4 + part * s4, d5 + part * s5,
                                      d6 + part * s6)  # fmt: skip
            continue
        least, part = height, 1.0
        left = solve_six(work, force)
        last = left <= 1e-11 * abs(least)  # the next step is at rounding, and cannot be told from this one
        s1, s2, s3, s4, s5, s6 = force[0], force[1], force[2], force[3], force[4], force[5]
        d1, d2, d3, d4, d5, d6 = d1 - s1, d2 - s2, d3 - s3, d4 - s4, d5 - s5, d6 - s6
    return False


@kernel
def add_contacts(row, k, count, trial, status, work, twist, change):
    """Add the contacts of a joint to the matrix and right side of `newton_step`; returns what they add to the sum."""
    gamma, force, height, (v1, v2, v3, w1, w2, w3), (d1, d2, d3, d4, d5, d6) = row[k, C1], work[6], 0.0, twist, change
    for n in range(count):
        m = k + n
        x, y, z, rho = row[m, JX], row[m, JY], row[m, JZ], STIFF * row[m, STEP]
        p, q, r = d1 + d5 * y - d6 * x, d2 - d4 * y + d6 * z, d3 + d4 * x - d5 * z
        height += row[m, P] * p + row[m, P + 1] * q + row[m, P + 2] * r
        p += v1 + w2 * y - w3 * x - row[m, R] + trial[n, 3]
        q += v2 - w1 * y + w3 * z - row[m, R + 1]
        r += v3 + w1 * x - w2 * z - row[m, R + 2]
        p, q, r, status[m], nn, nt, ns, tt, ts, ss = projected(
            row[m, P] - rho * p, row[m, P + 1] - rho * q, row[m, P + 2] - rho * r, gamma
        )
        trial[n, 0], trial[n, 1], trial[n, 2] = p, q, r
        height += 0.5 * (p * p + q * q + r * r) / rho
        p, q, r = p - row[m, P], q - row[m, P + 1], r - row[m, P + 2]
        force[0] -= p
        force[1] -= q
        force[2] -= r
        force[3] -= x * r - y * q
        force[4] -= y * p - z * r
        force[5] -= z * q - x * p
        nn, nt, ns, tt, ts, ss = rho * nn, rho * nt, rho * ns, rho * tt, rho * ts, rho * ss
        # G^T D G with the rows n: (1, 0, 0, 0, y, -x), t: (0, 1, 0, -y, 0, z), s: (0, 0, 1, x, -z, 0)
        n4, n5, n6 = x * ns - y * nt, y * nn - z * ns, z * nt - x * nn
        t4, t5, t6 = x * ts - y * tt, y * nt - z * ts, z * tt - x * nt
        s4, s5, s6 = x * ss - y * ts, y * ns - z * ss, z * ts - x * ns
        work[0, 0] += nn
        work[1, 0] += nt
        work[1, 1] += tt
        work[2, 0] += ns
        work[2, 1] += ts
        work[2, 2] += ss
        work[3, 0] += n4
        work[3, 1] += t4
        work[3, 2] += s4
        work[4, 0] += n5
        work[4, 1] += t5
        work[4, 2] += s5
        work[5, 0] += n6
        work[5, 1] += t6
        work[5, 2] += s6
        work[3, 3] += x * s4 - y * t4
        work[4, 3] += y * n4 - z * s4
        work[4, 4] += y * n5 - z * s5
        work[5, 3] += z * t4 - x * n4
        work[5, 4] += z * t5 - x * n5
        work[5, 5] += z * t6 - x * n6
    return height


@kernel
def solve_six(m, x):
    """Solve m x' = x in place by Cholesky's method; ``m`` by its lower half, overwritten. Returns x . x'."""
    before = x[0], x[1], x[2], x[3], x[4], x[5]
    for i in range(6):
        for j in range(i):
            total = m[i, j]
            for n in range(j):
                total -= m[i, n] * m[j, n]
            m[i, j] = total * m[j, j]
        total = m[i, i]
        for n in range(i):
            total -= m[i, n] * m[i, n]
        m[i, i] = 1.0 / np.sqrt(total)
        for n in range(i):
            x[i] -= m[i, n] * x[n]
        x[i] *= m[i, i]
    for i in range(5, -1, -1):
        for n in range(i + 1, 6):
            x[i] -= m[n, i] * x[n]
        x[i] *= m[i, i]
    return (
        before[0] * x[0] + before[1] * x[1] + before[2] * x[2] + before[3] * x[3] + before[4] * x[4] + before[5] * x[5]
    )


@kernel(inline=True)
def fill_matrix(row, k, w):
    """The block of W of a contact as a matrix (3, 3)."""
    w[0, 0], w[1, 1], w[2, 2] = row[k, WNN], row[k, WTT], row[k, WSS]
    w[0, 1] = w[1, 0] = row[k, WNT]
    w[0, 2] = w[2, 0] = row[k, WNS]
    w[1, 2] = w[2, 1] = row[k, WTS]


@kernel(contract=True)
def point_step(rows, inverse, a, b, row, k, w, free):
    """Solve one contact with the others held; returns W |dP|^2 and the status. ``w`` (3, 3), ``free`` (3,) scratch."""
    u, v, s = velocity(rows, a, b, row, k)
    u, v, s = u - row[k, R], v - row[k, R + 1], s - row[k, R + 2]
    p, q, r = row[k, P], row[k, P + 1], row[k, P + 2]
    x = p - (row[k, INN] * u + row[k, INT] * v + row[k, INS] * s)
    y = q - (row[k, INT] * u + row[k, ITT] * v + row[k, ITS] * s)
    z = r - (row[k, INS] * u + row[k, ITS] * v + row[k, ISS] * s)
    c1, c2, status = row[k, C1], row[k, C2], STICKING
    # |(y / c1, z / c2)| <= x, without the division; a flat cone is solved below
    if not (x > 0.0 and (c2 * y) ** 2 + (c1 * z) ** 2 <= (c1 * c2 * x) ** 2 and c1 * c2 > 0.0):
        free[0] = u - row[k, WNN] * p - row[k, WNT] * q - row[k, WNS] * r
        if free[0] >= 0.0:
            x, y, z, status = 0.0, 0.0, 0.0, SEPARATING
            if p == 0.0 and q == 0.0 and r == 0.0:
                return 0.0, status
        else:
            free[1] = v - row[k, WNT] * p - row[k, WTT] * q - row[k, WTS] * r
            free[2] = s - row[k, WNS] * p - row[k, WTS] * q - row[k, WSS] * r
            fill_matrix(row, k, w)
            x, y, z, status = solve_three(w, free, c1, c2)
    row[k, P], row[k, P + 1], row[k, P + 2] = x, y, z
    x, y, z = x - p, y - q, z - r
    push(rows, inverse, a, b, row, k, x, y, z)
    return row[k, WNN] * x * x + row[k, WTT] * y * y + row[k, WSS] * z * z, status


@kernel
def sweep_coulomb(rows, inverse, contacts, some):
    """One sweep where all laws are Coulomb's; returns the sum of W |dP|^2, the kinetic size of the change.

    The contacts of a joint, which follow each other in ``some``, are solved together.
    """
    change, at, w, free, trial, work = 0.0, 0, np.empty((3, 3)), np.empty(3), np.empty((MOST, 4)), np.empty((8, 6))
    one, two, row, status, joint, wrench = (
        contacts.a, contacts.b, contacts.row, contacts.status, contacts.joint, contacts.wrench
    )  # fmt: skip
    while at < some.size:
        k = int(some[at])
        a, b, count = one[k], two[k], joint[k]
        if count <= 1:
            more, status[k] = point_step(rows, inverse, a, b, row, k, w, free)
            change += more
            at += 1
            continue
        if wrench[k, JM] > 0.0 and stick_step(rows, a, b, row, wrench, k, count, trial):
            for n in range(count):
                status[k + n] = STICKING
        elif not newton_step(rows, a, b, row, wrench, k, count, trial, status, work):
            for n in range(k, k + count):
                more, status[n] = point_step(rows, inverse, a, b, row, n, w, free)
                change += more
            at += count
            continue
        change += apply_joint(rows, inverse, a, b, row, wrench, k, count, trial)
        at += count
    return change


@kernel
def fill_arrays(rows, row, law, k, a, b, frame, arm_a, arm_b, bound):
    """Frame, arms and bounds of a contact as `full` has them."""
    for c in range(3):
        for d in range(3):
            frame[c, d] = row[k, 3 * c + d]
        arm_a[c], arm_b[c] = rows[a, 7] * row[k, A + c], rows[b, 7] * row[k, B + c]
    bound[0], bound[1], bound[2], bound[3] = row[k, C1], row[k, C2], law[k, ROLL], law[k, SPIN]
    bound[4], bound[5] = law[k, GLUE], law[k, PULL]


@kernel
def relative_spin(rows, a, b, row, k, out):
    """Relative spin (3,) of b with respect to a, in the frame of the contact."""
    x = rows[b, 3] / rows[b, 7] - rows[a, 3] / rows[a, 7]
    y = rows[b, 4] / rows[b, 7] - rows[a, 4] / rows[a, 7]
    z = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7]
    for c in range(3):
        out[c] = row[k, 3 * c] * x + row[k, 3 * c + 1] * y + row[k, 3 * c + 2] * z


@kernel
def sweep_special(rows, inverse, contacts, some):
    """One sweep with all laws, by the solution of `full`; returns as `sweep_coulomb`."""
    change, row, law, status = 0.0, contacts.row, contacts.law, contacts.status
    frame, arm_a, arm_b, bound, w = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(6), np.zeros((6, 6))
    free, p, m, dp, dm = np.empty(6), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for at in range(some.size):
        k = int(some[at])
        a, b = contacts.a[k], contacts.b[k]
        fill_arrays(rows, row, law, k, a, b, frame, arm_a, arm_b, bound)
        if bound[2] > 0.0 or bound[3] > 0.0:
            contact_block(rows, inverse, a, b, frame, arm_a, arm_b, w)
        else:
            fill_matrix(row, k, w)
        free[0], free[1], free[2] = velocity(rows, a, b, row, k)
        relative_spin(rows, a, b, row, k, free[3:])
        for c in range(3):
            free[c] -= row[k, R + c]
            p[c] = dp[c] = row[k, P + c]
            m[c] = dm[c] = law[k, MOMENT + c]
        for c in range(6):
            for d in range(3):
                free[c] -= w[c, d] * p[d] + w[c, 3 + d] * m[d]
        status[k] = solve_contact(w, free, bound, p, m)
        for c in range(3):
            dp[c], dm[c] = p[c] - dp[c], m[c] - dm[c]
            row[k, P + c], law[k, MOMENT + c] = p[c], m[c]
            change += w[c, c] * dp[c] ** 2 + w[3 + c, 3 + c] * dm[c] ** 2
        push(rows, inverse, a, b, row, k, dp[0], dp[1], dp[2])
        if dm[0] != 0.0 or dm[1] != 0.0 or dm[2] != 0.0:
            twist(rows, inverse, a, b, row, k, dm[0], dm[1], dm[2])
    return change


@kernel
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it; extrapolated are impulse and moment."""
    if beta >= 0.0:
        row, law = contacts.row, contacts.law
        for at in range(some.size):
            k = some[at]
            for c in range(3):
                x, y = row[k, P + c], law[k, MOMENT + c]
                if beta > 0.0:
                    row[k, P + c] = x + beta * (x - last[k, c])
                    law[k, MOMENT + c] = y + beta * (y - last[k, 3 + c])
                last[k, c], last[k, 3 + c] = x, y
    if contacts.special[0]:
        return sweep_special(rows, mobility.inverse, contacts, some)
    return sweep_coulomb(rows, mobility.inverse, contacts, some)


@kernel
def special_share(rows, inverse, contacts, k, u, v, s):
    """The squared natural map of a contact with all laws, and its |b(U, P)|: see `full.measure_contacts`."""
    row, law, a, b = contacts.row, contacts.law, contacts.a[k], contacts.b[k]
    x, p, out, bound = np.empty(3), np.empty(3), np.zeros(3), np.empty(6)
    frame, arm_a, arm_b = np.empty((3, 3)), np.empty(3), np.empty(3)
    fill_arrays(rows, row, law, k, a, b, frame, arm_a, arm_b, bound)
    x[0], x[1], x[2] = u, v, s
    square, bipotential = 0.0, 0.0
    for c in range(3):
        p[c] = row[k, P + c]
        square += p[c] * p[c]
    open_ = bound[4] > 0.0 and square == 0.0 and u >= 0.0
    if bound[5] > 0.0 and p[0] < 0.0:  # tension: the contact is closed and carries no friction
        out[0], out[1], out[2] = row[k, STEP] * u, p[1], p[2]
    elif not open_:
        p[0] += bound[4]
        natural_map(p, x, bound[:2], row[k, STEP], out)
        slide = np.sqrt((bound[0] * v) ** 2 + (bound[1] * s) ** 2)
        bipotential = abs(p[0] * (abs(u) + slide) + p[1] * v + p[2] * s)
    share = out[0] ** 2 + out[1] ** 2 + out[2] ** 2
    if bound[2] > 0.0 or bound[3] > 0.0:
        w = np.empty((6, 6))
        contact_block(rows, inverse, a, b, frame, arm_a, arm_b, w)
        relative_spin(rows, a, b, row, k, x)
        share += moment_error(w, x, bound, row[k, P], law[k, MOMENT : MOMENT + 3]) / row[k, STEP]
    return share, bipotential


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`."""
    error, size, worst, largest, bipotential, work, lost, sinking = 0.0, 0.0, -1, -1.0, 0.0, 0.0, 0.0, 0
    row, special, one, two, sink = contacts.row, contacts.special[0], contacts.a, contacts.b, contacts.sink
    for at in range(some.size):
        k = int(some[at])
        rho = row[k, STEP]
        u, v, s = velocity(rows, one[k], two[k], row, k)
        u, v, s = u - row[k, R], v - row[k, R + 1], s - row[k, R + 2]
        p, q, r = row[k, P], row[k, P + 1], row[k, P + 2]
        square = p * p + q * q + r * r
        if special or row[k, C1] != row[k, C2]:
            share, part = special_share(rows, mobility.inverse, contacts, k, u, v, s)
        else:
            gamma, slip = row[k, C1], np.sqrt(v * v + s * s)
            y, z = q - rho * v, r - rho * s
            length = np.sqrt(y * y + z * z)
            x, flat = _project_wedge(p - rho * (u + gamma * slip), length, gamma, 0.0)
            shrink = flat / length if length > 0.0 else 0.0
            share = (p - x) ** 2 + (q - shrink * y) ** 2 + (r - shrink * z) ** 2
            part = abs(p * (abs(u) + gamma * slip) + q * v + r * s)
        bipotential += part
        error += share
        share = part + share / rho
        lost += share
        sinks = u < -sink[k]
        sinking += sinks
        shares[k] = np.inf if sinks else share
        size += square
        work += square / rho
        if share > largest:
            worst, largest = k, share
    return error, size, worst, largest, bipotential, work, lost, sinking


@kernel
def store_contacts(rows, contacts, tolerance, touches):
    """Store status, impulse and moment with the touches; returns the largest violation of a cone and sum |P|^2."""
    cone, size = 0.0, 0.0
    one, two, row, law, status = contacts.a, contacts.b, contacts.row, contacts.law, contacts.status
    memory, kept = touches.memory, touches.status
    for k in range(status.size):
        p, q, r, c1, c2 = row[k, P], row[k, P + 1], row[k, P + 2], row[k, C1], row[k, C2]
        if status[k] == SLIDING and p > 0.0:
            _, v, s = velocity(rows, one[k], two[k], row, k)
            v, s = v - row[k, R + 1], s - row[k, R + 2]
            taken = min(c1 * row[k, WTT], c2 * row[k, WSS]) * p
            if taken > 0.0 and v * v + s * s <= (tolerance * taken) ** 2:
                status[k] = STICKING
        kept[k] = status[k]
        size += p * p + q * q + r * r
        if status[k] != SEPARATING:
            cone = max(cone, np.sqrt(q * q + r * r) - max(max(c1, c2) * (p + law[k, GLUE]), 0.0))
        for c in range(3):
            memory[k, c] = row[k, N + c] * p + row[k, T + c] * q + row[k, S + c] * r
            memory[k, 3 + c] = (row[k, N + c] * law[k, MOMENT] + row[k, T + c] * law[k, MOMENT + 1]
                                + row[k, S + c] * law[k, MOMENT + 2])  # fmt: skip
    return cone, size


@kernel
def book_contacts(before, rows, kind, touches, contacts, works):
    """Add the works of the contacts to ``works`` (L, 4): normal, tangential, rolling, drive."""
    one, two, row, law, index, memory = (
        contacts.a, contacts.b, contacts.row, contacts.law, touches.index, touches.memory
    )  # fmt: skip
    x, y = np.empty(3), np.empty(3)
    for k in range(one.size):
        a, b, entry = one[k], two[k], index[k, touch.LAW]
        u, v, s = velocity(before, a, b, row, k)
        f, g, h = velocity(rows, a, b, row, k)
        works[entry, 0] += 0.5 * (u + f) * row[k, P]
        works[entry, 1] += 0.5 * ((v + g) * row[k, P + 1] + (s + h) * row[k, P + 2])
        if law[k, MOMENT] != 0.0 or law[k, MOMENT + 1] != 0.0 or law[k, MOMENT + 2] != 0.0:
            relative_spin(before, a, b, row, k, x)
            relative_spin(rows, a, b, row, k, y)
            for c in range(3):
                works[entry, 2] += 0.5 * (x[c] + y[c]) * law[k, MOMENT + c]
        for side in range(2):
            body, arm, sign = (a, A, 1.0) if side == 0 else (b, B, -1.0)
            if kind[body] != DRIVEN:
                continue
            for c in range(3):
                d, e = (c + 1) % 3, (c + 2) % 3
                speed = rows[body, c] + rows[body, 3 + d] * row[k, arm + e] - rows[body, 3 + e] * row[k, arm + d]
                works[entry, 3] += sign * (speed * memory[k, c] + rows[body, 3 + c] / rows[body, 7] * memory[k, 3 + c])


@kernel
def separations(rows, contacts):
    """U_n (m,) of the contacts."""
    out = np.empty(contacts.a.size)
    for k in range(out.size):
        out[k] = velocity(rows, contacts.a[k], contacts.b[k], contacts.row, k)[0]
    return out


@kernel
def add_powers(free, rows, contacts, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| to ``sums`` (G, 3), those of the moments with them."""
    row, law = contacts.row, contacts.law
    for k in range(contacts.a.size):
        a, b = contacts.a[k], contacts.b[k]
        at = group[a] if rows[a, 6] > 0.0 else group[b]
        u, f = velocity(rows, a, b, row, k), velocity(free, a, b, row, k)
        for c in range(3):
            p, left = row[k, P + c], u[c] - row[k, R + c]
            sums[at, 0] += p * left
            sums[at, 1] += p * (u[c] - f[c])
            sums[at, 2] += abs(p * left)
        if contacts.special[0]:
            for c in range(3):
                m = law[k, MOMENT + c]
                for e in range(3):
                    axis = m * row[k, 3 * c + e]
                    spin = rows[b, 3 + e] / rows[b, 7] - rows[a, 3 + e] / rows[a, 7]
                    before = free[b, 3 + e] / rows[b, 7] - free[a, 3 + e] / rows[a, 7]
                    sums[at, 0] += axis * spin
                    sums[at, 1] += axis * (spin - before)
                    sums[at, 2] += abs(axis * spin)


@kernel
def shrink(rows, contacts, group, factor):
    """Multiply the impulses and moments of each group by its ``factor`` (G,)."""
    for k in range(contacts.a.size):
        a, b = contacts.a[k], contacts.b[k]
        f = factor[group[a] if rows[a, 6] > 0.0 else group[b]]
        for c in range(3):
            contacts.row[k, P + c] *= f
            contacts.law[k, MOMENT + c] *= f


KERNELS[SpatialContacts] = Kernels(sweep_contacts, measure_contacts)


class Spatial(Held):
    """The contacts of polyhedra in a scene: see `Equations`."""

    number = SPATIAL
    arrays, unknowns, more = staticmethod(spatial_contacts), 6, (1.3, 64)

    @property
    def ahead(self) -> bool:
        """Glue and moments are not extrapolated: a bond that overshoots lets go."""
        return not self._contacts.special[0]

    @property
    def plain(self) -> bool:
        """No glue, no moments."""
        return not self._contacts.special[0]

    @property
    def places(self) -> np.ndarray:
        """(count,) their touches: all of them."""
        return np.arange(self.count)

    def fill(self, model, near, touches, step, rows, mobility) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        b = model.bodies
        fill_frames(touches, model.balls.material, model.planes.material, b.orientation, b.position, model.laws,
                    model.law_axes, rows, self.active)  # fmt: skip
        scale = fill_contacts(touches, step, rows, model.laws, mobility, self.active)
        fill_joints(touches, rows, mobility.inverse, step.h, self.active)
        return scale

    def store(self, touches, rows, mobility, tolerance) -> tuple[float, float]:
        """Keep impulse, moment and status with the touches; returns the largest distance to a cone and sum |P|^2."""
        return store_contacts(rows, self.active, tolerance, touches)

    def add_powers(self, step, rows, group, sums) -> None:
        """Add the powers of the contacts to the ``sums`` (G, 3) of their groups."""
        add_powers(step.free, rows, self.active, group, sums)

    def shrink(self, rows, group, factor) -> None:
        """Multiply the impulses of each group by its ``factor`` (G,)."""
        shrink(rows, self.active, group, factor)

    def book(self, touches, step, rows, bodies, works) -> None:
        """Add the works of the contacts, law by law, to ``works`` (L, 4)."""
        book_contacts(step.before, rows, bodies.kind, touches, self.active, works)

    def separations(self, rows) -> np.ndarray:
        """(count,) U_n."""
        return separations(rows, self.active)

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`."""
        return self.active.row[:, R].copy()

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out."""
        c, m = self.active, self.count
        row, law, a, b = c.row, c.law, c.a.astype(np.int64), c.b.astype(np.int64)
        arms = (rows[body, 7:] * row[:, at : at + 3] for body, at in ((a, A), (b, B)))
        return Explicit(
            np.arange(m), a, b, row[:, N:A].reshape(m, 3, 3).copy(), *arms, row[:, R:C1].copy(),
            row[:, C1 : C2 + 1].copy(), (law[:, :MOMENT] == 0).all(axis=1), row[:, P:R].copy(),
            law[:, MOMENT:].copy(), c.status,
        )  # fmt: skip

    def accept(self, written, impulse) -> None:
        """Take over impulses (count, 3) in the frames."""
        self.active.row[:, P:R], self.active.status[:] = impulse, status_of(impulse, written.friction)
