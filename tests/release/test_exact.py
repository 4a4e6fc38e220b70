"""Exact arithmetic: A is right, certificates hold for every pair, and break when they should."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import cases
import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from kinds import of_kind
from mpmath import mp

import sottovoce as sv
from sottovoce.core import arithmetic
from sottovoce.core.arrays import shifted_product
from sottovoce.core.box import BoxEngine
from sottovoce.core.kernel import KernelEngine, ResponseEngine
from sottovoce.release.certify import certify_with, prior_weights

PACKAGE = Path(sv.__file__).parent


def check_bound(epsilon: Fraction) -> None:
    """A ≤ e^ε and within 2^-60, by an independent 60-digit computation."""
    a = arithmetic.exp_below(epsilon)
    with mp.workdps(70):
        true = mp.exp(mp.mpf(epsilon.numerator) / mp.mpf(epsilon.denominator))
        mine = mp.mpf(a.numerator) / mp.mpf(a.denominator)
        assert mine <= true
        assert (true - mine) / true <= mp.mpf(2) ** -60


def _epsilons(count: int) -> list[Fraction]:
    rng = random.Random(3)
    floats = [Fraction(2.0 ** rng.uniform(-30, math.log2(20))) for _ in range(count - 5)]
    return [*floats, Fraction(1), Fraction(20), Fraction(1, 3), Fraction(1, 2**29), Fraction(100)]


def test_promise_3_a_is_below_and_close_to_the_exponential() -> None:
    for epsilon in _epsilons(2_000):
        check_bound(epsilon)


@pytest.mark.full
def test_promise_3_at_its_stated_size() -> None:
    for epsilon in _epsilons(100_000):
        check_bound(epsilon)


# --- promise 1: all pairs ------------------------------------------------------------------------


def all_laws(mechanism: sv.Mechanism) -> list[list[Fraction]]:
    """Laws that reach every weight of a mechanism: rows of a kernel, extreme points of a box."""
    engine, n = mechanism.engine, len(mechanism.categories)
    if isinstance(engine, KernelEngine | ResponseEngine):
        return [engine.row(i) for i in range(n)]
    assert isinstance(engine, BoxEngine)
    singles = range(n) if n <= 16 else sorted({0, 1, n // 2, n - 1, *range(0, n, n // 8)})
    users = [[(i, 1)] for i in singles] + [[(i, 1), ((i + 1) % n, 3)] for i in singles if n > 1]
    users = [sorted(user) for user in users]
    users.append([(i, i + 1) for i in range(n)])
    return [engine.law(user) for user in users]


def check_all_pairs(mechanism: sv.Mechanism) -> None:
    """The definition, pair by pair, in exact fractions: w ≤ e^ε·w', every law adds up to one.

    e^ε is computed here, in 40 digits, and rounded down: the mechanism's own A is not believed.
    """
    laws = all_laws(mechanism)
    assert all(sum(law) == 1 for law in laws)
    with mp.workdps(70):
        most = mp.exp(mp.mpf(mechanism.epsilon.numerator) / mp.mpf(mechanism.epsilon.denominator))
        bound = Fraction(int(mp.floor(most * 10**40)), 10**40)
    for column in zip(*laws, strict=True):
        high, low = max(column), min(column)
        assert high <= bound * low


def random_sampler(rng: np.random.Generator, most: int) -> sv.Sampler:
    n = int(rng.integers(1, most + 1))
    q = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1, 1))) + 10 ** rng.uniform(-12, -3)
    if rng.random() < 0.2:
        q = np.round(q, 2) + 0.01  # ties
    prior = sv.Prior(range(n), q / q.sum())
    name = list(sv.SAMPLERS)[int(rng.integers(len(sv.SAMPLERS)))]
    return sv.SAMPLERS[name](prior, float(10 ** rng.uniform(-3, 1.1)))


def check_random_mechanisms(count: int, most: int) -> None:
    rng = np.random.default_rng(77)
    for _ in range(count):
        check_all_pairs(sv.certify(random_sampler(rng, most)))


def test_promise_1_every_pair_of_random_mechanisms() -> None:
    check_random_mechanisms(300, 16)


@pytest.mark.full
def test_promise_1_at_its_stated_size() -> None:
    check_random_mechanisms(10_000, 64)


@pytest.mark.parametrize("name", sv.SAMPLERS)
@pytest.mark.parametrize("case", sorted(set(cases.PRIORS) - {"random 25", "zipf 40", "smallest 1e-90"}))
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 30.0])
def test_certified_in_every_awkward_case(name: str, case: str, epsilon: float) -> None:
    q = cases.PRIORS[case]
    sampler = sv.SAMPLERS[name](cases.prior(q), epsilon)
    mechanism = sv.certify(sampler)
    check_all_pairs(mechanism)
    # A floor moves by a unit or a few when it becomes whole, and its cap by A times as much; the doubles
    # themselves are good to about 1e-13 here.
    close = 16 * len(q) * math.exp(epsilon) / 2**62 + 1e-13
    for p in cases.users(q).values():
        law = np.array([float(share) for share in mechanism.law(p=p)])
        assert np.abs(law - sampler.distribution(p)).max() <= close
    if isinstance(sampler, sv.ClipSampler) and sampler.keeps_prior:
        assert mechanism.keeps_prior
        units = [(i, w) for i, w in enumerate(of_kind(mechanism.engine, BoxEngine).prior)]
        assert mechanism.engine.law(units) == [Fraction(w, 1 << 62) for _, w in units]  # exactly kept


@pytest.mark.parametrize("name", sv.SAMPLERS)
@pytest.mark.parametrize(
    "q", [[0.2, 0.2, 0.2, 0.2, 0.2], [0.05, 0.1, 0.15, 0.3, 0.4]], ids=["uniform", "skewed"]
)
def test_a_mechanism_claims_what_its_sampler_claims(name: str, q: list[float]) -> None:
    sampler = sv.SAMPLERS[name](sv.Prior(range(5), q), 1.0)
    assert sv.certify(sampler).keeps_prior == sampler.keeps_prior


def test_the_float_bound_is_broken_where_the_integer_bound_is_not() -> None:
    """e^ε·c in doubles exceeds the true bound in almost half of all cases; ⌊A·low⌋ never does."""
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(400):
        epsilon, c = float(rng.uniform(0.1, 8)), float(rng.uniform(1e-6, 1e-3))
        with mp.workdps(60):
            true = mp.exp(mp.mpf(epsilon)) * mp.mpf(c)
            broken += mp.mpf(math.exp(epsilon) * c) > true
            low = int(math.ldexp(c, 62))
            high = arithmetic.times_below(arithmetic.exp_below(Fraction(epsilon)), low)
            assert mp.mpf(high) <= mp.exp(mp.mpf(epsilon)) * low
    assert 100 < broken < 300


# --- the O(n) certificate agrees with the definition ----------------------------------------------


def kernel_for(q: np.ndarray, epsilon: float) -> tuple[arithmetic.IntegerKernel, Fraction]:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior(range(len(q)), q), epsilon))
    return of_kind(mechanism.engine, KernelEngine).kernel, mechanism.ratio


@given(strategies.priors(least=2, most=10), st.floats(0.01, 8.0), st.integers(0, 2**32))
def test_a_tampered_kernel_does_not_certify_unless_it_is_private(
    q: np.ndarray, epsilon: float, seed: int
) -> None:
    kernel, ratio = kernel_for(q, epsilon)
    rng = random.Random(seed)
    i = rng.randrange(len(q))
    own = list(kernel.own)
    own[i] = int(own[i] * rng.choice([1.0001, 1.3, 0.5]))
    tampered = arithmetic.IntegerKernel(kernel.prior, kernel.low, tuple(own), kernel.total)
    try:
        arithmetic.check_kernel(tampered, ratio)
    except sv.errors.CertificateError:
        return
    order = tuple(range(len(q)))
    rows = [KernelEngine(tampered, order, 62).row(j) for j in order]
    for column in zip(*rows, strict=True):
        assert max(column) <= ratio * min(column)
    assert all(sum(row) == 1 for row in rows)


def enumerated_rows(kernel: arithmetic.IntegerKernel) -> list[list[Fraction]]:
    """The law of every row by counting all words (u, v), from the drawing rule in plain words."""
    total, n = kernel.total, len(kernel.prior)
    rows = []
    for x in range(n):
        counts = [0] * n
        for j in range(x):
            counts[j] += kernel.low[j] * total
        counts[x] += kernel.own[x] * total
        rest = total - sum(kernel.low[:x]) - kernel.own[x]
        behind = sum(kernel.prior[: x + 1])
        for v in range(total if rest > 0 else 0):
            at, j = behind + v * (total - behind) // total, 0
            while at >= sum(kernel.prior[: j + 1]):
                j += 1
            counts[j] += rest
        rows.append([Fraction(count, total * total) for count in counts])
    return rows


def test_the_certificate_is_sound_on_perturbed_small_kernels() -> None:
    """Whatever passes is private by the definition, with N so small that a unit matters."""
    rng = random.Random(6)
    accepted = refused = 0
    for _ in range(4_000):
        total, n = 1 << rng.choice([5, 6, 7]), rng.randint(1, 4)
        cuts = sorted(rng.sample(range(1, total), n - 1))
        prior = sorted(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))
        ratio = arithmetic.exp_below(Fraction(rng.choice([0.3, 0.7, 1.0, 1.5, 2.5])))
        made = arithmetic.integer_kernel(prior, ratio, total, Fraction(1, 1 << rng.randint(2, 9)))
        low = [value + rng.choice([0, 0, 0, 1, -1]) for value in made.low]
        own = [value + rng.choice([0, 0, 0, 1, -1, 2, 3, -total // 4]) for value in made.own[:-1]]
        own.append(total - sum(low[:-1]))
        kernel = arithmetic.IntegerKernel(tuple(prior), tuple(low), tuple(own), total)
        try:
            arithmetic.check_kernel(kernel, ratio)
        except sv.errors.CertificateError:
            refused += 1
            continue
        accepted += 1
        rows = enumerated_rows(kernel)
        assert all(sum(row) == 1 for row in rows)
        for column in zip(*rows, strict=True):
            assert max(column) <= ratio * min(column), kernel
    assert accepted > 300
    assert refused > 300


def test_the_certificate_refuses_a_unit_too_much() -> None:
    """Kernels at the very edge: raising one diagonal by a few units has to be refused sooner or later."""
    kernel, ratio = kernel_for(np.array([0.2, 0.3, 0.5]), 1.0)
    for i in range(2):
        edge = arithmetic.times_below(ratio, kernel.low[i])
        own = list(kernel.own)
        own[i] = edge + 1
        with pytest.raises(sv.errors.CertificateError, match="breaks the ratio"):
            arithmetic.check_kernel(
                arithmetic.IntegerKernel(kernel.prior, kernel.low, tuple(own), kernel.total), ratio
            )


@pytest.mark.parametrize("low", [[0, 5, 5], [5, 6, 6], [1, 1, 1]])
def test_a_box_without_room_or_with_an_empty_floor_is_refused(low: list[int]) -> None:
    with pytest.raises(sv.errors.CertificateError, match=r"less than one unit|leaves no law"):
        arithmetic.certified_box(low, Fraction(2), 16)


def test_a_response_is_refused_when_a_weight_breaks_the_ratio_or_the_sum() -> None:
    arithmetic.check_response(8, 4, 3, Fraction(2), 16)
    arithmetic.check_response(16, 0, 1, Fraction(2), 16)
    for own, other, kept, ratio in (
        (6, 5, 3, Fraction(11, 10)),
        (4, 6, 3, Fraction(5, 4)),
        (16, 0, 3, Fraction(2)),
    ):
        with pytest.raises(sv.errors.CertificateError, match=r"breaks the ratio|below one unit"):
            arithmetic.check_response(own, other, kept, ratio, 16)
    with pytest.raises(sv.errors.CertificateError, match="add up"):
        arithmetic.check_response(8, 5, 3, Fraction(2), 16)


def test_a_uniform_row_lies_between_the_two_weights_of_a_response() -> None:
    for total in (16, 64, 1 << 12):
        for kept in range(2, 12):
            for other in range(1, total // (kept - 1)):
                own = total - (kept - 1) * other
                assert min(own, other) <= total // kept <= -(-total // kept) <= max(own, other)


@pytest.mark.parametrize("n", [2, 1000, 4096, 20_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
def test_uniform_and_tied_priors_certify_at_every_size(n: int, epsilon: float) -> None:
    for q in (np.ones(n), np.repeat([1.0, 2.0], [n - n // 2, n // 2])):
        mechanism = sv.certify(sv.minimax_kernel(sv.Prior(range(n), q / q.sum()), epsilon))
        own = of_kind(mechanism.engine, KernelEngine).kernel.own[0] / 2**62
        exact_own = sv.minimax_kernel(sv.Prior(range(n), q / q.sum()), epsilon).kernel.diagonal.min()
        assert own == pytest.approx(exact_own, rel=1e-6)  # and certifying costs next to nothing


def test_an_unsorted_kernel_is_refused() -> None:
    kernel, ratio = kernel_for(np.array([0.2, 0.3, 0.5]), 1.0)
    backwards = arithmetic.IntegerKernel(kernel.prior[::-1], kernel.low, kernel.own, kernel.total)
    with pytest.raises(sv.errors.CertificateError, match="ascending"):
        arithmetic.check_kernel(backwards, ratio)


def test_the_integer_recursion_on_an_unsorted_prior_breaks_and_is_caught() -> None:
    ratio, total = arithmetic.exp_below(Fraction(1)), 1 << 62
    unsorted = [total // 2, total // 10 * 3, total - total // 2 - total // 10 * 3]
    made = arithmetic.integer_kernel(unsorted, ratio, total, slack=Fraction(1, 1 << 44))
    rows = [KernelEngine(made, (0, 1, 2), 62).row(j) for j in range(3)]
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert math.log(worst) > 1.5  # where 1 was asked for
    with pytest.raises(sv.errors.CertificateError):
        arithmetic.check_kernel(made, ratio)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_promise_1_many_categories_certify(n: int) -> None:
    q = 1 / np.arange(1, n + 1)
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior(range(n), q / q.sum()), 4.0))
    arithmetic.check_kernel(of_kind(mechanism.engine, KernelEngine).kernel, mechanism.ratio)
    assert mechanism.release(records=[7, 7, n // 8]) in mechanism.index


# --- the exact clip -------------------------------------------------------------------------------


@given(
    strategies.situations(most=8), st.sampled_from(["kernel_clip", "relative_mollifier", "global_minimax"])
)
def test_the_exact_clip_is_the_clip(situation: tuple[np.ndarray, np.ndarray, float], name: str) -> None:
    q, p, epsilon = situation
    p = np.where(p < 1e-15, 0.0, p)  # below a unit of 2^-61 the whole numbers cannot see it
    prior = sv.Prior(range(len(q)), q)
    mechanism = sv.certify(sv.SAMPLERS[name](prior, epsilon))
    box = of_kind(mechanism.engine, BoxEngine).box
    low = np.array([float(Fraction(unit, box.total)) for unit in box.low])
    law = mechanism.law(p=p)
    assert sum(law) == 1
    for unit, a, b in zip(law, box.low, box.high, strict=True):
        assert a <= unit * box.total <= b
    # Against 200-bit bisection; p and the floor reach the two as different roundings of the same doubles.
    expected = oracles.clip_by_bisection_mpmath(p, q, low, epsilon)
    assert np.abs(np.array([float(share) for share in law]) - expected).max() <= 1e-12


@given(st.data())
def test_the_exact_clip_fills_any_box_with_room(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    whole = st.lists(st.integers(1, 10**6), min_size=n, max_size=n)
    weights, low, extra = data.draw(whole), data.draw(whole), data.draw(whole)
    high = [a + b for a, b in zip(low, extra, strict=True)]
    target = data.draw(st.integers(sum(low), sum(high)))
    units = arithmetic.exact_clip(weights, low, high, target)
    assert sum(units) == target
    assert all(a <= w <= b for a, w, b in zip(low, units, high, strict=True))
    # A common multiplier exists: nobody above the floor exceeds the ratio of anybody below the cap.
    above = [Fraction(w - 1, k) for w, k, a in zip(units, weights, low, strict=True) if w > a]
    below = [Fraction(w + 1, k) for w, k, b in zip(units, weights, high, strict=True) if w < b]
    if above and below:
        assert max(above) <= min(below)


def test_shifted_product_is_exact() -> None:
    rng = random.Random(5)
    for bits in (12, 31, 61, 62):
        x = [rng.randrange(1 << bits) for _ in range(500)] + [0, (1 << bits) - 1]
        y = [rng.randrange(1 << 62) for _ in range(500)] + [(1 << 62) - 1, (1 << 62) - 1]
        ours = shifted_product(np.array(x, dtype=np.int64), np.array(y, dtype=np.int64), bits)
        assert ours.tolist() == [a * b >> bits for a, b in zip(x, y, strict=True)]


def test_prior_weights_add_up_and_refuse_the_too_rare() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    assert sum(prior_weights(prior, 1 << 62)) == 1 << 62
    rare = sv.Prior(["common", "rare"], [1.0, 1e-20])
    for make in sv.SAMPLERS.values():
        with pytest.raises(sv.errors.CertificateError, match="'rare' is too rare"):
            sv.certify(make(rare, 1.0))


def test_few_bits_refuse_rather_than_round_to_nothing() -> None:
    prior = sv.Prior(range(3), [0.001, 0.2, 0.799])
    with pytest.raises(sv.errors.CertificateError):
        certify_with(sv.minimax_kernel(prior, 2.0), 8)
