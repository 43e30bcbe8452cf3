"""The command ``cdyn``: errors are one sentence on stderr with exit code 2, no traceback unless ``--debug``."""

import contextlib
import os
import sys
from pathlib import Path

import click

from ._version import __version__
from .errors import ConvergenceError, InputError, RankError, RunawayError
from .rigid.interrupts import ended_by_sigterm


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cdyn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def commands(debug):
    """Contact Dynamics: run the experiments of the papers and your own."""


@commands.command("list")
def list_experiments():
    """List the experiments, one line each, with the paper's figure."""
    from .experiments import runner

    for name in runner.names():
        experiment = runner.load(name)
        click.echo(f"{name:<20} {experiment.title} [{experiment.module.FIGURE}]")


@commands.command("run", add_help_option=False)
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="A shorter form of the experiment.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change an option (repeatable).")
@click.option("--from-data", is_flag=False, flag_value="true", metavar="[FILE]",
              help="Draw from a stored run, FILE or that in examples/data of the source, not computing.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [default: results/NAME].")
@click.option("--force", is_flag=True, help="Overwrite the results of an earlier run in the folder.")
@click.option("-h", "--help", "help_asked", is_flag=True, help="Show this, and the options of NAME, and stop.")
@click.pass_context
def run_experiment(context, name, quick, settings, from_data, out, force, help_asked):
    """Run an experiment by NAME, or from the path of your own experiment file."""
    if help_asked:
        click.echo(context.get_help())
        return _tell_options(name) if name else 0
    if not name:
        raise click.UsageError("Missing argument 'NAME'.")
    from rich.console import Console

    from .experiments import runner

    pairs = _pairs(settings)
    if from_data is not None:
        pairs["from_data"] = from_data
    experiment = runner.load(name)
    parameters = runner.parameters_of(experiment, pairs, quick)
    out = out or Path("results") / experiment.name
    with _shared(), Console(stderr=True).status(f"{experiment.name}: {experiment.title}") as status:
        _use_headless_figures()
        summary, verdict = runner.run(experiment, parameters, out, quick=quick, force=force, before_scene=status.stop)
    _print_table(summary, verdict)
    sound = _print_audits(summary)
    audit = f"; {summary['audit']}" if summary["audit"] else ""
    click.echo(f"{summary['seconds']:.1f} s{audit}; written to {out}/")
    return 0 if verdict.passed and sound else 1


@commands.command("study")
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUES",
              help="Values of an option: 0.1:0.9:9 (nine numbers), 1..20, or 1,2,3 (repeatable).")  # fmt: skip
@click.option("--quick", is_flag=True, help="A shorter form of the experiment.")
@click.option("--workers", type=int, help="Processes of this machine [default: as many as it has cores].")
@click.option("--scheduler", metavar="ADDRESS", help="Let the workers of a dask scheduler make the runs.")
@click.option("--mpi", is_flag=True, help="Let the other processes of mpiexec make the runs.")
@click.option("--plot", "plots", multiple=True, metavar="RESULT:OPTION",
              help="Draw a result against an option, mean and deviation over the rest (repeatable).")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the study [default: results/study-NAME].")
@click.option("--again", is_flag=True, help="Try those runs again that failed before.")
def make_study(*, name, settings, quick, workers, scheduler, mpi, plots, out, again):
    """Run experiment NAME for every combination of values; a study that was cut off goes on."""
    from .experiments import runner
    from .studies import executors, grid
    from .studies.runs import study

    if sum((workers is not None, scheduler is not None, mpi)) > 1:
        raise InputError("--workers, --scheduler and --mpi exclude each other; give one of them.")
    _use_headless_figures()
    experiment = runner.load(name)
    defaults = experiment.module.PARAMETERS
    values = {key: grid.values_of(key, text, defaults.get(key)) for key, text in _pairs(settings).items()}
    asked = [_asked_plot(text, defaults) for text in plots]
    place = executors.dask(scheduler) if scheduler is not None else executors.mpi() if mpi else contextlib.nullcontext()
    with place as executor:
        table = study(name, values, out=out, quick=quick, executor=executor, workers=workers, again=again)
    _draw_study(table, asked)
    failed = [row for row in table.rows if row["error"] is not None]
    differ = sum(row["passed"] is False for row in table.rows)
    for row in failed[:5]:
        click.echo(f"cdyn: {row['folder']}: {row['error']}", err=True)
    said = f"{len(table)} runs, {len(failed)} failed" + (f", {differ} differ from what is expected" if differ else "")
    click.echo(f"{said}; written to {table.folder}/study.csv")
    return 1 if failed else 0


