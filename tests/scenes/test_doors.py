"""A scene in a simulation is closed, and the simulation has the doors; bodies are known by their numbers."""

import numpy as np
import pytest

import contactdynamics as cd
from rigid_tools import DIMENSIONS, ball, floor, vector, world

MODES = ("moreau", "anticipate")


def two_balls(d, **options):
    scene = world(d, density=1000.0, friction=0.3)
    floor(scene)
    numbers = [scene.add(ball(d, 0.1), material="m", position=vector(d, x, 0.5)) for x in (0.0, 1.0)]
    return scene, numbers, cd.Simulation(scene, time_step=1e-3, **options)


# ---- a closed scene --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, edit",
    [
        ("add", lambda s: s.add(cd.Disk(0.1), material="m", position=(3, 3))),
        ("add_many", lambda s: s.add_many([0.1], material="m", position=[(3, 3)])),
        ("force", lambda s: s.force(1, force=(1, 0))),
        ("spring", lambda s: s.spring(1, stiffness=1.0)),
        ("contact", lambda s: s.contact("m", "m", friction=0.9)),
        ("material", lambda s: s.material("other", density=1.0)),
        ("gravity", lambda s: setattr(s, "gravity", (0, 0))),
    ],
)
def test_a_scene_in_a_simulation_is_closed_and_names_the_door(name, edit):
    scene, _, sim = two_balls(2)
    count, before = scene.count, scene.gravity
    for closed in (scene, sim.scene):
        with pytest.raises(cd.InputError, match=rf"closed.*sim\.{name}"):
            edit(closed)
    assert scene.count == sim.scene.count == count and (scene.gravity == before).all()
    with pytest.raises(ValueError, match="read-only"):
        scene.gravity[0] = 1.0


def test_a_scene_that_was_refused_stays_open():
    scene = world(2)
    scene.add(ball(2, 0.1), material="m", position=(0, 0))
    twin = scene.add(ball(2, 0.1), material="m", position=(0.1, 0))
    with pytest.raises(cd.InputError, match=f"Bodies 0 and {twin} overlap"):
        cd.Simulation(scene, time_step=1e-3)
    scene.add(ball(2, 0.1), material="m", position=(5, 0))  # not in a simulation: still open


def test_a_scene_serves_several_simulations_that_do_not_know_each_other():
    scene, (one, two), first = two_balls(2)
    second = cd.Simulation(scene, time_step=1e-3)
    extra = first.add(ball(2, 0.1), material="m", position=(2, 0.5))
    first.force(one, force=(1.0, 0))
    first.gravity = (0, 0)
    first.contact("m", "m", friction=0.0, restitution=1.0)
    assert scene.count == extra and len(second.identities) == 3
    third = cd.Simulation(scene, time_step=1e-3)
    for sim in (first, second, third):
        sim.run(until=0.5)
    assert (second.positions == third.positions).all()  # what the first one got is its own
    assert first.body(one).velocity[0] > 0 and first.body(two).velocity.tolist() == [0, 0]
    assert second.body(one).velocity[1] == pytest.approx(0, abs=1e-6)  # fell and lies


# ---- the doors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_force_that_comes_late_acts_from_the_next_step(d):
    _, (one, _), sim = two_balls(d)
    sim.gravity = np.zeros(d)
    sim.run(until=0.1)
    sim.force(one, force=vector(d, 2.0, 0.0))
    sim.run(until=0.2)
    assert sim.body(one).velocity[0] == pytest.approx(2.0 * 0.1 / sim.body(one).mass, rel=1e-12)
    assert sim.energy.force_work == pytest.approx(0.5 * sim.body(one).mass * sim.body(one).velocity[0] ** 2)
    sim.remove(one)
    with pytest.raises(cd.InputError, match=f"Body {one} was removed"):
        sim.force(one, force=vector(d, 1.0, 0.0))
    with pytest.raises(cd.InputError, match="Body 99 never was"):
        sim.spring(99, stiffness=1.0)


