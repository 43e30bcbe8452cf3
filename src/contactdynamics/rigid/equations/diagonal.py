"""Diagonal equations: homogeneous balls and planes that do not turn, with Coulomb's isotropic law.

Contacts across the border of a cell that moves are a kind of their own (`border`), with these kernels but for the
sweep; `with_image`, `push_cell` and `cell_power` are nothing where contacts have no ``image``.

The block of W is diagonal, W_n = 1/m_a + 1/m_b and W_t = (1 + k) W_n with k = m r^2 / I; no tangent vectors are needed,
and the impulse is kept as a vector in space. Speed decides here: contacts stand in memory in the order of a sweep, one
line of cache each.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..._jit import kernel
from ...scenes.materials import FRICTION_1, RHO, STATIC
from ...state import DRIVEN, OPEN, SEPARATING, SLIDING, STICKING
from ..search.contract import DIAGONAL
from ..search.pairs import kept, pair_size
from .contract import (
    KERNELS,
    START,
    Explicit,
    Kernels,
    holds_static,
    local_frame,
    lost_after,
    sinking_speed,
    tallied,
    target_velocity,
)
from .held import Held

# Columns of a contact's row.
NX, NY, NZ, PX, PY, PZ, TARGET, GAMMA = range(8)
TINY = 1e-300  # keeps 0 / 0 away, changes nothing else


class DiagonalContacts(NamedTuple):
    """Contacts in the order of a sweep (m,)."""

    pair: np.ndarray  # (m,) row in the list of pairs
    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    row: np.ndarray  # (m, 8) n, P, target r, gamma
    sink: np.ndarray  # (m,) speed below the target that the solver may leave to this contact, m/s
    status: np.ndarray  # (m,)


def diagonal_contacts(room: int) -> DiagonalContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(3)]  # unsigned: no test for negative indices
    return DiagonalContacts(*rows, np.empty((room, 8)), np.empty(room), np.zeros(room, dtype=np.int8))


def with_image(rows, contacts, k, x, y, z):
    """U of contact ``k`` with what the image of b moves more than b."""
    if not hasattr(contacts, "image"):
        return x, y, z
    return _with_image(rows, contacts, k, x, y, z)


@kernel(inline=True)
def _with_image(rows, contacts, k, x, y, z):
    s, cell = contacts.image, rows.shape[0] - 3
    return (
        x + s[k, 0] * rows[cell, 0] + s[k, 1] * rows[cell + 1, 0] + s[k, 2] * rows[cell + 2, 0],
        y + s[k, 0] * rows[cell, 1] + s[k, 1] * rows[cell + 1, 1] + s[k, 2] * rows[cell + 2, 1],
        z + s[k, 0] * rows[cell, 2] + s[k, 1] * rows[cell + 1, 2] + s[k, 2] * rows[cell + 2, 2],
    )


@overload(with_image)
def _compiled_with_image(rows, contacts, k, x, y, z):
    if "image" in contacts.instance_class._fields:
        return lambda rows, contacts, k, x, y, z: _with_image(rows, contacts, k, x, y, z)
    return lambda rows, contacts, k, x, y, z: (x, y, z)


def push_cell(rows, linear, contacts, k, x, y, z):
    """Apply the impulse of contact ``k`` to a moving cell; ``linear`` (N, 3) inverse masses by direction."""
    if hasattr(contacts, "image"):
        _push_cell(rows, linear, contacts, k, x, y, z)


@kernel(inline=True)
def _push_cell(rows, linear, contacts, k, x, y, z):
    for m in range(3):
        cell, s = rows.shape[0] - 3 + m, contacts.image[k, m]
        rows[cell, 0] += s * linear[cell, 0] * x
        rows[cell, 1] += s * linear[cell, 1] * y
        rows[cell, 2] += s * linear[cell, 2] * z


@overload(push_cell)
def _compiled_push_cell(rows, linear, contacts, k, x, y, z):
    if "image" in contacts.instance_class._fields:
        return lambda rows, linear, contacts, k, x, y, z: _push_cell(rows, linear, contacts, k, x, y, z)
    return lambda rows, linear, contacts, k, x, y, z: None


def cell_power(rows, driven, contacts, k, x, y, z):
    """The power of the impulse of contact ``k`` on the imposed components ``driven`` (3, 3) of a moving cell."""
    return _cell_power(rows, driven, contacts, k, x, y, z) if hasattr(contacts, "image") else 0.0


@kernel
def _cell_power(rows, driven, contacts, k, x, y, z):
    total = 0.0
    for m in range(3):
        cell, s = rows.shape[0] - 3 + m, contacts.image[k, m]
        total += s * (driven[0, m] * rows[cell, 0] * x + driven[1, m] * rows[cell, 1] * y)
        total += s * driven[2, m] * rows[cell, 2] * z
    return total


@overload(cell_power)
def _compiled_cell_power(rows, driven, contacts, k, x, y, z):
    if "image" in contacts.instance_class._fields:
        return lambda rows, driven, contacts, k, x, y, z: _cell_power(rows, driven, contacts, k, x, y, z)
    return lambda rows, driven, contacts, k, x, y, z: 0.0


@kernel(contract=True)
def fill_contacts(pairs, number, radius, step, rows, laws, mobility, places, out):
    """Fill ``out`` with the contacts of this kind and add their first guess to ``rows``, which start free.

    ``places`` (m,): where each is to stand. Returns the sum of (rho b)^2 over them.
    """
    count, scale = 0, 0.0
    law, gap, normal, kind, one, two = pairs.law, pairs.gap, pairs.normal, pairs.kind, pairs.a, pairs.b
    memory, status, lost = pairs.impulse, pairs.status, pairs.lost
    before, free, h, anticipate = step.before, step.free, step.h, step.anticipate
    kappa, dimension = mobility.kappa, mobility.dimension
    for k in range(kind.size):
        if kind[k] != number:
            continue
        found = places[count]
        count += 1
        a, b = one[k], two[k]
        nx, ny, nz = normal[k, 0], normal[k, 1], normal[k, 2]
        rule = laws[law[k]]
        gamma, u_before = rule[FRICTION_1], 0.0
        if rule[RHO] > 0.0 or rule[STATIC] > gamma:  # only these laws look at the velocity before
            x, y, z = before[b, 0] - before[a, 0], before[b, 1] - before[a, 1], before[b, 2] - before[a, 2]
            x, y, z = with_image(before, out, found, x, y, z)
            u_before = x * nx + y * ny + z * nz
            if rule[STATIC] > gamma:
                sx, sy, sz = before[a, 3] + before[b, 3], before[a, 4] + before[b, 4], before[a, 5] + before[b, 5]
                tx = x - (sy * nz - sz * ny) - u_before * nx
                ty = y - (sz * nx - sx * nz) - u_before * ny
                tz = z - (sx * ny - sy * nx) - u_before * nz
                if holds_static(status[k], tx * tx + ty * ty + tz * tz, u_before, gap[k], h):
                    gamma = rule[STATIC]
        r = target_velocity(gap[k], u_before, rule[RHO], h, anticipate, step.opening)
        px, py, pz = memory[k, 0], memory[k, 1], memory[k, 2]
        fix = max(0.0, -(px * nx + py * ny + pz * nz))  # the memory is a vector in space: P_n must stay a push
        px, py, pz = px + fix * nx, py + fix * ny, pz + fix * nz
        row = out.row[found]
        row[NX], row[NY], row[NZ], row[PX], row[PY], row[PZ] = nx, ny, nz, px, py, pz
        row[TARGET], row[GAMMA] = r, gamma
        out.pair[found], out.a[found], out.b[found], out.status[found] = k, a, b, OPEN
        out.sink[found] = sinking_speed(gap[k] if anticipate else -lost[k], pair_size(pairs, radius, k), h)
        fa, fb, ra, rb = free[a], free[b], rows[a], rows[b]
        ma, mb = fa[6], fb[6]
        rho = dimension / ((ma + mb) * (1.0 + (dimension - 1) * (1.0 + kappa)))
        sx, sy, sz = fa[3] + fb[3], fa[4] + fb[4], fa[5] + fb[5]
        tx = fb[0] - fa[0] - (sy * nz - sz * ny) - r * nx
        ty = fb[1] - fa[1] - (sz * nx - sx * nz) - r * ny
        tz = fb[2] - fa[2] - (sx * ny - sy * nx) - r * nz
        tx, ty, tz = with_image(free, out, found, tx, ty, tz)
        scale += rho * rho * (tx * tx + ty * ty + tz * tz)
        ra[0] -= ma * px
        ra[1] -= ma * py
        ra[2] -= ma * pz
        rb[0] += mb * px
        rb[1] += mb * py
        rb[2] += mb * pz
        mx, my, mz = kappa * (ny * pz - nz * py), kappa * (nz * px - nx * pz), kappa * (nx * py - ny * px)
        ra[3] -= ma * mx
        ra[4] -= ma * my
        ra[5] -= ma * mz
        rb[3] -= mb * mx
        rb[4] -= mb * my
        rb[5] -= mb * mz
        push_cell(rows, mobility.linear, out, found, px, py, pz)
    return scale


@kernel(inline=True)
def slip(rows, a, b, nx, ny, nz):
    """U of a simple contact, in space: v_b - v_a - (s_a + s_b) x n."""
    sx, sy, sz = rows[a, 3] + rows[b, 3], rows[a, 4] + rows[b, 4], rows[a, 5] + rows[b, 5]
    return (
        rows[b, 0] - rows[a, 0] - (sy * nz - sz * ny),
        rows[b, 1] - rows[a, 1] - (sz * nx - sx * nz),
        rows[b, 2] - rows[a, 2] - (sx * ny - sy * nx),
    )


@kernel(inline=True, contract=True)
def solve_contact(ra, rb, c, px, py, pz, kappa, factor):
    """Solve a simple contact that starts with the impulse p: P_n = max(0, p_n - (U_n - r)/W_n), then P_t into the cone.

    ``ra``, ``rb`` (8,) are the rows of its bodies, ``c`` (8,) its own; all three are changed. Returns W_n |P - p|^2,
    the kinetic size of the change. Written out: every body is loaded once.
    """
    nx, ny, nz = c[NX], c[NY], c[NZ]
    sx, sy, sz = ra[3] + rb[3], ra[4] + rb[4], ra[5] + rb[5]
    ux = rb[0] - ra[0] - (sy * nz - sz * ny)
    uy = rb[1] - ra[1] - (sz * nx - sx * nz)
    uz = rb[2] - ra[2] - (sx * ny - sy * nx)
    ma, mb = ra[6], rb[6]
    w_n = ma + mb
    step = 1.0 / w_n
    u_n = ux * nx + uy * ny + uz * nz
    p_n = px * nx + py * ny + pz * nz
    new = max(0.0, p_n - (u_n - c[TARGET]) * step)
    step *= factor
    # the normal parts of P and U taken off at once
    off = p_n - step * u_n
    tx, ty, tz = px - step * ux - off * nx, py - step * uy - off * ny, pz - step * uz - off * nz
    square = tx * tx + ty * ty + tz * tz
    shrink = min(1.0, c[GAMMA] * new / np.sqrt(square + TINY))  # no branch: the processor could not foresee it
    tx, ty, tz = tx * shrink + new * nx, ty * shrink + new * ny, tz * shrink + new * nz
    dx, dy, dz = tx - px, ty - py, tz - pz
    c[PX], c[PY], c[PZ] = tx, ty, tz
    ra[0] -= ma * dx
    ra[1] -= ma * dy
    ra[2] -= ma * dz
    rb[0] += mb * dx
    rb[1] += mb * dy
    rb[2] += mb * dz
    mx, my, mz = kappa * (ny * dz - nz * dy), kappa * (nz * dx - nx * dz), kappa * (nx * dy - ny * dx)
    ra[3] -= ma * mx
    ra[4] -= ma * my
    ra[5] -= ma * mz
    rb[3] -= mb * mx
    rb[4] -= mb * my
    rb[5] -= mb * mz
    return w_n * (dx * dx + dy * dy + dz * dz)


@kernel(contract=True)
def sweep_plain(rows, contacts, order, kappa):
    """One sweep over the contacts ``order``; returns the sum of W_n |dP|^2."""
    change, factor = 0.0, 1.0 / (1.0 + kappa)
    for k in range(order.size):
        at = order[k]
        c = contacts.row[at]
        change += solve_contact(rows[contacts.a[at]], rows[contacts.b[at]], c, c[PX], c[PY], c[PZ], kappa, factor)
    return change


@kernel(contract=True)
def sweep_ahead(rows, contacts, order, kappa, beta, last):
    """A sweep that starts each contact from P + beta (P - P_last); ``last`` (m, 3) takes P. Returns as `sweep_plain`.

    Before it, the velocities are extrapolated in the same way: they stay those of the impulses (2004, eq. 36).
    """
    change, factor = 0.0, 1.0 / (1.0 + kappa)
    for k in range(order.size):
        at = order[k]
        c, o = contacts.row[at], last[at]
        x, y, z = c[PX], c[PY], c[PZ]
        px, py, pz = x, y, z
        if beta > 0.0:
            px, py, pz = x + beta * (x - o[0]), y + beta * (y - o[1]), z + beta * (z - o[2])
        o[0], o[1], o[2] = x, y, z
        change += solve_contact(rows[contacts.a[at]], rows[contacts.b[at]], c, px, py, pz, kappa, factor)
    return change


@kernel  # each operation rounded: what is joined in one rounding would hang on the kernel that it is compiled into
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`. ``shares`` (m,) gets what each contact loses, inf where it sinks."""
    sums, kappa, dimension = START, mobility.kappa, mobility.dimension
    for at in range(some.size):
        k = some[at]
        a, b, c = contacts.a[k], contacts.b[k], contacts.row[k]
        nx, ny, nz, gamma = c[NX], c[NY], c[NZ], c[GAMMA]
        ux, uy, uz = slip(rows, a, b, nx, ny, nz)
        ux, uy, uz = with_image(rows, contacts, k, ux, uy, uz)
        w_n = rows[a, 6] + rows[b, 6]
        rho = dimension / (w_n * (1.0 + (dimension - 1) * (1.0 + kappa)))
        u_n = ux * nx + uy * ny + uz * nz
        tx, ty, tz = ux - u_n * nx, uy - u_n * ny, uz - u_n * nz
        u_n -= c[TARGET]
        u_t = np.sqrt(tx * tx + ty * ty + tz * tz)
        p_n = c[PX] * nx + c[PY] * ny + c[PZ] * nz
        qx, qy, qz = c[PX] - p_n * nx, c[PY] - p_n * ny, c[PZ] - p_n * nz
        product = (abs(u_n) + gamma * u_t) * p_n + tx * qx + ty * qy + tz * qz
        # P - rho U^ with de Saxce's U^ = U + gamma |U_t| n, projected on the cone
        x_n = p_n - rho * (u_n + gamma * u_t)
        xx, xy, xz = qx - rho * tx, qy - rho * ty, qz - rho * tz
        x_t = np.sqrt(xx * xx + xy * xy + xz * xz)
        # without a branch, which the processor could not foresee: in the cone x_n is the largest of the three
        y_n = max(x_n, (x_n + gamma * x_t) / (1.0 + gamma * gamma), 0.0)
        shrink = min(1.0, gamma * y_n / (x_t + TINY))
        share = (p_n - y_n) ** 2 + (qx - shrink * xx) ** 2 + (qy - shrink * xy) ** 2 + (qz - shrink * xz) ** 2
        square, sinks = c[PX] ** 2 + c[PY] ** 2 + c[PZ] ** 2, u_n < -contacts.sink[k]
        shares[k] = np.inf if sinks else abs(product) + share / rho
        sums = tallied(sums, int(k), share, abs(product), square, rho, sinks)
    return sums


