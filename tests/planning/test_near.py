"""Planning where some categories are near each other: the card, the choice, the comparison."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import ParameterError, TargetError
from sottovoce.planning.cards import near_card, stream_card

PRIOR, LINE = sv.Prior(range(3), [0.2, 0.3, 0.5]), sv.Line([0, 1, 4])
APART = np.abs(np.subtract.outer([0.0, 1, 4], [0.0, 1, 4]))


def test_the_limit_is_refused_in_w1_before_anything_is_measured() -> None:
    w1, seen = sv.wasserstein(LINE), list[int]()
    near = sv.nearest(PRIOR, 2.0, LINE)
    with pytest.raises(ParameterError, match="the limit is not computed in W1"):
        sv.compare([[1, 0, 0]], near, [sv.TV, w1], limit=True, progress=lambda: seen.append(1))
    assert not seen


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
