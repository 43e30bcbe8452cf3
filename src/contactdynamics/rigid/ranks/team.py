"""The workers of several processes: each sweeps its own groups of slabs, and what they share goes by MPI.

All processes know the whole scene and do the same with it; the solution of the contacts, where the time goes, is
shared among them. The solver is the kernel that threads run as well; where workers see each other's work (`threads.
Verbs`) it calls a function of Python, which sends and receives by mpi4py:

- after the even groups and after the odd ones, the rows of the bodies on the border of two domains;
- with the latter, the change made by the sweep, group by group;
- after the residual was measured, its sums by group and the kinetic size of each body's push;
- before contacts that need more work are chosen, what each contact loses;
- at the end, all velocities and impulses.

Sums are those of one process, in the same order: the number of processes changes no bit.
"""

import ctypes
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..._jit import kernel
from ...errors import InputError
from ..equations import diagonal, full, planar, spatial
from ..equations.contract import GROUPS
from ..threads import VERBS, Team, Verbs, meet
from . import domains

EVEN, ODD, MEASURED, CHOICE = range(4)  # what the function of Python is called for
# What sweeps change of a contact: arrays and their columns.
UNKNOWNS = {
    diagonal.DiagonalContacts: (("row", slice(diagonal.PX, diagonal.PZ + 1)),),
    full.FullContacts: (("impulse", slice(0, 3)), ("moment", slice(0, 3))),
    planar.PlanarContacts: (("row", slice(planar.PN, planar.PT + 1)), ("law", slice(planar.MOMENT, planar.MOMENT + 1))),
    spatial.SpatialContacts: (
        ("row", slice(spatial.P, spatial.P + 3)), ("law", slice(spatial.MOMENT, spatial.MOMENT + 3)),
    ),
}  # fmt: skip


class RankMeeting(NamedTuple):
    """Who works on a kernel: as `threads.Meeting`, and which process it is."""

    counters: np.ndarray  # (16,)
    thread: int
    threads: int
    rank: int
    ranks: int
    call: int  # address of the function of Python
    changes: np.ndarray  # (2 GROUPS,) on their way
    local: np.ndarray  # (N,) bodies that contacts of this process act on


@intrinsic
def _call(typing, address, code):
    """Call the C function int64 -> int64 at this address."""

    def build(context, builder, signature, args):
        whole = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(whole, [whole]).as_pointer())
        return builder.call(function, [args[1]])

    return types.int64(types.int64, types.int64), build


@kernel
def _own_groups(meeting, count):
    """Neighbouring groups for a process, and in it for a thread."""
    worker, workers = meeting.rank * meeting.threads + meeting.thread, meeting.ranks * meeting.threads
    return count * worker // workers, count * (worker + 1) // workers


@kernel
def _after_groups(meeting, rows, parity, changes):
    """Send and receive what is on the border; after the odd groups also the changes."""
    meet(meeting, rows)
    if meeting.thread == 0:
        sent, half = meeting.changes, meeting.changes.size // 2
        if parity == ODD:
            first, after = half * meeting.rank // meeting.ranks, half * (meeting.rank + 1) // meeting.ranks
            for group in range(sent.size):
                sent[group] = changes[group] if first <= group % half < after else 0.0
        _call(meeting.call, parity)
        if parity == ODD:
            for group in range(sent.size):
                changes[group] = sent[group]
    meet(meeting, rows)


@kernel
def _after_measure(meeting, rows):
    """Put the sums together."""
    meet(meeting, rows)
    if meeting.thread == 0:
        _call(meeting.call, MEASURED)
    meet(meeting, rows)


@kernel
def _before_choice(meeting):
    """Put together what the contacts lose; called by the first thread alone."""
    _call(meeting.call, CHOICE)


@kernel
def _after_choice(meeting, bodies, count):
    """Keep the bodies that contacts of this process act on."""
    kept = 0
    for k in range(count):
        bodies[kept] = bodies[k]
        kept += meeting.local[bodies[k]]
    return kept


VERBS[RankMeeting] = Verbs(_own_groups, _after_groups, _after_measure, _before_choice, _after_choice)


@kernel
def push_terms(rows, free, bodies, out):
    """m |v - v_free|^2 of the ``bodies`` (k,), as `solvers.push_size` has it."""
    for k in range(bodies.size):
        i = bodies[k]
        x, y, z = rows[i, 0] - free[i, 0], rows[i, 1] - free[i, 1], rows[i, 2] - free[i, 2]
        out[k] = (x * x + y * y + z * z) / rows[i, 6]


