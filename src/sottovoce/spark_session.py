"""Starting Spark, reading files with it, and telling its failures in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .errors import ParameterError, SottovoceError, TableError
from .files import kind_of

_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "8",
}
_Result = TypeVar("_Result")


def session(master: str | None = None) -> Any:
    """A Spark session on `master`, with Arrow on and little to say; an existing one is used as it is."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise ParameterError(
            "Spark needs pyspark and Java 17; install it with: pip install 'sottovoce[spark]'"
        ) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("sottovoce").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # one machine: no outside address, and not two hundred small tasks
            for key, value in _LOCAL.items():
                builder = builder.config(key, value)
    return told(builder.getOrCreate, "is Java 17 there, and the master right?")


def read_file(started: Any, path: str) -> Any:
    """A table file as Spark reads it, by its extension; CSV columns are text."""
    kind = kind_of(Path(path))
    if kind in (".csv", ".tsv"):
        separator = "," if kind == ".csv" else "\t"
        return told(lambda: started.read.csv(path, header=True, sep=separator))
    if kind in (".jsonl", ".ndjson"):
        return told(lambda: started.read.json(path))
    if kind == ".parquet":
        return told(lambda: started.read.parquet(path))
    raise TableError(f"{path} cannot be read by Spark: its name must end in .csv, .tsv, .parquet or .jsonl")


def told(call: Callable[[], _Result], hint: str = "its log says more") -> _Result:
    """Run something in Spark; its errors, which may quote data, become one line without them."""
    reason = ""
    try:
        return call()
    except SottovoceError:
        raise
    except Exception as problem:
        reason = type(problem).__name__
    raise TableError(f"Spark could not do it: {reason} ({hint})")
