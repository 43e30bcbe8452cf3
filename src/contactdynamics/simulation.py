"""A rigid-body scene in motion: `Simulation`, with two doors, `run` and `step`.

One step, in this order: the functions in `before_step`; driven bodies take their velocity at t_m; half a drift to
(t_m, q_m); forces and free velocity; neighbours, gaps, active contacts; frames, targets and first guess; Gauss-Seidel;
energy ledger; half a drift; recorders.

The file is long because it holds the whole state: what the user reads, the step, bodies that come and go, questions
(`is_equilibrium`), repairs, frames and files. The work itself is in the kernels of the modules below.
"""

import contextlib
import copy
import math
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import assembly, detection, flat, gauss_seidel, iterations, quaternions, recovery, rigid
from . import contacts as prepare
from .errors import ConvergenceError, ConvergenceWarning, EnergyWarning, InputError, energy_message, is_number
from .materials import COHESION, FRICTION_1, FRICTION_2, ROLLING, SPINNING, TAU, TENSION
from .scene import Scene, join
from .state import FREE, Balls, Bodies, ContactProblem, Contacts, Corners, Energy, Frame, Planes, SolveReport, Springs
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

    def __bool__(self):
        return self.found


class Simulation:
    """The motion of a `Scene` by the midpoint scheme of 2003/2004.

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
        "warn" (once per run, with a count), "raise" or "ignore" where a step is not solved to the tolerance.
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
        if not (is_number(max_iterations) and max_iterations >= 1):
            raise InputError(f"Simulation got max_iterations={max_iterations!r}; give a positive whole number.")
        if solver not in SOLVERS:
            raise InputError(f"solver is {solver!r}; choose one of {', '.join(SOLVERS)}.")
        if threads not in range(1, iterations.GROUPS + 1):
            raise InputError(f"threads is {threads!r}; give a whole number from 1 to {iterations.GROUPS}.")
        if penetration not in ("moreau", "anticipate"):
            raise InputError(f"penetration is {penetration!r}; choose 'moreau' or 'anticipate'.")
        if on_failure not in ("warn", "raise", "ignore"):
            raise InputError(f"on_failure is {on_failure!r}; choose 'warn', 'raise' or 'ignore'.")
        if not (isinstance(recovery, int | float) and recovery >= 0):
            raise InputError(f"recovery is {recovery!r}; give a speed >= 0.")
        self.scene, self.model = scene, scene.freeze()
        self.time_step, self.tolerance, self.max_iterations = float(time_step), float(tolerance), int(max_iterations)
        self.penetration, self.recovery, self.on_failure = penetration, float(recovery), on_failure
        self.solver, self._work = solver, iterations.work_arrays(0, np.zeros((0, 8)))
        self.threads, self._team, self._alone = int(threads), Team(int(threads)), Team(1)
        self.recorders = list(recorders)
        self.before_step = []
        self.stepping = False
        self.time, self.steps = 0.0, 0
        self.failures = 0
        self.seconds, self.last_seconds = dict.fromkeys(STAGES, 0.0), dict.fromkeys(STAGES, 0.0)
        self.about = dict(about or {})
        self._repairing, self._hint = False, 0  # sweeps of the last solution
        self._start_arrays()
        if repair:
            self.repair()
        if check:
            self._check_start()
        self._sums = np.zeros(6)  # force work, inflow, closure, kinetic energy now, recovery work, created
        self._gain = (0.0, 0.0, 0, 0.0)  # energy created in the worst step, its share, the step and its time
        self._sums[3] = self._kinetic()
        self._works = np.zeros((len(self.model.laws), 4))
        self.report = SolveReport(0.0, 0, True, 0, -1, 0.0, 0.0, 0.0, "No step yet.")

    # ---- arrays ----------------------------------------------------------------------------------------------------

    def _start_arrays(self):
        """Own, writable copies of the model's arrays, and everything derived from them."""
        self.bodies = Bodies(*(np.array(array) for array in self.model.bodies))
        self.model = self.model._replace(bodies=self.bodies)  # the scene has its own
        self._taken = len(self.scene.blocks)
        self._ball_number = np.arange(len(self.model.balls.radius))  # in the order in which they came
        self.pairs, self._spare, self._filled = (detection.no_pairs() for _ in range(3))
        self._simple, self._general = prepare.simple_contacts(64), prepare.general_contacts(8)
        self._count, self._touching = (0, 0), Touching()
        self._kappa = 2.5 if self.model.dimension == 3 else 2.0
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
        bodies, laws, model = self.bodies, self.model.laws, self.model
        n = len(bodies.mass)
        self._changed = True  # other bodies than before, or in another order
        self._by_number = np.argsort(bodies.identity)  # rows in the order of the numbers: see `_sort`
        simple = bodies.simple.copy()
        simple[model.planes.body] = True
        for identity, (_, spin) in model.drives.items():
            # A plane that turns has lever arms; only a constant zero spin is surely none.
            still = getattr(spin, "kind", "") == "constant" and not np.any(spin(0.0))
            row = self._row(identity)
            if row is not None and not still and row in model.planes.body:
                simple[row] = False
        self._simple_body = simple
        isotropic = laws[:, FRICTION_1] == laws[:, FRICTION_2]
        self._simple_law = isotropic & (laws[:, [TAU, ROLLING, SPINNING, COHESION, TENSION]] == 0).all(axis=1)
        self._sticky_law = (laws[:, [COHESION, TENSION]] > 0).any(axis=1)
        self._touching.derive(model, plain=self.solver == "nlgs")
        self._outlined = np.diff(self._touching.outline.start) > 0
        self._round = not self._outlined.all()  # there are balls other than those that hold polygons
        touched = simple[model.balls.body[~self._outlined]].all() and simple[model.planes.body].all()
        self._all_simple = not self._round or bool(touched and self._simple_law.all())
        self._before, self._free = np.empty((n, 8)), np.empty((n, 8))
        self._force, self._torque = np.zeros((n, 3)), np.zeros((n, 3))
        self._inverse = np.zeros((0 if self._all_simple and not self._touching.present else n, 3, 3))
        self._places = np.empty((len(model.balls.radius), 3))
        self._neighbours = None  # to be built at the next step
        self._moved = np.empty(len(model.balls.radius), dtype=np.int32)
        self._near = np.empty(max(64, min(len(model.balls.radius), 65536)), dtype=np.int32)
        self._small = float(model.balls.radius.min()) if len(model.balls.radius) else 1.0
        arm = np.sqrt((model.balls.centre**2).sum(axis=1)) + model.balls.radius
        self._reach = 2.0 * float(arm.max(initial=0.0))  # no two bodies that touch are farther apart
        springs = model.springs._replace(
            first=self._rows_of(model.springs.first), second=self._rows_of(model.springs.second)
        )
        held = (springs.first > -2) & (springs.second > -2)  # the springs of removed bodies go with them
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

    def add(self, shape, **options) -> int:
        """Add a body to the running simulation: as `Scene.add`. The other contacts keep their memory."""
        number = self.scene.add(shape, **options)
        self._take_new_blocks()
        return number

    def add_many(self, shapes, **options) -> np.ndarray:
        """Add many balls to the running simulation: as `Scene.add_many`."""
        numbers = self.scene.add_many(shapes, **options)
        self._take_new_blocks()
        return numbers

    def _take_new_blocks(self):
        """Append what the scene got since the last time; new bodies enter the ledger with their energy."""
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
        laws = self.scene.law_table() if self.scene.changed_materials else model[6:9]
        if len(laws[0]) != len(self._works):
            self._works = np.concatenate([self._works, np.zeros((len(laws[0]) - len(self._works), 4))])
        self.model = model._replace(
            balls=join([model.balls, *balls], Balls), planes=join([model.planes, *planes], Planes),
            springs=self.scene.springs(), drives=self.scene.drives, forces=self.scene.forces,
            laws=laws[0], law_index=laws[1], law_axes=laws[2], corners=join([model.corners, *corners], Corners),
        )  # fmt: skip
        more = len(self.model.balls.radius) - len(self._ball_number)
        latest = self._ball_number.max(initial=-1)
        self._ball_number = np.append(self._ball_number, latest + 1 + np.arange(more))
        lists = self._neighbours
        self._derive()
        if lists is not None:
            b, balls = self.bodies, self.model.balls
            detection.place_balls(b.position, b.orientation, balls.centre, balls.body, self._places)
            self._neighbours = detection.extend(lists, self._places, balls.radius)
        self._count_inflow()

    def remove(self, numbers) -> None:
        """Take bodies out of the running simulation, by number; the other contacts keep their memory."""
        gone = [self._row(int(i)) for i in np.atleast_1d(numbers)]
        if None in gone:
            raise InputError(
                f"remove got a number of no present body; sim.identities lists the {len(self.rows)} present."
            )
        stay = np.ones(len(self.rows), dtype=bool)
        stay[gone] = False
        if not (self.bodies.kind[stay] == FREE).any():
            raise InputError("remove would leave no free body; keep one, or end the simulation.")
        model, pairs = self.model, self.pairs
        new_row = np.cumsum(stay) - 1
        ball, plane = stay[model.balls.body], stay[model.planes.body]
        balls = Balls(*(array[ball] for array in model.balls))
        self._ball_number = self._ball_number[ball]
        planes = Planes(*(array[plane] for array in model.planes))
        corners = Corners(*(array[stay[model.corners.body]] for array in model.corners))
        first = np.concatenate([ball[pairs.first[: pairs.balls]], plane[pairs.first[pairs.balls :]]])
        keep = first & ball[pairs.second]
        new_ball, new_plane = np.cumsum(ball) - 1, np.cumsum(plane) - 1
        split = int(keep[: pairs.balls].sum())
        kept = [array[keep] for array in pairs[:-1]]
        kept[0] = np.concatenate([new_ball[kept[0][:split]], new_plane[kept[0][split:]]]).astype(np.int32)
        kept[1] = new_ball[kept[1]].astype(np.int32)
        self.pairs = detection.Pairs(*kept, split)
        self._touching.remove(ball, plane)
        self.model = model._replace(
            balls=balls._replace(body=new_row[balls.body]), planes=planes._replace(body=new_row[planes.body]),
            corners=corners._replace(body=new_row[corners.body]),
        )  # fmt: skip
        self.bodies = Bodies(*(array[stay] for array in self.bodies))
        self.rows = self.rows[stay]
        self._count = (0, 0)
        self._derive()
        self._count_inflow()

    def _sort(self):
        """Put the bodies, and with them their balls and contacts, in the order of the slabs in which they are swept.

        What touches then stands together in memory. Called by the count of steps alone, so that a resumed run has the
        same bits. Only where all contacts are simple: their law does not know which body is the first.
        """
        model, position = self.model, self.bodies.position
        if len(model.balls.radius) < SORT_FROM or not self._all_simple or self._touching.present:
            return
        order = iterations.slices(position, self.pairs.second, model.balls.body, self.pairs.gap, self._reach)
        row = np.argsort(order)  # of the bodies, from now on
        ball = np.lexsort((self._ball_number, row[model.balls.body]))
        balls = Balls(*(array[ball] for array in model.balls))
        self.bodies, self.rows = Bodies(*(array[order] for array in self.bodies)), self.rows[order]
        self.model = model._replace(
            bodies=self.bodies, balls=balls._replace(body=row[balls.body]),
            planes=model.planes._replace(body=row[model.planes.body]),
        )  # fmt: skip
        self._ball_number, self.pairs = self._ball_number[ball], detection.renumber(self.pairs, ball)
        self._count = (0, 0)
        self._derive()

    def by_number(self) -> tuple[Bodies, Balls, Planes, Corners]:
        """Bodies and their shapes in the order of their numbers, as the user, frames and files have them."""
        order, model = self._by_number, self.model
        row, ball = np.argsort(order), np.argsort(self._ball_number)
        b = self.bodies._replace(velocity=self.rows[:, :3], spin=self.rows[:, 3:6] / self.rows[:, 7:])
        balls = Balls(*(array[ball] for array in model.balls))
        tables = (table._replace(body=row[table.body]) for table in (balls, model.planes, model.corners))
        return Bodies(*(array[order] for array in b)), *tables

    def _count_inflow(self):
        """Book the kinetic energy that came or went with bodies."""
        kinetic = self._kinetic()
        self._sums[1] += kinetic - self._sums[3]
        self._sums[3] = kinetic

    # ---- what the user reads ---------------------------------------------------------------------------------------

    def _flat(self, array):
        return array[self._by_number, : self.model.dimension]

    @property
    def identities(self) -> np.ndarray:
        """(N,) the numbers that `Scene.add` gave to the bodies, row by row."""
        return self.bodies.identity[self._by_number]

    @property
    def positions(self) -> np.ndarray:
        """(N, d) centres of mass, m."""
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
        """The active contacts of the last step."""
        return self._contacts()

    @property
    def energy(self) -> Energy:
        """The ledger so far."""
        w = self._works
        return Energy(
            float(self._sums[3]), self._potential(), float(self._sums[0]), float(w[:, 3].sum()), w[:, 0].copy(),
            w[:, 1].copy(), w[:, 2].copy(), float(self._sums[4]), float(self._sums[1]), float(self._sums[2]),
            float(self._sums[5]),
        )  # fmt: skip

    def _contacts(self) -> Contacts:
        """Contacts of both classes, with frames, in the scene's dimension."""
        m, g = self._count
        d, s, q = self.model.dimension, self._by_pair(), self._general
        normals = np.concatenate([s.row[:m, :3], q.frame[:g, 0]])
        frames = assembly.contact_frames(s, m, q, g, d)
        pair = np.concatenate([s.pair[:m], q.pair[:g]])
        impulse = np.concatenate([np.einsum("kij,kj->ki", frames[:m], s.row[:m, 3:6]), q.impulse[:g]])
        moment = np.concatenate([np.zeros((m, 3)), q.moment[:g]])
        gap = self.pairs.gap[pair]
        ball = self.pairs.second[pair]
        reach = self.model.balls.radius[ball] + 0.5 * gap
        point = self._places[ball] - reach[:, None] * normals if len(pair) else np.zeros((0, 3))
        a, b = np.concatenate([s.a[:m], q.a[:g]]), np.concatenate([s.b[:m], q.b[:g]])
        identity = self.bodies.identity
        found = Contacts(
            np.stack([identity[a], identity[b]], axis=1), point[:, :d].copy(), normals[:, :d].copy(), gap,
            impulse[:, :d].copy(), frames[:, :d, :d].copy(), np.concatenate([s.status[:m], q.status[:g]]),
            moment if d == 3 else moment[:, 2:].copy(),
        )  # fmt: skip
        if not self._touching.count:
            return found
        more = self._touching.described(identity)
        return Contacts(*(np.concatenate(pair) for pair in zip(found, more, strict=True)))

    def _by_pair(self) -> prepare.Simple:
        """The simple contacts in the order of their pairs, as the user has them."""
        m = self._count[0]
        order = np.argsort(self._simple.pair[:m])
        return prepare.Simple(*(array[:m][order] for array in self._simple))

    def _contact_count(self) -> int:
        """Active contacts of all classes."""
        return sum(self._count) + self._touching.count

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
        clock = time.perf_counter
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
        rigid.relax(self.rows, b.kind, b.mass, b.inertia, b.orientation, self._force, self._torque,
                    self.model.gravity, h, loaded)  # fmt: skip
        self._free[:] = self.rows

    def run(self, *, until: float, progress: bool | None = None) -> "Simulation":
        """Step until the time ``until``; on a terminal with a progress bar. Returns the simulation itself.

        First and last frame always go to the recorders.
        """
        if not is_number(until):
            raise InputError(f"until is {until!r}; give the time (s) at which to stop.")
        count = round((until - self.time) / self.time_step)
        if count < 0:
            raise InputError(
                f"until={until} lies before the time {self.time:.6g} of the simulation; give a later time."
            )
        from .progress import progress_bar

        failures, created = self.failures, self._sums[5]
        self._gain = (0.0, 0.0, 0, 0.0)
        self.about["until"] = float(until)
        self._begin_recording()
        try:
            with progress_bar(self, count, progress) as advance:
                for _ in range(count):
                    self.step()
                    advance()
        finally:
            for recorder in self.recorders:
                recorder.end(self)
        if self.failures > failures and self.on_failure == "warn":
            warnings.warn(
                f"{self.failures - failures} of {count} steps were not solved to the tolerance {self.tolerance:g}; "
                "raise max_iterations, shorten time_step or accept a larger tolerance.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self._sums[5] > created:
            warnings.warn(energy_message(self._sums[5] - created, *self._gain), EnergyWarning, stacklevel=2)
        return self

    def _begin_recording(self):
        """Let the recorders write the state that they start from; those that have begun do nothing."""
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
        bodies, balls, planes = self.bodies, self.model.balls, self.model.planes
        detection.place_balls(bodies.position, bodies.orientation, balls.centre, balls.body, self._places)
        self._points = bodies.position[planes.body]
        self._normals = np.empty((len(planes.body), 3))
        detection.place_balls(np.zeros_like(self._points), bodies.orientation[planes.body], planes.normal,
                              np.arange(len(planes.body)), self._normals)  # fmt: skip
        if self._touching.present:
            self._touching.place(bodies)
        self._follow_neighbours()
        self._find(self._before, self.rows, slack=slack, keep=False)

    def _follow_neighbours(self):
        """Keep the neighbour lists complete: look up the balls that have left their margin, or build all anew."""
        model, bodies, balls = self.model, self.bodies, self.model.balls
        h = self.time_step
        if self._neighbours is not None:
            found = self._neighbours
            ahead = h if self.penetration == "anticipate" else 0.0
            moved = detection.wanderers(
                self._places, balls.centre, balls.body, self.rows, found.reference, found.margin, ahead, self._moved
            )
            if moved == 0:
                return
            if moved <= 16 + len(balls.radius) // 20 and detection.look_up(
                self._moved[:moved], self._places, balls.radius, balls.body, bodies.kind, balls.centre, self.rows,
                model.dimension - 2, h, self._near, *found,
            ):  # fmt: skip
                return
        self._neighbours = detection.build(model, bodies.kind, self._places, self.rows, h, self._small)

    def _find(self, one, two, *, slack: float, keep: bool) -> int:
        """Find the active pairs, with the memory of the present ones, which they replace; returns how many they are."""
        if not self._round:
            return self._find_touches(one, two, slack, keep)
        model, bodies, balls, planes = self.model, self.bodies, self.model.balls, self.model.planes
        lists, old = self._neighbours, self.pairs
        laws = (model.law_index, self._simple_law, self._sticky_law, self._simple_body, bodies.position, one, two,
                self.time_step, slack, self.penetration == "anticipate", keep, old, self._outlined)  # fmt: skip
        while True:
            out = self._spare
            count = detection.find_ball_contacts(self._places, balls.radius, balls.body, balls.material, lists.start,
                                                 lists.count, lists.other, *laws, out)  # fmt: skip
            total = count
            if len(planes.body):
                total = detection.find_plane_contacts(
                    self._places, balls.radius, balls.body, balls.material, bodies.kind, self._normals, self._points,
                    planes.body, planes.material, *laws, count, out,
                )  # fmt: skip
            if total <= len(out.first):
                break
            self._spare = detection.pair_arrays(int(1.03 * total) + 16)
        detection.recall(old, out, total, not self._all_simple)
        self._spare, self._filled = self._filled, out
        self.pairs = detection.Pairs(*(array[:total] for array in out[:-1]), count)
        return total + (self._find_touches(one, two, slack, keep) if self._touching.present else 0)

    def _find_touches(self, one, two, slack: float, keep: bool) -> int:
        """The same for the contacts with polygons."""
        return self._touching.find(
            self.model, self.bodies.kind, self._places, self._neighbours, (self._normals, self._points),
            self._sticky_law, self.bodies.position, one, two, self.time_step, slack, self.penetration == "anticipate",
            keep,
        )  # fmt: skip

    def _more_contacts(self, begun) -> bool:
        """With anticipation: whether the velocities just found close gaps of pairs left out; takes those in.

        They are then solved again with the status ``begun`` that the pairs had at the start of the step.
        """
        self._follow_neighbours()
        ended = self.pairs.status.copy(), self._touching.touches.status.copy()
        self.pairs.status[:], self._touching.touches.status[:] = begun
        if self._find(self.rows, self.rows, slack=0.0, keep=True) > len(ended[0]) + len(ended[1]):
            return True
        self.pairs.status[:], self._touching.touches.status[:] = ended
        return False

    def _solve(self):
        """Solve the contacts; with anticipation, again as long as the solution closes gaps of pairs left out."""
        framed, sweeps = 0.0, 0
        while True:
            begin = time.perf_counter()
            scale = self._fill()
            m, g = self._count
            framed += time.perf_counter() - begin
            problem = (self.rows, self._inverse, self._simple, m, self._general, g, self._kappa, self.model.dimension,
                       scale, self.tolerance, self.max_iterations, self._work)  # fmt: skip
            if self._touching.count:
                done, residual, worst, bipotential = self._touching.solve(*problem, self._hint)
            else:
                team = self._team if m > SMALL else self._alone
                done, residual, worst, bipotential = team(SOLVERS[self.solver], *problem)
            if 0 <= worst < m:  # its place among the contacts as the user has them
                worst = int(np.count_nonzero(self.pairs.simple[: self._simple.pair[worst]]))
            sweeps += done if self._contact_count() else 0
            self._hint = done
            begun = self.pairs.status.copy(), self._touching.touches.status.copy()
            cone, size = 0.0, 0.0
            if m:
                cone, size = gauss_seidel.store_simple(
                    self.rows, self._simple, m, self._kappa, self.tolerance, self.pairs
                )
            if g:
                other, more = gauss_seidel.store_general(self.rows, self._general, g, self.tolerance, self.pairs)
                cone, size = max(cone, other), size + more
            if self._touching.count:
                t = self._touching
                other, more = flat.store(self.rows, t.contacts, t.count, self.tolerance, t.touches)
                cone, size = max(cone, other), size + more
            self._cone = cone / math.sqrt(size) if size > 0 else 0.0
            if self.penetration != "anticipate" or not self._more_contacts(begun):
                return framed, sweeps, residual, worst, bipotential
            self.rows[:] = self._free

    def _fill(self) -> float:
        """Contacts of the step from the active pairs, with the first guess added to the velocities."""
        pairs, model, b = self.pairs, self.model, self.bodies
        h, anticipate, m, scale = self.time_step, self.penetration == "anticipate", 0, 0.0
        if self._changed:
            self._work, self._changed = iterations.work_arrays(len(self._work.order), self.rows), False
        bodies = model.balls.body, model.planes.body
        if len(pairs.first):
            m = iterations.arrange(b.position, self.rows, pairs, *bodies, self._reach, self._work)
            if m > len(self._work.order):
                self._work = iterations.work_arrays(int(1.03 * m) + 16, self.rows)
                iterations.arrange(b.position, self.rows, pairs, *bodies, self._reach, self._work)
            if m > len(self._simple.pair):
                self._simple = prepare.simple_contacts(int(1.03 * m) + 16)
            scale = prepare.activate_simple(
                pairs, *bodies, model.balls.radius, self._before, self._free, self.rows,
                model.laws, h, anticipate, self._repairing, self._kappa, model.dimension, self._work.few, self._simple,
            )  # fmt: skip
        g = 0
        if len(self._inverse):
            rigid.invert_inertia(b.kind, b.inertia, b.orientation, model.dimension, self._inverse)
        if not self._all_simple:
            while True:
                g, more = prepare.activate_general(
                    pairs, *bodies, model.balls.material, model.planes.material,
                    self._places, model.balls.radius, b.position, b.orientation, self._before, self._free,
                    self._inverse, model.laws, model.law_axes, h, anticipate, self._repairing, model.dimension,
                    self._general,
                )  # fmt: skip
                if g <= len(self._general.pair):
                    break
                self._general = prepare.general_contacts(int(1.3 * g) + 8)
            scale += more
        self._count = (m, g)
        if g:
            gauss_seidel.warm_start_general(self.rows, self._inverse, self._general, g)
        if self._touching.present:
            scale += self._touching.fill(
                model, b.position, self._before, self._free, self.rows, self._inverse, h, anticipate, self._repairing
            )
        return scale

    def _book(self, residual: float):
        """Enter the step into the energy ledger."""
        b, (m, g) = self.bodies, self._count
        works = np.zeros_like(self._works)
        if m:
            gauss_seidel.book_simple(self._before, self.rows, b.kind, self.pairs.law, self._simple, m, works)
        if g:
            gauss_seidel.book_general(self._before, self.rows, b.kind, self.pairs.law, self._general, g, works)
        if self._touching.count:
            t = self._touching
            flat.book(self._before, self.rows, b.kind, t.touches, t.contacts, t.count, works)
        first, last, work = rigid.energies(
            self._before, self._free, self.rows, b.kind, b.mass, b.inertia, b.orientation
        )
        if not math.isfinite(last):
            raise InputError(
                f"A velocity became infinite or nan at t = {self.time + self.time_step:.6g}; check that forces and "
                "motions return finite numbers, and shorten time_step if the motion blows up."
            )
        gain = works[:, :3].sum()
        if gain > 0 and residual <= self.tolerance:  # a step that is not solved has a warning of its own
            self._book_gain(gain, works[:, 3].sum(), first, last, residual)
        self._works += works
        self._sums[0] += work
        self._sums[2] += abs(last - first - work - works.sum())
        self._sums[3] = last

    def _book_gain(self, gain, drive_work, first, last, residual):
        """Enter what the contact laws created in the step: the smaller of its works from u_i and from u_r.

        See `motion._Record.created`; (T_f - T_r) is the work of the contacts counted from the free velocity.
        """
        b = self.bodies
        free = rigid.energies(self._free, self._free, self._free, b.kind, b.mass, b.inertia, b.orientation)[0]
        gain = min(gain, last - free - drive_work)
        scale = max(first, last) + abs(drive_work)
        if gain > (1e-9 + 10 * residual) * scale:
            self._sums[5] += gain
            if gain > self._gain[0]:
                share = gain / max(first, free)
                self._gain = (gain, share, self.steps + 1, (self.steps + 1) * self.time_step)

    def _recover(self):
        """Open overlaps by moving bodies apart, at most at the speed `recovery`, and book the work against gravity."""
        m, g = self._count
        depth = np.empty(m + g)
        head = (self.rows, self._simple, m, self._general, g, self.pairs, self.model.balls.radius)
        if recovery.overlaps(*head, self.time_step, depth) > self.RECOVER_ABOVE:
            self._sums[4] += recovery.recover(
                self.bodies.position, *head, depth, self.RECOVER_TO, self.recovery * self.time_step,
                self.model.gravity, self.bodies.mass,
            )  # fmt: skip
        if self._touching.count:
            self._sums[4] += self._touching.recover(
                self.bodies, self.rows, self.time_step, self.RECOVER_ABOVE, self.RECOVER_TO,
                self.recovery * self.time_step, self.model.gravity,
            )  # fmt: skip

    def _finish_report(self, iterations, residual, worst, bipotential):
        """The `SolveReport` of the step, and what the failure policy asks."""
        contacts = self._contact_count()
        depth, relative = 0.0, 0.0
        if len(self.pairs.gap):
            k = int(np.argmin(self.pairs.gap))
            depth = max(0.0, -float(self.pairs.gap[k]))
            relative = depth / self._pair_size(k)
        if self._touching.count:
            other, share, _ = self._touching.deepest()
            depth, relative = max(depth, other), max(relative, share)
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
        if not converged:
            self.failures += 1
            if self.on_failure == "raise":
                raise ConvergenceError(f"At t = {self.time:.6g}: {message}")

    def _pair_size(self, k: int) -> float:
        """The smaller radius of a pair."""
        radius = self.model.balls.radius
        size = radius[self.pairs.second[k]]
        return float(min(size, radius[self.pairs.first[k]]) if k < self.pairs.balls else size)

    # ---- questions and repairs -------------------------------------------------------------------------------------

    def _check_start(self):
        """Overlaps beyond a bound and steps that are too long."""
        self._before[:] = self.rows
        self._detect()
        if len(self.pairs.gap):
            relative = [-self.pairs.gap[k] / self._pair_size(k) for k in np.flatnonzero(self.pairs.gap < 0)]
            if relative and max(relative) > self.OVERLAP_LIMIT:
                k = int(np.flatnonzero(self.pairs.gap < 0)[int(np.argmax(relative))])
                a, b = self._pair_bodies(k)
                raise InputError(
                    f"Bodies {a} and {b} overlap by {max(relative):.0%} of the smaller radius at the start; move them "
                    "apart, or let Simulation(..., repair=True) do it."
                )
        if self._touching.present:
            _, share, k = self._touching.deepest()
            if share > self.OVERLAP_LIMIT:
                a, b = (int(self.bodies.identity[row]) for row in self._touching.rows_of(k, self.model))
                raise InputError(
                    f"Bodies {a} and {b} overlap by {share:.0%} of the smaller one's inner radius at the start; move "
                    "them apart, or let Simulation(..., repair=True) do it."
                )
        self._drive(self.time + self.time_step / 2)
        speed = np.sqrt((self.rows[self.bodies.size > 0, :3] ** 2).sum(axis=1))  # of all bodies but planes
        if speed.size and self.time_step * speed.max() > 2 * self._small:
            warnings.warn(
                f"A body moves {self.time_step * speed.max():.3g} in one step, more than the smallest diameter "
                f"{2 * self._small:.3g}, and may cross another one; a time_step of {self._small / speed.max():.2g} "
                "would do.",
                stacklevel=3,
            )

    def _pair_bodies(self, k: int) -> tuple[int, int]:
        pairs, model = self.pairs, self.model
        a = model.balls.body[pairs.first[k]] if k < pairs.balls else model.planes.body[pairs.first[k]]
        return int(self.bodies.identity[a]), int(self.bodies.identity[model.balls.body[pairs.second[k]]])

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
        with self._untouched():
            self.tolerance, self.penetration = tolerance, "moreau"
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
            self._detect(slack * self._small)
            self._fill()
            b, (m, g), d = self.bodies, self._count, self.model.dimension
            inverse = np.empty((len(b.mass), 3, 3))
            rigid.invert_inertia(b.kind, b.inertia, b.orientation, d, inverse)
            general, gap = self._general, self.pairs.gap
            if self._touching.count:
                more = self._touching.as_general(self._free, len(gap))
                general = prepare.General(*(np.concatenate([x[:g], y]) for x, y in zip(general, more, strict=True)))
                g, gap = g + len(more.pair), np.concatenate([gap, self._touching.gaps()])
            return assembly.assemble(self._free, inverse, self._by_pair(), m, general, g, gap, d)

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
        names = ("tolerance", "max_iterations", "pairs", "penetration", "time", "_neighbours", "_works", "_count",
                 "_simple", "_general", "report", "_places", "_hint")  # fmt: skip
        kept = {name: getattr(self, name) for name in names}
        arrays = [(array, array.copy()) for array in
                  (self.rows, self._sums, self.bodies.position, self.bodies.orientation)]  # fmt: skip
        self._simple, self._general = prepare.simple_contacts(64), prepare.general_contacts(8)
        self._places = np.empty_like(self._places)
        self._spare = self._filled = detection.no_pairs()  # the kept pairs must stay as they are
        kept_touching = self._touching.kept()
        self._touching.start_trial()
        if self._neighbours is not None:
            self._neighbours = detection.Neighbours(*map(copy.copy, self._neighbours))
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)
            for array, values in arrays:
                array[:] = values
            self._touching.put_back(kept_touching)

    def _solve_from_rest(self, slack: float, limit: float) -> Equilibrium:
        """The step of `is_equilibrium`, which keeps and restores the state around it."""
        b, h = self.bodies, self.time_step
        loaded = self._free_from_rest()
        push = h * np.sqrt((self._force**2).sum(axis=1) / b.mass**2).max() if loaded else 0.0
        fall = max(np.sqrt((self.rows[:, :6] ** 2).sum(axis=1).max()), h * np.linalg.norm(self.model.gravity), push)
        self._detect(slack * self._small)
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
        return Equilibrium(found, share, self._contacts(), report)

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
                left = max(0.0, -float(self.pairs.gap.min()) / self._small) if len(self.pairs.gap) else 0.0
                left = max(left, self._touching.deepest()[1])
                if left <= bound:
                    break
                self._solve()
                rigid.drift(self.bodies.position, self.bodies.orientation, self.rows, 1.0)
        finally:
            self.rows[:], self.time_step, self.penetration, self.tolerance, self.model = kept
            self._repairing = False
            self.pairs = detection.no_pairs()
            self._touching.forget()
            self._neighbours = None
            self._count = (0, 0)
            if kept_report is not None:
                self.report = kept_report
        return left

    # ---- frames and files ------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """The present state as a `Frame`, the same that a result file gives."""
        from .storage import make_frame

        b, balls, planes, corners = self.by_number()
        return make_frame(self.time, self.steps, self.time_step, self.model.dimension, self.scene.gravity, b,
                          balls, planes, self.contacts, corners)  # fmt: skip

    def restore(self, path) -> "Simulation":
        """Take over the last state of a result file, to go on from it with the same bits.

        Materials, drives and forces stay those of this simulation; a recorder on the same file goes on adding to it.
        """
        from . import storage

        with storage.Recording(path) as recording:
            block = storage.last_block(recording)
            pairs, checkpoint = storage.restored_memory(recording)
            scaled = storage.scaled_spins(recording)
            self.steps, self.time = int(recording.file["frames/step"][-1]), float(recording.times[-1])
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
        self._sums[: len(checkpoint["sums"])], self._works = checkpoint["sums"], checkpoint["works"]
        self.seconds = dict(zip(STAGES, checkpoint["seconds"].tolist(), strict=True))
        self.rows = self._packed(self.bodies)
        self.rows[:, 3:6] = scaled[order]
        self.pairs, self._count = pairs, (0, 0)
        self._touching.restore(checkpoint)
        self._derive()
        for recorder in self.recorders:
            if getattr(recorder, "path", None) is not None and recorder.path.resolve() == Path(path).resolve():
                recorder.resume(self)
        return self

    @classmethod
    def from_file(cls, path, **options) -> "Simulation":
        """The simulation of a result file, ready to go on; ``options`` replace those of the file."""
        from . import storage

        with storage.Recording(path) as recording:
            scene = storage.load_scene(recording)
            scene.blocks = [storage.last_block(recording)]
            scene.count = int(recording.file["checkpoint/numbers"][1])
            kept = recording.parameters["options"] | {"about": recording.parameters["about"]}
            for material, count in enumerate(
                np.bincount(scene.blocks[0].balls.material, minlength=len(scene.materials.names))
            ):
                scene._bodies_of[material] = (min(int(count), 2), bool(count))
            for material in scene.blocks[0].planes.material:
                number, free = scene._bodies_of[int(material)]
                scene._bodies_of[int(material)] = (min(number + 1, 2), free)
        simulation = cls(scene, **(kept | options), check=False)
        return simulation.restore(path)

    def plot(self, ax=None, **options):
        """Draw the bodies and the contact forces; returns the axes."""
        from .plotting import plot_scene

        return plot_scene(self.frame(), ax, **options)
