"""Discharge of a silo: the rate against the opening.

Beverloo's law: the number of grains that leave per second is C (D - k d)^(3/2) in the plane and C (D - k d)^(5/2) in
space, with k of 1 to 3, and does not depend on the height of the filling. Disks or spheres, flat bottom, opening D in
the middle, round in space.
"""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics import packings
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "Beverloo 1961: flow rate of a silo against its opening"
PARAMETERS = Options(
    dimension=Option(2, "2: disks, 3: spheres, with others of what is not set of grains, openings and width",
                     least=2, most=3),
    grains=Option(1500, "in the silo at the start", least=100, most=100_000),
    openings=Option([5.0, 7.0, 9.0, 12.0], "width of the opening over the mean diameter", "1", least=3, most=100),
    width=Option(36.0, "of the silo over the mean diameter", "1", least=10, most=1000),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=10),
    seed=Option(1, "of the grains", least=0, most=10**9),
    tolerance=Option(3e-3, "to which steps are solved", "1", least=1e-8, most=1e-1),
    step=Option(0.02, "time step over sqrt(d / g)", "1", least=1e-4, most=0.1),
)  # fmt: skip
QUICK = {"grains": 260, "openings": [5.5, 7.0, 9.0], "width": 18.0, "step": 0.05, "tolerance": 1e-2}
# What the plane has, and what space has in its place. An opening of less than five grains gets stuck there, too.
IN_SPACE = {
    "grains": [(1500, 4000), (260, 1200)],
    "openings": [([5.0, 7.0, 9.0, 12.0], [5.5, 6.5, 7.5, 8.5]), ([5.5, 7.0, 9.0], [5.0, 6.0, 7.0])],
    "width": [(36.0, 16.0), (18.0, 11.0)],
}
BEAD = {2: 0.1, 3: 0.2}  # radius of the fixed grains of the bottom
PARTS = 5  # of a discharge, by which the error of its rate is known
ROOM = {2: 2.4, 3: 3.0}  # area or volume for each grain that falls, over d^2 or d^3


def settled(parameters) -> dict:
    """The parameters, with those of a silo in space where the plane's were not changed."""
    if parameters["dimension"] == 2:
        return parameters
    return parameters | {key: new for key, pairs in IN_SPACE.items() for old, new in pairs if parameters[key] == old}


def bottom(dimension, half, opening) -> np.ndarray:
    """(k, d) places of the fixed grains about the opening: a row to either side, or rings to the corners of the box."""
    bead = BEAD[dimension]
    if dimension == 2:
        return np.array(
            [(s * x, -bead) for s in (-1, 1) for x in np.arange(0.5 * opening + bead, half + 0.2, 2 * bead)]
        )
    places = []
    for radius in np.arange(0.5 * opening + bead, math.sqrt(2) * (half + bead), 2 * bead):
        angle = np.linspace(0, 2 * math.pi, math.ceil(math.pi * radius / bead), endpoint=False)
        ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        places.append(ring[np.abs(ring).max(axis=1) < half + 2 * bead])
    ring = np.concatenate(places)
    return np.column_stack([ring, np.full(len(ring), -bead)])


def discharge(parameters, opening):
    """Times at which grains leave, and the height of the filling then."""
    d, half, count = parameters["dimension"], 0.5 * parameters["width"], parameters["grains"]
    wall, up = (cd.HalfPlane, cd.Plane)[d - 2], np.eye(d)[-1]
    scene = cd.Scene(gravity=-up)
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=parameters["friction"])
    for across in np.concatenate([np.eye(d)[:-1], -np.eye(d)[:-1]]):
        scene.add(wall(normal=-across), material="grain", position=half * across, fixed=True)
    scene.add_many(BEAD[d], material="grain", position=bottom(d, half, opening), fixed=True)
    lid = scene.add(wall(normal=up), material="grain", fixed=True)
    low, high = np.full(d, -half), np.full(d, half)
    low[-1], high[-1] = 0.05, 0.05 + ROOM[d] * count / parameters["width"] ** (d - 1)
    packings.rain(scene, material="grain", sizes=(0.8, 1.2), count=count, low=low, high=high, seed=parameters["seed"])
    sim = cd.Simulation(scene, time_step=parameters["step"], tolerance=parameters["tolerance"], on_failure="ignore",
                        penetration="anticipate")  # fmt: skip
    sim.run(until=sim.time_step * round(12 / sim.time_step), progress=False)
    sim.remove(lid)
    outlet = packings.Outlet(position=-4.0 * up, normal=up)
    sim.before_step.append(outlet)
    start, rows, last = sim.time, [], 0
    most = 2.5 * count / (0.5 * max(0.5, opening - 1.5) ** power(parameters))
    with recorded(sim, until=start + most):
        while outlet.removed < 0.6 * count and sim.time - start < most:
            sim.step()
            if outlet.removed > last:
                rows.append((sim.time - start, outlet.removed))
                last = outlet.removed
    return np.array(rows if rows else [(0.0, 0)])


def power(parameters) -> float:
    """Of the opening in the law: a body falls freely from a height like the opening, through an area like its power."""
    return parameters["dimension"] - 0.5


def rate_of(rows, count, first, after):
    """Grains per time between two shares of the silo."""
    some = rows[(rows[:, 1] >= first * count) & (rows[:, 1] <= after * count)]
    return float(np.polyfit(some[:, 0], some[:, 1], 1)[0]) if len(some) > 3 else 0.0


