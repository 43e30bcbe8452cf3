"""Moving sets, their projections, and the sweeping process (2004, section 2)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import contactdynamics as cd
from contactdynamics.experiments import _springs
from contactdynamics.systems import sets
from contactdynamics.systems.sweeping import lazy_velocity

# ---- projections -----------------------------------------------------------------------------------------------------


def random_parts(rng, n, count):
    """Balls, half-spaces, boxes and polyhedra in n dimensions with a common point; some only touch it."""
    inside, parts = rng.normal(size=n), []
    for _ in range(count):
        slack = 0.0 if rng.random() < 0.2 else 10 ** rng.uniform(-4, 1)
        kind = rng.integers(4)
        if kind == 0:
            centre = 10 ** rng.uniform(-1, 2) * rng.normal(size=n)
            parts.append(sets.Ball(centre, np.linalg.norm(inside - centre) * (1 + 1e-12) + slack))
        elif kind == 1:
            normal = rng.normal(size=n)
            parts.append(sets.HalfSpace(normal, normal @ inside + slack))
        elif kind == 2:
            parts.append(sets.Box(inside - slack, np.where(rng.random(n) < 0.3, np.inf, inside + rng.exponential(n))))
        else:
            normals = rng.normal(size=(n + 2, n))
            parts.append(sets.Polyhedron(normals, normals @ inside + slack))
    return inside, parts


def check_nearest(set, x, y, scale):
    """Karush-Kuhn-Tucker: y lies in the set and x - y is a nonnegative combination of the gradients active there."""
    values, gradients = set.rows(0.0, y)
    assert values.max() <= 1e-10 * scale
    active = values > -1e-8 * scale
    rest = nnls(gradients[active].T, x - y)[1] if active.any() else np.linalg.norm(x - y)
    assert rest <= 1e-8 * scale


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(1, 4))
def test_projection_on_intersections_is_optimal(seed, n, count):
    rng = np.random.default_rng(seed)
    inside, parts = random_parts(rng, n, count)
    x = inside + 10 ** rng.uniform(-2, 3) * rng.normal(size=n)
    both = sets.Intersection(*parts)
    y = both.project(0.0, x)
    scale = max(1.0, np.abs(x).max(), *(np.abs(p.centre).max() for p in parts if isinstance(p, sets.Ball)), 0.0)
    check_nearest(both, x, y, scale)
    assert np.linalg.norm(x - y) <= np.linalg.norm(x - inside) * (1 + 1e-9)
    for part in parts:  # closed forms against the general method
        alone = sets.Set.project(part, 0.0, x)
        assert part.project(0.0, x) == pytest.approx(alone, abs=1e-10 * scale)


def dykstra(parts, x, sweeps):
    """The naive twin: Dykstra's alternating projections."""
    y, corrections = x, [np.zeros(len(x))] * len(parts)
    for _ in range(sweeps):
        for k, part in enumerate(parts):
            z = part.project(0.0, y + corrections[k])
            corrections[k] = y + corrections[k] - z
            y = z
    return y


def test_intersection_against_alternating_projections():
    parts = [sets.Ball((0, 0, 0), 1.0), sets.Ball((1, 0.2, 0), 1.0), sets.HalfSpace((0, 1, 1), 0.3)]
    for x in ((0.5, 3, 2), (4, -3, 0.2), (-2, 1, 1), (0.5, 0.1, 5)):
        expected = dykstra(parts, np.array(x, dtype=float), 3000)
        assert sets.Intersection(*parts).project(0.0, x) == pytest.approx(expected, abs=1e-9)


def apart(n, gap, rng):
    """Pairs of sets in n dimensions with ``gap`` between them, in any direction, and a third that would meet both."""
    away = rng.normal(size=n)
    away /= np.sqrt(away @ away)
    left, right = sets.Ball(np.zeros(n), 1.0), sets.Ball((2 + gap) * away, 1.0)
    wall, large = sets.HalfSpace(-away, -(1 + gap)), sets.Ball(np.zeros(n), 10.0)
    square = np.eye(n) + 3 * np.outer(away, away)
    egg = sets.Region(lambda t, x: x @ square @ x - 4.0, gradient=lambda t, x: 2 * square @ x)  # reaches 1 along `away`
    return (left, right), (left, wall), (left, wall, large), (egg, wall)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("gap", [3.0, 0.1, 1e-4, 1e-8])
