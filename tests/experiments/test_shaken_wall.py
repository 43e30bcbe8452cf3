"""Ground motions from files, their velocities, and a wall that is shaken."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.experiments import shaken_wall
from contactdynamics.scenes import loads


def test_shaking_integrates_the_accelerations():
    # a = A sin(w t) over whole periods: v = A/w (1 - cos(w t)), which ends at rest; trapezoid error (dt w)^2 / 12.
    size, turn = 2.0, 2 * math.pi * 1.5
    times = np.linspace(0.0, 2.0, 2001)
    velocity = loads.shaking(times, size * np.sin(turn * times), direction=(0.6, 0.8))
    for t in (0.1, 0.777, 1.4):
        exact = size / turn * (1 - math.cos(turn * t)) * np.array([0.6, 0.8])
        np.testing.assert_allclose(velocity(t), exact, atol=1e-5)
    np.testing.assert_allclose(velocity(5.0), 0.0, atol=1e-12)


def test_shaking_between_samples_is_exact():
    # Two samples, acceleration from 0 to 2 in 1 s: v = t^2; it ends at 1, and t is taken off: v = t^2 - t.
    velocity = loads.shaking([0.0, 1.0], [0.0, 2.0])
    for t in (0.25, 0.5, 0.75):
        assert velocity(t)[0] == pytest.approx(t * t - t, abs=1e-14)


def test_record_from_a_file(tmp_path):
    path = tmp_path / "record.txt"
    path.write_text("# time acceleration\n0.0 0.0\n0.01 1.5\n0.03 -2\n")
    times, values = loads.read_table(path)
    assert times.tolist() == [0.0, 0.01, 0.03] and values.tolist() == [0.0, 1.5, -2.0]
    path.write_text("0, 1\n1, 2\n")
    assert loads.read_table(path)[1].tolist() == [1.0, 2.0]
    options = shaken_wall.PARAMETERS | {"record": str(path), "scale": 3.0}
    assert shaken_wall.motion(options)[1].tolist() == [3.0, 6.0]


@pytest.mark.parametrize(
    "text, words",
    [
        ("0 1 2\n1 2 3\n", "shape (2, 3)"),
        ("0 1\n", "shape (1, 2)"),
        ("0 1\n1 nan\n", "not finite (row 2)"),
        ("0 1\n1 2\n1 3\n", "do not increase (row 3)"),
        ("zero one\n1 2\n", "no table of numbers"),
    ],
)
def test_wrong_records(tmp_path, text, words):
    path = tmp_path / "record.txt"
    path.write_text(text)
    with pytest.raises(cd.InputError) as error:
        loads.read_table(path)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_missing_record_and_wrong_numbers(tmp_path):
    with pytest.raises(cd.InputError, match="There is no file"):
        loads.read_table(tmp_path / "nothing.txt")
    with pytest.raises(cd.InputError, match="increasing times"):
        loads.shaking([0.0, 0.0], [1.0, 1.0])


def test_threshold_of_one_course():
    # A row of blocks on the table slides at a = friction g, before it topples at width / height.
    parameters = shaken_wall.PARAMETERS | {"courses": 1, "length": 0.4, "opening": [], "friction": 0.37}
    scene, _ = shaken_wall.wall(parameters, [0.0, 1.0], [0.0, 0.0])
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    assert shaken_wall.least_acceleration(frame, 0.37) == pytest.approx(0.37, abs=2e-3)
    # A slender one topples first.
    parameters |= {"block_width": 0.1, "length": 0.1, "block_height": 0.5, "friction": 0.9}
    scene, _ = shaken_wall.wall(parameters, [0.0, 1.0], [0.0, 0.0])
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    assert shaken_wall.least_acceleration(frame, 0.9) == pytest.approx(0.2, abs=2e-3)


def test_block_slides_as_newmark_says():
    # One block, friction mu; the table accelerates by a > mu g for t1, then by -a until it rests. The block accelerates
    # by mu g until the velocities meet, at t2 = 2 a t1 / (a + mu g), and lags behind by the area between them. Then it
    # slows down by mu g only, and comes forward by v^2 / 2 (1 / (mu g) - 1 / a) from the common velocity v = mu g t2.
    mu, a, t1, g = 0.3, 6.0, 0.2, 9.81
    parameters = shaken_wall.PARAMETERS | {
        "courses": 1, "length": 0.8, "block_width": 0.8, "block_height": 0.2, "opening": [], "friction": mu,
        "step": 2e-4, "tolerance": 1e-8,
    }  # fmt: skip
    edge = 1e-6
    times = [0.0, t1 - edge, t1 + edge, 2 * t1 - edge, 2 * t1 + edge, 2 * t1 + 0.3]
    shaken = shaken_wall.shake(parameters, np.array(times), np.array([a, a, -a, -a, 0.0, 0.0]))
    t2 = 2 * a * t1 / (a + mu * g)
    v = mu * g * t2
    lag = 0.5 * a * t1**2 + (t2 - t1) * 0.5 * (a * t1 + v) - 0.5 * v * t2
    forward = 0.5 * v**2 * (1 / (mu * g) - 1 / a)
    assert shaken.apart[:, 0].max() == pytest.approx(lag, rel=1e-2)
    assert shaken.apart[-1, 0] == pytest.approx(abs(forward - lag), abs=1e-2 * lag)
