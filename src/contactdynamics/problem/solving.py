"""`solve`: any contact problem by any solver that keeps the contract.

A solver is a function

    solver(problem, guess, tolerance, max_iterations, callback) -> (P, SolveReport)

of a checked `ContactProblem` (see `form`), first impulses ``guess`` (m, d) that it may overwrite, the tolerance of the
residual (`residual.judge`), and a ``callback(iteration, residual, impulses)`` or None, called wherever the residual is
looked at; where it returns True the solver stops there. The report is made by `residual.judge`. Entered by name in
`SOLVERS`, it can be asked for by that name everywhere. W may be slightly asymmetric (`form.ASYMMETRY`), also in the
contacts' own blocks, for which the local solutions of `laws` want symmetric ones: sweeps take the symmetric part, and
the rest of it with the last impulses.
"""

from collections.abc import Callable

import numpy as np

from .._jit import cpu_clock
from ..errors import InputError, check_function, explained, is_number, is_one_of, is_whole
from ..state import SolveReport
from .form import BodyForm, ContactProblem, check, checked_guess
from .methods import accelerated, auto, interior, nlgs, warm_up_second_order
from .residual import judge, sentence

SOLVERS: dict[str, Callable] = {"auto": auto, "interior": interior, "accelerated": accelerated, "nlgs": nlgs}


@explained
def solve(
    problem: ContactProblem,
    guess: np.ndarray | None = None,
    *,
    solver: str | Callable = "auto",
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    callback: Callable | None = None,
) -> tuple[np.ndarray, SolveReport]:
    """Solve a one-step contact problem, warm-started from ``guess`` (m, d); returns the impulses P (m, d) and a report.

    ``solver``: a name of `SOLVERS`, or a function ``(problem, guess, tolerance, max_iterations, callback) ->
    (P, SolveReport)`` of your own, whose P is judged by the same residual as all (its report may be None).
    ``callback(iteration, residual, impulses)`` is called wherever the residual is looked at, and stops the solver where
    it returns True.

    >>> problem = ContactProblem(np.eye(2), np.array([[-1.0, 0.3]]), np.array([[0.5, 0.5]]), np.zeros(1))
    >>> impulses, report = solve(problem)
    >>> impulses.round(6).tolist(), report.converged
    ([[1.0, -0.3]], True)
    """
    problem = check(problem)
    impulses = checked_guess(problem, guess)
    if not (is_number(tolerance) and tolerance > 0):
        raise InputError(f"The tolerance is {tolerance!r}; give a positive number, for example 1e-8.")
    if not is_whole(max_iterations, 1):
        raise InputError(f"max_iterations is {max_iterations!r}; give at least 1.")
    check_function("solve got callback", callback, "iteration", "residual", "impulses", optional=True)
    method = named(solver)
    if len(impulses) == 0:
        return impulses, judge(problem, impulses, tolerance, solver=solver if isinstance(solver, str) else "")
    arguments = problem, impulses, float(tolerance), int(max_iterations), callback
    if isinstance(solver, str):
        found, report = method(*arguments)
        return found, _under(solver, report)
    return _judged(method, arguments)


def _under(solver: str, report: SolveReport) -> SolveReport:
    """The report of a method that does not know under which name it was asked for; what to do depends on that."""
    told = report.message.removeprefix(sentence(report))  # what the method says beside
    report = report._replace(solver=solver)
    return report._replace(message=sentence(report) + told)


def named(solver, who: str = "solve") -> Callable:
    """The solver of a name, or the function itself."""
    if callable(solver):
        check_function(f"{who} got solver", solver, "problem", "guess", "tolerance", "max_iterations", "callback")
        return solver
    if not is_one_of(solver, SOLVERS):
        raise InputError(
            f"There is no solver {solver!r}; choose {', '.join(SOLVERS)}, or give a function "
            "(problem, guess, tolerance, max_iterations, callback) -> (P, SolveReport)."
        )
    return SOLVERS[solver]


def _judged(method, arguments):
    """What a user's solver found, judged as that of any other."""
    problem, tolerance = arguments[0], arguments[2]
    name, begin = getattr(method, "__name__", type(method).__name__), cpu_clock()
    answer = method(*arguments)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise InputError(f"The solver {name} returned {type(answer).__name__}; give (P, SolveReport), or (P, None).")
    found, told = answer
    if told is not None and not isinstance(told, SolveReport):
        raise InputError(f"The solver {name} returned {type(told).__name__} as report; give a SolveReport or None.")
    told = told or SolveReport(np.inf, 0, False, len(problem.gap), -1, 0.0, 0.0, 0.0, "")
    found = checked_guess(problem, found)
    seconds = cpu_clock() - begin
    return found, judge(problem, found, tolerance, solver=name, iterations=told.iterations, stages=told.stages,
                        history=told.history, cpu_seconds=seconds, evidence=told.evidence)  # fmt: skip


def warm_up(problem: ContactProblem, solver) -> None:
    """Solve one contact in the form of ``problem``, so that the kernels are loaded before a time is taken."""
    d = problem.components
    one, zero = np.eye(d), np.zeros((1, d))
    small = BodyForm(one, one, -one[0], zero)
    tiny = ContactProblem.of_bodies(small, np.full((1, 2), 0.5))
    if problem.bodies is None:
        tiny = ContactProblem(one, zero - one[0], np.full((1, 2), 0.5), np.zeros(1))
    solve(tiny, solver=solver, max_iterations=5)
    if solver in ("auto", "interior"):
        warm_up_second_order(tiny)
