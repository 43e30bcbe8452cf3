"""The one-step problem in its two forms: contacts (W, b) and bodies (M, J, v, w)."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csc_array, csr_array

import contactdynamics as cd
import naive
from contactdynamics.problem import form
from contactdynamics.problem.residual import judge
from contactdynamics.state import LACKS


def bodies_of(rng, m, d, sizes, dense=False):
    """Random bodies: M of definite blocks of the ``sizes``, J with two blocks a contact, velocities, drift."""
    blocks = []
    for size in sizes:
        root = rng.normal(size=(size, size + 2))
        blocks.append(root @ root.T)
    mass = csr_array(block_diag([csr_array(block) for block in blocks]))
    jacobian = rng.normal(size=(m * d, mass.shape[0])) * (rng.random((m * d, mass.shape[0])) < 0.6)
    jacobian[::d, 0] = 1.0  # every contact sees inertia
    free, drift = rng.normal(size=mass.shape[0]), 0.1 * rng.normal(size=(m, d))
    return cd.BodyForm(mass.toarray() if dense else mass, jacobian if dense else csc_array(jacobian), free, drift)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(1, 1, 3, 1, 3), (6, 6), (2, 70)])
def test_the_contacts_form_follows_from_the_bodies(rng, d, sizes):
    # Naive twin: dense algebra. (2, 70) has a component too large to be inverted by itself.
    bodies = bodies_of(rng, 4, d, sizes, dense=d == 1)
    problem = cd.ContactProblem.of_bodies(bodies, rng.uniform(0, 1, (4, 2)))
    m, j = (x.toarray() if hasattr(x, "toarray") else x for x in bodies[:2])
    expected = j @ np.linalg.solve(m, j.T)
    size = np.abs(expected).max() * np.linalg.cond(m)
    assert np.allclose(problem.delassus, expected, rtol=0, atol=1e-14 * size)
    assert np.allclose(problem.blocks.toarray(), expected, rtol=0, atol=1e-14 * size)
    assert problem.blocks.blocksize == (d, d) and (problem.delassus == problem.delassus.T).all()
    assert np.allclose(problem.velocity.ravel(), j @ bodies.free + bodies.drift.ravel(), rtol=0, atol=1e-13)
    p = rng.normal(size=(4, d))
    v = bodies.free + np.linalg.solve(m, j.T @ p.ravel())
    assert np.allclose(problem.body_velocities(p), v, rtol=0, atol=1e-13 * size * np.abs(p).sum())
    assert np.allclose(problem.velocities(p).ravel(), j @ v + bodies.drift.ravel(), rtol=0, atol=1e-12 * size)


def test_forms_are_solved_alike(rng):
    bodies = bodies_of(rng, 3, 3, (6, 6, 6))
    problem = cd.ContactProblem.of_bodies(bodies, np.full((3, 2), 0.4))
    w = problem.delassus
    ways = (problem, problem._replace(bodies=None, delassus=w), problem._replace(bodies=None, delassus=csr_array(w)),
            problem._replace(delassus=w))  # fmt: skip
    found = [cd.solve(way, tolerance=1e-12) for way in ways]
    assert all(report.converged for _, report in found)
    for impulses, _ in found[1:]:
        assert np.allclose(impulses, found[0][0], rtol=0, atol=1e-10 * np.abs(found[0][0]).max())


def test_what_was_derived_is_kept(rng):
    problem = cd.ContactProblem.of_bodies(bodies_of(rng, 3, 2, (3, 3)), np.zeros((3, 2)))
    assert form.check(problem) is problem and problem.blocks is problem.blocks
    assert problem._replace(gap=np.ones(3)).blocks is not problem.blocks


def scene_with(d, kind):
    scene = cd.Scene(gravity=(1, -10) if d == 2 else (1, 0, -10))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4, restitution=0.3)
    plane = cd.HalfPlane(normal=(0, 1)) if d == 2 else cd.Plane(normal=(0, 0, 1))
    scene.add(plane, material="m", fixed=True)
    if kind == "blocks":
        for k in range(3):
            scene.add(cd.Rectangle(1.0, 0.5), material="m", position=(0.1 * k, 0.25 + 0.5 * k))
    elif kind == "clusters":
        feet = [(-1, 0), (1, 0)] if d == 2 else [(-1, -1, 0), (1, -1, 0), (0, 1, 0)]
        scene.add(cd.Cluster([0.1] * len(feet), feet), material="m", position=(0, 0.1) if d == 2 else (0, 0, 0.1))
    else:
        ball = cd.Disk(0.1) if d == 2 else cd.Sphere(0.1)
        for k in range(4):
            at = (0.05 * k, 0.1 + 0.19 * k) if d == 2 else (0.05 * k, 0.03 * k, 0.1 + 0.19 * k)
            scene.add(ball, material="m", position=at, velocity=(0.1,) + (0,) * (d - 1))
    return scene


@pytest.mark.parametrize("d, kind", [(2, "balls"), (3, "balls"), (2, "clusters"), (3, "clusters"), (2, "blocks")])
def test_the_problem_of_a_scene_moves_its_bodies_as_the_step_does(d, kind):
    # v = free + M^-1 J^T P with the P of `solve` is the velocity after the step of the engine.
    sim = cd.Simulation(scene_with(d, kind), time_step=5e-3, tolerance=1e-11, max_iterations=20_000, check=False)
    for _ in range(5):
        problem = sim.contact_problem()
        sim.step()
        if problem.contacts == 0:
            continue
        impulses, report = cd.solve(problem, tolerance=1e-12, max_iterations=100_000)
        assert report.converged and problem.bodies is not None and problem.contacts == len(sim.contacts.gap)
        after = problem.body_velocities(impulses).reshape(-1, 3 if d == 2 else 6)
        moves = sim.bodies.kind == 0
        assert np.allclose(after[:, :d], sim.velocities[moves], rtol=0, atol=1e-7)
        assert np.allclose(after[:, d:].ravel(), sim.spins[moves].ravel(), rtol=0, atol=1e-6)


def test_a_driven_body_is_in_the_drift():
    scene = cd.Scene(gravity=(0, -10))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", motion=cd.Drive(velocity=(0.3, 0.2)))
    scene.add(cd.Disk(0.1), material="m", position=(0, 0.0999))
    problem = cd.Simulation(scene, time_step=1e-2).contact_problem()
    # The ball falls by g h, the floor rises at 0.2 and slides by 0.3.
    assert np.allclose(problem.velocity - problem.bodies.drift, [[-0.1, 0.0]])
    assert problem.bodies.drift[0, 0] == pytest.approx(-0.2) and abs(problem.bodies.drift[0, 1]) == pytest.approx(0.3)


def test_more_than_4000_contacts():
    scene = cd.Scene(gravity=(0, -10))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    x = 0.2 * np.arange(7000)
    scene.add_many(np.full(7000, 0.1), material="m", position=np.column_stack([x, np.full(7000, 0.0999)]))
    problem = cd.Simulation(scene, time_step=1e-3).contact_problem()
    assert problem.contacts >= 7000 and problem.blocks.shape[0] == 2 * problem.contacts
    with pytest.raises(cd.InputError, match=r"too many for a dense matrix.*problem\.blocks"):
        _ = problem.delassus


def test_a_system_states_its_bodies(rng):
    floor = cd.Constraint(gap=lambda t, q: q[1], law=cd.Law(friction=0.5, restitution=0.5))
    block = cd.System(inertia=[3.0, 3.0], force=lambda t, q, u: (0, -20.0), constraints=[floor])
    problem = cd.contact_problem(block, block.start((0, 0), (1.0, -2.0)), 0.1)
    plain = problem._replace(delassus=None)
    assert np.allclose(plain.delassus, problem.delassus, rtol=1e-15)
    impulses, _ = cd.solve(problem)
    after = problem.body_velocities(impulses)
    assert after[1] == pytest.approx(0.5 * 2.0)  # restitution of the entering velocity


# ---- report and contract ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_judge_against_the_naive_residual(rng, d):
    for _ in range(20):
        problem = cd.ContactProblem.of_bodies(bodies_of(rng, 5, d, (3, 3, 6)), rng.uniform(0, 1, (5, 2)))
        p = rng.normal(size=(5, d)) + 0.5
        report = judge(problem, p, 1e-8)
        expected = naive.residual(problem.delassus, problem.velocity, problem.friction, p)
        assert report.residual == pytest.approx(expected, rel=1e-6)
        u = naive.velocities(problem.delassus, problem.velocity, p)
        norm = np.linalg.norm
        theirs = np.sqrt(sum(norm(naive.natural_map(*x, 1.0)) ** 2 for x in zip(p, u, problem.friction, strict=True)))
        assert report.residual_siconos == pytest.approx(
            theirs / max(norm(problem.velocity), norm(p), norm(u)), rel=1e-6
        )
        rho = d / problem.delassus.diagonal().reshape(-1, d).sum(axis=1)
        stop = norm(rho[:, None] * problem.velocity)
        assert report.residual_free == pytest.approx(report.residual * max(norm(p), stop) / stop, rel=1e-12)


@pytest.mark.parametrize(
    "impulse, velocity, cause, size",
    [
        ((0.0, 0.0, 0.0), (-1.0, 0.0, 0.0), "penetration", 1.0),
        ((1.0, 0.0, 0.0), (2.0, 0.0, 0.0), "complementarity", 1.0),
        ((1.0, 3.0, 0.0), (0.0, 0.0, 0.0), "cone", 2.5),
        ((1.0, 0.3, 0.4), (0.0, 3.0, 4.0), "sliding direction", 1.0),
    ],
)
@pytest.mark.parametrize("d", [2, 3])
def test_what_the_worst_contact_lacks(d, impulse, velocity, cause, size):
    # One contact with W = 1 and friction 0.5: rho = 1, so that errors can be read off.
    p, u = np.array([impulse[:d]]), np.array([velocity[:d]])
    if cause == "sliding direction" and d == 2:
        p[0, 1], u[0, 1] = 0.5, 5.0
    problem = cd.ContactProblem(np.eye(d), u - p, np.full((1, 2), 0.5), np.zeros(1))
    report = judge(problem, p, 1e-8)
    assert report.worst_by == cause and cause in report.message
    scale = max(np.linalg.norm(p), np.linalg.norm(u - p))
    assert report.worst_errors[LACKS.index(cause)] * scale == pytest.approx(size)


def test_a_solver_of_the_user(rng):
    problem = cd.ContactProblem.of_bodies(bodies_of(rng, 3, 2, (3, 3)), np.full((3, 2), 0.4))
    right, _ = cd.solve(problem, tolerance=1e-12)

    def clairvoyant(problem, guess, tolerance, max_iterations, callback):
        assert guess.shape == (3, 2) and (tolerance, max_iterations) == (1e-9, 7)
        return right, None

    impulses, report = cd.solve(problem, solver=clairvoyant, tolerance=1e-9, max_iterations=7)
    assert report.converged and report.solver == "clairvoyant" and (impulses == right).all()
    _, report = cd.solve(problem, solver=lambda *a: (right * 1.1, None))
    assert not report.converged and report.residual > 1e-3  # judged, whatever it says of itself
    for wrong, words in (
        (lambda problem: problem, "called with .problem, guess, tolerance"),
        (lambda *a: right, "returned ndarray; give .P, SolveReport"),
        (lambda *a: (right[:1], None), "guess has shape"),
        (lambda *a: (right, "fine"), "str as report"),
        ("newtn", "There is no solver 'newtn'; choose auto"),
        (3, "There is no solver 3"),
    ):
        with pytest.raises(cd.InputError, match=words):
            cd.solve(problem, solver=wrong)


def test_callback_and_history(rng):
    problem = cd.ContactProblem.of_bodies(bodies_of(rng, 5, 3, (6, 6, 6)), np.full((5, 2), 0.4))
    seen = []
    _, report = cd.solve(problem, solver="nlgs", callback=lambda k, r, p: seen.append((k, r, p.shape)))
    assert [s[:2] for s in seen] == list(report.history) and seen[0][2] == (5, 3)
    assert report.history[-1] == (report.iterations, report.residual) and report.cpu_seconds >= 0
    _, report = cd.solve(problem, solver="nlgs", callback=lambda k, r, p: k == 2)
    assert report.iterations == 2
    with pytest.raises(cd.InputError, match="callback=3; give a function"):
        cd.solve(problem, callback=3)


# ---- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, words",
    [
        ({"mass": np.eye(3)[:2]}, "mass shape (2, 3) square"),
        ({"mass": -np.eye(3)}, "mass positive definite"),
        ({"mass": np.diag([1.0, 0.0, 1.0])}, "mass positive definite"),
        ({"mass": np.eye(3) + np.eye(3, k=1)}, "mass symmetric"),
        ({"mass": np.eye(3) * np.nan}, "mass nan"),
        ({"mass": "heavy"}, "mass 'heavy' numbers"),
        ({"jacobian": np.ones((4, 2))}, "jacobian (4, 2) (4, 3)"),
        ({"jacobian": np.full((4, 3), np.inf)}, "jacobian infinity"),
        ({"free": np.zeros(2)}, "free (2,) (3,)"),
        ({"drift": np.zeros(4)}, "drift (4,) (m, d)"),
        ({"momentum": np.zeros(4)}, "momentum (4,) (3,)"),
    ],
)
def test_wrong_bodies_are_refused(change, words):
    good = cd.BodyForm(np.eye(3), np.eye(4, 3), np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(cd.InputError) as caught:
        cd.ContactProblem.of_bodies(good._replace(**change), np.zeros((2, 2)))
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for word in words.split(" "):
        assert word in message, message


def test_forms_that_contradict_each_other_are_refused(rng):
    problem = cd.ContactProblem.of_bodies(bodies_of(rng, 3, 2, (3, 3)), np.zeros((3, 2)))
    for change, words in (
        ({"velocity": problem.velocity + 0.1}, "velocity is not that of the bodies"),
        ({"delassus": 2 * problem.delassus}, "delassus operator is not that of the bodies"),
        ({"delassus": None, "bodies": None}, "neither delassus nor bodies"),
        ({"bodies": "two"}, "bodies are 'two'"),
    ):
        with pytest.raises(cd.InputError, match=words):
            cd.solve(problem._replace(**change))
    with pytest.raises(cd.InputError, match="knows no bodies"):
        problem._replace(delassus=problem.delassus, bodies=None).body_velocities(np.zeros((3, 2)))
