"""Driven bodies: shaken tables, belts, turntables, tilting planes; their work in the ledger."""

import numpy as np
import pytest
from scipy.optimize import brentq

import contactdynamics as cd
from rigid_tools import (
    DIMENSIONS,
    G,
    assert_closed,
    ball,
    ball_mass,
    floor,
    order,
    overlaps,
    run,
    sled,
    start,
    step_through,
    vector,
    wall,
    world,
)  # fmt: skip

TOUCH = 1 - 1e-13


def on_table(d, motion, body=None, **law):
    """A body at rest on a table with the given motion."""
    scene = world(d, **law)
    floor(scene, motion=motion)
    scene.add(ball(d, 0.1) if body is None else body, material="m", position=vector(d, 0, 0.1 * TOUCH))
    return scene


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_sled_follows_a_table_that_is_shaken_gently(d):
    # Velocity V sin(w t): it follows while V w <= gamma g; at the end of a step its velocity is the table's at the
    # midpoint (U = 0 with w(t_m)). The work of the drive is then the kinetic energy gained, to first order in h.
    for share, sticks in ((0.95, True), (1.3, False)):
        frequency = share * 0.5 * G / (2 * np.pi * 0.3)
        scene = on_table(d, cd.loads.sine(vector(d, 0.3), frequency), sled(d), friction=0.5)
        sim = start(scene, 1e-3, on_failure="raise" if sticks else "ignore")  # slipping or not: slow at 1e-13
        slip = 0.0
        for _ in step_through(sim, 500):
            table = 0.3 * np.sin(2 * np.pi * frequency * (sim.time - 5e-4))
            slip = max(slip, abs(sim.velocities[1, 0] - table))
        assert (slip < 1e-10) == sticks
        assert sim.velocities[0, 0] == table
        assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_work_of_a_table_that_carries_a_sled(d):
    # Power m a v: from rest to the time t the drive gives m v(t)^2 / 2. The books are exact, first order in h.
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        scene = on_table(d, cd.loads.sine(vector(d, 0.3), 1.0), sled(d), friction=0.5)
        sim = run(scene, h, 0.2)
        m = sim.bodies.mass[1]
        exact = 0.5 * m * (0.3 * np.sin(2 * np.pi * 0.2)) ** 2
        errors.append(abs(sim.energy.drive_work - exact) / exact)
        assert sim.energy.normal_work.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(order(errors) - 1).max() < 0.1 and errors[-1] < 0.02


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_leaves_a_table_that_falls_faster_than_it(d, penetration):
    # Table velocity V sin(w t), acceleration V w cos(w t): contact is lost when it reaches -g, at
    # cos(w t) = -g / (V w); then free flight, until the table comes back.
    v, w = 1.2, 2 * np.pi * 2.5
    scene = on_table(d, cd.loads.sine(vector(d, 0, v), 2.5))
    sim = start(scene, 5e-4, penetration=penetration)
    lost = np.arccos(-G / (v * w)) / w

    def table(t):
        return v / w * (1 - np.cos(w * t))

    def flight(t):
        return table(lost) + v * np.sin(w * lost) * (t - lost) - 0.5 * G * (t - lost) ** 2

    back = brentq(lambda t: flight(t) - table(t), lost + 0.05, lost + 0.5)
    touching = []
    for _ in step_through(sim, round((back + 0.1) / 5e-4)):
        touching.append((sim.contacts.impulse[:, 0] > 0).any() if len(sim.contacts.gap) else False)
        if lost + 1e-3 < sim.time < back - 1e-3:
            assert sim.positions[1, -1] - 0.1 == pytest.approx(flight(sim.time), abs=2e-3)
            assert not touching[-1]
        elif sim.time < lost - 1e-3:
            assert touching[-1]
            assert sim.positions[1, -1] - 0.1 == pytest.approx(table(sim.time), abs=2e-3)
    again = 5e-4 * (1 + np.flatnonzero(np.array(touching) & (np.arange(len(touching)) * 5e-4 > lost + 2e-3))[0])
    assert again == pytest.approx(back, abs=2.5e-3)
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_how_far_a_ball_sinks_into_an_accelerating_table(d):
    # w is taken at t_m (2004, eq. 19), so a table that gains dw between two midpoints gains h dw / 2 on what lies on
    # it, anticipation or not: h V in all between the velocities -V and V. First order in h, and no more than that.
    for h in (2e-3, 1e-3):
        sim = start(on_table(d, cd.loads.sine(vector(d, 0, 0.3), 2.0)), h, penetration="anticipate")
        worst = max(overlaps(sim) * 0.1 for _ in step_through(sim, round(1.0 / h)))
        assert worst <= h * 0.3 * (1 + 1e-6)
        assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_conveyor_belt(d):
    # A sled put on a belt of velocity V: gamma g until V. The drive gives V times the impulse m V, m V^2; half of it is
    # the motion of the sled, half is lost in friction. Exact in any number of steps.
    scene = on_table(d, vector(d, 1.5), sled(d), friction=0.4)
    sim = start(scene, 1e-3)
    sim.run(until=0.2, progress=False)
    assert sim.velocities[1, 0] == pytest.approx(0.4 * G * 0.2, rel=1e-10)
    sim.run(until=0.5, progress=False)
    m = sim.bodies.mass[1]
    assert sim.velocities[1] == pytest.approx(vector(d, 1.5), abs=1e-10)
    assert sim.energy.drive_work == pytest.approx(m * 1.5**2, rel=1e-10)
    assert sim.energy.tangential_work.sum() == pytest.approx(-0.5 * m * 1.5**2, rel=1e-10)
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_pushed_by_a_driven_ball(d):
    # A driven ball of velocity V (mass without bound) hits a free one: it leaves with (1 + e) V; the drive gives
    # V m (1 + e) V, the contact takes m V^2 (1 + e) (1 - e) / 2 of it.
    scene = world(d, gravity=0.0, restitution=0.5)
    scene.add(ball(d, 0.3), material="m", motion=vector(d, 2.0))
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0.45))
    sim = run(scene, 1e-3, 0.1)
    m = ball_mass(d, 0.1)
    assert sim.velocities[1] == pytest.approx(vector(d, 3.0), rel=1e-12)
    assert sim.energy.drive_work == pytest.approx(m * 2.0 * 3.0, rel=1e-12)
    assert sim.energy.normal_work.sum() == pytest.approx(-m * 4.0 * 1.5 * 0.5 / 2, rel=1e-12)
    assert sim.positions[0] == pytest.approx(vector(d, 0.2), rel=1e-12)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_spinning_driven_ball_spins_another(d):
    # The free ball between a spinning driven ball and nothing: with gamma large its surface takes the driver's speed
    # at the touch: tau = 0, U_t = 0: W_t = (1 + k) / m, so v_t = U / (1 + k).
    scene = world(d, gravity=0.0, friction=50.0)
    spin = 4.0 if d == 2 else (0, 0, 4.0)
    scene.add(ball(d, 0.25), material="m", motion=cd.Drive(spin=spin))
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0.36), velocity=vector(d, -1.0))
    sim = run(scene, 1e-3, 0.02)
    k = 2.0 if d == 2 else 2.5
    assert sim.velocities[1, 1] == pytest.approx(4.0 * 0.25 / (1 + k), rel=1e-9)
    turning = sim.spins[1] if d == 2 else sim.spins[1, 2]
    assert turning * 0.1 == pytest.approx(-k * 4.0 * 0.25 / (1 + k), rel=1e-9)
    assert sim.energy.drive_work == pytest.approx(4.0 * 0.25 * ball_mass(d, 0.1) * 4.0 * 0.25 / (1 + k), rel=1e-9)


