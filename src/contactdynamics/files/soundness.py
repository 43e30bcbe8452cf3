"""Whether a result file is sound: types, shapes, sizes and numbers of its arrays, checked before any of them is used.

A file may be cut, overwritten in part, or written by somebody else's program. Whoever reads it (`hdf5`) asks here
first: no array is loaded before its size is known to fit the file, and no number is used as an index before it is
known to be in range, since compiled code does not look.
"""

import contextlib
import json
import math

import numpy as np

from ..errors import InputError

REAL, WHOLE, NAME, TRUTH = np.float64, np.int64, np.int8, np.bool_
# (type, shape of a row) of every column of every table
TABLES = {
    "bodies": {"identity": (WHOLE, ()), "principal": (REAL, (4,)), "mass": (REAL, ()), "inertia": (REAL, (3,)),
               "kind": (NAME, ()), "simple": (TRUTH, ()), "size": (REAL, ()), "held": (NAME, ())},
    "balls": {"radius": (REAL, ()), "centre": (REAL, (3,)), "body": (WHOLE, ()), "material": (WHOLE, ())},
    "planes": {"normal": (REAL, (3,)), "body": (WHOLE, ()), "material": (WHOLE, ())},
    "corners": {"place": (REAL, (3,)), "body": (WHOLE, ()), "part": (WHOLE, ())},
    "rims": {"corner": (WHOLE, ()), "face": (WHOLE, ()), "body": (WHOLE, ()), "part": (WHOLE, ())},
    "frames": {"time": (REAL, ()), "step": (WHOLE, ()), "body_start": (WHOLE, ()), "bodies": (WHOLE, ()),
               "contact_start": (WHOLE, ()), "contacts": (WHOLE, ())},
    "frame_bodies": {"identity": (WHOLE, ()), "position": (REAL, (3,)), "orientation": (REAL, (4,)),
                     "velocity": (REAL, (3,)), "scaled_spin": (REAL, (3,))},
    "frame_contacts": {"bodies": (WHOLE, (2,)), "point": (REAL, (3,)), "normal": (REAL, (3,)), "tangent": (REAL, (3,)),
                       "gap": (REAL, ()), "impulse": (REAL, (3,)), "moment": (REAL, (3,)), "status": (NAME, ())},
}  # fmt: skip
# of each frame, in files that have it; ``cell`` in periodic space: vectors and velocity gradient
MORE = {"gravity": (REAL, (3,)), "created": (REAL, ()), "failures": (WHOLE, ()), "hash": (WHOLE, (2,)),
        "cell": (REAL, (18,))}  # fmt: skip
TARGET = {"target": (REAL, ())}  # of each contact, likewise
MEMORY = {"first": (np.int32, ()), "second": (np.int32, ()), "impulse": (REAL, (3,)), "moment": (REAL, (3,)),
          "status": (NAME, ()), "plane": (TRUTH, ())}  # fmt: skip
LOST = ("lost", "touch_lost", "joint_lost")  # of each contact in the memory, in files that have it
TOUCHES = {"touch_index": (np.int32, (6,)), "touch_memory": (REAL, (3,)), "touch_status": (NAME, ())}
JOINTS = {"joint_index": (np.int32, (6,)), "joint_place": (REAL, (7,)), "joint_memory": (REAL, (6,)),
          "joint_status": (NAME, ())}  # fmt: skip
SINGLE = {"numbers": (WHOLE, ()), "seconds": (REAL, ()), "sums": (REAL, ()), "works": (REAL, (4,)),
          "touch_planes": (WHOLE, ()), "joint_planes": (WHOLE, ()), "row_order": (WHOLE, ()), "ball_order": (WHOLE, ()),
          "watch": (REAL, ()), "cell": (REAL, ())}  # fmt: skip
NEEDED = {*MEMORY, "numbers", "seconds", "sums", "works"}  # of a checkpoint; files without polygons lack the others
NUMBER = (int, float)
WORDS = {
    bool: "a truth value",
    int: "a whole number",
    NUMBER: "a number",
    str: "a text",
    dict: "an object",
    list: "a list",
}
# What the parameters must be; entries of lists by their only element, and whatever else there is by its own users.
PARAMETERS = {
    "dimension": int,
    "options": {"time_step": NUMBER, "tolerance": NUMBER, "max_iterations": int, "solver": str, "penetration": str,
                "recovery": NUMBER, "on_failure": str},
    "materials": [{"name": str, "density": NUMBER, "own": dict}],
    "pairs": [{"pair": [int], "law": dict, "axis": [NUMBER]}],
    "order": [[int]],
    "drives": dict, "forces": dict, "springs": [list], "about": dict,
}  # fmt: skip
ABOUT = {"experiment": str, "parameters": dict, "quick": bool, "path": str, "sha256": str, "driven": bool, "every": int,
         "until": NUMBER}  # fmt: skip
