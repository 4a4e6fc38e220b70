"""The bounds of the batch filter cannot be made smaller, and do not rest on how a multiplier was found."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from boxes import category_of, check, compared, intervals_of, some_engine, some_user, words_beside

from sottovoce.core.arithmetic import Box
from sottovoce.core.box import BoxEngine
from sottovoce.core.box_many import Filter

Integers = npt.NDArray[np.int64]


def uneven_floors(w: int, kept: int = 1) -> tuple[BoxEngine, dict[int, int]]:
    """Floors just below a coarse unit first, and whole ones last: coarse sums run ahead by w/4 units.

    The last floor, which the user does not have, is such that a whole μ leaves no gap for `kept` of each.
    """
    total, gap = 1 << 62, 0
    prior = tuple([total // (2 * w)] * w + [total - w * (total // (2 * w))])
    for _ in range(2):
        low = [*[(1 << 50) - 1] * (w // 2), *[1 << 50] * (w // 2), (1 << 50) + gap]
        engine = BoxEngine(Box(tuple(low), (*[total] * w, low[-1]), total), prior)
        coarse = engine._filter
        gap = (coarse.room + int(coarse.floor[:w].sum())) % (kept * w) << coarse.shift
    assert gap == 0
    return engine, dict.fromkeys(range(w), kept)


def long_counts(w: int) -> tuple[BoxEngine, dict[int, int]]:
    """Counts that lose almost a whole kept unit first, and nothing last: sums fall behind by w/4 times μ."""
    lost, each = 20, (1 << 29) // w
    engine, _ = uneven_floors(w, each)
    return engine, {i: (each << lost) + ((1 << lost) - 1 if i < w // 2 else 0) for i in range(w)}


def sure_and_wrong(engine: BoxEngine, user: dict[int, int]) -> int:
    """Of words at and beside every boundary, how many are answered and wrong."""
    intervals = intervals_of(engine, user)
    shift = engine._filter.shift
    words = words_beside(
        random.Random(1), intervals, 400, [k << shift for k in (1, 2, 5, 9)] + [1 << 30, 1 << 32, 1 << 34]
    )
    found, sure = compared(engine, [user] * len(words), words)
    return sum(s and f != category_of(intervals, u) for f, s, u in zip(found, sure, words, strict=True))


Error = Callable[[object, Integers, int, Integers], Integers]
FAULTS: dict[str, tuple[Callable[[int], tuple[BoxEngine, dict[int, int]]], Error]] = {
    "nothing": (uneven_floors, lambda _, gap, width, deviation: 0 * gap),
    "the gap alone": (uneven_floors, lambda _, gap, width, deviation: np.abs(gap)),
    "no roundings": (uneven_floors, lambda _, gap, width, deviation: np.abs(gap) + 9),
    "no lost digits": (long_counts, lambda _, gap, width, deviation: np.abs(gap) + 2 * width + 8),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_smaller_bound_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, error = FAULTS[fault]
    engine, user = make(128)
    assert sure_and_wrong(engine, user) == 0
    monkeypatch.setattr(Filter, "_error", error)
    assert sure_and_wrong(engine, user) > 0


def test_a_wrong_multiplier_costs_time_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof holds however the multiplier was found: a bad one puts words in doubt."""
    rng, solve = random.Random(3), Filter.__dict__["_solve"]
    engines = [some_engine(rng, 8, 62) for _ in range(20)]
    off = 0

    def wrong(*arguments: object) -> Integers:
        right: Integers = solve(*arguments)
        return np.maximum(right + (right >> 12) * (off % 7 - 3), 0)

    monkeypatch.setattr(Filter, "_solve", wrong)
    for engine in engines:
        off += 1
        user = some_user(rng, 8)
        check(engine, user, words_beside(rng, intervals_of(engine, user), 9, [1 << 40, 1 << 52]))
