"""The contact problem of a scene with polygons as data: the same as that of its next step."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from rigid_tools import assert_problem_is_of_next_step


def scene_on_slope(angle, friction, shape, height, **options):
    """A body on a half-plane through the origin that rises to the right by ``angle``."""
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=friction)
    normal = np.array([-math.sin(angle), math.cos(angle)])
    scene.add(cd.HalfPlane(normal), material="m", fixed=True)
    scene.add(shape, material="m", position=height * normal, rotation=angle, **options)
    return cd.Simulation(scene, time_step=1e-3, tolerance=1e-12, max_iterations=20_000)


def relative(problem, impulses):
    """U - target of all contacts, (m, d)."""
    return (problem.delassus @ impulses.ravel()).reshape(impulses.shape) + problem.velocity


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_problem_of_a_heap_is_that_of_its_next_step(seed):
    random = np.random.default_rng(seed)
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.HalfPlane((0.1, 1)), material="m", fixed=True)
    scene.add(cd.Rectangle(0.4, 0.1), material="m", position=(0, 0.08), rotation=-0.09)
    for k in range(6):
        shape = cd.Disk(0.04) if k % 3 == 2 else cd.Polygon.irregular(0.05, seed=random)
        scene.add(shape, material="m", position=(random.uniform(-0.03, 0.03), 0.25 + 0.11 * k))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-10, max_iterations=20_000, on_failure="ignore")
    for _ in range(300):
        sim.step()
    assert_problem_is_of_next_step(sim, 3)


def test_a_sliding_block_has_one_solution():
    # On two corners that slide P_t = -gamma P_n at both, and two equations (normal, moment) give the two P_n.
    angle, gamma = 0.4, 0.2
    sim = scene_on_slope(angle, gamma, cd.Rectangle(2.0, 1.0), 0.5)
    for _ in range(20):
        sim.step()
    problem = sim.contact_problem()
    found, report = cd.solve(problem, tolerance=1e-13)
    sim.step()
    assert report.converged and len(found) == 2
    np.testing.assert_allclose(found, sim.contacts.impulse, rtol=1e-9)
    np.testing.assert_allclose(relative(problem, found), relative(problem, sim.contacts.impulse), atol=1e-12)
    # closed form: sum P_n = m g h cos(angle), sum P_t = -gamma times that: t = z x n points down the slope
    weight = 2000.0 * 9.81 * 1e-3
    np.testing.assert_allclose(found.sum(axis=0), weight * math.cos(angle) * np.array([1, -gamma]), rtol=1e-9)


def test_a_corner_that_strikes_has_one_solution():
    wedge = cd.Polygon([(0, 0), (1, 2), (-1, 1.5)])
    sim = scene_on_slope(0.0, 0.3, wedge, wedge.center_of_mass[1], velocity=(0.4, -2.0), spin=0.7)
    problem = sim.contact_problem()
    sim.step()
    found, _ = cd.solve(problem, tolerance=1e-13)
    deep = sim.contacts.gap < 0
    assert deep.any()
    np.testing.assert_allclose(found, sim.contacts.impulse, rtol=1e-8, atol=1e-9)


def test_forces_of_a_block_on_two_corners():
    # Both P_n are half the weight: the P_t act on one line and their sum is zero, so that they turn nothing. How much
    # the two corners push against each other is not determined: |P_t| up to gamma P_n.
    gamma = 0.5
    sim = scene_on_slope(0.0, gamma, cd.Rectangle(2.0, 1.0), 0.5)
    found = cd.explore_forces(sim.contact_problem(from_rest=True, slack=1e-6), samples=200, seed=1)
    half = 2000.0 * 9.81 * 1e-3 / 2
    assert found.converged.all()
    np.testing.assert_allclose(found.impulses[:, :, 0], half, rtol=1e-6)
    np.testing.assert_allclose(found.impulses[:, :, 1].sum(axis=1), 0, atol=1e-6 * half)
    spread = np.abs(found.impulses[:, 0, 1]) / (gamma * half)
    assert spread.max() <= 1 + 1e-6 and spread.max() > 0.8 and spread.min() < 0.2


def test_laws_that_no_problem_can_hold_are_refused_for_polygons_too():
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.4, cohesion=1.0)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.Rectangle(1, 1), material="m", position=(0, 0.5))
    with pytest.raises(cd.InputError, match="cohesion"):
        cd.Simulation(scene, time_step=1e-3).contact_problem(from_rest=True, slack=1e-6)
