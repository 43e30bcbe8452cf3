"""Forces of bodies at rest against statics; `is_equilibrium`; walls bear the weight."""

import numpy as np
import pytest

from rigid_tools import (
    DIMENSIONS,
    G,
    assert_closed,
    ball,
    ball_mass,
    floor,
    sled,
    start,
    step_through,
    vector,
    wall,
    world,
)  # fmt: skip


def force_between(contacts, step, a, b):
    """Normal force and size of the tangential force between bodies ``a`` and ``b``."""
    rows = [k for k, pair in enumerate(contacts.bodies.tolist()) if sorted(pair) == sorted((a, b))]
    assert len(rows) == 1
    impulse = contacts.impulse[rows[0]] / step
    return impulse[0], np.linalg.norm(impulse[1:])


def resultant(contacts, step, body):
    """Sum of the contact forces on a body."""
    total = np.zeros(contacts.normal.shape[1])
    for pair, frame, impulse in zip(contacts.bodies, contacts.frame, contacts.impulse, strict=True):
        sign = (pair[1] == body) * 1.0 - (pair[0] == body) * 1.0
        total += sign * frame.T @ impulse / step
    return total


# ---- stacks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_each_ball_of_a_column_bears_those_above(d, friction):
    # The force below ball k is the weight of the balls k, k + 1, ...; from rest, and after half a second of rest.
    radii = [0.1, 0.08, 0.12, 0.05, 0.1]
    scene = world(d, friction=friction)
    floor(scene)
    height = 0.0
    for r in radii:
        scene.add(ball(d, r), material="m", position=vector(d, 0, height + r))
        height += 2 * r
    sim = start(scene, 2e-3)
    above = np.cumsum(ball_mass(d, np.array(radii))[::-1])[::-1] * G
    found = sim.is_equilibrium(tolerance=1e-12)
    assert found and found.largest_velocity < 1e-9
    for k, weight in enumerate(above):
        normal, tangential = force_between(found.contacts, 2e-3, k, k + 1)
        assert normal == pytest.approx(weight, rel=1e-9) and tangential < 1e-9
    sim.run(until=0.5, progress=False)
    for k, weight in enumerate(above):
        assert force_between(sim.contacts, 2e-3, k, k + 1)[0] == pytest.approx(weight, rel=1e-8)
    assert np.abs(sim.velocities).max() < 1e-10
    assert_closed(sim)


