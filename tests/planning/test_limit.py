"""The limit is the linear program's, its lower bound holds, and no sampler is below it."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path

import cases
import numpy as np
import oracles
import pytest
from scipy import sparse

import sottovoce as sv
from experiments import movielens
from sottovoce.planning import limit as limits
from sottovoce.planning import limit_solvers
from sottovoce.planning.limit import FloorProblem, Limit

PLACE = os.environ.get("SOTTOVOCE_DATA", "")
needs_movielens = pytest.mark.skipif(
    not (PLACE and (Path(PLACE) / "ml-1m").is_dir()),
    reason="set SOTTOVOCE_DATA to the folder that holds ml-100k and ml-1m",
)
SMOOTH = tuple(f for f in cases.DIVERGENCES if math.isfinite(f.at_zero))


def situation(rng: np.random.Generator, most: int = 6) -> tuple[sv.Prior, np.ndarray, float, float]:
    """A prior, some users (some sparse, some alike), ε and a tail."""
    n, m = int(rng.integers(2, most + 1)), int(rng.integers(1, 8))
    q = rng.dirichlet(np.full(n, rng.choice([0.5, 2.0]))) + 1e-3
    p = rng.dirichlet(np.full(n, 0.7), size=m) * (rng.random((m, n)) < 0.7)
    p[p.sum(axis=1) == 0, 0] = 1
    p = np.concatenate([p, p[:1]])
    prior = sv.Prior([f"c{i}" for i in range(n)], q / q.sum())
    users = p / p.sum(axis=1, keepdims=True)
    return prior, users, float(rng.uniform(0.1, 6)), float(rng.choice([0.0, 0.3, 2.0]))


def check(found: Limit, exact: float, gap: float) -> None:
    """The program's value lies between the two bounds, and they are as close as asked for."""
    # The oracle's own tolerance is 1e-10 a constraint.
    assert found.lower_bound <= exact + 1e-8
    assert found.objective >= exact - 1e-8
    assert found.gap <= max(gap * found.objective, 1e-6)
    assert found.objective == pytest.approx(found.mean + found.tail * found.maximum, abs=1e-15)


@pytest.mark.parametrize("keep_prior", [True, False])
@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(10, 25))]
)
def test_it_is_the_linear_program_over_the_floor(seed: int, keep_prior: bool) -> None:
    prior, users, epsilon, tail = situation(np.random.default_rng(seed))
    exact = oracles.limit_lp(users, prior.probabilities, epsilon, tail, keep_prior)
    found = sv.limit(prior, epsilon, users, tail=tail, keep_prior=keep_prior, relative_gap=1e-4)
    check(found, exact, 1e-4)


@pytest.mark.parametrize("keep_prior", [True, False])
@pytest.mark.parametrize(
    "seed", [*range(25, 30), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(30, 40))]
)
def test_the_smooth_descent_finds_the_same(
    seed: int, keep_prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FEW", 0)
    prior, users, epsilon, tail = situation(np.random.default_rng(seed))
    exact = oracles.limit_lp(users, prior.probabilities, epsilon, tail, keep_prior)
    found = sv.limit(prior, epsilon, users, tail=tail, keep_prior=keep_prior)
    assert found.lower_bound <= exact + 1e-8
    assert found.objective >= exact - 1e-8
    # No promise here: a handful of users is the hardest case for a smooth method.
    assert found.gap <= 0.05 * found.objective + 0.002


def test_any_multipliers_of_the_smooth_descent_give_a_lower_bound() -> None:
    rng = np.random.default_rng(3)
    for seed in range(30):
        prior, users, epsilon, tail = situation(np.random.default_rng(seed))
        problem, _, _ = limits._problem(prior, epsilon, users, sv.TV, tail, True, None)
        exact = oracles.limit_lp(users, prior.probabilities, epsilon, tail, True)
        below = limit_solvers._SeparableBound(problem)
        for _ in range(5):
            weights = problem.share + tail * rng.dirichlet(np.ones(len(problem.share)))
            side = rng.random(len(weights))
            assert below(weights * side, weights * (1 - side)) <= exact + 1e-8


@pytest.mark.parametrize("keep_prior", [True, False])
def test_any_multipliers_of_any_cuts_give_a_lower_bound(keep_prior: bool) -> None:
    rng = np.random.default_rng(4)
    for seed in range(30):
        prior, users, epsilon, tail = situation(np.random.default_rng(seed))
        problem, _, _ = limits._problem(prior, epsilon, users, sv.TV, tail, keep_prior, None)
        exact = oracles.limit_lp(users, prior.probabilities, epsilon, tail, keep_prior)
        n = len(problem.low)
        cuts = limit_solvers._Cuts(
            np.empty((0, n)), np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=np.intp)
        )
        for _ in range(4):
            c = problem.settle(problem.low + rng.random(n) * (problem.high - problem.low))
            limit_solvers._cut(problem, c, np.ones(n), cuts)
        for size in (0.1, 1.0, 5.0):  # also sums that no program would give
            multipliers = rng.dirichlet(np.ones(len(cuts.offsets))) * size
            sums = np.empty(0) if keep_prior else rng.random(2) * size
            assert limit_solvers._bound_of_cuts(problem, np.ones(n), cuts, multipliers, sums) <= exact + 1e-8


