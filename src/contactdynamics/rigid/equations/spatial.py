"""Spatial equations: contacts of polyhedra, with lever arms; three components, five lines of cache.

A contact has the components (n, t, s) of a frame in space. With the arms from the centres of the bodies to the contact
point over c, and s = c w the scaled spin of a body's row (see `contract`), U = (n, t, s) . (v_b + s_b x arm_b - v_a -
s_a x arm_a); the impulse F in space changes s by c^2 I^-1 (arm x F). A contact sticks where P - W^-1 U is in its cone;
where not, `laws.solve_three` solves its problem exactly. Anisotropic friction, rolling and spinning resistance,
cohesion and tension as in `full`, where the laws are explained.
"""

import numpy as np

from ..._jit import kernel
from ...problem.laws import _project_wedge, natural_map
from ...scenes.materials import COHESION, FRICTION_1, FRICTION_2, RHO, ROLLING, SPINNING, STATIC, TAU, TENSION
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..crew import enlist
from ..search import touches as touch
from ..search.contract import SPATIAL
from ..threads import BLOCKS, meet, part
from .angular import Angular, block_of_pairs, some_special
from .contract import (
    KERNELS,
    START,
    Explicit,
    Kernels,
    holds_static,
    local_frame,
    lost_after,
    sinking_speed,
    tallied,
    target_velocity,
)
from .grouped import BY_GROUPS, ByGroups, add_left
from .held import status_of
from .joints import fill_joints
from .levers import carried, contact_block
from .local import moment_error
from .spatial_rows import (
    C1,
    C2,
    GLUE,
    MOMENT,
    PULL,
    ROLL,
    SPIN,
    STEP,
    WSS,
    WTT,
    A,
    B,
    N,
    P,
    R,
    S,
    SpatialContacts,
    T,
    fill_block,
    moment_powers,
    push_some,
    relative_spin,
    spatial_contacts,
    velocity,
)
from .spatial_sweep import fill_arrays, sweep_contacts

NX, NY, NZ, X, Y, Z = touch.PLACE


@kernel
def fill_frames(touches, made_of, placed, rules, rows, out, begin, end):
    """Frames and arms of the contacts from ``begin`` on, before ``end``: see `fill_contacts`.

    An axis of friction turns the frame.
    """
    (materials, plane_materials), (position, orientation, identity), (laws, axes) = made_of, placed, rules
    place, index, planes, row, axis, frame = (
        touches.place, touches.index, touches.planes, out.row, np.empty(3), np.empty((3, 3))
    )  # fmt: skip
    for k in range(begin, end):
        a, b, law = touches.a[k], touches.b[k], index[k, touch.LAW]
        out.a[k], out.b[k] = a, b
        nx, ny, nz = place[k, NX], place[k, NY], place[k, NZ]
        row[k, N], row[k, N + 1], row[k, N + 2] = nx, ny, nz
        if laws[law, FRICTION_1] != laws[law, FRICTION_2]:
            first = index[k, touch.FIRST]
            one = materials[first] if k < planes else plane_materials[first]
            later = k < planes and identity[a] > identity[b]
            carried(axes[law], one, materials[index[k, touch.SECOND]], later, orientation[a], orientation[b], axis)
            local_frame(place[k, NX : NZ + 1], axis, False, frame)
            for c in range(3):
                row[k, T + c], row[k, S + c] = frame[1, c], frame[2, c]
        else:  # Duff et al. (2017)
            sign = 1.0 if nz >= 0.0 else -1.0
            f = -1.0 / (sign + nz)
            row[k, T], row[k, T + 1], row[k, T + 2] = 1.0 + sign * nx * nx * f, sign * nx * ny * f, -sign * nx
            row[k, S], row[k, S + 1], row[k, S + 2] = nx * ny * f, sign + ny * ny * f, -ny
        fa, fb = 1.0 / rows[a, 7], 1.0 / rows[b, 7]
        row[k, A], row[k, B] = fa * (place[k, X] - position[a, 0]), fb * (place[k, X] - position[b, 0])
        row[k, A + 1], row[k, B + 1] = fa * (place[k, Y] - position[a, 1]), fb * (place[k, Y] - position[b, 1])
        row[k, A + 2], row[k, B + 2] = fa * (place[k, Z] - position[a, 2]), fb * (place[k, Z] - position[b, 2])


