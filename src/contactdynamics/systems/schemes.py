"""One step of a finite-freedom system: ELAST, INEL and friction of 1986, and the midpoint scheme of 2003/2004.

All schemes have the signature ``scheme(system, state, h, **options) -> Step`` and the same frame: half a step of
drift to (t_m, q_m), a new velocity u_f from forces and contacts there, half a step of drift with it. This is the
leapfrog of 1986, eqs. 6.7 and 6.8, with its input procedure (6.13)-(6.15) and its output at mid-intervals (6.16),
(6.17) built in: q_m is the report's q_{i+1}, u_f its u_{i+1}. Motion in a constant field is exact.

Each scheme returns the contact impulses with the velocity, so that A_m (u_f - u_i) = h F + sum G^T P holds to
rounding and the energy ledger (2004, eqs. 48-50) closes.
"""

import math

import numpy as np

from .._jit import kernel
from ..errors import InputError, explained, is_number
from ..problem.dense import nlgs, project, report
from ..problem.form import BodyForm, ContactProblem
from ..problem.laws import solve_contact
from ..problem.residual import NO_CONTACT
from ..state import OPEN, SEPARATING, SLIDING, STICKING, State, Step
from .generalised import add_friction, surface_of
from .system import System


def elast(system: System, state: State, h: float, *, anticipation: float = 0.0) -> Step:
    """ELAST (1986, section 7): elastic shocks with the energy of each step balanced, eqs. 7.5 to 7.8.

    u_f = refl_T u_i + h proj_T Q where the free velocity u' enters the obstacle. ``anticipation`` A_V takes the
    gradient at q_m + A_V h u_i (its best value is 0: trials 3 and 4). Several contacts closing in the same step are
    taken together: P is bound to the mean velocity (u_i + u_f)/2 by the frictionless law (2004, end of section 8).
    """
    middle = _Middle(system, state, h, "elast", anticipated_gradient=anticipation)
    normals, rates = middle.normals, middle.rates
    entering = normals @ middle.free + rates < 0
    impulses = np.zeros(len(normals))
    if entering.sum() == 1:
        row, rate = normals[entering][0], rates[entering][0]
        # lambda of eq. 7.7; it may be slightly negative: the price of an exact balance (see the report).
        impulses[entering] = -(row @ (state.u + middle.free) + 2 * rate) / (row @ middle.inverse @ row)
    elif entering.any():
        impulses[entering] = project(
            middle.inertia, middle.free, normals[entering], 2 * rates[entering] + normals[entering] @ state.u
        )
    return middle.finish(impulses)


def reflection(system: System, state: State, h: float) -> Step:
    """The naive reflection (1986, eq. 7.4): u_f is the mirror image of u'. Kept for comparison: it creates energy."""
    middle = _Middle(system, state, h, "reflection")
    impulses = np.zeros(len(middle.normals))
    for index, (row, rate) in enumerate(zip(middle.normals, middle.rates, strict=True)):
        entering = row @ middle.free + rate
        impulses[index] = max(0.0, -2 * entering / (row @ middle.inverse @ row))
    return middle.finish(impulses)


def inel(system: System, state: State, h: float, *, anticipation: float = 0.0) -> Step:
    """INEL (1986, section 10): u_f = prox(V(q), u'), the standard inelastic shock (8.1) and persistent contact in one.

    The projection on the polyhedral cone in the kinetic metric (10.5) is exact for any number of active constraints.
    ``anticipation`` A_V evaluates the active set, the gradients and the force at q' = q_m + A_V h u_i (Remark 1);
    1/2 gives the least violation (trial 5).
    """
    middle = _Middle(system, state, h, "inel", anticipated_cone=anticipation)
    return middle.finish(project(middle.inertia, middle.free, middle.normals, middle.rates))


