"""The cell of a simulation: its shape, how it moves, and what it feels.

Free components of the velocity gradient L are unknowns of the contact problem. An image of a body at x + S, with S a
sum of cell vectors, moves by L S more than the body: a contact across the border has U = ... + L S, and its impulse P
acts on L by P_i S_j (see `equations.full`). The asked stress does the work -V sigma_ij L_ij, the cell has the kinetic
energy M l^2 L_ij^2 / 2: so contacts and cell are one mechanical system, and no feedback loop is needed.

Bodies keep their own positions and absolute velocities, wherever they have gone; nothing happens to them at a border.
"""

import numpy as np

from ..state import FREE
from .space import periodic


class CellMotion:
    """The moving shape of a `Cell`: ``shape`` (3, 3) has its vectors as columns, ``gradient`` (3, 3) is L."""

    LIGHT = 0.1  # mass over that of the bodies: as heavy as they are it is thrown off by what dilates, and comes back
    RECUT = 0.51  # of a vector: sheared by more than this along another one, the cell is cut anew

    def __init__(self, cell, bodies, dimension: int):
        self.cell, self.dimension, self.moves = cell, dimension, cell.moves
        self.shape, self.gradient, self.strain = cell.vectors.T.copy(), np.zeros((3, 3)), np.zeros((3, 3))
        self.length = cell.volume ** (1.0 / dimension) if self.moves else 0.0
        self.free = np.isfinite(cell.stress)
        free = float(bodies.mass[bodies.kind == FREE].sum())
        self.mass = self.LIGHT * free if cell.mass is None else float(cell.mass)
        self.drive(0.0)

    def become(self, cell) -> None:
        """Go on as asked by another ``cell``, from the present shape."""
        self.cell, self.moves, self.free = cell, cell.moves or self.moves, np.isfinite(cell.stress)
        self.length = self.length or self.volume ** (1.0 / self.dimension)

    @property
    def volume(self) -> float:
        """Area in 2D."""
        return float(abs(np.linalg.det(self.shape)))

    def space(self):
        """The present shape as a space for the kernels."""
        return periodic(self.shape, self.cell.periodic)

    def inverse_mass(self):
        """(3, 3) inverse masses of the rows, None where the cell is at rest."""
        return self.free.T / self.mass if self.moves else None

    def drive(self, t: float) -> None:
        """Take the imposed rates of the time ``t``."""
        if self.moves:
            self.gradient = np.where(self.free, self.gradient, self.cell.rate_at(t))

    def rows(self) -> np.ndarray:
        """(3, 8) the rows of the solver: columns of L times the length."""
        out = np.zeros((3, 8))
        out[:, :3], out[:, 6], out[:, 7] = self.length * self.gradient.T, self.free.any(axis=0) / self.mass, 1.0
        return out

    def relaxed(self, h: float) -> np.ndarray:
        """(3, 8) the rows after a step h under the asked stress alone."""
        out = self.rows()
        force = np.where(self.free, -self.volume * self.cell.stress / self.length, 0.0)
        out[:, :3] += h * force.T / self.mass
        return out

    def take(self, rows: np.ndarray) -> None:
        """Take the solved ``rows`` (3, 8)."""
        self.gradient = rows[:, :3].T / self.length

    def drift(self, h: float) -> None:
        """Deform at the present rate for a time h."""
        if self.moves:
            self.shape = self.shape + h * self.gradient @ self.shape
            self.strain = self.strain + h * self.gradient

    def cut_anew(self) -> bool:
        """Take nearer vectors of the same lattice where the cell has sheared far; whether it did."""
        done, repeated = False, np.flatnonzero(self.cell.periodic)
        for k in repeated:
            for j in repeated:
                one, two = self.shape[:, j], self.shape[:, k]
                share, growth = (one @ two) / (one @ one), one @ self.gradient @ two
                if j != k and abs(share) > self.RECUT and share * growth > 0:
                    self.shape[:, k] = two - np.rint(share) * one
                    done = True
        return done

    def energies(self, before, free, rows) -> tuple[float, float, float, float]:
        """Kinetic energy before, free and after, and the work of the asked stress, of rows (3, 8); J."""
        weight = 0.5 * self.mass * self.free.T
        u, r, v = (part[-3:, :3] for part in (before, free, rows))
        first, middle, last = (float((weight * x * x).sum()) for x in (u, r, v))
        return first, middle, last, float((weight * (r - u) * (u + v)).sum())

    @property
    def kinetic(self) -> float:
        """Of the free components, J."""
        rows = self.rows()
        return self.energies(rows, rows, rows)[0] if self.moves else 0.0

    # ---- files -------------------------------------------------------------------------------------------------------

    def memory(self) -> dict:
        """The array of a checkpoint: shape, gradient, strain, length and mass."""
        return {"cell": np.concatenate([self.shape.ravel(), self.gradient.ravel(), self.strain.ravel(),
                                        [self.length, self.mass]])}  # fmt: skip

    def restore(self, checkpoint: dict) -> None:
        """Take over the cell of a checkpoint."""
        numbers = checkpoint["cell"]
        self.shape, self.gradient, self.strain = (np.array(part) for part in numbers[:27].reshape(3, 3, 3))
        self.length, self.mass = (float(x) for x in numbers[27:])


