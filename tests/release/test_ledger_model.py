"""Promises 11, 12, 16 and 17 in every schedule: a model of the ledger, searched through, and the ledger itself.

`ledger_model` has the states and the steps, `ledger_replay` runs schedules on the real ledger.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from ledger_model import FAULTS, RULES, Found, Rules, Size, Step, advance, initial, search, tours
from ledger_replay import EPOCH, MECHANISM, USER, Difference, Seen, look_into, replay, stops

import sottovoce as sv
from sottovoce.release import ledger
from sottovoce.release.ledger import Ledger
from sottovoce.release.ledger_store import Store

ALONE = Size(processes=1)
RACING = Size(rollbacks=0)
ROLLED_BACK = Size(kinds=1)
OVERWRITTEN = Size(kinds=1, in_place=True)
FORGETFUL = Rules(confirms=False)
"""A rule that the ledger does not have: the last look at the witness also looks for the answer."""


# --- the model -------------------------------------------------------------------------------------------


def check_all(size: Size, rules: Rules = RULES) -> Found:
    found = search(size, rules)
    print(size, found)
    assert found.fault is None
    assert found.complete
    return found


@pytest.mark.parametrize(
    ("size", "states"),
    [
        (ALONE, 373),
        (RACING, 930),
        (ROLLED_BACK, 4_828),
        (Size(), 9_939),
        pytest.param(Size(budget=2), 490_483, marks=pytest.mark.full),
        pytest.param(Size(processes=3, rollbacks=0), 15_120, marks=pytest.mark.full),
        pytest.param(Size(grants=1), 948_863, marks=pytest.mark.full),
    ],
    ids=str,
)
def test_every_schedule_of_the_model_keeps_every_promise(size: Size, states: int) -> None:
    """Whatever its length: the search ends where no step leads to a new state."""
    assert len(check_all(size).origins) == states


FOUND = {
    "draw before charge": "something was drawn before its charge was committed and witnessed",
    "shown before it is committed": "an answer was shown that is not in a ledger which would release",
    "charge after the answer": "something was drawn before its charge was committed and witnessed",
    "the witness is not written": "something was drawn before its charge was committed and witnessed",
    "the witness is not asked": "a ledger behind its witness went on",
    "no witness before the draw": "something was drawn before its charge was committed and witnessed",
    "no witness before the answer is shown": "more answers were shown than paid for",
    "drawn again on a repeated request": "more was charged or shown than the budget allows",
    "lost update": "a charge was lost",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_planted_in_the_model_is_found(name: str) -> None:
    fault = search(Size(), FAULTS[name]).fault
    assert fault is not None
    print(f"{name}: {fault.promise}: {', '.join(map(str, fault.schedule))}")
    assert fault.promise == FOUND[name]


# --- the ledger itself -----------------------------------------------------------------------------------


def sampled(found: Found, every: int) -> Iterator[tuple[Step, ...]]:
    """One in so many of the schedules that take every transition."""
    return islice(tours(found), 0, None, every)


@pytest.mark.parametrize(
    ("size", "depth", "every"),
    [
        (ALONE, None, 20),
        (RACING, None, 50),
        (ROLLED_BACK, 13, 50),
        pytest.param(ALONE, None, 1, marks=pytest.mark.full),
        pytest.param(RACING, None, 1, marks=pytest.mark.full),
        pytest.param(ROLLED_BACK, None, 4, marks=pytest.mark.full),
        pytest.param(Size(kinds=1, grants=1, rollbacks=0), None, 8, marks=pytest.mark.full),
    ],
    ids=str,
)
def test_the_ledger_does_what_the_model_does(
    size: Size, depth: int | None, every: int, tmp_path: Path
) -> None:
    """After every step: what is shown or refused, the ε that is left, both files, and the next step."""
    schedules, length = replay(sampled(search(size, depth=depth), every), size, tmp_path)
    print(f"{size}: {schedules:,} schedules, {length:,} steps")
    assert schedules > 10


def drawing_first(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.release_batch

    def release_batch(self: Ledger, mechanism: sv.Mechanism, users: Any, p: Any, **terms: Any) -> Any:
        mechanism.draw(mechanism.prepare(p))
        return right(self, mechanism, users, p, **terms)

    patch.setattr(Ledger, "release_batch", release_batch)


def showing_first(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.answers

    def answers(self: Ledger, asked: ledger.Request, epoch: str, which: Any) -> Any:
        database = self._store.database
        if database.execute("SELECT 1 FROM entries WHERE answer IS NULL").fetchone() is None:
            return right(self, asked, epoch, which)
        self._store.testify()
        return list(asked.mechanism.draw(asked.rows))  # to be entered some time later

    patch.setattr(Ledger, "answers", answers)


def charging_last(patch: pytest.MonkeyPatch) -> None:
    right, pay = Ledger.answers, ledger._pay

    def unpaid(database: sqlite3.Connection, asked: ledger.Request, charges: Any, epoch: int) -> None:
        pay(database, asked, [charge._replace(here=0, ever=0) for charge in charges], epoch)

    def answers(self: Ledger, asked: ledger.Request, epoch: str, which: Any) -> Any:
        shown = right(self, asked, epoch, which)
        with self._store.exclusively() as database:
            database.execute("UPDATE entries SET here = 1000000, ever = 1000000")
        return shown

    patch.setattr(ledger, "_pay", unpaid)
    patch.setattr(Ledger, "answers", answers)


def forgetting_the_witness(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "testify", lambda self: None)


def ignoring_the_witness(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "check", lambda self: None)


def drawing_again(patch: pytest.MonkeyPatch) -> None:
    right, writing = ledger._answers, list[bool]()
    exclusively = Store.exclusively

    @contextmanager
    def noticed(self: Store) -> Iterator[sqlite3.Connection]:
        with exclusively(self) as database:
            writing.append(True)
            try:
                yield database
            finally:
                writing.pop()

    def answers(database: sqlite3.Connection, users: Any, epoch: int, kind: int) -> list[int | None]:
        return right(database, users, epoch, kind) if writing else [None] * len(users)

    def enter(database: sqlite3.Connection, drawn: Any, epoch: int, kind: int) -> None:
        rows = [(answer, user, kind) for user, answer in drawn]
        database.executemany("UPDATE entries SET answer = ? WHERE user = ? AND kind = ?", rows)

    patch.setattr(Store, "exclusively", noticed)
    patch.setattr(ledger, "_answers", answers)
    patch.setattr(ledger, "_enter_answers", enter)


def losing_an_update(patch: pytest.MonkeyPatch) -> None:
    """What was spent is read when the ledger is opened, and written back by the charge."""
    made, pay, kept = Ledger.__init__, ledger._pay, dict[sqlite3.Connection, int]()

    def opened(self: Ledger, path: Path) -> None:
        made(self, path)
        database = self._store.database
        (kept[database],) = database.execute("SELECT COALESCE(SUM(ever), 0) FROM entries").fetchone()

    def left(self: Ledger, database: sqlite3.Connection, user: bytes, epoch: int) -> tuple[int, int]:
        return (self._budget - kept[database],) * 2

    def paid(database: sqlite3.Connection, asked: ledger.Request, charges: Any, epoch: int) -> None:
        pay(database, asked, charges, epoch)
        database.execute("UPDATE entries SET here = 0, ever = 0")
        sql = "UPDATE entries SET here = ?, ever = ? WHERE kind = (SELECT MIN(kind) FROM entries)"
        database.execute(sql, (kept[database] + 1_000_000,) * 2)

    patch.setattr(Ledger, "__init__", opened)
    patch.setattr(Ledger, "_left", left)
    patch.setattr(ledger, "_pay", paid)


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Size, str]] = {
    "draw before charge": (drawing_first, RACING, "ε left"),
    "shown before it is committed": (showing_first, RACING, "the files"),
    "charge after the answer": (charging_last, RACING, "ε left"),
    "the witness is not written": (forgetting_the_witness, ALONE, "the files"),
    "the witness is not asked": (ignoring_the_witness, ALONE, "what is shown or refused"),
    "drawn again on a repeated request": (drawing_again, RACING, "the order of the steps"),
    "lost update": (losing_an_update, RACING, "what is shown or refused"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_that_is_planted_in_the_ledger_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, size, what = PLANTED[name]
    schedules = list(tours(search(size)))
    plant(monkeypatch)
    with pytest.raises(Difference) as caught:
        replay(iter(schedules), size, tmp_path)
    print(f"{name}: {caught.value}")
    assert caught.value.what == what


# --- processes that really end ---------------------------------------------------------------------------


def _end_at(path: Path, point: int) -> None:
    """Release, and end the process at once at its stop number `point`; commits have one inside as well."""
    left = point
    count = Store.count_commit

    def stop(where: str) -> None:
        nonlocal left
        if left == 0:
            os._exit(9)
        left -= 1

    def inside(self: Store) -> None:
        count(self)
        stop("inside a transaction")

    with stops(stop), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "count_commit", inside)
        Ledger.open(path).release(MECHANISM, USER, records=["c1"], epoch=EPOCH, group="0")
        stop("show")


STEPS_DONE = [0, 1, 2, 3, 4, 4, 5, 6]
"""For each stop, the steps of the request that were done; both stops inside a transaction undo theirs."""


@pytest.mark.parametrize("point", range(len(STEPS_DONE)))
def test_a_process_that_ends_at_any_stop_leaves_what_a_crash_of_the_model_leaves(
    point: int, tmp_path: Path
) -> None:
    path, size = tmp_path / "b.db", ALONE
    Ledger.create(path, budget=1).close()
    child = multiprocessing.get_context("fork").Process(target=_end_at, args=(path, point))
    child.start()
    child.join()
    assert child.exitcode == 9
    request = [Step("ask", 0), *[Step("go on", 0)] * 6][: STEPS_DONE[point]]
    state = initial(size)
    for step in [Step("open", 0), *request, Step("crash", 0)]:
        state, _ = advance(state, step, size, RULES)
    database, (witnessed, word) = state.database, state.witness
    left, same = 1 - database.spent, word == database.word
    assert look_into(path, size) == Seen(left, database.answers, database.commits, witnessed, same)


# --- a copy that is written over an open file ----------------------------------------------------------------


def test_the_model_finds_the_moment_in_which_an_overwritten_ledger_forgets_an_answer() -> None:
    """Between the commit of an answer and its witness, unless the answer is looked at after the witness."""
    fault = search(OVERWRITTEN, FORGETFUL).fault
    assert fault is not None
    assert fault.promise == "an answer was shown that is not in a ledger which would release"
    assert [step.name for step in fault.schedule[-5:]] == ["copy", "go on", "overwrite", "go on", "go on"]
    check_all(OVERWRITTEN, RULES)


def test_an_answer_is_not_forgotten_if_an_open_ledger_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule of the test above, on the real ledger: of one charge one answer is shown."""
    path, passed = tmp_path / "b.db", list[str]()
    Ledger.create(path, budget=1).close()
    copies: list[bytes] = []

    def touch(where: str) -> None:
        passed.append(where)
        if where == "enter":
            copies.append(path.read_bytes())
        if passed == ["look", "testify", "draw", "enter", "testify"]:
            path.write_bytes(copies[0])  # over the bytes of the same file

    shown = set()
    with stops(touch):
        for _ in range(2):
            book = Ledger.open(path)
            try:
                shown.add(book.release(MECHANISM, USER, records=["c1"], epoch=EPOCH))
            except sv.errors.LedgerError:
                pass
            finally:
                book.close()
    assert len(shown) <= 1
