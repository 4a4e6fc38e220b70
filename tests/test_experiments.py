"""The paper's experiments give the paper's numbers."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from experiments import movielens, synthetic

PLACE = os.environ.get("SOTTOVOCE_DATA", "")
needs_movielens = pytest.mark.skipif(
    not (PLACE and (Path(PLACE) / "ml-1m").is_dir()),
    reason="set SOTTOVOCE_DATA to the folder that holds ml-100k and ml-1m",
)


def test_synthetic_values_to_four_digits_and_files(tmp_path: Path) -> None:
    table, *pictures = synthetic.run(tmp_path)
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == ("p1", "divergence", "sampler", "mean", "standard_error")
    expected = {
        "minimax_kernel": (0.0395, 0.0629, 0.0994),
        "relative_mollifier": (0.0049, 0.1288, 0.4737),
        "kernel_clip": (0.0, 0.0, 0.0904),
    }
    for name, values in expected.items():
        mine = [float(r["mean"]) for r in rows if r["sampler"] == name and r["divergence"] == "tv"]
        assert [round(mine[i], 4) for i in (0, 45, 99)] == list(values)
    assert [path.suffix for path in pictures] == [".png", ".pdf"]
    assert all(path.stat().st_size > 10_000 for path in pictures)


def test_age_groups_and_counting_rules() -> None:
    assert movielens.group_of(np.array([1, 18, 24, 25, 34, 35, 44, 45, 49, 50, 54, 55, 73])).tolist() == [
        0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5,
    ]  # fmt: skip
    flags = np.array([[0, 1, 1], [0, 0, 0]], dtype=float)
    rating = np.array([4, 5])
    assert movielens.weights(flags, rating, "all-genres").tolist() == flags.tolist()
    assert movielens.weights(flags, rating, "primary-rating").tolist() == [[0, 4, 0], [0, 0, 0]]


@needs_movielens
def test_movielens_gives_the_published_aggregates() -> None:
    rows = movielens.measure(Path(PLACE))
    assert len(rows) == 8 * 6 * 9
    line = next(line for line in movielens.summary(rows).splitlines() if "minimax_kernel" in line)
    # Published: ahead in 54.1 % of cells by 0.11 on average, behind in 41.6 % (26 and 20 of 48 cells).
    assert line == "| `minimax_kernel` | 0.300 | 0.091 | 0.208 | 54.2% | 0.113 | 41.7% |"
