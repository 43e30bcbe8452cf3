"""Tables of new bodies, from their shapes."""

from functools import cache
from typing import NamedTuple

import numpy as np

from .. import quaternions
from ..errors import InputError, as_numbers, is_number
from ..state import FREE, NO_CORNERS, NO_RIMS, Balls, Bodies, Corners, Rims
from .shapes.balls import Disk, Sphere
from .shapes.polygons import Polygon
from .tables import NO_PLANES, Tables

ALONG = np.array([1.0, 0.0, 0.0, 0.0])  # not turned


class Placed(NamedTuple):
    """Where k new bodies are and how they move."""

    first: int  # number of the first
    place: np.ndarray  # (k, 3) m
    orientation: np.ndarray  # (k, 4)
    velocity: np.ndarray  # (k, 3) m/s
    spin: np.ndarray  # (k, 3) in space, rad/s
    kind: int

    def one(self, n: int) -> "Placed":
        """The ``n``-th of them alone."""
        row = slice(n, n + 1)
        return Placed(
            self.first + n, self.place[row], self.orientation[row], self.velocity[row], self.spin[row], self.kind
        )


class Stuff(NamedTuple):
    """What a body is made of."""

    material: int
    density: float


def bodies(placed: Placed, mass, inertia, *, size, simple: bool, principal=ALONG) -> Bodies:
    """The table of k bodies; ``mass`` and ``inertia`` one for all or one each."""
    k = len(placed.place)
    return Bodies(
        placed.first + np.arange(k), placed.place, placed.orientation, np.full((k, 4), principal), placed.velocity,
        placed.spin, np.full(k, mass, dtype=float), np.full((k, 3), inertia), np.full(k, placed.kind, dtype=np.int8),
        np.full(k, simple), size, np.zeros(k, dtype=np.int8),
    )  # fmt: skip


def corners(shape, axes, number: int) -> Corners:
    """The corners of a polygon or of polyhedra, in the principal ``axes``, of the body with this ``number``."""
    if isinstance(shape, Polygon):
        parts = [np.concatenate([part, np.zeros((len(part), 1))], axis=1) for part in shape.parts]
    else:
        parts = [vertices @ axes for vertices, _ in getattr(shape, "solids", ())]
    if not parts:
        return NO_CORNERS
    part = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return Corners(np.concatenate(parts), np.full(len(part), number), part)


def rims(shape, number: int) -> Rims:
    """The rims of the faces of polyhedra, of the body with this ``number``."""
    rows = [
        (corner, face_number, number, part)
        for part, (_, faces) in enumerate(getattr(shape, "solids", ()))
        for face_number, face in enumerate(faces)
        for corner in face
    ]
    return Rims(*np.array(rows, dtype=np.int64).T) if rows else NO_RIMS


def solid(shape, placed: Placed, stuff: Stuff, mass=None, inertia=None) -> Tables:
    """The block of one solid body; ``mass`` and ``inertia`` replace what follows from the density."""
    dimension = shape.dimension
    properties = shape.mass_properties()
    m = stuff.density * properties.volume if mass is None else mass
    if not (is_number(m) and m > 0):
        raise InputError(f"A body got mass={mass!r}; give a positive number.")
    if dimension == 2:  # turning about z only: the other moments never act
        moments, axes = np.full(3, properties.inertia[2, 2]), np.eye(3)
    else:
        moments, axes = properties.principal
    moments = moments * (m / properties.volume)
    if inertia is not None:
        given = as_numbers("inertia", inertia)
        moments = np.broadcast_to(given, (3,)).copy() if given.shape in ((), (1,), (3,)) else np.zeros(3)
        if not (np.isfinite(moments).all() and (moments > 0).all()):
            raise InputError(f"A body got inertia={inertia!r}; give positive principal moments.")
        if dimension == 3 and 2 * moments.max() > moments.sum() * (1 + 1e-12):
            raise InputError(
                f"A body got inertia={inertia!r}, which no distribution of mass has; "
                "the largest principal moment is at most the sum of the two others."
            )
    radii, centres = shape.balls()
    reach = (np.sqrt((centres**2).sum(axis=1)) + radii).max()
    principal = quaternions.from_matrix(axes)
    turned = placed._replace(orientation=quaternions.product(placed.orientation, principal[None]))
    simple = isinstance(shape, Sphere | Disk) and inertia is None
    made = bodies(turned, m, moments, size=np.array([reach]), simple=simple, principal=principal)
    k = len(radii)
    balls = Balls(radii, centres @ axes, np.full(k, placed.first), np.full(k, stuff.material))
    return Tables(made, balls, NO_PLANES, corners(shape, axes, placed.first), rims(shape, placed.first))


@cache
def unit_ball(dimension: int):
    """The mass properties of a disk or sphere of radius 1."""
    return (Disk if dimension == 2 else Sphere)(1.0).mass_properties()


def balls(dimension: int, placed: Placed, stuff: Stuff, radii: np.ndarray) -> Tables:
    """Disks or spheres of these radii (k,)."""
    unit = unit_ball(dimension)
    mass = stuff.density * unit.volume * radii**dimension
    inertia = mass[:, None] * radii[:, None] ** 2 * np.full(3, unit.inertia[2, 2] / unit.volume)
    table, k = bodies(placed, mass, inertia, size=radii, simple=True), len(radii)
    rows = placed.first + np.arange(k)
    return Tables(table, Balls(radii, np.zeros((k, 3)), rows, np.full(k, stuff.material)), NO_PLANES)


def weighed(tables: Tables) -> Tables:
    """The tables with a mass for walls that got none: that of all other free bodies."""
    b = tables.bodies
    unknown = np.isnan(b.mass)
    if not unknown.any():
        return tables
    total = b.mass[(b.kind == FREE) & ~unknown].sum()
    return tables._replace(bodies=b._replace(mass=np.where(unknown, total if total > 0 else 1.0, b.mass)))
