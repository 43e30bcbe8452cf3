"""The one-step problem as data, and the set of its solutions (2003, section 8)."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import jammed_bar
from contactdynamics.problem.dense import measure
from contactdynamics.problem.explore import random_impulses, static_range
from contactdynamics.problem.laws import cone_excess
from rigid_tools import assert_problem_is_of_next_step

# ---- the problem as data ---------------------------------------------------------------------------------------------


def heap(d, rows, tau=0.0, cluster=False, drive=None):
    """Balls dropped into a box, some of them pairs; solved to rounding by the reference solver."""
    rng = np.random.default_rng(5)
    scene = cd.Scene(gravity=(0, -9.81) if d == 2 else (0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4, restitution=0.2, tangential_restitution=tau)
    axes, wall, ball = np.eye(d), *((cd.HalfPlane, cd.Disk) if d == 2 else (cd.Plane, cd.Sphere))
    scene.add(wall(axes[-1]), material="m", **({"motion": drive} if drive else {"fixed": True}))
    for axis in axes[:-1]:
        for side in (-1, 1):
            scene.add(wall(-side * axis), material="m", position=0.2 * side * axis, fixed=True)
    for k in range(rows):
        place = rng.uniform(-0.1, 0.1, d)
        place[-1] = 0.06 + 0.11 * k
        pair = cd.Cluster([0.03, 0.03], np.array([-0.02 * axes[0], 0.02 * axes[0]]))
        shape = pair if cluster and k % 3 == 0 else ball(rng.uniform(0.03, 0.05))
        scene.add(shape, material="m", position=place)
    return cd.Simulation(
        scene, time_step=1e-3, tolerance=1e-10, max_iterations=20_000, solver="nlgs", on_failure="ignore"
    )


@pytest.mark.parametrize("d, tau, cluster, drive", [
    (2, 0.0, False, None), (2, 0.3, True, None), (3, 0.0, True, None), (3, 0.0, False, (0, 0, 0.2)),
    (2, 0.0, False, (0.3, 0)),
])  # fmt: skip
def test_the_problem_of_a_scene_is_that_of_its_next_step(d, tau, cluster, drive):
    sim = heap(d, 6, tau, cluster, drive)
    for _ in range(350):
        sim.step()
    assert_problem_is_of_next_step(sim, 2)


def test_a_scene_whose_problem_was_looked_at_goes_on_with_the_same_bits():
    plain, watched = heap(2, 5), heap(2, 5)
    for k in range(300):
        plain.step()
        watched.step()
        if k % 7 == 0:
            watched.contact_problem()
            watched.contact_problem(from_rest=True, slack=1e-6)
    assert np.array_equal(plain.positions, watched.positions) and np.array_equal(plain.spins, watched.spins)


def test_the_problem_of_a_system_is_that_of_its_next_step():
    angle = math.radians(30)
    system = jammed_bar.bar(angle, 0.4)
    state = system.start((0, 0, 0), (0.3, 0.2, 0.5))
    problem = cd.contact_problem(system, state, 1e-3)
    done = cd.schemes.midpoint(system, state, 1e-3)
    active = done.gaps <= 0
    assert np.array_equal(problem.gap, done.gaps[active])
    found = done.state.impulses[active]
    assert measure(problem.delassus, problem.velocity, problem.friction, np.ascontiguousarray(found))[0] < 1e-12


def test_laws_that_no_problem_can_hold_are_refused():
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.4, rolling=0.01)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.Disk(1.0), material="m", position=(0, 1 - 1e-6))
    with pytest.raises(cd.InputError, match="rolling"):
        cd.Simulation(scene, time_step=1e-3).contact_problem()


# ---- exploring -------------------------------------------------------------------------------------------------------


def beam(supports):
    """A weightless board on frictionless supports at x (m,), loaded by a unit weight at 0, one step of unit length."""
    x = np.asarray(supports, dtype=float)
    rows = np.stack([np.ones_like(x), x], axis=1)  # vertical velocity and rotation; unit mass and inertia
    return cd.ContactProblem(rows @ rows.T, -np.ones((len(x), 1)), np.zeros((len(x), 2)), np.zeros(len(x)))


@pytest.mark.parametrize("vary", ["impulses", "order", "both"])
def test_a_board_on_three_supports(vary):
    # Supports at -1, 0, 1: P_1 = P_3 = p, P_2 = 1 - 2 p with 0 <= p <= 1/2, a segment of solutions.
    found = cd.explore_forces(beam([-1, 0, 1]), 200, 7, vary=vary, tolerance=1e-12)
    assert found.converged.all()
    p = found.impulses[:, :, 0]
    assert np.allclose(p[:, 0], p[:, 2], atol=1e-9) and np.allclose(p.sum(axis=1), 1, atol=1e-9)
    if vary != "order":
        assert found.low[1, 0] < 0.05 and found.high[1, 0] > 0.95
    assert static_range(beam([-1, 0, 1]), 1) == pytest.approx((0, 1), abs=1e-9)
    assert static_range(beam([-1, 0, 1]), 0) == pytest.approx((0, 0.5), abs=1e-9)
    assert np.isnan(static_range(beam([1, 2]), 0)).all()  # it tips over


def test_two_supports_have_one_answer():
    found = cd.explore_forces(beam([-1, 3]), 20, 1, tolerance=1e-12)
    assert np.allclose(found.impulses[:, :, 0], [0.75, 0.25], atol=1e-9) and found.width.max() < 1e-8


def test_the_seed_decides_and_the_domain_is_kept():
    one, two, other = (cd.explore_forces(beam([-1, 0, 1]), 5, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.impulses, two.impulses) and not np.array_equal(one.impulses, other.impulses)
    rng = np.random.default_rng(0)
    cones = np.array([[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]])
    for d in (1, 2, 3):
        drawn = random_impulses(rng, 2.0, cones, d)
        assert (0 <= drawn[:, 0]).all() and (drawn[:, 0] <= 2).all()
        if d == 2:
            assert max(cone_excess(p, c) for p, c in zip(drawn, cones, strict=True)) < 1e-15
        if d == 3:
            assert ((drawn[:2, 1:] / cones[:2]) ** 2).sum(axis=1).max() <= (drawn[:2, 0] ** 2).max() + 1e-12


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((beam([0.0]), 0), "samples"),
        ((beam([0.0]), 5, 0, {"vary": "luck"}), "impulses, order, both"),
        ((beam([0.0]), 5, 0, {"largest": -1.0}), "largest"),
        ((beam([]), 5), "without contacts"),
        (("bar", 5), "ContactProblem"),
    ],
)
def test_wrong_explorations(arguments, words):
    options = arguments[-1] if isinstance(arguments[-1], dict) else {}
    with pytest.raises(cd.InputError, match=words):
        cd.explore_forces(*[a for a in arguments if not isinstance(a, dict)], **options)


# ---- the jammed bar --------------------------------------------------------------------------------------------------


def run(tmp_path, *settings):
    arguments = [part for setting in settings for part in ("--set", setting)]
    with pytest.raises(SystemExit) as end:
        main(["run", "jammed-bar", "--quick", "--force", "--out", str(tmp_path / "out"), *arguments])
    path = tmp_path / "out" / "summary.json"
    return end.value.code, json.loads(Path(path).read_text())["results"] if path.exists() else None


# Statics of the symmetric bar: H cos b - V sin b = P_n, H sin b + V cos b = P_t <= gamma P_n with V = g / 2, hence
# H (gamma cos b - sin b) >= V (cos b + gamma sin b).
def least(degrees, gamma):
    b = math.radians(degrees)
    return 9.81 / 2 * (math.cos(b) + gamma * math.sin(b)) / (gamma * math.cos(b) - math.sin(b))


@settings(max_examples=25)
@given(st.floats(0, 40), st.floats(0.02, 1.0), st.floats(0, 3), st.booleans())
def test_the_bar_stays_if_it_was_wedged(degrees, spare, factor, near):
    gamma = math.tan(math.radians(degrees) + spare * 0.4)
    factor = 1 + math.copysign(1e-4, factor - 1) if near else factor
    assert jammed_bar.minimal_thrust(math.radians(degrees), gamma) == pytest.approx(least(degrees, gamma), rel=1e-9)
    motion = jammed_bar.release(math.radians(degrees), gamma, factor, {"step": 1e-3, "duration": 0.02})
    assert jammed_bar.outcome_of(motion) == ("stuck" if factor >= 1 else "falls")


def test_options_of_the_jammed_bar(tmp_path):
    code, results = run(tmp_path, "angle_degrees=20", "friction=0.7", "thrust_factor=1.3")
    assert code == 0 and results["outcome"] == "stuck"
    assert results["minimal_thrust"] == pytest.approx(least(20, 0.7), rel=1e-12)
    assert results["thrust"] == pytest.approx(1.3 * least(20, 0.7), rel=1e-6)
    code, results = run(tmp_path, "thrust_factor=0")
    assert code == 0 and results["outcome"] == "falls" and results["thrust"] == 0
    code, results = run(tmp_path, "angle_degrees=30", "friction=0.5")  # no thrust is enough
    assert code == 0 and results["outcome"] == "falls" and results["minimal_thrust"] is None


@pytest.mark.parametrize("setting, words", [
    ("angle_degrees=95", "angle_degrees"), ("friction=-0.1", "friction"), ("thrust_factor=-1", "thrust_factor"),
    ("step=0", "step"),
])  # fmt: skip
def test_wrong_options_of_the_jammed_bar(tmp_path, capsys, setting, words):
    assert run(tmp_path, setting)[0] == 2 and words in capsys.readouterr().err
