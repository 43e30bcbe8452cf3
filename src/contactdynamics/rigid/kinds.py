"""The kinds of contacts that a scene has, put together: neighbours, searches, equations, and what they remember.

A *search* finds where bodies touch and remembers it; *equations* hold the unknowns of the active contacts. Which kinds
a scene has is found when its tables change (`derive`); nothing here asks for a kind by name. What the user reads, and
what follows bodies that come and go, is here; the verbs of a step are those of `ContactSet`.
"""

import copy
import math

import numpy as np

from ..scenes.frames import no_contacts
from ..state import FREE, Contacts
from . import motion
from .equations.border import Border
from .equations.cellular import Cellular
from .equations.diagonal import Diagonal
from .equations.full import Full
from .equations.planar import Planar
from .equations.spatial import Spatial
from .neighbours import Neighbours, first_ball
from .search.balls import BallSearch
from .search.polygons import PolygonSearch
from .search.polyhedra import PolyhedronSearch
from .space import OPEN

SEARCHES = (BallSearch, PolygonSearch, PolyhedronSearch)
EQUATIONS = (Diagonal, Border, Full, Planar, Spatial, Cellular)


class Kinds:
    """Searches and equations of a scene; ``model`` is its `Model`, ``rows`` (N, 8) the velocities."""

    def __init__(self, space=OPEN, length: float = 0.0):
        self.near = Neighbours(space, length)
        self.cell_mass = None  # (3, 3) inverse masses of the rows of a moving cell
        self._kinds_of_search = tuple(kind() for kind in SEARCHES)
        self.searches, self.equations, self.count = [], [], 0  # active contacts of all kinds
        self.lost = 0.0  # not less than any contact has lost, m

    def whole(self) -> None:
        """Know all contacts, where processes have shared them: see `ContactSet.whole`."""

    def thin(self) -> None:
        """From the next `derive` on have at most four contacts in a joint of polyhedra."""
        for search in self._kinds_of_search:
            search.four = True

    def derive(self, model, first: int = 0) -> None:
        """Follow the tables of the model: at the start, when bodies come or go, or are sorted.

        Bodies before row ``first`` are those of the last time, in their rows.
        """
        known = self.searches
        self.near.derive(model, first)
        self.searches = [search for search in self._kinds_of_search if search.derive(model, self.near, first)]
        smallest = float(self.sizes(model, first).min(initial=math.inf))
        self._smallest = min(self._smallest, smallest) if first else smallest
        self.turned = any(search.needs_inertia for search in self.searches)
        self._linear = (
            motion.by_direction(model.bodies) if model.bodies.held.any() or self.near.length else np.zeros((0, 3))
        )
        self._resting = [search for search in self.searches if search.rests]
        # planes that move freely touch bodies everywhere: no process has all of their contacts
        self._lidded = bool((model.bodies.kind[model.planes.body] == FREE).any())
        numbers = [number for search in self.searches for number in search.equations]
        if first and self.searches == known and numbers == list(self._home) and not self.near.length:
            self._clear_equations()
        else:
            self._begin_equations()

    def _clear_equations(self) -> None:
        """The same equations without contacts."""
        for equations in self.equations:
            equations.make_room(0)
        self.count, self._active = 0, []

    def _begin_equations(self) -> None:
        """Equations without contacts, for what the searches may find."""
        self._home = {number: search for search in self.searches for number in search.equations}
        kinds = [kind() for kind in EQUATIONS if kind.number in self._home]
        old = {type(equations): equations for equations in self.equations}
        self.equations = [old.get(type(kind), kind) for kind in kinds]  # their arrays have room already
        for equations in self.equations:
            equations.clear()
        self.count, self._active = 0, []  # of the equations, those that have contacts

    def move_cell(self, space, recut: bool) -> None:
        """The cell has another shape; cut anew, its lists are built anew."""
        self.near.space = space
        if recut:
            self.near.lists = None

    # ---- what the user reads -----------------------------------------------------------------------------------------

    def described(self, model, rows) -> Contacts:
        """The contacts of the step with their frames, in the scene's dimension; kind after kind, in order."""
        self.whole()
        d, identity, parts = model.dimension, model.bodies.identity, [no_contacts(model.dimension)]
        for e, x, gap in zip(self.equations, *self.explicit(rows, d), strict=True):
            points = self._home[e.number].points(self.near, x.place)
            parts.append(Contacts(
                np.stack([identity[x.a], identity[x.b]], axis=1), points[:, :d].copy(), x.frame[:, 0, :d].copy(), gap,
                x.impulse[:, :d].copy(), x.frame[:, :d, :d].copy(), x.status.copy(),
                x.moment.copy() if d == 3 else x.moment[:, 2:].copy(),
            ))  # fmt: skip
        return Contacts(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def moments(self, model) -> np.ndarray:
        """(3, 3) sum of P_i l_j over the contacts, l from the centre of a (or the plane) to that of b; N s m."""
        self.whole()
        total = np.zeros((3, 3))
        for search in self.searches:
            impulse, branch = search.branches(model, self.near)
            total += impulse.T @ branch
        return total

    def targets(self) -> np.ndarray:
        """(C,) normal velocities that the laws ask for, in the order of `described`; m/s."""
        self.whole()
        return np.concatenate([np.zeros(0), *(equations.targets for equations in self.equations)])

    def explicit(self, rows, dimension) -> tuple[list, list]:
        """The contacts written out, kind by kind, and their gaps."""
        self.whole()
        written = [equations.explicit(rows, dimension) for equations in self.equations]
        gaps = [self._home[e.number].found.gap[x.place] for e, x in zip(self.equations, written, strict=True)]
        return written, gaps

    def sizes(self, model, first: int = 0) -> np.ndarray:
        """(S,) radii of the balls inside the parts of bodies from row ``first`` on, m."""
        begin = first_ball(model, first)
        sizes = [model.balls.radius, *(search.sizes(model) for search in self.searches)]
        return np.minimum.reduce([size[begin:] for size in sizes])

    def overlapping(self, model, above: float) -> list:
        """(share, depth, a, b) of the pairs of rows that overlap by more than ``above`` of their size, worst first."""
        self.whole()
        worst = {}
        for search in self.searches:
            c, shares = search.candidates(), search.overlaps(model)
            for k in np.flatnonzero(shares > above):
                pair = (min(int(c.a[k]), int(c.b[k])), max(int(c.a[k]), int(c.b[k])))
                worst[pair] = max(worst.get(pair, (0.0, 0.0)), (float(shares[k]), -float(search.found.gap[k])))
        return sorted(((*value, *pair) for pair, value in worst.items()), reverse=True)

    # ---- bodies that come and go, memory -----------------------------------------------------------------------------

    @property
    def sortable(self) -> bool:
        """Whether bodies may be put into another order: all that searches remember can be turned round."""
        return all(search.sortable for search in self.searches)

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        self.whole()
        for search in self._kinds_of_search:
            search.remove(ball, plane)
        self._follow_lost()

    def _follow_lost(self) -> None:
        self.lost = max(float(search.lost.max(initial=0.0)) for search in self._kinds_of_search)

    def renumber(self, order: np.ndarray) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k."""
        self.whole()
        for search in self.searches:
            search.renumber(order)

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        self.whole()
        return {name: array for search in self._kinds_of_search for name, array in search.memory().items()}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint."""
        self.whole()
        for search in self._kinds_of_search:
            search.restore(checkpoint)
        self._follow_lost()

    def forget(self) -> None:
        """Drop contacts, memory and neighbours; arrays handed out before stay as they are."""
        self.whole()
        self.near.lists = None
        for search in self._kinds_of_search:
            search.forget()
        self.lost = 0.0
        self._begin_equations()

    def trial(self):
        """A copy that goes on with the memory, in arrays of its own: whatever it does leaves this one as it is."""
        other = copy.copy(self)
        other.near = self.near.trial()
        twins = {id(search): search.trial() for search in self._kinds_of_search}
        other._kinds_of_search = tuple(twins.values())
        other.searches = [twins[id(search)] for search in self.searches]
        other._resting = [search for search in other.searches if search.rests]
        other.equations = []
        other._begin_equations()
        return other
