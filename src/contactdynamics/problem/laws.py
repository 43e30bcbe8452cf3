"""Contact laws: the local problem "free relative velocity -> impulse", solved exactly.

Every law here is Coulomb's law in prospective form (2004, eqs. 26, 27 and 31): P lies in a cone K with P_n >= 0,
U_n >= 0, U_n > 0 implies P = 0, and the tangential part obeys the principle of maximal dissipation. The section of
the cone at P_n = 1 is given by two coefficients:

- two components (n, t): -c[1] <= P_t <= c[0], so that c[0] resists sliding in the negative sense and c[1] in the
  positive one (1986, section 13);
- three components (n, t1, t2): the ellipse (P_t1 / c[0])^2 + (P_t2 / c[1])^2 <= 1 (isotropic when c[0] = c[1]).

The single contact: U = b + W P with W symmetric positive (2003, eq. 42). If b_n >= 0 nothing happens: the contact is
passive (1986, section 9). Otherwise U_n = 0, which eliminates P_n = -(b_n + W_nt . P_t) / W_nn and leaves the
tangential problem with w = W_tt - W_tn W_nt / W_nn and b' = b_t - W_tn b_n / W_nn. Sticking: P_t = -w^-1 b'.
Sliding: U_t = -alpha P_t with alpha > 0, so P_t = -(w + alpha)^-1 b', and alpha is the root of
|P_t(alpha)| = gamma P_n(alpha), a scalar equation (in the scaled variables P_t / c, c U_t for an ellipse).

How well a pair (U, P) satisfies the law is told by the bipotential of de Saxce and Feng (2003, section 5.2),

    b(U, P) = U . P + phi_1(U_t) P_n   for U_n >= 0 and P in the cone, else infinite;

b >= 0 everywhere, and b = 0 is the law (2003, eq. 29): see `Law.bipotential` for the form it takes in each law.

Restitution (2004, eqs. 43 and 44) does not enter here: the law is simply applied to the weighted velocities
(rho U_n^- + U_n^+, tau U_t^- + U_t^+), which only changes b.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._jit import kernel
from ..errors import InputError, as_numbers, explained, is_number
from ..state import OPEN, SEPARATING, SLIDING, STICKING


@explained
@dataclass(frozen=True, kw_only=True)
class Law:
    """The law of one contact.

    Parameters
    ----------
    friction
        Coulomb's coefficient gamma >= 0, or a function of the sliding speed (m/s) at the start of the step.
    static_friction
        Coefficient while the contact sticks, at least ``friction`` (1986, section 12, Remark 1).
    two_sided
        ``(negative, positive)``: different coefficients for the two senses of sliding, contacts with 2 components.
    anisotropic
        ``(along t1, along t2)``: elliptic cone, contacts with 3 components.
    restitution, tangential_restitution
        rho in [0, 1] and tau in [-1, 1] of the weighted velocities (2004, eqs. 43, 44).
    rolling, spinning
        Lengths: the contact also bears moments up to ``rolling * P_n`` against rolling and ``spinning * P_n`` against
        spinning about the normal (rigid-body scenes).
    cohesion
        Force with which the contact sticks together: the friction cone starts at P_n = -cohesion h (rigid-body scenes).
    tension
        Force up to which the contact resists opening, without any gain of friction (rigid-body scenes).

    >>> Law(friction=0.4, static_friction=0.6).coefficients(np.array([0.0]), STICKING)
    (0.6, 0.6)
    """

    friction: float | Callable[[float], float] = 0.0
    static_friction: float | None = None
    two_sided: tuple[float, float] | None = None
    anisotropic: tuple[float, float] | None = None
    restitution: float = 0.0
    tangential_restitution: float = 0.0
    rolling: float = 0.0
    spinning: float = 0.0
    cohesion: float = 0.0
    tension: float = 0.0

    def __post_init__(self):
        pairs = [p for p in (self.two_sided, self.anisotropic) if p is not None]
        if pairs and (len(pairs) == 2 or callable(self.friction) or self.friction != 0):
            raise InputError(
                "Law got more than one kind of friction; give exactly one of friction, two_sided and anisotropic."
            )
        for name in ("two_sided", "anisotropic"):
            pair = getattr(self, name)
            if pair is not None and np.shape(pair) != (2,):
                raise InputError(f"Law got {name}={pair!r}; give two coefficients, for example {name}=(0.3, 0.5).")
        numbers = [c for pair in pairs for c in pair]
        numbers += [] if callable(self.friction) else [self.friction]
        numbers += [] if self.static_friction is None else [self.static_friction]
        for value in numbers:
            if not (is_number(value) and value >= 0):
                raise InputError(f"Law got the friction coefficient {value!r}; give a finite number >= 0.")
        if self.static_friction is not None and not callable(self.friction):
            if pairs:
                raise InputError("static_friction goes with friction=..., not with two_sided or anisotropic.")
            if self.static_friction < self.friction:
                raise InputError(
                    f"Law got static_friction={self.static_friction} below friction={self.friction}; "
                    "the static coefficient is the larger one: exchange them."
                )
        for name in ("rolling", "spinning", "cohesion", "tension"):
            value = getattr(self, name)
            if not (is_number(value) and value >= 0):
                raise InputError(f"Law got {name}={value!r}; give a finite number >= 0.")
        if self.cohesion and self.tension:
            raise InputError("Law got cohesion and tension; give one of them.")
        if not (is_number(self.restitution) and 0 <= self.restitution <= 1):
            raise InputError(f"Law got restitution={self.restitution!r}; give a number from 0 to 1.")
        if not (is_number(self.tangential_restitution) and -1 <= self.tangential_restitution <= 1):
            raise InputError(
                f"Law got tangential_restitution={self.tangential_restitution!r}; give a number in [-1, 1]."
            )

    @property
    def frictionless(self) -> bool:
        """Whether the impulse is always normal."""
        return self.friction == 0 and not self.static_friction and self.two_sided is None and self.anisotropic is None

    def coefficients(self, sliding: np.ndarray, status: int) -> tuple[float, float]:
        """The two coefficients of the cone, from the state of the contact at the start of the step.

        ``sliding`` is U_t (d-1,); a contact that stuck in the last step, or that has not slid yet, is static.
        """
        if self.two_sided is not None:
            return self.two_sided
        if self.anisotropic is not None:
            return self.anisotropic
        if self.static_friction is not None and (
            status == STICKING or (status in (OPEN, SEPARATING) and not np.any(sliding))
        ):
            return self.static_friction, self.static_friction
        if callable(self.friction):
            gamma = float(self.friction(float(np.sqrt(np.dot(sliding, sliding)))))
            if not gamma >= 0:
                raise InputError(f"The friction function returned {gamma}; it must return a number >= 0.")
            return gamma, gamma
        return self.friction, self.friction

    def bipotential(self, velocity, impulse, *, spin=None, moment=None, time_step: float | None = None) -> float:
        """b(U, P) >= 0 (J), zero exactly where the pair satisfies the law; infinite for U_n < 0 or P outside its cone.

        ``velocity`` (d,) and ``impulse`` (d,) are in the order n, t1, t2; the coefficient is that of sliding. With
        restitution the law, and so b = 0, is that of the weighted velocity (rho U_n^- + U_n^+, tau U_t^- + U_t^+).
        Rolling and spinning add rolling P_n |w_t| + w_t . m_t + spinning P_n |w_n| + w_n m_n with the relative
        ``spin`` w (3,) and the ``moment`` m (3,); in 2D both are numbers. Cohesion: b(U, P + cohesion h n); tension:
        U_n (P_n + tension h) + phi_1(U_t) max(P_n, 0) + U_t . P_t, with h = ``time_step``. These two are the laws of
        a contact that holds; one that has opened (P = 0, U_n > 0) keeps b = cohesion h U_n or more.

        >>> law = Law(friction=0.5)
        >>> law.bipotential((0.0, 2.0), (1.0, -0.5)), law.bipotential((0.0, 2.0), (1.0, 0.5))
        (0.0, 2.0)
        >>> law.bipotential((1.0, 0.0), (0.0, 0.1))
        inf
        """
        u, p = as_numbers("The velocity", velocity), as_numbers("The impulse", impulse).copy()
        if u.shape != p.shape or u.shape not in ((1,), (2,), (3,)) or not np.isfinite([u, p]).all():
            raise InputError(
                f"bipotential got U = {velocity!r} and P = {impulse!r}; give both 1, 2 or 3 finite components."
            )
        if (self.cohesion or self.tension) and not (is_number(time_step) and time_step > 0):
            raise InputError("Cohesion and tension are forces; give time_step=... to compare them with an impulse.")
        for name, wanted in (("two_sided", 2), ("anisotropic", 3)):
            if getattr(self, name) is not None and len(u) not in (1, wanted):
                raise InputError(f"The law is {name}, which goes with {wanted} components; U has {len(u)}.")
        c = np.array(self.coefficients(u[1:], SLIDING), dtype=float)
        pressure, margin = max(p[0], 0.0), 0.0  # margin: what is left of the tension
        if self.cohesion:
            p[0] += self.cohesion * time_step
        elif self.tension:
            margin, p[0] = self.tension * time_step + min(p[0], 0.0), pressure
        small = 1e-13 * (np.abs(p).max() + pressure)
        if u[0] < -1e-13 * np.abs(u).max() or cone_excess(p, c) > small or margin < -small:
            return math.inf
        total = bipotential(u, p, c) + margin * u[0]
        if spin is not None or moment is not None:
            total += self._turning(spin, moment, pressure)
        return float(total)

    def _turning(self, spin, moment, pressure: float) -> float:
        """The part of rolling and spinning resistance in the bipotential."""
        w, m = (as_numbers(f"The {n}", v) for n, v in (("spin", spin), ("moment", moment)))
        if w.shape != m.shape or w.shape not in ((), (3,)) or not np.isfinite([w, m]).all():
            raise InputError(f"bipotential got spin {spin!r} and moment {moment!r}; give both, 3 numbers or one in 2D.")
        parts = ((self.rolling, w, m),) if w.ndim == 0 else ((self.spinning, w[0], m[0]), (self.rolling, w[1:], m[1:]))
        total = 0.0
        for length, turn, hold in parts:
            if np.linalg.norm(hold) > length * pressure * (1 + 1e-13):
                return math.inf
            total += length * pressure * np.linalg.norm(turn) + np.sum(turn * hold)
        return total


@kernel
def solve_two(w_nn, w_nt, w_tt, b_n, b_t, c0, c1):
    """Impulse (P_n, P_t) and status of a contact with two components (1986, section 13, eq. 13.13).

    The set S of section 13 is the segment of the admissible u with U_n = 0; its nearest point to the origin is the
    sticking one when S contains it, and otherwise the end s_1 or s_2, where the contact slides.
    """
    if not b_n < 0.0:
        return 0.0, 0.0, SEPARATING
    if c0 == 0.0 and c1 == 0.0:
        return -b_n / w_nn, 0.0, SLIDING
    reduced = w_tt - w_nt * w_nt / w_nn
    if reduced > 1e-14 * w_tt:
        p_t = -(b_t - w_nt * b_n / w_nn) / reduced
        p_n = -(b_n + w_nt * p_t) / w_nn
        if -c1 * p_n <= p_t <= c0 * p_n:
            return p_n, p_t, STICKING
    pivot = w_nn - c1 * w_nt
    if pivot > 0.0:
        p_n = -b_n / pivot
        if b_t + (w_nt - c1 * w_tt) * p_n >= 0.0:
            return p_n, -c1 * p_n, SLIDING
    p_n = -b_n / (w_nn + c0 * w_nt)
    return p_n, c0 * p_n, SLIDING


@kernel
def _slide(w_nn, b_n, k1, k2, w1, w2, b1, b2):
    """Root alpha > 0 of |p(alpha)| = P_n(alpha), and P_n, p1, p2 there.

    p_k = -b_k / (w_k + alpha), P_n = -(b_n + k . p) / w_nn. At alpha = 0 the cone is violated, for alpha -> infinity
    P_n -> -b_n / w_nn > 0 and p -> 0: a root exists. Newton on 1/|p| - 1/P_n (nearly linear), kept in a bracket.
    """
    low, high = 0.0, 0.0
    alpha = np.sqrt(b1 * b1 + b2 * b2) * w_nn / -b_n  # exact root without coupling and with w = 0
    p_n, p1, p2 = 0.0, 0.0, 0.0
    found = False
    for _ in range(200):
        p1 = -b1 / (w1 + alpha)
        p2 = -b2 / (w2 + alpha)
        p_n = -(b_n + k1 * p1 + k2 * p2) / w_nn
        if found:
            break
        size = np.sqrt(p1 * p1 + p2 * p2)
        new = -1.0
        if size > p_n:
            low = alpha
        else:
            high = alpha
        if p_n > 0.0:
            d1, d2 = -p1 / (w1 + alpha), -p2 / (w2 + alpha)
            d_n = -(k1 * d1 + k2 * d2) / w_nn
            slope = -(p1 * d1 + p2 * d2) / (size * size * size) + d_n / (p_n * p_n)
            new = alpha - (1.0 / size - 1.0 / p_n) / slope
        found = abs(new - alpha) <= 1e-12 * alpha  # Newton is quadratic: the next step is at rounding
        if high > 0.0 and not found:
            if not low < new < high:
                new = 0.5 * (low + high)
                found = new == low or new == high
        elif not found and not low < new < 1e300:
            new = 4.0 * alpha
        alpha = new
    return p_n, p1, p2


@kernel(inline=True)
def tangent_axes(w, c0, c1):
    """What `solve_on_axes` needs of a contact with the block ``w`` (3, 3) and the coefficients of its cone.

    The tangential problem after elimination of P_n, in the variables P_t / c, where the cone is |p| <= P_n: coupling to
    n (two), cosine and sine of its principal axes, the eigenvalues (two), and what is as good as zero.
    """
    w_nn = w[0, 0]
    k1, k2 = c0 * w[0, 1], c1 * w[0, 2]
    r11 = c0 * c0 * w[1, 1] - k1 * k1 / w_nn
    r22 = c1 * c1 * w[2, 2] - k2 * k2 / w_nn
    r12 = c0 * c1 * w[1, 2] - k1 * k2 / w_nn
    c, s = 1.0, 0.0
    if r12 != 0.0:
        angle = 0.5 * np.arctan2(2.0 * r12, r11 - r22)
        c, s = np.cos(angle), np.sin(angle)
    w1 = c * c * r11 + 2.0 * c * s * r12 + s * s * r22
    w2 = s * s * r11 - 2.0 * c * s * r12 + c * c * r22
    return k1, k2, c, s, w1, w2, 1e-14 * (c0 * c0 * w[1, 1] + c1 * c1 * w[2, 2])


@kernel(inline=True)
def solve_on_axes(w_nn, b_n, b_1, b_2, c0, c1, axes):
    """Impulse (P_n, P_t1, P_t2) and status of a contact with three components, from its `tangent_axes`."""
    k1, k2, c, s, w1, w2, tiny = axes
    if not b_n < 0.0:
        return 0.0, 0.0, 0.0, SEPARATING
    if c0 < 1e-100 and c1 < 1e-100:  # no friction; the squares of such coefficients would underflow
        return -b_n / w_nn, 0.0, 0.0, SLIDING
    b1, b2 = c0 * b_1 - k1 * b_n / w_nn, c1 * b_2 - k2 * b_n / w_nn
    e1, e2 = c * b1 + s * b2, -s * b1 + c * b2
    l1, l2 = c * k1 + s * k2, -s * k1 + c * k2
    p1 = -e1 / w1 if w1 > tiny else 0.0
    p2 = -e2 / w2 if w2 > tiny else 0.0
    unbounded = (w1 <= tiny and e1 != 0.0) or (w2 <= tiny and e2 != 0.0)  # no finite impulse makes it stick
    status = STICKING if c0 > 0.0 and c1 > 0.0 else SLIDING  # a flat cone lets the contact slide along one axis
    p_n = -(b_n + l1 * p1 + l2 * p2) / w_nn
    if unbounded or not p1 * p1 + p2 * p2 <= p_n * p_n or p_n < 0.0:
        status = SLIDING
        p_n, p1, p2 = _slide(w_nn, b_n, l1, l2, max(w1, 0.0), max(w2, 0.0), e1, e2)
    return p_n, c0 * (c * p1 - s * p2), c1 * (s * p1 + c * p2), status


@kernel
def solve_three(w, b, c0, c1):
    """Impulse (P_n, P_t1, P_t2) and status of a contact with three components; ``w`` (3, 3), ``b`` (3,)."""
    if not b[0] < 0.0:
        return 0.0, 0.0, 0.0, SEPARATING
    return solve_on_axes(w[0, 0], b[0], b[1], b[2], c0, c1, tangent_axes(w, c0, c1))


@kernel
def solve_contact(w, b, c, p):
    """Write the impulse of one contact into ``p`` (d,) and return its status; ``w`` (d, d), ``b`` (d,), ``c`` (2,)."""
    if b.size == 1:
        p[0] = max(0.0, -b[0] / w[0, 0])
        return SLIDING if p[0] > 0.0 else SEPARATING
    if b.size == 2:
        p[0], p[1], status = solve_two(w[0, 0], w[0, 1], w[1, 1], b[0], b[1], c[0], c[1])
    else:
        p[0], p[1], p[2], status = solve_three(w, b, c[0], c[1])
    return status


@kernel
def dissipation(v, c):
    """phi_1(U_t) of 2004, eq. 31: the power per unit P_n that the law dissipates; ``v`` (d,), ``c`` (2,)."""
    if v.size == 1:
        return 0.0
    if v.size == 2:
        return c[1] * v[1] if v[1] > 0.0 else -c[0] * v[1]
    return np.sqrt((c[0] * v[1]) ** 2 + (c[1] * v[2]) ** 2)


@kernel
def bipotential(v, p, c):
    """b(U, P) = U . P + phi_1(U_t) P_n of 2003, section 5.2, with |U_n| for U_n; arrays (d,), (d,), (2,).

    Where U_n < 0, which the law excludes, |U_n| keeps the parts from cancelling.
    """
    total = (abs(v[0]) + dissipation(v, c)) * p[0]
    for i in range(1, v.size):
        total += v[i] * p[i]
    return total


@kernel
def cone_excess(p, c):
    """How far P lies outside its cone (0 inside), measured along P_t at the P_n given; ``p`` (d,), ``c`` (2,)."""
    outside = max(0.0, -p[0])
    if p.size == 2:
        outside = max(outside, p[1] - c[0] * p[0], -p[1] - c[1] * p[0])
    elif p.size == 3:
        size, reach = np.sqrt(p[1] ** 2 + p[2] ** 2), np.sqrt((c[1] * p[1]) ** 2 + (c[0] * p[2]) ** 2)
        limit = c[0] * c[1] * size / reach if reach > 0.0 else max(c[0], c[1])
        outside = max(outside, size - limit * p[0])
    return outside


@kernel
def _project_wedge(x_n, x_t, c0, c1):
    """Nearest point of {-c1 x_n <= x_t <= c0 x_n}."""
    if x_n >= 0.0 and -c1 * x_n <= x_t <= c0 * x_n:
        return x_n, x_t
    side = c0 if x_t > 0.0 else -c1
    along = max(0.0, (x_n + side * x_t) / (1.0 + side * side))
    return along, side * along


@kernel
def natural_map(p, v, c, rho, out):
    """P - proj_K(P - rho U^) with de Saxce's U^ = U + phi_1(U_t) n; zero exactly on the law. Arrays (d,).

    For an ellipse the map is taken in the variables P_t c_max / c, U_t c / c_max, in which the cone is round.
    """
    x_n = p[0] - rho * (v[0] + dissipation(v, c))
    if p.size == 1:
        out[0] = p[0] - max(0.0, x_n)
        return
    if p.size == 2:
        y_n, y_t = _project_wedge(x_n, p[1] - rho * v[1], c[0], c[1])
        out[0], out[1] = p[0] - y_n, p[1] - y_t
        return
    top = max(c[0], c[1])
    s1 = c[0] / top if top > 0.0 else 1.0
    s2 = c[1] / top if top > 0.0 else 1.0
    p1 = p[1] / s1 if s1 > 0.0 else p[1]
    p2 = p[2] / s2 if s2 > 0.0 else p[2]
    x1, x2 = p1 - rho * s1 * v[1], p2 - rho * s2 * v[2]
    size = np.sqrt(x1 * x1 + x2 * x2)
    y_n, y_t = _project_wedge(x_n, size, top, 0.0)
    shrink = y_t / size if size > 0.0 else 0.0
    out[0], out[1], out[2] = p[0] - y_n, p1 - shrink * x1, p2 - shrink * x2
