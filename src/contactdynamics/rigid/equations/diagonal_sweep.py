"""The sweep of diagonal contacts: each is solved exactly with the others held, every body loaded once."""

import numpy as np

from ..._jit import kernel
from .diagonal_rows import GAMMA, NX, NY, NZ, PX, PY, PZ, TARGET, TINY


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


@kernel
def sweep_contacts(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it."""
    if beta < 0.0:
        return sweep_plain(rows, contacts, some, mobility.kappa)
    return sweep_ahead(rows, contacts, some, mobility.kappa, beta, last)
