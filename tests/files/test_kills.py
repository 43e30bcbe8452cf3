"""Runs killed with -9 at random moments: none is lost, and they go on to the same bits; one process writes a file."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.analysis.audit import compare
from contactdynamics.files import holding, recorders

TESTS = Path(__file__).parents[1]


def balls(path, **options):
    """Spheres and a cluster in a box whose floor is driven."""
    from test_storage import build

    return build(path, every=5, **options)


def pour(path, d=2, **options):
    """Grains that come by a pour and leave by an outlet."""
    from test_resume import poured

    return poured(d, path, **options)


def cell(path, **options):
    """A periodic cell sheared at a constant rate under pressure."""
    from test_cells import gas

    scene = gas(2, 6, cd.Cell((1.0, 1.0), rate=[[0, 3.0], [0, 0]], stress={"yy": 500.0}))
    return cd.Simulation(scene, time_step=1e-3, recorders=[cd.HDF5(path, every=10)], **options)


def angular(shape):
    """A pour of polygons, or of polyhedra."""

    def make(path):
        if shape == "polygons":
            return pour(path, shape=cd.packings.Irregular(sides=(5, 7)))
        return pour(path, 3, shape=cd.packings.Rocks(corners=(8, 12)), penetration="anticipate")

    return make


SCENES = {
    "drive, 3D": balls,
    "pour and removal, 2D": pour,
    "pour and removal, 3D, anticipation": lambda path: pour(path, 3, penetration="anticipate"),
    "polygons": angular("polygons"),
    "two threads": lambda path: pour(path, 3, threads=2),
    "cell": cell,
    "polyhedra": angular("polyhedra"),
    "two threads, drive, anticipation": lambda path: balls(path, threads=2, penetration="anticipate"),
}
UNTIL = {"drive, 3D": 0.1, "polyhedra": 0.1}  # s; 0.3 for the others


def run_of(name, path):
    """Begin the run, or go on with it: what a killed process did."""
    sim = cd.Simulation.from_file(path, recorders=[cd.HDF5(path, every=5)]) if path.exists() else SCENES[name](path)
    sim.run(until=UNTIL.get(name, 0.3), progress=False)


def in_a_child(name, path):
    """A process that runs; returns its number."""
    child = os.fork()
    if child == 0:
        try:
            run_of(name, path)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def hunt(name, kills, seed, folder):
    """Kill runs of a scene until there were so many kills; each run that ends is compared with one that was not killed.

    Files are written with every frame, so that some are hit while they are written.
    """
    recorders.HDF5.PATIENCE = 0
    clock = iter(range(0, 10**9, 100))
    recorders.time.monotonic = lambda: next(clock)
    rng, folder = random.Random(seed), Path(folder)
    run_of(name, folder / "whole.h5")
    begin = time.perf_counter()
    run_of(name, folder / "again.h5")  # with all that is loaded and compiled
    length, done, ended = time.perf_counter() - begin, 0, 0
    while done < kills or ended == 0:
        path, last = folder / f"run-{ended}.h5", -1
        while True:
            child = in_a_child(name, path)
            if done < kills:
                time.sleep(rng.uniform(0.0, 0.7) * length)
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, -signal.SIGKILL), status
            if status == 0:
                break
            done += 1
            if path.exists():
                with cd.open(path) as recording:
                    assert recording.steps >= last
                    last = recording.steps
        with cd.open(folder / "whole.h5") as one, cd.open(path) as two:
            found = compare(one, two)
            assert found is None or found.quantity == "length", found.words  # frames at which it was cut are more
            assert one.steps == two.steps and np.array_equal(one[-1].positions, two[-1].positions)
        ended += 1
    print(f"{name}: {done} kills, {ended} runs, none lost")
    return done


def test_five_kills(tmp_path):
    killed(tmp_path, {"drive, 3D": 5}, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_fifty_kills(tmp_path, name):
    killed(tmp_path, {name: 7}, 2)


def killed(folder, kills, seed):
    """Hunt in a process that has no threads of others, from which children can be forked."""
    paths = [str(TESTS / name) for name in ("files", "rigid")] + [str(TESTS)]
    program = f"import sys; sys.path[:0] = {paths!r}; import warnings; warnings.simplefilter('ignore')\n" + "".join(
        f"import test_kills; test_kills.hunt({name!r}, {count}, {seed}, {str(make(folder / str(k)))!r})\n"
        for k, (name, count) in enumerate(kills.items())
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = [int(number) for number in re.findall(r": (\d+) kills", done.stdout)]
    assert found == list(kills.values())


def make(folder):
    folder.mkdir()
    return folder


# ---- one writer ------------------------------------------------------------------------------------------------------

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print(7, file=file, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_writes_is_refused(tmp_path):
    path = tmp_path / "run.h5"
    sim = balls(path)
    sim.run(until=0.02, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]  # the lock is gone with the run
    before = path.read_bytes()
    other = subprocess.Popen([sys.executable, "-c", HOLDER, str(holding.lock_of(path))], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert other.stdout.readline() == "held\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = cd.Simulation.from_file(path, recorders=[cd.HDF5(path, every=5)])
    with pytest.raises(cd.InputError, match=r"run\.h5 is being written by another process, number 7; wait until"):
        again.run(until=0.04, progress=False)
    with pytest.raises(cd.InputError, match="another process"):
        sim.run(until=0.04, progress=False)
    assert path.read_bytes() == before and again.steps == 20
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    again.run(until=0.04, progress=False)  # the lock that a killed process left behind holds nobody
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    with cd.open(path) as recording:
        assert recording.steps == 40
