"""Deformable parts: inertia and stiffness of bars and beams, whose amplitudes of deformation are freedoms of a system.

"Le formalisme n'est pas limité aux collections de corps strictement rigides car q peut aussi inclure les paramètres
d'une représentation approchée de la déformabilité" (2003, section 3.1): finite elements or modes. The matrices are
for `System(inertia=A, stiffness=K)`; a step of the scheme midpoint is not limited by the stiffness.
"""

import numpy as np
from scipy.linalg import eigh, qr

from ..errors import InputError, as_numbers, explained, is_definite, is_number

LEAST, MOST = 1e-50, 1e50  # of lengths, masses and speeds: their products are numbers


@explained
def bar(*, length: float, mass: float, wave_speed: float, elements: int, lumped: bool = True):
    """A bar that stretches along its axis: A (N+1, N+1) and K of its nodes' displacements, linear finite elements.

    The stiffness of an element is E S / dx with E S = (mass / length) wave_speed^2. ``lumped`` puts the mass of an
    element on its two nodes, half each; otherwise the consistent mass matrix is given.

    >>> A, K = bar(length=2.0, mass=3.0, wave_speed=10.0, elements=4)
    >>> float(A.sum()), float(abs(K.sum(axis=1)).max())
    (3.0, 0.0)
    """
    _positive(length=length, mass=mass, wave_speed=wave_speed)
    _whole(elements)
    dx = length / elements
    part = mass / elements * (np.eye(2) / 2 if lumped else np.array([[2.0, 1.0], [1.0, 2.0]]) / 6)
    spring = mass / length * wave_speed**2 / dx * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return _assemble(part, elements, 1), _assemble(spring, elements, 1)


@explained
def beam(*, length: float, mass: float, bending: float, elements: int):
    """A beam that bends in a plane (Euler-Bernoulli): A and K of the nodes' deflections and slopes, (2N+2, 2N+2).

    Freedoms in the order w_0, w_0', w_1, w_1', ...; Hermite elements with consistent masses. ``bending`` is E I, N m^2.

    >>> A, K = beam(length=1.0, mass=1.0, bending=1.0, elements=16)
    >>> [round(float(w) ** 0.5, 2) for w in modes(A, K, 4)[0][2:]]  # (beta L) of a free beam: 4.730, 7.853
    [4.73, 7.85]
    """
    _positive(length=length, mass=mass, bending=bending)
    _whole(elements)
    x = length / elements
    part = mass / elements / 420 * np.array([
        [156, 22 * x, 54, -13 * x],
        [22 * x, 4 * x * x, 13 * x, -3 * x * x],
        [54, 13 * x, 156, -22 * x],
        [-13 * x, -3 * x * x, -22 * x, 4 * x * x],
    ])  # fmt: skip
    spring = bending / x**3 * np.array([
        [12, 6 * x, -12, 6 * x],
        [6 * x, 4 * x * x, -6 * x, 2 * x * x],
        [-12, -6 * x, 12, -6 * x],
        [6 * x, 2 * x * x, -6 * x, 4 * x * x],
    ])  # fmt: skip
    return _assemble(part, elements, 2), _assemble(spring, elements, 2)


@explained
def modes(inertia: np.ndarray, stiffness: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` lowest modes: angular frequencies (k,), rad/s, and shapes (n, k) with S^T A S = 1, S^T K S = w^2.

    With q = rest + S a the amplitudes a have the inertia 1 and the stiffness w^2; motions without deformation come
    first, with frequency 0.
    """
    inertia, stiffness = as_numbers("inertia", inertia), as_numbers("stiffness", stiffness)
    if {inertia.ndim, stiffness.ndim} != {2} or len({*inertia.shape, *stiffness.shape}) != 1 or not inertia.size:
        raise InputError(f"modes got matrices of shape {inertia.shape} and {stiffness.shape}; give (n, n) for both.")
    if not (np.isfinite(inertia).all() and np.isfinite(stiffness).all()):
        raise InputError("modes got a matrix that is not finite; give finite numbers.")
    n = len(inertia)
    if not (isinstance(count, int) and 1 <= count <= n):
        raise InputError(f"The count of modes is {count!r}; give a whole number from 1 to {n}.")
    if not is_definite(inertia):
        raise InputError("The inertia of the modes is not positive definite; give every freedom a positive mass.")
    squares, shapes = eigh(stiffness, inertia)
    rigid = squares < 1e-9 * squares[-1]
    squares[rigid] = 0.0
    # Motions without deformation are determined up to a rotation among themselves: the simplest ones, by pivoting.
    if rigid.sum() > 1:
        shapes[:, rigid] = shapes[:, rigid] @ qr(shapes[:, rigid].T, pivoting=True)[0]
    return np.sqrt(squares[:count]), shapes[:, :count]


@explained
def impacting_bar(height, time: float, *, length: float, wave_speed: float, speed: float):
    """d'Alembert's solution: displacement and velocity of a free bar that strikes a rigid ground at ``time`` 0.

    The point at ``height`` s of the undeformed bar, which falls with ``speed`` v without gravity, stops when the wave
    from the ground reaches it (s = c t) and leaves with v when the wave reflected at the free end does (s = 2 L - c t):

        y - s = -v min(t, s/c) + v max(0, t - (2 L - s)/c).

    The contact lasts 2 L / c with the constant force (mass / length) c v; the bar leaves it undeformed and with the
    speed v: the contact's own law is inelastic, the collision of the bar is elastic.
    """
    _positive(length=length, wave_speed=wave_speed)
    if not (is_number(time) and is_number(speed)):
        raise InputError(f"impacting_bar got time={time!r}, speed={speed!r}; give numbers.")
    s = as_numbers("height", height)
    arrival, back = s / wave_speed, (2 * length - s) / wave_speed
    shift = -speed * np.minimum(time, arrival) + speed * np.maximum(0.0, time - back)
    return shift, np.where(time < arrival, -speed, np.where(time < back, 0.0, speed))


def _assemble(part, elements, per_node):
    """The sum of the element matrices on shared nodes."""
    whole = np.zeros((per_node * (elements + 1),) * 2)
    for e in range(elements):
        place = slice(per_node * e, per_node * (e + 2))
        whole[place, place] += part
    return whole


def _positive(**values):
    for name, value in values.items():
        if not (is_number(value) and LEAST <= value <= MOST):
            raise InputError(f"{name} is {value!r}; give a positive number, {LEAST:g} to {MOST:g}.")


def _whole(elements):
    if not (isinstance(elements, int) and 1 <= elements <= 100_000):  # the matrices are dense
        raise InputError(f"elements is {elements!r}; give a whole number, 1 at least.")
