"""Convex polyhedra in three dimensions: `Polyhedron`, `Box`, and the ways to make them.

A body's position is its centre of mass (`Polyhedron.center_of_mass` in the frame of the points given).
"""

import math

import numpy as np

from ...errors import InputError, as_numbers, check_seed, explained, is_number, is_whole
from . import meshes
from .balls import MassProperties, tensor
from .hulls import LONGEST, ball_of, checked, hull, moments
from .polygons import Polygon

GOLDEN = (1 + math.sqrt(5)) / 2
CONVEX = 1e-6  # of the hull's volume: a mesh that lacks less is convex
CURES = {
    "flat": "leave it out of the file",
    "open": "close it where it was drawn, or give repair=True to take its convex hull",
    "turned": "turn its faces outwards, or give repair=True to do so",
    "concave": "give repair=True to take its convex hull, or nonconvex='split' (packings.blocks) to cut it into parts",
}


@explained
class Polyhedron:
    """A solid convex polyhedron: the convex hull of ``points`` (k, 3), in any frame and order.

    The body's position is its centre of mass (``center_of_mass`` in that frame). ``vertices`` (k, 3) are its corners
    from there, ``faces`` the numbers of the corners of each face, counter-clockwise from outside. Points inside, or in
    the plane of a face but no corner of it, are left out.

    >>> wedge = Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    >>> len(wedge.faces), round(6 * wedge.volume, 12)
    (4, 1.0)
    """

    dimension = 3

    def __init__(self, points):
        self._take(*hull(checked(type(self).__name__, points)))

    def _take(self, vertices, faces) -> None:
        middle = vertices.mean(axis=0)  # near the body: no digits are lost far from the origin
        found = tensor(*moments(vertices - middle, faces))
        self.center_of_mass = found.centre + middle
        self.vertices, self.faces = vertices - middle - found.centre, faces
        self._properties = MassProperties(found.volume, np.zeros(3), found.inertia)

    def __repr__(self):
        return f"{type(self).__name__} of {len(self.vertices)} corners and {len(self.faces)} faces"

    @property
    def volume(self) -> float:
        """Volume, m^3."""
        return self._properties.volume

    @property
    def solids(self) -> list:
        """The convex parts: corners (k, 3) from the centre of mass, and faces."""
        return [(self.vertices, self.faces)]

    def mass_properties(self) -> MassProperties:
        return self._properties

    def balls(self):
        """The ball that holds the body: radius (1,) and centre (1, 3) from the centre of mass."""
        return np.array([ball_of(self.vertices, np.zeros(3))]), np.zeros((1, 3))

    @classmethod
    def read(cls, path, *, scale: float = 1.0, repair: bool = False) -> "Polyhedron":
        """The convex block of a mesh file (OBJ, STL, PLY, OFF); ``scale`` multiplies its lengths.

        A mesh that is open, inside out or not convex is refused; with ``repair`` its convex hull is taken. Files of
        several blocks: `packings.blocks`. Needs trimesh (the extra ``meshes``).
        """
        found = meshes.read(path, scale)
        if len(found) > 1:
            raise InputError(
                f"{path} has {len(found)} blocks, and Polyhedron.read takes one; give it to packings.blocks."
            )
        return block_of(found[0], repair=repair)

    @classmethod
    def prism(cls, outline, height: float) -> "Polyhedron":
        """An upright prism over a convex ``outline`` (k, 2), from z = 0 to ``height``.

        >>> Polyhedron.prism([(0, 0), (2, 0), (0, 2)], height=3.0).volume
        6.0
        """
        base = Polygon(outline)
        if len(base.parts) > 1:
            raise InputError(
                "Polyhedron.prism got an outline that is not convex; give a Cluster of prisms over its convex parts."
            )
        _length("Polyhedron.prism", "height", height)
        flat, k = base.vertices + base.center_of_mass, len(base.vertices)
        vertices = np.concatenate([np.column_stack([flat, np.full(k, z)]) for z in (0.0, float(height))])
        sides = [(i, (i + 1) % k, (i + 1) % k + k, i + k) for i in range(k)]
        return solid(vertices, [tuple(range(k))[::-1], tuple(range(k, 2 * k)), *sides])

    @classmethod
    def wedge(cls, size) -> "Polyhedron":
        """Half a box of the ``size`` (x, y, z): the part below its diagonal, which falls along x.

        >>> Polyhedron.wedge((3.0, 2.0, 1.0)).volume
        3.0
        """
        x, y, z = _sizes("Polyhedron.wedge", size)
        return cls([(0, 0, 0), (x, 0, 0), (0, 0, z), (0, y, 0), (x, y, 0), (0, y, z)])

    @classmethod
    def regular(cls, faces: int, radius: float) -> "Polyhedron":
        """A Platonic solid of 4, 6, 8, 12 or 20 ``faces`` with its corners on a sphere of ``radius``.

        >>> len(Polyhedron.regular(20, radius=1.0).vertices)
        12
        """
        _length("Polyhedron.regular", "radius", radius)
        signs = np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
        flat = np.array([(0, i, j) for i in (-1, 1) for j in (-1, 1)], dtype=float)

        def turned(points):  # with their coordinates shifted round
            return np.concatenate([np.roll(points, k, axis=1) for k in range(3)])

        corners = {
            4: signs[[0, 3, 5, 6]],
            6: signs,
            8: np.concatenate([np.eye(3), -np.eye(3)]),
            12: np.concatenate([signs, turned(flat * (1, 1 / GOLDEN, GOLDEN))]),
            20: turned(flat * (1, 1, GOLDEN)),
        }
        if not (is_whole(faces) and faces in corners):
            raise InputError(f"Polyhedron.regular got faces={faces!r}; give 4, 6, 8, 12 or 20.")
        points = corners[faces]
        return cls(radius * points / np.sqrt((points**2).sum(axis=1, keepdims=True)))

    @classmethod
    def irregular(cls, radius: float, *, corners=(8, 16), spread: float = 0.5, elongation=1.0, seed=None):
        """A random convex polyhedron with its corners on a sphere of ``radius``, such as a piece of rock.

        ``corners`` is their number, or the least and the largest of a random one. They lie evenly on the sphere (a
        spiral), each moved in a random direction by up to ``spread`` (0 to 1) of the distance between neighbours; the
        whole is turned at random. ``elongation`` is the ratio of the longest axis of an ellipsoid in the place of the
        sphere to the two others, or two numbers for each of them. ``seed`` is a number, or a
        ``numpy.random.Generator`` to go on drawing from.

        >>> len(Polyhedron.irregular(1.0, corners=12, seed=1).vertices)
        12
        """
        name = "Polyhedron.irregular"
        low, high = pair if (pair := np.atleast_1d(as_numbers("corners", corners))).shape == (2,) else [corners] * 2
        if not (is_whole(low, 4) and is_whole(high, 4) and low <= high <= 1000):
            raise InputError(f"{name} got corners={corners!r}; give a whole number from 4 to 1000, or two of them.")
        _length(name, "radius", radius)
        if not (is_number(spread) and 0 <= spread <= 1):
            raise InputError(f"{name} got spread={spread!r}; give a number from 0 to 1.")
        ratio = as_numbers(f"{name} got elongation, which", elongation)
        ratio = np.broadcast_to(ratio, (2,)) if ratio.shape in ((), (1,), (2,)) else None
        if ratio is None or not (np.isfinite(ratio).all() and (ratio >= 1).all()):
            raise InputError(f"{name} got elongation={elongation!r}; give a number >= 1, or two of them.")
        if not (seed is None or isinstance(seed, np.random.Generator)):
            check_seed(name, seed)
        random = np.random.default_rng(seed)
        count = int(random.integers(int(low), int(high) + 1))
        k = np.arange(count)
        z = 1 - (2 * k + 1) / count
        angle = 2 * np.pi * k / GOLDEN
        flat = np.sqrt(1 - z * z)
        points = np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=1)
        away = random.normal(size=(count, 3))
        away *= (random.random(count) / np.sqrt((away**2).sum(axis=1)))[:, None]
        points += spread * math.sqrt(4 * np.pi / count) * 0.5 * away
        points /= np.sqrt((points**2).sum(axis=1))[:, None]
        points /= np.array([1.0, *ratio])
        turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
        return cls(radius * points @ turn.T)


