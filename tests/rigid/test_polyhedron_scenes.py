"""Blocks in three dimensions, in motion and at rest: closed forms, statics, ledger, memory, files, threads."""

import math
from itertools import pairwise

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.plotting import plot_scene
from contactdynamics.quaternions import matrix
from contactdynamics.rigid.search.touches import NAME_ONE, NAME_TWO
from contactdynamics.rigid.step import Step
from rigid_tools import G, assert_closed, assert_problem_is_of_next_step, run, start, world

Z = np.array([0.0, 0.0, 1.0])


def ground(scene, **options):
    return scene.add(cd.Plane((0, 0, 1)), material="m", **({"fixed": True} | options))


def table(scene, kind, side=40.0):
    """A floor at z = 0: a plane, a large box, or a body of two boxes side by side."""
    if kind == "plane":
        return ground(scene)
    if kind == "box":
        return scene.add(cd.Box((side, side, 1)), material="m", position=(0, 0, -0.5), fixed=True)
    halves = [
        cd.Polyhedron.prism([(x, -side), (x + side, -side), (x + side, side), (x, side)], 1.0) for x in (-side, 0)
    ]
    return scene.add(cd.Cluster(halves), material="m", position=(0, 0, -0.5), fixed=True)


def turn(axis, angle):
    axis = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis)])


# ---- one block -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("plane", "moreau"),
        ("box", "anticipate"),
        ("cluster", "moreau"),
        pytest.param("plane", "anticipate", marks=pytest.mark.slow),
        pytest.param("box", "moreau", marks=pytest.mark.slow),
        pytest.param("cluster", "anticipate", marks=pytest.mark.slow),
    ],
)
def test_a_block_slides_down_a_slope(kind, mode):
    # a = g (sin s - gamma cos s); a constant force is integrated exactly by the midpoint scheme. On the cluster the
    # block slides over the seam of the two parts.
    slope, friction = 0.5, 0.3
    scene = world(3, slope=slope, friction=friction)
    table(scene, kind)
    block = scene.add(cd.Box((0.4, 0.3, 0.2)), material="m", position=(-0.15, 0, 0.1), rotation=turn(Z, 0.3))
    sim = run(scene, 1e-3, 0.5, penetration=mode)
    a = G * (math.sin(slope) - friction * math.cos(slope))
    assert sim.velocities[block, 0] == pytest.approx(a * 0.5, rel=1e-6)
    assert abs(sim.positions[block, 2] - 0.1) < 1e-8 and np.abs(sim.spins[block]).max() < 1e-6


@pytest.mark.parametrize(("share", "slides"), [(1 - 1e-6, False), (1 + 1e-6, True)])
def test_a_block_sticks_or_slides_at_the_angle_of_friction(share, slides):
    gamma = 0.6
    scene = world(3, slope=share * math.atan(gamma), friction=gamma)
    ground(scene)
    block = scene.add(cd.Box((0.5, 0.4, 0.2)), material="m", position=(0, 0, 0.1))
    sim = start(scene, 1e-3, tolerance=1e-9)
    sim.run(until=0.2, progress=False)
    expected = G * (math.sin(share * math.atan(gamma)) - gamma * math.cos(share * math.atan(gamma))) * 0.2
    if slides:
        assert sim.velocities[block, 0] == pytest.approx(expected, rel=1e-3)
    else:
        assert np.abs(sim.velocities[block]).max() < 1e-3 * abs(expected)


@pytest.mark.parametrize(("share", "falls"), [(0.98, False), (1.02, True)])
def test_a_block_topples_when_its_weight_leaves_the_base(share, falls):
    # On a rough slope s a block of base b and height h topples where tan s > b / h; falling along a diagonal of the
    # base, over a corner, where tan s > sqrt(2) b / h.
    b, h = 0.2, 0.5
    for angle, base in ((0.0, b), (math.pi / 4, math.sqrt(2) * b)):
        scene = world(3, slope=math.atan(share * base / h), friction=2.0)
        ground(scene)
        block = scene.add(cd.Box((b, b, h)), material="m", position=(0, 0, 0.5 * h), rotation=turn(Z, angle))
        sim = cd.Simulation(scene, time_step=1e-3)
        assert bool(sim.is_equilibrium()) is not falls
        sim.run(until=1.0, progress=False)
        assert bool(matrix(sim.rotations[block])[2, 2] < 0.99) is falls


