"""What is done to all bodies of a scene, done to those that a process knows: see `advance`, `neighbours`, `order`.

The bits are those of the kernels for all.
"""

import numpy as np

from ..._jit import kernel
from ...state import FIXED, FREE
from ..advance import SOME, add_ball, leave, turn_balls
from ..crew import enlist
from ..motion import add_energies, add_height, invert_one, move, relax_one, turn
from ..neighbours import place_balls
from ..threads import part


@kernel
def set_out_some(bodies, some, rows, before, free, gravity, loads, h, late, meeting):
    """`advance.set_out` and `motion.relax` of the bodies ``some`` (n,); ``loads``: see `Loading.collect`."""
    enlist(meeting)
    position, orientation, kind, mass, inertia, held, _ = bodies
    first, after = part(some.size, meeting)
    half, (force, torque, loaded) = 0.5 * h, loads
    for n in range(first, after):
        i = some[n]
        if kind[i] == FIXED:
            continue
        leave(position, orientation, i, rows, before, half, late)
        if kind[i] == FREE:
            relax_one(rows, i, mass, inertia, orientation, force, torque, gravity, h, loaded, held)
        for c in range(8):
            free[i, c] = rows[i, c]


@kernel
def arrive_some(bodies, some, rows, before, h, late, meeting):
    """`advance.arrive` of the bodies ``some`` (n,), without energies."""
    enlist(meeting)
    position, orientation, kind, _, _, _, balls = bodies
    chunk, turns = np.empty(SOME, dtype=np.uint64), np.empty((6, SOME))
    first, after = part(some.size, meeting)
    half, count = 0.5 * h, np.uint64(0)
    for n in range(first, after):
        i = some[n]
        if kind[i] == FIXED:
            continue
        move(position, i, rows, half)
        if balls[i] and late:
            chunk[count] = i
            count += np.uint64(1)
            if count == np.uint64(SOME):
                turn_balls(orientation, chunk, count, before, rows, half, turns)
                count = np.uint64(0)
            continue
        f = half / rows[i, 7]
        if late:
            turn(orientation, i, f * before[i, 3], f * before[i, 4], f * before[i, 5])
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])
    turn_balls(orientation, chunk, count, before, rows, half, turns)


@kernel
def add_to_energies(bodies, rows, before, free, begin, end, sums):
    """Go on with the ``sums`` (3,) of `motion.energies` over the rows from ``begin`` on, before ``end``."""
    _, orientation, kind, mass, inertia, held, _ = bodies
    so_far = sums[0], sums[1], sums[2]
    for i in range(begin, end):
        if kind[i] == FREE:
            so_far = add_energies(so_far, i, before, free, rows, mass, inertia, orientation, held)
    sums[0], sums[1], sums[2] = so_far


@kernel
def add_to_arrival(bodies, rows, before, free, gravity, kappa, h, late, begin, end, sums):
    """The same of `advance.arrive`, where gravity is alone."""
    _, orientation, kind, mass, inertia, held, balls = bodies
    so_far = sums[0], sums[1], sums[2]
    for i in range(begin, end):
        if balls[i] and late:
            so_far = add_ball(so_far, i, before, rows, mass, gravity, kappa, h)
        elif kind[i] == FREE:
            so_far = add_energies(so_far, i, before, free, rows, mass, inertia, orientation, held)
    sums[0], sums[1], sums[2] = so_far


@kernel
def add_to_potential(bodies, gravity, begin, end, sums):
    """Go on with the sum (1,) of `motion.gravity_energy` over the rows from ``begin`` on, before ``end``."""
    position, _, kind, mass, _, held, _ = bodies
    total = sums[0]
    for i in range(begin, end):
        total = add_height(total, i, position, mass, kind, gravity, held)
    sums[0] = total


@kernel
def invert_some(some, kind, inertia, orientation, dimension, out, held, meeting):
    """`motion.invert_inertia` of the bodies ``some`` (n,)."""
    enlist(meeting)
    first, after = part(some.size, meeting)
    for n in range(first, after):
        invert_one(some[n], kind, inertia, orientation, dimension, out, held)


@kernel
def place_some(position, orientation, centre, body, some, out, meeting):
    """`neighbours.place_balls` of the balls ``some`` (n,)."""
    enlist(meeting)
    first, after = part(some.size, meeting)
    for n in range(first, after):
        place_balls(position, orientation, centre, body, some[n], some[n] + 1, out)


@kernel
def settle_some(position, rows, some, axis, scale, first, slabs, home, meeting):
    """`order.settle` of the bodies ``some`` (n,)."""
    enlist(meeting)
    begin, end = part(some.size, meeting)
    for n in range(begin, end):
        i = some[n]
        slab = int(min(max(np.floor(position[i, axis] * scale) - first, 0.0), slabs - 1.0))
        home[i] = slab if rows[i, 6] > 0.0 else slabs


@kernel
def named(start, count, other, first, after, marks):
    """The balls that the lists of those from ``first`` on, before ``after``, name and that are not marked.

    ``marks`` (S,): they are marked then.
    """
    found = 0
    for i in range(first, after):
        for n in range(start[i], start[i] + count[i]):
            found += not marks[other[n]]
    out, found = np.empty(found, dtype=np.int64), 0
    for i in range(first, after):
        for n in range(start[i], start[i] + count[i]):
            j = other[n]
            if not marks[j]:
                marks[j] = True
                out[found] = j
                found += 1
    return out[:found]


@kernel
def touched(a, b, rows, known, guests, marks):
    """The free bodies of contacts between ``a`` and ``b`` (m,): among those ``known`` (n,), then among ``guests`` (k,).

    ``marks`` (N,) are false, before and after.
    """
    for k in range(a.size):
        marks[a[k]] = marks[b[k]] = True
    out, found = np.empty(known.size + guests.size, dtype=np.uint32), 0
    for n in range(known.size + guests.size):
        i = known[n] if n < known.size else guests[n - known.size]
        if marks[i] and rows[i, 6] > 0.0:
            out[found] = i
            found += 1
        marks[i] = False
    return out[:found]
