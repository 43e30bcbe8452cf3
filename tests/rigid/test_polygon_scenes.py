"""Blocks in motion and at rest: closed forms, statics, symmetry, ledger, memory, files."""

import math
from itertools import pairwise

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.rigid.search.touches import FEATURE
from contactdynamics.rigid.step import Step
from rigid_tools import G, assert_closed, run, start, world


def ground(scene, **options):
    return scene.add(cd.HalfPlane((0, 1)), material="m", **({"fixed": True} | options))


def wall_scene(rows=6, columns=5, width=0.4, height=0.2, friction=0.6):
    """A wall in running bond with half blocks at the ends of every second row, on a half-plane."""
    scene = world(2, density=2000.0, friction=friction)
    ground(scene)
    for row in range(rows):
        cuts = np.arange(columns + 1) * width
        if row % 2:
            cuts = np.concatenate([[0], (np.arange(columns) + 0.5) * width, [columns * width]])
        for left, right in pairwise(cuts):
            scene.add(cd.Rectangle(right - left, height), material="m",
                      position=(0.5 * (left + right), (row + 0.5) * height))  # fmt: skip
    return scene


# ---- one block -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["half-plane", "rectangle"])
@pytest.mark.parametrize("mode", ["moreau", "anticipate"])
def test_a_block_slides_down_a_slope(table, mode):
    # a = g (sin s - gamma cos s); a constant force is integrated exactly by the midpoint scheme.
    slope, friction = 0.5, 0.3
    scene = world(2, slope=slope, friction=friction)
    if table == "half-plane":
        ground(scene)
    else:
        scene.add(cd.Rectangle(40, 1), material="m", position=(15, -0.5), fixed=True)
    block = scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0, 0.1))
    sim = run(scene, 1e-3, 0.5, penetration=mode)
    a = G * (math.sin(slope) - friction * math.cos(slope))
    assert sim.velocities[block, 0] == pytest.approx(a * 0.5, rel=1e-9)
    assert abs(sim.positions[block, 1] - 0.1) < 1e-9 and abs(sim.rotations[block]) < 1e-9


def test_a_block_rests_on_a_slope():
    slope = 0.5
    scene = world(2, slope=slope, friction=math.tan(slope) * 1.02)
    ground(scene)
    block = scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0, 0.1))
    sim = cd.Simulation(scene, time_step=1e-3)
    assert sim.is_equilibrium()
    sim.run(until=1.0, progress=False)
    assert np.abs(sim.positions[block] - (0, 0.1)).max() < 1e-9


@pytest.mark.parametrize(("share", "falls"), [(0.98, False), (1.02, True)])
def test_a_block_topples_when_its_weight_leaves_the_base(share, falls):
    # On a rough slope s a block b x h topples where tan s > b / h.
    b, h = 0.2, 0.5
    slope = math.atan(share * b / h)
    scene = world(2, slope=slope, friction=2.0)
    ground(scene)
    block = scene.add(cd.Rectangle(b, h), material="m", position=(0, 0.5 * h))
    sim = cd.Simulation(scene, time_step=1e-3)
    assert bool(sim.is_equilibrium()) is not falls
    sim.run(until=1.0, progress=False)
    assert bool(abs(sim.rotations[block]) > 0.1) is falls


def test_pressure_under_two_corners():
    # A force F at the centre and a torque T: N1 + N2 = m g, (N2 - N1) b/2 = F h/2 + T (F pushes to the right).
    b, h, force, torque = 0.6, 0.4, 2.0, -0.3
    scene = world(2, density=10.0, friction=0.8)
    ground(scene)
    block = scene.add(cd.Rectangle(b, h), material="m", position=(0, 0.5 * h))
    scene.force(block, (force, 0.0), torque)
    sim = start(scene, 1e-3)
    sim.step()
    contacts, weight = sim.contacts, 10 * b * h * G
    order = contacts.point[:, 0].argsort()
    normal = contacts.impulse[order, 0] / sim.time_step
    lever = (force * h / 2 - torque) / b
    np.testing.assert_allclose(normal, [weight / 2 - lever, weight / 2 + lever], rtol=1e-9)
    np.testing.assert_allclose((contacts.impulse[:, 1].sum()) / sim.time_step, force, rtol=1e-9)  # t points to -x