def build(parameters):
    """One discharge for each opening."""
    parameters, out = settled(parameters), []
    for opening in parameters["openings"]:
        rows = discharge(parameters, opening)
        n = parameters["grains"]
        cuts = np.linspace(0.1, 0.55, PARTS + 1)
        parts = [rate_of(rows, n, first, after) for first, after in pairwise(cuts)]
        out.append({"opening": opening, "rows": rows, "rate": rate_of(rows, n, 0.1, 0.55),
                    "error": float(np.std(parts, ddof=1) / math.sqrt(PARTS)),
                    "early": rate_of(rows, n, 0.1, 0.3), "late": rate_of(rows, n, 0.3, 0.55)})  # fmt: skip
    return out


def beverloo(opening, rate, power):
    """k and C of C (D - k)^power, by least squares in rate^(1/power), which is linear; and the exponent of D - 1.4."""
    slope, shift = np.polyfit(opening, rate ** (1 / power), 1)
    exponent = float(np.polyfit(np.log(opening - 1.4), np.log(rate), 1)[0])
    return float(-shift / slope), float(slope**power), exponent


def errors(opening, rate, error, power):
    """Standard errors of k and of the exponent from those of the rates."""
    found = [beverloo(opening, rate, power)]
    found += [beverloo(opening, rate + np.where(np.arange(len(rate)) == i, error, 0.0), power)
              for i in range(len(rate))]  # fmt: skip
    k, _, exponent = np.array(found).T
    return float(np.linalg.norm(k[1:] - k[0])), float(np.linalg.norm(exponent[1:] - exponent[0]))


def memory_of_height(flows) -> tuple[float, float]:
    """Late over early rate, and its error: the mean over openings, each by the scatter of the parts of its discharge.

    A small opening that gets stuck for a while says little. Of the parts two are early and three late.
    """
    flows = [run for run in flows if run["early"] > 0]
    ratio = np.array([run["late"] / run["early"] for run in flows])
    error = np.array([run["error"] / run["rate"] for run in flows]) * math.sqrt(PARTS * (1 / 2 + 1 / 3))
    weight = 1.0 / np.maximum(error, 1e-3) ** 2
    return float(weight @ ratio / weight.sum()), float(weight.sum() ** -0.5)


def check(outcome, parameters):
    """The law, within twice the errors that the parts of each discharge show, and no memory of the height."""
    flows = [run for run in outcome if run["rate"] > 0]
    if len(flows) < 3:
        stuck = Row("openings that flow, 3 or more", 3, len(flows), False, "own reference")
        return Verdict({"opening": [run["opening"] for run in outcome], "rate": [run["rate"] for run in outcome],
                        "exponent": None, "k": None}, [stuck])  # fmt: skip
    opening, rate, spread = (np.array([run[key] for run in flows]) for key in ("opening", "rate", "error"))
    p = power(parameters)
    k, scale, exponent = beverloo(opening, rate, p)
    k_error, exponent_error = errors(opening, rate, spread, p)
    wide, loose, off = 0.15 + 2 * exponent_error, 2 * k_error, 0.06 + 2 * float((spread / rate).max())
    error = float(np.abs(scale * (opening - k) ** p / rate - 1).max())
    change, change_error = memory_of_height(flows)
    rows = [
        Row(f"exponent of D - 1.4 d, within {wide:.2f}", p, exponent, abs(exponent - p) <= wide, "published"),
        Row(f"k, between 0.5 and 3, each within {loose:.2f}", 1.4, k, 0.5 - loose <= k <= 3 + loose, "published"),
        Row(f"largest deviation from the law, within {off:.2f}", 0.0, error, error <= off, "published"),
        Row(f"rate at half the height over that before, within {0.1 + 2 * change_error:.2f}", 1.0, change,
            abs(change - 1) <= 0.1 + 2 * change_error, "published"),
    ]  # fmt: skip
    results = {"opening": opening.tolist(), "rate": rate.tolist(), "exponent": exponent, "k": k, "scale": scale,
               "exponent_error": exponent_error, "k_error": k_error, "rate_error": spread.tolist(),
               "late_over_early": change, "grains": settled(parameters)["grains"], "seeds": 1,
               "late_over_early_error": change_error}  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Rates over the law, and what has left over time."""
    flows = [run for run in outcome if run["rate"] > 0]
    opening, rate = (np.array([run[key] for run in flows]) for key in ("opening", "rate"))
    k, scale, _ = beverloo(opening, rate, power(parameters))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    line = np.linspace(max(k, 0), opening.max(), 100)
    axes[0].plot(opening, rate, "o", label="computed")
    axes[0].plot(line, scale * (line - k) ** power(parameters), "k--",
                 label=f"{scale:.2f} (D − {k:.2f} d)^{power(parameters):g}")  # fmt: skip
    axes[0].set(xlabel="opening D / d", ylabel="grains per sqrt(d / g)")
    axes[0].legend(frameon=False)
    for run in outcome:
        axes[1].plot(*run["rows"].T, label=f"D = {run['opening']:g} d")
    axes[1].set(xlabel="time / sqrt(d / g)", ylabel="grains that have left")
    axes[1].legend(frameon=False)
    return figure
