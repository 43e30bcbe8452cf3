"""How positions are measured: the vector from one place to another, and the cells that places lie in.

Kernels take the space as an argument and call `shortest`, `cell_of` and `cell_beside`; which functions these are
follows from the type of the space when the kernel is compiled. In the open space they are a subtraction and a division,
and cost nothing. Another space is a named tuple with its functions entered in `SPACES`: no kernel changes.
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
    ``span(space, axis, steps, size)``: the first and the last of the cells up to ``steps`` away, each cell once.
    ``half(space)``: vectors shorter than this are the shortest ones; of longer ones `shortest` gives some image.
    ``image(space, x, y, z)``: what `shortest` adds to this difference of two places, as a vector.
    """

    shortest: object
    cell_of: object
    cell_beside: object
    span: object = None  # none: as in open space, in which no cell is met twice
    half: object = None
    image: object = None


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


def span(space, axis, steps, size):
    """See `Measures`."""
    return (SPACES[type(space)].span or _everywhere)(space, axis, steps, size)


def half(space):
    """See `Measures`."""
    return (SPACES[type(space)].half or _endless)(space)


def image(space, x, y, z):
    """See `Measures`."""
    return (SPACES[type(space)].image or _none)(space, x, y, z)


@overload(span)
def _compiled_span(space, axis, steps, size):
    chosen = SPACES[space.instance_class].span or _everywhere
    return lambda space, axis, steps, size: chosen(space, axis, steps, size)


@overload(half)
def _compiled_half(space):
    chosen = SPACES[space.instance_class].half or _endless
    return lambda space: chosen(space)


@overload(image)
def _compiled_image(space, x, y, z):
    chosen = SPACES[space.instance_class].image or _none
    return lambda space, x, y, z: chosen(space, x, y, z)


@kernel(inline=True)
def _everywhere(space, axis, steps, size):
    return -steps, steps


@kernel(inline=True)
def _endless(space):
    return np.inf


@kernel(inline=True)
def _none(space, x, y, z):
    return 0.0, 0.0, 0.0


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


class Periodic(NamedTuple):
    """A parallelepiped that is repeated along some of its vectors h1, h2, h3; numbers alone, no arrays, for speed.

    A place is H s with the shares s; H has the vectors as columns. Nothing shorter than half the smallest distance of
    two opposite faces has a second image, so that rounding the shares finds the shortest vector.
    """

    h11: float  # H, row by row, m
    h12: float
    h13: float
    h21: float
    h22: float
    h23: float
    h31: float
    h32: float
    h33: float
    s11: float  # its inverse
    s12: float
    s13: float
    s21: float
    s22: float
    s23: float
    s31: float
    s32: float
    s33: float
    p1: float  # 1 where space is repeated along the vector, else 0
    p2: float
    p3: float
    w1: float  # distance of the two faces that the vector joins, m
    w2: float
    w3: float
    half: float  # half the smallest of them along repeated vectors, m


def periodic(vectors: np.ndarray, repeated) -> Periodic:
    """The space of a cell: ``vectors`` (3, 3) as columns, ``repeated`` (3,) along which of them."""
    inverse = np.linalg.inv(vectors)
    widths = 1.0 / np.sqrt((inverse**2).sum(axis=1))
    repeated = np.asarray(repeated, dtype=bool)
    return Periodic(
        *vectors.ravel().tolist(), *inverse.ravel().tolist(), *repeated.astype(float).tolist(), *widths.tolist(),
        float(0.5 * widths[repeated].min(initial=np.inf)),
    )  # fmt: skip


@kernel
def wrapped(space, places):
    """The places (k, 3) inside the cell, those with shares from 0 to 1."""
    out = np.empty_like(places)
    for i in range(places.shape[0]):
        x, y, z = places[i, 0], places[i, 1], places[i, 2]
        a, b, c = _shares(space, x, y, z)
        a, b, c = space.p1 * np.floor(a), space.p2 * np.floor(b), space.p3 * np.floor(c)
        out[i, 0] = x - (space.h11 * a + space.h12 * b + space.h13 * c)
        out[i, 1] = y - (space.h21 * a + space.h22 * b + space.h23 * c)
        out[i, 2] = z - (space.h31 * a + space.h32 * b + space.h33 * c)
    return out


@kernel
def images(space, apart):
    """What `shortest` adds to these differences of places (k, 3), as vectors."""
    out = np.empty_like(apart)
    for k in range(out.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = image(space, apart[k, 0], apart[k, 1], apart[k, 2])
    return out


@kernel(inline=True)
def _shares(space, x, y, z):
    return (
        space.s11 * x + space.s12 * y + space.s13 * z,
        space.s21 * x + space.s22 * y + space.s23 * z,
        space.s31 * x + space.s32 * y + space.s33 * z,
    )


@kernel(inline=True)
def _image(space, x, y, z):
    a, b, c = _shares(space, x, y, z)
    a, b, c = -space.p1 * np.rint(a), -space.p2 * np.rint(b), -space.p3 * np.rint(c)
    return (
        space.h11 * a + space.h12 * b + space.h13 * c,
        space.h21 * a + space.h22 * b + space.h23 * c,
        space.h31 * a + space.h32 * b + space.h33 * c,
    )


@kernel(inline=True)
def _around(space, x, y, z):
    a, b, c = _image(space, x, y, z)
    return x + a, y + b, z + c


@kernel(inline=True)
def _numbered(share, repeated, width, size):
    if repeated == 0.0:
        return int(np.floor(share * (width / size)))
    count = max(1, int(width / size))
    return int((share - np.floor(share)) * count) % count


@kernel(inline=True)
def _periodic_cell(space, x, y, z, size):
    a, b, c = _shares(space, x, y, z)
    return (
        _numbered(a, space.p1, space.w1, size),
        _numbered(b, space.p2, space.w2, size),
        _numbered(c, space.p3, space.w3, size),
    )


@kernel(inline=True)
def _beyond(k, repeated, width, size):
    return k if repeated == 0.0 else k % max(1, int(width / size))


@kernel(inline=True)
def _periodic_beside(space, x, y, z, size):
    return (
        _beyond(x, space.p1, space.w1, size),
        _beyond(y, space.p2, space.w2, size),
        _beyond(z, space.p3, space.w3, size),
    )


@kernel(inline=True)
def _periodic_span(space, axis, steps, size):
    repeated, width = (space.p1, space.w1) if axis == 0 else (space.p2, space.w2) if axis == 1 else (space.p3, space.w3)
    count = max(1, int(width / size))
    if repeated == 0.0 or 2 * steps + 1 <= count:
        return -steps, steps
    return 0, count - 1


@kernel(inline=True)
def _periodic_half(space):
    return space.half


SPACES[Periodic] = Measures(_around, _periodic_cell, _periodic_beside, _periodic_span, _periodic_half, _image)
