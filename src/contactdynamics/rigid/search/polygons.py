"""Where polygons touch: which of the places found in `outlines` are active contacts, and what they remember.

*Identity.* A contact is the corner that makes it. While blocks slide, an end of the overlap may pass from a corner of
one polygon to a corner of the other; the contact then goes on as the same end (the left or the right one, seen along
the normal). So impulses and status carry over.

*Activity.* Gaps up to 1e-4 of the size of a body are in the active set, in both modes, with the target U_n >= -g / h:
a contact that opens by a rounding, or by the error of the solver, does not let its block fall for a step before it is
found again. Blocks at rest would otherwise creep by some g h^2 per lost contact.
"""

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN
from .contract import NEAR, PLANAR
from .ghosts import copies
from .laws import own_law
from .outlines import (
    COUNT,
    EDGE,
    LEFT,
    ON_SECOND,
    ONE,
    OTHER,
    RIGHT,
    ROW,
    ROWS,
    Outlines,
    Scratch,
    meet,
    meeting_arrays,
    outlines,
    place_corners,
    place_some,
    speed,
)
from .touches import AXIS, END, FEATURE, FIRST, LAW, NX, NY, SECOND, SIZE, X, Y
from .touching import Touching, remember, takes_part


@kernel(inline=True)
def enter(index, place, at, names, size, nx, ny, px, py):
    """Write an active contact; ``names`` are first, second, feature, end, axis and law."""
    index[at, FIRST], index[at, SECOND], index[at, FEATURE], index[at, END], index[at, AXIS], index[at, LAW] = names
    place[at, SIZE], place[at, NX], place[at, NY], place[at, X], place[at, Y] = size, nx, ny, px, py


@kernel
def enter_pairs(meetings, count, sizes, spheres, rules, position, outlook, old, out):
    """The active contacts among the ``meetings``, with their memory, into ``out``; returns their number."""
    found = 0
    met, ends, names, material = meetings.index, meetings.ends, meetings.names, rules.material
    known, kept, was, lost_before = old.index, old.memory, old.status, old.lost
    index, place, memory, status, gaps, lost = out.index, out.place, out.memory, out.status, out.gap, out.lost
    body, law_index, sticky_law, joints = spheres.body, rules.law_index, rules.sticky, rules.joints
    slack, anticipate = outlook.slack, outlook.anticipate
    for m in range(count):
        i, j, nx, ny = met[m, ONE], met[m, OTHER], ends[m, 6], ends[m, 7]
        size, begin = min(sizes[i], sizes[j]), met[m, ROW]
        law = own_law(joints, body[i], body[j], law_index[material[i], material[j]])
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
                gap, held, was[row] if held else OPEN, sticky_law[law], outlook, body[i], body[j], (nx, ny, 0.0),
                (x, y, 0.0), position, size,
            )):  # fmt: skip
                continue
            if found < status.size:
                enter(index, place, found, (i, j, feature, end, met[m, EDGE], law), size, nx, ny, x, y)
                remember(memory, status, lost, found, kept, was, lost_before, row)
                out.a[found], out.b[found], gaps[found] = body[i], body[j], gap
            found += 1
    return found


