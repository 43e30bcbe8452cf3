"""The bodies of a simulation: their tables, their velocities, and which row has which number.

Rows are not numbers: bodies come, go and are sorted in space. What the user reads, frames and files are in the order
of the numbers (`by_number`); the checkpoint has the order of the rows.
"""

import numpy as np

from ..scenes.tables import Tables, kept, ordered, shifted
from ..state import Bodies, Model, Springs
from . import motion
from .growing import grown


class Roster:
    """``model`` with tables of its own, and ``rows`` (N, 8) of velocities: see `equations.contract`."""

    def __init__(self, model: Model):
        bodies = Bodies(*(np.array(array) for array in model.bodies))  # the scene has its own
        self._set(model._replace(bodies=bodies), packed(bodies))
        self.next_ball = len(model.balls.radius)
        self.ball_number = np.arange(self.next_ball)  # in the order in which they came

    def _set(self, model: Model, rows: np.ndarray, order: np.ndarray | None = None) -> None:
        """Rows come on a line of cache; those that stand in another ``order`` than before are not there yet."""
        if order is None:
            rows, order = grown(None, 0, rows), np.argsort(model.bodies.identity)
        self.model, self.rows, self.order = model, rows, order  # the last: rows in the order of the numbers

    @property
    def tables(self) -> Tables:
        """The present tables."""
        return Tables.of(self.model)

    def _replace(self, tables: Tables, rows: np.ndarray, order: np.ndarray | None = None) -> None:
        self._set(self.model._replace(**tables._asdict()), rows, order)

    # ---- rows and numbers --------------------------------------------------------------------------------------------

    def row(self, number: int) -> int | None:
        """The row of the body with this number, None where it was removed."""
        known = self.model.bodies.identity
        at = int(np.searchsorted(known, number, sorter=self.order))
        row = int(self.order[at]) if at < len(known) else -1
        return row if row >= 0 and known[row] == number else None

    def rows_of(self, numbers) -> np.ndarray:
        """The rows of the bodies with these numbers; -1 for the ground, -2 for bodies that were removed."""
        rows = [-1 if i < 0 else self.row(int(i)) for i in numbers]
        return np.array([-2 if row is None else row for row in rows], dtype=np.int64)

    def springs(self) -> Springs:
        """The springs of the model by rows; those of removed bodies go with them."""
        springs = self.model.springs
        if not len(springs.first):
            return springs
        springs = springs._replace(first=self.rows_of(springs.first), second=self.rows_of(springs.second))
        held = (springs.first > -2) & (springs.second > -2)
        return Springs(*(column[held] for column in springs))

    def by_number(self) -> Tables:
        """Bodies and their parts in the order of their numbers, with their present velocities."""
        rows = self.rows
        bodies = self.model.bodies._replace(velocity=rows[:, :3], spin=rows[:, 3:6] / rows[:, 7:])
        return ordered(self.tables._replace(bodies=bodies), self.order, np.argsort(self.ball_number))

    # ---- bodies that come and go -------------------------------------------------------------------------------------

    def append(self, new: Tables) -> None:
        """Add ``new`` bodies of a scene at the end."""
        first, balls = len(self.rows), len(self.ball_number)
        if first != new.bodies.identity[0]:  # rows follow on, whatever was removed
            new = shifted(new, first - int(new.bodies.identity[0]))
        numbers = self.next_ball + np.arange(len(new.balls.radius))
        self.ball_number, self.next_ball = grown(self.ball_number, balls, numbers), self.next_ball + len(numbers)
        rows = grown(self.rows, first, packed(new.bodies))
        order = grown(self.order, first, np.arange(first, len(rows)))  # numbers only grow
        self._replace(appended(self.tables, new), rows, order)

    def keep(self, stay: np.ndarray) -> None:
        """Take out the bodies for which the mask ``stay`` (N,) is false."""
        self.ball_number = self.ball_number[stay[self.model.balls.body]]
        self._replace(kept(self.tables, stay), self.rows[stay])

    def sort(self, order: np.ndarray) -> np.ndarray:
        """Put body ``order[k]`` into row k, its balls with it; returns the order of the balls."""
        ball = np.lexsort((self.ball_number, np.argsort(order)[self.model.balls.body]))
        self.ball_number = self.ball_number[ball]
        self._replace(ordered(self.tables, order, ball), self.rows[order])
        return ball

    def restore(self, tables: Tables, scaled_spin: np.ndarray, checkpoint: dict) -> None:
        """Take over the bodies of a file, in the order of the rows that its checkpoint has."""
        order = checkpoint.get("row_order", np.arange(len(tables.bodies.mass)))  # none in files of unsorted bodies
        self.next_ball = len(tables.balls.radius)
        self.ball_number = checkpoint.get("ball_order", np.arange(self.next_ball))
        tables = ordered(tables, order, self.ball_number)
        rows = packed(tables.bodies)
        rows[:, 3:6] = scaled_spin[order]
        self._replace(tables, rows)

    def memory(self) -> dict:
        """Rows and balls in the order of the simulation, by their place in the frame and among the balls present."""
        return {"row_order": np.argsort(self.order), "ball_order": np.argsort(np.argsort(self.ball_number))}

    def kinetic(self, first: int = 0) -> float:
        """The kinetic energy of the free bodies from row ``first`` on, J."""
        b, rows = self.model.bodies, self.rows[first:]
        columns = (column[first:] for column in (b.kind, b.mass, b.inertia, b.orientation, b.held))
        return motion.energies(rows, rows, rows, *columns)[0]


def appended(tables: Tables, new: Tables) -> Tables:
    """The ``tables`` with the rows of ``new`` ones behind them."""
    return Tables(*(
        type(table)(*(grown(column, len(column), more) for column, more in zip(table, rows, strict=True)))
        if len(rows[0]) else table
        for table, rows in zip(tables, new, strict=True)
    ))  # fmt: skip


def packed(bodies: Bodies) -> np.ndarray:
    """The rows (N, 8) of bodies from their velocities and spins."""
    rows = np.empty((len(bodies.mass), 8))
    motion.pack(bodies.velocity, bodies.spin, bodies.mass, bodies.kind, bodies.simple, bodies.size, rows)
    return rows
