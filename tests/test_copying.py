"""Copy and change: a shipped experiment is a file that works anywhere."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from contactdynamics.cli import main
from contactdynamics.experiments import runner

SHIPPED = Path(runner.__file__).parent
QUICK = [  # those that take about a second; the contract of the others is tested by name
    "essai-01", "essai-02", "essai-03", "essai-04", "essai-05", "essai-06", "essai-07", "painleve", "jammed-bar",
    "rocking-theory",
]  # fmt: skip


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cdyn(work, capsys):
    """Run the command: exit code, output, error output."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return end.value.code, captured.out, captured.err

    return run


def copied(name, folder):
    """A shipped experiment under another name in the user's folder."""
    source = SHIPPED / f"{name.replace('-', '_')}.py"
    return str(shutil.copy(source, folder / f"my_{source.name}"))


@pytest.mark.parametrize("name", runner.names())
def test_a_copied_experiment_loads(name, work):
    copy, original = runner.load(copied(name, work)), runner.load(name)
    assert copy.name == f"my_{name.replace('-', '_')}" and copy.title == original.title
    assert runner.parameters_of(copy, quick=True) == runner.parameters_of(original, quick=True)


@pytest.mark.parametrize("name", QUICK)
def test_a_copied_experiment_runs(name, work, cdyn):
    code, out, err = cdyn("run", Path(copied(name, work)).name, "--quick")
    assert code == 0, out + err
    assert json.loads((work / "results" / f"my_{name.replace('-', '_')}" / "summary.json").read_text())["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(runner.names()) - set(QUICK)))
def test_a_copied_experiment_runs_too(name, work, cdyn):
    test_a_copied_experiment_runs(name, work, cdyn)


def test_a_copied_pile_finds_the_stored_one(work):
    copy, original = runner.load(copied("pile", work)), runner.load("pile")
    assert original.module.STORED == copy.module.STORED and copy.module.STORED.is_file()
