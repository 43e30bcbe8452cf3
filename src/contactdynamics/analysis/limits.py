"""Limit analysis of structures of blocks: which loads forces within the laws can balance, and how they give way.

Unknowns are the forces (N, T1, T2) of the contacts and, with rolling or spinning resistance, their moments, over the
mean weight. Balance of the free bodies is linear in them; friction is a cone, |(T1 / mu1, T2 / mu2)| <= N + cohesion.
The largest load factor is the value of a cone programme; the multipliers of its equations are the velocities of the
mechanism by which the structure gives way, and prove that no forces balance more. Contacts are associated here, as in
every limit analysis: a joint that slides opens by mu times its slip. What it gives is exact where joints only open, and
an upper bound where they slide.

The programme is solved by Clarabel where it is installed (the extra ``cones``), else by linear programmes (HiGHS) with
polygons in the place of the cones, of up to 64 sides: a factor that is at most 0.12 % too small, in more time.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError, as_numbers, explained
from ..state import FREE, Contacts
from .forces import Bounds, bounds_of, contact_rows

CLOSE = 1e-6  # of the value: by so much polygons around and inside the cones may differ
SIDES = (8, 16, 32, 64)  # of these polygons, where there is no solver for cones


class LoadFactor(NamedTuple):
    """The answer of `load_factor`."""

    factor: float  # of the live load; infinite where the structure bears any, nan where not even its weight
    contacts: Contacts  # with the impulses that balance the loads at this factor
    mechanism: np.ndarray  # (N, 2d or 3) velocity and spin of each body as it gives way, the live load works 1

    __repr__ = short

    @property
    def degrees(self) -> float:
        """The angle of the tilt at which the live load is this part of the weight."""
        return math.degrees(math.atan(self.factor))


@explained
def load_factor(frame, direction, friction=None, *, bodies=None) -> LoadFactor:
    """The largest factor by which a live load can grow until no forces of the laws balance it and the weights.

    The live load on each body is its weight along ``direction`` (d,), a unit vector; on those of the numbers ``bodies``
    alone where given. ``friction``, one number or one per contact, replaces that of the frame's laws (at rest). The
    frame's contacts are those that may push: ``frame._replace(contacts=sim.is_equilibrium().contacts)``.
    """
    bounds, (lines, load, mean, size) = _checked(frame, friction, "load_factor"), _equations(frame)
    d = frame.dimension
    way = as_numbers("direction", direction)
    if way.shape != (d,) or not np.isfinite(way).all() or not way @ way > 0:
        raise InputError(f"load_factor got direction={direction!r}; give {d} numbers, not all zero.")
    free = np.flatnonzero(frame.kinds == FREE)
    pushed = np.ones(len(free), dtype=bool) if bodies is None else np.isin(frame.identities[free], bodies)
    if not pushed.any():
        raise InputError(f"load_factor got bodies={bodies!r}, none of them free; give numbers of free bodies.")
    live = np.zeros((len(free), lines.shape[0] // len(free)))
    live[pushed, :d] = way / math.sqrt(way @ way)
    cost = np.append(np.zeros(lines.shape[1]), -1.0)
    value, x, power = _solve(bounds, mean, cost, _beside(lines, live.ravel()), -load, d)
    if x is None:
        return LoadFactor(-value, frame.contacts, np.zeros((len(frame.masses), 3 if d == 2 else 6)))
    return LoadFactor(-value, _with_forces(frame, x[:-1], mean), _mechanism(frame, power, free, size))


def balanced(frame, friction, limit: float):
    """Least possible largest force (or moment over size) left on a body over its weight, and the contacts."""
    from scipy.sparse import coo_array

    bounds, (lines, load, mean, _) = _checked(frame, friction, "balance"), _equations(frame)
    rows = len(load)
    # least s with forces f and leftovers -s <= lines f + load <= s
    left = coo_array((np.ones(rows), (np.arange(rows), np.arange(rows))), shape=(rows, rows))
    cost = np.concatenate([np.zeros(lines.shape[1] + rows), [1.0]])
    value, x, _ = _solve(bounds, mean, cost, _beside(lines, -left, np.zeros(rows)), -load, frame.dimension, slack=rows)
    if x is None:
        raise InputError("balance could not solve its programme; check that masses and positions are finite.")
    return max(0.0, float(value)), _with_forces(frame, x[: lines.shape[1]], mean)


def _checked(frame, friction, name: str) -> Bounds:
    free = frame.kinds == FREE
    if not free.any():
        raise InputError(f"{name} found no free body; give a frame with something to balance.")
    if not (frame.masses[free] * np.linalg.norm(frame.gravity) > 0).all():
        raise InputError(f"{name} needs weights; give a frame of a scene with gravity.")
    bounds = bounds_of(frame, friction, name)
    if bounds.tension.any() or ((bounds.rolling > 0) & (bounds.cohesion > 0)).any():
        raise InputError(
            f"{name} knows friction, cohesion and rolling, but no tension, nor rolling with cohesion, whose forces are "
            "no convex set; give the contacts cohesion in their place."
        )
    return bounds


def _equations(frame):
    """Balance of the free bodies, each in units of its weight: sparse matrix, loads, mean weight, sizes (N,).

    Rows are the forces and the moments about the centre over the body's size; columns N, T1, T2 and the moments about
    them, contact by contact (2D: N, T and M).
    """
    from scipy.sparse import coo_array

    d, contacts, rows = frame.dimension, frame.contacts, contact_rows(frame)
    free, count, turns = np.flatnonzero(frame.kinds == FREE), len(contacts.gap), 1 if d == 2 else 3
    weights, size, number = frame.masses * np.linalg.norm(frame.gravity), sizes(frame), np.full(len(frame.masses), -1)
    number[free] = np.arange(len(free))
    mean, each = float(weights[free].mean()), d + turns
    values, row, column = [], [], []
    for side, sign in ((0, -1.0), (1, 1.0)):
        k = np.flatnonzero(number[rows[:, side]] >= 0)
        body = rows[k, side]
        scale = sign * mean / weights[body]
        arm = contacts.point[k] - frame.positions[body]
        for c in range(d):  # a unit force along n, t1, t2
            edge = contacts.frame[k, c]
            moment = (arm[:, 0] * edge[:, 1] - arm[:, 1] * edge[:, 0])[:, None] if d == 2 else np.cross(arm, edge)
            block = np.concatenate([edge, moment / size[body, None]], axis=1) * scale[:, None]
            values.append(block.ravel())
            row.append((each * number[body][:, None] + np.arange(each)).ravel())
            column.append(np.repeat((d + turns) * k + c, each))
        for c in range(turns):  # a unit moment about them
            edge = np.ones((len(k), 1)) if d == 2 else contacts.frame[k, c]
            values.append((edge / size[body, None] * scale[:, None]).ravel())
            row.append((each * number[body][:, None] + d + np.arange(turns)).ravel())
            column.append(np.repeat((d + turns) * k + d + c, turns))
    shape = (each * len(free), (d + turns) * count)
    lines = coo_array((np.concatenate(values), (np.concatenate(row), np.concatenate(column))), shape=shape)
    load = np.zeros((len(free), each))
    load[:, :d] = frame.gravity / np.linalg.norm(frame.gravity)
    return lines.tocsc(), load.ravel(), mean, size


def sizes(frame) -> np.ndarray:
    """Largest distance (N,) of a corner, or of the rim of a disk, from the centre of its body."""
    size = np.zeros(len(frame.masses))
    corners, starts, bodies = frame.parts
    body = np.repeat(bodies, np.diff(starts))
    np.maximum.at(size, body, np.linalg.norm(corners - frame.positions[body], axis=1))
    reach = np.linalg.norm(frame.ball_centres - frame.positions[frame.ball_bodies], axis=1) + frame.ball_radii
    np.maximum.at(size, frame.ball_bodies, reach)
    return np.where(size > 0, size, 1.0)


def _beside(lines, *columns):
    """A sparse matrix with further columns."""
    from scipy.sparse import csc_array, hstack

    return hstack([lines, *(csc_array(c[:, None]) if getattr(c, "ndim", 2) == 1 else c for c in columns)], format="csc")


def _with_forces(frame, x, mean) -> Contacts:
    d = frame.dimension
    forces = x.reshape(len(frame.contacts.gap), 3 if d == 2 else 6) * mean * frame.time_step
    return frame.contacts._replace(impulse=forces[:, :d].copy(), moment=forces[:, d:].copy())


def _mechanism(frame, power, free, size) -> np.ndarray:
    """(N, 3 or 6) velocities and spins from the multipliers of the equations; the live load works one in all."""
    d = frame.dimension
    out = np.zeros((len(frame.masses), 3 if d == 2 else 6))
    weights = frame.masses * np.linalg.norm(frame.gravity)
    each = power.reshape(len(free), -1) / weights[free, None]  # the equations are over the weights, the powers not
    out[free, :d], out[free, d:] = each[:, :d], each[:, d:] / size[free, None]
    return out * float(weights[free].mean())


# ---- the programme ---------------------------------------------------------------------------------------------------


def _solve(bounds: Bounds, mean, cost, lines, right, d: int, slack: int = 0):
    """Least cost, its unknowns and the multipliers of ``lines`` x = ``right``; unknowns None where there are none.

    The forces and moments of the contacts come first. ``slack``: so many unknowns before the last one are at most as
    large as that one. The cost is minus infinity where it has no bound, nan where nothing satisfies the lines.
    """
    try:
        import clarabel
    except ImportError:
        return _by_planes(bounds, mean, cost, lines, right, d, slack)
    return _by_cones(clarabel, bounds, mean, cost, lines, right, d, slack)


def _still(bounds: Bounds, d: int) -> np.ndarray:
    """The unknowns (C, each) that are zero: tangential forces without friction, moments without resistance."""
    count, turns = len(bounds.rolling), 1 if d == 2 else 3
    still = np.zeros((count, d + turns), dtype=bool)
    still[:, 1:d] = bounds.static[:, : d - 1] == 0
    if d == 2:
        still[:, 2] = bounds.rolling == 0
    else:
        still[:, 3] = bounds.spinning == 0
        still[:, 4:] = (bounds.rolling == 0)[:, None]
    return still


def _cones(bounds: Bounds, mean, d: int) -> list:
    """The cones as (contact, its unknowns, what they are divided by, a constant): |(x / c)| <= N + constant."""
    found = []
    for k in range(len(bounds.rolling)):
        c = bounds.static[k, : d - 1]
        on = np.flatnonzero(c > 0)
        found.append((k, 1 + on, c[on], bounds.cohesion[k] / mean))
        if d == 2 and bounds.rolling[k] > 0:
            found.append((k, np.array([2]), bounds.rolling[k : k + 1], 0.0))
        if d == 3 and bounds.spinning[k] > 0:
            found.append((k, np.array([3]), bounds.spinning[k : k + 1], 0.0))
        if d == 3 and bounds.rolling[k] > 0:
            found.append((k, np.array([4, 5]), np.full(2, bounds.rolling[k]), 0.0))
    return found


def _by_cones(clarabel, bounds, mean, cost, lines, right, d, slack):
    """By Clarabel, an interior-point method for cones."""
    from scipy.sparse import coo_array, csc_array, vstack

    each, unknowns = d + (1 if d == 2 else 3), len(cost)
    still = np.flatnonzero(_still(bounds, d).ravel())
    zero = coo_array((np.ones(len(still)), (np.arange(len(still)), still)), shape=(len(still), unknowns))
    cones, blocks = [clarabel.ZeroConeT(lines.shape[0] + len(still))], [lines, zero]
    b = [right, np.zeros(len(still))]
    if slack:
        first, k = unknowns - 1 - slack, np.arange(slack)
        for sign in (1.0, -1.0):
            value = np.concatenate([np.full(slack, sign), np.full(slack, -1.0)])
            place = (np.concatenate([k, k]), np.concatenate([first + k, np.full(slack, unknowns - 1)]))
            blocks.append(coo_array((value, place), shape=(slack, unknowns)))
            b.append(np.zeros(slack))
        cones.append(clarabel.NonnegativeConeT(2 * slack))
    value, row, column, at, high = [], [], [], 0, []
    for k, on, c, more in _cones(bounds, mean, d):
        value += [-1.0, *(-1.0 / c)]
        row += range(at, at + 1 + len(on))
        column += [each * k, *(each * k + on)]
        high += [more, *np.zeros(len(on))]
        cones.append(clarabel.SecondOrderConeT(1 + len(on)) if len(on) else clarabel.NonnegativeConeT(1))
        at += 1 + len(on)
    blocks.append(coo_array((value, (row, column)), shape=(at, unknowns)))
    b.append(np.array(high))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    matrix = vstack(blocks, format="csc")
    solver = clarabel.DefaultSolver(csc_array((unknowns, unknowns)), cost, matrix, np.concatenate(b), cones, settings)
    found = solver.solve()
    status = str(found.status)
    if "PrimalInfeasible" in status:
        return math.nan, None, None
    if "DualInfeasible" in status:
        return -math.inf, None, None
    if not ("Solved" in status or "Insufficient" in status):
        raise InputError(
            f"The cone programme was not solved ({status}); check that the frame's blocks have sound shapes."
        )
    return float(cost @ np.array(found.x)), np.array(found.x), np.array(found.z)[: lines.shape[0]]


def _by_planes(bounds, mean, cost, lines, right, d, slack):
    """By linear programmes with polygons around and inside the cones, of more sides until both give the same.

    What is returned is of the polygons inside: its forces are within the laws.
    """
    for sides in SIDES if d == 3 else (2,):
        outer = _with_sides(bounds, mean, cost, lines, right, d, slack, sides=sides, shrink=1.0)
        inner, shrink = outer, math.cos(math.pi / sides)
        if d == 3:
            inner = _with_sides(bounds, mean, cost, lines, right, d, slack, sides=sides, shrink=shrink)
        if inner[1] is None or outer[1] is None or outer[0] >= inner[0] - CLOSE * max(1.0, abs(inner[0])):
            break
    return inner


def _with_sides(bounds, mean, cost, lines, right, d, slack, *, sides, shrink):
    """One linear programme: a cone has so many ``sides``, at ``shrink`` times its width."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    each, unknowns = d + (1 if d == 2 else 3), len(cost)
    limits = np.full((unknowns, 2), [-np.inf, np.inf])
    limits[each * np.arange(len(bounds.rolling)), 0] = -bounds.cohesion / mean
    limits[np.flatnonzero(_still(bounds, d).ravel())] = 0.0
    limits[-1, 0] = 0.0 if slack else -np.inf
    value, row, column, high = [], [], [], []
    for k, on, c, more in _cones(bounds, mean, d):
        count, scale = (sides, shrink) if len(on) == 2 else (2 * len(on), 1.0)
        for angle in 2 * math.pi * np.arange(count) / max(count, 1):
            direction = np.array([math.cos(angle), math.sin(angle)])[: len(on)]
            value += [-scale, *(direction / c)]
            row += [len(high)] * (1 + len(on))
            column += [each * k, *(each * k + on)]
            high.append(scale * more)
    rows = [coo_array((value, (row, column)), shape=(len(high), unknowns))]
    if slack:
        first, n = unknowns - 1 - slack, np.arange(slack)
        for sign in (1.0, -1.0):
            v = np.concatenate([np.full(slack, sign), np.full(slack, -1.0)])
            place = (np.concatenate([n, n]), np.concatenate([first + n, np.full(slack, unknowns - 1)]))
            rows.append(coo_array((v, place), shape=(slack, unknowns)))
            high += [0.0] * slack
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    best = linprog(cost, A_ub=vstack(rows, format="csr"), b_ub=np.array(high), A_eq=lines, b_eq=right, bounds=limits,
                   method="highs-ipm", options=options)  # fmt: skip
    if best.status == 3:
        return -math.inf, None, None
    if best.x is None:
        return math.nan, None, None
    return float(best.fun), best.x, -best.eqlin.marginals
