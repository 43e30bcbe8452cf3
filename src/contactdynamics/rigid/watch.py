"""Steps that are too long for what moves: found from numbers that the step has, and told while it happens.

A contact is found at the midpoint of a step. A body that travels more than its radius in a step may be halfway through
another one before it is found, and one that travels more than its diameter may never be. For polygons and clusters the
radius is that of the smallest ball inside a part, so that thin plates count as thin. Anticipation finds contacts before
they are reached, at any speed that the search for neighbours covers: there only overlaps count.
"""

import warnings

import numpy as np

from .._jit import kernel
from ..errors import ConvergenceWarning, EnergyWarning, RunawayError, StepWarning, energy_message
from ..scenes.materials import RHO, TAU
from .growing import grown
from .motion import travel
from .neighbours import REACH

OVERLAP = 0.1  # of the smaller radius: more is told
TRAVEL = 1.0  # radii in a step: more is told, where contacts are not anticipated
RESOLVED = 1e12  # radii from the origin: beyond, positions are exact to some ten-thousandths of a radius only


class Watch:
    """The largest ``overlap`` of a run over the smaller radius, its ``time`` and ``bodies``; and who moves fastest."""

    def __init__(self):
        self.overlap, self.time, self.bodies = 0.0, 0.0, (-1, -1)
        self.residual = 0.0  # the worst of all steps
        self.told = set()  # what was told already
        self.room, self.pace = None, (None, None)

    def derive(self, bodies, balls, sizes, first: int = 0) -> None:
        """Follow the bodies from row ``first`` on: ``sizes`` are the radii of the balls inside their parts."""
        room = np.full(len(bodies.mass) - first, np.inf)
        np.minimum.at(room, balls.body[len(balls.body) - len(sizes) :] - first, sizes)
        self.room, (arm, weight) = grown(self.room, first, room), self.pace
        new = np.where(bodies.simple[first:], 0.0, bodies.size[first:])  # balls have none
        # columns of `motion.travel`; planes have no weight
        self.pace = grown(arm, first, new), grown(weight, first, 1.0 / room**2)

    def fastest(self, rows: np.ndarray, h: float, apart=None) -> tuple[float, int]:
        """The largest travel of a body in a step, in its radii, and its row; corners that turn count.

        ``apart``: where this process knows some of the bodies alone, see `ranks.apart`.
        """
        if len(self.room) == 1:  # nothing to meet
            return 0.0, 0
        arm, weight = self.pace
        if apart is None:
            square, row = fastest(rows, arm, weight)
        else:
            square, row = apart.fastest(lambda rows, own: fastest(rows[own], arm[own], weight[own]))
        return h * square**0.5, row

    def enter(self, share: float, time: float, bodies: tuple[int, int]) -> None:
        """Keep the largest overlap."""
        self.overlap, self.time, self.bodies = share, time, bodies

    def first(self, what: str) -> bool:
        """Whether ``what`` has not been told before."""
        new = what not in self.told
        self.told.add(what)
        return new

    def says(self) -> str:
        """The largest overlap of the run, as a person reads it."""
        if self.overlap == 0.0:
            return "no overlap"
        return "largest overlap {:.2g} % of a radius (bodies {} and {}, t = {:.4g})".format(
            100 * self.overlap, *self.bodies, self.time
        )

    def memory(self) -> dict:
        """The array of a checkpoint."""
        return {"watch": np.array([self.overlap, self.time, *self.bodies], dtype=float)}

    def restore(self, checkpoint: dict) -> None:
        """Take over the largest overlap of a checkpoint; old files have none."""
        overlap, time, a, b = checkpoint.get("watch", np.array([0.0, 0.0, -1, -1])).tolist()
        self.enter(overlap, time, (int(a), int(b)))


def audit(simulations) -> str:
    """One line on runs that are done: steps not solved, worst residual, largest overlap, how the energy ledger closes.

    The error of the ledger is relative to all the work that was done, or to the kinetic energy where that is more.
    """
    failed, steps = sum(sim.failures for sim in simulations), sum(sim.steps for sim in simulations)
    residual = max(sim.watch.residual for sim in simulations)
    shares = []
    for energy in (sim.energy for sim in simulations):
        contacts = sum(
            float(np.abs(w).sum()) for w in (energy.normal_work, energy.tangential_work, energy.rolling_work)
        )
        moved = max(abs(energy.force_work) + abs(energy.drive_work) + contacts, energy.kinetic)
        shares.append(energy.closure / moved if moved > 0 else 0.0)
    overlap = max((sim.watch for sim in simulations), key=lambda watch: watch.overlap).says()
    return (
        f"{failed} of {steps} steps not solved, worst residual {residual:.1e}, {overlap}, energy ledger closed to "
        f"{max(shares):.1e} of the work"
    )


