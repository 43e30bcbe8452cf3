"""How diagonal contacts are filled: rows, targets and first guess, in the order of a sweep.

One after the other: four at once (`fours`) take as long, since each contact waits for seven places in memory.
"""

import numpy as np

from ..._jit import kernel
from ...scenes.materials import FRICTION_1, RHO, STATIC
from ...state import OPEN
from ..crew import enlist
from ..fetch import AHEAD, fetch
from ..threads import own_part, share_out
from .contract import ALL, GROUPS, SHARED, holds_static, sinking_speed, target_velocity
from .diagonal_rows import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, push_cell, slip_sum, with_image


@kernel(inline=True)
def fetch_next(pairs, free, rows, places, at, last):
    """Ask the memory for what contacts some places after ``at`` need."""
    next_ = places[min(at + np.uint64(2 * AHEAD), last)]
    fetch(pairs.a, next_)
    fetch(pairs.b, next_)
    fetch(pairs.law, next_)
    fetch(pairs.gap, next_)
    fetch(pairs.lost, next_)
    fetch(pairs.normal, next_)
    fetch(pairs.impulse, next_)
    next_ = places[min(at + np.uint64(AHEAD), last)]
    a, b = pairs.a[next_], pairs.b[next_]
    fetch(free, a)
    fetch(free, b)
    fetch(rows, a)
    fetch(rows, b)


@kernel(contract=True)
def fill_some(pairs, step, rows, laws, mobility, places, begin, end, out):
    """Fill the places from ``begin`` on, before ``end``: see `fill_contacts`."""
    law, gap, normal, one, two = pairs.law, pairs.gap, pairs.normal, pairs.a, pairs.b
    memory, status, lost, balls = pairs.impulse, pairs.status, pairs.lost, pairs.balls
    before, free, h, anticipate, opening = step.before, step.free, step.h, step.anticipate, step.opening
    kappa, dimension, linear = mobility.kappa, mobility.dimension, mobility.linear
    row, out_pair, out_a, out_b, out_status, sink = out.row, out.pair, out.a, out.b, out.status, out.sink
    scale, last = 0.0, np.uint64(max(end, 1) - 1)
    for found in range(np.uint64(begin), np.uint64(end)):  # unsigned: no test for negative indices
        fetch_next(pairs, step.free, rows, places, found, last)
        k = places[found]
        a, b = one[k], two[k]
        nx, ny, nz = normal[k, 0], normal[k, 1], normal[k, 2]
        px, py, pz = memory[k, 0], memory[k, 1], memory[k, 2]
        fix = max(0.0, -(px * nx + py * ny + pz * nz))  # the memory is a vector in space: P_n must stay a push
        px, py, pz = px + fix * nx, py + fix * ny, pz + fix * nz
        ma, mb, rule = free[a, 6], free[b, 6], law[k]
        gamma, bounce, static, u_before = laws[rule, FRICTION_1], laws[rule, RHO], laws[rule, STATIC], 0.0
        if bounce > 0.0 or static > gamma:  # only these laws look at the velocity before
            x, y, z = before[b, 0] - before[a, 0], before[b, 1] - before[a, 1], before[b, 2] - before[a, 2]
            x, y, z = with_image(before, out, found, x, y, z)
            u_before = x * nx + y * ny + z * nz
            if static > gamma:
                sx, sy, sz = slip_sum(before, a, b)
                tx = x - (sy * nz - sz * ny) - u_before * nx
                ty = y - (sz * nx - sx * nz) - u_before * ny
                tz = z - (sx * ny - sy * nx) - u_before * nz
                if holds_static(status[k], tx * tx + ty * ty + tz * tz, u_before, gap[k], h):
                    gamma = static
        r = target_velocity(gap[k], u_before, bounce, h, anticipate, opening)
        row[found, NX], row[found, NY], row[found, NZ], row[found, TARGET] = nx, ny, nz, r
        row[found, PX], row[found, PY], row[found, PZ], row[found, GAMMA] = px, py, pz, gamma
        out_pair[found], out_a[found], out_b[found], out_status[found] = k, a, b, OPEN
        size = min(free[a, 7], free[b, 7]) if k < balls else free[b, 7]  # a plane has no radius
        sink[found] = sinking_speed(gap[k] if anticipate else -lost[k], size, h)
        rho = dimension / ((ma + mb) * (1.0 + (dimension - 1) * (1.0 + kappa)))
        sx, sy, sz = slip_sum(free, a, b)
        tx = free[b, 0] - free[a, 0] - (sy * nz - sz * ny) - r * nx
        ty = free[b, 1] - free[a, 1] - (sz * nx - sx * nz) - r * ny
        tz = free[b, 2] - free[a, 2] - (sx * ny - sy * nx) - r * nz
        tx, ty, tz = with_image(free, out, found, tx, ty, tz)
        scale += rho * rho * (tx * tx + ty * ty + tz * tz)
        push_cell(rows, linear, out, found, px, py, pz)
        mx, my, mz = kappa * (ny * pz - nz * py), kappa * (nz * px - nx * pz), kappa * (nx * py - ny * px)
        rows[a, 0] -= ma * px
        rows[a, 1] -= ma * py
        rows[a, 2] -= ma * pz
        rows[a, 3] -= ma * mx
        rows[a, 4] -= ma * my
        rows[a, 5] -= ma * mz
        rows[b, 0] += mb * px
        rows[b, 1] += mb * py
        rows[b, 2] += mb * pz
        rows[b, 3] -= mb * mx
        rows[b, 4] -= mb * my
        rows[b, 5] -= mb * mz
    return scale


@kernel(contract=True)
def fill_contacts(pairs, step, rows, laws, mobility, places, cuts, out, scales, meeting):
    """Fill ``out`` with the contacts of this kind and add their first guess to ``rows``, which start free.

    ``places`` (m,): the pair that stands at each, group by group as ``cuts`` (ALL + 1,) has it. Groups are divided
    among the threads as in a sweep: a body gets its impulses from its even group, then from its odd one. Returns the
    sum of (rho b)^2, group by group in ``scales`` (ALL,).
    """
    enlist(meeting)
    first, after = own_part(meeting, GROUPS)
    for parity in range(2):
        for group in range(parity * GROUPS + first, parity * GROUPS + after):
            scales[group] = 0.0
            if cuts[group] < cuts[group + 1]:
                scales[group] = fill_some(pairs, step, rows, laws, mobility, places, cuts[group], cuts[group + 1], out)
        share_out(meeting, rows, parity)
    scale = 0.0
    if meeting.thread == 0:
        scales[SHARED] = fill_some(pairs, step, rows, laws, mobility, places, cuts[SHARED], cuts[ALL], out)
        for group in range(ALL):
            scale += scales[group]
    return scale
