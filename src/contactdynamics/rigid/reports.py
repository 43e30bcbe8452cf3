"""What a simulation tells of its start, of each step and of a run."""

import warnings

from ..errors import ConvergenceError, ConvergenceWarning, EnergyWarning, MeshWarning, StepWarning
from ..scenes.hooks import name_of
from ..state import SolveReport
from . import questions, watch
from .contact_set import Solved
from .neighbours import REACH
from .search.contract import Overlap
from .solvers import error_of


def check_start(sim) -> None:
    """Overlaps beyond a bound and steps that are too long."""
    questions.check_overlaps(sim._state())
    told = questions.units(sim._state())
    if told:
        warnings.warn(told, MeshWarning, stacklevel=4)
    sim.loading.drive(sim.rows, sim.time + sim.time_step / 2)
    share, row = sim.watch.fastest(sim.rows, sim.time_step)
    bound = REACH if sim.penetration == "anticipate" else watch.TRAVEL
    if share > bound and sim.watch.first("step"):
        number = int(sim.bodies.identity[row])
        message = watch.travel_message(share, number, sim.time + sim.time_step, sim.time_step)
        warnings.warn(message, StepWarning, stacklevel=4)


def conclude(sim, found: Solved) -> None:
    """The `SolveReport` of a step whose contacts were solved as ``found``, what is watched, and the failure policy."""
    overlap, _ = sim.contact_set.deepest(sim.roster.model)
    sim.report, seen = report_of(sim, found, overlap), sim.watch
    seen.residual = max(seen.residual, found.residual)
    if overlap.share > seen.overlap:
        bodies = tuple(int(sim.roster.model.bodies.identity[row]) for row in (overlap.a, overlap.b))
        seen.enter(overlap.share, sim.time, bodies)
    if not sim.report.converged:
        sim.failures += 1
        if sim.on_failure == "raise":
            raise ConvergenceError(f"At t = {sim.time:.6g}: {sim.report.message}")
    watch.tell(sim)


def report_of(sim, found: Solved, overlap: Overlap) -> SolveReport:
    """The report alone."""
    contacts, residual, left, done = sim.contact_set.count, found.residual, found.left, found.iterations
    converged = error_of(residual, left) <= sim.tolerance
    solver = name_of(sim.solver) if callable(sim.solver) else sim.solver
    sweeps = done - found.together
    work = f"{sweeps} sweeps{f' and {found.together} steps together' if found.together else ''}"
    stages = ("accelerated" if solver == "auto" else solver, sweeps), ("together", found.together)
    if callable(sim.solver):
        work = f"{sweeps} iterations of {solver}"
    errors = f"residual {residual:.1e}, left {left:.1e} after {work} over {contacts} contacts"
    message = f"Solved: {errors}." if converged else (
        f"Not solved: {errors}, asked {sim.tolerance:g}{f' ({found.told})' if found.told else ''}; raise "
        "max_iterations, shorten time_step or accept a larger tolerance."
    )  # fmt: skip
    return SolveReport(
        residual, done, converged, contacts, found.worst, overlap.depth, found.cone, found.bipotential, message,
        overlap.share, solver, sim.tolerance, stages[: 2 if found.together else 1], left=left,
    )  # fmt: skip


def tell_run(sim, count: int, failures: int, created: float) -> None:
    """Warn, after a run of ``count`` steps, of those not solved and of energy created since it began."""
    if sim.failures > failures and sim.on_failure == "warn":
        warnings.warn(
            f"{sim.failures - failures} of {count} steps were not solved to the tolerance {sim.tolerance:g}; "
            "raise max_iterations, shorten time_step or accept a larger tolerance.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if sim.ledger.created > created and sim.ledger.gained:
        warnings.warn(watch.gain(sim, created), EnergyWarning, stacklevel=4)
        sim.watch.first("gain")


def stopped(sim, recorders, until: float) -> str:
    """The sentence on a run that was interrupted: how it goes on."""
    kept = [recorder.way_on(sim) for recorder in recorders if hasattr(recorder, "way_on")]
    none = f"no file has it: simulation.run(until={until:g}) goes on within this program"
    return f"Stopped after the step to t = {sim.time:.6g}; {'; '.join(kept) or none}."