def test_parts_that_do_not_meet_are_told_whatever_the_rounding(n, gap, rng):
    # Newton's method has nowhere to go there, and the last bit decides where it wanders: contradictions, multipliers
    # without bounds, or neither. The point of the user is told, always in the same words.
    for parts in apart(n, gap, rng):
        x = rng.normal(size=n) * 3 + 4 * np.eye(n)[0]
        with pytest.raises(cd.InputError) as caught:
            sets.Intersection(*parts).project(0.0, x)
        assert f"No point near x = {np.round(x, 6).tolist()}" in str(caught.value)
        assert "its parts do not meet or hardly do" in str(caught.value)


@pytest.mark.parametrize("overlap", [0.1, 1e-4, 1e-8])
def test_a_thin_lens_is_found(overlap):
    # The tip of the lens of two unit disks with centres 2 - overlap apart; it is known to eps / (angle of the normals).
    half = 1 - overlap / 2
    tip = np.array([half, math.sqrt((1 - half) * (1 + half))])
    lens = sets.Intersection(sets.Ball((0, 0), 1), sets.Ball((2 - overlap, 0), 1))
    for x in ((0, 3), (0.3, 2), (5, 5)):
        assert lens.project(0.0, x) == pytest.approx(tip, abs=64 * np.finfo(float).eps / tip[1])


def test_projection_on_a_region_meets_its_normal():
    # Ellipse x^2/4 + y^2 = 1: the nearest point to (x, y) is (4 x / (4 + l), y / (1 + l)), l the root of f = 0.
    ellipse = sets.Region(lambda t, x: x[0] ** 2 / 4 + x[1] ** 2 - 1)
    for l in (0.01, 0.5, 3.0, 30.0):
        for angle in (0.1, 0.8, 1.5, 4.0):
            near = np.array([2 * math.cos(angle), math.sin(angle)])
            x = near + l * near / np.array([4.0, 1.0])  # along the normal
            assert ellipse.project(0.0, x) == pytest.approx(near, abs=1e-13 * (1 + l))


def test_moved_set_is_the_set_seen_from_its_axes():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    part = sets.Intersection(sets.Ball((0, 0, 0), 1.5), sets.Box((-1, -1, -1), (1, 1, 1)))
    moved = sets.Moved(part, shift=lambda t: (t, 0, 0), rotation=turn)
    x = np.array([5.0, 2.0, -3.0])
    expected = turn @ part.project(0.0, turn.T @ (x - (2, 0, 0))) + (2, 0, 0)
    assert moved.project(2.0, x) == pytest.approx(expected, abs=1e-14)
    assert sets.Set.project(moved, 2.0, x) == pytest.approx(expected, abs=1e-13)


def test_a_point_inside_is_not_touched():
    x = np.array([0.1, 0.2])
    for set in (
        sets.Ball((0, 0), 1), sets.Box((-1, -1), (1, 1)), sets.HalfSpace((1, 0), 1),
        sets.Polyhedron.hull(np.eye(3)[:, :2]), sets.Region(lambda t, x: x @ x - 1),
        sets.Moved(sets.Ball((0, 0), 1), rotation=lambda t: np.eye(2)),
        sets.Intersection(sets.Ball((0, 0), 1), sets.HalfSpace((1, 0), 1)),
    ):  # fmt: skip
        assert (set.project(0.0, x) == x).all() and set.violation(0.0, x) == 0.0


# ---- the process -----------------------------------------------------------------------------------------------------


def wandering():
    """A ball and a half-space that move about but always meet: balls of radius 1 whose centre stays in it."""
    ball = sets.Ball(lambda t: (math.sin(3 * t), math.cos(2 * t), 0.4 * math.sin(7 * t)), 1.0)
    half = sets.HalfSpace((0, 0, 1), lambda t: 0.6 + 0.1 * math.cos(t))
    return sets.Intersection(ball, half)


def test_rate_independence():
    # The path depends on the order of the sets alone: s(t) = t^3 + t runs through the same sets at other times.
    def slow(t):
        return t**3 + t

    ball = sets.Ball(lambda s: (math.sin(3 * s), math.cos(2 * s)), 0.7)
    faster = sets.Ball(lambda t: (math.sin(3 * slow(t)), math.cos(2 * slow(t))), 0.7)
    times = np.linspace(0, 1.2, 50)
    start = (0.0, 0.9)
    assert (cd.sweep(faster, start, times).q == cd.sweep(ball, start, slow(times)).q).all()


def test_non_expansion():
    # Two solutions never come further apart (2004, section 2.3); the projection on a convex set is a contraction.
    process, times = wandering(), np.linspace(0, 5, 400)
    rng = np.random.default_rng(3)
    starts = [process.project(0.0, 2 * rng.normal(size=3)) for _ in range(4)]
    paths = [cd.sweep(process, q, times).q for q in starts]
    for i in range(4):
        for j in range(i):
            distance = np.linalg.norm(paths[i] - paths[j], axis=1)
            assert np.diff(distance).max() <= 1e-14
            assert distance[-1] < distance[0]


