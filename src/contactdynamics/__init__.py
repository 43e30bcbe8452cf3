"""Moreau's Contact Dynamics: unilateral contact, Coulomb friction and impacts, treated exactly.

Names are loaded when first used, so that ``import contactdynamics`` is immediate.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

_NAMES = {
    "Cluster": "shapes",
    "Constraint": "system",
    "ContactProblem": "state",
    "Disk": "shapes",
    "Drive": "loads",
    "HDF5": "recorders",
    "HalfPlane": "shapes",
    "InputError": "errors",
    "Law": "laws",
    "Motion": "motion",
    "Plane": "shapes",
    "Polygon": "polygons",
    "Rectangle": "polygons",
    "Scene": "scene",
    "Simulation": "simulation",
    "Sphere": "shapes",
    "System": "system",
    "analysis": "analysis",
    "contact_problem": "schemes",
    "elastic": "elastic",
    "events": "events",
    "explore_forces": "explore",
    "friction_surface": "generalised",
    "integrate": "motion",
    "loads": "loads",
    "open": "storage",
    "packings": "packings",
    "penalty": "penalty",
    "schemes": "schemes",
    "sets": "sets",
    "solve": "solvers",
    "sweep": "sweeping",
}

__all__ = ["__version__", *_NAMES]

if TYPE_CHECKING:  # what editors and type checkers see of the names above
    from . import analysis as analysis
    from . import elastic as elastic
    from . import events as events
    from . import loads as loads
    from . import packings as packings
    from . import penalty as penalty
    from . import schemes as schemes
    from . import sets as sets
    from .errors import InputError as InputError
    from .explore import explore_forces as explore_forces
    from .generalised import friction_surface as friction_surface
    from .laws import Law as Law
    from .loads import Drive as Drive
    from .motion import Motion as Motion
    from .motion import integrate as integrate
    from .polygons import Polygon as Polygon
    from .polygons import Rectangle as Rectangle
    from .recorders import HDF5 as HDF5
    from .scene import Scene as Scene
    from .schemes import contact_problem as contact_problem
    from .shapes import Cluster as Cluster
    from .shapes import Disk as Disk
    from .shapes import HalfPlane as HalfPlane
    from .shapes import Plane as Plane
    from .shapes import Sphere as Sphere
    from .simulation import Simulation as Simulation
    from .solvers import solve as solve
    from .state import ContactProblem as ContactProblem
    from .storage import open as open
    from .sweeping import sweep as sweep
    from .system import Constraint as Constraint
    from .system import System as System
else:

    def __getattr__(name):
        if name not in _NAMES:
            raise AttributeError(f"module 'contactdynamics' has no attribute {name!r}; it has {', '.join(_NAMES)}")
        module = import_module(f".{_NAMES[name]}", __name__)
        return module if name == _NAMES[name] else getattr(module, name)


def __dir__():
    return __all__
