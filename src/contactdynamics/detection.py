"""Which bodies touch: neighbour pairs from a cell search, and the active contacts of a step.

Pairs are kept in lexicographic order (first ball, second ball), then plane by plane: the order of the contacts, and so
every bit of the result, does not depend on when the list was last rebuilt. A pair carries the impulse, the moment and
the status of its last step: the memory of the contact (2003, section 8).
"""

from typing import NamedTuple

import numpy as np

from . import quaternions
from ._jit import kernel
from .state import FREE, OPEN


class Pairs(NamedTuple):
    """Neighbours (K,): pairs of balls, then pairs of a plane and a ball; with the memory of their contact."""

    first: np.ndarray  # (K,) ball, or plane for the rows from `balls` on
    second: np.ndarray  # (K,) ball
    law: np.ndarray  # (K,)
    simple: np.ndarray  # (K,) the fast kernels apply
    impulse: np.ndarray  # (K, 3) in space, on the second body, N s
    moment: np.ndarray  # (K, 3) in space, N m s
    status: np.ndarray  # (K,) of the last step
    balls: int  # number of pairs of balls


def no_pairs() -> Pairs:
    """An empty list."""
    rows = np.zeros(0, dtype=np.int32)
    vectors = np.zeros((0, 3))
    return Pairs(rows, rows, rows, rows.astype(bool), vectors, vectors, rows.astype(np.int8), 0)


@kernel
def place_balls(position, orientation, centre, body, out):
    """Centres of the balls in space (S, 3)."""
    for i in range(body.size):
        k = body[i]
        x, y, z = quaternions.rotate(orientation[k], centre[i, 0], centre[i, 1], centre[i, 2])
        out[i, 0], out[i, 1], out[i, 2] = position[k, 0] + x, position[k, 1] + y, position[k, 2] + z


@kernel
def largest_shift(places, reference):
    """The largest distance between two sets of points (S, 3)."""
    largest = 0.0
    for i in range(places.shape[0]):
        x = places[i, 0] - reference[i, 0]
        y = places[i, 1] - reference[i, 1]
        z = places[i, 2] - reference[i, 2]
        largest = max(largest, x * x + y * y + z * z)
    return np.sqrt(largest)


@kernel(inline=True)
def _bucket(x, y, z, mask):
    return (x * 73856093 ^ y * 19349663 ^ z * 83492791) & mask


@kernel
def sort_into_cells(places, size):
    """Cells (S, 3) of the points, and the points of each bucket of a hash table: ``order[start[b]:start[b+1]]``."""
    count = places.shape[0]
    buckets = 16
    while buckets < 2 * count:
        buckets *= 2
    cell = np.empty((count, 3), dtype=np.int64)
    start = np.zeros(buckets + 1, dtype=np.int64)
    for i in range(count):
        for k in range(3):
            cell[i, k] = int(np.floor(places[i, k] / size))
        start[_bucket(cell[i, 0], cell[i, 1], cell[i, 2], buckets - 1) + 1] += 1
    for b in range(buckets):
        start[b + 1] += start[b]
    fill = start[:-1].copy()
    order = np.empty(count, dtype=np.int64)
    for i in range(count):
        b = _bucket(cell[i, 0], cell[i, 1], cell[i, 2], buckets - 1)
        order[fill[b]] = i
        fill[b] += 1
    return cell, start, order


