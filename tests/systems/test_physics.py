"""Motions without friction against closed forms, with orders of convergence, for every scheme that knows them."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import contactdynamics as cd
from contactdynamics.systems.schemes import SCHEMES

INELASTIC = ["inel", "inel_corrected", "midpoint", "wall_friction", "planar_friction"]


def orders(errors):
    """Orders of convergence from errors at h, h/2, h/4, ..."""
    errors = np.abs(errors)
    return np.log2(errors[:-1] / errors[1:])


def falling(*constraints, gravity=10.0, mass=1.0):
    return cd.System(
        inertia=[mass, mass],
        force=lambda t, q, u: (0.0, -mass * gravity),
        potential=lambda t, q: mass * gravity * q[1],
        constraints=constraints,
    )


def inside_circle(radius=1.0):
    return cd.Constraint(lambda t, q: radius - math.hypot(*q), gradient=lambda t, q: -q / math.hypot(*q))


def outside_circle(radius=1.0):
    return cd.Constraint(lambda t, q: math.hypot(*q) - radius, gradient=lambda t, q: q / math.hypot(*q))


# ---- free motion -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_free_flight_is_exact(scheme):
    # q = q0 + u0 t + g t^2 / 2 at every output (1986, eqs. 6.11, 6.12), to rounding, for any step.
    far = cd.Constraint(lambda t, q: q[1] + 1e3)
    motion = cd.integrate(falling(far), q=(0.3, 2.0), u=(3.0, 1.0), step=0.037, until=3.7, scheme=scheme)
    t = motion.times[:, None]
    exact = np.array([0.3, 2.0]) + t * [3.0, 1.0] + t**2 / 2 * [0.0, -10.0]
    assert len(motion.times) == 101 and motion.times[-1] == pytest.approx(3.7, abs=1e-12)
    assert np.allclose(motion.q, exact, rtol=0, atol=1e-12)
    assert np.allclose(motion.u[:, 1], 1.0 - 10.0 * motion.times, rtol=0, atol=1e-12)
    assert not motion.active.any() and not motion.impulses.any()


def test_oscillator_is_of_second_order():
    # q'' = -q: q = cos t. Leapfrog: order 2 in position (1986, end of section 6).
    system = cd.System(inertia=[1.0], force=lambda t, q, u: -q)
    errors = [
        cd.integrate(system, q=(1.0,), u=(0.0,), step=2.0 / n, until=2.0).q[-1, 0] - math.cos(2.0) for n in (20, 40, 80)
    ]
    assert np.allclose(orders(errors), 2.0, atol=0.01)


def test_inertia_that_depends_on_the_position():
    # A free particle in polar coordinates (r, a): A = diag(1, r^2), centrifugal and Coriolis terms (r a'^2,
    # -2 r r' a') in the force (2004, eq. 21). From (1, 0) with velocity (0, 1) it goes straight: at t = 1, r = sqrt 2,
    # a = 45 degrees. The force takes u at the start of the step, which is of first order.
    system = cd.System(
        inertia=lambda t, q: np.diag([1.0, q[0] ** 2]),
        force=lambda t, q, u: (q[0] * u[1] ** 2, -2 * q[0] * u[0] * u[1]),
    )
    errors = []
    for n in (100, 200, 400):
        motion = cd.integrate(system, q=(1.0, 0.0), u=(0.0, 1.0), step=1.0 / n, until=1.0)
        errors.append(motion.q[-1] - (math.sqrt(2), math.pi / 4))
    assert np.allclose(orders(np.linalg.norm(errors, axis=1)), 1.0, atol=0.05)
    assert np.abs(errors[-1]).max() < 3e-3


# ---- elastic contact -------------------------------------------------------------------------------------------------


def pendulum(scheme, steps, until=2.0, **options):
    """Angle reached by a particle thrown round inside the unit circle (g = 1, initial speed 3), and the motion."""
    system = falling(inside_circle(), gravity=1.0)
    motion = cd.integrate(system, q=(0, -1), u=(3, 0), step=until / steps, until=until, scheme=scheme, **options)
    return np.unwrap(np.arctan2(motion.q[:, 0], -motion.q[:, 1]))[-1], motion


def pendulum_angle(until=2.0):
    """theta'' = -sin theta."""
    solution = solve_ivp(lambda t, y: (y[1], -math.sin(y[0])), (0, until), (0, 3), rtol=1e-12, atol=1e-13)
    return solution.y[0, -1]


def test_elast_follows_the_pendulum_with_second_order():
    # The contact persists over a revolution (u^2 / R > g at the top). Energy is balanced in every step.
    exact = pendulum_angle()
    errors = []
    for steps in (50, 100, 200, 400):
        angle, motion = pendulum("elast", steps)
        errors.append(angle - exact)
        total = motion.ledger.kinetic + motion.ledger.potential
        assert np.abs(total - total[0]).max() < 1e-12 * motion.ledger.kinetic[0] * steps
        assert np.hypot(*motion.q.T).max() < 1 + 1e-12  # the output stays on the permitted side
        assert motion.active.mean() > 0.45
    assert np.allclose(orders(errors), 2.0, atol=0.01)


def test_reflection_creates_energy_where_elast_does_not():
    # 1986, section 7 and trial 2: the mirror image of u' makes the rebounds grow.
    system = falling(cd.Constraint(lambda t, q: q[1]))
    start = {"q": (0.0, 0.0), "u": (1.0, 0.0), "step": 0.01, "until": 2.0}
    grown = cd.integrate(system, **start, scheme="reflection")
    kept = cd.integrate(system, **start, scheme="elast")
    total = grown.ledger.kinetic + grown.ledger.potential
    assert total[-1] > 1.5 * total[0]
    total = kept.ledger.kinetic + kept.ledger.potential
    assert np.abs(total - total[0]).max() < 1e-13


@pytest.mark.parametrize("walls", [2, 3])
def test_elast_in_a_corner_takes_the_contacts_together(walls):
    # A particle shot into the corner of perpendicular walls comes back reversed, with its energy.
    constraints = [cd.Constraint(lambda t, q, i=i: q[i]) for i in range(walls)]
    u = np.array([-1.0, -2.0, -0.5])[:walls]
    system = cd.System(inertia=np.full(walls, 2.0), constraints=constraints)
    motion = cd.integrate(system, q=np.zeros(walls), u=u, step=0.01, until=0.1, scheme="elast")
    assert np.allclose(motion.u[1:], -u, rtol=0, atol=1e-14)


def test_elastic_balls_on_a_line():
    # Newton's cradle with two balls of masses 1 and 3 (gap q2 - q1 - 1): elastic exchange,
    # u1' = (m1 - m2) / (m1 + m2) u1 = -1/2, u2' = 2 m1 / (m1 + m2) u1 = 1/2 for u1 = 1, u2 = 0.
    touching = cd.Constraint(lambda t, q: q[1] - q[0] - 1.0)
    system = cd.System(inertia=[1.0, 3.0], constraints=[touching])
    motion = cd.integrate(system, q=(0.0, 1.5), u=(1.0, 0.0), step=0.01, until=1.0, scheme="elast")
    assert np.allclose(motion.u[-1], [-0.5, 0.5], rtol=0, atol=1e-14)
    same = cd.System(
        inertia=[1.0, 3.0], constraints=[cd.Constraint(lambda t, q: q[1] - q[0] - 1.0, law=cd.Law(restitution=1.0))]
    )
    motion = cd.integrate(same, q=(0.0, 1.5), u=(1.0, 0.0), step=0.01, until=1.0)
    assert np.allclose(motion.u[-1], [-0.5, 0.5], rtol=0, atol=1e-14)


# ---- inelastic contact -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme, options",
    [("inel", {}), ("inel", {"anticipation": 0.5}), ("inel_corrected", {}), ("midpoint", {})],
)
def test_inelastic_pendulum_is_of_first_order(scheme, options):
    # 1986, section 10, Remark 3: the discretisation dissipates like a slight friction, less and less with h.
    exact = pendulum_angle(1.0)
    runs = [pendulum(scheme, steps, until=1.0, **options) for steps in (400, 800, 1600)]
    errors = [angle - exact for angle, _ in runs]
    assert np.allclose(orders(errors), 1.0, atol=0.05)
    for _, motion in runs:
        total = motion.ledger.kinetic + motion.ledger.potential
        assert np.diff(total).max() < 1e-13
    losses = [m.ledger.kinetic[-1] + m.ledger.potential[-1] - 3.5 for _, m in runs]
    assert np.allclose(orders(losses), 1.0, atol=0.05)


def test_roughness_of_a_curved_boundary():
    # 1986, last lines of section 10: without force |u_{i+1}| = |u_i| cos e, e the angle of the two velocities. Inside
    # a circle u_i is perpendicular to q_i, so tan e = h |u_i| / |q_i| and |q_{i+1}|^2 = |q_i|^2 + h^2 |u_i|^2, where
    # q_i is the midpoint of the step: a drift outwards, of order h over a given time.
    h, steps = 0.01, 200
    system = cd.System(inertia=[1.0, 1.0], constraints=[inside_circle()])
    motion = cd.integrate(system, q=(0.0, -1.0), u=(2.0, 0.0), step=h, until=h * steps, scheme="inel")
    # From the lowest point the first midpoint is (h, -1), already outside.
    radius, speed, angle = math.hypot(h, 1.0), 2.0 * math.cos(math.atan(h)), 0.0
    for i in range(steps):
        middle = (motion.q[i] + motion.u[i] * h / 2) if i else np.array([h, -1.0])
        assert np.hypot(*middle) == pytest.approx(radius, rel=1e-13)
        assert np.hypot(*motion.u[i + 1]) == pytest.approx(speed, rel=1e-13)
        angle = math.atan(h * speed / radius)
        radius, speed = math.hypot(radius, h * speed), speed * math.cos(angle)


@pytest.mark.parametrize("scheme", INELASTIC)
def test_inelastic_landing(scheme):
    # From height 1 with g = 10: impact at t = 0.4472 with -4.472. From then on u_y = 0 and x goes on at speed 1.
    # The violation is less than what a step drifts: |u| h; with the correction (10.9) it vanishes.
    h = 1e-3
    system = falling(cd.Constraint(lambda t, q: q[1]))
    motion = cd.integrate(system, q=(0.0, 1.0), u=(1.0, 0.0), step=h, until=1.0, scheme=scheme)
    landed = motion.times > math.sqrt(0.2) + h
    assert np.abs(motion.u[landed] - (1.0, 0.0)).max() < 1e-15
    assert motion.q[-1, 0] == pytest.approx(1.0, abs=1e-12)
    limit = 1e-14 if scheme.endswith("corrected") else math.sqrt(20.0) * h
    assert -limit <= motion.q[landed, 1].min() and motion.q[landed, 1].max() <= 1e-15
    # The impulses sum up to the momentum at impact plus the weight over the rest of the time: 10 * 1.0 in all.
    assert motion.impulses[:, 0, 0].sum() == pytest.approx(10.0, abs=1e-11)


def slide_off(scheme, steps, until=2.0, start=0.5, **options):
    """A particle slides from the top of the unit circle (g = 1) with speed 0.5."""
    system = falling(outside_circle(), gravity=1.0)
    return cd.integrate(system, q=(0, 1), u=(start, 0), step=until / steps, until=until, scheme=scheme, **options)


def slide_off_exactly(until=2.0, start=0.5):
    """theta'' = sin theta up to cos theta = 2/3 + u0^2 / 3 (where u^2 = cos theta), then a parabola."""

    def leaves(t, y):
        return math.cos(y[0]) - (2 + start**2) / 3

    leaves.terminal = True
    path = solve_ivp(lambda t, y: (y[1], math.sin(y[0])), (0, until), (0, start), events=leaves, rtol=1e-12, atol=1e-13)
    angle, spin = path.y[:, -1]
    rest = until - path.t[-1]
    q = np.array([math.sin(angle), math.cos(angle)])
    u = spin * np.array([math.cos(angle), -math.sin(angle)])
    return q + rest * u + rest**2 / 2 * np.array([0.0, -1.0])


@pytest.mark.parametrize(
    "scheme, options, constant, power",
    # Without anticipation the contact is intermittent: moved along a tangent the particle leaves the circle a little
    # and needs about (g cos / N) steps to come back, N being the reaction. N falls like 3 g sin(theta) u tau / R, tau
    # the time to go, so the last touch is about tau = sqrt(h cos / (3 sin u)) early: 0.37 sqrt(h) in cos theta for a
    # start from rest. With A_V = 1/2 it touches in every step: the error is one step, sin(theta) u h = 0.6 h.
    [("inel", {}, 0.5, 0.5), ("midpoint", {}, 0.5, 0.5), ("inel", {"anticipation": 0.5}, 0.7, 1.0)],
)
def test_leaves_the_sphere_at_two_thirds(scheme, options, constant, power):
    exact = slide_off_exactly()
    errors = []
    for steps in (400, 800, 1600, 3200):
        motion = slide_off(scheme, steps, **options)
        last = np.flatnonzero(motion.impulses[:, 0, 0])[-1]
        middle = (motion.q[last] + motion.q[last + 1]) / 2
        cosine = middle[1] / np.hypot(*middle)
        assert abs(cosine - (2 + 0.25) / 3) <= constant * motion.step**power
        errors.append(np.linalg.norm(motion.q[-1] - exact))
    # The motion itself, flight included, converges with order 1.
    assert errors[-1] < 4e-4
    assert np.polyfit(np.log([400, 800, 1600, 3200]), np.log(errors), 1)[0] < -0.9


# ---- viability -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["inel", "midpoint"])
def test_violation_on_a_convex_obstacle_is_of_second_order(scheme):
    # Between two touches the particle gains at most g h towards the obstacle in the step after leaving it, and drifts
    # a step with that: the violation is at most g h^2.
    for steps in (100, 200, 400):
        motion = slide_off(scheme, steps, until=1.0, start=0.1)
        assert -(motion.step**2) <= motion.gaps.min() < 0


def test_violation_inside_a_circle():
    # A_V = 0: |q_m|^2 grows by h^2 u^2 per step: order h. A_V = 1/2 takes the tangent where the chord's middle is:
    # order h^4 here. Corrected: what one step adds, (h u)^2 / 2, at most (1986, Remarks 1 and 2 of section 10).
    _, plain = pendulum("inel", 200, until=1.0)
    assert -plain.gaps.min() == pytest.approx(0.5 * plain.step * 9.0, rel=0.25)  # int h u^2 / 2 dt, u <= 3
    _, anticipated = pendulum("inel", 200, until=1.0, anticipation=0.5)
    assert -np.min(1 - np.hypot(*anticipated.q.T)) < 1e-7
    _, corrected = pendulum("inel_corrected", 200, until=1.0)
    assert -corrected.gaps.min() < 0.5 * (corrected.step * 3.0) ** 2 * (1 + 1e-3)


def perturbed(system, q, u, scheme, steps, h):
    """Gaps over the steps from a state put inside the obstacle by hand (a start there is refused)."""
    state = system.start(q, u)
    state = state._replace(q=state.q - 1e-3 * system.normal(0, 0.0, state.q, 2))
    return cd.integrate(system, start=state, step=h, until=steps * h, scheme=scheme)


@pytest.mark.parametrize("scheme", ["inel", "midpoint"])
def test_a_convex_obstacle_corrects_a_violation_by_itself(scheme):
    # 2004, section 3.3, Remark 1. Pressed on a circle (g = 2 > u^2 / R = 1) each step along the tangent gains
    # (h u)^2 / (2 R): from a depth of 1e-3 with h u = 0.01 the surface is reached after 20 steps; then g h^2 = 2e-4
    # bounds the violation, as above.
    system = falling(outside_circle(), gravity=2.0)
    motion = perturbed(system, (0.0, 1.0), (1.0, 0.0), scheme, 40, 0.01)
    assert motion.gaps[0, 0] < -9e-4
    assert motion.active[:17].all() and not motion.active[:23].all()
    assert motion.gaps[23:].min() > -2e-4


def test_a_flat_wall_keeps_a_violation_and_the_correction_removes_it():
    system = falling(cd.Constraint(lambda t, q: q[1]))
    kept = perturbed(system, (0.0, 0.0), (1.0, 0.0), "inel", 20, 0.01)
    assert np.allclose(kept.gaps, -1e-3, rtol=0, atol=1e-15)
    removed = perturbed(system, (0.0, 0.0), (1.0, 0.0), "inel_corrected", 20, 0.01)
    assert np.abs(removed.q[1:, 1]).max() < 1e-15


def test_correction_with_a_steep_gap_and_a_map():
    # The gap 5 (y + x/2) is not a distance, and the map's first row is the unit normal: the correction (10.9) must
    # use the gradient of the gap.
    n = np.array([0.5, 1.0]) / math.hypot(0.5, 1.0)
    rows = np.array([n, [-n[1], n[0]]])
    wall = cd.Constraint(lambda t, q: 5 * (q[1] + q[0] / 2), contact_map=lambda t, q: rows, law=cd.Law(friction=9.0))
    motion = perturbed(falling(wall), (0.0, 0.0), (0.0, 0.0), "planar_friction_corrected", 3, 0.01)
    assert np.abs(motion.q[1]).max() < 1e-13


# ---- restitution -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_bouncing_ball(e):
    # Heights e^(2k) h0; the bounces accumulate at t = sqrt(2 h0 / g) (1 + 2 e + 2 e^2 + ...) =
    # sqrt(2 h0 / g) (1 + e) / (1 - e), and the ball rests from then on.
    height, g = 1.0, 10.0
    system = falling(cd.Constraint(lambda t, q: q[1], law=cd.Law(restitution=e)), gravity=g)
    end = math.sqrt(2 * height / g) * (1 + e) / (1 - e)
    errors = []
    for h in (2e-3, 1e-3, 5e-4, 2.5e-4):
        motion = cd.integrate(system, q=(0.0, height), u=(0.0, 0.0), step=h, until=1.3 * end)
        y, u = motion.q[:, 1], motion.u[:, 1]
        tops = y[np.flatnonzero((u[:-1] > 0) & (u[1:] <= 0) & (y[1:] > 0.01 * height)) + 1]
        expected = height * e ** (2 * np.arange(1, len(tops) + 1))
        assert len(tops) >= 3
        # An impact is seen up to a step late: its speed is wrong by g h, the next height by at most u h (1 + e^2).
        assert np.abs(tops - expected)[:3].max() < 3 * math.sqrt(2 * g * height) * h
        errors.append(np.abs(tops - expected)[:3].max())
        resting = motion.times > 1.1 * end
        assert np.abs(y[resting]).max() < math.sqrt(2 * g * height) * h and np.abs(u[resting]).max() < 2 * g * h
        # Bounces with (1 + e) u > 3 g h, more than the weight of a step, end 6 h / (1 - e^2) < 17 h before the end.
        bounces = motion.times[1:][motion.impulses[:, 0, 0] > 3 * g * h]
        assert end - 25 * h < bounces[-1] < end + 2 * h
    assert np.polyfit(np.log([2, 1, 0.5, 0.25]), np.log(errors), 1)[0] > 0.7


def test_fully_elastic_restitution_keeps_the_energy_of_a_shock():
    # rho = 1: no force, so the only change is the shock: |u| is kept to rounding.
    system = cd.System(inertia=[1.0, 1.0], constraints=[cd.Constraint(lambda t, q: q[1], law=cd.Law(restitution=1.0))])
    motion = cd.integrate(system, q=(0.0, 0.5), u=(0.3, -1.0), step=0.01, until=1.0)
    assert np.allclose(motion.u[-1], [0.3, 1.0], rtol=0, atol=1e-15)


# ---- moving boundaries -----------------------------------------------------------------------------------------------


def table(a, omega, **options):
    return cd.Constraint(lambda t, q: q[0] - a * math.sin(omega * t), **options)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("omega", [5.0, 300.0])
def test_particle_on_an_oscillating_table(given, omega):
    # z = a sin(w t), a w^2 = 2 g: the particle goes with the table until its acceleration -a w^2 sin(w t) reaches -g,
    # at sin(w t) = 1/2, and leaves with u = a w cos(w t): w t = 30 degrees. As on the sphere the contact is
    # intermittent: with the reaction N = a w^3 cos(w t) tau, tau before leaving, there are g / N steps between two
    # touches, so that the last one is early by about tau = sqrt(h g / (a w^3 cos)) = sqrt(h / (2 w cos 30)).
    g = 10.0
    a = 2 * g / omega**2
    boundary = (lambda t, q: (-a * omega * math.cos(omega * t),)) if given else None
    system = cd.System(inertia=[1.0], force=lambda t, q, u: (-g,), constraints=[table(a, omega, boundary=boundary)])
    leave, later = math.pi / 6 / omega, 1.5 / omega
    for steps in (500, 2000):
        motion = cd.integrate(system, q=(0.0,), u=(a * omega,), step=later / steps, until=later)
        last = motion.times[np.flatnonzero(motion.impulses[:, 0, 0])[-1]]
        assert abs(last - leave) < 1.5 * math.sqrt(motion.step / (2 * omega * math.cos(math.pi / 6)))
        riding = motion.times < 0.9 * leave
        assert np.allclose(
            motion.u[riding, 0], a * omega * np.cos(omega * motion.times[riding]), atol=3 * g * motion.step
        )
        rest = later - leave
        exact = a / 2 + rest * a * omega * math.cos(math.pi / 6) - g * rest**2 / 2
        assert motion.q[-1, 0] == pytest.approx(exact, abs=4 * a / steps)


def test_a_rising_floor_lifts():
    # The floor rises with speed 2 from below and picks the particle up; with the gap in units of its own (3 times the
    # height) and a map whose first row is the unit normal, U_n = 0 still means u_y = 2.
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    for constraint in (
        cd.Constraint(lambda t, q: q[1] - 2 * t),
        cd.Constraint(lambda t, q: 3 * (q[1] - 2 * t), law=cd.Law(friction=0.3)),
        cd.Constraint(lambda t, q: 3 * (q[1] - 2 * t), contact_map=lambda t, q: rows, law=cd.Law(friction=0.3)),
    ):
        motion = cd.integrate(falling(constraint), q=(0.0, 0.5), u=(0.0, 0.0), step=1e-3, until=1.0)
        assert motion.u[-1, 1] == pytest.approx(2.0, abs=1e-10)
        assert motion.q[-1, 1] == pytest.approx(2.0, abs=1e-2)


def test_elastic_bounce_on_a_moving_racket():
    # Racket speed 1 against a particle at -2: u+ = 2 * 1 + 2 = 4, for ELAST and for the midpoint scheme with rho = 1.
    for scheme, law in (("elast", None), ("midpoint", cd.Law(restitution=1.0))):
        system = cd.System(inertia=[1.0], constraints=[cd.Constraint(lambda t, q: q[0] - t, law=law)])
        motion = cd.integrate(system, q=(3.0,), u=(-2.0,), step=0.01, until=2.0, scheme=scheme)
        assert motion.u[-1, 0] == pytest.approx(4.0, abs=1e-11)


# ---- gradients by differences, units ---------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_gradient_by_differences(unit):
    # The same motion on an ellipse with the gradient given and computed, in millimetres, metres and kilometres.
    centre = np.array([1.0, 0.5]) * unit

    def gap(t, q):
        x, y = (q - centre) / unit
        return unit * (x**2 + 4 * y**2 - 1)

    def gradient(t, q):
        return (q - centre) / unit * [2.0, 8.0]

    runs = []
    for given in (gradient, None):
        system = falling(cd.Constraint(gap, gradient=given), gravity=unit)
        start = {"q": centre + unit * np.array([0.1, 0.6]), "u": unit * np.array([0.3, 0.0])}
        runs.append(cd.integrate(system, **start, step=1e-2, until=2.0, scheme="inel"))
    assert runs[0].active.any()
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9 * unit)


def test_gradient_by_differences_follows_the_kinematics():
    # Positions (cos a, sin a), velocity a': the gap y - 1/2 >= 0 has dg/dt = cos(a) a'.
    system = cd.System(
        inertia=[1.0],
        constraints=[cd.Constraint(lambda t, q: q[1] - 0.5)],
        kinematics=lambda q, u, h: np.array(
            [
                q[0] * math.cos(h * u[0]) - q[1] * math.sin(h * u[0]),
                q[0] * math.sin(h * u[0]) + q[1] * math.cos(h * u[0]),
            ]
        ),
    )
    angle = 1.2
    state = system.start((math.cos(angle), math.sin(angle)), (0.0,))
    assert system.normal(0, 0.0, state.q, 1) == pytest.approx(math.cos(angle), abs=1e-12)


# ---- driving ---------------------------------------------------------------------------------------------------------


def test_going_on_from_a_state_is_the_same_run():
    # Also with friction, whose memory travels in the state, and with a new system object.
    def build():
        law = cd.Law(friction=0.4, static_friction=0.6, restitution=0.3)
        return falling(cd.Constraint(lambda t, q: q[1] + 0.2 * q[0], law=law))

    whole = cd.integrate(build(), q=(0.0, 1.0), u=(1.0, 0.0), step=1 / 256, until=2.0)
    half = cd.integrate(build(), q=(0.0, 1.0), u=(1.0, 0.0), step=1 / 256, until=1.0)
    rest = cd.integrate(build(), start=half.state, step=1 / 256, until=2.0)
    assert (np.vstack([half.q, rest.q[1:]]) == whole.q).all()
    assert (np.vstack([half.impulses, rest.impulses]) == whole.impulses).all()
    assert rest.times[0] == 1.0


def test_driving_by_hand_is_the_same_run():
    system = falling(cd.Constraint(lambda t, q: q[1]))
    motion = cd.integrate(system, q=(0.0, 0.3), u=(1.0, 0.0), step=0.01, until=0.5)
    state = system.start((0.0, 0.3), (1.0, 0.0))
    for _ in range(50):
        state = cd.schemes.midpoint(system, state, 0.01).state
    assert (state.q == motion.q[-1]).all()


def test_two_runs_give_the_same_bits():
    runs = [pendulum("inel", 100)[1], pendulum("inel", 100)[1]]
    assert (runs[0].q == runs[1].q).all() and (runs[0].impulses == runs[1].impulses).all()


def test_plot_draws_without_contacts_and_with_them():
    for constraints in ((), (cd.Constraint(lambda t, q: q[1]), cd.Constraint(lambda t, q: q[0] + 1 - t))):
        motion = cd.integrate(falling(*constraints), q=(0.0, 0.3), u=(1.0, 0.0), step=0.01, until=0.5)
        figure = motion.plot(labels=["x", "y"])
        assert [ax.get_ylabel() for ax in figure.axes] == ["position", "gap", "energy"]
        assert len(figure.axes[1].lines) == len(constraints) + 1
