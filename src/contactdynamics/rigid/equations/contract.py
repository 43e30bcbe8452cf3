"""What all equations of contacts have in common: their contract, their targets, and the choice of kernels by type.

*Equations* hold the unknowns of active contacts of one kind, and the kernels that work on them. A solver gets a tuple
of `Kind`, one for each kind of equations that the scene has, and calls `sweep` and `measure`; which kernels these are
follows from the type of the contacts when the solver is compiled. Kinds that a scene does not have are not compiled.

The law of every contact reads: P in its cone, U_n >= r, and P = 0 where U_n > r. The target r carries restitution,
anticipation and opening:

- penetration="moreau": active where the gap at the midpoint is <= 0, r = -rho U_n^- (2003, eq. 40);
- penetration="anticipate": also where the gap would close within the step; r = -max(g, 0) / h, so that the gap at the
  next midpoint is not negative; with restitution and U_n^- < 0 the bounce happens now, r = -rho U_n^-;
- opening before the start (h = 1, displacements in the place of velocities): overlaps are opened, r = -g;
- cohesion and tension: a contact that holds stays active when its gap opens by the curvature of the path or a rounding,
  r = -g / h.

A body is a row of 8 numbers, one line of cache: v (3), s = c w (3), 1/m, c, where w is the spin in space and c the
radius of a ball (1 for other bodies). Bodies that do not move freely have 1/m = 0: no loop needs to know them.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numba.extending import overload

from ..._jit import kernel
from ...state import SEPARATING, STICKING
from ..threads import own_part

# The solver may leave an overlap to a contact: in one step half of what is left to DEEP, at least SINKING (both of the
# size of the smaller body). What it has left, without anticipation: `lost_after`.
DEEP, SINKING = 9e-3, 1e-5
GROUPS = 64  # of even and of odd slabs at most, and of workers that share them: see `order`
SHARED = 2 * GROUPS  # the group of contacts that may share bodies with any other, swept by one thread
ALL = SHARED + 1  # groups


class Mobility(NamedTuple):
    """What an impulse does to a body beyond 1/m, which is in its row."""

    inverse: np.ndarray  # (N, 3, 3) inverse inertias in space; (0, 3, 3) where all bodies are homogeneous balls
    kappa: float  # m r^2 / I of a homogeneous ball
    dimension: int
    linear: np.ndarray = np.zeros((0, 3))  # (N, 3) inverse masses by direction where bodies are held or a cell moves
    length: float = 0.0  # of a cell that moves: see `full`, m


class Plan(NamedTuple):
    """In which order the contacts of one kind are swept, and what the solver notes of them (m,)."""

    order: np.ndarray  # (m,) the contacts in the order of a sweep, even slabs, odd ones, shared ones: see `order`
    cuts: np.ndarray  # (ALL + 1,) where the groups begin in it
    few: np.ndarray  # (m,) those that need work, where their group begins; before the solution, scratch of `order`
    few_ends: np.ndarray  # (ALL,) where these of each group end
    shares: np.ndarray  # (m, 2) what each contact loses, J, and its |natural map|^2; inf where it sinks
    last: np.ndarray  # (m, 3) impulse of the last iterate; (m, 6) with the moment where there may be one; or (m, 4)


class Kind(NamedTuple):
    """The contacts of one kind as the solvers have them; ``contacts`` is the named tuple of the kind's own arrays."""

    contacts: NamedTuple
    plan: Plan


class Explicit(NamedTuple):
    """Contacts of any kind written out (m,), for those who are in no hurry: files, drawing, `ContactProblem`."""

    place: np.ndarray  # (m,) row in the list of their search
    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    frame: np.ndarray  # (m, 3, 3) rows n, t1, t2
    arm_a: np.ndarray  # (m, 3) from the centre of a to the contact point, m
    arm_b: np.ndarray  # (m, 3)
    target: np.ndarray  # (m, 3) m/s
    friction: np.ndarray  # (m, 2) the two coefficients of the cone
    plain: np.ndarray  # (m,) Coulomb's law alone: no moment, cohesion or tension
    impulse: np.ndarray  # (m, 3) in the frame, N s
    moment: np.ndarray  # (m, 3) in the frame, N m s
    status: np.ndarray  # (m,)
    glue: np.ndarray  # (m,) cohesion h: the cone starts at P_n = -glue, and P = 0 where the contact opens; N s


