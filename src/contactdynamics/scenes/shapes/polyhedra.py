"""Convex polyhedra in three dimensions: their faces, their mass, and shapes made of them.

A face is the list of its corners, counter-clockwise as seen from outside. A body's position is its centre of mass
(`Polyhedron.center_of_mass` in the frame of the points given).

Integrals over a polyhedron are sums over the tetrahedra (o, a, b, c) between a point o and the triangles of its faces,
with det = (a - o) . (b - o) x (c - o): volume det / 6, first moments det / 24 (a + b + c), second moments
det / 120 (s s^T + a a^T + b b^T + c c^T) with s = a + b + c, all from o.
"""

import math

import numpy as np

from ...errors import InputError, as_numbers, check_seed, is_number, is_whole
from . import meshes
from .balls import MassProperties, tensor
from .polygons import Polygon

SMALL = 1e-10  # of the size: corners nearer than this are one, faces flatter than this are one
LONGEST, MOST_POINTS = 1e60, 10_000
GOLDEN = (1 + math.sqrt(5)) / 2


def moments(vertices: np.ndarray, faces) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, first (3,) and second (3, 3) moments about the origin of a closed surface."""
    tip = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
    a, b, c = (vertices[np.array(column)] for column in zip(*tip, strict=True))
    det = (a * np.cross(b, c)).sum(axis=1)
    total = a + b + c
    second = sum(np.einsum("k,ki,kj->ij", det, x, x) for x in (total, a, b, c))
    return float(det.sum() / 6), (det[:, None] * total).sum(axis=0) / 24, second / 120


def face_normals(vertices: np.ndarray, faces) -> np.ndarray:
    """Outward unit normals (F, 3), from all corners of each face (Newell)."""
    out = np.empty((len(faces), 3))
    for k, face in enumerate(faces):
        rim = vertices[list(face)] - vertices[face[0]]
        n = np.cross(rim, np.roll(rim, -1, axis=0)).sum(axis=0)
        out[k] = n / math.sqrt(n @ n)
    return out


# ---- the convex hull -------------------------------------------------------------------------------------------------


def _checked(kind: str, points) -> np.ndarray:
    """The points (k, 3) of a body with a volume; one sentence where they are none."""
    p = as_numbers(f"The points of a {kind}", points)
    if p.ndim != 2 or p.shape[1] != 3:
        raise InputError(f"{kind} got points of shape {p.shape}; give a list of corners (x, y, z).")
    if len(p) < 4:
        raise InputError(f"{kind} got {len(p)} points; give at least 4 corners (x, y, z).")
    if len(p) > MOST_POINTS:
        raise InputError(f"{kind} got {len(p)} points; give at most {MOST_POINTS}, or several bodies.")
    if not np.isfinite(p).all():
        raise InputError(f"{kind} got a point that is not a finite number; give finite corners (x, y, z).")
    if np.abs(p).max() > LONGEST:
        raise InputError(f"{kind} got a point {np.abs(p).max():g} away; give lengths up to {LONGEST:g}.")
    middle = p - p.mean(axis=0)
    spread = np.linalg.svd(middle, compute_uv=False)
    if not spread[2] > SMALL * spread[0]:
        raise InputError(f"{kind} got points in one plane: its volume is zero; move one of them out of the plane.")
    return p


def hull(points: np.ndarray) -> tuple[np.ndarray, list]:
    """Corners (k, 3) and faces of the convex hull; triangles in one plane are one face, points inside are left out."""
    from scipy.spatial import ConvexHull

    middle = points.mean(axis=0)
    size = float(np.abs(points - middle).max())
    scaled = (points - middle) / size
    found = ConvexHull(scaled)
    parent = list(range(len(found.simplices)))

    def root(k):
        while parent[k] != k:
            k = parent[k]
        return k

    normal, level = found.equations[:, :3], found.equations[:, 3]
    for k, neighbours in enumerate(found.neighbors):
        for other in neighbours:
            one, two = (
                np.abs(scaled[found.simplices[x]] @ normal[y] + level[y]).max() for x, y in ((k, other), (other, k))
            )
            if other > k and max(one, two) <= SMALL:
                parent[root(k)] = root(other)
    groups: dict[int, set] = {}
    for k, simplex in enumerate(found.simplices):
        groups.setdefault(root(k), set()).update(simplex.tolist())
    rims = [_rim(scaled, sorted(corners), normal[k]) for k, corners in groups.items()]
    met = np.bincount(np.concatenate(rims), minlength=len(points))
    rims = [[corner for corner in rim if met[corner] >= 3] for rim in rims]  # on an edge between two faces: no corner
    vertices, faces = _compact(points, rims)
    return vertices, sorted(faces)


def _rim(points, corners, normal) -> list:
    """The corners of a convex face, counter-clockwise about its ``normal``, the one with the least number first."""
    place = points[corners] - points[corners].mean(axis=0)
    across = place[np.argmax((place**2).sum(axis=1))]
    angle = np.arctan2(place @ np.cross(normal, across), place @ across)
    ring = [corners[k] for k in np.argsort(angle)]
    first = ring.index(min(ring))
    return ring[first:] + ring[:first]


# ---- unions of convex parts ------------------------------------------------------------------------------------------


def cut(vertices: np.ndarray, faces, normal, level, small) -> tuple[np.ndarray, list] | None:
    """What a convex polyhedron has where ``normal`` . x <= ``level``; None where that is nothing.

    Corners within ``small`` of the plane lie in it.
    """
    height = vertices @ normal - level
    height[np.abs(height) <= small] = 0.0
    if (height <= 0).all():
        return vertices, list(faces)
    if (height >= 0).all():
        return None
    points, new, kept = list(vertices), {}, []
    for face in faces:
        rim = []
        for k, one in enumerate(face):
            two = face[(k + 1) % len(face)]
            if height[one] <= 0:
                rim.append(one)
            if height[one] * height[two] < 0:
                key = (min(one, two), max(one, two))
                if key not in new:
                    low, high = key
                    share = height[low] / (height[low] - height[high])
                    new[key] = len(points)
                    points.append(vertices[low] + share * (vertices[high] - vertices[low]))
                rim.append(new[key])
        if len(rim) >= 3 and any(corner >= len(vertices) or height[corner] < 0 for corner in rim):
            kept.append(tuple(rim))
    points = np.array(points)
    cap = [*new.values(), *np.flatnonzero(height == 0).tolist()]
    if len(cap) >= 3:
        kept.append(tuple(_rim(points, cap, np.asarray(normal))))
    return _compact(points, kept)


def _compact(points: np.ndarray, faces) -> tuple[np.ndarray, list]:
    """Without the points that belong to no face."""
    used = np.unique(np.concatenate(faces))
    number = np.full(len(points), -1)
    number[used] = np.arange(len(used))
    return points[used], [tuple(int(number[corner]) for corner in face) for face in faces]


def disjoint(parts: list) -> list:
    """Convex pieces (vertices, faces) that overlap nowhere, with the same union as the ``parts``."""
    out = []
    for number, part in enumerate(parts):
        pieces = [part]
        for vertices, faces in parts[:number]:
            planes = [(n, n @ vertices[face[0]]) for n, face in zip(face_normals(vertices, faces), faces, strict=True)]
            small, left = SMALL * float(np.ptp(vertices, axis=0).max()), []
            for piece in pieces:
                if any((piece[0] @ n - level).min() >= -small for n, level in planes):  # apart
                    left.append(piece)
                    continue
                for n, level in planes:  # what is outside this plane, and inside those before
                    outside = cut(*piece, -n, -level, small)
                    piece = cut(*piece, n, level, small)
                    if outside is not None:
                        left.append(outside)
                    if piece is None:
                        break
            pieces = left
        out += pieces
    return out


def union_of_polyhedra(parts: list) -> MassProperties:
    """Mass properties of the union of convex ``parts`` (vertices, faces), with its centre in their frame."""
    middle = np.concatenate([vertices for vertices, _ in parts]).mean(axis=0)
    pieces = disjoint([(vertices - middle, faces) for vertices, faces in parts])
    sums = [moments(*piece) for piece in pieces]
    found = tensor(*(sum(column) for column in zip(*sums, strict=True)))
    found.centre = found.centre + middle
    return found


def ball_of(vertices: np.ndarray, centre: np.ndarray) -> float:
    """Radius of the ball about ``centre`` that holds the corners, m."""
    return float(np.sqrt(((vertices - centre) ** 2).sum(axis=1)).max() * (1 + 1e-12))


# ---- shapes ----------------------------------------------------------------------------------------------------------


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
        self._take(*hull(_checked(type(self).__name__, points)))

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


# ---- blocks from meshes ----------------------------------------------------------------------------------------------

CONVEX = 1e-6  # of the hull's volume: a mesh that lacks less is convex
MOST_PARTS = 200  # convex parts of a block that is cut into them
CURES = {
    "flat": "leave it out of the file",
    "open": "close it where it was drawn, or give repair=True to take its convex hull",
    "turned": "turn its faces outwards, or give repair=True to do so",
    "concave": "give repair=True to take its convex hull, or nonconvex='split' (packings.blocks) to cut it into parts",
}


def block_of(mesh: meshes.Mesh, *, repair: bool = False, nonconvex: str = "refuse"):
    """The block inside a surface: a `Polyhedron`, or with nonconvex="split" the list of its convex parts.

    ``repair`` turns a surface that is inside out, and takes the hull of one that is open or not convex.
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
    if nonconvex == "split":
        return split(mesh)
    raise InputError(f"{mesh.name} is not convex: it fills {share:.2%} of its convex hull; {CURES['concave']}.")


