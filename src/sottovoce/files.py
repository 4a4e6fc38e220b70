"""Files in and out: tables by extension, scanned and not loaded, and results written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from .document import finite, write_whole
from .errors import PriorError, SottovoceError, TableError

# Text everywhere in CSV: guessing types would turn a category "007" into 7, a device "1e10" into a float.
# No globs: a file called m[1].csv is that file, and not m1.csv. JSON types come from all rows, not a few.
_SCANNERS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    ".csv": lambda path: pl.scan_csv(path, infer_schema=False, glob=False),
    ".tsv": lambda path: pl.scan_csv(path, infer_schema=False, glob=False, separator="\t"),
    ".parquet": lambda path: pl.scan_parquet(path, glob=False),
    ".json": lambda path: pl.read_json(_content(path), infer_schema_length=None).lazy(),
    ".jsonl": lambda path: pl.read_ndjson(_content(path), infer_schema_length=None).lazy(),
    ".ndjson": lambda path: pl.read_ndjson(_content(path), infer_schema_length=None).lazy(),
}
_HINTS = {
    ".csv": "every line needs the same number of fields, in UTF-8",
    ".tsv": "every line needs the same number of fields, in UTF-8",
    ".json": "a list of records is expected",
}


def scan_table(path: str | Path) -> pl.LazyFrame:
    """A table by its extension, not yet read; CSV columns are text, names lose surrounding blanks."""
    path = Path(path)
    kind = kind_of(path)
    if path.is_dir():
        raise TableError(f"{path} cannot be read: it is a folder")
    if not path.is_file():
        raise TableError(f"{path} cannot be read: there is no such file")
    if kind not in _SCANNERS:
        known = ", ".join(_SCANNERS)
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    table = None
    try:
        table = _SCANNERS[kind](path)
        named = table.collect_schema().names()
        header = _header(path, kind) if kind in (".csv", ".tsv") else named
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


def _header(path: Path, kind: str) -> list[str]:
    """The first record of a CSV file as it stands there; a reader renames what it finds twice."""
    opener = gzip.open if _is_gzip(path) else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as text:
        return next(csv.reader(text, delimiter="\t" if kind == ".tsv" else ","))


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if _is_gzip(path) else raw


def collecting(path: Path | None) -> dict[str, Any]:
    """How polars computes: in streaming batches, and all fields of a CSV file, or a long line goes unseen."""
    flags = pl.QueryOptFlags(projection_pushdown=path is None or kind_of(path) not in (".csv", ".tsv"))
    return {"engine": "streaming", "optimizations": flags}


def unreadable(path: Path, reason: str) -> TableError:
    """The error for a file that its reader refused, without the reader's words."""
    kind = kind_of(path)
    hint = f" ({_HINTS[kind]})" if kind in _HINTS else ""
    return TableError(f"{path} cannot be read as {kind[1:]}: {reason}{hint}")


def kind_of(path: Path) -> str:
    """The extension that decides how a file is read, .gz put aside; train.gz is taken for a CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    plain = [suffix for suffix in suffixes if suffix != ".gz"]
    return plain[-1] if plain else ".csv" if suffixes else ""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before a message that does not have it: with two files one must know which."""
    try:
        yield
    except SottovoceError as problem:
        text = str(problem)
        raise type(problem)(text if str(path) in text else f"{path}: {text}") from None


def read_json(path: Path) -> Any:
    """The content of a JSON file, also gzip; an object that says a name twice is refused."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw).decode("utf-8")
        return json.loads(text or "null", object_pairs_hook=_distinct)
    except (ValueError, OSError, EOFError, RecursionError) as problem:
        if isinstance(problem, PriorError):
            raise
        raise TableError(f"{path} cannot be read as json: {type(problem).__name__}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that says a category twice is refused: one of its two amounts would be lost."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise PriorError(f"categories must be distinct: {name!r} appears more than once")
        seen.add(name)
    return dict(pairs)


def check_writable(path: Path, *inputs: Path, force: bool = False) -> None:
    """Refuse an output that cannot be written, is there already, or is an input, before any work is done."""
    if path.suffix.lower() not in (".csv", ".parquet", ".json"):
        raise TableError(f"{path} cannot be written: its name must end in .csv, .parquet or .json")
    if not path.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise TableError(f"{path} cannot be written: it is a folder")
    if path.resolve() in {one.resolve() for one in inputs}:
        raise TableError(f"--output must not be one of the inputs: {path} would be lost")
    if not force and os.path.lexists(path):
        raise TableError(f"{path} is there already: choose another name, or say --force to replace it")


def write_rows(rows: list[dict[str, Any]], path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
    """Write tidy rows as CSV, Parquet or JSON by the extension, whole or not at all."""
    kind = path.suffix.lower()
    if kind == ".json":
        write_whole(json.dumps(finite(rows), indent=1) + "\n", path, mode, replace=replace)
        return
    table = pl.DataFrame(rows, infer_schema_length=None)
    buffer = io.BytesIO()
    if kind == ".parquet":
        table.write_parquet(buffer)
    else:
        table.write_csv(buffer)
    write_whole(buffer.getvalue(), path, mode, replace=replace)
