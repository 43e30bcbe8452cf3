"""What is kept of diagonal contacts after the solution, and the works that are booked.

Both at once (`keep_contacts`), four contacts at a time (`fours`); with anticipation the first is needed before it is
known whether the step is over, and they stay apart.
"""

import numpy as np

from ..._jit import kernel
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..crew import enlist
from ..fetch import AHEAD, fetch
from ..fours import columns_of_8, lanes, larger, put_side_by_side, root, smaller, spread, total
from ..threads import share_out
from .contract import ALL, lost_after, own_groups, put_together
from .diagonal_rows import (
    GAMMA,
    NX,
    NY,
    NZ,
    PX,
    PY,
    PZ,
    TARGET,
    cell_power,
    has_image,
    slip,
    with_image,
)

STICKS = 1.0 - 1e-9  # of the cone: up to there a contact sticks, whatever its velocity


@kernel(inline=True)
def store_one(rows, contacts, pairs, k, p_n, inside, kappa, tolerance):
    """Store status and impulse of contact ``k``, which is ``inside`` its cone by so much, with its pair.

    A contact on its cone sticks all the same where it does not slip: its speed is below ``tolerance`` times the one
    that friction can take away, W_t gamma P_n.
    """
    row, at, status = contacts.row, contacts.pair[k], SLIDING
    gamma = row[k, GAMMA]
    if p_n <= 0.0:
        status = SEPARATING
    elif inside > 0.0:
        status = STICKING
    elif gamma > 0.0:
        a, b, nx, ny, nz = contacts.a[k], contacts.b[k], row[k, NX], row[k, NY], row[k, NZ]
        x, y, z = slip(rows, a, b, nx, ny, nz)
        x, y, z = with_image(rows, contacts, k, x, y, z)
        u_n, taken = x * nx + y * ny + z * nz, (1.0 + kappa) * (rows[a, 6] + rows[b, 6]) * gamma * p_n
        if x * x + y * y + z * z - u_n * u_n <= (tolerance * taken) ** 2:
            status = STICKING
    contacts.status[k] = pairs.status[at] = status
    impulse = pairs.impulse
    impulse[at, 0], impulse[at, 1], impulse[at, 2] = row[k, PX], row[k, PY], row[k, PZ]


@kernel
def store_some(rows, contacts, kappa, tolerance, pairs, begin, end):
    """Find the status of the contacts from ``begin`` on, before ``end``, and store it with the impulse in the pairs.

    Returns the largest violation of a cone and the sum of |P|^2.
    """
    cone, size, last = 0.0, 0.0, np.uint64(max(end, 1) - 1)
    row, impulse, place = contacts.row, pairs.impulse, contacts.pair
    for k in range(np.uint64(begin), np.uint64(end)):
        fetch(impulse, place[min(k + np.uint64(AHEAD), last)])
        px, py, pz = row[k, PX], row[k, PY], row[k, PZ]
        p_n, square = px * row[k, NX] + py * row[k, NY] + pz * row[k, NZ], px * px + py * py + pz * pz
        p_t, bound = np.sqrt(max(0.0, square - p_n * p_n)), row[k, GAMMA] * p_n
        store_one(rows, contacts, pairs, k, p_n, bound * STICKS - p_t, kappa, tolerance)
        cone, size = max(cone, p_t - bound, -p_n), size + square
    return cone, size


@kernel
def store_contacts(rows, contacts, kappa, tolerance, pairs):
    """Find and store status and impulse of all contacts: see `store_some`."""
    return store_some(rows, contacts, kappa, tolerance, pairs, 0, contacts.pair.size)


@kernel
def store_groups(rows, contacts, kappa, tolerance, pairs, cuts, parts, meeting):
    """`store_contacts`, group by group as ``cuts`` (ALL + 1,) has it, in ``parts`` (ALL, 2)."""
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        for k in range(first, after):
            parts[k, 0] = parts[k, 1] = 0.0
            if cuts[k] < cuts[k + 1]:
                parts[k, 0], parts[k, 1] = store_some(rows, contacts, kappa, tolerance, pairs, cuts[k], cuts[k + 1])
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, parts[k, 0]), size + parts[k, 1]
    return cone, size


@kernel
def drive_work(rows, kind, contacts, k):
    """The work of driven bodies at contact ``k``."""
    row, total = contacts.row, 0.0
    for side in range(2):
        body, sign = (contacts.a[k], 1.0) if side == 0 else (contacts.b[k], -1.0)
        if kind[body] == DRIVEN:  # the contact point lies at +n from a and at -n from b
            sx, sy, sz = sign * rows[body, 3], sign * rows[body, 4], sign * rows[body, 5]
            x = rows[body, 0] + sy * row[k, NZ] - sz * row[k, NY]
            y = rows[body, 1] + sz * row[k, NX] - sx * row[k, NZ]
            z = rows[body, 2] + sx * row[k, NY] - sy * row[k, NX]
            total += sign * (x * row[k, PX] + y * row[k, PY] + z * row[k, PZ])
    return total