@kernel
def fastest(rows, arm, weight):
    """The largest `motion.travel` of a body and its row."""
    largest, row = -1.0, 0
    for i in range(arm.size):
        square = travel(rows, i, arm, weight)
        if square > largest:
            largest, row = square, i
    return max(largest, 0.0), row


def overlap_message(share, bodies, time, h, anticipate) -> str:
    """The sentence of a `StepWarning` about an overlap."""
    cure = "a shorter time_step, a smaller tolerance or recovery=..." if anticipate else (
        'penetration="anticipate" or a shorter time_step'
    )  # fmt: skip
    return (
        f"Bodies {bodies[0]} and {bodies[1]} overlap by {share:.0%} of the smaller radius at t = {time:.6g}, with a "
        f"time_step of {h:g}: take {cure}; told once, sim.watch.overlap has the largest."
    )


def travel_message(share, number, time, h) -> str:
    """The sentence of a `StepWarning` about a body that may cross others."""
    return (
        f"Body {number} travels {share:.3g} times its radius in the step to t = {time:.6g} and may cross another body: "
        f'take penetration="anticipate", or a time_step of {0.5 * h / share:.2g} or less; told once.'
    )


def runaway_message(share, number, time, place) -> str:
    """The sentence about a body that flies away."""
    return (
        f"Body {number} flies away: it moves {share:.3g} times its radius in the step to t = {time:.6g}, to "
        f"{tuple(float(f'{x:.4g}') for x in place)}, and neighbours are searched for {REACH:g} radii only; check "
        f"springs, forces and units, shorten time_step, or take it out with sim.remove({number})."
    )


def tell(sim) -> None:
    """Tell, once, of a step that is too long; and who calls `step`, of what `run` tells at its end."""
    seen, level = sim.watch, 5 + 2 * sim._running  # the line of the user's program
    anticipate = sim.penetration == "anticipate"
    share, row = 0.0, -1
    if sim.time_step**2 * sim._fastest > min(TRAVEL, REACH) ** 2:  # who it is, is looked for then alone
        share, row = seen.fastest(sim.roster.rows, sim.time_step, sim.contact_set.apart)
    if share > REACH:
        _tell_runaway(sim, share, row, level + 1)
    elif share > TRAVEL and not anticipate and seen.first("step"):
        number = int(sim.roster.model.bodies.identity[row])
        message = travel_message(share, number, sim.time, sim.time_step)
        warnings.warn(message, StepWarning, stacklevel=level)
    if seen.overlap > OVERLAP and seen.first("step"):
        message = overlap_message(seen.overlap, seen.bodies, seen.time, sim.time_step, anticipate)
        warnings.warn(message, StepWarning, stacklevel=level)
    if sim._running:
        return
    if not sim.report.converged and sim.on_failure == "warn" and seen.first("failure"):
        message = f"At t = {sim.time:.6g}: {sim.report.message} Told once."
        warnings.warn(message, ConvergenceWarning, stacklevel=level)
    if sim.ledger.gained and seen.first("gain"):
        warnings.warn(gain(sim, 0.0), EnergyWarning, stacklevel=level)


def gain(sim, before: float) -> str:
    """The sentence about energy that the contacts created since it was ``before``."""
    bounces = bool(sim.roster.model.laws[:, [RHO, TAU]].any())
    return energy_message(sim.ledger.created - before, *sim.ledger.worst, restitution=bounces)


def _tell_runaway(sim, share: float, row: int, level: int) -> None:
    """A body goes farther in a step than neighbours are searched; beyond what numbers resolve the run must end."""
    number, place = int(sim.bodies.identity[row]), sim.bodies.position[row, : sim.model.dimension]
    message = runaway_message(share, number, sim.time, place)
    if sim.on_failure == "raise" or np.abs(place).max() > RESOLVED * sim.watch.room[row]:
        raise RunawayError(message)
    if sim.on_failure == "warn" and sim.watch.first("runaway"):
        sim.watch.first("step")  # the same cause
        warnings.warn(message, StepWarning, stacklevel=level)
