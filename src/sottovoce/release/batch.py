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

ENTRIES = 1 << 16
"""Entries of one pack: half a megabyte an array, so that a few arrays stay in the processor's cache."""


class Pack(NamedTuple):
    """Some users of about equally many categories: one column each, padded with place n and count 0."""

    users: IntegerArray
    places: IntegerArray
    counts: IntegerArray


def packs(rows: sparse.csr_array[Any]) -> Iterator[Pack]:
    """Cut sparse rows into packs, at most an eighth of which is padding."""
    lengths = np.diff(rows.indptr).astype(np.int64)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    begin = 0
    while begin < len(order):
        least = int(ordered[begin])
        width = max(least + (least >> 3), 1)
        end = int(np.searchsorted(ordered, width, side="right"))
        end = min(end, begin + max(ENTRIES // width, 1))
        yield _pack(rows, order[begin:end], ordered[begin:end])
        begin = end


def _pack(rows: sparse.csr_array[Any], users: IntegerArray, lengths: IntegerArray) -> Pack:
    width = int(lengths[-1])
    depth = np.arange(width)[:, None]
    entry = rows.indptr[users] + depth
    if lengths[0] == width:
        return Pack(users, rows.indices[entry].astype(np.int64), rows.data[entry])
    inside = depth < lengths
    entry[~inside] = 0
    places = np.where(inside, rows.indices[entry], rows.shape[1])
    return Pack(users, places.astype(np.int64), np.where(inside, rows.data[entry], 0))


def decided(
    rows: sparse.csr_array[Any], words: IntegerArray, filter: Filter, descent: Descent | None
) -> tuple[IntegerArray, Truths]:
    """The category of every row's word, and whether it is proved to be the one of the exact law."""
    found = np.empty(rows.shape[0], dtype=np.int64)
    sure = np.zeros(rows.shape[0], dtype=np.bool_)
    for users, places, counts in packs(rows):
        full = filter.missing(places) > filter.near + len(places) + 1  # capped, beyond doubt
        if not full.any():
            found[users], sure[users] = filter.locate(counts, places, words[users])
            continue
        rest = np.flatnonzero(~full)
        if len(rest):
            these = users[rest]
            found[these], sure[these] = filter.locate(counts[:, rest], places[:, rest], words[these])
        if descent is not None:
            chosen = np.flatnonzero(full)
            these = users[chosen]
            found[these], sure[these] = descent.locate(places[:, chosen], words[these])
    return found, sure
