"""Planar equations: contacts of polygons, with lever arms in the plane; two components, two lines of cache.

A contact has two components (n, t), t = z x n. With the arms from the centres of the bodies to the contact point,
U = (n, t) . (v_b - v_a) + lever_b s_b - lever_a s_a, where s = c w is the scaled spin of a body's row (see `contract`)
and lever = (arm x n, arm x t) / c. The impulse changes s by c^2 / I lever . P. The local problem is solved exactly by
`laws.solve_two`; rolling resistance, cohesion and tension as in `full`, where the laws are explained. The two ends of
an edge are solved together.
"""

import numpy as np

from ..._jit import kernel
from ...problem.laws import _project_wedge
from ...scenes.materials import COHESION, FRICTION_1, RHO, ROLLING, STATIC, TAU, TENSION
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..crew import enlist
from ..search import touches as touch
from ..search.contract import NEAR, PLANAR
from ..threads import BLOCKS, meet, part
from .angular import Angular, block_of_pairs, same_pair, some_special
from .contract import (
    KERNELS,
    START,
    Explicit,
    Kernels,
    holds_static,
    lost_after,
    sinking_speed,
    tallied,
    target_velocity,
)
from .grouped import BY_GROUPS, ByGroups, add_left
from .held import status_of
from .planar_rows import (
    AN,
    AT,
    BN,
    BT,
    GAMMA,
    GLUE,
    KA,
    KB,
    MOMENT,
    NX,
    NY,
    PN,
    PT,
    PULL,
    RN,
    ROLL,
    RT,
    WNN,
    WNT,
    WTT,
    PlanarContacts,
    planar_contacts,
    push_some,
    velocity,
)
from .planar_sweep import couple, sweep_contacts


@kernel
def fill_some(touches, position, step, rows, laws, mobility, out, shares, begin, end):
    """Fill the contacts from ``begin`` on, before ``end``: see `fill_contacts`.

    Returns whether there are other laws than Coulomb's.
    """
    special = False
    index, place, gaps, memory, status, lost, planes = (
        touches.index, touches.place, touches.gap, touches.memory, touches.status, touches.lost, touches.planes
    )  # fmt: skip
    before, free, h, inverse = step.before, step.free, step.h, mobility.inverse
    one, two, row, law, joint, edge = out.a, out.b, out.row, out.law, out.joint, out.edge
    for k in range(begin, end):
        a, b, rule = touches.a[k], touches.b[k], index[k, touch.LAW]
        nx, ny, gap = place[k, touch.NX], place[k, touch.NY], gaps[k]
        ax, ay = place[k, touch.X] - position[a, 0], place[k, touch.Y] - position[a, 1]
        bx, by = place[k, touch.X] - position[b, 0], place[k, touch.Y] - position[b, 1]
        ca, cb = rows[a, 7], rows[b, 7]
        row[k, NX], row[k, NY] = nx, ny
        # arm x n and arm x t = arm . n
        row[k, AN], row[k, AT] = (ax * ny - ay * nx) / ca, (ax * nx + ay * ny) / ca
        row[k, BN], row[k, BT] = (bx * ny - by * nx) / cb, (bx * nx + by * ny) / cb
        row[k, KA], row[k, KB] = ca * ca * inverse[a, 2, 2], cb * cb * inverse[b, 2, 2]
        mass = rows[a, 6] + rows[b, 6]
        row[k, WNN] = mass + row[k, KA] * row[k, AN] ** 2 + row[k, KB] * row[k, BN] ** 2
        row[k, WNT] = row[k, KA] * row[k, AN] * row[k, AT] + row[k, KB] * row[k, BN] * row[k, BT]
        row[k, WTT] = mass + row[k, KA] * row[k, AT] ** 2 + row[k, KB] * row[k, BT] ** 2
        u_n, u_t = velocity(before, a, b, row, k)
        row[k, RN] = target_velocity(gap, u_n, laws[rule, RHO], h, step.anticipate, step.opening)
        row[k, RT] = -laws[rule, TAU] * u_t
        row[k, GAMMA] = laws[rule, FRICTION_1]
        if laws[rule, STATIC] > laws[rule, FRICTION_1] and holds_static(status[k], u_t * u_t, u_n, gap, h):
            row[k, GAMMA] = laws[rule, STATIC]
        px, py = memory[k, 0], memory[k, 1]
        glue = h * laws[rule, COHESION]
        row[k, PN] = max(-max(glue, h * laws[rule, TENSION]), px * nx + py * ny)
        row[k, PT] = py * nx - px * ny
        law[k, GLUE], law[k, PULL] = glue, h * laws[rule, TENSION]
        law[k, ROLL], law[k, MOMENT] = laws[rule, ROLLING], memory[k, 2]
        special = special or glue > 0.0 or laws[rule, TENSION] > 0.0 or laws[rule, ROLLING] > 0.0
        one[k], two[k], joint[k] = a, b, False
        out.sink[k] = sinking_speed(gap if step.anticipate else -lost[k], place[k, touch.SIZE], h)
        if same_pair(index, k, planes):
            level = abs(gap - gaps[k - 1]) <= NEAR * place[k, touch.SIZE]
            joint[k - 1] = level and not (k - 1 > begin and joint[k - 2])
            if joint[k - 1]:
                couple(row, edge, k - 1, mass)
        f_n, f_t = velocity(free, a, b, row, k)
        rho = 2.0 / (row[k, WNN] + row[k, WTT])
        shares[k, 0] = rho * rho * ((f_n - row[k, RN]) ** 2 + (f_t - row[k, RT]) ** 2)
    return special


