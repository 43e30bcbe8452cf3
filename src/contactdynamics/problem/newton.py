"""Semismooth Newton for contact problems, made robust by a proximal term: the end of the way, from a good guess.

With the augmented Lagrangian of Alart and Curnier (1991), P solves the problem where it is a fixed point of

    P(U)_n = max(0, P_n - r U_n),    P(U)_t = the point of the disk of radius c P(U)_n nearest to P_t - r U_t,     (1)

U = b + W P. For P kept and r as large as 1e3 / W the equation Q = P(b + W Q) is close to the law, and it has a solution
Q for any W, redundant or not; its solution becomes the next P (the method of multipliers). Newton's method on it has
the same linear equations as `interior`, dU = W (c - B dU), with B = -dP/dU and c = P(U) - Q. A step that overshoots is
cut where the slope dU . (Q - P(U)) along it has fallen to nearly zero: without friction that is the minimum of a convex
function.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from . import graphs
from .cones import put, residual

STEPS = 8  # with the same base at most
STIFF, STIFFER, STIFFEST = 1e4, 10.0, 1e9  # r over that of the contact's own block of W
WORSE, WAIT = 3.0, 4.0  # a base may make the residual worse by so much; bases at most before r is raised again


@kernel
def answer(cones, stiff, base, u, du, step, p):
    """P(U + step dU) of (1) into ``p`` (m, d); ``base`` (m, d) the impulses kept, r = stiff rho.

    In space the disk is that of the variables P_t / c, in which an ellipse is round.
    """
    d = len(cones.size)
    for k in range(p.shape[0]):
        r = stiff * cones.rho[k]
        p_n = max(0.0, base[k, 0] - r * (u[k, 0] + step * du[k, 0]))
        p[k, 0] = p_n
        if d == 2:
            y = base[k, 1] - r * (u[k, 1] + step * du[k, 1])
            p[k, 1] = min(cones.friction[k, 0] * p_n, max(-cones.friction[k, 1] * p_n, y))
        elif d == 3:
            c1, c2 = cones.friction[k, 0], cones.friction[k, 1]
            top = max(c1, c2)
            r = r / (top * top) if top > 0.0 else 0.0
            y1 = (base[k, 1] / c1 if c1 > 0.0 else 0.0) - r * c1 * (u[k, 1] + step * du[k, 1])
            y2 = (base[k, d - 1] / c2 if c2 > 0.0 else 0.0) - r * c2 * (u[k, d - 1] + step * du[k, d - 1])
            size = np.sqrt(y1 * y1 + y2 * y2)
            shrink = p_n / size if size > p_n else 1.0
            p[k, 1], p[k, d - 1] = c1 * shrink * y1, c2 * shrink * y2


@kernel
def slopes(cones, stiff, base, u, blocks):
    """B = -dP/dU of (1) at U into ``blocks`` (m, d, d)."""
    d = len(cones.size)
    for k in range(u.shape[0]):
        r = stiff * cones.rho[k]
        for i in range(d):
            for j in range(d):
                blocks[k, i, j] = 0.0
        p_n = base[k, 0] - r * u[k, 0]
        if p_n <= 0.0:
            continue
        blocks[k, 0, 0] = r
        if d == 2:
            y, high, low = base[k, 1] - r * u[k, 1], cones.friction[k, 0], -cones.friction[k, 1]
            if y > high * p_n:
                blocks[k, 1, 0] = high * r
            elif y < low * p_n:
                blocks[k, 1, 0] = low * r
            else:
                blocks[k, 1, 1] = r
        elif d == 3:
            c1, c2 = cones.friction[k, 0], cones.friction[k, 1]
            top = max(c1, c2)
            stiff_t = r / (top * top) if top > 0.0 else 0.0
            y1 = (base[k, 1] / c1 if c1 > 0.0 else 0.0) - stiff_t * c1 * u[k, 1]
            y2 = (base[k, d - 1] / c2 if c2 > 0.0 else 0.0) - stiff_t * c2 * u[k, d - 1]
            size = np.sqrt(y1 * y1 + y2 * y2)
            if size > p_n:
                n1, n2, shrink = y1 / size, y2 / size, stiff_t * p_n / size
                blocks[k, 1, 0], blocks[k, d - 1, 0] = c1 * n1 * r, c2 * n2 * r
                blocks[k, 1, 1], blocks[k, d - 1, d - 1] = c1 * c1 * shrink * n2 * n2, c2 * c2 * shrink * n1 * n1
                blocks[k, 1, d - 1] = blocks[k, d - 1, 1] = -c1 * c2 * shrink * n1 * n2
            else:
                blocks[k, 1, 1], blocks[k, d - 1, d - 1] = stiff_t * c1 * c1, stiff_t * c2 * c2


@kernel
def slope_at(cones, stiff, base, u, du, q, dq, step, p):
    """dU . (Q + step dQ - P(U + step dU)): the slope along a Newton step; ``p`` takes P."""
    answer(cones, stiff, base, u, du, step, p)
    total = 0.0
    for k in range(u.shape[0]):
        for i in range(u.shape[1]):
            total += du[k, i] * (q[k, i] + step * dq[k, i] - p[k, i])
    return total


@kernel
def search(cones, stiff, base, u, du, q, dq, begin, p):
    """How far to go along a Newton step: to where the slope is a tenth of that at its ``begin``, 1 at most."""
    low, high, step = 0.0, 1.0, 1.0
    at_low, at_high = begin, 0.0
    for turn in range(20):
        slope = slope_at(cones, stiff, base, u, du, q, dq, step, p)
        if abs(slope) <= 0.1 * abs(begin) or (turn == 0 and slope * begin > 0.0):
            return step
        if slope * begin > 0.0:
            low, at_low = step, slope
        else:
            high, at_high = step, slope
        step = low + (high - low) * min(0.9, max(0.1, at_low / (at_low - at_high)))
    return step


class Proximal(NamedTuple):
    """Where the method is, m contacts of d components."""

    base: np.ndarray  # (m, d) the impulses kept in (1)
    q: np.ndarray  # (m, d)
    dq: np.ndarray  # (m, d)
    du: np.ndarray  # (m, d)
    push: np.ndarray  # (m, d)
    now: np.ndarray  # (m, d) velocities under q
    blocks: np.ndarray  # (m, d, d) B
    number: np.ndarray  # (6,) r over that of the contact's own block, steps with this base, its residual, r at most,
    # bases that went well since that was lowered, and how many must before it is raised


def new_proximal(m: int, d: int) -> Proximal:
    """Room for m contacts of d components."""
    return Proximal(*(np.empty((m, d)) for _ in range(6)), np.empty((m, d, d)), np.zeros(6))


@kernel
def begin(prox, p, u):
    """Start from impulses ``p`` and their velocities ``u`` (m, d)."""
    put(p, prox.base)
    put(p, prox.q)
    put(u, prox.now)
    prox.number[0], prox.number[1], prox.number[2], prox.number[3] = STIFF, 0.0, np.inf, STIFFEST
    prox.number[4], prox.number[5] = 0.0, 1.0


@kernel
def newton_step(graph, cones, prox, p, u, tolerance, scale):
    """One step; ``p`` and ``u`` (m, d) take impulses on their cones and their velocities. Returns the residual."""
    base, q, dq, du, push, now, blocks, number = prox
    m, d = p.shape
    stiff = number[0]
    answer(cones, stiff, base, now, now, 0.0, p)
    slopes(cones, stiff, base, now, blocks)
    for k in range(m):
        for i in range(d):
            push[k, i] = p[k, i] - q[k, i]
    graphs.factorise(graph, blocks)
    graphs.solve(graph, push, du)
    slope = 0.0
    for k in range(m):
        for i in range(d):
            dq[k, i] = push[k, i]
            for j in range(d):
                dq[k, i] -= blocks[k, i, j] * du[k, j]
            slope -= du[k, i] * push[k, i]
    if not abs(slope) < np.inf:
        return np.inf
    step = search(cones, stiff, base, now, du, q, dq, slope, p)
    for k in range(m):
        for i in range(d):
            q[k, i] += step * dq[k, i]
    graphs.respond(graph, q, now)
    answer(cones, stiff, base, now, now, 0.0, p)
    graphs.respond(graph, p, u)
    error = residual(cones, p, u, scale)
    # Solved for this base: the velocities of Q and of P(U) agree, or Q moves no more: what r U has left is rounding.
    off, move, size = 0.0, 0.0, scale
    for k in range(m):
        for i in range(d):
            off += (cones.rho[k] * (u[k, i] - now[k, i])) ** 2
            move += dq[k, i] ** 2
            size += p[k, i] ** 2
    other = residual(cones, q, now, scale)
    if other < error:  # Q has not been multiplied by r: it has less of the rounding
        put(q, p)
        put(now, u)
        error = other
    number[1] += 1.0
    if min(off, move) <= (0.1 * max(tolerance, error)) ** 2 * size or number[1] >= STEPS:
        if error > WORSE * number[2] and stiff > STIFFER:  # too far: back to this base, with more of the proximal term
            put(base, q)
            graphs.respond(graph, q, now)
            number[0] = number[3] = stiff / STIFFER
            number[4], number[5] = 0.0, min(WAIT, 2.0 * number[5])
        else:
            put(p, base)
            put(p, q)
            put(u, now)
            number[4] += 1.0
            if number[4] >= number[5]:  # so many went well: r may grow again
                number[3], number[4] = min(STIFFER * number[3], STIFFEST), 0.0
            if error > 0.1 * number[2]:
                number[0] = min(STIFFER * stiff, number[3])
            number[2] = error
        number[1] = 0.0
    return error
