"""How results show themselves: one short line, and in notebooks the picture under it."""

import html

LONGEST = 160  # characters of a line


def short(self) -> str:
    """A named tuple in one line: numbers as they are, arrays by their shape, parts by their kind.

    >>> from typing import NamedTuple
    >>> class Result(NamedTuple):
    ...     degrees: float
    ...     radii: list
    ...     __repr__ = short
    >>> Result(26.123456789, [0.1] * 50)
    Result(degrees=26.1235, radii: 50 values)
    """
    parts = []
    for name, value in zip(self._fields, self, strict=True):
        said = _value(value)
        parts.append(f"{name}: {said[1:]}" if said.startswith(":") else f"{name}={said}")
    line = f"{type(self).__name__}({', '.join(parts)})"
    return line if len(line) <= LONGEST else line[: LONGEST - 2].rsplit(", ", 1)[0] + ", …)"


def _value(value) -> str:
    """A value in a few characters; with a colon in front where it is only described."""
    shape = getattr(value, "shape", None)
    if shape:
        return f":array {tuple(map(int, shape))}"
    if hasattr(value, "_fields"):
        return f":{type(value).__name__}"
    if isinstance(value, list | tuple | dict):
        return repr(value) if len(repr(value)) <= 40 else f":{len(value)} values"
    if isinstance(value, bool | int | str) or value is None:
        return repr(value) if len(repr(value)) <= 60 else f":{len(value)} characters"
    try:
        return f"{value:.6g}"
    except (TypeError, ValueError):
        return f":{type(value).__name__}"


def pictured(self) -> str:
    """HTML with the line of an object and the picture that its ``plot`` draws, inline; the line alone where that fails.

    No figure is left open.
    """
    return picture(repr(self), lambda: _figure(self.plot()))


def _figure(drawn):
    """The figure of what a ``plot`` returns: axes, or the figure itself."""
    return getattr(drawn, "figure", None) or drawn


def picture(line: str, draw) -> str:
    """HTML of a line of text and of the figure that ``draw()`` returns, as a PNG inside the page."""
    import base64
    import io
    import warnings

    text, before = f"<pre>{html.escape(line)}</pre>", None
    try:
        import matplotlib.pyplot as plt

        before = set(plt.get_fignums())
        with plt.ioff(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that is a courtesy has nothing to tell
            data = io.BytesIO()
            draw().savefig(data, format="png", dpi=80)
        coded = base64.b64encode(data.getvalue()).decode("ascii")
        return f'{text}<img alt="{html.escape(line, quote=True)}" src="data:image/png;base64,{coded}">'
    except Exception:  # whatever a picture may stumble over: the line is there
        return text
    finally:
        if before is not None:
            for number in set(plt.get_fignums()) - before:
                plt.close(number)
