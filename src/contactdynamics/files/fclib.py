"""Contact problems in FCLIB's HDF5 form, which Siconos, LMGC90 and others write and read.

::

    /fclib_local/   spacedim, W/{m,n,nz,nzmax,p,i,x}, vectors/{q,mu}; with equations: V, R, vectors/s
    /fclib_global/  spacedim, M, H, vectors/{f,w,mu}; with equations: G, vectors/b
    /solution/      r, u, in the bodies' form v (and l)
    /guesses/       number_of_guesses, 1/{r,u,...}, 2/...
    /contactdynamics/  our own: velocity, friction, gap, free, W: what the form above has no place for

    local   u = W r + V l + q,  0 = V^T r + R l + s
    global  M v = H r + G l + f,  u = H^T v + w,  0 = G^T v + b

A matrix has nz >= 0 triplets (i row, p column), or nz = -1 compressed columns, -2 compressed rows; nzmax may exceed nz.
Equations are eliminated on reading: the problem is then that of the contacts alone, in the form W, q.
"""

import contextlib
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from .._version import __version__
from ..errors import InputError
from ..problem.form import ROWS_AT_MOST, BodyForm, ContactProblem
from . import soundness
from .writing import replacing

OWN, LAYOUT = "contactdynamics", 1
TRIPLETS, COLUMNS, ROWS = 0, -1, -2


class Stored(NamedTuple):
    """Impulses that a problem file holds: the solution, or a guess."""

    impulses: np.ndarray  # (m, d) r, N s
    velocities: np.ndarray | None = None  # (m, d) u, m/s
    body_velocities: np.ndarray | None = None  # (n,) v, m/s


# ---- reading ---------------------------------------------------------------------------------------------------------


class Reader:
    """An open file whose arrays are looked at before they are loaded; ``path`` is for the sentences."""

    def __init__(self, file, path: Path):
        self.file, self.path = file, path

    def has(self, name: str) -> bool:
        return soundness.found(self.file, self.path, name) is not None

    def whole(self, name: str) -> int:
        """One whole number."""
        value = self.numbers(name, np.int64)
        if len(value) != 1:
            raise wrong(self.path, f"{name} has {len(value)} numbers, 1 expected")
        return int(value[0])

    def numbers(self, name: str, kind=np.float64, count: int | None = None) -> np.ndarray:
        """A row of numbers, as many as ``count``; reals must be finite."""
        data = soundness.found(self.file, self.path, name)
        if data is None:
            raise wrong(self.path, f"{name} is missing")
        if not isinstance(data, h5py.Dataset) or data.shape is None:
            raise wrong(self.path, f"{name} is no array")
        if data.shape == ():
            data = data[()].reshape(1) if isinstance(data[()], np.number) else data
        else:
            try:
                soundness.check_column(data, self.path, name, kind, data.shape[1:])
            except InputError as error:
                raise wrong(self.path, str(error).partition(" is damaged: ")[2].partition(";")[0]) from None
        if data.dtype.kind not in ("iu" if kind is np.int64 else "fiu"):
            raise wrong(self.path, f"{name} holds {data.dtype}, numbers expected")
        if count is not None and data.size != count:
            raise wrong(self.path, f"{name} has {data.size} numbers, {count} expected")
        with soundness.told(self.path, name):
            values = np.ravel(data[...]).astype(kind)
        if kind is np.float64 and not np.isfinite(values).all():
            raise wrong(self.path, f"{name} contains nan or infinity")
        return values

    def matrix(self, name: str, shape: tuple[int, int]):
        """A sparse matrix that has this ``shape``, in rows; whatever the storage."""
        from scipy.sparse import coo_array, csc_array, csr_array

        rows, columns, kind = (self.whole(f"{name}/{part}") for part in ("m", "n", "nz"))
        if (rows, columns) != shape:
            raise wrong(self.path, f"{name} is {rows} x {columns}, {shape[0]} x {shape[1]} expected")
        if kind < ROWS:
            raise wrong(self.path, f"{name}/nz is {kind}; -2 is rows, -1 columns, 0 or more the number of triplets")
        p, i = self.numbers(f"{name}/p", np.int64), self.numbers(f"{name}/i", np.int64)
        if kind >= TRIPLETS:
            x = self.numbers(f"{name}/x")
            if min(len(p), len(i), len(x)) < kind:
                raise wrong(self.path, f"{name} states {kind} triplets and has {min(len(p), len(i), len(x))}")
            p, i, x = p[:kind], i[:kind], x[:kind]
            self._in_range(f"{name}/i", i, rows)
            self._in_range(f"{name}/p", p, columns)
            return coo_array((x, (i, p)), shape).tocsr()
        lines, across = (rows, columns) if kind == ROWS else (columns, rows)
        if len(p) != lines + 1 or p[0] != 0 or (np.diff(p) < 0).any():
            raise wrong(self.path, f"{name}/p is no list of {lines} starts and an end")
        x = self.numbers(f"{name}/x")
        if min(len(i), len(x)) < p[-1]:
            raise wrong(self.path, f"{name} states {p[-1]} entries and has {min(len(i), len(x))}")
        i, x = i[: p[-1]], x[: p[-1]]
        self._in_range(f"{name}/i", i, across)
        out = (csr_array if kind == ROWS else csc_array)((x, i, p), shape).tocsr()
        out.sum_duplicates()
        return out

    def _in_range(self, name: str, values, end: int) -> None:
        if len(values) and not (values.min() >= 0 and values.max() < end):
            raise wrong(self.path, f"{name} points outside the matrix, to {values.max()} of {end}")


