"""`solve`: nonlinear Gauss-Seidel on random multi-contact problems, its residual and its report."""

from itertools import pairwise

import numpy as np
import pytest

import contactdynamics as cd
import naive
from contactdynamics.problem.dense import measure, sweep
from contactdynamics.state import SEPARATING

pytestmark = pytest.mark.modes


def random_problem(rng, m, d, freedoms, friction=0.5):
    """m contacts of d components on a system of unit masses, pressed together by a random velocity."""
    maps = rng.normal(size=(m * d, freedoms))
    velocity = rng.normal(size=(m, d))
    velocity[:, 0] -= 1.0
    coefficients = friction * rng.uniform(0.5, 1.5, size=(m, 2))
    return cd.ContactProblem(maps @ maps.T, velocity, coefficients, -rng.uniform(0, 1e-3, size=m))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_solution_obeys_every_law(rng, m, d):
    for _ in range(5):
        problem = random_problem(rng, m, d, freedoms=m * d + 2, friction=0.3)
        impulses, report = cd.solve(problem, tolerance=1e-11)
        assert report.converged and report.residual <= 1e-11
        velocities = naive.velocities(problem.delassus, problem.velocity, impulses)
        speed = np.abs(problem.velocity).max()
        size = np.abs(impulses).max() + speed / np.trace(problem.delassus)
        for p, v, c in zip(impulses, velocities, problem.friction, strict=True):
            below, outside, product, missing = naive.law_errors(p, v, c)
            assert below <= 1e-9 * speed and outside <= 1e-9 * size and product <= 1e-9 * size * speed
            assert missing <= 1e-5 * size * speed  # the naive section is a polygon of 2000 sides


@pytest.mark.parametrize("d", [1, 2, 3])
def test_residual_is_the_one_defined(rng, d):
    # The definition in `solvers`, computed by the naive twin, at the solution and at impulses that are none.
    for _ in range(10):
        problem = random_problem(rng, 4, d, freedoms=4 * d + 1)
        impulses, report = cd.solve(problem, tolerance=1e-3)
        expected = naive.residual(problem.delassus, problem.velocity, problem.friction, impulses)
        assert report.residual == pytest.approx(expected, rel=1e-9, abs=1e-14)
        wrong = rng.normal(size=(4, d))
        errors = measure(problem.delassus, problem.velocity, problem.friction, wrong)
        expected = naive.residual(problem.delassus, problem.velocity, problem.friction, wrong)
        assert errors[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_other_errors_of_the_report(rng, d):
    # Cone error: how far an impulse sticks out of its cone at its own P_n; bipotential: sum of |b| with |U_n|,
    # both relative as the docstrings say; worst: the contact with the largest natural map.
    for _ in range(10):
        problem = random_problem(rng, 3, d, freedoms=3 * d + 1)
        p = rng.normal(size=(3, d))
        w, b, c = problem.delassus, problem.velocity, problem.friction
        _, worst, cone, second = measure(w, b, c, p)
        v = naive.velocities(w, b, p)
        rho = np.array([d / np.trace(w[a * d : (a + 1) * d, a * d : (a + 1) * d]) for a in range(3)])
        maps = [np.linalg.norm(naive.natural_map(p[a], v[a], c[a], rho[a])) for a in range(3)]
        assert worst == np.argmax(maps)
        scale = max(np.linalg.norm(p), np.linalg.norm(rho[:, None] * b))
        outside = max(naive.cone_excess(p[a], c[a]) for a in range(3))
        if d < 3:  # in three components the naive excess is measured in another norm; zero is the same
            assert cone == pytest.approx(outside / scale, rel=1e-12)
        assert (cone > 0) == (outside > 0)
        upward = v * np.where(np.arange(d) == 0, np.sign(v), 1)
        bipotential = sum(abs(upward[a] @ p[a] + naive.dissipation(v[a], c[a]) * p[a, 0]) for a in range(3))
        work = sum(p[a] @ p[a] / rho[a] for a in range(3))
        assert second == pytest.approx(bipotential / work, rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_sweep_agrees_with_its_twin(rng, d):
    for _ in range(5):
        problem = random_problem(rng, 4, d, freedoms=4 * d + 1)
        p, status = np.abs(rng.normal(size=(4, d))), np.full(4, SEPARATING)
        expected = naive.sweep(problem.delassus, problem.velocity, problem.friction, p)
        sweep(problem.delassus, problem.velocity, problem.friction, p, status)
        assert np.allclose(p, expected, rtol=1e-9, atol=1e-9)
        assert ((status == SEPARATING) == ~p.any(axis=1)).all()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9, 1e-12])
def test_tolerance_is_honoured(rng, tolerance):
    for _ in range(5):
        problem = random_problem(rng, 6, 3, freedoms=20, friction=0.3)
        impulses, report = cd.solve(problem, tolerance=tolerance)
        assert report.converged
        assert naive.residual(problem.delassus, problem.velocity, problem.friction, impulses) <= 1.001 * tolerance


def test_warm_start_needs_no_more_sweeps(rng):
    for _ in range(10):
        problem = random_problem(rng, 6, 3, freedoms=20, friction=0.3)
        impulses, cold = cd.solve(problem, tolerance=1e-9)
        again, warm = cd.solve(problem, impulses, tolerance=1e-9)
        assert warm.iterations == 1 <= cold.iterations
        assert np.allclose(again, impulses, rtol=0, atol=1e-7 * np.abs(impulses).max())
        near = problem._replace(velocity=problem.velocity * (1 + 1e-6))
        assert cd.solve(near, impulses, tolerance=1e-9)[1].iterations <= cd.solve(near, tolerance=1e-9)[1].iterations