def test_a_box_lands_flat():
    # All the momentum is gone after one impact; the energy of the fall is the work of the contacts.
    scene = world(3, density=2000.0, friction=0.5)
    ground(scene)
    block = scene.add(cd.Box((0.6, 0.4, 0.2)), material="m", position=(0, 0, 0.1 + 0.2))
    sim = run(scene, 1e-3, 0.6)
    mass = 2000 * 0.048
    assert np.abs(sim.velocities[block]).max() < 1e-9 and np.abs(sim.spins[block]).max() < 1e-9
    fall = 0.3 - sim.positions[block, 2]
    assert fall == pytest.approx(0.2, abs=3e-3)  # it stays as deep as it came in, up to v h
    assert sim.energy.normal_work.sum() == pytest.approx(-mass * G * fall, rel=1e-9)
    assert np.abs(sim.rotations[block, 1:]).max() < 1e-9


def test_pressure_under_a_block():
    # Forces and torques at the centre: sum N = m g, and the centre of pressure is where the resultant meets the ground.
    scene = world(3, density=10.0, friction=0.9)
    ground(scene)
    size, force, torque = np.array([0.6, 0.5, 0.4]), np.array([1.0, -0.6, 0.0]), np.array([0.2, 0.0, 0.0])
    block = scene.add(cd.Box(size), material="m", position=(0, 0, 0.2))
    scene.force(block, force, torque)
    sim = start(scene, 1e-3)
    sim.step()
    contacts, weight = sim.contacts, 10 * size.prod() * G
    normal = contacts.impulse[:, 0] / sim.time_step
    push = np.einsum("kij,ki->kj", contacts.frame, contacts.impulse) / sim.time_step
    np.testing.assert_allclose(push.sum(axis=0), [-1.0, 0.6, weight], rtol=1e-8)
    moment = np.cross(contacts.point - sim.positions[block], push).sum(axis=0)
    np.testing.assert_allclose(moment, -torque, atol=1e-8)
    assert (normal > 0).all()


@pytest.mark.parametrize("friction", [0.0, 2.0])
def test_one_corner_hits_a_table(friction):
    # Inelastic impact of the lowest corner of a box that falls without spin: with r from the centre to the corner and
    # W = 1/m + K(r), K(r) = r~^T I^-1 r~, the impulse P solves n . W P = v (frictionless), W P = v n (sticking).
    scene = world(3, gravity=0.0, friction=friction)
    ground(scene)
    box, q, v = cd.Box((1.0, 0.6, 0.3)), turn((1, 2, 0.5), 0.7), 1.0
    corners = box.vertices @ matrix(q).T
    r = corners[corners[:, 2].argmin()]
    rod = scene.add(box, material="m", position=(0, 0, -r[2] + 1e-9), velocity=(0, 0, -v), rotation=q)
    sim = start(scene, 1e-6)
    sim.step()
    mass = 0.18
    inverse = matrix(q) @ np.diag(1 / np.diag(box.mass_properties().inertia)) @ matrix(q).T
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    block = np.eye(3) / mass - cross @ inverse @ cross
    impulse = np.linalg.solve(block, v * Z) if friction else v / block[2, 2] * Z
    np.testing.assert_allclose(sim.spins[rod], inverse @ np.cross(r, impulse), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sim.velocities[rod], impulse / mass - v * Z, rtol=1e-4, atol=1e-6)


def test_free_flight_of_a_spinning_box():
    # Energy and the size of the angular momentum are kept to rounding, its direction to second order in the step.
    errors = []
    for h in (1e-3, 5e-4):
        scene = cd.Scene(gravity=(0, 0, 0))
        scene.material("m", density=1000.0, friction=0.5)
        body = scene.add(cd.Box((0.6, 0.4, 0.1)), material="m", velocity=(1, 2, 3), spin=(4.0, 0.3, 5.0),
                         rotation=turn((1, 1, 1), 0.5))  # fmt: skip
        sim = cd.Simulation(scene, time_step=h)

        def momentum(sim=sim, body=body):
            axes = matrix(sim.rotations[body])
            inertia = cd.Box((0.6, 0.4, 0.1)).mass_properties().inertia * 1000.0
            return axes @ inertia @ axes.T @ sim.spins[body]

        energy, first = sim.energy.kinetic, momentum()
        sim.run(until=0.5, progress=False)
        assert sim.energy.kinetic == pytest.approx(energy, rel=1e-12)
        assert np.linalg.norm(momentum()) == pytest.approx(np.linalg.norm(first), rel=1e-12)
        np.testing.assert_allclose(sim.positions[body], [0.5, 1.0, 1.5], rtol=1e-12)
        errors.append(np.linalg.norm(momentum() - first) / np.linalg.norm(first))
    assert errors[0] < 1e-3 and errors[1] < 0.3 * errors[0]


