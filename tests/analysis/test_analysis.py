"""Analysis against closed forms: frames built by hand, lattices, and a small pile."""

import math
import warnings

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis as an
from contactdynamics.errors import StepWarning
from contactdynamics.files import archive
from contactdynamics.files import hdf5 as storage
from contactdynamics.scenes import packings
from contactdynamics.state import FIXED, FREE, SLIDING, STICKING, Contacts, Frame
from rigid_tools import DIMENSIONS, floor, world

H = 0.01  # time step of the frames built by hand


def frame_of(positions, radii, contacts=(), *, kinds=None, gravity=None, density=1.0, velocities=None):
    """A frame of balls; ``contacts``: tuples (a, b, point, force on b) with the normal along the line of centres."""
    positions = np.asarray(positions, dtype=float)
    n, d = positions.shape
    radii = np.broadcast_to(np.asarray(radii, dtype=float), (n,))
    volume = math.pi * radii**2 if d == 2 else 4 / 3 * math.pi * radii**3
    return Frame(
        1.0, 100, H, d, np.zeros(d) if gravity is None else np.asarray(gravity, dtype=float), np.arange(n), positions,
        np.zeros(n) if d == 2 else np.tile([1.0, 0, 0, 0], (n, 1)),
        np.zeros((n, d)) if velocities is None else velocities, np.zeros((n, 1 if d == 2 else 3)), density * volume,
        np.zeros(n, dtype=int) if kinds is None else np.asarray(kinds), radii, positions, np.arange(n),
        np.zeros((0, d)), np.zeros((0, d)), contacts_of(positions, contacts),
    )  # fmt: skip


def contacts_of(positions, contacts):
    d, k = positions.shape[1], len(contacts)
    bodies = np.array([c[:2] for c in contacts], dtype=int).reshape(k, 2)
    point = np.array([c[2] for c in contacts], dtype=float).reshape(k, d)
    force = np.array([c[3] for c in contacts], dtype=float).reshape(k, d)
    normal = positions[bodies[:, 1]] - positions[bodies[:, 0]]
    normal /= np.sqrt((normal**2).sum(axis=1))[:, None]
    if d == 2:
        frames = np.stack([normal, np.stack([-normal[:, 1], normal[:, 0]], axis=1)], axis=1)
    else:
        other = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
        tangent = np.cross(normal, other)
        tangent /= np.sqrt((tangent**2).sum(axis=1))[:, None]
        frames = np.stack([normal, tangent, np.cross(normal, tangent)], axis=1)
    impulse = np.einsum("kij,kj->ki", frames, force) * H
    status = np.full(k, STICKING)
    return Contacts(bodies, point, normal, np.zeros(k), impulse, frames, status, np.zeros((k, 1 if d == 2 else 3)))


def lattice_frame(counts, spacing, pressures, *, low=0.0):
    """Touching balls on a square or cubic lattice under a diagonal stress: each contact carries p a^(d-1).

    The outermost layer is fixed: the walls.
    """
    d = len(counts)
    index = np.stack(np.meshgrid(*(np.arange(c) for c in counts), indexing="ij"), axis=-1).reshape(-1, d)
    number = np.arange(len(index)).reshape(counts)
    contacts = []
    for axis in range(d):
        lower, upper = (np.take(number, range(k, counts[axis] - 1 + k), axis).ravel() for k in (0, 1))
        for a, b in zip(lower, upper, strict=True):
            force = np.zeros(d)
            force[axis] = pressures[axis] * spacing ** (d - 1)
            contacts.append((a, b, low + spacing * (index[a] + index[b]) / 2, force))
    edge = ((index == 0) | (index == np.array(counts) - 1)).any(axis=1)
    return frame_of(low + spacing * index, spacing / 2, contacts, kinds=np.where(edge, FIXED, FREE))


