"""Writing files whole or not at all, and values as JSON can hold them."""

from __future__ import annotations

import errno
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


def inf_to_null(value: Any) -> Any:
    """A plain value with None in the place of infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: inf_to_null(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [inf_to_null(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def real_path(path: str | Path) -> Path:
    """The path without links and relative to nothing; a loop of links is left for opening to refuse."""
    return Path(os.path.realpath(path))


def write_whole(
    content: str | bytes | memoryview, path: Path, mode: int = 0o666, *, replace: bool = True
) -> None:
    """Write to a neighbour, flush it to the disk, then rename: the file is there whole or not at all.

    `mode` is what the file may be at most: the user's umask applies to a new file, and a file that is
    replaced never gets wider permissions than it had. A link is followed. With `replace` off, a file that is
    there already raises FileExistsError and stays as it is.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with written_whole(path, mode, replace=replace) as file:
        file.write(data)


@contextmanager
def written_whole(path: Path, mode: int = 0o666, *, replace: bool = True) -> Iterator[BinaryIO]:
    """A file to write to that takes its place when the block ends, and leaves nothing if it fails."""
    path = real_path(path)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    with suppress(FileNotFoundError):
        mode &= path.stat().st_mode
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(beside, path)
        else:
            _rename_to_new(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def _rename_to_new(beside: Path, path: Path) -> None:
    """Give a file a name that must be free; a second writer of the same moment finds it taken."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: look, then rename
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(beside, path)
        return
    beside.unlink()


def flush_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that a new or renamed entry survives a power cut."""
    if os.name == "nt":  # Windows cannot open a folder, and flushes its entries by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
