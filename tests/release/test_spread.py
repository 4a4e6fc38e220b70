"""What a capped user leaves over: the tables and the walk over all categories release the same."""

from __future__ import annotations

import pickle
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from kinds import of_kind
from tape import tape

import sottovoce as sv
from sottovoce.release import box as draws
from sottovoce.release import box_fast, exact, file
from sottovoce.release.box import BoxEngine
from sottovoce.release.box_fast import Spread, key_of, multiplier_of
from sottovoce.release.certify import certify_with
from sottovoce.release.file import ANY
from sottovoce.release.weights import Weights

BOXES = [name for name, make in sv.SAMPLERS.items() if not make(sv.Prior.uniform(range(2)), 1.0).linear]


@pytest.fixture(params=[1, 3, 64])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few categories, and yet several blocks, and tables for everybody."""
    monkeypatch.setattr(box_fast, "BLOCK", request.param)
    monkeypatch.setattr(draws, "WALKED", 0)


# --- an oracle in fractions -----------------------------------------------------------------------


def law_of(box: exact.Box, prior: list[int], owned: list[int]) -> list[int]:
    """The drawn law in units, from the definition: m as a fraction, floors, one unit each to the first."""
    mine = set(owned)
    others = [i for i in range(len(prior)) if i not in mine]
    target = box.total - sum(box.high[i] for i in owned)

    def clip(m: Fraction) -> list[Fraction]:
        return [min(max(m * prior[i], Fraction(box.low[i])), Fraction(box.high[i])) for i in others]

    knots = sorted({Fraction(edge[i], prior[i]) for edge in (box.low, box.high) for i in others})
    at = bisect_right(knots, Fraction(target), key=lambda m: sum(clip(m), Fraction(0)))
    m = knots[at - 1]
    if at < len(knots):  # linear between two knots
        (a, b), (fa, fb) = (m, knots[at]), (sum(clip(m)), sum(clip(knots[at])))
        m += (target - fa) * (b - a) / (fb - fa)
    shares = clip(m)
    assert sum(shares) == target
    units = list(box.high)
    spare = target - sum(int(x) for x in shares)
    for i, x in zip(others, shares, strict=True):
        lifted = spare > 0 and x.denominator > 1
        units[i] = int(x) + lifted
        spare -= lifted
    return units


def is_capped(box: exact.Box, owned: list[int]) -> bool:
    return sum(box.low) + sum(box.high[i] - box.low[i] for i in owned) < box.total


def split(rng: random.Random, weights: list[int], total: int) -> list[int]:
    """Whole numbers ≥ 1 in about these proportions, with this sum."""
    whole = sum(weights)
    units = [max(1, w * total // whole) for w in weights]
    units[rng.randrange(len(units))] += total - sum(units)
    return units if min(units) >= 1 else [*[1] * (len(units) - 1), total - len(units) + 1]


def shape(rng: random.Random, n: int) -> list[int]:
    """Proportions of every awkward kind: alike, tied, steep, with a few rare ones, or just random."""
    kind = rng.randrange(5)
    if kind == 0:
        return [1] * n
    if kind == 1:
        return [rng.choice([1, 2, 7]) for _ in range(n)]
    if kind == 2:
        return [1 << (60 * i // n) for i in range(n)]
    if kind == 3:
        return [rng.choice([1, 1 << 40]) + rng.randrange(9) for _ in range(n)]
    return [rng.randrange(1, 1 << 30) for _ in range(n)]


def case(rng: random.Random, most: int, bits: int) -> tuple[exact.Box, list[int], list[int]]:
    """A box, a prior and a capped user: floors near the prior or not, caps by a ratio or at will."""
    while True:
        n, total = rng.randint(2, most), 1 << bits
        prior = split(rng, shape(rng, n), total)
        ratio = exact.exp_below(Fraction(rng.choice([1, 2, 4, 16, 40, 120]), rng.choice([1, 4, 32])))
        part = ratio ** rng.choice([0, -1]) * Fraction(rng.randrange(1, 65), 64)
        part *= rng.choice([Fraction(1), ratio])
        near = prior if rng.random() < 0.5 else split(rng, shape(rng, n), total)
        low = [max(1, int(unit * min(part, Fraction(1)))) for unit in near]
        if rng.random() < 0.5:
            high = [min(exact.times_below(ratio, unit), total) for unit in low]
        else:
            high = [min(total, unit + rng.choice([0, 1, unit, unit * 9, total])) for unit in low]
        box = exact.Box(tuple(low), tuple(high), total)
        held = rng.choice([1, 2, n - 1, rng.randint(1, n - 1)])
        owned = sorted(rng.sample(range(n), min(held, n - 1)))
        if sum(low) <= total <= sum(high) and is_capped(box, owned):
            return box, prior, owned


def words_beside(rng: random.Random, starts: list[int], total: int, count: int) -> Iterator[int]:
    """Random words, and words at, beside and a margin away from boundaries."""
    n = len(starts) - 1
    for _ in range(count):
        yield rng.randrange(total)
        for away in (0, -1, 1, rng.randint(-n, n), rng.randint(-80, 80), rng.choice([1, -1]) * (n + 64)):
            yield min(max(rng.choice(starts) + away, 0), total - 1)


def check(box: exact.Box, prior: list[int], owned: list[int], words: Iterator[int]) -> Counter[str]:
    """The same category for every word; the tables answer whenever the word is clear of all boundaries."""
    n, total = len(prior), box.total
    engine, tables = BoxEngine(box, tuple(prior)), Spread(box, prior)
    units = law_of(box, prior, owned)
    starts = [0, *accumulate(units)]
    assert starts[-1] == total
    user = [(place, 1) for place in owned]
    margin = n + 8 + 4 * (total >> 56)
    seen: Counter[str] = Counter()
    for u in words:
        right = bisect_right(starts, u) - 1
        found = tables.locate(owned, u)
        assert found in (None, right)
        if found is None or u % 8 == 0:
            assert engine.position(user, [u]) == right
        clear = starts[right] + margin <= u < starts[right + 1] - margin
        assert not (clear and found is None), (u, starts, owned)
        seen["answered" if found is not None else "walked"] += 1
        seen["owned"] += found in owned
    return seen


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("most", "count"), [(6, 100), (40, 40), (300, 6), pytest.param(60, 4000, marks=pytest.mark.full)]
)
def test_the_tables_draw_what_the_definition_draws(most: int, count: int) -> None:
    rng = random.Random(most)
    seen: Counter[str] = Counter()
    for _ in range(count):
        box, prior, owned = case(rng, most, 62)
        starts = [0, *accumulate(law_of(box, prior, owned))]
        seen += check(box, prior, owned, words_beside(rng, starts, box.total, 3))
    assert min(seen["answered"], seen["walked"], seen["owned"]) > count // 4


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bits", [7, pytest.param(12, marks=pytest.mark.full)])
def test_every_word_of_few_bits(bits: int) -> None:
    rng = random.Random(bits)
    seen: Counter[str] = Counter()
    for _ in range(40 if bits < 9 else 3):
        box, prior, owned = case(rng, 1 << (bits - 5), bits)
        seen += check(box, prior, owned, iter(range(1 << bits)))
    assert min(seen["answered"], seen["walked"], seen["owned"]) > 100


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [2, 8, pytest.param(50, marks=pytest.mark.full)])
def test_the_roundings_add_up_to_half_a_unit_a_category(n: int) -> None:
    """Small fractions first, large ones last: the drawn law runs ahead of the shares by almost n/2 units."""
    scale, each, total = 1 << 20, 1 << 30, 1 << 62
    prior = [*[each * scale + 1] * n, *[each * scale - 1] * n]
    target = 2 * n * each  # at m = 1/scale exactly
    box = exact.Box((1,) * (2 * n + 1), (*[total] * 2 * n, total - target), total)
    prior.append(total - sum(prior))
    units = law_of(box, prior, [2 * n])
    starts = [0, *accumulate(units)]
    ahead = starts[n] - sum(Fraction(weight, scale) for weight in prior[:n])
    assert ahead > n - 1
    every = [start + away for start in starts for away in range(-n - 9, n + 10)]
    seen = check(box, prior, [2 * n], iter([u for u in every if 0 <= u < total]))
    assert min(seen["answered"], seen["walked"]) > 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("more", range(1, 9))
def test_knots_that_differ_in_lost_digits_only(more: int) -> None:
    """Two caps with one key, a few units short of both: the tables still answer."""
    cap, large, total = (1 << 20) - 1, 1 << 40, 1 << 62
    high = [cap * large + more, cap]
    for short in range(9):
        box = exact.Box((1, 1, 1), (*high, total - sum(high) + short), total)
        starts = [0, *accumulate(law_of(box, [large, 1, total - large - 1], [2]))]
        words = [
            start + away for start in starts for away in (-999, -9, 0, 9, 999) if 0 <= start + away < total
        ]
        middles = [high[0] >> 1, total - (high[0] >> 1)]  # far from every boundary: no reason to walk
        seen = check(box, [large, 1, total - large - 1], [2], iter([*words, *middles]))
        assert seen["answered"] >= len(middles)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("uniform_floor", [False, True])
def test_many_categories(uniform_floor: bool, n: int) -> None:
    """Zipf's prior, with floors in proportion or all alike; in the second case caps bind among the others."""
    total, rng = 1 << 62, random.Random(1)
    prior = [total // (15 * (i + 1)) for i in range(n)]
    rng.shuffle(prior)
    prior[7] += total - sum(prior)
    ratio = exact.exp_below(Fraction(1))
    low = [total * 3 // 4 // n] * n if uniform_floor else [max(1, w * 5 // 8) for w in prior]
    engine = BoxEngine(exact.certified_box(low, ratio, total), tuple(prior))
    user = [(place, 1) for place in sorted(rng.sample(range(n), 5))]
    law = engine.clipped(user)
    assert len(law) == n  # capped
    starts = [0, *accumulate(unit for _, unit in law)]
    assert sum(unit == engine.box.high[place] for place, unit in law) > (1000 if uniform_floor else 5) - 1
    tables = engine._spread
    assert tables is not None
    owned, walked = [place for place, _ in user], 0
    words = [*words_beside(rng, starts, total, 60), *[starts[place] + (1 << 30) for place in owned]]
    for u in words:
        right = bisect_right(starts, u) - 1
        found = tables.locate(owned, u)
        assert found in (None, right)
        walked += found is None
        if starts[right] + 2 * n <= u < starts[right + 1] - 2 * n:
            assert found == right
    assert 100 < walked < len(words) - 100


# --- inside an engine -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize(
    "epsilon", [1.0, 6.0, *(pytest.param(epsilon, marks=pytest.mark.full) for epsilon in (0.01, 30.0))]
)
@pytest.mark.parametrize("kind", ["zipf", "uniform", "ties", "rare"])
def test_every_sampler_releases_the_same_with_and_without_tables(
    name: str, epsilon: float, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 300
    q = {
        "zipf": 1 / np.arange(1, n + 1) ** 2.0,
        "uniform": np.ones(n),
        "ties": np.repeat([1.0, 5.0, 2.0], n // 3),
        "rare": np.geomspace(2.0**-48, 1, n),
    }[kind]
    mechanism = sv.certify(sv.SAMPLERS[name](sv.Prior(range(n), q / q.sum()), epsilon))
    engine = of_kind(mechanism.engine, BoxEngine)
    assert engine._spread is not None
    monkeypatch.setattr(draws, "WALKED", n)
    walking = BoxEngine(engine.box, engine.prior)
    assert walking._spread is None
    rng = random.Random(9)
    rows = np.zeros((12, n), dtype=np.int64)
    for row in rows:
        row[rng.sample(range(n), rng.choice([1, 2, 40]))] = rng.randrange(1, 5)
    rows[0], rows[1] = 1, rng.random() < 2
    rows[1, n // 2] = 0
    words = [rng.randrange(1 << 62) for _ in rows]
    users = [[(int(i), int(row[i])) for i in np.flatnonzero(row)] for row in rows]
    expected = [walking.position(user, [u]) for user, u in zip(users, words, strict=True)]
    with tape(words, 62):
        assert mechanism.release_many(rows).tolist() == expected
    for row, u, place in zip(rows, words, expected, strict=True):
        with tape([u], 62) as reads:
            assert mechanism.release(p=row) == place
        assert reads == [8]
        assert mechanism.law(row[None, :]) == walking.law(users[words.index(u)])


def test_the_walk_is_taken_near_boundaries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior.uniform(range(400)), 0.5))
    user, engine = [(3, 1)], of_kind(mechanism.engine, BoxEngine)
    law = engine.clipped(user)
    assert len(law) == 400
    starts = [0, *accumulate(unit for _, unit in law)]
    walks: list[Weights] = []
    filled = BoxEngine.clipped

    def noted(self: BoxEngine, held: Weights) -> Weights:
        walks.append(held)
        return filled(self, held)

    monkeypatch.setattr(BoxEngine, "clipped", noted)
    for place in range(400):
        assert engine.position(user, [starts[place] + (law[place][1] >> 1)]) == place
    assert walks == []
    for place in range(400):
        assert engine.position(user, [starts[place]]) == place
        assert engine.position(user, [starts[place + 1] - 1]) == place
    assert len(walks) == 800


def test_the_tables_are_made_with_the_mechanism_and_never_travel(tmp_path: object) -> None:
    small = sv.certify(sv.kernel_clip(sv.Prior.uniform(range(draws.WALKED)), 1.0))
    assert of_kind(small.engine, BoxEngine)._spread is None
    large = sv.certify(sv.kernel_clip(sv.Prior.uniform(range(draws.WALKED + 1)), 1.0))
    path = f"{tmp_path}/mechanism.json"
    large.save(path)
    for made in (large, file.load(path, policy=ANY), pickle.loads(pickle.dumps(large))):  # noqa: S301
        assert isinstance(made.engine.__dict__["_spread"], Spread)
        assert set(of_kind(made.engine, BoxEngine).__getstate__()) == {"box", "prior", "words"}


def test_one_category_and_users_who_have_everything() -> None:
    for n in (1, 2, 300):
        mechanism = certify_with(sv.kernel_clip(sv.Prior.uniform(range(n)), 1.0), 20)
        everything = [(place, 1 + place % 3) for place in range(n)]
        for u in (0, 1 << 19, (1 << 20) - 1):
            assert 0 <= mechanism.engine.position(everything, [u]) < n


# --- the parts ----------------------------------------------------------------------------------------


def test_keys_keep_the_order_and_57_digits() -> None:
    rng = random.Random(2)
    values = sorted({*range(100), *[rng.getrandbits(rng.randint(1, 127)) for _ in range(4000)], 1 << 126})
    values = sorted({value + away for value in values for away in (0, 1)})
    keys = [key_of(value) for value in values]
    assert keys == sorted(keys)
    assert keys[-1] < 1 << 63
    for value, key in zip(values, keys, strict=True):
        cut = max(value.bit_length() - 57, 0)
        assert multiplier_of(key) == value >> cut << cut
        assert key_of(multiplier_of(key)) == key
        assert multiplier_of(key + 1) > value
        assert (key < keys[7]) == (value < multiplier_of(keys[7]))


def test_knots_are_passed_exactly() -> None:
    """At and beside every knot, which category has left its floor or reached its cap is no approximation."""
    rng = random.Random(5)
    seen = 0
    for _ in range(150):
        box, prior, _ = case(rng, 12, 62)
        tables = Spread(box, prior)
        for key in {key + away for key in tables.keys.tolist() for away in (-1, 0, 1)} | {tables.limit}:
            if key > tables.limit:
                continue
            multiplier, passed = multiplier_of(key), tables.passed_by(key)
            for edge, ranks in ((box.low, tables.leaves), (box.high, tables.fills)):
                below = [unit << 64 < multiplier * w for unit, w in zip(edge, prior, strict=True)]
                assert below == (ranks < passed).tolist()
                seen += sum(below)
    assert seen > 3000


@pytest.mark.parametrize("owned", [[], [3, 3], [5, 4], [-1], [400], list(range(400))])
def test_no_answer_for_places_that_are_no_capped_user(owned: list[int]) -> None:
    engine = of_kind(sv.certify(sv.kernel_clip(sv.Prior.uniform(range(400)), 0.5)).engine, BoxEngine)
    tables = of_kind(engine._spread, Spread)
    words = [(2 * i + 1) * (1 << 62) // 800 for i in range(400)]  # the middle of every category, about
    assert [u for u in words if tables.locate(owned, u) is not None] == []
    assert all(tables.locate([3], u) is not None for u in words[10:])


def test_tables_that_contradict_the_box_release_nothing() -> None:
    engine = of_kind(sv.certify(sv.kernel_clip(sv.Prior.uniform(range(400)), 0.5)).engine, BoxEngine)
    words = [(2 * i + 1) * (1 << 62) // 800 for i in range(400)]
    for table in ("units", "slope"):
        tables = Spread(engine.box, engine.prior)
        getattr(tables.sums, table)[:] += 1
        with pytest.raises(sv.errors.CertificateError, match="left its box; nothing is released"):
            tables.locate([3], words[50])
    for name in ("low", "high", "weight"):
        tables = Spread(engine.box, engine.prior)
        array = getattr(tables, name)
        array[:] = array * 7 // 8
        with pytest.raises(sv.errors.CertificateError, match="left its box; nothing is released"):
            [tables.locate([3], u) for u in words]
