"""Runs that are cut, by Ctrl-C, SIGTERM or a full disk: nothing is lost, and a sentence says how they go on."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from test_storage import build, same

import contactdynamics as cd
from command import cdyn
from contactdynamics.errors import RecordingError
from contactdynamics.files import recorders
from contactdynamics.rigid import interrupts

HERE = [str(folder) for folder in list(Path(__file__).parents)[:2]]


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C as a terminal has it: what runs in the background of a script may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# ---- nothing is overwritten ----------------------------------------------------------------------------------------


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    path = tmp_path / "run.h5"
    build(path).run(until=0.05)
    before = path.read_bytes()
    for what in (lambda sim: sim.run(until=0.01), lambda sim: sim.step()):
        with pytest.raises(cd.InputError, match=r"run\.h5 already.*overwrite=True.*restore"):
            what(build(path))
        assert path.read_bytes() == before
    build(path).restore(path).run(until=0.06)  # goes on
    with cd.open(path) as recording:
        assert recording.times[0] == 0 and recording.times[-1] == pytest.approx(0.06)
    sim = build()
    sim.recorders.append(cd.HDF5(path, every=0.01, overwrite=True))
    sim.run(until=0.02)
    sim.run(until=0.03)  # what the run itself began
    with cd.open(path) as recording:
        assert recording.times == pytest.approx([0, 0.01, 0.02, 0.03])
    with pytest.raises(cd.InputError, match="is a folder"):
        build(tmp_path).run(until=0.01)


SCENE = '''"""Disks fall into a box."""

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Row, Verdict

FIGURE = "none"
PARAMETERS = {"grains": 30, "duration": 0.3, "frame_every": 0.02, "corner": (1.0, 3.0)}
QUICK = {"duration": 0.1}


def kick(simulation):
    if simulation.steps == 150:
        simulation.rows[simulation.bodies.kind == 0, 1] += 0.5


def build(parameters):
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0, friction=0.3)
    assert isinstance(parameters["corner"], tuple)
    cd.packings.box(scene, material="m", low=(0, 0), high=parameters["corner"])
    cd.packings.rain(scene, material="m", sizes=0.1, count=parameters["grains"], low=(0, 0), high=(1, 2), seed=1)
    simulation = cd.Simulation(scene, time_step=1e-3)
    simulation.before_step.append(kick)
    return simulation


def check(outcome, parameters):
    return Verdict({"time": outcome.time}, [Row("time", parameters["duration"], outcome.time, True)])


def figure(outcome, parameters):
    return plt.figure()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's experiment with a function in before_step, in a folder of its own."""
    path = tmp_path / "mine" / "boxful.py"
    path.parent.mkdir()
    path.write_text(SCENE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return path


def test_an_experiment_overwrites_nothing_unless_forced(own, capsys):
    assert cdyn("run", own, "--quick") == 0
    folder = Path("results/boxful")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert set(before) == {"run.h5", "summary.json", "figure.png"}
    capsys.readouterr()
    assert cdyn("run", own) == 2
    error = capsys.readouterr().err
    assert "figure.png, run.h5, summary.json" in error and "--force" in error and error.count("\n") == 1
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert cdyn("run", own, "--force", "--set", "duration=0.05") == 0
    with cd.open(folder / "run.h5") as recording:
        assert recording.times[-1] == pytest.approx(0.05)
    (folder / "summary.json").unlink()  # as after a run that was cut: there is a way to go on
    assert cdyn("run", own) == 2 and "cdyn resume results/boxful/run.h5" in capsys.readouterr().err


def test_a_benchmark_does_not_overwrite_an_experiment(own, capsys):
    assert cdyn("run", own, "--quick", "--out", "here") == 0
    assert cdyn("bench", "start", "--out", "here") == 2 and "experiment" in capsys.readouterr().err


# ---- a user's own experiment goes on -------------------------------------------------------------------------------


def test_an_own_experiment_goes_on_from_its_path(own, capsys, monkeypatch):
    """Cut, resumed from another folder, with its own function: the same bits, then checked and drawn."""
    assert cdyn("run", own, "--out", "whole") == 0
    assert cdyn("run", own, "--out", "cut", "--set", "duration=0.1") == 0
    with h5py.File("cut/run.h5", "a") as file:  # as if the run had been cut at 0.1 of 0.3
        said = bytes(file.attrs["parameters"]).replace(b'"duration": 0.1', b'"duration": 0.3')
        file.attrs["parameters"] = np.bytes_(said)
    Path("cut/summary.json").unlink()
    (own.parent / "elsewhere").mkdir()
    monkeypatch.chdir(own.parent / "elsewhere")
    capsys.readouterr()
    assert cdyn("resume", "../../cut/run.h5") == 0
    captured = capsys.readouterr()
    assert "t = 0.3" in captured.out and "Disks fall into a box" in captured.out and captured.err == ""
    assert (own.parents[1] / "cut" / "summary.json").exists()
    with cd.open("../../whole/run.h5") as a, cd.open("../../cut/run.h5") as b:
        assert np.array_equal(a[-1].positions, b[-1].positions) and np.array_equal(a[-1].spins, b[-1].spins)
        assert np.array_equal(a.times, b.times)
    # changed: told, and it goes on; moved: told, with the option that cures it
    own.write_text(SCENE + "\n# a remark\n")
    assert cdyn("resume", "../../cut/run.h5", "--until", "0.31") == 0
    assert "boxful.py has changed since" in capsys.readouterr().err
    moved = own.rename("../moved.py")
    assert cdyn("resume", "../../cut/run.h5", "--until", "0.32") == 2
    error = capsys.readouterr().err
    assert "boxful.py, which is not there" in error and "--experiment PATH" in error and error.count("\n") == 1
    assert cdyn("resume", "../../cut/run.h5", "--until", "0.32", "--experiment", moved) == 0


# ---- Ctrl-C and SIGTERM --------------------------------------------------------------------------------------------


def wait_for(path, child):
    while not path.exists():
        time.sleep(0.02)
        assert child.poll() is None, child.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_command_ends_after_the_step_and_says_how_to_go_on(own, number):
    command = [Path(sys.executable).parent / "cdyn"]
    child = subprocess.Popen([*command, "run", own, "--set", "duration=60"], stderr=subprocess.PIPE, text=True)
    path = Path("results/boxful/run.h5")
    wait_for(path, child)
    time.sleep(0.5)
    child.send_signal(number)
    error = child.communicate(timeout=60)[1]
    assert child.returncode == 130 and "Traceback" not in error
    assert error.strip().splitlines()[-1].startswith("cdyn: Stopped after the step to t = ")
    assert "`cdyn resume results/boxful/run.h5` goes on" in error
    assert [p.name for p in path.parent.iterdir()] == ["run.h5"]
    with cd.open(path) as recording:  # closed, with the last step in it
        last = recording[-1]
        assert f"to t = {last.time:.6g};" in error and len(recording.log["time"]) == last.step > 0
    written = path.stat().st_mtime_ns
    again = subprocess.Popen([*command, "resume", path], stderr=subprocess.PIPE, text=True)
    while path.stat().st_mtime_ns == written:
        time.sleep(0.02)
        assert again.poll() is None
    again.send_signal(number)
    assert again.wait(60) == 130
    error = again.communicate()[1]
    assert "Traceback" not in error
    with cd.open(path) as recording:
        assert recording[-1].step > last.step


PROGRAM = """
import sys
sys.path[:0] = {here!r}
from test_storage import build
sim = build("run.h5")
sim.run(until=0.01)
print("begun", flush=True)
sim.run(until=1000.0)
"""


def test_a_program_ends_after_the_step_and_says_how_to_go_on(tmp_path):
    program = PROGRAM.format(here=HERE)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=tmp_path)  # fmt: skip
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    error = child.communicate(timeout=60)[1]
    assert child.returncode in (130, -signal.SIGINT)
    last = error.strip().splitlines()[-1]
    assert (
        last.startswith("KeyboardInterrupt: Stopped after the step to t = ") and "`cdyn resume run.h5` goes on" in last
    )
    again = cd.Simulation.from_file(tmp_path / "run.h5")
    assert f"t = {again.time:.6g};" in last
    whole = build().run(until=again.time)
    assert same(again, whole)


