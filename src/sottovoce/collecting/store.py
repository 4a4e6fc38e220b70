"""The store of reports: one SQLite file, in which a report is a random id, a mechanism and a category.

There is no column for a time, a user or an address, and the rows are ordered by their random ids: the order
of arrival is not kept. `counts` is what the rows add up to, held by triggers in the transaction of the rows
themselves, so that an estimate costs as much as there are categories, however many reports there are.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_whole
from ..checks import FloatArray
from ..errors import EstimateError, StoreError
from ..groups import Groups
from ..release.ledger_store import DAMAGED
from ..release.mechanism import Mechanism
from ..tables.files import copy_whole
from ..temporary import private_file, private_folder
from .model import Model

APPLICATION = 0x736F7474
"""What SQLite calls the application id: "sott" in ASCII, in bytes 68 to 71 of the file."""
VERSION = 1
PATIENCE = 20.0
"""Seconds that a writer waits for another one."""

Key = tuple[str, str]
"""A mechanism by its digest, and the group that it is for."""

CHANGED = "the store was changed from outside: it names a category that there is not"
_MAGIC = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE mechanisms (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, "group" TEXT NOT NULL,
                         UNIQUE (digest, "group")) STRICT;
CREATE TABLE reports (id BLOB PRIMARY KEY CHECK (length(id) = 16), mechanism INTEGER NOT NULL,
                      category INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counts (mechanism INTEGER, category INTEGER, reports INTEGER NOT NULL,
                     PRIMARY KEY (mechanism, category)) STRICT, WITHOUT ROWID;
CREATE TRIGGER counted AFTER INSERT ON reports BEGIN
  INSERT INTO counts VALUES (new.mechanism, new.category, 1)
    ON CONFLICT (mechanism, category) DO UPDATE SET reports = reports + 1;
END;
CREATE TRIGGER uncounted AFTER DELETE ON reports BEGIN
  UPDATE counts SET reports = reports - 1 WHERE mechanism = old.mechanism AND category = old.category;
END;
CREATE TRIGGER unchanged BEFORE UPDATE ON reports BEGIN
  SELECT RAISE(ABORT, 'a report is never changed');
END;
"""


def is_store(table: Any) -> bool:
    """Whether something is the path of a store of reports, by the first bytes of the file."""
    head = b""
    if isinstance(table, str | Path) and os.path.isfile(table):
        with suppress(OSError), open(table, "rb") as file:
            head = file.read(100)
    return head.startswith(_MAGIC) and head[68:72] == APPLICATION.to_bytes(4, "big")


def _has_log(path: Path) -> bool:
    """Whether a log lies beside this name, which SQLite would read into whatever has the name."""
    return any(os.path.lexists(f"{path}{end}") for end in ("-wal", "-journal"))


def create_store(path: Path) -> None:
    """Make an empty store, whole or not at all, for its owner alone; what is there is never overwritten."""
    if not os.path.lexists(path) and _has_log(path):
        raise StoreError(
            f"{path} is gone, and its -wal or -journal file is not: restore one or remove the other"
        )
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA page_size = 1024")  # ids are random: each report changes its own page
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.executescript(_SCHEMA)
        content = database.serialize()
    database.close()
    try:
        write_whole(content, path, 0o600, replace=False)
    except FileExistsError:
        raise
    except OSError as problem:
        raise StoreError(f"no store could be made at {path}: {problem.strerror}") from None


def open_store(path: Path, served: Sequence[Key]) -> tuple[sqlite3.Connection, dict[Key, int]]:
    """Open a store to write to it; return the number that stands for each mechanism that is served.

    A commit is on the disk when it returns: WAL with synchronous = FULL flushes the log at each commit.
    """
    if not is_store(path):
        raise StoreError(f"{path} is not a store of reports: choose another name, and it is made")
    if path.stat().st_nlink > 1:  # SQLite keeps its log beside one name only
        raise StoreError(f"{path} has a second name (a hard link): remove one of them")
    try:
        database = _connect(path, "rw")
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA fullfsync = ON")  # macOS; elsewhere it means nothing
            database.execute("PRAGMA wal_autocheckpoint = 4000")  # pages of the log
            database.execute(f"PRAGMA journal_size_limit = {1 << 26}")
            return database, _numbers(database, path, served, add=True)
        except BaseException:
            database.close()
            raise
    except DAMAGED as problem:
        raise StoreError(f"{path} cannot be opened: {_reason(problem)}") from None


def _keys(known: Mapping[str, Model]) -> dict[str, Key]:
    """The digest and group under which a store has the reports of each group."""
    keys = {group: (model.digest, group) for group, model in known.items() if model.digest is not None}
    if len(keys) < len(known):
        raise EstimateError("a store names the mechanism of its reports: give that mechanism, not a sampler")
    return keys


def stored_counts(path: Path, known: Mapping[str, Model]) -> dict[str, FloatArray]:
    """How often each category was reported, by group, of one moment of a store that may be growing."""
    keys = _keys(known)
    with reading(path) as database:
        numbers = _numbers(database, path, list(keys.values()))
        counts = {
            group: counts_in(database, numbers[keys[group]], len(model.answers))
            for group, model in sorted(known.items())  # the order in which a table has them
        }
    filled = {group: reports for group, reports in counts.items() if reports.sum() > 0}
    if not filled:
        raise EstimateError(f"{path} holds no report yet")
    return filled


