"""Local frames: an orthonormal basis (n, t1, t2) at a contact, from its normal."""

import numpy as np


def frame(normal: np.ndarray) -> np.ndarray:
    """Orthonormal rows (n, t) or (n, t1, t2) for a nonzero ``normal`` (2,) or (3,); right-handed.

    In three dimensions the construction is that of Duff et al. (2017), continuous but for n = -e3.

    >>> frame(np.array([0.0, 2.0])).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    n = normal / np.sqrt(normal @ normal)
    if len(n) == 2:
        return np.array([n, [-n[1], n[0]]])
    sign = 1.0 if n[2] >= 0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return np.array([n, [1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]], [b, sign + n[1] ** 2 * a, -n[1]]])
