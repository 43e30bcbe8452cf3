"""Side by side with YADE and Siconos: the same scenes in the same run, each peer in a process with its own Python.

All codes are compared over the same steps of the scene: the fall from its first state, or short pieces of it that start
from states of our own run where a peer is slow, and the bed at rest from one settled state. For springs, which need
many small steps, the time is that of one step of the scene (1e-3 s of motion): equal work is equal simulated time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from ..errors import InputError
from ..experiments.options import Option
from ..rigid.simulation import Simulation
from ..state import FREE
from . import heaps
from .options import takes
from .speed import box_scene, scene_files

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "peers"
OPTIONS = {
    # Spring stiffness and step as a user of soft grains would choose them: half the time of a wave through a grain.
    "yade": {"young": 1e7, "poisson": 0.3, "damping": 0.2, "step": 2e-5},
    "siconos": {"margin": 0.02, "iterations": 100, "tolerance": 1e-3},
}


@takes(
    only=Option("", "one peer, yade or siconos; both where empty"),
    grains=Option(0, "only the scene of this size; 0: all", least=0),
    fall=Option(500, "steps of the fall", least=1),
    rest=Option(100, "steps at rest", least=1),
    pieces=Option(3, "pieces of the fall in which a slow peer does some steps", least=1),
    slow_steps=Option(1, "steps of a slow peer in each piece, and at rest", least=1),
    seconds=Option(90.0, "the most that a part may take", "s", above=0),
    yade=Option("yade", "the command that starts YADE"),
    siconos=Option("/usr/bin/python3", "the Python that has Siconos"),
)
def peers(
    echo, folder: str | None = None, *, only, grains, fall, rest, pieces, slow_steps, seconds, yade, siconos
) -> dict:
    """The scenes of FOLDER beside YADE and Siconos where they are installed: time, overlap, speed left, and the ratios.

    A slow peer starts from our states, in the middle of each piece of the fall and at rest.
    """
    if only and only not in OPTIONS:
        raise InputError(f"only={only} is no peer; choose {' or '.join(OPTIONS)}, or leave it out for both.")
    commands = {"yade": _yade(yade), "siconos": _siconos(siconos)}
    present = {}
    for name in [only] if only else OPTIONS:
        command = commands[name]
        if isinstance(command, str):
            echo(f"{name} is left out: {command}; benchmarks/peers/README.md says how to get it.")
        else:
            present[name] = command
    paths = [path for path in scene_files(folder, "peers") if not grains or path.stem == f"scene_{grains}"]
    if not paths:
        raise InputError(f"There is no scene_{grains}.npz in {folder}; leave grains out for all scenes.")
    heaps.lattice(100).run(until=4e-4)  # compile
    results = {}
    for path in paths:
        # A slow code starts in the middle of each piece of the fall; all end with the bed at rest.
        starts = [int((k + 0.5) * fall / pieces) for k in range(pieces)]
        parts = {
            "yade": [(0, fall - 1), (fall, rest)],
            "siconos": [*((k, slow_steps) for k in starts), (fall, slow_steps)],
        }
        with tempfile.TemporaryDirectory(prefix="cdyn-") as scratch:
            ours, states = _ours(path, fall, rest, {0, fall, *starts})
            np.savez(Path(scratch) / "states.npz", **states)
            results[path.stem] = {"ours": ours.summary(fall)}
            echo(f"{path.stem}: CPU time of one step of 1e-3 s, overlap over a radius\n{HEAD}")
            echo(_lines("ours", results[path.stem]["ours"]))
            for name, command in present.items():
                job = {"scene": str(path.resolve()), "parts": parts[name], "seconds": seconds, "options": OPTIONS[name]}
                try:
                    theirs = _ask(command, job, Path(scratch), ours.radii, ours.box)
                except subprocess.CalledProcessError as error:
                    last = (error.stderr or error.stdout or "no message").strip().splitlines()[-1]
                    echo(f"{name} failed and is left out: {last}")
                    continue
                results[path.stem][name] = theirs.summary(fall) | _ratios(ours, theirs, fall)
                echo(_lines(name, results[path.stem][name]))
    return results | _flat(results)


# ---- who is there ----------------------------------------------------------------------------------------------------


def _yade(program: str) -> list | str:
    """The command of YADE, or why there is none."""
    found = shutil.which(program)
    if not found or not SCRIPTS.exists():
        return "its scripts come with the source only" if found else f"there is no program {program}"
    return [found, "-n", "-x", "-j1", str(SCRIPTS / "yade_scene.py")]


def _siconos(python: str) -> list | str:
    """The command of Siconos, or why there is none."""
    found = shutil.which(python)
    if not found:
        return f"there is no program {python}"
    probe = subprocess.run(
        [found, "-c", "import siconos.kernel"], capture_output=True, env=peer_environment(), check=False
    )
    if probe.returncode:
        return f"{python} does not have it"
    return [found, str(SCRIPTS / "siconos_scene.py")] if SCRIPTS.exists() else "its scripts come with the source only"


def peer_environment() -> dict:
    """That of this process without its Python, so that a peer loads its own; one thread."""
    own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in own}
    path = [p for p in kept.get("PATH", "").split(os.pathsep) if p != str(Path(sys.executable).parent)]
    return kept | {"PATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


# ---- runs ------------------------------------------------------------------------------------------------------------


class Track:
    """What a code did: CPU time and counts of each step, positions after it, the last velocities."""

    def __init__(self, radii, box, version=""):
        self.radii, self.box, self.version = radii, box, version
        self.cpu, self.reports, self.overlaps, self.speed, self.cut = {}, {}, {}, np.nan, False

    def add(self, step: int, cpu: float, report: dict, positions) -> None:
        """One step, numbered in the scene."""
        self.cpu[step], self.reports[step] = cpu, report
        self.overlaps[step] = overlap(positions, self.radii, self.box)

    def summary(self, fall: int) -> dict:
        """Means over the steps of the fall and at rest."""
        found = {"version": self.version} if self.version else {}
        for name, steps in (("fall", [k for k in self.cpu if k < fall]), ("rest", [k for k in self.cpu if k >= fall])):
            if steps:
                reports = [self.reports[k] for k in steps]
                found |= {
                    f"{name}_steps": len(steps),
                    f"{name}_milliseconds": self.milliseconds(steps),
                    f"{name}_iterations": float(np.mean([r["iterations"] for r in reports])),
                    f"{name}_overlap": max(self.overlaps[k] for k in steps),
                    f"{name}_residual": max((r["residual"] for r in reports if "residual" in r), default=None),
                    f"{name}_contacts": reports[-1]["contacts"],
                }
        return found | {"speed_left": self.speed, "cut": self.cut}

    def milliseconds(self, steps) -> float:
        """Mean CPU time of one step of the scene."""
        return float(np.mean([self.cpu[k] for k in steps])) * 1e3


def overlap(positions, radii, box) -> float:
    """The largest overlap of two spheres or of a sphere and a wall, over the radius of the smaller."""
    low, high = box
    walls = np.concatenate([low - positions, positions[:, :2] - high[:2]], axis=1) + radii[:, None]
    deepest = float((walls / radii[:, None]).max())
    pairs = cKDTree(positions).query_pairs(2 * radii.max(), output_type="ndarray")
    if len(pairs):
        a, b = pairs.T
        distance = np.sqrt(((positions[a] - positions[b]) ** 2).sum(axis=1))
        deepest = max(deepest, float(((radii[a] + radii[b] - distance) / np.minimum(radii[a], radii[b])).max()))
    return max(0.0, deepest)


def _ours(path: Path, fall: int, rest: int, wanted: set) -> tuple[Track, dict]:
    """Our run of a scene, and its states at the ``wanted`` steps."""
    scene, radii = box_scene(path)
    with np.load(path) as file:
        track = Track(radii, file["box"])
    sim = Simulation(scene, time_step=1e-3, tolerance=1e-3, max_iterations=20_000, penetration="anticipate")
    free, states = sim.bodies.kind == FREE, {}
    for k in range(fall + rest + 1):
        if k in wanted:
            states |= {f"{name}_{k}": getattr(sim, name)[free] for name in ("positions", "velocities", "spins")}
        begin = time.process_time()
        report = sim.step().report
        cpu = time.process_time() - begin
        counts = {"iterations": report.iterations, "residual": report.residual, "contacts": sim.contact_set.count}
        track.add(k, cpu, counts, sim.positions[free])
    track.speed = _mean_speed(sim.velocities[free])
    return track, states


def _ask(command: list, job: dict, scratch: Path, radii, box) -> Track:
    """Let a peer do a job in its own process."""
    files = {name: str(scratch / file) for name, file in (("arrays", "arrays.npz"), ("found", "found.json"))}
    (scratch / "job.json").write_text(json.dumps(job | files | {"states": str(scratch / "states.npz")}))
    environment = peer_environment()
    if "siconos" in command[-1] and (library := _without_assertions(scratch)):
        environment["LD_PRELOAD"] = str(library)
    command = [*command, str(scratch / "job.json")]
    subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found = json.loads(Path(files["found"]).read_text())
    track = Track(radii, box, found.get("version", ""))
    with np.load(files["arrays"]) as arrays:
        for number, part in enumerate(found["parts"]):
            for k, (cpu, report) in enumerate(zip(part["cpu"], part["reports"], strict=True)):
                # the first step of a part is not timed: it makes all contacts at once
                track.add(part["begin"] + 1 + k, cpu, report, arrays[f"track_{number}"][k + 1])
            track.cut |= len(part["cpu"]) < job["parts"][number][1]
            track.speed = _mean_speed(arrays[f"velocities_{number}"])
    return track


def _without_assertions(scratch: Path) -> Path | None:
    """A library that replaces the costly assertions of Debian's Siconos; None without gcc."""
    if not shutil.which("gcc"):
        return None
    library = scratch / "siconos_release.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, SCRIPTS / "siconos_release.c"], check=True)
    return library


