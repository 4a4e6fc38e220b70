"""What an audit may conclude from draws: its error probability, and the sets it finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from black_box import Draw, black_box
from scipy import sparse
from scipy.stats import binom

import sottovoce as sv
from sottovoce.release.audit import choose_event, log_ratio_limit


def drawing(law: np.ndarray, seed: int) -> Draw:
    """A function that draws from row i of `law` for a user whose first category is i."""
    rng = np.random.default_rng(seed)
    sums = np.cumsum(law, axis=1)[:, :-1]

    def draw(rows: sparse.csr_array) -> np.ndarray:
        held = rows.indices[rows.indptr[:-1]]
        out: np.ndarray = (rng.random(len(held))[:, None] >= sums[held]).sum(axis=1)
        return out

    return draw


def response(n: int, epsilon: float) -> np.ndarray:
    """Randomized response: its worst ratio is e^ε exactly."""
    law = np.ones((n, n)) + (math.exp(epsilon) - 1) * np.eye(n)
    law /= law.sum(axis=1, keepdims=True)
    return law


# --- the error probability ----------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("error", [0.3, 0.02])
def test_each_limit_is_wrong_no_more_often_than_it_says(trials: int, error: float) -> None:
    """All outcomes of two binomials, enumerated: no simulation."""
    k = np.arange(trials + 1)
    limits = np.array([[log_ratio_limit(a, b, trials, error) for b in k.tolist()] for a in k.tolist()])
    for own in (0.02, 0.3, 0.73, 0.999):
        for other in (0.01, 0.27, 0.9):
            chance = np.outer(binom.pmf(k, trials, own), binom.pmf(k, trials, other))
            truth = math.log(own / other)
            assert chance[limits > truth].sum() <= error


def test_each_limit_is_the_one_of_clopper_and_pearson_with_half_of_the_error() -> None:
    n, k, error = 50, 17, 0.03
    low = log_ratio_limit(k, n, n, error)  # the second user always: its upper limit is one
    assert binom.sf(k - 1, n, math.exp(low)) == pytest.approx(error / 2, rel=1e-9)
    low = log_ratio_limit(n, k, n, error)
    most = (error / 2) ** (1 / n) / math.exp(low)  # the first user always: (error/2)^(1/n) at least
    assert binom.cdf(k, n, most) == pytest.approx(error / 2, rel=1e-9)


@pytest.mark.parametrize(("n", "draws"), [(2, 6_000), pytest.param(10, 3_600, marks=pytest.mark.full)])
def test_a_sound_function_is_accused_no_more_often_than_the_confidence_allows(n: int, draws: int) -> None:
    """Bounding the draws that chose the event would accuse more than half of those with two categories."""
    repetitions, allowed = 300, 0.1
    accused, law = 0, response(n, 0.5)
    for seed in range(repetitions):
        report = black_box(
            drawing(law, seed), range(n), [*range(n)], epsilon=0.5, draws=draws, confidence=0.9
        )
        accused += not report.passed
    # Four standard deviations of the number of accusations if each came with the whole allowed probability.
    most = repetitions * allowed + 4 * math.sqrt(repetitions * allowed * (1 - allowed))
    assert accused <= most


# --- sets of categories ---------------------------------------------------------------------------------


def test_a_violation_spread_over_a_thousand_categories_is_found() -> None:
    """ε = 0.7 instead of 0.5, in every category: in none of them alone do the draws show it."""
    n, epsilon, truth, draws = 1000, 0.5, 0.7, 1_000_000
    law = np.ones((2, n))
    law[0, ::2] = law[1, 1::2] = math.exp(truth)
    law /= law.sum(axis=1, keepdims=True)
    places = list(range(14))
    rng = np.random.default_rng(3)

    def faulty(rows: sparse.csr_array) -> np.ndarray:
        parity = rows.indices[rows.indptr[:-1]] % 2
        half = rng.random(len(parity)) < law[0, ::2].sum()  # the user's own half of the categories
        drawn: np.ndarray = 2 * rng.integers(0, n // 2, len(parity)) + np.where(half, parity, 1 - parity)
        return drawn

    # One category, with half of the draws for each of two users, would not do.
    alone = log_ratio_limit(round(draws / 2 * law[0, 0]), round(draws / 2 * law[1, 0]), draws // 2, 0.001)
    assert alone < epsilon
    report = black_box(faulty, range(n), places, epsilon=epsilon, draws=draws)
    assert not report.passed
    assert epsilon < report.lower_bound < truth
    parities = [place % 2 for place in report.worst.event if isinstance(place, int)]
    share = np.mean(parities)
    assert len(parities) > 100
    assert min(share, 1 - share) < 0.2  # mostly one half of the categories


def test_the_chosen_set_is_the_likelihood_ratio_set_when_the_draws_are_many() -> None:
    own, other = np.array([0.4, 0.3, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.2, 0.2, 0.4])
    seen = [np.repeat(np.arange(5), np.rint(law * 40_000).astype(np.int64)) for law in (own, other)]
    first, _, event = choose_event(seen)
    # Ratios 4, 3, ½, ½, ¼ from the first user, 4, 2, 2, ⅓, ¼ from the second: 0.4 against 0.1 both ways.
    assert (first, event.tolist()) in ((0, [0]), (1, [4]))


def test_a_bound_comes_near_the_truth() -> None:
    report = black_box(
        drawing(response(2, 2.0), 4), range(2), [0, 1], epsilon=2.0, draws=1_000_000, confidence=0.9
    )
    assert report.passed
    assert 1.95 <= report.lower_bound <= 2.0


# --- both paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["release_many", "release"])
def test_a_fault_in_one_path_alone_is_found_and_the_path_is_named(path: str) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior.uniform(["a", "b", "c"]), 1.0))
    names = np.array(["a", "b", "c"], dtype=object)

    def rows_in_clear(rows: sparse.csr_array) -> np.ndarray:
        return names[rows.indices[rows.indptr[:-1]]]

    def record_in_clear(records: list[str]) -> str:
        return records[0]

    fault = rows_in_clear if path == "release_many" else record_in_clear
    object.__setattr__(mechanism, path, fault)  # a frozen value: the fault hides the method
    report = sv.audit(mechanism, draws=50_000)
    assert not report.passed
    assert report.worst.path == path
    assert [one.path for one in report.findings if one.lower_bound > 1.0] == [path]
    assert report.certificate == "holds"  # the integers are sound: only the draws show it
