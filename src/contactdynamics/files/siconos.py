"""Contact problems in Siconos' text form (``.dat``).

Numbers parted by blanks: components d, contacts m, a matrix, q (m d), mu (m), and sometimes one more flag. The global
form has M, H, f, w, mu instead: M v = H r + f, u = H^T v + w. A matrix begins with its storage and its two sizes:

- 0, dense: the sizes again, the values column by column;
- 1, sparse block: blocks, block rows, block columns, the ends of the rows and of the columns, two lengths, the starts
  of the block rows, the block columns; then each block's number and its values column by column;
- 2, as CSparse prints it: columns with their rows, or triplets.
"""

import os
import re
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..problem.form import BodyForm, ContactProblem
from .fclib import wrong

DENSE, BLOCKS, PRINTED = 0, 1, 2
LARGEST = 2**31  # bytes of text
SIZES = re.compile(r"(\d{1,12})-by-(\d{1,12}),?")


class Words:
    """The words of a file, taken one after another; numbers asked for must be there before room is made for them."""

    def __init__(self, path: Path):
        if path.stat().st_size > LARGEST:
            raise wrong(path, f"{path.stat().st_size} bytes are too many for a text")
        self.path, self.words, self.place = path, path.read_text(errors="replace").split(), 0

    @property
    def left(self) -> int:
        return len(self.words) - self.place

    def next(self, what: str) -> str:
        if not self.left:
            raise wrong(self.path, f"it ends before {what}")
        self.place += 1
        return self.words[self.place - 1]

    def whole(self, what: str, least: int = 0) -> int:
        word = self.next(what)
        if not (word.isascii() and word.lstrip("+").isdigit() and len(word) <= 12 and int(word) >= least):
            raise wrong(self.path, f"{what} is {word[:30]!r}, a whole number from {least} on expected")
        return int(word)

    def wholes(self, count: int, what: str) -> np.ndarray:
        values = self.numbers(count, what)
        if (values != np.floor(values)).any() or (len(values) and not (values.min() >= 0 and values.max() < 2**62)):
            raise wrong(self.path, f"{what} are not whole numbers")
        return values.astype(np.int64)

    def numbers(self, count: int, what: str) -> np.ndarray:
        if count > self.left:
            raise wrong(self.path, f"it has {self.left} numbers left where {what} need {count}")
        words = self.words[self.place : self.place + count]
        self.place += count
        try:
            values = np.array(words, dtype=float) if count else np.zeros(0)
        except ValueError:
            odd = next(word for word in words if not _is_real(word))
            raise wrong(self.path, f"{odd[:30]!r} is no number, in {what}") from None
        if not np.isfinite(values).all():
            raise wrong(self.path, f"{what} contain nan or infinity")
        return values


