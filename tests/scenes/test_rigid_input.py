"""Wrong input of rigid-body scenes: an InputError of one sentence that says what came, and what to do."""

from contextlib import contextmanager

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.errors import StepWarning
from rigid_tools import DIMENSIONS, G, ball, floor, start, vector, world

NAN, INF = float("nan"), float("inf")
BAD_NUMBERS = [0.0, -1.0, NAN, INF, -INF, None, "1", [1.0]]


@contextmanager
def complains(*words):
    """An InputError comes: one sentence on one line that contains all ``words``."""
    with pytest.raises(cd.InputError) as told:
        yield
    message = str(told.value)
    assert "\n" not in message and len(message) < 330 and message.endswith(".")
    for word in words:
        assert word in message


def scene_with(d=3, **law):
    scene = world(d, **law)
    floor(scene)
    return scene


def valid(d=3, **law):
    scene = scene_with(d, **law)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1))
    return scene


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=str)
@pytest.mark.parametrize("kind", [cd.Sphere, cd.Disk])
def test_radius(kind, value):
    with complains(kind.__name__, "radius", "positive"):
        kind(value)


@pytest.mark.parametrize(
    "normal", [(0, 0, 0), (NAN, 0, 1), (0, 1), (0, 0, 1, 0), 3.0, (INF, 0, 0), "up", None], ids=str
)
def test_plane_normal(normal):
    with complains("Plane", "normal"):
        cd.Plane(normal)


def test_half_plane_normal():
    with complains("HalfPlane", "normal", "2 numbers"):
        cd.HalfPlane((0, 0, 1))


@pytest.mark.parametrize(
    ("radii", "centres"),
    [
        ([0.1, 0.2], [(0, 0, 0)]),
        ([0.1], [(0,)]),
        ([0.1, 0.0], [(0, 0), (1, 0)]),
        ([0.1, -1.0], [(0, 0), (1, 0)]),
        ([0.1, NAN], [(0, 0), (1, 0)]),
        ([0.1, 0.1], [(0, 0), (NAN, 0)]),
        ([], np.zeros((0, 3))),
    ],
    ids=str,
)
def test_cluster(radii, centres):
    with complains("Cluster"):
        cd.Cluster(radii, centres)


@pytest.mark.parametrize("shape", [cd.Disk(0.1), cd.HalfPlane((0, 1)), cd.Cluster([0.1], [(0, 0)])], ids=repr)
def test_a_shape_of_two_dimensions_in_a_scene_of_three(shape):
    scene = world(3)
    with complains("dimensions"):
        scene.add(shape, material="m", fixed=True)


@pytest.mark.parametrize("shape", [cd.Sphere(0.1), cd.Plane((0, 0, 1)), cd.Cluster([0.1], [(0, 0, 0)])], ids=repr)
def test_a_shape_of_three_dimensions_in_a_scene_of_two(shape):
    scene = world(2)
    with complains("dimensions"):
        scene.add(shape, material="m", fixed=True)


@pytest.mark.parametrize("shape", [None, 0.1, "ball", cd.Sphere], ids=repr)
def test_what_is_no_shape(shape):
    with complains("shape", "Sphere"):
        world(3).add(shape, material="m")


def test_add_many():
    scene = world(3)
    place = np.arange(9.0).reshape(3, 3)
    with complains("radius", "row 1"):
        scene.add_many([0.1, 0.0, 0.1], material="m", position=place)
    with complains("radius", "row 2"):
        scene.add_many([0.1, 0.1, NAN], material="m", position=place)
    with complains("3 positions"):
        scene.add_many([0.1, 0.1], material="m", position=place)
    with complains("2 shapes"):
        scene.add_many([cd.Sphere(0.1), cd.Sphere(0.2)], material="m", position=place)
    with complains("shapes"):
        scene.add_many(cd.Disk(0.1), material="m", position=place)
    with complains("position"):
        scene.add_many(0.1, material="m", position=place[:, :2])
    with complains("position", "nan"):
        scene.add_many(0.1, material="m", position=np.where(place == 4, NAN, place))
    with complains("velocity"):
        scene.add_many(0.1, material="m", position=place, velocity=np.zeros((2, 3)))
    with complains("Unknown material"):
        scene.add_many(0.1, material="gold", position=place)


