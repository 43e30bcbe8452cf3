"""Masonry of cut stones: arches, walls, columns (reached as ``packings.arch`` and so on).

Stones that are to touch share their corners: joints are closed to rounding, and nothing has to settle. What is built is
stated in the plane, upright; in three dimensions x lies along it, z up, and its stones have a ``depth`` along y.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_numbers, explained, is_number, is_whole
from .shapes.polygons import Polygon
from .shapes.polyhedra import solid

LONGEST, MOST_STONES = 1e75, 10**6


class Arch(NamedTuple):
    """What `arch` has built; everything in the order from the left springing to the right one."""

    voussoirs: np.ndarray  # (n,) body numbers
    abutments: np.ndarray  # (2,) body numbers of the fixed stones; (0,) where none were asked for
    joints: np.ndarray  # (n + 1, 2, 2) corners of each joint: on the intrados, on the extrados
    centre: np.ndarray  # (n + 1, 2) of the circle that a joint points to
    radius: float  # of the mean line
    thickness: float

    @property
    def chain(self) -> np.ndarray:
        """The stones that carry the thrust, from one abutment to the other."""
        return np.concatenate([self.abutments[:1], self.voussoirs, self.abutments[1:]])


@explained
def arch(
    scene,
    *,
    material: str,
    span: float,
    thickness: float,
    voussoirs: int,
    rise: float | None = None,
    position=None,
    abutments: bool = True,
    depth: float | None = None,
) -> Arch:
    """Add an arch of equal ``voussoirs`` with radial joints; its stones and joints as an `Arch`.

    ``span`` and ``rise`` are those of the mean line, whose springings lie at the height of ``position`` (d,), the
    middle between them. The rise decides the kind: span/2 (or None) a semicircle, less a segment of a circle, more a
    pointed arch of two circles centred on the springing line, with an upright joint at the crown. Corners lie on the
    circles of radius R - thickness/2 and R + thickness/2. ``abutments`` are fixed stones under the springings.
    ``depth`` along y, in three dimensions.
    """
    mason = Mason(scene, "arch", material, depth, position)
    _positive("arch", span=span, thickness=thickness)
    _whole("arch", voussoirs=voussoirs)
    rise = 0.5 * span if rise is None else rise
    _positive("arch", rise=rise)
    pointed = rise > 0.5 * span * (1 + 1e-12)
    if voussoirs < 2:
        raise InputError(
            f"arch got voussoirs={voussoirs}; give at least 2, with one there is no joint but the springings."
        )
    if pointed and voussoirs % 2:
        raise InputError(
            f"arch got voussoirs={voussoirs} for a pointed arch, which has a joint at its crown; give an even number."
        )
    joints, centre, radius = _ring(span, rise, thickness, int(voussoirs), pointed)
    joints, centre = joints + mason.origin, centre + mason.origin
    numbers = [mason.set([left[0], left[1], right[1], right[0]]) for left, right in pairwise(joints)]
    ends = []
    if abutments:
        for corners, side in ((joints[0], -1), (joints[-1], 1)):
            ends.append(mason.set(_skewback(corners, side, thickness), fixed=True))
    return Arch(np.array(numbers), np.array(ends, dtype=int), joints, centre, radius, float(thickness))


def _ring(span, rise, thickness, voussoirs, pointed):
    """Joints (n + 1, 2, 2) from left to right, their centres (n + 1, 2), and the mean radius."""
    half = 0.5 * span
    if pointed:
        away = (rise**2 - half**2) / span  # of each centre from the middle, on the far side of its arc
        radius, first = half + away, math.pi
        last = math.pi - math.acos(away / radius)
    else:
        radius = (half**2 + rise**2) / (2 * rise)
        if not radius > 0:  # squares that are too small for a number
            raise InputError(f"arch got span={span!r} and rise={rise!r}; give lengths of the order of a metre.")
        away, first = 0.0, 0.5 * math.pi + math.asin(min(1.0, half / radius))
        last = math.pi - first
    if not thickness < 2 * radius:
        raise InputError(
            f"arch got thickness={thickness!r} for a mean radius of {radius:.4g}; give one below twice the radius."
        )
    below = 0.0 if pointed else rise - radius
    edges = np.array([radius - 0.5 * thickness, radius + 0.5 * thickness])
    count = voussoirs // 2 if pointed else voussoirs
    angle = np.linspace(first, last, count + 1)
    centre = np.tile([away, below], (count + 1, 1))
    joints = centre[:, None] + edges[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, None]
    if pointed:
        if edges[0] <= away:
            raise InputError(
                f"arch got thickness={thickness!r}: the inner circles of the pointed arch do not meet; give a smaller "
                "one, or a lower rise."
            )
        joints[-1] = np.stack([np.zeros(2), np.sqrt(edges**2 - away**2)], axis=1)  # the circles at the crown
        mirror = np.array([-1.0, 1.0])
        joints = np.concatenate([joints, mirror * joints[-2::-1]])
        centre = np.concatenate([centre, mirror * centre[-2::-1]])
    return joints, centre, float(radius)


def _skewback(joint, side, thickness) -> list:
    """Corners of a fixed stone below a springing joint, half a thickness wider on both sides."""
    along = joint[1] - joint[0]
    along /= math.hypot(*along)
    down = side * np.array([along[1], -along[0]])
    low, high = joint[0] - 0.5 * thickness * along, joint[1] + 0.5 * thickness * along
    return [low, high, high + thickness * down, low + thickness * down]


# ---- walls and columns ---------------------------------------------------------------------------------------------


@explained
def wall(
    scene,
    *,
    material: str,
    length: float,
    courses: int,
    block=(0.4, 0.2),
    position=None,
    openings=(),
    bearing: float | None = None,
    depth: float | None = None,
) -> np.ndarray:
    """Add a wall of rectangular blocks in running bond; their numbers, course by course from the left.

    ``position`` (d,) is the lower left corner, ``block`` the width and height of a whole block; the joints of a course
    stand over the middle of the blocks below. ``openings`` are rectangles (left, bottom, right, top) measured from that
    corner, between whole courses; a lintel of one course spans each, with a ``bearing`` (half a block) on either side
    where the wall is wide and high enough. No piece is narrower than a quarter of a block. ``depth`` along y, in three
    dimensions; the corner is in its middle.
    """
    mason = Mason(scene, "wall", material, depth, position)
    size = _point("wall", "block", block)
    _positive("wall", length=length, **{"block width": size[0], "block height": size[1]})
    _whole("wall", courses=courses)
    bearing = 0.5 * size[0] if bearing is None else bearing
    _positive("wall", bearing=bearing)
    if length / size[0] * courses > MOST_STONES:
        raise InputError(
            f"wall got length={length!r}, courses={courses!r}, more than {MOST_STONES:g} blocks; give less."
        )
    holes = [_opening(hole, length, courses, size[1]) for hole in openings]
    numbers = []
    for course in range(int(courses)):
        for left, right in _course(course, length, size[0], holes, bearing):
            low = mason.origin + np.array([left, course * size[1]])
            high = mason.origin + np.array([right, (course + 1) * size[1]])
            numbers.append(mason.set([low, (high[0], low[1]), high, (low[0], high[1])]))
    return np.array(numbers)


def _opening(hole, length, courses, height):
    """(left, right, first course, course above) of an opening, checked."""
    values = as_numbers("An opening of a wall", hole)
    if values.shape != (4,):
        raise InputError(f"wall got the opening {hole!r}; give (left, bottom, right, top).")
    left, bottom, right, top = values.tolist()
    rows = [bottom / height, top / height]
    if any(abs(row - round(row)) > 1e-6 for row in rows):
        raise InputError(
            f"wall got an opening from {bottom} to {top}; its bottom and top must be whole courses of {height}."
        )
    first, above = (round(row) for row in rows)
    if not (0 <= left < right <= length and 0 <= first < above <= courses):
        raise InputError(
            f"wall got the opening {hole!r}, which is empty or leaves the wall of {length} by {courses * height:g}; "
            "give left < right and bottom < top inside it."
        )
    return left, right, first, above


def _course(shifted, length, width, holes, bearing, course=None):
    """Intervals (left, right) of the blocks of a course; ``shifted``: odd where its joints are by half a block."""
    course = shifted if course is None else course
    open_, lintels = [], []
    for left, right, first, above in holes:
        if first <= course < above:
            open_.append((left, right))
        elif course == above:
            lintels.append((max(0.0, left - bearing), min(length, right + bearing)))
    taken = sorted(open_ + lintels)
    for (_, end), (begin, _) in pairwise(taken):
        if begin < end - 1e-9 * width:
            raise InputError("wall got openings that overlap, or lintels that do; move them apart.")
    at, blocks = 0.0, []
    for begin, end in [*taken, (length, length)]:
        if begin - at > 1e-9 * width:
            blocks += _bonded(at, begin, width, 0.5 * width * (shifted % 2))
        if (begin, end) in lintels:
            blocks.append((begin, end))
        at = max(at, end)
    return sorted(blocks)


def _bonded(begin, end, width, shift):
    """Blocks between two ends with their joints at shift + k width, but for pieces below a quarter of a block."""
    first, last = math.ceil((begin - shift) / width - 0.25), math.floor((end - shift) / width + 0.25)
    joints = shift + width * np.arange(first, last + 1)
    joints = joints[(joints > begin + 0.2499 * width) & (joints < end - 0.2499 * width)]
    edges = [begin, *joints.tolist(), end]
    return list(pairwise(edges))


@explained
def column(
    scene,
    *,
    material: str,
    width: float,
    height: float,
    drums: int,
    position=None,
    top: float | None = None,
    sides: int = 4,
) -> np.ndarray:
    """Add a column of ``drums`` of equal height, one on the other; their numbers from below.

    ``position`` (d,) is the middle of its foot; ``width`` there tapers to ``top`` (the same width unless given). In
    three dimensions a drum is a prism or the frustum of a pyramid with so many ``sides``, ``width`` the distance
    between two of them (twice that of one from the axis where their number is odd).
    """
    mason = Mason(scene, "column", material, 1.0 if getattr(scene, "dimension", None) == 3 else None, position)
    top = width if top is None else top
    _positive("column", width=width, height=height, top=top)
    _whole("column", drums=drums)
    if not (is_whole(sides, 3) and sides <= 1000) or (scene.dimension == 2 and sides != 4):
        raise InputError(f"column got sides={sides!r}; give a whole number >= 3, in three dimensions alone.")
    levels = np.linspace(0.0, float(height), int(drums) + 1)
    halves = 0.5 * (width + (top - width) * levels / height)
    numbers = []
    for k in range(int(drums)):
        (low, high), (a, b) = levels[k : k + 2], halves[k : k + 2]
        if scene.dimension == 3:
            numbers.append(mason.drum((a, low), (b, high), int(sides)))
        else:
            numbers.append(mason.set(mason.origin + np.array([(-a, low), (a, low), (b, high), (-b, high)])))
    return np.array(numbers)


# ---- checks --------------------------------------------------------------------------------------------------------


class Mason:
    """Who sets the stones of a ``name`` into a scene: of outlines in the plane, with a ``depth`` in 3D."""

    def __init__(self, scene, name: str, material: str, depth, position):
        d = getattr(scene, "dimension", None)
        if d not in (2, 3):
            raise InputError(f"{name} got {scene!r}; give a Scene.")
        if d == 2 and depth is not None:
            raise InputError(f"{name} got depth={depth!r} in two dimensions; leave it out, or give a scene in 3D.")
        if d == 3 and depth is None:
            raise InputError(f"{name} builds upright stones in three dimensions; give depth=..., along y.")
        if d == 3:
            _positive(name, depth=depth)
        place = np.zeros(d) if position is None else _point(name, "position", position, d)
        self.scene, self.material, self.depth = scene, material, depth
        self.origin, self.middle = place[[0, -1]], float(place[1]) if d == 3 else 0.0  # in the plane, and across it

    def set(self, corners, fixed: bool = False) -> int:
        """Add a stone by the corners (k, 2) of its outline, convex; its number."""
        outline = Polygon(corners)
        if self.scene.dimension == 2:
            return self._add(outline, fixed)
        flat, k = outline.vertices + outline.center_of_mass, len(outline.vertices)
        sides = [self.middle + s * 0.5 * self.depth for s in (-1, 1)]
        points = np.concatenate([np.column_stack([flat[:, 0], np.full(k, y), flat[:, 1]]) for y in sides])
        round_ = [((i + 1) % k, i, i + k, (i + 1) % k + k) for i in range(k)]
        return self._add(solid(points, [tuple(range(k)), tuple(range(2 * k - 1, k - 1, -1)), *round_]), fixed)

    def drum(self, foot, head, sides: int) -> int:
        """Add the frustum of a pyramid between two (half width, level); its number."""
        angle = 2 * math.pi * (np.arange(sides) + 0.5) / sides
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) / math.cos(math.pi / sides)
        points = [
            np.column_stack([self.origin[0] + half * ring[:, 0], self.middle + half * ring[:, 1],
                             np.full(sides, self.origin[1] + level)])
            for half, level in (foot, head)
        ]  # fmt: skip
        round_ = [(i, (i + 1) % sides, (i + 1) % sides + sides, i + sides) for i in range(sides)]
        ends = [tuple(range(sides))[::-1], tuple(range(sides, 2 * sides))]
        return self._add(solid(np.concatenate(points), [*ends, *round_]), False)

    def _add(self, stone, fixed: bool) -> int:
        return self.scene.add(stone, material=self.material, position=stone.center_of_mass, fixed=fixed)


def _positive(name, **lengths):
    for key, value in lengths.items():
        if not (is_number(value) and 0 < value <= LONGEST):
            raise InputError(f"{name} got {key}={value!r}; give a positive length.")


def _whole(name, **counts):
    for key, value in counts.items():
        if not (is_whole(value, 1) and value <= MOST_STONES):
            raise InputError(f"{name} got {key}={value!r}; give a whole number >= 1.")


def _point(name, key, value, d: int = 2) -> np.ndarray:
    array = as_numbers(f"{key} of {name}", value)
    if array.shape != (d,) or not np.isfinite(array).all():
        raise InputError(f"{name} got {key}={value!r}; give {'two' if d == 2 else 'three'} finite numbers.")
    return array
