"""Four walls with openings under a ground motion in three components, recorded or synthetic.

A house without mortar and without a roof, its walls bonded at the corners, stands on a table that follows the record
(``--set record=FILE``: time in s and three accelerations in m/s², four columns). Limit analysis says from which
horizontal acceleration on no forces can carry it along; a motion well below leaves it as it is. Then drifts of all
blocks, peak and residual, openings and slips of the joints, and a picture of the damage.
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
from contactdynamics.scenes.shapes.polyhedra import Box

FIGURE = "masonry tools; no figure in the papers"
PARAMETERS = Options(
    record=Option("", "file of four columns, time (s) and accelerations x, y, z (m/s²); synthetic where there is none"),
    scale=Option(1.0, "factor of the accelerations of a record", "1", least=-1e3, most=1e3),
    peak=Option(0.9, "largest horizontal acceleration of the synthetic motion, over gravity", "1", above=0, most=100),
    vertical=Option(0.5, "vertical over horizontal acceleration of the synthetic motion", "1", least=0, most=2),
    duration=Option(3.0, "time of the synthetic motion", "s", least=0.1, most=1000),
    size=Option([4.0, 3.2], "outer length along x and y", "m", least=0.5, most=1e3, numbers=(2,)),
    courses=Option(9, "courses of blocks", least=4, most=200),
    block=Option([0.4, 0.2], "length and height of a block; walls are half a length thick", "m", least=0.01, most=100,
                 numbers=(2,)),
    friction=Option(0.6, "friction coefficient", "1", least=0.05, most=100),
    step=Option(2e-3, "time step", "s", least=1e-6, most=0.02),
    tolerance=Option(1e-4, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    rest=Option(0.5, "time after the motion, in which what was thrown comes to rest", "s", least=0, most=100),
    seed=Option(1, "seed of the random numbers of the synthetic motion", least=0),
)  # fmt: skip
QUICK = {"duration": 0.6, "rest": 0.1, "size": [2.4, 2.0], "courses": 4, "step": 4e-3}

GRAVITY = 9.81
GENTLE = 0.6  # of the threshold: by so much the motion is scaled down that leaves the house as it is


class Shaken(NamedTuple):
    """A house that was shaken."""

    frames: list  # at the start, when it was farthest from its place, and at the end
    times: np.ndarray  # (K,)
    drift: np.ndarray  # (K, N) distance of each block from its place on the table, m
    ground: np.ndarray  # (K, 3) displacement of the table, m
    energy: object


def synthetic(p):
    """Times and accelerations (k, 3): forty sines between 0.8 and 8 Hz with random phases, under an envelope."""
    random, until = np.random.default_rng(p["seed"]), p["duration"]
    times = np.arange(0.0, until + 0.005, 0.005)
    frequency = np.geomspace(0.8, 8.0, 40)
    phases = 2 * math.pi * random.random((3, 40))
    waves = np.sin(2 * math.pi * frequency * times[:, None, None] + phases).sum(axis=2)
    waves *= (np.minimum(1.0, times / (0.2 * until)) * np.exp(-np.maximum(0.0, times / until - 0.6) * 6))[:, None]
    level = np.linalg.norm(waves[:, :2], axis=1).max()
    waves[:, :2] *= p["peak"] * GRAVITY / level
    waves[:, 2] *= p["vertical"] * p["peak"] * GRAVITY / np.abs(waves[:, 2]).max()
    return times, waves


def motion(p):
    """Times and accelerations (k, 3) of the ground."""
    if not p["record"]:
        return synthetic(p)
    times, values = loads.read_table(p["record"], 3)
    return times - times[0], p["scale"] * values


def openings(p) -> dict:
    """A door in front, windows behind and on the left, in whole courses, where the walls have room."""
    (long, deep), (width, height), courses = p["size"], p["block"], p["courses"]
    sill, top, door = courses // 3, max(courses // 3 + 1, courses - 2), max(1, courses - 2)
    keep = width  # a thickness and a bearing
    found = {}
    for side, wall, bottom, above in (("front", long, 0, door), ("back", long, sill, top), ("left", deep, sill, top)):
        half = min(0.125 * wall, 0.5 * wall - keep - 0.25 * width)
        if half > 0.4 * width:
            found[side] = [(0.5 * wall - half, bottom * height, 0.5 * wall + half, above * height)]
    return found


def house(p, times, accelerations):
    """The scene of the house on its table, and the blocks' numbers."""
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.material("stone", density=1800.0)
    scene.contact("stone", "stone", friction=p["friction"])
    (long, deep), height = p["size"], p["block"][1]
    around = 4 * p["courses"] * height  # blocks that fall stay on the table
    table = Box((long + around, deep + around, height))
    ground = Drive(velocity=loads.shaking(times, accelerations))
    scene.add(table, material="stone", position=(0.5 * long, 0.5 * deep, -0.5 * height), motion=ground)
    blocks = packings.house(scene, material="stone", size=p["size"], courses=p["courses"], block=p["block"],
                            openings=openings(p))  # fmt: skip
    return scene, blocks


