"""The options of a `Simulation`, checked at its door."""

from ..errors import InputError, check_policy, is_number, is_one_of, is_whole
from ..problem.solving import named
from ..scenes.hooks import OWN
from .equations.contract import GROUPS
from .solvers import SOLVERS
from .threads import Team


def check_options(time_step, tolerance, max_iterations, solver, threads, penetration, recovery, on_failure) -> None:
    """Refuse options of a `Simulation` that make no sense, in one sentence."""
    for name, value in (("time_step", time_step), ("tolerance", tolerance)):
        if not (is_number(value) and value > 0):
            raise InputError(f"Simulation got {name}={value!r}; give a positive number.")
    if not is_whole(max_iterations, 1):
        raise InputError(f"Simulation got max_iterations={max_iterations!r}; give a positive whole number.")
    if isinstance(solver, str) and solver.startswith(OWN):
        raise InputError(
            f"The run was made with the solver {solver.removeprefix(OWN)}, a function, which a file does not hold; "
            "give solver=... again, or the name of another."
        )
    if callable(solver):
        named(solver, "Simulation")
    elif not is_one_of(solver, names := ("auto", *SOLVERS)):
        raise InputError(
            f"solver is {solver!r}; choose one of {', '.join(names)}, or give a function (problem, guess, tolerance, "
            "max_iterations, callback) -> (P, SolveReport)."
        )
    if not is_one_of(threads, ("auto",)) and not (is_whole(threads, 1) and threads <= GROUPS):
        raise InputError(f"threads is {threads!r}; give a whole number from 1 to {GROUPS}, or 'auto'.")
    if not is_one_of(penetration, ("moreau", "anticipate")):
        raise InputError(f"penetration is {penetration!r}; choose 'moreau' or 'anticipate'.")
    check_policy(on_failure)
    if not (is_number(recovery) and recovery >= 0):
        raise InputError(f"recovery is {recovery!r}; give a speed >= 0.")


def check_joints(joint_contacts, dimension: int) -> None:
    """Refuse a choice of the contacts of a joint that there is not, or where joints have two contacts at most."""
    if not is_one_of(joint_contacts, ("all", "four")):
        raise InputError(f"joint_contacts is {joint_contacts!r}; choose 'all' or 'four'.")
    if joint_contacts == "four" and dimension == 2:
        raise InputError("joint_contacts is 'four' in a plane scene, where two edges have two contacts; leave it out.")


def check_about(about) -> None:
    """Refuse what is no dict."""
    if not (about is None or isinstance(about, dict)):
        raise InputError(f"Simulation got about={about!r}; give a dict of numbers and words.")


def check_team(team: Team, cell) -> None:
    """Refuse several processes in a periodic cell."""
    if cell is not None and team.workers > team.threads:
        what = f"{team.workers // team.threads} ranks"
        raise InputError(f"Simulation got {what} and a cell, which one process sweeps; take threads, or one rank.")


def listed(recorders) -> list:
    """The recorders of a simulation, one or several; refuses what is none."""
    several = list(recorders) if isinstance(recorders, list | tuple) else [recorders]
    for recorder in several:
        if not callable(recorder) or not all(hasattr(recorder, part) for part in ("begin", "end")):
            raise InputError(f"Simulation got the recorder {recorder!r}; give one such as HDF5(path), or a list.")
    return several
