"""The ledger on Spark: charged once, drawn once, whatever tasks are repeated; refused costs nobody."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sottovoce as sv
from sottovoce import spark
from sottovoce.groups import Groups
from sottovoce.releasing import ReportForm
from sottovoce.spark.writing import write_for_owner

releasing: Any = import_module("sottovoce.spark.release")

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
PEOPLE = 2_000
PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
SCHEMA = "who string, genre string, age string"
NAMED: dict[str, Any] = {"user": "who", "item": "genre", "by": "age"}


@pytest.fixture(scope="module")
def mechanisms() -> dict[str, sv.Mechanism]:
    return {
        "old": sv.certify(sv.kernel_clip(PRIOR, 1.0)),
        "new": sv.certify(sv.minimax_kernel(PRIOR, 0.5)),
    }


@pytest.fixture(scope="module")
def frame(session: Any) -> Any:
    rows = [(f"u{i}", "abc"[(i + k) % 3], ("old", "new")[i % 2]) for i in range(PEOPLE) for k in (0, 1, 3)]
    return session.createDataFrame(rows, SCHEMA)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sv.Ledger]:
    made = sv.Ledger.create(tmp_path / "budget.db", budget=1)
    yield made
    made.close()


def reports(folder: Path) -> dict[str, str]:
    found = pl.read_parquet(folder / "*.parquet")
    assert found["who"].n_unique() == found.height
    return dict(zip(found["who"], found["genre"], strict=True))


def remembered(ledger: sv.Ledger, mechanisms: dict[str, sv.Mechanism], epoch: str) -> dict[str, str]:
    """What the ledger says it has answered, asked with other records: an answer is not drawn again."""
    found: dict[str, str] = {}
    for k, group in enumerate(("old", "new")):
        names = [f"u{i}" for i in range(k, PEOPLE, 2)]
        rows = [[1, 0, 0]] * len(names)
        answers = ledger.release_batch(mechanisms[group], names, np.array(rows), epoch=epoch, group=group)
        found |= dict(zip(names, map(str, answers), strict=True))
    return found


def totals(ledger: sv.Ledger) -> list[tuple[str, int, Fraction]]:
    return [(one.epoch, one.users, one.epsilon) for one in ledger.epochs()]


EVERYBODY = [("11", PEOPLE, Fraction(PEOPLE // 2) + Fraction(PEOPLE // 4))]


def test_charged_once_and_the_same_answers_again(
    frame: Any, mechanisms: dict[str, sv.Mechanism], ledger: sv.Ledger, tmp_path: Path
) -> None:
    charging_it: dict[str, Any] = {**NAMED, "ledger": ledger, "epoch": "11"}
    assert spark.release(frame, mechanisms, str(tmp_path / "one"), **charging_it) == PEOPLE
    assert totals(ledger) == EVERYBODY
    first = reports(tmp_path / "one")
    assert len(first) == PEOPLE
    assert first == remembered(ledger, mechanisms, "11")
    assert spark.release(frame, mechanisms, str(tmp_path / "two"), **charging_it) == PEOPLE
    assert totals(ledger) == EVERYBODY
    assert reports(tmp_path / "two") == first
    table = pl.read_parquet(tmp_path / "two" / "*.parquet")
    assert table.columns == ["who", "age", "genre", "epsilon", "mechanism"]
    described = set(table.select("age", "epsilon", "mechanism").unique().rows())
    assert described == {(g, str(one.epsilon), one.digest) for g, one in mechanisms.items()}
    # A new epoch draws anew: 2,000 equal answers would be no chance.
    charging_it["epoch"] = "12"
    assert spark.release(frame, mechanisms, str(tmp_path / "three"), **charging_it) == PEOPLE
    assert reports(tmp_path / "three") != first


@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_task_that_fails_and_is_repeated_does_not_draw_again(
    frame: Any,
    mechanisms: dict[str, sv.Mechanism],
    ledger: sv.Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    with_ledger: bool,
) -> None:
    """Every writing task shows what it has and dies; its second attempt writes. Without a ledger they differ:
    that is what the ledger is for, and shows that this test would notice."""
    attempts = tmp_path / "attempts"
    attempts.mkdir()

    def write_twice(written: Any, output: str) -> None:
        def fail_once(parts: Iterator[Any]) -> Iterator[Any]:
            import pyarrow
            import pyarrow.parquet
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            if context.attemptNumber() == 0:
                seen = list(parts)
                if seen:
                    shown = attempts / f"{context.partitionId()}.parquet"
                    pyarrow.parquet.write_table(pyarrow.Table.from_batches(seen), shown)
                raise RuntimeError("the machine is gone")
            yield from parts

        write_for_owner(written.mapInArrow(fail_once, written.schema), output)

    monkeypatch.setattr(releasing, "write_for_owner", write_twice)
    charged: dict[str, Any] = {"ledger": ledger, "epoch": "11"} if with_ledger else {}
    assert spark.release(frame, mechanisms, str(tmp_path / "out"), **NAMED, **charged) == PEOPLE
    shown, written = reports(attempts), reports(tmp_path / "out")
    assert shown.keys() == written.keys()
    assert (shown == written) is with_ledger
    if with_ledger:
        assert totals(ledger) == EVERYBODY
        assert written == remembered(ledger, mechanisms, "11")


def test_a_driver_that_fails_after_the_charge_repeats_at_no_cost(
    frame: Any,
    mechanisms: dict[str, sv.Mechanism],
    ledger: sv.Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered: dict[str, str] = {}
    answers = sv.Ledger.answers

    def three_batches(self: sv.Ledger, asked: Any, epoch: str, which: Any) -> Any:
        if len(answered) > 300:
            raise sv.errors.LedgerError("the disk is gone")
        found = answers(self, asked, epoch, which)
        answered.update(zip(asked.users, map(str, found), strict=True))
        return found

    call: dict[str, Any] = {**NAMED, "ledger": ledger, "epoch": "11"}
    monkeypatch.setattr(releasing, "BATCH", 100)
    monkeypatch.setattr(sv.Ledger, "answers", three_batches)
    message = f"the disk is gone; {PEOPLE:,} releases were charged; running again costs nothing more"
    with pytest.raises(sv.errors.LedgerError, match=message):
        spark.release(frame, mechanisms, str(tmp_path / "out"), **call)
    monkeypatch.setattr(sv.Ledger, "answers", answers)
    assert not (tmp_path / "out").exists()
    assert 300 < len(answered) < PEOPLE
    assert totals(ledger) == EVERYBODY
    assert spark.release(frame, mechanisms, str(tmp_path / "out"), **call) == PEOPLE
    assert totals(ledger) == EVERYBODY
    written = reports(tmp_path / "out")
    assert {name: written[name] for name in answered} == answered


def test_refused_means_nobody_is_charged(
    session: Any, frame: Any, mechanisms: dict[str, sv.Mechanism], ledger: sv.Ledger, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    call: dict[str, Any] = {**NAMED, "ledger": ledger, "epoch": "11"}
    bad = session.createDataFrame([("u", "a", "old"), ("v", "SECRET", "new")], SCHEMA)
    with pytest.raises(sv.errors.UserDataError, match="1 of 2 rows do not name one"):
        spark.release(bad, mechanisms, str(out), **call, unknown="error")
    spelled = [
        ("Zoë" if form == "NFC" else unicodedata.normalize("NFD", "Zoë"), "a", "old")
        for form in ("NFC", "NFD")
    ]
    with pytest.raises(sv.errors.ParameterError, match="users must be distinct"):
        spark.release(session.createDataFrame(spelled, SCHEMA), mechanisms, str(out), **call)
    with pytest.raises(sv.errors.ParameterError, match="epoch and exhausted need a ledger"):
        spark.release(frame, mechanisms, str(out), **NAMED, epoch="11")
    assert not out.exists()
    out.mkdir()
    with pytest.raises(sv.errors.TableError, match="it is there already"):
        spark.release(frame, mechanisms, str(out), **call)
    assert ledger.users() == 0


def test_one_without_budget_refuses_all_groups_or_is_left_out(
    frame: Any, mechanisms: dict[str, sv.Mechanism], ledger: sv.Ledger, tmp_path: Path
) -> None:
    ledger.release(sv.certify(sv.blend(PRIOR, 0.75, weight=0.5)), "u7", records=["a"], epoch="11")
    before = totals(ledger)
    call: dict[str, Any] = {**NAMED, "ledger": ledger, "epoch": "11"}
    with pytest.raises(
        sv.errors.BudgetError, match=f"1 of {PEOPLE} users have less than they need; nobody was"
    ):
        spark.release(frame, mechanisms, str(tmp_path / "out"), **call)
    assert totals(ledger) == before
    assert not (tmp_path / "out").exists()
    with pytest.warns(UserWarning, match="1 releases are left out"):
        people = spark.release(frame, mechanisms, str(tmp_path / "out"), **call, exhausted="skip")
    assert people == PEOPLE - 1
    assert reports(tmp_path / "out").keys() == {f"u{i}" for i in range(PEOPLE)} - {"u7"}
    assert ledger.left("u7", "11") == Fraction(1, 4)


def test_who_was_not_charged_is_not_drawn(
    session: Any, mechanisms: dict[str, sv.Mechanism], ledger: sv.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table changes between the charge and the draw: the stranger is not drawn, nothing is returned."""
    rows = [("old", name, [1.0], [0], None) for name in ("ann", "bob")]
    people = session.createDataFrame(rows, releasing.PEOPLE).drop("seen")
    form = ReportForm(Groups(mechanisms, "tier"), "who", "genre", "tier")
    names = releasing._names_of
    monkeypatch.setattr(releasing, "_names_of", lambda table, group: names(table, group)[:1])
    with pytest.raises(sv.errors.LedgerError, match=r"the table changed.*1 releases were charged"):
        releasing.charge_and_draw(people, form, ledger, "11", "error")
    assert ledger.users() == 1
