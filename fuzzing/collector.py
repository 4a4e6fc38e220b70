"""Requests to the collector: answered with a status of its own, stored whole or not at all."""

from __future__ import annotations

import asyncio
import atexit
import json
import random
import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

import sottovoce as sv
from sottovoce.release.file import save_mechanisms
from sottovoce.serving.app import Settings, make_app
from sottovoce.serving.batches import Served, read_served

from .mutate import bytes_mutated, json_mutated
from .target import Target, folder, holds

EXPECTED = {200, 202, 304, 400, 403, 404, 405, 408, 409, 413, 415, 421, 422}
"""What a request may be answered; 5xx are not: the disk is fine."""


class _Collector:
    """The application on a store of its own."""

    def __init__(self) -> None:
        prior = sv.Prior(["a", "b", "😀"], [0.5, 0.3, 0.2])
        one = sv.certify(sv.kernel_clip(prior, 1.0))
        other = sv.certify(sv.minimax_kernel(sv.Prior([1, 2], [0.5, 0.5]), 1.0))
        save_mechanisms({"north": one, "south": other, "east": one}, "region", folder() / "served.json")
        self.served: Served = read_served(folder() / "served.json")
        self.store = folder() / "served.db"
        settings = Settings(store=self.store, names=frozenset({"here"}))
        self.app: Any = make_app(settings, [self.served], lambda _: None)
        self.loop = asyncio.new_event_loop()
        self.reader = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, isolation_level=None)
        atexit.register(self.loop.close)
        atexit.register(self.reader.close)

    def stored(self) -> int:
        """How many reports there are."""
        return int(self.reader.execute("SELECT count(*) FROM reports").fetchone()[0])

    def ask(
        self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": path.encode("latin-1", "replace"),
            "query_string": b"", "root_path": "", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("here", 80),
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        self.loop.run_until_complete(self.app(scope, receive, send))
        return int(sent[0]["status"]), b"".join(one.get("body", b"") for one in sent[1:])


@cache
def _collector() -> _Collector:
    return _Collector()


def check(data: bytes) -> bool:
    """Send a request; the first line is its method and path, then headers, an empty line, and the body."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.decode("latin-1").partition(" ")
    headers = [
        (name.strip().lower(), value.strip()) for name, _, value in (one.partition(b":") for one in lines)
    ]
    collector = _collector()
    before = collector.stored()
    status, answer = collector.ask(method or "GET", path or "/", headers, body)
    added = collector.stored() - before
    holds(status in EXPECTED, f"the collector answered {status}")
    if status == 202:
        reports = json.loads(body)["reports"]
        ids = {one["id"] for one in reports}
        holds(0 <= added <= len(ids), "more was stored than was sent")
        holds(json.loads(answer) == {"accepted": len(reports)}, "another number was accepted than was sent")
    else:
        holds(added == 0, "something of a refused request was stored")
    if status >= 400 and answer:
        told = json.loads(answer)
        holds(set(told) <= {"error", "report"} and len(told["error"]) < 300, "a refusal of strange words")
    return status < 400


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Another head, or another body."""
    head, _, body = data.partition(b"\n\n")
    if rng.random() < 0.2:
        return bytes_mutated(head, rng) + b"\n\n" + body
    return head + b"\n\n" + json_mutated(body, rng)


def seeds() -> Sequence[bytes]:
    """Batches that are taken, and a request of every other kind."""
    digests = _collector().served.digests
    reports = [
        {"mechanism": digests["north"], "id": "0" * 32, "category": "a", "group": "north"},
        {"mechanism": digests["south"], "id": "f" * 32, "category": 2},
        {"mechanism": digests["east"], "id": "12ab" * 8, "category": "😀", "group": "east"},
    ]
    post = b"POST /v1/reports\nhost: here\ncontent-type: application/json\n\n"
    batches = [
        post + json.dumps({"reports": some}).encode() for some in (reports, reports[:1], reports[1:2], [])
    ]
    others = [b"/v1/mechanism", b"/v1/estimate", b"/", b"/v1/export", b"/metrics", b"/healthz", b"/v2"]
    return [*batches, *(b"GET " + path + b"\nhost: here\n\n" for path in others), b"GET /\nhost: there\n\n"]


TARGETS = (
    Target(
        "collector", check, seeds, mutated,
        ("serving/app.py", "serving/batches.py", "serving/writer.py"),
    ),
)  # fmt: skip
