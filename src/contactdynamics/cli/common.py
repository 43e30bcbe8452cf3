"""The group of all commands, and what several of them need."""

import contextlib
import os
import sys

import click

from .._version import __version__
from ..errors import InputError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cdyn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def commands(debug):
    """Contact Dynamics: run the experiments of the papers and your own."""


def pairs_of(settings) -> dict[str, str]:
    """The settings key=value of a command."""
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting} has no '='; write --set key=value.")
        pairs[key.strip()] = value.strip()
    return pairs


@contextlib.contextmanager
def shared():
    """Under mpiexec the simulations of a command share its processes; all but the first one are silent.

    Each of them does the same; the first one writes.
    """
    from ..rigid.ranks import SHARED, world

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


def use_headless_figures():
    """Draw into files, never into windows; what is drawn last need not be loaded first."""
    os.environ["MPLBACKEND"] = "Agg"
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use("Agg")


def print_options(title: str, lines: list) -> int:
    """The ``lines`` of `options.listing`, in columns."""
    click.echo(title)
    click.echo("Options, changed by --set KEY=VALUE:" if lines else "It has no options.")
    wide = [max(len(line[column]) for line in lines) for column in range(3)] if lines else []
    for key, default, fast, meaning, possible in lines:
        fast = f"quick: {fast:<{wide[2]}}" if fast else " " * (len("quick: ") + wide[2]) * (wide[2] > 0)
        bounds = f" [{possible}]" if possible else ""
        click.echo(f"  {key:<{wide[0]}}  {default:<{wide[1]}}  {fast}  {meaning}{bounds}".rstrip())
    return 0


def print_table(summary, verdict) -> None:
    """What the verdict on an experiment compares, a row for each quantity."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{summary['experiment']}: {summary['title']}", title_justify="left")
    for heading in ("quantity", "expected", "source", "computed", "verdict"):
        table.add_column(heading)
    for row in verdict.rows:
        mark = "[green]agrees[/]" if row.passed else "[red]differs[/]"
        table.add_row(row.quantity, _short(row.expected), row.source, _short(row.computed), mark)
    Console().print(table)


def print_audits(summary) -> bool:
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
