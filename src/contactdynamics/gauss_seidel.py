"""Nonlinear Gauss-Seidel on rigid bodies, without matrices (2004, section 6.2): one sweep, residual, memory, works.

A contact is solved exactly with the other ones held, and the velocities of its two bodies are corrected at once
(2004, eq. 37). See `contacts` for the arrays and `iterations` for the order of the contacts and the number of sweeps.
The file is long because each of its stages is written twice, once for simple contacts, where speed decides, and once
for general ones; they belong side by side.
"""

import numpy as np

from ._jit import kernel
from .contacts import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, relative_velocity
from .laws import _slide, natural_map, solve_three
from .state import DRIVEN, SEPARATING, SLIDING, STICKING

TINY = 1e-300  # keeps 0 / 0 away, changes nothing else


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
def solve_simple(ra, rb, c, px, py, pz, kappa, factor):
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
def sweep_simple(rows, contacts, order, kappa):
    """One sweep over the simple contacts ``order``; returns the sum of W_n |dP|^2."""
    change, factor = 0.0, 1.0 / (1.0 + kappa)
    for k in range(order.size):
        at = order[k]
        c = contacts.row[at]
        change += solve_simple(rows[contacts.a[at]], rows[contacts.b[at]], c, c[PX], c[PY], c[PZ], kappa, factor)
    return change


