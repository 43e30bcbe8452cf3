"""The workers of several processes: each has its part of a stage, and what they share goes by MPI.

Contacts are divided among the processes (`division`), and so are bodies then (`apart`); few contacts, and those of a
search that is not divisible, are known everywhere, with all bodies, and each process does all of their work. Kernels
are those that threads run as well; where workers see each other's work (`threads.Verbs`) they call a function of
Python, which sends and receives by mpi4py.
After a stage (`RankTeam.split`), what the stage says; in a solver:

- after the even groups and after the odd ones, the rows of the bodies on the border of two domains;
- with the latter, the change made by the sweep, group by group;
- after the residual was measured, its sums by group and the kinetic size of what contacts do, in whole numbers;
- where contacts that need more work are chosen, the sums of what contacts lose by their size, and which bodies on a
  border are marked.

Sums are those of one process, in the same order: the number of processes changes no bit.
"""

import copy
import ctypes
import warnings

import numpy as np

from ..equations.contract import GROUPS, SHARED
from ..threads import CHOSEN, MARKED, MEASURED, ODD, SUMMED, Team
from . import domains, groups
from .apart import Apart
from .division import Division
from .meeting import RankMeeting, pack_rows, unpack_rows
from .world import ACTS

DONE = 0  # what the process that records says to the others; else what all must do: see `world.ACTS`
MANY = 2000  # contacts of a scene in which a rank that has none is told


