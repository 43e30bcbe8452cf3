"""What a process has of the contacts of one search: those that it has found, and those that it sweeps.

The list of a search is a named tuple of columns with a row for each contact, and last the number of those that are of
pairs; contacts with planes come after them, plane by plane. A search says which columns go along with a contact that
is swept elsewhere (``goes``), and which of them are remembered and come back (``comes_back``).

All contacts have a *number*, their place in the list of one process: those of pairs, of each process after those of the
one before, then those of each plane, likewise. Nobody has the whole list but where it is asked for.
"""

import numpy as np

from ..._jit import kernel
from ..order import count_slabs, find_slabs, slab_of, stride
from ..search.contract import Candidates, Overlap

# Columns of what processes tell of what they have found; then how many need which equations, and those of each plane.
PAIRS, OPEN, DEPTH, SHARE, A, B, PLACE, KINDS = range(8)
ROOM = 1.05  # of lists that follow the number of contacts, over what is needed
GONE, BACK = 30, 31  # tags of messages: contacts to be swept, what is remembered of them; of the next search two more


@kernel
def send_to(a, b, kind, home, slabs, rank, out):
    """The rank that sweeps each contact, into ``out`` (K,)."""
    for k in range(out.size):
        out[k] = rank[slab_of(home[a[k]], home[b[k]], kind[k], False, slabs)]


@kernel
def take_numbers(column, places, at, out):
    """The elements ``places`` (k,) of a ``column`` (n,), to ``out`` from ``at`` on."""
    for n in range(places.size):
        out[at + n] = column[places[n]]


@kernel
def take_rows(column, places, at, out):
    """The rows ``places`` (k,) of a ``column`` (n, c), to ``out`` from row ``at`` on."""
    for n in range(places.size):
        k, to = places[n], at + n
        for c in range(column.shape[1]):
            out[to, c] = column[k, c]


def take(column, places, at: int, out) -> None:
    """The rows ``places`` of a ``column``, to ``out`` from row ``at`` on."""
    (take_numbers if column.ndim == 1 else take_rows)(column, places, at, out)


def packed(columns, places) -> np.ndarray:
    """(k, w) the rows ``places`` (k,) of some ``columns``, side by side, to be sent."""
    return np.concatenate([column[places].reshape(len(places), -1) for column in columns], axis=1, dtype=float)


def unpacked(box: np.ndarray, columns, rows) -> None:
    """Enter what was sent into the ``rows`` of some ``columns``; those of the ``box`` (k, w) side by side."""
    at = 0
    for column in columns:
        wide = 1 if column.ndim == 1 else column.shape[1]
        column[rows] = box[:, at] if column.ndim == 1 else box[:, at : at + wide]
        at += wide


def width(columns) -> int:
    """Of these columns side by side."""
    return sum(1 if column.ndim == 1 else column.shape[1] for column in columns)


