"""Impacts: restitution, collisions of two bodies, superball, billiard, and what anticipation, recovery, repair do."""

import numpy as np
import pytest

import contactdynamics as cd
from rigid_tools import (
    BY_TURNS,
    DIMENSIONS,
    KAPPA,
    G,
    assert_closed,
    ball,
    ball_mass,
    floor,
    overlaps,
    rate,
    run,
    start,
    step_through,
    vector,
    wall,
    world,
)  # fmt: skip

MODES = ("moreau", "anticipate")

# Coarse steps on purpose: what they do is told (test_watch), and computed all the same.
pytestmark = pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")

# ---- the bouncing ball -----------------------------------------------------------------------------------------------


def dropped(d, e, h, penetration, height=1.0, radius=0.1):
    """A ball whose lowest point is dropped from ``height``."""
    scene = world(d, restitution=e, friction=0.3)
    floor(scene)
    scene.add(ball(d, radius), material="m", position=vector(d, 0, height + radius))
    return start(scene, h, penetration=penetration)


@BY_TURNS
@pytest.mark.parametrize("e", [0.0, 0.5, 0.9, 1.0])
def test_restitution_is_the_one_asked(d, e, penetration):
    # U_n^+ = -e U_n^- to rounding at every bounce, U_n^- being the velocity at the start of the step (2003, eq. 40).
    sim = dropped(d, e, 2e-3, penetration)
    bounces, before = 0, 0.0
    for _ in step_through(sim, 1500):
        after = sim.velocities[1, -1]
        if before < -0.5:
            if len(sim.contacts.gap) and sim.contacts.impulse[0, 0] > 0 and (penetration == "moreau" or e > 0):
                bounces += 1
                assert after == pytest.approx(-e * before, rel=1e-13, abs=1e-13)
        before = after
    assert bounces >= (3 if e > 0 else penetration == "moreau")
    assert_closed(sim)


@BY_TURNS
@pytest.mark.parametrize("e", [0.6, 0.8, 1.0])
def test_heights_of_a_bouncing_ball(d, e, penetration):
    # Heights e^(2k) h0. Between bounces the scheme is exact, so H = z + v^2 / 2g is constant there. At a bounce with
    # the velocity -v and the lowest point at z_i at the start of the step, z_f = z_i - (1 - e) h v / 2, v_f = e v:
    #   H_f - e^2 H_i = (1 - e^2) z_i - (1 - e) h v / 2.
    # Moreau: the midpoint is the first below ground, -h v / 2 <= z_i <= h v / 2 (but for h^2 g / 2). Anticipating: the
    # ball would be below ground at the next midpoint, h v / 2 <= z_i <= 3/2 h v. So |error| <= c (1 - e) h v, with
    # c = 1 + e/2 and 1 + 3 e / 2, and the errors of former bounces shrink by e^2.
    for h in (4e-3, 1e-3):
        sim = dropped(d, e, h, penetration)
        heights, expected, bound, falling = [], 1.0, 2 * G * h**2, 0.0
        for _ in step_through(sim, round(3.0 / h)):
            z, v = sim.positions[1, -1] - 0.1, sim.velocities[1, -1]
            level = z + v**2 / (2 * G)
            if not heights or abs(level - heights[-1]) > 1e-9 or (e == 1 and v > 0 > falling):
                heights.append(level)
            falling = v
        assert len(heights) >= 4
        for k, level in enumerate(heights[:6]):
            speed = np.sqrt(2 * G * expected)
            assert abs(level - e ** (2 * k) * 1.0) <= bound
            c = 1 + e / 2 if penetration == "moreau" else 1 + 1.5 * e
            bound = e**2 * bound + c * (1 - e) * h * speed + 2 * G * h**2
            expected = e ** (2 * k + 2)
        assert_closed(sim)


