"""Files in: CSV (also gzip), Parquet and JSON become priors and users, or one clear error."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from .document import write_whole
from .errors import PriorError, SottovoceError, TableError
from .frames import build_prior, read_users, require
from .mechanism import Mechanism
from .prior import Prior
from .users import Users

PUBLIC_AMOUNTS = ("count", "weight", "probability")
PRIVATE_AMOUNTS = ("weight", "count")
_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": lambda path: pl.read_csv(path, infer_schema=False),
    ".tsv": lambda path: pl.read_csv(path, infer_schema=False, separator="\t"),
    ".parquet": pl.read_parquet,
    ".json": pl.read_json,
    ".jsonl": pl.read_ndjson,
    ".ndjson": pl.read_ndjson,
}
_HINTS = {
    ".csv": "every line needs the same number of fields, in UTF-8",
    ".tsv": "every line needs the same number of fields, in UTF-8",
    ".json": "a list of records is expected",
}


def read_table(path: str | Path) -> pl.DataFrame:
    """Read a table by its extension; CSV columns arrive as text, names without surrounding blanks.

    Text, because guessing types would turn a category "007" into 7 and a device "1e10" into a float.
    """
    path = Path(path)
    kind = _kind(path)
    if path.is_dir():
        raise TableError(f"{path} cannot be read: it is a folder")
    if not path.is_file():
        raise TableError(f"{path} cannot be read: there is no such file")
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    table = None
    try:
        table = _READERS[kind](path)
    except Exception as problem:  # every reader has its own errors; their text may quote data
        reason = type(problem).__name__
    if table is None:
        hint = f" ({_HINTS[kind]})" if kind in _HINTS else ""
        raise TableError(f"{path} cannot be read as {kind[1:]}: {reason}{hint}")
    if table.height == 0:
        raise TableError(f"{path} is empty: it has no rows")
    return table.rename(str.strip)


def amount_column(columns: list[str], given: str | None, usual: tuple[str, ...]) -> str | None:
    """The column of amounts: the one named, else the first of the usual names, in any case of letters."""
    if given is not None:
        return given
    folded = {column.casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in usual if name in folded), None)


def read_priors(
    path: str | Path, *, item: str, count: str | None, by: str | None, smoothing: float = 0.0
) -> tuple[dict[str, Prior], str]:
    """One prior per group (or one, under "all") from a file of public data, and how it was counted.

    A table has the column `item` and a column of amounts (`count`, or one named count, weight or
    probability); without one every row counts once. A JSON file may also be {category: amount}, or with
    `by` {group: {category: amount}}.
    """
    path = Path(path)
    with _naming(path):
        if _kind(path) == ".json" and path.is_file():
            loaded = _json(path)
            if isinstance(loaded, dict):
                return _json_priors(loaded, by, smoothing), "amounts from the JSON object"
        table = _as_text(read_table(path), item, by)
        column = amount_column(table.columns, count, PUBLIC_AMOUNTS)
        built = build_prior(table, item=item, weight=column, by=by, smoothing=smoothing)
        priors: dict[str, Prior] = built if isinstance(built, dict) else {"all": built}
        if column is not None and column.casefold() == "probability":
            _check_probabilities(table, column, by)
        how = f"amounts from column {column!r}" if column else "no column of amounts: every row counts once"
        return priors, how


def read_user_groups(
    path: str | Path,
    priors: Mapping[str, Prior] | Mapping[str, Mechanism],
    *,
    user: str,
    item: str,
    weight: str | None,
    by: str | None,
    unknown: str = "error",
    empty: str = "error",
) -> tuple[dict[str, Users], str]:
    """The users of every group from a long table file, against that group's prior, and how counted.

    A mechanism stands for its prior's categories.
    """
    path = Path(path)
    with _naming(path):
        table = _as_text(read_table(path), user, item, by)
        column = amount_column(table.columns, weight, PRIVATE_AMOUNTS)
        how = f"weights from column {column!r}" if column else "every row counts once"
        parts = {"all": table} if by is None else _groups(table, by, priors)
        users = {
            name: read_users(
                parts[name],
                user=user,
                item=item,
                weight=column,
                prior=priors[name],
                unknown=unknown,
                empty=empty,
            )
            for name in priors
            if name in parts
        }
        if not any(len(group) for group in users.values()):
            raise TableError("no user has a usable record")
    dropped = sum(group.dropped for group in users.values())
    return users, how + (f"; {dropped} rows with unknown items dropped" if dropped else "")


def writer_for(path: Path) -> Callable[[list[dict[str, Any]], Path], None]:
    """How to write rows by the extension of the file, whole or not at all; refused before any work."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet", ".json"):
        raise TableError(f"{path} cannot be written: its name must end in .csv, .parquet or .json")
    if not path.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {path.parent}")
    return _write_rows