@kernel(contract=True)
def sweep_ahead(rows, contacts, order, kappa, beta, last):
    """A sweep that starts each contact from P + beta (P - P_last); ``last`` (m, 3) takes P. Returns as `sweep_simple`.

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
        change += solve_simple(rows[contacts.a[at]], rows[contacts.b[at]], c, px, py, pz, kappa, factor)
    return change


@kernel(contract=True)
def measure_simple(rows, contacts, begin, end, kappa, dimension, shares):
    """Sums over some simple contacts: |natural map|^2, |P|^2, worst contact and its share, |b(U, P)|, P.P / rho; and
    the number of those that sink.

    ``shares`` (m,) gets each contact's |natural map|^2, inf where it sinks.
    """
    error, size, worst, largest, bipotential, work, sinking = 0.0, 0.0, -1, -1.0, 0.0, 0.0, 0
    for k in range(begin, end):
        a, b, c = contacts.a[k], contacts.b[k], contacts.row[k]
        nx, ny, nz, gamma = c[NX], c[NY], c[NZ], c[GAMMA]
        ux, uy, uz = slip(rows, a, b, nx, ny, nz)
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
        error += share
        sinks = u_n < -contacts.sink[k]
        sinking += sinks
        shares[k] = np.inf if sinks else share
        square = c[PX] ** 2 + c[PY] ** 2 + c[PZ] ** 2
        size += square
        bipotential += abs(product)
        work += square / rho
        if share > largest:
            worst, largest = k, share
    return error, size, worst, largest, bipotential, work, sinking


@kernel
def push_general(rows, inverse, a, b, frame, arm_a, arm_b, p, m):
    """Apply the impulse ``p`` and the moment ``m`` (3,) in the frame of a general contact to its bodies."""
    f, t, w = np.empty(3), np.empty(3), np.empty(3)
    for c in range(3):
        f[c] = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
        t[c] = frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2]
    for side in range(2):
        body, arm, sign = (a, arm_a, -1.0) if side == 0 else (b, arm_b, 1.0)
        if rows[body, 6] == 0.0:
            continue
        for c in range(3):
            d, e = (c + 1) % 3, (c + 2) % 3
            w[c] = arm[d] * f[e] - arm[e] * f[d] + t[c]
        for c in range(3):
            rows[body, c] += sign * rows[body, 6] * f[c]
            turn = inverse[body, c, 0] * w[0] + inverse[body, c, 1] * w[1] + inverse[body, c, 2] * w[2]
            rows[body, 3 + c] += sign * rows[body, 7] * turn


@kernel
def warm_start_general(rows, inverse, contacts, count):
    """Add the impulses and moments that the contacts start with to the velocities."""
    for k in range(count):
        push_general(rows, inverse, contacts.a[k], contacts.b[k], contacts.frame[k], contacts.arm_a[k],
                     contacts.arm_b[k], contacts.impulse[k], contacts.moment[k])  # fmt: skip


@kernel
def impulse_law(w, b, bound, p):
    """Impulse ``p`` (3,) of a general contact with the moments held; ``w`` (3, 3), ``b`` (3,). Returns the status.

    Cohesion shifts the cone to start at P_n = -cohesion h; where the contact opens all the same, P = 0. Tension holds
    the normal velocity at zero up to its limit, without friction.
    """
    if bound[4] > 0.0:
        shifted = np.empty(3)
        for i in range(3):
            shifted[i] = b[i] - w[i, 0] * bound[4]
        p[0], p[1], p[2], status = solve_three(w, shifted, bound[0], bound[1])
        if status == SEPARATING:
            p[0], p[1], p[2] = 0.0, 0.0, 0.0
        else:
            p[0] -= bound[4]
        return status
    p[0], p[1], p[2], status = solve_three(w, b, bound[0], bound[1])
    if status == SEPARATING and bound[5] > 0.0 and b[0] <= w[0, 0] * bound[5]:
        p[0] = -b[0] / w[0, 0]
        return SLIDING
    return status


@kernel
def moment_law(w, b, bound, p_n, m):
    """Moment ``m`` (3,) about (n, t1, t2) with the impulse held: |m_n| <= spinning P_n, |m_t| <= rolling P_n."""
    limit = bound[3] * max(p_n, 0.0)
    m[0] = 0.0
    if w[0, 0] > 0.0 and limit > 0.0:
        free = b[0] + w[0, 1] * m[1] + w[0, 2] * m[2]
        m[0] = min(limit, max(-limit, -free / w[0, 0]))
    limit = bound[2] * max(p_n, 0.0)
    b1, b2 = b[1] + w[1, 0] * m[0], b[2] + w[2, 0] * m[0]
    m[1], m[2] = 0.0, 0.0
    if limit == 0.0:
        return
    angle = 0.5 * np.arctan2(2.0 * w[1, 2], w[1, 1] - w[2, 2])
    c, s = np.cos(angle), np.sin(angle)
    w1 = c * c * w[1, 1] + 2.0 * c * s * w[1, 2] + s * s * w[2, 2]
    w2 = s * s * w[1, 1] - 2.0 * c * s * w[1, 2] + c * c * w[2, 2]
    e1, e2 = c * b1 + s * b2, -s * b1 + c * b2
    tiny = 1e-14 * (w[1, 1] + w[2, 2])
    m1 = -e1 / w1 if w1 > tiny else 0.0
    m2 = -e2 / w2 if w2 > tiny else 0.0
    if m1 * m1 + m2 * m2 > limit * limit:
        # the same secular equation as for sliding, with the constant bound in the place of P_n
        _, m1, m2 = _slide(1.0, -limit, 0.0, 0.0, max(w1, 0.0), max(w2, 0.0),
                           e1 if w1 > tiny else 0.0, e2 if w2 > tiny else 0.0)  # fmt: skip
    m[1], m[2] = c * m1 - s * m2, s * m1 + c * m2


@kernel
def solve_general(w, b, bound, p, m):
    """Impulse and moment of one general contact, together: alternate the two exact laws until both hold."""
    if bound[2] == 0.0 and bound[3] == 0.0:
        return impulse_law(w[:3, :3], b[:3], bound, p)
    part = np.empty(3)
    status = SEPARATING
    for _ in range(200):
        for i in range(3):
            part[i] = b[i] + w[i, 3] * m[0] + w[i, 4] * m[1] + w[i, 5] * m[2]
        old = p[0], p[1], p[2]
        status = impulse_law(w[:3, :3], part, bound, p)
        for i in range(3):
            part[i] = b[3 + i] + w[3 + i, 0] * p[0] + w[3 + i, 1] * p[1] + w[3 + i, 2] * p[2]
        moment_law(w[3:, 3:], part, bound, p[0], m)
        change = max(abs(p[0] - old[0]), abs(p[1] - old[1]), abs(p[2] - old[2]))
        if change <= 1e-13 * (abs(p[0]) + abs(p[1]) + abs(p[2])):
            break
    return status


@kernel
def relative_spin(rows, a, b, frame, out):
    """Relative spin (3,) of b with respect to a, in the frame of the contact."""
    for i in range(3):
        out[i] = 0.0
        for c in range(3):
            out[i] += frame[i, c] * (rows[b, 3 + c] / rows[b, 7] - rows[a, 3 + c] / rows[a, 7])


@kernel
def sweep_general(rows, inverse, contacts, count):
    """One sweep over the general contacts."""
    b, p, m = np.empty(6), np.empty(3), np.empty(3)
    dp, dm = np.empty(3), np.empty(3)
    for k in range(count):
        i, j, w = contacts.a[k], contacts.b[k], contacts.delassus[k]
        frame, arm_a, arm_b = contacts.frame[k], contacts.arm_a[k], contacts.arm_b[k]
        relative_velocity(rows, i, j, frame, arm_a, arm_b, b[:3])
        relative_spin(rows, i, j, frame, b[3:])
        for c in range(6):
            if c < 3:
                b[c] -= contacts.target[k, c]
                p[c], m[c] = contacts.impulse[k, c], contacts.moment[k, c]
        for c in range(6):
            for d in range(3):
                b[c] -= w[c, d] * p[d] + w[c, 3 + d] * m[d]
        contacts.status[k] = solve_general(w, b, contacts.bound[k], p, m)
        for c in range(3):
            dp[c], dm[c] = p[c] - contacts.impulse[k, c], m[c] - contacts.moment[k, c]
            contacts.impulse[k, c], contacts.moment[k, c] = p[c], m[c]
        push_general(rows, inverse, i, j, frame, arm_a, arm_b, dp, dm)


@kernel
def measure_general(rows, contacts, count, dimension):
    """The sums of `measure_simple` over the general contacts; moments enter with their own natural map."""
    error, size, worst, largest, bipotential, work = 0.0, 0.0, -1, -1.0, 0.0, 0.0
    u, t, p, r = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(count):
        w, bound, m = contacts.delassus[k], contacts.bound[k], contacts.moment[k]
        mean = w[0, 0] + w[1, 1] + (w[2, 2] if dimension == 3 else 0.0)
        rho = dimension / mean
        relative_velocity(rows, contacts.a[k], contacts.b[k], contacts.frame[k], contacts.arm_a[k],
                          contacts.arm_b[k], u)  # fmt: skip
        square = 0.0
        for c in range(3):
            u[c] -= contacts.target[k, c]
            p[c] = contacts.impulse[k, c]
            square += p[c] * p[c]
        open_ = square == 0.0 and u[0] >= 0.0
        held = bound[5] > 0.0 and p[0] < 0.0
        p[0] += 0.0 if open_ else bound[4]
        if open_:
            r[:] = 0.0
        elif held:  # tension: the contact is closed and carries no friction
            r[0], r[1], r[2] = rho * u[0], p[1], p[2]
        else:
            natural_map(p, u, bound[:2], rho, r)
        share = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        if bound[2] > 0.0 or bound[3] > 0.0:
            relative_spin(rows, contacts.a[k], contacts.b[k], contacts.frame[k], t)
            share += moment_error(w, t, bound, contacts.impulse[k, 0], m) * mean / dimension
        if not open_ and not held:
            slide = np.sqrt((bound[0] * u[1]) ** 2 + (bound[1] * u[2]) ** 2)
            bipotential += abs(p[0] * (abs(u[0]) + slide) + p[1] * u[1] + p[2] * u[2])
        error += share
        size += square
        work += square / rho
        if share > largest:
            worst, largest = k, share
    return error, size, worst, largest, bipotential, work


@kernel
def moment_error(w, spin, bound, p_n, m):
    """Square of the natural map of the moments, as a square of an impulse divided by W: kinetic units."""
    total = 0.0
    limit = bound[3] * max(p_n, 0.0)
    if w[3, 3] > 0.0:
        x = min(limit, max(-limit, m[0] - spin[0] / w[3, 3]))
        total += w[3, 3] * (m[0] - x) ** 2
    mean = 0.5 * (w[4, 4] + w[5, 5])
    if mean > 0.0:
        limit = bound[2] * max(p_n, 0.0)
        x, y = m[1] - spin[1] / mean, m[2] - spin[2] / mean
        if w[4, 4] == 0.0:
            x = 0.0  # two dimensions: no rotation about t1
        size = np.sqrt(x * x + y * y)
        shrink = limit / size if size > limit else 1.0
        total += mean * ((m[1] - shrink * x) ** 2 + (m[2] - shrink * y) ** 2)
    return total


@kernel
def store_simple(rows, contacts, count, kappa, tolerance, pairs):
    """Find the status of the simple contacts and store it with the impulse in the pairs.

    A contact on its cone sticks all the same where it does not slip: its speed is below ``tolerance`` times the one
    that friction can take away, W_t gamma P_n. Returns the largest violation of a cone and the sum of |P|^2.
    """
    cone, size = 0.0, 0.0
    row, kept, impulse = contacts.row, pairs.status, pairs.impulse
    for k in range(
        count
    ):  # no views of rows here: each would be counted as a reference, which takes longer than the rest
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
                u_n = x * nx + y * ny + z * nz
                taken = (1.0 + kappa) * (rows[a, 6] + rows[b, 6]) * gamma * p_n
                if x * x + y * y + z * z - u_n * u_n <= (tolerance * taken) ** 2:
                    status = STICKING
        contacts.status[k] = kept[pair] = status
        impulse[pair, 0], impulse[pair, 1], impulse[pair, 2] = px, py, pz
    return cone, size


@kernel
def book_simple(before, rows, kind, pairs_law, contacts, count, works):
    """Add the works of the simple contacts to ``works`` (L, 4): normal, tangential, rolling, drive."""
    for k in range(count):
        a, b, c = contacts.a[k], contacts.b[k], contacts.row[k]
        nx, ny, nz = c[NX], c[NY], c[NZ]
        px, py, pz = c[PX], c[PY], c[PZ]
        ux, uy, uz = slip(before, a, b, nx, ny, nz)
        vx, vy, vz = slip(rows, a, b, nx, ny, nz)
        p_n = px * nx + py * ny + pz * nz
        m_n = 0.5 * ((ux + vx) * nx + (uy + vy) * ny + (uz + vz) * nz)
        total = 0.5 * ((ux + vx) * px + (uy + vy) * py + (uz + vz) * pz)
        book = works[pairs_law[contacts.pair[k]]]
        book[0] += m_n * p_n
        book[1] += total - m_n * p_n
        for side in range(2):
            body, sign = (a, 1.0) if side == 0 else (b, -1.0)
            if kind[body] == DRIVEN:  # the contact point lies at +n from a and at -n from b
                sx, sy, sz = sign * rows[body, 3], sign * rows[body, 4], sign * rows[body, 5]
                x = rows[body, 0] + sy * nz - sz * ny
                y = rows[body, 1] + sz * nx - sx * nz
                z = rows[body, 2] + sx * ny - sy * nx
                book[3] += sign * (x * px + y * py + z * pz)


@kernel
def store_general(rows, contacts, count, tolerance, pairs):
    """The same for the general contacts, with their moments."""
    cone, size = 0.0, 0.0
    u = np.empty(3)
    for k in range(count):
        pair, frame, p, m = contacts.pair[k], contacts.frame[k], contacts.impulse[k], contacts.moment[k]
        if contacts.status[k] == SLIDING and p[0] > 0.0:
            relative_velocity(rows, contacts.a[k], contacts.b[k], frame, contacts.arm_a[k], contacts.arm_b[k], u)
            x, y = u[1] - contacts.target[k, 1], u[2] - contacts.target[k, 2]
            c1, c2, w = contacts.bound[k, 0], contacts.bound[k, 1], contacts.delassus[k]
            taken = min(c1 * w[1, 1], c2 * w[2, 2]) * p[0]
            if x * x + y * y <= (tolerance * taken) ** 2 and taken > 0.0:
                contacts.status[k] = STICKING
        pairs.status[pair] = contacts.status[k]
        size += p[0] ** 2 + p[1] ** 2 + p[2] ** 2
        if contacts.status[k] != SEPARATING:
            limit = max(contacts.bound[k, 0], contacts.bound[k, 1]) * (p[0] + contacts.bound[k, 4])
            cone = max(cone, np.sqrt(p[1] ** 2 + p[2] ** 2) - max(limit, 0.0))
        for c in range(3):
            pairs.impulse[pair, c] = frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2]
            pairs.moment[pair, c] = frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2]
    return cone, size


@kernel
def book_general(before, rows, kind, pairs_law, contacts, count, works):
    """Add the works of the general contacts to ``works`` (L, 4)."""
    u, v, s, t = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(count):
        a, b, frame = contacts.a[k], contacts.b[k], contacts.frame[k]
        arm_a, arm_b, p, m = contacts.arm_a[k], contacts.arm_b[k], contacts.impulse[k], contacts.moment[k]
        relative_velocity(before, a, b, frame, arm_a, arm_b, u)
        relative_velocity(rows, a, b, frame, arm_a, arm_b, v)
        relative_spin(before, a, b, frame, s)
        relative_spin(rows, a, b, frame, t)
        book = works[pairs_law[contacts.pair[k]]]
        book[0] += 0.5 * (u[0] + v[0]) * p[0]
        book[1] += 0.5 * ((u[1] + v[1]) * p[1] + (u[2] + v[2]) * p[2])
        book[2] += 0.5 * ((s[0] + t[0]) * m[0] + (s[1] + t[1]) * m[1] + (s[2] + t[2]) * m[2])
        if kind[a] == DRIVEN:
            book[3] += driven_power(rows, a, arm_a, frame, p, m)
        if kind[b] == DRIVEN:
            book[3] -= driven_power(rows, b, arm_b, frame, p, m)


@kernel
def driven_power(rows, body, arm, frame, p, m):
    """Velocity of the contact point of a driven body times the impulse, plus its spin times the moment."""
    total = 0.0
    w = rows[body, 3:6]
    scale = rows[body, 7]
    for c in range(3):
        d, e = (c + 1) % 3, (c + 2) % 3
        v = rows[body, c] + (w[d] * arm[e] - w[e] * arm[d]) / scale
        total += v * (frame[0, c] * p[0] + frame[1, c] * p[1] + frame[2, c] * p[2])
        total += w[c] / scale * (frame[0, c] * m[0] + frame[1, c] * m[1] + frame[2, c] * m[2])
    return total
