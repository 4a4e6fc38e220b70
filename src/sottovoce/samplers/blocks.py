"""Users as blocks of their non-zero categories, so that cost follows the non-zeros.

Everything the library computes about a user needs only the categories the user has. Rows of similar
length are packed together into a rectangle (entries beyond a row's length are padding, with p = 0),
and all formulas become plain array operations over that rectangle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..checks import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import sparse

BLOCK_ENTRIES = 1 << 17
"""Entries in one block: about a megabyte an array, so that a block stays in the processor's cache."""


CHUNK_ENTRIES = 1 << 16
"""Entries in one chunk: a formula's arrays of this size stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some users with about equally many categories; zeros of `p` are padding."""

    rows: IntArray
    columns: IntArray
    p: FloatArray

    def gather(self, values: FloatArray) -> FloatArray:
        """Pick `values`, one per category, for every entry; zero in the padding."""
        return np.where(self.p > 0, values[self.columns], 0.0)


def dense(rows: sparse.csr_array[np.float64]) -> Iterator[tuple[slice, FloatArray]]:
    """Users written out over all categories, some at a time: which ones, and their numbers."""
    step = max(1, 8 * BLOCK_ENTRIES // rows.shape[1])
    for begin in range(0, rows.shape[0], step):
        part = slice(begin, begin + step)
        yield part, rows[part].toarray()


def blocks(rows: sparse.csr_array[np.float64]) -> Iterator[Block]:
    """Cut sparse users into blocks at most half of which is padding."""
    lengths = np.diff(rows.indptr)
    order = np.argsort(lengths, kind="stable")
    sizes = np.searchsorted(1 << np.arange(62), lengths[order])  # ⌈log2⌉, in integers
    starts = np.flatnonzero(np.diff(sizes, prepend=-1))
    for first, last in zip(starts, [*starts[1:], len(order)], strict=True):
        step = max(1, BLOCK_ENTRIES >> int(sizes[first]))
        for begin in range(first, last, step):
            chosen = order[begin : min(begin + step, last)]
            offset = np.arange(lengths[chosen].max())
            inside = offset < lengths[chosen][:, None]
            entry = np.where(inside, rows.indptr[chosen][:, None] + offset, 0)
            columns, p = np.where(inside, rows.indices[entry], 0), np.where(inside, rows.data[entry], 0.0)
            yield Block(chosen, columns, p)


def chunks(
    rows: sparse.csr_array[np.float64],
) -> Iterator[tuple[slice, npt.NDArray[np.integer], FloatArray, npt.NDArray[np.integer]]]:
    """Cut sparse users, none empty, into runs: which rows, their columns and numbers, where each starts."""
    starts, begin = rows.indptr, 0
    while begin < rows.shape[0]:
        first = int(starts[begin])
        most = starts.dtype.type(min(first + CHUNK_ENTRIES, int(starts[-1])))  # another type would copy them
        end = max(begin + 1, int(np.searchsorted(starts[1:], most, side="right")))
        part = slice(first, int(starts[end]))
        yield slice(begin, end), rows.indices[part], rows.data[part], starts[begin:end] - first
        begin = end
