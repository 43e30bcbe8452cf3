"""Which of the places where polygons touch are active contacts, and what they remember.

*Identity.* A contact is the corner that makes it. While blocks slide, an end of the overlap may pass from a corner of
one polygon to a corner of the other; the contact then goes on as the same end (the left or the right one, seen along
the normal). So impulses and status carry over.

*Activity.* Gaps up to 1e-4 of the size of a body are in the active set, in both modes, with the target U_n >= -g / h:
a contact that opens by a rounding, or by the error of the solver, does not let its block fall for a step before it is
found again. Blocks at rest would otherwise creep by some g h^2 per lost contact.
"""

import numpy as np

from ._jit import kernel
from .detection import normal_velocity
from .narrow import (
    AXIS,
    COUNT,
    EDGE,
    END,
    FEATURE,
    FIRST,
    GAP,
    LAW,
    LEFT,
    NEAR,
    NX,
    NY,
    ONE,
    OTHER,
    ROW,
    ROWS,
    SECOND,
    SIZE,
    X,
    Y,
    speed,
)  # fmt: skip
from .state import OPEN, SEPARATING


@kernel
def takes_part(gap, held, status, keep, sticky, anticipate, one, two, a, b, nx, ny, px, py, position, h, size):
    """Whether a contact with a gap above `NEAR` is active (see `detection.takes_part`)."""
    if held and status > SEPARATING and (anticipate or sticky):
        return True
    if not anticipate:
        return False
    if held and keep:
        return True
    u = min(
        normal_velocity(one, a, b, nx, ny, 0.0, px, py, 0.0, position),
        normal_velocity(two, a, b, nx, ny, 0.0, px, py, 0.0, position),
    )
    return gap + h * u < -1e-9 * size


@kernel(inline=True)
def enter(index, place, memory, status, at, first, second, feature, end, axis, law, size, gap, nx, ny, px, py, old, was,
          k, held):  # fmt: skip
    """Write an active contact, with the memory ``old`` and the status ``was`` of row ``k`` where ``held``."""
    index[at, FIRST], index[at, SECOND], index[at, FEATURE] = first, second, feature
    index[at, END], index[at, AXIS], index[at, LAW] = end, axis, law
    place[at, GAP], place[at, SIZE], place[at, NX], place[at, NY] = gap, size, nx, ny
    place[at, X], place[at, Y], status[at] = px, py, was[k] if held else OPEN
    memory[at, 0], memory[at, 1] = old[k, 0] if held else 0.0, old[k, 1] if held else 0.0
    memory[at, 2] = old[k, 2] if held else 0.0


@kernel
def enter_pairs(
    meetings, count, sizes, body, material, law_index, sticky_law, position, one, two, h, slack, anticipate, keep, old,
    out,
):  # fmt: skip
    """The active contacts among the ``meetings``, with their memory, into ``out``; returns their number."""
    found = 0
    met, _, ends, names = meetings
    known, kept, was, _ = old.index, old.memory, old.status, old.planes
    index, place, memory, status = out.index, out.place, out.memory, out.status
    for m in range(count):
        i, j, nx, ny = met[m, ONE], met[m, OTHER], ends[m, 6], ends[m, 7]
        size, law, begin = min(sizes[i], sizes[j]), law_index[material[i], material[j]], met[m, ROW]
        for c in range(names[m, COUNT]):
            # The memory that goes on: that of the same corner; else that of the same end, if its corner is gone.
            row, feature, end = -1, names[m, 1 + 2 * c], names[m, 2 + 2 * c]
            gap, x, y = ends[m, 3 * c + 2] - slack, ends[m, 3 * c], ends[m, 3 * c + 1]
            for r in range(begin, begin + met[m, ROWS]):
                if row < 0 and known[r, FEATURE] == feature:
                    row = r
            if row < 0:
                for r in range(begin, begin + met[m, ROWS]):
                    gone = known[r, FEATURE] != names[m, 1] and (
                        names[m, COUNT] == 1 or known[r, FEATURE] != names[m, 3]
                    )
                    if row < 0 and gone and known[r, END] == end:
                        row = r
            held = row >= 0
            if gap > NEAR * size and not ((held or anticipate) and takes_part(
                gap, held, was[row] if held else OPEN, keep, sticky_law[law], anticipate, one, two, body[i], body[j],
                nx, ny, x, y, position, h, size,
            )):  # fmt: skip
                continue
            if found < status.size:
                enter(index, place, memory, status, found, i, j, feature, end, met[m, EDGE], law, size, gap, nx, ny, x,
                      y, kept, was, row, held)  # fmt: skip
            found += 1
    return found


@kernel
def find_on_planes(
    outline, places, radius, body, material, kind, normals, points, plane_body, plane_material, law_index, sticky_law,
    position, one, two, h, slack, anticipate, keep, old, at, free, out,
):  # fmt: skip
    """Active contacts of corners with half-planes into ``out`` from row ``at`` on; returns the row after them."""
    found, k, start, world, sizes = at, old.planes, outline.start, outline.world, outline.size
    known, kept, was = old.index, old.memory, old.status
    index, place, memory, status = out.index, out.place, out.memory, out.status
    for p in range(plane_body.size):
        a, nx, ny = plane_body[p], normals[p, 0], normals[p, 1]
        level = nx * points[p, 0] + ny * points[p, 1] + slack
        for i in range(radius.size):
            b = body[i]
            if start[i] == start[i + 1] or kind[b] != free:
                continue
            size = sizes[i]
            way = 0.0
            if anticipate:
                way = h * max(speed(one, a, b, 0.0, radius[i]), speed(two, a, b, 0.0, radius[i]))
                # a plane that turns moves the farther, the farther away
                far = np.sqrt((places[i, 0] - points[p, 0]) ** 2 + (places[i, 1] - points[p, 1]) ** 2) + radius[i]
                way += h * far * max(abs(one[a, 5]), abs(two[a, 5]))
            if nx * places[i, 0] + ny * places[i, 1] - level - radius[i] > max(way, NEAR * size) and not keep:
                continue
            law = law_index[plane_material[p], material[i]]
            while k < was.size and (known[k, FIRST] < p or (known[k, FIRST] == p and known[k, SECOND] < i)):
                k += 1
            for c in range(start[i], start[i + 1]):
                gap = nx * world[c, 0] + ny * world[c, 1] - level
                row, held = k, False
                while row < was.size and known[row, FIRST] == p and known[row, SECOND] == i and not held:
                    held = known[row, FEATURE] == c - start[i]
                    row += 1
                row -= 1 if held else 0
                px, py = world[c, 0] - 0.5 * gap * nx, world[c, 1] - 0.5 * gap * ny
                if gap <= NEAR * size or takes_part(
                    gap, held, was[row] if held else OPEN, keep, sticky_law[law], anticipate, one, two, a, b, nx, ny,
                    px, py, position, h, size,
                ):  # fmt: skip
                    if found < status.size:
                        enter(index, place, memory, status, found, p, i, c - start[i], LEFT, 0, law, size, gap, nx, ny,
                              px, py, kept, was, row, held)  # fmt: skip
                    found += 1
    return found