def _asked_plot(text: str, options: dict) -> tuple[str, str]:
    """RESULT:OPTION of ``--plot``; the option is one of the experiment's ``options``."""
    result, colon, option = text.partition(":")
    if not colon or not result or not option:
        raise InputError(f"--plot {text} is not RESULT:OPTION; write for example --plot slope:friction.")
    if option.strip() not in options:
        raise InputError(f"--plot {text}: there is no option {option!r}; choose one of {', '.join(options)}.")
    return result.strip(), option.strip()


def _draw_study(table, asked) -> None:
    """``study.png``: the plots asked for, or the first results against the first option that varies."""
    import matplotlib.pyplot as plt

    from .experiments.runner import written_safely

    numbers = [name for name in table.results if table.column(name).dtype != object]
    asked = asked or [(result, table.varied[0]) for result in numbers[:4] if table.varied]
    if not asked:
        return
    columns = min(2, len(asked))
    rows = -(-len(asked) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.5 * columns, 3.2 * rows), layout="constrained", squeeze=False)
    for ax in axes.flat[len(asked) :]:
        ax.remove()
    for (result, option), ax in zip(asked, axes.flat, strict=False):
        table.plot(result, option, ax=ax)
    with written_safely(table.folder) as scratch:
        figure.savefig(scratch / "study.png", dpi=150)
    plt.close(figure)


@commands.command("options")
@click.argument("name")
def list_options(name):
    """List the options of experiment NAME: defaults, quick values, meaning and what is possible."""
    return _tell_options(name)


def _tell_options(name: str) -> int:
    """One line for each option of an experiment."""
    from .experiments import options, runner

    experiment = runner.load(name)
    lines = options.listing(experiment.module.PARAMETERS, experiment.module.QUICK)
    return _print_options(f"{experiment.name}: {experiment.title}", lines)


def _print_options(title: str, lines: list) -> int:
    """The ``lines`` of `options.listing`, in columns."""
    click.echo(title)
    click.echo("Options, changed by --set KEY=VALUE:" if lines else "It has no options.")
    wide = [max(len(line[column]) for line in lines) for column in range(3)] if lines else []
    for key, default, fast, meaning, possible in lines:
        fast = f"quick: {fast:<{wide[2]}}" if fast else " " * (len("quick: ") + wide[2]) * (wide[2] > 0)
        bounds = f" [{possible}]" if possible else ""
        click.echo(f"  {key:<{wide[0]}}  {default:<{wide[1]}}  {fast}  {meaning}{bounds}".rstrip())
    return 0


@commands.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--from", "source", metavar="NAME", help="Copy this experiment [default: a small one that explains itself]."
)
@click.option("--force", is_flag=True, help="Overwrite FILE where there is one.")
def new(file, source, force):
    """Write an experiment file to change: run it with `cdyn run FILE`."""
    from .experiments import runner

    runner.write_new(file, source, force=force)
    click.echo(f"written to {file}; run it with `cdyn run {file}`, see its options with `cdyn options {file}`")


def _pairs(settings) -> dict[str, str]:
    """The settings key=value of a command."""
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting} has no '='; write --set key=value.")
        pairs[key.strip()] = value.strip()
    return pairs


@contextlib.contextmanager
def _shared():
    """Under mpiexec the simulations of a command share its processes; all but the first one are silent.

    Each of them does the same; the first one writes.
    """
    from .rigid.ranks import SHARED, world

    ours = world.of_launcher()
    if ours is None:
        yield
        return
    if not ours.leads:
        sys.stdout = sys.stderr = open(os.devnull, "w")
    token = SHARED.set(ours)
    try:
        yield
    except BaseException as error:
        ours.stop(error)
        raise
    finally:
        SHARED.reset(token)


