"""Pictures and films of a run with shaded bodies: `cdyn film`.

Pictures are made twice as large as they come out, and halved: edges are smooth. The range of the colours is the same in
the whole film; the outermost two hundredths of the bodies may lie beyond it.
"""

import math
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

import numpy as np

from .. import quaternions
from ..errors import InputError, is_number, is_whole
from ..state import FIXED, FREE, Frame
from . import packing
from .export import new_file
from .measures import in_space, measure, outlines, quaternions_of, touching
from .packing import chosen

VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
FORCES = ("#fdbb84", "#ef6548", "#b2182b", "#5b0f00")
NAMED = ("#c9b48f", "#7f9fbf", "#b07aa1", "#59a14f", "#e15759", "#f28e2b", "#76b7b2", "#edc948", "#9c755f", "#bab0ac")
KINDS = ("#c9b48f", "#9a9a9a", "#7f9fbf")
GREY = np.array([0.6, 0.6, 0.6])
COLOURINGS = ("speed", "spin", "contacts", "pressure", "force", "material", "birth", "kind", "number")
ENDINGS = (".mp4", ".gif")
SAMPLES = 12  # frames that the range of the colours is taken from
FINER = 2  # points of the picture that is made, per point of the one that comes out


class Asked(NamedTuple):
    """What a picture shows, beside from where."""

    colour: str = "speed"
    range: tuple[float, float] | None = None  # of the colours; None: that of the bodies
    forces: bool = False
    threshold: float = 0.1  # forces above this share of the strongest are shown
    bodies: bool = True
    cut: tuple[int, float, float] | None = None  # axis, place and half of the thickness of a slice, m


def asked_of(view: str, colour: str | None, forces: bool) -> Asked:
    """What the link of a page asks for, where ``view`` is one; ``colour`` and ``forces`` go before it."""
    said = parse_qs(view.rpartition("#")[2]) if "camera=" in view else {}

    def numbers(name, count):
        try:
            found = [float(v) for v in said[name][0].split(",")]
        except (KeyError, ValueError):
            return None
        return found if len(found) == count and np.isfinite(found).all() else None

    if colour is None and said.get("colour", [""])[0] in COLOURINGS:
        colour, held = said["colour"][0], numbers("range", 2)
    else:
        colour, held = colour or "speed", None
    cut, threshold = numbers("cut", 3), numbers("threshold", 1)
    return Asked(
        colour, tuple(held) if held and held[0] < held[1] else None, forces or numbers("forces", 1) == [1.0],
        threshold[0] if threshold else 0.1, numbers("bodies", 1) != [0.0],
        (int(cut[0]), cut[1], cut[2]) if cut and cut[0] in (0, 1, 2) else None,
    )  # fmt: skip


class View(NamedTuple):
    """From where a picture is seen: an orthographic projection."""

    middle: np.ndarray  # (3,) what is in the middle of the picture
    right: np.ndarray  # (3,)
    up: np.ndarray  # (3,)
    half: float  # height of the picture over 2, m

    @property
    def back(self) -> np.ndarray:
        """(3,) away from the reader."""
        return np.cross(self.up, self.right)


