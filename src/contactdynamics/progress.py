"""Progress bars: of a run (time elapsed and left, simulated time, bodies, contacts, sweeps, residual), of a count."""

import contextlib
import sys
import time


@contextlib.contextmanager
def progress_bar(simulation, count: int, wanted: bool | None):
    """A function to call after each step; it draws on a terminal (or when ``wanted``), and does nothing elsewhere."""
    if not (sys.stderr.isatty() if wanted is None else wanted) or count == 0:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    # narrow enough for 80 columns
    columns = (BarColumn(bar_width=8), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(compact=True),
               TextColumn("{task.description}"))  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        task, last, done = bar.add_task("", total=count), time.perf_counter(), 0

        def advance():
            nonlocal last, done
            done += 1
            now = time.perf_counter()
            if now - last > 0.2 or done == count:
                last, report = now, simulation.report
                text = (
                    f"t={simulation.time:.4g} {len(simulation.roster.rows)} bodies {report.contacts} contacts "
                    f"{report.iterations} sweeps {report.residual:.0e}"
                )
                bar.update(task, completed=done, description=text)

        yield advance
    Console(stderr=True).print(f"t = {simulation.time:.6g}: {simulation.audit()}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def counted(what: str, count: int):
    """A function to call after each of ``count`` things; it draws a bar on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("left"),
               TimeRemainingColumn(compact=True))  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        task = bar.add_task(what, total=count)
        yield lambda: bar.advance(task)
