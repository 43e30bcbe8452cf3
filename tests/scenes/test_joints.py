"""Laws of single joints: two bodies have a law of their own, whatever their shapes, in files, statics and the run."""

import math

import numpy as np
import pytest

import contactdynamics as cd

TILT = 0.3  # rad
STAYS, SLIDES = 0.6, 0.1  # friction of the materials, of the joint
GRAVITY = 9.81


def slope(d, make, ground, **options):
    """Two bodies side by side on a ground that is tilted about y (z in the plane); the second one has a joint."""
    way = np.array((math.sin(TILT), -math.cos(TILT)))
    scene = cd.Scene(gravity=GRAVITY * (way if d == 2 else np.array((way[0], 0.0, way[1]))))
    scene.material("stone", density=2000.0, friction=STAYS)
    floor = scene.add(ground, material="stone", fixed=True, position=np.zeros(d))
    up = np.eye(d)[-1]
    bodies = [scene.add(make(), material="stone", position=0.5 * up + x * np.eye(d)[0]) for x in (-3.0, 3.0)]
    if options:
        scene.joint(bodies[1], floor, **options)
    return scene, floor, bodies


def flat(d):
    return cd.HalfPlane((0, 1)) if d == 2 else cd.Plane((0, 0, 1))


def under(d):
    """A ground made of a block, its face at height zero where its centre is: shifted by its shape."""
    return cd.Rectangle(20.0, 1.0) if d == 2 else cd.Box((20.0, 4.0, 1.0))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("on", ["plane", "block"])
def test_a_block_slides_on_its_joint_alone(d, on):
    make = (lambda: cd.Rectangle(1.0, 1.0)) if d == 2 else (lambda: cd.Box(1.0))
    scene, _, bodies = slope(d, make, flat(d) if on == "plane" else under(d), friction=SLIDES)
    if on == "block":  # the ground's face is half a metre above its centre
        for block in scene.blocks[1:]:
            block.bodies.position[:, d - 1] += 0.5
    sim = cd.Simulation(scene, time_step=1e-3)
    for _ in range(100):
        sim.step()
    pull = GRAVITY * (math.sin(TILT) - SLIDES * math.cos(TILT))
    assert np.abs(sim.body(bodies[0]).velocity).max() < 1e-9
    assert sim.body(bodies[1]).velocity[0] == pytest.approx(pull * 0.1, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_a_ball_without_friction_of_its_joint_does_not_roll(d):
    scene, _, bodies = slope(d, lambda: cd.Disk(0.5) if d == 2 else cd.Sphere(0.5), flat(d), friction=0.0)
    sim = cd.Simulation(scene, time_step=1e-3)
    for _ in range(100):
        sim.step()
    speed = GRAVITY * math.sin(TILT) * 0.1
    rolls = 2 / 3 if d == 2 else 5 / 7
    assert sim.body(bodies[0]).velocity[0] == pytest.approx(rolls * speed, rel=1e-6)
    assert sim.body(bodies[1]).velocity[0] == pytest.approx(speed, rel=1e-9)


def hung(**options):
    """Two cubes that hang under a ceiling, the second one by a joint."""
    scene = cd.Scene(gravity=(0, 0, -GRAVITY))
    scene.material("stone", density=1000.0, friction=0.5)
    ceiling = scene.add(cd.Box((6, 2, 1)), material="stone", fixed=True)
    cubes = [scene.add(cd.Box(1.0), material="stone", position=(x, 0, -1.0)) for x in (-1.5, 1.5)]
    scene.joint(ceiling, cubes[1], friction=0.5, **options)
    return scene, cubes


def test_cohesion_and_tension_of_one_joint():
    # A quarter of the weight for each corner, and half as much again: glue that opens breaks, so that with less a step
    # has solutions in which some corners break as well as one in which all hold.
    for name in ("cohesion", "tension"):
        scene, cubes = hung(**{name: 1.5 * 1000 * GRAVITY / 4})
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-9)
        for _ in range(50):
            sim.step()
        assert sim.body(cubes[0]).velocity[2] == pytest.approx(-GRAVITY * 0.05, rel=1e-9), name
        assert abs(sim.body(cubes[1]).velocity[2]) < 1e-9, name


