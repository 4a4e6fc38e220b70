"""Streams in a ledger: one charge, one answer for an epoch, no state used twice, through kills and races."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.stream import StreamState
from sottovoce.release import ledger_store
from sottovoce.release.ledger import request

PRIOR = sv.Prior(["a", "b", "c", "d"], [0.05, 0.15, 0.3, 0.5])
STREAM = sv.certify(sv.stream(PRIOR, 6.0, horizon=8))
DATA = {"anna": ["a", "a"], "ben": ["b"], "cleo": ["a", "b", "c", "d"], "dan": []}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sv.Ledger.create(tmp_path / "l.db", budget=6, lifetime=6).close()
    return tmp_path / "l.db"


def states(path: Path) -> dict[str, StreamState]:
    """The states as they stand in the file, by user."""
    with sqlite3.connect(path) as database:
        rows = dict(database.execute("SELECT hex(user), state FROM streams").fetchall())
    return {user: StreamState.from_text(text) for user, text in rows.items()}


def enclosed(path: Path, answers: list[str], records: list[str]) -> bool:
    """Whether the one state in the file is that of these releases, by following them from the start."""
    state = STREAM.start()
    p = PRIOR.frequencies(records)
    for category in answers:
        state = STREAM.after(state, p, category)
    return list(states(path).values()) == [state]


def test_a_stream_is_charged_once_and_asked_again_gives_the_same(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    first = [ledger.release(STREAM, "anna", records=DATA["anna"], epoch=f"w{i}") for i in range(6)]
    assert [ledger.release(STREAM, "anna", records=DATA["anna"], epoch=f"w{i}") for i in range(6)] == first
    assert ledger.total("anna") == 6
    assert [state.step for state in states(path).values()] == [6]
    assert enclosed(path, first, DATA["anna"])
    with pytest.raises(sv.errors.BudgetError):  # anything else has nothing left
        ledger.release(sv.certify(sv.kernel_clip(PRIOR, 1.0)), "anna", records=["a"], epoch="w9")


def test_the_epsilon_of_a_stream_counts_in_every_epoch_and_once_in_a_lifetime(tmp_path: Path) -> None:
    """In an epoch in which the stream goes on, other releases have what is left of that epoch's budget."""
    ledger = sv.Ledger.create(tmp_path / "m.db", budget=8)
    other = sv.certify(sv.kernel_clip(PRIOR, 2.0))
    for epoch in ("w1", "w2"):
        ledger.release(STREAM, "anna", records=["a"], epoch=epoch)
        assert ledger.left("anna", epoch) == 2
        ledger.release(STREAM, "anna", records=["a"], epoch=epoch)  # the same answer, once more
        ledger.release(other, "anna", records=["a"], epoch=epoch)
        assert ledger.left("anna", epoch) == 0
        with pytest.raises(sv.errors.BudgetError):
            ledger.release(sv.certify(sv.kernel_clip(PRIOR, 1.0)), "anna", records=["a"], epoch=epoch)
    assert ledger.total("anna") == 6 + 2 + 2
    assert ledger.left("anna", "w3") == 8
    ledger.release(sv.certify(sv.kernel_clip(PRIOR, 3.0)), "anna", records=["a"], epoch="w3")
    with pytest.raises(sv.errors.BudgetError, match="needs ε = 6, ε = 5 is left"):
        ledger.release(STREAM, "anna", records=["a"], epoch="w3")  # 5 of 8 are left, and the stream counts 6
    again = sv.certify(sv.stream(PRIOR, 6.0, horizon=2))
    ledger.release(
        again, "anna", records=["a"], epoch="w2"
    )  # another file of the same life: counted in w2 already
    assert ledger.total("anna") == 13


