"""All contacts of a step together, by the second-order method of `problem.second` on the graph of the bodies.

The sweeps go first: what they solve soon they solve best, and what they leave is a good guess. Contacts of every kind
are written out (`Explicit`) and come back as impulses (`accept`); the residual is then that of the sweeps. Cohesion is
a cone that starts elsewhere, for contacts that hold; tension and moments stay with the sweeps.
"""

import math
from typing import NamedTuple

import numpy as np

from .._jit import kernel
from ..problem import factor, graphs, methods, second
from ..problem.cones import Cones, fill_cones
from .equations.contract import Explicit

MOST, HARD = 150, 2000  # iterations at the first try, and where that gets stuck
FINE, FINEST = 1e-6, 1e-13  # it goes on to the one, even where less is asked, and not beyond the other
ROUNDS = 6  # at most, to find which glued contacts hold
DEAR, ONCE = 2e7, 2e9  # ns of an iteration, about, beyond which it is not tried; and of the first guess of a run
LONG = 1e9  # ns of all iterations of a step, about, beyond which no more tries are made: sweeps are left to do it
STIFF, AGAIN = 1e9, 3  # of the springs of this guess, times the mean rho; and how often what is left is given to them


class Answer(NamedTuple):
    """What came of it."""

    iterations: int
    told: str  # why it was not tried, or that it got stuck


NOTHING = Answer(0, "")


class Links(NamedTuple):
    """What is needed of m contacts: see `Explicit`."""

    a: np.ndarray  # (m,)
    b: np.ndarray  # (m,)
    frame: np.ndarray  # (m, 3, 3)
    arm_a: np.ndarray  # (m, 3)
    arm_b: np.ndarray  # (m, 3)
    target: np.ndarray  # (m, 3)
    friction: np.ndarray  # (m, 2)
    impulse: np.ndarray  # (m, 3)
    glue: np.ndarray  # (m,)


def linked(written: list[Explicit]) -> Links:
    """The contacts of all kinds, one kind after the other."""
    columns = [[getattr(part, name) for part in written] for name in Links._fields]
    if len(written) == 1:
        return Links(*[np.ascontiguousarray(column[0]) for column in columns])
    return Links(*[np.concatenate(column) for column in columns])


