"""Bodies that each process knows for itself: its own ones, and a halo of those that they may touch.

Balls stand in the table slab by slab, and each process has those of a span (`division`): it has their lists, and moves,
places and looks after their bodies. Beside them it knows those that its lists name, whose velocities it is told at the
end of each solution, and moves them too; and all bodies that are driven, and planes. Of all others it knows nothing:
what stands in its tables is nan, until someone asks (`whole`).

In a step velocities go three ways, each time to few processes: with a pair that is swept elsewhere, its two bodies
(`invite`); after the solution, bodies back to the process that has them (`_come_home`), and from there to all that have
them in their halo (`spread`). A ball that has left its margin is told to all, with all that is known of its body.
"""

import numpy as np

from ..._jit import Settled
from ...state import DRIVEN, FREE
from ..neighbours import faster, look_up, place_all, wanderers
from ..threads import BLOCKS, block
from . import domains
from .some import (
    add_to_arrival,
    add_to_energies,
    add_to_potential,
    arrive_some,
    invert_some,
    named,
    place_some,
    set_out_some,
    touched,
)
from .world import FULL_EVERY, SAMPLE

HOME, HALO, NEWS, CHAIN = 13, 14, 15, 16  # tags of messages
GUEST, POSE = 14, 7  # columns of a body that comes with a pair; where it stands, if lever arms count


