"""Friction in generalised forces (2013): surfaces from Coulomb's law, impacts, selections, several contacts."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.systems.schemes import generalised

positive = st.floats(0.2, 5.0)


def bar(mass=1.0, length=1.0, inertia=1 / 3, angle=-math.pi / 3, friction=1.0, force=(0.0, 0.0)):
    """The bar of section 2 and its place of contact: q = (x, theta), the end A on the ground."""
    height = -length * math.sin(angle)
    ground = cd.Constraint(
        gap=lambda t, q: height + length * math.sin(q[1]) - 1e-12,  # so that rounding does not open it
        contact_map=lambda t, q: [[0, length * math.cos(q[1])], [1, -length * math.sin(q[1])]],
        law=cd.Law(friction=friction),
    )
    return cd.System(inertia=[mass, inertia], force=lambda t, q, u: force, constraints=[ground]), (0.0, angle)


def random_contact(rng, n, *, restitution=0.0, count=1, friction=None):
    """A system of n freedoms with any inertia and ``count`` contacts of two components, all closed at q = 0."""
    factor = rng.normal(size=(n, n))
    constraints = []
    for _ in range(count):
        rows = rng.normal(size=(2, n))
        law = cd.Law(friction=rng.exponential() if friction is None else friction, restitution=restitution)
        constraints.append(
            cd.Constraint(gap=lambda t, q, r=rows: r[0] @ q, contact_map=lambda t, q, r=rows: r, law=law)
        )
    return cd.System(inertia=factor @ factor.T + 0.3 * np.eye(n), constraints=constraints)


# ---- the surface -----------------------------------------------------------------------------------------------------


@given(positive, positive, positive, st.floats(-1.5, -0.05), st.floats(0.0, 4.0))
def test_bar_of_the_paper(mass, length, inertia, angle, friction):
    # Sliding to the left, the ground pulls to the right: the force r (mu, 1) at A has the moment
    # l r (cos a - mu sin a) about the centre. A generalised normal of unit size is a moment M with M^2 / J = 1, so
    # r = sqrt(J) / (l (cos a - mu sin a)); at the velocity 1 / sqrt(m) (kinetic norm 1) it dissipates mu r / sqrt(m).
    # To the right mu changes sign; where cos a + mu sin a <= 0 no such r >= 0 exists: blocked.
    system, q = bar(mass, length, inertia, angle, friction)
    surface = cd.friction_surface(system, q)
    scale = friction * math.sqrt(inertia / mass) / length
    assert surface.coefficient((-1, 0)) == pytest.approx(scale / (math.cos(angle) - friction * math.sin(angle)))
    lever = math.cos(angle) + friction * math.sin(angle)
    assume(abs(lever) > 1e-9)
    expected = scale / lever if lever > 0 or friction == 0 else math.inf
    assert surface.coefficient((3, 0)) == pytest.approx(expected)


@given(st.integers(0, 10**9), st.integers(2, 5))
def test_surface_is_what_coulomb_dissipates(seed, n):
    # Let the system slide with a tangential v and hold the contact with r_n = 1. The Coulomb force (1, -+mu) P_n has
    # the generalised normal part normal . A^-1 G^T P, which must be 1; the power it takes away is -U_t P_t.
    rng = np.random.default_rng(seed)
    system = random_contact(rng, n)
    surface = cd.friction_surface(system, np.zeros(n))
    inverse = np.linalg.inv(surface.inertia)
    assert surface.normal @ inverse @ surface.normal == pytest.approx(1)
    assert np.abs(surface.tangent @ inverse @ surface.normal).max() < 1e-11 * np.abs(surface.tangent).max()
    rows, mu = system.constraints[0].contact_map(0, None), system.constraints[0].law.friction
    v = rng.normal(size=n)
    v -= (surface.normal @ v) * inverse @ surface.normal
    sliding = rows[1] @ v
    direction = np.array([1.0, -mu * np.sign(sliding)])
    unit = surface.normal @ inverse @ (rows.T @ direction)
    assume(abs(unit) > 1e-6)
    expected = mu * abs(sliding) / unit if unit > 0 else math.inf
    assert surface.dissipation(v) == pytest.approx(expected, rel=1e-9)
    moved = v + 3.0 * inverse @ surface.normal
    assert surface.dissipation(moved) == pytest.approx(expected, rel=1e-9)  # the tangential part alone counts


def test_particle_in_space_keeps_coulombs_cone():
    # Generalised forces are the real ones; r_n = F / sqrt(m), so that D = sqrt(m) sqrt((a U_1)^2 + (b U_2)^2), and with
    # |v| = sqrt(m) |U| the coefficient along an axis is a or b.
    wall = cd.Constraint(gap=lambda t, q: q[0], contact_map=lambda t, q: np.eye(3), law=cd.Law(anisotropic=(0.3, 0.7)))
    surface = cd.friction_surface(cd.System(inertia=[2.0] * 3, constraints=[wall]), np.zeros(3))
    assert surface.coefficient((0, 1, 0)) == pytest.approx(0.3)
    assert surface.coefficient((0, 0, -4)) == pytest.approx(0.7)
    assert surface.dissipation((5, 3, 4)) == pytest.approx(math.hypot(0.9, 2.8) * math.sqrt(2))


def test_skew_cone_in_space_against_its_formula():
    # W with W_nt: D = mu |U| sqrt(W_nn) / (W_nn - mu W_nt . U / |U|), infinite where the denominator is not positive.
    w = np.array([[1.0, 0.6, -0.2], [0.6, 2.0, 0.1], [-0.2, 0.1, 1.5]])
    inertia = np.linalg.inv(w)
    wall = cd.Constraint(gap=lambda t, q: q[0], contact_map=lambda t, q: np.eye(3), law=cd.Law(friction=1.8))
    surface = cd.friction_surface(cd.System(inertia=inertia, constraints=[wall]), np.zeros(3))
    for angle in np.linspace(0, 2 * math.pi, 17):
        u = np.array([math.cos(angle), math.sin(angle)])
        pivot = 1 - 1.8 * (w[0, 1:] @ u)
        assert surface.local_dissipation(u) == pytest.approx(1.8 / pivot if pivot > 0 else math.inf)


# ---- the scheme ------------------------------------------------------------------------------------------------------


def test_both_selections_of_the_bar():
    # Force f = 2 on the mass 1.5, no pressure: sliding x = f t^2 / 2 m = 2/3 at t = 1, or rest (section 2).
    system, q = bar(mass=1.5, friction=1.0, force=(2.0, 0.0))
    slides = cd.integrate(system, q, (0, 0), step=0.01, until=1, scheme="generalised")
    blocks = cd.integrate(system, q, (0, 0), step=0.01, until=1, scheme="generalised", grazing="blocks")
    assert slides.q[-1] == pytest.approx([2 / 3, -math.pi / 3], abs=1e-12)
    assert blocks.q[-1] == pytest.approx([0, -math.pi / 3], abs=1e-12)
    # Below the limit nothing is infinite: both slide. To the left nothing is blocked either.
    for friction, force in ((0.5, 2.0), (1.0, -2.0)):
        system, q = bar(mass=1.5, friction=friction, force=(force, 0.0))
        motion = cd.integrate(system, q, (0, 0), step=0.01, until=1, scheme="generalised", grazing="blocks")
        assert motion.q[-1, 0] == pytest.approx(force / 3, abs=1e-12)


def test_blocked_bar_stops_at_once_when_pressed():
    system, q = bar(friction=1.0, force=(0.0, -1.0))
    motion = cd.integrate(system, q, (1.0, 0.0), step=1e-3, until=0.01, scheme="generalised")
    assert np.abs(motion.u[1:]).max() < 1e-14 and (np.diff(motion.ledger.kinetic)[:1] < 0).all()


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(2, 5))
def test_where_nothing_is_blocked_it_is_coulombs_law(seed, n):
    rng = np.random.default_rng(seed)
    system = random_contact(rng, n)
    surface = cd.friction_surface(system, np.zeros(n))
    v = np.linalg.solve(surface.inertia, surface.tangent[0])
    assume(surface.dissipation(v) < np.inf and surface.dissipation(-v) < np.inf)
    state = system.start(np.zeros(n), rng.normal(size=n))
    coulomb, new = cd.schemes.midpoint(system, state, 1e-9), generalised(system, state, 1e-9)
    scale = 1 + np.abs(state.u).max() + np.abs(coulomb.state.impulses).max()
    assert new.state.u == pytest.approx(coulomb.state.u, abs=1e-9 * scale)
    assert new.state.impulses == pytest.approx(coulomb.state.impulses, abs=1e-9 * scale)
    assert (new.state.status == coulomb.state.status).all()


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(2, 5), st.integers(1, 4), st.floats(0, 1))
def test_impacts_never_create_energy(seed, n, count, restitution):
    rng = np.random.default_rng(seed)
    system = random_contact(rng, n, restitution=restitution, count=min(count, n))
    state = system.start(np.zeros(n), rng.normal(size=n))
    # Half a drift of length 1e-9 may open a gap: what is left active is an impact.
    step = generalised(system, state, 1e-9)
    assert step.kinetic_after <= step.kinetic_before * (1 + 1e-12)
    works = step.contact_work.sum()
    assert step.kinetic_after - step.kinetic_before == pytest.approx(works, abs=1e-10 * (1 + step.kinetic_before))
    if (step.gaps <= 0).sum() == 1:  # one contact: Newton's law
        k = int(np.argmin(step.gaps))
        normal = system.constraints[k].contact_map(0, None)[0]
        assert normal @ step.state.u == pytest.approx(-restitution * (normal @ state.u), abs=1e-9)


def test_newton_and_coulomb_side_by_side_do_create_energy():
    # The example that makes the test above worth its name: a bar at 40 degrees, friction 1, restitution 0.9.
    c, s = math.cos(math.radians(40)), -math.sin(math.radians(40))
    floor = cd.Constraint(
        gap=lambda t, q: q[1] + c * q[2],
        contact_map=lambda t, q: [[0, 1, c], [1, 0, -s]],
        law=cd.Law(friction=1.0, restitution=0.9),
    )
    system = cd.System(inertia=[1, 1, 1 / 3], constraints=[floor])
    state = system.start((0, 0, 0), (-0.3, -1, 0))
    usual, new = cd.schemes.midpoint(system, state, 1e-9), generalised(system, state, 1e-9)
    assert usual.kinetic_after > 1.04 * usual.kinetic_before
    assert new.kinetic_after < 0.95 * new.kinetic_before


def test_particle_is_that_of_1986():
    # A particle against a wall, in space: eq. 12.7 of 1986 (scheme wall_friction).
    floor = cd.Constraint(gap=lambda t, q: q[2], law=cd.Law(friction=0.4))
    system = cd.System(inertia=[2, 2, 2], force=lambda t, q, u: (1.0, 0.3, -9.0), constraints=[floor])
    kwargs = {"q": (0, 0, 0.001), "u": (3.0, -1.0, -0.5), "step": 0.01, "until": 2.0}
    new = cd.integrate(system, scheme="generalised", **kwargs)
    old = cd.integrate(system, scheme="wall_friction", **kwargs)
    assert new.q == pytest.approx(old.q, abs=1e-12)


def groove(half, slope, coefficients):
    """A particle between two walls that meet in the x axis, which goes down by ``slope``; unit mass, g = 10."""
    a, b = math.cos(half), math.sin(half)
    walls = [
        cd.Constraint(
            gap=lambda t, q, s=s: s * a * q[1] + b * q[2] - 1e-12,
            contact_map=lambda t, q, s=s: [[0, s * a, b], [1, 0, 0], [0, -s * b, a]],
            law=cd.Law(friction=mu),
        )
        for s, mu in zip((1.0, -1.0), coefficients, strict=True)
    ]
    gravity = (10 * math.sin(slope), 0.0, -10 * math.cos(slope))
    return cd.System(inertia=np.ones(3), force=lambda t, q, u: gravity, constraints=walls)


@pytest.mark.parametrize("half, slope, coefficients", [(0.6, 0.9, (0.3, 0.1)), (0.43, 1.1, (0.5, 0.5))])
def test_corner_is_the_sum_of_its_walls(half, slope, coefficients):
    # Normal forces as without friction: 2 N sin(half) = g cos(slope). Each wall takes mu N along the groove.
    normal = 10 * math.cos(slope) / (2 * math.sin(half))
    acceleration = 10 * math.sin(slope) - sum(coefficients) * normal
    assert acceleration > 0
    system = groove(half, slope, coefficients)
    motion = cd.integrate(system, np.zeros(3), np.zeros(3), step=0.01, until=0.5, scheme="generalised")
    assert motion.u[-1] == pytest.approx([acceleration * 0.5, 0, 0], abs=1e-11)
    forces = motion.impulses[-1] / motion.step
    expected = [[normal, -mu * normal, 0] for mu in coefficients]
    assert forces == pytest.approx(np.array(expected), abs=1e-9)
    assert np.abs(motion.ledger.closure).max() < 1e-13


def test_corner_holds_a_particle_that_pushes_less():
    system = groove(0.6, 0.2, (0.3, 0.3))
    motion = cd.integrate(system, np.zeros(3), np.zeros(3), step=0.01, until=0.2, scheme="generalised")
    assert np.abs(motion.u).max() < 1e-13
    along = motion.impulses[-1, :, 1].sum() / motion.step
    assert along == pytest.approx(-10 * math.sin(0.2), abs=1e-9)


def test_a_driven_floor_carries_a_block():
    # A floor that moves along x with speed 1 under a particle at rest: it is dragged with mu g until it moves along.
    floor = cd.Constraint(
        gap=lambda t, q: q[1], contact_map=lambda t, q: [[0, 1], [1, 0]], boundary=lambda t, q: (0.0, -1.0),
        law=cd.Law(friction=0.5),
    )  # fmt: skip
    system = cd.System(inertia=[3, 3], force=lambda t, q, u: (0, -30.0), constraints=[floor])
    motion = cd.integrate(system, (0, 0), (0, 0), step=1e-3, until=0.4, scheme="generalised")
    assert motion.u[100] == pytest.approx([0.5, 0], abs=1e-12)
    assert motion.u[-1] == pytest.approx([1.0, 0], abs=1e-12)


def skew_step(rng, friction):
    """One impact of a body of three freedoms with coupling W_nt: W, the step, and the velocity before."""
    factor = rng.normal(size=(3, 3))
    w = factor @ factor.T + 0.2 * np.eye(3)
    law = cd.Law(friction=friction) if rng.random() < 0.5 else cd.Law(anisotropic=(friction, 0.5 * friction))
    wall = cd.Constraint(gap=lambda t, q: q[0], contact_map=lambda t, q: np.eye(3), law=law)
    system = cd.System(inertia=np.linalg.inv(w), constraints=[wall])
    u = 2 * rng.normal(size=3)
    u[0] = -abs(u[0])
    surface = cd.friction_surface(system, np.zeros(3))
    return w, u, surface, generalised(system, system.start(np.zeros(3), u), 1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**9), st.sampled_from([0.05, 0.4, 3.0]))
def test_skew_contacts_in_space(seed, friction):
    # c lies in r_n C, r_n = |U_n| / sqrt(W_nn), and minimises c . W' c / 2 + c . U': the gradient V = U' + W' c, the
    # sliding velocity after the impact, has V . (c' - c) >= 0 for all c' of the set: maximal dissipation.
    rng = np.random.default_rng(seed)
    w, u, surface, step = skew_step(rng, friction)
    c, r_n = step.state.impulses[0, 1:], -u[0] / math.sqrt(w[0, 0])
    angles = np.linspace(0, 2 * math.pi, 2001)
    e = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    bounds = r_n * surface.local_dissipation(e)
    scale = 1 + np.abs(c).max() + np.abs(u).max()
    assert (e @ c + bounds).min() >= -1e-10 * scale
    v = surface.tangent @ step.state.u
    for _ in range(20):
        direction = rng.normal(size=2)
        against = -e @ direction
        reach = (bounds[against > 1e-9] / against[against > 1e-9]).min()  # to the edge of the set
        assert v @ (min(reach, 1e6) * direction - c) >= -1e-8 * scale**2 * (1 + min(reach, 1e6))
    assert step.kinetic_after <= step.kinetic_before
    assert step.state.u[0] == pytest.approx(0, abs=1e-10 * scale)


def test_skew_contact_keeps_to_its_dissipation():
    # Small friction: D is convex, and a contact that still slides loses exactly r_n D(V).
    rng = np.random.default_rng(5)
    for _ in range(20):
        w, u, surface, step = skew_step(rng, 0.05)
        v, c = surface.tangent @ step.state.u, step.state.impulses[0, 1:]
        lost = -u[0] / math.sqrt(w[0, 0]) * surface.local_dissipation(v)
        assert -(c @ v) == pytest.approx(lost, rel=1e-9, abs=1e-12)


# ---- wrong input -----------------------------------------------------------------------------------------------------


def test_wrong_input():
    system, q = bar()
    with pytest.raises(cd.InputError, match="give a System"):
        cd.friction_surface(3, q)
    with pytest.raises(cd.InputError, match=r"constraint=1; the system has 1, numbered from 0"):
        cd.friction_surface(system, q, constraint=1)
    with pytest.raises(cd.InputError, match="forbidden region"):
        cd.friction_surface(system, (0.0, -1.5))
    surface = cd.friction_surface(system, q)
    with pytest.raises(cd.InputError, match="2 freedoms"):
        surface.dissipation((1, 2, 3))
    with pytest.raises(cd.InputError, match="no tangential part"):
        surface.coefficient((0, 1))
    with pytest.raises(cd.InputError, match="choose 'slides'"):
        cd.integrate(system, q, (0, 0), step=0.1, until=1, scheme="generalised", grazing="both")
    bouncing = cd.Constraint(lambda t, q: q[0], law=cd.Law(friction=0.1, tangential_restitution=0.5))
    with pytest.raises(cd.InputError, match="tangential restitution"):
        cd.integrate(cd.System(inertia=[1, 1], constraints=[bouncing]), (0, 0), (-1, 0), step=1, until=1,
                     scheme="generalised")  # fmt: skip
