"""The privacy budget: charged durably before anything is sampled, and never twice for one answer.

Amounts are whole micro-ε: a charge is rounded up, a budget down. A user's releases in an epoch add up, and
stop when the budget is spent. What was released is remembered under (mechanism, user, epoch), so asking again
returns the same answer and costs nothing.

The order of one release is fixed: charge committed to disk, witness written, category drawn, answer
committed, answer returned. If power fails in between, ε was charged and nothing came out; the next request
draws on that charge. Beside the database stands a witness file with the number of the last charge. A database
that is older than its witness (restored from a backup, rolled back by a snapshot) or gone refuses to release.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from .document import write_whole
from .errors import BudgetError, LedgerError, ParameterError
from .mechanism import Mechanism
from .prior import Category

MICRO = 1_000_000
LARGEST = 10**9
"""The largest budget or grant, in ε: far above any use, far below what 64-bit sums of micro-ε can hold."""

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE spent (user BLOB, epoch TEXT, micro INTEGER NOT NULL, PRIMARY KEY (user, epoch)) STRICT;
CREATE TABLE granted (user BLOB, epoch TEXT, micro INTEGER NOT NULL, PRIMARY KEY (user, epoch)) STRICT;
CREATE TABLE answers (mechanism TEXT, user BLOB, epoch TEXT, position INTEGER,
                      PRIMARY KEY (mechanism, user, epoch)) STRICT;
"""


