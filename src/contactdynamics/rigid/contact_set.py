"""All contacts of a simulation: neighbours, searches and equations, behind a few verbs.

A *search* finds where bodies touch and remembers it; *equations* hold the unknowns of the active contacts; the solver
knows neither. Which kinds a scene has is found when its tables change (`derive`); nothing here asks for a kind by name.
"""

import copy
import math
from typing import NamedTuple

import numpy as np

from .._jit import Settled, clock
from ..errors import InputError
from ..problem.solving import solve
from ..scenes.frames import no_contacts
from ..state import Contacts
from . import assembly, motion, restraint
from .entries import Entered
from .equations.border import Border
from .equations.cellular import Cellular
from .equations.contract import Mobility
from .equations.diagonal import Diagonal
from .equations.full import Full
from .equations.planar import Planar
from .equations.spatial import Spatial
from .neighbours import Neighbours
from .order import arrange, as_found, slices, tray
from .search.balls import BallSearch
from .search.contract import BORDER, DIAGONAL, Outlook, Overlap
from .search.polygons import PolygonSearch
from .search.polyhedra import PolyhedronSearch
from .solvers import EXACT, FINEST, error_of, judge, scratch_arrays
from .space import OPEN, Periodic, wrapped
from .step import Goal, Step
from .threads import ALONE, Team
from .together import FINE, NOTHING, Together, accept, move, newly_touched, velocities

SEARCHES = (BallSearch, PolygonSearch, PolyhedronSearch)
EQUATIONS = (Diagonal, Border, Full, Planar, Spatial, Cellular)
SMALL = 500  # contacts up to which one thread is faster
LARGE = 2000  # contacts at the start of a scene at rest from which a guess for all of them pays
LOST, KEPT = 2e-3, 1e-3  # of the smaller size: what contacts lose beyond the one is given back, down to the other
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


class Solved(NamedTuple):
    """How the contacts of a step were solved."""

    iterations: int  # sweeps, and those of all contacts together
    residual: float  # relative to the impulses
    left: float  # what the contacts lose, over the kinetic size of what they do
    worst: int  # place among the contacts as the user has them, -1 without contacts
    bipotential: float
    cone: float  # largest distance to a friction cone, over the l2 norm of the impulses
    framed: float  # seconds spent on frames, targets and first guess
    together: int = 0  # of the iterations, those of all contacts together
    told: str = ""  # why that was not done, or not enough


def _squeezing(step: Step, active, dimension: int) -> float:
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


