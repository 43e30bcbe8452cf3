"""Grains with corners: a plane pile of irregular polygons is steeper than one of disks with the same friction.

The 3D experiment of the papers (1999, part IV) in two dimensions: grains come one by one at rest, as low as possible on
a vertical near the axis. Two piles are poured alike, of disks and of irregular polygons with their corners on the same
circles. Force chains, and histograms of the directions of contacts, which show the anisotropy that the pouring leaves
(1999, section IV.4). Lengths in cm, masses in g per cm of thickness.
"""

import math
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics import analysis
from contactdynamics.experiments import _pouring
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.plotting import plot_scene
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes import packings
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import HalfPlane
from contactdynamics.state import FREE

FIGURE = "1999, section IV.4 (no figure)"
PARAMETERS = Options(
    grains=Option(500, "grains poured", least=20, most=10_000_000),
    rate=Option(250.0, "grains per second", "1/s", least=1, most=1e6),
    friction=Option(0.4, "friction coefficient", "1", least=0, most=100),
    smallest=Option(0.25, "smallest diameter of the grains", "cm", least=0.01, most=100),
    largest=Option(0.5, "largest diameter of the grains", "cm", least=0.01, most=100),
    sides=Option([5, 8], "least and largest number of corners", least=3, most=50, numbers=(2,)),
    pour_radius=Option(0.8, "half width over which grains come", "cm", least=0, most=1000),
    relaxation=Option(1.0, "time after the last grain", "s", least=0, most=1000),
    gravity=Option(981.0, "acceleration of gravity", "cm/s²", least=1, most=1e5),
    step=Option(5e-4, "time step", "s", least=1e-7, most=5e-3),
    tolerance=Option(1e-3, "residual to which each step is solved", "1", least=1e-12, most=0.1),
    seed=Option(1, "seed of the random numbers", least=0),
)
QUICK = {"grains": 150, "rate": 400.0, "relaxation": 0.5}
# The audit is right: angular grains fall into each other by more than a quarter of the ball inside them, for a while.
AUDIT_FAILS = {"overlaps": "fast angular grains sink into each other before a step opens them; a shorter step helps"}


class Pile(NamedTuple):
    """A poured pile at rest."""

    frame: object
    slope: object
    fabric: object
    directions: object
    weight: float  # borne by the ground, over that of the grains, mean of the last tenth of a second
    energy: object
    failures: int


def build(parameters):
    """A pile of disks and one of polygons, poured in the same way."""
    p = parameters
    low, high = (int(s) for s in p["sides"])
    return {"disks": pour(p, None, "run-disks"), "polygons": pour(p, packings.Irregular(sides=(low, high)), "run")}


def ground_half(p) -> float:
    """Half the length of the ground: enough for a slope of 12 degrees at a packing fraction of 0.75."""
    area = (
        p["grains"] * math.pi / 4 * (p["smallest"] ** 2 + p["smallest"] * p["largest"] + p["largest"] ** 2) / 3 / 0.75
    )
    return 1.2 * math.sqrt(area / math.tan(math.radians(12))) + p["pour_radius"] + 2 * p["largest"]


def pour(p, shape, name) -> Pile:
    """Pour a pile and let it come to rest."""
    scene = Scene(gravity=(0.0, -p["gravity"]))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=p["friction"])
    sizes = packings.Sieve.uniform(p["smallest"], p["largest"])
    packings.pavement(scene, material="grain", sizes=sizes, extent=ground_half(p), seed=p["seed"], cover=0.95)
    table = (0.0, -0.5 * p["largest"])
    scene.add(HalfPlane(normal=(0, 1)), material="grain", position=table, fixed=True)
    pouring = packings.Pour(scene, material="grain", sizes=sizes, rate=p["rate"], count=p["grains"],
                            radius=p["pour_radius"], seed=p["seed"], shape=shape)  # fmt: skip
    sim = Simulation(
        scene, time_step=p["step"], tolerance=p["tolerance"], on_failure="ignore", penetration="anticipate"
    )
    weight = _pouring.pour(sim, pouring, p, name)
    frame = sim.frame()
    seen, grains = outwards(frame), Above(float(frame.positions[frame.kinds == FREE, 1].min()))
    return Pile(frame, analysis.slope(frame), analysis.fabric(seen, grains),
                analysis.directions(seen, grains), weight, sim.energy, sim.failures)  # fmt: skip


