"""A rigid-body scene in motion: `Simulation`, with two doors, `run` and `step`.

One step, in this order: the functions in `before_step`; driven bodies take their velocity at t_m; half a drift to
(t_m, q_m); forces and free velocity; neighbours, gaps, active contacts; frames, targets and first guess; the solver;
energy ledger; half a drift; recovery; recorders. Bodies are in the `roster`, loads in `loading`, contacts in the
`contact_set`, energies in the `ledger`; what the user reads, changes and asks is in `access`.
"""

import contextlib
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._jit import clock
from ..display import pictured
from ..errors import InputError, check_flags, count_of_steps, explained, is_number
from ..scenes.scene import Scene
from ..state import SolveReport
from . import interrupts, motion, reports
from .access import Access
from .contact_set import Solved
from .hardest import Hardest, check_folder
from .ledger import NO_GAIN
from .options import check_about, check_joints, check_options, check_team, listed
from .ranks import workers
from .solvers import SOLVERS
from .step import Step
from .step_solver import Settings

SORT_FROM, SORT_EVERY = 1000, 1000  # balls from which bodies are sorted in space, and steps from one time to the next
STAGES = ("detection", "frames", "solve", "integrate", "record")


class SceneStep(NamedTuple):
    """What `Simulation.step` returns."""

    time: float  # s, at the end of the step
    contacts: int
    report: SolveReport
    seconds: dict  # wall time by stage


