"""Friction in generalised forces (2013): the friction surface of a contact, built from Coulomb's law.

Charles and Ballard split the generalised reaction r of a constraint phi(q) >= 0 in the metric of the inverse inertia:
r = r_n d phi / |d phi| + r_t, with r_t orthogonal to d phi. Friction is a dissipation in motions that keep the contact,
so r_t acts on tangential velocities alone (d phi . v = 0), lies in r_n C(q), C convex, and dissipates all it can:

    -r_t . v = r_n D(v),   D(v) = sup {-c . v : c in C}.

The surface C is what is left to choose, and Coulomb's law chooses it (2013, section 4): let the system slide with the
tangential velocity v while the contact is forced, r_n = 1. With U_t = G_t v, the force on the cone that dissipates
most is P = P_n (1, s(U_t)), and its generalised normal part is (W_nn + W_nt . s) P_n / sqrt(W_nn) = 1. Hence

    D(v) = phi_1(U_t) sqrt(W_nn) / (W_nn + W_nt . s(U_t)),

the power it dissipates; phi_1 as in `laws`. Where W_nn + W_nt . s <= 0 no force on the cone can hold the contact
(Painleve's paradox): the motion is blocked, D = infinity.

With two components the surface is the segment between two coefficients. With three and W_nt not zero D need not be
convex (isotropic friction g: not for g |W_nt| > W_nn / 2); C is then the largest set with -c . v <= D(v) for all v,
and a blocked direction is only as hard as a zigzag around it. In all cases with W_nt not zero the normality rule makes
the direction of friction differ from Coulomb's.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError, as_numbers, explained, is_number
from ..problem.dense import project
from ..problem.laws import solve_contact
from ..state import SEPARATING, SLIDING, STICKING
from .system import System, derivative


@dataclass(frozen=True)
class FrictionSurface:
    """The friction surface C(q) of one contact: n freedoms, d components, per unit generalised normal reaction."""

    inertia: np.ndarray  # (n, n)
    normal: np.ndarray  # (n,) d phi / |d phi|, of length 1 in the inverse inertia
    tangent: np.ndarray  # (d-1, n) rows orthogonal to it there: r_t = c @ tangent, U_t = tangent @ u
    delassus: np.ndarray  # (d, d) W of the contact, kg^-1
    friction: np.ndarray  # (2,) coefficients of Coulomb's cone, see `laws`

    def dissipation(self, velocity) -> float:
        """D(v): power (W) that friction dissipates at the generalised ``velocity`` (n,) per unit r_n; inf if blocked.

        Only the tangential part of the velocity counts.
        """
        velocity = np.asarray(velocity, dtype=float)
        if velocity.shape != self.normal.shape:
            raise InputError(f"The velocity has shape {velocity.shape}; the system has {len(self.normal)} freedoms.")
        return self.local_dissipation(self.tangent @ velocity)

    def local_dissipation(self, sliding: np.ndarray) -> float | np.ndarray:
        """D for the sliding velocity U_t (d-1,), or for several (k, d-1)."""
        if sliding.shape[-1] == 1:
            lost = np.where(sliding > 0, self.friction[1] * sliding, -self.friction[0] * sliding)[..., 0]
        else:
            lost = np.sqrt(((self.friction * sliding) ** 2).sum(axis=-1))
        w_nn = self.delassus[0, 0]
        pivot = w_nn + self._force(sliding) @ self.delassus[0, 1:]
        held = pivot > 1e-13 * w_nn
        finite = lost * np.sqrt(w_nn) / np.where(held, pivot, 1.0)
        result = np.where(held | (lost == 0.0), finite, np.inf)
        return float(result) if result.ndim == 0 else result

    def _force(self, sliding):
        """s(U_t) (..., d-1): the tangential force on Coulomb's cone at P_n = 1 that dissipates most."""
        if sliding.shape[-1] == 1:
            return np.where(sliding > 0, -self.friction[1], self.friction[0])
        size = np.sqrt(((self.friction * sliding) ** 2).sum(axis=-1, keepdims=True))
        return -(self.friction**2) * sliding / np.where(size > 0, size, 1.0)

    def coefficient(self, velocity) -> float:
        """D(v) / |v| with the tangential part v of a ``velocity`` and its norm in the inertia: mu^- or mu^+ of 2013."""
        velocity = np.asarray(velocity, dtype=float)
        lost = self.dissipation(velocity)
        along = np.linalg.solve(self.inertia, self.normal)
        tangential = velocity - (self.normal @ velocity) * along
        size = np.sqrt(tangential @ self.inertia @ tangential)
        if not size > 1e-12 * np.sqrt(velocity @ self.inertia @ velocity):
            raise InputError(f"The velocity {velocity.tolist()} has no tangential part; give a direction of sliding.")
        return float(lost / size)


