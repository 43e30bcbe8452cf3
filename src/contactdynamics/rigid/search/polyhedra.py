"""Where polyhedra touch: which of the places found in `solids` are active contacts, and what they remember.

*Identity.* A contact is the corner of a joint, known by its name (see `solids`). Where a name is new, since an edge has
slid over a corner, the contact goes on as the nearest one that has lost its name. So impulses and status carry over.

*Activity.* As for polygons: gaps up to 1e-4 of the size of a body are in the active set, in both modes, with the target
U_n >= -g / h.
"""

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN
from .contract import NEAR, SPATIAL, Outlook
from .recovery import recover_joints
from .solids import (
    CORNER,
    COUNT,
    HOW,
    ONE,
    OTHER,
    ROW,
    ROWS,
    Scratch,
    meet,
    meeting_arrays,
    place_solids,
    solids,
    speed,
)
from .touches import AXIS, FIRST, LAW, NAME_ONE, NAME_TWO, PLACE, SECOND, SIZE
from .touching import Touching, remember, takes_part

NX, NY, NZ, X, Y, Z = PLACE
ROUNDING = 1e-9  # of the size: a gap above zero that is zero in exact numbers, and taken as such


@kernel
def recall(points, names, begin, count, known, places, row, rows, source, used):
    """The rows of memory of the ``count`` points from ``begin`` on, into ``source``; -1 where there is none.

    By name; then each of those left takes the nearest of the rows left.
    """
    for c in range(count):
        source[c] = -1
    for r in range(rows):
        used[r] = False
    for c in range(count):
        for r in range(rows):
            same = known[row + r, NAME_ONE] == names[begin + c, 0] and known[row + r, NAME_TWO] == names[begin + c, 1]
            if same and not used[r]:
                source[c], used[r] = row + r, True
                break
    for c in range(count):
        if source[c] >= 0:
            continue
        best, chosen = np.inf, -1
        for r in range(rows):
            if not used[r]:
                x, y, z = (points[begin + c, 0] - places[row + r, X], points[begin + c, 1] - places[row + r, Y],
                           points[begin + c, 2] - places[row + r, Z])  # fmt: skip
                if x * x + y * y + z * z < best:
                    best, chosen = x * x + y * y + z * z, r
        if chosen >= 0:
            source[c], used[chosen] = row + chosen, True


@kernel
def enter_pairs(meetings, count, sizes, spheres, material, rules, position, outlook, old, source, used, out):
    """The active contacts among the ``meetings``, with their memory, into ``out``; returns their number."""
    found, begin = 0, 0
    met, bound, points, names = meetings
    known, kept, was, old_place = old.index, old.memory, old.status, old.place
    index, place, memory, status, gaps = out.index, out.place, out.memory, out.status, out.gap
    body, law_index, sticky_law = spheres.body, rules.law_index, rules.sticky
    slack, anticipate = outlook.slack, outlook.anticipate
    for m in range(count):
        i, j, nx, ny, nz = met[m, ONE], met[m, OTHER], bound[m, 2], bound[m, 3], bound[m, 4]
        size, law = min(sizes[i], sizes[j]), law_index[material[i], material[j]]
        corners = met[m, COUNT]
        if corners == 0:
            continue
        recall(points, names, begin, corners, known, old_place, met[m, ROW], met[m, ROWS], source, used)
        for c in range(corners):
            at, row = begin + c, source[c]
            gap, x, y, z, held = points[at, 3] - slack, points[at, 0], points[at, 1], points[at, 2], row >= 0
            if gap > NEAR * size and not ((held or anticipate) and takes_part(
                gap, held, was[row] if held else OPEN, sticky_law[law], outlook, body[i], body[j], (nx, ny, nz),
                (x, y, z), position, size,
            )):  # fmt: skip
                continue
            gap = gap if gap <= 0.0 or gap > ROUNDING * size else 0.0
            if found < status.size:
                index[found, FIRST], index[found, SECOND], index[found, LAW] = i, j, law
                index[found, NAME_ONE], index[found, NAME_TWO] = names[at, 0], names[at, 1]
                index[found, AXIS] = met[m, HOW]
                place[found, SIZE], place[found, NX], place[found, NY], place[found, NZ] = size, nx, ny, nz
                place[found, X], place[found, Y], place[found, Z] = x, y, z
                remember(memory, status, found, kept, was, row)
                out.a[found], out.b[found], gaps[found] = body[i], body[j], gap
            found += 1
        begin += corners
    return found


