"""Contacts in the plane with lever arms: their rows, Gauss-Seidel on them, residual, memory and works.

A flat contact has two components (n, t), t = z x n. With the arms from the centres of the bodies to the contact point,
U = (n, t) . (v_b - v_a) + lever_b s_b - lever_a s_a, where s = c w is the scaled spin of a body's row (see `contacts`)
and lever = (arm x n, arm x t) / c. The impulse changes s by c^2 / I lever . P. The local problem is solved exactly by
`laws.solve_two`; rolling resistance, cohesion and tension as in `gauss_seidel`, where the laws are explained.

`settle` sweeps over the simple and flat contacts of a scene, `settle_general` over all classes.
"""

from typing import NamedTuple

import numpy as np

from . import narrow
from ._jit import kernel
from .contacts import PX, target_velocity
from .gauss_seidel import measure_general, measure_simple, sweep_general, sweep_simple
from .laws import _project_wedge, solve_two
from .materials import COHESION, FRICTION_1, RHO, ROLLING, STATIC, TAU, TENSION
from .state import DRIVEN, SEPARATING, SLIDING, STICKING

# Columns of a flat contact's row: two lines of cache, and what only some laws need.
NX, NY, AN, AT, BN, BT, KA, KB, PN, PT, RN, RT, GAMMA, WNN, WNT, WTT = range(16)
GLUE, PULL, ROLL, MOMENT = range(4)
# Columns of what two contacts on one edge have in common: mean levers, W with the common slip, inverses.
EA, EB, W12, W1T, W2T, WT, IT, I11, I12, I22 = range(10)

POLISH = 10  # sweeps at most for the sake of rest
REST = 1e-5  # of the tolerance: a residual that needs no improvement
FIRST = 1e-3  # of the tolerance: the goal of a step without memory, whose error would stay as a displacement
PATIENCE = 300  # sweeps in which the extrapolation must halve the residual


class Flat(NamedTuple):
    """Flat contacts; arrays with room for more than the active ones."""

    a: np.ndarray  # (f,) rows of the bodies
    b: np.ndarray  # (f,)
    row: np.ndarray  # (f, 16) n, levers of a and b, c^2/I of a and b, P, target, gamma, W
    law: np.ndarray  # (f, 4) cohesion h, tension h, rolling length, moment
    status: np.ndarray  # (f,)
    joint: np.ndarray  # (f,) this contact and the next one are the two ends of one overlap, at the same height
    edge: np.ndarray  # (f, 10) for them: mean levers, W with the common slip, the inverse of W where both stick
    last: np.ndarray  # (f, 3) P and moment of the last iterate


