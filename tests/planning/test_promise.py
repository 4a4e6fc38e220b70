"""A promise about every possible user, and the mean within it: `fitted(..., promise=)`."""

from __future__ import annotations

import math
from pathlib import Path

import cases
import numpy as np
import oracles
import pytest
from command import check_refused, run, write
from numpy.testing import assert_allclose

import sottovoce as sv
from sottovoce.planning.fitted import UNITS, invented
from sottovoce.samplers import floors

DATA = Path(__file__).parents[3] / "shared" / "data"
SMALL = {name: q for name, q in cases.PRIORS.items() if 1 < len(q) <= 20 and q.min() > 1e-9}


def numbered(q: np.ndarray) -> sv.Prior:
    return sv.Prior(range(len(q)), q)


def worst_by_hand(s: sv.ClipSampler) -> float:
    """The largest total variation of all point masses, each clipped by bisection; no user is further away."""
    n, worst = len(s.prior), 0.0
    for i in range(n):
        p = np.eye(n)[i]
        x = oracles.clip_by_bisection_mpmath(p, s.prior.probabilities, s.floor, s.epsilon)
        worst = max(worst, float(np.abs(p - x).sum()) / 2)
    return worst


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_best_promise_is_that_of_prior_minimax(case: str, epsilon: float) -> None:
    prior = numbered(SMALL[case])
    ours, reference = sv.fitted(prior, epsilon, promise="best"), sv.prior_minimax(prior, epsilon)
    assert ours.worst_case(sv.TV) == pytest.approx(reference.worst_case(sv.TV), abs=1e-12)
    assert worst_by_hand(ours) == pytest.approx(worst_by_hand(reference), abs=1e-9)
    assert ours.keeps_prior
    assert ours.options["promise"] == pytest.approx(1 - reference.worst_case(sv.TV), abs=1e-12)
    assert_allclose(ours.distribution(prior.probabilities), prior.probabilities, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.9, 1.0])
def test_a_smaller_promise_is_kept_and_costs_less(share: float) -> None:
    prior = numbered(cases.PRIORS["one dominant"] if "one dominant" in cases.PRIORS else SMALL["unsorted"])
    largest = 1 - sv.prior_minimax(prior, 2.0).worst_case(sv.TV)
    ours = sv.fitted(prior, 2.0, promise=share * largest)
    assert ours.worst_case(sv.TV) <= 1 - share * largest + 1e-12
    if share == 0:
        assert_allclose(ours.floor, sv.fitted(prior, 2.0).floor, rtol=0, atol=1e-15)


def test_the_mean_is_lower_than_that_of_prior_minimax_on_users_not_looked_at() -> None:
    q = np.sort(np.random.default_rng(5).dirichlet(np.full(40, 0.6)))[::-1]
    prior = numbered(q)
    others = invented(q, crowd=3) / 2.0**UNITS
    for epsilon in (2.0, 4.0):
        free, promised, reference = (
            float(np.mean(s.divergence(others, sv.TV)))
            for s in (
                sv.fitted(prior, epsilon),
                sv.fitted(prior, epsilon, promise="best"),
                sv.prior_minimax(prior, epsilon),
            )
        )
        assert promised < reference
        assert free <= promised * 1.05


def test_the_floor_follows_the_categories_in_any_order() -> None:
    q = np.array([0.05, 0.5, 0.1, 0.35])
    order = np.array([2, 0, 3, 1])
    ours, other = (sv.fitted(numbered(law), 2.0, promise="best").floor for law in (q, q[order]))
    assert_allclose(other, ours[order], rtol=0, atol=1e-15)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_certified_integers_keep_the_promise(epsilon: float) -> None:
    prior = sv.Prior(["a", "b", "c", "d"], [0.02, 0.08, 0.3, 0.6])
    sampler = sv.fitted(prior, epsilon, promise="best")
    mechanism = sv.certify(sampler)
    for i, name in enumerate(mechanism.categories):
        kept = mechanism.law(records=[name])[i]
        assert float(kept) >= sampler.options["promise"] - 1e-15


