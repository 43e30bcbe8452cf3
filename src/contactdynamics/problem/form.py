"""The one-step problem as data, in two forms, and how the one follows from the other.

    contacts   U = W P + b
    bodies     M (v - v_free) = J^T P,  U = J v + w        with  W = J M^-1 J^T,  b = J v_free + w

Find P with (U, P) on each contact's law (see `laws`). The bodies' form is sparse, and redundant contacts cost nothing
in it; it is kept where it is known, and W is derived from it only for those who ask.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..display import short
from ..errors import InputError, as_numbers, explained

ROWS_AT_MOST = 12_000  # of a dense W: 1.2 GB
BLOCK_AT_MOST = 64  # freedoms coupled by M whose inverse is written out
ASYMMETRY = 0.2  # of M and W, over their largest entry: schemes that linearise the gyroscopic term make them so


class _BodyFields(NamedTuple):
    mass: np.ndarray  # (n, n) M, symmetric positive definite; SciPy sparse, or dense
    jacobian: np.ndarray  # (m*d, n) J; SciPy sparse, or dense
    free: np.ndarray  # (n,) velocity that the bodies would have without the contacts, m/s
    drift: np.ndarray  # (m, d) w: motion of boundaries and what restitution adds, m/s
    momentum: np.ndarray | None = None  # (n,) M v_free, where that is what was stated


@explained
class BodyForm(_BodyFields):
    """The bodies' form of a contact problem: M (v - free) = J^T P, U = J v + drift.

    ``mass`` (n, n) symmetric positive definite and ``jacobian`` (m*d, n) are SciPy sparse or dense, ``free`` is (n,),
    ``drift`` (m, d). ``momentum`` (n,) is M free where a file states that; it is written as it was read.
    """

    __repr__ = short

    @cached_property
    def inverse(self):
        """M^-1: a sparse matrix where M couples few freedoms at a time (`BLOCK_AT_MOST`), else factors (SuperLU)."""
        return _inverse(self.mass)

    def apply_inverse(self, x: np.ndarray) -> np.ndarray:
        """M^-1 x, for ``x`` (n,) or (n, k)."""
        return self.inverse.solve(x) if hasattr(self.inverse, "solve") else self.inverse @ x


class _ProblemFields(NamedTuple):
    delassus: np.ndarray | None  # (m*d, m*d) W, kg^-1; dense, SciPy sparse, or None where the bodies' form says it
    velocity: np.ndarray  # (m, d) b, weighted velocity left by the free motion, m/s
    friction: np.ndarray  # (m, 2) the two coefficients of the cone: see `laws`
    gap: np.ndarray  # (m,) gap at the midpoint, m
    bodies: BodyForm | None = None


@explained
class ContactProblem(_ProblemFields):
    """The one-step problem as data: find P with U = W P + b and (U, P) on each contact's law.

    ``delassus`` W (m*d, m*d) is dense, SciPy sparse, or None where ``bodies`` (`BodyForm`) is given; ``velocity`` b is
    (m, d), ``friction`` (m, 2), ``gap`` (m,). The laws are Coulomb's, with two coefficients: of two senses in 2D, of an
    ellipse in 3D. Rolling, spinning, cohesion and tension are not among them. W is symmetric, or nearly (`ASYMMETRY`),
    as programs make it that linearise the gyroscopic term; it is then taken as it is.

    >>> block = BodyForm(2 * np.eye(2), [[0.0, 1.0], [1.0, 0.0]], [0.3, -1.0], [[0.0, 0.0]])
    >>> problem = ContactProblem.of_bodies(block, friction=[[0.5, 0.5]])
    >>> problem.velocity.tolist(), problem.delassus.tolist()
    ([[-1.0, 0.3]], [[0.5, 0.0], [0.0, 0.5]])
    """

    __repr__ = short

    @classmethod
    def of_bodies(cls, bodies: BodyForm, friction, gap=None) -> "ContactProblem":
        """The problem in the bodies' form alone; b = J free + drift."""
        bodies = check_bodies(bodies)
        friction = as_numbers("The friction", friction)
        velocity = (bodies.jacobian @ bodies.free).reshape(bodies.drift.shape) + bodies.drift
        return check(cls(None, velocity, friction, np.zeros(len(velocity)) if gap is None else gap, bodies))

    @property
    def contacts(self) -> int:
        """m, how many contacts there are."""
        return len(self.velocity)

    @property
    def components(self) -> int:
        """d, components of each contact: n; n, t; n, t1, t2."""
        return np.shape(self.velocity)[1]

    @property
    def delassus(self):
        """W (m*d, m*d) as it was given; derived from the bodies, dense, where it was not (see `blocks`)."""
        if self[0] is not None or self.bodies is None:
            return self[0]
        if self.blocks.shape[0] > ROWS_AT_MOST:
            raise InputError(
                f"The problem has {self.contacts} contacts, too many for a dense matrix (at most "
                f"{ROWS_AT_MOST // self.components}); take the sparse one, problem.blocks."
            )
        return self._derived

    @cached_property
    def _derived(self) -> np.ndarray:
        return self.blocks.toarray()

    @cached_property
    def blocks(self):
        """W as a SciPy `bsr_array` of blocks (d, d), columns sorted, for any number of contacts; keep it as it is."""
        from scipy.sparse import csr_array

        if self[0] is None and self.bodies is None:
            raise InputError("The problem has neither delassus nor bodies; give W, or the bodies' form.")
        w = csr_array(self[0]) if self[0] is not None else _condensed(self.bodies)
        w = w.tobsr((self.components,) * 2) if w.shape[0] else w.tobsr((1, 1))
        w.sort_indices()
        return w

    def velocities(self, impulses: np.ndarray) -> np.ndarray:
        """U = W P + b (m, d) under the ``impulses`` P (m, d)."""
        return self.velocity + (self.blocks @ np.ravel(impulses)).reshape(np.shape(self.velocity))

    def body_velocities(self, impulses: np.ndarray) -> np.ndarray:
        """v = free + M^-1 J^T P (n,), where the bodies are known."""
        if self.bodies is None:
            raise InputError("The problem knows no bodies, only W and b; velocities() gives those of the contacts.")
        b = self.bodies
        return b.free + b.apply_inverse(b.jacobian.T @ np.ravel(impulses))

    def redundancy(self) -> "Redundancy":
        """The rank of W, and how many components of the impulses no velocity determines: by its eigenvalues, dense.

        >>> two = ContactProblem(np.ones((2, 2)), -np.ones((2, 1)), np.zeros((2, 2)), np.zeros(2))
        >>> two.redundancy()
        Redundancy(rows=2, rank=1, free=1, condition=1)
        """
        rows = self.blocks.shape[0]
        if rows > ROWS_AT_MOST // 2:
            raise InputError(f"The rank of {rows} rows is too dear; {ROWS_AT_MOST // 2} can be looked at.")
        values = np.linalg.eigvalsh((self.blocks + self.blocks.T).toarray() / 2)
        top = values.max(initial=0.0)
        kept = values[values > 10 * rows * np.finfo(float).eps * top]
        return Redundancy(rows, len(kept), rows - len(kept), float(top / kept.min()) if len(kept) else 1.0)


