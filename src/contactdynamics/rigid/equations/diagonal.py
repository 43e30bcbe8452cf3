"""Diagonal equations: homogeneous balls and planes that do not turn, with Coulomb's isotropic law.

Contacts across the border of a cell that moves are a kind of their own (`border`), with these kernels but for the
sweep.

The block of W is diagonal, W_n = 1/m_a + 1/m_b and W_t = (1 + k) W_n with k = m r^2 / I; no tangent vectors are needed,
and the impulse is kept as a vector in space. Speed decides here: contacts stand in memory in the order of a sweep, one
line of cache each.
"""

import numpy as np

from ..._jit import Settled, kernel
from ...scenes.materials import FRICTION_1, RHO, STATIC
from ...state import DRIVEN, OPEN, SEPARATING, SLIDING, STICKING
from ..fetch import AHEAD, fetch
from ..search.contract import DIAGONAL
from ..search.pairs import kept
from ..threads import own_part, share_out
from .contract import (
    ALL,
    GROUPS,
    KERNELS,
    SHARED,
    Explicit,
    Kernels,
    holds_static,
    local_frame,
    lost_after,
    own_groups,
    put_together,
    sinking_speed,
    target_velocity,
)
from .diagonal_measure import measure_contacts
from .diagonal_rows import (
    GAMMA,
    NX,
    NY,
    NZ,
    PX,
    PY,
    PZ,
    TARGET,
    DiagonalContacts,
    cell_power,
    diagonal_contacts,
    push_cell,
    slip,
    slip_sum,
    with_image,
)
from .diagonal_sweep import sweep_contacts
from .held import Held


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
        next_ = places[min(found + np.uint64(2 * AHEAD), last)]
        fetch(one, next_)
        fetch(two, next_)
        fetch(law, next_)
        fetch(gap, next_)
        fetch(lost, next_)
        fetch(normal, next_)
        fetch(memory, next_)
        next_ = places[min(found + np.uint64(AHEAD), last)]
        fetch(free, one[next_])
        fetch(free, two[next_])
        fetch(rows, one[next_])
        fetch(rows, two[next_])
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


@kernel
def store_some(rows, contacts, kappa, tolerance, pairs, begin, end):
    """Find the status of the contacts from ``begin`` on, before ``end``, and store it with the impulse in the pairs.

    A contact on its cone sticks all the same where it does not slip: its speed is below ``tolerance`` times the one
    that friction can take away, W_t gamma P_n. Returns the largest violation of a cone and the sum of |P|^2.
    """
    cone, size = 0.0, 0.0
    row, kept, impulse, last = contacts.row, pairs.status, pairs.impulse, np.uint64(max(end, 1) - 1)
    # no views of rows here: each would be counted as a reference, which takes longer than the rest
    for k in range(np.uint64(begin), np.uint64(end)):
        fetch(impulse, contacts.pair[min(k + np.uint64(AHEAD), last)])
        pair, gamma = contacts.pair[k], row[k, GAMMA]
        nx, ny, nz, px, py, pz = row[k, NX], row[k, NY], row[k, NZ], row[k, PX], row[k, PY], row[k, PZ]
        p_n = px * nx + py * ny + pz * nz
        square = px * px + py * py + pz * pz
        p_t = np.sqrt(max(0.0, square - p_n * p_n))
        size += square
        cone = max(cone, p_t - gamma * p_n, -p_n)
        status = SLIDING
        if p_n <= 0.0:
            status = SEPARATING
        elif gamma > 0.0:
            if p_t < gamma * p_n * (1.0 - 1e-9):
                status = STICKING
            else:
                a, b = contacts.a[k], contacts.b[k]
                x, y, z = slip(rows, a, b, nx, ny, nz)
                x, y, z = with_image(rows, contacts, k, x, y, z)
                u_n = x * nx + y * ny + z * nz
                taken = (1.0 + kappa) * (rows[a, 6] + rows[b, 6]) * gamma * p_n
                if x * x + y * y + z * z - u_n * u_n <= (tolerance * taken) ** 2:
                    status = STICKING
        contacts.status[k] = kept[pair] = status
        impulse[pair, 0], impulse[pair, 1], impulse[pair, 2] = px, py, pz
    return cone, size


