"""What grows in a long run is told from what is compiled once."""

import numpy as np
import pytest

from contactdynamics.experiments.long_runs import grown


def test_a_kernel_that_is_compiled_late_is_no_growth():
    even = np.full(20, 100.0)
    late = even + 10.5 * (np.arange(20) > 12)
    leak = even + 0.5 * np.arange(20)
    assert grown(even) == grown(late) == 0.0
    assert grown(leak) == pytest.approx(0.5 * 16) and grown(leak + late) == pytest.approx(0.5 * 16)
    assert grown(even - np.arange(20)) == pytest.approx(-17.0)
