"""Assemblies of COMPAS as scenes, and back: JSON of compas_assembly, compas_model and compas_dem, read without them.

All three write ``{"dtype": ..., "data": ...}``, one in the other. An *assembly* has a graph whose nodes have a
``block`` (a mesh) each; a *model* has ``elements`` (by their guid; in older files a list) with a ``geometry`` (a
mesh), a ``transformation``, a ``material`` and, in compas_dem, ``is_support``; its graph numbers them, its tree says in
which group each stands. A mesh has ``vertex`` {key: x, y, z} and ``face`` {key: keys of its corners}.
"""

import json
import warnings
from typing import NamedTuple

import numpy as np

from ..errors import InputError, MeshWarning, as_path, is_number
from .blocks import shapes_of, stays
from .shapes import meshes

FRICTION, DENSITY = 0.84, 2400.0  # where the file says none: the friction of compas_cra, kg/m^3 of stone


class Blocks(NamedTuple):
    """What a file holds."""

    surfaces: list  # `Mesh` each
    supports: np.ndarray  # places of those that do not move
    densities: list  # kg/m^3, None where the file has no material
    name: str


class Entry(NamedTuple):
    """One block as it is read."""

    name: str
    corners: np.ndarray
    faces: list
    support: bool
    density: float | None


def read(source, scale: float = 1.0) -> Blocks:
    """The blocks of a JSON file of COMPAS, or of an assembly or model in memory, in the order of their keys."""
    if not (is_number(scale) and 0 < scale < 1e12):
        raise InputError(f"from_compas got scale={scale!r}; give a positive number.")
    if hasattr(source, "__data__") and hasattr(source, "__dtype__"):
        from compas import json_dumps

        name, text = str(getattr(source, "name", "assembly")), json_dumps(source)
    else:
        path = as_path("from_compas", source)
        if not path.is_file():
            raise InputError(f"There is no file {path}; give a JSON file of COMPAS.")
        name, text = path.name, path.read_text(errors="replace")
    try:
        found = _blocks(json.loads(text), name)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise InputError(
            f"{name} is no assembly or model of COMPAS that can be read ({type(error).__name__}: {error}); write it "
            "with compas.json_dump(assembly, path)."
        ) from None
    if not found:
        raise InputError(f"{name} has no blocks; give an assembly or a model with blocks.")
    surfaces = [meshes.mesh(each.name, scale * each.corners, each.faces) for each in found]
    supports = np.flatnonzero([each.support for each in found])
    return Blocks(surfaces, supports, [each.density for each in found], name)


def _data(thing):
    """What stands inside ``{"dtype": ..., "data": ...}``, or the thing itself."""
    return thing["data"] if isinstance(thing, dict) and "dtype" in thing and "data" in thing else thing


def _in_order(keys) -> list:
    """Keys that are numbers first, by their size, then words."""
    return sorted(keys, key=lambda k: (not str(k).isdigit(), int(k) if str(k).isdigit() else 0, str(k)))


def _blocks(root, name: str) -> list[Entry]:
    data = _data(root)
    if isinstance(data, dict) and "elements" in data:
        return _of_model(data, name)
    graph = _data(data["graph"]) if "graph" in data else data
    nodes = graph["node"]
    defaults = graph.get("default_node_attributes") or {}
    out = []
    for key in _in_order(nodes):
        attributes = defaults | nodes[key]
        corners, faces = _mesh(attributes["block"])
        own = _data(attributes["block"]).get("attributes") or {}
        support = bool(attributes.get("is_support") or own.get("is_support"))
        out.append(Entry(f"block {key} of {name}", corners, faces, support, None))
    return out


