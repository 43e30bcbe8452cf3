"""The texture of contacts: histogram of directions and fabric tensor."""

from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, explained
from .forces import selected
from .regions import axis_of, spatial


def _normals(frame, region, meridian, axis) -> np.ndarray:
    """Normals (K, d); with ``meridian`` along (r, theta, z) at the contact point, outwards from the axis."""
    keep = selected(frame, region)
    normal = frame.contacts.normal[keep].astype(float)
    if meridian:
        spatial(frame, "meridian=True")
        normal = np.einsum("kij,kj->ki", polar_frames(frame.contacts.point[keep], axis_of(frame, axis)), normal)
    return normal


def polar_frames(points, axis=None) -> np.ndarray:
    """Rows e_r, e_theta, e_z (K, 3, 3) at points about a vertical axis."""
    x, y = (points[:, :2] - (np.zeros(2) if axis is None else np.asarray(axis, dtype=float))).T
    away = np.hypot(x, y)
    on_axis = away == 0
    c = np.where(on_axis, 1.0, x / np.where(on_axis, 1.0, away))
    s = np.where(on_axis, 0.0, y / np.where(on_axis, 1.0, away))
    frames = np.zeros((len(points), 3, 3))
    frames[:, 0, 0], frames[:, 0, 1] = c, s
    frames[:, 1, 0], frames[:, 1, 1] = -s, c
    frames[:, 2, 2] = 1.0
    return frames


class Directions(NamedTuple):
    """Histogram of contact directions over half a turn, 1 where all directions are as frequent."""

    edges: np.ndarray  # (B + 1,) rad, 0 is horizontal and outwards, pi/2 upwards
    density: np.ndarray  # (B,)

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None):
        """A rose: each direction and its opposite, with the circle of equal frequency."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(layout="constrained").add_subplot(projection="polar")
        middle, width = 0.5 * (self.edges[1:] + self.edges[:-1]), np.diff(self.edges)
        for turn in (0.0, np.pi):
            ax.bar(middle + turn, self.density, width, color="0.8", edgecolor="k", lw=0.5)
        circle = np.linspace(0, 2 * np.pi, 181)
        ax.plot(circle, np.ones_like(circle), "r-", lw=0.8)
        ax.set_yticklabels([])
        return ax


@explained
def directions(frame, region=None, *, meridian: bool = False, axis=None, bins: int = 18) -> Directions:
    """The histogram of the directions of contact normals in the plane (x, z), or (r, z) with ``meridian``.

    Each normal counts by its projection; the projections of equally frequent directions in space are equally frequent.
    Directions of contact planes are those turned by a right angle.
    """
    normal = _normals(frame, region, meridian, axis)
    angle = np.arctan2(normal[:, -1], normal[:, 0]) % np.pi
    if not (isinstance(bins, int) and bins >= 1):
        raise InputError(f"directions got bins={bins!r}; give a positive whole number.")
    number, edges = np.histogram(angle, bins=bins, range=(0, np.pi))
    return Directions(edges, number * bins / max(1, len(normal)))


class Fabric(NamedTuple):
    """The mean of n n^T over contacts; its trace is 1."""

    tensor: np.ndarray  # (d, d)
    values: np.ndarray  # (d,) principal values, the largest first
    axes: np.ndarray  # (d, d) principal directions, rows
    anisotropy: float  # 2 (F1 - F2) in 2D, 15/2 of the largest deviator in 3D: amplitude of the density of directions
    contacts: int

    __repr__ = short


@explained
def fabric(frame, region=None, *, meridian: bool = False, axis=None) -> Fabric:
    """The fabric tensor of the contacts that push, in space or along (r, theta, z) with ``meridian``."""
    normal = _normals(frame, region, meridian, axis)
    d = frame.dimension
    tensor = normal.T @ normal / max(1, len(normal))
    values, vectors = np.linalg.eigh(tensor)
    values, vectors = values[::-1], vectors.T[::-1]
    anisotropy = 2 * (values[0] - values[1]) if d == 2 else 7.5 * float(np.abs(values - values.mean()).max())
    return Fabric(tensor, values, vectors, float(anisotropy), len(normal))