@BY_TURNS
def test_infinitely_many_bounces_end_in_finite_time(d, penetration):
    # t = sqrt(2 h0 / g) (1 + 2 (e + e^2 + ...)) = sqrt(2 h0 / g) (1 + e) / (1 - e). A bounce comes up to 3/2 steps off
    # and, by the error of its height (see above), changes the time that is left, 2 v / (g (1 - e)), by
    # c h, c = 1 + e/2 (Moreau) or 1 + 3 e / 2 (anticipating). The number of bounces until the velocity is that of two
    # steps of fall is n = log(v / 2 g h) / log(1 / e): error <= (3/2 + c) n h, all but first order.
    e = 0.6
    exact = np.sqrt(2 / G) * (1 + e) / (1 - e)
    c = 1 + e / 2 if penetration == "moreau" else 1 + 1.5 * e
    for h in (4e-3, 1e-3):
        sim = dropped(d, e, h, penetration)
        moving = 0.0
        for _ in step_through(sim, round(2 * exact / h)):
            if np.abs(sim.velocities[1]).max() > 2 * G * h:
                moving = sim.time
        bounces = np.log(np.sqrt(2 * G) / (2 * G * h)) / np.log(1 / e)
        assert abs(moving - exact) < (1.5 + c) * bounces * h
        assert np.abs(sim.velocities).max() <= 1e-12  # then it rests, and the floor bears its weight
        assert sim.contacts.impulse[0, 0] / h == pytest.approx(ball_mass(d, 0.1) * G, rel=1e-9)


# ---- two bodies ------------------------------------------------------------------------------------------------------


def collide(d, rng, law, penetration):
    """Two free balls that touch at the midpoint of the first step; returns the simulation and what should come out.

    n from a to b, U = v_b - v_a - (r_a w_a + r_b w_b) x n. Normal: U_n^+ = -e U_n^-, so P_n = (1 + e) |U_n^-| / W_n,
    W_n = 1/m_a + 1/m_b. Tangential: U_t^+ = -tau U_t^- if possible, P_t = -(1 + tau) U_t^- / W_t with
    W_t = (1 + k) W_n, k = m r^2 / I; else |P_t| = gamma P_n against U_t^-.
    """
    scene = world(d, gravity=0.0, **law)
    h, radius = 1e-3, rng.uniform(0.1, 0.3, 2)
    n = np.zeros(3)
    n[:d] = rng.normal(size=d)
    n /= np.linalg.norm(n)
    v, w = np.zeros((2, 3)), np.zeros((2, 3))
    v[:, :d] = rng.normal(size=(2, d))
    v[1] -= n * max(0.0, (v[1] - v[0]) @ n + 1.0)  # they approach
    w[:, 3 - (1 if d == 2 else 3) :] = 5 * rng.normal(size=(2, 1 if d == 2 else 3))
    x = np.array([np.zeros(3), (radius.sum() * (1 - 1e-13)) * n])
    for k in range(2):
        scene.add(
            ball(d, radius[k]),
            material="m",
            position=(x[k] - 0.5 * h * v[k])[:d],
            velocity=v[k, :d],
            spin=w[k] if d == 3 else w[k, 2],
        )
    sim = start(scene, h, penetration=penetration)
    m, kappa = ball_mass(d, radius), KAPPA[d]
    u = v[1] - v[0] - np.cross(radius @ w, n)
    inverse = (1 / m).sum()
    e, tau, gamma = law.get("restitution", 0.0), law.get("tangential_restitution", 0.0), law.get("friction", 0.0)
    p_n = (1 + e) * -(u @ n) / inverse
    p_t = -(1 + tau) * (u - (u @ n) * n) / ((1 + kappa) * inverse)
    if np.linalg.norm(p_t) > gamma * p_n:
        p_t *= gamma * p_n / np.linalg.norm(p_t)
    p = p_n * n + p_t
    after = v + np.array([-p / m[0], p / m[1]])
    turning = w - np.array([np.cross(n, p) * kappa / (m[k] * radius[k]) for k in range(2)])
    return sim, after[:, :d], turning if d == 3 else turning[:, 2], (n, p)


