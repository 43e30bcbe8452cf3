"""Laws of single joints: those of two bodies, in the place of the law of their materials."""

import numpy as np

from ..._jit import kernel


def joint_rows(model) -> np.ndarray:
    """(J, 3) rows of the two bodies of each joint, the smaller first, and its law, in order; of bodies present."""
    identity = model.bodies.identity
    if not len(model.joints):
        return np.zeros((0, 3), dtype=np.int64)
    order = np.argsort(identity)
    at = np.minimum(np.searchsorted(identity[order], model.joints[:, :2]), len(identity) - 1)
    here = (identity[order[at]] == model.joints[:, :2]).all(axis=1)
    rows = np.sort(order[at[here]], axis=1)
    found = np.column_stack([rows, model.joints[here, 2]]).astype(np.int64)
    return np.ascontiguousarray(found[np.lexsort((found[:, 1], found[:, 0]))])


def with_ghosts(joints: np.ndarray, body: np.ndarray, real: np.ndarray) -> np.ndarray:
    """The ``joints`` (J, 3) with those of ghosts: rows ``body`` (G,), after all others, of the ``real`` ones (G,)."""
    found = [joints]
    for one, other in ((0, 1), (1, 0)) if len(joints) else ():
        ghost, joint = np.nonzero(real[:, None] == joints[:, one])
        found.append(np.column_stack([joints[joint, other], body[ghost], joints[joint, 2]]))
    found = np.concatenate(found)
    return np.ascontiguousarray(found[np.lexsort((found[:, 1], found[:, 0]))])


@kernel(inline=True)
def own_law(joints, a, b, law):
    """The law of the joint of the bodies in rows a and b among ``joints`` (J, 3), else ``law``."""
    low, high, i, j = 0, joints.shape[0], min(a, b), max(a, b)
    while low < high:
        middle = (low + high) // 2
        if joints[middle, 0] < i or (joints[middle, 0] == i and joints[middle, 1] < j):
            low = middle + 1
        else:
            high = middle
    if low < joints.shape[0] and joints[low, 0] == i and joints[low, 1] == j:
        law = joints[low, 2]
    return law
