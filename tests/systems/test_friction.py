"""Motions with dry friction against closed forms, for every scheme that knows it."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.state import SEPARATING, SLIDING, STICKING

FRICTION = ["wall_friction", "planar_friction", "midpoint"]
G = 10.0
ACROSS = np.array([[0.0, 1.0], [1.0, 0.0]])  # rows n = y, t = x


def floor(law, boundary=None, **options):
    """The floor y >= 0 with the tangent along x."""
    return cd.Constraint(lambda t, q: q[1], contact_map=lambda t, q: ACROSS, boundary=boundary, law=law, **options)


def block(law, force=(0.0, -G), **options):
    return cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: force, constraints=[floor(law, **options)])


# ---- sliding and stopping --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [*FRICTION, "wall_friction_corrected", "planar_friction_corrected"])
@pytest.mark.parametrize("speed", [2.0, 2.03])
def test_slides_and_stops_in_the_plane(scheme, speed):
    # u = u0 - gamma g t until it stops at u0 / (gamma g), after u0^2 / (2 gamma g). Before the stop the scheme is
    # exact; in the last step, with the speed r left, it goes r h / 2 instead of r^2 / (2 gamma g): at most
    # gamma g h^2 / 8 too far (0 when u0 is a multiple of gamma g h, as 2.0 is and 2.03 is not).
    gamma, h = 0.4, 0.01
    motion = cd.integrate(block(cd.Law(friction=gamma)), q=(0, 0), u=(speed, 0), step=h, until=0.8, scheme=scheme)
    sliding = motion.times < speed / (gamma * G) - 1e-9
    t = motion.times[sliding]
    assert np.allclose(motion.q[sliding, 0], speed * t - gamma * G * t**2 / 2, rtol=0, atol=1e-13)
    excess = motion.q[-1, 0] - speed**2 / (2 * gamma * G)
    assert -1e-13 <= excess <= gamma * G * h**2 / 8 + 1e-13
    assert (motion.u[~sliding][1:] == 0).all() and np.abs(motion.q[:, 1]).max() < 1e-14
    assert (motion.status[: sliding.sum() - 1] == SLIDING).all() and motion.status[-1] == STICKING
    # All kinetic energy goes into friction: the work of the tangential impulses is -u0^2 / 2.
    assert motion.ledger.contact_work[:, 0, 1].sum() == pytest.approx(-(speed**2) / 2, abs=1e-13)


@pytest.mark.parametrize("scheme", ["wall_friction", "midpoint"])
@pytest.mark.parametrize("inclined", [False, True])
def test_slides_and_stops_in_space(scheme, inclined):
    # The same on a plane with normal (1, 2, 2) / 3 in space (or z = 0), gravity along the normal, u0 oblique.
    normal = np.array([1.0, 2.0, 2.0]) / 3 if inclined else np.array([0.0, 0.0, 1.0])
    along = np.cross(normal, [1.0, 0.3, 0.0])
    along /= np.linalg.norm(along)
    gamma, h, speed = 0.5, 0.01, 3.0
    wall = cd.Constraint(lambda t, q: q @ normal, law=cd.Law(friction=gamma))
    system = cd.System(inertia=np.full(3, 2.0), force=lambda t, q, u: -2 * G * normal, constraints=[wall])
    # In rounding the particle may leave the plane by 1e-17 and miss a step of contact: start a hair inside.
    motion = cd.integrate(system, q=-1e-9 * normal, u=speed * along, step=h, until=1.0, scheme=scheme)
    distance = motion.q[-1] @ along
    assert distance == pytest.approx(speed**2 / (2 * gamma * G), abs=gamma * G * h**2 / 8 + 1e-12)
    across = np.cross(normal, along)
    assert abs(motion.q[-1] @ across) < 1e-13 and np.abs(motion.u[-1]).max() < 1e-14


def test_anisotropic_friction_bends_the_path():
    # Elliptic cone (0.2 along x, 0.6 along y), sliding at 45 degrees: the force of maximal dissipation is
    # -(c1^2 u1, c2^2 u2) / |(c1 u1, c2 u2)| m g: along y it is (0.6 / 0.2)^2 = 9 times that along x.
    wall = cd.Constraint(
        lambda t, q: q[2], contact_map=lambda t, q: np.eye(3)[[2, 0, 1]], law=cd.Law(anisotropic=(0.2, 0.6))
    )
    system = cd.System(inertia=np.ones(3), force=lambda t, q, u: (0, 0, -G), constraints=[wall])
    motion = cd.integrate(system, q=(0, 0, 0), u=(5.0, 5.0, 0), step=1e-4, until=1e-3)
    force = (motion.u[1] - motion.u[0])[:2] / 1e-4
    expected = -G * np.array([0.04, 0.36]) / math.hypot(0.2, 0.6)
    assert np.allclose(force, expected, rtol=2e-3)
    motion = cd.integrate(system, q=(0, 0, 0), u=(5.0, 5.0, 0), step=1e-3, until=1.0)
    assert motion.q[-1, 1] < 0.7 * motion.q[-1, 0]


# ---- static and dynamic ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", FRICTION)
@pytest.mark.parametrize("ratio, sticks", [(0.399, True), (0.401, False)])
def test_block_on_a_slope(scheme, ratio, sticks):
    # Gravity inclined by the slope: sticks if tan(slope) <= gamma, else accelerates with g (sin - gamma cos).
    angle = math.atan(ratio)
    system = block(cd.Law(friction=0.4), force=(G * math.sin(angle), -G * math.cos(angle)))
    motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=0.01, until=1.0, scheme=scheme)
    expected = 0.0 if sticks else G * (math.sin(angle) - 0.4 * math.cos(angle))
    assert motion.u[-1, 0] == pytest.approx(expected, abs=1e-13)
    assert motion.q[-1, 0] == pytest.approx(expected / 2, abs=1e-13)


@pytest.mark.parametrize("scheme", FRICTION)
def test_static_limit_then_dynamic_friction(scheme):
    # Gravity turns: F = g (sin wt, -cos wt). Sticks until tan wt = gamma_s, then u' = g (sin wt - gamma_d cos wt),
    # u = g / w ((cos wt_s - cos wt) - gamma_d (sin wt - sin wt_s)).
    dynamic, static, w = 0.3, 0.6, 0.5
    system = cd.System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (G * math.sin(w * t), -G * math.cos(w * t)),
        constraints=[floor(cd.Law(friction=dynamic, static_friction=static))],
    )
    leave = math.atan(static) / w
    for h in (1e-2, 1e-3):
        motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=h, until=2.0, scheme=scheme)
        begin = motion.times[np.flatnonzero(motion.u[:, 0])[0]]
        assert leave - 1e-9 <= begin - h / 2 <= leave + h  # forces are taken at the middle of the step
        exact = G / w * (math.cos(w * leave) - math.cos(2 * w) - dynamic * (math.sin(2 * w) - math.sin(w * leave)))
        assert motion.u[-1, 0] == pytest.approx(exact, abs=G * static * h)
        assert (motion.status[motion.times[1:] < leave] == STICKING).all()
        assert (motion.status[motion.times[:-1] > leave + h] == SLIDING).all()


def test_static_friction_again_after_stopping():
    # Thrown at u = 1 against a steady pull of 0.45 g: slides with dynamic friction 0.4 (deceleration 4 - 4.5 < 0,
    # so it would go on), but pulled at 0.35 g it stops, and then holds against 0.55 g by static friction 0.6.
    def pull(t, q, u):
        return (3.5 if t < 3.0 else 5.5, -G)

    law = cd.Law(friction=0.4, static_friction=0.6)
    system = cd.System(inertia=[1.0, 1.0], force=pull, constraints=[floor(law)])
    motion = cd.integrate(system, q=(0, 0), u=(1.0, 0), step=0.01, until=4.0)
    # Stops after 1 / (4 - 3.5) = 2 s and 1 m.
    assert motion.q[-1, 0] == pytest.approx(1.0, abs=1e-4)
    assert not motion.u[motion.times > 2.02].any()
    weaker = cd.System(inertia=[1.0, 1.0], force=pull, constraints=[floor(cd.Law(friction=0.4))])
    assert cd.integrate(weaker, q=(0, 0), u=(1.0, 0), step=0.01, until=4.0).u[-1, 0] == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize("scheme", FRICTION)
def test_friction_that_depends_on_the_speed(scheme):
    # gamma = 0.1 (1 + u): u' = -g 0.1 (1 + u) gives u = (1 + u0) exp(-t) - 1 with g = 10; the coefficient is taken at
    # the start of the step: order 1.
    system = block(cd.Law(friction=lambda v: 0.1 * (1 + v)))
    errors = []
    for h in (0.02, 0.01, 0.005):
        motion = cd.integrate(system, q=(0, 0), u=(3.0, 0), step=h, until=1.0, scheme=scheme)
        errors.append(motion.u[-1, 0] - (4 * math.exp(-1.0) - 1))
    assert np.allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1.0, atol=0.02)


@pytest.mark.parametrize("scheme", ["planar_friction", "midpoint"])
def test_two_sided_coefficients(scheme):
    # two_sided = (negative sense, positive sense): to the right u0^2 / (2 c_+ g), to the left u0^2 / (2 c_- g).
    law = cd.Law(two_sided=(0.2, 0.5))
    for speed, coefficient in ((2.0, 0.5), (-2.0, 0.2)):
        motion = cd.integrate(block(law), q=(0, 0), u=(speed, 0), step=0.01, until=1.5, scheme=scheme)
        assert motion.q[-1, 0] == pytest.approx(math.copysign(2.0 / (coefficient * G), speed), abs=1e-13)


# ---- shocks with friction, restitution -------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", FRICTION)
def test_oblique_impact(scheme):
    # P_n = m u_n, P_t = gamma P_n against the motion: u_t+ = u_t - gamma u_n, or zero (1986, section 12, Remark 3).
    for speed, expected in ((3.0, 3.0 - 0.4 * 2.0), (0.7, 0.0)):
        system = cd.System(inertia=[1.0, 1.0], constraints=[floor(cd.Law(friction=0.4))])
        motion = cd.integrate(system, q=(0.0, 1.0), u=(speed, -2.0), step=0.01, until=1.0, scheme=scheme)
        assert np.allclose(motion.u[-1], [expected, 0.0], rtol=0, atol=1e-14)


def ball(law, radius=0.5, solidity=0.4, gravity=0.0):
    """A ball in the plane (x, y, spin) on the floor; U_t = u_x + radius * spin at its lowest point."""
    contact = cd.Constraint(
        lambda t, q: q[1] - radius, contact_map=lambda t, q: [[0.0, 1.0, 0.0], [1.0, 0.0, radius]], law=law
    )
    return cd.System(
        inertia=[1.0, 1.0, solidity * radius**2], force=lambda t, q, u: (0, -gravity, 0), constraints=[contact]
    )


def test_superball():
    # rho = tau = 1 and much friction: both components of U at the contact are reversed, the energy is kept, and the
    # moment about the contact point is kept: J s - m R u_x = const (the contact impulse has no moment there).
    motion = cd.integrate(
        ball(cd.Law(friction=5.0, restitution=1.0, tangential_restitution=1.0)),
        q=(0, 1, 0), u=(1.0, -1.0, 3.0), step=0.01, until=1.0,
    )  # fmt: skip
    before, after = motion.u[0], motion.u[-1]
    assert after[1] == pytest.approx(1.0, abs=1e-14)
    assert after[0] + 0.5 * after[2] == pytest.approx(-(before[0] + 0.5 * before[2]), abs=1e-13)
    assert motion.ledger.kinetic[-1] == pytest.approx(motion.ledger.kinetic[0], abs=1e-13)
    moment = 0.1 * motion.u[:, 2] - 0.5 * motion.u[:, 0]
    assert moment[-1] == pytest.approx(moment[0], abs=1e-14)


def test_superball_comes_back_between_floor_and_table():
    # The classical trick: thrown under a table without spin, the ball comes back out: after floor, ceiling and floor
    # the horizontal velocity is reversed. Each bounce maps (u, v = R s) at solidity k = 2/5 by
    # u' = u - 2 (u +- v) k / (1 + k), v' = v -+ 2 (u +- v) / (1 + k).
    law = cd.Law(friction=50.0, restitution=1.0, tangential_restitution=1.0)
    system = ball(law)
    ceiling = cd.Constraint(
        lambda t, q: 2.5 - q[1], contact_map=lambda t, q: [[0.0, -1.0, 0.0], [1.0, 0.0, -0.5]], law=law
    )
    system = cd.System(inertia=[1.0, 1.0, 0.1], constraints=[*system.constraints, ceiling])
    motion = cd.integrate(system, q=(0, 1.5, 0), u=(1.0, -2.0, 0.0), step=1e-3, until=2.7)
    u, v, k = 1.0, 0.0, 0.4
    for sign in (1, -1, 1):
        sliding = u + sign * v
        u, v = u - 2 * sliding * k / (1 + k), v - sign * 2 * sliding / (1 + k)
    assert (motion.impulses[..., 0].any(axis=1)).sum() == 3
    assert motion.u[-1, 0] == pytest.approx(u, abs=1e-12) and u < 0
    assert 0.5 * motion.u[-1, 2] == pytest.approx(v, abs=1e-12)


def test_rolling_ball():
    # Thrown without spin it slides, gamma g t slower and spinning up, until u = (1 / (1 + k)) u0 = u0 / 1.4 at
    # t = u0 k / ((1 + k) gamma g); then it rolls for ever.
    gamma, u0, h = 0.2, 1.4, 1e-3
    motion = cd.integrate(ball(cd.Law(friction=gamma), gravity=G), q=(0, 0.5, 0), u=(u0, 0, 0), step=h, until=1.0)
    assert motion.u[-1, 0] == pytest.approx(u0 / 1.4, abs=1e-12)
    assert motion.u[-1, 0] + 0.5 * motion.u[-1, 2] == pytest.approx(0.0, abs=1e-14)
    rolling = motion.times[np.flatnonzero(motion.status[:, 0] == STICKING)[0] + 1]
    assert rolling == pytest.approx(u0 * 0.4 / 1.4 / (gamma * G), abs=2 * h)


# ---- driven boundaries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", FRICTION)
def test_conveyor_belt(scheme):
    # The belt runs at 2: U_t = u - 2. The block is dragged with gamma g until it goes along, at t = 2 / (gamma g).
    # Energy: the belt works force x belt path = m V^2 = 4; half of it heats, half moves the block.
    gamma, V = 0.4, 2.0
    system = block(cd.Law(friction=gamma), boundary=lambda t, q: (0.0, -V))
    motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=0.01, until=1.0, scheme=scheme)
    t = motion.times
    exact = np.where(t < 0.5, gamma * G * t**2 / 2, 0.5 + V * (t - 0.5))
    assert np.allclose(motion.q[:, 0], exact, rtol=0, atol=1e-12)
    assert motion.ledger.boundary_work.sum() == pytest.approx(V**2, abs=1e-12)
    assert motion.ledger.contact_work[..., 1].sum() == pytest.approx(-(V**2) / 2, abs=1e-12)
    assert motion.ledger.kinetic[-1] == pytest.approx(V**2 / 2, abs=1e-12)


def test_block_on_a_shaken_table():
    # The table moves horizontally with velocity 0.1 w cos wt; friction gamma g < its acceleration: stick-slip, but
    # the block never accelerates by more than gamma g.
    w, gamma, h = 20.0, 0.3, 1e-3
    system = block(cd.Law(friction=gamma), boundary=lambda t, q: (0.0, -0.1 * w * math.cos(w * t)))
    motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=h, until=1.0)
    acceleration = np.abs(np.diff(motion.u[:, 0])) / h
    assert acceleration.max() <= gamma * G * (1 + 1e-12)
    sliding = motion.status[:, 0] == SLIDING
    assert np.allclose(acceleration[sliding], gamma * G, rtol=1e-10)


# ---- several contacts ------------------------------------------------------------------------------------------------


def block_on_corners(gamma, half_width=1.0, half_height=0.5, force=(0.0, -G, 0.0)):
    """A block (x, y, angle) of mass 1 on its two lower corners (small rotations: the exact gap of each corner)."""

    def corner(side):
        def arm(q):
            c, s = math.cos(q[2]), math.sin(q[2])
            return c * side * half_width + s * half_height, s * side * half_width - c * half_height

        return cd.Constraint(
            lambda t, q: q[1] + arm(q)[1],
            contact_map=lambda t, q: [[0.0, 1.0, arm(q)[0]], [1.0, 0.0, -arm(q)[1]]],
            law=cd.Law(friction=gamma),
        )

    inertia = [1.0, 1.0, (half_width**2 + half_height**2) / 3]
    return cd.System(inertia=inertia, force=lambda t, q, u: force, constraints=[corner(-1.0), corner(1.0)])


def at_rest(system, until=0.2, h=1e-3, **options):
    """Run from rest on the floor, a hair (1e-9) inside, so that no corner is lost by rounding."""
    return cd.integrate(system, q=(0.0, 0.5 - 1e-9, 0.0), u=np.zeros(3), step=h, until=until, **options)


@pytest.mark.parametrize("pull", [0.0, 2.0, 4.5])
def test_block_rests_on_two_corners(pull):
    # Statics: N_1 + N_2 = m g, (N_2 - N_1) a = pull b (moment about the centre), T_1 + T_2 = -pull.
    motion = at_rest(block_on_corners(0.6, force=(pull, -G, 0.0)))
    force = motion.impulses / motion.step
    assert np.allclose(force[:, 0, 0], (G - pull * 0.5) / 2, rtol=0, atol=1e-6)
    assert np.allclose(force[:, 1, 0], (G + pull * 0.5) / 2, rtol=0, atol=1e-6)
    assert np.allclose(force[..., 1].sum(axis=1), -pull, rtol=0, atol=1e-6)
    assert np.abs(motion.u).max() < 1e-9
    assert (np.abs(force[..., 1]) <= 0.6 * force[..., 0] * (1 + 1e-9)).all()


def test_impulses_of_the_last_step_are_remembered():
    # The two tangential forces are not determined by statics; Gauss-Seidel starts from the last impulses, so that a
    # block at rest needs one sweep per step, and what it carries depends on its history (2003, section 8).
    pulled = at_rest(block_on_corners(0.6, force=(4.0, -G, 0.0)), until=0.02)
    assert pulled.iterations[0] > 1 and (pulled.iterations[1:] == 1).all()
    released, forces = block_on_corners(0.6), []
    for state in (pulled.state, pulled.state._replace(impulses=np.zeros((2, 2)))):
        motion = cd.integrate(released, start=state, step=1e-3, until=0.04)
        assert np.abs(motion.u).max() < 1e-9
        assert np.allclose(motion.impulses[-1, :, 0], 5e-3, rtol=0, atol=1e-9)
        forces.append(motion.impulses[-1, :, 1] / 1e-3)
    assert np.allclose(np.sum(forces, axis=1), 0.0, atol=1e-6)
    assert abs(forces[0][0] - forces[1][0]) > 0.01 * G


def test_block_slides_on_two_corners():
    # pull > gamma m g: acceleration pull - gamma g, both corners slide, N_i as in statics with the friction's moment:
    # (N_2 - N_1) a = T b with T = gamma m g acting at the floor, T b = 0.2 * 10 * 0.5 = 1.
    motion = at_rest(block_on_corners(0.2, force=(3.0, -G, 0.0)))
    force = motion.impulses / motion.step
    assert motion.u[-1, 0] == pytest.approx((3.0 - 2.0) * 0.2, abs=1e-9)
    assert np.allclose(force[-1, :, 0], [4.5, 5.5], rtol=0, atol=1e-6)
    assert (motion.status == SLIDING).all()


def test_block_tips_over():
    # pull b > m g a: it turns about the right corner (2 m high block, narrow foot); the left corner opens.
    motion = at_rest(block_on_corners(5.0, half_width=0.1, force=(3.0, -G, 0.0)), until=0.1)
    assert (motion.impulses[5:, 0] == 0).all() and motion.status[-1, 0] in (0, SEPARATING)
    assert motion.active[5:, 1].mean() > 0.5
    # Angular acceleration about the corner: (m g a - pull b) / (J + m (a^2 + b^2)), J = (a^2 + b^2) / 3.
    square = 0.1**2 + 0.5**2
    assert motion.u[20, 2] == pytest.approx(0.02 * (G * 0.1 - 3.0 * 0.5) / (4 / 3 * square), rel=5e-3)


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_particle_in_a_groove(gamma):
    # A V groove with walls at 60 degrees to the horizontal: at rest without friction N = m g / (2 cos 60) = m g each.
    # With friction the two reactions are not determined, but each lies in its cone and they carry the weight.
    angle = math.radians(60)
    normals = np.array([[-math.sin(angle), math.cos(angle)], [math.sin(angle), math.cos(angle)]])
    walls = [
        cd.Constraint(
            lambda t, q, n=n: q @ n, contact_map=lambda t, q, n=n: [n, [-n[1], n[0]]], law=cd.Law(friction=gamma)
        )
        for n in normals
    ]
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0, -G), constraints=walls)
    motion = cd.integrate(system, q=(0, -1e-9), u=(0, 0), step=1e-3, until=0.05)
    force = motion.impulses / 1e-3
    if gamma == 0:
        assert np.allclose(force[..., 0], G, rtol=0, atol=1e-8)
    total = np.einsum("kad,adx->kx", force, [[n, [-n[1], n[0]]] for n in normals])
    assert np.allclose(total, [0.0, G], rtol=0, atol=1e-8)
    assert (np.abs(force[..., 1]) <= gamma * force[..., 0] + 1e-9).all()
    assert np.abs(motion.u).max() < 1e-10


def test_wedge_holds_by_friction():
    # A force pulls the particle out of the groove's corner along its axis (upwards): nothing holds it. Pushed
    # between two parallel walls at distance 0 it is jammed only by what presses: it falls freely.
    walls = [cd.Constraint(lambda t, q, s=s: s * q[0], law=cd.Law(friction=1.0)) for s in (-1.0, 1.0)]
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0, -G), constraints=walls)
    motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=0.01, until=0.5)
    assert motion.q[-1, 1] == pytest.approx(-G * 0.125, abs=1e-12)
    # Pressed against one of them with 2 m g and gamma = 1 it holds.
    pressed = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (2 * G, -G), constraints=walls)
    motion = cd.integrate(pressed, q=(0, 0), u=(0, 0), step=0.01, until=0.5)
    assert np.abs(motion.u).max() < 1e-12


# ---- tangential shocks ----------------------------------------------------------------------------------------------


def rod(gamma, mass=1.0, half=1.0):
    """Painleve's rod (x, y, angle from the horizontal) whose lower end slides on the floor."""

    def lower(q):
        return -half * math.cos(q[2]), -half * math.sin(q[2])

    tip = cd.Constraint(
        lambda t, q: q[1] + lower(q)[1],
        contact_map=lambda t, q: [[0.0, 1.0, lower(q)[0]], [1.0, 0.0, -lower(q)[1]]],
        law=cd.Law(friction=gamma),
    )
    return cd.System(
        inertia=[mass, mass, mass * half**2 / 3], force=lambda t, q, u: (0, -G * mass, 0), constraints=[tip]
    )