LAWS = [
    {"restitution": 0.0},
    {"restitution": 1.0},
    {"restitution": 0.7, "friction": 0.2},
    {"restitution": 0.3, "friction": 5.0},
    {"restitution": 0.5, "friction": 0.1, "tangential_restitution": 0.6},
    {"restitution": 0.9, "friction": 8.0, "tangential_restitution": 0.6},
    {"restitution": 0.9, "friction": 8.0, "tangential_restitution": 1.0},
    {"restitution": 0.4, "friction": 8.0, "tangential_restitution": -0.5},
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_collision_of_two_free_balls_by_the_three_parameters(d, law, rng):
    for trial in range(6):
        sim, velocity, spin, (n, p) = collide(d, rng, law, MODES[trial % 2])
        momentum = sim.bodies.mass @ sim.velocities
        sim.step()
        assert np.abs(sim.velocities - velocity).max() < 1e-11
        assert np.abs(sim.spins - spin).max() < 1e-10
        assert np.abs(sim.bodies.mass @ sim.velocities - momentum).max() < 1e-14
        # the impulse that is shown acts on b: P_n along n, the tangential part in the frame
        contact = sim.contacts
        assert np.abs(contact.frame[0].T @ contact.impulse[0] - p[:d]).max() < 1e-12
        assert np.abs(contact.normal[0] - n[:d]).max() < 1e-12
        assert_closed(sim)


def test_energy_of_a_collision_by_the_formula(rng):
    # Loss (1 - e^2) m_eff U_n^2 / 2 in the normal direction; with sticking and tau, (1 - tau^2) U_t^2 / (2 W_t).
    for d in DIMENSIONS:
        sim, *_ = collide(d, rng, {"restitution": 0.5, "friction": 50.0, "tangential_restitution": 0.5}, "moreau")
        b = sim.bodies
        n = np.diff(b.position + 0.5e-3 * sim.rows[:, :3], axis=0)[0]
        n /= np.linalg.norm(n)
        u = np.diff(sim.rows[:, :3], axis=0)[0] - np.cross(sim.rows[:, 3:6].sum(axis=0), n)
        u_n, u_t = u @ n, u - (u @ n) * n
        inverse = (1 / b.mass).sum()
        sim.step()
        assert sim.energy.normal_work.sum() == pytest.approx(-(1 - 0.25) * u_n**2 / (2 * inverse), rel=1e-10)
        tangential = -(1 - 0.25) * (u_t @ u_t) / (2 * (1 + KAPPA[d]) * inverse)
        assert sim.energy.tangential_work.sum() == pytest.approx(tangential, rel=1e-10)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_superball(d):
    # e = tau = 1 and enough friction: U_t changes its sign, v' = v - 2 U_t / (1 + k), s' = s - 2 k U_t / (1 + k) with
    # U_t = v - s (s = r times the rate of rolling): its own inverse. From v0 without spin: v1 = (k - 1)/(k + 1) v0,
    # 3/7 of it for a sphere and 1/3 for a disk, then v0 again, and so on; the energy is that of the start.
    scene = world(d, friction=10.0, restitution=1.0, tangential_restitution=1.0)
    floor(scene)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.6), velocity=vector(d, 0.7))
    sim = start(scene, 1e-3)
    k, speeds, before = KAPPA[d], [], 0.0
    first = sim.energy.kinetic + sim.energy.potential
    for _ in step_through(sim, 3000):
        if sim.velocities[1, -1] > 0 > before:
            speeds.append(sim.velocities[1, 0])
        before = sim.velocities[1, -1]
    assert len(speeds) >= 4
    # the contact point lies halfway in the overlap, at most h v / 2 = 1.6e-3 deep: arm r (1 - 0.008) and so on
    assert speeds[::2] == pytest.approx([(k - 1) / (k + 1) * 0.7] * len(speeds[::2]), rel=0.02)
    assert speeds[1::2] == pytest.approx([0.7] * len(speeds[1::2]), rel=0.02)
    assert sim.energy.kinetic + sim.energy.potential == pytest.approx(first, rel=1e-10)
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_superball_that_touches_exactly(d):
    # As above without gravity between two walls, hit at the instant of touching: exact.
    scene = world(d, gravity=0.0, friction=10.0, restitution=1.0, tangential_restitution=1.0)
    floor(scene)
    h = 1 / 64  # the ball touches the floor at the midpoint of a step exactly
    scene.add(ball(d, 0.125), material="m", position=vector(d, 0, 0.125 + 4.5 * h), velocity=vector(d, 0.7, -1.0))
    sim = run(scene, h, 10 * h)
    k = KAPPA[d]
    assert sim.velocities[1] == pytest.approx(vector(d, 0.7 * (k - 1) / (k + 1), 1.0), abs=1e-13)
    assert rate(sim, 1) * 0.125 == pytest.approx(2 * k / (k + 1) * 0.7, abs=1e-13)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_sticking_impact_gives_the_spin_of_rolling(d):
    # tau = 0 and enough friction: U_t^+ = 0, v' = k / (1 + k) v for a ball without spin: 5/7 (sphere), 2/3 (disk).
    scene = world(d, gravity=0.0, friction=10.0, restitution=0.5)
    floor(scene)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.11), velocity=vector(d, 0.7, -1.0))
    sim = run(scene, 1e-3, 0.02)
    assert sim.velocities[1] == pytest.approx(vector(d, 0.7 * KAPPA[d] / (1 + KAPPA[d]), 0.5), rel=1e-12)
    assert rate(sim, 1) * 0.1 == pytest.approx(sim.velocities[1, 0], rel=1e-12)


