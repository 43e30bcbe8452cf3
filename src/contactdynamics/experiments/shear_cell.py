"""Homogeneous shear of disks at constant pressure: friction and fraction against the inertial number.

A periodic cell is sheared at a constant rate while its height keeps the normal stress: no walls, no gradients. Disks
with friction 0.4 and diameters within 20 % of their mean. Da Cruz et al. (2005) found mu = 0.25 + 1.1 I and
phi = 0.81 - 0.3 I for inertial numbers I = rate sqrt(m / P) up to 0.2.

With ``shape=pentagons`` the grains are regular pentagons without friction: slowly sheared they have a friction of
0.183 +- 0.008 all the same, and no dilatancy (Azema, Radjai and Roux 2015).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

from contactdynamics import InputError, packings
from contactdynamics.experiments._granular import PRESSURE, compressed, sample
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "da Cruz et al. 2005: friction and solid fraction against the inertial number"
PARAMETERS = Options(
    grains=Option(400, "in the cell", least=60, most=100_000),
    shape=Option("disks", '"disks", or "pentagons", which have no friction'),
    friction=Option(0.4, "friction coefficient of disks", "1", least=0, most=10),
    inertial_numbers=Option([0.001, 0.003, 0.01, 0.03, 0.1, 0.2], "rate sqrt(m / P) of the shear", "1",
                            least=1e-5, most=1),
    strain=Option(2.0, "of the shear, at least; the first third is left out", "1", least=0.05, most=1000),
    duration=Option(200.0, "of the shear over sqrt(m / P), at least: the cell has inertia", "1", least=5, most=1e5),
    seed=Option(1, "of the gas", least=0, most=10**9),
    tolerance=Option(1e-3, "to which steps are solved", "1", least=1e-8, most=1e-2),
    step=Option(0.1, "time step over sqrt(m / P), or 0.02 of strain where that is less", "1", least=1e-3, most=0.5),
)  # fmt: skip
QUICK = {"grains": 80, "inertial_numbers": [0.02, 0.1], "strain": 0.8, "duration": 30.0, "tolerance": 3e-3}


def sheared(parameters, number):
    """Mean friction, fraction and stresses over the strain, at one inertial number."""
    pentagons = parameters["shape"] == "pentagons"
    scene, unit = sample(
        parameters, dimension=2, sizes=packings.Sieve.uniform(0.8, 1.2), corners=5 * pentagons,
        friction=0.0 if pentagons else parameters["friction"],
    )  # fmt: skip
    rate = number / unit
    own = parameters | {"step": min(parameters["step"], 0.02 / number)}
    gently = {"longest": 200.0, "rate": 0.005} if pentagons else {"longest": 60.0}  # corners: see `packings.compress`
    sim, _ = compressed(scene, unit, own, quiet=1e-4, **gently)
    solid = float(sim.bodies.mass.sum())  # of density 1
    dense = solid / sim.cell.volume
    sim.cell.impose(rate=[[0, rate], [0, 0]], stress={"yy": PRESSURE}, carry=True)
    start, rows = sim.time, []
    steps = round(max(parameters["strain"] / rate, parameters["duration"] * unit) / sim.time_step)
    with recorded(sim, until=start + steps * sim.time_step):
        for _ in range(steps):
            sim.step()
            stress = sim.cell.stress + sim.cell.kinetic_stress
            rows.append((sim.cell.strain[0, 1], stress[0, 1], stress[1, 1], solid / sim.cell.volume))
    rows = np.array(rows)
    late = rows[len(rows) // 3 :]
    blocks = np.array_split(late, 5)
    ratios = [-block[:, 1].sum() / block[:, 2].sum() for block in blocks]
    return {
        "inertial_number": number, "friction": float(-late[:, 1].sum() / late[:, 2].sum()),
        "error": float(np.std(ratios) / np.sqrt(len(ratios))), "packing_fraction": float(late[:, 3].mean()),
        "dilation": float(dense / late[:, 3].mean() - 1),
        "pressure": float(late[:, 2].mean() / PRESSURE), "overlap": float(sim.watch.overlap), "unsolved": sim.failures,
    }  # fmt: skip


def build(parameters):
    """One run for each inertial number."""
    if parameters["shape"] not in ("disks", "pentagons"):
        raise InputError(f'shape is {parameters["shape"]!r}; give "disks" or "pentagons".')
    return [sheared(parameters, number) for number in parameters["inertial_numbers"]]


def check(outcome, parameters):
    """Against the published lines, where they hold."""
    if parameters["shape"] == "pentagons":
        return _check_pentagons(outcome, parameters)
    known = [run for run in outcome if run["inertial_number"] <= 0.21 and parameters["friction"] == 0.4]
    rows = []
    for run in known:
        number, mu, phi = run["inertial_number"], run["friction"], run["packing_fraction"]
        line, solid = 0.25 + 1.1 * number, 0.81 - 0.3 * number
        few = parameters["grains"] ** -0.5  # of a finite sample
        rows += [
            Row(f"friction at I = {number:g}, within {0.04 + 0.6 * few:.3f}", round(line, 3), mu,
                abs(mu - line) <= 0.04 + 0.6 * few, "published"),
            Row(f"fraction at I = {number:g}, within {0.015 + 0.2 * few:.3f}", round(solid, 3), phi,
                abs(phi - solid) <= 0.015 + 0.2 * few, "published"),
        ]  # fmt: skip
    carried = float(np.mean([run["pressure"] for run in outcome]))
    rows.append(Row("mean normal stress over what was asked", 1.0, carried, abs(carried - 1) < 0.15, "identity"))
    return Verdict(_results(outcome, parameters), rows)


def _results(outcome, parameters):
    keys = ("inertial_number", "friction", "packing_fraction", "error", "dilation", "pressure", "overlap", "unsolved")
    return {key: [run[key] for run in outcome] for key in keys} | {"grains": parameters["grains"], "seeds": 1}


def _check_pentagons(outcome, parameters):
    """Against the published friction: within its error, ours over blocks of strain, and that of a finite sample."""
    slow = min(outcome, key=lambda run: run["inertial_number"])
    few = parameters["grains"] ** -0.5
    width, loose = 0.008 + 2 * slow["error"] + 0.6 * few, 0.01 + 0.2 * few
    rows = [
        Row(f"friction at I = {slow['inertial_number']:g}, within {width:.3f}", 0.183, slow["friction"],
            abs(slow["friction"] - 0.183) <= width, "published"),
        Row(f"dilation of the shear, within {loose:.3f}", 0.0, slow["dilation"], abs(slow["dilation"]) <= loose,
            "published"),
    ]  # fmt: skip
    return Verdict(_results(outcome, parameters), rows)


def figure(outcome, parameters):
    """Both laws over the published lines."""
    numbers = np.array([run["inertial_number"] for run in outcome])
    line = np.geomspace(numbers.min(), max(0.2, numbers.max()), 50)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    axes[0].errorbar(numbers, [run["friction"] for run in outcome], [run["error"] for run in outcome], fmt="o")
    axes[1].plot(numbers, [run["packing_fraction"] for run in outcome], "o")
    if parameters["shape"] == "pentagons":
        axes[0].axhspan(0.175, 0.191, color="0.85", label="Azéma et al. 2015: 0.183 ± 0.008")
        axes[1].plot([], [], "o", color="C0", label="pentagons without friction")
    else:
        axes[0].plot(line, 0.25 + 1.1 * line, "k--", label="da Cruz et al.: 0.25 + 1.1 I")
        axes[1].plot(line, 0.81 - 0.3 * line, "k--", label="da Cruz et al.: 0.81 − 0.3 I")
    for ax, label in zip(axes, ("shear stress over normal stress", "packing fraction"), strict=True):
        ax.set(xscale="log", xlabel="inertial number I", ylabel=label, xlim=(0.5 * min(numbers.min(), 0.02), 0.4))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.legend(frameon=False)
    return figure
