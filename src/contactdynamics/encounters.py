"""The contacts of balls and planes in a `Simulation`: neighbours, memory and solver arrays, behind a few verbs.

`touching` is the same for polygons. *Simple* contacts are filled in the order of the sweeps, general ones in that of
their pairs; what the user reads is in the order of the pairs.
"""

import copy

import numpy as np

from . import assembly, detection, gauss_seidel, iterations, recovery
from . import contacts as prepare
from .materials import COHESION, FRICTION_1, FRICTION_2, ROLLING, SPINNING, TAU, TENSION
from .state import Contacts

MEMORY = ("first", "second", "impulse", "moment", "status")
ROOM = 1.03  # of arrays that follow the number of contacts, over what is needed


class Encounters:
    """Contacts of balls and planes; ``count`` is the number of simple and of general ones."""

    def __init__(self):
        self.work = iterations.work_arrays(0, np.zeros((0, 8)))
        self.forget()

    def derive(self, model, simple_body: np.ndarray, outlined: np.ndarray) -> None:
        """Follow the balls, planes and laws of the model: at the start, when bodies come or go, or are sorted.

        ``simple_body`` (N,) without lever arms; ``outlined`` (S,) balls that only hold a polygon, which are left out.
        """
        laws, balls = model.laws, model.balls
        isotropic = laws[:, FRICTION_1] == laws[:, FRICTION_2]
        self._simple_law = isotropic & (laws[:, [TAU, ROLLING, SPINNING, COHESION, TENSION]] == 0).all(axis=1)
        self.sticky_law = (laws[:, [COHESION, TENSION]] > 0).any(axis=1)
        self._simple_body, self._outlined = simple_body, outlined
        self.present = not outlined.all()
        touched = simple_body[balls.body[~outlined]].all() and simple_body[model.planes.body].all()
        self.all_simple = not self.present or bool(touched and self._simple_law.all())
        self._kappa = 2.5 if model.dimension == 3 else 2.0
        self._changed = True  # other bodies than before, or in another order
        self.neighbours = None  # to be built at the next step
        self.places = np.empty((len(balls.radius), 3))
        self._moved = np.empty(len(balls.radius), dtype=np.int32)
        self._near = np.empty(len(balls.radius), dtype=np.int32)
        self.smallest = float(balls.radius.min()) if len(balls.radius) else 1.0
        arm = np.sqrt((balls.centre**2).sum(axis=1)) + balls.radius
        self.reach = 2.0 * float(arm.max(initial=0.0))  # no two bodies that touch are farther apart

    # ---- the verbs of a step -----------------------------------------------------------------------------------------

    def place(self, model, bodies) -> None:
        """Put balls and planes where their bodies are."""
        balls, planes = model.balls, model.planes
        detection.place_balls(bodies.position, bodies.orientation, balls.centre, balls.body, self.places)
        self.points = bodies.position[planes.body]
        self.normals = np.empty((len(planes.body), 3))
        detection.place_balls(np.zeros_like(self.points), bodies.orientation[planes.body], planes.normal,
                              np.arange(len(planes.body)), self.normals)  # fmt: skip

    def follow(self, model, bodies, rows, h, anticipate) -> None:
        """Keep the neighbour lists complete: look up the balls that have left their margin, or build all anew."""
        balls, found = model.balls, self.neighbours
        # Without anticipation only present places count: a wide margin saves work, and nothing hangs on it.
        far = (detection.REACH if anticipate else 1.0) * float(balls.radius.max(initial=0.0))
        if found is not None:
            moved = detection.wanderers(self.places, balls.centre, balls.body, rows, found.reference, found.margin,
                                        h if anticipate else 0.0, self._moved)  # fmt: skip
            if moved == 0:
                return
            if moved <= 16 + len(balls.radius) // 20 and detection.look_up(
                self._moved[:moved], self.places, balls.radius, balls.body, bodies.kind, balls.centre, rows,
                model.dimension - 2, h, far, self._near, *found,
            ):  # fmt: skip
                return
        self.neighbours = detection.build(model, bodies.kind, self.places, rows, h, self.smallest, far)

    def find(self, model, bodies, one, two, h, slack, anticipate, keep) -> int:
        """Find the active pairs, with the memory of the present ones, which they replace; returns how many they are."""
        if not self.present:
            return 0
        balls, planes, lists, old = model.balls, model.planes, self.neighbours, self.pairs
        laws = (model.law_index, self._simple_law, self.sticky_law, self._simple_body, bodies.position, one, two,
                h, slack, anticipate, keep, old, self._outlined)  # fmt: skip
        while True:
            out = self.spare
            count = detection.find_ball_contacts(self.places, balls.radius, balls.body, balls.material, lists.start,
                                                 lists.count, lists.other, *laws, out)  # fmt: skip
            total = count
            if len(planes.body):
                total = detection.find_plane_contacts(
                    self.places, balls.radius, balls.body, balls.material, bodies.kind, self.normals, self.points,
                    planes.body, planes.material, *laws, count, out,
                )  # fmt: skip
            if total <= len(out.first):
                break
            self.spare = detection.pair_arrays(int(ROOM * total) + 16)
        detection.recall(old, out, total, not self.all_simple)
        self.spare, self.filled = self.filled, out
        self.pairs = detection.Pairs(*(array[:total] for array in out[:-1]), count)
        return total

    def fill(self, model, bodies, before, free, rows, inverse, h, anticipate, repair) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        pairs, m, g, scale = self.pairs, 0, 0, 0.0
        if self._changed:
            self.work, self._changed = iterations.work_arrays(len(self.work.order), rows), False
        owners = model.balls.body, model.planes.body
        if len(pairs.first):
            m = iterations.arrange(bodies.position, rows, pairs, *owners, self.reach, self.work)
            if m > len(self.work.order):
                self.work = iterations.work_arrays(int(ROOM * m) + 16, rows)
                iterations.arrange(bodies.position, rows, pairs, *owners, self.reach, self.work)
            if m > len(self.simple.pair):
                self.simple = prepare.simple_contacts(int(ROOM * m) + 16)
            scale = prepare.activate_simple(
                pairs, *owners, model.balls.radius, before, free, rows, model.laws, h, anticipate, repair, self._kappa,
                model.dimension, self.work.few, self.simple,
            )  # fmt: skip
        if not self.all_simple:
            while True:
                g, more = prepare.activate_general(
                    pairs, *owners, model.balls.material, model.planes.material, self.places, model.balls.radius,
                    bodies.position, bodies.orientation, before, free, inverse, model.laws, model.law_axes, h,
                    anticipate, repair, model.dimension, self.general,
                )  # fmt: skip
                if g <= len(self.general.pair):
                    break
                self.general = prepare.general_contacts(int(1.3 * g) + 8)
            scale += more
        self.count = (m, g)
        if g:
            gauss_seidel.warm_start_general(rows, inverse, self.general, g)
        return scale

    def problem(self, rows, inverse, dimension, scale, tolerance, max_iterations) -> tuple:
        """The arguments of the solvers in `iterations`."""
        (m, g), kappa = self.count, self._kappa
        return (rows, inverse, self.simple, m, self.general, g, kappa, dimension, scale, tolerance, max_iterations,
                self.work)  # fmt: skip

    def place_of(self, worst: int) -> int:
        """The place of the contact ``worst`` of a solver among the contacts as the user has them."""
        if 0 <= worst < self.count[0]:
            return int(np.count_nonzero(self.pairs.simple[: self.simple.pair[worst]]))
        return worst

    def store(self, rows, tolerance) -> tuple[float, float]:
        """Keep impulse and status as the memory of the pairs; returns the largest distance to the cone and sum P²."""
        (m, g), cone, size = self.count, 0.0, 0.0
        if m:
            cone, size = gauss_seidel.store_simple(rows, self.simple, m, self._kappa, tolerance, self.pairs)
        if g:
            other, more = gauss_seidel.store_general(rows, self.general, g, tolerance, self.pairs)
            cone, size = max(cone, other), size + more
        return cone, size

    def book(self, before, rows, kind, works) -> None:
        """Add the works of the contacts, law by law, to ``works`` (L, 4)."""
        m, g = self.count
        if m:
            gauss_seidel.book_simple(before, rows, kind, self.pairs.law, self.simple, m, works)
        if g:
            gauss_seidel.book_general(before, rows, kind, self.pairs.law, self.general, g, works)

    def recover(self, model, bodies, rows, h, above, keep, most) -> float:
        """Open overlaps above a bound; returns the work against gravity."""
        m, g = self.count
        depth = np.empty(m + g)
        head = (rows, self.simple, m, self.general, g, self.pairs, model.balls.radius)
        if recovery.overlaps(*head, h, depth) <= above:
            return 0.0
        return recovery.recover(bodies.position, *head, depth, keep, most, model.gravity, bodies.mass)

    # ---- what the user reads -----------------------------------------------------------------------------------------

    def by_pair(self) -> prepare.Simple:
        """The simple contacts in the order of their pairs."""
        m = self.count[0]
        order = np.argsort(self.simple.pair[:m])
        return prepare.Simple(*(array[:m][order] for array in self.simple))

    def described(self, model, identity) -> Contacts:
        """The contacts of the step with their frames, in the scene's dimension."""
        m, g = self.count
        d, s, q = model.dimension, self.by_pair(), self.general
        normals = np.concatenate([s.row[:m, :3], q.frame[:g, 0]])
        frames = assembly.contact_frames(s, m, q, g, d)
        pair = np.concatenate([s.pair[:m], q.pair[:g]])
        impulse = np.concatenate([np.einsum("kij,kj->ki", frames[:m], s.row[:m, 3:6]), q.impulse[:g]])
        moment = np.concatenate([np.zeros((m, 3)), q.moment[:g]])
        gap = self.pairs.gap[pair]
        ball = self.pairs.second[pair]
        reach = model.balls.radius[ball] + 0.5 * gap
        point = self.places[ball] - reach[:, None] * normals if len(pair) else np.zeros((0, 3))
        a, b = np.concatenate([s.a[:m], q.a[:g]]), np.concatenate([s.b[:m], q.b[:g]])
        return Contacts(
            np.stack([identity[a], identity[b]], axis=1), point[:, :d].copy(), normals[:, :d].copy(), gap,
            impulse[:, :d].copy(), frames[:, :d, :d].copy(), np.concatenate([s.status[:m], q.status[:g]]),
            moment if d == 3 else moment[:, 2:].copy(),
        )  # fmt: skip

    def deepest(self, model) -> tuple[float, float, int]:
        """The largest overlap (m), the largest one over the smaller radius, and the pair of the latter."""
        pairs = self.pairs
        return detection.deepest(pairs.gap, pairs.first, pairs.second, pairs.balls, model.balls.radius)

    def rows_of(self, k: int, model) -> tuple[int, int]:
        """The bodies of the pair ``k``."""
        pairs = self.pairs
        owner = (model.balls if k < pairs.balls else model.planes).body
        return owner[pairs.first[k]], model.balls.body[pairs.second[k]]

    # ---- bodies that come and go, memory -----------------------------------------------------------------------------

    def extend(self, lists, model, bodies) -> None:
        """Take over the neighbour lists of before, after `derive`, for balls that were added at the end."""
        if lists is not None:
            self.place(model, bodies)
            self.neighbours = detection.extend(lists, self.places, model.balls.radius)

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        pairs, new_ball, new_plane = self.pairs, np.cumsum(ball) - 1, np.cumsum(plane) - 1
        keep = np.concatenate([ball[pairs.first[: pairs.balls]], plane[pairs.first[pairs.balls :]]])
        keep &= ball[pairs.second]
        split = int(keep[: pairs.balls].sum())
        first, second, *rest = (array[keep] for array in pairs[:-1])
        first = np.concatenate([new_ball[first[:split]], new_plane[first[split:]]]).astype(np.int32)
        self.pairs = detection.Pairs(first, new_ball[second].astype(np.int32), *rest, split)
        self.count = (0, 0)

    def renumber(self, order: np.ndarray) -> None:
        """Follow a sorting of the balls: ball ``order[k]`` becomes ball k."""
        self.pairs, self.count = detection.renumber(self.pairs, order), (0, 0)

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        pairs = self.pairs
        held = np.flatnonzero(pairs.status)
        return {name: getattr(pairs, name)[held] for name in MEMORY} | {"plane": held >= pairs.balls}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint."""
        held = {name: checkpoint[name] for name in MEMORY}
        blank = detection.pair_arrays(len(held["status"]))
        for array in blank[:-1]:
            array[:] = 0
        self.pairs, self.count = blank._replace(**held, balls=int((~checkpoint["plane"]).sum())), (0, 0)

    def forget(self) -> None:
        """Drop contacts, memory and neighbours; arrays handed out before stay as they are."""
        self.pairs, self.neighbours, self.count = detection.no_pairs(), None, (0, 0)
        self._own_arrays()

    def _own_arrays(self) -> None:
        self.spare, self.filled = detection.no_pairs(), detection.no_pairs()
        self.simple, self.general = prepare.simple_contacts(64), prepare.general_contacts(8)

    def kept(self) -> dict:
        """What `put_back` needs to return to the present state after a trial."""
        return dict(vars(self))

    def put_back(self, kept: dict) -> None:
        """Return to a state that `kept` gave."""
        vars(self).update(kept)

    def start_trial(self) -> None:
        """Go on with the memory, in arrays of its own."""
        self._own_arrays()
        self.places = np.empty_like(self.places)
        if self.neighbours is not None:
            self.neighbours = detection.Neighbours(*map(copy.copy, self.neighbours))
