"""Columns of disks that collapse: the run-out against the initial aspect ratio.

Staron and Hinch (2005, by Contact Dynamics): a column of width R and height a R against a wall, released at once, runs
out by 2.5 a R for a below 2 and by 3.25 a^0.7 R above. Disks with friction 1 on a plane with friction 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics import packings
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "Staron and Hinch 2005: run-out of columns against their aspect ratio"
PARAMETERS = Options(
    grains=Option(2000, "of each column", least=50, most=100_000),
    aspect_ratios=Option([0.6, 1.0, 1.5, 3.0, 6.0, 10.0], "height over width", "1", least=0.2, most=50),
    friction=Option(1.0, "friction coefficient", "1", least=0, most=10),
    seed=Option(1, "of the grains", least=0, most=10**9),
    tolerance=Option(3e-3, "to which steps are solved", "1", least=1e-8, most=1e-2),
    step=Option(0.03, "time step over sqrt(d / g)", "1", least=1e-4, most=0.1),
)  # fmt: skip
QUICK = {"grains": 120, "aspect_ratios": [0.8, 4.0], "step": 0.05, "tolerance": 1e-2}
SIZE = 1.0  # mean diameter and gravity: the units


def front(sim, first):
    """The farthest place of the heap: grains that hang together with the most others by contacts."""
    contacts, n = sim.contacts, len(sim.identities)
    group = np.arange(n)
    rows = np.searchsorted(sim.identities, contacts.bodies)
    rows = rows[(rows >= first).all(axis=1)]
    for _ in range(200):
        low = np.minimum(group[rows[:, 0]], group[rows[:, 1]])
        before = group.copy()
        np.minimum.at(group, rows[:, 0], low)
        np.minimum.at(group, rows[:, 1], low)
        group = group[group]
        if (group == before).all():
            break
    grains = group[first:]
    main = np.bincount(grains).argmax()
    return float(sim.positions[first:][grains == main, 0].max() + 0.5 * SIZE)


def collapse(parameters, aspect):
    """Width, height and run-out of one column."""
    width = float(np.sqrt(parameters["grains"] * np.pi / 4 / 0.82 / aspect)) * SIZE
    scene = cd.Scene(gravity=(0, -1.0))
    scene.material("grain", density=1.0)
    scene.material("wall", density=1.0)
    scene.contact("grain", "grain", friction=parameters["friction"])
    scene.contact("grain", "wall", friction=0.0)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="grain", fixed=True)
    scene.add(cd.HalfPlane(normal=(1, 0)), material="wall", fixed=True)
    gate = scene.add(cd.HalfPlane(normal=(-1, 0)), material="wall", position=(width, 0), fixed=True)
    packings.rain(scene, material="grain", sizes=(0.8, 1.2), count=parameters["grains"], low=(0, 0),
                  high=(width, 2.2 * aspect * width), seed=parameters["seed"])  # fmt: skip
    # Sweeps alone: the steps that they leave, one in a hundred, would take all contacts together seconds each.
    sim = cd.Simulation(scene, time_step=parameters["step"], tolerance=parameters["tolerance"], on_failure="ignore",
                        penetration="anticipate", solver="accelerated")  # fmt: skip
    fall = np.sqrt(2 * 2.2 * aspect * width)
    sim.run(until=sim.time_step * round(1.6 * fall / sim.time_step), progress=False)
    tall = float(np.sort(sim.positions[3:, 1])[-max(3, int(width / SIZE)) :].mean() + 0.5 * SIZE)
    sim.remove(gate)
    time, still = sim.time, 6 * np.sqrt(tall)
    with recorded(sim, until=time + still):
        for _ in range(round(still / sim.time_step)):
            sim.step()
    return {"aspect_ratio": tall / width, "runout": front(sim, 2) / width - 1, "width": width,
            "kinetic": float(sim.energy.kinetic), "frame": sim.frame()}  # fmt: skip


def build(parameters):
    """One collapse for each aspect ratio."""
    return [collapse(parameters, aspect) for aspect in parameters["aspect_ratios"]]


def published(aspect):
    """The run-out over the width."""
    return np.where(aspect <= 2, 2.5 * aspect, 3.25 * aspect**0.7)


def check(outcome, parameters):
    """Against the published law; and the exponent of tall columns."""
    ratio, runout = (np.array([run[key] for run in outcome]) for key in ("aspect_ratio", "runout"))
    tall = ratio > 2
    exponent = float(np.polyfit(np.log(ratio[tall]), np.log(runout[tall]), 1)[0]) if tall.sum() > 1 else None
    few = parameters["grains"] ** -0.5  # the front is thin: a column of few grains runs out less
    width = 0.1 + 7 * few
    rows = [
        Row(f"run-out over width at a = {a:.2f}, within {width:.0%}", round(float(published(a)), 2), float(r),
            bool(abs(r / published(a) - 1) <= width), "published")
        for a, r in zip(ratio, runout, strict=True)
    ]  # fmt: skip
    if exponent is not None:
        rows.append(
            Row(
                f"exponent of tall columns, within {0.1 + 4 * few:.2f}",
                0.7,
                exponent,
                abs(exponent - 0.7) <= 0.1 + 4 * few,
                "published",
            )
        )
    results = {"aspect_ratio": ratio.tolist(), "runout": runout.tolist(), "exponent": exponent}
    return Verdict(results | {"grains": parameters["grains"], "seeds": 1}, rows)


def figure(outcome, parameters):
    """Run-out over the law, and the last heap."""
    from contactdynamics.plotting import plot_scene

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 1.4))
    a = np.geomspace(0.3, max(10, max(run["aspect_ratio"] for run in outcome)), 100)
    axes[0].loglog(a, published(a), "k--", label="Staron and Hinch 2005")
    axes[0].loglog([run["aspect_ratio"] for run in outcome], [run["runout"] for run in outcome], "o", label="computed")
    axes[0].set(xlabel="aspect ratio a", ylabel="run-out over width")
    axes[0].legend(frameon=False)
    frame = outcome[-1]["frame"]
    plot_scene(frame, axes[1], forces=False)
    axes[1].set(xlim=(-2, frame.positions[:, 0].max() + 2), ylim=(-2, 1.2 * frame.positions[:, 1].max() + 4))
    return figure
