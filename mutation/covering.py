"""Which tests run which lines, and how long each takes: a plugin of pytest, and what it wrote.

    python -m pytest -p mutation.covering tests/release …

The result stands in build/mutants/covering.json; the plugin is told the place of the source by MUTATED.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "build" / "mutants" / "covering.json"


@dataclass(frozen=True)
class Covering:
    """The tests of every line of every file, and the seconds of every test."""

    lines: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]

    def tests(self, file: str, line: int) -> list[str]:
        """The tests that run a line, the fastest first; where none does, those that run the file."""
        found = set(self.lines.get(file, {}).get(str(line), ()))
        if not found:  # run when the file is imported, or never
            found = {test for tests in self.lines.get(file, {}).values() for test in tests}
        return sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test))


def read() -> Covering:
    """What the plugin wrote."""
    plain = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return Covering(plain["lines"], plain["seconds"])


class _Recorder:
    """Follows a run of pytest."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.folder = folder
        self.seconds: dict[str, float] = {}
        WRITTEN.parent.mkdir(parents=True, exist_ok=True)
        data = str(WRITTEN.with_suffix(".data"))
        self.coverage = coverage.Coverage(data_file=data, source=[str(folder)], config_file=False)
        self.coverage.erase()
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        begin = time.perf_counter()
        yield
        self.seconds[item.nodeid] = time.perf_counter() - begin
        self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        found = self.coverage.get_data()
        lines = {
            Path(file).relative_to(self.folder).as_posix(): {
                str(line): sorted({test for test in tests if test})
                for line, tests in found.contexts_by_lineno(file).items()
            }
            for file in found.measured_files()
        }
        text = json.dumps({"lines": lines, "seconds": self.seconds})
        WRITTEN.write_text(text, encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, where MUTATED names the folder."""
    folder = os.environ.get("MUTATED")
    if folder is not None:
        config.pluginmanager.register(_Recorder(Path(folder)), "lines and their tests")
