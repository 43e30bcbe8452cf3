"""Errors and warnings: one sentence that says what came, what is possible and what to do."""


class InputError(ValueError):
    """Wrong input; the message is one sentence with its cure. The command line exits with code 2."""


class ConvergenceError(RuntimeError):
    """A step's contact problem was not solved to the tolerance and ``on_failure="raise"`` was asked."""


class ConvergenceWarning(UserWarning):
    """A step's contact problem was not solved to the tolerance (told once per run, with a count at its end)."""
