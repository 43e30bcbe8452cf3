"""Mass properties of shapes, and the table of material pairs."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.quaternions import matrix
from rigid_tools import DIMENSIONS, G, floor, run, start, vector, wall, world

# ---- one ball --------------------------------------------------------------------------------------------------------


def test_ball_mass_properties():
    sphere, disk = cd.Sphere(0.3).mass_properties(), cd.Disk(0.3).mass_properties()
    assert sphere.volume == pytest.approx(4 / 3 * np.pi * 0.027)
    assert sphere.inertia == pytest.approx(0.4 * sphere.volume * 0.09 * np.eye(3))
    assert disk.volume == pytest.approx(np.pi * 0.09)
    assert disk.inertia[2, 2] == pytest.approx(0.5 * disk.volume * 0.09)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_density_mass_and_inertia_of_bodies(d):
    scene = cd.Scene(gravity=vector(d))
    scene.material("m", density=2.5)
    scene.contact("m", "m")
    shape = (cd.Disk if d == 2 else cd.Sphere)(0.2)
    volume = shape.mass_properties().volume
    scene.add(shape, material="m", position=vector(d, 0))
    scene.add(shape, material="m", position=vector(d, 1), mass=7.0)
    scene.add(shape, material="m", position=vector(d, 2), mass=7.0, inertia=0.3 if d == 2 else (0.3, 0.3, 0.4))
    scene.add_many([0.2, 0.1], material="m", position=[vector(d, 3), vector(d, 4)])
    bodies = scene.freeze().bodies
    assert bodies.mass == pytest.approx([2.5 * volume, 7.0, 7.0, 2.5 * volume, 2.5 * volume / 2**d])
    moment = 0.5 if d == 2 else 0.4
    assert bodies.inertia[:2, 2] == pytest.approx(moment * bodies.mass[:2] * 0.04)
    assert bodies.inertia[2] == pytest.approx([0.3] * 3 if d == 2 else [0.3, 0.3, 0.4])
    assert bodies.inertia[3:, 2] == pytest.approx(moment * bodies.mass[3:] * np.array([0.04, 0.01]))
    assert bodies.simple.tolist() == [True, True, False, True, True]


# ---- clusters --------------------------------------------------------------------------------------------------------


def lens_area(r, s, distance):
    """Area common to two disks (closed form)."""
    a = r * r * np.arccos((distance**2 + r * r - s * s) / (2 * distance * r))
    b = s * s * np.arccos((distance**2 + s * s - r * r) / (2 * distance * s))
    c = 0.5 * np.sqrt((-distance + r + s) * (distance + r - s) * (distance - r + s) * (distance + r + s))
    return a + b - c


def lens_volume(r, s, distance):
    """Volume common to two spheres (closed form)."""
    return np.pi * (r + s - distance) ** 2 * (distance**2 + 2 * distance * (r + s) - 3 * (r - s) ** 2) / (12 * distance)


def direction(d, rng):
    e = rng.normal(size=d)
    return e / np.linalg.norm(e)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_disjoint_parts_add_by_steiner(d, rng):
    radii, centres = np.array([0.3, 0.2, 0.1]), rng.normal(size=(3, d)) * 3
    cluster = cd.Cluster(radii, centres)
    volume = np.pi * radii**2 if d == 2 else 4 / 3 * np.pi * radii**3
    centre = volume @ centres / volume.sum()
    assert cluster.mass_properties().volume == pytest.approx(volume.sum(), rel=1e-10)
    assert cluster.center_of_mass == pytest.approx(centre, rel=1e-9)
    x = np.zeros((3, 3))
    x[:, :d] = centres - centre
    own = (0.5 if d == 2 else 0.4) * volume * radii**2
    expected = sum(v * (np.sum(y**2) * np.eye(3) - np.outer(y, y)) for v, y in zip(volume, x, strict=True))
    assert cluster.mass_properties().inertia[2, 2] == pytest.approx(expected[2, 2] + own.sum(), rel=1e-8)
    if d == 3:
        assert cluster.mass_properties().inertia == pytest.approx(expected + own.sum() * np.eye(3), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_two_overlapping_parts_count_their_common_part_once(d, rng):
    for r, s, distance in ((0.3, 0.3, 0.3), (0.3, 0.1, 0.25), (0.2, 0.3, 0.12), (0.5, 0.5, 0.999)):
        cluster = cd.Cluster([r, s], [np.zeros(d), distance * direction(d, rng)])
        if d == 2:
            exact = np.pi * (r * r + s * s) - lens_area(r, s, distance)
        else:
            exact = 4 / 3 * np.pi * (r**3 + s**3) - lens_volume(r, s, distance)
        assert cluster.mass_properties().volume == pytest.approx(exact, rel=1e-12)


def test_inertia_of_two_overlapping_spheres_by_rings():
    # Along the common axis x the section is a disk of radius rho(x): I_x = int pi rho^4 / 2 dx and
    # I_y = int (pi rho^4 / 4 + pi rho^2 x^2) dx, by another quadrature, in a cluster along no axis of its own.
    r, s, distance = 0.3, 0.2, 0.35
    x, w = np.polynomial.legendre.leggauss(200)
    meet = (distance**2 + r**2 - s**2) / (2 * distance)
    pieces = [(-r, meet, lambda x: r**2 - x**2), (meet, distance + s, lambda x: s**2 - (x - distance) ** 2)]
    volume = first = along = across = 0.0
    for low, high, square in pieces:
        at, weight = 0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w
        area = np.pi * square(at)
        volume += weight @ area
        first += weight @ (area * at)
        along += weight @ (area**2 / (2 * np.pi))
        across += weight @ (area**2 / (4 * np.pi) + area * at**2)
    across -= first**2 / volume
    axis = np.array([0.36, 0.48, 0.8])
    cluster = cd.Cluster([r, s], [np.ones(3), np.ones(3) + distance * axis])
    properties = cluster.mass_properties()
    assert properties.volume == pytest.approx(volume, rel=1e-12)
    assert cluster.center_of_mass == pytest.approx(1 + first / volume * axis, rel=1e-12)
    expected = across * np.eye(3) + (along - across) * np.outer(axis, axis)
    assert properties.inertia == pytest.approx(expected, rel=1e-12, abs=1e-12 * across)


@pytest.mark.parametrize("turned", [False, True])
def test_spheres_through_one_circle(turned, rng):
    # Centres z on a line and radii^2 = z^2 + 1: all pass through the unit circle, so that the union is that of the two
    # outer ones, and rounding alone would decide whether the circle is free.
    heights = np.array([-1.0, -0.3, 0.0, 0.4, 0.7])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0] if turned else np.eye(3)
    cluster = cd.Cluster(np.sqrt(heights**2 + 1), heights[:, None] * turn[2])
    low, high = np.sqrt(2.0), np.sqrt(1.49)
    exact = 4 / 3 * np.pi * (low**3 + high**3) - lens_volume(low, high, 1.7)
    assert cluster.mass_properties().volume == pytest.approx(exact, rel=1e-7)


def test_spheres_of_a_lattice_fill_it():
    # With radii above sqrt(3)/2 of the spacing no hole is left: the volume of n^3 spheres is a cubic in n (cells,
    # faces, edges, corners) that begins with n^3, and its third difference is 6.
    def volume(n):
        grid = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3)
        return cd.Cluster(np.full(n**3, 0.9), grid).mass_properties().volume

    v = [volume(n) for n in (2, 3, 4, 5)]
    assert v[3] - 3 * v[2] + 3 * v[1] - v[0] == pytest.approx(6.0, rel=1e-11)


def test_a_row_of_disks_and_of_spheres_grows_by_one_part_each(rng):
    # Each further part adds the same area or volume: its own, less one lens.
    for d, whole, lens in ((2, np.pi * 0.01, lens_area), (3, 4e-3 / 3 * np.pi, lens_volume)):
        e = direction(d, rng)
        cluster = cd.Cluster(np.full(390, 0.1), 0.15 * np.arange(390)[:, None] * e)
        exact = 390 * whole - 389 * lens(0.1, 0.1, 0.15)
        assert cluster.mass_properties().volume == pytest.approx(exact, rel=1e-12)
        assert cluster.center_of_mass == pytest.approx(0.15 * 389 / 2 * e, rel=1e-12)


def test_mass_properties_are_computed_when_asked_and_once(monkeypatch):
    from contactdynamics.scenes.shapes import clusters as shapes

    calls = []
    for name in ("union_of_disks", "union_of_spheres"):
        real = getattr(shapes, name)
        monkeypatch.setattr(shapes, name, lambda *a, real=real: calls.append(1) or real(*a))
    for d in DIMENSIONS:
        cluster = cd.Cluster([0.1, 0.2], np.eye(2, d))
        assert not calls
        cluster.mass_properties(), cluster.balls(), cluster.center_of_mass
        assert calls.pop() and not calls


@pytest.mark.parametrize("d", DIMENSIONS)
def test_parts_inside_others_and_twins_count_once(d):
    whole = cd.Cluster([0.5], [np.zeros(d)]).mass_properties()
    assert whole.volume == pytest.approx(np.pi * 0.25 if d == 2 else 4 / 3 * np.pi * 0.125, rel=1e-12)
    inside = cd.Cluster([0.5, 0.1, 0.2], [np.zeros(d), 0.3 * np.eye(d)[0], -0.3 * np.eye(d)[1]])
    twins = cd.Cluster([0.5, 0.5, 0.5], np.zeros((3, d)))
    for other in (inside, twins):
        assert other.mass_properties().volume == pytest.approx(whole.volume, rel=1e-9)
        assert other.mass_properties().inertia == pytest.approx(whole.inertia, rel=1e-9, abs=1e-12)
        assert other.center_of_mass == pytest.approx(np.zeros(d), abs=1e-12)


@pytest.mark.parametrize("count", [3, 4, 6])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_many_overlapping_parts_against_chance(d, count, rng):
    # Monte Carlo: the share of n random points, with a standard error; four of them is never.
    radii, centres = rng.uniform(0.3, 0.6, count), rng.uniform(-0.5, 0.5, (count, d))
    cluster = cd.Cluster(radii, centres)
    n = 400_000
    low, high = (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
    points = rng.uniform(low, high, (n, d))
    inside = np.zeros(n, dtype=bool)
    for r, c in zip(radii, centres, strict=True):
        inside |= ((points - c) ** 2).sum(axis=1) < r * r
    cell = np.prod(high - low)
    share = inside.mean()
    properties = cluster.mass_properties()
    assert properties.volume == pytest.approx(cell * share, abs=4 * cell * np.sqrt(share * (1 - share) / n))
    centred = np.zeros((inside.sum(), 3))
    centred[:, :d] = points[inside] - cluster.center_of_mass
    assert np.abs(centred.mean(axis=0)).max() < 4 * centred.std(axis=0).max() / np.sqrt(inside.sum())
    moments = np.einsum("ki,kj->kij", centred, centred)
    moments = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - moments
    spread = moments.std(axis=0) / np.sqrt(inside.sum()) + moments.mean(axis=0).max() / np.sqrt(inside.sum())
    got = properties.inertia / properties.volume
    checked = (2, 2) if d == 2 else (slice(None), slice(None))
    assert (np.abs(moments.mean(axis=0) - got)[checked] < 4 * spread[checked]).all()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_mass_properties_do_not_depend_on_the_frame(count, rng):
    # The boundary is cut into other arcs when it is turned: another calculation of the same numbers.
    radii, centres = rng.uniform(0.3, 0.6, count), rng.uniform(-0.4, 0.4, (count, 3))
    one = cd.Cluster(radii, centres)
    for _ in range(3):
        q = rng.normal(size=4)
        r = matrix(q / np.linalg.norm(q))
        two = cd.Cluster(radii, centres @ r.T + [1.0, -2.0, 0.5])
        a, b = one.mass_properties(), two.mass_properties()
        assert b.volume == pytest.approx(a.volume, rel=1e-12)
        assert two.center_of_mass == pytest.approx(r @ one.center_of_mass + [1.0, -2.0, 0.5], abs=1e-12)
        assert b.inertia == pytest.approx(r @ a.inertia @ r.T, abs=1e-12 * a.inertia.max())


def test_principal_axes_are_a_rotation_and_the_shape_stays_where_it_was_put(rng):
    radii, centres = [0.3, 0.2, 0.25], np.array([(0, 0, 0), (0.4, 0.1, 0), (-0.1, 0.5, 0.2)])
    cluster = cd.Cluster(radii, centres)
    moments, axes = cluster.mass_properties().principal
    assert axes.T @ axes == pytest.approx(np.eye(3), abs=1e-12) and np.linalg.det(axes) == pytest.approx(1)
    assert axes @ np.diag(moments) @ axes.T == pytest.approx(cluster.mass_properties().inertia, abs=1e-12)
    scene = world(3)
    q = np.array([0.5, 0.5, -0.5, 0.5])
    scene.add(cluster, material="m", position=(1, 2, 3), rotation=q)
    sim = start(scene, 1e-3)
    assert np.abs(sim.rotations[0] - q).max() < 1e-12 or np.abs(sim.rotations[0] + q).max() < 1e-12
    turned = (centres - cluster.center_of_mass) @ matrix(q).T + [1, 2, 3]
    near = sim.contact_set.near  # where the search for contacts sees the balls
    near.place(sim.model)
    assert near.places == pytest.approx(turned, abs=1e-12)


def test_rotation_of_a_cluster_in_two_dimensions():
    scene = world(2)
    cluster = cd.Cluster([0.1, 0.1], [(-0.2, 0), (0.2, 0)])
    scene.add(cluster, material="m", position=(0, 5), rotation=0.7, spin=2.0)
    sim = run(scene, 1e-3, 0.5)
    assert sim.rotations[0] == pytest.approx(1.7 - 0.0, abs=1e-12)


def test_a_dumbbell_settles_on_both_its_balls():
    # The lower ball of a tilted dumbbell touches first; in the end both bear half the weight, but for the angle at
    # which the overlaps of the impact leave it.
    scene = world(2, friction=0.3)
    floor(scene)
    scene.add(cd.Cluster([0.1, 0.1], [(-0.2, 0), (0.2, 0)]), material="m", position=(0, 0.3), rotation=0.5)
    sim = run(scene, 1e-3, 1.5)
    assert np.sort(sim.contacts.impulse[:, 0]) / 1e-3 == pytest.approx([sim.bodies.mass[1] * G / 2] * 2, rel=2e-3)
    assert sim.rotations[1] == pytest.approx(0.0, abs=0.02)


# ---- pairs of materials ----------------------------------------------------------------------------------------------


def two_materials(a, b, **stated):
    scene = cd.Scene(gravity=(0, -G))
    scene.material("a", density=1.0, **a)
    scene.material("b", density=1.0, **b)
    if stated:
        scene.contact("b", "a", **stated)
    scene.add(cd.HalfPlane((0, 1)), material="a", fixed=True)
    scene.add(cd.Disk(0.1), material="b", position=(0, 0.1))
    model = scene.freeze()
    return dict(zip(
        ("friction", "friction2", "static", "restitution", "tangential", "rolling", "spinning", "cohesion", "tension"),
        model.laws[model.law_index[0, 1]], strict=True,
    ))  # fmt: skip


def test_mixing():
    # Documented: geometric means of friction, restitution, rolling, spinning; the smaller one of the rest.
    a = {"friction": 0.2, "restitution": 0.9, "rolling": 1e-3, "cohesion": 3.0, "tangential_restitution": 0.5}
    b = {"friction": 0.8, "restitution": 0.4, "rolling": 4e-3, "cohesion": 1.0, "tangential_restitution": -0.2}
    law = two_materials(a, b)
    assert law["friction"] == law["friction2"] == law["static"] == pytest.approx(0.4)
    assert law["restitution"] == pytest.approx(0.6)
    assert law["rolling"] == pytest.approx(2e-3)
    assert (law["tangential"], law["cohesion"], law["spinning"], law["tension"]) == (-0.2, 1.0, 0.0, 0.0)


def test_a_stated_pair_is_not_mixed():
    law = two_materials({"friction": 0.2}, {"friction": 0.8}, friction=0.05, static_friction=0.07, restitution=0.3)
    assert (law["friction"], law["static"], law["restitution"]) == (0.05, 0.07, 0.3)


def test_only_pairs_that_can_meet_must_be_known():
    scene = cd.Scene(gravity=(0, -G))
    for name in ("floor", "wall", "grain"):
        scene.material(name, density=1.0)
    scene.contact("grain", "floor", friction=0.3)
    scene.contact("wall", "grain", friction=0.1)
    scene.add(cd.HalfPlane((0, 1)), material="floor", fixed=True)
    scene.add(cd.HalfPlane((1, 0)), material="wall", fixed=True, position=(-1, 0))
    scene.add(cd.Disk(0.1), material="grain", position=(0, 0.1))
    scene.freeze()  # floor and wall never meet, and there is one grain only
    scene.add(cd.Disk(0.1), material="grain", position=(0.5, 0.1))
    with pytest.raises(cd.InputError, match="'grain' with 'grain'"):
        scene.freeze()


def test_each_pair_has_its_own_law_in_motion():
    # Two sliding disks on one floor, with their own friction each; they do not touch.
    scene = cd.Scene(gravity=(0, -G))
    for name in ("floor", "rough", "smooth"):
        scene.material(name, density=1.0)
    scene.contact("floor", "rough", friction=0.4)
    scene.contact("smooth", "floor", friction=0.1)
    scene.contact("rough", "smooth")
    scene.add(wall(2, (0, 1)), material="floor", fixed=True)
    for k, name in enumerate(("rough", "smooth")):
        scene.add(cd.Disk(0.1), material=name, position=(k, 0.1 * (1 - 1e-12)), velocity=(1.0, 0))
    sim = run(scene, 1e-3, 0.05)
    assert sim.velocities[1:, 0] == pytest.approx([1 - 0.4 * G * 0.05, 1 - 0.1 * G * 0.05], rel=1e-9)
    # and the ledger tells them apart: -gamma m g times the way of the slip, 1 - (1 + k) gamma g t with k = 2
    for material, gamma in ((1, 0.4), (2, 0.1)):
        slip = 0.05 - 1.5 * gamma * G * 0.05**2
        lost = sim.energy.tangential_work[sim.model.law_index[0, material]]
        assert lost == pytest.approx(-gamma * sim.bodies.mass[1] * G * slip, rel=1e-9)
