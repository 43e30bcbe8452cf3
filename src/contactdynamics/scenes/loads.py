"""What acts from outside: prescribed motions, forces that vary in time, springs and dashpots.

A `Profile` is a function of time that can be written into a file (constant, sine, ramp, table, tilting); any Python
function of t serves as well, but a run that uses one can be resumed only by the program that defines it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_numbers, as_path, check_function, explained, is_number

PROFILES = ("constant", "sine", "ramp", "table")


class Profile(NamedTuple):
    """A vector function of time that is known by its numbers; call it with t (s)."""

    kind: str  # constant, sine, ramp or table; "tilting " and one of these
    numbers: tuple  # of arrays; see the functions that make profiles

    def __call__(self, t: float) -> np.ndarray:
        n = self.numbers
        if self.kind == "constant":
            return n[0]
        if self.kind == "sine":
            return n[0] * math.sin(2 * math.pi * n[1][0] * t + n[2][0]) + n[3]
        if self.kind == "ramp":
            share = min(1.0, max(0.0, (t - n[2][0]) / (n[3][0] - n[2][0])))
            return n[0] + share * (n[1] - n[0])
        if self.kind.startswith("tilting "):
            return _turned_back(n[0], n[1], float(Profile(self.kind.removeprefix("tilting "), n[2:])(t)[0]))
        return np.array([np.interp(t, n[0], column) for column in n[1].T])


def _vector(name, value):
    array = np.atleast_1d(as_numbers(name, value))
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{name} is {value!r}; give a number or a vector of finite numbers.")
    return array


@explained
def constant(value) -> Profile:
    """The same ``value`` at all times.

    >>> constant((1, 0, 0))(5.0).tolist()
    [1.0, 0.0, 0.0]
    """
    return Profile("constant", (_vector("constant", value),))


@explained
def sine(amplitude, frequency: float, phase: float = 0.0, offset=0.0) -> Profile:
    """offset + amplitude sin(2 pi frequency t + phase); ``frequency`` in Hz, ``phase`` in rad."""
    amplitude = _vector("amplitude", amplitude)
    offset = _vector("offset", offset)
    if offset.shape not in (amplitude.shape, (1,)):
        raise InputError(
            f"sine got {len(amplitude)} amplitudes and {len(offset)} offsets; give as many, or one offset."
        )
    offset = np.broadcast_to(offset, amplitude.shape).copy()
    return Profile("sine", (amplitude, _vector("frequency", frequency), _vector("phase", phase), offset))


@explained
def ramp(start, end, begin: float, finish: float) -> Profile:
    """From ``start`` to ``end`` linearly between the times ``begin`` and ``finish``, constant outside."""
    if not (is_number(begin) and is_number(finish) and finish > begin):
        raise InputError(f"ramp got begin={begin!r}, finish={finish!r}; give two times, finish must come after begin.")
    return Profile(
        "ramp", (_vector("start", start), _vector("end", end), _vector("begin", begin), _vector("finish", finish))
    )


@explained
def table(times, values) -> Profile:
    """Linear interpolation between ``values`` (k,) or (k, d) at increasing ``times`` (k,), constant outside."""
    times, values = as_numbers("times of a table", times), as_numbers("values of a table", values)
    if values.ndim not in (1, 2):
        raise InputError(f"table got values of shape {values.shape}; give (k,) or (k, d), a row for each time.")
    values = values[:, None] if values.ndim == 1 else values
    if not (np.isfinite(times).all() and np.isfinite(values).all()):
        raise InputError("table got a time or a value that is not finite; give finite numbers.")
    if times.ndim != 1 or len(times) != len(values) or len(times) < 2 or not (np.diff(times) > 0).all():
        raise InputError("table needs at least two increasing times and as many values.")
    return Profile("table", (times, values))


@explained
def tilting(gravity, angle, axis=None) -> Profile:
    """The ``gravity`` (d,) that is felt in a box tilted by ``angle`` (rad), in the axes of the box.

    ``angle`` is a number or a profile of one; positive about ``axis`` (3,) in 3D, counter-clockwise in 2D. A box whose
    floor is tilted at 2 degrees per second from t = 1 s on, for 20 s:

    >>> g = tilting((0, -9.81), ramp(0.0, math.radians(40), begin=1.0, finish=21.0))
    >>> g(0.0).tolist()
    [0.0, -9.81]
    >>> round(math.degrees(math.atan2(g(11.0)[0], g(11.0)[1])), 6)  # 20 degrees towards -x
    -160.0
    """
    gravity = _vector("gravity", gravity)
    angle = angle if isinstance(angle, Profile) else constant(angle)
    if angle.kind.startswith("tilting ") or np.shape(angle(0.0)) != (1,):
        raise InputError(f"tilting got the angle {angle!r}; give a number (rad), or a profile of one number.")
    if gravity.shape == (2,) and axis is not None:
        raise InputError(f"tilting got axis={axis!r} in two dimensions, where all turns are about z; leave it out.")
    if gravity.shape == (3,) and axis is None:
        raise InputError("tilting needs axis=(x, y, z) in three dimensions, the direction about which the box turns.")
    direction = _vector("axis", (0.0, 0.0, 1.0) if axis is None else axis)
    if gravity.shape not in ((2,), (3,)) or direction.shape != (3,) or not direction.any():
        raise InputError(f"tilting got gravity={gravity.tolist()} and axis={axis!r}; give 2 or 3 numbers, and 3.")
    return Profile(f"tilting {angle.kind}", (gravity, direction / np.linalg.norm(direction), *angle.numbers))


def _turned_back(vector, axis, angle) -> np.ndarray:
    """``vector`` (2,) or (3,) turned by -angle about the unit vector ``axis``: Rodrigues' formula."""
    v = np.zeros(3)
    v[: len(vector)] = vector
    turned = math.cos(angle) * v - math.sin(angle) * np.cross(axis, v) + (1 - math.cos(angle)) * (axis @ v) * axis
    return turned[: len(vector)]


