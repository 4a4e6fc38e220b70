"""Files that may be gzip, unpacked within limits: a small file must not fill the memory."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from ..errors import TableError

LEAST = 256 << 20
"""Bytes that any file may unpack to."""
RATIO = 200
"""Times its size that a larger file may unpack to; text packs about tenfold."""
CHECKED = 64 << 20
"""Packed bytes that `check_unpacked` looks at."""
_STEP = 1 << 18
_GZIP = 31  # zlib's number for: with gzip's header and checksum


def is_gzip(path: Path) -> bool:
    """Whether a file is gzip, by its first bytes and not by its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def content(path: Path) -> bytes:
    """A whole file, unpacked if it is gzip; refused, before the memory is used, if that is too much."""
    if not is_gzip(path):
        return path.read_bytes()
    allowed, kept = _allowed(path), bytearray()
    with path.open("rb") as file:
        for piece in _pieces(file, path):
            kept += piece
            _refuse_beyond(allowed, len(kept), path)
    return bytes(kept)


def check_unpacked(path: Path) -> None:
    """Refuse a gzip file whose beginning unpacks to more than is allowed; a plain file passes."""
    facts = os.stat(path)
    _checked(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=8)
def _checked(path: Path, size: int, _changed: int) -> None:
    """`check_unpacked`, once for each state of a file."""
    if size * 1032 < LEAST or not is_gzip(path):  # deflate cannot pack more tightly than that
        return
    allowed, total = _allowed(path), 0
    with path.open("rb") as file:
        for piece in _pieces(file, path, CHECKED):
            total += len(piece)
            _refuse_beyond(allowed, total, path)


def _allowed(path: Path) -> int:
    return max(LEAST, RATIO * path.stat().st_size)


def _refuse_beyond(allowed: int, total: int, path: Path) -> None:
    if total > allowed:
        raise TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")


def _pieces(file: BinaryIO, path: Path, most: int | None = None) -> Iterator[bytes]:
    """The unpacked bytes of one or several gzip members, in small pieces, from so many packed ones."""
    unpacker, begun, taken = zlib.decompressobj(_GZIP), False, 0
    while most is None or taken < most:
        packed = file.read(_STEP)
        taken += len(packed)
        if not packed:
            if begun:
                raise broken(path)
            return
        while packed:
            begun = True
            piece = None
            with contextlib.suppress(zlib.error):
                piece = unpacker.decompress(packed, _STEP)
            if piece is None:
                raise broken(path)
            yield piece
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed, unpacker, begun = unpacker.unused_data, zlib.decompressobj(_GZIP), False


def broken(path: Path) -> TableError:
    """The error for gzip that ends early or goes on with something else."""
    return TableError(f"{path} cannot be read as gzip: it is cut off or damaged")
