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

from .. import analysis
from ..errors import ConvergenceWarning, InputError
from ..experiments import pile, runner
from ..experiments._pile import Pile
from ..experiments.options import Option
from ..files import hdf5 as storage
from ..files.recorders import HDF5
from ..state import FREE
from .options import takes

RELAXATION, WATCH = 3.0, 1.0  # s after the last grain, and the last part of it, in which drift and overlap are measured
USUAL = pile.PARAMETERS["tolerance"]  # poured with more seeds
COLUMNS = (
    ("tolerance", "tolerance", "{:g}"), ("seed", "seed", "{}"), ("slope_degrees", "slope °", "{:.2f}"),
    ("height_cm", "height cm", "{:.3f}"), ("inner_pressure_dPa", "pressure dPa", "{:.0f}"),
    ("median_drift", "drift r/s", "{:.1e}"), ("creep", "creep r/s", "{:.1e}"),
    ("mean_overlap", "mean overlap", "{:.1e}"), ("overlap_at_rest", "largest", "{:.1e}"),
    ("largest_overlap", "pouring", "{:.3f}"), ("sweeps", "sweeps", "{:.1f}"),
    ("cpu_milliseconds", "ms/step", "{:.3f}"), ("unsolved", "unsolved", "{}"),
)  # fmt: skip


@takes(
    grains=Option(2000, "grains of each pile", least=1),
    seeds=Option(3, "piles at the usual tolerance, its half and its double", least=1),
    tolerances=Option((1e-2, 4e-3, 2e-3, 1e-3, 5e-4, 1e-4), "to which the contacts are solved", "1", above=0, below=1),
)
def tolerance(echo, *, out: Path = Path("benchmarks"), grains: int, seeds: int, tolerances: tuple) -> dict:
    """A pile of 2000 grains poured at tolerances 1e-2 to 1e-4: drift, overlap, slope, ground pressure and cost.

    At the tolerance of `pile`, or the one nearest to it, and at its half and its double, with ``seeds`` seeds. Each
    pile has its own files in ``out``/tolerance, and is not poured again while they are there.
    """
    if not tolerances:
        raise InputError("The benchmark tolerance got no tolerances; give numbers below 1, such as 1e-2,1e-3.")
    folder = out / "tolerance"
    folder.mkdir(parents=True, exist_ok=True)
    usual = min(tolerances, key=lambda t: abs(math.log(t / USUAL)))
    wanted = [(t, s) for t in tolerances for s in range(1, seeds + 1) if s == 1 or 0.4 < t / usual < 2.5]
    echo("".join(f"{head:>13}" for _, head, _ in COLUMNS))
    rows = []
    for value, seed in wanted:
        row = _poured(folder, grains, float(value), seed)
        rows.append(row)
        echo("".join(f"{form.format(row[key]) if row[key] is not None else '':>13}" for key, _, form in COLUMNS))
    means = [_over_seeds([r for r in rows if r["tolerance"] == t]) for t in tolerances]
    for mean in means if seeds > 1 else ():
        words = ", ".join(f"{key} {mean[key]:.4g} ± {mean['deviation'][key]:.2g}" for key in mean["deviation"])
        if words:
            echo(f"{mean['tolerance']:g}, {mean['seeds']} seeds: {words}")
    return {"grains": grains, "rows": rows, "means": runner.plain(means), "usual": usual}


def _over_seeds(rows: list[dict]) -> dict:
    """Mean and standard deviation over the piles of one tolerance; no deviation where there is one only."""
    keys = ("slope_degrees", "height_cm", "inner_pressure_dPa", "creep", "mean_overlap", "coordination")
    values = {key: [_number(r[key]) for r in rows] for key in keys}
    several = values if len(rows) > 1 else {}
    return {
        "tolerance": rows[0]["tolerance"], "seeds": len(rows),
        **{key: float(np.mean(value)) for key, value in values.items()},
        "deviation": {key: float(np.std(value, ddof=1)) for key, value in several.items()},
    }  # fmt: skip


