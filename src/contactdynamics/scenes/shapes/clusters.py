"""Several spheres, disks or convex polyhedra as one rigid body."""

from functools import cached_property

import numpy as np

from ...errors import InputError, as_numbers, explained
from .balls import MassProperties, tensor
from .hulls import ball_of, moments, union_of_polyhedra
from .polyhedra import Polyhedron
from .unions import union_of_disks, union_of_spheres


@explained
class Cluster:
    """Several spheres or disks, or several convex polyhedra, as one rigid body.

    Of balls: ``radii`` (k,) and ``centres`` (k, 2 or 3) in any frame. Of polyhedra: a list of them in the place of the
    radii, each where its points were given, or with its centre of mass at its row of ``centres``
    (k, 3). The body's position is its centre of mass (``center_of_mass`` in that frame). Overlapping parts count once:
    the mass properties are those of the union, exact to rounding (see `unions`, `hulls.disjoint`), and computed
    when they are first asked for.

    >>> step = Cluster([Polyhedron.prism([(0, 0), (2, 0), (2, 1), (0, 1)], 1.0), Polyhedron.wedge((1.0, 1.0, 2.0))])
    >>> step.volume
    2.25
    """

    def __init__(self, radii, centres=None):
        if isinstance(radii, list | tuple) and any(isinstance(shape, Polyhedron) for shape in radii):
            self._take_polyhedra(radii, centres)
            return
        self._given_solids = []
        self.radii = np.atleast_1d(as_numbers("radii of a Cluster", radii))
        given = np.atleast_2d(as_numbers("centres of a Cluster", () if centres is None else centres))
        if len(self.radii) == 0 or given.ndim != 2 or given.shape[1] not in (2, 3) or len(given) != len(self.radii):
            raise InputError(
                f"Cluster got {len(self.radii)} radii and centres of shape {given.shape}; give as many of both, "
                "centres with 2 or 3 columns."
            )
        if not (np.isfinite(given).all() and np.isfinite(self.radii).all() and (self.radii > 0).all()):
            raise InputError("Cluster got a radius or a centre that is not a finite number; give positive radii.")
        self.dimension = given.shape[1]
        self._given = given.copy()

    def _take_polyhedra(self, shapes, centres) -> None:
        for shape in shapes:
            if not isinstance(shape, Polyhedron):
                raise InputError(f"Cluster got {shape!r} among polyhedra; give polyhedra alone, or radii and centres.")
        own = np.array([shape.center_of_mass for shape in shapes])
        places = own if centres is None else as_numbers("centres of a Cluster", centres)
        if places.shape != own.shape or not np.isfinite(places).all():
            raise InputError(
                f"Cluster got {len(shapes)} polyhedra and centres of shape {places.shape}; give one centre (x, y, z) "
                "each, or none, to leave them where they are."
            )
        self.dimension = 3
        self._given_solids = [(s.vertices + place, s.faces) for s, place in zip(shapes, places, strict=True)]

    def __repr__(self):
        if self._given_solids:
            return f"Cluster of {len(self._given_solids)} polyhedra"
        return f"Cluster of {len(self.radii)} {'disks' if self.dimension == 2 else 'spheres'}"

    @cached_property
    def _properties(self) -> MassProperties:
        """Of the union, with its centre in the frame of what was given."""
        if self._given_solids:
            return union_of_polyhedra(self._given_solids)
        middle = self._given.mean(axis=0)  # near the cluster: no digits are lost far from the origin
        union = union_of_disks if self.dimension == 2 else union_of_spheres
        volume, first, second = union(self.radii, self._given - middle)
        d = self.dimension
        moments_, squares, shift = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
        moments_[:d], squares[:d, :d], shift[:d] = first, second, middle
        found = tensor(volume, moments_, squares)
        found.centre = found.centre + shift
        return found

    @property
    def center_of_mass(self) -> np.ndarray:
        """(d,) in the frame of what was given."""
        return self._properties.centre[: self.dimension]

    @property
    def volume(self) -> float:
        """Volume (area in 2D) of the union."""
        return self._properties.volume

    @property
    def solids(self) -> list:
        """The convex parts of a cluster of polyhedra: corners (k, 3) from the centre of mass, and faces."""
        return [(vertices - self.center_of_mass, faces) for vertices, faces in self._given_solids]

    def mass_properties(self) -> MassProperties:
        return MassProperties(self._properties.volume, np.zeros(3), self._properties.inertia)

    def balls(self):
        """Spheres or disks that make up the shape or hold its parts: radii (k,), centres (k, 3) from the middle."""
        if self._given_solids:
            centres = np.array([first / volume for volume, first, _ in (moments(*solid) for solid in self.solids)])
            held = zip(self.solids, centres, strict=True)
            return np.array([ball_of(vertices, centre) for (vertices, _), centre in held]), centres
        centres = np.zeros((len(self.radii), 3))
        centres[:, : self.dimension] = self._given - self.center_of_mass
        return self.radii, centres
