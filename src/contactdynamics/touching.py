"""The contacts with polygons in a `Simulation`: outlines, memory and solver arrays, behind a few verbs.

A simulation without polygons holds one too; everything in it is then empty and costs nothing: no kernel is loaded.
"""

import numpy as np

from . import activity, flat, narrow
from .contacts import General, general_contacts
from .state import FREE, Contacts

MEMORY = ("index", "memory", "status")


class Touching:
    """Contacts with polygons; ``present`` says whether there are polygons, ``count`` the active contacts."""

    def __init__(self):
        self.touches, self._spare, self._filled = (narrow.touch_arrays(0) for _ in range(3))
        self.contacts, self.count, self.special, self.present = flat.flat_contacts(0), 0, False, False

    def derive(self, model, *, plain: bool) -> None:
        """Follow the balls and corners of the model: at the start, and when bodies come or go."""
        self._plain = plain
        self.present = len(model.corners.body) > 0
        self.outline = narrow.outlines(model.balls, model.corners)
        most = int(np.diff(self.outline.start).max()) if self.present else 0
        self._disks = bool((np.diff(self.outline.start) == 0).any())
        self._heights, self._apart = np.empty((2, most)), np.zeros(0, dtype=np.int32)
        self._meetings = narrow.meeting_arrays(0)

    def place(self, bodies) -> None:
        """Put the corners where their bodies are."""
        o = self.outline
        narrow.place_corners(bodies.position, bodies.orientation, o.local, o.body, o.world, o.normal)

    def find(self, model, kind, places, lists, planes, sticky, position, one, two, h, slack, anticipate, keep) -> int:
        """Find the active contacts, with the memory of the present ones, which they replace; returns their number.

        ``planes`` are the normals and points of the half-planes in space.
        """
        balls, old = model.balls, self.touches
        if len(self._apart) != len(lists.other):
            self._apart = np.zeros(len(lists.other), dtype=np.int32)
            self._meetings = narrow.meeting_arrays(len(lists.other))
        tail = (model.law_index, sticky, position, one, two, h, slack, anticipate, keep, old)
        o, met = self.outline, self._meetings
        count = narrow.meet(o, places, balls.radius, balls.body, lists.start, lists.count, lists.other, *tail[3:],
                            self._apart, self._heights, self._disks, met)  # fmt: skip
        while True:
            out = self._spare
            pairs = activity.enter_pairs(met, count, o.size, balls.body, balls.material, *tail, out)
            total = pairs
            if len(model.planes.body):
                total = activity.find_on_planes(
                    o, places, balls.radius, balls.body, balls.material, kind, *planes, model.planes.body,
                    model.planes.material, *tail, pairs, FREE, out,
                )  # fmt: skip
            if total <= len(out.status):
                break
            self._spare = narrow.touch_arrays(int(1.3 * total) + 64)
        self._spare, self._filled = self._filled, out
        self.touches = narrow.head_of(out, total, pairs)
        return total

    def fill(self, model, position, before, free, rows, inverse, h, anticipate, repair) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        self.count, self._remembered = len(self.touches.status), bool(self.touches.status.any())
        if len(self.contacts.a) < self.count:
            self.contacts = flat.flat_contacts(int(1.3 * self.count) + 64)
        scale, self.special = flat.activate(
            self.touches, model.balls.body, model.planes.body, position, before, free, rows, inverse, model.laws, h,
            anticipate, repair, self.contacts,
        )  # fmt: skip
        return scale

    def solve(
        self, rows, inverse, simple, m, general, g, kappa, dimension, scale, tolerance, max_iterations, work, hint
    ):
        """Solve all contacts of the step; the signature is that of the solvers in `gauss_seidel`."""
        head, tail = (self.contacts, self.count, self.special, kappa, dimension, scale), (max_iterations, work)
        if g:
            return flat.settle_general(rows, inverse, simple, m, general, g, *head, tolerance, *tail)
        goal = tolerance if self._remembered else flat.FIRST * tolerance
        return flat.settle(rows, simple, m, *head, goal, *tail, hint, self._plain)

    def store(self, rows, tolerance) -> tuple[float, float]:
        """Keep impulse and status as the memory; returns the largest distance to the cone and the sum of P²."""
        if not self.count:
            return 0.0, 0.0
        return flat.store(rows, self.contacts, self.count, tolerance, self.touches)

    def book(self, before, rows, kind, works) -> None:
        """Add the works of the contacts, law by law, to ``works`` (L, 4)."""
        if self.count:
            flat.book(before, rows, kind, self.touches, self.contacts, self.count, works)

    def recover(self, model, bodies, rows, h, above, keep, most) -> float:
        """Open overlaps above a bound; returns the work against gravity."""
        depth = np.empty(self.count)
        if not self.count or flat.overlaps(rows, self.contacts, self.count, self.touches, h, depth) <= above:
            return 0.0
        return flat.recover(bodies.position, bodies.orientation, rows, self.contacts, self.count, self.touches, depth,
                            keep, most, model.gravity, bodies.mass)  # fmt: skip

    def described(self, identity) -> Contacts:
        """The contacts of the step as the user reads them."""
        c, t, f = self.contacts, self.touches, self.count
        normal = c.row[:f, :2].copy()
        frames = np.stack([normal, np.stack([-normal[:, 1], normal[:, 0]], axis=1)], axis=1)
        return Contacts(
            np.stack([identity[c.a[:f]], identity[c.b[:f]]], axis=1), t.place[:f, narrow.X :].copy(), normal,
            self.gaps(),
            c.row[:f, flat.PN : flat.PT + 1].copy(), frames, c.status[:f].copy(), c.law[:f, flat.MOMENT :].copy(),
        )  # fmt: skip

    def as_general(self, rows, first: int) -> General:
        """The contacts of the step in the form of general ones, numbered from pair ``first`` on: for `assembly`.

        The arm of a body is c (lever_t n - lever_n t), by the definition of the levers in `flat`.
        """
        c, f = self.contacts, self.count
        out, row = general_contacts(f), c.row[:f]
        out.pair[:], out.a[:], out.b[:], out.status[:] = first + np.arange(f), c.a[:f], c.b[:f], c.status[:f]
        normal, tangent = out.frame[:, 0], out.frame[:, 1]
        normal[:, 0], normal[:, 1], out.frame[:, 2, 2] = row[:, flat.NX], row[:, flat.NY], 1.0
        tangent[:, 0], tangent[:, 1] = -row[:, flat.NY], row[:, flat.NX]
        for arm, body, n, t in ((out.arm_a, out.a, flat.AN, flat.AT), (out.arm_b, out.b, flat.BN, flat.BT)):
            arm[:] = rows[body, 7:] * (row[:, t, None] * normal - row[:, n, None] * tangent)
        out.target[:, 0], out.target[:, 1] = row[:, flat.RN], row[:, flat.RT]
        out.bound[:, 0], out.bound[:, 1] = row[:, flat.GAMMA], row[:, flat.GAMMA]
        out.bound[:, 2], out.bound[:, 4], out.bound[:, 5] = c.law[:f, [flat.ROLL, flat.GLUE, flat.PULL]].T
        return out

    def gaps(self) -> np.ndarray:
        """(count,) m."""
        return self.touches.place[:, narrow.GAP].copy()

    def deepest(self, model) -> tuple[float, float, int]:
        """The largest overlap (m), the largest one over the size of the smaller body, and its contact."""
        if not len(self.touches.status):
            return 0.0, 0.0, -1
        gap, size = self.touches.place[:, narrow.GAP], self.touches.place[:, narrow.SIZE]
        k = int((gap / size).argmin())
        return max(0.0, -float(gap.min())), max(0.0, -float(gap[k] / size[k])), k

    def rows_of(self, k: int, model) -> tuple[int, int]:
        """The bodies of contact ``k``."""
        t = self.touches
        first, second = t.index[k, : narrow.SECOND + 1]
        return (model.balls if k < t.planes else model.planes).body[first], model.balls.body[second]

    # ---- memory ----------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop the contacts and their memory; arrays handed out before stay as they are."""
        self.touches, self._spare, self._filled = (narrow.touch_arrays(0) for _ in range(3))
        self.contacts, self.count = flat.flat_contacts(0), 0

    def kept(self):
        """What `put_back` needs to return to the present state after `forget` or a trial."""
        return self.touches, self.contacts, self.count, self.special

    def put_back(self, kept) -> None:
        """Return to a state that `kept` gave."""
        self._spare, self._filled = narrow.touch_arrays(0), narrow.touch_arrays(0)
        self.touches, self.contacts, self.count, self.special = kept

    def start_trial(self) -> None:
        """Go on with the memory, in arrays of its own."""
        self._spare, self._filled = narrow.touch_arrays(0), narrow.touch_arrays(0)
        self.contacts = flat.flat_contacts(0)

    def remove(self, ball: np.ndarray, plane: np.ndarray) -> None:
        """Follow the removal of balls and planes; ``ball`` (S,) and ``plane`` (K,) say which of them stay."""
        t = self.touches
        first, second = t.index[:, narrow.FIRST], t.index[:, narrow.SECOND]
        keep = np.concatenate([ball[first[: t.planes]], plane[first[t.planes :]]]) & ball[second]
        split = int(keep[: t.planes].sum())
        index = t.index[keep]
        new_ball, new_plane = np.cumsum(ball) - 1, np.cumsum(plane) - 1
        index[:split, narrow.FIRST] = new_ball[index[:split, narrow.FIRST]]
        index[split:, narrow.FIRST] = new_plane[index[split:, narrow.FIRST]]
        index[:, narrow.SECOND] = new_ball[index[:, narrow.SECOND]]
        self.touches = narrow.Touches(index, t.place[keep], t.memory[keep], t.status[keep], split)
        self.count = 0

    def memory(self) -> dict:
        """The arrays of a checkpoint."""
        t = self.touches
        held = np.flatnonzero(t.status)
        arrays = {f"touch_{name}": getattr(t, name)[held] for name in MEMORY}
        return arrays | {"touch_planes": np.array([int((held < t.planes).sum())])}

    def restore(self, checkpoint: dict) -> None:
        """Take over the memory of a checkpoint; files without polygons have none."""
        self.forget()
        if "touch_index" in checkpoint:
            held = {name: checkpoint[f"touch_{name}"] for name in MEMORY}
            blank = narrow.touch_arrays(len(held["status"]))
            self.touches = blank._replace(**held, planes=int(checkpoint["touch_planes"][0]))
