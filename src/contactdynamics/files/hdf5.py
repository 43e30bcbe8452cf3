"""The result file: one HDF5 file per run, layout version 1.

::

    /                attributes: format, layout, version, parameters (JSON: dimension, time_step, materials, laws, ...)
    /bodies/*        what does not change, one row per body that ever was: identity, mass, inertia, kind, ...
    /balls/*         radius, centre, body (identity), material of the spheres and disks
    /planes/*        normal, body (identity), material
    /corners/*       place, body (identity), part of the corners of polygons and polyhedra; ball `part` of it holds it
    /rims/*          corner, face, body (identity), part: the corners of each face of a polyhedron, seen from outside
    /frames/*        one row per frame: time, step, gravity, first row and number of rows in /frame_bodies and
                     /frame_contacts; created (energy by the contact laws so far, J), failures (steps not solved so
                     far), hash (of the rows of the bodies and of the contacts)
    /frame_bodies/*  identity, position, orientation, velocity, scaled_spin of all frames, one after the other
    /frame_contacts/*  bodies, point, normal, tangent, gap, impulse, moment, status, target (normal velocity that the
                     law asks for) of all frames
    /log/*           one row per step: time, contacts, iterations, residual, penetration, energies, stage times
    /checkpoint/*    what else is needed to go on from the last frame with the same bits

Vectors have always 3 components; orientation is a unit quaternion (w, x, y, z) from the principal axes to space;
impulses are in N s along (normal, tangent, normal x tangent); scaled_spin is the spin in space, times the radius for
simple balls.
The file is replaced as a whole by an atomic rename: whenever the process dies, what is there opens. Everything in it
has checksums. No pickle, no code.
"""

import contextlib
import hashlib
import json
import shlex
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from .. import quaternions
from .._version import __version__
from ..display import picture
from ..errors import InputError, as_path
from ..problem.laws import Law
from ..scenes.cell import Cell
from ..scenes.hooks import OWN, Hook, name_of, written
from ..scenes.loads import PROFILES, Profile, as_function
from ..scenes.materials import Materials
from ..scenes.scene import Scene
from ..scenes.tables import Tables, take
from ..state import DRIVEN, FREE, Bodies, Contacts, Frame
from . import soundness
from .writing import replacing

FORMAT, LAYOUT = "contactdynamics", 1
STATIC = ("identity", "principal", "mass", "inertia", "kind", "simple", "size", "held")
LOG = ("time", "contacts", "iterations", "residual", "penetration", "relative_penetration", "kinetic", "potential",
       "force_work", "drive_work", "normal_work", "tangential_work", "rolling_work", "recovery_work", "closure",
       "detection", "frames", "solve", "integrate", "record")  # fmt: skip
OPTIONS = ("time_step", "tolerance", "max_iterations", "solver", "threads", "penetration", "recovery", "on_failure",
           "save_problems")  # fmt: skip
INDEX = ("time", "step", "body_start", "bodies", "contact_start", "contacts")


# ---- writing -------------------------------------------------------------------------------------------------------


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


def _cell_numbers(simulation):
    """(18,) vectors of the cell, one after the other, and its velocity gradient; None in open space."""
    cell = simulation.cell_motion
    return None if cell is None else np.concatenate([cell.shape.T.ravel(), cell.gradient.ravel()])


