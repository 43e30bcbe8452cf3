"""Contact laws: every solution of the local problem obeys the law as it is written, and agrees with naive twins."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import contactdynamics as cd
import naive
from contactdynamics.problem import laws
from contactdynamics.state import OPEN, SEPARATING, SLIDING, STICKING

pytestmark = pytest.mark.modes

numbers = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 6))
coefficients = st.one_of(st.sampled_from([0.0, 0.3, 1.0, 2.0]), st.floats(0.001, 2))


@st.composite
def local_problems(draw, d, positive=False):
    """W = L L^T + eps I (from well conditioned to nearly singular, strongly coupled), b, c."""
    factor = np.array(draw(st.lists(numbers, min_size=d * d, max_size=d * d))).reshape(d, d)
    eps = draw(st.sampled_from([1.0, 1e-2, 1e-4, 1e-8]))
    size = draw(st.sampled_from([1e-6, 1.0, 1e6]))
    w = size * (factor @ factor.T + eps * np.eye(d))
    b = np.array(draw(st.lists(numbers, min_size=d, max_size=d)))
    c = np.array(draw(st.tuples(coefficients, coefficients)))
    if positive:
        c = np.maximum(c, 0.01)
    return w, b, c


def solved(w, b, c):
    p = np.empty(len(b))
    status = laws.solve_contact(w, b, c, p)
    return p, b + w @ p, status


def check_law(w, b, c):
    """The statements of 2004, eqs. 26, 27 and 31, for the solution of one contact."""
    p, v, status = solved(w, b, c)
    d = len(b)
    rho = d / np.trace(w)
    size = max(np.linalg.norm(p), rho * np.linalg.norm(b))  # impulse
    speed = size / rho
    assert np.isfinite(p).all()
    below, outside, product, missing = naive.law_errors(p, v, c)
    sampled = 2e-5 if d == 3 else 0.0  # section() has finitely many points: relative error (pi / 2000)^2 / 2
    assert below <= 1e-12 * speed  # U_n >= 0
    assert outside <= 1e-12 * size  # P in the cone
    assert product <= 1e-12 * size * speed  # U_n > 0 implies P = 0
    assert missing <= 1e-11 * size * speed + sampled * size * speed  # maximal dissipation
    residual = np.empty(d)
    laws.natural_map(p, v, c, rho, residual)
    assert np.linalg.norm(residual) <= 1e-12 * size
    # de Saxce's bipotential, zero on the law.
    assert abs(v @ p + laws.dissipation(v, c) * p[0]) <= 1e-11 * size * speed
    if b[0] >= 0:  # a contact that separates by itself is passive (1986, section 9)
        assert not p.any() and status == SEPARATING
    if status == STICKING:
        assert np.abs(v).max() <= 1e-12 * speed
    if status == SEPARATING:
        assert not p.any()


@given(local_problems(2))
@example((np.array([[1.0, 1.9], [1.9, 4.0]]), np.array([-1.0, -1.0]), np.array([2.0, 2.0])))  # a jam: W_nn < c W_nt
@example((np.array([[1.0, -1.9], [-1.9, 4.0]]), np.array([-1.0, 1.0]), np.array([2.0, 2.0])))
@example((np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([-1.0, -1.0]), np.array([1.0, 0.5])))  # W singular
@example((np.eye(2), np.array([1.0, 0.0]), np.zeros(2)))  # a frictionless contact that separates along its normal
def test_two_components_obey_the_law(problem):
    check_law(*problem)


@given(local_problems(3))
@example((np.diag([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 0.0]), np.array([0.5, 0.5])))  # nothing slides
@example((np.diag([1.0, 0.0, 0.0]), np.array([-1.0, 1.0, 0.0]), np.array([0.5, 0.5])))  # W_tt = 0
@example((np.diag([1.0, 1.0, 1.0]), np.array([-1.0, 1.0, 1.0]), np.array([0.5, 0.0])))  # cone flat along t2
@example((np.diag([2.0, 1.0, 2.0]) - 0.5 * np.eye(3)[::-1], np.array([-1.0, 0.0, 0.0]), np.array([0.0, 0.3])))
@example((np.eye(3), np.array([1.0, 0.0, 0.0]), np.zeros(2)))
def test_three_components_obey_the_law(problem):
    check_law(*problem)


@given(local_problems(1))
def test_one_component_is_signorini(problem):
    w, b, c = problem
    p, v, _ = solved(w, b, c)
    # 0 <= U_n, 0 <= P_n, U_n P_n = 0 has the one solution P_n = max(0, -b / w).
    assert p[0] == max(0.0, -b[0] / w[0, 0])
    assert abs(v[0] - max(0.0, b[0])) <= 1e-15 * abs(b[0])


@given(local_problems(2))
def test_two_components_agree_with_all_cases_tried(problem):
    w, b, c = problem
    p, _, _ = solved(w, b, c)
    found = naive.two(w, b, c)
    # 13.13 shows that there is one solution when b_n < 0; when b_n >= 0 the passive one is chosen. In a case on the
    # edge of two the naive twin may find none or both: then the law itself, tested above, decides.
    if found:
        size = max(np.linalg.norm(p), np.linalg.norm(found[0]))
        condition = np.linalg.cond(w)
        assert min(np.linalg.norm(p - q) for q in found) <= 1e-14 * max(condition, 100) * size


@given(local_problems(3, positive=True))
def test_three_components_agree_with_a_scan(problem):
    w, b, c = problem
    p, _, _ = solved(w, b, c)
    found = naive.three(w, b, c)
    if found:  # strong coupling may have several solutions: ours must be one of them
        size = max(np.linalg.norm(p), np.linalg.norm(found[0]))
        condition = np.linalg.cond(w)
        assert min(np.linalg.norm(p - q) for q in found) <= 1e-13 * max(condition, 1e3) * size


@pytest.mark.parametrize("d", [2, 3])
def test_the_twins_find_a_solution_nearly_always(rng, d):
    # Otherwise the two comparisons above would compare nothing.
    solutions = []
    for _ in range(60):
        factor = rng.normal(size=(d, d))
        w = factor @ factor.T + 0.01 * np.eye(d)
        b = rng.normal(size=d)
        c = rng.uniform(0.1, 2, size=2)
        found = {2: naive.two, 3: naive.three}[d](w, b, c)
        solutions.append(len(found))
        p, _, _ = solved(w, b, c)
        assert min(np.linalg.norm(p - q) for q in found) <= 1e-9 * max(1, np.linalg.norm(p))
    assert min(solutions) >= 1


@pytest.mark.parametrize("d", [1, 2, 3])
def test_natural_map_agrees_with_its_definition(rng, d):
    for _ in range(200):
        p, v, c = rng.normal(size=d), rng.normal(size=d), rng.uniform(0, 2, size=2)
        c[rng.random(2) < 0.1] = 0
        rho, out = rng.uniform(0.1, 10), np.empty(d)
        laws.natural_map(p, v, c, rho, out)
        assert np.allclose(out, naive.natural_map(p, v, c, rho), rtol=0, atol=1e-12 * (1 + rho))


def test_natural_map_tells_a_wrong_impulse(rng):
    for _ in range(100):
        factor, c = rng.normal(size=(3, 3)), rng.uniform(0.1, 1, size=2)
        w, b = factor @ factor.T + 0.1 * np.eye(3), rng.normal(size=3)
        p, _, _ = solved(w, b, c)
        rho, out = 3 / np.trace(w), np.empty(3)
        wrong = p + rho * np.abs(b).max() * rng.choice([-1, 1], size=3)
        laws.natural_map(wrong, b + w @ wrong, c, rho, out)
        assert np.linalg.norm(out) > 1e-2 * rho * np.linalg.norm(b)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_dissipation_is_the_support_function_of_the_section(rng, d):
    for _ in range(100):
        v, c = rng.normal(size=d), rng.uniform(0, 2, size=2)
        # The sampled ellipse misses the supremum by at most (pi / SECTION)^2 / 2 = 1.3e-6 of its size.
        assert naive.dissipation(v, c) == pytest.approx(laws.dissipation(v, c), rel=2e-6, abs=1e-14)


@given(local_problems(2), st.floats(0.01, 100), st.floats(0.01, 100))
def test_impulse_scales_with_mass_and_speed(problem, mass, speed):
    w, b, c = problem
    # W ~ 1 / mass and b ~ speed: P ~ mass * speed, whatever the units.
    p, _, _ = solved(w, b, c)
    scaled, _, _ = solved(w / mass, b * speed, c)
    assert np.allclose(scaled, p * mass * speed, rtol=1e-6, atol=1e-9 * mass * speed * np.linalg.norm(p))


def test_sense_of_the_two_sided_coefficients():
    # c[0] resists sliding in the negative sense, c[1] in the positive one: W = I, b_n = -1 gives P_n = 1.
    assert solved(np.eye(2), np.array([-1.0, -9.0]), np.array([0.2, 0.7]))[0].tolist() == [1.0, 0.2]
    assert solved(np.eye(2), np.array([-1.0, +9.0]), np.array([0.2, 0.7]))[0].tolist() == [1.0, -0.7]


def test_ellipse_slides_along_its_normal():
    # W = I and P_n = 1: P_t = (0.3 cos a, 0.6 sin a) on the ellipse and U_t = -alpha (P_t1 / 0.09, P_t2 / 0.36),
    # so b_t = U_t - P_t. Take a = 60 degrees, alpha = 2.
    p_t = np.array([0.3 * 0.5, 0.6 * np.sqrt(0.75)])
    b_t = -2 * p_t / np.array([0.09, 0.36]) - p_t
    p, _, status = solved(np.eye(3), np.array([-1.0, *b_t]), np.array([0.3, 0.6]))
    assert np.allclose(p, [1.0, *p_t], rtol=0, atol=1e-14) and status == SLIDING


def test_coefficients_of_each_kind_of_law():
    rest, moving = np.zeros(1), np.array([-2.0])
    assert cd.Law(friction=0.4).coefficients(moving, SLIDING) == (0.4, 0.4)
    static = cd.Law(friction=0.4, static_friction=0.6)
    assert static.coefficients(rest, OPEN) == (0.6, 0.6)  # has not slid yet
    assert static.coefficients(moving, OPEN) == (0.4, 0.4)
    assert static.coefficients(moving, STICKING) == (0.6, 0.6)
    assert static.coefficients(rest, SLIDING) == (0.4, 0.4)  # slid during the last step
    assert cd.Law(friction=lambda v: 0.1 + v).coefficients(np.array([3.0, 4.0]), SLIDING) == (5.1, 5.1)
    assert cd.Law(two_sided=(0.1, 0.2)).coefficients(moving, SLIDING) == (0.1, 0.2)
    assert cd.Law(anisotropic=(0.1, 0.2)).coefficients(np.ones(2), SLIDING) == (0.1, 0.2)


@pytest.mark.parametrize(
    "law, expected",
    [
        (cd.Law(), True),
        (cd.Law(restitution=0.5, tangential_restitution=0.1), True),
        (cd.Law(friction=0.1), False),
        (cd.Law(static_friction=0.1), False),
        (cd.Law(friction=lambda v: 0.0), False),
        (cd.Law(two_sided=(0.0, 0.1)), False),
        (cd.Law(anisotropic=(0.0, 0.1)), False),
    ],
)
def test_frictionless(law, expected):
    assert law.frictionless is expected


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("tangential", [-0.3, 0.0, 0.5, 1.0])
def test_weighted_velocities_give_newtons_restitution(restitution, tangential):
    # One step of a free particle with mass 2 that is in contact: gamma is large enough for the weighted tangential
    # velocity to vanish, hence U_n+ = -rho U_n-, U_t+ = -tau U_t- (2004, eqs. 43, 44).
    law = cd.Law(friction=9.0, restitution=restitution, tangential_restitution=tangential)
    system = cd.System(inertia=[2.0, 2.0], constraints=[cd.Constraint(lambda t, q: q[1], law=law)])
    step = cd.schemes.midpoint(system, system.start((0.0, 0.0), (0.5, -1.0)), 1e-3)
    assert np.allclose(step.state.u, [-tangential * 0.5, restitution], rtol=0, atol=1e-14)
    # Energy: m/2 (rho^2 U_n^2 + tau^2 U_t^2).
    assert step.kinetic_after == pytest.approx(restitution**2 + 0.25 * tangential**2, abs=1e-14)


def test_restitution_with_sliding_friction():
    # gamma = 0.1 slides: P_n = m (1 + rho) |U_n| = 2 * 1.5 = 3, P_t = 0.1 * 3 = 0.3 against the motion, so that
    # u_x = 0.5 - 0.3 / 2 = 0.35 and u_y = 0.5.
    law = cd.Law(friction=0.1, restitution=0.5)
    system = cd.System(inertia=[2.0, 2.0], constraints=[cd.Constraint(lambda t, q: q[1], law=law)])
    step = cd.schemes.midpoint(system, system.start((0.0, 0.0), (0.5, -1.0)), 1e-3)
    assert np.allclose(step.state.u, [0.35, 0.5], rtol=0, atol=1e-14)
    assert np.allclose(np.abs(step.state.impulses), [[3.0, 0.3]], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"friction": -0.1}, "-0.1 >= 0"),
        ({"friction": float("nan")}, "nan finite"),
        ({"friction": float("inf")}, "inf finite"),
        ({"friction": "0.3"}, "'0.3' number"),
        ({"friction": None}, "None number"),
        ({"friction": [0.3]}, "[0.3] number"),
        ({"friction": 0.3, "two_sided": (0.1, 0.2)}, "one kind exactly one"),
        ({"two_sided": (0.1, 0.2), "anisotropic": (0.1, 0.2)}, "one kind exactly one"),
        ({"two_sided": 0.3}, "two_sided=0.3 two coefficients"),
        ({"two_sided": (0.1, -0.2)}, "-0.2 >= 0"),
        ({"anisotropic": (0.1, 0.2, 0.3)}, "anisotropic=(0.1, 0.2, 0.3) two coefficients"),
        ({"friction": 0.5, "static_friction": 0.4}, "static_friction=0.4 friction=0.5 exchange"),
        ({"two_sided": (0.1, 0.2), "static_friction": 0.4}, "static_friction friction="),
        ({"restitution": 1.1}, "restitution=1.1 0 to 1"),
        ({"restitution": -0.1}, "restitution=-0.1 0 to 1"),
        ({"restitution": float("nan")}, "restitution=nan 0 to 1"),
        ({"restitution": "a"}, "restitution='a' 0 to 1"),
        ({"restitution": None}, "restitution=None 0 to 1"),
        ({"tangential_restitution": -1.1}, "tangential_restitution=-1.1 [-1, 1]"),
        ({"tangential_restitution": "a"}, "tangential_restitution='a' [-1, 1]"),
    ],
)
def test_wrong_law_is_refused(options, words):
    with pytest.raises(cd.InputError) as caught:
        cd.Law(**options)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for word in words.split(" "):
        assert word in message


def test_friction_function_must_return_a_coefficient():
    for value in (-1.0, float("nan")):
        with pytest.raises(cd.InputError, match=f"friction function returned {value}.*>= 0"):
            cd.Law(friction=lambda v, value=value: value).coefficients(np.ones(1), SLIDING)
