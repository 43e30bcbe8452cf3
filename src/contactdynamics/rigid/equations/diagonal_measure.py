"""The residual of diagonal contacts, some at a time: see `Kernels.measure`.

What one contact needs is a long chain of operations, of which the processor sees the next one or two contacts only. So
`SOME` of them are taken at a time: their numbers are put into columns, worked on column by column, which the compiler
does for several contacts at once, and added up one after the other. Each operation is rounded: the bits are those of a
loop over contacts, whatever the width of the processor.
"""

import numpy as np

from ..._jit import kernel
from .contract import START, tallied
from .diagonal_rows import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, TINY, slip_sum, with_image

SOME = 64  # contacts at a time: their columns stay in the nearest cache
# Where the columns begin in one array: relative velocity of the centres, sum of s, normal, impulse, target, friction,
# and 1/m_a + 1/m_b; then |natural map|^2, |b(U, P)|, |P|^2, U_n - r, P . (U - r), 1 / rho.
COLUMNS = 21
(VX, VY, VZ, SX, SY, SZ, X, Y, Z, QX, QY, QZ, R, G, MASS, NATURAL, PRODUCT, SQUARE, OPENING, POWER, STIFF) = (
    np.uint64(SOME * k) for k in range(COLUMNS)
)  # fmt: skip


@kernel
def gather(rows, contacts, some, begin, count, out):
    """The columns of ``count`` contacts, those in ``some`` from ``begin`` on, into ``out``."""
    row, one, two = contacts.row, contacts.a, contacts.b
    for i in range(np.uint64(count)):  # unsigned, here and below: no test for negative indices
        k = np.uint64(some[begin + i])
        a, b = np.uint64(one[k]), np.uint64(two[k])
        x, y, z = rows[b, 0] - rows[a, 0], rows[b, 1] - rows[a, 1], rows[b, 2] - rows[a, 2]
        out[VX + i], out[VY + i], out[VZ + i] = with_image(rows, contacts, k, x, y, z)
        out[SX + i], out[SY + i], out[SZ + i] = slip_sum(rows, a, b)
        out[X + i], out[Y + i], out[Z + i] = row[k, NX], row[k, NY], row[k, NZ]
        out[QX + i], out[QY + i], out[QZ + i] = row[k, PX], row[k, PY], row[k, PZ]
        out[R + i], out[G + i], out[MASS + i] = row[k, TARGET], row[k, GAMMA], rows[a, 6] + rows[b, 6]


@kernel
def map_naturally(columns, count, factor):
    """The natural map of ``count`` contacts and what goes with it; ``factor``: mean of W over 1/m_a + 1/m_b."""
    c = columns
    for i in range(np.uint64(count)):
        nx, ny, nz, gamma = c[X + i], c[Y + i], c[Z + i], c[G + i]
        sx, sy, sz, px, py, pz = c[SX + i], c[SY + i], c[SZ + i], c[QX + i], c[QY + i], c[QZ + i]
        ux, uy, uz = c[VX + i] - (sy * nz - sz * ny), c[VY + i] - (sz * nx - sx * nz), c[VZ + i] - (sx * ny - sy * nx)
        stiff = factor * c[MASS + i]
        rho = 1.0 / stiff
        u_n = ux * nx + uy * ny + uz * nz
        tx, ty, tz = ux - u_n * nx, uy - u_n * ny, uz - u_n * nz
        u_n -= c[R + i]
        u_t = np.sqrt(tx * tx + ty * ty + tz * tz)
        p_n = px * nx + py * ny + pz * nz
        qx, qy, qz = px - p_n * nx, py - p_n * ny, pz - p_n * nz
        along = tx * qx + ty * qy + tz * qz
        # P - rho U^ with de Saxce's U^ = U + gamma |U_t| n, projected on the cone
        x_n = p_n - rho * (u_n + gamma * u_t)
        xx, xy, xz = qx - rho * tx, qy - rho * ty, qz - rho * tz
        x_t = np.sqrt(xx * xx + xy * xy + xz * xz)
        # without a branch: in the cone x_n is the largest of the three
        y_n = max(x_n, (x_n + gamma * x_t) / (1.0 + gamma * gamma), 0.0)
        shrink = min(1.0, gamma * y_n / (x_t + TINY))
        xx, xy, xz = qx - shrink * xx, qy - shrink * xy, qz - shrink * xz
        c[NATURAL + i] = (p_n - y_n) * (p_n - y_n) + xx * xx + xy * xy + xz * xz
        c[PRODUCT + i] = abs((abs(u_n) + gamma * u_t) * p_n + along)
        c[SQUARE + i] = px * px + py * py + pz * pz
        c[OPENING + i], c[POWER + i], c[STIFF + i] = u_n, u_n * p_n + along, stiff


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`. ``shares`` (m, 2) gets what each contact loses.

    And ``contacts`` its ``opening``, U_n - r, and the ``power`` of its impulse, P . (U - r).
    """
    sums, kappa, dimension = START, mobility.kappa, mobility.dimension
    factor = (1.0 + (dimension - 1) * (1.0 + kappa)) / dimension
    c, step, sink, opening, power = (
        np.empty(COLUMNS * SOME), np.uint64(SOME), contacts.sink, contacts.opening, contacts.power
    )  # fmt: skip
    for begin in range(np.uint64(0), np.uint64(some.size), step):
        count = min(step, np.uint64(some.size) - begin)
        gather(rows, contacts, some, begin, count, c)
        map_naturally(c, count, factor)
        for i in range(count):
            k = np.uint64(some[begin + i])
            natural, product, stiff = c[NATURAL + i], c[PRODUCT + i], c[STIFF + i]
            sinks = c[OPENING + i] < -sink[k]
            shares[k, 0], shares[k, 1] = product + natural * stiff, natural
            if sinks:
                shares[k, 0] = shares[k, 1] = np.inf
            opening[k], power[k] = c[OPENING + i], c[POWER + i]
            sums = tallied(sums, np.int64(k), natural, product, c[SQUARE + i], stiff, sinks)
    return sums