# ---- many balls ------------------------------------------------------------------------------------------------------


@BY_TURNS
def test_billiard_conserves_momentum_and_energy(d, penetration, rng):
    # No friction, e = 1: each contact gives (U^- + U^+) P = 0, so the energy is kept also when several meet at once;
    # momentum and angular momentum are kept because P acts on one and -P on the other along the line of centres.
    # Anticipating: a ball that is struck and would within the same step run into a third one is only held back from it
    # (it was not approaching at the start of the step, there is nothing to restitute yet): rare, and a loss.
    scene = world(d, gravity=0.0, restitution=1.0)
    side = 7 if d == 2 else 4
    grid = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d) * 0.25
    place = grid + rng.uniform(-0.02, 0.02, grid.shape)
    speed = rng.normal(size=place.shape) - (grid - grid.mean(axis=0))
    scene.add_many(0.1 * rng.uniform(0.8, 1.0, len(place)), material="m", position=place, velocity=speed)
    sim = start(scene, 1e-3, penetration=penetration)
    m = sim.bodies.mass
    momentum, turning = m @ sim.rows[:, :3], m @ np.cross(sim.bodies.position, sim.rows[:, :3])
    hits = sum(int((sim.contacts.impulse[:, 0] > 0).sum()) for _ in step_through(sim, 600))
    assert hits > 40
    scale = np.sqrt(2 * sim.first_kinetic * m.sum())
    assert np.abs(m @ sim.rows[:, :3] - momentum).max() < 1e-13 * scale
    assert np.abs(m @ np.cross(sim.bodies.position, sim.rows[:, :3]) - turning).max() < 1e-12 * scale
    if penetration == "moreau":
        assert sim.energy.kinetic == pytest.approx(sim.first_kinetic, rel=1e-11)
    else:
        assert 0.999 < sim.energy.kinetic / sim.first_kinetic < 1 + 1e-11
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_gas_in_a_box_keeps_its_energy(d, rng):
    scene = world(d, gravity=0.0, restitution=1.0)
    for axis in np.eye(d):
        scene.add(wall(d, axis), material="m", position=-0.6 * axis, fixed=True)
        scene.add(wall(d, -axis), material="m", position=0.6 * axis, fixed=True)
    side = 4 if d == 2 else 3
    grid = np.stack(np.meshgrid(*[np.linspace(-0.4, 0.4, side)] * d), axis=-1).reshape(-1, d)
    scene.add_many(0.09, material="m", position=grid, velocity=rng.normal(size=grid.shape))
    sim = run(scene, 2e-3, 2.0)
    assert sim.energy.kinetic == pytest.approx(sim.first_kinetic, rel=1e-11)


# ---- nothing sinks in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.8])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_fast_ball_does_not_sink_into_the_floor(d, e):
    for speed in (1.0, 37.0, 190.0):  # up to 1.9 radii per step
        for steps in (0.51, 0.9, 1.3, 2.0):  # of travel to the floor
            scene = world(d, restitution=e, friction=0.5)
            floor(scene)
            scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1 + steps * speed * 1e-3),
                      velocity=vector(d, 3.0, -speed))  # fmt: skip
            sim = start(scene, 1e-3, penetration="anticipate")
            worst = max(overlaps(sim) for _ in step_through(sim, 30))
            assert worst < 1e-9
            assert_closed(sim)


