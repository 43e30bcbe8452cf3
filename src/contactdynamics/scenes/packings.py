"""Ready parts of scenes: sieve curves, pavements, pouring, outlets, lattices, rain, boxes, masonry; in 2D and 3D.

The last axis of a scene points up. Everything random follows from a seed: two scenes built alike have the same bits.
"""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_numbers, check_flags, check_function, check_seed, explained, is_number, is_whole
from . import pavement as circles
from .blocks import blocks
from .buildings import Dome, Vault, dome, house, stairs, vault
from .filling import compress, random
from .hooks import Hook, name_of
from .masonry import Arch, arch, column, wall
from .outlets import Outlet
from .resting import resting_heights
from .scene import Scene
from .shapes.balls import HalfPlane, Plane
from .shapes.polygons import Polygon
from .shapes.polyhedra import Polyhedron
from .sieves import Sieve, as_sieve, passing
from .tables import join_all

__all__ = [
    "Arch",
    "Dome",
    "Irregular",
    "Outlet",
    "Pour",
    "Rocks",
    "Sieve",
    "Vault",
    "arch",
    "blocks",
    "box",
    "column",
    "compress",
    "dome",
    "house",
    "lattice",
    "passing",
    "pavement",
    "rain",
    "random",
    "resting_heights",
    "stairs",
    "vault",
    "wall",
]


MOST_BALLS = 10**9


def _check_scene(name: str, scene) -> None:
    if not isinstance(scene, Scene):
        raise InputError(f"{name} got {scene!r}; give a Scene.")


