"""Naive twins of the kernels: slow, short, written from the definitions, with another method where there is one.

Contact components are in the order n, t1, t2; ``c`` are the two coefficients of the friction cone (see `laws`).
"""

import itertools

import numpy as np
import quadprog
from scipy.optimize import brentq, nnls

SECTION = 2000  # points on the boundary of the section of a cone


def section(c, d):
    """Points of the boundary of the cone's section at P_n = 1, (k, d - 1): both ends of a segment, or an ellipse."""
    if d == 1:
        return np.zeros((1, 0))
    if d == 2:
        return np.array([[c[0]], [-c[1]]])
    angle = np.linspace(0, 2 * np.pi, SECTION, endpoint=False)
    return np.column_stack([c[0] * np.cos(angle), c[1] * np.sin(angle)])


def dissipation(v, c):
    """sup of -S . U_t over the section (2004, section 5.4)."""
    return max(0.0, (-section(c, len(v)) @ v[1:]).max())


def cone_excess(p, c):
    """How far P is outside the cone (0 inside), measured in P_t at the given P_n, for d = 1, 2, 3."""
    outside = -min(0.0, p[0])
    if len(p) == 2:
        outside = max(outside, p[1] - c[0] * p[0], -p[1] - c[1] * p[0])
    if len(p) == 3:
        # The ellipse is {s : s . e <= support(e) for all directions e}.
        angle = np.linspace(0, 2 * np.pi, SECTION, endpoint=False)
        e = np.column_stack([np.cos(angle), np.sin(angle)])
        support = np.sqrt((c[0] * e[:, 0]) ** 2 + (c[1] * e[:, 1]) ** 2)
        outside = max(outside, (e @ p[1:] - support * p[0]).max())
    return outside


def law_errors(p, v, c):
    """The law in words, each error >= 0: (U_n < 0, outside the cone, U_n P_n, dissipation that is not maximal)."""
    power = -v[1:] @ p[1:]
    return max(0.0, -v[0]), cone_excess(p, c), abs(v[0] * p[0]), max(0.0, dissipation(v, c) * p[0] - power)


def two(w, b, c):
    """All impulses of a contact with two components that obey the law, by trying every case (1986, section 13)."""
    found = []
    if b[0] >= 0:
        found.append(np.zeros(2))
    stuck = np.linalg.solve(w, -b)
    if stuck[0] >= 0 and -c[1] * stuck[0] <= stuck[1] <= c[0] * stuck[0]:
        found.append(stuck)
    for side, sense in ((c[0], -1), (-c[1], 1)):
        pivot = w[0] @ (1, side)
        if pivot == 0:
            continue
        p_n = -b[0] / pivot
        p = np.array([p_n, side * p_n])
        if p_n > 0 and sense * (b + w @ p)[1] >= 0:
            found.append(p)
    return found


def three(w, b, c, points=1601):
    """All impulses of a contact with three components that obey the law, by scanning the sliding multiplier alpha.

    On the boundary of the ellipse U_t = -alpha (P_t1 / c_1^2, P_t2 / c_2^2) with alpha >= 0, and U_n = 0: a linear
    system for P; alpha is where P meets the cone. Sticking is alpha = 0.
    """
    if b[0] >= 0:
        return [np.zeros(3)]

    def impulse(log_alpha):
        return np.linalg.solve(w + np.exp(log_alpha) * np.diag([0, 1 / c[0] ** 2, 1 / c[1] ** 2]), -b)

    def excess(log_alpha):
        p = impulse(log_alpha)
        return np.hypot(p[1] / c[0], p[2] / c[1]) - p[0]

    stuck = np.linalg.solve(w, -b)
    found = [stuck] if stuck[0] >= np.hypot(stuck[1] / c[0], stuck[2] / c[1]) else []
    middle = np.log(np.trace(w))
    grid = np.linspace(middle - 40, middle + 40, points)
    values = [excess(x) for x in grid]
    for left, right, a, z in itertools.zip_longest(grid[:-1], grid[1:], values[:-1], values[1:]):
        if a * z < 0:
            root = brentq(excess, left, right, xtol=1e-15, rtol=8.9e-16)
            if impulse(root)[0] > 0:
                found.append(impulse(root))
    return found


def nearest_in_cone(x, c):
    """Nearest point to x of the cone over the section: among x itself, the feet on its rays, and the apex.

    Exact for two components; for three the cone must be round (c[0] = c[1]).
    """
    if len(x) == 1:
        return np.maximum(x, 0.0)
    if len(x) == 3:
        size = np.hypot(x[1], x[2])
        direction = x[1:] / size if size > 0 else np.array([1.0, 0.0])
        n, t = nearest_in_cone(np.array([x[0], size]), c)
        return np.array([n, *(t * direction)])
    candidates = [np.zeros(2)]
    for side in (c[0], -c[1]):
        ray = np.array([1.0, side])
        candidates.append(max(0.0, x @ ray / (ray @ ray)) * ray)
    if -c[1] * x[0] <= x[1] <= c[0] * x[0]:
        candidates.append(x)
    return min(candidates, key=lambda y: np.sum((x - y) ** 2))


