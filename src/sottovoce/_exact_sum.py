"""A sum that is rounded once, so that it does not depend on the order of its terms."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

BITS = 40
"""Binary digits that are added up at a time, as whole numbers."""

MOST = 1 << 22
"""Terms at most: their whole numbers of 40 digits add up below 2^62."""

CHUNK = 1 << 14
"""Terms that are worked on at a time, so that they stay in the cache."""


def exact_sum(values: npt.NDArray[np.float64]) -> float:
    """What `math.fsum` gives, several times faster for probabilities.

    Numbers from 0 to 1 are cut into digits of 40 bits, which are added up as whole numbers; multiplying by
    2^40 and taking the whole part away round nothing. Other numbers are left to `math.fsum`.
    """
    if not 0 < len(values) <= MOST or not (values.min() >= 0 and values.max() <= 1):
        return math.fsum(values.data)
    digits: list[int] = []
    for begin in range(0, len(values), CHUNK):
        rest = values[begin : begin + CHUNK]
        index = 0
        while rest.any():
            rest = rest * float(1 << BITS)
            whole = rest.astype(np.int64)
            rest -= whole
            if index == len(digits):
                digits.append(0)
            digits[index] += int(whole.sum())
            index += 1
    total = 0
    for digit in digits:
        total = (total << BITS) + digit
    return total / (1 << BITS * len(digits))  # whole numbers: divided with one rounding
