"""The stone bridge: its stones close without gaps, its joints are read rightly, pushes have a bound."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.experiments import _bridge, bridge, runner


@pytest.fixture(scope="module")
def built():
    return _bridge.bridge(bridge.PARAMETERS, 0.6)


def test_stones_fill_the_outline(built):
    # Area of arch and spandrels: outline of the bridge less the opening under the arch, less the bare central place.
    bodies = built.scene.freeze().bodies
    area = bodies.mass[np.concatenate([built.arch.voussoirs, built.spandrel])].sum() / 2400
    inner, outer = built.arch.joints[:, 0], built.arch.joints[:, 1]

    def under(points):  # between a polyline over x and the height of its ends
        return np.trapezoid(points[:, 1] - points[0, 1], points[:, 0])

    ring = 0.5 * math.sin(2 * _bridge.OPENING / 17) * 17 * ((5 * 1.07) ** 2 - (5 * 0.93) ** 2)
    road = outer[8, 1] + _bridge.COVER * _bridge.RADIUS
    end = outer[-1, 0] + _bridge.OVERHANG * _bridge.RADIUS
    bare = (outer[9, 0] - outer[8, 0]) * (road - outer[8, 1])
    assert area == pytest.approx(ring + 2 * end * (road - outer[0, 1]) - under(outer) - bare, rel=1e-12)
    assert inner[0, 0] == -inner[-1, 0]


def test_nothing_overlaps_and_it_stands(built):
    sim = cd.Simulation(built.scene, time_step=2e-3)
    answer = sim.is_equilibrium(tolerance=1e-8, limit=1e-5)
    assert answer and answer.contacts.gap.min() > -1e-6
    frame = sim.frame()._replace(contacts=answer.contacts)
    assert analysis.balance(frame, 0.6)
    # Each spandrel stone touches others along edges: the structure has no stone that hangs free.
    touched = np.bincount(answer.contacts.bodies.ravel(), minlength=sim.scene.count)
    assert touched[built.spandrel].min() >= 4


def turned_frame(frame, arch, k, end, angle):
    """The frame with all stones to the right of joint k turned about an end of it."""
    centre = arch.joints[k, end]
    rows = arch.chain[k + 1 :]
    c, s = math.cos(angle), math.sin(angle)
    positions, rotations = frame.positions.copy(), frame.rotations.copy()
    positions[rows] = centre + (positions[rows] - centre) @ np.array([[c, s], [-s, c]])
    rotations[rows] += angle
    return frame._replace(positions=positions, rotations=rotations)


@pytest.mark.parametrize("k, end, angle, about", [(4, 1, 0.02, "extrados"), (9, 0, -0.02, "intrados")])
def test_a_hinge_is_read(built, k, end, angle, about):
    # Turned counter-clockwise, the right part of an arch opens on the intrados.
    start = cd.Simulation(built.scene, time_step=2e-3).frame()
    joints = _bridge.joints(built, start, turned_frame(start, built.arch, k, end, angle))
    np.testing.assert_allclose(joints.turn, np.where(np.arange(18) == k, angle, 0.0), atol=1e-12)
    np.testing.assert_allclose(joints.slip, 0.0, atol=1e-12)
    np.testing.assert_allclose(joints.pivots[k], built.arch.joints[k, end], atol=1e-12)
    (hinge,) = joints.hinges(0.01)
    degrees = -65 + k * 130 / 17
    assert hinge["joint"] == k and hinge["about"] == about
    assert hinge["degrees_from_crown"] == pytest.approx(degrees)
    assert hinge["opening"] == pytest.approx(0.02 * 0.7)
    assert joints.slid(1e-9).size == 0


def test_a_slip_is_read(built):
    start = cd.Simulation(built.scene, time_step=2e-3).frame()
    out = built.arch.joints[6, 1] - built.arch.joints[6, 0]
    positions = start.positions.copy()
    positions[built.arch.chain[7:]] -= 0.05 * out / np.linalg.norm(out)
    joints = _bridge.joints(built, start, start._replace(positions=positions))
    assert joints.slid(0.01).tolist() == [6] and joints.slip[6] == pytest.approx(-0.05)
    assert joints.opened(0.01).size == 0


def wedge(friction, half=0.2):
    """A keystone with faces inclined by ``half`` between two fixed stones, under a fixed disk."""
    scene = cd.Scene(gravity=(0, -1.0))
    scene.material("stone", density=1.0)
    scene.contact("stone", "stone", friction=friction)
    t = math.tan(half)
    key = cd.Polygon([(-1, -1), (1, -1), (1 + 2 * t, 1), (-1 - 2 * t, 1)])
    scene.add(key, material="stone", position=key.center_of_mass)
    for side in (-1, 1):
        stone = cd.Polygon([(side, -1), (side * (1 + 2 * t), 1), (side * 4, 1), (side * 4, -1)])
        scene.add(stone, material="stone", position=stone.center_of_mass, fixed=True)
    disk = scene.add(cd.Disk(0.1), material="stone", position=(0, 1.1), fixed=True)
    sim = cd.Simulation(scene, time_step=1e-3)
    return sim.frame()._replace(contacts=sim.is_equilibrium().contacts), disk


def test_largest_push():
    # A wedge between fixed stones bears any push: their normal forces grow with it.
    frame, disk = wedge(0.3)
    assert analysis.largest_push(frame, 0.3, disk) == math.inf
    # A horizontal pusher against a block of weight w on the floor: friction of the floor, and what the pusher's own
    # friction adds to the weight or takes from it, F (1 - mu^2) <= mu w: pressing down by mu F.
    mu = 0.5
    scene = cd.Scene(gravity=(0, -10.0))
    scene.material("stone", density=1.0)
    scene.contact("stone", "stone", friction=mu)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="stone", fixed=True)
    scene.add(cd.Rectangle(4.0, 1.0), material="stone", position=(0, 0.5))
    pusher = scene.add(cd.Disk(0.1), material="stone", position=(-2.1, 0.2), fixed=True)
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    assert analysis.largest_push(frame, mu, pusher) == pytest.approx(mu * 40 / (1 - mu**2), rel=1e-6)
    with pytest.raises(cd.InputError, match="no contact of body 99"):
        analysis.largest_push(frame, mu, 99)


def test_wrong_options():
    with pytest.raises(cd.InputError, match="odd"):
        _bridge.bridge(bridge.PARAMETERS | {"voussoirs": 16}, 0.6)
    for wrong in ({"thickness": "0"}, {"voussoirs": "5"}, {"frictions": "-1"}):
        with pytest.raises(cd.InputError, match="out of range"):
            runner.parameters_of(runner.load("bridge"), wrong)
    with pytest.raises(cd.InputError, match="reading"):
        bridge.build(bridge.PARAMETERS | {"reading": 2.0})
