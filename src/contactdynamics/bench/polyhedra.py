"""Benchmarks of polyhedra: walls and an arch of blocks at rest, the growth with their number, and falling rock."""

import time

import numpy as np

from ..experiments.options import Option
from ..rigid.simulation import STAGES, Simulation
from ..scenes import packings
from ..scenes.scene import Scene
from ..scenes.shapes.balls import Plane
from ..scenes.shapes.polyhedra import Polyhedron
from ..state import FREE
from .options import takes

GRAVITY, STEP, FRICTION, DENSITY = 9.81, 1e-3, 0.6, 2000.0
WALLS = {105: (10, 10), 1010: (20, 50)}  # blocks: courses, length in blocks
GROWTH = (10, 30, 100, 300)  # length in blocks of walls of ten courses


def stone_scene() -> Scene:
    """A scene of stone on a floor, with the friction of the comparison."""
    scene = Scene(gravity=(0, 0, -GRAVITY))
    scene.material("stone", density=DENSITY)
    scene.contact("stone", "stone", friction=FRICTION)
    scene.add(Plane((0, 0, 1)), material="stone", fixed=True)
    return scene


def wall(courses: int, length: int) -> Simulation:
    """A wall of blocks 1 x 0.5 x 0.5 m in running bond that touch at the start."""
    scene = stone_scene()
    packings.wall(scene, material="stone", length=float(length), courses=courses, block=(1.0, 0.5), depth=0.5,
                  position=(0, 0, 0))  # fmt: skip
    return Simulation(scene, time_step=STEP)


def arch(voussoirs: int = 25) -> Simulation:
    """A semicircular arch, thickness over radius 0.2, on two fixed abutments."""
    scene = stone_scene()
    packings.arch(scene, material="stone", span=10.0, thickness=1.0, voussoirs=voussoirs, depth=1.0,
                  position=(0, 0, 2.0))  # fmt: skip
    return Simulation(scene, time_step=STEP)


def pit(count: int, seed: int = 1) -> Simulation:
    """Irregular rock above each other in a pit, about to fall together."""
    random, scene = np.random.default_rng(seed), stone_scene()
    side = max(2, round((count / 2) ** (1 / 3)))
    wide = 0.5 * side
    for normal, place in (
        ((1, 0, 0), (0, 0, 0)),
        ((-1, 0, 0), (wide, 0, 0)),
        ((0, 1, 0), (0, 0, 0)),
        ((0, -1, 0), (0, wide, 0)),
    ):
        scene.add(Plane(normal), material="stone", position=place, fixed=True)
    number = np.arange(count)
    places = np.stack([number % side, number // side % side, number // side**2], axis=1) * 0.5 + 0.25
    shapes = [Polyhedron.irregular(random.uniform(0.15, 0.24), corners=(8, 14), seed=random) for _ in number]
    turns = random.normal(size=(count, 4))
    scene.add_many(shapes, material="stone", position=places, rotation=turns)
    return Simulation(scene, time_step=STEP, max_iterations=2000, on_failure="ignore")


def _rest(make, steps: int, repeats: int) -> dict:
    """First step (s), CPU milliseconds per step at rest, the largest speed over g h, and how far anything has moved."""
    sim = make()
    first = sim.positions
    begin = time.process_time()
    sim.step()
    once = time.process_time() - begin
    for _ in range(steps):
        sim.step()
    sim.seconds = dict.fromkeys(sim.seconds, 0.0)
    times, sweeps = [], 0
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(steps):
            sweeps += sim.step().report.iterations
        times.append((time.process_time() - begin) / steps * 1e3)
    row = {
        "bodies": int((sim.bodies.kind == FREE).sum()), "contacts": sim.contact_set.count, "first_seconds": once,
        "cpu_milliseconds": float(np.median(times)), "spread_milliseconds": float(np.ptp(times)),
        "sweeps": sweeps / (repeats * steps), "speed_over_gh": float(np.abs(sim.velocities).max() / (GRAVITY * STEP)),
        "moved": float(np.abs(sim.positions - first).max()), "seconds_simulated": sim.time,
    }  # fmt: skip
    for stage in STAGES:
        row[f"{stage}_milliseconds"] = sim.seconds[stage] / (repeats * steps) * 1e3
    return row


def _say(echo, name: str, r: dict) -> None:
    echo(
        f"{name}, {r['bodies']} blocks with {r['contacts']} contacts: {r['cpu_milliseconds']:.3f} ms CPU per step "
        f"(repeats within {r['spread_milliseconds']:.3f}), first step {r['first_seconds']:.2f} s, {r['sweeps']:.1f} "
        f"sweeps, speed {r['speed_over_gh']:.0e} g h, moved {r['moved']:.0e} m in {r['seconds_simulated']:.1f} s; "
        f"detection {r['detection_milliseconds']:.3f}, frames {r['frames_milliseconds']:.3f}, solve "
        f"{r['solve_milliseconds']:.3f} ms"
    )


@takes(
    steps=Option(200, "steps of a repeat", least=10),
    repeats=Option(3, "repeats", least=1),
    growth=Option(True, "measure the growth with the number of blocks too"),
    rocks=Option(500, "falling rocks; 0: none", least=0),
)
def polyhedra(echo, *, steps: int, repeats: int, growth: bool, rocks: int) -> dict:
    """Walls of 105 and 1010 blocks and an arch of 25 at rest, per step; growth to 3000 blocks; falling rock."""
    wall(2, 2).step()  # kernels are compiled
    results = {}
    for name, make in (
        ("wall_105", lambda: wall(*WALLS[105])),
        ("arch_25", arch),
        ("wall_1010", lambda: wall(*WALLS[1010])),
    ):
        row = _rest(make, steps, repeats)
        _say(echo, name, row)
        results |= {f"{name}_{key}": value for key, value in row.items()}
    if growth:
        table = [_rest(lambda length=length: wall(10, length), max(10, steps // 4), repeats) for length in GROWTH]
        each = [r["cpu_milliseconds"] / r["bodies"] * 1e3 for r in table]
        for r, micro in zip(table, each, strict=True):
            echo(f"{r['bodies']:>5} blocks: {r['cpu_milliseconds']:.3f} ms, {micro:.2f} us per block")
        exponent = float(
            np.polyfit(np.log([r["bodies"] for r in table]), np.log([r["cpu_milliseconds"] for r in table]), 1)[0]
        )
        echo(f"a step grows as n^{exponent:.2f}; per block {max(each) / min(each) - 1:.0%} between the extremes")
        results |= {"growth": table, "exponent": exponent, "per_block_spread": max(each) / min(each) - 1}
    if rocks:
        results |= {f"rocks_{key}": value for key, value in _falling(echo, rocks).items()}
    return results


def _falling(echo, count: int) -> dict:
    """Milliseconds per step of rock that has fallen together and moves on."""
    sim = pit(count)
    while sim.time < 0.4:
        sim.step()
    sim.seconds = dict.fromkeys(sim.seconds, 0.0)
    begin, sweeps = time.process_time(), 0
    for _ in range(100):
        sweeps += sim.step().report.iterations
    cpu = (time.process_time() - begin) / 100 * 1e3
    contacts = sim.contact_set.count
    echo(
        f"{count} falling rocks, {contacts} contacts: {cpu:.2f} ms CPU per step, {sweeps / 100:.1f} sweeps; detection "
        f"{sim.seconds['detection'] * 10:.2f}, solve {sim.seconds['solve'] * 10:.2f} ms"
    )
    return {"cpu_milliseconds": cpu, "contacts": contacts, "sweeps": sweeps / 100}