def test_energy_kept_per_impact_of_a_rocking_block():
    # Housner (1963): a slender block that rocks keeps r = (1 - 3/2 sin^2 a)^2 of its energy at each impact, tan a =
    # b / h; 0.831 for the block 1 : 4. With all four corners as contacts the impact is his: the whole edge is struck.
    b, h = 0.25, 1.0
    alpha = math.atan(b / h)
    share = (1 - 1.5 * math.sin(alpha) ** 2) ** 2
    assert share == pytest.approx(0.831, abs=5e-4)
    scene = world(3, density=2000.0, friction=5.0)
    ground(scene)
    tilt, arm = 0.4 * alpha, 0.5 * math.hypot(b, h)
    place = (-b / 2 + arm * math.sin(alpha - tilt), 0, arm * math.cos(alpha - tilt))
    block = scene.add(cd.Box((b, 0.5, h)), material="m", position=place, rotation=turn((0, 1, 0), -tilt))
    sim = cd.Simulation(scene, time_step=2e-4, tolerance=1e-8)
    rest = 2000 * b * 0.5 * h * G * h / 2
    energy = [sim.energy.kinetic + sim.energy.potential - rest]
    lean = sim.rotations[block][2]
    while len(energy) < 4:
        sim.step()
        now = sim.rotations[block][2]
        if now * lean < 0:
            for _ in range(20):
                sim.step()
            energy.append(sim.energy.kinetic + sim.energy.potential - rest)
            lean = sim.rotations[block][2]
    kept = np.array(energy[1:]) / energy[:-1]
    np.testing.assert_allclose(kept, share, rtol=0.01)


# ---- structures ------------------------------------------------------------------------------------------------------


def wall_scene(courses=5, length=4, floor="box", friction=0.6):
    """A wall in running bond of blocks 1 x 0.5 x 0.5, half blocks at the ends of every second course."""
    scene = world(3, density=2000.0, friction=friction)
    table(scene, floor)
    for k in range(courses):
        cuts = np.arange(length + 1.0) if k % 2 == 0 else np.array([0, *(np.arange(length) + 0.5), length])
        for left, right in pairwise(cuts):
            scene.add(
                cd.Box((right - left, 0.5, 0.5)), material="m", position=(0.5 * (left + right), 0, 0.25 + 0.5 * k)
            )
    return scene


