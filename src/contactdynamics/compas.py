"""This engine as a solver for compas_dem: ``results = contactdynamics.compas.solve(problem)``.

In the place of ``problem.solve()``, whose solvers it knows by name alone. The problem's model becomes a scene, its
loads and prescribed displacements act as with compas_dem's own solvers in time, and what comes back is a `Results` of
compas_dem: transformations of the blocks, contacts with their forces, for its viewer and its files.
"""

import math
import warnings

import numpy as np

from . import quaternions
from .errors import InputError, MeshWarning, explained, is_number
from .rigid.simulation import Simulation
from .scenes import loads
from .scenes.compas import fill
from .scenes.scene import Scene
from .state import FREE

RAMPED = 0.98  # of the duration: loads that are ramped are whole from there on, as in compas_dem's other solvers
SMALL = 1e-9  # of a block: contact points nearer than this are one


@explained
def solve(problem, *, duration: float = 0.5, time_step: float = 1e-3, nonconvex: str = "split", **options):
    """Move the blocks of a `compas_dem.problem.Problem` for ``duration`` (s); a `compas_dem.problem.Results`.

    Supports, densities, friction, gravity, point, surface and body loads (ramped or instantaneous) and prescribed
    displacements are the problem's. ``options`` are those of `Simulation`, such as ``tolerance``, ``repair`` or
    ``recorders``. ``results.metadata`` says whether the blocks were in equilibrium at the start (``equilibrium``, with
    the loads of that moment), how far the farthest has moved (``moved``, m), the largest speed left (m/s), and how many
    steps were not solved to the tolerance (``failures``).

    >>> import contactdynamics as cd
    >>> results = cd.compas.solve(problem)  # doctest: +SKIP
    """
    for name, value in (("duration", duration), ("time_step", time_step)):
        if not (is_number(value) and value > 0):
            raise InputError(f"compas.solve got {name}={value!r}; give a positive number of seconds.")
    scene, nodes = scene_of(problem, duration, nonconvex)
    sim = Simulation(scene, time_step=time_step, **options)
    start, rest = sim.frame(), sim.is_equilibrium()
    sim.run(until=duration, progress=False)
    results = _results(problem, nodes, start, sim.frame())
    free = start.kinds == FREE
    results.metadata |= {
        "solver": "contactdynamics",
        "mu": problem.contact_properties.contact_model.mu,
        "n_steps": int(sim.steps),
        "dt": float(time_step),
        "equilibrium": bool(rest),
        "equilibrium_message": rest.report.message,
        "failures": int(sim.failures),
        "moved": float(np.linalg.norm(sim.positions - start.positions, axis=1)[free].max()),
        "largest_speed": float(np.linalg.norm(sim.velocities, axis=1)[free].max()),
    }
    return results


def scene_of(problem, duration: float, nonconvex: str = "split") -> tuple[Scene, list]:
    """The scene of a problem, and the graph node of each of its bodies."""
    try:
        model, law = problem.model, problem.contact_properties.contact_model
        elements = list(model.elements())
        groups = list(problem.boundary_conditions)
    except AttributeError as error:
        raise InputError(f"compas.solve got {problem!r} ({error}); give a Problem of compas_dem.") from None
    if law is None:
        raise InputError('The problem has no contact model; give problem.set_contact_model("MohrCoulomb", mu=0.6).')
    if getattr(law, "c", None) or getattr(law, "t_c", None):
        raise InputError(
            f"The contact model has c={law.c}, t_c={law.t_c}: stresses, of which rigid joints know none; leave them, "
            "or build the scene with Scene.from_compas(model) and give forces by scene.contact(..., cohesion=)."
        )
    if getattr(problem.contact_properties, "joint_model", None) is not None:
        warnings.warn("The problem's joint model (kn, kt) does not act: joints are rigid here.", MeshWarning,
                      stacklevel=4)  # fmt: skip
    nodes = [element.graphnode for element in elements]
    order = sorted(range(len(nodes)), key=nodes.__getitem__)
    elements, nodes = [elements[k] for k in order], [nodes[k] for k in order]
    supports = [k for k, element in enumerate(elements) if getattr(element, "is_support", False)]
    scene = Scene(gravity=(0.0, 0.0, -_gravity(groups)))
    motions = _motions(groups, nodes, supports, duration)
    fill(scene, model, friction=law.mu, density=None, fixed=supports, scale=1.0, nonconvex=nonconvex, repair=False,
         motions=motions)  # fmt: skip
    if scene.count != len(nodes):
        raise InputError(
            f"The model has {len(nodes)} elements and {scene.count} blocks; take out those without a mesh."
        )
    _apply_loads(scene, groups, nodes, elements, duration)
    return scene, nodes


