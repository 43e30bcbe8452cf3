"""The energy ledger closes in every step, and passive contacts do not create energy."""

import math

import numpy as np
import pytest
from test_physics import outside_circle, slide_off

import contactdynamics as cd
from contactdynamics.systems.schemes import SCHEMES

EPS = np.finfo(float).eps


def arm(law=None, driven=False, friction=False):
    """A double pendulum (angles of two unit rods with unit point masses): A depends on q; its tip meets a wall.

    A = [[2, cos d], [cos d, 1]], d = q1 - q0; Lagrange's terms (sin d u1^2, -sin d u0^2) belong into the force
    (2004, eq. 21). Tip: x = sin q0 + sin q1, y = -cos q0 - cos q1; wall at x = 1, moving when ``driven``.
    """

    def inertia(t, q):
        c = math.cos(q[1] - q[0])
        return np.array([[2.0, c], [c, 1.0]])

    def force(t, q, u):
        s = math.sin(q[1] - q[0])
        return np.array([s * u[1] ** 2 - 20 * math.sin(q[0]), -s * u[0] ** 2 - 10 * math.sin(q[1])])

    def wall(t):
        return 1.0 - (0.1 * math.sin(7 * t) if driven else 0.0)

    rows = (lambda t, q: [-np.cos(q), np.sin(q)]) if friction else None
    tip = cd.Constraint(lambda t, q: wall(t) - np.sin(q).sum(), contact_map=rows, law=law)
    return cd.System(
        inertia=inertia,
        force=force,
        constraints=[tip],
        potential=lambda t, q: -20 * math.cos(q[0]) - 10 * math.cos(q[1]),
    )


def check_ledger(motion):
    """kinetic[i+1] - kinetic[i] is the sum of the works, to rounding of the terms."""
    ledger = motion.ledger
    works = (
        ledger.force_work
        + ledger.contact_work.sum(axis=(1, 2))
        + ledger.boundary_work.sum(axis=1)
        + ledger.inertia_work
    )
    size = (
        ledger.kinetic.max() + np.abs(ledger.contact_work).sum(axis=(1, 2)) + np.abs(ledger.boundary_work).sum(axis=1)
    )
    assert (np.abs(np.diff(ledger.kinetic) - works) <= 20 * EPS * size).all()
    assert (np.abs(ledger.closure) <= 20 * EPS * size).all()
    assert np.abs(ledger.closure + works - np.diff(ledger.kinetic)).max() <= 20 * EPS * size.max()


@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_ledger_closes(scheme, driven):
    friction = "friction" in scheme or scheme == "midpoint"
    law = cd.Law(friction=0.3 if friction else 0.0, restitution=0.4 if scheme == "midpoint" else 0.0)
    if scheme.startswith("wall"):  # a particle: isotropic inertia
        wall = cd.Constraint(lambda t, q: q[1] - 0.1 * math.sin(7 * t) * driven + 0.2 * q[0], law=law)
        system = cd.System(inertia=[2.0, 2.0], force=lambda t, q, u: (0.3, -20.0), constraints=[wall])
        start = {"q": (0.0, 0.3), "u": (1.0, 0.0)}
    else:
        system = arm(law, driven, friction)
        start = {"q": (0.3, -0.2), "u": (1.0, 3.0)}
    motion = cd.integrate(system, **start, step=2e-3, until=3.0, scheme=scheme)
    assert motion.active.any() and motion.impulses[..., 0].max() > 0
    assert motion.ledger.boundary_work.any() == driven
    check_ledger(motion)


def test_ledger_of_several_contacts_with_all_laws():
    # Three freedoms, three walls: sliding, sticking, restitution and a conveyor at once.
    rows = np.eye(3)
    walls = [
        cd.Constraint(
            lambda t, q, i=i: q[i] + 0.2 * (i == 2) * math.cos(5 * t),
            contact_map=lambda t, q, i=i: rows[[i, (i + 1) % 3, (i + 2) % 3]],
            boundary=lambda t, q, i=i: ((-math.sin(5 * t) if i == 2 else 0.0), 0.3, -0.2),
            law=cd.Law(friction=0.2 + 0.2 * i, restitution=0.3 * i, tangential_restitution=0.1 * i),
        )
        for i in range(3)
    ]
    system = cd.System(
        inertia=[[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 3.0]],
        force=lambda t, q, u: (-5.0, -4.0, -6.0) - 0.1 * u,
        constraints=walls,
    )
    motion = cd.integrate(system, q=(0.3, 0.4, 0.5), u=(0.0, 1.0, 0.0), step=1e-3, until=2.0)
    assert motion.active.any(axis=0).all()
    check_ledger(motion)


