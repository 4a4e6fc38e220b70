"""`choose` meets what it is asked for at the smallest ε, or says the best that can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv
from sottovoce.cli.names import parse_sampler
from sottovoce.prior import FROM_USERS

PRIOR = sv.Prior(["a", "b", "c", "d", "e"], [0.45, 0.3, 0.15, 0.07, 0.03])
PUBLIC = sv.PublicUsers(
    np.random.default_rng(0).dirichlet(6 * PRIOR.probabilities + 0.05, size=150), source="invented for a test"
)
Maker = Callable[..., sv.Sampler]
GRID = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
KEEPING: tuple[Maker, ...] = (
    sv.minimax_kernel,
    sv.kernel_clip,
    sv.prior_minimax,
    sv.blend,
    sv.power_caps,
    sv.relative_mollifier,
    sv.local_minimax,
)
FREE: tuple[Maker, ...] = (sv.global_minimax, sv.randomized_response, sv.rr_with_prior)

Meets = Callable[[sv.Sampler], bool]


def mean(sampler: sv.Sampler) -> float:
    p = np.asarray(PUBLIC.p)
    return float(np.mean(0.5 * np.abs(p - sampler.distribution(p)).sum(axis=1)))


def worst(sampler: sv.Sampler) -> float:
    """At a point mass: everything that is not released as itself."""
    points = np.eye(len(PRIOR))
    return float(np.max(1 - np.diag(sampler.distribution(points))))


def shares(sampler: sv.Sampler, error: float, reports: int) -> bool:
    if not sampler.linear or np.any(sampler.floor == 0):  # a category that is never released is never known
        return False
    return sv.how_many(sampler, error) <= reports


TARGETS: dict[str, tuple[dict[str, Any], Meets, Meets]] = {
    "mean": ({"mean_at_most": 0.06}, lambda s: True, lambda s: mean(s) <= 0.06),
    "nobody": ({"nobody_above": 0.4}, lambda s: True, lambda s: worst(s) <= 0.4),
    "shares": (
        {"share_within": 0.02, "reports": 20_000},
        lambda s: s.linear,
        lambda s: shares(s, 0.02, 20_000),
    ),
    "one record": ({"mean_at_most": 0.15, "one_record": True}, lambda s: s.linear, lambda s: mean(s) <= 0.15),
    "both": (
        {"mean_at_most": 0.1, "nobody_above": 0.5},
        lambda s: True,
        lambda s: mean(s) <= 0.1 and worst(s) <= 0.5,
    ),
    "everybody": (
        {"nobody_above": 0.4, "same_for_everybody": True},
        lambda s: True,
        lambda s: worst(s) <= 0.4,
    ),
}


@pytest.mark.parametrize(
    ("name", "keep_prior"),
    [
        *((name, True) for name in TARGETS),
        *(
            pytest.param(name, False, marks=[] if name in ("mean", "shares") else [pytest.mark.full])
            for name in TARGETS
        ),
    ],
)
def test_the_target_is_met_and_no_cheaper_epsilon_meets_it(
    name: str, keep_prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.planning.choose.GRID", GRID)
    asked, allowed, meets = TARGETS[name]
    found = sv.choose(PRIOR, None, PUBLIC, limit=False, keep_prior=keep_prior, **asked)
    assert allowed(found.sampler)
    assert meets(found.sampler)
    assert found.sampler.keeps_prior or not keep_prior
    assert found.epsilon == found.sampler.epsilon
    for epsilon in GRID:
        if epsilon < found.epsilon:
            rivals = [make(PRIOR, epsilon) for make in (*KEEPING, *(() if keep_prior else FREE))]
            rivals.append(sv.fitted(PRIOR, epsilon, PUBLIC))
            assert not any(allowed(one) and meets(one) for one in rivals)
    assert (found.cheaper is not None) == (found.epsilon > GRID[0])


def test_of_those_that_meet_it_the_smallest_objective_is_taken() -> None:
    found = sv.choose(PRIOR, 2.0, PUBLIC, limit=False)
    p = np.asarray(PUBLIC.p)
    rivals = [*(make(PRIOR, 2.0) for make in KEEPING), sv.fitted(PRIOR, 2.0, PUBLIC)]
    scores = {}
    for one in rivals:
        distance = 0.5 * np.abs(p - one.distribution(p)).sum(axis=1)
        scores[one.name] = distance.mean() + 0.3 * distance.max()
    assert found.sampler.name == min(scores, key=lambda name: scores[name])
    assert found.runner_up is not None
    assert found.runner_up.sampler.split("(")[0] == sorted(scores, key=lambda name: scores[name])[1]


def test_for_everybody_the_worst_case_decides() -> None:
    found = sv.choose(PRIOR, 2.0, same_for_everybody=True, limit=False)
    assert worst(found.sampler) == pytest.approx(min(worst(make(PRIOR, 2.0)) for make in KEEPING), rel=1e-8)


def test_the_limit_is_told_beside_the_choice() -> None:
    found = sv.choose(PRIOR, 2.0, PUBLIC)
    assert found.limit is not None
    assert found.above_limit is not None
    assert found.above_limit >= found.limit.objective - found.limit.lower_bound - 1e-12
    words = found.words()
    assert f"{found.limit.lower_bound:.4f}" in words
    assert "150 public users (invented for a test)" in words


@pytest.mark.parametrize(
    ("asked", "best"),
    [
        ({"mean_at_most": 0.0001}, lambda made: min(mean(one) for one in made)),
        ({"nobody_above": 0.05}, lambda made: min(worst(one) for one in made)),
    ],
)
def test_a_target_out_of_reach_says_the_best_that_can_be_had(
    asked: dict[str, Any], best: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.planning.choose.GRID", (1.0, 2.0))
    with pytest.raises(sv.errors.TargetError) as told:
        sv.choose(PRIOR, None, PUBLIC, **asked)
    made = [*(make(PRIOR, 2.0) for make in KEEPING), sv.fitted(PRIOR, 2.0, PUBLIC)]
    assert f"the best is {best(made):.4g}" in str(told.value)


def test_too_few_reports_say_how_many_it_takes() -> None:
    with pytest.raises(sv.errors.TargetError) as told:
        sv.choose(PRIOR, 1.0, share_within=0.001, reports=10)
    assert f"{sv.how_many(sv.minimax_kernel(PRIOR, 1.0), 0.001):,} reports" in str(told.value)


def test_two_targets_that_exclude_each_other_are_told_apart() -> None:
    p = np.asarray(PUBLIC.p)
    typical = min(KEEPING, key=lambda make: mean(make(PRIOR, 2.0)))(PRIOR, 2.0)
    lowest = sv.prior_minimax(PRIOR, 2.0)
    assert worst(typical) > worst(lowest)
    assert mean(lowest) > mean(typical)
    with pytest.raises(sv.errors.TargetError, match="not all of them by one sampler"):
        sv.choose(
            PRIOR,
            2.0,
            sv.PublicUsers(p, source="invented for a test"),
            mean_at_most=mean(typical) * (1 + 1e-9),
            nobody_above=worst(lowest) * (1 + 1e-9),
        )


@pytest.mark.parametrize("read", [True, False])
def test_private_users_are_refused(read: bool) -> None:
    rows = sparse.csr_array(np.eye(5))
    private: Any = sv.Users(("1", "2", "3", "4", "5"), rows, PRIOR.categories) if read else rows
    with pytest.raises(sv.errors.ParameterError, match="must be a PublicUsers"):
        sv.choose(PRIOR, 2.0, private)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass epsilon, or a target"),
        ({"share_within": 0.1}, "belong together"),
        ({"reports": 100}, "belong together"),
        ({"mean_at_most": -1}, "mean_at_most"),
        ({"nobody_above": float("nan")}, "nobody_above"),
        ({"share_within": 0.1, "reports": 2.5}, "reports"),
        ({"mean_at_most": 0.1, "epsilon": 0.0}, "epsilon must be greater than 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.choose(PRIOR, **options)


def test_without_users_the_order_of_the_categories_does_not_matter() -> None:
    turned = sv.Prior(PRIOR.categories[::-1], PRIOR.probabilities[::-1])
    here, there = sv.choose(PRIOR, 1.5, limit=False), sv.choose(turned, 1.5, limit=False)
    assert here.as_typed == there.as_typed
    assert here.row.maximum == pytest.approx(there.row.maximum, rel=1e-12)
    assert np.array_equal(here.sampler.floor, there.sampler.floor[::-1])


@pytest.mark.parametrize("users", [None, PUBLIC])
def test_what_is_typed_makes_the_same_floor(users: sv.PublicUsers | None) -> None:
    for epsilon in (0.7, 2.0, 5.0):
        found = sv.choose(PRIOR, epsilon, users, limit=False)
        make = parse_sampler(found.as_typed)
        assert np.array_equal(make(PRIOR, epsilon).floor, found.sampler.floor)
        assert f"-e {epsilon:g} -s {found.as_typed} " in found.command()


def test_a_prior_from_users_is_named_as_such() -> None:
    prior = sv.Prior(PRIOR.categories, PRIOR.probabilities, provenance="users")
    assert FROM_USERS in sv.choose(prior, 1.0, limit=False).words()
    assert FROM_USERS not in sv.choose(PRIOR, 1.0, limit=False).words()
