"""The set of possible contact forces: `explore_forces`.

With dry friction the one-step problem may have many solutions; which one is found depends on what the iteration starts
from, and in a simulation that is the history (2003, section 8). The set is explored as Moreau proposes in 8.2: repeat
Gauss-Seidel many times, from impulses drawn at random in a domain of plausible values, or with the contacts swept in a
random order. Every solution has its chance; the cloud of the forces at a contact shows how uncertain they are.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from ..errors import InputError, check_seed, explained, is_number, is_one_of, is_whole
from .dense import matrix, measure
from .form import ContactProblem, check, checked_guess
from .laws import solve_contact
from .solving import solve

VARIED = ("impulses", "order", "both")
CHECK_EVERY = 50  # sweeps between two looks at the residual


class Exploration(NamedTuple):
    """Solutions of one contact problem: s samples, m contacts, d components."""

    impulses: np.ndarray  # (s, m, d) N s
    velocities: np.ndarray  # (s, m, d) U = W P + b that goes with them, m/s
    residuals: np.ndarray  # (s,)
    converged: np.ndarray  # (s,)
    iterations: np.ndarray  # (s,)
    friction: np.ndarray  # (m, 2) of the problem
    largest: float  # the plausible domain: 0 <= P_n <= largest, N s; nan where only the order was varied

    @property
    def low(self) -> np.ndarray:
        """(m, d) the smallest impulses found, among the solutions that converged."""
        return self.impulses[self.converged].min(axis=0)

    @property
    def high(self) -> np.ndarray:
        """(m, d) the largest impulses found."""
        return self.impulses[self.converged].max(axis=0)

    @property
    def width(self) -> np.ndarray:
        """(m, d) how far the impulses found lie apart, over the mean normal impulse of all contacts."""
        mean = self.impulses[self.converged, :, 0].mean()
        return (self.high - self.low) / mean if mean > 0 else self.high - self.low

    def plot(self, contacts=None, ax=None):
        """Draw the clouds of (P_t, P_n) at some contacts, with their cones; returns the axes."""
        from ..plotting import plot_clouds

        return plot_clouds(self, contacts, ax)


@kernel
def nlgs_ordered(start, column, value, velocity, friction, delassus, impulses, order, tolerance, max_iterations):
    """Gauss-Seidel over the contacts in the given ``order``, with W in sparse rows; returns sweeps and residual."""
    m, d = impulses.shape
    flat = impulses.reshape(m * d)
    b = np.empty(d)
    residual = np.inf
    for iteration in range(1, max_iterations + 1):
        for a in order:
            own = delassus[a * d : (a + 1) * d, a * d : (a + 1) * d]
            for i in range(d):
                total = velocity[a, i]
                for k in range(start[a * d + i], start[a * d + i + 1]):
                    total += value[k] * flat[column[k]]
                for j in range(d):
                    total -= own[i, j] * impulses[a, j]
                b[i] = total
            solve_contact(own, b, friction[a], impulses[a])
        if iteration <= 10 or iteration % CHECK_EVERY == 0 or iteration == max_iterations:
            residual = measure(delassus, velocity, friction, impulses)[0]
            if residual <= tolerance:
                return iteration, residual
    return max_iterations, residual


@explained
def explore_forces(
    problem,
    samples: int = 100,
    seed: int = 0,
    *,
    vary: str = "impulses",
    largest: float | None = None,
    guess: np.ndarray | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 20_000,
) -> Exploration:
    """Solve one contact problem many times, to see how far its solutions lie apart (2003, section 8.2).

    ``problem``: a `ContactProblem` (`contact_problem(system, state, step)`, `Simulation.contact_problem()`) or a
    `Simulation`, whose next step is taken. ``vary``: "impulses" starts each time from impulses drawn uniformly with
    0 <= P_n <= ``largest`` and P_t in its cone; "order" starts from ``guess`` (m, d), zero when omitted, and sweeps the
    contacts in a random order; "both". ``largest`` is, when omitted, three times the largest P_n of the solution found
    from zero, or what would stop the free motion at all contacts where that solution is zero.

    >>> two = ContactProblem(np.eye(2)[[0, 0]][:, [0, 0]], np.array([[-1.0], [-1.0]]), np.zeros((2, 2)), np.zeros(2))
    >>> found = explore_forces(two, samples=20, seed=1)  # one body on two equal supports: only the sum is known
    >>> bool(np.allclose(found.impulses.sum(axis=1), 1.0)), bool(found.width[0, 0] > 1)
    (True, True)
    """
    problem = problem if isinstance(problem, ContactProblem) else _problem_of(problem)
    problem = check(problem, "explore_forces")
    first, w, velocity, friction = checked_guess(problem, guess), matrix(problem), problem.velocity, problem.friction
    m, d = velocity.shape
    if m == 0:
        raise InputError("explore_forces got a problem without contacts; take a moment at which bodies touch.")
    if not is_whole(samples, 1):
        raise InputError(f"samples is {samples!r}; give a whole number >= 1.")
    if not is_one_of(vary, VARIED):
        raise InputError(f"vary is {vary!r}; choose one of {', '.join(VARIED)}.")
    if largest is not None and not (is_number(largest) and largest > 0):
        raise InputError(f"largest is {largest!r}; give the largest plausible normal impulse, a number > 0.")
    check_seed("explore_forces", seed)
    if not (is_number(tolerance) and tolerance > 0 and is_whole(max_iterations, 1)):
        raise InputError(
            f"explore_forces got tolerance={tolerance!r}, max_iterations={max_iterations!r}; give positive numbers."
        )
    tolerance = float(tolerance)
    rng = np.random.default_rng(seed)
    reach = (largest or _plausible(problem, w, velocity)) if vary != "order" else np.nan
    sparse = _rows(w)
    found = np.empty((int(samples), m, d))
    residuals, iterations = np.empty(len(found)), np.empty(len(found), dtype=np.int64)
    for k, impulses in enumerate(found):
        impulses[:] = first if vary == "order" else random_impulses(rng, reach, friction, d)
        order = np.arange(m) if vary == "impulses" else rng.permutation(m)
        iterations[k], residuals[k] = nlgs_ordered(
            *sparse, velocity, friction, w, impulses, order, tolerance, int(max_iterations)
        )
    velocities = velocity + (found.reshape(-1, m * d) @ w).reshape(found.shape)
    return Exploration(found, velocities, residuals, residuals <= tolerance, iterations, friction, float(reach))


def _problem_of(source) -> ContactProblem:
    if not hasattr(source, "contact_problem"):
        raise InputError(
            f"explore_forces got {type(source).__name__}; give a ContactProblem, contact_problem(system, state, step) "
            "or a Simulation."
        )
    return source.contact_problem()


def _rows(w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W in sparse rows: starts (m d + 1,), columns, values."""
    row, column = np.nonzero(w)
    return np.searchsorted(row, np.arange(len(w) + 1)), column, np.ascontiguousarray(w[row, column])


