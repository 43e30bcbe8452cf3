"""All bodies through a step: `set_out` to its midpoint, with free velocities; `arrive` at its end, with energies.

Each body is moved by what `motion` has. Most bodies of large scenes are free homogeneous balls, whose inertia follows
from mass and radius: with s = r w the kinetic energy is m (v^2 + s^2 / kappa) / 2. They are turned, and their energies
found, four at once (`fours`), with the bits of each alone; energies are added up one after the other.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from ..quaternions import SMALL, multiply, series
from ..state import FIXED, FREE
from .crew import enlist
from .fours import (
    columns_of_4,
    columns_of_8,
    lanes,
    larger,
    numbers_of,
    put_side_by_side,
    set_columns_of_4,
    set_numbers_of,
    spread,
    where_positive,
)
from .motion import add_energies, move, relax_one, travel, turn
from .threads import BLOCKS, LEAST, block, meet, part

SOME = 64  # bodies at a time: they stay in the nearest cache


def columns(bodies) -> tuple:
    """The columns of the bodies' table that `set_out` and `arrive` read, and which are free homogeneous balls."""
    balls = bodies.simple & (bodies.kind == FREE) & (bodies.held == 0)
    return bodies.position, bodies.orientation, bodies.kind, bodies.mass, bodies.inertia, bodies.held, balls


class Roll(NamedTuple):
    """Which bodies are free homogeneous balls, block by block: see `threads.block`."""

    balls: np.ndarray  # (K,) their rows, in order
    starts: np.ndarray  # (BLOCKS + 1,) where those of each block begin
    alone: np.ndarray  # (BLOCKS,) whether nothing else moves in it


def roll(columns) -> Roll:
    """The roll of bodies with these `columns`."""
    kind, balls = columns[2], columns[6]
    size = max(LEAST, (len(kind) + BLOCKS - 1) // BLOCKS)  # of a block: called from Python, it would be compiled again
    ends = np.minimum(size * np.arange(BLOCKS + 1), len(kind))
    balls, moving = np.flatnonzero(balls), np.flatnonzero(kind != FIXED)
    starts = np.searchsorted(balls, ends)
    return Roll(balls.astype(np.uint64), starts, np.diff(starts) == np.diff(np.searchsorted(moving, ends)))


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
def set_out_balls(position, balls, begin, end, rows, before, free, gravity, h):
    """`set_out` of those of the free ``balls`` from ``begin`` on, before ``end``, which turn late: gravity is alone."""
    fall = put_side_by_side(h * gravity[0], h * gravity[1], h * gravity[2], -0.0)  # any number stays, the zeros too
    for n in range(np.uint64(begin), np.uint64(end)):
        i = balls[n]
        first, second = numbers_of(rows, i, 0), numbers_of(rows, i, 4)
        move(position, i, rows, 0.5 * h)
        set_numbers_of(before, i, 0, first)
        set_numbers_of(before, i, 4, second)
        set_numbers_of(rows, i, 0, first + fall)
        set_numbers_of(free, i, 0, first + fall)
        set_numbers_of(free, i, 4, second)


@kernel
def set_out(bodies, roll, rows, before, free, gravity, h, alone, late, meeting):
    """Keep the velocities ``before``, drift for h/2; where gravity is ``alone``, to the free velocities as well.

    ``late``: nobody looks at the orientations at the midpoint; `arrive` turns the bodies by both halves. Fixed bodies
    stand in all arrays as they are.
    """
    enlist(meeting)
    position, orientation, kind, mass, inertia, held, balls = bodies
    first, after = part(BLOCKS, meeting)
    half, none = 0.5 * h, before[:0]
    for k in range(first, after):
        if alone and late and roll.alone[k]:
            set_out_balls(position, roll.balls, roll.starts[k], roll.starts[k + 1], rows, before, free, gravity, h)
            continue
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
def note_turns(turns, n, u, v, half):
    """The vectors by which four balls turn in both halves of a step, by their columns ``u`` before and ``v`` now.

    Into ``turns`` (6, SOME) from column ``n`` on.
    """
    f = half / v[7]
    set_numbers_of(turns, 0, n, f * u[3])
    set_numbers_of(turns, 1, n, f * u[4])
    set_numbers_of(turns, 2, n, f * u[5])
    set_numbers_of(turns, 3, n, f * v[3])
    set_numbers_of(turns, 4, n, f * v[4])
    set_numbers_of(turns, 5, n, f * v[5])


@kernel
def turn_noted(orientation, some, count, turns, before, rows, half):
    """`turn_twice` of the balls ``some`` (count,), by four as far as their ``turns`` are noted.

    Apart from the rest: a turn is a chain of operations that each wait for the one before, and in a short loop the
    processor begins with the next four balls meanwhile.
    """
    count = np.uint64(count)
    whole = count - count % np.uint64(4)
    for n in range(np.uint64(0), whole, np.uint64(4)):
        four = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        ax, ay, az = numbers_of(turns, 0, n), numbers_of(turns, 1, n), numbers_of(turns, 2, n)
        bx, by, bz = numbers_of(turns, 3, n), numbers_of(turns, 4, n), numbers_of(turns, 5, n)
        one, two = 0.25 * (ax * ax + ay * ay + az * az), 0.25 * (bx * bx + by * by + bz * bz)
        i, j, k, l = lanes(larger(one, two))
        if max(max(i, j), max(k, l)) < SMALL:
            q = turned(columns_of_4(orientation, *four), ax, ay, az, one)
            set_columns_of_4(orientation, *four, turned(q, bx, by, bz, two))
        else:
            for m in range(n, n + np.uint64(4)):
                turn_twice(orientation, some[m], before, rows, half)
    for n in range(whole, count):
        turn_twice(orientation, some[n], before, rows, half)


@kernel
def turn_balls(orientation, some, count, before, rows, half, turns):
    """`turn_twice` of the balls ``some`` (count,); ``turns`` (6, SOME) is scratch."""
    for n in range(np.uint64(0), np.uint64(count) - np.uint64(count) % np.uint64(4), np.uint64(4)):
        four = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        note_turns(turns, n, columns_of_8(before, *four), columns_of_8(rows, *four), half)
    turn_noted(orientation, some, count, turns, before, rows, half)


@kernel(inline=True)
def ball_energies(u, v, mass, gravity, kappa, h):
    """Those of `motion.energies` of a free homogeneous ball on which gravity alone acts, or of four.

    ``u`` and ``v`` are its rows (8,) before and now.
    """
    m, spun = 0.5 * mass, 1.0 / kappa
    return (
        m * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + (u[3] * u[3] + u[4] * u[4] + u[5] * u[5]) * spun),
        m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + (v[3] * v[3] + v[4] * v[4] + v[5] * v[5]) * spun),
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
def arrive_balls(bodies, some, rows, before, gravity, kappa, h, weight, sums, fastest, turns):
    """`arrive` of the free balls ``some`` (n,) on which gravity alone acts, with ``sums`` and the ``fastest``."""
    position, orientation, _, mass, _, _, _ = bodies
    half, count, most = 0.5 * h, np.uint64(some.size), spread(fastest)
    whole = count - count % np.uint64(4)
    for n in range(count):
        move(position, some[n], rows, half)
    for n in range(np.uint64(0), whole, np.uint64(4)):
        i, j, k, l = four = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        u, v = columns_of_8(before, *four), columns_of_8(rows, *four)
        masses = put_side_by_side(mass[i], mass[j], mass[k], mass[l])
        weights = put_side_by_side(weight[i], weight[j], weight[k], weight[l])
        first, last, work = ball_energies(u, v, masses, gravity, kappa, h)
        most = larger(most, weights * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]))
        a, b, c = lanes(first), lanes(last), lanes(work)
        sums = added(added(sums, a[0], b[0], c[0]), a[1], b[1], c[1])
        sums = added(added(sums, a[2], b[2], c[2]), a[3], b[3], c[3])
        note_turns(turns, n, u, v, half)
    fastest = max(lanes(most))
    for n in range(whole, count):
        i = some[n]
        sums = add_ball(sums, i, before, rows, mass, gravity, kappa, h)
        fastest = max(fastest, weight[i] * (rows[i, 0] ** 2 + rows[i, 1] ** 2 + rows[i, 2] ** 2))
    turn_noted(orientation, some, count, turns, before, rows, half)
    return sums, fastest


