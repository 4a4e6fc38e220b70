"""Files in and out: tables by extension, scanned and not loaded, and results written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._atomic import inf_to_null, real_path, write_whole
from ..errors import PriorError, SottovoceError, TableError
from . import workbook
from .dialect import FOUND, Dialect, encoding_of, separator_of
from .unpack import content, is_gzip

if TYPE_CHECKING:
    import polars as pl

_KINDS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
_CONTROLS = re.compile("[\x80-\x9f]")
_HINTS = {
    ".csv": "every line needs the same number of fields, in UTF-8, or say --separator or --encoding cp1252",
    ".tsv": "every line needs the same number of fields, in UTF-8, or say --separator or --encoding cp1252",
    ".json": "a list of records is expected",
}
_LONGEST_HEADER = 1 << 20
_ROWS_SENT = 1 << 17


def check_readable(path: Path) -> None:
    """Refuse what is no table file, before anybody tries to read it."""
    if path.is_dir():
        raise TableError(f"{path} cannot be read: it is a folder")
    if not path.is_file():
        raise TableError(f"{path} cannot be read: there is no such file")
    kind = kind_of(path)
    if kind not in (*_KINDS, *workbook.KINDS):
        known = ", ".join((*_KINDS, *workbook.KINDS))
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if kind in workbook.KINDS and find_spec("fastexcel") is None:
        raise TableError(f"{path} is a workbook, which needs fastexcel: {workbook.INSTALL}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")


def scan_table(path: str | Path, dialect: Dialect = FOUND) -> pl.LazyFrame:
    """A table by its extension, not yet read; CSV columns are text, names lose surrounding blanks.

    For the reader's process (see `reading`): a damaged file can end the process that calls this.
    """
    path = Path(path)
    check_readable(path)
    kind = kind_of(path)
    table = None
    try:
        table = _scanned(path, kind, dialect)
        named = table.collect_schema().names()
        header = _header(path, kind, dialect) if kind in (".csv", ".tsv") else named
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # every reader has its own errors; their text may quote data
        reason = type(problem).__name__
        table = None
    if table is None:
        raise unreadable(path, reason)
    names = [name.strip() for name in header]
    if len(set(names)) != len(names) or len(names) != len(named):
        raise TableError(f"{path} cannot be read: two of its columns have the same name")
    return table.rename(dict(zip(named, names, strict=True)))


def _scanned(path: Path, kind: str, dialect: Dialect) -> pl.LazyFrame:
    """The table as its reader finds it."""
    import polars as pl

    # Text everywhere in CSV: guessing types would turn a category "007" into 7, a device "1e10" into a float.
    # No globs: a file called m[1].csv is that file, and not m1.csv. JSON types come from all rows, not a few.
    if kind in workbook.KINDS:
        return workbook.scan_workbook(path, dialect)
    if kind in (".csv", ".tsv"):
        _refuse_workbook(path)
        separator, encoding = separator_of(path, kind, dialect), encoding_of(path, dialect)
        # polars reads UTF-8 alone; a file in another encoding is turned into it, and so read whole.
        text = path if encoding == "utf-8" else io.BytesIO(_decoded(path, encoding).encode())
        return pl.scan_csv(text, infer_schema=False, glob=False, separator=separator)
    if kind == ".parquet":
        return pl.scan_parquet(path, glob=False)
    read = pl.read_json if kind == ".json" else pl.read_ndjson
    return read(content(path), infer_schema_length=None).lazy()


def _decoded(path: Path, encoding: str) -> str:
    """The text of a file; Latin-1 takes any bytes, so what Windows writes instead of it is refused."""
    text = content(path).decode(encoding)
    if encoding == "latin-1" and _CONTROLS.search(text):
        raise TableError(f"{path} is not Latin-1, but likely of Windows: say --encoding cp1252")
    return text


def _refuse_workbook(path: Path) -> None:
    """Refuse a workbook that calls itself a text table."""
    with path.open("rb") as file:
        kind = workbook.kind_by_content(file.read(200))
    if kind is not None:
        raise TableError(f"{path} cannot be read as text: it is a workbook or an archive; name it {kind}")


def columns_of(path: Path, dialect: dict[str, Any] | None = None) -> list[str]:
    """The names of the columns of a file; for the reader's process."""
    return list(scan_table(path, Dialect(**dialect or {})).collect_schema().names())


def number_columns(path: Path, dialect: dict[str, Any]) -> list[str]:
    """The names of the columns that hold numbers, not text; for the reader's process."""
    schema = scan_table(path, Dialect(**dialect)).collect_schema()
    return [name for name, kind in schema.items() if kind.is_numeric()]


