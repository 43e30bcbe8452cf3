"""The rocking block (2004, 7.4) and frictional catastrophes (2004, 7.1): closed forms, random options."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import painleve, rocking_theory
from contactdynamics.problem.dense import project
from contactdynamics.state import SEPARATING, SLIDING, STICKING

# ---- rocking ---------------------------------------------------------------------------------------------------------
# Width 1, height s, mass 1, I = (1 + s^2)/12. Before: rotation -1 about A, so the centre has (s/2, -1/2).


@settings(max_examples=40)
@given(st.floats(0.2, 8), st.floats(0, 2))
def test_impact_of_a_rocking_block(s, friction):
    step = rocking_theory.impact(s, friction)
    ratio = -step.state.u[2]
    assert ratio == pytest.approx(rocking_theory.formula(s, friction), abs=1e-7)
    p = step.state.impulses
    assert (np.abs(p[:, 1]) <= friction * p[:, 0] + 1e-9).all() and (p[:, 0] >= 0).all()
    # Where B alone acts, the angular momentum about B is that before: I w + (r x v), r = (-1/2, s/2) from B.
    if p[0, 0] == 0:
        pair = rocking_theory.about_a(s), step.state.u
        moment = [(1 + s * s) / 12 * u[2] - 0.5 * u[1] - s / 2 * u[0] for u in pair]
        assert moment[0] == pytest.approx(moment[1], abs=1e-7)


@settings(max_examples=30)
@given(st.floats(0.2, 8))
def test_without_friction_it_is_the_projection(s):
    # The exact projection of u- on {U_A >= 0, U_B >= 0} in the kinetic metric, by the quadratic programme.
    inertia = np.diag([1.0, 1.0, (1 + s * s) / 12])
    normals = np.array([[0, 1, -0.5], [0, 1, 0.5]])
    u = rocking_theory.about_a(s)
    after = u + np.linalg.inv(inertia) @ normals.T @ project(inertia, u, normals, np.zeros(2))
    assert rocking_theory.impact(s, 0.0).state.u == pytest.approx(after, abs=1e-7)
    expected = max(0.0, (s * s - 2) / (s * s + 4))
    assert -after[2] == pytest.approx(expected, abs=1e-12) and rocking_theory.formula(s, 0.0) == pytest.approx(expected)


def test_much_friction_is_housner_and_the_limits_are_continuous():
    for s in (0.8, 1.0, 2.0, 5.0):
        alpha = math.atan(1 / s)
        assert rocking_theory.formula(s, 9.0) == pytest.approx(1 - 1.5 * math.sin(alpha) ** 2)
        edge = 3 * s / (4 * s * s + 1)
        assert rocking_theory.formula(s, edge - 1e-9) == pytest.approx(rocking_theory.formula(s, edge), abs=1e-7)


def test_newtons_rule_never_lets_a_leave():
    for s in (1.0, 2.0, 5.0):
        for rho in (0.0, 0.3, 1.0):
            ratio, impulses = rocking_theory.newton(s, rho)
            assert ratio == pytest.approx(-rho, abs=1e-12)
            assert (impulses[0] < 0) == (s > math.sqrt(2))  # the floor would have to pull


# ---- catastrophes ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.floats(3, 87), st.floats(0.05, 5), st.floats(0, 3), st.floats(0.2, 3))
def test_regimes_and_what_the_scheme_does(degrees, friction, spin, speed):
    # Tip (x - cos, y - sin): its normal acceleration is F (1 + 3 c (c - gamma s)) - 1 + spin^2 s, with I = 1/3.
    angle = math.radians(degrees)
    c, s = math.cos(angle), math.sin(angle)
    p, b = 1 + 3 * c * (c - friction * s), -1 + spin**2 * s
    if min(abs(p), abs(b)) < 1e-3:
        return
    system = painleve.rods.rod(cd.Law(friction=friction), 1.0)
    state = painleve.sliding(system, angle, spin, speed, 1e-7)
    expected = {(True, False): 0, (True, True): 1, (False, False): 2, (False, True): 3}[(p > 0, b > 0)]
    assert painleve.smooth_solutions(cd.contact_problem(system, state, 1e-7)) == expected
    done = cd.schemes.midpoint(system, state, 1e-7)
    assert done.state.status[0] == (SLIDING, SEPARATING, STICKING, SEPARATING)[expected]
    if expected == 0:  # the force of the smooth motion
        assert done.state.impulses[0, 0] / 1e-7 == pytest.approx(-b / p, rel=1e-2)


@settings(max_examples=25)
@given(st.floats(1.4, 5), st.floats(0.05, 0.95), st.floats(0.2, 3))
def test_the_tangential_shock(friction, where, speed):
    low, high = painleve.critical_angles(friction)
    angle = low + where * (high - low)
    motion = painleve.slide(angle, friction, speed, 1e-6, 2e-6)
    after, impulse = painleve.shock_formula(angle, speed)
    # Independent of W^-1: the end is at rest, and the impulse explains the change of momentum and of spin.
    c, s = math.cos(angle), math.sin(angle)
    assert abs(after[0] + s * after[2]) < 1e-12 and abs(after[1] - c * after[2]) < 1e-12
    assert impulse == pytest.approx([after[1], after[0] + speed], abs=1e-12)
    assert after[2] / 3 == pytest.approx(-c * impulse[0] + s * impulse[1], abs=1e-12)
    assert motion.u[1] == pytest.approx(after, abs=1e-4) and motion.impulses[0, 0] == pytest.approx(impulse, abs=1e-4)
    assert -np.diff(motion.ledger.kinetic)[0] == pytest.approx(speed * impulse[1] / 2, rel=1e-3)
    assert np.abs(motion.ledger.closure).max() < 1e-12 and not motion.ledger.created.any()


def test_no_band_below_four_thirds():
    assert painleve.critical_angles(4 / 3 - 1e-9) is None
    low, high = painleve.critical_angles(4 / 3 + 1e-9)
    assert math.tan(low) == pytest.approx(2, abs=1e-3) == math.tan(high)


# ---- the experiments -------------------------------------------------------------------------------------------------


def run(tmp_path, name, *settings):
    arguments = [part for setting in settings for part in ("--set", setting)]
    with pytest.raises(SystemExit) as end:
        main(["run", name, "--quick", "--out", str(tmp_path / "out"), *arguments])
    path = tmp_path / "out" / "summary.json"
    return end.value.code, json.loads(Path(path).read_text())["results"] if path.exists() else None


def test_options_of_the_experiments(tmp_path):
    code, results = run(tmp_path / "one", "rocking-theory", "slenderness=2", "friction=0.1", "grid=3")
    assert code == 0 and results["ratio"] == pytest.approx((4 - 2 + 0.6) / (4 + 4 - 0.6), abs=1e-7)
    code, results = run(tmp_path / "two", "rocking-theory", "slenderness=0.6", "friction=3", "grid=3")
    assert code == 0 and abs(results["ratio"]) < 1e-7
    code, results = run(tmp_path / "three", "painleve", "friction=1.2", "grid=3")  # nothing to jump over
    assert code == 0 and results["critical_angles_degrees"] is None and results["shock_errors"] is None


@pytest.mark.parametrize("name, setting, words", [
    ("rocking-theory", "slenderness=0", "slenderness"), ("rocking-theory", "friction=-1", "friction"),
    ("rocking-theory", "tilt=1.5", "tilt"), ("painleve", "angle_degrees=90", "angle_degrees"),
    ("painleve", "step=-1", "step"),
])  # fmt: skip
def test_wrong_options(tmp_path, capsys, name, setting, words):
    assert run(tmp_path, name, setting)[0] == 2 and words in capsys.readouterr().err
