"""Contacts divided over processes: who finds a pair, who sweeps it, and how the whole is put together.

A process finds the pairs of its own balls, which stand together in the table of bodies, and keeps what is remembered of
them; it sweeps the contacts of its own groups of slabs (`order`, `domains`). Bodies are sorted slab by slab now and
then, so that most pairs are swept where they were found. The others are sent to where they are swept, and what is to be
remembered of them is sent back.

All pairs have a *number*, their place in the list of one process: pairs of balls, those of each process after those of
the one before, then the pairs of each plane, likewise. Nobody has the whole list but where it is asked for.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ..equations.contract import ALL, GROUPS
from ..order import count_slabs, cut_groups, find_slabs, grid, group_slabs, slab_of, spread, stride
from ..search.contract import DIAGONAL, FULL, Candidates, Overlap
from ..search.pairs import ROOM, Pairs, pair_arrays
from .domains import first_group, ranks_of_groups
from .some import settle_some

# Columns of what processes tell of what they have found; those after them: the pairs of each plane.
BALLS, OPEN, DEPTH, SHARE, A, B, PLACE, FULLY, PLANES = range(9)
UNEVEN = 1.5  # times an even share of the balls: where the last process has more, all are cut anew
GONE, BACK, GUESTS = 11, 12, 17  # tags of messages: contacts to be swept, what is remembered of them, their bodies
WIDTH, NUMBER = 16, 7  # columns of a pair that is sent, and that of its number; a moment comes after them
BACKWARD = 5  # columns of what is sent back, without a moment


class Slabs(NamedTuple):
    """Where the slabs of a step are, and whose."""

    count: int
    rank: np.ndarray  # (count + 1,) who sweeps each
    cuts: np.ndarray  # (kinds, ALL + 1) where the groups of all processes begin in the order of one, by kind


@kernel
def send_to(pairs, home, slabs, rank, out):
    """The rank that sweeps each pair, into ``out`` (K,)."""
    for k in range(out.size):
        out[k] = rank[slab_of(home[pairs.a[k]], home[pairs.b[k]], pairs.kind[k], False, slabs)]


@kernel
def take_rows(pairs, places, at, out, moments):
    """The rows ``places`` (k,) of a list, into ``out`` from row ``at`` on; with their ``moments``, if there are."""
    for n in range(places.size):
        k, to = places[n], at + n
        out.first[to], out.second[to], out.a[to], out.b[to] = pairs.first[k], pairs.second[k], pairs.a[k], pairs.b[k]
        out.law[to], out.kind[to] = pairs.law[k], pairs.kind[k]
        out.status[to], out.source[to] = pairs.status[k], pairs.source[k]
        for c in range(4):
            out.place[to, c], out.memory[to, c] = pairs.place[k, c], pairs.memory[k, c]
        if moments:
            for c in range(3):
                out.moment[to, c] = pairs.moment[k, c]


@kernel
def keep_rows(pairs, places, into, out, moments):
    """What is remembered of the rows ``places`` (k,) of a list, to the rows ``into`` (k,) of ``out``."""
    for n in range(places.size):
        k, to = places[n], into[n]
        out.status[to] = pairs.status[k]
        for c in range(4):
            out.memory[to, c] = pairs.memory[k, c]
        if moments:
            for c in range(3):
                out.moment[to, c] = pairs.moment[k, c]


def packed(pairs: Pairs, places, numbers, moments: bool) -> np.ndarray:
    """(k, WIDTH) the pairs ``places`` (k,), to be sent; with their ``moments``, three columns more."""
    columns = (pairs.first, pairs.second, pairs.a, pairs.b, pairs.law, pairs.kind, pairs.status)
    flags = [column[places].astype(float) for column in (*columns, numbers)]
    tables = (pairs.place, pairs.memory, pairs.moment)[: 2 + moments]
    return np.concatenate([np.stack(flags, axis=1), *(table[places] for table in tables)], axis=1)


def unpacked(box: np.ndarray, at: int, out: Pairs) -> None:
    """Enter pairs that were sent into ``out``, from row ``at`` on; their numbers into ``source``."""
    rows = slice(at, at + len(box))
    columns = (out.first, out.second, out.a, out.b, out.law, out.kind, out.status, out.source)
    for k, column in enumerate(columns):
        column[rows] = box[:, k]
    out.place[rows], out.memory[rows] = box[:, 8:12], box[:, 12:WIDTH]
    if box.shape[1] > WIDTH:
        out.moment[rows] = box[:, WIDTH:]


class Division:
    """The pairs of balls and planes that a process has found, and those that it sweeps.

    ``active``: the list of the search is that of this process alone.
    """

    def __init__(self, world):
        self.world, self.active = world, False
        self._cuts = np.zeros(world.ranks + 1, dtype=np.int64)  # where the balls of each process begin
        self.mine, self._due = None, False  # the pairs that are swept here; whether they know more than those found
        self._arrays = pair_arrays(0)  # of them, where some come from others: new memory takes longer than to fill it

    # ---- who finds ---------------------------------------------------------------------------------------------------

    def fits(self, balls: int) -> bool:
        """Whether the present cuts may stay when there are so many balls: some may have come at the end."""
        last, ranks = self._cuts[-2], self.world.ranks
        return self._cuts[-1] <= balls and balls - last <= UNEVEN * balls / ranks + 16

    @property
    def cuts(self) -> np.ndarray:
        """(ranks + 1,) where the balls of each process begin."""
        return self._cuts

    def span(self, body: np.ndarray) -> tuple[tuple[int, int], tuple]:
        """The first ball of this process and that after its last one; and where the balls are cut.

        ``body`` (S,) is that of each ball, in order: all balls of one are on one side. Cut anew only where nothing is
        divided.
        """
        rank, ranks, balls = self.world.rank, self.world.ranks, len(body)
        if not self.active:
            self._cuts = balls * np.arange(ranks + 1) // ranks
            self._cuts[1:-1] = np.searchsorted(body, body[self._cuts[1:-1]])
        self._cuts[-1] = balls
        return (int(self._cuts[rank]), int(self._cuts[rank + 1])), tuple(self._cuts[1:-1].tolist())

    def tell_found(self, search, counts: dict) -> dict:
        """Hear how many pairs the others have found, beside the ``counts`` by their equations; those of all."""
        found, (_, depth, share, place, wide), world = search.found, search.deepest_here, self.world
        table = np.zeros((world.ranks, PLANES + len(search.on_planes)))
        a, b = (int(found.a[place]), int(found.b[place])) if place >= 0 else (-1, -1)
        own = [found.balls, wide, depth, share, a, b, place, counts.get(FULL, 0)]
        table[world.rank] = [*own, *search.on_planes]
        self._moments = search.needs_inertia
        world.wait([world.gather(table, np.arange(world.ranks + 1))])
        self._table, self.active = table, True
        counts = table[:, [BALLS, *range(PLANES, table.shape[1])]].astype(np.int64).T  # (1 + planes, ranks)
        ends = np.cumsum(counts).reshape(counts.shape)
        self._begins, self._counts, self.count = ends - counts, counts, int(counts.sum())
        fully = int(table[:, FULLY].sum())
        self.counts = {DIAGONAL: self.count - fully} | ({FULL: fully} if self._moments else {})
        return self.counts

    def _runs(self, rank: int) -> list:
        """(place, count, number) of the pairs of a process that stand together in both lists."""
        counts, begins = self._counts[:, rank].tolist(), self._begins[:, rank].tolist()
        places = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return [run for run in zip(places, counts, begins, strict=False) if run[1]]

    def _number(self, rank: int, place: int) -> int:
        """The number of the pair in a ``place`` of the list of a process."""
        return next(number + place - at for at, count, number in self._runs(rank) if at <= place < at + count)

    def numbers(self) -> np.ndarray:
        """(k,) those of the pairs found here."""
        runs = [np.arange(number, number + count) for _, count, number in self._runs(self.world.rank)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *runs])

    def deepest(self) -> Overlap:
        """The largest overlaps of all pairs: see `BallSearch.deepest`."""
        table = self._table
        share = table[:, SHARE].max()
        ranks = [k for k in np.flatnonzero(table[:, SHARE] == share) if table[k, PLACE] >= 0]
        depth = float(table[:, DEPTH].max())
        if not ranks:
            return Overlap(depth, 0.0, -1, -1)
        first = min(ranks, key=lambda k: self._number(k, int(table[k, PLACE])))
        return Overlap(depth, float(share), int(table[first, A]), int(table[first, B]))

    # ---- who sweeps --------------------------------------------------------------------------------------------------

    def _sample(self, found: Pairs, position) -> np.ndarray:
        """(n, 3) the places of the second bodies of some pairs of all: see `order.stride`."""
        every = int(stride(self.count))
        picked = np.zeros(((self.count + every - 1) // every, 3))
        for place, count, number in self._runs(self.world.rank):
            skip = -number % every
            some = found.b[place + skip : place + count : every]
            at = (number + skip) // every
            picked[at : at + len(some)] = position[some]
        self.world.wait([self.world.sum(picked)])
        return picked

    def cut(self, position, rows, known, reach: float, found: Pairs, tray, kinds: int, team) -> Slabs:
        """The slabs of a step and their groups, by the pairs of all processes: see `order.arrange`.

        ``known`` (n,): the bodies of which this process knows the places.
        """
        world, total, square, some = self.world, np.zeros(3), np.zeros(3), self._sample(found, position)
        count = spread(some, np.arange(len(some)), 1, total, square)
        axis, width, first, slabs = grid(total, square, count, float(self._table[:, OPEN].max()), reach)
        team.share(settle_some, position, rows, known, axis, 1.0 / width, first, slabs, tray.home)
        counts = np.zeros((kinds, slabs + 1), dtype=np.int64)
        some = Candidates(found.a, found.b, found.kind, 0.0)
        slab = np.empty(len(found.a), dtype=np.int32)
        find_slabs(some, tray.home, slabs, 0, len(slab), slab)
        count_slabs(found.kind, slab, counts)
        world.wait([world.sum(counts)])
        group, cuts = group_slabs(counts), np.empty((kinds, ALL + 1), dtype=np.int64)
        tray.group[: slabs + 1] = group
        for kind in range(kinds):
            cut_groups(counts[kind], group, cuts[kind])
        self.slabs = Slabs(int(slabs), ranks_of_groups(world.ranks)[group % GROUPS], cuts)
        return self.slabs

    def send_out(self, found: Pairs, home, apart) -> Pairs:
        """The pairs that are swept here, in the order of their numbers, which are in ``source``; after `cut`.

        Their bodies come with them: see `apart`.
        """
        world, me, to = self.world, self.world.rank, np.empty(len(found.a), dtype=np.int8)
        send_to(found, home, self.slabs.count, self.slabs.rank, to)
        others = [k for k in range(world.ranks) if k != me]
        counts = np.zeros((world.ranks, 2, world.ranks), dtype=np.int64)  # of pairs, and of their bodies
        counts[me, 0] = np.bincount(to, minlength=world.ranks)
        none = np.zeros(0, dtype=np.int64)
        self._sent = [np.flatnonzero(to == k) if k != me and counts[me, 0, k] else none for k in range(world.ranks)]
        out = {k: apart.invite([found.a[self._sent[k]], found.b[self._sent[k]]], home) for k in others}
        counts[me, 1, others] = [len(out[k]) for k in others]
        world.wait([world.gather(counts, np.arange(world.ranks + 1))])
        numbers = self.numbers()
        guests = {k: np.empty((counts[k, 1, me], apart.guest)) for k in others if counts[k, 1, me]}
        width = WIDTH + 3 * self._moments
        boxes = [np.empty((counts[k, 0, me], width)) if k != me else None for k in range(world.ranks)]
        gone = {k: packed(found, self._sent[k], numbers, self._moments) for k in others if len(self._sent[k])}
        requests = [world.receive(boxes[k], k, GONE) for k in others if counts[k, 0, me]]
        requests += [world.receive(box, k, GUESTS) for k, box in guests.items()]
        requests += [world.send(box, k, GONE) for k, box in gone.items()]
        requests += [world.send(out[k], k, GUESTS) for k in gone]
        found.source[:] = numbers
        if requests:
            self.mine = self._merge(found, np.flatnonzero(to == me), boxes, requests)
        else:  # all pairs stay where they are, as is usual
            self.mine, self._came = found, None
        apart.receive(guests.values(), home)
        return self.mine

    def _merge(self, found: Pairs, kept, boxes, requests) -> Pairs:
        """The pairs ``kept`` here and those that come in ``boxes`` (None where it is this process), by number."""
        world, me, total = self.world, self.world.rank, self._counts[0].sum()
        world.wait(requests)
        numbers = [found.source[kept] if box is None else box[:, NUMBER] for box in boxes]
        splits = [int(np.searchsorted(some, total)) for some in numbers]  # those of balls, then those of planes
        ends = np.cumsum([0, *splits, *(len(some) - k for some, k in zip(numbers, splits, strict=True))]).tolist()
        if ends[-1] > len(self._arrays.first):
            self._arrays = pair_arrays(int(ROOM * ends[-1]) + 16)
        mine, balls = Pairs(*(column[: ends[-1]] for column in self._arrays[:-1]), 0), ends[world.ranks]
        for k, split in enumerate(splits):
            for part, at in ((slice(0, split), ends[k]), (slice(split, None), ends[world.ranks + k])):
                if k == me:
                    take_rows(found, kept[part], at, mine, self._moments)
                else:
                    unpacked(boxes[k][part], at, mine)
        order = balls + np.argsort(mine.source[balls:], kind="stable")  # planes have pairs of several processes
        for column in mine[:-1]:
            column[balls:] = column[order]
        where = np.arange(ends[-1])
        where[order] = np.arange(balls, ends[-1])
        self._kept, self._came = kept, [
            np.concatenate([where[ends[k] : ends[k + 1]], where[ends[world.ranks + k] : ends[world.ranks + k + 1]]])
            for k in range(world.ranks)
        ]  # fmt: skip
        return mine._replace(balls=balls)

    def names(self, equations) -> tuple[bool, np.ndarray]:
        """What all processes call the contacts of the ``equations``: see `RankTeam.take`."""
        if equations.in_order:
            return True, self.slabs.cuts[equations.number] - equations.kind.plan.cuts
        return False, self.mine.source[self.mine.kind == equations.number]

    def rank_of(self, equations, place: int, found: Pairs) -> int:
        """The place, among those of its kind as one process has them, of a contact of the ``equations``; -1 for none.

        ``place`` is that of `RankTeam.as_one`; ``found`` are the pairs found here.
        """
        number = self._number_of(equations, place) if equations.in_order else place
        if self.counts[equations.number] == self.count:
            return number
        before = np.array([np.count_nonzero((found.kind == equations.number) & (self.numbers() < number))])
        self.world.wait([self.world.sum(before)])
        return int(before[0])

    def _number_of(self, equations, place: int) -> int:
        """The number of the contact in a ``place`` of the order of one process; -1 for none."""
        cuts, own = self.slabs.cuts[equations.number], equations.kind.plan.cuts
        number = np.array([-1.0])
        if place >= 0:
            group = int(np.searchsorted(cuts, place, side="right")) - 1
            at = place - cuts[group] + own[group]
            if own[group] <= at < own[group + 1]:
                number[0] = self.mine.source[equations.active.pair[at]]
        self.world.wait([self.world.largest(number)])
        return int(number[0])

    def found_again(self, old: Pairs, new: Pairs) -> None:
        """The search has found the same pairs once more."""
        if self.mine is old:
            self.mine = new
            new.source[:] = self.numbers()

    def remember(self) -> None:
        """From now on, the pairs swept here know more than those found: see `bring_back`."""
        self._due = True

    def bring_back(self, found: Pairs) -> None:
        """Impulse, status and what was lost of all pairs, from where they were swept to where they were found."""
        if not self._due:
            return
        self._due, mine, world, me = False, self.mine, self.world, self.world.rank
        if mine is found:
            return
        others = [k for k in range(world.ranks) if k != me]
        width = BACKWARD + 3 * self._moments
        tables = (mine.memory, mine.status[:, None], mine.moment)[: 2 + self._moments]
        boxes = {k: np.empty((len(self._sent[k]), width)) for k in others if len(self._sent[k])}
        out = {
            k: np.concatenate([table[at] for table in tables], axis=1)
            for k, at in enumerate(self._came) if k != me and len(at)
        }  # fmt: skip
        requests = [world.receive(box, k, BACK) for k, box in boxes.items()]
        requests += [world.send(box, k, BACK) for k, box in out.items()]
        world.wait(requests)
        keep_rows(mine, self._came[me], self._kept, found, self._moments)
        for k, box in boxes.items():
            at = self._sent[k]
            found.memory[at], found.status[at] = box[:, :4], box[:, 4]
            if self._moments:
                found.moment[at] = box[:, BACKWARD:]

    # ---- the whole ---------------------------------------------------------------------------------------------------

    def whole_pairs(self, found: Pairs) -> Pairs:
        """The pairs of all processes, as one process has them; from now on nothing is divided."""
        self.bring_back(found)
        world, me, counts = self.world, self.world.rank, self._counts
        whole, balls, here = pair_arrays(self.count), int(counts[0].sum()), found.balls
        bounds = [np.concatenate([[0], np.cumsum(c)]) for c in (counts[0], counts[1:].sum(axis=0))]
        for part, rows in enumerate((slice(0, here), slice(here, None))):
            at, requests = slice(0, balls) if part == 0 else slice(balls, None), []
            for name in Pairs._fields[:-1]:
                column = getattr(whole, name)[at]
                column[bounds[part][me] : bounds[part][me + 1]] = getattr(found, name)[rows]
                requests.append(world.gather(column, bounds[part]))
            world.wait(requests)
        order = balls + np.argsort(whole.first[balls:], kind="stable")  # plane by plane
        for column in whole[:-1]:
            column[balls:] = column[order]
        self.active = False
        return whole._replace(balls=balls)

    def whole_contacts(self, equations) -> None:
        """Let the ``equations`` have the contacts of all processes, as one has them."""
        world, cuts, own = self.world, self.slabs.cuts[equations.number], equations.kind.plan.cuts.copy()
        order, count = equations.kind.plan.order.copy(), self.counts[equations.number]
        local = [column[order] for column in equations.active]
        local[0] = self.mine.source[local[0]].astype(np.uint32)  # their pairs, by number
        plan = equations.make_room(count)
        requests, (begin, end) = [], (first_group(world.rank + k, world.ranks) for k in range(2))
        for parity in (0, GROUPS):
            bounds = cuts[[parity + first_group(k, world.ranks) for k in range(world.ranks + 1)]]
            for column, part in zip(equations.active, local, strict=True):
                column[bounds[world.rank] : bounds[world.rank + 1]] = part[own[parity + begin] : own[parity + end]]
                requests.append(world.gather(column[bounds[0] : bounds[-1]], bounds - bounds[0]))
        world.wait(requests)
        plan.cuts[:] = cuts
        plan.order[:count] = np.arange(count)
        if not equations.in_order:
            by_pair = np.argsort(equations.active.pair)
            for column in equations.active:
                column[:] = column[by_pair]
            plan.order[by_pair] = np.arange(count)
