"""The only door for randomness: whole numbers from the operating system.

Nothing is buffered, so nothing can be copied by fork and used twice; nothing can be seeded. A short read or
an error of the system releases nothing. Tests replace `_read` to feed a tape; no argument of any function
of the library reaches it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import RandomnessError

WORD = 8
"""Bytes drawn for one whole number, whatever is done with it."""

_read: Callable[[int], bytes] = os.urandom


def words(count: int, bits: int) -> list[int]:
    """`count` independent uniform integers below 2^bits, bits ≤ 62."""
    data = _bytes(count * WORD)
    drop = 8 * WORD - bits
    return [int.from_bytes(data[i : i + WORD], "little") >> drop for i in range(0, len(data), WORD)]


def word_arrays(arrays: int, count: int, bits: int) -> list[npt.NDArray[np.int64]]:
    """`arrays` arrays of `count` such integers each."""
    data = np.frombuffer(_bytes(arrays * count * WORD), dtype="<u8")
    whole = data >> np.uint64(8 * WORD - bits)  # below 2^62, so the sign bit is free
    return list(whole.astype("=u8", copy=False).view(np.int64).reshape(arrays, count))


def _bytes(size: int) -> bytes:
    """Exactly `size` bytes, or an error."""
    try:
        data = _read(size)
    except (OSError, NotImplementedError):
        raise RandomnessError("the operating system gave no randomness; nothing was released") from None
    if len(data) != size:
        raise RandomnessError("the operating system gave too little randomness; nothing was released")
    return data