@explained
def friction_surface(system: System, q, *, constraint: int = 0, time: float = 0.0) -> FrictionSurface:
    """The friction surface of one contact of a ``system`` at ``q``, from its law (2013, section 4).

    >>> import contactdynamics as cd
    >>> floor = cd.Constraint(gap=lambda t, q: q[1], law=cd.Law(friction=0.3))
    >>> particle = cd.System(inertia=[4.0, 4.0], constraints=[floor])
    >>> surface = cd.friction_surface(particle, (0, 0))
    >>> round(surface.coefficient((1, 0)), 12)  # that of Coulomb: generalised forces are the real ones
    0.3
    """
    if not isinstance(system, System):
        raise InputError(f"friction_surface got {system!r}; give a System.")
    count = len(system.constraints)
    if not (isinstance(constraint, int | np.integer) and 0 <= constraint < count):
        raise InputError(f"friction_surface got constraint={constraint!r}; the system has {count}, numbered from 0.")
    if not is_number(time):
        raise InputError(f"friction_surface got time={time!r}; give a number.")
    inertia, inverse = system.inertias(time, as_numbers("q", q))
    n = len(inertia)
    state = system.start(q, np.zeros(n), time)
    rows, _ = system.contact(constraint, time, state.q, n)
    law = system.constraints[constraint].law
    return surface_of(inertia, inverse, rows, law.coefficients(np.zeros(len(rows) - 1), SLIDING))


def surface_of(inertia, inverse, rows, friction) -> FrictionSurface:
    """The surface of a contact with the map G (d, n), rows n, t1, t2, and the coefficients of its cone (2,)."""
    delassus = rows @ inverse @ rows.T
    tangent = rows[1:] - np.outer(delassus[1:, 0] / delassus[0, 0], rows[0])
    return FrictionSurface(
        inertia, rows[0] / np.sqrt(delassus[0, 0]), tangent, delassus, np.array(friction, dtype=float)
    )


MAX_SWEEPS = 10_000


def add_friction(inverse, u, maps, boundary, normal, surfaces, *, blocks, tolerance):
    """The tangential part of the scheme `generalised` for k contacts, after their normal impulses.

    Gauss-Seidel on the tangential impulses c, each in r_n C; the problem of one contact is solved exactly. Contacts
    that open take no part. ``maps`` (k, d, n), ``boundary`` (k, d), ``normal`` (k,). Returns u (n,), impulses (k, d),
    status (k,), sweeps and residual.
    """
    rows, w = maps[:, 0], boundary[:, 0]
    size = np.sqrt(u @ surfaces[0].inertia @ u) * np.sqrt([s.delassus[0, 0] for s in surfaces])
    held = np.flatnonzero((normal > 0) | (rows @ u + w <= 1e-12 * (size + np.abs(w))))  # pressed or grazing
    # Tangential velocities are those that keep all the contacts held; back (k, n) takes the normal part away.
    rows = rows[held]
    gram = np.linalg.pinv(rows @ inverse @ rows.T, rcond=1e-12, hermitian=True)
    back = gram @ rows @ inverse
    free = u - inverse @ (rows.T @ (gram @ (rows @ u + w[held])))
    tangents = {a: maps[a, 1:] - maps[a, 1:] @ back.T @ rows for a in held}
    c, velocity, speed = np.zeros(boundary[:, 1:].shape), free, np.sqrt(u @ u)
    sweeps, change = 0, np.inf
    while change > tolerance * speed and sweeps < MAX_SWEEPS:
        sweeps, change = sweeps + 1, 0.0
        for a in held:
            own = tangents[a] @ inverse @ tangents[a].T
            sliding = maps[a, 1:] @ velocity + boundary[a, 1:] - own @ c[a]
            new = _tangential(surfaces[a], own, sliding, normal[a], blocks)
            velocity = velocity + inverse @ (tangents[a].T @ (new - c[a]))
            change = max(change, np.abs(own @ (new - c[a])).max(initial=0.0))
            c[a] = new
        if len(held) <= 1:
            change = 0.0
    impulses = np.column_stack([normal, c])
    impulses[held, 0] -= back @ np.einsum("ai,ain->n", c, maps[:, 1:])
    status = np.full(len(maps), SEPARATING)
    for a in held:
        slid, slides = (np.abs(maps[a, 1:] @ v + boundary[a, 1:]).max(initial=0.0) for v in (free, velocity))
        if impulses[a].any():
            status[a] = SLIDING if slides > 1e-12 * slid else STICKING
    return u + velocity - free, impulses, status, sweeps, change / speed if speed else 0.0


