"""Spark gives the numbers of one process, on a real Spark with two worker processes.

Run by `make test-spark`, which installs pyspark; needs Java 17.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rows import columns, table

import sottovoce as sv
from sottovoce import spark
from sottovoce.spark import cells as spark_cells
from sottovoce.tables.reader import Columns

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
AVAZU: dict[str, Any] = {"user": "device_id", "item": "site_id", "by": "C18"}


def test_more_than_one_process_works(session: Any) -> None:
    def who(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            yield pyarrow.record_batch({"process": [os.getpid()] * batch.num_rows})

    frame = session.createDataFrame([(f"u{i}", "a") for i in range(200)], "who string, genre string")
    cells = spark_cells.cells_by_person(frame, Columns("genre", "who"))
    found = [row[0] for row in cells.mapInArrow(who, "process long").collect()]
    assert len(found) == 200
    assert len(set(found)) >= 2
    assert os.getpid() not in found


def test_priors_and_users_from_spark(session: Any) -> None:
    rows = table(7)
    here = pl.DataFrame(columns(rows))
    there = session.createDataFrame(rows, "age string, who string, genre string, stars long, clicks long")
    named: dict[str, Any] = {"user": "who", "item": "genre", "weight": "stars", "by": "age"}
    priors = sv.build_prior(there, **named, smoothing=1, provenance="public")
    assert priors == sv.build_prior(here, **named, smoothing=1, provenance="public")
    users = sv.read_users(there, **named, prior=priors, several_groups="allow")
    close_users = sv.read_users(here, **named, prior=priors, several_groups="allow")
    for group in users:
        np.testing.assert_allclose(users[group].p.toarray(), close_users[group].p.toarray(), rtol=1e-12)


def test_compare_and_estimate_by_the_recipe(session: Any, tmp_path: Path) -> None:
    """A comparison of a sample of users, and an estimate from counted reports: no code of ours on Spark."""
    rows = [(f"u{k}", "abc"[(k + j * j) % 3]) for k in range(3_000) for j in range(4)]
    frame = session.createDataFrame(rows, "user string, item string")
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    mechanism = sv.certify(sv.minimax_kernel(prior, 2.0))
    some = frame.select("user").distinct().sample(0.1, seed=1)
    users = sv.read_users(frame.join(some, "user"), user="user", item="item", prior=prior)
    assert 200 < len(users) < 400
    assert sv.compare(users, [sv.fitted(prior, 2.0), sv.kernel_clip(prior, 2.0)]).rows[0].users == len(users)
    spark.release(frame, mechanism, str(tmp_path / "reports"), user="user", item="item")
    reports = session.read.parquet(str(tmp_path / "reports"))
    counts = {row["item"]: row["count"] for row in reports.groupBy("item").count().collect()}
    found = sv.estimate(mechanism, counts)
    local = sv.estimate(mechanism, pl.read_parquet(tmp_path / "reports" / "*.parquet"))
    np.testing.assert_array_equal(found.values, local.values)


def test_release_writes_one_report_per_user(session: Any, tmp_path: Path) -> None:
    people = 20_000
    frame = session.createDataFrame([(f"u{i}", "b") for i in range(people)], "who string, genre string")
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2]), 1.0))
    out = tmp_path / "reports"
    assert spark.release(frame, mechanism, str(out), user="who", item="genre") == people
    reports = pl.read_parquet(out / "*.parquet")
    assert reports.columns == ["who", "genre", "epsilon", "mechanism"]
    assert reports["who"].n_unique() == reports.height == people
    assert set(reports["mechanism"]) == {mechanism.digest}
    drawn = Counter(reports["genre"].to_list())
    for category, share in zip("abc", mechanism.law(records=["b"]), strict=True):
        sigma = (float(share) * (1 - float(share)) / people) ** 0.5
        assert abs(drawn[category] / people - float(share)) < 6 * sigma
    with pytest.raises(sv.errors.TableError, match="it is there already"):
        spark.release(frame, mechanism, str(out), user="who", item="genre")
    assert len(list(out.glob("*.parquet"))) >= 2


def test_a_survey_is_answered_and_estimated(session: Any, tmp_path: Path) -> None:
    survey = sv.certify(sv.survey([f"shop {i}" for i in range(300)], 4.0))
    frame = session.createDataFrame(
        [(f"u{k}", f"shop {k % 4}") for k in range(400)], "user string, item string"
    )
    assert spark.release(frame, survey, str(tmp_path / "reports"), user="user", item="item") == 400
    reports = session.read.parquet(str(tmp_path / "reports"))
    found = sv.estimate(survey, [int(row["item"]) for row in reports.collect()])
    assert found.values[:4].sum() > 0.8


def test_release_in_groups_and_refusals_before_any_draw(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame(
        [("u", "a", "old"), ("v", "SECRET", "new")], "who string, genre string, age string"
    )
    one = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0))
    named: dict[str, Any] = {"user": "who", "item": "genre", "by": "age"}
    out = tmp_path / "reports"
    with pytest.raises(sv.errors.UserDataError, match="1 of 2 rows do not name one") as caught:
        spark.release(frame, {"old": one, "new": one}, str(out), **named, unknown="error")
    assert "SECRET" not in str(caught.value)
    with pytest.raises(sv.errors.UserDataError, match="1 of 2 users have no usable record"):
        spark.release(frame, {"old": one, "new": one}, str(out), **named, unknown="drop")
    with pytest.raises(sv.errors.TableError, match="1 of 2 groups have no prior"):
        spark.release(frame, {"old": one}, str(out), **named)
    assert not out.exists()
    assert spark.release(frame, {"old": one}, str(out), **named, unknown_groups="drop") == 1
    assert pl.read_parquet(out / "*.parquet").columns == ["who", "age", "genre", "epsilon", "mechanism"]


def test_promise_14_release_publishes_no_set_of_groups_and_no_items(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame(
        [("u", "a", "old"), ("u", "b", "new"), ("v", "b", "new")], "who string, genre string, age string"
    )
    one = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.6, 0.4]), 1.0))
    out = tmp_path / "reports"
    named: dict[str, Any] = {"user": "who", "item": "genre", "by": "age"}
    with pytest.raises(
        sv.errors.UserDataError, match="1 of 2 users have more than one value in column 'age'"
    ):
        spark.release(frame, {"old": one, "new": one}, str(out), **named)
    for by in ("who", "genre", "item", "user"):
        with pytest.raises(sv.errors.ParameterError, match=r"cannot be a group|must differ"):
            spark.release(frame, {"a": one, "b": one}, str(out), **{**named, "by": by})
    assert not out.exists()
    assert spark.release(frame, {"old": one, "new": one}, str(out), **named, several_groups="allow") == 3


def test_release_refuses_a_marked_prior_and_writes_for_its_owner_alone(session: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = [(f"u{u}", "abcde"[i]) for u in range(60) for i in rng.choice(5, 6, p=rng.dirichlet(np.ones(5)))]
    frame = session.createDataFrame(rows, "who string, genre string")
    out = tmp_path / "reports"
    named: dict[str, Any] = {"user": "who", "item": "genre"}
    for digits in (17, 6):
        counts = Counter(item for _, item in rows)
        shares = {name: round(counts[name] / len(rows), digits) for name in "abcde"}
        mechanism = sv.certify(sv.kernel_clip(sv.Prior.from_counts(shares), 1.0))
        shutil.rmtree(out, ignore_errors=True)
        assert spark.release(frame, mechanism, str(out), **named) == 60  # what users have decides nothing
    for path in (out, *out.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path.name
    marked = sv.Prior.from_counts(shares, provenance="users")
    admitted = sv.certify(sv.kernel_clip(marked, 1.0), provenance="users")
    with pytest.raises(sv.errors.PriorError, match="provenance='users'"):
        spark.release(frame, admitted, str(tmp_path / "more"), **named)
    assert not (tmp_path / "more").exists()
    with pytest.warns(UserWarning, match="made from the very users it serves"):
        people = spark.release(frame, admitted, str(tmp_path / "more"), **named, provenance="users")
    assert people == 60


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("u", None, 1.0)], "^column 'genre' has 1 missing values$"),
        ([(None, "a", 1.0)], "^column 'who' has 1 missing values$"),
        ([("u", "a", -1.0)], "^column 'stars' must hold finite numbers of at least 0: 1 of 1 rows do not$"),
        ([("u", "a", None)], "at least 0: 1 of 1 rows do not$"),
        ([("u", "z", 1.0)], "1 of 1 rows do not name one"),
        ([("u", "a", 0.0)], "^1 of 1 users have no usable record"),
        ([], "the table is empty"),
    ],
)
def test_bad_tables(session: Any, tmp_path: Path, rows: list[Any], message: str) -> None:
    frame = session.createDataFrame(rows, "who string, genre string, stars double")
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0))
    with pytest.raises(sv.errors.SottovoceError, match=message):
        spark.release(
            frame, mechanism, str(tmp_path / "out"), user="who", item="genre", weight="stars", unknown="error"
        )
    assert not (tmp_path / "out").exists()


def test_options_that_do_not_fit(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([("u", "a", True)], "who string, genre string, told boolean")
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"user": "x"}, "there is no column 'x'"),
        ({"user": "told"}, "column 'told' must hold text or integers, it holds boolean"),
        ({"weight": "told"}, "column 'told' must hold numbers, it holds boolean"),
        ({"by": "told"}, "needs the group column|per group"),
        ({"item": ["genre"]}, "UNPIVOT"),
        ({"unknown": "other"}, "no category 'other'"),
        ({"empty": "maybe"}, "one of error, skip"),
    ]
    for named, message in refused:
        with pytest.raises(sv.errors.SottovoceError, match=message):
            spark.release(
                frame, mechanism, str(tmp_path / "out"), **{"user": "who", "item": "genre", **named}
            )
