"""Benchmarks of ``cdyn bench``: a table, ``summary.json`` with the results, and one CSV line per run."""

import csv
import json
import math
import platform
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from .._version import __version__
from ..errors import InputError


def _functions() -> dict:
    """The benchmarks by name; imported late, since they load everything."""
    from . import polygons, speed, systems

    return {
        "system": systems.system, "sweep": speed.sweep, "step": speed.step, "scenes": speed.scenes,
        "growth": speed.growth, "tolerance": speed.tolerance, "profile": speed.profile,
        "polygons": polygons.polygons,
    }  # fmt: skip


def listing() -> list[str]:
    """One line per benchmark."""
    return [f"{name:<10} {function.__doc__.splitlines()[0]}" for name, function in _functions().items()]


def run(name: str, argument: str | None, out: Path, echo) -> int:
    """Run benchmark ``name``, write ``summary.json`` and append to ``NAME.csv`` in ``out``."""
    functions = _functions()
    if name not in functions:
        near = get_close_matches(name, functions, 1)
        raise InputError(f"There is no benchmark {name!r}; choose {near[0] if near else ', '.join(functions)}.")
    if argument and name not in ("scenes", "growth"):
        raise InputError(f"The benchmark {name} takes no argument, but got {argument!r}; leave it out.")
    results = functions[name](echo, argument) if name in ("scenes", "growth") else functions[name](echo)
    out.mkdir(parents=True, exist_ok=True)
    summary = {"benchmark": name, "version": __version__, "machine": platform.node(), "results": results}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if name in ("growth", "profile"):
        _draw(name, results, out)
    numbers = {k: v for k, v in results.items() if isinstance(v, int | float) and math.isfinite(v)}
    row = {"date": date.today().isoformat(), "machine": platform.node(), "version": __version__, **numbers}
    path = out / f"{name}.csv"
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)
    echo(f"written to {path}")
    return 0


def _draw(name: str, results: dict, out: Path) -> None:
    """The figure of a benchmark: growth of time and memory, or shares of the stages."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    if name == "growth":
        rows = results["table"]
        grains = [r["grains"] for r in rows]
        ax.loglog(grains, [r["milliseconds"] for r in rows], "o-", label="time per step, ms")
        ax.loglog(grains, [r["bytes_per_grain"] for r in rows], "s--", label="bytes per grain")
        ax.set(xlabel="grains", title=f"time grows as grains^{results['exponent']:.2f}")
    else:
        left = [0.0] * len(results)
        for stage in next(iter(results.values())):
            values = [r[stage] for r in results.values()]
            ax.barh(list(results), values, left=left, label=stage)
            left = [a + b for a, b in zip(left, values, strict=True)]
        ax.set(xlabel="ms per step")
    ax.legend(frameon=False)
    figure.savefig(out / f"{name}.png", dpi=150)
    plt.close(figure)
