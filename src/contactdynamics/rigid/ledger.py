"""The energy ledger of a `Simulation`: what each step did, and the sums since the start (2004, eqs. 48-50)."""

import math

import numpy as np

from ..errors import InputError
from ..state import Energy

SUMS = ("force_work", "inflow", "closure", "kinetic", "recovery_work", "created")  # as in the checkpoint; J
NO_GAIN = (0.0, 0.0, 0, 0.0)
ROLE = ("normal_work", "tangential_work", "rolling_work", "drive_work")  # columns of `works`


class Ledger:
    """Sums over steps, but for ``kinetic``; ``works`` (L, 4) of the contacts law by law, as in `ROLE`.

    ``worst`` is the step in which the contact laws created most energy: how much, its share, number and time.
    """

    def __init__(self, laws: int, kinetic: float):
        for name in SUMS:
            setattr(self, name, 0.0)
        self.kinetic, self.works, self.worst = kinetic, np.zeros((laws, len(ROLE))), NO_GAIN
        self._largest = kinetic  # that the run has seen

    def make_room(self, laws: int) -> None:
        """Follow a scene that got more laws."""
        self.works = np.concatenate([self.works, np.zeros((laws - len(self.works), len(ROLE)))])

    def enter_inflow(self, kinetic: float) -> None:
        """Enter the energy that came or went with bodies; ``kinetic`` is the present one."""
        self.inflow += kinetic - self.kinetic
        self.kinetic = kinetic

    def enter(self, kinetic_of_free, energies, works, cell=(0.0,) * 4, *, step: int, time: float):
        """Enter a step: kinetic energy before and after it and work of the forces (`motion.energies`), contacts' works.

        ``kinetic_of_free`` gives the kinetic energy of the velocities without contacts. ``cell``: kinetic energy
        before, free and after, and work of a moving cell.
        """
        first, last, work = energies
        first, last, work = first + cell[0], last + cell[2], work + cell[3]
        self._largest = max(self._largest, first)
        if not math.isfinite(last):
            raise InputError(
                f"A velocity became infinite or nan at t = {time:.6g}; check that forces and motions return finite "
                "numbers, and shorten time_step if the motion blows up."
            )
        normal, tangential, rolling, drive = np.add.reduce(works).tolist()
        laws = normal + tangential + rolling
        if laws > 0:
            self._enter_gain(laws, drive, (first, kinetic_of_free() + cell[1], last), (step, time))
        self.works += works
        self.force_work += work
        self.closure += abs(last - first - work - laws - drive)
        self.kinetic = last

    def _enter_gain(self, laws, drive, kinetic, when):
        """Enter what the contact laws created in the step: the smaller of its works from u_i and from u_r.

        See `motion._Record.created`; (T_f - T_r) is the work of the contacts counted from the free velocity.
        """
        first, free, last = kinetic
        gain = min(laws, last - free - drive)
        if gain > 1e-9 * (max(kinetic) + abs(drive)):  # more than rounding, and than glue that closes a gap
            self.created += gain
            if gain > self.worst[0]:
                self.worst = (gain, gain / max(first, free), *when)

    @property
    def gained(self) -> bool:
        """Whether the worst gain is worth telling: a body at rest gains and loses what rounding leaves."""
        return self.worst[0] > 1e-12 * self._largest

    def energy(self, potential: float) -> Energy:
        """The ledger as the user reads it."""
        normal, tangential, rolling, drive = self.works.T.copy()
        return Energy(
            float(self.kinetic), potential, float(self.force_work), float(drive.sum()), normal, tangential, rolling,
            float(self.recovery_work), float(self.inflow), float(self.closure), float(self.created),
        )  # fmt: skip

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        return {"sums": np.array([getattr(self, name) for name in SUMS]), "works": self.works.copy()}

    def restore(self, checkpoint: dict) -> None:
        """Take over the sums of a checkpoint; old files have fewer."""
        for name, value in zip(SUMS, checkpoint["sums"].tolist(), strict=False):
            setattr(self, name, value)
        self.works = checkpoint["works"]
