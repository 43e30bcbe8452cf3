"""A uniform rod of mass 1 and half length 1 whose lower end meets a floor; shared by several experiments.

q = (x, y, angle) of the centre, the angle from the floor; the lower end lies at (x - cos, y - sin). Units: the rod's
mass, half length, and any time. W_nn = 1 + 3 cos^2, W_tt = 1 + 3 sin^2, W_nt = -3 sin cos.
"""

import math

import numpy as np

import contactdynamics as cd

INERTIA = 1 / 3


def rod(law, gravity=0.0):
    """The rod as a `System` with one contact."""

    def contact_map(t, q):
        return [[0.0, 1.0, -math.cos(q[2])], [1.0, 0.0, math.sin(q[2])]]

    floor = cd.Constraint(gap=lambda t, q: q[1] - math.sin(q[2]), contact_map=contact_map, law=law, name="floor")
    return cd.System(
        inertia=[1.0, 1.0, INERTIA],
        force=lambda t, q, u: (0.0, -gravity, 0.0),
        potential=lambda t, q: gravity * q[1],
        constraints=[floor],
    )


def delassus(angle):
    """W (2, 2) at the lower end, in the order n, t."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1 + c * c / INERTIA, -s * c / INERTIA], [-s * c / INERTIA, 1 + s * s / INERTIA]])


def impacts(angles, normals, tangentials, law, step=1e-7):
    """Impacts of the rod, moving without spin: the `Step` of each, at angles (k,) and velocities (k,) of its end.

    The end starts half a step of travel above the floor, so that the impact falls on the midpoint.
    """
    system = rod(law)
    start = system.start((0.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    for angle, normal, tangential in zip(angles, normals, tangentials, strict=True):
        height = math.sin(angle) - step / 2 * normal - 1e-15  # rounding must not leave the gap open
        q, u = np.array([0.0, height, angle]), np.array([tangential, normal, 0.0])
        yield cd.schemes.midpoint(system, start._replace(q=q, u=u), step)


def energy_formula(angle, normal, tangential, restitution, friction):
    """Kinetic energy after an impact of the rod over that before, by the three-parameter law with tau = 0.

    U_n^+ = -rho U_n^-. Sticking, U_t^+ = 0: P = W^-1 (U^+ - U^-), if it lies in the cone; otherwise it slides with
    P_t = -s gamma P_n and s the sign of U_t^+. The change of energy is (U^- + U^+) . P / 2 (2004, eq. 50).
    """
    w, before = delassus(angle), np.array([normal, tangential])
    p = np.linalg.solve(w, [-(1 + restitution) * normal, -tangential])
    if not abs(p[1]) <= friction * p[0]:
        for sign in (1, -1):
            pivot = w[0, 0] - sign * friction * w[0, 1]
            p = -(1 + restitution) * normal / pivot * np.array([1, -sign * friction])
            if pivot > 0 and sign * (before + w @ p)[1] >= 0:
                break
    return 1 + (2 * before + w @ p) @ p / (normal**2 + tangential**2)