@kernel(inline=True)
def add_works(works, rule, normal, tangential):
    """Add what contacts with this ``rule`` do to the ``works``: see `keep_contacts`."""
    works[rule, 0] += normal
    works[rule, 1] += tangential


@kernel(inline=True)
def add_drive(works, rule, rows, kind, contacts, k):
    """Add the work of driven bodies at contact ``k``."""
    if kind[contacts.a[k]] == DRIVEN or kind[contacts.b[k]] == DRIVEN:
        works[rule, 3] += drive_work(rows, kind, contacts, k)


@kernel
def book_some(step, rows, kind, pairs, contacts, begin, end, works):
    """Add the works of the contacts from ``begin`` on, before ``end``, to ``works``: see `keep_contacts`.

    Half of the impulse times the velocity before the step and after it; of the latter the residual has left what is
    needed. Returns the largest that one has lost.
    """
    before, driven, h, law, lost = step.before, step.driven, step.h, pairs.law, pairs.lost
    row, one, two, place = contacts.row, contacts.a, contacts.b, contacts.pair
    opening, power, most, last = contacts.opening, contacts.power, 0.0, np.uint64(max(end, 1) - 1)
    for k in range(np.uint64(begin), np.uint64(end)):
        next_ = min(k + np.uint64(AHEAD), last)
        fetch(before, one[next_])
        fetch(before, two[next_])
        fetch(lost, place[next_])
        fetch(law, place[next_])
        at = place[k]
        nx, ny, nz, px, py, pz, r = (
            row[k, NX], row[k, NY], row[k, NZ], row[k, PX], row[k, PY], row[k, PZ], row[k, TARGET]
        )  # fmt: skip
        lost[at] = lost_after(lost[at], opening[k] + r, r, h)
        most = max(most, lost[at])
        x, y, z = slip(before, one[k], two[k], nx, ny, nz)
        x, y, z = with_image(before, contacts, k, x, y, z)
        p_n = px * nx + py * ny + pz * nz
        normal = 0.5 * (x * nx + y * ny + z * nz + (opening[k] + r)) * p_n
        add_works(works, law[at], normal, 0.5 * (x * px + y * py + z * pz + (power[k] + r * p_n)) - normal)
        if has_image(contacts):
            works[law[at], 3] -= cell_power(rows, driven, contacts, k, px, py, pz)
        add_drive(works, law[at], rows, kind, contacts, k)
    return most


@kernel(inline=True)
def fetch_next(before, pairs, contacts, k):
    """Ask the memory for what contact ``k`` needs."""
    at = contacts.pair[k]
    fetch(before, contacts.a[k])
    fetch(before, contacts.b[k])
    fetch(pairs.lost, at)
    fetch(pairs.law, at)
    fetch(pairs.impulse, at)


@kernel(inline=True)
def least(four):
    """The least of four numbers."""
    a, b, c, d = lanes(four)
    return min(min(a, b), min(c, d))


