"""The processes of a collector: one, or several that share one socket and one store, and a clean end.

uvicorn serves; this file starts it, starts it again where a worker process was killed, and ends it. Nothing
is logged per request: a log would hold addresses and times, which the store was made not to hold. uvicorn
bounds neither how long a request head takes nor how slowly an answer is read, so that a thousand silent
connections would keep everybody else out: `Connection` does. A body has a limit of its own, in `app`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import SottovoceError
from .app import Settings, make_app
from .batches import Served, parse_served

PATIENCE = 3.0
"""Seconds that running requests are given at the end."""
MOST_CONNECTIONS = 1000
"""Of one process; more are answered 503."""
SECONDS_FOR_A_HEAD = 20.0
LEAST_TAKEN = 10_000
"""Bytes per second at which an answer that waits must be taken."""
LEAST_LIFE = 2.0
"""Seconds; a worker process that lives shorter is not started again."""

_TERMINAL = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
"""What a terminal sends to all of its processes at once."""


class Connection(H11Protocol):
    """A connection that is ended if it is the other side's turn for too long, however many bytes trickle."""

    _end: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """Let the time run while a head is awaited or an answer is not taken, and only then."""
        if self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused:
            self._stop()
        elif self._end is None:
            seconds = SECONDS_FOR_A_HEAD + self.transport.get_write_buffer_size() / LEAST_TAKEN
            self._end = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


def _then_watch(name: str) -> Callable[..., None]:
    """The protocol's own method, after which the time may run or stop."""
    method = getattr(H11Protocol, name)

    def watched(self: Connection, *arguments: Any) -> None:
        method(self, *arguments)
        self._watch()

    return watched


for _name in ("connection_made", "data_received", "on_response_complete", "pause_writing", "resume_writing"):
    setattr(Connection, _name, _then_watch(_name))


class _Server(uvicorn.Server):
    """A server that ends when it is told to, and leaves it to its process to say what that means."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are taken in this module, not by uvicorn, which would raise them again at its end."""
        yield


def _server(settings: Settings, served: Served) -> _Server:
    # h11 alone: one reading of a request, wherever this is installed. The access log and the messages below
    # "critical" would write addresses down.
    return _Server(
        uvicorn.Config(
            make_app(settings, served, tell),
            http=Connection,
            ws="none",
            loop="asyncio",
            lifespan="on",
            access_log=False,
            log_config=None,
            log_level="critical",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=int(PATIENCE),
        )
    )


def serve(listener: socket.socket, settings: Settings, served: Served, workers: int) -> int:
    """Collect until a signal comes; return the exit code."""
    stopped = _signals()
    if workers == 1:
        server = _server(settings, served)
        _ends_with(server, lambda: bool(stopped))
        server.run(sockets=[listener])
        return 0 if stopped else 1
    return _several(listener, settings, served.text, workers, stopped)


def _several(listener: socket.socket, settings: Settings, text: str, workers: int, stopped: list[int]) -> int:
    """Keep so many worker processes until a signal comes, then end them all."""

    def start() -> tuple[SpawnProcess, float]:
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(listener, settings, text))
        with _held_back():
            process.start()
        return process, time.monotonic()

    running = [start() for _ in range(workers)]
    failed = False
    while not stopped and not failed:
        ended = wait([process.sentinel for process, _ in running], timeout=0.2)
        for i, (process, begun) in enumerate(running):
            if process.sentinel in ended and not stopped:
                process.join()
                # One that cannot even start would not start the next time; one that was killed is replaced.
                failed |= process.exitcode == 1 and time.monotonic() - begun < LEAST_LIFE
                running[i] = (process, begun) if failed else start()
    for process, _ in running:
        process.terminate()
    end = time.monotonic() + 2 * PATIENCE
    for process, _ in running:
        process.join(max(0.1, end - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
    return 1 if failed else 0


@contextmanager
def _held_back() -> Iterator[None]:
    """A process that is started here inherits it: Ctrl-C cannot hit a worker before it looks away."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first start does it, and lets the signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(listener: socket.socket, settings: Settings, text: str) -> None:
    """A worker process: it ends when it is told to, and when the first process is gone."""
    for number in _TERMINAL:  # they reach the whole terminal; the first process decides
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINAL)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    parent = multiprocessing.parent_process()
    try:
        server = _server(settings, parse_served(text, "the mechanism file"))
    except SottovoceError as problem:
        tell(str(problem))
        sys.exit(1)
    _ends_with(server, lambda: bool(stopped) or (parent is not None and not parent.is_alive()))
    server.run(sockets=[listener])


def _ends_with(server: uvicorn.Server, over: Callable[[], bool]) -> None:
    """End the server when something is over. A thread looks, because a signal's handler must take no lock."""

    def watch() -> None:
        while not over():
            time.sleep(0.1)
        server.should_exit = True

    threading.Thread(target=watch, daemon=True).start()


def _signals() -> list[int]:
    """A list that any of the ending signals is added to; more of them change nothing."""
    caught: list[int] = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            signal.signal(number, lambda number, _: caught.append(number))
    return caught


def tell(text: str) -> None:
    """A line for the operator, which holds nothing of any request."""
    with suppress(OSError, ValueError):
        os.write(2, f"{text}\n".encode(errors="replace"))