@kernel
def find_on_planes(solids, spheres, material, normals, levels, planes, rules, position, outlook, old, at, out):
    """Active contacts of corners with planes into ``out`` from row ``at`` on; returns the row after them.

    ``levels`` are points of the planes.
    """
    found, k, starts, vectors, sizes = at, old.planes, solids.starts, solids.vectors, solids.size
    known, kept, was = old.index, old.memory, old.status
    index, place, memory, status, gaps = out.index, out.place, out.memory, out.status, out.gap
    places, radius, body, kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    plane_body, plane_material, law_index, sticky_law = planes.body, planes.material, rules.law_index, rules.sticky
    one, two, h, slack, anticipate, keep = outlook
    for p in range(plane_body.size):
        a, nx, ny, nz = plane_body[p], normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * levels[p, 0] + ny * levels[p, 1] + nz * levels[p, 2] + slack
        for i in range(radius.size):
            b = body[i]
            if starts[i, CORNER] == starts[i + 1, CORNER] or kind[b] != FREE:
                continue
            size, way = sizes[i], 0.0
            if anticipate:
                way = h * max(speed(one, a, b, 0.0, radius[i]), speed(two, a, b, 0.0, radius[i]))
                # a plane that turns moves the farther, the farther away
                far = np.sqrt((places[i, 0] - levels[p, 0]) ** 2 + (places[i, 1] - levels[p, 1]) ** 2
                              + (places[i, 2] - levels[p, 2]) ** 2) + radius[i]  # fmt: skip
                turn = max(one[a, 3] ** 2 + one[a, 4] ** 2 + one[a, 5] ** 2,
                           two[a, 3] ** 2 + two[a, 4] ** 2 + two[a, 5] ** 2)  # fmt: skip
                way += h * far * np.sqrt(turn)
            above = nx * places[i, 0] + ny * places[i, 1] + nz * places[i, 2] - level - radius[i]
            if above > max(way, NEAR * size) and not keep:
                continue
            law = law_index[plane_material[p], material[i]]
            while k < was.size and (known[k, FIRST] < p or (known[k, FIRST] == p and known[k, SECOND] < i)):
                k += 1
            for c in range(starts[i, CORNER], starts[i + 1, CORNER]):
                gap = nx * vectors[c, 0] + ny * vectors[c, 1] + nz * vectors[c, 2] - level
                row, held = k, False
                while row < was.size and known[row, FIRST] == p and known[row, SECOND] == i and not held:
                    held = known[row, NAME_TWO] == c - starts[i, CORNER]
                    row += 1
                row -= 1 if held else 0
                px, py, pz = (
                    vectors[c, 0] - 0.5 * gap * nx,
                    vectors[c, 1] - 0.5 * gap * ny,
                    vectors[c, 2] - 0.5 * gap * nz,
                )
                if gap <= NEAR * size or takes_part(
                    gap, held, was[row] if held else OPEN, sticky_law[law], outlook, a, b, (nx, ny, nz), (px, py, pz),
                    position, size,
                ):  # fmt: skip
                    gap = gap if gap <= 0.0 or gap > ROUNDING * size else 0.0
                    if found < status.size:
                        index[found, FIRST], index[found, SECOND], index[found, LAW] = p, i, law
                        index[found, NAME_ONE], index[found, NAME_TWO] = -1, c - starts[i, CORNER]
                        index[found, AXIS] = 0
                        place[found, SIZE], place[found, NX], place[found, NY], place[found, NZ] = size, nx, ny, nz
                        place[found, X], place[found, Y], place[found, Z] = px, py, pz
                        remember(memory, status, found, kept, was, row if held else -1)
                        out.a[found], out.b[found], gaps[found] = a, b, gap
                    found += 1
    return found


class PolyhedronSearch(Touching):
    """Active contacts with polyhedra: see `Search` and `Touching`."""

    equations, dimension, name, kept = (SPATIAL,), 3, "joint", ("index", "place", "memory", "status")
    kind, round, first = "polyhedra", "spheres", 1e-6
    recover_by, _find_on_planes = staticmethod(recover_joints), staticmethod(find_on_planes)

    def _shape(self, model) -> None:
        self.shapes = solids(model.balls, model.corners, model.rims)
        self._most = 2 * int(np.diff(self.shapes.rim_starts).max(initial=3)) + 8
        alone = bool((np.diff(self.shapes.starts[:, CORNER]) == 0).any())
        self._scratch = Scratch(
            np.zeros((0, 2), dtype=np.int32),
            np.zeros((2, self._most, 3)),
            np.zeros((2, self._most, 3), np.int32),
            alone,
        )
        self._own_meetings(0, 0)

    def _own_shapes(self) -> None:
        """Arrays of its own where those of another are written in."""
        s = self._scratch
        self.shapes = self.shapes._replace(vectors=self.shapes.vectors.copy())
        self._scratch = s._replace(apart=s.apart.copy(), polygon=s.polygon.copy(), labels=s.labels.copy())
        self._own_meetings(len(self._meetings.index), len(self._meetings.points))

    def _own_meetings(self, pairs: int, points: int) -> None:
        self._meetings = meeting_arrays(pairs, points)
        self._source, self._used = np.zeros(self._most, dtype=np.int32), np.zeros(4 * self._most, dtype=bool)

    def _meet(self, model, near, outlook: Outlook) -> int:
        """The pairs that may touch, into `_meetings`; returns their number."""
        s, lists, bodies, old = self.shapes, near.listed, model.bodies, self.found
        place_solids(bodies.position, bodies.orientation, s.local, s.body, s.starts[-1, CORNER], s.vectors)
        if len(self._scratch.apart) != len(lists.other):
            self._scratch = self._scratch._replace(apart=np.full((len(lists.other), 2), -1, dtype=np.int32))
            self._own_meetings(len(lists.other), 8 * len(lists.other) + self._most)
        while True:
            count, points = meet(s, near.spheres, lists, outlook, old.index, old.planes, self._scratch, self._meetings)
            if points <= len(self._meetings.points):
                return count
            self._own_meetings(len(lists.other), 2 * points)

    def _enter_pairs(self, count, spheres, material, position, outlook, old, out) -> int:
        return enter_pairs(
            self._meetings, count, self.shapes.size, spheres, material, self.rules, position, outlook, old,
            self._source, self._used, out,
        )  # fmt: skip