@pytest.mark.parametrize("floor", ["plane", "box"])
def test_a_tower_of_cubes_weighs_what_it_weighs(floor):
    scene = world(3, density=2000.0, friction=0.5)
    table(scene, floor)
    for k in range(10):
        scene.add(cd.Box(0.3), material="m", position=(0.02 * (-1) ** k, 0, 0.3 * k + 0.15), rotation=turn(Z, 0.2 * k))
    sim = cd.Simulation(scene, time_step=1e-3)
    first = sim.positions
    sim.run(until=0.5, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.3
    contacts, weight = sim.contacts, 2000 * 0.027 * G
    for k in range(10):  # every joint carries what is above
        here = np.abs(contacts.point[:, 2] - 0.3 * k) < 0.1
        assert contacts.impulse[here, 0].sum() / sim.time_step == pytest.approx((10 - k) * weight, rel=1e-5)


def test_a_wall_does_not_creep():
    sim = cd.Simulation(wall_scene(), time_step=1e-3)
    first, angles = sim.positions, sim.rotations
    assert sim.is_equilibrium()
    sim.run(until=1.0, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.25
    assert np.abs(sim.rotations - angles).max() < 1e-6
    assert np.abs(sim.velocities).max() < 1e-7


def test_an_arch_with_depth_stands_or_falls():
    # A semicircular arch stands where thickness over radius is 0.1075 or more (Milankovitch, Heyman).
    def arch(thickness, voussoirs=15, depth=0.4):
        scene = world(3, density=2000.0, friction=0.7)
        table(scene, "box")
        angles = np.linspace(0, np.pi, voussoirs + 1)
        for a, b in pairwise(angles):
            ring = [(1 + s * thickness / 2, t) for t, s in ((a, -1), (a, 1), (b, 1), (b, -1))]
            points = [(r * math.cos(t), y, r * math.sin(t)) for r, t in ring for y in (-depth / 2, depth / 2)]
            shape = cd.Polyhedron(points)
            scene.add(shape, material="m", position=shape.center_of_mass)
        return cd.Simulation(scene, time_step=1e-3)

    sim = arch(0.2)
    assert sim.is_equilibrium() and not arch(0.07).is_equilibrium()
    first = sim.positions
    sim.run(until=0.5, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6


def heap(seed=1, **options):
    """Blocks, rocks, spheres and a body of two parts that fall on each other into a box without lid."""
    random = np.random.default_rng(seed)
    scene = world(3, density=1000.0, friction=0.4)
    ground(scene)
    scene.add(cd.Box((2, 0.1, 0.5)), material="m", position=(0, 0.55, 0.25), fixed=True)
    ell = cd.Cluster([cd.Box((0.4, 0.1, 0.1)), cd.Box((0.1, 0.1, 0.3))], [(0, 0, 0), (0.15, 0, 0.2)])
    for k in range(7):
        shape = (cd.Box((0.3, 0.2, 0.1)), cd.Polyhedron.irregular(0.15, seed=random), cd.Sphere(0.1), ell,
                 cd.Polyhedron.regular(4, 0.2))[k % 5]  # fmt: skip
        rotation = None if k % 5 == 2 else random.normal(size=4)
        scene.add(shape, material="m", position=(*random.uniform(-0.1, 0.1, 2), 0.4 + 0.45 * k), rotation=rotation)
    defaults = {"time_step": 5e-4, "on_failure": "ignore", "penetration": "anticipate"}
    return cd.Simulation(scene, **(defaults | options))


@pytest.mark.filterwarnings("ignore::contactdynamics.errors.StepWarning")
@pytest.mark.parametrize("mode", [pytest.param("moreau", marks=pytest.mark.slow), "anticipate"])
def test_a_heap_comes_to_rest_and_the_ledger_closes(mode):
    sim = heap(penetration=mode, tolerance=1e-6, max_iterations=3000)
    sim.first_kinetic = 0.0
    while sim.time < 3.0:
        sim.step()
    assert_closed(sim, 1e-9)
    assert np.abs(np.delete(sim.velocities, 4, axis=0)).max() < 0.05  # the sphere may roll away
    # A corner comes at up to 8 m/s, 4 mm or 8 % of the thinnest part in a step; two can meet.
    assert sim.watch.overlap < (0.16 if mode == "moreau" else 0.08)
    frame = sim.frame()
    assert frame.solid_corners[:, 2].min() > -0.01
    # What lies on the ground and leans on the fixed box is pressed by them as much as it weighs.
    contacts, held = frame.contacts, np.isin(frame.contacts.bodies, [0, 1]).any(axis=1)
    push = np.einsum("kij,ki->kj", contacts.frame, contacts.impulse)[held].sum(axis=0) / frame.time_step
    assert push[2] == pytest.approx(frame.masses[2:].sum() * G, rel=0.03)  # but for what still rocks


def test_a_sphere_on_a_box_moves_as_on_a_plane():
    # Sliding becomes rolling at v = (5 v_0 + 2 r w_0) / 7.
    ends = []
    for kind in ("plane", "box"):
        scene = world(3, friction=0.3)
        table(scene, kind)
        ball = scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 0.1), velocity=(1, 0, 0), spin=(0, 2.0, 0))
        sim = run(scene, 1e-3, 1.0, penetration="anticipate")
        ends.append(np.concatenate([sim.positions[ball], sim.velocities[ball], sim.spins[ball]]))
    assert ends[1][3] == pytest.approx((5 + 0.4) / 7, rel=1e-4)
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-8)


def test_a_driven_box_carries_and_pushes():
    # A block on a lift that rises at 0.5 m/s goes with it; the drive works m g v t. Pushed sideways on a rough floor
    # it moves at the speed of the pusher against gamma m g.
    scene = world(3, density=1000.0, friction=0.3)
    scene.material("ice", density=1000.0, friction=0.0)
    scene.contact("ice", "m", friction=0.0)
    ground(scene)
    scene.add(cd.Box((1, 1, 0.2)), material="m", position=(5, 0, 0.1), motion=(0, 0, 0.5))
    lifted = scene.add(cd.Box(0.4), material="m", position=(5, 0, 0.4), velocity=(0, 0, 0.5))
    scene.add(cd.Box((0.2, 1, 0.2)), material="ice", position=(-0.3, 0, 0.2), motion=(0.25, 0, 0))
    pushed = scene.add(cd.Box(0.4), material="m", position=(0, 0, 0.2), velocity=(0.25, 0, 0))
    sim = start(scene, 1e-3, tolerance=1e-9)
    sim.run(until=1.0, progress=False)
    mass = 64.0
    np.testing.assert_allclose(sim.positions[lifted], [5, 0, 0.9], atol=1e-6)
    assert sim.positions[pushed, 0] == pytest.approx(0.25, abs=1e-6)
    assert sim.energy.drive_work == pytest.approx(mass * G * 0.5 + 0.3 * mass * G * 0.25, rel=1e-5)
    assert_closed(sim)