def test_tractrix_and_order_one():
    # Centre at t, rope of length 1, seen under the angle a: da/dt = -sin a, so tan(a/2) = exp(-t) from a = pi/2.
    # At t = 2: q = (t - cos a, sin a).
    angle = 2 * math.atan(math.exp(-2.0))
    exact = np.array([2 - math.cos(angle), math.sin(angle)])
    disk = sets.Ball(lambda t: (t, 0.0), 1.0)
    for scheme in ("catching-up", "lazy"):
        errors = []
        for count in (50, 100, 200):
            swept = cd.sweep(disk, (0, 1), np.linspace(0, 2, count + 1), scheme=scheme)
            errors.append(np.linalg.norm(swept.q[-1] - exact))
            if scheme == "catching-up":
                assert swept.violation.max() <= 1e-15
        assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.06)
        assert np.log2(errors[1] / errors[2]) == pytest.approx(1, abs=0.04)


def test_lazy_selector_in_a_corner():
    # x >= t and y >= 2 t, both active at the origin: the shortest velocity that satisfies both is (1, 2).
    corner = sets.Intersection(sets.HalfSpace((-1, 0), lambda t: -t), sets.HalfSpace((0, -3), lambda t: -6 * t))
    assert lazy_velocity(corner, 0.0, (0, 0)) == pytest.approx([1, 2], abs=1e-12)
    # Walls at an angle: x >= t and x + y >= t. v = (1, 0) satisfies both.
    wedge = sets.Intersection(sets.HalfSpace((-1, 0), lambda t: -t), sets.HalfSpace((-1, -1), lambda t: -t))
    assert lazy_velocity(wedge, 0.0, (0, 0)) == pytest.approx([1, 0], abs=1e-12)
    # A boundary that recedes, and the interior: no velocity.
    assert (lazy_velocity(corner, 0.0, (1, 1)) == 0).all()
    assert (lazy_velocity(sets.HalfSpace((1, 0), lambda t: t), 0.0, (0, 0)) == 0).all()


def test_a_jump_of_the_set_projects():
    # The interval [-1, 1] jumps to [4, 6] at t = 1: the point goes to 4, and back to 1 after the jump back at t = 2.
    box = sets.Box(lambda t: [-1.0 if t < 1 or t >= 2 else 4.0], lambda t: [1.0 if t < 1 or t >= 2 else 6.0])
    assert cd.sweep(box, [0.5], [0, 0.9, 1, 1.5, 2, 3]).q[:, 0].tolist() == [0.5, 0.5, 4, 4, 1, 1]


def test_obstacle_that_pushes_a_point_aside():
    # A disk of radius 1 comes along x with speed 1; the point starts on its rim, at the angle b0 from the axis.
    # Its velocity is along the normal, so the same equation as the tractrix with the other sign:
    # db/dt = sin b: tan(b/2) = tan(b0/2) exp(t), until b = pi/2, where the disk lets it go at t1 = -log tan(b0/2).
    b0 = 0.6
    outside = sets.Region(lambda t, x: 1 - math.hypot(x[0] - t, x[1]))
    release = -math.log(math.tan(b0 / 2))
    start = np.array([math.cos(b0), math.sin(b0)])
    for step, tolerance in ((0.01, 0.01), (0.005, 0.005)):
        swept = cd.sweep(outside, start, np.arange(0, release + 1, step))
        exact = 2 * np.arctan(np.minimum(1.0, math.tan(b0 / 2) * np.exp(swept.times)))
        path = np.stack([np.minimum(swept.times, release) + np.cos(exact), np.sin(exact)], axis=1)
        assert np.linalg.norm(swept.q - path, axis=1).max() < tolerance
        assert swept.violation.max() < 1e-14


def test_play_operator():
    # One elastoplastic spring is the play operator: an interval of half-width c about d(t) drags the point.
    drive = np.array([0, 1, 3, 2, 0.5, 2.9, -2, -2, 4.0])
    c, expected = 1.0, [0.0]
    for d in drive[1:]:
        expected.append(min(max(expected[-1], d - c), d + c))
    times = np.arange(len(drive))
    box = sets.Box(lambda t: [drive[int(t)] - c], lambda t: [drive[int(t)] + c])
    assert cd.sweep(box, [0.0], times).q[:, 0].tolist() == expected


