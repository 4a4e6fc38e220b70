"""Table files: how they are written, which may be read, and results that are written whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from .. import _validate
from .._atomic import inf_to_null, real_path, write_whole, written_whole
from ..errors import ParameterError, PriorError, SottovoceError, TableError
from . import workbook

TEXTS = (".csv", ".tsv")
JSONS = (".json", ".jsonl", ".ndjson")
KINDS = (*TEXTS, ".parquet", *JSONS)
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
DECIMALS = ("point", "comma")
LARGEST_JSON = 256 << 20
"""Bytes that a JSON object of counts may have, unpacked."""
LONGEST_PIPE = 4 << 30
"""Bytes of standard input that are copied; a larger table should be a file."""
_STEP = 1 << 20
_LINES = 50
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = re.compile("[\x80-\x9f]")
_STANDARD = ("-", "/dev/stdin")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a table file is written, for the functions that take a path; None means that it is detected.

    Parameters
        separator: between the fields of a text table: one character, or comma, semicolon, tab, pipe.
        encoding: of a text table: utf-8, utf-16, latin-1, or cp1252, which Windows writes in Western Europe.
        missing: what to do with rows without a user, item or group: "error" or "drop".
        decimal: the mark in amounts that are written as text: "point" or "comma"; the other one may then
            separate thousands, in groups of three. Without it there are points, and a comma is refused; so
            are points that may separate thousands, in a file with semicolons.
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
        _validate.one_of(("error", "drop"), missing=self.missing)
        if self.decimal is not None:
            _validate.one_of(DECIMALS, decimal=self.decimal)
        number = isinstance(self.sheet, int) and not isinstance(self.sheet, bool)
        if self.sheet is not None and not (self.sheet if isinstance(self.sheet, str) else number):
            raise ParameterError("sheet must be the name of a sheet, or its number from 1")
        if self.separator is not None:
            meant = SEPARATORS.get(self.separator.lower(), self.separator.replace("\\t", "\t"))
            if len(meant) != 1 or meant in '"\r\n' or not meant.isascii():
                names = ", ".join(SEPARATORS)
                raise ParameterError(f"separator must be one character, or one of {names}")
            object.__setattr__(self, "separator", meant)
        if self.encoding is not None:
            known = {codecs.lookup(name).name: name for name in ENCODINGS}
            name = ""
            with suppress(LookupError):
                name = codecs.lookup(self.encoding).name
            if name not in known:
                raise ParameterError(f"encoding must be one of {', '.join(ENCODINGS)}, got {self.encoding!r}")
            object.__setattr__(self, "encoding", known[name])


DETECTED = Dialect()
"""No options set: everything is detected."""


# --- reading ------------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """The extension that decides how a file is read, .gz and .zst put aside; train.gz is taken for a CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    plain = [suffix for suffix in suffixes if suffix not in (".gz", ".zst")]
    return plain[-1] if plain else ".csv" if suffixes else ""


