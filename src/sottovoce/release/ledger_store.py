"""The store of a ledger: an SQLite file and the witness beside it. It is made once, and opened, never remade.

The witness is a file with the number of the last commit, whose witness it is, and a random word of that
commit. A database refuses if it is older than its witness (from a backup or a snapshot), has gone another way
from there (a copy), is another one, gone, or replaced under an open ledger.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from ..atomic import write_whole
from ..errors import LedgerError

APPLICATION = 0x736F746C
"""What SQLite calls the application id: "sotl" in ASCII."""
VERSION = 5
KEY_BYTES = 32
DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file raises: an error of SQLite, or Python's where that quotes bytes that are no text."""

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE facts (key BLOB, budget INTEGER, lifetime INTEGER, witness TEXT,
                    commits INTEGER, word TEXT) STRICT;
CREATE TABLE epochs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE kinds (id INTEGER PRIMARY KEY, mechanism TEXT NOT NULL, "group" TEXT NOT NULL, life TEXT,
                    UNIQUE (mechanism, "group")) STRICT;
CREATE TABLE entries (user BLOB, epoch INTEGER, kind INTEGER, answer INTEGER, here INTEGER NOT NULL,
                      ever INTEGER NOT NULL, PRIMARY KEY (user, epoch, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE streams (user BLOB, life TEXT, state TEXT NOT NULL,
                      PRIMARY KEY (user, life)) STRICT, WITHOUT ROWID;
"""


class Facts(NamedTuple):
    """What is stated when a store is made, and its last commit."""

    key: bytes
    budget: int
    lifetime: int | None
    witness: str | None  # None: beside the store
    commits: int
    word: str


_KINDS = tuple(get_type_hints(Facts).values())


def refused(why: str) -> LedgerError:
    """What is raised where a store cannot be trusted."""
    return LedgerError(f"{why}; nothing is released")


def create_store(path: Path, budget: int, lifetime: int | None, witness: Path | None) -> None:
    """Make a witness and an empty store, whole or not at all: of two creators one fails.

    Whatever fails, only a file that this call has made is removed.
    """
    place = witness_beside(path) if witness is None else witness
    if place.name.removeprefix(path.name) in ("", "-journal", "-wal", "-shm") and place.parent == path.parent:
        raise LedgerError(f"the witness cannot stand at {place}: that name belongs to the store itself")
    if os.path.lexists(path):
        raise LedgerError(f"{path} is there already: a ledger is never overwritten")
    if os.path.lexists(witness_beside(path)):
        raise LedgerError(f"there is something at {witness_beside(path)} already: a ledger was here before")
    stated = None if witness is None else str(witness)
    facts = Facts(secrets.token_bytes(KEY_BYTES), budget, lifetime, stated, 0, secrets.token_hex(16))
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_SCHEMA)
        database.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", facts)
        database.commit()
        content = database.serialize()
    try:
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w") as file:  # held open, so that no other file gets its number
            try:
                file.write(_testimony(facts))
                file.flush()
                os.fsync(handle)
                write_whole(content, path, 0o600, replace=False)
            except BaseException:
                with suppress(OSError):
                    if os.path.samestat(os.stat(place, follow_symlinks=False), os.fstat(handle)):
                        place.unlink()
                raise
    except FileExistsError:
        raise LedgerError(f"{path} or {place} is there already: a ledger is never overwritten") from None
    except OSError as problem:
        raise LedgerError(f"no ledger could be made at {path}: {type(problem).__name__}") from None


class Store:
    """An open store: facts, exclusive transactions, and the witness that only ever grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        beside = witness_beside(path)
        if not path.is_file():
            why = ": make one with sottovoce ledger create, in Python Ledger.create(path, budget=…)"
            if beside.exists():
                why = f" although its witness {beside.name} is there: the store was lost"
            raise refused(f"there is no ledger at {path}{why}")
        try:
            self._opened = path.stat()
            if self._opened.st_nlink > 1:  # SQLite keeps its journal beside one name only
                raise refused(f"{path} has a second name (a hard link)")
            self.database = _connect(path)
            try:
                sql = "SELECT * FROM pragma_application_id, pragma_user_version"
                application, version = self.database.execute(sql).fetchone()
                if application != APPLICATION:
                    raise self._unreadable()
                if version != VERSION:
                    formats = f"has format {version}, this version reads {VERSION}"
                    raise refused(f"{path} {formats}: its charges cannot be taken over")
                self.stated = self.facts()
                self.witness = beside if self.stated.witness is None else Path(self.stated.witness)
                self.check()
            except BaseException:
                self.database.close()
                raise
        except (OSError, *DAMAGED):
            raise self._unreadable() from None

    def _unreadable(self) -> LedgerError:
        return refused(f"{self.path} is not a readable ledger")

    def facts(self) -> Facts:
        """What was stated when the store was made, and the last commit, of one moment."""
        rows = self.database.execute("SELECT * FROM facts").fetchall()
        whole = len(rows) == 1 and len(rows[0]) == len(_KINDS) and all(map(isinstance, rows[0], _KINDS))
        if not whole or len(rows[0][0]) != KEY_BYTES:
            raise self._unreadable()
        return Facts(*rows[0])

    def check(self) -> None:
        """Refuse a database that is behind its witness, or that is no longer the file at its path."""
        try:
            here = os.path.samestat(self.path.stat(), self._opened)
        except OSError:
            here = False
        if not here:
            raise refused(f"the store at {self.path} was removed or replaced while it was open")
        seen, whose, word = self._witnessed()  # first: a store that goes on meanwhile is ahead, not behind
        facts = self.facts()
        if whose != _identity(facts):
            raise refused(f"the witness {self.witness} belongs to another ledger than {self.path}")
        if facts.commits < seen:
            raise refused(f"{self.path} was rolled back: it knows fewer charges than its witness")
        if facts.commits == seen and word != facts.word:
            raise refused(f"{self.path} is a copy that has gone another way than its witness")

    def _witnessed(self) -> tuple[int, str, str]:
        """What the witness says: commits, whose witness it is, and the word of the last commit."""
        try:
            count, whose, word = self.witness.read_text(encoding="ascii").split()
            if not count.isdigit() or len(count) > 18:
                raise ValueError
            return int(count), whose, word
        except (OSError, ValueError):
            raise refused(f"the witness of {self.path} is missing or damaged") from None

    @contextmanager
    def exclusively(self) -> Iterator[sqlite3.Connection]:
        """One writer at a time, all or nothing, on disk when it returns."""
        with self._transaction("BEGIN IMMEDIATE", "is busy or could not be written"):
            self.check()
            yield self.database

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Questions to the store as it is at one moment."""
        with self._transaction("BEGIN", "could not be read"):
            yield self.database

    def rows(self, sql: str, given: Sequence[object] = ()) -> list[Any]:
        """What one question returns."""
        with self.reading() as database:
            return database.execute(sql, given).fetchall()

    @contextmanager
    def _transaction(self, begin: str, problem: str) -> Iterator[None]:
        try:
            self.database.execute(begin)
            try:
                yield
                self.database.execute("COMMIT")
            finally:
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
        except DAMAGED:
            raise refused(f"{self.path} {problem}") from None

    def count_commit(self) -> int:
        """Count a commit that the witness has to know, under a word of its own, and return its number."""
        sql = "UPDATE facts SET commits = commits + 1, word = ?"
        self.database.execute(sql, (secrets.token_hex(16),))
        return self.facts().commits

    def testify(self) -> None:
        """Write the last commit to the witness, under the lock, so that it only ever grows."""
        with self.exclusively():
            facts = self.facts()
            if self._witnessed()[0] == facts.commits:
                return
            try:
                write_whole(_testimony(facts), self.witness, 0o600)
            except OSError:
                raise refused(f"the witness {self.witness} could not be written") from None

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _identity(facts: Facts) -> str:
    """Whose witness it is: a hash of the store's key, which the key cannot be found from."""
    return hashlib.blake2b(b"witness " + facts.key, digest_size=16).hexdigest()


def _testimony(facts: Facts) -> str:
    return f"{facts.commits} {_identity(facts)} {facts.word}\n"


def witness_beside(path: Path) -> Path:
    """The witness's place unless another was chosen."""
    return path.with_name(f"{path.name}.witness")


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database that exists; SQLite itself would make a missing one anew."""
    database = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = EXTRA")  # the directory entry is flushed as well
    except BaseException:
        database.close()
        raise
    return database
