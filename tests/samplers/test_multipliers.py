"""The clip's multiplier: every way of finding it ends in the same place, and that is the exact one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv
from sottovoce.samplers import blocks, clip

EPS = np.finfo(np.float64).eps


def exact_sum(u: float, p: np.ndarray, low: np.ndarray, a: float) -> Fraction:
    """Σ clip(u·p; low, a·low) with no rounding but that of the caps themselves, which are the library's."""
    total = Fraction(0)
    for share, least in zip(p.tolist(), low.tolist(), strict=True):
        total += min(max(Fraction(u) * Fraction(share), Fraction(least)), Fraction(a * least))
    return total


def rows(rng: np.random.Generator, m: int, k: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Users whose shares span `spread` decades, and floors that sum to a third."""
    p = 10.0 ** rng.uniform(-spread, 0, (m, k))
    low = rng.dirichlet(np.ones(k), m) / 3
    ties = rng.random((m, k)) < 0.3  # equal ratios: knots on top of each other
    low = np.where(ties, p * (low.sum(axis=1, keepdims=True) / k), low)
    return p / p.sum(axis=1, keepdims=True), low


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("spread", [1.0, 12.0, 200.0])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_the_multiplier_solves_its_equation(epsilon: float, spread: float, k: int) -> None:
    rng = np.random.default_rng([k, round(spread), round(100 * epsilon)])
    a = math.exp(epsilon)
    p, low = rows(rng, 60, k, spread)
    inside = rng.uniform(0, 1, 60)
    inside[:4] = 0, 1, 1e-15, 1 - 1e-15  # at the ends, where floors and caps alone add up
    target = low.sum(axis=1) * (1 + inside * (a - 1))
    u = clip.multipliers(p, low, a, target)
    assert np.all(np.isfinite(u))
    for i in range(60):
        # Sums of k roundings in the root, and the few ulps by which a sum may fall short.
        off = abs(exact_sum(float(u[i]), p[i], low[i], a) - Fraction(float(target[i])))
        assert off <= (k + 6) * 4 * EPS * float(target[i])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("spread", [1.0, 12.0, 200.0])
def test_newton_and_the_search_agree_to_the_bit_where_newton_is_sure(epsilon: float, spread: float) -> None:
    rng = np.random.default_rng([7, round(spread), round(100 * epsilon)])
    a = math.exp(epsilon)
    p, low = rows(rng, 400, 20, spread)
    target = low.sum(axis=1) * (1 + rng.uniform(0, 1, 400) * (a - 1))
    reached = target * (1 - 4 * EPS)
    searched = clip._by_search(p, low, a, target, reached)
    sure = 0
    for steps in clip.NEWTON_STEPS:
        root, found = clip._by_newton(p, low, a, target, reached, steps)
        assert np.array_equal(root[found], searched[found])
        sure = int(found.sum())
    assert sure > 200  # else nothing was compared
    assert np.array_equal(clip.multipliers(p, low, a, target), searched)


def test_a_sum_that_is_short_by_an_ulp_is_not_chased() -> None:
    """At u = 2 the first category is at its cap; to make up an ulp, the second would grow a million times."""
    p, low, a = np.array([[1.0, 1e-12]]), np.array([[0.5, 0.1]]), 4.0
    knot = 2.0
    at_knot = a * 0.5 + 0.1
    for ulps in (0, 1, 2):
        u = clip.multipliers(p, low, a, np.array([at_knot * (1 + ulps * EPS)]))
        assert u[0] == pytest.approx(knot, rel=8 * EPS)
    assert clip.multipliers(p, low, a, np.array([at_knot * (1 + 1e-9)]))[0] > 1e10


def test_caps_that_fall_short_have_no_multiplier() -> None:
    p, low = np.array([[0.5, 0.5], [0.5, 0.5]]), np.full((2, 2), 0.1)
    u = clip.multipliers(p, low, 2.0, np.array([0.3, 0.5]))
    assert u.tolist() == [pytest.approx(0.3), math.inf]


def test_padding_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    p, low = rows(rng, 50, 6, 3.0)
    target = low.sum(axis=1) * 1.7
    wide = np.zeros((50, 11))
    wide_low = np.zeros((50, 11))
    wide[:, :6], wide_low[:, :6] = p, low
    # Zeros move the places where numpy splits a sum: a few ulps.
    np.testing.assert_allclose(
        clip.multipliers(wide, wide_low, 4.0, target), clip.multipliers(p, low, 4.0, target), rtol=1e-14
    )


def test_total_variation_is_the_same_to_the_bit_in_chunks_of_any_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.ones(30))
    dense = rng.dirichlet(np.full(30, 0.2), 200)
    dense[dense < 0.01] = 0
    p = sparse.csr_array(dense / dense.sum(axis=1, keepdims=True))
    sampler = sv.kernel_clip(sv.Prior(range(30), q), 1.5)
    whole = sampler.divergence(p, sv.TV)
    for size in (1, 7, 64):
        monkeypatch.setattr(blocks, "CHUNK_ENTRIES", size)
        parts = list(blocks.chunks(p))
        assert len(parts) >= p.nnz // max(size, 30)
        assert np.array_equal(np.concatenate([data for _, _, data, _ in parts]), p.data)
        assert np.array_equal(sampler.divergence(p, sv.TV), whole)
