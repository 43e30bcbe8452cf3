"""All bodies through a step: `set_out` to its midpoint, with free velocities; `arrive` at its end, with energies.

Each body is moved by what `motion` has. Most bodies of large scenes are free homogeneous balls, whose inertia follows
from mass and radius: with s = r w the kinetic energy is m (v^2 + s^2 / kappa) / 2. They are turned, and their energies
found, four at once (`fours`), with the bits of each alone; energies are added up one after the other.
"""

import numpy as np

from .._jit import kernel
from ..quaternions import SMALL, multiply, series
from ..state import FIXED, FREE
from .crew import enlist
from .fours import columns_of_4, columns_of_8, lanes, larger, put_side_by_side, set_columns_of_4, where_positive
from .motion import add_energies, move, relax_one, turn
from .threads import BLOCKS, block, meet, part

SOME = 64  # bodies at a time: they stay in the nearest cache


def columns(bodies) -> tuple:
    """The columns of the bodies' table that `set_out` and `arrive` read, and which are free homogeneous balls."""
    balls = bodies.simple & (bodies.kind == FREE) & (bodies.held == 0)
    return bodies.position, bodies.orientation, bodies.kind, bodies.mass, bodies.inertia, bodies.held, balls


@kernel(inline=True)
def leave(position, orientation, i, rows, before, half, late):
    """Keep the velocity of body ``i``, move it for a time ``half``, and turn it unless that is done ``late``."""
    for c in range(8):
        before[i, c] = rows[i, c]
    move(position, i, rows, half)
    if not late:
        f = half / rows[i, 7]
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])


@kernel
def set_out(bodies, rows, before, free, gravity, h, alone, late, meeting):
    """Keep the velocities ``before``, drift for h/2; where gravity is ``alone``, to the free velocities as well.

    ``late``: nobody looks at the orientations at the midpoint; `arrive` turns the bodies by both halves. Fixed bodies
    stand in all arrays as they are.
    """
    enlist(meeting)
    position, orientation, kind, mass, inertia, held, balls = bodies
    first, after = part(BLOCKS, meeting)
    half, none = 0.5 * h, before[:0]
    for k in range(first, after):
        begin, end = block(kind.size, k)
        for i in range(np.uint64(begin), np.uint64(end)):  # unsigned: no test for negative indices
            if kind[i] == FIXED:
                continue
            leave(position, orientation, i, rows, before, half, late)
            if alone:
                if balls[i]:
                    for c in range(3):
                        rows[i, c] += h * gravity[c]
                elif kind[i] == FREE:
                    relax_one(rows, i, mass, inertia, orientation, none, none, gravity, h, not alone, held)
                for c in range(8):
                    free[i, c] = rows[i, c]


@kernel(inline=True)
def turned(q, x, y, z, square):
    """The quaternion ``q`` (4,) turned by a small vector, ``square`` its squared half, as `motion.turn`; or four."""
    cosine, sine = series(square)
    w, x, y, z = multiply(cosine, sine * x, sine * y, sine * z, q[0], q[1], q[2], q[3])
    scale = where_positive(square, 1.5 - 0.5 * (w * w + x * x + y * y + z * z), 1.0)
    return w * scale, x * scale, y * scale, z * scale


@kernel(inline=True)
def turn_twice(orientation, i, before, rows, half):
    """Turn ball ``i`` for a time ``half`` by its spin before, then as long by its present one."""
    f = half / rows[i, 7]
    turn(orientation, i, f * before[i, 3], f * before[i, 4], f * before[i, 5])
    turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])


@kernel(inline=True)
def turn_four(orientation, four, u, v, half):
    """`turn_twice` of ``four`` balls (4,) with the columns ``u`` before and ``v`` now; False where a turn is large."""
    f = half / v[7]
    ax, ay, az, bx, by, bz = f * u[3], f * u[4], f * u[5], f * v[3], f * v[4], f * v[5]
    one, two = 0.25 * (ax * ax + ay * ay + az * az), 0.25 * (bx * bx + by * by + bz * bz)
    i, j, k, l = lanes(larger(one, two))
    if not max(max(i, j), max(k, l)) < SMALL:
        return False
    q = turned(columns_of_4(orientation, *four), ax, ay, az, one)
    set_columns_of_4(orientation, *four, turned(q, bx, by, bz, two))
    return True


@kernel
def turn_balls(orientation, some, count, before, rows, half):
    """`turn_twice` of the balls ``some`` (count,)."""
    count = np.uint64(count)
    whole = count - count % np.uint64(4)
    for n in range(np.uint64(0), whole, np.uint64(4)):
        four = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        if not turn_four(orientation, four, columns_of_8(before, *four), columns_of_8(rows, *four), half):
            for m in range(n, n + np.uint64(4)):
                turn_twice(orientation, some[m], before, rows, half)
    for n in range(whole, count):
        turn_twice(orientation, some[n], before, rows, half)


