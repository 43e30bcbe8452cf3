"""Filling a cell: a gas of a given fraction, and its compression to a given stress."""

import math
from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError, as_numbers, check_seed, explained, is_number, is_whole
from .cell import Cell

MOST = {2: 0.5, 3: 0.33}  # fractions up to which random places are found one by one


class Gas(NamedTuple):
    """Balls at random places of a cell: ``scene.add_many(gas.radii, material=..., position=gas.positions)``."""

    radii: np.ndarray  # (k,) m
    positions: np.ndarray  # (k, d) m
    fraction: float  # of the cell that they fill

    __repr__ = short


@explained
def random(cell, sizes, fraction: float, *, count: int | None = None, seed: int = 0) -> Gas:
    """Balls of the ``sizes`` at random places of a cell that they fill by a ``fraction``, none touching another.

    ``sizes`` is a `Sieve` or an array of diameters, all of which are taken. With ``count`` that many balls are drawn,
    and all are scaled to the fraction; else as many as the fraction needs. The larger ones are placed first, each at
    random where there is room in the periodic cell, and between the faces where it is open.
    """
    if not isinstance(cell, Cell):
        raise InputError(f"packings.random got {cell!r}; give a Cell.")
    check_seed("packings.random", seed)
    d, rng = cell.dimension, np.random.default_rng([seed, 977])
    if not (is_number(fraction) and 0 < fraction <= MOST[d]):
        raise InputError(
            f"packings.random got fraction={fraction!r}; give a number above 0, up to {MOST[d]}: beyond, balls find no "
            "random places, and packings.compress makes it denser."
        )
    if not (count is None or is_whole(count, 1)):
        raise InputError(f"packings.random got count={count!r}; give a whole number.")
    radii = 0.5 * _drawn(sizes, cell, fraction, count, rng)
    unit = math.pi if d == 2 else 4 / 3 * math.pi
    if count is not None:
        radii *= (fraction * cell.volume / (unit * (radii**d).sum())) ** (1 / d)
    widths = 1 / np.sqrt((np.linalg.inv(cell.vectors.T) ** 2).sum(axis=1))[:d]
    if 4 * radii.max() > widths[cell.periodic[:d]].min():
        raise InputError(
            f"The largest ball is {2 * radii.max():.3g} wide and the cell {widths.min():.3g}; take a cell at least "
            "twice as wide, or more and smaller balls."
        )
    places = _placed(cell, radii, rng)
    return Gas(radii, places, float(unit * (radii**d).sum() / cell.volume))


def _drawn(sizes, cell, fraction, count, rng) -> np.ndarray:
    """Diameters, the largest first."""
    d = cell.dimension
    if not hasattr(sizes, "draw"):
        out = np.atleast_1d(as_numbers("packings.random got sizes, which", sizes))
        if out.ndim != 1 or not out.size or not (np.isfinite(out) & (out > 0)).all():
            raise InputError(f"packings.random got sizes={sizes!r}; give a Sieve or positive diameters.")
        if count is not None and count != len(out):
            out = out[np.arange(count) % len(out)]
        return np.sort(out)[::-1].copy()
    if count is None:
        unit, total, drawn = math.pi / 4 if d == 2 else math.pi / 6, 0.0, []
        while total < fraction * cell.volume:
            drawn.append(sizes.draw(1, rng, dimension=d)[0])
            total += unit * drawn[-1] ** d
        return np.sort(drawn)[::-1].copy()
    return np.sort(sizes.draw(count, rng, dimension=d))[::-1].copy()


def _placed(cell, radii, rng) -> np.ndarray:
    """Places (k, d) in the cell at which no two balls touch: tried one by one, looked up in a grid of shares."""
    d, vectors, repeated = (
        cell.dimension,
        cell.vectors[: cell.dimension, : cell.dimension],
        cell.periodic[: cell.dimension],
    )
    widths = 1 / np.sqrt((np.linalg.inv(vectors.T) ** 2).sum(axis=1))
    counts = np.maximum(1, (widths / (2 * radii[0])).astype(int))
    grid, shares, tries = {}, np.empty((len(radii), d)), 0
    around = np.stack(np.meshgrid(*[[-1, 0, 1]] * d, indexing="ij"), -1).reshape(-1, d)
    for k, radius in enumerate(radii):
        edge = np.where(repeated, 0.0, radius / widths)
        while True:
            tries += 1
            if tries > 2000 * len(radii):
                raise InputError(f"No room was found for ball {k} of {len(radii)}; take a smaller fraction.")
            share = edge + rng.random(d) * (1 - 2 * edge)
            home = np.minimum((share * counts).astype(int), counts - 1)
            near = {tuple(np.where(repeated, (home + a) % counts, home + a)) for a in around}
            others = [i for cell_ in near for i in grid.get(cell_, ())]
            if others:
                apart = shares[others] - share
                apart = (apart - np.where(repeated, np.rint(apart), 0.0)) @ vectors
                if ((apart**2).sum(axis=1) < (1.0001 * (radius + radii[others])) ** 2).any():
                    continue
            break
        shares[k] = share
        grid.setdefault(tuple(home), []).append(k)
    return shares @ vectors


