"""What acts on the bodies of a simulation from outside: prescribed motions, gravity, forces, springs."""

import numpy as np

from ..errors import InputError
from ..state import FREE
from . import motion
from .roster import Roster


class Loading:
    """The loads of a scene on the bodies of a roster."""

    def __init__(self, roster: Roster, scene):
        self._roster, self._scene = roster, scene
        self.force = self._torque = np.zeros((0, 3))  # (N, 3) where there are any
        self.derive()

    def derive(self) -> None:
        """Follow bodies that came or went, and springs."""
        self.springs = self._roster.springs()
        self.follow()

    def follow(self) -> None:
        """Follow loads that were stated or changed.

        Whether gravity is ``steady``, and ``alone``, without any other; whether loads are ``separate``: what acts on a
        body hangs on no other.
        """
        self.steady = self._scene.steady
        self.separate = not len(self.springs.first)
        self.alone = not self._roster.model.forces and self.separate

    def follow_gravity(self, t: float) -> None:
        """Take the gravity at the time ``t``, where it changes."""
        if not self.steady:
            self._roster.model = self._roster.model._replace(gravity=self._scene.gravity_at(t))

    def drive(self, rows: np.ndarray, t: float) -> None:
        """Give the driven bodies in ``rows`` their velocity at the time ``t``."""
        d = self._scene.dimension
        for number, (velocity, spin) in self._roster.model.drives.items():
            row = self._roster.row(number)
            if row is None:
                continue
            bodies = self._roster.model.bodies
            bits = int(bodies.held[row]) if bodies.kind[row] == FREE else 63
            driven = np.array([(bits >> k) & 1 == 1 for k in range(6)])
            asked = np.zeros(6)
            asked[:d] = velocity(t)
            asked[3 if d == 3 else 5 :] = rows[row, 7] * np.asarray(spin(t))
            rows[row, :6] = np.where(driven, asked, rows[row, :6])
            if not np.isfinite(asked[driven]).all():
                raise InputError(
                    f"The motion of body {number} is infinite or nan at t = {t:.6g}; make it return finite numbers."
                )

    def relax(self, bodies, rows: np.ndarray, t: float, h: float) -> bool:
        """Turn the velocities ``rows`` of the ``bodies`` into free ones after a step h with the loads at ``t``.

        (2004, eq. 36). False where gravity is alone.
        """
        loads, b = self.collect(bodies, rows, t), bodies
        gravity = self._roster.model.gravity if self.steady else self._scene.gravity_at(t)
        motion.relax(rows, b.kind, b.mass, b.inertia, b.orientation, *loads[:2], gravity, h, loads[2], b.held)
        return loads[2]

    def collect(self, bodies, rows, t) -> tuple[np.ndarray, np.ndarray, bool]:
        """Forces and torques (N, 3) at the time ``t``, and whether there are any."""
        forces, d = self._roster.model.forces, self._scene.dimension
        if self.alone:
            return self.force, self._torque, False
        if len(self.force) != len(self._roster.rows):
            self.force, self._torque = (np.empty((len(self._roster.rows), 3)) for _ in range(2))
        self.force[:], self._torque[:] = 0.0, 0.0
        for number, loads in forces.items():
            row = self._roster.row(number)
            for force, torque in loads if row is not None else ():
                self.force[row, :d] += force(t)
                if d == 3:
                    self._torque[row] += torque(t)
                else:
                    self._torque[row, 2] += np.asarray(torque(t)).item()
        motion.pull_springs(self.springs, bodies.position, bodies.orientation, rows, self.force, self._torque)
        return self.force, self._torque, True

    def potential(self) -> float:
        """Energy of gravity, as it is now, and of the springs; J."""
        model, rows = self._roster.model, self._roster.rows
        b, aside = model.bodies, np.zeros_like(model.bodies.position)
        energy = motion.gravity_energy(b.position, b.mass, b.kind, model.gravity, b.held)
        if len(self.springs.first):
            energy += motion.pull_springs(self.springs, b.position, b.orientation, rows, aside, aside.copy())
        return energy
