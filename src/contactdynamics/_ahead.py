"""A second process compiles what a first run will need, from the last kernel to the first: they meet in the middle.

A scene needs some thirty kernels, and each is compiled where it is first called; Numba compiles one at a time in a
process. `kernels.txt` has them for scenes of balls, of polygons and of polyhedra, in the order of their first call,
with the types that they are called with (written by `tools/kernels.py`). What the second process leaves in the cache
the first one loads. A line that no longer holds costs time and nothing else.

Types are written as float64, array types as float64:2C (dimensions, layout; ! where read-only), pointers as *float64,
tuples as (float64 int64), named tuples with their class in front: state.Bodies(...).
"""

import atexit
import contextlib
import importlib
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

from numba.core import types

LIST = Path(__file__).with_name("kernels.txt")
SWITCH = "CONTACTDYNAMICS_AHEAD"  # in the environment: "0" for one process alone
TOKEN = re.compile(r"[^\s()]+\(?|[()]")
_expected = None  # the sort of the scene whose kernels are needed next


def expect(sort: str | None) -> None:
    """Say which kernels are needed next: those of "balls", "polygons" or "polyhedra"; None for others."""
    global _expected
    _expected = sort


def start() -> None:
    """Begin with the expected kernels in a second process, where there is a core for it; called once."""
    alone = os.environ.get(SWITCH) == "0" or multiprocessing.parent_process() is not None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if _expected is None or alone or cores < 2:
        return
    script = f"from contactdynamics import _ahead; _ahead.work({_expected!r}, {os.getpid()})"
    with contextlib.suppress(OSError):
        helper = subprocess.Popen(
            [sys.executable, "-c", script], env=os.environ | {SWITCH: "0", "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(_end, helper)


def _end(helper) -> None:
    """Leave no process behind; what it has written to the cache is whole."""
    helper.terminate()
    helper.wait()


def work(sort: str, parent: int) -> None:
    """Compile the kernels of a sort of scenes, the last ones first, as long as the ``parent`` lives."""
    for name, kinds in reversed(kernels()[sort]):
        if os.getppid() != parent:
            return
        with contextlib.suppress(Exception):  # of another version: the first process compiles what it needs
            _named(name).compile(tuple(read(kinds)))


def kernels() -> dict:
    """By sort of scenes: names of kernels and the types of their arguments as text, in the order of the list."""
    out, sort = {}, None
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(" "):
            sort = out.setdefault(line, [])
        elif line:
            name, _, kinds = line.strip().partition(" ")
            sort.append((name, kinds))
    return out


# ---- types as text ---------------------------------------------------------------------------------------------------


def _named(name: str):
    """What a module of the package has by this name."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), own)


def write(kind) -> str:
    """A type of Numba as text."""
    if isinstance(kind, types.Array):
        return f"{kind.dtype}:{kind.ndim}{kind.layout}{'' if kind.mutable else '!'}"
    if isinstance(kind, types.CPointer):
        return f"*{write(kind.dtype)}"
    if isinstance(kind, types.BaseTuple):
        made = getattr(kind, "instance_class", None)
        name = "" if made is None else f"{made.__module__.removeprefix(__package__ + '.')}.{made.__qualname__}"
        return f"{name}({' '.join(map(write, kind.types))})"
    return str(kind)


def read(text: str) -> list:
    """The types of Numba that `write` has written, one after the other."""
    found, _ = _read(TOKEN.findall(text), 0)
    return found


def _plain(name: str):
    """The type of a number."""
    return types.boolean if name == "bool" else getattr(types, name)


def _read(tokens: list, at: int) -> tuple[list, int]:
    """Types up to the next closing bracket, and where it stands."""
    out = []
    while at < len(tokens) and tokens[at] != ")":
        token, pointers = tokens[at].lstrip("*"), len(tokens[at]) - len(tokens[at].lstrip("*"))
        if token.endswith("("):
            parts, at = _read(tokens, at + 1)
            kind = types.BaseTuple.from_types(tuple(parts), _named(token[:-1]) if token != "(" else None)
        elif ":" in token:
            kind, _, shape = token.partition(":")
            kind = types.Array(_plain(kind), int(shape[0]), shape[1], readonly=shape.endswith("!"))
        else:
            kind = _plain(token)
        for _ in range(pointers):
            kind = types.CPointer(kind)
        out.append(kind)
        at += 1
    return out, at
