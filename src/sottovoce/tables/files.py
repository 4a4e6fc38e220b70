"""Table files: what describes one, which may be read, and results that are written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from .. import checks
from ..atomic import inf_to_null, real_path, write_whole, written_whole
from ..errors import ParameterError, Setting, SottovoceError, TableError
from ..temporary import private_file, private_folder
from . import workbook

TEXTS = (".csv", ".tsv")
JSONS = (".json", ".jsonl", ".ndjson")
KINDS = (*TEXTS, ".parquet", *JSONS)
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
LARGEST_JSON = 256 << 20
"""Bytes that a prior file may have, unpacked."""
LONGEST_PIPE = 4 << 30
"""Bytes of standard input that are copied; a larger table should be a file."""
_STEP = 1 << 20
_STANDARD = ("-", "/dev/stdin")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a table file is written, for the functions that take a path; None means that it is detected.

    Parameters
        separator: between the fields of a text table: one character, or comma, semicolon, tab, pipe.
        encoding: of a text table: utf-8, utf-16, latin-1, or cp1252, which Windows writes in Western Europe.
        missing: what to do with rows without a user, item or group: "error" or "drop".
        decimal: the mark in amounts that are written as text: "point" or "comma". Without it there are
            points; in a file with semicolons, where a comma is as likely, a mark is refused.
        sheet: of a workbook: its name, or its number from 1; without it the first one that is neither hidden
            nor empty.

    >>> Dialect(separator="semicolon", decimal="comma").separator
    ';'
    """

    separator: str | None = None
    encoding: str | None = None
    missing: str = "error"
    decimal: str | None = None
    sheet: str | int | None = None

    def __post_init__(self) -> None:
        checks.one_of(("error", "drop"), missing=self.missing)
        if self.decimal is not None:
            checks.one_of(("point", "comma"), decimal=self.decimal)
        if self.encoding is not None:
            checks.one_of(ENCODINGS, encoding=self.encoding)
        named = bool(self.sheet) if isinstance(self.sheet, str) else type(self.sheet) is int
        if self.sheet is not None and not named:
            raise ParameterError(Setting("sheet"), " must be the name of a sheet, or its number from 1")
        if self.separator is not None:
            character = SEPARATORS.get(self.separator.lower(), self.separator)
            if len(character) != 1 or character in '"\r\n' or not character.isascii():
                raise ParameterError(
                    Setting("separator"), f" must be one character, or one of {', '.join(SEPARATORS)}"
                )
            object.__setattr__(self, "separator", character)


DETECTED = Dialect()


# --- reading ------------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """The extension that decides how a file is read, .gz and .zst put aside; train.gz is taken for a CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    plain = [suffix for suffix in suffixes if suffix not in (".gz", ".zst")]
    return plain[-1] if plain else ".csv" if suffixes else ""


def checked(path: Path) -> Path:
    """Return the path of a table file; refuse what cannot be one, before anything is read."""
    kind, kinds = kind_of(path), (*KINDS, *workbook.KINDS)
    if not path.is_file():
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        raise TableError(f"{path} cannot be read: {reason}")
    if kind not in kinds:
        known = ", ".join(kinds)
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if kind in workbook.KINDS and find_spec("fastexcel") is None:
        raise TableError(f"{path} is a workbook, which needs fastexcel: {workbook.INSTALL}")
    beginning = _beginning(path)
    if not beginning:
        raise TableError(f"{path} is empty")
    actual = workbook.kind_by_content(beginning) if kind in TEXTS else None
    if actual is not None:
        raise TableError(f"{path} cannot be read as text: it is a workbook or an archive; name it {actual}")
    return path


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_STEP)


def compression_of(path: Path) -> str:
    """gzip, zstd or none, by the first bytes of a file and not by its name."""
    marks = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
    beginning = _beginning(path)
    return next((kind for mark, kind in marks.items() if beginning.startswith(mark)), "none")


def document_of(path: Path) -> str:
    """Which of our own files this is, prior or mechanism, by its beginning; else an empty text."""
    with path.open("rb") as file:
        made = re.match(rb'\s*{\s*"format"\s*:\s*"sottovoce-(prior|mechanism)', file.read(100))
    return made[1].decode() if made else ""


def unpacked(path: Path, most: int | None = None) -> Iterator[bytes]:
    """The unpacked bytes of a file piece by piece; gzip that is damaged, or a bomb, is refused."""
    # DuckDB reads what it can of a damaged file, and what is counted comes into this process.
    allowed, total = most or max(workbook.LEAST, workbook.RATIO * path.stat().st_size), 0
    try:
        with gzip.open(path) if compression_of(path) == "gzip" else path.open("rb") as file:
            while total <= allowed and (piece := file.read(_STEP)):
                total += len(piece)
                yield piece
    except (OSError, EOFError, zlib.error):
        total = -1
    if total < 0:
        raise TableError(f"{path} cannot be read as {kind_of(path)[1:]}: it is cut off or damaged")
    if total > allowed:
        raise TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")


