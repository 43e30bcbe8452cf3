"""Arches, walls and columns; the line of thrust; equilibrium as a linear programme against the one-step test."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.experiments import arch_thickness
from contactdynamics.scenes import packings


def plane_scene(friction=0.6, gravity=(0.0, -10.0)):
    scene = cd.Scene(gravity=gravity)
    scene.material("stone", density=2.0)
    scene.contact("stone", "stone", friction=friction)
    return scene


def floor(scene):
    return scene.add(cd.HalfPlane(normal=(0, 1)), material="stone", fixed=True)


def start(scene):
    return cd.Simulation(scene, time_step=1e-3)


def touching(sim, **options):
    """The frame with the contacts of the one-step test."""
    return sim.frame()._replace(contacts=sim.is_equilibrium(**options).contacts)


# ---- geometry --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("span, rise, voussoirs", [(2.0, None, 9), (2.0, 1.0, 8), (4.0, 0.5, 11), (3.0, 2.4, 10)])
def test_arch(span, rise, voussoirs):
    scene, thickness, foot = plane_scene(), 0.2, np.array([3.0, 1.5])
    arch = packings.arch(scene, material="stone", span=span, rise=rise, thickness=thickness, voussoirs=voussoirs,
                         position=foot)  # fmt: skip
    rise = span / 2 if rise is None else rise
    joints = arch.joints - foot
    assert len(arch.voussoirs) == voussoirs and joints.shape == (voussoirs + 1, 2, 2) and scene.count == voussoirs + 2
    # The mean line starts and ends on the springing line, span apart; its crown is at the rise.
    np.testing.assert_allclose(joints[[0, -1]].mean(axis=1), [(-span / 2, 0), (span / 2, 0)], atol=1e-14)
    away = np.linalg.norm(arch.joints - arch.centre[:, None], axis=2)
    inner, outer = arch.radius - thickness / 2, arch.radius + thickness / 2
    np.testing.assert_allclose(away, np.broadcast_to([inner, outer], away.shape), rtol=1e-13)
    crown = foot + np.array([0, rise])
    assert np.linalg.norm(crown - arch.centre[0]) == pytest.approx(arch.radius)
    np.testing.assert_allclose(joints[::-1] * (-1, 1), joints, atol=1e-13)  # its own mirror image
    # Radial: the two corners of a joint and the centre on one line, but for the upright crown of a pointed arch.
    side = joints[:, 1] - joints[:, 0]
    arm = joints[:, 0] - (arch.centre - foot)
    cross = side[:, 0] * arm[:, 1] - side[:, 1] * arm[:, 0]
    upright = [voussoirs // 2] if rise > span / 2 else []
    assert np.abs(np.delete(cross, upright)).max() < 1e-13
    # Stones and abutments touch along each joint by its two ends, and nowhere else.
    contacts = start(scene).is_equilibrium().contacts
    assert len(contacts.gap) == 2 * (voussoirs + 1)
    assert np.abs(contacts.gap).max() < 1e-6  # the slack of the test
    assert {tuple(sorted(pair)) for pair in contacts.bodies.tolist()} == {
        tuple(sorted(pair)) for pair in zip(arch.chain.tolist(), arch.chain[1:].tolist(), strict=False)
    }


def test_semicircle_area_and_stones_alone():
    scene = plane_scene()
    arch = packings.arch(scene, material="stone", span=2.0, thickness=0.3, voussoirs=12, abutments=False)
    masses = scene.freeze().bodies.mass
    # 12 differences of triangles: 12/2 sin(pi/12) (outer^2 - inner^2), density 2.
    assert masses.sum() == pytest.approx(2 * 6 * math.sin(math.pi / 12) * (1.15**2 - 0.85**2))
    assert len(arch.abutments) == 0 and arch.chain.tolist() == list(range(12))


def test_wall_in_running_bond():
    scene = plane_scene()
    floor(scene)
    numbers = packings.wall(scene, material="stone", length=2.0, courses=4, block=(0.4, 0.25), position=(1.0, 0.0))
    bodies = scene.freeze().bodies
    # Even courses: 5 whole blocks; odd ones: a half, four whole ones, a half.
    assert len(numbers) == 2 * (5 + 6) and bodies.mass[numbers].sum() == pytest.approx(2.0 * 2.0 * 1.0)
    x = {level: np.sort(bodies.position[numbers][np.isclose(bodies.position[numbers, 1], level), 0])
         for level in (0.125, 0.375)}  # fmt: skip
    np.testing.assert_allclose(x[0.125], 1.2 + 0.4 * np.arange(5))
    np.testing.assert_allclose(x[0.375], [1.1, *(1.4 + 0.4 * np.arange(4)), 2.9])
    assert start(scene).is_equilibrium()


def test_wall_with_openings():
    scene = plane_scene()
    floor(scene)
    holes = [(0.8, 0.0, 1.5, 0.6), (2.0, 0.4, 2.6, 0.6)]  # a door and a window
    numbers = packings.wall(scene, material="stone", length=3.4, courses=5, block=(0.4, 0.2), openings=holes)
    bodies = scene.freeze().bodies
    area = 3.4 * 1.0 - 0.7 * 0.6 - 0.6 * 0.2
    assert bodies.mass[numbers].sum() == pytest.approx(2.0 * area)
    sim = start(scene)
    frame = sim.frame()
    corners = frame.polygon_corners.reshape(-1, 4, 2)
    for left, bottom, right, top in holes:
        low, high = corners.min(axis=1), corners.max(axis=1)
        inside = (low[:, 0] < right - 1e-9) & (high[:, 0] > left + 1e-9)
        inside &= (low[:, 1] < top - 1e-9) & (high[:, 1] > bottom + 1e-9)
        assert not inside.any()
        over = np.isclose(low[:, 1], top) & (low[:, 0] <= left - 0.2 + 1e-9) & (high[:, 0] >= right + 0.2 - 1e-9)
        assert over.sum() == 1  # the lintel with its bearings
    wide = np.ptp(corners[:, :, 0], axis=1)
    assert wide.min() >= 0.25 * 0.4 - 1e-9
    answer = sim.is_equilibrium()
    assert answer and analysis.balance(frame._replace(contacts=answer.contacts), 0.6)


def test_column():
    scene = plane_scene()
    floor(scene)
    numbers = packings.column(scene, material="stone", width=1.0, height=6.0, drums=5, position=(2.0, 0.0), top=0.6)
    bodies = scene.freeze().bodies
    assert bodies.mass[numbers].sum() == pytest.approx(2.0 * 6.0 * 0.8)
    np.testing.assert_allclose(bodies.position[numbers, 0], 2.0)
    assert (np.diff(bodies.position[numbers, 1]) > 1.1).all()
    sim = start(scene)
    answer = sim.is_equilibrium(tolerance=1e-10)
    # Each joint carries what lies above it.
    frame = sim.frame()._replace(contacts=answer.contacts)
    thrust = analysis.thrust_line(frame, [0, *numbers])
    above = np.cumsum(bodies.mass[numbers][::-1])[::-1] * 10.0
    np.testing.assert_allclose(thrust.forces, np.stack([0 * above, above], axis=1), atol=1e-5 * above[0])
    np.testing.assert_allclose(thrust.points[:, 0], 2.0, atol=1e-4)


@pytest.mark.parametrize(
    "name, options, words",
    [
        ("arch", {"span": -1, "thickness": 0.1, "voussoirs": 9}, ["span=-1", "positive"]),
        ("arch", {"span": 2, "thickness": 0.1, "voussoirs": 2.5}, ["voussoirs=2.5", "whole"]),
        ("arch", {"span": 2, "thickness": 0.1, "voussoirs": 1}, ["voussoirs=1", "at least 2"]),
        ("arch", {"span": 2, "thickness": 2.5, "voussoirs": 9}, ["thickness=2.5", "twice the radius"]),
        ("arch", {"span": 2, "rise": 1.5, "thickness": 0.1, "voussoirs": 9}, ["pointed", "even"]),
        ("arch", {"span": 2, "thickness": 0.1, "voussoirs": 9, "position": (1,)}, ["position", "two"]),
        ("wall", {"length": 2, "courses": 0}, ["courses=0", "whole"]),
        ("wall", {"length": 2, "courses": 4, "block": (0.4, -1)}, ["block height", "positive"]),
        ("wall", {"length": 2, "courses": 4, "openings": [(0.5, 0.1, 1, 0.4)]}, ["0.1", "whole courses"]),
        ("wall", {"length": 2, "courses": 4, "openings": [(0.5, 0.2, 3, 0.4)]}, ["leaves the wall"]),
        ("wall", {"length": 2, "courses": 4, "openings": [(0.5, 0.2)]}, ["left, bottom, right, top"]),
        ("wall", {"length": 2, "courses": 4, "openings": [(0.5, 0, 1, 0.4), (0.8, 0, 1.4, 0.4)]}, ["overlap"]),
        ("column", {"width": 1, "height": 2, "drums": "3"}, ["drums='3'", "whole"]),
    ],
)
def test_wrong_masonry(name, options, words):
    with pytest.raises(cd.InputError) as error:
        getattr(packings, name)(plane_scene(), material="stone", **options)
    for word in words:
        assert word in str(error.value)


# ---- thrust ----------------------------------------------------------------------------------------------------------


def test_thrust_passes_below_the_weight():
    # Three blocks, each shifted by s on the one below: what lies above a joint has its weight at the mean of its
    # centres, and there the joint is pressed.
    scene = plane_scene()
    ground = floor(scene)
    shift = 0.11
    rows = [scene.add(cd.Rectangle(1.0, 0.4), material="stone", position=(k * shift, 0.2 + 0.4 * k)) for k in range(3)]
    frame = touching(start(scene), tolerance=1e-11)
    thrust = analysis.thrust_line(frame, [ground, *rows])
    np.testing.assert_allclose(thrust.points[:, 0], [shift, 1.5 * shift, 2 * shift], atol=1e-6)
    np.testing.assert_allclose(thrust.points[:, 1], [0.0, 0.4, 0.8], atol=1e-6)
    np.testing.assert_allclose(thrust.forces, [(0, 24), (0, 16), (0, 8)], atol=1e-5)
    # The joint between the blocks 1 and 2 reaches from 2 s - 0.5 to s + 0.5.
    assert thrust.eccentricity[2] == pytest.approx((2 * shift - 1.5 * shift) / (0.5 - shift / 2), abs=1e-5)
    assert thrust.inclination.max() < 1e-5
    upside = analysis.thrust_line(frame, [*rows[::-1], ground])
    np.testing.assert_allclose(upside.forces, -thrust.forces[::-1])


def test_thrust_of_an_arch_and_its_picture():
    scene = plane_scene()
    arch = packings.arch(scene, material="stone", span=2.0, thickness=0.2, voussoirs=13)
    frame = touching(start(scene), tolerance=1e-10)
    thrust = analysis.thrust_line(frame, arch.chain)
    away = np.linalg.norm(thrust.points, axis=1)
    assert (away > 0.9 - 1e-9).all() and (away < 1.1 + 1e-9).all()
    # The horizontal thrust is the same everywhere, the vertical one changes by the weight of each stone.
    assert np.ptp(thrust.forces[:, 0]) < 1e-6 * abs(thrust.forces[:, 0]).max()
    np.testing.assert_allclose(np.diff(thrust.forces[:, 1]), -10 * frame.masses[arch.voussoirs], rtol=1e-4)
    ax = thrust.plot(scale=100.0)
    assert len(ax.lines) == 2 and len(ax.collections) == 1
    plt.close("all")
    with pytest.raises(cd.InputError, match="at least two"):
        analysis.thrust_line(frame, [99, 100])
    open_joint = analysis.thrust_line(frame, [arch.voussoirs[0], arch.voussoirs[5]])
    assert np.isnan(open_joint.points).all()


# ---- equilibrium as a linear programme -------------------------------------------------------------------------------


def slope_scene(angle, width, height, friction):
    down = (10 * math.sin(angle), -10 * math.cos(angle))
    scene = plane_scene(friction, gravity=down)
    floor(scene)
    scene.add(cd.Rectangle(width, height), material="stone", position=(0, height / 2))
    return start(scene)


@pytest.mark.parametrize("width, height, friction", [(1.0, 1.0, 0.3), (0.4, 2.0, 0.9), (1.0, 2.0, 0.5 + 1e-9)])
def test_block_on_a_slope(width, height, friction):
    # It slides beyond atan(friction) and topples beyond atan(width / height).
    limit = math.atan(min(friction, width / height))
    for share, stands in ((0.999, True), (1.001, False)):
        sim = slope_scene(share * limit, width, height, friction)
        frame = touching(sim)
        assert analysis.balance(frame, friction).found is stands
        assert bool(sim.is_equilibrium(tolerance=1e-8)) is stands


def test_what_is_missing_on_a_slope():
    # Normal force N, friction mu N: sliding leaves (sin - mu N) along and (cos - N) across, in units of the weight.
    # The least largest of the two is s with N = cos + s: sin - mu (cos + s) = s.
    angle, mu = 0.6, 0.3
    found = analysis.balance(touching(slope_scene(angle, 4.0, 0.5, mu)), mu)
    assert found.unbalanced == pytest.approx((math.sin(angle) - mu * math.cos(angle)) / (1 + mu), abs=1e-9)
    assert not found


@pytest.mark.parametrize("seed", range(3))
def test_forces_of_the_programme_balance_the_weights(seed):
    # A naive sum over contacts, body by body; and no force leaves its cone.
    rng = np.random.default_rng(seed)
    friction = 0.45 + 0.3 * rng.random()
    scene = plane_scene(friction)
    thickness = 0.15 + 0.2 * rng.random()
    arch = packings.arch(scene, material="stone", span=2.0, rise=0.3 + 0.7 * rng.random(), thickness=thickness,
                         voussoirs=int(rng.integers(5, 15)))  # fmt: skip
    frame = touching(start(scene))
    answer = analysis.balance(frame, np.full(len(frame.contacts.gap), friction))
    assert answer
    c = answer.contacts
    assert (c.impulse[:, 0] >= 0).all()
    assert (np.abs(c.impulse[:, 1]) <= friction * c.impulse[:, 0] * (1 + 1e-9) + 1e-12).all()
    for body in arch.voussoirs:
        total, moment = frame.masses[body] * np.array([0.0, -10.0]), 0.0
        for k in range(len(c.gap)):
            for side, sign in ((0, -1), (1, 1)):
                if c.bodies[k, side] == body:
                    force = sign * c.impulse[k] @ c.frame[k] / frame.time_step
                    arm = c.point[k] - frame.positions[body]
                    total, moment = total + force, moment + arm[0] * force[1] - arm[1] * force[0]
        weight = 10 * frame.masses[body]
        assert np.abs(total).max() < 1e-7 * weight and abs(moment) < 1e-7 * weight * thickness


def test_wrong_balance():
    frame = touching(slope_scene(0.1, 1.0, 1.0, 0.5))
    with pytest.raises(cd.InputError, match="one per contact"):
        analysis.balance(frame, [0.5, 0.5, 0.5])
    with pytest.raises(cd.InputError, match=">= 0"):
        analysis.balance(frame, -0.1)
    with pytest.raises(cd.InputError, match="needs weights"):
        analysis.balance(frame._replace(gravity=np.zeros(2)), 0.5)


# ---- the thinnest arch -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voussoirs", [9, 14])
def test_arch_stands_just_above_the_limit_of_hinges(voussoirs):
    limit = arch_thickness.by_hinges(voussoirs)
    for share, stands in ((1 + 1e-5, True), (1 - 1e-5, False)):
        arch = arch_thickness.trial(share * limit, voussoirs, 2.0)
        assert arch.programme().found is stands
        answer = arch.one_step()
        assert answer.found is stands and answer.report.converged


def test_limit_of_hinges_tends_to_milankovitch():
    # 0.107478 for radial joints everywhere; the error of n voussoirs falls as 1/n^2 (hinge at the nearest joint).
    errors = [abs(arch_thickness.by_hinges(n) - 0.107478) for n in (60, 240, 960)]
    assert errors[2] < 2e-6 and errors[1] < 1e-4 and errors[0] < 1e-3


def test_sliding_arches():
    # Cocchetti and Rizzi 2020: nothing stands below 0.309; the limit rises below 0.395.
    for friction, ratio, stands in ((0.30, 1.0, False), (0.32, 1.0, True), (0.35, 0.11, False), (0.35, 0.2, True)):
        assert arch_thickness.trial(ratio, 20, friction).programme().found is stands


def test_undecided_is_told():
    arch = arch_thickness.trial(0.15, 28, 0.38)
    arch.simulation.solver = "accelerated"  # sweeps alone
    answer = arch.simulation.is_equilibrium(tolerance=1e-8, limit=1e-6, max_iterations=50)
    assert not answer and not answer.report.converged and "Undecided" in answer.report.message
    before = arch.simulation.frame()
    assert not before.velocities.any() and before.step == 0