class Equations(Protocol):
    """What a `ContactSet` asks of the equations of one kind.

    ``found`` is the list of the search whose contacts they are, ``step`` a `Step`, ``rows`` (N, 8) the velocities,
    ``team`` (`threads.Team`) who may share the work.
    """

    number: int  # which kind of equations, as the searches name it
    count: int  # active contacts
    ahead: bool  # whether they may be extrapolated: its error has either sign, and opens contacts
    able: bool  # whether `together` knows all laws: Coulomb's and cohesion
    in_order: bool  # whether they stand in the order of the sweeps, and not in that of their search
    places: np.ndarray  # (count,) where they stand in ``found``, in their own order
    columns: tuple  # the arrays with a row for each of them
    kind: Kind  # the arrays of the active contacts, for the solvers

    def make_room(self, count: int) -> Plan:
        """Arrays for ``count`` contacts; the plan is filled before `fill` is called."""

    def drop_room(self) -> None:
        """Give back all arrays: there will be fewer contacts from now on."""

    def rank(self, k: int) -> int:
        """The place of contact ``k`` in the order of the search."""

    def have(self, numbers) -> None:
        """They are those with these ``numbers`` in another list of their search, and `regain` comes with it: where
        processes put together what each had.
        """

    def regain(self, found) -> None:
        """Their search has another list, that ``found``."""

    def fill(self, model, near, found, step, rows, mobility, team) -> float:
        """Write the contacts from those ``found``, and add their first guess to ``rows``, which start free.

        Returns the sum of (rho b)^2, the square of the impulses that the free velocities ask for.
        """

    def cell_work(self, rows, driven) -> float:
        """Of the components ``driven`` (3, 3) of a moving cell, the last of ``rows``, on the present impulses, J."""

    def shrink(self, some, group, factor) -> None:
        """Multiply the impulses of the contacts ``some`` by the ``factor`` (G,) of their group."""

    def store(self, found, rows, mobility, tolerance, team) -> tuple[float, float]:
        """Keep impulse and status as memory; returns the largest distance to a cone and the sum of |P|^2."""

    def book(self, found, step, rows, bodies, works, team) -> float:
        """Add the works of the contacts, law by law, to ``works`` (L, 4): normal, tangential, rolling, drive.

        Keep with those ``found`` by how much they are deeper than the law has them; returns the largest, m. The
        residual was measured at the present ``rows``, as solvers do in the end.
        """

    def keep(self, found, step, rows, mobility, tolerance, bodies, works, team) -> tuple[float, float, float]:
        """`store` and `book`: what both return."""

    def separations(self, rows) -> np.ndarray:
        """(count,) U_n, m/s, in the order of `places`."""

    @property
    def targets(self) -> np.ndarray:
        """(count,) normal velocities that the laws ask for, in the order of `explicit`, m/s."""

    def explicit(self, rows, dimension) -> Explicit:
        """The contacts written out, in the order of their places."""

    def accept(self, written: Explicit, impulse: np.ndarray) -> None:
        """Take over impulses (count, 3), in the frames and the order of the contacts ``written`` out."""