def column(count, d=3):
    """Balls of radius 1/2 on top of each other on a fixed one, under gravity 10."""
    positions = np.zeros((count + 1, d))
    positions[:, -1] = np.arange(count + 1)
    mass = (math.pi / 4 if d == 2 else math.pi / 6) * 10
    up = np.eye(d)[-1]
    contacts = [(k, k + 1, positions[k] + up / 2, up * mass * (count - k)) for k in range(count)]
    return frame_of(positions, 0.5, contacts, kinds=[FIXED] + [FREE] * count, gravity=-10 * up), mass


# ---- forces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_forces_are_impulses_over_the_step_in_space(d):
    force = np.arange(1.0, d + 1)
    frame = frame_of([[0.0] * d, [0.6] + [0.8] * (d - 1)], 0.5, [(0, 1, [0.3] * d, force)])
    assert np.allclose(an.contact_forces(frame), force)
    frame, mass = column(3, d)
    assert np.allclose(an.contact_forces(frame)[:, -1], mass * np.array([3, 2, 1]))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_column_weighs_on_the_ground(d):
    frame, mass = column(4, d)
    assert an.weight_balance(frame) == pytest.approx(1)
    pressure = an.ground_pressure(frame, width=2.0)
    area = math.pi * 4 if d == 3 else 4
    assert pressure.values == pytest.approx([4 * mass / area])
    assert pressure.radii == pytest.approx([1.0])


def test_coordination_chains_and_friction():
    frame, mass = column(4)
    counts = an.coordination(frame)
    assert list(counts.counts) == [2, 2, 2, 1]
    assert counts.mean == pytest.approx(1.75)
    assert counts.bearing == 2
    assert counts.rattlers == 0.25
    chains = an.force_chains(frame)
    assert np.allclose(chains.forces, mass * np.array([4, 3, 2, 1]))
    assert np.allclose(chains.segments[:, 1] - chains.segments[:, 0], [0, 0, 1])
    tangential = frame_of([[0, 0], [0, 1]], 0.5, [(0, 1, [0, 0.5], [0.3, 2.0])])
    assert an.mobilised_friction(tangential, 0.5).ratios == pytest.approx([0.3])
    assert an.mobilised_friction(tangential, 0.15).mean == pytest.approx(1)
    sliding = tangential._replace(contacts=tangential.contacts._replace(status=np.array([SLIDING])))
    assert an.mobilised_friction(sliding, 0.15).sliding == 1


def test_exponential_forces_have_their_decay(rng):
    force = rng.exponential(3.0, 40_000)
    positions = np.zeros((2, 2))
    positions[1, 1] = 1.0
    frame = frame_of(positions, 0.5, [(0, 1, [0, 0.5], [0, f]) for f in force])
    found = an.normal_forces(frame)
    assert found.mean == pytest.approx(3, rel=0.02)
    assert found.decay == pytest.approx(1, rel=0.02)


# ---- stress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_mean_stress_is_the_pressure_of_the_walls(d):
    pressures = np.array([3.0, 5.0, 7.0])[:d]
    frame = lattice_frame([6] * d, 0.5, pressures)
    inside = an.Box((0.25,) * d, (2.25,) * d)  # the cells of the free balls
    found = an.stress(frame, inside)
    assert np.allclose(found.tensor, np.diag(pressures))
    assert found.grains == 4**d
    assert found.pressure == pytest.approx(pressures.mean())
    wall = an.contact_forces(frame)[(frame.contacts.point[:, -1] == 0.25) & (frame.contacts.normal[:, -1] == 1)]
    wall = wall[np.abs(wall[:, -1]) > 0]
    inner = (slice(None), -1)
    assert wall[inner].mean() / 0.5 ** (d - 1) == pytest.approx(found.tensor[-1, -1])


def test_stress_of_one_grain_between_two():
    frame = frame_of([[0, 0], [1, 0], [2, 0]], 0.5, [(0, 1, [0.5, 0], [4.0, 0]), (1, 2, [1.5, 0], [4.0, 0])])
    moments = an.grain_moments(frame)
    assert np.allclose(moments[1], [[4, 0], [0, 0]])
    assert np.allclose(moments[0], [[2, 0], [0, 0]])


