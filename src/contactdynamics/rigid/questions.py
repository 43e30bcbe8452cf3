"""Questions about a scene, and its repair before the start: each builds a step of its own, the motion stays as it is.

A question works on copies: velocities, contacts (`ContactSet.trial`) and, where bodies must move, positions.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError
from ..problem.form import ContactProblem
from ..state import FREE, Contacts, SolveReport
from . import assembly, motion
from .cell import CellMotion
from .contact_set import ContactSet
from .loading import Loading
from .roster import Roster
from .solvers import error_of
from .step import Step
from .step_solver import Settings

OVERLAP_LIMIT = 0.05  # of the smaller radius, at the start
LOW, HIGH = 1e-3, 200.0  # m: blocks that are lower or higher in all are told
LISTED = 12  # pairs named in the sentence about them


class Equilibrium(NamedTuple):
    """The answer of `Simulation.is_equilibrium`; true or false by itself."""

    found: bool
    largest_velocity: float  # left after one step from rest, over what the largest load alone would give
    contacts: Contacts  # whose impulses / h balance the loads, where found
    report: SolveReport

    __repr__ = short

    def __bool__(self):
        return self.found


class State(NamedTuple):
    """What a question is about."""

    roster: Roster
    loading: Loading
    contact_set: ContactSet
    time: float  # s
    h: float  # s
    anticipate: bool
    cell: CellMotion | None = None

    @property
    def moving(self) -> CellMotion | None:
        """The cell, where it moves."""
        return self.cell if self.cell is not None and self.cell.moves else None


def widened(state: State, rows: np.ndarray) -> np.ndarray:
    """The rows of the bodies with those of a moving cell."""
    return rows if state.moving is None else np.concatenate([rows, state.moving.rows()])


def from_rest(state: State, slack: float) -> tuple[np.ndarray, Step, float]:
    """A step that starts with all bodies at rest, at the present positions: velocities, step, velocity by the loads.

    Bodies nearer than ``slack`` times the smallest radius count as touching.
    """
    bodies, rows, h = state.roster.model.bodies, state.roster.rows.copy(), state.h
    rows[:, :6] = 0.0
    before = rows.copy()
    loaded = state.loading.relax(bodies, rows, state.time, h)
    if state.moving is not None:
        cell = state.moving.relaxed(h) - state.moving.rows()
        still = state.moving.rows()
        still[:, :6] = cell[:, 6:] = 0.0
        before, rows = np.concatenate([before, still]), np.concatenate([rows, still + cell])
    push = h * np.sqrt((state.loading.force**2).sum(axis=1) / bodies.mass**2).max() if loaded else 0.0
    near = slack * state.contact_set.near.smallest
    return rows, Step(state.time, h, near, False, False, before, rows.copy()), push


def next_step(state: State, slack: float):
    """The next step as the simulation would make it, in copies of the bodies: model, velocities, step."""
    model, rows, h = state.roster.model, state.roster.rows.copy(), state.h
    bodies = model.bodies._replace(position=model.bodies.position.copy(), orientation=model.bodies.orientation.copy())
    state.loading.drive(rows, state.time + h / 2)
    before = rows.copy()
    motion.drift(bodies.position, bodies.orientation, rows, h / 2)
    state.loading.relax(bodies, rows, state.time + h / 2, h)
    near = slack * state.contact_set.near.smallest
    return model._replace(bodies=bodies), rows, Step(
        state.time, h, near, state.anticipate, False, before, rows.copy()
    )  # fmt: skip


def contact_problem(state: State, rest: bool, slack: float) -> ContactProblem:
    """The contact problem of the next step, or of one from rest, as data: see `Simulation.contact_problem`."""
    if state.moving is not None:
        raise InputError("A ContactProblem knows bodies and no cell that moves; ask in a cell without rate and stress.")
    trial, model = state.contact_set.trial(), state.roster.model
    if rest:
        rows, step, _ = from_rest(state, slack)
    else:
        model, rows, step = next_step(state, slack)
    trial.look(model, step, rows)
    trial.fill(model, step, rows)
    b, d, inverse = model.bodies, model.dimension, np.empty((len(rows), 3, 3))
    motion.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse, b.held)
    return assembly.assemble(b, step.free, inverse, *trial.explicit(step.free, d), d)


def equilibrium(state: State, slack: float, limit: float, settings: Settings) -> Equilibrium:
    """Whether the present position is a possible equilibrium: see `Simulation.is_equilibrium`."""
    model, trial = state.roster.model, state.contact_set.trial()
    rows, step, push = from_rest(state, slack)
    falling = step.h * np.linalg.norm(model.gravity)
    fall = max(np.sqrt((rows[:, :6] ** 2).sum(axis=1).max()), falling, push)
    trial.look(model, step, rows)
    sweeps, before, decided = 0, math.inf, False
    while not decided:
        found = trial.solve(model, step, rows, settings)
        sweeps += found.iterations
        left = float(np.sqrt((rows[rows[:, 6] > 0, :6] ** 2).sum(axis=1).max()))
        share = left / fall if fall > 0 else left
        solved = error_of(found.residual, found.left) <= settings.tolerance
        decided = share <= limit or share > 0.5 * before or not solved or settings.tolerance < 1e-14
        if not decided:  # more exactly, from the impulses found; the velocities again from the free ones
            before, settings = share, settings._replace(tolerance=0.1 * settings.tolerance)
            rows[:] = step.free
    held = bool(share <= limit)
    message = "One step from rest." if held or solved else (
        f"Undecided: residual {found.residual:.1e} after {sweeps} sweeps, asked {settings.tolerance:.0e}; raise "
        "max_iterations, or limit if velocities of its size do not matter."
    )  # fmt: skip
    report = SolveReport(found.residual, sweeps, solved, trial.count, found.worst, 0.0, found.cone, found.bipotential,
                         message)  # fmt: skip
    return Equilibrium(held, share, trial.described(model, rows), report)


def repair(state: State, bound: float, rounds: int, settings: Settings) -> float:
    """Move overlapping bodies apart: see `Simulation.repair`; returns the largest overlap left over the size."""
    still, b = widened(state, state.roster.rows.copy()), state.roster.model.bodies
    still[:, :6] = 0.0
    model = state.roster.model._replace(laws=np.zeros_like(state.roster.model.laws))  # without friction
    step = Step(state.time, 1.0, 0.0, True, True, still, still)
    trial, settings, left = state.contact_set.trial(), settings._replace(tolerance=1e-8), math.inf
    if state.moving is not None:  # the cell stays
        trial.cell_mass, still[-3:, 6] = np.zeros((3, 3)), 0.0
    trial.derive(model)
    for _ in range(rounds):
        rows = still.copy()
        trial.look(model, step, rows)
        left = trial.deepest(model)[0].share
        if left <= bound:
            break
        trial.solve(model, step, rows, settings)
        motion.drift(b.position, b.orientation, rows[: len(b.mass)], 1.0)
    return left


def check_overlaps(state: State) -> None:
    """Refuse bodies that overlap by more than a bound."""
    trial, model, rows = state.contact_set.trial(), state.roster.model, widened(state, state.roster.rows)
    trial.look(model, Step(state.time, state.h, 0.0, state.anticipate, False, rows, rows), rows)
    overlap, size = trial.deepest(model)
    if overlap.share > OVERLAP_LIMIT:
        a, b = (int(model.bodies.identity[row]) for row in (overlap.a, overlap.b))
        raise InputError(
            f"Bodies {a} and {b} overlap by {overlap.share:.0%} of the smaller {size} at the start"
            f"{_others(trial, model)}; move them apart, or let Simulation(..., repair=True) do it."
        )


def units(state: State) -> str | None:
    """A sentence where blocks on earth are so high, or so low, that their lengths seem to be in other units."""
    model = state.roster.model
    weight = float(np.linalg.norm(model.gravity))
    free = model.bodies.kind == FREE
    angular = np.unique(model.corners.body)
    angular = angular[free[angular]]
    if model.dimension == 2 or len(angular) < 2 or not 9.0 < weight < 10.5:
        return None
    level, size = model.bodies.position[angular] @ (model.gravity / weight), model.bodies.size[angular]
    height = float((level + size).max() - (level - size).min())
    if LOW < height < HIGH:
        return None
    cure = "0.001 or 0.01" if height >= HIGH else "1000 or 100"
    return (
        f"The blocks are {height:.3g} m high in all, the largest {2 * size.max():.3g} m across, under a gravity of "
        f"{weight:.3g} m/s^2: if the lengths are not in metres, give scale={cure} where they are read."
    )


def _others(trial, model) -> str:
    """The pairs that overlap beyond the bound, beside the worst one, in words."""
    pairs = trial.overlapping(model, OVERLAP_LIMIT)[1:]
    if not pairs:
        return ""
    number = model.bodies.identity
    listed = ", ".join(f"{number[a]}-{number[b]} by {depth:.2g} m" for _, depth, a, b in pairs[:LISTED])
    more = f" and {len(pairs) - LISTED} more" if len(pairs) > LISTED else ""
    return f", and beyond {OVERLAP_LIMIT:.0%} also {listed}{more}"