def _of_model(data, name: str) -> list[Entry]:
    elements, materials = data["elements"], data.get("materials") or {}
    if isinstance(elements, list):  # of older versions
        elements = {_guid(each, k): each for k, each in enumerate(elements)}
    if isinstance(materials, list):
        materials = {_guid(each, k): each for k, each in enumerate(materials)}
    nodes = _data(data.get("graph") or {}).get("node") or {}
    numbered = [nodes[key].get("element") for key in _in_order(nodes)]
    order = numbered if set(numbered) == set(elements) else list(elements)
    above = _groups(_data(data.get("tree") or {}))
    whole, out = _matrix(data.get("transformation")), []
    for guid in order:
        inner = _data(elements[guid])
        if not inner.get("geometry"):  # a group
            continue
        turn = _matrix(inner.get("transformation"))
        for group in above.get(guid, ()):
            turn = _matrix(_data(elements[group]).get("transformation")) @ turn
        turn = whole @ turn
        corners, faces = _mesh(inner["geometry"])
        made_of = _data(materials.get(inner.get("material")) or {})
        density = made_of.get("density")
        out.append(Entry(f"element {len(out)} of {name}", corners @ turn[:3, :3].T + turn[:3, 3], faces,
                         bool(inner.get("is_support")), None if not density else float(density)))  # fmt: skip
    return out


def _guid(thing, k: int):
    return thing.get("guid", k) if isinstance(thing, dict) else k


def _groups(tree) -> dict:
    """The elements above each element in a model's tree, the nearest first."""
    found = {}

    def walk(node, above):
        for child in node.get("children") or ():
            guid = child.get("element")
            found[guid] = above
            walk(child, above if guid is None else (guid, *above))

    walk(tree.get("root") or {}, ())
    return found


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


def fill(scene, source, *, friction, density, fixed, scale, nonconvex, repair, motions=None) -> list:
    """Put the blocks of a file into a scene, see `Scene.from_compas`; returns their shapes.

    ``motions`` are further options of `Scene.add` by the place of a block.
    """
    found = read(source, scale)
    densities = _densities(found, density)
    names = {value: "stone" if k == 0 else f"stone {value:g}" for k, value in enumerate(dict.fromkeys(densities))}
    for value, name in names.items():
        scene.material(name, density=value)
    for one in names.values():
        for two in names.values():
            if one <= two:
                scene.contact(one, two, friction=friction)
    shapes = shapes_of(found.surfaces, found.name, nonconvex=nonconvex, repair=repair)
    still = stays(shapes, np.zeros(3), found.supports if fixed is None else fixed)
    for k, shape in enumerate(shapes):
        more = (motions or {}).get(k) or {"fixed": bool(still[k])}
        scene.add(shape, material=names[densities[k]], position=shape.center_of_mass, **more)
    return shapes


def _densities(found: Blocks, density) -> list:
    """One for each block: as given, else of the file's materials, else that of stone."""
    if not isinstance(density, dict):
        return [float(own or DENSITY) if density is None else density for own in found.densities]
    known = range(len(found.surfaces))
    if not all(k in known for k in density if k != "default"):
        raise InputError(
            f"from_compas got density={density!r}; give numbers by the place of a block, 0 to {known[-1]}."
        )
    return [density.get(k, density.get("default", own or DENSITY)) for k, own in enumerate(found.densities)]


def write(scene, path, kind: str) -> None:
    """Write the polyhedra of a scene for COMPAS: see `Scene.to_compas`."""
    if kind not in ("assembly", "model"):
        raise InputError(f"to_compas got kind={kind!r}; give 'assembly' or 'model'.")
    parts = list(_solids(scene))
    if not parts:
        raise InputError("to_compas found no polyhedra in the scene; add some first.")
    several = len(parts) - len({part.number for part in parts})
    if several:
        warnings.warn(
            f"to_compas: bodies of several convex parts are written as that many blocks, {several} more than there are "
            "bodies; COMPAS has no block of several parts.", MeshWarning, stacklevel=3,
        )  # fmt: skip
    whole = _assembly(parts) if kind == "assembly" else _model(parts)
    as_path("to_compas", path).write_text(json.dumps(whole))


