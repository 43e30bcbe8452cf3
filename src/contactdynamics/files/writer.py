"""Writing a result file: frames, log and checkpoint of a simulation, in the `layout`."""

import contextlib
import json
import shlex
from pathlib import Path

import h5py
import numpy as np

from .._version import __version__
from ..scenes.hooks import OWN, Hook, name_of, written
from ..scenes.loads import Profile
from ..scenes.tables import Tables
from . import soundness
from .layout import FORMAT, INDEX, LAYOUT, LOG, OPTIONS, STATIC, fingerprint
from .writing import replacing


def _option(option):
    """An option as a file can hold it: a user's solver by its name, with which `Simulation` says what is missing."""
    return OWN + name_of(option) if callable(option) else option


def frame_arrays(simulation) -> dict:
    """The arrays of the present frame, as they are written."""
    b, c = simulation.by_number()[0], simulation.contacts
    k = len(c.gap)

    def wide(array, columns):
        out = np.zeros((len(array), columns))
        out[:, : array.shape[1]] = array
        return out

    moment = np.zeros((k, 3))
    moment[:, 3 - c.moment.shape[1] :] = c.moment
    return {
        "time": simulation.time,
        "step": simulation.steps,
        "gravity": simulation.model.gravity,
        "cell": _cell_numbers(simulation),
        "bodies": {
            "identity": b.identity, "position": b.position, "orientation": b.orientation, "velocity": b.velocity,
            "scaled_spin": simulation.rows[simulation.roster.order, 3:6],
        },
        "contacts": {
            "bodies": c.bodies, "point": wide(c.point, 3), "normal": wide(c.normal, 3),
            "tangent": wide(c.frame[:, 1], 3) if k else np.zeros((0, 3)), "gap": c.gap,
            "impulse": wide(c.impulse, 3), "moment": moment, "status": c.status,
            "target": simulation.contact_set.targets(),
        },
        "created": simulation.ledger.created,
        "failures": simulation.failures,
    }  # fmt: skip


def cell_asked(scene):
    """The cell of a scene as a file has it, with what is imposed on it; None in open space."""
    return None if scene.cell is None else scene.cell.to_file(lambda rate: _functions({0: rate})["0"])


def _cell_numbers(simulation):
    """(18,) vectors of the cell, one after the other, and its velocity gradient; None in open space."""
    cell = simulation.cell_motion
    return None if cell is None else np.concatenate([cell.shape.T.ravel(), cell.gradient.ravel()])


def checkpoint_arrays(simulation) -> dict:
    """The contact memory and the ledger: with the last frame, all that the next step needs."""
    out = {
        "numbers": np.array([simulation.failures, simulation.scene.count], dtype=np.int64),
        "seconds": np.array(list(simulation.seconds.values())),
    }
    parts = (simulation.contact_set, simulation.ledger, simulation.watch, simulation.roster, simulation.cell_motion)
    for part in parts:
        out |= {} if part is None else part.memory()
    return out


def _functions(table: dict) -> dict:
    """Functions of time by body, as JSON: profiles with their numbers, others by name."""

    def one(function):
        if isinstance(function, Profile):
            return {"kind": function.kind, "numbers": [np.asarray(n).tolist() for n in function.numbers]}
        return {"kind": "function", "name": name_of(function)}

    def many(value):
        return (
            [many(v) for v in value]
            if isinstance(value, tuple | list) and not isinstance(value, Profile)
            else one(value)
        )

    return {str(k): many(v) for k, v in table.items()}


def parameters(simulation) -> dict:
    """What was asked, as JSON: enough to build the scene again."""
    scene, materials = simulation.scene, simulation.scene.materials
    pairs = [
        {"pair": list(pair), "law": vars(law).copy(), "axis": np.asarray(materials.axes.get(pair, ())).tolist()}
        for pair, law in materials.pairs.items()
    ]
    springs = [
        [np.asarray(column[k]).tolist() for column in scene.springs()] for k in range(len(scene.springs().first))
    ]
    return {
        "dimension": scene.dimension,
        "gravity": scene.gravity.tolist() if scene.steady else _functions({0: scene.gravity})["0"],
        "options": {name: _option(v) for name in OPTIONS if (v := getattr(simulation, name)) is not None},
        "materials": [
            {"name": n, "density": d, "own": o}
            for n, d, o in zip(materials.names, materials.densities, materials.own, strict=True)
        ],
        "pairs": pairs,
        "order": materials.order,
        "joints": [[*pair, k] for pair, k in materials.joints.items()],
        "special": [vars(law).copy() for law in materials.special],
        "drives": _functions(scene.drives),
        "forces": _functions(scene.forces),
        "springs": springs,
        "about": simulation.about,
        "cell": cell_asked(scene),
    }