class Compression(NamedTuple):
    """How a compression ended."""

    done: bool
    reason: str
    time: float  # that it took, s
    steps: int
    volume: float
    stress: np.ndarray  # (d, d) of the contact forces at the end

    __repr__ = short

    def __bool__(self):
        return self.done


@explained
def compress(
    sim, stress, until="still", *, rate: float | None = None, longest: float = math.inf, quiet: float = 1e-6,
    error: float = 1e-2,
):  # fmt: skip
    """Compress the periodic cell of a simulation to a ``stress`` (as in `Cell`); returns a `Compression`, true if done.

    ``until`` is "still" or a duration, s. Still: every asked component of the contact stress is within ``error`` of
    what is asked, and the kinetic energy of grains and cell is below ``quiet`` times pressure times volume. It gives up
    after the duration ``longest``, s.

    With a ``rate``, 1/s, the cell first shrinks at it along the asked axes, until contacts carry half of the stress: a
    gas that the stress alone throws together turns grains with corners so fast that they overlap.
    """
    if getattr(sim, "cell", None) is None:
        raise InputError("compress got a simulation without a cell; make its scene with cell=Cell(...).")
    if not (until == "still" or (is_number(until) and until > 0)):
        raise InputError(f'compress got until={until!r}; give "still" or a duration (s).')
    for name, value in (("longest", longest), ("quiet", quiet), ("error", error)):
        if not ((is_number(value) or value == math.inf) and value > 0):
            raise InputError(f"compress got {name}={value!r}; give a positive number.")
    if rate is not None and not (is_number(rate) and 0 < rate < 0.5 / sim.time_step):
        raise InputError(f"compress got rate={rate!r}; give a number above 0, below half a cell in a step (1/s).")
    normal = np.diag(sim.cell_motion.cell.changed(None, stress).stress)
    if not (np.isfinite(normal).any() and np.nanmin(normal) > 0):
        raise InputError(
            f"compress got stress={stress!r}; give a positive pressure, or positive stresses along some of the axes, "
            'such as {"xx": 1e3, "yy": 1e3}.'
        )
    begin, steps, mean = sim.time, sim.steps, float(np.nanmean(normal))
    if rate is not None:
        _close_in(sim, rate, np.isfinite(normal)[: sim.cell.strain.shape[0]], 0.5 * mean, longest)
    sim.cell.impose(stress=stress)
    asked = sim.cell.asked
    while True:
        sim.step()
        spent = sim.time - begin
        if until != "still":
            if spent >= until * (1 - 1e-9):
                reason, done = f"the duration of {until:g} is over", True
                break
        elif (sim.steps - steps) % 20 == 0:
            energy = sim.ledger.kinetic
            wrong = np.nanmax(np.abs(sim.cell.stress - asked)) / mean
            if energy <= quiet * mean * sim.cell.volume and wrong <= error:
                reason, done = f"still: kinetic energy {energy:.2g} J, stress within {wrong:.1%} of what is asked", True
                break
        if spent >= longest:
            wrong = np.nanmax(np.abs(sim.cell.stress - asked)) / mean
            reason, done = (
                (
                    f"not still after {longest:g} s: kinetic energy {sim.ledger.kinetic:.2g} J (still is "
                    f"{quiet * mean * sim.cell.volume:.2g}), stress within {wrong:.1%} of what is asked"
                ),
                False,
            )
            break
    return Compression(done, reason, spent, sim.steps - steps, sim.cell.volume, sim.cell.stress)


def _close_in(sim, rate: float, axes: np.ndarray, stress: float, longest: float) -> None:
    """Shrink the cell along some ``axes`` until its contacts carry a ``stress`` on them in the mean."""
    sim.cell.impose(rate=-rate * np.diag(axes.astype(float)))
    begin = sim.time
    while sim.time - begin < longest:
        sim.step()
        if np.diag(sim.cell.stress)[axes].mean() >= stress:
            break
