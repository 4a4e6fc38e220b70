"""Run the tests of a changed line in a process of their own: killed, or survived.

The source is copied once; for each mutant one file of the copy is replaced, so that processes which the tests
start see the change too. Each run is a fork of a process that has its libraries imported already.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_SECONDS = 15.0
"""Seconds that the tests of one mutant take without it; slower tests are left out."""
FIRST_SECONDS = 4.0
_MEMORY = 6 << 30


class Bench:
    """A copy of the source in which one file at a time is another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        for name in ("tests", "clients", "docs", "examples", "pyproject.toml", "README.md"):
            os.symlink(ROOT / name, folder / name)  # what tests look for beside the source

    def run(self, file: str, source: str | None, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """The verdict on a source of a file, and the last line that pytest printed."""
        place = self.folder / "src" / "sottovoce" / file
        before = place.read_text(encoding="utf-8")
        if source is not None:
            place.write_text(source, encoding="utf-8")
        try:
            return self._forked(tests, seconds)
        finally:
            place.write_text(before, encoding="utf-8")

    def _forked(self, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        output = self.folder / "output.txt"
        child = os.fork()
        if child == 0:
            os.setsid()
            _become_pytest(self.folder, tests, output, seconds)
        code = _wait(child, 10 * seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests may have left
        last = (output.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""])[-1]
        if code is None or code == -signal.SIGXCPU:
            return "killed: time", last
        return {0: "survived", 1: "killed", 5: "no test"}.get(code, "killed: error"), last


def within(tests: Sequence[str], seconds: dict[str, float], most: float = MOST_SECONDS) -> list[str]:
    """The first of these tests, as many as fit in the time."""
    taken: list[str] = []
    total = 0.0
    for test in tests:
        total += seconds.get(test, 0.0)
        if taken and total > most:
            break
        if "test_planted_clients" in test:  # faults of another client, seconds each
            continue
        taken.append(test)
    return taken


def stages(tests: Sequence[str], seconds: dict[str, float]) -> list[list[str]]:
    """First the tests of the file that has most of them, then the others: most mutants die early."""
    number = Counter(test.split("::")[0] for test in tests)
    if len(number) < 2:
        return [list(tests)]
    first = max(number, key=lambda file: (number[file], file))
    own = within([test for test in tests if test.split("::")[0] == first], seconds, FIRST_SECONDS)
    return [own, [test for test in tests if test not in set(own)]]


def preload() -> None:
    """Import what every run needs and no mutant changes; nothing that starts threads."""
    import hypothesis
    import mpmath
    import numpy
    import pytest
    import scipy.optimize
    import scipy.sparse

    _ = hypothesis, mpmath, numpy, pytest, scipy.optimize, scipy.sparse


def _become_pytest(folder: Path, tests: Sequence[str], output: Path, seconds: float) -> None:
    """Run the tests on the copy, and leave at once; the seconds are those of the processor."""
    code = 3
    try:
        file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        source = str(folder / "src")
        os.environ["PYTHONPATH"] = source
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path.insert(0, source)
        if any(name.split(".")[0] == "sottovoce" for name in sys.modules):
            raise AssertionError("the package is imported already: no mutant would be seen")
        os.chdir(ROOT)
        import pytest

        options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is there already
        code = int(pytest.main([*options, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, seconds: float) -> int | None:
    """The exit code of a child, or None if it took too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
