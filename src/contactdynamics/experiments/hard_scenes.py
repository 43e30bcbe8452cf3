"""Hard scenes: a collection that breaks codes, each with a number that must come out.

A scene is *right* where its bound holds, *warned* where it does not and the run said so, *refused* where an error said
why it cannot be done. What is wrong and says nothing is *silently wrong*: there is to be none.
"""

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.errors import ConvergenceWarning, EnergyWarning, RunawayError, StepWarning
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.state import FREE

FIGURE = "own: hard scenes and their bounds"
PARAMETERS = Options(
    step=Option(1e-3, "time step of the scenes that have no own", "s", least=1e-5, most=5e-3),
    tower=Option(100, "spheres of the tower", least=2, most=300),
    crowd=Option(2000, "bodies in one place", least=10, most=20_000),
    gas=Option(200, "disks of the gas", least=2, most=2000),
    seed=Option(1, "of random places", least=0),
)
QUICK = {"crowd": 300, "gas": 60}
G = 9.81
TOLD = (StepWarning, ConvergenceWarning, EnergyWarning)


def ground(dimension=2, normal=None, density=1000.0, gravity=G, **law):
    """A scene of one material with a fixed ground through the origin."""
    scene = cd.Scene(gravity=(0, -gravity) if dimension == 2 else (0, 0, -gravity))
    scene.material("m", density=density)
    scene.contact("m", "m", **({"friction": 0.5} | law))
    up = normal or ((0, 1) if dimension == 2 else (0, 0, 1))
    scene.add(cd.HalfPlane(up) if dimension == 2 else cd.Plane(up), material="m", fixed=True)
    return scene


def run(scene, until, step, **options):
    """The simulation after the time ``until``."""
    return cd.Simulation(scene, time_step=step, **options).run(until=until, progress=False)


def carried(sim):
    """Force on what is fixed over the weight."""
    contacts, free = sim.contacts, sim.bodies.kind == FREE
    fixed = {int(n) for n in sim.bodies.identity[~free]}
    up = np.einsum("ki,kij->kj", contacts.impulse, contacts.frame)[:, -1]
    sign = np.array([(a in fixed) * 1.0 - (b in fixed) * 1.0 for a, b in contacts.bodies])
    return float((sign * up).sum() / sim.time_step / (sim.bodies.mass[free].sum() * G))


def masses(heavy_first):
    """A disk and one of a million times its mass on top of it, or below: the ground carries both, nothing sinks."""

    def scene_of(p):
        scene = ground()
        pair = (1e6, 1.0) if heavy_first else (1.0, 1e6)
        for k, mass in enumerate(pair):
            scene.add(cd.Disk(0.01), material="m", position=(0, 0.01 + 0.02 * k), mass=mass)
        sim = run(scene, 0.2, p["step"])
        return max(abs(carried(sim) - 1.0), sim.watch.overlap), 2e-3

    return scene_of


def tower(p):
    """A tower of spheres stands: sag in diameters."""
    scene = ground(3)
    for k in range(p["tower"]):
        scene.add(cd.Sphere(0.01), material="m", position=(0, 0, 0.01 + 0.02 * k))
    sim = run(scene, 0.2, p["step"])
    fall = (0.01 + 0.02 * np.arange(p["tower"]) - sim.positions[1:, 2]).max()
    return max(fall / 0.02, abs(carried(sim) - 1.0), sim.energy.created), 1e-2


def wedge(p):
    """A disk in a groove without friction: P = m g / (2 sin a) on both walls at an angle a from the vertical."""
    angle = math.radians(10)
    scene = cd.Scene(gravity=(0, -G))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.0)
    for side in (1, -1):
        scene.add(cd.HalfPlane((side * math.cos(angle), math.sin(angle))), material="m", fixed=True)
    scene.add(cd.Disk(0.1), material="m", position=(0, 0.1 / math.sin(angle)))
    sim = run(scene, 0.1, p["step"])
    force = sim.contacts.impulse[:, 0] / p["step"]
    return float(np.abs(force * 2 * math.sin(angle) / (sim.bodies.mass[-1] * G) - 1).max()), 1e-3


