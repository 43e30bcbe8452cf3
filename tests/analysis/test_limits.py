"""Limit analysis in three dimensions: closed forms, duality, both solvers, and what it refuses."""

import math
import sys

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.scenes import packings

try:
    import clarabel  # noqa: F401

    WAYS = ["planes", "cones"]
except ImportError:
    WAYS = ["planes"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Each of the solvers of the programme."""
    if request.param == "planes":
        monkeypatch.setitem(sys.modules, "clarabel", None)  # as if it were not installed
    return request.param


def stone_scene(friction=0.6, **law):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=2000.0)
    scene.contact("m", "m", friction=friction, **law)
    scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
    return scene


def frame_of(scene):
    sim = cd.Simulation(scene, time_step=1e-3)
    return sim.frame()._replace(contacts=sim.is_equilibrium(tolerance=1.0, max_iterations=1).contacts)


@pytest.mark.parametrize(("drums", "friction"), [(1, 0.6), (4, 0.6), (8, 0.6), (1, 0.3), (2, 0.2)])
def test_a_column_topples_or_slides(way, drums, friction):
    # tan of the angle: width over height, or the friction, whichever comes first; along a side and along a diagonal.
    scene = stone_scene(friction)
    packings.column(scene, material="m", width=1.0, height=float(drums), drums=drums)
    frame = frame_of(scene)
    for direction, reach in (((1, 0, 0), 1.0), ((1, 1, 0), math.sqrt(2))):
        found = analysis.load_factor(frame, direction)
        assert found.factor == pytest.approx(min(reach / drums, friction), rel=2e-3 if way == "planes" else 1e-5)
        assert found.factor <= min(reach / drums, friction) * (1 + 1e-5)


def test_the_mechanism_proves_the_factor(way):
    # Kinematics: in the motion by which it gives way no contact closes, and what slips opens by mu |U_t| at least; the
    # live load works 1 and the weights minus the factor. So no forces within the cones balance more.
    scene = stone_scene(0.6)
    packings.wall(scene, material="m", length=2.0, courses=4, block=(1.0, 0.5), depth=0.5)
    frame = frame_of(scene)
    found = analysis.load_factor(frame, (0, 1, 0))
    assert found.degrees == pytest.approx(math.degrees(math.atan(0.5 / 2.0)), rel=1e-5)
    weights, motion = frame.masses * 9.81, found.mechanism
    mean = weights[frame.kinds == 0].mean()
    assert (weights @ motion[:, 1])[()] / mean == pytest.approx(1.0, abs=1e-5)
    assert (weights @ motion[:, 2]) / mean == pytest.approx(found.factor, abs=1e-5)  # they are lifted
    rows = np.searchsorted(frame.identities, frame.contacts.bodies)
    arms = [frame.contacts.point - frame.positions[side] for side in rows.T]
    velocity = [motion[side, :3] + np.cross(motion[side, 3:], arm) for side, arm in zip(rows.T, arms, strict=True)]
    u = np.einsum("kij,kj->ki", frame.contacts.frame, velocity[1] - velocity[0])
    opens = u[:, 0] - 0.6 * np.linalg.norm(u[:, 1:], axis=1)
    assert opens.min() > -(0.05 if way == "planes" else 1e-5) * np.abs(u).max()


def test_the_forces_balance_and_are_within_the_laws(way):
    scene = stone_scene(0.5)
    packings.arch(scene, material="m", span=4.0, thickness=0.5, voussoirs=9, depth=0.6, position=(0, 0, 1.0))
    frame = frame_of(scene)
    answer = analysis.balance(frame)
    assert answer and answer.unbalanced < 1e-7
    contacts = answer.contacts
    force = np.einsum("kij,ki->kj", contacts.frame, contacts.impulse) / frame.time_step
    rows = np.searchsorted(frame.identities, contacts.bodies)
    total = np.zeros((len(frame.masses), 3))
    np.add.at(total, rows[:, 1], force)
    np.add.at(total, rows[:, 0], -force)
    free, weight = frame.kinds == 0, frame.masses * 9.81
    np.testing.assert_allclose(total[free], weight[free, None] * [0, 0, 1.0], atol=1e-5 * weight[free].mean())
    assert (np.linalg.norm(contacts.impulse[:, 1:], axis=1) <= 0.5 * contacts.impulse[:, 0] + 1e-6).all()
    assert not analysis.balance(frame, 0.05)  # so smooth that it slides


def test_cohesion_and_single_bodies(way):
    # A cube glued by four corners of cohesion c each: pulled sideways it slides at mu (W + 4 c), if it does not topple.
    weight = 2000 * 9.81
    scene = stone_scene(0.1, cohesion=0.25 * weight)
    scene.add(cd.Box(1.0), material="m", position=(0, 0, 0.5))
    other = scene.add(cd.Box(1.0), material="m", position=(3, 0, 0.5))
    frame = frame_of(scene)
    assert analysis.load_factor(frame, (1, 0, 0)).factor == pytest.approx(0.2, rel=2e-3)
    assert analysis.load_factor(frame, (1, 0, 0), bodies=[other]).factor == pytest.approx(0.2, rel=2e-3)
    assert math.isinf(analysis.load_factor(frame, (0, 0, -1)).factor)


def test_the_plane_is_a_slice_of_space():
    # The same wall in two and in three dimensions, pushed in its plane: the same factor, by both programmes.
    flat = cd.Scene(gravity=(0, -9.81))
    flat.material("m", density=2000.0)
    flat.contact("m", "m", friction=0.6)
    flat.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    packings.wall(flat, material="m", length=2.0, courses=4, block=(1.0, 0.5))
    deep = stone_scene(0.6)
    packings.wall(deep, material="m", length=2.0, courses=4, block=(1.0, 0.5), depth=0.5)
    two = analysis.load_factor(frame_of(flat), (1, 0))
    three = analysis.load_factor(frame_of(deep), (1, 0, 0))
    assert two.factor == pytest.approx(three.factor, rel=2e-3)
    assert analysis.balance(frame_of(flat)) and analysis.balance(frame_of(deep))


def test_what_is_refused():
    scene = stone_scene(0.5, tension=10.0)
    scene.add(cd.Box(1.0), material="m", position=(0, 0, 0.5))
    frame, plain = frame_of(scene), frame_of(stone_scene_with_box())
    for call, words in (
        (lambda: analysis.load_factor(frame, (1, 0, 0)), "no tension"),
        (lambda: analysis.load_factor(plain, (1, 0)), "give 3 numbers"),
        (lambda: analysis.load_factor(plain, (1, 0, 0), bodies=[0]), "none of them free"),
        (lambda: analysis.load_factor(plain._replace(laws=()), (1, 0, 0)), "carries no laws"),
    ):
        with pytest.raises(cd.InputError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def stone_scene_with_box():
    scene = stone_scene(0.5)
    scene.add(cd.Box(1.0), material="m", position=(0, 0, 0.5))
    return scene
