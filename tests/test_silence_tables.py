"""Pairs of tables that differ in one person's content, in every form that a table has.

The exit code, the names of the rows, their order and their number are the same, whatever the person has.
`REFUSED` is the list of exceptions, and docs/guarantees.md has the same list.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from workbooks import Cell, Raw, date, duration, error, write_workbook

import sottovoce as sv
from sottovoce.tables import reader

GUARANTEES = Path(__file__).parents[1] / "docs" / "guarantees.md"
OTHERS = [("u1", "a"), ("u1", "b"), ("u3", "b"), ("u4", "a")]
MECHANISM = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.001, 0.999]), 20.0))
"""At ε = 20 nearly everybody releases a category of their own: what others have is seen to be read."""
TEXTS: dict[str, str] = {
    "a category": "a",
    "unknown": "x",
    "empty": "",
    "a blank": " ",
    "a number": "1",
    "long": "y" * 3_000_000,
    "carriage return": "x\ry",
    "carriage return at the end": "x\r",
    "carriage returns and line feeds": "\r\n\n\r",
    "separators": "x,y;z\tw|",
    "quotation marks": '5" "disk"',
    "NUL": "x\0y",
    "control characters": "x\x0b\x0c\x1c\x85\u2028y",
    "byte order mark": "\ufeffa",
    "emoji": "\U0001f600",
    "not a number": "NaN",
    "like a date": "2024-03-01 00:00:00",
    "like a formula": "=1+1",
    "braces": '{"user": "u9"}',
}


def with_mine(*mine: Any) -> list[tuple[str, Any]]:
    """The others' records, with those of u2 among them."""
    return [*OTHERS[:2], *(("u2", item) for item in mine), *OTHERS[2:]]


def check_released(table: Path, tmp_path: Path) -> None:
    """The command writes a row for each of the four, in order, and what the others have is read as ever."""
    mechanism, out = tmp_path / "m.json", tmp_path / "r.csv"
    if not mechanism.exists():
        MECHANISM.save(mechanism)
    done = run("release", mechanism, table, "-o", out, "--max-epsilon", 20, "--force")
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout == ""
    released = pl.read_csv(out)
    assert released["user"].to_list() == ["u1", "u2", "u3", "u4"]
    assert released["item"].to_list()[2:] == ["b", "a"]


# --- texts, in every form that can hold them --------------------------------------------------------------


def to_csv(path: Path, rows: list[tuple[str, Any]], **options: Any) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, **options).writerows([("user", "item"), *rows])
    return path


def to_pandas_csv(path: Path, rows: list[tuple[str, Any]]) -> Path:
    pd.DataFrame(rows, columns=["user", "item"]).to_csv(path, index=False, lineterminator="\n")
    return path


def to_json(path: Path, rows: list[tuple[str, Any]]) -> Path:
    records = [{"user": user, "item": item} for user, item in rows]
    text = json.dumps(records) if path.suffix == ".json" else "\n".join(map(json.dumps, records))
    path.write_text(text, encoding="utf-8")
    return path


def to_parquet(path: Path, rows: list[tuple[str, Any]]) -> Path:
    pl.DataFrame(rows, schema={"user": pl.String, "item": pl.String}, orient="row").write_parquet(path)
    return path


def to_gzip(path: Path, rows: list[tuple[str, Any]]) -> Path:
    plain = to_csv(path.with_name("plain.csv"), rows)
    path.write_bytes(gzip.compress(plain.read_bytes(), 1))
    return path


FILES: dict[str, Callable[[Path, list[tuple[str, Any]]], Path]] = {
    "t.csv": to_csv,
    "lf.csv": lambda path, rows: to_csv(path, rows, lineterminator="\n"),
    "semicolons.csv": lambda path, rows: to_csv(path, rows, delimiter=";", lineterminator="\n"),
    "all-quoted.csv": lambda path, rows: to_csv(path, rows, quoting=csv.QUOTE_ALL, lineterminator="\n"),
    "pandas.csv": to_pandas_csv,
    "t.csv.gz": to_gzip,
    "t.parquet": to_parquet,
    "t.json": to_json,
    "t.jsonl": to_json,
}


