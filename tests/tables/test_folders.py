"""A column is what the file calls so: no folder on its path is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import run
from workbooks import write_workbook

import sottovoce as sv

ROWS: list[dict[str, Any]] = [
    {"user": f"u{i}", "item": "ab"[i % 2], "weight": 1 + i % 3, "group": "xy"[i % 2]} for i in range(6)
]
FORMS = ["csv", "csv.gz", "parquet", "json", "jsonl", "xlsx"]


def write(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """These rows in the form that the name of the file tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows)
    if path.suffix in (".csv", ".gz"):
        frame.write_csv(path, compression="gzip" if path.suffix == ".gz" else "uncompressed")
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".xlsx":
        write_workbook(path, [frame.columns, *map(list, frame.rows())])
    elif path.suffix == ".json":
        path.write_text(json.dumps(frame.to_dicts()), encoding="utf-8")
    else:
        frame.write_ndjson(path)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("folder", ["user=team7", "item=a", "weight=1000", "group=x"])
def test_promise_30_a_folder_is_no_column_of_a_release(tmp_path: Path, form: str, folder: str) -> None:
    sampler = sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 30.0)  # everybody releases their own
    sv.certify(sampler).save(tmp_path / "m.json")
    ledger = tmp_path / "l.db"
    assert run("ledger", "create", ledger, "--budget", 60).returncode == 0
    table = write(tmp_path / folder / f"t.{form}")
    done = run("release", tmp_path / "m.json", table, "-o", tmp_path / "r.csv", "--ledger", ledger)
    assert done.returncode == 0, done.stderr
    released = pl.read_csv(tmp_path / "r.csv")
    assert released["user"].to_list() == [row["user"] for row in ROWS]
    assert released["item"].to_list() == [row["item"] for row in ROWS]
    opened = sv.Ledger.open(ledger)
    assert [opened.left(row["user"]) for row in ROWS] == [30] * 6
    assert opened.left("team7") == 60


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("folder", ["user=team7", "item=a", "weight=1000", "group=x"])
def test_promise_30_a_folder_changes_nothing_that_is_counted(tmp_path: Path, form: str, folder: str) -> None:
    prior = sv.Prior(["a", "b"], [0.5, 0.5])
    named: dict[str, Any] = {"user": "user", "item": "item", "weight": "weight", "by": "group"}
    plain, below = write(tmp_path / f"t.{form}"), write(tmp_path / folder / f"t.{form}")
    assert sv.build_prior(plain, **named, smoothing=1) == sv.build_prior(below, **named, smoothing=1)
    users = [sv.read_users(path, **named, prior=prior) for path in (plain, below)]
    assert [{name: (one.ids, one.p.toarray().tolist()) for name, one in each.items()} for each in users] == [
        {"x": (("u0", "u2", "u4"), [[1, 0]] * 3), "y": (("u1", "u3", "u5"), [[0, 1]] * 3)}
    ] * 2
    mechanism = sv.certify(sv.kernel_clip(prior, 1.0))
    rows = [{"user": row["user"], "item": row["item"]} for row in ROWS]
    found = [
        sv.estimate(mechanism, write(path.with_name(f"reports.{form}"), rows)).counts.tolist()
        for path in (plain, below)
    ]
    assert found == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("form", FORMS)
def test_promise_30_a_column_of_the_name_of_a_folder_alone_is_not_there(tmp_path: Path, form: str) -> None:
    rows = [{"user": row["user"]} for row in ROWS]
    table = write(tmp_path / "item=a" / f"t.{form}", rows)
    with pytest.raises(sv.errors.TableError, match="there is no column 'item'"):
        sv.build_prior(table, item="item")
