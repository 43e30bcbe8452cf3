"""The contacts of one step of a scene as a `ContactProblem`: the matrices that the solvers of scenes never build."""

import numpy as np

from ..errors import InputError
from ..state import ContactProblem
from .equations.contract import Explicit

ROWS_AT_MOST = 12_000  # of W, which is dense: 1.2 GB


def assemble(free, inverse, written: list[Explicit], gaps: list, dimension: int) -> ContactProblem:
    """W = G A^-1 G^T and b = G u_r - target of contacts that are written out, kind by kind, with their ``gaps``.

    ``free`` (N, 8) rows of the bodies with the free velocity, ``inverse`` (N, 3, 3) inertias in space. Each contact has
    ``dimension`` components.
    """
    from scipy.sparse import block_diag, csr_matrix

    contacts = Explicit(*(np.concatenate(column) for column in zip(*written, strict=True)))
    count, bodies, d = len(contacts.a), len(free), dimension
    if count * d > ROWS_AT_MOST:
        raise InputError(
            f"The scene has {count} contacts, too many for a dense matrix; at most {ROWS_AT_MOST // d} can be exported."
        )
    if not contacts.plain.all():
        raise InputError(
            "A ContactProblem knows no rolling, spinning, cohesion or tension; export a scene whose laws are Coulomb's."
        )
    sides = ((contacts.arm_a, contacts.a), (contacts.arm_b, contacts.b))
    row = np.repeat(np.arange(count * d), 6)
    maps = []
    for arm, body in sides:
        block = np.concatenate([contacts.frame, np.cross(arm[:, None, :], contacts.frame)], axis=2)[:, :d]
        column = np.repeat(6 * body, 6 * d) + np.tile(np.arange(6), count * d)
        maps.append(csr_matrix((block.ravel(), (row, column)), (count * d, 6 * bodies)))
    g_map = maps[1] - maps[0]
    mobility = block_diag([part for k in range(bodies) for part in (free[k, 6] * np.eye(3), inverse[k])], format="csr")
    u = np.concatenate([free[:, :3], free[:, 3:6] / free[:, 7:]], axis=1)
    velocity = (g_map @ u.ravel()).reshape(count, d) - contacts.target[:, :d]
    delassus = (g_map @ mobility @ g_map.T).toarray() if count else np.zeros((0, 0))
    return ContactProblem((delassus + delassus.T) / 2, velocity, contacts.friction, np.concatenate(gaps))