@pytest.mark.parametrize("form", FILES)
def test_promise_23_any_text_of_one_person_leaves_a_file_as_it_is(tmp_path: Path, form: str) -> None:
    for text in TEXTS.values():
        check_released(FILES[form](tmp_path / form, with_mine(text)), tmp_path)
    check_released(FILES[form](tmp_path / form, with_mine(*TEXTS.values())), tmp_path)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("item", ["x\ry", "x\r", "\r", "x\r\ry", '5"\rz'])
def test_promise_23_a_carriage_return_without_quotes_is_a_part_of_its_text(
    tmp_path: Path, ends: str, item: str
) -> None:
    lines = ["user,item", *(f"{user},{text}" for user, text in with_mine(item))]
    (tmp_path / "t.csv").write_text(ends.join(lines) + ends, encoding="utf-8", newline="")
    check_released(tmp_path / "t.csv", tmp_path)


@pytest.mark.parametrize("item", ['"x\ny"', '"\n"', "x\ny", "\n", '"x\r\ny"', '"x\ry"'])
def test_promise_23_a_line_feed_is_a_part_of_its_text_where_lines_end_with_a_carriage_return(
    tmp_path: Path, item: str
) -> None:
    lines = ["user,item", *(f"{user},{text}" for user, text in with_mine(item))]
    (tmp_path / "t.csv").write_text("\r".join(lines) + "\r", encoding="utf-8", newline="")
    check_released(tmp_path / "t.csv", tmp_path)


