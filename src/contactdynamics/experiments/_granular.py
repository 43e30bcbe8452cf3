"""What the experiments on granular materials have in common: samples in a periodic cell."""

import math
import warnings

import numpy as np

import contactdynamics as cd
from contactdynamics import analysis, packings
from contactdynamics.errors import StepWarning

PRESSURE = 100.0  # N/m in 2D, Pa in 3D; densities are 1


def sample(parameters, *, dimension, sizes, friction, fraction=None, rate=None):
    """A gas in a periodic cell; the time unit sqrt(m / P) (sqrt(rho / P) d in 3D) beside it."""
    d = dimension
    cell = cd.Cell(np.ones(d))
    gas = packings.random(cell, sizes, fraction or (0.4 if d == 2 else 0.28), count=parameters["grains"],
                          seed=parameters["seed"])  # fmt: skip
    scene = cd.Scene(gravity=np.zeros(d), cell=cell)
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=friction)
    scene.add_many(gas.radii, material="grain", position=gas.positions)
    size = 2 * float(gas.radii.mean())
    unit = size * math.sqrt((math.pi / 4 if d == 2 else 1.0) / PRESSURE)
    return scene, unit


def compressed(scene, unit, parameters, *, tolerance=None, longest=400.0, quiet=1e-7):
    """The simulation of a sample brought to rest under the pressure; and what `compress` says."""
    sim = cd.Simulation(
        scene, time_step=parameters["step"] * unit, tolerance=tolerance or parameters["tolerance"],
        penetration="anticipate", on_failure="ignore",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)
        found = packings.compress(sim, PRESSURE, longest=longest * unit, quiet=quiet)
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
