"""Border equations: balls that meet across the border of a cell that moves, with Coulomb's isotropic law.

A ball b is met in its image at x_b + S, which moves by L S more than b, with the velocity gradient L of the cell. The
last three rows of the bodies are the columns of L times a length l, and ``image`` is S / l: they take part in U and in
impulses like bodies. All but the sweep are the kernels of `diagonal`.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import kernel
from ..search.contract import BORDER
from ..space import image
from .contract import KERNELS, Kernels
from .diagonal import Diagonal, add_powers, separations
from .diagonal_measure import measure_contacts
from .diagonal_rows import (
    NX,
    NY,
    NZ,
    PX,
    PY,
    PZ,
    cell_power,
    diagonal_contacts,
    push_cell,
    pushed,
    row_of,
    set_velocity,
    with_image,
)
from .diagonal_sweep import set_impulse, solved, start


class BorderContacts(NamedTuple):
    """Contacts across the border of a cell that moves, in the order of a sweep (m,)."""

    pair: np.ndarray  # as of `DiagonalContacts`
    a: np.ndarray
    b: np.ndarray
    row: np.ndarray
    sink: np.ndarray
    status: np.ndarray
    opening: np.ndarray
    power: np.ndarray
    image: np.ndarray  # (m, 3) S / l
    more: np.ndarray  # (m,) what the cell adds to 1/m_a + 1/m_b, in the direction in which it adds most


def border_contacts(room: int) -> BorderContacts:
    """Empty arrays for ``room`` contacts."""
    return BorderContacts(*diagonal_contacts(room), np.empty((room, 3)), np.empty(room))


@kernel
def fill_images(space, pairs, spots, mobility, places, out):
    """Fill in where b is met, for the contacts across the border; ``spots`` (S, 3) of the balls in space."""
    linear, length = mobility.linear, mobility.length
    for found in range(out.pair.size):
        k = places[found]
        i, j = pairs.first[k], pairs.second[k]
        x, y, z = image(space, spots[j, 0] - spots[i, 0], spots[j, 1] - spots[i, 1], spots[j, 2] - spots[i, 2])
        out.image[found, 0], out.image[found, 1], out.image[found, 2] = x / length, y / length, z / length
        out.more[found] = 0.0
        for c in range(3):
            more = 0.0
            for m in range(3):
                more += out.image[found, m] ** 2 * linear[linear.shape[0] - 3 + m, c]
            out.more[found] = max(out.more[found], more)


@kernel
def sweep_border(rows, mobility, contacts, some, beta, last):
    """One sweep, as `Kernels` has it: b is met in its image, and the cell takes its share of the impulse.

    With the cell's share the block of W is not diagonal, but hardly differs from it: solved is the diagonal block that
    bounds it from above, as a step towards the solution.
    """
    change, kappa, linear, row = 0.0, mobility.kappa, mobility.linear, contacts.row
    factor = 1.0 / (1.0 + kappa)
    for n in range(some.size):
        k = some[n]
        a, b, c = contacts.a[k], contacts.b[k], row_of(row, k)
        p = c[PX], c[PY], c[PZ]
        if beta > 0.0:
            p = start(c, (last[k, 0], last[k, 1], last[k, 2]), beta)
        if beta >= 0.0:
            last[k, 0], last[k, 1], last[k, 2] = c[PX], c[PY], c[PZ]
        o = row_of(rows, b)
        x, y, z = with_image(rows, contacts, k, o[0], o[1], o[2])
        met = x, y, z, o[3], o[4], o[5], o[6] + contacts.more[k], o[7]
        one, _, own, size = solved(row_of(rows, a), met, c, p, kappa, factor)
        set_velocity(rows, a, one)
        set_impulse(row, k, own)
        change += size
        dx, dy, dz = own[PX] - p[0], own[PY] - p[1], own[PZ] - p[2]
        set_velocity(rows, b, pushed(o, o, c[NX], c[NY], c[NZ], dx, dy, dz, kappa)[1])
        push_cell(rows, linear, contacts, k, dx, dy, dz)
    return change


@kernel
def cell_work(rows, driven, contacts):
    """The work of the imposed components ``driven`` (3, 3) of a moving cell on all contacts."""
    total, row = 0.0, contacts.row
    for k in range(contacts.pair.size):
        total += cell_power(rows, driven, contacts, k, row[k, PX], row[k, PY], row[k, PZ])
    return total


KERNELS[BorderContacts] = Kernels(sweep_border, measure_contacts, separations, add_powers)


class Border(Diagonal):
    """The contacts of balls across the border of a cell that moves: see `Equations`."""

    number, arrays, kernels = BORDER, staticmethod(border_contacts), KERNELS[BorderContacts]

    def fill(self, model, near, pairs, step, rows, mobility, team) -> float:
        """The contacts of the step, with the first guess added to ``rows``; returns the sum of (rho b)^2."""
        fill_images(near.space, pairs, near.places, mobility, self._plan.few, self.active)
        return super().fill(model, near, pairs, step, rows, mobility, team)

    def cell_work(self, rows, driven) -> float:
        """Of the components ``driven`` (3, 3) of a moving cell, the last of ``rows``, on the present impulses, J."""
        return cell_work(rows, driven, self.active)
