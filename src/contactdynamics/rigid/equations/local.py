"""The laws of one contact with the others held, all of them: Coulomb, cohesion, tension, rolling and spinning.

``w`` is the block of W for the impulse and the moment (6, 6), ``bound`` (6,) are c1, c2, rolling, spinning, cohesion h
and tension h.
"""

import numpy as np

from ..._jit import kernel
from ...problem.laws import _slide, solve_three
from ...state import SEPARATING, SLIDING


@kernel
def impulse_law(w, b, bound, p):
    """Impulse ``p`` (3,) of a contact with the moments held; ``w`` (3, 3), ``b`` (3,). Returns the status.

    Cohesion shifts the cone to start at P_n = -cohesion h; where the contact opens all the same, P = 0. Tension holds
    the normal velocity at zero up to its limit, without friction.
    """
    if bound[4] > 0.0:
        shifted = np.empty(3)
        for i in range(3):
            shifted[i] = b[i] - w[i, 0] * bound[4]
        p[0], p[1], p[2], status = solve_three(w, shifted, bound[0], bound[1])
        if status == SEPARATING:
            p[0], p[1], p[2] = 0.0, 0.0, 0.0
        else:
            p[0] -= bound[4]
        return status
    p[0], p[1], p[2], status = solve_three(w, b, bound[0], bound[1])
    if status == SEPARATING and bound[5] > 0.0 and b[0] <= w[0, 0] * bound[5]:
        p[0] = -b[0] / w[0, 0]
        return SLIDING
    return status


@kernel
def moment_law(w, b, bound, p_n, m):
    """Moment ``m`` (3,) about (n, t1, t2) with the impulse held: |m_n| <= spinning P_n, |m_t| <= rolling P_n."""
    limit = bound[3] * max(p_n, 0.0)
    m[0] = 0.0
    if w[0, 0] > 0.0 and limit > 0.0:
        free = b[0] + w[0, 1] * m[1] + w[0, 2] * m[2]
        m[0] = min(limit, max(-limit, -free / w[0, 0]))
    limit = bound[2] * max(p_n, 0.0)
    b1, b2 = b[1] + w[1, 0] * m[0], b[2] + w[2, 0] * m[0]
    m[1], m[2] = 0.0, 0.0
    if limit == 0.0:
        return
    angle = 0.5 * np.arctan2(2.0 * w[1, 2], w[1, 1] - w[2, 2])
    c, s = np.cos(angle), np.sin(angle)
    w1 = c * c * w[1, 1] + 2.0 * c * s * w[1, 2] + s * s * w[2, 2]
    w2 = s * s * w[1, 1] - 2.0 * c * s * w[1, 2] + c * c * w[2, 2]
    e1, e2 = c * b1 + s * b2, -s * b1 + c * b2
    tiny = 1e-14 * (w[1, 1] + w[2, 2])
    m1 = -e1 / w1 if w1 > tiny else 0.0
    m2 = -e2 / w2 if w2 > tiny else 0.0
    if m1 * m1 + m2 * m2 > limit * limit:
        # the same secular equation as for sliding, with the constant bound in the place of P_n
        _, m1, m2 = _slide(1.0, -limit, 0.0, 0.0, max(w1, 0.0), max(w2, 0.0),
                           e1 if w1 > tiny else 0.0, e2 if w2 > tiny else 0.0)  # fmt: skip
    m[1], m[2] = c * m1 - s * m2, s * m1 + c * m2


@kernel
def solve_contact(w, b, bound, p, m):
    """Impulse and moment of one contact, together: alternate the two exact laws until both hold."""
    if bound[2] == 0.0 and bound[3] == 0.0:
        return impulse_law(w[:3, :3], b[:3], bound, p)
    part = np.empty(3)
    status = SEPARATING
    for _ in range(200):
        for i in range(3):
            part[i] = b[i] + w[i, 3] * m[0] + w[i, 4] * m[1] + w[i, 5] * m[2]
        old = p[0], p[1], p[2]
        status = impulse_law(w[:3, :3], part, bound, p)
        for i in range(3):
            part[i] = b[3 + i] + w[3 + i, 0] * p[0] + w[3 + i, 1] * p[1] + w[3 + i, 2] * p[2]
        moment_law(w[3:, 3:], part, bound, p[0], m)
        change = max(abs(p[0] - old[0]), abs(p[1] - old[1]), abs(p[2] - old[2]))
        if change <= 1e-13 * (abs(p[0]) + abs(p[1]) + abs(p[2])):
            break
    return status


@kernel
def moment_error(w, spin, bound, p_n, m):
    """Square of the natural map of the moments, as a square of an impulse divided by W: kinetic units."""
    total = 0.0
    limit = bound[3] * max(p_n, 0.0)
    if w[3, 3] > 0.0:
        x = min(limit, max(-limit, m[0] - spin[0] / w[3, 3]))
        total += w[3, 3] * (m[0] - x) ** 2
    mean = 0.5 * (w[4, 4] + w[5, 5])
    if mean > 0.0:
        limit = bound[2] * max(p_n, 0.0)
        x, y = m[1] - spin[1] / mean, m[2] - spin[2] / mean
        if w[4, 4] == 0.0:
            x = 0.0  # two dimensions: no rotation about t1
        size = np.sqrt(x * x + y * y)
        shrink = limit / size if size > limit else 1.0
        total += mean * ((m[1] - shrink * x) ** 2 + (m[2] - shrink * y) ** 2)
    return total
