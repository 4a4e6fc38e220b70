"""Standard input and pipes as tables: copied into a private file, because a file is read more than once.

The copy lies in a folder that only its owner can open, and is removed as soon as it was read, whatever
happens; only a process that is killed outright leaves it behind, in the folder for temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import SottovoceError, TableError
from .workbook import kind_by_content

MOST = 4 << 30
"""Bytes that are copied; a larger table should be a file."""
_STEP = 1 << 20
_STANDARD = ("-", "/dev/stdin")


@contextlib.contextmanager
def at_hand(path: str | Path) -> Iterator[Path]:
    """The path of a file; for `-`, /dev/stdin and other pipes that of a copy, which is removed afterwards."""
    given = Path(path)
    standard = str(given) in _STANDARD
    if not standard and not _is_pipe(given):
        yield given
        return
    name = "standard input" if standard else str(given)
    if standard and getattr(sys.stdin, "buffer", None) is None:
        raise TableError(f"{name} is closed: name a file, or pipe a table into it")
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:  # for its owner alone: mode 0700
        copy = Path(folder) / "table"
        with contextlib.nullcontext(sys.stdin.buffer) if standard else given.open("rb") as source:
            _copy(source, copy, name)
        named = copy.with_name(f"table{_kind(copy)}")
        copy.rename(named)
        try:
            yield named
        except SottovoceError as problem:
            problem.args = (str(problem).replace(str(named), name),)
            raise


def _is_pipe(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISFIFO(path.stat().st_mode)
    return False


def _copy(source: BinaryIO, copy: Path, name: str) -> None:
    """Copy all bytes, up to a limit; nothing is an error, because a pipe can be read only once."""
    if source.isatty():
        raise TableError(f"{name} is the keyboard: pipe a table into it, as in  cat table.csv | sottovoce …")
    total = 0
    with open(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        while piece := source.read(_STEP):
            total += len(piece)
            if total > MOST:
                raise TableError(f"{name} is longer than {MOST >> 30} GiB: save it as a file first")
            file.write(piece)
    if not total:
        raise TableError(f"{name} is empty (a pipe can be read for one table only)")


def _kind(path: Path) -> str:
    """The extension that fits the content: by its first bytes, because a pipe has no name."""
    with path.open("rb") as file:
        beginning = file.read(_STEP)
    if beginning[:4] == b"PAR1":
        return ".parquet"
    if beginning[:2] == b"\x1f\x8b":
        return ".csv.gz"
    workbook = kind_by_content(beginning)
    if workbook is not None:
        return workbook
    text = beginning.lstrip()
    if text[:1] == b"[":
        return ".json"
    if text[:1] != b"{":
        return ".csv"
    first, newline, more = text.partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return ".json"
    return ".jsonl" if newline and more.strip() else ".json"
