"""Commands on result files: what is in them, whether to believe them, pictures, exports, going on."""

from pathlib import Path

import click

from ..errors import InputError
from .common import commands, print_audits, print_table, shared, use_headless_figures


@commands.command("info")
@click.argument("file")
def info(file):
    """Say what a result file holds."""
    from ..files import hdf5 as storage

    with storage.open(file) as recording:
        for line in storage.describe(recording):
            click.echo(line)


@commands.command("audit")
@click.argument("file")
def audit_file(file):
    """Check a result file: energies, impulses, overlaps, balance; the exit code is 1 where something does not hold."""
    from ..analysis.audit import audit
    from ..files import hdf5 as storage

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
    from ..analysis.audit import compare
    from ..files import hdf5 as storage

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
    use_headless_figures()
    from .. import plotting
    from ..experiments.runner import written_safely
    from ..files import hdf5 as storage
    from ..views.plots import PLOTS

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
    from ..views.server import Server

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
    from ..files import hdf5 as storage
    from ..progress import counted
    from ..views import film as filming

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
    from ..files import hdf5 as storage
    from ..progress import counted
    from ..views import export as exporting

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
    use_headless_figures()
    from ..experiments import runner

    with shared():
        said = lambda sentence: click.echo(f"cdyn: {sentence}", err=True)  # noqa: E731
        simulation = runner.resume(file, until, own=own, tell=said)
        click.echo(f"t = {simulation.time:g}, {simulation.audit()}; added to {file}")
        completed = runner.complete(file, simulation)
    if completed is None:
        return 0
    summary, verdict = completed
    print_table(summary, verdict)
    sound = print_audits(summary)
    click.echo(f"written to {Path(file).parent}/")
    return 0 if verdict.passed and sound else 1