def _plausible(problem: ContactProblem, w: np.ndarray, velocity: np.ndarray) -> float:
    """The largest plausible normal impulse: see `explore_forces`."""
    normal = solve(problem, solver="nlgs", tolerance=1e-4, max_iterations=2000)[0][:, 0].max()
    d = velocity.shape[1]
    stop = (np.sqrt((velocity**2).sum(axis=1)) / w.diagonal()[::d]).sum()
    return float(3 * normal if normal > 1e-9 * stop else stop) or 1.0


def random_impulses(rng, largest: float, friction: np.ndarray, d: int) -> np.ndarray:
    """Impulses (m, d) uniform in 0 <= P_n <= ``largest``, P_t uniform in the section of the cone there."""
    m = len(friction)
    out = np.empty((m, d))
    out[:, 0] = largest * rng.random(m)
    if d == 2:
        share = rng.random(m)
        out[:, 1] = out[:, 0] * (share * friction[:, 0] - (1 - share) * friction[:, 1])
    elif d == 3:
        size, angle = np.sqrt(rng.random(m)), 2 * np.pi * rng.random(m)
        out[:, 1] = out[:, 0] * friction[:, 0] * size * np.cos(angle)
        out[:, 2] = out[:, 0] * friction[:, 1] * size * np.sin(angle)
    return out


def static_range(problem: ContactProblem, contact: int, component: int = 0) -> tuple[float, float]:
    """The least and the largest impulse of one contact in any equilibrium, by linear programming (two components).

    Equilibrium is U = W P + b = 0 with every P in its cone. (nan, nan) where there is none; infinite where the contacts
    can be jammed at will.

    >>> two = ContactProblem(np.ones((4, 4)) * np.array([1, 0, 1, 0]) * np.array([[1], [0], [1], [0]]) + np.diag(
    ...     [0.0, 1, 0, 1]), np.array([[-1.0, 0.0], [-1.0, 0.0]]), np.full((2, 2), 0.5), np.zeros(2))
    >>> static_range(two, 0)
    (0.0, 1.0)
    """
    from scipy.optimize import linprog

    problem = check(problem, "static_range")
    w, velocity, friction = matrix(problem), problem.velocity, problem.friction
    m, d = velocity.shape
    if d > 2:
        raise InputError("static_range knows contacts of one or two components; a round cone is not linear.")
    if not (0 <= contact < m and 0 <= component < d):
        raise InputError(f"static_range got contact {contact}, component {component}; there are {m} and {d}.")
    scale = np.abs(velocity).max() / w.diagonal()[::d].max() or 1.0  # unknowns of order one
    cone = np.zeros((2 * m, m * d)) if d == 2 else None
    if d == 2:
        a = np.arange(m)
        cone[a, 2 * a], cone[a, 2 * a + 1] = -friction[:, 0], 1.0
        cone[m + a, 2 * a], cone[m + a, 2 * a + 1] = -friction[:, 1], -1.0
    bounds = [(0, None) if k % d == 0 else (None, None) for k in range(m * d)]
    aim = np.zeros(m * d)
    aim[contact * d + component] = 1.0
    ends = []
    for sign in (1, -1):
        done = linprog(sign * aim, A_ub=cone, b_ub=None if cone is None else np.zeros(2 * m), A_eq=w * scale,
                       b_eq=-velocity.ravel(), bounds=bounds, method="highs")  # fmt: skip
        unbounded = -sign * np.inf if done.status == 3 else np.nan
        ends.append(float(scale * (aim @ done.x)) if done.status == 0 else unbounded)
    return ends[0], ends[1]
