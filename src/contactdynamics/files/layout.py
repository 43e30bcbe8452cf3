"""The result file: one HDF5 file per run, layout version 1.

::

    /                attributes: format, layout, version, parameters (JSON: dimension, time_step, materials, laws, ...)
    /bodies/*        what does not change, one row per body that ever was: identity, mass, inertia, kind, ...
    /balls/*         radius, centre, body (identity), material of the spheres and disks
    /planes/*        normal, body (identity), material
    /corners/*       place, body (identity), part of the corners of polygons and polyhedra; ball `part` of it holds it
    /rims/*          corner, face, body (identity), part: the corners of each face of a polyhedron, seen from outside
    /frames/*        one row per frame: time, step, gravity, first row and number of rows in /frame_bodies and
                     /frame_contacts; created (energy by the contact laws so far, J), failures (steps not solved so
                     far), hash (of the rows of the bodies and of the contacts)
    /frame_bodies/*  identity, position, orientation, velocity, scaled_spin of all frames, one after the other
    /frame_contacts/*  bodies, point, normal, tangent, gap, impulse, moment, status, target (normal velocity that the
                     law asks for) of all frames
    /log/*           one row per step: time, contacts, iterations, residual, penetration, energies, stage times
    /checkpoint/*    what else is needed to go on from the last frame with the same bits

Vectors have always 3 components; orientation is a unit quaternion (w, x, y, z) from the principal axes to space;
impulses are in N s along (normal, tangent, normal x tangent); scaled_spin is the spin in space, times the radius for
simple balls.
The file is replaced as a whole by an atomic rename: whenever the process dies, what is there opens. Everything in it
has checksums. No pickle, no code.
"""

import hashlib

import numpy as np

from . import soundness

FORMAT, LAYOUT = "contactdynamics", 1
STATIC = ("identity", "principal", "mass", "inertia", "kind", "simple", "size", "held")
LOG = ("time", "contacts", "iterations", "residual", "penetration", "relative_penetration", "kinetic", "potential",
       "force_work", "drive_work", "normal_work", "tangential_work", "rolling_work", "recovery_work", "closure",
       "detection", "frames", "solve", "integrate", "record")  # fmt: skip
STAGES = LOG[-5:]  # columns of the log: the times of the stages, s
OPTIONS = ("time_step", "tolerance", "max_iterations", "solver", "threads", "penetration", "recovery", "on_failure",
           "joint_contacts", "save_problems")  # fmt: skip
INDEX = ("time", "step", "body_start", "bodies", "contact_start", "contacts")


def fingerprint(rows: dict, group: str) -> int:
    """A hash of the rows of one frame in ``group``: of all columns that `soundness.TABLES` knows, in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for name, (kind, _) in soundness.TABLES[group].items():
        digest.update(np.ascontiguousarray(rows[name], dtype=np.dtype(kind).newbyteorder("<")).tobytes())
    return int.from_bytes(digest.digest(), "little", signed=True)