# ---- the scene -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gravity", [(0,), (0, 0, 0, 0), (0, NAN), (INF, 0, 0), 9.81, "down", None], ids=str)
def test_gravity(gravity):
    with complains("gravity"):
        cd.Scene(gravity=gravity)


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=str)
def test_density(value):
    with complains("density", "positive"):
        world(3).material("x", density=value)


def test_materials():
    scene = world(3)
    with complains("twice"):
        scene.material("m", density=1.0)
    with complains("name"):
        scene.material("", density=1.0)
    with complains("unknown options", "frictoin"):
        scene.material("x", density=1.0, frictoin=0.3)
    with complains("restitution"):
        scene.material("x", density=1.0, restitution=1.5)
    with complains("Unknown material 'glas'", "m"):
        scene.add(cd.Sphere(0.1), material="glas")
    with complains("Unknown material 'glas'"):
        scene.contact("m", "glas", friction=0.3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("friction", -0.1), ("friction", NAN), ("friction", INF), ("friction", "much"), ("static_friction", 0.1),
        ("restitution", -0.1), ("restitution", 1.1), ("restitution", NAN), ("tangential_restitution", 2.0),
        ("rolling", -1.0), ("rolling", NAN), ("spinning", -1.0), ("cohesion", -1.0), ("cohesion", INF),
        ("tension", NAN), ("anisotropic", (0.1,)), ("anisotropic", (0.1, -0.2)), ("friction", lambda v: 0.3),
        ("two_sided", (0.1, 0.2)), ("wet", True),
    ],
)  # fmt: skip
def test_law_of_a_contact(option, value):
    options = {"friction": 0.3} if option == "static_friction" else {}
    with complains():
        world(3).contact("m", "m", **{**options, option: value})


def test_laws_that_do_not_go_together():
    scene = world(3)
    with complains("cohesion and tension"):
        scene.contact("m", "m", cohesion=1.0, tension=1.0)
    with complains("friction"):
        scene.contact("m", "m", friction=0.3, anisotropic=(0.1, 0.2), axis=(1, 0, 0))
    with complains("axis"):
        scene.contact("m", "m", anisotropic=(0.1, 0.2))
    with complains("axis"):
        scene.contact("m", "m", anisotropic=(0.1, 0.2), axis=(0, 0, 0))
    with complains("axis"):
        scene.contact("m", "m", anisotropic=(0.1, 0.2), axis=(NAN, 0, 1))
    with complains("anisotropic"):
        world(2).contact("m", "m", anisotropic=(0.1, 0.2), axis=(1, 0, 0))


def test_a_contact_that_is_not_stated():
    scene = cd.Scene(gravity=(0, 0, -G))
    scene.material("a", density=1.0)
    scene.material("b", density=1.0, friction=0.3)
    scene.add(cd.Plane((0, 0, 1)), material="a", fixed=True)
    scene.add(cd.Sphere(0.1), material="b", position=(0, 0, 0.2))
    with complains("'a' with 'b'", "scene.contact('a', 'b'"):
        start(scene, 1e-3)


def test_empty_scene_and_scene_without_free_body():
    with complains("empty", "scene.add"):
        start(cd.Scene(gravity=(0, 0, -G)), 1e-3)
    scene = scene_with()
    with complains("no free body"):
        start(scene, 1e-3)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 1), motion=(1, 0, 0))
    with complains("no free body"):
        start(scene, 1e-3)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("option", ["position", "velocity", "spin", "rotation", "mass", "inertia"])
