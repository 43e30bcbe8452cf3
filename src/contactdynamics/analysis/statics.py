"""Equilibrium in the plane as a linear programme: whether, and how hard, a structure can be pressed.

Unknowns are the forces N and T of each contact and, with rolling resistance, its moment M, over the mean weight. Their
bounds are those of the laws (see `laws.Law`): |T| <= mu (N + cohesion), N >= -cohesion; with tension N >= -tension, and
T = 0 where N < 0; |M| <= rolling max(N, 0). The first set is convex; the others are unions of two convex sets, one
for contacts that push and one for those that pull: the programme is solved first with sets that hold both, and then,
where its solution is in neither, again with each of the two (branch and bound).
"""

from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError, explained
from ..state import FREE, Contacts
from .forces import Bounds, bounds_of, contact_rows
from .limits import balanced, sizes

EITHER, PUSH, PULL = 0, 1, 2
MOST = 2000  # programmes solved at most
SMALL = 1e-9  # of the mean weight: by so much a solution may leave the sets


class Balance(NamedTuple):
    """The answer of `balance`; true or false by itself."""

    found: bool
    unbalanced: float  # least possible largest force (or moment over size) left on a body, over its weight
    contacts: Contacts  # with impulses that leave no more than this

    __repr__ = short

    def __bool__(self):
        return self.found


@explained
def balance(frame, friction=None, *, limit: float = 1e-7) -> Balance:
    """Whether forces that the laws of the contacts of a frame allow can balance the weights.

    A linear programme (solved by HiGHS), in three dimensions a cone programme (see `limits`): the least s >= 0 for
    which such forces leave each free body with at most s times its weight, in each direction and as moment over its
    size. Found where s <= limit. Friction, cohesion, tension and rolling resistance are those of the frame's laws,
    friction that of contacts at rest (``static_friction``); ``friction``, one number or one per contact, replaces
    theirs. Weights are the only loads: applied forces and springs are not in a frame.
    This is the exact counterpart of `Simulation.is_equilibrium`, whose contacts it takes (and which, with cohesion or
    tension near its limit, may find the other solution of the law, that contacts open)::

        frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    """
    if frame.dimension == 3:
        left, contacts = balanced(frame, friction, limit)
        return Balance(bool(left <= limit), left, contacts)
    bounds = _checked(frame, friction, "balance")
    lines, load, mean = _equations(frame)
    rows = np.block([[lines, -np.ones((len(load), 1))], [-lines, -np.ones((len(load), 1))]])
    cost = np.append(np.zeros(lines.shape[1]), 1.0)
    best = _solve(cost, bounds, mean, rows, np.concatenate([-load, load]), None, None, enough=limit)
    if best is None or not np.isfinite(best[0]):
        raise InputError("balance could not solve its linear programme; check that masses and positions are finite.")
    normal, tangential, moment = best[1][:-1].reshape(3, -1) * mean * frame.time_step
    contacts = frame.contacts._replace(impulse=np.stack([normal, tangential], axis=1), moment=moment[:, None])
    return Balance(bool(best[0] <= limit), max(0.0, float(best[0])), contacts)


@explained
def largest_push(frame, friction=None, body: int | None = None) -> float:
    """The largest force with which a fixed or driven ``body`` may press while forces of the laws balance the weights.

    The sum of its normal contact forces, maximised by the linear programme of `balance`; infinite where the structure
    is jammed, nan where it does not even bear its weight. No equilibrium, hence no slow motion, bears more; with
    sliding joints a structure may give way before. ``friction`` as for `balance`.
    """
    bounds = _checked(frame, friction, "largest_push")
    pressed = (frame.contacts.bodies == body).any(axis=1) if body is not None else np.zeros(len(bounds.rolling), bool)
    if not pressed.any():
        raise InputError(
            f"largest_push found no contact of body {body}; give body=..., one that touches the structure."
        )
    lines, load, mean = _equations(frame)
    cost = np.concatenate([-pressed.astype(float), np.zeros(2 * len(pressed))])
    best = _solve(cost, bounds, mean, None, None, lines, -load)
    return float("nan") if best is None else float(-best[0] * mean)


def _checked(frame, friction, name: str) -> Bounds:
    """The bounds of the contacts, where the frame is one that the programme can treat."""
    if frame.dimension != 2:
        raise InputError(f"{name} works in two dimensions, where friction cones have two edges; give a plane frame.")
    free = frame.kinds == FREE
    if not free.any():
        raise InputError(f"{name} found no free body; give a frame with something to balance.")
    if not (frame.masses[free] * np.linalg.norm(frame.gravity) > 0).all():
        raise InputError(f"{name} needs weights; give a frame of a scene with gravity.")
    return bounds_of(frame, friction, name)


