"""Measures of granular materials, as functions of a frame: coordination without rattlers, fraction, flow, profiles.

In a periodic cell the whole cell is the sample, and velocities are taken beyond its mean flow L x.
"""

import math
from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, explained, is_number, is_whole
from ..state import FREE
from .forces import contact_rows, new_axes
from .regions import positive
from .stress import grain_moments


def _in_cell(frame, what: str) -> None:
    if frame.cell is None:
        raise InputError(f"{what} is that of a periodic cell, and the frame has none; take one of a scene with a cell.")


def _some(frame, what: str) -> None:
    if not (frame.kinds == FREE).any():
        raise InputError(f"{what} is that of free bodies, and the frame has none; take another frame.")


class Backbone(NamedTuple):
    """The contacts that carry, without bodies that rattle."""

    coordination: float  # contacts per body of those that carry, two for each contact between two of them
    rattlers: float  # share of free bodies that do not carry
    carries: np.ndarray  # (N,) whether a body does; fixed and driven ones that are touched do
    contacts: np.ndarray  # (C,) whether a contact does

    __repr__ = short


@explained
def backbone(frame, *, least: int | None = None) -> Backbone:
    """Take out free bodies with fewer than ``least`` contacts that push (d + 1; 2 with friction), again and again."""
    least = (frame.dimension + 1 if _frictionless(frame) else 2) if least is None else least
    rows, pushes = contact_rows(frame), frame.contacts.impulse[:, 0] > 0
    free, held = frame.kinds == FREE, pushes.copy()
    carries = np.ones(len(frame.identities), dtype=bool)
    while True:
        counts = np.bincount(rows[held].ravel(), minlength=len(carries))
        gone = carries & free & (counts < least)
        if not gone.any():
            break
        carries &= ~gone
        held &= carries[rows].all(axis=1)
    some = carries & free
    counts = np.bincount(rows[held].ravel(), minlength=len(carries))
    mean = float(counts[some].mean()) if some.any() else 0.0
    return Backbone(mean, float(1 - some.sum() / max(1, free.sum())), carries & (counts > 0), held)


def _frictionless(frame) -> bool:
    return bool(frame.laws) and all(law.friction == 0 for law in frame.laws)


@explained
def solid_fraction(frame) -> float:
    """The share of the periodic cell that free bodies fill; the parts of a body must not overlap."""
    _in_cell(frame, "solid_fraction")
    d = frame.dimension
    radii = frame.ball_radii[frame.kinds[frame.ball_bodies] == FREE]
    unit = math.pi if d == 2 else 4 / 3 * math.pi
    total = unit * float((radii**d).sum())
    if d == 2:
        for k, body in enumerate(frame.polygon_bodies):
            if frame.kinds[body] == FREE:
                x, y = frame.polygon_corners[frame.polygon_starts[k] : frame.polygon_starts[k + 1]].T
                total += 0.5 * float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    for k, body in enumerate(frame.face_bodies):
        if frame.kinds[body] == FREE:  # a fan of tetrahedra from the centre of the body
            face = frame.face_corners[frame.face_starts[k] : frame.face_starts[k + 1]]
            c = frame.solid_corners[face] - frame.positions[body]
            total += float(np.cross(c[1:-1], c[2:]).sum(axis=0) @ c[0]) / 6
    return total / abs(float(np.linalg.det(frame.cell)))


@explained
def cell_stress(frame) -> np.ndarray:
    """(d, d) stress of the contact forces over the periodic cell, positive in compression."""
    _in_cell(frame, "cell_stress")
    return grain_moments(frame)[frame.kinds == FREE].sum(axis=0) / abs(float(np.linalg.det(frame.cell)))


def fluctuations(frame) -> np.ndarray:
    """(k, d) velocities of the free bodies beyond the mean and, in a cell, beyond its flow L x."""
    _some(frame, "The velocity beyond the mean")
    free = frame.kinds == FREE
    v, m = frame.velocities[free].astype(float), frame.masses[free, None]
    if frame.rate is not None:
        v = v - frame.positions[free] @ frame.rate.T
    return v - (m * v).sum(axis=0) / m.sum()


