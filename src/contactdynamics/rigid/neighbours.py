"""Neighbour lists that follow the motion: which balls may touch, and where all balls and planes are.

Each ball i owns a list of the balls j > i that are nearer than the sum of their two margins. A ball has its own
reference place; while it has not moved farther than its margin, the lists are complete for it. A ball that has is
looked up again alone: cells, its own list, and its entry in the lists of others. Fast balls have larger margins, up to
a bound: memory and time of a search do not grow with the speed. So a few falling grains cost nothing to a heap at rest;
when many balls need it, all lists are built anew.

`Neighbours` owns the lists; every search reads them. Clusters and polygons have balls too, which hold their parts.
"""

import copy
import math
from typing import NamedTuple

import numpy as np

from .. import quaternions
from .._jit import Settled, kernel
from ..state import FREE
from .crew import enlist
from .fetch import shift_down
from .growing import grown, longer
from .pages import zeros
from .space import OPEN, cell_beside, cell_of, half, shortest, span
from .threads import ALONE, Team, meet, part

CELL_GROWTH = 2.0  # buckets of the hash table per ball
REACH = 10.0  # of the largest radius: the farthest that is looked ahead; `watch` tells of bodies that go farther
SLACK = 3  # empty places in a list, so that a neighbour can come without a rebuild
SPARE = 16  # places in the list of a ball that comes


class Lists(NamedTuple):
    """Neighbour lists and the cells they come from; S balls."""

    start: np.ndarray  # (S+1,) where the list of a ball begins
    count: np.ndarray  # (S,) its length
    other: np.ndarray  # (room,) the neighbours j > i, sorted in each list
    reference: np.ndarray  # (S, 3) where the ball was looked up last
    margin: np.ndarray  # (S,) how far it may move from there
    bucket: np.ndarray  # (S,) its bucket in the hash table of cells
    head: np.ndarray  # (buckets,) first ball of a bucket, -1 where empty
    after: np.ndarray  # (S,) next ball in the bucket
    before: np.ndarray  # (S,) previous one, -1 at the head
    cell: float  # size of a cell, m
    base: float  # the margin of slow balls, m
    largest: float  # radius of the largest ball, m


class Flats(NamedTuple):
    """The planes (K,) where they are."""

    points: np.ndarray  # (K, 3) m
    normals: np.ndarray  # (K, 3)
    body: np.ndarray  # (K,)
    material: np.ndarray  # (K,)


class Listed(NamedTuple):
    """The neighbour lists alone, as searches read them."""

    start: np.ndarray
    count: np.ndarray
    other: np.ndarray


class Spheres(NamedTuple):
    """The balls of a scene where they are now (S,)."""

    places: np.ndarray  # (S, 3) m
    radius: np.ndarray  # (S,) m
    centre: np.ndarray  # (S, 3) in the axes of the body, m
    body: np.ndarray  # (S,)
    kind: np.ndarray  # (N,) of the bodies
    deep: int  # 1 in three dimensions, 0 in the plane


NO_SPHERES = Spheres(np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)), *(np.zeros(0, dtype=np.int64),) * 2, 0)


def first_ball(model, row: int) -> int:
    """The first ball of the bodies from a ``row`` on: balls stand in the order of their bodies."""
    return int(np.searchsorted(model.balls.body, row)) if row else 0


@kernel
def place_balls(position, orientation, centre, body, begin, end, out):
    """Centres of the balls from ``begin`` on, before ``end``, in space, into ``out`` (S, 3)."""
    for i in range(begin, end):
        k = body[i]
        x, y, z = position[k, 0], position[k, 1], position[k, 2]
        if centre[i, 0] != 0.0 or centre[i, 1] != 0.0 or centre[i, 2] != 0.0:
            dx, dy, dz = quaternions.rotate(orientation[k], centre[i, 0], centre[i, 1], centre[i, 2])
            x, y, z = x + dx, y + dy, z + dz
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


@kernel
def place_all(position, orientation, balls, ball_body, places, planes, plane_body, points, normals, meeting):
    """Centres of the ``balls`` (S, 3), points and normals of the ``planes`` (K, 3) in space."""
    enlist(meeting)
    begin, end = part(ball_body.size, meeting)
    place_balls(position, orientation, balls, ball_body, begin, end, places)
    for p in range(plane_body.size if meeting.thread == 0 else 0):
        k = plane_body[p]
        x, y, z = quaternions.rotate(orientation[k], planes[p, 0], planes[p, 1], planes[p, 2])
        normals[p, 0], normals[p, 1], normals[p, 2] = 0.0 + x, 0.0 + y, 0.0 + z  # no -0.0
        points[p, 0], points[p, 1], points[p, 2] = position[k, 0], position[k, 1], position[k, 2]


