"""An elastoplastic network of springs as a sweeping process: the origin of the process (2004, section 2.3).

Spring i has the stiffness k_i and yields at the force +-c_i: its extension is e_i = s_i / k_i + p_i, whose plastic part
p_i flows along the normals of C = {|s_i| <= c_i}. The extensions that the free nodes allow are e = d(t) a + B x (d: the
driven end, x: the free nodes), and B^T s = 0 is their equilibrium. With s_e(t), what the forces would be if nothing
yielded, y = s - s_e(t) lies in the kernel of B^T and obeys

    -dy/dt in N(y),   N: normal cone of {y in ker B^T : |s_e(t) + y| <= c} in the metric 1 / k.

In coordinates y = Z z with Z^T K^-1 Z = 1 this is a sweeping process by a polyhedron whose faces keep their directions.

The network here: springs 1 to m side by side between a wall and a node, and one more, which does not yield, from the
node to the driven end. Closed form: on first loading the bundle carries F = sum min(k_i x, c_i) at its extension x, and
d = x + F / k_last; by Masing's rule each later branch is the first one doubled in size, from the turning point on, as
long as the amplitude does not grow.
"""

import numpy as np

from contactdynamics.systems import sets
from contactdynamics.systems.sweeping import sweep

STIFFNESS = np.array([4.0, 2.0, 1.0])  # of the bundle, N/m
LIMIT = np.array([1.0, 1.0, 1.0])  # N
LAST = 6.0  # stiffness of the spring in series, N/m


def path(amplitude: float, steps: int) -> np.ndarray:
    """The driven end: up to the amplitude, then two whole cycles, in straight lines of ``steps`` steps each."""
    corners = amplitude * np.array([0.0, 1, -1, 1, -1, 1])
    return np.interp(np.linspace(0, 5, 5 * steps + 1), np.arange(6), corners)


def network_set(drive, times) -> tuple[sets.Polyhedron, np.ndarray, np.ndarray]:
    """The moving polyhedron in the coordinates z, the matrix Z and the elastic forces per unit of the drive."""
    k = np.append(STIFFNESS, LAST)
    limit = np.append(LIMIT, np.inf)
    free = np.append(np.ones(len(LIMIT)), -1.0)  # B: extension of each spring per displacement of the node
    driven = np.append(np.zeros(len(LIMIT)), 1.0)  # a
    node = -(free @ (k * driven)) / (free @ (k * free))
    elastic = k * (driven + node * free)
    # Orthonormal basis, in the metric 1/k, of the forces in equilibrium: y / sqrt(k) orthogonal to sqrt(k) B.
    basis = np.linalg.svd((np.sqrt(k) * free)[None])[2][1:].T
    z = np.sqrt(k)[:, None] * basis
    bounded = limit < np.inf
    normals = np.vstack([z[bounded], -z[bounded]])

    def offsets(t):
        shift = np.interp(t, times, drive) * elastic[bounded]
        return np.append(limit[bounded] - shift, limit[bounded] + shift)

    return sets.Polyhedron(normals, offsets), z, elastic


def loop(amplitude: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Displacement of the driven end and the force there, by the catching-up algorithm."""
    drive = path(amplitude, steps)
    times = np.arange(len(drive), dtype=float)
    polyhedron, z, elastic = network_set(drive, times)
    swept = sweep(polyhedron, np.zeros(z.shape[1]), times)
    return drive, (drive[:, None] * elastic + swept.q @ z.T)[:, -1]


def first_loading(d):
    """Force on first loading to the displacement d >= 0: a line through the points where the springs yield."""
    yields = np.sort(LIMIT / STIFFNESS)
    bundle = np.append(0.0, [np.minimum(STIFFNESS * x, LIMIT).sum() for x in yields])
    displacement = np.append(0.0, yields) + bundle / LAST
    return np.interp(d, displacement, bundle)  # beyond the last one the force stays


def exact_loop(amplitude: float, steps: int) -> np.ndarray:
    """Masing's rule along `path`."""
    drive = path(amplitude, steps)
    top = first_loading(amplitude)
    force = first_loading(drive)
    for branch in range(1, 5):
        part = slice(branch * steps + 1, (branch + 1) * steps + 1)
        sign = 1.0 if branch % 2 else -1.0
        force[part] = sign * (top - 2 * first_loading((amplitude - sign * drive[part]) / 2))
    return force