def split(mesh: meshes.Mesh) -> list[Polyhedron]:
    """Convex parts with the same union as the inside of a surface.

    The hull is cut by planes of triangles that go through it, and each piece again by those that go through this piece,
    until none does; of the planes that may be taken the one that cuts the fewest triangles. Pieces whose centre is
    outside the surface are left out, and pairs that are convex together are one.
    """
    middle, small = mesh.corners.mean(axis=0), SMALL * mesh.size
    surface = mesh._replace(corners=mesh.corners - middle)
    whole = hull(surface.corners)
    todo, parts = [(whole, _through(whole, [surface.corners[t] for t in surface.triangles], small))], []
    while todo and len(parts) <= 5 * MOST_PARTS:
        part, inner = todo.pop()
        if not inner:
            parts.append(part)
            continue
        normal, level = _best_plane(inner, small)
        for sign in (1.0, -1.0):
            piece = cut(*part, sign * normal, sign * level, small)
            if piece is not None and _thick(piece, small):
                rest = [_clipped(polygon, sign * normal, sign * level, small) for polygon in inner]
                todo.append((piece, _through(piece, [polygon for polygon in rest if polygon is not None], small)))
    solids = [solid(*part) for part in parts]
    kept = meshes.inside(surface, np.array([part.center_of_mass for part in solids])) if solids else ()
    found = _joined([part for part, stays in zip(solids, kept, strict=True) if stays])
    total = sum(part.volume for part in found)
    if todo or len(found) > MOST_PARTS or abs(total - mesh.volume) > 1e-6 * mesh.volume:
        raise InputError(
            f"{mesh.name} could not be cut into {MOST_PARTS} convex parts or less; cut it where it was drawn, or take "
            "its convex hull (nonconvex='hull')."
        )
    for part in found:
        part.center_of_mass = part.center_of_mass + middle
    return found


