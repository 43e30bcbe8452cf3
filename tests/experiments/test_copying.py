"""Copy and change: a shipped experiment is a file that works anywhere."""

import contextlib
import json
import shutil
import signal
import sys
import warnings
from pathlib import Path

import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.experiments import options, runner
from contactdynamics.experiments.options import Option

SHIPPED = Path(runner.__file__).parent
QUICK = ["essai-07", "painleve", "jammed-bar"]  # by name all of them run in test_contract.py


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
@pytest.mark.filterwarnings("default::contactdynamics.errors.EnergyWarning")  # the quick bridge is told
@pytest.mark.filterwarnings("default::contactdynamics.errors.StepWarning")  # and angular grains of their step
@pytest.mark.parametrize("name", sorted(set(runner.names()) - set(QUICK)))
def test_a_copied_experiment_runs_too(name, work, cdyn):
    test_a_copied_experiment_runs(name, work, cdyn)


def test_a_copied_pile_finds_the_stored_one(work):
    copy, original = runner.load(copied("pile", work)), runner.load("pile")
    assert original.module.STORED == copy.module.STORED and copy.module.STORED.is_file()


# ---- cdyn new --------------------------------------------------------------------------------------------------------


def test_new_writes_a_file_that_runs(cdyn, work):
    code, out, err = cdyn("new", "my.py")
    assert code == 0 and err == "" and "cdyn run my.py" in out
    code, out, err = cdyn("run", "my.py", "--quick")
    assert code == 0 and "agrees" in out, out + err
    assert (work / "results/my/run.h5").exists() and (work / "results/my/figure.png").exists()


@pytest.mark.parametrize("slope, friction", [(10, 0.3), (10, 0.02), (30, 0.1), (0, 0.3)])
def test_the_template_is_right_where_its_disk_rolls_and_where_it_slips(cdyn, slope, friction):
    cdyn("new", "my.py")
    settings = ("--set", f"slope_degrees={slope}", "--set", f"friction={friction}")
    assert cdyn("run", "my.py", "--quick", *settings)[0] == 0


def test_new_from_an_experiment(cdyn, work):
    assert cdyn("new", "mine.py", "--from", "painleve")[0] == 0
    assert (work / "mine.py").read_text() == (SHIPPED / "painleve.py").read_text()
    assert cdyn("new", "again.py", "--from", "mine.py")[0] == 0  # one's own can be copied too
    assert (work / "again.py").read_text() == (work / "mine.py").read_text()


def test_new_refuses(cdyn, work):
    (work / "taken.py").write_text("precious")
    for arguments, words in (
        (("taken.py",), ["taken.py already", "--force"]),
        (("my.py", "--from", "painlve"), ["no experiment 'painlve'", "did you mean painleve?"]),
        (("my",), ["ends in .py", "my.py"]),
        (("nowhere/my.py",), ["no folder nowhere"]),
        (("taken.py", "--from", "taken.py", "--force"), []),
    ):
        code, out, err = cdyn("new", *arguments)
        assert code != 0 and out == "" and err.count("\n") == 1 and all(word in err for word in words), err
        assert [p.name for p in work.iterdir()] == ["taken.py"] and (work / "taken.py").read_text() == "precious"
    assert cdyn("new", "taken.py", "--force")[0] == 0
    assert cdyn("new", "taken.py", "--from", "taken.py", "--force")[0] == 2  # onto itself


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*runner.names(), str(SHIPPED / "_template.py")])
def test_every_option_has_a_meaning_and_a_unit(name):
    module = runner.load(name).module
    assert list(module.PARAMETERS) == list(module.PARAMETERS.told)
    for key, option in module.PARAMETERS.told.items():
        assert len(option.meaning) > 5, f"{name}: {key} has no meaning"
        kinds = {type(v) for v in (option.default if isinstance(option.default, list | tuple) else [option.default])}
        assert bool(option.unit) == (kinds == {float}), f"{name}: {key} has no unit, or one too many"
        if kinds <= {float, int}:
            assert option.possible, f"{name}: {key} has no bounds"
        assert option.holds(option.default) and option.holds(module.QUICK.get(key, option.default))


