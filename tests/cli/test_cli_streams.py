"""Streams on the command line: designed, released, charged, audited."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run

import sottovoce as sv
from sottovoce.release.file import ANY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.csv").write_text("item,count\na,10\nb,20\nc,30\nd,40\n")
    rows = [f"u{i},{item}" for i in range(30) for item in ("a", "d", "abcd"[i % 4])]
    (tmp_path / "members.csv").write_text("user,item\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_a_stream_is_designed_and_released_week_by_week_for_one_charge(folder: Path) -> None:
    told = run("design", "survey.csv", "-e", 8, "-s", "stream:horizon=4", "-o", "stream.json", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert "any number, planned for 4" in told.stdout
    assert sv.load(folder / "stream.json", policy=ANY).streaming
    alone = run("release", "--max-epsilon", 8, "stream.json", "members.csv", "-o", "r.csv", cwd=folder)
    assert (alone.returncode, "--ledger" in alone.stderr) == (2, True)
    run("ledger", "create", "budget.db", "--budget", 8, "--lifetime", 8, cwd=folder)
    weeks = []
    for week in range(4):
        options = ["--max-epsilon", 8, "--ledger", "budget.db", "--epoch", f"w{week}", "-o", f"{week}.csv"]
        told = run("release", "stream.json", "members.csv", *options, cwd=folder)
        assert told.returncode == 0, told.stderr
        assert ("30 releases charged" if week == 0 else "30 of streams that go on") in told.stderr
        weeks.append((folder / f"{week}.csv").read_text())
        again = run("release", "stream.json", "members.csv", *options, "--force", cwd=folder)
        assert "0 releases charged, 30 repeated" in again.stderr
        assert (folder / f"{week}.csv").read_text() == weeks[week]
    assert len(set(weeks)) == 4
    told = run("ledger", "show", "budget.db", "u1", "--epoch", "w3", cwd=folder)
    assert "8 was spent in all epochs" in told.stderr + told.stdout
    told = run("audit", "stream.json", "--draws", 2000, cwd=folder)
    assert (told.returncode, "no violation found" in told.stdout) == (0, True)
    told = run("estimate", "stream.json", "3.csv", cwd=folder)
    assert "not the users' own" in told.stdout + told.stderr
    for wrong in ("nan", "inf", "1.7", "-3"):
        told = run("design", "survey.csv", "-e", 8, "-s", f"stream:horizon={wrong}", cwd=folder)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
    told = run("compare", "survey.csv", "members.csv", "-e", 8, "-s", "stream", cwd=folder)
    assert (told.returncode, "compare_over_time" in told.stderr) == (2, True)
