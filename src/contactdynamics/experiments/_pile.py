"""A poured pile read from its result file: its frames, and the numbers and cuts that checks and figures share."""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from contactdynamics import analysis
from contactdynamics.errors import InputError
from contactdynamics.state import FREE

FULL_POURING = 70.0  # s, of the papers' pile; in a shorter run the fossil layer has the same share of the pouring


class Cuts(NamedTuple):
    """Two strips through one point of the meridian half-plane, with the force density across each."""

    point: np.ndarray  # (2,) r, z
    segments: tuple  # two segments
    strips: tuple  # two `analysis.Strip`


class Epochs(NamedTuple):
    """Ground pressure of several epochs, scaled to the size of the last one, and that of the last frame."""

    final: analysis.Pressure
    mean: np.ndarray  # (K,)
    deviation: np.ndarray  # (K,) standard deviation over the epochs
    times: list


class Slopes(NamedTuple):
    """Slope of a growing pile over the later half of its pouring: it goes up and down with the avalanches."""

    times: np.ndarray  # (K,) s
    degrees: np.ndarray  # (K,)

    @property
    def mean(self) -> float:
        return float(self.degrees.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation over the frames; nan of one frame."""
        return float(self.degrees.std(ddof=1)) if len(self.degrees) > 1 else math.nan


class Pile:
    """A recording of the experiment, and what is asked about it."""

    def __init__(self, recording):
        self.recording = recording
        self.parameters = recording.parameters["about"]["parameters"]
        self.mean_diameter = 0.5 * (self.parameters["smallest"] + self.parameters["largest"])
        self.pouring = self.parameters["grains"] / self.parameters["rate"]
        static = recording._static
        self.first = int(static["identity"][static["kind"] == FREE][0])
        self.relaxed = recording[-1]

    # ---- frames ----------------------------------------------------------------------------------------------------

    @cached_property
    def poured(self):
        """The last frame while grains still came."""
        during = np.flatnonzero(self.recording.times <= self.pouring + 1e-9)
        return self.recording[int(during[-1])]

    @property
    def state(self) -> str:
        """What the last frame shows."""
        ended = self.relaxed.time > self.pouring
        return "relaxed pile" if ended else f"pile being poured, t = {self.relaxed.time:.4g} s"

    def dates(self, frame) -> np.ndarray:
        """(N,) when each grain was created, s; nan for the ground."""
        return np.where(frame.kinds == FREE, (frame.identities - self.first) / self.parameters["rate"], np.nan)

    @property
    def layers(self) -> list[tuple[float, float]]:
        """The dates of two fossil layers: the papers' one, and a later one of the same thickness."""
        share = min(1.0, self.pouring / FULL_POURING)
        early, late = (share * date for date in self.parameters["layer"])
        middle = 0.6 * self.pouring  # the surface grows as t^(2/3), a layer thins as t^(-2/3) at a given duration
        half = 0.5 * (late - early) * (middle / (0.5 * (early + late))) ** (2 / 3)
        return [(early, late), (middle - half, middle + half)]

    def epoch_times(self) -> np.ndarray:
        """Times of four frames: the first ones not before four epochs from the end of the layer to that of pouring."""
        times = self.recording.times
        epochs = np.linspace(self.layers[0][1], self.poured.time, 4)
        return times[np.minimum(np.searchsorted(times, epochs - 1e-9), len(times) - 1)]

    def pressure_times(self) -> np.ndarray:
        """Epochs of the second half of the pouring, and the relaxed pile."""
        return np.append(np.linspace(0.5, 1.0, 6) * self.pouring, self.recording.times[-1])

    def frames_at(self, times) -> list:
        """The frames nearest to the times, each once."""
        nearest = {int(np.argmin(np.abs(self.recording.times - t))) for t in times}
        return [self.recording[k] for k in sorted(nearest)]

    # ---- numbers ---------------------------------------------------------------------------------------------------

    @cached_property
    def slope(self):
        return analysis.slope(self.relaxed)

    @cached_property
    def slopes(self) -> Slopes:
        """Of all frames in the later half of the pouring."""
        times = self.recording.times
        during = np.flatnonzero((times >= 0.5 * self.pouring) & (times <= self.poured.time))
        frames = (self.recording[int(k)] for k in (during if len(during) else [len(times) - 1]))
        found = [(frame.time, analysis.slope(frame).degrees) for frame in frames]
        return Slopes(*np.array(found).T)

    @cached_property
    def height(self) -> float:
        return analysis.height(self.relaxed)

    @cached_property
    def volume_mass(self) -> float:
        """Inside the pile: two mean diameters from its bounds, or a fifth of the height; nan where it has no inside."""
        margin = min(2 * self.mean_diameter, 0.2 * self.height)
        try:
            return analysis.volume_mass(self.relaxed, analysis.interior(self.relaxed, margin=margin))
        except InputError:  # a handful of grains, one upon the other nowhere
            return math.nan

    @cached_property
    def hydrostatic(self) -> float:
        """Pressure under a liquid of the same height and volume mass."""
        return self.volume_mass * self.parameters["gravity"] * self.height

    @cached_property
    def pressure(self) -> Epochs:
        """Ground pressure in rings of two mean diameters.

        A pile grows alike: lengths and pressures of an earlier epoch are multiplied by (mass ratio)^(1/3).
        """
        width = 2 * self.mean_diameter
        final = analysis.ground_pressure(self.relaxed, width=width, reach=self.slope.foot + width)
        mass = float(self.relaxed.masses[self.relaxed.kinds == FREE].sum())
        curves, times = [], []
        for frame in self.frames_at(self.pressure_times()):
            scale = (mass / float(frame.masses[frame.kinds == FREE].sum())) ** (1 / 3)
            ring = analysis.ground_pressure(frame, width=width / scale, reach=final.edges[-1] / scale)
            curves.append(scale * ring.values[: len(final.values)])
            times.append(frame.time)
        deviation = np.std(curves, axis=0, ddof=1) if len(curves) > 1 else np.zeros(len(final.values))
        return Epochs(final, np.mean(curves, axis=0), deviation, times)

    # ---- cuts ------------------------------------------------------------------------------------------------------

    def top(self, r) -> np.ndarray:
        """Height of the mean free surface at the distance ``r`` from the axis."""
        shape = self.slope
        return shape.level + np.interp(r, shape.radii, shape.heights)

    @cached_property
    def reciprocal_cuts(self) -> list[Cuts]:
        """Pairs of strips over the relaxed pile: a cylinder, and a cone parallel to the force across the cylinder.

        By the lemma of reciprocal cuts the force across the second is then parallel to the first: vertical.
        """
        cuts = []
        for share in (0.2, 0.35, 0.5, 0.65):
            r = share * self.slope.foot
            room = self.top(r) - self.slope.level
            length = min(0.35 * self.height, 0.8 * room)
            depths = (0.7, 0.3) if room > 1.8 * length else (0.5,)
            for depth in depths:
                point = np.array([r, self.slope.level + room * depth])
                one = _through(point, np.array([0.0, 1.0]), length)
                first = analysis.strip(self.relaxed, one)
                if first.density.any():
                    two = _through(point, first.density / math.hypot(*first.density), length)
                    cuts.append(Cuts(point, (one, two), (first, analysis.strip(self.relaxed, two))))
        return cuts

    @property
    def reciprocity_error(self) -> float:
        """Root mean square over the cuts of |n . T' - n' . T| / sqrt(|T| |T'|)."""
        errors = [analysis.reciprocity(*cut.strips) for cut in self.reciprocal_cuts]
        return float(np.sqrt(np.mean(np.square(errors)))) if errors else float("nan")

    def layer_line(self, frame, layer) -> np.ndarray:
        """(K, 2) mean height of a fossil layer over the distance from the axis, in rings with enough of its grains."""
        date = self.dates(frame)
        keep = (date >= layer[0]) & (date < layer[1])
        r, z = analysis.regions.distance(frame.positions[keep]), frame.positions[keep, 2]
        width = 2 * self.mean_diameter
        ring = (r / width).astype(int)
        number = np.bincount(ring)
        line = np.stack([np.bincount(ring, r), np.bincount(ring, z)], axis=1) / np.maximum(1, number)[:, None]
        return line[number >= 6]

    @cached_property
    def layer_angles(self) -> np.ndarray:
        """(K, 5) r, z, angle of a fossil layer, angle of the force on a cylinder there, layer: on the unrelaxed pile.

        Angles in degrees from the horizontal, outwards.
        """
        rows = []
        for number, layer in enumerate(self.layers):
            line = self.layer_line(self.poured, layer)
            if len(line) < 3:
                continue
            fall = np.degrees(np.arctan2(*np.gradient(line, axis=0).T[::-1]))
            for (r, z), angle in list(zip(line, fall, strict=True))[:-1]:
                force = analysis.strip(self.poured, _through((r, z), np.array([0.0, 1.0]), 3 * self.mean_diameter))
                if force.contacts >= 10:
                    rows.append((r, z, angle, math.degrees(math.atan2(*force.density[::-1])), number))
        return np.array(rows).reshape(-1, 5)


def _through(point, direction, length) -> np.ndarray:
    """A segment through a point in its middle, pushed outwards where it would cross the axis."""
    ends = np.asarray(point) + 0.5 * length * np.array([-1.0, 1.0])[:, None] * direction
    ends[:, 0] -= min(0.0, ends[:, 0].min())
    return ends