class Redundancy(NamedTuple):
    """What the velocities of the contacts can say of their impulses."""

    rows: int  # m*d, components of all impulses
    rank: int  # of W: how many of them the velocities determine
    free: int  # rows - rank: the degree of hyperstaticity
    condition: float  # of W on its range: the largest over the smallest eigenvalue that is not zero

    __repr__ = short


def _condensed(bodies: BodyForm):
    """W = J M^-1 J^T, sparse."""
    from scipy.sparse import csr_array

    j, inverse = bodies.jacobian, bodies.inverse
    if not hasattr(inverse, "solve"):
        w = j @ inverse @ j.T
    elif j.shape[0] > ROWS_AT_MOST:
        raise InputError(
            f"W of {j.shape[0]} rows would be dense, since M couples more than {BLOCK_AT_MOST} freedoms; take a solver "
            "that works on the bodies."
        )
    else:
        w = j @ inverse.solve(j.T.toarray())
    return csr_array((w + w.T) / 2 if abs(bodies.mass - bodies.mass.T).max() == 0 else w)


def _inverse(mass):
    """M^-1, see `BodyForm.inverse`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    n = mass.shape[0]
    entries = mass.tocoo()
    count, label = connected_components(entries, directed=False)
    size = np.bincount(label, minlength=count)
    if n and size.max() > BLOCK_AT_MOST:
        # Without exchanges of rows the pivots are those of L D L^T: all positive where M is positive definite.
        try:
            factors = splu(mass.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                           options={"SymmetricMode": True})  # fmt: skip
            definite = (factors.U.diagonal() > 0).all() and (factors.perm_r == factors.perm_c).all()
        except RuntimeError:  # exactly singular
            definite = False
        if not definite:
            raise InputError(INDEFINITE)
        return factors
    order = np.argsort(label, kind="stable")  # freedoms, component after component
    start = np.concatenate([[0], np.cumsum(size)])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - np.repeat(start[:-1], size)
    rows, columns, values = [], [], []
    for length in np.unique(size):
        which = np.flatnonzero(size == length)
        number = np.full(count, -1)
        number[which] = np.arange(len(which))
        block = np.zeros((len(which), length, length))
        taken = number[label[entries.row]] >= 0
        i, j = entries.row[taken], entries.col[taken]
        block[number[label[i]], place[i], place[j]] = entries.data[taken]
        freedoms = order[start[which][:, None] + np.arange(length)]  # (k, length)
        rows.append(np.repeat(freedoms, length, axis=1).ravel())
        columns.append(np.tile(freedoms, length).ravel())
        values.append(_inverted(block).ravel())
    parts = [np.concatenate(part) if part else np.zeros(0) for part in (values, rows, columns)]
    return coo_array((parts[0], (parts[1].astype(np.int64), parts[2].astype(np.int64))), (n, n)).tocsr()


INDEFINITE = "The mass is not positive definite; every freedom needs inertia, and M must be symmetric."


def _inverted(block: np.ndarray) -> np.ndarray:
    """The inverses of positive blocks (k, s, s), symmetric where these are."""
    try:
        across = block.transpose(0, 2, 1)
        np.linalg.cholesky((block + across) / 2)
        if block.shape[1] == 1:
            return 1.0 / block
        inverse = np.linalg.inv(block)
    except np.linalg.LinAlgError:
        raise InputError(INDEFINITE) from None
    return (inverse + inverse.transpose(0, 2, 1)) / 2 if (block == across).all() else inverse


# ---- the door --------------------------------------------------------------------------------------------------------


def check(problem, who: str = "solve") -> ContactProblem:
    """The problem with clean arrays (floats, contiguous, sparse rows), once shown to fit together; else a sentence."""
    if not isinstance(problem, ContactProblem):
        raise InputError(f"{who} got {problem!r}; give a ContactProblem, such as contact_problem(system, state, h).")
    velocity, friction, gap = (
        np.ascontiguousarray(as_numbers(f"The problem's {name}", array))
        for name, array in zip(problem._fields[1:4], problem[1:4], strict=True)
    )
    if velocity.ndim != 2 or velocity.shape[1] not in (1, 2, 3):
        raise InputError(f"The velocity has shape {velocity.shape}; give (m, d) with d = 1, 2 or 3 components.")
    m, d = velocity.shape
    for name, array, shape in (("friction", friction, (m, 2)), ("gap", gap, (m,))):
        if array.shape != shape:
            raise InputError(f"The {name} has shape {array.shape}; {m} contacts of {d} components need {shape}.")
    for name, array in (("velocity", velocity), ("friction", friction), ("gap", gap)):
        check_finite(f"problem's {name}", array)
    if (friction < 0).any():
        raise InputError(f"The friction contains {friction.min():g}; give coefficients >= 0.")
    delassus, bodies = problem[0], problem.bodies
    if delassus is None and bodies is None:
        raise InputError("The problem has neither delassus nor bodies; give W, or the bodies' form.")
    if delassus is not None:
        delassus = _checked_delassus(delassus, m, d)
    if bodies is not None:
        bodies = check_bodies(bodies)
        if bodies.drift.shape != (m, d):
            raise InputError(f"The bodies' drift has shape {bodies.drift.shape}; the velocity has {(m, d)}.")
        _check_agreement(delassus, velocity, bodies)
    clean = ContactProblem(delassus, velocity, friction, gap, bodies)
    if all(new is old for new, old in zip(clean, problem, strict=True)):
        clean = problem  # with what was derived from it
    if delassus is None:
        _check_diagonal(clean.blocks.diagonal()[::d])
    return clean


def checked_guess(problem: ContactProblem, guess) -> np.ndarray:
    """The first impulses (m, d) of a checked problem, a copy; zero where no guess is given."""
    shape = problem.velocity.shape
    impulses = np.zeros(shape) if guess is None else as_numbers("The guess", guess).copy()
    if impulses.shape != shape:
        raise InputError(
            f"The guess has shape {impulses.shape}; {shape[0]} contacts of {shape[1]} components need {shape}."
        )
    check_finite("problem's guess", impulses)
    return impulses


def check_finite(name: str, array) -> None:
    """Refuse nan and infinity."""
    if not np.isfinite(array).all():
        raise InputError(f"The {name} contains nan or infinity; give finite numbers.")


def check_bodies(bodies) -> BodyForm:
    """The bodies' form with clean arrays and sparse rows."""
    if not isinstance(bodies, BodyForm):
        raise InputError(f"The problem's bodies are {bodies!r}; give a BodyForm(mass, jacobian, free, drift).")
    mass, jacobian = (
        _sparse(f"bodies' {name}", value) for name, value in zip(("mass", "jacobian"), bodies, strict=False)
    )
    free, drift = (
        np.ascontiguousarray(as_numbers(f"The bodies' {name}", value))
        for name, value in zip(("free", "drift"), bodies[2:4], strict=True)
    )
    n = mass.shape[0]
    if mass.shape != (n, n):
        raise InputError(f"The bodies' mass has shape {mass.shape}; it must be square.")
    if drift.ndim != 2 or drift.shape[1] not in (1, 2, 3):
        raise InputError(f"The bodies' drift has shape {drift.shape}; give (m, d) with d = 1, 2 or 3 components.")
    for name, shape, wanted in (("jacobian", jacobian.shape, (drift.size, n)), ("free", free.shape, (n,))):
        if shape != wanted:
            raise InputError(
                f"The bodies' {name} has shape {shape}; {n} freedoms and {len(drift)} contacts need {wanted}."
            )
    for name, array in (("mass", mass.data), ("jacobian", jacobian.data), ("free", free), ("drift", drift)):
        check_finite(f"bodies' {name}", array)
    if n and abs(mass - mass.T).max() > ASYMMETRY * abs(mass).max():
        raise InputError("The bodies' mass is not symmetric; give M, for which the energy is v . M v / 2.")
    momentum = bodies.momentum
    if momentum is not None:
        momentum = np.ascontiguousarray(as_numbers("The bodies' momentum", momentum))
        if momentum.shape != (n,):
            raise InputError(f"The bodies' momentum has shape {momentum.shape}; {n} freedoms need {(n,)}.")
        check_finite("bodies' momentum", momentum)
    clean = BodyForm(mass, jacobian, free, drift, momentum)
    if all(new is old for new, old in zip(clean, bodies, strict=True)):
        clean = bodies
    _ = clean.inverse  # refuses what is not positive definite
    return clean


