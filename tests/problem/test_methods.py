"""The solvers of contact problems: the law at random problems of many shapes, agreement, choice, what has no end."""

import numpy as np
import pytest
from scipy import sparse

import contactdynamics as cd
import naive
from contactdynamics.problem import graphs, methods

SOLVERS = ("auto", "interior", "accelerated", "nlgs")


def linked_bodies(rng, m, n, d, friction, form="bodies", wide=0):
    """m contacts between n bodies of random inertia, and with the ground, at random points; some motion opens them all.

    Any two may touch, or with ``wide`` those next to each other, as on a sheet of that width.
    Contacts have frames and lever arms, as those of bodies have: U = v_b + w_b x arm_b - (v_a + w_a x arm_a) in (n, t).
    """
    s = 3 if d < 3 else 6
    a, b = rng.integers(-1, n, m), rng.integers(0, n, m)
    if wide:
        a = np.maximum(b - rng.choice([1, wide], m), -1)
    a[a == b] = -1
    maps = sparse.lil_array((m * d, n * s))
    for k in range(m):
        frame = np.linalg.qr(rng.normal(size=(s // 3 + 1, s // 3 + 1)))[0]
        for body, sign in ((a[k], -1.0), (b[k], 1.0)):
            if body >= 0:
                arm = 0.5 * rng.normal(size=s // 3 + 1)
                turn = np.cross(arm, frame) if s == 6 else (arm[0] * frame[:, 1] - arm[1] * frame[:, 0])[:, None]
                block = sign * np.concatenate([frame, turn], axis=1)[:d]
                maps[k * d : (k + 1) * d, body * s : (body + 1) * s] = block
    mass = [np.diag(rng.uniform(0.3, 3.0, s)) for _ in range(n)]
    jacobian, opening = sparse.csr_array(maps), rng.normal(size=n * s)
    drift = -(jacobian @ opening).reshape(m, d)
    drift[:, 0] += rng.uniform(0.1, 1.0, m)
    free = opening + 2.0 * rng.normal(size=n * s)
    bodies = cd.BodyForm(
        sparse.csr_array(sparse.block_diag([sparse.csr_array(part) for part in mass])), jacobian, free, drift
    )
    problem = cd.ContactProblem.of_bodies(bodies, friction=np.full((m, 2), float(friction)))
    if form == "contacts":
        problem = cd.ContactProblem(problem.blocks.tocsr(), problem.velocity, problem.friction, problem.gap)
    return problem


def assert_law(problem, impulses, tolerance):
    """Each contact in its cone, not closing, and with the least power of sliding, to ``tolerance`` of the whole."""
    u = problem.velocities(impulses)
    rho = 1.0 / problem.blocks.diagonal().reshape(u.shape).mean(axis=1)
    size = max(np.linalg.norm(impulses), np.linalg.norm(rho[:, None] * problem.velocity))
    p_n, u_n = impulses[:, 0], u[:, 0]
    reach = problem.friction[:, 0] * p_n
    p_t, u_t = np.linalg.norm(impulses[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    small = 10.0 * tolerance * size
    assert p_n.min() >= -small and (p_t - reach).max() <= small
    assert (rho * u_n).min() >= -small * (1.0 + problem.friction.max())
    assert np.minimum(p_n, rho * u_n).max() <= small * (1.0 + problem.friction.max())
    slack = np.minimum(rho * u_t, (reach * u_t + (impulses[:, 1:] * u[:, 1:]).sum(axis=1)) / (u_t + 1e-300))
    assert slack.max() <= small * (1.0 + problem.friction.max())


@pytest.mark.parametrize("form", ["bodies", "contacts"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_law_at_random_problems(rng, d, form):
    # one contact and many, W of full rank and far from it, friction from none to 5
    for m, n in ((1, 1), (4, 8), (12, 2), (60, 12), (150, 80)):
        for friction in (0.0, 0.3, 1.0, 5.0) if d > 1 else (0.0,):
            problem = linked_bodies(rng, m, n, d, friction, form)
            for solver in ("auto", "interior"):
                impulses, report = cd.solve(problem, solver=solver, tolerance=1e-8)
                assert report.converged, (m, n, friction, solver, report.message)
                assert_law(problem, impulses, 1e-8)


def test_thousands_of_contacts(rng):
    problem = linked_bodies(rng, 3000, 1500, 2, 0.4, wide=30)
    for solver in ("auto", "interior"):
        impulses, report = cd.solve(problem, solver=solver, tolerance=1e-8)
        assert report.converged, report.message
        assert_law(problem, impulses, 1e-8)


@pytest.mark.parametrize("d", [2, 3])
def test_two_coefficients(rng, d):
    # of two senses in the plane, of the axes of an ellipse in space, one of which may be zero
    for _ in range(10):
        problem = linked_bodies(rng, 8, 5, d, 0.0)
        friction = rng.uniform(0.0, 0.8, size=(8, 2)) * rng.integers(0, 2, size=(8, 2))
        problem = cd.ContactProblem.of_bodies(problem.bodies, friction=friction)
        impulses, report = cd.solve(problem, solver="interior", tolerance=1e-9)
        assert report.converged, report.message
        assert naive.residual(problem.delassus, problem.velocity, problem.friction, impulses) <= 1e-8


@pytest.mark.parametrize("d", [1, 2, 3])
def test_solvers_agree_where_the_solution_is_unique(rng, d):
    # W positive definite and little friction: one solution. Without friction and W of deficient rank: one velocity.
    for friction, m, n in ((0.1, 4, 20), (0.0, 12, 3)):
        problem = linked_bodies(rng, m, n, d, friction)
        found = [cd.solve(problem, solver=solver, tolerance=1e-10, max_iterations=100_000) for solver in SOLVERS]
        assert all(report.converged for _, report in found)
        speed = np.abs(problem.velocity).max()
        for impulses, _ in found[1:]:
            apart = problem.body_velocities(impulses) - problem.body_velocities(found[0][0])
            assert np.abs(apart).max() <= 1e-5 * speed
            if friction:
                assert impulses == pytest.approx(found[0][0], abs=1e-6 * np.abs(found[0][0]).max())


def wedge(angle, friction):
    """A ball of mass 1 pressed into a wedge: two contacts that both slide or hold it."""
    normals = np.array([[np.cos(angle), np.sin(angle)], [-np.cos(angle), np.sin(angle)]])
    maps = np.zeros((4, 3))
    for k, n in enumerate(normals):
        maps[2 * k, :2], maps[2 * k + 1] = n, (-n[1], n[0], -1.0)
    bodies = cd.BodyForm(np.diag([1.0, 1.0, 0.5]), maps, [0.0, -1.0, 0.0], np.zeros((2, 2)))
    return cd.ContactProblem.of_bodies(bodies, friction=np.full((2, 2), friction))


def test_a_ball_in_a_wedge():
    # it stays, and the forces are not unique: each side carries half of the weight, and P_t1 + P_t2 = 0 without spin
    for angle in (0.2, 0.7, 1.2):
        for solver in SOLVERS:
            impulses, report = cd.solve(wedge(angle, 0.4), solver=solver, tolerance=1e-10)
            assert report.converged
            carried = impulses[:, 0] * np.sin(angle) + [1, -1] * impulses[:, 1] * np.cos(angle)
            assert carried == pytest.approx([0.5, 0.5], abs=1e-8)


def tower(count, rng):
    """Blocks on each other, four contacts a joint, pushed aside: redundant, and slow for sweeps."""
    half, maps = np.array([0.5, 0.2]), []
    for k in range(count):
        for x in (-half[0], half[0]):
            row = np.zeros((2, 3 * count))
            row[:, 3 * k : 3 * k + 3] = [[0, 1, x], [1, 0, half[1]]]
            if k > 0:
                row[:, 3 * k - 3 : 3 * k] = [[0, -1, -x], [-1, 0, half[1]]]
            maps.append(row)
    free = np.tile([0.05, -1.0, 0.0], count) + 0.01 * rng.normal(size=3 * count)
    bodies = cd.BodyForm(np.eye(3 * count), np.concatenate(maps), free, np.zeros((2 * count, 2)))
    return cd.ContactProblem.of_bodies(bodies, friction=np.full((2 * count, 2), 0.6))


def test_auto_changes_over_and_says_so(rng):
    problem = tower(60, rng)
    impulses, report = cd.solve(problem, tolerance=1e-8)
    stages = dict(report.stages)
    assert report.converged and stages["interior"] + stages["newton"] > 0
    assert f"Gauss-Seidel was left after {stages['accelerated']} sweeps" in report.message
    assert sum(stages.values()) == report.iterations
    assert_law(problem, impulses, 1e-8)
    _, swept = cd.solve(problem, tolerance=1e-8, solver="accelerated", max_iterations=5 * report.iterations)
    assert not swept.converged
    # what sweeps solve at once is left to them, and the message is theirs
    _, easy = cd.solve(linked_bodies(rng, 5, 20, 3, 0.3), tolerance=1e-8)
    assert dict(easy.stages).keys() == {"accelerated"} and "left" not in easy.message


def test_a_good_guess_saves_work(rng):
    problem = tower(40, rng)
    impulses, cold = cd.solve(problem, solver="interior", tolerance=1e-8)
    _, again = cd.solve(problem, impulses, solver="interior", tolerance=1e-8)
    assert again.iterations == 0
    near = cd.ContactProblem.of_bodies(problem.bodies._replace(free=1.01 * problem.bodies.free), problem.friction)
    _, warm = cd.solve(near, impulses, solver="interior", tolerance=1e-8)
    assert warm.converged and warm.iterations < cold.iterations


def test_no_solution_is_told_with_its_evidence():
    # a disk between two walls that come nearer at 1 and 3 m/s: whatever it does, it is hit at 2 m/s by one of them
    bodies = cd.BodyForm(np.eye(2), [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], [[-1, 0], [-3, 0]])
    problem = cd.ContactProblem.of_bodies(bodies, friction=np.full((2, 2), 0.3))
    for solver in ("auto", "interior"):
        _, report = cd.solve(problem, solver=solver, max_iterations=2000)
        assert not report.converged and report.message.startswith("No solution exists")
        assert "contacts 0, 1" in report.evidence and "2 m/s" in report.evidence
    # a solution is never denied: the same walls that part
    parting = cd.ContactProblem.of_bodies(bodies._replace(drift=np.array([[-1.0, 0], [1.5, 0]])), problem.friction)
    _, report = cd.solve(parting)
    assert report.converged and not report.evidence
    _, report = cd.solve(parting, tolerance=1e-30, max_iterations=3)
    assert not report.evidence


def test_bodies_and_contacts_are_one_problem(rng):
    # the same operations on both graphs: U = b + W P, and dU = W (c - B dU)
    problem = linked_bodies(rng, 9, 5, 3, 0.5)
    w, b = problem.delassus, problem.velocity
    w_blocks = problem.blocks
    contacts = graphs.contact_graph(
        w_blocks.indptr.astype(np.int64), w_blocks.indices.astype(np.int64), w_blocks.data, b
    )
    bodies = graphs.body_graph(*methods._blocks_of_bodies(problem))
    p, push, blocks = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.normal(size=(9, 3, 3))
    blocks = blocks @ blocks.transpose(0, 2, 1) + 0.3 * rng.normal(size=(9, 3, 3))
    full = np.zeros((27, 27))
    for k in range(9):
        full[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = blocks[k]
    step = np.linalg.solve(np.eye(27) + w @ full, w @ push.ravel()).reshape(9, 3)
    for graph in (contacts, bodies):
        u = np.empty((9, 3))
        graphs.respond(graph, p, u)
        assert u == pytest.approx(b + (w @ p.ravel()).reshape(9, 3), rel=1e-10, abs=1e-10)
        graphs.factorise(graph, blocks)
        graphs.solve(graph, push, u)
        assert u == pytest.approx(step, rel=1e-8, abs=1e-10)


def test_a_graph_without_room_for_factors(rng, monkeypatch):
    monkeypatch.setattr(graphs, "ROOM", 1.0)
    problem = linked_bodies(rng, 30, 10, 2, 0.3)
    _, report = cd.solve(problem, solver="interior")
    assert not report.converged and "too large" in report.message
    _, report = cd.solve(problem, tolerance=1e-6)
    assert report.converged and dict(report.stages).keys() <= {"accelerated", "nlgs"}


def test_callbacks_see_each_iteration_and_stop(rng):
    problem, seen = tower(40, rng), []
    _, report = cd.solve(problem, callback=lambda done, error, p: seen.append((done, error)))
    assert tuple(seen) == report.history and report.converged
    _, report = cd.solve(problem, solver="interior", callback=lambda done, error, p: done == 3)
    assert report.iterations == 3 and not report.converged
