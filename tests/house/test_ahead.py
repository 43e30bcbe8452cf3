"""What a second process compiles ahead of the first: the list is that of the kernels in use (`_ahead`)."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from contactdynamics import _ahead

TOOL = Path(__file__).parents[2] / "tools" / "kernels.py"


def test_types_are_read_as_they_are_written():
    for sort, lines in _ahead.kernels().items():
        assert sort in ("balls", "polygons", "polyhedra") and len(lines) > 20
        for name, kinds in lines:
            assert " ".join(map(_ahead.write, _ahead.read(kinds))) == kinds
            assert callable(_ahead._named(name))
    one, two = _ahead.read("float64:2C! (int64 bool)")
    assert not one.mutable and one.ndim == 2 and [str(kind) for kind in two.types] == ["int64", "bool"]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="kernels are not compiled")
def test_the_list_is_that_of_the_kernels_in_use():
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"write it anew by tools/kernels.py:\n{done.stdout}{done.stderr}"


def test_a_second_process_is_started_where_there_is_a_core_for_it_and_ends_with_the_first(monkeypatch):
    started, ends = [], []

    class Helper:
        def __init__(self, command, env, **streams):
            started.append((command, env))

    monkeypatch.setattr(_ahead.subprocess, "Popen", Helper)
    monkeypatch.setattr(_ahead.atexit, "register", lambda *call: ends.append(call))
    monkeypatch.setattr(_ahead.os, "sched_getaffinity", lambda pid: range(2), raising=False)
    monkeypatch.setattr(_ahead, "_expected", None)
    monkeypatch.delenv(_ahead.SWITCH, raising=False)
    _ahead.start()
    assert not started  # nothing is expected
    _ahead.expect("balls")
    _ahead.start()
    assert "work('balls'" in started[0][0][-1] and started[0][1][_ahead.SWITCH] == "0" and len(ends) == 1
    monkeypatch.setenv(_ahead.SWITCH, "0")
    _ahead.start()
    monkeypatch.delenv(_ahead.SWITCH)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a worker of a study")
    _ahead.start()
    monkeypatch.undo()
    monkeypatch.setattr(_ahead.os, "sched_getaffinity", lambda pid: range(1), raising=False)
    _ahead.start()
    assert len(started) == 1


def test_nothing_is_left_behind(monkeypatch):
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    _ahead._end(helper)
    assert helper.poll() is not None
    monkeypatch.setattr(_ahead, "_named", lambda name: pytest.fail("compiles for a parent that is gone"))
    _ahead.work("balls", os.getppid() + 1)
