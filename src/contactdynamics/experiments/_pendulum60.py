"""The swinging unilateral pendulum of trials 2 and 3: a particle inside a circle of radius 60, force (0, 8).

The allowed region is x^2 + y^2 + 120 y <= 0 (centre (0, -60); the sign printed in the report is a slip). The drawings
have the y axis downwards, so that the force points down the page and the particle swings at the bottom of the circle.
"""

import math
from itertools import pairwise

import numpy as np
from scipy.special import ellipk

from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

RADIUS, FORCE, SPEED = 60.0, 8.0, 25.0
MODULUS = SPEED**2 / (4 * FORCE * RADIUS)  # m = sin^2(amplitude / 2)
PERIOD = 4 * math.sqrt(RADIUS / FORCE) * float(ellipk(MODULUS))  # 18.9416
AMPLITUDE = 2 * math.asin(math.sqrt(MODULUS))  # 1.2143 rad, below pi/2: the contact persists


def pendulum(scheme: str, parameters: dict, **options) -> Motion:
    """The particle started at the lowest point (0, 0) with the velocity (25, 0)."""

    def from_centre(q):
        return np.array([q[0], q[1] + RADIUS])

    circle = Constraint(
        gap=lambda t, q: RADIUS - math.hypot(*from_centre(q)),
        gradient=lambda t, q: -from_centre(q) / math.hypot(*from_centre(q)),
    )
    system = System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (0.0, FORCE),
        potential=lambda t, q: -FORCE * q[1],
        constraints=[circle],
    )
    start = {"q": (0.0, 0.0), "u": (SPEED, 0.0)}
    return integrate(system, **start, step=parameters["step"], until=parameters["until"], scheme=scheme, **options)


def gap(motion: Motion) -> np.ndarray:
    """Distance to the circle, negative where the constraint is violated."""
    return RADIUS - np.hypot(motion.q[:, 0], motion.q[:, 1] + RADIUS)


def angle(motion: Motion) -> np.ndarray:
    """Angle from the lowest point, rad."""
    return np.arctan2(motion.q[:, 0], motion.q[:, 1] + RADIUS)


def energy_change(motion: Motion) -> np.ndarray:
    """Change of the total energy relative to the initial kinetic energy."""
    total = motion.ledger.kinetic + motion.ledger.potential
    return (total - total[0]) / motion.ledger.kinetic[0]


def first_period(motion: Motion) -> float:
    """Time of the first passage through the lowest line in the initial sense, between two steps by proportion."""
    theta = angle(motion)
    before = np.flatnonzero((theta[:-1] < 0) & (theta[1:] >= 0))
    if not len(before):
        return math.nan
    k = before[0]
    return float(motion.times[k] - motion.step * theta[k] / (theta[k + 1] - theta[k]))


def swings(motion: Motion) -> np.ndarray:
    """Largest angle of each whole half-oscillation, rad."""
    theta = angle(motion)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(np.sign(theta[1:]))) + 1])
    return np.array([np.abs(theta[a : b + 1]).max() for a, b in pairwise(cuts)])


def flights(motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Middle time and greatest height of the free flights between two successive impulses."""
    hits, height = np.flatnonzero(motion.impulses[:, 0, 0]), gap(motion)
    middle = (motion.times[hits[:-1]] + motion.times[hits[1:]] + motion.step) / 2
    return middle, np.array([height[a + 1 : b + 1].max() for a, b in pairwise(hits)])


def draw(ax, motion: Motion, title: str, caption: str, *, numbered: int = 0) -> None:
    """The trajectory as on the plates: a part of the circle, and a mark at each whole t (the first ones numbered)."""
    arc = np.linspace(-1.5, 1.5, 200)
    ax.plot(RADIUS * np.sin(arc), RADIUS * (np.cos(arc) - 1), color="0.6", lw=1.8, zorder=1)
    ax.plot(*motion.q.T, "k", lw=0.7)
    marks = np.arange(0, math.floor(motion.times[-1] + 1e-9) + 1)
    at = motion.q[np.rint(marks / motion.step).astype(int)]
    ax.plot(*at.T, "k+", ms=7, mew=0.8)
    for mark, (x, y) in list(zip(marks, at, strict=True))[:numbered]:
        outward = np.array([x, y + RADIUS]) / math.hypot(x, y + RADIUS)
        ax.annotate(f"{mark}", (x, y) + 3.2 * outward, ha="center", va="center", fontsize=7, color="0.25")
    ax.set(aspect="equal", xlim=(-70, 70), ylim=(12, -65), xlabel="x", ylabel="y (downwards, as the force)")
    ax.set_title(title, fontsize=11)
    ax.text(0, -61, caption, ha="center", va="top", fontsize=8, family="monospace")


def caption(parameters: dict, extra: str = "") -> str:
    """The lines printed on the plates."""
    return (
        f"initial values x = 0, y = 0, u = 25, v = 0\nstep {parameters['step']:g}, mark every 1\n"
        f"force P = 0, Q = 8, radius 60{extra}"
    )