def wall_friction(system: System, state: State, h: float, *, anticipation: float = 0.0) -> Step:
    """Friction of a particle against a wall in two or three dimensions (1986, section 12, eq. 12.7).

    u' = u_T + u_G; the particle stops on the wall if |u_T| <= gamma |u_G|, otherwise
    u_f = u_T (1 - gamma |u_G| / |u_T|).
    """
    middle = _Middle(system, state, h, "wall_friction", anticipated_cone=anticipation, friction=True)
    d = system.components
    impulses, status = np.zeros((len(middle.maps), d)), np.full(len(middle.maps), SEPARATING)
    axes = np.zeros((len(middle.maps), d, len(state.u)))
    for k, index in enumerate(middle.active):
        axes[k], w = middle.maps[k]
        metric = axes[k] @ middle.inverse @ axes[k].T
        frictionless = system.constraints[index].law.frictionless
        if d > 1 and not frictionless and np.abs(metric - metric[0, 0] * np.eye(d)).max() > 1e-9 * metric[0, 0]:
            raise InputError(
                "wall_friction treats a particle in an orthonormal frame; give orthonormal rows in contact_map and an "
                "inertia that is a multiple of the identity, or use scheme='midpoint'."
            )
        local = axes[k] @ middle.free + w
        if local[0] < 0:
            gamma, other = middle.coefficients(index, axes[k] @ state.u + w)
            if gamma != other:
                raise InputError("wall_friction knows one coefficient of friction; use scheme='midpoint' for this law.")
            sliding, pressing = np.sqrt(local[1:] @ local[1:]), -local[0]
            stopped = not frictionless and sliding <= gamma * pressing
            kept = 0.0 if stopped or sliding == 0.0 else 1.0 - gamma * pressing / sliding
            impulses[k] = (np.append(0.0, kept * local[1:]) - local) / metric[0, 0]
            status[k] = STICKING if stopped else SLIDING
    middle.require_one_contact("wall_friction", status)
    return middle.finish_local(axes, impulses, status)


def planar_friction(system: System, state: State, h: float, *, anticipation: float = 0.0) -> Step:
    """Two-dimensional friction in any number of freedoms (1986, section 13, eq. 13.13): u_f = prox(S, 0).

    S is the segment, or the half-line in a jam, in which the cone u' + C meets the hyperplane T: tangential shocks
    need no special treatment. Two coefficients for the two senses of sliding.
    """
    middle = _Middle(system, state, h, "planar_friction", anticipated_cone=anticipation, friction=True)
    d = system.components
    if d > 2:
        raise InputError("planar_friction knows contacts of two components, n and t; use scheme='midpoint' for three.")
    impulses, status = np.zeros((len(middle.normals), d)), np.full(len(middle.normals), SEPARATING)
    axes = np.zeros((len(middle.normals), d, len(state.u)))
    for k, index in enumerate(middle.active):
        axes[k], w = middle.maps[k]
        delassus = axes[k] @ middle.inverse @ axes[k].T
        cone = np.array(middle.coefficients(index, axes[k] @ state.u + w))
        status[k] = solve_contact(delassus, axes[k] @ middle.free + w, cone, impulses[k])
    middle.require_one_contact("planar_friction", status)
    return middle.finish_local(axes, impulses, status)


def midpoint(system: System, state: State, h: float, *, tolerance: float = 1e-12, max_iterations: int = 10_000) -> Step:
    """The general scheme of 2003/2004 (2004, sections 6.1, 6.2, 7.5): several contacts with friction and restitution.

    The law of each contact links P to the weighted velocity (rho U_n^- + U_n^+, tau U_t^- + U_t^+) (2003, eq. 40);
    nonlinear Gauss-Seidel starts from the impulses of the last step. Where the system states its stiffness, A is
    replaced by the effective inertia (2004, section 6.1; `System.effective_inertia`): elasticity may be as stiff as
    it likes.
    """
    t_m, q_m = state.time + h / 2, system.advance(state.q, state.u, h / 2)
    gaps = system.gaps(t_m, q_m)
    inertia, inverse = system.inertias(t_m, q_m)
    force = system.forces(t_m, q_m, state.u)
    added = np.empty((0, 0))
    if system.elastic:
        added, inverse = system.effective_inertia(inertia, h)
    active = [index for index in range(len(gaps)) if gaps[index] <= 0]
    contacts, m = _active_contacts(system, state, t_m, q_m, active), len(active)
    found = state.impulses[active], np.zeros(m, dtype=np.int64), np.empty((m, 3))  # filled by the kernel
    u_f, energy, iterations, errors = _midpoint_velocity(
        (inertia, inverse, added), state.u, force, h, contacts, found, tolerance, max_iterations
    )
    told = report(errors, iterations, tolerance, gaps[active]) if m else NO_CONTACT
    return _assemble(system, state, h, (q_m, gaps, active), u_f, found, energy, told)


