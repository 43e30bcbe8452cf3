"""Errors and warnings: one sentence that says what came, what is possible and what to do."""

import math

import numpy as np


class InputError(ValueError):
    """Wrong input; the message is one sentence with its cure. The command line exits with code 2."""


class ConvergenceError(RuntimeError):
    """A step's contact problem was not solved to the tolerance and ``on_failure="raise"`` was asked."""


class ConvergenceWarning(UserWarning):
    """A step's contact problem was not solved to the tolerance (told once per run, with a count at its end)."""


class EnergyWarning(UserWarning):
    """The contact laws created kinetic energy (told once per run, with the amount and the step)."""


def energy_message(total: float, largest: float, share: float, step: int, time: float) -> str:
    """The sentence of an `EnergyWarning`: energy created in all and in the worst step, J and as a share."""
    return (
        f"The contacts created {total:.3g} J of kinetic energy, {largest:.3g} J of it ({share:.2g} of what there was) "
        f"in step {step} at t = {time:.6g}: restitution with friction does this to bodies far from round, and so "
        "do different restitutions in one cluster (2004, end of section 7.5); lower the restitution (with 0 it cannot "
        "happen), or accept it."
    )


def is_number(value) -> bool:
    """Whether ``value`` is one finite real number."""
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


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
