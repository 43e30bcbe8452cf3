"""Gauss-Seidel on a graph: contacts solved one after the other, each exactly, on blocks of W or on the bodies.

`sweep_until` is plain or has Nesterov's extrapolation (restarted where the change of a sweep grows, given up where it
does not pay), and watches its rate: how many more sweeps the tolerance will take. It looks at the residual after 1, 2,
4, 8, 10 sweeps, then after a fifth more each time.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._jit import kernel
from . import graphs
from .cones import residual
from .graphs import BodyGraph, ContactGraph
from .laws import solve_on_axes, solve_two, tangent_axes

FIRST = 10  # sweeps up to which the residual is looked at often
PATIENCE = 150  # sweeps in which the extrapolation must halve the residual


class Own(NamedTuple):
    """What the local problems need of m contacts."""

    block: np.ndarray  # (m, d, d) W_kk
    axes: np.ndarray  # (m, 7) `laws.tangent_axes` in space
    push_a: np.ndarray  # (m, s, d) M^-1 G_a^T; empty in contacts' form
    push_b: np.ndarray  # (m, s, d)


def own_blocks(graph, cones) -> Own:
    """The local problems of the contacts of a graph."""
    d, m = len(cones.size), len(cones.shift)
    block, none = np.zeros((m, d, d)), np.zeros((0, 1, 1))
    if isinstance(graph, BodyGraph):
        s = graph.free.shape[1]
        push = np.zeros((2, m, s, d))
        fill_own_of_bodies(graph, block, push[0], push[1])
        own = Own(block, np.zeros((m, 7)), push[0], push[1])
    else:
        fill_own(graph.start, graph.column, graph.block, block)
        own = Own(block, np.zeros((m, 7)), none, none)
    if d == 3:
        fill_axes(block, cones.friction, own.axes)
    return own


@kernel
def fill_own(start, column, blocks, out):
    """The diagonal blocks of W, or their symmetric part: what a sweep leaves at rest is the same."""
    for k in range(out.shape[0]):
        for at in range(start[k], start[k + 1]):
            if column[at] == k:
                for i in range(out.shape[1]):
                    for j in range(out.shape[1]):
                        out[k, i, j] = 0.5 * (blocks[at, i, j] + blocks[at, j, i])


@kernel
def fill_own_of_bodies(graph, out, push_a, push_b):
    """W_kk = G M^-1 G^T of each contact, and M^-1 G^T of its two bodies."""
    d, s = out.shape[1], len(graph.factors.size)
    for k in range(out.shape[0]):
        for side in range(2):
            node = graph.a[k] if side == 0 else graph.b[k]
            if node < 0:
                continue
            maps, push = (graph.map_a, push_a) if side == 0 else (graph.map_b, push_b)
            for i in range(s):
                for c in range(d):
                    total = 0.0
                    for j in range(s):
                        total += graph.inverse[node, i, j] * maps[k, c, j]
                    push[k, i, c] = total
            for c in range(d):
                for e in range(d):
                    for i in range(s):
                        out[k, c, e] += maps[k, c, i] * push[k, i, e]
                        if side == 1 and graph.a[k] == node:  # both sides on one node
                            out[k, c, e] += graph.map_a[k, c, i] * push[k, i, e] + maps[k, c, i] * push_a[k, i, e]
        for c in range(d):
            for e in range(c):
                out[k, c, e] = out[k, e, c] = 0.5 * (out[k, c, e] + out[k, e, c])


@kernel
def fill_axes(block, friction, axes):
    """`tangent_axes` of all contacts."""
    for k in range(axes.shape[0]):
        found = tangent_axes(block[k], friction[k, 0], friction[k, 1])
        for i in range(7):
            axes[k, i] = found[i]


@kernel(inline=True)
def local(cones, own, k, x, y, z):
    """The impulse of contact k whose velocity would be (x, y, z) without it; three numbers."""
    w, a = own.block, own.axes
    c0, c1 = cones.friction[k, 0], cones.friction[k, 1]
    if len(cones.size) == 2:
        p_n, p_t, _ = solve_two(w[k, 0, 0], w[k, 0, 1], w[k, 1, 1], x, y, c0, c1)
        return p_n, p_t, 0.0
    axes = a[k, 0], a[k, 1], a[k, 2], a[k, 3], a[k, 4], a[k, 5], a[k, 6]
    p_n, p_1, p_2, _ = solve_on_axes(w[k, 0, 0], x, y, z, c0, c1, axes)
    return p_n, p_1, p_2


@kernel(inline=True)
def own_part(size, block, p, k):
    """W_kk P_k, three numbers."""
    n, t = p[k, 0], p[k, 1]
    if len(size) == 2:
        return block[k, 0, 0] * n + block[k, 0, 1] * t, block[k, 1, 0] * n + block[k, 1, 1] * t, 0.0
    s = p[k, 2]
    return (
        block[k, 0, 0] * n + block[k, 0, 1] * t + block[k, 0, 2] * s,
        block[k, 1, 0] * n + block[k, 1, 1] * t + block[k, 1, 2] * s,
        block[k, 2, 0] * n + block[k, 2, 1] * t + block[k, 2, 2] * s,
    )


@kernel
def sweep_contacts(graph, cones, own, p, v):
    """One sweep on the blocks of W; returns sum W |dP|^2."""
    start, column, block, velocity, d = graph.start, graph.column, graph.block, graph.velocity, len(cones.size)
    change = 0.0
    for k in range(p.shape[0]):
        x, y, z = graphs.contact_row(cones.size, start, column, block, p, k)
        x_own, y_own, z_own = own_part(cones.size, own.block, p, k)
        x, y = velocity[k, 0] + (x - x_own), velocity[k, 1] + (y - y_own)
        if d == 3:
            z = velocity[k, 2] + (z - z_own)
        found = local(cones, own, k, x, y, z)
        square = 0.0
        for i in range(d):
            square += (found[i] - p[k, i]) ** 2
            p[k, i] = found[i]
        change += square / cones.rho[k]
    return change


@kernel
def sweep_bodies(graph, cones, own, p, v):
    """One sweep on the bodies, whose velocities ``v`` (n, s) go with ``p``; returns sum W |dP|^2."""
    a, b, map_a, map_b, drift = graph.a, graph.b, graph.map_a, graph.map_b, graph.drift
    d, s = len(cones.size), len(graph.factors.size)
    u, change = np.zeros(3), 0.0
    for k in range(p.shape[0]):
        i, j = a[k], b[k]
        own_k = own_part(cones.size, own.block, p, k)
        for c in range(d):
            one, two = 0.0, 0.0
            if i >= 0:
                for f in range(s):
                    one += map_a[k, c, f] * v[i, f]
            if j >= 0:
                for f in range(s):
                    two += map_b[k, c, f] * v[j, f]
            u[c] = drift[k, c] + (one + two - own_k[c])
        found = local(cones, own, k, u[0], u[1], u[2])
        square = 0.0
        for c in range(d):
            step = found[c] - p[k, c]
            p[k, c] = found[c]
            square += step * step
            if i >= 0:
                for f in range(s):
                    v[i, f] += own.push_a[k, f, c] * step
            if j >= 0:
                for f in range(s):
                    v[j, f] += own.push_b[k, f, c] * step
        change += square / cones.rho[k]
    return change


SWEEPS = {ContactGraph: sweep_contacts, BodyGraph: sweep_bodies}


def sweep(graph, cones, own, p, v):
    """One sweep over all contacts of the graph."""
    return SWEEPS[type(graph)](graph, cones, own, p, v)


@overload(sweep)
def _compiled_sweep(graph, cones, own, p, v):
    chosen = SWEEPS[graph.instance_class]
    return lambda graph, cones, own, p, v: chosen(graph, cones, own, p, v)


def settle(graph, p, v):
    """The velocities of the nodes under ``p`` into ``v``, where sweeps need them."""
    if isinstance(graph, BodyGraph):
        graphs.body_velocities(graph, p, v)


@overload(settle)
def _compiled_settle(graph, p, v):
    if graph.instance_class is BodyGraph:
        return lambda graph, p, v: graphs.body_velocities(graph, p, v)
    return lambda graph, p, v: None


MADE, LOOKS, BEST, SINCE, LEAST, ERROR, AHEAD, T, CHANGE = range(9)
ROOM = 256  # looks at the residual: enough for any number of sweeps


class Memory(NamedTuple):
    """What sweeps remember from one round to the next."""

    v: np.ndarray  # (n, s) velocities of the nodes, in bodies' form
    last: np.ndarray  # (m, d) impulses after the last sweep
    last_v: np.ndarray  # velocities of the nodes then
    kept: np.ndarray  # (m, d) the best impulses so far
    seen: np.ndarray  # (ROOM, 2) sweeps and residual, wherever it was looked at
    number: (
        np.ndarray
    )  # (9,) sweeps made, looks, best residual by halves and since when, the least, the present one, ..
    # .. whether to extrapolate, Nesterov's t, change made by the last sweep


def new_memory(graph, p: np.ndarray, ahead: bool) -> Memory:
    """At the start of sweeps from the impulses ``p`` (m, d), with Nesterov's extrapolation where ``ahead``."""
    v = np.zeros(graph.room.shape if isinstance(graph, BodyGraph) else (0, 1))
    settle(graph, p, v)
    number = np.array([0.0, 0.0, np.inf, 0.0, np.inf, np.inf, float(ahead), 1.0, np.inf])
    return Memory(v, p.copy(), v.copy(), p.copy(), np.empty((ROOM, 2)), number)


