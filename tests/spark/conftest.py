"""One Spark with two worker processes for the tests of this folder; `make test-spark` installs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
}


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="make test-spark installs it")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("sottovoce").master("local-cluster[2,1,1024]")
    started = builder.config(map=SETTINGS).getOrCreate()
    yield started
    started.stop()
