"""How well impulses solve a contact problem: `judge`, the same for all solvers.

The residual is the natural map |P - proj_K(P - rho U^)| of the Signorini-Coulomb problem, with rho = 1 / mean diagonal
of the contact's own block of W, as an l2 norm relative to the l2 norm of the impulses (of rho b where that is larger).
Beside it stand the same relative to rho b alone, that of Siconos (rho = 1, relative to max(|b|, |P|, |U|)), the
bipotential, and what the worst contact lacks.
"""

import math

import numpy as np

from .._jit import kernel
from ..state import LACKS, SolveReport
from .form import ContactProblem
from .laws import bipotential, cone_excess, natural_map

SWEEPS = {"nlgs", "accelerated"}  # methods that sweep over the contacts


@kernel
def _sliding_error(p, v, c, rho):
    """|P_t - proj(P_t - rho U_t)| on the section of the cone at P_n: P_t that does not oppose the sliding."""
    pressure = max(p[0], 0.0)
    if p.size == 1:
        return 0.0
    if p.size == 2:
        return abs(p[1] - min(max(p[1] - rho * v[1], -c[1] * pressure), c[0] * pressure))
    top = max(c[0], c[1])
    s1 = c[0] / top if c[0] > 0.0 else 1.0
    s2 = c[1] / top if c[1] > 0.0 else 1.0
    p1, p2 = p[1] / s1, p[2] / s2
    x1 = p1 - rho * s1 * v[1] if c[0] > 0.0 else 0.0
    x2 = p2 - rho * s2 * v[2] if c[1] > 0.0 else 0.0
    size = np.sqrt(x1 * x1 + x2 * x2)
    shrink = min(1.0, top * pressure / size) if size > 0.0 else 0.0
    return np.sqrt((p1 - shrink * x1) ** 2 + (p2 - shrink * x2) ** 2)


@kernel
def measure_contacts(impulses, velocities, friction, rho, shares, lacks):
    """Fill ``shares`` (m, 2), squares of the natural map with rho and with 1, and ``lacks`` (m, 4), see `LACKS`, N s.

    Returns the sum of |bipotential|.
    """
    m, d = impulses.shape
    out, lost = np.empty(d), 0.0
    for a in range(m):
        p, v, c = impulses[a], velocities[a], friction[a]
        for k in range(2):
            natural_map(p, v, c, rho[a] if k == 0 else 1.0, out)
            shares[a, k] = np.dot(out, out)
        lacks[a, 0] = rho[a] * max(0.0, -v[0])
        lacks[a, 1] = min(max(0.0, p[0]), rho[a] * max(0.0, v[0]))
        lacks[a, 2] = cone_excess(p, c)
        lacks[a, 3] = _sliding_error(p, v, c, rho[a])
        lost += abs(bipotential(v, p, c))
    return lost


def judge(
    problem: ContactProblem,
    impulses: np.ndarray,
    tolerance: float,
    *,
    solver: str = "",
    iterations: int = 0,
    stages: tuple = (),
    history: tuple = (),
    residual: float | None = None,
    cpu_seconds: float = math.nan,
    evidence: str = "",
) -> SolveReport:
    """The `SolveReport` of ``impulses`` (m, d) for a checked problem, with what the solver tells of its way.

    ``residual``: the one by which the solver stopped, where it evaluated the same residual in another order of sums.
    """
    m, d = problem.velocity.shape
    if m == 0:
        return NO_CONTACT._replace(solver=solver, tolerance=tolerance, residual_free=0.0, residual_siconos=0.0)
    w, b = problem.blocks, problem.velocity
    diagonal = w.diagonal().reshape(m, d)
    rho = d / diagonal.sum(axis=1)
    velocities = problem.velocities(impulses)
    shares, lacks = np.empty((m, 2)), np.empty((m, 4))
    lost = measure_contacts(np.ascontiguousarray(impulses), velocities, problem.friction, rho, shares, lacks)
    error, theirs = np.sqrt(shares.sum(axis=0))
    size, stopping = _norm(impulses), _norm(rho[:, None] * b)
    scale = max(size, stopping)
    work = float((impulses**2 / rho[:, None]).sum())
    worst = int(shares[:, 0].argmax())
    measured = _share(error, scale) if residual is None else residual
    lacking = lacks[worst] / scale if scale > 0 else np.zeros(4)
    converged = bool(measured <= tolerance)
    report = SolveReport(
        float(measured), int(iterations), converged, m, worst, float(max(0.0, -problem.gap.min())),
        float(_share(lacks[:, 2].max(), scale)), float(_share(lost, work)), "", 0.0, solver, float(tolerance),
        tuple(stages), tuple(history), _share(error, stopping),
        _share(theirs, max(_norm(b), size, _norm(velocities))), LACKS[int(lacking.argmax())],
        tuple(float(x) for x in lacking), float(cpu_seconds), evidence,
    )  # fmt: skip
    return report._replace(message=sentence(report))


