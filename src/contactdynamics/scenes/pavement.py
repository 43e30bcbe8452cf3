"""Circles in a rectangle with periodic sides, for pavements: pushed apart, and the holes they leave."""

import numpy as np

from .._jit import kernel


@kernel
def cells(place, area, width):
    """Sort ``place`` (n, 2) into cells at least ``width`` wide: columns and rows, where each cell begins, the order."""
    columns, lines = max(1, int(area[0] / width)), max(1, int(area[1] / width))
    begin, cell = np.zeros(columns * lines + 1, dtype=np.int64), np.empty(len(place), dtype=np.int64)
    for i in range(len(place)):
        x = min(int(place[i, 0] / area[0] * columns), columns - 1)
        y = min(int(place[i, 1] / area[1] * lines), lines - 1)
        cell[i] = x * lines + y
        begin[cell[i] + 1] += 1
    for k in range(columns * lines):
        begin[k + 1] += begin[k]
    at, order = begin[:-1].copy(), np.empty(len(place), dtype=np.int64)
    for i in range(len(place)):
        order[at[cell[i]]] = i
        at[cell[i]] += 1
    return columns, lines, begin, order


@kernel(inline=True)
def shortest(x, side):
    """The difference ``x`` of two coordinates, the shorter way around."""
    return x - side * np.round(x / side)


@kernel
def spread(place, radii, area, rounds):
    """Push overlapping circles apart, each by half the overlap, ``rounds`` times; ``place`` (n, 2) is changed."""
    width, moved = 2.0 * radii.max(), np.empty_like(place)
    for _ in range(rounds):
        for i in range(len(place)):
            for c in range(2):
                place[i, c] %= area[c]
        columns, lines, begin, order = cells(place, area, width)
        for i in range(len(place)):
            moved[i] = 0.0
            column, line = int(place[i, 0] / area[0] * columns), int(place[i, 1] / area[1] * lines)
            # with less than three cells in a row each is looked at once
            for k in range(min(3, columns)):
                for n in range(min(3, lines)):
                    cell = (column + k - 1) % columns * lines + (line + n - 1) % lines
                    for j in order[begin[cell] : begin[cell + 1]]:
                        x = shortest(place[j, 0] - place[i, 0], area[0])
                        y = shortest(place[j, 1] - place[i, 1], area[1])
                        distance = np.sqrt(x * x + y * y)
                        overlap = radii[i] + radii[j] - distance
                        if overlap > 0.0 and distance > 0.0:
                            moved[i, 0] -= 0.5 * overlap / distance * x
                            moved[i, 1] -= 0.5 * overlap / distance * y
        place += moved
    for i in range(len(place)):
        for c in range(2):
            place[i, c] %= area[c]


@kernel
def room(points, place, radii, area):
    """The radius (m,) of the largest circle about each of the ``points`` (m, 2) that overlaps none; < 0 within one."""
    largest = radii.max()
    columns, lines, begin, order = cells(place, area, 2.0 * largest)
    width = min(area[0] / columns, area[1] / lines)
    out = np.full(len(points), np.inf)
    for p in range(len(points)):
        column, line = int(points[p, 0] / area[0] * columns), int(points[p, 1] / area[1] * lines)
        # rings of cells; what stands in ring k is farther than k - 1 widths
        for ring in range(max(columns, lines) // 2 + 2):
            if out[p] <= (ring - 1) * width - largest:
                break
            for k in range(-ring, ring + 1):
                step = 1 if abs(k) == ring else max(2 * ring, 1)
                for n in range(-ring, ring + 1, step):
                    cell = (column + k) % columns * lines + (line + n) % lines
                    for j in order[begin[cell] : begin[cell + 1]]:
                        x = shortest(place[j, 0] - points[p, 0], area[0])
                        y = shortest(place[j, 1] - points[p, 1], area[1])
                        out[p] = min(out[p], np.sqrt(x * x + y * y) - radii[j])
    return out
