"""The budget is never under-charged: sequences, crashes, races, repeats, lost and rolled-back stores."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.release.ledger import Ledger, budget_of, charge_of
from sottovoce.release.ledger_store import Store

PRIOR = sv.Prior.uniform([f"c{i}" for i in range(50)])


def mechanism(epsilon: float = 1.0) -> sv.Mechanism:
    return sv.certify(sv.minimax_kernel(PRIOR, epsilon))


def check_sequences(count: int) -> None:
    rng = random.Random(11)
    for _ in range(count):
        budget = Fraction(rng.randint(1, 10**8), 10**6)
        left = budget_of(str(budget))
        spent = Fraction(0)
        for _ in range(rng.randint(1, 12)):
            epsilon = Fraction(rng.uniform(1e-7, 20))
            cost = charge_of(epsilon)
            assert Fraction(cost, 10**6) >= epsilon
            assert Fraction(cost - 1, 10**6) < epsilon
            if cost <= left:
                left -= cost
                spent += epsilon
        assert spent <= budget  # the exact sum never exceeds the exact budget


def test_promise_11_charges_are_rounded_up_against_fractions() -> None:
    check_sequences(1_000)


@pytest.mark.full
def test_promise_11_ten_thousand_sequences() -> None:
    check_sequences(10_000)


def test_a_budget_is_what_is_written() -> None:
    assert budget_of(0.3) == 300_000 == charge_of(Fraction(0.3))
    assert budget_of("1/3") == 333_333
    for bad in (0, -1, "x", float("nan"), float("inf"), None, "1e30", 10**10, "9" * 100):
        with pytest.raises(sv.errors.ParameterError, match="budget must be"):
            budget_of(bad)  # type: ignore[arg-type]


def test_spending_until_the_budget_refuses(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=2.5)
    one, two = mechanism(1.0), mechanism(1.25)
    book.release(one, "ann", records=["c1"], epoch="may")
    book.release(two, "ann", records=["c1"], epoch="may")
    assert book.left("ann", "may") == Fraction(1, 4)
    with pytest.raises(sv.errors.BudgetError, match=r"needs ε = 0\.3, ε = 0\.25 is left"):
        book.release(mechanism(0.3), "ann", records=["c1"], epoch="may")
    assert book.left("ann", "may") == Fraction(1, 4)
    assert book.left("ann", "june") == Fraction(5, 2)
    assert book.left("bob", "may") == Fraction(5, 2)
    book.grant("ann", 0.05, epoch="may")
    book.release(mechanism(0.3), "ann", records=["c1"], epoch="may")
    assert book.left("ann", "may") == 0


def test_promise_12_a_thousand_repeats_one_release_one_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=10)
    m = mechanism()
    drawn = Counter[str]()
    real = sv.Mechanism.draw

    def counting(self: sv.Mechanism, rows: Any) -> object:
        drawn["releases"] += rows.shape[0]
        return real(self, rows)

    monkeypatch.setattr(sv.Mechanism, "draw", counting)
    answers = {book.release(m, "ann", records=["c3"], epoch="may") for _ in range(1000)}
    assert len(answers) == 1
    assert drawn["releases"] == 1
    assert book.left("ann", "may") == 9
    book.grant("ann", 1, epoch="may")
    book.release(m, "ann", records=["c3"], epoch="may")
    assert drawn["releases"] == 2
    assert book.left("ann", "may") == 9


def test_promise_12_groups_have_their_own_answers_and_charges(tmp_path: Path) -> None:
    """Two groups with equal priors have equal mechanisms; a user in both releases twice and pays twice."""
    book = Ledger.create(tmp_path / "b.db", budget=100)
    m = mechanism(1 / 64)
    answers = [book.release(m, "ann", records=["c3"], group=f"g{i}") for i in range(60)]
    assert len(set(answers)) > 1  # one answer for all 60 groups would have chance 50^-59
    assert book.total("ann") == Fraction(60, 64)
    assert [book.release(m, "ann", records=["c3"], group=f"g{i}") for i in range(60)] == answers
    assert book.total("ann") == Fraction(60, 64)


def rows(count: int, category: int = 1) -> np.ndarray:
    counts = np.zeros((count, len(PRIOR)), dtype=np.int64)
    counts[:, category] = 1
    return counts


def test_batches_are_all_or_nothing(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    m = mechanism()
    book.release(mechanism(0.5), "bob", records=["c1"])
    with pytest.raises(
        sv.errors.BudgetError, match=r"1 of 3 users have less than they need; nobody was .* up to ε = 1 here"
    ) as caught:
        book.release_batch(m, ["ann", "bob", "cy"], rows(3))
    assert "bob" not in str(caught.value)
    assert book.left("ann") == 1
    answers = book.release_batch(m, ["ann", "cy"], rows(2))
    assert book.release_batch(m, ["cy", "ann"], rows(2)) == answers[::-1]
    assert book.left("ann") == 0


def test_users_are_not_readable_in_the_file(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    book.release(mechanism(), "alice@example.org", records=["c1"])
    book.close()
    assert b"alice" not in (tmp_path / "b.db").read_bytes()
    assert (tmp_path / "b.db").stat().st_mode & 0o077 == 0


# --- lost, rolled back, damaged -------------------------------------------------------------------


def test_a_rolled_back_store_refuses(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)
    book.close()
    shutil.copy(path, tmp_path / "backup")
    book = Ledger(path)
    book.release(mechanism(), "ann", records=["c1"])
    book.close()
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(sv.errors.LedgerError, match="rolled back"):
        Ledger(path)


def test_a_store_rolled_back_under_an_open_ledger_refuses(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=5)
    book.release(mechanism(), "ann", records=["c1"])
    with sqlite3.connect(path) as other:
        other.execute("UPDATE facts SET commits = 0")
        other.execute("DELETE FROM entries")
    with pytest.raises(sv.errors.LedgerError, match="rolled back"):
        book.release(mechanism(0.5), "ann", records=["c1"])


def test_a_lost_store_or_witness_refuses(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with pytest.raises(sv.errors.LedgerError, match="there is no ledger"):
        Ledger(path)
    Ledger.create(path, budget=1).close()
    path.unlink()
    with pytest.raises(sv.errors.LedgerError, match="the store was lost"):
        Ledger(path)
    with pytest.raises(sv.errors.LedgerError, match="a ledger was here before"):
        Ledger.create(path, budget=1)
    other = tmp_path / "c.db"
    Ledger.create(other, budget=1).close()
    (tmp_path / "c.db.witness").unlink()
    with pytest.raises(sv.errors.LedgerError, match="witness"):
        Ledger(other)
    garbage = tmp_path / "d.db"
    garbage.write_bytes(b"not a database" * 100)
    with pytest.raises(sv.errors.LedgerError, match="not a readable ledger"):
        Ledger(garbage)


class Number(IntEnum):
    SEVEN = 7


def test_one_person_has_one_budget_however_the_name_is_typed(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    book.release(mechanism(), "7", records=["c1"])
    for same in ("7", 7, np.array(["7"])[0], Number.SEVEN):
        assert book.left(same) == 0
    with pytest.raises(sv.errors.ParameterError, match="user must be"):
        book.left(None)  # type: ignore[arg-type]
    for epoch in (b"", 1, "a\nb", " may", "may ", "x" * 101):
        with pytest.raises(sv.errors.ParameterError, match="epoch must be"):
            book.left("ann", epoch)  # type: ignore[arg-type]


def test_a_store_from_between_charge_and_answer_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)

    real = sv.Mechanism.draw

    def drawing(self: sv.Mechanism, prepared: Any) -> Any:
        shutil.copy(path, tmp_path / "snapshot")
        return real(self, prepared)

    with monkeypatch.context() as patch:
        patch.setattr(sv.Mechanism, "draw", drawing)
        book.release(mechanism(), "ann", records=["c1"])
    book.close()
    shutil.copy(tmp_path / "snapshot", path)
    with pytest.raises(sv.errors.LedgerError, match="rolled back"):
        Ledger(path)


def test_a_resumed_charge_is_witnessed_before_it_is_drawn_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)
    shutil.copy(path, tmp_path / "empty")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "testify", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            book.release(mechanism(), "ann", records=["c1"])
    book.close()
    book = Ledger(path)
    book.release(mechanism(), "ann", records=["c1"])
    book.close()
    shutil.copy(tmp_path / "empty", path)
    with pytest.raises(sv.errors.LedgerError, match="rolled back"):
        Ledger(path)


def test_the_witness_may_stand_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    place = tmp_path / "other" / "witness"
    book = Ledger.create(tmp_path / "b.db", budget=2, witness=place)
    book.release(mechanism(), "ann", records=["c1"])
    book.close()
    assert int(place.read_text().split()[0]) == 2  # the charge and the answer
    assert Ledger(tmp_path / "b.db").budget == 2
    place.unlink()
    with pytest.raises(sv.errors.LedgerError, match="witness"):
        Ledger(tmp_path / "b.db")


def test_a_busy_store_releases_nothing_and_recovers(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)
    book._store.database.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sv.errors.LedgerError, match="busy"):
        book.release(mechanism(), "ann", records=["c1"])
    other.execute("ROLLBACK")
    assert book.left("ann") == 1
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM facts").fetchall()  # a shared lock lets the commit itself fail
    with pytest.raises(sv.errors.LedgerError, match="busy"):
        book.release(mechanism(), "ann", records=["c1"])
    reader.execute("ROLLBACK")
    assert book.left("ann") == 1
    assert book.release(mechanism(), "ann", records=["c1"]) in PRIOR.categories


def test_nothing_raw_comes_out_of_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(sv.errors.LedgerError, match="no ledger could be made"):
        Ledger.create(tmp_path / "no" / "b.db", budget=1)
    book = Ledger.create(tmp_path / "b.db", budget=1)
    book.close()
    with pytest.raises(sv.errors.LedgerError):
        book.left("ann")
    with pytest.raises(sv.errors.LedgerError):
        book.release(mechanism(), "ann", records=["c1"])


def test_a_ledger_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(sv.errors.LedgerError, match="no ledger could be made"):
        Ledger.create(tmp_path / "b.db", budget=1, witness=tmp_path / "no" / "witness")
    assert list(tmp_path.iterdir()) == []


def test_power_loss_between_charge_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("testify", "draw"):
        target = Store if step == "testify" else sv.Mechanism
        with monkeypatch.context() as patch:
            patch.setattr(target, step, dies)
            with pytest.raises(KeyboardInterrupt):
                book.release(mechanism(), f"user of {step}", records=["c1"])
        book.close()
        book = Ledger(path)
        assert book.left(f"user of {step}") == 0
        assert book.release(mechanism(), f"user of {step}", records=["c1"]) in PRIOR.categories


def test_the_charge_is_durable_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)
    seen = []

    def looking(self: sv.Mechanism, _: object) -> list[str]:
        with sqlite3.connect(path) as other:
            seen.append(other.execute("SELECT SUM(ever) FROM entries").fetchone()[0])
        seen.append(int((tmp_path / "b.db.witness").read_text().split()[0]))
        return ["c1"]

    monkeypatch.setattr(sv.Mechanism, "draw", looking)
    book.release(mechanism(), "ann", records=["c1"])
    assert seen == [1_000_000, 1]
    assert int((tmp_path / "b.db.witness").read_text().split()[0]) == 2  # the answer is witnessed too
    assert book._store.database.execute("PRAGMA synchronous").fetchone()[0] == 3  # EXTRA


# --- many processes -------------------------------------------------------------------------------


def _ask(path: Path, worker: int, requests: int, out: Path) -> None:
    book, granted = Ledger(path), 0
    cheap = sv.certify(sv.randomized_response(sv.Prior.uniform(["a", "b"]), 1e-6))  # costs one micro-ε
    for i in range(requests):
        try:
            # The same user, another group each time, so that every request is a new release.
            book.release(cheap, "shared", records=["a"], group=str(worker * requests + i))
            granted += 1
        except sv.errors.BudgetError:
            pass
    out.write_text(str(granted))


def check_race(tmp_path: Path, requests: int, budget: int) -> None:
    path = tmp_path / "race.db"
    Ledger.create(path, budget=Fraction(budget, 10**6)).close()
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=_ask, args=(path, w, requests, tmp_path / f"{w}.txt")) for w in range(8)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sum(int((tmp_path / f"{w}.txt").read_text()) for w in range(8)) == budget
    assert Ledger(path).left("shared") == 0


def test_promise_11_racing_processes_grant_exactly_the_budget(tmp_path: Path) -> None:
    check_race(tmp_path, requests=25, budget=100)


@pytest.mark.full
def test_promise_11_eight_processes_five_hundred_requests(tmp_path: Path) -> None:
    check_race(tmp_path, requests=500, budget=1000)


def _release_forever(path: Path, log: Path, worker: int) -> None:
    book = Ledger(path)
    m = mechanism(0.5)
    with log.open("a", buffering=1) as file:
        for i in range(10**6):
            book.release(m, f"user {worker} {i}", records=["c1"])
            file.write(f"user {worker} {i}\n")


def check_killing(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "kill.db"
    Ledger.create(path, budget=1).close()
    context = multiprocessing.get_context("fork")
    rng = random.Random(2)
    logs = [tmp_path / f"{w}.log" for w in range(processes)]
    for start in range(0, processes, 4):
        jobs = []
        for w in range(start, min(start + 4, processes)):
            logs[w].touch()
            jobs.append(context.Process(target=_release_forever, args=(path, logs[w], w)))
        for job in jobs:
            job.start()
        end = time.monotonic() + 300
        while not any(log.stat().st_size for log in logs[start : start + 4]):  # however slow the machine is
            assert time.monotonic() < end
            time.sleep(0.005)
        for job in jobs:
            time.sleep(rng.uniform(0.0, 0.1))
            assert job.pid is not None
            os.kill(job.pid, signal.SIGKILL)
        for job in jobs:
            job.join()
    book = Ledger(path)  # opens: the store is consistent and not behind its witness
    released = [line for log in logs for line in log.read_text().splitlines()]
    assert released
    for user in released:
        assert book.left(user) == Fraction(1, 2)


def test_promise_11_killed_processes_released_only_what_was_charged(tmp_path: Path) -> None:
    check_killing(tmp_path, 12)


@pytest.mark.full
def test_promise_11_two_hundred_killed_processes(tmp_path: Path) -> None:
    check_killing(tmp_path, 200)
