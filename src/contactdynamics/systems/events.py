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

from ..errors import ConvergenceError, ConvergenceWarning, InputError, check_policy, explained, is_number
from ..problem.dense import project
from ..problem.form import ContactProblem
from ..problem.solving import solve
from ..state import SEPARATING, SLIDING, STICKING
from .accelerations import REACTION, Instant, Undecided, regular
from .system import System, derivative

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


@explained
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
    check_policy(on_failure)
    if not isinstance(system, System):
        raise InputError(f"events.integrate got {system!r}; give a System.")
    state = system.start(q, u, time)
    if system.components == 3:
        raise InputError("events.integrate knows contacts with 1 or 2 components; use integrate(...) for three.")
    run = _Run(system, state, float(until), tolerance, rest_speed, max_step)
    run.go(max_events)
    if run.trouble and on_failure == "raise":
        raise ConvergenceError(run.trouble)
    if run.trouble and on_failure == "warn":
        warnings.warn(run.trouble, ConvergenceWarning, stacklevel=3)
    return run.motion(samples)


class _Run(Instant):
    """A run in the making, at the instant it has reached."""

    def __init__(self, system, state, until, tolerance, rest_speed, max_step):
        super().__init__(system, state)
        self.begin, self.until, self.tolerance, self.rest_speed = state.time, until, tolerance, rest_speed
        self.max_step, self.trouble = max_step or (until - state.time) / 40, ""
        self.events, self.intervals, self.accumulations = [], [], []
        self.impact_times = {index: [] for index in range(self.m)}

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
                    raise Undecided(
                        f"Events follow each other without progress at t = {self.time:.9g}: the contacts there are "
                        "degenerate; use integrate(...), which needs no decision."
                    )
                if len(self.events) >= max_events:
                    raise Undecided(f"max_events={max_events} reached at t = {self.time:.9g}; raise it, or rest_speed.")
        except Undecided as reason:
            self.trouble = str(reason)

    def smooth(self):
        """Integrate to the next event, or to the end."""
        begin, nq = self.time, len(self.q)
        y0 = np.concatenate([self.q, self.u])
        u_dot, reactions, _ = self.accelerate(begin, self.q, self.u)
        scale = float(np.abs(reactions).max(initial=0.0)) + float(np.abs(u_dot).max()) + 1e-9
        watches = self.watches(nq, scale)
        if any(watch(begin, y0) < 0 for watch in watches):
            raise Undecided(f"The contacts at t = {begin:.9g} could not be decided: they are degenerate there; use "
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
            raise Undecided(f"The integrator stopped at t = {done.t[-1]:.9g}: {done.message}")
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
        found, zero_r = [], REACTION * scale
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
            raise Undecided(f"The impacts at t = {self.time:.9g} do not end: they only exchange velocities; lower the "
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
            problem = ContactProblem(regular(rows @ inverse @ rows.T), target, np.array(cones), np.zeros(len(cones)))
            impulses, report = solve(problem, solver="nlgs", tolerance=1e-13)
            if report.residual > 1e-10:
                raise Undecided(f"The impact at t = {self.time:.9g} was not solved: {report.message}")
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
            self.accumulations += [(self.time, i, _limit(self.impact_times[i]) or self.time) for i in bouncing]
        self.u, self.cached = u, (None, None)

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
        for index in kinds["touch"]:  # bounces that ended below what counts as a gap of zero
            limit = _limit(self.impact_times[index])
            told = any(contact == index and time == self.time for time, contact, _ in self.accumulations)
            if limit is not None and not told and self.system.constraints[index].law.restitution:
                self.accumulations.append((self.time, index, limit))
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


def _limit(times):
    """Limit of the times of impacts that follow each other ever faster, by Aitken's extrapolation; else None.

    From impacts a few before the last: the last flights are hardly longer than the errors of the instants.
    """
    if len(times) < 3:
        return None
    a, b, c = times[-3:] if len(times) < 8 else times[-8:-5]
    return c + (c - b) ** 2 / (2 * b - a - c) if 0 < c - b < b - a else None