# ---- laws ------------------------------------------------------------------------------------------------------------


def hanging(force, **law):
    """A cube glued or held below a fixed box, pulled down by ``force`` besides its weight."""
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5, **law)
    scene.add(cd.Box(1.0), material="m", position=(0, 0, 0.5), fixed=True)
    body = scene.add(cd.Box(0.2), material="m", position=(0, 0, -0.1))
    scene.force(body, (0, 0, -force))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9, max_iterations=5000)
    sim.run(until=0.1, progress=False)
    return sim.positions[body, 2] + 0.1


@pytest.mark.parametrize("law", ["cohesion", "tension"])
def test_four_corners_hold_four_times_the_bond(law):
    # Each contact bears a pull of 10 N: four corners 40 N.
    # (A pull that one contact could not bear alone may also let go of all, one after the other: see `balance`.)
    assert abs(hanging(9.0, **{law: 10.0})) < 1e-6
    assert hanging(41.0, **{law: 10.0}) < -1e-5


def test_anisotropic_friction_is_stated_in_the_axes_of_the_body():
    # Coefficients 0.2 along x and 0.6 along y of the block: on a slope of tan 0.4 it slides along its x, not along y.
    for angle, slides in ((0.0, True), (math.pi / 2, False)):
        scene = cd.Scene(gravity=(G * math.sin(math.atan(0.4)), 0, -G * math.cos(math.atan(0.4))))
        scene.material("block", density=1000.0)
        scene.material("floor", density=1000.0)
        scene.contact("block", "floor", anisotropic=(0.2, 0.6), axis=(1, 0, 0))
        scene.add(cd.Box((10, 10, 1)), material="floor", position=(0, 0, -0.5), fixed=True)
        body = scene.add(cd.Box((0.4, 0.4, 0.2)), material="block", position=(0, 0, 0.1), rotation=turn(Z, angle))
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9)
        sim.run(until=0.2, progress=False)
        expected = G * (math.sin(math.atan(0.4)) - 0.2 * math.cos(math.atan(0.4))) * 0.2 if slides else 0.0
        assert sim.velocities[body, 0] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_static_friction_holds_what_sliding_friction_does_not():
    for speed, stays in ((0.0, True), (0.05, False)):
        scene = world(3, slope=math.atan(0.5), friction=0.3, static_friction=0.6)
        ground(scene)
        body = scene.add(cd.Box((0.5, 0.5, 0.2)), material="m", position=(0, 0, 0.1), velocity=(speed, 0, 0))
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9)
        sim.run(until=0.2, progress=False)
        assert bool(sim.velocities[body, 0] < 1e-9) is stays


def test_restitution_of_a_block_that_lands_flat():
    scene = world(3, gravity=0.0, friction=0.3, restitution=0.5)
    ground(scene)
    body = scene.add(cd.Box((0.4, 0.4, 0.2)), material="m", position=(0, 0, 0.1), velocity=(0, 0, -1))
    sim = start(scene, 1e-3)
    sim.step()
    np.testing.assert_allclose(sim.velocities[body], (0, 0, 0.5), atol=1e-8)


def test_spinning_resistance_stops_a_spinning_block_on_its_point():
    # A regular octahedron balanced on a corner without gravity cannot be held by friction at one point; spinning
    # resistance takes its spin about the vertical at the rate spinning N / I.
    scene = world(3, density=1000.0, friction=0.5, spinning=0.01)
    ground(scene)
    shape = cd.Polyhedron.regular(8, 0.2)
    body = scene.add(shape, material="m", position=(0, 0, 0.2), spin=(0, 0, 1.0))
    sim = cd.Simulation(scene, time_step=1e-4, tolerance=1e-9, max_iterations=5000)
    for _ in range(100):
        sim.step()
    properties = shape.mass_properties()
    rate = 0.01 * properties.volume * G / properties.inertia[2, 2]
    assert sim.spins[body, 2] == pytest.approx(1.0 - rate * sim.time, rel=1e-4)