def cards(lean, stands):
    """Two cards that lean on each other: they need a friction of about tan(a) / 2 on the ground, and have 0.3."""

    def scene_of(p):
        slant, foot, wide = math.tan(math.radians(lean)), 0.1 * math.sin(math.radians(lean)), 0.002
        scene, centres = ground(friction=0.3), []
        for side in (-1, 1):
            corners = np.array([(foot, 0), (foot + wide, 0), (0, (foot + wide) / slant), (0, foot / slant)])
            card = cd.Polygon(corners * (side, 1))
            centres.append(card.center_of_mass)
            scene.add(card, material="m", position=card.center_of_mass)
        sim = run(scene, 0.5, 0.2 * p["step"])
        fallen = float(1.0 - sim.positions[1:, 1].min() / centres[0][1])
        return (abs(fallen), 1e-2) if stands else (float(fallen < 0.3), 0.5)

    return scene_of


def shot(p):
    """A disk at 10 m/s into a packing: the ledger is closed, no energy is created, nothing goes through the ground."""
    scene = ground()
    for x in (-0.11, 0.11):
        scene.add(cd.HalfPlane((-math.copysign(1, x), 0)), material="m", position=(x, 0), fixed=True)
    for k in range(60):
        row, column = divmod(k, 10)
        scene.add(cd.Disk(0.01), material="m", position=(-0.095 + 0.021 * column, 0.011 + 0.021 * row))
    scene.add(cd.Disk(0.01), material="m", position=(0.003, 0.2), velocity=(0, -10))
    sim = run(scene, 0.3, 0.2 * p["step"])
    energy = sim.energy
    below = max(0.0, -(sim.positions[sim.bodies.kind == FREE][:, 1].min() - 0.01) / 0.01)
    return max(energy.closure / abs(energy.kinetic + 5.0), energy.created, below - 0.1), 1e-3


def slope(friction):
    """A block on a slope of 30 degrees: it slides by g (sin - gamma cos) t^2 / 2, or stays."""

    def scene_of(p):
        angle = math.radians(30)
        scene = ground(normal=(math.sin(angle), math.cos(angle)), friction=friction)
        place = 0.01 * np.array([math.sin(angle), math.cos(angle)])
        scene.add(cd.Rectangle(0.04, 0.02), material="m", position=place, rotation=-angle)
        sim = run(scene, 0.3, p["step"])
        way = float(np.linalg.norm(sim.positions[1] - place))
        exact = 0.5 * G * max(0.0, math.sin(angle) - friction * math.cos(angle)) * 0.3**2
        return abs(way - exact) / 0.04, 0.02

    return scene_of


def spin(p):
    """A disk set down with 1000 rad/s: it ends rolling at w r / 3."""
    scene = ground()
    scene.add(cd.Disk(0.01), material="m", position=(0, 0.01), spin=-1000.0)
    sim = run(scene, 1.5, p["step"])
    return float(abs(sim.velocities[1, 0] / (1000 * 0.01 / 3) - 1)), 1e-2


def size(radius):
    """A disk of this radius falls by its radius and rests: the ground carries it."""

    def scene_of(p):
        scene = ground()
        scene.add(cd.Disk(radius), material="m", position=(0, 1.1 * radius))
        fall = math.sqrt(0.2 * radius / G)
        sim = run(scene, 4 * fall, fall / 50)
        return max(abs(carried(sim) - 1.0), abs(sim.positions[1, 1] / radius - 1) - 0.01), 1e-2

    return scene_of


def long_step(p):
    """A step ten times too long: disks fall by their radius in a step, and are told of, or held."""
    scene = ground()
    for k in range(10):
        scene.add(cd.Disk(0.01), material="m", position=(0.001 * (k % 2), 0.05 + 0.025 * k))
    sim = run(scene, 1.0, 20 * p["step"])
    return sim.watch.overlap, 0.05


def crowd(p):
    """Bodies in one place, moved apart by `repair`."""
    rng = np.random.default_rng(p["seed"])
    scene = ground(gravity=0.0)
    for x, y in rng.uniform(-0.01, 0.01, (p["crowd"], 2)):
        scene.add(cd.Disk(0.01), material="m", position=(x, 10 + y))
    sim = cd.Simulation(scene, time_step=p["step"], repair=True)
    sim.step()
    return sim.report.relative_penetration, 0.02


def plate(p):
    """A plate 1 to 1000 on the ground: it stays, and its weight is carried."""
    scene = ground()
    scene.add(cd.Rectangle(1.0, 1e-3), material="m", position=(0, 5e-4))
    sim = run(scene, 0.5, p["step"])
    return max(abs(carried(sim) - 1.0), abs(sim.positions[1, 1] / 5e-4 - 1), abs(float(sim.rotations[1]))), 1e-3


