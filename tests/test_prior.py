"""Priors: public, frozen, strictly positive, in the caller's order."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.prior import CHUNK, exact_sum


def test_order_is_the_callers() -> None:
    prior = sv.Prior(["Drama", "War", "Comedy"], [0.6, 0.1, 0.3])
    assert prior.categories == ("Drama", "War", "Comedy")
    assert prior.probabilities.tolist() == [0.6, 0.1, 0.3]
    assert prior.smallest == 0.1
    assert len(prior) == 3
    assert prior.index["Comedy"] == 2


def test_counts_are_normalised_and_smoothed() -> None:
    assert sv.Prior.from_counts({"a": 1, "b": 3}).probabilities.tolist() == [0.25, 0.75]
    assert sv.Prior.from_counts({"a": 0, "b": 3}, smoothing=0.5).probabilities.tolist() == [0.125, 0.875]
    assert sv.Prior.from_counts([1, 3], ["a", "b"]) == sv.Prior.from_counts({"a": 1, "b": 3})
    assert sv.Prior.from_counts(np.array([1, 3])).categories == range(2)


def test_a_prior_is_frozen() -> None:
    prior = sv.Prior.uniform(["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        prior.probabilities[0] = 1
    with pytest.raises(FrozenInstanceError):
        prior.smallest = 0.1  # type: ignore[misc]
    with pytest.raises(TypeError):
        prior.index["a"] = 1  # type: ignore[index]


def test_the_callers_array_is_not_shared() -> None:
    q = np.array([0.5, 0.5])
    prior = sv.Prior(["a", "b"], q)
    q[0] = 0.9
    assert prior.probabilities.tolist() == [0.5, 0.5]


def test_digest_names_the_public_data() -> None:
    prior = sv.Prior.from_counts({"a": 2, "b": 3, "c": 6})
    same = sv.Prior.from_counts({"c": 6, "a": 2, "b": 3})
    assert prior.digest == same.digest
    assert prior != same  # the order differs
    assert prior.index["b"] == 1
    assert prior == pickle.loads(pickle.dumps(prior))  # noqa: S301
    shuffled = np.random.default_rng(0).permutation(50)
    weights = np.random.default_rng(1).random(50)
    one = sv.Prior.from_counts(weights, [f"c{i}" for i in range(50)])
    two = sv.Prior.from_counts(weights[shuffled], [f"c{i}" for i in shuffled])
    assert one.digest == two.digest  # to the last bit, whatever the order of summation
    others = [
        sv.Prior.from_counts({"a": 2, "b": 3, "d": 6}),
        sv.Prior.from_counts({"a": 3, "b": 2, "c": 6}),
        sv.Prior.from_counts({"a": 2, "bc": 3, "": 6}),
        sv.Prior.from_counts({1: 2, 2: 3, 3: 6}),
        sv.Prior.from_counts({"1": 2, "2": 3, "3": 6}),
    ]
    assert len({prior.digest, *(other.digest for other in others)}) == 6


@pytest.mark.parametrize("n", [100_000, pytest.param(10_000_000, marks=pytest.mark.full)])
def test_anonymous_categories_cost_no_names(n: int) -> None:
    prior = sv.Prior.uniform(range(n))
    assert isinstance(prior.categories, range)
    assert prior.smallest == pytest.approx(1 / n)


def test_frequencies_of_records() -> None:
    prior = sv.Prior.uniform(["a", "b", "c"])
    assert prior.frequencies(["c", "a", "c", "c"]).tolist() == [0.25, 0.0, 0.75]
    assert prior.frequencies(iter(["b"])).tolist() == [0.0, 1.0, 0.0]


def test_repr_is_short() -> None:
    assert repr(sv.Prior.uniform(range(1000))) == "Prior(1000 categories, smallest 0.001)"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sv.Prior(["a", "b"], [0.0, 1.0]), r"'a' has 0; drop it or merge it"),
        (lambda: sv.Prior(["a", "b"], [-0.5, 1.5]), r"'a' has -0.5"),
        (lambda: sv.Prior(["a", "b"], [float("nan"), 1.0]), r"'a' has nan"),
        (lambda: sv.Prior(["a", "b"], [float("inf"), 1.0]), r"'a' has inf"),
        (lambda: sv.Prior(["a", "a"], [0.5, 0.5]), "'a' appears more than once"),
        (lambda: sv.Prior(["a", "b"], [0.5]), "2 categories, 1 probabilities"),
        (lambda: sv.Prior(["a", "b"], [0.5, 0.6]), "they sum to 1.1; use Prior.from_counts"),
        (lambda: sv.Prior([], []), "categories must not be empty"),
        (lambda: sv.Prior(range(0), []), "categories must not be empty"),
        (lambda: sv.Prior.uniform([]), "categories must not be empty"),
        (lambda: sv.Prior("ab", [0.5, 0.5]), "sequence of names, got 'ab'"),
        (lambda: sv.Prior(["a", 1], [0.5, 0.5]), "all strings or all integers, got int, str"),
        (lambda: sv.Prior([1.5, 2.5], [0.5, 0.5]), "all strings or all integers, got float"),  # type: ignore[list-item]
        (lambda: sv.Prior(["a", "b"], [[0.5, 0.5]]), "2 dimensions"),
        (lambda: sv.Prior(["a", "b"], ["x", "y"]), "probabilities must be numbers"),
        (lambda: sv.Prior(["a", "b"], ["0.5", "0.5"]), "probabilities must be numbers"),
        (lambda: sv.Prior(["a"], 1.0), "probabilities must be numbers"),
        (lambda: sv.Prior(["a"], [1 + 0j]), "probabilities must be numbers"),
        (lambda: sv.Prior(5, [1.0]), "sequence of names, got 5"),  # type: ignore[arg-type]
        (lambda: sv.Prior(["a", "\ud800"], [0.5, 0.5]), "half a surrogate pair"),
        (lambda: sv.Prior([1, 1 << 53], [0.5, 0.5]), "below 2\\^53"),
        (lambda: sv.Prior.from_counts(5), "counts must be numbers"),  # type: ignore[arg-type]
        (lambda: sv.Prior.from_counts([10**400, 1]), "counts must be numbers"),
        (lambda: sv.Prior(["a", "b"], np.ma.array([0.5, 0.5], mask=[True, False])), "masked"),
        (lambda: sv.Prior.uniform(["a", "b"]).frequencies("ab"), "must be a list of categories"),
        (lambda: sv.Prior.uniform(["a", "b"]).frequencies([["a"]]), "1 of 1 are not"),  # type: ignore[list-item]
        (lambda: sv.Prior(["a", "b"], [1e-120, 1.0]), "at least 1e-100: category 'a'"),
        (lambda: sv.Prior.from_counts({"a": 0, "b": 1, "c": 0}), r"'a' has 0 \(and 1 more\).*smoothing"),
        (lambda: sv.Prior.from_counts({"a": -1, "b": 1}, smoothing=5), "'a' has -1"),
        (lambda: sv.Prior.from_counts({"a": 1}, smoothing=-1), "smoothing must be at least 0, got -1"),
        (lambda: sv.Prior.from_counts({}), "categories must not be empty"),
        (lambda: sv.Prior.from_counts({"a": 1}, ["a"]), "categories must be left out"),
    ],
)
def test_what_cannot_be_a_prior_is_refused_by_name(build: object, message: str) -> None:
    with pytest.raises(sv.errors.SottovoceError, match=message):
        build()  # type: ignore[operator]


def test_a_notebook_shows_the_likeliest_categories_as_text() -> None:
    prior = sv.Prior(["<b>rare</b>", "usual"], [0.2, 0.8])
    page = prior._repr_html_()
    assert "&lt;b&gt;rare&lt;/b&gt;" in page
    assert page.index("usual") < page.index("rare")  # the likeliest first
    assert "and 80 more" in sv.Prior.uniform(list(range(100)))._repr_html_()


@pytest.mark.parametrize("spread", [0, 10, 300])
def test_a_sum_is_the_exact_one_rounded_once(spread: int) -> None:
    rng = np.random.default_rng(spread)
    for size in (1, 2, 100, CHUNK, CHUNK + 1, 3 * CHUNK - 1):
        values = rng.random(size) * 10.0 ** rng.integers(-spread, spread + 1, size)
        assert exact_sum(values) == math.fsum(values.tolist())
    assert exact_sum(np.array([5e-324, 1.0, 2.0**-1074, 2.0**-53])) == math.fsum(
        [5e-324, 1.0, 5e-324, 2.0**-53]
    )