def charge_of(epsilon: Fraction) -> int:
    """⌈ε·10⁶⌉: what a release costs."""
    return -(-epsilon.numerator * MICRO // epsilon.denominator)


def budget_of(amount: Fraction | float | int | str) -> int:
    """⌊amount·10⁶⌋, the amount taken as it is written: 0.3 is three tenths."""
    text = str(amount)
    try:
        # A long or exponential text could take minutes to turn into a fraction.
        value = Fraction(text) if len(text) <= 60 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None:
        raise ParameterError(f"budget must be a number such as 4, 0.5 or 1/3, got {text[:60]!r}")
    if not 0 < value <= LARGEST:
        raise ParameterError(f"budget must be greater than 0 and at most {LARGEST}, got {text}")
    return value.numerator * MICRO // value.denominator


class Ledger:
    """A budget of ε per user and epoch, in one SQLite file and its witness.

    Guarantees
        Released ⊆ charged, through crashes, power loss and any number of processes. Users are stored as keyed
        hashes, with the key in the same file: no list of names, but whoever has the file can test a guess.
        What it cannot notice: database *and* witness rolled back together.

    Make one with `Ledger.create(path, budget=4)`, use it later with `Ledger(path)`.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        beside = _witness_beside(self._path)
        if not self._path.is_file():
            lost = " although its witness is there: the store was lost" if beside.exists() else ""
            raise LedgerError(f"there is no ledger at {self._path}{lost}; nothing is released")
        try:
            self._open()
            self._key = bytes.fromhex(self._fact("key"))
            self._budget = int(self._fact("budget"))
            self._witness = Path(self._fact("witness")) if self._fact("witness") else beside
            self._check()
        except (sqlite3.Error, ValueError) as problem:
            if isinstance(problem, LedgerError):
                raise
            raise LedgerError(f"{self._path} is not a readable ledger; nothing is released") from None

    @classmethod
    def create(
        cls, path: str | Path, *, budget: Fraction | float | int | str, witness: str | Path | None = None
    ) -> Ledger:
        """Start an empty ledger that allows every user `budget` of ε in each epoch.

        `witness` may stand on another volume, out of reach of a snapshot of this one; its place is
        remembered in the ledger.
        """
        path = Path(path)
        micro = budget_of(budget)
        place = _witness_beside(path) if witness is None else Path(witness).absolute()
        if path.exists() or place.exists():
            raise LedgerError(
                f"there is something at {path} or {place} already; a ledger is never overwritten"
            )
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            database = sqlite3.connect(path)
            try:
                database.executescript(_SCHEMA)
                facts = {"version": "1", "key": secrets.token_hex(32), "budget": str(micro), "charges": "0"}
                facts["witness"] = "" if witness is None else str(place)
                database.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
                database.commit()
            finally:
                database.close()
            write_whole("0\n", place, 0o600)
        except (OSError, sqlite3.Error) as problem:
            path.unlink(missing_ok=True)  # it did not exist before: half a ledger is none
            raise LedgerError(f"no ledger could be made at {path}: {type(problem).__name__}") from None
        return cls(path)

    @property
    def budget(self) -> Fraction:
        """What every user may spend in one epoch."""
        return Fraction(self._budget, MICRO)

    def left(self, user: Category, epoch: str = "") -> Fraction:
        """How much ε a user still has in an epoch."""
        try:
            return Fraction(self._left_micro(self._hash(user), _checked_epoch(epoch)), MICRO)
        except sqlite3.Error:
            raise LedgerError(f"{self._path} could not be read; nothing is released") from None

    def grant(self, user: Category, more: Fraction | float | int | str, epoch: str = "") -> None:
        """Allow one user more ε in one epoch, and forget their answers there: the next release is new."""
        key, micro, epoch = self._hash(user), budget_of(more), _checked_epoch(epoch)
        with self._exclusively():
            self._add("granted", key, epoch, micro)
            self._database.execute("DELETE FROM answers WHERE user = ? AND epoch = ?", (key, epoch))

    def release(
        self, mechanism: Mechanism, user: Category, records: Iterable[Category], *, epoch: str = ""
    ) -> Category:
        """Release for one user, or return what was released before; charge only for something new.

        Raises
            BudgetError: not enough ε is left; says how much is. Nothing is released.
            LedgerError: the store was lost, rolled back or damaged. Nothing is released.
        """
        (answer,) = self.release_batch(mechanism, [user], lambda _: [mechanism.release(records)], epoch=epoch)
        return answer

    def release_batch(
        self,
        mechanism: Mechanism,
        users: Sequence[Category],
        draw: Callable[[list[int]], Sequence[Category]],
        *,
        epoch: str = "",
    ) -> list[Category]:
        """Charge all users who have no answer yet, in one commit, then `draw` for those positions.

        All or nothing: when one user has too little left, nobody is charged. The message says how many lack
        budget (for a single user: how much is left), never which.
        """
        keys = [self._hash(user) for user in users]
        if len(set(keys)) != len(keys):
            raise ParameterError("users must be distinct within one batch")
        cost, digest, epoch = charge_of(mechanism.epsilon), mechanism.digest, _checked_epoch(epoch)
        known = self._answers(digest, keys, epoch)
        if any(key not in known for key in keys):
            with self._exclusively():
                known = self._answers(digest, keys, epoch)  # another process may have been faster
                new = [key for key in keys if key not in known]
                self._refuse_overspending(new, epoch, cost)
                for key in new:
                    self._add("spent", key, epoch, cost)
                paid = [(digest, key, epoch, None) for key in new]
                self._database.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", paid)
                self._bump()
        open_ones = [i for i, key in enumerate(keys) if known.get(key) is None]
        if open_ones:
            self._testify()  # also for a charge that somebody else paid and could not use
            drawn = draw(open_ones)
            rows = [
                (mechanism.index[category], digest, keys[i], epoch)
                for i, category in zip(open_ones, drawn, strict=True)
            ]
            with self._exclusively():  # if two processes drew on one charge, the first answer stays
                self._database.executemany(
                    "UPDATE answers SET position = ? "
                    "WHERE mechanism = ? AND user = ? AND epoch = ? AND position IS NULL",
                    rows,
                )
                self._bump()
            self._testify()  # a store from before the answer must not be able to draw again
            known = self._answers(digest, keys, epoch)
        return [mechanism.categories[self._place(known, key)] for key in keys]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # --- inside ------------------------------------------------------------------------------

    def _open(self) -> None:
        self._database = sqlite3.connect(self._path, timeout=60, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.execute("PRAGMA synchronous = EXTRA")  # the directory entry is flushed as well

    def _fact(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise LedgerError(f"{self._path} is not a readable ledger; nothing is released")
        return str(row[0])

    def _check(self) -> None:
        """Refuse a database that is behind its witness."""
        try:
            seen = int(self._witness.read_text(encoding="ascii"))
        except (OSError, ValueError):
            raise LedgerError(
                f"the witness of {self._path} is missing or damaged; nothing is released"
            ) from None
        if int(self._fact("charges")) < seen:
            raise LedgerError(
                f"{self._path} was rolled back: it knows fewer charges than its witness; nothing is released"
            )

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """One writer at a time, all or nothing, on disk when it returns."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._check()
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error:
            raise LedgerError(f"{self._path} is busy or could not be written; nothing is released") from None
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _bump(self) -> None:
        count = int(self._fact("charges")) + 1
        self._database.execute("UPDATE facts SET value = ? WHERE name = 'charges'", (str(count),))

    def _testify(self) -> None:
        """Write the witness under the lock, so that it only ever grows."""
        with self._exclusively():
            try:
                write_whole(f"{self._fact('charges')}\n", self._witness, 0o600)
            except OSError:
                raise LedgerError(
                    f"the witness {self._witness} could not be written; nothing is released"
                ) from None

    def _hash(self, user: Category) -> bytes:
        if not isinstance(user, str | int) or isinstance(user, bool):
            raise ParameterError("user must be a string or an integer")
        # One person, one budget: 7, "7" and numpy's own strings are the same user.
        text = (str.__str__(user) if isinstance(user, str) else str(int(user))).encode(
            "utf-8", "surrogatepass"
        )
        return hashlib.blake2b(text, key=self._key, digest_size=16).digest()

    def _add(self, table: str, key: bytes, epoch: str, micro: int) -> None:
        sql = {
            "spent": "INSERT INTO spent VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
            "granted": "INSERT INTO granted VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
        }[table]
        self._database.execute(sql, (key, epoch, micro))

    def _left_micro(self, key: bytes, epoch: str) -> int:
        spent, granted = (
            self._database.execute(sql, (key, epoch)).fetchone()
            for sql in (
                "SELECT micro FROM spent WHERE user = ? AND epoch = ?",
                "SELECT micro FROM granted WHERE user = ? AND epoch = ?",
            )
        )
        return self._budget + (granted[0] if granted else 0) - (spent[0] if spent else 0)

    def _refuse_overspending(self, keys: list[bytes], epoch: str, cost: int) -> None:
        lacking = [left for key in keys if (left := self._left_micro(key, epoch)) < cost]
        if not lacking:
            return
        need = _epsilon(cost)
        if len(keys) == 1:
            raise BudgetError(f"this release needs ε = {need}, ε = {_epsilon(max(lacking[0], 0))} is left")
        raise BudgetError(
            f"{len(lacking)} of {len(keys)} users have less than the ε = {need} that a release needs"
        )

    def _place(self, known: dict[bytes, int | None], key: bytes) -> int:
        place = known.get(key)
        if place is None:
            raise LedgerError(f"an answer vanished from {self._path}; nothing is released")
        return place

    def _answers(self, digest: str, keys: list[bytes], epoch: str) -> dict[bytes, int | None]:
        """Answers by user; None where a charge was paid and nothing drawn yet."""
        sql = "SELECT position FROM answers WHERE mechanism = ? AND user = ? AND epoch = ?"
        try:
            found = {key: self._database.execute(sql, (digest, key, epoch)).fetchone() for key in keys}
        except sqlite3.Error:
            raise LedgerError(f"{self._path} could not be read; nothing is released") from None
        return {key: row[0] for key, row in found.items() if row is not None}


def _epsilon(micro: int) -> str:
    """Micro-ε as a decimal number, exactly."""
    whole, rest = divmod(micro, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _witness_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.witness")


def _checked_epoch(epoch: object) -> str:
    if type(epoch) is not str or not epoch.isprintable():
        raise ParameterError("epoch must be printable text, such as 2026-11")
    return epoch