def _header(path: Path, kind: str, dialect: Dialect) -> list[str]:
    """The first record of a CSV file as it stands there; a reader renames what it finds twice."""
    opener = gzip.open if is_gzip(path) else open
    encoding = encoding_of(path, dialect)
    with opener(path, "rt", encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline="") as text:
        lines = iter(lambda: _line(text), "")
        return next(csv.reader(lines, delimiter=separator_of(path, kind, dialect)))


def _line(text: Any) -> str:
    """The next line of the header; a file that is one endless line is not taken into memory."""
    line: str = text.readline(_LONGEST_HEADER)
    if len(line) == _LONGEST_HEADER:
        raise TableError("its first line is too long for a header: is it a table?")
    return line


def collecting(path: Path | None) -> dict[str, Any]:
    """How polars computes: in streaming batches, and all fields of a CSV file, or a long line goes unseen."""
    import polars as pl

    flags = pl.QueryOptFlags(projection_pushdown=path is None or kind_of(path) not in (".csv", ".tsv"))
    return {"engine": "streaming", "optimizations": flags}


def streams(*tables: pl.DataFrame) -> Iterator[memoryview]:
    """Tables as Arrow streams of some rows each, at least one a table."""
    import polars as pl

    for table in tables:
        for part in table.iter_slices(_ROWS_SENT) if table.height else (table,):
            buffer = io.BytesIO()
            part.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
            yield buffer.getbuffer()


def unreadable(path: Path, reason: str) -> TableError:
    """The error for a file that its reader refused, without the reader's words."""
    kind = kind_of(path)
    hint = f" ({_HINTS[kind]})" if kind in _HINTS and " " not in reason else ""  # for the name of an error
    if kind in workbook.KINDS and "broke down" in reason:
        hint = " (is there a cell far away from the table? delete the rows and columns beyond it)"
    return TableError(f"{path} cannot be read as {kind[1:]}: {reason}{hint}")


def kind_of(path: Path) -> str:
    """The extension that decides how a file is read, .gz put aside; train.gz is taken for a CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    plain = [suffix for suffix in suffixes if suffix != ".gz"]
    return plain[-1] if plain else ".csv" if suffixes else ""


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
    """The content of a JSON file, also gzip; an object that says a name twice is refused."""
    try:
        text = content(path).decode("utf-8")
        return json.loads(text or "null", object_pairs_hook=_distinct)
    except (PriorError, TableError):
        raise
    except (ValueError, OSError, RecursionError) as problem:
        reason = type(problem).__name__  # the error itself holds the whole document
    raise TableError(f"{path} cannot be read as json: {reason}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that says a category twice is refused: one of its two amounts would be lost."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise PriorError(f"categories must be distinct: {name!r} appears more than once")
        seen.add(name)
    return dict(pairs)


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
        raise TableError(f"{path} is there already: choose another name, or say --force to replace it")


def write_rows(rows: list[dict[str, Any]], path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
    """Write tidy rows as CSV, Parquet or JSON by the extension, whole or not at all."""
    kind = path.suffix.lower()
    if kind == ".json":
        write_whole(json.dumps(inf_to_null(rows), indent=1) + "\n", path, mode, replace=replace)
        return
    import polars as pl

    _write_frame(pl.DataFrame(rows, infer_schema_length=None), path, mode, replace=replace)


def write_columns(
    parts: Sequence[Mapping[str, Any]], path: Path, mode: int = 0o600, *, replace: bool = True
) -> None:
    """Write one table made of parts below each other, each a mapping of columns to values or to one value."""
    import polars as pl

    frames = [pl.DataFrame(part) for part in parts]
    # A name may be a number in one part and text in another.
    mixed = [name for name in frames[0].columns if len({frame.schema[name] for frame in frames}) > 1]
    table = pl.concat([frame.with_columns(pl.col(mixed).cast(pl.String)) for frame in frames])
    if path.suffix.lower() == ".json":
        write_whole(json.dumps(table.to_dicts(), indent=1) + "\n", path, mode, replace=replace)
    else:
        _write_frame(table, path, mode, replace=replace)


def _write_frame(table: pl.DataFrame, path: Path, mode: int, *, replace: bool) -> None:
    buffer = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        table.write_parquet(buffer)
    else:
        table.write_csv(buffer)
    if is_standard(path):
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):  # bytes: whatever the terminal's encoding is, names stay whole
            sys.stdout.buffer.write(buffer.getbuffer())
            sys.stdout.buffer.flush()
        else:
            sys.stdout.write(buffer.getvalue().decode("utf-8"))
        return
    write_whole(buffer.getbuffer(), path, mode, replace=replace)
