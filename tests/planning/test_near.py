"""Planning where some categories are near each other: the limit in W1, the card, the choice, the comparison."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest

import sottovoce as sv
from sottovoce.errors import ParameterError, TargetError
from sottovoce.planning.cards import near_card, stream_card

PRIOR, LINE = sv.Prior(range(3), [0.2, 0.3, 0.5]), sv.Line([0, 1, 4])
APART = np.abs(np.subtract.outer([0.0, 1, 4], [0.0, 1, 4]))


@pytest.mark.parametrize("tail", [0.0, 0.3])
@pytest.mark.parametrize("keep_prior", [True, False])
def test_no_floor_of_a_grid_is_below_the_limit(tail: float, keep_prior: bool) -> None:
    """Every floor of a grid, its laws by a transport program: none below the bound, one near it."""
    users, a = np.array([[1.0, 0, 0], [0.1, 0.2, 0.7], [0, 0.5, 0.5]]), math.exp(1.0)
    found = sv.limit(PRIOR, 1.0, users, divergence=sv.wasserstein(LINE), tail=tail, keep_prior=keep_prior)
    assert 0 <= found.gap <= 1e-6
    q = PRIOR.probabilities
    sides = [np.linspace(one / a, one, 9) if keep_prior else np.linspace(0.02, 0.6, 9) for one in q]
    values = []
    for c in itertools.product(*sides):
        floor = np.array(c)
        if floor.sum() <= 1 <= a * floor.sum():
            off = [oracles.least_move(p, floor, a * floor, APART) for p in users]
            values.append(np.mean(off) + tail * max(off))
    assert min(values) >= found.lower_bound - 1e-9
    assert min(values) <= found.objective + 0.15  # the grid is coarse


def test_the_limit_is_below_every_sampler_and_refuses_what_is_too_large() -> None:
    rng = np.random.default_rng(0)
    prior = sv.Prior(range(8), rng.dirichlet(np.ones(8)))
    tree = sv.Tree.from_levels([0, 0, 0, 1, 1, 2, 2, 2])
    users = rng.dirichlet(np.full(8, 0.3), 60)
    table = sv.compare(
        users, [sv.nearest(prior, 2.0, tree), sv.minimax_kernel(prior, 2.0)], sv.wasserstein(tree), limit=True
    )
    rows = {row.sampler: row for row in table}
    assert rows["best possible"].mean < rows["nearest"].mean < rows["minimax_kernel"].mean
    assert all(row.above_limit is not None and row.above_limit >= -1e-9 for row in table)
    assert rows["minimax_kernel"].worst_case is not None
    with pytest.raises(ParameterError, match="take fewer users"):
        sv.limit(prior, 2.0, rng.dirichlet(np.ones(8), 5001), divergence=sv.wasserstein(tree))
    with pytest.raises(ParameterError, match="promise"):
        sv.limit(prior, 2.0, users, divergence=sv.wasserstein(tree), promise="best")


def test_a_worst_case_that_is_not_known_is_none() -> None:
    near, clip = sv.nearest(PRIOR, 1.0, LINE), sv.kernel_clip(PRIOR, 1.0)
    table = sv.compare([[1, 0, 0]], [near, clip], [sv.TV, sv.wasserstein(LINE)])
    known = {(row.sampler, row.divergence): row.worst_case for row in table}
    assert known["nearest", "tv"] is None is known["kernel_clip", "w1"]
    assert known["nearest", "w1"] == near.worst_case(sv.wasserstein(LINE))
    assert known["kernel_clip", "tv"] == clip.worst_case(sv.TV)
    assert "-" in str(table)


def test_the_card_counts_pairs_of_a_category_and_its_release() -> None:
    facts, near = near_card(sv.nearest(PRIOR, 1.0, LINE)), sv.nearest(PRIOR, 1.0, LINE)
    q, laws = PRIOR.probabilities, near.distribution(np.eye(3))
    joint = q[:, None] * laws
    assert facts.mean == pytest.approx((joint * APART).sum(), rel=1e-12)
    assert facts.worst_w1 == pytest.approx(near.worst_case(sv.wasserstein(LINE)), rel=1e-12)
    assert facts.as_itself == pytest.approx(np.trace(joint), rel=1e-12)
    for share, within in ((0.5, facts.half_within), (0.9, facts.nine_tenths_within)):
        assert joint[within >= APART].sum() >= share > joint[within > APART].sum()
    assert stream_card(sv.stream(PRIOR, 4.0, geometry=LINE)).released_as_another is None


def test_choose_takes_nearest_in_w1_and_says_so() -> None:
    prior, line = (
        sv.Prior.from_counts({year: 10 + year % 7 for year in range(1990, 2010)}),
        sv.Line(range(20)),
    )
    choice = sv.choose(prior, 2.0, geometry=line)
    assert choice.sampler.name == "nearest"
    assert choice.row.divergence == "w1"
    assert "W1, in the units of the geometry" in choice.words()
    assert choice.limit is None
    found = sv.choose(prior, mean_at_most=1.0, geometry=line)
    assert found.row.mean <= 1.0
    assert found.sampler.epsilon > 0.25
    everybody = sv.choose(prior, 2.0, same_for_everybody=True, geometry=line, limit=False)
    assert everybody.row.worst_case is not None
    with pytest.raises(TargetError):
        sv.choose(prior, 0.5, nobody_above=0.1, geometry=line)
    with pytest.raises(ParameterError, match="it has 3"):
        sv.choose(prior, 2.0, geometry=LINE)
