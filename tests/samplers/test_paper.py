"""The paper's lemmas one by one, what is sharper than the paper, and what holds of `local_minimax`."""

from __future__ import annotations

import math
from collections.abc import Callable

import cases
import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from kinds import of_kind
from numpy.testing import assert_allclose

import sottovoce as sv

KEEPING_CLIPS = [
    name
    for name, make in sv.SAMPLERS.items()
    if isinstance(s := make(sv.Prior(range(3), [0.05, 0.15, 0.8]), 1.0), sv.ClipSampler) and s.keeps_prior
]
Situation = tuple[np.ndarray, np.ndarray, float]


def numbered(q: np.ndarray) -> sv.Prior:
    return sv.Prior(range(len(q)), q)


# --- definitions and the first theorem ---


@given(strategies.situations(zeros=True))
def test_definition_2_the_relative_mollifier(situation: Situation) -> None:
    q, p, epsilon = situation
    s = sv.relative_mollifier(numbered(q), epsilon)
    laws = [s.distribution(p), *s.distribution(np.eye(len(q)))]
    for x in laws:
        assert max((q / x).max(), (x / q).max()) <= math.exp(epsilon / 2) * (1 + 1e-12)
        assert max((y / x).max() for y in laws) <= math.exp(epsilon) * (1 + 1e-12)  # the remark after it
    if len(q) > 1:  # and no room is given away: a point mass reaches the upper or the lower end somewhere
        x = s.distribution(np.eye(len(q))[q.argmin()])
        assert max((q / x).max(), (x / q).max()) == pytest.approx(math.exp(epsilon / 2), rel=1e-9)


@pytest.mark.parametrize("f", cases.DIVERGENCES, ids=lambda f: f.name)
@pytest.mark.parametrize("q", [[0.1, 0.9], [0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4]])
def test_theorem_1_for_every_divergence(f: sv.FDivergence, q: list[float]) -> None:
    # Lemma 1 in 50 digits, at the largest smallest diagonal that a linear program over all kernels finds.
    t = 1 - oracles.best_linear_tv(np.array(q), 1.5)
    kind, _, parameter = f.name.partition("(")
    order = float(parameter[:-1]) if parameter else None
    named = {"gamma": order} if kind == "hockey_stick" else {"alpha": order}
    exact = oracles.divergence_mpmath(np.array([1.0, 0.0]), np.array([t, 1 - t]), kind, **named)
    assert sv.bounds.optimal_utility(sv.Prior(range(len(q)), q), 1.5, f) == pytest.approx(exact, rel=1e-6)


# --- the lemmas ---


@pytest.mark.parametrize("f", cases.DIVERGENCES, ids=lambda f: f.name)
def test_lemma_2_the_distance_of_a_point_mass_falls_with_what_is_kept(f: sv.FDivergence) -> None:
    kept = np.concatenate([np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(0.5, 1e-9, 60)[1:], [1.0]])
    values = np.array([f.of_point_mass(t, 1 - t) for t in kept])
    finite = np.isfinite(values)
    assert finite[-1]
    assert values[-1] == 0
    # Rounding: a sum of two terms, each within a few units of its last place.
    assert np.all(np.diff(values[finite]) <= 1e-14 * values[finite][:-1])
    assert not np.any(finite[:-1] & ~finite[1:])  # infinity, if any, comes first
    kind, _, parameter = f.name.partition("(")
    order = float(parameter[:-1]) if parameter else None
    named = {"gamma": order} if kind == "hockey_stick" else {"alpha": order}
    for t, value in zip(kept[::7], values[::7], strict=True):
        exact = oracles.divergence_mpmath(np.array([1.0, 0.0]), np.array([t, 1 - t]), kind, **named)
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-15)


