"""The command on contact problems in files."""

from pathlib import Path

import click

from .._version import __version__
from ..errors import InputError
from .common import commands, use_headless_figures


@commands.command("solve")
@click.argument("file")
@click.option("--solver", default="auto", show_default=True, help="How: auto, or another name; a wrong one lists them.")
@click.option("--tolerance", type=float, default=1e-8, show_default=True, help="Residual at which it is solved.")
@click.option("--max-iterations", type=int, default=10_000, show_default=True, help="Where to give up.")
@click.option("--rank", is_flag=True, help="Tell also the rank of W, and how many impulses are undetermined.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [default: results/FILE].")
def solve_problem(file, solver, tolerance, max_iterations, rank, out):
    """Solve the contact problem of FILE (FCLIB's HDF5 or Siconos' .dat) and report; the exit code is 0 if solved."""
    from ..files.problems import read_problem
    from ..problem import solving

    use_headless_figures()
    solving.named(solver)
    problem, out = read_problem(file), out or Path("results") / Path(file).stem
    _check_solved(out)
    solving.warm_up(problem, solver)
    impulses, report = solving.solve(problem, solver=solver, tolerance=tolerance, max_iterations=max_iterations)
    redundancy = problem.redundancy() if rank else None
    click.echo(str(report))
    if rank:
        said = f"of {redundancy.rows} rows: {redundancy.free} components of the impulses are not determined"
        click.echo(f"  {'rank':<22}{redundancy.rank:<10}{said}, condition {redundancy.condition:.1e}")
    _write_solved(file, problem, impulses, report, redundancy, out)
    click.echo(f"written to {out}/")
    return 0 if report.converged else 1


def _check_solved(out: Path) -> None:
    """Refuse a folder that holds other results than those of an earlier `cdyn solve`."""
    path = out / "summary.json"
    if out.is_file() or (path.exists() and '"problem"' not in path.read_text(errors="replace")[:200]):
        raise InputError(f"{out} holds other results, or is a file; give another folder, --out FOLDER.")


def _write_solved(file, problem, impulses, report, redundancy, out: Path) -> None:
    """``summary.json``, ``solution.hdf5`` and ``convergence.png``, all or none."""
    import json

    from ..experiments.runner import plain, written_safely
    from ..files.problems import write_problem

    results = {name: getattr(report, name) for name in ("converged", "residual", "solver", "iterations", "cpu_seconds",
               "contacts", "residual_free", "residual_siconos", "bipotential", "cone_error", "worst", "worst_by",
               "tolerance", "stages", "evidence", "message")}  # fmt: skip
    if redundancy is not None:
        results |= {"redundancy": redundancy._asdict()}
    summary = {"problem": str(file), "version": __version__, "passed": report.converged, "results": results}
    with written_safely(out) as scratch:
        text = json.dumps(plain(summary), indent=1, ensure_ascii=False, allow_nan=False)
        (scratch / "summary.json").write_text(text + "\n")
        write_problem(
            problem, scratch / "solution.hdf5", solution=impulses, description=f"solution of {Path(file).name}"
        )
        if report.history:
            report.plot().figure.savefig(scratch / "convergence.png", dpi=150)
