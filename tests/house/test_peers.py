"""The programs of other codes on the pages "Coming from" run, and say what ours beside them says."""

import contextlib
import importlib.util
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PAGES = Path(__file__).parents[2] / "docs" / "coming-from"
DEBIAN = "/usr/bin/python3"


def has_siconos():
    done = subprocess.run([DEBIAN, "-c", "import siconos.kernel"], capture_output=True) if Path(DEBIAN).exists() else 0
    return done and done.returncode == 0


# name -> whether it is here, the command, how far the last number that both print may differ
PEERS = {
    "yade": (lambda: shutil.which("yade"), ["yade", "-n", "-x"], 1e-5),  # its springs give way by some micrometres
    "siconos": (has_siconos, [DEBIAN], 1e-3),
    "lmgc90": (lambda: importlib.util.find_spec("compas_lmgc90"), [sys.executable], 1e-8),
    "mujoco": (lambda: importlib.util.find_spec("mujoco"), [sys.executable], 0.01),
}


@pytest.mark.parametrize("name", PEERS)
def test_both_programs_of_a_page_say_the_same(name, tmp_path, monkeypatch):
    here, command, apart = PEERS[name]
    if not here():
        pytest.skip(f"{name} is not installed")
    text = (PAGES / f"{name}.md").read_text()
    theirs, ours = (re.search(rf"^```{kind}\n(.*?)^```", text, re.M | re.S).group(1) for kind in ("py", "python"))
    (tmp_path / "theirs.py").write_text(theirs)
    done = subprocess.run([*command, "theirs.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    said = float(done.stdout.split()[-1])
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ours, f"{name}.md", "exec"), {"__name__": "__main__"})
    assert float(printed.getvalue().split()[0]) == pytest.approx(said, abs=apart)
