"""The contract of an experiment file, and the driver that runs one.

An experiment file has a docstring whose first line says what it shows, and

- ``FIGURE``: the figure or plate of the paper it reproduces (a short string);
- ``PARAMETERS``: the options with their defaults (``--set key=value`` changes them): `Options` with an `Option` for
  each, which says what it means and what is possible, or a plain dict of defaults;
- ``QUICK``: dict of the values that make it short (``--quick``);
- ``build(parameters) -> outcome``: computes; any object. Where it returns a `Simulation`, the driver runs it to the
  parameter ``duration``, or to what the optional function ``duration(parameters)`` says (with a progress bar), and
  records it into ``run.h5``, a frame every ``frame_every`` seconds. Where it steps a simulation itself, it does so
  within `recorded`, which leaves such a file too.
  Each such file is audited at the end (`analysis.audit`), and what fails there fails the run, but for the checks that
  the optional dict ``AUDIT_FAILS`` names with the reason: what an experiment is known to do, and says each time;
- ``check(outcome, parameters) -> Verdict``: compares with what is expected; each row says by whom;
- ``figure(outcome, parameters) -> Figure``, or a dict of figures whose main one is called "figure"; films
  (matplotlib's animations) among them are written as GIF.

The same file serves the command line, the tests, the gallery and the benchmarks.
"""

import contextlib
import contextvars
import hashlib
import importlib
import importlib.util
import json
import math
import os
import shutil
import sys
import tempfile
import time
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from contactdynamics._version import __version__
from contactdynamics.errors import InputError
from contactdynamics.experiments import options
from contactdynamics.experiments.options import Option, Options  # noqa: F401  for experiment files
from contactdynamics.files import hdf5 as storage
from contactdynamics.files.recorders import HDF5
from contactdynamics.rigid import ranks
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.rigid.watch import audit

# Folder and description of the run at work, its simulations, its files.
_PLACE = contextvars.ContextVar("place", default=None)
REQUIRED = ("FIGURE", "PARAMETERS", "QUICK", "build", "check", "figure")


# Where an expected value comes from.
PUBLISHED, CLOSED_FORM, IDENTITY, OWN = SOURCES = ("published", "closed form", "identity", "own reference")


class Row(NamedTuple):
    """One line of the table "expected / source / computed / verdict".

    ``source`` says where the expected value comes from: "published" (a paper states it), "closed form" (a formula or a
    theorem), "identity" (a balance or bound that holds for any right computation) or "own reference" (another
    computation, or what the author of the experiment expects).
    """

    quantity: str
    expected: Any
    computed: Any
    passed: bool
    source: str = OWN


class Verdict(NamedTuple):
    """What `check` returns: the numbers of ``summary.json`` and the lines of the table."""

    results: dict
    rows: list[Row]

    @property
    def passed(self) -> bool:
        return bool(self.rows) and all(row.passed for row in self.rows)


class Experiment(NamedTuple):
    """A loaded experiment file."""

    name: str
    module: ModuleType

    @property
    def own(self) -> bool:
        """Whether it is a file of the user, and none of the package."""
        return not self.module.__name__.startswith("contactdynamics.")

    @property
    def title(self) -> str:
        return (self.module.__doc__ or "").strip().split("\n")[0]


def names() -> list[str]:
    """The experiments of the package, as the user types them."""
    folder = Path(__file__).parent
    own = {"__init__", "runner", "options"}
    return sorted(p.stem.replace("_", "-") for p in folder.glob("*.py") if p.stem not in own and p.stem[0] != "_")