def checked(path: Path) -> Path:
    """Return the path of a table file; refuse what cannot be one, before anything is read."""
    if path.is_dir():
        raise TableError(f"{path} cannot be read: it is a folder")
    if not path.is_file():
        raise TableError(f"{path} cannot be read: there is no such file")
    kind = kind_of(path)
    if kind not in (*KINDS, *workbook.KINDS):
        known = ", ".join((*KINDS, *workbook.KINDS))
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if kind in workbook.KINDS and find_spec("fastexcel") is None:
        raise TableError(f"{path} is a workbook, which needs fastexcel: {workbook.INSTALL}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    if kind in TEXTS:
        with path.open("rb") as file:
            actual = workbook.kind_by_content(file.read(200))
        if actual is not None:
            raise TableError(
                f"{path} cannot be read as text: it is a workbook or an archive; name it {actual}"
            )
    return path


def compression_of(path: Path) -> str:
    """gzip, zstd or none, by the first bytes of a file and not by its name."""
    with path.open("rb") as file:
        beginning = file.read(4)
    return "gzip" if beginning[:2] == b"\x1f\x8b" else "zstd" if beginning == b"\x28\xb5\x2f\xfd" else "none"


def check_gzip(path: Path) -> None:
    """Refuse gzip that is cut off, damaged or followed by something: DuckDB reads what it can of it.

    A small file that unpacks to very much is refused as well: what is counted comes into this process.
    """
    allowed, total = max(workbook.LEAST, workbook.RATIO * path.stat().st_size), 0
    try:
        with gzip.open(path) as file:
            while total <= allowed and (piece := file.read(_STEP)):
                total += len(piece)
    except (OSError, EOFError, zlib.error):
        total = -1
    if total < 0:
        raise TableError(f"{path} cannot be read as {kind_of(path)[1:]}: it is cut off or damaged")
    if total > allowed:
        raise TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")


def encoding_of(path: Path, dialect: Dialect) -> str:
    """The encoding that was set, else UTF-16 where the file begins with its mark, else UTF-8."""
    if dialect.encoding is not None:
        return dialect.encoding
    with suppress(OSError, EOFError, zlib.error), _unpacked(path) as file:
        return "utf-16" if file.read(2) in _UTF_16 else "utf-8"
    return "utf-8"


def as_utf_8(path: Path, encoding: str, folder: Path) -> Path:
    """The path of a copy of a text file in UTF-8, which DuckDB reads."""
    copy = folder / f"text{kind_of(path)}"
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with _unpacked(path) as source, copy.open("w", encoding="utf-8", newline="") as target:
            while piece := source.read(_STEP):
                text = decoder.decode(piece)
                if encoding == "latin-1" and _CONTROLS.search(text):
                    raise TableError(f"{path} is not Latin-1, but likely of Windows: set the encoding cp1252")
                target.write(text)
            target.write(decoder.decode(b"", final=True))
    except (UnicodeDecodeError, OSError, EOFError, zlib.error):
        raise TableError(f"{path} cannot be read as text in {encoding}") from None
    return copy


def separator_of(lines: Sequence[str], kind: str, dialect: Dialect) -> str:
    """The separator that was set, else one that splits the first lines into equally many fields.

    The one that the name of the file promises comes first (a comma in .csv, a tab in .tsv), and is also taken
    where none fits.
    """
    if dialect.separator is not None:
        return dialect.separator
    usual = "\t" if kind == ".tsv" else ","
    for separator in (usual, *SEPARATORS.values()):
        widths = _widths(lines, separator)
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            return separator
    return usual


def header_of(lines: Sequence[str], separator: str) -> list[str]:
    """The first record of a text table: the names of its columns, as they are written there."""
    with suppress(csv.Error, StopIteration):
        return next(csv.reader((f"{line}\n" for line in lines), delimiter=separator))
    return []


def _widths(lines: Sequence[str], separator: str) -> list[int]:
    """How many fields each of the first records has, empty lines aside."""
    widths: list[int] = []
    with suppress(csv.Error):
        for record in csv.reader((f"{line}\n" for line in lines), delimiter=separator):
            if record:
                widths.append(len(record))
            if len(widths) == _LINES:
                break
    return widths


def _unpacked(path: Path) -> Any:
    """A file, unpacked if it is gzip, open for reading bytes."""
    return gzip.open(path) if compression_of(path) == "gzip" else path.open("rb")


@contextmanager
def prefix_errors(path: Path) -> Iterator[None]:
    """Put the file's name before a message that does not have it: with two files one must know which."""
    try:
        yield
    except SottovoceError as problem:
        text = str(problem)
        problem.args = (text if str(path) in text else f"{path}: {text}",)
        raise  # the same error: a new one would keep the old as its context


def read_json(path: Path) -> Any:
    """The content of a JSON file, also gzip; an object that names a key twice is refused."""
    try:
        with _unpacked(path) as file:
            data = file.read(LARGEST_JSON + 1)
        if len(data) > LARGEST_JSON:
            raise TableError(f"{path} unpacks to more than {LARGEST_JSON >> 20} MiB: refused")
        return json.loads(data.decode("utf-8") or "null", object_pairs_hook=_distinct)
    except (PriorError, TableError):
        raise
    except (ValueError, OSError, EOFError, zlib.error, RecursionError) as problem:
        reason = type(problem).__name__  # the error itself holds the whole document
    raise TableError(f"{path} cannot be read as json: {reason}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that names a category twice is refused: one of its two amounts would be lost."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise PriorError(f"categories must be distinct: {name!r} appears more than once")
        seen.add(name)
    return dict(pairs)


# --- standard input -------------------------------------------------------------------------------------


@contextmanager
def at_hand(path: str | Path) -> Iterator[Path]:
    """The path of a file; for `-`, /dev/stdin and other pipes that of a copy, which is removed afterwards.

    The copy lies in a folder that only its owner can open; a process that is killed outright leaves it there.
    """
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
        named = copy.with_name(f"table{_kind_by_content(copy)}")
        copy.rename(named)
        try:
            yield named
        except SottovoceError as problem:
            problem.args = (str(problem).replace(str(named), name),)
            raise


def _is_pipe(path: Path) -> bool:
    with suppress(OSError, ValueError):
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
            if total > LONGEST_PIPE:
                raise TableError(f"{name} is longer than {LONGEST_PIPE >> 30} GiB: save it as a file first")
            file.write(piece)
    if not total:
        raise TableError(f"{name} is empty (a pipe can be read for one table only)")


def _kind_by_content(path: Path) -> str:
    """The extension that fits the first bytes, because a pipe has no name."""
    with path.open("rb") as file:
        beginning = file.read(_STEP)
    if beginning[:4] == b"PAR1":
        return ".parquet"
    if compression_of(path) != "none":
        return ".csv.gz"
    book = workbook.kind_by_content(beginning)
    if book is not None:
        return book
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


# --- writing --------------------------------------------------------------------------------------------


def is_standard(path: Path | None) -> bool:
    """Whether an output is standard output, which gets CSV."""
    return str(path) in ("-", "/dev/stdout")


def check_writable(path: Path, *inputs: Path, force: bool = False) -> None:
    """Refuse an output that cannot be written, is there already, or is an input, before any work is done."""
    if is_standard(path):
        if sys.stdout is None:
            raise TableError("standard output is closed: name a file to write to")
        return
    if path.suffix.lower() not in (".csv", ".parquet", ".json"):
        raise TableError(f"{path} cannot be written: its name must end in .csv, .parquet or .json")
    if not path.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise TableError(f"{path} cannot be written: it is a folder")
    if real_path(path) in map(real_path, inputs):
        raise TableError(f"--output must not be one of the inputs: {path} would be lost")
    if not force and os.path.lexists(path):
        raise TableError(f"{path} is there already: choose another name, or pass --force to replace it")


def write_rows(rows: list[dict[str, Any]], path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
    """Write tidy rows as CSV, Parquet or JSON by the extension, whole or not at all."""
    from .query import Writer

    if path.suffix.lower() == ".json":
        write_whole(json.dumps(inf_to_null(rows), indent=1) + "\n", path, mode, replace=replace)
        return
    with Writer(list(rows[0])) as table:
        table.add({name: [row[name] for row in rows] for name in rows[0]})
        table.save(path, mode, replace=replace)


def copy_whole(source: Path, path: Path, mode: int, *, replace: bool) -> None:
    """Copy a file to an output, whole or not at all; or to standard output.

    As bytes: whatever the terminal's encoding is, names stay intact.
    """
    with source.open("rb") as file:
        if not is_standard(path):
            with written_whole(path, mode, replace=replace) as target:
                shutil.copyfileobj(file, target, _STEP)
            return
        sys.stdout.flush()
        if not hasattr(sys.stdout, "buffer"):
            sys.stdout.write(file.read().decode())
            return
        while step := memoryview(file.read(_STEP)):
            while step:  # an unbuffered stream may take a part only
                step = step[sys.stdout.buffer.write(step) or 0 :]
        sys.stdout.buffer.flush()