# ---- questions, bodies that come and go, files -----------------------------------------------------------------------


def detected(sim):
    sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
    return sim.contact_set


def test_overlaps_are_refused_and_repaired():
    scene = world(3, friction=0.5)
    ground(scene)
    scene.add_many(cd.Box((0.4, 0.3, 0.2)), material="m", position=[(0, 0, 0.09), (0.38, 0.02, 0.09), (0.1, 0, 0.27)])
    with pytest.raises(cd.InputError, match=r"Bodies . and . overlap by \d+% of the smaller one's inner radius"):
        cd.Simulation(scene, time_step=1e-3)
    sim = cd.Simulation(scene, time_step=1e-3, repair=True)
    assert detected(sim).deepest(sim.model)[0].share < 1e-8


def test_recovery_opens_an_overlap():
    scene = world(3, density=1000.0, friction=0.5)
    ground(scene)
    block = scene.add(cd.Box(1.0), material="m", position=(0, 0, 0.49), rotation=turn(Z, 0.3))
    sim = cd.Simulation(scene, time_step=1e-3, recovery=0.1, tolerance=1e-8)
    heights = [0.49]
    for _ in range(200):
        sim.step()
        heights.append(sim.positions[block, 2])
        assert np.abs(sim.velocities).max() < 1e-6
    assert np.diff(heights).max() <= 1e-4 * (1 + 1e-9)
    left = 0.5 - heights[-1]
    assert 0.5 * sim.RECOVER_TO * 0.5 < left <= sim.RECOVER_ABOVE * 0.5
    assert sim.energy.recovery_work == pytest.approx(1000.0 * G * (0.01 - left), rel=1e-6)


def test_recovery_that_turns_a_spinning_block_keeps_its_energy():
    # A block that is no cube lies 1 cm deep with one corner and spins. Recovery turns it: at a fixed spin in space its
    # energy would be another one, while the ledger has booked the step. The components of its spin along its own axes
    # are the velocity of the papers, and stay.
    scene = world(3, gravity=0.0, density=1000.0, friction=0.3)
    ground(scene)
    rotation, corners = turn((1, 2, 0.5), 0.6), np.array([0.2, 0.1, 0.4])
    low = (np.abs(matrix(rotation)[2]) * corners).sum()
    block = scene.add(cd.Box(2 * corners), material="m", position=(0, 0, low - 0.01), rotation=rotation, spin=(1, 4, 9))
    sim = cd.Simulation(scene, time_step=1e-3, recovery=0.5, tolerance=1e-10, check=False)
    mass = 1000.0 * 8 * corners.prod()
    inertia = mass / 3 * (corners @ corners - corners**2)
    for _ in range(5):
        sim.step()
        own = matrix(sim.rotations[block]).T @ sim.spins[block]
        kinetic = 0.5 * mass * (sim.velocities[block] ** 2).sum() + 0.5 * inertia @ own**2
        assert kinetic == pytest.approx(sim.energy.kinetic, rel=1e-12)
    assert sim.positions[block, 2] > low - 0.008 and np.abs(sim.velocities[block]).max() < 10  # lifted, not thrown


def test_the_problem_of_a_heap_is_that_of_its_next_step():
    sim = heap(tolerance=1e-9, max_iterations=20_000)
    while sim.time < 0.9:
        sim.step()
    assert_problem_is_of_next_step(sim, 8, rel=1e-2, abs_=1e-11)


def test_bodies_come_and_go():
    # The tower keeps standing, and its contacts their memory, when others come and go; what stood on a block falls.
    sim = cd.Simulation(wall_scene(courses=3, length=2), time_step=1e-3)
    sim.run(until=0.05, progress=False)
    before = sim.positions
    new = sim.add(cd.Box(0.4), material="m", position=(5, 0, 0.2))
    rocks = sim.add_many([cd.Polyhedron.irregular(0.2, seed=k) for k in range(3)], material="m",
                         position=[(5, 2, 0.5), (5, 3, 0.5), (5, 4, 0.5)],
                         rotation=[turn(Z, k) for k in range(3)])  # fmt: skip
    step = sim.step()
    assert step.report.iterations <= 20 and len(sim.positions) == len(before) + 4
    sim.remove([new, *rocks])
    sim.run(until=0.1, progress=False)
    np.testing.assert_allclose(sim.positions, before, atol=1e-8)
    sim.remove(1)  # under the upper courses
    sim.run(until=0.5, progress=False)
    assert sim.positions[:, 2].max() > 1.0 and np.abs(sim.positions - np.delete(before, 1, axis=0)).max() > 0.1


