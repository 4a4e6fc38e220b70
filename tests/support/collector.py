"""A collector for tests: its application asked directly, or as a running command that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import jsonschema
import psutil

import sottovoce as sv
from sottovoce.release.file import save_mechanisms
from sottovoce.serving.app import Settings, make_app
from sottovoce.serving.batches import Served, read_served

PRIOR = sv.Prior(["Drama", "Comedy", "War", "Nô 能", "🎬"], [0.5, 0.25, 0.15, 0.07, 0.03])
YOUNG = sv.Prior(["Drama", "Comedy", "War", "Nô 能", "🎬"], [0.2, 0.2, 0.2, 0.2, 0.2])
JSON = (("content-type", "application/json"),)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


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


def listening(port: int) -> list[int | None]:
    """The processes that listen on a port."""
    found = psutil.net_connections("tcp")
    return [one.pid for one in found if one.status == psutil.CONN_LISTEN and one.laddr.port == port]


def write_mechanism(folder: Path, name: str = "m.json") -> Path:
    """A linear mechanism at ε = 2."""
    sv.certify(sv.minimax_kernel(PRIOR, 2.0)).save(folder / name)
    return folder / name


def write_groups(folder: Path, *, twins: bool = False) -> Path:
    """Mechanisms of two groups, or of three, two of which are the same."""
    old, young = (sv.certify(sv.minimax_kernel(prior, 2.0)) for prior in (PRIOR, YOUNG))
    groups = {"old": old, "young": young} | ({"older": old} if twins else {})
    save_mechanisms(groups, "age", folder / "groups.json")
    return folder / "groups.json"


def report(digest: str, category: object = "War", **more: object) -> dict[str, object]:
    """A report with an id of its own."""
    return {"mechanism": digest, "id": secrets.token_hex(16), "category": category, **more}


def batch(reports: object) -> bytes:
    return json.dumps({"reports": reports}).encode()


def rows_of(store: Path) -> set[tuple[bytes, int, int]]:
    """The reports of a store, read without the code under test."""
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    database.execute("BEGIN")  # one moment, of a store that may be growing
    found = database.execute("SELECT id, mechanism, category FROM reports").fetchall()
    counted = database.execute("SELECT mechanism, category, reports FROM counts WHERE reports > 0").fetchall()
    anew = database.execute("SELECT mechanism, category, count(*) FROM reports GROUP BY 1, 2").fetchall()
    database.close()
    assert sorted(counted) == sorted(anew)
    assert len(set(found)) == len(found)
    return set(found)


def check_described(description: Any, method: str, path: str, answer: Answer) -> set[tuple[str, str, str]]:
    """Compare an answer with the description of its operation, if it is one; return what was compared."""
    operation = description["paths"].get(path, {}).get(method)
    if operation is None:
        assert answer.status in (404, 405, 421)
        return set()
    described = operation["responses"][str(answer.status)]
    if answer.status != 304:
        kind = answer.headers["content-type"].split(";")[0]
        value = json.loads(answer.body) if kind == "application/json" else answer.body.decode()
        jsonschema.validate(value, described["content"][kind]["schema"])
    return {(method, path, str(answer.status))}


class Collector:
    """The application on a store of its own; every call is one request."""

    def __init__(self, mechanism_file: Path, store: Path, *others: Path, **settings: Any) -> None:
        self.served: Served = read_served(mechanism_file)
        self.store = store
        self.said: list[str] = []
        self.seen: set[tuple[str, str, str]] = set()
        self._description: Any = None
        self.loop = asyncio.new_event_loop()
        files = [self.served, *map(read_served, others)]
        self.app: Any = make_app(Settings(store=store, **settings), files, self.said.append)

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        """Go through the lifespan, at whose end the store is closed."""
        messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

        async def receive() -> Any:
            return messages.pop(0)

        async def send(_: Any) -> None:
            pass

        self.loop.run_until_complete(self.app({"type": "lifespan", "state": {}}, receive, send))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    @property
    def digest(self) -> str:
        return next(iter(self.served.digests.values()))

    def ask(
        self,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | list[bytes] = b"",
        end: str = "whole",
        each: Callable[[Any], object] = lambda _: None,
    ) -> Answer:
        """The answer to a request, whose body may come in parts, go silent, or be cut off.

        `each` is called with every message of the answer, before the next one is made.
        """
        given = list(headers)
        if not any(name == "host" for name, _ in given):
            given.append(("host", "127.0.0.1:8000"))
        parts = [body] if isinstance(body, bytes) else list(body)
        messages = [
            {"type": "http.request", "body": part, "more_body": end != "whole" or place + 1 < len(parts)}
            for place, part in enumerate(parts)
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            if not messages and end != "cut":
                await asyncio.Event().wait()
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            each(message)

        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given],
            "root_path": "",
            "scheme": "http",
            "server": ("127.0.0.1", 8000),
            "client": ("192.0.2.77", 54321),
            "http_version": "1.1",
        }
        try:
            self.loop.run_until_complete(self.app(scope, receive, send))
        except Exception:
            if not sent or sent[0]["status"] != 500:  # the application answers, and raises again for a log
                raise
        found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        answer = Answer(sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent[1:]))
        if path != "/openapi.json" and method in ("GET", "POST"):
            self.seen |= check_described(self.description(), method.lower(), path, answer)
        return answer

    def description(self) -> Any:
        """What the collector says of itself."""
        if self._description is None:
            self._description = json.loads(self.ask("GET", "/openapi.json").body)
        return self._description

    def post(self, reports: object) -> Answer:
        return self.ask("POST", "/v1/reports", JSON, batch(reports))

    def post_body(self, body: bytes) -> Answer:
        return self.ask("POST", "/v1/reports", JSON, body)


@dataclass
class Running:
    """A running `sottovoce collect`, as its printed address tells it."""

    process: subprocess.Popen[str]
    port: int

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body or None, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, reports: object) -> tuple[int, bytes]:
        return self.ask("POST", "/v1/reports", batch(reports), dict(JSON))

    def kill(self) -> None:
        """kill -9 for all its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=300)

    def last_words(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def collecting(mechanism_file: Path, store: Path, *arguments: object, port: int = 0) -> Iterator[Running]:
    """A running collector that has printed its address."""
    command = [sys.executable, "-m", "sottovoce", "collect", "serve", mechanism_file, "--store", store]
    process = subprocess.Popen(
        [*map(str, command), "--port", str(port), *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running = Running(process, 0)
    try:
        assert process.stderr is not None
        running.port, _ = read_address(process.stderr.fileno())
        _answering(running)
        yield running
    finally:
        running.kill()
        if process.stderr is not None:
            process.stderr.close()


def _answering(running: Running) -> None:
    """Wait for the first answer: the port is open before the first worker is."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        with suppress(OSError):
            if running.ask("GET", "/v1/mechanism")[0] == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the collector does not answer")
