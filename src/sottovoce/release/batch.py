"""Users packed side by side, so that the formulas of a release become plain operations on arrays.

There is no float in this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .descent import Descent
from .filter import Filter, IntegerArray, Truths

if TYPE_CHECKING:
    from scipy import sparse

ENTRIES = 1 << 17
"""Entries of one pack: a megabyte an array; with fewer, threads wait for each other between operations."""

WINDOW = 1 << 15
"""Users that are sorted by the number of their categories: few enough that their rows stay in the cache."""


class Pack(NamedTuple):
    """Some users of about equally many categories: one column each, padded with place n and count 0."""

    users: IntegerArray
    places: IntegerArray
    counts: IntegerArray


def packs(rows: sparse.csr_array[Any]) -> Iterator[Pack]:
    """Cut sparse rows into packs, at most an eighth of which is padding; empty rows are in none."""
    for begin in range(0, rows.shape[0], WINDOW):
        starts = rows.indptr[begin : begin + WINDOW + 1].astype(np.int64)
        lengths = np.diff(starts)
        short = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths  # sorted by their digits
        order = np.argsort(short, kind="stable")
        ordered = lengths[order]
        first, last = int(starts[0]), int(starts[-1])
        places, counts = rows.indices[first:last].astype(np.int64), rows.data[first:last]
        starts -= first
        at = int(np.searchsorted(ordered, 0, side="right"))
        while at < len(order):
            width = int(ordered[at] + (ordered[at] >> 3))
            end = min(int(np.searchsorted(ordered, width, side="right")), at + max(ENTRIES // width, 1))
            users = order[at:end]
            there, many = _columns(starts[users], ordered[at:end], places, counts, rows.shape[1])
            yield Pack(begin + users, there, many)
            at = end


def _columns(
    starts: IntegerArray, lengths: IntegerArray, places: IntegerArray, counts: IntegerArray, padding: int
) -> tuple[IntegerArray, IntegerArray]:
    """Rows as columns, the first entries of all of them above the second ones, and so on; lengths ascend."""
    shape = int(lengths[-1]), len(starts)
    there, many = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    entry = starts.copy()
    for depth in range(shape[0]):
        ended = int(np.searchsorted(lengths, depth, side="right"))
        if ended:
            there[depth, :ended], many[depth, :ended] = padding, 0
        np.take(places, entry[ended:], out=there[depth, ended:], mode="clip")  # no copy; none is outside
        np.take(counts, entry[ended:], out=many[depth, ended:], mode="clip")
        entry += 1
    return there, many


def decided(
    rows: sparse.csr_array[Any], words: IntegerArray, filter: Filter, descent: Descent | None
) -> tuple[IntegerArray, Truths]:
    """The category of every row's word, and whether it is proved to be the one of the exact law."""
    found = np.zeros(rows.shape[0], dtype=np.int64)
    sure = np.zeros(rows.shape[0], dtype=np.bool_)
    if rows.nnz == 0 or rows.data.min() < 1:  # no users as the proofs know them
        return found, sure
    for users, places, counts in packs(rows):
        span = filter.span.take(places)
        full = filter.room - span.sum(axis=0) > filter.near + len(places) + 1  # capped, beyond doubt
        if not full.any():
            found[users], sure[users] = filter.locate(counts, places, span, words[users])
            continue
        rest = np.flatnonzero(~full)
        if len(rest):
            these = users[rest]
            held, there, own = (np.take(array, rest, axis=1) for array in (counts, places, span))
            found[these], sure[these] = filter.locate(held, there, own, words[these])
        if descent is not None:
            chosen = np.flatnonzero(full)
            these = users[chosen]
            found[these], sure[these] = descent.locate(places[:, chosen], words[these])
    return found, sure
