"""The chatter of trial 10 (1986, sections 13 to 15): the five regimes of the report, told from the motion alone."""

import math

import numpy as np
import pytest

from contactdynamics import InputError, integrate
from contactdynamics.experiments import essai_10 as chatter
from contactdynamics.experiments import runner


def outcome_of(torque, step, duration=4.0):
    parameters = chatter.PARAMETERS | {"torque": torque, "step": step, "duration": duration, "compare": False}
    outcome = chatter.build(parameters)
    return outcome["motion"], chatter.check(outcome, parameters)


@pytest.mark.parametrize("torque", chatter.REPORTED)
def test_regimes_of_the_report_at_the_steps_of_the_plates(torque):
    _, verdict = outcome_of(torque, chatter.STEPS[torque])
    assert verdict.results["regime"] == chatter.REPORTED[torque]
    assert [row.quantity for row in verdict.rows if not row.passed] == []


def test_one_kind_of_shock_stops_the_lowest_point_and_it_leaves_at_once():
    motion, verdict = outcome_of(-200.0, 5e-4)
    (before,) = verdict.results["velocity_before_shock"]
    assert before[0] == pytest.approx(-14, abs=0.5) and before[1] < 0
    assert verdict.results["contact_fraction"] < 0.02
    shocks = chatter.shocks_of(motion)
    assert np.all(shocks.sticking == 1) and np.all(shocks.lasting == 1)


def test_two_kinds_of_shock_and_one_episode_of_slip():
    _, verdict = outcome_of(-100.0, 2e-4)
    results = verdict.results
    assert len(results["velocity_before_shock"]) == 2
    assert sorted(steps > 1 for steps in results["contact_after_shock"]) == [False, True]
    assert results["sticking_after_shock"] == [0, 0]


@pytest.mark.parametrize(("torque", "regime"), [(-300.0, "periodic"), (-600.0, "permanent contact")])
def test_other_torques_are_told_from_the_motion_with_general_checks_only(torque, regime):
    _, verdict = outcome_of(torque, 1e-3, duration=3.0)
    assert verdict.results["regime"] == regime
    assert verdict.passed and "regime" not in {row.quantity for row in verdict.rows}


def test_jitter_of_the_shocks_shrinks_with_the_step():
    coarse, fine = (chatter.spread(chatter.shocks_of(outcome_of(-200.0, h, 3.0)[0]), 1) for h in (1e-3, 2e-4))
    assert fine < 0.5 * coarse


def test_the_schemes_of_1986_and_2003_give_the_same_motion():
    for torque in (-700.0, -100.0):  # one test: the midpoint kernel is compiled in one worker only
        body, start = chatter.system({"torque": torque}), chatter.initial({"torque": torque})
        old, new = (integrate(body, *start, step=5e-4, until=0.3, scheme=s) for s in ("planar_friction", "midpoint"))
        assert np.abs(old.q - new.q).max() < 1e-11
        assert np.array_equal(old.status, new.status)


def test_without_friction_the_report_is_not_reproduced(monkeypatch):
    monkeypatch.setattr(chatter, "FRICTION", 0.0)
    _, verdict = outcome_of(-200.0, 1e-3, duration=3.0)
    assert not verdict.passed


def test_force_is_the_gradient_of_the_spring_energy_and_the_torque():
    def energy(t, q):
        dx, dy = chatter.GRIP
        grip = (q[0] + dx * math.cos(q[2]) - dy * math.sin(q[2]), q[1] + dx * math.sin(q[2]) + dy * math.cos(q[2]))
        stretch = (chatter.SPEED * t - grip[0], chatter.HEIGHT - grip[1])
        return 0.5 * sum(k * s**2 for k, s in zip(chatter.STIFFNESS, stretch, strict=True)) + 200.0 * q[2]

    t, q, h = 0.1, np.array([2.0, 2.1, 0.9]), 1e-5
    slopes = [(energy(t, q + h * e) - energy(t, q - h * e)) / (2 * h) for e in np.eye(3)]
    assert chatter.system({"torque": -200.0}).force(t, q, np.zeros(3)) == pytest.approx([-s for s in slopes], rel=1e-6)


def test_velocity_of_the_lowest_point_is_that_of_its_particle():
    body, start = chatter.system({"torque": -200.0}), chatter.initial({"torque": -200.0})
    motion = integrate(body, *start, step=1e-3, until=0.02, scheme="planar_friction")
    velocity = chatter.lowest_point_velocity(motion)
    for (x, y, angle), (u, v, spin), expected in zip(motion.q, motion.u, velocity, strict=True):
        lowest = np.array([x - chatter.ARM * math.sin(angle), y + chatter.ARM * math.cos(angle) - chatter.RADIUS])
        lever = lowest - (x, y)
        assert expected == pytest.approx([u - spin * lever[1], v + spin * lever[0]])


@pytest.mark.parametrize("wrong", [{"duration": "0.5"}, {"step": "0.0"}, {"step": "0.1"}])
def test_wrong_options_are_refused(wrong):
    with pytest.raises(InputError, match="out of range"):
        runner.parameters_of(runner.load("essai-10"), wrong)
