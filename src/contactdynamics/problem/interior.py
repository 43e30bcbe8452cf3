"""The interior-point method for contact problems with Coulomb friction, all contacts together.

The law x o z = 0 of `cones`, with U = b + W P, is perturbed to x o z = m e and followed to m -> 0 by Newton's method in
the scaling of Nesterov and Todd, with Mehrotra's predictor and corrector. With H the scaling (H z = H^-1 x = l), the
linear equations of a step are, contact by contact,

    dx + H^2 dz = s,    dz = F dU + g,    dP = E dx = E (s - H^2 g) - B dU,    B = E H^2 F,

where dz = F dU + g is (1) of `cones` made linear and E takes x to P, and together dU = W dP: a `graph` solves that. The
point need not satisfy (1) on the way; what is left shrinks with each step by its length.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from . import graphs
from .cones import length, reach, scaling, stretched

NEAR = 0.99  # of the way to the boundary
SHORT, PUSHES = 0.1, 2  # so many steps in a row shorter than this, and all contacts are pushed back inside


@kernel
def enter(cones, p, u, x, z, inside):
    """A point inside the cones near impulses and velocities (m, d): by ``inside`` of the mean size."""
    size, count, d = cones.size, p.shape[0], len(cones.size)
    mean_x, mean_z = 0.0, 0.0
    for k in range(count):
        mean_x += max(0.0, p[k, 0]) / count
        x[k, 0] = max(0.0, p[k, 0])
        square = 0.0
        for i in range(1, d):
            c = cones.width[k, i - 1]
            z[k, i] = c * u[k, i]
            x[k, i] = (p[k, i] - cones.shift[k] * p[k, 0]) / c if c > 0.0 else 0.0
            square += z[k, i] ** 2
        z[k, 0] = max(0.0, u[k, 0]) + np.sqrt(u[k, 0] ** 2 + square)
        mean_z += z[k, 0] / count
    for k in range(count):
        own = length(size, x, k)
        if own > x[k, 0]:
            for i in range(1, d):
                x[k, i] *= x[k, 0] / own
            own = x[k, 0]
        x[k, 0] = max(x[k, 0], own + inside * mean_x)
        z[k, 0] = max(z[k, 0], length(size, z, k) + inside * mean_z)


@kernel
def impulses(cones, x, p):
    """P = E x."""
    for k in range(x.shape[0]):
        p[k, 0] = x[k, 0]
        for i in range(1, len(cones.size)):
            p[k, i] = cones.width[k, i - 1] * x[k, i] + cones.shift[k] * x[k, 0]


@kernel
def linearise(cones, u, x, z, points, etas, blocks, rest):
    """Scaling ``points`` (m, d), ``etas`` (m,), ``blocks`` B (m, d, d), ``rest`` g (m, d); returns the mean x . z."""
    size, d, count = cones.size, len(cones.size), x.shape[0]
    square, forward = np.empty((d, d)), np.zeros((d, d))
    w = np.empty(d)
    total = 0.0
    for k in range(count):
        eta = scaling(size, x, z, k, w)
        etas[k] = eta
        for i in range(d):
            points[k, i] = w[i]
            total += x[k, i] * z[k, i]
            for j in range(d):
                square[i, j] = 2.0 * eta * eta * w[i] * w[j]
            square[i, i] += -eta * eta if i == 0 else eta * eta
        # dz_t = c dU_t - (z_t - c U_t),  dz_0 = q (dU_n - (f - U_n) + (z_t / z_0) . dz_t)
        tangent = length(size, z, k) / z[k, 0]
        q = 2.0 / (1.0 + tangent * tangent)
        forward[0, 0] = q
        rest[k, 0] = u[k, 0] - 0.5 * z[k, 0] * (1.0 - tangent * tangent)
        for i in range(1, d):
            c, slope = cones.width[k, i - 1], z[k, i] / z[k, 0]
            rest[k, i] = c * u[k, i] - z[k, i]
            forward[i, i], forward[0, i] = c, q * slope * c
            rest[k, 0] += slope * rest[k, i]
        rest[k, 0] *= q
        for j in range(d):
            for i in range(d):
                entry = square[i, 0] * forward[0, j]
                if j > 0:
                    entry += square[i, j] * forward[j, j]
                blocks[k, i, j] = entry
            for i in range(1, d):
                blocks[k, i, j] = cones.width[k, i - 1] * blocks[k, i, j] + cones.shift[k] * blocks[k, 0, j]
    return total / count


@kernel
def pushes(cones, points, etas, rest, s, push):
    """E (s - H^2 g) into ``push`` (m, d)."""
    d = len(cones.size)
    for k in range(s.shape[0]):
        eta, dot = etas[k] * etas[k], 0.0
        for i in range(d):
            dot += points[k, i] * rest[k, i]
        push[k, 0] = s[k, 0] - eta * (2.0 * points[k, 0] * dot - rest[k, 0])
        for i in range(1, d):
            value = s[k, i] - eta * (2.0 * points[k, i] * dot + rest[k, i])
            push[k, i] = cones.width[k, i - 1] * value + cones.shift[k] * push[k, 0]


@kernel
def directions(cones, z, points, etas, rest, s, du, dx, dz):
    """dz = F dU + g and dx = s - H^2 dz."""
    d = len(cones.size)
    for k in range(s.shape[0]):
        slope, square = 0.0, 0.0
        dz[k, 0] = 0.0
        for i in range(1, d):
            step, ratio = cones.width[k, i - 1] * du[k, i], z[k, i] / z[k, 0]
            dz[k, i] = step + rest[k, i]
            slope += ratio * step
            square += ratio * ratio
        dz[k, 0] = 2.0 / (1.0 + square) * (du[k, 0] + slope) + rest[k, 0]
        eta, dot = etas[k] * etas[k], 0.0
        for i in range(d):
            dot += points[k, i] * dz[k, i]
        for i in range(d):
            dx[k, i] = s[k, i] - eta * (2.0 * points[k, i] * dot + (dz[k, i] if i > 0 else -dz[k, 0]))


@kernel
def correct(cones, x, z, points, etas, dx, dz, target, s):
    """s = -x + H (l \\ (target e - (H^-1 dx) o (H dz))), Mehrotra's second order."""
    size, d = cones.size, len(cones.size)
    w, y, one, two, lam = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for k in range(x.shape[0]):
        eta = etas[k]
        for i in range(d):
            w[i], y[i] = points[k, i], dx[k, i]
        stretched(size, w, eta, y, -1.0, one)
        for i in range(d):
            y[i] = dz[k, i]
        stretched(size, w, eta, y, 1.0, two)
        for i in range(d):
            y[i] = z[k, i]
        stretched(size, w, eta, y, 1.0, lam)
        right, dot, square = target, 0.0, 0.0
        for i in range(d):
            right -= one[i] * two[i]
        for i in range(1, d):
            y[i] = -(one[0] * two[i] + two[0] * one[i])
            dot += lam[i] * y[i]
            square += lam[i] * lam[i]
        square = np.sqrt(square)
        y[0] = (lam[0] * right - dot) / ((lam[0] - square) * (lam[0] + square))
        for i in range(1, d):
            y[i] = (y[i] - y[0] * lam[i]) / lam[0]
        stretched(size, w, eta, y, 1.0, one)
        for i in range(d):
            s[k, i] = one[i] - x[k, i]


