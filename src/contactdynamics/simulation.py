"""A rigid-body scene in motion: `Simulation`, with two doors, `run` and `step`.

One step, in this order: the functions in `before_step`; driven bodies take their velocity at t_m; half a drift to
(t_m, q_m); forces and free velocity; neighbours, gaps, active contacts; frames, targets and first guess; Gauss-Seidel;
energy ledger; half a drift; recorders.

The file is long because it holds the whole state: what the user reads, the step, bodies that come and go, questions
(`is_equilibrium`), repairs, frames and files. Contacts are in `encounters` (balls and planes) and `touching`
(polygons), energies in `ledger`, and the work itself in the kernels of the modules below them.
"""

import contextlib
import math
import warnings
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from . import assembly, detection, hooks, interrupts, iterations, quaternions, rigid, watch
from . import contacts as prepare
from ._jit import clock
from .display import pictured, short
from .encounters import Encounters
from .errors import (
    ConvergenceError,
    ConvergenceWarning,
    EnergyWarning,
    InputError,
    RunawayError,
    StepWarning,
    as_numbers,
    check_flags,
    check_function,
    count_of_steps,
    energy_message,
    is_number,
    is_one_of,
    is_whole,
)
from .ledger import NO_GAIN, Ledger
from .materials import RHO, TAU
from .scene import Scene, join
from .signatures import BodiesOptions, BodyOptions, SimulationOptions, ViewOptions
from .state import (
    FREE,
    Balls,
    Bodies,
    Body,
    ContactProblem,
    Contacts,
    Corners,
    Energy,
    Frame,
    Planes,
    SolveReport,
    Springs,
    read_only,
)
from .team import Team
from .touching import Touching

SOLVERS = {"accelerated": iterations.accelerated, "nlgs": iterations.nlgs}
SMALL = 500  # contacts up to which one thread is faster
SORT_FROM, SORT_EVERY = 1000, 1000  # balls from which bodies are sorted in space, and steps from one time to the next
STAGES = ("detection", "frames", "solve", "integrate", "record")


class SceneStep(NamedTuple):
    """What `Simulation.step` returns."""

    time: float  # s, at the end of the step
    contacts: int
    report: SolveReport
    seconds: dict  # wall time by stage


class Equilibrium(NamedTuple):
    """The answer of `Simulation.is_equilibrium`; true or false by itself."""

    found: bool
    largest_velocity: float  # left after one step from rest, over what the largest load alone would give
    contacts: Contacts  # whose impulses / h balance the loads, where found
    report: SolveReport

    __repr__ = short

    def __bool__(self):
        return self.found


