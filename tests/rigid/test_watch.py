"""Never silently wrong: steps too long, bodies that fly away and energy from nowhere are told, with number and time."""

import re
import warnings

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.errors import ConvergenceWarning, EnergyWarning, RunawayError, StepWarning
from contactdynamics.rigid import neighbours
from rigid_tools import DIMENSIONS, ball, floor, vector, wall, world


def drive(sim, steps, way):
    """Make ``steps`` steps by one of the two doors; what was told on the way."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if way == "run":
            sim.run(until=steps * sim.time_step)
        else:
            for _ in range(steps):
                sim.step()
    assert all(w.filename == __file__ for w in told)  # the line of the user's program
    return [w for w in told if not issubclass(w.category, ConvergenceWarning)]


WAYS = pytest.mark.parametrize("way", ["run", "step"])

# ---- steps that are too long -----------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_step_too_long_is_told_once_with_body_time_and_cure(d, way):
    # Two balls fall from rest: after the step of 1 s their speed is g, a hundred radii per step.
    scene = world(d)
    floor(scene)
    numbers = [scene.add(ball(d, 0.1), material="m", position=vector(d, x, 0.5)) for x in (0.0, 1.0)]
    sim = cd.Simulation(scene, time_step=1.0)
    told = drive(sim, 4, way)
    assert [w.category for w in told] == [StepWarning]
    text = str(told[0].message)
    assert re.search(r"Body [12] .* t = 1[,:]", text) and "time_step" in text
    assert sim.watch.overlap > 1 and set(sim.watch.bodies) <= {0, *numbers}


@WAYS
@pytest.mark.parametrize("fast", [0.3, 0.9, 3.0])
def test_a_disk_that_crosses_a_thin_plate_is_told_and_anticipation_stops_it(fast, way):
    # ``fast``: radii in a step. The plate is a tenth as thick as the disk; overlaps count by its inner radius.
    def fly(penetration):
        scene = cd.Scene(gravity=(0, 0))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.0)
        plate = scene.add(cd.Rectangle(0.02, 4.0), material="m", fixed=True)
        disk = scene.add(cd.Disk(0.1), material="m", position=(-1.0, 0), velocity=(0.1 * fast / 1e-2, 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StepWarning)  # of the start: seen by the other tests
            sim = cd.Simulation(scene, time_step=1e-2, penetration=penetration)
        sim.watch.told.clear()
        return sim, plate, disk, drive(sim, round(20 / fast), way)

    _, plate, disk, told = fly("moreau")
    assert len(told) == 1 and told[0].category is StepWarning and 'penetration="anticipate"' in str(told[0].message)
    assert f"Body {disk}" in str(told[0].message) or f"Bodies {plate} and {disk}" in str(told[0].message)
    sim, _, disk, told = fly("anticipate")
    assert not told and sim.body(disk).position[0] == pytest.approx(-0.11, abs=1e-3)


def test_overlaps_beyond_a_tenth_are_told_with_both_bodies_and_less_is_not():
    # At the first midpoint inside, the overlap of a ball that comes at speed v is between 0 and v h; then it stays.
    for speed, expected in ((0.05, False), (0.5, True)):
        scene = cd.Scene(gravity=(0, 0))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.0)
        one = scene.add(cd.Disk(0.1), material="m", position=(0, 0))
        other = scene.add(cd.Disk(0.1), material="m", position=(0.2 + 0.01 * speed, 0), velocity=(-speed, 0))
        sim = cd.Simulation(scene, time_step=0.1)
        told = drive(sim, 3, "step")
        assert bool(told) == expected
        if told:
            assert f"Bodies {one} and {other} overlap by 20%" in str(told[0].message)  # 0.5 * 0.05 - 0.005, of 0.1
            assert "t = 0.1," in str(told[0].message) and 'penetration="anticipate"' in str(told[0].message)
        assert sim.watch.overlap == pytest.approx(max(0.0, 0.04 * speed / 0.1), rel=1e-9)


def test_the_largest_share_counts_not_the_largest_overlap():
    # A small ball sunk by half of its radius beside a large one sunk by a hundredth, which is more in metres.
    scene = world(2, gravity=0.0)
    floor(scene)
    scene.add(cd.Disk(10.0), material="m", position=(0, 9.9))
    small = scene.add(cd.Disk(0.1), material="m", position=(30, 0.05))
    sim = cd.Simulation(scene, time_step=1e-3, check=False)
    with pytest.warns(StepWarning, match=rf"Bodies 0 and {small} overlap by 50%"):
        report = sim.step().report
    assert report.relative_penetration == pytest.approx(0.5) and report.penetration == pytest.approx(0.1)


def test_the_ends_of_a_bar_that_turns_count_and_thin_bodies_are_thin():
    def fastest(shape, **options):
        scene = world(2, gravity=0.0)
        scene.add(shape, material="m", **options)
        scene.add(cd.Disk(0.1), material="m", position=(50, 50))
        sim = cd.Simulation(scene, time_step=1e-2, check=False)
        return sim.watch.fastest(sim.rows, sim.time_step)[0]

    assert fastest(cd.Disk(0.1), spin=1e3) == 0  # the surface of a ball goes nowhere
    assert fastest(cd.Disk(0.1), velocity=(3, 4)) == pytest.approx(0.5)
    assert fastest(cd.Rectangle(0.02, 2.0), velocity=(3, 4)) == pytest.approx(5.0)
    turning = fastest(cd.Rectangle(0.02, 2.0), spin=2.0)
    assert turning == pytest.approx(2.0 * np.hypot(0.01, 1.0) * 1e-2 / 0.01)
    rods = cd.Cluster([0.05] * 3, [(-1, 0), (0, 0), (1, 0)])
    assert fastest(rods, spin=2.0) == pytest.approx(2.0 * 1.05 * 1e-2 / 0.05)


def test_the_start_is_told_once_and_anticipation_needs_no_telling():
    scene = world(2, gravity=0.0)
    floor(scene)
    scene.add(cd.Disk(0.1), material="m", position=(0, 30), velocity=(0, -300))
    with pytest.warns(StepWarning, match="Body 1 travels 3 times its radius in the step to t = 0.001"):
        sim = cd.Simulation(scene, time_step=1e-3)
    assert not drive(sim, 50, "step")
    assert not drive(cd.Simulation(scene, time_step=1e-3, penetration="anticipate"), 50, "step")


def test_the_largest_overlap_of_a_run_is_said_at_its_end_and_in_its_file(tmp_path, capsys):
    scene = world(2, friction=0.3)
    floor(scene)
    for k in range(4):
        scene.add(cd.Disk(0.1), material="m", position=(0.01 * k, 0.2 + 0.25 * k))
    file = tmp_path / "run.h5"
    sim = cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(file, every=10)])
    largest = max((sim.step().report.relative_penetration, sim.time) for _ in range(400))
    sim.recorders[0].end(sim)
    assert 0 < largest[0] == sim.watch.overlap and sim.watch.time == largest[1]
    with pytest.raises(SystemExit) as end:
        main(["info", str(file)])
    said = capsys.readouterr().out
    a, b = sim.watch.bodies
    assert not end.value.code
    assert f"at most {largest[0]:.2%} of a radius (bodies {a} and {b}, t = {largest[1]:.4g})" in said
    again = cd.Simulation.from_file(file)
    assert (again.watch.overlap, again.watch.time, again.watch.bodies) == (largest[0], largest[1], (a, b))
    with pytest.raises(SystemExit):
        main(["resume", str(file), "--until", "0.41"])
    assert f"largest overlap {100 * largest[0]:.2g} % of a radius (bodies {a} and {b}" in capsys.readouterr().out


# ---- bodies that fly away --------------------------------------------------------------------------------------------


def flung(d, penetration="moreau", **options):
    """Balls on a grid, of which one is flung by a spring with an absurd length, through the others."""
    scene = world(d, friction=0.3)
    places = np.stack(np.meshgrid(*[np.arange(6) * 0.25] * d), axis=-1).reshape(-1, d)
    numbers = scene.add_many(0.1, material="m", position=places)
    scene.spring(int(numbers[0]), int(numbers[1]), stiffness=1e6, length=1e6)
    return cd.Simulation(scene, time_step=1e-3, penetration=penetration, **options)


@WAYS
@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_body_that_flies_away_is_told_and_costs_nothing(d, penetration, way):
    sim = flung(d, penetration)
    with pytest.raises(RunawayError, match=r"Body [01] flies away.* t = .*sim\.remove\([01]\)") as end:
        told = drive(sim, 10_000, way)  # it must end: beyond 1e12 radii numbers do not resolve a body
        assert not told
    assert end.value is not None and sim.steps < 10_000
    assert len(sim.contact_set.near.lists.other) < 200 * len(sim.rows)


@pytest.mark.parametrize("policy", ["warn", "raise", "ignore"])
def test_a_run_ends_as_on_failure_says(policy):
    scene = world(3, gravity=0.0)
    runner = scene.add(ball(3, 0.1), material="m")
    scene.add(ball(3, 0.1), material="m", position=(5, 5, 5))
    sim = cd.Simulation(scene, time_step=1e-3, on_failure=policy)
    sim.force(runner, force=(1e6 * sim.body(runner).mass / 1e-3, 0, 0))  # 1e6 m/s after one step
    if policy == "raise":
        with pytest.raises(RunawayError, match=rf"Body {runner} flies away: it moves 1e\+04 .* t = 0.001"):
            sim.run(until=0.01)
        assert sim.steps == 1
        return
    told = drive(sim, 10, "run")
    assert sim.steps == 10 and len(told) == (policy == "warn")
    if told:
        assert f"Body {runner} flies away" in str(told[0].message) and "t = 0.001" in str(told[0].message)


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
@pytest.mark.parametrize("speed", [2e3, 1e6, 1e12])
def test_neighbours_of_a_fast_cloud_take_no_more_memory_than_its_density(speed, penetration):
    # All balls are faster than the search can follow: lists hold what is nearer than twice the farthest look ahead,
    # d <= (2 REACH + 2) r, in a lattice of a ball per (2.2 r)^3: whatever the speed.
    scene = world(3, gravity=0.0)
    places = np.stack(np.meshgrid(*[np.arange(12) * 0.22] * 3), axis=-1).reshape(-1, 3)
    scene.add_many(0.1, material="m", position=places, velocity=(speed, 0, 0))
    sim = cd.Simulation(scene, time_step=1e-3, penetration=penetration, on_failure="ignore", check=False)
    sim.step()
    reach = 2 * neighbours.REACH + 2
    most = min(4 / 3 * np.pi * reach**3 / 2.2**3 / 2, len(places))
    assert len(sim.contact_set.near.lists.other) <= (most + neighbours.SLACK + 1) * len(places)
    assert sim.contact_set.near.lists.margin.max() <= 0.1 * neighbours.REACH


def test_lists_do_not_change_what_is_found():
    # Margins save work; contacts do not hang on them: a hail of fast balls into a heap, with margins of all sizes.
    def shoot(reach):
        rng = np.random.default_rng(3)
        scene = world(2, friction=0.3)
        floor(scene)
        scene.add_many(0.1, material="m", position=[(0.2 * x, 0.1 + 0.2 * y) for x in range(10) for y in range(3)])
        start = [(0.2 * k, 3.0 + rng.uniform(0, 2)) for k in range(10)]
        scene.add_many(0.1, material="m", position=start, velocity=(0, -40))
        sim = cd.Simulation(scene, time_step=1e-3, penetration="anticipate")
        sim.run(until=0.15)
        return sim.positions

    kept = neighbours.REACH
    wide = shoot(kept)
    try:
        neighbours.REACH = 2.0  # still more than 40 h = 0.4 radii
        assert (shoot(2.0) == wide).all()
    finally:
        neighbours.REACH = kept


# ---- who calls step is told what run tells ---------------------------------------------------------------------------


@WAYS
def test_energy_from_nowhere_is_told_by_both_doors_once(way):
    # A slanted bar of disks bounces with friction and full restitution: Kane's gain (2004, end of section 7.5).
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.5, restitution=1.0)
    scene.add(wall(2, (0, 1)), material="m", fixed=True)
    tilt, radius = np.radians(52), 0.005
    along = np.linspace(-1, 1, 11)[:, None] * [np.cos(tilt), np.sin(tilt)]
    scene.add(cd.Cluster(np.full(11, radius), along), material="m", mass=1.0, inertia=1 / 3,
              position=(0, np.sin(tilt) + radius + 5e-6), velocity=(0.5, -1))  # fmt: skip
    sim = cd.Simulation(scene, time_step=1e-6, tolerance=1e-12)
    told = drive(sim, 20, way)
    assert sim.energy.created > 0
    assert [w.category for w in told] == [EnergyWarning] and "restitution" in str(told[0].message)


def test_steps_that_are_not_solved_are_told_once():
    scene = world(2, friction=0.5)
    floor(scene)
    for k in range(12):
        scene.add(ball(2, 0.1), material="m", position=(0.01 * (k % 2), 0.1 + 0.199 * k))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=1e-14, max_iterations=2, solver="nlgs")
    with pytest.warns(ConvergenceWarning, match=r"At t = 0\.00\d: Not solved.*Told once") as told:
        for _ in range(5):
            sim.step()
    assert sim.failures > 1 and len(told) == 1


def test_the_sentence_about_energy_names_the_solver_where_no_law_bounces():
    from contactdynamics.errors import energy_message

    assert "lower the restitution" in energy_message(1.0, 1.0, 0.1, 3, 0.1)
    assert "smaller tolerance" in energy_message(1.0, 1.0, 0.1, 3, 0.1, restitution=False)


def test_the_audit_says_what_the_log_has(tmp_path):
    def build(name):
        scene = cd.Scene(gravity=(0, 0, -9.81))
        scene.material("m", density=1000.0)
        scene.contact("m", "m", friction=0.4)
        scene.add(cd.Plane((0, 0, 1)), material="m", fixed=True)
        for k in range(12):
            scene.add(
                cd.Sphere(0.05), material="m", position=(0.07 * (k % 3), 0.07 * (k // 3 % 2), 0.05 + 0.11 * (k // 3))
            )
        options = {"time_step": 1e-3, "solver": "nlgs", "max_iterations": 2, "tolerance": 1e-6, "on_failure": "ignore"}
        return cd.Simulation(scene, **options, recorders=[cd.HDF5(tmp_path / name, every=10)], repair=True)

    straight = build("a.h5").run(until=0.2, progress=False)
    with cd.open(tmp_path / "a.h5") as recording:
        worst = recording.log["residual"].max()
    assert straight.failures > 0
    said = straight.audit()
    assert said.startswith(f"{straight.failures} of 200 steps not solved, worst residual {worst:.1e}, largest overlap")
    share = float(said.split("closed to ")[1].split()[0])
    assert 0 <= share < 1e-9
    build("b.h5").run(until=0.1, progress=False)
    assert build("b.h5").restore(tmp_path / "b.h5").run(until=0.2, progress=False).audit() == said
