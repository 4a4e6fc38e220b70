"""The process of a collector: uvicorn, bounded and silent, and a clean end.

Nothing is logged per request: a log would hold addresses and times, which the store was made not to hold.
uvicorn bounds neither how long a request head takes nor how slowly an answer is read, so that a thousand
silent connections would keep everybody else out: `Connection` does. A body has a limit of its own, in `app`.
Of an answer two pieces wait in memory: one in the buffer of the connection, which then asks the application
to wait, and the one that filled it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import PIECE, Settings, make_app
from .batches import Served

MOST_CONNECTIONS = 1000
"""More are answered 503."""
SECONDS_FOR_A_HEAD = 20.0
LEAST_TAKEN = 10_000
"""Bytes per second at which an answer that waits must be taken."""


class Connection(H11Protocol):
    """A connection that is ended if it is the other side's turn for too long, however many bytes trickle.

    A head has SECONDS_FOR_A_HEAD. An answer has as much delay in all: each second in which it is not taken
    counts, and each LEAST_TAKEN bytes that are taken make up for one of them.
    """

    _end: asyncio.TimerHandle | None = None
    _turn: object = None
    _left = _since = 0.0
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the application wait as soon as one piece is not taken."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=PIECE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """Let the time run while a head is awaited or an answer is not taken, and only then."""
        if self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused:
            self._stop()
        elif self._end is None:
            turn = self.cycle, self.cycle is not None and self.cycle.response_complete
            if turn != self._turn:  # another answer, or the next head
                self._turn, self._left = turn, SECONDS_FOR_A_HEAD
            self._since, self._unsent = self.loop.time(), self.transport.get_write_buffer_size()
            seconds = self._left + self._unsent / LEAST_TAKEN
            self._end = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self) -> None:
        """Let the time stand, and take what was used of it from what is left."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            taken = self._unsent - self.transport.get_write_buffer_size()
            self._left += taken / LEAST_TAKEN - (self.loop.time() - self._since)
            self._left = min(self._left, SECONDS_FOR_A_HEAD)  # what was fast before is no credit


def _then_watch(name: str) -> Callable[..., None]:
    """The protocol's own method, after which the time may run or stop."""
    method = getattr(Connection, name)

    def watched(self: Connection, *arguments: Any) -> None:
        method(self, *arguments)
        self._watch()

    return watched


for _name in ("connection_made", "data_received", "on_response_complete", "pause_writing", "resume_writing"):
    setattr(Connection, _name, _then_watch(_name))


class Server(uvicorn.Server):
    """A server that ends at a signal, and leaves it to its process to say what that means."""

    stopped = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at the first signal; more of them change nothing, and uvicorn does not raise them again."""
        names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            main = threading.current_thread() is threading.main_thread()  # no other may set a handler
            if main and signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                signal.signal(number, self._stop)
        yield

    def _stop(self, *_: object) -> None:
        self.stopped = self.should_exit = True


def server_of(settings: Settings, files: Sequence[Served]) -> Server:
    """A server of these files, which has opened the store."""
    # h11 alone: one reading of a request, wherever this is installed. The access log and the messages below
    # "critical" would write addresses down.
    return Server(
        uvicorn.Config(
            make_app(settings, files, tell),
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
            timeout_graceful_shutdown=3,  # seconds
        )
    )


def tell(text: str) -> None:
    """A line for the operator, which holds nothing of any request."""
    with suppress(OSError, ValueError):
        os.write(2, f"{text}\n".encode(errors="replace"))
