"""Users invented from a prior, or blurred copies of public ones: the same on every machine.

A Dirichlet distribution with parameter κ·b is a broken stick: weights v_1, (1−v_1)·v_2, … with v ~ Beta(1,
κ), each put on a category drawn from b. The part left over, 1 − v, is the largest of r uniform numbers, and
its square root again and again, for κ = r, 2r, 4r, …. So all that is needed are random words (a counter
through the finaliser of SplitMix64, 64-bit integer arithmetic), comparisons, products and shifts of
integers, square roots of doubles, which every machine rounds alike, and q·2^k rounded down: no logarithm, no
gamma variate, no generator whose stream a library may change.
"""

from __future__ import annotations

import math
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
CLOSENESS = (1, 3, 10)
"""κ of the invented users, in units of √(1/Σq²): far from the prior, in between, near it; a third each.

1/Σq² is the number of categories that matter. Who can choose among more categories uses more of them, by
experience with the square root. For the 18 genres of MovieLens κ is about 3, 10 and 30, for its films about
30, 90 and 300.
"""
MOST = 512.0
"""κ is at most this: beyond it users are like the prior, and only the work grows."""
EACH = 400
BLUR = 7
"""κ of blurred public users, in the same units."""
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


def closeness(q: FloatArray, times: int) -> tuple[int, int]:
    """`times`·√(1/Σq²), rounded to r·2^j with 1 ≤ r ≤ 8: the pair r, j."""
    matter = 1 / math.fsum((q * q).tolist())  # an exact sum: no order of adding up decides
    wanted = min(times * math.sqrt(matter), MOST)
    doublings = 0
    while wanted > 8:
        wanted, doublings = wanted / 2, doublings + 1
    return max(1, math.floor(wanted + 0.5)), doublings


@lru_cache(maxsize=8)
def _sticks(users: int, largest: int, doublings: int, stream: int) -> Whole:
    """Broken sticks, one a row: 7·κ pieces and one for what is left (e^-7 of it); κ = largest·2^doublings."""
    pieces = 7 * (largest << doublings)
    left = np.zeros((users, pieces), dtype=np.int64)
    for one in range(largest):
        left = np.maximum(left, _uniform(stream + one, users * pieces).reshape(users, pieces))
    if doublings:
        share = left * 2.0**-HALF
        for _ in range(doublings):
            share = np.sqrt(share)
        left = (share * 2.0**HALF).astype(np.int64)
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


def invented(q: FloatArray, *, crowd: int = 0) -> sparse.csr_array[np.int64]:
    """400 users each from three Dirichlet distributions around the prior, see `CLOSENESS`.

    The categories are spread evenly: over all users of one kind each has its share q to within one piece.
    Crowds with different numbers are drawn from different random words.
    """
    from scipy import sparse

    ends = np.cumsum((q * 2.0**38).astype(np.int64) + 1)
    kinds = []
    for kind, times in enumerate(CLOSENESS):
        stream = 10_000 * crowd + 100 * kind
        sticks = _sticks(EACH, *closeness(q, times), stream + 1)
        even = ((2 * np.arange(sticks.size, dtype=np.int64) + 1) * int(ends[-1])) // (2 * sticks.size)
        shuffled = np.argsort(words(stream, sticks.size), kind="stable")
        kinds.append(_rows(sticks, np.searchsorted(ends, even, side="right")[shuffled], len(q)))
    return sparse.csr_array(sparse.vstack(kinds))


def blurred(rows: sparse.csr_array[np.float64], q: FloatArray) -> sparse.csr_array[np.int64]:
    """About 1,200 draws from the Dirichlet distributions with parameters (κ − 1)·p + q, p public users."""
    m = rows.shape[0]
    chosen = np.arange(m * max(1, COPIES // m)) % m if m <= COPIES else np.arange(COPIES) * m // COPIES
    largest, doublings = closeness(q, BLUR)
    sticks = _sticks(len(chosen), largest, doublings, 1001)
    ends = np.cumsum(np.maximum((rows.data * 2.0**HALF).astype(np.int64), 1))
    last = ends[rows.indptr[1:] - 1]
    before = np.concatenate([[0], last[:-1]])
    size = (last - before)[chosen][:, None]
    word = _uniform(1101, sticks.size).reshape(sticks.shape)
    own = np.searchsorted(ends, before[chosen][:, None] + ((word * size) >> HALF), side="right")
    every = np.cumsum((q * 2.0**HALF).astype(np.int64) + 1)
    other = np.searchsorted(every, (_uniform(1102, sticks.size) * int(every[-1])) >> HALF, side="right")
    from_prior = (words(1103, sticks.size) % np.uint64(largest << doublings) == 0).reshape(sticks.shape)
    categories = np.where(from_prior, other.reshape(sticks.shape), rows.indices[own])
    return _rows(sticks, categories, len(q))
