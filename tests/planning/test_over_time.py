"""What a stream is worth: by hand on a few users, and on real users in time order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv

DATA = Path(__file__).parents[3] / "shared" / "data"
PRIOR = sv.Prior(["a", "b", "c", "d"], [0.05, 0.15, 0.3, 0.5])
PUBLISHED = {(12, 4.0): 0.268, (12, 8.0): 0.140, (12, 16.0): 0.034, (52, 8.0): 0.430, (52, 16.0): 0.335}
"""Mean total variation of a paced stream, by a simulation that shares no code: within 5 %."""


def test_the_distance_of_a_step_is_that_of_the_exact_law() -> None:
    made = sv.stream(PRIOR, 4.0, horizon=3)
    mechanism = sv.certify(made)
    for p in np.array([[1.0, 0, 0, 0], [0, 0.5, 0.5, 0], [0.05, 0.15, 0.3, 0.5]]):
        first = sv.compare_over_time([p, p], made).rows[0]
        law = np.array(mechanism.law(p=p, state=mechanism.start()), dtype=np.float64)
        assert first.mean == pytest.approx(np.abs(p - law).sum() / 2, abs=1e-9)


def test_users_who_are_absent_are_not_counted_and_splitting_is_the_sampler_alone() -> None:
    steps = [np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]]), np.array([[0, 1.0, 0, 0], [0, 0, 1.0, 0]])]
    made = sv.stream(PRIOR, 4.0, horizon=2)
    rows = sv.compare_over_time(steps, made).rows
    assert [(row.group, row.sampler, row.epsilon, row.users) for row in rows] == [
        ("release 1", "stream", 4.0, 1), ("release 1", "fitted", 2.0, 1),
        ("release 2", "stream", 4.0, 2), ("release 2", "fitted", 2.0, 2),
    ]  # fmt: skip
    alone = sv.fitted(PRIOR, 2.0)
    assert rows[1].mean == pytest.approx(float(alone.divergence(steps[0][0], sv.TV)), abs=1e-12)
    for wrong in ([], [np.zeros((2, 4))], [steps[0], steps[1][:1]]):
        with pytest.raises(sv.errors.ParameterError):
            sv.compare_over_time(wrong, made)
    persistent: Any = [sv.stream(PRIOR, 4.0, persistence=0.5), alone]
    for sampler in persistent:
        with pytest.raises(sv.errors.ParameterError, match="stream without persistence"):
            sv.compare_over_time(steps, sampler)


@pytest.mark.skipif(not (DATA / "ml-100k").is_dir(), reason="MovieLens is not on this machine")
@pytest.mark.parametrize("cell", [(12, 8.0), *(pytest.param(c, marks=pytest.mark.full) for c in PUBLISHED)])
def test_real_users_in_time_order(cell: tuple[int, float]) -> None:
    from experiments import streams

    found = streams.measure(DATA, *cell)
    assert found["paced"] == pytest.approx(PUBLISHED[cell], rel=0.05)
    assert found["paced"] < found["greedy"] < found["split"] < found["the prior alone"]


@pytest.mark.skipif(not (DATA / "ml-100k").is_dir(), reason="MovieLens is not on this machine")
def test_ratings_are_in_the_order_of_their_times() -> None:
    """Against the file, line by line: times that differ, and ascend within each user."""
    from experiments import streams

    user, genres = streams.ratings(DATA)
    lines = (DATA / "ml-100k" / "u.data").read_text(encoding="ascii").splitlines()
    rated = [tuple(map(int, line.split("\t"))) for line in lines]
    films = (DATA / "ml-100k" / "u.item").read_text(encoding="latin-1").splitlines()
    flags = {int(line.split("|")[0]): [int(flag) for flag in line.split("|")[6:24]] for line in films}
    for person in (1, 405, 943):
        mine = sorted((time, at, film) for at, (who, film, _, time) in enumerate(rated) if who == person)
        assert len({time for time, *_ in mine}) > 20
        assert genres[user == person].tolist() == [flags[film] for *_, film in mine]


def test_a_stream_can_lose_to_splitting_and_the_guide_says_how_often() -> None:
    from experiments import streams

    cases = streams.small_cases()
    by_mean, by_worst = ([c for c in cases if c.stream[k] > c.split[k]] for k in (0, 1))
    assert (len(cases), len(by_mean), len(by_worst)) == (96, 2, 12)
    # Two categories, (2/3, 1/3), two releases, by a recursion in doubles that shares no code.
    (one,) = (c for c in by_mean if c.epsilon == 2)
    assert (one.categories, one.releases, one.moves) == (2, 2, False)
    assert one.stream == pytest.approx((0.1463178, 0.4198114), abs=1e-6)
    guide = (Path(__file__).parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
    assert "of 96 small cases" in guide
    assert "in 2 in the mean and in 12 for the worst user" in guide