@pytest.mark.parametrize("scheme", ["planar_friction", "midpoint"])
@pytest.mark.parametrize("gamma, jams", [(0.5, False), (3.0, True)])
def test_rod_of_painleve(scheme, gamma, jams):
    # At the angle a the pivot of the sliding problem is W_nn + gamma W_nt (slip against the lean) with
    # W_nn = 1 + 3 cos^2 a, W_nt = -3 sin a cos a: it changes sign for gamma > (1 + 3 cos^2) / (3 sin cos), least
    # 4/3. Beyond it no force makes the rod slide on: a tangential shock stops the tip at once (1986, section 13,
    # Remark 4). The rod (a = 64 degrees, critical coefficient 1.34) slides towards its lean at speed 3.
    angle = math.atan(2.0)
    cos, sin = math.cos(angle), math.sin(angle)
    critical = (1 + 3 * cos**2) / (3 * sin * cos)
    assert (gamma > critical) == jams
    system = rod(gamma)
    motion = cd.integrate(system, q=(0.0, sin - 1e-9, angle), u=(-3.0, 0.0, 0.0), step=1e-4, until=0.05, scheme=scheme)
    delassus = (
        np.array(system.constraints[0].contact_map(0.0, motion.q[0]))
        @ np.diag([1, 1, 3])
        @ np.transpose(system.constraints[0].contact_map(0.0, motion.q[0]))
    )
    assert delassus[0, 0] == pytest.approx(1 + 3 * cos**2, rel=1e-6)
    assert abs(delassus[0, 1]) == pytest.approx(3 * sin * cos, rel=1e-6)
    first = motion.impulses[0, 0]
    if jams:
        # The impulse is that of a shock, of the order of the momentum, not of m g h = 1e-3.
        assert first[0] > 0.1
        assert motion.status[0, 0] == STICKING
    else:
        assert first[0] < 10 * G * 1e-4
        assert motion.status[0, 0] == SLIDING
    assert np.isfinite(motion.q).all()
    assert np.abs(motion.ledger.closure).max() < 1e-13
    # The shock loses energy. Later the rod turns about its tip, where the change of G from step to step makes an error
    # of P . U_i / 2 per step, of either sign and of order h in all (see test_energy.py).
    total = motion.ledger.kinetic + G * motion.q[:, 1]
    assert total[1] < total[0] and (total[1:] - total[1]).max() < 0.5 * motion.step
