"""A contact of polygons in memory: the columns of its row, its velocity, and what an impulse does: see `planar`."""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel

# Columns of a contact's row: two lines of cache, and what only some laws need.
NX, NY, AN, AT, BN, BT, KA, KB, PN, PT, RN, RT, GAMMA, WNN, WNT, WTT = range(16)
GLUE, PULL, ROLL, MOMENT = range(4)
# Columns of what two contacts on one edge have in common: mean levers, W with the common slip, inverses.
EA, EB, W12, W1T, W2T, WT, IT, I11, I12, I22 = range(10)


class PlanarContacts(NamedTuple):
    """Contacts in the order of their touches (m,)."""

    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    row: np.ndarray  # (m, 16) n, levers of a and b, c^2/I of a and b, P, target, gamma, W
    law: np.ndarray  # (m, 4) cohesion h, tension h, rolling length, moment
    status: np.ndarray  # (m,)
    joint: np.ndarray  # (m,) this contact and the next one are the two ends of one overlap, at the same height
    edge: np.ndarray  # (m, 10) for them: mean levers, W with the common slip, the inverse of W where both stick
    sink: np.ndarray  # (m,) speed below the target that the solver may leave to this contact, m/s
    power: np.ndarray  # (m,) P . (U - r) and that of the moment, as the residual was last measured, J
    special: np.ndarray  # (1,) whether some law needs more than Coulomb's


def planar_contacts(room: int) -> PlanarContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(2)]
    return PlanarContacts(
        *rows, np.empty((room, 16)), np.empty((room, 4)), np.zeros(room, dtype=np.int8), np.zeros(room, dtype=bool),
        np.empty((room, 10)), np.empty(room), np.zeros(room), np.zeros(1, dtype=bool),
    )  # fmt: skip


@kernel(inline=True)
def velocity(rows, a, b, row, k):
    """U (n, t) of a contact."""
    x, y = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1]
    s, t = rows[a, 5], rows[b, 5]
    return (
        row[k, NX] * x + row[k, NY] * y + row[k, BN] * t - row[k, AN] * s,
        row[k, NX] * y - row[k, NY] * x + row[k, BT] * t - row[k, AT] * s,
    )


@kernel(inline=True)
def push(rows, a, b, row, k, p_n, p_t):
    """Apply an impulse (n, t) to the two bodies."""
    x, y = row[k, NX] * p_n - row[k, NY] * p_t, row[k, NY] * p_n + row[k, NX] * p_t
    ma, mb = rows[a, 6], rows[b, 6]
    rows[a, 0] -= ma * x
    rows[a, 1] -= ma * y
    rows[a, 5] -= row[k, KA] * (row[k, AN] * p_n + row[k, AT] * p_t)
    rows[b, 0] += mb * x
    rows[b, 1] += mb * y
    rows[b, 5] += row[k, KB] * (row[k, BN] * p_n + row[k, BT] * p_t)


@kernel
def twist(rows, a, b, row, k, m):
    """Apply a moment about z to the two bodies."""
    rows[a, 5] -= row[k, KA] / rows[a, 7] * m
    rows[b, 5] += row[k, KB] / rows[b, 7] * m


@kernel
def push_some(rows, mobility, contacts, some):
    """Add the impulses and moments of the contacts ``some`` to the velocities."""
    row, law = contacts.row, contacts.law
    for at in range(some.size):
        k = some[at]
        a, b = contacts.a[k], contacts.b[k]
        push(rows, a, b, row, k, row[k, PN], row[k, PT])
        if law[k, MOMENT] != 0.0:
            twist(rows, a, b, row, k, law[k, MOMENT])