def stored_reports(path: Path, known: Mapping[str, Model]) -> Iterator[list[tuple[str, str, int]]]:
    """The reports of one moment of a store, in parts: the id as exports write it, the group, the category."""
    keys = _keys(known)
    with reading(path) as database:
        numbers = _numbers(database, path, list(keys.values()))
        groups = {numbers[key]: group for group, key in keys.items()}
        rows = database.execute("SELECT id, mechanism, category FROM reports")
        while part := rows.fetchmany(10_000):
            served = [(name, groups[number], category) for name, number, category in part if number in groups]
            if not all(0 <= category < len(known[group].answers) for _, group, category in served):
                raise StoreError(CHANGED)
            yield [(name.hex(), group, category) for name, group, category in served]


def export(path: Path, mechanisms: Groups[Mechanism]) -> Iterator[list[tuple[Any, ...]]]:
    """The reports of a mechanism file as of one moment, by id: the names of the columns, then the rows."""
    grouped = mechanisms.by is not None
    yield [("id", *([mechanisms.by] if grouped else []), "item", "epsilon", "mechanism")]
    with reading(path) as database:
        keys = {(mechanism.digest, group): (group, mechanism) for group, mechanism in mechanisms.items()}
        numbers = _numbers(database, path, list(keys))
        known = {numbers[key]: named for key, named in keys.items()}
        # Ids are random: in their order nothing of the order of arrival is left, whatever index SQLite has.
        rows = database.execute("SELECT id, mechanism, category FROM reports ORDER BY id")
        while part := rows.fetchmany(10_000):
            exported = []
            for name, (group, mechanism), category in ((a, known[b], c) for a, b, c in part if b in known):
                if not 0 <= category < len(mechanism.answers):
                    raise StoreError(CHANGED)
                values = (mechanism.answers[category], str(mechanism.epsilon), mechanism.digest)
                exported.append((name.hex(), *([group] if grouped else []), *values))
            yield exported


def back_up(path: Path, copy: Path) -> int:
    """Copy a store as of one moment, whole or not at all, while it is written to; return its reports."""
    if not is_store(path):
        raise StoreError(f"{path} is not a store of reports")
    if os.path.lexists(copy) or _has_log(copy):
        raise StoreError(f"{copy} is there already, or its -wal or -journal file: choose another name")
    with private_folder() as folder:
        made = Path(folder) / "copy.db"
        open(made, "xb", opener=private_file).close()  # SQLite writes into an empty file, and leaves its mode
        with reading(path) as database:
            database.execute("ROLLBACK")  # SQLite copies outside a transaction only
            database.execute("VACUUM INTO ?", (str(made),))
        with reading(made) as database:
            reports = sum(stored_totals(database).values())
        copy_whole(made, copy, 0o600, replace=False)
    return reports


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One moment of a store, read without keeping any writer waiting."""
    try:
        database = _connect(path, "ro")
        try:
            database.execute("BEGIN")
            yield database
        finally:
            database.close()
    except DAMAGED as problem:
        raise StoreError(
            f"{path} cannot be read: {_reason(problem)}; a store is read where its folder can be written to, "
            f"with its -wal file beside it if there is one"
        ) from None


def counts_in(database: sqlite3.Connection, number: int, categories: int) -> FloatArray:
    """How often each category of a mechanism was reported."""
    rows = database.execute("SELECT category, reports FROM counts WHERE mechanism = ?", (number,))
    counts = np.zeros(categories)
    for category, reports in rows:
        if not 0 <= category < categories or reports < 0:
            raise StoreError(CHANGED)
        counts[category] = reports
    return counts


def stored_totals(database: sqlite3.Connection) -> dict[int, int]:
    """How many reports a store holds, by the number of the mechanism."""
    return dict(database.execute("SELECT mechanism, sum(reports) FROM counts GROUP BY mechanism"))


def _reason(problem: Exception) -> str:
    """An error of SQLite in its own words, unless they quote what is damaged."""
    text = str(problem)
    return text if isinstance(problem, sqlite3.Error) and text.isprintable() else "it is damaged"


def _numbers(
    database: sqlite3.Connection, path: Path, keys: Sequence[Key], *, add: bool = False
) -> dict[Key, int]:
    """The number of each mechanism; what a store lacks it may take up, unless it knows none of them."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise StoreError(f"{path} has format {version}, this version reads {VERSION}")
    rows = database.execute('SELECT digest, "group", number FROM mechanisms').fetchall()
    stored = {(digest, group): number for digest, group, number in rows}
    lacking = [key for key in keys if key not in stored]
    if lacking and not (add and (not stored or len(lacking) < len(keys))):
        raise StoreError(
            f"{path} holds the reports of another mechanism file: take the one that it was made with, or "
            f"another store"
        )
    if lacking:
        database.executemany('INSERT OR IGNORE INTO mechanisms (digest, "group") VALUES (?, ?)', lacking)
        return _numbers(database, path, keys)
    return stored


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a database that exists; SQLite itself would make a missing one anew."""
    address = f"{Path(os.path.realpath(path)).as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
