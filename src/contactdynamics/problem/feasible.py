"""Whether a contact problem can have a solution at all: what forbids it, as evidence.

A solution needs relative velocities U = b + W P with U_n >= 0 at all contacts. If there are weights l >= 0 of the
contacts with W_n l = 0 (normal impulses l that move nothing: bodies pressed from both sides) and l . b_n < 0, then
l . U_n = l . b_n < 0 whatever P is, and no solution exists (Farkas' lemma). With sum l = 1, the most negative value of
l . b_n is the largest speed to which the fastest closing contact can be brought: a linear programme finds both.
"""

import numpy as np

from .form import ContactProblem

NOTHING = 1e-12  # what counts as moving nothing, over what such impulses could move
LOOKED_AT = 3000  # contacts whose weights are made exact


def contradiction(problem: ContactProblem) -> str:
    """A sentence with the contacts that forbid a solution; empty where none are found."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    m, d = problem.velocity.shape
    w = csr_array(problem.blocks)[:, ::d]  # what normal impulses do
    b = problem.velocity[:, 0]
    if not (b < 0).any():
        return ""
    size, speed = abs(w).max(), np.abs(b).max()
    found = linprog(
        b / speed, A_eq=vstack([w / size, csr_array(np.ones((1, m)))]), b_eq=np.append(np.zeros(m * d), 1.0),
        bounds=(0, None), method="highs",
    )  # fmt: skip
    if found.status != 0 or found.fun >= -1e-9:
        return ""
    weight = _exact(w, np.maximum(found.x, 0.0))
    closing = -float(b @ weight)
    if closing <= 1e-9 * speed:
        return ""
    which = np.flatnonzero(weight > 1e-6 * weight.max())
    named = ", ".join(str(k) for k in which[:6]) + (f" and {len(which) - 6} more" if len(which) > 6 else "")
    return (
        f"whatever the impulses, one of the contacts {named} closes at {closing:.3g} m/s or faster, since normal "
        "impulses there can balance without moving anything"
    )


def _exact(w, weight: np.ndarray) -> np.ndarray:
    """The weights (m,), of sum 1, made to move nothing to rounding; zeros where they cannot be.

    The programme's zeros are zeros to 1e-7, which is a lot where masses differ by a million: such contacts bear large
    impulses, and there is a solution.
    """
    which = np.flatnonzero(weight > 1e-6 * weight.max())
    out = np.zeros_like(weight)
    if len(which) > LOOKED_AT:
        return out
    part = w[:, which].toarray()
    part = part[np.abs(part).max(axis=1) > 0]
    held = weight[which] - np.linalg.lstsq(part, part @ weight[which], rcond=NOTHING)[0]
    if held.sum() < 0.5 or held.min() < -1e-6 * held.max():
        return out
    out[which] = np.maximum(held, 0.0) / np.maximum(held, 0.0).sum()
    return out
