"""Counters of a collector as Prometheus reads them; no label names a sender or a category."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
"""The upper ends of the buckets of times."""


class Metrics:
    """What a process has answered since its start; the event loop's thread alone counts."""

    def __init__(self) -> None:
        self._start = time.time()
        self._batches: Counter[int] = Counter()
        self._reports = Counter(new=0, repeated=0)
        self._within: Counter[float] = Counter()
        self._bytes = 0
        self._seconds = 0.0

    def answered(self, status: int, seconds: float) -> None:
        """Count a batch by its answer."""
        self._batches[status] += 1
        self._seconds += seconds
        self._within.update(end for end in SECONDS if seconds <= end)

    def received(self, size: int) -> None:
        """Count the bytes of a body."""
        self._bytes += size

    def stored(self, new: int, reports: int) -> None:
        """Count the reports of a batch that is on the disk."""
        self._reports.update(new=new, repeated=reports - new)

    def text(self, stored: Mapping[str, int], store_bytes: int) -> str:
        """All counters, and what the store holds by mechanism file."""
        batches = self._batches.total()
        times: dict[str, float] = {f'_bucket{{le="{end}"}}': self._within[end] for end in SECONDS}
        times |= {'_bucket{le="+Inf"}': batches, "_sum": self._seconds, "_count": batches}
        families: list[tuple[str, str, str, Mapping[str, float]]] = [
            ("reports_total", "counter", "Reports of accepted batches.",
             {f'{{result="{result}"}}': count for result, count in self._reports.items()}),
            ("batches_total", "counter", "Batches by the HTTP status of their answer.",
             {f'{{status="{status}"}}': count for status, count in sorted(self._batches.items())}),
            ("batch_bytes_total", "counter", "Bytes of the bodies of batches.", {"": self._bytes}),
            ("batch_seconds", "histogram", "Time from the head of a batch to its answer.", times),
            ("stored_reports", "gauge", "Reports in the store, by mechanism file.",
             {f'{{mechanism="{digest[:12]}"}}': count for digest, count in stored.items()}),
            ("store_bytes", "gauge", "Size of the store and its log.", {"": store_bytes}),
            ("start_time_seconds", "gauge", "Unix time at which the process began.", {"": self._start}),
        ]  # fmt: skip
        lines = []
        for name, kind, what, values in families:
            lines += [f"# HELP sottovoce_{name} {what}", f"# TYPE sottovoce_{name} {kind}"]
            lines += [f"sottovoce_{name}{label} {value!r}" for label, value in values.items()]
        return "\n".join([*lines, ""])
