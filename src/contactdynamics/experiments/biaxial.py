"""Biaxial compression of a dense and a loose sample: to the common critical state.

Disks in a periodic cell are shortened in one direction at a constant rate while the other keeps its stress. The dense
sample was compressed without friction, the loose one with it. The dense one has a peak and dilates, the loose one
hardens and contracts; at large strain both have the same stress and the same fraction (Casagrande; Roux and Radjai).
"""

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import packings
from contactdynamics.experiments._granular import PRESSURE, compressed, sample, set_friction
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "critical state: stress and volume of a dense and a loose sample"
PARAMETERS = Options(
    grains=Option(600, "in the cell", least=100, most=100_000),
    friction=Option(0.5, "friction coefficient", "1", least=0.05, most=10),
    strain=Option(0.3, "logarithmic, by which the sample is shortened", "1", least=0.01, most=0.6),
    rate=Option(2e-3, "of the shortening times sqrt(m / P)", "1", least=1e-5, most=0.1),
    seed=Option(1, "of the gas", least=0, most=10**9),
    tolerance=Option(1e-3, "to which steps are solved", "1", least=1e-8, most=1e-2),
    step=Option(0.1, "time step over sqrt(m / P)", "1", least=1e-3, most=0.5),
)  # fmt: skip
QUICK = {"grains": 100, "strain": 0.15, "rate": 1e-2, "tolerance": 3e-3}


def build(parameters):
    """Strain, stress ratio (s2 - s1) / (s2 + s1) and fraction of both samples."""
    out = {}
    for name, friction in (("dense", 0.0), ("loose", parameters["friction"])):
        scene, unit = sample(parameters, dimension=2, sizes=packings.Sieve.uniform(0.7, 1.3), friction=friction)
        sim, _ = compressed(scene, unit, parameters, longest=150.0, quiet=1e-6)
        set_friction(sim, parameters["friction"])
        rate = parameters["rate"] / unit
        sim.cell.impose(rate=[[0, 0], [0, -rate]], stress={"xx": PRESSURE}, carry=True)
        start, solid, rows = sim.cell.strain[1, 1], float((np.pi * sim.model.balls.radius**2).sum()), []
        steps = round(parameters["strain"] / (rate * sim.time_step))
        with recorded(sim, until=sim.time + steps * sim.time_step):
            for _ in range(steps):
                sim.step()
                one, two = np.diag(sim.cell.stress)
                rows.append((start - sim.cell.strain[1, 1], two, one, solid / sim.cell.volume))
        rows = np.array(rows)
        width = max(1, len(rows) // 60)
        rows = rows[: len(rows) // width * width].reshape(-1, width, 4).mean(axis=1)
        out[name] = np.column_stack([rows[:, 0], (rows[:, 1] - rows[:, 2]) / (rows[:, 1] + rows[:, 2]), rows[:, 3]])
    return out


def check(outcome, parameters):
    """Peak, dilation and contraction, and the same end."""
    dense = outcome["dense"]
    end = {name: rows[-len(rows) // 4 :].mean(axis=0) for name, rows in outcome.items()}
    peak, few = dense[:, 1].max(), parameters["grains"] ** -0.5  # of a finite sample
    rows = [
        Row("peak of the dense sample over its end, above 1.1", 1.3, peak / end["dense"][1],
            peak > 1.1 * end["dense"][1], "own reference"),
        Row("fraction that the dense sample loses, above 0.01", 0.03, dense[0, 2] - end["dense"][2],
            dense[0, 2] - end["dense"][2] > 0.01, "own reference"),
        Row(f"difference of the stress ratios at the end, within {0.04 + 0.6 * few:.3f}", 0.0,
            end["dense"][1] - end["loose"][1], abs(end["dense"][1] - end["loose"][1]) <= 0.04 + 0.6 * few, "published"),
        Row(f"difference of the fractions at the end, within {0.008 + 0.12 * few:.3f}", 0.0,
            end["dense"][2] - end["loose"][2], abs(end["dense"][2] - end["loose"][2]) <= 0.008 + 0.12 * few,
            "published"),
    ]  # fmt: skip
    results = {f"{name}_{key}": rows_[:, k].tolist() for name, rows_ in outcome.items()
               for k, key in enumerate(("strain", "stress_ratio", "packing_fraction"))}  # fmt: skip
    critical = {"critical_stress_ratio": float(0.5 * (end["dense"][1] + end["loose"][1])),
                "critical_fraction": float(0.5 * (end["dense"][2] + end["loose"][2]))}  # fmt: skip
    return Verdict(results | critical | {"grains": parameters["grains"], "seeds": 1}, rows)


def figure(outcome, parameters):
    """Both curves over the strain."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, rows in outcome.items():
        axes[0].plot(rows[:, 0], rows[:, 1], label=name)
        axes[1].plot(rows[:, 0], rows[:, 2], label=name)
    axes[0].set(xlabel="axial strain", ylabel="(σ₂ − σ₁) / (σ₂ + σ₁)")
    axes[1].set(xlabel="axial strain", ylabel="packing fraction")
    axes[0].legend(frameon=False)
    return figure
