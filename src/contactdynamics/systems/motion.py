"""The driver of finite-freedom systems, `integrate`, and its result, `Motion`."""

import inspect
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..display import pictured
from ..errors import (
    ConvergenceError,
    ConvergenceWarning,
    EnergyWarning,
    InputError,
    check_function,
    check_policy,
    count_of_steps,
    energy_message,
    explained,
    is_number,
    is_whole,
)
from ..state import State, Step
from .schemes import SCHEMES
from .system import System


class Ledger(NamedTuple):
    """Energy, step by step (N steps, m constraints); all in J.

    kinetic[i+1] - kinetic[i] = force_work + contact_work + boundary_work + inertia_work, the identity (48)-(50) of
    the 2004 paper, with `closure` its error (rounding).
    """

    kinetic: np.ndarray  # (N+1,)
    potential: np.ndarray | None  # (N+1,), where the user gave a potential
    force_work: np.ndarray  # (N,) h F . (u_i + u_f) / 2
    contact_work: np.ndarray  # (N, m, 2) normal and tangential part of (U_i + U_f) . P / 2
    boundary_work: np.ndarray  # (N, m) -w . P, by driven boundaries
    inertia_work: np.ndarray  # (N,) change of kinetic energy by the change of A(t, q) between steps
    closure: np.ndarray  # (N,)
    created: np.ndarray  # (N,) by the contact laws, in the steps in which they gave more than they took


@dataclass(frozen=True, repr=False)
class Motion:
    """The computed motion of a system: N steps, n freedoms, m constraints, d components per contact."""

    times: np.ndarray  # (N+1,) s
    q: np.ndarray  # (N+1, n)
    u: np.ndarray  # (N+1, n)
    gaps: np.ndarray  # (N, m) at the points where activity is decided
    impulses: np.ndarray  # (N, m, d) N s; forces are impulses / step
    status: np.ndarray  # (N, m) see `state`
    iterations: np.ndarray  # (N,)
    residuals: np.ndarray  # (N,)
    ledger: Ledger
    step: float
    state: State  # the last one: `integrate(..., start=motion.state)` goes on from here

    @property
    def active(self) -> np.ndarray:
        """(N, m) whether the constraint was in the active set J of the step."""
        return self.status > 0

    def __repr__(self):
        n, m = self.q.shape[1], self.gaps.shape[1]
        return (
            f"Motion of {n} freedom{'s' * (n != 1)} and {m} constraint{'s' * (m != 1)}: {len(self.times) - 1} steps of "
            f"{self.step:g} s, t = {self.times[0]:g} to {self.times[-1]:g}"
        )

    _repr_html_ = pictured

    def plot(self, axes=None, *, labels=None):
        """Draw positions, gaps and the energy ledger over time; returns the figure."""
        from ..plotting import plot_motion

        return plot_motion(self, axes, labels=labels)


def _resolve(scheme):
    if callable(scheme):
        return scheme
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise InputError(f"Unknown scheme {scheme!r}; choose one of {', '.join(SCHEMES)}, or give a function.")
    return SCHEMES[scheme]


def _check_options(scheme, options: dict) -> None:
    """Refuse options that the scheme does not have."""
    check_function("integrate got scheme", scheme, "system", "state", "h")
    try:
        known = list(inspect.signature(scheme).parameters)[3:]  # after system, state, h
    except ValueError:
        raise InputError(f"integrate got the scheme {scheme!r}; give a function of (system, state, h).") from None
    for name, value in options.items():
        number = is_whole(value, 1) if name == "max_iterations" else is_number(value)
        if name in ("tolerance", "anticipation", "max_iterations") and not number:
            raise InputError(f"integrate got {name}={value!r}; give a number.")
    for name in options:
        if name not in known and "options" not in known:
            raise InputError(
                f"The scheme {scheme.__name__} has no option {name!r}; it has {', '.join(known) or 'none'}."
            )


