"""The largest tilt at which a wall of blocks still stands, out of its plane, in it, or as the front of a U.

A tilted table is a tilted gravity. Each trial holds the wall from rest at one angle: it stands if it comes to rest with
every block where it was set, to 1e-4 of its height; bisection finds the largest such angle. Then the same wall is
tilted slowly until it goes. Both beside limit analysis
(`analysis.load_factor`: the largest tan of the angle at which forces within the friction cones balance the weights).
Out of the plane joints only open, and the three agree. Where joints slide, limit analysis is associated, a joint that
slides would have to open, and its angle is an upper bound. Below it rest and motion may both solve the step from rest:
all contacts together (``solver="auto"``) find forces that hold the wall up to a sharp angle, sweeps that begin with no
forces (``solver="accelerated"``) let joints slip before.
"""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.plotting import plot_scene
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import loads, packings
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import Plane
from contactdynamics.scenes.shapes.polyhedra import Box

FIGURE = "none; tilting tables of masonry"
PARAMETERS = Options(
    direction=Option("out", 'where it is tilted: "out" of its plane, "in" it, or "u": a U whose front goes outwards'),
    courses=Option(8, "courses of blocks", least=2, most=60),
    length=Option(5, "length in blocks", least=2, most=60),
    ratio=Option(2.0, "length of a block over its height and depth", "1", least=1, most=6),
    friction=Option(0.6, "friction coefficient", "1", least=0.05, most=5),
    returns=Option(3, "length in blocks of the side walls of a U", least=2, most=30),
    accuracy=Option(0.01, "to which the angle is found", "degrees", least=1e-4, most=1),
    hold=Option(1.0, "time for which the wall is held at an angle", "s", least=0.2, most=20),
    moved=Option(1e-4, "a wall that stands moves less than this, over the height of a block", "1", above=0, most=1),
    solver=Option("auto", 'of the trials: "auto", or "accelerated" for sweeps alone, which begin with no forces'),
    slow=Option(2.0, "rate of the slow tilt", "degrees/s", least=0.01, most=20),
    step=Option(2e-3, "time step", "s", least=1e-5, most=5e-3),
)
QUICK = {"courses": 4, "length": 3, "hold": 0.5, "accuracy": 0.05, "slow": 8.0}

GRAVITY, BLOCK, DENSITY = 9.81, 0.5, 2000.0  # m/s^2; height and depth of a block, m; kg/m^3
DIRECTIONS = {"out": (0.0, 1.0, 0.0), "in": (1.0, 0.0, 0.0), "u": (0.0, -1.0, 0.0)}
GONE = 1e-4  # speed over that of a free fall: a wall that has it at the end of a trial does not stand


def layout(parameters) -> Scene:
    """The wall on its table, upright."""
    scene = Scene(gravity=(0, 0, -GRAVITY))
    scene.material("stone", density=DENSITY)
    scene.contact("stone", "stone", friction=parameters["friction"])
    scene.add(Plane((0, 0, 1)), material="stone", fixed=True)
    width = parameters["ratio"] * BLOCK
    if parameters["direction"] != "u":
        packings.wall(scene, material="stone", length=parameters["length"] * width, courses=parameters["courses"],
                      block=(width, BLOCK), depth=BLOCK)  # fmt: skip
        return scene
    front, sides = (parameters["length"] - 1) * width, parameters["returns"] * width
    for course in range(parameters["courses"]):
        for low, high in u_course(front, sides, width, course % 2 == 0):
            size = np.append(high - low, BLOCK)
            place = np.append(0.5 * (low + high), (course + 0.5) * BLOCK)
            scene.add(Box(size), material="stone", position=place)
    return scene


def u_course(front, sides, width, through):
    """Corners (low, high) in plan of the blocks of a course; the front goes ``through``, or the side walls do."""
    end = BLOCK  # the thickness of the walls
    x = (0.0, front) if through else (end, front - end)
    y = (end, sides) if through else (0.0, sides)
    found = [(np.array([a, 0.0]), np.array([b, end])) for a, b in _cut(*x, width)]
    for left in (0.0, front - end):
        found += [(np.array([left, a]), np.array([left + end, b])) for a, b in _cut(*y, width)]
    return found


def _cut(begin, end, width):
    """Blocks from ``begin`` on, the last one what is left."""
    count = max(1, round((end - begin) / width + 0.25))
    cuts = [begin + k * width for k in range(count)] + [end]
    return list(pairwise(cuts))


def tilted(direction, angle):
    """Gravity in the axes of a table that is tilted by ``angle`` (rad) towards ``direction``."""
    axis = np.cross(direction, (0, 0, -1.0))  # the table turns, gravity in its axes turns back
    return loads.tilting((0, 0, -GRAVITY), angle, axis=axis)


def held(parameters, degrees) -> tuple[float, float]:
    """The speed, over that of a free fall, of a wall that was held at an angle, and how far a block has moved (m)."""
    scene = layout(parameters)
    scene.gravity = tilted(DIRECTIONS[parameters["direction"]], math.radians(degrees))
    sim = Simulation(scene, time_step=parameters["step"], tolerance=1e-5, max_iterations=3000, on_failure="ignore",
                     solver=parameters["solver"])  # fmt: skip
    start, share, moved = sim.positions, 0.0, 0.0
    while sim.time < parameters["hold"] - 0.5 * sim.time_step:
        sim.step()
        share = float(np.abs(sim.velocities).max()) / (GRAVITY * parameters["hold"])
        moved = max(moved, float(np.abs(sim.positions - start).max()))
        if share > 100 * GONE and sim.time > 0.1:
            break
    return share, moved