@pytest.mark.parametrize("amplitude", [0.2, 0.6, 1.2, 3.0])
def test_network_of_springs_has_masing_loops(amplitude):
    # The rule is derived in `_springs`; here also its first branch by hand: springs (4, 2, 1) N/m in a bundle, limits
    # 1 N, in series with 6 N/m. All elastic: F = 7 x, d = x + 7 x / 6. The first yields at x = 1/4: F = 7/4, d = 13/24.
    drive, force = _springs.loop(amplitude, 40)
    assert force == pytest.approx(_springs.exact_loop(amplitude, 40), abs=1e-12)
    elastic = drive[:41] <= 13 / 24
    assert force[:41][elastic] == pytest.approx(drive[:41][elastic] * 42 / 13, abs=1e-12)
    if amplitude > 2:  # all three have yielded: 3 N
        assert force.max() == pytest.approx(3.0, abs=1e-12) and force.min() == pytest.approx(-3.0, abs=1e-12)


def test_a_network_does_not_depend_on_the_number_of_steps():
    coarse, fine = _springs.loop(1.2, 10)[1], _springs.loop(1.2, 40)[1]
    assert coarse == pytest.approx(fine[::4], abs=1e-12)


# ---- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: cd.sweep(3, (0, 0), [0, 1]), "give one of contactdynamics.systems.sets"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), (0, 0), [0, 1], scheme="euler"), "choose one of catching-up, lazy"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), (0, 0), [1, 0]), "increasing"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), (0, 0), []), "increasing"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), (0, math.nan), [0, 1]), "finite numbers"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), [[0, 0]], [0, 1]), "one point"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), "here", [0, 1]), "give numbers"),
        (lambda: cd.sweep(sets.Ball((0, 0), 1), (2, 0), [0, 1]), "q0 lies outside the set at t = 0 (by 1)"),
        (lambda: cd.sweep(sets.Ball((0, 0, 0), 1), (0, 0), [0, 1]), "centre of the ball has 3 number(s)"),
        (lambda: cd.sweep(sets.Ball((0, 0), lambda t: 1 - t), (0, 0), [0, 2]), "radius of the ball is -1"),
        (lambda: cd.sweep(sets.Ball(lambda t: (t / 0.0 if t else 0, 0), 1), (0, 0), [0]), None),
        (lambda: cd.sweep(sets.Ball(lambda t: (math.inf if t else 0, 0), 1), (0, 0), [0, 1]), "give finite numbers"),
        (lambda: sets.Ball((0, 0), 1).project(0, (math.nan, 2)), "one vector of finite numbers"),
        (lambda: sets.Box((0, 0), (1, 1)).project(0, "here"), "give numbers"),
        (lambda: sets.Ball("x", 1).project(0, (0, 0)), "give numbers, or a function of t"),
        (lambda: sets.Box((1, 0), (0, 1)).project(0, (0, 0)), "box is empty at t = 0"),
        (lambda: sets.HalfSpace((0, 0), 1).project(0, (0, 0)), "normal of the half-space is zero"),
        (lambda: sets.Polyhedron([[1, 0], [0, 0]], [1, 1]).project(0, (0, 0)), "normal of the polyhedron is zero"),
        (lambda: sets.Polyhedron([[1, 0], [-1, 0]], [-1, -1]).project(0, (0, 0)), "Polyhedron is empty at t = 0"),
        (lambda: sets.Polyhedron.hull([(0, 0), (1, 1), (2, 2)]), "no interior"),
        (lambda: sets.Intersection(sets.Ball((0, 0), 1), sets.Ball((5, 0), 1)).project(0, (0, 3)), "do not meet"),
        (lambda: sets.Intersection(sets.Ball((0, 0), 1), sets.Ball((2.0001, 0), 1)).project(0, (0, 3)), "do not meet"),
        (lambda: sets.Intersection(sets.Ball((0, 0), 1), 3), "give sets"),
        (lambda: sets.Intersection(), "give sets"),
        (lambda: sets.Moved(3), "give a set"),
        (lambda: sets.Moved(sets.Ball((0, 0), 1), rotation=[[1, 1], [0, 1]]).project(0, (0, 3)), "not orthogonal"),
        (lambda: sets.Region(3), "give a function of (t, x)"),
        (lambda: sets.Region(lambda t, x: x).project(0, (0, 3)), "must return one finite number"),
        (lambda: sets.Region(lambda t, x: 1.0).project(0, (0, 3)), "gradient of the region vanishes"),
        (lambda: sets.Region(lambda t, x: x[0], gradient=lambda t, x: 1).project(0, (1, 3)), "give 2 finite numbers"),
    ],
)
def test_wrong_input(make, words):
    if words is None:
        make()  # never asked at a time where it would fail
        return
    with pytest.raises(cd.InputError) as caught:
        make()
    assert words in str(caught.value) and "\n" not in str(caught.value)
