"""The projection on the tangent cone in the kinetic metric: prox(V(q), u') of 1986, eqs. 8.1 and 10.5."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contactdynamics as cd
import naive
from contactdynamics.problem.dense import project

pytestmark = pytest.mark.modes

numbers = st.floats(-2, 2, allow_subnormal=False).map(lambda x: round(x, 4))


def vectors(size):
    return st.lists(numbers, min_size=size, max_size=size).map(np.array)


@st.composite
def cones(draw, moving=True):
    """Inertia, velocity, normals (some linearly dependent on others) and rates for which a velocity exists."""
    n = draw(st.integers(1, 5))
    m = draw(st.integers(1, 9))
    factor = draw(vectors(n * n)).reshape(n, n)
    inertia = factor @ factor.T + 0.1 * np.eye(n)
    rows = [row for row in draw(vectors(m * n)).reshape(m, n) if np.linalg.norm(row) > 0.1] or [np.eye(n)[0]]
    for _ in range(draw(st.integers(0, 3))):  # nonnegative combinations of rows: dependent, and pointing their way
        weights = np.abs(draw(vectors(len(rows))))
        if np.linalg.norm(weights @ rows) > 0.1:
            rows.append(weights @ rows)
    if draw(st.booleans()):
        rows.append(2 * rows[0])
    normals = np.array(rows)
    u = draw(vectors(n))
    rates = np.zeros(len(normals))
    if moving:  # u_0 satisfies all, with some slack in some of them
        admissible = draw(vectors(n))
        slack = np.maximum(0.0, draw(vectors(len(normals))))
        rates = slack - normals @ admissible
    return inertia, u, normals, rates


def check_optimality(inertia, u, normals, rates):
    """Karush-Kuhn-Tucker: v = u + A^-1 N^T l, l >= 0, N v + w >= 0, l . (N v + w) = 0. Returns v."""
    multipliers = project(inertia, u, normals, rates)
    v = u + np.linalg.solve(inertia, normals.T @ multipliers)
    admitted = normals @ v + rates
    # The size of the terms that cancel in N v + w: velocities, and the share of each (possibly huge) impulse.
    shares = np.abs(normals @ np.linalg.solve(inertia, normals.T)) @ multipliers
    speed = 1 + np.abs(normals).max() * np.abs(u).max() + np.abs(rates).max() + shares.max()
    assert multipliers.min() >= 0
    assert admitted.min() >= -1e-13 * speed
    assert np.abs(multipliers * admitted).max() <= 1e-13 * speed * (1 + multipliers.max())
    return v


@given(cones())
def test_moving_boundaries_are_projected_optimally(cone):
    v = check_optimality(*cone)
    try:
        expected = naive.nearest_velocity(*cone)
    except ValueError:  # quadprog stumbles over cones without interior; optimality, just checked, is sufficient
        return
    assert np.allclose(v, expected, rtol=0, atol=1e-8 * (1 + np.abs(expected).max()))


@given(cones(moving=False))
def test_two_cones_theorem(cone):
    # 1986, section 8: u = u+ - P with u+ = prox(V, u), -P = prox(N, u) (8.4), P . u+ = 0 (8.5), in the kinetic metric.
    inertia, u, normals, rates = cone
    after = check_optimality(inertia, u, normals, rates)
    polar = naive.nearest_in_polar(inertia, u, normals)
    size = 1 + u @ inertia @ u
    assert np.allclose(after + polar, u, rtol=0, atol=1e-9 * size)
    assert abs((after - u) @ inertia @ after) <= 1e-9 * size
    # Carnot's theorem (8.6): the energy lost is the energy of the velocity lost.
    lost = u @ inertia @ u - after @ inertia @ after
    assert lost == pytest.approx((u - after) @ inertia @ (u - after), abs=1e-9 * size)
    # Idempotent: the projection of an admissible velocity is itself.
    again = after + np.linalg.solve(inertia, normals.T @ project(inertia, after, normals, rates))
    assert np.allclose(again, after, rtol=0, atol=1e-9 * size)


@given(vectors(3), vectors(3), st.floats(-2, 2))
def test_one_constraint(u, g, rate):
    # 1986, eq. 10.7 with f = -gap, a moving boundary and the metric A = diag(1, 2, 4).
    if np.linalg.norm(g) < 0.1:
        return
    inertia = np.diag([1.0, 2.0, 4.0])
    inverse = np.linalg.inv(inertia)
    excess = g @ u + rate
    expected = u if excess >= 0 else u - excess / (g @ inverse @ g) * inverse @ g
    v = u + inverse @ (g * project(inertia, u, g[None], np.array([rate])))
    assert np.allclose(v, expected, rtol=0, atol=1e-13 * (1 + abs(rate) / np.linalg.norm(g)))


@given(vectors(3), vectors(3), vectors(3))
def test_two_constraints_by_the_dual_basis(u, g1, g2):
    # The four dihedral regions of 1986, section 10: u is kept; projected on one face; on the other; on the edge,
    # where u+ = u - sum (u . g_a) gamma^a with the dual basis gamma of g1, g2 in their plane.
    gram = np.array([[g1 @ g1, g1 @ g2], [g1 @ g2, g2 @ g2]])
    if np.linalg.det(gram) < 1e-3:
        return
    dual = np.linalg.solve(gram, np.array([g1, g2]))
    candidates = [
        u,
        u - (u @ g1) / (g1 @ g1) * g1,
        u - (u @ g2) / (g2 @ g2) * g2,
        u - (u @ g1) * dual[0] - (u @ g2) * dual[1],
    ]
    admitted = [v for v in candidates if min(v @ g1, v @ g2) >= -1e-12]
    expected = min(admitted, key=lambda v: np.sum((v - u) ** 2))
    v = check_optimality(np.eye(3), u, np.array([g1, g2]), np.zeros(2))
    assert np.allclose(v, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("degrees", [-60.0, -20.0, 20.0, 60.0])
def test_the_reports_example_of_a_corner(degrees):
    # 1986, section 8: walls q2 >= 0 and q1 cos a + q2 sin a <= 0, before the shock u = (w, 0). For a < 0 the motion
    # goes on along the rising wall with (w sin^2 a, -w sin a cos a); for a >= 0 it stops.
    angle, w = np.radians(degrees), 3.0
    normals = np.array([[0.0, 1.0], [-np.cos(angle), -np.sin(angle)]])
    u = np.array([w, 0.0])
    v = u + normals.T @ project(np.eye(2), u, normals, np.zeros(2))
    expected = w * np.sin(angle) * np.array([np.sin(angle), -np.cos(angle)]) if angle < 0 else np.zeros(2)
    assert np.allclose(v, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", [1e-1, 1e-3, 1e-5, 1e-7])
def test_sharp_wedge(angle):
    # Two walls that close at a small angle, pushed into by u = (1, 0): normals (-sin a, cos a), (-sin a, -cos a); the
    # nearest admissible velocity is 0 and the impulses are 1 / (2 sin a) each.
    normals = np.array([[-np.sin(angle), np.cos(angle)], [-np.sin(angle), -np.cos(angle)]])
    u = np.array([1.0, 0.0])
    multipliers = project(np.eye(2), u, normals, np.zeros(2))
    assert np.allclose(multipliers, 0.5 / np.sin(angle), rtol=1e-14, atol=0)
    assert np.allclose(u + normals.T @ multipliers, 0, rtol=0, atol=1e-15 / np.sin(angle))


def test_many_dependent_constraints(rng):
    # 60 supporting half-spaces of one cone in 3 dimensions: only the velocity is unique.
    for _ in range(20):
        inertia = np.diag(rng.uniform(0.5, 3, size=3))
        angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
        normals = np.column_stack([np.cos(angle), np.sin(angle), np.ones(60)])
        u = rng.normal(size=3)
        v = check_optimality(inertia, u, normals, np.zeros(60))
        assert np.allclose(v, naive.nearest_velocity(inertia, u, normals, np.zeros(60)), rtol=0, atol=1e-9)


def test_light_and_heavy_freedoms():
    # Masses 1e-6 and 1e6 bound together (n = (1, 1)): momentum goes to the light one. l = -(n . u) / (n A^-1 n).
    inertia, normal = np.diag([1e-6, 1e6]), np.array([[1.0, 1.0]])
    u = np.array([-1.0, -1.0])
    multipliers = project(inertia, u, normal, np.zeros(1))
    assert multipliers[0] == pytest.approx(2.0 / (1e6 + 1e-6), rel=1e-14)


def test_contradicting_boundaries_are_refused():
    # Two walls that close on the particle: v >= 1 and v <= -1.
    with pytest.raises(cd.InputError, match=r"contradict.*no velocity.*check"):
        project(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))


def test_squeezed_between_walls_that_move_alike():
    # v >= 0.1 and v <= 0.1 up to the rounding of the speeds of the walls: no contradiction.
    for rounding in (-1e-16, 0.0, 1e-16):
        rates = np.array([-0.1 - rounding, 0.1])
        multipliers = project(np.eye(1), np.array([-3.0]), np.array([[1.0], [-1.0]]), rates)
        assert np.allclose(multipliers, [3.1, 0.0], rtol=0, atol=1e-14)


def test_cone_that_is_a_point():
    # Positively dependent normals in five dimensions (n_6 among them) admit the velocity 0 alone.
    normals = np.vstack([np.eye(5), -np.arange(1.0, 6.0)])
    inertia = np.diag([1.0, 2.0, 3.0, 4.0, 5.0]) + 0.3
    for u in np.vstack([np.eye(5), -np.eye(5), np.ones((1, 5))]):
        v = check_optimality(inertia, u, normals, np.zeros(6))
        assert np.allclose(v, 0, rtol=0, atol=1e-14)
