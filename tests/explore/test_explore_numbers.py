"""What the page computes by itself: counts that survive, a recommendation, odds, estimates, axes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as some

import sottovoce as sv
from sottovoce.demo import demo_data

pytest.importorskip("marimo")
from sottovoce.explore import cards, drawing, given, people, recommend, tiles, views

DATA = demo_data()
PRIOR = DATA.priors["25 to 44"]
PEOPLE = people.of_counts(DATA.members["25 to 44"], given=True)


def test_counts_of_a_file_survive(tmp_path: Path) -> None:
    """A user with 1,120 rows shows 1,120, category by category, and so does the text box."""
    held = {"a": 613, "b": 331, "c": 171, "d": 5}
    rows = [f"long,{name}" for name, count in held.items() for _ in range(count)]
    (tmp_path / "prior.csv").write_text("item,count\na,9\nb,7\nc,3\nd,1\ne,2\n")
    (tmp_path / "users.csv").write_text("\n".join(["user,item", "short,b", *rows, "short,e"]) + "\n")
    read = given.read_given(tmp_path / "prior.csv", tmp_path / "users.csv")
    prior, users = read.priors["all"], read.users["all"]
    everybody = people.of_users(users)
    counts = everybody.counts(users.ids.index("long"))
    assert {str(name): counts[i] for i, name in enumerate(prior.categories) if counts[i]} == held
    text = people.as_text(counts, prior)
    assert text == "a 613\nb 331\nc 171\nd 5"
    assert people.typed(text, prior).tolist() == counts.tolist()
    own, _ = people.own_first(counts, prior)
    card = cards.person(counts, prior, own, {f"{sign}{i}": "" for sign in "−+" for i in own}, "", "")
    assert "<b>1,120</b> records in 4 categories" in card


@for_all(some.lists(some.one_of(some.integers(0, 10**6), some.floats(1e-3, 1e6)), min_size=5, max_size=5))
def test_the_text_box_reads_back_what_it_shows(values: list[float]) -> None:
    prior = sv.Prior(["a b", "Area 51", "12", "x: y", "100%"], [0.2] * 5)
    counts = np.array(values, dtype=np.float64)
    if counts.sum() > 0:
        assert people.typed(people.as_text(counts, prior), prior).tolist() == counts.tolist()


@for_all(some.lists(some.integers(0, 10**9), min_size=3, max_size=3).filter(any))
def test_a_share_times_its_total_is_the_count_again(counts: list[int]) -> None:
    assert people.of_counts([counts], given=True).counts(0).tolist() == counts


def test_a_typed_user() -> None:
    prior = sv.Prior(["Science fiction", "War"], [0.5, 0.5])
    assert people.typed("Science fiction 3\n\nWar: 1", prior).tolist() == [3, 1]
    assert people.typed("War 2\nWar 1.5", prior).tolist() == [0, 3.5]
    for text in ("", "War", "War -1", "Opera 3", "War 0", "3", "War 1000000000000000"):
        with pytest.raises(sv.errors.UserDataError):
            people.typed(text, prior)
    counts = np.array([1.0, 0.0])
    assert people.changed(counts, 0, -1) is counts  # somebody without a record is nobody
    assert people.changed(counts, 1, 1).tolist() == [1, 1]
    assert people.changed(np.array([2.0, 0.5]), 1, -1).tolist() == [2, 0]


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_the_recommendation_is_the_best_that_keeps_the_public_data(epsilon: float) -> None:
    samplers = [sv.fitted(PRIOR, epsilon), *(make(PRIOR, epsilon) for make in sv.SAMPLERS.values())]
    rows = sv.compare(PEOPLE.some, [one for one in samplers if one.keeps_prior], [sv.TV]).rows
    best = min(rows, key=lambda row: row.mean + 0.3 * row.maximum)
    found = recommend.recommended(PRIOR, epsilon, PEOPLE)
    assert best.sampler.split("(")[0] == found.sampler
    assert (found.typical, found.worst) == pytest.approx((best.mean, best.maximum), rel=1e-12)
    possible = recommend.best_possible(PRIOR, epsilon, PEOPLE)
    assert possible is not None
    assert all(possible <= row.mean for row in rows)
    exact = sv.limit(PRIOR, epsilon, PEOPLE.some, tail=0)
    assert exact.lower_bound * 0.98 <= possible <= exact.mean  # both gaps are at most one per cent
    words = views.advice(PRIOR, epsilon, PEOPLE)
    for number in (found.typical, found.worst, possible):
        assert f"<b>{number:.3f}</b>" in words


def test_a_sampler_that_bends_the_public_data_is_not_recommended() -> None:
    """Somebody unlike the public data is nearer to samplers that ignore them; people like the public pay."""
    prior, odd = sv.Prior(["a", "b", "c"], [0.98, 0.01, 0.01]), people.of_counts([[0, 1, 1]], given=True)
    every = [recommend.measured(prior, name, 1.0, odd) for name in recommend.OFFERED]
    nearest, found = min(every, key=lambda one: one.score), recommend.recommended(prior, 1.0, odd)
    assert not recommend.sampler(prior, nearest.sampler, 1.0).keeps_prior
    assert recommend.sampler(prior, found.sampler, 1.0).keeps_prior


def test_a_limit_that_takes_long_is_left_out_and_said_so() -> None:
    wide = sv.Prior.uniform(range(40))
    crowd = people.of_counts(np.eye(40) + 1, given=True)
    assert recommend.best_possible(wide, 1.0, crowd) is None
    assert recommend.limit_curve(wide, crowd) == []
    assert "takes too long" in views.advice(wide, 1.0, crowd)
    assert "takes too long" in cards.typical(wide, crowd)


def test_what_is_computed_ahead_is_what_the_slider_asks_for() -> None:
    few = people.of_counts(DATA.members["25 to 44"][:5], given=True)
    recommend.warm(PRIOR, few, [1.0, 1.5]).join()
    before = recommend.best_possible.cache_info()
    for epsilon in (1.0, 1.5):
        recommend.best_possible(PRIOR, epsilon, few)
    after = recommend.best_possible.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 0)


def test_few_people_are_measured_all_and_many_by_a_spread_of_them() -> None:
    assert PEOPLE.some.shape[0] == people.MOST_MEASURED
    few = people.of_counts(DATA.members["25 to 44"][:7], given=True)
    assert few.some is few.p


@pytest.mark.parametrize("name", ["kernel_clip", "fitted", "minimax_kernel", "randomized_response"])
def test_no_other_person_gives_more_odds_than_the_page_says(name: str) -> None:
    """Against everybody with one category and against random people; for the classic it is attained."""
    sampler, p = recommend.sampler(PRIOR, name, 2.0), people.shares(PEOPLE.counts(3))
    others = np.vstack([np.eye(18), np.random.default_rng(5).dirichlet(np.full(18, 0.2), 500)])
    ratios = sampler.distribution(p) / sampler.distribution(others)
    place, factor = recommend.most_told(sampler, p)
    assert ratios.max() <= factor * (1 + 1e-9)
    assert factor <= math.exp(2.0) * (1 + 1e-9)
    if name == "randomized_response":
        assert factor == pytest.approx(ratios.max())
        assert place == np.unravel_index(ratios.argmax(), ratios.shape)[1]
    assert f"<b>{views.odds(factor)} : 1</b>" in views.leak_words(sampler, PEOPLE.counts(3))


@pytest.mark.parametrize(
    ("factor", "shown"),
    [(1.0, "1.00"), (9.671, "9.68"), (20.0855, "20.1"), (148.41, "149"), (22026.5, "22,027")],
)
def test_odds_are_rounded_upwards(factor: float, shown: str) -> None:
    assert views.odds(factor) == shown


def concluded(chart: str) -> dict[str, tuple[float, float, float]]:
    """Per category what is held, and the ends of what is concluded, as the page says them."""
    found = re.findall(
        r"sv-hidden.>held ([\d.]+) %, reported [\d.]+ %, concluded ([\d.]+) % to ([\d.]+) %", chart
    )
    return {str(i): (float(a), float(b), float(c)) for i, (a, b, c) in enumerate(found)}


@pytest.mark.parametrize("name", ["minimax_kernel", "kernel_clip"])
def test_many_people_are_drawn_with_what_can_be_concluded(name: str) -> None:
    mechanism = sv.certify(recommend.sampler(PRIOR, name, 3.0))
    chart, words = views.population_chart(mechanism, PEOPLE.crowd(10_000))
    rows = concluded(chart)
    assert len(rows) == 18
    inside = sum(low - 0.1 <= held <= high + 0.1 for held, low, high in rows.values())
    assert inside >= 14  # 95 % of 18 are 17; fewer than 14 has a chance below one in a thousand
    assert "10,000 reports" in words
    linear = name == "minimax_kernel"
    assert ("estimate" in chart.split("sv-legend")[1]) == linear
    assert ("The average law that was released" in words) == (not linear)
    assert ("where the truth must lie" in chart) == (not linear)


def test_reports_that_tell_nothing_are_said_to() -> None:
    dropping = sv.rr_with_prior(sv.Prior(["a", "b", "c"], [0.6, 0.39, 0.01]), 1.0)
    crowd = people.of_counts([[1, 2, 3], [3, 0, 0]], given=True).crowd(50)
    chart, words = views.population_chart(sv.certify(dropping), crowd)
    assert "one cannot tell" in words
    assert "concluded" not in chart


def test_axes_fit_the_data() -> None:
    axis = drawing.linear(0.37)
    assert [axis.low, axis.high] == pytest.approx([0, 0.4])
    assert [axis.place(value) for value in (0, 0.1, 0.4)] == pytest.approx([0, 25, 100])
    steep = drawing.logarithmic(0.002)
    assert steep.ticks == pytest.approx((0.001, 0.01, 0.1, 1))
    assert steep.place(1) - steep.place(0.1) == pytest.approx(steep.place(0.1) - steep.place(0.01))
    assert steep.place(0) == 0  # nothing stands left of the axis
    assert (drawing.per_cent(0), drawing.per_cent(0.12345), drawing.per_cent(0.00012)) == (
        "0 %",
        "12.3 %",
        "0.012 %",
    )


def test_the_budget_empties_and_refusals_are_tiles() -> None:
    assert views.left(None, []) == 0
    assert views.left(1, [0.1] * 10) < 0  # ten times the double 0.1 is a little more than 1
    bar = tiles.budget_bar(7.5, 30)
    assert 'aria-valuenow="7.5"' in bar
    assert "width:25.0%" in bar
    assert "width:0.0%" in tiles.budget_bar(0, 0)
    shown = tiles.answers([("a", 3.0), ("b", 3.0), ("too little", 0)])
    assert re.findall(r"<li[^>]*>([^<]*)", shown) == ["refused", "b", "a"]
    assert "Refused" in cards.refusal([("too little", 0)])
    assert cards.refusal([("a", 3.0)]) == ""