@pytest.mark.parametrize("empty", ["", '""', '" "'])
def test_promise_23_an_empty_amount_counts_for_nothing_quoted_or_not(tmp_path: Path, empty: str) -> None:
    lines = ["user,item,weight", "u1,a,1", "u1,b,1", f"u2,a,{empty}", "u3,b,1", "u4,a,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    check_released(tmp_path / "t.csv", tmp_path)
    records = [{"user": user, "item": item, "w": 1 if user != "u2" else ""} for user, item in with_mine("a")]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    released = sv.read_users(
        tmp_path / "t.jsonl", user="user", item="item", weight="w", prior=MECHANISM, unknown="prior"
    )
    assert released.ids == ("u1", "u2", "u3", "u4")


def test_a_quotation_mark_that_opens_a_text_swallows_lines_up_to_the_next(tmp_path: Path) -> None:
    """Nothing in the form tells it from a text of several lines: the guarantees list it."""
    (tmp_path / "t.csv").write_text('user,item\nu1,a\nu2,"x\nu3,b\nu2,y"\nu4,a\n', encoding="utf-8")
    MECHANISM.save(tmp_path / "m.json")
    terms = ["-o", tmp_path / "r.csv", "--max-epsilon", 20]
    done = run("release", tmp_path / "m.json", tmp_path / "t.csv", *terms)
    assert done.returncode == 0, done.stderr
    assert pl.read_csv(tmp_path / "r.csv")["user"].to_list() == ["u1", "u2", "u4"]


@pytest.mark.parametrize("form", ["t.csv", "t.json", "t.jsonl", "t.csv.gz"])
@pytest.mark.parametrize("broken", [b"x\xffy", b"\xc3", b"\xed\xa0\xbd", b"a\x80", b"\xe9"])
def test_promise_23_a_byte_that_is_not_utf_8_makes_an_unknown_item(
    tmp_path: Path, form: str, broken: bytes
) -> None:
    for fill in (0, 1 << 20):  # in the first bytes that are looked at, and far behind
        rows = [*(("u0", "a") for _ in range(fill // 20)), *with_mine("BROKEN")]
        raw = FILES[form](tmp_path / form, rows).read_bytes()
        raw = gzip.decompress(raw) if form.endswith(".gz") else raw
        raw = raw.replace(b"BROKEN", broken)
        (tmp_path / form).write_bytes(gzip.compress(raw, 1) if form.endswith(".gz") else raw)
        MECHANISM.save(tmp_path / "m.json")
        out = tmp_path / "r.csv"
        done = run("release", tmp_path / "m.json", tmp_path / form, "-o", out, "--max-epsilon", 20, "--force")
        assert done.returncode == 0, done.stderr
        assert pl.read_csv(out)["user"].to_list()[-4:] == ["u1", "u2", "u3", "u4"]


def test_two_broken_names_of_users_are_two_users(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"user,item\n\xe9,a\n\xe8,b\n")
    MECHANISM.save(tmp_path / "m.json")
    done = run(
        "release", tmp_path / "m.json", tmp_path / "t.csv", "-o", tmp_path / "r.csv", "--max-epsilon", 20
    )
    assert done.returncode == 0, done.stderr
    assert "encoding" in done.stderr
    assert pl.read_csv(tmp_path / "r.csv")["user"].to_list() == ["\ufffde8", "\ufffde9"]


# --- records of JSON ----------------------------------------------------------------------------------------

RECORDS: dict[str, str] = {
    "half an emoji": r'{"user": "u2", "item": "\ud83d"}',
    "the other half": r'{"user": "u2", "item": "x\ude00"}',
    "half an emoji in a key": r'{"user": "u2", "\uD83D": "a", "item": "b"}',
    "a key with a blank": '{"user": "u2", "item ": "a"}',
    "a key in other letters": '{"user": "u2", "Item": "a", "ITEM": "b"}',
    "a key with NUL": r'{"user": "u2", "item\u0000": "a", "x\u0000": 1, "item": "b"}',
    "an empty key": '{"user": "u2", "": "a"}',
    "a key twice": '{"user": "u2", "item": "a", "item": "b"}',
    "250 keys": json.dumps({"user": "u2", "item": "b"} | {f"hiv positive {i}": i for i in range(250)}),
    "no item": '{"user": "u2"}',
    "null": '{"user": "u2", "item": null}',
    "a list": '{"user": "u2", "item": ["a", "b"]}',
    "an object": '{"user": "u2", "item": {"a": 1}}',
    "true": '{"user": "u2", "item": true}',
    "a fraction": '{"user": "u2", "item": 1.5e300}',
    "an integer of 400 digits": f'{{"user": "u2", "item": {"7" * 400}}}',
    "deep": f'{{"user": "u2", "item": {"[" * 5000}{"]" * 5000}}}',
    "40 MB": json.dumps({"user": "u2", "item": "y" * 40_000_000}),
    "40 MB elsewhere": json.dumps({"user": "u2", "item": "a", "note": "y" * 40_000_000}),
    "columns of other tables": '{"user": "u2", "item": "a", "weight": -1, "count": "x", "none": 3, "json": 1}',
    "like a prior file": '{"format": "sottovoce-prior", "user": "u2", "item": "b"}',
}


@pytest.mark.parametrize("form", ["t.json", "t.jsonl"])
@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("first", [False, True])
def test_promise_23_any_record_of_one_person_leaves_a_json_table_as_it_is(
    tmp_path: Path, form: str, kind: str, first: bool
) -> None:
    others = [json.dumps({"user": user, "item": item}) for user, item in OTHERS]
    records = [RECORDS[kind], *others] if first else [*others[:2], RECORDS[kind], *others[2:]]
    text = f"[{', '.join(records)}]" if form == "t.json" else "\n".join(records)
    (tmp_path / form).write_text(text, encoding="utf-8")
    check_released(tmp_path / form, tmp_path)


@pytest.mark.parametrize("command", [["prior"], ["release", "m.json"], ["compare", "p.json", "-e", 1]])
def test_no_key_of_a_record_is_in_a_message(tmp_path: Path, command: list[Any]) -> None:
    MECHANISM.save(tmp_path / "m.json")
    records = [{"user": "u1", "hiv positive": 1}, {"user": "u2", "hiv positive": 2, "itemm": "a"}]
    (tmp_path / "t.json").write_text(json.dumps(records), encoding="utf-8")
    (tmp_path / "p.csv").write_text("item,count\na,1\nb,2\n", encoding="utf-8")
    assert run("prior", "p.csv", "-o", "p.json", cwd=tmp_path).returncode == 0
    more = ["-o", "r.csv", "--max-epsilon", 20] if command[0] == "release" else []
    where = [*command[:2], "t.json", *command[2:]] if len(command) > 1 else [*command, "t.json"]
    done = run(*where, *more, cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no column 'item': no record has this key" in done.stderr
    assert "hiv" not in done.stderr + done.stdout
    assert "itemm" not in done.stderr + done.stdout


def test_a_key_of_one_record_is_no_column_of_a_table_of_reports(tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = [{"item": "ab"[i % 2]} for i in range(10)]
    reports[3] |= {"count": 1000, "mechanism": "x", "epsilon": 3}
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, reports)), encoding="utf-8")
    assert sv.estimate(MECHANISM, tmp_path / "t.jsonl").reports == 10


# --- frames -------------------------------------------------------------------------------------------------

OBJECTS: dict[str, Any] = {
    "None": None,
    "NaN": float("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a date": datetime.date(2024, 3, 1),
    "a time": pd.Timestamp("2024-03-01"),
    "a duration": datetime.timedelta(1),
    "bytes": b"\xff",
    "an integer": 7,
    "a huge integer": 10**400,
    "a fraction": 1.5,
    "infinity": float("inf"),
    "a decimal": Decimal("sNaN"),
    "true": True,
    "a list": ["a"],
    "an object": {"a": object()},
    "half an emoji": "x\ud83d",
    "a class": int,
    **TEXTS,
}


@pytest.mark.parametrize("categories", [["a", "b"], [1, 2]])
@pytest.mark.parametrize("dtype", ["object", "category"])
def test_promise_23_any_object_of_one_person_leaves_a_pandas_frame_as_it_is(
    categories: list[Any], dtype: str
) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(categories, [0.001, 0.999]), 20.0))
    names = dict(zip("ab", categories, strict=True))
    for kind, item in OBJECTS.items():
        if dtype == "category" and kind in ("a list", "an object", "a huge integer", "a decimal"):
            continue  # pandas itself takes these for no category
        items = [names.get(text, text) if user != "u2" else text for user, text in with_mine(item)]
        users = [user for user, _ in with_mine(item)]
        frame = pd.DataFrame({"user": users, "item": pd.Series(items, dtype="object").astype(dtype)})
        released = sv.release_table(frame, mechanism)
        assert released["user"].tolist() == ["u1", "u2", "u3", "u4"], kind
        assert released["item"].tolist()[2:] == [names["b"], names["a"]], kind


def test_promise_23_an_amount_that_is_missing_in_any_way_counts_for_nothing() -> None:
    for missing in (None, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), 3, Decimal("0.5")):
        for others in ([1.0, 1, 1, 2.0], ["1", "1", "1", "2"]):
            if isinstance(others[0], str) and isinstance(missing, int | Decimal):
                continue
            weights = pd.Series([*others[:2], missing, *others[2:]], dtype="object")
            frame = pd.DataFrame(with_mine("a"), columns=["user", "item"]).assign(weight=weights)
            released = sv.release_table(frame, MECHANISM, weight="weight")
            assert released["user"].tolist() == ["u1", "u2", "u3", "u4"], (missing, others)


@pytest.mark.parametrize("text", TEXTS)
def test_promise_23_any_text_of_one_person_leaves_a_typed_frame_as_it_is(text: str) -> None:
    columns = dict(zip(("user", "item"), map(list, zip(*with_mine(TEXTS[text]), strict=True)), strict=True))
    for frame in (pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns).astype("string")):
        released = sv.release_table(frame, MECHANISM)
        users, items = (list(map(str, released[name])) for name in ("user", "item"))
        assert users == ["u1", "u2", "u3", "u4"]
        assert items[2:] == ["b", "a"]


