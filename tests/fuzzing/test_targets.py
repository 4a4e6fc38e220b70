"""Each target of `make fuzz` over its inputs and some mutants, always the same: the harness must not rot."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from fuzzing import arguments, clients, collector, databases, mechanisms, tables, workbooks
from fuzzing.target import CORPUS, Finding, Target, run_blindly
from fuzzing.targets import TARGETS
from sottovoce.core import arithmetic
from sottovoce.release import file
from sottovoce.serving import server
from sottovoce.tables import reader, tally


@pytest.mark.parametrize("part", [5, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds(name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzzing.target.MOST_SECONDS", 300)  # a machine under load is no finding
    found = run_blindly(TARGETS[name], TARGETS[name].everyday // part, "every day")
    assert found["accepted"] > 0  # or the target tells nothing
    assert found["refused"] > 0


def test_the_three_clients_agree() -> None:
    if shutil.which("node") is None:
        pytest.skip("no node on this machine: the JavaScript client was not asked")
    found = clients.run(0, "every day", batch=80)
    assert found["files"] == 80
    assert found["accepted"] > 3
    assert found["draws"] > 50


def test_the_kept_inputs_are_small_and_named_after_a_target() -> None:
    files = list(CORPUS.glob("*"))
    assert {path.stem for path in files} <= set(TARGETS)
    assert sum(path.stat().st_size for path in files) < 100_000
    for path in files:
        assert all(isinstance(one, str) for one in json.loads(path.read_text(encoding="utf-8")))


def broken(target: Target, executions: int = 400) -> str:
    with pytest.raises(Finding) as found:
        run_blindly(target, executions, "planted")
    return str(found.value)


def test_a_planted_exception_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(file, "read_fraction", fails)
    assert "KeyError" in broken(TARGETS["mechanisms"])


def test_a_certificate_that_is_not_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchecked(low: tuple[int, ...], ratio: object, total: int) -> arithmetic.Box:
        high = tuple(min(arithmetic.times_below(ratio, value), total) for value in low)  # type: ignore[arg-type]
        return arithmetic.Box(tuple(low), high, total)

    monkeypatch.setattr("sottovoce.core.box.certified_box", unchecked)
    assert "disagree" in broken(TARGETS["mechanisms"], 4000)


@pytest.mark.parametrize(("name", "words"), [("tables", "by the csv module"), ("workbooks", "by hand")])
def test_a_row_that_is_counted_twice_is_found(monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> None:
    count = reader.count_table

    def twice(*given: object, **named: object) -> tally.Tally:
        found = count(*given, **named)  # type: ignore[arg-type]
        found.rows[0] += 1
        return found

    monkeypatch.setattr("sottovoce.tables.reader.count_table", twice)
    assert words in broken(TARGETS[name])


def test_a_release_without_a_charge_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.release.ledger.charge_of", lambda _: 1)
    assert "not charged" in broken(TARGETS["ledger"])


def test_a_collector_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sottovoce.serving.batches._malformed", fails)
    assert "ZeroDivisionError" in broken(TARGETS["collector"])


def test_a_traceback_of_the_command_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("sottovoce.cli.options.read_priors", fails)
    assert "RuntimeError" in broken(TARGETS["arguments"])


def test_what_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzzing.target.MOST_SECONDS", 1)

    def hangs(_: bytes) -> bool:
        while True:
            pass

    target = Target("hanging", hangs, lambda: [b""], lambda data, _: data, ())
    assert "more than 1 seconds" in broken(target)


def test_mutants_are_other_bytes() -> None:
    rng = random.Random(1)
    for room in (mechanisms, tables, workbooks, databases, collector, arguments):
        for target in room.TARGETS:
            seed = target.seeds()[0]
            assert len({target.mutate(seed, rng) for _ in range(50)}) > 25


def test_a_command_is_run_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written outside of its folder, and what was replaced for it is there again."""
    monkeypatch.chdir(tmp_path)
    before = server.server_of
    for place in ("out.json", "/out.json", "../../out.json", f"{tmp_path}/out.json"):
        arguments.check(f"design\nprior.json\n-e\n1\n-o\n{place}".encode())
        arguments.check(f"design\nprior.json\n-e\n1\n--output={place}".encode())
    assert list(tmp_path.iterdir()) == []
    assert not Path("/out.json").exists()
    assert server.server_of is before