def test_unbalanced_moments_show_as_asymmetry():
    frame = frame_of([[0, 0], [1, 0]], 0.5, [(0, 1, [0.5, 0], [0.0, 1.0])])
    found = an.stress(frame, an.Box((0.5, -1), (2, 1)))
    assert found.asymmetry == pytest.approx(1 / math.sqrt(2))


def test_meridian_stress_of_a_ring():
    """Grains around the axis pressed along the radius: only the component rr."""
    contacts, positions = [], []
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        radial = np.array([np.cos(angle), np.sin(angle), 0])
        k = len(positions)
        positions += [3 * radial, 4 * radial, 5 * radial]
        contacts += [(k, k + 1, 3.5 * radial, 2 * radial), (k + 1, k + 2, 4.5 * radial, 2 * radial)]
    kinds = [FIXED, FREE, FIXED] * 12
    frame = frame_of(positions, 0.5, contacts, kinds=kinds)
    ring = an.Cylinder(4.5, -0.5, 0.5, inner=3.5)
    assert ring.volume == pytest.approx(math.pi * 8)
    found = an.stress(frame, ring, meridian=True)
    assert np.allclose(found.tensor, np.diag([12 * 2 / ring.volume, 0, 0]))
    plain = an.stress(frame, ring).tensor
    assert np.allclose(plain, np.diag([12 / ring.volume, 12 / ring.volume, 0]))
    seen = an.stress_map(frame, cell=1.2, reach=6.0, low=-0.6, high=0.6)
    assert seen.grains[:, 0].tolist() == [0, 0, 0, 12, 0]
    ring_volume = np.pi * np.diff(seen.radii**2)
    assert (seen.tensors[:, 0, 0, 0] * ring_volume * 1.2).sum() == pytest.approx(24)


# ---- strips --------------------------------------------------------------------------------------------------------


def test_selection_rule_of_a_cylinder():
    """Centres on either side of the whole cylinder, contact point projecting onto the strip itself."""
    pair = [(0, 1, [1.5, 0, 0.4], [2.0, 1.0, -3.0])]
    frame = frame_of([[1, 0, 0.4], [2, 0, 0.4]], 0.5, pair)
    seen = an.strip(frame, ((1.5, 0), (1.5, 1)))
    assert seen.contacts == 1
    assert seen.area == pytest.approx(2 * math.pi * 1.5)
    assert np.allclose(seen.density * seen.area, [2, -3])
    assert seen.around * seen.area == pytest.approx(1)
    assert np.allclose(seen.normal, [1, 0])
    assert an.strip(frame, ((1.5, 0.5), (1.5, 1))).contacts == 0  # the point projects below the strip
    assert an.strip(frame, ((2.5, 0), (2.5, 1))).contacts == 0  # both centres inside
    assert an.strip(frame, ((1.5, 0.4), (1.5, 1))).contacts == 1  # neighbouring strips share no contact
    assert an.strip(frame, ((1.5, 0), (1.5, 0.4))).contacts == 0
    turned = an.strip(frame, ((1.5, 1), (1.5, 0)))  # the other way round: normal and force turn
    assert np.allclose(turned.density, -seen.density)
    assert turned.pressure == pytest.approx(seen.pressure)


def test_the_order_of_the_bodies_does_not_matter():
    one = frame_of([[1, 0, 0], [2, 0, 0]], 0.5, [(0, 1, [1.5, 0, 0], [2.0, 0, -3.0])])
    two = frame_of([[2, 0, 0], [1, 0, 0]], 0.5, [(0, 1, [1.5, 0, 0], [-2.0, 0, 3.0])])
    cut = ((1.5, -1), (1.5, 1))
    assert np.allclose(an.strip(one, cut).density, an.strip(two, cut).density)


def test_axis_and_meridian_half_plane():
    """The same contact turned about a shifted axis has the same components."""
    cut = ((1.0, -1.0), (2.0, 1.0))
    first = None
    for angle in (0.0, 1.0, 4.0):
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        shift = np.array([3.0, -2.0, 0.0])
        places = [turn @ p + shift for p in ([1.0, 0, 0], [2.0, 0.1, 0])]
        frame = frame_of(places, 0.5, [(0, 1, turn @ [1.5, 0, 0] + shift, turn @ [1.0, 0.5, -2.0])])
        seen = an.strip(frame, cut, axis=(3.0, -2.0))
        first = first or seen
        assert seen.contacts == 1
        assert np.allclose(seen.density, first.density)
        assert seen.area == pytest.approx(math.pi * 3 * math.sqrt(5))