def test_promise_23_a_number_of_one_person_leaves_a_typed_frame_as_it_is() -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior([1, 2], [0.001, 0.999]), 20.0))
    for item in (1.0, None, float("nan"), 1.5, 2.0**53, -1e300, float("inf"), 7.0):
        columns = {"user": ["u1", "u2", "u3"], "item": [1.0, item, 2.0]}
        for frame in (pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns)):
            released = sv.release_table(frame, mechanism)
            assert list(map(str, released["user"])) == ["u1", "u2", "u3"], item


def test_promise_23_a_text_of_arrow_that_is_not_utf_8_is_unknown() -> None:
    items = pa.array([b"a", b"x\xff", b"b"]).cast(pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, items.buffers())
    released = sv.release_table(pa.table({"user": ["u1", "u2", "u3"], "item": broken}), MECHANISM)
    assert released["user"].to_pylist() == ["u1", "u2", "u3"]
    assert released["item"].to_pylist()[2] == "b"


def not_utf_8(*cells: bytes) -> Any:
    """An arrow array of texts that are not UTF-8, which arrow itself does not look at."""
    return pa.Array.from_buffers(pa.string(), len(cells), pa.array(cells, pa.binary()).buffers())


BROKEN = (b"a", b"b", b"x\xff", b"b", b"a")
USERS = ["u1", "u1", "u2", "u3", "u4"]
ARROW_TEXTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda texts: texts,
    "large": lambda texts: texts.cast(pa.large_binary()).view(pa.large_string()),
    "dictionary": lambda texts: pa.DictionaryArray.from_arrays(pa.array(range(len(texts))), texts),
    "view": lambda texts: pa.Array.from_buffers(
        pa.string_view(), len(texts), texts.cast(pa.binary()).cast(pa.binary_view()).buffers()
    ),
}


