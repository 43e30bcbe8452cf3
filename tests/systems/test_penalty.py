"""The penalty model: its rules, its order, and its limit."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import three_methods
from contactdynamics.systems.penalty import damping_ratio

G = 9.81


def ball(restitution, mass=3.0, gravity=0.0):
    floor = cd.Constraint(lambda t, q: q[0], law=cd.Law(restitution=restitution))
    return cd.System(inertia=[mass], force=lambda t, q, u: (-mass * gravity,), constraints=[floor])


@pytest.mark.parametrize("restitution", [0.1, 0.135, 0.2, 0.5, 0.8, 1.0])
def test_the_dashpot_gives_the_restitution(restitution):
    motion = cd.penalty.integrate(
        ball(restitution), (0.001,), (-1.0,), until=0.01, overlap=1e-3, speed=1.0, steps_per_contact=400
    )
    assert motion.u[-1, 0] == pytest.approx(restitution, abs=2e-3)


def test_overlaps_are_those_of_the_rules():
    # Elastic impact with the speed stated: m v^2 = k d^2, so d is the overlap asked for. At rest: F / k.
    struck = cd.penalty.integrate(
        ball(1.0), (0.0,), (-2.0,), until=0.01, overlap=1e-3, speed=2.0, steps_per_contact=200
    )
    assert struck.overlap == pytest.approx(1e-3, rel=1e-3)
    assert struck.stiffness[0] == pytest.approx(3.0 * (2.0 / 1e-3) ** 2, rel=1e-12)
    assert struck.step == pytest.approx(math.pi * 1e-3 / 2.0 / 200, rel=0.01)
    resting = cd.penalty.integrate(ball(0.2, gravity=G), (0.0,), (0.0,), until=2.0, overlap=1e-3, speed=1e-3)
    assert resting.stiffness[0] == pytest.approx(3.0 * G / 1e-3, rel=1e-12)  # the load decides
    assert resting.q[-1, 0] == pytest.approx(-1e-3, rel=1e-3)


def test_order_two_in_the_step():
    # A ball in the spring, no dashpot: from the instant of contact x = -(v/w) sin w t.
    ends = []
    for n in (10, 20, 40, 80):
        motion = cd.penalty.integrate(
            ball(1.0), (0.0,), (-1.0,), until=0.75e-3 * math.pi, overlap=1e-3, speed=1.0, steps_per_contact=n
        )
        ends.append(abs(motion.q[-1, 0] + 1e-3 * math.sin(0.75 * math.pi)))
    assert np.mean(np.log2(np.array(ends[:-1]) / ends[1:])) == pytest.approx(2.0, abs=0.2)


def test_friction_stops_a_sliding_particle():
    # u = v - mu g t after the first oscillations of the spring; it stops at v^2 / (2 mu g) and stays.
    floor = cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=0.4))
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -G), constraints=[floor])
    motion = cd.penalty.integrate(system, (0, 0), (1.0, 0.0), until=0.4, overlap=2e-5, speed=0.01)
    assert motion.q[-1, 0] == pytest.approx(1 / (0.8 * G), rel=1e-3)
    assert abs(motion.u[-1, 0]) < 1e-6


def test_limit_of_stiff_springs_is_the_rigid_motion_between_impacts():
    system, q, until, speed = three_methods.curve(three_methods.PARAMETERS)
    exact = three_methods.curve_end(three_methods.PARAMETERS, until)
    errors = [
        np.abs(
            cd.penalty.integrate(
                system, q, (0, 0), until=until, overlap=d, speed=speed, steps_per_contact=25
            ).q[-1] - exact
        ).max()
        for d in (0.032, 0.016, 0.008)
    ]  # fmt: skip
    # Lasting contact overlaps by F / k, and k goes with 1 / overlap^2.
    assert np.mean(np.log2(np.array(errors[:-1]) / errors[1:])) == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"overlap": 0.0}, "overlap"),
        ({"speed": -1.0}, "speed"),
        ({"until": 0.0}, "later"),
        ({"steps_per_contact": 2}, "steps_per_contact"),
        ({"recorded": 1}, "recorded"),
    ],
)
def test_wrong_input_is_told(options, sentence):
    with pytest.raises(cd.InputError, match=sentence):
        cd.penalty.integrate(ball(0.5), (1.0,), (0.0,), **({"until": 1.0, "overlap": 1e-3, "speed": 1.0} | options))


def test_what_it_does_not_know_is_told():
    floor = cd.Constraint(lambda t, q: q[2], law=cd.Law(friction=0.3))
    with pytest.raises(cd.InputError, match="1 or 2 components"):
        grain = cd.System(inertia=[1.0] * 3, constraints=[floor])
        cd.penalty.integrate(grain, (0, 0, 0), (0, 0, 0), until=1.0, overlap=1e-3, speed=1.0)
    with pytest.raises(cd.InputError, match="no constraints"):
        cd.penalty.integrate(cd.System(inertia=[1.0]), (0,), (0,), until=1.0, overlap=1e-3, speed=1.0)
    assert damping_ratio(0.0) == damping_ratio(0.1)


@pytest.mark.parametrize("setting", ["steps=10", "overlap=1", "friction=3", "start_degrees=90"])
def test_experiment_refuses_nonsense(setting, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "three-methods", "--set", setting, "--out", str(tmp_path / "out")])
    assert end.value.code == 2 and "give" in capsys.readouterr().err


def test_experiment_takes_options(tmp_path, capsys):
    settings = ["--set", "friction=0.1", "--set", "start_degrees=60", "--set", "steps=400", "--set", "overlap=0.02"]
    with pytest.raises(SystemExit) as end:
        main(["run", "three-methods", "--quick", *settings, "--out", str(tmp_path / "out")])
    assert end.value.code == 0, capsys.readouterr().out


def test_closed_form_of_the_dome():
    # The time on the dome, by elliptic integrals, against the quadrature of dt = da / sqrt(2 g (cos a0 - cos a)) with
    # the singularity at a0 removed by a = a0 + s^2.
    from scipy.integrate import quad

    a0 = 0.5
    leave = math.acos(2 / 3 * math.cos(a0))

    def rate(s):
        return 2 * s / math.sqrt(2 * three_methods.GRAVITY * (math.cos(a0) - math.cos(a0 + s * s))) if s else 0.0

    expected = quad(rate, 1e-9, math.sqrt(leave - a0), epsabs=1e-12)[0]
    assert three_methods.dome_times(a0)[0] == pytest.approx(expected, rel=1e-8)