def _corners(name: str, low, high, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two corners of a box, (d,) each."""
    corners = as_numbers("low", low), as_numbers("high", high)
    if (
        any(corner.shape != (d,) or not np.isfinite(corner).all() for corner in corners)
        or not (corners[0] < corners[1]).all()
    ):
        raise InputError(
            f"{name} got low={low!r} and high={high!r}; give two corners of {d} numbers, the lower one first."
        )
    return corners


# ---- ground and boxes ----------------------------------------------------------------------------------------------


@explained
def pavement(scene, *, material: str, sizes, extent, seed: int, level: float = 0.0, cover: float = 0.85) -> np.ndarray:
    """Add a rough ground: fixed balls at random places, with their centres at the height ``level``; their numbers.

    ``extent``: a length, the radius of a round ground about the axis (in 2D half the length of a straight one), or the
    two sides of a rectangular one. ``cover``: area (in 2D length) of the balls' sections over that of the ground. In 3D
    neighbours are spread until they hardly overlap, then holes are filled in which the smallest ball would get wedged.
    """
    _check_scene("pavement", scene)
    check_seed("pavement", seed)
    sieve, rng, d = as_sieve(sizes), np.random.default_rng([seed, 0, 1]), scene.dimension
    sides = np.atleast_1d(as_numbers("extent", extent))
    if not (is_number(level) and is_number(cover) and 0 < cover <= 2):
        raise InputError(f"pavement got level={level!r}, cover={cover!r}; give a height, and a share of about 0.85.")
    if sides.shape not in ((1,), (2,)) or not (np.isfinite(sides) & (sides > 0)).all() or (d == 2 and len(sides) == 2):
        raise InputError(f"pavement got extent={extent!r}; give a radius or, in 3D, two sides.")
    if np.prod(sides / sieve.smallest) > MOST_BALLS:
        raise InputError(f"pavement of {extent!r} would take more than {MOST_BALLS:g} balls; make it smaller.")
    if d == 2:
        count = int(2 * sides[0] * cover / sieve.smallest) + 1
        radii = 0.5 * sieve.draw(count, rng, dimension=2)
        place = np.cumsum(2 * radii / cover) - radii / cover - sides[0]
        keep = place <= sides[0]
        position = np.stack([place[keep], np.full(keep.sum(), level)], axis=1)
        return scene.add_many(radii[keep], material=material, position=position, fixed=True)
    area = (2 * sides if len(sides) == 1 else sides) + sieve.largest
    mean = (sieve.diameter((np.arange(1000) + 0.5) / 1000) ** 2).mean() * math.pi / 4
    radii = 0.5 * sieve.draw(max(1, round(cover * area[0] * area[-1] / mean)), rng)
    area = area * np.ones(2)
    place = rng.random((len(radii), 2)) * area
    circles.spread(place, radii, area, 100)
    place, radii = _filled(place, radii, area, sieve, rng)
    place -= area / 2
    keep = (place**2).sum(axis=1) <= sides[0] ** 2 if len(sides) == 1 else (abs(place) <= sides / 2).all(axis=1)
    position = np.column_stack([place[keep], np.full(keep.sum(), level)])
    return scene.add_many(radii[keep], material=material, position=position, fixed=True)


def _filled(place, radii, area, sieve, rng):
    """Put circles into the holes of a periodic plane of circles where one of 0.6 of the smallest radius still fits.

    With friction up to 0.4 the smallest ball is then lifted out, not wedged, by any balls at the rim of a hole.
    """
    small = 0.5 * sieve.smallest
    axes = [np.arange(0.0, side, small / 4) for side in area]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    room = circles.room(points, place, radii, area)
    more, sizes = [], []
    while True:
        points, room = points[room > 0.6 * small], room[room > 0.6 * small]
        if not len(points):
            return np.concatenate([place, *more]), np.append(radii, sizes)
        more.append(points[[np.argmax(room)]])
        sizes.append(0.5 * sieve.diameter(rng.random()))
        apart = points - more[-1]
        apart -= area * np.round(apart / area)
        room = np.minimum(room, np.sqrt((apart**2).sum(axis=1)) - sizes[-1])


@explained
def box(scene, *, material: str, low, high, lid: bool = False) -> np.ndarray:
    """Add the walls of a box as fixed planes: floor, sides and, with ``lid``, the top; their numbers.

    ``low``, ``high``: two corners (d,). The walls come axis by axis, first the lower one.
    """
    _check_scene("box", scene)
    check_flags("box", lid=lid)
    d = scene.dimension
    corners = _corners("box", low, high, d)
    shape = HalfPlane if d == 2 else Plane
    numbers = []
    for axis in range(d):
        for side in range(2):
            if (axis, side) == (d - 1, 1) and not lid:
                continue
            normal = np.zeros(d)
            normal[axis] = 1 - 2 * side
            numbers.append(scene.add(shape(normal), material=material, position=corners[side], fixed=True))
    return np.array(numbers)


# ---- grains --------------------------------------------------------------------------------------------------------


@explained
def lattice(
    scene, *, material: str, sizes, counts, origin, spacing: float | None = None, dense: bool = False, seed: int = 0
) -> np.ndarray:
    """Add balls on a lattice of ``counts`` (d,) places, the first one at ``origin``; their numbers.

    ``spacing`` of neighbours: the largest diameter unless given. The lattice is square or cubic; ``dense`` makes it
    triangular (2D) or hexagonal close-packed (3D).
    """
    _check_scene("lattice", scene)
    check_seed("lattice", seed)
    sieve, d = as_sieve(sizes), scene.dimension
    check_flags("lattice", dense=dense)
    numbers = as_numbers("counts", counts)
    if numbers.shape != (d,) or not all(is_whole(n, 1) for n in numbers) or np.prod(numbers) > MOST_BALLS:
        raise InputError(f"lattice got counts={counts!r}; give {d} whole numbers >= 1.")
    start = as_numbers("origin", origin)
    if start.shape != (d,) or not np.isfinite(start).all():
        raise InputError(f"lattice got origin={origin!r}; give {d} finite numbers.")
    if spacing is not None and not (is_number(spacing) and spacing > 0):
        raise InputError(f"lattice got spacing={spacing!r}; give a positive length.")
    index = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), axis=-1).reshape(-1, d)
    place = index.astype(float)
    if dense and d == 2:
        place = np.stack([index[:, 0] + 0.5 * (index[:, 1] % 2), math.sqrt(0.75) * index[:, 1]], axis=1)
    elif dense:
        i, j, k = index.T
        place = np.stack([
            i + 0.5 * ((j + k) % 2), math.sqrt(0.75) * (j + (k % 2) / 3), math.sqrt(2 / 3) * k,
        ], axis=1)  # fmt: skip
    place = start + place * (sieve.largest if spacing is None else spacing)
    radii = 0.5 * sieve.draw(len(place), np.random.default_rng([seed, 0, 2]), dimension=d)
    return scene.add_many(radii, material=material, position=place)


@explained
def rain(scene, *, material: str, sizes, count: int, low, high, seed: int, velocity=None) -> np.ndarray:
    """Add ``count`` balls at random places in the box from ``low`` to ``high`` (d,), none overlapping; their numbers.

    The box must be free of other bodies, and not too small: it holds about a third of its volume.
    """
    _check_scene("rain", scene)
    check_seed("rain", seed)
    sieve, d = as_sieve(sizes), scene.dimension
    low, high = _corners("rain", low, high, d)
    if not is_whole(count, 1):
        raise InputError(f"rain got count={count!r}; give a whole number >= 1.")
    found = _scattered(sieve, int(count), low, high, seed)
    if found is None:
        if (high - low).min() < sieve.smallest:
            raise InputError(
                f"rain got balls of {sieve.smallest:g} to {sieve.largest:g} across, wider than the box from "
                f"{low.tolist()} to {high.tolist()}; make it larger."
            )
        fewer = _most_scattered(sieve, int(count), low, high, seed)
        advice = f"ask for {fewer}, which fit with this seed, or make" if fewer else "not even one fits: make"
        raise InputError(
            f"rain found no room for {count} balls between {low.tolist()} and {high.tolist()}; {advice} the box larger."
        )
    radii, place = found
    return scene.add_many(radii, material=material, position=place, velocity=velocity)


def _scattered(sieve, count: int, low, high, seed: int):
    """Radii (count,) and places (count, d) of balls in a box, none overlapping; None where they find no room."""
    from scipy.spatial import cKDTree  # a fifth of a second that other scenes do not spend

    rng, d = np.random.default_rng([seed, 0, 3]), len(low)
    filled = count * (math.pi / 4 if d == 2 else math.pi / 6) * sieve.smallest**d / np.prod(high - low)
    if not filled <= 0.6:  # random places never fill more
        return None
    radii = np.sort(0.5 * sieve.draw(count, rng, dimension=d))[::-1].copy()  # large ones first: they find room
    place = np.empty((count, d))
    settled = np.zeros(count, dtype=bool)
    filled = (math.pi if d == 2 else 4 / 3 * math.pi) * (radii**d).sum() / np.prod(high - low)
    possible = (high - low).min() >= 2 * radii[0] and filled < 0.6
    for _ in range(500 if possible else 0):
        free = np.flatnonzero(~settled)
        if not len(free):
            break
        room = high - low - 2 * radii[free, None]
        place[free] = low + radii[free, None] + rng.random((len(free), d)) * room
        a, b = cKDTree(place).query_pairs(2 * radii.max(), output_type="ndarray").T  # a < b: the earlier one stays
        near = ((place[a] - place[b]) ** 2).sum(axis=1) < (radii[a] + radii[b]) ** 2
        settled[free] = True
        loser = np.where(np.isin(b[near], free), b[near], a[near])
        settled[loser] = False
    return (radii, place) if settled.all() else None


def _most_scattered(sieve, count: int, low, high, seed: int) -> int:
    """A number of balls, below ``count``, that was seen to find room: a tenth less each time."""
    area = (math.pi / 4 if len(low) == 2 else math.pi / 6) * sieve.smallest ** len(low)
    count = int(min(count - 1, 0.6 * np.prod(high - low) / area))
    while count > 0 and _scattered(sieve, count, low, high, seed) is None:
        count = min(count - 1, int(0.9 * count))
    return count


# What a file holds of a pour, beside its sieve, axis and shape.
POUR = {
    "material": str, "rate": float, "count": int, "radius": float, "seed": int, "from_above": bool, "dimension": int,
    "first": int,
}  # fmt: skip


@explained
class Irregular(NamedTuple):
    """Grains with corners for `Pour`: `Polygon.irregular` with these options. Unlike a function, a file can hold it."""

    sides: tuple = (5, 9)
    spread: float = 0.5
    elongation: float = 1.0

    def __call__(self, diameter: float, rng) -> Polygon:
        return Polygon.irregular(0.5 * diameter, **self._asdict(), seed=rng)


@explained
class Rocks(NamedTuple):
    """Rock for `Pour` in three dimensions: `Polyhedron.irregular` with these options. A file can hold it."""

    corners: tuple = (8, 16)
    spread: float = 0.5
    elongation: float = 1.0

    def __call__(self, diameter: float, rng) -> Polyhedron:
        return Polyhedron.irregular(0.5 * diameter, **self._asdict(), seed=rng)


KINDS = {"Irregular": Irregular, "Rocks": Rocks}


@explained
class Pour(Hook):
    """Grains created one by one at rest, ``rate`` per second, each as low as possible in contact with what is there.

    The vertical of each grain is drawn uniformly within ``radius`` of the axis through ``axis`` (d-1,). A grain may be
    put under others that are still in flight, as in the papers; with ``from_above`` it lies on the topmost one. The
    first grain is put into the scene at once; the others come during the run, at the times k / rate::

        pour = Pour(scene, material="grain", sizes=(0.25, 0.5), rate=200, count=14_000, radius=0.8, seed=1)
        sim = Simulation(scene, time_step=2e-4)
        sim.before_step.append(pour)

    ``shape`` makes the grains where they are not balls: `Irregular` (2D), `Rocks` (3D), or any function
    ``shape(diameter, rng)`` such as ``lambda diameter, rng: Polygon.regular(6, radius=diameter / 2)``; each is laid by
    the ball around it.

    What comes depends only on the seed, the number of the grain and the present positions: a resumed run goes on with
    the same bits. The result file holds the pour, but for a ``shape`` that is a function: such a run goes on from its
    program. ``first`` is the body number of the first grain; the others follow where nothing else adds bodies.
    """

    def __init__(
        self,
        scene,
        *,
        material: str,
        sizes,
        rate: float,
        count: int,
        radius: float,
        seed: int,
        axis=None,
        from_above: bool = False,
        shape=None,
    ):
        _check_scene("Pour", scene)
        check_seed("Pour", seed)
        check_flags("Pour", from_above=from_above)
        check_function("Pour got shape", shape, "diameter", "rng", optional=True)
        if not scene.blocks:
            raise InputError("Pour got an empty scene; add the ground first.")
        self.material, self.sieve, self.rate, self.count, self.radius = material, as_sieve(sizes), rate, count, radius
        self.seed, self.from_above, self.dimension, self.shape = int(seed), from_above, scene.dimension, shape
        self.axis = np.zeros(self.dimension - 1) if axis is None else np.atleast_1d(as_numbers("axis", axis))
        self._check()
        self.first = self._create(0, scene, join_all(scene.blocks)[:3])

    def to_file(self) -> dict:
        """All numbers, and the name of a ``shape`` that is a function."""
        shape, sieve = self.shape, self.sieve
        if isinstance(shape, Irregular | Rocks):
            shape = {"kind": type(shape).__name__} | shape._asdict()
        elif shape is not None:
            shape = {"kind": "function", "name": name_of(shape)}
        return {name: kind(getattr(self, name)) for name, kind in POUR.items()} | {
            "axis": self.axis.tolist(),
            "sizes": {"diameters": sieve.diameters.tolist(), "passing": sieve.passing.tolist(), "by": sieve.by},
            "shape": shape,
        }

    @classmethod
    def from_file(cls, parameters: dict) -> "Pour":
        """The pour of a file; its first grain is there already."""
        shape, sizes = dict(parameters["shape"] or {}), parameters["sizes"]
        kind = shape.pop("kind", None)
        if kind == "function":
            raise InputError(
                f"the grains of its Pour are made by the function {shape['name']}, which no file can hold; go on from "
                "the program that has it, with simulation.restore(path), or pour packings.Irregular(...)."
            )
        pour = cls.__new__(cls)
        for name, number in POUR.items():
            setattr(pour, name, number(parameters[name]))
        pour.sieve, pour.axis = Sieve(**sizes), np.array(parameters["axis"], dtype=float)
        if not (kind is None or kind in KINDS):
            raise InputError(f"the grains of its Pour are {kind!r}, which are not known; is it of a later version?")
        pour.shape = KINDS[kind](**shape) if kind else None
        pour._check()
        return pour

    def _check(self) -> None:
        numbers = is_number(self.rate) and is_whole(self.count, 1) and is_number(self.radius)
        if not (numbers and self.rate > 0 and self.radius >= 0):
            raise InputError(
                f"Pour got rate={self.rate!r}, count={self.count!r}, radius={self.radius!r}; give positive numbers."
            )
        if self.axis.shape != (self.dimension - 1,) or not np.isfinite(self.axis).all():
            raise InputError(f"Pour got axis={self.axis.tolist()}; give {self.dimension - 1} finite number(s).")

    @property
    def duration(self) -> float:
        """From the first grain to one interval after the last one, s."""
        return self.count / self.rate

    def made(self, time: float) -> int:
        """How many grains there are at ``time``."""
        return min(self.count, math.floor(max(0.0, time) * self.rate + 1e-6) + 1)

    def grain(self, k: int) -> tuple[float, np.ndarray]:
        """Radius and vertical (d-1,) of the grain ``k``."""
        return self._drawn(k)[:2]

    def _drawn(self, k: int):
        """Radius and vertical of the grain ``k``, and the random numbers left for its shape."""
        rng = np.random.default_rng([self.seed, k])
        radius = 0.5 * self.sieve.diameter(rng.random(), dimension=self.dimension)
        if self.dimension == 2:
            return radius, self.axis + self.radius * (2 * rng.random(1) - 1), rng
        away, angle = self.radius * math.sqrt(rng.random()), 2 * math.pi * rng.random()
        return radius, self.axis + away * np.array([math.cos(angle), math.sin(angle)]), rng

    def __call__(self, simulation) -> None:
        """Create the grains that are due at the begin of a step."""
        now = self.made(simulation.steps * simulation.time_step)
        for k in range(self.made((simulation.steps - 1) * simulation.time_step), now):
            self._create(k, simulation, (simulation.bodies, simulation.model.balls, simulation.model.planes))

    def _create(self, k: int, where, solids) -> int:
        """Add the grain ``k`` to a scene or a simulation; its body number."""
        radius, place, rng = self._drawn(k)
        grain = radius
        if self.shape is not None:
            grain = self.shape(2 * radius, rng)
            if not hasattr(grain, "balls"):
                raise InputError(
                    f"The shape of Pour made {grain!r}; it must make shapes, such as Polygon.irregular(...)."
                )
            radii, centres = grain.balls()
            radius = float((np.sqrt((centres**2).sum(axis=1)) + radii).max())
        heights = resting_heights(place, radius, *solids)
        if not len(heights):
            raise InputError(f"Pour found nothing below the place {place} to lay a grain on; make the ground wider.")
        position = np.append(place, heights[-1 if self.from_above else 0])
        return int(where.add_many([grain], material=self.material, position=position[None])[0])
