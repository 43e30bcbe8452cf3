"""The event-driven integrator: closed forms, Gauss's principle, release after Delassus, accumulations, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import contactdynamics as cd
from contactdynamics.errors import ConvergenceError, ConvergenceWarning
from contactdynamics.problem.dense import project
from contactdynamics.state import OPEN, SLIDING, STICKING
from contactdynamics.systems import events

G = 9.81


def kinds(motion, kind):
    return [event for event in motion.events if event.kind == kind]


def orders(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


# ---- impacts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restitution", [0.3, 0.5, 0.9])
def test_ball_comes_to_rest_after_infinitely_many_bounces(restitution):
    # Dropped from H: first impact at T = sqrt(2 H / g), then flights of 2 T e, 2 T e^2, ...: impact k + 1 is at
    # T + 2 T (e + ... + e^k), and all are over at T (1 + e) / (1 - e). Impact k + 1 has the impulse (1 + e) e^k g T.
    height, e = 0.7, restitution
    floor = cd.Constraint(lambda t, q: q[0], law=cd.Law(restitution=e))
    ball = cd.System(inertia=[2.0], force=lambda t, q, u: (-2 * G,), constraints=[floor])
    first = math.sqrt(2 * height / G)
    end = first * (1 + e) / (1 - e)
    motion = cd.events.integrate(ball, (height,), (0.0,), until=1.5 * end)
    impacts = kinds(motion, "impact")
    for k in range(6):
        expected = first + 2 * first * sum(e**j for j in range(1, k + 1))
        assert impacts[k].time == pytest.approx(expected, abs=1e-12)
        assert impacts[k].impulses[0, 0] == pytest.approx(2 * (1 + e) * e**k * G * first, rel=1e-11)
        before = (e**k * G * first) ** 2
        assert impacts[k].energy == pytest.approx(-(1 - e * e) * before, rel=1e-10)
    ((cut, contact, limit),) = motion.accumulations
    assert contact == 0 and limit == pytest.approx(end, rel=1e-6) and 0 < end - cut < 1e-5 * end
    assert "accumulate" in motion.message and motion.completed
    assert motion.intervals[-1].status[0] == SLIDING and abs(motion.q[-1, 0]) < 1e-14
    assert motion.reactions(1.4 * end)[0, 0] == pytest.approx(2 * G, rel=1e-12)


def test_accumulations_in_a_corner_are_all_told():
    # The particle bounces on the wall until it stays there, then on the floor, sliding up and down the wall: there an
    # upward flight of speed v ends at the height v^2 / (2 (g + gamma f)), the fall from it, with g - gamma f, has the
    # speed v sqrt((g - gamma f) / (g + gamma f)): one bounce shortens the flights by that times e.
    law, e, gamma, push = cd.Law(friction=0.3, restitution=0.5), 0.5, 0.3, 1.0
    walls = [cd.Constraint(lambda t, q, i=i: q[i], gradient=lambda t, q, i=i: np.eye(2)[i], law=law) for i in (0, 1)]
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (-push, -G), constraints=walls)
    motion = cd.events.integrate(system, (1, 1), (-2, 0), until=1.5)
    assert [contact for _, contact, _ in motion.accumulations] == [0, 1]
    times = [event.time for event in motion.events if event.kind == "impact" and event.contacts == (1,)]
    ratio = e * math.sqrt((G - gamma * push) / (G + gamma * push))
    last = np.diff(times)[3:8]
    assert np.allclose(last[1:] / last[:-1], ratio, rtol=1e-6)
    limit = times[8] + (times[8] - times[7]) * ratio / (1 - ratio)
    assert motion.accumulations[1][2] == pytest.approx(limit, rel=1e-7)
    assert np.abs(motion.q[-1]).max() < 1e-12 and motion.intervals[-1].status.tolist() == [STICKING, STICKING]


def test_elastic_bounces_keep_their_energy():
    floor = cd.Constraint(lambda t, q: q[1] - 0.2 * math.sin(3 * q[0]), law=cd.Law(restitution=1.0))
    ball = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0, -G), constraints=[floor])
    motion = cd.events.integrate(ball, (0.0, 0.5), (0.4, 0.0), until=4.0)
    energy = 0.5 * (motion.u**2).sum(axis=1) + G * motion.q[:, 1]
    assert len(kinds(motion, "impact")) >= 4
    assert np.allclose(energy, energy[0], rtol=1e-9, atol=0)


def test_impact_of_several_contacts_is_moreaus_projection():
    # A block falls on one foot while the other rests: u+ is the nearest point to u- in the kinetic metric (2004, 7.4),
    # here with the closed form of the rocking block: the spin after is (2 h^2 - b^2 + ...)/... of a rectangle b x h
    # about its new edge: w+ / w- = (I_G + m (h^2 - b^2)) / (I_G + m (h^2 + b^2)), half sides b and h, without sliding.
    b, h = 0.2, 0.5
    inertia = (b * b + h * h) / 3

    def foot(sign):
        def arm(q):  # from the centre to the foot
            c, s = math.cos(q[2]), math.sin(q[2])
            return sign * b * c + h * s, sign * b * s - h * c

        return cd.Constraint(
            lambda t, q: q[1] + arm(q)[1],
            contact_map=lambda t, q: np.array([[0, 1, arm(q)[0]], [1, 0, -arm(q)[1]]]),
            law=cd.Law(friction=5.0),
        )

    block = cd.System(inertia=[1.0, 1.0, inertia], force=lambda t, q, u: (0, -G, 0), constraints=[foot(-1), foot(1)])
    tilt = -0.1  # turned about the right foot
    c, s = math.cos(tilt), math.sin(tilt)
    q = (-(b * c + h * s), h * c - b * s, tilt)
    motion = cd.events.integrate(block, q, (0, 0, 0), until=0.6)
    impact = kinds(motion, "impact")[0]
    before = motion.intervals[0].state(impact.time)[5]
    after = motion.at(impact.time)[1][2]
    assert impact.contacts == (0,)  # the right foot takes no impulse: it leaves
    expected = (inertia + h * h - b * b) / (inertia + h * h + b * b)
    assert after / before == pytest.approx(expected, rel=1e-9)
    # Rocking about the right foot from rest: energy m g times the fall of the centre.
    fall = q[1] - h
    assert before**2 * (inertia + b * b + h * h) / 2 == pytest.approx(G * fall, rel=1e-9)


# ---- release ---------------------------------------------------------------------------------------------------------


def dome(start=0.5):
    """A particle on a frictionless dome of radius 1 above a floor, and where it starts."""
    top = cd.Constraint(lambda t, q: math.hypot(*q) - 1, gradient=lambda t, q: np.array(q) / math.hypot(*q))
    floor = cd.Constraint(lambda t, q: q[1])
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0, -G), constraints=[top, floor])
    return system, (math.sin(start), math.cos(start))


def test_particle_leaves_the_dome_where_it_should():
    # u^2 = 2 g (y0 - y) and R = g y - u^2 (radius 1) vanish together at y = 2/3 y0. Then a parabola down to the floor,
    # where the normal velocity is lost and the particle slides on with u_x.
    system, q0 = dome()
    motion = cd.events.integrate(system, q0, (0, 0), until=1.5)
    (leaving,) = kinds(motion, "release")
    q, u = motion.at(leaving.time)
    y = 2 / 3 * q0[1]
    speed = math.sqrt(2 * G * (q0[1] - y))
    assert q == pytest.approx((math.sqrt(1 - y * y), y), abs=5e-9)
    assert u == pytest.approx((speed * y, -speed * math.sqrt(1 - y * y)), abs=5e-9)
    # 5e-9: a release is seen when the reaction is negative by 1e-9 of the forces.
    flight = (-speed * math.sqrt(1 - y * y) + math.sqrt(speed**2 * (1 - y * y) + 2 * G * y)) / G
    (impact,) = kinds(motion, "impact")
    assert impact.time - leaving.time == pytest.approx(flight, abs=5e-9)
    end = math.sqrt(1 - y * y) + speed * y * (1.5 - leaving.time)
    assert motion.q[-1] == pytest.approx((end, 0.0), abs=5e-9)
    # On the dome the reaction is m g y - m u^2.
    q, u = motion.at(0.3)
    assert motion.reactions(0.3)[0, 0] == pytest.approx(G * q[1] - u @ u, rel=1e-8)


def test_gradients_by_differences_give_the_same_motion():
    system, q0 = dome()
    blind = cd.System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (0, -G),
        constraints=[cd.Constraint(c.gap) for c in system.constraints],
    )
    one, other = (cd.events.integrate(s, q0, (0, 0), until=1.5) for s in (system, blind))
    assert np.allclose(one.q, other.q, rtol=0, atol=1e-8)


def test_contact_breaks_on_a_vibrating_floor():
    # Floor at a sin(w t): the reaction m (g - a w^2 sin(w t)) vanishes at sin(w t) = g / (a w^2); then free flight.
    a, w = 0.02, 40.0
    floor = cd.Constraint(lambda t, q: q[0] - a * math.sin(w * t))
    grain = cd.System(inertia=[0.5], force=lambda t, q, u: (-0.5 * G,), constraints=[floor])
    motion = cd.events.integrate(grain, (0.0,), (a * w,), until=0.1)
    leaving = kinds(motion, "release")[0].time
    expected = math.asin(G / (a * w * w)) / w
    assert leaving == pytest.approx(expected, abs=1e-9)
    height, speed = a * math.sin(w * expected), a * w * math.cos(w * expected)
    t = 0.09
    assert motion.at(t)[0][0] == pytest.approx(height + speed * (t - expected) - G * (t - expected) ** 2 / 2, abs=1e-9)


V_ANGLE = math.radians(20)
V_NORMALS = np.array([[math.cos(V_ANGLE), math.sin(V_ANGLE)], [-math.cos(V_ANGLE), math.sin(V_ANGLE)]])


def two_sided_reactions(normals, force):
    """R with force + N^T R = 0: what the contacts would have to do to hold the particle."""
    return np.linalg.solve(normals @ normals.T, -normals @ force)


def test_contact_with_a_negative_reaction_may_stay():
    # Delassus: a particle at the bottom of a narrow V, pulled out of it and to the right. To hold it both walls would
    # have to pull. The naive rule, to release the contacts of negative reaction, lets it enter the right wall.
    force = np.array([1.5, 3.0])
    assert (two_sided_reactions(V_NORMALS, force) < 0).all()
    assert (V_NORMALS @ force)[1] < 0  # free motion enters wall 1
    walls = [cd.Constraint(lambda t, q, n=n: n @ q) for n in V_NORMALS]
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: force, constraints=walls)
    motion = cd.events.integrate(system, (0, 0), (0, 0), until=1.0)
    assert motion.intervals[0].status.tolist() == [OPEN, SLIDING]
    along = np.array([math.sin(V_ANGLE), math.cos(V_ANGLE)])  # up the right wall
    assert motion.q[-1] == pytest.approx(along * (along @ force) / 2, rel=1e-12)
    assert min(min(n @ q for n in V_NORMALS) for q in motion.q) > -1e-12


def test_contact_with_a_positive_reaction_may_leave():
    # In a wide corner (normals 60 degrees apart) a force that both n_i . F > 0: nothing holds the particle, although
    # the two-sided calculation gives wall 1 a positive reaction. Released alone, wall 0 leaves a pulling wall 1.
    normals = np.array([[1.0, 0.0], [0.5, math.sqrt(0.75)]])
    force = np.linalg.solve(normals, [1.0, 0.2])
    reactions = two_sided_reactions(normals, force)
    assert reactions[0] < 0 < reactions[1]
    walls = [cd.Constraint(lambda t, q, n=n: n @ q) for n in normals]
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: force, constraints=walls)
    motion = cd.events.integrate(system, (0, 0), (0, 0), until=1.0)
    assert motion.intervals[0].status.tolist() == [OPEN, OPEN]
    assert motion.q[-1] == pytest.approx(force / 2, rel=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_release_against_the_two_sided_reactions(seed):
    # With W r + b = a, a >= 0, r >= 0, a . r = 0 and W R + b = 0: (r - R) . W (r - R) = -a . R. So if anything leaves,
    # at least one of those that leave had R < 0; no more than that can be said.
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    normals, force = rng.normal(size=(n, n)), rng.normal(size=n)
    walls = [cd.Constraint(lambda t, q, n=n: n @ q, gradient=lambda t, q, n=n: n) for n in normals]
    system = cd.System(inertia=np.ones(n), force=lambda t, q, u: force, constraints=walls)
    motion = cd.events.integrate(system, np.zeros(n), np.zeros(n), until=1e-3, max_step=1e-3, samples=2)
    left = motion.intervals[0].status == OPEN
    acceleration = force + normals.T @ motion.reactions(0.0)[:, 0]
    assert (normals @ acceleration > -1e-9).all() and np.abs((normals @ acceleration)[~left]).max(initial=0) < 1e-9
    assert (motion.reactions(0.0)[:, 0] > -1e-9).all()
    # Gauss's principle: no other admissible acceleration deviates less from the free one.
    nearest = force + normals.T @ project(np.eye(n), force, normals, np.zeros(n))
    assert np.allclose(acceleration, nearest, rtol=0, atol=1e-9)
    if left.any():
        assert (two_sided_reactions(normals, force)[left] < 1e-9).any()


# ---- friction --------------------------------------------------------------------------------------------------------


def test_particle_slides_stops_and_slides_back():
    # Force 2 sin 3t along the floor, limit mu g = 1: from speed 1/2, u = 1/2 + (2/3)(1 - cos 3t) - t until it vanishes;
    # there the force is 2 sin 3t < -1, so it goes back at once: u = (2/3)(cos 3t* - cos 3t) + (t - t*), until it
    # vanishes again.
    floor = cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=0.1))
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (2 * math.sin(3 * t), -10.0), constraints=[floor])
    motion = cd.events.integrate(system, (0, 0), (0.5, 0), until=3.0)
    first = brentq(lambda t: 0.5 + 2 / 3 * (1 - math.cos(3 * t)) - t, 1.0, 1.8, xtol=1e-14)
    assert 2 * math.sin(3 * first) < -1
    second = brentq(lambda t: 2 / 3 * (math.cos(3 * first) - math.cos(3 * t)) + (t - first), first + 0.3, 2.8)
    turns = [event.time for event in motion.events]
    assert turns[:2] == pytest.approx([first, second], abs=1e-8)


def test_particle_sticks_until_the_force_is_large_enough():
    # Force 2 t, limit mu_s g = 3 until t = 1.5, then mu_d g = 2: u = t^2 - 2 t + c with u(1.5) = 0.
    floor = cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=0.2, static_friction=0.3))
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (2 * t, -10.0), constraints=[floor])
    motion = cd.events.integrate(system, (0, 0), (0, 0), until=2.5)
    (start,) = kinds(motion, "slide")
    assert start.time == pytest.approx(1.5, abs=1e-7)
    assert motion.u[-1, 0] == pytest.approx(2.5**2 - 5 - (1.5**2 - 3), abs=1e-6)
    assert motion.intervals[0].status[0] == STICKING and motion.intervals[1].status[0] == SLIDING
    assert motion.reactions(1.0)[0] == pytest.approx([10.0, 2.0], rel=1e-12)  # the frame of n = e2 has t = -e1


HALF, MASS, INERTIA = 0.5, 1.0, 1 / 12


def stick(friction, angle, restitution=0.0):
    """A stick above the floor, both ends contacts, and its position with end 0 on the floor."""

    def end(sign):
        return cd.Constraint(
            lambda t, q: q[1] + sign * HALF * math.sin(q[2]),
            contact_map=lambda t, q: np.array(
                [[0, 1, sign * HALF * math.cos(q[2])], [1, 0, -sign * HALF * math.sin(q[2])]]
            ),
            law=cd.Law(friction=friction, restitution=restitution),
        )

    system = cd.System(
        inertia=[MASS, MASS, INERTIA], force=lambda t, q, u: (0, -MASS * G, 0), constraints=[end(-1), end(1)]
    )
    return system, (0.0, HALF * math.sin(angle), angle)


def test_falling_stick_slips_where_statics_and_energy_say():
    # The stick of length l turns about its foot, p its angle from the vertical, p0 at the start. With I = m l^2/3,
    # p'^2 = 3 g (cos p0 - cos p) / l, and p'' = 3 g sin p / (2 l). The centre has the acceleration (l/2)(p'' cos p -
    # p'^2 sin p) along the fall and -(l/2)(p'' sin p + p'^2 cos p) upwards, so the foot gives, over m g,
    # T = (3/4) sin p (3 cos p - 2 cos p0) and N = 1 - (3/4) sin^2 p - (3/2) cos p (cos p0 - cos p).
    friction, angle = 0.6, 1.2
    p0 = math.pi / 2 - angle

    def tangential(p):
        return 0.75 * math.sin(p) * (3 * math.cos(p) - 2 * math.cos(p0))

    def normal(p):
        return 1 - 0.75 * math.sin(p) ** 2 - 1.5 * math.cos(p) * (math.cos(p0) - math.cos(p))

    slip = brentq(lambda p: abs(tangential(p)) - friction * normal(p), 0.8, 1.2)
    assert all(abs(tangential(p)) < friction * normal(p) for p in np.linspace(p0, slip - 1e-6, 200))
    system, q = stick(friction, angle)
    motion = cd.events.integrate(system, q, (0, 0, 0), until=0.5)
    start = kinds(motion, "slide")[0]
    assert math.pi / 2 - motion.at(start.time)[0][2] == pytest.approx(slip, abs=1e-7)
    p = math.pi / 2 - motion.at(0.35)[0][2]
    assert motion.reactions(0.35)[0, 0] == pytest.approx(G * normal(p), rel=1e-8)
    assert abs(motion.reactions(0.35)[0, 1]) == pytest.approx(abs(G * tangential(p)), rel=1e-8)


def test_two_redundant_feet_rest():
    # Lying on both ends with friction: four components of reaction for three equations of equilibrium.
    system, _ = stick(0.5, 0.0)
    motion = cd.events.integrate(system, (0, 0, 0), (0, 0, 0), until=0.5)
    assert motion.completed and not motion.events and np.abs(motion.q).max() < 1e-15
    r = motion.reactions(0.2)
    assert r[:, 0] == pytest.approx([G / 2, G / 2], rel=1e-12) and r[:, 1].sum() == pytest.approx(0.0, abs=1e-12)


def test_sliding_stick_stops_by_friction():
    # Both ends slide with speed v: deceleration mu g, stop after v / (mu g) and v^2 / (2 mu g).
    system, _ = stick(0.4, 0.0)
    motion = cd.events.integrate(system, (0, 0, 0), (1.0, 0, 0), until=0.5)
    (stop,) = kinds(motion, "stick")
    assert stop.time == pytest.approx(1 / (0.4 * G), abs=1e-8) and stop.contacts == (0, 1)
    assert motion.q[-1] == pytest.approx((1 / (0.8 * G), 0, 0), abs=1e-8)


def test_painleve_is_told():
    # W_nn = 1/m + x^2/I and W_nt = -x y / I at the foot: sliding away from the lean with friction above
    # (1/m + x^2/I) / (x y / I) there is no right-acceleration. Angle 1 rad: x = 0.27, y = 0.42, critical 1.37.
    system, q = stick(2.0, 1.0)
    with pytest.warns(ConvergenceWarning, match="Painleve"):
        one = cd.events.integrate(system, q, (-1.0, 0, 0), until=0.5)
    with pytest.warns(ConvergenceWarning, match="Painleve"):
        other = cd.events.integrate(stick(2.0, math.pi - 1.0)[0], stick(2.0, math.pi - 1.0)[1], (1.0, 0, 0), until=0.5)
    assert not one.completed and not other.completed
    with pytest.raises(ConvergenceError, match="integrate"):
        cd.events.integrate(system, q, (-1.0, 0, 0), until=0.5, on_failure="raise")
    assert cd.events.integrate(stick(1.0, 1.0)[0], q, (-1.0, 0, 0), until=0.2).completed


# ---- the reference of the schemes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("friction", "end", "order"), [(0.0, 0.4, 2.0), (0.3, 0.3, 1.0), (0.6, 0.5, 1.0)])
def test_contact_dynamics_converges_to_the_reference(friction, end, order):
    # A lasting contact on a flat floor is followed with order 2; where it begins to slip, somewhere inside a step,
    # with order 1.
    system, q = stick(friction, 1.2)
    exact = cd.events.integrate(system, q, (0, 0, 0), until=end)
    steps = end / np.array([250, 500, 1000, 2000])
    errors = [np.abs(cd.integrate(system, q, (0, 0, 0), step=h, until=end).q[-1] - exact.q[-1]).max() for h in steps]
    assert np.mean(orders(errors)) == pytest.approx(order, abs=0.2)


def test_contact_dynamics_converges_through_an_impact():
    # The other end strikes the floor and the stick comes to rest; the instant of the impact in its step scatters single
    # errors, so the order is taken from means over four step lengths.
    system, q = stick(0.6, 1.2)
    exact = cd.events.integrate(system, q, (0, 0, 0), until=0.8)
    assert kinds(exact, "impact") and kinds(exact, "slide") and kinds(exact, "stick")
    counts = (250, 280, 310, 350, 1000, 1120, 1240, 1400)
    errors = [
        np.abs(cd.integrate(system, q, (0, 0, 0), step=0.8 / n, until=0.8).q[-1] - exact.q[-1]).max() for n in counts
    ]
    assert math.log(np.mean(errors[:4]) / np.mean(errors[4:]), 4) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("scheme", ["inel", "midpoint"])
def test_schemes_converge_on_the_dome(scheme):
    system, q = dome()
    exact = cd.events.integrate(system, q, (0, 0), until=0.9)
    errors = [
        np.abs(cd.integrate(system, q, (0, 0), step=0.9 / n, until=0.9, scheme=scheme).q[-1] - exact.q[-1]).max()
        for n in (200, 400, 800, 1600)
    ]
    assert np.mean(orders(errors)) == pytest.approx(1.0, abs=0.25)


# ---- the integrator itself -------------------------------------------------------------------------------------------


def test_short_events_inside_a_step_are_seen():
    # Free flight has no error at all, so the integrator takes its longest steps, 0.025; a post 0.02 wide stands in one.
    post = cd.Constraint(lambda t, q: q[1] - 0.2 * math.exp(-(((q[0] - 0.5125) / 0.008) ** 2)))
    system = cd.System(inertia=[1.0, 1.0], constraints=[post])
    motion = cd.events.integrate(system, (0.0, 0.1), (1.0, 0.0), until=1.0)
    # 0.2 exp(-s^2) = 0.1 at s = -sqrt(ln 2)
    assert kinds(motion, "impact")[0].time == pytest.approx(0.5125 - 0.008 * math.sqrt(math.log(2)), abs=1e-10)


def test_velocities_that_are_not_derivatives():
    # A pendulum given by (cos a, sin a) and the angular velocity; it hits a stop at a = 0 (downwards is a = 0).
    def turn(q, u, h):
        c, s = math.cos(h * u[0]), math.sin(h * u[0])
        return np.array([c * q[0] - s * q[1], s * q[0] + c * q[1]])

    stop = cd.Constraint(lambda t, q: q[1], gradient=lambda t, q: np.array([q[0]]), law=cd.Law(restitution=0.5))
    force = lambda t, q, u: (-G * q[1],)  # noqa: E731
    system = cd.System(inertia=[1.0], force=force, kinematics=turn, constraints=[stop])
    a = 0.8
    motion = cd.events.integrate(system, (math.cos(a), math.sin(a)), (0.0,), until=0.8)
    impact = kinds(motion, "impact")[0]
    after = motion.at(impact.time)[1][0]
    assert after == pytest.approx(0.5 * math.sqrt(2 * G * (1 - math.cos(a))), rel=1e-9)
    assert np.allclose((motion.q**2).sum(axis=1), 1.0, rtol=0, atol=1e-9)


def test_same_bits_twice():
    system, q = stick(0.3, 1.2)
    one, other = (cd.events.integrate(system, q, (0, 0, 0), until=0.2) for _ in range(2))
    assert np.array_equal(one.q, other.q) and one.message == other.message


BALL = cd.System(inertia=[1.0], force=lambda t, q, u: (-G,), constraints=[cd.Constraint(lambda t, q: q[0])])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"until": -1.0}, "later time"),
        ({"until": math.nan}, "finite time"),
        ({"until": 1.0, "tolerance": 0.0}, "tolerance"),
        ({"until": 1.0, "rest_speed": -1.0}, "rest_speed"),
        ({"until": 1.0, "max_step": 0.0}, "max_step"),
        ({"until": 1.0, "samples": 1}, "samples"),
        ({"until": 1.0, "on_failure": "stop"}, "on_failure"),
    ],
)
def test_wrong_input_is_told(options, sentence):
    with pytest.raises(cd.InputError, match=sentence):
        cd.events.integrate(BALL, (1.0,), (0.0,), **options)


def test_three_components_and_wrong_times_are_refused():
    floor = cd.Constraint(lambda t, q: q[2], law=cd.Law(friction=0.3))
    grain = cd.System(inertia=[1.0] * 3, constraints=[floor])
    with pytest.raises(cd.InputError, match=r"1 or 2 components; use integrate"):
        cd.events.integrate(grain, (0, 0, 0), (0, 0, 0), until=1.0)
    motion = cd.events.integrate(BALL, (1.0,), (0.0,), until=0.2)
    with pytest.raises(cd.InputError, match=r"outside the run"):
        motion.at(0.3)


def test_too_many_events_are_told():
    floor = cd.Constraint(lambda t, q: q[0], law=cd.Law(restitution=1.0))
    ball = cd.System(inertia=[1.0], force=lambda t, q, u: (-G,), constraints=[floor])
    with pytest.warns(ConvergenceWarning, match="max_events=5"):
        motion = cd.events.integrate(ball, (0.01,), (0.0,), until=5.0, max_events=5)
    assert not motion.completed and motion.times[-1] < 5.0
    assert events.integrate(ball, (0.01,), (0.0,), until=0.3).completed