def _active_contacts(system, state, t_m, q_m, active):
    """Contact maps (m, d, n), boundary terms (m, d), restitutions (m, 2) and cones (m, 2) of the active contacts."""
    m, n, d = len(active), len(state.u), system.components
    maps, boundary, weights, cones = np.empty((m, d, n)), np.empty((m, d)), np.empty((m, 2)), np.empty((m, 2))
    for k, index in enumerate(active):
        maps[k], boundary[k] = system.contact(index, t_m, q_m, n)
        law = system.constraints[index].law
        sliding = maps[k, 1:] @ state.u + boundary[k, 1:]
        cones[k] = law.coefficients(sliding, state.status[index])
        weights[k] = law.restitution, law.tangential_restitution
    return maps, boundary, weights, cones


@explained
def contact_problem(system: System, state: State, step: float) -> ContactProblem:
    """The problem that `midpoint` solves in a step from ``state``, as data (2003, eqs. 39 and 40).

    ``state`` of ``system.start(q, u)`` or of a motion. The contacts are those active at the midpoint, in the order of
    the constraints. Solve it with `solve`, or see how many solutions it has with `explore_forces`.

    >>> import contactdynamics as cd
    >>> floor = cd.Constraint(gap=lambda t, q: q[1], law=cd.Law(friction=0.5))
    >>> brick = cd.System(inertia=[2.0, 2.0], force=lambda t, q, u: (0, -20.0), constraints=[floor])
    >>> problem = contact_problem(brick, brick.start((0, 0), (0, 0)), 0.1)
    >>> cd.solve(problem)[0].round(9) + 0.0
    array([[2., 0.]])
    """
    from scipy.sparse import csr_array

    if not isinstance(system, System):
        raise InputError(f"contact_problem got {system!r}; give a System.")
    system.resume(state)
    if not (is_number(step) and step > 0):
        raise InputError(f"The step is {step!r}; give a positive time, for example step=1e-3.")
    t_m, q_m = state.time + step / 2, system.advance(state.q, state.u, step / 2)
    gaps = system.gaps(t_m, q_m)
    inertia, inverse = system.inertias(t_m, q_m)
    if system.elastic:
        added, inverse = system.effective_inertia(inertia, step)
        inertia = inertia + added
    active = np.flatnonzero(gaps <= 0)
    maps, boundary, weights, cones = _active_contacts(system, state, t_m, q_m, active)
    d = system.components
    rows = maps.reshape(-1, len(state.u))
    free = state.u + step * (inverse @ system.forces(t_m, q_m, state.u))
    before = maps @ state.u + boundary
    weight = np.repeat(weights[:, :1], d, axis=1)
    weight[:, 1:] = weights[:, 1:]
    drift = boundary + weight * before
    bodies = BodyForm(csr_array(inertia), csr_array(rows), free, drift)
    return ContactProblem(rows @ inverse @ rows.T, maps @ free + drift, cones, gaps[active], bodies)


