"""Pouring polygons, their surface, their force chains, and the directions of contacts."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.experiments import polygon_pile, runner
from contactdynamics.scenes import packings


def ground():
    scene = cd.Scene(gravity=(0, -981.0))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=0.4)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="grain", fixed=True)
    return scene


def hexagon(diameter, rng):
    return cd.Polygon.irregular(0.5 * diameter, sides=6, seed=rng)


def pouring(scene, **options):
    return packings.Pour(scene, material="grain", sizes=(0.3, 0.5), rate=100, count=6, radius=0.4, seed=3, **options)


def test_poured_polygons_are_laid_by_the_ball_around_them():
    scene = ground()
    pour = pouring(scene, shape=hexagon)
    bodies, corners = scene.freeze().bodies, scene.freeze().corners
    reach = np.linalg.norm(corners.place, axis=1).max()
    assert bodies.position[pour.first, 1] == pytest.approx(reach, rel=1e-9)
    assert bodies.position[pour.first, 0] == pour.grain(0)[1][0]
    assert len(corners.place) == 6


def test_poured_polygons_do_not_overlap_and_repeat():
    runs = []
    for _ in range(2):
        scene = ground()
        pour = pouring(scene, shape=hexagon)
        sim = cd.Simulation(scene, time_step=1e-3)
        sim.before_step.append(pour)
        sim.run(until=0.08, progress=False)
        assert len(sim.identities) == 7
        runs.append(sim.positions)
        assert sim.report.relative_penetration < 0.1
    np.testing.assert_array_equal(*runs)


def test_places_do_not_depend_on_the_shape():
    one, two = pouring(ground()), pouring(ground(), shape=hexagon)
    for k in range(5):
        assert one.grain(k)[0] == two.grain(k)[0] and one.grain(k)[1] == two.grain(k)[1]


def test_bounding_disks_hold_the_corners():
    scene = ground()
    rows = [scene.add(cd.Polygon.irregular(0.2, seed=k), material="grain", position=(k, 0.5)) for k in range(4)]
    scene.add(cd.Disk(0.3), material="grain", position=(6, 0.3))
    frame = cd.Simulation(scene, time_step=1e-3).frame()
    seen = analysis.bounding_disks(frame)
    assert seen.ball_bodies.tolist() == [5, *rows] and seen.ball_radii[0] == 0.3
    for k, row in enumerate(rows):
        part = frame.polygon_corners[frame.polygon_starts[k] : frame.polygon_starts[k + 1]]
        away = np.linalg.norm(part - seen.ball_centres[k + 1], axis=1)
        assert away.max() == pytest.approx(seen.ball_radii[k + 1]) and row == seen.ball_bodies[k + 1]
    plain = analysis.bounding_disks(seen._replace(polygon_bodies=frame.polygon_bodies[:0],
                                                  polygon_starts=np.zeros(1, dtype=int)))  # fmt: skip
    assert len(plain.ball_radii) == len(seen.ball_radii)


def test_slope_of_a_wedge_of_polygons():
    # Rows of squares, each one square shorter on both sides: a slope of 45 degrees.
    scene = ground()
    for level in range(10):
        for k in range(-9 + level, 10 - level):
            scene.add(cd.Rectangle(1.0, 1.0), material="grain", position=(k, 0.5 + level))
    frame = cd.Simulation(scene, time_step=1e-3).frame()
    assert analysis.slope(frame).degrees == pytest.approx(45, abs=2)
    assert analysis.height(frame) == pytest.approx(10)


def test_surface_of_a_triangle_and_a_disk():
    # An upright triangle of base 2 and height 1, its top over x = 0: height 1 - |x|. A disk of radius 1 about (4, 1).
    scene = ground()
    wedge = cd.Polygon([(-1, 0), (1, 0), (0, 1)])
    scene.add(wedge, material="grain", position=wedge.center_of_mass)
    scene.add(cd.Disk(1.0), material="grain", position=(4, 1))
    seen = analysis.surface(cd.Simulation(scene, time_step=1e-3).frame(), spacing=0.01)
    x = seen.places[:, 0]
    disk = 1 + np.sqrt(np.maximum(0, 1 - (x - 4) ** 2))
    exact = np.where(np.abs(x) < 1, 1 - np.abs(x), np.where(np.abs(x - 4) < 1, disk, 0))
    np.testing.assert_allclose(seen.height, exact, atol=1e-9)


def test_packing_fraction_and_volume_mass_of_polygons():
    # Unit squares turned by 45 degrees in a row, corner to corner, and an L of several parts: area over box.
    scene = ground()
    half = math.sqrt(0.5)
    for k in range(3):
        scene.add(cd.Rectangle(1.0, 1.0), material="grain", position=(2 * half * k, half), rotation=math.pi / 4)
    with pytest.warns(UserWarning, match="not convex"):
        ell = cd.Polygon([(0, 0), (1, 0), (1, 0.4), (0.3, 0.4), (0.3, 1), (0, 1)])
    scene.add(ell, material="grain", position=ell.center_of_mass + np.array([5.0, 0.0]))
    frame = cd.Simulation(scene, time_step=1e-3).frame()
    density = frame.masses[1]
    for low, high, area in (((-half, 0), (5 * half, 2 * half), 3.0), ((4.5, 0), (6.5, 1.2), ell.area)):
        box = analysis.Box(low, high)
        share = area / ((high[0] - low[0]) * (high[1] - low[1]))
        assert analysis.packing_fraction(frame, box, spacing=1e-3) == pytest.approx(share, rel=3e-3)
        assert analysis.volume_mass(frame, box, spacing=1e-3) == pytest.approx(density * share, rel=3e-3)


def test_force_chains_join_the_centres_of_polygons():
    scene = ground()
    scene.add(cd.Rectangle(1.0, 1.0), material="grain", position=(0, 0.5))
    scene.add(cd.Rectangle(1.0, 1.0), material="grain", position=(0.2, 1.5))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    frame = sim.frame()
    found = analysis.force_chains(frame)
    between = (frame.contacts.bodies[frame.contacts.impulse[:, 0] > 0] > 0).all(axis=1)
    assert between.any()
    np.testing.assert_allclose(found.segments[between], [[(0, 0.5), (0.2, 1.5)]] * between.sum(), atol=1e-2)


def test_outward_directions():
    # Two contacts, mirror images of each other: once mirrored, one direction.
    scene = ground()
    for side in (-1, 1):
        scene.add(cd.Disk(0.5), material="grain", position=(side, 0.5))
        scene.add(cd.Disk(0.5), material="grain", position=(side * (1 + math.sin(0.5)), 0.5 + math.cos(0.5) - 1e-6))
    sim = cd.Simulation(scene, time_step=1e-4)
    sim.step()
    frame = polygon_pile.outwards(sim.frame())
    grains = polygon_pile.Above(0.3)
    found = analysis.fabric(frame, grains)
    assert found.contacts == 2 and found.anisotropy == pytest.approx(2.0, abs=1e-4)
    assert math.degrees(math.atan2(*found.axes[0][::-1])) % 180 == pytest.approx(90 - math.degrees(0.5), abs=0.1)
    assert analysis.fabric(sim.frame(), grains).anisotropy == pytest.approx(2 * math.cos(1.0), abs=1e-2)


def test_wrong_options():
    for wrong, words in (({"grains": "3"}, "grains=3.* 20 to"), ({"sides": "5"}, "sides=5.* 2 numbers")):
        with pytest.raises(cd.InputError, match=words):
            runner.parameters_of(runner.load("polygon-pile"), wrong)
