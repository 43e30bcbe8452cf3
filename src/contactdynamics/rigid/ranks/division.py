"""Contacts divided over processes: who finds them, who sweeps them, and how the whole is put together.

A process finds the contacts of its own balls, which stand together in the table of bodies, and keeps what is remembered
of them; it sweeps the contacts of its own groups of slabs (`order`, `domains`). Bodies are sorted slab by slab now and
then, so that most contacts are swept where they were found. The others are sent to where they are swept, and what is to
be remembered of them is sent back. What a process has of the contacts of each search is a `Portion`.
"""

from typing import NamedTuple

import numpy as np

from ..equations.contract import ALL, GROUPS
from ..order import cut_groups, grid, group_slabs, spread
from .domains import first_group, ranks_of_groups
from .portions import BACK, GONE, OPEN, Portion
from .some import settle_some

UNEVEN = 1.5  # times an even share of the balls: where the last process has more, all are cut anew
GUESTS = 10  # tag of messages: the bodies of contacts that are swept elsewhere


class Slabs(NamedTuple):
    """Where the slabs of a step are, and whose."""

    count: int
    rank: np.ndarray  # (count + 1,) who sweeps each
    cuts: np.ndarray  # (kinds, ALL + 1) where the groups of all processes begin in the order of one, by kind


