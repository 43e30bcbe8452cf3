"""A row of disks pushed at one end: a sound that does not exist, and how many sweeps it takes to be rid of it.

Rigid disks in a row move together from the first step on. Sweeps carry a push from contact to contact, and what they
leave at the end of a step makes the row behave as if it were elastic: the forces spread by diffusion, about as the
square root of the number of sweeps, and the far end learns of the push n / (q sqrt(N)) steps later (Unger, Brendel,
Wolf and Kertész 2002: an elasticity that vanishes as the number of sweeps N grows).
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.errors import InputError
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "Unger et al. 2002: elasticity of rigid disks by sweeps left out"
PARAMETERS = Options(
    disks=Option(300, "in the row", least=3, most=5000),
    radius=Option(0.01, "of a disk", "m", least=1e-6, most=1e3),
    push=Option(9.81, "force on the first disk over its mass", "m/s²", least=1e-6, most=1e6),
    tolerance=Option(1e-3, "of the run that is judged; the default of a simulation", "1", least=1e-12, most=0.5),
    time_step=Option(1e-3, "length of a step", "s", least=1e-6, most=1e-2),
    steps=Option(1500, "at most in a run", least=10, most=100_000),
    sweeps=Option([1, 2, 5, 10, 20, 50, 100, 200], "of plain Gauss-Seidel in every step", least=1, most=100_000),
    tolerances=Option([1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6], "of the default solver", "1", least=1e-12, most=0.5),
)  # fmt: skip
QUICK = {"disks": 100, "steps": 600, "sweeps": [1, 5, 20, 100], "tolerances": [1e-1, 1e-3, 1e-6]}


def row(parameters, **options):
    """The simulation of the row, with a constant force on its first disk."""
    radius = parameters["radius"]
    scene = cd.Scene(gravity=(0, 0))
    scene.material("steel", density=7800)
    scene.contact("steel", "steel", friction=0.3)
    first = scene.add(cd.Disk(radius), material="steel", position=(0, 0))
    for k in range(1, parameters["disks"]):
        scene.add(cd.Disk(radius), material="steel", position=(2 * radius * k, 0))
    scene.force(first, (7800 * math.pi * radius**2 * parameters["push"], 0))
    return cd.Simulation(scene, time_step=parameters["time_step"], on_failure="ignore", **options)


def arrival(sim, parameters):
    """The step in which the last disk has half of the mean velocity, inf without one; mean sweeps; energy created."""
    sweeps, count = [], parameters["disks"]
    for step in range(1, parameters["steps"] + 1):
        sweeps.append(sim.step().report.iterations)
        if sim.velocities[count - 1, 0] > 0.5 * sim.velocities[:count, 0].mean():
            return step, float(np.mean(sweeps)), sim.energy.created
    return math.inf, float(np.mean(sweeps)), sim.energy.created


def build(parameters):
    """When the far end moves: for so many plain sweeps in every step, and by the tolerance."""
    if len(set(parameters["sweeps"])) < 2:
        raise InputError(f"sweeps={parameters['sweeps']}: give two different numbers or more.")
    plain = [
        arrival(row(parameters, solver="nlgs", tolerance=1e-14, max_iterations=int(n)), parameters)
        for n in parameters["sweeps"]
    ]
    solved = [arrival(row(parameters, tolerance=t), parameters) for t in parameters["tolerances"]]
    return {
        "plain": plain,
        "solved": solved,
        "own": arrival(row(parameters, tolerance=parameters["tolerance"]), parameters),
    }


def law(outcome, parameters):
    """q and the exponent of the sweeps: arrival = n / (q N^exponent), fitted where it takes more than ten steps."""
    points = [(n, step) for n, (step, _, _) in zip(parameters["sweeps"], outcome["plain"], strict=True)
              if 10 < step < math.inf]  # fmt: skip
    if len(points) < 2:
        return math.nan, math.nan
    x, y = np.log(np.array(points, dtype=float)).T
    slope, level = np.polyfit(x, y, 1)
    return float(parameters["disks"] / math.exp(level)), float(-slope)


def check(outcome, parameters):
    """Few sweeps make a sound, by Unger's law; the default has hardly any."""
    step, sweeps, created = outcome["own"]
    q, exponent = law(outcome, parameters)
    most = max(c for _, _, c in [*outcome["plain"], *outcome["solved"], outcome["own"]])
    bound = 2 + parameters["disks"] // 50
    rows = [
        Row("exponent of the sweeps in the speed of the sound", 0.5, exponent, abs(exponent - 0.5) < 0.1, "published"),
        Row("steps until the far end moves, default tolerance", f"1; at most {bound}", step, step <= bound,
            "own reference"),
        Row("energy created, J", 0.0, most, most == 0.0, "identity"),
    ]  # fmt: skip
    results = {
        "arrival_steps": step, "sweeps": sweeps, "created": created, "q": q, "exponent": exponent,
        "by_sweeps": [s for s, _, _ in outcome["plain"]], "by_tolerance": [s for s, _, _ in outcome["solved"]],
        "sweeps_by_tolerance": [n for _, n, _ in outcome["solved"]],
    }  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Arrival against the sweeps, with the law; and against the tolerance."""
    figure, (one, two) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    sweeps, count = np.array(parameters["sweeps"], dtype=float), parameters["disks"]
    q, exponent = law(outcome, parameters)
    one.loglog(sweeps, [s for s, _, _ in outcome["plain"]], "ko", label="plain Gauss-Seidel, so many sweeps a step")
    one.loglog(sweeps, np.maximum(1, count / (q * np.sqrt(sweeps))), "r-", lw=0.9,
               label=f"n / (q √N), q = {q:.2f} (fitted exponent {exponent:.2f})")  # fmt: skip
    one.set(xlabel="sweeps in every step, N", ylabel="steps until the far end moves", title=f"{count} disks")
    two.loglog(parameters["tolerances"], [s for s, _, _ in outcome["solved"]], "ko-", label="default solver")
    two.axvline(PARAMETERS["tolerance"], color="0.7", lw=6, alpha=0.5, zorder=0, label="the default tolerance")
    two.set(xlabel="tolerance", title="by the tolerance")
    for ax in (one, two):
        ax.set_ylim(0.7, None)
        ax.legend(frameon=False, fontsize=8)
    return figure
