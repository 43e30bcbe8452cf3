"""Every solver on every contact problem of a folder, beside Siconos and Pinocchio where they are installed.

All are judged by one residual, that of `problem.residual`; another code stops by its own measure, and is asked for more
where that leaves ours above the tolerance (`benchmarks/peers/problems.py`). The time is that of the solver alone, in
seconds of CPU, one thread, with the problem in memory and W at hand for those that take it; the fastest of three runs
where they are short. A performance profile (Dolan and More, 2002) says on which share of the problems a solver takes at
most tau times the time of the fastest.
"""

import csv
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._jit import cpu_clock
from ..errors import InputError
from ..experiments.options import Option
from ..files.problems import read_problem, write_problem
from ..problem.form import ContactProblem
from ..problem.residual import judge
from ..problem.solving import SOLVERS, solve, warm_up
from .options import takes
from .peers import SCRIPTS, peer_environment

COLLECTION = Path(__file__).parents[3] / "benchmarks" / "problems"
ENDINGS = (".hdf5", ".h5", ".dat")
SHORT, REPEATS = 0.05, 3  # runs below so many seconds are repeated, and the fastest counts
MOST = 1_000_000  # iterations; the time is what ends a run
PEERS = {
    "Siconos NSGS": ("siconos", "siconos_problems.py", "NSGS"),
    "Siconos PROX": ("siconos", "siconos_problems.py", "PROX"),
    "Siconos ADMM": ("siconos", "siconos_problems.py", "ADMM"),
    "Pinocchio ADMM": ("pinocchio", "pinocchio_problems.py", "ADMM"),
}


class Run(NamedTuple):
    """One solver on one problem to one tolerance."""

    problem: str
    contacts: int
    solver: str
    tolerance: float
    success: bool
    residual: float  # nan where there was none in the time given
    seconds: float  # of CPU
    iterations: int


@takes(
    tolerances=Option((1e-4, 1e-8), "residuals to solve to", "1", above=0, below=1),
    only=Option("", "only problems whose names have this word; all where empty"),
    seconds=Option(60.0, "CPU at most for a run", "s", above=0),
    peers=Option(True, "other codes too, where they are installed"),
    siconos=Option("/usr/bin/python3", "the Python that has Siconos"),
    pinocchio=Option("python3", "the Python that has Pinocchio"),
)
def solvers(echo, folder: str | None = None, *, tolerances, only, seconds, peers, siconos, pinocchio, out=None) -> dict:
    """Every solver on the contact problems of FOLDER [benchmarks/problems], beside Siconos and Pinocchio; a profile."""
    wanted = list(dict.fromkeys(tolerances))
    if not wanted:
        raise InputError("The benchmark solvers got no tolerances; give numbers below 1, such as 1e-4,1e-8.")
    problems = _problems(folder, only)
    others = _present(echo, {"siconos": siconos, "pinocchio": pinocchio}) if peers else {}
    runs, versions = [], {}
    for name, problem in problems.items():
        echo(f"{name}: {problem.contacts} contacts, {problem.components}D")
        for solver in SOLVERS:
            runs += [_ours(name, problem, solver, tolerance, seconds) for tolerance in wanted]
            echo(_line(runs[-len(wanted) :]))
        for solver, command in others.items():
            new, version = _theirs(name, problem, solver, command, wanted, seconds)
            versions[solver.split()[0]] = version or versions.get(solver.split()[0])
            runs += new
            echo(_line(new))
    results = _summary(runs, wanted) | {"versions": versions, "runs": [run._asdict() for run in runs]}
    if out is not None:
        _write_tables(runs, wanted, Path(out))
    echo(_table(results, wanted))
    return results


def _problems(folder: str | None, only: str) -> dict[str, ContactProblem]:
    """The problems of a folder by name, the smallest first."""
    place = Path(folder) if folder else COLLECTION
    paths = sorted((p for p in place.glob("*") if p.suffix in ENDINGS and only in p.name), key=lambda p: p.name)
    if not paths:
        raise InputError(
            f"There is no problem {f'with {only!r} in its name ' * bool(only)}in {place}; give a folder with files of "
            "FCLIB (.hdf5) or Siconos (.dat): cdyn bench solvers FOLDER."
        )
    found = {path.name.removesuffix(".dat").removesuffix(".hdf5"): read_problem(path) for path in paths}
    return dict(sorted(found.items(), key=lambda item: item[1].contacts))


# ---- runs ------------------------------------------------------------------------------------------------------------


