"""What is kept of full contacts after the solution, and their works: by law, of drives and of a moving cell."""

import numpy as np

from ..._jit import kernel
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..motion import is_held
from ..search.pairs import LOST
from .contract import lost_after
from .levers import contact_velocity, relative_spin


@kernel
def book_some(before, rows, sorts, driven, h, pairs, contacts, some, works):
    """Add the works of the contacts ``some`` to ``works`` (L, 4), and enter what they lost: see `grouped.ByGroups`."""
    (kind, held), most = sorts, 0.0
    u, v, s, t = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for at in range(some.size):
        k = some[at]
        a, b, frame, pair = contacts.a[k], contacts.b[k], contacts.frame[k], contacts.pair[k]
        arm_a, arm_b, p, m = contacts.arm_a[k], contacts.arm_b[k], contacts.impulse[k], contacts.moment[k]
        contact_velocity(before, contacts, k, u)
        contact_velocity(rows, contacts, k, v)
        relative_spin(before, a, b, frame, s)
        relative_spin(rows, a, b, frame, t)
        lost = lost_after(pairs.memory[pair, LOST], v[0], contacts.target[k, 0], h)
        pairs.memory[pair, LOST], most = lost, max(most, lost)
        book = works[pairs.law[pair]]
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
    return most


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
def store_some(rows, contacts, some, tolerance, pairs):
    """Store status, impulse and moment of the contacts ``some`` in the pairs: see `grouped.ByGroups`."""
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
