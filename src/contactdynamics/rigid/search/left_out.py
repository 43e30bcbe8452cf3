"""Whether pairs of balls and planes that a step has left out close their gaps: with anticipation, after its solution.

The whole search would find them too; this one looks only at gaps that two bodies could close by their speeds, and
writes nothing: the list of pairs, their memory and the deepest of them stay as they are.
"""

import numpy as np

from ..._jit import kernel
from ...state import FREE
from ..space import shortest


@kernel
def stands(first, second, begin, end, i, j):
    """Whether the pair (i, j) stands in the rows from ``begin`` on, before ``end``, of a sorted list."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if first[middle] < i or (first[middle] == i and second[middle] < j):
            low = middle + 1
        else:
            high = middle
    return low < end and first[low] == i and second[low] == j


@kernel
def ball_closes(space, spheres, lists, rows, h, pairs):
    """Whether some pair of balls that is not among the ``pairs`` closes its gap within the time h."""
    places, radius, body = spheres.places, spheres.radius, spheres.body
    start, count, other, one, two = lists.start, lists.count, lists.other, pairs.first, pairs.second
    way, longest = np.empty(radius.size), 1
    for i in range(radius.size):
        k = body[i]
        way[i] = h * np.sqrt(rows[k, 0] ** 2 + rows[k, 1] ** 2 + rows[k, 2] ** 2)
        longest = max(longest, count[i] + 1)
    near = np.empty(longest, dtype=np.int32)
    for i in range(radius.size):
        xi, yi, zi, chosen = places[i, 0], places[i, 1], places[i, 2], 0
        for n in range(start[i], start[i] + count[i]):  # without a branch, which nobody could foresee
            j = other[n]
            x, y, z = shortest(space, places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi)
            square, touch = x * x + y * y + z * z, radius[i] + radius[j]
            reach = touch + way[i] + way[j]
            near[chosen] = j
            chosen += (square > touch * touch) & (square < reach * reach)
        for n in range(chosen):
            j = near[n]
            x, y, z = shortest(space, places[j, 0] - xi, places[j, 1] - yi, places[j, 2] - zi)
            distance = np.sqrt(x * x + y * y + z * z)
            a, b = body[i], body[j]
            u = (rows[b, 0] - rows[a, 0]) * x + (rows[b, 1] - rows[a, 1]) * y + (rows[b, 2] - rows[a, 2]) * z
            if distance - radius[i] - radius[j] + h * u / distance < -1e-9 * radius[j]:
                if not stands(one, two, 0, pairs.balls, i, j):
                    return True
    return False


@kernel
def plane_closes(spheres, flats, rows, h, pairs):
    """The same for planes and balls."""
    places, radius, body, kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    normals, points, one, two = flats.normals, flats.points, pairs.first, pairs.second
    for p in range(flats.body.size):
        a, nx, ny, nz = flats.body[p], normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * points[p, 0] + ny * points[p, 1] + nz * points[p, 2]
        for i in range(radius.size):
            b = body[i]
            gap = nx * places[i, 0] + ny * places[i, 1] + nz * places[i, 2] - level - radius[i]
            u = (rows[b, 0] - rows[a, 0]) * nx + (rows[b, 1] - rows[a, 1]) * ny + (rows[b, 2] - rows[a, 2]) * nz
            if gap > 0.0 and gap + h * u < -1e-9 * radius[i] and kind[b] == FREE:
                if not stands(one, two, pairs.balls, one.size, p, i):
                    return True
    return False


@kernel
def some_close(space, spheres, lists, flats, rows, h, pairs):
    """Whether some pair that is not among the ``pairs``, all of homogeneous balls, closes its gap within the time h."""
    return plane_closes(spheres, flats, rows, h, pairs) or ball_closes(space, spheres, lists, rows, h, pairs)