class Portion:
    """Of the contacts of a ``search``."""

    def __init__(self, world, search):
        self.world, self.search = world, search
        self.mine, self.numbers = None, None  # the contacts that are swept here, and their numbers
        self._room = search.arrays(0)  # of them, where some come from others: new memory takes longer than to fill it

    @property
    def found(self):
        """The contacts found here."""
        return self.search.found

    def _columns(self, contacts) -> list:
        """Those that go along with contacts."""
        return [getattr(contacts, name) for name in self.search.goes]

    def _kept(self, contacts) -> list:
        """Those that come back."""
        return [getattr(contacts, name) for name in self.search.comes_back]

    # ---- what was found ----------------------------------------------------------------------------------------------

    def said(self, counts: dict) -> list:
        """What this process tells of what it has found, ``counts`` contacts by their equations."""
        depth, share, place, wide = self.search.extremes()
        found = self.found
        a, b = (int(found.a[place]), int(found.b[place])) if place >= 0 else (-1, -1)
        self._kinds = list(counts)
        return [found[-1], wide, depth, share, a, b, place, *counts.values(), *self.search.on_planes]

    def hear(self, table: np.ndarray) -> dict:
        """What all processes have `said` (ranks, n); how many contacts there are by their equations."""
        planes = KINDS + len(self._kinds)
        self.table = table
        counts = table[:, [PAIRS, *range(planes, table.shape[1])]].astype(np.int64).T  # (1 + planes, ranks)
        ends = np.cumsum(counts).reshape(counts.shape)
        self._begins, self.counts, self.count = ends - counts, counts, int(counts.sum())
        return dict(zip(self._kinds, table[:, KINDS:planes].sum(axis=0).astype(int).tolist(), strict=True))

    def _runs(self, rank: int) -> list:
        """(place, count, number) of the contacts of a process that stand together in both lists."""
        counts, begins = self.counts[:, rank].tolist(), self._begins[:, rank].tolist()
        places = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return [run for run in zip(places, counts, begins, strict=False) if run[1]]

    def _number(self, rank: int, place: int) -> int:
        """The number of the contact in a ``place`` of the list of a process."""
        return next(number + place - at for at, count, number in self._runs(rank) if at <= place < at + count)

    def numbers_found(self) -> np.ndarray:
        """(k,) those of the contacts found here."""
        runs = [np.arange(number, number + count) for _, count, number in self._runs(self.world.rank)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *runs])

    def deepest(self) -> Overlap:
        """The largest overlaps of all contacts: see `Search.deepest`."""
        table = self.table
        share = table[:, SHARE].max()
        ranks = [k for k in np.flatnonzero(table[:, SHARE] == share) if table[k, PLACE] >= 0]
        depth = float(table[:, DEPTH].max())
        if not ranks:
            return Overlap(depth, 0.0, -1, -1)
        first = min(ranks, key=lambda k: self._number(k, int(table[k, PLACE])))
        return Overlap(depth, float(share), int(table[first, A]), int(table[first, B]))

    def sample(self, position) -> np.ndarray:
        """(n, 3) the places of the second bodies of some contacts of all: see `order.stride`."""
        every, second = int(stride(self.count)), self.found.b
        picked = np.zeros(((self.count + every - 1) // every, 3))
        for place, count, number in self._runs(self.world.rank):
            skip = -number % every
            some = second[place + skip : place + count : every]
            at = (number + skip) // every
            picked[at : at + len(some)] = position[some]
        self.world.wait([self.world.sum(picked)])
        return picked

    def count_slabs(self, home, slabs: int, counts) -> None:
        """Count the contacts found here by kind and slab, into ``counts``."""
        found = self.found
        slab = np.empty(len(found.a), dtype=np.int32)
        find_slabs(Candidates(found.a, found.b, found.kind, 0.0), home, slabs, 0, len(slab), slab)
        count_slabs(found.kind, slab, counts)

    # ---- there and back ----------------------------------------------------------------------------------------------

    def address(self, home, slabs) -> np.ndarray:
        """Find who sweeps the contacts found here, by the `Slabs`; how many go to each process."""
        found, me = self.found, self.world.rank
        to = np.empty(len(found.a), dtype=np.int8)
        send_to(found.a, found.b, found.kind, home, slabs.count, slabs.rank, to)
        counts, none = np.bincount(to, minlength=self.world.ranks), np.zeros(0, dtype=np.int64)
        self._sent = [np.flatnonzero(to == k) if k != me and counts[k] else none for k in range(self.world.ranks)]
        self._stay = np.flatnonzero(to == me) if counts[me] < len(to) else np.arange(len(to))
        return counts

    def bodies_to(self, rank: int) -> list:
        """The rows of the bodies of those that go to a process."""
        return [self.found.a[self._sent[rank]], self.found.b[self._sent[rank]]]

    def send(self, counts, tag: int) -> list:
        """Begin to send contacts to where they are swept, and to receive ``counts`` (ranks,) of them."""
        world, me, columns, numbers = self.world, self.world.rank, self._columns(self.found), self.numbers_found()
        self._numbers, wide = numbers, 1 + width(columns)
        out = {k: packed([numbers, *columns], some) for k, some in enumerate(self._sent) if len(some)}
        self._boxes = [np.empty((counts[k], wide)) if k != me else None for k in range(world.ranks)]
        requests = [world.receive(self._boxes[k], k, tag) for k in range(world.ranks) if k != me and counts[k]]
        return requests + [world.send(box, k, tag) for k, box in out.items()]

    def merge(self) -> None:
        """Have in ``mine``, in the order of their ``numbers``, the contacts that stay and those that have come."""
        world, me, kept, total = self.world, self.world.rank, self._stay, self.counts[0].sum()
        if len(kept) == len(self._numbers) and not any(box is not None and len(box) for box in self._boxes):
            self.mine, self.numbers, self._came = self.found, self._numbers, None  # all stay, as is usual
            return
        numbers = [self._numbers[kept] if box is None else box[:, 0] for box in self._boxes]
        splits = [int(np.searchsorted(some, total)) for some in numbers]  # those of pairs, then those of planes
        ends = np.cumsum([0, *splits, *(len(some) - k for some, k in zip(numbers, splits, strict=True))]).tolist()
        if ends[-1] > len(self._room.a):
            self._room = self.search.arrays(int(ROOM * ends[-1]) + 16)
        pairs = ends[world.ranks]
        mine = type(self._room)(*(column[: ends[-1]] for column in self._room[:-1]), pairs)
        self.numbers, source = np.empty(ends[-1], dtype=np.int64), [self._numbers, *self._columns(self.found)]
        target = [self.numbers, *self._columns(mine)]
        for k, split in enumerate(splits):
            for part, at in ((slice(0, split), ends[k]), (slice(split, None), ends[world.ranks + k])):
                if k == me:
                    for one, two in zip(source, target, strict=True):
                        take(one, kept[part], at, two)
                else:
                    box = self._boxes[k][part]
                    unpacked(box, target, slice(at, at + len(box)))
        order = pairs + np.argsort(self.numbers[pairs:], kind="stable")  # planes have contacts of several processes
        for column in target:
            column[pairs:] = column[order]
        where = np.arange(ends[-1])
        where[order] = np.arange(pairs, ends[-1])
        self.mine, self._came = mine, [
            np.concatenate([where[ends[k] : ends[k + 1]], where[ends[world.ranks + k] : ends[world.ranks + k + 1]]])
            for k in range(world.ranks)
        ]  # fmt: skip

    def bring_back(self, tag: int) -> None:
        """What is remembered of all contacts, from where they were swept to where they were found."""
        mine, found, world, me = self.mine, self.found, self.world, self.world.rank
        if self._came is None:
            return
        here, there = self._kept(found), self._kept(mine)
        wide = width(here)
        boxes = {k: np.empty((len(some), wide)) for k, some in enumerate(self._sent) if len(some)}
        out = {k: packed(there, at) for k, at in enumerate(self._came) if k != me and len(at)}
        requests = [world.receive(box, k, tag) for k, box in boxes.items()]
        world.wait(requests + [world.send(box, k, tag) for k, box in out.items()])
        for one, two in zip(there, here, strict=True):
            two[self._stay] = one[self._came[me]]
        for k, box in boxes.items():
            unpacked(box, here, self._sent[k])

    def found_again(self, old) -> None:
        """The search has found the same contacts as the ``old`` ones once more."""
        if self.mine is old:
            self.mine = self.found

    # ---- the whole ---------------------------------------------------------------------------------------------------

    def rank_of(self, equations, number: int) -> int:
        """The place of the contact with this number among those of the same ``equations``, as one process has them."""
        before = np.array([np.count_nonzero((self.found.kind == equations.number) & (self.numbers_found() < number))])
        self.world.wait([self.world.sum(before)])
        return int(before[0])

    def put_together(self) -> None:
        """Let the search have the contacts of all processes, as one process has them."""
        world, me, counts, found = self.world, self.world.rank, self.counts, self.found
        whole, pairs, here = self.search.arrays(self.count), int(counts[0].sum()), found[-1]
        bounds = [np.concatenate([[0], np.cumsum(c)]) for c in (counts[0], counts[1:].sum(axis=0))]
        columns, waits = [column[: self.count] for column in whole[:-1]], []
        for part, rows in enumerate((slice(0, here), slice(here, None))):
            at = slice(0, pairs) if part == 0 else slice(pairs, None)
            for one, two in zip(columns, found[:-1], strict=True):
                column = one[at]
                column[bounds[part][me] : bounds[part][me + 1]] = two[rows]
                waits.append(world.gather(column, bounds[part]))
        world.wait(waits)
        all_found = type(whole)(*columns, pairs)
        order = pairs + np.argsort(self.search.first_of(all_found)[pairs:], kind="stable")  # plane by plane
        for column in columns:
            column[pairs:] = column[order]
        self.search.found = all_found