def _use_headless_figures():
    """Draw into files, never into windows; what is drawn last need not be loaded first."""
    os.environ["MPLBACKEND"] = "Agg"
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use("Agg")


def _print_table(summary, verdict):
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{summary['experiment']}: {summary['title']}", title_justify="left")
    for heading in ("quantity", "expected", "source", "computed", "verdict"):
        table.add_column(heading)
    for row in verdict.rows:
        mark = "[green]agrees[/]" if row.passed else "[red]differs[/]"
        table.add_row(row.quantity, _short(row.expected), row.source, _short(row.computed), mark)
    Console().print(table)


def _print_audits(summary) -> bool:
    """What `cdyn audit` says of the files of a run, in a line each; whether nothing fails that was not known to."""
    sound = True
    for name, found in summary["audited"].items():
        said = []
        for check, words in found["failed"].items():
            known = found["known"].get(check)
            sound = sound and known is not None
            said.append(f"{check} FAILS: {words}" + (f" (known: {known})" if known else ""))
        click.echo(f"audit of {name}: " + ("; ".join(said) or f"all {found['made']} checks hold"))
    return sound


def _short(value) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_short(v) for v in value)
    return "" if value is None else str(value)


@commands.command("info")
@click.argument("file")
def info(file):
    """Say what a result file holds."""
    from .files import hdf5 as storage

    with storage.open(file) as recording:
        for line in storage.describe(recording):
            click.echo(line)


@commands.command("audit")
@click.argument("file")
def audit_file(file):
    """Check a result file: energies, impulses, overlaps, balance; the exit code is 1 where something does not hold."""
    from .analysis.audit import audit
    from .files import hdf5 as storage

    with storage.open(file) as recording:
        lines = audit(recording)
    marks = {True: "holds", False: "FAILS", None: "-"}
    for line in lines:
        click.echo(f"{line.name:<16} {marks[line.holds]:<6} {line.words}")
    failed = [line.name for line in lines if line.holds is False]
    made = sum(line.holds is not None for line in lines)
    click.echo(f"{file}: {', '.join(failed) + ' failed' if failed else f'all {made} checks hold'}")
    return 1 if failed else 0


@commands.command("compare")
@click.argument("first")
@click.argument("second")
def compare_files(first, second):
    """Say where two runs first differ: step, body, quantity and by how much; the exit code is 0 where nowhere."""
    from .analysis.audit import compare
    from .files import hdf5 as storage

    with storage.open(first) as one, storage.open(second) as two:
        found = compare(one, two)
        steps, frames = one.steps, len(one)
    click.echo(f"the same bits: {steps} steps, {frames} frames" if found is None else found.words)
    return 0 if found is None else 1


@commands.command("plot")
@click.argument("file")
@click.option("--time", type=float, help="The frame nearest to this time [default: the last one].")
@click.option("--what", help="bodies, forces, stress, energy, residual or histograms [default: forces with curves].")
@click.option("--out", type=click.Path(path_type=Path), help="The picture: .png, .pdf, .svg [default: FILE with .png].")
def plot(file, time, what, out):
    """Draw a frame of a result file with contact forces and the energy ledger, or WHAT is asked for."""
    _use_headless_figures()
    from . import plotting
    from .experiments.runner import written_safely
    from .files import hdf5 as storage
    from .views.plots import PLOTS

    if what is not None and what not in PLOTS:
        raise InputError(f"--what got {what!r}; it is one of {', '.join(PLOTS)}.")
    out = out or Path(file).with_suffix(".png" if what is None else f".{what}.png")
    plotting.check_format(out)
    with storage.open(file) as recording:
        draw = plotting.plot_recording if what is None else PLOTS[what]
        figure = draw(recording, recording[-1] if time is None else recording.at(time))
    with written_safely(out.parent) as scratch:  # a picture made before is replaced, by a whole one
        figure.savefig(scratch / out.name, dpi=150)
    click.echo(f"written to {out}")


FORMS = ("html", "vtk", "csv", "ovito")
LARGE_PAGE = 40_000_000  # bytes


