"""Schedules of `ledger_model` on the real `Ledger`, step by step, and the first difference between the two.

Each process of the model is a thread with a connection of its own. SQLite keeps the locks of a file for every
connection, also where two belong to one process, and no step of a schedule ends inside a transaction: so two
connections here do what two processes do. The code of the ledger runs as it is. It stops before it looks for
an answer, writes the witness, draws, or returns, and after it has drawn; everything between two stops is one
transaction, one writing of the witness, or something inside the process.

A crash leaves the code at such a stop and closes the connection, which rolls an open transaction back as
SQLite does after a kill; `tests/release/test_ledger_model.py` compares that with processes that really end.
The power does not fail here, so nothing waits for the disk. A draw gives a category that was never drawn
before, instead of a random one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import pytest
from ledger_model import (
    BUDGET_REFUSED,
    IDLE,
    LEDGER_REFUSED,
    OFF,
    PENDING,
    RULES,
    SHOWN,
    UNPAID,
    Answer,
    Outcome,
    Size,
    State,
    Step,
    advance,
    initial,
)

import sottovoce as sv
from sottovoce.errors import BudgetError, LedgerError
from sottovoce.release import ledger_store
from sottovoce.release.ledger import Ledger
from sottovoce.release.ledger_store import Store

CATEGORIES = [f"c{i}" for i in range(64)]
MECHANISM = sv.certify(sv.kernel_clip(sv.Prior.uniform(CATEGORIES), 1.0))
USER, EPOCH = "ann", "may"


class Killed(BaseException):
    """Where a process is killed."""


class Difference(AssertionError):
    """The ledger does something else than the model."""

    def __init__(self, what: str, schedule: Sequence[Step], expected: object, found: object) -> None:
        steps = ", ".join(map(str, schedule))
        super().__init__(f"{what} after: {steps}. In the model: {expected}; in the ledger: {found}")
        self.what = what


class Seen(NamedTuple):
    """What both have in their files, as far as it can be compared."""

    left: int  # in units of one release
    answers: tuple[Answer, ...]
    commits: int
    witnessed: int
    same_word: bool


class Worker(threading.Thread):
    """One process: it obeys one command after another, and says where it has stopped and what it shows."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.book: Ledger | None = None
        self.commands: SimpleQueue[Step | None] = SimpleQueue()
        self.replies: SimpleQueue[tuple[str, Outcome] | BaseException] = SimpleQueue()

    def run(self) -> None:
        while (step := self.commands.get()) is not None:
            try:
                reply: tuple[str, Outcome] | BaseException = self.obey(step)
            except BaseException as problem:
                reply = problem
            self.replies.put(reply)

    def tell(self, step: Step) -> tuple[str, Outcome]:
        """Called by the test: let it make a step, and wait until it stops again."""
        self.commands.put(step)
        reply = self.replies.get(timeout=120)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def stop(self, where: str) -> None:
        """Called by the ledger's code: wait here for the next step."""
        self.replies.put((where, Outcome()))
        step = self.commands.get()
        if step is None or step.name == "crash":
            raise Killed

    def obey(self, step: Step) -> tuple[str, Outcome]:
        """A step from outside of a request, and the request that may follow it."""
        try:
            if step.name == "open":
                self.book = Ledger.open(self.path)
                return IDLE, Outcome()
            assert self.book is not None
            if step.name == "crash":
                raise Killed
            if step.name == "grant":
                self.book.grant(USER, 1, EPOCH)
                return IDLE, Outcome()
            category = self.book.release(MECHANISM, USER, records=["c1"], epoch=EPOCH, group=str(step.kind))
            self.stop("show")
            return IDLE, Outcome(SHOWN, MECHANISM.index[category])
        except BudgetError:
            return IDLE, Outcome(BUDGET_REFUSED)
        except LedgerError:
            return OFF if step.name == "open" else IDLE, Outcome(LEDGER_REFUSED)
        except Killed:
            assert self.book is not None
            self.book.close()
            self.book = None
            return OFF, Outcome()


def wait_for_a_step(where: str) -> None:
    """Stop the process that the code runs in."""
    worker = threading.current_thread()
    if isinstance(worker, Worker):
        worker.stop(where)


@contextmanager
def stops(stop: Callable[[str], object] = wait_for_a_step) -> Iterator[Callable[[], int]]:
    """Let the code of the ledger stop between its steps; gives a function that counts the draws."""
    draws = 0
    answers, testify, connect = Ledger.answers, Store.testify, ledger_store._connect

    def look(self: Ledger, *given: Any) -> Any:
        stop("look")
        return answers(self, *given)

    def write_witness(self: Store) -> None:
        stop("testify")
        testify(self)

    def draw(self: sv.Mechanism, rows: Any) -> Any:
        nonlocal draws
        stop("draw")
        number, draws = draws, draws + 1
        stop("enter")
        return np.array([self.categories[number]], dtype=object)

    def quick(path: Path) -> sqlite3.Connection:
        database = connect(path)
        database.execute("PRAGMA synchronous = OFF")
        return database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "answers", look)
        patch.setattr(Store, "testify", write_witness)
        patch.setattr(sv.Mechanism, "draw", draw)
        patch.setattr(ledger_store, "_connect", quick)
        patch.setattr(os, "fsync", lambda handle: None)
        yield lambda: draws


