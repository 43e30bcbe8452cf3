"""The sweep of spatial contacts: those of a joint are solved together, others exactly with the rest held."""

import numpy as np

from ..._jit import kernel
from ...problem.laws import solve_three
from ...state import SEPARATING, STICKING
from .joints import JM, MOST, apply_joint, newton_step, stick_step
from .levers import contact_block
from .local import solve_contact
from .spatial_rows import (
    C1,
    C2,
    GLUE,
    INN,
    INS,
    INT,
    ISS,
    ITS,
    ITT,
    MOMENT,
    PULL,
    ROLL,
    SPIN,
    WNN,
    WNS,
    WNT,
    WSS,
    WTS,
    WTT,
    A,
    B,
    P,
    R,
    fill_matrix,
    push,
    relative_spin,
    twist,
    velocity,
)


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
