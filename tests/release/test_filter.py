"""Batches of clip mechanisms: bit for bit the single release, and the exact path for words in doubt only."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pytest
from boxes import (
    check,
    compared,
    intervals_of,
    rows_of,
    some_engine,
    some_user,
    words_beside,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds import of_kind
from strategies import situations
from tape import tape

import sottovoce as sv
from sottovoce.core import arrays, randomness
from sottovoce.core.box import BoxEngine
from sottovoce.core.box_many import decided
from sottovoce.release import mechanism
from sottovoce.release.certify import certify_with

BOXES = [name for name, make in sv.SAMPLERS.items() if not make(sv.Prior.uniform(range(2)), 1.0).linear]


# --- against the definition -------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [12, 20, 33, 48, 61, 62])
@pytest.mark.parametrize(
    ("most", "count"), [(2, 25), (6, 40), (40, 12), pytest.param(40, 600, marks=pytest.mark.full)]
)
def test_words_at_and_beside_every_boundary(bits: int, most: int, count: int) -> None:
    rng = random.Random(bits * 100 + most)
    seen: Counter[str] = Counter()
    for _ in range(count):
        n = rng.randint(2, most)
        engine = some_engine(rng, n, bits)
        away = [rng.randint(3, 99), rng.randint(1, 1 << (bits // 2)), (1 << bits) // (5 * n)]
        for _ in range(2):
            user = some_user(rng, n)
            seen += check(engine, user, words_beside(rng, intervals_of(engine, user), 12, away))
    assert min(seen["doubt"], seen["own"]) > count
    assert seen["sure"] > (2 * count if bits >= 33 else 0)


def test_every_word_of_twelve_bits() -> None:
    rng = random.Random(12)
    for n in (2, 3, 9):
        engine = some_engine(rng, n, 12)
        check(engine, some_user(rng, n), list(range(1 << 12)))


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("bits", [pytest.param(24, marks=pytest.mark.full), 62])
@given(situation=situations(least=2, most=9, smallest=1e-4), seed=st.integers(0, 2**32))
def test_every_clip_sampler_in_every_situation(
    name: str, bits: int, situation: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float], seed: int
) -> None:
    q, p, epsilon = situation
    rng = random.Random(seed)
    try:
        made = certify_with(sv.SAMPLERS[name](sv.Prior(range(len(q)), q), epsilon), bits)
    except sv.errors.CertificateError:
        assume(False)
    engine = of_kind(made.engine, BoxEngine)
    row = made.prepare(p)
    law = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    for user in (law, some_user(rng, len(q)), {rng.randrange(len(q)): 1}):
        check(engine, user, words_beside(rng, intervals_of(engine, user), 10, [1 << (bits // 2)]))


def priors(n: int) -> dict[str, npt.NDArray[np.float64]]:
    shapes = {"uniform": np.ones(n), "zipf": 1 / np.arange(1, n + 1), "steep": np.geomspace(1, 1e-9, n)}
    return {kind: q / q.sum() for kind, q in shapes.items()}


def intervals_by_law(engine: BoxEngine, user: dict[int, int]) -> list[int]:
    """The intervals of `oracles.drawn_intervals`, from the law of the single release."""
    units = [int(share * engine.box.total) for share in engine.law(list(user.items()))]
    first = [unit if i in user else engine.box.low[i] for i, unit in enumerate(units)]
    return [*first, *(unit - base for unit, base in zip(units, first, strict=True))]


def draws_of_every_kind(name: str, n: int, epsilon: float, users: int, words: int, seed: int) -> int:
    """Random words of users with one record, twenty, or a law, against their laws; how many in doubt."""
    doubt = 0
    rng = np.random.default_rng(seed)
    for q in priors(n).values():
        made = sv.certify(sv.SAMPLERS[name](sv.Prior(range(n), q), epsilon))
        engine = of_kind(made.engine, BoxEngine)
        for records in (1, 20, 0):
            table = rng.multinomial(max(records, 30), q if records == 1 else np.full(n, 1 / n), size=users)
            rows = made.prepare(table if records else table / 30)
            if records == 1:
                rows = made.prepare(np.eye(n, dtype=np.int64)[rng.integers(0, n, users)])
            who = np.repeat(np.arange(users), words)
            drawn = rng.integers(0, 1 << 62, len(who))
            found = engine.positions(rows[who], [drawn])
            doubt += int(np.count_nonzero(~decided(rows[who], drawn, engine._filter, engine._capped_many)[1]))
            for i in range(users):
                held = rows[[i]]
                user = dict(zip(held.indices.tolist(), held.data.tolist(), strict=True))
                ends = np.array([*accumulate(intervals_by_law(engine, user))])
                mine = slice(i * words, (i + 1) * words)
                assert (np.searchsorted(ends, drawn[mine], side="right") % n == found[mine]).all()
    return doubt


@pytest.mark.parametrize("name", BOXES)
def test_random_words_are_right_and_almost_never_in_doubt(name: str) -> None:
    """At most one word in ten thousand: a boundary is known up to N/2^29 or so, and there are a hundred."""
    doubt = sum(draws_of_every_kind(name, n, epsilon, 30, 200, n) for n, epsilon in [(2, 2.0), (100, 0.5)])
    assert doubt <= 2 * 9 * 6000 // 10_000


@pytest.mark.full
@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0, 4.0])
def test_ten_million_draws_of_every_clip_sampler(name: str, epsilon: float) -> None:
    draws = 4 * 9 * 60 * 5000  # over the four epsilons, three priors and three kinds of users
    assert draws >= 10_000_000
    assert draws_of_every_kind(name, 100, epsilon, 60, 5000, 7) <= draws // 4 // 10_000


@pytest.mark.parametrize("name", ["kernel_clip", "relative_mollifier", "global_minimax"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("n", [1_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_thousands_of_categories(name: str, epsilon: float, n: int) -> None:
    """Users with one record and with a few: at a small epsilon they are capped."""
    rng = random.Random(5)
    made = sv.certify(sv.SAMPLERS[name](sv.Prior(range(n), priors(n)["zipf"]), epsilon))
    engine = of_kind(made.engine, BoxEngine)
    users = [{rng.randrange(n): 1} for _ in range(3)]
    users += [dict.fromkeys(sorted(rng.sample(range(n), 12)), 1), dict.fromkeys(range(0, n, 3), 2)]
    clear = 0
    for user in users:
        intervals = intervals_by_law(engine, user)
        ends = list(accumulate(intervals))
        own = [ends[place] - intervals[place] // 2 for place in user][:20]
        words = [
            *words_beside(rng, intervals, 60, [1 << 20, 1 << 40]),
            *own,
            *[rng.randrange(1 << 62) for _ in range(300)],
        ]
        right = (np.searchsorted(np.array(ends), np.array(words), side="right") % n).tolist()
        found, sure = compared(engine, [user] * len(words), words)
        assert [f for f, s in zip(found, sure, strict=True) if s] == [
            r for r, s in zip(right, sure, strict=True) if s
        ]
        clear += sum(sure[-300:])
    assert clear >= 5 * 300 - 3


# --- the batches around it --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kernel_clip", "minimax_kernel", "randomized_response"])
@pytest.mark.parametrize("processors", [1, 2, 5])
def test_words_are_used_in_the_order_of_the_rows(
    name: str, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    made = sv.certify(sv.SAMPLERS[name](sv.Prior(range(30), priors(30)["zipf"]), 1.0))
    rows = made.prepare(rng.integers(0, 3, size=(1000, 30)))
    k, size = made.engine.words, 64
    words = [rng.integers(0, 1 << 62, (k, min(size, 1000 - at))) for at in range(0, 1000, size)]
    monkeypatch.setattr("sottovoce.core.engine.BATCH", size)
    monkeypatch.setattr(mechanism, "processors", lambda: processors)
    with tape(np.concatenate([part.ravel() for part in words]).tolist(), 62) as reads:
        read = randomness._read

        def late(asked: int) -> bytes:
            if not reads:
                time.sleep(0.05)  # whoever could overtake the first batch does
            return read(asked)

        randomness._read = late  # the tape puts the system's back
        many = made.draw(rows).tolist()
    flat = np.concatenate(words, axis=1)
    held = [rows[[i]] for i in range(1000)]
    users = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in held]
    assert many == [made.engine.position(user, flat[:, i].tolist()) for i, user in enumerate(users)]


def test_packs_hold_every_user_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all lengths, empty ones too, in several windows and several packs."""
    monkeypatch.setattr(arrays, "WINDOW", 50)
    monkeypatch.setattr(arrays, "ENTRIES", 64)
    rng = random.Random(2)
    users = [
        dict.fromkeys(sorted(rng.sample(range(40), rng.choice([0, 1, 3, 9, 20, 40]))), 1) for _ in range(170)
    ]
    users = [{place: rng.randrange(1, 9) for place in user} for user in users]
    seen: dict[int, dict[int, int]] = {i: {} for i, user in enumerate(users) if not user}
    for who, places, counts in arrays.packs(rows_of(users, 40)):
        for column, i in enumerate(who.tolist()):
            assert i not in seen
            pairs = list(zip(places[:, column].tolist(), counts[:, column].tolist(), strict=True))
            seen[i] = dict(pair for pair in pairs if pair != (40, 0))
            assert places[:, column].tolist() == sorted(places[:, column].tolist())
    assert [seen[i] for i in range(170)] == users


def test_what_is_no_user_takes_the_exact_path() -> None:
    engine = of_kind(sv.certify(sv.kernel_clip(sv.Prior.uniform(range(5)), 1.0)).engine, BoxEngine)
    rows = rows_of([{0: -3, 1: 1, 2: 1}, {3: 1}], 5)
    assert not decided(rows, np.array([5, 1 << 61]), engine._filter, engine._capped_many)[1].any()
    with pytest.raises(sv.errors.CertificateError, match="left its box; nothing is released"):
        engine.positions(rows, [np.array([5, 1 << 61])])