def test_a_file_has_the_joints_and_a_run_goes_on_with_the_same_bits(tmp_path):
    path = tmp_path / "run.h5"
    whole, _, bodies = slope(3, lambda: cd.Box(1.0), cd.Plane((0, 0, 1)), friction=SLIDES)
    sim = cd.Simulation(whole, time_step=1e-3, recorders=[cd.HDF5(path, every=0.01)])
    sim.run(until=0.03, progress=False)
    again = cd.Simulation.from_file(path)
    for _ in range(20):
        sim.step()
        again.step()
    assert np.array_equal(sim.positions, again.positions) and np.array_equal(sim.velocities, again.velocities)
    assert again.body(bodies[1]).velocity[0] > 0.05
    with cd.open(path) as run:
        frame = run[-1]
        friction = {tuple(sorted(pair)): frame.laws[k].friction
                    for pair, k in zip(frame.contacts.bodies.tolist(), frame.contact_laws, strict=True)}  # fmt: skip
    assert friction == {(0, 1): STAYS, (0, 2): SLIDES}


def test_limit_analysis_knows_the_joints():
    scene, floor, bodies = slope(3, lambda: cd.Box(1.0), cd.Plane((0, 0, 1)), friction=SLIDES)
    scene.gravity = (0, 0, -GRAVITY)
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    both = [cd.analysis.load_factor(frame, (1, 0, 0), bodies=[body]).factor for body in bodies]
    assert both == pytest.approx([STAYS, SLIDES], rel=1e-6)
    sim.joint(floor, bodies[1], friction=0.3)  # stated anew
    assert cd.analysis.load_factor(sim.frame()._replace(contacts=frame.contacts), (1, 0, 0)).factor == pytest.approx(
        0.3, rel=1e-6
    )


def test_a_joint_stated_while_the_run_goes_on():
    scene, floor, bodies = slope(3, lambda: cd.Box(1.0), cd.Plane((0, 0, 1)))
    sim = cd.Simulation(scene, time_step=1e-3)
    for _ in range(5):
        sim.step()
    assert np.abs(sim.velocities).max() < 1e-9
    with pytest.raises(cd.InputError, match=r"sim\.joint"):
        scene.joint(floor, bodies[1], friction=SLIDES)
    sim.joint(floor, bodies[1], friction=SLIDES)
    new = sim.add(cd.Box(1.0), material="stone", position=(6.0, 0, 0.5))
    sim.joint(floor, new, friction=0.0)
    for _ in range(10):
        sim.step()
    assert sim.body(bodies[0]).velocity[0] == pytest.approx(0.0, abs=1e-9)
    assert sim.body(bodies[1]).velocity[0] == pytest.approx(
        0.01 * GRAVITY * (math.sin(TILT) - SLIDES * math.cos(TILT)), rel=1e-6
    )
    assert sim.body(new).velocity[0] == pytest.approx(0.01 * GRAVITY * math.sin(TILT), rel=1e-6)
    sim.remove([bodies[1]])
    sim.step()
    assert sim.body(new).velocity[0] == pytest.approx(0.011 * GRAVITY * math.sin(TILT), rel=1e-6)


def test_wrong_joints_are_told():
    scene, floor, bodies = slope(3, lambda: cd.Box(1.0), cd.Plane((0, 0, 1)))
    for pair, options, words in (
        ((floor, floor), {"friction": 0.1}, "twice"),
        ((floor, 9), {"friction": 0.1}, "There is no body 9"),
        ((floor, "x"), {"friction": 0.1}, "There is no body"),
        ((floor, bodies[0]), {"frictoin": 0.1}, "unknown option frictoin"),
        ((floor, bodies[0]), {"friction": -1.0}, "friction"),
        ((floor, bodies[0]), {"anisotropic": (0.1, 0.2)}, "by materials"),
        ((floor, bodies[0]), {"friction": lambda v: 0.1}, "constant friction"),
    ):
        with pytest.raises(cd.InputError, match=words):
            scene.joint(*pair, **options)