def _write_rows(rows: list[dict[str, Any]], path: Path) -> None:
    table = pl.DataFrame(rows, infer_schema_length=None)
    kind = path.suffix.lower()
    if kind == ".parquet":
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        write_whole(buffer.getvalue(), path, 0o600)
    else:
        text = table.write_csv() if kind == ".csv" else json.dumps(rows, indent=1) + "\n"
        write_whole(text, path, 0o600)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before a message that does not have it: with two files one must know which."""
    try:
        yield
    except SottovoceError as problem:
        text = str(problem)
        raise type(problem)(text if str(path) in text else f"{path}: {text}") from None


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _groups(table: pl.DataFrame, by: str, priors: Mapping[str, object]) -> dict[str, pl.DataFrame]:
    if table[by].null_count():
        raise TableError(f"column {by!r} has {table[by].null_count()} missing values")
    groups = {str(name[0]): part for name, part in table.partition_by(by, as_dict=True).items()}
    missing = len(set(groups) - set(priors))
    if missing:
        known = ", ".join(map(repr, priors))
        raise TableError(f"{missing} of {len(groups)} groups have no prior; there are priors for {known}")
    return groups


def _check_probabilities(table: pl.DataFrame, column: str, by: str | None) -> None:
    """A column named probability has to be one: its sum is not quietly divided out."""
    for part in [table] if by is None else table.partition_by(by):
        total = float(part[column].cast(pl.Float64).sum())
        if abs(total - 1) > 1e-6:
            raise PriorError(
                f"column {column!r} sums to {total:.6g}, not to 1; if it holds counts, say --count {column}"
            )


def _json(path: Path) -> Any:
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


def _json_priors(loaded: dict[str, Any], by: str | None, smoothing: float) -> dict[str, Prior]:
    if not loaded:
        raise TableError("the object is empty")
    grouped = all(isinstance(amounts, dict) for amounts in loaded.values())
    if by is not None and not grouped:
        raise TableError("with --by the object must be {group: {category: amount}}")
    if by is None and grouped:
        raise TableError("the object holds groups: say --by with the name of the group column")
    if by is None:
        return {"all": Prior.from_counts(loaded, smoothing=smoothing)}
    names = list(dict.fromkeys(name for amounts in loaded.values() for name in amounts))
    return {
        group: Prior.from_counts({name: amounts.get(name, 0) for name in names}, smoothing=smoothing)
        for group, amounts in loaded.items()
    }


def _as_text(table: pl.DataFrame, *columns: str | None) -> pl.DataFrame:
    """Identifiers as text, so that the same category in CSV and Parquet is the same category."""
    named = [column for column in columns if column is not None]
    require(table.columns, named)
    for column in named:
        kind = table[column].dtype
        if kind.is_float():
            whole = table[column].cast(pl.Int64, strict=False)
            if whole.is_null().any() or (whole.cast(kind) != table[column]).any():
                raise TableError(f"column {column!r} must hold text or whole numbers, it holds {kind}")
            table = table.with_columns(whole)
        elif kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Boolean):
            raise TableError(f"column {column!r} must hold text or whole numbers, it holds {kind}")
    return table.with_columns(pl.col(named).cast(pl.String))