@kernel
def keep_fours(step, rows, kind, pairs, contacts, kappa, tolerance, begin, end, works):
    """`store_some` and `book_some` of contacts without images: what both return.

    Lane by lane is written out: a loop over the lanes would look each number up.
    """
    before, h, law, lost = step.before, step.h, pairs.law, pairs.lost
    row, one, two, place, opening, power = (
        contacts.row, contacts.a, contacts.b, contacts.pair, contacts.opening, contacts.power
    )  # fmt: skip
    begin, end = np.uint64(begin), np.uint64(end)
    whole, last, none, rule = end - (end - begin) % np.uint64(4), end - np.uint64(1), spread(0.0), np.int32(-1)
    cones, sizes, deepest, normals, tangentials = none, none, none, none, none
    for i in range(begin, whole, np.uint64(4)):
        j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
        fetch_next(before, pairs, contacts, min(i + np.uint64(AHEAD), last))
        fetch_next(before, pairs, contacts, min(j + np.uint64(AHEAD), last))
        fetch_next(before, pairs, contacts, min(k + np.uint64(AHEAD), last))
        fetch_next(before, pairs, contacts, min(l + np.uint64(AHEAD), last))
        p, q, r, s = place[i], place[j], place[k], place[l]
        c, u, v = (
            columns_of_8(row, i, j, k, l), columns_of_8(before, one[i], one[j], one[k], one[l]),
            columns_of_8(before, two[i], two[j], two[k], two[l]),
        )  # fmt: skip
        nx, ny, nz, px, py, pz, target = c[NX], c[NY], c[NZ], c[PX], c[PY], c[PZ], c[TARGET]
        p_n, square = px * nx + py * ny + pz * nz, px * px + py * py + pz * pz
        p_t, bound = root(larger(0.0, square - p_n * p_n)), c[GAMMA] * p_n
        sizes, cones = sizes + square, larger(cones, larger(p_t - bound, 0.0 - p_n))
        push, inside = lanes(p_n), lanes(bound * STICKS - p_t)
        store_one(rows, contacts, pairs, i, push[0], inside[0], kappa, tolerance)
        store_one(rows, contacts, pairs, j, push[1], inside[1], kappa, tolerance)
        store_one(rows, contacts, pairs, k, push[2], inside[2], kappa, tolerance)
        store_one(rows, contacts, pairs, l, push[3], inside[3], kappa, tolerance)
        u_n = put_side_by_side(opening[i], opening[j], opening[k], opening[l]) + target
        deep = put_side_by_side(lost[p], lost[q], lost[r], lost[s]) - h * (u_n - smaller(target, 0.0))
        deep = larger(0.0, deep)
        deepest = larger(deepest, deep)
        lost[p], lost[q], lost[r], lost[s] = lanes(deep)
        sx, sy, sz = u[3] + v[3], u[4] + v[4], u[5] + v[5]
        x = v[0] - u[0] - (sy * nz - sz * ny)
        y = v[1] - u[1] - (sz * nx - sx * nz)
        z = v[2] - u[2] - (sx * ny - sy * nx)
        normal = 0.5 * (x * nx + y * ny + z * nz + u_n) * p_n
        powers = put_side_by_side(power[i], power[j], power[k], power[l]) + target * p_n
        tangential = 0.5 * (x * px + y * py + z * pz + powers) - normal
        if not (law[p] == rule and law[q] == rule and law[r] == rule and law[s] == rule):
            if rule >= 0:
                add_works(works, rule, total(normals), total(tangentials))
            rule, normals, tangentials = law[p], none, none
            if not (law[q] == rule and law[r] == rule and law[s] == rule):
                first, second = lanes(normal), lanes(tangential)
                add_works(works, law[p], first[0], second[0])
                add_works(works, law[q], first[1], second[1])
                add_works(works, law[r], first[2], second[2])
                add_works(works, law[s], first[3], second[3])
                normal, tangential = none, none
        normals, tangentials = normals + normal, tangentials + tangential
        if least(smaller(u[6], v[6])) <= 0.0:  # some do not move freely
            add_drive(works, law[p], rows, kind, contacts, i)
            add_drive(works, law[q], rows, kind, contacts, j)
            add_drive(works, law[r], rows, kind, contacts, k)
            add_drive(works, law[s], rows, kind, contacts, l)
    if rule >= 0:
        add_works(works, rule, total(normals), total(tangentials))
    cone, size = store_some(rows, contacts, kappa, tolerance, pairs, whole, end)
    most = book_some(step, rows, kind, pairs, contacts, whole, end, works)
    return max(cone, -least(0.0 - cones)), size + total(sizes), max(most, -least(0.0 - deepest))


@kernel
def keep_some(step, rows, kind, pairs, contacts, kappa, tolerance, begin, end, works):
    """`store_some` and `book_some` of the contacts from ``begin`` on, before ``end``: see `keep_contacts`."""
    if tolerance >= 0.0 and not has_image(contacts):
        return keep_fours(step, rows, kind, pairs, contacts, kappa, tolerance, begin, end, works)
    cone, size = 0.0, 0.0
    if tolerance >= 0.0:
        cone, size = store_some(rows, contacts, kappa, tolerance, pairs, begin, end)
    return cone, size, book_some(step, rows, kind, pairs, contacts, begin, end, works)


@kernel
def keep_contacts(step, rows, kind, pairs, contacts, kappa, tolerance, works, cuts, parts, cones, meeting):
    """Store status and impulses, and add the works to ``works`` (L, 4): normal, tangential, rolling, drive.

    Group by group, which begin at ``cuts`` (ALL + 1,), in ``parts`` (ALL, L + 1, 4) and ``cones`` (ALL, 2). Enters into
    ``lost`` of the pairs what the solver left. Returns the largest violation of a cone, the sum of |P|^2 and the
    largest that a contact has lost. Where the ``tolerance`` is below zero, nothing is stored, since it was before. The
    residual was measured before.
    """
    enlist(meeting)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        parts[first:after] = 0.0
        for k in range(first, after):
            cones[k, 0] = cones[k, 1] = 0.0
            if cuts[k] < cuts[k + 1]:
                cones[k, 0], cones[k, 1], parts[k, works.shape[0], 0] = keep_some(
                    step, rows, kind, pairs, contacts, kappa, tolerance, cuts[k], cuts[k + 1], parts[k]
                )
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, cones[k, 0]), size + cones[k, 1]
    return cone, size, put_together(parts, works, meeting.thread == 0)
