"""What the fuzzer has found: each input once made something else than a result or an error of the library."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.collecting.model import model_of
from sottovoce.collecting.reports import read_reports
from sottovoce.collecting.store import create_store, open_store, stored_counts

MECHANISM = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2]), 1.0))


def no_text(path: Path, word: bytes) -> None:
    """Put a byte that is no UTF-8 into the words of a database that say what its tables are."""
    raw = path.read_bytes()
    assert raw.count(word) == 1
    path.write_bytes(raw.replace(word, word.replace(b"TABLE", b"TABL\xff")))


def test_a_ledger_whose_schema_is_no_text_is_refused(tmp_path: Path) -> None:
    """SQLite's complaint quotes the schema, and Python cannot decode the complaint: a UnicodeDecodeError."""
    path = tmp_path / "l.db"
    sv.Ledger.create(path, budget=4).close()
    no_text(path, b"CREATE TABLE entries")
    with pytest.raises(sv.errors.LedgerError, match="is not a readable ledger"):
        sv.Ledger.open(path)


def test_a_ledger_that_is_damaged_while_it_is_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with_charge = sv.Ledger.create(path, budget=4)
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA writable_schema = ON")
        sql = "replace(sql, 'TABLE', CAST(x'5441424cff' AS TEXT))"
        other.execute(f"UPDATE sqlite_master SET sql = {sql} WHERE name = 'entries'")  # noqa: S608
        other.execute("PRAGMA schema_version = 99")  # the open connection reads the schema again
    other.close()
    with pytest.raises(sv.errors.LedgerError, match="could not be read"):
        with_charge.users()
    with pytest.raises(sv.errors.LedgerError, match="busy or could not be written"):
        with_charge.grant("ann", 1, epoch="e")
    with_charge.close()


@pytest.mark.parametrize("count", ["-1", "+0", "0_0", "9" * 19])
def test_a_witness_that_does_not_count_is_refused(tmp_path: Path, count: str) -> None:
    """A count below zero let every older state of the store pass."""
    ledger = sv.Ledger.create(tmp_path / "l.db", budget=4)
    ledger.close()
    _, *rest = ledger.witness.read_text().split()
    ledger.witness.write_text(" ".join([count, *rest]))
    with pytest.raises(sv.errors.LedgerError):
        sv.Ledger.open(tmp_path / "l.db")


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("user_version = -7", "has format -7, this version reads 5"),
        ("application_id = 7", "is not a readable ledger"),
    ],
)
def test_a_database_of_another_format_is_refused(tmp_path: Path, pragma: str, message: str) -> None:
    path = tmp_path / "l.db"
    sv.Ledger.create(path, budget=4).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA {pragma}")
    database.close()
    with pytest.raises(sv.errors.LedgerError, match=message):
        sv.Ledger.open(path)


def test_a_store_whose_schema_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    create_store(path)
    open_store(path, [(MECHANISM.digest, "all")])[0].close()
    no_text(path, b"CREATE TABLE counts")
    with pytest.raises(sv.errors.StoreError, match="cannot be read: it is damaged"):
        stored_counts(path, {"all": model_of(MECHANISM)})
    with pytest.raises(sv.errors.StoreError, match="cannot be opened: it is damaged"):
        open_store(path, [(MECHANISM.digest, "all")])


def test_an_unknown_category_that_nobody_reported_changes_nothing(tmp_path: Path) -> None:
    """It was a ValueError of numpy."""
    path = tmp_path / "reports.csv"
    path.write_text("item,count\na,3\nz,0\nb,2\n")
    assert list(read_reports(path, model_of(MECHANISM))[0]["all"]) == [3, 2, 0]
    path.write_text("item,count\na,3\nz,1\nb,2\n")
    with pytest.raises(sv.errors.EstimateError, match="1 of 6 are not"):
        read_reports(path, model_of(MECHANISM))
