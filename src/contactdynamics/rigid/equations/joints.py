"""The contacts of two faces, solved together.

The contacts of two faces share their normal and act between the same two bodies. Where all of them stick, the
impulse on the joint is the wrench that takes away the relative twist of the bodies, by a system of six equations. It is
added to the present impulses by the smallest change that has this wrench: with (x, y) the place of a contact in the
joint, from its middle, P_n changes by a + b y - c x and P_t by (d - e y, f + e x). Three equations for the four corners
of a joint: how they share the load is not determined, and follows from how they came together. Where a contact would
leave its cone, the problem of the joint is solved for its twist V by Newton's method:
C^-1 (V - V_0) = sum G_k^T (P_k - P_k0) with P_k = proj_K(P_k0 - rho_k U_k), U_k = G_k V and U_n + gamma |U_t| in the
place of U_n (de Saxce), which is one step of the method of multipliers. The projections on the cones are piecewise
smooth, their derivatives symmetric: six equations with a positive matrix, however many contacts there are.
"""

import numpy as np

from ..._jit import kernel
from ...state import SEPARATING, SLIDING, STICKING
from ..search import touches as touch
from .spatial_rows import C1, C2, JX, JY, JZ, STEP, WNN, WSS, WTT, A, B, N, P, R, S, T, kick, turned

# Columns of a joint: arms of its middle, target of the twist (v_n, w_t, w_s), shares of the contacts (1 / m, inverse of
# sum (y y, -x y, x x), 1 / sum (x x + y y)), the factor of Cholesky of its compliance, row after row.
JA, JB, JR, JM, JF = 0, 3, 6, 9, 14
MOST = 32  # contacts of a joint that are solved together
STIFF, ROUNDS = 100.0, 20  # rho over that of the residual; rounds of Newton at most
LEVEL = 1e-14  # of the size: targets that no motion of the bodies has, times h, beyond which they cannot all stick


@kernel
def fill_joints(touches, rows, inverse, h, out, begin, end):
    """Find the joints from contact ``begin`` on, before ``end``, and what their contacts have in common."""
    index, planes, joint, row, size = touches.index, touches.planes, out.joint, out.row, end
    work, k = np.empty((6, 6)), begin
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
