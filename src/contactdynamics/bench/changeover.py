"""What it costs that `solver="auto"` may leave the sweeps: each step of the bridge by it and by sweeps alone."""

import time

import numpy as np

from ..experiments import _bridge, bridge
from ..experiments.options import Option
from ..rigid.simulation import Simulation
from .options import takes

CASES = ((0.6, 1e-3, 0.1), (0.3, 1e-3, 0.1), (0.6, 1e-8, 0.0))  # friction, tolerance, speed of the push, m/s
FIRST = 6  # steps that are not counted: kernels are compiled in them, and nothing is known of the contacts


def _twins(friction: float, tolerance: float, speed: float) -> tuple[Simulation, Simulation]:
    """The bridge twice, for "auto" and for "accelerated"."""
    p = bridge.PARAMETERS | {"speed": speed}
    made = [
        Simulation(
            _bridge.bridge(p, friction).scene, time_step=p["step"], tolerance=tolerance, solver=solver,
            on_failure="ignore",
        )
        for solver in ("auto", "accelerated")
    ]  # fmt: skip
    return made[0], made[1]


def _follow(twin: Simulation, sim: Simulation) -> None:
    """Put a simulation of the same scene where another one is, with the memory of its contacts."""
    twin.bodies.position[:], twin.bodies.orientation[:], twin.rows[:] = (
        sim.bodies.position, sim.bodies.orientation, sim.rows
    )  # fmt: skip
    twin.contact_set.restore(sim.contact_set.memory())
    twin.steps, twin.time = sim.steps, sim.time


def _timed(sim: Simulation) -> tuple[float, bool]:
    """Milliseconds of CPU of a step, and whether it is solved."""
    begin = time.process_time()
    solved = sim.step().report.converged
    return (time.process_time() - begin) * 1e3, solved


def _compared(friction: float, tolerance: float, speed: float, steps: int) -> dict:
    """CPU of "auto" and of sweeps alone, in the steps where these converge and in all."""
    auto, swept = _twins(friction, tolerance, speed)
    rows = []
    for k in range(steps):
        _follow(swept, auto)
        pair = (auto, swept) if k % 2 else (swept, auto)  # who comes first finds the caches cold
        found = {sim is auto: _timed(sim) for sim in pair}
        rows.append((*found[True], *found[False]))
    cpu, solved, alone, converges = np.array(rows[FIRST:], dtype=float).T
    where = converges > 0
    return {
        "friction": friction, "tolerance": tolerance, "speed": speed, "steps": len(cpu),
        "unsolved": int((solved == 0).sum()), "converge": int(where.sum()),
        "ratio": float(cpu[where].sum() / alone[where].sum()) if where.any() else float("nan"),
        "ratio_of_all": float(cpu.sum() / alone.sum()), "cpu_milliseconds": float(cpu.mean()),
    }  # fmt: skip


@takes(steps=Option(300, "steps of each bridge", "1", least=FIRST + 1))
def changeover(echo, *, steps) -> dict:
    """Steps of the bridge by solver="auto" and by sweeps alone, from the same states: CPU where these converge."""
    table = []
    for case in CASES:
        table.append(_compared(*case, steps))
        r = table[-1]
        echo(
            f"friction {r['friction']:g}, tolerance {r['tolerance']:g}, push {r['speed']:g} m/s: of {r['steps']} steps "
            f"sweeps alone solve {r['converge']}, auto {r['steps'] - r['unsolved']}; auto takes {r['ratio']:.2f} of "
            f"their CPU where they do, {r['ratio_of_all']:.2f} in all, {r['cpu_milliseconds']:.2f} ms a step"
        )
    return {"worst_ratio": max(row["ratio"] for row in table), "table": table}
