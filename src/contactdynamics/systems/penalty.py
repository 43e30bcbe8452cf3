"""The penalty way (2004, section 1.3; "Molecular Dynamics", Cundall): contacts as springs and dashpots.

Where the gap g is negative the contact pushes with

    R_n = max(0, -k g - c U_n),    R_t = -k_t s, |R_t| <= gamma R_n,

s the tangential displacement since the contact closed, held back at the limit where it slides. The rules:

- **stiffness** from the overlap that is tolerated: an impact with speed v overlaps by v sqrt(m / k), m = 1 / W_nn the
  mass that the contact feels at the start, and a load F by F / k; k is the larger of m v^2 / overlap^2 and F / overlap;
- **dashpot** from the restitution: c = 2 z sqrt(m k), z the damping for which a free mass leaves with rho times its
  speed, the contact ending when its force does (Schwager and Poeschel 2007); rho below 0.1 is taken as 0.1, because
  zero would need an infinite dashpot;
- **time step** a fraction of the shortest contact, T / steps_per_contact with T = pi sqrt(m / k), and not above a
  quarter of the dashpot's time m / c.

Integrated by the leapfrog of the other schemes, with the velocity in R and F corrected to the mean of the step (order
2). As the overlap goes to zero the motion between impacts becomes that of rigid bodies; an impact with friction, or of
several contacts, keeps what the springs make of it, which need not be Moreau's law.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from ..errors import InputError, count_of_steps, explained, is_number
from .system import System

_LEAST_RESTITUTION = 0.1


@dataclass(frozen=True)
class PenaltyMotion:
    """The motion of a system whose contacts are springs; N steps, of which the ``recorded`` ones are kept."""

    times: np.ndarray  # (N,) s
    q: np.ndarray  # (N, n)
    u: np.ndarray  # (N, n)
    step: float  # s
    steps: int
    stiffness: np.ndarray  # (m,) k, N/m
    damping: np.ndarray  # (m,) c, N s/m
    overlap: float  # the largest that occurred, m
    evaluations: int  # how often the forces were computed


@explained
def damping_ratio(restitution: float) -> float:
    """z = c / (2 sqrt(m k)) for which a free mass leaves a spring and dashpot with ``restitution`` times its speed.

    With w = sqrt(k/m) = 1 and x'' + 2 z x' + x = 0, x(0) = 0, x'(0) = 1, the contact ends where its force x'' vanishes.

    >>> round(damping_ratio(1.0), 12), round(damping_ratio(math.exp(-2)), 9)
    (0.0, 1.0)
    """
    if not (is_number(restitution) and 0 <= restitution <= 1):
        raise InputError(f"damping_ratio got restitution={restitution!r}; give a number between 0 and 1.")
    rho = min(1.0, max(restitution, _LEAST_RESTITUTION))
    return 0.0 if rho == 1.0 else brentq(lambda z: _returned(z) - rho, 1e-12, 10.0, xtol=1e-14)


def _returned(z):
    """Speed of the mass when the force of the contact vanishes, relative to that of its arrival."""
    if z < 1:
        root = math.sqrt(1 - z * z)
        return math.exp(-z / root * math.atan2(2 * z * root, 2 * z * z - 1))
    if z == 1:
        return math.exp(-2)
    root = math.sqrt(z * z - 1)
    return math.exp(-z / root * 2 * math.log(z + root))


@explained
def integrate(
    system: System,
    q,
    u,
    *,
    until: float,
    overlap: float,
    speed: float,
    time: float = 0.0,
    steps_per_contact: int = 50,
    recorded: int = 201,
) -> PenaltyMotion:
    """Run a system from (q, u) at ``time`` to ``until`` with contacts that may overlap by about ``overlap`` (m).

    Takes the `System` that `contactdynamics.integrate` takes; friction with contacts of two components. ``speed`` is
    the largest speed of approach expected, from which the stiffness follows by the rules at the top of this file.

    >>> import contactdynamics as cd
    >>> floor = cd.Constraint(gap=lambda t, q: q[0], law=cd.Law(restitution=0.5))
    >>> ball = cd.System(inertia=[1.0], force=lambda t, q, u: (-10.0,), constraints=[floor])
    >>> motion = cd.penalty.integrate(ball, (0.2,), (0.0,), until=0.3, overlap=1e-4, speed=2.0)
    >>> bool(abs(motion.u[-1, 0]) < 0.01 and motion.overlap < 1e-4)  # 0.1 s after leaving with 1 m/s
    True
    """
    for label, value in (("overlap", overlap), ("speed", speed)):
        if not (is_number(value) and 1e-30 <= value <= 1e30):
            raise InputError(f"{label} is {value!r}; give a positive number, 1e-30 to 1e30.")
    for label, value, least in (("steps_per_contact", steps_per_contact, 8), ("recorded", recorded, 2)):
        if not (isinstance(value, int) and value >= least):
            raise InputError(f"{label} is {value!r}; give a whole number, {least} at least.")
    if not (is_number(time) and is_number(until) and until > time):
        raise InputError(f"The motion goes from time={time!r} until={until!r}; give two times, the second one later.")
    if not isinstance(system, System):
        raise InputError(f"penalty.integrate got {system!r}; give a System.")
    state = system.start(q, u, time)
    if system.components == 3:
        raise InputError("penalty.integrate knows contacts with 1 or 2 components; use integrate(...) for three.")
    springs = _Springs(system, state, overlap, speed)
    step = min(springs.shortest / steps_per_contact, springs.decay / 4)
    count = max(1, count_of_steps(time, until + 0.5 * step, step))
    return _march(system, springs, state, until, count, recorded)


class _Springs:
    """Stiffness, dashpot and tangential displacement of every contact."""

    def __init__(self, system, state, overlap, speed):
        self.system, self.n, m = system, len(state.u), len(system.constraints)
        self.k, self.c = np.zeros(m), np.zeros(m)
        self.slid = np.zeros(m)  # s, tangential displacement of the spring, m
        self.deepest, self.evaluations = 0.0, 0
        self.shortest, self.decay = math.inf, math.inf  # half a period of the springs, time of the dashpots; s
        _, inverse = system.inertias(state.time, state.q)
        force = system.forces(state.time, state.q, state.u)
        for index, constraint in enumerate(system.constraints):
            g, _ = system.contact(index, state.time, state.q, self.n)
            mass = 1 / (g[0] @ inverse @ g[0])
            load = mass * abs(g[0] @ inverse @ force)
            k = self.k[index] = max(mass * (speed / overlap) ** 2, load / overlap)
            self.c[index] = 2 * damping_ratio(constraint.law.restitution) * math.sqrt(mass * k)
            self.shortest = min(self.shortest, math.pi * math.sqrt(mass / k))
            self.decay = min(self.decay, mass / self.c[index] if self.c[index] else math.inf)
        if not m:
            raise InputError("The system has no constraints, so nothing to penalise; use integrate(...).")

    def forces(self, t, q, u, h):
        """F and the contact forces together (n,); remembers the new tangential displacements."""
        self.evaluations += 1
        total, self.moved = self.system.forces(t, q, u), self.slid.copy()
        for index, constraint in enumerate(self.system.constraints):
            gap = constraint.gap(t, q)
            if gap >= 0:
                self.moved[index] = 0.0
                continue
            self.deepest = max(self.deepest, -gap)
            g, w = self.system.contact(index, t, q, self.n)
            velocity = g @ u + w
            normal = max(0.0, -self.k[index] * gap - self.c[index] * velocity[0])
            total = total + normal * g[0]
            if len(g) > 1 and not constraint.law.frictionless:
                total = total + self.tangential(index, normal, velocity, h) * g[1]
        return total

    def tangential(self, index, normal, velocity, h):
        """Spring and dashpot like the normal ones, within the cone; where it slides, the spring yields."""
        c = self.system.constraints[index].law.coefficients(velocity[1:], 0)
        k, dashpot = self.k[index], self.c[index]
        self.moved[index] = self.slid[index] + h * velocity[1]
        trial = -k * (self.slid[index] + 0.5 * h * velocity[1]) - dashpot * velocity[1]
        held = min(max(trial, -c[1] * normal), c[0] * normal)
        if held != trial:
            self.moved[index] = -held / k
        return held


def _march(system, springs, state, until, count, recorded):
    """Leapfrog: half a drift, three approximations of the velocity in the forces, half a drift."""
    t, q, u = state.time, state.q, state.u
    step = (until - t) / count
    kept = set(np.linspace(0, count, min(recorded, count + 1)).round().astype(int).tolist())
    times, places, speeds = [t], [q], [u]
    for i in range(count):
        middle, q_m = t + (i + 0.5) * step, system.advance(q, u, step / 2)
        _, inverse = system.inertias(middle, q_m)
        mean = u
        for _ in range(3):
            u_f = u + step * (inverse @ springs.forces(middle, q_m, mean, step))
            mean = (u + u_f) / 2
        springs.slid, u = springs.moved, u_f
        q = system.advance(q_m, u, step / 2)
        if not math.isfinite(u @ u):
            raise InputError(f"The velocity became {u.tolist()} at t = {middle:.6g}; raise steps_per_contact.")
        if i + 1 in kept:
            times.append(state.time + (i + 1) * step)
            places.append(q)
            speeds.append(u)
    return PenaltyMotion(
        np.array(times), np.array(places), np.array(speeds), step, count, springs.k, springs.c, springs.deepest,
        springs.evaluations,
    )  # fmt: skip
