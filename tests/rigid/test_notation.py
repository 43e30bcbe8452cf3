"""One test per sentence of docs/theory/notation.md."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.problem.laws import solve_three
from contactdynamics.state import SEPARATING


def two_balls(gap=-0.01, speed=-1.0, **law):
    """Ball 0 at the origin, ball 1 above it along z at the distance 2 + gap, with the relative speed along z."""
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("m", density=3 / (4 * np.pi))  # unit masses
    scene.contact("m", "m", **({"friction": 0.5} | law))
    scene.add(cd.Sphere(1.0), material="m")
    scene.add(cd.Sphere(1.0), material="m", position=(0, 0, 2 + gap), velocity=(0.2, 0, speed))
    return cd.Simulation(scene, time_step=1e-6)


def test_the_normal_points_from_a_to_b():
    sim = two_balls()
    sim.step()
    assert sim.contacts.bodies.tolist() == [[0, 1]]
    assert sim.contacts.normal[0] == pytest.approx([0, 0, 1], abs=1e-6)


def test_the_gap_is_negative_when_bodies_overlap():
    sim = two_balls(gap=-0.01)
    sim.step()
    assert sim.contacts.gap[0] == pytest.approx(-0.01, abs=1e-5)
    sim = two_balls(gap=0.01)
    sim.step()
    assert len(sim.contacts.gap) == 0


def test_velocity_components_are_n_t1_t2_and_positive_normal_velocity_separates():
    # A system whose contact map is written by hand: the particle moves away from the wall y = 0, so U_n = u_y > 0, and
    # along it with U_t = u_x. Nothing is exchanged.
    wall = cd.Constraint(gap=lambda t, q: q[1], contact_map=lambda t, q: [[0, 1], [1, 0]], law=cd.Law(friction=1.0))
    system = cd.System(inertia=[1, 1], constraints=[wall])
    motion = cd.integrate(system, q=(0, 0), u=(3, 2), step=1e-3, until=1e-2)
    assert not motion.impulses.any() and motion.gaps[-1, 0] > 0
    # The other way it is pushed: component 0 of the impulse is the normal one.
    motion = cd.integrate(system, q=(0, 0), u=(3, -2), step=1e-3, until=1e-3)
    assert motion.impulses[0, 0] == pytest.approx([2, -2])  # normal 2, tangential -gamma P_n


def test_the_impulse_acts_on_b_and_its_opposite_on_a():
    sim = two_balls()
    before = sim.velocities
    sim.step()
    normal, *tangential = sim.contacts.impulse[0]
    change = sim.velocities - before
    frame = sim.contacts.frame[0]
    assert change[1] == pytest.approx(frame.T @ [normal, *tangential], rel=1e-9)  # unit mass
    assert change[0] == pytest.approx(-change[1], rel=1e-12)
    assert normal > 0  # pushes


def test_u_is_g_u_plus_w_and_the_generalised_impulse_is_g_transposed_p():
    # A belt running at speed 1 under a particle at rest: U = G u + w with w_t = -1; the particle is carried along.
    belt = cd.Constraint(
        gap=lambda t, q: q[1], contact_map=lambda t, q: [[0, 1], [1, 0]], boundary=lambda t, q: (0, -1.0),
        law=cd.Law(friction=0.5),
    )  # fmt: skip
    system = cd.System(inertia=[2, 2], force=lambda t, q, u: (0, -20.0), constraints=[belt])
    motion = cd.integrate(system, q=(0, 0), u=(0, 0), step=1e-2, until=1.0)
    assert motion.u[-1] == pytest.approx([1, 0], abs=1e-12)
    g = np.array([[0, 1], [1, 0.0]])
    change = 2 * np.diff(motion.u, axis=0)
    assert change == pytest.approx(motion.impulses[:, 0] @ g + [0, -0.2], abs=1e-12)


def test_w_is_the_delassus_operator():
    # A unit impulse along t on a sphere at its contact point changes U_t by W_tt = 1/m + r^2/I = 3.5/m.
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("m", density=3 / (4 * np.pi))
    scene.contact("m", "m", friction=0.5, tangential_restitution=0.1)  # a full contact, with its block of W
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Sphere(1.0), material="m", position=(0, 0, 1), velocity=(0.1, 0, -1))
    sim = cd.Simulation(scene, time_step=1e-6)
    sim.step()
    assert np.diag(sim.contact_set.equations[-1].active.delassus[0])[:3] == pytest.approx([1, 3.5, 3.5], rel=1e-5)


def test_gamma_rho_tau():
    # rho: U_n^+ = -rho U_n^-; tau: U_t^+ = -tau U_t^- where friction is large enough.
    sim = two_balls(gap=-1e-7, friction=10.0, restitution=0.5, tangential_restitution=0.25)
    sim.step()
    velocity = sim.velocities
    assert velocity[1, 2] - velocity[0, 2] == pytest.approx(0.5, rel=1e-6)
    spin = sim.spins.sum(axis=0)  # both contact points are at the distance 1 along z
    assert velocity[1, 0] - velocity[0, 0] - spin[1] == pytest.approx(-0.25 * 0.2, rel=1e-3)
    # gamma: a sliding contact has |P_t| = gamma P_n.
    p_n, p_1, p_2, status = solve_three(np.eye(3), np.array([-1.0, 3.0, 4.0]), 0.5, 0.5)
    assert status != SEPARATING and np.hypot(p_1, p_2) == pytest.approx(0.5 * p_n)


def test_impulses_are_forces_times_the_step():
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1.0, friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    scene.add(cd.Sphere(1.0), material="m", position=(0, 0, 1), mass=2.0)
    sim = cd.Simulation(scene, time_step=1e-3).run(until=0.1)
    assert sim.contacts.impulse[0, 0] / sim.time_step == pytest.approx(2 * 9.81, rel=1e-9)


def test_any_consistent_units():
    # The same ball in SI units and in cm, g, s: lengths times 100, velocities times 100.
    def run(length, mass):
        scene = cd.Scene(gravity=(0, -9.81 * length))
        scene.material("m", density=1000 * mass / length**2, friction=0.3, restitution=0.5)
        scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
        scene.add(cd.Disk(0.1 * length), material="m", position=(0, 0.5 * length), velocity=(1.0 * length, 0))
        return cd.Simulation(scene, time_step=1e-3).run(until=1.0)

    si, cgs = run(1.0, 1.0), run(100.0, 1000.0)
    assert cgs.positions == pytest.approx(100 * si.positions, rel=1e-9)
    assert cgs.energy.kinetic == pytest.approx(1e7 * si.energy.kinetic, rel=1e-9)