class Kernels(NamedTuple):
    """The kernels of one kind of equations.

    ``sweep(rows, mobility, contacts, some, beta, last)`` solves the contacts ``some`` one after the other, each
    starting from P + beta (P - P_last), contact by contact where beta < 0; ``last`` takes P. Returns the kinetic size
    of the change, sum W |dP|^2. ``measure(rows, mobility, contacts, some, shares)`` returns the sums over ``some`` of
    |natural map|^2, |P|^2, the contact that loses most and what it loses, |b(U, P)|, P.P / rho, what is lost, and the
    number of contacts that sink. A contact loses |b(U, P)| + |natural map|^2 / rho, an energy: what the law would not
    do with this P and U, and where P = 0 the motion that it would stop; ``shares`` (m, 2) gets it, and |natural map|^2.
    ``add_powers(free, rows, contacts, some, group, sums)`` adds P . (U - r), P . (U - U_free) and |P| |U - r| of the
    contacts ``some`` to the ``sums`` (G, 3) of their groups; ``group`` (N,) has the group of each body, one that does
    not move freely has none, -1.
    ``add_known(contacts, order, begin, end, group, sums)``, where there is one, says that `measure` leaves P . (U - r)
    with the contacts; it adds that of those in the ``order`` of the sweeps from ``begin`` on, before ``end``, to the
    ``sums`` (G, 2) of their groups, with sign and without.
    ``separations(rows, contacts)`` is a verb of `Equations`.
    """

    sweep: object
    measure: object
    separations: object
    add_powers: object
    add_known: object = None


KERNELS: dict[type, Kernels] = {}


def sweep(rows, mobility, contacts, some, beta, last):
    """The sweep of the kind to which ``contacts`` belong: see `Kernels`."""
    return KERNELS[type(contacts)].sweep(rows, mobility, contacts, some, beta, last)


def measure(rows, mobility, contacts, some, shares):
    """The residual's sums of the kind to which ``contacts`` belong: see `Kernels`."""
    return KERNELS[type(contacts)].measure(rows, mobility, contacts, some, shares)


def add_powers(free, rows, contacts, some, group, sums):
    """The powers of the kind to which ``contacts`` belong: see `Kernels`."""
    return KERNELS[type(contacts)].add_powers(free, rows, contacts, some, group, sums)


def add_known(contacts, order, begin, end, group, sums):
    """Powers that `measure` has left with these ``contacts``: see `Kernels`; whether it does."""
    chosen = KERNELS[type(contacts)].add_known
    return contacts.a.size == 0 if chosen is None else chosen(contacts, order, begin, end, group, sums)


@overload(sweep)
def _compiled_sweep(rows, mobility, contacts, some, beta, last):
    chosen = KERNELS[contacts.instance_class].sweep
    return lambda rows, mobility, contacts, some, beta, last: chosen(rows, mobility, contacts, some, beta, last)


@overload(measure)
def _compiled_measure(rows, mobility, contacts, some, shares):
    chosen = KERNELS[contacts.instance_class].measure
    return lambda rows, mobility, contacts, some, shares: chosen(rows, mobility, contacts, some, shares)


@overload(add_powers)
def _compiled_powers(free, rows, contacts, some, group, sums):
    chosen = KERNELS[contacts.instance_class].add_powers
    return lambda free, rows, contacts, some, group, sums: chosen(free, rows, contacts, some, group, sums)


@overload(add_known)
def _compiled_known(contacts, order, begin, end, group, sums):
    chosen = KERNELS[contacts.instance_class].add_known
    if chosen is None:
        return lambda contacts, order, begin, end, group, sums: contacts.a.size == 0
    return lambda contacts, order, begin, end, group, sums: chosen(contacts, order, begin, end, group, sums)


START = 0.0, 0.0, -1, -1.0, 0.0, 0.0, 0.0, 0  # of the sums of `measure`, before the first contact


@kernel(inline=True)
def tallied(sums, k, natural, product, square, stiff, sinks):
    """The ``sums`` of `measure` with one contact more: |natural map|^2, |b(U, P)|, |P|^2, 1 / rho, and
    whether it sinks.
    """
    error, size, worst, largest, bipotential, work, lost, sinking = sums
    share = product + natural * stiff
    if share > largest:
        worst, largest = k, share
    return (
        error + natural, size + square, worst, largest, bipotential + product, work + square * stiff, lost + share,
        sinking + sinks,
    )  # fmt: skip