@contextmanager
def prefix_errors(table: Any) -> Iterator[None]:
    """Put a file's name before a message that does not have it: with two files one must know which."""
    try:
        yield
    except SottovoceError as problem:
        if isinstance(table, Path) and str(table) not in str(problem):
            problem.args = (f"{table}: ", *problem.args)
        raise  # the same error: a new one would keep the old as its context


# --- standard input -------------------------------------------------------------------------------------


@contextmanager
def at_hand(table: Any) -> Iterator[Any]:
    """A frame, or the path of a file: for `-`, /dev/stdin and other pipes that of a copy."""
    given = Path(table) if isinstance(table, str | Path) else None
    standard = str(given) in _STANDARD
    if given is None or not (standard or given.is_fifo()):
        yield given or table
        return
    name = "standard input" if standard else str(given)
    if standard and getattr(sys.stdin, "buffer", None) is None:
        raise TableError(f"{name} is closed: name a file, or pipe a table into it")
    with private_folder() as folder:
        copy = Path(folder) / "table"
        with contextlib.nullcontext(sys.stdin.buffer) if standard else given.open("rb") as source:
            _copy(source, copy, name)
        named = copy.with_name(f"table{_kind_by_content(copy)}")
        copy.rename(named)
        try:
            yield named
        except SottovoceError as problem:
            problem.args = tuple(
                part.replace(str(named), name) if isinstance(part, str) else part for part in problem.args
            )
            raise


def _copy(source: BinaryIO, copy: Path, name: str) -> None:
    """Copy all bytes, up to a limit; nothing is an error, because a pipe can be read only once."""
    if source.isatty():
        raise TableError(f"{name} is the keyboard: pipe a table into it, as in  cat table.csv | sottovoce …")
    total = 0
    with open(copy, "xb", opener=private_file) as file:
        while piece := source.read(_STEP):
            total += len(piece)
            if total > LONGEST_PIPE:
                raise TableError(f"{name} is longer than {LONGEST_PIPE >> 30} GiB: save it as a file first")
            file.write(piece)
    if not total:
        raise TableError(f"{name} is empty (a pipe can be read for one table only)")


def _kind_by_content(path: Path) -> str:
    """The extension that fits the first bytes, because a pipe has no name."""
    beginning = _beginning(path)
    if beginning[:4] == b"PAR1":
        return ".parquet"
    if compression_of(path) != "none":
        return ".csv.gz"
    if beginning.lstrip()[:1] in (b"[", b"{"):
        return ".json"
    return workbook.kind_by_content(beginning) or ".csv"


# --- writing --------------------------------------------------------------------------------------------


def is_standard(path: Path | None) -> bool:
    """Whether an output is standard output, which gets CSV."""
    return str(path) in ("-", "/dev/stdout")


WRITTEN = (".csv", ".parquet", ".json")


def check_writable(path: Path, *inputs: Path, kinds: Sequence[str] = WRITTEN, force: bool = False) -> None:
    """Refuse an output that cannot be written, is there already, or is an input, before any work is done."""
    if is_standard(path) and kinds == WRITTEN:
        if sys.stdout is None:
            raise TableError("standard output is closed: name a file to write to")
        return
    if path.suffix.lower() not in kinds:
        known = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        raise TableError(f"{path} cannot be written: its name must end in {known}")
    if not path.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise TableError(f"{path} cannot be written: it is a folder")
    if real_path(path) in map(real_path, inputs):
        raise TableError(Setting("output"), f" must not be one of the inputs: {path} would be lost")
    if not force and os.path.lexists(path):
        raise TableError(
            f"{path} is there already: choose another name, or pass ",
            Setting("force", True),
            " to replace it",
        )


def write_rows(rows: list[dict[str, Any]], path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
    """Write tidy rows as CSV, Parquet or JSON by the extension, whole or not at all."""
    from .reader import Writer, type_of

    if path.suffix.lower() == ".json":
        write_whole(json.dumps(inf_to_null(rows), indent=1) + "\n", path, mode, replace=replace)
        return
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    with Writer({name: type_of(values) for name, values in columns.items()}) as table:
        table.add(columns)
        table.save(path, mode, replace=replace)


def copy_whole(source: Path, path: Path, mode: int, *, replace: bool) -> None:
    """Copy a file to an output, whole or not at all; or to standard output, as bytes in any encoding."""
    with source.open("rb") as file:
        if not is_standard(path):
            with written_whole(path, mode, replace=replace) as target:
                shutil.copyfileobj(file, target, _STEP)
            return
        sys.stdout.flush()
        while step := memoryview(file.read(_STEP)):
            while step:  # an unbuffered stream may take a part only
                step = step[sys.stdout.buffer.write(step) or 0 :]
        sys.stdout.buffer.flush()