@explained
def read_table(path, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Times (k,) and values from a text file, time first; lines that begin with # are comments.

    Values (k,) where there is one column of them, else (k, ``columns``).
    """
    path = as_path("read_table", path)
    words = "two columns, time and value" if columns == 1 else f"{columns + 1} columns, time and {columns} values"
    if not path.is_file():
        raise InputError(f"There is no file {path}; give a text file of {words}.")
    try:
        rows = np.loadtxt(path, ndmin=2, delimiter="," if "," in path.read_text() else None)
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no table of numbers ({error}); give {words}.") from None
    if rows.ndim != 2 or rows.shape[1] != columns + 1 or len(rows) < 2:
        raise InputError(f"{path} has the shape {rows.shape}; give {words}, of two rows at least.")
    if not np.isfinite(rows).all():
        raise InputError(f"{path} holds a number that is not finite (row {np.argwhere(~np.isfinite(rows))[0, 0] + 1}).")
    back = np.flatnonzero(np.diff(rows[:, 0]) <= 0)
    if back.size:
        raise InputError(f"The times of {path} do not increase (row {back[0] + 2}); sort them, each once.")
    return rows[:, 0].copy(), rows[:, 1].copy() if columns == 1 else rows[:, 1:].copy()


@explained
def shaking(times, accelerations, direction=(1.0, 0.0)) -> Profile:
    """The velocity of a ground that starts at rest and has these ``accelerations`` (k,), as a table; 0 before it.

    They act along ``direction`` (d,); accelerations (k, d) are those of all components, and have no direction.
    Between the ``times`` the acceleration is linear, and its integral is taken exactly, at four points per interval.
    The velocity left at the end is taken off evenly over the record (a constant acceleration), so that the ground comes
    to rest.
    """
    times, a = as_numbers("times", times), as_numbers("accelerations", accelerations)
    if (
        times.ndim != 1
        or a.ndim not in (1, 2)
        or len(times) != len(a)
        or len(times) < 2
        or not (np.diff(times) > 0).all()
    ):
        raise InputError("shaking needs at least two increasing times and as many accelerations.")
    if a.ndim == 1:
        a = a[:, None] * _vector("direction", direction)
    if not 1 <= a.shape[1] <= 3:
        raise InputError(f"shaking got {a.shape[1]} components; give accelerations, or a direction, of one to three.")
    steps = np.diff(times)
    fine = np.append((times[:-1, None] + steps[:, None] * np.arange(4) / 4).ravel(), times[-1])
    values = np.stack([np.interp(fine, times, column) for column in a.T], axis=1)
    grown = np.cumsum(0.5 * np.diff(fine)[:, None] * (values[1:] + values[:-1]), axis=0)
    velocity = np.concatenate([np.zeros((1, a.shape[1])), grown])
    velocity -= velocity[-1] * ((fine - fine[0]) / (fine[-1] - fine[0]))[:, None]
    return table(fine, velocity)


def as_function(value, size: int, name: str) -> Callable[[float], np.ndarray]:
    """A function of time from a vector, a `Profile` or any function; checked at t = 0 to give ``size`` numbers."""
    function = value if callable(value) else constant(_vector(name, value))
    check_function(f"{name}", function, "t")
    sample = np.atleast_1d(as_numbers(name, function(0.0)))
    if sample.shape != (size,) or not np.isfinite(sample).all():
        raise InputError(
            f"{name} gives {sample.tolist()} at t = 0; it must give {size} finite number{'s' * (size > 1)}."
        )
    return function


@explained
class Drive(NamedTuple):
    """A prescribed motion: velocity and spin as functions of time (``motion=`` of `Scene.add`)."""

    velocity: object = 0.0  # (d,) vector, Profile or function of t; m/s
    spin: object = 0.0  # number in 2D, (3,) in 3D; rad/s
