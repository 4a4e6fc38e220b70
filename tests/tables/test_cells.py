"""Cells in order: the fast ways against the plain ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sottovoce as sv
from sottovoce.tables import cells


@pytest.mark.parametrize("sizes", [(7, 50, 11), (1, 350, 11), (1 << 30, 1 << 20, 1 << 13)])
def test_cells_are_ordered_as_by_several_keys(sizes: tuple[int, ...]) -> None:
    """The last sizes do not fit one number of 63 bits with a thousand cells."""
    rng = np.random.default_rng(0)
    spread = [rng.integers(0, min(size, 50), 4000) for size in sizes]
    distinct = np.unique(np.stack(spread), axis=1)
    codes = list(distinct[:, rng.permutation(distinct.shape[1])].astype(np.intp))
    order, ordered = cells._order(codes, sizes)
    expected = sorted(range(len(order)), key=lambda i: tuple(code[i] for code in codes))
    assert order.tolist() == expected
    for code, mine in zip(codes, ordered, strict=True):
        assert mine.tolist() == code[expected].tolist()


def test_names_looked_up_on_two_threads_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "who": [f"u{i}" for i in rng.integers(0, 90, 2000)],
            "what": [f"ä{i}" for i in rng.integers(0, 30, 2000)],
            "group": rng.integers(0, 3, 2000),
            "weight": rng.random(2000),
        }
    )
    first, second = (
        sv.count_table(frame, user="who", item="what", by="group", weight="weight")
        for long in (cells.LONG, 5)
        if monkeypatch.setattr(cells, "LONG", long) is None
    )
    assert (first.groups, first.items) == (second.groups, second.items)
    assert first.users is not None
    assert second.users is not None
    assert first.users.tolist() == second.users.tolist()
    for name in ("group", "user", "item", "rows"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist(), name
    # polars adds the rows of a cell up in no fixed order
    np.testing.assert_allclose(first.amount, second.amount, rtol=1e-14)
    plain = frame.group_by("group", "who", "what").agg(pl.len(), pl.col("weight").sum())
    assert first.rows.sum() == 2000
    assert len(first.rows) == plain.height