def _ours(name: str, problem: ContactProblem, solver: str, tolerance: float, seconds: float) -> Run:
    """The fastest of some runs of one of our solvers."""
    warm_up(problem, solver)
    _ = problem.blocks
    end = cpu_clock() + seconds

    def late(iteration, residual, impulses):
        return cpu_clock() > end

    try:
        _, best = solve(problem, solver=solver, tolerance=tolerance, max_iterations=MOST, callback=late)
    except InputError:  # a solver that has no way with this form
        return Run(name, problem.contacts, solver, tolerance, False, np.nan, np.nan, 0)
    if best.converged and best.cpu_seconds <= SHORT:  # it ends soon: no need to look at the clock
        again = [solve(problem, solver=solver, tolerance=tolerance, max_iterations=MOST)[1] for _ in range(REPEATS)]
        best = min(again, key=lambda report: report.cpu_seconds)
    success = best.converged and best.cpu_seconds <= seconds
    return Run(name, problem.contacts, solver, tolerance, success, best.residual, best.cpu_seconds, best.iterations)


def _present(echo, pythons: dict) -> dict:
    """The commands of the other codes that are there, by solver."""
    found, missing = {}, set()
    for solver, (package, script, _) in PEERS.items():
        python = shutil.which(pythons[package])
        module = "siconos.numerics" if package == "siconos" else package
        probe = [python, "-c", f"import {module}"]
        there = (
            python and not subprocess.run(probe, capture_output=True, env=peer_environment(), check=False).returncode
        )
        if there and SCRIPTS.exists():
            found[solver] = [python, str(SCRIPTS / script)]
        elif package not in missing:
            missing.add(package)
            reason = f"{pythons[package]} does not have it" if SCRIPTS.exists() else "its script comes with the source"
            echo(f"{package} is left out: {reason}; benchmarks/peers/README.md says how to get it.")
    return found


def _theirs(name, problem: ContactProblem, solver: str, command: list, tolerances, seconds: float):
    """Runs of another code in its own process, judged by our residual; and its version."""
    with tempfile.TemporaryDirectory(prefix="cdyn-") as scratch:
        job = _job(problem, PEERS[solver][2], tolerances, Path(scratch))
        (Path(scratch) / "job.json").write_text(json.dumps(job))
        begin = time.monotonic()
        try:
            # the time for one run, for each tolerance, with what the stricter ones before the last may take
            subprocess.run([*command, str(Path(scratch) / "job.json")], env=peer_environment(), check=False,
                           capture_output=True, timeout=10 + 2 * seconds * len(tolerances))  # fmt: skip
        except subprocess.TimeoutExpired:
            pass
        spent = time.monotonic() - begin
        lines = Path(job["found"]).read_text().splitlines() if Path(job["found"]).exists() else []
    found = {line["tolerance"]: line for line in map(json.loads, lines)}
    runs = []
    for tolerance in tolerances:
        line = found.get(tolerance)
        if line is None or line["impulses"] is None:
            runs.append(Run(name, problem.contacts, solver, tolerance, False, np.nan, spent, 0))
            continue
        impulses = _unit(problem) * np.array(line["impulses"]).reshape(problem.velocity.shape)
        residual = judge(problem, impulses, tolerance).residual
        success = bool(residual <= tolerance * (1 + 1e-6) and line["seconds"] <= seconds)
        runs.append(Run(name, problem.contacts, solver, tolerance, success, residual, line["seconds"],
                        line["iterations"]))  # fmt: skip
    return runs, next((line["version"] for line in found.values()), None)


def _unit(problem: ContactProblem) -> float:
    """The largest free velocity, by which those of another code are divided: its measures are absolute where small."""
    return float(np.abs(problem.velocity).max(initial=0.0)) or 1.0


def _job(problem: ContactProblem, solver: str, tolerances, scratch: Path) -> dict:
    """The problem in the contacts' form for another code; in 2D also with a third component that nothing moves."""
    from scipy.sparse import coo_array

    m, d = problem.velocity.shape
    w, unit = problem.blocks.tocoo(), _unit(problem)
    plain = ContactProblem(problem.blocks, problem.velocity / unit, problem.friction, problem.gap)
    np.savez(scratch / "arrays.npz", row=w.row, column=w.col, value=w.data, q=plain.velocity.ravel(),
             mu=problem.friction[:, 0], dimension=d)  # fmt: skip
    plane, text = None, scratch / "problem.dat"
    if d == 3:
        write_problem(plain, text)
    else:
        plane = scratch / "plane.dat"
        write_problem(plain, plane)
        wide = np.zeros((m, 3))
        wide[:, :d] = plain.velocity
        place = (3 * np.arange(m)[:, None] + np.arange(d)).ravel()
        still = np.setdiff1d(np.arange(3 * m), place)
        own = np.repeat(w.tocsr().diagonal().reshape(m, d).mean(axis=1), 3 - d)
        row, column = np.concatenate([place[w.row], still]), np.concatenate([place[w.col], still])
        spread = coo_array((np.concatenate([w.data, own]), (row, column)), (3 * m, 3 * m)).tocsr()
        write_problem(ContactProblem(spread, wide, problem.friction, problem.gap), text)
    return {
        "arrays": str(scratch / "arrays.npz"), "text": str(text), "plane": plane and str(plane), "solver": solver,
        "tolerances": tolerances, "found": str(scratch / "found.jsonl"),
    }  # fmt: skip


