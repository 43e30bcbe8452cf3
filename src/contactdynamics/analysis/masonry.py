"""Structures of blocks: the line of thrust (2D), and how far joints have opened and slid."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .. import quaternions
from ..display import pictured, short
from ..errors import InputError, as_numbers, explained
from .forces import contact_forces, new_axes


class Thrust(NamedTuple):
    """The line of thrust through a chain of bodies: where each joint is pressed, and how hard.

    The resultant of a joint's contact forces crosses the joint at the centre of pressure; the line through these
    points, joint by joint, is the line of thrust. It stays inside the joints where contacts only push. Joints that
    carry nothing, or pull, have nan.
    """

    points: np.ndarray  # (K, 2) centres of pressure, m
    forces: np.ndarray  # (K, 2) resultant on the later body of each pair, N
    eccentricity: np.ndarray  # (K,) of the point: -1 and 1 at the ends of the joint, 0 in its middle
    inclination: np.ndarray  # (K,) tangential over normal force of the joint; friction is its bound

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, colour="C3", width: float = 1.6, scale: float | None = None):
        """Draw the line; with ``scale`` (force per length of the drawing) also the forces as arrows."""
        ax = new_axes(ax)
        ax.plot(*self.points.T, "-", color=colour, lw=width)
        ax.plot(*self.points.T, "o", color=colour, ms=2 * width)
        if scale is not None:
            ax.quiver(*self.points.T, *self.forces.T, angles="xy", scale_units="xy", scale=scale, color=colour)
        ax.set_aspect("equal")
        return ax


@explained
def thrust_line(frame, chain) -> Thrust:
    """The line of thrust of the bodies ``chain`` (K + 1,), in their order, from the contact forces of a frame.

    ``chain`` are body numbers, such as ``packings.arch(...).chain``. The contact points of a joint lie on one line; the
    resultant crosses it at sum(F_n x) / sum(F_n).
    """
    if frame.dimension != 2:
        raise InputError("thrust_line works in two dimensions; give a frame of a scene with gravity of length 2.")
    chain = as_numbers("chain", chain).astype(int)
    if chain.ndim != 1 or len(chain) < 2 or not np.isin(chain, frame.identities).all():
        raise InputError(f"thrust_line got the chain {chain.tolist()}; give the numbers of at least two bodies.")
    contacts, force = frame.contacts, contact_forces(frame)
    out = [np.full((len(chain) - 1, 2), np.nan) for _ in range(2)]
    sizes = np.full((2, len(chain) - 1), np.nan)
    for k, (one, two) in enumerate(pairwise(chain)):
        here = (contacts.bodies == (one, two)).all(axis=1) | (contacts.bodies == (two, one)).all(axis=1)
        normal = contacts.impulse[here, 0]
        if not normal.sum() > 0:
            continue
        sign = np.where(contacts.bodies[here, 1] == two, 1.0, -1.0)
        point = contacts.point[here]
        out[0][k] = normal @ point / normal.sum()
        out[1][k] = sign @ force[here]
        sizes[0, k] = _eccentricity(point, out[0][k])
        sizes[1, k] = abs(contacts.impulse[here, 1].sum()) / normal.sum()
    return Thrust(*out, *sizes)


def _eccentricity(points, pressed) -> float:
    """Place of ``pressed`` between the ends of the contact points: -1 to 1, from the lower (left) end; nan for one."""
    along = np.ptp(points, axis=0)
    if not along.any():
        return float("nan")
    ends = points[np.argsort(points[:, int(np.argmax(along))])][[0, -1]]
    axis = ends[1] - ends[0]
    return float(2 * (pressed - ends[0]) @ axis / (axis @ axis) - 1)


class Openings(NamedTuple):
    """How joints have opened and slid between two frames; K pairs of bodies that touched in the first one."""

    bodies: np.ndarray  # (K, 2) their numbers
    opening: np.ndarray  # (K,) largest over the contact points of the joint, along its normal; 0 where it is closed, m
    slip: np.ndarray  # (K,) largest over its contact points, along the joint, m
    points: np.ndarray  # (K, d) middle of the joint in the second frame

    __repr__ = short


@explained
def joint_openings(start, now) -> Openings:
    """How far the joints that were closed in the frame ``start`` have opened and slid in the frame ``now``.

    A contact point of the first frame goes with both bodies; what lies between its two places later is an opening along
    the normal, which turns with the first body, and a slip across it. The frames are of one run, with the same bodies.
    """
    if start.dimension != now.dimension or not np.isin(start.contacts.bodies, now.identities).all():
        raise InputError("joint_openings got frames with other bodies; give two frames of one run.")
    c, d = start.contacts, start.dimension
    places, normal = [], None
    for side in range(2):
        before, after = (np.searchsorted(f.identities, c.bodies[:, side]) for f in (start, now))
        arm = c.point - start.positions[before]
        turn = _turn(start.rotations[before], now.rotations[after], d)
        places.append(now.positions[after] + np.einsum("kij,kj->ki", turn, arm))
        normal = np.einsum("kij,kj->ki", turn, c.normal) if normal is None else normal
    apart = places[1] - places[0]
    along = (apart * normal).sum(axis=1)
    across = np.linalg.norm(apart - along[:, None] * normal, axis=1)
    pairs, joint = np.unique(c.bodies, axis=0, return_inverse=True)
    joint = joint.ravel()
    opening, slip, points = np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros((len(pairs), d))
    np.maximum.at(opening, joint, along)
    np.maximum.at(slip, joint, across)
    np.add.at(points, joint, 0.5 * (places[0] + places[1]))
    return Openings(pairs, opening, slip, points / np.bincount(joint, minlength=len(pairs))[:, None])


def _turn(before, after, d: int) -> np.ndarray:
    """(k, d, d) the rotations from the orientations ``before`` to those ``after``."""
    if d == 2:
        angle = after - before
        return np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), -1, 0)
    back = before * np.array([1.0, -1.0, -1.0, -1.0])
    w, x, y, z = quaternions.product(after, back).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