@explained
class Box(Polyhedron):
    """A solid box with the edges ``size`` (x, y, z) along the axes of the body; one number for a cube.

    >>> Box((1.0, 0.5, 0.5)).volume
    0.25
    """

    def __init__(self, size):
        self.size = _sizes("Box", size)
        x, y, z = (0.5 * s for s in self.size)
        corners = [(i, j, k) for k in (-z, z) for j in (-y, y) for i in (-x, x)]
        faces = [(0, 2, 3, 1), (0, 1, 5, 4), (0, 4, 6, 2), (1, 3, 7, 5), (2, 6, 7, 3), (4, 5, 7, 6)]
        self._take(np.array(corners), faces)

    def __repr__(self):
        return f"Box(size={self.size})"


def block_of(mesh: meshes.Mesh, *, repair: bool = False, nonconvex="refuse"):
    """The block inside a surface: a `Polyhedron`; where this is not convex, what ``nonconvex`` says.

    That is "refuse", "hull", or a function of the mesh, such as `convex_parts.split`. ``repair`` turns a surface that
    is inside out, and takes the hull of one that is open or not convex.
    """
    wrong = meshes.fault(mesh)
    if wrong and wrong.startswith("is inside out") and repair:
        mesh, wrong = meshes.turned(mesh), None
    if wrong:
        kind = "flat" if "flat" in wrong else "open" if "open" in wrong else "turned"
        if kind == "flat" or not repair:
            raise InputError(f"{mesh.name} {wrong}; {CURES[kind]}.")
        return Polyhedron(mesh.corners)
    whole = Polyhedron(mesh.corners)
    share = mesh.volume / whole.volume
    if share >= 1 - CONVEX or nonconvex == "hull" or (repair and nonconvex == "refuse"):
        return whole
    if callable(nonconvex):
        return nonconvex(mesh)
    raise InputError(f"{mesh.name} is not convex: it fills {share:.2%} of its convex hull; {CURES['concave']}.")


def solid(vertices: np.ndarray, faces) -> Polyhedron:
    """A polyhedron whose convex faces are known, counter-clockwise from outside."""
    out = Polyhedron.__new__(Polyhedron)
    out._take(vertices, faces)
    return out


def _length(kind: str, name: str, value) -> None:
    if not (is_number(value) and 0 < value <= LONGEST):
        raise InputError(f"{kind} got {name}={value!r}; give a positive length.")


def _sizes(kind: str, size) -> tuple[float, float, float]:
    """Three lengths from three numbers, or one for all."""
    value = as_numbers(f"The size of a {kind}", size)
    if value.shape not in ((), (3,)) or not (
        np.isfinite(value).all() and (value > 0).all() and (value <= LONGEST).all()
    ):
        raise InputError(f"{kind} got size={size!r}; give three positive lengths (x, y, z), or one for all.")
    return tuple(np.broadcast_to(value, (3,)).tolist())
