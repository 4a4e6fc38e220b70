"""Damaged, hostile and misplaced tables: one line that shows none of their data, and a process that lives."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import check_refused, run

import sottovoce as sv
from sottovoce.tables import files, reader, workbook
from sottovoce.tables import priors as priors_table

HEADER = "is the first line of the table a header?"


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def parquet(user: str | None = None, **options: Any) -> bytes:
    table = pa.table({"user": ["u", user] * 20, "item": ["secret", "b"] * 20})
    buffer = io.BytesIO()
    settings = {"compression": "none", "use_dictionary": False, "write_statistics": False, **options}
    pq.write_table(table, buffer, **settings)
    return buffer.getvalue()


def too_long() -> bytes:
    """A run of definition levels that is longer than the page."""
    raw = parquet()
    assert raw.count(b"\x0bUUUUU") == 1
    return raw.replace(b"\x0bUUUUU", b"\xff\xff\xff\xff\xff\x7f")


# --- damaged column stores ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [too_long(), parquet()[:-20], parquet()[:40] + parquet()[60:], b"PAR1" + b"secret" * 9 + b"PAR1"],
    ids=["too long", "cut off", "shifted", "none"],
)
def test_a_damaged_parquet_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    done = run("prior", tmp_path / "t.parquet", "--user", "user")
    check_refused(done, "t.parquet cannot be read as parquet: ")
    assert "secret" not in done.stderr


def test_the_process_lives_on_and_reads_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(parquet()[:-20])
    (tmp_path / "long.parquet").write_bytes(too_long())
    (tmp_path / "good.parquet").write_bytes(parquet())
    code = """
import sys, sottovoce as sv
from sottovoce.tables.reader import Columns, count_table
for path in sys.argv[1:3]:
    try:
        count_table(path, Columns("item", "user"))
    except sv.errors.TableError as problem:
        print(problem.__context__, problem.__cause__)
print(count_table(sys.argv[3], Columns("item")).rows.sum())
"""
    done = python(code, *(tmp_path / f"{name}.parquet" for name in ("bad", "long", "good")))
    assert done.stdout == "None None\nNone None\n40\n", done.stderr
    assert done.stderr == ""


FUZZ = """
import random, sys, pathlib, sottovoce as sv
from sottovoce.tables.reader import Columns, count_table
raws = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).glob("*.raw"))]
path = pathlib.Path(sys.argv[1]) / "t.parquet"
rng, outcomes = random.Random(int(sys.argv[3])), {"read": 0, "refused": 0}
for _ in range(int(sys.argv[2])):
    raw = bytearray(rng.choice(raws))
    footer = int.from_bytes(raw[-8:-4], "little")
    for _ in range(rng.randint(1, 3)):
        part = rng.choice([(len(raw) - 8 - footer, len(raw)), (4, 60), (4, len(raw))])
        at = rng.randrange(*part)
        raw[at : at + 1] = rng.choice([bytes([rng.randrange(256)]), bytes([raw[at] ^ 1]), b"\\xff\\xff\\x7f"])
    path.write_bytes(raw)
    try:
        count_table(path, Columns("item", "user"))
        outcomes["read"] += 1
    except sv.errors.SottovoceError as problem:
        outcomes["refused"] += 1
        if "secret" in f"{problem}{problem.__context__!r}{problem.__cause__!r}":
            print("leaked", problem)
