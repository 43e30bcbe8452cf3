"""Convex polyhedra by the balls that hold them: corners, faces, edges, and what a search for their contacts notes.

How they are found: `axes` (which axis keeps two apart, or is the normal of their contacts), `cutting` (the places where
they touch by it), `meeting` (pair by pair).
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel

CORNER, FACE, EDGE = range(3)  # columns of `starts`


class Solids(NamedTuple):
    """Convex polyhedra by the ball that holds them; S balls, C corners, F faces, E edges. A sphere has none of them."""

    starts: np.ndarray  # (S+1, 3) ball s has the corners, faces and edges from starts[s] to starts[s+1]
    local: np.ndarray  # (C+F, 3) corners (m) and outward unit normals of the faces, in the axes of the body
    vectors: np.ndarray  # (C+F, 3) the same in space, at the present position
    body: np.ndarray  # (C+F,)
    rim_starts: np.ndarray  # (F+1,) face f has the rim from rim_starts[f] to rim_starts[f+1]
    rims: np.ndarray  # (R, 2) corner, and edge to the next corner, counter-clockwise from outside
    edges: np.ndarray  # (E, 4) corners from and to, rows in `vectors` of the normals of the faces left and right
    size: np.ndarray  # (S,) radius of the ball inside the part, about the middle of its ball, m


def solids(balls, corners, rims) -> Solids:
    """Corners, faces and edges of a model, by ball."""
    count, total = len(balls.radius), len(corners.body)
    starts = np.zeros((count + 1, 3), dtype=np.int32)
    starts[:, CORNER] = np.searchsorted(np.searchsorted(balls.body, corners.body) + corners.part, np.arange(count + 1))
    ball = np.searchsorted(balls.body, rims.body) + rims.part
    most = 1 + int(rims.face.max(initial=0))
    begin = np.flatnonzero(np.diff(ball * most + rims.face, prepend=-1))
    rim_starts = np.append(begin, len(ball)).astype(np.int32)
    starts[:, FACE] = np.searchsorted(ball[begin], np.arange(count + 1))
    corner = starts[ball, CORNER] + rims.corner
    face = np.repeat(np.arange(len(begin)), np.diff(rim_starts))
    after = np.arange(1, len(ball) + 1)
    after[rim_starts[1:] - 1] = begin
    low, high = np.minimum(corner, corner[after]), np.maximum(corner, corner[after])
    _, number = np.unique(low * (total + 1) + high, return_inverse=True)  # in the order of the balls
    edges = np.zeros((len(ball) // 2, 4), dtype=np.int32)
    forward = corner < corner[after]
    edges[number[forward], 0], edges[number[forward], 1] = low[forward], high[forward]
    edges[number[forward], 2], edges[number[~forward], 3] = total + face[forward], total + face[~forward]
    starts[:, EDGE] = np.searchsorted(
        np.searchsorted(starts[:, CORNER], edges[:, 0], "right") - 1, np.arange(count + 1)
    )
    normals = _normals(corners.place, corner, after, rim_starts)
    local = np.concatenate([corners.place, normals])
    body = np.concatenate([corners.body, rims.body[begin]]).astype(np.int32)
    size = balls.radius.copy()
    heights = (normals * (corners.place[corner[begin]] - balls.centre[ball[begin]])).sum(axis=1)
    size[ball[begin]] = np.inf
    np.minimum.at(size, ball[begin], heights)
    rim = np.stack([corner, number], axis=1).astype(np.int32)
    return Solids(starts, local, np.empty_like(local), body, rim_starts, rim, edges, size)


def _normals(places, corner, after, rim_starts) -> np.ndarray:
    """Outward unit normals (F, 3) of faces, from all their corners (Newell)."""
    if not len(corner):
        return np.zeros((0, 3))
    origin = places[corner[np.repeat(rim_starts[:-1], np.diff(rim_starts))]]
    turns = np.cross(places[corner] - origin, places[corner[after]] - origin)
    normal = np.add.reduceat(turns, rim_starts[:-1])
    return normal / np.sqrt((normal**2).sum(axis=1))[:, None]


@kernel
def place_solids(pose, solids, begin, end):
    """Rows ``begin`` to ``end`` of the corners, which come first, and normals in space, at the ``pose``."""
    position, orientation = pose
    local, body, corners, out, last = solids.local, solids.body, solids.starts[-1, CORNER], solids.vectors, -1
    xx = xy = xz = yx = yy = yz = zx = zy = zz = 0.0
    for k in range(begin, end):
        i = body[k]
        if i != last:
            w, x, y, z = orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3]
            xx, xy, xz = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
            yx, yy, yz = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
            zx, zy, zz = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
            last = i
        x, y, z = local[k, 0], local[k, 1], local[k, 2]
        out[k, 0], out[k, 1], out[k, 2] = xx * x + xy * y + xz * z, yx * x + yy * y + yz * z, zx * x + zy * y + zz * z
        if k < corners:
            out[k, 0] += position[i, 0]
            out[k, 1] += position[i, 1]
            out[k, 2] += position[i, 2]


@kernel
def place_some(pose, solids, balls):
    """The corners and normals of the parts of some ``balls`` (n,)."""
    starts, corners = solids.starts, solids.starts[-1, CORNER]
    for n in range(balls.size):
        i = balls[n]
        place_solids(pose, solids, starts[i, CORNER], starts[i + 1, CORNER])
        place_solids(pose, solids, corners + starts[i, FACE], corners + starts[i + 1, FACE])


@kernel(inline=True)
def face_level(vectors, starts, rim_starts, rims, face):
    """Normal of a face, and the level of its plane along it."""
    row, corner = starts[starts.shape[0] - 1, CORNER] + face, rims[rim_starts[face], 0]
    nx, ny, nz = vectors[row, 0], vectors[row, 1], vectors[row, 2]
    return nx, ny, nz, nx * vectors[corner, 0] + ny * vectors[corner, 1] + nz * vectors[corner, 2]


@kernel(inline=True)
def lowest(vectors, begin, end, nx, ny, nz):
    """The least height of the corners ``begin`` to ``end`` along a normal."""
    height = np.inf
    for k in range(begin, end):
        height = min(height, nx * vectors[k, 0] + ny * vectors[k, 1] + nz * vectors[k, 2])
    return height


class Meetings(NamedTuple):
    """Pairs that may touch, on their way through the search; M of them, P points of contact."""

    index: np.ndarray  # (M, 9) balls ONE and OTHER, LISTED where, first ROW and ROWS of memory, HOW (the axis), its
    # edges EDGE_ONE and EDGE_TWO, COUNT of its points
    bound: np.ndarray  # (M, 5) WAY in a step, inf where the same axis is taken again; LIMIT of the gap, m; normal
    points: np.ndarray  # (P, 4) place, halfway in the gap, and gap, m; pair after pair
    names: np.ndarray  # (P, 2)


ONE, OTHER, LISTED, ROW, ROWS, HOW, EDGE_ONE, EDGE_TWO, COUNT = range(9)
WAY, LIMIT, NX, NY, NZ = range(5)


class Scratch(NamedTuple):
    """What the search notes from step to step, and room for a joint."""

    apart: np.ndarray  # (L, 2) for each place in the neighbour lists the axis that last kept the two apart, by its name
    polygon: np.ndarray  # (2, room, 3) corners of a joint: places in the plane of the face, height over it
    labels: np.ndarray  # (2, room, 3) names, and the edge to the next corner
    source: np.ndarray  # (room,) row of the memory of each corner
    used: np.ndarray  # (4 room,) rows of the memory of a pair that have gone on
    spheres: bool  # whether there are spheres beside the polyhedra


def scratch_arrays(room: int, spheres: bool) -> Scratch:
    """Arrays for joints of ``room`` corners; no pairs yet."""
    return Scratch(
        np.zeros((0, 2), dtype=np.int32), np.zeros((2, room, 3)), np.zeros((2, room, 3), np.int32),
        np.zeros(room, dtype=np.int32), np.zeros(4 * room, dtype=bool), spheres,
    )  # fmt: skip


def meeting_arrays(room: int, points: int) -> Meetings:
    """Arrays for ``room`` pairs and so many points."""
    return Meetings(
        np.empty((room, 9), dtype=np.int32), np.empty((room, 5)), np.empty((points, 4)),
        np.empty((points, 2), dtype=np.int32),
    )  # fmt: skip
