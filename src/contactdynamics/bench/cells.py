"""Benchmarks of periodic cells: a step in a sheared cell beside one in an open box, and a long quasi-static shear."""

import time

import numpy as np

from ..experiments.options import Option
from ..rigid.simulation import Simulation
from ..scenes import packings
from ..scenes.cell import Cell
from ..scenes.scene import Scene
from .options import takes

PRESSURE = 100.0


def _scene(cell, places, radii):
    scene = Scene(gravity=(0, 0), cell=cell)
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.4)
    scene.add_many(radii, material="m", position=places)
    return scene


def _dense(count: int, seed: int):
    """Places and radii of disks on a square lattice of the unit cell, each in contact with its four neighbours."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(count)))
    grid = (np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) + 0.5) / side
    return grid, rng.uniform(0.5, 0.503, len(grid)) / side


def _timed(sim: Simulation, flow, steps: int, sweeps: int) -> tuple[float, float, float]:
    """CPU seconds per step, sweeps and contacts; each step begins with the same velocities, which press together."""
    sim.tolerance, sim.max_iterations = 1e-300, sweeps
    spent, done, contacts = 0.0, 0, 0
    for k in range(steps + 2):
        sim.rows[:, :2] = flow[sim.bodies.identity]  # rows are sorted in space
        begin = time.process_time()
        step = sim.step()
        if k >= 2:
            spent += time.process_time() - begin
            done, contacts = done + step.report.iterations, contacts + step.contacts
    return spent / steps, done / steps, contacts / steps


@takes(
    disks=Option(10_000, "in the cell and in the box", least=100, most=1_000_000),
    sweeps=Option(50, "of each step", least=1, most=10_000),
    steps=Option(30, "that are timed, in turns", least=2, most=10_000),
    shear_disks=Option(2000, "of the quasi-static shear", least=50, most=100_000),
    shear_steps=Option(200, "of the quasi-static shear that are timed; 100 000 are foretold", least=10, most=10**6),
    shear_tolerance=Option(3e-3, "to which it is solved", least=1e-6, most=0.1),
    shear_mass=Option(0.1, "of its cell, over that of the disks", least=1e-3, most=100),
    shear_step=Option(0.1, "its time step over sqrt(m / P)", least=1e-3, most=0.5),
)
def cells(echo, *, disks, sweeps, steps, shear_disks, shear_steps, shear_tolerance, shear_mass, shear_step) -> dict:
    """A step of disks in a sheared periodic cell over that in an open box, at the same sweeps; a quasi-static shear."""
    places, radii = _dense(disks, 1)
    rate = 0.05
    cell = Cell((1.0, 1.0), rate=[[0, rate], [0, 0]], stress={"yy": PRESSURE})
    size = 2 * float(radii.mean())
    h = 0.05 * size / np.sqrt(PRESSURE)
    rng = np.random.default_rng(3)
    flow = 0.5 * (0.5 - places) + 0.05 * rng.normal(size=places.shape)
    h *= 1e-3  # nothing moves: all steps have the same contacts
    options = {"time_step": h, "tolerance": 1e-3, "on_failure": "ignore", "check": False, "solver": "accelerated"}
    ways = {}
    for name, space in (("box", None), ("cell", cell)):
        scene = _scene(space, places, radii)
        sim = Simulation(scene, **options)
        ways[name] = sim
    best = {name: [] for name in ways}
    contacts, made = {}, {}
    for _ in range(3):
        for name, sim in ways.items():
            seconds, made[name], contacts[name] = _timed(sim, flow, max(2, steps // 3), sweeps)
            best[name].append(seconds)
    per = {name: min(values) * 1e3 for name, values in best.items()}
    per_contact = {name: per[name] / max(1.0, contacts[name] * made[name]) for name in per}
    ratio = per_contact["cell"] / per_contact["box"]
    for name in ways:
        echo(f"{name:<5} {per[name]:8.3f} ms per step of {made[name]:.0f} sweeps, {contacts[name]:.0f} contacts")
    echo(f"a sweep over a contact costs {ratio:.3f} in the sheared cell of what it costs in an open box")
    slow = _quasi_static(shear_disks, shear_steps, shear_tolerance, shear_mass, shear_step)
    echo(
        f"quasi-static shear of {shear_disks} disks to {shear_tolerance:g}: "
        f"{slow['shear_ms']:.2f} ms and {slow['shear_sweeps']:.0f} sweeps per step, 100 000 steps in "
        f"{slow['minutes_of_100000']:.1f} min"
    )
    echo(
        f"friction {slow['shear_friction']:.3f} +- {slow['shear_friction_error']:.3f}, "
        f"fraction {slow['shear_fraction']:.4f}, pressure "
        f"{slow['shear_pressure']:.3f} +- {slow['shear_ringing']:.3f} of that asked for"
    )
    return {"box_ms": per["box"], "cell_ms": per["cell"], "contacts_box": contacts["box"],
            "contacts_cell": contacts["cell"], "sweeps_box": made["box"],
            "sweeps_cell": made["cell"], "ratio": ratio} | slow  # fmt: skip


def _quasi_static(disks: int, steps: int, tolerance: float, mass: float, step: float) -> dict:
    """CPU milliseconds and sweeps per step of a slow shear at constant pressure, and minutes for 100 000 of them.

    Disks of 0.8 to 1.2 of their mean diameter, sheared to a strain of 0.6 at an inertial number of 0.03, then at 0.001.
    A cell as heavy as the disks rings: see `docs/guide/cells.md`.
    """
    gas = packings.random(Cell((1.0, 1.0)), packings.Sieve.uniform(0.8, 1.2), 0.45, count=disks, seed=2)
    unit = 2 * float(gas.radii.mean()) * np.sqrt(np.pi / 4 / PRESSURE)
    solid = float(np.pi * (gas.radii**2).sum())  # also their mass
    scene = _scene(Cell((1.0, 1.0), mass=mass * solid), gas.positions, gas.radii)
    sim = Simulation(scene, time_step=step * unit, tolerance=1e-2, on_failure="ignore", penetration="anticipate")
    for inertial, stress, duration in ((0.0, PRESSURE, 25), (0.03, {"yy": PRESSURE}, 20), (1e-3, {"yy": PRESSURE}, 10)):
        rate = [[0, inertial / unit], [0, 0]] if inertial else None
        sim.cell.impose(rate=rate, stress=stress, carry=inertial > 0)
        for _ in range(round(duration / step)):
            sim.step()
    sim.tolerance = tolerance
    spent, sweeps, strain, unsolved, rows = 0.0, 0, sim.cell.strain[0, 1], sim.failures, []
    for _ in range(steps):
        begin = time.process_time()
        sweeps += sim.step().report.iterations
        spent += time.process_time() - begin
        stress = sim.cell.stress + sim.cell.kinetic_stress
        rows.append((stress[0, 1], stress[1, 1], sim.cell.volume, sim.report.relative_penetration))
    shear, pressure, volume, overlap = np.array(rows).T
    parts = [-a.sum() / b.sum() for a, b in zip(np.array_split(shear, 6), np.array_split(pressure, 6), strict=True)]
    return {"shear_ms": spent / steps * 1e3, "shear_sweeps": sweeps / steps,
            "minutes_of_100000": spent / steps * 1e5 / 60, "shear_strain": sim.cell.strain[0, 1] - strain,
            "shear_unsolved": sim.failures - unsolved, "shear_overlap": float(overlap.max()),
            "shear_friction": float(-shear.sum() / pressure.sum()),
            "shear_friction_error": float(np.std(parts, ddof=1) / np.sqrt(6)),
            "shear_fraction": solid / float(volume.mean()), "shear_pressure": float(pressure.mean()) / PRESSURE,
            "shear_ringing": float(pressure.std()) / PRESSURE}  # fmt: skip
