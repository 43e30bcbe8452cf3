"""How diagonal contacts are filled: rows, targets and first guess, in the order of a sweep.

Four contacts at a time (`fours`), where no law looks at the velocity before the step; then the first guess is added to
the rows of the bodies, contact after contact, four numbers at once. So contacts may share bodies, and the velocities
have the bits of one after the other.
"""

import numpy as np

from ..._jit import kernel
from ...scenes.materials import FRICTION_1, RHO, STATIC
from ...state import OPEN
from ..crew import enlist
from ..fetch import AHEAD, fetch
from ..fours import (
    lanes,
    larger,
    numbers_of,
    put_side_by_side,
    set_columns_of_8,
    set_numbers_of,
    smaller,
    spread,
    total,
    transposed,
)
from ..search.pairs import GAP, LOST
from ..threads import own_part, share_out
from .contract import ALL, DEEP, GROUPS, SHARED, SINKING, holds_static, sinking_speed, target_velocity
from .diagonal_rows import (
    GAMMA,
    NX,
    NY,
    NZ,
    PX,
    PY,
    PZ,
    TARGET,
    four_rows,
    has_image,
    push_cell,
    relative,
    slip_sum,
    with_image,
)


@kernel(inline=True)
def fetch_next(pairs, free, rows, places, at, last):
    """Ask the memory for what contacts some places after ``at`` need; the rest of it stands in four long rows."""
    next_ = places[min(at + np.uint64(2 * AHEAD), last)]
    fetch(pairs.place, next_)
    fetch(pairs.memory, next_)
    next_ = places[min(at + np.uint64(AHEAD), last)]
    a, b = pairs.a[next_], pairs.b[next_]
    fetch(free, a)
    fetch(free, b)
    fetch(rows, a)
    fetch(rows, b)


@kernel(contract=True)
def fill_some(pairs, step, rows, laws, mobility, places, begin, end, out):
    """Fill the places from ``begin`` on, before ``end``, whatever their laws are: see `fill_contacts`."""
    law, place, one, two = pairs.law, pairs.place, pairs.a, pairs.b
    memory, status, balls = pairs.memory, pairs.status, pairs.balls
    before, free, h, anticipate, opening = step.before, step.free, step.h, step.anticipate, step.opening
    kappa, dimension, linear = mobility.kappa, mobility.dimension, mobility.linear
    row, out_pair, out_a, out_b, out_status, sink = out.row, out.pair, out.a, out.b, out.status, out.sink
    scale, last = 0.0, np.uint64(max(end, 1) - 1)
    for found in range(np.uint64(begin), np.uint64(end)):  # unsigned: no test for negative indices
        fetch_next(pairs, step.free, rows, places, found, last)
        k = places[found]
        a, b = one[k], two[k]
        nx, ny, nz, gap = place[k, 0], place[k, 1], place[k, 2], place[k, GAP]
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
                if holds_static(status[k], tx * tx + ty * ty + tz * tz, u_before, gap, h):
                    gamma = static
        r = target_velocity(gap, u_before, bounce, h, anticipate, opening)
        row[found, NX], row[found, NY], row[found, NZ], row[found, TARGET] = nx, ny, nz, r
        row[found, PX], row[found, PY], row[found, PZ], row[found, GAMMA] = px, py, pz, gamma
        out_pair[found], out_a[found], out_b[found], out_status[found] = k, a, b, OPEN
        size = min(free[a, 7], free[b, 7]) if k < balls else free[b, 7]  # a plane has no radius
        sink[found] = sinking_speed(gap if anticipate else -memory[k, LOST], size, h)
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


@kernel(inline=True)
def size_of(free, a, b, ball):
    """The smaller radius of two bodies; where the first is no ``ball``, that of the second."""
    return min(free[a, 7], free[b, 7]) if ball else free[b, 7]


@kernel(inline=True, contract=True)
def push(rows, free, a, b, along, about):
    """Give two bodies the impulse ``along`` (4,): P and the first component of the moment; ``about``: the others."""
    ma, mb, turned = free[a, 6], free[b, 6], put_side_by_side(1.0, 1.0, 1.0, -1.0)
    set_numbers_of(rows, a, 0, numbers_of(rows, a, 0) - ma * along)
    set_numbers_of(rows, a, 4, numbers_of(rows, a, 4) - ma * about)
    set_numbers_of(rows, b, 0, numbers_of(rows, b, 0) + mb * (turned * along))
    set_numbers_of(rows, b, 4, numbers_of(rows, b, 4) - mb * about)


