"""Frames: the state of a scene as analyses, drawings and files know it."""

from typing import NamedTuple

import numpy as np

from .. import quaternions
from ..state import NO_JOINTS, Contacts, Frame
from .tables import Tables, take

NO_LAWS = (), np.zeros((0, 0), dtype=np.int64), NO_JOINTS


class Moment(NamedTuple):
    """When a frame was taken: the first fields of `Frame`."""

    time: float  # s
    step: int
    time_step: float  # s
    dimension: int
    gravity: np.ndarray  # (d,) m/s^2

    @classmethod
    def none(cls, dimension: int) -> "Moment":
        """Of shapes alone: no time, no gravity."""
        return cls(0.0, 0, 1.0, dimension, np.zeros(dimension))


def no_contacts(d: int) -> Contacts:
    """None, in ``d`` dimensions."""
    return Contacts(
        np.zeros((0, 2), dtype=np.int64), np.zeros((0, d)), np.zeros((0, d)), np.zeros(0), np.zeros((0, d)),
        np.zeros((0, d, d)), np.zeros(0, dtype=np.int8), np.zeros((0, 3 if d == 3 else 1)),
    )  # fmt: skip


def make_frame(
    moment: Moment, tables: Tables, contacts: Contacts, laws: tuple = NO_LAWS, cell: tuple = (None, None, None)
) -> Frame:
    """A `Frame` from arrays of a simulation or a file; of polygons and polyhedra it has these, not the balls around.

    ``laws`` are those of `Materials.laws`, ``cell`` its vectors, periodic directions and velocity gradient.
    """
    b, balls, planes, corners, rims = tables
    d = moment.dimension
    material = np.full(len(b.mass), -1, dtype=np.int64)
    material[balls.body], material[planes.body] = balls.material, planes.material
    turned = quaternions.product(b.orientation, quaternions.conjugate(b.principal))
    rotations = turned if d == 3 else np.angle((turned[:, 0] + 1j * turned[:, 3]) ** 2)
    spins = b.spin if d == 3 else b.spin[:, 2]

    def placed(local, rows):
        return quaternions.turned(b.orientation[rows], local)

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
        *moment, b.identity, b.position[:, :d], rotations, b.velocity[:, :d], spins, b.mass,
        b.kind, balls.radius, (b.position[balls.body] + placed(balls.centre, balls.body))[:, :d], balls.body,
        placed(planes.normal, planes.body)[:, :d], b.position[planes.body][:, :d], contacts,
        *polygons, material, *laws[:2], *solids, starts[part] + rims.corner, faces, rims.body[faces[:-1]],
        *cell, laws[2],
    )  # fmt: skip


def _starts(*columns) -> np.ndarray:
    """(k+1,) where the values of the columns change: the begin of each of k runs of rows, and their end."""
    new = np.zeros(len(columns[0]), dtype=bool)
    for column in columns:
        new |= np.diff(column, prepend=-1) != 0
    return np.append(np.flatnonzero(new), len(new))
