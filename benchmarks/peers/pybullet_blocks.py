"""PyBullet on blocks: `python pybullet_blocks.py JOB.json`, as `cdyn bench peers masonry` calls it."""

import sys

import numpy as np
import pybullet as bullet
from blocks import box, middle, serve


class PyBullet:
    """Bullet's sequential impulses; boxes are boxes, other blocks convex hulls."""

    def __init__(self, job, blocks):
        o = job["options"]
        bullet.connect(bullet.DIRECT)
        bullet.setGravity(0, 0, -job["gravity"])
        bullet.setPhysicsEngineParameter(fixedTimeStep=job["step"], numSolverIterations=o["iterations"], numSubSteps=0)
        self.bodies = []
        for block in blocks:
            found = box(block["corners"])
            if found is not None:
                place, half = found
                shape = bullet.createCollisionShape(bullet.GEOM_BOX, halfExtents=half.tolist())
                volume = 8 * half.prod()
            else:
                place = middle(block)
                local = block["corners"] - place
                shape = bullet.createCollisionShape(bullet.GEOM_MESH, vertices=local.tolist())
                volume = self._volume(local, block["faces"])
            mass = 0.0 if block["fixed"] else job["density"] * volume
            body = bullet.createMultiBody(mass, shape, basePosition=np.asarray(place).tolist())
            # Bullet multiplies the coefficients of the two bodies
            bullet.changeDynamics(body, -1, lateralFriction=job["friction"] ** 0.5, collisionMargin=o["margin"],
                                  linearDamping=0.0, angularDamping=0.0, restitution=0.0,
                                  activationState=bullet.ACTIVATION_STATE_DISABLE_SLEEPING)  # fmt: skip
            self.bodies.append(body)

    @staticmethod
    def _volume(corners, faces):
        triangles = [corners[[f[0], f[k], f[k + 1]]] for f in faces for k in range(1, len(f) - 1)]
        return sum(np.dot(a, np.cross(b, c)) for a, b, c in triangles) / 6

    def step(self):
        bullet.stepSimulation()

    def positions(self):
        return np.array([bullet.getBasePositionAndOrientation(body)[0] for body in self.bodies])


serve(PyBullet, sys.argv[1], f"pybullet API {bullet.getAPIVersion()}")
