"""Estimates from several samples per user: intervals by user, and what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.collecting.model import model_of
from sottovoce.collecting.reports import read_reports

PRIOR = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
TWO = sv.certify(sv.several(PRIOR, 2.0, samples=2))


def test_the_values_and_variances_are_those_of_the_users_means() -> None:
    """By hand: users are the unit, and each contributes the share of a category among their samples."""
    reports = [("a", "a"), ("a", "b"), ("c", "c"), ("b", "c")]
    found = sv.estimate(TWO, reports)
    shares = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1], [0, 0.5, 0.5]])
    assert found.reports == 4
    assert found.counts.tolist() == [3, 2, 3]
    np.testing.assert_allclose(found.values, shares.mean(axis=0))
    np.testing.assert_allclose(found.variances, shares.var(axis=0))
    again = sv.estimate(TWO, np.array(reports, dtype=object))
    assert again.values.tolist() == found.values.tolist()


def test_intervals_hold_where_the_samples_of_a_user_go_together() -> None:
    """Users with one category: their samples are alike, and 1,000 users are 1,000 reports, not 2,000.

    Nominal 95 %; over 150 repetitions at least 88 % of the intervals hold (below that: 1 in 10,000).
    """
    mechanism = sv.certify(sv.several(PRIOR, 12.0, samples=2))
    people = np.repeat(np.eye(3, dtype=np.int64), [10, 10, 20], axis=0)
    pairs = [np.array(mechanism.law(records=[name]), dtype=np.float64).reshape(3, 3) for name in "abc"]
    laws = [(pair.sum(axis=0) + pair.sum(axis=1)) / 2 for pair in pairs]
    truth = (10 * laws[0] + 10 * laws[1] + 20 * laws[2]) / 40
    held = naive = 0
    rng = np.random.default_rng(5)
    for _ in range(150):
        chosen = people[rng.integers(40, size=200)]
        found = sv.estimate(mechanism, mechanism.release_many(chosen))
        low, high = found.interval()
        held += bool(low[2] <= truth[2] <= high[2])
        half = 1.96 * np.sqrt(truth[2] * (1 - truth[2]) / 400)  # as if all samples were independent
        naive += bool(abs(found.values[2] - truth[2]) <= half)
    assert held >= 132
    assert naive < 132


def test_a_table_has_a_row_for_each_sample(tmp_path: Path) -> None:
    table = tmp_path / "reports.csv"
    lines = [f"u{i},{item},{TWO.digest},{s}" for i in range(3) for s, item in ((1, "a"), (2, "c"))]
    table.write_text("user,item,mechanism,sample\n" + "\n".join(lines) + "\n")
    found = sv.estimate(TWO, table)
    assert found.counts.tolist() == [3, 0, 3]
    assert found.reports == 3
    model = model_of(TWO)
    table.write_text("user,item\nu1,a\nu1,b\nu2,a\n")
    with pytest.raises(sv.errors.EstimateError, match="1 of 2 users do not have 2 reports"):
        read_reports(table, model)
    table.write_text("item\na\nb\n")
    with pytest.raises(sv.errors.EstimateError, match="counted by user"):
        read_reports(table, model)
    table.write_text("user,item\nu1,a\nu1,x\n")
    with pytest.raises(sv.errors.EstimateError, match="must be categories"):
        read_reports(table, model)
    other = "0" * 64
    table.write_text(f"user,item,mechanism\nu1,a,{other}\nu1,b,{other}\n")
    with pytest.raises(sv.errors.EstimateError, match="another mechanism"):
        read_reports(table, model)


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        (["a", "b"], "tuples of 2 categories"),
        ([("a",), ("a", "b")], "1 of 2 reports do not have 2"),
        ([("a", "x"), ("a", "b")], "1 of 2 users have others"),
        ({"a": 3, "b": 1, "c": 4}, "counted by user"),
        ([("a", "b")], "at least 2 reports"),
        (7, "tuples of 2 categories"),
    ],
)
def test_what_does_not_fit_is_refused(reports: object, words: str) -> None:
    with pytest.raises(sv.errors.EstimateError, match=words):
        sv.estimate(TWO, reports)


def test_the_released_law_is_not_called_the_users_own() -> None:
    found = sv.estimate(TWO, [("a", "b")] * 5)
    assert not found.unbiased
    assert not found.bounded
    kept = min(float(sum(TWO.law(records=[name])[3 * i : 3 * i + 3])) for i, name in enumerate("abc"))
    assert found.bias_bound == pytest.approx((1 - kept + 1 - 0.2) / 2)  # the second may be as the prior
    assert "not the users' own" in found.summary()


@pytest.mark.parametrize("k", [2, 4])
def test_users_like_the_prior_are_seldom_said_to_differ(k: int) -> None:
    """At level 95 %, forty times: more than nine would be a chance of 1 in 100,000."""
    mechanism = sv.certify(sv.several(PRIOR, 4.0, samples=k))
    people = np.tile(PRIOR.probabilities, (300, 1))
    learnt = [sv.estimate(mechanism, mechanism.release_many(people)).verdict().learnt for _ in range(40)]
    assert sum(learnt) <= 9
    others = np.tile([0.6, 0.3, 0.1], (300, 1))
    assert sv.estimate(mechanism, mechanism.release_many(others)).verdict().learnt


def test_several_samples_of_users_like_the_prior_need_fewer_of_them() -> None:
    one = sv.estimate(sv.certify(sv.kernel_clip(PRIOR, 1.0)), {"a": 20, "b": 30, "c": 50}).verdict()
    four = sv.certify(sv.several(PRIOR, 4.0, samples=4))
    found = sv.estimate(four, [("a", "b", "c", "c")] * 30).verdict()
    assert one.needed is not None
    assert found.needed is not None
    assert found.needed == pytest.approx(one.needed / 4, rel=0.1)  # the unseen reports are a little more


def test_groups_with_one_and_with_several_samples_are_estimated_from_one_table(tmp_path: Path) -> None:
    one = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    rows = [
        ("n", "u1", "a"),
        ("n", "u2", "b"),
        ("s", "u3", "a"),
        ("s", "u3", "c"),
        ("s", "u4", "c"),
        ("s", "u4", "c"),
    ]
    table = tmp_path / "reports.csv"
    table.write_text("region,user,item\n" + "\n".join(",".join(row) for row in rows) + "\n")
    models = {"n": model_of(one), "s": model_of(TWO)}
    counts, _ = read_reports(table, models, by="region")
    assert sv.estimate(one, counts["n"]).values.tolist() == [0.5, 0.5, 0.0]
    assert sv.estimate(TWO, counts["s"]).values.tolist() == [0.25, 0.0, 0.75]