def pyramid(d, friction, apart=1.02, radius=0.1):
    """A ball on two disks (three spheres) on the floor that do not touch; and phi of the contacts from the vertical."""
    scene = world(d, friction=friction)
    floor(scene)
    if d == 2:
        base = radius * apart * np.array([(-1.0,), (1.0,)])
    else:
        angle = 2 * np.pi / 3 * np.arange(3)
        base = 2 * radius * apart / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    for place in base:
        scene.add(ball(d, radius), material="m", position=(*place, radius))
    sine = np.linalg.norm(base[0]) / (2 * radius)
    scene.add(ball(d, radius), material="m", position=(*[0.0] * (d - 1), radius + 2 * radius * np.sqrt(1 - sine**2)))
    return scene, np.arcsin(sine)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_pyramid(d):
    # Ball below: friction at the floor and at the upper contact have the same arm, so they are equal, T. Across:
    # N sin = T (1 + cos), T / N = tan(phi / 2); the top: its weight W is shared by d contacts, N cos + T sin = N =
    # W / d. The floor bears W + W / d. It stands iff gamma >= tan(phi / 2).
    weight = ball_mass(d, 0.1) * G
    for share in (1.01, 3.0):
        _, phi = pyramid(d, 1.0)
        scene, _ = pyramid(d, share * np.tan(phi / 2))
        sim = start(scene, 1e-3)
        found = sim.is_equilibrium(tolerance=1e-10)
        assert found
        for k in range(1, d + 1):
            normal, tangential = force_between(found.contacts, 1e-3, k, d + 1)
            assert normal == pytest.approx(weight / d, rel=1e-5)
            assert tangential == pytest.approx(weight / d * np.tan(phi / 2), rel=1e-5)
            normal, tangential = force_between(found.contacts, 1e-3, 0, k)
            assert normal == pytest.approx(weight * (1 + 1 / d), rel=1e-5)
            assert tangential == pytest.approx(weight / d * np.tan(phi / 2), rel=1e-5)
        sim.run(until=0.2, progress=False)
        assert np.abs(sim.velocities).max() < 1e-6
        assert_closed(sim)
    scene, _ = pyramid(d, 0.99 * np.tan(phi / 2))
    sim = start(scene, 1e-3, tolerance=1e-9)
    assert not sim.is_equilibrium(tolerance=1e-10)
    sim.run(until=0.5, progress=False)
    assert sim.positions[-1, -1] < 0.1 + 0.2 * np.cos(phi) - 1e-3  # it is coming down
    assert_closed(sim)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_ball_in_a_groove(d):
    # Walls at the angles a and b from the horizontal, frictionless: N_a = W sin(b) / sin(a + b), N_b likewise.
    a, b = 0.5, 0.9
    scene = world(d)
    one = scene.add(wall(d, vector(d, np.sin(a), np.cos(a))), material="m", fixed=True)
    two = scene.add(wall(d, vector(d, -np.sin(b), np.cos(b))), material="m", fixed=True)
    # the centre is at the distance r from both walls
    centre = np.linalg.solve([[np.sin(a), np.cos(a)], [-np.sin(b), np.cos(b)]], [0.1, 0.1])
    body = scene.add(ball(d, 0.1), material="m", position=vector(d, *centre))
    sim = start(scene, 1e-3)
    found, weight = sim.is_equilibrium(tolerance=1e-12), ball_mass(d, 0.1) * G
    assert found
    assert force_between(found.contacts, 1e-3, one, body)[0] == pytest.approx(weight * np.sin(b) / np.sin(a + b))
    assert force_between(found.contacts, 1e-3, two, body)[0] == pytest.approx(weight * np.sin(a) / np.sin(a + b))
    sim.run(until=0.2, progress=False)
    assert np.abs(sim.velocities[body]).max() < 1e-11
    assert_closed(sim)


# ---- is_equilibrium --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_equilibrium_of_a_sled_on_a_slope(d):
    for share, expected in ((0.0, True), (0.98, True), (1.02, False)):
        scene = world(d, slope=np.arctan(share * 0.4), friction=0.4)
        floor(scene)
        scene.add(sled(d), material="m", position=vector(d, 0, 0.1))
        sim = start(scene, 1e-3)
        found = sim.is_equilibrium()
        assert bool(found) is expected
        if expected:  # the forces that prove it: they carry the weight, within their cones
            weight = sim.bodies.mass[1] * scene.gravity
            assert resultant(found.contacts, 1e-3, 1) == pytest.approx(-weight, rel=1e-4, abs=1e-6)
            tangential = np.linalg.norm(found.contacts.impulse[:, 1:], axis=1)
            assert (tangential <= 0.4 * found.contacts.impulse[:, 0] * (1 + 1e-9)).all()
        else:
            assert found.largest_velocity == pytest.approx(0.02 * np.sin(np.arctan(0.4)), rel=0.1)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_what_is_no_equilibrium(d):
    # in the air; on a slope that it rolls down whatever the friction; held up by nothing but a force that is too small
    for height, slope, lift in ((0.5, 0.0, 0.0), (0.1, 0.1, 0.0), (0.3, 0.0, 0.9)):
        scene = world(d, slope=slope, friction=5.0)
        floor(scene)
        body = scene.add(ball(d, 0.1), material="m", position=vector(d, 0, height))
        scene.force(body, force=vector(d, 0, lift * ball_mass(d, 0.1) * G))
        found = start(scene, 1e-3).is_equilibrium()
        assert not found
        if height > 0.1:
            assert found.largest_velocity == pytest.approx(1 - lift)
    scene = world(d)
    floor(scene)
    body = scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.5))
    scene.force(body, force=vector(d, 0, ball_mass(d, 0.1) * G))
    assert start(scene, 1e-3).is_equilibrium()  # weight and force cancel: nothing needs to touch


