"""A wall that keeps a pressure: `Pressure`."""

import math

import numpy as np

from ..errors import InputError, as_numbers, explained, is_number, is_whole
from ..state import FREE
from .hooks import Hook
from .loads import Profile, as_function, constant


@explained
class Pressure(Hook):
    """Pushes a wall, free along its normal, into the sample with a pressure times an area::

        lid = scene.add(HalfPlane(normal=(0, -1)), material="m", position=(0, 1), free="y")
        sim = Simulation(scene, time_step=1e-3)
        sim.before_step.append(Pressure(lid, 1e3, area=0.5))

    ``pressure`` (Pa; N/m in 2D) is a number, a profile or a function of time. ``area`` is a number, or two walls: the
    area is then their distance along the normal of the first, which changes as the sample does. ``direction`` (d,) into
    the sample; that of the normal where the body is a plane. A wall has the mass of all free grains where none is given
    (`Scene.add`): heavy enough to ride over single impacts, light enough to follow. ``asked`` is the pressure of the
    last step, ``measured`` what the contacts with the wall carried in it; a `Table` records both. A result file holds
    it, but for functions.
    """

    def __init__(self, wall: int, pressure, *, area=1.0, direction=None):
        if not is_whole(wall, 0):
            raise InputError(f"Pressure got wall={wall!r}; give the number of a body.")
        self.wall = int(wall)
        given = constant([pressure]) if is_number(pressure) else pressure
        self.pressure = as_function(given, 1, "The pressure")
        if is_number(area):
            self.area, self.between = float(area), None
        else:
            walls = np.ravel(as_numbers("area of a Pressure", area))
            if walls.shape != (2,) or not all(is_whole(float(w), 0) for w in walls):
                raise InputError(f"Pressure got area={area!r}; give a number, or the numbers of two walls.")
            self.area, self.between = math.nan, (int(walls[0]), int(walls[1]))
        if self.between is None and not self.area > 0:
            raise InputError(f"Pressure got area={area!r}; give a positive number, or the numbers of two walls.")
        self.direction = None if direction is None else _unit(direction)
        self.asked, self.measured, self._place = math.nan, math.nan, None

    def __call__(self, simulation) -> None:
        """Set the force of the next step, and measure that of the last one."""
        sim, d = simulation, simulation.model.dimension
        row = sim.roster.row(self.wall)
        if row is None:
            raise InputError(f"Pressure acts on body {self.wall}, which is not there; give the number of a wall.")
        n = self._into(sim, row, d)
        if self.between is not None:
            one, two = (sim.roster.row(w) for w in self.between)
            across = self._normal(sim, one)
            if one is None or two is None or across is None:
                raise InputError(f"Pressure got area={self.between}; give the numbers of two planes.")
            self.area = float(abs((sim.bodies.position[two] - sim.bodies.position[one]) @ across))
        self.measured = -(self._felt(sim, row) @ n) / (sim.time_step * self.area)
        self.asked = float(np.ravel(self.pressure(sim.time + sim.time_step / 2))[0])
        force = (constant(self.asked * self.area * n[:d]), constant(np.zeros(1 if d == 2 else 3)))
        loads = sim.scene.forces.setdefault(self.wall, [])
        if self._place is None:
            self._place = len(loads)
            loads.append(force)
        loads[self._place] = force
        sim._change(forces=sim.scene.forces)

    def _normal(self, sim, row):
        planes = sim.model.planes
        at = np.flatnonzero(planes.body == row) if row is not None else ()
        return planes.normal[at[0]] if len(at) else None

    def _into(self, sim, row, d) -> np.ndarray:
        n = np.zeros(3)
        if self.direction is not None:
            n[: len(self.direction)] = self.direction
        else:
            own = self._normal(sim, row)
            if own is None:
                raise InputError(f"Body {self.wall} is no plane; give Pressure the direction=... into the sample.")
            n[:] = own
        bits = int(sim.bodies.held[row])
        if sim.bodies.kind[row] != FREE or any(abs(n[c]) > 1e-12 and (bits >> c) & 1 for c in range(d)):
            raise InputError(
                f"Pressure acts on body {self.wall}, which is held along {n[:d].tolist()}; add it with free=..., "
                'such as free="y".'
            )
        return n

    @staticmethod
    def _felt(sim, row) -> np.ndarray:
        """(3,) impulse of the contacts of the last step on the wall."""
        total = np.zeros(3)
        sim.contact_set.whole()
        for search in sim.contact_set.searches:
            impulse, _ = search.branches(sim.model, sim.contact_set.near)
            pairs = search.candidates()
            if len(pairs.a):
                total += impulse[pairs.b == row].sum(axis=0) - impulse[pairs.a == row].sum(axis=0)
        return total

    def to_file(self) -> dict:
        """Its numbers."""
        p = self.pressure
        if not isinstance(p, Profile):
            raise InputError(
                "The pressure on a wall is a function, which no file can hold; give a number or a profile."
            )
        return {
            "wall": self.wall, "area": list(self.between) if self.between else self.area,
            "direction": None if self.direction is None else self.direction.tolist(),
            "pressure": {"kind": p.kind, "numbers": [np.asarray(n).tolist() for n in p.numbers]},
        }  # fmt: skip

    @classmethod
    def from_file(cls, parameters: dict) -> "Pressure":
        """The pressure of a file."""
        said = parameters["pressure"]
        profile = Profile(said["kind"], tuple(np.array(n) for n in said["numbers"]))
        return cls(parameters["wall"], profile, area=parameters["area"], direction=parameters["direction"])

    def memory(self) -> dict:
        """Which of the loads of the wall is its own."""
        return {"place": self._place, "measured": None if math.isnan(self.measured) else self.measured}

    def remember(self, memory: dict) -> None:
        """Take back what `memory` gave."""
        self._place = memory["place"] if memory["place"] is None else int(memory["place"])
        self.measured = math.nan if memory["measured"] is None else float(memory["measured"])


def _unit(direction) -> np.ndarray:
    n = as_numbers("direction of a Pressure", direction)
    if n.shape not in ((2,), (3,)) or not np.isfinite(n).all() or not n.any():
        raise InputError(f"Pressure got direction={direction!r}; give a vector.")
    return n / math.sqrt(n @ n)