def _poured(folder: Path, grains: int, value: float, seed: int) -> dict:
    """The row of one pile; where it has been poured already, measured again in its file."""
    name = f"pile-{grains}-{value:g}-seed{seed}"
    path = folder / f"{name}.json"  # written when the pile is complete
    if path.exists() and path.with_suffix(".h5").exists():
        return runner.plain(json.loads(path.read_text()) | measured(path.with_suffix(".h5")))
    parameters = pile.PARAMETERS | {"grains": grains, "tolerance": value, "seed": seed, "relaxation": RELAXATION}
    simulation = pile.build(parameters)
    simulation.about |= runner.plain({"experiment": "pile", "quick": False, "parameters": parameters})
    recorder = HDF5(folder / f"{name}.h5", every=parameters["frame_every"], overwrite=True)  # a pour that was cut
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


def _moved(before, after, identities) -> np.ndarray:
    """How far bodies went between two frames, in their radii per second; ``identities`` (K,) are in both."""
    rows = [np.searchsorted(frame.identities, identities) for frame in (before, after)]
    radii = np.zeros(len(after.kinds))
    radii[after.ball_bodies] = after.ball_radii
    way = after.positions[rows[1]] - before.positions[rows[0]]
    return np.sqrt((way**2).sum(axis=1)) / radii[rows[1]] / (after.time - before.time)


def measured(path: Path) -> dict:
    """What is asked of a poured pile, from its result file.

    Drift: how far grains go in the last second of rest. Creep: the same of the grains of the first quarter while the
    second half is poured over them, which moves them in truth, too. Mean overlap: of all contacts, in mean radii. Inner
    pressure: the weight on the ground within half the radius of the pile, over its area; the central ring alone has a
    few contacts only.
    """
    with storage.open(path) as recording:
        poured, log = Pile(recording), recording.log
        last, late = poured.relaxed, recording.at(recording.times[-1] - WATCH)
        rest = log["time"] > late.time
        grains = last.identities[last.kinds == FREE]
        drift = _moved(late, last, grains)
        half = recording.at(0.5 * poured.pouring)
        creep = _moved(half, poured.poured, grains[: len(grains) // 4]) if half.time < poured.poured.time else [np.nan]
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
            "median_drift": float(np.median(drift)),
            "largest_drift": float(drift.max()),
            "creep": float(np.median(creep)),
            "residual_at_rest": float(np.median(log["residual"][rest])),
            "mean_overlap": -float(last.contacts.gap.mean()) / float(last.ball_radii.mean()),
            "coordination": analysis.coordination(last).mean,
            "overlap_at_rest": float(log["relative_penetration"][rest].max()),
            "largest_overlap": float(log["relative_penetration"].max()),
            "sweeps": float(log["iterations"].mean()),
            "sweeps_at_rest": float(log["iterations"][rest].mean()),
            "most_sweeps": int(log["iterations"].max()),
            "unsolved": int((log["residual"] > options["tolerance"]).sum()),
            "steps": recording.steps,
        }


def draw(results: dict, out: Path) -> None:
    """Creep, overlap, slope, pressure, sweeps and cost over the tolerance; bars are the scatter of seeds."""
    import matplotlib.pyplot as plt

    rows, means = results["rows"], [mean for mean in results["means"] if mean["deviation"]]
    panels = (
        ("creep", "creep, radii per s"), ("mean_overlap", "mean overlap at rest, radii"),
        ("slope_degrees", "slope, degrees"), ("inner_pressure_dPa", "inner ground pressure, dPa"),
        ("sweeps", "sweeps per step"), ("cpu_milliseconds", "CPU time per step, ms"),
    )  # fmt: skip
    figure, axes = plt.subplots(2, 3, figsize=(10, 5.5), layout="constrained")
    for ax, (key, label) in zip(axes.T.flat, panels, strict=True):
        ax.plot([r["tolerance"] for r in rows], [_number(r[key]) for r in rows], "ko", ms=4, mfc="none", label="a pile")
        if means and key in means[0]:
            ax.errorbar(
                [m["tolerance"] for m in means], [_number(m[key]) for m in means],
                yerr=[_number(m["deviation"][key]) for m in means], fmt="r_", ms=12, capsize=4,
                label="mean and deviation of seeds",
            )  # fmt: skip
        ax.set(xscale="log", xlabel="tolerance", ylabel=label)
        ax.set_ylim(0, 1.35 * ax.get_ylim()[1])
    axes[0, 1].legend(frameon=False, fontsize=8, loc="upper left")
    figure.suptitle(f"A pile of {results['grains']} grains poured at different tolerances")
    figure.savefig(out / "tolerance.png", dpi=110)
    plt.close(figure)


def _number(value) -> float:
    """JSON has no nan."""
    return np.nan if value is None else value