@kernel
def arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, pace, where):
    """`arrive` of the bodies ``where`` (first, after): their energies, and the fastest."""
    position, orientation, kind, mass, inertia, held, balls = bodies
    half, (begin, end), (arm, weight), sums, fastest = 0.5 * h, where, pace, (0.0, 0.0, 0.0), 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        if kind[i] == FIXED:
            continue
        fastest = max(fastest, travel(rows, i, arm, weight))
        move(position, i, rows, half)
        if balls[i] and alone and late:
            sums = add_ball(sums, i, before, rows, mass, gravity, kappa, h)
        elif kind[i] == FREE:
            sums = add_energies(sums, i, before, free, rows, mass, inertia, orientation, held)
        f = half / rows[i, 7]
        if late:
            turn(orientation, i, f * before[i, 3], f * before[i, 4], f * before[i, 5])
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])
    return sums, fastest


@kernel
def arrive(bodies, roll, rows, before, free, gravity, kappa, h, alone, late, pace, parts, meeting):
    """Drift for h/2; returns the `motion.energies` and the largest `motion.travel`, by ``pace``: its columns.

    Block by block, in ``parts`` (BLOCKS, 4). ``alone`` and ``late``: see `set_out`; ``kappa`` = m r^2 / I of
    homogeneous balls.
    """
    enlist(meeting)
    turns, (first, after) = np.empty((6, SOME)), part(BLOCKS, meeting)
    for k in range(first, after):
        sums, fastest = (0.0, 0.0, 0.0), 0.0
        if alone and late and roll.alone[k]:
            for at in range(roll.starts[k], roll.starts[k + 1], SOME):
                some = roll.balls[at : min(at + SOME, roll.starts[k + 1])]
                sums, fastest = arrive_balls(
                    bodies, some, rows, before, gravity, kappa, h, pace[1], sums, fastest, turns
                )
        else:
            where = block(bodies[2].size, k)
            sums, fastest = arrive_some(bodies, rows, before, free, gravity, kappa, h, alone, late, pace, where)
        parts[k, 0], parts[k, 1], parts[k, 2] = sums
        parts[k, 3] = fastest
    meet(meeting, rows)
    x, y, z, fastest = 0.0, 0.0, 0.0, 0.0
    for k in range(BLOCKS):
        x, y, z, fastest = x + parts[k, 0], y + parts[k, 1], z + parts[k, 2], max(fastest, parts[k, 3])
    return (x, y, z), fastest
