"""All bodies through a step: `set_out` to its midpoint, with free velocities; `arrive` at its end, with energies.

Each body is moved by what `motion` has. Most bodies of large scenes are free homogeneous balls, whose inertia follows
from mass and radius: with s = r w the kinetic energy is m (v^2 + s^2 / kappa) / 2. They are turned `SOME` at a time:
their numbers are put into columns, worked on column by column, which the compiler does for several balls at once, and
written back. The bits of their orientations are those of `motion.turn`.
"""

import numpy as np

from .._jit import kernel
from ..quaternions import SMALL, multiply, series
from ..state import FIXED, FREE
from .motion import add_energies, move, relax_one, turn
from .threads import BLOCKS, block, meet, part

SOME = 64  # balls at a time: their columns stay in the nearest cache
# Where the columns begin in one array: orientation, the two halves of the turn (rotation vectors), and the larger one.
QW, QX, QY, QZ, AX, AY, AZ, BX, BY, BZ, LARGEST = COLUMNS = tuple(np.uint64(SOME * k) for k in range(11))


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
def turned(w, x, y, z, vx, vy, vz, square):
    """The quaternion (w, x, y, z) turned by a small vector, ``square`` its squared half: as `motion.turn`."""
    cosine, sine = series(square)
    w, x, y, z = multiply(cosine, sine * vx, sine * vy, sine * vz, w, x, y, z)
    scale = 1.5 - 0.5 * (w * w + x * x + y * y + z * z) if square > 0.0 else 1.0
    return w * scale, x * scale, y * scale, z * scale


@kernel
def turn_columns(c, count):
    """Turn ``count`` balls by both halves, one after the other, in their columns; large turns are wrong."""
    for i in range(np.uint64(count)):
        ax, ay, az, bx, by, bz = c[AX + i], c[AY + i], c[AZ + i], c[BX + i], c[BY + i], c[BZ + i]
        one, two = 0.25 * (ax * ax + ay * ay + az * az), 0.25 * (bx * bx + by * by + bz * bz)
        w, x, y, z = turned(c[QW + i], c[QX + i], c[QY + i], c[QZ + i], ax, ay, az, one)
        c[QW + i], c[QX + i], c[QY + i], c[QZ + i] = turned(w, x, y, z, bx, by, bz, two)
        c[LARGEST + i] = max(one, two)


@kernel
def turn_balls(orientation, some, count, c):
    """Turn the balls ``some`` (count,) by the two halves in the columns ``c``."""
    for i in range(np.uint64(count)):
        at = some[i]
        c[QW + i], c[QX + i] = orientation[at, 0], orientation[at, 1]
        c[QY + i], c[QZ + i] = orientation[at, 2], orientation[at, 3]
    turn_columns(c, count)
    for i in range(np.uint64(count)):
        at = some[i]
        if c[LARGEST + i] < SMALL:
            orientation[at, 0], orientation[at, 1] = c[QW + i], c[QX + i]
            orientation[at, 2], orientation[at, 3] = c[QY + i], c[QZ + i]
        else:
            turn(orientation, at, c[AX + i], c[AY + i], c[AZ + i])
            turn(orientation, at, c[BX + i], c[BY + i], c[BZ + i])


@kernel(inline=True)
def add_ball(sums, i, before, rows, mass, gravity, kappa, h):
    """The ``sums`` of `motion.energies` with the free homogeneous ball ``i`` on which gravity alone acts."""
    first, last, work = sums
    ux, uy, uz, ax, ay, az = before[i, 0], before[i, 1], before[i, 2], before[i, 3], before[i, 4], before[i, 5]
    vx, vy, vz, bx, by, bz = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4], rows[i, 5]
    m = 0.5 * mass[i]
    return (
        first + m * (ux * ux + uy * uy + uz * uz + (ax * ax + ay * ay + az * az) / kappa),
        last + m * (vx * vx + vy * vy + vz * vz + (bx * bx + by * by + bz * bz) / kappa),
        work + m * h * (gravity[0] * (ux + vx) + gravity[1] * (uy + vy) + gravity[2] * (uz + vz)),
    )


@kernel(inline=True)
def note_turn(c, some, count, i, before, rows, half):
    """Enter ball ``i`` and the two halves of its turn among those that are turned together."""
    f = half / rows[i, 7]
    some[count] = i
    c[AX + count], c[AY + count], c[AZ + count] = f * before[i, 3], f * before[i, 4], f * before[i, 5]
    c[BX + count], c[BY + count], c[BZ + count] = f * rows[i, 3], f * rows[i, 4], f * rows[i, 5]


@kernel
def arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, begin, end, sums, some, c):
    """`arrive` of the bodies from ``begin`` on, before ``end``, with their ``sums``.

    ``some`` (SOME,) and the columns ``c`` are scratch.
    """
    position, orientation, kind, mass, inertia, held, balls = bodies
    half, count = 0.5 * h, np.uint64(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        if kind[i] == FIXED:
            continue
        move(position, i, rows, half)
        if balls[i] and alone and late:
            sums = add_ball(sums, i, before, rows, mass, gravity, kappa, h)
            note_turn(c, some, count, i, before, rows, half)
            count += np.uint64(1)
            continue
        if kind[i] == FREE:
            sums = add_energies(sums, i, before, free, rows, mass, inertia, orientation, held)
        f = half / rows[i, 7]
        if late:
            turn(orientation, i, f * before[i, 3], f * before[i, 4], f * before[i, 5])
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])
    turn_balls(orientation, some, count, c)
    return sums


@kernel
def arrive(bodies, rows, before, free, gravity, kappa, h, alone, late, parts, meeting):
    """Drift for h/2; returns the `motion.energies`, whose ``parts`` (BLOCKS, 3) are found block by block.

    ``alone`` and ``late``: see `set_out`; ``kappa`` = m r^2 / I of homogeneous balls.
    """
    some, c = np.empty(SOME, dtype=np.uint64), np.empty(len(COLUMNS) * SOME)
    first, after = part(BLOCKS, meeting)
    for k in range(first, after):
        begin, end = block(bodies[2].size, k)
        sums = 0.0, 0.0, 0.0
        for at in range(begin, end, SOME):
            to = min(at + SOME, end)
            sums = arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, at, to, sums, some, c)
        parts[k, 0], parts[k, 1], parts[k, 2] = sums
    meet(meeting, rows)
    x, y, z = 0.0, 0.0, 0.0
    for k in range(BLOCKS):
        x, y, z = x + parts[k, 0], y + parts[k, 1], z + parts[k, 2]
    return x, y, z