@kernel
def sum_terms(terms, place, movable, out):
    """The sums of `solvers.push_size` from the ``terms`` of the bodies, each in its ``place``."""
    for group in range(out.size):
        out[group] = 0.0
        for at in range(group * movable.size // out.size, (group + 1) * movable.size // out.size):
            out[group] += terms[place[movable[at]]]


class RankTeam(Team):
    """Runs a solver on several processes, each with some threads; has the face of `threads.Team`."""

    def __init__(self, world, threads: int):
        super().__init__(threads)
        self.world, self.workers = world, threads * world.ranks
        self._job, self._error = None, None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self._called)
        self._address = ctypes.cast(self._function, ctypes.c_void_p).value
        self._changes = np.zeros(2 * GROUPS)

    @property
    def leads(self) -> bool:
        """Whether this process records and tells."""
        return self.world.leads

    def any(self, flag) -> bool:
        """Whether the ``flag`` is true on some process."""
        return self.world.any(flag)

    def agree(self, simulation) -> None:
        """Refuse to go on where the processes differ."""
        self.world.agree(simulation)

    def stopping(self, simulation):
        """A block in which an error of one process stops all."""
        return self.world.stopping(simulation)

    def __call__(self, function, rows, mobility, kinds, goal, scratch):
        """Result of the solver ``function``, the same on all processes."""
        for kind in kinds:
            if type(kind.contacts) not in UNKNOWNS:
                raise InputError(f"ranks: {type(kind.contacts).__name__} are solved by one process; leave ranks out.")
        own = domains.divide(rows, kinds, self.world.rank, self.world.ranks)
        terms = np.zeros(len(own.owned) + 1)
        self._job, self._error = (rows, kinds, goal.free, scratch, own, terms), None
        common = (self.world.rank, self.world.ranks, self._address, self._changes, own.local)
        meetings = [RankMeeting(self._meetings[0].counters, k, self.threads, *common) for k in range(self.threads)]
        mine = scratch._replace(movable=own.own, pushed=own.own[:0])
        arguments = rows, mobility, kinds, goal, mine
        others = [self._pool.submit(function, *arguments, meeting) for meeting in meetings[1:]]
        result = function(*arguments, meetings[0])
        for other in others:
            other.result()
        if self._error is not None:
            raise self._error
        self._gather(rows, kinds, own)
        self._job = None
        return result

    # ---- what the kernel calls ---------------------------------------------------------------------------------------

    def _called(self, what: int) -> int:
        """Exchange; an error waits until the kernel is left, which zeros bring about."""
        try:
            if self._error is None:
                if what == MEASURED:
                    self._measured()
                elif what == CHOICE:
                    self._losses()
                else:
                    self._border(what)
        except BaseException as error:
            self._error = error
        if self._error is not None:
            self._changes[:] = 0.0
            self._job[3].sums[:] = 0.0
            self._job[3].pushes[:] = 0.0
        return 0

    def _border(self, parity: int) -> None:
        """The rows of bodies that are swept here in this parity go out, those of the other parity come in."""
        rows, own, world = self._job[0], self._job[4], self.world
        out, into = own.borders[parity], own.borders[1 - parity]
        np.take(rows, out.bodies, axis=0, out=out.box)
        requests = [world.receive(into.box[begin:end], rank, parity) for rank, begin, end in into.parts]
        requests += [world.send(out.box[begin:end], rank, parity) for rank, begin, end in out.parts]
        if parity == ODD:
            requests.append(world.sum(self._changes))
        world.wait(requests)
        rows[into.bodies] = into.box

    def _measured(self) -> None:
        """The sums of the residual by group, and the kinetic size of what the contacts do."""
        rows, _, free, scratch, own, terms = self._job
        world = self.world
        begin, end = (domains.first_group(world.rank + k, world.ranks) for k in range(2))
        for parity in range(2):
            scratch.sums[:, parity * GROUPS : parity * GROUPS + begin] = 0.0
            scratch.sums[:, parity * GROUPS + end : (parity + 1) * GROUPS] = 0.0
        first = int(own.counts[: world.rank].sum())
        after = first + int(own.counts[world.rank])
        push_terms(rows, free, own.owned[first:after], terms[first:after])
        world.wait([world.sum(scratch.sums), world.gather(terms[:-1], own.counts)])
        sum_terms(terms, own.place, scratch.pushed, scratch.pushes)

    def _parts(self, plan) -> list:
        """For each parity the begin and the numbers of contacts (ranks,) of all ranks in the order of the sweeps."""
        firsts = np.array([domains.first_group(k, self.world.ranks) for k in range(self.world.ranks + 1)])
        return [(int(plan.cuts[p + firsts[0]]), np.diff(plan.cuts[p + firsts])) for p in (0, GROUPS)]

    def _collect(self, plan, arrays) -> None:
        """Put together columns (m, c) of contacts of which each rank has its own ones."""
        world, width, pending = self.world, sum(array.shape[1] for array in arrays), []
        for begin, counts in self._parts(plan):
            box = np.empty((int(counts.sum()), width))
            some = plan.order[begin : begin + len(box)]
            first = int(counts[: world.rank].sum())
            mine = slice(first, first + int(counts[world.rank]))
            np.concatenate([array[some[mine]] for array in arrays], axis=1, out=box[mine])
            pending.append((some, box, world.gather(box, counts * width)))
        world.wait([request for _, _, request in pending])
        for some, box, _ in pending:
            column = 0
            for array in arrays:
                array[some] = box[:, column : column + array.shape[1]]
                column += array.shape[1]

    def _losses(self) -> None:
        """What every contact loses."""
        for kind in self._job[1]:
            self._collect(kind.plan, [kind.plan.shares[:, None]])

    def _gather(self, rows, kinds, own: domains.Domains) -> None:
        """At the end: all velocities and all impulses."""
        world = self.world
        first = int(own.counts[: world.rank].sum())
        mine = slice(first, first + int(own.counts[world.rank]))
        box = np.empty((len(own.owned), 8))
        box[mine] = rows[own.owned[mine]]
        request = world.gather(box, own.counts * 8)
        for kind in kinds:
            arrays = [getattr(kind.contacts, name)[:, columns] for name, columns in UNKNOWNS[type(kind.contacts)]]
            self._collect(kind.plan, arrays)
        world.wait([request])
        rows[own.owned] = box