@kernel
def sweep_round(graph, cones, own, p, count, memory):
    """``count`` sweeps, with Nesterov's extrapolation or without."""
    v, last, last_v, number = memory.v, memory.last, memory.last_v, memory.number
    m, d = p.shape
    for _ in range(count):
        if number[AHEAD] > 0.0:
            t = number[T]
            new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            beta = (t - 1.0) / new
            number[T] = new
            for k in range(m):
                for i in range(d):
                    x = p[k, i]
                    p[k, i] = x + beta * (x - last[k, i])
                    last[k, i] = x
            for k in range(v.shape[0]):
                for i in range(v.shape[1]):
                    x = v[k, i]
                    v[k, i] = x + beta * (x - last_v[k, i])
                    last_v[k, i] = x
        change = sweep(graph, cones, own, p, v)
        if change > number[CHANGE]:
            number[T] = 1.0
        number[CHANGE] = change


@kernel
def to_come(memory, tolerance):
    """How many more sweeps the rate of the last half of them predicts."""
    seen, looks = memory.seen, int(memory.number[LOOKS])
    last, now = seen[looks - 1, 0], np.log(max(seen[looks - 1, 1], 1e-300))
    for k in range(looks - 1):
        if 2.0 * seen[k, 0] >= last - 1.0:
            rate = (np.log(max(seen[k, 1], 1e-300)) - now) / (last - seen[k, 0])
            return (now - np.log(tolerance)) / rate if rate > 0.0 else np.inf
    return np.inf


