"""A run in few bytes, for the page in the browser.

Everything travels in one kind of box: `box` puts named columns of whole numbers or reals into compressed bytes, and
``unbox`` of the page takes them out. Frames come in groups of `GROUP`, so that any frame is reached by opening one box:
places are differences to the frame before within the group, in units of the `quantum`, 1/256 of the smallest radius.
Speeds, spins, pressures and forces are rounded to about half a percent (`coded`).

Of a contact between simple balls and planes the page derives point and normal from the bodies; of others the box has
the point. Contacts without an impulse are left out. Of a periodic cell frames come with all bodies inside it
(`Frame.inside`), and with its vectors.
"""

import json
import zlib
from typing import NamedTuple

import numpy as np

from ..errors import InputError, is_whole
from ..state import FREE, Frame
from .measures import in_space, measure, outlines, quaternions_of, radii_and_volumes, touching

GROUP = 8  # frames in a box
STEPS = 64  # of a code per doubling: the value is known to a share of 2^(1/128) - 1
FLOOR = 1e-5  # of the largest value in a frame: below, codes count evenly
TURN = 4095  # parts of a component of a quaternion
CURVE_POINTS = 1500
CURVES = ("kinetic", "potential", "contact work", "residual", "sweeps", "overlap / radius", "contacts")


def chosen(recording, every: int) -> list[int]:
    """The numbers of each ``every``-th frame; the last one is always in."""
    if not is_whole(every, 1):
        raise InputError(f"every is {every!r}; give a whole number of frames >= 1.")
    return sorted({*range(0, len(recording), int(every)), len(recording) - 1})


def box(columns: dict[str, np.ndarray], about: dict | None = None) -> bytes:
    """Named columns in compressed bytes: reals in single precision, whole numbers with as many bytes as they need.

    The bytes of a column are sorted by their weight, so that those that hardly change stand together. ``about`` is any
    JSON that travels along.
    """
    heads, parts = [], []
    for name, column in columns.items():
        column = np.ascontiguousarray(column).ravel()
        if column.dtype.kind == "f":
            raw, kind = column.astype("<f4").view(np.uint8).reshape(-1, 4), "f"
        else:
            whole = column.astype(np.int32)
            folded = (whole.astype(np.uint32) << np.uint32(1)) ^ (whole >> 31).astype(np.uint32)  # small ones near zero
            wide = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
            raw, kind = folded.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :wide], "i"
        heads.append([name, kind, len(column), raw.shape[1]])
        parts.append(np.ascontiguousarray(raw.T).tobytes())
    head = json.dumps({"columns": heads, "about": about or {}}).encode()
    return zlib.compress(
        len(head).to_bytes(4, "little") + head + b"".join(parts), 6
    )  # 9: 1 % smaller, three times as long


