"""The unilateral pendulum in revolution of trials 4 and 5: a particle inside a circle of radius 40, gravity 1000."""

import math

import numpy as np
from scipy.integrate import solve_ivp

from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

RADIUS, GRAVITY, SPIN = 40.0, 1000.0, math.sqrt(200.0)
READINGS = np.arange(0.1, 1.05, 0.1)  # s, the instants of the plates


def pendulum(scheme: str, anticipation: float, step: float) -> Motion:
    """The particle confined to x^2 + y^2 <= 40^2, started at the lowest point with angular velocity sqrt(200)."""
    circle = Constraint(
        gap=lambda t, q: RADIUS - math.hypot(q[0], q[1]),
        gradient=lambda t, q: -q / math.hypot(q[0], q[1]),
    )
    system = System(
        inertia=[1.0, 1.0],
        force=lambda t, q, u: (0.0, -GRAVITY),
        potential=lambda t, q: GRAVITY * q[1],
        constraints=[circle],
    )
    start = {"q": (0.0, -RADIUS), "u": (RADIUS * SPIN, 0.0)}
    return integrate(system, **start, step=step, until=1.0, scheme=scheme, anticipation=anticipation)


def at_readings(values: np.ndarray, step: float) -> np.ndarray:
    """The values of a series over the steps at t = 0.1, 0.2, ... 1."""
    return values[np.rint(READINGS / step).astype(int)]


def angle(motion: Motion) -> np.ndarray:
    """Angle from the lowest point, continued over the revolutions; rad."""
    return np.unwrap(np.arctan2(motion.q[:, 0], -motion.q[:, 1]))


def violation(motion: Motion) -> np.ndarray:
    """10^6 (|q| - R) / R, positive in the forbidden region."""
    return 1e6 * (np.hypot(*motion.q.T) / RADIUS - 1)


def energy_change(motion: Motion) -> np.ndarray:
    """Change of the total energy relative to the initial kinetic energy."""
    total = motion.ledger.kinetic + motion.ledger.potential
    return (total - total[0]) / motion.ledger.kinetic[0]


def exact_angles() -> np.ndarray:
    """theta'' = -25 sin theta (1986, eq. 15.1), to twelve digits."""

    def rhs(t, y):
        return y[1], -GRAVITY / RADIUS * math.sin(y[0])

    return solve_ivp(rhs, (0, 1), (0, SPIN), method="DOP853", t_eval=READINGS.clip(0, 1), rtol=1e-13, atol=1e-13).y[0]


def one_dimensional(step: float) -> np.ndarray:
    """The same equation by the leapfrog of section 6 (the algorithm "of order 3/2" of 1986, eq. 15.2)."""
    system = System(inertia=[1.0], force=lambda t, q, u: (-GRAVITY / RADIUS * math.sin(q[0]),))
    return at_readings(integrate(system, q=(0.0,), u=(SPIN,), step=step, until=1.0).q[:, 0], step)
