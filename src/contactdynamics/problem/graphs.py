"""A contact problem as a graph, in two forms, for the second-order solvers: what they need of it is two operations.

`respond`: the relative velocities U = b + W P that impulses P give; `linear_step`: the dU for which dU = W (c - B dU),
with a block B (d, d) for each contact, which is not symmetric where friction couples normal and tangent.

- *Bodies' form*: nodes are blocks of s freedoms (a body: 3 in the plane, 6 in space), U = G_b v_b + G_a v_a + drift.
  Then dU = G dv with (M + G^T B G) dv = G^T c: as large as there are freedoms, whatever the number of contacts.
- *Contacts' form*: nodes are the contacts and edges the blocks of W; (1 + W B) dU = W c.

Which kernels are meant follows from the type of the graph when a solver is compiled.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._jit import kernel
from . import factor
from .factor import Factors


class BodyGraph(NamedTuple):
    """m contacts between n blocks of s freedoms."""

    inverse: np.ndarray  # (n, s, s) of the mass
    mass: np.ndarray  # (n, s, s)
    free: np.ndarray  # (n, s) velocities without contact impulses
    a: np.ndarray  # (m,) blocks, -1 where a contact has no such body
    b: np.ndarray  # (m,)
    map_a: np.ndarray  # (m, d, s)
    map_b: np.ndarray  # (m, d, s)
    drift: np.ndarray  # (m, d) what is added to U
    edge: np.ndarray  # (m,) of the factors, between a and b; -1 without
    factors: Factors
    room: np.ndarray  # (n, s)


class ContactGraph(NamedTuple):
    """m contacts linked by W."""

    start: np.ndarray  # (m + 1,) compressed rows of blocks
    column: np.ndarray  # (nz,)
    block: np.ndarray  # (nz, d, d)
    velocity: np.ndarray  # (m, d) b
    edge: np.ndarray  # (nz,) of the factors; -1 on the diagonal
    factors: Factors
    room: np.ndarray  # (m, d)


ROOM = 400e6  # bytes of the factors at most: beyond, a graph has none


def body_graph(mass, free, a, b, map_a, map_b, drift, factored: bool = True) -> BodyGraph:
    """The graph of a problem in bodies' form; sweeps need no factors."""
    n, s = free.shape
    found, edge = _no_factors(s)
    if factored:
        pattern = factor.make_pattern(n, a, b, _most(s))
        found, edge = _factors(s, pattern, ((a >= 0) & (b >= 0) & (a != b)).any(), a, b)
    return BodyGraph(np.linalg.inv(mass), mass, free, a, b, map_a, map_b, drift, edge, found, np.empty((n, s)))


def contact_graph(start, column, block, velocity, factored: bool = True) -> ContactGraph:
    """The graph of a problem in contacts' form, W in compressed rows of blocks; sweeps need no factors."""
    m, d = velocity.shape
    found, edge = _no_factors(d)
    if factored:
        row = np.repeat(np.arange(m), np.diff(start))
        pattern = factor.make_pattern(m, row, column, _most(d))
        found, edge = _factors(d, pattern, (row != column).any(), row, column)
    return ContactGraph(start, column, block, velocity, edge, found, np.empty((m, d)))


def _most(s: int) -> int:
    """Edges of the factors at most."""
    return int(ROOM / (16 * s * s))


def _factors(s: int, pattern, linked: bool, first, second) -> tuple[Factors, np.ndarray]:
    """Room for the factors, and the edges that pairs of nodes have in them; none of both where they are too large."""
    if linked and len(pattern.column) == 0:
        return _no_factors(s)
    return factor.factors(s, pattern), body_edges(pattern, first, second)


def _no_factors(s: int) -> tuple[Factors, np.ndarray]:
    none = np.zeros(0, dtype=np.int64)
    return Factors((0,) * s, factor.Pattern(none, none, none), *(np.empty((0, s, s)) for _ in range(3))), none


def factorable(graph) -> bool:
    """Whether there is room for the factors."""
    return len(graph.factors.diagonal) > 0


@kernel
def body_edges(pattern, a, b):
    """(m,) the edges of the factors that contacts between the nodes a and b belong to."""
    edge = np.full(a.size, -1)
    for k in range(a.size):
        if a[k] >= 0 and b[k] >= 0 and a[k] != b[k]:
            i, j = pattern.place[a[k]], pattern.place[b[k]]
            edge[k] = factor.find_edge(pattern, min(i, j), max(i, j))
    return edge


# ---- bodies' form ------------------------------------------------------------------------------------------------