def replay(schedules: Iterator[Sequence[Step]], size: Size, folder: Path) -> tuple[int, int]:
    """Run schedules on ledgers of their own; return how many there were, and how many steps they had.

    Raises
        Difference: the ledger and the model are not the same after a step.
    """
    template = folder / "template.db"
    Ledger.create(template, budget=size.budget).close()
    files = template.read_bytes(), ledger_store.witness_beside(template).read_bytes()
    count = length = 0
    for schedule in schedules:
        path = folder / f"{count}.db"
        with stops() as draws:
            _Replay(path, size, draws, files).run(schedule)
        count, length = count + 1, length + len(schedule)
    return count, length


class _Replay:
    """One schedule on one ledger."""

    def __init__(self, path: Path, size: Size, draws: Callable[[], int], files: tuple[bytes, bytes]) -> None:
        path.write_bytes(files[0])
        ledger_store.witness_beside(path).write_bytes(files[1])
        self.path, self.size, self.draws = path, size, draws
        self.workers = [Worker(path) for _ in range(size.processes)]
        self.names: dict[int, int] = {}  # the numbers of the model's answers in the ledger
        self.backup = b""

    def run(self, schedule: Sequence[Step]) -> None:
        """Step by step, compared after each."""
        for worker in self.workers:
            worker.start()
        try:
            state = initial(self.size)
            for i, step in enumerate(schedule):
                state, outcome = advance(state, step, self.size, RULES)
                self.step(state, outcome, step, schedule[: i + 1])
        finally:
            for worker in self.workers:
                if worker.book is not None:
                    with suppress(Exception):
                        worker.tell(Step("crash"))
                worker.commands.put(None)
                worker.join(60)
            for name in (self.path, ledger_store.witness_beside(self.path)):
                name.unlink()

    def step(self, state: State, outcome: Outcome, step: Step, done: Sequence[Step]) -> None:
        """Make a step that leads the model to this state with this outcome, and compare."""
        if step.process < 0:
            self.touch(step)
        else:
            before = self.draws()
            place, found = self.workers[step.process].tell(step)
            process = state.processes[step.process]
            if self.draws() > before:
                self.names[process.drawn] = before
            shown = outcome._replace(number=self.names.get(outcome.number, outcome.number))
            if found != shown:
                raise Difference("what is shown or refused", done, shown, found)
            phase = process.phase.removesuffix(" again")
            self.compare_files(state, done)
            if place != phase:
                raise Difference("the order of the steps", done, phase, place)

    def touch(self, step: Step) -> None:
        """Copy the database, or put the copy back."""
        if step.name == "copy":
            self.backup = self.path.read_bytes()
        elif step.name == "restore":
            other = self.path.with_suffix(".new")
            other.write_bytes(self.backup)
            other.replace(self.path)
        else:
            with self.path.open("r+b") as file:
                file.write(self.backup)
                file.truncate()

    def compare_files(self, state: State, done: Sequence[Step]) -> None:
        """The files, as far as the model has them."""
        database = state.database
        answers = [a._replace(number=self.names.get(a.number, a.number)) for a in database.answers]
        left = self.size.budget + database.granted - database.spent
        same = database.word == state.witness[1]
        expected = Seen(left, tuple(answers), database.commits, state.witness[0], same)
        found = look_into(self.path, self.size)
        if expected != found:
            money = "ε left" if expected.left != found.left else "the files"
            raise Difference(money, done, expected, found)


def look_into(path: Path, size: Size) -> Seen:
    """What is in the files."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        stored, own_word = database.execute("SELECT commits, word FROM facts").fetchone()
        spent = database.execute("SELECT COALESCE(SUM(here), 0) FROM entries").fetchone()[0]
        sql = 'SELECT "group", answer FROM entries JOIN kinds ON kind = id'
        rows = dict(database.execute(sql).fetchall())
    commits, _, word = ledger_store.witness_beside(path).read_text().split()
    left = size.budget + -spent // 10**6
    answers = tuple(_answer(rows, str(kind)) for kind in range(size.kinds))
    return Seen(left, answers, stored, int(commits), own_word == word)


def _answer(rows: dict[str, int | None], kind: str) -> Answer:
    """An answer as the model has it; one that was set aside stands as -2 - position."""
    if kind not in rows:
        return Answer(UNPAID)
    position = rows[kind]
    if position is None:
        return Answer(PENDING)
    return Answer(position) if position >= 0 else Answer(-2 - position, aside=True)
