"""When to write: recorders are called after each step, and at the begin and the end of a run."""

import time

from ..errors import InputError, RecordingError, as_path, explained, is_number
from ..scenes import hooks
from . import holding, writer


@explained
class HDF5:
    """Record a run into one HDF5 file.

    ``every``: a time (float, s of simulated time) or a number of steps (int) between frames; the first and the last
    frame are always in. The file is brought up to date about once a second (less often when it is large, so that
    writing takes a twentieth of the time at most) and at the end of a run; it can be opened, and resumed from, at any
    moment. Who drives with ``sim.step()`` calls ``end(sim)`` after the last step. One process writes it at a time: a
    second one is refused.

    A file that is there already is not touched, unless with ``overwrite=True``, or where the simulation has taken over
    its last state (`Simulation.restore`) and adds to it.
    """

    PATIENCE = 20  # times the duration of a write, between two writes

    def __init__(self, path, every: float | int = 1, *, overwrite: bool = False):
        self.path = as_path("HDF5", path)
        if isinstance(every, bool) or not (is_number(every) and every > 0):
            raise InputError(f"HDF5 got every={every!r}; give a time (float) or a number of steps (int) > 0.")
        self.every, self.overwrite = every, overwrite
        self._frames, self._log = [], []
        self._checkpoint = None
        self._fresh = True
        self._next_write, self._stride = 0.0, None

    def begin(self, simulation) -> None:
        """Write the first frame, once; going on after an earlier run adds to its file."""
        if self._stride is not None:
            return
        if not self.path.parent.is_dir():
            raise InputError(f"There is no folder {self.path.parent} for {self.path.name}; create it first.")
        if self.path.is_dir():
            raise InputError(f"HDF5 got {self.path}, which is a folder; give the name of a file, such as run.h5.")
        if self._fresh and self.path.exists() and not self.overwrite:
            raise InputError(
                f"There is a file {self.path} already; give HDF5 another name, overwrite=True to replace it, or go on "
                f"from it with simulation.restore({str(self.path)!r})."
            )
        holding.hold(self.path)
        self._stride = self.every if isinstance(self.every, int) else max(1, round(self.every / simulation.time_step))
        simulation.about["every"] = self._stride
        if self._fresh:
            self._take(simulation)
            self._commit(simulation)

    def __call__(self, simulation) -> None:
        e, r, seconds = simulation.energy, simulation.report, simulation.last_seconds
        self._log.append((
            simulation.time, r.contacts, r.iterations, r.residual, r.penetration, r.relative_penetration, e.kinetic,
            e.potential, e.force_work, e.drive_work, e.normal_work.sum(), e.tangential_work.sum(),
            e.rolling_work.sum(), e.recovery_work, e.closure, *seconds.values(),
        ))  # fmt: skip
        if simulation.steps % self._stride == 0:
            self._take(simulation)
            if time.monotonic() >= self._next_write:
                self._commit(simulation)

    def end(self, simulation) -> None:
        """Write what is left, with the last frame (none of a step that was cut short)."""
        try:
            if self._taken_step != simulation.steps and not simulation.stepping:
                self._take(simulation)
            if self._frames:
                self._commit(simulation)
        finally:
            holding.release(self.path)

    def _take(self, simulation) -> None:
        self._frames.append(writer.frame_arrays(simulation))
        self._checkpoint, self._hooks = writer.checkpoint_arrays(simulation), hooks.written(simulation.before_step)
        self._taken_step, self._log_rows = simulation.steps, len(self._log)

    def _commit(self, simulation) -> None:
        """Write what was taken; where that fails, all of it is kept for the next time."""
        begin = time.monotonic()
        holding.hold(self.path)
        frames, log = self._frames, self._log[: self._log_rows]
        try:
            writer.write(self.path, simulation, frames, log, self._checkpoint, self._hooks, fresh=self._fresh)
        except OSError as error:
            raise self._failed(error, simulation) from error
        self._fresh = False
        self._written = frames[-1]["time"]
        self._frames, self._log, self._log_rows = [], self._log[self._log_rows :], 0
        now = time.monotonic()
        self._next_write = now + max(1.0, self.PATIENCE * (now - begin))

    def _failed(self, error: OSError, simulation) -> RecordingError:
        """The sentence on a file that cannot be written."""
        head = f"{self.path} cannot be written at t = {simulation.time:.6g} ({error.strerror or error})"
        if self._fresh:
            return RecordingError(f"{head}; make room there, or give HDF5 a file in another folder.")
        return RecordingError(
            f"{head}; it holds the run to t = {self._written:.6g}: make room there, then "
            f"{writer.way_on(self.path, simulation)}."
        )

    def way_on(self, simulation) -> str:
        """Half a sentence: what the file holds, and how its run goes on."""
        return f"{self.path} holds the run so far: {writer.way_on(self.path, simulation)}"

    def resume(self, simulation) -> None:
        """Go on adding to the file, whose last frame is the present state."""
        self._fresh = False
        self._taken_step, self._written = simulation.steps, simulation.time
