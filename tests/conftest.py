"""What all tests share: headless figures, reproducible random input, and the marker of the part run in three modes."""

import gc
import os
import sys
from collections import Counter

import matplotlib
import numba
import numpy as np
import pytest
from hypothesis import settings
from numba._dispatcher import compute_fingerprint

from contactdynamics import _jit, errors

matplotlib.use("Agg")
os.environ["CONTACTDYNAMICS_AHEAD"] = "0"  # all cores are at work
# Programs that tests start, and the workers, keep the bytecode of what they load: without it each start takes half as
# long again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The same examples in every run; no deadline, because the first example pays for compilation.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("short", derandomize=True, deadline=None, database=None, max_examples=20)
settings.register_profile("hunt", deadline=None, database=None, max_examples=3000)  # --hypothesis-profile=hunt
settings.load_profile("repeatable")


def pytest_configure(config):
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Warning):
            config.addinivalue_line("filterwarnings", f"error::{errors.__name__}.{name}")
    config.addinivalue_line("markers", "modes: also run interpreted and with bounds checks (see test_modes.py)")


def pytest_collection(session):
    gc.disable()  # all that is found and loaded is kept: to look for garbage in it takes a third of the time


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()


# Most of the time is the compiler's, and what one worker has compiled another one loads. So they work through one list
# of files from both its ends, where no kernels are shared: balls at the front, problems and systems at the back, blocks
# before these. Files that need kernels of all sorts are in the middle, where they find them compiled.
FOLDERS = ["rigid", "scenes", "files", "studies", "analysis", "house", "experiments", "views", "systems", "problem"]
BLOCKS = ("poly", "block", "building", "masonry", "compas", "bridge", "rocking", "shaken", "cells_of_shapes")
ALL_SORTS = (
    "test_kinds", "test_contract", "test_recipes", "test_restraint", "test_together", "test_entries", "test_held",
    "test_hardest", "test_sinking",
)  # fmt: skip
# Near the middle, seven to thirty seconds each: when few files are left they go first, so that no worker waits for one.
LONG = (
    "test_contract", "test_house", "test_start", "test_kinds", "test_copying", "test_study", "test_audit",
    "test_wrong_calls", "test_lean",
)  # fmt: skip
FEW = 12


def place_in_the_list(file):
    """Sorts files (their path from the root) by the kernels that they need."""
    folder, name = file.split("/")[-2:]
    if name.startswith(ALL_SORTS):
        return FOLDERS.index("experiments"), name
    block = any(word in name for word in BLOCKS)
    return FOLDERS.index(folder) if not block else FOLDERS.index("systems") - 0.5, name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FromBothEnds(LoadFileScheduling):
        def _assign_work_unit(self, node):
            left = sorted(self.workqueue, key=place_in_the_list, reverse=int(node.gateway.id[2:]) % 2)
            if len(left) <= FEW:
                left.sort(key=lambda file: not file.split("/")[-1].startswith(LONG))
            self.workqueue.move_to_end(left[0], last=False)
            super()._assign_work_unit(node)

    return FromBothEnds(config, log)


@pytest.fixture(autouse=True, scope="module")
def garbage_is_looked_for_once():
    """Python looks for garbage among all objects there are: the compiler leaves millions, each look takes a second."""
    yield
    gc.collect()
    gc.freeze()  # what is left is looked at no more


@pytest.fixture(autouse=True)
def closed_figures():
    """No test leaves figures behind: another one would be told that there are too many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def watched(monkeypatch):
    """The types that each settled kernel (`_jit.Settled`) has got: more than one set of them is an error.

    To look takes time: at the first calls, and some later ones. The types of arguments with the same short mark of
    Numba's are the same, and it takes a thousandth of the time to find.
    """
    seen, calls, known = {}, Counter(), {}

    def types_of(kernel, arguments):
        try:
            mark = compute_fingerprint(arguments)
        except NotImplementedError:  # there is none of some objects
            return tuple(map(kernel.typeof_pyval, arguments))
        if mark not in known:
            known[mark] = tuple(map(kernel.typeof_pyval, arguments))
        return known[mark]

    def call(self, *arguments):
        calls[id(self)] += 1
        if not numba.config.DISABLE_JIT and (calls[id(self)] < 4 or calls[id(self)] % 20 == 0):
            types = types_of(self._kernel, arguments)
            assert seen.setdefault(id(self), (self, types))[1] == types
        return self._kernel(*arguments)

    monkeypatch.setattr(_jit.Settled, "_look", call)
    return seen


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(1986)
