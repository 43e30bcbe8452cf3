"""The options that functions hand on as they are, for editors and type checkers.

Where a function only passes its options to another one (``sim.add`` to ``Scene.add``, ``scene.contact`` to `Law`), it
says here which there are; defaults and checks stay with the one that uses them. A test holds the two together.
"""

from collections.abc import Callable
from typing import Any, Required, TypedDict

from numpy.typing import ArrayLike


class LawOptions(TypedDict, total=False):
    """Of `Law`, for `Scene.contact`."""

    friction: float | Callable[[float], float]
    static_friction: float | None
    two_sided: tuple[float, float] | None
    anisotropic: tuple[float, float] | None
    restitution: float
    tangential_restitution: float
    rolling: float
    spinning: float
    cohesion: float
    tension: float


class MaterialOptions(TypedDict, total=False):
    """A material's own coefficients, for `Scene.material`."""

    friction: float
    restitution: float
    rolling: float
    spinning: float
    tangential_restitution: float
    cohesion: float
    tension: float


class BodyOptions(TypedDict, total=False):
    """Of `Scene.add`, for `Simulation.add`."""

    material: Required[str]
    position: ArrayLike | None
    velocity: ArrayLike | None
    spin: ArrayLike | None
    rotation: ArrayLike | None
    fixed: bool
    motion: Any
    free: str | None
    mass: float | None
    inertia: ArrayLike | None


class BodiesOptions(TypedDict, total=False):
    """Of `Scene.add_many`, for `Simulation.add_many`."""

    material: Required[str]
    position: Required[ArrayLike]
    velocity: ArrayLike | None
    spin: ArrayLike | None
    rotation: ArrayLike | None
    fixed: bool


class SimulationOptions(TypedDict, total=False):
    """Of `Simulation` that may differ from those of the file, for `Simulation.from_file`."""

    time_step: float
    tolerance: float
    max_iterations: int
    solver: str | Callable
    threads: int | str
    ranks: Any
    penetration: str
    recovery: float
    joint_contacts: str
    on_failure: str
    repair: bool
    recorders: Any
    before_step: Any
    save_problems: Any
    about: dict | None


class ViewOptions(TypedDict, total=False):
    """Of `plotting.plot_scene`, for `Simulation.plot`."""

    forces: bool
    colours: Any
    azimuth: float
    elevation: float