def test_a_horizontal_cut_carries_what_lies_above():
    frame, mass = column(5)
    for z in (0.6, 2.3, 4.6):
        seen = an.strip(frame, ((4.0, z), (0.0, z)))  # inwards: the normal points up
        assert np.allclose(seen.normal, [0, 1])
        above = (frame.positions[:, 2] > z).sum()
        assert seen.density[1] * seen.area == pytest.approx(mass * above)
        assert seen.area == pytest.approx(16 * math.pi)


@pytest.fixture(scope="module")
def isotropic():
    return lattice_frame((37, 37, 21), 0.5, (2.0, 2.0, 2.0))


@pytest.mark.parametrize("segment", [((4, 2), (4, 8)), ((2, 8), (6, 5)), ((7, 5), (2, 5)), ((3, 3), (5, 7))])
def test_cuts_through_a_lattice_under_pressure(isotropic, segment):
    """An isotropic lattice gives T = p n on cylinders, cones and planes, within the error of sampling."""
    seen = an.strip(isotropic, segment, axis=(9.03, 9.06))
    assert seen.pressure == pytest.approx(2, rel=0.05)
    along = np.array([-seen.normal[1], seen.normal[0]])
    assert abs(seen.density @ along) < 0.1


def test_cuts_through_a_plane_lattice():
    frame = lattice_frame((41, 41), 0.5, (2.0, 6.0))
    seen = an.strip(frame, ((4.1, 3.03), (15.2, 14.03)))
    assert np.allclose(seen.density, np.diag([2, 6]) @ seen.normal, rtol=0.05)
    other = an.strip(frame, ((15.2, 3.03), (4.1, 14.03)))
    assert an.reciprocity(seen, other) < 0.05
    wrong = other._replace(density=other.density[::-1])
    assert an.reciprocity(seen, wrong) > 0.5


# ---- shape and density -----------------------------------------------------------------------------------------------