def test_nan_and_wrong_shapes_in_a_body(d, option):
    size = {"spin": 1 if d == 2 else 3, "rotation": 1 if d == 2 else 4, "mass": 1, "inertia": 3}.get(option, d)
    for value in (np.full(size, NAN), np.full(size, INF), np.zeros(size + 5), "far"):
        with complains(option):
            number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
            world(d).add(ball(d, 0.1), material="m", **{option: number})


def test_impossible_bodies():
    scene = world(3)
    for value in (0.0, -1.0):
        with complains("mass"):
            scene.add(cd.Sphere(0.1), material="m", mass=value)
        with complains("inertia"):
            scene.add(cd.Sphere(0.1), material="m", inertia=(1.0, 1.0, value))
    with complains("inertia", "sum"):
        scene.add(cd.Sphere(0.1), material="m", inertia=(1.0, 1.0, 3.0))
    with complains("rotation"):
        scene.add(cd.Sphere(0.1), material="m", rotation=(0, 0, 0, 0))
    with complains("fixed=True", "motion"):
        scene.add(cd.Sphere(0.1), material="m", fixed=True, motion=(1, 0, 0))
    with complains("neither fixed nor driven"):
        scene.add(cd.Plane((0, 0, 1)), material="m")
    with complains("fixed", "velocity"):
        scene.add(cd.Sphere(0.1), material="m", fixed=True, velocity=(1, 0, 0))
    with complains("fixed", "spin"):
        scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True, spin=(1, 0, 0))
    with complains("fixed", "velocity"):
        scene.add_many(0.1, material="m", position=np.eye(3), velocity=(1, 0, 0), fixed=True)


# ---- loads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_motions_and_forces(d):
    scene = scene_with(d)
    for motion in (np.zeros(d + 1), np.full(d, NAN), lambda t: 1.0, lambda t: np.full(d, NAN), 3.0):
        with complains("motion velocity"):
            scene.add(ball(d, 0.1), material="m", motion=motion)
    with complains("motion spin"):
        scene.add(ball(d, 0.1), material="m", motion=cd.Drive(spin=(1.0, 2.0)))
    body = scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.2))
    for force in (np.zeros(d + 1), np.full(d, NAN), lambda t: 1.0):
        with complains("force"):
            scene.force(body, force=force)
    with complains("torque"):
        scene.force(body, torque=np.zeros(2))
    with complains("no body 7"):
        scene.force(7, force=np.zeros(d))
    with complains("no body -1"):
        scene.spring(-1, stiffness=1.0)
    with complains("no body 9"):
        scene.spring(body, 9, stiffness=1.0)
    for name in ("stiffness", "damping", "length"):
        for value in (-1.0, NAN, INF, None):
            with complains(name):
                scene.spring(body, **{"stiffness": 1.0, name: value})
    with complains("anchor"):
        scene.spring(body, stiffness=1.0, anchor=np.full(d, NAN))


def test_profiles():
    with complains("ramp"):
        cd.loads.ramp(0.0, 1.0, 2.0, 1.0)
    with complains("table"):
        cd.loads.table([0.0, 0.0], [1.0, 2.0])
    with complains("table"):
        cd.loads.table([0.0], [1.0])
    with complains("table"):
        cd.loads.table([0.0, 1.0], [1.0, NAN])
    with complains("constant"):
        cd.loads.constant(NAN)
    with complains("amplitude"):
        cd.loads.sine((NAN, 0), 1.0)
    with complains("frequency"):
        cd.loads.sine((1.0, 0), NAN)


def test_a_force_that_becomes_nan_stops_the_run():
    scene = valid()
    scene.force(1, force=lambda t: (NAN if t > 0.01 else 0.0, 0, 0))
    sim = start(scene, 1e-3)
    with complains("nan", "t = 0.011"):
        sim.run(until=0.1, progress=False)


