"""Forces across surfaces of revolution, and on the ground.

2004, section 10.2 (2003, 9.3; 1999, IV.3). A segment in a meridian half-plane generates, by rotation about the axis, a
strip: a piece of a cone, a cylinder or a horizontal plane. Retained are the contacts of bodies whose centres lie on
either side of the whole cone, cylinder or plane, and whose point projects onto the strip itself. The half-plane that
contains the contact point gives the components of the force: R_r away from the axis and R_z upwards.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, as_numbers, explained
from ..state import FREE
from .fabric import polar_frames
from .forces import contact_centres, contact_forces, contact_rows, new_axes
from .regions import axis_of, distance, positive


class Strip(NamedTuple):
    """Average density of meridian force across a strip: that of the side opposite to the normal on the other side."""

    density: np.ndarray  # (2,) sums of (R_r, R_z) over the area; the pressure vector sigma . normal
    normal: np.ndarray  # (2,) unit (r, z), to the right of the segment from its first to its second end
    area: float
    contacts: int
    around: float  # density of the component across the meridian plane, near 0

    __repr__ = short

    @property
    def pressure(self) -> float:
        """The normal component, positive in compression."""
        return float(self.density @ self.normal)


@explained
def strip(frame, segment, *, axis=None) -> Strip:
    """The force across the strip of a ``segment`` ((r1, z1), (r2, z2)); in 2D across the segment ((x1, y1), (x2, y2)).

    A vertical segment drawn upwards has its normal outwards: the density is the force of the core on the outside.
    """
    ends = as_numbers("segment", segment)
    if ends.shape != (2, 2) or not np.isfinite(ends).all() or not (ends[0] != ends[1]).any():
        raise InputError(f"strip got segment={segment!r}; give two different points, ((r1, z1), (r2, z2)).")
    if frame.dimension == 3 and (ends[:, 0].min() < 0 or not ends[:, 0].any()):
        raise InputError(
            f"strip got segment={segment!r}, beyond the axis or on it; give distances r >= 0 from the axis."
        )
    axis = axis_of(frame, axis) if frame.dimension == 3 else None
    along = ends[1] - ends[0]
    length = math.hypot(*along)
    along = along / length
    normal = np.array([along[1], -along[0]])
    centres, point, force = contact_centres(frame), frame.contacts.point.astype(float), contact_forces(frame)
    if frame.dimension == 3:
        area = math.pi * (ends[0, 0] + ends[1, 0]) * length
        local = np.einsum("kij,kj->ki", polar_frames(point, axis), force)[:, [0, 2, 1]]  # R_r, R_z, across
        centres = np.stack([_meridian(centres[:, side], axis) for side in range(2)], axis=1)
        point = _meridian(point, axis)
    else:
        area, local = length, np.column_stack([force, np.zeros(len(force))])
    beyond = (centres - ends[0]) @ normal > 0
    place = (point - ends[0]) @ along
    kept = (beyond[:, 0] != beyond[:, 1]) & (place >= 0) & (place < length)
    if frame.dimension == 3 and ends[1, 0] == 0:  # nothing follows a strip that ends on the axis
        kept |= (beyond[:, 0] != beyond[:, 1]) & (place == length)
    sign = np.where(beyond[kept, 1], 1.0, -1.0)  # the force is that on the second body
    total = (sign[:, None] * local[kept]).sum(axis=0) / area
    return Strip(total[:2], normal, area, int(kept.sum()), float(total[2]))


def _meridian(points, axis) -> np.ndarray:
    """(k, 2) distance from the axis and height."""
    return np.column_stack([distance(points, axis), points[:, 2]])


@explained
def reciprocity(first: Strip, second: Strip) -> float:
    """How far two strips through the same point are from n . T' = n' . T (2004, 10.2), over the mean size of T and T'.

    0 for a symmetric stress.
    """
    size = math.sqrt(math.hypot(*first.density) * math.hypot(*second.density))
    return abs(float(first.normal @ second.density - second.normal @ first.density)) / size if size > 0 else 0.0


def _ground_contacts(frame) -> tuple[np.ndarray, np.ndarray]:
    """Points (K, d) of the contacts between free bodies and others, and the forces (K, d) on the free ones."""
    free = frame.kinds[contact_rows(frame)] == FREE
    keep = free[:, 0] != free[:, 1]
    sign = np.where(free[keep, 1], 1.0, -1.0)
    return frame.contacts.point[keep].astype(float), sign[:, None] * contact_forces(frame)[keep]


@explained
class Pressure(NamedTuple):
    """Mean pressure on the ground in rings of equal width about the axis (in 2D, on both sides of it)."""

    edges: np.ndarray  # (K + 1,)
    values: np.ndarray  # (K,)
    contacts: np.ndarray  # (K,)

    __repr__ = short
    _repr_html_ = pictured

    @property
    def radii(self) -> np.ndarray:
        """(K,) middles of the rings."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    def plot(self, ax=None, **options):
        """The pressure over the distance from the axis."""
        ax = new_axes(ax)
        ax.plot(self.radii, self.values, **{"color": "k", "marker": "o", "ms": 3, "lw": 1, **options})
        ax.set(xlabel="distance from the axis", ylabel="pressure on the ground", xlim=(0, None), ylim=(0, None))
        return ax


@explained
def ground_pressure(frame, *, width: float, reach: float | None = None, axis=None) -> Pressure:
    """The vertical forces of the bodies that do not move freely on those that do, in rings of the given ``width``.

    Rings go out to ``reach`` (to the farthest contact unless given); 2004, section 10.3.
    """
    width, axis = positive("width", width), axis_of(frame, axis)
    point, force = _ground_contacts(frame)
    if frame.dimension == 3:
        r = distance(point, axis)
    else:
        r = abs(point[:, 0] - axis[0])
    reach = (float(r.max(initial=0.0)) or width) if reach is None else positive("reach", reach)
    edges = width * np.arange(max(1, math.ceil(reach / width - 1e-9)) + 1)
    area = math.pi * np.diff(edges**2) if frame.dimension == 3 else 2 * np.diff(edges)
    total = np.histogram(r, edges, weights=force[:, -1])[0]
    return Pressure(edges, total / area, np.histogram(r, edges)[0])


@explained
def weight_balance(frame) -> float:
    """The sum of the vertical forces of the ground over the weight of the free bodies: 1 at rest."""
    weight = float(frame.masses[frame.kinds == FREE].sum()) * float(np.sqrt((frame.gravity**2).sum()))
    if not weight > 0:
        raise InputError("weight_balance found no free body with a weight; give a frame of a scene with gravity.")
    return float(_ground_contacts(frame)[1][:, -1].sum()) / weight
