"""Long runs: a packing at rest for a million steps, a shaken box, an elastic gas of a million collisions.

What a step leaves is small; here it has time to add up. The packing must neither creep nor gain energy nor take memory,
the box must lose no grain, and the gas must keep its energy. Everything is at the default tolerance but the gas, whose
energy is what is asked.
"""

import math
import os
import resource

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.state import FREE

FIGURE = "own: what adds up in long runs"
PARAMETERS = Options(
    rest_steps=Option(1_000_000, "steps of the packing at rest", least=1000, most=10**8),
    shaken_steps=Option(100_000, "steps of the shaken box", least=1000, most=10**8),
    collisions=Option(1_000_000, "of the gas", least=100, most=10**9),
    grains=Option(30, "of the packing and of the box; the gas has four times as many", least=5, most=1000),
    time_step=Option(1e-3, "length of a step", "s", least=1e-5, most=2e-3),
    samples=Option(200, "points of each curve", least=10, most=10_000),
    seed=Option(1, "of sizes and velocities", least=0),
)
QUICK = {"rest_steps": 4000, "shaken_steps": 2000, "collisions": 2000, "samples": 20}
G, R = 9.81, 0.01
SETTLED = 4000  # steps until the packing lies


def memory() -> float:
    """Memory of this process now, MB; where the system does not say, the most it ever had."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def box(scene, low, high, **options):
    """Six planes, or four lines, around the place from ``low`` to ``high``."""
    wall = cd.HalfPlane if scene.dimension == 2 else cd.Plane
    for c in range(scene.dimension):
        for place, sign in ((low, 1.0), (high, -1.0)):
            normal = np.zeros(scene.dimension)
            normal[c] = sign
            scene.add(wall(normal), material="m", position=place, **({"fixed": True} | options))


def scene_of(dimension, gravity=G, **law):
    """A scene of one material."""
    scene = cd.Scene(gravity=(*[0.0] * (dimension - 1), -gravity))
    scene.material("m", density=2500)
    scene.contact("m", "m", **law)
    return scene


def places(count, dimension, columns, spacing):
    """(count, d) places on a lattice of ``columns`` in each horizontal direction, layer upon layer."""
    index = np.arange(count)
    across = [index // columns**c % columns for c in range(dimension - 1)]
    return (np.stack([*across, index // columns ** (dimension - 1)], axis=1) + 0.5) * spacing


def at_rest(p):
    """Disks and polygons in a box: how far they go, energy and memory, from when they lie."""
    rng = np.random.default_rng(p["seed"])
    scene = scene_of(2, friction=0.4)
    columns = max(3, round(math.sqrt(p["grains"])))
    box(scene, (0, 0), (2.1 * R * columns, 100.0))
    for k, place in enumerate(places(p["grains"], 2, columns, 2.1 * R)):
        size = rng.uniform(0.7, 1.0) * R
        shape = cd.Disk(size) if k % 2 else cd.Polygon.regular(4 + k % 3, size)
        scene.add(shape, material="m", position=place, rotation=rng.uniform(0, math.pi))
    sim = cd.Simulation(scene, time_step=p["time_step"], penetration="anticipate")
    for _ in range(SETTLED):
        sim.step()
    start, potential, curve = sim.positions.copy(), sim.energy.potential, []
    first_failure = sim.failures
    weight = sim.bodies.mass[sim.bodies.kind == FREE].sum() * G
    every = max(1, p["rest_steps"] // p["samples"])
    for k in range(p["rest_steps"] + 1):
        if k % every == 0:
            e, way = sim.energy, np.linalg.norm(sim.positions - start, axis=1).max() / R
            curve.append((k, way, e.kinetic / (weight * R), (e.potential - potential) / (weight * R),
                          sim.report.relative_penetration, memory()))  # fmt: skip
        if k < p["rest_steps"]:
            sim.step()
    return {"curve": np.array(curve), "created": sim.energy.created, "unsolved": sim.failures - first_failure}


def shaken(p):
    """Spheres in a closed box that shakes with three times gravity: grains outside, largest overlap."""
    scene = scene_of(3, friction=0.3, restitution=0.5)
    columns = max(2, round(p["grains"] ** (1 / 3)))
    side = 2.2 * R * columns
    layers = math.ceil(p["grains"] / columns**2)
    high = (side, side, 2 * 2.2 * R * layers)
    omega = 2 * math.pi * 20.0
    shaking = cd.loads.sine((0, 0, 3 * G / omega), 20.0)  # amplitude of the velocity
    box(scene, (0, 0, 0), high, fixed=False, motion=shaking)
    scene.add_many(np.full(p["grains"], R), material="m", position=places(p["grains"], 3, columns, 2.2 * R))
    sim = cd.Simulation(scene, time_step=p["time_step"], penetration="anticipate")
    free, curve = sim.bodies.kind == FREE, []
    every = max(1, p["shaken_steps"] // p["samples"])
    for k in range(1, p["shaken_steps"] + 1):
        sim.step()
        if k % every == 0:
            below, above = sim.positions[0], sim.positions[5]  # the first plane, and the last one
            grains = sim.positions[free]
            inside = ((grains > below) & (grains < np.array([high[0], high[1], above[2]]))).all(axis=1)
            curve.append((k, np.count_nonzero(~inside), sim.watch.overlap, memory()))
    return {"curve": np.array(curve), "created": sim.energy.created, "unsolved": sim.failures,
            "grains": int(free.sum())}  # fmt: skip


def gas(p):
    """Disks that collide without loss: energy against the count of collisions."""
    many, rng = 4 * p["grains"], np.random.default_rng(p["seed"] + 1)
    scene = scene_of(2, gravity=0.0, friction=0.0, restitution=1.0)
    columns = math.ceil(math.sqrt(many))
    box(scene, (0, 0), (3 * R * columns, 3 * R * columns))
    scene.add_many(np.full(many, R), material="m", position=places(many, 2, columns, 3 * R),
                   velocity=0.2 * rng.normal(size=(many, 2)))  # fmt: skip
    sim = cd.Simulation(scene, time_step=p["time_step"], tolerance=1e-10)
    first, count, curve = sim.energy.kinetic, 0, []
    every, due = max(1, p["collisions"] // p["samples"]), 0
    while True:
        if count >= due:
            curve.append((count, sim.energy.kinetic / first - 1.0, sim.watch.overlap, memory()))
            due += every
        if count >= p["collisions"]:
            return {"curve": np.array(curve), "unsolved": sim.failures, "steps": sim.steps}
        sim.step()
        count += int(np.count_nonzero(sim.contacts.impulse[:, 0]))


def build(parameters):
    """The three runs, one after the other."""
    return {"rest": at_rest(parameters), "shaken": shaken(parameters), "gas": gas(parameters)}


def grown(memories) -> float:
    """Growth of memory after the first tenth of a run but for its largest jump, MB.

    A kernel that is first needed late is compiled then, once; what grows does so again and again.
    """
    steps = np.diff(memories[len(memories) // 10 :])
    return float(steps.sum() - max(0.0, steps.max()))


def check(outcome, parameters):
    """Nothing creeps, grows or is lost."""
    rest, box_, gas_ = outcome["rest"]["curve"], outcome["shaken"]["curve"], outcome["gas"]["curve"]
    half = len(rest) // 2
    late = float(rest[-1, 1] - rest[half, 1])
    drift = float(np.abs(rest[:, 3]).max())
    kept = float(np.abs(gas_[:, 1]).max())
    results = {
        "rest_steps": int(rest[-1, 0]), "creep_radii": float(rest[:, 1].max()), "creep_second_half_radii": late,
        "potential_drift": drift, "kinetic": float(rest[:, 2].max()), "rest_overlap": float(rest[:, 4].max()),
        "rest_memory_MB": grown(rest[:, 5]), "rest_created": outcome["rest"]["created"],
        "rest_unsolved": outcome["rest"]["unsolved"],
        "shaken_steps": int(box_[-1, 0]), "grains": outcome["shaken"]["grains"], "lost": int(box_[:, 1].max()),
        "shaken_overlap": float(box_[-1, 2]), "shaken_memory_MB": grown(box_[:, 3]),
        "shaken_unsolved": outcome["shaken"]["unsolved"],
        "collisions": int(gas_[-1, 0]), "gas_steps": outcome["gas"]["steps"], "gas_energy": kept,
        "gas_memory_MB": grown(gas_[:, 3]), "gas_unsolved": outcome["gas"]["unsolved"],
    }  # fmt: skip
    rows = [
        Row("way of a grain at rest, radii", 0.0, results["creep_radii"], results["creep_radii"] <= 1e-2, "identity"),
        Row("of it in the second half", 0.0, late, abs(late) <= 1e-3, "identity"),
        Row("potential energy, weight x radius", 0.0, drift, drift <= 1e-3, "identity"),
        Row("energy created at rest, J", 0.0, results["rest_created"], results["rest_created"] <= 1e-9, "identity"),
        Row("memory at rest, MB", 0.0, results["rest_memory_MB"], results["rest_memory_MB"] <= 5.0, "identity"),
        Row("grains lost by the shaken box", 0, results["lost"], results["lost"] == 0, "identity"),
        Row("memory of the shaken box, MB", 0.0, results["shaken_memory_MB"], results["shaken_memory_MB"] <= 5.0,
            "identity"),
        Row("energy of the gas, relative", 0.0, kept, kept <= 1e-6, "identity"),
        Row("memory of the gas, MB", 0.0, results["gas_memory_MB"], results["gas_memory_MB"] <= 5.0, "identity"),
    ]  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Way and energies at rest, overlaps of the shaken box, energy of the gas, memory of all."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    rest, box_, gas_ = (outcome[name]["curve"] for name in ("rest", "shaken", "gas"))
    ax = axes[0, 0]
    ax.plot(rest[:, 0], rest[:, 1], label="largest way, radii")
    ax.plot(rest[:, 0], rest[:, 3], "--", label="potential energy, weight × radius")
    ax.set(xlabel="steps", title="packing at rest")
    ax.legend(frameon=False)
    ax = axes[0, 1]
    ax.plot(box_[:, 0], box_[:, 2], label="largest overlap so far, radii")
    ax.plot(box_[:, 0], box_[:, 1], "--", label="grains outside")
    ax.set(xlabel="steps", title="shaken box")
    ax.legend(frameon=False)
    ax = axes[1, 0]
    ax.plot(gas_[:, 0], gas_[:, 1])
    ax.set(xlabel="collisions", title="elastic gas: change of energy, relative")
    ax = axes[1, 1]
    for curve, name in ((rest, "at rest"), (box_, "shaken box"), (gas_, "gas")):
        ax.plot(np.linspace(0, 1, len(curve)), curve[:, -1] - curve[len(curve) // 10, -1], label=name)
    ax.set(xlabel="share of the run", title="memory beyond that after a tenth, MB")
    ax.legend(frameon=False)
    return figure
