"""The sweeping process (2004, section 2): a point that a moving set pushes before it.

-dq/dt in N_Phi(t)(q): the point rests while it lies inside the set Phi(t); when the boundary reaches it, it moves along
the inward normal, as little as is needed to stay inside (eqs. 4 and 5).
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError, as_numbers, explained, is_number, is_one_of
from ..problem.dense import project
from .sets import Set
from .system import derivative


@dataclass(frozen=True)
class Sweep:
    """The path of a swept point at N + 1 instants in n dimensions."""

    times: np.ndarray  # (N+1,)
    q: np.ndarray  # (N+1, n)
    violation: np.ndarray  # (N+1,) distance outside the set, to first order: rounding for the catching-up algorithm

    @property
    def moves(self) -> np.ndarray:
        """(N,) length of the displacement in each step."""
        return np.linalg.norm(np.diff(self.q, axis=0), axis=1)


def catching_up(set: Set, t_i: float, t_f: float, q: np.ndarray) -> np.ndarray:
    """The implicit step: q_f is the nearest point to q_i in Phi(t_f), eq. 6; the set may have jumped."""
    return set.project(t_f, q)


def lazy(set: Set, t_i: float, t_f: float, q: np.ndarray) -> np.ndarray:
    """The explicit step q_f = q_i + h gamma(t_i, q_i) with the lazy selector of section 2.2."""
    return q + (t_f - t_i) * lazy_velocity(set, t_i, q, step=t_f - t_i)


def lazy_velocity(set: Set, t: float, x, *, step: float = 1.0) -> np.ndarray:
    """gamma(t, x): the shortest v (n,) with df_i/dt + v . grad f_i <= 0 for all i with f_i(t, x) >= 0.

    For one f it is -(df/dt / |grad f|^2) grad f where df/dt > 0, and zero elsewhere; for several, a projection on a
    polyhedron. df/dt at fixed x by sixth-order differences; ``step`` is a time on which the set may vary.
    """
    x = np.asarray(x, dtype=float)
    values, gradients = set.rows(t, x)
    active = np.flatnonzero(values >= 0)
    rates = np.array([derivative(lambda s, i=i: set.rows(t + s, x).values[i], step) for i in active])
    if not (rates > 0).any():
        return np.zeros(len(x))
    return -gradients[active].T @ project(np.eye(len(x)), np.zeros(len(x)), -gradients[active], -rates)


SCHEMES = {"catching-up": catching_up, "lazy": lazy}


@explained
def sweep(set: Set, q0, times, *, scheme: str = "catching-up") -> Sweep:
    """The path of a point that starts at ``q0`` (n,) and is swept by a moving set, at the ``times`` (N+1,).

    ``scheme`` is "catching-up" (eq. 6: implicit, never outside, jumps of the set allowed, order 1) or "lazy" (section
    2.4: explicit, order 1, needs a set that moves smoothly and drifts outside by an amount of the order of the step).

    >>> from contactdynamics import sets, sweep
    >>> wall = sets.HalfSpace(normal=(-1, 0), offset=lambda t: -t)  # x >= t
    >>> sweep(wall, q0=(1, 0), times=[0, 1, 2, 3]).q[:, 0].tolist()
    [1.0, 1.0, 2.0, 3.0]
    """
    if not isinstance(set, Set):
        raise InputError(f"sweep got the set {set!r}; give one of contactdynamics.systems.sets, for example Ball(...).")
    if not is_one_of(scheme, SCHEMES):
        raise InputError(f"Unknown scheme {scheme!r}; choose one of {', '.join(SCHEMES)}.")
    q0, times = as_numbers("q0", q0), as_numbers("times", times)
    if q0.ndim != 1 or q0.size == 0 or not np.isfinite(q0).all():
        raise InputError(f"q0 is {q0.tolist()}; give one point as a vector of finite numbers.")
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise InputError("The times must be one increasing row of finite numbers, for example np.linspace(0, 1, 101).")
    outside = set.violation(times[0], q0)
    if not (is_number(outside) and outside <= 1e-9 * max(1.0, np.abs(q0).max())):
        raise InputError(
            f"q0 lies outside the set at t = {times[0]:.6g} (by {outside:.3g}); start inside, for example from "
            "set.project(times[0], q0)."
        )
    advance = SCHEMES[scheme]
    q, violation = np.empty((len(times), len(q0))), np.zeros(len(times))
    q[0], violation[0] = q0, outside
    for i in range(len(times) - 1):
        q[i + 1] = advance(set, times[i], times[i + 1], q[i])
        violation[i + 1] = set.violation(times[i + 1], q[i + 1])
    return Sweep(times, q, violation)