@explained
def granular_temperature(frame) -> float:
    """Mean of |c|^2 / d over the free bodies, c the velocity beyond the flow; m^2/s^2."""
    c = fluctuations(frame)
    return float((c**2).sum(axis=1).mean() / frame.dimension)


@explained
def inertial_number(frame, *, pressure: float | None = None) -> float:
    """I = rate d sqrt(rho / P) (2D: rate sqrt(m / P)), of the largest component of the shear rate of the cell.

    ``pressure`` is that of the contact forces where none is given; d is the mean diameter, rho the density of grains.
    """
    _in_cell(frame, "inertial_number")
    free, d = frame.kinds == FREE, frame.dimension
    pressure = float(np.trace(cell_stress(frame))) / d if pressure is None else pressure
    if not (is_number(pressure) and pressure > 0):
        raise InputError(f"inertial_number got pressure={pressure!r}; give a positive number.")
    rate = np.abs(frame.rate - np.diag(np.diag(frame.rate))).max()
    mass, size = float(frame.masses[free].mean()), 2 * float(frame.ball_radii.mean())
    return float(rate * (math.sqrt(mass / pressure) if d == 2 else math.sqrt(6 * mass / (math.pi * size * pressure))))


class Profile(NamedTuple):
    """Coarse-grained fields along an axis."""

    places: np.ndarray  # (k,) m
    density: np.ndarray  # (k,) mass per volume (per area in 2D) of the section
    velocity: np.ndarray  # (k, d) of the mass, m/s
    temperature: np.ndarray  # (k,) mean of |v - velocity|^2 / d
    width: float  # of the Gaussian, m

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, component: int = 0):
        """A component of the velocity over the places."""
        ax = new_axes(ax)
        ax.plot(self.places, self.velocity[:, component])
        ax.set(xlabel="place", ylabel=f"velocity along {'xyz'[component]}")
        return ax


def _axis(axis, dimension: int) -> int:
    """The number of an axis given by its letter or number; the last one is -1."""
    letters = "xyz"[:dimension]
    if isinstance(axis, str) and len(axis) == 1 and axis in letters:
        return letters.index(axis)
    if is_whole(axis, -1) and axis < dimension:
        return int(axis)
    raise InputError(f"profile got axis={axis!r}; give one of {', '.join(letters)}, or -1 for the last one.")


@explained
def profile(frame, *, axis: str | int = -1, width: float | None = None, places=None, section: float = 1.0) -> Profile:
    """Density, velocity and temperature along an axis, coarse grained with a Gaussian of ``width`` (a mean diameter).

    ``axis`` is "x", "y" or "z", or its number, -1 for the last one.
    ``section`` is the area (length in 2D) across the axis; in a cell its volume over the extent along the axis.
    """
    _some(frame, "profile")
    if width is None and not len(frame.ball_radii):
        raise InputError("profile knows no diameter of bodies with corners; give width= in m.")
    free, d = frame.kinds == FREE, frame.dimension
    axis = _axis(axis, d)
    x = frame.wrapped()[free][:, axis] if frame.cell is not None else frame.positions[free][:, axis]
    width = 2 * float(frame.ball_radii.mean()) if width is None else positive("width", width)
    low, high, round_ = x.min(), x.max(), False
    if frame.cell is not None:
        low, high = 0.0, float(np.abs(frame.cell[:, axis]).max())
        round_, section = bool(frame.periodic[axis]), abs(float(np.linalg.det(frame.cell))) / high
    places = np.linspace(low, high, 101) if places is None else np.asarray(places, dtype=float)
    apart = places[:, None] - x
    if round_:
        apart -= high * np.rint(apart / high)
    weight = np.exp(-0.5 * (apart / width) ** 2) / (math.sqrt(2 * math.pi) * width) * frame.masses[free]
    total = weight.sum(axis=1)
    v = frame.velocities[free]
    if round_ and frame.rate is not None:  # those of the images in the cell
        v = v + (frame.wrapped()[free] - frame.positions[free]) @ frame.rate.T
    safe = np.where(total > 0, total, 1.0)
    mean = weight @ v / safe[:, None]
    heat = (weight @ (v**2).sum(axis=1)) / safe - (mean**2).sum(axis=1)
    return Profile(places, total / section, mean, np.maximum(heat, 0.0) / d, width)