@explained
class Simulation(Access):
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
        "auto" (sweeps of "accelerated", and all contacts together by a second-order method where these would take too
        long), "accelerated" (Nesterov's extrapolation around Gauss-Seidel, on the contacts that need it), "nlgs" (plain
        Gauss-Seidel, the reference), or a function of your own, see `solve`; law and residual are the same.
    threads
        Threads that find, fill, sweep and book contacts, and move bodies; 64 at most. The result is the same to the
        bit. "auto": one for a small scene, as many as there are cores for a large one. More than one pays on an idle
        machine only, more than 8 from some 10^5 contacts on.
    ranks
        A communicator of mpi4py, such as MPI.COMM_WORLD: its processes, all of which run the same program, share the
        bodies and contacts, each with ``threads`` threads, 64 in all at most; the result is the same to the bit. The
        first one records; what is shared is read by all together, or by any of them after `run`. None for one process;
        under `cdyn run`, those of mpiexec.
    penetration
        "moreau" (contacts active where the gap at the midpoint is <= 0) or "anticipate" (nothing sinks in by more than
        about 1 % of the smaller radius, which the tolerance may leave).
    recovery
        Speed (m/s) at most at which existing overlaps above 0.2 % of a radius are opened; none by default. Bodies are
        moved, velocities stay as they are (spins along the own axes); the work against gravity is in the ledger.
    joint_contacts
        "all" corners of the polygon in which two faces of polyhedra meet, or "four" of them at most: faster where faces
        have many corners, and a joint then bears a part of the moments that it could.
    on_failure
        "warn" (once per run, with a count), "raise" or "ignore" where a step is not solved to the tolerance, and where
        a body flies away.
    repair
        Move overlapping bodies apart before the start, by the shortest displacement in the metric of masses.
    recorders
        Objects called with the simulation, such as `HDF5`.
    before_step
        Functions called with the simulation at the begin of each step, such as `packings.Pour`.
    save_problems
        A folder for the contact problems of the hardest steps, in FCLIB's form (`write_problem`): the ten with the most
        sweeps and the ten with the largest residuals, with names that say step and sweeps.
    about
        Anything worth keeping in the result file: a dict of numbers and words.
    check
        Look for overlaps and for too long a step before the start.
    """

    RECOVER_ABOVE, RECOVER_TO = 2e-3, 5e-4  # of the smaller radius: recovery begins and ends there
    _fastest = np.inf  # the largest `motion.travel` of a body in the last step, if that is known

    def __init__(
        self,
        scene: Scene,
        *,
        time_step: float,
        tolerance: float = 1e-3,
        max_iterations: int = 1000,
        solver: str | Callable = "auto",
        threads: int | str = 1,
        ranks=None,
        penetration: str = "moreau",
        recovery: float = 0.0,
        joint_contacts: str = "all",
        on_failure: str = "warn",
        repair: bool = False,
        recorders=(),
        before_step=(),
        save_problems=None,
        about: dict | None = None,
        check: bool = True,
    ):
        if not isinstance(scene, Scene):
            raise InputError(f"Simulation got {scene!r}; give a Scene.")
        check_options(time_step, tolerance, max_iterations, solver, threads, penetration, recovery, on_failure)
        check_joints(joint_contacts, scene.dimension)
        check_flags("Simulation", repair=repair, check=check)
        check_about(about)
        self._team = workers(threads, ranks, scene.count)
        check_team(self._team, scene.cell)
        self._take(scene)
        self.contact_set.team = self._team
        self.joint_contacts = joint_contacts
        if joint_contacts == "four":
            self.contact_set.thin()
            self.derive()
        self.time_step, self.tolerance, self.max_iterations = float(time_step), float(tolerance), int(max_iterations)
        self.penetration, self.recovery, self.on_failure = penetration, float(recovery), on_failure
        self.solver = solver
        self.threads = threads if threads == "auto" else int(threads)
        self.recorders = listed(recorders)
        self.before_step = before_step
        self._awaited = None  # what the file of a restored run says of hooks and recorders
        self.stepping, self._running = False, False
        self.steps, self.failures = 0, 0
        self.seconds, self.last_seconds = dict.fromkeys(STAGES, 0.0), dict.fromkeys(STAGES, 0.0)
        self.about = dict(about or {})
        self.save_problems = check_folder(save_problems, self.scene.materials.laws()[0])
        self._hardest = None if self.save_problems is None else Hardest(self.save_problems)
        if repair:
            self.repair()
        if check:
            reports.check_start(self)
        self.report = SolveReport(0.0, 0, True, 0, -1, 0.0, 0.0, 0.0, "No step yet.")
        scene.close()

    def __repr__(self):
        return (
            f"Simulation in {self.scene.dimension}D at t = {self.time:g} s: {len(self.roster.rows)} bodies, "
            f"{self.contact_set.count} contacts; {self.steps} steps of {self.time_step:g} s"
        )

    _repr_html_ = pictured

    # ---- the step --------------------------------------------------------------------------------------------------

    def step(self) -> SceneStep:
        """Make one step of length `time_step`.

        Each function in the list `before_step` is called first, with the simulation: it may add and remove bodies.
        """
        if self._running or not self._team.several:
            return self._step()
        with self._team.stopping(self):
            return self._step()

    def _step(self) -> SceneStep:
        if not self._running:
            self._meet()
            self._begin_recording(4)
        begin = clock()
        self.stepping = True  # until the state is whole again: a step that was cut short is not recorded
        for function in self._before_step:
            function(self)
        self._meet()
        if self.steps % SORT_EVERY == 0 and len(self.roster.model.balls.radius) >= SORT_FROM:
            self._sort()
        step, rows = self._free_motion()
        h, model = self.time_step, self.roster.model
        moved = clock()
        self.ledger.recovery_work += self.contact_set.detect(model, step, rows)
        detected = clock()
        found = self.contact_set.solve(model, step, rows, self._settings(), booked=self._hardest is None)
        solved = clock()
        if self._hardest is not None:
            self._lead(lambda: self._hardest.consider(self, step, found))
        found = self._arrive(step, rows, found)
        if self.cell_motion is not None:
            self._drift_cell(h / 2)
        self.steps += 1
        self.time = self.steps * h
        if not self.loading.steady:
            self.loading.follow_gravity(self.time)
        if self.recovery > 0:  # bodies are moved apart at most at this speed, and the work against gravity is booked
            bounds = (self.RECOVER_ABOVE, self.RECOVER_TO, self.recovery * h)
            self.ledger.recovery_work += self.contact_set.recover(self.roster.model, step, rows, *bounds)
        self.stepping = False
        reports.conclude(self, found)
        if self._team.several:
            self._agree()
        ended = clock()
        record = self.last_seconds["record"]  # of the step before: this one's is known only at its end
        self.last_seconds = {
            "detection": detected - moved,
            "frames": found.framed,
            "solve": solved - detected - found.framed,
            "integrate": moved - begin + ended - solved,
            "record": record,
        }
        self._lead(self._record)
        self.last_seconds["record"] = clock() - ended if self._recording else 0.0
        for stage, value in self.last_seconds.items():
            self.seconds[stage] += value
        return SceneStep(self.time, self.contact_set.count, self.report, dict(self.last_seconds))

    def _sort(self):
        """Put the bodies, and with them their balls and contacts, in the order of the slabs in which they are swept.

        What touches then stands together in memory. Called by the count of steps alone, so that a resumed run has the
        same bits; only where contacts may be turned round.
        """
        if self.contact_set.sortable:
            self.contact_set.renumber(self.roster.sort(self.contact_set.slices(self.model)))
            self.derive()

    def _settings(self) -> Settings:
        tolerance, most = float(self.tolerance), int(self.max_iterations)
        if callable(self.solver):
            return Settings(tolerance, most, SOLVERS["nlgs"], own=self.solver)
        name, together = ("accelerated", True) if self.solver == "auto" else (self.solver, False)
        return Settings(tolerance, most, SOLVERS[name], together)

    def _free_motion(self) -> tuple[Step, np.ndarray]:
        """Drive, drift to the midpoint, and give the bodies the free velocity u_r that they have without contacts.

        Returns the step and the rows to solve in: those of the bodies, with those of a moving cell at the end.
        """
        h, rows, middle, loading = self.time_step, self.roster.rows, self.time + self.time_step / 2, self.loading
        n, cell, apart = len(rows), self.cell_motion, self.contact_set.apart
        if apart is not None and not loading.separate:
            self.contact_set.know_bodies()
            apart = None
        loading.drive(rows, middle)
        if cell is not None and cell.moves:
            cell.drive(middle)
            self._before[n:] = cell.rows()
        if not loading.steady:
            loading.follow_gravity(middle)
        gravity = np.ascontiguousarray(self.roster.model.gravity, dtype=float)
        before, free = (self._before, self._free) if cell is None else (self._before[:n], self._free[:n])
        if apart is None:
            self._movers.share(
                self._set_out, self._columns, self._roll, rows, before, free, gravity, float(h), loading.alone,
                self._turns_late,
            )  # fmt: skip
        else:
            loads = loading.collect(self.roster.model.bodies, rows, middle)
            apart.set_out(self._columns, gravity, loads, float(h), self._turns_late)
        if cell is not None and cell.moves:
            cell.drift(h / 2)
            self.contact_set.move_cell(cell.space(), recut=False)
            self._free[n:] = cell.relaxed(h)
        if apart is None and not loading.alone:
            loading.relax(self.roster.model.bodies, rows, middle, h)
            self._free[:n] = rows
        step = Step(self.time, h, 0.0, self.penetration == "anticipate", False, self._before, self._free)
        if cell is None or not cell.moves:
            return step, rows
        self._wide[:] = self._free
        return step._replace(driven=~cell.free), self._wide

    @property
    def _turns_late(self) -> bool:
        """Whether nobody looks at orientations at the midpoint: gravity is alone, and all contacts are of balls."""
        return self.loading.alone and not self.contact_set.turned

    def _drift_cell(self, h: float) -> None:
        """Deform the cell for a time h, and cut it anew where it has sheared far."""
        cell = self.cell_motion
        if cell.moves:
            cell.drift(h)
            recut = cell.cut_anew()
            self.contact_set.move_cell(cell.space(), recut)

    @explained
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
        from ..progress import progress_bar

        failures, created, stop = self.failures, self.ledger.created, False
        self.ledger.worst = NO_GAIN
        self.about["until"] = float(until)
        with self._team.stopping(self), interrupts.held() as noted:
            self._meet()
            self._begin_recording(4)
            with contextlib.ExitStack() as last:  # each recorder ends, whatever another one raises
                for recorder in self._recording:
                    last.callback(recorder.end, self)
                last.callback(self._stop_running)
                self._running = True
                with progress_bar(self, count, progress if self._team.leads else False) as advance:
                    for _ in range(count):
                        self.step()
                        advance()
                        if stop := self._team.any(noted):
                            break
                self.contact_set.whole()  # one process may read all now without the others
            self._team.any(noted)  # the file is closed before anybody reads it
        reports.tell_run(self, count, failures, created)
        if stop:
            raise KeyboardInterrupt(reports.stopped(self, self._recording, until))
        return self

    def _stop_running(self) -> None:
        """Not running any more; a state of which other processes that have stopped know a part is not recorded."""
        self._running = False
        self.stepping |= self.contact_set.divided

    def _meet(self) -> None:
        """All processes make a step: one that reads contacts alone is told."""
        if self._team.several:
            self._team.cross()

    def _agree(self) -> None:
        """Refuse to go on where the processes differ, as far as they know the same."""
        if self.contact_set.apart is None:
            self._team.agree(self)
        else:
            self.contact_set.apart.agree(self.time)

    def _lead(self, action) -> None:
        """Let the process that records do something, with the bodies and contacts of all where it asks for them."""
        if self._team.several:
            met = self.contact_set
            answers = {
                "reads contacts": met.whole, "reads bodies": met.know_bodies, "reads energies": self._potential
            }  # fmt: skip
            self._team.led(answers, action)
        else:
            action()

    def _record(self) -> None:
        for recorder in self._recording:
            recorder(self)

    @property
    def _recording(self) -> list:
        """The recorders, on the process that records."""
        return self.recorders if self._team.leads else []

    def _begin_recording(self, level: int):
        """Let the recorders write the state that they start from; those that have begun do nothing.

        ``level`` leads to the line of the user's program.
        """
        if self._awaited is not None:
            from ..files import resume

            awaited, self._awaited = self._awaited, None
            for difference in resume.differences(self, *awaited):
                warnings.warn(difference, stacklevel=level)
            self._team.any(False)  # all have read the file before one of them writes it
        self._lead(lambda: [recorder.begin(self) for recorder in self._recording])

    def _arrive(self, step: Step, rows: np.ndarray, found: Solved) -> Solved:
        """Enter the step into the energy ledger, and drift to its end; returns what was ``found`` of the contacts."""
        (model, own), works, cell = (self.roster.model, self.roster.rows), np.zeros(self.ledger.works.shape), (0.0,) * 4
        found = self.contact_set.book(model, step, rows, works, found)
        n, before, free = len(own), step.before, step.free
        if rows is not own:  # a cell moves
            cell = self.cell_motion.energies(before, free, rows)
            own[:] = rows[:-3]
            self.cell_motion.take(rows[-3:])
            before, free = before[:n], free[:n]
        gravity, apart = np.ascontiguousarray(model.gravity, dtype=float), self.contact_set.apart
        given = gravity, motion.KAPPA[model.dimension], float(step.h)
        if apart is None:
            energies, self._fastest = self._movers.share(
                self._arriving, self._columns, self._roll, own, before, free, *given, self.loading.alone,
                self._turns_late, self.watch.pace, self._parts,
            )  # fmt: skip
        else:
            energies, self._fastest = apart.arrive(self._columns, *given, self._turns_late), np.inf
        self.ledger.enter(
            self._kinetic_of_free, energies, works, cell, step=self.steps + 1, time=(self.steps + 1) * self.time_step
        )
        return found

    def _kinetic_of_free(self) -> float:
        """The kinetic energy of the velocities that bodies would have without contacts, J."""
        if self.contact_set.apart is not None:
            return self.contact_set.apart.kinetic_of_free(self._columns)
        b, free = self.roster.model.bodies, self._free
        return motion.energies(free, free, free, b.kind, b.mass, b.inertia, b.orientation, b.held)[0]
