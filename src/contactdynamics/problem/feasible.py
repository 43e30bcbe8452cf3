"""Whether a contact problem can have a solution at all: what forbids it, as evidence.

A solution needs relative velocities U = b + W P with U_n >= 0 at all contacts. If there are weights l >= 0 of the
contacts with W_n l = 0 (normal impulses l that move nothing: bodies pressed from both sides) and l . b_n < 0, then
l . U_n = l . b_n < 0 whatever P is, and no solution exists (Farkas' lemma). With sum l = 1, the most negative value of
l . b_n is the largest speed to which the fastest closing contact can be brought: a linear programme finds both.
"""

import numpy as np

from .form import ContactProblem

LARGE = 1e6  # impulses that would be needed against the rounding of the programme, over those that stop b


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
    weight = np.maximum(found.x, 0.0)
    moved, closing = np.linalg.norm(w @ weight), -float(b @ weight)
    if closing <= LARGE * moved * np.sqrt((problem.velocity**2).sum()) / size:
        return ""
    which = np.flatnonzero(weight > 1e-6 * weight.max())
    named = ", ".join(str(k) for k in which[:6]) + (f" and {len(which) - 6} more" if len(which) > 6 else "")
    return (
        f"whatever the impulses, one of the contacts {named} closes at {closing:.3g} m/s or faster, since normal "
        "impulses there can balance without moving anything"
    )