def build(parameters):
    """The ground motion, what statics says of the house, and the house shaken as asked and gently."""
    p = parameters
    times, values = motion(p)
    scene, _ = house(p, times, 0.0 * values)
    sim = Simulation(scene, time_step=p["step"])
    frame = sim.frame()._replace(contacts=sim.is_equilibrium(tolerance=1.0, max_iterations=1).contacts)
    stands = bool(analysis.balance(frame))
    threshold = min(analysis.load_factor(frame, way).factor for way in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)))
    size = float(np.linalg.norm(values, axis=1).max())
    gentle = min(1.0, GENTLE * threshold * GRAVITY / size) if size > 0 and stands else 0.0
    return {
        "record": (times, values),
        "stands": stands,
        "threshold": threshold,
        "shaken": shake(p, times, values, "run"),
        "gentle": shake(p, times, gentle * values, "run-gentle"),
    }


def shake(p, times, values, name) -> Shaken:
    """The house under a ground motion."""
    scene, blocks = house(p, times, values)
    sim = Simulation(scene, time_step=p["step"], tolerance=p["tolerance"], on_failure="ignore",
                     penetration="anticipate")  # fmt: skip
    until = times[-1] + p["rest"]
    count = round(until / p["step"])
    start, table = sim.positions[blocks], sim.body(0).position
    first, drift, ground, worst, far = None, [], [], None, -1.0
    with recorded(sim, until=until, name=name):
        for k in range(count + 1):
            sim.step()
            moved = sim.positions
            first = sim.frame() if k == 0 else first
            ground.append(moved[0] - table)
            drift.append(np.linalg.norm(moved[blocks] - start - ground[-1], axis=1))
            if drift[-1].max() > 1.2 * far:
                worst, far = sim.frame(), float(drift[-1].max())
    return Shaken([first, worst, sim.frame()], p["step"] * np.arange(1, count + 2), np.array(drift), np.array(ground),
                  sim.energy)  # fmt: skip


