"""A deterministic source in place of the operating system's, for tests only.

It replaces the reader inside `sottovoce.core.randomness`; nothing in the library leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sottovoce.core import randomness


@contextmanager
def tape(words: list[int], bits: int) -> Iterator[list[int]]:
    """Feed these words (each below 2^bits), in order, and list the sizes of the reads."""
    data = np.array([word << (64 - bits) for word in words], dtype="<u8").tobytes()
    reads: list[int] = []
    at = 0

    def read(size: int) -> bytes:
        nonlocal at
        reads.append(size)
        at += size
        return data[at - size : at]

    before = randomness._read
    randomness._read = read
    try:
        yield reads
    finally:
        randomness._read = before
