"""A masonry wall under a ground motion: recorded, from a two-column text file, or synthetic.

Masonry tools, base motion. A wall of blocks in running bond with an opening stands on a table that follows the record
(``--set record=FILE``: time in s and acceleration in m/s², two columns). How hard it may be shaken before anything
moves is found first, by statics with an inclined weight (linear programme); scaled to four fifths of that, the record
must leave the wall as it is.
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.plotting import plot_scene
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import loads, packings
from contactdynamics.scenes.loads import Drive
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.polygons import Rectangle

FIGURE = "masonry tools; no figure in the papers"
PARAMETERS = Options(
    record=Option("", "file of two columns, time (s) and acceleration (m/s²); synthetic where there is none"),
    scale=Option(1.0, "factor of the accelerations of a record", "1", least=-1e3, most=1e3),
    peak=Option(1.2, "largest acceleration of the synthetic motion, over gravity", "1", above=0, most=100),
    duration=Option(4.0, "time of the synthetic motion", "s", least=0.1, most=1000),
    length=Option(3.2, "length of the wall", "m", least=0.01, most=1e3),
    courses=Option(9, "courses of blocks", least=1, most=1000),
    block_width=Option(0.4, "width of a block", "m", least=0.01, most=100),
    block_height=Option(0.2, "height of a block", "m", least=0.01, most=100),
    opening=Option([1.0, 0.4, 2.2, 1.2], "left, bottom, right, top of the opening; none where empty", "m",
                   least=-1e3, most=1e3, numbers=(0, 4)),
    friction=Option(0.5, "friction coefficient", "1", least=0, most=100),
    step=Option(1e-3, "time step", "s", least=1e-6, most=0.02),
    tolerance=Option(1e-8, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    seed=Option(1, "seed of the random numbers of the synthetic motion", least=0),
)  # fmt: skip
QUICK = {"duration": 1.2, "courses": 6, "opening": [1.0, 0.2, 1.8, 0.8], "step": 2e-3}

GRAVITY = 9.81


class Shaken(NamedTuple):
    """A wall that was shaken."""

    frames: list  # evenly over the motion
    times: np.ndarray  # (K,)
    apart: np.ndarray  # (K, N) distance of each block from its place on the table, m
    ground: np.ndarray  # (K,) displacement of the table, m
    energy: object


def synthetic(parameters):
    """Times and accelerations: forty sines between 0.8 and 8 Hz with random phases, under an envelope."""
    rng, until = np.random.default_rng(parameters["seed"]), parameters["duration"]
    times = np.arange(0.0, until + 0.005, 0.005)
    frequency = np.geomspace(0.8, 8.0, 40)
    phases = 2 * math.pi * rng.random(40)
    waves = np.sin(2 * math.pi * frequency * times[:, None] + phases).sum(axis=1)
    waves *= np.minimum(1.0, times / (0.2 * until)) * np.exp(-np.maximum(0.0, times / until - 0.6) * 6)
    return times, parameters["peak"] * GRAVITY * waves / np.abs(waves).max()


def motion(parameters):
    """Times and accelerations of the ground."""
    if not parameters["record"]:
        return synthetic(parameters)
    times, values = loads.read_table(parameters["record"])
    return times - times[0], parameters["scale"] * values


def wall(parameters, times, accelerations):
    """The scene of the wall on its table, the blocks' numbers."""
    p = parameters
    scene = Scene(gravity=(0.0, -GRAVITY))
    scene.material("stone", density=1800.0)
    scene.contact("stone", "stone", friction=p["friction"])
    table = Rectangle(2 * p["length"], p["block_height"])
    ground = Drive(velocity=loads.shaking(times, accelerations))
    scene.add(table, material="stone", position=(0.5 * p["length"], -0.5 * p["block_height"]), motion=ground)
    blocks = packings.wall(scene, material="stone", length=p["length"], courses=p["courses"],
                           block=(p["block_width"], p["block_height"]),
                           openings=[p["opening"]] if len(p["opening"]) else [])  # fmt: skip
    return scene, blocks


def build(parameters):
    """The ground motion, what statics says of the wall, and the wall shaken as asked and gently."""
    p = parameters
    times, values = motion(p)
    scene, _ = wall(p, times, values)
    sim = Simulation(scene, time_step=p["step"])
    answer = sim.is_equilibrium(tolerance=1e-8, limit=1e-4)
    frame = sim.frame()._replace(contacts=answer.contacts)
    threshold = least_acceleration(frame)
    peak = float(np.abs(values).max())
    gentle = 0.8 * threshold * GRAVITY / peak if peak > 0 else 0.0
    return {
        "record": (times, values),
        "stands": bool(answer),
        "threshold": threshold,
        "shaken": shake(p, times, values, "run"),
        "gentle": shake(p, times, min(1.0, gentle) * values, "run-gentle"),
    }


