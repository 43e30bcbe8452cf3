"""The contacts of a step solved: how exactly, by which method, and what is done about what is left.

A kernel of `solvers` sweeps; where it would take too long, all contacts are solved `together`; a function of the user
may take the place of both. What is left then may create no energy (`restraint`).
"""

import math
from collections.abc import Callable
from operator import is_not
from typing import NamedTuple

import numpy as np

from .._jit import Settled
from ..errors import InputError
from ..problem.solving import solve
from ..state import Model
from . import assembly, gains, motion, restraint
from .entries import table
from .equations.contract import Mobility
from .solvers import EXACT, FINEST, Solution, error_of, judge, scratch_arrays
from .step import Goal, Step
from .threads import ALONE, Team
from .together import FINE, NOTHING, Answer, Together, accept, move, newly_touched, velocities

LARGE = 2000  # contacts at the start of a scene at rest from which a guess for all of them pays
TRIES = 3  # to solve all contacts together so that nothing is left
WORTH, OF = 60.0, 150  # sweeps that take as long as solving so many contacts together; for more of them, as many more
SWIFT, SLENDER = 200.0, 1.25  # the same for balls, where contacts are not more than so many for each that moves
POLISH = 10  # sweeps at most for the sake of rest
REST, CALM = 1e-5, 1e-2  # of the tolerance: how far quiet steps are improved, of blocks and of balls that sink
SPARE = 30_000  # contacts that may be solved in a small scene to come below the tolerance
ROW = 0.1  # of the tolerance, where contacts are no more than bodies that move


class Settings(NamedTuple):
    """How to solve."""

    tolerance: float
    max_iterations: int
    solver: object  # a kernel of `solvers`
    together: bool = False  # all contacts are solved together where sweeps would take too long
    own: object = None  # a user's function, in the place of all that: see `problem.solving`


class Filled(NamedTuple):
    """The contacts of a step, their equations filled, and how they are to be solved."""

    model: Model
    step: Step
    rows: np.ndarray  # (N, 8) velocities with the first guess; those of the solution, in the end
    mobility: Mobility
    scale: float  # sum (rho b)^2
    equations: list  # those that have contacts
    searches: list  # for each of them, the one whose contacts they are
    count: int  # contacts of all kinds
    many: bool  # they are so many that a part of them is worth its own treatment
    kinds: tuple  # their arrays: see `contract.Kind`
    resting: list  # searches whose contacts rest: what a step leaves stays as a displacement
    sinks: bool  # contacts, not single ones alone, come near to what they may lose
    cell: np.ndarray | None  # (3, 3) inverse masses of a cell that moves
    team: Team
    settings: Settings
    gather: Callable | None = None  # gives the same with the contacts of all processes, where each has its own alone

    @property
    def able(self) -> bool:
        """Whether the contacts may be solved all together."""
        return self.settings.together and self.cell is None and all(equations.able for equations in self.equations)


def squeezing(step: Step, active, dimension: int) -> float:
    """The work of the present pressure in an isotropic strain as fast as the imposed deformation, p V |L| h, J.

    What contacts in a cell lose is the work of the pressure on grains that sink. The work of the shear itself would be
    a poor measure: it is smaller by the friction of the sample, and vanishes with the shear stress.
    """
    imposed = step.free[-3:, :3].T[step.driven]
    speed = math.sqrt(imposed @ imposed)  # l |L|
    if speed == 0.0:
        return 0.0
    rows = np.zeros((3, 8))
    rows[:dimension, :dimension] = speed / dimension * np.eye(dimension)
    return abs(sum([equations.cell_work(rows, rows[:, :3] != 0.0) for equations in active]))


def polish(count: int, resting, sinks: bool) -> tuple[int, bool, float]:
    """How a step is improved that is below the tolerance: see the last but one fields of `Goal`.

    Blocks that rest always; many balls where some contacts sink: to solve what makes them sink takes a few sweeps, and
    to give it back again and again more than that.
    """
    spare = SPARE // count - POLISH
    if resting:
        return POLISH, False, REST
    if spare > POLISH:
        return spare, True, 1.0
    return POLISH, False, CALM if sinks else 1.0


def worth(count: int, bodies: int, resting) -> float:
    """Sweeps that take as long as solving all contacts together: towers and rows of balls are easy to eliminate."""
    if not resting and count > SLENDER * bodies:
        return math.inf
    return (WORTH if resting else SWIFT) * max(1.0, count / OF)