def flat_contacts(room: int) -> Flat:
    """Empty arrays for ``room`` flat contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(2)]
    return Flat(
        *rows, np.empty((room, 16)), np.empty((room, 4)), np.zeros(room, dtype=np.int8), np.zeros(room, dtype=bool),
        np.empty((room, 10)), np.empty((room, 3)),
    )  # fmt: skip


@kernel
def activate(touches, ball_body, plane_body, position, before, free, rows, inverse, laws, h, anticipate, repair, out):
    """Fill ``out`` from the active ``touches`` and add their first guess to ``rows``, which start as ``free``.

    Returns the sum of (rho b)^2 over the contacts, and whether some law needs more than Coulomb's.
    """
    scale, special = 0.0, False
    index, place, memory, status, planes = touches
    one, two, row, law, _, joint, edge, _ = out
    for k in range(status.size):
        first, second = index[k, narrow.FIRST], index[k, narrow.SECOND]
        a, b = ball_body[first] if k < planes else plane_body[first], ball_body[second]
        rule = index[k, narrow.LAW]
        nx, ny, gap = place[k, narrow.NX], place[k, narrow.NY], place[k, narrow.GAP]
        ax, ay = place[k, narrow.X] - position[a, 0], place[k, narrow.Y] - position[a, 1]
        bx, by = place[k, narrow.X] - position[b, 0], place[k, narrow.Y] - position[b, 1]
        ca, cb = rows[a, 7], rows[b, 7]
        row[k, NX], row[k, NY] = nx, ny
        # arm x n and arm x t = arm . n
        row[k, AN], row[k, AT] = (ax * ny - ay * nx) / ca, (ax * nx + ay * ny) / ca
        row[k, BN], row[k, BT] = (bx * ny - by * nx) / cb, (bx * nx + by * ny) / cb
        row[k, KA], row[k, KB] = ca * ca * inverse[a, 2, 2], cb * cb * inverse[b, 2, 2]
        mass = rows[a, 6] + rows[b, 6]
        row[k, WNN] = mass + row[k, KA] * row[k, AN] ** 2 + row[k, KB] * row[k, BN] ** 2
        row[k, WNT] = row[k, KA] * row[k, AN] * row[k, AT] + row[k, KB] * row[k, BN] * row[k, BT]
        row[k, WTT] = mass + row[k, KA] * row[k, AT] ** 2 + row[k, KB] * row[k, BT] ** 2
        u_n, u_t = velocity(before, a, b, row, k)
        row[k, RN] = target_velocity(gap, u_n, laws[rule, RHO], h, anticipate, repair)
        row[k, RT] = -laws[rule, TAU] * u_t
        row[k, GAMMA] = laws[rule, FRICTION_1]
        if laws[rule, STATIC] > laws[rule, FRICTION_1]:
            resting = u_t * u_t <= 1e-24 * (u_n * u_n + (gap / h) ** 2)
            if status[k] == STICKING or (status[k] <= SEPARATING and resting):
                row[k, GAMMA] = laws[rule, STATIC]
        px, py = memory[k, 0], memory[k, 1]
        glue = h * laws[rule, COHESION]
        row[k, PN] = max(-max(glue, h * laws[rule, TENSION]), px * nx + py * ny)
        row[k, PT] = py * nx - px * ny
        law[k, GLUE], law[k, PULL], law[k, ROLL], law[k, MOMENT] = (
            glue,
            h * laws[rule, TENSION],
            laws[rule, ROLLING],
            memory[k, 2],
        )
        special = special or glue > 0.0 or laws[rule, TENSION] > 0.0 or laws[rule, ROLLING] > 0.0
        one[k], two[k], joint[k] = a, b, False
        if k > 0 and k != planes and first == index[k - 1, narrow.FIRST] and second == index[k - 1, narrow.SECOND]:
            level = abs(gap - place[k - 1, narrow.GAP]) <= narrow.NEAR * place[k, narrow.SIZE]
            joint[k - 1] = level and not (k > 1 and joint[k - 2])
            if joint[k - 1]:
                couple(row, edge, k - 1, mass)
        f_n, f_t = velocity(free, a, b, row, k)
        rho = 2.0 / (row[k, WNN] + row[k, WTT])
        scale += rho * rho * ((f_n - row[k, RN]) ** 2 + (f_t - row[k, RT]) ** 2)
        push(rows, a, b, row, k, row[k, PN], row[k, PT])
        if law[k, MOMENT] != 0.0:
            twist(rows, a, b, row, k, law[k, MOMENT])
    return scale, special


@kernel(inline=True)
def velocity(rows, a, b, row, k):
    """U (n, t) of a flat contact."""
    x, y = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1]
    s, t = rows[a, 5], rows[b, 5]
    return (
        row[k, NX] * x + row[k, NY] * y + row[k, BN] * t - row[k, AN] * s,
        row[k, NX] * y - row[k, NY] * x + row[k, BT] * t - row[k, AT] * s,
    )


@kernel(inline=True)
def push(rows, a, b, row, k, p_n, p_t):
    """Apply an impulse (n, t) to the two bodies."""
    x, y = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
    ma, mb = rows[a, 6], rows[b, 6]
    rows[a, 0] -= ma * x
    rows[a, 1] -= ma * y
    rows[a, 5] -= row[k, KA] * (row[k, AN] * p_n + row[k, AT] * p_t)
    rows[b, 0] += mb * x
    rows[b, 1] += mb * y
    rows[b, 5] += row[k, KB] * (row[k, BN] * p_n + row[k, BT] * p_t)


@kernel
def twist(rows, a, b, row, k, m):
    """Apply a moment about z to the two bodies."""
    rows[a, 5] -= row[k, KA] / rows[a, 7] * m
    rows[b, 5] += row[k, KB] / rows[b, 7] * m


@kernel(inline=True)
def point_step(rows, one, two, row, status, k):
    """Solve one contact with the others held; returns W |dP|^2."""
    a, b = one[k], two[k]
    u_n, u_t = velocity(rows, a, b, row, k)
    p_n, p_t = row[k, PN], row[k, PT]
    b_n = u_n - row[k, RN] - row[k, WNN] * p_n - row[k, WNT] * p_t
    b_t = u_t - row[k, RT] - row[k, WNT] * p_n - row[k, WTT] * p_t
    q_n, q_t, status[k] = solve_two(row[k, WNN], row[k, WNT], row[k, WTT], b_n, b_t, row[k, GAMMA], row[k, GAMMA])
    row[k, PN], row[k, PT] = q_n, q_t
    q_n, q_t = q_n - p_n, q_t - p_t
    push(rows, a, b, row, k, q_n, q_t)
    return row[k, WNN] * q_n * q_n + row[k, WTT] * q_t * q_t


@kernel
def couple(row, edge, k, mass):
    """Fill in what the contacts k and k + 1 of one edge have in common.

    Where they are so near to each other that W is all but singular, its inverse is nan, and no solution will be found
    for both together.
    """
    ka, kb = row[k, KA], row[k, KB]
    at, bt = 0.5 * (row[k, AT] + row[k + 1, AT]), 0.5 * (row[k, BT] + row[k + 1, BT])
    wtt = mass + ka * at * at + kb * bt * bt
    w12 = mass + ka * row[k, AN] * row[k + 1, AN] + kb * row[k, BN] * row[k + 1, BN]
    w1t, w2t = ka * row[k, AN] * at + kb * row[k, BN] * bt, ka * row[k + 1, AN] * at + kb * row[k + 1, BN] * bt
    # eliminate the slip where both stick: two equations are left
    c11, c12, c22 = row[k, WNN] - w1t * w1t / wtt, w12 - w1t * w2t / wtt, row[k + 1, WNN] - w2t * w2t / wtt
    det = c11 * c22 - c12 * c12
    if not det > 1e-10 * row[k, WNN] * row[k + 1, WNN]:
        det = np.nan
    edge[k, EA], edge[k, EB], edge[k, W12], edge[k, W1T], edge[k, W2T], edge[k, WT] = at, bt, w12, w1t, w2t, wtt
    edge[k, IT], edge[k, I11], edge[k, I12], edge[k, I22] = 1.0 / wtt, c22 / det, -c12 / det, c11 / det


@kernel(inline=True)
def solve_edge(u1, u2, ut, p1, p2, pt, g1, g2, w11, w22, w12, w1t, w2t, wtt, it, i11, i12, i22):
    """Impulses of the two ends of one overlap: normal, normal, sum of the tangential ones, sum of the bounds, status.

    The ends share the normal, and their sliding velocities but for w times the difference of their gaps: the unknowns
    are the two normal impulses and the sum T of the tangential ones. ``u`` are the velocities above their targets,
    ``p`` the present impulses. SEPARATING where neither sticking nor sliding of both ends is the solution.
    """
    d1, d2 = u1 - w1t * ut * it, u2 - w2t * ut * it
    n1, n2 = p1 - (i11 * d1 + i12 * d2), p2 - (i12 * d1 + i22 * d2)
    tangent = pt - (ut + w1t * (n1 - p1) + w2t * (n2 - p2)) * it
    bound, found = g1 * n1 + g2 * n2, STICKING
    if n1 >= 0.0 and n2 >= 0.0 and abs(tangent) > bound:
        # both slide against the bound they broke; from the velocities without these impulses
        b1, b2 = u1 - w11 * p1 - w12 * p2 - w1t * pt, u2 - w12 * p1 - w22 * p2 - w2t * pt
        f1, f2 = (g1, g2) if tangent > 0.0 else (-g1, -g2)
        c11, c12, c21, c22 = w11 + f1 * w1t, w12 + f2 * w1t, w12 + f1 * w2t, w22 + f2 * w2t
        det = c11 * c22 - c12 * c21
        n1, n2 = (c12 * b2 - c22 * b1) / det, (c21 * b1 - c11 * b2) / det
        tangent, bound = f1 * n1 + f2 * n2, g1 * n1 + g2 * n2
        slip = ut + w1t * (n1 - p1) + w2t * (n2 - p2) + wtt * (tangent - pt)
        found = SLIDING if det > 0.0 and slip * tangent <= 0.0 else SEPARATING
    return n1, n2, tangent, bound, found if n1 >= 0.0 and n2 >= 0.0 else SEPARATING


@kernel(contract=True)
def sweep_coulomb(rows, contacts, count, plain):
    """One sweep where all laws are Coulomb's; returns the sum of W |dP|^2, the kinetic size of the change.

    The two ends of an overlap are solved together, unless ``plain``; each takes its part of the tangential impulse by
    its bound. Where one of them opens, they are solved in turn.
    """
    change, k = 0.0, 0
    one, two, row, _, status, joint, edge, _ = contacts
    while k < count:
        if not joint[k] or plain:
            change += point_step(rows, one, two, row, status, k)
            k += 1
            continue
        a, b, nx, ny = one[k], two[k], row[k, NX], row[k, NY]
        x, y, s, t = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[a, 5], rows[b, 5]
        p1, p2, g1, g2 = row[k, PN], row[k + 1, PN], row[k, GAMMA], row[k + 1, GAMMA]
        closing, slip, wtt = nx * x + ny * y, nx * y - ny * x, edge[k, WT]
        n1, n2, tangent, bound, found = solve_edge(
            closing + row[k, BN] * t - row[k, AN] * s - row[k, RN],
            closing + row[k + 1, BN] * t - row[k + 1, AN] * s - row[k + 1, RN],
            slip + edge[k, EB] * t - edge[k, EA] * s - 0.5 * (row[k, RT] + row[k + 1, RT]),
            p1, p2, row[k, PT] + row[k + 1, PT], g1, g2, row[k, WNN], row[k + 1, WNN], edge[k, W12], edge[k, W1T],
            edge[k, W2T], wtt, edge[k, IT], edge[k, I11], edge[k, I12], edge[k, I22],
        )  # fmt: skip
        if found == SEPARATING:
            for n in range(4):
                change += point_step(rows, one, two, row, status, k + n % 2)
            k += 2
            continue
        share = tangent / bound if bound > 0.0 else 0.0
        t1, t2 = share * g1 * n1, share * g2 * n2
        d1, d2, e1, e2 = n1 - p1, n2 - p2, t1 - row[k, PT], t2 - row[k + 1, PT]
        row[k, PN], row[k, PT], row[k + 1, PN], row[k + 1, PT] = n1, t1, n2, t2
        status[k], status[k + 1] = found, found
        x, y = nx * (d1 + d2) - ny * (e1 + e2), ny * (d1 + d2) + nx * (e1 + e2)
        ma, mb = rows[a, 6], rows[b, 6]
        rows[a, 0] -= ma * x
        rows[a, 1] -= ma * y
        rows[a, 5] -= row[k, KA] * (row[k, AN] * d1 + row[k + 1, AN] * d2 + row[k, AT] * e1 + row[k + 1, AT] * e2)
        rows[b, 0] += mb * x
        rows[b, 1] += mb * y
        rows[b, 5] += row[k, KB] * (row[k, BN] * d1 + row[k + 1, BN] * d2 + row[k, BT] * e1 + row[k + 1, BT] * e2)
        change += row[k, WNN] * d1 * d1 + row[k + 1, WNN] * d2 * d2 + wtt * (e1 * e1 + e2 * e2)
        k += 2
    return change


@kernel
def glued_law(row, law, k, b_n, b_t):
    """Impulse and status where cohesion or tension holds: see `gauss_seidel.impulse_law`."""
    glue, gamma = law[k, GLUE], row[k, GAMMA]
    if glue > 0.0:
        p_n, p_t, status = solve_two(
            row[k, WNN], row[k, WNT], row[k, WTT], b_n - row[k, WNN] * glue, b_t - row[k, WNT] * glue, gamma, gamma
        )
        if status == SEPARATING:
            return 0.0, 0.0, status
        return p_n - glue, p_t, status
    p_n, p_t, status = solve_two(row[k, WNN], row[k, WNT], row[k, WTT], b_n, b_t, gamma, gamma)
    if status == SEPARATING and law[k, PULL] > 0.0 and b_n <= row[k, WNN] * law[k, PULL]:
        return -b_n / row[k, WNN], 0.0, SLIDING
    return p_n, p_t, status


@kernel
def sweep_special(rows, contacts, count):
    """One sweep with all laws: the impulse, then the moment of rolling resistance; returns as `sweep_coulomb`."""
    change = 0.0
    one, two, row, law, status, _, _, _ = contacts
    for k in range(count):
        a, b = one[k], two[k]
        turn = row[k, KA] / rows[a, 7] ** 2 + row[k, KB] / rows[b, 7] ** 2
        for _ in range(50 if law[k, ROLL] > 0.0 else 1):
            u_n, u_t = velocity(rows, a, b, row, k)
            p_n, p_t = row[k, PN], row[k, PT]
            b_n = u_n - row[k, RN] - row[k, WNN] * p_n - row[k, WNT] * p_t
            b_t = u_t - row[k, RT] - row[k, WNT] * p_n - row[k, WTT] * p_t
            q_n, q_t, status[k] = glued_law(row, law, k, b_n, b_t)
            row[k, PN], row[k, PT] = q_n, q_t
            push(rows, a, b, row, k, q_n - p_n, q_t - p_t)
            change += row[k, WNN] * (q_n - p_n) ** 2 + row[k, WTT] * (q_t - p_t) ** 2
            if law[k, ROLL] == 0.0:
                break
            limit, m = law[k, ROLL] * max(q_n, 0.0), law[k, MOMENT]
            spin = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7]
            law[k, MOMENT] = min(limit, max(-limit, m - spin / turn))
            twist(rows, a, b, row, k, law[k, MOMENT] - m)
            change += turn * (law[k, MOMENT] - m) ** 2
            if max(abs(q_n - p_n), abs(q_t - p_t)) <= 1e-13 * (abs(q_n) + abs(q_t)):
                break
    return change


@kernel
def measure_flat(rows, contacts, count):
    """|natural map|^2, |P|^2, worst contact and its share, |b(U, P)|, P.P / rho, summed over the flat contacts."""
    error, size, worst, largest, bipotential, work = 0.0, 0.0, -1, -1.0, 0.0, 0.0
    one, two, row, law, _, _, _, _ = contacts
    for k in range(count):
        a, b = one[k], two[k]
        rho = 2.0 / (row[k, WNN] + row[k, WTT])
        u_n, u_t = velocity(rows, a, b, row, k)
        u_n, u_t, p_n, p_t, gamma = u_n - row[k, RN], u_t - row[k, RT], row[k, PN], row[k, PT], row[k, GAMMA]
        square = p_n * p_n + p_t * p_t
        share = 0.0
        if law[k, PULL] > 0.0 and p_n < 0.0:  # tension: closed, without friction
            share = (rho * u_n) ** 2 + p_t * p_t
        elif not (law[k, GLUE] > 0.0 and square == 0.0 and u_n >= 0.0):
            p_n += law[k, GLUE]
            x_n, x_t = _project_wedge(p_n - rho * (u_n + gamma * abs(u_t)), p_t - rho * u_t, gamma, gamma)
            share = (p_n - x_n) ** 2 + (p_t - x_t) ** 2
            bipotential += abs(p_n * (abs(u_n) + gamma * abs(u_t)) + p_t * u_t)
        if law[k, ROLL] > 0.0:
            turn = row[k, KA] / rows[a, 7] ** 2 + row[k, KB] / rows[b, 7] ** 2
            spin, limit = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7], law[k, ROLL] * max(row[k, PN], 0.0)
            m = law[k, MOMENT]
            share += turn * (m - min(limit, max(-limit, m - spin / turn))) ** 2 / rho
        error += share
        size += square
        work += square / rho
        if share > largest:
            worst, largest = k, share
    return error, size, worst, largest, bipotential, work


@kernel(inline=True)
def combine(one, at, two, shift):
    """Sums of two classes of contacts, and the number before the worst one of their own."""
    total = one[0] + two[0], one[1] + two[1], one[2], one[3], one[4] + two[4], one[5] + two[5]
    if two[3] > one[3]:
        total, at = (total[0], total[1], two[2], two[3], total[4], total[5]), shift
    return total, at


@kernel(inline=True)
def relative(sums, at, scale_free):
    """Residual, worst contact and bipotential from the sums over all contacts."""
    error, size, worst, _, bipotential, work = sums
    scale = max(size, scale_free)
    if scale == 0.0:
        return 0.0, at + worst, 0.0
    return np.sqrt(error / scale), at + worst, bipotential / work if work > 0.0 else 0.0


@kernel
def measure_all(rows, simple, m, flat, f, kappa, dimension, scale_free, shares):
    """Residual, worst contact (flat ones are numbered after the simple ones) and bipotential."""
    sums, at = measure_flat(rows, flat, f), m
    if m > 0:
        sums, at = combine(sums, at, measure_simple(rows, simple, 0, m, kappa, dimension, shares), 0)
    return relative(sums, at, scale_free)


@kernel
def extrapolate(rows, simple, m, flat, f, work, beta):
    """y = x + beta (x - x_old) on impulses and velocities together, x_old = x; they stay consistent (2004, eq. 36)."""
    row, law, last = flat.row, flat.law, flat.last
    for k in range(f):
        x, y, z = row[k, PN], row[k, PT], law[k, MOMENT]
        row[k, PN], row[k, PT], law[k, MOMENT] = (
            x + beta * (x - last[k, 0]),
            y + beta * (y - last[k, 1]),
            z + beta * (z - last[k, 2]),
        )
        last[k, 0], last[k, 1], last[k, 2] = x, y, z
    for k in range(m):
        c, old = simple.row[k], work.impulse[k]
        for i in range(3):
            x = c[PX + i]
            c[PX + i] = x + beta * (x - old[i])
            old[i] = x
    old = work.rows
    for k in range(rows.shape[0]):
        for i in (0, 1, 5):  # what moves in the plane
            x = rows[k, i]
            rows[k, i] = x + beta * (x - old[k, i])
            old[k, i] = x


@kernel
def keep_iterate(rows, simple, m, flat, f, work):
    """Remember the present impulses and velocities as the last iterate."""
    for k in range(f):
        flat.last[k, 0], flat.last[k, 1], flat.last[k, 2] = flat.row[k, PN], flat.row[k, PT], flat.law[k, MOMENT]
    for k in range(m):
        for i in range(3):
            work.impulse[k, i] = simple.row[k, PX + i]
    old = work.rows
    for k in range(rows.shape[0]):
        for i in (0, 1, 5):
            old[k, i] = rows[k, i]


@kernel
def settle(
    rows, simple, m, flat, f, special, kappa, dimension, scale_free, tolerance, max_iterations, work, hint, plain,
):  # fmt: skip
    """Gauss-Seidel over the simple and the flat contacts, with Nesterov's extrapolation unless ``plain``.

    The extrapolation restarts when the change made by a sweep grows; where `PATIENCE` sweeps have not halved the
    residual, the sweeps go on without it, contact by contact. A step that begins within the tolerance is improved all
    the same, to a tenth of its first residual where a few sweeps do it: a structure at rest then comes to rest
    entirely, in some steps, and does not creep. Returns sweeps, residual, worst contact, bipotential.
    """
    residual, worst, bipotential = 0.0, -1, 0.0
    done, since, count, best, t, last = 0, 0, 1, np.inf, 1.0, np.inf
    order = work.order[:m]
    if not plain:
        keep_iterate(rows, simple, m, flat, f, work)
    goal, single = tolerance, plain
    while done < max_iterations:
        count = min(count, max_iterations - done)
        for _ in range(count):
            if not plain:
                new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
                extrapolate(rows, simple, m, flat, f, work, (t - 1.0) / new)
                t = new
            change = sweep_simple(rows, simple, order, kappa) if m > 0 else 0.0
            change += sweep_special(rows, flat, f) if special else sweep_coulomb(rows, flat, f, single)
            if change > last:
                t = 1.0
            last = change
        done += count
        before = residual
        residual, worst, bipotential = measure_all(rows, simple, m, flat, f, kappa, dimension, scale_free, work.shares)
        if done == 1 and residual <= tolerance:
            goal = max(0.1 * residual, REST * tolerance)
        if residual <= goal or (residual <= tolerance and done >= POLISH):
            break
        if done == 1:
            count = min(max(2, int(0.7 * hint) - 1), 40) if residual > tolerance else 2
        else:  # as many more as the decay since the last look asks for, within reason
            pace = np.log(before / residual) / count if before > residual else 0.0
            need = np.log(residual / goal) / pace if pace > 0.0 else done
            count = int(max(2.0, min(0.8 * need, 0.5 * done, 64.0)))
        if residual < 0.5 * best:
            best, since = residual, done
        elif done - since >= PATIENCE:
            plain, single = True, True
    return done, residual, worst, bipotential


@kernel
def settle_general(
    rows, inverse, simple, m, general, g, flat, f, special, kappa, dimension, scale_free, tolerance, max_iterations,
    work,
):  # fmt: skip
    """Plain Gauss-Seidel where there are general contacts too; returns as `settle`."""
    residual, worst, bipotential, next_check = 0.0, -1, 0.0, 1
    order = work.order[:m]
    for iteration in range(1, max_iterations + 1):
        sweep_simple(rows, simple, order, kappa)
        sweep_general(rows, inverse, general, g)
        if special:
            sweep_special(rows, flat, f)
        else:
            sweep_coulomb(rows, flat, f, False)
        if iteration < next_check and iteration < max_iterations:
            continue
        next_check = iteration + max(1, iteration // 5)
        one, two = measure_flat(rows, flat, f), measure_simple(rows, simple, 0, m, kappa, dimension, work.shares)
        three = measure_general(rows, general, g, dimension)
        both, first = combine(one, m + g, two, 0)
        total, at = combine(both, first, three, m)
        residual, worst, bipotential = relative(total, at, scale_free)
        if residual <= tolerance:
            return iteration, residual, worst, bipotential
    return max_iterations, residual, worst, bipotential


@kernel
def store(rows, contacts, count, tolerance, touches):
    """Store status, impulse and moment with the touches; returns the largest violation of a cone and sum |P|^2."""
    cone, size = 0.0, 0.0
    one, two, row, law, status, _, _, _ = contacts
    memory, kept = touches.memory, touches.status
    for k in range(count):
        p_n, p_t = row[k, PN], row[k, PT]
        if status[k] == SLIDING and p_n > 0.0:
            _, u_t = velocity(rows, one[k], two[k], row, k)
            taken = row[k, GAMMA] * row[k, WTT] * p_n
            if taken > 0.0 and abs(u_t - row[k, RT]) <= tolerance * taken:
                status[k] = STICKING
        kept[k] = status[k]
        size += p_n * p_n + p_t * p_t
        if status[k] != SEPARATING:
            cone = max(cone, abs(p_t) - max(row[k, GAMMA] * (p_n + law[k, GLUE]), 0.0))
        memory[k, 0], memory[k, 1] = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
        memory[k, 2] = law[k, MOMENT]
    return cone, size


@kernel
def book(before, rows, kind, touches, contacts, count, works):
    """Add the works of the flat contacts to ``works`` (L, 4): normal, tangential, rolling, drive."""
    one, two, row, law, _, _, _, _ = contacts
    index = touches.index
    for k in range(count):
        a, b, m = one[k], two[k], law[k, MOMENT]
        u_n, u_t = velocity(before, a, b, row, k)
        v_n, v_t = velocity(rows, a, b, row, k)
        p_n, p_t = row[k, PN], row[k, PT]
        entry = index[k, narrow.LAW]
        works[entry, 0] += 0.5 * (u_n + v_n) * p_n
        works[entry, 1] += 0.5 * (u_t + v_t) * p_t
        if m != 0.0:
            spin = (before[b, 5] + rows[b, 5]) / rows[b, 7] - (before[a, 5] + rows[a, 5]) / rows[a, 7]
            works[entry, 2] += 0.5 * spin * m
        x, y = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
        if kind[a] == DRIVEN:
            turn = row[k, AN] * p_n + row[k, AT] * p_t + m / rows[a, 7]
            works[entry, 3] += rows[a, 0] * x + rows[a, 1] * y + rows[a, 5] * turn
        if kind[b] == DRIVEN:
            turn = row[k, BN] * p_n + row[k, BT] * p_t + m / rows[b, 7]
            works[entry, 3] -= rows[b, 0] * x + rows[b, 1] * y + rows[b, 5] * turn


@kernel
def overlaps(rows, contacts, count, touches, h, depth):
    """Overlap (count,) of each contact at the end of the step over the size of the smaller body; returns the largest.

    The gap at the end is that at the midpoint plus h U_n / 2.
    """
    worst = 0.0
    for k in range(count):
        u_n, _ = velocity(rows, contacts.a[k], contacts.b[k], contacts.row, k)
        depth[k] = -(touches.place[k, narrow.GAP] + 0.5 * h * u_n) / touches.place[k, narrow.SIZE]
        worst = max(worst, depth[k])
    return worst


@kernel
def recover(position, orientation, rows, contacts, count, touches, depth, keep, most, gravity, mass):
    """Move and turn bodies apart until no contact overlaps by more than ``keep``, each corner by ``most`` at most.

    Gauss-Seidel on displacements, without friction, in the metric of masses; velocities stay as they are. Returns the
    work done against gravity.
    """
    shift = np.zeros((rows.shape[0], 3))
    for _ in range(100):
        moved = 0.0
        for k in range(count):
            a, b, row = contacts.a[k], contacts.b[k], contacts.row
            opened = row[k, NX] * (shift[b, 0] - shift[a, 0]) + row[k, NY] * (shift[b, 1] - shift[a, 1])
            opened += row[k, BN] * shift[b, 2] - row[k, AN] * shift[a, 2]
            wanted = (depth[k] - keep) * touches.place[k, narrow.SIZE] - opened
            if wanted > 0.0:
                moved = max(moved, wanted / touches.place[k, narrow.SIZE])
                p = wanted / row[k, WNN]
                for body, sign, turn in ((a, -p, row[k, KA] * row[k, AN]), (b, p, row[k, KB] * row[k, BN])):
                    shift[body, 0] += sign * rows[body, 6] * row[k, NX]
                    shift[body, 1] += sign * rows[body, 6] * row[k, NY]
                    shift[body, 2] += sign * turn
        if moved < 0.1 * keep:
            break
    work = 0.0
    for i in range(shift.shape[0]):
        size = np.sqrt(shift[i, 0] ** 2 + shift[i, 1] ** 2)
        scale = most / size if size > most else 1.0
        for c in range(2):
            position[i, c] += scale * shift[i, c]
            work -= mass[i] * gravity[c] * scale * shift[i, c]
        half = 0.5 * scale * shift[i, 2] / rows[i, 7]
        if half != 0.0:
            c, s, w, z = np.cos(half), np.sin(half), orientation[i, 0], orientation[i, 3]
            orientation[i, 0], orientation[i, 3] = c * w - s * z, c * z + s * w
    return work
