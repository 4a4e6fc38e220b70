"""More edges that small faults move: the audit's choices, batches, files, charges and records."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.box import BoxEngine
from sottovoce.release import audit, certify, mechanism
from sottovoce.release.file import Fields
from sottovoce.release.ledger import user_name
from sottovoce.release.mechanism import processors


def test_the_users_of_an_audit_have_as_many_categories_as_their_names_say() -> None:
    names = [f"c{i}" for i in range(20)]
    users = audit._users(list(range(20)), names)
    assert users["16 categories alike"] == dict.fromkeys(range(16), 1)
    assert users["8 categories, unevenly"] == {place: place - 11 for place in range(12, 20)}
    assert len(users) == 22
    assert audit._users([0, 1, 2], names)["3 categories alike"] == {0: 1, 1: 1, 2: 1}


def test_a_ratio_is_taken_pessimistically() -> None:
    """a − z√a, at least a half, over b + z√b + z²/2."""
    a, b = np.array([100.0, 4.0]), np.array([25.0, 0.0])
    found = audit._pessimistic(a, b, 1000, 2000, 3.0)
    expected = [math.log(70 / 1000) - math.log(44.5 / 2000), math.log(0.5 / 1000) - math.log(4.5 / 2000)]
    assert found.tolist() == pytest.approx(expected)


def test_the_caution_follows_from_the_number_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """√(2 ln(m²·(1 + log₂ k))) for m users and k categories."""
    asked: list[float] = []

    def pessimistic(a: np.ndarray, *given: float) -> np.ndarray:
        asked.append(given[-1])
        return np.zeros(len(a))

    monkeypatch.setattr(audit, "_pessimistic", pessimistic)
    drawn = np.repeat(np.arange(8), 2)  # each once to order and once to choose
    audit.choose_event([drawn] * 3)
    assert asked == pytest.approx([math.sqrt(2 * math.log(9 * 4))] * 6)  # three pairs, both ways


def test_a_box_that_rounding_has_closed_is_opened_again() -> None:
    """⌊2/9·2^10⌋ = 227 has caps of 340, four units short of N: every floor goes up by ⌈4/3⌉ + 1."""
    sampler: Any = SimpleNamespace(floor=np.full(3, 2 / 9), keeps_prior=False)
    box = certify._box(sampler, [341, 341, 342], Fraction(3, 2), 1 << 10)
    assert box.low == (230, 230, 230)
    assert box.high == (345, 345, 345)


def test_a_user_may_be_any_integer_below_2_to_the_128() -> None:
    for sign in (1, -1):
        assert user_name(sign * ((1 << 128) - 1)) == str(sign * ((1 << 128) - 1))
        with pytest.raises(sv.errors.ParameterError, match="below 2\\^128"):
            user_name(sign << 128)


@pytest.mark.parametrize("places", [[-1], [-1, 0], [3], [0, 3], [True], ["0"], [0.0], "0", None])
def test_places_that_are_not_there(places: object) -> None:
    def read(values: object) -> tuple[int, ...]:
        return Fields({"kept": values}, "the file", 3, 62, {}).positions("kept")

    assert read([0, 2]) == (0, 2)
    assert read([]) == ()
    with pytest.raises(sv.errors.MechanismFileError, match="not there"):
        read(places)


def test_nothing_is_released_when_the_witness_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0))
    ledger = sv.Ledger.create(tmp_path / "l.db", budget=4)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("sottovoce.release.ledger_store.write_whole", full)
    with pytest.raises(sv.errors.LedgerError, match=r"the witness .* could not be written"):
        ledger.release(mechanism, "ann", records=["a"])
    ledger.close()


def test_a_law_is_asked_for_by_shares_or_by_records() -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0))
    assert mechanism.law(p=np.array([1, 0])) == mechanism.law(records=["a"])
    assert mechanism.law(records=np.array(["a", "a"])) == mechanism.law(records=["a"])
    with pytest.raises(sv.errors.ParameterError, match="one of them"):
        mechanism.law()
    with pytest.raises(sv.errors.ParameterError, match="one of them"):
        mechanism.law(p=np.array([1, 0]), records=["a"])


def test_names_are_saved_as_they_are_read(tmp_path: Path) -> None:
    sv.certify(sv.kernel_clip(sv.Prior(["N\u00f4 \u80fd", "b"], [0.5, 0.5]), 1.0)).save(tmp_path / "m.json")
    assert '"N\u00f4 \u80fd"'.encode() in (tmp_path / "m.json").read_bytes()


def test_as_many_processors_as_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 3, 5} if process == 0 else {7}, False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1


@pytest.mark.parametrize(("users", "here", "apart"), [(2, 4, False), (9, 1, False), (9, 4, True)])
def test_one_batch_needs_no_other_thread(
    monkeypatch: pytest.MonkeyPatch, users: int, here: int, apart: bool
) -> None:
    monkeypatch.setattr(mechanism, "processors", lambda: here)
    monkeypatch.setattr("sottovoce.core.engine.BATCH", 3)
    made, seen = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0)), []
    take = BoxEngine.positions

    def noted(self: BoxEngine, *given: Any) -> Any:
        seen.append(threading.current_thread() is threading.main_thread())
        return take(self, *given)

    monkeypatch.setattr(BoxEngine, "positions", noted)
    made.release_many(np.ones((users, 2), dtype=np.int64))
    assert seen == [not apart] * -(-users // 3)