class Simulation:
    """The motion of a `Scene` by the midpoint scheme of 2003/2004.

    The scene is copied and closed: `add`, `add_many`, `remove`, `force`, `spring`, `material`, `contact` and `gravity`
    of the simulation are the doors from then on.

    Parameters
    ----------
    time_step
        h, s.
    tolerance
        Residual to which the contacts of each step are solved (see `SolveReport`).
    max_iterations
        Sweeps at most in a step.
    solver
        "accelerated" (Nesterov's extrapolation around Gauss-Seidel, on the contacts that need it) or "nlgs" (plain
        Gauss-Seidel, the reference); the law and the residual are the same.
    threads
        Threads that sweep, 8 at most; the result is the same to the bit. More than one pays on an idle machine only.
    penetration
        "moreau" (contacts active where the gap at the midpoint is <= 0) or "anticipate" (nothing sinks in by more than
        about 1 % of the smaller radius, which the tolerance may leave).
    recovery
        Speed (m/s) at most at which existing overlaps above 0.2 % of a radius are opened; none by default. Bodies are
        moved, velocities stay as they are; the work against gravity is in the ledger.
    on_failure
        "warn" (once per run, with a count), "raise" or "ignore" where a step is not solved to the tolerance, and where
        a body flies away.
    repair
        Move overlapping bodies apart before the start, by the shortest displacement in the metric of masses.
    recorders
        Objects called with the simulation, such as `HDF5`.
    about
        Anything worth keeping in the result file: a dict of numbers and words.
    check
        Look for overlaps and for too long a step before the start.
    """

    OVERLAP_LIMIT = 0.05  # of the smaller radius, at the start
    RECOVER_ABOVE, RECOVER_TO = 2e-3, 5e-4  # of the smaller radius: recovery begins and ends there

    def __init__(
        self,
        scene: Scene,
        *,
        time_step: float,
        tolerance: float = 1e-3,
        max_iterations: int = 1000,
        solver: str = "accelerated",
        threads: int = 1,
        penetration: str = "moreau",
        recovery: float = 0.0,
        on_failure: str = "warn",
        repair: bool = False,
        recorders=(),
        about: dict | None = None,
        check: bool = True,
    ):
        if not isinstance(scene, Scene):
            raise InputError(f"Simulation got {scene!r}; give a Scene.")
        for name, value in (("time_step", time_step), ("tolerance", tolerance)):
            if not (is_number(value) and value > 0):
                raise InputError(f"Simulation got {name}={value!r}; give a positive number.")
        if not is_whole(max_iterations, 1):
            raise InputError(f"Simulation got max_iterations={max_iterations!r}; give a positive whole number.")
        if not is_one_of(solver, SOLVERS):
            raise InputError(f"solver is {solver!r}; choose one of {', '.join(SOLVERS)}.")
        if not (is_whole(threads, 1) and threads <= iterations.GROUPS):
            raise InputError(f"threads is {threads!r}; give a whole number from 1 to {iterations.GROUPS}.")
        if not is_one_of(penetration, ("moreau", "anticipate")):
            raise InputError(f"penetration is {penetration!r}; choose 'moreau' or 'anticipate'.")
        if not is_one_of(on_failure, ("warn", "raise", "ignore")):
            raise InputError(f"on_failure is {on_failure!r}; choose 'warn', 'raise' or 'ignore'.")
        if not (is_number(recovery) and recovery >= 0):
            raise InputError(f"recovery is {recovery!r}; give a speed >= 0.")
        check_flags("Simulation", repair=repair, check=check)
        if not (about is None or isinstance(about, dict)):
            raise InputError(f"Simulation got about={about!r}; give a dict of numbers and words.")
        self.model, self.scene = scene.freeze(), scene.copy()
        self.scene.close()
        self.time_step, self.tolerance, self.max_iterations = float(time_step), float(tolerance), int(max_iterations)
        self.penetration, self.recovery, self.on_failure = penetration, float(recovery), on_failure
        self.solver = solver
        self.threads, self._team, self._alone = int(threads), Team(int(threads)), Team(1)
        self.recorders = list(recorders) if isinstance(recorders, list | tuple) else [recorders]
        for recorder in self.recorders:
            if not callable(recorder) or not all(hasattr(recorder, part) for part in ("begin", "end")):
                raise InputError(f"Simulation got the recorder {recorder!r}; give one such as HDF5(path), or a list.")
        self.before_step, self._awaited = [], None  # what the file of a restored run has in `before_step`
        self.stepping, self._running = False, False
        self.time, self.steps = 0.0, 0
        self.watch = watch.Watch()
        self.failures = 0
        self.seconds, self.last_seconds = dict.fromkeys(STAGES, 0.0), dict.fromkeys(STAGES, 0.0)
        self.about = dict(about or {})
        self._repairing, self._hint = False, 0  # sweeps of the last solution
        self._start_arrays()
        if repair:
            self.repair()
        if check:
            self._check_start()
        self.ledger = Ledger(len(self.model.laws), self._kinetic())
        self.report = SolveReport(0.0, 0, True, 0, -1, 0.0, 0.0, 0.0, "No step yet.")
        scene.close()

    def __repr__(self):
        return (
            f"Simulation in {self.model.dimension}D at t = {self.time:g} s: {len(self.rows)} bodies, "
            f"{self._contact_count()} contacts; {self.steps} steps of {self.time_step:g} s"
        )

    _repr_html_ = pictured

    # ---- arrays ----------------------------------------------------------------------------------------------------

    def _start_arrays(self):
        """Own, writable copies of the model's arrays, and everything derived from them."""
        self.bodies = Bodies(*(np.array(array) for array in self.model.bodies))
        self.model = self.model._replace(bodies=self.bodies)  # the scene has its own
        self._taken = len(self.scene.blocks)
        self._ball_number = np.arange(len(self.model.balls.radius))  # in the order in which they came
        self.encounters, self.touching = Encounters(), Touching()
        self.rows = self._packed(self.bodies)
        self._derive()

    @staticmethod
    def _packed(bodies: Bodies) -> np.ndarray:
        """The rows (N, 8) of `contacts` from velocities and spins."""
        rows = np.empty((len(bodies.mass), 8))
        rigid.pack(bodies.velocity, bodies.spin, bodies.mass, bodies.kind, bodies.simple, bodies.size, rows)
        return rows

    def _derive(self):
        """Arrays that follow from the bodies: at the start, and when bodies come or go."""
        bodies, model = self.bodies, self.model
        n = len(bodies.mass)
        self._by_number = np.argsort(bodies.identity)  # rows in the order of the numbers: see `_sort`
        simple = bodies.simple.copy()
        simple[model.planes.body] = True
        for identity, (_, spin) in model.drives.items():
            # A plane that turns has lever arms; only a constant zero spin is surely none.
            still = getattr(spin, "kind", "") == "constant" and not np.any(spin(0.0))
            row = self._row(identity)
            if row is not None and not still and row in model.planes.body:
                simple[row] = False
        self.touching.derive(model, plain=self.solver == "nlgs")
        self.encounters.derive(model, simple, outlined=np.diff(self.touching.outline.start) > 0)
        self.watch.derive(bodies, model.balls, self.touching.outline.size)
        self._before, self._free = np.empty((n, 8)), np.empty((n, 8))
        self._force, self._torque = np.zeros((n, 3)), np.zeros((n, 3))
        self._inverse = np.zeros((0 if self.encounters.all_simple and not self.touching.present else n, 3, 3))
        self._hold_springs()

    def _hold_springs(self):
        """The springs by rows; those of removed bodies go with them."""
        model = self.model
        springs = model.springs._replace(
            first=self._rows_of(model.springs.first), second=self._rows_of(model.springs.second)
        )
        held = (springs.first > -2) & (springs.second > -2)
        self._springs = Springs(*(column[held] for column in springs))

    def _row(self, identity: int) -> int | None:
        """The row of the body with this number, None where it was removed."""
        known = self.bodies.identity
        at = int(np.searchsorted(known, identity, sorter=self._by_number))
        row = int(self._by_number[at]) if at < len(known) else -1
        return row if row >= 0 and known[row] == identity else None

    def _rows_of(self, identities) -> np.ndarray:
        """The rows of the bodies with these numbers; -1 for the ground, -2 for bodies that were removed."""
        rows = [-1 if i < 0 else self._row(int(i)) for i in identities]
        return np.array([-2 if row is None else row for row in rows], dtype=np.int64)

    # ---- bodies that come and go -----------------------------------------------------------------------------------

    def add(self, shape, **options: Unpack[BodyOptions]) -> int:
        """Add a body to the running simulation: as `Scene.add`. The other contacts keep their memory."""
        with self.scene.opened() as scene:
            number = scene.add(shape, **options)
            self._take_new_blocks()
        return number

    def add_many(self, shapes, **options: Unpack[BodiesOptions]) -> np.ndarray:
        """Add many balls to the running simulation: as `Scene.add_many`."""
        with self.scene.opened() as scene:
            numbers = scene.add_many(shapes, **options)
            self._take_new_blocks()
        return numbers

    def _take_new_blocks(self):
        """Append what the scene got since the last time; new bodies enter the ledger with their energy."""
        laws = self.scene.law_table() if self.scene.changed_materials else self.model[6:9]  # first: it may refuse
        blocks = self.scene.blocks[self._taken :]
        self._taken = len(self.scene.blocks)
        model, before = self.model, len(self.bodies.mass)
        new = join([block.bodies for block in blocks], Bodies)
        shift = before - int(new.identity[0])  # rows follow on, whatever was removed
        balls = [block.balls._replace(body=block.balls.body + shift) for block in blocks]
        planes = [block.planes._replace(body=block.planes.body + shift) for block in blocks]
        corners = [block.corners._replace(body=block.corners.body + shift) for block in blocks]
        self.bodies = join([self.bodies, new], Bodies)
        self.rows = np.concatenate([self.rows, self._packed(new)])
        self.ledger.make_room(len(laws[0]))
        self.model = model._replace(
            balls=join([model.balls, *balls], Balls), planes=join([model.planes, *planes], Planes),
            springs=self.scene.springs(), drives=self.scene.drives, forces=self.scene.forces,
            laws=laws[0], law_index=laws[1], law_axes=laws[2], corners=join([model.corners, *corners], Corners),
        )  # fmt: skip
        more = len(self.model.balls.radius) - len(self._ball_number)
        latest = self._ball_number.max(initial=-1)
        self._ball_number = np.append(self._ball_number, latest + 1 + np.arange(more))
        lists = self.encounters.neighbours
        self._derive()
        self.encounters.extend(lists, self.model, self.bodies)
        self.ledger.enter_inflow(self._kinetic())

    def material(self, name: str, *, density: float, **own) -> None:
        """State a material for bodies to come: as `Scene.material`."""
        with self.scene.opened() as scene:
            scene.material(name, density=density, **own)
            self._take_laws()

    def contact(self, a: str, b: str, *, axis=None, **options) -> None:
        """State the law between two materials, as `Scene.contact`; from the next step on."""
        with self.scene.opened() as scene:
            scene.contact(a, b, axis=axis, **options)
            self._take_laws()

    def _take_laws(self):
        laws, index, axes = self.scene.law_table()
        self.ledger.make_room(len(laws))
        self.model = self.model._replace(laws=laws, law_index=index, law_axes=axes)
        self._derive()

    def force(self, body: int, force=None, torque=None) -> None:
        """Apply a force and a torque, as `Scene.force`; from the next step on, in addition to those there are."""
        self._value(body, "mass")
        with self.scene.opened() as scene:
            scene.force(body, force, torque)
            self.model = self.model._replace(forces=scene.forces)

    def spring(self, first: int, second: int | None = None, **options) -> None:
        """A spring with dashpot, as `Scene.spring`; from the next step on."""
        for body in (first,) if second is None else (first, second):
            self._value(body, "mass")
        with self.scene.opened() as scene:
            scene.spring(first, second, **options)
            self.model = self.model._replace(springs=scene.springs())
            self._hold_springs()

    @property
    def gravity(self) -> np.ndarray:
        """(d,) at the present time, m/s^2; set to a vector, profile or function of time: acts from the next step."""
        return read_only(self.model.gravity[: self.model.dimension])

    @gravity.setter
    def gravity(self, value):
        with self.scene.opened() as scene:
            scene.gravity = value
            self.model = self.model._replace(gravity=scene.gravity_at(self.time))

    def _follow_gravity(self, t):
        """Take the gravity at the time ``t``, where it changes."""
        if not self.scene.steady:
            self.model = self.model._replace(gravity=self.scene.gravity_at(t))

    def remove(self, numbers) -> None:
        """Take bodies out of the running simulation, by number; the other contacts keep their memory."""
        asked = np.atleast_1d(as_numbers("remove: the numbers", numbers)).tolist()
        gone = [self._row(int(i)) if is_whole(i) else None for i in asked]
        if None in gone:
            raise InputError(
                f"remove got a number of no present body; sim.identities lists the {len(self.rows)} present."
            )
        stay = np.ones(len(self.rows), dtype=bool)
        stay[gone] = False
        if not (self.bodies.kind[stay] == FREE).any():
            raise InputError("remove would leave no free body; keep one, or end the simulation.")
        model, new_row = self.model, np.cumsum(stay) - 1
        ball, plane = stay[model.balls.body], stay[model.planes.body]
        balls = Balls(*(array[ball] for array in model.balls))
        self._ball_number = self._ball_number[ball]
        planes = Planes(*(array[plane] for array in model.planes))
        corners = Corners(*(array[stay[model.corners.body]] for array in model.corners))
        self.encounters.remove(ball, plane)
        self.touching.remove(ball, plane)
        self.model = model._replace(
            balls=balls._replace(body=new_row[balls.body]), planes=planes._replace(body=new_row[planes.body]),
            corners=corners._replace(body=new_row[corners.body]),
        )  # fmt: skip
        self.bodies = Bodies(*(array[stay] for array in self.bodies))
        self.rows = self.rows[stay]
        self._derive()
        self.ledger.enter_inflow(self._kinetic())

    def _sort(self):
        """Put the bodies, and with them their balls and contacts, in the order of the slabs in which they are swept.

        What touches then stands together in memory. Called by the count of steps alone, so that a resumed run has the
        same bits. Only where all contacts are simple: their law does not know which body is the first.
        """
        model, met = self.model, self.encounters
        if len(model.balls.radius) < SORT_FROM or not met.all_simple or self.touching.present:
            return
        order = iterations.slices(self.bodies.position, met.pairs.second, model.balls.body, met.reach)
        row = np.argsort(order)  # of the bodies, from now on
        ball = np.lexsort((self._ball_number, row[model.balls.body]))
        balls = Balls(*(array[ball] for array in model.balls))
        self.bodies, self.rows = Bodies(*(array[order] for array in self.bodies)), self.rows[order]
        self.model = model._replace(
            bodies=self.bodies, balls=balls._replace(body=row[balls.body]),
            planes=model.planes._replace(body=row[model.planes.body]),
        )  # fmt: skip
        self._ball_number = self._ball_number[ball]
        met.renumber(ball)
        self._derive()

    def by_number(self) -> tuple[Bodies, Balls, Planes, Corners]:
        """Bodies and their shapes in the order of their numbers, as the user, frames and files have them."""
        order, model = self._by_number, self.model
        row, ball = np.argsort(order), np.argsort(self._ball_number)
        b = self.bodies._replace(velocity=self.rows[:, :3], spin=self.rows[:, 3:6] / self.rows[:, 7:])
        balls = Balls(*(array[ball] for array in model.balls))
        tables = (table._replace(body=row[table.body]) for table in (balls, model.planes, model.corners))
        return Bodies(*(array[order] for array in b)), *tables

    # ---- what is called ---------------------------------------------------------------------------------------------

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
        return array[self._by_number, : self.model.dimension]

    def body(self, number: int) -> Body:
        """The body with this number, as it is whenever asked: ``sim.body(3).position``.

        Numbers stay when bodies are removed; rows of `positions` and its like do not.
        """
        return Body(int(number), self._value)

    def _value(self, number: int, name: str):
        row = self._row(int(number)) if is_number(number) and int(number) == number else None
        if row is None:
            known = is_number(number) and 0 <= number < self.scene.count and int(number) == number
            raise InputError(
                f"Body {number} {'was removed' if known else 'never was'}; sim.identities lists the {len(self.rows)} "
                "numbers of the bodies present."
            )
        flat, d = self.model.dimension == 2, self.model.dimension
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
        return read_only(getattr(self.bodies, name)[row])

    @property
    def identities(self) -> np.ndarray:
        """(N,) the numbers that `Scene.add` gave to the bodies, row by row."""
        return self.bodies.identity[self._by_number]

    @property
    def positions(self) -> np.ndarray:
        """(N, d) centres of mass, m; row by row, as `identities`: see `body`."""
        return self._flat(self.bodies.position)

    @property
    def rotations(self) -> np.ndarray:
        """(N, 4) unit quaternions (w, x, y, z) in 3D, (N,) angles in (-pi, pi] in 2D."""
        q = quaternions.product(self.bodies.orientation, quaternions.conjugate(self.bodies.principal))[self._by_number]
        if self.model.dimension == 3:
            return q
        return np.angle((q[:, 0] + 1j * q[:, 3]) ** 2)

    @property
    def velocities(self) -> np.ndarray:
        """(N, d) m/s."""
        return self._flat(self.rows[:, :3])

    @property
    def spins(self) -> np.ndarray:
        """(N, 3) in space in 3D, (N,) in 2D; rad/s."""
        spin = (self.rows[:, 3:6] / self.rows[:, 7:])[self._by_number]
        return spin if self.model.dimension == 3 else spin[:, 2]

    @property
    def contacts(self) -> Contacts:
        """The active contacts of the last step: of balls and planes, then of polygons."""
        found = self.encounters.described(self.model, self.bodies.identity)
        if not self.touching.count:
            return found
        more = self.touching.described(self.bodies.identity)
        return Contacts(*(np.concatenate(both) for both in zip(found, more, strict=True)))

    @property
    def energy(self) -> Energy:
        """The ledger so far."""
        return self.ledger.energy(self._potential())

    def _contact_count(self) -> int:
        """Active contacts of all classes."""
        return sum(self.encounters.count) + self.touching.count

    def _kinetic(self) -> float:
        b = self.bodies
        return rigid.energies(self.rows, self.rows, self.rows, b.kind, b.mass, b.inertia, b.orientation)[0]

    def _potential(self) -> float:
        b = self.bodies
        energy = rigid.gravity_energy(b.position, b.mass, b.kind, self.model.gravity)
        if len(self._springs.first):
            energy += rigid.pull_springs(
                self._springs,
                b.position,
                b.orientation,
                self.rows,
                np.zeros_like(b.position),
                np.zeros_like(b.position),
            )
        return energy

    # ---- the step --------------------------------------------------------------------------------------------------

    def step(self) -> SceneStep:
        """Make one step of length `time_step`.

        Each function in the list `before_step` is called first, with the simulation: it may add and remove bodies.
        """
        self._begin_recording()
        begin = clock()
        self.stepping = True  # until the state is whole again: a step that was cut short is not recorded
        for function in self.before_step:
            function(self)
        if self.steps % SORT_EVERY == 0:
            self._sort()
        h, bodies = self.time_step, self.bodies
        self._free_motion()
        moved = clock()
        self._detect()
        detected = clock()
        framed, iterations, residual, worst, bipotential = self._solve()
        solved = clock()
        self._book(residual)
        rigid.drift(bodies.position, bodies.orientation, self.rows, h / 2)
        self._follow_gravity((self.steps + 1) * h)
        if self.recovery > 0:
            self._recover()
        self.steps += 1
        self.time = self.steps * h
        self.stepping = False
        self._finish_report(iterations, residual, worst, bipotential)
        ended = clock()
        record = self.last_seconds["record"]  # of the step before: this one's is known only at its end
        self.last_seconds = {
            "detection": detected - moved,
            "frames": framed,
            "solve": solved - detected - framed,
            "integrate": moved - begin + ended - solved,
            "record": record,
        }
        for recorder in self.recorders:
            recorder(self)
        self.last_seconds["record"] = clock() - ended
        for stage, value in self.last_seconds.items():
            self.seconds[stage] += value
        return SceneStep(self.time, self._contact_count(), self.report, dict(self.last_seconds))

    def _free_motion(self):
        """Drive, drift to the midpoint, and give the bodies the free velocity u_r that they have without contacts."""
        h, b = self.time_step, self.bodies
        self._drive(self.time + h / 2)
        self._before[:] = self.rows
        rigid.drift(b.position, b.orientation, self.rows, h / 2)
        loaded = self._load(self.time + h / 2)
        self._follow_gravity(self.time + h / 2)
        rigid.relax(self.rows, b.kind, b.mass, b.inertia, b.orientation, self._force, self._torque,
                    self.model.gravity, h, loaded)  # fmt: skip
        self._free[:] = self.rows

    def run(self, *, until: float, progress: bool | None = None) -> "Simulation":
        """Step until the time ``until``; on a terminal with a progress bar. Returns the simulation itself.

        First and last frame always go to the recorders. Ctrl-C (and SIGTERM) ends the run after the present step, with
        the files closed, by a `KeyboardInterrupt` that says how to go on; pressed twice, at once.
        """
        check_flags("run", progress=False if progress is None else progress)
        if not is_number(until):
            raise InputError(f"until is {until!r}; give the time (s) at which to stop.")
        count = count_of_steps(self.time, until, self.time_step)
        if count < 0:
            raise InputError(
                f"until={until} lies before the time {self.time:.6g} of the simulation; give a later time."
            )
        from .progress import progress_bar

        failures, created = self.failures, self.ledger.created
        self.ledger.worst = NO_GAIN
        self.about["until"] = float(until)
        self._begin_recording()
        with interrupts.held() as noted:
            with contextlib.ExitStack() as last:  # each recorder ends, whatever another one raises
                for recorder in self.recorders:
                    last.callback(recorder.end, self)
                last.callback(setattr, self, "_running", False)
                self._running = True
                with progress_bar(self, count, progress) as advance:
                    for _ in range(count):
                        self.step()
                        advance()
                        if noted:
                            break
        if self.failures > failures and self.on_failure == "warn":
            warnings.warn(
                f"{self.failures - failures} of {count} steps were not solved to the tolerance {self.tolerance:g}; "
                "raise max_iterations, shorten time_step or accept a larger tolerance.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.ledger.created > created and self.ledger.gained:
            warnings.warn(self._gain(created), EnergyWarning, stacklevel=2)
            self.watch.first("gain")
        if noted:
            kept = [r.way_on(self) for r in self.recorders if hasattr(r, "way_on")]
            none = f"no file has it: simulation.run(until={until:g}) goes on within this program"
            raise KeyboardInterrupt(f"Stopped after the step to t = {self.time:.6g}; {'; '.join(kept) or none}.")
        return self

    def _begin_recording(self):
        """Let the recorders write the state that they start from; those that have begun do nothing."""
        if self._awaited is not None:
            entries, self._awaited = self._awaited, None
            difference = hooks.recalled(self.before_step, entries)
            if difference:
                warnings.warn(difference, stacklevel=3)
        for recorder in self.recorders:
            recorder.begin(self)

    def _drive(self, t):
        """Give driven bodies their velocity at the time ``t``."""
        d = self.model.dimension
        for identity, (velocity, spin) in self.model.drives.items():
            row = self._row(identity)
            if row is None:
                continue
            self.rows[row, :d] = velocity(t)
            if d == 3:
                self.rows[row, 3:6] = self.rows[row, 7] * np.asarray(spin(t))
            else:
                self.rows[row, 5] = self.rows[row, 7] * np.asarray(spin(t)).item()
            if not np.isfinite(self.rows[row, :6]).all():
                raise InputError(
                    f"The motion of body {identity} is infinite or nan at t = {t:.6g}; make it return finite numbers."
                )

    def _load(self, t) -> bool:
        """Collect forces and torques at the time ``t``; False where gravity is alone."""
        if not self.model.forces and not len(self._springs.first):
            return False
        d = self.model.dimension
        self._force[:], self._torque[:] = 0.0, 0.0
        for identity, loads in self.model.forces.items():
            row = self._row(identity)
            for force, torque in loads if row is not None else ():
                self._force[row, :d] += force(t)
                if d == 3:
                    self._torque[row] += torque(t)
                else:
                    self._torque[row, 2] += np.asarray(torque(t)).item()
        b = self.bodies
        rigid.pull_springs(self._springs, b.position, b.orientation, self.rows, self._force, self._torque)
        return True

    def _detect(self, slack: float = 0.0):
        """The active pairs at the present positions; bodies nearer than ``slack`` count as touching."""
        self.encounters.place(self.model, self.bodies)
        if self.touching.present:
            self.touching.place(self.bodies)
        self._follow_neighbours()
        self._find(self._before, self.rows, slack=slack, keep=False)

    def _follow_neighbours(self):
        anticipate = self.penetration == "anticipate"
        self.encounters.follow(self.model, self.bodies, self.rows, self.time_step, anticipate)

    def _find(self, one, two, *, slack: float, keep: bool) -> int:
        """Find the active pairs, with the memory of the present ones, which they replace; returns how many they are."""
        how = (self.time_step, slack, self.penetration == "anticipate", keep)
        met, bodies = self.encounters, self.bodies
        found = met.find(self.model, bodies, one, two, *how)
        if self.touching.present:
            found += self.touching.find(
                self.model, bodies.kind, met.places, met.neighbours, (met.normals, met.points), met.sticky_law,
                bodies.position, one, two, *how,
            )  # fmt: skip
        return found

    def _more_contacts(self, begun) -> bool:
        """With anticipation: whether the velocities just found close gaps of pairs left out; takes those in.

        They are then solved again with the status ``begun`` that the pairs had at the start of the step.
        """
        self._follow_neighbours()
        ended = [status.copy() for status in self._statuses()]
        for status, old in zip(self._statuses(), begun, strict=True):
            status[:] = old
        if self._find(self.rows, self.rows, slack=0.0, keep=True) > sum(map(len, ended)):
            return True
        for status, new in zip(self._statuses(), ended, strict=True):
            status[:] = new
        return False

    def _statuses(self) -> tuple[np.ndarray, np.ndarray]:
        """What the contacts of both kinds remember of stick, slip and rest."""
        return self.encounters.pairs.status, self.touching.touches.status

    def _solve(self):
        """Solve the contacts; with anticipation, again as long as the solution closes gaps of pairs left out."""
        framed, sweeps, met, polygons = 0.0, 0, self.encounters, self.touching
        while True:
            begin = clock()
            scale = self._fill()
            framed += clock() - begin
            problem = met.problem(
                self.rows, self._inverse, self.model.dimension, scale, self.tolerance, self.max_iterations
            )
            if polygons.count:
                done, residual, worst, bipotential = polygons.solve(*problem, self._hint)
            else:
                team = self._team if met.count[0] > SMALL else self._alone
                done, residual, worst, bipotential = team(SOLVERS[self.solver], *problem)
            worst = met.place_of(worst)
            sweeps += done if self._contact_count() else 0
            self._hint = done
            begun = [status.copy() for status in self._statuses()]
            (cone, size), (other, more) = (c.store(self.rows, self.tolerance) for c in (met, polygons))
            cone, size = max(cone, other), size + more
            self._cone = cone / math.sqrt(size) if size > 0 else 0.0
            if self.penetration != "anticipate" or not self._more_contacts(begun):
                return framed, sweeps, residual, worst, bipotential
            self.rows[:] = self._free

    def _fill(self) -> float:
        """Contacts of the step from the active pairs, with the first guess added to the velocities."""
        model, b = self.model, self.bodies
        if len(self._inverse):
            rigid.invert_inertia(b.kind, b.inertia, b.orientation, model.dimension, self._inverse)
        step = (self._before, self._free, self.rows, self._inverse)
        how = (self.time_step, self.penetration == "anticipate", self._repairing)
        scale = self.encounters.fill(model, b, *step, *how)
        if self.touching.present:
            scale += self.touching.fill(model, b.position, *step, *how)
        return scale

    def _book(self, residual: float):
        """Enter the step into the energy ledger."""
        works = np.zeros_like(self.ledger.works)
        for contacts in (self.encounters, self.touching):
            contacts.book(self._before, self.rows, self.bodies.kind, works)
        self.ledger.enter(
            self.bodies, self._before, self._free, self.rows, works, residual=residual,
            solved=residual <= self.tolerance, step=self.steps + 1, time=(self.steps + 1) * self.time_step,
        )  # fmt: skip

    def _recover(self):
        """Open overlaps by moving bodies apart, at most at the speed `recovery`, and book the work against gravity."""
        bounds = (self.RECOVER_ABOVE, self.RECOVER_TO, self.recovery * self.time_step)
        for contacts in (self.encounters, self.touching):
            work = contacts.recover(self.model, self.bodies, self.rows, self.time_step, *bounds)
            self.ledger.recovery_work += work

    def _finish_report(self, iterations, residual, worst, bipotential):
        """The `SolveReport` of the step, and what the failure policy asks."""
        contacts = self._contact_count()
        overlaps = [contacts.deepest(self.model) for contacts in (self.encounters, self.touching)]
        depth, relative = max(overlaps[0][0], overlaps[1][0]), max(overlaps[0][1], overlaps[1][1])
        converged = residual <= self.tolerance
        message = (
            f"Solved: residual {residual:.1e} after {iterations} sweeps over {contacts} contacts."
            if converged
            else f"Not solved: residual {residual:.1e} after {iterations} sweeps over {contacts} contacts, asked "
            f"{self.tolerance:g}; raise max_iterations, shorten time_step or accept a larger tolerance."
        )
        self.report = SolveReport(
            residual,
            iterations,
            converged,
            contacts,
            worst,
            depth,
            self._cone,
            bipotential,
            message,
            relative,
        )
        if relative > self.watch.overlap:
            contacts, (_, share, k) = max(
                zip((self.encounters, self.touching), overlaps, strict=True), key=lambda one: one[1][1]
            )
            bodies = tuple(int(self.bodies.identity[row]) for row in contacts.rows_of(k, self.model))
            self.watch.enter(share, self.time, bodies)
        if not converged:
            self.failures += 1
            if self.on_failure == "raise":
                raise ConvergenceError(f"At t = {self.time:.6g}: {message}")
        self._tell()

    # ---- what is told while it happens -----------------------------------------------------------------------------

    def _tell(self):
        """Tell, once, of a step that is too long; and who calls `step`, of what `run` tells at its end."""
        seen, level = self.watch, 4 + self._running  # the line of the user's program
        anticipate = self.penetration == "anticipate"
        share, row = seen.fastest(self.rows, self.time_step)
        if share > detection.REACH:
            self._tell_runaway(share, row, level + 1)
        elif share > watch.TRAVEL and not anticipate and seen.first("step"):
            number = int(self.bodies.identity[row])
            message = watch.travel_message(share, number, self.time, self.time_step)
            warnings.warn(message, StepWarning, stacklevel=level)
        if seen.overlap > watch.OVERLAP and seen.first("step"):
            message = watch.overlap_message(seen.overlap, seen.bodies, seen.time, self.time_step, anticipate)
            warnings.warn(message, StepWarning, stacklevel=level)
        if self._running:
            return
        if not self.report.converged and self.on_failure == "warn" and seen.first("failure"):
            message = f"At t = {self.time:.6g}: {self.report.message} Told once."
            warnings.warn(message, ConvergenceWarning, stacklevel=level)
        if self.ledger.gained and seen.first("gain"):
            warnings.warn(self._gain(0.0), EnergyWarning, stacklevel=level)

    def _gain(self, before: float) -> str:
        """The sentence about energy that the contacts created since it was ``before``."""
        bounces = bool(self.model.laws[:, [RHO, TAU]].any())
        return energy_message(self.ledger.created - before, *self.ledger.worst, restitution=bounces)

    def _tell_runaway(self, share: float, row: int, level: int):
        """A body goes farther in a step than neighbours are searched; beyond what numbers resolve the run must end."""
        number, place = int(self.bodies.identity[row]), self.bodies.position[row, : self.model.dimension]
        message = watch.runaway_message(share, number, self.time, place)
        if self.on_failure == "raise" or np.abs(place).max() > watch.RESOLVED * self.watch.room[row]:
            raise RunawayError(message)
        if self.on_failure == "warn" and self.watch.first("runaway"):
            self.watch.first("step")  # the same cause
            warnings.warn(message, StepWarning, stacklevel=level)

    # ---- questions and repairs -------------------------------------------------------------------------------------

    def _check_start(self):
        """Overlaps beyond a bound and steps that are too long."""
        self._before[:] = self.rows
        self._detect()
        _, share, k = self.encounters.deepest(self.model)
        if share > self.OVERLAP_LIMIT:
            raise self._overlap(self.encounters.rows_of(k, self.model), share, "radius")
        if self.touching.present:
            _, share, k = self.touching.deepest(self.model)
            if share > self.OVERLAP_LIMIT:
                raise self._overlap(self.touching.rows_of(k, self.model), share, "one's inner radius")
        self._drive(self.time + self.time_step / 2)
        share, row = self.watch.fastest(self.rows, self.time_step)
        bound = watch.TRAVEL if self.penetration == "moreau" else detection.REACH
        if share > bound and self.watch.first("step"):
            number = int(self.bodies.identity[row])
            message = watch.travel_message(share, number, self.time + self.time_step, self.time_step)
            warnings.warn(message, StepWarning, stacklevel=3)

    def _overlap(self, rows, share: float, size: str) -> InputError:
        a, b = (int(self.bodies.identity[row]) for row in rows)
        return InputError(
            f"Bodies {a} and {b} overlap by {share:.0%} of the smaller {size} at the start; move them apart, or let "
            "Simulation(..., repair=True) do it."
        )

    def is_equilibrium(
        self,
        *,
        tolerance: float = 1e-6,
        slack: float = 1e-6,
        limit: float | None = None,
        max_iterations: int | None = None,
    ) -> Equilibrium:
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
        with self._untouched():
            self.tolerance, self.penetration = float(tolerance), "moreau"
            self.max_iterations = 20 * self.max_iterations if max_iterations is None else int(max_iterations)
            return self._solve_from_rest(slack, 1e3 * tolerance if limit is None else limit)

    def contact_problem(self, *, from_rest: bool = False, slack: float = 0.0) -> ContactProblem:
        """The contact problem of the next step, as data, for `solve` and `explore_forces`; the motion is left as it is.

        ``from_rest`` takes the present positions with all bodies at rest, as `is_equilibrium` does; bodies nearer than
        ``slack`` times the smallest radius count as touching. Contacts come in the order of `contacts` after that step,
        simple ones first, those of polygons last. With penetration="anticipate" they are those known before the
        solution.
        """
        with self._untouched():
            if from_rest:
                self.penetration = "moreau"
                self._free_from_rest()
            else:
                self._free_motion()
            self._detect(slack * self.encounters.smallest)
            self._fill()
            b, met, d = self.bodies, self.encounters, self.model.dimension
            inverse = np.empty((len(b.mass), 3, 3))
            rigid.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse)
            (m, g), general, gap = met.count, met.general, met.pairs.gap
            if self.touching.count:
                more = self.touching.as_general(self._free, len(gap))
                general = prepare.General(*(np.concatenate([x[:g], y]) for x, y in zip(general, more, strict=True)))
                g, gap = g + len(more.pair), np.concatenate([gap, self.touching.gaps()])
            return assembly.assemble(self._free, inverse, met.by_pair(), m, general, g, gap, d)

    def _free_from_rest(self) -> bool:
        """Free velocity of a step that starts with all bodies at rest, at the present positions; as `_load`."""
        b = self.bodies
        self.rows[:, :6] = 0.0
        self._before[:] = self.rows
        loaded = self._load(self.time)
        rigid.relax(self.rows, b.kind, b.mass, b.inertia, b.orientation, self._force, self._torque,
                    self.model.gravity, self.time_step, loaded)  # fmt: skip
        self._free[:] = self.rows
        return loaded

    @contextlib.contextmanager
    def _untouched(self):
        """Whatever is tried inside, the simulation comes out as it went in."""
        names = ("tolerance", "max_iterations", "penetration", "time", "report", "_hint", "model")
        kept = {name: getattr(self, name) for name in names}
        arrays = [(array, array.copy()) for array in (self.rows, self.bodies.position, self.bodies.orientation)]
        both = (self.encounters, self.touching)
        kept_contacts = [contacts.kept() for contacts in both]
        for contacts in both:
            contacts.start_trial()
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)
            for array, values in arrays:
                array[:] = values
            for contacts, state in zip(both, kept_contacts, strict=True):
                contacts.put_back(state)

    def _solve_from_rest(self, slack: float, limit: float) -> Equilibrium:
        """The step of `is_equilibrium`, which keeps and restores the state around it."""
        b, h = self.bodies, self.time_step
        loaded = self._free_from_rest()
        push = h * np.sqrt((self._force**2).sum(axis=1) / b.mass**2).max() if loaded else 0.0
        fall = max(np.sqrt((self.rows[:, :6] ** 2).sum(axis=1).max()), h * np.linalg.norm(self.model.gravity), push)
        self._detect(slack * self.encounters.smallest)
        sweeps, before, decided = 0, math.inf, False
        while not decided:
            _, iterations, residual, worst, bipotential = self._solve()
            sweeps += iterations
            left = float(np.sqrt((self.rows[b.kind == FREE, :6] ** 2).sum(axis=1).max()))
            share = left / fall if fall > 0 else left
            solved = residual <= self.tolerance
            decided = share <= limit or share > 0.5 * before or not solved or self.tolerance < 1e-14
            if not decided:  # more exactly, from the impulses found; the velocities again from the free ones
                before, self.tolerance = share, 0.1 * self.tolerance
                self.rows[:] = self._free
        found = bool(share <= limit)
        message = "One step from rest." if found or solved else (
            f"Undecided: residual {residual:.1e} after {sweeps} sweeps, asked {self.tolerance:.0e}; raise "
            "max_iterations, or limit if velocities of its size do not matter."
        )  # fmt: skip
        report = SolveReport(residual, sweeps, solved, self._contact_count(), worst, 0.0, self._cone, bipotential,
                             message)  # fmt: skip
        return Equilibrium(found, share, self.contacts, report)

    def repair(self, *, bound: float = 1e-9, rounds: int = 200) -> float:
        """Move overlapping bodies apart and return the largest overlap left, over the smallest radius.

        Each round solves the contact problem of the displacements, without friction: the shortest displacement in the
        metric of masses for which no linearised gap is negative (1986, eq. 10.8).
        """
        kept = (self.rows.copy(), self.time_step, self.penetration, self.tolerance, self.model)
        kept_report = getattr(self, "report", None)
        frictionless = self.model.laws.copy()
        frictionless[:] = 0.0
        self.model = self.model._replace(laws=frictionless)
        self.time_step, self.penetration, self.tolerance, self._repairing = 1.0, "anticipate", 1e-8, True
        left = math.inf
        try:
            for _ in range(rounds):
                self.rows[:, :6] = 0.0
                self._before[:], self._free[:] = self.rows, self.rows
                self._detect()
                left = max(
                    self.encounters.deepest(self.model)[0] / self.encounters.smallest,
                    self.touching.deepest(self.model)[1],
                )
                if left <= bound:
                    break
                self._solve()
                rigid.drift(self.bodies.position, self.bodies.orientation, self.rows, 1.0)
        finally:
            self.rows[:], self.time_step, self.penetration, self.tolerance, self.model = kept
            self._repairing = False
            self.encounters.forget()
            self.touching.forget()
            if kept_report is not None:
                self.report = kept_report
        return left

    # ---- frames and files ------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """The present state as a `Frame`, the same that a result file gives."""
        from .storage import make_frame

        b, balls, planes, corners = self.by_number()
        return make_frame(self.time, self.steps, self.time_step, self.model.dimension, self.gravity, b,
                          balls, planes, self.contacts, corners, self.scene.materials.laws())  # fmt: skip

    def restore(self, path) -> "Simulation":
        """Take over the last state of a result file, to go on from it with the same bits.

        Materials, drives, forces and the functions in `before_step` stay those of this simulation, which must have the
        dimension, the time step and the materials of the file; a recorder on the same file goes on adding to it.
        """
        from . import storage

        with storage.Recording(path) as recording:
            storage.check_likeness(recording, self)
            block = storage.last_block(recording)
            checkpoint = storage.checkpoint(recording)
            scaled = storage.scaled_spins(recording)
            self._awaited = recording.parameters.get("before_step")
            self.steps, self.time = recording.frame_steps[-1].item(), float(recording.times[-1])
        self.scene.blocks, self._taken = [block], 1
        order = checkpoint.get("row_order", np.arange(len(block.bodies.mass)))  # none in files of unsorted bodies
        self._ball_number = checkpoint.get("ball_order", np.arange(len(block.balls.radius)))
        row = np.argsort(order)
        balls = Balls(*(array[self._ball_number] for array in block.balls))
        tables = (table._replace(body=row[table.body]) for table in (balls, block.planes, block.corners))
        self.bodies = Bodies(*(array[order] for array in block.bodies))
        balls, planes, corners = tables
        self.model = self.model._replace(bodies=self.bodies, balls=balls, planes=planes, corners=corners)
        self.failures, self.scene.count, *rest = (int(n) for n in checkpoint["numbers"])
        self._hint = rest[0] if rest else 0
        self.ledger.restore(checkpoint)
        self.watch.restore(checkpoint)
        self._follow_gravity(self.time)
        self.seconds = dict(zip(STAGES, checkpoint["seconds"].tolist(), strict=True))
        self.rows = self._packed(self.bodies)
        self.rows[:, 3:6] = scaled[order]
        self.encounters.restore(checkpoint)
        self.touching.restore(checkpoint)
        self._derive()
        for recorder in self.recorders:
            if getattr(recorder, "path", None) is not None and recorder.path.resolve() == Path(path).resolve():
                recorder.resume(self)
        return self

    @classmethod
    def from_file(cls, path, **options: Unpack[SimulationOptions]) -> "Simulation":
        """The simulation of a result file, ready to go on; ``options`` replace those of the file.

        What the file cannot hold, functions of a program, is refused by name: go on with `restore` in that program.
        """
        from . import packings, storage  # noqa: F401, packings has the hooks of the package

        with storage.Recording(path) as recording:
            scene = storage.load_scene(recording)
            scene.take_over(storage.last_block(recording))
            scene.count = int(storage.checkpoint(recording)["numbers"][1])
            kept = storage.options_of(recording) | {"about": recording.parameters["about"]}
            before_step = hooks.made(recording.parameters.get("before_step", []), path)
        simulation = cls(scene, **(kept | options), check=False)
        simulation.before_step = before_step
        return simulation.restore(path)

    def plot(self, ax=None, **options: Unpack[ViewOptions]):
        """Draw the bodies and the contact forces; returns the axes."""
        from .plotting import plot_scene

        return plot_scene(self.frame(), ax, **options)