def test_terms_of_the_ledger():
    # A particle of mass 2 on a belt of speed 3 (friction 0.5, g = 10), h = 0.01, from rest: P_n = 2 * 10 * 0.01 = 0.2,
    # P_t = 0.1 along the belt, u_f = 0.05. Works: friction P_t (U_i + U_f) / 2 = 0.1 * (-3 - 2.95) / 2 = -0.2975, belt
    # 0.1 * 3 = 0.3, together the kinetic energy 2 * 0.05^2 / 2 = 0.0025.
    belt = cd.Constraint(
        lambda t, q: q[1],
        contact_map=lambda t, q: [[0.0, 1.0], [1.0, 0.0]],
        boundary=lambda t, q: (0.0, -3.0),
        law=cd.Law(friction=0.5),
    )
    system = cd.System(inertia=[2.0, 2.0], force=lambda t, q, u: (0.0, -20.0), constraints=[belt])
    step = cd.schemes.midpoint(system, system.start((0, 0), (0, 0)), 0.01)
    assert np.allclose(step.state.impulses, [[0.2, 0.1]], rtol=0, atol=1e-15)
    assert step.contact_work == pytest.approx(np.array([[0.0, -0.2975]]), abs=1e-14)
    assert step.boundary_work == pytest.approx(np.array([0.3]), abs=1e-14)
    assert (step.kinetic_before, step.force_work) == (0.0, 0.0)
    assert step.kinetic_after == pytest.approx(0.0025, abs=1e-15)


def test_work_of_the_inertia():
    # Polar coordinates of a free particle: A = diag(1, r^2) changes from step to step; what force and change of A do
    # together is nothing, up to order h.
    system = cd.System(
        inertia=lambda t, q: np.diag([1.0, q[0] ** 2]),
        force=lambda t, q, u: (q[0] * u[1] ** 2, -2 * q[0] * u[0] * u[1]),
    )
    errors = []
    for n in (100, 200, 400):
        motion = cd.integrate(system, q=(1.0, 0.0), u=(0.0, 1.0), step=1 / n, until=1.0)
        check_ledger(motion)
        errors.append(motion.ledger.force_work.sum() + motion.ledger.inertia_work.sum())
        assert abs(motion.ledger.inertia_work.sum()) > 0.1
    assert np.allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1.0, atol=0.1)


# ---- passive contacts ------------------------------------------------------------------------------------------------


def random_system(rng, n, m, d, friction):
    """n freedoms, no force, m curved fixed obstacles with random maps whose first row is the gap's gradient."""
    factor = rng.normal(size=(n, n))
    constraints = []
    for _ in range(m):
        direction, tangents, curvature = rng.normal(size=n), rng.normal(size=(d - 1, n)), rng.normal()

        def gap(t, q, a=direction, k=curvature):
            return a @ q + k * (q @ q) + 0.5

        def rows(t, q, a=direction, k=curvature, b=tangents):
            return np.vstack([a + 2 * k * q, b])

        constraints.append(cd.Constraint(gap, contact_map=rows, law=cd.Law(friction=friction)))
    return cd.System(inertia=factor @ factor.T + np.eye(n), constraints=constraints)


@pytest.mark.parametrize("d, friction", [(1, 0.0), (2, 0.3), (3, 0.5)])
def test_energy_never_grows_without_forces(rng, d, friction):
    # E_f - E_i = U_f . P - P . W P / 2 <= 0: dissipation of the law, and Carnot's loss (1986, eq. 8.6).
    loss = 0.0
    for _ in range(8):
        system = random_system(rng, n=5, m=4, d=d, friction=friction)
        motion = cd.integrate(
            system, q=np.zeros(5), u=2 * rng.normal(size=5), step=0.02, until=2.0, on_failure="ignore"
        )
        solved = motion.residuals < 1e-9
        assert solved.mean() > 0.9
        assert np.diff(motion.ledger.kinetic)[solved].max() <= 1e-12 * motion.ledger.kinetic[0]
        loss = max(loss, 1 - motion.ledger.kinetic[-1] / motion.ledger.kinetic[0])
    assert loss > 0.1  # there were contacts


def test_inelastic_shock_loses_what_carnot_says(rng):
    # 1986, eq. 8.6: |u-|^2 - |u+|^2 = |u- - u+|^2 in the kinetic metric, for each step without force.
    for _ in range(5):
        system = random_system(rng, n=4, m=5, d=1, friction=0.0)
        motion = cd.integrate(system, q=np.zeros(4), u=2 * rng.normal(size=4), step=0.02, until=2.0, scheme="inel")
        jumps = np.diff(motion.u, axis=0)
        lost = 0.5 * np.einsum("ki,ij,kj->k", jumps, system.constant_inertia[0], jumps)
        assert np.allclose(-np.diff(motion.ledger.kinetic), lost, rtol=0, atol=1e-12)
        assert lost.sum() > 0


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_energy_never_grows_on_a_plane(friction):
    # Weight and a fixed plane: kinetic + potential falls at the impact and by friction only.
    floor = cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=friction))
    system = cd.System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (0.0, -10.0),
        constraints=[floor],
        potential=lambda t, q: 10 * q[1],
    )
    motion = cd.integrate(system, q=(0.0, 0.5), u=(2.0, 1.0), step=2e-3, until=1.5)
    total = motion.ledger.kinetic + motion.ledger.potential
    assert np.diff(total).max() < 1e-13
    # After the impact only the motion along x is left: at most 2^2 / 2.
    assert total[-1] <= 2.0 + 1e-12