class Together:
    """The method with what one step can take over from the last: the order of elimination, and arrays."""

    def __init__(self):
        self._links, self._factors, self._edge, self._second = None, None, None, None
        self._cost, self.spent = 0.0, 0.0  # ns, about: of an iteration, and of those of the present step

    def guess(self, equations: list, rows, free, mobility) -> list | None:
        """Impulses that hold all contacts as they are, cut back to the cones: the equations and ``rows`` take them.

        Returns the contacts written out, None where there is no room or time for the factors.
        Of all that balance the loads those of least size, as stiff springs of the same kind in all contacts would have:
        in a wall at rest the solution itself, which sweeps from nothing find in as many rounds as it has blocks.
        """
        d = mobility.dimension
        written = [e.explicit(rows, d) for e in equations]
        contacts = linked(written)
        graph, c, used = self._graph(contacts, free, mobility, d, ONCE)
        if graph is None:
            return None
        p = np.zeros((len(c.rho), d))
        hold(graph, STIFF * float(c.rho.mean()), p)
        into_cones(p, contacts.friction)
        accept(equations, written, p)
        graphs.body_velocities(graph, p, graph.room)
        move(rows, free, used, graph.room, d)
        return written

    def solve(self, equations: list, rows, free, mobility, scale: float, tolerance: float, hard: bool) -> Answer:
        """Impulses of all contacts from those at hand; the equations and ``rows`` (N, 8) take them where better.

        ``free`` (N, 8): the rows without contacts; ``scale``: the sum of (rho b)^2; ``hard``: where a first try gets
        stuck, others are made.
        """
        d = mobility.dimension
        written = [e.explicit(rows, d) for e in equations]
        contacts = linked(written)
        graph, c, used = self._graph(contacts, free, mobility, d)
        if graph is None:
            return Answer(0, "a second-order method would take too long for so many contacts")
        if self.spent > LONG:
            return Answer(0, "a second-order method was given up")
        p = np.ascontiguousarray(contacts.impulse[:, :d])
        glued = bool(contacts.glue.any())
        way = self._glued if glued else self._free
        found, before, best, done = way(graph, c, p, contacts.glue, scale, tolerance, hard)
        self.spent += done * self._cost
        if best < before:
            if not glued:
                into_cones(found, contacts.friction)  # an interior point may be outside by what is left of the residual
            accept(equations, written, found)
            graphs.body_velocities(graph, found, graph.room)
            move(rows, free, used, graph.room, d)
        return Answer(done, "" if best <= tolerance else f"a second-order method got to {best:.1e}")

    def _free(self, graph, c, p, glue, scale: float, tolerance: float, hard: bool):
        """The best impulses (m, d) found from ``p``, residual before and with them, iterations."""
        u = np.empty_like(p)
        graphs.respond(graph, p, u)
        state = self._room(*p.shape)
        wanted = max(FINEST, min(0.5 * tolerance, FINE))
        second.begin(graph, c, state, p, u, wanted, scale, methods.WARM, methods.STALLED)
        before = state.number[second.BEST]
        second.advance(graph, c, state, wanted, scale, MOST)
        best, done = state.number[second.BEST], int(state.number[second.ITERATIONS] + state.number[second.STEPS])
        found = state.kept
        most = min(HARD, int((LONG - self.spent) / max(1.0, self._cost)) - done)
        if best > tolerance and hard and most > 0:  # other starts, more patience
            way = methods.Way(methods.Prepared(None, graph, c, scale, math.inf), p, wanted, most, None, MOST)
            way.strong = graph
            methods.second_order(way, cold=False)
            done += way.done
            if way.residual < best:
                best, found = way.residual, way.impulses
        return found, before, best, done

    def _glued(self, graph, c, p, glue, scale: float, tolerance: float, hard: bool):
        """As `_free`, with contacts of which some are glued: P + glue n is on the cone of those that hold.

        It moves the bodies as P does with another free velocity. Contacts that open lose their glue, those that press
        have it: so the problem is solved again, some times, until both are as they were taken.
        """
        holds, first, total = (glue > 0.0) & p.any(axis=1), None, 0
        u, shift = np.empty_like(p), np.zeros_like(p)
        for _ in range(ROUNDS):
            shift[:, 0] = np.where(holds, glue, 0.0)
            graphs.body_velocities(graph, -shift, graph.room)
            moved, q = graph._replace(free=graph.room.copy(), room=np.empty_like(graph.room)), p + shift
            finer = math.sqrt(max((p**2).sum(), scale) / max((q**2).sum(), scale, 1e-300))
            q, before, best, done = self._free(moved, c, q, glue, scale, max(FINEST, min(1.0, finer) * tolerance), hard)
            first, total = before if first is None else first, total + done
            graphs.respond(moved, q, u)
            opens = holds & (q[:, 0] <= c.rho * u[:, 0])
            other = opens | (~holds & (glue > 0.0) & (q[:, 0] > 0.0))
            p = q - shift
            p[opens] = 0.0
            if not other.any():
                break
            holds ^= other
        return p, first, best, total

    def _room(self, m: int, d: int) -> second.Second:
        if self._second is None or len(self._second.p) < m or self._second.p.shape[1] != d:
            self._second = second.new_second(int(1.3 * m) + 8, d)
        return second.head(self._second, m)

    def _graph(self, contacts: Links, free, mobility, d: int, most: float | None = None):
        """The graph of the bodies, None where an iteration would take more than ``most`` ns; cones, rows of nodes."""
        most = DEAR if most is None else most
        used, node = nodes(free, contacts.a, contacts.b)
        a, b, s = node[contacts.a], node[contacts.b], 3 if d == 2 else 6
        links = (used, a, b)
        if self._links is None or not all(np.array_equal(x, y) for x, y in zip(links, self._links, strict=True)):
            self._links = None
            pattern = factor.make_pattern(len(used), a, b, min(int(most / s**3), int(graphs.ROOM / (16 * s * s))))
            given_up = len(pattern.column) == 0 and ((a >= 0) & (b >= 0) & (a != b)).any()
            ahead = np.diff(pattern.start).astype(float)
            self._cost = 0.5 * s**3 * ((ahead + 1.0) ** 2).sum()
            if given_up or self._cost > most:
                return None, None, used
            self._factors, self._edge = factor.factors(s, pattern), graphs.body_edges(pattern, a, b)
            self._links = links
        if self._cost > most:  # the order was found for a guess
            return None, None, used
        m, n = len(a), len(used)
        inverse, mass, u, room = np.empty((n, s, s)), np.empty((n, s, s)), np.empty((n, s)), np.empty((n, s))
        map_a, map_b, drift = np.empty((m, d, s)), np.empty((m, d, s)), np.empty((m, d))
        c = Cones((0,) * d, contacts.friction, np.empty((m, 2)), np.empty(m), np.empty(m))
        write_masses(free, used, mobility, inverse, mass)
        write_maps(contacts, free, node, inverse, map_a, map_b, drift, c, u)
        return graphs.BodyGraph(inverse, mass, u, a, b, map_a, map_b, drift, self._edge, self._factors, room), c, used