@kernel
def store_contacts(rows, contacts, kappa, tolerance, pairs):
    """Find and store status and impulse of all contacts: see `store_some`."""
    return store_some(rows, contacts, kappa, tolerance, pairs, 0, contacts.pair.size)


@kernel
def store_groups(rows, contacts, kappa, tolerance, pairs, cuts, parts, meeting):
    """`store_contacts`, group by group as ``cuts`` (ALL + 1,) has it, in ``parts`` (ALL, 2)."""
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


@kernel
def book_some(before, rows, kind, driven, h, law, lost, contacts, begin, end, works):
    """Add the works of the contacts from ``begin`` on, before ``end``, to ``works``: see `book_contacts`.

    Half of the impulse times the velocity before the step and after it; of the latter the residual has left what is
    needed. Returns the largest that one has lost.
    """
    row, one, two, place = contacts.row, contacts.a, contacts.b, contacts.pair
    opening, power, most, last = contacts.opening, contacts.power, 0.0, np.uint64(max(end, 1) - 1)
    for k in range(np.uint64(begin), np.uint64(end)):
        next_ = min(k + np.uint64(AHEAD), last)
        fetch(before, one[next_])
        fetch(before, two[next_])
        fetch(lost, place[next_])
        fetch(law, place[next_])
        a, b, at = one[k], two[k], place[k]
        nx, ny, nz, px, py, pz, r = (
            row[k, NX], row[k, NY], row[k, NZ], row[k, PX], row[k, PY], row[k, PZ], row[k, TARGET]
        )  # fmt: skip
        lost[at] = lost_after(lost[at], opening[k] + r, r, h)
        most = max(most, lost[at])
        x, y, z = slip(before, a, b, nx, ny, nz)
        x, y, z = with_image(before, contacts, k, x, y, z)
        p_n = px * nx + py * ny + pz * nz
        normal = 0.5 * (x * nx + y * ny + z * nz + (opening[k] + r)) * p_n
        rule = law[at]
        works[rule, 0] += normal
        works[rule, 1] += 0.5 * (x * px + y * py + z * pz + (power[k] + r * p_n)) - normal
        works[rule, 3] -= cell_power(rows, driven, contacts, k, px, py, pz)
        if kind[a] == DRIVEN or kind[b] == DRIVEN:
            works[rule, 3] += drive_work(rows, kind, contacts, k)
    return most


@kernel
def book_contacts(before, rows, kind, driven, h, law, lost, contacts, works, cuts, parts, meeting):
    """Add the works of the contacts to ``works`` (L, 4): normal, tangential, rolling, drive; by ``parts``.

    ``parts`` (ALL, L + 1, 4) are those of the groups, which begin at ``cuts`` (ALL + 1,). Enters into ``lost`` (K,) of
    the pairs, whose laws are ``law`` (K,), what the solver left, and returns the largest. ``driven`` (3, 3): which
    components of the velocity gradient of a moving cell are imposed. The residual was measured before.
    """
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        parts[first:after] = 0.0
        for k in range(first, after):
            if cuts[k] < cuts[k + 1]:
                parts[k, works.shape[0], 0] = book_some(
                    before, rows, kind, driven, h, law, lost, contacts, cuts[k], cuts[k + 1], parts[k]
                )
    share_out(meeting, rows, 0)
    return put_together(parts, works, meeting.thread == 0)


