"""Commands that run something: experiments, studies of them, benchmarks."""

import contextlib
from pathlib import Path

import click

from ..errors import InputError
from .common import commands, pairs_of, print_audits, print_options, print_table, shared, use_headless_figures


@commands.command("list")
def list_experiments():
    """List the experiments, one line each, with the paper's figure."""
    from ..experiments import runner

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

    from ..experiments import runner

    pairs = pairs_of(settings)
    if from_data is not None:
        pairs["from_data"] = from_data
    experiment = runner.load(name)
    parameters = runner.parameters_of(experiment, pairs, quick)
    out = out or Path("results") / experiment.name
    with shared(), Console(stderr=True).status(f"{experiment.name}: {experiment.title}") as status:
        use_headless_figures()
        summary, verdict = runner.run(experiment, parameters, out, quick=quick, force=force, before_scene=status.stop)
    print_table(summary, verdict)
    sound = print_audits(summary)
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
    from ..experiments import runner
    from ..studies import executors, grid
    from ..studies.runs import study

    if sum((workers is not None, scheduler is not None, mpi)) > 1:
        raise InputError("--workers, --scheduler and --mpi exclude each other; give one of them.")
    use_headless_figures()
    experiment = runner.load(name)
    defaults = experiment.module.PARAMETERS
    values = {key: grid.values_of(key, text, defaults.get(key)) for key, text in pairs_of(settings).items()}
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

    from ..experiments.runner import written_safely

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
    from ..experiments import options, runner

    experiment = runner.load(name)
    lines = options.listing(experiment.module.PARAMETERS, experiment.module.QUICK)
    return print_options(f"{experiment.name}: {experiment.title}", lines)


@commands.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--from", "source", metavar="NAME", help="Copy this experiment [default: a small one that explains itself]."
)
@click.option("--force", is_flag=True, help="Overwrite FILE where there is one.")
def new(file, source, force):
    """Write an experiment file to change: run it with `cdyn run FILE`."""
    from ..experiments import runner

    runner.write_new(file, source, force=force)
    click.echo(f"written to {file}; run it with `cdyn run {file}`, see its options with `cdyn options {file}`")


@commands.command("bench", add_help_option=False)
@click.argument("name", required=False)
@click.argument("argument", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change an option (repeatable).")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for summary.json and the CSV lines.")
@click.option("-h", "--help", "help_asked", is_flag=True, help="Show this, and the options of NAME, and stop.")
@click.pass_context
def bench(context, name, argument, settings, out, help_asked):
    """Measure speed: NAME is one of the benchmarks; without it, list them."""
    from .. import bench as benchmarks

    if name is not None:
        name, argument = benchmarks.joined(name, argument)
    if help_asked:
        click.echo(context.get_help())
        click.echo()
        if name is not None:
            from ..experiments import options

            title, told = benchmarks.options_of(name)
            return print_options(f"{name}: {title}", options.listing(told, {}))
        name = None
    if name is None:
        for line in benchmarks.listing():
            click.echo(line)
        return 0
    pairs = pairs_of(settings)
    return benchmarks.run(name, argument, out or Path("benchmarks"), click.echo, pairs)
