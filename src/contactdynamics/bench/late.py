"""A step near the end of the pile, for this version and another one in turns: `cdyn bench late`."""

import json
import subprocess
import sys
import tempfile

import numpy as np

from ..errors import InputError
from ..experiments.options import Option
from . import late_steps, versions
from .options import takes

POURED = 69.4  # s: the frame of the stored pile before, 0.7 s before the last grain comes
TURN = 20  # steps of one version, then of the other
STAGES = ("detection", "frames", "solve", "integrate")


@takes(
    beside=versions.BESIDE,
    steps=Option(2000, "steps of each", least=TURN),
)
def late(echo, *, beside: str, steps: int) -> dict:
    """A step of the stored pile while its last grains are poured; also by another version, in turns, and the ratio."""
    versions.check(beside)
    poured = versions.stored_pile(POURED)
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/pile.npz"
        np.savez(path, **poured)
        asked = {"now": None} | ({"beside": beside} if beside else {})
        workers = {name: _begin(source, path, scratch) for name, source in asked.items()}
        try:
            found = _in_turns(workers, steps // TURN)
        finally:
            for worker in workers.values():
                worker.kill()
                worker.communicate()  # waits for its end, and closes what it was asked by
    results = {name: _mean(rows, TURN * len(rows)) for name, rows in found.items()}
    for name, r in results.items():
        echo(f"{name:>7}: {r['cpu_milliseconds']:.2f} ms of CPU a step, {r['sweeps']:.1f} sweeps; "
             + ", ".join(f"{stage} {r[f'{stage}_milliseconds']:.2f}" for stage in STAGES))  # fmt: skip
    ratios = {}
    if beside:
        ratios = _ratios(results["now"], results["beside"])
        echo(f"over the other version: {ratios['ratio']:.3f} of the CPU of a step, "
             f"{ratios['motion_ratio']:.3f} of frames and integrate")  # fmt: skip
    return results | ratios


def _begin(source: str | None, path: str, scratch: str) -> subprocess.Popen:
    """A process with the pile, of this version or of that in ``source``."""
    program, world = [sys.executable, late_steps.__file__, path], versions.environment(source, scratch)
    return subprocess.Popen(program, env=world, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _answer(worker: subprocess.Popen):
    line = worker.stdout.readline()
    if not line:
        raise InputError("A version could not be measured: see what it says above.")
    return json.loads(line)


def _in_turns(workers: dict, turns: int) -> dict:
    """What each worker answers in so many turns; each begins every other time."""
    for worker in workers.values():
        _answer(worker)
    found, order = {name: [] for name in workers}, list(workers)
    for _ in range(turns):
        for name in order:
            workers[name].stdin.write(f"{TURN}\n")
            workers[name].stdin.flush()
            found[name].append(_answer(workers[name]))
        order.reverse()
    return found


def _mean(rows: list[dict], steps: int) -> dict:
    """Milliseconds and sweeps of a step."""
    total = {key: sum(row[key] for row in rows) / steps for key in rows[0]}
    stages = {f"{stage}_milliseconds": 1e3 * total[stage] for stage in STAGES}
    return {"cpu_milliseconds": 1e3 * total["cpu"], "sweeps": total["sweeps"]} | stages


def _ratios(now: dict, other: dict) -> dict:
    """CPU of a step, and time of frames and integrate, over those of the other version."""
    motion = [r["frames_milliseconds"] + r["integrate_milliseconds"] for r in (now, other)]
    return {"ratio": now["cpu_milliseconds"] / other["cpu_milliseconds"], "motion_ratio": motion[0] / motion[1]}