@kernel
def fill_contacts(touches, position, step, rows, laws, mobility, out, shares, parts, meeting):
    """Fill ``out`` from the active ``touches``; the first column of the ``shares`` gets (rho b)^2 of each.

    Threads share the blocks of the contacts, and note in ``parts`` (BLOCKS,) where there are other laws than Coulomb's.
    """
    enlist(meeting)
    first, after = part(BLOCKS, meeting)
    for k in range(first, after):
        begin, end = block_of_pairs(touches.index, touches.planes, k)
        parts[k] = fill_some(touches, position, step, rows, laws, mobility, out, shares, begin, end)
    meet(meeting, rows)
    some_special(parts, out.special, meeting.thread == 0)


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`."""
    sums, row, law, powers = START, contacts.row, contacts.law, contacts.power
    for at in range(some.size):
        k = some[at]
        a, b, m = contacts.a[k], contacts.b[k], law[k, MOMENT]
        stiff = 0.5 * (row[k, WNN] + row[k, WTT])
        rho = 1.0 / stiff
        u_n, u_t = velocity(rows, a, b, row, k)
        u_n, u_t, p_n, p_t, gamma = u_n - row[k, RN], u_t - row[k, RT], row[k, PN], row[k, PT], row[k, GAMMA]
        square, power = p_n * p_n + p_t * p_t, p_n * u_n + p_t * u_t
        share, product = 0.0, 0.0
        if law[k, PULL] > 0.0 and p_n < 0.0:  # tension: closed, without friction
            share = (rho * u_n) ** 2 + p_t * p_t
        elif not (law[k, GLUE] > 0.0 and square == 0.0 and u_n >= 0.0):
            p_n += law[k, GLUE]
            x_n, x_t = _project_wedge(p_n - rho * (u_n + gamma * abs(u_t)), p_t - rho * u_t, gamma, gamma)
            share = (p_n - x_n) ** 2 + (p_t - x_t) ** 2
            product = abs(p_n * (abs(u_n) + gamma * abs(u_t)) + p_t * u_t)
        if law[k, ROLL] > 0.0:
            turn = row[k, KA] / rows[a, 7] ** 2 + row[k, KB] / rows[b, 7] ** 2
            spin, limit = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7], law[k, ROLL] * max(row[k, PN], 0.0)
            share += turn * (m - min(limit, max(-limit, m - spin / turn))) ** 2 * stiff
        if m != 0.0:
            power += m * (rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7])
        powers[k] = power
        sinks = u_n < -contacts.sink[k]
        shares[k, 0], shares[k, 1] = product + share * stiff, share
        if sinks:
            shares[k, 0] = shares[k, 1] = np.inf
        sums = tallied(sums, int(k), share, product, square, stiff, sinks)
    return sums


@kernel
def store_some(rows, contacts, some, tolerance, touches):
    """Store status, impulse and moment of the contacts ``some`` with the touches: see `grouped.ByGroups`."""
    cone, size = 0.0, 0.0
    one, two, row, law, status = contacts.a, contacts.b, contacts.row, contacts.law, contacts.status
    memory, kept = touches.memory, touches.status
    for at in range(some.size):
        k = some[at]
        p_n, p_t = row[k, PN], row[k, PT]
        if status[k] == SLIDING and p_n > 0.0:
            _, u_t = velocity(rows, one[k], two[k], row, k)
            taken = row[k, GAMMA] * row[k, WTT] * p_n
            if taken > 0.0 and abs(u_t - row[k, RT]) <= tolerance * taken:
                status[k] = STICKING
        kept[k] = status[k]
        size += p_n * p_n + p_t * p_t
        if status[k] != SEPARATING:
            cone = max(cone, abs(p_t) - max(row[k, GAMMA] * (p_n + law[k, GLUE]), 0.0))
        memory[k, 0], memory[k, 1] = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
        memory[k, 2] = law[k, MOMENT]
    return cone, size


@kernel
def book_some(before, rows, sorts, driven, h, touches, contacts, some, works):
    """Add the works of the contacts ``some`` to ``works`` (L, 4), and enter what they lost: see `grouped.ByGroups`."""
    one, two, row, law, index, lost = (
        contacts.a, contacts.b, contacts.row, contacts.law, touches.index, touches.lost
    )  # fmt: skip
    (kind, _), most = sorts, 0.0
    for at in range(some.size):
        k = some[at]
        a, b, m = one[k], two[k], law[k, MOMENT]
        u_n, u_t = velocity(before, a, b, row, k)
        v_n, v_t = velocity(rows, a, b, row, k)
        p_n, p_t = row[k, PN], row[k, PT]
        entry = index[k, touch.LAW]
        lost[k] = lost_after(lost[k], v_n, row[k, RN], h)
        most = max(most, lost[k])
        works[entry, 0] += 0.5 * (u_n + v_n) * p_n
        works[entry, 1] += 0.5 * (u_t + v_t) * p_t
        if m != 0.0:
            spin = (before[b, 5] + rows[b, 5]) / rows[b, 7] - (before[a, 5] + rows[a, 5]) / rows[a, 7]
            works[entry, 2] += 0.5 * spin * m
        x, y = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
        if kind[a] == DRIVEN:
            turn = row[k, AN] * p_n + row[k, AT] * p_t + m / rows[a, 7]
            works[entry, 3] += rows[a, 0] * x + rows[a, 1] * y + rows[a, 5] * turn
        if kind[b] == DRIVEN:
            turn = row[k, BN] * p_n + row[k, BT] * p_t + m / rows[b, 7]
            works[entry, 3] -= rows[b, 0] * x + rows[b, 1] * y + rows[b, 5] * turn
    return most


@kernel
def separations(rows, contacts):
    """U_n (m,) of the contacts."""
    out = np.empty(contacts.a.size)
    for k in range(out.size):
        out[k], _ = velocity(rows, contacts.a[k], contacts.b[k], contacts.row, k)
    return out


@kernel
def add_powers(free, rows, contacts, some, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| to ``sums`` (G, 3), those of the moments with them.

    Those of a contact at once: processes add them up for each other.
    """
    row, law = contacts.row, contacts.law
    for n in range(some.size):
        k = some[n]
        a, b, m = contacts.a[k], contacts.b[k], law[k, MOMENT]
        at = group[a] if rows[a, 6] > 0.0 else group[b]
        u_n, u_t = velocity(rows, a, b, row, k)
        f_n, f_t = velocity(free, a, b, row, k)
        p_n, p_t = row[k, PN], row[k, PT]
        spin = rows[b, 5] / rows[b, 7] - rows[a, 5] / rows[a, 7]
        turn = m * (spin - free[b, 5] / rows[b, 7] + free[a, 5] / rows[a, 7])
        sums[at, 1] += p_n * (u_n - f_n) + p_t * (u_t - f_t) + turn
        u_n, u_t = u_n - row[k, RN], u_t - row[k, RT]
        sums[at, 0] += p_n * u_n + p_t * u_t + m * spin
        sums[at, 2] += abs(p_n * u_n) + abs(p_t * u_t) + abs(m * spin)


KERNELS[PlanarContacts] = Kernels(sweep_contacts, measure_contacts, separations, add_powers, add_left)
BY_GROUPS[PlanarContacts] = ByGroups(push_some, store_some, book_some)


@kernel
def write_out(rows, c_a, c_b, row, law, a, b, frame, wide, friction, plain):
    """Contacts as `Explicit` has them; ``wide`` (5, m, 3): arms of a and b, target, impulse, moment.

    The arm of a body is c (lever_t n - lever_n t), by the definition of the levers.
    """
    frame[:] = 0.0
    wide[:] = 0.0
    for k in range(a.size):
        a[k], b[k], n_x, n_y = c_a[k], c_b[k], row[k, NX], row[k, NY]
        frame[k, 0, 0], frame[k, 0, 1], frame[k, 1, 0], frame[k, 1, 1], frame[k, 2, 2] = n_x, n_y, -n_y, n_x, 1.0
        for side in range(2):
            size = rows[b[k] if side else a[k], 7]
            n, t = (row[k, BN], row[k, BT]) if side else (row[k, AN], row[k, AT])
            wide[side, k, 0], wide[side, k, 1] = size * (t * n_x + n * n_y), size * (t * n_y - n * n_x)
        wide[2, k, 0], wide[2, k, 1] = row[k, RN], row[k, RT]
        wide[3, k, 0], wide[3, k, 1], wide[4, k, 2] = row[k, PN], row[k, PT], law[k, MOMENT]
        friction[k, 0] = friction[k, 1] = row[k, GAMMA]
        plain[k] = law[k, GLUE] == 0.0 and law[k, PULL] == 0.0 and law[k, ROLL] == 0.0


class Planar(Angular):
    """The contacts of polygons in a scene: see `Equations`."""

    number, beyond = PLANAR, slice(PULL, MOMENT)
    arrays, kernels = staticmethod(planar_contacts), KERNELS[PlanarContacts]
    filling = staticmethod(fill_contacts)

    def fill(self, model, near, touches, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        given = self._part(touches), model.bodies.position, step, rows, model.laws, mobility
        return self._begin(given, rows, mobility, team)

    def acting(self) -> tuple:
        """(count, 2) impulses, in the frames, and (count, 1) moments."""
        return self.active.row[:, PN : PT + 1], self.active.law[:, MOMENT:]

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`."""
        return self.active.row[:, RN].copy()

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out."""
        c, m = self.active, self.count
        a, b = np.empty((2, m), dtype=np.int64)
        frame, wide = np.empty((m, 3, 3)), np.empty((5, m, 3))
        friction, plain = np.empty((m, 2)), np.empty(m, dtype=np.bool_)
        write_out(rows, c.a, c.b, c.row, c.law, a, b, frame, wide, friction, plain)
        return Explicit(
            self.places, a, b, frame, *wide[:3], friction, plain, *wide[3:], c.status, c.law[:, GLUE].copy()
        )

    def accept(self, written, impulse) -> None:
        """Take over impulses (count, 3) in the frames."""
        c = self.active
        c.row[:, PN], c.row[:, PT] = impulse[:, 0], impulse[:, 1]
        c.status[:] = status_of(impulse, written.friction, written.glue)
