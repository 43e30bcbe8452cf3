"""Sums of numbers that are not negative, the same to the bit in whatever order and by however many they are added.

A double is a whole number of 53 bits times a power of two. It is added, in whole numbers, to three neighbouring
`CHUNKS` of 32 bits each (Neal, 2015, has them as a small superaccumulator); chunks of several workers are added one by
one, and rounded in the end. A chunk gets less than 2^33 at a time: there is room for 2^30 numbers.
"""

import math

import numpy as np

from .._jit import kernel

CHUNKS = 72  # of which 66 are used for numbers, nine lines of cache in all
INFINITE, UNKNOWN = 66, 67  # those that count infinite numbers, and those that are none
WORD, HALF, LEADING = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1 << 52)


@kernel(inline=True)
def split(bits):
    """The first chunk of a number >= 0 with these ``bits``, and what it and the next two get."""
    exponent = (bits >> np.uint64(52)) & np.uint64(2047)
    mantissa = bits & (LEADING - np.uint64(1))
    if exponent == np.uint64(2047):
        return UNKNOWN if mantissa > np.uint64(0) else INFINITE, 1, 0, 0
    mantissa += LEADING if exponent > np.uint64(0) else mantissa  # the smallest ones: 2 m at the same place
    shift = exponent & np.uint64(31)
    low, high = (mantissa & WORD) << shift, (mantissa >> HALF) << shift
    return (
        np.int64(exponent >> np.uint64(5)),
        np.int64(low & WORD),
        np.int64((low >> HALF) + (high & WORD)),
        np.int64(high >> HALF),
    )


@kernel
def add_all(numbers, chunks):
    """Add ``numbers`` (n,) >= 0 to the ``chunks`` (CHUNKS,); those that belong to the same ones in registers first."""
    bits, place, low, middle, high = numbers.view(np.uint64), 0, 0, 0, 0
    for k in range(numbers.size):
        at, a, b, c = split(bits[k])
        if at != place:
            chunks[place] += low
            chunks[place + 1] += middle
            chunks[place + 2] += high
            place, low, middle, high = at, 0, 0, 0
        low, middle, high = low + a, middle + b, high + c
    chunks[place] += low
    chunks[place + 1] += middle
    chunks[place + 2] += high


@kernel
def rounded(chunks):
    """The sum of what was added to the ``chunks`` (workers, CHUNKS)."""
    total, infinite, unknown = 0.0, 0, 0
    for at in range(INFINITE):
        part = 0
        for worker in range(chunks.shape[0]):
            part += chunks[worker, at]
        if part > 0:
            total += math.ldexp(part, 16 * at - 600) * math.ldexp(1.0, 16 * at - 475)  # neither is beyond numbers
    for worker in range(chunks.shape[0]):
        infinite, unknown = infinite + chunks[worker, INFINITE], unknown + chunks[worker, UNKNOWN]
    if unknown > 0:
        return np.nan
    return np.inf if infinite > 0 else total
