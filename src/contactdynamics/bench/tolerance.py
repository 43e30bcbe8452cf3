"""The choice of the tolerance: the papers' pile, smaller, poured once per tolerance, and what differs.

Two pours that differ in the last bit are two different piles, so a difference between tolerances means something only
beside the scatter of piles poured with other seeds at the same tolerance.
"""

import json
import math
import time
import warnings
from pathlib import Path

import numpy as np

from .. import storage
from ..errors import InputError
from ..experiments import pile, runner
from ..experiments._pile import Pile
from ..recorders import HDF5
from ..simulation import ConvergenceWarning
from ..state import FREE

RELAXATION, WATCH = 3.0, 1.0  # s after the last grain, and the last part of it, in which drift and overlap are measured
USUAL = 1e-3  # the default of the pile, poured with more seeds
COLUMNS = (
    ("tolerance", "tolerance", "{:g}"), ("seed", "seed", "{}"), ("slope_degrees", "slope °", "{:.2f}"),
    ("height_cm", "height cm", "{:.3f}"), ("inner_pressure_dPa", "pressure dPa", "{:.0f}"),
    ("median_drift", "drift r/s", "{:.1e}"), ("largest_drift", "largest", "{:.1e}"),
    ("overlap_at_rest", "overlap", "{:.1e}"), ("largest_overlap", "pouring", "{:.3f}"), ("sweeps", "sweeps", "{:.1f}"),
    ("cpu_milliseconds", "ms/step", "{:.3f}"), ("unsolved", "unsolved", "{}"),
)  # fmt: skip


def tolerance(
    echo, *, out: Path = Path("benchmarks"), grains: int = 2000, seeds: int = 3,
    tolerances: tuple = (1e-2, 2e-3, 1e-3, 5e-4, 1e-4),
) -> dict:  # fmt: skip
    """A pile of 2000 grains poured at tolerances 1e-2 to 1e-4: drift, overlap, slope, ground pressure and cost.

    At the usual tolerance, 1e-3, it is poured with ``seeds`` seeds. Each pile has its own files in ``out``/tolerance,
    and is not poured again while they are there.
    """
    if grains < 1 or seeds < 1:
        raise InputError(f"grains={grains}, seeds={seeds}: these are counts; give 1 or more.")
    if not tolerances or not all(isinstance(t, int | float) and 0 < t < 1 for t in tolerances):
        raise InputError(f"tolerances={tolerances}: give numbers between 0 and 1, such as 1e-2,1e-3.")
    folder = out / "tolerance"
    folder.mkdir(parents=True, exist_ok=True)
    usual = min(tolerances, key=lambda t: abs(math.log(t / USUAL)))
    wanted = [(t, 1) for t in tolerances] + [(usual, seed) for seed in range(2, seeds + 1)]
    echo("".join(f"{head:>13}" for _, head, _ in COLUMNS))
    rows = []
    for value, seed in wanted:
        row = _poured(folder, grains, float(value), seed)
        rows.append(row)
        echo("".join(f"{form.format(row[key]) if row[key] is not None else '':>13}" for key, _, form in COLUMNS))
    scatter = [r for r in rows if r["tolerance"] == usual]
    deviation = {
        key: float(np.std([r[key] for r in scatter], ddof=1)) if len(scatter) > 1 else None
        for key in ("slope_degrees", "height_cm", "inner_pressure_dPa")
    }
    if len(scatter) > 1:
        words = ", ".join(f"{key} {value:.3g}" for key, value in deviation.items())
        echo(f"standard deviation over {len(scatter)} seeds at {usual:g}: {words}")
    return {"grains": grains, "rows": rows, "deviation_over_seeds": deviation, "usual": usual}


def _poured(folder: Path, grains: int, value: float, seed: int) -> dict:
    """The row of one pile; from its file where it has been poured already."""
    name = f"pile-{grains}-{value:g}-seed{seed}"
    path = folder / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    parameters = pile.PARAMETERS | {"grains": grains, "tolerance": value, "seed": seed, "relaxation": RELAXATION}
    simulation = pile.build(parameters)
    simulation.about |= runner.plain({"experiment": "pile", "quick": False, "parameters": parameters})
    recorder = HDF5(folder / f"{name}.h5", every=parameters["frame_every"])
    simulation.recorders.append(recorder)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row counts the steps that were not solved
        simulation.run(until=pile.duration(parameters))
    cpu = time.process_time() - begin
    row = measured(recorder.path) | {"cpu_milliseconds": cpu / simulation.steps * 1e3}
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(runner.plain(row), indent=1) + "\n")
    scratch.replace(path)
    return runner.plain(row)


