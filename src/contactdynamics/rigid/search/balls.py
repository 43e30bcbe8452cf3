"""The search for contacts of balls and planes: it remembers the active pairs from step to step.

How they are found is in `ball_contacts`; the list itself in `pairs`.
"""

import copy
from typing import NamedTuple

import numpy as np

from ..._jit import Settled
from ...scenes.materials import COHESION, FRICTION_1, FRICTION_2, RHO, ROLLING, SPINNING, TAU, TENSION
from ...state import SEPARATING
from ..growing import grown
from ..motion import by_direction
from ..neighbours import first_ball
from .ball_contacts import SPARE, Rules, crossing, find_pairs
from .contract import BORDER, DIAGONAL, FULL, NEAR, Candidates, Outlook, Overlap, head_of
from .laws import joint_rows
from .left_out import some_close
from .pairs import ROOM, Pairs, deepest_pair, lost_most, pair_arrays, renumber
from .recovery import recover_pairs

MEMORY = ("first", "second", "impulse", "moment", "status", "lost")


def turning(model, rows) -> np.ndarray:
    """Which bodies in ``rows`` (n,) have a spin that is prescribed and not surely zero: only a constant is."""
    which = [
        identity for identity, (_, spin) in model.drives.items()
        if getattr(spin, "kind", "") != "constant" or np.any(spin(0.0))
    ]  # fmt: skip
    return np.array([identity in which for identity in model.bodies.identity[rows].tolist()], dtype=bool)


class Shapes(NamedTuple):
    """What bodies and their balls are."""

    simple: np.ndarray  # (N,) without lever arms
    outlined: np.ndarray  # (S,) balls that only hold a part of a polygon
    present: bool  # whether there are others
    light: bool  # whether these, and planes, are without lever arms
    shaped: bool  # whether some ball is outlined


class Laws(NamedTuple):
    """What laws are."""

    table: np.ndarray  # (L, COLUMNS) the laws themselves
    simple: np.ndarray  # (L,) Coulomb's, isotropic
    sticky: np.ndarray  # (L,) with cohesion or tension
    near: np.ndarray  # (L,) see `Rules`
    all_simple: bool
    some_sticky: bool


def looked_at(laws: np.ndarray) -> Laws:
    """The ``laws`` (L, COLUMNS) of a model."""
    isotropic = laws[:, FRICTION_1] == laws[:, FRICTION_2]
    simple = isotropic & (laws[:, [TAU, ROLLING, SPINNING, COHESION, TENSION]] == 0).all(axis=1)
    sticky = (laws[:, [COHESION, TENSION]] > 0).any(axis=1)
    near = np.where(laws[:, RHO] > 0, 0.0, NEAR)
    return Laws(laws, simple, sticky, near, bool(simple.all()), bool(sticky.any()))


NO_SHAPES = Shapes(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool), False, True, False)


def with_shapes(known: Shapes, model, first: int) -> Shapes:
    """Those that are ``known`` of the bodies before row ``first``, and of all others."""
    bodies, begin, planes, corners = model.bodies, first_ball(model, first), model.planes.body, model.corners
    balls, planes, simple = model.balls.body[begin:] - first, planes[planes >= first], bodies.simple[first:].copy()
    if len(planes):
        simple[planes - first] = ~turning(model, planes)
    simple &= bodies.held[first:] == 0
    outlined = np.zeros(len(balls), dtype=bool)
    if len(corners.body):
        new = corners.body >= first
        outlined[np.searchsorted(balls, corners.body[new] - first) + corners.part[new]] = True
    light = simple[balls[~outlined]].all() and simple[planes - first].all()
    return Shapes(
        grown(known.simple, first, simple), grown(known.outlined, begin, outlined),
        known.present or not outlined.all(), bool(known.light and light), bool(known.shaped or outlined.any()),
    )  # fmt: skip


