"""Benchmarks of ``cdyn bench``: a table, ``summary.json`` with the results, and one CSV line per run."""

import csv
import json
import math
import platform
from datetime import date
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

from .._version import __version__
from ..errors import InputError
from ..experiments.options import Options, chosen


def _functions() -> dict:
    """The benchmarks by name; imported late, since they load everything."""
    from . import (
        cells,
        changeover,
        curve,
        late,
        masonry,
        peers,
        penetration,
        polygons,
        polyhedra,
        ranks,
        solvers,
        speed,
        start,
        systems,
        tolerance,
    )

    return {
        "system": systems.system, "sweep": speed.sweep, "step": speed.step, "scenes": speed.scenes,
        "peers": peers.peers, "peers-masonry": masonry.masonry,
        "growth": speed.growth, "tolerance": tolerance.tolerance, "profile": speed.profile, "start": start.start,
        "polygons": polygons.polygons, "polyhedra": polyhedra.polyhedra, "solvers": solvers.solvers,
        "cells": cells.cells, "ranks": ranks.ranks, "curve": curve.curve, "changeover": changeover.changeover,
        "penetration": penetration.penetration, "late": late.late,
    }  # fmt: skip


def joined(name: str, argument: str | None) -> tuple[str, str | None]:
    """Name and argument; two words that are one benchmark (``peers masonry``) are its name."""
    both = f"{name}-{argument}"
    return (both, None) if both in _functions() else (name, argument)


def listing() -> list[str]:
    """One line per benchmark."""
    return [f"{name:<13} {function.__doc__.splitlines()[0]}" for name, function in _functions().items()]


def options_of(name: str) -> tuple[str, Options]:
    """What a benchmark measures, in a line, and its options."""
    function = _known(name)
    return function.__doc__.splitlines()[0], getattr(function, "options", Options())


def _known(name: str):
    """The benchmark of this name."""
    functions = _functions()
    if name not in functions:
        near = get_close_matches(name, functions, 1)
        raise InputError(f"There is no benchmark {name!r}; choose {near[0] if near else ', '.join(functions)}.")
    return functions[name]


def run(name: str, argument: str | None, out: Path, echo, settings: dict | None = None) -> int:
    """Run benchmark ``name``, write ``summary.json`` and append to ``NAME.csv`` in ``out``.

    The summary and the figure are those of the last run, the table has all of them.
    """
    function = _known(name)
    parts = signature(function).parameters
    takes_argument = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parts.values()) > 1
    if argument and not takes_argument:
        raise InputError(f"The benchmark {name} takes no argument, but got {argument!r}; leave it out.")
    options = chosen(f"the benchmark {name}", options_of(name)[1], {}, settings or {})
    if "out" in parts:  # results that are kept from run to run
        options["out"] = out
    _refuse_experiment(out)
    results = function(echo, *([argument] if takes_argument else []), **options)
    out.mkdir(parents=True, exist_ok=True)
    summary = {"benchmark": name, "version": __version__, "machine": platform.node(), "results": results}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if name in ("growth", "profile", "tolerance", "solvers", "ranks", "curve"):
        _draw(name, results, out)
    numbers = {k: v for k, v in results.items() if isinstance(v, int | float) and math.isfinite(v)}
    row = {"date": date.today().isoformat(), "machine": platform.node(), "version": __version__, **numbers}
    path = out / f"{name}.csv"
    _append_row(path, row)
    echo(f"written to {path}")
    return 0


def _refuse_experiment(out: Path) -> None:
    """No benchmark overwrites the summary of an experiment."""
    path = out / "summary.json"
    if path.exists() and '"benchmark"' not in path.read_text(errors="replace")[:200]:
        raise InputError(f"{out} holds the results of an experiment; give the benchmark another folder, --out FOLDER.")


def _append_row(path: Path, row: dict) -> None:
    """Add a line to a table; columns that one of the lines lacks stay empty in it."""
    rows = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    rows.append(row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for r in rows for key in r)))
        writer.writeheader()
        writer.writerows(rows)


def _draw(name: str, results: dict, out: Path) -> None:
    """The figure of a benchmark: growth of time and memory, shares of the stages, or tolerances."""
    import matplotlib

    matplotlib.use("Agg")
    if name in ("tolerance", "solvers", "ranks", "curve"):
        from . import curve, scaling, solvers, tolerance

        return {"tolerance": tolerance, "solvers": solvers, "ranks": scaling, "curve": curve}[name].draw(results, out)
    if name == "growth":
        from .speed import draw_growth

        return draw_growth(results, out)
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    left = [0.0] * len(results)
    for stage in next(iter(results.values())):
        values = [r[stage] for r in results.values()]
        ax.barh(list(results), values, left=left, label=stage)
        left = [a + b for a, b in zip(left, values, strict=True)]
    ax.set(xlabel="ms per step")
    ax.legend(frameon=False)
    figure.savefig(out / f"{name}.png", dpi=150)
    plt.close(figure)
