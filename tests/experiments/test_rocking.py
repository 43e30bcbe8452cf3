"""The rocking block: closed forms against each other, and the scene against them."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.experiments import _rocking, rocking, runner
from contactdynamics.experiments._rocking import Block, housner_period, impact_ratio, quarter


def test_ratio_is_housners_where_the_corner_sticks():
    # Angular momentum about the new corner: 1 - 3/2 sin^2 alpha.
    for slenderness in (1.0, 2.5, 4.0):
        alpha = math.atan(1 / slenderness)
        assert impact_ratio(slenderness, math.inf) == pytest.approx(1 - 1.5 * math.sin(alpha) ** 2)
        bound = 3 * slenderness / (4 * slenderness**2 + 1)  # continuous where sliding begins
        below = impact_ratio(slenderness, bound * (1 - 1e-9))
        assert below == pytest.approx(impact_ratio(slenderness, bound), abs=1e-7)


def test_ratio_without_friction_from_momentum():
    # Vertical impulse P at the new corner: m (w+ + w-) b = P, I (w+ - w-) = -P b, I = m (b^2 + h^2) / 3.
    b, h = 1.0, 2.2
    inertia = (b * b + h * h) / 3
    assert impact_ratio(h / b, 0.0) == pytest.approx((inertia - b * b) / (inertia + b * b))
    assert impact_ratio(1.2, 0.0) == 0.0 and impact_ratio(0.6, 5.0) == 0.0


@pytest.mark.parametrize("slenderness", [0.6, 1.2, 2.0, 4.5])
@pytest.mark.parametrize("friction", [0.0, 0.15, 0.8])
def test_one_impact(slenderness, friction):
    assert rocking.one_impact(slenderness, friction) == pytest.approx(impact_ratio(slenderness, friction), abs=5e-6)


def test_error_of_the_impact_is_of_first_order():
    # The impact is found up to a step late: the error halves with the step.
    exact = impact_ratio(3.0, 1.0)
    errors = [abs(rocking.one_impact(3.0, 1.0, step=step) - exact) for step in (1e-3, 5e-4, 2.5e-4)]
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.2) and errors[1] / errors[2] == pytest.approx(2, abs=0.2)


def test_exact_quarter_tends_to_housners():
    # Slender blocks: sin(alpha - theta) -> alpha - theta; the error falls as alpha^2.
    errors = []
    for slenderness in (5.0, 10.0, 20.0):
        block = Block(1.0, slenderness)
        tilt = 0.4 * block.alpha
        errors.append(abs(4 * quarter(block, tilt) / housner_period(block, tilt) - 1))
    assert errors[0] < 2e-2 and errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_smooth_motion_keeps_its_energy_and_its_quarter():
    block = Block(0.3, 1.0)
    tilt = 0.5 * block.alpha
    times, tilts = _rocking.smooth_motion(block, lambda t: 0.0, 1.5, tilt=tilt)
    first = times[np.flatnonzero(tilts <= 1e-9)[0]]
    assert first == pytest.approx(quarter(block, tilt), abs=1e-6)
    # The next largest tilt: cos(alpha - x) - cos(alpha) = r^2 (cos(alpha) - cos(alpha - tilt)) in size.
    r = impact_ratio(block.slenderness, math.inf)
    level = math.cos(block.alpha) + r**2 * (math.cos(block.alpha - tilt) - math.cos(block.alpha))
    second = block.alpha - math.acos(level)
    assert tilts.min() == pytest.approx(-second, rel=1e-4)


def test_released_block_follows_the_smooth_motion():
    block = Block(0.25, 1.0)
    parameters = rocking.PARAMETERS | {"step": 1e-3}
    far = []
    for step in (2e-3, 1e-3):
        motion = rocking.released(block, parameters | {"step": step})
        far.append(rocking.apart(motion, block.alpha))
        assert motion[3].closure < 1e-9 * abs(motion[3].force_work + 1)
    assert far[1] < 0.7 * far[0] < 0.03


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.ConvergenceWarning")  # a step at 2e-6 instead of 1e-8
def test_shaken_below_and_above_the_threshold():
    # A block at rest begins to rock when the ground's acceleration exceeds g b / h.
    block, parameters = Block(0.25, 1.0), rocking.PARAMETERS | {"duration": 0.4}
    for share, moves in ((0.99, False), (1.05, True)):
        tilts = rocking.shaken(block, parameters, share)[1]
        assert bool(np.abs(tilts).max() > 1e-6) is moves


def test_wrong_options():
    for wrong in ({"tilt": "1.2"}, {"width": "0"}, {"ratios": "1"}):
        with pytest.raises(cd.InputError, match="out of range"):
            runner.parameters_of(runner.load("rocking"), wrong)
