"""The bipotential (2003, section 5.2): b >= 0 for all admissible pairs of all laws, and b = 0 exactly on the law."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.problem.laws import natural_map, solve_contact
from contactdynamics.rigid.equations import local
from contactdynamics.state import SEPARATING

H = 0.1  # time step of the laws with forces


def random_law(rng, d, **more):
    """A law of any kind of friction that d components know."""
    kinds = [{"friction": rng.exponential()}, {"friction": 0.0}, {"friction": 0.3, "static_friction": 0.6}]
    kinds += [{"friction": lambda speed: 0.2 + 1 / (1 + speed)}]
    if d == 2:
        kinds += [{"two_sided": tuple(rng.exponential(size=2))}, {"two_sided": (0.0, 0.7)}]
    if d == 3:
        kinds += [{"anisotropic": tuple(rng.exponential(size=2))}, {"anisotropic": (0.0, 0.4)}]
    return cd.Law(**kinds[rng.integers(len(kinds))], **more)


def cone_of(law, u):
    return np.array(law.coefficients(u[1:], 3))


def admissible(rng, law, u):
    """An impulse of the cone for the velocity u: inside, or on its edge."""
    d, c = len(u), cone_of(law, u)
    p_n, share = rng.exponential(), rng.choice([1.0, rng.random()])
    if d == 1:
        return np.array([p_n])
    if d == 2:
        return np.array([p_n, share * p_n * (c[0] if rng.random() < 0.5 else -c[1])])
    angle = rng.uniform(0, 2 * math.pi)
    return p_n * np.array([1.0, share * c[0] * math.cos(angle), share * c[1] * math.sin(angle)])


def random_velocity(rng, d):
    u = rng.normal(size=d)
    u[0] = rng.choice([0.0, abs(u[0])])
    return u


def random_block(rng, d):
    factor = rng.normal(size=(d, d))
    return factor @ factor.T + 0.05 * np.eye(d)


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.sampled_from([1, 2, 3]))
def test_the_inequality(seed, d):
    # For V_n >= 0 and S in the cone: V . S + phi_1(V_T) S_N >= 0. Directly: -V_T . S_T <= phi_1(V_T) S_N by the
    # definition of phi_1 as a support function, and V_n S_n >= 0.
    rng = np.random.default_rng(seed)
    law, u = random_law(rng, d), random_velocity(rng, d)
    p = admissible(rng, law, u)
    b = law.bipotential(u, p)
    assert -1e-12 * (1 + np.linalg.norm(u) * np.linalg.norm(p)) <= b < math.inf
    # Outside K or outside the cone it is infinite.
    assert law.bipotential(u - (u[0] + 0.1) * np.eye(d)[0], p) == math.inf
    assert law.bipotential(u, p - (p[0] + 0.1) * np.eye(d)[0]) == math.inf


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.sampled_from([1, 2, 3]))
def test_zero_is_the_law(seed, d):
    # The exact solution of a contact has b = 0; and where b = 0 within the cone, the natural map vanishes too.
    rng = np.random.default_rng(seed)
    law = random_law(rng, d)
    w, free = random_block(rng, d), 3 * rng.normal(size=d)
    c, p = cone_of(law, np.zeros(d)), np.zeros(d)
    if callable(law.friction):
        law = cd.Law(friction=c[0])  # the coefficient of the step, from the velocity before it
    solve_contact(w, free, c, p)
    u = free + w @ p
    size = (1 + np.linalg.norm(free) + np.linalg.norm(p)) ** 2
    u[0] = max(u[0], 0.0)  # rounding
    assert abs(law.bipotential(u, p * (1 - 1e-15))) <= 1e-9 * size
    # A pair off the law has b > 0: turn the sliding velocity round, or open a contact that pushes.
    if p[0] > 0.01 and d > 1:
        wrong = u.copy()
        wrong[0] += 1.0
        assert law.bipotential(wrong, p * (1 - 1e-15)) >= 0.99 * p[0]
        out = np.empty(d)
        natural_map(p, wrong, c, 1.0, out)
        assert np.linalg.norm(out) > 1e-6


@settings(max_examples=100)
@given(st.integers(0, 10**9), st.sampled_from([2, 3]), st.floats(0, 1), st.floats(-1, 1))
def test_restitution_is_a_law_of_the_weighted_velocity(seed, d, rho, tau):
    rng = np.random.default_rng(seed)
    friction = rng.exponential()
    law = cd.Law(friction=friction, restitution=rho, tangential_restitution=tau)
    before, w = rng.normal(size=d), random_block(rng, d)
    before[0] = -abs(before[0])
    weights = np.append(rho, np.full(d - 1, tau))
    p = np.zeros(d)
    solve_contact(w, before + weights * before, np.full(2, friction), p)
    after = before + w @ p
    weighted = weights * before + after
    weighted[0] = max(weighted[0], 0.0)
    size = 1 + np.linalg.norm(p) * (np.linalg.norm(weighted) + np.linalg.norm(before) + np.linalg.norm(w @ p))
    assert abs(law.bipotential(weighted, p * (1 - 1e-15))) <= 1e-9 * size
    # With the velocity after the impact b is positive where it rebounds: b >= P_n rho |U_n^-|.
    if after[0] > 0:
        assert law.bipotential(after, p * (1 - 1e-15)) >= p[0] * rho * -before[0] * (1 - 1e-9) - 1e-9 * size


@settings(max_examples=100)
@given(st.integers(0, 10**9), st.sampled_from(["cohesion", "tension", "rolling"]))
def test_the_laws_of_scenes(seed, kind):
    # impulse_law and moment_law of scenes; `bound`: c1, c2, rolling, spinning, cohesion h, tension h.
    rng = np.random.default_rng(seed)
    pair = tuple(rng.exponential(size=2))
    options = {
        "cohesion": {"cohesion": rng.exponential() / H},
        "tension": {"tension": rng.exponential() / H},
        "rolling": {"rolling": rng.exponential(), "spinning": rng.exponential()},
    }[kind]
    law = cd.Law(anisotropic=pair, **options)
    bound = np.array([*pair, law.rolling, law.spinning, law.cohesion * H, law.tension * H])
    # A contact's own impulse and moment are solved by turns; without coupling (balls) one turn is exact.
    w, free = np.diag(rng.exponential(size=6) + 0.1), 2 * rng.normal(size=6)
    w[5, 5], w[:3, :3] = w[4, 4], random_block(rng, 3)
    p, m = np.zeros(3), np.zeros(3)
    status = local.solve_contact(w, free, bound, p, m)
    u = free + w @ np.append(p, m)
    size = (1 + np.linalg.norm(free) + np.linalg.norm(p) + np.linalg.norm(m)) ** 2
    u[0] = max(u[0], 0.0)
    b = law.bipotential(u[:3], p, spin=u[3:], moment=m * (1 - 1e-14), time_step=H)
    if status == SEPARATING:  # open: P = 0, and what the contact could have held is left over
        assert (p == 0).all() and b == pytest.approx((bound[4] + bound[5]) * u[0] + slide_of(law, u) * bound[4])
    else:
        assert abs(b) <= 1e-7 * size
    # The inequality: any velocity of K with any admissible impulse and moment.
    v, push = random_velocity(rng, 3), admissible(rng, cd.Law(anisotropic=pair), np.zeros(3))
    turn = rng.normal(size=3)
    hold = np.append(law.spinning, np.full(2, law.rolling / math.sqrt(2))) * push[0] * rng.uniform(-1, 1, size=3)
    assert law.bipotential(v, push - bound[4] * np.eye(3)[0], spin=turn, moment=0 * hold, time_step=H) > -1e-12
    if kind == "rolling":
        assert law.bipotential(v, push, spin=turn, moment=hold) > -1e-12 * (1 + np.abs(hold).max())
        assert law.bipotential(v, push, spin=turn, moment=hold + 2 * push[0] * (law.rolling + law.spinning)) == math.inf
    if kind == "tension":
        pulled = np.array([-rng.random() * bound[5], 0, 0])
        assert law.bipotential(v, pulled, time_step=H) >= 0
        assert law.bipotential(v, pulled - 2 * bound[5] * np.eye(3)[0], time_step=H) == math.inf


def slide_of(law, u):
    return math.hypot(law.anisotropic[0] * u[1], law.anisotropic[1] * u[2])


@settings(max_examples=100)
@given(st.integers(0, 10**9), st.sampled_from([2, 3]))
def test_convex_in_each_argument(seed, d):
    # "séparément convexe": along a segment b lies below its chord, for U with P fixed and for P with U fixed.
    rng = np.random.default_rng(seed)
    law = random_law(rng, d)
    if callable(law.friction):
        law = cd.Law(friction=0.4)
    u, v = random_velocity(rng, d), random_velocity(rng, d)
    p, r = admissible(rng, law, u), admissible(rng, law, u)
    for first, second in (((u, p), (v, p)), ((u, p), (u, r))):
        middle = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
        chord = (law.bipotential(*first) + law.bipotential(*second)) / 2
        assert law.bipotential(*middle) <= chord + 1e-12


def test_second_residual_of_reports():
    # One contact, friction 1/2, W = 1, free velocity (-1, 2): P = (1, -1/2), U = (0, 3/2). Stopped at the frictionless
    # answer P = (1, 0), U = (0, 2): b = phi_1 P_n = 1, relative to P . P / rho = 1.
    problem = cd.ContactProblem(np.eye(2), np.array([[-1.0, 2.0]]), np.array([[0.5, 0.5]]), np.zeros(1))
    impulses, report = cd.solve(problem)
    assert impulses.tolist() == [[1.0, -0.5]] and report.bipotential == 0.0
    from contactdynamics.problem.dense import measure

    errors = measure(*problem[:3], np.array([[1.0, 0.0]]))
    assert errors[3] == pytest.approx(1.0)
    # A velocity that enters is not a gain: U = (-0.4, 0) with P = (0.6, 0) counts as 0.4 x 0.6 / 0.36.
    errors = measure(np.eye(2), np.array([[-1.0, 0.0]]), np.array([[0.5, 0.5]]), np.array([[0.6, 0.0]]))
    assert errors[3] == pytest.approx(0.24 / 0.36)


def test_second_residual_of_scenes():
    scene = cd.Scene(gravity=(0, -10.0))
    scene.material("stone", density=1.0)
    scene.contact("stone", "stone", friction=0.5)
    scene.add(cd.HalfPlane(normal=(0.3, 1)), material="stone", fixed=True)
    for k in range(4):
        scene.add(cd.Disk(radius=0.1), material="stone", position=(0.19 * k, 0.11 - 0.057 * k))
    loose = cd.Simulation(scene, time_step=1e-3, tolerance=1e-2)
    tight = cd.Simulation(scene, time_step=1e-3, tolerance=1e-12)
    for simulation in (loose, tight):
        simulation.run(until=0.05)
    assert 0 <= tight.report.bipotential < 1e-9
    assert tight.report.contacts >= 3


@pytest.mark.parametrize(
    "law, arguments, options, words",
    [
        (cd.Law(), ((1, 0), (1, 0, 0)), {}, "1, 2 or 3 finite components"),
        (cd.Law(), ((0, math.nan), (1, 0)), {}, "1, 2 or 3 finite components"),
        (cd.Law(), ("up", (1, 0)), {}, "give numbers"),
        (cd.Law(cohesion=1.0), ((0, 0), (1, 0)), {}, "time_step=..."),
        (cd.Law(tension=1.0), ((0, 0), (1, 0)), {"time_step": 0.0}, "time_step=..."),
        (cd.Law(two_sided=(0.1, 0.2)), ((0, 0, 0), (1, 0, 0)), {}, "goes with 2 components"),
        (cd.Law(anisotropic=(0.1, 0.2)), ((0, 0), (1, 0)), {}, "goes with 3 components"),
        (cd.Law(rolling=0.1), ((0, 0), (1, 0)), {"spin": 1.0}, "give both"),
        (cd.Law(rolling=0.1), ((0, 0), (1, 0)), {"spin": (1.0, 2.0), "moment": (1.0, 2.0)}, "3 numbers or one in 2D"),
    ],
)
def test_wrong_input(law, arguments, options, words):
    with pytest.raises(cd.InputError) as caught:
        law.bipotential(*arguments, **options)
    assert words in str(caught.value)
