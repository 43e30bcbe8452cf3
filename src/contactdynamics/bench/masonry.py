"""Walls and an arch at rest side by side with LMGC90, MuJoCo and PyBullet, each in a process with its own Python.

All codes get the same blocks, friction, density and step, and start from rest where the blocks touch. What a step costs
(CPU, one thread), the first step, the largest speed at the end over g h, and how far a block has moved by then.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..experiments.options import Option
from ..rigid.simulation import Simulation
from ..scenes.scene import Scene
from ..scenes.shapes.polyhedra import Polyhedron
from ..state import FREE
from . import polyhedra
from .options import takes
from .peers import SCRIPTS, peer_environment

SOFT = {"solref": "0.02 1", "solimp": "0.9 0.95 0.001 0.5 2", "iterations": 100}  # MuJoCo's own
STIFF = {"solref": "0.002 1", "solimp": "0.99 0.999 0.0001 0.5 2", "iterations": 500}
CODES = {  # name: script, module that must be there, options
    "lmgc90": ("lmgc90_blocks.py", "compas_lmgc90.solver", {"theta": 0.5}),
    "mujoco": ("mujoco_blocks.py", "mujoco", SOFT),
    "mujoco-stiff": ("mujoco_blocks.py", "mujoco", STIFF),
    "pybullet-50": ("pybullet_blocks.py", "pybullet", {"iterations": 50, "margin": 1e-3}),
    "pybullet-500": ("pybullet_blocks.py", "pybullet", {"iterations": 500, "margin": 1e-3}),
}
SCENES = {
    "wall_105": lambda: polyhedra.wall(*polyhedra.WALLS[105]),
    "arch_25": polyhedra.arch,
    "wall_1010": lambda: polyhedra.wall(*polyhedra.WALLS[1010]),
}
HEAD = f"{'':<14}{'ms/step':>9}{'x ours':>8}{'first, s':>10}{'steps':>7}{'speed/gh':>10}{'moved, m':>10}"


@takes(
    only=Option("", f"one peer, {', '.join(CODES)}; all where empty"),
    scene=Option("", f"one scene, {', '.join(SCENES)}; all where empty"),
    steps=Option(200, "steps of each code", least=2),
    seconds=Option(60.0, "the most that a peer may take in a scene", "s", above=0),
    python=Option("", "the Python that has the peers; this one where empty"),
)
def masonry(echo, *, only, scene, steps, seconds, python) -> dict:
    """Walls of 105 and 1010 blocks and an arch beside LMGC90, MuJoCo and PyBullet where they are installed."""
    for what, name, known in (("only", only, CODES), ("scene", scene, SCENES)):
        if name and name not in known:
            raise InputError(f"{what}={name} is none; choose {', '.join(known)}, or leave it out for all.")
    present, told = {}, set()
    for name in [only] if only else CODES:
        script, module, options = CODES[name]
        command = _command(python or sys.executable, script, module)
        if isinstance(command, list):
            present[name] = (command, options)
        elif (name.split("-")[0], command) not in told:
            told.add((name.split("-")[0], command))
            echo(f"{name.split('-')[0]} is left out: {command}; benchmarks/peers/README.md says how to get it.")
    polyhedra.wall(2, 2).step()  # compile
    results = {}
    for title in [scene] if scene else SCENES:
        blocks = blocks_of(SCENES[title]().frame())
        echo(f"{title}: {sum(not b['fixed'] for b in blocks)} blocks, steps of {polyhedra.STEP} s\n{HEAD}")
        ours = _ours(blocks, steps)
        results[title] = {"ours": ours}
        echo(_line("ours", ours, ours))
        for name, (command, options) in present.items():
            try:
                theirs = _ask(command, blocks, steps, seconds, options)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                last = ((error.stderr or error.stdout or "") if hasattr(error, "stderr") else "") or str(error)
                last = last if isinstance(last, str) else last.decode(errors="replace")
                echo(f"{name} failed and is left out: {last.strip().splitlines()[-1]}")
                continue
            results[title][name] = theirs
            echo(_line(name, theirs, ours))
    flat = {f"{title}_{name}_milliseconds": row["milliseconds"] for title, rows in results.items()
            for name, row in rows.items()}  # fmt: skip
    return results | flat


def _command(python: str, script: str, module: str) -> list | str:
    """How a peer is started, or why it is not there."""
    found = shutil.which(python)
    if not found:
        return f"there is no program {python}"
    probe = subprocess.run([found, "-c", f"import {module}"], capture_output=True, env=peer_environment(), check=False)
    if probe.returncode:
        return f"{python} does not have it"
    return [found, str(SCRIPTS / script)] if SCRIPTS.exists() else "its scripts come with the source only"


def blocks_of(frame) -> list[dict]:
    """Corners in space, faces and whether it is fixed, of each convex block; a plane is a box under all of them."""
    found = []
    for k, body in enumerate(frame.solid_bodies):
        begin, end = frame.solid_starts[k : k + 2]
        faces = []
        for f in np.flatnonzero(frame.face_bodies == body):
            rim = frame.face_corners[frame.face_starts[f] : frame.face_starts[f + 1]]
            if begin <= rim[0] < end:
                faces.append((rim - begin).tolist())
        corners = frame.solid_corners[begin:end].tolist()
        found.append({"corners": corners, "faces": faces, "fixed": bool(frame.kinds[body] != FREE)})
    for normal, point in zip(frame.plane_normals, frame.plane_points, strict=True):
        if not np.allclose(normal, (0, 0, 1)):
            raise InputError("Only floors are given to peers as blocks; take scenes without other planes.")
        low, high = frame.solid_corners.min(axis=0) - 1.0, frame.solid_corners.max(axis=0) + 1.0
        low[2], high[2] = point[2] - 1.0, point[2]
        box = Polyhedron([(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        found.insert(0, {"corners": (box.vertices + box.center_of_mass).tolist(),
                         "faces": [list(face) for face in box.faces], "fixed": True})  # fmt: skip
    return found


def _row(cpu, speed: float, moved: float, version: str = "") -> dict:
    """The numbers of a code; milliseconds are the median over the second half of its steps."""
    late = cpu[len(cpu) // 2 :]
    return {"milliseconds": float(np.median(late)) * 1e3, "first_seconds": cpu[0], "steps": len(cpu),
            "speed_over_gh": speed / (polyhedra.GRAVITY * polyhedra.STEP), "moved": moved,
            "version": version}  # fmt: skip


def _ours(blocks: list[dict], steps: int) -> dict:
    """Our run of the same blocks."""
    scene = Scene(gravity=(0, 0, -polyhedra.GRAVITY))
    scene.material("stone", density=polyhedra.DENSITY)
    scene.contact("stone", "stone", friction=polyhedra.FRICTION)
    for block in blocks:
        shape = Polyhedron(block["corners"])
        scene.add(shape, material="stone", position=shape.center_of_mass, fixed=block["fixed"])
    sim, cpu = Simulation(scene, time_step=polyhedra.STEP), []
    start = before = sim.positions
    for _ in range(steps):
        begin = time.process_time()
        sim.step()
        cpu.append(time.process_time() - begin)
        before, after = sim.positions, before
    speed = float(np.linalg.norm(before - after, axis=1).max()) / polyhedra.STEP
    return _row(cpu, speed, float(np.linalg.norm(before - start, axis=1).max()))


def _ask(command: list, blocks, steps: int, seconds: float, options: dict) -> dict:
    """Let a peer do a scene in its own process."""
    with tempfile.TemporaryDirectory(prefix="cdyn-") as scratch:
        found = Path(scratch) / "found.json"
        job = {"blocks": blocks, "friction": polyhedra.FRICTION, "density": polyhedra.DENSITY, "options": options,
               "gravity": polyhedra.GRAVITY, "step": polyhedra.STEP, "steps": steps, "seconds": seconds,
               "found": str(found)}  # fmt: skip
        path = Path(scratch) / "job.json"
        path.write_text(json.dumps(job))
        subprocess.run([*command, str(path)], env=peer_environment(), check=True, capture_output=True, text=True,
                       cwd=scratch, timeout=10 * seconds + 600)  # fmt: skip
        told = json.loads(found.read_text())
    return _row(told["cpu"], told["speed"], told["moved"], told["version"])


def _line(name: str, row: dict, ours: dict) -> str:
    ratio = "" if row is ours else f"{row['milliseconds'] / ours['milliseconds']:.1f}"
    return (
        f"{name:<14}{row['milliseconds']:>9.2f}{ratio:>8}{row['first_seconds']:>10.2f}{row['steps']:>7}"
        f"{row['speed_over_gh']:>10.0e}{row['moved']:>10.0e}"
    )
