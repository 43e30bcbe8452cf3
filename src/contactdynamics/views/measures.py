"""Numbers of each body and contact of a frame, as all views show them."""

import math
from typing import NamedTuple

import numpy as np

from ..analysis.forces import contact_forces, contact_rows
from ..analysis.stress import grain_moments
from ..state import Frame


class Measures(NamedTuple):
    """One row per body of a frame; vectors have three components also in 2D."""

    position: np.ndarray  # (N, 3) m
    velocity: np.ndarray  # (N, 3) m/s
    spin: np.ndarray  # (N, 3) in space, rad/s
    orientation: np.ndarray  # (N, 4) unit quaternion (w, x, y, z)
    radius: np.ndarray  # (N,) of the smallest ball around the centre of mass that holds the body; 0 for planes
    volume: np.ndarray  # (N,) area in 2D; balls of a cluster are summed; 0 for planes
    contacts: np.ndarray  # (N,) number of contacts with an impulse
    force: np.ndarray  # (N,) largest normal force of its contacts, N
    stress: np.ndarray  # (N, 3, 3) mean stress, positive in compression; 0 for planes
    pressure: np.ndarray  # (N,) a third (in 2D, half) of its trace


def in_space(vectors: np.ndarray) -> np.ndarray:
    """Vectors (k, d) with three components."""
    out = np.zeros((len(vectors), 3))
    out[:, : vectors.shape[1]] = vectors
    return out


def quaternions_of(frame: Frame) -> np.ndarray:
    """Orientations (N, 4) of the bodies of a frame, in 2D about z."""
    if frame.dimension == 3:
        return np.array(frame.rotations, dtype=float)
    out = np.zeros((len(frame.rotations), 4))
    out[:, 0], out[:, 3] = np.cos(0.5 * frame.rotations), np.sin(0.5 * frame.rotations)
    return out


def radii_and_volumes(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Radius (N,) of the ball around each body and its volume (N,)."""
    count, d = len(frame.identities), frame.dimension
    radius = np.zeros(count)
    away = np.sqrt(((frame.ball_centres - frame.positions[frame.ball_bodies]) ** 2).sum(axis=1)) + frame.ball_radii
    np.maximum.at(radius, frame.ball_bodies, away)
    unit = math.pi if d == 2 else 4 / 3 * math.pi
    volume = np.bincount(frame.ball_bodies, unit * frame.ball_radii**d, count).astype(float)  # whole numbers of nothing
    corners, starts, bodies = outlines(frame)
    of_corner = np.repeat(bodies, np.diff(starts))
    np.maximum.at(radius, of_corner, np.sqrt(((corners - in_space(frame.positions)[of_corner]) ** 2).sum(axis=1)))
    if len(bodies):
        # Divergence theorem from the centre of the body, over the triangles of each face; in 2D over its edges.
        local = corners - in_space(frame.positions)[of_corner]
        after = np.arange(1, len(local) + 1)
        after[starts[1:] - 1] = starts[:-1]
        first = np.repeat(local[starts[:-1]], np.diff(starts), axis=0)
        normal = np.cross(local, local[after])
        share = 0.5 * normal[:, 2] if d == 2 else np.einsum("ij,ij->i", first, normal) / 6
        volume += np.bincount(of_corner, share, count)
    return radius, volume


def outlines(frame: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is no ball, face by face: corners (C, 3) in space, starts (Q+1,), rows of bodies (Q,).

    In 2D the convex parts of polygons, in 3D the faces of polyhedra, seen from outside.
    """
    if frame.dimension == 2:
        return in_space(frame.polygon_corners), frame.polygon_starts, frame.polygon_bodies
    return frame.solid_corners[frame.face_corners], frame.face_starts, frame.face_bodies


def measure(frame: Frame) -> Measures:
    """The numbers of the bodies of a frame."""
    count, d, rows = len(frame.identities), frame.dimension, contact_rows(frame)
    radius, volume = radii_and_volumes(frame)
    normal = frame.contacts.impulse[:, 0] / frame.time_step
    acting = (frame.contacts.impulse != 0).any(axis=1)
    contacts = np.bincount(rows[acting].ravel(), minlength=count)
    force = np.zeros(count)
    for side in range(2):
        np.maximum.at(force, rows[:, side], normal)
    stress = np.zeros((count, 3, 3))
    solid = volume > 0
    stress[solid, :d, :d] = grain_moments(frame)[solid] / volume[solid, None, None]
    spins = frame.spins if d == 3 else np.stack([np.zeros(count), np.zeros(count), frame.spins], axis=1)
    return Measures(
        in_space(frame.positions), in_space(frame.velocities), spins, quaternions_of(frame), radius, volume, contacts,
        force, stress, np.trace(stress, axis1=1, axis2=2) / d,
    )  # fmt: skip


class Touching(NamedTuple):
    """One row per contact of a frame; vectors have three components also in 2D."""

    bodies: np.ndarray  # (C, 2) numbers; the normal points from the first to the second
    rows: np.ndarray  # (C, 2) rows of the bodies in the frame
    point: np.ndarray  # (C, 3) m
    normal: np.ndarray  # (C, 3)
    force: np.ndarray  # (C, 3) on the second body: impulse over time step, N
    gap: np.ndarray  # (C,) m
    status: np.ndarray  # (C,) see `state.STATUS_NAMES`
    normal_force: np.ndarray  # (C,) N
    friction_force: np.ndarray  # (C,) size of the tangential part, N


def touching(frame: Frame) -> Touching:
    """The contacts of a frame."""
    c = frame.contacts
    tangential = np.sqrt((c.impulse[:, 1:] ** 2).sum(axis=1)) / frame.time_step
    return Touching(
        c.bodies, contact_rows(frame), in_space(c.point), in_space(c.normal), in_space(contact_forces(frame)), c.gap,
        c.status, c.impulse[:, 0] / frame.time_step, tangential,
    )  # fmt: skip