def _sparse(name: str, value):
    """A matrix in sparse rows of floats, whether it came sparse or dense."""
    from scipy.sparse import csr_array, issparse

    if issparse(value):
        if value.format == "csr" and value.dtype == float and value.has_canonical_format:
            return value
        try:
            value = csr_array(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"The {name} holds {value.dtype}; give numbers.") from None
        value.sum_duplicates()
        return value
    dense = as_numbers(f"The {name}", value)
    if dense.ndim != 2:
        raise InputError(f"The {name} has shape {dense.shape}; give a matrix.")
    return csr_array(dense)


def _checked_delassus(delassus, m: int, d: int):
    """W as it was given, dense or sparse, symmetric and with a positive diagonal where it must be."""
    from scipy.sparse import issparse

    if issparse(delassus):
        w = _sparse("problem's delassus", delassus)
        values, asymmetry = w.data, abs(w - w.T).max() if w.shape[0] == w.shape[1] and w.nnz else 0.0
    else:
        w = values = np.ascontiguousarray(as_numbers("The problem's delassus", delassus))
        asymmetry = 0.0
    if w.shape != (m * d, m * d):
        raise InputError(
            f"The Delassus operator has shape {w.shape}; {m} contacts of {d} components need {(m * d,) * 2}."
        )
    check_finite("problem's delassus", values)
    if w is values:
        asymmetry = np.abs(w - w.T).max(initial=0.0)
    _check_diagonal(w.diagonal()[::d])
    if asymmetry > ASYMMETRY * np.abs(values).max(initial=0.0):
        raise InputError("The delassus operator is not symmetric; give W = G A^-1 G^T.")
    return w