@kernel
def keep_contacts(step, rows, kind, pairs, contacts, kappa, tolerance, works, cuts, parts, cones, meeting):
    """`store_groups` and `book_contacts`, both of a group while it is in the cache.

    Returns the largest violation of a cone, the sum of |P|^2 and the largest that a contact has lost.
    """
    for parity in range(2):
        first, after = own_groups(meeting, parity)
        parts[first:after] = 0.0
        for k in range(first, after):
            cones[k, 0] = cones[k, 1] = 0.0
            begin, end = cuts[k], cuts[k + 1]
            if begin < end:
                cones[k, 0], cones[k, 1] = store_some(rows, contacts, kappa, tolerance, pairs, begin, end)
                parts[k, works.shape[0], 0] = book_some(
                    step.before, rows, kind, step.driven, step.h, pairs.law, pairs.lost, contacts, begin, end, parts[k]
                )
    share_out(meeting, rows, 0)
    cone, size = 0.0, 0.0
    for k in range(ALL):
        cone, size = max(cone, cones[k, 0]), size + cones[k, 1]
    return cone, size, put_together(parts, works, meeting.thread == 0)


@kernel
def separations(rows, contacts):
    """U_n (m,) of the contacts."""
    out = np.empty(contacts.pair.size)
    for k in range(out.size):
        c = contacts.row[k]
        x, y, z = slip(rows, contacts.a[k], contacts.b[k], c[NX], c[NY], c[NZ])
        x, y, z = with_image(rows, contacts, k, x, y, z)
        out[k] = x * c[NX] + y * c[NY] + z * c[NZ]
    return out


@kernel
def write_frames(row, flat, out):
    """The frames (m, 3, 3) of contacts with these rows."""
    axis = np.zeros(3)
    for k in range(out.shape[0]):
        local_frame(row[k, NX : NZ + 1], axis, flat, out[k])


