"""Masonry in space: barrel vaults, domes, rings of walls, stairs (reached as ``packings.vault`` and so on).

As in `masonry` stones that are to touch share their corners: joints are closed to rounding.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..errors import InputError, check_flags, explained
from .masonry import MOST_STONES, Mason, _course, _opening, _point, _positive, _ring, _skewback, _whole
from .shapes.polyhedra import Box, Polyhedron

SIDES = ("front", "right", "back", "left")


def _built(scene, name: str, material: str, position, depth: float = 1.0) -> tuple[Mason, np.ndarray]:
    """The mason and the place (3,) of what is built."""
    if getattr(scene, "dimension", None) != 3:
        raise InputError(f"{name} builds in three dimensions and got {scene!r}; give a Scene with gravity of length 3.")
    place = np.zeros(3) if position is None else _point(name, "position", position, 3)
    return Mason(scene, name, material, depth, place), place


class Vault(NamedTuple):
    """What `vault` has built."""

    stones: np.ndarray  # body numbers, row after row from y = -length/2, each from the left springing to the right one
    rows: np.ndarray  # the row of each stone
    abutments: np.ndarray  # (2,) fixed stones under the springings
    radius: float  # of the mean line
    thickness: float


@explained
def vault(
    scene,
    *,
    material: str,
    span: float,
    thickness: float,
    voussoirs: int,
    length: float,
    rows: int = 1,
    rise: float | None = None,
    bond: bool = True,
    position=None,
) -> Vault:
    """Add a barrel vault along y: ``rows`` of stones, each row an arch of ``voussoirs``; its stones as a `Vault`.

    ``span``, ``rise`` and ``thickness`` are those of `arch`, up to a semicircle; ``length`` that of the whole vault.
    With ``bond`` the joints of every other row stand over the middle of the stones beside it. The springings lie at the
    height of ``position`` (3,), the middle of the vault; two fixed stones under them carry it.
    """
    _positive("vault", span=span, thickness=thickness, length=length)
    _whole("vault", voussoirs=voussoirs, rows=rows)
    check_flags("vault", bond=bond)
    rise = 0.5 * span if rise is None else rise
    _positive("vault", rise=rise)
    if voussoirs < 2 or rise > 0.5 * span * (1 + 1e-12):
        raise InputError(
            f"vault got voussoirs={voussoirs!r} and rise={rise!r}; give 2 or more, and a rise up to half the span."
        )
    mason, place = _built(scene, "vault", material, position, length / rows)
    joints, _, radius = _ring(span, rise, thickness, int(voussoirs), False)
    shifted, _, _ = _ring(span, rise, thickness, 2 * int(voussoirs), False)
    shifted = shifted[[0, *range(1, 2 * int(voussoirs), 2), -1]]
    stones, row_of = [], []
    for row in range(int(rows)):
        mason.middle = place[1] - 0.5 * length + (row + 0.5) * length / rows
        for left, right in pairwise((shifted if bond and row % 2 else joints) + mason.origin):
            stones.append(mason.set([left[0], left[1], right[1], right[0]]))
            row_of.append(row)
    mason.middle, mason.depth = place[1], length
    ends = [
        mason.set(_skewback(corners + mason.origin, side, thickness), fixed=True)
        for corners, side in ((joints[0], -1), (joints[-1], 1))
    ]
    return Vault(np.array(stones), np.array(row_of), np.array(ends), radius, float(thickness))


class Dome(NamedTuple):
    """What `dome` has built."""

    stones: np.ndarray  # body numbers, ring after ring from the springing up
    rings: np.ndarray  # the ring of each stone
    keystone: int  # -1 where the top is open
    base: np.ndarray  # fixed stones under the springing
    radius: float  # of the mean sphere
    thickness: float


@explained
def dome(
    scene,
    *,
    material: str,
    radius: float,
    thickness: float,
    rings: int,
    segments: int,
    angle: float = 90.0,
    opening: float | None = None,
    position=None,
) -> Dome:
    """Add a dome of ``rings`` of ``segments`` stones each, with joints that point to its centre; as a `Dome`.

    ``radius`` of the mean sphere about ``position`` (3,); ``angle`` (degrees from the axis) of the springing, 90 for a
    hemisphere. Corners lie on the spheres radius ± thickness/2. The top is closed by one keystone, a ring high; an
    ``opening`` (degrees) leaves an oculus. Stones of all rings stand over each other: joints along meridians run
    through, as those that old domes have cracked into, and rings can be pressed but not pulled. A fixed ring is below.
    """
    _positive("dome", radius=radius, thickness=thickness, angle=angle)
    _whole("dome", rings=rings, segments=segments)
    if not (thickness < 2 * radius and segments >= 3 and angle <= 90 and rings * segments < MOST_STONES):
        raise InputError(
            f"dome got thickness={thickness!r}, segments={segments!r}, angle={angle!r}; give a thickness below twice "
            "the radius, 3 segments or more and an angle up to 90 degrees."
        )
    if opening is not None and not 0 < opening < angle:
        raise InputError(f"dome got opening={opening!r}; give degrees between 0 and the angle {angle:g}, or None.")
    _, place = _built(scene, "dome", material, position)
    top = angle / (rings + 0.5) / 2 if opening is None else opening  # the keystone is half a ring wide on each side
    levels = np.radians(np.linspace(angle, top, int(rings) + 1))
    around = 2 * np.pi * np.arange(segments + 1) / segments
    inner, outer = radius - 0.5 * thickness, radius + 0.5 * thickness

    def corner(size, level, turn):
        way = np.array([math.sin(level) * math.cos(turn), math.sin(level) * math.sin(turn), math.cos(level)])
        return place + size * way

    def stone(corners, fixed=False):
        shape = Polyhedron(corners)
        return scene.add(shape, material=material, position=shape.center_of_mass, fixed=fixed)

    stones, ring_of = [], []
    for ring, (low, high) in enumerate(pairwise(levels)):
        for one, two in pairwise(around):
            stones.append(stone([corner(r, a, t) for r in (inner, outer) for a in (low, high) for t in (one, two)]))
            ring_of.append(ring)
    key = -1
    if opening is None:
        key = stone([corner(r, levels[-1], t) for r in (inner, outer) for t in around[:-1]])
    base, foot = [], levels[0]
    for one, two in pairwise(around):  # under the springing, half a thickness wider on both sides
        rim = [corner(r, foot, t) for r in (inner - 0.5 * thickness, outer + 0.5 * thickness) for t in (one, two)]
        middle = 0.5 * (one + two)
        down = np.array([math.cos(foot) * math.cos(middle), math.cos(foot) * math.sin(middle), -math.sin(foot)])
        base.append(stone([*rim, *(point + thickness * down for point in rim)], fixed=True))
    return Dome(np.array(stones), np.array(ring_of), key, np.array(base), float(radius), float(thickness))


@explained
def house(
    scene,
    *,
    material: str,
    size,
    courses: int,
    block=(0.4, 0.2),
    thickness: float | None = None,
    openings: dict | None = None,
    bearing: float | None = None,
    position=None,
) -> np.ndarray:
    """Add four walls bonded at their corners; the numbers of the blocks, course by course.

    ``size`` (x, y) outside, ``block`` the length and height of a whole block, ``thickness`` of the walls (half).
    In every other course the front and back walls go through, in the others the side walls. ``openings``: rectangles
    (left, bottom, right, top) of the walls "front" (y = 0), "right", "back", "left", each measured along its wall from
    the corner with the smaller coordinate, as those of `wall`, with lintels that bear on a ``bearing`` (half a block)
    on either side; they keep a thickness and a bearing from the corners. ``position`` (3,) is the corner outside.
    """
    name = "house"
    _, place = _built(scene, name, material, position)
    width, height = _point(name, "block", block)
    long, deep = _point(name, "size", size)
    thick = 0.5 * width if thickness is None else thickness
    bearing = 0.5 * width if bearing is None else bearing
    _positive(name, **{"size x": long, "size y": deep, "block length": width, "block height": height},
              thickness=thick, bearing=bearing)  # fmt: skip
    _whole(name, courses=courses)
    if min(long, deep) < 2 * thick + width:
        raise InputError(f"house got size={size!r} for walls {thick:g} thick; give at least {2 * thick + width:g}.")
    holes = openings or {}
    if not isinstance(holes, dict) or not set(holes) <= set(SIDES):
        raise InputError(f"house got openings={openings!r}; give a dict with lists for {', '.join(SIDES)}.")
    if 2 * (long + deep) / width * courses > MOST_STONES:
        raise InputError(f"house got size={size!r}, courses={courses!r}, more than {MOST_STONES:g} blocks; give less.")
    checked = {
        side: [
            _opening(hole, long if side in ("front", "back") else deep, courses, height) for hole in holes.get(side, ())
        ]
        for side in SIDES
    }
    for side in SIDES:
        end = long if side in ("front", "back") else deep
        for left, right, _, _ in checked[side]:
            if left < thick + bearing - 1e-9 or right > end - thick - bearing + 1e-9:
                raise InputError(
                    f"house got an opening of the {side} wall from {left:g} to {right:g}; keep it {thick + bearing:g} "
                    f"from both ends of the wall of {end:g}."
                )
    numbers = []
    for course in range(int(courses)):
        for side in SIDES:
            across = side in ("front", "back")
            whole = long if across else deep
            through = (course % 2 == 0) == across
            begin = 0.0 if through else thick
            shifted = [(left - begin, right - begin, first, above) for left, right, first, above in checked[side]]
            for low, high in _course(0 if through else 1, whole - 2 * begin, width, shifted, bearing, course):
                lo, hi = low + begin, high + begin
                other = {"front": 0.0, "left": 0.0, "back": deep - thick, "right": long - thick}[side]
                corner = np.array([lo, other] if across else [other, lo])
                extent = np.array([hi - lo, thick] if across else [thick, hi - lo])
                shape = Box((*extent, height))
                middle = np.append(corner + 0.5 * extent, (course + 0.5) * height)
                numbers.append(scene.add(shape, material=material, position=place + middle))
    return np.array(numbers)


@explained
def stairs(
    scene, *, material: str, steps: int, tread: float, riser: float, width: float, overlap: float | None = None,
    position=None,
) -> np.ndarray:  # fmt: skip
    """Add a flight of solid steps along x, each a block on the one below and on the ground behind; their numbers.

    Each block is ``width`` wide (y), ``riser`` high and as long as its ``tread`` and the ``overlap`` (a tread) that the
    next one covers; blocks below each other fill the flight down to the height of ``position`` (3,), its foot in the
    middle of its width.
    """
    name = "stairs"
    _, place = _built(scene, name, material, position)
    _positive(name, tread=tread, riser=riser, width=width)
    _whole(name, steps=steps)
    overlap = tread if overlap is None else overlap
    _positive(name, overlap=overlap)
    if steps * (steps + 1) / 2 > MOST_STONES:
        raise InputError(f"stairs got steps={steps!r}, more than {MOST_STONES:g} blocks; give less.")
    numbers, end = [], steps * tread + overlap
    for level in range(int(steps)):
        begin = level * tread
        cuts = [begin, begin + tread + overlap]
        while cuts[-1] < end - 1e-9 * tread:  # behind the step: blocks as long as it, the last one what is left
            cuts.append(min(end, cuts[-1] + tread + overlap))
        for left, right in pairwise(cuts):
            middle = np.array([0.5 * (left + right), 0.0, (level + 0.5) * riser])
            shape = Box((right - left, width, riser))
            numbers.append(scene.add(shape, material=material, position=place + middle))
    return np.array(numbers)
