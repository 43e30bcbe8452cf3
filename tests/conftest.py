"""What all tests share: headless figures, reproducible random input, and the marker of the part run in three modes."""

import sys

import matplotlib
import numpy as np
import pytest
from hypothesis import settings

from contactdynamics import errors

matplotlib.use("Agg")
# The same examples in every run; no deadline, because the first example pays for compilation.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("short", derandomize=True, deadline=None, database=None, max_examples=20)
settings.register_profile("hunt", deadline=None, database=None, max_examples=3000)  # --hypothesis-profile=hunt
settings.load_profile("repeatable")


def pytest_configure(config):
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Warning):
            config.addinivalue_line("filterwarnings", f"error::{errors.__name__}.{name}")
    config.addinivalue_line("markers", "modes: also run interpreted and with bounds checks (see test_modes.py)")


@pytest.fixture(autouse=True)
def closed_figures():
    """No test leaves figures behind: another one would be told that there are too many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(1986)
