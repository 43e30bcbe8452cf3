"""The contacts of one step of a scene as a `ContactProblem`: the matrices that the solvers of scenes never build."""

import numpy as np

from .contacts import GAMMA, NX, NZ, TARGET, General, Simple, local_frame
from .errors import InputError
from .state import ContactProblem

ROWS_AT_MOST = 12_000  # of W, which is dense: 1.2 GB


def contact_frames(simple: Simple, m: int, general: General, g: int, dimension: int) -> np.ndarray:
    """Frames (m + g, 3, 3) of the simple and the general contacts, rows n, t1, t2."""
    frames = np.empty((m + g, 3, 3))
    for k in range(m):
        local_frame(simple.row[k, NX : NZ + 1].copy(), np.zeros(3), dimension == 2, frames[k])
    frames[m:] = general.frame[:g]
    return frames


def assemble(free, inverse, simple: Simple, m: int, general: General, g: int, gap, dimension: int) -> ContactProblem:
    """W = G A^-1 G^T and b = G u_r - target of the contacts in ``simple`` and ``general``.

    ``free`` (N, 8) rows of the bodies with the free velocity, ``inverse`` (N, 3, 3) inertias in space, ``gap`` of the
    pairs. Each contact has ``dimension`` components.
    """
    from scipy.sparse import block_diag, csr_matrix

    count, bodies, d = m + g, len(free), dimension
    if count * d > ROWS_AT_MOST:
        raise InputError(
            f"The scene has {count} contacts, too many for a dense matrix; at most {ROWS_AT_MOST // d} can be exported."
        )
    if (general.bound[:g, 2:] > 0).any():
        raise InputError(
            "A ContactProblem knows no rolling, spinning, cohesion or tension; export a scene whose laws are Coulomb's."
        )
    a = np.concatenate([simple.a[:m], general.a[:g]]).astype(np.int64)
    b = np.concatenate([simple.b[:m], general.b[:g]]).astype(np.int64)
    frames = contact_frames(simple, m, general, g, d)
    arm_a = np.concatenate([free[a[:m], 7:] * frames[:m, 0], general.arm_a[:g]])
    arm_b = np.concatenate([-free[b[:m], 7:] * frames[:m, 0], general.arm_b[:g]])
    blocks = [np.concatenate([frames, np.cross(arm[:, None, :], frames)], axis=2)[:, :d] for arm in (arm_a, arm_b)]
    row = np.repeat(np.arange(count * d), 6)
    entries = [(block.ravel(), (row, np.repeat(6 * body, 6 * d) + np.tile(np.arange(6), count * d)))
               for block, body in zip(blocks, (a, b), strict=True)]  # fmt: skip
    shape = (count * d, 6 * bodies)
    g_map = csr_matrix(entries[1], shape) - csr_matrix(entries[0], shape)
    mobility = block_diag([part for k in range(bodies) for part in (free[k, 6] * np.eye(3), inverse[k])], format="csr")
    u = np.concatenate([free[:, :3], free[:, 3:6] / free[:, 7:]], axis=1)
    target = np.zeros((count, 3))
    target[:m, 0], target[m:] = simple.row[:m, TARGET], general.target[:g]
    friction = np.concatenate([np.repeat(simple.row[:m, GAMMA, None], 2, axis=1), general.bound[:g, :2]])
    pair = np.concatenate([simple.pair[:m], general.pair[:g]]).astype(np.int64)
    velocity = (g_map @ u.ravel()).reshape(count, d) - target[:, :d]
    delassus = (g_map @ mobility @ g_map.T).toarray() if count else np.zeros((0, 0))
    return ContactProblem((delassus + delassus.T) / 2, velocity, friction, gap[pair])
