"""A cell: space that repeats itself along some of its vectors, at rest or deforming as asked."""

import numpy as np

from ..errors import InputError, as_numbers, check_function, explained, is_number
from .loads import constant

AXES = "xyz"


@explained
class Cell:
    """A periodic cell, ``scene = Scene(gravity, cell=Cell(...))``; 2D and 3D.

    Parameters
    ----------
    vectors
        Lengths (d,) of a rectangular cell, or its vectors (d, d), one in each row; m.
    periodic
        Along which of them space is repeated: True for all, or one truth value each.
    rate
        The velocity gradient (d, d) dv_i/dx_j that is imposed, 1/s; also a profile of d d numbers, row by row, or a
        function of time. None: the cell keeps its shape, but where a stress is asked.
    stress
        What is asked instead of a rate, Pa (N/m in 2D), positive in compression: a number for the same pressure along
        all periodic directions, or a dict such as ``{"yy": 1e3}``. The rates of these components are unknowns, solved
        with the contacts (after Shaebani, Unger and Kertesz 2009). A shear stress "xy" acts on dv_x/dy.
    mass
        That of the cell, kg: its kinetic energy is mass length^2 sum rate_ij^2 / 2 over the free components, with the
        length (volume)^(1/d) at the start. A tenth of that of all free bodies where it is not given.

    >>> Cell((1.0, 2.0), rate=[[0, 0.1], [0, 0]], stress={"yy": 50.0}).dimension
    2
    """

    def __init__(self, vectors, *, periodic=True, rate=None, stress=None, mass: float | None = None):
        array = as_numbers("Cell", vectors)
        d = len(array) if array.ndim else 0
        if array.shape not in ((2,), (3,), (2, 2), (3, 3)) or not np.isfinite(array).all():
            raise InputError(f"Cell got {vectors!r}; give 2 or 3 lengths, or as many vectors of 2 or 3 numbers.")
        if array.ndim == 1 and not (array > 0).all():
            raise InputError(f"Cell got the lengths {vectors!r}; give positive ones.")
        flat = np.diag(array) if array.ndim == 1 else array
        size = np.prod(np.sqrt((flat**2).sum(axis=1)))
        if not abs(np.linalg.det(flat)) > 1e-6 * size:
            raise InputError(f"Cell got {vectors!r}, which span no {'area' if d == 2 else 'volume'}; give others.")
        self.dimension, self.vectors = d, np.eye(3)
        self.vectors[:d, :d] = flat
        self.periodic = self._truths(periodic)
        self.rate, self.stress = self._rate(rate), np.full((3, 3), np.nan)
        self.stress = self._stress(stress)
        if not (mass is None or (is_number(mass) and mass > 0)):
            raise InputError(f"Cell got mass={mass!r}; give a positive number.")
        self.mass = mass

    def __repr__(self):
        along = ", ".join("periodic" if p else "open" for p in self.periodic[: self.dimension])
        return f"Cell of {self.vectors[: self.dimension, : self.dimension].tolist()}, {along}"

    @property
    def moves(self) -> bool:
        """Whether it deforms."""
        return self.rate is not None or bool(np.isfinite(self.stress).any())

    @property
    def volume(self) -> float:
        """Area in 2D."""
        return float(abs(np.linalg.det(self.vectors)))

    def _truths(self, periodic) -> np.ndarray:
        d, out = self.dimension, np.zeros(3, dtype=bool)
        listed = isinstance(periodic, list | tuple) or (isinstance(periodic, np.ndarray) and periodic.ndim == 1)
        asked = (periodic,) * d if isinstance(periodic, bool) else tuple(periodic) if listed else ()
        if len(asked) != d or not all(isinstance(p, bool | np.bool_) for p in asked) or not any(asked):
            raise InputError(f"Cell got periodic={periodic!r}; give True, or {d} truth values, one of them True.")
        out[:d] = asked
        return out

    def open_axes(self) -> set:
        """Directions in which no periodic vector has a component."""
        along = np.abs(self.vectors[self.periodic]).sum(axis=0) > 0
        return {c for c in range(self.dimension) if not along[c]}

    def _rate(self, rate):
        if rate is None:
            return None
        d = self.dimension
        if callable(rate):
            check_function("Cell got rate", rate, "t")
        value = as_numbers("rate of a Cell", rate(0.0) if callable(rate) else rate)
        if value.size != d * d or not np.isfinite(value).all():
            raise InputError(f"Cell got rate={rate!r}; give the {d} x {d} finite numbers dv_i/dx_j, 1/s.")
        for c in self.open_axes():
            if value.reshape(d, d)[:, c].any():
                raise InputError(
                    f"Cell got a rate along {AXES[c]}, in which it is not periodic; give 0 there, or make it periodic."
                )
        return rate if callable(rate) else constant(value.ravel())

    def _stress(self, stress) -> np.ndarray:
        """(3, 3) what is asked, nan elsewhere."""
        d, out = self.dimension, np.full((3, 3), np.nan)
        if stress is None:
            return out
        if is_number(stress):
            stress = {2 * AXES[c]: stress for c in range(d) if c not in self.open_axes()}
        names = {AXES[i] + AXES[j]: (i, j) for i in range(d) for j in range(i, d)}
        if not isinstance(stress, dict) or not stress:
            raise InputError(f'Cell got stress={stress!r}; give a pressure, or a dict such as {{"yy": 1e3}}.')
        for name, value in stress.items():
            if name not in names or not is_number(value):
                raise InputError(f"Cell got stress {name!r}: {value!r}; give finite numbers for {', '.join(names)}.")
            i, j = names[name]
            if j in self.open_axes() or i in self.open_axes():
                raise InputError(
                    f"Cell got a stress {name}, and is not periodic along {AXES[j if j in self.open_axes() else i]}; "
                    "ask for it in periodic directions, or put a wall under Pressure there."
                )
            out[i, j] = value
        if self.rate is not None and any(self.rate_at(0.0)[i, j] for i, j in np.argwhere(np.isfinite(out))):
            raise InputError("Cell got a rate and a stress for the same component; give one of them.")
        return out

    def check_bodies(self, tables) -> None:
        """Bodies that fit the cell, and walls that do not cross its border."""
        b = tables.bodies
        inverse = np.linalg.inv(self.vectors.T)
        width = float((1 / np.sqrt((inverse**2).sum(axis=1)))[self.periodic].min())
        big = np.flatnonzero(4 * b.size > width * (1 + 1e-12))
        if big.size:
            raise InputError(
                f"Body {int(b.identity[big[0]])} is {2 * b.size[big[0]]:.3g} wide and the cell {width:.3g}: it would "
                "meet its own image; take a cell at least twice as wide as its bodies."
            )
        for normal in tables.planes.normal:
            across = np.abs(self.vectors[self.periodic] @ normal)
            if across.max() > 1e-9 * np.abs(self.vectors).max():
                raise InputError(
                    f"A plane of normal {normal[: self.dimension].tolist()} lies across a periodic direction of the "
                    "cell; take the plane away, or make the cell open there."
                )

    def rate_at(self, t: float) -> np.ndarray:
        """(3, 3) the imposed velocity gradient; zero where it is not imposed."""
        out, d = np.zeros((3, 3)), self.dimension
        if self.rate is not None:
            value = as_numbers("rate of the cell", self.rate(t))
            if value.size != d * d or not np.isfinite(value).all():
                raise InputError(f"The rate of the cell is {value.tolist()} at t = {t:.6g}; give {d * d} numbers.")
            out[:d, :d] = value.reshape(d, d)
            out[np.isfinite(self.stress)] = 0.0
        return out

    def changed(self, rate, stress) -> "Cell":
        """The same cell with another rate and stress."""
        return Cell(self.vectors[: self.dimension, : self.dimension], rate=rate, stress=stress, mass=self.mass,
                    periodic=tuple(bool(p) for p in self.periodic[: self.dimension]))  # fmt: skip

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_file(self, functions) -> dict:
        """What `from_file` needs, as JSON; ``functions`` writes a function of time."""
        d = self.dimension
        asked = {AXES[i] + AXES[j]: float(self.stress[i, j]) for i, j in np.argwhere(np.isfinite(self.stress))}
        return {
            "vectors": self.vectors[:d, :d].tolist(), "periodic": [bool(p) for p in self.periodic[:d]],
            "rate": None if self.rate is None else functions(self.rate), "stress": asked or None, "mass": self.mass,
        }  # fmt: skip

    @classmethod
    def from_file(cls, said: dict, function) -> "Cell":
        """The cell of a file; ``function`` reads a function of time."""
        rate = None if said["rate"] is None else function(said["rate"])
        return cls(said["vectors"], periodic=tuple(said["periodic"]), rate=rate, stress=said["stress"],
                   mass=said["mass"])  # fmt: skip
