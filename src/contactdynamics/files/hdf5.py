"""A result file, open for reading: `Recording`. The `layout` says what is in it."""

from functools import cached_property

import h5py
import numpy as np

from .. import quaternions
from ..display import picture
from ..errors import InputError, as_path, explained
from ..scenes.frames import Moment, make_frame
from ..scenes.materials import Materials
from ..scenes.tables import Tables, take
from ..state import DRIVEN, FREE, Bodies, Contacts, Frame
from . import soundness
from .layout import FORMAT, LAYOUT, LOG, STAGES, fingerprint


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
        self.times, self.steps, self._kept_rows = self._index["time"], 0, (-1, None)
        self._columns = {}
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
        self._kept_rows, self._columns = (-1, None), {}
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
        rows, contacts = ({name: array.copy() for name, array in table.items()} for table in self._rows(k))
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
        moment = Moment(time, step, options["time_step"], d, gravity)
        return make_frame(moment, tables, _frame_contacts(contacts, d), self.laws, cell)

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

    def bodies(self, k: int) -> Bodies:
        """The bodies of frame ``k`` with their masses and inertias, in the order of the frame."""
        rows, _ = self._rows(k)
        place = np.searchsorted(self._static["identity"], rows["identity"])
        return self._bodies(rows, {name: array[place] for name, array in self._static.items()})

    def kinetic(self, k: int) -> float:
        """Kinetic energy of the free bodies of frame ``k``, J."""
        b = self.bodies(k)
        own = quaternions.turned(quaternions.conjugate(b.orientation), b.spin)  # along the axes of the bodies
        each = 0.5 * b.mass * (b.velocity**2).sum(axis=1) + 0.5 * (b.inertia * own**2).sum(axis=1)
        return float(each[b.kind == FREE].sum())

    @cached_property
    def laws(self) -> tuple:
        """The laws of the run, and the place of each pair of materials among them; none where the file has none."""
        stated = all(name in self.parameters for name in ("materials", "pairs", "order"))
        with soundness.told(self.path, "its laws"):
            return (Materials.from_file(self.parameters) if stated else Materials()).laws()

    def _column(self, name: str):
        """A dataset of the file, looked up once: that takes as long as to read a frame of it."""
        if name not in self._columns:
            self._columns[name] = soundness.found(self.file, self.path, name)
        return self._columns[name]

    def _rows(self, k: int) -> tuple[dict, dict]:
        """Bodies and contacts of frame ``k`` as they are written, checked; the last frame asked for is kept."""
        if self._kept_rows[0] == k:
            return self._kept_rows[1]
        out = []
        for group, start, count in (("frame_bodies", "body_start", "bodies"),
                                    ("frame_contacts", "contact_start", "contacts")):  # fmt: skip
            first = int(self._index[start][k])
            rows = slice(first, first + int(self._index[count][k]))
            out.append({name: soundness.read(self._column(f"{group}/{name}"), self.path, f"{group}/{name}", kind, rows)
                        for name, (kind, _) in soundness.TABLES[group].items()})  # fmt: skip
        soundness.check_frame(self.path, k, *out, self._static["identity"])
        self._kept_rows = k, tuple(out)
        return self._kept_rows[1]

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
        return make_frame(Moment.none(d), tables, none, self.laws)

    def _present(self, identity: np.ndarray) -> list:
        """The parts of the bodies present, table by table, with rows instead of identities."""
        kept = [take(table, np.isin(table.body, identity)) for table in self._parts.values()]
        return [table._replace(body=np.searchsorted(identity, table.body)) for table in kept]


@explained
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
            "time     " + ", ".join(f"{s} {log[s].mean() * steps:.2f} s" for s in STAGES)
            + f"; {sum(log[s].mean() for s in STAGES) * 1e3:.3f} ms per step",
        ]  # fmt: skip
    return lines
