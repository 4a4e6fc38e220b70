"""A file that is read in batches gives the users that it gives as a whole, and so does its release."""

from __future__ import annotations

import csv
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce import releasing
from sottovoce.tables import reader, users
from sottovoce.tables.reader import Columns, Writer, opened, ordered_cells
from sottovoce.tables.users import ReadingOptions, checked_users, read_user_groups

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
KINDS = ("prior", "drop", "other", "error")


def table(path: Path, seed: int, *, known: bool) -> Path:
    rng = random.Random(seed)
    items = ["a", "b", "c"] if known else ["a", "b", "c", "SECRET", None]
    rows = [
        (f"u{rng.randrange(40)}", rng.choice(items), rng.choice([0.0, 0.1, 0.7, 2.0]), rng.choice("ns"))
        for _ in range(500)
    ]
    pl.DataFrame(rows, schema=["user", "item", "weight", "region"], orient="row").write_parquet(path)
    return path


def together(batches: list[dict[str, sv.Users]], group: str) -> tuple[list[Any], Any]:
    parts = [batch[group] for batch in batches if group in batch]
    return [name for part in parts for name in part.ids], np.vstack([part.p.toarray() for part in parts])


@pytest.mark.parametrize("by", [None, "region"])
@pytest.mark.parametrize("unknown", KINDS)
@pytest.mark.parametrize("rows", [1, 7, 100, 10_000])
def test_batches_hold_what_the_whole_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str | None, unknown: str, rows: int
) -> None:
    monkeypatch.setattr(users, "BATCH_ROWS", rows)
    path = table(tmp_path / "t.parquet", 3, known=unknown == "error")
    options = ReadingOptions(
        unknown=unknown, other="c", empty="skip", several_groups="allow", unknown_groups="drop"
    )
    if unknown in ("drop", "other"):
        path = tmp_path / "u.parquet"
        pl.read_parquet(tmp_path / "t.parquet").drop_nulls().write_parquet(path)
    known = {"all": PRIOR} if by is None else {"n": PRIOR, "s": PRIOR}
    whole, how = read_user_groups(path, known, by=by, options=options)
    with checked_users(path, known, by=by, options=options) as checked:
        batches = list(checked.batches)
        assert checked.how == how
        assert checked.left.people == sum(map(len, whole.values()))
    for group, expected in whole.items():
        names, rows_of = together(batches, group)
        assert names == list(expected.ids)
        np.testing.assert_array_equal(rows_of, expected.p.toarray())


def test_spellings_of_one_name_are_one_user_in_several_groups(tmp_path: Path) -> None:
    names = ["ann", "ann ", "\u00e9va", "e\u0301va", "bob", "\u2003cy", "cy\x85", "dan\x1f", "dan", "eve"]
    groups = ["n", "s", "n", "s", "n", "n", "s", "n", "s", "s"]
    frame = pl.DataFrame({"user": names, "item": ["a"] * len(names), "region": groups})
    frame.write_parquet(tmp_path / "t.parquet")
    with opened(tmp_path / "t.parquet") as source:
        cells = ordered_cells(source, Columns("item", "user", by="region"))
        assert cells.in_several_groups() == 4
    with (
        pytest.raises(
            sv.errors.UserDataError, match=r"4 of 10 users have more than one value in column 'region'"
        ),
        checked_users(tmp_path / "t.parquet", {"n": PRIOR, "s": PRIOR}, by="region"),
    ):
        pass


def test_unknown_items_are_refused_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "BATCH_ROWS", 10)
    drawn: list[int] = []
    monkeypatch.setattr(sv.Mechanism, "draw", lambda self, rows: drawn.append(1))
    path = table(tmp_path / "t.parquet", 4, known=False)
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    options = ReadingOptions(unknown="error", empty="skip")
    pl.read_parquet(path).drop_nulls().write_parquet(path)
    with pytest.raises(sv.errors.UserDataError, match=r"of \d+ rows do not name one;") as seen:
        releasing.release_file({"all": mechanism}, path, tmp_path / "out.csv", options=options)
    assert "SECRET" not in str(seen.value)
    assert drawn == []
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".json"])
@pytest.mark.parametrize("by", [None, "region"])
def test_a_release_in_batches_has_every_user_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by: str | None
) -> None:
    monkeypatch.setattr(users, "BATCH_ROWS", 20)
    path = table(tmp_path / "t.parquet", 5, known=False)
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    known = {"all": mechanism} if by is None else {"n": mechanism, "s": mechanism}
    told: list[str] = []
    options = ReadingOptions(unknown="prior", empty="skip", several_groups="allow")
    out = tmp_path / f"out{kind}"
    done = releasing.release_file(known, path, out, by=by, options=options, note=told.append)
    readers: dict[str, Any] = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".json": pl.read_json}
    found = readers[kind](out)
    given = pl.read_parquet(path).select(*(["region"] if by else []), "user").unique()
    order = ["region", "user"] if by else ["user"]
    assert found.select(order).rows() == sorted(given.select(order).rows())
    assert set(found["mechanism"]) == {mechanism.digest}
    assert done.startswith(f"{found.height:,} releases, one for each user and group, ε = 1 each, into")
    with pytest.raises(sv.errors.TableError, match="is there already"):
        releasing.release_file(known, path, out, by=by, options=options)


