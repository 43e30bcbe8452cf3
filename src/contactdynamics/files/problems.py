"""Contact problems in files: `read_problem`, `read_solution`, `write_problem`; FCLIB's HDF5 and Siconos' text."""

from pathlib import Path

from ..errors import InputError, RecordingError, as_path, explained
from ..problem.form import ContactProblem, check, checked_guess
from . import fclib, siconos
from .fclib import Stored

HDF5_BEGIN, TEXT = b"\x89HDF\r\n\x1a\n", (".dat", ".txt")


@explained
def read_problem(path) -> ContactProblem:
    """Read a contact problem from a file of FCLIB (HDF5, local or global) or of Siconos (text, ``.dat``).

    What the file says of the bodies (M, H, f, w) is kept as the problem's ``bodies``; equations between them are
    eliminated. W may be slightly asymmetric, as some programs make it: it is taken as it is.

    >>> import numpy as np
    >>> problem = ContactProblem(np.eye(2), np.array([[-1.0, 0.3]]), np.array([[0.5, 0.5]]), np.zeros(1))
    >>> write_problem(problem, "one.hdf5")
    >>> read_problem("one.hdf5").velocity.tolist()
    [[-1.0, 0.3]]
    """
    path = _file("read_problem", path)
    try:
        return check(fclib.read(path) if _is_hdf5(path) else siconos.read(path), "read_problem")
    except fclib.WrongFile:
        raise
    except InputError as error:
        raise fclib.wrong(path, str(error).rstrip(".").partition(";")[0]) from None


@explained
def read_solution(path) -> tuple[Stored | None, list[Stored]]:
    """The solution that a file of FCLIB holds, None where it has none, and the list of its guesses.

    Each has ``impulses`` (m, d), and ``velocities`` (m, d) and ``body_velocities`` (n,) where the file has them. Some
    public files have a solution of zeros, which is none: judge it by `solve` with it as guess.
    """
    path = _file("read_solution", path)
    if not _is_hdf5(path):
        return None, []
    problem = read_problem(path)
    return fclib.read_solution(path, problem.velocity.shape)


def description(path) -> str:
    """What the writer of an FCLIB file said of it; empty where nothing."""
    path = _file("description", path)
    return fclib.description(path) if _is_hdf5(path) else ""


@explained
def write_problem(problem: ContactProblem, path, *, solution=None, guesses=(), description: str = "") -> None:
    """Write a contact problem: a name that ends in .dat gives Siconos' text, any other FCLIB's HDF5.

    `read_problem` gives the same problem to the bit. ``solution`` (m, d) and ``guesses`` are impulses that go into
    FCLIB's file beside it. Where the bodies' form is known it is written. FCLIB and the text have one coefficient of
    friction for each contact and no gaps: in HDF5 what they lack stands in a group of our own (and mu is left out where
    it would mislead others); the text refuses two coefficients and has no gaps. The file is replaced as a whole.
    """
    path = as_path("write_problem", path)
    problem = check(problem, "write_problem")
    impulses = [checked_guess(problem, p) for p in ([] if solution is None else [solution])]
    if not isinstance(guesses, list | tuple) or not isinstance(description, str):
        raise InputError(f"write_problem got guesses={guesses!r}, description={description!r}; give a list and a text.")
    starts = [checked_guess(problem, p) for p in guesses]
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"is in no folder: there is no {path.parent}"
        raise InputError(f"write_problem got {path}, which {what}; give the name of a file.")
    text = path.suffix.lower() in TEXT
    if text and (impulses or starts):
        raise InputError(f"{path} cannot hold impulses; write FCLIB's form, a name that ends in .hdf5.")
    try:
        if text:
            siconos.write(problem, path)
        else:
            fclib.write(problem, path, impulses[0] if impulses else None, starts, description)
    except OSError as error:
        raise RecordingError(
            f"{path} cannot be written ({error.strerror or error}); make room there, or write into another folder."
        ) from error


def _file(who: str, path) -> Path:
    path = as_path(who, path)
    if path.is_dir():
        raise InputError(f"{who} got {path}, which is a folder; give the name of a file.")
    if not path.exists():
        raise InputError(f"There is no file {path}; give a problem in FCLIB's form (HDF5) or Siconos' (.dat).")
    return path


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HDF5_BEGIN)) == HDF5_BEGIN
