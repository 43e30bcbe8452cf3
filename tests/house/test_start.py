"""How a run starts: what is loaded before its first step, and the word about compilation."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import _jit
from contactdynamics.bench import start
from contactdynamics.cli import common

FIRST_STEP = """
import sys
from pathlib import Path
from contactdynamics import cli
from contactdynamics.rigid import simulation

def step(self, first=simulation.Simulation.step):
    first(self)
    print([name for name in ("matplotlib", "scipy.spatial", "scipy.linalg") if name in sys.modules])
    raise SystemExit

simulation.Simulation.step = step
cli.main(["run", sys.argv[1], "--out", sys.argv[2]])
"""


def loaded(*arguments):
    return subprocess.check_output([sys.executable, "-c", FIRST_STEP, *map(str, arguments)], text=True).strip()


def test_drawing_is_loaded_after_the_run(tmp_path):
    (tmp_path / "own.py").write_text(start.SCENE)
    assert loaded(tmp_path / "own.py", tmp_path / "out") == "[]"
    assert loaded("pile", tmp_path / "pile") == "[]"


def test_other_kernels_have_their_linear_algebra():
    # ours are loaded without it; those of the user must find it
    script = (
        "import numpy as np, numba, contactdynamics.rigid.solvers; x = np.arange(4.0).reshape(2, 2)\n"
        "print(numba.njit(lambda a: np.dot(a, a))(x).tolist(), numba.njit(lambda a: np.linalg.det(a))(x))"
    )
    assert (
        subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[[2.0, 3.0], [6.0, 11.0]] -2.0"
    )


def test_figures_are_files_whatever_the_user_has_set(monkeypatch):
    import matplotlib

    before = matplotlib.get_backend()
    monkeypatch.setenv("MPLBACKEND", "TkAgg")
    common.use_headless_figures()
    assert matplotlib.get_backend().lower() == "agg"
    script = (
        "from contactdynamics.cli import common; common.use_headless_figures(); import matplotlib as m; "
        "print(m.get_backend())"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip().lower() == "agg"
    matplotlib.use(before)


ONE_KERNEL = """
from contactdynamics import quaternions
print(quaternions.multiply(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0))  # i j = k
quaternions.exponential(0.0, 0.0, 0.0)
"""


def said(cache, script=ONE_KERNEL):
    """What a program with this cache of kernels says beside its own output."""
    environment = {**os.environ, "CONTACTDYNAMICS_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "(0.0, 0.0, 0.0, 1.0)\n"
    return done.stderr


def test_a_program_says_once_that_it_compiles(tmp_path):
    assert said(tmp_path / "new") == "compiling kernels, once (half a minute or so)\n"
    assert said(tmp_path / "new") == ""
    (tmp_path / "file").write_text("no folder")
    words = said(tmp_path / "file")
    assert "at each start" in words and "CONTACTDYNAMICS_CACHE" in words
    silenced = "import logging; logging.getLogger('contactdynamics').setLevel('ERROR')\n" + ONE_KERNEL
    assert said(tmp_path / "other", silenced) == ""


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    # A number without an entry in the list of users and without $HOME, as in many containers.
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    for name in ("CONTACTDYNAMICS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert _jit._prepare_cache() is None


@pytest.mark.parametrize("name", ["set", "empty"])
def test_the_cache_of_kernels_deletes_its_own_folders_alone(name, tmp_path, monkeypatch):
    # $CONTACTDYNAMICS_CACHE may be a folder with other things in it; empty is as if it were not set.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CONTACTDYNAMICS_CACHE", str(tmp_path) if name == "set" else "")
    own = [f"{k:016x}" for k in range(6)]
    for k, folder in enumerate([*own, "thesis", "photos", ".git", "0123456789abcdef0"]):
        (tmp_path / folder).mkdir()
        os.utime(tmp_path / folder, (k, k))
    directory = _jit._prepare_cache()
    left = {path.name for path in tmp_path.iterdir()}
    assert {"thesis", "photos", ".git", "0123456789abcdef0"} <= left
    if name == "set":
        assert left & set(own) == {own[4], own[5]} and os.path.samefile(os.path.dirname(directory), tmp_path)
    else:
        assert set(own) <= left and os.path.samefile(os.path.dirname(directory), tmp_path / "contactdynamics")


PARTS = """
import threading
import numpy as np
from contactdynamics._jit import kernel

@kernel
def twice(x, k):
    return 2.0 * x[k]

@kernel
def total(x):
    out = 0.0
    for k in range(x.size):
        out += twice(x, k)
    return out

x = np.arange(4.0)
wrong = []

def whole_or_part(n):
    for k in range(50):
        value = total(x) if (n + k) % 2 else twice(x, 3) + 6.0
        wrong.extend([value] * (value != 12.0))

if first == "both":
    workers = [threading.Thread(target=whole_or_part, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
elif first == "total":
    print(total(x), twice(x, 1), total(x))
else:
    print(twice(x, 1), total(x))
print(len(wrong), twice(np.ones(2, dtype=np.float32), 1), total(np.ones(2, dtype=np.float32)))
"""


def test_a_kernel_serves_its_callers_and_python_whoever_comes_first(tmp_path):
    script, said = "import runpy\n", ""
    for first, line in (("both", ""), ("total", "12.0 2.0 12.0\n"), ("twice", "2.0 12.0\n")):
        (tmp_path / f"{first}_first.py").write_text(f"first = {first!r}\n{PARTS}")  # kernels of its own
        script, said = script + f"runpy.run_path('{first}_first.py')\n", said + line + "0 2.0 4.0\n"
    for _ in range(2):  # compiled, and from the cache
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path,
                              env={**os.environ, "CONTACTDYNAMICS_CACHE": str(tmp_path / "cache")})  # fmt: skip
        assert done.stdout == said, done.stderr


def test_compilation_is_no_part_of_the_stages():
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.3)
    scene.add(cd.Disk(0.05), material="m", position=(0, 0))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()  # what it needs itself is compiled
    taken = []

    def compile_something(simulation):
        before, began = _jit.COMPILATION.seconds, time.perf_counter()
        numba.njit(lambda x: x[0] + x[-1])(np.ones(3))
        taken.append((_jit.COMPILATION.seconds - before, time.perf_counter() - began))

    sim.before_step.append(compile_something)
    begin, clock = time.perf_counter(), _jit.clock()
    sim.step()
    wall, kept = time.perf_counter() - begin, _jit.clock() - clock
    ((compiling, hook),) = taken
    assert 0 < compiling <= hook <= wall
    # Both clocks see the same: the wall is the compiler and the rest, and only the rest is in the stages.
    assert sum(sim.last_seconds.values()) <= kept <= wall - compiling + 1e-9 * begin


def test_the_start_is_measured_to_the_end_of_the_first_step():
    said = []
    results = start.start(said.append, repeats=1)
    assert [line.split()[0] for line in said] == ["import", "start", "pile_start"]
    # a run imports the package and steps, so it takes longer, by a factor of hundreds
    for clock in ("seconds", "cpu_seconds"):
        for run in ("start", "pile_start"):
            assert 0 < results[f"import_{clock}"] < results[f"{run}_{clock}"]