@given(st.lists(st.tuples(st.floats(0.02, 30), st.floats(0, 5)), min_size=1, max_size=4))
def test_lemma_2_holds_for_any_convex_f(kinks: list[tuple[float, float]]) -> None:
    at_zero = -sum(weight * max(1 - place, 0) for place, weight in kinks)

    def broken(t: np.ndarray) -> np.ndarray:
        rising = [weight * np.maximum(t - place, 0) for place, weight in kinks]
        return np.asarray(sum(rising, np.zeros_like(t)) + at_zero)

    f = sv.FDivergence("broken line", broken, at_zero, sum(weight for _, weight in kinks))
    kept = np.linspace(0.01, 1, 60)
    values = [f.of_point_mass(t, 1 - t) for t in kept]
    assert np.all(np.diff(values) <= 1e-12 * (1 - at_zero))
    by_hand = [at_zero + sum(weight * max(1 - place * t, 0) for place, weight in kinks) for t in kept]
    assert_allclose(
        values, by_hand, rtol=0, atol=1e-12 * (1 - at_zero)
    )  # a few roundings of terms of that size


@given(strategies.priors(least=2, most=5, smallest=1e-4), st.floats(0.05, 5.0))
def test_lemma_3_for_every_category_by_a_program_over_all_kernels(q: np.ndarray, epsilon: float) -> None:
    a = math.exp(epsilon)
    ours = sv.bounds.diagonal_bound(numbered(q), epsilon)
    largest = [oracles.largest_diagonal(q, epsilon, i) for i in range(len(q))]
    assert_allclose(
        ours, largest, rtol=0, atol=1e-7
    )  # HiGHS solves to 1e-10 per constraint, entries down to 1e-4
    printed = a * q / (a * q + 1 - q)  # the paper's, for every q_i
    assert np.all(ours <= printed + 1e-15)
    assert_allclose(ours[q <= 0.5], printed[q <= 0.5], rtol=1e-15)
    assert np.all(ours[q > 0.5 + 1e-6] < printed[q > 0.5 + 1e-6])


@given(strategies.priors(least=1, most=30), strategies.epsilons)
def test_lemma_3_bounds_the_papers_kernel_and_is_met_by_its_rarest_category(
    q: np.ndarray, epsilon: float
) -> None:
    bound = sv.bounds.diagonal_bound(numbered(q), epsilon)
    kept = sv.bounds.released_as_itself(sv.minimax_kernel(numbered(q), epsilon))
    assert np.all(kept <= bound * (1 + 1e-12))
    if len(q) > 1:
        assert kept[q.argmin()] == pytest.approx(bound[q.argmin()], rel=1e-12)


# --- a draw released as itself: Pr(X ≠ Z) ---


@pytest.mark.parametrize("name", sv.SAMPLERS)
@given(situation=strategies.situations(zeros=True))
def test_a_category_is_released_as_itself_at_least_as_often_as_promised(
    name: str, situation: Situation
) -> None:
    q, p, epsilon = situation
    s = sv.SAMPLERS[name](numbered(q), epsilon)
    kept = sv.bounds.released_as_itself(s)
    assert np.all(s.distribution(p) >= kept * p * (1 - 1e-12) - 1e-300)
    assert_allclose(np.diag(s.distribution(np.eye(len(q)))), kept, rtol=1e-12, atol=1e-16)  # attained
    assert 1 - kept.min() == pytest.approx(s.worst_case(sv.TV), abs=1e-12)


def test_a_floor_that_leaves_little_to_spare_keeps_what_is_left_beside_it() -> None:
    """By hand: a = 6, c = (.2, .3, .4), C = .9: who has i alone gets 1 − C + c_i, below the cap a·c_i."""
    floor = np.array([0.2, 0.3, 0.4])
    s = sv.ClipSampler("own", numbered(np.full(3, 1 / 3)), math.log(6), floor)
    assert_allclose(
        s.distribution(np.eye(3)), [[0.3, 0.3, 0.4], [0.2, 0.4, 0.4], [0.2, 0.3, 0.5]], atol=1e-12
    )
    assert_allclose(sv.bounds.released_as_itself(s), [0.3, 0.4, 0.5], rtol=0, atol=1e-12)
    wide = sv.ClipSampler("own", numbered(np.full(3, 1 / 3)), math.log(2), np.array([0.1, 0.2, 0.3]))
    assert_allclose(sv.bounds.released_as_itself(wide), [0.2, 0.4, 0.6], rtol=0, atol=1e-12)  # here a·c_i