def natural_map(p, v, c, rho):
    """P - proj_K(P - rho (U + phi_1(U_t) n)); an ellipse is made round by P_t c_max / c, U_t c / c_max."""
    p, v, c = np.array(p, float), np.array(v, float), np.array(c, float)
    corrected = v.copy()
    corrected[0] += np.hypot(*(c * v[1:])) if len(p) == 3 else dissipation(v, c)
    if len(p) == 3 and c.max() > 0:
        scale = c / c.max()
        p[1:] = np.where(scale > 0, p[1:] / np.where(scale > 0, scale, 1), p[1:])
        corrected[1:] *= scale
        c = np.array([c.max(), c.max()])
    return p - nearest_in_cone(p - rho * corrected, c)


def velocities(w, b, p):
    """U = W P + b, (m, d)."""
    return b + (w @ p.ravel()).reshape(b.shape)


def residual(w, b, friction, p):
    """The residual of all solvers: natural map with rho = 1 / mean diagonal of W_aa, relative (see `solvers`)."""
    m, d = p.shape
    v = velocities(w, b, p)
    rho = [d / np.trace(w[a * d : (a + 1) * d, a * d : (a + 1) * d]) for a in range(m)]
    error = [natural_map(p[a], v[a], friction[a], rho[a]) for a in range(m)]
    scale = max(np.linalg.norm(p), np.linalg.norm(np.array(rho)[:, None] * b))
    return np.linalg.norm(error) / scale


def sweep(w, b, friction, p):
    """One Gauss-Seidel sweep with the naive local solution; returns the new impulses (m, d)."""
    p = p.copy()
    m, d = p.shape
    for a in range(m):
        mine = slice(a * d, (a + 1) * d)
        others = p.copy()
        others[a] = 0
        local = b[a] + w[mine] @ others.ravel()
        if d == 1:
            p[a] = np.maximum(0, -local / w[a, a])
        elif d == 2:
            p[a] = two(w[mine, mine], local, friction[a])[0]
        else:
            p[a] = three(w[mine, mine], local, friction[a], points=81)[0]
    return p


def nearest_velocity(inertia, u, normals, rates):
    """Nearest velocity to u in the metric A with N v + w >= 0, by quadratic programming (Goldfarb and Idnani)."""
    return quadprog.solve_qp(inertia, inertia @ u, normals.T.copy(), -rates)[0]


def nearest_in_polar(inertia, u, normals):
    """Nearest element to u, in the metric A, of the polar cone {-A^-1 N^T l : l >= 0} (1986, eq. 8.4)."""
    half = np.linalg.cholesky(inertia)
    multipliers, _ = nnls(-np.linalg.solve(half, normals.T), half.T @ u)
    return -np.linalg.solve(inertia, normals.T @ multipliers)


def midpoint_step(system, q, u, t, h, sweeps=400):
    """One step of 2004, sections 6.1, 6.2 and 7.5, for a system whose constraints all have a map and a boundary."""
    t_m, q_m = t + h / 2, q + h / 2 * u
    a = np.asarray(system.inertia(t_m, q_m) if callable(system.inertia) else np.diag(system.inertia), float)
    relaxed = u + h * np.linalg.solve(a, np.asarray(system.force(t_m, q_m, u), float))
    active = [c for c in system.constraints if c.gap(t_m, q_m) <= 0]
    if not active:
        return q_m + h / 2 * relaxed, relaxed, np.zeros((0, 2))
    maps = np.array([c.contact_map(t_m, q_m) for c in active], float)
    rows = maps.reshape(-1, len(u))
    boundary = np.array([c.boundary(t_m, q_m) for c in active], float)
    weights = np.array([[c.law.restitution] + [c.law.tangential_restitution] * (maps.shape[1] - 1) for c in active])
    before = (rows @ u).reshape(boundary.shape) + boundary
    b = (rows @ relaxed).reshape(boundary.shape) + boundary + weights * before
    w = rows @ np.linalg.solve(a, rows.T)
    friction = np.array([c.law.coefficients(before[k, 1:], 0) for k, c in enumerate(active)])
    p = np.zeros(boundary.shape)
    for _ in range(sweeps):
        old, p = p, sweep(w, b, friction, p)
        if np.abs(p - old).max() <= 1e-12 * np.abs(p).max():
            break
    u_f = relaxed + np.linalg.solve(a, rows.T @ p.ravel())
    return q_m + h / 2 * u_f, u_f, p