class BallSearch:
    """Active pairs of balls and planes: see `Search`."""

    size, rests, first, equations, sortable, divisible = "radius", False, 1.0, (), True, True

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        """Drop contacts and memory; arrays handed out before stay as they are."""
        self.found = self._last = pair_arrays(0)
        self._own_arrays()

    def _own_arrays(self) -> None:
        self._spare, self._filled, self._scratch = pair_arrays(0), pair_arrays(0), pair_arrays(0)
        self.deepest_here = None, 0.0, 0.0, -1, 0.0  # the pairs in which they were found, and `deepest_pair` of them
        self._across, self.on_planes = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)

    @property
    def status(self) -> np.ndarray:
        """(K,) of the active pairs."""
        return self.found.status

    @property
    def lost(self) -> np.ndarray:
        """(K,) how much deeper they are than the law has it, m."""
        return self.found.lost

    def derive(self, model, near, first: int = 0) -> bool:
        """Follow balls, planes and laws of the model; whether there are balls but those that hold polygons."""
        if not first or self._laws.table is not model.laws:
            self._laws = looked_at(model.laws)
        laws, moves = self._laws, near.length > 0.0
        self._shapes = shapes = with_shapes(self._shapes if first else NO_SHAPES, model, first)
        self.present = shapes.present
        self.all_diagonal = not self.present or (shapes.light and laws.all_simple)
        self.equations = (DIAGONAL,) + (FULL,) * (not self.all_diagonal) + (BORDER,) * moves
        self.rules = Rules(
            model.law_index, laws.simple, laws.sticky, laws.near, shapes.simple, shapes.outlined, laws.some_sticky,
            shapes.shaped, model.balls.material, not self.all_diagonal, moves, near.length, joint_rows(model),
        )  # fmt: skip
        if not first:
            self._find, self._close = Settled(find_pairs), Settled(some_close)
        self._plain = self.all_diagonal and not (moves or shapes.shaped or laws.some_sticky)
        return self.present

    @property
    def needs_inertia(self) -> bool:
        """Whether some equations need more of a body than its row."""
        return not self.all_diagonal

    @property
    def comes_back(self) -> tuple:
        """What is remembered."""
        return ("memory", "status") + ("moment",) * self.needs_inertia

    @property
    def goes(self) -> tuple:
        """What pairs take along that are swept elsewhere."""
        return ("first", "second", "a", "b", "law", "kind", "place", *self.comes_back)

    def sizes(self, model) -> np.ndarray:
        """(S,) the radii of the balls."""
        return model.balls.radius

    def second_bodies(self, model) -> np.ndarray:
        """(K,) the second bodies of the pairs, also of those that come from a checkpoint."""
        return model.balls.body[self.found.second]

    def find(self, model, near, outlook: Outlook, team) -> dict:
        """Find the active pairs, with the memory of the present ones, which they replace; how many of which kind.

        Those of the balls in ``near.span``: a process may have some of them.
        """
        position, old, planes = model.bodies.position, self.found, len(near.flats.body)
        while True:
            out = self._spare
            ends, on_planes = np.zeros((2, team.threads + 1), np.int64), np.zeros((team.threads, planes), np.int64)
            deep = np.empty((team.threads, 4))
            total, count = team.share(
                self._find, near.space, near.spheres, near.listed, near.flats, self.rules, position, outlook, old,
                out, near.span, ends, on_planes, deep,
            )  # fmt: skip
            if total <= len(out.first):
                break
            room, known = 16 + 2 * SPARE * team.threads, len(self._scratch.first)
            if total + room > known:
                self._spare = self._scratch = pair_arrays(int(ROOM * total) + room)
                self._filled = pair_arrays(0)  # it would keep what was shared before
            else:  # as long as the other: where they become more step by step, it would soon be too short again
                self._spare = pair_arrays(known, self._scratch)
        self.on_planes = on_planes.sum(axis=0)
        self._spare, self._filled = self._filled, out
        self._last, self.found = self.found, head_of(out, total, count, self._last)
        worst = int(deep[:, 1].argmax())  # the first one
        depth, _, _, wide = deep.max(axis=0).tolist()
        self.deepest_here = self.found, depth, float(deep[worst, 1]), int(deep[worst, 2]), wide
        if self.rules.border and not self.all_diagonal:
            self._across = np.empty(total, dtype=bool)
            crossing(near.space, near.places, self.found, self._across)
        counts = {number: int(np.count_nonzero(self.found.kind == number)) for number in self.equations[1:]}
        return {DIAGONAL: total - sum(counts.values())} | counts

    def may_close(self, near, rows, h) -> bool:
        """Whether a pair that is not active may close its gap within the time h."""
        if not self._plain:
            return True
        return self._close(near.space, near.spheres, near.listed, near.flats, rows, float(h), self.found)

    def candidates(self) -> Candidates:
        """The active pairs."""
        found = self.found
        return Candidates(found.a, found.b, found.kind, self.deepest_here[-1], self._across)

    def arrays(self, room: int) -> Pairs:
        """A list with room for so many."""
        return pair_arrays(room)

    def first_of(self, pairs) -> np.ndarray:
        """(K,) the first balls, or planes."""
        return pairs.first

    def balls_of(self, pairs) -> np.ndarray:
        """(n,) all balls."""
        return np.concatenate([pairs.first[: pairs.balls], pairs.second])

    def points(self, near, places) -> np.ndarray:
        """(k, 3) where the pairs in these ``places`` touch: halfway in the gap."""
        pairs, ball = self.found, self.found.second[places]
        reach = near.spheres.radius[ball] + 0.5 * pairs.gap[places]
        return near.places[ball] - reach[:, None] * pairs.normal[places]

    def branches(self, model, near) -> tuple[np.ndarray, np.ndarray]:
        """(K, 3) impulses and (K, 3) vectors between the centres."""
        pairs, radius, position = self.found, near.spheres.radius, model.bodies.position
        off = near.places - position[model.balls.body]  # of the balls from the centres of their bodies
        length = radius[pairs.second] + pairs.gap
        length[: pairs.balls] += radius[pairs.first[: pairs.balls]]
        branch = length[:, None] * pairs.normal - off[pairs.second]
        branch[: pairs.balls] += off[pairs.first[: pairs.balls]]
        return np.where((pairs.status > SEPARATING)[:, None], pairs.impulse, 0.0), branch

    def deepest(self, model) -> Overlap:
        """The largest overlaps."""
        pairs = self.found
        known, depth, share, k, _ = self.deepest_here
        if known is not pairs:  # they have another order by now, or come from a file
            columns = pairs.place, pairs.first, pairs.second, pairs.balls, model.balls.radius
            depth, share, k, _ = deepest_pair(*columns, 0, len(pairs.first))
        return Overlap(depth, share, *((int(pairs.a[k]), int(pairs.b[k])) if k >= 0 else (-1, -1)))

    def extremes(self) -> tuple:
        """Of the pairs last found: the largest overlap, m, and over the smaller radius, its place; the widest gap."""
        return self.deepest_here[1:]

    def overlaps(self, model) -> np.ndarray:
        """(K,) overlaps over the smaller radius."""
        return -self.found.gap / self._sizes(model.balls.radius, np.arange(len(self.found.gap)))

    def _sizes(self, radius, which) -> np.ndarray:
        """The smaller radius of the pairs ``which`` (k,)."""
        pairs = self.found
        size = radius[pairs.second[which]]
        of_balls = which < pairs.balls
        size[of_balls] = np.minimum(size[of_balls], radius[pairs.first[which[of_balls]]])
        return size

    def recover(self, model, rows, which, opening, above, keep, most) -> float:
        """Open overlaps at the end of a step: see `ContactSet.recover`."""
        pairs, radius = self.found, model.balls.radius
        depth = -(pairs.gap[which] + opening) / self._sizes(radius, which)
        if depth.max(initial=0.0) <= above:
            return 0.0
        bodies = model.bodies
        return recover_pairs(
            bodies.position, by_direction(bodies), pairs, which, depth, radius, keep, most, model.gravity, bodies.mass
        )

    def owes(self, model, above: float) -> bool:
        """Whether some pair has lost more than ``above`` of its smaller radius."""
        pairs = self.found
        return bool(lost_most(pairs.memory, pairs.first, pairs.second, pairs.balls, model.balls.radius) > above)

    def give_back(self, model, velocities, above, keep) -> float | None:
        """Open what contacts have lost: see `ContactSet.detect`."""
        pairs, radius, bodies = self.found, model.balls.radius, model.bodies
        if not self.owes(model, above):
            return None
        every = np.arange(len(pairs.lost))
        size = self._sizes(radius, every)
        share = pairs.lost / size
        work = recover_pairs(
            bodies.position, by_direction(bodies), pairs, every, share, radius, keep, np.inf, model.gravity, bodies.mass
        )
        pairs.lost[:] = np.maximum(0.0, share * size)
        return work

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        pairs, new_ball, new_plane = self.found, np.cumsum(ball) - 1, np.cumsum(plane) - 1
        keep = np.concatenate([ball[pairs.first[: pairs.balls]], plane[pairs.first[pairs.balls :]]])
        keep &= ball[pairs.second]
        split = int(keep[: pairs.balls].sum())
        kept = Pairs(*(array[keep] for array in pairs[:-1]), split)
        first = np.concatenate([new_ball[kept.first[:split]], new_plane[kept.first[split:]]]).astype(np.int32)
        self.found = kept._replace(first=first, second=new_ball[kept.second].astype(np.int32))

    def renumber(self, order: np.ndarray) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k."""
        self.found = renumber(self.found, order)

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        pairs = self.found
        held = np.flatnonzero(pairs.status)
        return {name: getattr(pairs, name)[held] for name in MEMORY} | {"plane": held >= pairs.balls}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint."""
        found = pair_arrays(len(checkpoint["status"]))
        for array in found[:-1]:
            array[:] = 0
        for name in MEMORY:
            getattr(found, name)[:] = checkpoint.get(name, 0)  # old files do not say what was lost
        self.found = found._replace(balls=int((~checkpoint["plane"]).sum()))

    def trial(self) -> "BallSearch":
        """A copy that goes on with the memory, in arrays of its own."""
        other = copy.copy(self)
        other._own_arrays()
        return other