def coded(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Codes of values that span many decades, and the floor that goes with them.

    code = sign STEPS log2(1 + |value| / floor), rounded; value = sign floor (2^(|code| / STEPS) - 1).
    """
    floor = FLOOR * float(np.abs(values).max(initial=0.0)) or 1.0
    return np.rint(np.sign(values) * STEPS * np.log2(1 + np.abs(values) / floor)).astype(np.int64), floor


class Shapes(NamedTuple):
    """What does not change: of all bodies that ever were, in the order of their numbers; a slot is a row of it."""

    frame: Frame  # each body with its centre at the origin, not turned
    radius: np.ndarray  # (S,) of the ball around each body
    simple: np.ndarray  # (S,) one ball about the centre
    plane: np.ndarray  # (S,)
    turned: np.ndarray  # (S,) a turn of the body shows
    quantum: float  # unit of places, m


def shapes_of(frame: Frame) -> Shapes:
    """The shapes of a frame whose bodies have their centres at the origin and are not turned."""
    count = len(frame.identities)
    radius, _ = radii_and_volumes(frame)
    balls = np.bincount(frame.ball_bodies, minlength=count)
    off = np.zeros(count, dtype=bool)
    off[frame.ball_bodies[(frame.ball_centres != 0).any(axis=1)]] = True
    faces = outlines(frame)[2]
    simple = (balls == 1) & ~off
    simple[faces] = False
    plane = radius == 0
    turned = ~simple if frame.dimension == 3 else np.ones(count, dtype=bool)
    sizes = radius[radius > 0]
    return Shapes(frame, radius, simple, plane, turned, float(sizes.min()) / 256 if len(sizes) else 1.0)


def _triangles(corners, starts, rows, flat: bool):
    """Triangles and edges of faces: local corners (T, 3, 3), rows (T,); ends of edges (E, 2, 3), rows (E,)."""
    size = np.diff(starts)
    of_face = np.repeat(np.arange(len(rows)), size)
    after = np.arange(1, len(corners) + 1)
    after[starts[1:] - 1] = starts[:-1]
    here = np.arange(len(corners))
    first = starts[:-1][of_face]
    inner = (here != first) & (after != first)
    triangles = np.stack([corners[first], corners, corners[after]], axis=1)[inner]
    edges, bodies = np.stack([corners, corners[after]], axis=1), rows[of_face]
    if flat:  # seams between the parts of a body are passed twice, in both directions
        key = np.round(edges, 9)
        there = [(int(b), *p.ravel()) for b, p in zip(bodies, key, strict=True)]
        back = {(int(b), *p[::-1].ravel()) for b, p in zip(bodies, key, strict=True)}
    else:  # one of the two directions is enough
        there = [(int(b), *p.ravel()) for b, p in zip(bodies, edges, strict=True)]
        back = {(int(b), *p[::-1].ravel()) for b, p in zip(bodies, edges, strict=True) if tuple(p[0]) > tuple(p[1])}
    outer = np.array([edge not in back for edge in there], dtype=bool)
    return triangles, rows[of_face[inner]], edges[outer], bodies[outer]


def births(source, frames, shapes: Shapes) -> np.ndarray:
    """(S,) the time of the first of the ``frames`` (numbers) that has each body; nan where none has it."""
    out = np.full(len(shapes.radius), np.nan)
    for k in frames:
        rows = np.searchsorted(shapes.frame.identities, source.numbers(k))
        out[rows] = np.fmin(out[rows], source.times[k])
        if not np.isnan(out).any():
            break
    return out


def shapes_box(shapes: Shapes, birth: np.ndarray) -> bytes:
    """The box of what does not change; ``birth`` (S,) the time of the first frame of each body."""
    f = shapes.frame
    known = f.materials if len(f.materials) else np.full(len(f.kinds), -1)
    columns = {
        "number": f.identities, "kind": f.kinds, "material": known, "mass": f.masses, "radius": shapes.radius,
        "simple": shapes.simple.astype(int), "plane": shapes.plane.astype(int), "birth": np.nan_to_num(birth, nan=0.0),
        "ball_body": f.ball_bodies, "ball_radius": f.ball_radii, "ball_centre": in_space(f.ball_centres),
        "plane_body": _plane_rows(shapes), "plane_normal": in_space(f.plane_normals),
    }  # fmt: skip
    corners, starts, rows = outlines(f)
    if len(rows):
        triangles, bodies, edges, edge_bodies = _triangles(corners, starts, rows, f.dimension == 2)
        columns |= {"triangle": triangles, "triangle_body": bodies, "edge": edges, "edge_body": edge_bodies}
    return box(columns, {"quantum": shapes.quantum, "dimension": f.dimension})


def _plane_rows(shapes: Shapes) -> np.ndarray:
    return np.flatnonzero(shapes.plane)[: len(shapes.frame.plane_normals)]


def group_box(frames: list[Frame], shapes: Shapes, contacts: bool = True) -> bytes:
    """The box of some frames in a row."""
    columns, about, last = {}, [], np.zeros((len(shapes.radius), 7), dtype=np.int64)
    for k, frame in enumerate(frames):
        more, floors = _frame_columns(frame, shapes, last, contacts)
        columns |= {f"{k}.{name}": column for name, column in more.items()}
        about.append({"time": frame.time, "step": frame.step, "cell": cell_of(frame), **floors})
    return box(columns, {"frames": about})


def cell_of(frame: Frame) -> dict | None:
    """The vectors of the periodic cell, row after row in space, and along which of them it repeats itself."""
    if frame.cell is None:
        return None
    vectors, d = np.eye(3), frame.dimension
    vectors[:d, :d] = frame.cell
    return {"vectors": vectors.ravel().tolist(), "periodic": [*map(bool, frame.periodic), *(3 - d) * [False]]}


def _frame_columns(frame: Frame, shapes: Shapes, last: np.ndarray, contacts: bool) -> tuple[dict, dict]:
    """The columns of a frame and the floors of its codes; ``last`` (S, 7) is where the bodies were, and becomes where
    they are: place, quaternion."""
    m, d = measure(frame), frame.dimension
    slots = np.searchsorted(shapes.frame.identities, frame.identities)
    place = np.clip(np.rint(m.position / shapes.quantum), -(2**30), 2**30).astype(np.int64)
    columns, floors = {"slot": np.diff(slots, prepend=0)}, {}
    for i in range(d):
        columns["xyz"[i]] = place[:, i] - last[slots, i]
    last[slots, :3] = place
    shown = shapes.turned[slots]
    turns = quaternions_of(frame)[shown]
    turns *= np.where(np.einsum("ij,ij->i", turns, last[slots[shown], 3:]) < 0, -1.0, 1.0)[:, None]  # q and -q are one
    whole = np.rint(TURN * turns).astype(np.int64)
    for i in range(4) if d == 3 else (0, 3):
        columns[f"q{i}"] = whole[:, i] - last[slots[shown], 3 + i]
    last[slots[shown], 3:] = whole
    for name, values in (("speed", np.sqrt((m.velocity**2).sum(axis=1))), ("spin", np.sqrt((m.spin**2).sum(axis=1))),
                         ("pressure", np.where(frame.kinds == FREE, m.pressure, 0.0))):  # fmt: skip
        columns[name], floors[name] = coded(values)
    if contacts and len(frame.contacts.gap):
        floors["force"], floors["gap"] = _add_contacts(columns, frame, shapes, slots, place)
    return columns, floors


def _add_contacts(columns: dict, frame: Frame, shapes: Shapes, slots, place) -> tuple[float, float]:
    """The contacts of a frame, sorted by their bodies; returns the floors of the forces and gaps."""
    t = touching(frame)
    acting = (frame.contacts.impulse != 0).any(axis=1)
    pair = slots[t.rows]
    order = np.lexsort((pair[:, 1], pair[:, 0]))
    order = order[acting[order]]
    pair, rows = pair[order], t.rows[order]
    columns["a"], columns["b"] = np.diff(pair[:, 0], prepend=0), pair[:, 1] - pair[:, 0]
    columns["force"], force_floor = coded(t.normal_force[order])
    size = np.abs(t.normal_force[order])
    share = np.divide(t.friction_force[order], size, out=np.full(len(size), 4.0), where=size > 0)
    columns["friction"] = np.rint(64 * np.minimum(share, 4.0))
    columns["status"] = t.status[order]
    gap, gap_floor = coded(t.gap[order])
    columns["gap"] = np.rint(gap / 8)  # to some percent
    derived = ((shapes.simple | shapes.plane)[pair]).all(axis=1)
    hold = np.where(shapes.plane[pair[:, 1]], rows[:, 0], rows[:, 1])[~derived]
    point = np.rint(t.point[order][~derived] / shapes.quantum) - place[hold]
    for i in range(frame.dimension):
        columns["uvw"[i]] = point[:, i]
    return force_floor, gap_floor


def curves_of(log: dict) -> dict:
    """The curves over time that the page draws, at most `CURVE_POINTS` values each; of each stretch, the largest.

    Energies are taken at the end of a stretch.
    """
    count = len(log["time"])
    if not count:
        return {"time": []}
    stretch = -(-count // CURVE_POINTS)
    begins = np.arange(0, count, stretch)
    ends = np.append(begins[1:], count) - 1
    work = log["normal_work"] + log["tangential_work"] + log["rolling_work"]

    def largest(name):
        return np.maximum.reduceat(log[name], begins)

    columns = (log["kinetic"][ends], log["potential"][ends], work[ends], largest("residual"), largest("iterations"),
               largest("relative_penetration"), largest("contacts"))  # fmt: skip
    out = {"time": log["time"][ends], **dict(zip(CURVES, columns, strict=True))}
    return {name: [float(f"{v:.6g}") if np.isfinite(v) else None for v in column] for name, column in out.items()}
