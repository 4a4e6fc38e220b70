"""Boxes, priors, users and words of every awkward kind, for the release path."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
from oracles import drawn_intervals
from scipy import sparse

from sottovoce.core import arithmetic
from sottovoce.core.box import BoxEngine
from sottovoce.core.box_many import decided


def split(rng: random.Random, weights: list[int], total: int) -> list[int]:
    """Whole numbers ≥ 1 in about these proportions, with this sum."""
    whole = sum(weights)
    units = [max(1, w * total // whole) for w in weights]
    units[rng.randrange(len(units))] += total - sum(units)
    return units if min(units) >= 1 else [*[1] * (len(units) - 1), total - len(units) + 1]


def proportions(rng: random.Random, n: int) -> list[int]:
    """Alike, tied, steep, with a few rare ones, or just random."""
    return rng.choice(
        [
            [1] * n,
            [rng.choice([1, 2, 7]) for _ in range(n)],
            [1 << (60 * i // n) for i in range(n)],
            [rng.choice([1, 1 << 40]) + rng.randrange(9) for _ in range(n)],
            [rng.randrange(1, 1 << 30) for _ in range(n)],
        ]
    )


def some_engine(rng: random.Random, n: int, bits: int) -> BoxEngine:
    """A box with floors near the prior or not, caps by a ratio or at will, sometimes exactly N in all."""
    total = 1 << bits
    while True:
        prior = split(rng, proportions(rng, n), total)
        ratio = arithmetic.exp_below(Fraction(rng.choice([1, 2, 4, 16, 40, 120]), rng.choice([1, 4, 32])))
        part = min(ratio ** rng.choice([0, -1]) * Fraction(rng.randrange(1, 65), 64), Fraction(1))
        near = prior if rng.random() < 0.5 else split(rng, proportions(rng, n), total)
        low = [max(1, int(unit * part)) for unit in near]
        if rng.random() < 0.5:
            high = [min(arithmetic.times_below(ratio, unit), total) for unit in low]
        else:
            high = [min(total, unit + rng.choice([0, 1, unit, unit * 9, total])) for unit in low]
        if sum(low) <= total <= sum(high):
            return BoxEngine(arithmetic.Box(tuple(low), tuple(high), total), tuple(prior))


def some_user(rng: random.Random, n: int) -> dict[int, int]:
    """One record, a few, everything; counts alike, small, up to 2^53 in all, or a law's, up to 2^61."""
    places = sorted(rng.sample(range(n), rng.choice([1, min(2, n), n, rng.randint(1, n)])))
    most = rng.choice([1, 4, 100, 1 << 20, ((1 << 53) - 1) // len(places), (1 << 61) // len(places)])
    steep = rng.random() < 0.3
    return {
        place: rng.choice([1, most, most >> rng.randrange(most.bit_length())])
        if steep
        else rng.randint(1, most)
        for place in places
    }


def rows_of(users: list[dict[int, int]], n: int) -> sparse.csr_array:
    """Users as sparse rows."""
    places = [place for user in users for place in user]
    counts = np.array([count for user in users for count in user.values()], dtype=np.int64)
    starts = [0, *accumulate(len(user) for user in users)]
    return sparse.csr_array((counts, places, starts), shape=(len(users), n))


def words_beside(rng: random.Random, intervals: list[int], most: int, away: list[int]) -> list[int]:
    """Words at and beside the ends of intervals (`most` of them), some units away, and a few anywhere."""
    total = sum(intervals)
    starts = [0, *accumulate(intervals)]
    chosen = starts if len(starts) <= most else rng.sample(starts, most)
    near = [start + step for start in chosen for step in (-2, -1, 0, 1, *away, *[-a for a in away])]
    return [min(max(word, 0), total - 1) for word in near] + [rng.randrange(total) for _ in range(4)]


def category_of(intervals: list[int], word: int) -> int:
    """The category that a word falls into, of the two intervals of each category."""
    return bisect_right(list(accumulate(intervals)), word) % (len(intervals) // 2)


def intervals_of(engine: BoxEngine, user: dict[int, int]) -> list[int]:
    """The intervals of all categories by the oracle, whose law must also be the single release's own."""
    box, n = engine.box, len(engine.prior)
    intervals = drawn_intervals(user, list(box.low), list(box.high), list(engine.prior), box.total)
    units = [intervals[i] + intervals[n + i] for i in range(n)]
    assert [share * box.total for share in engine.law(list(user.items()))] == units
    assert all(a <= unit <= b for a, unit, b in zip(box.low, units, box.high, strict=True))
    return intervals


def is_capped(engine: BoxEngine, user: dict[int, int]) -> bool:
    """Whether all of the user's categories are at their caps and units are left."""
    low, high = engine.box.low, engine.box.high
    return sum(low) + sum(high[i] - low[i] for i in user) < engine.box.total


def compared(
    engine: BoxEngine, users: list[dict[int, int]], words: list[int]
) -> tuple[list[int], list[bool]]:
    """What the arrays say for one word a user, and of what they are sure."""
    rows = rows_of(users, len(engine.prior))
    found, sure = decided(rows, np.array(words, dtype=np.int64), engine._filter, engine._capped_many)
    return found.tolist(), sure.tolist()


def check(engine: BoxEngine, user: dict[int, int], words: list[int]) -> Counter[str]:
    """The batch gives what the law gives, for every word, and is sure of nothing that is wrong.

    Of capped users it is always sure.
    """
    intervals = intervals_of(engine, user)
    right = [category_of(intervals, word) for word in words]
    found, sure = compared(engine, [user] * len(words), words)
    assert [f for f, s in zip(found, sure, strict=True) if s] == [
        r for r, s in zip(right, sure, strict=True) if s
    ]
    capped = is_capped(engine, user)
    assert all(sure) or not capped
    rows = rows_of([user] * len(words), len(engine.prior))
    assert engine.positions(rows, [np.array(words, dtype=np.int64)]).tolist() == right
    held, singly = list(user.items()), len(words) if capped else 3
    assert [engine.position(held, [word]) for word in words[:singly]] == right[:singly]
    counted = Counter(sure=sum(sure), doubt=len(sure) - sum(sure), own=sum(f in user for f in found))
    return counted + Counter(capped=len(words) if capped else 0)
