"""Where bodies leave a running simulation: `Outlet`, also under the name `packings.Outlet`."""

import numpy as np

from ..errors import InputError, as_numbers, explained
from ..state import FREE
from .hooks import Hook


@explained
class Outlet(Hook):
    """Takes free bodies out of the simulation once they lie wholly outside a half-space, or a box.

    The half-space is that of the points x with (x - position) . normal > 0; the box lies between the corners ``low``
    and ``high``, of which each may be left out, and may have infinite coordinates::

        sim.before_step.append(packings.Outlet(position=(0, -1), normal=(0, 1)))  # what falls below y = -1 goes
        sim.before_step.append(packings.Outlet(low=(-2, -1), high=(2, np.inf)))

    Bodies leave at the begin of the first step at which they are outside; ``removed`` counts them, and the ledger has
    their energy as inflow < 0. The last free body stays, since a simulation needs one. A result file holds the outlet.
    """

    def __init__(self, *, position=None, normal=None, low=None, high=None):
        if (position is None) != (normal is None) or (low is high is normal is None):
            raise InputError("Outlet needs a position and a normal, or corners low and high; give one of both.")
        points, normals = [], []
        if normal is not None:
            points.append(_finite("position", position))
            normals.append(_finite("normal", normal))
            if len(points[0]) != len(normals[0]) or not normals[0].any():
                raise InputError(f"Outlet got position={position!r} and normal={normal!r}; give two vectors.")
            normals[0] = normals[0] / np.sqrt(normals[0] @ normals[0])
        for corner, sign in ((low, 1.0), (high, -1.0)):
            corner = np.zeros(0) if corner is None else as_numbers("a corner of an Outlet", corner)
            if corner.ndim != 1:
                raise InputError(f"Outlet got low={low!r} and high={high!r}; give a vector for each.")
            for axis in np.flatnonzero(np.isfinite(corner)):
                normals.append(sign * np.eye(len(corner))[axis])
                points.append(np.where(np.arange(len(corner)) == axis, corner, 0.0))
        if len({len(point) for point in points}) != 1:
            raise InputError(
                f"Outlet got low={low!r} and high={high!r}; give corners of one dimension, not all infinite."
            )
        self.points, self.normals = np.array(points), np.array(normals)  # (k, d) of its planes, inwards
        self.removed = 0

    def __call__(self, simulation) -> None:
        """Remove the bodies that are outside at the begin of a step."""
        bodies, d = simulation.bodies, simulation.model.dimension
        if self.points.shape[1] != d:
            raise InputError(
                f"An Outlet of {self.points.shape[1]} dimensions is in a scene of {d}; give vectors of {d}."
            )
        height = ((bodies.position[:, None, :d] - self.points) * self.normals).sum(axis=2)  # (N, k) over the planes
        free = bodies.kind == FREE
        gone = np.sort(bodies.identity[free & (height.min(axis=1) < -bodies.size)])
        if len(gone) == free.sum():
            gone = gone[:-1]
        if len(gone):
            simulation.remove(gone)
            self.removed += len(gone)

    def to_file(self) -> dict:
        """Its planes."""
        return {"points": self.points.tolist(), "normals": self.normals.tolist()}

    @classmethod
    def from_file(cls, parameters: dict) -> "Outlet":
        """The outlet of a file, that has removed nothing yet."""
        outlet = cls(position=parameters["points"][0], normal=parameters["normals"][0])
        outlet.points, outlet.normals = (np.array(parameters[name], dtype=float) for name in ("points", "normals"))
        if outlet.points.shape != outlet.normals.shape or outlet.points.ndim != 2:
            raise ValueError("points and normals differ")
        return outlet

    def memory(self) -> dict:
        """How many bodies have left."""
        return {"removed": int(self.removed)}

    def remember(self, memory: dict) -> None:
        """Take back what `memory` gave."""
        self.removed = int(memory["removed"])


def _finite(name: str, value) -> np.ndarray:
    array = as_numbers(f"{name} of an Outlet", value)
    if array.shape not in ((2,), (3,)) or not np.isfinite(array).all():
        raise InputError(f"Outlet got {name}={value!r}; give 2 or 3 finite numbers.")
    return array