def test_a_spring_that_comes_late_pulls():
    # A mass on a spring from its natural length's end: x = x0 cos(w t), and energy is kept.
    scene = world(2)
    scene.gravity = (0, 0)
    one = scene.add(ball(2, 0.1), material="m", position=(1.0, 0.0))
    sim = cd.Simulation(scene, time_step=1e-4)
    sim.spring(one, stiffness=10 * sim.body(one).mass)
    assert sim.energy.potential == pytest.approx(5 * sim.body(one).mass)
    sim.run(until=0.5)
    assert sim.body(one).position[0] == pytest.approx(np.cos(np.sqrt(10) * 0.5), abs=1e-4)


def test_a_law_that_comes_late_acts():
    # A disk slides on the floor without friction, then with: it comes to roll at 2/3 of its speed (k = m r^2 / I = 2).
    scene = world(2, friction=0.0)
    floor(scene)
    one = scene.add(ball(2, 0.1), material="m", position=(0, 0.1), velocity=(1.0, 0))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.run(until=0.1)
    assert sim.body(one).velocity[0] == pytest.approx(1.0) and sim.body(one).spin == 0
    sim.contact("m", "m", friction=0.5)
    sim.run(until=1.0)
    assert sim.body(one).velocity[0] == pytest.approx(2 / 3, rel=1e-3)
    assert sim.body(one).spin == pytest.approx(-2 / 3 / 0.1, rel=1e-3)


def test_a_material_that_comes_late_and_a_body_that_is_refused():
    _, _, sim = two_balls(2)
    sim.material("new", density=5.0)
    before = len(sim.identities)
    with pytest.raises(cd.InputError, match="'m' with 'new' is not stated"):
        sim.add(ball(2, 0.1), material="new", position=(3, 1))
    sim.step()
    assert len(sim.identities) == before  # and no trace of the body that was refused
    sim.contact("m", "new", friction=0.1)
    sim.contact("new", "new", friction=0.1)
    number = sim.add(ball(2, 0.1), material="new", position=(3, 1))
    assert number == before and sim.body(number).mass == pytest.approx(5.0 * np.pi * 0.01)


# ---- bodies by number ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_body_is_known_by_its_number_whatever_comes_and_goes(d):
    _, (one, two), sim = two_balls(d)
    kept = sim.body(two)
    assert kept.kind == "free" and sim.body(0).kind == "fixed" and repr(kept) == f"Body {two}"
    sim.run(until=0.05)
    place = kept.position
    sim.remove(one)
    assert (kept.position == place).all() and kept.position[0] == 1.0
    assert (sim.frame().body(two).position == place).all()
    late = sim.add(ball(d, 0.1), material="m", position=vector(d, 3, 1), spin=4.0 if d == 2 else (0, 0, 4.0))
    assert late == two + 1 and sim.body(late).position[0] == 3
    sim.step()
    frame = sim.frame()
    for who in (sim, frame):
        row = int(np.flatnonzero(who.identities == late)[0])
        body = who.body(late)
        assert (body.position == who.positions[row]).all() and (body.velocity == who.velocities[row]).all()
        assert np.all(body.rotation == who.rotations[row]) and np.all(body.spin == who.spins[row])
        with pytest.raises(cd.InputError, match=f"Body {one} "):
            who.body(one)
        with pytest.raises(cd.InputError, match="Body 99 "):
            who.body(99)
    gone = sim.body(late)
    sim.remove(late)
    with pytest.raises(cd.InputError, match=f"Body {late} was removed"):
        _ = gone.position
    assert frame.body(late).position[0] == 3  # the frame is of before


def test_what_a_body_gives_cannot_be_mistaken_for_the_state():
    _, (one, _), sim = two_balls(2)
    with pytest.raises(ValueError, match="read-only"):
        sim.body(one).position[0] = 7.0
    with pytest.raises(AttributeError):
        sim.body(one).velocity = (1, 0)


def test_bodies_sorted_in_space_are_found():
    rng = np.random.default_rng(1)
    scene = world(2)
    scene.gravity = (0, 0)
    places = rng.permutation(np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2))
    numbers = scene.add_many(0.3, material="m", position=places)
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    assert (sim.bodies.identity != np.arange(len(numbers))).any()  # rows are not numbers
    assert all((sim.body(k).position == places[k]).all() for k in numbers[::37])


