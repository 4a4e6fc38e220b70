"""Connections that bring no request, or take no answer, are ended: they keep honest senders out no longer.

Nothing is said about times, only about what comes before what: the limits are short here, and the machine may
be slow.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("uvicorn")
from collector import Running, report, rows_of, write_mechanism

from sottovoce.serving import app, server
from sottovoce.serving.app import Settings
from sottovoce.serving.batches import Served, read_served

MOST = 4
LIMIT = 1.0
GET = b"GET /v1/mechanism HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@contextmanager
def served(tmp_path: Path) -> Iterator[tuple[Running, Callable[[], int], str]]:
    """A server in a thread, how many connections it has, and the digest of its mechanism."""
    found = replace(read_served(write_mechanism(tmp_path)), content=bytes(1 << 24))
    with serving(Settings(store=tmp_path / "r.db"), found) as (running, port):
        yield Running(None, port), lambda: len(running.server_state.connections), found.digests["all"]  # type: ignore[arg-type]


@contextmanager
def serving(settings: Settings, found: Served) -> Iterator[tuple[server.Server, int]]:
    """A server in a thread, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = server.server_of(settings, [found])
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: running.started)
            yield running, listener.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join()


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not reached():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


@contextmanager
def held(port: int, beginning: bytes, piece: bytes) -> Iterator[None]:
    """Connections of which each sends the beginning, then the piece for ever, and nothing is read."""
    over = threading.Event()

    def trickle() -> None:
        while not over.wait(0.02):
            for one in sockets:
                with suppress(OSError):  # those that were ended
                    one.send(piece)

    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST)]
    thread = threading.Thread(target=trickle)
    try:
        for one in sockets:
            one.sendall(beginning)
        thread.start()
        yield
    finally:
        over.set()
        thread.join()
        for one in sockets:
            one.close()


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        pytest.param(b"", b"", id="silent"),
        pytest.param(GET, b"", id="half a head"),
        pytest.param(GET + b"x: ", b"x", id="a head byte by byte"),
        pytest.param(GET + b"\r\n", b"", id="silent after an answer"),
        pytest.param(GET + b"\r\n" + GET + b"x: ", b"x", id="a second head byte by byte"),
        pytest.param(GET + b"content-length: 99999\r\n\r\n", b"x", id="a body that nobody asked for"),
        pytest.param(POST + b"content-length: 99999\r\n\r\n", b"x", id="a batch byte by byte"),
        pytest.param(GET + b"\r\n", b"", id="reads no answer"),
    ],
)
def test_a_connection_that_keeps_the_collector_waiting_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: bytes, piece: bytes
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", MOST + 1)  # one more is not let in
    monkeypatch.setattr(app, "SECONDS_FOR_A_BODY", LIMIT)
    monkeypatch.setattr(server, "SECONDS_FOR_A_HEAD", LIMIT)
    monkeypatch.setattr(server, "LEAST_TAKEN", 1e9)
    with served(tmp_path) as (running, connected, digest):
        begun = time.monotonic()
        with held(running.port, beginning, piece):
            until(lambda: connected() >= MOST or time.monotonic() - begun > LIMIT)
            status = running.post([report(digest)])[0]
            assert status == 503 or time.monotonic() - begun > LIMIT
            until(lambda: connected() == 0)
            monkeypatch.undo()  # an honest sender has its time, however slow the machine is
            assert running.post([report(digest)])[0] == 202
        assert len(rows_of(tmp_path / "r.db")) == 1 + (status == 202)


def test_of_an_answer_that_is_not_read_two_pieces_are_kept(tmp_path: Path) -> None:
    """The rest of 16 MiB stays in the one copy of the file, however many connections wait for it."""
    found = replace(read_served(write_mechanism(tmp_path)), content=bytes(1 << 24))
    settings = Settings(store=tmp_path / "r.db")
    with serving(settings, found) as (running, port), held(port, GET + b"\r\n", b""):

        def waiting() -> list[Any]:
            connections: list[Any] = list(running.server_state.connections)
            return [one for one in connections if one.flow and one.flow.write_paused]

        until(lambda: len(waiting()) == MOST)
        kept = [one.transport.get_write_buffer_size() for one in waiting()]
        assert len(kept) == MOST
        assert max(kept) <= 2 * app.PIECE


@dataclass
class Clock:
    """What a connection asks of its event loop: the time, and to be ended later."""

    now: float = 0.0
    timers: list[tuple[float, SimpleNamespace]] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, *_: object) -> Any:
        timer = SimpleNamespace(cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.timers.append((self.now + seconds, timer))
        return timer

    def pass_by(self, seconds: float) -> bool:
        """Whether the connection is still there after so many seconds."""
        self.now += seconds
        return all(timer.cancelled or self.now < end for end, timer in self.timers)


def taken(tmp_path: Path, rate: float, size: int) -> int:
    """How many bytes of an answer a reader gets at a steady rate, in bytes per second, before it is ended."""
    collector = server.server_of(Settings(store=tmp_path / "r.db"), [read_served(write_mechanism(tmp_path))])
    collector.config.load()
    clock, unsent = Clock(), [0]
    transport: Any = SimpleNamespace(
        get_write_buffer_size=lambda: unsent[0],
        set_write_buffer_limits=lambda **_: None,
        get_extra_info=lambda _: None,
        abort=lambda: None,
    )
    connection: Any = server.Connection(collector.config, collector.server_state, {}, clock)  # type: ignore[arg-type]
    connection.connection_made(transport)
    connection.cycle = SimpleNamespace(response_complete=False)
    high, low, got = 2 * app.PIECE, app.PIECE // 4, 0
    connection._watch()
    while got < size:
        unsent[0] = high
        connection.pause_writing()
        if not clock.pass_by((high - low) / rate):
            return got
        unsent[0] = low
        got += high - low
        connection.resume_writing()
    return got


def test_an_answer_has_one_time_limit_however_many_pieces_it_has(tmp_path: Path) -> None:
    """Twenty seconds of delay for the whole answer, and not for each of its pieces."""
    size = 1 << 26
    assert taken(tmp_path, 3 * server.LEAST_TAKEN, size) >= size
    slow = taken(tmp_path, server.LEAST_TAKEN / 4, size)
    # At a rate r an answer falls behind by 1/r − 1/LEAST_TAKEN seconds a byte, and may fall behind by 20.
    assert slow / server.LEAST_TAKEN * (4 - 1) <= server.SECONDS_FOR_A_HEAD
