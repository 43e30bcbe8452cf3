"""The list of active contacts of polygons and polyhedra, with its memory."""

from typing import NamedTuple

import numpy as np

from ..pages import zeros

FIRST, SECOND, FEATURE, END, AXIS, LAW = range(6)
NAME_ONE, NAME_TWO = FEATURE, END  # of a contact of polyhedra: see `cutting`
SIZE, NX, NY, X, Y = range(5)
PLACE = range(1, 7)  # of a contact of polyhedra, after SIZE: normal, point


class Touches(NamedTuple):
    """Active contacts (K,), in the order of their pairs, those with planes last; with memory."""

    index: np.ndarray  # (K, 6) FIRST ball (or plane, from row `planes` on), SECOND ball, FEATURE, END, AXIS, LAW
    a: np.ndarray  # (K,) rows of the bodies
    b: np.ndarray  # (K,)
    gap: np.ndarray  # (K,) m
    place: np.ndarray  # (K, 1 + 2d) SIZE of the smaller body, normal (from first to second), point (halfway in the gap)
    memory: np.ndarray  # (K, 3) impulse on the second body in space (N s), moment (N m s); (K, 6) in three dimensions
    status: np.ndarray  # (K,)
    lost: np.ndarray  # (K,) how much deeper it is than the law has it, by what the solver left, m
    kind: np.ndarray  # (K,) number of the equations that they belong to, where there are several
    planes: int  # row of the first contact with a plane


class Rules(NamedTuple):
    """The laws of pairs of materials, and of single joints."""

    law_index: np.ndarray  # (M, M)
    sticky: np.ndarray  # (L,) with cohesion or tension
    material: np.ndarray  # (S,) of the balls
    joints: np.ndarray  # (J, 3) see `laws`
    four: bool  # whether joints of polyhedra are thinned to four contacts


class Share(NamedTuple):
    """What one thread searches: the pairs whose first ball is one of these, then contacts of some balls with planes."""

    begin: int
    end: int
    low: int  # those that are looked at for contacts with planes
    high: int
    alone: bool  # nobody else searches; corners are not in their places yet


def touch_arrays(room: int, dimension: int = 2) -> Touches:
    """Arrays for ``room`` contacts, none of them used."""
    return Touches(
        zeros((room, 6), np.int32), *(zeros(room, np.uint32) for _ in range(2)), zeros(room),
        zeros((room, 1 + 2 * dimension)), zeros((room, 3 * dimension - 3)), zeros(room, np.int8),
        zeros(room), zeros(room, np.int8), 0,
    )  # fmt: skip
