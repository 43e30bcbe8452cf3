"""Benchmarks of ``cdyn bench``: a table, ``summary.json`` with the results, and one CSV line per run."""

import csv
import json
import math
import platform
import time
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from ._version import __version__
from .errors import InputError


def system(echo) -> dict:
    """Steps per second of a system of three freedoms with one frictional contact (the body of 1986, section 14)."""
    from .experiments import essai_10
    from .motion import integrate

    pressed = essai_10.PARAMETERS | {"torque": -700.0}  # permanent contact
    chatter, start = essai_10.system(pressed), essai_10.initial(pressed)
    integrate(chatter, *start, step=5e-4, until=0.1)  # compile
    best = 0.0
    for _ in range(20):  # short repeats: the best one met no other work on the machine
        begin = time.perf_counter()
        motion = integrate(chatter, *start, step=5e-5, until=0.25)
        best = max(best, len(motion.gaps) / (time.perf_counter() - begin))
    share = float(motion.active.mean())
    echo(f"{best:,.0f} steps/s (target 20,000), contact active in {share:.0%} of the steps")
    return {"steps_per_second": best, "contact_fraction": share, "target": 20_000}


BENCHMARKS = {"system": system}


def run(name: str, out: Path, echo) -> int:
    """Run benchmark ``name``, write ``summary.json`` and append to ``NAME.csv`` in ``out``."""
    if name not in BENCHMARKS:
        near = get_close_matches(name, BENCHMARKS, 1)
        raise InputError(f"There is no benchmark {name!r}; choose {near[0] if near else ', '.join(BENCHMARKS)}.")
    results = BENCHMARKS[name](echo)
    out.mkdir(parents=True, exist_ok=True)
    summary = {"benchmark": name, "version": __version__, "machine": platform.node(), "results": results}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
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
