"""The numeric tables of plates 5 and 6 as pictures: a block per instant, a line per algorithm."""

import math

import matplotlib.pyplot as plt

COLUMNS = (0.0, 0.09, 0.205, 0.31, 0.42)  # right edge of: time and exact angle, label, angle, violation, energy
MONO = {"family": "monospace", "fontsize": 8, "va": "center"}


def truncated(value: float, digits: int) -> float:
    """The value cut, not rounded, to the printed digits."""
    return math.floor(value * 10**digits) / 10**digits


def table(heading, times, exact, lines, footer="", marked=()):
    """Draw the table.

    ``lines`` maps a label to three sequences over ``times``: angle, violation, energy (None leaves a cell empty).
    ``marked`` holds the (label, column, index) of cells to highlight; column 0 is the angle, 1 the violation.
    """
    rows = len(lines) + 1
    half = math.ceil(len(times) / 2)
    height = half * rows
    footed = 1.5 + 1.1 * len(footer.splitlines())
    figure = plt.figure(figsize=(10.5, 0.185 * (height + 4.5 + footed)), layout="none")
    ax = figure.add_axes((0.03, 0.01, 0.94, 0.98))
    ax.set(xlim=(0, 1), ylim=(height + footed, -4.5))
    ax.axis("off")
    ax.text(0.5, -3.2, heading, ha="center", **MONO | {"fontsize": 9})
    for side in (0, 1):
        left = 0.07 + 0.5 * side
        for x, name in zip(COLUMNS, ("exact", "line", "angle", "violation", "energy"), strict=True):
            ax.text(left + x, -0.9, name, ha="right", **MONO | {"color": "0.4"})
        ax.plot([left - 0.055, left + COLUMNS[-1]], [-0.2, -0.2], color="0.6", lw=0.6)
    for k, (t, reference) in enumerate(zip(times, exact, strict=True)):
        left, top = 0.07 + 0.5 * (k // half), (k % half) * rows + 0.6
        ax.text(left + COLUMNS[0], top, f"t = {t:.1f}", ha="right", weight="bold", **MONO)
        ax.text(left + COLUMNS[0], top + 1, f"{truncated(reference, 5):.5f}", ha="right", **MONO)
        for i, (label, columns) in enumerate(lines.items()):
            ax.text(left + COLUMNS[1], top + i, label, ha="right", **MONO | {"color": "0.4"})
            for c, values in enumerate(columns):
                if values is not None:
                    box = {"bbox": {"fc": "#ffd54d", "ec": "none", "pad": 1.0}} if (label, c, k) in marked else {}
                    ax.text(left + COLUMNS[2 + c], top + i, _cell(values[k], c), ha="right", **MONO, **box)
    ax.text(0.015, height + 0.6, footer, ha="left", **MONO | {"va": "top"})
    return figure


def _cell(value: float, column: int) -> str:
    """Angles and violations as printed (cut downwards); energies rounded."""
    if column == 0:
        return f"{truncated(value, 5):.5f}"
    return f"{math.floor(value):d}" if column == 1 else f"{value + 0.0:.5f}".replace("-0.00000", "0.00000")