class WrongFile(InputError):
    """A problem file in which something does not fit."""


def wrong(path, what: str) -> WrongFile:
    """The sentence on it."""
    return WrongFile(f"{path} is no contact problem that can be read: {what}; write the file again, or repair it.")


def read(path: Path) -> ContactProblem:
    """The problem of an FCLIB file."""
    with opened(path) as file:
        reader = Reader(file, path)
        if reader.has("fclib_global"):
            return _read_global(reader)
        if reader.has("fclib_local"):
            return _read_local(reader)
    raise wrong(path, "it has neither fclib_local nor fclib_global")


@contextlib.contextmanager
def opened(path: Path):
    """An HDF5 file open for reading; whatever the library finds wrong in it becomes a sentence."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError) as error:
        raise wrong(path, f"it is damaged, cut off or no HDF5 ({soundness.short(error)})") from None


def _sizes(reader: Reader, group: str, vector: str) -> tuple[int, int]:
    """Contacts and components."""
    d = reader.whole(f"{group}/spacedim")
    if d not in (1, 2, 3):
        raise wrong(reader.path, f"{group}/spacedim is {d}; 2 or 3 expected")
    size = len(reader.numbers(f"{group}/vectors/{vector}"))
    if size % d:
        raise wrong(reader.path, f"{group}/vectors/{vector} has {size} numbers, a multiple of {d} expected")
    return size // d, d


def _friction(reader: Reader, group: str, m: int) -> np.ndarray:
    """The coefficients (m, 2): Coulomb's mu, or the two of our own files."""
    if reader.has(f"{OWN}/friction"):
        friction = reader.numbers(f"{OWN}/friction", count=2 * m).reshape(m, 2)
    else:
        friction = np.repeat(reader.numbers(f"{group}/vectors/mu", count=m)[:, None], 2, axis=1)
    if (friction < 0).any():
        raise wrong(reader.path, f"{group}/vectors/mu has {friction.min():g}, friction >= 0 expected")
    return friction


def _own(reader: Reader, name: str, shape: tuple, default):
    """An array of our own group, or what stands for it in files of others."""
    if reader.has(f"{OWN}/{name}"):
        return reader.numbers(f"{OWN}/{name}", count=int(np.prod(shape))).reshape(shape)
    return default() if callable(default) else default


def _read_local(reader: Reader) -> ContactProblem:
    group = "fclib_local"
    m, d = _sizes(reader, group, "q")
    friction = _friction(reader, group, m)
    b = reader.numbers(f"{group}/vectors/q", count=m * d)
    w = reader.matrix(f"{group}/W", (m * d, m * d))
    if reader.has(f"{group}/V"):
        w, b = _without_equations(reader, group, w, b)
    elif _dense(reader, "delassus"):
        w = w.toarray()
    return ContactProblem(w, b.reshape(m, d), friction, _own(reader, "gap", (m,), lambda: np.zeros(m)))


def _dense(reader: Reader, name: str) -> bool:
    """Whether a matrix of our own file was dense."""
    return reader.has(OWN) and reader.file[OWN].attrs.get(name) == "dense"


def _without_equations(reader: Reader, group: str, w, b):
    """W and q after l is eliminated from 0 = V^T r + R l + s."""
    count = len(reader.numbers(f"{group}/vectors/s"))
    if max(count, len(b)) > ROWS_AT_MOST:
        raise wrong(reader.path, f"{count} equations are too many to be eliminated")
    v = reader.matrix(f"{group}/V", (len(b), count)).toarray()
    r = reader.matrix(f"{group}/R", (count, count)).toarray()
    part = _solved(reader, f"{group}/R", r, np.column_stack([v.T, reader.numbers(f"{group}/vectors/s")]))
    return w.toarray() - v @ part[:, :-1], b - v @ part[:, -1]


