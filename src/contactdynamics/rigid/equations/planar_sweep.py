"""The sweep of planar contacts: each is solved exactly with the others held, the two ends of an edge together."""

import numpy as np

from ..._jit import kernel
from ...problem.laws import solve_two
from ...state import SEPARATING, SLIDING, STICKING
from .planar_rows import (
    AN,
    AT,
    BN,
    BT,
    EA,
    EB,
    GAMMA,
    GLUE,
    I11,
    I12,
    I22,
    IT,
    KA,
    KB,
    MOMENT,
    NX,
    NY,
    PN,
    PT,
    PULL,
    RN,
    ROLL,
    RT,
    W1T,
    W2T,
    W12,
    WNN,
    WNT,
    WT,
    WTT,
    push,
    twist,
    velocity,
)


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


@kernel(inline=True)
def solve_edge(velocity, impulse, friction, block, inverse):
    """Impulses of the two ends of one overlap: normal, normal, sum of the tangential ones, sum of the bounds, status.

    The ends share the normal, and their sliding velocities but for w times the difference of their gaps: the unknowns
    are the two normal impulses and the sum T of the tangential ones. ``velocity`` (3,) is above the targets,
    ``impulse`` (3,) the present one, ``friction`` (2,), ``block`` the six numbers of W, ``inverse`` 1 / W_tt and three
    of the normal block without its tangential part. SEPARATING where neither sticking nor sliding of both ends is the
    solution.
    """
    (u1, u2, ut), (p1, p2, pt), (g1, g2) = velocity, impulse, friction
    w11, w22, w12, w1t, w2t, wtt = block
    it, i11, i12, i22 = inverse
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
def sweep_coulomb(rows, contacts, some, plain):
    """One sweep where all laws are Coulomb's; returns the sum of W |dP|^2, the kinetic size of the change.

    The two ends of an overlap are solved together, unless ``plain``; each takes its part of the tangential impulse by
    its bound. Where one of them opens, they are solved in turn. They follow each other in ``some``.
    """
    change, at = 0.0, 0
    one, two, row, status, joint, edge = (
        contacts.a, contacts.b, contacts.row, contacts.status, contacts.joint, contacts.edge
    )  # fmt: skip
    while at < some.size:
        k = int(some[at])
        if not joint[k] or plain:
            change += point_step(rows, one, two, row, status, k)
            at += 1
            continue
        a, b, nx, ny = one[k], two[k], row[k, NX], row[k, NY]
        x, y, s, t = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[a, 5], rows[b, 5]
        p1, p2, g1, g2 = row[k, PN], row[k + 1, PN], row[k, GAMMA], row[k + 1, GAMMA]
        closing, slip, wtt = nx * x + ny * y, nx * y - ny * x, edge[k, WT]
        u1 = closing + row[k, BN] * t - row[k, AN] * s - row[k, RN]
        u2 = closing + row[k + 1, BN] * t - row[k + 1, AN] * s - row[k + 1, RN]
        ut = slip + edge[k, EB] * t - edge[k, EA] * s - 0.5 * (row[k, RT] + row[k + 1, RT])
        n1, n2, tangent, bound, found = solve_edge(
            (u1, u2, ut), (p1, p2, row[k, PT] + row[k + 1, PT]), (g1, g2),
            (row[k, WNN], row[k + 1, WNN], edge[k, W12], edge[k, W1T], edge[k, W2T], wtt),
            (edge[k, IT], edge[k, I11], edge[k, I12], edge[k, I22]),
        )  # fmt: skip
        if found == SEPARATING:
            for n in range(4):
                change += point_step(rows, one, two, row, status, k + n % 2)
            at += 2
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
        at += 2
    return change


@kernel
def glued_law(row, law, k, b_n, b_t):
    """Impulse and status where cohesion or tension holds: see `local.impulse_law`."""
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
def sweep_special(rows, contacts, some):
    """One sweep with all laws: the impulse, then the moment of rolling resistance; returns as `sweep_coulomb`."""
    change = 0.0
    row, law, status = contacts.row, contacts.law, contacts.status
    for at in range(some.size):
        k = some[at]
        a, b = contacts.a[k], contacts.b[k]
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
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it; extrapolated are impulse and moment."""
    if beta >= 0.0:
        row, law = contacts.row, contacts.law
        for at in range(some.size):
            k = some[at]
            x, y, z = row[k, PN], row[k, PT], law[k, MOMENT]
            if beta > 0.0:
                row[k, PN], row[k, PT] = x + beta * (x - last[k, 0]), y + beta * (y - last[k, 1])
                law[k, MOMENT] = z + beta * (z - last[k, 2])
            last[k, 0], last[k, 1], last[k, 2] = x, y, z
    if contacts.special[0]:
        return sweep_special(rows, contacts, some)
    return sweep_coulomb(rows, contacts, some, beta < 0.0)