@commands.command("view")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen [default: a free one].")
@click.option("--browser/--no-browser", default=True, help="Open the browser, or only say the address.")
def view(file, port, browser):
    """Look at a run in the browser, also while it goes on; Ctrl-C ends it."""
    from .views.server import Server

    server = Server(file, port)
    click.echo(f"{file} is shown at {server.address} (Ctrl-C ends)")
    if browser:
        import webbrowser

        if not webbrowser.open(server.address):
            click.echo("cdyn: There is no browser here; open the address in one on this machine.", err=True)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0


@commands.command("film")
@click.argument("file")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--every", default=1, show_default=True, help="Take each so many frames; the last one is always in.")
@click.option("--rate", default=25.0, show_default=True, help="Pictures per second.")
@click.option("--size", default="1280x720", show_default=True, metavar="WxH", help="Points of a picture.")
@click.option("--view", default="", metavar="VIEW", help="AZIMUTH,ELEVATION in degrees, x, y, z or a link of the page.")
@click.option("--colour", help="By what; a wrong one lists what there is. Default: the link's, or speed.")
@click.option("--forces", is_flag=True, help="Contact forces above a tenth of the strongest (or the link's), as tubes.")
@click.option("--force", is_flag=True, help="Replace OUT where there is one.")
def film(*, file, out, every, rate, size, view, colour, forces, force):
    """Make a film of a run: OUT ends in .mp4 (with the extra `film`) or .gif."""
    from .files import hdf5 as storage
    from .progress import counted
    from .views import film as filming

    width, _, height = size.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise InputError(f"--size is {size!r}; give WIDTHxHEIGHT, such as 1280x720.")
    filming.check_ending(out)
    with storage.open(file) as recording, counted("pictures", len(filming.chosen(recording, every))) as advance:
        count = filming.write_film(recording, out, every=every, rate=rate, size=(int(width), int(height)), view=view,
                                   colour=colour, forces=forces, force=force, advance=advance)  # fmt: skip
    click.echo(f"written to {out}: {count} pictures, {count / rate:.1f} s, {out.stat().st_size / 1e6:.1f} MB")


