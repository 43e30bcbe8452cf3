"""Ghosts: parts of polygons and polyhedra where their images are, for pairs that meet across the border of a cell.

The searches of such bodies compare places in space. In a periodic cell each entry of the neighbour lists whose two
balls meet across the border gets a ghost of the second one: a ball, a body with the place and the velocity of the
image, and a copy of its part. The search then knows of no border, and what it finds is told of the bodies themselves.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...state import FIXED
from ..space import image
from .contract import Outlook
from .touches import FIRST, SECOND, Touches


class Ghosts(NamedTuple):
    """The ghosts of a step (G,), among S balls and R rows of bodies."""

    ball: np.ndarray  # (G,) whose ghosts these are
    body: np.ndarray  # (G,) the rows of their bodies
    real: np.ndarray  # (G,) the rows of the bodies whose images these are
    at: np.ndarray  # (G,) their places in the neighbour lists
    first: np.ndarray  # (G,) the balls in whose lists they are
    shift: np.ndarray  # (G, 3) how far the image is from the ball, m
    balls: int  # S
    rows: int  # R


@kernel
def crossings(space, places, start, count, other):
    """(G, 3) places in the lists, balls with the lists and balls in them that meet across the border; images (G, 3)."""
    found = 0
    while True:  # once to count them, and again where there are any
        index, shift = np.empty((found, 3), dtype=np.int64), np.empty((found, 3))
        room, found = found, 0
        for i in range(count.size):
            for n in range(start[i], start[i] + count[i]):
                j = other[n]
                x, y, z = image(
                    space, places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
                )
                if x != 0.0 or y != 0.0 or z != 0.0:
                    if found < room:
                        index[found, 0], index[found, 1], index[found, 2] = n, i, j
                        shift[found, 0], shift[found, 1], shift[found, 2] = x, y, z
                    found += 1
        if found == room:
            return index, shift


@kernel
def move_last(start, count, other, balls):
    """In each list put the ghosts, from number ``balls`` on, after the others; their order stays."""
    for i in range(count.size):
        kept, held = start[i], np.empty(count[i], dtype=np.int64)
        ghosts = 0
        for n in range(start[i], start[i] + count[i]):
            if other[n] < balls:
                other[kept] = other[n]
                kept += 1
            else:
                held[ghosts] = other[n]
                ghosts += 1
        for k in range(ghosts):
            other[kept + k] = held[k]


def ghosts(near, rows: int) -> Ghosts:
    """The ghosts of all pairs in the neighbour lists that meet across the border; ``rows`` there are of bodies."""
    index, shift = crossings(near.space, near.places, *near.listed)
    at, first, ball = index.T
    return Ghosts(
        ball, rows + np.arange(len(ball)), near.spheres.body[ball], at, first, shift, len(near.spheres.radius), rows
    )


def lay(g: Ghosts, near, pose, outlook: Outlook) -> tuple:
    """Balls, neighbour lists, pose and outlook as a search has them, with the ghosts at the ends of their tables."""
    spheres, lists, (position, orientation) = near.spheres, near.listed, pose
    blank = g.rows - len(position)  # rows of a moving cell

    def moved(velocities):
        image_of = velocities[g.real]
        if near.length:
            image_of[:, :3] += g.shift @ velocities[-3:, :3] / near.length
        return np.concatenate([velocities, image_of])

    def more(array):
        return np.concatenate([array, array[g.ball]])

    other = lists.other.copy()
    other[g.at] = g.balls + np.arange(len(g.ball))
    move_last(lists.start, lists.count, other, g.balls)
    listed = lists._replace(
        start=np.append(lists.start, np.full(len(g.ball), lists.start[-1])),
        count=np.append(lists.count, np.zeros(len(g.ball), lists.count.dtype)), other=other,
    )  # fmt: skip
    places = more(spheres.places)
    places[g.balls :] += g.shift
    balls = spheres._replace(
        places=places, radius=more(spheres.radius), centre=more(spheres.centre),
        body=np.append(spheres.body, g.body.astype(spheres.body.dtype)),
        kind=np.append(spheres.kind, np.full(blank + len(g.ball), FIXED, spheres.kind.dtype)),
    )  # fmt: skip
    poses = (
        np.concatenate([position, np.zeros((blank, 3)), position[g.real] + g.shift]),
        np.concatenate([orientation, np.zeros((blank, 4)), orientation[g.real]]),
    )
    return balls, listed, poses, outlook._replace(one=moved(outlook.one), two=moved(outlook.two))


def of_ghosts(g: Ghosts, t: Touches) -> Touches:
    """The memory as the search would have it: pairs across the border are those of a ball and a ghost."""
    index, key = t.index.copy(), g.first * g.balls + g.ball  # sorted: lists are
    pairs = index[: t.planes]
    mine = pairs[:, FIRST].astype(np.int64) * g.balls + pairs[:, SECOND]
    at = np.minimum(np.searchsorted(key, mine), max(0, len(key) - 1))
    if len(key):
        pairs[:, SECOND] = np.where(key[at] == mine, g.balls + at, pairs[:, SECOND])
    return _sorted(t._replace(index=index))


def of_bodies(g: Ghosts, t: Touches) -> None:
    """Tell what was found with ghosts of the bodies themselves, in the order of their pairs, in place."""
    real = np.append(np.arange(g.balls), g.ball)
    t.index[: t.planes, SECOND] = real[t.index[: t.planes, SECOND]]
    ghost = t.b >= g.rows
    t.b[ghost] = g.real[t.b[ghost] - g.rows]
    for array, ordered in zip(t[:-1], _sorted(t)[:-1], strict=True):
        array[:] = ordered


def _sorted(t: Touches) -> Touches:
    """In the order of the pairs; those with planes stay at the end."""
    order = np.arange(len(t.status))
    order[: t.planes] = np.lexsort((t.index[: t.planes, SECOND], t.index[: t.planes, FIRST]))  # stable
    return Touches(*(array[order] for array in t[:-1]), t.planes)


def copies(start: np.ndarray, ball: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (k,) that the parts ``ball`` (G,) have in a table, part after part, and how many each (G,) has.

    ``start`` (S + 1,): ball s has the rows from start[s] to start[s + 1].
    """
    count = np.diff(start)[ball]
    return np.repeat(start[ball] - (np.cumsum(count) - count), count) + np.arange(count.sum()), count