def test_signals_within_a_run_and_after_it(tmp_path):
    """Handlers are those of before again; the second signal cuts at once; other threads and handlers are left alone."""
    mine = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    sim = build(tmp_path / "run.h5")
    seen = []

    def stop(simulation):
        if simulation.steps == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        seen.append(simulation.steps)

    sim.before_step.append(stop)
    with pytest.raises(KeyboardInterrupt, match=r"t = 0\.006; .*its program goes on .*restore\('.*run\.h5'\).* stop"):
        sim.run(until=0.02)
    assert (
        seen[-1] == 5 and sim.steps == 6 and (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == mine
    )
    sim.run(until=0.02)  # goes on in the same program
    assert sim.steps == 20

    def twice(simulation):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    sim.before_step[:] = [twice]
    with pytest.raises(KeyboardInterrupt) as cut:
        sim.run(until=0.03)
    assert cut.value.args == () and sim.steps == 20
    with cd.open(tmp_path / "run.h5") as recording:
        assert recording[-1].step == 20  # none of the step that was cut short

    other = build()
    worker = threading.Thread(target=lambda: other.run(until=0.01, progress=False))
    worker.start()
    worker.join()
    assert other.steps == 10
    signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
    try:
        with interrupts.held() as noted:
            os.kill(os.getpid(), signal.SIGINT)
            assert seen[-1] == "mine" and noted == []
    finally:
        signal.signal(signal.SIGINT, mine[0])


def test_without_a_file_the_program_goes_on():
    sim = build()
    sim.before_step.append(lambda s: os.kill(os.getpid(), signal.SIGINT) if s.steps == 3 else None)
    with pytest.raises(KeyboardInterrupt, match=r"no file has it: simulation\.run\(until=0\.01\) goes on"):
        sim.run(until=0.01)
    assert sim.run(until=0.01).steps == 10


# ---- a disk that is full -------------------------------------------------------------------------------------------

FULL = """
import resource, sys
sys.path[:0] = {here!r}
import contactdynamics.files.recorders as r
from test_storage import build
clock = iter(range(0, 10**9, 100))
r.time.monotonic = lambda: next(clock)  # the file is written with every frame
r.HDF5.PATIENCE = 0
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
sim = build("run.h5", every=5)
try:
    sim.run(until=0.3)
except r.RecordingError as error:
    print(error)
    raise SystemExit(9)
"""


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(tmp_path):
    """The system refuses to let files grow: the HDF5 library would crash the process."""
    build(tmp_path / "whole.h5", every=5).run(until=0.3)
    size = (tmp_path / "whole.h5").stat().st_size
    limit = int(0.8 * size)
    done = subprocess.run([sys.executable, "-c", FULL.format(here=HERE, size=limit)], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 9, done.stdout + done.stderr
    assert done.stderr == "" and done.stdout.count("\n") == 1
    assert "run.h5 cannot be written at t = " in done.stdout and "File too large" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5", "whole.h5"]  # nothing half-written
    with cd.open(tmp_path / "run.h5") as recording:
        assert len(recording) > 5 and recording[-1].time < 0.3
        assert (
            f"holds the run to t = {recording[-1].time:.6g}: make room there, then `cdyn resume run.h5`" in done.stdout
        )
    assert cdyn("resume", tmp_path / "run.h5") == 0
    with cd.open(tmp_path / "run.h5") as a, cd.open(tmp_path / "whole.h5") as b:
        assert np.array_equal(a.times, b.times) and np.array_equal(a[-1].positions, b[-1].positions)
        assert np.array_equal(a.log["residual"], b.log["residual"])


@pytest.mark.parametrize("call", ["pwrite", "fsync", "replace", "ftruncate"])
def test_whatever_fails_the_last_good_file_stays(tmp_path, monkeypatch, call):
    path = tmp_path / "run.h5"
    sim = build(path, every=5)
    sim.run(until=0.05)
    before = path.read_bytes()
    real, after = getattr(os, call), [3 if call == "pwrite" else 0]  # writes that still succeed

    def full(*arguments):
        after[0] -= 1
        if after[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(os, call, full)
    with pytest.raises(RecordingError, match=r"run\.h5 cannot be written at t = .* \(No space left on device\).* room"):
        sim.run(until=0.2)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    monkeypatch.undo()
    sim.run(until=0.2)  # there is room again: nothing was lost
    with cd.open(path) as recording:
        assert recording.times == pytest.approx(np.arange(41) * 0.005) and len(recording.log["time"]) == 200
        assert recording[-1].positions == pytest.approx(sim.positions, abs=0)
    assert isinstance(RecordingError("x"), OSError)


def test_a_folder_in_which_nothing_can_be_written(tmp_path, monkeypatch):
    if not os.path.isdir("/sys"):
        pytest.skip("no folder that not even the administrator can write into")
    with pytest.raises(RecordingError, match=r"/sys/run\.h5 cannot be written at t = 0 .* another folder"):
        build("/sys/run.h5").run(until=0.01)


def test_one_recorder_that_fails_does_not_keep_others_from_ending(tmp_path, monkeypatch):
    good, bad = cd.HDF5(tmp_path / "good.h5", every=50), cd.HDF5(tmp_path / "bad.h5", every=50)
    sim = build()
    sim.recorders += [bad, good]
    sim.run(until=0.01)

    def fail(simulation):
        raise RecordingError("no room")

    monkeypatch.setattr(bad, "_commit", fail)
    monkeypatch.setattr(recorders.time, "monotonic", lambda: 0.0)
    with pytest.raises(RecordingError):
        sim.run(until=0.02)
    with cd.open(tmp_path / "good.h5") as recording:
        assert recording[-1].time == pytest.approx(0.02)
