"""One person is one person however the name is spelled, and Spark holds nothing when it is done."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sottovoce as sv
from sottovoce import spark
from sottovoce.spark.cells import cells_by_person
from sottovoce.tables.reader import Columns

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
NAMED: dict[str, Any] = {"user": "who", "item": "genre", "by": "age"}
PRIOR = sv.Prior(["a", "b"], [0.6, 0.4])


def test_spellings_of_one_name_are_one_person_in_several_groups(session: Any, tmp_path: Path) -> None:
    """More pairs than fall into the same partitions by chance; local and Spark refuse in one voice."""
    rows = []
    for i in range(40):
        name = f"Zoë-가{i}"
        other = unicodedata.normalize("NFD", name) if i % 2 else f"\u2003{name}\t"
        rows += [(name, "a", "old"), (other, "b", "new"), (f"plain{i}", "a", "old")]
    prior = {"old": PRIOR, "new": PRIOR}
    here = pl.DataFrame(rows, schema=["who", "genre", "age"], orient="row")
    with pytest.raises(sv.errors.UserDataError, match="40 of 120 users have more than one") as local:
        sv.read_users(here, **NAMED, prior=prior)
    there = session.createDataFrame(rows, "who string, genre string, age string")
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    with pytest.raises(sv.errors.UserDataError, match=re.escape(str(local.value))):
        spark.release(there, {"old": mechanism, "new": mechanism}, str(tmp_path / "out"), **NAMED)


def test_the_table_is_shuffled_once_and_nothing_stays_held(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([(f"u{i}", "ab"[i % 2]) for i in range(99)], "who string, genre string")
    cells = cells_by_person(frame, Columns("genre", "who"))
    plan = cells._jdf.queryExecution().executedPlan().toString()
    assert len(re.findall(r"\bExchange\b", plan)) == 1, plan
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    held = session.sparkContext._jsc.getPersistentRDDs
    spark.release(frame, mechanism, str(tmp_path / "out"), user="who", item="genre")
    assert not held()
    with pytest.raises(sv.errors.TableError, match="there already"):
        spark.release(frame, mechanism, str(tmp_path / "out"), user="who", item="genre")