@kernel(inline=True)
def _bucket(x, y, z, mask):
    return (x * 73856093 ^ y * 19349663 ^ z * 83492791) & mask


@kernel(inline=True)
def _speed(rows, body, centre, i):
    """A bound of the speed of the ball ``i`` at ``centre[i]`` of ``body``."""
    v = np.sqrt(rows[body, 0] ** 2 + rows[body, 1] ** 2 + rows[body, 2] ** 2)
    arm = centre[i, 0] ** 2 + centre[i, 1] ** 2 + centre[i, 2] ** 2
    if arm > 0.0:
        w = np.sqrt(rows[body, 3] ** 2 + rows[body, 4] ** 2 + rows[body, 5] ** 2) / rows[body, 7]
        v += w * np.sqrt(arm)
    return v


@kernel
def wanderers(space, places, centre, body, rows, reference, margin, ahead, out, counts, meeting):
    """Balls that have left their margin, or would within the time ``ahead``; returns their number.

    Each thread has some of the balls, and leaves as many as it finds in ``counts`` (threads,).
    """
    enlist(meeting)
    begin, end = part(margin.size, meeting)
    found = begin
    for i in range(begin, end):
        x, y, z = shortest(
            space, places[i, 0] - reference[i, 0], places[i, 1] - reference[i, 1], places[i, 2] - reference[i, 2]
        )
        square = x * x + y * y + z * z
        if ahead > 0.0:
            square = (np.sqrt(square) + ahead * _speed(rows, body[i], centre, i)) ** 2
        if square >= margin[i] * margin[i]:
            out[found] = i
            found += 1
    counts[meeting.thread] = found - begin
    meet(meeting, rows)
    total = counts[0]
    if meeting.thread == 0:
        for other in range(1, meeting.threads):
            begin = margin.size * other // meeting.threads
            shift_down(out, begin, begin + counts[other], total)
            total += counts[other]
    return total


@kernel(inline=True)
def _enter_bucket(i, b, head, after, before, bucket):
    """Put ball ``i`` at the head of the bucket ``b``."""
    bucket[i], after[i], before[i] = b, head[b], -1
    if head[b] >= 0:
        before[head[b]] = i
    head[b] = i


@kernel
def link_cells(space, places, first, cell, head, after, before, bucket):
    """Put the balls from number ``first`` on into the hash table of cells; the last one first."""
    mask = head.size - 1
    for i in range(places.shape[0] - 1, first - 1, -1):
        x, y, z = cell_of(space, places[i, 0], places[i, 1], places[i, 2], cell)
        _enter_bucket(i, _bucket(x, y, z, mask), head, after, before, bucket)