@pytest.mark.parametrize("name", runner.names())
def test_options_are_listed(name, cdyn):
    module = runner.load(name).module
    code, out, err = cdyn("options", name)
    assert code == 0 and err == ""
    for key, option in module.PARAMETERS.told.items():
        (line,) = (line for line in out.splitlines() if line.split()[:1] == [key])
        assert option.meaning in line and options.shown(option.default) in line and option.possible in line
        assert ("quick: " + options.shown(module.QUICK[key]) in line) if key in module.QUICK else ("quick:" not in line)
    code, long, err = cdyn("run", name, "--help")
    assert code == 0 and err == "" and long.endswith(out) and "--quick" in long


def test_options_of_ones_own(cdyn, work):
    (work / "own.py").write_text(
        '"""Own."""\nFIGURE, PARAMETERS, QUICK = "", {"height": 1.0, "names": "a"}, {"height": 0.5}\n'
        "build = check = figure = print\n"
    )
    code, out, err = cdyn("options", "own.py")
    assert code == 0 and err == "" and [line.split() for line in out.splitlines()[2:]] == [
        ["height", "1.0", "quick:", "0.5"], ["names", "a"]
    ]  # fmt: skip
    code, out, err = cdyn("options", "painlve")
    assert code == 2 and out == "" and "did you mean painleve?" in err


def test_bounds_in_words():
    assert Option(1, "", least=0, most=2).possible == "0 to 2"
    assert Option(1.0, "", above=0, below=90).possible == "above 0 and below 90"
    assert Option(1.0, "", above=0).possible == "above 0" and Option(1.0, "", most=1e6).possible == "at most 1e+06"
    assert Option([1, 2], "", least=3, numbers=(0, 2)).possible == "0 or 2 numbers, each at least 3"
    assert Option("", "").possible == "" and Option("", "").holds("anything")
    assert not Option([1, 2], "", least=3, numbers=(2,)).holds([3]) and not Option(1, "", above=1).holds(1)


# ---- attacks ---------------------------------------------------------------------------------------------------------

WRONG = ("-1", "0", "nan", "inf", "1e300", "-1e300", "1e-300", "1" + 30 * "0", "word", "", "1,2,3", "[", "1,nan")
SECONDS = 60  # of the processor, that an attack may take; the quick forms take a few


class Late(BaseException):
    """An attack took too long."""


@pytest.fixture
def bounded():
    """Raise `Late` when the test has taken too long: a hang is told, not waited for."""

    def late(signal_number, stack):
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    yield lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def attack(cdyn, bounded, name, key, text):
    """A run with a wrong option ends well, with a check that fails, or with one sentence."""
    bounded(SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the physics may be absurd
        code, _, err = cdyn("run", name, "--quick", "--set", f"{key}={text}", "--out", "out")
    bounded(0)
    sentences = [line for line in err.splitlines() if line.startswith("cdyn: ")]
    assert code in (0, 1, 2), f"{name} {key}={text}: {err}"
    assert len(sentences) == (code == 2) and "Traceback" not in err and "bug" not in err, f"{name} {key}={text}: {err}"
    return code


def numeric(name):
    """The options of an experiment that are numbers, or lists of them."""
    return [key for key, value in runner.load(name).module.PARAMETERS.items() if type(value) not in (bool, str)]


def accepted(name):
    """(option, text) that pass the door, so that the experiment itself has to cope."""
    for key in numeric(name):
        for text in WRONG:
            with contextlib.suppress(cd.InputError):
                runner.parameters_of(runner.load(name), {key: text}, quick=True)
                yield key, text


@pytest.mark.parametrize("name", runner.names())
def test_wrong_options_are_refused_at_the_door(name, cdyn, bounded, work):
    passing = set(accepted(name))
    for key in numeric(name):
        for text in WRONG:
            if (key, text) not in passing:
                assert attack(cdyn, bounded, name, key, text) == 2
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("name", ["essai-07", "essai-10", "jammed-bar", "rocking-theory"])
def test_what_passes_the_door_is_computed_or_refused(name, cdyn, bounded):
    for key, text in accepted(name):
        attack(cdyn, bounded, name, key, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", runner.names())
def test_what_passes_the_door_is_computed_or_refused_too(name, cdyn, bounded):
    for key, text in accepted(name):
        attack(cdyn, bounded, name, key, text)