@pytest.mark.parametrize("form", ARROW_TEXTS)
@pytest.mark.parametrize("of_pandas", [False, True])
def test_promise_23_a_broken_text_is_read_in_every_type_of_arrow(form: str, of_pandas: bool) -> None:
    columns = {"user": USERS, "item": ARROW_TEXTS[form](not_utf_8(*BROKEN))}
    table: Any = pa.table(columns)
    if of_pandas:
        items = pd.arrays.ArrowExtensionArray(table["item"])
        table = pd.DataFrame({"user": USERS, "item": pd.Series(items)})
    released = sv.release_table(table, MECHANISM)
    assert list(map(str, released["user"])) == ["u1", "u2", "u3", "u4"]
    assert list(map(str, released["item"]))[2:] == ["b", "a"]


def test_promise_23_a_parquet_file_that_pandas_or_arrow_read_loses_no_user(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"user": USERS, "item": not_utf_8(*BROKEN)}), path)
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    for table in (frame, pq.read_table(path), pq.read_table(path, read_dictionary=["item"])):
        released = sv.release_table(table, MECHANISM)
        assert list(map(str, released["user"])) == ["u1", "u2", "u3", "u4"]


def test_broken_names_of_users_in_a_dictionary_are_users() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 2, 2]), not_utf_8(b"u1", b"u2\xff", b"u3"))
    released = sv.release_table(pa.table({"user": names, "item": ["a", "b", "a", "b", "a"]}), MECHANISM)
    assert released["user"].to_pylist() == ["u1", "u2\ufffdff", "u3"]


def test_rows_that_would_be_lost_refuse_a_table() -> None:
    """Where DuckDB cannot tell a broken text from another, nobody is left out in silence."""
    for broken in (b"x\xff", b"\xff"):
        items = pa.DictionaryArray.from_arrays(pa.array(range(3)), not_utf_8(b"a", broken, b"b"))
        table = pa.table({"user": ["u1", "u2", "u3"], "item": items})
        with pytest.raises(sv.errors.TableError):
            sv.read_users(table, user="user", item="item", prior=MECHANISM, unknown="drop", empty="skip")


NOTES: dict[str, Callable[[], Any]] = {
    "a category that is a number": lambda: pd.Categorical(["n", "n", 2, "m", "n"]),
    "a category that is half an emoji": lambda: pd.Categorical(["n", "n", "\ud83d", "m", "n"]),
    "decimals": lambda: pd.Series([Decimal(1), Decimal(1), Decimal("sNaN"), Decimal(1), Decimal(1)]),
    "half an emoji": lambda: pd.Series(["n", "n", "\ud83d", "m", "n"]).astype("string[python]"),
    "objects": lambda: pd.Series([1, 1, object(), "x", None], dtype="object"),
    "not UTF-8": lambda: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([not_utf_8(*BROKEN)]))),
}


