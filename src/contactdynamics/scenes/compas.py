"""Assemblies of COMPAS as scenes, and back: JSON of compas_assembly, compas_model and compas_dem, read without them.

All three write ``{"dtype": ..., "data": ...}``, one in the other. An *assembly* has a graph whose nodes have a
``block`` (a mesh) each; a *model* has a list of ``elements`` with a ``geometry`` (a mesh), a ``transformation`` and, in
compas_dem, ``is_support``. A mesh has ``vertex`` {key: x, y, z} and ``face`` {key: keys of its corners}.
"""

import json
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_path, is_number
from .blocks import set_blocks, shapes_of
from .shapes import meshes

FRICTION, DENSITY = 0.84, 2400.0  # where the file says none: the friction of compas_cra, kg/m^3 of stone


class Blocks(NamedTuple):
    """What a file holds."""

    surfaces: list  # `Mesh` each
    supports: np.ndarray  # places of those that do not move


def read(path, scale: float = 1.0) -> Blocks:
    """The blocks of a JSON file of COMPAS, in the order of their keys."""
    path = as_path("from_compas", path)
    if not path.is_file():
        raise InputError(f"There is no file {path}; give a JSON file of COMPAS.")
    if not (is_number(scale) and 0 < scale < 1e12):
        raise InputError(f"from_compas got scale={scale!r}; give a positive number.")
    try:
        root = json.loads(path.read_text())
        found = _blocks(root, path.name)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path} is no assembly or model of COMPAS that can be read ({type(error).__name__}: {error}); write it "
            "with compas.json_dump(assembly, path)."
        ) from None
    if not found:
        raise InputError(f"{path} has no blocks; give an assembly or a model with blocks.")
    surfaces = [meshes.mesh(name, scale * corners, faces) for name, corners, faces, _ in found]
    return Blocks(surfaces, np.flatnonzero([support for *_, support in found]))


def _data(thing):
    """What stands inside ``{"dtype": ..., "data": ...}``, or the thing itself."""
    return thing["data"] if isinstance(thing, dict) and "dtype" in thing and "data" in thing else thing


def _blocks(root, name: str) -> list:
    """(name, corners, faces, whether it is a support) of all blocks."""
    data = _data(root)
    if isinstance(data, dict) and "elements" in data:
        return _of_model(data, name)
    graph = _data(data["graph"]) if "graph" in data else data
    nodes = graph["node"]
    defaults = graph.get("default_node_attributes") or {}
    out = []
    for key in sorted(nodes, key=lambda k: (not str(k).isdigit(), int(k) if str(k).isdigit() else str(k))):
        attributes = defaults | nodes[key]
        corners, faces = _mesh(attributes["block"])
        own = _data(attributes["block"]).get("attributes") or {}
        out.append(
            (f"block {key} of {name}", corners, faces, bool(attributes.get("is_support") or own.get("is_support")))
        )
    return out


def _of_model(data, name: str) -> list:
    whole, out = _matrix(data.get("transformation")), []
    for k, element in enumerate(data["elements"]):
        inner = _data(element)
        if not inner.get("geometry"):  # a group
            continue
        corners, faces = _mesh(inner["geometry"])
        turn = whole @ _matrix(inner.get("transformation"))
        corners = corners @ turn[:3, :3].T + turn[:3, 3]
        out.append((f"element {k} of {name}", corners, faces, bool(inner.get("is_support"))))
    return out


def _matrix(thing) -> np.ndarray:
    return np.eye(4) if not thing else np.array(_data(thing)["matrix"], dtype=float)


def _mesh(thing) -> tuple[np.ndarray, list]:
    data = _data(thing)
    if "vertices" in data:  # a polyhedron
        return np.array(data["vertices"], dtype=float), [tuple(face) for face in data["faces"]]
    base = data.get("default_vertex_attributes") or {}
    keys = list(data["vertex"])
    corners = [[float((base | data["vertex"][key])[axis]) for axis in "xyz"] for key in keys]
    number = {str(key): k for k, key in enumerate(keys)}
    return np.array(corners), [tuple(number[str(c)] for c in face) for face in data["face"].values()]


