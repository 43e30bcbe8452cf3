"""The stone bridge: its stones, what its joints do, and the push on its central archstone."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from contactdynamics.errors import InputError
from contactdynamics.scenes import loads, packings
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import Disk
from contactdynamics.scenes.shapes.polygons import Polygon

RADIUS, OPENING = 5.0, math.radians(65)  # of the mean line of the arch, m; half its angle
COVER = 0.12  # height of the road over the crown, of the radius
OVERHANG = 0.38  # of the radius: the spandrels reach so far beyond the springings
UNCOURSED = math.radians(28)  # nearer to the crown stones stand upright on the voussoirs
RAMP = 0.5  # s, to the full speed of the object: a sudden start would be a blow


class Bridge(NamedTuple):
    """A bridge, with what is needed to ask about its arch."""

    scene: Scene
    arch: packings.Arch
    spandrel: np.ndarray  # body numbers
    object: int  # the driven one
    push: float  # its speed downwards, m/s


def bridge(parameters, friction: float) -> Bridge:
    """Arch of voussoirs, spandrels in courses, fixed abutments, and a driven disk on the central archstone.

    The bed joints of a spandrel meet the arch at the corners of its extrados, so that every stone is convex and each
    rests on one voussoir at most. Above the crown stones stand upright on the voussoirs; the central one is bare.
    """
    n = parameters["voussoirs"]
    if n % 2 == 0:
        raise InputError(f"bridge got voussoirs={n}; give an odd number from 7 on, it needs a central archstone.")
    scene = Scene(gravity=(0.0, -9.81))
    scene.material("stone", density=2400.0)
    scene.contact("stone", "stone", friction=friction)
    thick = parameters["thickness"] * RADIUS
    span, rise = 2 * RADIUS * math.sin(OPENING), RADIUS * (1 - math.cos(OPENING))
    arch = packings.arch(scene, material="stone", span=span, rise=rise, thickness=thick, voussoirs=n, abutments=False)
    extrados = arch.joints[:, 1]
    end = -extrados[0, 0] + OVERHANG * RADIUS
    stones = _spandrel(extrados, parameters["block"] * RADIUS, end)
    spandrel = [_add(scene, stone) for stone in stones]
    ends = []
    for side in (1, -1):
        (xi, yi), (xe, ye) = arch.joints[0] * (side, 1)
        depth = 0.6 * thick
        low = yi - depth
        outline = [(xi, yi), (xe, ye), (-side * end, ye), (-side * end, low), (xi, low)]
        ends.append(_add(scene, Polygon(outline), fixed=True))
    arch = arch._replace(abutments=np.array(ends))
    key = extrados[n // 2 : n // 2 + 2]
    radius = 0.3 * (key[1, 0] - key[0, 0])
    place = (0.0, key[:, 1].mean() + radius)
    push = parameters["speed"]
    motion = loads.ramp((0.0, 0.0), (0.0, -push), 0.0, RAMP)
    moved = scene.add(Disk(radius), material="stone", position=place, motion=motion)
    return Bridge(scene, arch, np.array(spandrel), moved, push)


def _add(scene, stone, **options) -> int:
    return scene.add(stone, material="stone", position=stone.center_of_mass, **options)


def _spandrel(extrados, block, end) -> list[Polygon]:
    """Stones of both spandrels between the extrados (n + 1, 2), the road and the ends at -end and end."""
    n = len(extrados) - 1
    road = extrados[n // 2, 1] + COVER * RADIUS
    slope = np.arctan2(
        np.diff(extrados[:, 1]), np.diff(extrados[:, 0])
    )  # of each voussoir's back, falling to the right
    first = int(np.argmax(slope < UNCOURSED))  # the first voussoir from the left whose back is nearly level
    stones = []
    for k in range(first):  # a course beside each lower voussoir
        low, high = extrados[k], extrados[k + 1]
        joints = _joints(-end, low[0], high[0], block, k)
        edges = [*joints, None]
        for left, right in pairwise(edges):
            inner = (low[0], high[0]) if right is None else (right, right)
            stones.append([(left, low[1]), (inner[0], low[1]), (inner[1], high[1]), (left, high[1])])
    floor, edge = extrados[first, 1], extrados[first, 0]
    levels = np.linspace(floor, road, max(1, round((road - floor) / (0.5 * block))) + 1)
    for row, (low, high) in enumerate(pairwise(levels)):
        joints = [*_joints(-end, edge, edge, block, first + row), edge]
        stones += [[(a, low), (b, low), (b, high), (a, high)] for a, b in pairwise(joints)]
    for k in range(first, n // 2):  # upright stones
        (a, ya), (b, yb) = extrados[k], extrados[k + 1]
        stones.append([(a, ya), (b, yb), (b, road), (a, road)])
    mirrored = [[(-x, y) for x, y in stone] for stone in stones]
    return [Polygon(stone) for stone in stones + mirrored]


def _joints(left, low, high, block, course) -> list[float]:
    """Upright joints of a course from the left end to its slanting inner stone, staggered from course to course."""
    room = min(low, high) - left
    count = max(1, round(room / block))
    width = room / (count + (0.25 if course % 2 else -0.25)) if count > 1 else room
    return [left + width * k for k in range(count)]


# ---- what the joints do --------------------------------------------------------------------------------------------


class Joints(NamedTuple):
    """The joints of the arch, from the left springing to the right one, compared with the start."""

    turn: np.ndarray  # (K,) rotation of the right stone against the left one, rad
    slip: np.ndarray  # (K,) of the right stone along the joint, outwards, m
    opening: np.ndarray  # (K,) widest gap: |turn| thickness, m
    places: np.ndarray  # (K, 2) of the middle of the joint at the start, from the centre of the arch, m
    pivots: np.ndarray  # (K, 2) where the corner is now, about which the joint turns, m
    thickness: float

    def opened(self, share) -> np.ndarray:
        """Numbers of the joints that have opened by more than ``share`` of the thickness."""
        return np.flatnonzero(self.opening > share * self.thickness)

    def slid(self, share) -> np.ndarray:
        """Numbers of the joints that have slid by more than ``share`` of the thickness."""
        return np.flatnonzero(np.abs(self.slip) > share * self.thickness)

    def hinges(self, share) -> list[dict]:
        """The joints that turn about an end of theirs: its number, its angle from the crown, and which end.

        A joint whose right stone turns counter-clockwise opens on the intrados and turns about the extrados. Stones
        next to each other may share the opening of one hinge; its place is the one that has opened most.
        """
        found = []
        for k in self.opened(share):
            near = [j for j in (k - 1, k + 1) if 0 <= j < len(self.turn) and self.turn[j] * self.turn[k] > 0]
            if any(self.opening[j] > self.opening[k] for j in near):
                continue
            x, y = self.places[k]
            found.append({"joint": int(k), "degrees_from_crown": math.degrees(math.atan2(x, y)),
                          "about": "extrados" if self.turn[k] > 0 else "intrados",
                          "opening": float(self.opening[k])})  # fmt: skip
        return found


def joints(structure: Bridge, start, frame) -> Joints:
    """The joints of the arch in a ``frame``, against those of the ``start``."""
    arch = structure.arch
    chain = np.searchsorted(start.identities, arch.chain)
    angle = (frame.rotations - start.rotations)[chain]
    turn = (np.diff(angle) + math.pi) % (2 * math.pi) - math.pi
    # Follow the corner about which the joint turns, as a point of both stones: its separation is the slip.
    end = np.where(turn > 0, 1, 0)
    corner = arch.joints[np.arange(len(turn)), end]
    outward = arch.joints[:, 1] - arch.joints[:, 0]
    outward /= np.linalg.norm(outward, axis=1)[:, None]
    left, right = (_moved(start, frame, rows, corner) for rows in (chain[:-1], chain[1:]))
    along = _turned(outward, angle[:-1])
    slip = ((right - left) * along).sum(axis=1)
    places = arch.joints.mean(axis=1) - arch.centre
    return Joints(turn, slip, np.abs(turn) * arch.thickness, places, left, arch.thickness)


def _turned(vectors, angle) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * vectors[:, 0] - s * vectors[:, 1], s * vectors[:, 0] + c * vectors[:, 1]], axis=1)


def _moved(start, frame, rows, points) -> np.ndarray:
    """Where material points of bodies have come to."""
    angle = (frame.rotations - start.rotations)[rows]
    return frame.positions[rows] + _turned(points - start.positions[rows], angle)
