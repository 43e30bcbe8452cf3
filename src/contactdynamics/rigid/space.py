"""How positions are measured: the vector from one place to another, and the cells that places lie in.

Kernels take the space as an argument and call `shortest`, `cell_of` and `cell_beside`; which functions these are
follows from the type of the space when the kernel is compiled. In the open space they are a subtraction and a division,
and cost nothing. Another space is a named tuple with its three functions entered in `SPACES`: no kernel changes.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._jit import kernel


class Open(NamedTuple):
    """Space without borders."""

    border: float = np.inf  # m; a named tuple for kernels has one field at least


class Measures(NamedTuple):
    """The functions of a space.

    ``shortest(space, x, y, z)``: the difference of two places as the shortest vector from one to the other.
    ``cell_of(space, x, y, z, size)``: whole numbers of the cell of about this size that a place lies in.
    ``cell_beside(space, x, y, z, size)``: the cell with these numbers, which may lie beyond a border.
    """

    shortest: object
    cell_of: object
    cell_beside: object


SPACES: dict[type, Measures] = {}


def shortest(space, x, y, z):
    """See `Measures`."""
    return SPACES[type(space)].shortest(space, x, y, z)


def cell_of(space, x, y, z, size):
    """See `Measures`."""
    return SPACES[type(space)].cell_of(space, x, y, z, size)


def cell_beside(space, x, y, z, size):
    """See `Measures`."""
    return SPACES[type(space)].cell_beside(space, x, y, z, size)


@overload(shortest)
def _compiled_shortest(space, x, y, z):
    chosen = SPACES[space.instance_class].shortest
    return lambda space, x, y, z: chosen(space, x, y, z)


@overload(cell_of)
def _compiled_cell_of(space, x, y, z, size):
    chosen = SPACES[space.instance_class].cell_of
    return lambda space, x, y, z, size: chosen(space, x, y, z, size)


@overload(cell_beside)
def _compiled_cell_beside(space, x, y, z, size):
    chosen = SPACES[space.instance_class].cell_beside
    return lambda space, x, y, z, size: chosen(space, x, y, z, size)


@kernel(inline=True)
def _same(space, x, y, z):
    return x, y, z


@kernel(inline=True)
def _open_cell(space, x, y, z, size):
    return int(np.floor(x / size)), int(np.floor(y / size)), int(np.floor(z / size))


@kernel(inline=True)
def _same_cell(space, x, y, z, size):
    return x, y, z


SPACES[Open] = Measures(_same, _open_cell, _same_cell)
OPEN = Open()