class CellView:
    """What the user reads of the cell: ``sim.cell``."""

    def __init__(self, simulation):
        self._sim, self._cell = simulation, simulation.cell_motion

    def __repr__(self):
        return f"Cell of {np.round(self.vectors, 6).tolist()}, strain {np.round(self.strain, 6).tolist()}"

    def _flat(self, array):
        d = self._cell.dimension
        out = np.array(array[:d, :d])
        out.flags.writeable = False
        return out

    def impose(self, *, rate=None, stress=None, carry: bool = False) -> None:
        """From the next step on have this ``rate`` and ``stress``, as in `Cell`, in the place of those of before.

        With ``carry`` the bodies get the velocities of the flow, the change of the rate times their place from their
        common centre, which goes on as before: else they start to move by contacts across the border alone. What bodies
        and cell gain is in the ledger's inflow.
        """
        sim, cell = self._sim, self._cell
        cell.become(cell.cell.changed(rate, stress))
        before = cell.gradient
        cell.drive(sim.time + sim.time_step / 2)
        if carry:
            free = sim.bodies.kind == FREE
            mass, place = sim.bodies.mass[free], sim.bodies.position[free]
            sim.rows[free, :3] += (place - mass @ place / mass.sum()) @ (cell.gradient - before).T
        with sim.scene.opened() as scene:
            scene.cell = cell.cell
        sim.contact_set.near.length, sim.contact_set.cell_mass = cell.length, cell.inverse_mass()
        sim.contact_set.near.lists = None
        sim.derive()
        sim.ledger.enter_inflow(sim._kinetic())

    @property
    def vectors(self) -> np.ndarray:
        """(d, d) its vectors, one in each row, m."""
        return self._flat(self._cell.shape.T)

    @property
    def volume(self) -> float:
        """Volume; area in 2D."""
        return self._cell.volume

    @property
    def mass(self) -> float:
        """Of the cell, kg: see `Cell`."""
        return self._cell.mass

    @property
    def strain(self) -> np.ndarray:
        """(d, d) integral of the velocity gradient since the start."""
        return self._flat(self._cell.strain)

    @property
    def rate(self) -> np.ndarray:
        """(d, d) velocity gradient dv_i/dx_j, 1/s."""
        return self._flat(self._cell.gradient)

    @property
    def asked(self) -> np.ndarray:
        """(d, d) stress asked for, nan where there is none."""
        return self._flat(self._cell.cell.stress)

    @property
    def stress(self) -> np.ndarray:
        """(d, d) Cauchy stress of the contact forces of the last step, positive in compression: sum f_i l_j / V."""
        sim = self._sim
        return self._flat(sim.contact_set.moments(sim.model) / (sim.time_step * self.volume))

    @property
    def kinetic_stress(self) -> np.ndarray:
        """(d, d) sum m c_i c_j / V, with the velocities c beyond the mean flow L x."""
        b, rows = self._sim.bodies, self._sim.rows
        free = b.kind == FREE
        mass, c = b.mass[free, None], rows[free, :3] - b.position[free] @ self._cell.gradient.T
        c = c - (mass * c).sum(axis=0) / mass.sum()
        return self._flat((mass * c).T @ c / self.volume)

    def wrapped(self, places=None) -> np.ndarray:
        """(k, d) places inside the cell; those of the bodies where none are given."""
        from .space import wrapped

        d = self._cell.dimension
        places = self._sim.positions if places is None else np.asarray(places, dtype=float)
        wide = np.zeros((len(places), 3))
        wide[:, :d] = places
        return wrapped(self._cell.space(), wide)[:, :d]
