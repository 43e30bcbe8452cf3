"""A step stays simple to follow: how often it goes from one file of the package to another."""

import importlib
import sys
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels would count")
def test_a_step_goes_from_file_to_file_no_more_often_than_it_did():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        tool = importlib.import_module("crossings")
    finally:
        sys.path.remove(str(ROOT / "tools"))
    sim = tool.six_balls()
    for _ in range(tool.WARM):
        sim.step()
    found = tool.crossings(sim.step)
    assert found[("rigid/simulation.py", "_step"), ("rigid/contact_set.py", "solve")] == 1
    assert found.total() <= 41 and len(tool.files(found)) <= 14