@kernel
def move_in_cells(space, i, place, cell, head, after, before, bucket):
    """Take ball ``i`` out of its bucket and put it into that of its present ``place``."""
    x, y, z = cell_of(space, place[0], place[1], place[2], cell)
    b = _bucket(x, y, z, head.size - 1)
    if b == bucket[i]:
        return
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[bucket[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
    _enter_bucket(i, b, head, after, before, bucket)


@kernel(inline=True)
def _can_touch(i, j, body, kind):
    return body[i] != body[j] and (kind[body[i]] == FREE or kind[body[j]] == FREE)


@kernel(inline=True)
def _near(space, i, j, reference, radius, margin):
    """Whether i and j may meet without either leaving its margin: by their reference places, not the present ones."""
    x, y, z = shortest(
        space, reference[j, 0] - reference[i, 0], reference[j, 1] - reference[i, 1], reference[j, 2] - reference[i, 2]
    )
    reach = radius[i] + radius[j] + margin[i] + margin[j]
    return x * x + y * y + z * z < reach * reach or reach >= half(space)  # beyond, no image need be the shortest


@kernel
def search(space, i, spheres, lists, above, near, fast):
    """Neighbours of ball ``i`` (only j > i where ``above``) into ``near`` (S,), sorted, each once; returns how many.

    ``fast`` are the balls with margins above the base: they may be farther from i than its search by cells goes.
    """
    places, radius, body, kind, deep = spheres.places, spheres.radius, spheres.body, spheres.kind, spheres.deep
    reference, margin, head, after = lists.reference, lists.margin, lists.head, lists.after
    cell, base = lists.cell, lists.base
    held = 0
    for n in range(fast.size):
        j = fast[n]
        if (j > i or not above) and j != i and _can_touch(i, j, body, kind):
            if _near(space, i, j, reference, radius, margin):
                near[held] = j
                held += 1
    reach = radius[i] + lists.largest + margin[i] + 2.0 * base  # others have moved up to `base` from their cells
    steps = int(np.ceil(reach / cell))
    mask = head.size - 1
    cx, cy, cz = cell_of(space, places[i, 0], places[i, 1], places[i, 2], cell)
    first_x, last_x = span(space, 0, steps, cell)
    first_y, last_y = span(space, 1, steps, cell)
    first_z, last_z = span(space, 2, steps * deep, cell)
    for dx in range(first_x, last_x + 1):
        for dy in range(first_y, last_y + 1):
            for dz in range(first_z, last_z + 1):
                x, y, z = cell_beside(space, cx + dx, cy + dy, cz + dz, cell)
                j = np.int64(head[_bucket(x, y, z, mask)])
                while j >= 0:
                    if (j > i or not above) and j != i and margin[j] <= base:
                        if _near(space, i, j, reference, radius, margin):
                            # a bucket may hold several cells: take the ball only in its own one
                            u, v, w = cell_of(space, reference[j, 0], reference[j, 1], reference[j, 2], cell)
                            own = u == x and v == y and w == z
                            if own and _can_touch(i, j, body, kind):
                                near[held] = j
                                held += 1
                    j = np.int64(after[j])
    for k in range(1, held):  # insertion sort: a dozen neighbours
        value, at = near[k], k
        while at > 0 and near[at - 1] > value:
            near[at] = near[at - 1]
            at -= 1
        near[at] = value
    return held


@kernel
def build_lists(space, spheres, near, fast, lists, span, needs, meeting):
    """The lists of the balls of a ``span`` from the cells; returns the room they need.

    With too little room in ``other`` nothing is valid. Each thread has some of the balls and a part of the room, and
    needs so much of it, ``needs`` (threads,); what they find is put together. ``near`` (threads, S).
    """
    enlist(meeting)
    start, count, other, threads, mine = lists.start, lists.count, lists.other, needs.size, near[meeting.thread]
    thread, balls = meeting.thread, span[1] - span[0]
    first, after = span[0] + balls * thread // threads, span[0] + balls * (thread + 1) // threads
    begin, end = other.size * thread // threads, other.size * (thread + 1) // threads
    at = begin
    for i in range(first, after):
        held = search(space, i, spheres, lists, fast.size >= 0, mine, fast)  # True, but no constant: one signature
        start[i], count[i] = at, held
        if at + held <= end:
            for n in range(held):
                other[at + n] = mine[n]
        at += held + SLACK
    needs[thread] = at - begin
    meet(meeting, spheres.places)
    total, most, before = 0, 0, 0
    for part_ in range(threads):
        before += needs[part_] if part_ < thread else 0
        total += needs[part_]
        most = max(most, needs[part_])
    if most > other.size // threads:
        return threads * (most + 1)
    for i in range(first, after):
        start[i] += before - begin
    meet(meeting, spheres.places)  # the first list of a thread ends that of the one before
    if thread == 0:
        start[span[1] :], before = total, 0
        for part_ in range(threads):
            begin = other.size * part_ // threads
            shift_down(other, begin, begin + needs[part_], before)
            before += needs[part_]
    meet(meeting, spheres.places)
    return total


@kernel
def insert(space, i, j, spheres, lists):
    """Enter j into the sorted list of i, if it is not there; False where the list is full even after a purge."""
    start, count, other = lists.start, lists.count, lists.other
    s = start[i]
    n = count[i]
    at = n
    while at > 0 and other[s + at - 1] >= j:
        at -= 1
    if at < n and other[s + at] == j:
        return True
    if s + n == start[i + 1]:  # full: drop those that have gone
        kept = 0
        for k in range(n):
            if _near(space, i, np.int64(other[s + k]), lists.reference, spheres.radius, lists.margin):
                other[s + kept] = other[s + k]
                kept += 1
        if kept == n:
            return False
        count[i] = n = kept
        at = n
        while at > 0 and other[s + at - 1] >= j:
            at -= 1
    for k in range(n, at, -1):
        other[s + k] = other[s + k - 1]
    other[s + at] = j
    count[i] += 1
    return True


@kernel(inline=True)
def own_margin(travel, base, far):
    """The margin of a ball that goes ``travel`` in a step; ``far`` at most, also where the speed is no number."""
    if 1.5 * travel <= base:
        return base
    return max(base, 3.0 * travel if 3.0 * travel < far else far)


@kernel
def own_margins(travel, base, far):
    """`own_margin` of many balls (S,)."""
    out = np.empty(travel.size)
    for i in range(travel.size):
        out[i] = own_margin(travel[i], base, far)
    return out


@kernel
def look_up(space, moved, spheres, rows, ahead, far, near, lists, span, some):
    """Renew the lists of the balls ``moved``; False where a list overflows and all must be built anew.

    Of the balls of a ``span`` alone, as all lists. Balls that are fast, now or after it, are among ``some`` (k,).
    """
    places, margin, base = spheres.places, lists.margin, lists.base
    for k in range(moved.size):
        i = np.int64(moved[k])
        for c in range(3):
            lists.reference[i, c] = places[i, c]
        margin[i] = own_margin(ahead * _speed(rows, spheres.body[i], spheres.centre, i), base, far)
        move_in_cells(space, i, places[i], lists.cell, lists.head, lists.after, lists.before, lists.bucket)
    count = 0
    for k in range(some.size):
        count += margin[some[k]] > base
    fast = np.empty(count, dtype=np.int64)
    count = 0
    for k in range(some.size):
        if margin[some[k]] > base:
            fast[count] = some[k]
            count += 1
    for k in range(moved.size):
        i = np.int64(moved[k])
        held = search(space, i, spheres, lists, fast.size < 0, near, fast)
        lists.count[i] = 0
        for n in range(held):
            j = np.int64(near[n])
            if span[0] <= min(i, j) < span[1] and not insert(space, min(i, j), max(i, j), spheres, lists):
                return False
    return True


def build(space, spheres: Spheres, rows, ahead: float, far: float, small: float, span, team: Team = ALONE) -> Lists:
    """Neighbour lists of the balls of a ``span``: its first one and that after the last.

    Margins follow the typical speed of all balls, those of fast balls their own, up to ``far``.
    """
    s, body = len(spheres.radius), spheres.body
    speed = np.sqrt((rows[body, :3] ** 2).sum(axis=1))
    arm = np.sqrt((spheres.centre**2).sum(axis=1))
    if arm.any():
        speed = speed + arm * np.sqrt((rows[body, 3:6] ** 2).sum(axis=1)) / rows[body, 7]
    typical = float(np.quantile(speed, 0.9)) if s else 0.0
    largest = float(spheres.radius.max()) if s else 1.0
    base = min(max(0.15 * small, 3.0 * ahead * typical), largest)
    margin = own_margins(ahead * speed, base, far)
    fast = np.flatnonzero(margin > base)
    buckets = 1 << max(4, int(np.ceil(np.log2(max(1, CELL_GROWTH * s)))))
    bucket, after, before = (np.empty(s, dtype=np.int32) for _ in range(3))
    start, count, head = np.zeros(s + 1, dtype=np.int64), np.zeros(s, dtype=np.int32), np.full(buckets, -1, np.int32)
    near = np.empty((team.threads, s), dtype=np.int32)
    needs = np.zeros(team.threads, dtype=np.int64)
    reference, cell, room = spheres.places.copy(), 2.0 * largest + 3.0 * base, 8 * (span[1] - span[0])
    link_cells(space, reference, 0, cell, head, after, before, bucket)
    while True:
        other = zeros(room, np.int32)
        found = Lists(start, count, other, reference, margin, bucket, head, after, before, cell, base, largest)
        need = team.share(build_lists, space, spheres, near, fast, found, span, needs)
        if need <= room:
            return found
        room = need


def extend(space, old: Lists, places: np.ndarray, largest: float) -> Lists | None:
    """The lists with room for balls that were added at the end; None where they must be built anew.

    The new balls have no margin yet: the next step looks them up. ``largest`` radius of all of them.
    """
    known, new = len(old.count), len(places) - len(old.count)
    if largest > old.largest or len(places) > 2 * len(old.head):
        return None
    end, none = int(old.start[-1]), np.zeros(new, dtype=np.int32)
    found = old._replace(
        start=grown(old.start, known + 1, end + SPARE * np.arange(1, new + 1)),
        other=grown(old.other, end, np.zeros(SPARE * new, dtype=np.int32)),
        reference=grown(old.reference, known, places[known:]),
        margin=grown(old.margin, known, np.zeros(new)),
        **{name: grown(getattr(old, name), known, none) for name in ("count", "bucket", "after", "before")},
    )  # fmt: skip
    link_cells(space, places, known, found.cell, found.head, found.after, found.before, found.bucket)
    return found


def faster(rows, others) -> np.ndarray:
    """(N, 8) of two sets of velocities that with the larger speed for each body, and the larger spin."""
    out = rows.copy()
    for columns in (slice(0, 3), slice(3, 6)):
        more = (others[:, columns] ** 2).sum(axis=1) > (rows[:, columns] ** 2).sum(axis=1)
        out[more, columns] = others[more, columns]
    return out


class Neighbours:
    """Where balls and planes are, and which balls are near each other."""

    def __init__(self, space=OPEN, length: float = 0.0):
        self.space, self.lists = space, None
        self.length = length  # of a cell that moves: see `equations.full`, m
        self.any = bool  # whether something is true on some process: lists that several share are built anew by all
        self.changes = 0  # of the lists, so far
        self.shares, self._built_shares = (), None  # where balls are cut, if processes share them; as lists were built
        self.beside = None  # balls beyond the ``span`` that are known too, (n,); None where all are
        self._built = space  # in which the lists were built, and in whose places they are kept
        self._back = None  # the present places in there, and the strain since then, where they were asked for

    def _kept(self) -> tuple[Spheres, float]:
        """The balls where they would be had the cell not moved since the lists were built, and the strain since then.

        A flow that carries all balls with the cell leaves them in their places there.
        """
        if self.space is self._built or self.space == self._built:
            return self.spheres, 0.0
        if self._back is None:
            (now, from_now), (then, from_then) = (np.array(s[:18]).reshape(2, 3, 3) for s in (self.space, self._built))
            strain = float(np.abs(now @ from_then - np.eye(3)).sum())
            self._back = np.ascontiguousarray(self.places @ (then @ from_now).T), strain
        return self.spheres._replace(places=self._back[0]), self._back[1]

    def derive(self, model, first: int = 0) -> None:
        """Follow the balls and planes of the model: at the start, when bodies come or go, or are sorted.

        Lists are built anew at the next step, unless bodies have come, from row ``first`` on, and no others changed.
        """
        if not first:
            self.lists, self.spheres, self.largest, self.reach = None, NO_SPHERES, 0.0, 0.0
            self.moved = self.room = self._every = np.zeros(0, dtype=np.int32)
            self._wanderers, self._place_all, self._look_up = Settled(wanderers), Settled(place_all), Settled(look_up)
        balls, count, known = model.balls, len(model.balls.radius), first_ball(model, first)
        radius, centre, planes = balls.radius[known:], balls.centre[known:], len(model.planes.body)
        self.span, self.beside = (0, count), None
        self.spheres = Spheres(
            longer(self.places, count, 3), balls.radius, balls.centre, balls.body, model.bodies.kind,
            model.dimension - 2,
        )  # fmt: skip
        self.moved = longer(self.moved, count)  # balls that have left their margin
        self.room = longer(self.room, count)  # for neighbours of one ball
        self._every = grown(self._every, known, np.arange(known, count, dtype=np.int32))
        self.largest = float(radius.max(initial=self.largest))
        self.smallest = float(radius.min(initial=self.smallest if known else math.inf)) if count else 1.0
        # No two free bodies that touch are farther apart; fixed and driven ones may be as wide as they like.
        arm = np.sqrt(np.einsum("ij,ij->i", centre, centre)) + radius
        arm = arm[model.bodies.kind[balls.body[known:]] == FREE]
        self.reach = max(self.reach, 2.0 * float(arm.max(initial=0.0)))
        self.flats = Flats(np.empty((planes, 3)), np.empty((planes, 3)), model.planes.body, model.planes.material)
        if self.lists is not None:
            self.place(model, known)
            self.lists = extend(self._built, self.lists, self._kept()[0].places, self.largest)

    @property
    def places(self) -> np.ndarray:
        """(S, 3) centres of the balls in space, m."""
        return self.spheres.places

    def place(self, model, first: int = 0, team: Team = ALONE) -> None:
        """Put the balls from the number ``first`` on, and planes, where their bodies are."""
        bodies, balls, planes, flats = model.bodies, model.balls, model.planes, self.flats
        self._position, self._back = bodies.position, None
        team.share(
            self._place_all, bodies.position, bodies.orientation, balls.centre[first:], balls.body[first:],
            self.places[first:], planes.normal, flats.body, flats.points, flats.normals,
        )  # fmt: skip

    def _carried(self, rows) -> np.ndarray:
        """The velocities of the bodies beyond that of a moving cell, which carries the places of the lists."""
        if not self.length:
            return rows
        gradient = rows[-3:, :3] / self.length  # its transpose
        rows = rows.copy()
        rows[:-3, :3] -= self._position @ gradient
        return rows

    def look(self, model, rows, h: float, anticipate: bool, team: Team) -> None:
        """Put balls and planes where their bodies are, and keep the lists complete."""
        self.place(model, team=team)
        self.follow(rows, h, anticipate, team=team)

    def follow(self, rows, h: float, anticipate: bool, before=None, team: Team = ALONE) -> None:
        """Keep the lists complete, and ``listed`` what searches read of them.

        ``before`` are velocities by which pairs were found already, which stay in the lists whatever the ``rows`` are.
        """
        self._renew(rows, h, anticipate, before, team)
        self.list_all()

    def list_all(self) -> None:
        """Let searches read the present lists."""
        self.listed = Listed(self.lists.start, self.lists.count, self.lists.other)

    def _renew(self, rows, h: float, anticipate: bool, before, team: Team) -> None:
        """Look up the balls that have left their margin, or build all lists anew."""
        lists, rows = self.lists if self.covers() else None, self._carried(rows)
        if lists is not None:
            ahead = h if anticipate else 0.0
            spheres, strain = self._kept()
            # two balls that are carried along come nearer by the strain of their distance
            if strain * (self.largest + lists.base) < 0.3 * lists.base:
                margin = lists.margin * (1.0 - strain) - strain * self.largest if strain else lists.margin
                moved = team.share(
                    self._wanderers, self._built, spheres.places, spheres.centre, spheres.body, rows,
                    lists.reference, margin, ahead, self.moved, np.zeros(team.threads, dtype=np.int64),
                )  # fmt: skip
                if moved == 0:
                    return
                if before is not None:
                    rows = faster(rows, self._carried(before))
                well = moved <= self.few and self._look_up(
                    self._built, self.moved[:moved], spheres, rows, float(h), self.far(anticipate), self.room, lists,
                    self.span, self._every,
                )  # fmt: skip
                self.changes += 1
                if not self.any(not well):
                    return
        self.build(rows, h, anticipate, team)

    @property
    def few(self) -> int:
        """Balls that are looked up alone; for more of them, all lists are built anew."""
        return 16 + len(self.spheres.radius) // 20

    def far(self, anticipate: bool) -> float:
        """The largest margin, m."""
        # Without anticipation only present places count: a wide margin saves work, and nothing hangs on it.
        return (REACH if anticipate else 1.0) * self.largest

    def build(self, rows, h: float, anticipate: bool, team: Team) -> None:
        """All lists anew, for these velocities."""
        self._built, self._back, self._built_shares = self.space, None, self.shares
        self.lists = build(self.space, self.spheres, rows, h, self.far(anticipate), self.smallest, self.span, team)
        self.changes += 1

    def covers(self) -> bool:
        """Whether all balls of the span have lists: those that came later are at the end."""
        return self.shares == self._built_shares

    def trial(self) -> "Neighbours":
        """A copy with arrays of its own."""
        other = copy.copy(self)
        other.spheres = self.spheres._replace(places=np.empty_like(self.places))
        points, normals = np.empty_like(self.flats.points), np.empty_like(self.flats.normals)
        other.flats = self.flats._replace(points=points, normals=normals)
        other.lists = self.lists and Lists(*map(copy.copy, self.lists))
        return other