@pytest.mark.parametrize("friction", [0.0, 2.0])
def test_one_corner_hits_a_table(friction):
    # Inelastic impact of the corner of a rod that falls at v: impulse P = -U / W with the block of W of that corner:
    # without friction w' = x v / (x^2 + I/m), x the horizontal lever; when it sticks, w' = x v / (x^2 + y^2 + I/m).
    scene = world(2, gravity=0.0, friction=friction)
    ground(scene)
    shape, angle, v = cd.Rectangle(1.0, 0.2), 0.4, 1.0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    corners = shape.vertices @ turn.T
    x, y = corners[corners[:, 1].argmin()]
    rod = scene.add(shape, material="m", position=(0, -y + 1e-9), velocity=(0, -v), rotation=angle)
    sim = start(scene, 1e-6)
    sim.step()
    inertia = (1 + 0.04) / 12
    lever = x * x + inertia + (y * y if friction else 0.0)
    assert sim.spins[rod] == pytest.approx(x * v / lever, rel=1e-4)


# ---- the same thing twice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["moreau", "anticipate"])
def test_a_disk_on_a_rectangle_moves_as_on_a_half_plane(mode):
    # Sliding becomes rolling at v = (2 v_0 + r w_0) / 3: friction keeps the angular momentum about the ground.
    ends = []
    for table in (cd.HalfPlane((0, 1)), cd.Rectangle(8, 1)):
        scene = world(2, friction=0.3)
        place = (0, 0) if isinstance(table, cd.HalfPlane) else (0, -0.5)
        scene.add(table, material="m", position=place, fixed=True)
        scene.add(cd.Disk(0.1), material="m", position=(0, 0.1), velocity=(1, 0), spin=-2.0)
        sim = run(scene, 1e-3, 1.0, penetration=mode)
        ends.append(np.concatenate([sim.positions[1], sim.velocities[1], [sim.spins[1], sim.energy.kinetic]]))
    assert ends[1][2] == pytest.approx((2 + 0.2) / 3, rel=1e-4)
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-3 if mode == "moreau" else 1e-9)  # moreau: gaps of some g h^2


def heap(turn=0.0, mirror=False, **options):
    """A few blocks and a disk that fall on each other, turned about the origin or mirrored in the plane x = 0."""
    c, s = math.cos(turn), math.sin(turn)
    flip = -1.0 if mirror else 1.0

    def place(x, y):
        x = flip * x
        return c * x - s * y, s * x + c * y

    scene = cd.Scene(gravity=place(0, -G))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.HalfPlane(place(0, 1)), material="m", fixed=True)
    shapes = [(cd.Rectangle(0.5, 0.2), 0.0, 0.12, 0.05), (cd.Polygon.irregular(0.2, seed=5), 0.1, 0.5, 0.0),
              (cd.Rectangle(0.2, 0.4), -0.15, 0.9, 0.4), (cd.Polygon.regular(3, 0.2), 0.15, 1.25, 0.2)]  # fmt: skip
    for shape, x, y, angle in shapes:
        body = cd.Polygon(shape.vertices * (flip, 1.0))
        scene.add(body, material="m", position=place(x, y), rotation=flip * angle + turn)
    scene.add(cd.Disk(0.1), material="m", position=place(0.0, 1.6))
    return start(scene, 1e-3, tolerance=1e-12, **options), place


@pytest.mark.parametrize("change", [{"turn": 0.7}, {"turn": 2.5}, {"mirror": True}, {"turn": -1.1, "mirror": True}])
def test_rotated_and_mirrored_scenes_give_rotated_and_mirrored_results(change):
    (sim, _), (other, place) = heap(), heap(**change)
    sim.run(until=0.4, progress=False)
    other.run(until=0.4, progress=False)
    assert (sim.contacts.impulse[:, 0] > 0).sum() >= 4
    np.testing.assert_allclose(other.positions, [place(*p) for p in sim.positions], atol=1e-7)
    np.testing.assert_allclose(other.velocities, [place(*v) for v in sim.velocities], atol=1e-5)
    sign = -1 if change.get("mirror") else 1
    np.testing.assert_allclose(other.spins, sign * sim.spins, atol=1e-4)
    assert_closed(other)


def test_both_solvers_give_the_same_motion():
    (one, _), (two, _) = heap(), heap(solver="nlgs")
    one.run(until=0.3, progress=False)
    two.run(until=0.3, progress=False)
    np.testing.assert_allclose(one.positions, two.positions, atol=1e-7)


# ---- structures ------------------------------------------------------------------------------------------------------


