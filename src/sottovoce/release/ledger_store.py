"""The store of a ledger: an SQLite file and the witness beside it. It is made once, and opened, never remade.

Beside the database stands a witness file: the number of the last commit, whose witness it is, and a random
word of that commit. A database that is older than its witness (restored from a backup, rolled back by a
snapshot), has gone another way from there (a copy), is another one, gone, or replaced under an open ledger
refuses.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from .._atomic import flush_folder, write_whole
from ..errors import LedgerError

VERSION = "4"
DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file raises: an error of SQLite, or Python's where that quotes bytes that are no text."""

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE epochs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE kinds (id INTEGER PRIMARY KEY, mechanism TEXT NOT NULL, "group" TEXT NOT NULL, life TEXT,
                    UNIQUE (mechanism, "group")) STRICT;
CREATE TABLE entries (user BLOB, epoch INTEGER, kind INTEGER, answer INTEGER, here INTEGER NOT NULL,
                      ever INTEGER NOT NULL, PRIMARY KEY (user, epoch, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE streams (user BLOB, life TEXT, state TEXT NOT NULL,
                      PRIMARY KEY (user, life)) STRICT, WITHOUT ROWID;
"""


def refused(why: str) -> LedgerError:
    """What is raised where a store cannot be trusted."""
    return LedgerError(f"{why}; nothing is released")


def create_store(path: Path, facts: Mapping[str, str], witness: Path | None) -> None:
    """Make an empty store and its witness. Both names are claimed first, so that of two creators one fails.

    Whatever fails, only files that this call has made are removed.
    """
    place = witness_beside(path) if witness is None else witness
    if place.name.removeprefix(path.name) in ("", "-journal", "-wal", "-shm") and place.parent == path.parent:
        raise LedgerError(f"the witness cannot stand at {place}: that name belongs to the store itself")
    if os.path.lexists(witness_beside(path)) and not os.path.lexists(path):
        raise LedgerError(f"there is something at {witness_beside(path)} already: a ledger was here before")
    stated = {"version": VERSION, "commits": "0", "word": secrets.token_hex(16), **facts}
    stated["witness"] = "" if witness is None else str(place)
    made: list[tuple[Path, int]] = []  # held open, so that no other file gets the number of ours
    complete = False
    try:
        for name in (path, place):
            made.append((name, os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)))
        database = _connect(path)
        try:
            database.executescript(_SCHEMA)
            database.execute("BEGIN")
            database.executemany("INSERT INTO facts VALUES (?, ?)", stated.items())
            database.execute("COMMIT")
        finally:
            database.close()
        write_whole(_testimony(0, stated["key"], stated["word"]), place, 0o600)
        flush_folder(path.parent)
        complete = True
    except FileExistsError as taken:
        raise LedgerError(f"{taken.filename} is there already: a ledger is never overwritten") from None
    except (OSError, sqlite3.Error) as problem:
        raise LedgerError(f"no ledger could be made at {path}: {type(problem).__name__}") from None
    finally:
        for name, handle in made:  # half a ledger is none; what somebody else put there is not ours to remove
            with suppress(OSError):
                if not complete and os.path.samestat(os.stat(name, follow_symlinks=False), os.fstat(handle)):
                    name.unlink()
            os.close(handle)


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
        opened = False
        try:
            self._opened = path.stat()
            if self._opened.st_nlink > 1:  # SQLite keeps its journal beside one name only
                raise refused(f"{path} has a second name (a hard link)")
            self.database = _connect(path)
            if not self.database.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone():
                raise LedgerError(
                    f"{path} is not a readable ledger; nothing is released. If making it was interrupted, "
                    f"nobody was charged in it: remove it with its witness, and create it again"
                )
            if (version := self.fact("version")) != VERSION:
                known = version.isascii() and version.isdigit() and len(version) < 10
                shown = version if known else "unknown"
                formats = f"has format {shown}, this version reads {VERSION}"
                raise refused(f"{path} {formats}: its charges cannot be taken over")
            stated = self.fact("witness")
            self.witness = Path(stated) if stated else beside
            self.check()
            opened = True
        except (OSError, *DAMAGED):
            raise self.unreadable() from None
        finally:
            if not opened and hasattr(self, "database"):
                self.database.close()

    def unreadable(self) -> LedgerError:
        """What is raised where the file is not what it should be."""
        return refused(f"{self.path} is not a readable ledger")

    def fact(self, name: str) -> str:
        """One of the facts that were stated when the store was made, or the number of commits."""
        row = self.database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise self.unreadable()
        return str(row[0])

    def check(self) -> None:
        """Refuse a database that is behind its witness, or that is no longer the file at its path."""
        try:
            here = os.path.samestat(self.path.stat(), self._opened)
        except OSError:
            here = False
        if not here:
            raise refused(f"the store at {self.path} was removed or replaced while it was open")
        seen, whose, word = self._witnessed()  # first: a store that goes on meanwhile is ahead, not behind
        commits, own_word = self._last_commit()
        if whose != _identity(self.fact("key")):
            raise refused(f"the witness {self.witness} belongs to another ledger than {self.path}")
        if commits < seen:
            raise refused(f"{self.path} was rolled back: it knows fewer charges than its witness")
        if commits == seen and word != own_word:
            raise refused(f"{self.path} is a copy that has gone another way than its witness")

    def _last_commit(self) -> tuple[int, str]:
        """Number and word of the last commit, of one moment."""
        sql = "SELECT value FROM facts WHERE name IN ('commits', 'word') ORDER BY name"
        values = [str(row[0]) for row in self.database.execute(sql).fetchall()]
        if len(values) != 2:
            raise self.unreadable()
        return self._whole(values[0]), values[1]

    def _witnessed(self) -> tuple[int, str, str]:
        """What the witness says: commits, whose witness it is, and the word of the last commit."""
        try:
            count, whose, word = self.witness.read_text(encoding="ascii").split()
            return self._whole(count), whose, word
        except (OSError, ValueError):
            raise refused(f"the witness of {self.path} is missing or damaged") from None

    def number(self, name: str) -> int:
        """A fact that is an integer of at most 18 digits."""
        return self._whole(self.fact(name))

    def _whole(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise self.unreadable()
        return int(text)

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

    @property
    def commits(self) -> int:
        """The number of the last commit."""
        return self._last_commit()[0]

    def count_commit(self) -> int:
        """Count a commit that the witness has to know, under a word of its own, and return its number."""
        number = self.commits + 1
        for name, value in {"commits": str(number), "word": secrets.token_hex(16)}.items():
            self.database.execute("UPDATE facts SET value = ? WHERE name = ?", (value, name))
        return number

    def testify(self) -> None:
        """Write the last commit to the witness, under the lock, so that it only ever grows."""
        with self.exclusively():
            commits, word = self._last_commit()
            if self._witnessed()[0] == commits:
                return
            try:
                write_whole(_testimony(commits, self.fact("key"), word), self.witness, 0o600)
            except OSError:
                raise refused(f"the witness {self.witness} could not be written") from None

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _identity(key: str) -> str:
    """Whose witness it is: a hash of the store's key, which the key cannot be found from."""
    return hashlib.blake2b(b"witness " + key.encode("ascii", "replace"), digest_size=16).hexdigest()


def _testimony(commits: int, key: str, word: str) -> str:
    return f"{commits} {_identity(key)} {word}\n"


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
