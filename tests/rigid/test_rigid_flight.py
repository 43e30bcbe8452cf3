"""Bodies without contact: free flight, forces, springs, and the free top."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.quaternions import matrix
from contactdynamics.rigid import advance, motion
from rigid_tools import DIMENSIONS, G, assert_closed, ball, ball_mass, order, run, start, vector, world

# ---- free flight ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_body_in_free_flight_is_where_newton_says(d, penetration):
    # x = x0 + v t + g t^2 / 2: the midpoint scheme is exact in a constant field (1986, section 6).
    scene = world(d)
    place, speed = np.arange(1.0, d + 1), np.arange(-2.0, d - 2)
    scene.add(ball(d, 0.2), material="m", position=place, velocity=speed, spin=1.5 if d == 2 else (1.5, 0, 0))
    sim = start(scene, 0.01, penetration=penetration)
    for _ in range(200):
        sim.step()
        t = sim.time
        exact = place + t * speed + 0.5 * t**2 * scene.gravity
        assert np.abs(sim.positions[0] - exact).max() <= 1e-13 * (1 + np.abs(exact).max())
        assert np.abs(sim.velocities[0] - speed - t * scene.gravity).max() <= 1e-13 * (1 + G * t)
    angle = (1.5 * sim.time + np.pi) % (2 * np.pi) - np.pi
    turned = sim.rotations[0] if d == 2 else 2 * np.arctan2(sim.rotations[0, 1], sim.rotations[0, 0])
    assert np.exp(1j * turned) == pytest.approx(np.exp(1j * angle), abs=1e-12)
    assert_closed(sim)
    # kinetic + potential energy is constant in flight
    assert sim.energy.kinetic + sim.energy.potential == pytest.approx(
        sim.first_kinetic - ball_mass(d, 0.2) * (place @ scene.gravity), rel=1e-12
    )


@pytest.mark.parametrize("d", DIMENSIONS)
def test_constant_force_and_torque_give_exact_motion(d):
    # a = g + F / m, alpha = T / I: x and the angle are quadratic in t, which the scheme follows exactly.
    scene = world(d)
    body = scene.add(ball(d, 0.3), material="m")
    force, torque = vector(d, 0.5, 2.0), 0.02
    scene.force(body, force=force, torque=torque if d == 2 else (0, 0, torque))
    sim = run(scene, 0.02, 1.0)
    m = ball_mass(d, 0.3)
    inertia = m * 0.3**2 / (2 if d == 2 else 2.5)
    assert sim.positions[0] == pytest.approx(0.5 * (scene.gravity + force / m), rel=1e-12)
    spin = sim.spins[0] if d == 2 else sim.spins[0, 2]
    assert spin == pytest.approx(torque / inertia, rel=1e-12)
    turned = np.exp(0.5j * torque / inertia)
    q = sim.rotations[0]
    got = np.exp(1j * q) if d == 2 else (q[0] + 1j * q[3]) ** 2
    assert got == pytest.approx(turned, abs=1e-12)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_force_that_varies_in_time_is_integrated_to_second_order(d):
    # F = F0 sin(w t): v = F0 (1 - cos w t) / (m w); the scheme sums h F(t_m), the midpoint rule.
    errors = []
    for h in (0.02, 0.01, 0.005):
        scene = world(d, gravity=0.0)
        body = scene.add(ball(d, 0.3), material="m")
        scene.force(
            body,
            force=cd.loads.sine(vector(d, 0.7, 0.0), frequency=0.5),
            torque=lambda t: 0.01 * np.cos(t) if d == 2 else (0, 0.01 * np.cos(t), 0),
        )
        sim = run(scene, h, 1.4)
        w, m = np.pi, ball_mass(d, 0.3)
        inertia = m * 0.3**2 / (2 if d == 2 else 2.5)
        spin = sim.spins[0] if d == 2 else sim.spins[0, 1]
        steps = (np.arange(round(1.4 / h)) + 0.5) * h
        assert sim.velocities[0, 0] == pytest.approx(h * (0.7 * np.sin(w * steps)).sum() / m, rel=1e-12)
        errors.append([
            abs(sim.velocities[0, 0] - 0.7 * (1 - np.cos(w * 1.4)) / (m * w)),
            abs(spin - 0.01 * np.sin(1.4) / inertia),
        ])  # fmt: skip
    assert np.abs(order(errors) - 2).max() < 0.05


# ---- springs and dashpots --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("partner", ["ground", "body"])
def test_oscillator_has_the_frequency_of_the_spring(d, partner):
    # x'' = -w^2 x, w^2 = k / m (two bodies: k (1/m1 + 1/m2)). The scheme is the leapfrog: its own frequency W obeys
    # sin(W h / 2) = w h / 2, so that x_k = a cos(W k h) exactly when it starts from rest, and W - w = w^3 h^2 / 24.
    errors = []
    for h in (0.02, 0.01, 0.005):
        scene = world(d, gravity=0.0)
        m = ball_mass(d, 0.3)
        one = scene.add(ball(d, 0.3), material="m", position=vector(d, 2.25))
        if partner == "ground":
            scene.spring(one, stiffness=3.0, length=2.0)
            w = np.sqrt(3.0 / m)
        else:
            two = scene.add(ball(d, 0.2), material="m", position=vector(d, 0.0))
            scene.spring(one, two, stiffness=3.0, length=2.0)
            w = np.sqrt(3.0 * (1 / m + 1 / ball_mass(d, 0.2)))
        sim = start(scene, h)
        own = 2 / h * np.arcsin(0.5 * w * h)
        worst = 0.0
        while sim.time < 3.0:
            sim.step()
            stretch = sim.positions[0, 0] - (sim.positions[1, 0] if partner == "body" else 0.0) - 2.0
            assert stretch == pytest.approx(0.25 * np.cos(own * sim.time), abs=1e-11)
            worst = max(worst, abs(stretch - 0.25 * np.cos(w * sim.time)))
        errors.append(worst)
        assert_closed(sim)
    assert np.abs(order(errors) - 2).max() < 0.05


@pytest.mark.parametrize("d", DIMENSIONS)
def test_dashpot_damps_at_the_rate_of_its_constant(d):
    # x'' + 2 z w x' + w^2 x = 0: x = a exp(-z w t) (cos(W t) + z w / W sin(W t)), W = w sqrt(1 - z^2). The scheme takes
    # F at the velocity of the start of the step, F(t_m, q_m, u) (2004, eq. 36): first order where F depends on u.
    errors = []
    for h in (0.004, 0.002, 0.001):
        scene = world(d, gravity=0.0)
        m = ball_mass(d, 0.3)
        body = scene.add(ball(d, 0.3), material="m", position=vector(d, 1.5))
        w, z = np.sqrt(3.0 / m), 0.2
        scene.spring(body, stiffness=3.0, damping=2 * z * w * m, length=1.0)
        sim = run(scene, h, 2.0)
        damped = w * np.sqrt(1 - z**2)
        phase = damped * 2.0
        exact = 0.5 * np.exp(-z * w * 2.0) * (np.cos(phase) + z * w / damped * np.sin(phase))
        errors.append(abs(sim.positions[0, 0] - 1.0 - exact))
        # what the springs took from the motion is what the dashpot lost and the spring holds
        assert sim.energy.kinetic == pytest.approx(sim.energy.force_work, rel=1e-10)
        assert sim.energy.force_work < 0.5 * 3.0 * 0.25 - (sim.energy.potential)
    assert np.abs(order(errors) - 1).max() < 0.05
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_spring_off_the_centre_turns_the_body_and_keeps_energy_to_second_order(d):
    errors = []
    for h in (0.01, 0.005, 0.0025):
        scene = world(d)
        body = scene.add(ball(d, 0.3), material="m", position=vector(d, 0.4, -1.0))
        scene.spring(body, stiffness=20.0, length=0.5, anchor=vector(d, 0.25, 0.1), other=vector(d, 0.1, 0.2))
        sim = start(scene, h)
        first = sim.energy.potential
        worst = 0.0
        while sim.time < 2.0:
            sim.step()
            worst = max(worst, abs(sim.energy.kinetic + sim.energy.potential - first))
        assert np.abs(sim.spins).max() > 0.1
        assert_closed(sim)
        errors.append(worst)
    assert np.abs(order(errors) - 2).max() < 0.2


# ---- the free top ----------------------------------------------------------------------------------------------------


def top(h, until):
    """A cluster with three different moments, thrown with spin about no axis of its own."""
    scene = world(3)
    shape = cd.Cluster([0.3, 0.2, 0.25], [(0, 0, 0), (0.4, 0.1, 0), (-0.1, 0.5, 0.2)])
    scene.add(shape, material="m", velocity=(1, 2, 3), spin=(1.0, 3.0, -2.0), rotation=(0.9, 0.1, -0.3, 0.3))
    sim = start(scene, h)
    return sim, angular_momentum(sim), sim.run(until=until, progress=False)


def angular_momentum(sim):
    """R I R^T w of the only body, in space."""
    r = matrix(sim.bodies.orientation[0])
    return r @ (sim.bodies.inertia[0] * (r.T @ sim.spins[0]))


def test_the_free_top_keeps_energy_and_angular_momentum():
    # The implicit midpoint rule keeps quadratic invariants: energy and |L| to rounding. The direction of L: 2nd order.
    errors = []
    for h in (0.02, 0.01, 0.005):
        sim, before, _ = top(h, 4.0)
        moments = sim.bodies.inertia[0]
        assert np.ptp(moments) > 0.3 * moments.max()
        after = angular_momentum(sim)
        spinning = sim.energy.kinetic - 0.5 * sim.bodies.mass[0] * (sim.velocities[0] ** 2).sum()
        assert sim.first_kinetic - 0.5 * sim.bodies.mass[0] * 14 == pytest.approx(spinning, rel=1e-12)
        assert np.linalg.norm(after) == pytest.approx(np.linalg.norm(before), rel=1e-12)
        errors.append(np.linalg.norm(after - before) / np.linalg.norm(before))
        assert_closed(sim)
        assert np.linalg.norm(sim.rotations[0]) == pytest.approx(1, abs=1e-14)
        # and the centre of mass flies as if nothing turned
        assert sim.positions[0] == pytest.approx([4.0, 8.0, 12.0 - 8 * G], rel=1e-12)
    assert np.abs(order(errors) - 2).max() < 0.1
    assert errors[-1] < 1e-3


def test_the_attitude_of_a_free_top_converges_with_second_order():
    reference = matrix(top(0.000625, 2.0)[0].rotations[0])
    errors = [np.abs(matrix(top(h, 2.0)[0].rotations[0]) - reference).max() for h in (0.02, 0.01, 0.005)]
    assert np.abs(order(errors) - 2).max() < 0.15


def test_a_top_about_a_principal_axis_turns_at_constant_rate():
    # Euler's equations have the three principal axes as fixed points.
    shape = cd.Cluster([0.3, 0.2, 0.25], [(0, 0, 0), (0.4, 0.1, 0), (-0.1, 0.5, 0.2)])
    _, axes = shape.mass_properties().principal
    for k in (0, 2):  # the middle one is unstable
        scene = world(3, gravity=0.0)
        scene.add(shape, material="m", spin=2.0 * axes[:, k])
        sim = run(scene, 0.01, 3.0)
        assert np.abs(sim.spins[0] - 2.0 * axes[:, k]).max() < 1e-11
        angle = 6.0  # rad
        expected = (
            np.eye(3) + np.sin(angle) * cross(axes[:, k]) + (1 - np.cos(angle)) * cross(axes[:, k]) @ cross(axes[:, k])
        )
        assert np.abs(matrix(sim.rotations[0]) - expected).max() < 1e-10


def cross(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def test_balls_that_are_turned_together_have_the_bits_of_each_turned_alone():
    """Small turns four at once, large ones and none: as `motion.turn` by one half, then by the other."""
    rng = np.random.default_rng(4)
    q = rng.normal(size=(advance.SOME, 4))
    q /= np.sqrt((q**2).sum(axis=1))[:, None]
    halves = rng.normal(size=(2, advance.SOME, 3)) * rng.choice(
        [0.0, 1e-9, 1e-3, 0.019, 0.021, 2.0], (2, advance.SOME, 1)
    )
    alone, some = q.copy(), np.arange(advance.SOME, dtype=np.uint64)
    for i in range(advance.SOME):
        for half in halves:
            motion.turn(alone, i, *half[i])
    before, rows = np.zeros((2, advance.SOME, 8))
    before[:, 3:6], rows[:, 3:6], rows[:, 7] = *halves, 1.0
    count = advance.SOME - 3
    advance.turn_balls(q, some, count, before, rows, 1.0, np.empty((6, advance.SOME)))
    assert np.array_equal(q[:count], alone[:count]) and not (q[count:] == alone[count:]).all()
    assert np.abs((q**2).sum(axis=1) - 1.0).max() < 1e-12