@pytest.mark.parametrize("case", ["two categories", "ties", "one dominant", "random 25"])
def test_gamma_tv_is_the_largest_probability_of_releasing_another_category(case: str) -> None:
    q = cases.PRIORS[case]
    s = of_kind(sv.minimax_kernel(cases.prior(q), 1.3), sv.KernelSampler)
    kernel = oracles.algorithm_1_any_order(q, 1.3)
    everyone = np.array([*cases.users(q).values(), *np.eye(len(q))])
    # X is the record that was chosen, Z its row's draw: Pr(X ≠ Z) = Σ_i p_i Σ_{j≠i} K_ij, by summing pairs.
    different = [
        sum(p[i] * kernel[i, j] for i in range(len(q)) for j in range(len(q)) if i != j) for p in everyone
    ]
    assert max(different) == pytest.approx(sv.bounds.optimal_utility(s.prior, 1.3, sv.TV), rel=1e-10)
    assert np.all(s.divergence(everyone, sv.TV) <= np.array(different) + 1e-12)
    kept = sv.bounds.released_as_itself(s)
    assert_allclose(kept, np.diag(kernel), rtol=1e-10, atol=0)
    assert 1 - min(kept) == pytest.approx(
        oracles.best_linear_tv(q, 1.3) if len(q) <= 6 else max(different), abs=1e-9
    )


def test_released_as_itself_asks_for_a_sampler() -> None:
    with pytest.raises(sv.errors.ParameterError, match="ClipSampler or a KernelSampler"):
        sv.bounds.released_as_itself("kernel_clip")  # type: ignore[arg-type]  # the mistake is the test
    for ask in (sv.bounds.diagonal_bound, sv.bounds.distance_factor):
        with pytest.raises(sv.errors.ParameterError, match="must be a Prior"):
            ask([0.5, 0.5], 1.0)  # type: ignore[arg-type]  # the mistake is the test


