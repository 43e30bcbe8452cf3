"""Mechanical systems with a finite number of degrees of freedom and unilateral constraints (1986; 2004, section 4).

The user states inertia A(t, q), force F(t, q, u), and for each constraint its gap g(t, q) >= 0, with the contact map
G(t, q) and the boundary's term w(t, q) of U = G u + w (2004, eq. 19) where there is friction or a moving boundary.
The equation of motion is A du = F dt + sum G^T dP (2004, eq. 40).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import InputError, check_function, explained, is_definite
from ..problem.frames import frame
from ..problem.laws import Law
from ..state import State

# Sixth-order central differences: spacing of the nodes in units of the length on which a function varies.
_STEP = float(np.finfo(float).eps) ** (1 / 7)
# The odd polynomial through the nodes 1, 2, 3 at the point _BETWEEN: weights of the values there.
_BETWEEN = 0.382
_BETWEEN_WEIGHTS = tuple(
    _BETWEEN / k * math.prod((_BETWEEN**2 - j**2) / (k**2 - j**2) for j in (1, 2, 3) if j != k) for k in (1, 2, 3)
)


def derivative(function: Callable[[float], float], size: float) -> float:
    """f'(0) by sixth-order central differences (error about 1e-12); ``size`` is a length on which f may vary.

    Where f varies on a shorter length (a fast vibration, small bodies in metres) the nodes do not see it: their
    polynomial is compared with f at a point between them, and the spacing is shortened until the two agree.

    >>> abs(derivative(math.sin, 1.0) - 1.0) < 1e-11
    True
    >>> abs(derivative(lambda x: math.sin(1e3 * x), 1.0) / 1e3 - 1.0) < 1e-9
    True
    """
    best, best_error = 0.0, math.inf
    h = _STEP * size
    for _ in range(6):
        right, left = [function(k * h) for k in (1, 2, 3)], [function(-k * h) for k in (1, 2, 3)]
        odd = [(a - b) / 2 for a, b in zip(right, left, strict=True)]
        slope = (45 * odd[0] - 9 * odd[1] + odd[2]) / (30 * h)
        expected = sum(w * v for w, v in zip(_BETWEEN_WEIGHTS, odd, strict=True))
        found = (function(_BETWEEN * h) - function(-_BETWEEN * h)) / 2
        error = abs(found - expected) / (_BETWEEN * h)
        if error < best_error:
            best, best_error = slope, error
        if error <= 1e-10 * abs(slope) + 1e-13 * max(map(abs, right + left)) / h:
            break
        h /= 10
    return best


def _numbers(label: str, value) -> np.ndarray:
    """``value`` as an array of numbers (a copy)."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"The {label} is {value!r}; give an array of numbers.") from None


@explained
class Constraint:
    """One unilateral constraint g(t, q) >= 0 and the law of its contact.

    Parameters
    ----------
    gap
        ``g(t, q) -> float``, negative in the forbidden region (the papers write f = -g <= 0).
    gradient
        ``(t, q) -> (n,)``: the row with dg/dt = gradient . u when the boundary rests. Computed by sixth-order
        differences (along the system's own kinematics) when omitted.
    contact_map
        ``G(t, q) -> (d, n)`` with rows (n, t) or (n, t1, t2), needed for friction; the first row must be along the
        gradient. For a particle (2 or 3 degrees of freedom, inertia a multiple of the identity) an orthonormal frame
        is built from the gradient when it is omitted.
    boundary
        ``w(t, q) -> (d,)``, the relative velocity due to the boundary's own motion; U = G u + w. When omitted, the
        normal component is dg/dt at fixed q, by differences, and the tangential one zero.
    law
        A `Law`; frictionless and inelastic when omitted.
    """

    def __init__(
        self,
        gap: Callable,
        *,
        gradient: Callable | None = None,
        contact_map: Callable | None = None,
        boundary: Callable | None = None,
        law: Law | None = None,
        name: str | None = None,
    ):
        for label, value in (
            ("gap", gap),
            ("gradient", gradient),
            ("contact_map", contact_map),
            ("boundary", boundary),
        ):
            check_function(f"Constraint got {label}", value, "t", "q", optional=label != "gap")
        if law is not None and not isinstance(law, Law):
            raise InputError(f"Constraint got law={law!r}; give a Law, for example Law(friction=0.3).")
        if law is not None and (law.rolling or law.spinning or law.cohesion or law.tension):
            raise InputError(f"Constraint got {law!r}; rolling, spinning, cohesion and tension are for scenes.")
        self.gap, self.gradient, self.contact_map, self.boundary = gap, gradient, contact_map, boundary
        self.law = law or Law()
        self.name = name