def _solved(reader: Reader, name: str, matrix, right):
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        raise wrong(reader.path, f"{name} is singular: its equations depend on each other") from None


def _read_global(reader: Reader) -> ContactProblem:
    from scipy.sparse import csr_array

    group = "fclib_global"
    m, d = _sizes(reader, group, "w")
    friction = _friction(reader, group, m)
    momentum = reader.numbers(f"{group}/vectors/f")
    n = len(momentum)
    mass, h = reader.matrix(f"{group}/M", (n, n)), reader.matrix(f"{group}/H", (n, m * d))
    drift = reader.numbers(f"{group}/vectors/w", count=m * d).reshape(m, d)
    gap = _own(reader, "gap", (m,), lambda: np.zeros(m))
    jacobian = csr_array(h.T)
    jacobian.sort_indices()
    bodies = BodyForm(mass, jacobian, np.zeros(n), drift, momentum)
    if reader.has(f"{group}/G"):
        return _of_mechanism(reader, group, bodies, friction, gap)
    if _dense(reader, "mass"):
        bodies = bodies._replace(mass=mass.toarray())
    if _dense(reader, "jacobian"):
        bodies = bodies._replace(jacobian=jacobian.toarray())
    if reader.has(f"{OWN}/free"):
        bodies = bodies._replace(free=reader.numbers(f"{OWN}/free", count=n))
        if not reader.file[OWN].attrs.get("momentum", True):
            bodies = bodies._replace(momentum=None)
    else:
        bodies = bodies._replace(free=bodies.apply_inverse(momentum))
    velocity = _own(reader, "velocity", (m, d), lambda: (jacobian @ bodies.free).reshape(m, d) + drift)
    w = None
    if reader.has(f"{OWN}/W"):
        w = reader.matrix(f"{OWN}/W", (m * d, m * d))
        w = w.toarray() if _dense(reader, "delassus") else w
    return ContactProblem(w, velocity, friction, gap, bodies)


def _of_mechanism(reader: Reader, group: str, bodies: BodyForm, friction, gap) -> ContactProblem:
    """W and q after v and l are eliminated from M v = H r + G l + f, 0 = G^T v + b."""
    m, d = bodies.drift.shape
    n, b = len(bodies.momentum), reader.numbers(f"{group}/vectors/b")
    if max(m * d, len(b)) > ROWS_AT_MOST:
        raise wrong(reader.path, f"{len(b)} equations are too many to be eliminated")
    g, j = reader.matrix(f"{group}/G", (n, len(b))).toarray(), bodies.jacobian
    spread = bodies.apply_inverse(np.column_stack([j.T.toarray(), g, bodies.momentum]))  # M^-1 (H, G, f)
    h_part, g_part, free = spread[:, : m * d], spread[:, m * d : -1], spread[:, -1]
    held = _solved(reader, f"{group}/G", g.T @ g_part, np.column_stack([g.T @ h_part, g.T @ free + b]))
    w = j @ (h_part - g_part @ held[:, :-1])
    velocity = (j @ (free - g_part @ held[:, -1])).reshape(m, d) + bodies.drift
    return ContactProblem((w + w.T) / 2, velocity, friction, gap)


def description(path: Path) -> str:
    """The text ``info/description`` of a file."""
    with opened(path) as file:
        for group in ("fclib_global", "fclib_local"):
            data = soundness.found(file, path, f"{group}/info/description")
            if isinstance(data, h5py.Dataset) and data.shape == () and data.dtype.itemsize < 2**16:
                with soundness.told(path, "info/description"):
                    said = data[()]
                return said.decode("utf-8", "replace") if isinstance(said, bytes) else ""
    return ""


def read_solution(path: Path, shape: tuple[int, int]) -> tuple[Stored | None, list[Stored]]:
    """The solution of a file, None where it has none, and its guesses; ``shape`` (m, d) is the problem's."""
    with opened(path) as file:
        reader = Reader(file, path)
        guesses = []
        count = reader.whole("guesses/number_of_guesses") if reader.has("guesses/number_of_guesses") else 0
        for k in range(1, count + 1):
            if not reader.has(f"guesses/{k}"):
                raise wrong(path, f"guesses/{k} is missing, of {count}")
            guesses.append(_stored(reader, f"guesses/{k}", shape))
        return _stored(reader, "solution", shape) if reader.has("solution") else None, guesses


