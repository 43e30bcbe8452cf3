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
from ...errors import InputError
from ...state import FREE, OPEN, SEPARATING
from ..motion import invert_inertia
from ..space import Open
from .balls import normal_velocity
from .contract import NEAR, PLANAR, Outlook
from .outlines import (
    COUNT,
    EDGE,
    LEFT,
    ONE,
    OTHER,
    ROW,
    ROWS,
    Scratch,
    meet,
    meeting_arrays,
    outlines,
    place_corners,
    speed,
)
from .touches import AXIS, END, FEATURE, FIRST, LAW, NX, NY, SECOND, SIZE, X, Y
from .touching import Touching


@kernel
def takes_part(gap, held, status, sticky, outlook, a, b, n, p, position, size):
    """Whether a contact with a gap above `NEAR` is active (see `balls.takes_part`)."""
    if held and status > SEPARATING and (outlook.anticipate or sticky):
        return True
    if not outlook.anticipate:
        return False
    if held and outlook.keep:
        return True
    u = min(
        normal_velocity(outlook.one, a, b, n[0], n[1], 0.0, p[0], p[1], 0.0, 0.0, 0.0, 0.0, position),
        normal_velocity(outlook.two, a, b, n[0], n[1], 0.0, p[0], p[1], 0.0, 0.0, 0.0, 0.0, position),
    )
    return gap + outlook.h * u < -1e-9 * size


@kernel(inline=True)
def enter(index, place, at, names, size, nx, ny, px, py):
    """Write an active contact; ``names`` are first, second, feature, end, axis and law."""
    index[at, FIRST], index[at, SECOND], index[at, FEATURE], index[at, END], index[at, AXIS], index[at, LAW] = names
    place[at, SIZE], place[at, NX], place[at, NY], place[at, X], place[at, Y] = size, nx, ny, px, py


@kernel(inline=True)
def remember(memory, status, at, old, was, k):
    """The memory ``old`` and the status ``was`` of row ``k``, or none where it is negative."""
    status[at] = was[k] if k >= 0 else OPEN
    for c in range(3):
        memory[at, c] = old[k, c] if k >= 0 else 0.0


@kernel
def enter_pairs(meetings, count, sizes, spheres, material, rules, position, outlook, old, out):
    """The active contacts among the ``meetings``, with their memory, into ``out``; returns their number."""
    found = 0
    met, _, ends, names = meetings
    known, kept, was = old.index, old.memory, old.status
    index, place, memory, status, gaps = out.index, out.place, out.memory, out.status, out.gap
    body, law_index, sticky_law = spheres.body, rules.law_index, rules.sticky
    slack, anticipate = outlook.slack, outlook.anticipate
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
                gap, held, was[row] if held else OPEN, sticky_law[law], outlook, body[i], body[j], (nx, ny), (x, y),
                position, size,
            )):  # fmt: skip
                continue
            if found < status.size:
                enter(index, place, found, (i, j, feature, end, met[m, EDGE], law), size, nx, ny, x, y)
                remember(memory, status, found, kept, was, row)
                out.a[found], out.b[found], gaps[found] = body[i], body[j], gap
            found += 1
    return found


@kernel
def find_on_planes(outline, spheres, material, normals, points, planes, rules, position, outlook, old, at, out):
    """Active contacts of corners with half-planes into ``out`` from row ``at`` on; returns the row after them."""
    found, k, start, world, sizes = at, old.planes, outline.start, outline.world, outline.size
    known, kept, was = old.index, old.memory, old.status
    index, place, memory, status, gaps = out.index, out.place, out.memory, out.status, out.gap
    places, radius, body, kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    plane_body, plane_material, law_index, sticky_law = planes.body, planes.material, rules.law_index, rules.sticky
    one, two, h, slack, anticipate, keep = outlook
    for p in range(plane_body.size):
        a, nx, ny = plane_body[p], normals[p, 0], normals[p, 1]
        level = nx * points[p, 0] + ny * points[p, 1] + slack
        for i in range(radius.size):
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
                    gap, held, was[row] if held else OPEN, sticky_law[law], outlook, a, b, (nx, ny), (px, py), position,
                    size,
                ):  # fmt: skip
                    if found < status.size:
                        enter(index, place, found, (p, i, c - start[i], LEFT, 0, law), size, nx, ny, px, py)
                        remember(memory, status, found, kept, was, row if held else -1)
                        out.a[found], out.b[found], gaps[found] = a, b, gap
                    found += 1
    return found


