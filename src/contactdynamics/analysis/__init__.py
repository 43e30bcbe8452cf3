"""Analysis: functions of a `Frame`, live (``sim.frame()``) or from a file (``recording[-1]``).

They return numbers in named tuples, most of which draw themselves: ``.plot(ax=None)`` returns the axes. The last axis
of a scene points up; piles and strips are taken about a vertical ``axis``, the origin unless given. Forces are impulses
of the last step over its length; stress is positive in compression.
"""

from .fabric import directions, fabric
from .forces import contact_forces, coordination, force_chains, mobilised_friction, normal_forces
from .limits import load_factor
from .masonry import joint_openings, thrust_line
from .measures import (
    backbone,
    cell_stress,
    dilation,
    force_distribution,
    granular_temperature,
    inertial_number,
    profile,
    solid_fraction,
)
from .regions import Box, Cylinder, Under
from .statics import balance, largest_push
from .stress import grain_moments, stress, stress_map
from .strips import Pressure, ground_pressure, reciprocity, strip, weight_balance
from .surface import bounding_disks, height, interior, packing_fraction, slope, surface, volume_mass

__all__ = [
    "Box",
    "Cylinder",
    "Pressure",
    "Under",
    "backbone",
    "balance",
    "bounding_disks",
    "cell_stress",
    "contact_forces",
    "coordination",
    "dilation",
    "directions",
    "fabric",
    "force_chains",
    "force_distribution",
    "grain_moments",
    "granular_temperature",
    "ground_pressure",
    "height",
    "inertial_number",
    "interior",
    "joint_openings",
    "largest_push",
    "load_factor",
    "mobilised_friction",
    "normal_forces",
    "packing_fraction",
    "profile",
    "reciprocity",
    "slope",
    "solid_fraction",
    "stress",
    "stress_map",
    "strip",
    "surface",
    "thrust_line",
    "volume_mass",
    "weight_balance",
]