def test_energy_on_a_convex_obstacle_is_of_first_order():
    # A force presses a particle with N on a convex obstacle: the step follows the tangent, U_i . n = h u^2 / R > 0 at
    # the next contact, and the ledger shows the work N h U_i / 2: in all a gain of (h / 2) int N u^2 / R dt for
    # A_V = 1/2, where every step touches. (The report, section 10, Remark 3, has the loss on a concave one.)
    for steps in (400, 800, 1600):
        motion = slide_off("inel", steps, until=1.0, start=0.3, anticipation=0.5)
        total = motion.ledger.kinetic + motion.ledger.potential
        speed = 2 * motion.ledger.kinetic[:-1]
        gain = 0.5 * motion.step * (motion.impulses[:, 0, 0] * speed).sum()
        assert total[-1] - total[0] == pytest.approx(gain, rel=0.1)
        assert total[-1] - total[0] < 0.06 * motion.step


def test_elastic_restitution_and_elast_conserve_the_same():
    # On a fixed obstacle and with a constant force ELAST keeps kinetic + potential energy in every step, also when
    # several contacts close together.
    walls = [outside_circle(0.5), cd.Constraint(lambda t, q: q[0] + 1), cd.Constraint(lambda t, q: q[1] + 1)]
    system = cd.System(
        inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -1.0), constraints=walls, potential=lambda t, q: q[1]
    )
    motion = cd.integrate(system, q=(-0.9, 0.9), u=(-0.5, -1.0), step=0.01, until=20.0, scheme="elast")
    assert motion.active.any(axis=0).all()
    total = motion.ledger.kinetic + motion.ledger.potential
    assert np.abs(total - total[0]).max() < 1e-12


# ---- spin ------------------------------------------------------------------------------------------------------------


def rotate(q, v):
    """The vector v rotated by the unit quaternion q (scalar first)."""
    w, x = q[0], q[1:]
    return v + 2 * np.cross(x, np.cross(x, v) + w * v)


def spin_kinematics(q, u, h):
    """Unit quaternion after a time h at constant spin u in the body's own axes: q exp(h u / 2)."""
    speed = np.linalg.norm(u)
    angle = 0.5 * h * speed
    factor = 0.5 * h if angle < 1e-8 else math.sin(angle) / speed
    w, v, a, b = q[0], q[1:], math.cos(angle), factor * u
    return np.concatenate([[w * a - v @ b], w * b + a * v + np.cross(v, b)])


def free_body(torque):
    """Energy drift and angular momentum drift of a free body with principal moments 1, 2, 3, for several steps."""
    moments, spin = np.array([1.0, 2.0, 3.0]), np.array([0.3, 2.0, 0.1])
    drifts = []
    for n in (200, 400, 800):
        h = 4.0 / n
        system = cd.System(inertia=moments, force=torque(moments, h), kinematics=spin_kinematics)
        motion = cd.integrate(system, q=(1.0, 0, 0, 0), u=spin, step=h, until=4.0)
        assert np.abs(np.linalg.norm(motion.q, axis=1) - 1).max() < 1e-13
        momentum = np.array([rotate(q, moments * u) for q, u in zip(motion.q, motion.u, strict=True)])
        energy = motion.ledger.kinetic[-1] - motion.ledger.kinetic[0]
        drifts.append((energy, np.linalg.norm(momentum[-1] - momentum[0])))
        check_ledger(motion)
    return np.abs(np.array(drifts))


def test_spin_with_the_gyroscopic_term_of_the_paper():
    # 2004, section 6.1: F(t_m, q_m, u_i) takes the velocity at the start: -u x (J u) is then of first order; each step
    # gains the energy h^2 F . A^-1 F / 2.
    drifts = free_body(lambda moments, h: lambda t, q, u: -np.cross(u, moments * u))
    assert np.allclose(np.log2(drifts[:-1] / drifts[1:]), 1.0, atol=0.15)


def test_spin_with_the_gyroscopic_term_at_the_middle():
    # The user's force may predict the spin at the middle of the step: then energy and angular momentum are kept to
    # second order.
    def torque(moments, h):
        def gyroscopic(u):
            return -np.cross(u, moments * u)

        return lambda t, q, u: gyroscopic(u + 0.5 * h * gyroscopic(u) / moments)

    drifts = free_body(torque)
    assert (np.log2(drifts[:-1] / drifts[1:]) > 1.9).all()
    assert drifts[-1].max() < 1e-4