def outwards(frame):
    """The frame with the contact normals of the left flank mirrored: directions count from the axis outwards."""
    side = np.where(frame.contacts.point[:, 0] < 0, -1.0, 1.0)
    normal = frame.contacts.normal * np.stack([side, np.ones_like(side)], axis=1)
    return frame._replace(contacts=frame.contacts._replace(normal=normal))


class Above(NamedTuple):
    """The region above a height: contacts between grains, not those with the ground."""

    level: float

    def contains(self, points) -> np.ndarray:
        return points[:, -1] > self.level


def check(outcome, parameters):
    """Slopes of both piles, anisotropy of the contacts; the ground carries them, the energies close."""
    results, rows = {}, []
    for name, pile in outcome.items():
        results[name] = _pouring.results(pile) | {
            "anisotropy": pile.fabric.anisotropy,
            "principal_direction_degrees": math.degrees(math.atan2(*pile.fabric.axes[0][::-1])) % 180,
            "contact_directions": {"edges_degrees": np.degrees(pile.directions.edges),
                                   "density": pile.directions.density},
            "contacts": int((pile.frame.contacts.impulse[:, 0] > 0).sum()),
        }  # fmt: skip
        rows += [
            *_pouring.identities(name, pile, 1e-2),
        ]  # fmt: skip
    steep, flat = results["polygons"], results["disks"]
    if parameters["friction"] >= 0.2:
        rows.insert(0, Row("slope of polygons above that of disks, degrees", f"> {flat['slope_degrees']:.1f}",
                           steep["slope_degrees"], steep["slope_degrees"] > flat["slope_degrees"],
                           "own reference"))  # fmt: skip
        # Of N directions at random |<exp(2 i a)>| exceeds r with the probability exp(-N r^2); the anisotropy is 2 r.
        chance = 2 * math.sqrt(math.log(100) / outcome["polygons"].fabric.contacts)
        rows.insert(1, Row("polygons: anisotropy of contact directions", f"> {chance:.2f}, 1 % of random ones",
                           steep["anisotropy"], steep["anisotropy"] > chance, "closed form"))  # fmt: skip
    return Verdict(results, rows)


# ---- figures -------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """The piles, their force chains, and the directions of contacts."""
    return {"figure": piles(outcome), "chains": chains(outcome), "directions": roses(outcome)}


def _limits(outcome):
    """The same window for both piles."""
    wide = max(pile.slope.foot for pile in outcome.values()) * 1.25
    top = max(pile.frame.positions[pile.frame.kinds == FREE, 1].max() for pile in outcome.values())
    return {"xlim": (-wide, wide), "ylim": (-0.6, 1.15 * top), "xlabel": "x, cm", "ylabel": "y, cm"}


def piles(outcome):
    """Both piles with the lines of their slopes."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
    for ax, (name, pile) in zip(axes, outcome.items(), strict=True):
        plot_scene(pile.frame, ax, forces=False)
        s = pile.slope
        ax.plot([-s.foot, 0, s.foot], [s.level, s.level + s.apex, s.level], "r-", lw=1)
        ax.set(**_limits(outcome))
        ax.set_title(f"{name}: slope {s.degrees:.1f}° ± {s.error:.1f}°")
    axes[0].set_xlabel("")
    return figure


def chains(outcome):
    """The forces between the centres of grains, as thick as they are strong."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
    for ax, (name, pile) in zip(axes, outcome.items(), strict=True):
        plot_scene(pile.frame, ax, forces=False, colours=np.full(len(pile.frame.kinds), "#eeeeee"))
        found = analysis.force_chains(pile.frame)
        found.plot(ax, widest=4.0, scale=float(np.quantile(found.forces, 0.99)), colour="C3")
        ax.set(**_limits(outcome), title=f"{name}: force chains")
    axes[0].set_xlabel("")
    return figure


def roses(outcome):
    """Histograms of the directions of contact normals between grains; right is away from the axis."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), subplot_kw={"projection": "polar"}, layout="constrained")
    for ax, (name, pile) in zip(axes, outcome.items(), strict=True):
        pile.directions.plot(ax)
        ax.set_title(f"{name}: anisotropy {pile.fabric.anisotropy:.2f}")
    figure.suptitle("directions of contact normals, from the axis outwards; circle: all as frequent", fontsize=10)
    return figure
