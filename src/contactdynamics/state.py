"""The named tuples that travel: the dictionary of the package.

Notation (shapes use n degrees of freedom, m contacts, d components per contact in the order n, t1, t2):
q positions, u velocities, h time step, g gap (negative when bodies overlap), U relative velocity at a contact
(U_n > 0 separates), P impulse (N s, P_n >= 0 pushes), G contact map with U = G u + w, A inertia, W = G A^-1 G^T.
"""

from typing import NamedTuple

import numpy as np

# Status of a contact at the end of a step.
OPEN, SEPARATING, STICKING, SLIDING = 0, 1, 2, 3
STATUS_NAMES = ("open", "separating", "sticking", "sliding")


class ContactProblem(NamedTuple):
    """The one-step problem as data: find P with U = W P + b and (U, P) on each contact's law."""

    delassus: np.ndarray  # (m*d, m*d) W, kg^-1
    velocity: np.ndarray  # (m, d) b, weighted velocity left by the free motion, m/s
    friction: np.ndarray  # (m, 2) the two coefficients of the cone: see `laws`
    gap: np.ndarray  # (m,) gap at the midpoint, m


class SolveReport(NamedTuple):
    """How well a contact problem was solved. All errors are relative and free of units."""

    residual: float  # natural map of the Signorini-Coulomb problem, l2, relative to the impulses
    iterations: int  # sweeps over all contacts
    converged: bool
    contacts: int  # active contacts
    worst: int  # contact with the largest share of the residual, -1 without contacts
    penetration: float  # largest overlap, length units of the problem
    cone_error: float  # largest distance to the friction cone
    complementarity_error: float  # mean of |b(U, P)|, de Saxce's bipotential
    message: str  # one sentence: what happened and what to do


class State(NamedTuple):
    """A finite-freedom system at one instant, with the memory that dry friction needs."""

    time: float  # s
    q: np.ndarray  # (n,) or longer, with kinematics of its own
    u: np.ndarray  # (n,)
    impulses: np.ndarray  # (m, d) contact impulses of the last step, N s
    status: np.ndarray  # (m,) OPEN, SEPARATING, STICKING or SLIDING


class Step(NamedTuple):
    """One step of a finite-freedom system: the new state and what happened on the way to it."""

    state: State
    gaps: np.ndarray  # (m,) at the midpoint, m
    force_work: float  # h F . (u_i + u_f) / 2, J
    contact_work: np.ndarray  # (m, 2) normal and tangential part of (U_i + U_f) . P / 2, J
    boundary_work: np.ndarray  # (m,) -w . P, done by driven boundaries, J
    kinetic_before: float  # u_i . A_m u_i / 2, J
    kinetic_after: float  # u_f . A_m u_f / 2, J
    report: SolveReport
