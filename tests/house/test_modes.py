"""The part marked `modes`, run interpreted and, in the longer tier, with bounds checks.

An index out of range in compiled code reads garbage without a word; interpreted it is an error, and with
NUMBA_BOUNDSCHECK=1 too. Numba's cache does not know that option, so the second run compiles into a folder of its own,
which takes a minute.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OUT_OF_RANGE = """
import numpy as np
from contactdynamics._jit import kernel

@kernel
def read(array, index):
    return array[index]

try:
    read(np.zeros(3), 5)
except IndexError:
    print("caught")
"""


def run(arguments, environment, cache):
    environment = {**os.environ, **environment, "CONTACTDYNAMICS_CACHE": str(cache)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=TESTS.parent
    )


@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_the_mode_does_what_it_is_for(mode, tmp_path):
    script = tmp_path / "out_of_range.py"
    script.write_text(OUT_OF_RANGE)
    assert run([str(script)], {mode: "1"}, tmp_path).stdout == "caught\n"


@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=pytest.mark.slow)])
def test_marked_part(mode, tmp_path):
    files = [str(TESTS / "problem" / name) for name in ("test_laws.py", "test_solve.py", "test_projection.py")]
    done = run(
        ["-m", "pytest", *files, "-n", "0", "-m", "modes", "-p", "no:cacheprovider", "--hypothesis-profile=short"],
        {mode: "1"},
        tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout
