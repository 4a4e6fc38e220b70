"""Signals that end a command, kept back while a step must not be cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interruptions:
    """Inside, Ctrl-C, a request to end and a closed terminal raise KeyboardInterrupt, or wait their turn."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._held = False
        self._pending = False
        self.number = int(signal.SIGINT)

    def __enter__(self) -> Interruptions:
        if threading.current_thread() is threading.main_thread():  # no other thread may set a handler
            for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                    self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        if self._held:
            self._pending = True
        else:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From here on nothing interrupts: the end has begun."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)
        self._before = {}

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let a step end before an interruption counts; what it has done can then be told truly."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt
