"""Users as blocks of their non-zero categories, so that cost follows the non-zeros.

Everything the library computes about a user needs only the categories the user has. Rows of similar
length are packed together into a rectangle (entries beyond a row's length are padding, with p = 0),
and all formulas become plain array operations over that rectangle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._validate import FloatArray, IntArray
from .divergences import FDivergence

if TYPE_CHECKING:
    from scipy import sparse

BLOCK_ENTRIES = 1 << 17
"""Entries in one block: about a megabyte an array, so that a block stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some users with about equally many categories; zeros of `p` are padding."""

    rows: IntArray
    columns: IntArray
    p: FloatArray

    def gather(self, values: FloatArray) -> FloatArray:
        """Pick `values`, one per category, for every entry; zero in the padding."""
        return np.where(self.p > 0, values[self.columns], 0.0)


def blocks(rows: sparse.csr_array[np.float64]) -> Iterator[Block]:
    """Cut sparse users into blocks at most half of which is padding."""
    lengths = np.diff(rows.indptr)
    order = np.argsort(lengths, kind="stable")
    sizes = np.searchsorted(1 << np.arange(62), lengths[order])  # ⌈log2⌉, in whole numbers
    starts = np.flatnonzero(np.diff(sizes, prepend=-1))
    for first, last in zip(starts, [*starts[1:], len(order)], strict=True):
        step = max(1, BLOCK_ENTRIES >> int(sizes[first]))
        for begin in range(first, last, step):
            yield _block(rows, order[begin : min(begin + step, last)], lengths)


def _block(
    rows: sparse.csr_array[np.float64], chosen: IntArray, lengths: np.typing.NDArray[np.integer]
) -> Block:
    """Pack the chosen rows into a rectangle as wide as the longest of them."""
    length = lengths[chosen]
    width = int(length.max())
    offset = np.arange(width)
    inside = offset < length[:, None]
    entry = np.where(inside, rows.indptr[chosen][:, None] + offset, 0)
    return Block(
        rows=chosen,
        columns=np.where(inside, rows.indices[entry], 0),
        p=np.where(inside, rows.data[entry], rows.data.dtype.type(0)),
    )


def divergence_on_support(
    rows: sparse.csr_array[np.float64],
    divergence: FDivergence,
    law: Callable[[Block], FloatArray],
    released: int,
) -> FloatArray:
    """D_f(p‖x) of every user, from the released law x on the user's own categories.

    D_f(p‖x) = Σ_{p_i>0} x_i f(p_i/x_i) + f(0)·(1 − Σ_{p_i>0} x_i): the categories a user does not
    have enter only through their total probability. That total is zero only for a user who has all
    the categories that are ever `released`; counting decides it, since 1 − Σx is blurred by rounding.
    """
    values = np.empty(rows.shape[0])
    for block in blocks(rows):
        x = law(block)
        nothing_else = np.count_nonzero(x, axis=1) == released
        rest = np.where(nothing_else, 0.0, np.maximum(1 - x.sum(axis=1), np.finfo(np.float64).tiny))
        values[block.rows] = divergence.on_support(block.p, x, rest)
    return values
