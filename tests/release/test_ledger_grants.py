"""A grant in the middle of a release: nothing that was paid for is lost, and nothing is drawn unpaid."""

from __future__ import annotations

import multiprocessing
import os
import signal
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run

import sottovoce as sv
from sottovoce.release.ledger import Ledger, Receipt, request

MECHANISM = sv.certify(sv.minimax_kernel(sv.Prior.uniform([f"c{i}" for i in range(50)]), 1.0))
ASKED = request(MECHANISM, ["ann", "bob"], np.eye(50)[:2])
BOTH = np.arange(2)
ORDERS = [
    order
    for order in permutations(["1 charges", "1 takes", "2 charges", "2 takes", "grant"])
    if order.index("1 charges") < order.index("1 takes") and order.index("2 charges") < order.index("2 takes")
]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many users each draw was for."""
    seen: list[int] = []
    real = sv.Mechanism.draw

    def counting(self: sv.Mechanism, rows: Any) -> Any:
        seen.append(rows.shape[0])
        return real(self, rows)

    monkeypatch.setattr(sv.Mechanism, "draw", counting)
    return seen


@pytest.mark.parametrize("before", [0, 1])
def test_promise_12_a_grant_at_any_moment_loses_no_paid_answer(
    tmp_path: Path, drawn: list[int], before: int
) -> None:
    """Two openings of one ledger and a grant, in every order: all are answered, once for every charge."""
    for number, order in enumerate(ORDERS):
        path = tmp_path / f"{number}.db"
        books = {"1": Ledger.create(path, budget=9), "2": Ledger.open(path)}
        for _ in range(before):
            books["1"].answers(ASKED, books["1"].charge([ASKED]).epoch, BOTH)
        receipts: dict[str, Receipt] = {}
        for who, _, what in (step.partition(" ") for step in order):
            if what == "charges":
                receipts[who] = books[who].charge([ASKED])
            elif what == "takes":
                assert len(books[who].answers(ASKED, receipts[who].epoch, BOTH)) == 2, order
            else:
                books["2"].grant("ann", 1)
        assert books["1"].total("ann") + books["1"].total("bob") == sum(drawn), order
        drawn.clear()


def test_promise_12_another_process_draws_grants_and_charges_in_the_middle_of_a_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, other = Ledger.create(tmp_path / "b.db", budget=1), Ledger.open(tmp_path / "b.db")
    answers = [book.release(MECHANISM, "ann", records=["c1"])]
    real = sv.Mechanism.draw

    def overtaken(self: sv.Mechanism, rows: Any) -> Any:
        monkeypatch.setattr(sv.Mechanism, "draw", real)
        answers.append(other.release(MECHANISM, "bob", records=["c1"]))
        for name in ("ann", "bob"):
            assert run("ledger", "grant", tmp_path / "b.db", name, 1).returncode == 0
        other.charge([request(MECHANISM, ["ann"], np.eye(50)[:1])])
        return real(self, rows)

    monkeypatch.setattr(sv.Mechanism, "draw", overtaken)
    assert book.release_batch(MECHANISM, ["ann", "bob"], np.eye(50)[:2]) == answers
    assert book.total("ann") == 2
    assert book.total("bob") == book.left("bob") == 1
    book.release_batch(MECHANISM, ["ann", "bob"], np.eye(50)[:2])  # what the grants have bought
    assert book.total("ann") == book.total("bob") == 2


def _killed(path: Path) -> None:
    sv.Mechanism.draw = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    book = Ledger.open(path)
    book.charge([ASKED])
    book.grant("ann", 1)
    book.answers(ASKED, "", BOTH)


def test_promise_12_killed_after_a_grant_the_charge_is_still_good(tmp_path: Path, drawn: list[int]) -> None:
    Ledger.create(tmp_path / "b.db", budget=1).close()
    job = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path / "b.db",))
    job.start()
    job.join()
    assert job.exitcode == -signal.SIGKILL
    book = Ledger.open(tmp_path / "b.db")
    assert repr(book.charge([ASKED])) == "Receipt(epoch='', charged=0, continued=0, repeated=2, left_out=0)"
    book.answers(ASKED, "", BOTH)
    assert drawn == [2]
    assert book.total("ann") == book.left("ann") == 1
