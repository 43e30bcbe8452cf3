"""YADE on a scene of spheres in a box: `yade -n -x -j1 yade_scene.py JOB.json`, as `cdyn bench peers` calls it.

Springs (Cundall and Strack) with YADE's own damping, at the small step that springs allow. One step of the *scene* is
many steps of the springs.
"""

import math
import sys
from pathlib import Path

import numpy as np
from yade import config
from yade.utils import sphere, wall
from yade.wrapper import (
    Bo1_Sphere_Aabb,
    Bo1_Wall_Aabb,
    ForceResetter,
    FrictMat,
    Ig2_Sphere_Sphere_ScGeom,
    Ig2_Wall_Sphere_ScGeom,
    InsertionSortCollider,
    InteractionLoop,
    Ip2_FrictMat_FrictMat_FrictPhys,
    Law2_ScGeom_FrictPhys_CundallStrack,
    NewtonIntegrator,
    Omega,
)

sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))  # YADE does not do it for a script
from peer import serve

O = Omega()


def triple(vector):
    """YADE wants plain numbers."""
    return tuple(float(x) for x in vector)


class Yade:
    """Spheres, five walls, springs and the integrator."""

    def __init__(self, scene, state, options):
        O.reset()
        angle, density = math.atan(float(scene["mu"])), float(scene["density"])
        material = FrictMat(young=options["young"], poisson=options["poisson"], frictionAngle=angle, density=density)
        O.materials.append(material)
        (x0, y0, z0), (x1, y1, _) = scene["box"]
        for place, axis, sense in ((x0, 0, 1), (x1, 0, -1), (y0, 1, 1), (y1, 1, -1), (z0, 2, 1)):
            O.bodies.append(wall(float(place), axis, sense, material=material))
        self.numbers = []
        for k, radius in enumerate(scene["radii"]):
            number = O.bodies.append(sphere(triple(state["positions"][k]), float(radius), material=material))
            O.bodies[number].state.vel = triple(state["velocities"][k])
            O.bodies[number].state.angVel = triple(state["spins"][k])
            self.numbers.append(number)
        O.engines = [
            ForceResetter(),
            InsertionSortCollider([Bo1_Sphere_Aabb(), Bo1_Wall_Aabb()]),
            InteractionLoop(
                [Ig2_Sphere_Sphere_ScGeom(), Ig2_Wall_Sphere_ScGeom()],
                [Ip2_FrictMat_FrictMat_FrictPhys()],
                [Law2_ScGeom_FrictPhys_CundallStrack()],
            ),
            NewtonIntegrator(damping=options["damping"], gravity=(0, 0, -float(scene["gravity"]))),
        ]
        O.dt = options["step"]
        self.substeps = round(float(scene["h"]) / O.dt)

    def step(self):
        O.run(self.substeps, True)

    def report(self):
        return {"iterations": self.substeps, "contacts": O.interactions.countReal()}

    def positions(self):
        return np.array([O.bodies[n].state.pos for n in self.numbers], dtype=float)

    def velocities(self):
        return np.array([O.bodies[n].state.vel for n in self.numbers], dtype=float)


serve(Yade, sys.argv[-1], version=str(config.version))
