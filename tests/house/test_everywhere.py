"""`make test-everywhere` and what it promises: all places are run, a line for each, the oldest versions as written."""

import importlib.util
import re
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

from contactdynamics import errors

ROOT = Path(__file__).parents[2]


@pytest.fixture
def everywhere():
    spec = importlib.util.spec_from_file_location("everywhere", ROOT / "tools" / "everywhere.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_requirement_has_a_lower_bound_that_can_be_installed(everywhere):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    exact = everywhere.oldest_requirements()
    wanted = project["dependencies"] + project["optional-dependencies"]["test"]
    assert len(exact) == len(wanted) - len(everywhere.NEWER)
    bounds = [line.split(";")[0] for line in exact]  # some are for certain systems only
    assert all(re.fullmatch(r"[\w-]+==\d+\.\d+\.\d+", line) for line in bounds)  # 3.9 would ask for 3.9.0 only


def test_the_places_asked_for_are_there(everywhere):
    cores = {place.get("OPENBLAS_CORETYPE") for place in everywhere.PLACES.values()}
    assert {"Haswell", "SkylakeX", "Zen", "Prescott"} < cores
    assert everywhere.PLACES["generic"]["NUMBA_CPU_NAME"] == "generic"
    assert {"oldest", "python3.12", "python3.13", "python3.14"} < set(everywhere.PLACES)
    assert "tools/everywhere.py prescott-generic" in (ROOT / ".ci" / "run").read_text()


def test_all_places_are_run_and_the_worst_decides(everywhere, monkeypatch, capsys):
    def suite(python, environment, options):
        assert options == ["-k", "one"]
        return environment["OPENBLAS_CORETYPE"] != "Haswell", environment["OPENBLAS_CORETYPE"] + " said this"

    def core(environment):
        if environment["OPENBLAS_CORETYPE"] == "SkylakeX":
            raise everywhere.Skipped("this processor lacks its instructions")
        return {"Zen": "Haswell"}.get(environment["OPENBLAS_CORETYPE"], environment["OPENBLAS_CORETYPE"])

    monkeypatch.setattr(everywhere, "suite", suite)
    monkeypatch.setattr(everywhere, "core", core)
    assert everywhere.main(["haswell", "skylakex", "zen", "prescott", "--", "-k", "one"]) == 1
    lines = capsys.readouterr().out.strip().splitlines()[-4:]
    assert [line.split()[:2] for line in lines] == [
        ["haswell", "FAILED"], ["skylakex", "skipped"], ["zen", "skipped"], ["prescott", "passed"]
    ]  # fmt: skip
    assert "lacks its instructions" in lines[1] and "takes Haswell, as in haswell" in lines[2]
    assert "OpenBLAS takes Prescott; Prescott said this" in lines[3]
    assert everywhere.main(["skylakex", "--", "-k", "one"]) == 0
    assert everywhere.main(["pentium"]) == 2 and "the places are haswell" in capsys.readouterr().err


def test_a_place_has_its_own_kernels_and_environment(everywhere):
    python, environment, _ = everywhere.prepare("generic", {})
    assert python == sys.executable and environment["NUMBA_CPU_NAME"] == "generic"
    assert environment["CONTACTDYNAMICS_CACHE"].endswith("generic")


def test_the_suite_is_run_and_its_last_line_kept(everywhere, capfd, tmp_path):
    for body, passed, words in (("pass", True, "1 passed"), ("assert False", False, "1 failed")):
        (tmp_path / "test_one.py").write_text(f"def test_one(): {body}\n")
        options = ["-n", "0", "--rootdir", str(tmp_path), str(tmp_path / "test_one.py")]
        done, last = everywhere.suite(sys.executable, {**everywhere.os.environ}, options)
        assert (done, words in last) == (passed, True)
        assert words in capfd.readouterr().out  # and shown


def test_kernels_that_this_processor_lacks_are_skipped(everywhere, monkeypatch):
    monkeypatch.setattr(everywhere, "PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(everywhere.Skipped, match="lacks its instructions"):
        everywhere.core({**everywhere.os.environ})
    monkeypatch.setattr(everywhere, "PROBE", "pass")
    with pytest.raises(everywhere.Skipped, match="without OpenBLAS"):
        everywhere.core({**everywhere.os.environ})


@pytest.mark.parametrize("name", [n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, Warning)])
def test_our_warnings_are_errors_wherever_they_are_raised(name):
    category = getattr(errors, name)
    with pytest.raises(category):
        warnings.warn_explicit("told", category, "elsewhere.py", 1, module="elsewhere")


def test_warnings_of_our_modules_are_errors_and_those_of_others_are_not():
    for module in ("contactdynamics.systems.sets", "test_everywhere"):
        with pytest.raises(RuntimeWarning):
            warnings.warn_explicit("told", RuntimeWarning, f"{module}.py", 1, module=module)
    with warnings.catch_warnings(record=True) as told:
        warnings.warn_explicit("told", DeprecationWarning, "_mathtext.py", 1, module="matplotlib._mathtext")
    assert len(told) == 1