def test_a_wall_does_not_creep():
    # The whole displacement from the first step on, at the default tolerance: below 1e-6 of a block in 1000 steps.
    scene = wall_scene()
    sim = cd.Simulation(scene, time_step=1e-3)
    first, angles = sim.positions, sim.rotations
    assert sim.is_equilibrium()
    sim.run(until=1.0, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.2
    assert np.abs(sim.rotations - angles).max() < 1e-6
    assert np.abs(sim.velocities).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["moreau", "anticipate"])
def test_a_wall_stands_for_ever(mode):
    sim = cd.Simulation(wall_scene(), time_step=1e-3, penetration=mode)
    first = sim.positions
    for _ in range(100_000):
        sim.step()
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.2


def test_a_tower_comes_to_rest():
    scene = world(2, density=2000.0, friction=0.5)
    ground(scene)
    for k in range(20):
        scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0, 0.2 * k + 0.1))
    sim = cd.Simulation(scene, time_step=1e-3)
    first = sim.positions
    sim.run(until=0.5, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.2
    contacts = sim.contacts
    below = contacts.point[:, 1] < 0.1
    weight = 20 * 2000 * 0.08 * G
    np.testing.assert_allclose(contacts.impulse[below, 0].sum() / sim.time_step, weight, rtol=1e-5)


def arch_scene(voussoirs=15, radius=1.0, thickness=0.2, friction=0.6):
    scene = world(2, density=2000.0, friction=friction)
    ground(scene)
    angles = np.linspace(0, np.pi, voussoirs + 1)
    for a, b in pairwise(angles):
        ring = [(a, -1), (a, 1), (b, 1), (b, -1)]
        shape = cd.Polygon([((radius + s * thickness / 2) * math.cos(t), (radius + s * thickness / 2) * math.sin(t))
                            for t, s in ring])  # fmt: skip
        scene.add(shape, material="m", position=shape.center_of_mass)
    return scene


def test_an_arch_stands_or_falls():
    # Thickness over radius of a semicircular arch: at least 0.1075 for large friction (Milankovitch, Heyman).
    stands, falls = arch_scene(thickness=0.2), arch_scene(thickness=0.07)
    sim = cd.Simulation(stands, time_step=1e-3)
    assert sim.is_equilibrium() and not cd.Simulation(falls, time_step=1e-3).is_equilibrium()
    first = sim.positions
    sim.run(until=1.0, progress=False)
    assert np.abs(sim.positions - first).max() < 1e-6 * 0.2


@pytest.mark.parametrize(("share", "stands"), [(1.03, True), (0.97, False)])
def test_a_card_house(share, stands):
    # Two cards lean against each other by their corners. By symmetry the force between them is horizontal, H; moments
    # about the foot of the left card: m g (x_c - x_foot) = H (y_top - y_foot); it stands where gamma m g >= H.
    length, thick, lean = 1.0, 0.02, 0.35
    card = cd.Rectangle(thick, length)
    turn = np.array([[math.cos(lean), math.sin(lean)], [-math.sin(lean), math.cos(lean)]])  # by -lean
    corners = card.vertices @ turn.T
    foot, top = corners[corners[:, 1].argmin()], corners[corners[:, 0].argmax()]
    need = -foot[0] / (top[1] - foot[1])
    scene = cd.Scene(gravity=(0, -G))
    scene.material("card", density=1.0)
    scene.material("table", density=1.0)
    scene.contact("card", "card", friction=1.0)
    scene.contact("card", "table", friction=share * need)
    scene.add(cd.HalfPlane((0, 1)), material="table", fixed=True)
    scene.add(card, material="card", position=(-top[0], -foot[1]), rotation=-lean)
    scene.add(card, material="card", position=(top[0], -foot[1]), rotation=lean)
    sim = cd.Simulation(scene, time_step=1e-3)
    first = sim.positions
    assert bool(sim.is_equilibrium()) is stands
    sim.run(until=0.5, progress=False)
    assert bool(np.abs(sim.positions - first).max() < 1e-5) is stands


def test_a_row_of_dominoes_falls():
    scene = world(2, friction=0.5)
    ground(scene)
    for k in range(8):
        scene.add(cd.Rectangle(0.1, 0.6), material="m", position=(0.3 * k, 0.3), spin=-2.0 if k == 0 else 0.0,
                  velocity=(0.6, 0.0) if k == 0 else (0.0, 0.0))  # fmt: skip
    sim = start(scene, 1e-3, tolerance=1e-6, on_failure="warn")
    before = sim.energy.kinetic + sim.energy.potential
    fallen = np.full(9, np.inf)
    while sim.time < 3.0:
        sim.step()
        new = (np.abs(sim.rotations) > 0.3) & np.isinf(fallen)
        fallen[new] = sim.time
    assert np.isfinite(fallen[1:]).all() and (np.diff(fallen[1:]) > 0).all()  # one after the other
    assert sim.energy.kinetic + sim.energy.potential < before
    assert np.abs(sim.velocities).max() < 1e-3
    assert_closed(sim, 1e-9)


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["tension", "cohesion"])
@pytest.mark.parametrize(("share", "holds"), [(0.55, True), (0.45, False)])
def test_a_block_hangs_by_its_two_corners(law, share, holds):
    # Two contacts of strength `share` m g each.
    b, h = 0.4, 0.2
    scene = world(2, **{law: share * b * h * G})
    scene.add(cd.Rectangle(1, 0.2), material="m", position=(0, 0.3), fixed=True)
    block = scene.add(cd.Rectangle(b, h), material="m", position=(0, 0.1))
    sim = start(scene, 1e-3)
    sim.run(until=0.3, progress=False)
    assert bool(abs(sim.positions[block, 1] - 0.1) < 1e-6) is holds
    assert_closed(sim)


