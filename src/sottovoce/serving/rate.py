"""How fast reports may come: one bucket for everybody, because no address is kept to tell senders apart."""

from __future__ import annotations

import time
from collections.abc import Callable

REPORT_BYTES = 150
"""Bytes of a short report. A body that is refused costs as much as reports of its size would."""
SECONDS = 2.0
"""How much of the rate a quiet time saves up."""


class Bucket:
    """Reports per second of this process. A batch may overdraw it, and whoever comes next waits for that."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._level = rate * SECONDS
        self._seen = clock()

    def wait(self) -> float:
        """Seconds until a batch is taken again; zero if one is taken now."""
        now = self._clock()
        self._level = min(self._rate * SECONDS, self._level + (now - self._seen) * self._rate)
        self._seen = now
        return 0.0 if self._level > 0 else -self._level / self._rate + 1 / self._rate

    def take(self, reports: int) -> None:
        """Pay for a batch."""
        self._level -= reports


def cost_of_refused(size: int) -> int:
    """What a body that held no batch costs, in reports."""
    return 1 + size // REPORT_BYTES