def measured(path: Path) -> dict:
    """What is asked of a poured pile, from its result file.

    Drift: displacement of a grain in the last second of rest over its radius. Inner pressure: the weight on the ground
    within half the radius of the pile, over its area; the central ring alone has a few contacts only.
    """
    with storage.open(path) as recording:
        poured, log = Pile(recording), recording.log
        late = recording.at(recording.times[-1] - WATCH)
        last = poured.relaxed
        free = last.kinds == FREE
        radii = np.zeros(len(last.kinds))
        radii[last.ball_bodies] = last.ball_radii
        moved = np.sqrt(((last.positions - late.positions) ** 2).sum(axis=1))[free] / radii[free]
        moved /= last.time - late.time
        rest = log["time"] > late.time
        ring = poured.pressure.final
        inner = ring.edges[1:] <= max(ring.edges[1], 0.5 * poured.slope.foot)
        area = np.diff(ring.edges**2)
        options = recording.parameters["options"]
        return {
            "tolerance": options["tolerance"],
            "seed": poured.parameters["seed"],
            "slope_degrees": poured.slope.degrees,
            "slope_error_degrees": poured.slope.error,
            "height_cm": poured.height,
            "central_pressure_dPa": float(ring.values[0]),
            "inner_pressure_dPa": float((ring.values * area)[inner].sum() / area[inner].sum()),
            "median_drift": float(np.median(moved)),
            "largest_drift": float(moved.max()),
            "overlap_at_rest": float(log["relative_penetration"][rest].max()),
            "largest_overlap": float(log["relative_penetration"].max()),
            "sweeps": float(log["iterations"].mean()),
            "sweeps_at_rest": float(log["iterations"][rest].mean()),
            "most_sweeps": int(log["iterations"].max()),
            "unsolved": int((log["residual"] > options["tolerance"]).sum()),
            "steps": recording.steps,
        }


def draw(results: dict, out: Path) -> None:
    """Drift, overlap, slope, pressure, sweeps and cost over the tolerance; bars are the scatter of seeds."""
    import matplotlib.pyplot as plt

    rows, deviation = results["rows"], results["deviation_over_seeds"]
    first = sorted((r for r in rows if r["seed"] == 1), key=lambda r: r["tolerance"])
    others = [r for r in rows if r["seed"] != 1]
    panels = (
        ("median_drift", "median drift at rest, radii per s", "log"),
        ("overlap_at_rest", "largest overlap at rest, radii", "log"),
        ("slope_degrees", "slope, degrees", "linear"),
        ("inner_pressure_dPa", "pressure within half the radius, dPa", "linear"),
        ("sweeps", "sweeps per step", "log"),
        ("cpu_milliseconds", "CPU time per step, ms", "linear"),
    )
    figure, axes = plt.subplots(2, 3, figsize=(10, 5.5), layout="constrained")
    for ax, (key, label, scale) in zip(axes.T.flat, panels, strict=True):
        x, y = [r["tolerance"] for r in first], [r[key] for r in first]
        if min(r[key] for r in rows) <= 0:  # a heap that does not move at all
            scale = "linear"
        if deviation.get(key):
            ax.errorbar(x, y, yerr=deviation[key], fmt="ko-", lw=0.8, ms=4, capsize=3, label="seed 1, scatter of seeds")
        else:
            ax.plot(x, y, "ko-", lw=0.8, ms=4, label="seed 1")
        if others:
            ax.plot([r["tolerance"] for r in others], [r[key] for r in others], "rx", ms=5, label="other seeds")
        ax.set(xscale="log", yscale=scale, xlabel="tolerance", ylabel=label)
        if key in deviation:  # what should not depend on the tolerance: the same share of its mean on the axis
            middle = float(np.mean(y))
            ax.set_ylim(0.85 * middle, 1.15 * middle)
    axes[0, 1].legend(frameon=False, fontsize=8)
    figure.suptitle(f"A pile of {results['grains']} grains poured at different tolerances")
    figure.savefig(out / "tolerance.png", dpi=110)
    plt.close(figure)