@pytest.mark.slow  # kernels of its own: rolling disks elsewhere, polygons elsewhere
@pytest.mark.parametrize(("share", "rolls"), [(1.05, False), (0.95, True)])
def test_rolling_resistance_of_a_disk_on_a_block(share, rolls):
    # A disk on a slope s stays where the rolling length >= r tan s.
    slope, radius = 0.1, 0.2
    scene = world(2, slope=slope, friction=1.0, rolling=share * radius * math.tan(slope))
    scene.add(cd.Rectangle(10, 1), material="m", position=(0, -0.5), fixed=True)
    disk = scene.add(cd.Disk(radius), material="m", position=(0, radius))
    sim = run(scene, 1e-3, 0.5)
    assert bool(abs(sim.velocities[disk, 0]) > 1e-3) is rolls


def test_restitution_of_a_flat_fall():
    scene = world(2, gravity=0.0, restitution=0.6)
    scene.add(cd.Rectangle(4, 1), material="m", position=(0, -0.5), fixed=True)
    block = scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0, 0.1 + 1e-9), velocity=(0, -2.0))
    sim = run(scene, 1e-3, 0.01)
    assert sim.velocities[block, 1] == pytest.approx(1.2, rel=1e-9) and abs(sim.spins[block]) < 1e-9


# ---- memory ----------------------------------------------------------------------------------------------------------


def detected(sim):
    """A trial of the contacts at the present positions."""
    trial = sim.contact_set.trial()
    trial.detect(sim.model, Step(0.0, sim.time_step, 0.0, False, False, sim.rows, sim.rows), sim.rows)
    return trial


def test_contacts_keep_their_memory_while_a_block_slides_over_the_edge_of_another():
    # The right end of the overlap passes from the corner of the upper block to the corner of the lower one.
    scene = world(2, friction=0.2)
    scene.add(cd.Rectangle(2.0, 0.2), material="m", position=(0, -0.1), fixed=True)
    scene.add(cd.Rectangle(0.6, 0.2), material="m", position=(0.65, 0.1), velocity=(1.5, 0))
    sim = start(scene, 1e-3)
    features = []
    for _ in range(100):
        sim.step()
        held = sim.contact_set.searches[-1].found
        assert len(held.status) == 2 and (held.status > 0).all()
        before = held.memory.copy()
        trial = detected(sim)
        assert (trial.searches[-1].found.memory == before).all()  # none is lost, also where a feature changes
        features.append(tuple(held.index[:, FEATURE]))
        total = sim.contacts.impulse[:, 0].sum() / sim.time_step
        assert total == pytest.approx(0.12 * G, rel=1e-8)
    assert len(set(features)) == 2  # the end has changed its corner once


def test_the_normal_does_not_jump_while_a_corner_slides():
    # A wedge slides with its corner along a block: one contact, one normal.
    scene = world(2, friction=0.1)
    scene.add(cd.Rectangle(2.0, 0.2), material="m", position=(0, -0.1), fixed=True)
    wedge = cd.Polygon([(0, 0), (0.1, 0.3), (-0.1, 0.3)])
    body = scene.add(wedge, material="m", position=(-0.5, wedge.center_of_mass[1]), velocity=(1.0, 0))
    sim = start(scene, 1e-3)
    for _ in range(100):
        sim.step()
        pushing = sim.contacts.impulse[:, 0] > 0
        np.testing.assert_allclose(sim.contacts.normal[pushing], [(0, 1)] * pushing.sum(), atol=1e-12)
    assert sim.positions[body, 0] > -0.45