def row(p):
    """Five touching disks, hit by one, with restitution 1: momentum and energy stay."""
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.0, restitution=1.0)
    for k in range(6):
        place = -0.0201 if k == 0 else 0.02 * (k - 1)
        scene.add(cd.Disk(0.01), material="m", position=(place, 0), velocity=(1.0 if k == 0 else 0.0, 0))
    sim = run(scene, 0.2, p["step"], tolerance=1e-8)  # what a step leaves of the default one is more than the bound
    v = sim.velocities[:, 0]
    return max(abs(v.sum() - 1), abs((v**2).sum() - 1)), 1e-6


def gas(p):
    """An elastic gas without friction: its energy stays."""
    rng = np.random.default_rng(p["seed"])
    side = math.ceil(math.sqrt(p["gas"]))
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1000)
    scene.contact("m", "m", friction=0.0, restitution=1.0)
    width = 0.05 * side
    for normal, place in (((1, 0), (0, 0)), ((-1, 0), (width, 0)), ((0, 1), (0, 0)), ((0, -1), (0, width))):
        scene.add(cd.HalfPlane(normal), material="m", position=place, fixed=True)
    for k in range(p["gas"]):
        i, j = divmod(k, side)
        scene.add(
            cd.Disk(0.01), material="m", position=(0.025 + 0.05 * i, 0.025 + 0.05 * j), velocity=rng.normal(size=2)
        )
    sim = cd.Simulation(scene, time_step=p["step"], tolerance=1e-8)
    before = sim.energy.kinetic
    sim.run(until=1.0, progress=False)
    return abs(sim.energy.kinetic / before - 1), 1e-5


def blocks(p):
    """Twenty blocks with restitution, dropped together: no energy is created, and they come to rest as a pile."""
    scene = ground(restitution=0.3)
    for k in range(20):
        scene.add(cd.Rectangle(0.1, 0.02), material="m", position=(0, 0.02 + 0.021 * k))
    sim = run(scene, 1.5, 0.5 * p["step"])
    top = sim.positions[-1, 1] / (0.01 + 0.02 * 19) - 1
    return max(abs(float(top)), sim.energy.created / 10.0), 0.02


SCENES = {
    "a million on one": masses(False), "one on a million": masses(True), "tower of spheres": tower, "wedge": wedge,
    "card house": cards(20, True), "card house that falls": cards(45, False), "10 m/s into a packing": shot,
    "friction 0": slope(0.0), "friction 10": slope(10.0), "1000 rad/s": spin, "1 µm": size(1e-6), "1 km": size(1e3),
    "step ten times too long": long_step, "crowd in one place": crowd, "plate 1:1000": plate,
    "row of touching balls": row, "elastic gas": gas, "20 blocks with restitution": blocks,
}  # fmt: skip


def build(parameters):
    """Each scene with its error, bound, and what it said."""
    found = {}
    for name, scene in SCENES.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                error, bound = scene(parameters)
                told = [str(one.message) for one in said if issubclass(one.category, TOLD)]
                right = bool(error <= bound)
            except (cd.InputError, RunawayError) as refusal:
                error, bound, told, right = math.nan, math.nan, [str(refusal)], None
        verdict = "refused" if right is None else "right" if right else "warned" if told else "silently wrong"
        found[name] = {"verdict": verdict, "error": error, "bound": bound, "told": told[:1]}
    return found


def check(outcome, parameters):
    """No scene is wrong without a word."""
    by = {kind: [name for name, one in outcome.items() if one["verdict"] == kind]
          for kind in ("right", "warned", "refused", "silently wrong")}  # fmt: skip
    results = {
        "scenes": len(outcome), "right": len(by["right"]), "warned": len(by["warned"]), "refused": len(by["refused"]),
        "silently_wrong": by["silently wrong"], "table": outcome,
    }  # fmt: skip
    wrong = ", ".join(by["silently wrong"]) or "none"
    return Verdict(results, [Row("silently wrong", "none", wrong, not by["silently wrong"], "identity")])


def figure(outcome, parameters):
    """Error over bound of each scene."""
    figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
    colours = {"right": "#2a7f3f", "warned": "#d98c00", "refused": "#777777", "silently wrong": "#b00020"}
    names = list(outcome)[::-1]
    for k, name in enumerate(names):
        one = outcome[name]
        share = one["error"] / one["bound"] if one["bound"] == one["bound"] else 1.0
        ax.plot(max(share, 1e-9), k, "o", color=colours[one["verdict"]])
        ax.annotate(one["verdict"], (1.02, k), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    ax.axvline(1.0, color="0.7", lw=1)
    ax.set_yticks(range(len(names)), names)
    ax.set(xscale="log", xlabel="error over its bound")
    return figure
