"""What one step needs to know, passed by value: whoever asks a question builds a `Step` of its own."""

from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """One step of a scene of N bodies."""

    time: float  # at its start, s
    h: float  # its length, s
    slack: float  # bodies nearer than this count as touching, m
    anticipate: bool  # contacts act before a gap closes
    opening: bool  # overlaps are opened, and velocities are displacements (h = 1)
    before: np.ndarray  # (N, 8) velocities at its start, driven bodies with those at its middle: see `equations`
    free: np.ndarray  # (N, 8) velocities without contacts (2004, eq. 36)
    driven: np.ndarray = np.zeros((3, 3), dtype=bool)  # imposed components of the velocity gradient of a moving cell


class Goal(NamedTuple):
    """How exactly the contacts of a step are to be solved."""

    scale: float  # sum of (rho b)^2: the residual is relative to it where the impulses are smaller
    free: np.ndarray  # (N, 8) velocities without contacts: what contacts lose is relative to what they change of them
    tolerance: float
    max_iterations: int
    ahead: bool  # extrapolation may be used
    rest: bool  # blocks rest on each other: what a step leaves stays as a displacement
    work: float = 0.0  # of the pressure in a strain as fast as the imposed deformation of the cell, p V |L| h, J
    shared: int = 0  # rows at the end that many contacts act on: those of a moving cell
    polish: int = 0  # sweeps up to which a step is improved that is below the tolerance
    few: bool = False  # contacts are so few that more sweeps cost nothing beside the rest of a step
    quiet: float = 1.0  # of the tolerance: how far a step is improved that is below it from the start
    worth: float = np.inf  # sweeps still to come at most, by their rate: beyond, another method is faster
