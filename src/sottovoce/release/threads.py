"""Work on threads: numpy and the system's generator let the others run. There is no float in this file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")


def processors() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def side_by_side(work: Callable[[Piece], None], pieces: Iterable[Piece]) -> None:
    """Do the work on every piece; an error of any of them is raised."""
    waiting = list(pieces)
    threads = min(len(waiting), processors())
    if threads <= 1:
        for piece in waiting:
            work(piece)
        return
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for _ in pool.map(work, waiting):
            pass
