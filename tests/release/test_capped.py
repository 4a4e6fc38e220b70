"""Capped users: what they leave is shared among the categories that they lack, exactly as the format says."""

from __future__ import annotations

import inspect
import pickle
import random
import textwrap
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boxes import category_of, check, intervals_of, is_capped, some_engine, some_user, words_beside
from kinds import of_kind
from tape import tape

import sottovoce as sv
from sottovoce.core import arithmetic, arrays, box, box_many
from sottovoce.core.box import BoxEngine
from sottovoce.release import file
from sottovoce.release.certify import certify_with
from sottovoce.release.file import ANY

BOXES = [name for name, make in sv.SAMPLERS.items() if not make(sv.Prior.uniform(range(2)), 1.0).linear]


def capped_case(rng: random.Random, most: int, bits: int) -> tuple[BoxEngine, dict[int, int]]:
    """A box, which keeps its prior or not, and a capped user."""
    while True:
        n = rng.randint(2, most)
        engine, user = some_engine(rng, n, bits), some_user(rng, n)
        if is_capped(engine, user):
            return engine, user


def capped_checks(count: int, most: int) -> Counter[str]:
    """Capped users against the oracle, at and beside the ends of all intervals."""
    rng, seen = random.Random(most), Counter[str]()
    for _ in range(count):
        engine, user = capped_case(rng, most, rng.choice([12, 33, 61, 62]))
        words = words_beside(rng, intervals_of(engine, user), 60, [rng.randint(3, 99), engine.box.total // 7])
        seen += check(engine, user, words)
        seen["kept"] += engine.keeps_prior()
    return seen


@pytest.mark.parametrize(
    ("most", "count"), [(3, 150), (8, 150), (60, 20), pytest.param(40, 3000, marks=pytest.mark.full)]
)
def test_capped_users_are_drawn_as_the_definition_says(most: int, count: int) -> None:
    seen = capped_checks(count, most)
    assert 0 < seen["kept"] < count
    assert seen["own"] > count


def test_every_word_of_few_bits() -> None:
    rng = random.Random(7)
    for _ in range(60):
        engine, user = capped_case(rng, 6, 9)
        check(engine, user, list(range(1 << 9)))


FAULTS: dict[str, tuple[Any, str, str]] = {
    "the words rounded up": (
        BoxEngine.position,
        "number * room // left",
        "-(-number * room // left)",
    ),
    "own categories have room": (
        BoxEngine._left,
        "room = above[-1] - sum([above[i + 1] - above[i] for i, _ in units])",
        "room = above[-1]",
    ),
    "own categories are not passed over": (
        BoxEngine.position,
        "walk(above, [(i, 0) for i, _ in units], number * room // left)",
        "walk(above, [], number * room // left)",
    ),
    "a word too many for the floors": (BoxEngine.position, "if number < 0:", "if number <= 0:"),
    "a word too few for the floors": (BoxEngine.position, "if number < 0:", "if number < -1:"),
    "capped users get no caps": (BoxEngine.clipped, ", sum(own_high))", ", sum(own_high) - 1)"),
    "the shares rounded down": (arithmetic.shares, "-(-reached * words // size)", "reached * words // size"),
    "a batch: own categories have room": (
        box_many.Capped.locate,
        "self.above[-1] - self.room.take(indices).sum(axis=0)",
        "self.above[-1] + 0 * left",
    ),
    "a batch: own categories are not passed over": (
        box_many.Capped.locate,
        "walks(self.above, own, rooms, -rooms, numbers)",
        "walks(self.above, own, rooms, 0 * rooms, numbers)",
    ),
    "a batch: a word too many for the floors": (
        box_many.Capped.locate,
        "np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)",
        "np.flatnonzero(numbers <= 0), np.flatnonzero(numbers > 0)",
    ),
    "a batch: the first categories keep their shift": (box_many.walks, "shift += extra * begun", "pass"),
    "a batch: users who leave nothing are capped": (
        box_many.decided,
        "near[left > 0], left[left > 0]",
        "near[left > -1], np.maximum(left[left > -1], 1)",
    ),
    "a batch: a digit that is guessed too large": (
        arrays.scaled_product,
        "for _ in range(2):",
        "for _ in range(1):",
    ),
}


def everything() -> None:
    """What has to find the faults."""
    capped_checks(60, 8)
    test_users_who_leave_a_unit_or_none()
    test_scaled_products_are_exact()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One function of the release path is replaced by a faulty one, wherever it is used."""
    function, old, new = FAULTS[fault]
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1
    planted: dict[str, object] = {}
    exec(compile(source.replace(old, new), "planted", "exec"), function.__globals__, planted)  # noqa: S102
    ((name, faulty),) = planted.items()
    for owner in (arithmetic, box, box_many, arrays, BoxEngine, box_many.Capped):
        if owner.__dict__.get(name) is function:
            monkeypatch.setattr(owner, name, faulty)
    with pytest.raises((AssertionError, sv.errors.CertificateError, LookupError, ZeroDivisionError)):
        everything()


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("uniform_floor", [False, True])
def test_many_categories(uniform_floor: bool, n: int) -> None:
    """Zipf's prior, kept or not."""
    total, rng = 1 << 62, random.Random(1)
    prior = [total // (15 * (i + 1)) for i in range(n)]
    rng.shuffle(prior)
    prior[7] += total - sum(prior)
    low = [total * 3 // 4 // n] * n if uniform_floor else [max(1, w * 5 // 8) for w in prior]
    engine = BoxEngine(arithmetic.certified_box(low, arithmetic.exp_below(Fraction(1)), total), tuple(prior))
    assert engine.keeps_prior() is not uniform_floor
    own = dict.fromkeys(sorted(rng.sample(range(n), 5)), 1)
    assert is_capped(engine, own)
    units = [int(share * total) for share in engine.law(list(own.items()))]
    assert sum(units) == total
    first = [unit if i in own else low[i] for i, unit in enumerate(units)]
    intervals = [*first, *(unit - base for unit, base in zip(units, first, strict=True))]
    ends = np.cumsum(np.array(intervals, dtype=np.int64))
    words = words_beside(rng, intervals, 60, [1 << 20])
    right = (np.searchsorted(ends, words, side="right") % n).tolist()
    assert [engine.position(list(own.items()), [word]) for word in words] == right


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("epsilon", [1.0, 6.0, pytest.param(0.01, marks=pytest.mark.full)])
def test_every_sampler_releases_capped_users_from_one_word(name: str, epsilon: float) -> None:
    n = 60
    q = 1 / np.arange(1, n + 1) ** 2.0
    mechanism = sv.certify(sv.SAMPLERS[name](sv.Prior(range(n), q / q.sum()), epsilon))
    engine, rng = of_kind(mechanism.engine, BoxEngine), random.Random(9)
    rows = np.zeros((40, n), dtype=np.int64)
    for row in rows:
        row[rng.sample(range(n), rng.choice([1, 2, 40]))] = rng.randrange(1, 5)
    users = [{int(i): int(row[i]) for i in np.flatnonzero(row)} for row in rows]
    words = [rng.choice(words_beside(rng, intervals_of(engine, user), 9, [])) for user in users]
    expected = [category_of(intervals_of(engine, user), u) for user, u in zip(users, words, strict=True)]
    with tape(words, 62):
        assert mechanism.release_many(rows).tolist() == expected
    for row, u, category in zip(rows, words, expected, strict=True):
        with tape([u], 62) as reads:
            assert mechanism.release(p=row) == category
        assert reads == [8]


def test_users_who_leave_a_unit_or_none() -> None:
    """At exactly N the clip decides; a unit below, the user is capped and one word goes to the others."""
    total = 1 << 62
    for short in range(3):
        own = total - 3 * 1000 - short
        engine = BoxEngine(
            arithmetic.Box((1 << 60, 1000, 1000, 1000), (own, 1 << 61, 1 << 61, 1 << 61), total),
            (total // 4, total // 4, total // 4, total // 4),
        )
        assert is_capped(engine, {0: 1}) is (short > 0)
        intervals = intervals_of(engine, {0: 1})
        assert sum(intervals[4:]) == short
        check(engine, {0: 1}, words_beside(random.Random(1), intervals, 20, []))


def test_caps_whose_sum_leaves_64_bits() -> None:
    """Own caps of N each: nobody is capped who has one of them."""
    total, n = 1 << 62, 9
    low = (*[1 << 40] * (n - 2), 1 << 40, 1 << 41)
    engine = BoxEngine(
        arithmetic.Box(low, (*[total] * (n - 2), 1 << 41, 1 << 42), total),
        tuple([total // 16] * (n - 1) + [total // 2]),
    )
    for user in (dict.fromkeys(range(n), 1), dict.fromkeys(range(4), 2), {n - 2: 1}, {n - 2: 1, n - 1: 5}):
        check(engine, user, words_beside(random.Random(2), intervals_of(engine, user), 30, [1 << 30]))


def test_the_tables_are_made_with_the_mechanism_and_never_travel(tmp_path: Path) -> None:
    made = sv.certify(sv.kernel_clip(sv.Prior.uniform(range(300)), 1.0))
    made.save(tmp_path / "mechanism.json")
    for one in (made, file.load(tmp_path / "mechanism.json", policy=ANY), pickle.loads(pickle.dumps(made))):  # noqa: S301
        assert "_views" in one.engine.__dict__
        assert set(of_kind(one.engine, BoxEngine).__getstate__()) == {"box", "prior"}


def test_one_category_and_users_who_have_everything() -> None:
    for n in (1, 2, 300):
        mechanism = certify_with(sv.kernel_clip(sv.Prior.uniform(range(n)), 1.0), 20)
        everything = [(index, 1 + index % 3) for index in range(n)]
        for u in (0, 1 << 19, (1 << 20) - 1):
            assert 0 <= mechanism.engine.position(everything, [u]) < n


def test_a_law_outside_its_box_releases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior.uniform(range(40)), 0.5))
    engine = of_kind(mechanism.engine, BoxEngine)
    rows, words = mechanism.prepare(np.eye(40, dtype=np.int64)[:2]), [np.array([5, (1 << 62) - 1])]
    assert is_capped(engine, {0: 1})
    refusal = pytest.raises(sv.errors.CertificateError, match="left its box; nothing is released")
    floors, above, public = engine._arrays
    roomless = BoxEngine(engine.box, engine.prior)
    roomless.__dict__["_arrays"] = (floors, 0 * above, public)
    with refusal:
        roomless.position([(0, 1)], [5])
    with refusal:
        roomless.positions(rows, words)
    outside = BoxEngine(engine.box, engine.prior)
    outside.__dict__["_public"] = tuple(2 * unit for unit in engine.prior)
    with refusal:
        outside.prepare()
    monkeypatch.setattr(BoxEngine, "clipped", lambda *_: [(0, engine.box.high[0] + 1)])
    with refusal:
        engine.position([(0, 1)], [5])


def test_scaled_products_are_exact() -> None:
    """⌊x·y/z⌋ in arrays, with numbers at both ends and beside powers of two."""
    rng = random.Random(4)

    def some(most: int) -> int:
        power = (1 << rng.randrange(62)) + rng.randint(-2, 2)
        chosen = rng.choice([rng.randrange(most), most - 1, 0, power, rng.getrandbits(rng.randrange(1, 62))])
        return min(max(chosen, 0), most - 1)

    z = [max(some(1 << 62), 1) for _ in range(40_000)]
    x, y = [some(most + 1) for most in z], [some((1 << 62) + 1) for _ in z]
    y[: len(y) // 4] = [1 << 62] * (len(y) // 4)  # a share of N: also of all there is
    ours = arrays.scaled_product(*(np.array(part, dtype=np.int64) for part in (x, y, z)))
    assert ours.tolist() == [a * b // c for a, b, c in zip(x, y, z, strict=True)]
