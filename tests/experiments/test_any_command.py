"""The command line with anything typed: it does what it says, or ends with one sentence; never with a traceback."""

import contextlib
import io

import click
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.cli import commands, main

# Words that are numbers, names, files or options in the wrong place; "run.h5" and "problem.hdf5" are sound files.
WORDS = (
    "run.h5", "problem.hdf5", "nowhere.h5", "text.h5", "folder", ".", "/nowhere/x", "", "-", "--", "nan", "inf", "-1",
    "0", "1e999", "1e-300", "3", "2.5", "x=1", "x=", "=", "==", "[1, 2", "pile=", "pilé", "x.png", "x.xyz", "x:y",
    "1280x720", "0x0", "-1x5", "45,30", "nan,nan", "speed", "auto", "nlgs", "energy", "é", "\x00", "a" * 300,
)  # fmt: skip
# Not tried: what goes on for ever, or takes long where all is well.
LEFT = {"view", "bench"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small result file, a problem and files that are neither."""
    folder = tmp_path_factory.mktemp("commands")
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000, friction=0.4)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
    cd.Simulation(scene, time_step=1e-3, recorders=cd.HDF5(folder / "run.h5")).run(until=2e-3, progress=False)
    cd.write_problem(cd.ContactProblem(np.eye(2), [[-1.0, 0.3]], [[0.5, 0.5]], [0.0]), folder / "problem.hdf5")
    (folder / "text.h5").write_text("no HDF5")
    (folder / "folder").mkdir()
    return folder


def typed(draw, name):
    """A command with its arguments and some of its options, each with any word; files are sound now and then."""
    words = st.sampled_from(WORDS)
    if name != "resume":  # which would go on as long as it is asked to
        words |= st.text(max_size=5).filter(lambda word: word[:1] not in "/~" and ".." not in word)
        words |= st.floats().map(str) | st.integers().map(str)
    line = [name]
    for option in commands.commands[name].params:
        if isinstance(option, click.Argument):
            sound = "problem.hdf5" if name == "solve" else "run.h5"
            line.append(draw(st.just(sound) | words) if name not in ("run", "study") else draw(words))
        elif option.name not in ("help_asked", "mpi", "scheduler") and draw(st.integers(0, 3)) == 0:
            line.append(option.opts[-1])
            line += [] if getattr(option, "is_flag", False) else [draw(words)]
    return [word.replace("\x00", "\\0") for word in line]


def ends(line):
    """The exit code of a command and what it said."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(line)
            code = 0
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), error.getvalue()


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(set(commands.commands) - LEFT)), st.data())
def test_anything_typed_ends_in_a_sentence(folder, name, data):
    line = typed(data.draw, name)
    with contextlib.chdir(folder):
        code, _, error = ends(line)
    assert code in (0, 1, 2), (line, code, error)
    assert "Traceback" not in error and "is a bug" not in error, (line, error)
    assert code != 2 or error.startswith("cdyn: "), (line, error)
