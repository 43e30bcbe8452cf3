"""Runs that several files of tests look at."""

import pytest
from runs import flat, space


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    flat(folder / "flat.h5")
    space(folder / "space.h5")
    return folder