# ---- tables ----------------------------------------------------------------------------------------------------------


def profile(runs: list[Run], tolerance: float) -> dict[str, np.ndarray]:
    """The performance profile of each solver: rows (tau, share of the problems solved within tau times the fastest)."""
    mine = [run for run in runs if run.tolerance == tolerance]
    names, problems = list(dict.fromkeys(r.solver for r in mine)), list(dict.fromkeys(r.problem for r in mine))
    least = {p: min((r.seconds for r in mine if r.problem == p and r.success), default=np.inf) for p in problems}
    out = {}
    for name in names:
        ratios = sorted(r.seconds / least[r.problem] for r in mine if r.solver == name and r.success)
        out[name] = np.array([(max(1.0, ratio), (k + 1) / len(problems)) for k, ratio in enumerate(ratios)])
    return out


def _summary(runs: list[Run], tolerances) -> dict:
    """For each tolerance and solver: problems solved, on how many it is the fastest, CPU of all that it solved."""
    out = {"problems": len({run.problem for run in runs})}
    for tolerance in tolerances:
        curves = profile(runs, tolerance)
        for solver, curve in curves.items():
            mine = [r for r in runs if r.solver == solver and r.tolerance == tolerance]
            key = f"{solver} {tolerance:.0e}"
            out[f"{key} solved"] = sum(r.success for r in mine)
            out[f"{key} fastest"] = int((curve[:, 0] <= 1.0).sum()) if len(curve) else 0
            out[f"{key} seconds"] = float(sum(r.seconds for r in mine if r.success))
    return out


def _write_tables(runs: list[Run], tolerances, out: Path) -> None:
    """``solvers_runs.csv``, one line for each run, and ``solvers_profile.csv``, the steps of the profiles."""
    out.mkdir(parents=True, exist_ok=True)
    steps = [(tolerance, solver, *step) for tolerance in tolerances
             for solver, curve in profile(runs, tolerance).items() for step in curve.tolist()]  # fmt: skip
    for name, head, rows in (("solvers_runs.csv", Run._fields, runs),
                             ("solvers_profile.csv", ("tolerance", "solver", "tau", "share"), steps)):  # fmt: skip
        with (out / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head)
            writer.writerows(rows)


def _line(runs: list[Run]) -> str:
    """One solver on one problem."""
    parts = []
    for r in runs:
        said = f"{_seconds(r.seconds):>9} {r.iterations:>7} it."
        if not r.success:
            said = "no answer" if np.isnan(r.residual) else f"{r.residual:.0e} in {_seconds(r.seconds)}"
            said = f"failed, {said}"
        parts.append(f"{r.tolerance:.0e}: {said:<22}")
    return f"  {runs[0].solver:<16}" + "   ".join(parts)


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def _table(results: dict, tolerances) -> str:
    """The success of all solvers."""
    names = list(dict.fromkeys(key.rsplit(" ", 2)[0] for key in results if key.endswith(" solved")))
    head = f"{'of ' + str(results['problems']) + ' problems':<18}" + "".join(
        f"{f'solved to {t:.0e}':>18}{'fastest':>9}" for t in tolerances
    )
    lines = [
        f"{name:<18}" + "".join(
            f"{results[f'{name} {t:.0e} solved']:>18}{results[f'{name} {t:.0e} fastest']:>9}" for t in tolerances
        )
        for name in names
    ]  # fmt: skip
    return "\n".join([head, *lines])


def draw(results: dict, out: Path) -> None:
    """The performance profiles, one panel for each tolerance."""
    import matplotlib.pyplot as plt

    runs = [Run(**run) for run in results["runs"]]
    tolerances = list(dict.fromkeys(run.tolerance for run in runs))
    figure, axes = plt.subplots(1, len(tolerances), figsize=(1 + 4.5 * len(tolerances), 4), sharey=True, squeeze=False,
                                layout="constrained")  # fmt: skip
    for ax, tolerance in zip(axes[0], tolerances, strict=True):
        curves = profile(runs, tolerance)
        end = 2 * max((curve[-1, 0] for curve in curves.values() if len(curve)), default=1.0)
        for k, (solver, curve) in enumerate(curves.items()):
            tau = np.concatenate([[1.0], curve[:, 0], [end]]) if len(curve) else np.array([1.0, end])
            share = np.concatenate([[0.0], curve[:, 1], curve[-1:, 1]]) if len(curve) else np.zeros(2)
            style = {"ls": "--"} if solver in PEERS else {"lw": 2}
            ax.step(tau, share, where="post", label=solver, color=f"C{k}", **style)
        ax.set(xscale="log", xlabel="CPU time over the fastest", title=f"residual {tolerance:.0e}", ylim=(-0.02, 1.05))
    axes[0, 0].set_ylabel(f"share of {results['problems']} problems solved")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(out / "solvers.png", dpi=150)
    plt.close(figure)
