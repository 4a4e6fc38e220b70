"""What one asks of a comparison: the best, the order, everybody together, the limit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sottovoce as sv
from sottovoce.planning.compare import BEST_POSSIBLE, ComparisonRow

PRIORS = {
    "north": sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]),
    "south": sv.Prior(["a", "b", "c"], [0.6, 0.3, 0.1]),
}


def people(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(3), size=size)


def row(sampler: str, mean: float, maximum: float, keeps: bool = True, epsilon: float = 1.0) -> ComparisonRow:
    return ComparisonRow("all", epsilon, sampler, "tv", 5, mean, mean, mean, mean, maximum, 0.9, keeps)


def test_everybody_together_is_summarised_from_every_user() -> None:
    users = {"north": people(7, 1), "south": people(40, 2)}
    samplers = {group: [sv.kernel_clip(q, 1.0), sv.fitted(q, 2.0)] for group, q in PRIORS.items()}
    table = sv.compare(users, samplers, [sv.TV, sv.KL])
    assert [(one.group, one.sampler, one.divergence) for one in table.all_groups] == [
        ("all groups", "kernel_clip", "tv"),
        ("all groups", "kernel_clip", "kl"),
        ("all groups", "fitted", "tv"),
        ("all groups", "fitted", "kl"),
    ]
    for k, pooled in enumerate(table.all_groups):
        f = sv.TV if k % 2 == 0 else sv.KL
        values = np.concatenate([samplers[g][k // 2].divergence(users[g], f) for g in users])
        assert pooled.users == 47
        assert pooled.mean == pytest.approx(values.mean(), rel=1e-12)
        assert pooled.maximum == values.max()
        assert pooled.median == np.sort(values)[23]
        assert pooled.worst_case == max(samplers[g][k // 2].worst_case(f) for g in users)
    assert [one.group for one in table] == ["north"] * 4 + ["south"] * 4
    assert len(table.to_dicts()) == 8


def test_groups_with_other_samplers_are_not_put_together() -> None:
    users = {group: people(5, 3) for group in PRIORS}
    samplers = {"north": sv.kernel_clip(PRIORS["north"], 1.0), "south": sv.kernel_clip(PRIORS["south"], 2.0)}
    assert sv.compare(users, samplers).all_groups == ()


def test_the_limit_is_a_row_and_every_row_says_how_far_above_it_is() -> None:
    q, users = PRIORS["south"], people(60, 4)
    samplers: list[sv.Sampler] = [sv.kernel_clip(q, 1.0), sv.randomized_response(q, 1.0), sv.blend(q, 2.0)]
    steps: list[int] = []
    table = sv.compare(users, samplers, limit=True, progress=lambda: steps.append(1))
    assert [one.sampler for one in table][3:] == [BEST_POSSIBLE, BEST_POSSIBLE]
    assert len(steps) == 5
    for epsilon in (1.0, 2.0):
        bound = sv.limit(q, epsilon, users).lower_bound
        mine = [one for one in table if one.epsilon == epsilon]
        for one in mine:
            assert one.above_limit == pytest.approx(one.mean + 0.3 * one.maximum - bound, abs=1e-12)
            assert one.above_limit is not None
            assert one.above_limit >= 0 or not one.keeps_prior
        assert mine[-1].worst_case is None
        assert mine[-1].above_limit == min(one.above_limit or 0 for one in mine if one.keeps_prior)
    assert all(one.above_limit is None for one in sv.compare(users, samplers))


def test_the_limit_needs_one_prior() -> None:
    samplers = [sv.kernel_clip(q, 1.0) for q in PRIORS.values()]
    with pytest.raises(sv.errors.ParameterError, match="share one prior"):
        sv.compare(people(5, 5), samplers, limit=True)


def test_the_best_keeps_the_prior_unless_asked_otherwise() -> None:
    table = sv.Comparison(
        (
            row(BEST_POSSIBLE, 0.01, 0.1),
            row("steady", 0.3, 0.4),
            row("careless", 0.1, 0.5, keeps=False),
            row("typical", 0.2, 0.8),
            row("alone", 0.7, 0.7, epsilon=2.0),
        )
    )
    assert [one.sampler for one in table.best()] == ["typical", "alone"]
    assert [one.sampler for one in table.best("maximum")] == ["steady", "alone"]
    assert [one.sampler for one in table.best(keeps_prior=False)] == ["careless", "alone"]
    order = [BEST_POSSIBLE, "careless", "typical", "steady", "alone"]
    assert [one.sampler for one in table.sorted()] == order
    marked = [line[-1] for line in table.listing().rows]
    assert marked == ["", "", "lowest mean", "", ""]
    with pytest.raises(sv.errors.ParameterError, match="statistic"):
        table.best("users")


def test_the_printed_table_is_sorted_and_marked() -> None:
    table = sv.Comparison((row("far", 0.3, 0.4), row("near", 0.1, 0.2)))
    lines = [line.split() for line in str(table).splitlines()]
    assert [line[2] for line in lines[1:]] == ["near", "far"]
    assert [line[-1] for line in lines[1:]] == ["mean", "yes"]


def test_a_notebook_shows_names_as_text_and_the_best_in_bold() -> None:
    table = sv.Comparison((row("<b>x</b>", 0.25, 1.0), row("y", 0.5, 0.75)))
    page = table._repr_html_()
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert page.count("font-weight:bold") == len(str(table).splitlines()[0].split())


def test_a_frame_of_the_dicts_holds_the_same_rows() -> None:
    users = {group: people(5, 6) for group in PRIORS}
    table = sv.compare(users, {group: sv.kernel_clip(q, 1.0) for group, q in PRIORS.items()}, limit=True)
    assert pl.DataFrame(table.to_dicts()).to_dicts() == table.to_dicts()
    assert [one["group"] for one in table.to_dicts()] == ["north", "north", "south", "south"]
