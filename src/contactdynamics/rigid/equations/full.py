"""Full equations: clusters, planes that turn, bodies held in some directions, borders of cells that move, all laws.

Frames, lever arms and the full block of W. A contact is solved exactly with the other ones held, and the velocities of
its two bodies are corrected at once (2004, eq. 37).

Across the border of a cell, b is met in its image at x_b + S, which moves by L S more than b, with the velocity
gradient L of the cell. Where the cell moves, the last three rows of the bodies are the columns of L times a length l,
and ``image`` is S / l: they take part in U and in impulses like bodies.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ...problem.laws import natural_map
from ...scenes.materials import COHESION, FRICTION_1, FRICTION_2, RHO, ROLLING, SPINNING, STATIC, TAU, TENSION
from ...state import OPEN, Balls, Planes
from ..crew import enlist
from ..search.contract import FULL
from ..search.pairs import GAP, LOST, Pairs, kept, pair_size
from ..space import image
from ..threads import part
from .contract import (
    KERNELS,
    START,
    Explicit,
    Kernels,
    holds_static,
    local_frame,
    sinking_speed,
    tallied,
    target_velocity,
)
from .full_works import book_some, cell_work, store_some
from .grouped import BY_GROUPS, ByGroups, Grouped, add_left
from .held import status_of
from .levers import (
    add_image,
    block_by_direction,
    carried,
    contact_block,
    contact_velocity,
    relative_spin,
    relative_velocity,
)
from .local import moment_error, solve_contact


class FullContacts(NamedTuple):
    """Contacts in the order of their pairs (m,)."""

    pair: np.ndarray  # (m,)
    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    frame: np.ndarray  # (m, 3, 3) rows n, t1, t2
    arm_a: np.ndarray  # (m, 3) from the centre of a to the contact point
    arm_b: np.ndarray  # (m, 3)
    impulse: np.ndarray  # (m, 3) n, t1, t2
    moment: np.ndarray  # (m, 3) about n, t1, t2
    target: np.ndarray  # (m, 3) r, -tau U_t^-
    bound: np.ndarray  # (m, 6) c1, c2, rolling, spinning, cohesion h, tension h
    delassus: np.ndarray  # (m, 6, 6) for (P, M)
    sink: np.ndarray  # (m,) speed below the target that the solver may leave to this contact, m/s
    status: np.ndarray  # (m,)
    image: np.ndarray  # (m, 3) S / l of a contact across the border of a cell that moves, else 0
    power: np.ndarray  # (m,) P . (U - r) and that of the moment, as the residual was last measured, J


def full_contacts(room: int) -> FullContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(3)]
    shapes = ((3, 3), (3,), (3,), (3,), (3,), (3,), (6,), (6, 6), ())
    return FullContacts(
        *rows, *(np.zeros((room, *shape)) for shape in shapes), np.zeros(room, dtype=np.int8), np.zeros((room, 3)),
        np.zeros(room),
    )  # fmt: skip


@kernel
def carried_axis(pairs, k, balls, planes, bodies, axes, out):
    """The axis of anisotropic friction of a pair, in space: see `carried`; a plane goes before what touches it."""
    made_of = balls.material[pairs.first[k]] if k < pairs.balls else planes.material[pairs.first[k]]
    second, a, b = balls.material[pairs.second[k]], pairs.a[k], pairs.b[k]
    later = k < pairs.balls and bodies.identity[a] > bodies.identity[b]
    carried(axes[pairs.law[k]], made_of, second, later, bodies.orientation[a], bodies.orientation[b], out)


@kernel
def fill_some(space, pairs, shapes, bodies, rules, step, mobility, out, shares, where):
    """Fill ``out`` with the full contacts of some pairs: see `fill_contacts`.

    ``where``: the first pair, that after the last one, and the row of the first contact.
    """
    (balls, planes, places), (laws, axes), (begin, end, found) = shapes, rules, where
    first, second, place = pairs.first, pairs.second, pairs.place
    dimension, h, length = mobility.dimension, step.h, mobility.length
    u_before, u_free, axis = np.empty(3), np.empty(3), np.empty(3)
    frame, arm_a, arm_b, shift = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    for k in range(begin, end):
        if pairs.kind[k] != FULL:
            continue
        a, b, gap = pairs.a[k], pairs.b[k], place[k, GAP]
        rule = laws[pairs.law[k]]
        # The contact point lies halfway in the gap; a meets b in its image.
        shift[:] = 0.0
        if k < pairs.balls:
            i, j = first[k], second[k]
            shift[0], shift[1], shift[2] = image(
                space, places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
            )
        for c in range(3):
            point = places[second[k], c] - (balls.radius[second[k]] + 0.5 * gap) * place[k, c]
            arm_a[c], arm_b[c] = point + shift[c] - bodies.position[a, c], point - bodies.position[b, c]
            shift[c] = shift[c] / length if length > 0.0 else 0.0
            out.image[found, c] = shift[c]
        carried_axis(pairs, k, balls, planes, bodies, axes, axis)
        local_frame(place[k], axis, dimension == 2, frame)
        relative_velocity(step.before, a, b, frame, arm_a, arm_b, u_before)
        relative_velocity(step.free, a, b, frame, arm_a, arm_b, u_free)
        add_image(step.before, frame, shift, u_before)
        add_image(step.free, frame, shift, u_free)
        out.pair[found], out.a[found], out.b[found], out.status[found] = k, a, b, OPEN
        out.frame[found], out.arm_a[found], out.arm_b[found] = frame, arm_a, arm_b
        r = target_velocity(gap, u_before[0], rule[RHO], h, step.anticipate, step.opening)
        out.target[found, 0] = r
        deep = gap if step.anticipate else -pairs.memory[k, LOST]
        out.sink[found] = sinking_speed(deep, pair_size(pairs, balls.radius, k), h)
        c1, c2 = rule[FRICTION_1], rule[FRICTION_2]
        slip = u_before[1] ** 2 + u_before[2] ** 2
        if rule[STATIC] > c1 and holds_static(pairs.status[k], slip, u_before[0], gap, h):
            c1 = c2 = rule[STATIC]
        bound = out.bound[found]
        bound[0], bound[1], bound[2], bound[3] = c1, c2, rule[ROLLING], rule[SPINNING]
        bound[4], bound[5] = h * rule[COHESION], h * rule[TENSION]
        contact_block(step.free, mobility.inverse, a, b, frame, arm_a, arm_b, out.delassus[found])
        if mobility.linear.size > 0:
            block_by_direction(step.free, mobility.linear, a, b, frame, shift, out.delassus[found])
        mean = out.delassus[found, 0, 0] + out.delassus[found, 1, 1]
        mean += out.delassus[found, 2, 2] if dimension == 3 else 0.0
        rho = dimension / mean
        scale = (rho * (u_free[0] - r)) ** 2
        for i in range(3):
            out.impulse[found, i] = 0.0
            out.moment[found, i] = 0.0
            for c in range(3):
                out.impulse[found, i] += frame[i, c] * pairs.memory[k, c]
                out.moment[found, i] += frame[i, c] * pairs.moment[k, c]
            if i > 0:
                out.target[found, i] = -rule[TAU] * u_before[i]
                scale += (rho * (u_free[i] - out.target[found, i])) ** 2
        shares[found, 0] = scale
        found += 1


@kernel
def fill_contacts(space, pairs, shapes, bodies, rules, step, mobility, out, shares, meeting):
    """Fill ``out`` with the full contacts of the pairs, each thread those of a part of them.

    ``shapes``: balls, planes, and the places (S, 3) of the balls in space; ``rules``: laws and their axes. The first
    column of the ``shares`` gets (rho b)^2 of each contact.
    """
    enlist(meeting)
    begin, end = part(pairs.kind.size, meeting)
    found = 0
    for k in range(begin):
        found += pairs.kind[k] == FULL
    fill_some(space, pairs, shapes, bodies, rules, step, mobility, out, shares, (begin, end, found))


@kernel
def push(rows, mobility, a, b, frame, arm_a, arm_b, image, p, m):
    """Apply the impulse ``p`` and the moment ``m`` (3,) in the frame of a contact to its bodies."""
    f, t, w = np.empty(3), np.empty(3), np.empty(3)
    inverse, linear = mobility.inverse, mobility.linear
    held = linear.size > 0
    for c in range(3):
        f[c] = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
        t[c] = frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2]
    for side in range(2):
        body, arm, sign = (a, arm_a, -1.0) if side == 0 else (b, arm_b, 1.0)
        if rows[body, 6] == 0.0:
            continue
        for c in range(3):
            d, e = (c + 1) % 3, (c + 2) % 3
            w[c] = arm[d] * f[e] - arm[e] * f[d] + t[c]
        for c in range(3):
            rows[body, c] += sign * (linear[body, c] if held else rows[body, 6]) * f[c]
            turn = inverse[body, c, 0] * w[0] + inverse[body, c, 1] * w[1] + inverse[body, c, 2] * w[2]
            rows[body, 3 + c] += sign * rows[body, 7] * turn
    for k in range(3):
        if image[k] != 0.0:
            cell = rows.shape[0] - 3 + k
            for c in range(3):
                rows[cell, c] += image[k] * linear[cell, c] * f[c]


@kernel
def push_some(rows, mobility, contacts, some):
    """Add the impulses and moments of the contacts ``some`` to the velocities."""
    for at in range(some.size):
        k = some[at]
        push(rows, mobility, contacts.a[k], contacts.b[k], contacts.frame[k], contacts.arm_a[k],
             contacts.arm_b[k], contacts.image[k], contacts.impulse[k], contacts.moment[k])  # fmt: skip


@kernel
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep over the contacts ``some``: see `Kernels`; extrapolated are impulse and moment."""
    b, p, m, dp, dm = np.empty(6), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    change = 0.0
    for at in range(some.size):
        k = some[at]
        i, j, w = contacts.a[k], contacts.b[k], contacts.delassus[k]
        frame, arm_a, arm_b = contacts.frame[k], contacts.arm_a[k], contacts.arm_b[k]
        relative_velocity(rows, i, j, frame, arm_a, arm_b, b[:3])
        add_image(rows, frame, contacts.image[k], b[:3])
        relative_spin(rows, i, j, frame, b[3:])
        for c in range(3):
            b[c] -= contacts.target[k, c]
            p[c], m[c] = contacts.impulse[k, c], contacts.moment[k, c]
            if beta >= 0.0:
                x, y = p[c], m[c]
                if beta > 0.0:
                    p[c], m[c] = x + beta * (x - last[k, c]), y + beta * (y - last[k, 3 + c])
                last[k, c], last[k, 3 + c] = x, y
            dp[c], dm[c] = p[c], m[c]
        for c in range(6):
            for d in range(3):
                b[c] -= w[c, d] * p[d] + w[c, 3 + d] * m[d]
        contacts.status[k] = solve_contact(w, b, contacts.bound[k], p, m)
        for c in range(3):
            dp[c], dm[c] = p[c] - dp[c], m[c] - dm[c]
            contacts.impulse[k, c], contacts.moment[k, c] = p[c], m[c]
            change += w[c, c] * dp[c] ** 2 + w[3 + c, 3 + c] * dm[c] ** 2
        push(rows, mobility, i, j, frame, arm_a, arm_b, contacts.image[k], dp, dm)
    return change


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`; moments enter with their own natural map."""
    sums, dimension = START, mobility.dimension
    u, t, p, r = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for at in range(some.size):
        k = some[at]
        w, bound, m = contacts.delassus[k], contacts.bound[k], contacts.moment[k]
        mean = w[0, 0] + w[1, 1] + (w[2, 2] if dimension == 3 else 0.0)
        stiff = mean / dimension
        rho = 1.0 / stiff
        contact_velocity(rows, contacts, k, u)
        square, power = 0.0, 0.0
        for c in range(3):
            u[c] -= contacts.target[k, c]
            p[c] = contacts.impulse[k, c]
            square += p[c] * p[c]
            power += p[c] * u[c]
        open_ = square == 0.0 and u[0] >= 0.0
        held = bound[5] > 0.0 and p[0] < 0.0
        p[0] += 0.0 if open_ else bound[4]
        if open_:
            r[:] = 0.0
        elif held:  # tension: the contact is closed and carries no friction
            r[0], r[1], r[2] = rho * u[0], p[1], p[2]
        else:
            natural_map(p, u, bound[:2], rho, r)
        share = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        if bound[2] > 0.0 or bound[3] > 0.0:
            relative_spin(rows, contacts.a[k], contacts.b[k], contacts.frame[k], t)
            share += moment_error(w, t, bound, contacts.impulse[k, 0], m) * stiff
            power += m[0] * t[0] + m[1] * t[1] + m[2] * t[2]
        contacts.power[k] = power
        product = 0.0
        if not open_ and not held:
            slide = np.sqrt((bound[0] * u[1]) ** 2 + (bound[1] * u[2]) ** 2)
            product = abs(p[0] * (abs(u[0]) + slide) + p[1] * u[1] + p[2] * u[2])
        sinks = u[0] < -contacts.sink[k]
        shares[k, 0], shares[k, 1] = product + share * stiff, share
        if sinks:
            shares[k, 0] = shares[k, 1] = np.inf
        sums = tallied(sums, int(k), share, product, square, stiff, sinks)
    return sums


@kernel
def separations(rows, contacts):
    """U_n (m,) of the contacts."""
    out, u = np.empty(contacts.pair.size), np.empty(3)
    for k in range(out.size):
        contact_velocity(rows, contacts, k, u)
        out[k] = u[0]
    return out


@kernel
def add_powers(free, rows, contacts, some, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| to ``sums`` (G, 3), those of the moments with them.

    Those of a contact at once: processes add them up for each other.
    """
    u, f, s, t = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for n in range(some.size):
        k = some[n]
        a, b, frame = contacts.a[k], contacts.b[k], contacts.frame[k]
        at, power, change, size = group[a] if rows[a, 6] > 0.0 else group[b], 0.0, 0.0, 0.0
        contact_velocity(rows, contacts, k, u)
        contact_velocity(free, contacts, k, f)
        relative_spin(rows, a, b, frame, s)
        relative_spin(free, a, b, frame, t)
        for c in range(3):
            p, m, left = contacts.impulse[k, c], contacts.moment[k, c], u[c] - contacts.target[k, c]
            power += p * left + m * s[c]
            change += p * (u[c] - f[c]) + m * (s[c] - t[c])
            size += abs(p * left) + abs(m * s[c])
        sums[at, 0] += power
        sums[at, 1] += change
        sums[at, 2] += size


KERNELS[FullContacts] = Kernels(sweep_contacts, measure_contacts, separations, add_powers, add_left)
BY_GROUPS[FullContacts] = ByGroups(push_some, store_some, book_some)


class Met(NamedTuple):
    """What the contacts are filled from."""

    space: NamedTuple
    pairs: Pairs
    balls: Balls
    planes: Planes
    places: np.ndarray  # (S, 3) of the balls, m


class Full(Grouped):
    """The full contacts of a scene: see `Equations`.

    They are not extrapolated where bodies have lever arms or laws of their own. What a sweep leaves under a growing
    load is too small an impulse, and bodies sink by the tolerance; what the extrapolation leaves may be too large, and
    opens the contacts of a block on three legs.
    """

    number, ahead, able = FULL, False, True
    arrays, unknowns, kernels = staticmethod(full_contacts), 6, KERNELS[FullContacts]
    memory = staticmethod(kept)

    def fill(self, model, near, pairs, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        if not self.count and not team.several:
            return 0.0
        met = Met(near.space, pairs, model.balls, model.planes, near.places)
        scale = self._begin(model, met, step, rows, mobility, team)
        self._look(not self._is_light(model, mobility), team)
        return scale

    def _begin(self, model, met: Met, step, rows, mobility, team) -> float:
        """Fill the contacts of what was ``met``, and add the first guess; the sum of (rho b)^2."""
        rules, shares = (model.laws, model.law_axes), self._plan.shares
        team.alike.share(
            fill_contacts, met.space, met.pairs, met[2:], model.bodies, rules, step, mobility, self.active, shares
        )
        return self.guess(rows, mobility, team)

    def _look(self, heavy: bool, team) -> None:
        """Whether contacts may be extrapolated, not where some are ``heavy``; and `together` knows their laws."""
        told = team.count(heavy, bool(self.active.bound[:, [2, 3, 5]].any()))  # tension and moments
        self.ahead, self.able = (not any(column) for column in zip(*told, strict=True))

    def _is_light(self, model, mobility) -> bool:
        """Whether all contacts are those of balls or of walls that do not turn, with Coulomb's law."""
        c = self.active
        if c.bound[:, 2:].any():
            return False
        bodies = np.unique(np.concatenate([c.a, c.b]))
        heavy = bodies[~model.bodies.simple[bodies]]
        return not mobility.inverse[heavy].any()

    def cell_work(self, rows, driven) -> float:
        """Of the components ``driven`` (3, 3) of a moving cell, the last of ``rows``, on the present impulses, J."""
        return cell_work(rows, driven, self.active)

    def acting(self) -> tuple:
        """(count, 3) impulses and moments, in the frames."""
        return self.active.impulse, self.active.moment

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`."""
        return self.active.target[:, 0].copy()

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out, in the order of their pairs."""
        c = self.active
        return Explicit(
            *(column.astype(np.int64) for column in (c.pair, c.a, c.b)), c.frame, c.arm_a, c.arm_b, c.target,
            c.bound[:, :2], (c.bound[:, 2:] == 0).all(axis=1), c.impulse, c.moment, c.status,
            c.bound[:, 4],
        )  # fmt: skip

    def accept(self, written, impulse) -> None:
        """Take over impulses (count, 3) in the frames."""
        self.active.impulse[:], self.active.status[:] = impulse, status_of(impulse, written.friction, written.glue)