@kernel
def find_on_planes(outline, spheres, flats, rules, position, outlook, old, at, out, share):
    """Active contacts of corners with half-planes into ``out`` from row ``at`` on; returns the row after them."""
    found, k, start, world, sizes = at, old.planes, outline.start, outline.world, outline.size
    known, kept, was, lost_before = old.index, old.memory, old.status, old.lost
    index, place, memory, status, gaps, lost = out.index, out.place, out.memory, out.status, out.gap, out.lost
    places, radius, body, kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    normals, points, plane_body, plane_material = flats.normals, flats.points, flats.body, flats.material
    law_index, sticky_law, material, joints = rules.law_index, rules.sticky, rules.material, rules.joints
    one, two, h, slack, anticipate, keep = (
        outlook.one, outlook.two, outlook.h, outlook.slack, outlook.anticipate, outlook.keep
    )  # fmt: skip
    for p in range(plane_body.size):
        a, nx, ny = plane_body[p], normals[p, 0], normals[p, 1]
        level = nx * points[p, 0] + ny * points[p, 1] + slack
        for i in range(share.low, share.high):
            b = body[i]
            if start[i] == start[i + 1] or kind[b] != FREE:
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
            law = own_law(joints, a, b, law_index[plane_material[p], material[i]])
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
                    gap, held, was[row] if held else OPEN, sticky_law[law], outlook, a, b, (nx, ny, 0.0), (px, py, 0.0),
                    position, size,
                ):  # fmt: skip
                    if found < status.size:
                        enter(index, place, found, (p, i, c - start[i], LEFT, 0, law), size, nx, ny, px, py)
                        remember(memory, status, lost, found, kept, was, lost_before, row if held else -1)
                        out.a[found], out.b[found], gaps[found] = a, b, gap
                    found += 1
    return found


@kernel
def find_touches(outline, spheres, lists, flats, rules, pose, outlook, scratch, meetings, old, out, share):
    """The active contacts of a ``share`` at the ``pose`` (positions, orientations), with the memory of ``old`` ones.

    They go into ``out``. Returns their number, and how many are of pairs; more than its room: do it again.
    """
    position, _ = pose
    if share.alone:
        place_corners(pose, outline, 0, outline.body.size)
    count = meet(outline, spheres, lists, outlook, old.index, old.planes, scratch, share, meetings)
    pairs = total = enter_pairs(meetings, count, outline.size, spheres, rules, position, outlook, old, out)
    if share.low < share.high and flats.body.size > 0:
        total = find_on_planes(outline, spheres, flats, rules, position, outlook, old, pairs, out, share)
    return total, pairs


class PolygonSearch(Touching):
    """Active contacts with polygons: see `Search` and `Touching`."""

    equations, dimension, name, kept = (PLANAR,), 2, "touch", ("index", "memory", "status", "lost")
    kind = "polygons"
    finding, placing, placing_some = map(staticmethod, (find_touches, place_corners, place_some))

    def _shape(self, model) -> None:
        self.shapes = outlines(model.balls, model.corners)

    @staticmethod
    def _runs(outline, first: int, after: int) -> list:
        return [(int(outline.start[first]), int(outline.start[after]))]

    def _turn_names(self, index, turn) -> None:
        flat = np.diff(self.shapes.start) > 0
        turn = np.flatnonzero(turn)
        turn = turn[flat[index[turn, FIRST]] & flat[index[turn, SECOND]]]  # those with disks know no other name
        for column in (FEATURE, AXIS):
            index[turn, column] ^= ON_SECOND
        index[turn, END] ^= LEFT ^ RIGHT

    def _own_shapes(self) -> None:
        self.shapes = self.shapes._replace(world=self.shapes.world.copy(), normal=self.shapes.normal.copy())

    def _hints_for(self, pairs: int) -> np.ndarray:
        return np.zeros(pairs, dtype=np.int32)

    def _scratch(self) -> Scratch:
        corners = np.diff(self.shapes.start)
        return Scratch(self._hints, np.empty((2, int(corners.max(initial=0)))), bool((corners == 0).any()))

    def _meetings(self, pairs: int, points: int):
        return meeting_arrays(pairs)

    def _with_ghosts(self, g) -> Outlines:
        o, (rows, count) = self.shapes, copies(self.shapes.start, g.ball)
        local = np.concatenate([o.local, o.local[rows]])
        return Outlines(
            np.append(o.start, o.start[-1] + np.cumsum(count)), local,
            np.append(o.body, np.repeat(g.body, count).astype(o.body.dtype)), np.append(o.size, o.size[g.ball]),
            np.empty((len(local), 2)), np.empty((len(local), 2)),
        )  # fmt: skip
