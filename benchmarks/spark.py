"""Spark: a release against its own group-by, in one session, on a table that start-up does not dominate."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree, which
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sottovoce as sv

from .measure import Line, at_most, seconds

USERS, ROWS, ITEMS = 250_000, 20, 100
SETTINGS: dict[str, Any] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
}


def table_of_users(path: Path) -> Path:
    """Five million rows in no order: 250,000 users of twenty records each, a hundred items."""
    rng = np.random.default_rng(5)
    user = rng.permutation(np.repeat(np.arange(USERS), ROWS))
    item = rng.choice(ITEMS, len(user), p=rng.dirichlet(np.full(ITEMS, 2.0)))
    names = pa.DictionaryArray.from_arrays(pa.array(user), pa.array([f"user-{i:07d}" for i in range(USERS)]))
    items = pa.DictionaryArray.from_arrays(pa.array(item), pa.array([f"item{i:03d}" for i in range(ITEMS)]))
    rows = pa.table({"who": names.cast(pa.string()), "genre": items.cast(pa.string())})
    pq.write_table(rows, path, row_group_size=500_000)
    return path


def releases() -> list[Line]:
    """`spark.release` on local[2], against the same grouping and the plain one, each with a trivial write."""
    if find_spec("pyspark") is None or which("java") is None:
        return [Line("SKIPPED: Spark needs pyspark (make test-spark) and Java 17", "–", "–", "–", "", True)]
    from pyspark.sql import SparkSession

    from sottovoce import spark
    from sottovoce.spark.cells import cells_by_person
    from sottovoce.tables.reader import Columns

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    started = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    prior = sv.Prior([f"item{i:03d}" for i in range(ITEMS)], np.full(ITEMS, 1 / ITEMS))
    mechanism = sv.certify(sv.minimax_kernel(prior, 2.0))
    try:
        with tempfile.TemporaryDirectory() as temporary:
            frame: Any = started.read.parquet(str(table_of_users(Path(temporary) / "log.parquet")))
            out = Path(temporary) / "reports"

            def release() -> None:
                rmtree(out, ignore_errors=True)
                spark.release(frame, mechanism, str(out), user="who", item="genre")

            def write(cells: Any) -> None:
                cells.write.format("noop").mode("overwrite").save()

            cells = cells_by_person(frame, Columns("genre", "who"))
            release()  # Java compiles what it runs often
            grouping = seconds(lambda: write(cells), 2)
            ours = seconds(release, 2)
            plain = seconds(lambda: write(frame.groupBy("who", "genre").count()), 1)
    finally:
        started.stop()
    what = "5,000,000 rows to 250,000 reports"
    return [
        at_most(f"{what}, against the same grouping and a write of nothing", ours, grouping, 1.5),
        at_most("the same, against Spark's groupBy().count()", ours, plain, 1.5),
    ]


SECTIONS = {"Spark": releases}
