"""Coulomb's law made smooth: the second-order cone behind it, its scaling, and steps inside it.

For each contact x = (P_n, P_t / c) and z in the Lorentz cone L = {y_0 >= |y_t|}, with the friction coefficients c and

    z_t = c U_t,    U_n = (z_0^2 - |z_t|^2) / (2 z_0).                                                     (1)

Then x o z = 0 (the Jordan product (x . z, x_0 z_t + z_0 x_t)) is Signorini's and Coulomb's law: where z is inside,
x = 0 and U_n > 0; where z_0 = |z_t|, U_n = 0 and x_t is opposite to z_t; where z = 0 the contact sticks. There is no
shift to iterate on, as with de Saxce's form. In the plane the two coefficients are those of the two directions: c is
their mean and P_t = c x_t + shift x_0, where shift is half their difference. In space they are those of the two axes of
an ellipse. Without friction c = 0: x_t is then a quantity without effect, and 0 in the solution.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel


class Cones(NamedTuple):
    """The cones of m contacts."""

    size: tuple  # d zeros
    friction: np.ndarray  # (m, 2) as in `ContactProblem`
    width: np.ndarray  # (m, 2) c
    shift: np.ndarray  # (m,)
    rho: np.ndarray  # (m,) 1 / mean diagonal of the own block of W


def cones(friction: np.ndarray, rho: np.ndarray, d: int) -> Cones:
    """The cones of contacts with d components; ``friction`` (m, 2), ``rho`` (m,)."""
    made = Cones((0,) * d, friction, np.empty((len(rho), 2)), np.empty(len(rho)), rho)
    fill_cones(made)
    return made


@kernel
def fill_cones(cones):
    """Width and shift from the friction."""
    friction, width, shift = cones.friction, cones.width, cones.shift
    for k in range(shift.size):
        width[k, 0], width[k, 1], shift[k] = friction[k, 0], friction[k, 1], 0.0
        if len(cones.size) == 2:
            width[k, 0] = width[k, 1] = 0.5 * (friction[k, 0] + friction[k, 1])
            shift[k] = 0.5 * (friction[k, 0] - friction[k, 1])


@kernel
def put(source, target):
    """``target[:] = source`` for rows (m, d), which takes a kernel long to compile: it copies arrays that overlap."""
    for k in range(target.shape[0]):
        for i in range(target.shape[1]):
            target[k, i] = source[k, i]


@kernel(inline=True)
def length(size, x, k):
    """|x_t| of row k."""
    total = 0.0
    for i in range(1, len(size)):
        total += x[k, i] * x[k, i]
    return np.sqrt(total)


@kernel(inline=True)
def reach(size, x, dx, k):
    """The largest step t, 1e30 at most, for which x + t dx stays in L; row k."""
    d = len(size)
    square, cross, own = dx[k, 0] * dx[k, 0], x[k, 0] * dx[k, 0], length(size, x, k)
    for i in range(1, d):
        square -= dx[k, i] * dx[k, i]
        cross -= x[k, i] * dx[k, i]
    own = (x[k, 0] - own) * (x[k, 0] + own)
    # the smallest positive root of square t^2 + 2 cross t + own = 0
    root = cross * cross - square * own
    step = 1e30
    if root >= 0.0:
        root = np.sqrt(root)
        if cross < 0.0:
            step = own / (root - cross)
        elif square < 0.0:
            step = -(cross + root) / square
    if dx[k, 0] < 0.0:
        step = min(step, -x[k, 0] / dx[k, 0])
    return step


@kernel(inline=True)
def scaling(size, x, z, k, w):
    """The point w of Nesterov and Todd into ``w`` (d,), returns eta: eta^2 (2 w w^T - J) z = x; row k."""
    one, two = length(size, x, k), length(size, z, k)
    one = np.sqrt((x[k, 0] - one) * (x[k, 0] + one))
    two = np.sqrt((z[k, 0] - two) * (z[k, 0] + two))
    dot = 0.0
    for i in range(len(size)):
        dot += x[k, i] * z[k, i]
    half = 1.0 / np.sqrt(2.0 * (1.0 + dot / (one * two)))
    w[0] = half * (x[k, 0] / one + z[k, 0] / two)
    for i in range(1, len(size)):
        w[i] = half * (x[k, i] / one - z[k, i] / two)
    return np.sqrt(one / two)


@kernel(inline=True)
def stretched(size, w, eta, y, sign, out):
    """``out`` = H y with the scaling matrix H, H^2 = eta^2 (2 w w^T - J); its inverse for sign = -1."""
    dot = 0.0
    for i in range(1, len(size)):
        dot += w[i] * y[i]
    factor = eta if sign > 0.0 else 1.0 / eta
    out[0] = factor * (w[0] * y[0] + sign * dot)
    along = sign * y[0] + dot / (1.0 + w[0])
    for i in range(1, len(size)):
        out[i] = factor * (y[i] + along * w[i])


@kernel(inline=True)
def natural_square(size, p, u, friction, rho, k):
    """|P - proj(P - rho U^)|^2 of `laws.natural_map`, for row k."""
    d = len(size)
    c0, c1 = friction[k, 0], friction[k, 1]
    if d == 1:
        return (p[k, 0] - max(0.0, p[k, 0] - rho * u[k, 0])) ** 2
    if d == 2:
        slide = max(c1 * u[k, 1], -c0 * u[k, 1])
        x_n, x_t = p[k, 0] - rho * (u[k, 0] + slide), p[k, 1] - rho * u[k, 1]
        if x_n >= 0.0 and -c1 * x_n <= x_t <= c0 * x_n:
            y_n, y_t = x_n, x_t
        else:
            side = c0 if x_t > 0.0 else -c1
            y_n = max(0.0, (x_n + side * x_t) / (1.0 + side * side))
            y_t = side * y_n
        return (p[k, 0] - y_n) ** 2 + (p[k, 1] - y_t) ** 2
    top = max(c0, c1)
    s1 = c0 / top if top > 0.0 else 1.0
    s2 = c1 / top if top > 0.0 else 1.0
    p1 = p[k, 1] / s1 if s1 > 0.0 else p[k, 1]
    p2 = p[k, d - 1] / s2 if s2 > 0.0 else p[k, d - 1]
    x_n = p[k, 0] - rho * (u[k, 0] + np.sqrt((c0 * u[k, 1]) ** 2 + (c1 * u[k, d - 1]) ** 2))
    x1, x2 = p1 - rho * s1 * u[k, 1], p2 - rho * s2 * u[k, d - 1]
    size_t = np.sqrt(x1 * x1 + x2 * x2)
    if x_n >= 0.0 and size_t <= top * x_n:
        y_n, shrink = x_n, 1.0
    else:
        y_n = max(0.0, (x_n + top * size_t) / (1.0 + top * top))
        shrink = top * y_n / size_t if size_t > 0.0 else 0.0
    return (p[k, 0] - y_n) ** 2 + (p1 - shrink * x1) ** 2 + (p2 - shrink * x2) ** 2


@kernel
def residual(cones, p, u, scale):
    """The residual of impulses and velocities (m, d), relative to the larger of |P| and sqrt(scale)."""
    error, total = 0.0, 0.0
    for k in range(p.shape[0]):
        error += natural_square(cones.size, p, u, cones.friction, cones.rho[k], k)
        for i in range(len(cones.size)):
            total += p[k, i] * p[k, i]
    if not error < np.inf:
        return np.inf
    total = max(total, scale)
    return np.sqrt(error / total) if total > 0.0 else 0.0