def _stored(reader: Reader, group: str, shape: tuple[int, int]) -> Stored:
    size = shape[0] * shape[1]
    r = reader.numbers(f"{group}/r", count=size).reshape(shape)
    u = reader.numbers(f"{group}/u", count=size).reshape(shape) if reader.has(f"{group}/u") else None
    v = reader.numbers(f"{group}/v") if reader.has(f"{group}/v") else None
    return Stored(r, u, v)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(problem: ContactProblem, path: Path, solution, guesses, description: str) -> None:
    """Write a problem, as given to `problems.write_problem`, which has checked it."""
    with replacing(path, keep=False) as file:
        group = file.create_group("fclib_local" if problem.bodies is None else "fclib_global")
        info = group.create_group("info")
        for name, text in (("title", "contact problem"), ("description", description),
                           ("math_info", f"written by {OWN} {__version__}")):  # fmt: skip
            info[name] = np.bytes_(text.encode("utf-8"))
        _whole(group, "spacedim", problem.components)
        own = file.create_group(OWN)
        own.attrs.update({"layout": LAYOUT, "version": __version__})
        (_write_local if problem.bodies is None else _write_global)(problem, group, own)
        first, second = problem.friction.T
        if (first == second).all() and not (np.signbit(first) != np.signbit(second)).any():
            _put(group, "vectors/mu", first)
        else:  # no mu: other programs would take one of the two for all directions
            _put(own, "friction", problem.friction)
        _put(own, "gap", problem.gap)
        if solution is not None:
            _write_impulses(file.create_group("solution"), problem, solution)
        if guesses:
            places = file.create_group("guesses")
            _whole(places, "number_of_guesses", len(guesses))
            for k, guess in enumerate(guesses, 1):
                _write_impulses(places.create_group(str(k)), problem, guess)


def _put(group, name: str, values: np.ndarray) -> None:
    """An array, packed where that pays."""
    packed = {"compression": "gzip", "shuffle": True} if values.size > 200 else {}
    group.create_dataset(name, data=values, **packed)


def _whole(group, name: str, value: int) -> None:
    group[name] = np.array([value], dtype=np.int32)


def _write_local(problem: ContactProblem, group, own) -> None:
    _write_matrix(group.create_group("W"), problem[0], ROWS)
    _mark_dense(own, "delassus", problem[0])
    _put(group, "vectors/q", problem.velocity.ravel())


def _write_global(problem: ContactProblem, group, own) -> None:
    bodies = problem.bodies
    _write_matrix(group.create_group("M"), bodies.mass, TRIPLETS)
    _write_matrix(group.create_group("H"), bodies.jacobian.T, TRIPLETS)
    _mark_dense(own, "mass", bodies.mass)
    _mark_dense(own, "jacobian", bodies.jacobian)
    _put(group, "vectors/f", bodies.mass @ bodies.free if bodies.momentum is None else bodies.momentum)
    _put(group, "vectors/w", bodies.drift.ravel())
    _put(own, "free", bodies.free)
    _put(own, "velocity", problem.velocity)
    own.attrs["momentum"] = bodies.momentum is not None
    if problem[0] is not None:
        _write_matrix(own.create_group("W"), problem[0], ROWS)
        _mark_dense(own, "delassus", problem[0])


def _mark_dense(own, name: str, matrix) -> None:
    if isinstance(matrix, np.ndarray):
        own.attrs[name] = "dense"


def _write_matrix(group, matrix, kind: int) -> None:
    """A matrix, sparse or dense, as triplets or in rows; zeros of a dense one are left out, but not -0.0."""
    from scipy.sparse import coo_array

    if isinstance(matrix, np.ndarray):
        row, column = np.nonzero((matrix != 0) | np.signbit(matrix))
        entries = coo_array((matrix[row, column], (row, column)), matrix.shape)
    else:
        entries = matrix.tocoo()
    m, n = entries.shape
    for name, value in (("m", m), ("n", n), ("nz", entries.nnz if kind == TRIPLETS else kind), ("nzmax", entries.nnz)):
        _whole(group, name, value)
    if kind == TRIPLETS:
        parts = {"i": entries.row, "p": entries.col, "x": entries.data}
    else:
        rows = entries.tocsr()
        parts = {"p": rows.indptr, "i": rows.indices, "x": rows.data}
    for name, values in parts.items():
        _put(group, name, values if name == "x" else values.astype(np.int32))


def _write_impulses(group, problem: ContactProblem, impulses: np.ndarray) -> None:
    """Impulses r, the velocities u = W r + q that go with them and, where the bodies are known, v."""
    _put(group, "r", impulses.ravel())
    _put(group, "u", problem.velocities(impulses).ravel())
    if problem.bodies is not None:
        _put(group, "v", problem.body_velocities(impulses))