print(outcomes)
"""


def check_fuzzed(folder: Path, count: int) -> None:
    for number, codec in enumerate(("none", "snappy", "gzip", "zstd", "lz4", "brotli")):
        (folder / f"{number}.raw").write_bytes(
            parquet("v", compression=codec, use_dictionary=number % 2 == 0)
        )
    done = python(FUZZ, folder, count, 1)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "leaked" not in done.stdout
    outcomes = json.loads(done.stdout.replace("'", '"'))
    assert outcomes["refused"] > count // 4, outcomes
    assert outcomes["read"] > count // 40, outcomes


def test_fuzzed_parquet_files(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 200)


@pytest.mark.full
def test_ten_thousand_fuzzed_parquet_files(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 10_000)


# --- paths --------------------------------------------------------------------------------------------


def test_paths_are_told_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("item,item\na,b\n")
    sub = tmp_path / "sub"
    sub.mkdir()
    for folder, given in ((tmp_path, "t.csv"), (sub, "../t.csv")):
        monkeypatch.chdir(folder)
        with pytest.raises(sv.errors.TableError) as caught:
            sv.build_prior(given, item="item")
        assert str(caught.value).startswith(f"{given} cannot be read")


def test_a_folder_of_lookalikes_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise SystemExit(9)")
    (tmp_path / "t.csv").write_text("item,count\na,3\nb,1\n")
    command = [sys.executable, "-P", "-m", "sottovoce", "prior", "t.csv", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


# --- names that may be data ---------------------------------------------------------------------------


def every_library(columns: dict[str, list[Any]]) -> list[Any]:
    frame = pd.DataFrame(columns)
    relation = duckdb.connect().from_df(frame)
    return [pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns), frame, relation]


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("person,item\nann,a\n", {"user": "user", "item": "item"}, True),
        ("category,count\na,1\nb,2\n", {"item": "item"}, True),
        ("Secret,Flu\nBob,Cold\n", {"item": "item"}, False),  # no header: nothing tells that they are names
        ("Secret,3\nBob,4\n", {"item": "item"}, False),
        ("Secret,Flu\nSecret,item\n", {"item": "item"}, False),
        ("item,Secret\nuser,Bob\n", {"item": "item", "user": "user"}, False),  # transposed
        ("user,Secret\nitem,Flu\n", {"item": "item", "user": "user"}, False),
        ("item,Secret\na,Secret\n", {"item": "item", "user": "user"}, False),
        ("item,Secret\na,secret \n", {"item": "item", "user": "user"}, False),
        ("item,Secret\n", {"item": "item", "user": "user"}, False),
        ("item," + "Secret" * 6 + "\na,b\n", {"item": "item", "user": "user"}, False),
        ("item,Se\x07cret\na,b\n", {"item": "item", "user": "user"}, False),
        (",".join(["item", *(f"Secret {i}" for i in range(20))]) + "\n" + "x," * 20 + "x\n",
         {"item": "item", "user": "user"}, False),
        (",".join(["item", *(f"Secret {i:020}" for i in range(9))]) + "\n" + "x," * 9 + "x\n",
         {"item": "item", "user": "user"}, False),
    ],
)  # fmt: skip
def test_a_header_is_listed_only_if_it_is_one(
    tmp_path: Path, text: str, columns: dict[str, Any], shown: bool
) -> None:
    (tmp_path / "t.csv").write_text(text)
    rows = [line.split(",") for line in text.splitlines()]
    table = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    for given in (tmp_path / "t.csv", *every_library(table)):
        with pytest.raises(sv.errors.TableError, match="there is no column") as caught:
            sv.build_prior(given, **columns)
        message = str(caught.value)
        assert (HEADER in message) != shown, (type(given), message)
        assert (f"the table has {rows[0][0]}" in message) == shown
        assert "secret" not in message.lower()
        assert caught.value.__context__ is None


def test_a_name_far_below_is_found_and_a_head_that_fails_shows_nothing(tmp_path: Path) -> None:
    lines = ["item,Secret", *["a,b"] * (reader.LOOKED_AT - 1), "Secret,b"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(sv.errors.TableError, match=r"a header\? If .* pass --user \(user=\)\.$"):
        sv.build_prior(tmp_path / "t.csv", item="item", user="user")

    def fails() -> Any:
        raise sv.errors.TableError("Secret")

    with pytest.raises(sv.errors.TableError) as refused:
        reader.require(["item", "user"], ["item", "Secret"], fails)
    assert HEADER in str(refused.value)
    assert "Secret" not in str(refused.value)
    (tmp_path / "ragged.csv").write_text("item,Secret\na,b,c\n")
    with pytest.raises(sv.errors.TableError, match=r"a header\? If .* pass --user \(user=\)\.$"):
        sv.build_prior(tmp_path / "ragged.csv", item="item", user="user")


def test_commands_show_no_row_of_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Secret Ann,Diabetes\nBob,Flu\nCy,Flu\n")
    (tmp_path / "prior.csv").write_text("item,count\na,1\nb,1\n")
    for arguments in (["prior"], ["compare", tmp_path / "prior.csv"], ["design"]):
        more = [] if arguments[0] == "prior" else ["-e", 1]
        done = run(*arguments, tmp_path / "people.csv", *more)
        check_refused(done, HEADER)
        assert "Secret" not in done.stderr
        assert "Diabetes" not in done.stderr


@pytest.mark.parametrize(
    "content",
    [b'{"Secret": ', b'{"Secret": "\xff"}', b"[" * 100_000, b'{"format": "sottovoce-prior", "Secret'],
)
def test_a_damaged_document_does_not_hang_on_its_error(tmp_path: Path, content: bytes) -> None:
    """A decoding error carries the whole document; what logs errors with their context would print it."""
    (tmp_path / "d.json").write_bytes(content)
    with pytest.raises(sv.errors.TableError, match="cannot be read as json") as caught:
        priors_table.read_priors(tmp_path / "d.json")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


# --- gzip and absurd sizes ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.json.gz", "t.json"])
def test_a_document_that_unpacks_to_too_much_is_refused(tmp_path: Path, name: str) -> None:
    block = gzip.compress(b" " * (1 << 24))  # members of their own: quick to make
    (tmp_path / name).write_bytes(
        gzip.compress(b'{"format": "sottovoce-prior"') + block * (files.LARGEST_JSON // (1 << 24) + 2)
    )
    check_refused(run("prior", tmp_path / name), f"{name} unpacks to more than 256 MiB: refused")


@pytest.mark.parametrize("kind", [".csv", ".json", ".jsonl"])
def test_gzip_in_several_members_cut_off_or_followed_by_something(tmp_path: Path, kind: str) -> None:
    text = {
        ".csv": b"item,count\na,3\nb,1\n",
        ".json": b'[{"item": "a", "count": 3}, {"item": "b", "count": 1}]',
        ".jsonl": b'{"item": "a", "count": 3}\n{"item": "b", "count": 1}\n',
    }[kind]
    for name in (f"t{kind}.gz", f"t{kind}"):  # the name does not decide
        path = tmp_path / name
        path.write_bytes(gzip.compress(text[:16]) + gzip.compress(text[16:]))
        assert priors_table.read_priors(path).priors["all"].probabilities.tolist() == [0.75, 0.25]
        whole = gzip.compress(text)
        flipped = whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]
        for content in (whole[:-3], whole[: len(whole) // 2], whole + b"Secret", flipped):
            path.write_bytes(content)
            with pytest.raises(sv.errors.TableError, match="cannot be read as") as caught:
                priors_table.read_priors(path)
            assert "\n" not in str(caught.value)
            assert caught.value.__context__ is None


def test_an_endless_first_line_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"Secret" * (1 << 19))
    done = run("prior", tmp_path / "t.csv")
    check_refused(done, "t.csv")
    assert "Secret" not in done.stderr
    (tmp_path / "t.csv").write_bytes(b'item,"' + b"Secret\n" * (1 << 19))
    done = run("prior", tmp_path / "t.csv")
    assert done.returncode == 2
    assert "Secret" not in done.stderr


@pytest.mark.parametrize("kind", [".csv", ".jsonl"])
def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "LEAST", 1 << 20)
    head, line = (b"item,count\n", b"Secret,1\n") if kind == ".csv" else (b"", b'{"item": "Secret"}\n')
    (tmp_path / f"t{kind}.gz").write_bytes(gzip.compress(head + line * 400_000))
    with pytest.raises(sv.errors.TableError, match=r"unpacks to more than [1-9] MiB: refused") as caught:
        reader.count_table(tmp_path / f"t{kind}.gz", reader.Columns("item"))
    assert "Secret" not in str(caught.value)
    (tmp_path / f"t{kind}.gz").write_bytes(gzip.compress(head + line * 10_000))
    assert int(reader.count_table(tmp_path / f"t{kind}.gz", reader.Columns("item")).rows.sum()) == 10_000