def heap(d, slope, *, spacing=0.1, foot=3.0):
    """Balls at shaken places of a lattice under a cone (a wedge in 2D), on a fixed layer."""
    top = foot * math.tan(slope)
    axes = [np.arange(-foot - spacing, foot + spacing, spacing)] * (d - 1) + [np.arange(0, top, spacing)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    away = np.sqrt((points[:, :-1] ** 2).sum(axis=1))
    points = points[(points[:, -1] <= 1e-9) | (points[:, -1] < top - away * math.tan(slope))]
    shaken = points + np.random.default_rng(1).uniform(-0.4, 0.4, points.shape) * spacing
    return frame_of(shaken, 0.6 * spacing, kinds=np.where(points[:, -1] <= 1e-9, FIXED, FREE))


@pytest.mark.parametrize(("d", "degrees"), [(2, 20.0), (2, 35.0), (3, 15.0), (3, 26.0)])
def test_slope_of_a_cone(d, degrees):
    found = an.slope(heap(d, math.radians(degrees)))
    assert found.degrees == pytest.approx(degrees, abs=0.7)
    assert found.foot == pytest.approx(3, abs=0.2)
    assert found.error < 1.0


def test_grains_in_flight_are_not_the_surface():
    frame = heap(3, math.radians(20))
    flying = np.array([[0.0, 0.0, 5.0]])
    more = frame_of(np.concatenate([frame.positions, flying]), 0.06, kinds=np.append(frame.kinds, FREE))
    assert an.height(more) == pytest.approx(an.height(frame))
    assert an.slope(more).degrees == pytest.approx(an.slope(frame).degrees)


def test_height_above_a_plane():
    frame, _ = column(4)
    level = an.surface(frame).level
    assert an.height(frame) == pytest.approx(4.5 - level, abs=0.02)
    assert 0 < level < 0.5  # mean height of half a ball
    flat = frame_of([[0, 0, 0.5], [0, 0, 1.5]], 0.5)._replace(
        plane_normals=np.array([[0.0, 0, 1]]), plane_points=np.zeros((1, 3))
    )
    assert an.height(flat) == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize(
    ("d", "dense", "fraction"),
    [(2, False, math.pi / 4), (2, True, math.pi / 12**0.5), (3, False, math.pi / 6), (3, True, math.pi / 18**0.5)],
)
def test_packing_of_lattices(d, dense, fraction):
    scene = world(d, density=2.0)
    packings.lattice(scene, material="m", sizes=0.1, counts=[18, 20, 20][:d], origin=[0.0] * d, dense=dense)
    frame = cd.Simulation(scene, time_step=1e-3, check=False).frame()
    cell = np.array([0.1, 0.1 * (3 if dense else 1) ** 0.5, 0.1 * (8 / 3 if dense else 1) ** 0.5])[:d]
    if d == 2 and dense:
        cell = np.array([0.1, 0.1 * 3**0.5])
    low, repeats = np.full(d, 0.5), np.array([10, 5, 5] if dense else [10, 10, 10])[:d]
    box = an.Box(tuple(low), tuple(low + repeats * cell))
    assert an.packing_fraction(frame, box, spacing=0.0047) == pytest.approx(fraction, rel=0.005)
    assert an.volume_mass(frame, box, spacing=0.0047) == pytest.approx(2 * fraction, rel=0.005)


def test_regions_hold_what_they_should(rng):
    points = rng.uniform(-2, 2, (200_000, 3))
    for region in (
        an.Box((-1, 0, -0.5), (1, 1.5, 1.5)),
        an.Cylinder(1.5, -1.0, 0.7),
        an.Cylinder(1.5, -1.0, 0.7, inner=0.8, axis=(0.2, -0.3)),
        an.Under(np.linspace(0, 1.5, 20), 1.0 - np.linspace(0, 1.5, 20), -0.2, (0.0, 0.1)),
    ):
        share = region.contains(points).mean() * 64
        assert share == pytest.approx(region.volume, rel=0.03)
        bottom, top = region.heights(points[:, :2])
        assert (top - bottom).mean() * 16 == pytest.approx(region.volume, rel=0.03)
    wedge = an.Under(np.array([0.0, 2.0]), np.array([1.0, 0.0]), 0.0, (0.0,))
    assert wedge.volume == pytest.approx(2)


# ---- fabric --------------------------------------------------------------------------------------------------------


def contacts_along(directions):
    """Contacts between balls at the ends of directions (k, d)."""
    d = directions.shape[1]
    positions = np.concatenate([np.zeros((1, d)), directions])
    return frame_of(positions, 0.5, [(0, k + 1, n / 2, n) for k, n in enumerate(directions)])


def test_fabric_of_all_and_of_one_direction(rng):
    n = rng.normal(size=(40_000, 3))
    found = an.fabric(contacts_along(n / np.sqrt((n**2).sum(axis=1))[:, None]))
    assert np.allclose(found.tensor, np.eye(3) / 3, atol=0.006)
    assert found.anisotropy < 0.06
    up = an.fabric(contacts_along(np.tile([0.0, 0, 1], (5, 1))))
    assert np.allclose(up.tensor, np.diag([0, 0, 1]))
    assert np.allclose(np.abs(up.axes[0]), [0, 0, 1])


def test_anisotropy_is_the_amplitude_of_the_density(rng):
    angle = rng.uniform(0, 2 * np.pi, 200_000)
    angle = angle[rng.random(len(angle)) < (1 + 0.4 * np.cos(2 * (angle - 0.5))) / 1.4]
    frame = contacts_along(np.stack([np.cos(angle), np.sin(angle)], axis=1)[:60_000])
    found = an.fabric(frame)
    assert found.anisotropy == pytest.approx(0.4, abs=0.03)
    assert math.atan2(found.axes[0, 1], found.axes[0, 0]) % math.pi == pytest.approx(0.5, abs=0.05)
    rose = an.directions(frame, bins=12)
    middle = 0.5 * (rose.edges[1:] + rose.edges[:-1])
    assert np.allclose(rose.density, 1 + 0.4 * np.cos(2 * (middle - 0.5)), atol=0.06)
    assert rose.density.mean() == pytest.approx(1)


def test_three_dimensional_anisotropy(rng):
    n = rng.normal(size=(100_000, 3))
    n /= np.sqrt((n**2).sum(axis=1))[:, None]
    n = n[rng.random(len(n)) < (1 + 0.5 * (1.5 * n[:, 2] ** 2 - 0.5)) / 1.5]
    assert an.fabric(contacts_along(n)).anisotropy == pytest.approx(0.5, abs=0.05)


def test_meridian_directions_follow_the_axis():
    angles = np.linspace(0, 2 * np.pi, 9)[:-1]
    positions, contacts = [], []
    for a in angles:
        radial, k = np.array([np.cos(a), np.sin(a), 0]), len(positions)
        lean = (radial + np.array([0, 0, 1.0])) / math.sqrt(2)
        positions += [3 * radial, 3 * radial + lean]
        contacts.append((k, k + 1, 3 * radial + lean / 2, lean))
    frame = frame_of(positions, 0.5, contacts)
    found = an.fabric(frame, meridian=True)
    assert np.allclose(found.tensor, [[0.5, 0, 0.5], [0, 0, 0], [0.5, 0, 0.5]], atol=1e-12)
    rose = an.directions(frame, meridian=True, bins=6)
    assert list(rose.density) == [0, 6, 0, 0, 0, 0]


# ---- a pile --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pile(tmp_path_factory):
    """A small pile at rest, at its end solved tightly, and its file."""
    path = tmp_path_factory.mktemp("pile") / "run.h5"
    scene = world(3, gravity=981.0, friction=0.4)
    packings.pavement(scene, material="m", sizes=(0.25, 0.5), extent=3.0, seed=1)
    floor(scene, position=(0, 0, -0.25))
    pour = packings.Pour(scene, material="m", sizes=(0.25, 0.5), rate=1000.0, count=60, radius=0.8, seed=1)
    sim = cd.Simulation(scene, time_step=5e-4, recorders=[cd.HDF5(path, every=0.1)])
    sim.before_step.append(pour)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)  # grains that fall sink in by about a tenth at this step
        sim.run(until=1.0, progress=False)
    sim.tolerance, sim.max_iterations = 1e-6, 20_000
    sim.run(until=1.05, progress=False)
    return sim, path