def test_a_ball_on_a_turntable_goes_round_at_two_sevenths_of_its_rate():
    # Rolling without slip on a plane that turns at W: the centre moves on a circle at the rate W k' / (1 + k') with
    # k' = I / (m r^2) = 2/5, that is 2/7 W, whatever radius and velocity (Earnshaw). Of second order but for the
    # velocity's lag of half a step in w(t_m), which is none here: W is constant.
    errors = []
    for h in (8e-3, 4e-3, 2e-3):
        scene = world(3, friction=2.0)
        floor(scene, motion=cd.Drive(spin=(0, 0, 2.1)))
        x, v = np.array([0.3, 0.0]), np.array([0.05, 0.1])
        # rolling at the start: v - r w x n = W x x, in components v_x - r w_y = -W y, v_y + r w_x = W x
        spin = np.array([(2.1 * x[0] - v[1]) / 0.1, (v[0] + 2.1 * x[1]) / 0.1, 0.0])
        scene.add(cd.Sphere(0.1), material="m", position=(*x, 0.1 * TOUCH), velocity=(*v, 0), spin=spin)
        sim = start(scene, h)
        sim.run(until=4.0, progress=False)
        rate = 2 / 7 * 2.1
        turned = np.exp(1j * rate * 4.0)
        velocity = (v[0] + 1j * v[1]) * turned
        place = x[0] + 1j * x[1] + (v[0] + 1j * v[1]) * (turned - 1) / (1j * rate)
        got = sim.positions[1], sim.velocities[1]
        errors.append([abs(got[0][0] + 1j * got[0][1] - place), abs(got[1][0] + 1j * got[1][1] - velocity)])
        assert_closed(sim)
    assert errors[-1][0] < 2e-3
    assert np.min(order(errors)) > 0.9


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_tilting_plane_lets_go_at_the_angle_of_friction(d):
    # Turned slowly about an axis through its own point: a sled slides off at tan(theta) = gamma, but for the
    # inertial terms, W^2 L / g = 1e-3. From then on x'' = g sqrt(1 + gamma^2) W t: x = 1e-4 after (6e-4 / 2.1)^(1/3) s.
    scene = world(d, friction=0.4)
    floor(scene, motion=cd.Drive(spin=-0.2 if d == 2 else (0, 0.2, 0)))
    scene.add(sled(d), material="m", position=vector(d, 0, 0.1 * TOUCH))
    sim = start(scene, 2e-3, tolerance=1e-10)
    slid = None
    for _ in step_through(sim, round(2.2 / 2e-3)):
        angle = 0.2 * sim.time
        along = sim.positions[1] @ vector(d, np.cos(angle), -np.sin(angle))
        if slid is None and along > 1e-4:
            slid = angle
    later = 0.2 * (6e-4 / (G * np.sqrt(1 + 0.4**2) * 0.2)) ** (1 / 3)
    assert slid == pytest.approx(np.arctan(0.4) + later, abs=2e-3)
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_against_a_paddle(d):
    # A wall that turns about its own point at W hits a ball at the distance L with the velocity W L: the lever arm of a
    # plane counts. Inelastic: the ball leaves with W L (no gravity, no friction).
    scene = world(d, gravity=0.0)
    scene.add(wall(d, vector(d, 0, 1)), material="m", motion=cd.Drive(spin=1.0 if d == 2 else (0, -1.0, 0)))
    scene.add(ball(d, 0.1), material="m", position=vector(d, 2.0, 0.1 + 0.01))
    sim = start(scene, 1e-3)
    while not len(sim.contacts.gap):
        sim.step()
    assert np.linalg.norm(sim.velocities[1]) == pytest.approx(2.0, rel=5e-3)
    assert sim.energy.drive_work == pytest.approx(ball_mass(d, 0.1) * 4.0, rel=1e-2)
    assert_closed(sim)


