"""The experiments with blocks in three dimensions: shapes of the walls, wrong options, and their results."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.experiments import sliding_block, tilting_wall
from contactdynamics.rigid.step import Step


def test_a_u_is_bonded_and_closed():
    # 8 courses of a front of 4 blocks and sides of 3: 76 blocks, as many in each second course; nothing overlaps, and
    # no vertical joint stands over another one.
    p = tilting_wall.PARAMETERS | {"direction": "u"}
    scene = tilting_wall.layout(p)
    sim = cd.Simulation(scene, time_step=1e-3)
    assert len(sim.positions) - 1 == 76
    sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
    assert sim.contact_set.deepest(sim.model)[0].depth < 1e-12
    cuts = []
    for through in (True, False):
        blocks = tilting_wall.u_course(4.0, 3.0, 1.0, through)
        area = sum(float(np.prod(high - low)) for low, high in blocks)
        assert area == pytest.approx(4.0 * 0.5 + 2 * 2.5 * 0.5)
        cuts.append({round(float(low[0]), 6) for low, high in blocks if high[1] <= 0.5 + 1e-9 and low[0] > 0.1})
    assert not cuts[0] & cuts[1] - {3.5}


def test_wrong_options_of_the_wall():
    for changed, words in (({"direction": "up"}, "choose out, in, u"), ({"direction": "u", "length": 2}, "length=3")):
        with pytest.raises(cd.InputError, match=words):
            tilting_wall.build(tilting_wall.PARAMETERS | changed)


@pytest.mark.parametrize("direction", ["out", "in"])
def test_a_small_wall(direction):
    p = tilting_wall.PARAMETERS | tilting_wall.QUICK | {"direction": direction, "courses": 3, "length": 2, "hold": 0.3}
    outcome = tilting_wall.build(p)
    verdict = tilting_wall.check(outcome, p)
    assert verdict.passed, verdict.rows
    if direction == "out":
        assert verdict.results["angle_degrees"] == pytest.approx(math.degrees(math.atan(1 / 3)), rel=0.006)
    else:
        assert verdict.results["angle_degrees"] < verdict.results["limit_degrees"] * 1.005


@pytest.mark.parametrize("friction", [0.1, 0.6, 1.5])
def test_the_angle_of_friction_to_a_millionth(friction):
    p = sliding_block.PARAMETERS | {"friction": friction, "rest": 1.0}
    # A tall block would topple before it slides: this one is flat enough for all of them.
    outcome = sliding_block.build(p)
    verdict = sliding_block.check(outcome, p)
    assert verdict.passed, verdict.rows
    assert abs(verdict.results["error_radians"]) < 1e-6 and verdict.results["moved_metres"] < 1e-12


@pytest.mark.parametrize("direction", ["out", "in", "u"])
def test_the_table_is_tilted_towards_where_limit_analysis_pushes(direction):
    # A U stands inwards at a larger angle than outwards: the sign counts.
    way = np.array(tilting_wall.DIRECTIONS[direction])
    felt = tilting_wall.tilted(way, 0.3)(0.0)
    np.testing.assert_allclose(felt, 9.81 * (math.sin(0.3) * way + math.cos(0.3) * np.array([0, 0, -1])), atol=1e-12)
