"""Cauchy stress: per grain, in regions, over the meridian plane; positive in compression.

A grain in equilibrium has the moment M_ij = - sum over its contacts of F_i l_j, F the force on it and l from its centre
to the contact point; the mean stress over a region is the sum of the moments of its grains over its volume. The
pressure vector on a cut of normal n is sigma n.
"""

from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, explained, is_number
from ..state import FREE
from .fabric import polar_frames
from .forces import contact_forces, contact_rows, new_axes
from .regions import axis_of, fitting, positive, spatial


@explained
def grain_moments(frame) -> np.ndarray:
    """Moments (N, d, d) of the bodies, force times length; over the volume of a grain, its mean stress."""
    rows, force, d = contact_rows(frame), contact_forces(frame), frame.dimension
    moments = np.zeros((len(frame.identities), d, d))
    for side, sign in ((0, -1.0), (1, 1.0)):
        lever = frame.shortest(frame.contacts.point - frame.positions[rows[:, side]])
        product = -sign * force[:, :, None] * lever[:, None, :]
        for i in range(d):
            for j in range(d):
                moments[:, i, j] += np.bincount(rows[:, side], product[:, i, j], len(moments))
    return moments


class Stress(NamedTuple):
    """Mean stress over a region."""

    tensor: np.ndarray  # (d, d)
    grains: int
    volume: float

    __repr__ = short

    @property
    def pressure(self) -> float:
        """A third (in 2D, half) of the trace."""
        return float(np.trace(self.tensor)) / len(self.tensor)

    @property
    def asymmetry(self) -> float:
        """The size of the antisymmetric part over that of the tensor."""
        size = np.linalg.norm(self.tensor)
        return float(np.linalg.norm(self.tensor - self.tensor.T) / (2 * size)) if size > 0 else 0.0


@explained
def stress(frame, region, *, meridian: bool = False, axis=None) -> Stress:
    """The mean stress of the free bodies with centres in a region; along (r, theta, z) with ``meridian``."""
    keep = fitting(region, frame).contains(frame.positions) & (frame.kinds == FREE)
    if not region.volume > 0:
        raise InputError(f"{region!r} has no volume; give a larger region.")
    moments = grain_moments(frame)[keep]
    if meridian:
        spatial(frame, "meridian=True")
        turn = polar_frames(frame.positions[keep], axis_of(frame, axis))
        moments = np.einsum("kia,kab,kjb->kij", turn, moments, turn)
    return Stress(moments.sum(axis=0) / region.volume, int(keep.sum()), region.volume)


class StressMap(NamedTuple):
    """Mean stress in the cells of the meridian half-plane (r, z), along (r, theta, z)."""

    radii: np.ndarray  # (I + 1,) edges
    heights: np.ndarray  # (J + 1,) edges
    tensors: np.ndarray  # (I, J, 3, 3)
    grains: np.ndarray  # (I, J)

    __repr__ = short
    _repr_html_ = pictured

    @property
    def pressure(self) -> np.ndarray:
        """(I, J) a third of the trace."""
        return np.trace(self.tensors, axis1=2, axis2=3) / 3

    def plot(self, ax=None, *, fewest: int = 5, label="mean pressure"):
        """The pressure as colours, the principal directions in the plane as crosses; cells with ``fewest`` grains."""
        ax = new_axes(ax, figsize=(9, 4))
        shown = self.grains >= fewest
        colours = ax.pcolormesh(self.radii, self.heights, np.where(shown, self.pressure, np.nan).T, cmap="viridis_r")
        ax.figure.colorbar(colours, ax=ax, label=label, shrink=0.8)
        size = 0.48 * min(self.radii[1] - self.radii[0], self.heights[1] - self.heights[0])
        for i, j in np.argwhere(shown):
            plane = self.tensors[i, j][np.ix_([0, 2], [0, 2])]
            values, vectors = np.linalg.eigh(0.5 * (plane + plane.T))
            middle = np.array([self.radii[i : i + 2].mean(), self.heights[j : j + 2].mean()])
            for value, vector in zip(values / max(1e-300, np.abs(values).max()), vectors.T, strict=True):
                ends = np.stack([middle - size * value * vector, middle + size * value * vector])
                ax.plot(*ends.T, color="w", lw=1.2)
        ax.set(xlabel="r", ylabel="z")
        ax.set_aspect("equal")
        return ax


@explained
def stress_map(frame, *, cell: float, reach: float, low: float, high: float, axis=None) -> StressMap:
    """The stress in square cells of the meridian half-plane, to the distance ``reach``, from ``low`` to ``high``."""
    spatial(frame, "stress_map")
    cell, reach, axis = positive("cell", cell), positive("reach", reach), axis_of(frame, axis)
    if not (is_number(low) and is_number(high) and low < high):
        raise InputError(f"stress_map got low={low!r} and high={high!r}; give two heights, the lower one first.")
    radii = cell * np.arange(int(np.ceil(reach / cell)) + 1)
    heights = low + cell * np.arange(int(np.ceil((high - low) / cell)) + 1)
    keep = frame.kinds == FREE
    turn = polar_frames(frame.positions[keep], axis)
    moments = np.einsum("kia,kab,kjb->kij", turn, grain_moments(frame)[keep], turn)
    offset = frame.positions[keep, :2] - axis
    r, z = np.sqrt((offset**2).sum(axis=1)), frame.positions[keep, 2]
    grains = np.histogram2d(r, z, (radii, heights))[0]
    volume = np.pi * np.diff(radii**2)[:, None] * np.diff(heights)
    tensors = np.empty((*grains.shape, 3, 3))
    for i in range(3):
        for j in range(3):
            tensors[..., i, j] = np.histogram2d(r, z, (radii, heights), weights=moments[:, i, j])[0] / volume
    return StressMap(radii, heights, tensors, grains.astype(int))
