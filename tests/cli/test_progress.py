"""Long steps: a bar on a terminal, nothing in a pipe, lines of JSON where a program asks for them."""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command import run, write
from rich.console import Console

from sottovoce.cli import progress, terminal
from sottovoce.cli.progress import asked_for_lines, in_short, step, working

KEYS = ["step", "of", "done", "total", "unit", "seconds", "rate", "left", "finished"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    write(tmp_path, "survey.csv", "item,count\nDrama,30\nWar,10\nNoir,8\n")
    rng = random.Random(7)
    rows = [f"secret-{k % 40},{rng.choice(('Drama', 'War', 'Noir'))}\n" for k in range(200)]
    write(tmp_path, "members.csv", "user,item\n" + "".join(rows))
    return tmp_path


def steps_of(stderr: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of every step, by its name and what it is of; every line must be JSON."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, stderr.splitlines()):
        if "step" in line:
            assert list(line) == KEYS
            found.setdefault(" ".join(filter(None, (line["step"], line["of"]))), []).append(line)
        else:
            assert set(line) in ({"note"}, {"error", "exit"}, {"note", "exit"})
    return found


def test_every_long_step_is_a_stream_for_programs(tables: Path) -> None:
    def lines(*arguments: object) -> dict[str, list[dict[str, Any]]]:
        done = run(*arguments, "--progress", "json", cwd=tables)
        assert done.returncode == 0, done.stderr
        found = steps_of(done.stderr)
        for stream in found.values():
            assert [line["finished"] for line in stream] == [False] * (len(stream) - 1) + [True]
            assert stream[0]["done"] in (0, None)
            assert stream[-1]["done"] == stream[-1]["total"] or stream[0]["step"] == "auditing"
            assert stream[-1]["left"] == 0
            amounts = [line["done"] for line in stream if line["done"] is not None]
            assert amounts == sorted(amounts)
        return found

    size = (tables / "members.csv").stat().st_size
    found = lines("compare", "survey.csv", "members.csv", "-e", "1,2", "-s", "kernel-clip", "-s", "blend")
    assert list(found) == ["reading survey.csv", "reading members.csv", "comparing members.csv"]
    assert (found["reading members.csv"][-1]["total"], found["reading members.csv"][-1]["unit"]) == (
        size,
        "bytes",
    )
    assert found["comparing members.csv"][-1]["done"] == 4
    found = lines("design", "survey.csv", "-e", 2, "-s", "kernel-clip", "-o", "m.json")
    assert list(found)[1:] == [
        "designing survey.csv",
        "certifying survey.csv",
        "bounding what shuffling adds",
    ]
    assert run("ledger", "create", tables / "b.db", "--budget", 4).returncode == 0
    found = lines("release", "m.json", "members.csv", "-o", "r.csv", "--ledger", "b.db")
    assert list(found) == ["reading members.csv", "charging", "releasing", "writing r.csv"]
    assert {found[name][-1]["done"] for name in ("charging", "releasing")} == {40}
    assert list(lines("estimate", "m.json", "r.csv")) == ["reading r.csv", "estimating"]
    assert lines("audit", "m.json", "--draws", 2000)["auditing all"][-1]["unit"] == "draws"
    assert (
        list(lines("samples", "survey.csv", "members.csv", "-e", 2, "-k", 1))[-1] == "comparing members.csv"
    )
    assert list(lines("choose", "survey.csv", "-e", 2)) == ["reading survey.csv", "choosing survey.csv"]
    assert list(lines("amplify", "m.json", "--reports", 1000)) == ["bounding"]
    assert list(lines("prior", "survey.csv")) == ["reading survey.csv"]
    assert list(lines("demo", "--json")) == ["comparing the film club"]


def test_the_stream_holds_nothing_private_and_the_result_stays_the_same(tables: Path) -> None:
    command = ("compare", "survey.csv", "members.csv", "-e", 1, "-s", "kernel-clip", "--json")
    usual, told = run(*command, cwd=tables), run(*command, "--progress", "json", cwd=tables)
    assert told.stdout == usual.stdout
    assert "secret" not in told.stderr
    assert "Drama" not in told.stderr
    notes = [line["note"] for line in map(json.loads, told.stderr.splitlines()) if "note" in line]
    assert notes == usual.stderr.splitlines()


def test_errors_are_lines_too(tables: Path) -> None:
    for arguments, words in {
        ("prior", "none.csv", "--progress", "json"): "none.csv cannot be read: there is no such file",
        ("prior", "--itm", "a", "survey.csv", "--progress=json"): "No such option: --itm",
        ("prioor", "--progress", "json"): "No such command 'prioor'",
        ("prior", "survey.csv", "--item", "items", "--quiet", "--progress", "json"): "did you mean 'item'?",
    }.items():
        done = run(*arguments, cwd=tables)
        assert done.returncode == 2
        *_, last = map(json.loads, done.stderr.splitlines())
        assert words in last.pop("error")
        assert last == {"exit": 2}
        steps_of(done.stderr)  # nothing but JSON


def test_a_pipe_gets_no_bar_and_quiet_leaves_the_steps(tables: Path) -> None:
    usual = run("prior", "survey.csv", cwd=tables)
    for way in ("bar", "none"):
        assert run("prior", "survey.csv", "--progress", way, cwd=tables).stderr == usual.stderr
    quiet = run("prior", "survey.csv", "--quiet", "--progress", "json", cwd=tables)
    assert quiet.stdout == usual.stdout
    assert [json.loads(line)["finished"] for line in quiet.stderr.splitlines()] == [False, True]
    refused = run("prior", "survey.csv", "--progress", "jsn", cwd=tables)
    assert refused.stderr == "error: progress must be one of bar, json, none, got 'jsn'\n"


def test_an_interruption_is_a_line(tmp_path: Path) -> None:
    write(tmp_path, "survey.csv", "item,count\n" + "".join(f"i{k},{k + 1}\n" for k in range(3000)))
    command = [sys.executable, "-m", "sottovoce", "choose", "survey.csv", "--mean-at-most", "0.001"]
    with subprocess.Popen(
        [*command, "--progress", "json"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if json.loads(line).get("step") == "choosing":
                process.send_signal(signal.SIGINT)
                break
        rest = [json.loads(line) for line in process.stderr]
    assert process.returncode == 130
    assert rest[-1] == {"note": "interrupted", "exit": 130}


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(progress, "print_line", lines.append)
    yield lines
    terminal.speak_normally()


def test_rate_and_time_left(clock: Clock) -> None:
    one = progress.Step("release", None, 1000, "users", 0)
    assert (one.line()["rate"], one.line()["left"]) == (None, None)
    clock.now += 2
    one.advance(100)
    assert {key: one.line()[key] for key in ("seconds", "rate", "left")} == {
        "seconds": 2,
        "rate": 50,
        "left": 18,
    }
    clock.now += 3
    one.reached(400)
    assert (one.line()["rate"], one.line()["left"]) == (80, 7.5)
    clock.now += 100  # a slow part: what was fast long ago says nothing any more
    one.reached(500)
    assert one.line()["rate"] == 1
    assert one.line()["left"] == 500
    clock.now += 5
    one.reached(1000)
    whole = one.line(finished=True)
    assert (whole["rate"], whole["left"], whole["finished"]) == (float(f"{1000 / 110:.6g}"), 0, True)


def test_a_step_that_nobody_can_look_into_is_done_as_a_whole(clock: Clock) -> None:
    one = progress.Step("reading", "t.csv", 500, "bytes", None)
    clock.now += 4
    assert {one.line()[key] for key in ("done", "rate", "left")} == {None}
    whole = one.line(finished=True)
    assert (whole["done"], whole["rate"], whole["left"]) == (500, 125, 0)


class Ticks(threading.Event):
    """An event that is waited for so many times, while a clock goes on."""

    def __init__(self, clock: Clock, one: progress.Step, amounts: list[float]) -> None:
        super().__init__()
        self._clock, self._one, self._amounts = clock, one, list(amounts)

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now += timeout or 0
        if not self._amounts:
            return True
        self._one.done = self._amounts.pop(0)
        return False


def test_lines_come_when_something_changed_and_else_once_a_second(
    clock: Clock, told: list[dict[str, Any]]
) -> None:
    one = progress.Step("release", None, 100, "users", 0)
    progress._tell(one, Ticks(clock, one, [0, 1, 1, 2, *[2] * 10, 3]))
    assert [line["done"] for line in told] == [1, 2, 2, 2, 3]
    gaps = [b["seconds"] - a["seconds"] for a, b in pairwise(told)]
    assert all(0.199 <= gap <= 1.001 for gap in gaps)


def test_a_step_that_fails_has_no_last_line(told: list[dict[str, Any]]) -> None:
    progress.choose_way("json")
    with suppress(OSError), step("release", total=2, unit="users") as going:
        going.advance()
        raise OSError("lost")
    assert [line["finished"] for line in told] == [False]
    with working("writing"):
        pass
    assert [line["finished"] for line in told] == [False, False, True]


def drawn(monkeypatch: pytest.MonkeyPatch, way: str = "bar", *, quiet: bool = False, **given: Any) -> str:
    """What a terminal gets of a step of four parts."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, color_system=None)
    console.quiet = quiet
    monkeypatch.setattr(progress, "errors", console)
    progress.choose_way(way)
    try:
        with step("releasing", "reports.csv", unit="users", **given) as going:
            for _ in range(4):
                time.sleep(0.001)
                if given.get("counted", True):
                    going.advance(25_000)
    finally:
        terminal.speak_normally()
    return file.getvalue()


def test_a_terminal_gets_a_bar_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = drawn(monkeypatch, total=100_000)
    assert "releasing reports.csv ━━" in shown
    assert "100%" in shown
    assert "users/s" in shown
    assert "0:00:00" in shown
    unknown = drawn(monkeypatch)
    assert "100k users" in unknown
    assert "users/s" in unknown
    assert "━" not in unknown
    whole = drawn(monkeypatch, total=5_340_000, counted=False)
    assert "5.34M users" in whole
    assert "━" not in whole


def test_none_and_quiet_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, "none", total=100_000) == ""
    assert drawn(monkeypatch, quiet=True, total=100_000) == ""


def test_numbers_in_short() -> None:
    given = (0, 0.0653, 7.25, 950, 999.6, 37_512, 999_700, 213_467_534, 8e9, 4e13)
    shown = "0 0.0653 7.25 950 1k 37.5k 1M 213M 8G 40,000G"
    assert " ".join(map(in_short, given)) == shown


def test_who_asks_for_lines() -> None:
    assert asked_for_lines(["prior", "a.csv", "--progress", "json"])
    assert asked_for_lines(["prior", "--progress=json"])
    assert not asked_for_lines(["prior", "json", "--progress", "bar"])


def test_nobody_reading_the_stream_is_no_error(tables: Path) -> None:
    """The result is what counts: a program that has gone away takes nothing from it."""
    command = [sys.executable, "-m", "sottovoce", "prior", str(tables / "survey.csv"), "--progress", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        process.stderr.close()
        shown = process.stdout.read()
    assert "Drama" in shown
    assert process.returncode == 0