@kernel
def add_powers(free, rows, contacts, some, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| of ``some`` contacts to ``sums`` (G, 3) of their groups."""
    row, one, two = contacts.row, contacts.a, contacts.b  # no views of rows: see `store_contacts`
    for n in range(some.size):
        k = some[n]
        a, b = one[k], two[k]
        at = group[a] if group[a] >= 0 else group[b]
        nx, ny, nz, px, py, pz = row[k, NX], row[k, NY], row[k, NZ], row[k, PX], row[k, PY], row[k, PZ]
        x, y, z = slip(rows, a, b, nx, ny, nz)
        fx, fy, fz = slip(free, a, b, nx, ny, nz)
        x, y, z = with_image(rows, contacts, k, x, y, z)
        fx, fy, fz = with_image(free, contacts, k, fx, fy, fz)
        sums[at, 1] += px * (x - fx) + py * (y - fy) + pz * (z - fz)
        r = row[k, TARGET]
        x, y, z = x - r * nx, y - r * ny, z - r * nz
        sums[at, 0] += px * x + py * y + pz * z
        sums[at, 2] += abs(px * x) + abs(py * y) + abs(pz * z)


@kernel
def add_known(contacts, begin, end, group, sums):
    """Add the powers that `measure_contacts` has left to the ``sums`` (G, 2) of their groups: see `Kernels`."""
    one, two, power, at, total, size = contacts.a, contacts.b, contacts.power, np.int32(-1), 0.0, 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        g = group[one[k]]
        g = g if g >= 0 else group[two[k]]
        if g != at:  # most are of one group: its sums stay at hand
            if at >= 0:
                sums[at, 0], sums[at, 1] = total, size
            at, total, size = g, sums[g, 0], sums[g, 1]
        total, size = total + power[k], size + abs(power[k])
    if at >= 0:
        sums[at, 0], sums[at, 1] = total, size
    return True


KERNELS[DiagonalContacts] = Kernels(
    sweep_contacts, measure_contacts, store_contacts, separations, add_powers, add_known
)


class Diagonal(Held):
    """The diagonal contacts of a scene: see `Equations`."""

    number, ahead, able = DIAGONAL, True, True
    arrays, more, kernels = staticmethod(diagonal_contacts), (1.03, 16), KERNELS[DiagonalContacts]
    unknowns = 4  # three and a spare one: rows of four are read at once
    filling, memory = staticmethod(fill_contacts), staticmethod(kept)
    _alone = False  # whether all pairs of the search are of this kind

    def clear(self) -> None:
        """No active contacts."""
        super().clear()
        self._store, self._book, self._keep = Settled(store_groups), Settled(book_contacts), Settled(keep_contacts)
        # of sums, by group
        self._parts, self._cones, self._scales = np.zeros((ALL, 2, 4)), np.zeros((ALL, 2)), np.empty(ALL)

    def rank(self, k: int) -> int:
        """The place of contact ``k`` in the order of the pairs."""
        pair = self.active.pair
        return int(pair[k]) if self._alone else int(np.count_nonzero(pair < pair[k]))

    def fill(self, model, near, pairs, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        self._alone = self.count == len(pairs.first)
        places, cuts, scales = self._plan.few, self._plan.cuts, self._scales
        scales[:] = 0.0  # of groups that other processes have

        def exchange(parity):
            team.pass_on(rows, parity, *((scales,) if parity else ()))

        return team.split(exchange, self._fill, pairs, step, rows, model.laws, mobility, places, cuts, self.active,
                          scales)  # fmt: skip

    def store(self, pairs, rows, mobility, tolerance, team) -> tuple[float, float]:
        """Keep impulse and status with the pairs; returns the largest distance to a cone and the sum of |P|^2."""
        stored, active, cuts, parts = self.memory(pairs), self.active, self._plan.cuts, self._cones
        if team.several:
            parts[:] = 0.0

        def exchange(stage):
            team.add_up(parts)

        return team.split(exchange, self._store, rows, active, mobility.kappa, tolerance, stored, cuts, parts)

    def _parts_of(self, works, team) -> np.ndarray:
        """(ALL, L + 1, 4) room for the works of each group; zeros where other processes have some."""
        if self._parts.shape[1] != len(works) + 1:
            self._parts = np.zeros((ALL, len(works) + 1, 4))
        if team.several:
            self._parts[:] = 0.0
        return self._parts

    def keep(self, pairs, step, rows, mobility, tolerance, bodies, works, team) -> tuple[float, float, float]:
        """`store` and `book` at once."""
        parts, cones = self._parts_of(works, team), self._cones
        if team.several:
            cones[:] = 0.0

        def exchange(stage):
            team.add_up(cones)
            team.add_up(parts)

        return team.split(
            exchange, self._keep, step, rows, bodies.kind, pairs, self.active, mobility.kappa, tolerance, works,
            self._plan.cuts, parts, cones,
        )  # fmt: skip

    def book(self, pairs, step, rows, bodies, works, team) -> float:
        """Add the works of the contacts to ``works`` (L, 4), and keep by how much they are too deep; the largest, m."""
        parts = self._parts_of(works, team)

        def exchange(stage):
            team.add_up(parts)

        return team.split(
            exchange, self._book, step.before, rows, bodies.kind, step.driven, step.h, pairs.law, pairs.lost,
            self.active, works, self._plan.cuts, parts,
        )  # fmt: skip

    def acting(self) -> tuple:
        """(count, 3) the impulses, in space."""
        return (self.active.row[:, PX : PZ + 1],)

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`."""
        return self.active.row[np.argsort(self.active.pair), TARGET]

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out, in the order of their pairs."""
        order = np.argsort(self.active.pair)
        pair, a, b, row, _, status = (array[order] for array in self.active[:6])
        m, a, b = self.count, a.astype(np.int64), b.astype(np.int64)
        frame, target = np.empty((m, 3, 3)), np.zeros((m, 3))
        write_frames(row, dimension == 2, frame)
        target[:, 0] = row[:, TARGET]
        return Explicit(
            pair.astype(np.int64), a, b, frame, rows[a, 7:] * frame[:, 0], -rows[b, 7:] * frame[:, 0], target,
            np.repeat(row[:, GAMMA, None], 2, axis=1), np.ones(m, dtype=bool),
            np.einsum("kij,kj->ki", frame, row[:, PX : PZ + 1]), np.zeros((m, 3)), status, np.zeros(m),
        )  # fmt: skip

    def accept(self, written, impulse) -> None:
        """Take over impulses (count, 3) in the frames, which stand in the order of the pairs."""
        order = np.argsort(self.active.pair)
        self.active.row[order, PX : PZ + 1] = np.einsum("kij,ki->kj", written.frame, impulse)
