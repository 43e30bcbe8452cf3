"""What all searches have in common: a *search* finds where bodies touch, and remembers it from step to step.

The list of active contacts is kept in the order of the pairs, so that every bit of the result is independent of when
the neighbour lists were built; impulse and status of a contact carry over to the next step (2003, section 8).
"""

from typing import NamedTuple, Protocol

import numpy as np

# The kinds of equations that contacts may need: all balls; lever arms or other laws; polygons; polyhedra; balls across
# the border of a cell that moves; polygons and polyhedra in a cell.
DIAGONAL, FULL, PLANAR, SPATIAL, BORDER, CELLULAR = range(6)
NEAR = 1e-4  # of the smaller size: what pushed stays active up to this gap, between polygons what did not push too


class Outlook(NamedTuple):
    """By which velocities a search looks ahead, and what counts as touching."""

    one: np.ndarray  # (N, 8) velocities; a gap closes at the more dangerous of the two
    two: np.ndarray  # (N, 8)
    h: float  # s
    slack: float  # bodies nearer than this count as touching, m
    anticipate: bool  # contacts whose gap would close within the step are active
    keep: bool  # what is active stays


class Candidates(NamedTuple):
    """The active contacts of a search (K,), as the order of the sweeps needs them."""

    a: np.ndarray  # (K,) rows of the bodies
    b: np.ndarray  # (K,)
    kind: np.ndarray  # (K,) number of the equations that each belongs to
    open_: float  # the largest gap, m; 0 where there is none
    across: np.ndarray = np.zeros(0, dtype=bool)  # (K,) acts on a moving cell, beside `BORDER`; (0,) where none does


def head_of(filled, count: int, split: int, known):
    """The first ``count`` rows of a list that was ``filled``, which ends with ``split``; ``known`` where it is these.

    A search fills two lists in turn, and mostly finds as many contacts as two steps before.
    """
    if known[0].base is filled[0].base and len(known[0]) == count and known[-1] == split:
        return known
    return type(filled)(*[array[:count] for array in filled[:-1]], split)


class Overlap(NamedTuple):
    """The deepest places."""

    depth: float  # largest overlap, m
    share: float  # largest overlap over the size of the smaller body
    a: int  # rows of the bodies of the latter; -1 where nothing overlaps
    b: int


class Search(Protocol):
    """What a `ContactSet` asks of a search; ``near`` are the `Neighbours`."""

    equations: tuple  # numbers of the equations that its contacts may belong to
    needs_inertia: bool  # whether these need more of a body than its row
    sortable: bool  # whether bodies may be sorted: the contacts can be turned round
    divisible: bool  # whether processes may share what it finds: see `ranks.portions`; the next ones only if so
    goes: tuple  # names of the columns of ``found`` that contacts take along which are swept by another process
    comes_back: tuple  # those that are remembered
    on_planes: np.ndarray  # (planes,) how many contacts each plane has
    rests: bool  # whether quiet steps are improved beyond the tolerance: see `solvers.aim`
    first: float  # of the tolerance, where they are: the goal of a step without memory
    found: NamedTuple  # the active contacts, with their ``gap`` (K,) and their memory: impulse and status
    size: str  # what overlaps are measured by, in words
    status: np.ndarray  # (K,) of the active contacts
    lost: np.ndarray  # (K,) how much deeper they are than the law has it, by what solvers left, m

    def derive(self, model, near, first: int = 0) -> bool:
        """Follow the tables of the model: when bodies come or go, or are sorted; whether there is anything to find.

        Bodies before row ``first`` are those of the last time, in their rows; laws may be others.
        """

    def find(self, model, near, outlook: Outlook, team) -> dict:
        """Find the active contacts, with the memory of the present ones, which they replace.

        Returns how many belong to which equations. ``team`` (`threads.Team`): who may share the work. Of processes each
        finds those whose first ball is in ``near.span``.
        """

    def extremes(self) -> tuple:
        """Of those last found: largest overlap, m, and over the size of the smaller body, its place; largest gap, m."""

    def owes(self, model, above) -> bool:
        """Whether some contact has lost more than ``above`` of its smaller size."""

    def arrays(self, room: int) -> NamedTuple:
        """A list of contacts with ``room`` for so many, its columns of another length maybe."""

    def first_of(self, found) -> np.ndarray:
        """(K,) the first balls, or planes, of such a list."""

    def balls_of(self, found) -> np.ndarray:
        """(n,) all balls."""

    def candidates(self) -> Candidates:
        """The active contacts."""

    def sizes(self, model) -> np.ndarray:
        """(S,) radii of the balls inside the parts, m: overlaps are measured by them."""

    def second_bodies(self, model) -> np.ndarray:
        """(K,) rows of the second bodies, also of contacts that come from a checkpoint."""

    def points(self, near, places) -> np.ndarray:
        """(k, 3) where the contacts in these ``places`` of the list act, m."""

    def branches(self, model, near) -> tuple[np.ndarray, np.ndarray]:
        """(K, 3) impulses on b in space, and (K, 3) from the centre of a (the contact on a plane) to that of b."""

    def deepest(self, model) -> Overlap:
        """The largest overlaps."""

    def overlaps(self, model) -> np.ndarray:
        """(K,) overlaps over the size of the smaller part; negative where there is a gap."""

    def may_close(self, near, rows, h) -> bool:
        """Whether a pair that is not active may close its gap within the time h, at the velocities ``rows``; where this
        is not known sooner than by `find`, True.
        """

    def recover(self, model, rows, which, opening, above, keep, most) -> float:
        """Open overlaps at the end of a step: see `ContactSet.recover`; returns the work against gravity."""

    def give_back(self, model, velocities, above, keep) -> float | None:
        """Open what contacts have lost: see `ContactSet.detect`; returns the work, None where there is nothing.

        ``velocities``: arrays (N, 8) in which the spin of a body turns with it.
        """

    def remove(self, ball, plane) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""

    def renumber(self, order) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k."""

    def memory(self) -> dict:
        """The arrays of a checkpoint."""

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint."""

    def forget(self) -> None:
        """Drop contacts and memory; arrays handed out before stay as they are."""

    def trial(self) -> "Search":
        """A copy that goes on with the memory, in arrays of its own."""