class StepSolver:
    """Solves the contacts of bodies, step after step; what it keeps in between are arrays alone.

    Bodies may come, behind the others; where they go or are sorted, or a cell moves behind them, another one is made.
    ``most``: kinds of contacts that the scene may have.
    """

    def __init__(self, most: int):
        self._most, self._scratch, self._room, self._together = most, None, None, Together()
        self._kinds, self._table, self._gains, self._solvers = (), None, Settled(gains.gains), {}
        self._puts, self._measure = {}, Settled(restraint.measure_some)

    def __reduce__(self):
        return StepSolver, (self._most,)  # a copy has arrays of its own, which stand elsewhere

    def forget(self) -> None:
        """Bodies have come: the next step takes nothing over from the last."""
        self._together = Together()

    def solve(self, filled: Filled) -> tuple[Solution, Answer]:
        """The `Solution`, and what came of solving contacts together."""
        if self._scratch is None or len(self._scratch.free) != len(filled.rows):
            self._scratch = scratch_arrays(filled.rows, self._most, self._scratch)
        self._follow(filled.kinds)
        settings = filled.settings
        goal, first = self._goal(filled)
        if first and filled.count > LARGE and settings.own is None and filled.able:
            filled = self._gathered(filled)
            self._guess(filled, goal)
        run, tolerance = self._sweep if settings.own is None else self._run_own, goal.tolerance
        self._together.spent = 0.0
        done, steps, finer = 0, 0, 0
        while True:
            found, answer, filled = run(filled, goal)
            done, steps = done + found.iterations, steps + answer.iterations
            restrained = self._restrain(filled, goal, found)
            if restrained is None:
                break
            found = restrained
            asked = settings.tolerance if steps else tolerance
            if error_of(found.residual, found.left) <= asked or settings.own is not None:
                break
            if answer.iterations and finer < TRIES:  # what is left may not gain: solved together once more, finer
                goal, finer = goal._replace(tolerance=0.1 * goal.tolerance), finer + 1
            elif done >= settings.max_iterations:
                break
            goal = goal._replace(max_iterations=max(0, settings.max_iterations - done))
        if done != found.iterations or steps != answer.iterations:
            found, answer = found._replace(iterations=done), answer._replace(iterations=steps)
        return found, answer

    def _follow(self, kinds: tuple) -> None:
        """The table of the present kinds: see `entries`."""
        if len(kinds) != len(self._kinds) or any(map(is_not, kinds, self._kinds)):
            self._kinds, self._table = kinds, table(kinds, self._puts)

    def _gathered(self, filled: Filled) -> Filled:
        """The same with the contacts of all processes, where each has its own."""
        if filled.gather is not None:
            filled = filled.gather(filled)
            self._follow(filled.kinds)
        return filled

    def _goal(self, filled: Filled) -> tuple[Goal, bool]:
        """How exactly to solve; and whether it is the first step of bodies that rest."""
        resting, tolerance = filled.resting, filled.settings.tolerance
        first = bool(resting) and not filled.team.any(any(np.count_nonzero(search.status) for search in resting))
        if first:
            # what such a step leaves would stay as a displacement; 1e-13 is a rounding
            tolerance = min(tolerance, max(1e-13, tolerance * min(search.first for search in resting)))
        ahead, shared = all(equations.ahead for equations in filled.equations), 0 if filled.cell is None else 3
        bodies = self._touched(filled)
        most = worth(filled.count, bodies, resting) if filled.able else math.inf
        if most < math.inf and not resting and filled.count <= bodies:
            # a row or a tower: its far end learns of a push at once, for less than sweeps would take
            tolerance = max(ROW * tolerance, min(FINEST, tolerance))
        work = squeezing(filled.step, filled.equations, filled.mobility.dimension) if shared else 0.0
        return Goal(
            float(filled.scale), filled.step.free, tolerance, filled.settings.max_iterations, ahead, bool(resting),
            work, shared, *polish(filled.count, resting, filled.sinks), most,
        ), first  # fmt: skip

    def _touched(self, filled: Filled) -> int:
        """Bodies that move and touch something, so that those elsewhere change nothing; all of them in a heap."""
        movable = len(self._scratch.movable)
        if filled.resting or filled.count > SLENDER * movable:
            return movable
        if filled.team.divided:  # others touch other bodies
            return filled.team.touched()
        touched, count = np.zeros(len(filled.rows), dtype=np.bool_), 0
        for kind in filled.kinds:
            count += newly_touched(kind.contacts.a, kind.contacts.b, filled.rows, touched)
        return count

    def _guess(self, filled: Filled, goal: Goal) -> None:
        """Begin with what would hold all contacts as they are, where that is nearer to a solution than nothing."""
        before, (rows, free, mobility) = self._measured(filled, goal), (filled.rows, filled.step.free, filled.mobility)
        written = self._together.guess(filled.equations, rows, free, mobility)
        if written is None:
            return
        after = self._measured(filled, goal)
        if not error_of(after.residual, after.left) < error_of(before.residual, before.left):
            accept(filled.equations, written, np.zeros((filled.count, mobility.dimension)))
            rows[:, :6] = free[:, :6]

    def _measured(self, filled: Filled, goal: Goal) -> Solution:
        """The errors of what is there."""
        team = filled.team if filled.team.divided else ALONE
        return self._swept(team, filled, goal._replace(max_iterations=0))

    def _swept(self, team: Team, filled: Filled, goal: Goal) -> Solution:
        """What the kernel of `solvers` makes of it."""
        solver = filled.settings.solver
        settled = self._solvers.get((team, solver))
        if settled is None:
            settled = self._solvers[team, solver] = Settled(solver)
        return team(settled, filled.kinds, filled.rows, filled.mobility, self._table, goal, self._scratch)

    def _sweep(self, filled: Filled, goal: Goal) -> tuple[Solution, Answer, Filled]:
        """Sweeps and, where they are not enough, all contacts together: these are then known everywhere."""
        settings = filled.settings
        found = self._swept(filled.team, filled, goal)
        error = error_of(found.residual, found.left)
        if not settings.together or error <= goal.tolerance:
            return found, NOTHING, filled
        if not filled.able:
            why = "tension and moments" if filled.cell is None else "cells that move"
            return found, NOTHING._replace(told=f"{why} are left to the sweeps"), filled
        filled = self._gathered(filled)
        done, steps, problem = found.iterations, 0, (filled.equations, filled.rows, filled.step.free, filled.mobility)
        # What is left of the sweeps goes in between; a coarse goal needs no more than that.
        for hard in (goal.tolerance < FINE, True):
            for _ in range(TRIES):  # the residual that is needed follows from what is left with the present one
                bound = max(goal.tolerance * min(1.0, found.residual / error), min(goal.tolerance, EXACT))
                answer = self._together.solve(*problem, goal.scale, bound, hard)
                found = self._measured(filled, goal)
                error, steps = error_of(found.residual, found.left), steps + answer.iterations
                if error <= settings.tolerance or found.residual > settings.tolerance:
                    break
            if error <= settings.tolerance:
                break
            if done < goal.max_iterations:
                more = goal._replace(max_iterations=goal.max_iterations - done, worth=math.inf)
                found = self._swept(filled.team, filled, more)
                done, error = done + found.iterations, error_of(found.residual, found.left)
            if error <= settings.tolerance or not answer.iterations:
                break
        return found._replace(iterations=done), answer._replace(iterations=steps), filled

    def _run_own(self, filled: Filled, goal: Goal) -> tuple[Solution, Answer, Filled]:
        """A user's solver: the step as a `ContactProblem`, whose impulses the contacts take."""
        if filled.cell is not None:
            raise InputError(
                "A solver of your own gets a ContactProblem, which knows no cell that moves; take another."
            )
        model, rows, free = filled.model, filled.rows, filled.step.free
        b, d, inverse = model.bodies, model.dimension, np.empty((len(rows), 3, 3))
        motion.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse, b.held)
        written = [equations.explicit(rows, d) for equations in filled.equations]
        gaps = [search.found.gap[x.place] for search, x in zip(filled.searches, written, strict=True)]
        problem = assembly.assemble(b, free, inverse, written, gaps, d)
        guess = np.concatenate([x.impulse[:, :d] for x in written])
        impulses, report = solve(problem, guess, solver=filled.settings.own, tolerance=goal.tolerance,
                                 max_iterations=goal.max_iterations)  # fmt: skip
        accept(filled.equations, written, impulses)
        moves = assembly.free_directions(b, d)
        speeds = velocities(free, d)
        speeds[moves] = problem.body_velocities(impulses)
        which = moves.any(axis=1)
        move(rows, free, np.flatnonzero(which), speeds[which], d)
        return self._measured(filled, goal)._replace(iterations=report.iterations), NOTHING, filled

    def _restrain(self, filled: Filled, goal: Goal, found: Solution) -> Solution | None:
        """Shrink the impulses of groups of bodies that would gain energy by what the solver left: see `restraint`.

        Returns the errors of what is there then; None where there are no such groups.
        """
        rows, free, mobility, team = filled.rows, filled.step.free, filled.mobility, filled.team
        cell, scratch = filled.cell is not None and bool(filled.cell.any()), self._scratch
        if self._room is None or self._room.groups.shape != (team.threads, len(rows)):
            self._room = gains.room(rows, self._most, team.threads, self._room)
        if team.divided:
            group, factor, least = team.gains(rows, free, self._table, self._room)
        else:
            group, factor, least = team.share(self._gains, rows, free, self._table, cell, self._room)
        if least >= 1.0:
            return None
        some = []
        for (contacts, plan), ends in zip(filled.kinds, self._room.ends, strict=False):
            some.append(restraint.restrained(plan.few, plan.cuts, ends, contacts.a, contacts.b, group, factor))
        bodies = team.slowed(group, factor) if team.divided else restraint.slowed(rows, group, factor)
        sums, pushes = scratch.sums[: len(filled.kinds)], scratch.pushes
        alone = restraint.Restrained(rows, free, mobility, self._table, some, bodies, team, self._measure)
        few = filled.many and judge(goal, sums, pushes[0])[0].residual == found.residual
        few = few and restraint.tally(alone, sums, pushes, -1.0)
        for equations, (contacts, _) in zip(filled.equations, some, strict=True):
            equations.shrink(contacts, group, factor)
        restraint.slow(rows, free, bodies, group, factor)
        if not few:
            return self._measured(filled, goal)
        restraint.tally(alone, sums, pushes, 1.0)
        return judge(goal, sums, pushes[0])[0]
