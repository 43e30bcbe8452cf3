"""A tower of spheres that must stand still: what a step leaves neither throws it up nor lets it sink.

Many bodies that lean on one are the hardest case of a heap: a thousandth of the impulses at the foot is as much as
gravity brings to a tenth of the tower in a step, and errors add up from sphere to sphere. Exact numbers are known: the
tower stays as it is, the ground carries its weight, no energy is created.
"""

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.state import FREE

FIGURE = "own: force and sag of a tower against tolerance and height"
PARAMETERS = Options(
    spheres=Option(100, "spheres on top of each other", least=2, most=1000),
    radius=Option(0.01, "of a sphere", "m", least=1e-6, most=1e3),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=1e6),
    gravity=Option(9.81, "acceleration", "m/s²", least=1e-3, most=1e4),
    tolerance=Option(1e-3, "to which the steps are solved; the default of a simulation", "1", least=1e-12, most=0.5),
    penetration=Option("moreau", "\"moreau\" or \"anticipate\""),
    time_step=Option(1e-3, "length of a step", "s", least=1e-6, most=1e-2),
    duration=Option(3.0, "of the run; of those of the curves, 1 s at most", "s", least=0.01, most=1000),
    tolerances=Option([1e-1, 1e-2, 1e-3, 1e-4, 1e-6], "of the curves", "1", least=1e-12, most=0.5),
    heights=Option([10, 30, 100], "spheres of the towers of the curves", least=2, most=1000),
)  # fmt: skip
QUICK = {"duration": 0.3, "tolerances": [1e-1, 1e-3, 1e-6], "heights": [10, 100]}


def tower(count, parameters, tolerance, penetration):
    """The simulation of a tower of ``count`` spheres that touch each other."""
    radius = parameters["radius"]
    scene = cd.Scene(gravity=(0, 0, -parameters["gravity"]))
    scene.material("stone", density=2500)
    scene.contact("stone", "stone", friction=parameters["friction"])
    scene.add(cd.Plane(normal=(0, 0, 1)), material="stone", fixed=True)
    for k in range(count):
        scene.add(cd.Sphere(radius), material="stone", position=(0, 0, (2 * k + 1) * radius))
    return cd.Simulation(
        scene, time_step=parameters["time_step"], tolerance=tolerance, penetration=penetration, on_failure="ignore"
    )


def watched(sim, parameters):
    """Run a tower; sag and rise in diameters, force on the ground over the weight, energy created, sweeps."""
    free = sim.bodies.mass[sim.bodies.kind == FREE].sum()
    weight, size = free * parameters["gravity"], 2 * parameters["radius"]
    start, force, sweeps, rise, sag = sim.positions[:, 2].copy(), [], [], 0.0, 0.0
    for _ in range(round(parameters["duration"] / sim.time_step)):
        sweeps.append(sim.step().report.iterations)
        contacts, moved = sim.contacts, sim.positions[:, 2] - start
        ground = (contacts.bodies == 0).any(axis=1)
        force.append(contacts.impulse[ground, 0].sum() / sim.time_step / weight)
        rise, sag = max(rise, moved.max() / size), max(sag, -moved.min() / size)
    late = np.array(force[len(force) // 2 :])
    return {
        "sag_diameters": sag,
        "rise_diameters": rise,
        "force_over_weight": float(late.mean()),
        "force_deviation": float(np.abs(late - 1).max()),
        "largest_force": float(max(force)),
        "created": sim.energy.created / (weight * size),
        "sweeps": float(np.mean(sweeps)),
        "first_sweeps": sweeps[0],
        "unsolved": sim.failures,
        "overlap": sim.watch.overlap,
    }


def build(parameters):
    """The tower asked for, recorded, and towers of all heights at all tolerances in both modes."""
    sim = tower(parameters["spheres"], parameters, parameters["tolerance"], parameters["penetration"])
    with recorded(sim, until=parameters["duration"]):
        own = watched(sim, parameters)
    brief = parameters | {"duration": min(1.0, parameters["duration"])}
    curves = {
        (mode, count): [watched(tower(count, brief, t, mode), brief) for t in parameters["tolerances"]]
        for mode in ("moreau", "anticipate")
        for count in parameters["heights"]
    }
    return {"own": own, "curves": curves}


def check(outcome, parameters):
    """It stands, the ground carries it, and nothing creates energy."""
    own = outcome["own"]
    runs = [run for curve in outcome["curves"].values() for run in curve]
    created = max(run["created"] for run in [own, *runs])
    thrown = max(run["rise_diameters"] for run in [own, *runs])
    rows = [
        Row("sag, diameters", 0.0, own["sag_diameters"], own["sag_diameters"] < 1e-2, "closed form"),
        Row("force on the ground over the weight, second half", 1.0, own["force_over_weight"],
            own["force_deviation"] < 1e-2, "closed form"),
        Row("energy created, weight times diameter", 0.0, own["created"], own["created"] <= 1e-9, "identity"),
        Row("energy created, all towers and tolerances", 0.0, created, created <= 1e-9, "identity"),
        Row("thrown up, diameters, all towers and tolerances", 0.0, thrown, thrown < 1e-3, "closed form"),
    ]  # fmt: skip
    table = [
        {"penetration": mode, "spheres": count, "tolerance": tolerance} | run
        for (mode, count), curve in outcome["curves"].items()
        for tolerance, run in zip(parameters["tolerances"], curve, strict=True)
    ]
    return Verdict(own | {"table": table}, rows)


def figure(outcome, parameters):
    """Sag, error of the force and sweeps against the tolerance, for each height and mode."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    panels = (
        ("sag_diameters", "sag, diameters", 1e-9),
        ("force_deviation", "largest error of the force on the ground", 1e-12),
        ("sweeps", "sweeps per step", 0.0),
    )
    shades = plt.cm.viridis(np.linspace(0, 0.8, len(parameters["heights"])))
    for ax, (key, label, least) in zip(axes, panels, strict=True):
        for (mode, count), curve in outcome["curves"].items():
            colour = shades[parameters["heights"].index(count)]
            style = {"moreau": "o-", "anticipate": "s--"}[mode]
            values = [max(run[key], least) for run in curve]
            ax.plot(parameters["tolerances"], values, style, color=colour, mfc="none", ms=5, label=f"{count}, {mode}")
        ax.axvline(PARAMETERS["tolerance"], color="0.7", lw=6, alpha=0.5, zorder=0)
        ax.set(xscale="log", yscale="log", xlabel="tolerance (grey: the default)", title=label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, title="spheres, mode", loc="outside right center")
    return figure
