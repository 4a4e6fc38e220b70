"""Pictures show the library's numbers: every line, bar and point is read back and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from kinds import of_kind
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import sottovoce as sv
from sottovoce.pictures.plots import STYLES, save_figure

PRIOR = sv.Prior(["a", "b", "c", "d"], [0.4, 0.3, 0.2, 0.1])


def test_every_sampler_can_be_told_apart_without_colour() -> None:
    looks = {(style["marker"], style["linestyle"]) for style in STYLES.values()}
    assert len(looks) == len(STYLES)
    assert set(sv.SAMPLERS) <= set(STYLES)


def test_estimate_draws_values_intervals_prior_and_truth(tmp_path: Path) -> None:
    found = sv.estimate(sv.minimax_kernel(PRIOR, 2.0), {"a": 400, "b": 100, "c": 300, "d": 200})
    truth = [0.5, 0.1, 0.2, 0.2]
    axes = found.plot(truth=truth)
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(np.asarray(points.get_ydata()), found.shares)
    bars = [of_kind(patch, Rectangle).get_height() for patch in axes.patches]
    np.testing.assert_allclose(bars, PRIOR.probabilities)
    low, high = found.interval()
    segments = [of_kind(one, LineCollection).get_segments() for one in axes.collections]
    (whiskers,) = [one for one in segments if len(one) == 4]
    ends = np.array([segment[:, 1] for segment in whiskers])
    np.testing.assert_allclose(ends, np.stack([low, high], axis=1))
    ticks = next(line for line in axes.lines if line.get_label() == "the truth, which nobody sees")
    np.testing.assert_allclose(np.asarray(ticks.get_ydata()), truth)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c", "d"]
    assert save_figure(of_kind(axes.figure, Figure), tmp_path / "e.svg").stat().st_size > 1000


def test_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    prior = sv.Prior(["$0 to $10_", "$5%$"], [0.5, 0.5])
    found = sv.estimate(sv.randomized_response(prior, 1.0), {"$5%$": 5, "$0 to $10_": 9})
    figure = of_kind(found.plot().figure, Figure)
    assert save_figure(figure, tmp_path / "e.png").stat().st_size > 1000


def test_box_and_comparison_make_their_own_figures() -> None:
    clip = sv.kernel_clip(PRIOR, 1.0)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    axes = sv.plot_box([clip, sv.minimax_kernel(PRIOR, 1.0)], p)
    (bars,) = axes.collections
    ends = np.array([segment[:, 1] for segment in of_kind(bars, LineCollection).get_segments()])
    np.testing.assert_allclose(ends[:, 0], clip.floor)
    np.testing.assert_allclose(ends[:, 1], np.minimum(np.e * clip.floor, 1))
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.lines}
    np.testing.assert_allclose(drawn["kernel_clip"], clip.distribution(p))
    np.testing.assert_allclose(drawn["the user's p"], p)
    table = sv.compare(p, [sv.kernel_clip(PRIOR, 1.0), sv.kernel_clip(PRIOR, 2.0)])
    (line,) = table.plot(statistic="maximum").lines
    np.testing.assert_allclose(np.asarray(line.get_ydata()), [row.maximum for row in table])