@kernel
def recover_touches(position, orientation, rows, touches, inverse, depth, keep, most, gravity, mass):
    """Move and turn bodies apart until no contact overlaps by more than ``keep``, each corner by ``most`` at most.

    Gauss-Seidel on displacements, without friction, in the metric of masses; velocities stay as they are. ``depth``
    over the size of the smaller body, ``inverse`` (N, 3, 3) of the inertias. Returns the work done against gravity.
    """
    shift, place = np.zeros((rows.shape[0], 3)), touches.place
    for _ in range(100):
        moved = 0.0
        for k in range(depth.size):
            a, b, nx, ny, size = touches.a[k], touches.b[k], place[k, NX], place[k, NY], place[k, SIZE]
            lever_a = (place[k, X] - position[a, 0]) * ny - (place[k, Y] - position[a, 1]) * nx
            lever_b = (place[k, X] - position[b, 0]) * ny - (place[k, Y] - position[b, 1]) * nx
            opened = nx * (shift[b, 0] - shift[a, 0]) + ny * (shift[b, 1] - shift[a, 1])
            opened += lever_b * shift[b, 2] - lever_a * shift[a, 2]
            wanted = (depth[k] - keep) * size - opened
            if wanted > 0.0:
                moved = max(moved, wanted / size)
                turn_a, turn_b = inverse[a, 2, 2] * lever_a, inverse[b, 2, 2] * lever_b
                p = wanted / (rows[a, 6] + rows[b, 6] + turn_a * lever_a + turn_b * lever_b)
                for body, sign, turn in ((a, -p, turn_a), (b, p, turn_b)):
                    shift[body, 0] += sign * rows[body, 6] * nx
                    shift[body, 1] += sign * rows[body, 6] * ny
                    shift[body, 2] += sign * turn
        if moved < 0.1 * keep:
            break
    work = 0.0
    for i in range(shift.shape[0]):
        size = np.sqrt(shift[i, 0] ** 2 + shift[i, 1] ** 2)
        scale = most / size if size > most else 1.0
        for c in range(2):
            position[i, c] += scale * shift[i, c]
            work -= mass[i] * gravity[c] * scale * shift[i, c]
        half = 0.5 * scale * shift[i, 2]
        if half != 0.0:
            c, s, w, z = np.cos(half), np.sin(half), orientation[i, 0], orientation[i, 3]
            orientation[i, 0], orientation[i, 3] = c * w - s * z, c * z + s * w
    return work


class PolygonSearch(Touching):
    """Active contacts with polygons: see `Search`."""

    equations = (PLANAR,)

    def derive(self, model, near) -> bool:
        """Follow balls and corners of the model; whether there are polygons."""
        self.present = model.dimension == 2 and len(model.corners.body) > 0
        if not self.present:
            return False
        if not isinstance(near.space, Open):
            raise InputError("Polygons need open space; take disks or clusters in a cell, or leave the cell out.")
        self.rules = self._rules(model)
        self.outline = outlines(model.balls, model.corners)
        corners = np.diff(self.outline.start)
        heights = np.empty((2, int(corners.max(initial=0))))
        self._scratch = Scratch(np.zeros(0, dtype=np.int32), heights, bool((corners == 0).any()))
        self._meetings = meeting_arrays(0)
        return True

    def find(self, model, near, outlook: Outlook) -> int:
        """Find the active contacts, with the memory of the present ones, which they replace; returns their number."""
        o, spheres, lists, old, bodies = self.outline, near.spheres, near.listed, self.found, model.bodies
        material = model.balls.material
        place_corners(bodies.position, bodies.orientation, o.local, o.body, o.world, o.normal)
        if len(self._scratch.apart) != len(lists.other):
            self._scratch = self._scratch._replace(apart=np.zeros(len(lists.other), dtype=np.int32))
            self._meetings = meeting_arrays(len(lists.other))
        count = meet(o, spheres, lists, outlook, old.index, old.planes, self._scratch, self._meetings)
        while True:
            out = self._spare
            pairs = total = enter_pairs(
                self._meetings, count, o.size, spheres, material, self.rules, bodies.position, outlook, old, out
            )
            if len(model.planes.body):
                total = find_on_planes(
                    o, spheres, material, near.normals, near.points, model.planes, self.rules, bodies.position, outlook,
                    old, pairs, out,
                )  # fmt: skip
            if total <= len(out.status):
                break
            self._make_room(total)
        return self._take(out, total, pairs)

    def recover(self, model, rows, which, opening, above, keep, most) -> float:
        """Open overlaps at the end of a step: see `ContactSet.recover`."""
        t, b = self.found, model.bodies
        depth = -(t.gap + opening) / t.place[:, SIZE]
        if depth.max(initial=0.0) <= above:
            return 0.0
        inverse = np.empty((len(b.mass), 3, 3))
        invert_inertia(b.kind, b.inertia, b.orientation, 2, inverse, b.held)
        return recover_touches(b.position, b.orientation, rows, t, inverse, depth, keep, most, model.gravity, b.mass)

    def sizes(self, model) -> np.ndarray:
        """(S,) radii of the balls inside the convex parts."""
        return self.outline.size

    def trial(self) -> "PolygonSearch":
        """A copy that goes on with the memory, in arrays of its own."""
        other = super().trial()
        if not self.present:
            return other
        other.outline = self.outline._replace(world=self.outline.world.copy(), normal=self.outline.normal.copy())
        other._scratch = self._scratch._replace(apart=self._scratch.apart.copy(), heights=self._scratch.heights.copy())
        other._meetings = meeting_arrays(len(self._meetings.index))
        return other
