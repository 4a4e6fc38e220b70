"""Long steps: a bar on a terminal, nothing in a pipe and nothing of a quiet command."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from command import run, write
from rich.console import Console

from sottovoce.cli import terminal
from sottovoce.cli.terminal import step


def drawn(monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False, **given: Any) -> str:
    """What a terminal gets of a step of four parts."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, color_system=None)
    console.quiet = quiet
    monkeypatch.setattr(terminal, "errors", console)
    with step("releasing", "re\x1bports.csv", unit="users", **given) as going:
        for _ in range(4):
            going.advance(25_000)
        assert going.after("made") == "made"
        going.reached(100_000)
    return file.getvalue()


def test_a_terminal_gets_a_bar_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = drawn(monkeypatch, total=100_000)
    assert "releasing re\N{REPLACEMENT CHARACTER}ports.csv ━━" in shown
    assert "100%" in shown
    assert "0:00:00" in shown
    unknown = drawn(monkeypatch)
    assert "releasing re\N{REPLACEMENT CHARACTER}ports.csv" in unknown
    assert "━" not in unknown


def test_quiet_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, quiet=True, total=100_000) == ""


def test_a_pipe_gets_no_bar(tmp_path: Path) -> None:
    prior = write(tmp_path, "survey.csv", "item,count\nDrama,30\nWar,10\n")
    assert run("prior", prior).stderr == "survey.csv: amounts from column 'count'.\n"