class Apart:
    """The bodies that this process knows; while it does not know others, ``contacts`` (a `ContactSet`) has it."""

    def __init__(self, team, contacts):
        self.team, self.world, self._contacts = team, team.world, contacts
        self.within = False  # whether a step has begun, and is not yet booked
        self._lists = self._changes = self._cuts = None  # of the lists by which the halo was found
        self._guests = np.zeros(0, dtype=np.int64)  # bodies of pairs that others have found and that are swept here
        self._due, self._begun = False, 0  # whether bodies were swept that belong elsewhere; times that they were apart

    # ---- apart and together ------------------------------------------------------------------------------------------

    def begin(self, model, step, rows, near, cuts) -> None:
        """From now on know some bodies alone; all are known everywhere, and so are the lists. ``cuts`` of the balls."""
        bodies = model.bodies
        self._model, self._near = model, near
        self._tables = bodies.position, bodies.orientation, rows, step.before, step.free
        self._compare(step.time)
        if self._lists is not near.lists or self._changes != near.changes or not np.array_equal(cuts, self._cuts):
            self._share_out(cuts.copy())
        self._fast = np.flatnonzero(near.lists.margin > near.lists.base).astype(np.int32)
        self._forget(np.flatnonzero(~self._knows & (bodies.kind == FREE)))
        self.within, self._contacts.apart, near.beside = True, self, self._placed

    def _share_out(self, cuts) -> None:
        """Who has which bodies, and which others each must know."""
        model, me, ranks = self._model, self.world.rank, self.world.ranks
        count, body, kind = len(model.bodies.kind), model.balls.body, model.bodies.kind
        self._cuts, self._bounds = cuts, np.append(body, count)[cuts].astype(np.int64)
        self._bounds[0], self._bounds[-1] = 0, count
        self.first, self.after = (int(row) for row in self._bounds[me : me + 2])
        self._named, self._knows = np.zeros(len(body), dtype=bool), np.zeros(count, dtype=bool)
        self._named[cuts[me] : cuts[me + 1]] = True  # they are its own
        self._knows[self.first : self.after] = True
        self._everywhere = np.flatnonzero(kind == DRIVEN)
        self._marks = np.zeros(count, dtype=bool)
        self.known, self._placed = np.arange(self.first, self.after), np.zeros(0, dtype=np.int64)
        self._gives, self._gets = ([np.zeros(0, dtype=np.int64) for _ in range(ranks)] for _ in range(2))
        self._know(np.concatenate([self._everywhere, model.planes.body]))
        self._place_too(np.flatnonzero(kind[body] == DRIVEN))
        self._blocks = np.array([block(count, k)[0] for k in range(BLOCKS)] + [count])
        self._set_out, self._arrive, self._wander = map(Settled, (set_out_some, arrive_some, wanderers))
        self._widen()

    def _know(self, rows) -> None:
        """Know more bodies from now on."""
        new = np.unique(rows[~self._knows[rows]])
        self._knows[new] = True
        self.known = np.concatenate([self.known, new])

    def _place_too(self, balls) -> None:
        """Place more balls that are not this process's own."""
        own = (balls >= self._cuts[self.world.rank]) & (balls < self._cuts[self.world.rank + 1])
        self._near.beside = self._placed = np.unique(np.concatenate([self._placed, balls[~own]]))

    def _widen(self) -> list:
        """Take those into the halo that the lists name and that are not in it; what is asked of each process.

        ``self._gets`` and ``self._gives`` have, for each other process, the free bodies that it tells and is told.
        """
        near, me, world = self._near, self.world.rank, self.world
        lists, kind = near.lists, self._model.bodies.kind
        balls = named(lists.start, lists.count, lists.other, *near.span, self._named)
        rows = self._model.balls.body[balls]
        self._place_too(balls)
        rows = np.unique(rows)
        asked = rows[(kind[rows] == FREE) & ~self._knows[rows]]
        self._know(rows)
        owner = np.searchsorted(self._bounds, asked, side="right") - 1
        told = self.team.tell(np.stack([np.full(len(asked), me), owner, asked], axis=1))[0]
        give = [told[(told[:, 0] == k) & (told[:, 1] == me), 2] for k in range(world.ranks)]
        get = [told[(told[:, 0] == me) & (told[:, 1] == k), 2] for k in range(world.ranks)]
        self._gives = [np.concatenate(pair) for pair in zip(self._gives, give, strict=True)]
        self._gets = [np.concatenate(pair) for pair in zip(self._gets, get, strict=True)]
        self._lists, self._changes = lists, near.changes
        return [give, get]

    def agree(self, time: float) -> None:
        """`World.agree` by the bodies that are known everywhere."""
        position, _, rows, _, _ = self._tables
        self.world.compare(rows[self._everywhere], position[self._everywhere], time)

    def _compare(self, time: float) -> None:
        """Refuse to go on where processes that know all bodies know different ones: see `World.agree`."""
        position, _, rows, _, _ = self._tables
        every = 1 if self._begun % FULL_EVERY == 0 else 1 + len(rows) // SAMPLE
        self._begun += 1
        self.world.compare(rows[::every], position[::every], time)

    def _forget(self, rows) -> None:
        """What is not kept up here is no number."""
        position, orientation, *velocities = self._tables
        position[rows], orientation[rows] = np.nan, np.nan
        for array in velocities:
            array[rows, :6] = np.nan

    def whole(self) -> None:
        """Know all bodies, here as in one process; all processes must ask, each time."""
        self.team.ask_all("reads bodies")
        self.gather()

    def gather(self) -> None:
        """`whole`, where all processes are known to ask."""
        if self._contacts.apart is None:
            return
        self._come_home()
        world, tables = self.world, self._tables if self.within else self._tables[:3]
        requests = [world.gather(array, self._bounds) for array in tables]
        world.wait([*requests, world.gather(self._near.places, self._cuts)])
        self._contacts.apart = self._near.beside = None

    # ---- motion ------------------------------------------------------------------------------------------------------

    def set_out(self, columns, gravity, loads, h: float, late: bool) -> None:
        """`advance.set_out` and `Loading.relax`, without springs; ``loads``: see `Loading.collect`."""
        _, _, rows, before, free = self._tables
        self.within = True
        self.team.alike.share(self._set_out, columns, self.known, rows, before, free, gravity, loads, h, late)

    def arrive(self, columns, gravity, kappa: float, h: float, late: bool) -> tuple:
        """`advance.arrive`; the energies are those of all bodies."""
        _, _, rows, before, free = self._tables
        given = columns, rows, before, free, gravity, kappa, h, late
        parts = self._add_up(add_to_arrival, given, self._blocks, 3)
        self.team.alike.share(self._arrive, columns, self.known, rows, before, h, late)
        self._forget(self._guests[~self._knows[self._guests]])
        self.within = False
        x, y, z = 0.0, 0.0, 0.0
        for one, two, three in parts.tolist():
            x, y, z = x + one, y + two, z + three
        return x, y, z

    def kinetic_of_free(self, columns) -> float:
        """The kinetic energy of the free velocities, of all bodies, J."""
        free = self._tables[4]
        parts = self._add_up(add_to_energies, (columns, free, free, free), self._blocks, 3)
        return sum(parts[:, 0].tolist(), 0.0)

    def potential(self, columns, gravity) -> float:
        """`motion.gravity_energy` of all bodies, J; all processes must ask."""
        self.team.ask_all("reads energies")
        return float(self._add_up(add_to_potential, (columns, gravity), self._blocks[[0, -1]], 1)[0, 0])

    def fastest(self, find) -> tuple[float, int]:
        """``find`` gives, of some rows, the largest number and its row: of all processes, the first one there is."""
        value, row = find(self._tables[2], slice(self.first, self.after))
        told = self.team.tell(np.array([[value, row + self.first]] if self.first < self.after else np.zeros((0, 2))))[0]
        best = int(told[:, 0].argmax())
        return float(told[best, 0]), int(told[best, 1])

    def _add_up(self, add, arguments, begins, width: int) -> np.ndarray:
        """(n, width) sums over blocks of rows, term by term as one process has them; they begin at ``begins`` (n + 1,).

        The sum over a block of which several processes have rows goes from one to the next.
        """
        world, requests = self.world, []
        sums = np.zeros((len(begins) - 1, width))
        low, high = np.maximum(begins[:-1], self.first), np.minimum(begins[1:], self.after)
        for k in np.flatnonzero(low < high)[::-1].tolist():  # that of which the next one waits comes first
            begin, end = int(begins[k]), int(begins[k + 1])
            if begin < self.first:
                last = int(np.searchsorted(self._bounds, self.first - 1, side="right")) - 1
                world.wait([world.receive(sums[k], last, CHAIN)])
            add(*arguments, int(low[k]), int(high[k]), sums[k])
            if end > self.after:
                out = sums[k].copy()
                following = int(np.searchsorted(self._bounds, self.after, side="right")) - 1
                requests.append((world.send(out, following, CHAIN), out))
                sums[k] = 0.0
        world.wait([request for request, _ in requests] + [world.sum(sums)])
        return sums

    # ---- lists -------------------------------------------------------------------------------------------------------

    def place(self, model) -> None:
        """`Neighbours.place`."""
        near, bodies, balls, planes, team = self._near, model.bodies, model.balls, model.planes, self.team.alike
        (position, orientation), flats, own = (bodies.position, bodies.orientation), near.flats, slice(*near.span)
        team.share(
            place_all, position, orientation, balls.centre[own], balls.body[own], near.places[own], planes.normal,
            flats.body, flats.points, flats.normals,
        )  # fmt: skip
        team.share(place_some, position, orientation, balls.centre, balls.body, self._placed, near.places)

    def follow(self, rows, h: float, anticipate: bool, before=None) -> None:
        """`Neighbours.follow`; where all lists are built anew, all bodies are known after it."""
        near, team, (first, after) = self._near, self.team.alike, self._near.span
        spheres, lists = near.spheres, near.lists
        if not near.covers():
            self._renew(rows, h, anticipate, before)
            return
        own = slice(first, after)
        found = team.share(
            self._wander, near.space, spheres.places[own], spheres.centre[own], spheres.body[own], rows,
            lists.reference[own], lists.margin[own], h if anticipate else 0.0, near.moved,
            np.zeros(team.threads, dtype=np.int64),
        )  # fmt: skip
        balls = first + near.moved[:found].astype(np.int64)
        moved, news = self.team.tell(balls, self._news(spheres.body[balls]))
        if not len(moved):
            return
        well = len(moved) <= near.few
        if well:
            bodies = spheres.body[moved]
            self._hear(bodies, news)
            team.share(place_some, *self._tables[:2], spheres.centre, spheres.body, moved, near.places)
            kept, near.moved[: len(moved)] = rows[bodies], moved
            if before is not None:
                rows[bodies] = faster(kept, before[bodies])
            far, some, fast = near.far(anticipate), near.moved[: len(moved)], np.union1d(self._fast, moved)
            fast = fast.astype(np.int32)
            well = look_up(near.space, some, spheres, rows, h, far, near.room, lists, near.span, fast)
            self._fast = fast[lists.margin[fast] > lists.base]
            rows[bodies] = kept
        if self.world.any(not well):
            self._renew(rows, h, anticipate, before)
            return
        near.changes += 1
        give, get = self._widen()
        self._tell_news(give, get)
        self._forget(bodies[~self._knows[bodies]])

    def _renew(self, rows, h: float, anticipate: bool, before) -> None:
        """Know all bodies, and build all lists anew."""
        self.gather()
        self._near.build(rows if before is None else faster(rows, before), h, anticipate, self.team.alike)
        self._near.list_all()

    def _news(self, rows) -> np.ndarray:
        """(n, 25) all that is known of some bodies."""
        position, orientation, *velocities = self._tables
        return np.concatenate([position[rows], orientation[rows], *(array[rows, :6] for array in velocities)], axis=1)

    def _hear(self, rows, news) -> None:
        """Know it here."""
        position, orientation, *velocities = self._tables
        position[rows], orientation[rows] = news[:, :3], news[:, 3:7]
        for k, array in enumerate(velocities):
            array[rows, :6] = news[:, 7 + 6 * k : 13 + 6 * k]

    def _tell_news(self, give, get) -> None:
        """Tell all that is known of the bodies ``give`` to each process, and hear of those to ``get``; place them."""
        world = self.world
        boxes = {k: np.empty((len(rows), 25)) for k, rows in enumerate(get) if len(rows)}
        out = {k: self._news(rows) for k, rows in enumerate(give) if len(rows)}
        requests = [world.receive(box, k, NEWS) for k, box in boxes.items()]
        world.wait(requests + [world.send(box, k, NEWS) for k, box in out.items()])
        for k, box in boxes.items():
            self._hear(get[k], box)
        if boxes:
            self.place(self._model)

    # ---- solution ----------------------------------------------------------------------------------------------------

    def invite(self, pairs, home) -> np.ndarray:
        """(n, guest) the bodies of some ``pairs`` (rows of both), for the process that sweeps them.

        Row, slab (``home`` of all), velocities at the start of the step and without contacts; position and orientation
        where lever arms count.
        """
        position, orientation, _, before, free = self._tables
        rows = np.unique(np.concatenate(pairs)).astype(np.int64)
        pose = (position[rows], orientation[rows]) if self._contacts.turned else ()
        return np.concatenate([rows[:, None], home[rows, None], before[rows, :6], free[rows, :6], *pose], axis=1)

    @property
    def guest(self) -> int:
        """Columns of a body that comes with a pair."""
        return GUEST + POSE * self._contacts.turned

    def receive(self, boxes, home) -> None:
        """Take in the bodies of pairs that others have found: see `invite`."""
        position, orientation, rows, before, free = self._tables
        guests = [np.zeros(0, dtype=np.int64)]
        for box in boxes:
            home[box[:, 0].astype(np.int64)] = box[:, 1]
            box = box[rows[box[:, 0].astype(np.int64), 6] > 0.0]  # others are known everywhere
            who = box[:, 0].astype(np.int64)
            before[who, :6] = box[:, 2:8]
            free[who, :6] = rows[who, :6] = box[:, 8:GUEST]
            if self._contacts.turned:
                position[who], orientation[who] = box[:, GUEST : GUEST + 3], box[:, GUEST + 3 :]
            guests.append(who)
        self._guests = np.concatenate(guests)

    def welcome(self, balls, mobility) -> None:
        """Place those ``balls`` of contacts that belong to bodies which came with them; the inertia of these."""
        body, some = self._model.balls.body, np.concatenate(balls).astype(np.int64)
        balls = np.unique(some[np.isin(body[some], self._guests)])
        self.team.alike.share(place_some, *self._tables[:2], self._model.balls.centre, body, balls, self._near.places)
        self.invert(self._guests, mobility.inverse, mobility.dimension)

    def invert(self, some, out, dimension: int) -> None:
        """Inverse inertias (N, 3, 3) of the bodies ``some`` (n,), into ``out``."""
        b = self._model.bodies
        self.team.alike.share(invert_some, some, b.kind, b.inertia, b.orientation, dimension, out, b.held)

    def domains(self, a, b, tray) -> domains.Domains:
        """The domain of this process, which sweeps contacts between the rows ``a`` and ``b`` (m,); see `order.Tray`."""
        rows = self._tables[2]
        bodies = touched(a, b, rows, self.known, self._guests, self._marks)
        found = domains.meet(self.world, rows, bodies, tray.home, tray.group)
        away = found.pushed[(found.pushed < self.first) | (found.pushed >= self.after)].astype(np.int64)
        owner = np.searchsorted(self._bounds, away, side="right") - 1
        self._away, self._due = [away[owner == k] for k in range(self.world.ranks)], True
        return found

    def _come_home(self) -> None:
        """Velocities of bodies that were swept here and belong to others, to these."""
        if not self._due:
            return
        self._due, world, rows, me = False, self.world, self._tables[2], self.world.rank
        counts = np.zeros((world.ranks, world.ranks), dtype=np.int64)
        counts[me] = list(map(len, self._away))
        world.wait([world.gather(counts, np.arange(world.ranks + 1))])
        boxes = [np.empty((counts[k, me], 7)) for k in range(world.ranks)]
        out = {k: np.concatenate([some[:, None], rows[some, :6]], axis=1) for k, some in enumerate(self._away)}
        requests = [world.receive(box, k, HOME) for k, box in enumerate(boxes) if len(box)]
        world.wait(requests + [world.send(box, k, HOME) for k, box in out.items() if len(box)])
        for box in boxes:
            rows[box[:, 0].astype(np.int64), :6] = box[:, 1:]

    def spread(self) -> None:
        """The velocities of the solution to all who know a body."""
        self._come_home()
        world, rows = self.world, self._tables[2]
        boxes = {k: np.empty((len(some), 6)) for k, some in enumerate(self._gets) if len(some)}
        out = {k: rows[some, :6] for k, some in enumerate(self._gives) if len(some)}
        requests = [world.receive(box, k, HALO) for k, box in boxes.items()]
        world.wait(requests + [world.send(box, k, HALO) for k, box in out.items()])
        for k, box in boxes.items():
            rows[self._gets[k], :6] = box

    def start_again(self) -> None:
        """Free velocities, for another solution of the same step."""
        _, _, rows, _, free = self._tables
        rows[self.known] = free[self.known]
