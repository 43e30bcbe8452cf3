"""The silo: its law recovers what it is made with, its bottom has the opening that was asked, and spheres flow too."""

import numpy as np
import pytest

from contactdynamics.experiments import runner, silo


@pytest.mark.parametrize("power", [1.5, 2.5])
def test_the_law_is_found_in_its_own_rates(power):
    opening = np.array([4.0, 5.0, 7.0])
    k, scale, exponent = silo.beverloo(opening, 0.6 * (opening - 1.4) ** power, power)
    assert (k, scale, exponent) == pytest.approx((1.4, 0.6, power), rel=1e-9)


def test_errors_of_the_law_are_those_of_rates_that_scatter():
    opening, power, rng = np.array([5.5, 7.0, 9.0]), 1.5, np.random.default_rng(3)
    rate = 0.6 * (opening - 1.4) ** power
    error = np.array([0.02, 0.04, 0.03]) * rate
    found = np.array([silo.beverloo(opening, rng.normal(rate, error), power) for _ in range(4000)])
    assert silo.errors(opening, rate, error, power) == pytest.approx(found[:, [0, 2]].std(axis=0), rel=0.1)


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_bottom_leaves_the_opening_and_nothing_else(dimension):
    """No grain is nearer to the axis than the edge, and no point of the bottom beyond it is far from one."""
    half, opening, bead = 5.0, 3.5, silo.BEAD[dimension]
    places = silo.bottom(dimension, half, opening)
    across = places[:, :-1]
    assert np.sqrt((across**2).sum(axis=1)).min() == pytest.approx(0.5 * opening + bead)
    point = np.random.default_rng(1).uniform(-half, half, (500, dimension - 1))
    point = point[np.sqrt((point**2).sum(axis=1)) > 0.5 * opening]
    far = np.sqrt(((point[:, None] - across[None]) ** 2).sum(axis=2)).min(axis=1)
    assert far.max() < 2 * bead  # the smallest grain has a radius of 0.4


def test_what_is_set_is_kept_in_space():
    chosen = silo.settled(dict(silo.PARAMETERS) | {"dimension": 3, "width": 20.0})
    assert (chosen["width"], chosen["grains"], chosen["openings"][0]) == (20.0, 4000, 5.5)
    assert silo.settled(dict(silo.PARAMETERS)) == dict(silo.PARAMETERS)


@pytest.mark.slow
def test_spheres_flow_by_the_law_of_space(tmp_path):
    experiment = runner.load("silo")
    parameters = runner.parameters_of(experiment, {"dimension": "3"}, quick=True)
    _, verdict = runner.run(experiment, parameters, tmp_path)
    assert verdict.passed and verdict.rows[0].expected == 2.5
