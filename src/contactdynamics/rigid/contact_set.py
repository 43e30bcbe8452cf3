"""The contacts of a scene in a step: found, filled, solved, booked; the verbs are called in this order.

What a scene has of searches and equations, and what is read and remembered of them, is in `kinds`; how contacts are
solved, in `step_solver`.
"""

import math
from typing import NamedTuple

import numpy as np

from .._jit import Settled, clock, kernel
from . import motion
from .equations.contract import Mobility
from .growing import longer
from .kinds import Kinds
from .order import arrange, arrange_own, as_found, slices, tray
from .search.contract import BORDER, DIAGONAL, Candidates, Outlook, Overlap
from .space import Periodic, wrapped
from .step import Step
from .step_solver import Filled, Settings, StepSolver
from .threads import ALONE, Team

SMALL = 500  # contacts up to which one thread is faster
LOST, KEPT = 2e-3, 1e-3  # of the smaller size: what contacts lose beyond the one is given back, down to the other
SINGLE = 1000  # contacts of which one may come near to that without any work for the others


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


@kernel
def count_above(lost, bound):
    """How many of the numbers (K,) are above a ``bound``."""
    count = 0
    for k in range(lost.size):
        count += lost[k] > bound
    return count


class ContactSet(Kinds):
    """The contacts of a scene; ``model`` is its `Model`, ``rows`` (N, 8) the velocities, ``step`` a `Step`."""

    team: Team = ALONE  # who shares the work: given to searches, equations and solvers, as far as it is worth it
    _division = None  # of the contacts over processes: see `ranks.division`
    _apart = None  # of the bodies: see `ranks.apart`
    apart = None  # the same, while this process knows a part of them alone: see `know_bodies`
    _last_count = None  # contacts of the last step
    _swept_apart = False  # whether the equations have those of this process alone
    _roomy = True  # whether they have had room for all since
    _due = None  # mobility and tolerance, where impulses and status are still to be kept: see `book`

    def _begin_equations(self) -> None:
        """Equations without contacts, and nothing known of the step before."""
        super()._begin_equations()
        self._numbers = np.array([e.number for e in self.equations], dtype=np.int64)
        self._tray, self._arrange, self._arrange_own = None, Settled(arrange), Settled(arrange_own)
        self._solver = StepSolver(len(self.equations))
        self._know_none()

    def _clear_equations(self) -> None:
        """The same equations without contacts, and nothing known of the step before."""
        super()._clear_equations()
        self._solver.forget()
        self._know_none()

    def _know_none(self) -> None:
        self._homes, self._counts = [], {}  # the searches of the active equations; contacts found, by their equations
        self._as_found, self._team, self._swept_apart = None, ALONE, False

    def look(self, model, step: Step, rows) -> None:
        """Find the active contacts at the present positions."""
        team = self._lookers(rows)
        self._cut(model.balls.body)
        if self.apart is None:
            self.near.look(model, rows, step.h, step.anticipate, team)
        else:
            self.apart.place(model)
            self.apart.follow(rows, step.h, step.anticipate)
        if self._shared and self.apart is None:
            self._apart.begin(model, step, rows, self.near, self._division.cuts)
        self._find(model, Outlook(step.before, rows, step.h, step.slack, step.anticipate, False), team)

    def _lookers(self, rows) -> Team:
        """Who looks for contacts: processes too, where a search lets them."""
        return self.team.of(max(self.count, len(rows)), SMALL)

    def _threads(self, team: Team) -> Team:
        """Those of this process."""
        return team.alike if team.several else team

    def _cut(self, body: np.ndarray) -> None:
        """Which balls are looked at here: all, unless processes share contacts, as many as the last step had."""
        balls = len(body)
        size = balls if self._last_count is None else self._last_count
        shared = (
            self.team.several
            and self.team.of(size, SMALL).several
            and not self._lidded
            and all(search.divisible for search in self.searches)
        )
        if shared and self._division is None:
            self._division, self._apart, self.near.any = self.team.division(), self.team.apart(self), self.team.any
        if self.divided and not (shared and self._division.fits(balls)):
            self.whole()
        self.near.span, self.near.shares = self._division.span(body) if shared else ((0, balls), ())
        self._shared = shared

    def _find(self, model, outlook: Outlook, team: Team) -> int:
        if self.divided:
            self._division.bring_back()
        counts = [search.find(model, self.near, outlook, team) for search in self.searches]
        if self._shared:
            self._counts = self._division.tell_found(self.searches, counts)
            self.team.divided = True
        else:
            self._counts = {number: count for some in counts for number, count in some.items()}
        return sum(self._counts.values())

    @property
    def divided(self) -> bool:
        """Whether this process knows a part of the contacts alone: see `whole`."""
        return self._division is not None and self._division.active

    def know_bodies(self) -> None:
        """Know all bodies, here as in one process; all processes must ask, each time."""
        if self.apart is not None:
            self.apart.whole()

    def whole(self) -> None:
        """Know all contacts and bodies, here as in one process; all processes must ask, each time."""
        if not self.divided:
            self.know_bodies()
            return
        self.team.ask_all("reads contacts")
        self._apart.gather()
        known = list(zip(self._active, self._homes, strict=True)) if self._swept_apart else []
        for equations, search in known:
            self._division.whole_contacts(equations, search)
        self._swept_apart, self._roomy, self.team.divided = False, True, False
        self._division.put_together()
        for equations, search in known:
            equations.regain(search.found)

    def trial(self) -> "ContactSet":
        """A copy that goes on with the memory, in arrays of its own, alike on all processes: see `Kinds.trial`."""
        self.whole()
        other = super().trial()
        other.team, other._division, other._apart, other.near.any = self.team.alike, None, None, bool
        return other

    def _pairs(self, search):
        """Those of a search that the equations have."""
        return self._division.of(search).mine if self._swept_apart else search.found

    def detect(self, model, step: Step, rows) -> float:
        """`look`, and open again what contacts have lost by what solvers left, where it is more than `LOST`.

        Bodies are moved apart until none has lost more than `KEPT` of the size of the smaller body; velocities stay as
        they are. Returns the work against gravity.
        """
        self.look(model, step, rows)
        if self.lost <= LOST * self._smallest:
            return 0.0
        if self.divided and not self.team.any(any(search.owes(model, LOST) for search in self.searches)):
            return 0.0
        self._swept_apart = False  # the equations are still those of the step before, whose pairs were other ones
        self.whole()
        velocities = step.before, step.free, rows
        works = [search.give_back(model, velocities, LOST, KEPT) for search in self.searches]
        if all(work is None for work in works):
            return 0.0
        self.look(model, step, rows)
        return sum(work for work in works if work is not None)

    @property
    def sinks(self) -> bool:
        """Whether contacts come near to what they may lose: half way from `KEPT`, where giving back leaves them.

        More than one in `SINGLE`; to give back what single ones lose takes less than to keep all from losing more.
        """
        bound = 0.5 * (KEPT + LOST) * self._smallest
        if self.lost <= bound:
            return False
        near = np.array([sum(count_above(search.lost, bound) for search in self.searches)])
        if self.divided:
            self.team.add_up(near)
        return SINGLE * int(near[0]) > self.count

    def mobility(self, model) -> Mobility:
        """What impulses do to the bodies at their present orientation."""
        b = model.bodies
        inverse = np.zeros((len(b.mass) if self.turned else 0, 3, 3))
        if self.turned and self.apart is not None:
            self.apart.invert(self.apart.known, inverse, model.dimension)
        elif self.turned:
            motion.invert_inertia(b.kind, b.inertia, b.orientation, model.dimension, inverse, b.held)
        linear = self._linear if self.cell_mass is None else np.concatenate([self._linear, self.cell_mass])
        return Mobility(inverse, motion.KAPPA[model.dimension], model.dimension, linear, self.near.length)

    def _wrapped(self, model) -> np.ndarray:
        """(N, 3) where bodies are swept: in a cell, inside it."""
        position, space = model.bodies.position, self.near.space
        return wrapped(space, position) if isinstance(space, Periodic) else position

    def slices(self, model) -> np.ndarray:
        """(N,) the order of the bodies in which contacts are swept."""
        self.whole()
        second = np.concatenate([search.second_bodies(model) for search in self.searches])
        return slices(self._wrapped(model), second, self.near.reach)

    def fill(self, model, step: Step, rows, mobility=None, whole: bool = True) -> tuple[float, Mobility]:
        """The equations of the active contacts, with the first guess added to ``rows``; sum (rho b)^2 and the mobility.

        Unless they must be ``whole``, each process may have those alone that it sweeps.
        """
        counts = self._counts
        self._swept_apart, self._last_count = False, sum(counts.values())
        apart = self.divided and not whole and self.team.of(self._last_count, SMALL).several
        if self.divided and not apart:
            self.whole()
        mobility = self.mobility(model) if mobility is None else mobility
        fill = self._fill_own if apart else self._fill_all
        return fill(model, step, rows, mobility), mobility

    def _fill_all(self, model, step: Step, rows, mobility: Mobility) -> float:
        """`fill` of all contacts."""
        counts = self._counts
        plans = tuple([equations.make_room(counts.get(equations.number, 0)) for equations in self.equations])
        self._active = [equations for equations in self.equations if equations.count]
        self._homes = [self._home[equations.number] for equations in self._active]
        count, self.count = self.count, sum([equations.count for equations in self._active])
        if self.count != count or self._team.several:
            self._team = self._threads(self.team).of(self.count, SMALL)
        if not self.count:
            return 0.0
        team = self._team
        if counts.get(DIAGONAL) or counts.get(BORDER) or self.count > SMALL:
            candidates = tuple([search.candidates() for search in self.searches])
            place, kind, reach = self._wrapped(model), model.bodies.kind, self.near.reach
            tray_ = self._tray_of(rows, team)
            team.share(self._arrange, place, kind, rows, reach, candidates, plans, self._numbers, tray_)
            self._as_found = None
        elif counts != self._as_found:  # one thread, and nothing to gain by another order
            for equations, plan in zip(self.equations, plans, strict=True):
                as_found(plan, equations.count)
            self._as_found = counts
        scale = 0.0
        for equations, search in zip(self._active, self._homes, strict=True):
            scale += equations.fill(model, self.near, search.found, step, rows, mobility, team)
        return scale

    def _tray_of(self, rows, team: Team):
        """For those who arrange contacts."""
        if self._tray is None or len(self._tray.counts) != team.threads:
            self._tray = tray(len(rows), int(self._numbers.max()) + 1, team.threads)
        elif len(self._tray.home) != len(rows):
            self._tray = self._tray._replace(home=longer(self._tray.home, len(rows)))
        return self._tray

    def _fill_own(self, model, step: Step, rows, mobility: Mobility) -> float:
        """`fill` of the contacts that this process sweeps, some of which it gets from those that have found them."""
        team, division, apart = self.team, self._division, self._apart
        self._active = [equations for equations in self.equations if self._counts.get(equations.number)]
        self._homes, self._team = [self._home[equations.number] for equations in self._active], team
        self.count = self._last_count
        place, tray_ = model.bodies.position, self._tray_of(rows, team)
        division.cut(place, rows, apart.known, self.near.reach, tray_, tray_.counts.shape[1], team.alike)
        division.send_out(tray_.home, apart)
        mine = [division.of(search).mine for search in self.searches]
        for equations in self.equations if self._roomy else ():
            equations.drop_room()
        self._roomy = False
        if self.turned:
            apart.welcome([search.balls_of(some) for search, some in zip(self.searches, mine, strict=True)], mobility)
        counts = [np.bincount(some.kind, minlength=int(self._numbers.max()) + 1) for some in mine]
        plans = tuple([e.make_room(int(sum(count[e.number] for count in counts))) for e in self.equations])
        candidates = tuple([Candidates(some.a, some.b, some.kind, 0.0) for some in mine])
        team.alike.share(self._arrange_own, candidates, division.slabs.count, plans, self._numbers, tray_, rows)
        acting = (np.concatenate(rows_of) for rows_of in zip(*((some.a, some.b) for some in mine), strict=True))
        known = list(zip(self._active, self._homes, strict=True))
        team.take(apart.domains(*acting, tray_), [division.names(*pair) for pair in known])
        team.tell_idle([division.slabs.cuts[equations.number] for equations in self._active])
        self._swept_apart, self._as_found = True, None
        scale = 0.0
        for equations, search in known:
            scale += equations.fill(model, self.near, division.of(search).mine, step, rows, mobility, team)
        return scale

    def solve(self, model, step: Step, rows, settings: Settings, booked: bool = False) -> Solved:
        """Solve the contacts; with anticipation, again as long as the solution closes gaps of pairs left out.

        Impulses and status are kept; if they are ``booked`` next and nobody looks at them before, by `book`.
        """
        framed, sweeps, steps, mobility = 0.0, 0, 0, None
        while True:
            begin = clock()
            known = None if self.team.several else mobility  # it is of the bodies that are known here
            scale, mobility = self.fill(model, step, rows, known, settings.own is not None)
            framed += clock() - begin
            if self.count:
                kinds = tuple([equations.kind for equations in self._active])
                found, answer = self._solver.solve(Filled(
                    model, step, rows, mobility, scale, self._active, self._homes, self.count, self.count > SMALL,
                    kinds, self._resting, self.sinks, self.cell_mass, self._team, settings,
                    self._gathered if self._swept_apart else None,
                ))  # fmt: skip
                worst = self._place(found)
                if self.apart is not None:
                    self.apart.spread()
                sweeps, steps = sweeps + found.iterations, steps + answer.iterations
            begun = [search.status.copy() for search in self.searches] if step.anticipate else []
            cone, self._due = 0.0, (mobility, settings.tolerance) if booked and not step.anticipate else None
            if self._due is None:
                cone = self._store(rows, mobility, settings.tolerance)
            if not (step.anticipate and self._more(model, step, rows, begun)):
                if not self.count:
                    return Solved(0, 0.0, 0.0, -1, 0.0, cone, framed)
                return Solved(
                    sweeps + steps, found.residual, found.left, worst, found.bipotential, cone, framed, steps,
                    answer.told,
                )  # fmt: skip
            if self.apart is None:
                rows[:] = step.free
            else:
                self.apart.start_again()

    def _gathered(self, filled: Filled) -> Filled:
        """The same with the contacts of all processes, from now on known everywhere."""
        self.whole()
        self._team = self._team.alike
        kinds, mobility = tuple([equations.kind for equations in self._active]), self.mobility(filled.model)
        return filled._replace(kinds=kinds, mobility=mobility, team=self._team, gather=None)

    def _place(self, found) -> int:
        """The place of the worst contact of a solution among all, as the user has them."""
        if self._swept_apart:
            before = sum([self._counts[e.number] for e in self._active[: found.kind]])
            return before + self._division.rank_of(self._active[found.kind], self._homes[found.kind], found.worst)
        return sum([e.count for e in self._active[: found.kind]]) + self._active[found.kind].rank(found.worst)

    def _store(self, rows, mobility: Mobility, tolerance: float) -> float:
        """Keep impulses and status as memory; returns the largest distance to a cone, over the norm of all impulses."""
        cone, size = 0.0, 0.0
        for equations, search in zip(self._active, self._homes, strict=True):
            one, more = equations.store(self._pairs(search), rows, mobility, tolerance, self._team)
            cone, size = max(cone, one), size + more
        self._remember()
        return cone / math.sqrt(size) if size > 0 else 0.0

    def _remember(self) -> None:
        if self._swept_apart:
            self._division.remember()

    def _more(self, model, step: Step, rows, begun) -> bool:
        """With anticipation: whether the velocities just found close gaps of pairs left out; takes those in.

        They are then solved again with the status ``begun`` that the pairs had at the start of the step.
        """
        team = self._lookers(rows)
        if self.apart is None:
            self.near.follow(rows, step.h, True, step.free, team)
        else:
            self.apart.follow(rows, step.h, True, step.free)
        if not self.team.any(any(search.may_close(self.near, rows, step.h) for search in self.searches)):
            return False
        if self.divided:
            self._division.bring_back()
        ended, known = [search.status.copy() for search in self.searches], sum(self._counts.values())
        self._set_status(begun)
        old, divided = [search.found for search in self.searches], self.divided
        if self._find(model, Outlook(rows, rows, step.h, 0.0, True, True), team) > known:
            if self._shared and self.apart is None:
                self._apart.begin(model, step, rows, self.near, self._division.cuts)
            return True
        if self._shared and not divided:  # all contacts were solved together, and are known everywhere
            for search, found in zip(self.searches, old, strict=True):
                search.found = found
            self._division.active, self.team.divided = False, False
        self._set_status(ended)
        for search, found in zip(self.searches, old, strict=True) if self._swept_apart else ():
            self._division.of(search).found_again(found)
        return False

    def _set_status(self, values) -> None:
        for search, status in zip(self.searches, values, strict=True):
            search.status[:] = status

    def book(self, model, step: Step, rows, works, found: Solved) -> Solved:
        """Add the works of the contacts, law by law, to ``works`` (L, 4), and keep by how much they are too deep.

        And what `solve` has left to it: returns what was ``found`` with that.
        """
        self.lost, cone, size = 0.0, 0.0, 0.0
        for equations, search in zip(self._active, self._homes, strict=True):
            pairs, bodies, team = self._pairs(search), model.bodies, self._team
            if self._due is None:
                lost = equations.book(pairs, step, rows, bodies, works, team)
            else:
                one, more, lost = equations.keep(pairs, step, rows, *self._due, bodies, works, team)
                cone, size = max(cone, one), size + more
            self.lost = max(self.lost, lost)
        self._remember()
        return found if self._due is None else found._replace(cone=cone / math.sqrt(size) if size > 0 else 0.0)

    def recover(self, model, step: Step, rows, above, keep, most) -> float:
        """Open overlaps above a bound, both over the size of the smaller body; returns the work against gravity.

        Overlaps at the end of the step: the gap then is that at the midpoint plus h U_n / 2. Bodies are moved by
        ``most`` at most, until no overlap is above ``keep``.
        """
        self.whole()
        work = 0.0
        for search in self.searches:
            mine = [e for e in self._active if e.number in search.equations]
            if mine:
                which = np.concatenate([e.places for e in mine]).astype(np.int64)
                opening = 0.5 * step.h * np.concatenate([e.separations(rows) for e in mine])
                work += search.recover(model, rows, which, opening, above, keep, most)
        return work

    def deepest(self, model) -> tuple[Overlap, str]:
        """The largest overlaps of all kinds, and the word for the size by which they are measured."""
        worst, size, depth = Overlap(0.0, 0.0, -1, -1), "", 0.0
        for search in self.searches:
            found = self._division.of(search).deepest() if self.divided else search.deepest(model)
            depth = max(depth, found.depth)
            if found.share > worst.share:
                worst, size = found, search.size
        return Overlap(depth, *worst[1:]), size