@kernel
def step_length(cones, x, z, dx, dz):
    """The largest common step inside all cones."""
    step = 1e30
    for k in range(x.shape[0]):
        step = min(step, reach(cones.size, x, dx, k), reach(cones.size, z, dz, k))
    return step


@kernel
def push_back(cones, x, z, mean):
    """Into the cones, all contacts, to where their own x . z is about the mean one."""
    for k in range(x.shape[0]):
        one, two = length(cones.size, x, k), length(cones.size, z, k)
        x0, z0 = x[k, 0], z[k, 0]
        x[k, 0] = max(x0, one + mean / (z0 + two))
        z[k, 0] = max(z0, two + mean / (x0 + one))


class Path(NamedTuple):
    """Where the method is, m contacts of d components."""

    x: np.ndarray  # (m, d) in the cones
    z: np.ndarray  # (m, d)
    dx: np.ndarray  # (m, d)
    dz: np.ndarray  # (m, d)
    du: np.ndarray  # (m, d)
    s: np.ndarray  # (m, d) right sides
    push: np.ndarray  # (m, d)
    rest: np.ndarray  # (m, d) g: what is left of (1)
    points: np.ndarray  # (m, d) w of the scaling
    etas: np.ndarray  # (m,) eta of the scaling
    blocks: np.ndarray  # (m, d, d) B
    short: np.ndarray  # (1,) steps in a row that were short


def new_path(m: int, d: int) -> Path:
    """Room for m contacts of d components."""
    return Path(*(np.empty((m, d)) for _ in range(9)), np.empty(m), np.empty((m, d, d)), np.zeros(1, dtype=np.int64))


@kernel
def begin(graph, cones, path, p, u, inside):
    """Start from impulses ``p`` and velocities ``u`` (m, d), moved into the cones by ``inside`` of their mean size."""
    enter(cones, p, u, path.x, path.z, inside)
    impulses(cones, path.x, p)
    graphs.respond(graph, p, u)
    path.short[0] = 0


@kernel
def interior_step(graph, cones, path, p, u):
    """One iteration; ``p`` and ``u`` (m, d) take its impulses and velocities. Returns False where it cannot go on."""
    x, z, dx, dz, du, s, push, rest, points, etas, blocks, short = path
    m, d = p.shape
    mean = linearise(cones, u, x, z, points, etas, blocks, rest)
    graphs.factorise(graph, blocks)
    for k in range(m):
        for i in range(d):
            s[k, i] = -x[k, i]
    pushes(cones, points, etas, rest, s, push)
    graphs.solve(graph, push, du)
    directions(cones, z, points, etas, rest, s, du, dx, dz)
    step = min(1.0, step_length(cones, x, z, dx, dz))
    ahead = 0.0
    for k in range(m):
        for i in range(d):
            ahead += (x[k, i] + step * dx[k, i]) * (z[k, i] + step * dz[k, i])
    centre = min(1.0, max(0.0, ahead / (m * mean))) ** 3
    correct(cones, x, z, points, etas, dx, dz, centre * mean, s)
    pushes(cones, points, etas, rest, s, push)
    graphs.solve(graph, push, du)
    directions(cones, z, points, etas, rest, s, du, dx, dz)
    step = min(1.0, NEAR * step_length(cones, x, z, dx, dz))
    if not step > 0.0:  # also where something is not a number
        return False
    for k in range(m):
        for i in range(d):
            x[k, i] += step * dx[k, i]
            z[k, i] += step * dz[k, i]
    short[0] = short[0] + 1 if step < SHORT else 0
    if short[0] == PUSHES:
        push_back(cones, x, z, mean)
        short[0] = 0
    impulses(cones, x, p)
    graphs.respond(graph, p, u)
    return True