@pytest.mark.parametrize("kind", NOTES)
def test_promise_23_a_column_that_nobody_named_is_not_read(kind: str) -> None:
    frame = pd.DataFrame({"user": USERS, "item": ["a", "b", "a", "b", "a"], "note": NOTES[kind]()})
    assert sv.release_table(frame, MECHANISM)["user"].tolist() == ["u1", "u2", "u3", "u4"]


@pytest.mark.parametrize("column", ["user", "item"])
def test_promise_23_half_an_emoji_in_a_column_of_texts_is_replaced(column: str) -> None:
    columns = {"user": USERS, "item": ["a", "b", "a", "b", "a"]}
    columns[column] = [*columns[column][:2], "u2\ud83d", *columns[column][3:]]
    released = sv.release_table(pd.DataFrame(columns).astype("string[python]"), MECHANISM)
    users = released["user"].tolist()
    assert users == ["u1", "u2\ufffdd83d" if column == "user" else "u2", "u3", "u4"]


def test_promise_23_a_duration_of_numpy_is_no_number() -> None:
    whole = sv.certify(sv.kernel_clip(sv.Prior([1, 2], [0.001, 0.999]), 20.0))
    for odd in (np.timedelta64(1, "D"), np.timedelta64("NaT"), np.datetime64("NaT"), np.timedelta64(1)):
        items = pd.Series([1, 2, odd, 2, 1], dtype="object")
        items.iat[2] = odd
        released = sv.release_table(pd.DataFrame({"user": USERS, "item": items}), whole)
        assert released["user"].tolist() == ["u1", "u2", "u3", "u4"]
        assert released["item"].tolist()[2:] == [2, 1]
        weights = pd.Series([1, 1, None, 1, 1], dtype="object")
        weights.iat[2] = odd
        frame = pd.DataFrame({"user": USERS, "item": ["a", "b", "a", "b", "a"], "weight": weights})
        if np.isnat(odd):
            released = sv.release_table(frame, MECHANISM, weight="weight")
            assert released["user"].tolist() == ["u1", "u2", "u3", "u4"]
        else:
            with pytest.raises(sv.errors.TableError, match="must hold numbers"):
                sv.release_table(frame, MECHANISM, weight="weight")


# --- workbooks ----------------------------------------------------------------------------------------------

CELLS: dict[str, Cell] = {
    "a date": date(45352),
    "a duration": duration(1.5),
    "an ISO date": Raw(' t="d"', "<v>2024-03-01T00:00:00</v>"),
    "an error": error("#N/A"),
    "true": True,
    "a number": 1,
    "a fraction": 2.5,
    "a long number": 4012345678901234567,
    "a huge number": 1e22,
    "nothing": None,
    **{kind: text for kind, text in TEXTS.items() if kind not in ("NUL", "control characters", "long")},
    "30,000 letters": "y" * 30_000,
}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("numbers", [False, True])
def test_promise_23_any_cell_of_one_person_leaves_a_workbook_as_it_is(
    tmp_path: Path, kind: str, numbers: bool
) -> None:
    names: Mapping[str, Any] = {"a": 1, "b": 2} if numbers else {"a": "a", "b": "b"}
    rows = [(user, CELLS[kind] if user == "u2" else names[item]) for user, item in with_mine("mine")]
    table = write_workbook(tmp_path / "t.xlsx", [("user", "item"), *rows])
    prior = sv.Prior([str(name) for name in names.values()], [0.001, 0.999])
    sv.certify(sv.kernel_clip(prior, 20.0)).save(tmp_path / "m.json")
    done = run("release", tmp_path / "m.json", table, "-o", tmp_path / "r.csv", "--max-epsilon", 20)
    assert done.returncode == 0, done.stderr
    released = pl.read_csv(tmp_path / "r.csv")
    assert released["user"].to_list() == ["u1", "u2", "u3", "u4"]
    assert released["item"].cast(pl.String).to_list()[2:] == [str(names["b"]), str(names["a"])]


BY_CELL: dict[str, tuple[Cell, Cell]] = {"TRUE": (True, False), "0.5": (0.5, 1.5), "12": (12, 13)}


