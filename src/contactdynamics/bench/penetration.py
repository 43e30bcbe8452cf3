"""Benchmark of the two modes of penetration: what they cost, how far bodies overlap, and what is left at rest."""

import time
import warnings

import numpy as np

from ..errors import StepWarning
from ..experiments.options import Option
from ..rigid.simulation import Simulation
from ..scenes import packings
from ..scenes.loads import Drive
from ..scenes.scene import Scene
from ..scenes.shapes.balls import HalfPlane
from ..scenes.shapes.clusters import Cluster
from ..state import FREE
from .options import takes

MODES = ("moreau", "anticipate")


def _scene(gravity: tuple, friction: float) -> Scene:
    scene = Scene(gravity=gravity)
    scene.material("m", density=2500.0)
    scene.contact("m", "m", friction=friction)
    return scene


def disks(friction: float = 0.4) -> Scene:
    """300 disks with radii of 2 to 3 cm above each other in a box 1 m wide."""
    scene, random = _scene((0, -9.81), friction), np.random.default_rng(1)
    for normal, place in (((0, 1), (0, 0)), ((1, 0), (0, 0)), ((-1, 0), (1, 0))):
        scene.add(HalfPlane(normal), material="m", position=place, fixed=True)
    places = np.stack([np.arange(300) % 15, np.arange(300) // 15], axis=1) * 0.065 + 0.045
    scene.add_many(random.uniform(0.02, 0.03, 300), material="m", position=places)
    return scene


def spheres(friction: float = 0.4) -> Scene:
    """490 spheres with a radius of 3 cm above each other in a box 50 cm wide."""
    scene, random = _scene((0, 0, -9.81), friction), np.random.default_rng(1)
    packings.box(scene, material="m", low=(0, 0, 0), high=(0.5, 0.5, 2.0))
    grid = np.stack(np.meshgrid(np.arange(7), np.arange(7), np.arange(10), indexing="ij"), axis=-1).reshape(-1, 3)
    places = 0.07 * grid + 0.035 + random.uniform(0, 0.005, (490, 3))
    scene.add_many(np.full(490, 0.03), material="m", position=places)
    return scene


def drum(friction: float = 0.4) -> Scene:
    """161 disks with radii of 2 to 3 cm in a drum 1 m wide that turns once in three seconds."""
    scene, random = _scene((0, -9.81), friction), np.random.default_rng(1)
    angle = 2 * np.pi * np.arange(120) / 120
    ring = 0.52 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    scene.add(Cluster([0.02] * 120, ring), material="m", position=(0, 0), motion=Drive(spin=2 * np.pi / 3))
    places = 0.062 * np.array([(x, y) for y in range(-8, 9) for x in range(-8, 9) if np.hypot(x, y) < 7.5])[:161]
    scene.add_many(random.uniform(0.02, 0.03, 161), material="m", position=places)
    return scene


def _run(scene: Scene, mode: str, step: float, until: float, rest: float) -> dict:
    """CPU seconds and the largest overlap until a time, and the speed that is left (rms) after more of it."""
    sim = Simulation(scene, time_step=step, penetration=mode, on_failure="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)  # overlaps are what is measured
        Simulation(scene, time_step=step, penetration=mode).run(until=0.3, progress=False)  # kernels come, not timed
        begin = time.process_time()
        sim.run(until=until, progress=False)
    found = {"cpu_seconds": time.process_time() - begin, "overlap": sim.watch.overlap}
    if rest:
        sim.run(until=rest, progress=False)
        free = sim.bodies.kind == FREE
        found["speed_at_rest"] = float(np.sqrt((sim.velocities[free] ** 2).sum(axis=1).mean()))
    return found


CASES = {
    "disks": (disks, {}, 1.0, 1.5), "disks, half the step": (disks, {}, 0.5, 1.5),
    "spheres": (spheres, {}, 1.0, 4.0), "spheres without friction": (spheres, {"friction": 0.0}, 1.0, 4.0),
    "drum": (drum, {}, 1.0, 0.0),
}  # fmt: skip


@takes(
    step=Option(1e-3, "time step", "s", least=1e-5, most=5e-3),
    duration=Option(1.5, "of the motion that is timed", "s", above=0, most=100),
)
def penetration(echo, *, step, duration) -> dict:
    """Scenes in the modes "moreau" and "anticipate": CPU time, largest overlap, speed that is left at rest."""
    results = {}
    for name, (make, options, share, rest) in CASES.items():
        results[name] = {mode: _run(make(**options), mode, share * step, duration, rest) for mode in MODES}
        echo(
            f"{name:<25} "
            + "; ".join(
                f"{mode} {r['cpu_seconds']:.2f} s, {100 * r['overlap']:.1f} %"
                + (f", {1e3 * r['speed_at_rest']:.3f} mm/s left" if rest else "")
                for mode, r in results[name].items()
            )
        )
    return results
