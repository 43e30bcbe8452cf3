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
import warnings

import numpy as np

from ...errors import InputError
from ..equations import diagonal, full, planar, spatial, spatial_rows
from ..equations.contract import GROUPS, SHARED
from ..threads import Team
from . import domains
from .meeting import CHOICE, MEASURED, ODD, RankMeeting, push_terms, sum_terms

MANY = 2000  # contacts of a scene in which a rank that has none is told
# What sweeps change of a contact: arrays and their columns.
STATUS = ("status", None)
UNKNOWNS = {
    diagonal.DiagonalContacts: (("row", slice(diagonal.PX, diagonal.PZ + 1)),),
    full.FullContacts: (("impulse", slice(0, 3)), ("moment", slice(0, 3)), STATUS),
    planar.PlanarContacts: (
        ("row", slice(planar.PN, planar.PT + 1)), ("law", slice(planar.MOMENT, planar.MOMENT + 1)), STATUS,
    ),
    spatial.SpatialContacts: (
        ("row", slice(spatial_rows.P, spatial_rows.P + 3)),
        ("law", slice(spatial_rows.MOMENT, spatial_rows.MOMENT + 3)), STATUS,
    ),
}  # fmt: skip


class RankTeam(Team):
    """Runs a solver on several processes, each with some threads; has the face of `threads.Team`."""

    def __init__(self, world, threads: int, least: int = 0):
        super().__init__(threads, least)
        self.world, self.workers = world, threads * world.ranks
        self._job, self._error = None, None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self._called)
        self._address = ctypes.cast(self._function, ctypes.c_void_p).value
        self._changes, self._told = np.zeros(2 * GROUPS), False

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

    def __call__(self, function, kinds, rows, mobility, table, goal, scratch):
        """Result of the solver ``function``, the same on all processes."""
        for kind in kinds:
            if type(kind.contacts) not in UNKNOWNS:
                raise InputError(f"ranks: {type(kind.contacts).__name__} are solved by one process; leave ranks out.")
        own = domains.divide(rows, kinds, self.world.rank, self.world.ranks)
        terms = np.zeros(len(own.owned) + 1)
        self._job, self._error = (rows, kinds, goal.free, scratch, own, terms), None
        self._tell_idle(kinds)
        common = (self.world.rank, self.world.ranks, self._address, self._changes, own.local)
        meetings = [RankMeeting(self._meetings[0].counters, k, self.threads, *common) for k in range(self.threads)]
        mine = scratch._replace(movable=own.own, pushed=own.own[:0])
        arguments = rows, mobility, table, goal, mine
        result = self._run(function, arguments, meetings)
        if self._error is not None:
            raise self._error
        self._gather(rows, kinds, own)
        self._job = None
        return result

    def _tell_idle(self, kinds) -> None:
        """Tell, once, of ranks without work."""
        counts = sum(counts for kind in kinds for _, counts in self._parts(kind.plan))
        if not self._told and counts.sum() > MANY and not counts.all():
            self._told = True
            warnings.warn(
                f"{np.count_nonzero(counts == 0)} of {len(counts)} ranks have nothing to sweep: the {counts.sum()} "
                "contacts lie in too few slabs, each as wide as the largest body; start fewer processes, or accept it.",
                stacklevel=2,
            )

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
        if world.rank < world.ranks - 1:
            scratch.sums[:, SHARED:] = 0.0
        first = int(own.counts[: world.rank].sum())
        after = first + int(own.counts[world.rank])
        push_terms(rows, free, own.owned[first:after], terms[first:after])
        world.wait([world.sum(scratch.sums), world.gather(terms[:-1], own.counts)])
        sum_terms(terms, own.place, scratch.pushed, scratch.pushes)

    def _parts(self, plan) -> list:
        """For each parity the begin and the numbers of contacts (ranks,) of all ranks in the order of the sweeps."""
        firsts = np.array([domains.first_group(k, self.world.ranks) for k in range(self.world.ranks + 1)])
        return [(int(plan.cuts[p + firsts[0]]), np.diff(plan.cuts[p + firsts])) for p in (0, GROUPS)]

    def _collect(self, kind, arrays) -> None:
        """Put together columns (m, c) of contacts of which each rank has its own ones."""
        world, width, pending = self.world, sum(array.shape[1] for array in arrays), []
        stand = isinstance(kind.contacts, diagonal.DiagonalContacts)  # in memory in the order of the sweeps
        for begin, counts in self._parts(kind.plan):
            box = np.empty((int(counts.sum()), width))
            first = int(counts[: world.rank].sum())
            mine = slice(first, first + int(counts[world.rank]))
            some = slice(begin, begin + len(box)) if stand else kind.plan.order[begin : begin + len(box)]
            own = slice(begin + mine.start, begin + mine.stop) if stand else some[mine]
            np.concatenate([array[own] for array in arrays], axis=1, out=box[mine])
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
            self._collect(kind, [kind.plan.shares[:, None]])

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
            self._collect(kind, arrays)
        world.wait([request])
        rows[own.owned] = box
