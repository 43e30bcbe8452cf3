"""Structures of blocks: the forces at their joints, the line of thrust, and equilibrium as a linear programme (2D)."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_numbers
from ..state import FREE, Contacts
from .forces import contact_forces, contact_rows, new_axes


class Thrust(NamedTuple):
    """The line of thrust through a chain of bodies: where each joint is pressed, and how hard.

    The resultant of a joint's contact forces crosses the joint at the centre of pressure; the line through these
    points, joint by joint, is the line of thrust. It stays inside the joints, since contacts only push. Joints that
    carry nothing have nan.
    """

    points: np.ndarray  # (K, 2) centres of pressure, m
    forces: np.ndarray  # (K, 2) resultant on the later body of each pair, N
    eccentricity: np.ndarray  # (K,) of the point: -1 and 1 at the ends of the joint, 0 in its middle
    inclination: np.ndarray  # (K,) tangential over normal force of the joint; friction is its bound

    def plot(self, ax=None, *, colour="C3", width: float = 1.6, scale: float | None = None):
        """Draw the line; with ``scale`` (force per length of the drawing) also the forces as arrows."""
        ax = new_axes(ax)
        ax.plot(*self.points.T, "-", color=colour, lw=width)
        ax.plot(*self.points.T, "o", color=colour, ms=2 * width)
        if scale is not None:
            ax.quiver(*self.points.T, *self.forces.T, angles="xy", scale_units="xy", scale=scale, color=colour)
        ax.set_aspect("equal")
        return ax


def thrust_line(frame, chain) -> Thrust:
    """The line of thrust of the bodies ``chain`` (K + 1,), in their order, from the contact forces of a frame.

    ``chain`` are body numbers, such as ``packings.arch(...).chain``. The contact points of a joint lie on one line; the
    resultant crosses it at sum(F_n x) / sum(F_n).
    """
    if frame.dimension != 2:
        raise InputError("thrust_line works in two dimensions; give a frame of a scene with gravity of length 2.")
    chain = as_numbers("chain", chain).astype(int)
    if chain.ndim != 1 or len(chain) < 2 or not np.isin(chain, frame.identities).all():
        raise InputError(f"thrust_line got the chain {chain.tolist()}; give the numbers of at least two bodies.")
    contacts, force = frame.contacts, contact_forces(frame)
    out = [np.full((len(chain) - 1, 2), np.nan) for _ in range(2)]
    sizes = np.full((2, len(chain) - 1), np.nan)
    for k, (one, two) in enumerate(pairwise(chain)):
        here = (contacts.bodies == (one, two)).all(axis=1) | (contacts.bodies == (two, one)).all(axis=1)
        normal = contacts.impulse[here, 0]
        if not normal.sum() > 0:
            continue
        sign = np.where(contacts.bodies[here, 1] == two, 1.0, -1.0)
        point = contacts.point[here]
        out[0][k] = normal @ point / normal.sum()
        out[1][k] = sign @ force[here]
        sizes[0, k] = _eccentricity(point, out[0][k])
        sizes[1, k] = abs(contacts.impulse[here, 1].sum()) / normal.sum()
    return Thrust(*out, *sizes)


def _eccentricity(points, pressed) -> float:
    """Place of ``pressed`` between the ends of the contact points: -1 to 1, from the lower (left) end; nan for one."""
    along = np.ptp(points, axis=0)
    if not along.any():
        return float("nan")
    ends = points[np.argsort(points[:, int(np.argmax(along))])][[0, -1]]
    axis = ends[1] - ends[0]
    return float(2 * (pressed - ends[0]) @ axis / (axis @ axis) - 1)


# ---- equilibrium as a linear programme -----------------------------------------------------------------------------


class Balance(NamedTuple):
    """The answer of `balance`; true or false by itself."""

    found: bool
    unbalanced: float  # least possible largest force (or moment over size) left on a body, over its weight
    contacts: Contacts  # with impulses that leave no more than this

    def __bool__(self):
        return self.found


def balance(frame, friction, *, limit: float = 1e-7) -> Balance:
    """Whether forces within the friction cones of the contacts of a plane frame can balance the weights.

    In the plane Coulomb's cone has two edges, n + friction t and n - friction t, so that this is a linear programme
    (solved by HiGHS): the least s >= 0 for which forces in the cones leave each free body with at most s times its
    weight, in each direction and as moment over its size. ``friction`` is one number or one per contact. Found where
    s <= limit. This is the exact counterpart of `Simulation.is_equilibrium`, whose contacts it takes::

        frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    """
    from scipy.optimize import linprog

    if frame.dimension != 2:
        raise InputError("balance works in two dimensions, where friction cones have two edges; give a plane frame.")
    mu = as_numbers("friction", friction)
    count = len(frame.contacts.gap)
    if mu.shape not in ((), (count,)) or not (np.isfinite(mu).all() and (mu >= 0).all()):
        raise InputError(f"balance got friction of shape {mu.shape}; give one number >= 0, or one per contact.")
    lines, load, mean = _equations(frame, np.broadcast_to(mu, (count,)))
    n, m = len(load), lines.shape[1]
    slack = np.ones((n, 1))
    rows = np.block([[lines, -slack], [-lines, -slack]])
    cost = np.append(np.zeros(m), 1.0)
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    best = linprog(cost, A_ub=rows, b_ub=np.concatenate([-load, load]), options=options)
    if best.x is None:
        raise InputError(
            f"balance could not solve its linear programme ({best.message}); check that masses are finite."
        )
    pushes = best.x[:-1].reshape(2, count) * mean * frame.time_step
    impulse = np.stack([pushes.sum(axis=0), mu * (pushes[0] - pushes[1])], axis=1)
    return Balance(bool(best.x[-1] <= limit), float(best.x[-1]), frame.contacts._replace(impulse=impulse))


def largest_push(frame, friction, body: int) -> float:
    """The largest force with which a fixed or driven ``body`` may press while forces in the cones balance the weights.

    The sum of its normal contact forces, maximised by the linear programme of `balance`; infinite where the structure
    is jammed, nan where it does not even bear its weight. No equilibrium, hence no slow motion, bears more; with
    sliding joints a structure may give way before.
    """
    from scipy.optimize import linprog

    mu = np.broadcast_to(as_numbers("friction", friction), (len(frame.contacts.gap),))
    pressed = (frame.contacts.bodies == body).any(axis=1)
    if not pressed.any():
        raise InputError(f"largest_push found no contact of body {body}; give a body that touches the structure.")
    lines, load, mean = _equations(frame, mu)
    best = linprog(-np.tile(pressed, 2).astype(float), A_eq=lines, b_eq=-load)
    if best.status == 3:
        return float("inf")
    return float(-best.fun * mean) if best.status == 0 else float("nan")


def _equations(frame, mu):
    """Balance of the free bodies, each in units of its weight: matrix of the cone edges (3F, 2C), loads (3F,), scale.

    Rows are x, y and moment about the centre over the body's size; the unknowns are in units of the returned weight.
    """
    contacts, rows, free = frame.contacts, contact_rows(frame), np.flatnonzero(frame.kinds == FREE)
    weights = frame.masses * np.linalg.norm(frame.gravity)
    if not (weights[free] > 0).all():
        raise InputError("balance needs weights; give a frame of a scene with gravity.")
    size = _sizes(frame)
    number = np.full(len(frame.masses), -1)
    number[free] = np.arange(len(free))
    mean = float(weights[free].mean())
    count = len(contacts.gap)
    lines = np.zeros((3 * len(free), 2 * count))
    edges = [contacts.frame[:, 0] + sign * mu[:, None] * contacts.frame[:, 1] for sign in (1.0, -1.0)]
    for side, sign in ((0, -1.0), (1, 1.0)):
        for k in np.flatnonzero(number[rows[:, side]] >= 0):
            body = rows[k, side]
            at, arm = 3 * number[body], contacts.point[k] - frame.positions[body]
            for column, edge in ((k, edges[0][k]), (count + k, edges[1][k])):
                moment = (arm[0] * edge[1] - arm[1] * edge[0]) / size[body]
                lines[at : at + 3, column] = sign * mean / weights[body] * np.array([*edge, moment])
    load = np.zeros((len(free), 3))
    load[:, :2] = frame.gravity / np.linalg.norm(frame.gravity)
    return lines, load.ravel(), mean


def _sizes(frame) -> np.ndarray:
    """Largest distance (N,) of a corner, or of the rim of a disk, from the centre of its body."""
    size = np.zeros(len(frame.masses))
    body = np.repeat(frame.polygon_bodies, np.diff(frame.polygon_starts))
    np.maximum.at(size, body, np.linalg.norm(frame.polygon_corners - frame.positions[body], axis=1))
    reach = np.linalg.norm(frame.ball_centres - frame.positions[frame.ball_bodies], axis=1) + frame.ball_radii
    np.maximum.at(size, frame.ball_bodies, reach)
    return np.where(size > 0, size, 1.0)
