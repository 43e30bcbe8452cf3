"""Scalars of a run as a table of text: the recorder `Table`."""

import csv

from ..errors import InputError, as_path, check_function, explained, is_number


def standard(simulation) -> dict:
    """The columns that every run has: time, step, contacts, energies; with a cell its shape, strain and stress."""
    e, report = simulation.energy, simulation.report
    row = {
        "time": simulation.time, "step": simulation.steps, "contacts": report.contacts,
        "iterations": report.iterations, "residual": report.residual, "kinetic": e.kinetic,
        "potential": e.potential, "drive_work": e.drive_work, "force_work": e.force_work, "closure": e.closure,
        "overlap": report.relative_penetration,
    }  # fmt: skip
    cell = simulation.cell
    if cell is not None:
        row["volume"] = cell.volume
        for name, tensor in (("strain", cell.strain), ("rate", cell.rate), ("stress", cell.stress),
                             ("asked", cell.asked), ("kinetic_stress", cell.kinetic_stress)):  # fmt: skip
            d = len(tensor)
            row |= {f"{name}_{'xyz'[i]}{'xyz'[j]}": float(tensor[i, j]) for i in range(d) for j in range(d)}
    for hook in simulation.before_step:
        if hasattr(hook, "measured") and hasattr(hook, "wall"):
            row |= {f"pressure_{hook.wall}": hook.measured, f"pressure_asked_{hook.wall}": hook.asked}
    return row


@explained
class Table:
    """Record scalars of a run into a CSV file, a line ``every`` so many steps (int) or seconds of the run (float).

    ``columns`` are further ones: a dict of names and functions of the simulation. A file that is there is not touched,
    but with ``overwrite=True``; a run that goes on from a result file adds its lines. Lines are written as they come.
    """

    def __init__(self, path, every: float | int = 1, *, columns: dict | None = None, overwrite: bool = False):
        self.path = as_path("Table", path)
        if isinstance(every, bool) or not (is_number(every) and every > 0):
            raise InputError(f"Table got every={every!r}; give a time (float) or a number of steps (int) > 0.")
        if not (columns is None or isinstance(columns, dict)):
            raise InputError(f"Table got columns={columns!r}; give a dict of names and functions of the simulation.")
        for name, function in (columns or {}).items():
            check_function(f"Table got the column {name}", function, "simulation")
        self.every, self.columns, self.overwrite = every, dict(columns or {}), overwrite
        self._names, self._goes_on = None, False

    def begin(self, simulation) -> None:
        """Write the names of the columns, once."""
        if self._names is not None:
            return
        if not self.path.parent.is_dir():
            raise InputError(f"There is no folder {self.path.parent} for {self.path.name}; create it first.")
        if self.path.exists() and not self.overwrite and not self._goes_on:
            if simulation.steps == 0 or self.path.is_dir():
                raise InputError(
                    f"There is a file {self.path} already; give Table another name, or overwrite=True to replace it."
                )
            self._goes_on = True
        twice = sorted(set(self.columns) & set(standard(simulation)))
        if twice:
            raise InputError(f"Table got a column {twice[0]!r}, which every table has; give it another name.")
        self._stride = self.every if isinstance(self.every, int) else max(1, round(self.every / simulation.time_step))
        self._names = list(self._row(simulation))
        if not self._goes_on:
            with self.path.open("w", newline="") as file:
                csv.writer(file).writerow(self._names)
            self._write(simulation)

    def _row(self, simulation) -> dict:
        row = standard(simulation)
        for name, function in self.columns.items():
            row[name] = function(simulation)
            if not (is_number(row[name]) or isinstance(row[name], float)):
                raise InputError(f"The column {name!r} of a Table is {row[name]!r}; its function must return a number.")
        return row

    def _write(self, simulation) -> None:
        row = self._row(simulation)
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow([repr(float(row.get(name, float("nan")))) for name in self._names])

    def __call__(self, simulation) -> None:
        """A line, where it is time for one."""
        if simulation.steps % self._stride == 0:
            self._write(simulation)

    def end(self, simulation) -> None:
        """Nothing is left to write."""
