"""The command `cdyn`: what it prints and writes, and its exit codes."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import runner

OWN = '''"""A ball falls on a floor."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Row, Verdict


@dataclass
class Ball:
    mass: float = 1.0


FIGURE = "none"
PARAMETERS = {"height": 1.0, "steps": 100, "fine": False, "label": "ball", "speeds": [1.0, 2.0]}
QUICK = {"steps": 10}


def build(parameters):
    floor = cd.Constraint(lambda t, q: q[0])
    system = cd.System(inertia=[Ball().mass], force=lambda t, q, u: (-10.0,), constraints=[floor])
    return cd.integrate(system, q=(parameters["height"],), u=(0.0,), step=1 / parameters["steps"], until=1.0)


def check(outcome, parameters):
    lowest = outcome.q.min()
    results = {"lowest": lowest, "times": outcome.times[:3], "nothing": np.nan, "count": np.int64(3)}
    rows = [Row("rests", "yes", bool(abs(lowest) < 1), abs(lowest) < parameters["height"])]
    if parameters["label"] == "misled":
        rows.append(Row("falls", 1.0, 1.0, True, "hearsay"))
    return Verdict(results, [*rows, Row("falls", 1.0, 1.0, True, "published")])


def figure(outcome, parameters):
    figure, axes = plt.subplots()
    axes.plot(outcome.times, outcome.q)
    return {"figure": figure, "other": plt.figure()}
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The path of a user's experiment file; the working folder is empty beside it."""
    path = tmp_path / "own" / "falling_ball.py"
    path.parent.mkdir()
    path.write_text(OWN)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    monkeypatch.chdir(work)
    return path


def refused(result, *words, code=2):
    """One line on stderr, nothing on stdout, no traceback, nothing written."""
    assert result[0] == code
    assert result[1] == ""
    assert result[2].count("\n") == 1 and result[2].startswith("cdyn: ") and "Traceback" not in result[2]
    for word in words:
        assert word in result[2], result[2]
    assert list(Path().iterdir()) == []


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_list(cdyn):
    code, out, err = cdyn("list")
    lines = out.splitlines()
    assert code == 0 and err == ""
    assert [line.split()[0] for line in lines] == runner.names()
    for line in lines:
        assert line.endswith("]") and "[" in line and len(line.split()) > 3


def test_version_and_help(cdyn):
    assert cdyn("--version") == (0, f"cdyn {cd.__version__}\n", "")
    for arguments in (("--help",), ("-h",), ()):
        code, out, err = cdyn(*arguments)
        assert code == 0 and err == ""
        for command in ("list", "run", "bench"):
            assert f"  {command} " in out
    code, out, _ = cdyn("run", "--help")
    assert code == 0
    for option in ("--quick", "--set KEY=VALUE", "--out", "NAME"):
        assert option in out