def rgb(name: str) -> np.ndarray:
    """A colour as three numbers from 0 to 1."""
    return np.array([int(name[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def ramp(names, share: np.ndarray) -> np.ndarray:
    """Colours (k, 3) at shares (k,) of the way through the named ones."""
    stops = np.array([rgb(name) for name in names])
    at = np.clip(np.nan_to_num(share), 0.0, 1.0) * (len(stops) - 1)
    return np.stack([np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)], axis=1)


def view_of(text: str, dimension: int, low, high, aspect: float) -> View:
    """The view that ``text`` says: empty, "AZIMUTH,ELEVATION" in degrees, an axis, or a link of the page.

    ``low``, ``high`` (3,) are the corners of the box that is to be seen.
    """
    middle, size = 0.5 * (low + high), high - low
    if "camera=" in text:
        try:
            numbers = [float(v) for v in parse_qs(text.rpartition("#")[2])["camera"][0].split(",")]
            place, target, zoom = np.array(numbers[:3]), np.array(numbers[3:6]), numbers[6]
        except (KeyError, ValueError, IndexError):
            raise InputError(
                f"--view got the link {text[:60]!r}, which holds no view; copy it from the page."
            ) from None
        try:
            half = float(parse_qs(text.rpartition("#")[2])["half"][0])
        except (KeyError, ValueError):
            half = 0.56 * max(size[1], size[0] / aspect) / zoom
        if dimension == 2:
            return View(target, np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), half)
        away = place - target
        return _turned(away, target, float(np.sqrt(away @ away)) * math.tan(math.radians(17.5)) / zoom)
    if dimension == 2:
        if text:
            raise InputError(f"--view got {text!r}, but the run is flat; leave it out, or give a link of the page.")
        half = max(0.61 * size[1], 0.54 * size[0] / aspect)
        down = np.array(
            [0.0, max(0.0, 0.59 * size[1] - 0.88 * half) + 0.1 * half, 0.0]
        )  # a strip below, for the labels
        return View(middle - down, np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), half)
    axes = {"x": (0.0, 0.0), "y": (-90.0, 0.0), "z": (-90.0, 90.0), "": (-120.0, 22.0)}
    try:
        azimuth, elevation = axes[text] if text in axes else (float(v) for v in text.split(","))
    except ValueError:
        raise InputError(
            f"--view got {text!r}; give AZIMUTH,ELEVATION in degrees, x, y, z or a link of the page."
        ) from None
    if not (is_number(azimuth) and is_number(elevation) and abs(elevation) <= 90):
        raise InputError(f"--view got {text!r}; give finite angles, the elevation from -90 to 90 degrees.")
    a, e = math.radians(azimuth), math.radians(elevation)
    away = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    view = _turned(away, middle, 1.0, a)
    corners = np.array([[(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
                        for i in (0, 1) for j in (0, 1) for k in (0, 1)]) - middle  # fmt: skip
    wide, tall = np.abs(corners @ view.right).max(), np.abs(corners @ view.up).max()
    return view._replace(half=1.06 * max(tall, wide / aspect))


def _turned(away, middle, half: float, azimuth: float | None = None) -> View:
    """The view from the direction ``away``, the third axis upwards."""
    away = away / np.sqrt(away @ away)
    azimuth = math.atan2(away[1], away[0]) if azimuth is None else azimuth
    right = np.array([-math.sin(azimuth), math.cos(azimuth), 0.0])
    return View(middle, right, np.cross(away, right), half)


class Painter:
    """Draws frames of a run: ``picture(frame)`` is an array (height, width, 3) of bytes."""

    def __init__(self, recording, frames, *, size=(1280, 720), view="", colour=None, forces=False):
        width, height = size
        if colour is not None and colour not in COLOURINGS:
            raise InputError(f"--colour got {colour!r}; it is one of {', '.join(COLOURINGS)}.")
        self.asked = asked_of(view, colour, forces)
        self.size, self.colour, self.forces = size, self.asked.colour, self.asked.forces
        self.recording, self.shapes = recording, packing.shapes_of(recording.shapes())
        self.dimension = self.shapes.frame.dimension
        corners, starts, rows = outlines(self.shapes.frame)
        self.mesh = packing._triangles(corners, starts, rows, self.dimension == 2) if len(rows) else None
        sample = [recording[k].inside() for k in sorted({frames[i] for i in _spread(len(frames), SAMPLES)})]
        self.low, self.high = self._box(sample)
        self.view = view_of(view, self.dimension, self.low, self.high, width / height)
        if self.colour == "birth":
            self.birth = packing.births(recording, range(len(recording)), self.shapes)
        self.range = self.asked.range or self._range(sample)
        self.strongest = max((touching(frame).normal_force.max(initial=0.0) for frame in sample), default=0.0)
        thick = np.where(np.isin(np.arange(len(self.shapes.radius)), rows), 0.5, 1.0) * self.shapes.radius
        sizes = thick[(self.shapes.frame.kinds == FREE) & (thick > 0)]  # blocks: about half of the ball around them
        self.typical = float(np.median(sizes)) if len(sizes) else 1.0

    def _box(self, frames) -> tuple[np.ndarray, np.ndarray]:
        """Opposite corners of the box that holds the free bodies of some frames; of all, where none is free."""
        lows, highs = [], []
        for frame in frames:
            slots = np.searchsorted(self.shapes.frame.identities, frame.identities)
            solid = ~self.shapes.plane[slots]
            keep = solid & (frame.kinds == FREE) if (solid & (frame.kinds == FREE)).any() else solid
            place, r = in_space(frame.positions[keep]), self.shapes.radius[slots[keep], None]
            if keep.any():
                lows.append((place - r).min(axis=0))
                highs.append((place + r).max(axis=0))
            if frame.cell is not None:
                ends = in_space(frame.edges_of_cell().reshape(-1, self.dimension))
                lows.append(ends.min(axis=0))
                highs.append(ends.max(axis=0))
        if not lows:
            return -np.ones(3), np.ones(3)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def _values(self, frame: Frame, m) -> np.ndarray:
        if self.colour == "speed":
            return np.sqrt((m.velocity**2).sum(axis=1))
        if self.colour == "spin":
            return np.sqrt((m.spin**2).sum(axis=1))
        if self.colour == "number":
            return frame.identities.astype(float)
        if self.colour == "birth":
            return self.birth[np.searchsorted(self.shapes.frame.identities, frame.identities)]
        return np.asarray(getattr(m, self.colour), dtype=float)

    def _range(self, frames) -> tuple[float, float]:
        if self.colour in ("material", "kind"):
            return 0.0, 1.0
        values = np.concatenate([self._values(frame, measure(frame))[frame.kinds == FREE] for frame in frames])
        if not len(values):
            return 0.0, 1.0
        low, high = np.quantile(values, (0.005, 0.995), method="nearest")
        low = 0.0 if 0 <= low < 1e-3 * high else low
        return (float(low), float(high)) if high > low else (float(low), float(low) + (abs(float(low)) or 1.0))

    def _tints(self, frame: Frame, m) -> np.ndarray:
        if self.colour == "kind":
            return np.array([rgb(KINDS[kind]) for kind in frame.kinds])
        if self.colour == "material":
            known = frame.materials if len(frame.materials) else np.zeros(len(frame.kinds), dtype=int)
            return np.array([rgb(NAMED[k % len(NAMED)]) for k in known.tolist()])
        low, high = self.range
        tints = ramp(VIRIDIS, (self._values(frame, m) - low) / (high - low))
        if self.colour not in ("number", "birth"):
            tints[frame.kinds == FIXED] = GREY
        return tints

    def _placed(self, points) -> np.ndarray:
        """Points (k, 3) of space as (x, y, depth) in points of the fine picture."""
        width, height = (FINER * n for n in self.size)
        view, scale = self.view, 0.5 * height / self.view.half
        local = points - view.middle
        return np.stack([0.5 * width + scale * (local @ view.right), 0.5 * height - scale * (local @ view.up),
                         scale * (local @ view.back)], axis=1)  # fmt: skip

    def picture(self, frame: Frame) -> np.ndarray:
        """The picture of a frame, with the time and the legend."""
        from . import raster

        width, height = (FINER * n for n in self.size)
        image = np.full((height, width, 3), 0.97, dtype=np.float32)
        depth = np.full((height, width), np.inf, dtype=np.float32)
        frame = frame.inside()
        m, flat, scale = measure(frame), self.dimension == 2, 0.5 * height / self.view.half
        tints = self._tints(frame, m)
        ghost = self.forces and not flat
        self._draw_planes(frame, image, depth, scale)
        shown = self._shown(in_space(frame.positions)) & self.asked.bodies
        rows = frame.ball_bodies
        placed = self._placed(in_space(frame.ball_centres))
        near = np.argsort(placed[:, 2], kind="stable")  # the nearest first: what they hide is not painted
        near = near[shown[rows[near]]]
        x, y, z = np.ascontiguousarray(placed[near].T)
        angle = frame.rotations[rows[near]] if flat else np.zeros(len(near))
        hand = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        raster.draw_balls(image, depth, x, y, z, scale * frame.ball_radii[near], tints[rows[near]], hand, flat, ghost)
        if self.mesh is not None:
            self._draw_mesh(frame, image, depth, tints, flat, ghost, shown)
        if self.forces and self.strongest > 0:
            self._draw_forces(frame, image, depth, scale, flat)
        if frame.cell is not None:
            self._draw_cell(frame, image, depth, flat)
        return self._labelled(raster.coarser(image, FINER), frame)

    def _shown(self, places) -> np.ndarray:
        """Which of the places (k, 3) lie in the slice; all, where there is none."""
        if self.asked.cut is None:
            return np.ones(len(places), dtype=bool)
        axis, at, half = self.asked.cut
        return np.abs(places[:, axis] - at) <= half

    def _draw_mesh(self, frame, image, depth, tints, flat, ghost, shown) -> None:
        from . import raster

        triangles, bodies, edges, edge_bodies = self.mesh
        row = np.full(len(self.shapes.radius), -1)
        slots = np.searchsorted(self.shapes.frame.identities, frame.identities)
        row[slots[shown]] = np.flatnonzero(shown)
        place, turn = in_space(frame.positions), quaternions_of(frame)

        def moved(local, owners):
            here = row[owners] >= 0
            rows, count = row[owners[here]], local.shape[1]
            q = np.repeat(turn[rows], count, axis=0)
            out = quaternions.turned(q, local[here].reshape(-1, 3))
            return (out + np.repeat(place[rows], count, axis=0)).reshape(-1, count, 3), rows

        corners, rows = moved(triangles, bodies)
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.maximum(np.sqrt((normal**2).sum(axis=1)), 1e-300)[:, None]
        seen = np.stack([normal @ self.view.right, normal @ self.view.up, -(normal @ self.view.back)], axis=1)
        seen *= np.where(seen[:, 2] < 0, -1.0, 1.0)[:, None]
        light = 0.46 + 0.45 * np.maximum(seen @ np.array(raster.LIGHT), 0.0) + 0.22 * seen[:, 2]
        light = np.ones(len(corners)) if flat else light
        placed = self._placed(corners.reshape(-1, 3)).reshape(-1, 3, 3)
        raster.draw_triangles(image, depth, placed, light, tints[rows], ghost)
        ends, rows = moved(edges, edge_bodies)
        placed = self._placed(ends.reshape(-1, 3)).reshape(-1, 2, 3)
        raster.draw_tubes(image, depth, placed, np.full(len(placed), 0.8 * FINER), 0.35 * tints[rows], 3.0 * FINER)

    def _draw_planes(self, frame, image, depth, scale) -> None:
        from . import raster

        middle, reach = 0.5 * (self.low + self.high), 0.62 * float((self.high - self.low).max())
        corners = []
        for normal, point in zip(in_space(frame.plane_normals), in_space(frame.plane_points), strict=True):
            foot = middle - ((middle - point) @ normal) * normal
            if self.dimension == 2:
                along = 9 * reach * np.array([-normal[1], normal[0], 0.0])
                one, two, low = foot - along, foot + along, -0.05 * reach * normal
                corners += [[one, two, two + low], [one, two + low, one + low]]
            elif normal[2] > 0.5 and normal @ self.view.back < 0:  # floors that are seen from above
                one = np.cross(normal, [1.0, 0.0, 0.0])
                one *= reach / np.sqrt(one @ one)
                two = np.cross(normal, one)
                at = [foot + i * one + j * two for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
                corners += [[at[0], at[1], at[2]], [at[0], at[2], at[3]]]
        if corners:
            placed = self._placed(np.array(corners).reshape(-1, 3)).reshape(-1, 3, 3)
            placed[..., 2] += 1e-3 * scale * self.typical if self.dimension == 3 else 1.0  # behind what lies on them
            tint = np.full((len(placed), 3), 0.6 if self.dimension == 2 else 0.86)
            raster.draw_triangles(image, depth, placed, np.ones(len(placed)), tint, False)

    def _draw_forces(self, frame, image, depth, scale, flat) -> None:
        """Forces above a share of the strongest, from the centres of bodies that move to the contact point."""
        from . import raster

        t = touching(frame)
        share = np.where(self._shown(t.point), t.normal_force / self.strongest, -1.0)
        strong = (share > 0) & (share >= self.asked.threshold)
        ends, strength = [], []
        slots = np.searchsorted(self.shapes.frame.identities, frame.identities)
        for side in range(2):
            rows = t.rows[:, side]
            keep = strong & (frame.kinds[rows] != FIXED) & ~self.shapes.plane[slots[rows]]
            centre = frame.positions[rows[keep]]
            arm = frame.shortest(frame.contacts.point[keep] - centre)  # to the image beside this body
            ends.append(np.stack([in_space(centre), in_space(centre + arm)], axis=1))
            strength.append(np.minimum(share[keep], 1.0))
        ends, strength = np.concatenate(ends), np.concatenate(strength)
        wide = 0.35 * self.typical * scale * np.sqrt(strength)
        placed = self._placed(ends.reshape(-1, 3)).reshape(-1, 2, 3)
        nearer = 1e9 if flat else 0.0  # in the plane over everything
        raster.draw_tubes(image, depth, placed, np.maximum(wide, 1.0), ramp(FORCES, strength), nearer)

    def _draw_cell(self, frame, image, depth, flat) -> None:
        """The edges of the periodic cell, in short pieces: the painter looks at the whole box around each."""
        from . import raster

        edges, share = frame.edges_of_cell(), np.linspace(0.0, 1.0, 17)[:, None, None]
        points = edges[:, 0] * (1 - share) + edges[:, 1] * share
        ends = in_space(np.stack([points[:-1], points[1:]], axis=2).reshape(-1, self.dimension))
        placed = self._placed(ends).reshape(-1, 2, 3)
        tint, nearer = np.full((len(placed), 3), 0.4), 1e9 if flat else 0.0
        raster.draw_tubes(image, depth, placed, np.full(len(placed), 0.8 * FINER), tint, nearer)

    def _labelled(self, image: np.ndarray, frame: Frame) -> np.ndarray:
        from PIL import Image, ImageDraw

        picture = Image.fromarray(image)
        draw, font = ImageDraw.Draw(picture), _font(max(11, self.size[1] // 40))
        width, height = self.size
        unit = max(11, height // 40)
        at, said = (unit, height - 2 * unit), f"t = {frame.time:.4g}"
        left, top, right, bottom = draw.textbbox(at, said, font=font)
        paper, ink = (247, 247, 247), (28, 28, 28)
        draw.rectangle((left - 4, top - 4, right + 4, bottom + 4), fill=paper)
        draw.text(at, said, fill=ink, font=font)
        if self.colour not in ("material", "kind"):
            left, wide, top = width - 14 * unit, 13 * unit, height - 3 * unit
            draw.rectangle((left - unit // 2, top - 1.7 * unit, width - unit // 2, height - unit // 2), fill=paper)
            bar = np.rint(255 * ramp(VIRIDIS, np.linspace(0, 1, wide))).astype(np.uint8)
            picture.paste(Image.fromarray(np.repeat(bar[None], unit // 2, axis=0)), (left, top))
            name = {"contacts": "number of contacts", "force": "largest force"}.get(self.colour, self.colour)
            draw.text((left, top - 1.4 * unit), name, fill=ink, font=font)
            for value, at, anchor in ((self.range[0], left, "la"), (self.range[1], left + wide, "ra")):
                draw.text((at, top + 0.7 * unit), f"{value:.3g}", fill=ink, font=font, anchor=anchor)
        return np.asarray(picture)


def _font(size: int):
    from pathlib import Path

    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def _spread(count: int, most: int) -> list[int]:
    """Some of the numbers 0 to count - 1, evenly, both ends among them."""
    return sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)})


def check_size(size) -> tuple[int, int]:
    """A size of a picture in points, even numbers as films need them."""
    width, height = size
    if not (is_whole(width, 16) and is_whole(height, 16) and width <= 7680 and height <= 4320):
        raise InputError(f"--size is {width}x{height}; give WIDTHxHEIGHT, from 16 to 7680x4320 points.")
    return int(width) // 2 * 2, int(height) // 2 * 2


def check_ending(path: Path) -> None:
    """Refuse a film that cannot be written, before anything is computed."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path} has no ending of a film; give one of {', '.join(ENDINGS)}.")
    if path.suffix.lower() == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError:
            raise InputError(
                "MP4 needs the package imageio-ffmpeg: install it with `pip install contactdynamics[film]`, or give a "
                "name that ends in .gif."
            ) from None


def write_film(recording, path, *, every: int = 1, rate: float = 25.0, size=(1280, 720), view="", colour=None,
               forces: bool = False, force: bool = False, advance=lambda: None) -> int:  # fmt: skip
    """Write a film of each ``every``-th frame into ``path`` (.mp4 or .gif); returns the number of pictures.

    ``view`` is that of `view_of`; the link of a page also says colours, forces and slice, where ``colour`` and
    ``forces`` do not. By speed where nobody says it.
    """
    path, size = Path(path), check_size(size)
    check_ending(path)
    if not (is_number(rate) and 0.1 <= rate <= 240):
        raise InputError(f"--rate is {rate!r}; give pictures per second, from 0.1 to 240.")
    frames = chosen(recording, every)
    painter = Painter(recording, frames, size=size, view=view, colour=colour, forces=forces)

    def pictures():
        for k in frames:
            yield painter.picture(recording[k])
            advance()

    with new_file(path, force=force) as scratch:
        (_write_mp4 if path.suffix.lower() == ".mp4" else _write_gif)(pictures(), scratch, size, rate)
    return len(frames)


def _write_mp4(pictures, path, size, rate: float) -> None:
    import imageio_ffmpeg

    writer = imageio_ffmpeg.write_frames(
        str(path), size, fps=rate, codec="libx264", quality=None, macro_block_size=2, output_params=["-crf", "20"],
        ffmpeg_log_level="error",
    )  # fmt: skip
    writer.send(None)
    try:
        for picture in pictures:
            writer.send(np.ascontiguousarray(picture))
    finally:
        writer.close()


def _write_gif(pictures, path, size, rate: float) -> None:
    from PIL import Image

    def packed():
        for picture in pictures:
            yield Image.fromarray(picture).quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)

    images = packed()
    next(images).save(path, format="GIF", save_all=True, append_images=images, duration=max(20, 1000 / rate), loop=0,
                      disposal=1)  # fmt: skip