class ForceDistribution(NamedTuple):
    """P(f) of the normal forces over their mean, with its tail exp(-beta f) and its power f^alpha below the mean."""

    relative: np.ndarray  # (K,) sorted
    beta: float  # of the tail above the mean
    beta_error: float  # one standard deviation
    alpha: float  # of the power law between `least` and the mean
    alpha_error: float
    weak: float  # share of contacts below the mean
    least: float  # forces below are left out of the power law

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, bins: int = 30):
        """The density, with both fits."""
        ax = new_axes(ax)
        edges = np.linspace(0, max(2.0, self.relative[-1]), bins + 1)
        number = np.histogram(self.relative, edges)[0]
        density, middle = number / (len(self.relative) * np.diff(edges)), 0.5 * (edges[1:] + edges[:-1])
        some = number > 0
        error = density[some] / np.sqrt(number[some])
        ax.errorbar(middle[some], density[some], error, fmt="ko", ms=3, lw=0.8)
        f = np.linspace(1, edges[-1], 50)
        ax.plot(f, (1 - self.weak) * self.beta * np.exp(-self.beta * (f - 1)), "r-", label=f"exp(−{self.beta:.2f} f)")
        f = np.linspace(max(self.least, 1e-2), 1, 50)
        share = ((self.relative > self.least) & (self.relative <= 1)).mean()
        power = (1 + self.alpha) / (1 - self.least ** (1 + self.alpha))
        ax.plot(f, share * power * f**self.alpha, "b-", label=f"f^{self.alpha:.2f}")
        ax.set(yscale="log", xlabel="normal force over its mean", ylabel="P(f)")
        ax.legend(frameon=False)
        return ax


@explained
def force_distribution(forces, *, least: float = 0.01) -> ForceDistribution:
    """The distribution of normal ``forces`` (K,), or of those of a frame; fits by largest likelihood, with errors.

    Above the mean exp(-beta f), below it f^alpha down to ``least`` (in the mean), where the solver's error rules.
    """
    if hasattr(forces, "contacts"):
        forces = forces.contacts.impulse[:, 0] / forces.time_step
    f = np.asarray(forces, dtype=float)
    f = f[f > 0]
    if len(f) < 10:
        raise InputError(f"force_distribution got {len(f)} forces that push; give ten at least.")
    f = np.sort(f / f.mean())
    tail, weak = f[f > 1] - 1, f[(f > least) & (f <= 1)]
    if not len(tail) or len(weak) < 2 or tail.mean() < 1e-9:
        raise InputError("force_distribution got forces that are all alike; give those of a disordered packing.")
    beta = 1 / float(tail.mean())
    logs, span = np.log(weak), math.log(least)
    slopes = np.linspace(-0.95, 3, 4000)
    one = 1 + slopes
    likelihood = len(weak) * np.log(one / (1 - least**one)) + slopes * logs.sum()
    alpha = float(slopes[np.argmax(likelihood)])
    a = 1 + alpha
    information = 1 / a**2 - span**2 * least**a / (1 - least**a) ** 2
    return ForceDistribution(
        f,
        beta,
        beta / math.sqrt(len(tail)),
        alpha,
        1 / math.sqrt(len(weak) * information),
        float((f <= 1).mean()),
        least,
    )


@explained
def dilation(frames) -> tuple[np.ndarray, np.ndarray]:
    """Shear strain and volume strain (k,) of the cells of ``frames`` since the first one; expansion is positive."""
    if hasattr(frames, "cell"):
        raise InputError("dilation got one frame; give several, such as a recording.")
    volumes, shear, last, time = [], [0.0], None, None
    for frame in frames:
        _in_cell(frame, "dilation")
        volumes.append(abs(float(np.linalg.det(frame.cell))))
        if last is not None:
            rate = np.abs(0.5 * (frame.rate + last) - np.diag(np.diag(0.5 * (frame.rate + last)))).max()
            shear.append(shear[-1] + rate * (frame.time - time))
        last, time = frame.rate, frame.time
    if not volumes:
        raise InputError("dilation got no frame; give several, such as a recording.")
    return np.array(shear[: len(volumes)]), np.array(volumes) / volumes[0] - 1
