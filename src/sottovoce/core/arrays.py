"""Arrays of 64-bit integers: running sums, products of 124 digits, and many users as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse

IntegerArray: TypeAlias = npt.NDArray[np.int64]

_HALF = 31
_MASK = np.int64((1 << _HALF) - 1)


def running_sums(values: Sequence[int] | IntegerArray) -> IntegerArray:
    """0, values_0, values_0 + values_1, …: one more than there are values."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.asarray(values, dtype=np.int64), out=sums[1:])
    return sums


def shifted_product(x: IntegerArray, y: IntegerArray | int, bits: int) -> IntegerArray:
    """⌊x·y/2^bits⌋ for 0 ≤ x < 2^bits ≤ 2^62 and 0 ≤ y ≤ 2^62, in 31-bit halves so that nothing overflows."""
    x = x << np.int64(62 - bits)  # now ⌊x·y/2^62⌋
    x1, x0, y1, y0 = x >> _HALF, x & _MASK, y >> _HALF, y & _MASK
    middle = x1 * y0 + ((x0 * y0) >> _HALF)
    product: IntegerArray = x1 * y1 + ((middle + x0 * y1) >> _HALF)
    return product


def scaled_product(x: IntegerArray, y: IntegerArray | int, z: IntegerArray) -> IntegerArray:
    """⌊x·y/z⌋ for 0 ≤ x ≤ z, 1 ≤ z < 2^62 and 0 ≤ y ≤ 2^62, by long division (Knuth 1981, 4.3.1 D).

    A digit has 31 bits. x and z are shifted until 2^61 ≤ z. A digit is then guessed at most 2 too large, so
    that what is left, computed modulo 2^64, lies between −2z and z and is exact. If x = z and y = 2^62, the
    first digit is 2^31, guessed at most 1 too large, and nothing is left.
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


ENTRIES = 1 << 17
"""Entries of one pack: a megabyte an array; with fewer, threads wait for each other between operations."""

WINDOW = 1 << 15
"""Users that are sorted by the number of their categories: few enough that their rows stay in the cache."""


def packs(rows: sparse.csr_array[Any]) -> Iterator[tuple[IntegerArray, IntegerArray, IntegerArray]]:
    """Cut sparse rows into packs of users, indices and counts; empty rows are in none.

    A pack has users of about equally many categories: a column each, padded with index n and count 0, at most
    an eighth of it.
    """
    for begin in range(0, rows.shape[0], WINDOW):
        starts = rows.indptr[begin : begin + WINDOW + 1].astype(np.int64)
        lengths = np.diff(starts)
        short = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths  # sorted by their digits
        order = np.argsort(short, kind="stable")
        ordered = lengths[order]
        first, last = int(starts[0]), int(starts[-1])
        indices, counts = rows.indices[first:last].astype(np.int64), rows.data[first:last]
        starts -= first
        at = int(np.searchsorted(ordered, 0, side="right"))
        while at < len(order):
            width = int(ordered[at] + (ordered[at] >> 3))
            end = min(int(np.searchsorted(ordered, width, side="right")), at + max(ENTRIES // width, 1))
            users = order[at:end]
            yield begin + users, *_columns(starts[users], ordered[at:end], indices, counts, rows.shape[1])
            at = end


def _columns(
    starts: IntegerArray, lengths: IntegerArray, indices: IntegerArray, counts: IntegerArray, padding: int
) -> tuple[IntegerArray, IntegerArray]:
    """Rows as columns, the first entries of all of them above the second ones, and so on; lengths ascend."""
    shape = int(lengths[-1]), len(starts)
    there, many = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    entry = starts.copy()
    for depth in range(shape[0]):
        ended = int(np.searchsorted(lengths, depth, side="right"))
        if ended:
            there[depth, :ended], many[depth, :ended] = padding, 0
        np.take(indices, entry[ended:], out=there[depth, ended:], mode="clip")  # no copy; none is outside
        np.take(counts, entry[ended:], out=many[depth, ended:], mode="clip")
        entry += 1
    return there, many
