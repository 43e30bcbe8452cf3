"""Arrays with room behind them: a body that comes takes the next row, and all others stay where they are in memory.

A grain that comes to 20 000 bodies would move some 50 columns, 10 MB of memory that no cache holds: as long as a third
of a step.
"""

import math

import numpy as np

from .pages import zero_bytes

ROOM = 8  # an array that must be moved gets room for one row more in so many


class Memory(np.ndarray):
    """Bytes of which an array has the first ones, ``used`` of them."""

    used = 0


def longer(array: np.ndarray, *shape: int) -> np.ndarray:
    """An array of this ``shape``, on a line of cache, that begins with the numbers of ``array``; others are anything.

    It stands in the memory of ``array`` where that has room behind it which no other array has taken: of two that go
    on from the same one, the second is a copy. So are those that go on from a part of an array.
    """
    size, memory = math.prod(shape) * array.itemsize, array.base
    if not (isinstance(memory, Memory) and memory.used == array.nbytes and size <= memory.size):
        memory = zero_bytes(size + size // ROOM, Memory)
        np.ndarray(array.shape, array.dtype, memory)[:] = array
    memory.used = size
    return np.ndarray(shape, array.dtype, memory)


def grown(column: np.ndarray | None, first: int, values: np.ndarray) -> np.ndarray:
    """The rows of a ``column`` (K, ...) before ``first``, and ``values`` from there on, as `longer`: none is shared."""
    if first == 0:
        column = values[:0]
    elif len(column) != first:
        column = column[:first]
    out = longer(column, first + len(values), *values.shape[1:])
    out[first:] = values
    return out