def test_a_new_file_with_the_same_epsilon_carries_the_state_on(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    other = sv.certify(sv.stream(sv.Prior(["a", "b", "e"], [0.2, 0.3, 0.5]), 6.0, horizon=3))
    ledger.release(other, "anna", records=["e"], epoch="w2")
    assert ledger.total("anna") == 6
    assert [state.step for state in states(path).values()] == [2]
    third = sv.certify(sv.stream(PRIOR, 2.0))  # another ε is another life, and there is no budget for it
    with pytest.raises(sv.errors.BudgetError):
        ledger.release(third, "anna", records=["a"], epoch="w3")
    with pytest.raises(sv.errors.BudgetError):  # and so is another group
        ledger.release(STREAM, "anna", records=["a"], epoch="w3", group="north")


def test_many_users_at_different_steps_go_on_together(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    rows = np.array([[2, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    names = list(DATA)
    ledger.release_batch(STREAM, names[:2], rows[:2], epoch="w1")
    answers = ledger.release_batch(STREAM, names, rows, epoch="w2")
    assert sorted(state.step for state in states(path).values()) == [1, 1, 2, 2]
    assert ledger.release_batch(STREAM, names, rows, epoch="w2") == answers
    receipt = ledger.charge(
        [request(STREAM, names, rows)],
        epoch="w3",
    )
    assert (receipt.charged, receipt.continued, receipt.repeated) == (0, 4, 0)
    assert "continued" in repr(receipt)


def test_two_files_of_one_life_in_one_request_are_charged_once(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    other = sv.certify(sv.stream(PRIOR, 6.0, horizon=3))
    rows = np.array([[1, 0, 0, 0]])
    asked = [request(one, ["anna"], rows) for one in (STREAM, other)]
    receipt = ledger.charge(asked, epoch="w1")
    assert (receipt.charged, receipt.continued) == (1, 1)
    assert ledger.total("anna") == 6
    for one in asked:
        ledger.answers(one, "w1", np.arange(1))
    assert [state.step for state in states(path).values()] == [2]


def test_what_is_refused_leaves_the_ledger_as_it_was(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    before = path.read_bytes()
    small = sv.certify(sv.stream(PRIOR, 7.0))
    for user in ("anna", "new"):
        with pytest.raises(sv.errors.BudgetError):
            ledger.release(small, user, records=["a"], epoch="w2")
    assert path.read_bytes() == before


def test_a_rolled_back_or_copied_store_is_refused(path: Path, tmp_path: Path) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    ledger.close()
    shutil.copy(path, tmp_path / "old.db")
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w2")
    ledger.close()
    shutil.copy(tmp_path / "old.db", path)  # the state of one release before
    with pytest.raises(sv.errors.LedgerError):
        sv.Ledger.open(path)
    with pytest.raises(sv.errors.LedgerError):
        sv.Ledger.open(tmp_path / "old.db")  # a copy without a witness


def test_the_file_is_for_its_owner_and_shows_no_state(path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    (state,) = states(path).values()
    assert str(state.low) not in repr(ledger) + repr(state)


def test_a_damaged_state_releases_nothing(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE streams SET state = 'x'")
    database.close()
    with pytest.raises(sv.errors.LedgerError, match="state"):
        ledger.release(STREAM, "anna", records=["a"], epoch="w2")


@pytest.mark.parametrize("characters", [1, 9, 10, 12])
def test_a_state_of_which_a_part_is_missing_releases_nothing(path: Path, characters: int) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE streams SET state = substr(state, 1, length(state) - ?)", [characters])
    database.close()
    with pytest.raises(sv.errors.LedgerError, match=r"a state in .* was changed"):
        ledger.release(STREAM, "anna", records=["a"], epoch="w2")


def change(path: Path, sql: str) -> None:
    """Change the file of a ledger from outside."""
    with sqlite3.connect(path) as database:
        database.execute(sql)
    database.close()


def outcomes(path: Path, epoch: str, users: list[str]) -> tuple[str, str]:
    """What a preview says of releases, and what then becomes of them: both are the same, or a test fails."""
    ledger, before = sv.Ledger.open(path), path.read_bytes()
    asked = request(STREAM, users, np.tile([1, 0, 0, 0], (len(users), 1)))

    def preview() -> None:
        ledger.preview([asked], epoch=epoch, exhausted="skip")

    def release() -> None:
        receipt = ledger.charge([asked], epoch=epoch, exhausted="skip")
        ledger.answers(asked, epoch, receipt.kept[0])

    def said(do: Callable[[], None]) -> str:
        try:
            do()
        except sv.errors.LedgerError as problem:
            return str(problem)
        return "fine"

    first = said(preview)
    assert path.read_bytes() == before
    found = first, said(release)
    ledger.close()
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE streams SET state = 'x'",
        "UPDATE streams SET state = ''",
        "UPDATE streams SET state = substr(state, 1, length(state) - 9)",
        "UPDATE streams SET state = replace(state, '6/1', '7/1')",
    ],
)
def test_a_preview_refuses_the_damaged_states_that_a_release_would_read(path: Path, sql: str) -> None:
    ledger = sv.Ledger.open(path)
    row = np.array([[1, 0, 0, 0]])
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    ledger.charge([request(STREAM, ["ben"], row)], epoch="w1")  # and the power fails before the draw
    ledger.release(sv.certify(sv.kernel_clip(PRIOR, 6.0)), "cleo", records=["a"], epoch="w1")
    ledger.close()
    change(path, sql)
    changed = f"a state in {path} was changed; nothing is released"
    fine = ("fine", "fine")
    assert outcomes(path, "w1", ["anna"]) == fine  # answered already: her state is not needed
    assert outcomes(path, "w1", ["cleo"]) == fine  # left out: she can pay for no stream
    assert outcomes(path, "w1", ["dan"]) == fine  # a stream that begins
    assert outcomes(path, "w1", ["anna", "ben"]) == (changed, changed)
    assert outcomes(path, "w2", ["anna"]) == (changed, changed)


def test_a_preview_refuses_a_missing_state_and_a_changed_answer(path: Path) -> None:
    ledger = sv.Ledger.open(path)
    ledger.release(STREAM, "anna", records=["a"], epoch="w1")
    ledger.charge([request(STREAM, ["ben"], np.array([[1, 0, 0, 0]]))], epoch="w1")
    ledger.close()
    change(path, "DELETE FROM streams")
    for said in outcomes(path, "w1", ["ben"]):
        assert "a state in" in said
    change(path, "UPDATE entries SET answer = 4 WHERE answer IS NOT NULL")
    for said in outcomes(path, "w1", ["anna"]):
        assert "an answer vanished from" in said


@pytest.mark.parametrize("fails_at", range(1, 6))
def test_a_full_disk_at_any_commit_uses_no_state_twice(
    path: Path, fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The witness cannot be written: what was not testified is not shown, and asking again gives one answer."""
    ledger, calls = sv.Ledger.open(path), 0
    right = ledger_store.Store.testify

    def testify(self: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise sv.errors.LedgerError("No space left on device; nothing is released")
        right(self)

    monkeypatch.setattr(ledger_store.Store, "testify", testify)
    shown: dict[str, str] = {}
    for epoch in ("w1", "w2", "w1", "w2", "w3", "w2"):
        try:
            answer = ledger.release(STREAM, "anna", records=DATA["anna"], epoch=epoch)
        except sv.errors.LedgerError:
            continue
        assert shown.setdefault(epoch, answer) == answer
    (state,) = states(path).values()
    assert state.step == 3
    assert ledger.total("anna") == 6


def test_racing_connections_never_use_a_state_twice(path: Path) -> None:
    """Eight threads with a connection each ask for the same and for different epochs."""

    def ask(i: int) -> tuple[str, str]:
        epoch = f"w{i % 12}"
        for _ in range(50):
            try:
                ledger = sv.Ledger.open(path)
                break
            except sv.errors.LedgerError:
                time.sleep(0.01)
        try:
            return epoch, ledger.release(STREAM, "anna", records=DATA["anna"], epoch=epoch)
        finally:
            ledger.close()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(48)))
    answers = dict(found)
    assert all(answers[epoch] == category for epoch, category in found)
    (state,) = states(path).values()
    assert state.step == 12
    assert sv.Ledger.open(path).total("anna") == 6


CHILD = """
import sys, sottovoce as sv
prior = sv.Prior(["a", "b", "c", "d"], [0.05, 0.15, 0.3, 0.5])
stream = sv.certify(sv.stream(prior, 6.0, horizon=8))
ledger = sv.Ledger.open(sys.argv[1])
print("ready", flush=True)
for i in range(int(sys.argv[2]), 400):
    print(i, ledger.release(stream, "anna", records=["a", "a"], epoch=f"w{i}"), flush=True)
"""


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.full)])
def test_killed_at_any_moment_no_epoch_has_two_answers(path: Path, kills: int) -> None:
    rng, seen, begin = random.Random(3), {}, 0
    for _ in range(kills):
        command = [sys.executable, "-c", CHILD, str(path), str(begin)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(rng.randint(2, 4))]  # ready, and some answers
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child.pid, signal.SIGKILL)
        for line in [*lines[1:], *child.communicate()[0].splitlines()]:
            number, _, category = line.strip().partition(" ")
            if category in DATA["cleo"]:  # else the line was cut off
                seen[int(number)] = category
        begin = max(max(seen, default=0) - 2, 0)  # the last ones are asked for again
    ledger = sv.Ledger.open(path)
    answers = [
        ledger.release(STREAM, "anna", records=["a", "a"], epoch=f"w{i}") for i in range(max(seen) + 1)
    ]
    assert all(answers[i] == category for i, category in seen.items())
    (state,) = states(path).values()
    assert state.step in (len(answers), len(answers) + 1)  # one may have been drawn and never shown
    assert ledger.total("anna") == Fraction(6)