@pytest.mark.parametrize(
    "profile",
    [
        cd.loads.constant((0.3, 0.2)),
        cd.loads.sine((0.3, 0.2), 0.7, phase=0.4, offset=(0.1, 0.0)),
        cd.loads.ramp((0.0, 0.0), (1.0, 2.0), 0.2, 0.6),
        cd.loads.table((0.0, 0.5, 1.0), ((0, 0), (1, 2), (0, 1))),
        lambda t: (t * t, np.sin(t)),
    ],
    ids=["constant", "sine", "ramp", "table", "function"],
)
def test_a_driven_body_goes_where_its_motion_says(profile):
    # Its place is the midpoint sum of its velocity: exact where that is linear in t within steps, second order else.
    scene = world(2)
    scene.add(cd.Disk(0.1), material="m", motion=profile)
    scene.add(cd.Disk(0.1), material="m", position=(5.0, 0.0))
    sim = run(scene, 1e-2, 1.0)
    times = (np.arange(100) + 0.5) * 1e-2
    assert sim.positions[0] == pytest.approx(sum(np.asarray(profile(t), float) for t in times) * 1e-2, abs=1e-12)
    fine = (np.arange(100_000) + 0.5) * 1e-5
    exact = np.array([profile(t) for t in fine]).mean(axis=0)
    assert sim.positions[0] == pytest.approx(exact, abs=2e-4)
    assert sim.velocities[0] == pytest.approx(np.asarray(profile(times[-1])))
