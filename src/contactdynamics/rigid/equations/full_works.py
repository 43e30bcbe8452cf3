"""What is kept of full contacts after the solution, and their works: by law, of drives and of a moving cell."""

import numpy as np

from ..._jit import kernel
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..crew import enlist
from ..motion import is_held
from ..threads import share_out
from .contract import ALL, lost_after, own_groups, put_together
from .levers import contact_velocity, relative_spin


@kernel
def book_some(before, rows, bodies, driven, pairs_law, contacts, works, some):
    """Add the works of the contacts ``some`` to ``works`` (L, 4): see `book_contacts`."""
    kind, held = bodies.kind, bodies.held
    u, v, s, t = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for at in range(some.size):
        k = some[at]
        a, b, frame = contacts.a[k], contacts.b[k], contacts.frame[k]
        arm_a, arm_b, p, m = contacts.arm_a[k], contacts.arm_b[k], contacts.impulse[k], contacts.moment[k]
        contact_velocity(before, contacts, k, u)
        contact_velocity(rows, contacts, k, v)
        relative_spin(before, a, b, frame, s)
        relative_spin(rows, a, b, frame, t)
        book = works[pairs_law[contacts.pair[k]]]
        book[0] += 0.5 * (u[0] + v[0]) * p[0]
        book[1] += 0.5 * ((u[1] + v[1]) * p[1] + (u[2] + v[2]) * p[2])
        book[2] += 0.5 * ((s[0] + t[0]) * m[0] + (s[1] + t[1]) * m[1] + (s[2] + t[2]) * m[2])
        if kind[a] == DRIVEN:
            book[3] += driven_power(rows, a, arm_a, frame, p, m)
        if kind[b] == DRIVEN:
            book[3] -= driven_power(rows, b, arm_b, frame, p, m)
        if held[a] > 0:
            book[3] += held_power(rows, a, held[a], arm_a, frame, p, m)
        if held[b] > 0:
            book[3] -= held_power(rows, b, held[b], arm_b, frame, p, m)
        book[3] -= cell_power(rows, contacts.image[k], driven, frame, p)


@kernel
def book_contacts(before, rows, bodies, driven, h, pairs_law, lost, contacts, works, order, cuts, parts, meeting):
    """Add the works of the contacts to ``works`` (L, 4): normal, tangential, rolling, drive; by ``parts``.

    ``parts`` (ALL, L + 1, 4) are those of the groups, from ``cuts`` on in the ``order`` of the sweeps; zeros. Enters
    into ``lost`` (K,) of the pairs what the solver left, and returns the largest; without it, (0,), nothing. ``driven``
    (3, 3): which components of the velocity gradient of a moving cell are imposed.
    """
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        for group in range(first, after):
            some = order[cuts[group] : cuts[group + 1]]
            book_some(before, rows, bodies, driven, pairs_law, contacts, parts[group], some)
            if lost.size > 0:
                parts[group, works.shape[0], 0] = lose(rows, contacts, h, lost, some)
    share_out(meeting, rows, 0)
    return put_together(parts, works, meeting.thread == 0)


@kernel
def held_power(rows, body, held, arm, frame, p, m):
    """The power of a contact on the directions in which a body is held: their velocity times impulse and torque."""
    total, f = 0.0, np.empty(3)
    for c in range(3):
        f[c] = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
    for c in range(3):
        d, e = (c + 1) % 3, (c + 2) % 3
        if is_held(held, c):
            total += rows[body, c] * f[c]
        if is_held(held, 3 + c):
            turn = arm[d] * f[e] - arm[e] * f[d] + frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2]
            total += rows[body, 3 + c] / rows[body, 7] * turn
    return total


@kernel
def cell_power(rows, image, driven, frame, p):
    """The power of a contact on the imposed components of a moving cell."""
    total, cell = 0.0, rows.shape[0] - 3
    for k in range(3):
        if image[k] != 0.0:
            for c in range(3):
                if driven[c, k]:
                    f = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
                    total += image[k] * rows[cell + k, c] * f
    return total


@kernel
def cell_work(rows, driven, contacts):
    """The work of the imposed components ``driven`` (3, 3) of a moving cell on all contacts."""
    total = 0.0
    for k in range(contacts.pair.size):
        total += cell_power(rows, contacts.image[k], driven, contacts.frame[k], contacts.impulse[k])
    return total


@kernel
def driven_power(rows, body, arm, frame, p, m):
    """Velocity of the contact point of a driven body times the impulse, plus its spin times the moment."""
    total = 0.0
    w = rows[body, 3:6]
    scale = rows[body, 7]
    for c in range(3):
        d, e = (c + 1) % 3, (c + 2) % 3
        v = rows[body, c] + (w[d] * arm[e] - w[e] * arm[d]) / scale
        total += v * (frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2])
        total += w[c] / scale * (frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2])
    return total


@kernel
def lose(rows, contacts, h, lost, some):
    """Enter into ``lost`` (K,) what the solver left to the contacts ``some``; the largest."""
    most, u = 0.0, np.empty(3)
    for n in range(some.size):
        k = some[n]
        contact_velocity(rows, contacts, k, u)
        at = contacts.pair[k]
        lost[at] = lost_after(lost[at], u[0], contacts.target[k, 0], h)
        most = max(most, lost[at])
    return most


@kernel
def store_some(rows, contacts, some, tolerance, pairs):
    """Store status, impulse and moment of the contacts ``some`` in the pairs; see `store_groups`."""
    cone, size = 0.0, 0.0
    u = np.empty(3)
    for at in range(some.size):
        k = some[at]
        pair, frame, p, m = contacts.pair[k], contacts.frame[k], contacts.impulse[k], contacts.moment[k]
        if contacts.status[k] == SLIDING and p[0] > 0.0:
            contact_velocity(rows, contacts, k, u)
            x, y = u[1] - contacts.target[k, 1], u[2] - contacts.target[k, 2]
            c1, c2, w = contacts.bound[k, 0], contacts.bound[k, 1], contacts.delassus[k]
            taken = min(c1 * w[1, 1], c2 * w[2, 2]) * p[0]
            if x * x + y * y <= (tolerance * taken) ** 2 and taken > 0.0:
                contacts.status[k] = STICKING
        pairs.status[pair] = contacts.status[k]
        size += p[0] ** 2 + p[1] ** 2 + p[2] ** 2
        if contacts.status[k] != SEPARATING:
            limit = max(contacts.bound[k, 0], contacts.bound[k, 1]) * (p[0] + contacts.bound[k, 4])
            cone = max(cone, np.sqrt(p[1] ** 2 + p[2] ** 2) - max(limit, 0.0))
        for c in range(3):
            pairs.memory[pair, c] = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
            pairs.moment[pair, c] = frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2]
    return cone, size


@kernel
def store_contacts(rows, contacts, kappa, tolerance, pairs):
    """`store_some` of all contacts."""
    return store_some(rows, contacts, np.arange(contacts.pair.size), tolerance, pairs)


@kernel
def store_groups(rows, contacts, tolerance, pairs, order, cuts, parts, meeting):
    """Store status, impulse and moment in the pairs; a contact on its cone sticks where it hardly slips.

    Returns the largest violation of a cone and the sum of |P|^2: group by group, in ``parts`` (ALL, 2).
    """
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        for k in range(first, after):
            some = order[cuts[k] : cuts[k + 1]]
            parts[k, 0], parts[k, 1] = store_some(rows, contacts, some, tolerance, pairs)
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, parts[k, 0]), size + parts[k, 1]
    return cone, size
