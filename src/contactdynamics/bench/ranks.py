"""Benchmark of processes that share a scene: time, messages, memory, against one process and against threads."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..experiments.options import Option
from ..rigid import contact_set, simulation
from . import heaps
from .options import takes

KICK = 5.0  # of g h: the random velocities with which each step begins


def held(item) -> int:
    """Bytes of all arrays that an object of the package and what it has hold, each counted once."""
    seen, total, queue = set(), 0, [item]
    while queue:
        item = queue.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            if isinstance(item.base, np.ndarray):
                queue.append(item.base)
            else:
                total += item.nbytes
        elif isinstance(item, dict):
            queue += item.values()
        elif isinstance(item, list | tuple):
            queue += item
        elif type(item).__module__.startswith("contactdynamics.rigid") and hasattr(item, "__dict__"):
            queue.append(vars(item))
    return total


def child(grains, layers, steps, threads: int, tolerance, rolling, blocks, shared: bool, out: str) -> None:
    """Make the steps, on the processes of mpiexec where ``shared``, and write what they took to the file ``out``."""
    comm = None
    if shared:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    simulation.clock = contact_set.clock = time.process_time  # stages by CPU: the machine may do other things too
    options = {"threads": threads, "ranks": comm, "tolerance": tolerance}
    sim = heaps.wall(grains, layers, **options) if blocks else heaps.lattice(grains, layers, rolling, **options)
    rng, free = np.random.default_rng(4), np.flatnonzero(sim.rows[:, 6] > 0.0)
    walls, cpu, sweeps, seconds, before = [], 0.0, 0, dict.fromkeys(sim.seconds, 0.0), (0, 0, 0.0)
    for step in range(steps + 1):
        # Not `sim.rows`, which would put all bodies together: each process kicks those that it knows.
        sim.roster.rows[free, :3] += KICK * heaps.GRAVITY * sim.time_step * rng.uniform(-1, 1, (len(free), 3))
        if comm is not None:
            world = sim._team.world
            before = (world.messages, world.bytes, world.waited) if step == 1 else before
            comm.Barrier()
        begin, used = time.perf_counter(), time.process_time()
        done = sim.step()
        if step:  # the first one compiles and builds lists
            walls.append(time.perf_counter() - begin)
            cpu += time.process_time() - used
            sweeps += done.report.iterations
            seconds = {stage: seconds[stage] + value for stage, value in done.seconds.items()}
    after, met = () if comm is None else (world.messages, world.bytes, world.waited), sim.contact_set
    told = {
        "walls": walls, "cpu": cpu / steps, "sweeps": sweeps / steps,
        "contacts": done.contacts, "bodies": len(free),
        "seconds": {stage: value / steps for stage, value in seconds.items()},
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "arrays": held(sim) / 1e6,
        "contact_arrays": held([met.searches, met.equations, met._division, met.near.lists[:3]]) / 1e6,
        "state": zlib.crc32(sim.bodies.position.tobytes(), zlib.crc32(sim.rows.tobytes())),
    }  # fmt: skip
    if comm is not None:
        names = ("messages", "bytes", "waited")
        told |= {name: (b - a) / steps for name, a, b in zip(names, before, after, strict=True)}
    everyone = [told] if comm is None else comm.gather(told)
    if everyone is not None:
        Path(out).write_text(json.dumps(everyone))


def _run(processes: int | None, threads: int, job: dict, nice: int) -> list[dict]:
    """What `child` tells of each process; without MPI where ``processes`` is None."""
    with tempfile.TemporaryDirectory(prefix="cdyn-") as folder:
        out = Path(folder) / "told.json"
        _launch(processes, job | {"threads": threads, "shared": bool(processes), "out": str(out)}, nice)
        return json.loads(out.read_text())


def _better(one: dict, other: dict) -> dict:
    """Of what a process told of the same steps in two rounds: the shorter time of each step, the rest of the better."""
    walls = np.minimum(one["walls"], other["walls"]).tolist()
    return min(one, other, key=lambda told: told["cpu"]) | {"walls": walls}


def _launch(processes: int | None, job: dict, nice: int) -> None:
    """Run `child`."""
    call = f"from contactdynamics.bench.ranks import child; child(**{job})"
    command = [sys.executable, "-c", call]
    if processes:
        launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if launcher is None:
            raise InputError("There is no mpiexec; install one by `pip install contactdynamics[mpi]`.")
        command = [launcher, "-n", str(processes), *command]
    if nice:
        command = ["nice", "-n", str(nice), *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"The benchmark on {processes or 1} processes failed: {(done.stderr or done.stdout)[-400:]}")


@takes(
    grains=Option(100_000, "spheres of a lattice, or blocks of a wall", least=1000, most=10**7),
    layers=Option(8, "of the lattice, or courses of the wall", least=1, most=100),
    steps=Option(5, "that are timed, each of which begins with random velocities", least=1, most=10_000),
    ranks=Option([2], "numbers of processes", least=1, most=8),
    tolerance=Option(1e-3, "to which steps are solved", least=1e-8, most=0.1),
    rolling=Option(0.0, "by which spheres resist rolling: their contacts then have frames and moments", "m", least=0.0),
    blocks=Option(False, "take a wall of blocks in running bond, in the place of spheres"),
    rounds=Option(3, "in which the cases take turns; of each step the shortest time counts", least=1, most=100),
    nice=Option(0, "priority of the measured processes, as of nice(1)", least=-20, most=19),
)
def ranks(echo, *, grains, layers, steps, ranks, tolerance, rolling, blocks, rounds, nice) -> dict:
    """A step of a shaken lattice on one process, on two threads and on several processes: time, messages, memory."""
    job = {"grains": grains, "layers": layers, "steps": steps, "tolerance": tolerance, "rolling": rolling}
    job["blocks"] = blocks
    cases = {"1 process": (None, 1), "2 threads": (None, 2)} | {f"{count} processes": (count, 1) for count in ranks}
    found = {}
    for turn in range(rounds):  # in turns: the machine may do other things too
        for name, (processes, threads) in cases.items():
            told = _run(processes, threads, job, nice)
            if any(each["state"] != found.get("1 process", told)[0]["state"] for each in told):
                raise InputError(f"{name} have another state than one process: a bug of the program.")
            found[name] = told if turn == 0 else [_better(*both) for both in zip(found[name], told, strict=True)]
    for each in [each for told in found.values() for each in told]:
        each["wall"] = float(np.median(each["walls"]))
    walls = {name: max(each["wall"] for each in told) for name, told in found.items()}
    one = found["1 process"][0]
    for name, told in found.items():
        busiest = max(each["cpu"] for each in told)
        text = (
            f"{name:<12} {1e3 * walls[name]:8.1f} ms a step, {walls['1 process'] / walls[name]:5.2f} x; "
            f"CPU of the busiest {1e3 * busiest:8.1f} ms, {one['cpu'] / busiest:5.2f} x; "
            f"{told[0]['arrays']:.0f} MB in arrays, {told[0]['contact_arrays']:.0f} of contacts and lists, "
            f"{told[0]['memory']:.0f} in all"
        )
        if "messages" in told[0]:
            text += f"; {told[0]['messages']:.0f} messages, {told[0]['bytes'] / 1e6:.2f} MB a step"
        echo(text)
    stages = ", ".join(f"{stage} {1e3 * value:.1f}" for stage, value in one["seconds"].items())
    what = "blocks" if blocks else "grains"
    size = f"{one['bodies']} {what}, {one['contacts']} contacts, {one['sweeps']:.0f} sweeps a step"
    echo(f"{size}; one process: {stages} ms")
    echo("the same bits in all")
    return {"cases": found, "grains": one["bodies"], "contacts": one["contacts"], "sweeps": one["sweeps"]} | {
        f"speedup_{name.replace(' ', '_')}": walls["1 process"] / wall for name, wall in walls.items()
    }
