"""Arrays of 64-bit integers: running sums, and products of 124 digits. There is no float in this file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntegerArray: TypeAlias = npt.NDArray[np.int64]

_HALF = 31
_MASK = np.int64((1 << _HALF) - 1)


def running_sums(values: Sequence[int] | IntegerArray) -> IntegerArray:
    """0, values_0, values_0 + values_1, …: one more than there are values."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.asarray(values, dtype=np.int64), out=sums[1:])
    return sums


def shifted_product(x: IntegerArray, y: IntegerArray, bits: int) -> IntegerArray:
    """⌊x·y/2^bits⌋ for 0 ≤ x < 2^bits ≤ 2^62 and 0 ≤ y < 2^62, in 31-bit halves so that nothing overflows."""
    x = x << np.int64(62 - bits)  # now ⌊x·y/2^62⌋
    x1, x0, y1, y0 = x >> _HALF, x & _MASK, y >> _HALF, y & _MASK
    middle = x1 * y0 + ((x0 * y0) >> _HALF)
    product: IntegerArray = x1 * y1 + ((middle + x0 * y1) >> _HALF)
    return product


def scaled_product(x: IntegerArray, y: IntegerArray, z: IntegerArray) -> IntegerArray:
    """⌊x·y/z⌋ for 0 ≤ x < z < 2^62 and 0 ≤ y < 2^62, by long division (Knuth 1981, algorithm 4.3.1 D).

    A digit has 31 bits. x and z are shifted until 2^61 ≤ z. A digit is then guessed at most 2 too large, so
    that what is left, computed modulo 2^64, lies between −2z and z and is exact.
    """
    shift = 62 - np.searchsorted(1 << np.arange(62, dtype=np.int64), z, side="right")
    x, z = x << shift, z << shift
    left, lower = shifted_product(x, y, 62), x * y
    quotient = np.zeros_like(left)
    for digit in ((lower >> _HALF) & _MASK, lower & _MASK):
        guess = left // (z >> _HALF)
        left = (left << _HALF) + digit - guess * z
        for _ in range(2):
            over = left < 0
            left += z * over
            guess -= over
        quotient = (quotient << _HALF) + guess
    return quotient
