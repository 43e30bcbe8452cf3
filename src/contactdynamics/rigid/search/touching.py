"""What the searches for contacts of polygons and of polyhedra have in common: lists, memory, coming and going."""

import copy

import numpy as np

from ..._jit import Settled, kernel
from ...scenes.materials import COHESION, TENSION
from ...state import OPEN, SEPARATING
from ..motion import by_direction, invert_inertia
from ..space import Open, images
from ..threads import part
from .ball_contacts import HERE, normal_velocity
from .contract import CELLULAR, Candidates, Outlook, Overlap, head_of
from .ghosts import ghosts, lay, of_bodies, of_ghosts
from .laws import joint_rows, with_ghosts
from .recovery import recover_touches, turn_spins
from .touches import FIRST, SECOND, SIZE, Rules, Share, Touches, touch_arrays

ROOM = 1.3  # of arrays that follow the number of contacts, over what is needed
FEW = 8  # balls for each contact: where there are more, these take longer than the contacts


@kernel(inline=True)
def takes_part(gap, held, status, sticky, outlook, a, b, normal, point, position, size):
    """Whether a contact with a gap above `NEAR` is active (see `ball_contacts.takes_part`)."""
    if held and status > SEPARATING and (outlook.anticipate or sticky):
        return True
    if not outlook.anticipate:
        return False
    if held and outlook.keep:
        return True
    u = min(
        normal_velocity(outlook.one, a, b, normal, point, HERE, position),
        normal_velocity(outlook.two, a, b, normal, point, HERE, position),
    )
    return gap + outlook.h * u < -1e-9 * size


@kernel(inline=True)
def remember(memory, status, lost, at, old, was, gone, k):
    """The memory ``old``, the status ``was`` and what was lost, ``gone``, of row ``k``; none where it is negative."""
    status[at], lost[at] = (was[k], gone[k]) if k >= 0 else (OPEN, 0.0)
    for c in range(memory.shape[1]):
        memory[at, c] = old[k, c] if k >= 0 else 0.0


@kernel
def deepest_touch(gap, place):
    """The largest overlap (m), the largest one over the size of the smaller part, and its contact; -1 where none is."""
    depth, share, worst = 0.0, 0.0, -1
    for k in range(gap.size):
        depth = max(depth, -gap[k])
        if -gap[k] > share * place[k, SIZE]:
            share, worst = -gap[k] / place[k, SIZE], k
    return depth, share, worst


class Desk:
    """Where one worker searches: its scratch, the pairs on their way, and the contacts that it finds beside others."""

    def __init__(self, out):
        self.scratch, self.meetings, self.out = None, None, out

    def cleared(self) -> "Desk":
        """For lists of another length."""
        return Desk(self.out)


