"""Moreau's Contact Dynamics: unilateral contact, Coulomb friction and impacts, treated exactly.

Names are loaded when first used, so that ``import contactdynamics`` is immediate.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

_NAMES = {
    "BodyForm": "problem.form",
    "Box": "scenes.shapes.polyhedra",
    "Cell": "scenes.cell",
    "Cluster": "scenes.shapes.clusters",
    "Constraint": "systems.system",
    "ContactProblem": "problem.form",
    "Disk": "scenes.shapes.balls",
    "Drive": "scenes.loads",
    "HDF5": "files.recorders",
    "HalfPlane": "scenes.shapes.balls",
    "InputError": "errors",
    "Law": "problem.laws",
    "Motion": "systems.motion",
    "Plane": "scenes.shapes.balls",
    "Pressure": "scenes.pressure",
    "Polygon": "scenes.shapes.polygons",
    "Polyhedron": "scenes.shapes.polyhedra",
    "Rectangle": "scenes.shapes.polygons",
    "Scene": "scenes.scene",
    "Simulation": "rigid.simulation",
    "Sphere": "scenes.shapes.balls",
    "System": "systems.system",
    "Table": "files.tables",
    "analysis": "analysis",
    "compas": "compas",
    "contact_problem": "systems.schemes",
    "elastic": "systems.elastic",
    "events": "systems.events",
    "explore_forces": "problem.explore",
    "friction_surface": "systems.generalised",
    "integrate": "systems.motion",
    "loads": "scenes.loads",
    "open": "files.hdf5",
    "packings": "scenes.packings",
    "penalty": "systems.penalty",
    "read_problem": "files.problems",
    "read_solution": "files.problems",
    "schemes": "systems.schemes",
    "sets": "systems.sets",
    "solve": "problem.solving",
    "study": "studies.runs",
    "sweep": "systems.sweeping",
    "write_problem": "files.problems",
}

__all__ = ["__version__", *_NAMES]

if TYPE_CHECKING:  # what editors and type checkers see of the names above
    from . import analysis as analysis
    from . import compas as compas
    from .errors import InputError as InputError
    from .files.hdf5 import open as open
    from .files.problems import read_problem as read_problem
    from .files.problems import read_solution as read_solution
    from .files.problems import write_problem as write_problem
    from .files.recorders import HDF5 as HDF5
    from .files.tables import Table as Table
    from .problem.explore import explore_forces as explore_forces
    from .problem.form import BodyForm as BodyForm
    from .problem.form import ContactProblem as ContactProblem
    from .problem.laws import Law as Law
    from .problem.solving import solve as solve
    from .rigid.simulation import Simulation as Simulation
    from .scenes import loads as loads
    from .scenes import packings as packings
    from .scenes.cell import Cell as Cell
    from .scenes.loads import Drive as Drive
    from .scenes.pressure import Pressure as Pressure
    from .scenes.scene import Scene as Scene
    from .scenes.shapes.balls import Disk as Disk
    from .scenes.shapes.balls import HalfPlane as HalfPlane
    from .scenes.shapes.balls import Plane as Plane
    from .scenes.shapes.balls import Sphere as Sphere
    from .scenes.shapes.clusters import Cluster as Cluster
    from .scenes.shapes.polygons import Polygon as Polygon
    from .scenes.shapes.polygons import Rectangle as Rectangle
    from .scenes.shapes.polyhedra import Box as Box
    from .scenes.shapes.polyhedra import Polyhedron as Polyhedron
    from .studies.runs import study as study
    from .systems import elastic as elastic
    from .systems import events as events
    from .systems import penalty as penalty
    from .systems import schemes as schemes
    from .systems import sets as sets
    from .systems.generalised import friction_surface as friction_surface
    from .systems.motion import Motion as Motion
    from .systems.motion import integrate as integrate
    from .systems.schemes import contact_problem as contact_problem
    from .systems.sweeping import sweep as sweep
    from .systems.system import Constraint as Constraint
    from .systems.system import System as System
else:

    def __getattr__(name):
        if name not in _NAMES:
            raise AttributeError(f"module 'contactdynamics' has no attribute {name!r}; it has {', '.join(_NAMES)}")
        module = import_module(f".{_NAMES[name]}", __name__)
        return module if name == _NAMES[name].rpartition(".")[2] else getattr(module, name)


def __dir__():
    return __all__