def _gravity(groups) -> float:
    found = {float(group.g) for group in groups}
    if len(found) > 1:
        raise InputError(f"The boundary conditions have several gravities {sorted(found)}; give one.")
    return found.pop() if found else 9.81


def _place(nodes, index, what: str) -> int:
    if index not in nodes:
        raise InputError(
            f"A {what} has block_index={index}, which the model has not; it has {nodes[0]} to {nodes[-1]}."
        )
    return nodes.index(index)


def _motions(groups, nodes, supports, duration: float) -> dict:
    """Options of `Scene.add` for blocks with prescribed displacements, reached at a constant velocity."""
    wanted: dict[int, list] = {}
    for group in groups:
        for entry in group.displacements:
            six = wanted.setdefault(_place(nodes, entry.block_index, "displacement"), [None] * 6)
            for first, part in ((0, getattr(entry, "translation", None)), (3, getattr(entry, "rotation", None))):
                for axis, value in enumerate(part or ()):
                    six[first + axis] = six[first + axis] if value is None else float(value)
    found = {}
    for place, six in wanted.items():
        if place in supports:
            six = [0.0 if value is None else value for value in six]
        speed = np.array([0.0 if value is None else value / duration for value in six])
        options = {"motion": loads.Drive(velocity=speed[:3], spin=speed[3:])}
        letters = "".join(axis for axis, value in zip("xyz", six[:3], strict=True) if value is None)
        turns = [f"turn-{axis}" for axis, value in zip("xyz", six[3:], strict=True) if value is None]
        if letters or turns:
            options["free"] = " ".join(word for word in (letters, *(["turn"] if len(turns) == 3 else turns)) if word)
        found[place] = options
    return found


def _apply_loads(scene, groups, nodes, elements, duration: float) -> None:
    """Forces and torques about the centres of mass, as functions of time."""
    bodies = [block.bodies for block in scene.blocks]
    mass = np.concatenate([b.mass for b in bodies])
    centre = np.concatenate([b.position for b in bodies])
    total = {}  # (place, loading type): force and torque

    def act(place, force, torque, way):
        both = total.setdefault((place, way), np.zeros(6))
        both += np.concatenate([force, torque])

    for group in groups:
        for entry in group.body_forces:
            for place in range(len(nodes)):
                act(place, mass[place] * np.array(entry.acceleration, dtype=float), np.zeros(3), entry.loading_type)
        for entry in group.point_loads:
            place = _place(nodes, entry.block_index, "point load")
            force, torque = np.array(entry.force or [0.0] * 3, dtype=float), np.zeros(3)
            if entry.point is not None:
                torque = np.cross(np.array(entry.point, dtype=float) - centre[place], force)
            elif entry.moment is not None:
                torque = np.array(entry.moment, dtype=float)
            act(place, force, torque, entry.loading_type)
        for entry in group.surface_loads:
            place = _place(nodes, entry.block_index, "surface load")
            mesh = elements[place].modelgeometry
            force = mesh.face_area(entry.face_index) * np.array(entry.load, dtype=float)
            arm = np.array(mesh.face_center(entry.face_index), dtype=float) - centre[place]
            act(place, force, np.cross(arm, force), entry.loading_type)
    still = set(np.flatnonzero(np.concatenate([b.kind for b in bodies]) != FREE).tolist())
    times = [0.0, RAMPED * duration, duration]
    shares = {"ramp": [0.0, 1.0, 1.0], "instantaneous": [1.0, 1.0, 0.0]}  # compas_dem: released at the end
    for (place, way), both in total.items():
        if place not in still and both.any():
            series = np.outer(shares[way], both)
            scene.force(place, loads.table(times, series[:, :3]), loads.table(times, series[:, 3:]))


# ---- what comes back -------------------------------------------------------------------------------------------------


