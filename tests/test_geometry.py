"""Lines and trees: their distances, the integers behind them, and what is no tree."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.errors import ParameterError
from sottovoce.geometry import Geometry


def test_a_line_needs_no_order_and_keeps_whole_numbers() -> None:
    line = sv.Line([1994, 1931, 1995, 1994])
    assert line.distances(0).tolist() == [0, 63, 1, 0]
    assert sv.Line([0.5, 1.0, 5.0]).distances(0).tolist() == [0, 0.5, 4.5]
    assert sv.Line([0.1, 0.3]).distances(0)[1] == pytest.approx(0.2, rel=1e-8)
    assert len(sv.Line([7])) == 1
    assert line == sv.Line([1994, 1931, 1995, 1994]) != sv.Line([1, 2, 3, 4])
    assert copy.deepcopy(line) == line
    assert hash(line) == hash(sv.Line([1994, 1931, 1995, 1994]))


def test_levels_are_chapters_within_parts() -> None:
    tree = sv.Tree.from_levels(["1", "1", "2", "1"], ["A", "A", "A", "B"])
    assert tree.distances(0).tolist() == [0, 1, 2, 3]  # chapter 1 of part B is another one
    steep = sv.Tree.from_levels(["x", "x", "y"], lengths=[1, 10])
    assert steep.distances(0).tolist() == [0, 2, 22]


def test_nodes_with_one_child_are_left_out() -> None:
    tree = sv.Tree.from_levels(["x", "y"], ["all", "all"], lengths=[1, 2, 5])
    assert tree.distances(0).tolist() == [0, 6]
    assert len(tree.parents) == 3


def test_a_map_is_about_right_and_crosses_the_date_line() -> None:
    rng = np.random.default_rng(0)
    north, east = rng.uniform(-18, -17, 200), (179 + rng.uniform(0, 2, 200) + 180) % 360 - 180
    tree = sv.Tree.from_points(north, east)
    assert len(tree.parents) < 400
    a, b = np.deg2rad(north), np.deg2rad(east)
    half = (
        np.sin((a[:, None] - a) / 2) ** 2 + np.cos(a)[:, None] * np.cos(a) * np.sin((b[:, None] - b) / 2) ** 2
    )
    true = 2 * 6371.0088 * np.arcsin(np.sqrt(half))
    found, pairs = np.array([tree.distances(i) for i in range(200)]), np.triu_indices(200, 1)
    assert found[pairs].mean() == pytest.approx(true[pairs].mean(), rel=0.01)  # the map is nearly flat
    assert np.corrcoef(found[pairs], true[pairs])[0, 1] > 0.5
    assert sv.Tree.from_points([1, 1, 1], [2, 2, 2]).distances(0).max() < 1e-9


@pytest.mark.parametrize("positions", [[], [math.inf], ["a"], "1994", [None], [True, 2]])
def test_what_is_no_line_is_refused(positions: Any) -> None:
    with pytest.raises(ParameterError):
        sv.Line(positions)


def test_levels_and_points_are_validated() -> None:
    bad: Any
    for bad in ((), ([],), (["a"], ["b", "c"])):
        with pytest.raises(ParameterError):
            sv.Tree.from_levels(*bad)
    for lengths in ([1], [1, -1]):
        with pytest.raises(ParameterError, match="2 numbers ≥ 0"):
            sv.Tree.from_levels(["a"], lengths=lengths)
    with pytest.raises(ParameterError, match="finite"):
        sv.Tree.from_levels(["a"], lengths=[1, math.nan])
    with pytest.raises(ParameterError, match="degrees"):
        sv.Tree.from_points([91], [0])
    with pytest.raises(ParameterError, match="degrees"):
        sv.Tree.from_points([1, 2], [0])


@pytest.mark.parametrize(
    ("parents", "lengths"),
    [((2, 2), (1,)), ((2, 3, 3), (1, 1, 1 << 31)), ((1, 1), (0, 0)), ((3, 3), (1, 1)), ((2, 2), (1, -1)), ((2, 2), (1, 1.0)),
     ((2, True), (1, 1)), ((3, 3, 4), (1, 1, 1))],
)  # fmt: skip
def test_integers_that_are_no_tree_are_refused(parents: Any, lengths: Any) -> None:
    with pytest.raises(ParameterError):
        Geometry(parents, lengths)


def test_positions_that_a_double_or_the_units_cannot_hold_are_refused() -> None:
    for positions in ([1e308, -1e308], [0, 1, 2, 1e12], 5):
        with pytest.raises(ParameterError):
            sv.Line(positions)  # type: ignore[arg-type]
    steps = sv.Line(np.arange(10_000) * 0.7)
    assert steps.distances(0)[-1] == pytest.approx(6999.3, rel=1e-8)  # rounding does not add up


@pytest.mark.parametrize(("rows", "columns", "step"), [(40, 40, (0.008, 0.019)), (256, 4, (0.0001, 0.1))])
def test_a_grid_of_cells_is_calibrated_on_all_of_it(
    rows: int, columns: int, step: tuple[float, float]
) -> None:
    north, east = (one.ravel() for one in np.mgrid[:rows, :columns] * np.reshape(step, (2, 1, 1)))
    tree = sv.Tree.from_points(45 + north, 9 + east)
    flat = np.stack([north, east * math.cos(math.radians(45))], axis=1) * 111.195
    some = np.random.default_rng(1).integers(0, len(north), 60)
    true = np.mean([np.hypot(*(flat - flat[i]).T).mean() for i in some])
    assert np.mean([tree.distances(int(i)).mean() for i in some]) == pytest.approx(true, rel=0.1)