@pytest.mark.parametrize("d", DIMENSIONS)
def test_equilibrium_with_rolling_resistance_springs_and_glue(d):
    m = ball_mass(d, 0.1)
    for share, expected in ((0.98, True), (1.02, False)):
        scene = world(d, slope=np.arctan(share * 0.2), friction=0.8, rolling=0.02)
        floor(scene)
        scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1))
        assert bool(start(scene, 1e-3).is_equilibrium()) is expected
        scene = world(d, tension=0.1)
        floor(scene)
        body = scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1))
        scene.spring(body, stiffness=10.0, other=vector(d, 0, 0.1 + (m * G + share * 0.1) / 10.0))
        assert bool(start(scene, 1e-3).is_equilibrium()) is expected


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_asking_for_equilibrium_does_not_change_the_motion(penetration, rng):
    def heap(ask):
        scene = world(3, friction=0.4, restitution=0.2)
        floor(scene)
        place = np.stack(np.meshgrid([0, 0.25], [0, 0.25], [0.15, 0.4, 0.65]), axis=-1).reshape(-1, 3)
        scene.add_many(0.1, material="m", position=place + np.linspace(0, 0.03, 36).reshape(12, 3))
        sim = start(scene, 2e-3, tolerance=1e-8, penetration=penetration, on_failure="ignore")
        for _ in step_through(sim, 150):
            if ask:
                before = sim.contacts
                sim.is_equilibrium()
                after = sim.contacts
                assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))
        assert_closed(sim)
        return sim

    one, two = heap(False), heap(True)
    assert one.positions.tobytes() == two.positions.tobytes()
    assert one.rows.tobytes() == two.rows.tobytes()


# ---- walls bear the weight -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_walls_bear_the_weight_of_what_is_in_the_box(d, rng):
    # Momentum: the impulse of the walls in any time is m g T + the change of momentum, exactly, settled or not; once
    # the balls are at rest it is the weight in every step. In 3D, one of the 18 may still roll down a groove, which
    # takes off up to 1/18.
    scene = world(d, friction=0.6)
    floor(scene)
    walls = [0]
    for axis in np.eye(d)[: d - 1]:
        walls += [scene.add(wall(d, s * axis), material="m", position=-0.35 * s * axis, fixed=True) for s in (1, -1)]
    levels = np.arange(6 if d == 2 else 2) * 0.22 + 0.12
    grid = np.stack(np.meshgrid(*[np.linspace(-0.22, 0.22, 3)] * (d - 1), levels)).reshape(d, -1).T
    scene.add_many(
        rng.uniform(0.07, 0.1, len(grid)), material="m", position=grid + rng.uniform(-0.01, 0.01, grid.shape)
    )
    sim = start(scene, 2e-3, tolerance=1e-6, max_iterations=2000, on_failure="ignore")
    free = sim.bodies.kind == 0
    weight = sim.bodies.mass[free].sum() * scene.gravity
    total, shares = np.zeros(d), []
    for _ in step_through(sim, 800):
        c = sim.contacts
        push = np.array([resultant(c, 2e-3, body) for body in walls]).sum(axis=0)
        total -= push * 2e-3
        shares.append(push[-1] / weight[-1])
    momentum = sim.bodies.mass[free] @ sim.velocities[free]
    assert total == pytest.approx(momentum - weight * sim.time, abs=1e-10 * np.abs(weight).max())
    assert np.median(np.abs(sim.velocities)) < 1e-5
    assert np.median(shares[-200:]) == pytest.approx(1.0, abs=1e-3 if d == 2 else 1 / 18)
    assert_closed(sim)


@pytest.mark.parametrize("solver", ["nlgs", "accelerated"])
def test_both_solvers_find_the_forces_of_an_isostatic_heap(solver):
    scene, phi = pyramid(2, 0.6)
    sim = start(scene, 1e-3, solver=solver)
    found = sim.is_equilibrium(tolerance=1e-12)
    weight = ball_mass(2, 0.1) * G
    assert found
    assert force_between(found.contacts, 1e-3, 1, 3) == pytest.approx((weight / 2, weight / 2 * np.tan(phi / 2)))