@kernel
def _midpoint_velocity(inertias, u, force, h, contacts, found, tolerance, max_iterations):
    """Solve 2003, eqs. 39 and 40, for u_f and P; fills ``found``: impulses, status, works.

    ``inertias`` are A, the inverse of A + ``added``, the effective inertia, and ``added``, empty where nothing is
    elastic; ``contacts`` those of `_active_contacts`. Returns u_f, (kinetic before, kinetic after, work of forces,
    kinetic of the free velocity), sweeps, errors.
    """
    inertia, inverse, added = inertias
    maps, boundary, weights, cones = contacts
    impulses, status, works = found
    m, d, n = maps.shape
    rows = maps.reshape((m * d, n))
    relaxed = u + h * (inverse @ force)
    iterations, errors = 0, (0.0, -1, 0.0, 0.0)
    u_f = relaxed
    if m > 0:
        spread = inverse @ np.ascontiguousarray(rows.T)
        delassus = rows @ spread
        velocity = (rows @ relaxed).reshape((m, d)) + boundary
        entering = (rows @ u).reshape((m, d)) + boundary
        for k in range(m):
            for i in range(d):
                velocity[k, i] += weights[k, min(i, 1)] * entering[k, i]
        iterations, errors = nlgs(delassus, velocity, cones, impulses, status, tolerance, max_iterations)
        u_f = relaxed + spread @ impulses.reshape(m * d)
    if added.size:  # elastic and viscous forces at the means of the step
        force = force - added @ (u_f - u) / h
    before, after, work, free = _energies(inertia, u, relaxed, u_f, force, h)
    if added.size:  # so that after - free is the work of the contacts counted from the free velocity
        free += 0.5 * (relaxed @ (added @ relaxed)) - 0.5 * (u_f @ (added @ u_f))
    energy = before, after, work, free
    _contact_works(rows, boundary, u, u_f, impulses, works)
    return u_f, energy, iterations, errors


@kernel
def _energies(inertia, u, free, u_f, force, h):
    """Kinetic energy before, after, the work h F . (u_i + u_f) / 2 (2004, eq. 48), and that of the free velocity."""
    work = 0.5 * h * (force @ (u + u_f))
    return 0.5 * (u @ (inertia @ u)), 0.5 * (u_f @ (inertia @ u_f)), work, 0.5 * (free @ (inertia @ free))


@kernel
def _contact_works(rows, boundary, u, u_f, impulses, works):
    """Normal and tangential part of (U^- + U^+) . P / 2 (2004, eq. 50), and the work -w . P of driven boundaries."""
    m, d = impulses.shape
    mean = 0.5 * (rows @ (u + u_f))
    for a in range(m):
        works[a, 0], works[a, 1], works[a, 2] = 0.0, 0.0, 0.0
        for i in range(d):
            works[a, min(i, 1)] += (mean[a * d + i] + boundary[a, i]) * impulses[a, i]
            works[a, 2] -= boundary[a, i] * impulses[a, i]


def _assemble(system, state, h, middle, u_f, found, energy, told) -> Step:
    """Drift half a step with u_f (2004, section 3.3) and put the step together; inactive contacts are OPEN.

    ``middle`` is q_m, the gaps there and the active contacts, ``found`` their impulses, status and works.
    """
    (q_m, gaps, active), (impulses, status, works) = middle, found
    m = len(gaps)
    if not math.isfinite(u_f @ u_f):
        raise InputError(
            f"The velocity became {u_f.tolist()} at t = {state.time + h:.6g}; check that force, gradient and contact "
            "map return finite numbers there, and shorten the step if the motion blows up."
        )
    if len(active) < m:  # scatter; when all are active their arrays serve as they are
        partial = impulses, status, works
        impulses, status, works = np.zeros((m, system.components)), np.full(m, OPEN), np.zeros((m, 3))
        if active:
            impulses[active], status[active], works[active] = partial
    new = State(state.time + h, system.advance(q_m, u_f, h / 2), u_f, impulses, status)
    return Step(new, gaps, energy[2], works[:, :2], works[:, 2], energy[0], energy[1], told, energy[3])