def least_acceleration(frame, friction=None) -> float:
    """The horizontal acceleration, over gravity, up to which forces can carry the wall along in both directions."""

    def carried(share):
        sides = (np.array([share, -1.0]), np.array([-share, -1.0]))
        return all(analysis.balance(frame._replace(gravity=GRAVITY * side), friction) for side in sides)

    low, high = 0.0, 2.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if carried(middle) else (low, middle)
    return low


def shake(p, times, values, name="run") -> Shaken:
    """The wall under a ground motion: frames, how far blocks are apart, and energies."""
    scene, blocks = wall(p, times, values)
    sim = Simulation(scene, time_step=p["step"], tolerance=p["tolerance"], on_failure="ignore")
    count = round(times[-1] / p["step"])
    keep = set(np.linspace(0, count, 4).astype(int))
    start, table = sim.positions[blocks], sim.body(0).position
    frames, apart, ground = [], [], []
    with recorded(sim, until=times[-1], name=name):
        for k in range(count + 1):
            moved = sim.positions
            ground.append(moved[0, 0] - table[0])
            apart.append(np.linalg.norm(moved[blocks] - start - (moved[0] - table), axis=1))
            if k in keep:
                frames.append(sim.frame())
            sim.step()
    return Shaken(frames, p["step"] * np.arange(count + 1), np.array(apart), np.array(ground), sim.energy)


def check(outcome, parameters):
    """That the wall stands before, what 0.8 of the threshold leaves, the ledger, and what the record does."""
    p, (_, values) = parameters, outcome["record"]
    shaken, gentle = outcome["shaken"], outcome["gentle"]
    start, last = shaken.frames[0], shaken.frames[-1]
    fallen = start.positions[1:, 1] - last.positions[1:, 1] > 0.5 * p["block_height"]
    peak = float(np.abs(values).max()) / GRAVITY
    size = p["block_width"]
    moving = np.flatnonzero(shaken.apart.max(axis=1) > 1e-3 * size)
    e = shaken.energy
    results = {
        "blocks": shaken.apart.shape[1],
        "peak_ground_acceleration": peak,
        "peak_ground_displacement": float(np.abs(shaken.ground).max()),
        "threshold_acceleration": outcome["threshold"],
        "largest_displacement": float(shaken.apart.max()),
        "residual_displacement": float(shaken.apart[-1].max()),
        "blocks_moved": int((shaken.apart[-1] > 0.01 * size).sum()),
        "blocks_fallen": int(fallen.sum()),
        "first_motion": float(shaken.times[moving[0]]) if len(moving) else None,
        "gentle_displacement": float(gentle.apart[-1].max()),
        "energy_closure": e.closure / max(abs(e.drive_work), abs(e.force_work), 1e-300),
    }
    rows = [
        Row("stands before", "in equilibrium", outcome["stands"], outcome["stands"], "own reference"),
        Row("left by 0.8 of the threshold, over a block", "0", results["gentle_displacement"] / size,
            results["gentle_displacement"] < 1e-4 * size, "own reference"),
        Row("energy ledger, relative", "closed", results["energy_closure"], results["energy_closure"] < 1e-9,
            "identity"),
    ]  # fmt: skip
    if peak > outcome["threshold"] * 1.3:
        rows.insert(2, Row("moved by the record, over a block", "> 0.001", results["largest_displacement"] / size,
                           results["largest_displacement"] > 1e-3 * size, "own reference"))  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The wall at some instants, the ground motion, and how far blocks are from their places."""
    shaken = outcome["shaken"]
    figure = plt.figure(figsize=(12, 5.6), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(0.8, 1))
    for k, frame in enumerate(shaken.frames):
        ax = figure.add_subplot(grid[0, k])
        plot_scene(frame, ax, forces=False)
        centre = frame.body(0).position[0]
        half, top = 0.75 * parameters["length"], 1.25 * parameters["courses"] * parameters["block_height"]
        ax.set(xlim=(centre - half, centre + half), ylim=(-1.5 * parameters["block_height"], top), xlabel="", ylabel="",
               xticks=[], yticks=[])  # fmt: skip
        ax.set_title(f"t = {frame.time:.2f} s", fontsize=9)
    left, right = figure.add_subplot(grid[1, :2]), figure.add_subplot(grid[1, 2:])
    times, values = outcome["record"]
    left.plot(times, values / GRAVITY, "k-", lw=0.8)
    for sign in (-1, 1):
        left.axhline(sign * outcome["threshold"], color="C3", ls="--", lw=1)
    left.set(xlabel="t, s", ylabel="ground acceleration / g", title="dashed: forces can carry the wall along below")
    cm = 100 * shaken.apart
    right.plot(shaken.times, cm.max(axis=1), "C0-", lw=1, label="farthest block")
    right.plot(shaken.times, np.median(cm, axis=1), "C1-", lw=1, label="median block")
    right.plot(shaken.times, 100 * np.abs(shaken.ground), "k:", lw=0.8, label="table, from its start")
    right.set(xlabel="t, s", ylabel="cm", ylim=(0, None), title="distance from the place on the table")
    right.legend(frameon=False, fontsize=8)
    return figure
