"""Sieve curves, pavements, pouring, lattices, rain, boxes."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import contactdynamics as cd
from contactdynamics.scenes import packings
from contactdynamics.scenes import pavement as circles
from contactdynamics.scenes.packings import Pour, Sieve, passing
from contactdynamics.scenes.tables import join_all
from contactdynamics.state import FIXED
from rigid_tools import DIMENSIONS, ball, floor, overlaps, vector, world

SIZES = (0.25, 0.5)


def solids(scene):
    """Bodies, balls and planes of a scene."""
    return join_all(scene.blocks)[:3]


# ---- sieve curves --------------------------------------------------------------------------------------------------


def test_uniform_sieve_has_the_papers_diameters(rng):
    drawn = Sieve.uniform(*SIZES).draw(20_000, rng)
    assert drawn.min() >= 0.25
    assert drawn.max() <= 0.5
    assert abs(drawn.mean() - 0.375) < 0.002
    assert abs(drawn.std() - 0.25 / np.sqrt(12)) < 0.001


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("by", ["mass", "number"])
def test_drawn_grains_have_the_curve_asked(rng, by, dimension):
    sieves, shares = [0.1, 0.15, 0.3, 0.6], [0.0, 0.2, 0.7, 1.0]
    sample = Sieve(sieves, shares, by=by).draw(200_000, rng, dimension=dimension)
    found = passing(sample, [0.1, 0.12, 0.15, 0.2, 0.3, 0.45, 0.6], by=by, dimension=dimension)
    asked = np.interp([0.1, 0.12, 0.15, 0.2, 0.3, 0.45, 0.6], sieves, shares)
    assert np.abs(found - asked).max() < 0.01


def test_quantiles_of_a_curve_by_mass():
    # One class, masses uniform in d: the number density is proportional to d^-3, its median m has m^-2 = mean of ends.
    median = Sieve([1.0, 2.0], [0.0, 1.0], by="mass").diameter(0.5)
    assert median == pytest.approx(((1 + 0.25) / 2) ** -0.5)


def test_one_size_and_two_sizes(rng):
    assert np.all(Sieve.uniform(0.3, 0.3).draw(5, rng) == 0.3)
    # Equal masses of diameters 1 and 2: eight small ones to a large one.
    two = Sieve([1, 1, 2, 2], [0, 0.5, 0.5, 1], by="mass").draw(90_000, rng)
    assert set(two) == {1.0, 2.0}
    assert abs((two == 1).mean() - 8 / 9) < 0.005


@pytest.mark.parametrize(
    "wrong",
    [
        {"diameters": [1, 2], "passing": [0, 0.9]},
        {"diameters": [2, 1], "passing": [0, 1]},
        {"diameters": [1, 2, 3], "passing": [0, 1]},
        {"diameters": [0, 2], "passing": [0, 1]},
        {"diameters": [1, 2], "passing": [0, 1], "by": "weight"},
    ],
)
def test_wrong_curves_are_told(wrong):
    with pytest.raises(cd.InputError):
        Sieve(**wrong)


# ---- ground, boxes, lattices, rain -----------------------------------------------------------------------------------


def test_pavement_is_fixed_random_and_without_holes(rng):
    scenes = [world(3, friction=0.4) for _ in range(3)]
    for scene, seed in zip(scenes, (1, 1, 2), strict=True):
        packings.pavement(scene, material="m", sizes=SIZES, extent=4.0, seed=seed)
    (bodies, balls, _), same, other = (solids(scene) for scene in scenes)
    assert (bodies.kind == FIXED).all()
    assert np.array_equal(bodies.position, same[0].position)
    assert len(bodies.mass) != len(other[0].mass) or not np.array_equal(bodies.position, other[0].position)
    assert (bodies.position[:, 2] == 0).all()
    assert np.hypot(*bodies.position.T[:2]).max() <= 4
    assert balls.radius.min() >= 0.125
    assert balls.radius.max() <= 0.25
    points = rng.uniform(-2.5, 2.5, (20_000, 2))
    near, which = cKDTree(bodies.position[:, :2]).query(points, k=8)
    assert (near - balls.radius[which]).min(axis=1).max() < 0.78 * 0.125


def around(points, others, area):
    """All differences (m, n, 2) of points, the shorter way around a periodic rectangle."""
    apart = others[None] - points[:, None]
    return apart - area * np.round(apart / area)


@pytest.mark.parametrize("area", [(5.0, 3.0), (1.1, 0.7), (0.5, 9.0), (0.3, 0.3)])
def test_circles_are_pushed_apart_by_half_their_overlap(rng, area):
    area = np.array(area)
    radii = rng.uniform(0.1, 0.2, max(3, int(12 * area.prod())))
    place = rng.random((len(radii), 2)) * area
    apart = around(place, place, area)
    distance = np.sqrt((apart**2).sum(axis=-1))
    overlap = np.maximum(0.0, radii + radii[:, None] - distance) * (distance > 0)
    expected = place - 0.5 * ((overlap / (distance + 1e-300))[..., None] * apart).sum(axis=1)
    circles.spread(place, radii, area, 1)
    assert np.allclose(place, expected % area, atol=1e-13)


@pytest.mark.parametrize("count", [1, 5, 400])
def test_room_between_circles(rng, count):
    area = np.array([4.0, 7.0])
    place, radii, points = rng.random((count, 2)) * area, rng.uniform(0.05, 0.2, count), rng.random((500, 2)) * area
    expected = (np.sqrt((around(points, place, area) ** 2).sum(axis=-1)) - radii).min(axis=1)
    assert np.allclose(circles.room(points, place, radii, area), expected, atol=1e-14)


def test_rectangular_and_straight_pavements():
    scene = world(3, friction=0.4)
    packings.pavement(scene, material="m", sizes=SIZES, extent=(4.0, 2.0), seed=1, level=0.3)
    position = solids(scene)[0].position
    assert np.abs(position[:, 0]).max() <= 2
    assert np.abs(position[:, 1]).max() <= 1
    assert (position[:, 2] == 0.3).all()
    scene = world(2, friction=0.4)
    packings.pavement(scene, material="m", sizes=SIZES, extent=3.0, seed=1, cover=1.0)
    bodies, balls, _ = solids(scene)
    x = bodies.position[:, 0]
    assert x.min() < -2.7
    assert x.max() > 2.4
    assert np.allclose(np.diff(x), balls.radius[1:] + balls.radius[:-1])


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_box_holds_its_balls(d):
    scene = world(d)
    walls = packings.box(scene, material="m", low=[0] * d, high=[1] * d, lid=True)
    assert len(walls) == 2 * d
    for corner in np.ndindex(*[2] * d):
        scene.add(
            ball(d, 0.1), material="m", position=0.3 + 0.4 * np.array(corner), velocity=np.array(corner) * 2.0 - 1
        )
    sim = cd.Simulation(scene, time_step=1e-3).run(until=1.0, progress=False)
    assert overlaps(sim) < 0.05
    assert len(packings.box(world(d), material="m", low=[0] * d, high=[1] * d)) == 2 * d - 1


@pytest.mark.parametrize(("d", "dense", "neighbours"), [(2, False, 4), (2, True, 6), (3, False, 6), (3, True, 12)])
def test_lattices_touch_their_neighbours(d, dense, neighbours):
    scene = world(d)
    packings.lattice(scene, material="m", sizes=0.2, counts=[5] * d, origin=[1.0] * d, dense=dense)
    position = solids(scene)[0].position[:, :d]
    assert np.allclose(position[0], 1.0)
    pairs = cKDTree(position).query_pairs(0.2 * (1 + 1e-9), output_type="ndarray")
    apart = np.sqrt(((position[pairs[:, 0]] - position[pairs[:, 1]]) ** 2).sum(axis=1))
    assert np.allclose(apart, 0.2)
    assert np.bincount(pairs.ravel()).max() == neighbours


@pytest.mark.parametrize("d", DIMENSIONS)
def test_rain_overlaps_nowhere(d):
    scene = world(d)
    low, high = [-1.0] * d, [1.0] * d
    numbers = packings.rain(scene, material="m", sizes=(0.1, 0.2), count=60, low=low, high=high, seed=3)
    bodies, balls, _ = solids(scene)
    assert len(numbers) == 60
    assert (np.abs(bodies.position[:, :d]) + balls.radius[:, None]).max() <= 1
    assert overlaps(cd.Simulation(scene, time_step=1e-3)) <= 0
    with pytest.raises(cd.InputError, match="larger"):
        packings.rain(world(d), material="m", sizes=0.5, count=500, low=low, high=high, seed=3)


# ---- pouring -------------------------------------------------------------------------------------------------------


def test_heights_over_one_ball_and_a_plane():
    scene = world(3)
    floor(scene)
    scene.add(cd.Sphere(0.5), material="m", position=(0, 0, 0.5))
    parts = solids(scene)
    assert packings.resting_heights(np.zeros(2), 0.25, *parts) == pytest.approx([1.25])
    assert packings.resting_heights(np.array([0.6, 0.0]), 0.25, *parts) == pytest.approx([0.5 + 0.45])
    assert packings.resting_heights(np.array([0.0, 2.0]), 0.25, *parts) == pytest.approx([0.25])
    # Beside the ball, under its equator, there is room for a small one: on the ground, and on the ball from above.
    assert packings.resting_heights(np.array([0.45, 0.0]), 0.1, *parts) == pytest.approx(
        [0.1, 0.5 + 0.396863], abs=1e-6
    )


def test_heights_under_a_flying_ball():
    scene = world(2)
    floor(scene)
    scene.add(cd.Disk(0.2), material="m", position=(0, 3.0))
    heights = packings.resting_heights(np.zeros(1), 0.1, *solids(scene))
    assert heights == pytest.approx([0.1, 3.3])


def test_heights_over_a_slope_and_a_cluster():
    scene = world(2)
    scene.add(cd.HalfPlane((-np.sin(0.5), np.cos(0.5))), material="m", fixed=True)
    height = packings.resting_heights(np.array([1.0]), 0.2, *solids(scene))
    assert height == pytest.approx([np.tan(0.5) + 0.2 / np.cos(0.5)])
    scene = world(2)
    scene.add(cd.Cluster([0.1, 0.2], [(0, 0), (0.4, 0)]), material="m", position=(0, 0), rotation=np.pi / 2)
    bodies, balls, planes = solids(scene)
    highest = packings.resting_heights(np.zeros(1), 0.1, bodies, balls, planes)[-1]
    along = balls.centre[np.argmax(balls.radius), 0]  # the large one, above the centre of mass after the turn
    assert highest == pytest.approx(along + 0.3)


def test_heights_agree_with_a_search(rng):
    scene = world(3)
    floor(scene)
    scene.add_many(rng.uniform(0.05, 0.2, 60), material="m", position=rng.uniform(0, 1, (60, 3)))
    bodies, balls, planes = solids(scene)
    tried = np.linspace(-0.5, 2.5, 30_001)
    for _ in range(40):
        place, radius = rng.uniform(0, 1, 2), rng.uniform(0.02, 0.2)
        found = packings.resting_heights(place, radius, bodies, balls, planes)
        flat = ((bodies.position[balls.body, :2] - place) ** 2).sum(axis=1)
        far = np.sqrt(flat + (tried[:, None] - bodies.position[balls.body, 2]) ** 2) - balls.radius - radius
        clear = (far >= 0).all(axis=1) & (tried >= radius)
        lowest = tried[np.argmax(clear)]
        highest = tried[len(tried) - np.argmin(clear[::-1])]
        assert found[0] == pytest.approx(lowest, abs=2e-4)
        assert found[-1] == pytest.approx(highest, abs=2e-4)


def pouring(d, *, count=24, rate=400.0, from_above=False, **options):
    scene = world(d, gravity=981.0, friction=0.4)
    floor(scene)
    pour = Pour(
        scene, material="m", sizes=SIZES, rate=rate, count=count, radius=0.8, seed=5, from_above=from_above
    )  # fmt: skip
    sim = cd.Simulation(scene, time_step=5e-4, **options)
    sim.before_step.append(pour)
    return sim, pour


@pytest.mark.parametrize("d", DIMENSIONS)
def test_grains_come_at_their_dates_at_rest_in_contact(d):
    sim, pour = pouring(d)
    for _ in range(90):
        before = len(sim.positions)
        sim.step()
        new = len(sim.positions) - before
        date = (len(sim.positions) - 2) / pour.rate
        assert new in (0, 1)
        if new:
            assert date <= sim.time - sim.time_step + 1e-12 < date + sim.time_step
    assert len(sim.positions) == 1 + pour.made(sim.time - sim.time_step)


@pytest.mark.parametrize("from_above", [False, True])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_new_grain_touches_and_overlaps_nothing(d, from_above):
    sim, pour = pouring(d, from_above=from_above)
    first, add = sim.positions[pour.first], sim.add_many
    assert np.sqrt((first[:-1] ** 2).sum()) <= 0.8
    seen = []

    def watched(radii, *, material, position):
        others, other_radii = sim.positions[sim.model.balls.body], sim.model.balls.radius
        gaps = np.sqrt(((others - position) ** 2).sum(axis=1)) - other_radii - radii[0]
        gaps = np.append(gaps, position[0, -1] - radii[0])
        assert np.sqrt((position[0, :-1] ** 2).sum()) <= 0.8
        assert abs(gaps.min()) < 1e-9
        seen.append(position[0])
        return add(radii, material=material, position=position)

    sim.add_many = watched
    sim.run(until=0.08, progress=False)
    assert len(seen) == pour.count - 1


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_resumed_pour_has_the_same_bits(d, tmp_path):
    whole, _ = pouring(d)
    whole.run(until=0.1, progress=False)
    cut, _ = pouring(d, recorders=[cd.HDF5(tmp_path / "run.h5", every=7)])
    cut.run(until=0.035, progress=False)
    again, _ = pouring(d, recorders=[cd.HDF5(tmp_path / "run.h5", every=7)])
    again.restore(tmp_path / "run.h5").run(until=0.1, progress=False)
    assert np.array_equal(whole.positions, again.positions)
    assert np.array_equal(whole.velocities, again.velocities)


def test_a_step_cut_short_is_not_recorded(tmp_path):
    """An interrupt within a step leaves the last whole state in the file, and the run goes on with the same bits."""
    whole, _ = pouring(3)
    whole.run(until=0.1, progress=False)
    cut, _ = pouring(3, recorders=[cd.HDF5(tmp_path / "run.h5", every=7)])
    solve = cut.contact_set.solve

    def interrupted(*arguments, **options):
        if cut.steps == 100:
            raise KeyboardInterrupt
        return solve(*arguments, **options)

    cut.contact_set.solve = interrupted
    with pytest.raises(KeyboardInterrupt):
        cut.run(until=0.1, progress=False)
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording[-1].step == 98
    again, _ = pouring(3, recorders=[cd.HDF5(tmp_path / "run.h5", every=7)])
    again.restore(tmp_path / "run.h5").run(until=0.1, progress=False)
    assert np.array_equal(whole.positions, again.positions)


def test_the_seed_decides_the_grains():
    grains = [Pour(s, material="m", sizes=SIZES, rate=1.0, count=9, radius=0.8, seed=k) for s, k in _grounds((1, 1, 2))]
    assert grains[0].grain(5)[0] == grains[1].grain(5)[0] != grains[2].grain(5)[0]
    assert np.array_equal(grains[0].grain(5)[1], grains[1].grain(5)[1])
    assert grains[0].duration == 9.0
    assert [grains[0].made(t) for t in (0.0, 0.99, 1.0, 7.5, 100.0)] == [1, 1, 2, 8, 9]


def _grounds(seeds):
    for seed in seeds:
        scene = world(3)
        floor(scene)
        yield scene, seed


def test_nothing_to_lay_a_grain_on_is_told():
    with pytest.raises(cd.InputError, match="ground"):
        Pour(world(3), material="m", sizes=SIZES, rate=1.0, count=9, radius=0.8, seed=1)
    scene = world(3)
    scene.add(cd.Sphere(0.1), material="m", position=vector(3, 50, 0), fixed=True)
    with pytest.raises(cd.InputError, match="wider"):
        Pour(scene, material="m", sizes=SIZES, rate=1.0, count=9, radius=0.8, seed=1)
