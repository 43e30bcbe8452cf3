"""What the experiments on granular materials have in common: samples in a periodic cell."""

import math
import warnings

import numpy as np

import contactdynamics as cd
from contactdynamics import analysis, packings
from contactdynamics.errors import StepWarning

PRESSURE = 100.0  # N/m in 2D, Pa in 3D; densities are 1


def sample(parameters, *, dimension, sizes, friction, fraction=None, corners=0):
    """A gas in a periodic cell; the time unit sqrt(m / P) (sqrt(rho / P) d in 3D) beside it.

    With ``corners`` the grains are regular polygons inside the disks of the gas, turned at random.
    """
    d = dimension
    cell = cd.Cell(np.ones(d))
    gas = packings.random(cell, sizes, fraction or (0.4 if d == 2 else 0.28), count=parameters["grains"],
                          seed=parameters["seed"])  # fmt: skip
    scene = cd.Scene(gravity=np.zeros(d), cell=cell)
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=friction)
    area = math.pi / 4  # of a grain of diameter 1
    if corners:
        turns = np.random.default_rng([parameters["seed"], 5]).uniform(0, 2 * math.pi, len(gas.radii))
        for radius, place, turn in zip(gas.radii, gas.positions, turns, strict=True):
            shape = cd.Polygon.regular(corners, radius=float(radius))
            scene.add(shape, material="grain", position=place, rotation=turn)
        area = corners / 8 * math.sin(2 * math.pi / corners)
    else:
        scene.add_many(gas.radii, material="grain", position=gas.positions)
    size = 2 * float(gas.radii.mean())
    unit = size * math.sqrt((area if d == 2 else 1.0) / PRESSURE)
    return scene, unit


def compressed(scene, unit, parameters, *, tolerance=None, longest=400.0, quiet=1e-7, rate=None):
    """The simulation of a sample brought to rest under the pressure; and what `compress` says.

    ``longest`` and ``rate`` (see `compress`) are in the unit of time.
    """
    sim = cd.Simulation(
        scene, time_step=parameters["step"] * unit, tolerance=tolerance or parameters["tolerance"],
        penetration="anticipate", on_failure="ignore", max_iterations=20_000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)
        found = packings.compress(
            sim, PRESSURE, rate=None if rate is None else rate / unit, longest=longest * unit, quiet=quiet
        )
    return sim, found


def measured(sim):
    """Fraction, coordination without rattlers, rattlers and largest overlap of a sample."""
    frame = sim.frame()
    bones = analysis.backbone(frame)
    return {
        "packing_fraction": analysis.solid_fraction(frame),
        "coordination": bones.coordination,
        "rattlers": bones.rattlers,
        "overlap": float(sim.report.relative_penetration),
    }


def set_friction(sim, value):
    """Another friction coefficient from the next step on."""
    sim.contact("grain", "grain", friction=value)
