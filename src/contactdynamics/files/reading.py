"""What a result file says of the scene and the state from which its run goes on; ``recording`` is a `Recording`."""

import numpy as np

from ..errors import InputError
from ..scenes.cell import Cell
from ..scenes.loads import PROFILES, Profile, as_function
from ..scenes.materials import Materials
from ..scenes.scene import Scene
from ..scenes.tables import Tables
from . import soundness
from .layout import OPTIONS


def load_scene(recording) -> Scene:
    """The scene of a file, as it was at its last frame; prescribed motions and forces must be profiles."""
    with soundness.told(recording.path, "its scene"):
        return _load_scene(recording)


def _load_scene(recording) -> Scene:
    p = recording.parameters

    def function(value, what, size):
        if value["kind"] == "function":
            raise InputError(
                f"The {what} in {recording.path} is the Python function {value.get('name', '')}, which no file can "
                "hold; go on from the program that has it, with simulation.restore(path), or run it as an experiment."
            )
        profile = Profile(value["kind"], tuple(np.array(n) for n in value["numbers"]))
        if profile.kind.removeprefix("tilting ") not in PROFILES:
            raise soundness.damaged(recording.path, f"the {what} is a {profile.kind}")
        return as_function(profile, size, f"The {what} in {recording.path}")

    gravity, cell, square = p["gravity"], p.get("cell"), p["dimension"] ** 2
    scene = Scene(
        function(gravity, "gravity", p["dimension"]) if isinstance(gravity, dict) else gravity,
        cell=None if cell is None else Cell.from_file(cell, lambda rate: function(rate, "rate of the cell", square)),
    )
    scene.materials = Materials.from_file(p)
    d = scene.dimension
    turns = 1 if d == 2 else 3
    for k, (velocity, spin) in p["drives"].items():
        motion = f"motion of body {k}"
        scene.drives[int(k)] = function(velocity, motion, d), function(spin, motion, turns)
    for k, pairs in p["forces"].items():
        load = f"force of body {k}"
        scene.forces[int(k)] = [(function(force, load, d), function(torque, load, turns)) for force, torque in pairs]
    for spring in p["springs"]:
        first, second, anchor, other, stiffness, damping, length = spring
        scene.count = max(scene.count, first + 1, second + 1)
        scene.spring(first, None if second < 0 else second, stiffness=stiffness, damping=damping, length=length,
                     anchor=anchor[:d], other=other[:d])  # fmt: skip
    return scene


def options_of(recording) -> dict:
    """The options of the simulation that wrote a file."""
    options = recording.parameters["options"]
    stray = sorted(set(options) - set(OPTIONS))
    if stray:
        raise soundness.damaged(recording.path, f"it has the option {stray[0]!r}, which there is not")
    return options


def check_likeness(recording, simulation) -> None:
    """Refuse a file whose run is of another kind than ``simulation``, which is to take over its last state."""
    p, scene = recording.parameters, simulation.scene
    for what, file, here in (
        ("dimension", p["dimension"], scene.dimension),
        ("time_step", p["options"]["time_step"], simulation.time_step),
        ("materials", [m["name"] for m in p["materials"]], scene.materials.names),
        ("laws", len(p.get("order", [])), len(simulation.model.laws)),
        ("a cell", p.get("cell") is not None, scene.cell is not None),
    ):
        if file != here:
            raise InputError(
                f"{recording.path} has {what} {file}, and the simulation {here}; a run goes on with its own: build the "
                "scene as for that run."
            )


def last_block(recording) -> Tables:
    """The bodies of the last frame, with rows as in the simulation that wrote them."""
    if soundness.found(recording.file, recording.path, "checkpoint") is None:
        raise InputError(f"{recording.path} holds only some frames of a run; go on from the file of the run itself.")
    rows, _ = recording._rows(len(recording) - 1)
    order = np.searchsorted(recording._static["identity"], rows["identity"])
    static = {name: array[order] for name, array in recording._static.items()}
    return Tables(recording._bodies(rows, static), *recording._present(rows["identity"]))


def checkpoint(recording) -> dict:
    """The arrays of `writer.checkpoint_arrays`, as they were written."""
    path = recording.path
    out = soundness.read_checkpoint(recording.file, path)
    identity = recording._rows(len(recording) - 1)[0]["identity"]
    balls, planes, *_ = recording._present(identity)
    laws = len(recording.parameters.get("order", []))
    soundness.check_checkpoint(path, out, len(identity), len(balls.body), len(planes.body), laws)
    if ("cell" in out) != (recording.parameters.get("cell") is not None):
        raise soundness.damaged(path, "its parameters and its checkpoint do not both have a cell")
    if out["numbers"][1] <= identity[-1]:
        raise soundness.damaged(path, f"checkpoint/numbers counts {out['numbers'][1]} bodies and body {identity[-1]}")
    return out


def scaled_spins(recording) -> np.ndarray:
    """The scaled spins of the last frame, bit by bit."""
    return recording._rows(len(recording) - 1)[0]["scaled_spin"]
