"""The page on which a run is looked at: one self-contained file, or what a server hands out piece by piece.

`Pieces` are the parts of a page: an index (JSON), the shapes of the bodies, and groups of frames (`views.packing`). The
program of the page is in ``page/viewer.js``, made from the sources in the folder ``viewer`` of the repository.
"""

import base64
import html
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from .._version import __version__
from ..display import LONGEST
from ..scenes.frames import Moment, make_frame
from ..state import Frame
from . import packing

HEIGHT = 560  # of a page inside a notebook, in pixels
LARGEST = 8e6  # bytes of a page inside a notebook


@lru_cache
def _part(name: str) -> str:
    return (files("contactdynamics.views") / "page" / name).read_text(encoding="utf-8")


def in_script(value) -> str:
    """JSON that can stand in a page: no name in it ends the script."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class Pieces:
    """The parts of the page of a run: of the ``frames`` (numbers) of what is indexed like a `Recording`."""

    def __init__(self, source, frames=None, *, contacts: bool = True):
        self.source, self.contacts = source, contacts
        self.frames = list(range(len(source))) if frames is None else list(frames)
        self.shapes = packing.shapes_of(source.shapes())

    @property
    def groups(self) -> int:
        """How many groups of frames there are."""
        return -(-len(self.frames) // packing.GROUP)

    def index(self) -> dict:
        """What the page reads first."""
        source, d = self.source, self.shapes.frame.dimension
        return {
            "name": source.path.name, "times": [float(source.times[k]) for k in self.frames], "group": packing.GROUP,
            "bodies": len(self.shapes.radius), "curves": packing.curves_of(source.log),
            "materials": [material["name"] for material in source.parameters["materials"]],
            "about": f"{d}D, {len(self.shapes.radius)} bodies, contactdynamics {__version__}",
        }  # fmt: skip

    def shapes_box(self) -> bytes:
        """What does not change, with the time of the first frame of each body."""
        return packing.shapes_box(self.shapes, packing.births(self.source, self.frames, self.shapes))

    def group_box(self, g: int) -> bytes:
        """The frames of group ``g``."""
        numbers = self.frames[g * packing.GROUP : (g + 1) * packing.GROUP]
        return packing.group_box([self.source[k].inside() for k in numbers], self.shapes, self.contacts)


class Still:
    """The present state of a simulation, as a run of one frame."""

    def __init__(self, simulation):
        self.frame, tables = simulation.frame(), simulation.by_number()
        b = tables.bodies
        still = tables._replace(bodies=b._replace(position=np.zeros_like(b.position), orientation=b.principal))
        d, none = self.frame.dimension, type(self.frame.contacts)(*(part[:0] for part in self.frame.contacts))
        laws = simulation.scene.materials.laws()
        self._shapes = make_frame(Moment.none(d), still, none, laws)
        self.times, self.path = np.array([self.frame.time]), Path(f"t = {self.frame.time:.6g}")
        self.parameters = {"materials": [{"name": name} for name in simulation.scene.materials.names]}
        self.log = {"time": np.zeros(0)}

    def __len__(self):
        return 1

    def __getitem__(self, k) -> Frame:
        return self.frame

    def shapes(self) -> Frame:
        """See `Recording.shapes`."""
        return self._shapes

    def numbers(self, k) -> np.ndarray:
        """See `Recording.numbers`."""
        return self.frame.identities


def write(pieces: Pieces, path, advance=lambda: None) -> int:
    """Write the self-contained page; returns its size in bytes. The program stands before the data: a file that is cut
    off can still say so."""
    with Path(path).open("w", encoding="utf-8") as file:
        return sum(
            file.write(text) for text in texts(pieces, advance)
        )  # all of it is ASCII but for the page's own text


def texts(pieces: Pieces, advance=lambda: None):
    """The text of the page, part by part."""
    index = pieces.index()
    boxes = {"shapes": base64.b64encode(pieces.shapes_box()).decode()}
    for g in range(pieces.groups):
        boxes[str(g)] = base64.b64encode(pieces.group_box(g)).decode()
        for _ in pieces.frames[g * packing.GROUP : (g + 1) * packing.GROUP]:
            advance()
    index["lengths"] = {name: len(text) for name, text in boxes.items()}
    head, _, tail = _part("page.html").partition("@SCRIPTS@")
    yield head.replace("@TITLE@", html.escape(index["name"])).replace("@BODY@", "")
    yield f'<script type="application/json" id="index">{in_script(index)}</script>\n'
    yield f"<script>{_part('viewer.js')}</script>\n"
    for name, text in boxes.items():
        yield f'<script type="text/plain" id="part-{name}">{text}</script>\n'
    yield tail


def served() -> str:
    """The page that asks a server for its parts."""
    page = _part("page.html").replace("@TITLE@", "contactdynamics").replace("@BODY@", ' data-served="1"')
    return page.replace("@SCRIPTS@", '<script src="viewer.js"></script>')


def program() -> str:
    """The program of the page."""
    return _part("viewer.js")


class Page:
    """A page that shows itself in a notebook; ``save(path)`` writes it, ``open()`` shows it in the browser."""

    def __init__(self, pieces: Pieces):
        self.pieces = pieces
        self._text = "".join(texts(pieces))

    @property
    def size(self) -> int:
        """Characters of the page."""
        return len(self._text)

    def __repr__(self):
        name, frames = self.pieces.source.path.name, len(self.pieces.frames)
        return f"Page of {name}: {frames} frames, {self.size / 1e6:.2g} MB; .save(path) or .open() shows it"[:LONGEST]

    def _repr_html_(self) -> str:
        inside = html.escape(self._text, quote=True)
        return (f'<iframe sandbox="allow-scripts allow-downloads" width="100%" height="{HEIGHT}" '
                f'style="border: 0" srcdoc="{inside}"></iframe>')  # fmt: skip

    def save(self, path) -> Path:
        """Write the page into a file, which needs nothing else."""
        Path(path).write_text(self._text, encoding="utf-8")
        return Path(path)

    def open(self) -> Path:
        """Write the page into a temporary file, and open it in the browser; returns the file."""
        import tempfile
        import webbrowser

        path = self.save(Path(tempfile.mkdtemp(prefix="cdyn-")) / "page.html")
        webbrowser.open(path.as_uri())
        return path


def page_of(source, *, every: int | None = None, contacts: bool = True) -> Page:
    """The page of a recording: each ``every``-th frame; without it, as many frames as a notebook takes easily."""
    if every is None:
        sample = max(len(packing.group_box([source[len(source) - 1].inside()], packing.shapes_of(source.shapes()))), 1)
        every = max(1, -(-len(source) * sample * 4 // (3 * int(LARGEST))))
    return Page(Pieces(source, packing.chosen(source, every), contacts=contacts))


def page_of_simulation(simulation) -> Page:
    """The page of the present state of a simulation."""
    return Page(Pieces(Still(simulation)))