def tangent_gap(problem: FloorProblem, c: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The least of h(other) − tangent at c, and the size of what was subtracted."""
    values, inside, outside = problem.tangents(c)
    gaps, sizes = [], []
    for u, value in enumerate(problem.values(other)):
        gradient = problem.gradient(np.eye(len(values))[u], inside, outside)
        gaps.append(value - values[u] - gradient @ (other - c))
        sizes.append(np.abs(gradient) @ (other + c))
    return float(np.min(gaps)), float(np.max(sizes))


@pytest.mark.parametrize("f", SMOOTH, ids=lambda f: f.name)
def test_every_subgradient_stays_below_the_value(f: sv.FDivergence) -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        prior, users, epsilon, _ = situation(rng)
        problem, _, _ = limits._problem(prior, min(epsilon, 4.0), users, f, 0.0, True, None)
        c, other = (
            problem.low + rng.random(len(problem.low)) * (problem.high - problem.low) for _ in range(2)
        )
        least, size = tangent_gap(problem, c, other)
        assert least >= -1e-12 * (1 + size)


def test_total_variation_in_one_pass_and_by_the_clip_agree() -> None:
    half = sv.FDivergence("half", sv.TV.f, 0.5, 0.5, sv.TV.slope)  # another name: the general way
    rng = np.random.default_rng(5)
    for _ in range(20):
        prior, users, epsilon, _ = situation(rng)
        floor = sv.blend(prior, epsilon).floor
        for keep_prior in (True, False):
            quick, owned, _ = limits._problem(prior, epsilon, users, sv.TV, 0.3, keep_prior, None)
            slow, _, _ = limits._problem(prior, epsilon, users, half, 0.3, keep_prior, None)
            c = quick.settle(floor[owned])
            np.testing.assert_allclose(quick.values(c), slow.values(c), rtol=0, atol=1e-12)


@pytest.mark.parametrize("f", [sv.KL, sv.CHI2, sv.HELLINGER2, sv.JS], ids=lambda f: f.name)
def test_other_divergences_against_a_search_over_floors(f: sv.FDivergence) -> None:
    prior = sv.Prior(["a", "b"], [0.25, 0.75])
    users = np.array([[0.9, 0.1], [0.0, 1.0], [0.3, 0.7], [1.0, 0.0]])
    searched = oracles.limit_by_search(users, prior.probabilities, 1.2, f.name, 0.3)
    found = sv.limit(prior, 1.2, users, divergence=f, relative_gap=1e-5)
    assert found.lower_bound <= searched + 1e-9
    # The grid's last step is 0.01·0.12³ of the box, 2e-5 of it; slopes are below 10 here.
    assert found.objective == pytest.approx(searched, abs=2e-4)
    assert found.gap <= 1e-5 * found.objective + 1e-6


def above(prior: sv.Prior, epsilon: float, users: np.ndarray, f: sv.FDivergence, tail: float) -> None:
    found = {
        keep: sv.limit(prior, epsilon, users, divergence=f, tail=tail, keep_prior=keep)
        for keep in (True, False)
    }
    assert found[False].lower_bound <= found[True].objective
    options = [make(prior, epsilon) for make in sv.SAMPLERS.values()]
    options += [sv.blend(prior, epsilon, weight=0.8), sv.power_caps(prior, epsilon, exponent=0.25)]
    for sampler in options:
        values = sampler.divergence(users, f)
        reached = values.mean() + (tail * values.max() if tail else 0.0)
        for keep, one in found.items():
            assert one.lower_bound <= one.objective
            if sampler.keeps_prior or not keep:
                assert one.lower_bound <= reached * (1 + 1e-12) + 1e-12
                assert one.objective <= reached + max(1e-3 * one.objective, 1e-6) + 1e-9


@pytest.mark.parametrize(
    "seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(16, 40))]
)
def test_no_sampler_is_below_the_limit(seed: int) -> None:
    prior, users, epsilon, tail = situation(np.random.default_rng(1000 + seed))
    above(prior, epsilon, users, sv.TV if seed % 4 else sv.KL, tail)


@pytest.mark.full
def test_no_sampler_is_below_the_limit_in_ten_thousand_cases() -> None:
    rng = np.random.default_rng(77)
    for _ in range(10_000):
        prior, users, epsilon, tail = situation(rng)
        above(prior, epsilon, users, sv.TV, tail)


@pytest.mark.parametrize(
    ("case", "epsilon"),
    [
        pytest.param(case, epsilon, marks=[pytest.mark.full] if len(q) > 20 and 1 < epsilon < 10 else [])
        for case, q in cases.PRIORS.items()
        for epsilon in cases.EPSILONS
    ],
)
def test_awkward_priors_and_epsilons(case: str, epsilon: float) -> None:
    q = cases.PRIORS[case]
    prior, users = cases.prior(q), np.array(list(cases.users(q).values()))
    found = sv.limit(prior, epsilon, users)
    reached = [
        values.mean() + 0.3 * values.max()
        for values in (
            sv.SAMPLERS[name](prior, epsilon).divergence(users, sv.TV) for name in ("blend", "prior_minimax")
        )
    ]
    assert 0 <= found.lower_bound <= found.objective <= min(reached) + 1e-12


def test_hundreds_of_categories_have_a_small_proven_gap() -> None:
    rng = np.random.default_rng(2)
    n, m = 600, 200
    q = 1 / np.arange(1, n + 1) ** 0.8
    prior = sv.Prior(range(n), q / q.sum())
    counts = sparse.csr_array(rng.multinomial(60, prior.probabilities, size=m).astype(np.float64))
    seen: list[float] = []
    found = sv.limit(prior, 4.0, counts / 60, progress=seen.append)
    assert found.gap <= 0.01 * found.objective
    assert seen == sorted(seen)
    assert 0 <= seen[0] <= seen[-1] <= 1
    for name in ("blend", "kernel_clip", "prior_minimax", "relative_mollifier"):
        values = sv.SAMPLERS[name](prior, 4.0).divergence(counts / 60, sv.TV)
        assert found.objective < values.mean() + 0.3 * values.max()


def test_users_alike_count_as_often_as_they_are() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    some = np.array([[1.0, 0, 0], [0, 0.4, 0.6]])
    twice = sv.limit(prior, 1.0, some[[0, 0, 1]])
    exact = oracles.limit_lp(some[[0, 0, 1]], prior.probabilities, 1.0, 0.3, True)
    check(twice, exact, 1e-3)
    assert twice.users == 3
    assert exact > oracles.limit_lp(some, prior.probabilities, 1.0, 0.3, True) + 0.01


def test_only_numbers_come_back() -> None:
    prior = sv.Prior.uniform(["a", "b", "c"])
    found = sv.limit(prior, 1.0, np.eye(3))
    for field in dataclasses.fields(found):
        assert type(getattr(found, field.name)) in (int, float, bool, str), field.name
    assert not hasattr(found, "__dict__") or set(vars(found)) == {
        field.name for field in dataclasses.fields(found)
    }
    assert "floor" not in repr(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.mean = 0.0  # type: ignore[misc]


def test_users_of_the_prior_alone_cost_nothing() -> None:
    prior = sv.Prior(["a", "b"], [0.3, 0.7])
    found = sv.limit(prior, 0.5, prior.probabilities)
    assert found.objective <= 1e-6
    assert found.lower_bound == 0


def test_what_cannot_be_answered_is_refused() -> None:
    prior = sv.Prior(["a", "b"], [0.3, 0.7])
    with pytest.raises(
        sv.errors.ParameterError, match="infinite for every sampler as soon as a user lacks a category"
    ):
        sv.limit(prior, 1.0, np.eye(2), divergence=sv.REVERSE_KL)
    whole = sv.limit(prior, 1.0, [[0.4, 0.6], [0.05, 0.95]], divergence=sv.REVERSE_KL)
    assert 0 < whole.lower_bound <= whole.objective < math.inf
    own = sv.FDivergence("le-cam", lambda t: (1 - t) ** 2 / (2 * t + 2), 0.5, 0.5)
    with pytest.raises(sv.errors.ParameterError, match="'le-cam' does not know its slope"):
        sv.limit(prior, 1.0, np.eye(2), divergence=own)
    with pytest.raises(sv.errors.ParameterError, match="tail must be at least 0"):
        sv.limit(prior, 1.0, np.eye(2), tail=-1)
    with pytest.raises(sv.errors.UserDataError, match="the prior has 2 categories, p has 3"):
        sv.limit(prior, 1.0, np.eye(3))
    with pytest.raises(sv.errors.ParameterError, match="prior must be a Prior"):
        sv.limit([0.3, 0.7], 1.0, np.eye(2))  # type: ignore[arg-type]
    other = sv.Users(("u",), sparse.csr_array([[1.0, 0.0]]), ("b", "a"))
    with pytest.raises(sv.errors.UserDataError, match="read against other categories"):
        sv.limit(prior, 1.0, other)


@needs_movielens
def test_movielens_has_the_known_limit() -> None:
    cells = []
    for prior, users in movielens.data(Path(PLACE), "all-genres").values():
        for epsilon in movielens.EPSILONS:
            found = sv.limit(prior, epsilon, users)
            assert found.gap < 0.001
            cells.append((found.maximum, found.mean))
    maximum, mean = np.mean(cells, axis=0)
    assert len(cells) == 48
    assert abs(maximum - 0.165) <= 0.002
    assert abs(mean - 0.0256) <= 0.002