class _Middle:
    """What the schemes of 1986 share: the midpoint, the free velocity u' (10.4), the active set J and its gradients."""

    def __init__(self, system, state, h, scheme, *, anticipated_gradient=0.0, anticipated_cone=0.0, friction=False):
        for constraint in system.constraints:
            law = constraint.law
            if law.restitution or law.tangential_restitution or not (friction or law.frictionless):
                raise InputError(
                    f"The scheme {scheme} knows no {'restitution' if friction else 'friction or restitution'}; "
                    "use scheme='midpoint' for this law."
                )
        self.system, self.state, self.h = system, state, h
        self.t_m, self.q_m = state.time + h / 2, system.advance(state.q, state.u, h / 2)
        # q' of Remark 1, section 10: active set, cone and force; of section 7: the gradient alone.
        q_cone = system.advance(self.q_m, state.u, anticipated_cone * h) if anticipated_cone else self.q_m
        q_gradient = system.advance(self.q_m, state.u, anticipated_gradient * h) if anticipated_gradient else q_cone
        self.gaps = system.gaps(self.t_m, q_cone)
        self.active = [index for index in range(len(self.gaps)) if self.gaps[index] <= 0]
        self.inertia, self.inverse = system.inertias(self.t_m, q_cone)
        self.force = system.forces(self.t_m, q_cone, state.u)
        self.free = state.u + h * (self.inverse @ self.force)
        n = len(state.u)
        self.maps = [system.contact(index, self.t_m, q_gradient, n) for index in self.active]
        self.normals = np.array([g[0] for g, _ in self.maps]).reshape(-1, n)
        self.rates = np.array([w[0] for _, w in self.maps])

    def coefficients(self, index, velocity):
        """Friction coefficients of constraint ``index`` from the velocity and status at the start of the step."""
        return self.system.constraints[index].law.coefficients(velocity[1:], self.state.status[index])

    def require_one_contact(self, scheme, status):
        """The friction of 1986 is that of one contact: two that press together would each carry the whole load."""
        pressing = [index for index, s in zip(self.active, status, strict=True) if s in (STICKING, SLIDING)]
        if len(pressing) > 1:
            raise InputError(
                f"{scheme} treats one contact at a time, but constraints {', '.join(map(str, pressing))} press "
                f"together at t = {self.t_m:.6g}; use scheme='midpoint' for several contacts with friction."
            )

    def finish(self, impulses):
        """End a frictionless step with the normal impulses (k,) of the active contacts."""
        axes = self.normals[:, None, :]
        status = np.where(impulses == 0, SEPARATING, SLIDING)
        return self.finish_local(axes, impulses[:, None], status)

    def finish_local(self, axes, impulses, status):
        """End a step with the impulses (k, d) along the rows ``axes`` (k, d, n) of the active contacts."""
        k, d, n = axes.shape
        rows = np.ascontiguousarray(axes).reshape(k * d, n)
        u_f = self.free + self.inverse @ (rows.T @ impulses.ravel())
        works = np.zeros((k, 3))
        boundary = np.array([w[:d] for _, w in self.maps]).reshape(k, d)
        impulses = np.ascontiguousarray(impulses)
        _contact_works(rows, boundary, self.state.u, u_f, impulses, works)
        energy = _energies(self.inertia, self.state.u, self.free, u_f, self.force, self.h)
        told = report((0.0, -1, 0.0, 0.0), 1, 0.0, self.gaps[self.active]) if self.active else NO_CONTACT
        padded = np.zeros((k, self.system.components))
        padded[:, :d] = impulses
        middle = self.q_m, self.gaps, self.active
        return _assemble(self.system, self.state, self.h, middle, u_f, (padded, status, works), energy, told)


