"""What is kept of diagonal contacts after the solution, and the works that are booked.

Both at once (`keep_contacts`), four contacts at a time (`fours`); with anticipation the first is needed before it is
known whether the step is over, and they stay apart.
"""

import numpy as np

from ..._jit import kernel
from ...state import DRIVEN, SEPARATING, SLIDING, STICKING
from ..crew import enlist
from ..fetch import AHEAD, fetch
from ..fours import (
    columns_of_8,
    lanes,
    larger,
    numbers_of,
    put_side_by_side,
    root,
    set_numbers_of,
    smaller,
    spread,
    total,
    transposed,
    where_positive,
)
from ..search.pairs import LOST
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
    relative,
    row_of,
    slip,
    with_image,
)

STICKS = 1.0 - 1e-9  # of the cone: up to there a contact sticks, whatever its velocity


@kernel(inline=True)
def status_of(p_n, inside):
    """The status of a contact, or of four, ``inside`` its cone by so much; who slides there: see `status_on_cone`."""
    return where_positive(p_n, where_positive(inside, float(STICKING), float(SLIDING)), float(SEPARATING))


@kernel(inline=True)
def status_on_cone(contact, x, y, z, light, kappa, tolerance):
    """The status of a contact on its cone, or of four, with this row (8,) and velocity: it sticks if it does not slip.

    That is, if its speed is below ``tolerance`` times the one that friction can take away, W_t gamma P_n; ``light``
    is 1/m_a + 1/m_b.
    """
    nx, ny, nz, gamma = contact[NX], contact[NY], contact[NZ], contact[GAMMA]
    p_n, u_n = contact[PX] * nx + contact[PY] * ny + contact[PZ] * nz, x * nx + y * ny + z * nz
    most = tolerance * ((1.0 + kappa) * light * gamma * p_n)
    spare = where_positive(gamma, most * most - (x * x + y * y + z * z - u_n * u_n), 0.0)
    return where_positive(spare, float(STICKING), float(SLIDING))


@kernel
def store_on_cones(rows, contacts, some, count, kappa, tolerance, pairs):
    """Store the status of the contacts ``some`` (count,) on their cones: see `status_on_cone`."""
    row, one, two, place, status, known = (
        contacts.row, contacts.a, contacts.b, contacts.pair, contacts.status, pairs.status
    )  # fmt: skip
    count = np.uint64(count)
    whole = np.uint64(0) if has_image(contacts) else count - count % np.uint64(4)
    for n in range(np.uint64(0), whole, np.uint64(4)):
        i, j, k, l = some[n], some[n + np.uint64(1)], some[n + np.uint64(2)], some[n + np.uint64(3)]
        c = columns_of_8(row, i, j, k, l)
        x, y, z, sx, sy, sz, light = relative(rows, (one[i], one[j], one[k], one[l]), (two[i], two[j], two[k], two[l]))
        x, y, z = x - (sy * c[NZ] - sz * c[NY]), y - (sz * c[NX] - sx * c[NZ]), z - (sx * c[NY] - sy * c[NX])
        p, q, r, s = lanes(status_on_cone(c, x, y, z, light, kappa, tolerance))
        status[i] = known[place[i]] = np.int8(p)
        status[j] = known[place[j]] = np.int8(q)
        status[k] = known[place[k]] = np.int8(r)
        status[l] = known[place[l]] = np.int8(s)
    for n in range(whole, count):
        k, c = some[n], row_of(row, some[n])
        x, y, z = slip(rows, one[k], two[k], c[NX], c[NY], c[NZ])
        x, y, z = with_image(rows, contacts, k, x, y, z)
        found = status_on_cone(c, x, y, z, rows[one[k], 6] + rows[two[k], 6], kappa, tolerance)
        status[k] = known[place[k]] = np.int8(found)


