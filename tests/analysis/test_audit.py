"""`cdyn audit` believes right files and names what is wrong in doctored ones; `cdyn compare` finds where runs part."""

import shutil

import h5py
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import cli
from contactdynamics.analysis.audit import audit, compare
from contactdynamics.files import archive

NAMES = ["as written", "times", "kinetic energy", "energy ledger", "energy created", "overlaps", "gaps",
         "friction cone", "contact law", "restitution", "steps solved", "weight at rest", "positions",
         "momentum"]  # fmt: skip


def scene_of(dimension, restitution=0.0, **law):
    scene = cd.Scene(gravity=(0, -9.81) if dimension == 2 else (0, 0, -9.81))
    scene.material("m", density=1000)
    scene.contact("m", "m", **({"friction": 0.4, "restitution": restitution} | law))
    up = (0, 1) if dimension == 2 else (0, 0, 1)
    scene.add(cd.HalfPlane(up) if dimension == 2 else cd.Plane(up), material="m", fixed=True)
    return scene


def disks(path, every=1, until=0.1, restitution=0.0, shift=0.0, **options):
    """Disks and a block that fall on a floor and come to rest."""
    scene = scene_of(2, restitution)
    for k in range(6):
        scene.add(cd.Disk(0.01), material="m", position=(0.004 * (k % 3) + shift, 0.012 + 0.021 * k))
    scene.add(cd.Rectangle(0.03, 0.02), material="m", position=(0.1, 0.011))
    sim = cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=every)], **options)
    sim.run(until=until, progress=False)
    return path


def spheres(path, **options):
    """Spheres and a box; frames far from each other."""
    scene = scene_of(3)
    for k in range(5):
        scene.add(cd.Sphere(0.01), material="m", position=(0.003 * k, 0.002 * k, 0.012 + 0.021 * k), spin=(3, 0, 5))
    scene.add(cd.Box((0.04, 0.03, 0.02)), material="m", position=(0.1, 0, 0.011))
    cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=50)], **options).run(until=0.3, progress=False)
    return path


def lines_of(path):
    with cd.open(path) as recording:
        lines = {line.name: line for line in audit(recording)}
    assert list(lines) == NAMES
    return lines


def failed(path):
    return [name for name, line in lines_of(path).items() if line.holds is False]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return disks(tmp_path_factory.mktemp("audit") / "run.h5")


def test_a_right_run_holds(run, tmp_path):
    lines = lines_of(run)
    assert failed(run) == []
    assert {name for name, line in lines.items() if line.holds is None} == {"restitution", "weight at rest"}
    far = lines_of(spheres(tmp_path / "far.h5", penetration="anticipate"))
    assert all(line.holds is not False for line in far.values()) and far["momentum"].holds is None


def test_the_ground_carries_the_weight(tmp_path):
    scene = scene_of(2)
    scene.add(cd.Rectangle(0.03, 0.02), material="m", position=(0, 0.01))
    cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(tmp_path / "run.h5")]).run(until=0.02, progress=False)
    assert lines_of(tmp_path / "run.h5")["weight at rest"].holds is True
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        file["frame_contacts/impulse"][-1] *= 1.5
    assert set(failed(tmp_path / "run.h5")) == {"as written", "weight at rest", "momentum"}


def test_restitution_is_that_of_the_law(tmp_path):
    bouncing = lines_of(disks(tmp_path / "run.h5", restitution=0.5, until=0.2))
    assert bouncing["restitution"].holds is True and bouncing["contact law"].holds is True
    with h5py.File(tmp_path / "run.h5", "r+") as file:  # the law now asks for another number than was obtained
        text = file.attrs["parameters"].decode()
        assert '"restitution": 0.5' in text
        targets = file["frame_contacts/target"][:]
        file["frame_contacts/target"][:] = targets * np.where(targets > 0, 1.2, 1.0)
    assert set(failed(tmp_path / "run.h5")) >= {"restitution", "contact law"}


