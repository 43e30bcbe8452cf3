"""The processes of a run and how they hear of each other: waiting, agreeing, stopping together.

A process that raises tells all others, which look for such notices while they wait: all of them stop with a sentence
that says which rank it was and why, and the one that records closes its file. One that is killed ends the others by its
launcher, `mpiexec`; the result file is whole at any moment.
"""

import atexit
import contextlib
import math
import os
import time
import warnings
import zlib

import numpy as np

from ...errors import InputError, RankError
from ..threads import cores

GRACE = 0.5  # s in which a message may still come from a process that has stopped: it may have been the last one
SPINS = 80  # looks at a message before the process sleeps, 25 us; to yield takes the time slices of all others
PATIENCE = 0.02  # s before it sleeps, where each worker has a core: one that wakes up late lets the others wait in turn
NAP, LONGEST = 2e-5, 2e-3  # s
LOOK_EVERY = 64  # looks, from one for notices to the next
SAMPLE, FULL_EVERY = 64, 100  # rows compared after each step; steps from one comparison of all rows to the next
ACTS = ("makes a step", "reads contacts", "reads bodies", "reads energies")  # what all processes must do together
LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")  # what launchers say to a process
NEEDS = "needs mpi4py and an MPI; install them by `pip install contactdynamics[mpi]`"


def launched() -> int:
    """How many processes a launcher such as mpiexec has started, by its word; 1 without one."""
    said = [os.environ.get(name, "") for name in LAUNCHED]
    return max([1, *(int(word) for word in said if word.isdigit())])


def world():
    """The communicator of all processes that mpiexec has started; None for one process without it."""
    count = launched()
    if count == 1:
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise InputError(f"A run on {count} processes {NEEDS} ({error}), or leave mpiexec out.") from None
    if MPI.COMM_WORLD.Get_size() != count:
        raise InputError(
            f"mpiexec has started {count} processes, but the MPI of mpi4py ({_library(MPI)}) finds "
            f"{MPI.COMM_WORLD.Get_size()}; take the mpiexec of that MPI, or build mpi4py with this one."
        )
    return MPI.COMM_WORLD


def of_launcher() -> "World | None":
    """The processes that mpiexec has started; None for one process."""
    comm = world()
    return None if comm is None or comm.Get_size() == 1 else known(comm)


_KNOWN = {}  # by the handle of a communicator: each `World` takes two of a limited number of them


def known(comm) -> "World":
    """The `World` of a communicator of mpi4py."""
    if not all(callable(getattr(comm, name, None)) for name in ("Get_rank", "Get_size", "Dup", "Iallgatherv", "py2f")):
        raise InputError(f"Simulation got ranks={comm!r}; give a communicator of mpi4py, such as MPI.COMM_WORLD.")
    if comm.py2f() not in _KNOWN:
        _KNOWN[comm.py2f()] = World(comm)
    return _KNOWN[comm.py2f()]


def _library(MPI) -> str:
    return " ".join(MPI.Get_library_version().split("\n")[0].split()[:4])


