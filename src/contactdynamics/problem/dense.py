"""Kernels for a dense W: Gauss-Seidel, its residual, and the exact projection on a cone.

One residual for all solvers: the natural map |P - proj_K(P - rho U^)| of the Signorini-Coulomb problem, with
rho = 1 / mean diagonal of the contact's own block of W, as an l2 norm relative to the l2 norm of the impulses (of
rho b where that is larger). A second one beside it: the bipotential b(U, P) (see `laws`), a power that only the law
makes vanish, summed over the contacts and relative to the sum of P . P / rho. It sees what the first one weighs little,
and not what the first one sees at contacts with P = 0 that still close.
"""

import numpy as np

from .._jit import kernel
from ..errors import InputError
from ..state import SolveReport
from .form import ROWS_AT_MOST, ContactProblem
from .laws import bipotential, cone_excess, natural_map, solve_contact
from .residual import sentence

CHECK_EVERY = 10  # sweeps between two evaluations of the residual once the first ones have not converged


@kernel
def sweep(delassus, velocity, friction, impulses, status):
    """One Gauss-Seidel sweep over all contacts (2004, eq. 38); updates ``impulses`` (m, d) and ``status`` (m,)."""
    m, d = impulses.shape
    b = np.empty(d)
    for a in range(m):
        own = delassus[a * d : (a + 1) * d, a * d : (a + 1) * d]
        for i in range(d):
            total = velocity[a, i]
            row = delassus[a * d + i]
            for other in range(m):
                if other != a:
                    for j in range(d):
                        total += row[other * d + j] * impulses[other, j]
            b[i] = total
        status[a] = solve_contact(own, b, friction[a], impulses[a])


@kernel
def measure(delassus, velocity, friction, impulses):
    """The errors of a solution: residual, worst contact, cone error, bipotential (all relative)."""
    m, d = impulses.shape
    error, scale_p, scale_b, lost, work, cone = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    worst, largest = -1, -1.0
    v, r = np.empty(d), np.empty(d)
    for a in range(m):
        diagonal = 0.0
        for i in range(d):
            diagonal += delassus[a * d + i, a * d + i]
        rho = d / diagonal
        for i in range(d):
            v[i] = velocity[a, i]
            for other in range(m):
                for j in range(d):
                    v[i] += delassus[a * d + i, other * d + j] * impulses[other, j]
        natural_map(impulses[a], v, friction[a], rho, r)
        share = 0.0
        for i in range(d):
            share += r[i] * r[i]
            scale_p += impulses[a, i] ** 2
            scale_b += (rho * velocity[a, i]) ** 2
            work += impulses[a, i] ** 2 / rho
        error += share
        lost += abs(bipotential(v, impulses[a], friction[a]))
        cone = max(cone, cone_excess(impulses[a], friction[a]))
        if share > largest:
            worst, largest = a, share
    scale = max(scale_p, scale_b)
    if scale == 0.0:
        return 0.0, worst, 0.0, 0.0
    return np.sqrt(error / scale), worst, cone / np.sqrt(scale), lost / work if work > 0.0 else 0.0


@kernel
def nlgs(delassus, velocity, friction, impulses, status, tolerance, max_iterations):
    """Nonlinear Gauss-Seidel from the impulses given (2004, section 6.2); returns sweeps and the four errors."""
    errors = (np.inf, -1, 0.0, 0.0)
    for iteration in range(1, max_iterations + 1):
        sweep(delassus, velocity, friction, impulses, status)
        if iteration <= CHECK_EVERY or iteration % CHECK_EVERY == 0 or iteration == max_iterations:
            errors = measure(delassus, velocity, friction, impulses)
            if errors[0] <= tolerance:
                return iteration, errors
    return max_iterations, errors


def report(errors, iterations, tolerance, gap) -> SolveReport:
    """The report of a step of a system: the figures of the kernels, without what needs the problem again."""
    residual, worst, cone, second = errors
    converged = residual <= tolerance
    told = SolveReport(residual, iterations, converged, len(gap), worst, max(0.0, -min(gap)), cone, second, "",
                       tolerance=tolerance)  # fmt: skip
    return told._replace(message=sentence(told))


def matrix(problem: ContactProblem) -> np.ndarray:
    """W of a checked problem as a dense array."""
    w = problem.delassus
    if hasattr(w, "toarray"):
        if w.shape[0] > ROWS_AT_MOST:
            raise InputError(
                f"The problem has {problem.contacts} contacts, too many for a dense matrix (at most "
                f"{ROWS_AT_MOST // problem.components}); choose a solver that works on blocks or bodies."
            )
        w = w.toarray()
    return w


