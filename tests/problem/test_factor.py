"""Block factors on a graph: the solution of linear equations, the order, the fill-in."""

import numpy as np
import pytest

from contactdynamics.problem import factor


def random_matrix(rng, n, edges, s):
    """A matrix on a random graph as `Factors` and as an array, both by place."""
    first, second = rng.integers(-1, n, edges), rng.integers(-1, n, edges)
    pattern = factor.make_pattern(n, first, second, 10**9)
    f, full = factor.factors(s, pattern), np.zeros((n, s, n, s))
    factor.clear(f)
    f.diagonal[:] = rng.normal(size=(n, s, s)) + 5.0 * s * np.eye(s)
    full[np.arange(n), :, np.arange(n), :] = f.diagonal
    links = {tuple(sorted((pattern.place[i], pattern.place[j]))) for i, j in zip(first, second, strict=True)
             if min(i, j) >= 0 and i != j}  # fmt: skip
    for i, j in links:
        at = factor.find_edge(pattern, i, j)
        assert pattern.column[at] == j and pattern.start[i] <= at < pattern.start[i + 1]
        f.upper[at], f.lower[at] = rng.normal(size=(2, s, s))
        full[i, :, j], full[j, :, i] = f.upper[at], f.lower[at]
    return f, full.reshape(n * s, n * s), links


@pytest.mark.parametrize("s", [pytest.param(1, marks=pytest.mark.slow), 2, 3, 6])  # no graph has blocks of one
def test_solution_of_linear_equations(rng, s):
    for n, edges in ((1, 0), (2, 3), (12, 10), (30, 80)):
        f, full, _ = random_matrix(rng, n, edges, s)
        right = rng.normal(size=(n, s))
        x = right.copy()
        factor.factorise(f)
        factor.substitute(f, x)
        assert x.ravel() == pytest.approx(np.linalg.solve(full, right.ravel()), rel=1e-9, abs=1e-10)


def test_every_node_once_and_all_fill_in_foreseen(rng):
    # Eliminating a place links its later neighbours: naive elimination of the graph gives the same edges.
    for n, edges in ((1, 0), (9, 14), (40, 70), (60, 300)):
        f, _, links = random_matrix(rng, n, edges, 1)
        assert sorted(f.pattern.place) == list(range(n))
        near = [set() for _ in range(n)]
        for i, j in links:
            near[i].add(j)
        for i in range(n):
            later = sorted(near[i])
            for j in later:
                near[j] |= {k for k in later if k > j}
            assert list(f.pattern.column[f.pattern.start[i] : f.pattern.start[i + 1]]) == later


def test_little_fill_in_where_none_is_needed(rng):
    # a chain and a star, numbered at random, have an order without any; a ring needs n - 3 new links
    n = 200
    names = rng.permutation(n)
    for first, second, expected in (
        (names[:-1], names[1:], n - 1),
        (np.full(n - 1, names[0]), names[1:], n - 1),
        (names, np.roll(names, 1), n + n - 3),
    ):
        assert len(factor.make_pattern(n, first, second, 10**9).column) == expected


def test_too_much_fill_in_is_refused():
    i, j = np.triu_indices(30, 1)
    assert len(factor.make_pattern(30, i, j, 435).column) == 435
    assert len(factor.make_pattern(30, i, j, 434).column) == 0


def test_blocks_are_inverted_with_pivots(rng):
    for s in (2, 3, 6):
        block = rng.normal(size=(5, s, s))
        block[:, 0, 0] = 0.0
        expected = np.linalg.inv(block)
        for at in range(5):
            factor.invert((0,) * s, block, at, np.empty(s, dtype=np.int64))
        assert block == pytest.approx(expected, rel=1e-8, abs=1e-8)