def _is_real(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(path: Path) -> ContactProblem:
    """The problem of a text file."""
    words = Words(path)
    d, m = words.whole("the number of components"), words.whole("the number of contacts")
    if d not in (1, 2, 3):
        raise wrong(path, f"contacts have {d} components; 2 or 3 expected")
    if m > words.left:
        raise wrong(path, f"it states {m} contacts and has {words.left} numbers left")
    first = _matrix(words, "the first matrix")
    if first.shape[0] != first.shape[1]:
        raise wrong(path, f"the first matrix is {first.shape[0]} x {first.shape[1]}, a square one expected")
    if first.shape[0] == m * d and words.left in (m * d + m, m * d + m + 1):
        b, friction = words.numbers(m * d, "q").reshape(m, d), _friction(words, m)
        return ContactProblem(first, b, friction, np.zeros(m))
    n = first.shape[0]
    if words.left < 3 or words.words[words.place] not in ("0", "1", "2"):
        raise wrong(path, f"the matrix is {n} x {n} and {words.left} numbers follow; {m} contacts need "
                          f"{m * d} x {m * d} and {m * d + m} numbers, or a second matrix")  # fmt: skip
    h = _matrix(words, "H")
    if h.shape != (n, m * d):
        raise wrong(path, f"H is {h.shape[0]} x {h.shape[1]}, {n} x {m * d} expected")
    momentum, drift = words.numbers(n, "f"), words.numbers(m * d, "w").reshape(m, d)
    friction = _friction(words, m)
    jacobian = h.T.tocsr() if hasattr(h, "tocsr") else np.ascontiguousarray(h.T)
    bodies = BodyForm(first, jacobian, np.zeros(n), drift, momentum)
    bodies = bodies._replace(free=_solved(bodies, momentum))
    velocity = (bodies.jacobian @ bodies.free).reshape(m, d) + drift
    return ContactProblem(None, velocity, friction, np.zeros(m), bodies)


def _solved(bodies: BodyForm, momentum: np.ndarray) -> np.ndarray:
    """M^-1 f."""
    from scipy.sparse import csr_array

    return BodyForm(csr_array(bodies.mass), *bodies[1:]).apply_inverse(momentum)


def _friction(words: Words, m: int) -> np.ndarray:
    mu = words.numbers(m, "mu")
    if words.left > 1:
        raise wrong(words.path, f"{words.left} words follow the friction, where the file should end")
    if (mu < 0).any():
        raise wrong(words.path, f"mu has {mu.min():g}, friction >= 0 expected")
    return np.repeat(mu[:, None], 2, axis=1)


def _matrix(words: Words, name: str):
    """A matrix, dense as an array and else in sparse rows."""
    kind = words.whole(f"the storage of {name}")
    rows, columns = words.whole(f"the rows of {name}"), words.whole(f"the columns of {name}")
    if kind == DENSE:
        if (words.whole(f"the rows of {name}"), words.whole(f"the columns of {name}")) != (rows, columns):
            raise wrong(words.path, f"{name} states two different sizes")
        return np.ascontiguousarray(words.numbers(rows * columns, f"the values of {name}").reshape(columns, rows).T)
    if max(rows, columns) > words.left:
        raise wrong(words.path, f"{name} is stated as {rows} x {columns}, and {words.left} numbers are left")
    if kind == BLOCKS:
        return _blocks(words, name, rows, columns)
    if kind == PRINTED:
        return _printed(words, name, rows, columns)
    raise wrong(words.path, f"{name} has the storage {kind}; 0 dense, 1 sparse block and 2 CSparse can be read")


def _blocks(words: Words, name: str, rows: int, columns: int):
    from scipy.sparse import coo_array

    count, high, wide = (words.whole(f"the {what} of {name}") for what in ("blocks", "block rows", "block columns"))
    ends = [words.wholes(k, f"the sizes of {name}") for k in (high, wide)]
    for part, end in zip(ends, (rows, columns), strict=True):
        if (np.diff(part, prepend=0) <= 0).any() or (part[-1] if len(part) else 0) != end:
            raise wrong(words.path, f"the block sizes of {name} do not add up to {end}")
    lengths = words.whole(f"the length of the starts of {name}"), words.whole(f"the length of the columns of {name}")
    starts, places = (words.wholes(k, f"the places of {name}") for k in lengths)
    if len(starts) != high + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != count:
        raise wrong(words.path, f"the starts of the block rows of {name} do not fit {count} blocks in {high} rows")
    if len(places) < count or (count and places[:count].max() >= wide):
        raise wrong(words.path, f"the block columns of {name} do not fit {count} blocks in {wide} columns")
    begins = [np.concatenate([[0], part]) for part in ends]
    row_of = np.repeat(np.arange(high), np.diff(starts))
    found = np.zeros(count, dtype=bool)
    i, j, x = [], [], []
    for _ in range(count):
        k = words.whole(f"the number of a block of {name}")
        if k >= count or found[k]:
            raise wrong(words.path, f"{name} has a block number {k} twice, or beyond its {count} blocks")
        found[k] = True
        top, left = begins[0][row_of[k]], begins[1][places[k]]
        h, w = begins[0][row_of[k] + 1] - top, begins[1][places[k] + 1] - left
        x.append(words.numbers(h * w, f"block {k} of {name}"))
        i.append(np.tile(np.arange(top, top + h), w))
        j.append(np.repeat(np.arange(left, left + w), h))
    if not count:
        return coo_array((rows, columns)).tocsr()
    return coo_array((np.concatenate(x), (np.concatenate(i), np.concatenate(j))), (rows, columns)).tocsr()


def _printed(words: Words, name: str, rows: int, columns: int):
    """A matrix as CSparse prints it: ``col 3 : locations 4 to 5``, ``0 : 1.5``, or triplets ``0 3 : 1.5``."""
    from scipy.sparse import coo_array

    words.next(f"the origin of {name}")
    head = []
    for _ in range(30):
        head.append(words.next(f"the sizes of {name}"))
        if SIZES.fullmatch(head[-1]):
            break
    sizes = SIZES.fullmatch(head[-1])
    if not sizes or tuple(map(int, sizes.groups())) != (rows, columns):
        raise wrong(words.path, f"{name} is not printed with its sizes {rows}-by-{columns}")
    triplets = len(head) > 1 and head[-2] == "triplet:"
    entries = None
    for _ in range(6):
        word = words.next(f"the entries of {name}")
        if word == "nnz:":
            stated = words.next(f"the entries of {name}").rstrip(",")
            entries = int(stated) if stated.isdigit() and len(stated) < 13 else None
            break
    if entries is None or 3 * entries > words.left:
        raise wrong(words.path, f"{name} has no number of entries, or more than the file can hold")
    if not triplets:
        if words.next(name) != "1-norm:":
            raise wrong(words.path, f"{name} is not printed as CSparse does")
        words.next(name)
    i, j, x, column = np.empty(entries, np.int64), np.empty(entries, np.int64), [], -1
    for k in range(entries):
        while not triplets and words.left and words.words[words.place] == "col":
            words.next(name)
            column = words.whole(f"a column of {name}")
            words.place += 5  # : locations a to b
        i[k] = words.whole(f"a row of {name}")
        j[k] = words.whole(f"a column of {name}") if triplets else column
        if words.next(name) != ":":
            raise wrong(words.path, f"entry {k} of {name} is not printed as CSparse does")
        x.append(words.next(name))
    while not triplets and words.left and words.words[words.place] == "col":  # columns without entries
        words.place += 7
    words.words[words.place : words.place] = x  # the values, to be read as all numbers are
    values = words.numbers(entries, f"the entries of {name}")
    if entries and not (i.max() < rows and j.min() >= 0 and j.max() < columns):
        raise wrong(words.path, f"{name} has an entry at {i.max()}, {j.max()}, outside its {rows} x {columns}")
    return coo_array((values, (i, j)), (rows, columns)).tocsr()


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(problem: ContactProblem, path: Path) -> None:
    """Write a problem that `problems.write_problem` has checked: W and q, or M, H, f, w where the bodies are known."""
    first, second = problem.friction.T
    if (first != second).any():
        raise InputError(
            f"{path} cannot hold two coefficients of friction, as contact {int(np.argmax(first != second))} has; write "
            "FCLIB's form, a name that ends in .hdf5."
        )
    m, d = problem.velocity.shape
    lines = [str(d), str(m)]
    if problem.bodies is None:
        lines += [*_lines(problem[0], (d, d)), _row(problem.velocity), _row(first)]
    else:
        bodies = problem.bodies
        momentum = bodies.mass @ bodies.free if bodies.momentum is None else bodies.momentum
        lines += [*_lines(bodies.mass, (1, 1)), *_lines(bodies.jacobian.T, (1, d))]
        lines += [_row(momentum), _row(bodies.drift), _row(first)]
    scratch = path.with_name(f".{path.name}.tmp")
    try:
        with scratch.open("w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _row(values) -> str:
    """Numbers with all their digits."""
    return " ".join(map(repr, np.ravel(values).tolist()))


def _lines(matrix, block: tuple[int, int]) -> list[str]:
    """A dense matrix column by column; a sparse one in blocks of this size."""
    rows, columns = matrix.shape
    if isinstance(matrix, np.ndarray):
        return [str(DENSE), str(rows), str(columns), f"{rows} {columns}", _row(matrix.T)]
    blocks = matrix.tocsr().tobsr(block)
    blocks.sort_indices()
    high, wide = rows // block[0], columns // block[1]
    ends = [(np.arange(k) + 1) * size for k, size in ((high, block[0]), (wide, block[1]))]
    count = len(blocks.indices)
    head = [str(BLOCKS), str(rows), str(columns), str(count), str(high), str(wide), *(_row(e) for e in ends)]
    head += [str(high + 1), str(count), _row(blocks.indptr), _row(blocks.indices)]
    return head + [line for k, part in enumerate(blocks.data) for line in (str(k), _row(part.T))]