@kernel(inline=True)
def target_velocity(gap, before, rho, h, anticipate, opening):
    """The target r of the normal velocity."""
    if opening:
        return -gap / h
    if rho == 0.0:  # no branch on the gap, whose sign nobody could foresee
        return -max(gap, 0.0) / h
    if (gap <= 0.0 and not anticipate) or before < 0.0:  # held by glue, a gap may be open
        return -rho * before
    return -max(gap, 0.0) / h


@kernel(inline=True)
def holds_static(status, slip, before, gap, h):
    """Whether the static coefficient applies: the contact stuck, or is new and at rest.

    ``slip`` is |U_t|^2 and ``before`` U_n at the start of the step.
    """
    resting = slip <= 1e-24 * (before * before + gap * gap / (h * h))
    return status == STICKING or (status <= SEPARATING and resting)


@kernel(inline=True)
def sinking_speed(gap, size, h):
    """Speed below the target that the solver may leave to a contact, m/s.

    ``gap`` where it is anticipated, and else what was lost, with the other sign.
    """
    return max(0.5 * (DEEP * size + min(gap, 0.0)), SINKING * size) / h


@kernel
def own_groups(meeting, parity):
    """The groups of a worker of this parity: the first, and that after the last. The last worker has the shared one."""
    first, after = own_part(meeting, GROUPS)
    begin, end = parity * GROUPS + first, parity * GROUPS + after
    return begin, end + (end == SHARED)


@kernel
def put_together(parts, works, first):
    """The largest loss of all parts, m; the ``first`` thread adds their works to ``works`` (L, 4).

    ``parts`` (n, L + 1, 4): the works of each part in the order of these, and last what it lost.
    """
    most = 0.0
    for k in range(parts.shape[0]):
        most = max(most, parts[k, works.shape[0], 0])
        if first:
            for rule in range(works.shape[0]):
                for c in range(4):
                    works[rule, c] += parts[k, rule, c]
    return most


@kernel(inline=True)
def lost_after(lost, u_n, target, h):
    """How much deeper a contact is after the step than the law has it, m: it was ``lost`` deeper before.

    From one midpoint to the next the gap grows by h U_n, and between balls by the curvature of their way. A bounce that
    is too weak (target > 0) loses nothing, as long as it opens the contact.
    """
    return max(0.0, lost - h * (u_n - min(target, 0.0)))


@kernel
def local_frame(n, axis, flat, out):
    """Rows n, t1, t2: t1 along ``axis`` where one is given, z x n in two dimensions, any tangent otherwise."""
    for c in range(3):
        out[0, c] = n[c]
    if flat:
        out[1, 0], out[1, 1], out[1, 2] = -n[1], n[0], 0.0
    else:
        tx, ty, tz = axis[0], axis[1], axis[2]
        along = tx * n[0] + ty * n[1] + tz * n[2]
        tx, ty, tz = tx - along * n[0], ty - along * n[1], tz - along * n[2]
        size = np.sqrt(tx * tx + ty * ty + tz * tz)
        if size > 1e-9:
            out[1, 0], out[1, 1], out[1, 2] = tx / size, ty / size, tz / size
        else:  # Duff et al. (2017)
            sign = 1.0 if n[2] >= 0.0 else -1.0
            f = -1.0 / (sign + n[2])
            out[1, 0], out[1, 1], out[1, 2] = 1.0 + sign * n[0] * n[0] * f, sign * n[0] * n[1] * f, -sign * n[0]
    out[2, 0] = n[1] * out[1, 2] - n[2] * out[1, 1]
    out[2, 1] = n[2] * out[1, 0] - n[0] * out[1, 2]
    out[2, 2] = n[0] * out[1, 1] - n[1] * out[1, 0]
