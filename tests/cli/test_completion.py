"""What the shell completes: commands, samplers, divergences, topics of the help, ways to show progress."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import sys; sys.argv = ['sottovoce']; from sottovoce.__main__ import main; main()"


def completed(folder: Path, line: str) -> list[str]:
    """What bash is offered at the end of a line; nothing may be said beside it."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_SOTTOVOCE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("compa", ["compare"]),
        ("design survey.csv -s kernel-c", ["kernel-clip"]),
        ("compare survey.csv members.csv -d helling", ["hellinger2"]),
        ("help exit", ["exit-codes"]),
        ("help relea", ["release"]),
        ("compare a.csv b.csv --progress j", ["json"]),
    ],
)
def test_the_shell_is_offered(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert completed(tmp_path, f"sottovoce {line}") == offered


def test_nothing_of_a_table_is_offered(tmp_path: Path) -> None:
    """The first row of a table without a header is somebody's."""
    (tmp_path / "members.csv").write_text("anna,drama,3\nben,comedy,4\n")
    for option in ("--user", "--item", "--weight", "--by"):
        assert completed(tmp_path, f"sottovoce compare members.csv members.csv {option} ") == []
