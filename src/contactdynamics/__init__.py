"""Moreau's Contact Dynamics: unilateral contact, Coulomb friction and impacts, treated exactly.

Names are loaded when first used, so that ``import contactdynamics`` is immediate.
"""

from importlib import import_module

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


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'contactdynamics' has no attribute {name!r}; it has {', '.join(_NAMES)}")
    module = import_module(f".{_NAMES[name]}", __name__)
    return module if name == _NAMES[name] else getattr(module, name)


def __dir__():
    return __all__
