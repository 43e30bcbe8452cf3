"""The contacts of one step of a scene as a `ContactProblem`: the matrices that the solvers of scenes never build."""

import numpy as np

from ..errors import InputError
from ..problem.form import BodyForm, ContactProblem
from ..state import FREE, Bodies
from .equations.contract import Explicit


def assemble(bodies: Bodies, free, inverse, written: list[Explicit], gaps: list, dimension: int) -> ContactProblem:
    """M, J, the free velocity and the drift of contacts that are written out, kind by kind, with their ``gaps``.

    ``free`` (N, 8) rows of the bodies with the free velocity, ``inverse`` (N, 3, 3) inertias in space. Freedoms are
    those of the free bodies, in the order of the rows: v and spin, 3 in the plane, else 6, without the held ones. What
    fixed and driven bodies do is in the drift, and so are the targets of restitution and of gaps. Each contact has
    ``dimension`` components.
    """
    from scipy.sparse import csr_array

    contacts = Explicit(*(np.concatenate(column) for column in zip(*written, strict=True)))
    count, d = len(contacts.a), dimension
    if not contacts.plain.all():
        raise InputError(
            "A ContactProblem knows no rolling, spinning, cohesion or tension; export a scene whose laws are Coulomb's."
        )
    axes = [0, 1, 5] if d == 2 else [0, 1, 2, 3, 4, 5]  # of v and spin
    f = len(axes)
    row, maps = np.repeat(np.arange(count * d), f), []
    for arm, body in ((contacts.arm_a, contacts.a), (contacts.arm_b, contacts.b)):
        block = np.concatenate([contacts.frame, np.cross(arm[:, None, :], contacts.frame)], axis=2)[:, :d, axes]
        column = np.repeat(f * body, f * d) + np.tile(np.arange(f), count * d)
        maps.append(csr_array((block.ravel(), (row, column)), (count * d, f * len(free))))
    g_map = csr_array(maps[1] - maps[0]).tocsc()
    u = np.concatenate([free[:, :3], free[:, 3:6] / free[:, 7:]], axis=1)[:, axes].ravel()
    moves = free_directions(bodies, d).ravel()
    jacobian = g_map[:, moves].tocsr()
    jacobian.eliminate_zeros()
    boundary = (g_map[:, ~moves] @ u[~moves]).reshape(count, d)
    mass, kept = _mass(bodies, inverse, d), moves[np.repeat(bodies.kind == FREE, f)]
    mass = mass if kept.all() else csr_array(mass[kept][:, kept])
    form = BodyForm(mass, jacobian, u[moves], boundary - contacts.target[:, :d])
    return ContactProblem.of_bodies(form, contacts.friction, np.concatenate(gaps))


def free_directions(bodies: Bodies, dimension: int) -> np.ndarray:
    """(N, 3) in the plane, else (N, 6): the freedoms, v and spin, that contacts can change."""
    axes = np.array([0, 1, 5] if dimension == 2 else [0, 1, 2, 3, 4, 5])
    return (bodies.kind == FREE)[:, None] & ((bodies.held[:, None] >> axes) & 1 == 0)


def _mass(bodies: Bodies, inverse, dimension: int):
    """M of the free bodies, sparse: mass and inertia in space."""
    from scipy.sparse import bsr_array, csr_array, diags_array

    which = bodies.kind == FREE
    mass, inertia = bodies.mass[which], bodies.inertia[which]
    if dimension == 2:
        return csr_array(diags_array(np.column_stack([mass, mass, inertia[:, 2]]).ravel()))
    if not len(mass):
        return csr_array((0, 0))
    turning, turns = np.zeros((len(mass), 3, 3)), (bodies.held[which] >> 3) == 0
    turning[turns] = np.linalg.inv(inverse[which][turns])
    turning[~turns] = np.linalg.pinv(inverse[which][~turns])  # of held axes, which `assemble` leaves out
    same = turns & (inertia == inertia[:, :1]).all(axis=1)  # in all axes
    turning[same] = inertia[same, 0, None, None] * np.eye(3)
    blocks = np.stack([mass[:, None, None] * np.eye(3), (turning + turning.transpose(0, 2, 1)) / 2], axis=1)
    count = 2 * len(mass)
    out = csr_array(bsr_array((blocks.reshape(count, 3, 3), np.arange(count), np.arange(count + 1))))
    out.eliminate_zeros()
    return out