@kernel
def fill_some(touches, step, rows, laws, mobility, out, shares, begin, end):
    """Blocks, targets and laws of contacts whose frames are there: see `fill_contacts`.

    Returns whether there are other laws than Coulomb's.
    """
    special = False
    index, place, gaps, memory, status = touches.index, touches.place, touches.gap, touches.memory, touches.status
    before, free, h, inverse, lost = step.before, step.free, step.h, mobility.inverse, touches.lost
    one, two, row, law = out.a, out.b, out.row, out.law
    for k in range(begin, end):
        a, b, rule, gap = one[k], two[k], index[k, touch.LAW], gaps[k]
        fill_block(rows, inverse, a, b, row, k)
        u, v, w = velocity(before, a, b, row, k)
        row[k, R] = target_velocity(gap, u, laws[rule, RHO], h, step.anticipate, step.opening)
        row[k, R + 1], row[k, R + 2] = -laws[rule, TAU] * v, -laws[rule, TAU] * w
        row[k, C1], row[k, C2] = laws[rule, FRICTION_1], laws[rule, FRICTION_2]
        if laws[rule, STATIC] > laws[rule, FRICTION_1] and holds_static(status[k], v * v + w * w, u, gap, h):
            row[k, C1] = row[k, C2] = laws[rule, STATIC]
        glue, pull = h * laws[rule, COHESION], h * laws[rule, TENSION]
        x, y, z = memory[k, 0], memory[k, 1], memory[k, 2]
        row[k, P] = max(-max(glue, pull), x * row[k, N] + y * row[k, N + 1] + z * row[k, N + 2])
        row[k, P + 1] = x * row[k, T] + y * row[k, T + 1] + z * row[k, T + 2]
        row[k, P + 2] = x * row[k, S] + y * row[k, S + 1] + z * row[k, S + 2]
        law[k, GLUE], law[k, PULL], law[k, ROLL], law[k, SPIN] = glue, pull, laws[rule, ROLLING], laws[rule, SPINNING]
        turning = laws[rule, ROLLING] > 0.0 or laws[rule, SPINNING] > 0.0
        special = special or glue > 0.0 or pull > 0.0 or turning
        out.sink[k] = sinking_speed(gap if step.anticipate else -lost[k], place[k, touch.SIZE], h)
        u, v, w = velocity(free, a, b, row, k)
        u, v, w = u - row[k, R], v - row[k, R + 1], w - row[k, R + 2]
        shares[k, 0] = row[k, STEP] ** 2 * (u * u + v * v + w * w)
        for c in range(3):
            law[k, MOMENT + c] = 0.0
        if turning:
            x, y, z = memory[k, 3], memory[k, 4], memory[k, 5]
            for c in range(3):
                law[k, MOMENT + c] = x * row[k, 3 * c] + y * row[k, 3 * c + 1] + z * row[k, 3 * c + 2]
    return special


@kernel
def fill_contacts(touches, made_of, placed, step, rows, rules, mobility, out, shares, parts, meeting):
    """Fill ``out`` from the active ``touches``; the first column of the ``shares`` gets (rho b)^2 of each.

    ``made_of``: the materials of balls and planes; ``placed``: position, orientation, identity of the bodies;
    ``rules``: laws and their axes. Threads share the blocks of the contacts, and note in ``parts`` (BLOCKS,) where
    there are other laws than Coulomb's.
    """
    enlist(meeting)
    first, after = part(BLOCKS, meeting)
    for k in range(first, after):
        begin, end = block_of_pairs(touches.index, touches.planes, k)
        fill_frames(touches, made_of, placed, rules, rows, out, begin, end)
        parts[k] = fill_some(touches, step, rows, rules[0], mobility, out, shares, begin, end)
        fill_joints(touches, rows, mobility.inverse, step.h, out, begin, end)
    meet(meeting, rows)
    some_special(parts, out.special, meeting.thread == 0)


