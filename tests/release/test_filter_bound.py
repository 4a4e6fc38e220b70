"""The bounds of the batch filter cannot be made smaller, and do not rest on how a multiplier was found."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from boxes import category_of, check, compared, some_engine, some_user, units_of, words_beside

from sottovoce.release.box import BoxEngine
from sottovoce.release.box_fast import Descent, Filter
from sottovoce.release.exact import Box

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


def capped(w: int) -> tuple[BoxEngine, dict[int, int]]:
    """One record at its cap; weights of the prior that lose almost a whole kept unit in some sums."""
    total = 1 << 62
    prior = [(total // (2 * w) >> 31 << 31) + ((1 << 31) - 1 if i < w // 2 else 0) for i in range(w)]
    prior[w - 1] += w // 2  # and nothing in all
    prior.append(total - sum(prior))
    low = [unit // 2 for unit in prior]
    high = [*[2 * unit for unit in prior[:-1]], prior[-1]]
    return BoxEngine(Box(tuple(low), tuple(high), total), tuple(prior)), {w: 1}


def sure_and_wrong(engine: BoxEngine, user: dict[int, int]) -> int:
    """Of words at and beside every boundary, how many are answered and wrong."""
    units = units_of(engine, user)
    shift = engine._filter.shift
    words = words_beside(
        random.Random(1), units, 400, [k << shift for k in (1, 2, 5, 9)] + [1 << 30, 1 << 32, 1 << 34]
    )
    found, sure = compared(engine, [user] * len(words), words)
    return sum(s and f != category_of(units, u) for f, s, u in zip(found, sure, words, strict=True))


Error = Callable[[object, Integers, int, Integers], Integers]
FAULTS: dict[str, tuple[type, Callable[[int], tuple[BoxEngine, dict[int, int]]], Error]] = {
    "nothing": (Filter, uneven_floors, lambda _, gap, width, deviation: 0 * gap),
    "the gap alone": (Filter, uneven_floors, lambda _, gap, width, deviation: np.abs(gap)),
    "no roundings": (Filter, uneven_floors, lambda _, gap, width, deviation: np.abs(gap) + 9),
    "no lost digits": (Filter, long_counts, lambda _, gap, width, deviation: np.abs(gap) + 2 * width + 8),
    "nothing, capped": (Descent, capped, lambda _, gap, width, multiplier: 0 * gap),
    "the gap alone, capped": (Descent, capped, lambda _, gap, width, multiplier: np.abs(gap)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_smaller_bound_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, make, error = FAULTS[fault]
    engine, user = make(128)
    assert sure_and_wrong(engine, user) == 0
    monkeypatch.setattr(kind, "_error", error)
    assert sure_and_wrong(engine, user) > 0


@pytest.mark.parametrize("kind", [Filter, Descent])
def test_a_wrong_multiplier_costs_time_and_nothing_else(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof holds however the multiplier was found: a bad one puts words in doubt."""
    rng, solve = random.Random(3), kind.__dict__["_solve"]
    engines = [some_engine(rng, 8, 62) for _ in range(20)]
    off = 0

    def wrong(*arguments: object) -> Integers:
        right: Integers = solve(*arguments)
        return np.maximum(right + (right >> 12) * (off % 7 - 3), 0)

    monkeypatch.setattr(kind, "_solve", wrong)
    for engine in engines:
        off += 1
        user = some_user(rng, 8)
        check(engine, user, words_beside(rng, units_of(engine, user), 9, [1 << 40, 1 << 52]))
