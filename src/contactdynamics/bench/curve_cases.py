"""The cases of ``cdyn bench curve``, by the public face alone: any version of the package can be asked.

Run as a program, ``curve_cases.py REQUEST ANSWER``, it measures with the package that it finds: the one is a JSON file
with a list of [case, tolerance, file or null], into the other goes a list of the results.
"""

import json
import sys
import time
import warnings

import numpy as np

import contactdynamics as cd

GRAVITY, H = 981.0, 2e-4  # cm/s^2 and s, of heap and pile
SETTLE, WATCHED = 40, 100  # steps before those that are measured, and these


def _timed(sim, steps: int) -> tuple[float, float]:
    """CPU milliseconds and sweeps of a step, over so many."""
    begin, sweeps = time.process_time(), 0
    for _ in range(steps):
        sweeps += sim.step().report.iterations
    return (time.process_time() - begin) / steps * 1e3, sweeps / steps


def heap(tolerance: float, path: str) -> dict:
    """Grains at rest on which others fall, one in 25 steps: how far those at rest move, over what gravity would."""
    with np.load(path) as file:
        floor, floor_radii, positions, radii = (file[n] for n in ("floor", "floor_radii", "positions", "radii"))
    scene = cd.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="grain", position=(0, 0, -0.5), fixed=True)
    scene.add_many(floor_radii, material="grain", position=floor, fixed=True)
    scene.add_many(radii, material="grain", position=positions)
    sim = cd.Simulation(scene, time_step=H, tolerance=tolerance, on_failure="ignore", check=False)
    for _ in range(SETTLE):
        sim.step()
    first, n = 1 + len(floor), len(radii)
    top, rng = positions[positions[:, 2].argmax()], np.random.default_rng(1)
    before, cpu, sweeps = sim.positions[first : first + n], 0.0, 0.0
    depth = _overlap(sim, radii.mean())
    for k in range(WATCHED // 25):
        place = top + np.append(rng.uniform(-0.8, 0.8, 2), 0.6 + 0.45 * k)
        sim.add(cd.Sphere(0.2), material="grain", position=place)
        one, two = _timed(sim, 25)
        cpu, sweeps = cpu + one * 25 / WATCHED, sweeps + two * 25 / WATCHED
    moved = np.linalg.norm(sim.positions[first : first + n] - before, axis=1)
    return {"cpu_milliseconds": cpu, "sweeps": sweeps, "creep": float(moved.mean() / (WATCHED * GRAVITY * H**2)),
            "overlap": max(0.0, (_overlap(sim, radii.mean()) - depth) / WATCHED)}  # fmt: skip


def _overlap(sim, radius: float) -> float:
    """The mean overlap of the contacts over the mean radius."""
    return float(np.maximum(-sim.contacts.gap, 0.0).mean() / radius)


def box(tolerance: float, path: str) -> dict:
    """Spheres that fall into an open box: cost of fall and rest, speed left over g h, mean overlap."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    scene = cd.Scene(gravity=(0.0, 0.0, -float(data["gravity"])))
    scene.material("grain", density=float(data["density"]))
    scene.contact("grain", "grain", friction=float(data["mu"]), restitution=float(data["restitution"]))
    low, high = data["box"]
    for normal, point in (((0, 0, 1), low), ((1, 0, 0), low), ((0, 1, 0), low), ((-1, 0, 0), high), ((0, -1, 0), high)):
        scene.add(cd.Plane(normal), material="grain", position=point, fixed=True)
    scene.add_many(data["radii"], material="grain", position=data["positions"])
    options = {"penetration": "anticipate", "on_failure": "ignore", "max_iterations": 20_000}
    for steps in (60, 0):  # compile first
        sim = cd.Simulation(scene, time_step=1e-3, tolerance=tolerance, **options)
        for _ in range(steps):
            sim.step()
    fall, sweeps = _timed(sim, 500)
    before = sim.positions.copy()
    rest, _ = _timed(sim, 100)
    moved = np.linalg.norm(sim.positions - before, axis=1)[5:].mean()
    creep = float(moved / (100 * data["gravity"] * 1e-6))
    return {"cpu_milliseconds": (5 * fall + rest) / 6, "rest_milliseconds": rest, "sweeps": sweeps, "creep": creep,
            "overlap": _overlap(sim, data["radii"].mean())}  # fmt: skip


def tower(tolerance: float, path=None) -> dict:
    """A tower of 100 spheres for 0.3 s: sag in diameters, error of the force on the ground, time of all steps."""
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=2500)
    scene.contact("stone", "stone", friction=0.4)
    scene.add(cd.Plane((0, 0, 1)), material="stone", fixed=True)
    for k in range(100):
        scene.add(cd.Sphere(0.01), material="stone", position=(0, 0, 0.01 + 0.02 * k))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=tolerance, on_failure="ignore", max_iterations=20_000)
    start = sim.positions.copy()
    cpu, sweeps = _timed(sim, 300)
    moved = np.abs(sim.positions - start)[1:, 2].max() / 0.02
    ground = (sim.contacts.bodies == 0).any(axis=1)
    weight = 100 * 2500 * 4 / 3 * np.pi * 1e-6 * 9.81
    force = abs(sim.contacts.impulse[ground, 0].sum() / 1e-3 / weight - 1)
    return {"cpu_milliseconds": cpu, "sweeps": sweeps, "creep": float(moved), "force": float(force)}


def chain(tolerance: float, path=None) -> dict:
    """A row of 300 disks pushed at one end: steps until the other end has half of the mean speed, their time in all."""
    scene = cd.Scene(gravity=(0.0, 0.0))
    scene.material("stone", density=2500)
    scene.contact("stone", "stone", friction=0.4)
    for k in range(300):
        scene.add(cd.Disk(0.01), material="stone", position=(0.02 * k, 0.0))
    scene.force(0, (1.0, 0.0))
    sim = cd.Simulation(scene, time_step=1e-3, tolerance=tolerance, on_failure="ignore", max_iterations=20_000)
    steps, cpu, sweeps = 0, 0.0, 0.0
    while steps < 300 and not (steps and sim.velocities[-1, 0] > 0.5 * sim.velocities[:, 0].mean()):
        one, two = _timed(sim, 1)
        steps, cpu, sweeps = steps + 1, cpu + one, sweeps + two
    return {"cpu_milliseconds": cpu, "sweeps": sweeps, "creep": float(steps)}


CASES = {"heap": heap, "pile": heap, "box": box, "tower": tower, "chain": chain}


def main(request: str, answer: str) -> None:
    """Measure what is asked."""
    warnings.simplefilter("ignore")
    tower(1e-3), chain(1e-3)  # compile
    with open(request) as file:
        asked = json.load(file)
    rows = [{"tolerance": tolerance} | CASES[case](tolerance, path) for case, tolerance, path in asked]
    with open(answer, "w") as file:
        json.dump(rows, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