@pytest.mark.parametrize(
    ("promise", "message"),
    [(0.99, "no sampler that keeps the prior promises more"), (-0.1, "at least 0"), ("most", "promise")],
)
def test_a_promise_nobody_can_keep_is_refused(promise: float | str, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.fitted(sv.Prior(["a", "b", "c"], [0.1, 0.2, 0.7]), 1.0, promise=promise)


def test_a_floor_that_is_not_moved_far_enough_would_be_noticed() -> None:
    """The two conditions are those of the worst case, and each of them can decide."""
    q, epsilon = np.array([0.22, 0.24, 0.26, 0.28]), 1.0
    reference = floors.prior_minimax(q, epsilon)
    kept = floors.kept_mass(reference, epsilon)
    for floor in (reference * 0.9, np.minimum(reference * 1.3, q)):
        sampler = sv.ClipSampler("x", numbered(q), epsilon, floor, {})
        assert floors.kept_mass(floor, epsilon) == pytest.approx(1 - worst_by_hand(sampler), abs=1e-9)
        assert floors.kept_mass(floor, epsilon) < kept
        repaired = floors.promised(floor, reference, epsilon, kept)
        assert floors.kept_mass(repaired, epsilon) == pytest.approx(kept, abs=1e-12)


def test_the_command_line_takes_a_promise(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "item,count\na,60\nb,30\nc,10\n")
    done = run("design", prior, "-e", 2, "-s", "fitted:promise=best", "--json", "-o", tmp_path / "m.json")
    assert done.returncode == 0, done.stderr
    check_refused(run("design", prior, "-e", 2, "-s", "fitted:promise=good"), "name=number")
    users = write(tmp_path, "u.csv", "user,item\nx,a\ny,c\n")
    shown = run("compare", prior, users, "-e", 2, "-s", "fitted", "-s", "fitted:promise=best").stdout
    assert "fitted(promise=" in shown


@pytest.mark.skipif(not (DATA / "ml-1m").is_dir(), reason="MovieLens is not on this machine")
def test_the_best_promise_on_movielens() -> None:
    """48 cells, users of the 1M set, priors from the 100K set: averages of mean, p99 and maximum."""
    from experiments import movielens

    rows = []
    for prior, users in movielens.data(DATA, "all-genres").values():
        for epsilon in movielens.EPSILONS:
            s = sv.fitted(prior, epsilon, promise="best")
            assert s.worst_case(sv.TV) == pytest.approx(
                sv.prior_minimax(prior, epsilon).worst_case(sv.TV), abs=1e-9
            )
            moved = np.asarray(s.divergence(users, sv.TV))
            rows.append((moved.mean(), np.quantile(moved, 0.99), moved.max()))
    mean, p99, maximum = np.mean(rows, axis=0)
    assert len(rows) == 48
    assert mean <= 0.0294
    assert p99 <= 0.129
    assert maximum <= 0.218
    assert math.isfinite(mean)


@pytest.mark.parametrize("public", [False, True])
def test_choose_keeps_a_promise_with_a_lower_mean(tmp_path: Path, public: bool) -> None:
    q = np.sort(np.random.default_rng(5).dirichlet(np.full(30, 1.0)))
    prior = sv.Prior([f"c{i}" for i in range(30)], q)
    rng = np.random.default_rng(1)
    around = rng.dirichlet(10 * q + 1e-9, size=300)
    users = sv.PublicUsers(rng.multinomial(40, around) / 40, source="invented")
    choice = sv.choose(prior, None, users if public else None, nobody_above=0.5)
    assert choice.sampler.worst_case(sv.TV) <= 0.5 + 1e-12
    assert "promise" in choice.sampler.options
    reference = sv.prior_minimax(prior, choice.epsilon)
    rows = {row.sampler: row for row in choice.table}
    assert choice.row.mean < rows[reference.name].mean
    table = write(
        tmp_path, "p.csv", "item,count\n" + "".join(f"c{i},{x!r}\n" for i, x in enumerate(q.tolist()))
    )
    command = ["design", table, "-e", choice.epsilon, "-s", choice.as_typed, "-o", tmp_path / "m.json"]
    done = run(*command)
    assert done.returncode == 0, done.stderr
    made = sv.load(tmp_path / "m.json", policy=sv.Policy(max_epsilon="any"))
    for i, name in enumerate(made.categories):
        assert float(made.law(records=[name])[i]) >= 0.5 - 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_the_limit_with_a_promise_is_the_linear_program_with_all_point_masses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 8))
    q = rng.dirichlet(np.full(n, 2.0)) + 1e-3
    prior = numbered(q / q.sum())
    p = rng.dirichlet(np.full(n, 0.7), size=m) * (rng.random((m, n)) < 0.7)
    p[p.sum(axis=1) == 0, 0] = 1
    users = p / p.sum(axis=1, keepdims=True)
    epsilon, tail = float(rng.uniform(0.1, 5)), float(rng.choice([0.0, 0.3]))
    largest = 1 - sv.prior_minimax(prior, epsilon).worst_case(sv.TV)
    for share in (0.5, 0.95, 1.0):
        exact = oracles.limit_lp(users, prior.probabilities, epsilon, tail, True, share * largest)
        promise = "best" if share == 1 else share * largest
        found = sv.limit(prior, epsilon, users, tail=tail, promise=promise, relative_gap=1e-4)
        assert found.lower_bound <= exact + 1e-8
        assert found.objective >= exact - 1e-8
        assert found.gap <= max(1e-4 * found.objective, 1e-6)


def test_a_limit_with_a_promise_is_refused_where_it_cannot_be_had() -> None:
    prior = numbered(np.full(151, 1 / 151))
    with pytest.raises(sv.errors.ParameterError, match="at most 150 categories"):
        sv.limit(prior, 1.0, np.full((1, 151), 1 / 151), promise="best")
    with pytest.raises(sv.errors.ParameterError, match="keep the prior"):
        sv.limit(numbered(np.array([0.4, 0.6])), 1.0, [[0.5, 0.5]], keep_prior=False, promise="best")


def test_same_for_everybody_takes_the_best_promise_with_the_lower_mean() -> None:
    q = np.sort(np.random.default_rng(5).dirichlet(np.full(30, 1.0)))
    choice = sv.choose(numbered(q), 2.0, same_for_everybody=True, limit=False)
    reference = sv.prior_minimax(choice.sampler.prior, 2.0)
    assert choice.sampler.name == "fitted"
    assert choice.sampler.worst_case(sv.TV) == pytest.approx(reference.worst_case(sv.TV), abs=1e-12)
    assert choice.row.mean < {row.sampler: row for row in choice.table}["prior_minimax"].mean
