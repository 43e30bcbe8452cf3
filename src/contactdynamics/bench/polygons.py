"""Benchmarks of polygons: irregular grains in a box, and a step of a wall and of the stone bridge at rest."""

import time
from itertools import pairwise

import numpy as np

from ..experiments import _bridge, bridge
from ..rigid.simulation import STAGES, Simulation
from ..scenes.scene import Scene
from ..scenes.shapes.balls import HalfPlane
from ..scenes.shapes.polygons import Polygon, Rectangle
from ..state import FREE

SIZES = (1250, 2500, 5000)


def box(count: int, *, seed: int = 1, tolerance: float = 1e-3) -> Simulation:
    """``count`` irregular polygons above each other in a box, about to fall together."""
    random = np.random.default_rng(seed)
    radii = random.uniform(0.006, 0.01, count)
    columns = int(np.sqrt(4.0 * count))
    pitch = 0.0205
    rows = np.arange(count) // columns
    places = np.stack([(np.arange(count) % columns + 0.5) * pitch, (rows + 0.5) * pitch], axis=1)
    scene = Scene(gravity=(0, -9.81))
    scene.material("grain", density=2000.0)
    scene.contact("grain", "grain", friction=0.5)
    for normal, place in (((0, 1), (0, 0)), ((1, 0), (0, 0)), ((-1, 0), (columns * pitch, 0))):
        scene.add(HalfPlane(normal), material="grain", position=place, fixed=True)
    grains = [Polygon.irregular(r, seed=random) for r in radii]
    scene.add_many(grains, material="grain", position=places, rotation=random.uniform(0, 2 * np.pi, count),
                   velocity=random.normal(0, 0.05, (count, 2)))  # fmt: skip
    return Simulation(scene, time_step=5e-4, tolerance=tolerance, max_iterations=5000, on_failure="ignore")


def blocks(rows: int = 10, columns: int = 6, width: float = 0.4, height: float = 0.2) -> Simulation:
    """A wall in running bond, about as many blocks as a bridge has stones."""
    scene = Scene(gravity=(0, -9.81))
    scene.material("stone", density=2400.0)
    scene.contact("stone", "stone", friction=0.6)
    ground = Rectangle(columns * width + 1.0, 0.5)
    scene.add(ground, material="stone", position=(0.5 * columns * width, -0.25), fixed=True)
    for row in range(rows):
        cuts = np.arange(columns + 1) * width
        if row % 2:
            cuts = np.concatenate([[0.0], (np.arange(columns) + 0.5) * width, [columns * width]])
        for left, right in pairwise(cuts):
            scene.add(Rectangle(right - left, height), material="stone",
                      position=(0.5 * (left + right), (row + 0.5) * height))  # fmt: skip
    return Simulation(scene, time_step=1e-3)


def stones() -> Simulation:
    """The bridge of `cdyn run bridge`, with its step and tolerance, under its own weight: nothing pushes."""
    p = bridge.PARAMETERS | {"speed": 0.0}
    scene = _bridge.bridge(p, p["frictions"][0]).scene
    return Simulation(scene, time_step=p["step"], tolerance=p["tolerance"], on_failure="ignore")


def _measured(sim: Simulation, steps: int) -> dict:
    """Milliseconds per step in all and by stage (CPU and wall clock), per contact, and sweeps."""
    sim.seconds = dict.fromkeys(sim.seconds, 0.0)
    cpu, wall, sweeps, contacts = time.process_time(), time.perf_counter(), 0, 0
    for _ in range(steps):
        done = sim.step()
        sweeps, contacts = sweeps + done.report.iterations, contacts + done.contacts
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    contacts /= steps
    row = {
        "bodies": int((sim.bodies.kind == FREE).sum()), "contacts": contacts, "sweeps": sweeps / steps,
        "milliseconds": wall / steps * 1e3, "cpu_milliseconds": cpu / steps * 1e3,
        "microseconds_per_contact": wall / steps / max(contacts, 1) * 1e6,
    }  # fmt: skip
    for stage in STAGES:
        row[f"{stage}_milliseconds"] = sim.seconds[stage] / steps * 1e3
    row["detection_share"] = sim.seconds["detection"] / sum(sim.seconds.values())
    return row


def polygons(echo) -> dict:
    """5000 irregular polygons in a box, per step and per contact by stage; growth; steps of wall and bridge."""
    warm = box(50)
    for _ in range(5):
        warm.step()
    rows = []
    for count in SIZES:
        sim = box(count)
        while sim.time < 0.3:  # fall together
            sim.step()
        rows.append(_measured(sim, 200))
        r = rows[-1]
        echo(
            f"{r['bodies']:>5} polygons {r['contacts']:>7.0f} contacts: {r['milliseconds']:.2f} ms per step (CPU "
            f"{r['cpu_milliseconds']:.2f}), {r['microseconds_per_contact']:.3f} us per contact, {r['sweeps']:.1f} "
            f"sweeps; detection {r['detection_milliseconds']:.2f}, frames {r['frames_milliseconds']:.2f}, solve "
            f"{r['solve_milliseconds']:.2f}, integrate {r['integrate_milliseconds']:.2f} ms"
        )
    x = np.log([r["bodies"] for r in rows])
    exponents = {
        stage: float(np.polyfit(x, np.log([r[f"{stage}_milliseconds"] for r in rows]), 1)[0])
        for stage in ("detection", "frames")
    }
    echo(f"detection takes {rows[-1]['detection_share']:.0%} of a step and grows as n^{exponents['detection']:.2f}")
    resting = {}
    for name, sim, warm_up in (("blocks", blocks(), 300), ("bridge", stones(), 500)):
        for _ in range(warm_up):
            sim.step()
        rest = resting[name] = _measured(sim, 1000)
        echo(
            f"a step of the {'wall' if name == 'blocks' else name} at rest, {rest['bodies']} blocks with "
            f"{rest['contacts']:.0f} contacts: {rest['milliseconds']:.3f} ms (CPU {rest['cpu_milliseconds']:.3f}), "
            f"{rest['sweeps']:.0f} sweeps"
        )
    numbers = {f"{name}_{k}": v for name, row in (("box", rows[-1]), *resting.items()) for k, v in row.items()}
    return {"table": rows, "exponents": exponents, **numbers}