def generalised(system: System, state: State, h: float, *, grazing: str = "slides", tolerance: float = 1e-13) -> Step:
    """Friction in generalised forces (2013, problem P), with Newton's restitution.

    Normal part: the impulses of Moreau's projection (1986, eq. 10.5), with U_n^+ >= -rho U_n^- at the contacts.
    Tangential part: u_t minimises |u_t - u_t'|^2 / 2 + sum r_n D(u_t) over the velocities that keep all these contacts:
    the dissipations of several contacts add up (section 5). An impact never creates energy (several contacts: where
    they have the same restitution). ``grazing`` says what a blocked direction (D infinite) does at a contact without
    pressure: "slides" takes 0 times infinity as 0, "blocks" as infinity (section 4).
    """
    if grazing not in ("slides", "blocks"):
        raise InputError(f"grazing is {grazing!r}; choose 'slides' (0 x infinity = 0) or 'blocks' (= infinity).")
    t_m, q_m = state.time + h / 2, system.advance(state.q, state.u, h / 2)
    gaps = system.gaps(t_m, q_m)
    inertia, inverse = system.inertias(t_m, q_m)
    force = system.forces(t_m, q_m, state.u)
    active = [index for index in range(len(gaps)) if gaps[index] <= 0]
    m, n, d = len(active), len(state.u), system.components
    maps, boundary, rebound, surfaces = np.empty((m, d, n)), np.empty((m, d)), np.empty(m), []
    for k, index in enumerate(active):
        maps[k], boundary[k] = system.contact(index, t_m, q_m, n)
        law = system.constraints[index].law
        if law.tangential_restitution:
            raise InputError("The scheme generalised knows no tangential restitution; use scheme='midpoint'.")
        before = maps[k] @ state.u + boundary[k]
        rebound[k] = law.restitution * before[0]
        surfaces.append(surface_of(inertia, inverse, maps[k], law.coefficients(before[1:], state.status[index])))
    free = u_f = state.u + h * (inverse @ force)
    told = NO_CONTACT
    impulses, status, works = np.zeros((m, d)), np.full(m, SEPARATING), np.empty((m, 3))
    if m:
        normal = project(inertia, u_f, maps[:, 0], boundary[:, 0] + rebound)
        u_f = u_f + inverse @ (maps[:, 0].T @ normal)
        u_f, impulses, status, sweeps, residual = add_friction(
            inverse, u_f, maps, boundary, normal, surfaces, blocks=grazing == "blocks", tolerance=tolerance
        )
        told = report((residual, -1, 0.0, 0.0), sweeps, tolerance, gaps[active])
    energy = _energies(inertia, state.u, free, u_f, force, h)
    _contact_works(maps.reshape(m * d, n), boundary, state.u, u_f, impulses, works)
    return _assemble(system, state, h, (q_m, gaps, active), u_f, (impulses, status, works), energy, told)


def corrected(scheme):
    """The scheme followed by the correction of violation (1986, eqs. 10.8 and 10.9).

    The midpoint q_m (the report's q_{i+1}) is displaced, after the velocity has been computed, by the shortest vector
    in the kinetic metric that makes the linearised gaps of the violated constraints vanish.
    """

    def with_correction(system: System, state: State, h: float, **options) -> Step:
        step = scheme(system, state, h, **options)
        t_m, q_m = state.time + h / 2, system.advance(state.q, state.u, h / 2)
        gaps = system.gaps(t_m, q_m)
        violated = [index for index in range(len(gaps)) if gaps[index] < 0]
        if not violated:
            return step
        _, inverse = system.inertias(t_m, q_m)
        rows = np.array([system.normal(index, t_m, q_m, len(state.u)) for index in violated])
        delassus = rows @ inverse @ rows.T
        shift = inverse @ (rows.T @ np.linalg.lstsq(delassus, -gaps[violated], rcond=1e-12)[0])
        new = step.state._replace(q=system.advance(system.advance(q_m, shift, 1.0), step.state.u, h / 2))
        return step._replace(state=new)

    with_correction.__name__, with_correction.__wrapped__ = f"corrected_{scheme.__name__}", scheme
    return with_correction


SCHEMES = {
    "midpoint": midpoint,
    "elast": elast,
    "reflection": reflection,
    "inel": inel,
    "inel_corrected": corrected(inel),
    "wall_friction": wall_friction,
    "wall_friction_corrected": corrected(wall_friction),
    "planar_friction": planar_friction,
    "planar_friction_corrected": corrected(planar_friction),
    "generalised": generalised,
}