@kernel
def special_share(rows, inverse, contacts, k, u, v, s):
    """The squared natural map of a contact with all laws, and its |b(U, P)|: see `full.measure_contacts`."""
    row, law, a, b = contacts.row, contacts.law, contacts.a[k], contacts.b[k]
    x, p, out, bound = np.empty(3), np.empty(3), np.zeros(3), np.empty(6)
    frame, arm_a, arm_b = np.empty((3, 3)), np.empty(3), np.empty(3)
    fill_arrays(rows, row, law, k, a, b, frame, arm_a, arm_b, bound)
    x[0], x[1], x[2] = u, v, s
    square, bipotential = 0.0, 0.0
    for c in range(3):
        p[c] = row[k, P + c]
        square += p[c] * p[c]
    open_ = bound[4] > 0.0 and square == 0.0 and u >= 0.0
    if bound[5] > 0.0 and p[0] < 0.0:  # tension: the contact is closed and carries no friction
        out[0], out[1], out[2] = row[k, STEP] * u, p[1], p[2]
    elif not open_:
        p[0] += bound[4]
        natural_map(p, x, bound[:2], row[k, STEP], out)
        slide = np.sqrt((bound[0] * v) ** 2 + (bound[1] * s) ** 2)
        bipotential = abs(p[0] * (abs(u) + slide) + p[1] * v + p[2] * s)
    share = out[0] ** 2 + out[1] ** 2 + out[2] ** 2
    if bound[2] > 0.0 or bound[3] > 0.0:
        w = np.empty((6, 6))
        contact_block(rows, inverse, a, b, frame, arm_a, arm_b, w)
        relative_spin(rows, a, b, row, k, x)
        share += moment_error(w, x, bound, row[k, P], law[k, MOMENT : MOMENT + 3]) / row[k, STEP]
    return share, bipotential


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`."""
    sums = START
    row, special, one, two, sink = contacts.row, contacts.special[0], contacts.a, contacts.b, contacts.sink
    power = contacts.power
    for at in range(some.size):
        k = int(some[at])
        rho = row[k, STEP]
        u, v, s = velocity(rows, one[k], two[k], row, k)
        u, v, s = u - row[k, R], v - row[k, R + 1], s - row[k, R + 2]
        p, q, r = row[k, P], row[k, P + 1], row[k, P + 2]
        square, power[k] = p * p + q * q + r * r, p * u + q * v + r * s
        if special:
            power[k] += moment_powers(rows, rows, one[k], two[k], row, contacts.law, k)[0]
        if special or row[k, C1] != row[k, C2]:
            share, part = special_share(rows, mobility.inverse, contacts, k, u, v, s)
        else:
            gamma, slip = row[k, C1], np.sqrt(v * v + s * s)
            y, z = q - rho * v, r - rho * s
            length = np.sqrt(y * y + z * z)
            x, flat = _project_wedge(p - rho * (u + gamma * slip), length, gamma, 0.0)
            shrink = flat / length if length > 0.0 else 0.0
            share = (p - x) ** 2 + (q - shrink * y) ** 2 + (r - shrink * z) ** 2
            part = abs(p * (abs(u) + gamma * slip) + q * v + r * s)
        sinks = u < -sink[k]
        stiff = 1.0 / rho
        shares[k, 0], shares[k, 1] = part + share * stiff, share
        if sinks:
            shares[k, 0] = shares[k, 1] = np.inf
        sums = tallied(sums, k, share, part, square, stiff, sinks)
    return sums


@kernel
def store_some(rows, contacts, some, tolerance, touches):
    """Store status, impulse and moment of the contacts ``some`` with the touches: see `grouped.ByGroups`."""
    cone, size = 0.0, 0.0
    one, two, row, law, status = contacts.a, contacts.b, contacts.row, contacts.law, contacts.status
    memory, kept = touches.memory, touches.status
    for at in range(some.size):
        k = some[at]
        p, q, r, c1, c2 = row[k, P], row[k, P + 1], row[k, P + 2], row[k, C1], row[k, C2]
        if status[k] == SLIDING and p > 0.0:
            _, v, s = velocity(rows, one[k], two[k], row, k)
            v, s = v - row[k, R + 1], s - row[k, R + 2]
            taken = min(c1 * row[k, WTT], c2 * row[k, WSS]) * p
            if taken > 0.0 and v * v + s * s <= (tolerance * taken) ** 2:
                status[k] = STICKING
        kept[k] = status[k]
        size += p * p + q * q + r * r
        if status[k] != SEPARATING:
            cone = max(cone, np.sqrt(q * q + r * r) - max(max(c1, c2) * (p + law[k, GLUE]), 0.0))
        for c in range(3):
            memory[k, c] = row[k, N + c] * p + row[k, T + c] * q + row[k, S + c] * r
            memory[k, 3 + c] = (row[k, N + c] * law[k, MOMENT] + row[k, T + c] * law[k, MOMENT + 1]
                                + row[k, S + c] * law[k, MOMENT + 2])  # fmt: skip
    return cone, size


@kernel
def book_some(before, rows, sorts, driven, length, touches, contacts, some, works):
    """Add the works of the contacts ``some`` to ``works`` (L, 4), and enter what they lost: see `grouped.ByGroups`."""
    one, two, row, law, index, memory, lost = (
        contacts.a, contacts.b, contacts.row, contacts.law, touches.index, touches.memory, touches.lost
    )  # fmt: skip
    x, y, most, (kind, _) = np.empty(3), np.empty(3), 0.0, sorts
    for at in range(some.size):
        k = some[at]
        a, b, entry = one[k], two[k], index[k, touch.LAW]
        u, v, s = velocity(before, a, b, row, k)
        f, g, h = velocity(rows, a, b, row, k)
        lost[k] = lost_after(lost[k], f, row[k, R], length)
        most = max(most, lost[k])
        works[entry, 0] += 0.5 * (u + f) * row[k, P]
        works[entry, 1] += 0.5 * ((v + g) * row[k, P + 1] + (s + h) * row[k, P + 2])
        if law[k, MOMENT] != 0.0 or law[k, MOMENT + 1] != 0.0 or law[k, MOMENT + 2] != 0.0:
            relative_spin(before, a, b, row, k, x)
            relative_spin(rows, a, b, row, k, y)
            for c in range(3):
                works[entry, 2] += 0.5 * (x[c] + y[c]) * law[k, MOMENT + c]
        for side in range(2):
            body, arm, sign = (a, A, 1.0) if side == 0 else (b, B, -1.0)
            if kind[body] != DRIVEN:
                continue
            for c in range(3):
                d, e = (c + 1) % 3, (c + 2) % 3
                speed = rows[body, c] + rows[body, 3 + d] * row[k, arm + e] - rows[body, 3 + e] * row[k, arm + d]
                works[entry, 3] += sign * (speed * memory[k, c] + rows[body, 3 + c] / rows[body, 7] * memory[k, 3 + c])
    return most


@kernel
def separations(rows, contacts):
    """U_n (m,) of the contacts."""
    out = np.empty(contacts.a.size)
    for k in range(out.size):
        out[k] = velocity(rows, contacts.a[k], contacts.b[k], contacts.row, k)[0]
    return out


@kernel
def add_powers(free, rows, contacts, some, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| to ``sums`` (G, 3), those of the moments with them.

    Those of a contact at once: processes add them up for each other.
    """
    row, law = contacts.row, contacts.law
    for n in range(some.size):
        k = some[n]
        a, b = contacts.a[k], contacts.b[k]
        at = group[a] if rows[a, 6] > 0.0 else group[b]
        u, f = velocity(rows, a, b, row, k), velocity(free, a, b, row, k)
        power, change, size = 0.0, 0.0, 0.0
        if contacts.special[0]:
            power, change, size = moment_powers(rows, free, a, b, row, law, k)
        for c in range(3):
            p, left = row[k, P + c], u[c] - row[k, R + c]
            power, change, size = power + p * left, change + p * (u[c] - f[c]), size + abs(p * left)
        sums[at, 0] += power
        sums[at, 1] += change
        sums[at, 2] += size


KERNELS[SpatialContacts] = Kernels(sweep_contacts, measure_contacts, separations, add_powers, add_left)
BY_GROUPS[SpatialContacts] = ByGroups(push_some, store_some, book_some)


class Spatial(Angular):
    """The contacts of polyhedra in a scene: see `Equations`."""

    number, beyond = SPATIAL, slice(PULL, MOMENT)
    arrays, unknowns, kernels = staticmethod(spatial_contacts), 6, KERNELS[SpatialContacts]
    filling = staticmethod(fill_contacts)

    def fill(self, model, near, touches, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        b, made_of, rules = model.bodies, (model.balls.material, model.planes.material), (model.laws, model.law_axes)
        given = self._part(touches), made_of, (b.position, b.orientation, b.identity), step, rows, rules, mobility
        return self._begin(given, rows, mobility, team)

    def acting(self) -> tuple:
        """(count, 3) impulses and moments, in the frames."""
        return self.active.row[:, P:R], self.active.law[:, MOMENT:]

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`."""
        return self.active.row[:, R].copy()

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out."""
        c, m = self.active, self.count
        row, law, a, b = c.row, c.law, c.a.astype(np.int64), c.b.astype(np.int64)
        arms = (rows[body, 7:] * row[:, at : at + 3] for body, at in ((a, A), (b, B)))
        return Explicit(
            self.places, a, b, row[:, N:A].reshape(m, 3, 3).copy(), *arms, row[:, R:C1].copy(),
            row[:, C1 : C2 + 1].copy(), (law[:, :MOMENT] == 0).all(axis=1), row[:, P:R].copy(),
            law[:, MOMENT:].copy(), c.status, law[:, GLUE].copy(),
        )  # fmt: skip

    def accept(self, written, impulse) -> None:
        """Take over impulses (count, 3) in the frames."""
        self.active.row[:, P:R], self.active.status[:] = impulse, status_of(impulse, written.friction, written.glue)
