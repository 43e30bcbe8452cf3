"""Errors against CPU time, over tolerances, for this version and another one: `cdyn bench curve`."""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..experiments.options import Option
from ..experiments.pile import STORED
from . import curve_cases, heaps, versions
from .options import takes

TITLES = {"heap": "heap of 14 000, at rest", "pile": "the pile at its end", "scene_1000": "1000 spheres in a box",
          "scene_4000": "4000 spheres in a box", "tower": "tower of 100", "chain": "row of 300"}  # fmt: skip
ERRORS = {"tower": "sag, diameters", "chain": "steps until the push arrives"}
USUAL = "creep, of what gravity brings"


@takes(
    beside=versions.BESIDE,
    tolerances=Option((1e-2, 1e-3, 1e-4), "to which the steps are solved", "1", above=0, below=1),
    heap=Option(14_000, "grains of the heap", least=100),
)
def curve(echo, folder: str | None = None, *, beside: str, tolerances: tuple, heap: int) -> dict:
    """Creep, sag and arrival against CPU time: heap, pile, tower, row, and the scenes scene_*.npz in FOLDER.

    With ``beside``, also by another version: each has a process of its own, one after the other for each case.
    """
    versions.check(beside)
    with tempfile.TemporaryDirectory() as scratch:
        files = {"heap": _kept(scratch, "heap", heaps.settled(heap, echo=echo))}
        if STORED.is_file():
            files["pile"] = _kept(scratch, "pile", versions.stored_pile(math.inf))
        files |= {path.stem: str(path) for path in sorted(Path(folder).glob("scene_*.npz"))} if folder else {}
        files |= {"tower": None, "chain": None}
        rows = []
        for name, path in files.items():
            case = "box" if name.startswith("scene") else name
            request = Path(scratch) / "request.json"
            request.write_text(json.dumps([[case, float(t), path] for t in tolerances]))
            for version, source in (("now", None), ("beside", beside)):
                if source != "":
                    rows += [row | {"name": name, "version": version} for row in _ask(request, source, scratch)]
            for row in rows[-len(tolerances) * (1 + bool(beside)) :]:
                echo(f"{name:>10} {row['version']:>7} {row['tolerance']:8.0e}: {row['cpu_milliseconds']:8.3f} ms, "
                     f"{row['sweeps']:7.1f} sweeps, {ERRORS.get(name, USUAL)} {row['creep']:.2e}")  # fmt: skip
    return {"table": rows}


def _kept(scratch: str, name: str, arrays: dict) -> str:
    path = f"{scratch}/{name}.npz"
    np.savez(path, **arrays)
    return path


def _ask(request: Path, source: str | None, scratch: str) -> list[dict]:
    """The rows of a request, by this version or by that in ``source``."""
    answer, world = Path(scratch) / "answer.json", versions.environment(source, scratch)
    program = [sys.executable, curve_cases.__file__, str(request), str(answer)]
    done = subprocess.run(program, env=world, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"The version in {world['PYTHONPATH']} could not be measured: {done.stderr.strip()[-300:]}")
    return json.loads(answer.read_text())


def draw(results: dict, out: Path) -> None:
    """One panel for each case: error against CPU time, the versions beside each other."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    rows = results["table"]
    names = list(dict.fromkeys(row["name"] for row in rows))
    figure, axes = plt.subplots(2, (len(names) + 1) // 2, figsize=(11, 6.4), layout="constrained", squeeze=False)
    for ax, name in zip(axes.ravel(), names, strict=False):
        for version, style in (("beside", "s--"), ("now", "o-")):
            mine = sorted((r for r in rows if r["name"] == name and r["version"] == version),
                          key=lambda r: r["tolerance"])  # fmt: skip
            if not mine:
                continue
            x, y = ([r[key] for r in mine] for key in ("cpu_milliseconds", "creep"))
            colour = "0.55" if version == "beside" else "#1f5fa8"
            ax.loglog(x, np.maximum(y, 1e-9), style, color=colour, label="before" if version == "beside" else "now")
            for r in (r for r in mine if r["tolerance"] == 1e-3):  # the default
                ax.plot(r["cpu_milliseconds"], max(r["creep"], 1e-9), "o", ms=13, mfc="none", mec=colour)
        ax.set(title=TITLES.get(name, name), ylabel=ERRORS.get(name, USUAL),
               xlabel="CPU ms until it arrives" if name == "chain" else "CPU ms per step")  # fmt: skip
        ax.margins(0.25)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            subs = (1.0, 2.0, 5.0) if high < 50 * low else (1.0,)
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes[0, 0].legend(frameon=False)
    for ax in axes.ravel()[len(names) :]:
        ax.set_axis_off()
    figure.savefig(out / "curve.png", dpi=110)
    plt.close(figure)
