"""A wheel built from the source, installed in an empty environment outside the tree, is all that a user needs."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of the source, so that nothing of an older build is packed."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", source / "dist", source], check=True)
    (path,) = (source / "dist").glob("contactdynamics-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of the empty environment, and a way to run one of them in an empty folder."""
    place = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    subprocess.run([place / "venv" / "bin" / "python", *PIP, "install", wheel], check=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"CONTACTDYNAMICS_CACHE": str(place / "kernels"), "MPLBACKEND": "Agg"}

    def run(program, *arguments, **more):
        command = [place / "venv" / "bin" / program, *arguments]
        return subprocess.run(command, cwd=place, env=environment | more, capture_output=True, text=True)

    return place, run


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    package = ROOT / "src"
    files = {path for path in package.rglob("*") if path.is_file()}
    ours = {str(p.relative_to(package)) for p in files if not re.search(r"__pycache__|\.egg-info", str(p))}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == ours


def test_the_source_distribution_holds_what_the_repository_holds(tmp_path):
    pytest.importorskip("build", reason="build is not installed")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a clone of the repository")
    names = {name for name in tracked.stdout.splitlines() if not name.startswith(".")}
    for name in names:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "source" / name)
    subprocess.run([sys.executable, "-m", "build", "--outdir", tmp_path / "dist", tmp_path / "source"], check=True)
    (packed,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(packed) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    assert names <= held, names - held
    (wheel,) = (tmp_path / "dist").glob("*.whl")  # made from the source distribution, not from the tree
    inside = {f"src/{name}" for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == {name for name in names if name.startswith("src/")}


def test_it_runs_read_only_and_without_a_home(installed, wheel):
    # An environment that nobody may write to, no home, no cache, an empty folder of its own for the results.
    place, run = installed
    for path in [place / "venv", *(place / "venv").rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o555)
    program = "import contactdynamics as cd; cd.Simulation; import contactdynamics._jit as j; print(j.CACHE)"
    empty = {"HOME": "", "CONTACTDYNAMICS_CACHE": "", "XDG_CACHE_HOME": os.devnull}
    done = run("python", "-c", program, **empty)
    assert done.returncode == 0 and done.stdout.endswith("None\n"), done.stderr
    done = run("cdyn", "run", "essai-01", "--quick", "--out", "read-only", **empty)
    assert done.returncode == 0, done.stderr


def test_the_commands_run_outside_the_tree(installed):
    place, run = installed
    listed = run("cdyn", "list")
    assert listed.returncode == 0 and "pile" in listed.stdout and str(ROOT) not in listed.stdout
    done = run("cdyn", "run", "pile", "--quick", "--out", "pile")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"summary.json", "figure.png", "run.h5"} <= {path.name for path in (place / "pile").iterdir()}
    where = run("python", "-c", "import contactdynamics; print(contactdynamics.__file__)")
    assert where.stdout.startswith(str(place))


def test_the_program_of_the_readme_runs_outside_the_tree(installed):
    place, run = installed
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    (place / "first.py").write_text(program)
    done = run("python", "first.py")
    assert done.returncode == 0, done.stderr
    assert "Solved" in done.stdout and (place / "disks.png").stat().st_size > 0


def test_what_the_wheel_does_not_hold_is_told(installed):
    _, run = installed
    done = run("cdyn", "run", "pile", "--from-data", "--out", "stored")
    assert done.returncode == 2 and "part of the source" in done.stderr and "FILE" in done.stderr
