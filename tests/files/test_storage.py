"""Result files: what is written is what was, runs go on with the same bits, errors are told."""

import h5py
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.cli import main


def build(path=None, every=0.01, penetration="moreau", **options):
    """Twenty balls and a cluster falling into a box with a shaken floor."""
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3, restitution=0.2)
    scene.add(cd.Plane((0, 0, 1)), material="m", motion=cd.loads.sine((0, 0, 0.2), 5.0))
    for normal in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)):
        scene.add(cd.Plane(normal), material="m", position=-0.25 * np.array(normal), fixed=True)
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 2, np.arange(2)), -1).reshape(-1, 3) * 0.14 + (0, 0, 0.1)
    scene.add_many(
        rng.uniform(0.03, 0.06, len(grid)), material="m", position=grid + rng.uniform(-5e-3, 5e-3, grid.shape)
    )
    scene.add(cd.Cluster([0.05, 0.04], [(0, 0, 0), (0.06, 0, 0)]), material="m", position=(0, 0, 0.5), spin=(1, 2, 3))
    recorders = [] if path is None else [cd.HDF5(path, every=every)]
    return cd.Simulation(scene, time_step=1e-3, recorders=recorders, penetration=penetration, **options)


def same(a, b):
    return np.array_equal(a.rows, b.rows) and np.array_equal(a.bodies.position, b.bodies.position)


def test_a_frame_of_the_file_is_the_state_of_the_simulation(tmp_path):
    sim = build(tmp_path / "run.h5").run(until=0.2)
    live = sim.frame()
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording.times == pytest.approx(np.arange(21) * 0.01)
        read = recording[-1]
        assert recording.at(0.2).step == 200
        assert len(recording.log["residual"]) == 200
        assert recording.log["kinetic"][-1] == sim.energy.kinetic
    for name in live._fields:
        if name != "contacts":
            assert np.array_equal(getattr(live, name), getattr(read, name)), name
    for name in live.contacts._fields:
        assert np.allclose(getattr(live.contacts, name), getattr(read.contacts, name), atol=1e-15), name


def test_first_and_last_frame_are_always_in(tmp_path):
    build(tmp_path / "run.h5", every=0.03).run(until=0.05)
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording.times == pytest.approx([0, 0.03, 0.05])
    build(tmp_path / "steps.h5", every=20).run(until=0.05)  # a number of steps
    with cd.open(tmp_path / "steps.h5") as recording:
        assert recording.times == pytest.approx([0, 0.02, 0.04, 0.05])


def test_a_run_driven_by_step_is_recorded_too(tmp_path):
    sim = build(tmp_path / "run.h5", every=5)
    for _ in range(12):
        sim.step()
    sim.recorders[0].end(sim)
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording.times == pytest.approx([0, 0.005, 0.01, 0.012])
        assert len(recording.log["time"]) == 12
        assert np.array_equal(recording[-1].positions, sim.positions)


@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_resumed_run_has_the_same_bits(tmp_path, penetration):
    whole = build(tmp_path / "whole.h5", penetration=penetration).run(until=0.4)
    build(tmp_path / "part.h5", penetration=penetration).run(until=0.15)
    with pytest.raises(SystemExit) as exit:
        main(["resume", str(tmp_path / "part.h5"), "--until", "0.4"])
    assert exit.value.code == 0
    with cd.open(tmp_path / "whole.h5") as a, cd.open(tmp_path / "part.h5") as b:
        assert np.array_equal(a.times, b.times)
        assert np.array_equal(a[-1].positions, b[-1].positions) and np.array_equal(a[-1].spins, b[-1].spins)
        assert np.array_equal(a.log["residual"], b.log["residual"])
        assert np.array_equal(a.log["closure"], b.log["closure"])
        assert a[-1].positions == pytest.approx(whole.positions, abs=0)


def test_bodies_that_came_and_went_are_resumed(tmp_path):
    def run(path, stop):
        sim = build(path)
        sim.run(until=0.1)
        sim.add(cd.Sphere(0.03), material="m", position=(0.1, 0.1, 0.6))
        sim.remove([7, 9])
        return sim.run(until=stop)

    whole = run(tmp_path / "whole.h5", 0.4)
    run(tmp_path / "part.h5", 0.2)
    part = cd.Simulation.from_file(tmp_path / "part.h5").run(until=0.4)
    assert np.array_equal(whole.identities, part.identities) and same(whole, part)
    assert part.energy.closure == whole.energy.closure


def test_motion_given_as_a_function_goes_on_from_its_program(tmp_path):
    def make(path=None):
        scene = cd.Scene(gravity=(0, -9.81))
        scene.material("m", density=1.0, friction=0.5)
        scene.add(cd.HalfPlane((0, 1)), material="m", motion=lambda t: (np.sin(20 * t), 0.0))
        scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
        return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=10)] if path else [])

    whole = make().run(until=0.5)
    make(tmp_path / "run.h5").run(until=0.2)
    assert same(make().restore(tmp_path / "run.h5").run(until=0.5), whole)
    with pytest.raises(cd.InputError, match="Python function"):
        cd.Simulation.from_file(tmp_path / "run.h5")


def test_info_and_plot(tmp_path, capsys):
    build(tmp_path / "run.h5").run(until=0.05)
    for command in (["info"], ["plot", "--time", "0.02"]):
        with pytest.raises(SystemExit) as exit:
            main([command[0], str(tmp_path / "run.h5"), *command[1:]])
        assert exit.value.code == 0
    out = capsys.readouterr().out
    assert "frames   6" in out and "ms per step" in out and "ledger closed" in out
    assert (tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["info", "plot", "resume"])
def test_files_that_are_none(tmp_path, capsys, command):
    (tmp_path / "text.h5").write_text("no HDF5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    for name, word in (("missing.h5", "no file"), ("text.h5", "not an HDF5 file"), ("other.h5", "no result")):
        with pytest.raises(SystemExit) as exit:
            main([command, str(tmp_path / name)])
        error = capsys.readouterr().err
        assert exit.value.code == 2 and word in error and len(error.strip().splitlines()) == 1


def test_wrong_recorder():
    with pytest.raises(cd.InputError, match="every"):
        cd.HDF5("run.h5", every=0)
    with pytest.raises(cd.InputError, match="folder"):
        build("/nonexistent/run.h5").run(until=0.01)
