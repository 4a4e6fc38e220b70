"""Nobody reads what a command says beside its result: it goes on, and what was paid for is written."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import sottovoce as sv

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
RUN = [sys.executable, "-m", "sottovoce"]
FULL = Path("/dev/full")


@pytest.fixture
def release(tmp_path: Path) -> list[str]:
    """A release of three people with a new ledger."""
    sv.certify(sv.kernel_clip(PRIOR, 1.0)).save(tmp_path / "m.json")
    (tmp_path / "users.csv").write_text("user,item\nu,a\nv,b\nw,a\n")
    sv.Ledger.create(tmp_path / "budget.db", budget=1).close()
    return [*RUN, "release", "m.json", "users.csv", "-o", "out.csv", "--ledger", "budget.db", "--epoch", "e"]


def charged(folder: Path) -> int:
    with closing(sv.Ledger(folder / "budget.db")) as book:
        return sum(one.users for one in book.epochs())


def test_a_reader_of_the_notes_that_leaves_costs_nobody_anything(release: list[str], tmp_path: Path) -> None:
    """The pipe breaks at the first note; people are charged after it, and their releases are written."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(release, stderr=writing, cwd=tmp_path, check=False, timeout=120)
    os.close(writing)
    assert done.returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4
    assert charged(tmp_path) == 3


@pytest.mark.skipif(not FULL.exists(), reason="this machine has no device that is always full")
def test_a_full_place_for_the_notes_costs_nobody_anything(release: list[str], tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(release, stderr=full, cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4


def test_a_closed_standard_output_is_refused_before_anybody_is_charged(
    release: list[str], tmp_path: Path
) -> None:
    line = " ".join(release).replace("out.csv", "-") + " >&-"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr == "error: standard output is closed: name a file to write to\n"
    assert charged(tmp_path) == 0


@pytest.mark.parametrize(("file", "code"), [("m.json", 0), ("nowhere.json", 2)])
def test_a_closed_standard_error_changes_no_exit_code(
    release: list[str], file: str, code: int, tmp_path: Path
) -> None:
    line = " ".join(release).replace("m.json", file) + " 2>&-"
    assert subprocess.run(["sh", "-c", line], cwd=tmp_path, check=False, timeout=120).returncode == code