def _check_diagonal(normal: np.ndarray) -> None:
    if not (normal > 0).all():
        raise InputError(
            f"The delassus operator has W_nn = {normal.min():g} at contact {normal.argmin()}; it must be positive."
        )


def _check_agreement(delassus, velocity, bodies: BodyForm) -> None:
    """Refuse a velocity, or a W, that is not the one of the bodies; W by its action on one vector."""
    j, free = bodies.jacobian, bodies.free
    derived = (j @ free).reshape(velocity.shape) + bodies.drift
    size = (abs(j) @ np.abs(free)).reshape(velocity.shape) + np.abs(bodies.drift) + np.abs(velocity)
    if (np.abs(derived - velocity) > 1e-9 * size.max(initial=0.0)).any():
        raise InputError(
            "The velocity is not that of the bodies, J free + drift; change both together, or leave the bodies out."
        )
    if delassus is not None and velocity.size:
        probe = np.random.default_rng(1).normal(size=velocity.size)
        ours, theirs = delassus @ probe, j @ bodies.apply_inverse(j.T @ probe)
        if np.abs(ours - theirs).max() > 1e-8 * (abs(delassus) @ np.abs(probe)).max():
            raise InputError(
                "The delassus operator is not that of the bodies, J M^-1 J^T; give one of the two, None for the other."
            )
