"""Where polyhedra touch: which of the places found in `meeting` are active contacts, and what they remember.

*Identity.* A contact is the corner of a joint, known by its name (see `cutting`). Where a name is new, since an edge
has slid over a corner, the contact goes on as the nearest one that has lost its name. So impulses and status carry
over.

*Activity.* As for polygons: gaps up to 1e-4 of the size of a body are in the active set, in both modes, with the target
U_n >= -g / h.
"""

import numpy as np

from ..._jit import kernel
from ...state import FREE, OPEN
from .contract import NEAR, SPATIAL
from .ghosts import copies
from .laws import own_law
from .meeting import EDGES, ON_SECOND, meet, speed
from .solids import (
    CORNER,
    COUNT,
    FACE,
    HOW,
    ONE,
    OTHER,
    ROW,
    ROWS,
    Scratch,
    Solids,
    meeting_arrays,
    place_solids,
    place_some,
    scratch_arrays,
    solids,
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
def farthest_corner(place, begin, found, one, two, sign):
    """The row whose point has the largest signed area with the points of ``one`` and ``two``, about the normal.

    Where the two are the same, the largest square of the distance. -1 where nothing is above a rounding; the first of
    those that are alike, so that the choice stays from step to step.
    """
    best, chosen = 1e-6 * place[one, SIZE] ** 2, -1
    ux, uy, uz = place[two, X] - place[one, X], place[two, Y] - place[one, Y], place[two, Z] - place[one, Z]
    nx, ny, nz = place[one, NX], place[one, NY], place[one, NZ]
    for k in range(begin, found):
        x, y, z = place[k, X] - place[one, X], place[k, Y] - place[one, Y], place[k, Z] - place[one, Z]
        area = sign * (nx * (uy * z - uz * y) + ny * (uz * x - ux * z) + nz * (ux * y - uy * x))
        value = x * x + y * y + z * z if one == two else area
        if value > (1.0 + 1e-6) * best:
            best, chosen = value, k
    return chosen


@kernel
def keep_four(out, begin, found):
    """Four contacts of the joint in the rows from ``begin`` on, before ``found``; returns the row after them.

    The deepest one (the first, where none is deeper by more than `NEAR`), the farthest from it, and on either side of
    the line through both the one that makes the largest triangle.
    """
    place, gap = out.place, out.gap
    first = begin
    for k in range(begin, found):
        if gap[k] < gap[first] - NEAR * place[k, SIZE]:
            first = k
    second = farthest_corner(place, begin, found, first, first, 1.0)
    if second < 0:
        return found
    third = farthest_corner(place, begin, found, first, second, 1.0)
    fourth = farthest_corner(place, begin, found, first, second, -1.0)
    at = begin
    for k in range(begin, found):
        if k == first or k == second or k == third or k == fourth:
            out.index[at], out.place[at], out.memory[at] = out.index[k], out.place[k], out.memory[k]
            out.a[at], out.b[at], out.gap[at], out.status[at] = out.a[k], out.b[k], out.gap[k], out.status[k]
            out.lost[at] = out.lost[k]
            at += 1
    return at


@kernel
def enter_pairs(meetings, count, sizes, spheres, rules, position, outlook, scratch, old, out):
    """The active contacts among the ``meetings``, with their memory, into ``out``; returns their number."""
    found, begin = 0, 0
    met, bound, points, names, material = (
        meetings.index, meetings.bound, meetings.points, meetings.names, rules.material
    )  # fmt: skip
    source, used = scratch.source, scratch.used
    known, kept, was, lost_before, old_place = old.index, old.memory, old.status, old.lost, old.place
    index, place, memory, status, gaps, lost = out.index, out.place, out.memory, out.status, out.gap, out.lost
    body, law_index, sticky_law, joints = spheres.body, rules.law_index, rules.sticky, rules.joints
    slack, anticipate, four = outlook.slack, outlook.anticipate, rules.four
    for m in range(count):
        i, j, nx, ny, nz = met[m, ONE], met[m, OTHER], bound[m, 2], bound[m, 3], bound[m, 4]
        size = min(sizes[i], sizes[j])
        law = own_law(joints, body[i], body[j], law_index[material[i], material[j]])
        corners = met[m, COUNT]
        if corners == 0:
            continue
        recall(points, names, begin, corners, known, old_place, met[m, ROW], met[m, ROWS], source, used)
        entered = found
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
                remember(memory, status, lost, found, kept, was, lost_before, row)
                out.a[found], out.b[found], gaps[found] = body[i], body[j], gap
            found += 1
        if four and found > entered + 4 and found <= status.size:
            found = keep_four(out, entered, found)
        begin += corners
    return found


@kernel
def find_on_planes(solids, spheres, flats, rules, position, outlook, old, at, out, share):
    """Active contacts of corners with planes into ``out`` from row ``at`` on; returns the row after them."""
    found, k, starts, vectors, sizes = at, old.planes, solids.starts, solids.vectors, solids.size
    known, kept, was, lost_before = old.index, old.memory, old.status, old.lost
    index, place, memory, status, gaps, lost = out.index, out.place, out.memory, out.status, out.gap, out.lost
    places, radius, body, kind = spheres.places, spheres.radius, spheres.body, spheres.kind
    normals, levels, plane_body, plane_material = flats.normals, flats.points, flats.body, flats.material
    law_index, sticky_law, material, joints = rules.law_index, rules.sticky, rules.material, rules.joints
    one, two, h, slack, anticipate, keep = (
        outlook.one, outlook.two, outlook.h, outlook.slack, outlook.anticipate, outlook.keep
    )  # fmt: skip
    for p in range(plane_body.size):
        a, nx, ny, nz = plane_body[p], normals[p, 0], normals[p, 1], normals[p, 2]
        level = nx * levels[p, 0] + ny * levels[p, 1] + nz * levels[p, 2] + slack
        for i in range(share.low, share.high):
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
            law = own_law(joints, a, b, law_index[plane_material[p], material[i]])
            while k < was.size and (known[k, FIRST] < p or (known[k, FIRST] == p and known[k, SECOND] < i)):
                k += 1
            entered = found
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
                        remember(memory, status, lost, found, kept, was, lost_before, row if held else -1)
                        out.a[found], out.b[found], gaps[found] = a, b, gap
                    found += 1
            if rules.four and found > entered + 4 and found <= status.size:
                found = keep_four(out, entered, found)
    return found


@kernel
def find_joints(solids, spheres, lists, flats, rules, pose, outlook, scratch, meetings, old, out, share):
    """The active contacts of a ``share`` at the ``pose`` (positions, orientations), with the memory of ``old`` ones.

    They go into ``out``. Returns their number, and how many are of pairs; more than its room: do it again. Where the
    pairs have more points than the ``meetings`` have room for, it returns -1 and twice their number.
    """
    position, _ = pose
    if share.alone:
        place_solids(pose, solids, 0, solids.body.size)
    count, points = meet(solids, spheres, lists, outlook, old.index, old.planes, scratch, share, meetings)
    if points > meetings.points.shape[0]:
        return -1, 2 * points
    pairs = total = enter_pairs(meetings, count, solids.size, spheres, rules, position, outlook, scratch, old, out)
    if share.low < share.high and flats.body.size > 0:
        total = find_on_planes(solids, spheres, flats, rules, position, outlook, old, pairs, out, share)
    return total, pairs


class PolyhedronSearch(Touching):
    """Active contacts with polyhedra: see `Search` and `Touching`."""

    equations, dimension, name, kept = (SPATIAL,), 3, "joint", ("index", "place", "memory", "status", "lost")
    kind, first = "polyhedra", 1e-6
    finding, placing, placing_some = map(staticmethod, (find_joints, place_solids, place_some))

    def _shape(self, model) -> None:
        self.shapes = solids(model.balls, model.corners, model.rims)
        self._most = 2 * int(np.diff(self.shapes.rim_starts).max(initial=3)) + 8  # corners of a joint, on the way
        self._spheres = bool((np.diff(self.shapes.starts[:, CORNER]) == 0).any())

    @staticmethod
    def _runs(solids, first: int, after: int) -> list:
        begins = ((CORNER, 0), (FACE, int(solids.starts[-1, CORNER])))  # in one table, corners first
        return [tuple(begin + int(solids.starts[row, k]) for row in (first, after)) for k, begin in begins]

    def _turn_names(self, index, turn) -> None:
        solid = np.diff(self.shapes.starts[:, CORNER]) > 0
        turn = np.flatnonzero(turn)
        turn = turn[solid[index[turn, FIRST]] & solid[index[turn, SECOND]]]  # those with spheres know no other name
        index[turn, NAME_ONE], index[turn, NAME_TWO] = index[turn, NAME_TWO], index[turn, NAME_ONE]
        index[turn[index[turn, AXIS] < EDGES], AXIS] ^= ON_SECOND

    def _own_shapes(self) -> None:
        self.shapes = self.shapes._replace(vectors=self.shapes.vectors.copy())

    def _hints_for(self, pairs: int) -> np.ndarray:
        return np.full((pairs, 2), -1, dtype=np.int32)

    def _scratch(self) -> Scratch:
        return scratch_arrays(self._most, self._spheres)._replace(apart=self._hints)

    def _meetings(self, pairs: int, points: int):
        return meeting_arrays(pairs, points or 8 * pairs + self._most)

    def _with_ghosts(self, g) -> Solids:
        s, total = self.shapes, self.shapes.starts[-1].astype(np.int64)
        (corners, c), (faces, f), (edges, e) = (copies(s.starts[:, k].astype(np.int64), g.ball) for k in range(3))
        rims, r = copies(s.rim_starts.astype(np.int64), faces)
        counts = np.stack([c, f, e], axis=1)
        begin = total + np.cumsum(counts, axis=0) - counts  # where the ghosts' corners, faces and edges stand
        off = begin - s.starts[g.ball]
        rim = s.rims[rims] + np.repeat(np.repeat(off[:, [0, 2]], f, axis=0), r, axis=0)
        old, new = s.edges.copy(), s.edges[edges] + np.repeat(off[:, [0, 0, 1, 1]], e, axis=0)
        old[:, 2:] += len(corners)  # normals stand after all corners
        new[:, 2:] += len(corners)

        def joined(table, more):
            return np.concatenate([table[: total[0]], more[: len(corners)], table[total[0] :], more[len(corners) :]])

        both = np.concatenate([corners, total[0] + faces])
        local = joined(s.local, s.local[both])
        body = joined(s.body, np.concatenate([np.repeat(g.body, c), np.repeat(g.body, f)]).astype(s.body.dtype))
        return Solids(
            np.concatenate([s.starts, begin + counts]).astype(s.starts.dtype), local, np.empty_like(local), body,
            np.append(s.rim_starts, s.rim_starts[-1] + np.cumsum(r)).astype(s.rim_starts.dtype),
            np.concatenate([s.rims, rim]).astype(s.rims.dtype), np.concatenate([old, new]).astype(s.edges.dtype),
            np.append(s.size, s.size[g.ball]),
        )  # fmt: skip
