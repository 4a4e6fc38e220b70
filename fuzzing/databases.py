"""Damaged SQLite files: the ledger's, and the store of reports."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.collecting.model import model_of
from sottovoce.collecting.store import create_store, open_store, stored_counts, stored_totals
from sottovoce.release.ledger import charge_of

from .patches import damaged, mutated
from .target import Target, folder, holds, refusals, written

MECHANISM = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2]), 1.0))
KEY = (MECHANISM.digest, "all")
_BESIDE = ("-journal", "-wal", "-shm")


def _alone(path: Path) -> None:
    """Remove what SQLite left beside a file."""
    for end in _BESIDE:
        path.with_name(path.name + end).unlink(missing_ok=True)


@cache
def _sound_ledger() -> tuple[bytes, bytes]:
    """A ledger with charges, grants and answers, and its witness."""
    path = folder() / "sound.db"
    ledger = sv.Ledger.create(path, budget=3, lifetime=5)
    for user in ("ann", "bob", "cem"):
        ledger.release(MECHANISM, user, records=["a", "b"], epoch="e1")
    ledger.release(MECHANISM, "ann", records=["a"], epoch="e2", group="north")
    ledger.grant("bob", 1, epoch="e1")
    witness = ledger.witness
    ledger.close()
    return path.read_bytes(), witness.read_bytes()


def check_ledger(data: bytes) -> bool:
    """Open a damaged ledger and use it: whatever is released was charged.

    The first line is the witness, "sound" for the right one; the others say how the file is damaged.
    """
    sound, witness = _sound_ledger()
    first, *lines = data.decode("latin-1").split("\n")
    path = written("l.db", damaged(sound, lines))
    _alone(path)
    written("l.db.witness", witness if first == "sound" else first.encode("latin-1"))
    ledger = None
    released = False
    with refusals():
        ledger = sv.Ledger.open(path)
        ledger.epochs(), ledger.users(), ledger.budget, ledger.lifetime
        before = ledger.total("new")
        for user in ("ann", "new"):
            ledger.left(user, "e1"), ledger.total(user)
            answer = ledger.release(MECHANISM, user, records=["a", "c"], epoch="e1")
            holds(answer in MECHANISM.categories, "something else than a category was released")
        charged = ledger.total("new") - before
        holds(charged == Fraction(charge_of(MECHANISM.epsilon), 10**6), "released and not charged")
        ledger.grant("new", 1, "e1")
        released = True
    if ledger is not None:
        ledger.close()
    return released


def ledger_seeds() -> Sequence[bytes]:
    """The sound one, other witnesses, and damage here and there."""
    _, witness = _sound_ledger()
    return [
        b"sound",
        witness.strip(),
        b"0 a b",
        b"",
        b"sound\n0 end",
        b"sound\n100 ff",
        b"sound\n4096 00ff\n9000 7f",
    ]


@cache
def _sound_store() -> bytes:
    path = folder() / "sound.store"
    create_store(path)
    database, numbers = open_store(path, [KEY])
    rows = [(bytes([i]) * 16, numbers[KEY], i % 3) for i in range(60)]
    with database:
        database.executemany("INSERT INTO reports VALUES (?, ?, ?)", rows)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path.read_bytes()


def check_store(data: bytes) -> bool:
    """Count a damaged store, and open it as the collector does."""
    path = written("r.db", damaged(_sound_store(), data.decode("latin-1").split("\n")))
    _alone(path)
    counts = None
    with refusals():
        counts = stored_counts(path, {"all": model_of(MECHANISM)})["all"]
    if counts is not None:
        holds(bool(np.all(np.isfinite(counts)) and np.all(counts >= 0)), "a store counts below zero")
    with refusals():
        database, numbers = open_store(path, [KEY])
        try:
            holds(set(numbers) == {KEY}, "a store of other groups")
            stored_totals(database)
        except sqlite3.Error:  # the collector answers 503, and says so once
            pass
        finally:
            database.close()
    return counts is not None


def store_seeds() -> Sequence[bytes]:
    """A store with reports, and damage here and there."""
    return [b"", b"100 ff", b"18 02", b"1024 0000", b"2000 end", b"1500 cut 8"]


TARGETS = (
    Target(
        "ledger", check_ledger, ledger_seeds, mutated,
        ("release/ledger.py", "release/ledger_store.py"),
        longest=400, everyday=60,
    ),
    Target("store", check_store, store_seeds, mutated, ("collecting/store.py",), longest=400),
)  # fmt: skip