class ContactSet:
    """The contacts of a scene; ``model`` is its `Model`, ``rows`` (N, 8) the velocities, ``step`` a `Step`."""

    team: Team = ALONE  # who shares the work: given to searches, equations and solvers, as far as it is worth it

    def __init__(self, space=OPEN, length: float = 0.0):
        self.near = Neighbours(space, length)
        self.cell_mass = None  # (3, 3) inverse masses of the rows of a moving cell
        self._kinds_of_search = tuple(kind() for kind in SEARCHES)
        self.searches, self.equations, self.count = [], [], 0  # active contacts of all kinds
        self._together = Together()
        self.lost = 0.0  # not less than any contact has lost, m

    def thin(self) -> None:
        """From the next `derive` on have at most four contacts in a joint of polyhedra."""
        for search in self._kinds_of_search:
            search.four = True

    def derive(self, model) -> None:
        """Follow the tables of the model: at the start, when bodies come or go, or are sorted."""
        self.near.derive(model)
        self.searches = [search for search in self._kinds_of_search if search.derive(model, self.near)]
        self._smallest = float(self.sizes(model).min(initial=math.inf))
        self.turned = any(search.needs_inertia for search in self.searches)
        self._linear = (
            motion.by_direction(model.bodies) if model.bodies.held.any() or self.near.length else np.zeros((0, 3))
        )
        self._resting = [search for search in self.searches if search.rests]
        self._begin_equations()

    def _begin_equations(self) -> None:
        """Equations without contacts, for what the searches may find."""
        self._home = {number: search for search in self.searches for number in search.equations}
        kinds = [kind() for kind in EQUATIONS if kind.number in self._home]
        old = {type(equations): equations for equations in self.equations}
        self.equations = [old.get(type(kind), kind) for kind in kinds]  # their arrays have room already
        for equations in self.equations:
            equations.clear()
        self.count, self._active = 0, []  # of the equations, those that have contacts
        self._numbers, self._scratch = np.array([e.number for e in self.equations], dtype=np.int64), None
        self._as_found = self._tray = None
        self._arrange, self._gains, self._solvers = Settled(arrange), Settled(restraint.gains), {}
        self._entered = Entered()

    # ---- the verbs of a step -----------------------------------------------------------------------------------------

    def detect(self, model, step: Step, rows) -> None:
        """Find the active contacts at the present positions."""
        self.near.place(model)
        self.near.follow(rows, step.h, step.anticipate)
        self._find(model, Outlook(step.before, rows, step.h, step.slack, step.anticipate, False))

    def _find(self, model, outlook: Outlook) -> int:
        team = self.team.of(max(self.count, len(outlook.one)), SMALL)
        return sum(search.find(model, self.near, outlook, team) for search in self.searches)

    def mobility(self, model) -> Mobility:
        """What impulses do to the bodies at their present orientation."""
        b = model.bodies
        inverse = np.empty((len(b.mass) if self.turned else 0, 3, 3))
        if self.turned:
            motion.invert_inertia(b.kind, b.inertia, b.orientation, model.dimension, inverse, b.held)
        linear = self._linear if self.cell_mass is None else np.concatenate([self._linear, self.cell_mass])
        return Mobility(inverse, 2.5 if model.dimension == 3 else 2.0, model.dimension, linear, self.near.length)

    def _wrapped(self, model) -> np.ndarray:
        """(N, 3) where bodies are swept: in a cell, inside it."""
        position, space = model.bodies.position, self.near.space
        return wrapped(space, position) if isinstance(space, Periodic) else position

    def fill(self, model, step: Step, rows, mobility: Mobility) -> float:
        """The equations of the active contacts, with the first guess added to ``rows``; returns sum (rho b)^2."""
        counts = {}
        for search in self.searches:
            counts |= search.counts()
        plans = tuple([equations.make_room(counts[equations.number]) for equations in self.equations])
        self._active = [equations for equations in self.equations if equations.count]
        self.count = sum([equations.count for equations in self._active])
        if not self.count:
            return 0.0
        team = self.team.of(self.count, SMALL)
        if counts.get(DIAGONAL) or counts.get(BORDER) or self.count > SMALL:
            candidates = tuple([search.candidates() for search in self.searches])
            if self._tray is None or len(self._tray.open_) != team.threads:
                self._tray = tray(len(rows), int(self._numbers.max()) + 1, team.threads)
            team.share(
                self._arrange.call,
                self._wrapped(model),
                rows,
                self.near.reach,
                candidates,
                plans,
                self._numbers,
                self._tray,
            )
            self._as_found = None
        elif counts != self._as_found:  # one thread, and nothing to gain by another order
            for equations, plan in zip(self.equations, plans, strict=True):
                as_found(plan, equations.count)
            self._as_found = counts
        scale = 0.0
        for equations in self._active:
            scale += equations.fill(model, self.near, self._home[equations.number].found, step, rows, mobility, team)
        return scale

    def solve(self, model, step: Step, rows, settings: Settings) -> Solved:
        """Solve the contacts; with anticipation, again as long as the solution closes gaps of pairs left out."""
        framed, sweeps, steps = 0.0, 0, 0
        mobility = self.mobility(model)
        while True:
            begin = clock()
            scale = self.fill(model, step, rows, mobility)
            framed += clock() - begin
            found, worst, answer = self._run_solver(model, step, rows, mobility, scale, settings)
            sweeps, steps = sweeps + (found.iterations if found else 0), steps + answer.iterations
            team = self.team.of(self.count, SMALL)
            begun = [search.status.copy() for search in self.searches] if step.anticipate else []
            cone, size = 0.0, 0.0
            for equations in self._active:
                home = self._home[equations.number].found
                one, more = equations.store(home, rows, mobility, settings.tolerance, team)
                cone, size = max(cone, one), size + more
            if not (step.anticipate and self._more(model, step, rows, begun)):
                cone = cone / math.sqrt(size) if size > 0 else 0.0
                if not found:
                    return Solved(0, 0.0, 0.0, -1, 0.0, cone, framed)
                return Solved(
                    sweeps + steps, found.residual, found.left, worst, found.bipotential, cone, framed, steps,
                    answer.told,
                )  # fmt: skip
            rows[:] = step.free

    def _run_solver(self, model, step: Step, rows, mobility, scale, settings: Settings):
        """The `Solution` of the solver, None without contacts, the place of the worst contact, and an `Answer`."""
        if not self.count:
            return None, -1, NOTHING
        if self._scratch is None:
            self._scratch, self._room = scratch_arrays(rows, len(self.equations)), None
        tolerance = settings.tolerance
        first = bool(self._resting) and not any(np.count_nonzero(search.status) for search in self._resting)
        if first:
            # what such a step leaves would stay as a displacement; 1e-13 is a rounding
            tolerance = min(tolerance, max(1e-13, tolerance * min(search.first for search in self._resting)))
        ahead, shared = all(equations.ahead for equations in self._active), 0 if self.cell_mass is None else 3
        bodies = self._touched(rows)
        worth = self._worth(bodies) if self._able(settings) else math.inf
        if worth < math.inf and not self._resting and self.count <= bodies:
            # a row or a tower: its far end learns of a push at once, for less than sweeps would take
            tolerance = max(ROW * tolerance, min(FINEST, tolerance))
        work = _squeezing(step, self._active, mobility.dimension) if shared else 0.0
        goal = Goal(
            float(scale), step.free, tolerance, settings.max_iterations, ahead, bool(self._resting), work, shared,
            *self._polish(), worth,
        )  # fmt: skip
        kinds = tuple([equations.kind() for equations in self._active])
        if first and self.count > LARGE and settings.own is None:
            self._guess(step, rows, mobility, kinds, goal, settings)
        run = self._sweep if settings.own is None else self._run_own
        self._together.begin()
        done, steps, finer = 0, 0, 0
        while True:
            found, answer = run(model, step, rows, mobility, kinds, goal, settings)
            done, steps = done + found.iterations, steps + answer.iterations
            restrained = self._restrain(step, rows, mobility, kinds, goal, settings, found)
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
        before = sum([equations.count for equations in self._active[: found.kind]])
        return found, before + self._active[found.kind].rank(found.worst), answer

    def _polish(self) -> tuple[int, bool, float]:
        """How a step is improved that is below the tolerance: see the last but one fields of `Goal`.

        Blocks that rest always; many balls where some contact comes near to what it may lose (half way from `KEPT`,
        where giving back leaves it, to `LOST`): to solve what makes them sink takes a few sweeps, and to give it back
        again and again more than that.
        """
        spare = SPARE // self.count - POLISH
        if self._resting:
            return POLISH, False, REST
        if spare > POLISH:
            return spare, True, 1.0
        return POLISH, False, CALM if self.lost > 0.5 * (KEPT + LOST) * self._smallest else 1.0

    def _guess(self, step: Step, rows, mobility, kinds, goal: Goal, settings: Settings) -> None:
        """Begin with what would hold all contacts as they are, where that is nearer to a solution than nothing."""
        if not self._able(settings):
            return
        before = self._measured(rows, mobility, kinds, goal, settings)
        written = self._together.guess(self._active, rows, step.free, mobility)
        if written is None:
            return
        after = self._measured(rows, mobility, kinds, goal, settings)
        if not error_of(after.residual, after.left) < error_of(before.residual, before.left):
            accept(self._active, written, np.zeros((self.count, mobility.dimension)))
            rows[:, :6] = step.free[:, :6]

    def _measured(self, rows, mobility, kinds, goal: Goal, settings: Settings):
        """The errors of what is there, as a `Solution`."""
        return self._swept(ALONE, settings.solver, rows, mobility, kinds, goal._replace(max_iterations=0))

    def _swept(self, team: Team, solver, rows, mobility, kinds, goal: Goal):
        """The `Solution` of a kernel of `solvers`."""
        settled = self._solvers.get((team, solver))
        if settled is None:
            settled = self._solvers[team, solver] = Settled(solver)
        return team(settled.call, kinds, rows, mobility, self._entered(kinds), goal, self._scratch)

    def _touched(self, rows) -> int:
        """Bodies that move and touch something, so that those elsewhere change nothing; all of them in a heap."""
        movable = len(self._scratch.movable)
        if self._resting or self.count > SLENDER * movable:
            return movable
        touched, count = np.zeros(len(rows), dtype=np.bool_), 0
        for equations in self._active:
            contacts = equations.kind().contacts
            count += newly_touched(contacts.a, contacts.b, rows, touched)
        return count

    def _worth(self, bodies: int) -> float:
        """Sweeps that take as long as solving all contacts together: towers and rows of balls are easy to eliminate."""
        if not self._resting and self.count > SLENDER * bodies:
            return math.inf
        return (WORTH if self._resting else SWIFT) * max(1.0, self.count / OF)

    def _able(self, settings: Settings) -> bool:
        """Whether the contacts may be solved all together."""
        return settings.together and self.cell_mass is None and all(equations.able for equations in self._active)

    def _sweep(self, model, step: Step, rows, mobility, kinds, goal: Goal, settings: Settings):
        """Sweeps and, where they are not enough, all contacts together."""
        team = self.team.of(self.count, SMALL)
        found = self._swept(team, settings.solver, rows, mobility, kinds, goal)
        error = error_of(found.residual, found.left)
        if not settings.together or error <= goal.tolerance:
            return found, NOTHING
        if not self._able(settings):
            why = "tension and moments" if self.cell_mass is None else "cells that move"
            return found, NOTHING._replace(told=f"{why} are left to the sweeps")
        done, steps = found.iterations, 0
        # What is left of the sweeps goes in between; a coarse goal needs no more than that.
        for hard in (goal.tolerance < FINE, True):
            for _ in range(TRIES):  # the residual that is needed follows from what is left with the present one
                bound = max(goal.tolerance * min(1.0, found.residual / error), min(goal.tolerance, EXACT))
                answer = self._together.solve(self._active, rows, step.free, mobility, goal.scale, bound, hard)
                found = self._measured(rows, mobility, kinds, goal, settings)
                error, steps = error_of(found.residual, found.left), steps + answer.iterations
                if error <= settings.tolerance or found.residual > settings.tolerance:
                    break
            if error <= settings.tolerance:
                break
            if done < goal.max_iterations:
                more = goal._replace(max_iterations=goal.max_iterations - done, worth=math.inf)
                found = self._swept(team, settings.solver, rows, mobility, kinds, more)
                done, error = done + found.iterations, error_of(found.residual, found.left)
            if error <= settings.tolerance or not answer.iterations:
                break
        return found._replace(iterations=done), answer._replace(iterations=steps)

    def _run_own(self, model, step: Step, rows, mobility, kinds, goal: Goal, settings: Settings):
        """A user's solver: the step as a `ContactProblem`, whose impulses the contacts take."""
        if self.cell_mass is not None:
            raise InputError(
                "A solver of your own gets a ContactProblem, which knows no cell that moves; take another."
            )
        b, d, inverse = model.bodies, model.dimension, np.empty((len(rows), 3, 3))
        motion.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse, b.held)
        written = [equations.explicit(rows, d) for equations in self._active]
        gaps = [self._home[e.number].candidates().gap[x.place] for e, x in zip(self._active, written, strict=True)]
        problem = assembly.assemble(b, step.free, inverse, written, gaps, d)
        guess = np.concatenate([x.impulse[:, :d] for x in written])
        impulses, report = solve(problem, guess, solver=settings.own, tolerance=goal.tolerance,
                                 max_iterations=goal.max_iterations)  # fmt: skip
        accept(self._active, written, impulses)
        moves = assembly.free_directions(b, d)
        speeds = velocities(step.free, d)
        speeds[moves] = problem.body_velocities(impulses)
        which = moves.any(axis=1)
        move(rows, step.free, np.flatnonzero(which), speeds[which], d)
        found = self._measured(rows, mobility, kinds, goal, settings)
        return found._replace(iterations=report.iterations), NOTHING

    def _restrain(self, step: Step, rows, mobility, kinds, goal: Goal, settings: Settings, found):
        """Shrink the impulses of groups of bodies that would gain energy by what the solver left: see `restraint`.

        Returns the errors of what is there then, as a `Solution`; None where there are no such groups.
        """
        cell, scratch = self.cell_mass is not None and bool(self.cell_mass.any()), self._scratch
        team = self.team.of(self.count, SMALL)
        if self._room is None or len(self._room.groups) != team.threads:
            self._room = restraint.room(rows, len(self.equations), team.threads)
        table = self._entered(kinds)
        group, factor, least = team.share(self._gains.call, rows, step.free, table, mobility.kappa, cell, self._room)
        if least >= 1.0:
            return None
        found_by = zip(kinds, self._room.counts[: len(kinds), 0].tolist(), strict=True)
        some = [restraint.restrained(kind.plan.few[:count], kind.contacts.a, kind.contacts.b, group, factor)
                for kind, count in found_by]  # fmt: skip
        bodies = restraint.slowed(rows, group, factor)
        sums, pushes = scratch.sums[: len(kinds)], scratch.pushes
        alone = rows, step.free, mobility, table, some, bodies, sums, pushes
        few = self.count > SMALL and judge(goal, sums, pushes)[0].residual == found.residual
        few = few and restraint.tally(*alone, -1.0)
        for equations, contacts in zip(self._active, some, strict=True):
            equations.shrink(contacts, group, factor)
        restraint.slow(rows, step.free, bodies, group, factor)
        if not few:
            return self._measured(rows, mobility, kinds, goal, settings)
        restraint.tally(*alone, 1.0)
        return judge(goal, sums, pushes)[0]

    def _more(self, model, step: Step, rows, begun) -> bool:
        """With anticipation: whether the velocities just found close gaps of pairs left out; takes those in.

        They are then solved again with the status ``begun`` that the pairs had at the start of the step.
        """
        self.near.follow(rows, step.h, True, step.free)
        if not any(search.may_close(self.near, rows, step.h) for search in self.searches):
            return False
        ended = [search.status.copy() for search in self.searches]
        self._set_status(begun)
        if self._find(model, Outlook(rows, rows, step.h, 0.0, True, True)) > sum(map(len, ended)):
            return True
        self._set_status(ended)
        return False

    def _set_status(self, values) -> None:
        for search, status in zip(self.searches, values, strict=True):
            search.status[:] = status

    def book(self, model, step: Step, rows, works) -> None:
        """Add the works of the contacts, law by law, to ``works`` (L, 4), and keep by how much they are too deep."""
        self.lost, team = 0.0, self.team.of(self.count, SMALL)
        for equations in self._active:
            found = self._home[equations.number].found
            self.lost = max(self.lost, equations.book(found, step, rows, model.bodies, works, team))

    def recover(self, model, step: Step, rows, above, keep, most) -> float:
        """Open overlaps above a bound, both over the size of the smaller body; returns the work against gravity.

        Overlaps at the end of the step: the gap then is that at the midpoint plus h U_n / 2. Bodies are moved by
        ``most`` at most, until no overlap is above ``keep``.
        """
        work = 0.0
        for search in self.searches:
            mine = [e for e in self._active if e.number in search.equations]
            if mine:
                which = np.concatenate([e.places for e in mine]).astype(np.int64)
                opening = 0.5 * step.h * np.concatenate([e.separations(rows) for e in mine])
                work += search.recover(model, rows, which, opening, above, keep, most)
        return work

    def give_back(self, model, step: Step, rows) -> float:
        """After `detect`: open again what contacts have lost by what solvers left, where it is more than `LOST`.

        Bodies are moved apart until none has lost more than `KEPT` of the size of the smaller body; velocities stay as
        they are. Returns the work against gravity.
        """
        if self.lost <= LOST * self._smallest:
            return 0.0
        velocities = step.before, step.free, rows
        works = [search.give_back(model, velocities, LOST, KEPT) for search in self.searches]
        if all(work is None for work in works):
            return 0.0
        self.detect(model, step, rows)
        return sum(work for work in works if work is not None)

    def move_cell(self, space, recut: bool) -> None:
        """The cell has another shape; cut anew, its lists are built anew."""
        self.near.space = space
        if recut:
            self.near.lists = None

    # ---- what the user reads -----------------------------------------------------------------------------------------

    def described(self, model, rows) -> Contacts:
        """The contacts of the step with their frames, in the scene's dimension; kind after kind, in order."""
        d, identity, parts = model.dimension, model.bodies.identity, [no_contacts(model.dimension)]
        for e in self.equations:
            search, x = self._home[e.number], e.explicit(rows, d)
            parts.append(Contacts(
                np.stack([identity[x.a], identity[x.b]], axis=1), search.points(self.near, x.place)[:, :d].copy(),
                x.frame[:, 0, :d].copy(), search.candidates().gap[x.place], x.impulse[:, :d].copy(),
                x.frame[:, :d, :d].copy(), x.status.copy(), x.moment.copy() if d == 3 else x.moment[:, 2:].copy(),
            ))  # fmt: skip
        return Contacts(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def moments(self, model) -> np.ndarray:
        """(3, 3) sum of P_i l_j over the contacts, l from the centre of a (or the plane) to that of b; N s m."""
        total = np.zeros((3, 3))
        for search in self.searches:
            impulse, branch = search.branches(model, self.near)
            total += impulse.T @ branch
        return total

    def targets(self) -> np.ndarray:
        """(C,) normal velocities that the laws ask for, in the order of `described`; m/s."""
        return np.concatenate([np.zeros(0), *(equations.targets for equations in self.equations)])

    def explicit(self, rows, dimension) -> tuple[list, list]:
        """The contacts written out, kind by kind, and their gaps."""
        written = [equations.explicit(rows, dimension) for equations in self.equations]
        gaps = [self._home[e.number].candidates().gap[x.place] for e, x in zip(self.equations, written, strict=True)]
        return written, gaps

    def sizes(self, model) -> np.ndarray:
        """(S,) radii of the balls inside the parts of bodies, m."""
        return np.minimum.reduce([model.balls.radius, *(search.sizes(model) for search in self.searches)])

    def deepest(self, model) -> tuple[Overlap, str]:
        """The largest overlaps of all kinds, and the word for the size by which they are measured."""
        worst, size, depth = Overlap(0.0, 0.0, -1, -1), "", 0.0
        for search in self.searches:
            if not len(search.status):
                continue
            found = search.deepest(model)
            depth = max(depth, found.depth)
            if found.share > worst.share:
                worst, size = found, search.size
        return Overlap(depth, *worst[1:]), size

    def overlapping(self, model, above: float) -> list:
        """(share, depth, a, b) of the pairs of rows that overlap by more than ``above`` of their size, worst first."""
        worst = {}
        for search in self.searches:
            c, shares = search.candidates(), search.overlaps(model)
            for k in np.flatnonzero(shares > above):
                pair = (min(int(c.a[k]), int(c.b[k])), max(int(c.a[k]), int(c.b[k])))
                worst[pair] = max(worst.get(pair, (0.0, 0.0)), (float(shares[k]), -float(c.gap[k])))
        return sorted(((*value, *pair) for pair, value in worst.items()), reverse=True)

    # ---- bodies that come and go, memory -----------------------------------------------------------------------------

    @property
    def sortable(self) -> bool:
        """Whether bodies may be put into another order: their laws must not know which body is the first."""
        return all(search.sortable for search in self.searches)

    def slices(self, model) -> np.ndarray:
        """(N,) the order of the bodies in which contacts are swept."""
        second = np.concatenate([search.second_bodies(model) for search in self.searches])
        return slices(self._wrapped(model), second, self.near.reach)

    def extended(self, lists, model) -> None:
        """After `derive`: take over the neighbour ``lists`` of before, for balls that were added at the end."""
        self.near.extend(lists, model)

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        for search in self._kinds_of_search:
            search.remove(ball, plane)
        self._follow_lost()

    def _follow_lost(self) -> None:
        self.lost = max(float(search.lost.max(initial=0.0)) for search in self._kinds_of_search)

    def renumber(self, order: np.ndarray) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k."""
        for search in self.searches:
            search.renumber(order)

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        return {name: array for search in self._kinds_of_search for name, array in search.memory().items()}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint."""
        for search in self._kinds_of_search:
            search.restore(checkpoint)
        self._follow_lost()

    def forget(self) -> None:
        """Drop contacts, memory and neighbours; arrays handed out before stay as they are."""
        self.near.lists = None
        for search in self._kinds_of_search:
            search.forget()
        self.lost = 0.0
        self._begin_equations()

    def trial(self) -> "ContactSet":
        """A copy that goes on with the memory, in arrays of its own: whatever it does leaves this one as it is."""
        other = copy.copy(self)
        other.near = self.near.trial()
        twins = {id(search): search.trial() for search in self._kinds_of_search}
        other._kinds_of_search = tuple(twins.values())
        other.searches = [twins[id(search)] for search in self.searches]
        other._resting = [search for search in other.searches if search.rests]
        other.equations, other._together = [], Together()
        other._begin_equations()
        return other
