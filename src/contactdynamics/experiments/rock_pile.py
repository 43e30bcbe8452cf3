"""Irregular polyhedra poured: a pile of rock is steeper than one of spheres with the same friction.

The experiment of the papers (1999, part IV), whose remark on grains with corners is followed: grains come one by one at
rest, as low as possible on a vertical near the axis. Two piles are poured alike on the same rough ground, of spheres
and of convex polyhedra with their corners on the same spheres. Slope, packing fraction, contacts of a grain; each is a
mean over several piles from different seeds, and its error follows from their scatter.
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.experiments import _pouring
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.plotting import plot_scene
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import packings
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import Plane
from contactdynamics.state import FREE

FIGURE = "1999, section IV.4 (no figure)"
PARAMETERS = Options(
    grains=Option(600, "grains poured", least=20, most=10_000_000),
    piles=Option(3, "piles of each kind, from as many seeds", least=1, most=1000),
    rate=Option(80.0, "grains per second", "1/s", least=1, most=1e6),
    friction=Option(0.5, "friction coefficient", "1", least=0, most=100),
    smallest=Option(0.02, "smallest diameter of the grains", "m", least=0.001, most=100),
    largest=Option(0.03, "largest diameter of the grains", "m", least=0.001, most=100),
    corners=Option([8, 14], "least and largest number of corners", least=4, most=100, numbers=(2,)),
    pour_radius=Option(0.03, "radius within which grains come", "m", least=0, most=1000),
    relaxation=Option(1.0, "time after the last grain", "s", least=0.1, most=1000),
    step=Option(5e-4, "time step", "s", least=1e-7, most=5e-3),
    tolerance=Option(1e-3, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    seed=Option(1, "seed of the random numbers of the first pile; the next ones have the next numbers", least=0),
)
QUICK = {"grains": 120, "piles": 1, "rate": 120.0, "relaxation": 0.5, "step": 1e-3}
GRAVITY = 9.81


class Pile(NamedTuple):
    """A poured pile at rest."""

    frame: object
    slope: object
    packing: float  # inside the pile; nan where it has no inside
    weight: float  # borne by the ground, over that of the grains, mean of the last tenth of a second
    energy: object
    failures: int


def build(parameters):
    """Piles of spheres and of rock, poured in the same way; the file of the run has the first pile of rock."""
    low, high = (int(c) for c in parameters["corners"])
    if low > high:
        raise InputError(f"corners={list(parameters['corners'])}; give the smaller number first.")
    kinds = {"spheres": (None, "run-spheres"), "rocks": (packings.Rocks(corners=(low, high)), "run")}
    piles = {kind: [] for kind in kinds}
    for k in range(parameters["piles"]):
        for kind, (shape, name) in kinds.items():
            own = parameters | {"seed": parameters["seed"] + k}
            piles[kind].append(pour(own, shape, name if k == 0 else f"{name}-{k + 1}"))
    return piles


def ground_half(p) -> float:
    """Half the side of the ground: enough for a cone of 16 degrees at a packing fraction of 0.5."""
    volume = p["grains"] * math.pi / 6 * p["largest"] ** 3 / 0.5
    return 1.2 * (3 * volume / (math.pi * math.tan(math.radians(16)))) ** (1 / 3) + p["pour_radius"] + p["largest"]


def pour(p, shape, name) -> Pile:
    """Pour a pile and let it come to rest."""
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.material("rock", density=2600.0)
    scene.contact("rock", "rock", friction=p["friction"])
    sizes = packings.Sieve.uniform(p["smallest"], p["largest"])
    half = ground_half(p)
    packings.pavement(scene, material="rock", sizes=sizes, extent=half, seed=p["seed"])
    scene.add(Plane((0, 0, 1)), material="rock", position=(0, 0, -0.5 * p["largest"]), fixed=True)
    pouring = packings.Pour(scene, material="rock", sizes=sizes, rate=p["rate"], count=p["grains"],
                            radius=p["pour_radius"], seed=p["seed"], shape=shape)  # fmt: skip
    sim = Simulation(scene, time_step=p["step"], tolerance=p["tolerance"], penetration="anticipate", recovery=0.1,
                     on_failure="ignore")  # fmt: skip
    weight = _pouring.pour(sim, pouring, p, name)
    frame = sim.frame()
    return Pile(frame, analysis.slope(frame), packing(frame, p), weight, sim.energy, sim.failures)


def packing(frame, p) -> float:
    """The packing fraction inside the pile."""
    try:
        return analysis.packing_fraction(frame, analysis.interior(frame, margin=0.5 * p["largest"]))
    except InputError:  # a handful of grains, one upon the other nowhere
        return math.nan


def mean(values) -> tuple[float, float]:
    """Mean of several piles and its standard error by their scatter; the error is nan of one pile alone."""
    values = np.array(values, dtype=float)
    if len(values) == 1:
        return float(values[0]), math.nan
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def check(outcome, parameters):
    """Slopes and packings of both kinds of piles; the ground carries each, the energies close."""
    results, rows = {}, []
    for name, piles in outcome.items():
        each = [_pouring.results(pile) | {"packing_fraction": pile.packing} for pile in piles]
        results[name] = {key: mean([one[key] for one in each])[0] for key in each[0]}
        fitted = math.sqrt(sum(one["slope_error_degrees"] ** 2 for one in each)) / len(each)
        scatter = mean([one["slope_degrees"] for one in each])[1]
        results[name] |= {
            "slope_error_degrees": fitted if math.isnan(scatter) else max(scatter, fitted),
            "slopes_degrees": [one["slope_degrees"] for one in each],
            "packing_error": mean([one["packing_fraction"] for one in each])[1],
            "largest_speed": max(one["largest_speed"] for one in each),
            "energy_closure": max(one["energy_closure"] for one in each),
            "steps_not_solved": sum(one["steps_not_solved"] for one in each),
        }
        for k, pile in enumerate(piles):
            rows += _pouring.identities(name if k == 0 else f"{name}, pile {k + 1}", pile, 2e-2)
    steep, flat = results["rocks"], results["spheres"]
    if parameters["friction"] >= 0.2:
        # One small pile of each cannot tell the two apart: it is only asked not to say the contrary.
        doubt = math.hypot(flat["slope_error_degrees"], steep["slope_error_degrees"])
        least = flat["slope_degrees"] + (2 * doubt if parameters["piles"] > 1 else -doubt)
        words = "two errors above" if parameters["piles"] > 1 else "not below"
        rows.insert(0, Row(f"slope of rock {words} that of spheres, degrees", f"> {least:.1f}", steep["slope_degrees"],
                           steep["slope_degrees"] > least, "own reference"))  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The first pile of each kind, and its profile."""
    outcome = {name: piles[0] for name, piles in outcome.items()}
    figure = plt.figure(figsize=(12, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.3, 1))
    for column, (name, pile) in enumerate(outcome.items()):
        ax = figure.add_subplot(grid[0, column])
        levels = np.where(pile.frame.kinds == FREE, pile.frame.positions[:, 2], 0.0)
        plot_scene(pile.frame, ax, forces=False, colours=levels, elevation=14.0)
        inside = "" if math.isnan(pile.packing) else f", packing {pile.packing:.2f}"
        ax.set_title(f"{name}: slope {pile.slope.degrees:.1f}° ± {pile.slope.error:.1f}°{inside}", fontsize=10)
        reach = 1.4 * max(each.slope.foot for each in outcome.values())
        ax.set(xlim=(-reach, reach), ylim=(-0.35 * reach, 0.5 * reach))
        ax = figure.add_subplot(grid[1, column])
        pile.slope.plot(ax)
        ax.set_title("")
    return figure