@pytest.mark.parametrize("categories", BY_CELL)
def test_promise_23_how_a_cell_is_read_does_not_depend_on_the_cells_of_others(
    tmp_path: Path, categories: str
) -> None:
    a, b = BY_CELL[categories]
    names = [str(cell).lower() for cell in (a, b)]
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(names, [0.001, 0.999]), 20.0))
    mechanism.save(tmp_path / "m.json")
    for mine in (None, a, b, "x", *CELLS.values()):
        rows = [("u1", a), ("u1", a), ("u2", mine), ("u3", b), ("u4", a)]
        table = write_workbook(tmp_path / "t.xlsx", [("user", "item"), *rows])
        users = sv.read_users(table, user="user", item="item", prior=mechanism, unknown="prior")
        assert users.ids == ("u1", "u2", "u3", "u4"), mine
        assert users.p.toarray()[[0, 2, 3]].tolist() == [[1, 0], [0, 1], [1, 0]], mine


# --- memory -------------------------------------------------------------------------------------------------


def test_long_items_are_cut_before_they_take_memory(tmp_path: Path) -> None:
    """A small file of long texts: each row is read, and none is kept."""
    path, schema = tmp_path / "t.parquet", pa.schema({"user": pa.string(), "item": pa.string()})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        for i in range(400):
            row = {"user": [f"u{i:03}"], "item": [f"{i:03}" + "y" * 10_000_000]}
            writer.write_table(pa.table(row, schema=schema))
    assert path.stat().st_size < 400_000
    MECHANISM.save(tmp_path / "m.json")
    done = run("release", tmp_path / "m.json", path, "-o", tmp_path / "r.csv", "--max-epsilon", 20)
    assert done.returncode == 0, done.stderr
    assert pl.read_csv(tmp_path / "r.csv")["user"].to_list() == [f"u{i:03}" for i in range(400)]


def test_long_names_are_refused_before_they_take_memory_or_charge_anybody(tmp_path: Path) -> None:
    MECHANISM.save(tmp_path / "m.json")
    path, schema = tmp_path / "t.parquet", pa.schema({"user": pa.string(), "item": pa.string()})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        for i in range(120):
            row = {"user": [f"{i:03}" + "y" * 10_000_000], "item": ["a"]}
            writer.write_table(pa.table(row, schema=schema))
    csv_path = tmp_path / "t.csv"
    csv_path.write_text(f"user,item,land\nu1,a,DE\n{'n' * (60 << 20)},a,DE\nu3,b,DE\n", encoding="utf-8")
    for table in (path, csv_path):
        ledger = sv.Ledger.create(tmp_path / f"{table.name}.db", budget=100)
        before = (tmp_path / f"{table.name}.db").read_bytes()
        terms = ["-o", tmp_path / "r.csv", "--ledger", tmp_path / f"{table.name}.db"]
        for more in (["--dry-run"], []):
            done = run("release", tmp_path / "m.json", table, *terms, *more)
            assert done.returncode == 2, done.stderr
            assert "column 'user' has names of more than 4,096 characters" in done.stderr
        assert (tmp_path / f"{table.name}.db").read_bytes() == before
        del ledger


@pytest.mark.parametrize("letters", [reader.LONGEST_NAME, reader.LONGEST_NAME + 1])
@pytest.mark.parametrize("column", ["user", "land"])
def test_the_longest_name_is_read(letters: int, column: str) -> None:
    columns = {"user": ["u1", "u2"], "item": ["a", "b"], "land": ["DE", "DE"]}
    columns[column] = ["é" * letters] * 2
    mechanisms = dict.fromkeys(columns["land"], MECHANISM)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        if letters == reader.LONGEST_NAME:
            assert len(sv.release_table(frame, mechanisms, by="land")) > 0
            continue
        with pytest.raises(sv.errors.TableError, match=f"column '{column}' has names of more than"):
            sv.release_table(frame, mechanisms, by="land")


# --- what is refused ----------------------------------------------------------------------------------------

CSV = "user,item,weight\nu1,a,1\n{}\nu3,b,1\n"


def csv_with(*lines: str) -> list[tuple[str, bytes]]:
    return [("t.csv", CSV.format(line).encode()) for line in lines]


def jsonl_with(*records: bytes) -> list[tuple[str, bytes]]:
    return [("t.jsonl", b'{"user": "u1", "item": "a", "weight": 1}\n' + record) for record in records]


