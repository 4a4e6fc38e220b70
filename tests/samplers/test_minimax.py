"""The closed form against the paper's recursion, and every stated property of the kernel."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import strategies
from cases import DIVERGENCES, PRIORS
from hypothesis import given
from kinds import of_kind
from numpy.testing import assert_allclose

import sottovoce as sv
from sottovoce.samplers.kernels import LARGEST_MATRIX, MinimaxKernel

EPSILONS = (0.1, 0.5, 1.0, 3.0, 6.0, 12.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [2, 3, 10, 100, 500])
def test_kernel_is_the_papers_recursion(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    for q in (rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.3)) * 0.9 + 0.1 / n):
        q = np.maximum(q, 1e-12) / np.maximum(q, 1e-12).sum()
        ours = MinimaxKernel(q, epsilon).matrix()
        assert_allclose(ours, oracles.algorithm_1_any_order(q, epsilon), rtol=0, atol=1e-12)


@given(strategies.priors(most=9), strategies.epsilons)
def test_kernel_is_accurate_to_the_last_digits(q: np.ndarray, epsilon: float) -> None:
    # Relative, against 50 digits: a dozen roundings at n ≤ 9, each 1.1e-16, and exp(ε) itself.
    ours = MinimaxKernel(q, epsilon).matrix()
    assert_allclose(ours, oracles.kernel_mpmath(q, epsilon), rtol=5e-14)


@given(strategies.priors(most=30), strategies.epsilons)
def test_kernel_facts(q: np.ndarray, epsilon: float) -> None:
    kernel = MinimaxKernel(q, epsilon)
    k, c, a, order = kernel.matrix(), kernel.floor, math.exp(epsilon), np.argsort(q, kind="stable")
    assert_allclose(k.sum(axis=1), 1, rtol=0, atol=1e-13)
    assert_allclose(q @ k, q, rtol=1e-12)
    assert_allclose(q[:, None] * k, (q[:, None] * k).T, rtol=1e-12)  # reversible
    assert oracles.ldp_epsilon(k) <= epsilon + 1e-12
    assert np.all(np.diff(np.diag(k)[order]) >= -1e-15)  # diagonal non-decreasing in q
    assert np.all(np.diff((c / q)[order]) <= 1e-12 * (c / q)[order][:-1])
    assert_allclose(np.diag(k), kernel.diagonal, rtol=1e-15)
    assert np.all(k >= c * (1 - 1e-14))
    assert np.all(k <= a * c * (1 + 1e-14))
    # Σ_{j<i} c_j = 1 − M_i, and M_n = K_nn
    assert_allclose(c[order][:-1].sum(), 1 - k[order[-1], order[-1]], rtol=0, atol=1e-13)


def test_floor_is_the_column_minimum_except_in_the_largest_column() -> None:
    q = np.array([0.1, 0.2, 0.7])
    kernel = MinimaxKernel(q, 1.0)
    least = kernel.matrix().min(axis=0)
    assert_allclose(kernel.floor[:2], least[:2], rtol=1e-15)
    assert kernel.floor[2] < least[2]
    assert_allclose(kernel.floor[2] * math.e, kernel.matrix()[2, 2], rtol=1e-15)


def spectrum(kernel: MinimaxKernel) -> np.ndarray:
    """The eigenvalues of K, largest first: 1, and (a − 1)·c_i for all but the likeliest category."""
    rest = np.sort(math.expm1(kernel.epsilon) * np.delete(kernel.floor, kernel._order[-1]))
    return np.append(1.0, rest[::-1])


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_apply_and_inverse_agree_with_the_matrix(name: str, epsilon: float) -> None:
    q = PRIORS[name]
    kernel = MinimaxKernel(q, epsilon)
    k = kernel.matrix()
    p = np.random.default_rng(1).dirichlet(np.ones(len(q)), size=5)
    assert_allclose(kernel.apply(p), p @ k, rtol=1e-12)
    assert_allclose(kernel.apply(p[0]), p[0] @ k, rtol=1e-12)
    # Inverting loses what the smallest eigenvalue gains: 1e-16 over (a−1)·min c.
    lost = 1e-14 / min(1.0, float(spectrum(kernel).min()))
    assert_allclose(kernel.inverse(p @ k), p, rtol=0, atol=lost)
    assert_allclose(kernel.inverse(3 * p @ k), 3 * p, rtol=0, atol=3 * lost)  # counts need not sum to one


@pytest.mark.parametrize("name", ["two categories", "ties", "random 25", "zipf 40"])
def test_spectrum_and_inverse_against_dense_linear_algebra(name: str) -> None:
    q = PRIORS[name]
    kernel = MinimaxKernel(q, 2.0)
    k = kernel.matrix()
    assert_allclose(np.sort(np.linalg.eigvals(k).real)[::-1], spectrum(kernel), rtol=0, atol=1e-12)
    inverse = np.linalg.inv(k)
    assert_allclose(kernel.inverse(np.eye(len(q))), inverse, rtol=0, atol=1e-12 * np.abs(inverse).max())


def test_unsorted_prior_keeps_its_epsilon_where_the_recursion_breaks_it() -> None:
    q = np.array([0.5, 0.3, 0.2])
    assert oracles.ldp_epsilon(oracles.algorithm_1(q, 1.0)) == pytest.approx(1.566, abs=5e-4)
    ours = MinimaxKernel(q, 1.0).matrix()
    assert oracles.ldp_epsilon(ours) <= 1 + 1e-12
    assert_allclose(ours, oracles.algorithm_1_any_order(q, 1.0), rtol=1e-14)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_uniform_prior_gives_randomized_response(n: int, epsilon: float) -> None:
    prior = sv.Prior(range(n), np.full(n, 1 / n))
    warner = oracles.randomized_response(n, epsilon)
    assert_allclose(MinimaxKernel(prior.probabilities, epsilon).matrix(), warner, rtol=1e-12, atol=0)
    assert_allclose(
        of_kind(sv.randomized_response(prior, epsilon), sv.KernelSampler).matrix(), warner, rtol=1e-12
    )
    # The second half: the utility of Park et al. (2024), which no private sampler without a prior beats.
    total = math.exp(epsilon) + n - 1
    for f in DIVERGENCES:
        if math.isfinite(f.at_zero):
            kept = math.exp(epsilon) / total
            park = (n - 1) / total * f.at_zero + kept * float(f.f(np.array(1 / kept)))
            assert sv.bounds.optimal_utility(prior, epsilon, f) == pytest.approx(park, rel=1e-9, abs=1e-12)
    tv = sv.bounds.optimal_utility(prior, epsilon, sv.TV)
    assert tv == pytest.approx(oracles.minimax_without_prior(n, epsilon), rel=1e-12)


def test_two_categories_give_proposition_1() -> None:
    a, alpha = math.exp(0.7), 0.2
    printed = np.array([[a * alpha, 1 - alpha], [alpha, (a - 1) * alpha + 1 - alpha]])
    ours = MinimaxKernel(np.array([alpha, 1 - alpha]), 0.7).matrix()
    assert_allclose(ours, printed / (a * alpha + 1 - alpha), rtol=1e-14)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_many_categories_in_one_pass(n: int) -> None:
    q = 1 / np.arange(1, n + 1) ** 1.1
    q = np.random.default_rng(3).permutation(q / q.sum())
    kernel = MinimaxKernel(q, 3.0)
    p = np.zeros(n)
    p[:50] = 0.02
    # A cumulative sum of a million roundings of 1.1e-16 stays below 1.1e-10, typically 1e-13.
    assert_allclose(kernel.apply(q), q, rtol=1e-10)
    assert_allclose(kernel.apply(p).sum(), 1, rtol=0, atol=1e-10)
    rarest = np.zeros(n)
    rarest[q.argmin()] = 1
    assert_allclose(kernel.apply(rarest).sum(), 1, rtol=0, atol=1e-10)
    assert np.all(kernel.apply(p) >= kernel.floor * (1 - 1e-12))
    assert np.all(kernel.apply(p) <= math.exp(3) * kernel.floor * (1 + 1e-12))
    top = int(q.argmax())
    assert kernel.floor.sum() - kernel.floor[top] == pytest.approx(1 - kernel.diagonal[top], abs=1e-10)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["uniform", "one dominant"])
@pytest.mark.parametrize("epsilon", [1e-5, 1.0])
def test_many_categories_keep_epsilon_between_rows(kind: str, epsilon: float, n: int) -> None:
    q = np.full(n, 1e-12 if kind == "one dominant" else 1 / n)
    q[-1] = 1 - q[:-1].sum()
    prior = sv.Prior(range(n), q)
    kernel = sv.minimax_kernel(prior, epsilon).kernel
    held = np.zeros((4, n))
    held[range(4), [0, n // 2, n - 2, n - 1]] = 1
    rows = kernel.apply(held)
    for a in rows:
        for b in rows:
            # Sums in blocks: a million terms cost about √n·1e-16 = 1e-13.
            assert np.log(a / b).max() <= epsilon + 2e-12
    assert sv.minimax_kernel(prior, epsilon).keeps_prior
    assert sv.kernel_clip(prior, epsilon).keeps_prior


def test_a_matrix_too_large_is_refused() -> None:
    kernel = MinimaxKernel(np.full(LARGEST_MATRIX + 1, 1 / (LARGEST_MATRIX + 1)), 1.0)
    with pytest.raises(sv.errors.ParameterError, match="10000 categories, this sampler has 10001"):
        kernel.matrix()