def _plane(polygon: np.ndarray) -> tuple[np.ndarray, float]:
    """Unit normal and level of a polygon (k, 3)."""
    arms = polygon[1:] - polygon[0]
    normal = np.cross(arms[:-1], arms[1:]).sum(axis=0)
    normal = normal / np.sqrt(normal @ normal)
    return normal, float((polygon @ normal).mean())


def _through(part, polygons, small: float) -> list:
    """Those of the polygons that go through the inside of a convex part, and lie not in one of its faces."""
    corners, faces = part
    sides = [_plane(corners[list(face)]) for face in faces]
    normals, levels = np.array([n for n, _ in sides]), np.array([level for _, level in sides])
    return [p for p in polygons if not (p @ normals.T >= levels - 10 * small).all(axis=0).any()]


def _clipped(polygon: np.ndarray, normal, level, small: float) -> np.ndarray | None:
    """What a convex polygon (k, 3) has where ``normal`` . x <= ``level``; None where that has no area."""
    height = polygon @ normal - level
    if (height <= small).all():
        return None if (height >= -small).all() else polygon
    if (height >= -small).all():
        return None
    found = []
    for k, (one, two) in enumerate(zip(height, np.roll(height, -1), strict=True)):
        if one <= small:
            found.append(polygon[k])
        if (one > small and two < -small) or (one < -small and two > small):
            found.append(polygon[k] + one / (one - two) * (polygon[(k + 1) % len(polygon)] - polygon[k]))
    return np.array(found) if len(found) >= 3 else None


def _best_plane(polygons, small: float) -> tuple[np.ndarray, float]:
    """The plane of one of the polygons: that which cuts the fewest others, and of these has the most in it."""
    best, chosen = (math.inf, 0), None
    for polygon in polygons[:: max(1, len(polygons) // 60)]:
        normal, level = _plane(polygon)
        high = [(other @ normal - level) for other in polygons]
        crossed = sum(h.max() > small and h.min() < -small for h in high)
        within = sum(np.abs(h).max() <= small for h in high)
        if (crossed, -within) < best:
            best, chosen = (crossed, -within), (normal, level)
    return chosen


def _joined(parts: list) -> list:
    """The parts, those pairs as one whose hull has no more than both."""
    parts, k = list(parts), 0
    while k < len(parts):
        for j in range(k + 1, len(parts)):
            one, two = parts[k], parts[j]
            corners = [part.vertices + part.center_of_mass for part in (one, two)]
            (low, high), (under, over) = ((c.min(axis=0), c.max(axis=0)) for c in corners)
            if np.maximum(under - high, low - over).max() > 1e-9 * (high - low).max():  # far from each other
                continue
            both = solid(*hull(np.concatenate(corners)))
            if both.volume <= (1 + 1e-9) * (one.volume + two.volume):
                parts[k] = both
                del parts[j]
                k = -1
                break
        k += 1
    return parts


def _thick(part, small: float) -> bool:
    """Whether a piece has a volume beyond rounding."""
    volume, _, _ = moments(part[0] - part[0].mean(axis=0), part[1])
    return volume > small**3


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
