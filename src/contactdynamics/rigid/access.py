"""The public face of a running simulation: what the user reads, the doors by which a scene in motion is changed, and
the questions that leave it as it is.
"""

from typing import Self, Unpack

import numpy as np

from .. import _ahead, quaternions
from .._jit import Settled
from ..errors import InputError, as_numbers, check_function, explained, is_number, is_whole
from ..problem.form import ContactProblem
from ..scenes.frames import Moment, make_frame
from ..scenes.tables import Tables
from ..signatures import BodiesOptions, BodyOptions, SimulationOptions, ViewOptions
from ..state import FREE, Bodies, Body, Contacts, Energy, Frame, Model, read_only
from . import advance, contact_set, questions
from .cell import CellMotion, CellView
from .contact_set import ContactSet
from .fetch import lines
from .growing import grown
from .ledger import Ledger
from .loading import Loading
from .roster import Roster
from .threads import BLOCKS
from .watch import Watch, audit


class Access:
    """Bodies, loads and contacts of a scene in motion, by their numbers: the base of `Simulation`."""

    _before = _free = None  # (N, 8) velocities at the begin of a step, and without contacts: see `Step`

    def _take(self, scene) -> None:
        """Begin with a copy of the ``scene``, which is closed: see `Scene`."""
        model, self.scene = scene.freeze(), scene.copy()
        sort = "polyhedra" if len(model.rims.body) else "polygons" if len(model.corners.body) else "balls"
        _ahead.expect(sort if scene.cell is None and self._team.workers == self._team.threads else None)
        self.scene.close()
        self.time = 0.0
        self.roster, self.contact_set, self.watch = Roster(model), ContactSet(), Watch()
        self.loading, self.cell_motion = Loading(self.roster, self.scene), None
        if scene.cell is not None:
            self.cell_motion = CellMotion(scene.cell, model.bodies, model.dimension)
            self.contact_set = ContactSet(self.cell_motion.space(), self.cell_motion.length)
            self.contact_set.cell_mass = self.cell_motion.inverse_mass()
        self.derive()
        self.ledger = Ledger(len(model.laws), self._kinetic())

    def derive(self, first: int = 0) -> None:
        """Follow bodies that came, went or were sorted, and laws that changed.

        Bodies before row ``first`` are those of the last time, in their rows: what follows from them stays.
        """
        self.contact_set.derive(self.model, first)
        self.loading.derive()
        self.watch.derive(self.bodies, self.model.balls, self.contact_set.sizes(self.model, first), first)
        rows = self.rows[first:]  # fixed bodies stay as they are; a moving cell has the last rows
        rows = np.concatenate([rows, np.zeros((3, 8))]) if self._cell_moves else rows
        self._before, self._free = (grown(known, first, rows) for known in (self._before, self._free))
        self._wide = lines(len(self._free) if self._cell_moves else 0)
        if not first:
            self._set_out, self._arriving = Settled(advance.set_out), Settled(advance.arrive)
        self._columns, self._parts = advance.columns(self.bodies), np.empty((BLOCKS, 4))
        self._roll = advance.roll(self._columns)
        self._movers = self._team.of(len(self.rows), contact_set.SMALL)  # who shares what goes over bodies

    @property
    def _cell_moves(self) -> bool:
        return self.cell_motion is not None and self.cell_motion.moves

    def _kinetic(self) -> float:
        """The kinetic energy of the free bodies and of the cell, J."""
        return self.roster.kinetic() + (self.cell_motion.kinetic if self._cell_moves else 0.0)

    def _potential(self) -> float:
        """Energy of gravity and springs, J; where processes know a part of the bodies each, all of them must ask."""
        apart = self.contact_set.apart
        if apart is not None and self.loading.separate:
            return apart.potential(self._columns, np.ascontiguousarray(self.roster.model.gravity, dtype=float))
        self.contact_set.know_bodies()
        return self.loading.potential()

    @property
    def model(self) -> Model:
        """The arrays that kernels read; where processes know a part of the bodies each, all of them must ask."""
        self.contact_set.know_bodies()
        return self.roster.model

    @property
    def bodies(self) -> Bodies:
        """The table of bodies, row by row; velocities are in `rows`."""
        return self.model.bodies

    @property
    def rows(self) -> np.ndarray:
        """(N, 8) velocities: see `equations.contract`."""
        self.contact_set.know_bodies()
        return self.roster.rows

    def by_number(self) -> Tables:
        """Bodies and their parts in the order of their numbers, as the user, frames and files have them."""
        self.contact_set.know_bodies()
        return self.roster.by_number()

    @property
    def before_step(self) -> list:
        """The functions called with the simulation at the begin of each step, in this order."""
        return self._before_step

    @before_step.setter
    def before_step(self, functions):
        functions = functions if isinstance(functions, list | tuple) else [functions]
        for function in functions:
            check_function("before_step got the function", function, "simulation")
        self._before_step = list(functions)

    # ---- what the user reads ---------------------------------------------------------------------------------------

    def _flat(self, array):
        return array[self.roster.order, : self.scene.dimension]

    @explained
    def body(self, number: int) -> Body:
        """The body with this number, as it is whenever asked: ``sim.body(3).position``.

        Numbers stay when bodies are removed; rows of `positions` and its like do not.
        """
        return Body(int(number), self._value)

    def _value(self, number: int, name: str):
        row = self.roster.row(int(number)) if is_number(number) and int(number) == number else None
        if row is None:
            known = is_number(number) and 0 <= number < self.scene.count and int(number) == number
            raise InputError(
                f"Body {number} {'was removed' if known else 'never was'}; sim.identities lists the "
                f"{len(self.roster.rows)} numbers of the bodies present."
            )
        flat, d = self.scene.dimension == 2, self.scene.dimension
        if name == "position":
            return read_only(self.bodies.position[row, :d])
        if name == "velocity":
            return read_only(self.rows[row, :d])
        if name == "spin":
            spin = self.rows[row, 3:6] / self.rows[row, 7]
            return read_only(spin[2] if flat else spin)
        if name == "rotation":
            q = quaternions.product(self.bodies.orientation[row], quaternions.conjugate(self.bodies.principal[row]))
            return read_only(np.angle((q[0] + 1j * q[3]) ** 2) if flat else q)
        return read_only(getattr(self.roster.model.bodies, name)[row])

    @property
    def identities(self) -> np.ndarray:
        """(N,) the numbers that `Scene.add` gave to the bodies, row by row."""
        return self.roster.model.bodies.identity[self.roster.order]

    @property
    def positions(self) -> np.ndarray:
        """(N, d) centres of mass, m; row by row, as `identities`: see `body`."""
        return self._flat(self.bodies.position)

    @property
    def rotations(self) -> np.ndarray:
        """(N, 4) unit quaternions (w, x, y, z) in 3D, (N,) angles in (-pi, pi] in 2D."""
        q = quaternions.product(self.bodies.orientation, quaternions.conjugate(self.bodies.principal))[
            self.roster.order
        ]
        if self.scene.dimension == 3:
            return q
        return np.angle((q[:, 0] + 1j * q[:, 3]) ** 2)

    @property
    def velocities(self) -> np.ndarray:
        """(N, d) m/s."""
        return self._flat(self.rows[:, :3])

    @property
    def spins(self) -> np.ndarray:
        """(N, 3) in space in 3D, (N,) in 2D; rad/s."""
        spin = (self.rows[:, 3:6] / self.rows[:, 7:])[self.roster.order]
        return spin if self.scene.dimension == 3 else spin[:, 2]

    @property
    def cell(self) -> CellView | None:
        """The periodic cell: vectors, strain, rate, stress (see `CellView`); None in open space."""
        return None if self.cell_motion is None else CellView(self)

    @property
    def contacts(self) -> Contacts:
        """The active contacts of the last step: of balls and planes, then of polygons."""
        self.contact_set.whole()
        return self.contact_set.described(self.roster.model, self.roster.rows)

    @property
    def energy(self) -> Energy:
        """The ledger so far."""
        return self.ledger.energy(self._potential())

    # ---- bodies that come and go -----------------------------------------------------------------------------------

    @explained
    def add(self, shape, **options: Unpack[BodyOptions]) -> int:
        """Add a body to the running simulation: as `Scene.add`. The other contacts keep their memory."""
        with self.scene.opened() as scene:
            number = scene.add(shape, **options)
            self._take_new_blocks()
        return number

    @explained
    def add_many(self, shapes, **options: Unpack[BodiesOptions]) -> np.ndarray:
        """Add many balls to the running simulation: as `Scene.add_many`."""
        with self.scene.opened() as scene:
            numbers = scene.add_many(shapes, **options)
            self._take_new_blocks()
        return numbers

    def _change(self, **parts) -> None:
        """Replace parts of the model other than its tables."""
        self.roster.model = self.roster.model._replace(**parts)
        self.loading.follow()

    def _take_new_blocks(self):
        """Append what the scene got since the last time; new bodies enter the ledger with their energy."""
        self.contact_set.know_bodies()
        scene, known, new = self.scene, len(self.roster.rows), self.scene.new_bodies()
        if scene.changed_materials:  # first: it may refuse
            self._take_table()
        self.roster.append(new)
        self._change(springs=scene.springs(), drives=scene.drives, forces=scene.forces)
        self.derive(known)
        self.ledger.enter_inflow(self.ledger.kinetic + self.roster.kinetic(known))

    @explained
    def material(self, name: str, *, density: float, **own) -> None:
        """State a material for bodies to come: as `Scene.material`."""
        with self.scene.opened() as scene:
            scene.material(name, density=density, **own)
            self._take_laws()

    @explained
    def contact(self, a: str, b: str, *, axis=None, **options) -> None:
        """State the law between two materials, as `Scene.contact`; from the next step on."""
        with self.scene.opened() as scene:
            scene.contact(a, b, axis=axis, **options)
            self._take_laws()

    @explained
    def joint(self, first: int, second: int, **options) -> None:
        """State the law between two bodies, as `Scene.joint`; from the next step on."""
        for body in (first, second):
            self._value(body, "mass")
        with self.scene.opened() as scene:
            scene.joint(first, second, **options)
            self._take_laws()

    def _take_laws(self):
        self.contact_set.know_bodies()
        self._take_table()
        self.derive()

    def _take_table(self):
        laws, index, axes = self.scene.law_table()
        self.ledger.make_room(len(laws))
        self._change(laws=laws, law_index=index, law_axes=axes, joints=self.scene.materials.joint_table())

    @explained
    def force(self, body: int, force=None, torque=None) -> None:
        """Apply a force and a torque, as `Scene.force`; from the next step on, in addition to those there are."""
        self._value(body, "mass")
        with self.scene.opened() as scene:
            scene.force(body, force, torque)
            self._change(forces=scene.forces)

    @explained
    def spring(self, first: int, second: int | None = None, **options) -> None:
        """A spring with dashpot, as `Scene.spring`; from the next step on."""
        for body in (first,) if second is None else (first, second):
            self._value(body, "mass")
        with self.scene.opened() as scene:
            scene.spring(first, second, **options)
            self._change(springs=scene.springs())
            self.loading.derive()

    @property
    def gravity(self) -> np.ndarray:
        """(d,) at the present time, m/s^2; set to a vector, profile or function of time: acts from the next step."""
        return read_only(self.roster.model.gravity[: self.scene.dimension])

    @gravity.setter
    def gravity(self, value):
        with self.scene.opened() as scene:
            scene.gravity = value
            self._change(gravity=scene.gravity_at(self.time))

    @explained
    def remove(self, numbers) -> None:
        """Take bodies out of the running simulation, by number; the other contacts keep their memory."""
        asked = np.atleast_1d(as_numbers("remove: the numbers", numbers)).tolist()
        gone = [self.roster.row(int(i)) if is_whole(i) else None for i in asked]
        if None in gone:
            raise InputError(
                f"remove got a number of no present body; sim.identities lists the {len(self.roster.rows)} present."
            )
        stay = np.ones(len(self.rows), dtype=bool)
        stay[gone] = False
        if not (self.bodies.kind[stay] == FREE).any():
            raise InputError("remove would leave no free body; keep one, or end the simulation.")
        self.contact_set.remove(stay[self.model.balls.body], stay[self.model.planes.body])
        self.roster.keep(stay)
        self.derive()
        self.ledger.enter_inflow(self._kinetic())

    # ---- questions and repairs -------------------------------------------------------------------------------------

    def _state(self) -> questions.State:
        anticipate = self.penetration == "anticipate"
        self.contact_set.know_bodies()
        return questions.State(self.roster, self.loading, self.contact_set, self.time, self.time_step, anticipate,
                               self.cell_motion)  # fmt: skip

    @explained
    def is_equilibrium(
        self,
        *,
        tolerance: float = 1e-6,
        slack: float = 1e-6,
        limit: float | None = None,
        max_iterations: int | None = None,
    ) -> questions.Equilibrium:
        """Whether the present position is a possible equilibrium: one step from rest, nothing moved (2004, 6.2).

        ``tolerance`` of the solver; bodies nearer than ``slack`` times the smallest radius count as touching. Found
        where no body is left with more than ``limit`` (1e3 tolerance) times the velocity that the load alone would
        give it in the step. A larger velocity may be the solver's error or the begin of a motion: the step is solved
        ten times more exactly until the velocity falls below the limit, or stays. ``max_iterations`` sweeps at most
        (20 times those of a step); where they do not suffice the answer is no, and its report says so. The motion is
        left as it was; the answer carries the contact forces (impulses / time_step) that prove it.
        """
        for name, value in (("tolerance", tolerance), ("slack", slack), ("limit", limit)):
            if not ((name == "limit" and value is None) or (is_number(value) and value >= 0)):
                raise InputError(f"is_equilibrium got {name}={value!r}; give a number >= 0.")
        if not (max_iterations is None or is_whole(max_iterations, 1)):
            raise InputError(f"is_equilibrium got max_iterations={max_iterations!r}; give a whole number >= 1.")
        most = 20 * self.max_iterations if max_iterations is None else int(max_iterations)
        settings = self._settings()._replace(tolerance=float(tolerance), max_iterations=most)
        return questions.equilibrium(self._state(), slack, 1e3 * tolerance if limit is None else limit, settings)

    @explained
    def contact_problem(self, *, from_rest: bool = False, slack: float = 0.0) -> ContactProblem:
        """The contact problem of the next step, as data, for `solve` and `explore_forces`; the motion is left as it is.

        ``from_rest`` takes the present positions with all bodies at rest, as `is_equilibrium` does; bodies nearer than
        ``slack`` times the smallest radius count as touching. Contacts come in the order of `contacts` after that step,
        kind by kind, those of polygons last. With penetration="anticipate" they are those known before the solution.
        """
        return questions.contact_problem(self._state(), from_rest, slack)

    @explained
    def repair(self, *, bound: float = 1e-9, rounds: int = 200) -> float:
        """Move overlapping bodies apart and return the largest overlap left, over the size of the smaller body.

        Each round solves the contact problem of the displacements, without friction: the shortest displacement in the
        metric of masses for which no linearised gap is negative (1986, eq. 10.8).
        """
        left = questions.repair(self._state(), bound, rounds, self._settings())
        self.contact_set.forget()
        return left

    # ---- frames and files ------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """The present state as a `Frame`, the same that a result file gives."""
        moment = Moment(self.time, self.steps, self.time_step, self.model.dimension, self.gravity)
        laws = self.scene.materials.laws()
        return make_frame(moment, self.by_number(), self.contacts, laws, self._cell_of_frame())

    def _cell_of_frame(self) -> tuple:
        if self.cell_motion is None:
            return None, None, None
        cell, d = self.cell_motion, self.model.dimension
        return cell.shape.T[:d, :d].copy(), cell.cell.periodic[:d], cell.gradient[:d, :d].copy()

    def audit(self) -> str:
        """One line on the run so far: steps not solved, worst residual, largest overlap, closure of the ledger."""
        return audit([self])

    @explained
    def restore(self, path) -> Self:
        """Take over the last state of a result file, to go on from it with the same bits.

        Materials, drives, forces and the functions in `before_step` stay those of this simulation, which must have the
        dimension, the time step and the materials of the file; a recorder on the same file goes on adding to it.
        """
        from ..files import resume as resuming

        return resuming.restore(self, path)

    @classmethod
    @explained
    def from_file(cls, path, **options: Unpack[SimulationOptions]) -> Self:
        """The simulation of a result file, ready to go on; ``options`` replace those of the file.

        What the file cannot hold, functions of a program, is refused by name: go on with `restore` in that program.
        """
        from ..files import resume as resuming

        return resuming.from_file(cls, path, options)

    def show(self):
        """The present state as a page that shows itself in a notebook, to be turned and picked with the mouse.

        ``.save(path)`` writes it into a file, ``.open()`` shows it in the browser.
        """
        from ..views.page import page_of_simulation

        return page_of_simulation(self)

    @explained
    def plot(self, ax=None, **options: Unpack[ViewOptions]):
        """Draw the bodies and the contact forces; returns the axes."""
        from ..plotting import plot_scene

        return plot_scene(self.frame(), ax, **options)