class Touching:
    """What the searches for contacts of polygons and of polyhedra have in common: see `Search`.

    A search says its ``dimension``, the ``name`` of its arrays in a checkpoint, and which of them these are (``kept``),
    and its bodies in words (``kind``). It has ``shapes``, a named tuple with the ``size`` of each part, which `_shape`
    makes and to which `_with_ghosts` adds copies of parts; the kernels ``placing``, which puts corners in their places,
    ``placing_some``, which does so for some balls, and ``finding``, which each thread calls for its `Share` with
    ``_scratch`` and ``_meetings`` of its own. The corners of balls are in `_runs`; ``_hints`` are what is noted of each
    pair in the neighbour lists.
    """

    size, rests, needs_inertia, sortable, divisible = "one's inner radius", True, True, True, True
    first, four = 1e-3, False  # four: whether joints of polyhedra are thinned to four contacts
    comes_back = ("memory", "status", "lost")
    goes = ("index", "a", "b", "gap", "place", "kind", *comes_back)

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        """Drop contacts and memory; arrays handed out before stay as they are."""
        self.found = self._last = touch_arrays(0, self.dimension)
        self._own_arrays()

    def _own_arrays(self) -> None:
        self._spare, self._filled = (touch_arrays(0, self.dimension) for _ in range(2))
        self._across, self.on_planes = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)

    def derive(self, model, near, first: int = 0) -> bool:
        """Follow the tables of the model; whether there are such bodies."""
        self.present = model.dimension == self.dimension and len(model.corners.body) > 0
        if not self.present:
            return False
        self._open, self._held = isinstance(near.space, Open), model.bodies.held > 0
        self._mixed = self._open and bool(self._held.any())  # contacts of bodies that are held are of another kind
        self.equations = type(self).equations + (CELLULAR,) * self._mixed if self._open else (CELLULAR,)
        for arrays in () if self._mixed else (self._spare, self._filled):
            arrays.kind[:] = self.equations[0]  # bodies that were held may have gone
        self.rules = self._rules(model)._replace(four=self.four)
        self._shape(model)
        self._hints, self._desks = self._hints_for(0), []
        self._find = Settled(self.finding) if self._open else self.finding
        return True

    def find(self, model, near, outlook: Outlook, team) -> dict:
        """Find the active contacts, with the memory of the present ones, which they replace; how many of which kind."""
        pose, planes = (model.bodies.position, model.bodies.orientation), len(near.flats.body)
        if self._open:
            where = near.spheres, near.listed, pose, outlook
            total = self._search(self.shapes, self.rules, near.flats, where, (near.span, near.beside), team.alike)
            self.on_planes = np.bincount(self.found.index[self.found.planes :, FIRST], minlength=planes)
            held = int(np.count_nonzero(self.found.kind == CELLULAR)) if self._mixed else 0
            return {self.equations[0]: total - held} | ({CELLULAR: held} if self._mixed else {})
        there, material = ghosts(near, len(outlook.one)), self.rules.material
        self.found = of_ghosts(there, self.found)
        joints = with_ghosts(self.rules.joints, there.body, there.real)
        rules = self.rules._replace(material=np.append(material, material[there.ball]), joints=joints)
        where = lay(there, near, pose, outlook)
        every = (0, len(where[0].radius)), None
        total = self._search(self._with_ghosts(there), rules, near.flats, where, every, team.alike)
        of_bodies(there, self.found)
        self._apart = self._images(near)
        self._across = self._apart.any(axis=1) if near.length else np.zeros(0, dtype=bool)
        return {CELLULAR: total}

    def _images(self, near) -> np.ndarray:
        """(K, 3) how far the second body is met from where it is, across the border of a cell, m."""
        t, out = self.found, np.zeros((len(self.found.status), 3))
        if not self._open:
            first, second = t.index[: t.planes, FIRST], t.index[: t.planes, SECOND]
            out[: t.planes] = images(near.space, near.places[second] - near.places[first])
        return out

    def _search(self, shapes, rules, flats, where, here, team) -> int:
        """Search alone, into the spare arrays; or each thread among its own balls, and put together what they found.

        ``here``: the balls whose contacts are looked for, and others that these may touch; None for all there are.
        """
        (spheres, lists, pose, outlook), (span, beside), threads = where, here, team.threads
        if len(self._hints) != len(lists.other):
            self._hints, self._desks = self._hints_for(len(lists.other)), [desk.cleared() for desk in self._desks]
        self._desks += [Desk(touch_arrays(0, self.dimension)) for _ in range(threads - len(self._desks))]
        columns, alone = (shapes, spheres, lists, flats, rules, pose, outlook), beside is None and threads == 1
        placed = (0, len(spheres.radius)) if beside is None else span

        def place(meeting):
            for begin, end in self._runs(shapes, *placed):
                first, after = part(end - begin, meeting)
                self.placing(pose, shapes, begin + first, begin + after)
            if beside is not None:
                first, after = part(len(beside), meeting)
                self.placing_some(pose, shapes, beside[first:after])

        if not alone:
            team.share(place)
        if threads == 1:
            total, pairs, self._spare = self._searched(columns, self._desks[0], self._spare, (*span, *span, alone))
            return self._take(self._spare, total, pairs)
        cuts = self._cuts(*span, threads)

        def search(meeting):
            k, desk = meeting.thread, self._desks[meeting.thread]
            share = *cuts[k : k + 2], *(span if k == threads - 1 else (0, 0)), False
            found[k], pairs[k], desk.out = self._searched(columns, desk, desk.out, share)

        found, pairs = [0] * threads, [0] * threads
        team.share(search)
        return self._join(found, sum(pairs))

    def _cuts(self, first: int, after: int, threads: int) -> list:
        """(threads + 1,) where the balls of each thread begin: those with as many contacts as others had before.

        Where contacts are few, as many balls. Not all of them hold such bodies, and those that do may stand together.
        """
        known, index, balls = self.found.planes, self.found.index, after - first
        if FEW * known < balls:
            return [first + balls * k // threads for k in range(threads + 1)]
        middle = [int(index[known * k // threads, FIRST]) + 1 for k in range(1, threads)]
        return [first, *(min(max(cut, first), after) for cut in middle), after]

    def _join(self, found, pairs: int) -> int:
        """Have what the threads have ``found``, ``pairs`` of it of pairs; returns the number of all.

        Contacts of one thread stand after those of another, as one would find them.
        """
        total, at = sum(found), 0
        if total > len(self._spare.status):
            self._spare = self.arrays(total)
        for desk, count in zip(self._desks, found, strict=False):
            for whole, some in zip(self._spare[:-2], desk.out[:-2], strict=True):  # all but their kinds
                whole[at : at + count] = some[:count]
            at += count
        return self._take(self._spare, total, pairs)

    def _searched(self, columns, desk, out, share) -> tuple[int, int, Touches]:
        """What one worker finds in its share: how many contacts, how many of pairs, and these in ``out`` or larger."""
        listed = len(columns[2].other)
        if desk.scratch is None:
            desk.scratch, desk.meetings = self._scratch(), self._meetings(listed, 0)
        while True:
            total, pairs = self._find(*columns, desk.scratch, desk.meetings, self.found, out, Share(*share))
            if total < 0:  # no room for what the pairs have
                desk.meetings = self._meetings(listed, pairs)
            elif total <= len(out.status):
                return total, pairs, out
            else:
                out = self.arrays(total)

    def may_close(self, near, rows, h) -> bool:
        """Whether a pair that is not active may close its gap within the time h: only `find` knows."""
        return True

    def recover(self, model, rows, which, opening, above, keep, most) -> float:
        """Open overlaps at the end of a step: see `ContactSet.recover`."""
        depth = -self.found.gap
        depth[which] -= opening
        depth /= self.found.place[:, SIZE]
        if not depth.max(initial=0.0) > above:
            return 0.0
        return self._opened(model, (rows,), depth, keep, most)

    def give_back(self, model, velocities, above, keep) -> float | None:
        """Open what contacts have lost: see `ContactSet.detect`."""
        lost, size = self.found.lost, self.found.place[:, SIZE]
        share = lost / size
        if not share.max(initial=0.0) > above:
            return None
        work = self._opened(model, velocities, share, keep, np.inf)
        lost[:] = np.maximum(0.0, share * size)
        return work

    def _opened(self, model, velocities, depth, keep, most) -> float:
        """Move and turn bodies apart until no contact is deeper than ``keep``; ``depth`` (K,) becomes what is left.

        With a body turn its spins in the ``velocities``, arrays (N, 8). Returns the work against gravity.
        """
        b, before = model.bodies, model.bodies.orientation.copy()
        inverse = np.empty((len(b.mass), 3, 3))
        invert_inertia(b.kind, b.inertia, b.orientation, self.dimension, inverse, b.held)
        apart = np.zeros((len(depth), 3)) if self._open else self._apart
        work = recover_touches((b.position, b.orientation), self.found, apart, (by_direction(b), inverse), depth, keep,
                               most, model.gravity, b.mass)  # fmt: skip
        for rows in velocities if self.dimension == 3 else ():
            turn_spins(before, b.orientation, rows)
        return work

    def owes(self, model, above: float) -> bool:
        """Whether some contact has lost more than ``above`` of its size."""
        return bool((self.found.lost > above * self.found.place[:, SIZE]).any())

    def extremes(self) -> tuple:
        """Of those found: largest overlap, m, and over the size of the smaller part, its place; the largest gap, m."""
        return *deepest_touch(self.found.gap, self.found.place), float(self.found.gap.max(initial=0.0))

    def first_of(self, touches) -> np.ndarray:
        """(K,) the first balls, or planes."""
        return touches.index[:, FIRST]

    def balls_of(self, touches) -> np.ndarray:
        """(n,) all balls."""
        return np.concatenate([touches.index[: touches.planes, FIRST], touches.index[:, SECOND]])

    def sizes(self, model) -> np.ndarray:
        """(S,) radii of the balls inside the convex parts."""
        return self.shapes.size

    def arrays(self, total: int) -> Touches:
        """A list with room for so many contacts and some more."""
        arrays = touch_arrays(int(ROOM * total) + 64, self.dimension)
        arrays.kind[:] = self.equations[0]
        return arrays

    def _take(self, filled: Touches, total: int, planes: int) -> int:
        """Have the first ``total`` contacts of what was ``filled``."""
        self._spare, self._filled = self._filled, filled
        self._last, self.found = self.found, head_of(filled, total, planes, self._last)
        if self._mixed:
            held = self._held[self.found.a] | self._held[self.found.b]
            self.found.kind[:] = np.where(held, CELLULAR, self.equations[0])
        return total

    @classmethod
    def _rules(cls, model) -> Rules:
        sticky = (model.laws[:, [COHESION, TENSION]] > 0).any(axis=1)
        return Rules(model.law_index, sticky, model.balls.material, joint_rows(model), False)

    @property
    def status(self) -> np.ndarray:
        """(K,) of the active contacts."""
        return self.found.status

    @property
    def lost(self) -> np.ndarray:
        """(K,) how much deeper they are than the law has it, m."""
        return self.found.lost

    def candidates(self) -> Candidates:
        """The active contacts."""
        t = self.found
        return Candidates(t.a, t.b, t.kind, float(t.gap.max(initial=0.0)), self._across)

    def points(self, near, places) -> np.ndarray:
        """(k, 3) where the contacts in these ``places`` act."""
        out = np.zeros((len(places), 3))
        out[:, : self.dimension] = self.found.place[places, 1 + self.dimension :]
        return out

    def branches(self, model, near) -> tuple[np.ndarray, np.ndarray]:
        """(K, 3) impulses and (K, 3) vectors between the centres."""
        t, position, d = self.found, model.bodies.position, self.dimension
        impulse, point = np.zeros((len(t.status), 3)), np.zeros((len(t.status), 3))
        impulse[:, :d], point[:, :d] = t.memory[:, :d], t.place[:, 1 + d : 1 + 2 * d]
        branch, pairs = position[t.b] - point, slice(0, t.planes)
        branch[pairs] += point[pairs] - position[t.a[pairs]]
        return impulse, branch + self._images(near)

    def deepest(self, model) -> Overlap:
        """The largest overlaps."""
        t = self.found
        depth, share, k = deepest_touch(t.gap, t.place)
        return Overlap(depth, share, *((int(t.a[k]), int(t.b[k])) if k >= 0 else (-1, -1)))

    def overlaps(self, model) -> np.ndarray:
        """(K,) overlaps over the size of the smaller part."""
        return -self.found.gap / self.found.place[:, SIZE]

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        t = self.found
        first, second = t.index[:, FIRST], t.index[:, SECOND]
        keep = np.concatenate([ball[first[: t.planes]], plane[first[t.planes :]]]) & ball[second]
        split = int(keep[: t.planes].sum())
        index, new_ball, new_plane = t.index[keep], np.cumsum(ball) - 1, np.cumsum(plane) - 1
        index[:split, FIRST] = new_ball[index[:split, FIRST]]
        index[split:, FIRST] = new_plane[index[split:, FIRST]]
        index[:, SECOND] = new_ball[index[:, SECOND]]
        self.found = Touches(*(array[keep] for array in t[:-1]), split)._replace(index=index)

    def second_bodies(self, model) -> np.ndarray:
        """(K,) the second bodies of the contacts."""
        return model.balls.body[self.found.index[:, SECOND]]

    def renumber(self, order: np.ndarray) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k; the tables of parts are still those before.

        Sorted again; where the two change places, so do names, and so does the sign.
        """
        t, new = self.found, np.argsort(order).astype(np.int32)
        index, place, pairs = t.index.copy(), t.place.copy(), np.arange(len(t.status)) < t.planes
        second = new[index[:, SECOND]]
        first = np.where(pairs, new[index[:, FIRST] * pairs], index[:, FIRST])
        turn = pairs & (first > second)
        self._turn_names(index, turn)
        index[:, FIRST], index[:, SECOND] = np.where(turn, second, first), np.where(turn, first, second)
        sign = np.where(turn, -1.0, 1.0)[:, None]
        place[:, 1 : 1 + self.dimension] *= sign
        turned = t._replace(
            index=index, place=place, memory=sign * t.memory, a=np.where(turn, t.b, t.a), b=np.where(turn, t.a, t.b)
        )
        sort = np.lexsort((index[:, SECOND], index[:, FIRST], ~pairs))  # stable
        self.found = Touches(*(array[sort] for array in turned[:-1]), t.planes)

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        t = self.found
        held = np.flatnonzero(t.status)
        arrays = {f"{self.name}_{column}": getattr(t, column)[held] for column in self.kept}
        return arrays | {f"{self.name}_planes": np.array([int((held < t.planes).sum())])}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint; files without such bodies have none."""
        self.forget()
        if f"{self.name}_index" in checkpoint:
            found = touch_arrays(len(checkpoint[f"{self.name}_status"]), self.dimension)
            for column in self.kept:  # old files do not say what was lost
                getattr(found, column)[:] = checkpoint.get(f"{self.name}_{column}", 0)
            self.found = found._replace(planes=int(checkpoint[f"{self.name}_planes"][0]))

    def trial(self):
        """A copy that goes on with the memory, in arrays of its own."""
        other = copy.copy(self)
        other._own_arrays()
        if self.present:
            other._own_shapes()
            other._hints, other._desks = self._hints.copy(), []
        return other
