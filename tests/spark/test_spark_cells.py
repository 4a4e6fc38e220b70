"""A stream of cells is cut between people, never inside one; this part of Spark's way needs no Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sottovoce.spark.cells import complete_people


def parts(person: list[int], size: int) -> list[Any]:
    table = pa.table({"person": pa.array(person, pa.int64()), "cell": pa.array(range(len(person)))})
    return list(table.to_batches(max_chunksize=size))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("least", [1, 4, 20])
def test_batches_hold_complete_people(size: int, least: int) -> None:
    rng = np.random.default_rng(size * 100 + least)
    lengths = [1, 2, 9, 1, 1, 31, *rng.integers(1, 6, 40).tolist()]
    person = np.repeat(np.arange(len(lengths)) - 20, lengths)  # hashes may be negative
    found = list(complete_people(parts(person.tolist(), size), least))
    cells = [table["cell"].to_pylist() for table in found]
    assert [cell for batch in cells for cell in batch] == list(range(len(person)))
    ends = {int(end) for end in np.cumsum(lengths)}
    assert all(batch[-1] + 1 in ends for batch in cells)
    assert len(found) > 1 or sum(lengths) <= max(least, size)
    assert max(map(len, cells)) <= 2 * (least + size + max(lengths))


def test_nothing_gives_nothing() -> None:
    assert list(complete_people([])) == []
    assert list(complete_people(parts([], 5))) == []
