"""The schemes among themselves and against naive twins; symmetries: reversal, rotation, change of frame."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contactdynamics as cd
import naive
from contactdynamics.problem.frames import frame

FRICTION = ["wall_friction", "planar_friction", "midpoint"]


# ---- local frames ----------------------------------------------------------------------------------------------------


@given(st.tuples(*[st.floats(-1, 1)] * 3))
def test_frame_is_orthonormal_and_right_handed(normal):
    n = np.array(normal)
    if np.linalg.norm(n) < 1e-3:
        return
    axes = frame(n)
    assert np.allclose(axes @ axes.T, np.eye(3), rtol=0, atol=1e-14)
    assert np.linalg.det(axes) == pytest.approx(1.0, abs=1e-14)
    assert np.allclose(axes[0], n / np.linalg.norm(n), rtol=0, atol=1e-15)
    flat = frame(n[:2]) if np.linalg.norm(n[:2]) > 1e-3 else np.eye(2)
    assert np.allclose(flat @ flat.T, np.eye(2), rtol=0, atol=1e-14) and np.linalg.det(flat) > 0


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (1e-9, 0, -1), (1, 0, 0), (0, -1, 0)])
def test_frame_at_the_poles(normal):
    axes = frame(np.array(normal, dtype=float))
    assert np.allclose(axes @ axes.T, np.eye(3), rtol=0, atol=1e-14)
    assert np.linalg.det(axes) == pytest.approx(1.0, abs=1e-14)


# ---- naive twins -----------------------------------------------------------------------------------------------------


def random_system(rng, d, restitution):
    """Four freedoms, inertia that depends on q, force with all arguments, three contacts that all move."""
    n, base = 4, rng.normal(size=(4, 4))
    shape = rng.normal(size=n)
    constraints = []
    for _ in range(3):
        row, tangents, drift = rng.normal(size=n), rng.normal(size=(d - 1, n)), 0.1 * rng.normal(size=d)
        law = cd.Law(friction=0.3, restitution=restitution, tangential_restitution=restitution / 2)
        constraints.append(
            cd.Constraint(
                lambda t, q, a=row, w=drift: a @ q + w[0] * (t - 0.3),
                contact_map=lambda t, q, a=row, b=tangents: np.vstack([a, b]),
                boundary=lambda t, q, w=drift: w,
                law=law,
            )
        )
    return cd.System(
        inertia=lambda t, q: base @ base.T + (3 + math.sin(shape @ q)) * np.eye(n),
        force=lambda t, q, u: np.cos(t) * shape - q - 0.1 * u,
        constraints=constraints,
    )


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_midpoint_agrees_with_its_twin(rng, d, restitution):
    touched = 0
    for _ in range(6 if d == 2 else 2):
        system, h = random_system(rng, d, restitution), 0.05
        q, u = np.zeros(4), rng.normal(size=4)
        state = system.start(q, u, time=0.3)
        for _ in range(3):
            step = cd.schemes.midpoint(system, state, h)
            q_f, u_f, impulses = naive.midpoint_step(system, state.q, state.u, state.time, h)
            assert np.allclose(step.state.u, u_f, rtol=0, atol=1e-8)
            assert np.allclose(step.state.q, q_f, rtol=0, atol=1e-9)
            active = step.gaps <= 0
            if step.report.contacts:
                assert np.allclose(
                    step.state.impulses[active], impulses, rtol=0, atol=1e-7 * (1 + np.abs(impulses).max())
                )
            touched += int((step.state.impulses[:, 0] > 0).sum())
            state = step.state
    assert touched >= 3


def test_inel_agrees_with_quadratic_programming(rng):
    for _ in range(10):
        maps = rng.normal(size=(5, 3))
        system = cd.System(
            inertia=np.diag([1.0, 2.0, 3.0]) + 0.4,
            force=lambda t, q, u: -3 * np.ones(3),
            constraints=[cd.Constraint(lambda t, q, a=a: a @ q) for a in maps],
        )
        state = system.start(np.zeros(3), np.zeros(3))
        step = cd.schemes.inel(system, state, 0.1)
        inertia = system.constant_inertia[0]
        free = 0.1 * np.linalg.solve(inertia, -3 * np.ones(3))
        try:
            expected = naive.nearest_velocity(inertia, free, maps, np.zeros(5))
        except ValueError:  # quadprog and cones without interior
            continue
        assert np.allclose(step.state.u, expected, rtol=0, atol=1e-9)


def test_elast_has_the_three_expressions_of_the_report():
    # 1986, eq. 7.8 at an inclined wall: u_f = proj_T u' - proj_G u = refl_T u' + h proj_G Q = refl_T u + h proj_T Q.
    g, q, u = np.array([0.6, -0.8]), np.array([-0.1, -2.0]), np.array([1.0, -3.0])
    h = 0.05
    wall = cd.Constraint(lambda t, x: -(x @ g))
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, x, v: q, constraints=[wall])
    step = cd.schemes.elast(system, system.start((0, 0), u), h)
    along, across = np.outer(g, g), np.eye(2) - np.outer(g, g)
    free = u + h * q
    assert free @ g > 0
    for expected in (
        across @ free - along @ u,
        free - 2 * along @ free + h * along @ q,
        u - 2 * along @ u + h * across @ q,
    ):
        assert np.allclose(step.state.u, expected, rtol=0, atol=1e-14)


def test_midpoint_without_friction_is_inel():
    # 2004, section 3.3, is INEL with A_V = 0.
    walls = [cd.Constraint(lambda t, q, a=a: a - q @ q) for a in (1.0, 1.1)]
    walls.append(cd.Constraint(lambda t, q: q[1] + 0.5 + 0.1 * math.sin(3 * t)))
    system = cd.System(inertia=[1.0, 2.0], force=lambda t, q, u: (0.5, -3.0), constraints=walls)
    runs = [
        cd.integrate(system, q=(0.0, 0.2), u=(1.0, 0.0), step=0.01, until=2.0, scheme=scheme)
        for scheme in ("midpoint", "inel")
    ]
    assert runs[0].active.sum() > 50
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9)


def test_anticipation_moves_the_point_where_contact_is_decided():
    # At speed -1 and h = 0.1 from height 0.08: the midpoint is at 0.03 > 0, the point anticipated by A_V = 1/2 at
    # -0.02 <= 0: INEL stops the particle one step earlier. ELAST decides at the midpoint whatever A_V is.
    system = cd.System(inertia=[1.0], constraints=[cd.Constraint(lambda t, q: q[0])])
    state = system.start((0.08,), (-1.0,))
    assert cd.schemes.inel(system, state, 0.1).state.u[0] == -1.0
    assert cd.schemes.inel(system, state, 0.1, anticipation=0.5).state.u[0] == 0.0
    assert cd.schemes.elast(system, state, 0.1, anticipation=0.5).state.u[0] == -1.0


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.9])
def test_schemes_with_friction_agree_on_one_contact(gamma):
    # A particle thrown into a rough bowl: impact, sliding, swinging, rest; the three formulas are the same law.
    bowl = cd.Constraint(lambda t, q: 1 - math.hypot(*q), law=cd.Law(friction=gamma))
    system = cd.System(inertia=[2.0, 2.0], force=lambda t, q, u: (0.0, -20.0), constraints=[bowl])
    runs = [
        cd.integrate(system, q=(-0.8, 0.1), u=(1.0, 0.0), step=2e-3, until=2.0, scheme=scheme) for scheme in FRICTION
    ]
    assert runs[0].active.mean() > 0.5
    for other in runs[1:]:
        assert np.allclose(other.q, runs[0].q, rtol=0, atol=1e-11)
        assert np.allclose(other.impulses, runs[0].impulses, rtol=0, atol=1e-11)
        assert (other.status == runs[0].status).mean() > 0.99


def test_schemes_with_friction_agree_in_space():
    sphere = cd.Constraint(lambda t, q: 1 - math.sqrt(q @ q), law=cd.Law(friction=0.3))
    system = cd.System(inertia=np.ones(3), force=lambda t, q, u: (0.0, 0.0, -10.0), constraints=[sphere])
    runs = [
        cd.integrate(system, q=(-0.8, 0.1, 0.1), u=(1.0, 1.0, 0.0), step=2e-3, until=1.0, scheme=scheme)
        for scheme in ("wall_friction", "midpoint")
    ]
    assert runs[0].active.mean() > 0.5
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-11)


# ---- symmetries ------------------------------------------------------------------------------------------------------


def inside_circle():
    return cd.Constraint(lambda t, q: 1 - math.hypot(*q), gradient=lambda t, q: -q / math.hypot(*q))


def test_elast_runs_backwards():
    # u_f = refl_T u + h proj_T Q at the same q_m both ways, so reversed velocities lead back: pendulum in revolution
    # (contact persists) and a billiard with isolated rebounds. What is left is rounding, multiplied by the chaos.
    for start, until in (({"q": (0, -1), "u": (3.0, 0)}, 2.0), ({"q": (0.3, 0.1), "u": (1.0, 2.0)}, 3.0)):
        system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -1.0), constraints=[inside_circle()])
        there = cd.integrate(system, **start, step=1 / 128, until=until, scheme="elast")
        back = cd.integrate(system, q=there.q[-1], u=-there.u[-1], step=1 / 128, until=until, scheme="elast")
        assert there.active.sum() > 3
        assert np.allclose(back.q[::-1], there.q, rtol=0, atol=1e-9)
        assert np.allclose(-back.u[::-1], there.u, rtol=0, atol=1e-9)


def test_inel_does_not_run_backwards():
    system = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -1.0), constraints=[inside_circle()])
    there = cd.integrate(system, q=(0.3, 0.1), u=(1.0, 2.0), step=1 / 128, until=2.0, scheme="inel")
    back = cd.integrate(system, q=there.q[-1], u=-there.u[-1], step=1 / 128, until=2.0, scheme="inel")
    assert np.abs(back.q[-1] - there.q[0]).max() > 0.1


def rotation(n, rng):
    r, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return r * np.linalg.det(r) if n == 3 else r @ np.diag([1.0, np.linalg.det(r)])


@pytest.mark.parametrize("n, scheme", [(2, s) for s in [*FRICTION, "inel", "elast"]] + [(3, "midpoint"), (3, "inel")])
def test_a_rotated_problem_gives_the_rotated_motion(rng, n, scheme):
    # Also for friction in space, although the tangents of `frame` do not rotate with the problem: the law is isotropic.
    r = rotation(n, rng)
    assert np.allclose(r @ r.T, np.eye(n)) and np.linalg.det(r) == pytest.approx(1.0)
    weight, gamma = np.array([1.0, 0.5, -10.0])[-n:], (0.3 if scheme in FRICTION else 0.0)

    def build(r):
        bowl = cd.Constraint(lambda t, q: 1 - math.sqrt(q @ q) + 0.1 * (r.T @ q)[0], law=cd.Law(friction=gamma))
        return cd.System(inertia=np.full(n, 1.5), force=lambda t, q, u: 1.5 * r @ weight, constraints=[bowl])

    q, u = np.array([0.1, -0.2, 0.3])[:n], np.array([1.0, -0.5, 0.7])[:n]
    straight = cd.integrate(build(np.eye(n)), q=q, u=u, step=2e-3, until=1.0, scheme=scheme)
    turned = cd.integrate(build(r), q=r @ q, u=r @ u, step=2e-3, until=1.0, scheme=scheme)
    assert straight.active.any()
    assert np.allclose(turned.q, straight.q @ r.T, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scheme", [*FRICTION, "inel", "elast"])
def test_galilean_frame(scheme):
    # Seen from a frame that moves with -V everything moves with V: the bowl too (w = -G V). The relative motion is
    # the same: the boundary's term does its work.
    V = np.array([0.7, -0.4])
    law = cd.Law(friction=0.3 if scheme in FRICTION else 0.0)

    def build(V):
        def rows(t, q):
            x = q - V * t
            return frame(-x)

        bowl = cd.Constraint(
            lambda t, q: 1 - math.hypot(*(q - V * t)),
            contact_map=rows,
            boundary=lambda t, q: -rows(t, q) @ V,
            law=law,
        )
        return cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0.0, -10.0), constraints=[bowl])

    q, u = np.array([-0.8, 0.1]), np.array([1.0, 0.0])
    rest = cd.integrate(build(0 * V), q=q, u=u, step=2e-3, until=1.5, scheme=scheme)
    moving = cd.integrate(build(V), q=q, u=u + V, step=2e-3, until=1.5, scheme=scheme)
    assert rest.active.sum() >= 2
    assert np.allclose(moving.q - moving.times[:, None] * V, rest.q, rtol=0, atol=1e-9)
    assert np.allclose(moving.impulses, rest.impulses, rtol=0, atol=1e-9)
    assert np.allclose(moving.ledger.contact_work, rest.ledger.contact_work, rtol=0, atol=1e-9)


def test_permuted_constraints_give_the_same_motion():
    # Two rough walls; in the corner the impulses are not unique, but the motion is: the order of Gauss-Seidel does not
    # matter.
    def build(order):
        walls = [
            cd.Constraint(lambda t, q: q[1], law=cd.Law(friction=0.3)),
            cd.Constraint(lambda t, q: q[0] + 0.3 * q[1] + 0.2, law=cd.Law(friction=0.5)),
        ]
        return cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (-6.0, -10.0), constraints=[walls[i] for i in order])

    runs = [cd.integrate(build(o), q=(0.5, 0.5), u=(0.0, 0.0), step=1e-3, until=1.0) for o in ((0, 1), (1, 0))]
    assert runs[0].active.any(axis=0).all()
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9)