def _solve(cost, bounds: Bounds, mean, rows, right, equal, equal_right, enough=-np.inf):
    """Least cost and its unknowns, over all choices of contacts that push or pull; None where nothing satisfies them.

    The cost is minus infinity where it has no bound. A solution of at most ``enough`` ends the search.
    """
    from scipy.optimize import linprog

    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found, waiting = None, [np.zeros(len(bounds.rolling), dtype=int)]
    for _ in range(MOST):
        if not waiting:
            return found
        side = waiting.pop()
        cone, cone_right, limits = _sets(bounds, side, mean, len(cost))
        a = cone if rows is None else np.vstack([rows, cone])
        b = cone_right if rows is None else np.concatenate([right, cone_right])
        best = linprog(cost, A_ub=a, b_ub=b, A_eq=equal, b_eq=equal_right, bounds=limits, options=options)
        if best.status == 3:
            return -np.inf, np.zeros(len(cost))
        if best.x is None or (found is not None and best.fun >= found[0]):
            continue
        outside = _outside(bounds, side, mean, best.x)
        if not outside.max(initial=0.0) > SMALL:
            found = best.fun, best.x
            if best.fun <= enough:
                return found
            continue
        for choice in (PULL, PUSH):  # the last one is tried first
            waiting.append(side.copy())
            waiting[-1][np.argmax(outside)] = choice
    raise InputError(
        f"The linear programme was not decided after {MOST} choices of contacts that push or pull; ask for a smaller "
        "structure, or give it cohesion in the place of tension."
    )


def _sets(bounds: Bounds, side, mean, unknowns):
    """Inequalities and bounds of N, T and M (and of what follows them) for contacts on one or either side."""
    count = len(side)
    glue, pull, mu, reach = bounds.cohesion / mean, bounds.tension / mean, bounds.static[:, 0], bounds.rolling
    strength = np.maximum(glue, pull)
    shift = np.where(side == EITHER, strength, np.where(pull > 0, 0.0, glue))  # where the cone of friction begins
    turning = np.where(side == EITHER, strength, 0.0)
    n, t, m = np.zeros((3, count, unknowns))
    k = np.arange(count)
    n[k, k], t[k, count + k], m[k, 2 * count + k] = 1.0, 1.0, 1.0
    slip, roll = mu[:, None] * n, reach[:, None] * n
    still = (mu == 0) | ((side == PULL) & (pull > 0))
    stiff = (reach == 0) | (side == PULL)
    rows = np.concatenate([(t - slip)[~still], (-t - slip)[~still], (m - roll)[~stiff], (-m - roll)[~stiff]])
    right = np.concatenate([*[(mu * shift)[~still]] * 2, *[(reach * turning)[~stiff]] * 2])
    limits = np.full((unknowns, 2), [0.0, np.inf])
    limits[:count, 0], limits[:count, 1] = np.where(side == PUSH, 0.0, -strength), np.where(side == PULL, 0.0, np.inf)
    limits[count : 2 * count] = np.where(still[:, None], 0.0, [-np.inf, np.inf])
    limits[2 * count : 3 * count] = np.where(stiff[:, None], 0.0, [-np.inf, np.inf])
    return rows, right, limits


def _outside(bounds: Bounds, side, mean, x) -> np.ndarray:
    """(C,) how far the forces of contacts that are not yet on a side leave both of their sets."""
    normal, tangential, moment = x[: 3 * len(side)].reshape(3, -1)
    base = np.where(bounds.tension > 0, np.maximum(normal, 0.0), normal + bounds.cohesion / mean)
    slip = np.abs(tangential) - bounds.static[:, 0] * base
    roll = np.where(bounds.rolling > 0, np.abs(moment) - bounds.rolling * np.maximum(normal, 0.0), 0.0)
    double = (bounds.tension > 0) | ((bounds.rolling > 0) & (bounds.cohesion > 0))
    return np.where((side == EITHER) & double, np.maximum(slip, roll), 0.0)


def _equations(frame):
    """Balance of the free bodies, each in units of its weight: matrix of N, T, M (3F, 3C), loads (3F,), mean weight.

    Rows are x, y and moment about the centre over the body's size; the unknowns are in units of the mean weight.
    """
    contacts, rows, free = frame.contacts, contact_rows(frame), np.flatnonzero(frame.kinds == FREE)
    weights = frame.masses * np.linalg.norm(frame.gravity)
    size = sizes(frame)
    number = np.full(len(frame.masses), -1)
    number[free] = np.arange(len(free))
    mean, count = float(weights[free].mean()), len(contacts.gap)
    lines = np.zeros((3 * len(free), 3 * count))
    for side, sign in ((0, -1.0), (1, 1.0)):
        for k in np.flatnonzero(number[rows[:, side]] >= 0):
            body = rows[k, side]
            at, arm = 3 * number[body], contacts.point[k] - frame.positions[body]
            for column, edge in ((k, contacts.frame[k, 0]), (count + k, contacts.frame[k, 1])):
                moment = (arm[0] * edge[1] - arm[1] * edge[0]) / size[body]
                lines[at : at + 3, column] = sign * mean / weights[body] * np.array([*edge, moment])
            lines[at + 2, 2 * count + k] = sign * mean / weights[body] / size[body]
    load = np.zeros((len(free), 3))
    load[:, :2] = frame.gravity / np.linalg.norm(frame.gravity)
    return lines, load.ravel(), mean
