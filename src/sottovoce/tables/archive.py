"""Zip archives, which workbooks are, checked before they are unpacked: a small file must not fill the memory.

An archive says how long each of its parts is, and may lie. So the parts are unpacked once, in small pieces
that are thrown away, and counted.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

from ..errors import TableError
from .unpack import LEAST, RATIO

_LOCAL = 30  # bytes of the head of a part, before its name
_STEP = 1 << 16
_RAW = -15  # zlib's number for: without a header
_ENCRYPTED = 1


def unpacked_size(content: bytes, path: Path) -> int:
    """The bytes that all parts of an archive unpack to; refused if they are too many, or not readable."""
    allowed = max(LEAST, RATIO * len(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error):
        raise damaged(path) from None
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise protected(path)
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise TableError(f"{path} cannot be read: it is packed in an unusual way; save it again in Excel")
    _refuse_beyond(allowed, sum(part.file_size for part in parts), path)
    total = 0
    for part in parts:
        total += _unpacked(content, part, allowed - total, path)
        _refuse_beyond(allowed, total, path)
    return total


def _unpacked(content: bytes, part: zipfile.ZipInfo, allowed: int, path: Path) -> int:
    """The bytes that one part unpacks to, counted up to a little more than is allowed."""
    head = content[part.header_offset : part.header_offset + _LOCAL]
    if len(head) < _LOCAL:
        raise damaged(path)
    name, extra = struct.unpack("<HH", head[26:])
    begin = part.header_offset + _LOCAL + name + extra
    packed = memoryview(content)[begin : begin + part.compress_size]
    if len(packed) < part.compress_size:
        raise damaged(path)
    if part.compress_type == zipfile.ZIP_STORED:
        return len(packed)
    unpacker, total = zlib.decompressobj(_RAW), 0
    for at in range(0, len(packed), _STEP):
        rest = bytes(packed[at : at + _STEP])
        while rest and not unpacker.eof and total <= allowed:
            try:
                total += len(unpacker.decompress(rest, _STEP))
            except zlib.error:
                raise damaged(path) from None
            rest = unpacker.unconsumed_tail
    if not unpacker.eof and total <= allowed:
        raise damaged(path)
    return total


def _refuse_beyond(allowed: int, total: int, path: Path) -> None:
    if total > allowed:
        raise TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")


def damaged(path: Path) -> TableError:
    """The error for an archive that is cut off, or is none."""
    return TableError(f"{path} cannot be read as {path.suffix[1:].lower()}: it is cut off or damaged")


def protected(path: Path) -> TableError:
    """The error for a workbook that needs a password."""
    return TableError(
        f"{path} cannot be read: it is protected by a password; save a copy without one (in Excel: File, "
        f"Info, Protect Workbook), and read that file"
    )