@kernel
def hold(graph, stiffness, p):
    """Impulses (m, d) of springs of the same great ``stiffness`` in all contacts, into ``p``.

    p = -B U with U = b + W p, and again with the U that is left: each time it is smaller by about 1 / (B W).
    """
    m, d = p.shape
    blocks, u, push, change = np.zeros((m, d, d)), np.empty((m, d)), np.empty((m, d)), np.empty((m, d))
    for k in range(m):
        for c in range(d):
            blocks[k, c, c] = stiffness
    graphs.factorise(graph, blocks)
    for _ in range(AGAIN):
        graphs.respond(graph, p, u)
        for k in range(m):
            for c in range(d):
                push[k, c] = -stiffness * u[k, c]
        graphs.solve(graph, push, change)
        for k in range(m):
            for c in range(d):
                p[k, c] -= stiffness * (u[k, c] + change[k, c])


@kernel
def into_cones(p, friction):
    """Impulses (m, d) that pull become zero, those beyond their cones are cut back; ``friction`` (m, 2)."""
    for k in range(p.shape[0]):
        size = 0.0
        for c in range(1, p.shape[1]):
            if p[k, 0] <= 0.0 or friction[k, c - 1] <= 0.0:
                p[k, c] = 0.0
            else:
                size += (p[k, c] / friction[k, c - 1]) ** 2
        p[k, 0] = max(0.0, p[k, 0])
        if size > p[k, 0] ** 2:
            for c in range(1, p.shape[1]):
                p[k, c] *= p[k, 0] / np.sqrt(size)


def accept(equations: list, written: list[Explicit], impulses: np.ndarray) -> None:
    """Give ``impulses`` (m, d), in the order of the contacts ``written`` out, to the equations of all kinds."""
    whole, at = np.zeros((len(impulses), 3)), 0
    whole[:, : impulses.shape[1]] = impulses
    for e, part in zip(equations, written, strict=True):
        e.accept(part, whole[at : at + len(part.a)])
        at += len(part.a)


def velocities(rows, d: int) -> np.ndarray:
    """(N, 3) in the plane, else (N, 6): velocity and spin of ``rows`` (N, 8)."""
    return np.concatenate([rows[:, :3], rows[:, 3:6] / rows[:, 7:]], axis=1)[:, [0, 1, 5] if d == 2 else slice(0, 6)]


@kernel
def move(rows, free, which, v, d):
    """Give the bodies ``which`` (n,) of ``rows`` (N, 8) the velocities ``v`` (n, f), all others the ``free`` ones."""
    for i in range(rows.shape[0]):
        for f in range(6):
            rows[i, f] = free[i, f]
    for k in range(which.size):
        i = which[k]
        for f in range(d):
            rows[i, f] = v[k, f]
        for f in range(d, v.shape[1]):
            rows[i, 5 if d == 2 else f] = v[k, f] * rows[i, 7]


@kernel
def newly_touched(a, b, rows, touched):
    """How many bodies that move are touched by contacts of ``a`` and ``b`` (m,) first: ``touched`` (N,) are others."""
    count = 0
    for k in range(a.size):
        for i in (a[k], b[k]):
            if not touched[i] and rows[i, 6] > 0.0:
                count += 1
            touched[i] = True
    return count


