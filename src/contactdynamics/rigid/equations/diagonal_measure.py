"""The residual of diagonal contacts, four at a time (`fours`): see `Kernels.measure`.

What one contact needs is a long chain of operations, of which the processor sees the next one or two contacts only.
Each operation is rounded: what a contact loses has the same bits alone and among four, on every processor.
"""

import numpy as np

from ..._jit import kernel
from ..fours import columns_of_8, lanes, larger, root, smaller, spread, total, unsigned
from .contract import tallied
from .diagonal_rows import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, TINY, row_of, with_image, with_images


@kernel(inline=True)
def natural_map(a, b, c, x, y, z, factor):
    """|natural map|^2, |b(U, P)|, |P|^2, U_n - r, P . (U - r) and 1 / rho of a contact, or of four.

    ``a``, ``b``, ``c`` (8,) are the rows of its bodies and its own; x, y, z the relative velocity of the centres;
    ``factor`` the mean of W over 1/m_a + 1/m_b.
    """
    nx, ny, nz, px, py, pz, gamma = c[NX], c[NY], c[NZ], c[PX], c[PY], c[PZ], c[GAMMA]
    sx, sy, sz = a[3] + b[3], a[4] + b[4], a[5] + b[5]
    ux, uy, uz = x - (sy * nz - sz * ny), y - (sz * nx - sx * nz), z - (sx * ny - sy * nx)
    stiff = factor * (a[6] + b[6])
    rho = 1.0 / stiff
    u_n = ux * nx + uy * ny + uz * nz
    tx, ty, tz = ux - u_n * nx, uy - u_n * ny, uz - u_n * nz
    u_n = u_n - c[TARGET]
    u_t = root(tx * tx + ty * ty + tz * tz)
    p_n = px * nx + py * ny + pz * nz
    qx, qy, qz = px - p_n * nx, py - p_n * ny, pz - p_n * nz
    along = tx * qx + ty * qy + tz * qz
    # P - rho U^ with de Saxce's U^ = U + gamma |U_t| n, projected on the cone
    x_n = p_n - rho * (u_n + gamma * u_t)
    xx, xy, xz = qx - rho * tx, qy - rho * ty, qz - rho * tz
    x_t = root(xx * xx + xy * xy + xz * xz)
    # without a branch: in the cone x_n is the largest of the three
    y_n = larger(larger(x_n, (x_n + gamma * x_t) / (1.0 + gamma * gamma)), 0.0)
    shrink = smaller(1.0, gamma * y_n / (x_t + TINY))
    xx, xy, xz = qx - shrink * xx, qy - shrink * xy, qz - shrink * xz
    natural = (p_n - y_n) * (p_n - y_n) + xx * xx + xy * xy + xz * xz
    product = unsigned((unsigned(u_n) + gamma * u_t) * p_n + along)
    return natural, product, px * px + py * py + pz * pz, u_n, u_n * p_n + along, stiff


@kernel(inline=True)
def note(contacts, shares, k, lost, natural, opening, power):
    """Write what is known of contact ``k``; returns whether it sinks."""
    sinks = opening < -contacts.sink[k]
    shares[k, 0], shares[k, 1] = (np.inf, np.inf) if sinks else (lost, natural)
    contacts.opening[k], contacts.power[k] = opening, power
    return sinks


@kernel
def measure_contacts(rows, mobility, contacts, some, shares):
    """The sums of the residual: see `Kernels`. ``shares`` (m, 2) gets what each contact loses.

    And ``contacts`` its ``opening``, U_n - r, and the ``power`` of its impulse, P . (U - r).
    """
    kappa, dimension, row, one, two = mobility.kappa, mobility.dimension, contacts.row, contacts.a, contacts.b
    factor, none, size = (1.0 + (dimension - 1) * (1.0 + kappa)) / dimension, spread(0.0), np.uint64(some.size)
    errors, sizes, products, works, losses = none, none, none, none, none
    worst, largest, sinking, whole = np.int64(-1), -1.0, 0, size - size % np.uint64(4)
    for at in range(np.uint64(0), whole, np.uint64(4)):
        i, j, k, l = some[at], some[at + np.uint64(1)], some[at + np.uint64(2)], some[at + np.uint64(3)]
        a, b = columns_of_8(rows, one[i], one[j], one[k], one[l]), columns_of_8(rows, two[i], two[j], two[k], two[l])
        c, (x, y, z) = columns_of_8(row, i, j, k, l), (b[0] - a[0], b[1] - a[1], b[2] - a[2])
        x, y, z = with_images(rows, contacts, (i, j, k, l), x, y, z)
        natural, product, square, opening, power, stiff = natural_map(a, b, c, x, y, z, factor)
        lost = product + natural * stiff
        errors, sizes, products = errors + natural, sizes + square, products + product
        works, losses = works + square * stiff, losses + lost
        n, o, p, m = lanes(natural), lanes(opening), lanes(power), lanes(lost)
        sinking += note(contacts, shares, i, m[0], n[0], o[0], p[0])
        sinking += note(contacts, shares, j, m[1], n[1], o[1], p[1])
        sinking += note(contacts, shares, k, m[2], n[2], o[2], p[2])
        sinking += note(contacts, shares, l, m[3], n[3], o[3], p[3])
        if larger(larger(m[0], m[1]), larger(m[2], m[3])) > largest:  # seldom
            for loss, which in ((m[0], i), (m[1], j), (m[2], k), (m[3], l)):
                if loss > largest:
                    worst, largest = np.int64(which), loss
    sums = total(errors), total(sizes), worst, largest, total(products), total(works), total(losses), sinking
    for at in range(whole, size):
        k = np.uint64(some[at])
        a, b, c = row_of(rows, one[k]), row_of(rows, two[k]), row_of(row, k)
        x, y, z = with_image(rows, contacts, k, b[0] - a[0], b[1] - a[1], b[2] - a[2])
        natural, product, square, opening, power, stiff = natural_map(a, b, c, x, y, z, factor)
        sinks = note(contacts, shares, k, product + natural * stiff, natural, opening, power)
        sums = tallied(sums, np.int64(k), natural, product, square, stiff, sinks)
    return sums