@kernel
def store_contacts(rows, contacts, kappa, tolerance, pairs):
    """Find the status of the contacts and store it with the impulse in the pairs.

    A contact on its cone sticks all the same where it does not slip: its speed is below ``tolerance`` times the one
    that friction can take away, W_t gamma P_n. Returns the largest violation of a cone and the sum of |P|^2.
    """
    cone, size = 0.0, 0.0
    row, kept, impulse = contacts.row, pairs.status, pairs.impulse
    # no views of rows here: each would be counted as a reference, which takes longer than the rest
    for k in range(contacts.pair.size):
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
def book_contacts(before, rows, kind, driven, pairs_law, contacts, works):
    """Add the works of the contacts to ``works`` (L, 4): normal, tangential, rolling, drive.

    ``driven`` (3, 3): which components of the velocity gradient of a moving cell are imposed.
    """
    for k in range(contacts.pair.size):
        a, b, c = contacts.a[k], contacts.b[k], contacts.row[k]
        nx, ny, nz = c[NX], c[NY], c[NZ]
        px, py, pz = c[PX], c[PY], c[PZ]
        ux, uy, uz = slip(before, a, b, nx, ny, nz)
        vx, vy, vz = slip(rows, a, b, nx, ny, nz)
        ux, uy, uz = with_image(before, contacts, k, ux, uy, uz)
        vx, vy, vz = with_image(rows, contacts, k, vx, vy, vz)
        p_n = px * nx + py * ny + pz * nz
        m_n = 0.5 * ((ux + vx) * nx + (uy + vy) * ny + (uz + vz) * nz)
        total = 0.5 * ((ux + vx) * px + (uy + vy) * py + (uz + vz) * pz)
        book = works[pairs_law[contacts.pair[k]]]
        book[0] += m_n * p_n
        book[1] += total - m_n * p_n
        book[3] -= cell_power(rows, driven, contacts, k, px, py, pz)
        for side in range(2):
            body, sign = (a, 1.0) if side == 0 else (b, -1.0)
            if kind[body] == DRIVEN:  # the contact point lies at +n from a and at -n from b
                sx, sy, sz = sign * rows[body, 3], sign * rows[body, 4], sign * rows[body, 5]
                x = rows[body, 0] + sy * nz - sz * ny
                y = rows[body, 1] + sz * nx - sx * nz
                z = rows[body, 2] + sx * ny - sy * nx
                book[3] += sign * (x * px + y * py + z * pz)