NO_CONTACT = SolveReport(0.0, 0, True, 0, -1, 0.0, 0.0, 0.0, "No active contact.")


def _norm(array) -> float:
    return float(np.sqrt((array**2).sum()))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0 if part == 0 else math.inf


def sentence(report: SolveReport) -> str:
    """What happened and what to do, in one sentence."""
    by = f"by {report.solver or 'these impulses'}"
    way = f"after {report.iterations} {_unit(report)}" if report.iterations else by
    done = f"residual {report.residual:.1e} {way}"
    if report.converged:
        return f"Solved: {done} over {report.contacts} contacts{_doubt(report)}."
    if report.evidence:
        return f"No solution exists: {report.evidence}."
    where = f"worst at contact {report.worst}" + (f" by {report.worst_by}" if report.worst_by else "")
    return f"Not solved: {done}, asked {report.tolerance:.0e}, {where}; {advice(report)}."


def _doubt(report: SolveReport) -> str:
    """What a residual relative to the impulses hides: in a tower they are far larger than what a step brings."""
    if report.residual_free > max(1e-3, 10 * report.tolerance):
        return f", but {report.residual_free:.1e} of what stops the free motion: take a smaller tolerance"
    return ""


def advice(report: SolveReport) -> str:
    """Half a sentence: what to do with a problem that was not solved, by the way its residual went."""
    if not math.isfinite(report.residual):
        return "the impulses are no finite numbers; start from no guess, and look at the data"
    if report.residual < 1e-13:
        return "that is what rounding leaves; accept a larger tolerance"
    sweeping = {name for name, _ in report.stages} <= SWEEPS
    other = 'take solver="auto"' if sweeping and report.solver in SWEEPS else "shorten the step"
    rate = pace(report.history)
    if rate is None or report.iterations < 20:
        return "raise max_iterations, shorten the step or accept a larger tolerance"
    if rate > -1e-4:  # decades a sweep: ten thousand for a tenth
        lately = f"the residual no longer falls (best {min(r for _, r in report.history):.1e})"
        return f"{lately}: more {_unit(report)} will not help; {other}, or accept a larger tolerance"
    more = math.log10(report.tolerance / report.residual) / rate
    wanted = float(f"{1.2 * (report.iterations + more):.1e}")
    return (
        f"the residual falls tenfold every {_round(-1 / rate)} {_unit(report)}: raise max_iterations to {wanted:.0f}, "
        f"{other} or accept a larger tolerance"
    )


def pace(history) -> float | None:
    """Decades that the residual gains an iteration (below 0 where it falls), over the last half; None where unknown."""
    if len(history) < 4:
        return None
    iterations, residuals = np.array(history[len(history) // 2 :], dtype=float).T
    if not ((residuals > 0) & np.isfinite(residuals)).all() or iterations[-1] <= iterations[0]:
        return None
    # the slope of the straight line through the logarithms
    x, y = iterations - iterations.mean(), np.log10(residuals)
    return float((x * y).sum() / (x * x).sum())


def _round(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _unit(report: SolveReport) -> str:
    """Sweeps where only sweeps were made, else iterations."""
    return "sweeps" if {name for name, _ in report.stages} <= SWEEPS else "iterations"
