"""A contact of balls in memory: the columns of its row, its velocity, and what it has of a cell that moves.

`with_image`, `push_cell` and `cell_power` are nothing where contacts have no ``image``: see `diagonal` and `border`.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..._jit import kernel
from ..fetch import lines
from ..fours import numbers_of, put_side_by_side, transposed
from ..pages import zeros

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
    opening: np.ndarray  # (m,) U_n - r when the residual was last measured, m/s
    power: np.ndarray  # (m,) P . (U - r) then, J


def diagonal_contacts(room: int) -> DiagonalContacts:
    """Empty arrays for ``room`` contacts."""
    rows = [zeros(room, np.uint32) for _ in range(3)]  # unsigned: no test for negative indices
    return DiagonalContacts(*rows, lines(room), zeros(room), zeros(room, np.int8), zeros(room), zeros(room))


def has_image(contacts):
    """Whether contacts meet images of bodies across the border of a cell that moves."""
    return hasattr(contacts, "image")


@overload(has_image)
def _compiled_has_image(contacts):
    found = "image" in contacts.instance_class._fields
    return lambda contacts: found


def with_image(rows, contacts, k, x, y, z):
    """U of contact ``k`` with what the image of b moves more than b."""
    if not hasattr(contacts, "image"):
        return x, y, z
    return _with_image(rows, contacts, k, x, y, z)


@kernel(inline=True)
def _moved(rows, s, x, y, z):
    """x, y, z with the velocity of an image at ``s`` (3,), numbers or fours."""
    cell = rows.shape[0] - 3
    return (
        x + s[0] * rows[cell, 0] + s[1] * rows[cell + 1, 0] + s[2] * rows[cell + 2, 0],
        y + s[0] * rows[cell, 1] + s[1] * rows[cell + 1, 1] + s[2] * rows[cell + 2, 1],
        z + s[0] * rows[cell, 2] + s[1] * rows[cell + 1, 2] + s[2] * rows[cell + 2, 2],
    )


@kernel(inline=True)
def _with_image(rows, contacts, k, x, y, z):
    s = contacts.image
    return _moved(rows, (s[k, 0], s[k, 1], s[k, 2]), x, y, z)


@overload(with_image)
def _compiled_with_image(rows, contacts, k, x, y, z):
    if "image" in contacts.instance_class._fields:
        return lambda rows, contacts, k, x, y, z: _with_image(rows, contacts, k, x, y, z)
    return lambda rows, contacts, k, x, y, z: (x, y, z)


def with_images(rows, contacts, four, x, y, z):
    """The same of ``four`` contacts (4,)."""
    if not hasattr(contacts, "image"):
        return x, y, z
    return _with_images(rows, contacts, four, x, y, z)


@kernel(inline=True)
def _with_images(rows, contacts, four, x, y, z):
    (i, j, k, l), s = four, contacts.image
    return _moved(
        rows, (
            put_side_by_side(s[i, 0], s[j, 0], s[k, 0], s[l, 0]),
            put_side_by_side(s[i, 1], s[j, 1], s[k, 1], s[l, 1]),
            put_side_by_side(s[i, 2], s[j, 2], s[k, 2], s[l, 2]),
        ), x, y, z,
    )  # fmt: skip


@overload(with_images)
def _compiled_with_images(rows, contacts, four, x, y, z):
    if "image" in contacts.instance_class._fields:
        return lambda rows, contacts, four, x, y, z: _with_images(rows, contacts, four, x, y, z)
    return lambda rows, contacts, four, x, y, z: (x, y, z)


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


@kernel(inline=True)
def row_of(table, k):
    """Row ``k`` of a table with eight columns."""
    return (
        table[k, 0], table[k, 1], table[k, 2], table[k, 3], table[k, 4], table[k, 5], table[k, 6], table[k, 7]
    )  # fmt: skip


@kernel(inline=True)
def set_velocity(rows, k, values):
    """Write velocity and spin of body ``k``."""
    for c in range(6):
        rows[k, c] = values[c]


@kernel(inline=True, contract=True)
def pushed(a, b, nx, ny, nz, px, py, pz, kappa):
    """The rows (8,) of two bodies after an impulse on b, its opposite on a; of numbers or of fours."""
    ma, mb = a[6], b[6]
    mx, my, mz = kappa * (ny * pz - nz * py), kappa * (nz * px - nx * pz), kappa * (nx * py - ny * px)
    return (
        (a[0] - ma * px, a[1] - ma * py, a[2] - ma * pz, a[3] - ma * mx, a[4] - ma * my, a[5] - ma * mz, ma, a[7]),
        (b[0] + mb * px, b[1] + mb * py, b[2] + mb * pz, b[3] - mb * mx, b[4] - mb * my, b[5] - mb * mz, mb, b[7]),
    )


@kernel(inline=True)
def slip_sum(rows, a, b):
    """s_a + s_b."""
    return rows[a, 3] + rows[b, 3], rows[a, 4] + rows[b, 4], rows[a, 5] + rows[b, 5]


@kernel(inline=True)
def slip(rows, a, b, nx, ny, nz):
    """U of a simple contact, in space: v_b - v_a - (s_a + s_b) x n."""
    sx, sy, sz = rows[a, 3] + rows[b, 3], rows[a, 4] + rows[b, 4], rows[a, 5] + rows[b, 5]
    return (
        rows[b, 0] - rows[a, 0] - (sy * nz - sz * ny),
        rows[b, 1] - rows[a, 1] - (sz * nx - sx * nz),
        rows[b, 2] - rows[a, 2] - (sx * ny - sy * nx),
    )


@kernel(inline=True)
def four_rows(table, i, j, k, l, begin):
    """Columns of four rows of a table, from ``begin`` on: four fours."""
    return transposed(
        numbers_of(table, i, begin), numbers_of(table, j, begin), numbers_of(table, k, begin),
        numbers_of(table, l, begin),
    )  # fmt: skip


@kernel(inline=True)
def subtracted(rows, a, b):
    """v_b - v_a and the first component of s_a + s_b: the first half of a row."""
    return numbers_of(rows, b, 0) + put_side_by_side(-1.0, -1.0, -1.0, 1.0) * numbers_of(rows, a, 0)


@kernel(inline=True)
def added(rows, a, b):
    """The other components of s_a + s_b, and 1/m_a + 1/m_b: the second half of a row."""
    return numbers_of(rows, b, 4) + numbers_of(rows, a, 4)


@kernel(inline=True)
def relative(rows, one, two):
    """v_b - v_a, s_a + s_b and 1/m_a + 1/m_b of four contacts between the bodies ``one`` (4,) and ``two``.

    Rows are put together before they become columns: half of them are left then.
    """
    (a, b, c, d), (e, f, g, h) = one, two
    x, y, z, sx = transposed(subtracted(rows, a, e), subtracted(rows, b, f), subtracted(rows, c, g),
                             subtracted(rows, d, h))  # fmt: skip
    sy, sz, light, _ = transposed(added(rows, a, e), added(rows, b, f), added(rows, c, g), added(rows, d, h))
    return x, y, z, sx, sy, sz, light