@commands.command("export")
@click.argument("file")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="One page for any browser, to be mailed.")
@click.option("--vtk", metavar="DIR", type=click.Path(path_type=Path), help="Series for ParaView, into a folder.")
@click.option("--csv", metavar="DIR", type=click.Path(path_type=Path), help="Tables, into a folder.")
@click.option("--ovito", metavar="FILE", type=click.Path(path_type=Path), help="Extended XYZ for OVITO and ASE.")
@click.option("--every", default=1, show_default=True, help="Take each so many frames; the last one is always in.")
@click.option("--force", is_flag=True, help="Replace what an earlier export left there.")
def export(file, html, vtk, csv, ovito, every, force):
    """Write a run for other programs and people: --html, --vtk, --csv, --ovito, one or several."""
    from .files import hdf5 as storage
    from .progress import counted
    from .views import export as exporting

    asked = {name: place for name, place in zip(FORMS, (html, vtk, csv, ovito), strict=True) if place}
    if not asked:
        raise InputError("export was told no form; give --html FILE, --vtk DIR, --csv DIR or --ovito FILE.")
    with storage.open(file) as recording:
        for name, place in asked.items():
            count = len(exporting.chosen(recording, every))
            with counted(f"{name}: frames", count) as advance:
                write = getattr(exporting, f"export_{name}")
                done = write(recording, place, every=every, force=force, advance=advance)
            size = f", {done / 1e6:.1f} MB" if name == "html" else ""
            click.echo(f"written to {place}: {count} frames{size}")
            if name == "html" and done > LARGE_PAGE:
                less = -(-done * every // LARGE_PAGE)
                click.echo(f"cdyn: The page is large for a mail; --every {less} makes it smaller.", err=True)
            if name == "ovito" and done:
                click.echo(f"cdyn: {done} bodies with corners are left out: XYZ has balls alone, --vtk all.", err=True)
    return 0


@commands.command("resume")
@click.argument("file")
@click.option("--until", type=float, help="Simulated time at which to stop [default: that of the run].")
@click.option("--experiment", "own", metavar="PATH", help="Where your own experiment file is now, if it has moved.")
def resume(file, until, own):
    """Go on with an interrupted run, with the same bits as if it had not been interrupted.

    An experiment that reaches its end is checked and drawn, as by `cdyn run`.
    """
    _use_headless_figures()
    from .experiments import runner

    with _shared():
        said = lambda sentence: click.echo(f"cdyn: {sentence}", err=True)  # noqa: E731
        simulation = runner.resume(file, until, own=own, tell=said)
        click.echo(f"t = {simulation.time:g}, {simulation.audit()}; added to {file}")
        completed = runner.complete(file, simulation)
    if completed is None:
        return 0
    summary, verdict = completed
    _print_table(summary, verdict)
    sound = _print_audits(summary)
    click.echo(f"written to {Path(file).parent}/")
    return 0 if verdict.passed and sound else 1


@commands.command("solve")
@click.argument("file")
@click.option("--solver", default="auto", show_default=True, help="How: auto, or another name; a wrong one lists them.")
@click.option("--tolerance", type=float, default=1e-8, show_default=True, help="Residual at which it is solved.")
@click.option("--max-iterations", type=int, default=10_000, show_default=True, help="Where to give up.")
@click.option("--rank", is_flag=True, help="Tell also the rank of W, and how many impulses are undetermined.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [default: results/FILE].")
def solve_problem(file, solver, tolerance, max_iterations, rank, out):
    """Solve the contact problem of FILE (FCLIB's HDF5 or Siconos' .dat) and report; the exit code is 0 if solved."""
    from .files.problems import read_problem
    from .problem import solving

    _use_headless_figures()
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

    from .experiments.runner import plain, written_safely
    from .files.problems import write_problem

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


@commands.command("bench", add_help_option=False)
@click.argument("name", required=False)
@click.argument("argument", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change an option (repeatable).")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for summary.json and the CSV lines.")
@click.option("-h", "--help", "help_asked", is_flag=True, help="Show this, and the options of NAME, and stop.")
@click.pass_context
def bench(context, name, argument, settings, out, help_asked):
    """Measure speed: NAME is one of the benchmarks; without it, list them."""
    from . import bench as benchmarks

    if name is not None:
        name, argument = benchmarks.joined(name, argument)
    if help_asked:
        click.echo(context.get_help())
        click.echo()
        if name is not None:
            from .experiments import options

            title, told = benchmarks.options_of(name)
            return _print_options(f"{name}: {title}", options.listing(told, {}))
        name = None
    if name is None:
        for line in benchmarks.listing():
            click.echo(line)
        return 0
    pairs = _pairs(settings)
    return benchmarks.run(name, argument, out or Path("benchmarks"), click.echo, pairs)


def main(arguments=None):
    """Entry point: turns every foreseen error into one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        with ended_by_sigterm():
            code = commands.main(args=arguments or ["--help"], prog_name="cdyn", standalone_mode=False)
    except click.ClickException as error:
        said = error.format_message()
        joint = " " if said.endswith("?") else "; "
        code = _fail(f"{said.rstrip('.')}{joint}`cdyn --help` shows what is possible.", debug)
    except (InputError, ConvergenceError, RankError, RunawayError) as error:
        code = _fail(str(error), debug)
    except MemoryError as error:
        code = _fail(f"There is not enough memory ({error}); ask for less: fewer bodies, steps or samples.", debug)
    except OSError as error:
        code = _fail(f"{error.filename or 'A file'} cannot be read or written ({error.strerror or error}).", debug)
    except (KeyboardInterrupt, click.Abort) as stop:  # click makes the one of the other
        code = _fail(str(stop.__cause__ or stop) or "Interrupted.", False, 130)
    except Exception as error:
        code = _fail(
            f"{type(error).__name__}: {error}; this is a bug of the program or of your file: see --debug.", debug, 3
        )
    sys.exit(code or 0)


def _fail(sentence: str, debug: bool, code: int = 2) -> int:
    if debug:
        raise
    click.echo(f"cdyn: {sentence}", err=True)
    return code
