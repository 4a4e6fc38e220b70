"""Which of a user's records a linear mechanism looks at: one of them, each as likely as any other.

There is no float in this file.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..samplers.blocks import blocks
from .box_engine import IntegerArray
from .weights import Weights

if TYPE_CHECKING:
    from scipy import sparse


def choose_record(weights: Weights, word: int, bits: int, public: IntegerArray) -> int:
    """The position of one of the user's records: record number ⌊word·K/2^bits⌋ of K.

    A user without records has those of the prior, whose running sums are `public`: K = 2^bits, number `word`.
    """
    if not weights:
        return int(np.searchsorted(public, word, side="right"))
    number = word * sum([weight for _, weight in weights]) >> bits
    for place, weight in weights:
        number -= weight
        if number < 0:
            return place
    raise AssertionError("unreachable: a record number is below the number of records")


def choose_records(
    rows: sparse.csr_array[Any], word: IntegerArray, bits: int, public: IntegerArray
) -> IntegerArray:
    """The same for every row."""
    lengths = np.diff(rows.indptr)
    if lengths.min() == lengths.max() == 1:  # nothing to choose
        return rows.indices.astype(np.int64)
    out = np.empty(rows.shape[0], dtype=np.int64)
    if lengths.min() == 0:
        filled = np.flatnonzero(lengths)
        out[:] = np.searchsorted(public, word, side="right")
        if len(filled):
            out[filled] = choose_records(rows[filled], word[filled], bits, public)
        return out
    for block in blocks(rows):
        reached: IntegerArray = np.cumsum(block.p, axis=1, dtype=np.int64)
        number = shifted_product(word[block.rows], reached[:, -1], bits)
        at = np.count_nonzero(reached <= number[:, None], axis=1)
        out[block.rows] = block.columns[np.arange(len(at)), at]
    return out


def record_law(weights: Weights, bits: int) -> list[tuple[int, Fraction]]:
    """The exact probability with which each of the user's categories is chosen."""
    size, out, reached, known = sum(weight for _, weight in weights), [], 0, 0
    for place, weight in weights:
        reached += weight
        upto = -(-(reached << bits) // size)
        out.append((place, Fraction(upto - known, 1 << bits)))
        known = upto
    return out


def shifted_product(x: IntegerArray, y: IntegerArray, bits: int) -> IntegerArray:
    """⌊x·y/2^bits⌋ for 0 ≤ x < 2^bits ≤ 2^62 and 0 ≤ y < 2^62, in 31-bit halves so that nothing overflows."""
    half = np.int64((1 << 31) - 1)
    x = x << np.int64(62 - bits)  # now ⌊x·y/2^62⌋
    x1, x0, y1, y0 = x >> 31, x & half, y >> 31, y & half
    middle = x1 * y0 + ((x0 * y0) >> 31)
    product: IntegerArray = x1 * y1 + ((middle + x0 * y1) >> 31)
    return product