@explained
def integrate(
    system: System,
    q=None,
    u=None,
    *,
    step: float,
    until: float,
    time: float = 0.0,
    scheme="midpoint",
    start: State | None = None,
    on_failure: str = "warn",
    **options,
) -> Motion:
    """Run a system from (q, u) at ``time`` to ``until``, in the whole number of steps nearest to it.

    Order of events in a step: half a drift, forces, gaps and contact maps at the midpoint, new velocity and impulses
    together, half a drift. ``options`` go to the scheme (``anticipation=0.5``, ``tolerance=1e-10``). ``start`` goes on
    from a state of an earlier run, contact memory included. ``on_failure`` is "warn", "raise" or "ignore" when a
    step's contacts are not solved to the tolerance. Energy created by the contact laws is told once, by an
    `EnergyWarning`. To drive by hand, call ``scheme(system, state, step)`` on
    ``system.start(q, u)``.
    """
    advance = _resolve(scheme)
    if not isinstance(system, System):
        raise InputError(f"integrate got {system!r}; give a System.")
    check_policy(on_failure)
    if not (is_number(step) and step > 0):
        raise InputError(f"The step is {step!r}; give a positive time, for example step=1e-3.")
    if start is None and (q is None or u is None):
        raise InputError("integrate needs initial values: give q=... and u=..., or start=motion.state.")
    if not (is_number(time) and is_number(until)):
        raise InputError(f"The motion goes from time={time!r} until={until!r}; give two finite times.")
    _check_options(advance, options)
    options |= {name: float(options[name]) for name in ("tolerance", "anticipation") if name in options}  # one kernel
    state = system.start(q, u, time) if start is None else system.resume(start)
    count = count_of_steps(state.time, until, step)
    if count < 1:
        raise InputError(f"until={until} is not a step after the start t = {state.time}; give a later time.")
    record = _Record(system, state, count)
    begin, failures = state.time, 0
    for i in range(count):
        done = advance(system, state, step, **options)
        state = State(begin + (i + 1) * step, *done.state[1:])  # no sum of rounded steps
        record.add(i, state, done)
        if not done.report.converged:
            failures += 1
            if on_failure == "raise":
                raise ConvergenceError(f"At t = {state.time:.6g}: {done.report.message}")
            last = done.report
    if failures and on_failure == "warn":
        warnings.warn(f"{failures} of {count} steps: {last.message}", ConvergenceWarning, stacklevel=3)
    motion = record.motion(step, state)
    created = motion.ledger.created
    if created.any():
        i = int(np.argmax(created))
        share = created[i] / max(motion.ledger.kinetic[i], record.free[i])
        warnings.warn(
            energy_message(created.sum(), created[i], share, i + 1, motion.times[i + 1]), EnergyWarning, stacklevel=3
        )
    return motion


class _Record:
    """Arrays of a run in the making."""

    def __init__(self, system: System, state: State, count: int):
        m, d = state.impulses.shape
        self.system = system
        self.times = np.empty(count + 1)
        self.q, self.u = np.empty((count + 1, len(state.q))), np.empty((count + 1, len(state.u)))
        self.gaps, self.status = np.empty((count, m)), np.empty((count, m), dtype=np.int8)
        self.impulses = np.empty((count, m, d))
        self.iterations, self.residuals = np.empty(count, dtype=np.int32), np.empty(count)
        self.before, self.after, self.force_work = np.empty(count), np.empty(count), np.empty(count)
        self.free, self.solved = np.empty(count), np.empty(count, dtype=bool)
        self.contact_work, self.boundary_work = np.empty((count, m, 2)), np.empty((count, m))
        self.times[0], self.q[0], self.u[0] = state.time, state.q, state.u

    def add(self, i: int, state: State, done: Step) -> None:
        self.times[i + 1], self.q[i + 1], self.u[i + 1] = state.time, state.q, state.u
        self.gaps[i], self.status[i], self.impulses[i] = done.gaps, state.status, state.impulses
        self.iterations[i], self.residuals[i] = done.report.iterations, done.report.residual
        self.before[i], self.after[i], self.force_work[i] = done.kinetic_before, done.kinetic_after, done.force_work
        self.contact_work[i], self.boundary_work[i] = done.contact_work, done.boundary_work
        self.free[i], self.solved[i] = done.kinetic_free, done.report.converged

    def created(self) -> np.ndarray:
        """Energy (N,) that the contact laws created in each step.

        Forces and contacts act together in a step. The work of the contacts is counted from u_i, as in the ledger,
        and from the free velocity u_r; only what is positive in both counts is due to the laws: with restitution 0 the
        second is never positive, ELAST makes the first one vanish.
        """
        first = self.contact_work.sum(axis=(1, 2))
        second = self.after - self.free - self.boundary_work.sum(axis=1)
        gain = np.minimum(first, second)
        turned = np.maximum(self.before, self.after) + np.abs(self.boundary_work).sum(axis=1)
        noise = (1e-9 + 10 * self.residuals) * turned  # what a residual may be worth; unsolved steps have their warning
        return np.where(self.solved & (gain > noise), gain, 0.0)

    def motion(self, step: float, state: State) -> Motion:
        kinetic = np.concatenate([self.before[:1], self.after])
        inertia_work = self.before - kinetic[:-1]
        works = self.force_work + self.contact_work.sum(axis=(1, 2)) + self.boundary_work.sum(axis=1)
        potential = None
        if self.system.potential is not None:
            potential = np.array([self.system.potential(t, q) for t, q in zip(self.times, self.q, strict=True)])
        ledger = Ledger(
            kinetic, potential, self.force_work, self.contact_work, self.boundary_work, inertia_work,
            self.after - self.before - works, self.created(),
        )  # fmt: skip
        return Motion(
            self.times, self.q, self.u, self.gaps, self.impulses, self.status, self.iterations, self.residuals,
            ledger, step, state,
        )  # fmt: skip