PACKED = 1100  # gzip makes nothing smaller than that


def damaged(path, what: str) -> InputError:
    """The error of a file in which something does not fit."""
    return InputError(f"{path} is damaged: {what}; take a copy of it that is whole, or run it again.")


@contextlib.contextmanager
def told(path, name: str):
    """Errors within the block, of the HDF5 library or of what was made from the file, as one sentence on the file."""
    try:
        yield
    except InputError:
        raise
    except (OSError, RuntimeError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise damaged(path, f"{name} cannot be read ({short(error)})") from None


# ---- arrays ----------------------------------------------------------------------------------------------------------


def check_column(data, path, name: str, kind, shape, rows: int | None = None) -> int:
    """The number of rows of a dataset that has the type and shape it should, and as many bytes as it says."""
    if data is None or not hasattr(data, "shape"):
        raise damaged(path, f"{name} is not there" if data is None else f"{name} is no array")
    if data.shape is None or data.is_virtual or data.external:
        raise damaged(path, f"{name} has no numbers of its own")
    if len(data.shape) != 1 + len(shape) or data.shape[1:] != shape:
        expected = " x ".join(["rows", *map(str, shape)])
        raise damaged(path, f"{name} has the shape {data.shape}, {expected} expected")
    if np.dtype(kind).kind != data.dtype.kind and not (data.dtype.kind == "u" and np.dtype(kind).kind == "i"):
        raise damaged(path, f"{name} holds {data.dtype} instead of {np.dtype(kind).name}")
    if data.size * data.dtype.itemsize > data.id.get_storage_size() * (PACKED if data.compression else 1):
        raise damaged(path, f"{name} says that it has {len(data)} rows, but {data.id.get_storage_size()} bytes of them")
    if rows is not None and len(data) != rows:
        raise damaged(path, f"{name} has {len(data)} rows, {rows} expected")
    return len(data)


def check_table(file, path, group: str, columns: dict, rows: int | None = None) -> int:
    """The number of rows of a group of datasets that have as many of them each."""
    for name, (kind, shape) in columns.items():
        name = f"{group}/{name}"
        with told(path, name):
            rows = check_column(file.get(name), path, name, kind, shape, rows)
    return rows


def found(file, path, name: str):
    """A dataset or group of the file; None where there is none."""
    with told(path, name):
        return file.get(name)


def read(data, path, name: str, kind, rows=slice(None)) -> np.ndarray:
    """Numbers of a dataset that was checked; reals that a file keeps in single precision (`archive`) in double."""
    with told(path, name):
        return data[rows].astype(kind, copy=False)


def read_table(file, path, group: str, columns: dict, rows=slice(None)) -> dict:
    """The columns of a table that was checked, by name."""
    return {name: read(found(file, path, f"{group}/{name}"), path, f"{group}/{name}", kind, rows)
            for name, (kind, _) in columns.items()}  # fmt: skip


def short(error) -> str:
    """The first words of another library's error."""
    return str(error).partition("\n")[0][:100]


def check_values(path, name: str, holds, words: str) -> None:
    """Refuse a column in which not all rows of ``holds`` are true."""
    whole = holds if holds.ndim == 1 else holds.all(axis=1)
    if not whole.all():
        raise damaged(path, f"row {int(np.argmin(whole))} of {name} is not {words}")


# ---- tables ----------------------------------------------------------------------------------------------------------


def check_bodies(path, static: dict, parts: dict, materials: int) -> None:
    """Bodies that can be, and ``parts``, table by table, that belong to them."""
    identity = static["identity"]
    check_values(path, "bodies/identity", np.diff(identity, prepend=-1) > 0, "larger than the one before")
    for name in ("mass", "inertia"):
        check_values(path, f"bodies/{name}", np.isfinite(static[name]) & (static[name] > 0), "positive")
    check_values(path, "bodies/size", np.isfinite(static["size"]) & (static["size"] >= 0), "a length")
    check_values(path, "bodies/kind", (static["kind"] >= 0) & (static["kind"] <= 2), "0, 1 or 2")
    check_values(path, "bodies/held", (static["held"] >= 0) & (static["held"] < 63), "a set of directions")
    turning = static["held"] >> 3
    check_values(path, "bodies/held", np.isin(turning, (0, 3, 5, 6, 7)), "held about none, two or three axes")
    check_values(path, "bodies/principal", _unit(static["principal"]), "a unit quaternion")
    check_values(path, "bodies/size", (static["size"] > 0) | ~static["simple"], "positive for a ball")
    balls, corners = parts["balls"], parts["corners"]
    check_values(path, "balls/radius", np.isfinite(balls.radius) & (balls.radius > 0), "positive")
    check_values(path, "balls/centre", np.isfinite(balls.centre), "finite")
    check_values(path, "planes/normal", _unit(parts["planes"].normal), "a unit vector")
    check_values(path, "corners/place", np.isfinite(corners.place), "finite")
    for name, table in parts.items():
        check_values(path, f"{name}/body", np.isin(table.body, identity), "the number of a body")
        check_values(path, f"{name}/body", np.diff(table.body, prepend=-1) >= 0, "in the order of the bodies")
        if "material" in table._fields:
            inside = (table.material >= 0) & (table.material < materials)
            check_values(path, f"{name}/material", inside, f"one of the {materials} materials")
    if len(corners.body):
        first = np.searchsorted(balls.body, corners.body)
        of_body = np.searchsorted(balls.body, corners.body, "right") - first
        check_values(path, "corners/part", (corners.part >= 0) & (corners.part < of_body),
                     "the number of a part of its body")  # fmt: skip
        part = first + corners.part
        check_values(path, "corners/part", np.diff(part, prepend=0) >= 0, "in the order of the parts")
        check_values(path, "corners/part", np.bincount(part)[part] >= 3, "one of a part of three corners or more")
    check_rims(path, balls, corners, parts["rims"])


def check_rims(path, balls, corners, rims) -> None:
    """Faces that close each polyhedron: every edge is passed once in either direction."""
    if not len(rims.body):
        return
    first = np.searchsorted(balls.body, rims.body)
    of_body = np.searchsorted(balls.body, rims.body, "right") - first
    check_values(path, "rims/part", (rims.part >= 0) & (rims.part < of_body), "the number of a part of its body")
    ball = first + rims.part
    held = np.bincount(np.searchsorted(balls.body, corners.body) + corners.part, minlength=len(balls.body))
    check_values(path, "rims/corner", (rims.corner >= 0) & (rims.corner < held[ball]), "a corner of its part")
    check_values(path, "rims/face", (rims.face >= 0) & (rims.face < len(rims.face)), "the number of a face")
    key = ball * (1 + rims.face.max()) + rims.face
    check_values(path, "rims/face", np.diff(key, prepend=0) >= 0, "in the order of parts and faces")
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    check_values(path, "rims/face", size[group] >= 3, "one of a face of three corners or more")
    start = np.flatnonzero(np.diff(key, prepend=-1))
    after = np.arange(1, len(key) + 1)
    after[np.append(start[1:], len(key)) - 1] = start
    most = 1 + int(rims.corner.max())
    there = (ball * most + rims.corner) * most + rims.corner[after]
    back = (ball * most + rims.corner[after]) * most + rims.corner
    once = len(np.unique(there)) == len(there)
    check_values(path, "rims/corner", np.isin(there, back) & once, "on an edge that two faces share")


def _unit(vectors) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs((vectors**2).sum(axis=1) - 1.0) < 1e-3  # single precision, in files of `archive`


def check_index(path, index: dict, bodies: int, contacts: int) -> None:
    """Frames in the order of time that share out all rows of the bodies and contacts."""
    frames = len(index["time"])
    if frames == 0:
        raise damaged(path, "frames/time has 0 rows, 1 at least expected")
    check_values(path, "frames/time", np.isfinite(index["time"]), "finite")
    check_values(path, "frames/time", np.diff(index["time"], prepend=-math.inf) > 0, "later than the one before")
    check_values(path, "frames/step", np.diff(index["step"], prepend=-1) > 0, "later than the one before")
    for start, count, rows, group in (("body_start", "bodies", bodies, "bodies"),
                                      ("contact_start", "contacts", contacts, "contacts")):  # fmt: skip
        check_values(path, f"frames/{count}", (index[count] >= 0) & (index[count] <= rows), f"from 0 to {rows}")
        ends = np.cumsum(index[count])
        check_values(path, f"frames/{start}", index[start] == ends - index[count], "where the frame before ends")
        if ends[-1] != rows:
            raise damaged(path, f"frame_{group} has {rows} rows, {ends[-1]} expected")


def check_frame(path, k: int, bodies: dict, contacts: dict, known: np.ndarray) -> None:
    """Bodies of the file, each once, at places and with velocities that are numbers; contacts between them."""
    at = f" of frame {k}"
    if not len(bodies["identity"]):
        raise damaged(path, f"frame_bodies has 0 rows{at}, 1 at least expected")
    check_values(path, f"frame_bodies/identity{at}", np.isin(bodies["identity"], known), "the number of a body")
    growing = np.diff(bodies["identity"], prepend=-1) > 0
    check_values(path, f"frame_bodies/identity{at}", growing, "larger than the one before")
    for name in ("position", "velocity", "scaled_spin"):
        check_values(path, f"frame_bodies/{name}{at}", np.isfinite(bodies[name]), "finite")
    check_values(path, f"frame_bodies/orientation{at}", _unit(bodies["orientation"]), "a unit quaternion")
    present = np.isin(contacts["bodies"], bodies["identity"])
    check_values(path, f"frame_contacts/bodies{at}", present, "two bodies of the frame")
    for name in ("point", "normal", "tangent", "gap", "impulse", "moment"):
        check_values(path, f"frame_contacts/{name}{at}", np.isfinite(contacts[name]), "finite")
    status = contacts["status"]
    check_values(path, f"frame_contacts/status{at}", (status >= 0) & (status <= 3), "from 0 to 3")


def read_checkpoint(file, path) -> dict:
    """The arrays of the checkpoint, by name."""
    out = {}
    single = SINGLE | dict.fromkeys(LOST, (REAL, ()))
    for columns in (MEMORY, TOUCHES, JOINTS, *({name: column} for name, column in single.items())):
        if set(columns) & NEEDED or any(found(file, path, f"checkpoint/{name}") is not None for name in columns):
            check_table(file, path, "checkpoint", columns)
            out |= read_table(file, path, "checkpoint", columns)
    for name in ("touch", "joint"):
        if (f"{name}_index" in out) != (f"{name}_planes" in out):
            raise damaged(path, f"checkpoint/{name}_index and checkpoint/{name}_planes are not there together")
    return out


def check_checkpoint(path, c: dict, bodies: int, balls: int, planes: int, laws: int) -> None:
    """What the next step needs: memory of pairs that there are, an order of the rows, a ledger of the laws."""
    rows_of = {"works": laws, "seconds": 5, "row_order": bodies, "ball_order": balls, "watch": 4, "touch_planes": 1,
               "joint_planes": 1, "cell": 29} | {
                   name: len(c.get(name.replace("lost", "status"), ())) for name in LOST}  # fmt: skip
    for name, rows in rows_of.items():
        if name in c and len(c[name]) != rows:
            raise damaged(path, f"checkpoint/{name} has {len(c[name])} rows, {rows} expected")
    for name in ("row_order", "ball_order"):
        if name in c and not np.array_equal(np.sort(c[name]), np.arange(len(c[name]))):
            raise damaged(path, f"checkpoint/{name} is no order of {len(c[name])} rows")
    if len(c["numbers"]) not in (2, 3) or (c["numbers"] < 0).any() or not 0 < len(c["sums"]) < 20:
        raise damaged(path, "checkpoint/numbers or checkpoint/sums has other rows than expected")
    for name in {"works", "seconds", "sums", "impulse", "moment", "touch_memory", "joint_memory", "joint_place",
                 "watch", "cell", *LOST} & set(c):  # fmt: skip
        check_values(path, f"checkpoint/{name}", np.isfinite(c[name]), "finite")
    if "cell" in c:
        check_cell(path, c["cell"][:18].reshape(2, 3, 3))
        if not (c["cell"][27] >= 0 and c["cell"][28] > 0):
            raise damaged(path, "checkpoint/cell has no length or mass")
    where = [("second", c["second"], balls), ("first", c["first"], np.where(c["plane"], planes, balls))]
    split = int((~c["plane"]).sum())
    check_values(path, "checkpoint/plane", c["plane"] == (np.arange(len(c["plane"])) >= split), "after pairs of balls")
    for name in ("touch_", "joint_"):
        if name + "index" not in c:
            continue
        split, index = c[name + "planes"], c[name + "index"]
        if not 0 <= split[0] <= len(index):
            raise damaged(path, f"checkpoint/{name}planes is {split.tolist()[:3]}")
        first, second, law = index[:, [0, 1, 5]].T
        many = np.where(np.arange(len(first)) < split[0], balls, planes)
        where += [(name + "index", first, many), (name + "index", second, balls), (name + "index", law, max(laws, 1))]
    for name, numbers, many in where:
        check_values(path, f"checkpoint/{name}", (numbers >= 0) & (numbers < many), "in range")


def check_cell(path, numbers) -> None:
    """Vectors that span a cell; ``numbers`` (2, 3, 3) with its velocity gradient."""
    lengths = np.sqrt((numbers[0] ** 2).sum(axis=1))
    if not np.isfinite(numbers).all() or not abs(np.linalg.det(numbers[0])) > 1e-9 * np.prod(lengths):
        raise damaged(path, "the vectors of its cell span nothing")


# ---- parameters ------------------------------------------------------------------------------------------------------


def parameters_of(text, path) -> dict:
    """The parameters of a file from their JSON, with the types that they should have."""
    try:
        said = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(path, f"its parameters are no JSON ({short(error)})") from None
    laws = {"pairs", "order"} if isinstance(said, dict) and not {"pairs", "order"} & set(said) else set()
    _fit(said, {name: kind for name, kind in PARAMETERS.items() if name not in laws}, path, "parameters")
    known = {name: kind for name, kind in ABOUT.items() if name in said["about"]}
    if "experiment" in known:
        known |= {"parameters": dict, "quick": bool}
    _fit(said["about"], known, path, "about")
    if "save_problems" in said["options"]:
        _fit(said["options"], {"save_problems": str}, path, "options")
    d, materials = said["dimension"], len(said["materials"])
    if d not in (2, 3):
        raise damaged(path, f"its dimension is {d}")
    if isinstance(said.get("gravity"), list):
        _fit(said["gravity"], [NUMBER], path, "gravity")
    if not isinstance(said.get("gravity"), list | dict) or (
        isinstance(said["gravity"], list) and len(said["gravity"]) != d
    ):
        raise damaged(path, f"its gravity is no vector of {d} numbers")
    if not said["options"]["time_step"] > 0:
        raise damaged(path, f"its time_step is {said['options']['time_step']}")
    _fit(said.get("special", []), [dict], path, "special")
    _fit(said.get("joints", []), [[int]], path, "joints")
    special = len(said.get("special", []))
    for pair in [*(entry["pair"] for entry in said.get("pairs", [])), *said.get("order", [])]:
        joint = len(pair) == 2 and pair[0] == -1 and 0 <= pair[1] < special
        if not joint and (len(pair) != 2 or not all(0 <= i < materials for i in pair)):
            raise damaged(path, f"a law is for the materials {pair}, of {materials}")
    for joint in said.get("joints", []):
        if len(joint) != 3 or not (0 <= joint[0] < joint[1] and 0 <= joint[2] < special):
            raise damaged(path, f"a joint is {joint}, of {special} laws")
    for entry in said.get("pairs", []):
        if len(entry["axis"]) not in (0, 4):
            raise damaged(path, f"a law has the axis {entry['axis']}")
    _fit(said.get("recorders", []), [str], path, "recorders")
    if said.get("cell") is not None:
        _fit(said["cell"], {"vectors": [[NUMBER]], "periodic": [bool]}, path, "cell")
    for entry in said.get("before_step", []) if isinstance(said.get("before_step", []), list) else [None]:
        _fit(entry, {"kind": str}, path, "before_step")
        if entry["kind"] != "function":
            _fit(entry, {"parameters": dict, "memory": dict}, path, "before_step")
    return said


def _fit(value, pattern, path, name: str) -> None:
    """Refuse a value of another type than ``pattern`` says: a type, or a dict or list of patterns."""
    kind = type(pattern) if isinstance(pattern, dict | list) else pattern
    number = kind in (int, NUMBER)
    if not isinstance(value, kind) or (number and (isinstance(value, bool) or not math.isfinite(value))):
        raise damaged(path, f"{name} is {str(value)[:40]!r} instead of {WORDS[kind]}")
    if isinstance(pattern, dict):
        for key, inner in pattern.items():
            if key not in value:
                raise damaged(path, f"{name} lacks {key}")
            _fit(value[key], inner, path, f"{name}/{key}")
    elif isinstance(pattern, list):
        for entry in value:
            _fit(entry, pattern[0], path, name)
