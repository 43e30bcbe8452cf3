"""Siconos on a scene of spheres in a box: `/usr/bin/python3 siconos_scene.py JOB.json`, as `cdyn bench peers` calls it.

Moreau-Jean's time stepping at the step of the scene, theta = 1/2, contacts by Bullet, nonlinear Gauss-Seidel (NSGS).
"""

import sys

import numpy as np
import siconos.kernel as sk
import siconos.numerics as sn
from peer import serve
from siconos.mechanics.collision import RigidBodyDS, SiconosContactor, SiconosContactorSet, SiconosPlane, SiconosSphere
from siconos.mechanics.collision.bullet import SiconosBulletCollisionManager, SiconosBulletOptions

HALF = np.sqrt(0.5)
# The walls: a unit quaternion that turns the normal (0, 0, 1) of a SiconosPlane inwards, and a corner of the box in it.
WALLS = (
    ((1, 0, 0, 0), 0),
    ((HALF, 0, HALF, 0), 0),
    ((HALF, -HALF, 0, 0), 0),
    ((HALF, 0, -HALF, 0), 1),
    ((HALF, HALF, 0, 0), 1),
)


def contactors(shape, margin):
    """The set that holds one shape; contacts are seen from the distance ``margin``."""
    shape.setOutsideMargin(margin)
    found = SiconosContactorSet()
    found.append(SiconosContactor(shape))
    return found


class Siconos:
    """Bodies, walls, law, integrator and solver."""

    def __init__(self, scene, state, options):
        bullet = SiconosBulletOptions()
        bullet.perturbationIterations = bullet.minimumPointsPerturbationThreshold = 0  # two balls touch at one point
        manager = SiconosBulletCollisionManager(bullet)
        law = sk.NewtonImpactFrictionNSL(float(scene["restitution"]), 0.0, float(scene["mu"]), 3)
        manager.insertNonSmoothLaw(law, 0, 0)
        for turn, corner in WALLS:
            place = np.array([*scene["box"][corner], *turn], dtype=float)
            manager.insertStaticContactorSet(contactors(SiconosPlane(), options["margin"]), place)
        system = sk.NonSmoothDynamicalSystem(0.0, 1e9)
        self.bodies = [self._sphere(scene, state, k, options["margin"]) for k in range(len(scene["radii"]))]
        for body in self.bodies:
            system.insertDynamicalSystem(body)
        solver = sk.solver_options_create(sn.SICONOS_FRICTION_3D_NSGS)
        solver.iparam[sn.SICONOS_IPARAM_MAX_ITER] = options["iterations"]
        solver.dparam[sn.SICONOS_DPARAM_TOL] = options["tolerance"]
        self.problem = sk.FrictionContact(3, solver)
        self.problem.setMaxSize(100_000)
        self.problem.setMStorageType(sn.NM_SPARSE_BLOCK)
        self.problem.setKeepLambdaAndYState(True)
        self.run = sk.TimeStepping(system, sk.TimeDiscretisation(0.0, float(scene["h"])))
        self.run.insertIntegrator(sk.MoreauJeanOSI(0.5))
        self.run.insertNonSmoothProblem(self.problem)
        self.run.insertInteractionManager(manager)
        self.run.setNewtonOptions(sk.SICONOS_TS_LINEAR)
        self.run.setNewtonMaxIteration(1)

    @staticmethod
    def _sphere(scene, state, k, margin):
        radius = float(scene["radii"][k])
        mass = float(scene["density"]) * 4 / 3 * np.pi * radius**3
        place, velocity = [*state["positions"][k], 1, 0, 0, 0], [*state["velocities"][k], *state["spins"][k]]
        body = RigidBodyDS(np.array(place), np.array(velocity), mass, 0.4 * mass * radius**2 * np.eye(3))
        body.setContactors(contactors(SiconosSphere(radius), margin))
        body.setFExtPtr(np.array([0, 0, -mass * float(scene["gravity"])]))
        return body

    def step(self):
        self.run.computeOneStep()
        self.run.clearNSDSChangeLog()
        self.run.nextStep()

    def report(self):
        count = self.problem.getSizeOutput() // 3
        solver = self.problem.numericsSolverOptions()
        iterations, residual = solver.iparam[sn.SICONOS_IPARAM_ITER_DONE], solver.dparam[sn.SICONOS_DPARAM_RESIDU]
        return {
            "iterations": int(iterations) * (count > 0),
            "contacts": count,
            "residual": float(residual) * (count > 0),
        }

    def positions(self):
        return np.array([body.q()[:3] for body in self.bodies])

    def velocities(self):
        return np.array([body.twist()[:3] for body in self.bodies])


serve(Siconos, sys.argv[1])