def _results(problem, nodes, start, frame):
    """Transformations and contacts of a frame as compas_dem has them."""
    from compas.geometry import Transformation
    from compas_dem.problem import Results

    results = Results(model_id=str(problem.model.guid), problem_id=str(problem.guid))
    for k, node in enumerate(nodes):
        turn = quaternions.matrix(frame.rotations[k]) @ quaternions.matrix(start.rotations[k]).T
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = turn, frame.positions[k] - turn @ start.positions[k]
        results.set_node(node, "transformation", Transformation(matrix.tolist()))
    row = {int(identity): k for k, identity in enumerate(frame.identities)}
    pairs: dict[tuple, list] = {}
    for c, (a, b) in enumerate(frame.contacts.bodies):
        pairs.setdefault((nodes[row[int(a)]], nodes[row[int(b)]]), []).append(c)
    for (a, b), contacts in pairs.items():
        _set_edge(results, problem.model.graph, a, b, _joint(frame, contacts))
    return results


def _joint(frame, contacts) -> dict:
    """The contacts of one pair of bodies a, b: points in their order round the joint, frame, forces on a (N).

    The frame's normal points from b to a, so that a force along it is pressure.
    """
    found = frame.contacts
    normal = -found.normal[contacts[0]]
    first = -found.frame[contacts[0], 1]
    second = np.cross(normal, first)
    points = found.point[contacts]
    forces = -np.einsum("kc,kcx->kx", found.impulse[contacts], found.frame[contacts]) / frame.time_step
    middle = points.mean(axis=0)
    order = np.argsort(np.arctan2((points - middle) @ second, (points - middle) @ first), kind="stable")
    keep, size = [], float(np.ptp(points, axis=0).max(initial=0.0))
    for k in order:
        same = next((j for j in keep if np.linalg.norm(points[k] - points[j]) <= SMALL * size), None)
        if same is None:
            keep.append(int(k))
        else:
            forces[same] += forces[k]
    return {"points": points[keep], "axes": (first, second, normal), "forces": forces[keep],
            "gaps": found.gap[contacts][keep], "status": found.status[contacts][keep]}  # fmt: skip


def _set_edge(results, graph, a: int, b: int, joint: dict) -> None:
    from compas.geometry import Frame, Line, Point, Polygon
    from compas_dem.interactions import EdgeContact, FrictionContact, VertexContact

    edge, sign = (a, b), 1.0
    if graph.has_edge((b, a)) and not graph.has_edge((a, b)):
        edge, sign = (b, a), -1.0
    elif not graph.has_edge((a, b)):
        results.metadata.setdefault("added_edges", []).append([a, b])
    t1, t2, n = joint["axes"]
    if sign < 0:  # the normal points to the edge's first node
        n, t2 = -n, -t2
    forces = sign * joint["forces"]
    local = forces @ np.array([t1, t2, n]).T
    points = [Point(*p) for p in joint["points"].tolist()]
    frames = [Frame(p, t1.tolist(), t2.tolist()) for p in points]
    each = [{"c_np": max(fn, 0.0), "c_nn": max(-fn, 0.0), "c_u": fu, "c_v": fv} for fu, fv, fn in local.tolist()]
    total = forces.sum(axis=0)
    kinds = {"face_contact": len(points) >= 3, "edge_contact": len(points) == 2, "point_contact": len(points) == 1}
    values = kinds | {
        "contact_points": joint["points"].tolist(), "gap": joint["gaps"].tolist(), "status": joint["status"].tolist(),
        "force_vector": forces.tolist(), "force_normal": local[:, 2].tolist(), "force_tangent1": local[:, 0].tolist(),
        "force_tangent2": local[:, 1].tolist(), "resultant_global": total.tolist(),
        "resultant_local": local.sum(axis=0).tolist(), "force_magnitude": float(math.sqrt(total @ total)),
        "nodal_force_magnitudes": np.linalg.norm(forces, axis=1).tolist(), "contact_frames": frames,
        "contact_frame": frames[0],
    }  # fmt: skip
    if len(points) >= 3:
        values["contact_polygon"] = Polygon(points)
        values["contact_data"] = FrictionContact(points=points, frame=frames[0], forces=each)
    elif len(points) == 2:
        line = Line(*points)
        values["contact_geometry"] = line
        values["contact_data"] = EdgeContact(points=points, frame=Frame(line.midpoint, t1.tolist(), t2.tolist()),
                                             forces=each)  # fmt: skip
    else:
        values["contact_geometry"] = points[0]
        values["contact_data"] = VertexContact(point=points[0], frame=frames[0], forces=each)
    for name, value in values.items():
        results.set_edge(edge, name, value)