def test_a_pile_in_equilibrium(pile):
    frame = pile[0].frame()
    weights = frame.masses * 981
    assert an.weight_balance(frame) == pytest.approx(1, abs=1e-4)
    pressure = an.ground_pressure(frame, width=0.5)
    total = (pressure.values * math.pi * np.diff(pressure.edges**2)).sum()
    assert total == pytest.approx(weights[frame.kinds == FREE].sum(), rel=1e-4)
    z = 0.45
    cut = an.strip(frame, ((9.0, z), (0.0, z)))
    above = weights[(frame.kinds == FREE) & (frame.positions[:, 2] > z)].sum()
    assert cut.density[1] * cut.area == pytest.approx(above, rel=1e-3)
    box = an.Box((-5, -5, 0.0), (5, 5, 3.0))
    assert an.stress(frame, box).asymmetry < 1e-3
    assert 3 < an.coordination(frame).bearing < 7
    assert an.mobilised_friction(frame, 0.4).ratios.max() < 1 + 1e-6


def test_stress_balances_walls_and_weights(pile):
    """Sum of moments = - sum over contacts with the ground of F x - sum of weights x: the virial."""
    frame = pile[0].frame()
    moments = an.grain_moments(frame)[frame.kinds == FREE].sum(axis=0)
    rows = np.searchsorted(frame.identities, frame.contacts.bodies)
    outer = frame.kinds[rows[:, 0]] == FIXED  # fixed bodies come first: the force is that on the grain
    force, point = an.contact_forces(frame)[outer], frame.contacts.point[outer]
    free = frame.kinds == FREE
    weight = frame.masses[free, None] * frame.gravity
    expected = -np.einsum("ki,kj->ij", force, point) - np.einsum("ki,kj->ij", weight, frame.positions[free])
    assert np.allclose(moments, expected, atol=2e-3 * np.abs(moments).max())


def test_a_file_gives_the_same_numbers(pile):
    sim, path = pile
    with cd.open(path) as recording:
        stored, live = recording[-1], sim.frame()
        assert an.weight_balance(stored) == an.weight_balance(live)
        assert an.slope(stored).degrees == an.slope(live).degrees
        assert np.array_equal(an.grain_moments(stored), an.grain_moments(live))


def test_an_exported_file_is_small_and_serves(pile, tmp_path, monkeypatch):
    sim, path = pile
    small = tmp_path / "small.h5"
    archive.export_frames(path, small, [0.3, 1.05], full=[1.05], note={"commit": "abc"})
    with cd.open(small) as recording, cd.open(path) as whole:
        assert len(recording) == 2
        assert recording.parameters["about"]["commit"] == "abc"
        last = recording[-1]
        assert last.positions.dtype == float
        assert an.weight_balance(last) == pytest.approx(an.weight_balance(sim.frame()), rel=1e-6)
        light = recording.at(0.3)
        assert np.allclose(light.positions, whole.at(0.3).positions, atol=1e-6)
        assert an.weight_balance(light) == pytest.approx(an.weight_balance(whole.at(0.3)), rel=1e-5)
        assert recording.steps == whole.steps == sim.steps
        assert recording.log["iterations"].mean() == pytest.approx(whole.log["iterations"].mean())
        assert recording.log["residual"].max() == pytest.approx(whole.log["residual"].max())
    assert small.stat().st_size < 0.4 * path.stat().st_size
    with pytest.raises(cd.InputError, match="some frames"):
        cd.Simulation.from_file(small)
    monkeypatch.setattr(archive, "LOG_ROWS", 10)  # a row then tells the mean of some steps, and `cdyn info` must say so
    with pytest.raises(cd.InputError, match="already"):
        archive.export_frames(path, small, [0.3])
    with pytest.raises(cd.InputError, match="already"):
        archive.export_frames(path, path, [0.3], overwrite=True)  # never itself
    archive.export_frames(path, small, [0.3], overwrite=True)
    with cd.open(small) as recording, cd.open(path) as whole:
        block = round(whole.steps / 10)
        assert f" in {block} steps on the mean)" in "".join(storage.describe(recording))
        assert "on the mean" not in "".join(storage.describe(whole))
    with pytest.raises(cd.InputError, match="no times"):
        archive.export_frames(path, small, [], overwrite=True)


def test_results_draw_themselves(pile):
    frame = pile[0].frame()
    import matplotlib.pyplot as plt

    drawn = [
        an.slope(frame).plot(), an.normal_forces(frame).plot(), an.directions(frame, meridian=True).plot(),
        an.ground_pressure(frame, width=0.5).plot(), an.mobilised_friction(frame, 0.4).plot(),
        an.force_chains(frame).plot(), an.stress_map(frame, cell=0.5, reach=2, low=0, high=2).plot(fewest=2),
    ]  # fmt: skip
    for ax in drawn:
        assert ax.has_data() or ax.collections
        ax.figure.canvas.draw()
    plt.close("all")


def test_a_level_surface_has_no_foot():
    """Squares side by side, all of one height: whatever the rounding of their profile, the line through it is level."""
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add_many(cd.Rectangle(0.2, 0.2), material="m", position=[(0.2 * k, 0.1) for k in range(-20, 21)])
    shape = an.slope(cd.Simulation(scene, time_step=1e-3, check=False).frame())
    assert shape.degrees == 0 and shape.foot == np.inf and shape.apex == pytest.approx(0.2)
    assert np.isfinite(shape.plot().lines[1].get_ydata()).all()
