"""One Spark with two worker processes for the tests of this folder; `make test-spark` installs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sottovoce.spark.session import session as start


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="make test-spark installs it")
    started = start("local-cluster[2,1,1024]")
    yield started
    started.stop()
