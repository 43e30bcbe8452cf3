"""LU factors of block matrices on a graph: minimum degree ordering, fill-in, factor, solution.

A matrix has a block of s x s for each node of a graph and two for each edge; its pattern is symmetric, its values need
not be. Nodes are eliminated in an order in which few new edges appear: that of least (approximate) degree, after
Amestoy, Davis and Duff (1996), without its search for equal nodes. Pivots are sought within the blocks only: the
matrices of `interior` and `newton` have a positive definite part in each of their blocks.

The size s is the length of a tuple, which the compiler knows: loops over a block are unrolled.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel


class Pattern(NamedTuple):
    """The order of elimination of n nodes, and the edges of the factors."""

    place: np.ndarray  # (n,) when a node is eliminated
    start: np.ndarray  # (n + 1,) where the edges of a place begin
    column: np.ndarray  # (nz,) the later places that it is linked to, in order


class Factors(NamedTuple):
    """A matrix, and after `factorise` its factors L U; blocks by place."""

    size: tuple  # s zeros
    pattern: Pattern
    diagonal: np.ndarray  # (n, s, s), then its inverse
    upper: np.ndarray  # (nz, s, s) from the earlier place to the later
    lower: np.ndarray  # (nz, s, s) and back


class Rows(NamedTuple):
    """The graph while its nodes are eliminated (see `eliminate`)."""

    start: np.ndarray  # (n + 1,) where the row of a node begins
    near: np.ndarray  # (m,) the elements it is in, then the nodes of its own edges
    elements: np.ndarray  # (n,) how many elements
    length: np.ndarray  # (n,) of both
    home: np.ndarray  # (n,) place of an eliminated node
    begin: np.ndarray  # (n + 1,) where the edges of a place begin
    left: np.ndarray  # (n,) nodes of an element outside of the new one
    mark: np.ndarray  # (n,) place of the last clique that a node came into
    alive: np.ndarray  # (n,) not eliminated
    dead: np.ndarray  # (n,) elements that are part of a later one


@kernel
def adjacency(count, first, second):
    """The graph of ``count`` nodes with edges (first, second) as compressed rows, each neighbour once.

    Edges to a negative node, and from a node to itself, do not count.
    """
    start = np.zeros(count + 1, dtype=np.int64)
    for k in range(first.size):
        if first[k] >= 0 and second[k] >= 0 and first[k] != second[k]:
            start[first[k] + 1] += 1
            start[second[k] + 1] += 1
    for node in range(count):
        start[node + 1] += start[node]
    at, near = start[:-1].copy(), np.empty(start[count], dtype=np.int64)
    for k in range(first.size):
        i, j = first[k], second[k]
        if i >= 0 and j >= 0 and i != j:
            near[at[i]], near[at[j]] = j, i
            at[i] += 1
            at[j] += 1
    seen, end, kept = np.full(count, -1), 0, np.empty(count + 1, dtype=np.int64)
    for node in range(count):
        begin = end
        for at_ in range(start[node], start[node + 1]):
            if seen[near[at_]] != node:
                seen[near[at_]] = node
                near[end] = near[at_]
                end += 1
        kept[node] = begin
    kept[count] = end
    return kept, near[:end]


@kernel
def _enlist(node, degree, head, after, before):
    """Put a node at the head of the list of its degree."""
    top = head[degree]
    after[node], before[node] = top, -1
    if top >= 0:
        before[top] = node
    head[degree] = node


@kernel
def _delist(node, degree, head, after, before):
    """Take a node out of the list of its degree."""
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        head[degree] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@kernel
def _members(p, step, rows, edges, end):
    """The clique that node ``p`` leaves, entered in ``edges`` from ``end`` on; the elements that it was in are dead.

    Returns the edges, with more room where there was too little, and their new end.
    """
    for at in range(rows.start[p], rows.start[p] + rows.length[p]):
        other = rows.near[at]
        low, high = -1, 0  # an edge of its own: this node alone
        if at < rows.start[p] + rows.elements[p]:
            if rows.dead[other]:
                continue
            rows.dead[other] = True
            low, high = rows.begin[rows.home[other]], rows.begin[rows.home[other] + 1]
        for k in range(low, high):
            i = edges[k] if low >= 0 else other
            if not rows.alive[i] or rows.mark[i] == step:
                continue
            rows.mark[i] = step
            if end == edges.size:
                more = np.empty(2 * end, dtype=np.int64)
                for e in range(end):
                    more[e] = edges[e]
                edges = more
            edges[end] = i
            end += 1
    return edges, end


@kernel
def _count_outside(step, rows, edges, end, noted):
    """How many nodes each element that meets the clique of ``step`` has outside of it: ``rows.left``."""
    for k in range(rows.begin[step], end):
        i = edges[k]
        for at in range(rows.start[i], rows.start[i] + rows.elements[i]):
            e = rows.near[at]
            if rows.dead[e]:
                continue
            if noted[e] != step:
                noted[e], rows.left[e] = step, rows.begin[rows.home[e] + 1] - rows.begin[rows.home[e]]
            rows.left[e] -= 1


@kernel
def _renew(i, p, step, rows):
    """The row of node ``i`` with the new element ``p``, which takes the place of what it covers.

    Returns the number of nodes that ``i`` is linked to outside of the element, elements counted one by one.
    """
    near, begin, first = rows.near, rows.start[i], rows.start[i] + rows.elements[i]
    total, into, own = 0, begin, 0
    for at in range(begin, first):
        e = near[at]
        if not rows.dead[e] and rows.left[e] > 0:
            near[into] = e
            into += 1
            total += rows.left[e]
    for at in range(first, begin + rows.length[i]):
        j = near[at]
        if rows.alive[j] and rows.mark[j] != step:
            near[first + own] = j
            own += 1
    if into == first:  # no element went: an own edge did, to p
        for at in range(own - 1, -1, -1):
            near[first + at + 1] = near[first + at]
    else:
        for at in range(own):
            near[into + 1 + at] = near[first + at]
    near[into] = p
    rows.elements[i], rows.length[i] = into - begin + 1, into - begin + 1 + own
    return total + own


@kernel
def eliminate(count, start, near, most):
    """Order and fill-in: for each place its node, the begin of its edges, and the nodes they lead to.

    An eliminated node becomes an element, the clique of those that it was linked to. A node is known by the elements it
    is in, which come first in its row of ``near``, and by its own edges that none of them covers. Gives up, with no
    edges, beyond ``most`` of them.
    """
    degree = start[1:] - start[:-1]
    zeros = np.zeros(count, dtype=np.int64)
    begin, noted = np.zeros(count + 1, dtype=np.int64), np.full(count, -1)
    rows = Rows(
        start, near.copy(), zeros.copy(), degree.copy(), zeros.copy(), begin, zeros.copy(), np.full(count, -1),
        np.ones(count, np.bool_), np.zeros(count, np.bool_),
    )  # fmt: skip
    head, after, before = np.full(count + 1, -1), np.full(count, -1), np.full(count, -1)
    for node in range(count - 1, -1, -1):
        _enlist(node, degree[node], head, after, before)
    edges, end = np.empty(4 * near.size + 16, dtype=np.int64), 0
    order, least = np.empty(count, dtype=np.int64), 0
    for step in range(count):
        while head[least] < 0:
            least += 1
        p = head[least]
        _delist(p, least, head, after, before)
        order[step], rows.home[p], rows.alive[p], rows.mark[p] = p, step, False, step
        begin[step] = end
        edges, end = _members(p, step, rows, edges, end)
        begin[step + 1] = end
        if end > most:
            return order, begin, edges[:0]
        _count_outside(step, rows, edges, end, noted)
        for k in range(begin[step], end):
            i = edges[k]
            total = min(end - begin[step] - 1 + _renew(i, p, step, rows), count - step - 2)
            _delist(i, degree[i], head, after, before)
            degree[i] = total
            _enlist(i, total, head, after, before)
            least = min(least, total)
    return order, begin, edges[:end]


@kernel
def make_pattern(count, first, second, most):
    """The `Pattern` of the factors of a graph; without edges where there would be more than ``most``."""
    start, near = adjacency(count, first, second)
    order, begin, edges = eliminate(count, start, near, most)
    place = np.empty(count, dtype=np.int64)
    if edges.size == 0 and near.size > 0:  # given up
        return Pattern(place, begin, edges)
    for step in range(count):
        place[order[step]] = step
    # in the order of their places: the edges by their later place first, then back by the earlier one
    size = edges.size
    counts = np.zeros(count + 1, dtype=np.int64)
    for k in range(size):
        edges[k] = place[edges[k]]
        counts[edges[k] + 1] += 1
    for j in range(count):
        counts[j + 1] += counts[j]
    early, late = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    if size:
        for i in range(count):
            for k in range(begin[i], begin[i + 1]):
                j = edges[k]
                early[counts[j]], late[counts[j]] = i, j
                counts[j] += 1
    at = begin[:-1].copy()
    for k in range(size):
        edges[at[early[k]]] = late[k]
        at[early[k]] += 1
    return Pattern(place, begin, edges)


@kernel
def find_edge(pattern, i, j):
    """Where the edge between the places i < j stands."""
    low, high = pattern.start[i], pattern.start[i + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if pattern.column[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


def factors(size: int, pattern: Pattern) -> Factors:
    """Arrays for the blocks of s x s of a matrix."""
    edges, s = len(pattern.column), size
    return Factors((0,) * s, pattern, np.empty((len(pattern.place), s, s)), np.empty((edges, s, s)),
                   np.empty((edges, s, s)))  # fmt: skip


@kernel
def clear(f):
    """Set all blocks to zero."""
    f.diagonal[:] = 0.0
    f.upper[:] = 0.0
    f.lower[:] = 0.0


@kernel
def invert(size, block, at, room):
    """Invert ``block[at]`` (s, s) by elimination with pivots; ``room`` (s,) integers."""
    s = len(size)
    for k in range(s):
        pivot = k
        for i in range(k + 1, s):
            if abs(block[at, i, k]) > abs(block[at, pivot, k]):
                pivot = i
        room[k] = pivot
        if pivot != k:
            for j in range(s):
                block[at, k, j], block[at, pivot, j] = block[at, pivot, j], block[at, k, j]
        one = 1.0 / block[at, k, k]
        block[at, k, k] = 1.0
        for j in range(s):
            block[at, k, j] *= one
        for i in range(s):
            if i != k:
                factor = block[at, i, k]
                block[at, i, k] = 0.0
                for j in range(s):
                    block[at, i, j] -= factor * block[at, k, j]
    for k in range(s - 1, -1, -1):
        pivot = room[k]
        if pivot != k:
            for i in range(s):
                block[at, i, k], block[at, i, pivot] = block[at, i, pivot], block[at, i, k]


@kernel(inline=True, contract=True)
def subtract_product(size, x, at, y, one, z, two):
    """x[at] -= y[one] z[two], blocks of s x s."""
    s = len(size)
    for i in range(s):
        for j in range(s):
            total = x[at, i, j]
            for k in range(s):
                total -= y[one, i, k] * z[two, k, j]
            x[at, i, j] = total


@kernel(contract=True)
def factorise(f):
    """L U in the place of the matrix: L has unit blocks on its diagonal, that of U is inverted."""
    size, s, start, column = f.size, len(f.size), f.pattern.start, f.pattern.column
    diagonal, upper, lower = f.diagonal, f.upper, f.lower
    room, row = np.empty(s, dtype=np.int64), np.empty(s)
    for k in range(diagonal.shape[0]):
        invert(size, diagonal, k, room)
        for e in range(start[k], start[k + 1]):
            for i in range(s):
                for j in range(s):
                    row[j] = 0.0
                    for l in range(s):
                        row[j] += lower[e, i, l] * diagonal[k, l, j]
                for j in range(s):
                    lower[e, i, j] = row[j]
        for e in range(start[k], start[k + 1]):
            i = column[e]
            subtract_product(size, diagonal, i, lower, e, upper, e)
            to = start[i]
            for other in range(e + 1, start[k + 1]):
                j = column[other]
                while column[to] != j:
                    to += 1
                subtract_product(size, upper, to, lower, e, upper, other)
                subtract_product(size, lower, to, lower, other, upper, e)


@kernel
def substitute(f, x):
    """Solve with the factors, in place; ``x`` (n, s) by place."""
    s, start, column = len(f.size), f.pattern.start, f.pattern.column
    diagonal, upper, lower = f.diagonal, f.upper, f.lower
    count, row = diagonal.shape[0], np.empty(s)
    for k in range(count):
        for e in range(start[k], start[k + 1]):
            to = column[e]
            for i in range(s):
                for j in range(s):
                    x[to, i] -= lower[e, i, j] * x[k, j]
    for k in range(count - 1, -1, -1):
        for e in range(start[k], start[k + 1]):
            of = column[e]
            for i in range(s):
                for j in range(s):
                    x[k, i] -= upper[e, i, j] * x[of, j]
        for i in range(s):
            row[i] = 0.0
            for j in range(s):
                row[i] += diagonal[k, i, j] * x[k, j]
        for i in range(s):
            x[k, i] = row[i]
