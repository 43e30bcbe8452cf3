"""Diagonal equations: homogeneous balls and planes that do not turn, with Coulomb's isotropic law.

Contacts across the border of a cell that moves are a kind of their own (`border`), with these kernels but for the
sweep.

The block of W is diagonal, W_n = 1/m_a + 1/m_b and W_t = (1 + k) W_n with k = m r^2 / I; no tangent vectors are needed,
and the impulse is kept as a vector in space. Speed decides here: contacts stand in memory in the order of a sweep, one
line of cache each.
"""

import numpy as np

from ..._jit import Settled, kernel
from ..search.contract import DIAGONAL
from ..search.pairs import kept
from .contract import ALL, KERNELS, Explicit, Kernels, Mobility, local_frame
from .diagonal_books import keep_contacts, store_groups
from .diagonal_fill import fill_contacts
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
    diagonal_contacts,
    slip,
    with_image,
)
from .diagonal_sweep import sweep_contacts
from .held import Held


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
def add_known(contacts, order, begin, end, group, sums):
    """Add the powers that `measure_contacts` has left to the ``sums`` (G, 2) of their groups: see `Kernels`.

    Contacts stand in the ``order`` of the sweeps.
    """
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


NO_MOBILITY = Mobility(np.zeros((0, 3, 3)), 0.0, 0)  # where nothing is stored, it is not read
KERNELS[DiagonalContacts] = Kernels(sweep_contacts, measure_contacts, separations, add_powers, add_known)


class Diagonal(Held):
    """The diagonal contacts of a scene: see `Equations`."""

    number, ahead, able, in_order = DIAGONAL, True, True, True
    arrays, more, kernels = staticmethod(diagonal_contacts), (1.03, 16), KERNELS[DiagonalContacts]
    unknowns = 4  # three and a spare one: rows of four are read at once
    filling, memory = staticmethod(fill_contacts), staticmethod(kept)
    _alone = False  # whether all pairs of the search are of this kind

    def clear(self) -> None:
        """No active contacts."""
        super().clear()
        self._store, self._keep = Settled(store_groups), Settled(keep_contacts)
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
        """`store` and `book` at once; where the ``tolerance`` is below zero, `book` alone."""
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
        return self.keep(pairs, step, rows, NO_MOBILITY, -1.0, bodies, works, team)[2]

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