def limit(parameters) -> analysis.limits.LoadFactor:
    """Limit analysis of the wall."""
    sim = Simulation(layout(parameters), time_step=parameters["step"])
    frame = sim.frame()._replace(contacts=sim.is_equilibrium(tolerance=1.0, max_iterations=1).contacts)
    return analysis.load_factor(frame, DIRECTIONS[parameters["direction"]])


def build(parameters):
    """The limit of statics, the largest tilt at which the wall stands, and the wall tilted slowly."""
    if parameters["direction"] not in DIRECTIONS:
        raise InputError(f"direction={parameters['direction']} is none; choose {', '.join(DIRECTIONS)}.")
    if parameters["direction"] == "u" and (parameters["length"] < 3 or parameters["ratio"] < 1.5):
        raise InputError(
            "A U needs length=3 or more, and ratio=1.5 or more, so that its corners are bonded; give these."
        )
    bound = limit(parameters)
    trials, low, high = [], 0.0, min(1.1 * bound.degrees, 89.0)
    while high - low > parameters["accuracy"]:
        middle = 0.5 * (low + high)
        share, moved = held(parameters, middle)
        stands = share <= GONE and moved <= parameters["moved"] * BLOCK
        trials.append((middle, moved / BLOCK, stands))
        low, high = (middle, high) if stands else (low, middle)
    return {"angle": 0.5 * (low + high), "limit": bound.degrees, "trials": trials, **tilt_slowly(parameters, high)}


def tilt_slowly(parameters, about) -> dict:
    """Tilt the wall at a constant rate from a little below; the angle at which it goes, and a frame later on."""
    scene, rate = layout(parameters), math.radians(parameters["slow"])
    begin = math.radians(0.7 * about)
    way = DIRECTIONS[parameters["direction"]]
    end = (math.radians(min(1.6 * about, 89.0)) - begin) / rate
    scene.gravity = tilted(way, loads.ramp(begin, begin + rate * end, begin=0.0, finish=end))
    sim = Simulation(scene, time_step=parameters["step"], tolerance=1e-4, max_iterations=1000, on_failure="ignore")
    start, gone, frame = sim.positions, None, None
    with recorded(sim, until=end):
        while sim.time < end:
            sim.step()
            moved = float(np.abs(sim.positions - start).max())
            if gone is None and moved > 0.01 * BLOCK:
                gone = math.degrees(begin + rate * sim.time)
            if moved > BLOCK:
                break
        frame = sim.frame()
    return {"slow": math.nan if gone is None else gone, "frame": frame, "tilt": math.degrees(begin + rate * sim.time)}


def check(outcome, parameters):
    """The angle against limit analysis, which is an upper bound where joints slide."""
    angle, bound, direction = outcome["angle"], outcome["limit"], parameters["direction"]
    results = {
        "angle_degrees": angle,
        "limit_degrees": bound,
        "slow_degrees": outcome["slow"],
        "share_of_limit": angle / bound,
        "blocks": int((outcome["frame"].kinds == 0).sum()),
    }
    late = 3 * parameters["slow"] * math.sqrt(parameters["courses"] * BLOCK / GRAVITY)  # it goes on while it falls
    rows = []
    if direction == "out":
        height, slide = parameters["courses"] * BLOCK, math.degrees(math.atan(parameters["friction"]))
        topple = math.degrees(math.atan(BLOCK / height))
        exact = min(topple, slide)
        rows += [
            Row("angle of limit analysis, degrees", exact, bound, abs(bound / exact - 1) < 2e-3, "closed form"),
            Row("angle at which it goes, degrees", bound, angle,
                abs(angle / bound - 1) < 0.005 + parameters["accuracy"] / bound, "own reference"),
        ]  # fmt: skip
    else:
        rows.append(Row("angle at which it goes, not above limit analysis, degrees", f"<= {bound:.2f}", angle,
                        0.7 * bound < angle <= bound * 1.005 + parameters["accuracy"], "own reference"))  # fmt: skip
    rows.append(Row("angle at which it goes when tilted slowly, degrees", angle, outcome["slow"],
                    -0.02 * bound <= outcome["slow"] - angle <= 0.02 * bound + late, "own reference"))  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The wall as it falls, and the trials."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", width_ratios=(1.5, 1))
    plot_scene(outcome["frame"], left, forces=False, azimuth=-50.0, elevation=18.0)
    left.set_title(f"tilted slowly, at {outcome['tilt']:.1f}° (drawn in the axes of the table)")
    angle, moved, stands = np.array(sorted(outcome["trials"])).T
    stands = stands > 0
    right.semilogy(angle[stands], np.maximum(moved[stands], 1e-12), "o", color="C2", label="stands")
    right.semilogy(angle[~stands], moved[~stands], "x", color="C3", label="slips or falls")
    right.axhline(parameters["moved"], color="0.6", lw=1, ls=":")
    right.axvline(outcome["limit"], color="k", lw=1, ls="--", label=f"limit analysis, {outcome['limit']:.2f}°")
    right.axvline(outcome["angle"], color="C0", lw=1, label=f"held, {outcome['angle']:.2f}°")
    right.set(xlabel="tilt, degrees", ylabel="farthest move in a trial, over the height of a block")
    right.set_title(f"{parameters['courses']} courses, friction {parameters['friction']:g}")
    right.legend(fontsize=8, framealpha=1.0)
    return figure
