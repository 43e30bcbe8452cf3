"""The event-driven way (2004, section 1.2): smooth motion between events, for systems with few of them.

Between two events the touching contacts of a set C keep their status, open, sticking or sliding, and the motion is
that of a system with two-sided constraints,

    A u' = F + sum G^T R,   G u' + a = 0 on C,   a = (dG/dt) u + dw/dt at constant u,

an ordinary differential equation for a Runge-Kutta method of order 8 (scipy). An event ends the interval: a gap closes,
a reaction would pull, a friction cone is reached, a sliding stops. At an event

- an approach U_n < 0 is an impact: all touching contacts together obey Moreau's law with the weighted velocities (2004,
  eqs. 43 and 44), without friction and restitution the projection of u on the tangent cone in the kinetic metric;
- then the right-acceleration (2004, section 5.3) decides who stays: u' minimises |A u' - F|^2 in the metric A^-1 under
  G_n u' + a_n >= 0 for all contacts with g = 0 and U_n = 0 (Gauss's principle with unilateral constraints), a quadratic
  programme. The contacts that leave are those with G_n u' + a_n > 0 in its solution, which are not those whose reaction
  had the wrong sign (Delassus 1917). With friction the same law as for velocities binds R to dU/dt where U = 0, and
  R_t = -gamma R_n U_t/|U_t| where the contact slides: solved by Gauss-Seidel. Where a sliding contact has
  W_nn - gamma W_nt <= 0 (Painleve) there is no such acceleration, or more than one: the run stops and says so.

Impacts with restitution accumulate: a ball comes to rest after infinitely many in a finite time. Below ``rest_speed``
they are replaced by one inelastic impact, and the report says so, with the limit of the times (Aitken).
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from .errors import ConvergenceError, ConvergenceWarning, InputError, is_number
from .laws import solve_contact
from .solvers import project, solve
from .state import SEPARATING, SLIDING, STICKING, ContactProblem
from .system import System, derivative

# Relative sizes below which a gap, a speed, an acceleration and a reaction count as zero. Events are found where the
# watched quantity is below zero by this much: at exactly zero nothing could be decided.
_GAP, _SPEED, _ACCELERATION, _REACTION = 1e-14, 1e-9, 1e-11, 1e-9
_SAMPLES = 8  # points of a step at which gaps are looked at, for a contact that closes and opens again inside it


class Event(NamedTuple):
    """What ended an interval of smooth motion."""

    time: float  # s
    kind: str  # "impact", "rest" (impacts accumulate), "touch", "release", "stick" or "slide"
    contacts: tuple  # constraints concerned
    impulses: np.ndarray  # (m, d) of an impact, zero otherwise, N s
    energy: float  # change of kinetic energy by an impact, J


class Interval(NamedTuple):
    """Smooth motion with an unchanging set of contacts."""

    begin: float  # s
    end: float  # s
    state: object  # time -> (q, u) stacked
    status: np.ndarray  # (m,) OPEN, STICKING or SLIDING
    reactions: object  # (t, q, u) -> (m, d) contact forces, N


@dataclass(frozen=True)
class EventMotion:
    """The motion of a system between events; times at the ``samples`` asked for."""

    times: np.ndarray  # (N,) s
    q: np.ndarray  # (N, n)
    u: np.ndarray  # (N, n), right-limits
    events: list  # of Event
    intervals: list  # of Interval
    evaluations: int  # how often the acceleration was computed
    accumulations: list  # (time, contact, limit of the impact times) of each accumulation of impacts
    completed: bool
    message: str  # one sentence: what happened and what to do

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """q and u (right-limit) at any time of the run, by the dense output of the integrator (order 7)."""
        interval = self._interval(time)
        return np.split(interval.state(min(max(time, interval.begin), interval.end)), [self.q.shape[1]])

    def reactions(self, time: float) -> np.ndarray:
        """Contact forces (m, d) in N at a time between events, components (n, t1, t2)."""
        interval = self._interval(time)
        return interval.reactions(time, *self.at(time))

    def _interval(self, time):
        if not (self.times[0] <= time <= self.times[-1]):
            raise InputError(f"time={time} is outside the run, which goes from {self.times[0]} to {self.times[-1]}.")
        begins = [interval.begin for interval in self.intervals]
        return self.intervals[max(0, int(np.searchsorted(begins, time, side="right")) - 1)]


def integrate(
    system: System,
    q,
    u,
    *,
    until: float,
    time: float = 0.0,
    tolerance: float = 1e-10,
    samples: int = 201,
    rest_speed: float | None = None,
    max_step: float | None = None,
    max_events: int = 10_000,
    on_failure: str = "warn",
) -> EventMotion:
    """Run a system from (q, u) at ``time`` to ``until`` from event to event, with the relative ``tolerance`` between.

    Takes the `System` that `contactdynamics.integrate` takes; contacts with friction have two components. Restitution
    acts at impacts above ``rest_speed`` (1e-7 of the largest speed when omitted). The integrator takes steps up to
    ``max_step`` (1/40 of the run when omitted); an event that is over within an eighth of a step is not seen.
    ``on_failure`` ("warn", "raise", "ignore") says what to do where the motion cannot be continued; the result then
    ends there.

    >>> import contactdynamics as cd
    >>> floor = cd.Constraint(gap=lambda t, q: q[0], law=cd.Law(restitution=0.5))
    >>> ball = cd.System(inertia=[1.0], force=lambda t, q, u: (-10.0,), constraints=[floor])
    >>> motion = cd.events.integrate(ball, q=(0.2,), u=(0.0,), until=1.0)
    >>> round(motion.events[0].time, 9), round(motion.accumulations[0][2], 6)  # 0.2 s, and 0.2 (1 + 2 (1/2 + ...))
    (0.2, 0.6)
    """
    for label, value in (("until", until), ("time", time)):
        if not is_number(value):
            raise InputError(f"{label} is {value!r}; give a finite time.")
    if until <= time:
        raise InputError(f"until={until} is not after the start t = {time}; give a later time.")
    if not (is_number(tolerance) and 1e-13 <= tolerance <= 1e-2):
        raise InputError(f"The tolerance is {tolerance!r}; give a number from 1e-13 to 1e-2, for example 1e-10.")
    for label, value in (("rest_speed", rest_speed), ("max_step", max_step)):
        if value is not None and not (is_number(value) and value > 0):
            raise InputError(f"{label} is {value!r}; give a positive number, or leave it out.")
    if not (isinstance(samples, int) and samples >= 2) or not (isinstance(max_events, int) and max_events >= 1):
        raise InputError(f"samples={samples!r} and max_events={max_events!r}; give whole numbers, 2 and 1 at least.")
    if on_failure not in ("warn", "raise", "ignore"):
        raise InputError(f"on_failure is {on_failure!r}; choose 'warn', 'raise' or 'ignore'.")
    state = system.start(q, u, time)
    if system.components == 3:
        raise InputError("events.integrate knows contacts with 1 or 2 components; use integrate(...) for three.")
    run = _Run(system, state, float(until), tolerance, rest_speed, max_step)
    run.go(max_events)
    if run.trouble and on_failure == "raise":
        raise ConvergenceError(run.trouble)
    if run.trouble and on_failure == "warn":
        warnings.warn(run.trouble, ConvergenceWarning, stacklevel=2)
    return run.motion(samples)


class _Stop(Exception):
    """The motion cannot be continued; the message says why."""


class _Run:
    """The state of a run: time, q, u, the closed contacts and their modes.

    ``modes`` maps each closed contact to the sense of its sliding: +1 or -1, or 0 where it sticks; contacts without
    friction slide (+1, with a coefficient of zero).
    """

    def __init__(self, system, state, until, tolerance, rest_speed, max_step):
        self.system, self.until, self.tolerance, self.rest_speed = system, until, tolerance, rest_speed
        self.time, self.q, self.u = state.time, state.q, state.u
        self.begin, self.n, self.m = state.time, len(state.u), len(system.constraints)
        self.max_step = max_step or (until - state.time) / 40
        self.halted = []  # closed contacts without tangential velocity at the last event
        self.modes, self.reference = {}, np.zeros((self.m, system.components))
        self.events, self.intervals, self.accumulations = [], [], []
        self.impact_times = {index: [] for index in range(self.m)}
        self.evaluations, self.trouble, self.speed, self.cached = 0, "", 0.0, (None, None)

    # ---- quantities of one instant --------------------------------------------------------------------------------

    @property
    def gap_zero(self):
        return _GAP * max(1.0, float(np.abs(self.q).max()))

    @property
    def speed_zero(self):
        return _SPEED * (self.speed or 1.0)

    def frictional(self, index):
        return self.system.components > 1 and not self.system.constraints[index].law.frictionless

    def maps(self, contacts, t, q):
        """G (k, d, n) and w (k, d) of the contacts."""
        found = [self.system.contact(index, t, q, self.n) for index in contacts]
        d = self.system.components
        return np.array([g for g, _ in found]).reshape(-1, d, self.n), np.array([w for _, w in found]).reshape(-1, d)

    def curvature(self, index, t, q, u):
        """a (d,): dU/dt at constant u, the part of it that curvature and moving boundaries make."""
        system, constraint = self.system, self.system.constraints[index]
        size = max(1.0, float(np.abs(q).max())) / max(1.0, float(np.abs(u).max()))

        known = {}

        def velocity(s):
            if s not in known:
                g, w = system.contact(index, t + s, system.advance(q, u, s), self.n)
                known[s] = g @ u + w
            return known[s]

        parts = np.zeros(system.components)
        if constraint.gradient is None and constraint.contact_map is None and not self.frictional(index):
            parts[0] = _second(lambda s: constraint.gap(t + s, system.advance(q, u, s)), size)
        elif any((velocity(s) != velocity(0.0)).any() for s in (-0.01 * size, 0.01 * size)):  # else flat and at rest
            for i in range(system.components if self.frictional(index) else 1):
                parts[i] = derivative(lambda s, i=i: float(velocity(s)[i]), size)
        return parts

    def ratio(self, index, sliding, sense):
        """R_t / R_n of a sliding contact, and the two coefficients of its cone."""
        if not self.frictional(index):
            return 0.0, (0.0, 0.0)
        c = self.system.constraints[index].law.coefficients(sliding, SLIDING if sense else STICKING)
        return (0.0, -c[1], c[0])[sense], c  # the last one for the sense -1

    def accelerate(self, t, q, u):
        """The two-sided motion of the closed contacts: u', R (m, d), and what the events watch."""
        key = (t, q.tobytes(), u.tobytes())
        if self.cached[0] == key:
            return self.cached[1]
        self.evaluations += 1
        system, d = self.system, self.system.components
        _, inverse = system.inertias(t, q)
        u_dot = inverse @ system.forces(t, q, u)
        reactions, watched = np.zeros((self.m, d)), []
        if self.modes:
            contacts = list(self.modes)
            g, w = self.maps(contacts, t, q)
            velocity = g @ u + w
            a = np.array([self.curvature(index, t, q, u) for index in contacts])
            kept, acting, curved, place = [], [], [], []  # constrained rows, directions of the reactions
            for k, (index, sense) in enumerate(self.modes.items()):
                along, _ = self.ratio(index, velocity[k, 1:], sense)
                kept.append(g[k, 0])
                acting.append(g[k, 0] + along * g[k, 1] if along else g[k, 0])
                curved.append(a[k, 0])
                place.append((index, 0, along))
                if sense == 0:
                    kept.append(g[k, 1])
                    acting.append(g[k, 1])
                    curved.append(a[k, 1])
                    place.append((index, 1, 0.0))
            kept, acting = np.array(kept), np.array(acting)
            first = np.array([self.reference[index, i] for index, i, _ in place])
            lacking = -(kept @ u_dot + np.array(curved))
            matrix = kept @ inverse @ acting.T
            # Redundant contacts: the reactions nearest to those of the last decision, the memory of the history.
            r = first + np.linalg.lstsq(matrix, lacking - matrix @ first, rcond=1e-11)[0]
            for value, (index, i, along) in zip(r, place, strict=True):
                reactions[index, i] = value
                if along:
                    reactions[index, 1] = along * value
            u_dot = u_dot + inverse @ (acting.T @ r)
            watched = list(zip(contacts, velocity, g @ inverse @ g.transpose(0, 2, 1), strict=True))
        self.cached = key, (u_dot, reactions, watched)
        return self.cached[1]

    # ---- one interval ---------------------------------------------------------------------------------------------

    def go(self, max_events):
        stuck = 0
        try:
            self.decide()
            while self.time < self.until:
                before = self.time
                self.smooth()
                if self.time >= self.until:
                    break
                self.decide()
                stuck = stuck + 1 if self.time - before < 1e-13 * (1 + abs(self.time)) else 0
                if stuck > 50:
                    raise _Stop(f"Events follow each other without progress at t = {self.time:.9g}; the contacts there "
                                "are degenerate: use integrate(...), which needs no decision.")  # fmt: skip
                if len(self.events) >= max_events:
                    raise _Stop(f"max_events={max_events} reached at t = {self.time:.9g}; raise it, or rest_speed.")
        except _Stop as reason:
            self.trouble = str(reason)

    def smooth(self):
        """Integrate to the next event, or to the end."""
        begin, nq = self.time, len(self.q)
        y0 = np.concatenate([self.q, self.u])
        u_dot, reactions, _ = self.accelerate(begin, self.q, self.u)
        scale = float(np.abs(reactions).max(initial=0.0)) + float(np.abs(u_dot).max()) + 1e-9
        watches = self.watches(nq, scale)
        if any(watch(begin, y0) < 0 for watch in watches):
            raise _Stop(f"The contacts at t = {begin:.9g} could not be decided: they are degenerate there; use "
                        "integrate(...), which needs no decision.")  # fmt: skip

        def rates(t, y):
            q, u = y[:nq], y[nq:]
            u_dot = self.accelerate(t, q, u)[0]
            return np.concatenate([self.velocity(q, u), u_dot])

        done = solve_ivp(
            rates, (begin, self.until), y0, method="DOP853", rtol=max(self.tolerance, 3e-14),
            atol=1e-3 * self.tolerance, events=watches, dense_output=True,
            max_step=self.max_step,
        )  # fmt: skip
        if done.status < 0:
            raise _Stop(f"The integrator stopped at t = {done.t[-1]:.9g}: {done.message}")
        end, y = float(done.t[-1]), done.y[:, -1]
        missed = self.missed(done, watches)
        if missed is not None:
            end, y = missed, done.sol(missed)
        if end < self.until:
            end, y = self.refined(done.sol, begin, end, nq)
        status = np.zeros(self.m, dtype=np.int64)
        for index, sense in self.modes.items():
            status[index] = SLIDING if sense else STICKING
        self.intervals.append(Interval(begin, end, done.sol, status, self.frozen()))
        self.time, self.q, self.u = end, y[:nq].copy(), y[nq:].copy()
        self.speed = max(self.speed, float(np.abs(done.y[nq:]).max()))

    def refined(self, state, begin, end, nq):
        """The instant of an impact: where the gap vanishes, a little before the event (Newton)."""
        for index in range(self.m):
            y = state(end)
            gap = self.system.constraints[index].gap(end, y[:nq])
            if index in self.modes or gap > 0:
                continue
            g, w = self.maps([index], end, y[:nq])
            speed = float((g @ y[nq:] + w)[0, 0])
            length = float(np.linalg.norm(self.system.normal(index, end, y[:nq], self.n)) / np.linalg.norm(g[0, 0]))
            if speed < -self.speed_zero:
                end = float(max(begin, end - gap / (speed * length)))
        return end, state(end)

    def velocity(self, q, u):
        """dq/dt."""
        if self.system.kinematics is None:
            return u
        parts = range(len(q))
        return np.array([derivative(lambda s, i=i: float(self.system.advance(q, u, s)[i]), 1.0) for i in parts])

    def watches(self, nq, scale):
        """The functions of (t, y) whose passage through zero downwards is an event."""
        found, zero_r = [], _REACTION * scale
        gap_zero, speed_zero = self.gap_zero, self.speed_zero

        def add(function):
            function.terminal, function.direction = True, -1
            found.append(function)

        for index in range(self.m):
            if index not in self.modes:
                gap = self.system.constraints[index].gap
                add(lambda t, y, gap=gap: gap(t, y[:nq]) + gap_zero)
        for k, (index, sense) in enumerate(self.modes.items()):
            add(lambda t, y, i=index: self.accelerate(t, y[:nq], y[nq:])[1][i, 0] + zero_r)
            if not self.frictional(index):
                continue
            if sense == 0:
                add(lambda t, y, k=k, i=index: self.slack(t, y[:nq], y[nq:], k, i) + zero_r)
            else:
                add(lambda t, y, k=k, s=sense: s * self.accelerate(t, y[:nq], y[nq:])[2][k][1][1] + speed_zero)
                add(lambda t, y, k=k, i=index, s=sense: self.posedness(t, y[:nq], y[nq:], k, i, s))
        return found

    def slack(self, t, q, u, k, index):
        """How far inside its cone the reaction of a sticking contact is."""
        _, reactions, watched = self.accelerate(t, q, u)
        c = self.ratio(index, watched[k][1][1:], 0)[1]
        r_n, r_t = reactions[index]
        return min(c[0] * r_n - r_t, r_t + c[1] * r_n)

    def posedness(self, t, q, u, k, index, sense):
        """(W_nn + W_nt R_t / R_n) / W_nn: where it vanishes the sliding contact jams (Painleve)."""
        _, velocity, own = self.accelerate(t, q, u)[2][k]
        return (own[0, 0] + own[0, 1] * self.ratio(index, velocity[1:], sense)[0]) / own[0, 0] - 1e-6

    def missed(self, done, watches):
        """The first instant at which a watched quantity changes its sign inside a step of the integrator, or None."""
        shares = np.arange(1, _SAMPLES) / _SAMPLES
        for a, b in zip(done.t[:-1], done.t[1:], strict=True):
            last, before = a, [watch(a, done.sol(a)) for watch in watches]
            for t in a + shares * (b - a):
                y = done.sol(t)
                now = [watch(t, y) for watch in watches]
                hit = [w for w, old, new in zip(watches, before, now, strict=True) if old > 0 and new < 0]
                if hit:
                    return min(brentq(lambda s, w=w: w(s, done.sol(s)), last, t, xtol=1e-14) for w in hit)
                last, before = t, now
        return None

    def frozen(self):
        """The reactions of the present contacts as a function that later events do not change."""
        modes, reference = dict(self.modes), self.reference.copy()

        def reactions(t, q, u):
            kept = self.modes, self.reference, self.cached, self.evaluations
            self.modes, self.reference, self.cached = modes, reference, (None, None)
            values = self.accelerate(t, q, u)[1]
            self.modes, self.reference, self.cached, self.evaluations = kept
            return values

        return reactions

    # ---- at an event ----------------------------------------------------------------------------------------------

    def decide(self):
        """Impacts, then the right-acceleration: who touches, who leaves, who sticks."""
        self.speed = max(self.speed, float(np.abs(self.u).max()))
        touching = self.settle()
        for _ in range(1000):
            g, w = self.maps(touching, self.time, self.q)
            approach = (g @ self.u + w)[:, 0] if touching else np.zeros(0)
            if not (approach < -self.speed_zero).any():
                break
            self.impact(touching, g, w)
        else:
            raise _Stop(f"The impacts at t = {self.time:.9g} do not end: they only exchange velocities; lower the "
                        "restitution of one of the contacts.")  # fmt: skip
        resting = [index for index, v in zip(touching, approach, strict=True) if v <= self.speed_zero]
        previous, self.modes, self.halted = self.modes, {}, []
        self.reference = np.zeros((self.m, self.system.components))
        if resting:
            self.right_acceleration(resting, previous)
        self.hold()
        self.cached = (None, None)
        self.tell(previous)

    def settle(self):
        """The contacts that touch; what the integrator left of their gaps is removed (1986, eq. 10.9)."""
        touching = [i for i, gap in enumerate(self.system.gaps(self.time, self.q)) if self.touches(i, gap)]
        for _ in range(3):
            gaps = self.system.gaps(self.time, self.q)[touching]
            if not touching or np.abs(gaps).max() < 1e-15:
                break
            _, inverse = self.system.inertias(self.time, self.q)
            rows = np.array([self.system.normal(i, self.time, self.q, self.n) for i in touching])
            shift = np.linalg.lstsq(rows @ inverse @ rows.T, -gaps, rcond=1e-11)[0]
            self.q = self.system.advance(self.q, inverse @ (rows.T @ shift), 1.0)
        return touching

    def touches(self, index, gap):
        """Closed until now, or with a gap that is zero within what the integration can tell."""
        return index in self.modes or gap <= 10 * self.gap_zero

    def impact(self, touching, g, w):
        """Moreau's law for all touching contacts together (2004, section 7.5)."""
        inertia, inverse = self.system.inertias(self.time, self.q)
        before, laws = g @ self.u + w, [self.system.constraints[i].law for i in touching]
        weights = np.array([(law.restitution, law.tangential_restitution) for law in laws])
        # A flight must rise above what counts as a gap of zero.
        pressing = np.abs(g[:, 0] @ inverse @ self.system.forces(self.time, self.q, self.u)).max()
        lowest = float(np.sqrt(20 * pressing * self.gap_zero))
        threshold = max(self.rest_speed or 100 * self.speed_zero, 2 * self.speed_zero, lowest)
        bouncing = [i for i, v, e in zip(touching, before[:, 0], weights[:, 0], strict=True)
                    if e > 0 and v < -self.speed_zero]  # fmt: skip
        resting = bool(bouncing) and -before[:, 0].min() <= threshold
        if resting:
            weights[:] = 0.0
        target = before * (1 + weights[:, [0] + [1] * (before.shape[1] - 1)])
        if any(self.frictional(i) for i in touching):
            cones = [law.coefficients(v[1:], SEPARATING) for law, v in zip(laws, before, strict=True)]
            rows = g.reshape(-1, self.n)
            problem = ContactProblem(_regular(rows @ inverse @ rows.T), target, np.array(cones), np.zeros(len(cones)))
            impulses, report = solve(problem, tolerance=1e-13)
            if report.residual > 1e-10:
                raise _Stop(f"The impact at t = {self.time:.9g} was not solved: {report.message}")
        else:
            impulses = np.zeros_like(before)
            impulses[:, 0] = project(inertia, self.u, g[:, 0], target[:, 0] - g[:, 0] @ self.u)
        u = self.u + inverse @ np.einsum("kdn,kd->n", g, impulses)
        energy = 0.5 * (u @ inertia @ u - self.u @ inertia @ self.u)
        hit = tuple(i for i, p in zip(touching, impulses, strict=True) if p[0] > 0)
        everywhere = np.zeros((self.m, self.system.components))
        everywhere[touching] = impulses
        self.events.append(Event(self.time, "rest" if resting else "impact", hit, everywhere, float(energy)))
        for index in hit:
            self.impact_times[index].append(self.time)
        if resting:
            self.accumulations += [(self.time, i, _limit(self.impact_times[i])) for i in bouncing]
        self.u, self.cached = u, (None, None)

    def right_acceleration(self, resting, previous):
        """Gauss's principle (2004, section 5.3): sets ``modes`` and the ``reference`` reactions."""
        t, q, u, system = self.time, self.q, self.u, self.system
        inertia, inverse = system.inertias(t, q)
        g, w = self.maps(resting, t, q)
        a = np.array([self.curvature(index, t, q, u) for index in resting])
        free, velocity = inverse @ system.forces(t, q, u), g @ u + w
        senses = [self.sense(i, v, previous) for i, v in zip(resting, velocity, strict=True)]
        if any(self.frictional(i) for i in resting):
            reactions = self.gauss_seidel(resting, g, g @ free + a, velocity, senses, inverse)
        else:
            reactions = np.zeros_like(a)
            reactions[:, 0] = project(inertia, free, g[:, 0], a[:, 0])
        acceleration = g @ (free + inverse @ np.einsum("kdn,kd->n", g, reactions)) + a
        zero = _ACCELERATION * (float(np.abs(g @ free + a).max()) + float(np.abs(acceleration).max()) + 1e-12)
        for k, index in enumerate(resting):
            if acceleration[k, 0] > zero:
                continue
            sense = senses[k]
            if sense == 0 and abs(acceleration[k, 1]) > zero:
                sense = int(np.sign(acceleration[k, 1]))
            self.modes[index], self.reference[index] = sense, reactions[k]
            if senses[k] == 0:
                self.halted.append(index)

    def sense(self, index, velocity, previous):
        """Sense of sliding before the decision: 0 where the contact has no tangential velocity."""
        if not self.frictional(index):
            return 1
        near = 3 * self.speed_zero if previous.get(index) else 2 * self.speed_zero
        return 0 if abs(velocity[1]) <= near else int(np.sign(velocity[1]))

    def gauss_seidel(self, contacts, g, b, velocity, senses, inverse):
        """Reactions (k, 2) from the free acceleration b: Coulomb's law for dU/dt where U = 0, else R_t given."""
        rows = g.reshape(-1, self.n)
        w = (rows @ inverse @ rows.T).reshape(len(contacts), 2, len(contacts), 2)
        own = [np.ascontiguousarray(_regular(w[k, :, k, :])) for k in range(len(contacts))]
        given = [self.ratio(i, v[1:], s) for i, v, s in zip(contacts, velocity, senses, strict=True)]
        r = np.zeros((len(contacts), 2))
        for k, (along, _) in enumerate(given):
            if senses[k] and own[k][0, 0] + own[k][0, 1] * along <= 2e-6 * own[k][0, 0]:
                raise _Stop(
                    f"Contact {contacts[k]} slides at t = {self.time:.9g} where no right-acceleration is determined "
                    "(Painleve); use integrate(...), which goes through the tangential shock."
                )
        for _ in range(20_000):
            before = r.copy()
            for k, (along, cone) in enumerate(given):
                local = b[k] + np.einsum("ijk,jk->i", w[k], r) - w[k, :, k, :] @ r[k]
                if senses[k]:
                    r[k, 0] = max(0.0, -local[0] / (own[k][0, 0] + own[k][0, 1] * along))
                    r[k, 1] = along * r[k, 0]
                else:
                    solve_contact(own[k], local, np.array(cone), r[k])
            if np.abs(r - before).max() <= 1e-14 * np.abs(r).max():
                return r
        raise _Stop(
            f"The reactions at t = {self.time:.9g} were not found; with several contacts that slide there may be no "
            "right-acceleration: use integrate(...)."
        )

    def hold(self):
        """Remove what rounding and the thresholds left of U on the closed contacts."""
        contacts = list(self.modes)
        if not contacts:
            return
        _, inverse = self.system.inertias(self.time, self.q)
        g, w = self.maps(contacts, self.time, self.q)
        rows = [(g[k, i], w[k, i]) for k, j in enumerate(contacts) for i in range(2 if j in self.halted else 1)]
        rows, drift = np.array([r for r, _ in rows]), np.array([v for _, v in rows])
        lacking = -(rows @ self.u + drift)
        self.u = self.u + inverse @ (rows.T @ np.linalg.lstsq(rows @ inverse @ rows.T, lacking, rcond=1e-11)[0])

    def tell(self, previous):
        """Record the changes of status; those of an impact come after it."""
        kinds = {"release": [], "touch": [], "stick": [], "slide": []}
        for index in sorted(set(previous) | set(self.modes)):
            if index not in self.modes:
                kinds["release"].append(index)
            elif index not in previous:
                kinds["touch"].append(index)
            elif self.modes[index] != previous[index]:
                kinds["slide" if self.modes[index] else "stick"].append(index)
        if self.time > self.begin:
            none = np.zeros((self.m, self.system.components))
            self.events += [Event(self.time, kind, tuple(c), none, 0.0) for kind, c in kinds.items() if c]

    def motion(self, samples):
        end = self.intervals[-1].end if self.intervals else self.begin
        times = np.linspace(self.begin, end, samples)
        nq = len(self.q)
        begins = [interval.begin for interval in self.intervals]
        rows = np.empty((samples, nq + self.n))
        for k, t in enumerate(times):
            if not self.intervals:
                rows[k] = np.concatenate([self.q, self.u])
                continue
            interval = self.intervals[max(0, int(np.searchsorted(begins, t, side="right")) - 1)]
            rows[k] = interval.state(min(t, interval.end))
        impacts = sum(e.kind in ("impact", "rest") for e in self.events)
        message = self.trouble or (
            f"Integrated to t = {end:g}: {len(self.events)} events, {impacts} of them impacts, "
            f"{self.evaluations} accelerations."
        )
        if self.accumulations:
            ended = ", ".join(f"t = {limit:.6g} (contact {i})" for _, i, limit in self.accumulations[:3])
            more = f" and {len(self.accumulations) - 3} more" if len(self.accumulations) > 3 else ""
            message += (
                f" Impacts accumulate at {ended}{more}: below rest_speed they were taken as one inelastic impact."
            )
        return EventMotion(
            times, rows[:, :nq], rows[:, nq:], self.events, self.intervals, self.evaluations, self.accumulations,
            not self.trouble, message,
        )  # fmt: skip