def mixed_scene():
    scene = world(2, density=2000.0, friction=0.5)
    ground(scene)
    scene.add(cd.HalfPlane((1, 0)), material="m", position=(-0.4, 0), fixed=True)
    scene.add(cd.HalfPlane((-1, 0)), material="m", position=(0.4, 0), fixed=True)
    lift = cd.Drive(velocity=cd.loads.sine((0.0, 0.05), 4.0))
    scene.add(cd.Rectangle(0.3, 0.1), material="m", position=(0, 0.25), rotation=0.2, motion=lift)
    with pytest.warns(UserWarning, match="not convex"):
        ell = cd.Polygon(0.08 * np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]))
    scene.add(ell, material="m", position=(0.0, 0.45), rotation=1.0)
    grid = [(0.15 * (k % 4) - 0.22, 0.65 + 0.15 * (k // 4)) for k in range(12)]
    scene.add_many([cd.Polygon.irregular(0.06, seed=k) for k in range(12)], material="m", position=grid,
                   rotation=np.arange(12.0))  # fmt: skip
    scene.add_many(np.full(3, 0.05), material="m", position=[(-0.2, 1.2), (0, 1.2), (0.2, 1.2)])
    return scene


@pytest.mark.parametrize("mode", ["moreau", "anticipate"])
def test_a_resumed_run_has_the_same_bits(tmp_path, mode):
    path = tmp_path / "run.h5"
    sim = cd.Simulation(mixed_scene(), time_step=1e-3, penetration=mode, recorders=[cd.HDF5(path, every=0.1)])
    sim.first_kinetic = 0.0
    sim.run(until=0.4, progress=False)
    other = cd.Simulation.from_file(path)
    sim.run(until=0.6, progress=False)
    other.run(until=0.6, progress=False)
    assert (sim.positions == other.positions).all() and (sim.rows == other.rows).all()
    assert_closed(sim, 1e-9)
    with cd.open(path) as recording:
        frame, live = recording[-1], sim.frame()
        for name in ("polygon_corners", "polygon_starts", "polygon_bodies", "ball_radii"):
            np.testing.assert_array_equal(getattr(frame, name), getattr(live, name))
    assert len(live.ball_radii) == 3  # the balls that hold polygons are not shown
    assert len(np.unique(live.polygon_bodies)) == 14 < len(live.polygon_bodies)  # the L has several parts


def test_bodies_come_and_go():
    sim = cd.Simulation(mixed_scene(), time_step=1e-3)
    sim.run(until=0.3, progress=False)
    sim.remove([5, 7, 16])
    sim.run(until=0.4, progress=False)
    new = sim.add(cd.Rectangle(0.1, 0.1), material="m", position=(0, 1.6))
    sim.add_many([cd.Polygon.regular(5, 0.05)] * 2, material="m", position=[(-0.2, 1.6), (0.2, 1.6)])
    sim.run(until=1.5, progress=False)
    row = list(sim.identities).index(new)
    assert -0.4 < sim.positions[row, 0] < 0.4 and sim.positions[row, 1] > 0
    assert sim.report.relative_penetration < 0.1


def test_overlaps_are_repaired():
    scene = world(2, friction=0.5)
    ground(scene)
    scene.add_many(cd.Rectangle(0.4, 0.2), material="m", position=[(0, 0.09), (0.38, 0.09), (0.1, 0.27)])
    sim = cd.Simulation(scene, time_step=1e-3, repair=True)
    assert detected(sim).deepest(sim.model)[0].share < 1e-8


def test_a_polygon_of_several_parts_is_one_body():
    # An ell on its side: statics of one rigid body on three corners or two; it rests, and does not fall apart.
    scene = world(2, friction=0.5)
    ground(scene)
    with pytest.warns(UserWarning, match="not convex"):
        ell = cd.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    body = scene.add(ell, material="m", position=ell.center_of_mass)
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.run(until=0.2, progress=False)
    assert np.abs(sim.positions[body] - ell.center_of_mass).max() < 1e-9
    assert sim.contacts.impulse[:, 0].sum() / sim.time_step == pytest.approx(3 * G, rel=1e-6)