def _mean_speed(velocities) -> float:
    return float(np.sqrt((velocities**2).sum(axis=1)).mean())


# ---- tables ----------------------------------------------------------------------------------------------------------


def _ratios(ours: Track, theirs: Track, fall: int) -> dict:
    """Their time over ours, each over the steps that both did."""
    found = {}
    for name, inside in (("fall", lambda k: k < fall), ("rest", lambda k: k >= fall)):
        steps = [k for k in theirs.cpu if inside(k) and k in ours.cpu]
        if steps:
            found[f"{name}_ratio"] = theirs.milliseconds(steps) / ours.milliseconds(steps)
    return found


HEAD = f"{'':<14}{'ms/step':>9}{'x ours':>8}{'steps':>7}{'sweeps':>8}{'residual':>10}{'overlap':>9}{'contacts':>10}"


def _lines(name: str, r: dict) -> str:
    """One code: a line for the fall, one for the rest, the speed left."""
    lines = []
    for part in ("fall", "rest"):
        if f"{part}_steps" in r:
            residual, ratio = r[f"{part}_residual"], r.get(f"{part}_ratio")
            lines.append(
                f"{name:<9}{part:<5}{r[f'{part}_milliseconds']:>9.2f}"
                + (f"{ratio:>8.1f}" if ratio else f"{'':>8}")
                + f"{r[f'{part}_steps']:>7}{r[f'{part}_iterations']:>8.0f}"
                + (f"{residual:>10.0e}" if residual is not None else f"{'springs':>10}")
                + f"{r[f'{part}_overlap']:>9.2%}{r[f'{part}_contacts']:>10}"
            )
    cut = "; cut by the time limit" if r["cut"] else ""
    return "\n".join([*lines, f"{name:<9}mean speed left {r['speed_left']:.1e}{cut}"])


def _flat(results: dict) -> dict:
    """The numbers of the CSV line."""
    flat = {}
    for scene, codes in results.items():
        for name in ("ours", *OPTIONS):
            for key in ("fall_milliseconds", "rest_milliseconds", "fall_ratio", "rest_ratio"):
                if key in codes.get(name, {}):
                    flat[f"{scene}_{name}_{key}"] = codes[name][key]
    return flat
