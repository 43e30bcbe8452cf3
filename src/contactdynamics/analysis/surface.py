"""Shape and density: the free surface, its slope, height, packing fraction, volume mass.

All from vertical chords: above each place of a fine grid, the part of the vertical line that lies in each ball and in
each convex part of a polygon or polyhedron.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, explained
from ..scenes.shapes.hulls import moments
from ..scenes.shapes.polygons import area_of
from ..state import FREE
from .forces import new_axes
from .regions import Under, axis_of, fitting, positive

LEVEL = 1e-9  # of the height: a fall over the whole profile that is none but for rounding


class Chords(NamedTuple):
    """Vertical chords of balls above the places of a grid."""

    ball: np.ndarray  # (K,)
    column: np.ndarray  # (K,) index of the place
    half: np.ndarray  # (K,) half the length

    __repr__ = short


def grid(low, high, spacing: float) -> np.ndarray:
    """Places (M, d-1), ``spacing`` apart, that cover the rectangle from ``low`` to ``high``."""
    axes = [np.arange(a + spacing / 2, b, spacing) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def chords(centres, radii, low, high, spacing: float) -> Chords:
    """The chords of balls above the places of `grid`."""
    side = len(low)
    shape = [len(np.arange(a + spacing / 2, b, spacing)) for a, b in zip(low, high, strict=True)]
    start = np.asarray(low) + spacing / 2
    reach = math.ceil(2 * radii.max() / spacing) + 1 if len(radii) else 0
    first = np.ceil((centres[:, :side] - radii[:, None] - start) / spacing).astype(int)
    window = np.stack(np.meshgrid(*[np.arange(reach)] * side, indexing="ij"), axis=-1).reshape(-1, side)
    balls, columns, halves = [], [], []
    for offset in window:
        index = first + offset
        left = radii**2 - ((start + index * spacing - centres[:, :side]) ** 2).sum(axis=1)
        ball = np.flatnonzero((left > 0) & ((index >= 0) & (index < shape)).all(axis=1))
        balls.append(ball)
        columns.append(np.ravel_multi_index(tuple(index[ball].T), shape))
        halves.append(np.sqrt(left[ball]))
    if not balls:
        return Chords(np.zeros(0, int), np.zeros(0, int), np.zeros(0))
    return Chords(np.concatenate(balls), np.concatenate(columns), np.concatenate(halves))


class Spans(NamedTuple):
    """Vertical chords of the convex parts of polygons or polyhedra above the places of a grid."""

    part: np.ndarray  # (K,)
    column: np.ndarray  # (K,) index of the place
    bottom: np.ndarray  # (K,)
    top: np.ndarray  # (K,)

    __repr__ = short


def spans(frame, low, high, spacing: float) -> Spans:
    """The chords of polygons or polyhedra above the places of `grid`."""
    corners, starts, _ = frame.parts
    start = np.asarray(low) + spacing / 2
    shape = [len(np.arange(a + spacing / 2, b, spacing)) for a, b in zip(low, high, strict=True)]
    found = [(np.zeros(0, int), np.zeros(0, int), np.zeros(0), np.zeros(0))]
    cut = _flat_span if frame.dimension == 2 else _solid_span
    for k in range(len(starts) - 1):
        part = corners[starts[k] : starts[k + 1]].astype(float)
        sides = [
            np.arange(max(0, math.ceil((x.min() - a) / spacing)), min(n - 1, math.floor((x.max() - a) / spacing)) + 1)
            for x, a, n in zip(part.T, start, shape, strict=False)
        ]
        column = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))
        bottom, top = cut(frame, k, part, start + column * spacing)
        held = top >= bottom
        index = np.ravel_multi_index(tuple(column[held].T), shape)
        found.append((np.full(len(index), k), index, bottom[held], top[held]))
    return Spans(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _flat_span(frame, k, part, places) -> tuple[np.ndarray, np.ndarray]:
    """Bottom and top of a convex polygon above the places (m, 1)."""
    # Corners run counter-clockwise: from the leftmost one below to the rightmost one, and back above.
    part = np.roll(part, -int(part[:, 0].argmin()), axis=0)
    right = int(part[:, 0].argmax())
    lower, upper = part[: right + 1], np.vstack([part[right:], part[:1]])[::-1]
    return np.interp(places[:, 0], *lower.T), np.interp(places[:, 0], *upper.T)


def _solid_span(frame, k, part, places) -> tuple[np.ndarray, np.ndarray]:
    """Bottom and top of a convex polyhedron above the places (m, 2); the top is below where they miss it."""
    bottom, top = np.full(len(places), -np.inf), np.full(len(places), np.inf)
    for face in _faces(frame, k):
        rim = part[face] - part[face[0]]
        n = np.cross(rim, np.roll(rim, -1, axis=0)).sum(axis=0)
        n /= math.sqrt(n @ n)
        left = n @ part[face[0]] - places @ n[:2]  # n_z z <= left
        if n[2] > 1e-12:
            top = np.minimum(top, left / n[2])
        elif n[2] < -1e-12:
            bottom = np.maximum(bottom, left / n[2])
        else:
            top = np.where(left < 0, -np.inf, top)
    return bottom, top


def _faces(frame, k) -> list:
    """The faces of the part ``k`` of a polyhedron by the numbers of its corners."""
    first, after = frame.solid_starts[k : k + 2]
    begin = frame.face_corners[frame.face_starts[:-1]]
    return [
        frame.face_corners[frame.face_starts[f] : frame.face_starts[f + 1]] - first
        for f in np.flatnonzero((begin >= first) & (begin < after))
    ]


def _tops(frame, keep, low, high, spacing, places) -> np.ndarray:
    """The highest point of the balls and parts ``keep`` (S + Q,) above each place; minus infinity where none is."""
    balls, parts = np.split(keep, [len(frame.ball_radii)])
    centres, radii = frame.ball_centres[balls].astype(float), frame.ball_radii[balls].astype(float)
    cut = chords(centres, radii, low, high, spacing)
    out = np.full(len(places), -np.inf)
    np.maximum.at(out, cut.column, centres[cut.ball, -1] + cut.half)
    if parts.any():
        span = spans(frame, low, high, spacing)
        kept = parts[span.part]
        np.maximum.at(out, span.column[kept], span.top[kept])
    return out


def _settled(frame) -> np.ndarray:
    """Which balls and parts of polygons or polyhedra (S + Q,) are free and touch something: not those in flight.

    A part touches what the disk or ball around it does.
    """
    from scipy.spatial import cKDTree

    frame = bounding_disks(frame)
    radii, centres = frame.ball_radii.astype(float), frame.ball_centres.astype(float)
    if not len(radii):
        return np.zeros(0, dtype=bool)
    slack = 0.05 * radii.min()
    near = np.zeros(len(radii), dtype=bool)
    a, b = cKDTree(centres).query_pairs(2 * radii.max() + slack, output_type="ndarray").T
    touch = np.sqrt(((centres[a] - centres[b]) ** 2).sum(axis=1)) < radii[a] + radii[b] + slack
    near[a[touch]], near[b[touch]] = True, True
    for normal, point in zip(frame.plane_normals, frame.plane_points, strict=True):
        near |= (centres - point) @ normal < radii + slack
    return near & (frame.kinds[frame.ball_bodies] == FREE)


@explained
def bounding_disks(frame):
    """The frame with the disk or ball around each convex part of its polygons or polyhedra among its balls, after them.

    They are centred in the middle of the part's corners.
    """
    corners, starts, bodies = frame.parts
    middles = np.zeros((len(bodies), frame.dimension))
    radii = np.zeros(len(middles))
    for k in range(len(middles)):
        part = corners[starts[k] : starts[k + 1]]
        middles[k] = 0.5 * (part.min(axis=0) + part.max(axis=0))
        radii[k] = np.sqrt(((part - middles[k]) ** 2).sum(axis=1).max())
    return frame._replace(
        ball_radii=np.concatenate([frame.ball_radii, radii]),
        ball_centres=np.concatenate([frame.ball_centres, middles]) if len(radii) else frame.ball_centres,
        ball_bodies=np.concatenate([frame.ball_bodies, bodies]),
    )


class Surface(NamedTuple):
    """Heights above the places of a grid."""

    places: np.ndarray  # (M, d-1)
    height: np.ndarray  # (M,) of the highest free body, of the ground where there is none
    ground: np.ndarray  # (M,) of the highest fixed body; minus infinity where there is none
    covered: np.ndarray  # (M,) whether a free body is there
    level: float  # mean height of the ground under the free bodies

    __repr__ = short


@explained
def surface(frame, *, spacing: float | None = None, ignore=()) -> Surface:
    """The free surface: heights of the highest free body, ``spacing`` apart (half the mean radius unless given).

    The bodies of the numbers ``ignore``, such as a drum around the others, are no ground.
    """
    settled, seen = _settled(frame), bounding_disks(frame)
    if not settled.any():
        raise InputError("surface found no free body that touches another one; take a later frame.")
    spacing = 0.5 * float(seen.ball_radii[settled].mean()) if spacing is None else positive("spacing", spacing)
    reach = seen.ball_radii[settled].max()
    side = frame.dimension - 1
    low = seen.ball_centres[settled, :side].min(axis=0) - reach
    high = seen.ball_centres[settled, :side].max(axis=0) + reach
    places = grid(low, high, spacing)
    top = _tops(frame, settled, low, high, spacing, places)
    bearing = (frame.kinds != FREE) & ~np.isin(frame.identities, np.asarray(ignore, dtype=int))
    ground = _tops(frame, bearing[seen.ball_bodies], low, high, spacing, places)
    for normal, point in zip(frame.plane_normals, frame.plane_points, strict=True):
        if normal[-1] > 0.1:
            ground = np.maximum(ground, point[-1] - (places - point[:side]) @ normal[:side] / normal[-1])
    covered = top > ground
    if not covered.any():
        raise InputError(
            "surface found no free body in the open: what is fixed or driven lies above them all, as a drum does; fit "
            "a line to surface(frame, ignore=[its number]), since slope is for piles about a vertical axis."
        )
    below = ground[covered & np.isfinite(ground)]
    level = float(below.mean()) if len(below) else float(top[covered].min())
    return Surface(places, np.where(covered, top, np.maximum(ground, level)), ground, covered, level)


@explained
def height(frame) -> float:
    """The highest point of the free bodies, but for those in flight, above the mean level of the ground."""
    tops = frame.ball_centres[:, -1] + frame.ball_radii
    corners, starts, bodies = frame.parts
    if len(bodies):
        tops = np.concatenate([tops, np.maximum.reduceat(corners[:, -1], starts[:-1])])
    tops = tops[_settled(frame)]
    return float(tops.max() - surface(frame).level) if len(tops) else 0.0


class Slope(NamedTuple):
    """The mean profile of a pile about its axis, and the straight line through its flank."""

    degrees: float
    error: float  # standard error over sectors (the two flanks in 2D)
    apex: float  # height of the line at the axis above the level
    foot: float  # distance from the axis where the line meets the level; inf where the surface is level
    level: float  # of the ground
    radii: np.ndarray  # (K,)
    heights: np.ndarray  # (K,) mean height of the free surface above the level
    used: np.ndarray  # (K,) the points the line goes through

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None):
        """The profile with its line."""
        ax = new_axes(ax)
        ax.plot(self.radii, self.heights, "ko", ms=3)
        ends = ([0, self.foot], [self.apex, 0]) if math.isfinite(self.foot) else ([0, self.radii[-1]], [self.apex] * 2)
        ax.plot(*ends, "r-", lw=1, label=f"{self.degrees:.1f}° ± {self.error:.1f}°")
        ax.set(xlabel="distance from the axis", ylabel="height", xlim=(0, None), ylim=(0, None))
        ax.set_aspect("equal")
        ax.legend(frameon=False)
        return ax


def _diameter(frame) -> float:
    """Mean diameter of the free balls and of the disks or balls around the free parts of polygons or polyhedra."""
    seen = bounding_disks(frame)
    return 2 * float(seen.ball_radii[seen.kinds[seen.ball_bodies] == FREE].mean())


@explained
def slope(frame, *, axis=None, share=(0.2, 0.8), sectors: int = 8) -> Slope:
    """The slope of the free surface of a pile: a line through its mean profile about the axis.

    The line goes through the part of the profile between the two ``share`` of its top: neither the rounded top nor the
    scattered foot. Its error is that of the mean of ``sectors`` (in 2D of the two flanks).
    """
    if not (len(share) == 2 and 0 <= share[0] < share[1] <= 1):
        raise InputError(f"slope got share={share!r}; give two parts of the height, such as (0.2, 0.8).")
    if not (isinstance(sectors, int) and sectors >= 1):
        raise InputError(f"slope got sectors={sectors!r}; give a positive whole number.")
    away = -axis_of(frame, axis)
    seen = surface(frame)
    side = frame.dimension - 1
    away = seen.places + away
    r = np.sqrt((away**2).sum(axis=1))
    width = _diameter(frame)
    above = seen.height - seen.level
    count = max(2, int(r[seen.covered].max() / width))
    ring = np.minimum((r / width).astype(int), count)
    part = (away[:, 0] > 0).astype(int) if side == 1 else (np.arctan2(*away.T[::-1]) // (2 * math.pi / sectors)).astype(
        int) + sectors // 2  # fmt: skip

    def profile(keep):
        number = np.bincount(ring[keep], minlength=count + 1)[:count]
        return np.bincount(ring[keep], above[keep], count + 1)[:count] / np.maximum(1, number)

    radii, heights = (np.arange(count) + 0.5) * width, profile(np.ones(len(r), dtype=bool))
    low, high = share[0] * heights.max(), share[1] * heights.max()
    start = min(int(np.argmax(heights < high)), max(count - 2, 0))  # a line needs two rings
    stop = start + int(np.argmax(heights[start:] < low)) if (heights[start:] < low).any() else count
    used = np.zeros(count, dtype=bool)
    used[start : max(stop, start + 2)] = True

    def line(values):
        return np.polyfit(radii[used], values[used], 1)

    fall, apex = line(heights)
    if abs(fall) * radii[-1] <= LEVEL * np.abs(heights).max():
        fall = 0.0
    each = [math.degrees(math.atan(-line(profile(part == k))[0])) for k in np.unique(part)]
    degrees = math.degrees(math.atan(-fall))
    error = float(np.std(each, ddof=1) / math.sqrt(len(each))) if len(each) > 1 else float("nan")
    foot = float(-apex / fall) if fall else math.inf
    return Slope(degrees, error, float(apex), foot, seen.level, radii, heights, used)


@explained
def interior(frame, *, margin: float | None = None, axis=None) -> Under:
    """The inside of a pile: ``margin`` (a mean diameter unless given) below the mean surface and above the ground."""
    shape = slope(frame, axis=axis)
    margin = _diameter(frame) if margin is None else margin
    axis = tuple(axis_of(frame, axis).tolist())
    return Under(shape.radii, shape.level + shape.heights - margin, shape.level + margin, axis)


def _solid(frame, region, weight, spacing) -> float:
    """Mean of ``weight`` (S + Q,) in the balls and parts of polygons or polyhedra, 0 outside, over a region."""
    radii = bounding_disks(frame).ball_radii
    if not len(radii):
        raise InputError("The frame has no body with a volume; take one with balls, polygons or polyhedra.")
    spacing = 0.25 * float(radii.min()) if spacing is None else positive("spacing", spacing)
    low, high = fitting(region, frame).sides
    places = grid(low, high, spacing)
    bottom, top = region.heights(places)
    if not (top > bottom).any():
        raise InputError(f"{region!r} is empty; choose a larger region or a smaller margin.")
    centres, radii = frame.ball_centres.astype(float), frame.ball_radii.astype(float)
    cut = chords(centres, radii, low, high, spacing)
    z = centres[cut.ball, -1]
    inside = np.minimum(z + cut.half, top[cut.column]) - np.maximum(z - cut.half, bottom[cut.column])
    total = (weight[cut.ball] * np.maximum(0.0, inside)).sum()
    if len(frame.parts[2]):
        span = spans(frame, low, high, spacing)
        inside = np.minimum(span.top, top[span.column]) - np.maximum(span.bottom, bottom[span.column])
        total += (weight[len(radii) + span.part] * np.maximum(0.0, inside)).sum()
    return float(total / (top - bottom).sum())


@explained
def packing_fraction(frame, region, *, spacing: float | None = None) -> float:
    """The share of a region that bodies fill, along vertical lines ``spacing`` apart (the smallest radius over 4)."""
    return _solid(frame, region, np.ones(len(frame.ball_radii) + len(frame.parts[2])), spacing)


@explained
def volume_mass(frame, region, *, spacing: float | None = None) -> float:
    """The mass of what is in a region, per volume of the region."""
    d = frame.dimension
    volume = (math.pi * frame.ball_radii**2) if d == 2 else (4 / 3 * math.pi * frame.ball_radii**3)
    corners, starts, owners = frame.parts
    parts = np.split(corners, starts[1:-1]) if len(owners) else []
    if d == 2:
        sizes = [area_of(part - part[0]) for part in parts]
    else:
        sizes = [moments(part - part[0], _faces(frame, k))[0] for k, part in enumerate(parts)]
    volume = np.concatenate([volume, sizes])
    bodies = np.concatenate([frame.ball_bodies, owners])
    whole = np.bincount(bodies, volume, len(frame.masses))
    return _solid(frame, region, frame.masses[bodies] / whole[bodies], spacing)