@pytest.mark.parametrize("what", ["velocity", "spin"])
def test_a_motion_that_becomes_nan_stops_the_run(what):
    # also when the driven body touches nothing at that time: it would be gone without a word
    scene = world(3)
    bad = cd.Drive(**{what: lambda t: (NAN if t > 0.01 else 0.0, 0, 0)})
    scene.add(cd.Plane((0, 0, 1)), material="m", motion=bad)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 5.0))
    sim = start(scene, 1e-3)
    with complains("nan"):
        sim.run(until=0.1, progress=False)


# ---- the simulation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -1e-3, NAN, INF, None, "fast", [1e-3]], ids=str)
@pytest.mark.parametrize("option", ["time_step", "tolerance", "max_iterations"])
def test_numbers_of_a_simulation(option, value):
    with complains(option, "positive"):
        cd.Simulation(valid(), **{"time_step": 1e-3, option: value})


def test_options_of_a_simulation():
    for option, value in (
        ("penetration", "none"), ("on_failure", "explode"), ("recovery", -1.0), ("recovery", NAN), ("recovery", None),
        ("solver", "magic"), ("max_iterations", 0.5),
    ):  # fmt: skip
        with complains(option):
            cd.Simulation(valid(), **{"time_step": 1e-3, option: value})
    with complains("Scene"):
        cd.Simulation("scene", time_step=1e-3)
    with pytest.raises(TypeError, match="speed"):
        cd.Simulation(valid(), time_step=1e-3, speed="fast")


@pytest.mark.parametrize("until", [-0.1, NAN, INF, None], ids=str)
def test_until(until):
    sim = start(valid(), 1e-3)
    with complains("until"):
        sim.run(until=until, progress=False)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_overlap_at_the_start(d):
    # beyond 5 % of the smaller radius; just below it is allowed
    for depth, allowed in ((0.04, True), (0.06, False), (0.5, False)):
        for other in ("floor", "ball"):
            scene = scene_with(d)
            if other == "floor":
                scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 0.1 * (1 - depth)))
            else:
                scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 1.0))
                scene.add(ball(d, 0.3), material="m", position=vector(d, 0.4 - 0.1 * depth, 1.0))
            if allowed:
                start(scene, 1e-3)
            else:
                with complains("overlap", "repair=True"):
                    start(scene, 1e-3)


def test_the_parts_of_a_cluster_may_overlap_and_a_body_that_comes_later_is_told_by_the_report():
    scene = world(3)
    floor(scene)
    scene.add(cd.Cluster([0.1, 0.1], [(0, 0, 0), (0.15, 0, 0)]), material="m", position=(0, 0, 0.1))
    sim = start(scene, 1e-3)
    sim.step()
    assert sim.report.relative_penetration < 1e-3
    late = sim.add(cd.Sphere(0.1), material="m", position=(-0.075, 0, 0.25))
    with pytest.warns(StepWarning, match=f"Bodies 1 and {late} overlap by 50% .* t = 0.002"):
        sim.step()
    assert sim.report.relative_penetration == pytest.approx(0.5, abs=0.01)


def test_same_place():
    scene = world(3)
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 1))
    scene.add(cd.Sphere(0.1), material="m", position=(0, 0, 1))
    with complains("overlap"):
        start(scene, 1e-3)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_step_in_which_a_body_may_cross_another(d):
    scene = scene_with(d)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 5.0), velocity=vector(d, 300.0))
    with pytest.warns(StepWarning, match="may cross another") as told:
        cd.Simulation(scene, time_step=1e-3)
    assert "time_step of 0.00017 or less" in str(told[0].message)  # half a radius, at 300 m/s
    cd.Simulation(scene, time_step=1.7e-4)  # and it does: no warning
    cd.Simulation(scene, time_step=1e-3, penetration="anticipate")  # neither


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_driven_body_that_may_cross_another(d):
    scene = scene_with(d)
    scene.add(ball(d, 0.1), material="m", position=vector(d, 0, 5.0))
    scene.add(ball(d, 0.1), material="m", position=vector(d, 1, 5.0), motion=vector(d, 300.0))
    with pytest.warns(StepWarning, match="may cross another"):
        cd.Simulation(scene, time_step=1e-3)