def load(name: str) -> Experiment:
    """Load an experiment of the package by name, or the user's own by the path of its file."""
    if name.endswith(".py") or os.sep in name:
        path = Path(name)
        if not path.is_file():
            raise InputError(f"There is no experiment file {name}; check the path, or choose a name from `cdyn list`.")
        spec = importlib.util.spec_from_file_location(f"experiment_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # as an import does: dataclasses look their module up
        spec.loader.exec_module(module)
        name = path.stem
    elif name in names():
        module = importlib.import_module(f"contactdynamics.experiments.{name.replace('-', '_')}")
    else:
        near = get_close_matches(name, names(), 1)
        hint = f"did you mean {near[0]}?" if near else "`cdyn list` shows them all."
        raise InputError(f"There is no experiment {name!r}; {hint}")
    missing = [part for part in REQUIRED if not hasattr(module, part)]
    if missing or not (module.__doc__ or "").strip():
        raise InputError(
            f"The experiment {name} lacks {', '.join(missing) or 'a docstring'}; an experiment file defines a "
            f"docstring, {', '.join(REQUIRED)}."
        )
    stray = set(module.QUICK) - set(module.PARAMETERS)
    if stray:
        raise InputError(f"QUICK of {name} sets {', '.join(sorted(stray))}, unknown to its PARAMETERS; add it there.")
    return Experiment(name, module)


def write_new(file: Path, source: str | None = None, *, force: bool = False) -> None:
    """Write an experiment file for the user to change: a copy of ``source``, or the one that explains itself."""
    if file.suffix != ".py":
        raise InputError(f"{file} is no name of a Python file; give one that ends in .py, such as {file.stem}.py.")
    if file.exists() and not force:
        raise InputError(f"There is a file {file} already; give another name, or --force to overwrite it.")
    if not file.parent.is_dir():
        raise InputError(f"There is no folder {file.parent}; make it first, or give another.")
    original = Path(load(source).module.__file__) if source else Path(__file__).with_name("_template.py")
    if file.exists() and file.samefile(original):
        raise InputError(f"{file} is the experiment to copy itself; give another name.")
    file.write_text(original.read_text(encoding="utf-8"), encoding="utf-8")


def parameters_of(experiment: Experiment, settings: dict[str, str] | None = None, quick: bool = False) -> dict:
    """The parameters of a run: defaults, then QUICK, then the user's ``key=value`` settings read by type."""
    module = experiment.module
    return options.chosen(experiment.name, module.PARAMETERS, module.QUICK if quick else {}, settings or {})


def plain(value):
    """``value`` with arrays, tuples and NumPy scalars turned into what JSON knows; nan becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextlib.contextmanager
def written_safely(directory: Path):
    """A scratch folder whose files are moved into ``directory`` only when the block ends well."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".cdyn-", dir=directory.parent))
    try:
        yield scratch
        directory.mkdir(exist_ok=True)
        for path in sorted(scratch.iterdir()) if ranks.leads() else ():
            os.replace(path, directory / path.name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def run(
    experiment: Experiment, parameters: dict, out: Path, *, quick: bool = False, force: bool = False, before_scene=None
) -> tuple[dict, Verdict]:
    """Build, check, draw; write ``summary.json`` and the figures into ``out``; return the summary and the verdict.

    A folder with the results of an earlier run is refused, unless with ``force``. ``before_scene`` is called before a
    scene is run, which has a progress bar of its own.
    """
    ranks.first(lambda: _check_folder(out, force))
    begin = time.perf_counter()
    scenes, files = [], []
    token = _PLACE.set((out, _about(experiment, parameters, quick), scenes, files))
    try:
        outcome = experiment.module.build(parameters)
    finally:
        _PLACE.reset(token)
    if isinstance(outcome, Simulation):
        if before_scene is not None:
            before_scene()
        until = _duration(experiment, parameters)
        outcome.about |= _about(experiment, parameters, quick)
        outcome.recorders.append(_recorder(out, "run", float(parameters.get("frame_every", until / 50))))
        outcome.run(until=until)
        files.append("run.h5")
    return _finish(experiment, outcome, parameters, out, quick, begin, scenes, files)


def _check_folder(out: Path, force: bool) -> None:
    """Whether a run can write into ``out``, and overwrites nothing that it should not."""
    existing = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"--out {out}: {existing} is a file; give a folder.")
    if not os.access(existing, os.W_OK):
        raise InputError(f"--out {out}: nothing can be written into {existing}; give another folder.")
    earlier = sorted(p.name for p in out.glob("*") if p.name == "summary.json" or p.suffix in (".h5", ".png", ".gif"))
    if earlier and not force:
        cut = out / "run.h5" if "run.h5" in earlier and "summary.json" not in earlier else None
        way_on = f", go on with `cdyn resume {cut}`" if cut else ""
        raise InputError(
            f"{out} holds results of an earlier run ({', '.join(earlier[:4])}{', ...' * (len(earlier) > 4)}); give "
            f"another folder, --out FOLDER{way_on}, or --force to overwrite them."
        )


def _about(experiment: Experiment, parameters: dict, quick: bool) -> dict:
    """What a result file says about the experiment it belongs to; of a user's own file also where and which it was."""
    about = plain({"experiment": experiment.name, "quick": quick, "parameters": parameters})
    if experiment.own:
        path = Path(experiment.module.__file__).resolve()
        about |= {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return about


def _recorder(out: Path, name: str, every) -> HDF5:
    """The recorder of a run. `_check_folder` has seen to it that what it may overwrite was begun by this run."""
    out.mkdir(parents=True, exist_ok=True)
    if ranks.leads():
        (out / "summary.json").unlink(missing_ok=True)  # of an earlier run, if at all: none beside a file of this one
    return HDF5(out / f"{name}.h5", every=every, overwrite=True)


def _largest_overlap(outcomes) -> str | None:
    """The largest overlap of all simulations among the ``outcomes``, in words; none where there are none."""
    seen = [one.watch for one in outcomes if isinstance(one, Simulation)]
    return max(seen, key=lambda watch: watch.overlap).says() if seen else None


def _audit(outcomes) -> str | None:
    """How well all simulations among the ``outcomes`` were solved, in a line; none where there are none."""
    seen = list({id(one): one for one in outcomes if isinstance(one, Simulation)}.values())
    return audit(seen) if seen else None


def _audited(out: Path, files, known: dict) -> dict:
    """What `analysis.audit` finds in the recorded ``files``: by name, how many checks were made, and which fail; of
    those, the ``known`` ones with their reasons."""
    from contactdynamics.analysis import audit as checking

    found = {}
    for name in dict.fromkeys(files):
        with storage.open(out / name) as recording:
            lines = checking.audit(recording)
        failed = {line.name: line.words for line in lines if line.holds is False}
        reasons = {check: known[check] for check in failed if check in known}
        found[name] = {"made": sum(line.holds is not None for line in lines), "failed": failed, "known": reasons}
    return found


def _finish(experiment: Experiment, outcome, parameters: dict, out: Path, quick: bool, begin: float, scenes=(),
            files=()):  # fmt: skip
    """Check, draw and audit an outcome, and write all into ``out``; the summary and the verdict."""
    verdict = experiment.module.check(outcome, parameters)
    for row in verdict.rows:
        if row.source not in SOURCES:
            raise InputError(
                f"The row {row.quantity!r} of {experiment.name} has source={row.source!r}; choose one of "
                f"{', '.join(SOURCES)}."
            )
    seconds = time.perf_counter() - begin
    summary = plain(
        {
            "experiment": experiment.name,
            "title": experiment.title,
            "figure": experiment.module.FIGURE,
            "version": __version__,
            "quick": quick,
            "parameters": parameters,
            "results": verdict.results,
            "expected": {row.quantity: row.expected for row in verdict.rows},
            "published": {row.quantity: row.expected for row in verdict.rows if row.source == PUBLISHED},
            "checks": [row._asdict() for row in verdict.rows],
            "passed": verdict.passed,
            "overlap": _largest_overlap([*scenes, outcome]),
            "audit": _audit([*scenes, outcome]),
            "audited": _audited(out, files, getattr(experiment.module, "AUDIT_FAILS", {})),
            "seconds": round(seconds, 3),
        }
    )
    with written_safely(out) as scratch:
        save_figures(experiment.module.figure(outcome, parameters), scratch)
        (scratch / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return summary, verdict


@contextlib.contextmanager
def recorded(simulation: Simulation, *, until: float, name: str = "run", frames: int = 50):
    """Record what is done with ``simulation`` inside, to about ``until``, into ``NAME.h5`` of the run's folder.

    Nothing is recorded where an experiment is built without the driver.
    """
    place = _PLACE.get()
    if place is None:
        yield
        return
    out, about, scenes, files = place
    scenes.append(simulation)
    files.append(f"{name}.h5")
    recorder = _recorder(out, name, max(1, round(until / simulation.time_step / frames)))
    simulation.about |= about | {"driven": True}
    simulation.recorders.append(recorder)
    if ranks.leads():
        recorder.begin(simulation)
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(*(stop.args or (f"Stopped; {recorder.way_on(simulation)}.",))) from None
    finally:
        simulation.recorders.remove(recorder)
        if ranks.leads():
            recorder.end(simulation)
        ranks.first(lambda: None)  # the file is closed before anybody reads it


def _duration(experiment: Experiment, parameters: dict) -> float:
    """The simulated time of a scene."""
    duration = getattr(experiment.module, "duration", None)
    return parameters["duration"] if duration is None else duration(parameters)


def resume(file: str, until: float | None = None, *, own: str | None = None, tell=lambda sentence: None) -> Simulation:
    """Go on with the run of a result file, to ``until`` or to the end its experiment had; returns the simulation.

    A file that belongs to an experiment is built again by it, so that its own rules (pouring, driving) go on too; the
    user's own one is taken from where it was, or from the path ``own``. ``tell`` is called with what should be known.
    """
    with storage.open(file) as recording:
        about, steps = recording.parameters["about"], recording.frame_steps
        step = recording.parameters["options"]["time_step"]
    if about.get("driven"):
        name = about.get("path", about["experiment"])
        raise InputError(
            f"{file} was written by {name}, which drives its own runs; make it anew, `cdyn run {name} --force`."
        )
    every = int(np.diff(steps).max()) if len(steps) > 1 else 1
    recorder = HDF5(file, every=about.get("every", every))
    if "experiment" in about:
        experiment = _experiment_of(file, about, own, tell)
        parameters = parameters_of(experiment)
        parameters |= {k: tuple(v) if isinstance(parameters[k], tuple) else v for k, v in about["parameters"].items()}
        simulation = experiment.module.build(parameters)
        simulation.about = about | _about(experiment, parameters, about["quick"])
        simulation.recorders.append(recorder)
        simulation.restore(file)
        until = _duration(experiment, parameters) if until is None else until
    else:
        simulation = Simulation.from_file(file, recorders=[recorder])
        until = about.get("until") if until is None else until
    if until is None:
        raise InputError(f"{file} does not say when its run was to end; give --until TIME.")
    if until < simulation.time + 0.5 * step:
        raise InputError(f"{file} has reached t = {simulation.time:g} already; give a later --until.")
    return simulation.run(until=until)


def _experiment_of(file, about: dict, own: str | None, tell) -> Experiment:
    """The experiment that a result file belongs to; ``tell`` where the user's own file has changed since."""
    path = own or about.get("path")
    if path is None:
        return _fitting(load(about["experiment"]), file, about)
    if not Path(path).is_file():
        raise InputError(
            f"{file} belongs to the experiment file {path}, which is not there; put it back, or say where it is: "
            f"`cdyn resume {file} --experiment PATH`."
        )
    if hashlib.sha256(Path(path).read_bytes()).hexdigest() != about.get("sha256"):
        tell(f"{path} has changed since {file} was begun; the run goes on as it is now written.")
    return _fitting(load(str(path)), file, about)


def _fitting(experiment: Experiment, file, about: dict) -> Experiment:
    stray = sorted(set(about["parameters"]) - set(experiment.module.PARAMETERS))
    if stray:
        raise InputError(
            f"{file} has the option {stray[0]}, which {experiment.name} has not any more; go on with the version that "
            f"wrote the file, or make it anew with `cdyn run`."
        )
    return experiment


def complete(file: str, simulation: Simulation) -> tuple[dict, Verdict] | None:
    """Check and draw a resumed experiment that has reached its end, beside its file, if nobody has before."""
    about, out = simulation.about, Path(file).parent
    if "experiment" not in about or (out / "summary.json").exists():
        return None
    experiment = load(about.get("path", about["experiment"]))
    parameters = parameters_of(experiment) | about["parameters"]
    if simulation.time < _duration(experiment, parameters) - 0.5 * simulation.time_step:
        return None
    return _finish(
        experiment, simulation, parameters, out, about["quick"], time.perf_counter(), files=[Path(file).name]
    )


def save_figures(figures, folder: Path) -> None:
    """Write a figure, or a dict of figures, as PNG files; films as GIF."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import Animation

    for name, figure in (figures if isinstance(figures, dict) else {"figure": figures}).items():
        if isinstance(figure, Animation):
            figure.save(folder / f"{name}.gif", writer="pillow", dpi=80)
            plt.close(figure._fig)
        else:
            figure.savefig(folder / f"{name}.png", dpi=150)
            plt.close(figure)
