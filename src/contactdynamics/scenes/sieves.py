"""Sizes of grains: sieve curves, drawn from and measured."""

import math

import numpy as np

from ..errors import InputError, as_numbers, explained, is_number, is_one_of
from .shapes.balls import LONGEST


@explained
class Sieve:
    """A sieve curve: the share ``passing`` each of the ``diameters``, from 0 to 1, of the mass or of the number.

    Between two sieves the share grows linearly with the diameter.

    >>> sieve = Sieve([0.1, 0.2, 0.4], [0.0, 0.3, 1.0], by="mass")
    >>> uniform = Sieve.uniform(0.25, 0.5)
    >>> uniform.diameter(0.5)
    0.375
    """

    def __init__(self, diameters, passing, *, by: str = "number"):
        self.diameters = as_numbers("The diameters of a Sieve", diameters)
        self.passing = as_numbers("The shares of a Sieve", passing)
        self.by = by
        d, p = self.diameters, self.passing
        if not is_one_of(by, ("number", "mass")):
            raise InputError(f"Sieve got by={by!r}; choose 'number' or 'mass'.")
        if d.ndim != 1 or d.shape != p.shape or len(d) < 2:
            raise InputError(f"Sieve got {d.shape} diameters and {p.shape} shares; give as many of both, two at least.")
        if not (np.isfinite(d).all() and d[0] > 0 and (np.diff(d) >= 0).all()):
            raise InputError(f"Sieve got the diameters {diameters}; give positive lengths in growing order.")
        if d[0] < max(1e-100, 1e-9 * d[-1]):  # numbers by mass go as 1 / d^3
            raise InputError(f"Sieve got diameters from {d[0]:g} to {d[-1]:g}; give a largest up to 1e9 smallest ones.")
        if not (p[0] == 0 and p[-1] == 1 and (np.diff(p) >= 0).all()):
            raise InputError(f"Sieve got the shares {passing}; they must grow from 0 to 1.")

    @classmethod
    def uniform(cls, smallest: float, largest: float) -> "Sieve":
        """Diameters uniform in number between two values (the papers' grains), or all the same."""
        return cls([smallest, largest], [0.0, 1.0])

    @classmethod
    def by_volume(cls, smallest: float, largest: float) -> "Sieve":
        """Diameters uniform by volume (mass) between two values."""
        return cls([smallest, largest], [0.0, 1.0], by="mass")

    @classmethod
    def two(cls, small: float, large: float, *, share: float = 0.5) -> "Sieve":
        """Two diameters; ``share`` of the number is small."""
        if not (is_number(share) and 0 < share < 1):
            raise InputError(f"Sieve.two got share={share!r}; give a number between 0 and 1.")
        return cls([small, small, large, large], [0.0, share, share, 1.0])

    @classmethod
    def log_normal(cls, median: float, spread: float, *, cut: float = 2.5) -> "Sieve":
        """Diameters whose logarithm is normal, with the deviation ``spread``, cut off at ``cut`` deviations."""
        if not (is_number(spread) and is_number(cut) and spread > 0 and cut > 0):
            raise InputError(f"Sieve.log_normal got spread={spread!r}, cut={cut!r}; give positive numbers.")
        x = np.linspace(-cut, cut, 101)
        share = np.array([0.5 * math.erf(v / math.sqrt(2)) for v in x])
        return cls(median * np.exp(spread * x), (share - share[0]) / (share[-1] - share[0]))

    @property
    def smallest(self) -> float:
        """The smallest diameter."""
        return float(self.diameters[0])

    @property
    def largest(self) -> float:
        """The largest diameter."""
        return float(self.diameters[-1])

    def diameter(self, share, *, dimension: int = 3):
        """The diameter below which the ``share`` (number or array in [0, 1]) of the *number* of grains lies.

        With uniform random shares this draws grains. A curve by mass becomes one by number with the weight
        1 / d**dimension.
        """
        share = np.asarray(share, dtype=float)
        cumulative = self._by_number(dimension)
        k = np.minimum(np.maximum(np.searchsorted(cumulative, share, side="right") - 1, 0), len(cumulative) - 2)
        width = cumulative[k + 1] - cumulative[k]
        inside = np.minimum(np.maximum((share - cumulative[k]) / np.where(width > 0, width, 1.0), 0.0), 1.0)
        low, high = self.diameters[k], self.diameters[k + 1]
        if self.by == "number":
            out = low + inside * (high - low)
        else:
            power = 1 - dimension
            out = (low**power + inside * (high**power - low**power)) ** (1 / power)
        return float(out) if out.ndim == 0 else out

    def _by_number(self, dimension: int) -> np.ndarray:
        """The cumulative share of the number at the sieves."""
        if self.by == "number":
            return self.passing
        low, high = self.diameters[:-1], self.diameters[1:]
        wide = high > low
        power = 1 - dimension
        spread = np.where(wide, high - low, 1.0)
        mean = np.where(wide, (high**power - low**power) / (power * spread), low ** (power - 1.0))
        numbers = np.diff(self.passing) * mean
        return np.concatenate([[0.0], np.cumsum(numbers)]) / numbers.sum()

    def draw(self, count: int, rng, *, dimension: int = 3) -> np.ndarray:
        """``count`` random diameters."""
        return self.diameter(rng.random(count), dimension=dimension)


@explained
def passing(diameters, sieves, *, by: str = "mass", dimension: int = 3) -> np.ndarray:
    """The sieve curve of a sample: share of its mass (or ``by="number"``) that passes each of the ``sieves``.

    >>> passing([0.1, 0.2], [0.15, 0.25], by="mass")
    array([0.11111111, 1.        ])
    """
    order, sieves = np.sort(np.ravel(as_numbers("diameters", diameters))), as_numbers("sieves", sieves)
    if order.ndim != 1 or not len(order) or not (order > 0).all() or not is_one_of(by, ("number", "mass")):
        raise InputError(f"passing got diameters={diameters!r}, by={by!r}; give positive lengths, 'mass' or 'number'.")
    weight = np.ones_like(order) if by == "number" else order**dimension
    total = np.concatenate([[0.0], np.cumsum(weight)])
    return total[np.searchsorted(order, sieves, side="right")] / total[-1]


def as_sieve(sizes) -> Sieve:
    """A `Sieve`, a pair (smallest, largest) or one diameter."""
    if isinstance(sizes, Sieve):
        return sizes
    values = np.atleast_1d(as_numbers("sizes", sizes))
    if values.shape not in ((1,), (2,)) or not (values <= LONGEST).all():
        raise InputError(f"sizes is {sizes!r}; give a Sieve, one diameter or the smallest and the largest one.")
    return Sieve.uniform(values[0], values[-1])
