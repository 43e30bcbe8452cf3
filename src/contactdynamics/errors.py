"""Errors and warnings: one sentence that says what came, what is possible and what to do."""

import functools
import inspect
import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import numpy as np

LARGEST = float(np.finfo(float).max)
_SCALAR = re.compile(r"\bnp\.(?:(?:float|int|uint|longdouble|str)\d*_?\(([^()]*)\)|(True|False)_)")


class InputError(ValueError):
    """Wrong input; the message is one sentence with its cure. The command line exits with code 2.

    Values in it are shown as the user would type them, on one line: -1.0 and not np.float64(-1.0).
    """

    def __init__(self, message: str):
        super().__init__(" ".join(_SCALAR.sub(r"\1\2", str(message)).split()))


class CallError(InputError, TypeError):
    """A function was called with arguments that it does not have, or without one that it needs."""


class RecordingError(InputError, OSError):
    """A result file cannot be written: no room on the disk, or no right to; what it held before is still there."""


class ConvergenceError(RuntimeError):
    """A step's contact problem was not solved to the tolerance and ``on_failure="raise"`` was asked."""


class ConvergenceWarning(UserWarning):
    """A step's contact problem was not solved to the tolerance (told once per run, with a count at its end)."""


class EnergyWarning(UserWarning):
    """The contact laws created kinetic energy (told once per run, with the amount and the step)."""


class StepWarning(UserWarning):
    """A step is too long for what moves: bodies overlap by much or may cross one another (told once, at the time)."""


class MeshWarning(UserWarning):
    """Blocks of a file were changed so that they can be used, or their size looks wrong."""


class RunawayError(RuntimeError):
    """A body flies away: it goes farther in a step than neighbours are searched, or than numbers resolve."""


class RankError(RuntimeError):
    """Another process of the same run has stopped; the message says which and why."""


def energy_message(
    total: float, largest: float, share: float, step: int, time: float, *, restitution: bool = True
) -> str:
    """The sentence of an `EnergyWarning`: energy created in all and in the worst step, J and as a share.

    Without ``restitution`` the laws cannot create energy; what the solver leaves can.
    """
    cause = (
        "restitution with friction does this to bodies far from round, and so do different restitutions in one cluster "
        "(2004, end of section 7.5); lower the restitution (with 0 it cannot happen), or accept it."
        if restitution
        else "no law has restitution here, so that it is the error left by the solver; take a smaller tolerance."
    )
    return (
        f"The contacts created {total:.3g} J of kinetic energy, {largest:.3g} J of it ({share:.2g} of what there was) "
        f"in step {step} at t = {time:.6g}: {cause}"
    )


def is_number(value) -> bool:
    """Whether ``value`` is one finite real number."""
    return isinstance(value, int | float | np.integer | np.floating) and abs(value) <= LARGEST


def as_numbers(name: str, value) -> np.ndarray:
    """``value`` as an array of floats."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give numbers.") from None


def is_definite(matrix: np.ndarray) -> bool:
    """Whether a symmetric ``matrix`` (n, n) is positive definite, by more than the rounding of its entries.

    Judged with its diagonal scaled to 1, so that light and heavy freedoms may stand side by side.
    """
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0).all():
        return False
    size = np.sqrt(diagonal)
    smallest = np.linalg.eigvalsh(matrix / size / size[:, None])[0]
    return bool(smallest > 16 * len(matrix) * np.finfo(float).eps)


def is_whole(value, least: int = 0) -> bool:
    """Whether ``value`` is a whole number, ``least`` or more, that an array can hold."""
    whole = isinstance(value, int | np.integer) or (is_number(value) and float(value).is_integer())
    return whole and not isinstance(value, bool) and least <= value < 2**63


def is_one_of(value, words) -> bool:
    """Whether ``value`` is one of the ``words``; whatever else it may be."""
    return isinstance(value, str) and value in words


def check_policy(on_failure) -> None:
    """Refuse what says nothing of steps that fail."""
    if not is_one_of(on_failure, ("warn", "raise", "ignore")):
        raise InputError(f"on_failure is {on_failure!r}; choose 'warn', 'raise' or 'ignore'.")


def check_flags(name: str, **flags) -> None:
    """Refuse what is neither true nor false."""
    for key, value in flags.items():
        if not isinstance(value, bool | int | np.bool_):
            raise InputError(f"{name} got {key}={value!r}; give True or False.")


def as_path(name: str, path) -> Path:
    """``path`` as a path."""
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"{name} got the path {path!r}; give the name of a file.")
    return Path(path)


def check_seed(name: str, seed) -> None:
    """Refuse what is no seed of random numbers."""
    if not is_whole(seed):
        raise InputError(f"{name} got seed={seed!r}; give a whole number >= 0.")


def check_function(name: str, function, *arguments: str, optional: bool = False) -> None:
    """Refuse what is no function of these ``arguments``; ``name`` says who got it, as "Constraint got gap"."""
    if function is None and optional:
        return
    called = f"({', '.join(arguments)})"
    if not callable(function):
        raise InputError(f"{name}={function!r}; give a function of {called}.")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        own = f"{getattr(function, '__name__', type(function).__name__)}{inspect.signature(function)}"
        raise InputError(
            f"{name}={own}, which is called with {called}; write for example `lambda {', '.join(arguments)}: ...`."
        ) from None
    except ValueError:  # some compiled functions do not tell what they take
        return


Thing = TypeVar("Thing")


def explained(thing: Thing) -> Thing:
    """Let a class or function say in a sentence which argument is wrong or missing, in the place of Python's words.

    Of a class, all that make one: itself, and its class methods.
    """
    if not isinstance(thing, type):
        return _explained(thing, thing.__name__)
    if issubclass(thing, tuple):  # named: made before `__init__`
        thing.__new__ = _explained(thing.__new__, thing.__name__)
    else:
        thing.__init__ = _explained(thing.__init__, thing.__name__)
    for name, made in list(vars(thing).items()):
        if isinstance(made, classmethod | staticmethod) and not name.startswith("_"):
            setattr(thing, name, type(made)(_explained(made.__func__, f"{thing.__name__}.{name}")))
    return thing


def _explained(function, name: str):
    @functools.wraps(function)
    def call(*arguments, **options):
        try:
            return function(*arguments, **options)
        except TypeError:
            wrong = _wrong_call(function, name, arguments, options)
            if wrong is None:  # the call was right: something inside was not
                raise
            raise CallError(wrong) from None

    return call


def _wrong_call(function, name: str, arguments, options) -> str | None:
    """The sentence on a call that does not fit the signature of ``function``; None where it does."""
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **options)
        return None
    except TypeError as error:
        known = [key for key in signature.parameters if key not in ("self", "cls", "_cls")]
        takes = f"it takes {', '.join(known)}."
        stray = next((key for key in options if key not in known), None)
        if stray is None:
            return f"{name}: {error}; {takes}"
        near = [key for key in known if key.startswith(stray)] or get_close_matches(stray, known, 1)
        hint = f"did you mean {near[0]}? I" if near else "i"
        return f"{name} got the unknown option {stray}; {hint}{takes[1:]}"


MOST_STEPS = 10**9  # a day and more of the smallest steps there are


def count_of_steps(begin: float, until: float, step: float) -> int:
    """The whole number of steps nearest to the time from ``begin`` to ``until``."""
    count = (until - begin) / step
    if count > MOST_STEPS:
        raise InputError(
            f"From t = {begin:g} to {until:g} there are {count:.3g} steps of {step:g}, too many to compute; give an "
            "earlier end or a longer step."
        )
    return round(count)