@kernel
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it."""
    if beta < 0.0:
        return sweep_plain(rows, contacts, some, mobility.kappa)
    return sweep_ahead(rows, contacts, some, mobility.kappa, beta, last)


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
def lose(rows, contacts, h, lost):
    """Enter into ``lost`` (K,) of the pairs what the solver left; returns the largest."""
    most = 0.0
    for k in range(contacts.pair.size):
        a, b, c, at = contacts.a[k], contacts.b[k], contacts.row[k], contacts.pair[k]
        x, y, z = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[b, 2] - rows[a, 2]  # spins do not open it
        x, y, z = with_image(rows, contacts, k, x, y, z)
        lost[at] = lost_after(lost[at], x * c[NX] + y * c[NY] + z * c[NZ], c[TARGET], h)
        most = max(most, lost[at])
    return most


@kernel
def add_powers(free, rows, contacts, group, sums):
    """Add P . (U - r), P . (U - U_free) and |P| |U - r| of the contacts to ``sums`` (G, 3) of their groups."""
    for k in range(contacts.pair.size):
        c, a, b = contacts.row[k], contacts.a[k], contacts.b[k]
        at = group[a] if rows[a, 6] > 0.0 else group[b]
        nx, ny, nz, px, py, pz = c[NX], c[NY], c[NZ], c[PX], c[PY], c[PZ]
        x, y, z = slip(rows, a, b, nx, ny, nz)
        fx, fy, fz = slip(free, a, b, nx, ny, nz)
        x, y, z = with_image(rows, contacts, k, x, y, z)
        fx, fy, fz = with_image(free, contacts, k, fx, fy, fz)
        sums[at, 1] += px * (x - fx) + py * (y - fy) + pz * (z - fz)
        x, y, z = x - c[TARGET] * nx, y - c[TARGET] * ny, z - c[TARGET] * nz
        sums[at, 0] += px * x + py * y + pz * z
        sums[at, 2] += abs(px * x) + abs(py * y) + abs(pz * z)


KERNELS[DiagonalContacts] = Kernels(sweep_contacts, measure_contacts, store_contacts, separations, add_powers)


class Diagonal(Held):
    """The diagonal contacts of a scene: see `Equations`."""

    number, ahead, able = DIAGONAL, True, True
    arrays, more, kernels = staticmethod(diagonal_contacts), (1.03, 16), KERNELS[DiagonalContacts]
    filling, memory = staticmethod(fill_contacts), staticmethod(kept)
    _alone = False  # whether all pairs of the search are of this kind

    def rank(self, k: int) -> int:
        """The place of contact ``k`` in the order of the pairs."""
        pair = self.active.pair
        return int(pair[k]) if self._alone else int(np.count_nonzero(pair < pair[k]))

    def fill(self, model, near, pairs, step, rows, mobility) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        self._alone = self.count == len(pairs.first)
        return self._fill(
            pairs, self.number, model.balls.radius, step, rows, model.laws, mobility, self._plan.few, self.active
        )

    def book(self, pairs, step, rows, bodies, works) -> None:
        """Add the works of the contacts, law by law, to ``works`` (L, 4)."""
        book_contacts(step.before, rows, bodies.kind, step.driven, pairs.law, self.active, works)

    def lose(self, pairs, step, rows) -> float:
        """Keep with the pairs by how much they are deeper than the law has them; returns the largest, m."""
        return lose(rows, self.active, step.h, pairs.lost)

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
