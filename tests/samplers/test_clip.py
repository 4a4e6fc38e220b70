"""The clip is in the box, sums to one, is the best point of the box, and ignores category order."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import sottovoce as sv
from sottovoce.samplers import floors

FLOORS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "relative": floors.relative,
    "uniform": lambda q, epsilon: floors.uniform(len(q), epsilon),
    "kernel": floors.kernel,
    "prior_minimax": floors.prior_minimax,
    "blend": lambda q, epsilon: floors.blend(q, epsilon, 0.5),
    "local": lambda q, epsilon: floors.local(q, epsilon, 3.0),
}
any_floor = st.sampled_from(sorted(FLOORS))


def sampler(q: np.ndarray, floor: np.ndarray, epsilon: float) -> sv.ClipSampler:
    return sv.ClipSampler("test", sv.Prior(range(len(q)), q), epsilon, floor.copy())


@given(strategies.situations(), any_floor)
def test_clip_lies_in_the_box_and_sums_to_one(
    situation: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    q, p, epsilon = situation
    s = sampler(q, FLOORS[name](q, epsilon), epsilon)
    x = s.distribution(p)
    assert np.all(x >= s.floor)  # exactly: the clip never steps below its floor …
    assert np.all(x <= math.exp(epsilon) * s.floor)  # … nor above its cap, without renormalising
    # Near ε = 0 the box is a point whose own sum is one only to rounding, scaled by the cap's a.
    assert x.sum() == pytest.approx(1, abs=1e-14 * len(q))


@given(strategies.situations(most=7), any_floor)
def test_clip_is_the_bisection_in_200_bits(
    situation: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    q, p, epsilon = situation
    p = np.where(p < 1e-250, 0.0, p)  # what the library calls zero
    floor = FLOORS[name](q, epsilon)
    x = sampler(q, floor, epsilon).distribution(p)
    assert_allclose(x, oracles.clip_by_bisection_mpmath(p, q, floor, epsilon), rtol=0, atol=3e-14)


@given(strategies.situations(most=8), any_floor)
def test_total_variation_is_the_linear_program(
    situation: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    q, p, epsilon = situation
    epsilon = min(epsilon, 12.0)  # HiGHS scales no further
    floor = FLOORS[name](q, epsilon)
    s = sampler(q, floor, epsilon)
    assert s.divergence(p, sv.TV) == pytest.approx(oracles.projection_tv_lp(p, floor, epsilon), abs=1e-8)
    assert s.divergence(p, sv.TV) == pytest.approx(float(sv.TV(p, s.distribution(p))), abs=1e-14)


@given(
    strategies.situations(most=6, smallest=1e-6),
    any_floor,
    st.sampled_from(["kl", "chi2", "hellinger2", "js", "reverse_kl"]),
)
def test_no_convex_solver_finds_a_better_point(
    situation: tuple[np.ndarray, np.ndarray, float], name: str, divergence: str
) -> None:
    q, p, epsilon = situation
    p = np.where((p > 0) & (p < 1e-9), 1e-9, p)  # the oracle's own range
    p, epsilon = p / p.sum(), min(max(epsilon, 0.05), 8.0)
    floor = FLOORS[name](q, epsilon)
    ours = float(sampler(q, floor, epsilon).divergence(p, sv.DIVERGENCES[divergence]))
    best = oracles.projection_convex(p, floor, epsilon, divergence)
    assert ours == pytest.approx(best, rel=1e-8, abs=1e-10)


@given(strategies.situations(most=8), any_floor, st.integers(0, 2**32))
def test_never_beaten_by_random_points_of_the_box(
    situation: tuple[np.ndarray, np.ndarray, float], name: str, seed: int
) -> None:
    q, p, epsilon = situation
    p = np.where(p < 1e-250, 0.0, p)  # what the library calls zero
    floor = FLOORS[name](q, epsilon)
    s = sampler(q, floor, epsilon)
    points = oracles.random_box_points(floor, epsilon, np.random.default_rng(seed), 100)
    for f in (sv.TV, sv.KL, sv.CHI2, sv.HELLINGER2, sv.JS, sv.hockey_stick(1.5), sv.alpha(-1.0)):
        ours, theirs = float(s.divergence(p, f)), f(p, points)
        slack = 1e-12 * (1 + abs(ours)) if math.isfinite(ours) else 0.0
        assert ours <= theirs.min() + slack


@given(strategies.situations(), any_floor, st.randoms(use_true_random=False))
def test_clip_does_not_depend_on_category_order(
    situation: tuple[np.ndarray, np.ndarray, float], name: str, random: Random
) -> None:
    q, p, epsilon = situation
    order = np.array(random.sample(range(len(q)), len(q)))
    floor = FLOORS[name](q, epsilon)
    x = sampler(q, floor, epsilon).distribution(p)
    y = sampler(q[order], floor[order], epsilon).distribution(p[order])
    assert_allclose(y, x[order], rtol=0, atol=1e-14)


@given(strategies.situations(), any_floor)
def test_what_a_capped_user_leaves_moves_the_others_towards_the_public_law(
    situation: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    q, p, epsilon = situation
    p = np.where(p < 1e-6, 0.0, p)
    p = p / p.sum()
    s = sampler(q, FLOORS[name](q, epsilon), epsilon)
    others, public, x = p == 0, s.distribution(q), s.distribution(p)
    left = 1 - math.exp(epsilon) * float(s.floor[~others].sum()) - float(s.floor[others].sum())
    room = (public - s.floor)[others]
    if left > 1e-9:
        assert_allclose(x[others], s.floor[others] + left / room.sum() * room, rtol=0, atol=1e-13)


def test_zeros_that_break_a_fixed_bracket() -> None:
    # Everything the user has is at its cap and mass is left: the rest goes to what the user lacks.
    q, p = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 0.0])
    s = sv.relative_mollifier(sv.Prior(["a", "b", "c"], q), 1.0)
    cap = 0.2 * math.exp(0.5)
    rest = 1 - cap
    assert_allclose(s.distribution(p), [cap, rest * 0.375, rest * 0.625], rtol=1e-14)


def test_a_law_inside_the_box_is_left_alone() -> None:
    q = np.array([0.2, 0.3, 0.5])
    p = np.array([0.25, 0.3, 0.45])
    s = sv.relative_mollifier(sv.Prior(range(3), q), 2.0)
    assert_allclose(s.distribution(p), p, rtol=1e-15)
    assert s.divergence(p, sv.KL) == pytest.approx(0, abs=1e-15)


def test_dense_sparse_and_single_users_agree_in_every_block() -> None:
    # Rows of very different length, more than one block each, against one row at a time.
    rng = np.random.default_rng(5)
    n = 300
    prior = sv.Prior(range(n), rng.dirichlet(np.ones(n) * 2))
    p = rng.dirichlet(np.full(n, 0.05), size=900)
    p[p < 10 ** rng.uniform(-6, -1.5, size=(900, 1))] = 0
    p = p[p.sum(axis=1) > 0]
    p /= p.sum(axis=1, keepdims=True)
    for make in sv.SAMPLERS.values():
        s = make(prior, 3.0)
        x = s.distribution(p)
        assert_allclose(s.distribution(sparse.coo_matrix(p)), x, rtol=1e-14)
        for f in (sv.TV, sv.KL, sv.JS, sv.hockey_stick(1.2)):
            values = s.divergence(p, f)
            assert_allclose(values, f(p, x), atol=1e-12, rtol=1e-12)
            assert_allclose(s.divergence(sparse.csc_array(p), f), values, rtol=1e-14)
            assert_allclose([s.divergence(row, f) for row in p[:40]], values[:40], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("q", "epsilon"),
    [
        ([1e-21, 1.0], 4.0),
        ([1e-16, 1e-21, 0.9999999999999999], 6.0),
        ([7e-8, 1 - 7e-8], 1.0),
        ([1e-90, 1], 30),
    ],
)
def test_the_prior_is_kept_in_its_rarest_category_too(q: list[float], epsilon: float) -> None:
    # A cap one ulp below q leaves 1e-16 of mass; put on a category of 1e-21 it would release it too often.
    prior = sv.Prior(range(len(q)), q)
    for name in ("kernel_clip", "prior_minimax", "blend", "relative_mollifier", "minimax_kernel"):
        s = sv.SAMPLERS[name](prior, epsilon)
        assert s.keeps_prior
        assert_allclose(s.distribution(prior.probabilities), prior.probabilities, rtol=1e-12)


def test_a_sum_within_tolerance_is_divided_out() -> None:
    s = sv.kernel_clip(sv.Prior(range(3), [0.2, 0.3, 0.5]), 1.0)
    p = np.array([0.7, 0.2, 0.1])
    for f in (sv.TV, sv.KL):
        assert s.divergence(p * (1 + 9e-10), f) == pytest.approx(float(s.divergence(p, f)), rel=1e-14)
    assert_allclose(s.distribution(np.array([0.7, 0.2, 0.1], dtype=np.float32)), s.distribution(p), rtol=1e-6)


def test_the_callers_data_are_not_changed() -> None:
    p = sparse.csr_array(np.array([[0.5, 0.0, 0.5], [0.2, 0.3, 0.5]]))
    p.data[0] = 0.5000000001  # within tolerance, so it is normalised inside
    before = p.copy()
    s = sv.kernel_clip(sv.Prior(range(3), [0.2, 0.3, 0.5]), 1.0)
    s.divergence(p, sv.KL)
    s.distribution(p)
    assert np.array_equal(p.data, before.data)
    assert np.array_equal(p.indices, before.indices)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_many_categories(n: int) -> None:
    rng = np.random.default_rng(11)
    q = rng.gamma(0.5, size=n) + 1e-9
    prior = sv.Prior(range(n), q / q.sum())
    columns = rng.choice(n, size=30, replace=False)
    p = sparse.coo_array((np.full(30, 1 / 30), (np.zeros(30, int), columns)), shape=(1, n)).tocsr()
    for make in (sv.kernel_clip, sv.prior_minimax, sv.relative_mollifier, sv.minimax_kernel):
        s = make(prior, 9.0)
        x = s.distribution(p)[0]
        assert x.sum() == pytest.approx(1, abs=1e-10)
        assert np.all(x >= s.floor * (1 - 1e-12))
        assert np.all(x <= math.exp(9) * s.floor * (1 + 1e-12))
        assert s.divergence(p, sv.TV)[0] == pytest.approx(np.abs(x - p.toarray()[0]).sum() / 2, abs=1e-10)
        assert s.divergence(p, sv.TV)[0] <= s.worst_case(sv.TV) + 1e-12
        assert s.keeps_prior