def _append(group: h5py.Group, name: str, array: np.ndarray, compress: bool) -> None:
    """Append rows to a dataset that grows."""
    array = np.asarray(array)
    if name not in group:
        rows = max(16, min(512, 16384 // max(1, array[:1].nbytes)))
        options = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compress else {}
        grows = {"maxshape": (None, *array.shape[1:]), "chunks": (rows, *array.shape[1:]), "fletcher32": True}
        group.create_dataset(name, data=array, **grows, **options)
        return
    data = group[name]
    before = len(data)
    data.resize(before + len(array), axis=0)
    data[before:] = array


def _append_static(file: h5py.File, simulation) -> None:
    """Bodies that came since the last commit."""
    known = len(file["bodies/identity"]) if "bodies/identity" in file else 0
    newest = int(file["bodies/identity"][-1]) if known else -1
    tables = simulation.by_number()
    b = tables.bodies
    new = b.identity > newest
    for name in STATIC:
        array = getattr(b, name)[new]
        _append(file.require_group("bodies"), name, array, False)
    for group, table in zip(Tables._fields[1:], tables.parts, strict=True):
        rows = new[table.body]
        for name, array in zip(table._fields, table, strict=True):
            column = b.identity[array[rows]] if name == "body" else array[rows]
            _append(file.require_group(group), name, column, False)


def _append_frames(file: h5py.File, frames: list[dict]) -> None:
    index = file.require_group("frames")
    begun = "time" not in index
    for kind in ("bodies", "contacts"):
        group = file.require_group(f"frame_{kind}")
        for name in frames[0][kind]:
            if begun or name in group:  # not begun by a version that had none
                _append(group, name, np.concatenate([frame[kind][name] for frame in frames]), True)
    last = {"body": 0, "contact": 0}
    if "time" in index:
        last = {
            "body": int(index["body_start"][-1] + index["bodies"][-1]),
            "contact": int(index["contact_start"][-1] + index["contacts"][-1]),
        }
    rows = []
    for frame in frames:
        bodies, contacts = len(frame["bodies"]["identity"]), len(frame["contacts"]["gap"])
        rows.append((frame["time"], frame["step"], last["body"], bodies, last["contact"], contacts))
        last["body"] += bodies
        last["contact"] += contacts
    for name, column in zip(INDEX, zip(*rows, strict=True), strict=True):
        _append(index, name, np.array(column), False)
    hashes = [[fingerprint(frame[kind], f"frame_{kind}") for kind in ("bodies", "contacts")] for frame in frames]
    more = {name: [frame[name] for frame in frames] for name in ("gravity", "created", "failures")} | {"hash": hashes}
    if frames[0]["cell"] is not None:
        more["cell"] = [frame["cell"] for frame in frames]
    for name, values in more.items():
        if begun or name in index:
            _append(index, name, np.array(values, dtype=soundness.MORE[name][0]), False)


def _write_checkpoint(file: h5py.File, arrays: dict) -> None:
    group = file.require_group("checkpoint")
    for name, array in arrays.items():
        if name in group:
            group[name].resize(array.shape)
            group[name][...] = array
        else:
            rows = max(256, min(4096, len(array)))
            chunks = (rows, *(max(1, s) for s in array.shape[1:]))
            group.create_dataset(name, data=array, maxshape=(None,) * array.ndim, chunks=chunks, fletcher32=True)


def _plain(value):
    """NumPy's numbers and arrays, which JSON does not know."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return str(value)


def write(
    path: Path, simulation, frames: list[dict], log: list[tuple], checkpoint: dict, before_step: list, *, fresh: bool
) -> None:
    """Add frames and log rows to the file, as one atomic change; ``fresh`` starts it anew.

    ``checkpoint`` and ``before_step`` (of `hooks.written`) belong to the last frame.
    """
    keep = not fresh and path.exists()
    with replacing(path, keep=keep) as file:  # what the disk refuses is raised here, as OSError
        with soundness.told(path, "what is to be added to") if keep else contextlib.nullcontext():
            file.attrs.update({"format": FORMAT, "layout": LAYOUT, "version": __version__})
            said = parameters(simulation) | {"before_step": before_step, "recorders": others(simulation, path)}
            # of fixed length, and so within the part of the file that has a checksum
            file.attrs["parameters"] = np.bytes_(json.dumps(said, default=_plain))
            _append_static(file, simulation)
            if frames:
                _append_frames(file, frames)
            if log:
                for name, column in zip(LOG, np.array(log).T, strict=True):
                    _append(file.require_group("log"), name, column, False)
            _write_checkpoint(file, checkpoint)


def others(simulation, path) -> list[str]:
    """The names of the simulation's recorders, but for that of the file ``path``."""
    names = []
    for recorder in simulation.recorders:
        own = getattr(recorder, "path", None)
        if own is None or Path(own).resolve() != Path(path).resolve():
            names.append(name_of(recorder) + ("" if own is None else f"({str(own)!r})"))
    return names


def functions_of(simulation) -> list[str]:
    """The names of all that acts on the simulation and that no file can hold."""
    foreign = [type(f).__name__ for f in simulation.before_step
               if isinstance(f, Hook) and type(f).__module__.split(".")[0] != "contactdynamics"]  # fmt: skip

    def named(value):
        if isinstance(value, dict):
            if value.get("kind") == "function":
                yield value["name"]
            value = list(value.values())
        for part in value if isinstance(value, list) else ():
            yield from named(part)

    return [*foreign, *named([parameters(simulation), written(simulation.before_step)])]


def way_on(path: Path, simulation) -> str:
    """Half a sentence: how the run of a file goes on."""
    about = simulation.about
    if about.get("driven"):
        return f"`cdyn run {about.get('path', about['experiment'])} --force` makes it anew"
    functions = [] if "experiment" in about else functions_of(simulation)
    if functions:
        return f"its program goes on with simulation.restore({str(path)!r}), since no file can hold {functions[0]}"
    return f"`cdyn resume {shlex.quote(str(path))}` goes on"