class Division:
    """The contacts that a process has found, and those that it sweeps.

    ``active``: the lists of the searches are those of this process alone.
    """

    def __init__(self, world):
        self.world, self.active = world, False
        self._cuts = np.zeros(world.ranks + 1, dtype=np.int64)  # where the balls of each process begin
        self._portions, self._due = {}, False  # by search; whether those swept here know more than those found

    def of(self, search) -> Portion:
        """What this process has of the contacts of a ``search``."""
        return self._portions[search]

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

    def tell_found(self, searches, counts: list) -> dict:
        """Hear what the others have found, beside the ``counts`` of each search by their equations; those of all."""
        known, self._portions = self._portions, {}
        for search in searches:
            self._portions[search] = known.get(search) or Portion(self.world, search)
        said = [portion.said(one) for portion, one in zip(self._portions.values(), counts, strict=True)]
        table = np.zeros((self.world.ranks, sum(map(len, said))))
        table[self.world.rank] = np.concatenate(said)
        self.world.wait([self.world.gather(table, np.arange(self.world.ranks + 1))])
        self.counts, at, self.active = {}, 0, True
        for portion, one in zip(self._portions.values(), said, strict=True):
            self.counts |= portion.hear(table[:, at : at + len(one)])
            at += len(one)
        return self.counts

    # ---- who sweeps --------------------------------------------------------------------------------------------------

    def cut(self, position, rows, known, reach: float, tray, kinds: int, team) -> Slabs:
        """The slabs of a step and their groups, by the contacts of all processes: see `order.arrange`.

        ``known`` (n,): the bodies of which this process knows the places.
        """
        world, total, square, count, open_ = self.world, np.zeros(3), np.zeros(3), 0, 0.0
        for portion in self._portions.values():
            some = portion.sample(position)
            count += spread(some, np.arange(len(some)), 1, total, square)
            open_ = max(open_, float(portion.table[:, OPEN].max()))
        axis, width, first, slabs = grid(total, square, count, open_, reach)
        team.share(settle_some, position, rows, known, axis, 1.0 / width, first, slabs, tray.home)
        counts = np.zeros((kinds, slabs + 1), dtype=np.int64)
        for portion in self._portions.values():
            portion.count_slabs(tray.home, slabs, counts)
        world.wait([world.sum(counts)])
        group, cuts = group_slabs(counts), np.empty((kinds, ALL + 1), dtype=np.int64)
        tray.group[: slabs + 1] = group
        for kind in range(kinds):
            cut_groups(counts[kind], group, cuts[kind])
        self.slabs = Slabs(int(slabs), ranks_of_groups(world.ranks)[group % GROUPS], cuts)
        return self.slabs

    def send_out(self, home, apart) -> None:
        """Have the contacts that are swept here; after `cut`. Their bodies come with them: see `apart`."""
        world, me, portions = self.world, self.world.rank, list(self._portions.values())
        others = [k for k in range(world.ranks) if k != me]
        counts = np.zeros((world.ranks, len(portions) + 1, world.ranks), dtype=np.int64)  # of contacts, and of bodies
        counts[me, :-1] = [portion.address(home, self.slabs) for portion in portions]
        out = {k: apart.invite([rows for portion in portions for rows in portion.bodies_to(k)], home) for k in others}
        counts[me, -1, others] = [len(out[k]) for k in others]
        world.wait([world.gather(counts, np.arange(world.ranks + 1))])
        guests = {k: np.empty((counts[k, -1, me], apart.guest)) for k in others if counts[k, -1, me]}
        requests = [world.receive(box, k, GUESTS) for k, box in guests.items()]
        for at, portion in enumerate(portions):
            requests += portion.send(counts[:, at, me], GONE + 2 * at)
        requests += [world.send(box, k, GUESTS) for k, box in out.items() if len(box)]
        world.wait(requests)
        for portion in portions:
            portion.merge()
        apart.receive(guests.values(), home)

    def names(self, equations, search) -> tuple[bool, np.ndarray]:
        """What all processes call the contacts of the ``equations`` of a ``search``: see `RankTeam.take`."""
        if equations.in_order:
            return True, self.slabs.cuts[equations.number] - equations.kind.plan.cuts
        portion = self.of(search)
        return False, portion.numbers[portion.mine.kind == equations.number]

    def rank_of(self, equations, search, place: int) -> int:
        """The place, among those of its kind as one process has them, of a contact of the ``equations``; -1 for none.

        ``place`` is that of `RankTeam.as_one`.
        """
        number = self._number_of(equations, search, place) if equations.in_order else place
        portion = self.of(search)
        return number if self.counts[equations.number] == portion.count else portion.rank_of(equations, number)

    def _number_of(self, equations, search, place: int) -> int:
        """The number of the contact in a ``place`` of the order of one process; -1 for none."""
        cuts, own = self.slabs.cuts[equations.number], equations.kind.plan.cuts
        number = np.array([-1.0])
        if place >= 0:
            group = int(np.searchsorted(cuts, place, side="right")) - 1
            at = place - cuts[group] + own[group]
            if own[group] <= at < own[group + 1]:
                number[0] = self.of(search).numbers[equations.places[at]]
        self.world.wait([self.world.largest(number)])
        return int(number[0])

    def remember(self) -> None:
        """From now on, the contacts swept here know more than those found: see `bring_back`."""
        self._due = True

    def bring_back(self) -> None:
        """What is remembered of all contacts, from where they were swept to where they were found."""
        if self._due:
            self._due = False
            for at, portion in enumerate(self._portions.values()):
                portion.bring_back(BACK + 2 * at)

    # ---- the whole ---------------------------------------------------------------------------------------------------

    def put_together(self) -> None:
        """Let the searches have the contacts of all processes, as one has them; from now on nothing is divided."""
        self.bring_back()
        for portion in self._portions.values():
            portion.put_together()
        self.active = False

    def whole_contacts(self, equations, search) -> None:
        """Let the ``equations`` have the contacts of all processes, as one has them."""
        world, cuts, own = self.world, self.slabs.cuts[equations.number], equations.kind.plan.cuts.copy()
        order, count = equations.kind.plan.order.copy(), self.counts[equations.number]
        numbers = self.of(search).numbers[equations.places]
        local = [numbers[order], *(column[order] for column in equations.columns)]
        plan = equations.make_room(count)
        whole = [np.empty(count, dtype=np.int64), *equations.columns]
        requests, (begin, end) = [], (first_group(world.rank + k, world.ranks) for k in range(2))
        for parity in (0, GROUPS):
            bounds = cuts[[parity + first_group(k, world.ranks) for k in range(world.ranks + 1)]]
            for column, part in zip(whole, local, strict=True):
                column[bounds[world.rank] : bounds[world.rank + 1]] = part[own[parity + begin] : own[parity + end]]
                requests.append(world.gather(column[bounds[0] : bounds[-1]], bounds - bounds[0]))
        world.wait(requests)
        plan.cuts[:] = cuts
        plan.order[:count] = np.arange(count)
        if not equations.in_order:
            by_number = np.argsort(whole[0])
            for column in whole:
                column[:] = column[by_number]
            plan.order[by_number] = np.arange(count)
        equations.have(whole[0])