def test_moreau_lets_a_fast_ball_sink_by_a_step_at_most():
    # The other choice: midpoints are h v apart, so the gap at the first one that is not positive lies in (-h v, 0], and
    # an inelastic ball stays there: half a step of travel in the mean, a whole one at most.
    deepest = 0.0
    for height in np.linspace(0.15, 0.19, 15):
        scene = world(3, gravity=0.0)
        floor(scene)
        scene.add(cd.Sphere(0.1), material="m", position=(0, 0, height), velocity=(0, 0, -37.0))
        sim = start(scene, 1e-3)
        deepest = max(deepest, *(overlaps(sim) * 0.1 for _ in step_through(sim, 10)))
    assert 0.9 * 0.037 < deepest <= 0.037 * (1 + 1e-9)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_chain_of_balls_is_hit_without_overlap(d, e):
    # Ever lighter balls in a row before a wall: each is thrown faster than the one that hits it.
    scene = world(d, gravity=0.0, restitution=e)
    scene.add(wall(d, vector(d, -1.0)), material="m", position=vector(d, 1.5), fixed=True)
    radii = 0.2 * 0.75 ** np.arange(6)
    x = -0.7
    for k, r in enumerate(radii):
        scene.add(ball(d, r), material="m", position=vector(d, x), velocity=vector(d, 20.0 if k == 0 else 0.0))
        x += r + 0.75 * r + (0.05 if k == 0 else 0.003 if k % 2 else 1e-5)
    sim = start(scene, 1e-3, penetration="anticipate", on_failure="ignore")  # slow at 1e-11: six masses 300 : 1
    worst = max(overlaps(sim) for _ in step_through(sim, 120))
    assert worst < 1e-9
    assert_closed(sim)


@pytest.mark.parametrize(("friction", "e", "until"), [(0.0, 0.2, 1.0), (0.4, 0.0, 0.5)])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_fifty_balls_fall_into_a_box_without_overlap(d, friction, e, until, rng):
    # What is left is the solver's tolerance, step upon step. Balls wedged into a corner by friction converge slowly
    # (impulses creep along a state of self-stress): those steps may end at 1e-4.
    scene = world(d, friction=friction, restitution=e)
    floor(scene)
    for axis in np.eye(d)[: d - 1]:
        scene.add(wall(d, axis), material="m", position=-0.4 * axis, fixed=True)
        scene.add(wall(d, -axis), material="m", position=0.4 * axis, fixed=True)
    levels = np.arange(17 if d == 2 else 6) * 0.25 + 0.2
    columns = np.stack(np.meshgrid(*[np.linspace(-0.25, 0.25, 3)] * (d - 1), levels))
    place = columns.reshape(d, -1).T[:50] + rng.uniform(-0.02, 0.02, (50, d))
    scene.add_many(rng.uniform(0.06, 0.1, 50), material="m", position=place, velocity=vector(d, 0.5, -4.0))
    sim = start(scene, 4e-3, penetration="anticipate", tolerance=1e-8, on_failure="ignore")
    worst, residuals = -1.0, []
    for _ in step_through(sim, round(until / 4e-3)):
        worst = max(worst, overlaps(sim))
        residuals.append(sim.report.residual)
    assert worst < 1e-6
    assert max(residuals) < 1e-4 and np.percentile(residuals, 90) <= 1e-6
    assert sim.report.contacts > 60
    assert_closed(sim)


# ---- recovery and repair ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penetration", MODES)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_recovery_opens_an_overlap_at_the_bounded_speed_and_books_its_work(d, penetration):
    # 0.004 deep at 0.1 m/s: 1e-4 per step, so 0.003 after 30 steps. The ball is moved, not thrown: it has no velocity,
    # and the only work is that against gravity, m g times the height gained.
    scene = world(d)
    floor(scene)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.096))
    sim = start(scene, 1e-3, penetration=penetration, recovery=0.1)
    for _ in step_through(sim, 30):
        assert abs(sim.velocities[1, -1]) < 1e-12
    assert sim.positions[1, -1] == pytest.approx(0.099, rel=1e-9)
    assert sim.energy.recovery_work == pytest.approx(ball_mass(d, 0.1) * 9.81 * 0.003, rel=1e-9)
    assert_closed(sim)
    # it ends with the overlap gone, but for the twentieth of a percent at which recovery stops
    sim.run(until=0.2, progress=False)
    assert 0 <= overlaps(sim) <= sim.RECOVER_ABOVE
    assert abs(sim.velocities[1, -1]) < 1e-12
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_recovery_shares_the_way_by_the_masses(d):
    scene = world(d, gravity=0.0)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0.0))
    scene.add(ball(d, 0.2), material="m", position=vector(d, 0.297))
    sim = start(scene, 1e-3, recovery=5.0)  # fast enough for both: each body is bounded by itself
    sim.run(until=0.02, progress=False)
    share = (1 / sim.bodies.mass) / (1 / sim.bodies.mass).sum()
    opened = np.diff(sim.positions[:, 0])[0] - 0.297
    assert overlaps(sim) < 2e-3 and opened > 2.7e-3
    assert sim.positions[:, 0] == pytest.approx([-share[0] * opened, 0.297 + share[1] * opened], abs=1e-12)
    assert sim.energy.recovery_work == 0 and sim.energy.kinetic == 0


