"""Recipes of ARCHITECTURE.md, followed as written: a solver of scenes."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics._jit import kernel
from contactdynamics.rigid.solvers import SOLVERS, Solution, measure_all, sweep_all


@kernel
def thirty_sweeps(rows, mobility, kinds, goal, scratch, meeting):
    """Always as many sweeps, whatever is left."""
    for n in range(30):
        sweep_all(rows, mobility, kinds, n < 0, -1.0, scratch.changes[n % 2], meeting)
    found, _, _ = measure_all(rows, mobility, kinds, goal, scratch, meeting)
    return Solution(30, found.residual, found.kind, found.worst, found.bipotential)


@pytest.fixture
def solver():
    SOLVERS["thirty"] = thirty_sweeps
    yield "thirty"
    del SOLVERS["thirty"]


def test_a_solver_of_ones_own(solver):
    """A disk on a slope below the angle of friction: the weight is carried, and it rolls without slipping."""
    slope = 0.2
    scene = cd.Scene(gravity=(9.81 * np.sin(slope), -9.81 * np.cos(slope)))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    disk = scene.add(cd.Disk(0.1), material="m", position=(0, 0.1))
    sim = cd.Simulation(scene, time_step=1e-3, solver=solver, tolerance=1e-9)
    sim.run(until=0.5, progress=False)
    assert sim.report.iterations == 30 and sim.failures == 0
    assert sim.body(disk).velocity == pytest.approx([2 / 3 * 9.81 * np.sin(slope) * 0.5, 0.0], abs=1e-9)
