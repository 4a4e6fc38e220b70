"""On Spark, too, what users have decides nothing but what is drawn: see tests/test_silence.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sottovoce as sv
from sottovoce import spark

pytestmark = pytest.mark.spark
PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
CONTENTS: list[list[tuple[str | None, float | None]]] = [
    [("a", 1.0)],
    [(None, 1.0)],
    [("SECRET", 1.0)],
    [("b", 0.0)],
    [("b", None), ("SECRET", 2.0)],
    [("a", 5.0), ("b", 3.0), ("c", 2.0)],
    [("c", 40.0)],
]


@pytest.mark.parametrize("charged", [False, True])
def test_promise_23_spark_writes_alike_whatever_a_user_has(
    session: Any, tmp_path: Path, charged: bool
) -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    seen = set()
    for number, contents in enumerate(CONTENTS):
        rows = [("u1", "a", 1.0), *(("u2", *record) for record in contents), ("u3", "b", 1.0)]
        frame = session.createDataFrame(rows, "who string, genre string, weight double")
        out = tmp_path / str(number)
        more: dict[str, Any] = (
            {"ledger": sv.Ledger.create(tmp_path / f"{number}.db", budget=1)} if charged else {}
        )
        people = spark.release(frame, mechanism, str(out), user="who", item="genre", weight="weight", **more)
        files = sorted(path for path in out.glob("*.parquet"))
        parts = [pl.read_parquet(path) for path in files]
        columns = [part.drop("genre").rows() for part in parts]
        seen.add((people, str(columns)))
    assert len(seen) == 1
    assert people == 3