@kernel
def body_pull(graph, p, x):
    """x = G^T p by node; ``p`` (m, d), ``x`` (n, s)."""
    a, b, map_a, map_b = graph.a, graph.b, graph.map_a, graph.map_b
    s, d = len(graph.factors.size), p.shape[1]
    x[:] = 0.0
    for k in range(p.shape[0]):
        i, j = a[k], b[k]
        for c in range(d):
            if i >= 0:
                for f in range(s):
                    x[i, f] += map_a[k, c, f] * p[k, c]
            if j >= 0:
                for f in range(s):
                    x[j, f] += map_b[k, c, f] * p[k, c]


@kernel
def body_spread(graph, v, u):
    """u = G v; ``v`` (n, s), ``u`` (m, d)."""
    a, b, map_a, map_b = graph.a, graph.b, graph.map_a, graph.map_b
    s, d = len(graph.factors.size), u.shape[1]
    for k in range(u.shape[0]):
        i, j = a[k], b[k]
        for c in range(d):
            total = 0.0
            if i >= 0:
                for f in range(s):
                    total += map_a[k, c, f] * v[i, f]
            if j >= 0:
                for f in range(s):
                    total += map_b[k, c, f] * v[j, f]
            u[k, c] = total


@kernel
def body_velocities(graph, p, v):
    """v = free + M^-1 G^T p, into ``v`` (n, s)."""
    s = len(graph.factors.size)
    inverse, free, row = graph.inverse, graph.free, np.empty(s)
    body_pull(graph, p, v)
    for node in range(v.shape[0]):
        for f in range(s):
            row[f] = v[node, f]
        for f in range(s):
            v[node, f] = free[node, f]
            for g in range(s):
                v[node, f] += inverse[node, f, g] * row[g]


@kernel
def body_respond(graph, p, u):
    """U = b + W P."""
    body_velocities(graph, p, graph.room)
    body_spread(graph, graph.room, u)
    for k in range(u.shape[0]):
        for c in range(u.shape[1]):
            u[k, c] += graph.drift[k, c]


@kernel(contract=True)
def body_matrix(graph, blocks):
    """M + G^T B G into the factors."""
    f, s, d = graph.factors, len(graph.factors.size), blocks.shape[1]
    a, b, map_a, map_b, edge, place = graph.a, graph.b, graph.map_a, graph.map_b, graph.edge, f.pattern.place
    diagonal, upper, lower, mass = f.diagonal, f.upper, f.lower, graph.mass
    factor.clear(f)
    for node in range(mass.shape[0]):
        at = place[node]
        for i in range(s):
            for j in range(s):
                diagonal[at, i, j] = mass[node, i, j]
    right_a, right_b = np.zeros((3, s)), np.zeros((3, s))  # B G
    for k in range(blocks.shape[0]):
        p = place[a[k]] if a[k] >= 0 else -1
        q = place[b[k]] if b[k] >= 0 else -1
        for c in range(d):
            for i in range(s):
                right_a[c, i], right_b[c, i] = 0.0, 0.0
                for e in range(d):
                    right_a[c, i] += blocks[k, c, e] * map_a[k, e, i]
                    right_b[c, i] += blocks[k, c, e] * map_b[k, e, i]
        for c in range(d):
            if p >= 0:
                for i in range(s):
                    for j in range(s):
                        diagonal[p, i, j] += map_a[k, c, i] * right_a[c, j]
            if q >= 0:
                for i in range(s):
                    for j in range(s):
                        diagonal[q, i, j] += map_b[k, c, i] * right_b[c, j]
            e = edge[k]
            if e >= 0 and p < q:
                for i in range(s):
                    for j in range(s):
                        upper[e, i, j] += map_a[k, c, i] * right_b[c, j]
                        lower[e, i, j] += map_b[k, c, i] * right_a[c, j]
            elif e >= 0:
                for i in range(s):
                    for j in range(s):
                        upper[e, i, j] += map_b[k, c, i] * right_a[c, j]
                        lower[e, i, j] += map_a[k, c, i] * right_b[c, j]
            elif p >= 0 and p == q:  # a contact of a body with itself, such as two blocks of one structure
                for i in range(s):
                    for j in range(s):
                        diagonal[p, i, j] += map_a[k, c, i] * right_b[c, j] + map_b[k, c, i] * right_a[c, j]


@kernel
def body_solve(graph, push, u):
    """dU = G dv with (M + G^T B G) dv = G^T push and the factors at hand."""
    s, place, v = len(graph.factors.size), graph.factors.pattern.place, graph.room
    body_pull(graph, push, v)
    x = np.empty_like(v)
    for node in range(v.shape[0]):
        for f in range(s):
            x[place[node], f] = v[node, f]
    factor.substitute(graph.factors, x)
    for node in range(v.shape[0]):
        for f in range(s):
            v[node, f] = x[place[node], f]
    body_spread(graph, v, u)


