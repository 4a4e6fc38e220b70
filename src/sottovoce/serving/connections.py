"""How long a connection may keep the collector waiting: for a whole request head, or to take an answer.

uvicorn bounds neither, so that a thousand silent connections would keep everybody else out for as long as
they like. A body has a limit of its own, where it is read.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_A_HEAD = 20.0
LEAST_TAKEN = 10_000
"""Bytes per second at which an answer that waits must be taken."""


class Connection(H11Protocol):
    """A connection that is ended if it is the other side's turn for too long, however many bytes trickle."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A head is awaited."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A head may be whole."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next head is awaited, unless it is there already."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """An answer is not taken."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """It was taken."""
        super().resume_writing()
        self._watch()

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