def check(outcome, parameters):
    """Drifts, openings and damage of the house shaken as asked; shaken gently it stays."""
    p, (_, values) = parameters, outcome["record"]
    shaken, gentle = outcome["shaken"], outcome["gentle"]
    start, last = shaken.frames[0], shaken.frames[-1]
    joints = analysis.joint_openings(start, last)
    sunk = (start.positions - last.positions)[1:, 2] + (last.positions - start.positions)[0, 2]
    size, height = p["block"]
    moving = np.flatnonzero(shaken.drift.max(axis=1) > 1e-2 * size)
    horizontal = float(np.linalg.norm(values[:, :2], axis=1).max()) / GRAVITY
    e = shaken.energy
    results = {
        "blocks": shaken.drift.shape[1],
        "peak_ground_acceleration": horizontal,
        "peak_vertical_acceleration": float(np.abs(values[:, 2]).max()) / GRAVITY,
        "peak_ground_displacement": float(np.linalg.norm(shaken.ground, axis=1).max()),
        "threshold_acceleration": outcome["threshold"],
        "peak_drift": float(shaken.drift.max()),
        "residual_drift": float(shaken.drift[-1].max()),
        "median_residual_drift": float(np.median(shaken.drift[-1])),
        "largest_opening": float(joints.opening.max()),
        "largest_slip": float(joints.slip.max()),
        "joints_opened": int((joints.opening > 1e-2 * height).sum()),
        "joints": len(joints.opening),
        "blocks_moved": int((shaken.drift[-1] > 0.01 * size).sum()),
        "blocks_fallen": int((sunk > 0.5 * height).sum()),
        "first_motion": float(shaken.times[moving[0]]) if len(moving) else None,
        "gentle_drift": float(gentle.drift[-1].max()),
        "energy_closure": e.closure / max(abs(e.drive_work), abs(e.force_work), 1e-300),
    }
    rows = [
        Row("stands before", "in equilibrium", outcome["stands"], outcome["stands"], "own reference"),
        Row(f"left by {GENTLE:g} of the threshold, over a block", "0", results["gentle_drift"] / size,
            results["gentle_drift"] < 1e-3 * size, "own reference"),
        Row("energy ledger, relative", "closed", results["energy_closure"], results["energy_closure"] < 1e-9,
            "identity"),
    ]  # fmt: skip
    if horizontal > 1.3 * outcome["threshold"]:
        rows.insert(2, Row("moved by the record, over a block", "> 0.001", results["peak_drift"] / size,
                           results["peak_drift"] > 1e-3 * size, "own reference"))  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The damage: blocks coloured by what is left of their drift; the motion; drifts over time; joints."""
    shaken, (times, values) = outcome["shaken"], outcome["record"]
    figure = plt.figure(figsize=(13, 7), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1.3, 1))
    last, left = shaken.frames[-1], 100 * shaken.drift[-1]
    for column, azimuth in enumerate((-60.0, 120.0)):
        ax = figure.add_subplot(grid[0, column])
        colours = np.append(np.nan, left)[: len(last.masses)]
        plot_scene(last, ax, forces=False, colours=np.nan_to_num(colours), azimuth=azimuth, elevation=22.0)
        ax.set_title(f"after {last.time:.1f} s, seen from {'the front' if column == 0 else 'behind'}", fontsize=9)
    shade = plt.cm.ScalarMappable(plt.Normalize(0.0, max(float(left.max()), 1e-9)), "viridis")
    figure.colorbar(shade, ax=ax, shrink=0.7, label="residual drift, cm")
    joints = analysis.joint_openings(shaken.frames[0], last)
    ax = figure.add_subplot(grid[0, 2])
    for name, what, style in (("opening", joints.opening, "C0-"), ("slip", joints.slip, "C1-")):
        ax.plot(np.sort(100 * what)[::-1], np.arange(1, len(what) + 1), style, label=name)
    ax.set(xlabel="cm", ylabel="joints with more", title="joints at the end", yscale="log")
    ax.legend(frameon=False, fontsize=8)
    ax = figure.add_subplot(grid[1, :2])
    for k, name in enumerate("xyz"):
        ax.plot(times, values[:, k] / GRAVITY, lw=0.8, label=name)
    for sign in (-1, 1):
        ax.axhline(sign * outcome["threshold"], color="0.5", ls="--", lw=1)
    ax.set(xlabel="t, s", ylabel="ground acceleration / g",
           title="dashed: forces can carry the house along below, horizontally")  # fmt: skip
    ax.legend(frameon=False, fontsize=8, ncols=3)
    ax = figure.add_subplot(grid[1, 2])
    ax.plot(shaken.times, 100 * shaken.drift.max(axis=1), "C0-", lw=1, label="farthest block")
    ax.plot(shaken.times, 100 * np.median(shaken.drift, axis=1), "C1-", lw=1, label="median block")
    ax.set(xlabel="t, s", ylabel="drift, cm", ylim=(0, None), title="distance from the place on the table")
    ax.legend(frameon=False, fontsize=8)
    return figure