def test_without_recovery_an_overlap_stays():
    scene = world(3)
    floor(scene)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.096))
    sim = run(scene, 1e-3, 0.1)
    assert sim.positions[1, 2] == pytest.approx(0.096, abs=1e-12)
    assert sim.report.penetration == pytest.approx(0.004, rel=1e-9)
    assert sim.report.relative_penetration == pytest.approx(0.04, rel=1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_repair_moves_two_balls_apart_by_the_shortest_way(d):
    # Shortest in the metric of masses: the centre of mass stays, the overlap is shared as the inverse masses.
    scene = world(d, friction=0.5)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0.0), velocity=vector(d, 1.0))
    scene.add(ball(d, 0.2), material="m", position=vector(d, 0.25), velocity=vector(d, 0.0, 2.0))
    with pytest.raises(cd.InputError, match="repair=True"):
        start(scene, 1e-3)
    sim = start(scene, 1e-3, repair=True)
    share = (1 / sim.bodies.mass) / (1 / sim.bodies.mass).sum()
    assert sim.positions[0] == pytest.approx(vector(d, -0.05 * share[0]), abs=1e-9)
    assert sim.positions[1] == pytest.approx(vector(d, 0.25 + 0.05 * share[1]), abs=1e-9)
    assert sim.velocities.tolist() == [vector(d, 1.0).tolist(), vector(d, 0.0, 2.0).tolist()]


@pytest.mark.parametrize("d", DIMENSIONS)
def test_repair_of_a_crowded_start(d, rng):
    scene = world(d, friction=0.5)
    floor(scene)
    place = rng.uniform(0.0, 1.0, (40, d)) * (1.0 if d == 2 else 0.55) + 0.05
    scene.add_many(rng.uniform(0.05, 0.1, 40), material="m", position=place)
    scene.add(cd.Cluster([0.1, 0.1], np.eye(d)[:2] * 0.1), material="m", position=[0.5] * d)
    with pytest.raises(cd.InputError, match="overlap"):
        start(scene, 1e-3)
    sim = start(scene, 1e-3, repair=True)
    assert overlaps(sim) < 1e-6
    sim.run(until=0.05, progress=False)
    assert_closed(sim)


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("radius", [0.1, 1 / 3, 0.7e-3])
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_rounding_does_not_decide_whether_balls_in_a_row_touch(dimension, radius, penetration):
    # Centres at multiples of the diameter, far from the origin too: the gaps are zero but for roundings of both signs.
    # All contacts are then treated together (2004, 7.5): momentum, and U+ = 1 at the first contact and 0 at the others.
    count, step = 5, 1e-3 * radius
    away = np.zeros(dimension - 1)
    for origin in (0.0, 17.3 * radius, 1e3 * radius):
        places = [origin + 2 * radius * k for k in range(count)]
        gaps = np.diff(places) - 2 * radius
        assert origin == 0 or (gaps > 0).any()  # or the test shows nothing
        scene = cd.Scene(gravity=np.zeros(dimension))
        scene.material("m", density=1.0)
        scene.contact("m", "m", friction=0.0, restitution=1.0)
        for k, x in enumerate(places):
            start, speed = (-step / 2, 1.0) if k == 0 else (0.0, 0.0)  # the impact falls on a midpoint
            ball = cd.Disk(radius) if dimension == 2 else cd.Sphere(radius)
            scene.add(ball, material="m", position=(x + start, *away), velocity=(speed, *away))
        sim = cd.Simulation(scene, time_step=step, tolerance=1e-12, max_iterations=100_000, penetration=penetration)
        sim.step()
        assert sim.velocities[:, 0] == pytest.approx([2 / count - 1] + [2 / count] * (count - 1), abs=1e-6)
