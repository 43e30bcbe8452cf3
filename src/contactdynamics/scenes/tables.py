"""Tables of bodies and of what they are made of: named tuples of arrays with the same few operations.

Every table but that of the bodies has a column ``body`` with the row of the body that each of its rows belongs to. Who
adds, removes, sorts, writes or exports bodies loops over `Tables`, whatever kinds of parts there are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..state import NO_CORNERS, NO_RIMS, Balls, Bodies, Corners, Planes, Rims

NO_BALLS = Balls(np.zeros(0), np.zeros((0, 3)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
NO_PLANES = Planes(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def join(tables: Sequence):
    """One table of the rows of several of the same kind."""
    return type(tables[0])(*(np.concatenate(column) for column in zip(*tables, strict=True)))


def take(table, rows):
    """The ``rows`` of a table: numbers or a mask."""
    return type(table)(*(column[rows] for column in table))


def renumber(table, new_row: np.ndarray):
    """A table of parts when body k becomes body ``new_row[k]``."""
    return table._replace(body=new_row[table.body])


class Tables(NamedTuple):
    """Bodies with their parts."""

    bodies: Bodies
    balls: Balls = NO_BALLS
    planes: Planes = NO_PLANES
    corners: Corners = NO_CORNERS
    rims: Rims = NO_RIMS

    @property
    def parts(self) -> tuple:
        """The tables of parts."""
        return self[1:]

    @classmethod
    def of(cls, model) -> "Tables":
        """The tables of a `Model`."""
        return cls(*(getattr(model, name) for name in cls._fields))


def join_all(several: Sequence[Tables]) -> Tables:
    """Several sets of bodies as one."""
    return Tables(*(join(column) for column in zip(*several, strict=True)))


def shifted(tables: Tables, rows: int) -> Tables:
    """The same bodies ``rows`` farther down."""
    return Tables(tables.bodies, *(part._replace(body=part.body + rows) for part in tables.parts))


def kept(tables: Tables, stay: np.ndarray) -> Tables:
    """The bodies for which the mask ``stay`` (N,) is true, with their parts."""
    new_row = np.cumsum(stay) - 1
    return Tables(take(tables.bodies, stay), *(renumber(take(part, stay[part.body]), new_row) for part in tables.parts))


def ordered(tables: Tables, order: np.ndarray, balls: np.ndarray) -> Tables:
    """Body ``order[k]`` as body k, and ball ``balls[k]`` as ball k; planes stay in their order."""
    new_row = np.argsort(order)
    tables = tables._replace(balls=take(tables.balls, balls))
    parts = [renumber(part, new_row) for part in tables.parts]
    of_bodies = [take(part, np.argsort(part.body, kind="stable")) for part in parts[2:]]
    return Tables(take(tables.bodies, order), *parts[:2], *of_bodies)