@kernel(inline=True)
def ball_energies(u, v, mass, gravity, kappa, h):
    """Those of `motion.energies` of a free homogeneous ball on which gravity alone acts, or of four.

    ``u`` and ``v`` are its rows (8,) before and now.
    """
    m = 0.5 * mass
    return (
        m * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + (u[3] * u[3] + u[4] * u[4] + u[5] * u[5]) / kappa),
        m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + (v[3] * v[3] + v[4] * v[4] + v[5] * v[5]) / kappa),
        m * h * (gravity[0] * (u[0] + v[0]) + gravity[1] * (u[1] + v[1]) + gravity[2] * (u[2] + v[2])),
    )


@kernel(inline=True)
def added(sums, first, last, work):
    """The ``sums`` of `motion.energies` with those of a body."""
    return sums[0] + first, sums[1] + last, sums[2] + work


@kernel(inline=True)
def add_ball(sums, i, before, rows, mass, gravity, kappa, h):
    """The ``sums`` of `motion.energies` with the free homogeneous ball ``i`` on which gravity alone acts."""
    u = before[i, 0], before[i, 1], before[i, 2], before[i, 3], before[i, 4], before[i, 5]
    v = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4], rows[i, 5]
    first, last, work = ball_energies(u, v, mass[i], gravity, kappa, h)
    return added(sums, first, last, work)


@kernel
def arrive_balls(bodies, some, count, rows, before, gravity, kappa, h, sums):
    """`arrive` of the free balls ``some`` (count,) on which gravity alone acts, with their ``sums``."""
    position, orientation, _, mass, _, _, _ = bodies
    half, count = 0.5 * h, np.uint64(count)
    whole = count - count % np.uint64(4)
    for n in range(count):
        move(position, some[n], rows, half)
    for n in range(np.uint64(0), whole, np.uint64(4)):
        i, j, k, l = four = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        u, v = columns_of_8(before, *four), columns_of_8(rows, *four)
        masses = put_side_by_side(mass[i], mass[j], mass[k], mass[l])
        first, last, work = ball_energies(u, v, masses, gravity, kappa, h)
        a, b, c = lanes(first), lanes(last), lanes(work)
        sums = added(added(sums, a[0], b[0], c[0]), a[1], b[1], c[1])
        sums = added(added(sums, a[2], b[2], c[2]), a[3], b[3], c[3])
        if not turn_four(orientation, four, u, v, half):
            for m in range(n, n + np.uint64(4)):
                turn_twice(orientation, some[m], before, rows, half)
    for n in range(whole, count):
        sums = add_ball(sums, some[n], before, rows, mass, gravity, kappa, h)
        turn_twice(orientation, some[n], before, rows, half)
    return sums


@kernel
def arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, begin, end, sums, some):
    """`arrive` of the bodies from ``begin`` on, before ``end``, with their ``sums``; ``some`` (SOME,) is scratch."""
    position, orientation, kind, mass, inertia, held, balls = bodies
    half, count, others = 0.5 * h, np.uint64(0), 0
    for i in range(np.uint64(begin), np.uint64(end)):
        some[count] = i
        count += np.uint64(balls[i])
        others += (kind[i] != FIXED) & (not balls[i])
    if alone and late and others == 0:
        return arrive_balls(bodies, some, count, rows, before, gravity, kappa, h, sums)
    for i in range(np.uint64(begin), np.uint64(end)):
        if kind[i] == FIXED:
            continue
        move(position, i, rows, half)
        if balls[i] and alone and late:
            sums = add_ball(sums, i, before, rows, mass, gravity, kappa, h)
        elif kind[i] == FREE:
            sums = add_energies(sums, i, before, free, rows, mass, inertia, orientation, held)
        f = half / rows[i, 7]
        if late:
            turn(orientation, i, f * before[i, 3], f * before[i, 4], f * before[i, 5])
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])
    return sums


@kernel
def arrive(bodies, rows, before, free, gravity, kappa, h, alone, late, parts, meeting):
    """Drift for h/2; returns the `motion.energies`, whose ``parts`` (BLOCKS, 3) are found block by block.

    ``alone`` and ``late``: see `set_out`; ``kappa`` = m r^2 / I of homogeneous balls.
    """
    enlist(meeting)
    some = np.empty(SOME, dtype=np.uint64)
    first, after = part(BLOCKS, meeting)
    for k in range(first, after):
        begin, end = block(bodies[2].size, k)
        sums = 0.0, 0.0, 0.0
        for at in range(begin, end, SOME):
            to = min(at + SOME, end)
            sums = arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, at, to, sums, some)
        parts[k, 0], parts[k, 1], parts[k, 2] = sums
    meet(meeting, rows)
    x, y, z = 0.0, 0.0, 0.0
    for k in range(BLOCKS):
        x, y, z = x + parts[k, 0], y + parts[k, 1], z + parts[k, 2]
    return x, y, z