def fingerprint(rows: dict, group: str) -> int:
    """A hash of the rows of one frame in ``group``: of all columns that `soundness.TABLES` knows, in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for name, (kind, _) in soundness.TABLES[group].items():
        digest.update(np.ascontiguousarray(rows[name], dtype=np.dtype(kind).newbyteorder("<")).tobytes())
    return int.from_bytes(digest.digest(), "little", signed=True)


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
        "drives": _functions(scene.drives),
        "forces": _functions(scene.forces),
        "springs": springs,
        "about": simulation.about,
        "cell": None if scene.cell is None else scene.cell.to_file(lambda rate: _functions({0: rate})["0"]),
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


# ---- reading -------------------------------------------------------------------------------------------------------


class Recording:
    """A result file, open for reading: frames by index or by time, and the log.

    ``recording[0]``, ``recording[-1]``, ``recording.at(1.5)`` are `Frame`; ``recording.times`` (F,);
    ``recording.log["residual"]`` one value per step. Use it in a ``with`` block, or close it.
    """

    def __init__(self, path):
        path = as_path("open", path)
        if not path.is_file():
            if path.is_dir():
                raise InputError(f"{path} is a folder; give a result file in it, such as {path / 'run.h5'}.")
            raise InputError(f"There is no file {path}; check the path.")
        self.path = path
        try:
            self.file = h5py.File(path, "r")
        except (OSError, RuntimeError, KeyError) as error:
            with path.open("rb") as raw:
                signature = raw.read(8)
            if signature == b"\x89HDF\r\n\x1a\n":
                raise soundness.damaged(path, f"it cannot be opened ({soundness.short(error)})") from None
            raise InputError(f"{path} is not an HDF5 file; give a result file such as run.h5.") from None
        try:
            self._read_all()
        except BaseException:
            self.file.close()
            raise

    def _read_all(self) -> None:
        """Check the file as a whole, and read what does not change with the frames."""
        path, file = self.path, self.file
        with soundness.told(path, "what it is"):
            said = {name: file.attrs.get(name) for name in ("format", "layout", "version", "parameters")}
        if not isinstance(said["format"], str) or said["format"] != FORMAT:
            raise InputError(f"{path} is an HDF5 file, but no result of contactdynamics; give a file such as run.h5.")
        if not isinstance(said["layout"], int | np.integer) or not isinstance(said["version"], str):
            raise soundness.damaged(path, "its layout or its version is not there")
        if said["layout"] > LAYOUT:
            raise InputError(f"{path} has a newer layout than this version reads; install a newer contactdynamics.")
        self.version = said["version"]
        self.parameters = soundness.parameters_of(said["parameters"], path)
        tables, rows = dict(soundness.TABLES), {}
        for name in ("corners", "rims"):
            if soundness.found(file, path, name) is None:  # none in old files
                tables.pop(name)
        if soundness.found(file, path, "bodies/held") is None:  # none in old files
            tables["bodies"] = {name: kind for name, kind in tables["bodies"].items() if name != "held"}
        for name, columns in tables.items():
            rows[name] = soundness.check_table(file, path, name, columns)
        for name, column in soundness.MORE.items():
            if soundness.found(file, path, f"frames/{name}") is not None:
                soundness.check_table(file, path, "frames", {name: column}, rows["frames"])
        if soundness.found(file, path, "frame_contacts/target") is not None:
            soundness.check_table(file, path, "frame_contacts", soundness.TARGET, rows["frame_contacts"])
        self._index, self._static = (soundness.read_table(file, path, n, tables[n]) for n in ("frames", "bodies"))
        self._static.setdefault("held", np.zeros(rows["bodies"], dtype=np.int8))
        self._parts = {  # the tables of parts of all bodies, by number instead of row
            name: type(empty)(**soundness.read_table(file, path, name, tables[name])) if name in tables else empty
            for name, empty in Tables._field_defaults.items()
        }
        soundness.check_index(path, self._index, rows["frame_bodies"], rows["frame_contacts"])
        soundness.check_bodies(path, self._static, self._parts, len(self.parameters["materials"]))
        self.times, self.steps = self._index["time"], 0
        if soundness.found(file, path, "log") is not None:
            columns = dict.fromkeys(LOG, (np.float64, ()))
            self.steps = soundness.check_table(file, path, "log", columns)  # that the log speaks of
            with soundness.told(path, "log"):
                self.steps = int(file["log"].attrs.get("steps", self.steps))

    def __repr__(self):
        ends = f", t = {self.times[0]:g} to {self.times[-1]:g}" if len(self) else ""
        count = len(self._static["identity"])
        return f"Recording {self.path.name}: {len(self)} frames{ends}; {self.parameters['dimension']}D, {count} bodies"

    def _repr_html_(self):
        from ..plotting import plot_recording

        still = picture(repr(self), lambda: plot_recording(self, self[-1]))
        try:
            return still + self.show()._repr_html_()
        except Exception:  # a file that was closed, or is damaged: the line is there, and the picture if it could be
            return still

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    @property
    def log(self) -> dict:
        """One array per column of the log, one value per step."""
        if soundness.found(self.file, self.path, "log") is None:
            return {name: np.zeros(0) for name in LOG}
        log = soundness.read_table(self.file, self.path, "log", dict.fromkeys(LOG, (np.float64, ())))
        for name in ("time", "contacts", "iterations"):
            soundness.check_values(self.path, f"log/{name}", np.isfinite(log[name]), "finite")
        return log

    @property
    def frame_steps(self) -> np.ndarray:
        """(F,) the steps after which the frames were taken."""
        return self._index["step"]

    def at(self, time: float) -> Frame:
        """The frame nearest to ``time``."""
        return self[int(np.argmin(np.abs(self.times - time)))]

    def __getitem__(self, k: int) -> Frame:
        if not -len(self) <= k < len(self):
            there = f"{len(self)} frames, 0 to {len(self) - 1}" if len(self) else "no frame"
            raise IndexError(f"There is no frame {k}; the file has {there}.")
        k = k % len(self)
        rows, contacts = self._rows(k)
        static = {name: array[np.searchsorted(self._static["identity"], rows["identity"])]
                  for name, array in self._static.items()}  # fmt: skip
        bodies = self._bodies(rows, static)
        time, step = float(self.times[k]), int(self._index["step"][k])
        tables = Tables(bodies, *self._present(rows["identity"]))
        options, d = self.parameters["options"], self.parameters["dimension"]
        changing = soundness.found(self.file, self.path, "frames/gravity")  # none in old files
        if changing is None:
            gravity = np.array(self.parameters["gravity"])
        else:
            gravity = soundness.read(changing, self.path, "frames/gravity", float, k)[:d]
        cell = self._cell(k, d)
        return make_frame(
            time, step, options["time_step"], d, gravity, tables, _frame_contacts(contacts, d), self.laws, cell
        )

    def _cell(self, k: int, d: int) -> tuple:
        """Vectors, periodic directions and velocity gradient of the cell of frame ``k``; None in open space."""
        said, data = self.parameters.get("cell"), soundness.found(self.file, self.path, "frames/cell")
        if said is None or data is None:
            return None, None, None
        numbers = soundness.read(data, self.path, "frames/cell", float, k).reshape(2, 3, 3)
        soundness.check_cell(self.path, numbers)
        return numbers[0, :d, :d], np.array(said["periodic"], dtype=bool), numbers[1, :d, :d]

    def more(self, name: str) -> np.ndarray | None:
        """One of the columns of /frames that not all files have: (F,) or (F, n); None where it is not there."""
        data = soundness.found(self.file, self.path, f"frames/{name}")
        return None if data is None else soundness.read(data, self.path, f"frames/{name}", soundness.MORE[name][0])

    def targets(self, k: int) -> np.ndarray | None:
        """(C,) normal velocities that the laws of the contacts of frame ``k`` ask for; None in old files."""
        data = soundness.found(self.file, self.path, "frame_contacts/target")
        first, count = (int(self._index[name][k]) for name in ("contact_start", "contacts"))
        rows = slice(first, first + count)
        return None if data is None else soundness.read(data, self.path, "frame_contacts/target", float, rows)

    def fingerprints(self, k: int) -> tuple[int, int]:
        """Hashes of the rows of frame ``k`` as they stand in the file: bodies, contacts."""
        return tuple(fingerprint(rows, f"frame_{kind}")
                     for rows, kind in zip(self._rows(k), ("bodies", "contacts"), strict=True))  # fmt: skip

    def kinetic(self, k: int) -> float:
        """Kinetic energy of the free bodies of frame ``k``, J."""
        rows, _ = self._rows(k)
        place = np.searchsorted(self._static["identity"], rows["identity"])
        static = {name: array[place] for name, array in self._static.items()}
        b = self._bodies(rows, static)
        pure = np.concatenate([np.zeros((len(b.spin), 1)), b.spin], axis=1)
        turned = quaternions.product(quaternions.product(quaternions.conjugate(b.orientation), pure), b.orientation)
        each = 0.5 * b.mass * (b.velocity**2).sum(axis=1) + 0.5 * (b.inertia * turned[:, 1:] ** 2).sum(axis=1)
        return float(each[b.kind == FREE].sum())

    @cached_property
    def laws(self) -> tuple:
        """The laws of the run, and the place of each pair of materials among them; none where the file has none."""
        stated = all(name in self.parameters for name in ("materials", "pairs", "order"))
        with soundness.told(self.path, "its laws"):
            return (load_materials(self.parameters) if stated else Materials()).laws()

    def _rows(self, k: int) -> tuple[dict, dict]:
        """Bodies and contacts of frame ``k`` as they are written, checked."""
        out = []
        for group, start, count in (("frame_bodies", "body_start", "bodies"),
                                    ("frame_contacts", "contact_start", "contacts")):  # fmt: skip
            first = int(self._index[start][k])
            rows = slice(first, first + int(self._index[count][k]))
            out.append(soundness.read_table(self.file, self.path, group, soundness.TABLES[group], rows))
        soundness.check_frame(self.path, k, *out, self._static["identity"])
        return tuple(out)

    @staticmethod
    def _bodies(rows: dict, static: dict) -> Bodies:
        scale = np.where(static["simple"], static["size"], 1.0)
        return Bodies(
            rows["identity"], rows["position"], rows["orientation"], static["principal"], rows["velocity"],
            rows["scaled_spin"] / scale[:, None], static["mass"], static["inertia"], static["kind"], static["simple"],
            static["size"], static["held"],
        )  # fmt: skip

    def numbers(self, k: int) -> np.ndarray:
        """(N,) the numbers of the bodies present in frame ``k``."""
        first, many = (int(self._index[name][k]) for name in ("body_start", "bodies"))
        data = soundness.found(self.file, self.path, "frame_bodies/identity")
        out = soundness.read(data, self.path, "frame_bodies/identity", np.int64, slice(first, first + many))
        known = np.isin(out, self._static["identity"])
        soundness.check_values(self.path, f"frame_bodies/identity of frame {k}", known, "the number of a body")
        return out

    def show(self, *, every: int | None = None):
        """The run as a page that shows itself in a notebook: ``.save(path)`` writes it, ``.open()`` shows it elsewhere.

        Each ``every``-th frame; without it, as many as a notebook takes easily.
        """
        from ..views.page import page_of

        return page_of(self, every=every)

    def shapes(self) -> Frame:
        """All bodies that ever were as one `Frame`, each with its centre at the origin and not turned."""
        static, count, d = self._static, len(self._static["identity"]), self.parameters["dimension"]
        still = np.zeros((count, 3))
        rows = {"identity": static["identity"], "position": still, "orientation": static["principal"],
                "velocity": still, "scaled_spin": still}  # fmt: skip
        tables = Tables(self._bodies(rows, static | {"simple": np.zeros(count, dtype=bool)}),
                        *self._present(static["identity"]))  # fmt: skip
        none = _frame_contacts({name: np.zeros((0, *shape), dtype=kind) for name, (kind, shape)
                                in soundness.TABLES["frame_contacts"].items()}, d)  # fmt: skip
        return make_frame(0.0, 0, 1.0, d, np.zeros(d), tables, none, self.laws)

    def _present(self, identity: np.ndarray) -> list:
        """The parts of the bodies present, table by table, with rows instead of identities."""
        kept = [take(table, np.isin(table.body, identity)) for table in self._parts.values()]
        return [table._replace(body=np.searchsorted(identity, table.body)) for table in kept]


def open(path) -> Recording:
    """Open a result file for reading."""
    return Recording(path)


def _frame_contacts(c: dict, d: int) -> Contacts:
    frames = np.empty((len(c["gap"]), 3, 3))
    frames[:, 0], frames[:, 1] = c["normal"], c["tangent"]
    frames[:, 2] = np.cross(c["normal"], c["tangent"])
    moment = c["moment"] if d == 3 else c["moment"][:, 2:]
    return Contacts(
        c["bodies"], c["point"][:, :d], c["normal"][:, :d], c["gap"], c["impulse"][:, :d], frames[:, :d, :d],
        c["status"], moment,
    )  # fmt: skip


def make_frame(
    time, step, time_step, d, gravity, tables: Tables, contacts: Contacts,
    laws: tuple = ((), np.zeros((0, 0), dtype=np.int64)), cell: tuple = (None, None, None),
) -> Frame:  # fmt: skip
    """A `Frame` from arrays of a simulation or a file; of polygons and polyhedra it has these, not the balls around.

    ``laws`` are those of `Materials.laws`, ``cell`` its vectors, periodic directions and velocity gradient.
    """
    b, balls, planes, corners, rims = tables
    material = np.full(len(b.mass), -1, dtype=np.int64)
    material[balls.body], material[planes.body] = balls.material, planes.material
    turned = quaternions.product(b.orientation, quaternions.conjugate(b.principal))
    rotations = turned if d == 3 else np.angle((turned[:, 0] + 1j * turned[:, 3]) ** 2)
    spins = b.spin if d == 3 else b.spin[:, 2]

    def placed(local, rows):
        q = b.orientation[rows]
        pure = np.concatenate([np.zeros((len(local), 1)), local], axis=1)
        return quaternions.product(quaternions.product(q, pure), quaternions.conjugate(q))[:, 1:]

    # A body made of polygons or polyhedra has as many balls as parts, and no other ones.
    starts = _starts(corners.body, corners.part)
    balls = take(balls, ~np.isin(balls.body, corners.body))
    shown = (b.position[corners.body] + placed(corners.place, corners.body))[:, :d], starts, corners.body[starts[:-1]]
    none = tuple(Frame._field_defaults[f"polygon_{name}"] for name in ("corners", "starts", "bodies"))
    solids = tuple(Frame._field_defaults[f"solid_{name}"] for name in ("corners", "starts", "bodies"))
    polygons, solids = (shown, solids) if d == 2 else (none, shown)
    key = np.stack([corners.body, corners.part], axis=1)[starts[:-1]]  # in order: where each part begins
    part = np.searchsorted(key[:, 0] * (1 + key[:, 1].max(initial=0)) + key[:, 1],
                           rims.body * (1 + key[:, 1].max(initial=0)) + rims.part)  # fmt: skip
    faces = _starts(rims.body, rims.part, rims.face)
    return Frame(
        time, step, time_step, d, gravity, b.identity, b.position[:, :d], rotations, b.velocity[:, :d], spins, b.mass,
        b.kind, balls.radius, (b.position[balls.body] + placed(balls.centre, balls.body))[:, :d], balls.body,
        placed(planes.normal, planes.body)[:, :d], b.position[planes.body][:, :d], contacts,
        *polygons, material, *laws, *solids, starts[part] + rims.corner, faces, rims.body[faces[:-1]],
        *cell,
    )  # fmt: skip


def _starts(*columns) -> np.ndarray:
    """(k+1,) where the values of the columns change: the begin of each of k runs of rows, and their end."""
    new = np.zeros(len(columns[0]), dtype=bool)
    for column in columns:
        new |= np.diff(column, prepend=-1) != 0
    return np.append(np.flatnonzero(new), len(new))


# ---- going on ------------------------------------------------------------------------------------------------------


def load_materials(p: dict) -> Materials:
    """The materials and laws that a file states in its parameters."""
    materials = Materials()
    for material in p["materials"]:
        materials.add(material["name"], material["density"], material["own"])
    for entry in p["pairs"]:
        law = {k: tuple(v) if isinstance(v, list) else v for k, v in entry["law"].items()}
        materials.pairs[tuple(entry["pair"])] = Law(**law)
        if entry["axis"]:
            materials.axes[tuple(entry["pair"])] = np.array(entry["axis"])
    materials.order = [tuple(pair) for pair in p["order"]]
    return materials


def load_scene(recording: Recording) -> Scene:
    """The scene of a file, as it was at its last frame; prescribed motions and forces must be profiles."""
    with soundness.told(recording.path, "its scene"):
        return _load_scene(recording)


def _load_scene(recording: Recording) -> Scene:
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
    scene.materials = load_materials(p)
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


def options_of(recording: Recording) -> dict:
    """The options of the simulation that wrote a file."""
    options = recording.parameters["options"]
    stray = sorted(set(options) - set(OPTIONS))
    if stray:
        raise soundness.damaged(recording.path, f"it has the option {stray[0]!r}, which there is not")
    return options


def check_likeness(recording: Recording, simulation) -> None:
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


def last_block(recording: Recording) -> Tables:
    """The bodies of the last frame, with rows as in the simulation that wrote them."""
    if soundness.found(recording.file, recording.path, "checkpoint") is None:
        raise InputError(f"{recording.path} holds only some frames of a run; go on from the file of the run itself.")
    rows, _ = recording._rows(len(recording) - 1)
    order = np.searchsorted(recording._static["identity"], rows["identity"])
    static = {name: array[order] for name, array in recording._static.items()}
    return Tables(recording._bodies(rows, static), *recording._present(rows["identity"]))


def checkpoint(recording: Recording) -> dict:
    """The arrays of `checkpoint_arrays`, as they were written."""
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


def scaled_spins(recording: Recording) -> np.ndarray:
    """The scaled spins of the last frame, bit by bit."""
    return recording._rows(len(recording) - 1)[0]["scaled_spin"]


def _overlap_line(recording: Recording, log: dict) -> str:
    """The largest overlap of the run; between which bodies and when, where the file says it."""
    line = f"overlap  at most {log['relative_penetration'].max():.2%} of a radius"
    data = soundness.found(recording.file, recording.path, "checkpoint/watch")
    if data is None:  # none in old files
        return line
    soundness.check_column(data, recording.path, "checkpoint/watch", float, (), 4)
    share, time, a, b = soundness.read(data, recording.path, "checkpoint/watch", float)
    return line + (f" (bodies {a:.0f} and {b:.0f}, t = {time:.4g})" if share > 0 else "")


def describe(recording: Recording) -> list[str]:
    """A few lines on a file, for ``cdyn info``."""
    p, log = recording.parameters, recording.log
    last = recording[-1]
    options = p["options"]
    lines = [
        f"{recording.path}: {p['dimension']}D scene, {len(last.identities)} bodies "
        f"({int((last.kinds == DRIVEN).sum())} driven), written by contactdynamics {recording.version}",
        f"frames   {len(recording)}, t = {recording.times[0]:g} to {recording.times[-1]:g}",
        "options  " + ", ".join(f"{k}={v}" for k, v in options.items()),
    ]
    if p["about"]:
        lines.append("run      " + ", ".join(f"{k}={v}" for k, v in p["about"].items()))
    if len(log["time"]):
        steps = recording.steps
        missed = int((log["residual"] > options["tolerance"]).sum())
        block = round(steps / len(log["time"]))  # more than one in files of `archive`: their rows are means or maxima
        most = f"at most {log['iterations'].max():.0f}" + (f" in {block} steps on the mean" if block > 1 else "")
        rows = f"blocks of {block} steps" if block > 1 else "steps"
        lines += [
            f"steps    {steps}, contacts at the end {int(log['contacts'][-1])}",
            f"solver   {log['iterations'].mean():.1f} sweeps per step ({most}), "
            f"largest residual {log['residual'].max():.1e}, {missed} {rows} above the tolerance",
            _overlap_line(recording, log),
            f"energy   kinetic {log['kinetic'][-1]:.6g}, contacts' work normal {log['normal_work'][-1]:.6g}, "
            f"tangential {log['tangential_work'][-1]:.6g}; ledger closed to {log['closure'][-1]:.1e}",
            "time     " + ", ".join(f"{s} {log[s].mean() * steps:.2f} s" for s in LOG[-5:])
            + f"; {sum(log[s].mean() for s in LOG[-5:]) * 1e3:.3f} ms per step",
        ]  # fmt: skip
    return lines