def fill(scene, path, *, friction, density, fixed, scale, nonconvex, repair) -> np.ndarray:
    """Put the blocks of a file into a scene: see `Scene.from_compas`."""
    found = read(path, scale)
    if isinstance(density, dict):
        base, special = density.get("default", DENSITY), {k: v for k, v in density.items() if k != "default"}
    else:
        base, special = density, {}
    known = range(len(found.surfaces))
    if not all(k in known for k in special):
        raise InputError(
            f"from_compas got density={density!r}; give numbers by the place of a block, 0 to {known[-1]}."
        )
    names = {base: "stone"} | {value: f"stone {value:g}" for value in special.values() if value != base}
    for value, name in names.items():
        scene.material(name, density=value)
    for one in names.values():
        for two in names.values():
            if one <= two:
                scene.contact(one, two, friction=friction)
    shapes = shapes_of(found.surfaces, as_path("from_compas", path).name, nonconvex=nonconvex, repair=repair)
    fixed = found.supports if fixed is None else fixed
    if not special:
        return set_blocks(scene, shapes, "stone", np.zeros(3), fixed)
    still = np.isin(np.arange(len(shapes)), [k for k in known if _stays(shapes, k, fixed)])
    return np.concatenate([
        set_blocks(scene, [shape], names[special.get(k, base)], np.zeros(3), [0] if still[k] else ())
        for k, shape in enumerate(shapes)
    ])  # fmt: skip


def _stays(shapes, k: int, fixed) -> bool:
    if callable(fixed):
        return bool(fixed(np.concatenate([v for v, _ in shapes[k].solids]) + shapes[k].center_of_mass))
    return k in np.atleast_1d(fixed).tolist()


def write(scene, path) -> None:
    """Write the polyhedra of a scene as an assembly of COMPAS: see `Scene.to_compas`."""
    nodes = {}
    for number, corners, faces, support in _solids(scene):
        mesh = {
            "attributes": {"name": f"Block_{number}", "is_support": support},
            "default_vertex_attributes": {"x": 0.0, "y": 0.0, "z": 0.0}, "default_edge_attributes": {},
            "default_face_attributes": {}, "facedata": {}, "edgedata": {},
            "vertex": {str(k): dict(zip("xyz", map(float, c), strict=True)) for k, c in enumerate(corners)},
            "face": {str(k): [int(c) for c in face] for k, face in enumerate(faces)},
            "max_vertex": len(corners) - 1, "max_face": len(faces) - 1,
        }  # fmt: skip
        block = {"dtype": "compas_assembly.datastructures/Block", "data": mesh}
        nodes[str(len(nodes))] = {"block": block, "is_support": support}
    if not nodes:
        raise InputError("to_compas found no polyhedra in the scene; add some first.")
    graph = {
        "attributes": {"name": "Graph"}, "default_node_attributes": {"block": None, "is_support": False},
        "default_edge_attributes": {"interfaces": None}, "node": nodes, "edge": {key: {} for key in nodes},
        "adjacency": {key: {} for key in nodes}, "max_node": len(nodes) - 1,
    }  # fmt: skip
    inner = {"attributes": {"name": "Assembly"}, "graph": {"dtype": "compas.datastructures/Graph", "data": graph}}
    whole = {"dtype": "compas_assembly.datastructures/Assembly", "data": inner}
    as_path("to_compas", path).write_text(json.dumps(whole))


def _solids(scene):
    """(number, corners, faces, whether it does not move) of each convex part, in space."""
    from .. import quaternions
    from ..state import FREE
    from .tables import join_all

    tables = join_all(scene.blocks)
    bodies, corners, rims = tables.bodies, tables.corners, tables.rims
    for row, number in enumerate(bodies.identity.tolist()):
        mine = corners.body == number
        for part in np.unique(corners.part[mine]):
            local = corners.place[mine & (corners.part == part)]
            here = (rims.body == number) & (rims.part == part)
            faces = [rims.corner[here & (rims.face == f)].tolist() for f in np.unique(rims.face[here])]
            turn = quaternions.matrix(bodies.orientation[row])
            yield number, local @ turn.T + bodies.position[row], faces, bool(bodies.kind[row] != FREE)