@kernel
def sweep_until(graph, cones, own, p, u, memory, goal, first, worth, looks):
    """Sweeps until solved, ``most`` are made, or more than ``worth`` are to come; returns whether that is the end.

    ``goal``: tolerance, scale of the residual, most sweeps. The rate is looked at after ``first`` of them. Ends as well
    after ``looks`` at the residual, and where the extrapolation is given up: friction can make it cycle.
    """
    tolerance, scale, most = goal
    number, seen = memory.number, memory.seen
    for _ in range(looks):
        made = int(number[MADE])
        count = max(1, made // 5) if made >= FIRST else min(FIRST, 2 * made) - made if made > 1 else 1
        count = min(count, int(most) - made)
        sweep_round(graph, cones, own, p, count, memory)
        made += count
        graphs.respond(graph, p, u)
        error = residual(cones, p, u, scale)
        at = int(number[LOOKS])
        seen[at, 0], seen[at, 1] = made, error
        number[MADE], number[LOOKS], number[ERROR] = made, at + 1, error
        if error < number[LEAST]:
            number[LEAST] = error
            memory.kept[:] = p
        if error <= tolerance or made >= most or at + 1 == ROOM:
            return True
        if made >= first and to_come(memory, tolerance) > worth:
            return True
        if error < 0.5 * number[BEST]:
            number[BEST], number[SINCE] = error, made
        elif number[AHEAD] > 0.0 and made - number[SINCE] >= PATIENCE:
            number[AHEAD], number[T], number[CHANGE] = 0.0, 1.0, np.inf
            return False
    return False