@kernel
def store_some(rows, contacts, kappa, tolerance, pairs, begin, end):
    """Find the status of the contacts from ``begin`` on, before ``end``, and store it with the impulse in the pairs.

    Returns the largest violation of a cone and the sum of |P|^2.
    """
    cone, size, last = 0.0, 0.0, np.uint64(max(end, 1) - 1)
    row, memory, place, status, known = contacts.row, pairs.memory, contacts.pair, contacts.status, pairs.status
    sliding, count = np.empty(end - begin, dtype=np.uint64), np.uint64(0)
    for k in range(np.uint64(begin), np.uint64(end)):
        fetch(memory, place[min(k + np.uint64(AHEAD), last)])
        px, py, pz, at = row[k, PX], row[k, PY], row[k, PZ], place[k]
        p_n, square = px * row[k, NX] + py * row[k, NY] + pz * row[k, NZ], px * px + py * py + pz * pz
        p_t, bound = np.sqrt(max(0.0, square - p_n * p_n)), row[k, GAMMA] * p_n
        found = np.int8(status_of(p_n, bound * STICKS - p_t))
        status[k] = known[at] = found
        sliding[count] = k
        count += np.uint64(found == SLIDING)
        memory[at, 0], memory[at, 1], memory[at, 2] = px, py, pz
        cone, size = max(cone, p_t - bound, -p_n), size + square
    store_on_cones(rows, contacts, sliding, count, kappa, tolerance, pairs)
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
    before, driven, h, law, memory = step.before, step.driven, step.h, pairs.law, pairs.memory
    row, one, two, place = contacts.row, contacts.a, contacts.b, contacts.pair
    opening, power, most, last = contacts.opening, contacts.power, 0.0, np.uint64(max(end, 1) - 1)
    for k in range(np.uint64(begin), np.uint64(end)):
        next_ = min(k + np.uint64(AHEAD), last)
        fetch(before, one[next_])
        fetch(before, two[next_])
        fetch(memory, place[next_])
        fetch(law, place[next_])
        at = place[k]
        nx, ny, nz, px, py, pz, r = (
            row[k, NX], row[k, NY], row[k, NZ], row[k, PX], row[k, PY], row[k, PZ], row[k, TARGET]
        )  # fmt: skip
        lost = lost_after(memory[at, LOST], opening[k] + r, r, h)
        memory[at, LOST], most = lost, max(most, lost)
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
    fetch(pairs.memory, at)


@kernel(inline=True)
def least(four):
    """The least of four numbers."""
    a, b, c, d = lanes(four)
    return min(min(a, b), min(c, d))


@kernel(inline=True)
def four_numbers(column, i):
    """Those of a ``column`` (m,) from ``i`` on."""
    j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
    return put_side_by_side(column[i], column[j], column[k], column[l])


@kernel(inline=True)
def lightest(rows, bodies):
    """The least 1/m of eight ``bodies`` (8,): zero where one of them does not move freely."""
    a, b, c, d, e, f, g, h = bodies
    one = smaller(smaller(numbers_of(rows, a, 4), numbers_of(rows, b, 4)),
                  smaller(numbers_of(rows, c, 4), numbers_of(rows, d, 4)))  # fmt: skip
    two = smaller(smaller(numbers_of(rows, e, 4), numbers_of(rows, f, 4)),
                  smaller(numbers_of(rows, g, 4), numbers_of(rows, h, 4)))  # fmt: skip
    return lanes(smaller(one, two))[2]


@kernel(inline=True)
def store_status(contacts, pairs, four, at, values, sliding, count):
    """Store the status ``values`` of ``four`` contacts (4,) with their pairs, and add those on their cones to a list.

    Without a branch: nobody could foresee who slides. Returns how many are in the list ``sliding`` then.
    """
    (i, j, k, l), (p, q, r, s), status, known = four, at, contacts.status, pairs.status
    a, b, c, d = lanes(values)
    status[i] = known[p] = np.int8(a)
    status[j] = known[q] = np.int8(b)
    status[k] = known[r] = np.int8(c)
    status[l] = known[s] = np.int8(d)
    sliding[count] = i
    count += np.uint64(a == SLIDING)
    sliding[count] = j
    count += np.uint64(b == SLIDING)
    sliding[count] = k
    count += np.uint64(c == SLIDING)
    sliding[count] = l
    return count + np.uint64(d == SLIDING)


