"""The command line as the tests use it: a real process, its files, and what a refusal looks like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sottovoce", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def check_refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert done.stderr.startswith("error:")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def check_refused_last(done: object, message: str) -> None:
    """Exit 2, the error on the last line, notes before it."""
    last = done.stderr.strip().splitlines()[-1]  # type: ignore[attr-defined]
    assert done.returncode == 2  # type: ignore[attr-defined]
    assert last.startswith("error:")
    assert message in last
    assert "Traceback" not in done.stderr  # type: ignore[attr-defined]
