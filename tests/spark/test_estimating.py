"""`spark.estimate` counts and refuses as one process does."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import sottovoce as sv
from sottovoce import spark
from sottovoce.collecting.model import model_of
from sottovoce.collecting.reports import read_reports

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
SCHEMA = "user string, age string, item string, mechanism string"


def mechanisms() -> dict[str, sv.Mechanism]:
    return {
        "old": sv.certify(sv.minimax_kernel(PRIOR, 1.0)),
        "new": sv.certify(sv.randomized_response(PRIOR, 2.0)),
    }


def rows(people: int = 600) -> list[tuple[str, ...]]:
    known = mechanisms()
    rng = np.random.default_rng(3)
    groups = [("old", "new")[int(rng.integers(2))] for _ in range(people)]
    return [(f"u{i}", g, "abc"[int(rng.integers(3))], known[g].digest) for i, g in enumerate(groups)]


def there_and_here(
    session: Any, made: list[tuple[Any, ...]], schema: str = SCHEMA
) -> tuple[Any, pl.DataFrame]:
    names = [field.split()[0] for field in schema.split(", ")]
    return session.createDataFrame(made, schema), pl.DataFrame(made, schema=names, orient="row")


def test_equal_to_one_process(session: Any) -> None:
    known = mechanisms()
    there, here = there_and_here(session, rows())
    found = spark.estimate(there, known, by="age", level=0.9)
    assert isinstance(found, dict)
    models = {name: model_of(one) for name, one in known.items()}
    counts, _ = read_reports(here, models, by="age")
    assert found.keys() == counts.keys() == {"old", "new"}
    for name, one in found.items():
        local = sv.estimate(known[name], counts[name], level=0.9)
        np.testing.assert_array_equal(one.counts, local.counts)
        np.testing.assert_array_equal(one.values, local.values)
        np.testing.assert_array_equal(one.interval(), local.interval())
    one_group = [row for row in rows() if row[1] == "old"]
    there, here = there_and_here(session, one_group)
    alone = spark.estimate(there, known["old"])
    assert isinstance(alone, sv.Estimate)
    np.testing.assert_array_equal(alone.values, sv.estimate(known["old"], here, item="item").values)


def test_reports_added_up_and_numbers_as_text(session: Any) -> None:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior([1, 2, 30], [0.5, 0.3, 0.2]), 1.0))
    expected = sv.estimate(mechanism, {1: 40, 2: 35, 30: 25})
    made = [("1", 40), ("2", 30), ("30", 25), ("2", 5)]
    there, _ = there_and_here(session, made, "item string, count long")
    found = spark.estimate(there, mechanism)
    assert isinstance(found, sv.Estimate)
    np.testing.assert_array_equal(found.values, expected.values)


@pytest.mark.parametrize("wrong", ["digest", "category", "twice", "nobody", "group", "no item"])
def test_the_same_refusals(session: Any, wrong: str) -> None:
    known: dict[str, sv.Mechanism] = mechanisms()
    made: list[tuple[Any, ...]] = list(rows(40))
    user, age, item, digest = made[7]
    if wrong == "digest":
        made[7] = (user, age, item, "0" * 64)
    elif wrong == "category":
        made[7] = (user, age, "z", digest)
    elif wrong == "twice":
        made.append((user, age, "a" if item != "a" else "b", digest))
    elif wrong == "nobody":
        made[7] = (None, age, item, digest)
    elif wrong == "group":
        made[7] = (user, "strange", item, digest)
    else:
        made[7] = (user, age, None, digest)
    there, here = there_and_here(session, made)
    models = {name: model_of(one) for name, one in known.items()}
    with pytest.raises(sv.errors.SottovoceError) as local:
        read_reports(here, models, by="age")
    with pytest.raises(sv.errors.SottovoceError) as remote:
        spark.estimate(there, known, by="age")
    assert str(remote.value) == str(local.value)
    assert type(remote.value) is type(local.value)