def test_a_resumed_run_has_the_same_bits(tmp_path):
    path = tmp_path / "run.h5"
    whole = heap()
    whole.run(until=1.2, progress=False)
    part = heap(recorders=[cd.HDF5(path, every=0.2)])
    part.run(until=0.8, progress=False)
    again = cd.Simulation.from_file(path)
    again.run(until=1.2, progress=False)
    assert len(again.contacts.gap) > 10
    for name in ("positions", "rotations", "velocities"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    np.testing.assert_array_equal(whole.contacts.impulse, again.contacts.impulse)
    with cd.open(path) as recording:
        frame = recording[-1]
        live = part.frame()
        np.testing.assert_array_equal(frame.solid_corners, live.solid_corners)
        np.testing.assert_array_equal(frame.face_corners, live.face_corners)
        assert len(frame.face_starts) == len(frame.face_bodies) + 1


def test_threads_change_no_bit():
    runs = []
    for threads in (1, 2):
        sim = cd.Simulation(wall_scene(courses=8, length=8), time_step=1e-3, threads=threads)
        sim.gravity = (3.0, 2.0, -9.0)
        sim.run(until=0.03, progress=False)
        assert len(sim.contacts.gap) > 500
        runs.append(np.concatenate([sim.positions, sim.velocities, sim.spins]))
    np.testing.assert_array_equal(*runs)


def test_both_solvers_give_the_same_motion():
    # A wall under tilted gravity, whose blocks slide and open: the velocities of a step are unique, the impulses not.
    ends = []
    for solver in ("accelerated", "nlgs"):
        sim = cd.Simulation(wall_scene(courses=3, length=2), time_step=1e-3, solver=solver, tolerance=1e-7,
                            max_iterations=20_000)  # fmt: skip
        sim.gravity = (5.0, 3.0, -8.0)
        sim.run(until=0.02, progress=False)
        assert np.abs(sim.velocities).max() > 0.01  # it slides
        ends.append(sim.velocities)
    np.testing.assert_allclose(*ends, atol=1e-5)


@pytest.mark.parametrize("angle", [0.7, 2.5])
def test_a_turned_scene_gives_a_turned_result(angle):
    # About the vertical: the frames of contacts, neither the cells nor the order of a sweep, may matter.
    ends = []
    for turned in (0.0, angle):
        q, r = turn(Z, turned), matrix(turn(Z, turned))
        scene = world(3, density=1000.0, friction=0.4)
        ground(scene)
        scene.add(cd.Box((0.5, 0.4, 0.2)), material="m", position=r @ (0, 0, 0.1), rotation=q)
        scene.add(
            cd.Box((0.2, 0.2, 0.5)), material="m", position=r @ (0.1, 0.05, 0.5), rotation=q, velocity=r @ (1, 0.5, 0)
        )
        sim = start(scene, 1e-3, tolerance=1e-8)
        sim.run(until=0.25, progress=False)
        ends.append(sim.positions @ r)
    np.testing.assert_allclose(*ends, atol=1e-7)


def test_memory_is_kept_while_blocks_rest():
    sim = cd.Simulation(wall_scene(courses=3, length=2), time_step=1e-3)
    sim.run(until=0.02, progress=False)
    names = sim.contact_set.searches[-1].found.index[:, [NAME_ONE, NAME_TWO]].copy()
    sim.run(until=0.1, progress=False)
    np.testing.assert_array_equal(names, sim.contact_set.searches[-1].found.index[:, [NAME_ONE, NAME_TWO]])
    assert sim.step().report.iterations == 1


def test_a_frame_can_be_drawn():
    import matplotlib.pyplot as plt

    sim = heap()
    while sim.time < 0.5:
        sim.step()
    ax = plot_scene(sim.frame())
    ax.figure.canvas.draw()
    plt.close(ax.figure)


def test_a_large_wall_begins_with_what_holds_all_contacts():
    def wall(tilt):
        scene = cd.Scene(gravity=9.81 * np.array((0.0, math.sin(tilt), -math.cos(tilt))))
        scene.material("stone", density=2000.0, friction=0.6)
        scene.add(cd.Plane((0, 0, 1)), material="stone", fixed=True)
        cd.packings.wall(scene, material="stone", length=20.0, courses=10, block=(1.0, 0.5), depth=0.5)
        return cd.Simulation(scene, time_step=1e-3)

    sim = wall(0.0)
    report = sim.step().report
    # sweeps from nothing take some hundred
    assert sim.contact_set.count > 2000 and report.iterations <= 30 and report.residual <= 1e-9
    assert np.abs(sim.velocities).max() < 1e-6 * 9.81e-3
    sim = wall(0.5)  # 29 degrees: what would hold it pulls; it topples out of its plane, whatever it began with
    report = sim.step().report
    assert report.converged and 0.05 < np.abs(sim.velocities).max() / 9.81e-3 < 1.0


# ---- at most four contacts of a joint --------------------------------------------------------------------------------


def octagon_on(floor, tilt, joint_contacts, path=None):
    """A prism with corners at multiples of 45 degrees; gravity leans between two of them by ``tilt`` (rad)."""
    along = np.array([math.cos(math.pi / 4), math.sin(math.pi / 4), 0.0])
    scene = cd.Scene(gravity=G * (math.sin(tilt) * along - math.cos(tilt) * Z))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=2.0)
    table(scene, floor)
    angles = np.arange(8) * math.pi / 4
    corners = 0.1 * np.column_stack([np.cos(angles), np.sin(angles)])
    scene.add(cd.Polyhedron.prism(corners, 0.4), material="m", position=(0, 0, 0.2))
    recorders = [] if path is None else [cd.HDF5(path, every=0.01)]
    return cd.Simulation(scene, time_step=1e-3, joint_contacts=joint_contacts, recorders=recorders)


