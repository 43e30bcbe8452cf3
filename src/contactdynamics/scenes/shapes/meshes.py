"""Surfaces of triangles from mesh files: reading, and what is wrong with them.

A surface is sound where it is closed (each edge has two triangles), turned one way (they run along it in opposite
directions), outside out (its volume is positive) and not flat. Files are read by trimesh, the extra ``meshes``.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from ...errors import InputError, as_path, is_number

FORMATS = (".obj", ".stl", ".ply", ".off")
SAME, FLAT = 1e-9, 1e-9  # of the size: corners nearer are one; of its cube: a volume below is none


class Mesh(NamedTuple):
    """A surface of triangles."""

    name: str  # as the file has it
    corners: np.ndarray  # (k, 3)
    triangles: np.ndarray  # (m, 3) corners, counter-clockwise from outside
    doubled: int = 0  # corners that stood twice, and are one now

    @property
    def volume(self) -> float:
        """Volume inside the surface; negative where it is inside out."""
        a, b, c = (self.corners[column] - self.corners.mean(axis=0) for column in self.triangles.T)
        return float((a * np.cross(b, c)).sum() / 6)

    @property
    def size(self) -> float:
        """The longest of its three extents."""
        return float(np.ptp(self.corners, axis=0).max())


def mesh(name: str, corners, faces) -> Mesh:
    """A surface of faces with three or more corners each; corners in one place are one, faces without area none."""
    corners = np.asarray(corners, dtype=float)
    if corners.shape[0] and (corners.ndim != 2 or corners.shape[1] != 3):
        raise InputError(f"{name} has corners of the shape {corners.shape}; give three coordinates for each.")
    if not np.isfinite(corners).all():
        raise InputError(f"{name} has a corner that is not a finite number; mend it where it was drawn.")
    fans = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
    triangles = np.array(fans, dtype=np.int64).reshape(-1, 3)
    if len(corners) == 0 or len(triangles) == 0:
        raise InputError(f"{name} has no faces; give a mesh with a surface.")
    if triangles.min() < 0 or triangles.max() >= len(corners):
        raise InputError(f"{name} has a face with a corner that is not there; mend it where it was drawn.")
    size = float(np.ptp(corners, axis=0).max())
    used = np.unique(triangles)
    first, number = _merged(corners[used], SAME * size)
    place = np.full(len(corners), -1)
    place[used] = number
    triangles = place[triangles]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    if not len(triangles):
        raise InputError(f"{name} has no face with an area; give a mesh with a surface.")
    return Mesh(name, corners[used][first], triangles, len(used) - len(first))


def _merged(corners, near):
    """The rows that stay where those ``near`` each other are one, and the new number of each row."""
    if near == 0:
        return np.array([0]), np.zeros(len(corners), dtype=np.int64)
    grid = np.round((corners - corners.min(axis=0)) / near)
    _, first, number = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[number.ravel()]


def fault(surface: Mesh) -> str | None:
    """What is wrong with a surface, in words that follow its name; None where it is sound."""
    if not abs(surface.volume) > FLAT * surface.size**3 or len(surface.triangles) < 4:
        return "is flat: it has no volume"
    along = Counter((int(t[k]), int(t[(k + 1) % 3])) for t in surface.triangles for k in range(3))
    either = Counter(frozenset(edge) for edge in along.elements())
    single = sum(count == 1 for count in either.values())
    if single:
        return f"is open: {single} of its edges have one face only"
    if max(along.values()) > 1 or max(either.values()) > 2:
        return "has faces that are turned different ways, or edges with more than two faces"
    if surface.volume < 0:
        return f"is inside out: its volume is {surface.volume:.4g}"
    return None


def turned(surface: Mesh) -> Mesh:
    """The surface with its other side outside."""
    return surface._replace(triangles=surface.triangles[:, ::-1])


def read(path, scale: float = 1.0) -> list[Mesh]:
    """The surfaces of a file, in its order: each object or group of it, each connected part of these.

    ``scale`` multiplies all lengths.
    """
    path = as_path("A mesh", path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} is no mesh that can be read; give a file that ends in {', '.join(FORMATS)}.")
    if not (is_number(scale) and 0 < scale < 1e12):
        raise InputError(f"scale={scale!r}; give a positive number, such as 0.001 for a file in millimetres.")
    if not path.is_file():
        raise InputError(f"There is no file {path}; give the name of a mesh.")
    try:
        import trimesh
    except ImportError:
        raise InputError(
            "Meshes are read by trimesh, which is not installed; pip install contactdynamics[meshes]."
        ) from None
    options = {"split_objects": True, "split_groups": True, "skip_materials": True, "maintain_order": True}
    try:
        scene = trimesh.load_scene(path, process=False, **(options if path.suffix.lower() == ".obj" else {}))
        found = [(str(name), part.vertices, part.faces) for name, part in scene.geometry.items()
                 if isinstance(part, trimesh.Trimesh)]  # fmt: skip
        if path.suffix.lower() == ".obj":
            order = _order(path)
            found.sort(key=lambda part: order.get(part[0], len(order)))
    except Exception as error:  # whatever a damaged file makes of a reader
        raise InputError(f"{path} could not be read ({error or type(error).__name__}); is it a whole mesh?") from None
    if not found:
        raise InputError(f"{path} has no faces; give a mesh with a surface.")
    parts = []
    for name, corners, faces in found:
        parts += components(mesh(f"{name} of {path.name}", np.asarray(corners) * scale, np.asarray(faces)))
    return [part._replace(doubled=0) for part in parts] if path.suffix.lower() == ".stl" else parts


def _order(path) -> dict:
    """The objects and groups of an OBJ file by name, in the order of their first lines."""
    with path.open(errors="replace") as lines:
        names = [line[2:].strip() for line in lines if line[:2] in ("o ", "g ")]
    return {name: k for k, name in reversed(list(enumerate(names)))}


def components(surface: Mesh) -> list[Mesh]:
    """The connected parts of a surface, in the order of their first triangles."""
    group = np.arange(len(surface.corners))
    while True:  # each corner takes the least number of its triangles' corners, until nothing changes
        least = group[surface.triangles].min(axis=1)
        new = group.copy()
        for column in surface.triangles.T:
            np.minimum.at(new, column, least)
        new = new[new]
        if (new == group).all():
            break
        group = new
    owner = group[surface.triangles[:, 0]]
    labels = list(dict.fromkeys(owner.tolist()))
    if len(labels) == 1:
        return [surface]
    parts = []
    for n, label in enumerate(labels):
        triangles = surface.triangles[owner == label]
        used = np.unique(triangles)
        parts.append(Mesh(f"part {n} of {surface.name}", surface.corners[used], np.searchsorted(used, triangles)))
    return parts


def inside(surface: Mesh, points: np.ndarray) -> np.ndarray:
    """Which of the points (n, 3) lie inside a sound surface: those around which it turns once (solid angles)."""
    out = np.empty(len(points), dtype=bool)
    for k, point in enumerate(points):
        a, b, c = (surface.corners[column] - point for column in surface.triangles.T)
        la, lb, lc = (np.sqrt((x * x).sum(axis=1)) for x in (a, b, c))
        det = (a * np.cross(b, c)).sum(axis=1)
        flat = la * lb * lc + (a * b).sum(axis=1) * lc + (b * c).sum(axis=1) * la + (c * a).sum(axis=1) * lb
        out[k] = np.arctan2(det, flat).sum() > np.pi  # half the solid angle: 2 pi inside, 0 outside
    return out