def _tangential(surface, own, sliding, normal, blocks):
    """c (d-1,) in r_n C with -c . U = r_n D(U), U = sliding + own c: friction at a given normal impulse."""
    size = np.sqrt(surface.delassus[0, 0])

    def bound(direction):
        lost = surface.local_dissipation(direction) * size
        if normal == 0.0:  # 0 times infinity is what `blocks` says
            return np.where((lost == np.inf) & blocks, np.inf, 0.0)
        return normal * lost

    if not own.any():
        return np.zeros(len(sliding))  # no friction, or the other contacts leave no tangential motion
    spread, axes = np.linalg.eigh(own)
    if spread[-1] <= 1e-14 * surface.delassus.trace():
        return np.zeros(len(sliding))
    if spread[0] <= 1e-12 * spread[-1] or len(spread) == 1:  # one direction of sliding: a segment
        axis = axes[:, -1]
        return np.clip(-(axis @ sliding) / spread[-1], -bound(axis), bound(-axis)) * axis
    if np.abs(surface.delassus[0, 1:]).max() > 1e-12 * surface.delassus[0, 0]:
        return _skew(own, sliding, bound)
    block, p = np.eye(3), np.zeros(3)
    block[1:, 1:] = own
    solve_contact(block, np.append(-normal, sliding), surface.friction, p)
    return p[1:]


def _skew(own, sliding, bound):
    """c (2,) that minimises c . own c / 2 + c . U over the convex set {-c . e <= bound(e) for all directions e}.

    By half-planes: the minimum over those found so far is exact (`solvers.project`); the direction that it violates
    most joins them. Then, on a smooth part of the boundary, c(e) = -(bound e + bound' e') with U + own c along e is a
    scalar equation for the angle of e.
    """
    from scipy.optimize import brentq, minimize_scalar

    start = -np.linalg.solve(own, sliding)
    grid = np.linspace(0.0, 2 * np.pi, 257)[:-1]
    c, directions, bounds = start, np.empty((0, 2)), np.empty(0)

    def unit(angle):
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def lacking(angle):
        return unit(angle) @ c + bound(unit(angle))

    for _ in range(100):
        k = int(np.argmin(lacking(grid)))
        near = (grid[k] - 0.03, grid[k] + 0.03)
        angle = minimize_scalar(lacking, bounds=near, method="bounded", options={"xatol": 1e-10}).x
        if lacking(angle) >= -1e-13 * np.abs(start).max():
            break
        directions, bounds = np.vstack([directions, unit(angle)]), np.append(bounds, bound(unit(angle)))
        c = start + np.linalg.solve(own, directions.T @ project(own, start, directions, bounds))
    if not len(bounds):
        return c  # sticks

    def touching(angle):
        e, across = unit(angle), unit(angle + np.pi / 2)
        return -(bound(e) * e + derivative(lambda s: float(bound(unit(angle + s))), 0.1) * across)

    def aside(angle):
        return unit(angle + np.pi / 2) @ (sliding + own @ touching(angle))

    velocity = sliding + own @ c
    angle = np.arctan2(velocity[1], velocity[0])
    ends = angle - 1e-4, angle + 1e-4
    if not np.isfinite(bound(unit(np.array(ends)))).all() or aside(ends[0]) * aside(ends[1]) > 0:
        return c  # a corner of the set, or sticking at its edge
    return touching(brentq(aside, *ends, xtol=1e-15))