# ---- contacts' form ----------------------------------------------------------------------------------------------


@kernel(inline=True, contract=True)
def contact_row(size, start, column, block, p, k):
    """W P of contact k, three numbers (the last one 0 in the plane).

    Each sum waits for one addition a block: with one product after the other a sweep would wait three times as long.
    """
    x, y, z = 0.0, 0.0, 0.0
    for at in range(start[k], start[k + 1]):
        other = column[at]
        n, t = p[other, 0], p[other, 1]
        if len(size) == 2:
            x += block[at, 0, 0] * n + block[at, 0, 1] * t
            y += block[at, 1, 0] * n + block[at, 1, 1] * t
        else:
            s = p[other, 2]
            x += block[at, 0, 0] * n + block[at, 0, 1] * t + block[at, 0, 2] * s
            y += block[at, 1, 0] * n + block[at, 1, 1] * t + block[at, 1, 2] * s
            z += block[at, 2, 0] * n + block[at, 2, 1] * t + block[at, 2, 2] * s
    return x, y, z


@kernel
def contact_product(graph, p, u):
    """u = W p."""
    size = graph.factors.size
    for k in range(p.shape[0]):
        row = contact_row(size, graph.start, graph.column, graph.block, p, k)
        for c in range(len(size)):
            u[k, c] = row[c]


@kernel
def contact_respond(graph, p, u):
    """U = b + W P."""
    contact_product(graph, p, u)
    for k in range(u.shape[0]):
        for c in range(u.shape[1]):
            u[k, c] += graph.velocity[k, c]


@kernel(contract=True)
def contact_matrix(graph, blocks):
    """1 + W B into the factors."""
    f, d = graph.factors, len(graph.factors.size)
    start, column, block, edge, place = graph.start, graph.column, graph.block, graph.edge, f.pattern.place
    factor.clear(f)
    row = np.empty((d, d))
    for k in range(blocks.shape[0]):
        for at in range(start[k], start[k + 1]):
            other = column[at]
            for i in range(d):
                for j in range(d):
                    row[i, j] = 0.0
                    for e in range(d):
                        row[i, j] += block[at, i, e] * blocks[other, e, j]
            if other == k:
                for i in range(d):
                    for j in range(d):
                        f.diagonal[place[k], i, j] += row[i, j]
                    f.diagonal[place[k], i, i] += 1.0
            elif place[k] < place[other]:
                for i in range(d):
                    for j in range(d):
                        f.upper[edge[at], i, j] += row[i, j]
            else:
                for i in range(d):
                    for j in range(d):
                        f.lower[edge[at], i, j] += row[i, j]


@kernel
def contact_solve(graph, push, u):
    """(1 + W B) dU = W push with the factors at hand."""
    place, x, d = graph.factors.pattern.place, graph.room, push.shape[1]
    contact_product(graph, push, u)
    for k in range(u.shape[0]):
        for c in range(d):
            x[place[k], c] = u[k, c]
    factor.substitute(graph.factors, x)
    for k in range(u.shape[0]):
        for c in range(d):
            u[k, c] = x[place[k], c]


# ---- by type -----------------------------------------------------------------------------------------------------


class Forms(NamedTuple):
    """The kernels of a form."""

    respond: object
    matrix: object
    solve: object


FORMS = {
    BodyGraph: Forms(body_respond, body_matrix, body_solve),
    ContactGraph: Forms(contact_respond, contact_matrix, contact_solve),
}


def respond(graph, p, u):
    """U = b + W P into ``u`` (m, d)."""
    return FORMS[type(graph)].respond(graph, p, u)


def matrix(graph, blocks):
    """The matrix of `linear_step` for ``blocks`` B (m, d, d), not yet factorised."""
    return FORMS[type(graph)].matrix(graph, blocks)


def solve(graph, push, u):
    """dU = W (push - B dU) into ``u`` (m, d), with the factors at hand."""
    return FORMS[type(graph)].solve(graph, push, u)


@overload(respond)
def _compiled_respond(graph, p, u):
    chosen = FORMS[graph.instance_class].respond
    return lambda graph, p, u: chosen(graph, p, u)


@overload(matrix)
def _compiled_matrix(graph, blocks):
    chosen = FORMS[graph.instance_class].matrix
    return lambda graph, blocks: chosen(graph, blocks)


@overload(solve)
def _compiled_solve(graph, push, u):
    chosen = FORMS[graph.instance_class].solve
    return lambda graph, push, u: chosen(graph, push, u)


@kernel
def factorise(graph, blocks):
    """Prepare `solve` for the ``blocks`` B (m, d, d)."""
    matrix(graph, blocks)
    factor.factorise(graph.factors)
