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


@pytest.mark.parametrize("charged", [False, True])
def test_promise_23_the_order_of_rows_is_that_of_names_alone(
    session: Any, tmp_path: Path, charged: bool
) -> None:
    """Users are read group by group, in batches that end after so many counts: neither shows."""
    made = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    columns: dict[str, Any] = {"user": "the.who", "item": "genre", "by": "g"}
    seen = set()
    for number, items in enumerate(("a", "abc")):
        rows = [(f"u{i}", "xy"[i % 2], item) for i in range(40) for item in (items if i == 7 else "b")]
        out = tmp_path / str(number)
        more: dict[str, Any] = (
            {"ledger": sv.Ledger.create(tmp_path / f"{number}.db", budget=1)} if charged else {}
        )
        frame = session.createDataFrame(rows, "`the.who` string, g string, genre string")
        assert spark.release(frame, {"x": made, "y": made}, str(out), **columns, **more) == 40
        parts = [pl.read_parquet(path)["the.who"].to_list() for path in sorted(out.glob("*.parquet"))]
        assert all(part == sorted(part) for part in parts)
        seen.add(str(parts))
    assert len(seen) == 1


def test_an_amount_that_is_no_number_is_refused(session: Any, tmp_path: Path) -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    frame = session.createDataFrame([("u1", "a", "1,5")], "who string, genre string, weight string")
    with pytest.raises(sv.errors.TableError, match="finite numbers"):
        spark.release(frame, mechanism, str(tmp_path / "out"), user="who", item="genre", weight="weight")