@kernel(contract=True)
def fill_fours(pairs, step, rows, laws, mobility, places, begin, end, out):
    """`fill_some` of contacts without images, whose laws do not look at the velocity before.

    Lane by lane is written out: a loop over the lanes would look each number up.
    """
    law, one, two, balls, free, h = pairs.law, pairs.a, pairs.b, np.uint64(pairs.balls), step.free, step.h
    kappa, dimension, anticipate, row, sink = mobility.kappa, mobility.dimension, step.anticipate, out.row, out.sink
    out_pair, out_a, out_b, out_status = out.pair, out.a, out.b, out.status
    begin, end = np.uint64(begin), np.uint64(end)
    whole, last, none, rule = end - (end - begin) % np.uint64(4), end - np.uint64(1), spread(0.0), np.int32(-1)
    weight, scales, gamma = dimension / (1.0 + (dimension - 1) * (1.0 + kappa)), none, none
    for i in range(begin, whole, np.uint64(4)):
        j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
        fetch_next(pairs, free, rows, places, i, last)
        fetch_next(pairs, free, rows, places, j, last)
        fetch_next(pairs, free, rows, places, k, last)
        fetch_next(pairs, free, rows, places, l, last)
        p, q, r, s = places[i], places[j], places[k], places[l]
        a, b, c, d = one[p], one[q], one[r], one[s]
        e, f, g, m = two[p], two[q], two[r], two[s]
        if not (law[p] == rule and law[q] == rule and law[r] == rule and law[s] == rule):
            rule = law[p]
            gamma = put_side_by_side(
                laws[law[p], FRICTION_1], laws[law[q], FRICTION_1], laws[law[r], FRICTION_1], laws[law[s], FRICTION_1]
            )
            if not (law[q] == rule and law[r] == rule and law[s] == rule):
                rule = np.int32(-1)
        nx, ny, nz, gap = four_rows(pairs.place, p, q, r, s, 0)
        px, py, pz, lost = four_rows(pairs.memory, p, q, r, s, 0)
        fix = larger(0.0, 0.0 - (px * nx + py * ny + pz * nz))  # see `fill_some`
        px, py, pz = px + fix * nx, py + fix * ny, pz + fix * nz
        target = (0.0 - larger(gap, 0.0)) / h
        set_columns_of_8(row, i, j, k, l, (nx, ny, nz, px, py, pz, target, gamma))
        out_pair[i], out_pair[j], out_pair[k], out_pair[l] = p, q, r, s
        out_a[i], out_a[j], out_a[k], out_a[l] = a, b, c, d
        out_b[i], out_b[j], out_b[k], out_b[l] = e, f, g, m
        out_status[i], out_status[j], out_status[k], out_status[l] = OPEN, OPEN, OPEN, OPEN
        size = put_side_by_side(
            size_of(free, a, e, p < balls), size_of(free, b, f, q < balls), size_of(free, c, g, r < balls),
            size_of(free, d, m, s < balls),
        )  # fmt: skip
        deep = gap if anticipate else 0.0 - lost
        speed = larger(0.5 * (DEEP * size + smaller(deep, 0.0)), SINKING * size) / h
        sink[i], sink[j], sink[k], sink[l] = lanes(speed)
        x, y, z, sx, sy, sz, light = relative(free, (a, b, c, d), (e, f, g, m))
        rho = weight / light
        tx = x - (sy * nz - sz * ny) - target * nx
        ty = y - (sz * nx - sx * nz) - target * ny
        tz = z - (sx * ny - sy * nx) - target * nz
        scales = scales + rho * rho * (tx * tx + ty * ty + tz * tz)
        mx, my, mz = kappa * (ny * pz - nz * py), kappa * (nz * px - nx * pz), kappa * (nx * py - ny * px)
        along, about = transposed(px, py, pz, mx), transposed(my, mz, none, none)
        push(rows, free, a, e, along[0], about[0])
        push(rows, free, b, f, along[1], about[1])
        push(rows, free, c, g, along[2], about[2])
        push(rows, free, d, m, along[3], about[3])
    return total(scales) + fill_some(pairs, step, rows, laws, mobility, places, whole, end, out)


@kernel
def looks_back(laws):
    """Whether some law looks at the velocity before the step: it bounces, or has a static coefficient of its own."""
    for rule in range(laws.shape[0]):
        if laws[rule, RHO] > 0.0 or laws[rule, STATIC] > laws[rule, FRICTION_1]:
            return True
    return False


@kernel(contract=True)
def fill_contacts(pairs, step, rows, laws, mobility, places, cuts, out, scales, meeting):
    """Fill ``out`` with the contacts of this kind and add their first guess to ``rows``, which start free.

    ``places`` (m,): the pair that stands at each, group by group as ``cuts`` (ALL + 1,) has it. Groups are divided
    among the threads as in a sweep: a body gets its impulses from its even group, then from its odd one. Returns the
    sum of (rho b)^2, group by group in ``scales`` (ALL,).
    """
    enlist(meeting)
    first, after = own_part(meeting, GROUPS)
    slowly = has_image(out) or step.opening or looks_back(laws)
    for parity in range(2):
        for group in range(parity * GROUPS + first, parity * GROUPS + after):
            begin, end = cuts[group], cuts[group + 1]
            scales[group] = 0.0
            if begin < end and slowly:
                scales[group] = fill_some(pairs, step, rows, laws, mobility, places, begin, end, out)
            elif begin < end:
                scales[group] = fill_fours(pairs, step, rows, laws, mobility, places, begin, end, out)
        share_out(meeting, rows, parity)
    scale = 0.0
    if meeting.thread == 0:
        scales[SHARED] = fill_some(pairs, step, rows, laws, mobility, places, cuts[SHARED], cuts[ALL], out)
        for group in range(ALL):
            scale += scales[group]
    return scale
