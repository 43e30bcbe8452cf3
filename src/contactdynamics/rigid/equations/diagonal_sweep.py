"""The sweep of diagonal contacts: each is solved exactly with the others held, every body loaded once.

Four contacts in a row that have no free body in common are solved at once (`fours`), which is the same as one after the
other; `order` has them so, nearly always.
"""

import numpy as np

from ..._jit import kernel
from ..fours import (
    apart,
    columns_of_4,
    columns_of_8,
    larger,
    root,
    set_columns_of_4,
    set_columns_of_8,
    smaller,
    spread,
    total,
)
from .diagonal_rows import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, TINY, pushed, row_of, set_velocity


@kernel(inline=True, contract=True)
def solved(a, b, c, p, kappa, factor):
    """A simple contact that starts with the impulse p: P_n = max(0, p_n - (U_n - r)/W_n), then P_t into the cone.

    ``a``, ``b`` (8,) are the rows of its bodies, ``c`` (8,) its own, of numbers or of fours. Returns what becomes of
    them, and W_n |P - p|^2, the kinetic size of the change.
    """
    nx, ny, nz, px, py, pz = c[NX], c[NY], c[NZ], p[0], p[1], p[2]
    sx, sy, sz = a[3] + b[3], a[4] + b[4], a[5] + b[5]
    ux = b[0] - a[0] - (sy * nz - sz * ny)
    uy = b[1] - a[1] - (sz * nx - sx * nz)
    uz = b[2] - a[2] - (sx * ny - sy * nx)
    w_n = a[6] + b[6]
    step = 1.0 / w_n
    u_n = ux * nx + uy * ny + uz * nz
    p_n = px * nx + py * ny + pz * nz
    new = larger(0.0, p_n - (u_n - c[TARGET]) * step)
    step = step * factor
    # the normal parts of P and U taken off at once
    off = p_n - step * u_n
    tx, ty, tz = px - step * ux - off * nx, py - step * uy - off * ny, pz - step * uz - off * nz
    square = tx * tx + ty * ty + tz * tz
    shrink = smaller(1.0, c[GAMMA] * new / root(square + TINY))  # no branch: the processor could not foresee it
    tx, ty, tz = tx * shrink + new * nx, ty * shrink + new * ny, tz * shrink + new * nz
    dx, dy, dz = tx - px, ty - py, tz - pz
    a, b = pushed(a, b, nx, ny, nz, dx, dy, dz, kappa)
    return a, b, (nx, ny, nz, tx, ty, tz, c[TARGET], c[GAMMA]), w_n * (dx * dx + dy * dy + dz * dz)


@kernel(inline=True)
def set_impulse(row, k, values):
    """Write the impulse of contact ``k``."""
    row[k, PX], row[k, PY], row[k, PZ] = values[PX], values[PY], values[PZ]


@kernel(inline=True, contract=True)
def start(c, o, beta):
    """P + beta (P - P_last) of a contact with the row ``c``, and P_last in ``o``."""
    x, y, z = c[PX], c[PY], c[PZ]
    return x + beta * (x - o[0]), y + beta * (y - o[1]), z + beta * (z - o[2])


@kernel(contract=True)
def sweep_one(rows, contacts, k, kappa, factor, beta, last):
    """Solve contact ``k``; returns the size of the change. ``beta``: as of `sweep_contacts`."""
    row, a, b = contacts.row, contacts.a[k], contacts.b[k]
    c = row_of(row, k)
    p = c[PX], c[PY], c[PZ]
    if beta > 0.0:
        p = start(c, (last[k, 0], last[k, 1], last[k, 2]), beta)
    if beta >= 0.0:
        last[k, 0], last[k, 1], last[k, 2] = c[PX], c[PY], c[PZ]
    one, two, own, change = solved(row_of(rows, a), row_of(rows, b), c, p, kappa, factor)
    set_velocity(rows, a, one)
    set_velocity(rows, b, two)
    set_impulse(row, k, own)
    return change


@kernel(contract=True)
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it: each starts from P + beta (P - P_last); ``last`` (m, 4) takes P.

    Before it, the velocities are extrapolated in the same way: they stay those of the impulses (2004, eq. 36). Where
    beta < 0 the sweep is plain, and ``last`` stays as it is.
    """
    kappa, factor, change, changes = mobility.kappa, 1.0 / (1.0 + mobility.kappa), 0.0, spread(0.0)
    row, one, two, size = contacts.row, contacts.a, contacts.b, np.uint64(some.size)
    whole = size - size % np.uint64(4)
    for at in range(np.uint64(0), whole, np.uint64(4)):
        i, j, k, l = some[at], some[at + np.uint64(1)], some[at + np.uint64(2)], some[at + np.uint64(3)]
        a, b = (one[i], one[j], one[k], one[l]), (two[i], two[j], two[k], two[l])
        first, second = columns_of_8(rows, *a), columns_of_8(rows, *b)
        if not apart(a, b, first[6], second[6]):
            for n in range(at, at + np.uint64(4)):
                change += sweep_one(rows, contacts, some[n], kappa, factor, beta, last)
            continue
        c = columns_of_8(row, i, j, k, l)
        p = c[PX], c[PY], c[PZ]
        if beta > 0.0:
            p = start(c, columns_of_4(last, i, j, k, l), beta)
        if beta >= 0.0:
            set_columns_of_4(last, i, j, k, l, (c[PX], c[PY], c[PZ], c[PZ]))
        first, second, own, size_of_change = solved(first, second, c, p, kappa, factor)
        set_columns_of_8(rows, *a, first)
        set_columns_of_8(rows, *b, second)
        set_columns_of_8(row, i, j, k, l, own)
        changes = changes + size_of_change
    for n in range(whole, size):
        change += sweep_one(rows, contacts, some[n], kappa, factor, beta, last)
    return change + total(changes)
