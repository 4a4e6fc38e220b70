"""The one thread of a process that writes to the store: batches that wait together are committed together.

A batch is answered when its commit is on the disk, never before, and is all or nothing: it has a savepoint of
its own inside the commit that it shares.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from ..collecting.store import VERSION, Key, open_store
from ..errors import StoreError
from .batches import Refusal, Row

MOST_WAITING = 50_000
"""Reports that may wait for a commit; more are told to come back, so that memory stays flat."""
OTHER_CONTENT = "this id is taken by a report with another content: a report is sent again as it was, or not"
BUSY = "the collector has more reports waiting than it takes: send the batch again later"
NOT_STORED = "the batch could not be stored: send it again later, as it is"

_INSERT = "INSERT INTO reports VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
_STORED = "SELECT mechanism, category FROM reports WHERE id = ?"


class Writer:
    """A queue in front of the store; `numbers` are those of the mechanisms in it."""

    def __init__(self, path: Path, served: Sequence[Key], say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._database, self.numbers = open_store(path, served)
        self._opened = path.stat()
        self._healthy = True
        self._queue: queue.SimpleQueue[tuple[Sequence[Row], Future[int]] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def store(self, rows: Sequence[Row]) -> Future[int]:
        """Have a batch stored; the future has the number of new reports once they are on the disk.

        A batch without reports asks whether the store takes writes.
        """
        future: Future[int] = Future()
        with self._lock:
            if self._waiting + len(rows) > MOST_WAITING:
                raise Refusal(503, BUSY)
            self._waiting += len(rows)
        self._queue.put((rows, future))
        return future

    def close(self) -> None:
        """Store what is waiting, and close the store."""
        self._queue.put(None)
        self._thread.join()
        self._database.close()

    def _run(self) -> None:
        ended = False
        while not ended:
            batches, size = [], 0
            waiting = self._queue.get()
            while waiting is not None:
                batches.append(waiting)
                size += len(waiting[0])
                if size >= 5_000:  # reports of one commit, about
                    break
                try:
                    waiting = self._queue.get_nowait()
                except queue.Empty:
                    break
            ended = waiting is None
            if batches:
                self._commit(batches)
            with self._lock:
                self._waiting -= size

    def _commit(self, batches: Sequence[tuple[Sequence[Row], Future[int]]]) -> None:
        """One commit for all, then one answer for each."""
        taken = [batch for batch in batches if batch[1].set_running_or_notify_cancel()]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._check_place()
            results: list[int | Refusal] = [self._add(rows) for rows, _ in taken]
            self._database.execute("COMMIT")
        except Exception as problem:  # whatever it is: every sender gets an answer, and none of them a 202
            with suppress(sqlite3.Error):
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
            self._tell(healthy=False, why=str(problem))
            results = [Refusal(503, NOT_STORED) for _ in taken]
        else:
            self._tell(healthy=True)
        for (_, future), result in zip(taken, results, strict=True):
            if isinstance(result, Refusal):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _add(self, rows: Sequence[Row]) -> int | Refusal:
        """Add the reports of a batch that are not there yet, or none of them if an id has another content."""
        database = self._database
        if not rows:
            database.execute(f"PRAGMA user_version = {VERSION}")  # it is written though it does not change
            return 0
        values = [(name, self.numbers[key], index) for name, key, index in rows]
        database.execute("SAVEPOINT batch")
        before = database.total_changes
        database.executemany(_INSERT, values)
        new = (database.total_changes - before) // 2  # triggers count as changes too, one for each row
        refusal = None
        if new < len(values):
            for i, (name, *content) in enumerate(values):
                if list(database.execute(_STORED, (name,)).fetchone()) != content:
                    refusal = Refusal(409, OTHER_CONTENT, i)
                    database.execute("ROLLBACK TO batch")
                    break
        database.execute("RELEASE batch")
        return refusal or new

    def _check_place(self) -> None:
        """Refuse to write to a file that is no longer at its path: what it holds would be lost."""
        try:
            here = os.path.samestat(self._path.stat(), self._opened)
        except OSError:
            here = False
        if not here:
            raise StoreError(f"the store at {self._path} was removed or replaced while it was open")

    def _tell(self, *, healthy: bool, why: str = "") -> None:
        """Say once that the store fails, and once that it works again."""
        if healthy != self._healthy:
            self._healthy = healthy
            self._say("reports are stored again" if healthy else f"nothing is accepted: {why}")
