"""A real browser for tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""


def need_browser() -> Any:
    """The library that drives a browser; without it or without chromium the test skips visibly."""
    if not CHROMIUM:
        pytest.skip("no chromium on this machine: the page was not looked at")
    return pytest.importorskip("playwright.sync_api", reason="make test-browser installs it")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that asks nobody but us, and takes evil.test for this machine."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update"]
    flags += ["--host-resolver-rules=MAP evil.test 127.0.0.1"]
    with need_browser().sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield started
        started.close()