@pytest.mark.parametrize("floor", ["plane", "box"])
def test_four_contacts_bear_less_moment_than_all(floor):
    # It topples over the corner in the middle at tan = 0.1 / 0.2, over the line of two of the four at cos 45 of that.
    stands = {}
    for choice, count in (("all", 8), ("four", 4)):
        sim = octagon_on(floor, math.atan(0.42), choice)
        sim.step()
        assert len(sim.contacts.gap) == count
        sim.run(until=0.1, progress=False)
        stands[choice] = abs(sim.velocities[1]).max() < 1e-6
    assert stands == {"all": True, "four": False}


@pytest.mark.parametrize("floor", ["plane", "box"])
def test_a_block_on_four_contacts_rests_on_the_same_ones(floor):
    sim = octagon_on(floor, 0.1, "four")
    search = next(s for s in sim.contact_set.searches if s.kind == "polyhedra")
    names = set()
    for _ in range(100):
        sim.step()
        names.add(tuple(search.found.index[:, [NAME_ONE, NAME_TWO]].ravel().tolist()))
    assert len(names) == 1
    assert np.abs(sim.positions[1] - (0, 0, 0.2)).max() < 1e-10
    force = (sim.contacts.impulse[:, 0] / sim.time_step).sum()
    assert force == pytest.approx(sim.bodies.mass[1] * G * math.cos(0.1), rel=1e-6)


def test_four_contacts_are_in_the_file_and_go_on(tmp_path):
    whole = octagon_on("box", math.atan(0.42), "four").run(until=0.1, progress=False)
    octagon_on("box", math.atan(0.42), "four", tmp_path / "run.h5").run(until=0.05, progress=False)
    sim = cd.Simulation.from_file(tmp_path / "run.h5").run(until=0.1, progress=False)
    assert sim.joint_contacts == "four" and (sim.positions == whole.positions).all()


def test_what_joint_contacts_may_be():
    scene = world(3)
    with pytest.raises(cd.InputError, match="joint_contacts is 4; choose 'all' or 'four'"):
        cd.Simulation(scene, time_step=1e-3, joint_contacts=4)
    with pytest.raises(cd.InputError, match="two edges have two contacts; leave it out"):
        cd.Simulation(world(2), time_step=1e-3, joint_contacts="four")


@pytest.mark.slow
def test_a_wall_of_105_blocks_stays_where_it_is():
    from contactdynamics.bench.polyhedra import wall

    sim = wall(10, 10)
    first = sim.positions
    sim.run(until=10.0, progress=False)
    assert len(first) == 106 and sim.failures == 0
    assert np.abs(sim.positions - first).max() < 1e-8
    assert np.abs(sim.velocities).max() < 1e-6 * G * sim.time_step
