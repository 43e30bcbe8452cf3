"""Sums that are the same in any order, against those of `math.fsum`."""

import math

import numpy as np
import pytest

from contactdynamics.rigid.solvers import add_pushes
from contactdynamics.rigid.sums import CHUNKS, add_all, rounded


def chunks_of(numbers, workers=1):
    """The chunks (workers, CHUNKS) of ``numbers`` that are divided among workers."""
    chunks = np.zeros((workers, CHUNKS), dtype=np.int64)
    for part, out in zip(np.array_split(np.asarray(numbers, dtype=float), workers), chunks, strict=True):
        add_all(np.ascontiguousarray(part), out)
    return chunks


def added(numbers, workers=1):
    return rounded(chunks_of(numbers, workers))


EXPONENTS = {"near": (-3, 3), "far": (-1070, 1000), "small": (-1074, -1020), "large": (990, 1010)}


@pytest.mark.parametrize("name", EXPONENTS)
def test_the_sum_is_exact_but_for_its_last_bit_and_the_same_in_any_order(name):
    rng = np.random.default_rng(1)
    for count in (1, 2, 7, 1000):
        numbers = np.ldexp(rng.uniform(0.5, 1.0, count), rng.integers(*EXPONENTS[name], count))
        numbers[rng.random(count) < 0.1] = 0.0
        expected, found = math.fsum(numbers), added(numbers)
        assert abs(found - expected) <= 2 * np.spacing(expected)
        for workers in (1, 2, 3, 8):
            assert added(rng.permutation(numbers), workers) == found


def test_each_bit_of_each_number_counts():
    """The chunks, read as one whole number, are the numbers read as fractions."""
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 0x7FF0000000000000, 300).view(np.float64)
    numbers[:4] = 5e-324, np.finfo(float).tiny, np.finfo(float).max, 0.0
    whole = sum(int(x) << 32 * at for at, x in enumerate(chunks_of(numbers)[0]))
    expected = 0
    for x in numbers.tolist():
        over, under = x.as_integer_ratio()
        expected += (over << 1075) // under
    assert whole == expected
    for x in numbers[:100]:
        assert added([x]) == x


def test_what_has_no_sum():
    huge = np.finfo(float).max
    assert added([]) == 0.0
    assert added([huge, huge]) == math.inf
    assert added([1.0, math.inf, 2.0], 2) == math.inf
    for other in (1.0, math.inf):
        assert math.isnan(added([other, math.nan])) and math.isnan(added([-math.nan, other]))


def test_the_kinetic_size_of_pushes():
    rng = np.random.default_rng(3)
    rows, free = rng.normal(size=(2, 97, 8))
    rows[:, 6] = abs(rows[:, 6])
    bodies = np.sort(rng.permutation(97)[:60]).astype(np.uint32)
    chunks = np.full((3, CHUNKS), 7, dtype=np.int64)  # whatever stands there
    for k in range(3):
        add_pushes(rows, free, bodies[20 * k : 20 * k + 20], chunks[k])
    expected = math.fsum(((rows - free)[bodies, :3] ** 2).sum(axis=1) / rows[bodies, 6])
    assert rounded(chunks) == pytest.approx(expected, rel=1e-14)