@kernel
def nodes(free, a, b):
    """The rows of the bodies that contacts between ``a`` and ``b`` (m,) can move; for each row its node, or -1."""
    node, count = np.full(free.shape[0], -1), 0
    for k in range(a.size):
        node[a[k]] = node[b[k]] = 0
    used = np.empty(free.shape[0], dtype=np.int64)
    for i in range(node.size):
        if node[i] == 0 and free[i, 6] > 0.0:
            used[count], node[i] = i, count
            count += 1
        else:
            node[i] = -1
    return used[:count], node


@kernel
def write_maps(contacts, free, node, inverse, map_a, map_b, drift, cones, u):
    """Maps (m, d, s) from the freedoms of both bodies to the velocity, its ``drift`` (m, d), the cones, u (n, s).

    Freedoms are v and spin, 3 in the plane, else 6. What bodies do that no contact can move is in the drift, with the
    targets.
    """
    m, d, s = map_a.shape
    fill_cones(cones)
    full, flat = np.empty(6), s == 3
    for i in range(node.size):
        if node[i] >= 0:
            for f in range(d):
                u[node[i], f] = free[i, f]
            for f in range(d, s):
                u[node[i], f] = free[i, 5 if flat else f] / free[i, 7]
    for k in range(m):
        total = 0.0
        for c in range(d):
            drift[k, c] = -contacts.target[k, c]
        for side in range(2):
            body = contacts.b[k] if side else contacts.a[k]
            arm, maps = (contacts.arm_b[k], map_b[k]) if side else (contacts.arm_a[k], map_a[k])
            at = node[body]
            for c in range(d):
                t = contacts.frame[k, c]
                full[0], full[1], full[2] = t[0], t[1], t[2]
                full[3] = arm[1] * t[2] - arm[2] * t[1]
                full[4] = arm[2] * t[0] - arm[0] * t[2]
                full[5] = arm[0] * t[1] - arm[1] * t[0]
                for f in range(s):
                    maps[c, f] = full[5 if flat and f == 2 else f] * (1.0 if side else -1.0)
                if at < 0:
                    for f in range(6):
                        speed = free[body, f] if f < 3 else free[body, f] / free[body, 7]
                        drift[k, c] += (full[f] if side else -full[f]) * speed
                else:
                    for f in range(s):
                        if inverse[at, f, f] == 0.0:  # held in this direction
                            drift[k, c] += maps[c, f] * u[at, f]
                            maps[c, f] = 0.0
                    for f in range(s):
                        for g in range(s):
                            total += maps[c, f] * inverse[at, f, g] * maps[c, g]
        cones.rho[k] = d / total


@kernel
def write_masses(free, used, mobility, inverse, mass):
    """Inverse masses and inertias (n, s, s) of the bodies ``used``, and what they invert.

    A direction in which no contact changes a body has the mass 1: its maps are zero.
    """
    s, turning = inverse.shape[1], np.zeros((3, 3))
    d = 2 if s == 3 else 3
    for k in range(used.size):
        i = used[k]
        for f in range(s):
            for g in range(s):
                inverse[k, f, g] = mass[k, f, g] = 0.0
        for f in range(d):
            inverse[k, f, f] = mobility.linear[i, f] if mobility.linear.shape[0] > 0 else free[i, 6]
        for f in range(3):
            for g in range(3):
                turning[f, g] = mobility.inverse[i, f, g] if mobility.inverse.shape[0] > 0 else 0.0
            if mobility.inverse.shape[0] == 0:  # balls: m r^2 / I is the same for all
                turning[f, f] = mobility.kappa * free[i, 6] / free[i, 7] ** 2
        for f in range(d, s):
            for g in range(d, s):
                inverse[k, f, g] = turning[f - s + 3, g - s + 3]
        for f in range(s):
            mass[k, f, f] = 1.0 / inverse[k, f, f] if inverse[k, f, f] != 0.0 else 1.0
        if d == 3:
            for f in range(3):
                if turning[f, f] == 0.0:
                    turning[f, f] = 1.0
            invert_three(turning, mass[k, 3:, 3:])


@kernel
def invert_three(x, out):
    """The inverse of ``x`` (3, 3) by cofactors."""
    for i in range(3):
        for j in range(3):
            a, b, c, e = (j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3
            out[i, j] = x[a, c] * x[b, e] - x[a, e] * x[b, c]
    size = x[0, 0] * out[0, 0] + x[0, 1] * out[1, 0] + x[0, 2] * out[2, 0]
    for i in range(3):
        for j in range(3):
            out[i, j] /= size