def test_installed_command(tmp_path):
    command = Path(sys.executable).parent / "cdyn"
    done = subprocess.run([command, "run", "nothing"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "cdyn: There is no experiment 'nothing'; `cdyn list` shows them all.\n"
    done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == f"cdyn {cd.__version__}\n"


# ---- a user's own experiment -----------------------------------------------------------------------------------------


def test_own_experiment_by_path(cdyn, own):
    code, out, err = cdyn("run", own, "--quick", "--set", "height=2", "--out", "here")
    assert code == 0 and err == ""
    assert "A ball falls on a floor." in out and "agrees" in out and "written to here/" in out
    assert sorted(p.name for p in Path("here").iterdir()) == ["figure.png", "other.png", "summary.json"]
    assert Path("here/figure.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads(Path("here/summary.json").read_text())
    assert list(summary) == [
        "experiment", "title", "figure", "version", "quick", "parameters", "results", "expected", "published",
        "checks", "passed", "overlap", "audit", "audited", "seconds",
    ]  # fmt: skip
    assert summary["experiment"] == "falling_ball" and summary["title"] == "A ball falls on a floor."
    assert summary["version"] == cd.__version__ and summary["quick"] is True and summary["passed"] is True
    assert summary["parameters"] == {
        "height": 2.0, "steps": 10, "fine": False, "label": "ball", "speeds": [1.0, 2.0]
    }  # fmt: skip
    assert summary["results"]["times"] == [0.0, 0.1, 0.2] and summary["results"]["nothing"] is None
    assert summary["results"]["count"] == 3
    assert summary["expected"] == {"rests": "yes", "falls": 1.0}
    assert summary["published"] == {"falls": 1.0}  # what no paper states is not published
    assert summary["checks"] == [
        {"quantity": "rests", "expected": "yes", "computed": True, "passed": True, "source": "own reference"},
        {"quantity": "falls", "expected": 1.0, "computed": 1.0, "passed": True, "source": "published"},
    ]
    assert all(word in out for word in ("expected", "source", "own", "published", "computed", "verdict"))
    assert summary["seconds"] >= 0


def test_default_folder_and_second_run(cdyn, own):
    assert cdyn("run", own, "--quick")[0] == 0
    (Path("results/falling_ball") / "mine.txt").write_text("kept")
    code, out, err = cdyn("run", own)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert "results/falling_ball holds results" in err and "summary.json" in err and "--force" in err
    folder = Path("results/falling_ball")
    assert json.loads((folder / "summary.json").read_text())["quick"] is True  # nothing was touched
    assert cdyn("run", own, "--force")[0] == 0
    assert json.loads((folder / "summary.json").read_text())["quick"] is False
    assert (folder / "mine.txt").read_text() == "kept"
    assert [p.name for p in Path("results").iterdir()] == ["falling_ball"]  # no scratch folder left


def test_values_are_read_by_type(own):
    experiment = runner.load(str(own))
    settings = {"height": "1e-1", "steps": "7", "fine": "yes", "label": "7", "speeds": "3,4.5"}
    expected = {"height": 0.1, "steps": 7, "fine": True, "label": "7", "speeds": [3, 4.5]}
    assert runner.parameters_of(experiment, settings) == expected
    assert runner.parameters_of(experiment, {"speeds": "[1]"})["speeds"] == [1]
    assert runner.parameters_of(experiment) == experiment.module.PARAMETERS
    assert runner.parameters_of(experiment, {"steps": "3"}, quick=True)["steps"] == 3  # the user has the last word


def test_failing_check_gives_exit_code_one(cdyn, own):
    code, out, err = cdyn("run", own, "--set", "height=0", "--out", "here")
    assert code == 1 and err == ""
    assert out.count("differs") == 1 and out.count("agrees") == 1  # the other row still agrees
    assert json.loads(Path("here/summary.json").read_text())["passed"] is False
    assert Path("here/figure.png").exists()


def test_a_source_that_is_none_of_the_known_ones(cdyn, own):
    code, _, err = cdyn("run", own, "--set", "label=misled")
    assert code == 2 and "'falls'" in err and "'hearsay'" in err and "closed form" in err


@pytest.mark.parametrize("path", sorted(Path(runner.__file__).parent.glob("*.py")), ids=lambda p: p.stem)
def test_every_row_of_the_shipped_experiments_says_its_source(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    rows = [call for call in calls if ast.unparse(call.func) == "Row"]
    for row in rows:
        assert len(row.args) == 5 and row.args[4].value in runner.SOURCES, f"line {row.lineno}"


def test_no_rows_is_not_a_pass():
    assert not runner.Verdict({}, []).passed
    assert not runner.Verdict({}, [runner.Row("a", 1, 1, True), runner.Row("b", 1, 2, False)]).passed


# ---- wrong input -----------------------------------------------------------------------------------------------------


def test_unknown_names(cdyn):
    refused(cdyn("run", "nothing"), "no experiment 'nothing'", "cdyn list")
    refused(cdyn("run", "essai-4"), "no experiment 'essai-4'", "did you mean essai-0")
    refused(cdyn("run", "nowhere/own.py"), "no experiment file nowhere/own.py", "check the path")
    refused(cdyn("rum", "essai-04"), "rum", "cdyn --help")
    refused(cdyn("run"), "NAME", "cdyn --help")
    refused(cdyn("run", "essai-04", "--fast"), "--fast", "cdyn --help")
    refused(cdyn("bench", "nothing"), "no benchmark 'nothing'")


@pytest.mark.parametrize(
    "setting, words",
    [
        ("hight=2", ["no option 'hight'", "did you mean height?"]),
        ("colour=red", ["no option 'colour'", "height, steps, fine, label, speeds"]),
        ("height", ["--set height", "has no '='", "key=value"]),
        ("=3", ["no option ''"]),
        ("height=tall", ["height=tall", "not a number", "height=1.0"]),
        ("height=nan", ["height=nan", "not a number"]),
        ("height=inf", ["height=inf", "not a number"]),
        ("steps=1.5", ["steps=1.5", "not a whole number", "steps=100"]),
        ("steps=", ["steps=", "not a whole number"]),
        ("fine=maybe", ["fine=maybe", "not true or false", "fine=False"]),
        ("speeds=a,b", ["speeds=a,b", "a list like 1,2,3"]),
    ],
)
def test_wrong_settings(cdyn, own, setting, words):
    refused(cdyn("run", own, "--set", setting), *words)


@pytest.mark.parametrize("part", ["FIGURE", "PARAMETERS", "QUICK", "build", "check", "figure"])
def test_experiment_file_without_a_part(cdyn, own, part):
    own.write_text(OWN.replace(f"def {part}(", f"def no_{part}(").replace(f"{part} =", f"NO_{part} ="))
    refused(cdyn("run", own), "falling_ball", f"lacks {part};", "an experiment file defines")


def test_experiment_file_without_docstring_or_with_stray_quick(cdyn, own):
    own.write_text(OWN.split('"""', 2)[2])
    refused(cdyn("run", own), "lacks a docstring")
    own.write_text(OWN.replace('QUICK = {"steps"', 'QUICK = {"stepps"'))
    refused(cdyn("run", own), "QUICK of falling_ball sets stepps", "PARAMETERS")


def test_out_is_a_file(cdyn, own):
    target = own.parent / "taken"
    target.write_text("precious")
    for out in (target, target / "below"):
        refused(cdyn("run", own, "--out", out), "taken", "file", "give a folder")
    assert target.read_text() == "precious" and sorted(p.name for p in own.parent.iterdir()) == [
        "falling_ball.py", "taken",
    ]  # fmt: skip


def test_wrong_input_inside_an_experiment(cdyn, own):
    refused(cdyn("run", own, "--set", "height=-1"), "forbidden region", "gap -1")


def test_broken_file_is_told_as_a_bug(cdyn, own):
    own.write_text(OWN.replace("lowest = outcome.q.min()", "lowest = outcome.z.min()"))
    refused(cdyn("run", own), "AttributeError", "--debug", code=3)
    own.write_text(OWN + "\ndef broken(:\n")
    refused(cdyn("run", own), "SyntaxError", "falling_ball.py", "--debug", code=3)


def test_debug_shows_the_traceback(own):
    own.write_text(OWN.replace("lowest = outcome.q.min()", "lowest = outcome.z.min()"))
    with pytest.raises(AttributeError):
        main(["--debug", "run", str(own)])
    with pytest.raises(cd.InputError):
        main(["run", "nothing", "--debug"])


# ---- the experiments -------------------------------------------------------------------------------------------------


def test_the_record_of_an_experiment_that_drives_itself(cdyn):
    assert cdyn("run", "rocking", "--quick", "--set", "ratios=2", "--set", "duration=0.4", "--out", "here")[0] == 0
    assert {path.name for path in Path("here").glob("*.h5")} == {"run.h5", "run-released.h5", "run-below.h5"}
    with cd.open("here/run.h5") as recording:
        assert recording.times[0] == 0 and recording.times[-1] == pytest.approx(0.4) and len(recording) > 40
        assert len(recording[-1].polygon_bodies) == 2
    code, _, err = cdyn("resume", "here/run.h5")
    assert code != 0 and "rocking" in err and "drives its own runs" in err