class RankTeam(Team):
    """Runs kernels on several processes, each with some threads; has the face of `threads.Team`."""

    several = True

    def __init__(self, world, threads: int, least: int = 0):
        super().__init__(threads, least)
        self.world, self.workers = world, threads * world.ranks
        world.expect(threads)
        self._alike = copy.copy(self)
        self._alike.__class__, self._alike.workers, self._alike.least = Team, threads, 0
        self._job, self._exchange, self._error, self._own, self._room = None, None, None, None, None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self._called)
        self._address = ctypes.cast(self._function, ctypes.c_void_p).value
        self._changes, self._told = np.zeros(2 * GROUPS), False
        self._compiled = set()  # kernels that all processes have
        self._leading = self._following = False  # whether others wait for what this process asks for: see `led`

    @property
    def alike(self) -> Team:
        """The threads of this process, for what all processes do alike."""
        return self._alike

    @property
    def leads(self) -> bool:
        """Whether this process records and tells."""
        return self.world.leads

    @property
    def rank(self) -> int:
        """Of this process."""
        return self.world.rank

    def of(self, size: int, least: int) -> Team:
        """This team for so many contacts; for fewer the threads of each process, which all do the same."""
        return self if size > max(least, self.least) else self.alike.of(size, least)

    def any(self, flag) -> bool:
        """Whether the ``flag`` is true on some process."""
        return self.world.any(flag)

    def agree(self, simulation) -> None:
        """Refuse to go on where the processes differ."""
        self.world.agree(simulation)

    # ---- contacts that each process knows for itself -----------------------------------------------------------------

    def division(self) -> Division:
        """Of the contacts of a scene over the processes."""
        return Division(self.world)

    def apart(self, contacts) -> Apart:
        """Of its bodies; ``contacts``: its `ContactSet`."""
        return Apart(self, contacts)

    def cross(self) -> None:
        """All processes make a step now."""
        self.world.cross("makes a step")

    def ask_all(self, what: str) -> None:
        """All processes do now ``what`` (see `world.ACTS`) needs them all; in `led`, they wait to hear of it."""
        if self._following:
            return
        if self._leading:
            self.world.tell(ACTS.index(what))
        else:
            self.world.cross(what)

    def led(self, answers: dict, action) -> None:
        """Let the process that records do something; where it reads what is shared, the others take part.

        ``answers``: what they call, by what it does (`world.ACTS`).
        """
        if self.leads:
            self._leading = True
            try:
                action()
            finally:
                self._leading = False
            self.world.tell(DONE)
            return
        self._following = True
        try:
            while (asked := self.world.tell(DONE)) != DONE:
                answers[ACTS[asked]]()
        finally:
            self._following = False

    def stopping(self, simulation):
        """A block in which an error of one process stops all."""
        return self.world.stopping(simulation)

    # ---- stages ------------------------------------------------------------------------------------------------------

    def split(self, exchange, function, *arguments):
        """Run a kernel of which each process does its own part: see `Team.split`.

        Such a kernel may be settled for other meetings: for those of processes it is called as any other.
        """
        return self._run_all(exchange, getattr(function, "kernel", function), arguments)

    def _run_all(self, exchange, function, arguments):
        """The result of a kernel on the threads of this process, which talk to those of others by ``exchange``."""
        self._exchange, self._error = exchange, None
        common = (self.world.rank, self.world.ranks, self._address, self._changes)
        meetings = [RankMeeting(self._meetings[0].counters, k, self.threads, *common) for k in range(self.threads)]
        self._compile(function, (*arguments, meetings[0]))
        try:
            result = self._run(function, arguments, meetings)
            if self._error is not None:
                raise self._error
        finally:
            self._exchange = None
        return result

    def _compile(self, function, arguments) -> None:
        """Let the first process compile a kernel before all call it: the others find it in the cache."""
        if function not in self._compiled and hasattr(function, "compile"):  # else kernels are not compiled
            self._compiled.add(function)
            types = tuple(map(function.typeof_pyval, arguments))
            self.world.first(lambda: function.compile(types))

    def _called(self, what: int) -> int:
        """Exchange; an error waits until the kernel is left, which zeros bring about."""
        try:
            if self._error is None:
                self._exchange(what)
        except BaseException as error:
            self._error = error
        if self._error is not None and self._job is not None:
            self._changes[:] = 0.0
            self._job[2].sums[:] = 0.0
            self._job[2].chunks[:] = 0
        return 0

    def _bounds(self, cuts) -> np.ndarray:
        """(ranks + 1,) where the places of each process begin, of n parts that begin at ``cuts`` (n + 1,)."""
        return cuts[[(len(cuts) - 1) * k // self.world.ranks for k in range(self.world.ranks + 1)]]

    def count(self, *numbers) -> list:
        """The whole ``numbers`` that each process gives."""
        world, table = self.world, np.zeros((self.world.ranks, len(numbers)), dtype=np.int64)
        table[world.rank] = numbers
        world.wait([world.gather(table, np.arange(world.ranks + 1))])
        return table.tolist()

    def tell(self, *arrays) -> list:
        """The rows of ``arrays`` of all processes, of any number on each, one process after the other."""
        world, counts, told, requests = self.world, np.array(self.count(*map(len, arrays))), [], []
        for array, lengths in zip(arrays, counts.T, strict=True):
            bounds = np.concatenate([[0], np.cumsum(lengths)])
            box = np.empty((bounds[-1], *array.shape[1:]), dtype=array.dtype)
            box[bounds[world.rank] : bounds[world.rank + 1]] = array
            told.append(box)
            if len(box):
                requests.append(world.gather(box, bounds))
        world.wait(requests)
        return told

    def add_up(self, array) -> None:
        """Put together an ``array`` of whole numbers, or one in which each is zero on all processes but one."""
        self.world.wait([self.world.sum(array)])

    def take(self, own: domains.Domains, names) -> None:
        """Hear of the contacts that this process sweeps, its ``own`` domain.

        ``names``: of each kind, whether its contacts stand in the order of the sweeps, and then (ALL + 1,) how many of
        other processes stand before those of each group; else (m,) the numbers of the contacts here.
        """
        self._own, self._names = own, names

    def as_one(self, worst, known, there) -> None:
        """Replace those ``known`` of the contacts ``worst`` (kinds, n), in groups ``there``, by what all call them.

        That is by their places in the order of one process or, where contacts do not stand in it, by their numbers.
        """
        for row, some, (in_order, names) in zip(worst, known, self._names, strict=False):
            row[some] = (row + names[there])[some] if in_order else names[row[some].astype(np.int64)]

    def pass_on(self, rows, parity: int, *sums) -> None:
        """Send and receive the rows of bodies on a border: see `domains`; ``sums`` are zero on all but one process.

        Those that are swept here in this parity go out, those of the other parity come in.
        """
        own, world = self._own, self.world
        out, into = own.borders[parity], own.borders[1 - parity]
        pack_rows(rows, out.bodies, out.box)
        requests = [world.receive(into.box[begin:end], rank, parity) for rank, begin, end in into.parts]
        requests += [world.send(out.box[begin:end], rank, parity) for rank, begin, end in out.parts]
        world.wait(requests + [world.sum(array) for array in sums])
        unpack_rows(into.box, into.bodies, rows)

    def pass_marks(self, marks, *requests) -> None:
        """Mark those bodies on a border (``marks`` of all) that another process has marked; waits for ``requests``."""
        world, boxes, requests = self.world, [], list(requests)
        for parity, (bodies, parts, _) in enumerate(self._own.borders):  # the other one has them in the other parity
            said, heard = marks[bodies], np.empty(len(bodies), dtype=marks.dtype)
            requests += [world.receive(heard[begin:end], rank, MARKED + 1 - parity) for rank, begin, end in parts]
            requests += [world.send(said[begin:end], rank, MARKED + parity) for rank, begin, end in parts]
            boxes.append((bodies, said, heard))
        world.wait(requests)
        for bodies, said, heard in boxes:
            marks[bodies] = said | heard

    def touched(self) -> int:
        """Free bodies that contacts act on, of all processes."""
        count = np.array([len(self._own.pushed)])
        self.add_up(count)
        return int(count[0])

    def gains(self, rows, free, kinds, room) -> tuple:
        """`gains.gains` of all processes, where each has its own contacts: see `groups`."""
        if self._room is not room:
            self._room, self._nobody = room, np.zeros(len(rows), dtype=np.int32)
            room.groups[:], room.seen[:] = room.own, -1  # those that do not move freely stay as they are
        return groups.gains_of_all(self, self._own, rows, free, kinds, room, self._nobody)

    def slowed(self, group, factor) -> np.ndarray:
        """The bodies of this process whose impulses are multiplied by less than one."""
        return groups.slowed(self._own.own, group, factor)

    def by_rows(self, bodies, values) -> np.ndarray:
        """The ``values`` (n,) of ``bodies`` (n,) of all processes, in the order of their rows, each once."""
        rows, values = self.tell(bodies, values)
        return values[np.unique(rows, return_index=True)[1]]

    # ---- solvers -----------------------------------------------------------------------------------------------------

    def __call__(self, function, kinds, rows, mobility, table, goal, scratch):
        """Result of the solver ``function``, the same on all processes; after `take`."""
        own = self._own
        self._job = rows, kinds, scratch
        mine = scratch._replace(movable=own.own, pushed=own.pushed)
        try:
            result = self._run_all(self._met, function, (rows, mobility, table, goal, mine))
        finally:
            self._job = None
        return result

    def _met(self, what: int) -> None:
        """What the kernel of a solver calls."""
        if what == MEASURED:
            self._measured()
        elif what == SUMMED:
            self.world.wait([self._add_up(self._job[2].losses)])
        elif what == MARKED:
            self.pass_marks(self._job[2].hot)
        elif what == CHOSEN:
            self.pass_marks(self._job[2].near, self._add_up(self._job[2].found))
        else:
            self.pass_on(self._job[0], what, *((self._changes,) if what == ODD else ()))

    def tell_idle(self, cuts) -> None:
        """Tell, once, of ranks without work, by the ``cuts`` of the groups of each kind."""
        counts = sum(np.diff(bounds) for one in cuts for bounds in self._parts(one))
        if not self._told and counts.sum() > MANY and not counts.all():
            self._told = True
            warnings.warn(
                f"{np.count_nonzero(counts == 0)} of {len(counts)} ranks have nothing to sweep: the {counts.sum()} "
                "contacts lie in too few slabs, each as wide as the largest body; start fewer processes, or accept it.",
                stacklevel=2,
            )

    def _measured(self) -> None:
        """The sums of the residual by group, and the kinetic size of what the contacts do."""
        scratch, world = self._job[2], self.world
        begin, end = (domains.first_group(world.rank + k, world.ranks) for k in range(2))
        for parity in range(2):
            scratch.sums[:, parity * GROUPS : parity * GROUPS + begin] = 0.0
            scratch.sums[:, parity * GROUPS + end : (parity + 1) * GROUPS] = 0.0
            groups = slice(parity * GROUPS + begin, parity * GROUPS + end)
            self.as_one(scratch.sums[:, groups, 2], scratch.sums[:, groups, 3] >= 0.0, groups)
        if world.rank < world.ranks - 1:
            scratch.sums[:, SHARED:] = 0.0
        world.wait([world.sum(scratch.sums), self._add_up(scratch.chunks)])

    def _add_up(self, numbers):
        """Begin to add up whole ``numbers`` (GROUPS, n) of the threads of all processes, into those of the first."""
        numbers[0] = numbers[: self.threads].sum(axis=0)
        numbers[1 : self.threads] = 0
        return self.world.sum(numbers[0])

    def _parts(self, cuts) -> list:
        """For each parity where the contacts of each rank begin in the order of the sweeps (ranks + 1,)."""
        return [self._bounds(cuts[p : p + GROUPS + 1]) for p in (0, GROUPS)]