def change(path, what):
    """Doctor a file."""
    with h5py.File(path, "r+") as file:
        first = int(file["frames/body_start"][75])
        rows = slice(first, first + int(file["frames/bodies"][75]))
        contact = int(file["frames/contact_start"][75])
        if what == "velocities":
            file["frame_bodies/velocity"][:] *= 1.1
        elif what == "positions":
            file["frame_bodies/position"][rows.start + 2] += (0.0, 0.05, 0.0)
        elif what == "force":
            file["frame_contacts/impulse"][contact] *= 1.5
        elif what == "friction":
            file["frame_contacts/impulse"][contact] = (1e-3, 1e-2, 0.0)
        elif what == "frames":
            other = int(file["frames/body_start"][10])
            for name in ("position", "velocity", "orientation", "scaled_spin"):
                data = file[f"frame_bodies/{name}"]
                here, there = data[rows], data[other : other + rows.stop - rows.start]
                data[rows], data[other : other + rows.stop - rows.start] = there, here
        elif what == "ledger":
            file["log/closure"][-1] = 1.0
        elif what == "time":
            file["frames/time"][75] += 4e-4
        elif what == "unsolved":
            file["frames/failures"][:] = 100


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("velocities", {"as written", "kinetic energy", "momentum"}),
        ("positions", {"as written", "positions"}),
        ("force", {"as written", "momentum"}),
        ("friction", {"as written", "momentum", "friction cone"}),
        ("frames", {"as written", "kinetic energy", "momentum"}),
        ("ledger", {"energy ledger"}),
        ("time", {"times"}),
        ("unsolved", {"steps solved"}),
    ],
)
def test_a_doctored_file_fails_by_name(run, tmp_path, what, names, capsys):
    path = shutil.copy(run, tmp_path / "doctored.h5")
    change(path, what)
    with pytest.raises(SystemExit) as stop:
        cli.main(["audit", str(path)])
    said = capsys.readouterr().out
    assert stop.value.code == 1 and all(f"{name:<16} FAILS" in said for name in names)


def test_the_command(run, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["audit", str(run)])
    assert stop.value.code == 0 and "all 12 checks hold" in capsys.readouterr().out


def test_a_run_that_goes_on_is_still_right(run, tmp_path):
    path = disks(tmp_path / "half.h5", until=0.05)
    with cd.open(run) as recording:
        until = float(recording.times[-1])
    from contactdynamics.experiments import runner

    runner.resume(str(path), until)
    assert failed(path) == []
    with cd.open(run) as one, cd.open(path) as two:
        assert compare(one, two) is None


def test_small_files_are_checked_as_far_as_they_go(run, tmp_path):
    archive.export_frames(run, tmp_path / "small.h5", [0.03, 0.06, 0.1])
    assert failed(tmp_path / "small.h5") == []


def test_compare_says_where_runs_part(run, tmp_path, capsys):
    with cd.open(run) as one:
        same = disks(tmp_path / "same.h5", every=7)
        with cd.open(same) as two:
            found = compare(one, two)
        assert found.quantity == "length" and "101 and" in found.words
        other = tmp_path / "other.h5"
        with cd.open(disks(other, solver="nlgs")) as two:
            found = compare(one, two)
        assert found is not None and found.step >= 1
        with cd.open(disks(tmp_path / "moved.h5", shift=1e-13)) as two:
            found = compare(one, two)
        assert found.step == 0 and found.quantity == "positions" and found.size == pytest.approx(1e-13, rel=0.2)
    with pytest.raises(SystemExit) as stop:
        cli.main(["compare", str(run), str(tmp_path / "moved.h5")])
    assert stop.value.code == 1 and "positions differ after step 0" in capsys.readouterr().out
    again = disks(tmp_path / "again.h5")
    with pytest.raises(SystemExit) as stop:
        cli.main(["compare", str(run), str(again)])
    assert stop.value.code == 0 and "the same bits: 100 steps, 101 frames" in capsys.readouterr().out


def test_compare_finds_the_contact(run, tmp_path):
    path = shutil.copy(run, tmp_path / "force.h5")
    change(path, "force")
    with cd.open(run) as one, cd.open(path) as two:
        found = compare(one, two)
        pair = one[75].contacts.bodies[0]
    assert (found.step, found.quantity, found.body) == (75, "impulse", pair[0])
