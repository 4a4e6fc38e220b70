"""Users invented from a prior, or blurred copies of public ones, in whole numbers: the same on every machine.

A Dirichlet distribution with parameter κ·b is a broken stick: weights v_1, (1−v_1)·v_2, … with v ~ Beta(1, κ), each put
on a category drawn from b. For a whole κ the part left over, 1 − v, is the largest of κ uniform numbers. So all that is
needed are random words (a counter through the finaliser of SplitMix64, 64-bit integer arithmetic), products and
shifts of integers, and comparisons: no logarithm, no gamma variate, no generator whose stream a library may change.
The only doubles are q·2^k, rounded down.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._validate import FloatArray

if TYPE_CHECKING:
    from scipy import sparse

UNITS = 45
"""A distribution is whole numbers that add up to 2^45."""
HALF = 30
"""Bits of a uniform number."""
CLOSENESS = (3, 10, 30)
"""κ of the invented users: far from the prior, in between, near it. Nothing is known about them, so all three."""
EACH = 400
BLUR = 20
"""A public user p becomes a draw from the Dirichlet distribution with parameter 20·p + q."""
COPIES = 1200
"""About how many blurred users are made, so that few public users count several times."""

Whole = npt.NDArray[np.int64]


def words(stream: int, count: int) -> npt.NDArray[np.uint64]:
    """The random words of one stream: SplitMix64's finaliser of a counter (Steele, Lea, Flood 2014)."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stream << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _uniform(stream: int, count: int) -> Whole:
    """Numbers below 2^30."""
    return (words(stream, count) >> np.uint64(64 - HALF)).astype(np.int64)


@lru_cache(maxsize=8)
def _sticks(users: int, closeness: int, stream: int) -> Whole:
    """Broken sticks, one a row: about 9·κ pieces, the last of which holds what is left (e^-9 of it)."""
    pieces = 9 * closeness
    left = np.zeros((users, pieces), dtype=np.int64)
    for one in range(closeness):
        left = np.maximum(left, _uniform(stream + one, users * pieces).reshape(users, pieces))
    out = np.empty((users, pieces + 1), dtype=np.int64)
    stick = np.full(users, 1 << UNITS, dtype=np.int64)
    for j in range(pieces):
        shorter = ((stick >> (UNITS - HALF)) * left[:, j]) >> (2 * HALF - UNITS)
        out[:, j] = stick - shorter
        stick = shorter
    out[:, pieces] = stick
    out.setflags(write=False)
    return out


def _rows(sticks: Whole, categories: npt.NDArray[np.intp], n: int) -> sparse.csr_array[np.int64]:
    """Sparse users: what the pieces of a stick put on each category."""
    from scipy import sparse

    owner = np.repeat(np.arange(len(sticks)), sticks.shape[1])
    made = sparse.coo_array((sticks.ravel(), (owner, categories.ravel())), shape=(len(sticks), n))
    rows: sparse.csr_array[np.int64] = sparse.csr_array(made)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def invented(q: FloatArray) -> sparse.csr_array[np.int64]:
    """400 users each from the Dirichlet distributions with parameters 3·q, 10·q and 30·q.

    The categories are spread evenly: over all users of one kind each has its share q to within one piece.
    """
    from scipy import sparse

    ends = np.cumsum((q * 2.0**40).astype(np.int64) + 1)
    kinds = []
    for kind, closeness in enumerate(CLOSENESS):
        sticks = _sticks(EACH, closeness, 100 * kind + 1)
        even = (2 * np.arange(sticks.size, dtype=np.int64) + 1) * int(ends[-1] // (2 * sticks.size))
        shuffled = np.argsort(words(100 * kind, sticks.size), kind="stable")
        kinds.append(_rows(sticks, np.searchsorted(ends, even, side="right")[shuffled], len(q)))
    return sparse.csr_array(sparse.vstack(kinds))


def blurred(rows: sparse.csr_array[np.float64], q: FloatArray) -> sparse.csr_array[np.int64]:
    """Public users as draws from the Dirichlet distribution with parameter 20·p + q, about 1,200 of them."""
    m = rows.shape[0]
    chosen = np.arange(m * max(1, COPIES // m)) % m if m <= COPIES else np.arange(COPIES) * m // COPIES
    sticks = _sticks(len(chosen), BLUR + 1, 1001)
    ends = np.cumsum(np.maximum((rows.data * 2.0**HALF).astype(np.int64), 1))
    last = ends[rows.indptr[1:] - 1]
    before = np.concatenate([[0], last[:-1]])
    size = (last - before)[chosen][:, None]
    word = _uniform(1101, sticks.size).reshape(sticks.shape)
    own = np.searchsorted(ends, before[chosen][:, None] + ((word * size) >> HALF), side="right")
    every = np.cumsum((q * 2.0**32).astype(np.int64) + 1)
    other = np.searchsorted(every, (_uniform(1102, sticks.size) * (every[-1] >> 4)) >> (HALF - 4), side="right")
    from_prior = (words(1103, sticks.size) % np.uint64(BLUR + 1) == 0).reshape(sticks.shape)
    categories = np.where(from_prior, other.reshape(sticks.shape), rows.indices[own])
    return _rows(sticks, categories, len(q))