def _written(part) -> dict:
    """A mesh as COMPAS has it."""
    return {
        "attributes": {"name": f"Block_{part.number}", "is_support": part.support},
        "default_vertex_attributes": {"x": 0.0, "y": 0.0, "z": 0.0}, "default_edge_attributes": {},
        "default_face_attributes": {}, "facedata": {}, "edgedata": {},
        "vertex": {str(k): dict(zip("xyz", map(float, c), strict=True)) for k, c in enumerate(part.corners)},
        "face": {str(k): [int(c) for c in face] for k, face in enumerate(part.faces)},
        "max_vertex": len(part.corners) - 1, "max_face": len(part.faces) - 1,
    }  # fmt: skip


def _assembly(parts) -> dict:
    """An assembly of compas_assembly."""
    nodes = {
        str(k): {"block": {"dtype": "compas_assembly.datastructures/Block", "data": _written(part)},
                 "is_support": part.support}
        for k, part in enumerate(parts)
    }  # fmt: skip
    graph = {
        "attributes": {"name": "Graph"}, "default_node_attributes": {"block": None, "is_support": False},
        "default_edge_attributes": {"interfaces": None}, "node": nodes, "edge": {key: {} for key in nodes},
        "adjacency": {key: {} for key in nodes}, "max_node": len(nodes) - 1,
    }  # fmt: skip
    inner = {"attributes": {"name": "Assembly"}, "graph": {"dtype": "compas.datastructures/Graph", "data": graph}}
    return {"dtype": "compas_assembly.datastructures/Assembly", "data": inner}


def _model(parts) -> dict:
    """A block model of compas_dem, with a stone for each density."""
    from uuid import NAMESPACE_OID, uuid5

    densities = sorted({part.density for part in parts})
    stone = {value: str(uuid5(NAMESPACE_OID, f"stone {value!r}")) for value in densities}
    guids = [str(uuid5(NAMESPACE_OID, f"block {k}")) for k in range(len(parts))]
    elements = {
        guid: {"dtype": "compas_dem.elements/Block", "guid": guid,
               "data": {"transformation": None, "features": [], "name": f"Block_{part.number}",
                        "material": stone[part.density], "is_support": part.support,
                        "geometry": {"dtype": "compas.datastructures/Mesh", "data": _written(part)}}}
        for guid, part in zip(guids, parts, strict=True)
    }  # fmt: skip
    materials = {
        guid: {"dtype": "compas_dem.material/Stone", "guid": guid, "data": {"name": "Stone", "density": value}}
        for value, guid in stone.items()
    }
    data = {
        "transformation": None, "elements": elements, "materials": materials,
        "tree": {"attributes": {}, "root": {"name": "root", "children": [
            {"name": "ElementNode", "element": guid} for guid in guids]}},
        "graph": {"attributes": {}, "default_node_attributes": {"x": 0.0, "y": 0.0, "z": 0.0, "element": None},
                  "default_edge_attributes": {"modifiers": None, "contacts": None},
                  "node": {str(k): {"element": guid} for k, guid in enumerate(guids)},
                  "edge": {str(k): {} for k in range(len(guids))}, "max_node": len(guids) - 1},
    }  # fmt: skip
    return {"dtype": "compas_dem.models/BlockModel", "data": data, "inheritance": ["compas_model.models/Model"]}


class Part(NamedTuple):
    """A convex part of a body, in space."""

    number: int
    corners: np.ndarray
    faces: list
    support: bool  # whether it does not move
    density: float


def _solids(scene):
    """The convex parts of all polyhedra."""
    from .. import quaternions
    from ..state import FREE
    from .tables import join_all

    tables = join_all(scene.blocks)
    bodies, corners, rims, balls = tables.bodies, tables.corners, tables.rims, tables.balls
    for row, number in enumerate(bodies.identity.tolist()):
        mine = corners.body == number
        for part in np.unique(corners.part[mine]):
            local = corners.place[mine & (corners.part == part)]
            here = (rims.body == number) & (rims.part == part)
            faces = [rims.corner[here & (rims.face == f)].tolist() for f in np.unique(rims.face[here])]
            turn = quaternions.matrix(bodies.orientation[row])
            density = scene.materials.densities[int(balls.material[balls.body == number][0])]
            yield Part(number, local @ turn.T + bodies.position[row], faces, bool(bodies.kind[row] != FREE), density)
