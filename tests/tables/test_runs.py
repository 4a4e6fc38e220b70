"""Counting a file by runs of its users, against a count in plain dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.tables import columns as columns_room
from sottovoce.tables import files, frames, run_cells, runs
from sottovoce.tables.tally import Tally

Row = tuple[Any, ...]  # group, user, item
KEYS = ("group", "user", "item")
SHAPES: dict[str, tuple[int, int, int]] = {  # users, items, rows
    "one user with many rows": (1, 7, 4000),
    "users with one row each": (100_000, 7, 3000),
    "users with some rows": (200, 40, 3000),
    "an item a row": (50, 100_000, 2000),
    "one row": (1, 1, 1),
}
NINE = [f"e{n}" for n in reversed(range(12))]  # three of them are in no row
KINDS: dict[str, Callable[[list[int]], pl.Series]] = {
    "text": lambda numbers: pl.Series([f"é {n}" for n in numbers]),
    "whole numbers": lambda numbers: pl.Series(numbers, dtype=pl.Int64) - 3,
    "floats": lambda numbers: pl.Series([-0.0 if n == 1 else float(n // 2) for n in numbers]),
    "categories": lambda numbers: pl.Series([f"c{n}" for n in numbers], dtype=pl.Categorical),
    "one of a list": lambda numbers: pl.Series([f"e{n % 9}" for n in numbers], dtype=pl.Enum(NINE)),
}


def invented(shape: str, kinds: dict[str, str], seed: int) -> pl.DataFrame:
    """A table of a column per key, in no order."""
    users, items, rows = SHAPES[shape]
    random = np.random.default_rng(seed)
    sizes = {"group": 3, "user": users, "item": items}
    return pl.DataFrame(
        {key: KINDS[kind](random.integers(0, sizes[key], rows).tolist()) for key, kind in kinds.items()}
    )


def as_name(value: Any) -> str:
    """What a file's value is called."""
    return str(int(value)) if isinstance(value, float) else str(value)


def counted_slowly(table: pl.DataFrame) -> dict[Row, int]:
    """How many rows there are of each group, user and item, the slow and obvious way."""
    table = table if "group" in table.columns else table.with_columns(group=pl.lit("all"))
    return dict(Counter(tuple(as_name(value) for value in row) for row in table.select(KEYS).iter_rows()))


def cells_of(tally: Tally) -> dict[Row, int]:
    """The cells of a tally under their names; they must be in order, and every name must be in use."""
    assert tally.users is not None
    assert list(tally.groups) == sorted(set(tally.groups))
    assert list(tally.items) == sorted(set(tally.items))
    assert tally.users.tolist() == sorted(set(tally.users))
    codes = list(zip(tally.group.tolist(), tally.user.tolist(), tally.item.tolist(), strict=True))
    assert codes == sorted(set(codes))
    for place, names in enumerate((tally.groups, tally.users, tally.items)):
        assert {code[place] for code in codes} == set(range(len(names)))
    assert all(column.dtype == np.intp for column in (tally.group, tally.user, tally.item, tally.rows))
    names = [(tally.groups[g], str(tally.users[u]), str(tally.items[i])) for g, u, i in codes]
    return dict(zip(names, tally.rows.tolist(), strict=True))


def by_runs(table: pl.DataFrame, folder: Path) -> Tally:
    """The tally by way of runs, whether they suit the table or not."""
    path = folder / "log.parquet"
    table.write_parquet(path)
    columns = columns_room.Columns("item", "user", by="group" if "group" in table.columns else None)
    records = frames.record_frame(files.scan_table(path), columns).to_native()
    sent = runs.sorted_runs(records, files.collecting(path))
    parts = [bytes(part) for part in files.streams(*sent)]
    assert run_cells.as_cells(parts) is None
    return run_cells.tally_of_runs(parts, columns.keys(), as_text=True)