def _second(function, size):
    """f''(0) by sixth-order central differences; the spacing is shortened until fourth order agrees with it."""
    best, best_error, middle = 0.0, np.inf, function(0.0)
    h = float(np.finfo(float).eps) ** (1 / 8) * size
    for _ in range(8):
        sums = [function(k * h) + function(-k * h) for k in (1, 2, 3)]
        value = (2 * sums[2] - 27 * sums[1] + 270 * sums[0] - 490 * middle) / (180 * h * h)
        rounding = 4e-16 * max(map(abs, sums)) / h**2
        error = abs(value - (16 * sums[0] - sums[1] - 30 * middle) / (12 * h * h)) + rounding
        if error < best_error:
            best, best_error = value, error
        if error <= 1e-8 * abs(value) + 4 * rounding:
            break
        h /= 3
    return best


def _limit(times):
    """Limit of the times of impacts that shorten geometrically, by Aitken's extrapolation."""
    if len(times) < 3:
        return times[-1]
    first, second = times[-2] - times[-3], times[-1] - times[-2]
    return times[-1] + second * second / (first - second) if 0 < second < first else times[-1]


def _regular(w):
    """W with a trace on the diagonal entries that vanish: rows of zeros of contacts without friction among others."""
    w = np.array(w)
    empty = np.diag(w) == 0
    w[empty, empty] = max(w.diagonal().max(), 1.0)
    return w
