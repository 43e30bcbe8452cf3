"""Closed sets that move with time, and their nearest points: what the sweeping process (2004, section 2) drags along.

A set is {x in R^n : f_i(t, x) <= 0 for all i}. Its parts (centre, radius, normals, ...) are numbers or functions of the
time, which may jump. Balls, half-spaces, boxes and polyhedra are projected in closed form or by the exact active-set
method of `solvers.project`.

Intersections, and sets given by any smooth f, are projected by Newton's method on the conditions of Karush, Kuhn and
Tucker,

    y + sum l_i grad f_i(y) = x,   l_i >= 0,   f_i(y) <= 0,   l_i f_i(y) = 0,

in the form of a sequence of projections on polyhedra: with the f_i linearised at y and the matrix of second derivatives
H = 1 + sum l_i f_i'' of the Lagrangian, the next y is the projection of y - H^-1 (y - x) in the metric H.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError, as_numbers, explained
from ..problem.dense import project as least_multipliers
from .system import derivative

MAX_ITERATIONS = 300


class Rows(NamedTuple):
    """The inequalities of a set at one point: m of them in n dimensions."""

    values: np.ndarray  # (m,) f_i, lengths where f_i is a distance; -inf for a bound at infinity
    gradients: np.ndarray  # (m, n)


def _evaluated(label: str, given, t: float, shape: tuple, *, infinite: bool = False) -> np.ndarray:
    """A part of a set at the time t, as an array of the shape wanted (-1: any length)."""
    value = given(t) if callable(given) else given
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"The {label} is {value!r} at t = {t:.6g}; give numbers, or a function of t.") from None
    if array.ndim != len(shape) or any(w not in (-1, have) for have, w in zip(array.shape, shape, strict=True)):
        wanted = " x ".join("m" if w == -1 else str(w) for w in shape) or "one"
        came = " x ".join(map(str, array.shape)) or "one"
        raise InputError(f"The {label} has {came} number(s) at t = {t:.6g}; the point needs {wanted}.")
    if np.isnan(array).any() or not (infinite or np.isfinite(array).all()):
        raise InputError(f"The {label} is {array.tolist()} at t = {t:.6g}; give finite numbers for all times asked.")
    return array


def _point(x) -> np.ndarray:
    """A copy of the point given, as a vector."""
    point = as_numbers("The point", x).copy()
    if point.ndim != 1 or not np.isfinite(point).all():
        raise InputError(f"The point is {x!r}; give one vector of finite numbers.")
    return point


class Set:
    """What all sets share. A set of one's own needs `rows`, and `project` where it knows a better one."""

    def rows(self, t: float, x: np.ndarray) -> Rows:
        """The inequalities f_i(t, .) <= 0 at x."""
        raise NotImplementedError

    def second(self, t: float, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """sum weights_i f_i'' (n, n) at x: zero where all f_i are linear."""
        return np.zeros((len(x), len(x)))

    def project(self, t: float, x) -> np.ndarray:
        """The nearest point to ``x`` (n,) in the set at the time ``t`` (2004, eq. 6).

        Where the set is not convex: a point y with x - y in its normal cone, found from x along the gradients.
        """
        x = _point(x)
        values, gradients = self.rows(t, x)
        if not (values > 0).any():
            return x
        y, multipliers, last = x, np.zeros(len(values)), np.inf
        for _ in range(MAX_ITERATIONS):
            kept = values > -np.inf
            metric = _metric(np.eye(len(x)) + self.second(t, y, multipliers))
            if metric is None:
                break
            z = y - np.linalg.solve(metric, y - x)
            linear = values[kept] + gradients[kept] @ (z - y)
            multipliers = np.zeros(len(values))
            try:
                multipliers[kept] = _pushes(metric, z, gradients[kept], linear)
            except InputError:  # the linearised inequalities contradict each other
                break
            new = z - np.linalg.solve(metric, gradients.T @ multipliers)
            if not np.isfinite(new).all():
                break
            change, y = np.linalg.norm(new - y), new
            scale = max(np.abs(x).max(), np.abs(y).max())
            values, gradients = self.rows(t, y)
            # As near as rounding lets it come, and inside: a wandering y may rest for a while outside.
            if change <= 1e-15 * scale or last <= change <= 1e-9 * scale:
                if _outside(values, gradients) <= 1e-9 * scale:
                    return y
            last = change
        # Where the parts do not meet, the last bit decides how y wanders off: every way of it ends here.
        raise _hardly(self, t, x)

    def violation(self, t: float, x) -> float:
        """How far ``x`` lies outside at the time ``t``: the largest f_i / |grad f_i|, or 0."""
        return _outside(*self.rows(t, _point(x)))


def _hardly(set_: Set, t: float, x: np.ndarray) -> InputError:
    return InputError(
        f"No point near x = {np.round(x, 6).tolist()} was found in the {type(set_).__name__} at t = {t:.6g}: its parts "
        "do not meet or hardly do, or it moved too far in one step; check the set, or give finer times."
    )


def _outside(values: np.ndarray, gradients: np.ndarray) -> float:
    """The largest f_i / |grad f_i|, or 0."""
    outside = values > 0
    return float((values[outside] / np.linalg.norm(gradients[outside], axis=1)).max(initial=0.0))


def _metric(matrix: np.ndarray) -> np.ndarray | None:
    """A symmetric matrix with its eigenvalues brought between 0.1 and 1e12; None where it is not finite.

    Small ones come from a set that curves away, large ones from multipliers that grow beyond all bounds. Any such
    metric leads to the same nearest point, and its equations can be solved on every machine.
    """
    if not np.isfinite(matrix).all():
        return None
    eigenvalues, axes = np.linalg.eigh(matrix)
    if 0.1 <= eigenvalues[0] and eigenvalues[-1] <= 1e12:
        return matrix
    return (axes * np.clip(eigenvalues, 0.1, 1e12)) @ axes.T


def _pushes(metric: np.ndarray, z: np.ndarray, gradients: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Multipliers l >= 0 (m,): z - H^-1 N^T l is the point in {values + N (y - z) <= 0} next to z in the metric H."""
    return least_multipliers(metric, z, -gradients, gradients @ z - values)


@explained
class Ball(Set):
    """{x : |x - centre| <= radius}.

    >>> Ball(centre=lambda t: (t, 0), radius=1.0).project(3.0, (0, 0)).tolist()
    [2.0, 0.0]
    """

    def __init__(self, centre, radius):
        self.centre, self.radius = centre, radius

    def _parts(self, t, n):
        centre = _evaluated("centre of the ball", self.centre, t, (n,))
        radius = float(_evaluated("radius of the ball", self.radius, t, ()))
        if radius < 0:
            raise InputError(f"The radius of the ball is {radius:g} at t = {t:.6g}; give a length >= 0.")
        return centre, radius

    def rows(self, t, x):
        centre, radius = self._parts(t, len(x))
        distance = np.linalg.norm(x - centre)
        if distance == 0.0:  # any direction will do: f = -radius lies far inside
            return Rows(np.array([-radius]), np.eye(len(x))[:1])
        return Rows(np.array([distance - radius]), (x - centre)[None] / distance)

    def second(self, t, x, weights):
        if not weights[0]:
            return np.zeros((len(x), len(x)))
        away = x - self._parts(t, len(x))[0]
        distance = np.linalg.norm(away)
        return weights[0] / distance * (np.eye(len(x)) - np.outer(away, away) / distance**2)

    def project(self, t, x):
        x = _point(x)
        centre, radius = self._parts(t, len(x))
        distance = np.linalg.norm(x - centre)
        return x if distance <= radius else centre + (radius / distance) * (x - centre)


@explained
class Polyhedron(Set):
    """{x : normals @ x <= offsets}; ``normals`` (m, n) point outwards, of any length, ``offsets`` (m,)."""

    def __init__(self, normals, offsets):
        self.normals, self.offsets = normals, offsets

    @classmethod
    def hull(cls, points) -> "Polyhedron":
        """The convex hull of ``points`` (k, n), n >= 2.

        >>> Polyhedron.hull([(0, 0), (2, 0), (0, 2)]).project(0, (2, 2)).tolist()
        [1.0, 1.0]
        """
        from scipy.spatial import ConvexHull, QhullError

        try:
            equations = ConvexHull(np.asarray(points, dtype=float)).equations
        except (QhullError, ValueError):
            raise InputError(
                f"The hull of {np.shape(points)} points has no interior; give n + 1 points or more, not all in a plane."
            ) from None
        return cls(equations[:, :-1], -equations[:, -1])

    def _parts(self, t, n):
        normals = _evaluated("normals of the polyhedron", self.normals, t, (-1, n))
        offsets = _evaluated("offsets of the polyhedron", self.offsets, t, (len(normals),))
        if not (np.abs(normals).max(axis=1, initial=0.0) > 0).all():
            raise InputError(f"A normal of the polyhedron is zero at t = {t:.6g}; give vectors that point outwards.")
        return normals, offsets

    def rows(self, t, x):
        normals, offsets = self._parts(t, len(x))
        return Rows(normals @ x - offsets, normals)

    def project(self, t, x):
        x = _point(x)
        values, normals = self.rows(t, x)
        try:
            return x - normals.T @ _pushes(np.eye(len(x)), x, normals, values)
        except InputError:
            raise InputError(
                f"The {type(self).__name__} is empty at t = {t:.6g}: its inequalities contradict each other; check "
                "signs."
            ) from None


@explained
class HalfSpace(Polyhedron):
    """{x : normal . x <= offset}; the ``normal`` points outwards.

    >>> HalfSpace(normal=(0, -1), offset=lambda t: -t).project(2.0, (5, 1)).tolist()
    [5.0, 2.0]
    """

    def __init__(self, normal, offset):
        self.normal, self.offset = normal, offset

    def _parts(self, t, n):
        normal = _evaluated("normal of the half-space", self.normal, t, (n,))
        offset = _evaluated("offset of the half-space", self.offset, t, ())
        if not normal.any():
            raise InputError(
                f"The normal of the half-space is zero at t = {t:.6g}; give a vector that points outwards."
            )
        return normal[None], offset[None]

    def project(self, t, x):
        x = _point(x)
        values, normals = self.rows(t, x)
        return x - max(0.0, values[0]) / (normals[0] @ normals[0]) * normals[0]


@explained
class Box(Set):
    """{x : lower <= x <= upper}, component by component; bounds may be infinite.

    >>> Box(lower=(0, 0), upper=lambda t: (1, t)).project(0.5, (3, 0.7)).tolist()
    [1.0, 0.5]
    """

    def __init__(self, lower, upper):
        self.lower, self.upper = lower, upper

    def _parts(self, t, n):
        lower = _evaluated("lower bound of the box", self.lower, t, (n,), infinite=True)
        upper = _evaluated("upper bound of the box", self.upper, t, (n,), infinite=True)
        if not ((lower <= upper) & (lower < np.inf) & (upper > -np.inf)).all():
            raise InputError(f"The box is empty at t = {t:.6g}: lower {lower.tolist()}, upper {upper.tolist()}.")
        return lower, upper

    def rows(self, t, x):
        lower, upper = self._parts(t, len(x))
        identity = np.eye(len(x))
        return Rows(np.append(lower - x, x - upper), np.vstack([-identity, identity]))

    def project(self, t, x):
        x = _point(x)
        return np.clip(x, *self._parts(t, len(x)))


@explained
class Region(Set):
    """{x : f(t, x) <= 0} for a smooth f whose gradient does not vanish on the boundary; need not be convex.

    ``function`` is f(t, x) -> float; ``gradient`` (t, x) -> (n,), by sixth-order differences when omitted.

    >>> outside = Region(lambda t, x: 1.0 - x @ x)  # all but the unit disk
    >>> outside.project(0.0, (0.6, 0.0)).round(12).tolist()
    [1.0, 0.0]
    """

    def __init__(self, function: Callable, *, gradient: Callable | None = None):
        for label, value in (("function", function), ("gradient", gradient)):
            if not callable(value) and (label == "function" or value is not None):
                raise InputError(f"Region got {label}={value!r}; give a function of (t, x).")
        self.function, self.gradient = function, gradient

    def _value(self, t, x):
        value = self.function(t, x)
        if np.ndim(value) or not np.isfinite(value):
            raise InputError(
                f"The function of the region is {value!r} at t = {t:.6g}, x = {np.round(x, 6).tolist()}; it must "
                "return one finite number wherever the point can go."
            )
        return float(value)

    def _slope(self, t, x):
        if self.gradient is None:
            size = max(1.0, float(np.abs(x).max()))
            return np.array([derivative(lambda s, e=e: self._value(t, x + s * e), size) for e in np.eye(len(x))])
        slope = np.asarray(self.gradient(t, x), dtype=float)
        if slope.shape != x.shape or not np.isfinite(slope).all():
            raise InputError(f"The gradient of the region is {slope!r} at t = {t:.6g}; give {len(x)} finite numbers.")
        return slope

    def rows(self, t, x):
        value, slope = self._value(t, x), self._slope(t, x)
        if value >= 0 and not slope.any():
            raise InputError(
                f"The gradient of the region vanishes at t = {t:.6g}, x = {np.round(x, 6).tolist()}; choose an f whose "
                "gradient is not zero outside the set (2004, section 2.1)."
            )
        if not slope.any():  # deep inside, where nothing pushes
            return Rows(np.array([-np.inf]), np.eye(len(x))[:1])
        return Rows(np.array([value]), slope[None])

    def project(self, t, x):
        x = _point(x)
        return x if self._value(t, x) <= 0 else super().project(t, x)

    def violation(self, t, x):
        x = _point(x)
        return 0.0 if self._value(t, x) <= 0 else super().violation(t, x)

    def second(self, t, x, weights):
        if not weights[0]:
            return np.zeros((len(x), len(x)))
        d = 1e-4 * max(1.0, float(np.abs(x).max()))  # only the speed of convergence depends on it
        rows = [(self._slope(t, x + d * e) - self._slope(t, x - d * e)) / (2 * d) for e in np.eye(len(x))]
        return weights[0] * (np.array(rows) + np.array(rows).T) / 2


@explained
class Intersection(Set):
    """The points that lie in all the sets given.

    >>> lens = Intersection(Ball((0, 0), 1.0), Ball((1, 0), 1.0))
    >>> lens.project(0.0, (0.5, 3.0)).round(12).tolist()
    [0.5, 0.866025403784]
    """

    def __init__(self, *sets: Set):
        if not sets or not all(isinstance(s, Set) for s in sets):
            raise InputError(f"Intersection got {sets!r}; give sets, for example Ball(...), HalfSpace(...).")
        self.sets: Sequence[Set] = sets

    def rows(self, t, x):
        return Rows(*(np.concatenate(parts) for parts in zip(*(s.rows(t, x) for s in self.sets), strict=True)))

    def second(self, t, x, weights):
        counts = [len(s.rows(t, x).values) for s in self.sets]
        shares = np.split(weights, np.cumsum(counts)[:-1])
        return sum(s.second(t, x, share) for s, share in zip(self.sets, shares, strict=True))


@explained
class Moved(Set):
    """A set carried by a rigid motion: {rotation(t) x + shift(t) : x in the set}; ``rotation`` (n, n), ``shift`` (n,).

    >>> turn = lambda t: [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
    >>> Moved(Box((-2, -1), (2, 1)), rotation=turn).project(np.pi / 2, (0.5, 5)).round(12).tolist()
    [0.5, 2.0]
    """

    def __init__(self, set: Set, *, shift=None, rotation=None):
        if not isinstance(set, Set):
            raise InputError(f"Moved got {set!r}; give a set, for example Box(...).")
        self.set, self.shift, self.rotation = set, shift, rotation

    def _parts(self, t, n):
        shift = np.zeros(n) if self.shift is None else _evaluated("shift", self.shift, t, (n,))
        rotation = np.eye(n) if self.rotation is None else _evaluated("rotation", self.rotation, t, (n, n))
        if np.abs(rotation @ rotation.T - np.eye(n)).max() > 1e-12:
            raise InputError(f"The rotation at t = {t:.6g} is not orthogonal; give a matrix with R R^T = 1.")
        return shift, rotation

    def rows(self, t, x):
        shift, rotation = self._parts(t, len(x))
        values, gradients = self.set.rows(t, rotation.T @ (x - shift))
        return Rows(values, gradients @ rotation.T)

    def second(self, t, x, weights):
        shift, rotation = self._parts(t, len(x))
        return rotation @ self.set.second(t, rotation.T @ (x - shift), weights) @ rotation.T

    def project(self, t, x):
        x = _point(x)
        if self.violation(t, x) == 0.0:
            return x  # not moved by the rounding of the rotation
        shift, rotation = self._parts(t, len(x))
        return shift + rotation @ self.set.project(t, rotation.T @ (x - shift))