@pytest.mark.parametrize("grouped", [False, True], ids=["no groups", "groups"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_runs_give_the_counts_of_a_dictionary(shape: str, kind: str, grouped: bool, tmp_path: Path) -> None:
    others = {"user": kind, "item": "text"} if len(shape) % 2 else {"user": "text", "item": kind}
    for seed, kinds in enumerate(({"user": kind, "item": kind}, others)):
        table = invented(shape, {"group": "text", **kinds} if grouped else kinds, seed)
        tally = by_runs(table, tmp_path)
        assert cells_of(tally) == counted_slowly(table)
        assert tally.amount.tolist() == tally.score.tolist() == [float(n) for n in tally.rows]
        assert tally.by == ("group" if grouped else None)
        assert tally.long


@pytest.mark.parametrize("bits", [0, 1, 5])
def test_users_that_share_a_hash_are_not_mixed_up(
    bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = invented("users with some rows", {"group": "text", "user": "text", "item": "text"}, bits)
    monkeypatch.setattr(runs, "_BITS", bits)
    assert cells_of(by_runs(table, tmp_path)) == counted_slowly(table)


@pytest.mark.parametrize(("short", "largest"), [(1 << 32, 1 << 63), (0, 1 << 63), (0, 0)])
def test_every_width_of_the_packed_codes_counts_the_same(
    short: int, largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cells, "SHORT", short)
    monkeypatch.setattr(run_cells, "LARGEST", largest)
    for grouped in ({}, {"group": "text"}):
        table = invented("users with some rows", {**grouped, "user": "text", "item": "text"}, 3)
        assert cells_of(by_runs(table, tmp_path)) == counted_slowly(table)


def test_codes_that_need_more_than_32_bits() -> None:
    size = 1 << 17
    user, item = np.array([size - 1, 0, size - 1]), np.array([size - 1, 5, size - 1, size - 1, 5, 0])
    found, counts = run_cells._counted([user, item], [size, size], 0, np.array([3, 1, 2]))
    assert [codes.tolist() for codes in found] == [
        [0, size - 1, size - 1, size - 1],
        [size - 1, 0, 5, size - 1],
    ]
    assert counts.tolist() == [1, 1, 2, 2]


def test_codes_may_come_in_any_order_and_with_gaps() -> None:
    known = pa.table({"code_item": pa.array([9, 2, 5], pa.uint32()), "name_item": ["b", "c", "a"]})
    sent = pa.chunked_array([pa.array([5, 9], pa.uint32()), pa.array([2, 9], pa.uint32())])
    names, places = run_cells._record_codes(sent, known, "item", "what", as_text=True, lenient=False)
    assert [names[place] for place in places] == ["a", "b", "c", "b"]
    assert names.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", KEYS)
def test_missing_names_are_counted_by_the_row(key: str, kind: str, tmp_path: Path) -> None:
    table = invented(
        "users with some rows", {"group": "text", "user": "text", "item": "text"} | {key: kind}, 4
    )
    number = pl.int_range(pl.len())
    holed = table.with_columns(pl.when(number % 7 == 2).then(None).otherwise(pl.col(key)).alias(key))
    missing = sum(value is None for value in holed[key].to_list())
    with pytest.raises(sv.TableError, match=f"column '{key}' has {missing} missing values: fill them in"):
        by_runs(holed, tmp_path)


def test_the_first_wrong_column_is_named_and_an_empty_table_is_refused(tmp_path: Path) -> None:
    nothing = pl.DataFrame({key: pl.Series([None, "a"], dtype=pl.String) for key in KEYS})
    with pytest.raises(sv.TableError, match="column 'group' has 1 missing"):
        by_runs(nothing, tmp_path)
    with pytest.raises(sv.TableError, match="column 'user' has 1 missing"):
        by_runs(nothing.drop("group"), tmp_path)
    for kind in (pl.String, pl.Int64, pl.Categorical):
        empty = pl.DataFrame({key: pl.Series([], dtype=kind) for key in KEYS})
        with pytest.raises(sv.TableError, match="the table is empty"):
            by_runs(empty, tmp_path)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("items", [2, 5000], ids=["many rows a cell", "a row a cell"])
def test_a_file_is_counted_alike_whichever_way_suits_it(ending: str, items: int, tmp_path: Path) -> None:
    random = np.random.default_rng(items)
    rows = 2000
    table = pl.DataFrame(
        {
            "group": [f"g{n}" for n in random.integers(0, 2, rows)],
            "user": [f"u{n}" for n in random.integers(0, 90, rows)],
            "item": [f"i{n}" for n in random.integers(0, items, rows)],
            "amount": random.integers(0, 1000, rows),
        }
    )
    path = tmp_path / f"log.{ending}"
    write: dict[str, Callable[[Path], object]] = {
        "parquet": table.write_parquet,
        "csv": table.write_csv,
        "jsonl": table.write_ndjson,
    }
    write[ending](path)
    keys = table.select(key_user="user", key_item="item").lazy()
    assert runs.suits(keys, path) == (items == 5000)
    assert cells_of(sv.count_table(path, user="user", item="item", by="group")) == counted_slowly(table)
    weighed = sv.count_table(path, user="user", item="item", by="group", weight="amount")
    assert cells_of(weighed) == counted_slowly(table)
    totals: Counter[Row] = Counter()
    for *names, amount in table.select(*KEYS, "amount").iter_rows():
        totals[tuple(names)] += amount
    assert weighed.amount.tolist() == [totals[cell] for cell in cells_of(weighed)]


def test_a_table_that_is_too_large_is_grouped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"key_user": ["a", "b", "c"], "key_item": ["x", "x", "y"]})
    table.write_parquet(tmp_path / "log.parquet")
    table.write_csv(tmp_path / "log.csv")
    for ending in ("parquet", "csv"):
        assert runs.suits(table.lazy(), tmp_path / f"log.{ending}")
    monkeypatch.setattr(runs, "MOST_ROWS", 2)
    monkeypatch.setattr(runs, "MOST_BYTES", 10)
    assert not runs.suits(table.lazy(), tmp_path / "log.parquet")
    assert not runs.suits(table.lazy(), tmp_path / "log.csv")
