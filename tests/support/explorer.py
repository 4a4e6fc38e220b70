"""A running explorer for tests, and requests written by hand: a client library would correct the bad ones."""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any

import psutil
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
UPGRADE = (
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
)
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """What came back: 101 is a WebSocket that was accepted."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Explorer:
    """A running `sottovoce explore`, as its printed address tells it."""

    process: subprocess.Popen[str]
    port: int
    path: str
    pages: list[socket.socket] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}{self.path}"

    @property
    def token(self) -> str:
        return self.path.strip("/")

    def send(
        self, target: str, headers: Headers | None = None, *, method: str = "GET", version: str = "1.1"
    ) -> tuple[socket.socket, Answer]:
        """One request as written; the Host is ours unless `headers` are given."""
        given = [("Host", self.host)] if headers is None else list(headers)
        body = b"{}" if method == "POST" else b""
        given += [("Content-Length", str(len(body)))] if body else []
        lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in given)]
        stream = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        stream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        response = HTTPResponse(stream, method=method)
        response.begin()
        content = b"" if response.status == 101 else response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        return stream, Answer(response.status, found, content)

    def ask(self, target: str, headers: Headers | None = None, **how: str) -> Answer:
        """The answer to one request; asked again where Python's own parser failed, which says nothing of us.

        Python 3.11 keeps the depth of its parser in one place for all threads (python/cpython#106905). marimo
        parses in two threads, so that one request in some thousands is answered with this error.
        """
        stream, answer = self.send(target, headers, **how)
        stream.close()
        if answer.status == 500 and b"AST constructor recursion depth mismatch" in answer.body:
            stream, answer = self.send(target, headers, **how)
            stream.close()
        return answer

    def knock(self, target: str, headers: Headers | None = None) -> int:
        """The status of a WebSocket handshake."""
        own = [("Host", self.host)] if headers is None else list(headers)
        return self.ask(target, [*own, *UPGRADE]).status

    def open_page(self) -> socket.socket:
        """A WebSocket that stays open, as a browser's; the kernel behind it begins to compute."""
        own = [("Host", self.host), *UPGRADE]
        stream, answer = self.send(f"{self.path}ws?session_id=s_abcdef", own)
        self.pages.append(stream)
        assert answer.status == 101
        assert stream.recv(10)  # the kernel speaks
        return stream

    def close(self) -> None:
        """Leave nothing behind, however the test ended."""
        for stream in self.pages:
            stream.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait(timeout=300)
        if self.process.stderr is not None:
            self.process.stderr.close()

    def ended(self, within: float = 300.0) -> float:
        """Wait for the end: the process, all its children and the port; the seconds it took."""
        begin = time.perf_counter()
        self.process.wait(timeout=within)
        took = time.perf_counter() - begin
        with (
            suppress(ConnectionRefusedError),
            socket.create_connection(("127.0.0.1", self.port), timeout=300),
        ):
            raise AssertionError("the port is still served")
        assert listening(self.port) == []
        return took


def listening(port: int) -> list[int | None]:
    """The processes that listen on a port."""
    found = psutil.net_connections("tcp")
    return [one.pid for one in found if one.status == psutil.CONN_LISTEN and one.laddr.port == port]


def read_address(descriptor: int, seconds: float = 300) -> tuple[int, str]:
    """Port and path of the address that the command prints."""
    text, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([descriptor], [], [], 0.5)[0]:
            text += os.read(descriptor, 1)  # not a byte beyond the line: what follows is read by others
        match = re.search(rb"http://127\.0\.0\.1:(\d+)(/\S*)? .*\n", text)
        if match:
            return int(match[1]), (match[2] or b"/").decode()
    raise AssertionError(f"no address in {text!r}")


@contextmanager
def exploring(*arguments: object, environment: dict[str, str] | None = None) -> Iterator[Explorer]:
    """A running explorer that has printed its address."""
    command = [sys.executable, "-m", "sottovoce", "explore", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **(environment or {})},
    )
    explorer = Explorer(process, 0, "")
    try:
        assert process.stderr is not None
        explorer.port, explorer.path = read_address(process.stderr.fileno())
        yield explorer
    finally:
        explorer.close()


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