@kernel
def keep_fours(step, rows, kind, drives, pairs, contacts, kappa, tolerance, begin, end, works):
    """`store_some` and `book_some` of contacts without images: what both return. ``drives``: some bodies are driven.

    Lane by lane is written out: a loop over the lanes would look each number up.
    """
    before, h, law, memory = step.before, step.h, pairs.law, pairs.memory
    row, one, two, place, opening, power = (
        contacts.row, contacts.a, contacts.b, contacts.pair, contacts.opening, contacts.power
    )  # fmt: skip
    begin, end, ahead = np.uint64(begin), np.uint64(end), np.uint64(2 * AHEAD)
    whole, last, none, rule = end - (end - begin) % np.uint64(4), end - np.uint64(1), spread(0.0), np.int32(-1)
    cones, sizes, deepest, normals, tangentials = none, none, none, none, none
    sliding, count = np.empty(end - begin + np.uint64(1), dtype=np.uint64), np.uint64(0)
    for i in range(begin, whole, np.uint64(4)):
        j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
        fetch_next(before, pairs, contacts, min(i + ahead, last))
        fetch_next(before, pairs, contacts, min(j + ahead, last))
        fetch_next(before, pairs, contacts, min(k + ahead, last))
        fetch_next(before, pairs, contacts, min(l + ahead, last))
        p, q, r, s = place[i], place[j], place[k], place[l]
        nx, ny, nz, px, py, pz, target, gamma = columns_of_8(row, i, j, k, l)
        p_n, square = px * nx + py * ny + pz * nz, px * px + py * py + pz * pz
        p_t, bound = root(larger(0.0, square - p_n * p_n)), gamma * p_n
        sizes, cones = sizes + square, larger(cones, larger(p_t - bound, 0.0 - p_n))
        status = status_of(p_n, bound * STICKS - p_t)
        count = store_status(contacts, pairs, (i, j, k, l), (p, q, r, s), status, sliding, count)
        u_n = four_numbers(opening, i) + target
        lost = put_side_by_side(memory[p, LOST], memory[q, LOST], memory[r, LOST], memory[s, LOST])
        deep = larger(0.0, lost - h * (u_n - smaller(target, 0.0)))
        deepest = larger(deepest, deep)
        kept = transposed(px, py, pz, deep)
        set_numbers_of(memory, p, 0, kept[0])
        set_numbers_of(memory, q, 0, kept[1])
        set_numbers_of(memory, r, 0, kept[2])
        set_numbers_of(memory, s, 0, kept[3])
        bodies = one[i], one[j], one[k], one[l], two[i], two[j], two[k], two[l]
        x, y, z, sx, sy, sz, _ = relative(before, bodies[:4], bodies[4:])
        x, y, z = x - (sy * nz - sz * ny), y - (sz * nx - sx * nz), z - (sx * ny - sy * nx)
        normal = 0.5 * (x * nx + y * ny + z * nz + u_n) * p_n
        powers = four_numbers(power, i) + target * p_n
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
        if drives and lightest(before, bodies) <= 0.0:  # some do not move freely
            add_drive(works, law[p], rows, kind, contacts, i)
            add_drive(works, law[q], rows, kind, contacts, j)
            add_drive(works, law[r], rows, kind, contacts, k)
            add_drive(works, law[s], rows, kind, contacts, l)
    if rule >= 0:
        add_works(works, rule, total(normals), total(tangentials))
    store_on_cones(rows, contacts, sliding, count, kappa, tolerance, pairs)
    cone, size = store_some(rows, contacts, kappa, tolerance, pairs, whole, end)
    most = book_some(step, rows, kind, pairs, contacts, whole, end, works)
    return max(cone, -least(0.0 - cones)), size + total(sizes), max(most, -least(0.0 - deepest))


@kernel
def keep_some(step, rows, kind, drives, pairs, contacts, kappa, tolerance, begin, end, works):
    """`store_some` and `book_some` of the contacts from ``begin`` on, before ``end``: see `keep_contacts`."""
    if tolerance >= 0.0 and not has_image(contacts):
        return keep_fours(step, rows, kind, drives, pairs, contacts, kappa, tolerance, begin, end, works)
    cone, size = 0.0, 0.0
    if tolerance >= 0.0:
        cone, size = store_some(rows, contacts, kappa, tolerance, pairs, begin, end)
    return cone, size, book_some(step, rows, kind, pairs, contacts, begin, end, works)


@kernel
def some_driven(kind):
    """Whether some bodies of these kinds (N,) are driven."""
    found = False
    for i in range(np.uint64(kind.size)):
        found |= kind[i] == DRIVEN
    return found


@kernel
def keep_contacts(step, rows, kind, pairs, contacts, kappa, tolerance, works, cuts, parts, cones, meeting):
    """Store status and impulses, and add the works to ``works`` (L, 4): normal, tangential, rolling, drive.

    Group by group, which begin at ``cuts`` (ALL + 1,), in ``parts`` (ALL, L + 1, 4) and ``cones`` (ALL, 2). Enters into
    ``lost`` of the pairs what the solver left. Returns the largest violation of a cone, the sum of |P|^2 and the
    largest that a contact has lost. Where the ``tolerance`` is below zero, nothing is stored, since it was before. The
    residual was measured before.
    """
    enlist(meeting)
    drives = some_driven(kind)
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        parts[first:after] = 0.0
        for k in range(first, after):
            cones[k, 0] = cones[k, 1] = 0.0
            if cuts[k] < cuts[k + 1]:
                cones[k, 0], cones[k, 1], parts[k, works.shape[0], 0] = keep_some(
                    step, rows, kind, drives, pairs, contacts, kappa, tolerance, cuts[k], cuts[k + 1], parts[k]
                )
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, cones[k, 0]), size + cones[k, 1]
    return cone, size, put_together(parts, works, meeting.thread == 0)