def test_guess_is_not_overwritten(rng):
    problem = random_problem(rng, 3, 2, freedoms=8)
    guess = np.ones((3, 2))
    cd.solve(problem, guess)
    assert (guess == 1).all()


def test_too_few_sweeps_are_told(rng):
    problem = random_problem(rng, 6, 3, freedoms=18)
    _, report = cd.solve(problem, tolerance=1e-12, max_iterations=2)
    assert not report.converged and report.iterations == 2 and report.residual > 1e-12
    for word in ("Not solved", "after 2 sweeps", "asked 1e-12", f"contact {report.worst}", "raise max_iterations"):
        assert word in report.message
    assert "\n" not in report.message and report.message.endswith(".")
    _, report = cd.solve(problem, tolerance=1e-6)
    assert report.message.startswith("Solved: residual") and f"after {report.iterations} sweeps" in report.message


@pytest.mark.parametrize("solver", ["nlgs", "accelerated"])
def test_sweeps_between_two_checks(rng, solver):
    # The residual is looked at after the first sweep, then after a fifth more of them at most, and at the last one.
    problem = random_problem(rng, 8, 3, freedoms=30, friction=0.3)
    _, report = cd.solve(problem, tolerance=1e-13, solver=solver)
    assert report.converged and report.history[-1] == (report.iterations, report.residual)
    looked = [done for done, _ in report.history]
    assert looked[0] == 1 and all(b - a <= max(4, a / 5) for a, b in pairwise(looked))
    impulses, report = cd.solve(problem, tolerance=1e-13, max_iterations=13, solver=solver)
    assert report.iterations == 13
    expected = naive.residual(problem.delassus, problem.velocity, problem.friction, impulses)
    assert report.residual == pytest.approx(expected, rel=1e-6)


def test_frictionless_among_frictional_contacts():
    # The second contact has no tangential rows (W_tt = 0) and separates: residual 0, not a false alarm.
    delassus = np.diag([1.0, 1.0, 1.0, 0.0])
    velocity = np.array([[-1.0, 0.2], [1.0, 0.0]])
    problem = cd.ContactProblem(delassus, velocity, np.array([[0.5, 0.5], [0.0, 0.0]]), np.zeros(2))
    impulses, report = cd.solve(problem)
    assert impulses.tolist() == [[1.0, -0.2], [0.0, 0.0]]
    assert report.residual == 0 and report.iterations == 1


def test_report_of_penetration_and_of_no_contact(rng):
    problem = random_problem(rng, 3, 2, freedoms=8)
    assert cd.solve(problem)[1].penetration == -problem.gap.min()
    assert cd.solve(problem._replace(gap=np.full(3, 0.1)))[1].penetration == 0
    empty = cd.ContactProblem(np.zeros((0, 0)), np.zeros((0, 3)), np.zeros((0, 2)), np.zeros(0))
    impulses, report = cd.solve(empty)
    assert impulses.shape == (0, 3)
    assert report.converged and report.contacts == 0 and report.message == "No active contact."


def test_statics_of_a_stack():
    # Three unit masses above each other, weight w h = 1 each: the contacts carry 3, 2, 1. U_1 = u_1,
    # U_2 = u_2 - u_1, U_3 = u_3 - u_2.
    maps = np.array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 1]])
    problem = cd.ContactProblem(maps @ maps.T, (maps @ [-1.0, -1.0, -1.0])[:, None], np.zeros((3, 2)), np.zeros(3))
    impulses, report = cd.solve(problem, tolerance=1e-13)
    assert np.allclose(impulses.ravel(), [3, 2, 1], rtol=0, atol=1e-11) and report.converged


GOOD = cd.ContactProblem(np.eye(4), -np.ones((2, 2)), np.full((2, 2), 0.5), np.zeros(2))


@pytest.mark.parametrize(
    "changes, options, words",
    [
        ({"delassus": np.eye(3)}, {}, "(3, 3) 2 contacts (4, 4)"),
        ({"delassus": np.full((4, 4), np.nan)}, {}, "delassus nan finite"),
        ({"delassus": np.diag([1.0, 1.0, 0.0, 1.0])}, {}, "delassus contact 1 positive"),
        ({"delassus": np.eye(4) + np.eye(4, k=1)}, {}, "delassus symmetric"),
        ({"velocity": np.ones(4)}, {}, "velocity (4,) (m, d)"),
        ({"velocity": np.ones((2, 4))}, {}, "velocity (2, 4) 1, 2 or 3"),
        ({"velocity": np.full((2, 2), np.inf)}, {}, "velocity infinity finite"),
        ({"friction": np.ones(2)}, {}, "friction (2,) (2, 2)"),
        ({"friction": np.full((2, 2), -0.1)}, {}, "friction -0.1 >= 0"),
        ({"gap": np.zeros(3)}, {}, "gap (3,) (2,)"),
        ({}, {"guess": np.zeros(3)}, "guess (3,) (2, 2)"),
        ({}, {"guess": np.full((2, 2), np.nan)}, "guess nan finite"),
        ({}, {"max_iterations": 0}, "max_iterations 0 at least 1"),
        ({}, {"tolerance": float("nan")}, "tolerance nan positive"),
        ({}, {"tolerance": -1e-8}, "tolerance -1e-08 positive"),
    ],
)
def test_wrong_problem_is_refused(changes, options, words):
    with pytest.raises(cd.InputError) as caught:
        cd.solve(GOOD._replace(**changes), **options)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for word in words.split(" "):
        assert word in message, message