def test_the_papers_kernel_is_not_the_only_minimax_kernel() -> None:
    """Another kernel for q = (.1, .3, .6), found by a linear program, keeps q and ε and has the same Γ_f."""
    q, a = np.array([0.1, 0.3, 0.6]), math.e
    papers = sv.minimax_kernel(numbered(q), 1.0).matrix()
    assert_allclose(np.diag(papers), [0.2320, 0.5270, 0.7208], rtol=0, atol=5e-5)
    # The largest K_22 of all kernels that keep q, are e-LDP and have the paper's smallest diagonal entry.
    best = oracles.largest_diagonal_lp(q, a, category=1, at_least=float(papers[0, 0]))
    assert_allclose(q @ best, q, rtol=0, atol=1e-9)
    assert_allclose(best.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert (best.max(axis=0) / best.min(axis=0)).max() <= a * (1 + 1e-8)
    assert np.diag(best)[1] > 0.5381 - 5e-5 > papers[1, 1] + 0.01
    assert np.diag(best).min() == pytest.approx(papers[0, 0], abs=1e-9)
    prior = numbered(q)
    for f in (
        sv.TV,
        sv.KL,
        sv.CHI2,
        sv.HELLINGER2,
    ):  # the worst case is at a point mass, for every f (Lemma 1)
        alone = [f.of_point_mass(kept, 1 - kept) for kept in np.diag(best).tolist()]
        assert max(alone) == pytest.approx(sv.bounds.optimal_utility(prior, 1.0, f), rel=1e-7)
    second = np.eye(3)[1]  # a user who is nearer to their own law with the other kernel
    assert np.abs(second - second @ best).sum() < np.abs(second - second @ papers).sum() - 0.02
    assert "a minimax one" in str(sv.minimax_kernel.__doc__).split("\n")[0]  # not "the best one"


# --- distance to the prior ---


@given(strategies.situations(zeros=True))
def test_the_papers_sampler_moves_a_user_by_less_than_its_distance_to_the_prior(situation: Situation) -> None:
    q, p, epsilon = situation
    factor = sv.bounds.distance_factor(numbered(q), epsilon)
    moved = sv.minimax_kernel(numbered(q), epsilon).divergence(p, sv.TV)
    assert factor < 1
    assert moved <= factor * np.abs(p - q).sum() / 2 + 1e-14


@pytest.mark.parametrize("case", [name for name, q in cases.PRIORS.items() if len(q) > 1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_distance_factor_is_attained_and_is_the_smallest_possible(case: str, epsilon: float) -> None:
    q = cases.PRIORS[case]
    factor = sv.bounds.distance_factor(numbered(q), epsilon)
    kernel = oracles.algorithm_1_any_order(q, epsilon)
    assert factor == pytest.approx(oracles.largest_move(kernel), rel=1e-12)
    rarest = np.eye(len(q))[q.argmin()]
    for share in (0.01, 0.5, 1.0):
        p = (1 - share) * q + share * rarest
        moved = sv.minimax_kernel(numbered(q), epsilon).divergence(p, sv.TV)
        assert moved == pytest.approx(factor * np.abs(p - q).sum() / 2, rel=1e-9)
    if len(q) <= 4 and q.min() > 1e-6:  # no kernel that keeps q does better: its K_ii is too small
        least = 1 - oracles.largest_diagonal(q, epsilon, int(q.argmin()))
        assert least / (1 - q.min()) == pytest.approx(factor, abs=1e-7)


@given(strategies.situations(zeros=True))
def test_the_distance_factor_holds_for_every_f(situation: Situation) -> None:
    q, p, epsilon = situation
    factor = sv.bounds.distance_factor(numbered(q), epsilon)
    s = sv.minimax_kernel(numbered(q), epsilon)
    p = np.where(p < 1e-250, 0.0, p)  # such a probability counts as zero, as the documents say
    for f in cases.DIVERGENCES:
        moved, away = float(s.divergence(p, f)), float(f(p, q))
        assert moved <= factor * away * (1 + 1e-9) + 1e-13 or math.isinf(away)


@pytest.mark.parametrize(
    "q", [[0.5, 0.5], [0.1, 0.3, 0.6], [0.02, 0.08, 0.4, 0.5], [0.05, 0.15, 0.2, 0.25, 0.35]]
)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_user_beats_the_distance_factor_in_any_hockey_stick(q: list[float], epsilon: float) -> None:
    """Linear programs over all users; every f is a mixture of hockey sticks."""
    prior = np.array(q)
    kernel = oracles.algorithm_1_any_order(prior, epsilon)
    factor = 1 / (1 + math.expm1(epsilon) * prior.min())
    assert sv.bounds.distance_factor(numbered(prior), epsilon) == pytest.approx(factor, rel=1e-14)
    steps = np.geomspace(0.05, 20, 13)
    assert max(oracles.largest_excess(kernel, prior, factor, gamma) for gamma in steps) <= 1e-9
    too_small = max(oracles.largest_excess(kernel, prior, factor * 0.999, gamma) for gamma in [1.0, *steps])
    assert too_small > 1e-5  # the programs notice a factor that is too small


@pytest.mark.parametrize("name", KEEPING_CLIPS)
@given(situation=strategies.situations(zeros=True))
def test_releasing_is_never_worse_than_handing_out_the_public_data(name: str, situation: Situation) -> None:
    q, p, epsilon = situation
    s = sv.SAMPLERS[name](numbered(q), epsilon)
    p = np.where(p < 1e-250, 0.0, p)  # such a probability counts as zero, as the documents say
    for f in cases.DIVERGENCES:
        ours, public = float(s.divergence(p, f)), float(f(p, q))
        assert ours <= public * (1 + 1e-9) + 1e-13 or math.isinf(public)


# --- local_minimax: what it is minimax over, and when ---


def worst(make: Callable[..., sv.Sampler], q: list[float], reach: float, **options: float) -> float:
    users = oracles.users_within_a_factor(np.array(q), reach)
    return float(make(sv.Prior(range(len(q)), q), 1.0, **options).divergence(users, sv.TV).max())


COVERED = [([0.2] * 5, 4.0), ([0.25] * 4, 3.0), ([0.1, 0.1, 0.2, 0.2, 0.2, 0.2], 4.0), ([1 / 7] * 7, 2.5)]
ONE_SET = [([0.1, 0.2, 0.3, 0.4], 4.0), ([0.2, 0.3, 0.5], 4.0), ([0.25, 0.35, 0.4], 3.0)]
NO_SET = [([0.15, 0.35, 0.5], 4.0), ([0.3, 0.7], 4.0)]


def stated(gamma: float) -> float:
    return (gamma**2 - math.e) / ((gamma + 1) * (gamma + math.e))


@pytest.mark.parametrize(("q", "gamma"), COVERED)
def test_local_minimax_is_minimax_where_sets_of_its_mass_cover_all_alike(
    q: list[float], gamma: float
) -> None:
    users = oracles.users_within_a_factor(np.array(q), gamma)
    ours = worst(sv.local_minimax, q, gamma, gamma=gamma)
    assert ours == pytest.approx(oracles.best_floor_lp(users, np.array(q), 1.0, "any"), abs=1e-9)
    assert ours == pytest.approx(stated(gamma), abs=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8, 0.9, 0.98, 1.0, 1.2])
@pytest.mark.parametrize("parts", [3, 4, 6])
def test_local_minimax_attains_its_bound_up_to_where_its_users_fit_the_mollifier(
    parts: int, share: float
) -> None:
    """γ + 1 equal categories and e^ε = γ^(2·share): the bound is met just below γ² = e^ε, and is 0 above."""
    gamma = parts - 1.0
    epsilon = 2 * share * math.log(gamma)
    a = math.exp(epsilon)
    users = oracles.users_within_a_factor(np.full(parts, 1 / parts), gamma)
    made = of_kind(sv.local_minimax(sv.Prior.uniform(range(parts)), epsilon, gamma=gamma), sv.ClipSampler)
    bound = max(0.0, (gamma**2 - a) / ((gamma + 1) * (gamma + a)))
    assert made.divergence(users, sv.TV).max() == pytest.approx(bound, abs=1e-12)
    if share >= 1:  # then it is the relative mollifier
        assert_allclose(
            made.distribution(np.eye(parts)),
            sv.relative_mollifier(made.prior, epsilon).distribution(np.eye(parts)),
            rtol=1e-12,
        )


@pytest.mark.parametrize(("q", "gamma"), ONE_SET)
def test_local_minimax_is_the_best_multiple_of_the_prior_but_not_minimax_with_one_such_set(
    q: list[float], gamma: float
) -> None:
    users = oracles.users_within_a_factor(np.array(q), gamma)
    ours = worst(sv.local_minimax, q, gamma, gamma=gamma)
    assert ours == pytest.approx(stated(gamma), abs=1e-12)
    assert ours == pytest.approx(oracles.best_floor_lp(users, np.array(q), 1.0, "multiples"), abs=1e-9)
    assert ours > oracles.best_floor_lp(users, np.array(q), 1.0, "keep") + 0.05


@pytest.mark.parametrize(("q", "gamma"), NO_SET)
def test_local_minimax_is_not_even_the_best_multiple_without_such_a_set(q: list[float], gamma: float) -> None:
    users = oracles.users_within_a_factor(np.array(q), gamma)
    ours = worst(sv.local_minimax, q, gamma, gamma=gamma)
    floor = np.array(q) * (gamma + 1) / (gamma + math.e)
    assert ours == pytest.approx(max(oracles.projection_tv_lp(p, floor, 1.0) for p in users), abs=1e-8)
    assert ours <= stated(gamma) - 1e-3  # the bound holds, and is not attained
    assert ours > oracles.best_floor_lp(users, np.array(q), 1.0, "multiples") + 1e-3


def test_local_minimax_in_the_example_of_its_docstring() -> None:
    q = [0.1, 0.2, 0.3, 0.4]
    users = oracles.users_within_a_factor(np.array(q), 4.0)
    assert worst(sv.local_minimax, q, 4.0, gamma=4.0) == pytest.approx(0.395, abs=5e-4)
    assert worst(sv.prior_minimax, q, 4.0) == pytest.approx(0.331, abs=5e-4)
    assert oracles.best_floor_lp(users, np.array(q), 1.0, "keep") == pytest.approx(0.283, abs=5e-4)


@given(strategies.priors(least=2, most=6, smallest=1e-3), st.floats(1.0, 9.0), st.floats(0.1, 3.0))
def test_local_minimax_keeps_its_bound_for_the_users_of_its_class(
    q: np.ndarray, gamma: float, epsilon: float
) -> None:
    a = math.exp(epsilon)
    users = oracles.users_within_a_factor(q, gamma)
    found = sv.local_minimax(numbered(q), epsilon, gamma=gamma).divergence(users, sv.TV).max()
    assert found <= max(0.0, (gamma**2 - a) / ((gamma + 1) * (gamma + a))) + 1e-12
