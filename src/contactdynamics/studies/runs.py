"""A study: every combination of some options of an experiment, each in a folder of its own, and a table of all.

The folder of a study has ``study.json`` (which experiment), a folder for each run with what `cdyn run` leaves
(``summary.json``, ``run.h5``, figures) or with ``failed.json``, which has its sentence, ``study.csv`` and, where
pyarrow is there, ``study.parquet``: a row for each run with all its parameters and its scalar results. What is done is
not done again: a study that was cut off, or that gets more values, goes on where it was.
"""

import concurrent.futures
import contextlib
import csv
import json
import os
import warnings
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from ..errors import ConvergenceError, InputError, RunawayError, check_flags, explained
from ..experiments import runner
from ..progress import counted
from . import executors, grid

LAST = ("passed", "seconds", "error", "folder")  # columns after parameters and results
FAILED = "failed.json"
DIED = "the process of this run died (killed, or out of memory)"


def one_run(name: str, settings: dict[str, str], parameters: dict, quick: bool, folder: str) -> str | None:
    """Make one run, in whatever process; returns None, or why there is none, which is kept in its folder too.

    ``parameters`` are those of the ``settings``, as JSON has them.
    """
    os.environ["MPLBACKEND"] = "Agg"
    out = Path(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the summary has them in numbers
            experiment = runner.load(name)
            runner.run(experiment, runner.parameters_of(experiment, settings, quick), out, quick=quick, force=True)
        return None
    except (InputError, ConvergenceError, RunawayError, MemoryError, OSError) as error:
        sentence = str(error) or type(error).__name__
    except Exception as error:  # a bug of the experiment is the row's, not the study's
        sentence = f"{type(error).__name__}: {error}"
    _note_failure(out, sentence, parameters)
    return sentence


def _note_failure(out: Path, sentence: str, parameters: dict) -> None:
    with contextlib.suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
        told = {"error": sentence, "parameters": parameters}
        _write(out / FAILED, json.dumps(told, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8", newline="")
    os.replace(aside, path)


class Study:
    """The table of a study.

    Attributes
    ----------
    rows
        A dict for each run: its parameters, its scalar results, ``passed`` (whether the experiment agrees with what it
        expects), ``seconds``, ``error`` (None, or a sentence) and ``folder``.
    parameters
        Names of the parameters; ``varied`` are those with several values.
    results
        Names of the scalar results.
    folder
        Where all is.
    """

    def __init__(self, folder: Path, rows: list[dict], parameters: list[str], results: list[str]):
        self.folder, self.rows, self.parameters, self.results = folder, rows, parameters, results
        self.varied = [key for key in parameters if len({_text(row.get(key)) for row in rows}) > 1]

    def __repr__(self):
        failed = sum(row["error"] is not None for row in self.rows)
        return f"Study of {len(self.rows)} runs, {failed} of them failed, over {', '.join(self.varied) or 'no option'}"

    def __len__(self):
        return len(self.rows)

    def column(self, name: str) -> np.ndarray:
        """(n,) the values of a parameter or result; nan where a run has none."""
        if name not in (*self.parameters, *self.results, *LAST):
            raise InputError(
                f"The study has no column {name!r}; it has {', '.join((*self.parameters, *self.results, *LAST))}."
            )
        values = [row.get(name) for row in self.rows]
        if all(isinstance(value, int | float | None) for value in values):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.array([_text(value) for value in values], dtype=object)

    def means(self, result: str, parameter: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values of ``parameter``, and over all else mean, standard deviation and number of ``result``, each (k,)."""
        y, x = self.column(result), self.column(parameter)
        if y.dtype == object:
            raise InputError(f"{result} is no number; choose one of {', '.join(self.results)}.")
        there = np.isfinite(y)
        places = np.unique(x[there])
        groups = [y[there & (x == place)] for place in places]
        deviation = [group.std(ddof=1) if len(group) > 1 else 0.0 for group in groups]
        return places, np.array([g.mean() for g in groups]), np.array(deviation), np.array([len(g) for g in groups])

    def plot(self, result: str, parameter: str, ax=None):
        """Draw ``result`` against ``parameter``: all runs, mean and standard deviation over the rest; the axes."""
        x, mean, deviation, count = self.means(result, parameter)
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        words = x.dtype == object
        at = np.arange(len(x)) if words else x.astype(float)
        y, all_x = self.column(result), self.column(parameter)
        ax.plot(np.searchsorted(x, all_x) if words else all_x.astype(float), y, ".", color="0.75", zorder=1)
        ax.errorbar(at, mean, deviation, fmt="o-", capsize=3, zorder=2, label=f"mean, deviation; {count.sum()} runs")
        if words:
            ax.set_xticks(at, x)
        ax.set_xlabel(parameter.replace("_", " "))
        ax.set_ylabel(result.replace("_", " "))
        ax.legend(frameon=False)
        return ax

    def write(self) -> None:
        """Write ``study.csv``, and ``study.parquet`` where pyarrow is there."""
        columns = [*self.parameters, *self.results, *LAST]
        aside = self.folder / f".study.csv.{os.getpid()}"
        with aside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([_text(row.get(name)) for name in columns] for row in self.rows)
        os.replace(aside, self.folder / "study.csv")
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return
        table = {name: _alike([row.get(name) for row in self.rows]) for name in columns}
        aside = self.folder / f".study.parquet.{os.getpid()}"
        pyarrow.parquet.write_table(pyarrow.table(table), aside)
        os.replace(aside, self.folder / "study.parquet")


def _text(value) -> str:
    """A value in a cell of the table."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _alike(values: list) -> list:
    """A column of one type: numbers, or texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and not kinds & {list, dict}:
        return values
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else _text(value) for value in values]


@explained
def study(
    experiment: str,
    parameters: dict,
    *,
    out=None,
    quick: bool = False,
    executor=None,
    workers: int | None = None,
    again: bool = False,
) -> Study:
    """Run ``experiment`` for every combination of ``parameters`` and return the table.

    Parameters
    ----------
    experiment
        A name of `cdyn list`, or the path of your own experiment file.
    parameters
        Option -> value, list of values, or a text as on the command line: "0.1:0.9:9" are nine numbers, "1..20" whole
        ones.
    out
        Folder of the study [results/study-NAME]; what it holds already is not computed again.
    quick
        The short form of the experiment.
    executor
        Who makes the runs: anything with `submit` as in `concurrent.futures`, also of dask or mpi4py; by default
        ``workers`` processes of this machine, as many as it has cores. Two runs never write into one folder.
    again
        Try those runs again that failed before.
    """
    check_flags("study", quick=quick, again=again)
    if not isinstance(experiment, str):
        raise InputError(f"study got the experiment {experiment!r}; give a name of `cdyn list`, or a path.")
    if not isinstance(parameters, dict):
        raise InputError(f"study got parameters={parameters!r}; give a dict such as {{'friction': [0.1, 0.3]}}.")
    if executor is not None and not hasattr(executor, "submit"):
        raise InputError(f"study got executor={executor!r}; give one with submit, as those of concurrent.futures.")
    executors.check_workers(workers)
    loaded = runner.load(experiment)
    name = str(Path(experiment).resolve()) if loaded.own else experiment
    runs = grid.combinations(loaded, grid.texts_of(loaded, parameters), quick)
    folder = Path(out or Path("results") / f"study-{loaded.name}").resolve()
    _begin(folder, name, quick)
    places = [folder / grid.folder_name(settings) for settings, _ in runs]
    todo = [
        (name, settings, wanted, quick, str(place))
        for (settings, wanted), place in zip(runs, places, strict=True)
        if not _done(place, wanted, again)
    ]
    with counted(f"{loaded.name}: runs", len(todo)) as advance:
        try:
            _run_all(todo, executor, workers, advance)
        except KeyboardInterrupt:
            done = sum(_done(place, wanted, False) for (_, wanted), place in zip(runs, places, strict=True))
            raise KeyboardInterrupt(
                f"Stopped: {done} of {len(runs)} runs are done; the same command goes on."
            ) from None
        finally:
            _collected(folder, sorted({*places, *_earlier(folder)})).write()
    return _collected(folder, places)


def _begin(folder: Path, name: str, quick: bool) -> None:
    """Make the folder of a study, or see that it is one of the same experiment."""
    about, file = {"study": name, "quick": quick}, folder / "study.json"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give another folder for the study.")
    if file.exists():
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if found != about:
            raise InputError(f"{folder} holds another study ({found}); give another folder.")
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no study; give another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    _write(file, json.dumps(about) + "\n")


def _earlier(folder: Path) -> list[Path]:
    """The folders of all runs that the study has."""
    return [place for place in folder.iterdir() if any((place / name).exists() for name in ("summary.json", FAILED))]


def _summary(place: Path) -> dict | None:
    try:
        return json.loads((place / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _done(place: Path, wanted: dict, again: bool) -> bool:
    """Whether the run of a folder is there with the ``wanted`` parameters, or failed and is not to be tried again."""
    summary = _summary(place)
    if summary is not None:
        return summary.get("parameters") == wanted
    return not again and (place / FAILED).exists()


def _run_all(todo: list, executor, workers, advance) -> None:
    """Make the runs; where a process dies, those that it may have been at are made again, one by one."""
    for run in todo:
        with contextlib.suppress(OSError):
            (Path(run[-1]) / FAILED).unlink()
    if executor is not None:
        for future in _finished(executor, todo):
            _take(future, advance)
        return
    left = []
    with executors.processes(workers) as pool:
        futures = {pool.submit(one_run, *run): run for run in todo}
        try:
            for future in concurrent.futures.as_completed(futures):
                if isinstance(future.exception(), BrokenProcessPool):
                    left.append(futures[future])
                else:
                    _take(future, advance)
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    for run in left:
        with executors.processes(1) as pool:
            future = pool.submit(one_run, *run)
            if isinstance(future.exception(), BrokenProcessPool):
                _note_failure(Path(run[-1]), DIED, run[2])
                advance()
            else:
                _take(future, advance)


def _finished(executor, todo: list):
    """The futures of the runs, as they end; those not begun are taken back where the study is stopped."""
    futures = [executor.submit(one_run, *run) for run in todo]
    try:
        yield from concurrent.futures.as_completed(futures)
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _take(future, advance) -> None:
    future.result()
    advance()


def _collected(folder: Path, places: list[Path]) -> Study:
    """The table of the runs in ``places``, from what they hold."""
    rows, parameters, results = [], {}, {}
    for place in places:
        summary = _summary(place)
        if summary is None:
            try:
                summary = json.loads((place / FAILED).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # not run: the study was stopped
        mine = summary.get("parameters", {})
        found = {
            key: value
            for key, value in summary.get("results", {}).items()
            if isinstance(value, int | float | str) and key not in mine and key not in LAST
        }
        parameters |= dict.fromkeys(mine)
        results |= dict.fromkeys(found)
        last = (summary.get("passed"), summary.get("seconds"), summary.get("error"), place.name)
        rows.append(found | mine | dict(zip(LAST, last, strict=True)))
    return Study(folder, rows, list(parameters), list(results))
