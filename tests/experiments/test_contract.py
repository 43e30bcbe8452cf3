"""The contract of every experiment: its quick form runs, agrees, draws and records."""

import json
import warnings
from pathlib import Path

import pytest

from contactdynamics.errors import EnergyWarning, StepWarning
from contactdynamics.experiments import runner

# What the short forms say, and it is true: angular grains fall into each other by a seventh of the ball inside them.
TELLS = {"polygon-pile": {StepWarning}, "rock-pile": {StepWarning}}


# Those that take longest go to the longer tier; a pile of 60 grains is in test_pile.py, collision and three-methods are
# run with other options in test_collisions.py and test_penalty.py, the parts of bridge and rocking in files of theirs.
LONG = {"biaxial", "bridge", "collision", "column-collapse", "dome", "drum", "force-network", "hard-scenes",
        "long-runs", "packing", "pile", "polygon-pile", "rock-pile", "rocking", "shaken-house", "shear-cell", "silo",
        "three-methods", "tilting-wall", "vault"}  # fmt: skip
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in runner.names()]


@pytest.mark.parametrize("name", NAMES)
def test_experiment_keeps_its_contract(name, cdyn):
    experiment = runner.load(name)
    module = experiment.module
    assert experiment.title.endswith(".") and isinstance(module.FIGURE, str) and module.FIGURE
    assert set(module.QUICK) <= set(module.PARAMETERS)
    for key, value in module.QUICK.items():
        assert type(value) is type(module.PARAMETERS[key]) or module.PARAMETERS[key] is None
    with warnings.catch_warnings(record=True) as told:
        for category in (StepWarning, EnergyWarning):
            warnings.simplefilter("always", category)
        code, out, err = cdyn("run", name, "--quick", "--out", "here")
    assert code == 0, out + err
    ours = {
        w.category for w in told if w.category.__module__.startswith("contactdynamics")
    }  # not other packages' plans
    assert ours <= TELLS.get(name, set()), [str(w.message) for w in told]
    summary = json.loads(Path("here/summary.json").read_text())
    assert summary["passed"] is True and summary["checks"]
    assert all(row["passed"] is True for row in summary["checks"])
    assert summary["experiment"] == name and summary["quick"] is True
    assert summary["parameters"] == runner.plain(runner.parameters_of(experiment, {}, quick=True))
    assert Path("here/figure.png").stat().st_size > 10_000
    assert set(summary["audited"]) == {file.name for file in Path("here").glob("*.h5")}  # all of it is audited
    assert all(found["made"] >= 5 and not set(found["failed"]) - set(found["known"])
               for found in summary["audited"].values())  # fmt: skip
    for file in Path("here").glob("*.h5"):  # what an experiment records can be looked at
        code, out, err = cdyn("info", file)
        assert code == 0 and f"experiment={name}" in out, out + err
        assert cdyn("plot", file, "--out", "here/frame.png")[0] == 0