def in_zstd(raw: bytes) -> bytes:
    return bytes(pa.compress(raw, codec="zstd", asbytes=True))


def broken_parquet() -> bytes:
    items = pa.array([b"a", b"x\xff"]).cast(pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, items.buffers())
    buffer = io.BytesIO()
    pq.write_table(pa.table({"user": ["u1", "u2"], "item": broken, "weight": [1, 1]}), buffer)
    return buffer.getvalue()


REFUSED: dict[str, list[tuple[str, bytes]]] = {
    "a row without a user or group": [*csv_with(",a,1"), *jsonl_with(b'{"item": "a"}', b"3", b"null")],
    "a user or group that is a fraction, a list, an object, a date or a truth value, or a number among texts": (
        jsonl_with(b'{"user": ["u2"], "item": "a", "weight": 1}')
    ),
    "a user or group of more than 4,096 characters": [
        *csv_with(f"{'n' * 4097},a,1", f"{'n' * (60 << 20)},a,1"),
        *jsonl_with(json.dumps({"user": "n" * 4097, "item": "a", "weight": 1}).encode()),
    ],
    "an amount that is negative, infinite or no number": [
        *csv_with("u2,a,-1", "u2,a,inf", "u2,a,x", "u2,a,1e999"),
        *jsonl_with(*(b'{"user": "u2", "item": "a", "weight": %b}' % w for w in (b"[1]", b'"x"', b"true"))),
    ],
    "an amount with a decimal separator in a file with semicolons": [
        ("t.csv", CSV.format("u2,a,1.5").replace(",", ";").encode())
    ],
    "amounts that add up to infinity": csv_with("u2,a,1.7e308\nu2,a,1.7e308"),
    "a line of a CSV with more or fewer fields, or with text behind a closing quotation mark": csv_with(
        "u2,a,1,1", "u2,a", 'u2,"a"b,1', 'u2,"a,1'
    ),
    "JSON that does not follow its grammar": jsonl_with(b'{"user": "u2', b"{'user': 'u2'}"),
    "a record of more than 64 MiB": [
        *csv_with(f"u2,{'y' * (65 << 20)},1"),
        *jsonl_with(json.dumps({"user": "u2", "item": "y" * (65 << 20), "weight": 1}).encode()),
    ],
    "a byte that is not UTF-8 in Parquet": [("t.parquet", broken_parquet())],
    "a broken text in a file packed with zstd": [
        ("t.csv.zst", in_zstd(CSV.format("u2,x\ry,1").encode())),
        ("t.csv.zst", in_zstd(CSV.format("u2,BROKEN,1").encode().replace(b"BROKEN", b"\xff"))),
        ("t.jsonl.zst", in_zstd(rb'{"user": "u2", "item": "\ud83d", "weight": 1}')),
    ],
    "a column that no record of a JSON table has": [("t.jsonl", b'{"user": "u1"}\n{"user": "u2"}')],
}
ELSEWHERE = {  # tests/release/test_groups.py, tests/test_silence.py
    "a text of a CSV that begins with a quotation mark, written without quotes",  # above
    "a user in several groups, or in an unknown one",
    "two users whose names differ in blanks or Unicode forms alone",
}


def test_the_exceptions_are_those_of_the_guarantees() -> None:
    section = GUARANTEES.read_text(encoding="utf-8").split("### What refuses a table")[1].split("\n## ")[0]
    listed = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]
    assert set(listed) == {*REFUSED, *ELSEWHERE}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_exception_is_refused_and_shows_nothing(tmp_path: Path, kind: str) -> None:
    MECHANISM.save(tmp_path / "m.json")
    terms = ["-o", tmp_path / "r.csv", "--max-epsilon", 20, "--weight", "weight"]
    for number, (name, content) in enumerate(REFUSED[kind]):
        table = tmp_path / f"{number}{name}"
        table.write_bytes(content)
        done = run("release", tmp_path / "m.json", table, *terms)
        assert done.returncode == 2, (kind, number)
        assert len(done.stderr) < 500
        assert not (tmp_path / "r.csv").exists()
