"""The command line as the tests use it: a real process, its files, and what a refusal looks like."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

WARM = Path(__file__).with_name("warm.py")


def run(
    *arguments: object, cwd: Path | None = None, stdin: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, as a copy of a process that has its libraries imported where that changes nothing."""
    texts = list(map(str, arguments))
    with tempfile.TemporaryDirectory() as folder:
        given, out, err = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
        given.write_bytes(stdin or b"")
        out.touch()
        err.touch()
        places = {
            "stdin": os.devnull if stdin is None else str(given),
            "stdout": str(out),
            "stderr": str(err),
        }
        code = _run(texts, os.fspath(cwd or Path.cwd()), places)
        return subprocess.CompletedProcess(texts, code, out.read_text("utf-8"), err.read_text("utf-8"))


def _run(arguments: list[str], cwd: str, places: dict[str, str]) -> int:
    if not hasattr(os, "fork") or "COVERAGE_FILE" in os.environ or _environment() != _first_environment():
        command = [sys.executable, "-m", "sottovoce", *arguments]
        with contextlib.ExitStack() as stack:
            files: dict[str, Any] = {
                name: stack.enter_context(open(place, "rb" if name == "stdin" else "wb"))
                for name, place in places.items()
            }
            return subprocess.run(command, cwd=cwd, check=False, **files).returncode
    return _ask({"arguments": arguments, "cwd": cwd, **places})


def _environment() -> dict[str, str]:
    """What a command would inherit; pytest says there which test is running."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@cache
def _first_environment() -> dict[str, str]:
    """What the process that forks has inherited."""
    return _environment()


@cache
def _warm() -> subprocess.Popen[str]:
    command = [sys.executable, str(WARM)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_first_environment()
    )


def _ask(request: dict[str, object]) -> int:
    process = _warm()
    if process.stdin is None or process.stdout is None:
        raise AssertionError("unreachable: both are pipes")
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


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