@explained
class System:
    """A system of n degrees of freedom.

    Parameters
    ----------
    inertia
        A, symmetric positive definite: (n, n) array, (n,) diagonal, or ``A(t, q) -> (n, n)``. Where A depends on q,
        the centrifugal terms of Lagrange's equations belong into ``force`` (2004, eq. 21).
    force
        ``F(t, q, u) -> (n,)``; none when omitted.
    constraints
        One `Constraint`, or any number of them in a list.
    kinematics
        ``(q, u, h) -> q`` after a time h at constant velocity u, for velocities that are not dq/dt (spin components;
        2004, section 4.4). ``q + h u`` when omitted.
    potential
        ``V(t, q) -> float``, only for the energy ledger.
    stiffness, damping, rest
        Linear elasticity of parts whose deformation is in q (2003, section 3.1): the forces -K (q - rest) - C u are
        added to ``force``, and the elastic energy to ``potential``. K and C: (n, n), symmetric and positive
        semidefinite, or (n,) diagonals; rest (n,), zero when omitted. The scheme midpoint treats them implicitly
        (`effective_inertia`).

    >>> import contactdynamics as cd
    >>> floor = cd.Constraint(gap=lambda t, q: q[1], law=cd.Law(restitution=0.5))
    >>> ball = cd.System(inertia=[1.0, 1.0], force=lambda t, q, u: (0, -10.0), constraints=[floor])
    >>> motion = cd.integrate(ball, q=(0, 1), u=(1, 0), step=1e-3, until=1.0)
    >>> bool(abs(motion.q[-1, 0] - 1.0) < 1e-12)
    True
    """

    def __init__(
        self,
        *,
        inertia,
        force: Callable | None = None,
        constraints: Constraint | Sequence[Constraint] = (),
        kinematics: Callable | None = None,
        potential: Callable | None = None,
        stiffness=None,
        damping=None,
        rest=None,
    ):
        check_function("System got force", force, "t", "q", "u", optional=True)
        check_function("System got kinematics", kinematics, "q", "u", "h", optional=True)
        check_function("System got potential", potential, "t", "q", optional=True)
        if callable(inertia):
            check_function("System got inertia", inertia, "t", "q")
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            constraints = [constraints]
        self.constraints = list(constraints)
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise InputError(f"System got the constraint {constraint!r}; give Constraint(gap=...).")
        self.force, self.kinematics, self.potential = force, kinematics, potential
        self.stiffness = self._checked_elastic("stiffness", stiffness)
        self.damping = self._checked_elastic("damping", damping)
        self.rest = None if rest is None else _numbers("rest position", rest)
        self.elastic = stiffness is not None or damping is not None
        self._effective = None  # the last effective inertia: (h, what is added to A, inverse of the sum)
        if self.elastic and kinematics is not None:
            raise InputError("System got stiffness or damping together with kinematics; write those forces into force.")
        if stiffness is not None and (potential is not None or force is None):
            self.potential = self._total_potential(potential)
        self.inertia = inertia
        self.constant_inertia = None if callable(inertia) else self._checked_inertia(inertia)
        self.components = None  # d, the components of each contact; set by `start`

    # ---- the quantities of one instant -------------------------------------------------------------------------

    @staticmethod
    def _checked_inertia(value) -> tuple[np.ndarray, np.ndarray]:
        """A (n, n) and its inverse, once shown to be symmetric and positive definite."""
        a = _numbers("inertia", value)
        a = np.diag(a) if a.ndim == 1 else a
        if a.ndim != 2 or a.shape[0] != a.shape[1] or a.size == 0:
            raise InputError(f"The inertia has shape {a.shape}; give a square matrix (n, n) or a diagonal (n,).")
        if not np.isfinite(a).all() or np.abs(a - a.T).max() > 1e-12 * np.abs(a).max():
            raise InputError("The inertia matrix is not finite and symmetric; give A = A^T.")
        if not is_definite(a):
            raise InputError(
                f"The inertia is not positive definite (smallest eigenvalue {np.linalg.eigvalsh(a).min():.3g}); "
                "give every degree of freedom a positive mass."
            )
        return np.ascontiguousarray(a), np.linalg.inv(a)

    @staticmethod
    def _checked_elastic(label: str, value) -> np.ndarray | None:
        """K or C (n, n), once shown to be symmetric and positive semidefinite."""
        if value is None:
            return None
        a = _numbers(label, value)
        a = np.diag(a) if a.ndim == 1 else a
        if a.ndim != 2 or a.shape[0] != a.shape[1] or a.size == 0 or not np.isfinite(a).all():
            raise InputError(f"The {label} has shape {a.shape}; give a finite square matrix (n, n) or a diagonal (n,).")
        size = np.abs(a).max()
        if np.abs(a - a.T).max() > 1e-12 * size or np.linalg.eigvalsh(a).min() < -1e-10 * size:
            raise InputError(f"The {label} is not symmetric and positive semidefinite; give {label} = B^T D B, D >= 0.")
        return np.ascontiguousarray(a)

    def _total_potential(self, potential):
        def total(t, q):
            stretch = q if self.rest is None else q - self.rest
            return (0.0 if potential is None else potential(t, q)) + 0.5 * stretch @ self.stiffness @ stretch

        return total

    def _check_elastic(self, n: int) -> None:
        for label, value in (("stiffness", self.stiffness), ("damping", self.damping), ("rest position", self.rest)):
            if value is not None and len(value) != n:
                raise InputError(f"The {label} has {len(value)} rows but u has {n} components; make them agree.")

    def effective_inertia(self, inertia: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """What elasticity adds to A in a step of length h, (h/2) C + (h^2/4) K, and the inverse of the sum.

        The elastic force taken at the mean of the positions q_i and q_f = q_i + h (u_i + u_f)/2 and the viscous one at
        the mean velocity are F(q_m, u_i) - (C/2 + h K/4)(u_f - u_i) with q_m = q_i + h u_i / 2: brought to the side of
        the inertia, they leave the momentum balance (2004, eq. 32) its form (2004, section 6.1; Jean 1999), and the
        step is not limited by the stiffness.
        """
        if self._effective is not None and self._effective[0] == h:
            return self._effective[1:]
        added = np.zeros_like(inertia)
        if self.damping is not None:
            added += 0.5 * h * self.damping
        if self.stiffness is not None:
            added += 0.25 * h * h * self.stiffness
        inverse = np.linalg.inv(inertia + added)
        if self.constant_inertia is not None:
            self._effective = h, added, inverse
        return added, inverse

    def inertias(self, t: float, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and A^-1 at (t, q)."""
        return self.constant_inertia or self._checked_inertia(self.inertia(t, q))

    def forces(self, t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """F(t, q, u), (n,)."""
        force = np.zeros(len(u)) if self.force is None else np.asarray(self.force(t, q, u), dtype=float)
        if self.stiffness is not None:
            force = force - self.stiffness @ (q if self.rest is None else q - self.rest)
        return force if self.damping is None else force - self.damping @ u

    def advance(self, q: np.ndarray, u: np.ndarray, h: float) -> np.ndarray:
        """Positions after a time ``h`` at constant velocity ``u`` (1986, eq. 6.8)."""
        return q + h * u if self.kinematics is None else np.asarray(self.kinematics(q, u, h), dtype=float)

    def gaps(self, t: float, q: np.ndarray) -> np.ndarray:
        """All gaps (m,) at (t, q)."""
        values = np.array([constraint.gap(t, q) for constraint in self.constraints], dtype=float)
        for index, value in enumerate(values):
            if not math.isfinite(value):
                raise InputError(
                    f"The gap of {self._label(index)} returned {value} at t = {t:.6g}, q = {np.round(q, 6).tolist()}; "
                    "make it return a finite number wherever the motion can go."
                )
        return values

    def normal(self, index: int, t: float, q: np.ndarray, size: int) -> np.ndarray:
        """Gradient row (n,) of the gap of constraint ``index``: dg/dt = normal . u at resting boundaries."""
        constraint = self.constraints[index]
        if constraint.gradient is not None:
            row = np.asarray(constraint.gradient(t, q), dtype=float)
        elif constraint.contact_map is not None:
            row = np.asarray(constraint.contact_map(t, q), dtype=float)[0]
            row = row * self._steepness(constraint, t, q, row)
        else:
            row = self._differenced_gradient(constraint, t, q, size)
        if not np.dot(row, row) > 0:
            raise InputError(
                f"The gradient of {self._label(index)} is zero or not finite at t = {t:.6g}, "
                f"q = {np.round(q, 6).tolist()}; choose a gap whose gradient does not vanish at contact (1986, 3.4)."
            )
        return row

    def _differenced_gradient(self, constraint: Constraint, t: float, q: np.ndarray, size: int) -> np.ndarray:
        units = np.eye(size)
        scale = max(1.0, float(np.abs(q).max()))
        return np.array([derivative(lambda s, e=e: constraint.gap(t, self.advance(q, e, s)), scale) for e in units])

    def _steepness(self, constraint: Constraint, t: float, q: np.ndarray, row: np.ndarray) -> float:
        """|grad g| / |row| for a row along the gradient: 1 where the gap is a distance and the row a unit normal."""
        if constraint.gradient is not None:
            true = np.asarray(constraint.gradient(t, q), dtype=float)
            return math.sqrt(np.dot(true, true) / np.dot(row, row))
        scale = max(1.0, float(np.abs(q).max()))
        return derivative(lambda s: constraint.gap(t, self.advance(q, row, s)), scale) / np.dot(row, row)

    def rate(self, index: int, t: float, q: np.ndarray) -> float:
        """dg/dt at fixed q: the normal component of w."""
        constraint = self.constraints[index]
        if constraint.boundary is not None:
            return float(np.asarray(constraint.boundary(t, q)).flat[0])
        here = constraint.gap(t, q)
        probe = _STEP * max(1.0, abs(t))
        if constraint.gap(t + probe, q) == here == constraint.gap(t - probe, q):
            return 0.0  # a resting boundary: the common case, told by two evaluations
        return derivative(lambda s: constraint.gap(t + s, q), max(1.0, abs(t)))

    def contact(self, index: int, t: float, q: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Contact map G (d, n) and boundary term w (d,) of constraint ``index`` (2004, eq. 19)."""
        constraint, d = self.constraints[index], self.components
        length = 1.0
        if constraint.contact_map is not None:
            g = np.asarray(constraint.contact_map(t, q), dtype=float)
        else:
            row = self.normal(index, t, q, size)
            if d > 1 and not constraint.law.frictionless:
                g, length = frame(row), math.sqrt(np.dot(row, row))
            else:
                g = row[None, :]
        if constraint.boundary is not None:
            w = np.asarray(constraint.boundary(t, q), dtype=float)
        else:
            w = np.zeros(len(g))
            w[0] = self.rate(index, t, q)
            if w[0] != 0.0:
                w[0] /= self._steepness(constraint, t, q, g[0]) if constraint.contact_map is not None else length
        if len(g) < d:  # a frictionless contact among frictional ones
            g = np.vstack([g, np.zeros((d - len(g), size))])
            w = np.append(w, np.zeros(d - len(w)))
        return g, w

    # ---- the door: all checks once, before the first step --------------------------------------------------------

    def _label(self, index: int) -> str:
        name = self.constraints[index].name
        return f"constraint {index}" + (f" ({name})" if name else "")

    def start(self, q, u, time: float = 0.0) -> State:
        """Check everything that the user stated and return the initial state."""
        q, u = _numbers("initial q", q), _numbers("initial u", u)
        if q.ndim != 1 or u.ndim != 1 or not (np.isfinite(q).all() and np.isfinite(u).all()):
            raise InputError(f"The initial q has shape {q.shape} and u {u.shape}; give two finite vectors.")
        n = len(u)
        if self.kinematics is None and len(q) != n:
            raise InputError(f"The initial q has {len(q)} components and u {n}; give as many, or kinematics=...")
        a, _ = self.inertias(time, q)
        if len(a) != n:
            raise InputError(f"The inertia is {len(a)} x {len(a)} but u has {n} components; make them agree.")
        self._check_elastic(n)
        force = self.forces(time, q, u)
        if force.shape != (n,) or not np.isfinite(force).all():
            raise InputError(f"force(t, q, u) returned {force!r}; it must return {n} finite numbers.")
        if self.kinematics is not None and self.advance(q, u, 1e-3).shape != q.shape:
            raise InputError("kinematics(q, u, h) must return positions of the shape of q.")
        self.components = self._count_components(time, q, n, a)
        for index, constraint in enumerate(self.constraints):
            value = constraint.gap(time, q)
            if not isinstance(value, int | float | np.number | np.ndarray) or np.ndim(value) or np.iscomplexobj(value):
                raise InputError(f"The gap of {self._label(index)} returned {value!r}; it must return one real number.")
        gaps = self.gaps(time, q)
        for index, gap in enumerate(gaps):
            self._check_contact(index, time, q, n)
            length = math.sqrt(np.dot(*(self.normal(index, time, q, n),) * 2)) if gap < 0 else 1.0
            if gap / length < -1e-6 * max(1.0, float(np.abs(q).max())):
                raise InputError(
                    f"The start lies inside the forbidden region of {self._label(index)} (gap {gap:.3g}); "
                    "move q to where all gaps are >= 0, or change the sign of the gap."
                )
        m = len(self.constraints)
        return State(float(time), q, u, np.zeros((m, self.components)), np.zeros(m, dtype=np.int64))

    def resume(self, state: State) -> State:
        """Check that a state of an earlier run fits this system, and return it."""
        if not isinstance(state, State):
            raise InputError(f"The start is {state!r}; give the state of an earlier run, start=motion.state.")
        a, _ = self.inertias(state.time, state.q)
        if len(a) != len(state.u):
            raise InputError(f"The inertia is {len(a)} x {len(a)} but the start has {len(state.u)} velocities.")
        self.components = self._count_components(state.time, state.q, len(state.u), a)
        fitting = (len(self.constraints), self.components)
        if state.impulses.shape != fitting:
            raise InputError(
                f"The start remembers impulses of shape {state.impulses.shape} but this system has {fitting}, contacts "
                "times components; go on with the system of the earlier run, or give q=... and u=..."
            )
        return state

    def _count_components(self, t, q, n, a) -> int:
        """The components d of each contact: 1 without friction, else 2 or 3, the same for all frictional contacts."""
        d = 1
        particle = n in (2, 3) and np.allclose(a, a[0, 0] * np.eye(n), rtol=1e-12, atol=0) and self.kinematics is None
        for index, constraint in enumerate(self.constraints):
            if constraint.contact_map is not None:
                rows = _numbers(f"contact map of {self._label(index)}", constraint.contact_map(t, q)).shape
                if len(rows) != 2 or rows[0] not in (1, 2, 3) or rows[1] != n:
                    raise InputError(
                        f"The contact map of {self._label(index)} has shape {rows}; give (2, {n}) or (3, {n}): "
                        "rows n, t or n, t1, t2."
                    )
                count = rows[0]
            elif constraint.law.frictionless and constraint.law.tangential_restitution == 0:
                count = 1
            elif particle:
                count = n
            else:
                raise InputError(
                    f"{self._label(index)} has friction but no contact map; give contact_map=G(t, q) with rows n, t "
                    "or n, t1, t2."
                )
            if count > 1 and d > 1 and count != d:
                raise InputError("Contacts with 2 and with 3 components are mixed; give all of them the same number.")
            d = max(d, count)
            if (constraint.law.two_sided and count != 2) or (constraint.law.anisotropic and count != 3):
                raise InputError(
                    f"The law of {self._label(index)} does not fit its {count} components; two_sided goes with 2 "
                    "components and anisotropic with 3."
                )
        return d

    def _check_contact(self, index: int, t: float, q: np.ndarray, n: int) -> None:
        """Gradient, contact map and boundary term: shapes, and the order (n, t1, t2) of the rows."""
        constraint = self.constraints[index]
        if constraint.gradient is not None and np.shape(constraint.gradient(t, q)) != (n,):
            shape = np.shape(constraint.gradient(t, q))
            raise InputError(f"The gradient of {self._label(index)} has shape {shape}; it must be ({n},).")
        if constraint.contact_map is not None or constraint.gradient is not None:
            given = constraint.gradient or (lambda t, q: constraint.contact_map(t, q)[0])
            row = np.asarray(given(t, q), dtype=float)
            true = self._differenced_gradient(constraint, t, q, n)
            if row @ true < (1 - 1e-6) * math.sqrt((row @ row) * (true @ true)):
                raise InputError(
                    f"The gradient or the first row of the contact map of {self._label(index)}, "
                    f"{np.round(row, 6).tolist()}, is not along the gradient of its gap, {np.round(true, 6).tolist()}; "
                    "point it to where the gap grows, and order the rows of the map n, t1, t2."
                )
        if constraint.boundary is not None:
            w = np.asarray(constraint.boundary(t, q), dtype=float)
            wanted = 1 if constraint.contact_map is None and constraint.law.frictionless else self.components
            if w.ndim != 1 or len(w) not in (wanted, self.components):
                raise InputError(f"boundary(t, q) of {self._label(index)} returned {w!r}; give {wanted} numbers.")