@kernel
def _split(basis, count, vector, parts):
    """The rest of ``vector`` orthogonal to the first ``count`` rows of ``basis``; its ``parts`` along them."""
    rest = vector.copy()
    parts[:count] = 0.0
    for _ in range(2):  # the second pass removes what rounding left
        for j in range(count):
            part = np.dot(basis[j], rest)
            parts[j] += part
            rest -= part * basis[j]
    return rest


@kernel
def _least_distance(rows, depth, allowed):
    """Multipliers l >= 0 (m,) such that x = C^T l is the shortest vector with C x >= depth, and whether there is one.

    The dual active-set method of Goldfarb and Idnani (1983): from x = 0, the most violated constraint p is brought to
    equality along z, the part of its normal orthogonal to the active normals, while their multipliers move along -r;
    one that would change sign leaves the active set. Every step increases the distance, so it is finite.
    ``rows`` C (m, n) of unit length; ``depth`` (m,), the largest about 1; ``allowed`` (m,): violations to ignore.
    """
    m, n = rows.shape
    x, multipliers = np.zeros(n), np.zeros(m)
    active, count = np.empty(n + 1, dtype=np.int64), 0
    basis, lower, along, r = np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n)
    for _ in range(50 * (m + n)):
        slack = rows @ x - depth + 1e-14 * (1.0 + np.sqrt(np.dot(x, x))) + allowed
        p = np.argmin(slack)
        if slack[p] >= 0.0:
            return multipliers, True
        lacking = depth[p] - np.dot(rows[p], x)
        before = x.copy(), multipliers.copy(), active.copy(), count
        while True:
            for j in range(count):  # the active normals orthonormalised: normal_j = sum_i lower[j, i] basis_i
                rest = _split(basis, j, rows[active[j]], lower[j])
                lower[j, j] = np.sqrt(np.dot(rest, rest))
                basis[j] = rest / lower[j, j]
            z = _split(basis, count, rows[p], along)
            square, length, leaving = np.dot(z, z), np.inf, -1
            for i in range(count - 1, -1, -1):
                r[i] = along[i] / lower[i, i]
                for j in range(i + 1, count):
                    r[i] -= r[j] * lower[j, i] / lower[i, i]
                if r[i] > 1e-12 and multipliers[active[i]] < length * r[i]:
                    length, leaving = multipliers[active[i]] / r[i], i
            full = lacking / square if square > 1e-22 else np.inf
            if full == np.inf and leaving < 0:
                if lacking > 1e5 * allowed[p] + 1e-9 * np.sqrt(np.dot(x, x)):
                    return multipliers, False
                # Contradicted by rounding only: go on without this constraint.
                x, multipliers, active, count = before[0].copy(), before[1].copy(), before[2].copy(), before[3]
                allowed[p] = np.inf
                break
            length = min(length, full)
            multipliers[p] += length
            for i in range(count):
                multipliers[active[i]] = max(0.0, multipliers[active[i]] - length * r[i])
            if full < np.inf:
                x += length * z
                lacking -= length * square
            if length == full:
                active[count] = p
                count += 1
                break
            multipliers[active[leaving]] = 0.0
            count -= 1
            active[leaving] = active[count]
    return multipliers, False


def project(inertia: np.ndarray, u: np.ndarray, normals: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Impulses l >= 0 (m,) for which u + A^-1 N^T l is the nearest point to u, in the metric A, of {N v + w >= 0}.

    This is prox(V(q), u') of 1986, eq. 10.5 (and 2004, eq. 42 with moving boundaries), exact for any number of
    constraints, also with linearly dependent gradients (then the impulses are one choice among many, the velocity is
    unique). ``normals`` (m, n), ``rates`` w (m,).
    """
    excess = normals @ u + rates
    if np.all(excess >= 0):
        return np.zeros(len(excess))
    # In x = L^T (v - u), A = L L^T: find the shortest x with C x >= d, C = N L^-T, d = -excess.
    rows = np.linalg.solve(np.linalg.cholesky(inertia), normals.T).T
    size = np.sqrt((rows**2).sum(axis=1))
    scale = (-excess / size).max()
    # Boundaries that contradict each other by the rounding of their speeds are not an error.
    speeds = np.abs(normals) @ np.abs(u) + np.abs(rates)
    multipliers, solved = _least_distance(
        np.ascontiguousarray(rows / size[:, None]), -excess / size / scale, 1e-14 * speeds / size / scale
    )
    if not solved:
        raise InputError(
            "The active constraints contradict each other: no velocity satisfies them all; check the signs of their "
            "gaps and the motion of the boundaries."
        )
    return multipliers * scale / size