@kernel
def find_ball_pairs(places, radius, body, kind, skin, deep, first, second):
    """Pairs of balls of different bodies, at least one free, nearer than ``skin``; sorted. Returns their number.

    Where the number exceeds the room in ``first`` and ``second`` the rest is only counted. ``deep`` is 1 in three
    dimensions and 0 in two, where one layer of cells is searched.
    """
    largest = 0.0
    for i in range(radius.size):
        largest = max(largest, radius[i])
    cell, start, order = sort_into_cells(places, 2.0 * largest + skin)
    mask = start.size - 2
    found = 0
    near = np.empty(4096, dtype=np.int64)
    for i in range(radius.size):
        held = 0
        free = kind[body[i]] == FREE
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-deep, deep + 1):
                    x, y, z = cell[i, 0] + dx, cell[i, 1] + dy, cell[i, 2] + dz
                    b = _bucket(x, y, z, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        if j <= i or body[j] == body[i] or not (free or kind[body[j]] == FREE):
                            continue
                        if cell[j, 0] != x or cell[j, 1] != y or cell[j, 2] != z:
                            continue
                        ux, uy, uz = (
                            places[j, 0] - places[i, 0],
                            places[j, 1] - places[i, 1],
                            places[j, 2] - places[i, 2],
                        )
                        reach = radius[i] + radius[j] + skin
                        if ux * ux + uy * uy + uz * uz < reach * reach and held < near.size:
                            near[held] = j
                            held += 1
        for k in range(1, held):  # insertion sort: a dozen neighbours at most
            value, at = near[k], k
            while at > 0 and near[at - 1] > value:
                near[at] = near[at - 1]
                at -= 1
            near[at] = value
        for k in range(held):
            if found < first.size:
                first[found], second[found] = i, near[k]
            found += 1
    return found


@kernel
def find_plane_pairs(places, radius, body, kind, normals, points, plane_body, skin, first, second):
    """Pairs (plane, ball) nearer than ``skin``; sorted. ``normals`` and ``points`` (K, 3) in space."""
    found = 0
    for p in range(plane_body.size):
        for i in range(radius.size):
            if kind[body[i]] != FREE and kind[plane_body[p]] != FREE:
                continue
            height = 0.0
            for k in range(3):
                height += normals[p, k] * (places[i, k] - points[p, k])
            if height - radius[i] < skin:
                if found < first.size:
                    first[found], second[found] = p, i
                found += 1
    return found


@kernel
def carry_memory(old_first, old_second, old_impulse, old_moment, old_status, first, second, impulse, moment, status):
    """Copy impulses and status of the pairs that stand in both sorted lists."""
    k = 0
    for i in range(first.size):
        while k < old_first.size and (
            old_first[k] < first[i] or (old_first[k] == first[i] and old_second[k] < second[i])
        ):
            k += 1
        if k < old_first.size and old_first[k] == first[i] and old_second[k] == second[i]:
            impulse[i], moment[i], status[i] = old_impulse[k], old_moment[k], old_status[k]


def find_pairs(model, kind, places, normals, points, skin, old: Pairs, laws_simple, simple_body) -> Pairs:
    """All neighbours nearer than ``skin``, with the memory of the ``old`` list.

    ``laws_simple`` (L,) tells which laws the fast kernels know, ``simple_body`` (N,) which bodies.
    """
    balls, planes = model.balls, model.planes
    deep = model.dimension - 2
    room = max(64, int(1.3 * len(old.first)), 8 * len(balls.radius))
    first, second = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    count = find_ball_pairs(places, balls.radius, balls.body, kind, skin, deep, first, second)
    if count > room:
        first, second = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
        find_ball_pairs(places, balls.radius, balls.body, kind, skin, deep, first, second)
    room = len(balls.radius) * len(planes.body)
    wall, resting = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    walls = find_plane_pairs(places, balls.radius, balls.body, kind, normals, points, planes.body, skin, wall, resting)
    first = np.concatenate([first[:count], wall[:walls]])
    second = np.concatenate([second[:count], resting[:walls]])
    total = count + walls
    material = np.concatenate([balls.material[first[:count]], planes.material[first[count:]]])
    law = model.law_index[material, balls.material[second]].astype(np.int32)
    bodies = np.concatenate([balls.body[first[:count]], planes.body[first[count:]]])
    simple = simple_body[bodies] & simple_body[balls.body[second]] & laws_simple[law]
    impulse, moment = np.zeros((total, 3)), np.zeros((total, 3))
    status = np.full(total, OPEN, dtype=np.int8)
    split = old.balls
    carry_memory(old.first[:split], old.second[:split], old.impulse[:split], old.moment[:split], old.status[:split],
                 first[:count], second[:count], impulse[:count], moment[:count], status[:count])  # fmt: skip
    carry_memory(old.first[split:], old.second[split:], old.impulse[split:], old.moment[split:], old.status[split:],
                 first[count:], second[count:], impulse[count:], moment[count:], status[count:])  # fmt: skip
    return Pairs(first, second, law, simple, impulse, moment, status, count)


@kernel
def measure_gaps(first, second, balls, places, radius, normals, points, gap, normal):
    """Gap (K,) and normal (K, 3) of every pair, from the first to the second."""
    for k in range(first.size):
        i, j = first[k], second[k]
        if k < balls:
            x = places[j, 0] - places[i, 0]
            y = places[j, 1] - places[i, 1]
            z = places[j, 2] - places[i, 2]
            distance = np.sqrt(x * x + y * y + z * z)
            gap[k] = distance - radius[i] - radius[j]
            inverse = 1.0 / distance
            normal[k, 0], normal[k, 1], normal[k, 2] = x * inverse, y * inverse, z * inverse
        else:
            height = 0.0
            for c in range(3):
                normal[k, c] = normals[i, c]
                height += normals[i, c] * (places[j, c] - points[i, c])
            gap[k] = height - radius[j]