class World:
    """The processes of a communicator of mpi4py that run the same program on the same scene."""

    def __init__(self, comm):
        from mpi4py import MPI

        self.MPI, self.comm, self.notices = MPI, comm.Dup(), comm.Dup()
        self.rank, self.ranks = comm.Get_rank(), comm.Get_size()
        self.messages, self.bytes, self.waited = 0, 0, 0.0  # sent by this process; s
        self._widths = {}  # types of MPI, by their bytes
        self._cores, self._patience = self._share_of_cores(), 0.0
        self._told, self._errors = [], 0  # notices on their way; errors so far, of this process or heard of
        atexit.register(self._leave)  # before MPI does, which was here first

    @property
    def leads(self) -> bool:
        """Whether this process records and tells."""
        return self.rank == 0

    # ---- messages ----------------------------------------------------------------------------------------------------

    def _share_of_cores(self) -> float:
        """The cores of this machine that its processes may use, for each of them."""
        node = self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)
        given = node.allgather(cores())
        node.Free()
        return len(set().union(*given)) / len(given)

    def expect(self, threads: int) -> None:
        """Hear how many ``threads`` each process has: where they have more than the cores, who waits sleeps soon."""
        self._patience = PATIENCE if threads <= self._cores else 0.0

    def wait(self, requests) -> None:
        """Until all ``requests`` are done; raises where another process has stopped."""
        test, looks, begin, heard = self.MPI.Request.Testall, 0, time.perf_counter(), None
        while not test(requests):
            looks += 1
            if looks % LOOK_EVERY == 0:
                heard = heard or self._heard()
                if heard and time.perf_counter() > heard[0]:
                    self._errors += 1
                    raise RankError(heard[1])
            if looks > SPINS and (waited := time.perf_counter() - begin) > self._patience:
                time.sleep(min(max(NAP, 0.1 * waited), LONGEST))  # who waits for long leaves the core to others
        self.waited += time.perf_counter() - begin

    def send(self, array, rank: int, tag: int):
        """Begin to send a contiguous ``array``."""
        self.messages += 1
        self.bytes += array.nbytes
        return self.comm.Isend(array, rank, tag)

    def receive(self, array, rank: int, tag: int):
        """Begin to receive into a contiguous ``array``."""
        return self.comm.Irecv(array, rank, tag)

    def sum(self, array):
        """Begin to add up an ``array`` in which each number is zero on all processes but one: exact in any order."""
        self.messages += 1
        self.bytes += array.nbytes
        return self.comm.Iallreduce(self.MPI.IN_PLACE, array, self.MPI.SUM)

    def largest(self, array):
        """Begin to find the largest of each number of an ``array``."""
        self.messages += 1
        self.bytes += array.nbytes
        return self.comm.Iallreduce(self.MPI.IN_PLACE, array, self.MPI.MAX)

    def gather(self, array, bounds):
        """Begin to put together the rows of a contiguous ``array``: rank k has those from bounds[k] on."""
        width, counts = array.strides[0], np.diff(bounds)
        if width not in self._widths:  # of a row: numbers of rows do not overflow where those of bytes would
            self._widths[width] = self.MPI.BYTE.Create_contiguous(width).Commit()
        self.messages += self.ranks - 1
        self.bytes += int(counts[self.rank]) * width * (self.ranks - 1)
        return self.comm.Iallgatherv(self.MPI.IN_PLACE, [array, counts, bounds[:-1], self._widths[width]])

    # ---- stopping ----------------------------------------------------------------------------------------------------

    def _heard(self) -> tuple[float, str] | None:
        """Until when to wait, and the sentence, where another process has stopped for an error not known here.

        All processes run the same program: an error that they all have is one that each knows.
        """
        while self.notices.Iprobe():
            number, sentence = self.notices.recv()
            if number > self._errors:
                return time.perf_counter() + GRACE, sentence
        return None

    def stop(self, error: BaseException, when: str = "") -> None:
        """Say to all others that this process stops, and why; once for each error."""
        if isinstance(error, RankError) or getattr(error, "told_to_ranks", False):
            return
        with contextlib.suppress(AttributeError):
            error.told_to_ranks = True
        self._errors += 1
        said = str(error) or type(error).__name__
        if not isinstance(error, InputError):
            said = f"{type(error).__name__}: {said}"
        self._tell((self._errors, f"Rank {self.rank} of {self.ranks} stopped{when}: {said}"))

    def _leave(self) -> None:
        """Say to all others that this process ends: one that reads contacts alone would wait for ever."""
        sentence = (
            f"Rank {self.rank} of {self.ranks} has ended its program while others wait for it; all ranks must make the "
            "same steps, and read bodies and contacts together."
        )
        if not self.MPI.Is_finalized():
            self._tell((math.inf, sentence))

    def _tell(self, notice) -> None:
        self._told += [self.notices.isend(notice, rank) for rank in range(self.ranks) if rank != self.rank]

    def first(self, action) -> None:
        """Let the process that leads do something before the others go on; its error stops all."""
        try:
            if self.leads:
                action()
        except BaseException as error:
            self.stop(error)
            raise
        self.any(False)

    @contextlib.contextmanager
    def stopping(self, simulation):
        """Within the block an error of this process stops all; processes that do not lead give no warnings."""
        with contextlib.ExitStack() as quiet:
            if not self.leads:
                quiet.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            try:
                yield
            except BaseException as error:
                self.stop(error, f" at t = {simulation.time:.6g}")
                raise

    # ---- agreeing ----------------------------------------------------------------------------------------------------

    def any(self, flag) -> bool:
        """Whether the ``flag`` is true on some process; all wait for each other."""
        box = np.array([float(bool(flag))])
        self.wait([self.comm.Iallreduce(self.MPI.IN_PLACE, box, self.MPI.MAX)])
        return bool(box[0])

    def tell(self, what: int) -> int:
        """What the process that leads says to all."""
        box = np.array([what], dtype=np.int64)
        self.wait([self.comm.Ibcast(box)])
        return int(box[0])

    def cross(self, what: str) -> None:
        """Refuse to go on where other processes do something else than ``what`` this one does."""
        box = np.zeros(self.ranks, dtype=np.int64)
        box[self.rank] = ACTS.index(what)
        self.wait([self.gather(box, np.arange(self.ranks + 1))])
        if (box != box[0]).any():
            said = [f"rank {k} {ACTS[box[k]]}" for k in (int(np.argmin(box)), int(np.argmax(box)))]
            shared = ACTS[box.max()].removeprefix("reads ")
            raise InputError(
                f"{' while '.join(said)}: the processes share the {shared}, so that all of them must read {shared}, or "
                "none; ask outside of `if rank == 0`, and print what came of it inside."
            )

    def agree(self, simulation) -> None:
        """Refuse to go on where the processes have different states: some after each step, all of it now and then."""
        rows, place = simulation.roster.rows, simulation.roster.model.bodies.position
        every = 1 if simulation.steps % FULL_EVERY == 0 else 1 + len(rows) // SAMPLE
        self.compare(rows[::every], place[::every], simulation.time)

    def compare(self, rows, place, time: float) -> None:
        """Refuse to go on where the processes have different ``rows`` or places of bodies."""
        seen = zlib.crc32(np.ascontiguousarray(place), zlib.crc32(np.ascontiguousarray(rows)))
        box = np.zeros(self.ranks)
        box[self.rank] = float(seen)
        self.wait([self.gather(box, np.arange(self.ranks + 1))])
        other = np.flatnonzero(box != box[0])
        if len(other):
            raise InputError(
                f"Rank {other[0]} has another state than rank 0 at t = {time:.6g}; all ranks must run the "
                "same program on processors of the same kind: give functions that draw random numbers a fixed seed."
            )