def test_users_named_by_integers_stay_integers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "BATCH_ROWS", 3)
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    pl.DataFrame({"user": [10, 9, 2, 10], "item": list("abca")}).write_parquet(tmp_path / "t.parquet")
    releasing.release_file({"all": mechanism}, tmp_path / "t.parquet", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["user"].to_list() == [10, 2, 9]  # in the order of texts
    (tmp_path / "t.csv").write_text("user,item\n007,a\n8,b\n")
    releasing.release_file({"all": mechanism}, tmp_path / "t.csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("007,")


def test_a_file_does_not_show_how_long_the_parts_were(tmp_path: Path) -> None:
    """How many rows users have decides where batches end; the groups of rows of a Parquet file must not."""
    names = np.array([f"u{i:06d}" for i in range(420_000)], dtype=object)
    layouts = set()
    for number, size in enumerate((7_001, 100_000, 130_000, 420_000)):
        path = tmp_path / f"{number}.parquet"
        with Writer({"user": str, "mechanism": str}) as writer:
            for begin in range(0, len(names), size):
                writer.add({"user": names[begin : begin + size], "mechanism": "m"})
            writer.save(path)
        facts = pq.ParquetFile(path).metadata
        layouts.add(tuple(facts.row_group(i).num_rows for i in range(facts.num_row_groups)))
        assert pl.read_parquet(path)["user"].to_list() == names.tolist()
    assert len(layouts) == 1, layouts


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file is scanned several times: a file of other users or amounts must not be released."""
    path, other = tmp_path / "t.parquet", tmp_path / "o.parquet"
    pl.DataFrame({"user": ["u", "v"], "item": ["a", "a"]}).write_parquet(path)
    pl.DataFrame({"user": ["u", "w"], "item": ["a", "b"]}).write_parquet(other)
    real = reader.Source.run

    def replaced(self: reader.Source, sql: str) -> Any:
        if "TABLE cells" in sql and other.exists():
            os.replace(other, path)
        return real(self, sql)

    monkeypatch.setattr(reader.Source, "run", replaced)
    with pytest.raises(sv.errors.TableError, match="was changed while it was read"):
        sv.build_prior(path, user="user", item="item")


def test_one_user_in_several_spellings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("user,item\nann,a\nann ,b\nZoé,a\nZoe\u0301,b\nbob,c\n", encoding="utf-8")
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    with pytest.raises(sv.errors.UserDataError, match="names of 2 users occur in several spellings"):
        releasing.release_file({"all": mechanism}, tmp_path / "t.csv", tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".json"])
def test_every_name_and_number_is_written_as_it_is(tmp_path: Path, kind: str) -> None:
    names = ["", "  pad", "\x01", "\x02,", "l\r", "new\nline", 'quo"te', "x\x00y", "ünï", None]
    columns: dict[str, list[Any]] = {
        "user": names,
        "share": [0.1, 2] * 5,
        "yes": [True, None] * 5,
        "large": [1, 2**70] * 5,
    }
    path = tmp_path / f"t{kind}"
    with Writer({name: reader.type_of(values) for name, values in columns.items()}) as writer:
        for _ in range(2):
            writer.add(columns)
        writer.save(path)
    rows = list(zip(names, [0.1, 2.0] * 5, [True, None] * 5, ["1", str(2**70)] * 5, strict=True)) * 2
    if kind == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            written = list(csv.reader(file))
        texts = [["" if value is None else str(value) for value in row] for row in rows]
        assert written == [list(columns), *([a, b, c.lower(), d] for a, b, c, d in texts)]
    else:
        assert (pl.read_parquet(path) if kind == ".parquet" else pl.read_json(path)).rows() == rows
