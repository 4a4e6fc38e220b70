"""Cards, and the data of the demo: numbers that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.demo import demo_data
from sottovoce.planning.cards import card, near_card, stream_card


def test_a_card_has_the_rarest_category_and_what_is_kept() -> None:
    facts = card(sv.kernel_clip(sv.Prior(["A", "B"], [0.01, 0.99]), 2.0))
    assert facts.rarest_category == "A"
    assert facts.released_as_another == pytest.approx(0.931, abs=5e-4)  # three digits
    kept = [(own.category, round(own.at_least, 3)) for own in facts.released_as_itself]
    assert kept == [("A", 0.069), ("B", 0.991)]


def test_a_card_of_nearest_has_distances() -> None:
    facts = near_card(sv.nearest(sv.Prior.uniform(range(10)), 4.0, sv.Line(range(10))))
    assert (facts.half_within, facts.nine_tenths_within) == (0.0, 1.0)


def test_a_card_of_a_stream_has_its_first_step() -> None:
    facts = stream_card(sv.stream(sv.Prior(["A", "B"], [0.2, 0.8]), 4.0, horizon=2))
    assert facts.released_as_another == pytest.approx(0.15, abs=5e-3)  # two digits


def test_a_card_of_a_stream_tells_what_follows_from_the_prior() -> None:
    made = sv.stream(sv.Prior(["a", "b", "c", "d"], [0.05, 0.15, 0.3, 0.5]), 3.0, horizon=1)
    facts, mechanism = stream_card(made), sv.certify(made)
    kept = min(mechanism.law(p=p, state=mechanism.start())[i] for i, p in enumerate(np.eye(4)))
    assert facts.released_as_another == pytest.approx(1 - float(kept), abs=1e-6)
    endless = sv.stream(made.prior, 3.0, horizon=None)
    assert (facts.horizon, stream_card(endless).horizon) == (1, None)


def test_the_demo_has_two_thousand_members_and_eighteen_genres() -> None:
    data = demo_data()
    assert sum(map(len, data.members.values())) == 2000
    assert all(len(prior) == 18 for prior in data.priors.values())
