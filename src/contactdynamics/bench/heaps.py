"""Heaps to measure on: settled ones of random balls (kept in the cache once made), and lattices of any size."""

import math

import numpy as np

from .. import _jit
from ..rigid.simulation import Simulation
from ..scenes import packings
from ..scenes.scene import Scene
from ..scenes.shapes.balls import HalfPlane, Plane

SMALL, LARGE, GRAVITY, FRICTION = 0.125, 0.25, 981.0, 0.4  # the grains of the papers' pile; cm, g, s


def _scene(dimension: int, floor: float, rolling: float = 0.0) -> Scene:
    scene = Scene(gravity=(0.0,) * (dimension - 1) + (-GRAVITY,))
    scene.material("grain", density=1.0)
    scene.contact("grain", "grain", friction=FRICTION, rolling=rolling)
    up = (0.0,) * (dimension - 1) + (1.0,)
    wall = Plane(up) if dimension == 3 else HalfPlane(up)
    scene.add(wall, material="grain", position=tuple(floor * x for x in up), fixed=True)
    return scene


def _cone(n: int, dimension: int, spacing: float) -> tuple[np.ndarray, float]:
    """The n lowest places of a lattice in a cone of 24 degrees, and its radius."""
    slope = math.tan(math.radians(24.0))
    volume = n * spacing**dimension
    reach = (3 * volume / (math.pi * slope)) ** (1 / 3) if dimension == 3 else math.sqrt(volume / slope)
    k = int(reach / spacing) + 2
    axes = [np.arange(-k, k + 1)] * (dimension - 1) + [np.arange(0, int(reach * slope / spacing) + 3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dimension) * spacing
    height = np.sqrt((grid[:, :-1] ** 2).sum(axis=1)) * slope + grid[:, -1]
    inside = grid[np.argsort(height, kind="stable")[:n]]
    # in the order of slices: neighbours in space are neighbours in memory
    return inside[np.lexsort(inside.T[::-1])], reach


def settled(n: int, dimension: int = 3, echo=lambda text: None) -> dict:
    """Positions and radii of ``n`` balls at rest in a heap on a rough floor, and those of the floor."""
    from pathlib import Path

    path = Path(_jit._cache_root()) / f"heap-{dimension}d-{n}-1.npz"
    if path.exists():
        with np.load(path) as file:
            return dict(file)
    echo(f"making a heap of {n} balls, once")
    rng = np.random.default_rng(0)
    places, reach = _cone(n, dimension, 2.08 * LARGE)
    radii = rng.uniform(SMALL, LARGE, n)
    places = places + rng.uniform(-0.9, 0.9, places.shape) * (1.04 * LARGE - radii)[:, None]
    places[:, -1] += 2.4 * LARGE
    k = int(reach / 0.4) + 8
    floor = np.stack(np.meshgrid(*[np.arange(-k, k + 1)] * (dimension - 1), indexing="ij"), -1)
    floor = floor.reshape(-1, dimension - 1) * 0.4
    floor = np.concatenate([floor, np.zeros((len(floor), 1))], axis=1)
    floor_radii = rng.uniform(SMALL, LARGE, len(floor))
    scene = _scene(dimension, -0.3)
    scene.add_many(floor_radii, material="grain", position=floor, fixed=True)
    scene.add_many(radii, material="grain", position=places)
    options = {"tolerance": 1e-2, "max_iterations": 200, "penetration": "anticipate", "on_failure": "ignore"}
    sim = Simulation(scene, time_step=1e-3, check=False, **options)
    sim.run(until=0.5, progress=False)
    heap = {
        "floor": floor, "floor_radii": floor_radii,
        "positions": sim.positions[1 + len(floor) :], "radii": radii, "dimension": np.array(dimension),
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **heap)
    return heap


def simulation(heap: dict, **options) -> Simulation:
    """The heap at rest, ready to step at 2e-4 s."""
    scene = _scene(int(heap["dimension"]), -0.3)
    scene.add_many(heap["floor_radii"], material="grain", position=heap["floor"], fixed=True)
    scene.add_many(heap["radii"], material="grain", position=heap["positions"])
    return Simulation(scene, **({"time_step": 2e-4, "on_failure": "ignore", "check": False} | options))


def lattice(n: int, layers: int = 8, rolling: float = 0.0, **options) -> Simulation:
    """About ``n`` equal spheres in ``layers``, each in the pit of four others; the lowest layer is fixed.

    ``rolling``: the length by which they resist rolling, m.
    """
    side = max(layers + 1, round(math.sqrt(n / layers) + layers / 2))
    d = 2 * LARGE
    blocks = []
    for layer in range(layers + 1):
        k = np.arange(side - layer) * d + 0.5 * layer * d
        x, y = np.meshgrid(k, k, indexing="ij")
        blocks.append(np.stack([x, y, np.full_like(x, layer * d / math.sqrt(2))], -1).reshape(-1, 3))
    scene = _scene(3, -10.0, rolling)
    scene.add_many(LARGE, material="grain", position=blocks[0], fixed=True)
    free = np.concatenate(blocks[1:])
    scene.add_many(LARGE, material="grain", position=free[np.lexsort(free.T)])
    return Simulation(scene, **({"time_step": 2e-4, "on_failure": "ignore", "check": False} | options))


def wall(n: int, courses: int = 8, **options) -> Simulation:
    """About ``n`` blocks 1 x 0.5 x 0.5 cm in so many ``courses``, in running bond, on a floor."""
    scene = _scene(3, 0.0)
    packings.wall(scene, material="grain", length=float(max(1, round(n / courses))), courses=courses,
                  block=(1.0, 0.5), depth=0.5, position=(0, 0, 0))  # fmt: skip
    return Simulation(scene, **({"time_step": 2e-4, "on_failure": "ignore", "check": False} | options))
