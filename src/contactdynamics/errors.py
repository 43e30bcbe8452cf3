"""Errors and warnings: one sentence that says what came, what is possible and what to do."""

import math

import numpy as np


class InputError(ValueError):
    """Wrong input; the message is one sentence with its cure. The command line exits with code 2."""


class ConvergenceError(RuntimeError):
    """A step's contact problem was not solved to the tolerance and ``on_failure="raise"`` was asked."""


class ConvergenceWarning(UserWarning):
    """A step's contact problem was not solved to the tolerance (told once per run, with a count at its end)."""


def is_number(value) -> bool:
    """Whether ``value`` is one finite real number."""
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def as_numbers(name: str, value) -> np.ndarray:
    """``value`` as an array of floats."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give numbers.") from None
