"""A rotating drum, half filled: angle of the flowing surface against the speed, and the profile of velocity.

Grains in a drum that turns slowly flow in a layer at the surface, over a bed that turns with the drum. The angle of the
surface grows with the speed (GDR MiDi 2004), and the velocity falls from the surface into the bed.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "GDR MiDi 2004: rotating drum, angle against speed and profile of velocity"
PARAMETERS = Options(
    grains=Option(700, "in the drum", least=50, most=100_000),
    froude=Option([0.003, 0.01, 0.03, 0.1], "w^2 R / g of the drum", "1", least=1e-6, most=0.9),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=10),
    turns=Option(1.0, "of the drum at each speed; the first third is left out", "1", least=0.1, most=100),
    seed=Option(1, "of the grains", least=0, most=10**9),
    tolerance=Option(3e-3, "to which steps are solved", "1", least=1e-8, most=1e-1),
    step=Option(0.03, "time step over sqrt(d / g)", "1", least=1e-4, most=0.1),
)  # fmt: skip
QUICK = {"grains": 110, "froude": [0.02, 0.15], "turns": 0.25, "step": 0.04, "tolerance": 1e-2}


def drum(parameters, froude):
    """Mean angle of the surface and profile of the velocity along it over the depth."""
    radius = float(np.sqrt(2 * parameters["grains"] / 4 / 0.8))
    speed = float(np.sqrt(froude / radius))
    scene = cd.Scene(gravity=(0, -1.0))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=parameters["friction"])
    beads = int(np.ceil(2 * np.pi * radius / 0.9))
    angle = 2 * np.pi * np.arange(beads) / beads
    ring = (radius + 0.5) * np.column_stack([np.cos(angle), np.sin(angle)])
    scene.add(cd.Cluster([0.5] * beads, ring), material="grain", position=(0, 0), motion=cd.Drive(spin=speed))
    rng = np.random.default_rng(parameters["seed"])
    grid = 1.22 * np.arange(-np.ceil(radius), np.ceil(radius) + 1)
    places = np.array([(x, y) for y in grid for x in grid if np.hypot(x, y) < radius - 0.6])[: parameters["grains"]]
    scene.add_many(rng.uniform(0.4, 0.6, len(places)), material="grain", position=places)
    sim = cd.Simulation(scene, time_step=parameters["step"], tolerance=parameters["tolerance"], on_failure="ignore",
                        penetration="anticipate")  # fmt: skip
    steps = round(2 * np.pi * parameters["turns"] / speed / sim.time_step)
    angles, places, speeds = [], [], []
    with recorded(sim, until=steps * sim.time_step):
        for k in range(steps):
            sim.step()
            if k > steps // 3 and k % max(1, steps // 60) == 0:
                x, v = sim.positions[1:], sim.velocities[1:]
                bins = np.linspace(-0.6 * radius, 0.6 * radius, 9)
                strips = np.digitize(x[:, 0], bins)
                top = [x[strips == k_, 1].max(initial=-radius) for k_ in range(1, len(bins))]
                slope, height = np.polyfit(0.5 * (bins[1:] + bins[:-1]), top, 1)
                angles.append(np.arctan(slope))
                along = np.array([np.cos(angles[-1]), np.sin(angles[-1])])
                depth = (height - (x[:, 1] - slope * x[:, 0])) * np.cos(angles[-1])
                near = np.abs(x @ along) < 0.25 * radius
                places.append(depth[near])
                speeds.append((v @ along)[near])
    places, speeds = np.concatenate(places), np.concatenate(speeds)
    edges = np.arange(-0.5, radius, 1.0)
    layer = np.digitize(places, edges)
    profile = [[edges[n - 1] + 0.5, float(speeds[layer == n].mean())] for n in range(1, len(edges))
               if (layer == n).sum() > 3]  # fmt: skip
    return {"froude": froude, "angle": float(np.degrees(np.mean(angles))), "profile": np.array(profile),
            "error": float(np.degrees(np.std(angles)) / np.sqrt(len(angles))), "rim": speed * radius}  # fmt: skip


def build(parameters):
    """One run for each speed."""
    return [drum(parameters, froude) for froude in parameters["froude"]]


def check(outcome, parameters):
    """The angle grows, the surface flows against the bed."""
    angles = [run["angle"] for run in outcome]
    sense = float(np.sign(angles[-1]))
    sizes = np.abs(angles)
    last = outcome[-1]["profile"]
    surface, bed = -sense * last[:2, 1].mean(), -sense * last[-2:, 1].mean()
    rows = [
        Row("angle of the slowest drum, degrees, between 15 and 35", 25.0, float(sizes[0]), bool(15 <= sizes[0] <= 35),
            "own reference"),
        Row("angle of the fastest less that of the slowest drum, above 0", 8.0, float(sizes[-1] - sizes[0]),
            bool(sizes[-1] > sizes[0]), "published"),
        Row("velocity down the surface over that of the rim, above 0.3", 2.0, surface / outcome[-1]["rim"],
            bool(surface > 0.3 * outcome[-1]["rim"]), "own reference"),
        Row("velocity of the bed down the slope over that of the rim, below 0", -0.6, bed / outcome[-1]["rim"],
            bool(bed < 0), "own reference"),
    ]  # fmt: skip
    results = {"froude": [run["froude"] for run in outcome], "angle": [float(a) for a in sizes],
               "angle_error": [run["error"] for run in outcome], "depth": last[:, 0].tolist(),
               "velocity": (-sense * last[:, 1]).tolist(), "grains": parameters["grains"], "seeds": 1}  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Angle over speed, and profiles over the depth."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    axes[0].errorbar([run["froude"] for run in outcome], [abs(run["angle"]) for run in outcome],
                     [run["error"] for run in outcome], fmt="o-")  # fmt: skip
    axes[0].set(xscale="log", xlabel="Froude number w² R / g", ylabel="angle of the surface, degrees")
    axes[0].xaxis.set_minor_formatter(NullFormatter())
    for run in outcome:
        sense = np.sign(run["angle"])
        axes[1].plot(run["profile"][:, 0], -sense * run["profile"][:, 1] / run["rim"], "o-", ms=3,
                     label=f"Fr = {run['froude']:g}")  # fmt: skip
    axes[1].axhline(0, color="0.7", lw=0.8)
    axes[1].set(xlabel="depth / d", ylabel="velocity down the slope over that of the rim")
    axes[1].legend(frameon=False)
    return figure