# ---- gravity that changes --------------------------------------------------------------------------------------------


def test_gravity_decides_the_dimension_at_the_start():
    assert cd.Scene(gravity=lambda t: (0, -1 - t)).dimension == 2
    assert cd.Scene(gravity=cd.loads.constant((0, 0, -1))).gravity.tolist() == [0, 0, -1]
    for wrong in (lambda t: 3.0, lambda t: (0, np.nan), "down", (1, 2, 3, 4)):
        with pytest.raises(cd.InputError):
            cd.Scene(gravity=wrong)
    _, _, sim = two_balls(2)
    with pytest.raises(cd.InputError, match="give 2 finite numbers"):
        sim.gravity = (0, 0, -1)
    sim.gravity = lambda t: (0, -9.81 if t < 0.01 else np.inf)
    with pytest.raises(cd.InputError, match=r"gravity gives \[0.0, inf\] at t = 0.01"):
        sim.run(until=0.1)


@pytest.mark.parametrize("kind", ["profile", "function"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_body_in_free_fall_follows_its_gravity(d, kind):
    # v = integral of g; the midpoint rule is exact for a ramp, and the ledger closes: all work is that of the force.
    end = vector(d, 3.0, -6.0)
    profile = cd.loads.ramp(np.zeros(d), end, 0.0, 1.0)
    gravity = profile if kind == "profile" else (lambda t: profile(t))
    scene = cd.Scene(gravity=gravity)
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.0)
    one = scene.add(ball(d, 0.1), material="m")
    sim = cd.Simulation(scene, time_step=1e-2).run(until=0.5)
    assert sim.body(one).velocity == pytest.approx(end * 0.5**2 / 2, rel=1e-12)
    assert sim.gravity == pytest.approx(0.5 * end) and sim.frame().gravity == pytest.approx(0.5 * end)
    body, energy = sim.body(one), sim.energy
    assert energy.potential == pytest.approx(-body.mass * (sim.gravity @ body.position))
    assert energy.force_work == pytest.approx(0.5 * body.mass * body.velocity @ body.velocity)
    assert energy.closure < 1e-12 * energy.kinetic
    problem = sim.contact_problem()
    assert problem.velocity.size == 0 and sim.gravity == pytest.approx(0.5 * end)  # a question leaves it as it was


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("penetration", MODES)
def test_a_block_slides_when_the_box_is_tilted_beyond_the_angle_of_friction(d, penetration):
    # tan(tilt) > friction: the equilibrium of the block ends there, by the one-step test too, which sees gravity now.
    friction, last = 0.4, np.radians(30)
    axis = {} if d == 2 else {"axis": (0, -1, 0)}  # the floor looks along z in 3D: it tilts towards x in both
    tilt = cd.loads.tilting(vector(d, 0.0, -9.81), cd.loads.ramp(0.0, last, 0.1, 1.1), **axis)
    scene = cd.Scene(gravity=tilt)
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=friction)
    floor(scene)
    feet = [vector(d, x, 0.0) for x in (-1.0, 1.0)] if d == 2 else [(-1, -1, 0), (1, -1, 0), (0, 1, 0)]
    block = scene.add(cd.Cluster([0.1] * len(feet), feet), material="m", position=vector(d, 0, 0.1))
    sim = cd.Simulation(scene, time_step=2e-3, tolerance=1e-6, penetration=penetration)
    stood, begins = [], None
    while sim.time < 1.1 - 1e-9:
        sim.step()
        angle = last * min(1.0, max(0.0, sim.time - 0.1))
        if begins is None and np.linalg.norm(sim.body(block).velocity) > 1e-3:
            begins = angle
        if sim.steps % 100 == 0:
            stood.append((angle, bool(sim.is_equilibrium())))
    # Beyond the critical angle v = g (w t^2 / 2) / cos: the angle at which 1 mm/s is reached, and two steps.
    critical = np.arctan(friction)
    late = np.sqrt(2 * 1e-3 * last * np.cos(critical) / 9.81)
    assert critical < begins < critical + late + 2 * sim.time_step * last
    assert all(found == (angle < critical) for angle, found in stood) and 2 <= sum(f for _, f in stood) < len(stood)
    assert abs(sim.body(block).velocity[0]) > 0.05
    assert sim.energy.closure < 1e-9 * abs(sim.energy.force_work)


@pytest.mark.parametrize("gravity", ["profile", "set"])
@pytest.mark.parametrize("penetration", MODES)
def test_files_carry_gravity_and_go_on_with_the_same_bits(tmp_path, gravity, penetration):
    def build(path):
        tilt = cd.loads.tilting((0, -9.81), cd.loads.sine(0.5, 2.0))
        scene = cd.Scene(gravity=tilt if gravity == "profile" else (0, -9.81))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.4)
        floor(scene)
        for x in range(4):
            scene.add(ball(2, 0.1), material="m", position=(0.25 * x, 0.1 + 0.03 * x))
        sim = cd.Simulation(scene, time_step=1e-3, penetration=penetration,
                            recorders=[cd.HDF5(path, every=20)])  # fmt: skip
        sim.run(until=0.1)
        if gravity == "set":
            sim.gravity = (3.0, -5.0)
        return sim

    whole = build(tmp_path / "whole.h5").run(until=0.3)
    build(tmp_path / "part.h5").run(until=0.2)
    rest = cd.Simulation.from_file(tmp_path / "part.h5").run(until=0.3)
    assert (rest.positions == whole.positions).all() and (rest.velocities == whole.velocities).all()
    assert (rest.gravity == whole.gravity).all() and rest.energy.potential == whole.energy.potential
    assert rest.energy.force_work == whole.energy.force_work
    with cd.open(tmp_path / "whole.h5") as recording:
        told = np.array([frame.gravity for frame in recording])
        if gravity == "profile":
            angle = 0.5 * np.sin(4 * np.pi * recording.times)
            wanted = -9.81 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        else:
            wanted = np.where(recording.times[:, None] <= 0.1 + 1e-9, [[0, -9.81]], [[3.0, -5.0]])
        assert told == pytest.approx(wanted, abs=1e-12)


def test_a_gravity_that_is_a_function_goes_on_from_its_program(tmp_path):
    def build(**options):
        scene = cd.Scene(gravity=lambda t: (0.0, -9.81 + t))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.4)
        scene.add(ball(2, 0.1), material="m")
        return cd.Simulation(scene, time_step=1e-3, **options)

    build(recorders=[cd.HDF5(tmp_path / "run.h5", every=10)]).run(until=0.1)
    with pytest.raises(cd.InputError, match=r"The gravity in .* is the Python function"):
        cd.Simulation.from_file(tmp_path / "run.h5")
    rest, whole = build().restore(tmp_path / "run.h5"), build().run(until=0.2)
    assert rest.gravity == pytest.approx((0, -9.71))
    assert (rest.run(until=0.2).positions == whole.positions).all()


def test_tilting_is_a_turn_of_gravity():
    # In the axes of a box that turns counter-clockwise, gravity turns clockwise; its size stays.
    quarter = cd.loads.tilting((0, -2.0), np.pi / 2)
    assert quarter(3.0) == pytest.approx((-2.0, 0.0))
    about_x = cd.loads.tilting((0, 0, -2.0), cd.loads.ramp(0, np.pi / 2, 0, 1), axis=(3, 0, 0))
    assert about_x(0.0) == pytest.approx((0, 0, -2)) and about_x(1.0) == pytest.approx((0, -2, 0))
    assert np.linalg.norm(about_x(0.3)) == pytest.approx(2.0)
    for wrong in (
        lambda: cd.loads.tilting((0, -1), 0.1, axis=(0, 0, 1)),
        lambda: cd.loads.tilting((0, 0, -1), 0.1),
        lambda: cd.loads.tilting((0, 0, -1), 0.1, axis=(0, 0, 0)),
        lambda: cd.loads.tilting((0, -1), cd.loads.constant((1, 2))),
        lambda: cd.loads.tilting(-1.0, 0.1),
    ):
        with pytest.raises(cd.InputError, match="tilting"):
            wrong()
