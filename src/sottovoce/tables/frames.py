"""Tables of any library or file, counted where they live. The only file that knows dataframes.

polars (also lazily, and from files, in streaming batches), pandas, pyarrow, DuckDB and Spark group the rows
themselves, through narwhals; only the counts arrive here, and become a tally.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from ..errors import SottovoceError, TableError
from . import decimals, files, reading, runs, unpack, workbook
from .columns import Columns
from .dialect import FOUND, Dialect, separator_of
from .header import ROWS, Head, missing_column

if TYPE_CHECKING:
    from .tally import Tally

_NOT_NUMBERS = ("InvalidOperation", "Conversion", "ArrowInvalid", "ValueError")
_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Object)


def count_table(
    table: Any,
    *,
    item: str | Sequence[str],
    user: str | None = None,
    weight: str | None = None,
    by: str | None = None,
    top_by: str | None = None,
    dialect: Dialect = FOUND,
    lenient: bool = False,
) -> Tally:
    """Count a table once, for several calls of `build_prior` and `read_users`.

    `dialect` says how a file of text is written, where that is not to be found by looking. With `lenient` a
    row without an item or an amount counts for nothing; otherwise it is refused.

    >>> import polars
    >>> count_table(polars.DataFrame({"who": ["a", "a"], "genre": ["War", "War"]}), user="who", item="genre")
    Tally(2 rows: 1 groups, 1 users, 1 items)
    """
    columns = Columns(item if isinstance(item, str) else tuple(item), user, weight, by, top_by, lenient)
    if not isinstance(table, str | Path):
        return to_tally(_cells(table, columns, None), columns, as_text=False)
    from .run_cells import as_cells, tally_of_runs

    path = Path(table)
    with files.prefix_errors(path):
        asked = {"columns": asdict(columns), "dialect": asdict(dialect)}
        parts = ask_reader("frames", "count_file", path, **asked)
        cells = as_cells(parts)
        if cells is None:
            return tally_of_runs(parts, columns.keys(), as_text=True, lenient=columns.lenient)
        return to_tally(cells, columns, as_text=True)


def count_file(path: Path, columns: dict[str, Any], dialect: dict[str, Any]) -> Any:
    """The counted cells of a file, a table of polars, or its runs, several. For the reader's process."""
    item = columns.pop("item")
    asked = Columns(item if isinstance(item, str) else tuple(item), **columns)
    given = Dialect(**dialect)
    table = files.scan_table(path, given)
    if given.missing == "drop":
        table = _complete(table, asked)
    if files.kind_of(path) in workbook.KINDS:
        workbook.check_names(path, given, table, _present(table, asked.names()))
        workbook.check_amounts(path, given, asked.amounts())
    elif given.decimal is not None and files.kind_of(path) in (".json", ".jsonl", ".ndjson"):
        raise TableError("numbers in JSON have points: leave --decimal out")  # in text they would look alike
    elif given.decimal is None and files.kind_of(path) in (".csv", ".tsv"):
        _ask_about_thousands(path, given, table, _present(table, asked.amounts()))
    return _cells(decimals.with_numbers(table, asked.amounts(), given.decimal), asked, path)


def _ask_about_thousands(path: Path, dialect: Dialect, table: Any, columns: Sequence[str]) -> None:
    """In a file with semicolons, as they are written where a comma is decimal, 1.500 may be 1500: ask."""
    kind = files.kind_of(path)
    if columns and separator_of(path, kind, dialect) == ";" and decimals.may_be_thousands(table, columns):
        raise TableError(
            f"column {columns[0]!r} has points that may separate thousands or be decimal: say --decimal "
            f"comma (1.500 is fifteen hundred) or --decimal point (1.500 is one and a half)"
        )


def _present(table: Any, names: Sequence[str]) -> list[str]:
    """Those of the names that are columns; that the others are missing is said later."""
    there = set(table.collect_schema().names())
    return [name for name in names if name in there]


def _complete(table: Any, columns: Columns) -> Any:
    """The rows that name their group, user and item."""
    require(table.collect_schema().names(), columns.needed(), lambda: _head(_lazy(table)))
    items = {columns.item} if columns.lenient else set()  # they count for nothing; their users stay
    return table.drop_nulls([name for name in columns.names() if name not in items])


def count_missing(
    path: Path, columns: list[str], dialect: dict[str, Any], present: Sequence[str] = ()
) -> list[int]:
    """How many rows lack a name in one of these columns, and none in `present`; for the reader's process."""
    import polars as pl

    there = [pl.col(name).is_not_null() for name in present]
    lacking = pl.all_horizontal(pl.any_horizontal(pl.col(columns).is_null()), *there)
    table = files.scan_table(path, Dialect(**dialect)).select(lacking.sum())
    return [int(table.collect(**files.collecting(path)).item())]


def ask_reader(room: str, verb: str, path: Path, **arguments: Any) -> Any:
    """What the reader's process says about a file; packed files are checked while it works."""
    files.check_readable(path)
    try:
        return reading.ask(room, verb, path, meanwhile=lambda: unpack.check_unpacked(path), **arguments)
    except reading.ReaderError as problem:
        reason = str(problem)
    raise files.unreadable(path, reason)


def to_tally(cells: Any, columns: Columns, *, as_text: bool) -> Tally:
    """The tally of cells that were counted for these columns."""
    from .cells import tally_of  # not above: the reader's process only counts, and needs no arrays

    names = columns.keys(), columns.sums()
    return tally_of(cells, *names, as_text=as_text, long=columns.long, lenient=columns.lenient)


def _cells(frame: Any, columns: Columns, path: Path | None) -> Any:
    """The counts, computed by the frame's own library: for a file tables of polars, else one of arrow."""
    found = _collected(frame, columns, path)
    if not isinstance(found, str):
        return found
    advice = ""
    if path is not None and any(word in found for word in _NOT_NUMBERS):
        advice = decimals.advice(frame, columns.amounts())
    if not columns.long and any(word in found for word in _NOT_NUMBERS):
        raise TableError(f"the category columns must hold numbers{advice}")
    # Does it work without the numbers? Then they are what is wrong.
    sums = list(columns.sums().values()) if columns.long else []
    if sums and not isinstance(_collected(frame, replace(columns, weight=None, top_by=None), path), str):
        raise TableError(f"column {sums[0]!r} must hold numbers{advice}")
    raise files.unreadable(path, found) if path else TableError(f"the table cannot be counted: {found}")


def _collected(frame: Any, columns: Columns, path: Path | None) -> Any:
    """The counted cells, or the name of the error: each library has its own, and their text quotes data."""
    try:
        if path is not None and columns.long and columns.user is not None and not columns.sums():
            records = record_frame(frame, columns).to_native()
            if runs.suits(records, path):
                return runs.sorted_runs(records, files.collecting(path))
        counted = counted_frame(frame, columns, path is None)
        options: Any = {}
        if counted.implementation.is_polars():
            options = files.collecting(path)
        cells = counted.collect(**options)
        return cells.to_arrow() if path is None else cells.to_native()
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # a damaged Parquet file panics, which is no Exception
        return type(problem).__name__


def counted_frame(frame: Any, columns: Columns, named: bool = True) -> nw.LazyFrame[Any]:
    """The table with a row per group, user and item: rows, amount, score, and how many of these are fine.

    Nothing is computed yet. `named` says that a person named the category columns of a wide table, and not
    the first line of a file, which may be data.
    """
    keys, sums = columns.keys(), columns.sums()
    added = [nw.col(name).sum() for name in [*sums, *(f"fine_{key}" for key in sums)]]
    grouped = record_frame(frame, columns, named).group_by(*(f"key_{key}" for key in keys))
    return grouped.agg(nw.len().alias("rows"), *added)


def record_frame(frame: Any, columns: Columns, named: bool = True) -> nw.LazyFrame[Any]:
    """The needed columns alone, a row per record, under the names of `counted_frame`, which counts them."""
    table = _lazy(frame)
    require(list(table.collect_schema()), columns.needed(), lambda: _head(table))
    keys, sums = columns.keys(), columns.sums()
    table = _renamed(table, keys, sums) if columns.long else _unpivoted(table, columns, named)
    if columns.lenient and sums:
        table = table.with_columns(*(nw.col(key).fill_null(0.0) for key in sums))
    return table.with_columns(*(_is_amount(key).alias(f"fine_{key}") for key in sums)) if sums else table


def _is_amount(name: str) -> nw.Expr:
    """1 where a number is finite and at least 0, else 0; null and NaN are not."""
    return ((nw.col(name) >= 0) & (nw.col(name) < float("inf"))).fill_null(False).cast(nw.Int64())


def _lazy(frame: Any) -> nw.LazyFrame[Any]:
    native = None
    with contextlib.suppress(TypeError):
        native = nw.from_native(frame)
    if native is None:
        raise TableError(
            f"the table must be a pandas, polars, pyarrow, DuckDB or Spark frame or a path, "
            f"got {type(frame).__name__}"
        )
    table: nw.LazyFrame[Any] = native.lazy() if isinstance(native, nw.DataFrame) else native
    if table.implementation.is_duckdb() and len(set(frame.columns)) < len(frame.columns):
        raise TableError("two columns of the table have the same name")
    return table


def _renamed(table: nw.LazyFrame[Any], keys: dict[str, str], sums: dict[str, str]) -> nw.LazyFrame[Any]:
    """The needed columns alone, under names of our own, with numbers as doubles."""
    schema = table.collect_schema()
    polars = table.implementation.is_polars()
    for name in keys.values():
        kind = schema[name]
        if not (kind.is_integer() or kind.is_float() or kind in _TEXT) or (polars and kind == nw.Object):
            raise TableError(f"column {name!r} must hold text or whole numbers, it holds {_kind(kind)}")
    for name in sums.values():
        _require_numbers(f"column {name!r}", schema[name])
    if table.implementation.is_spark_like():  # a failing cast in Spark would print the text into its log
        table = _without_text(table, [name for name in sums.values() if schema[name] == nw.String])
    names = [nw.col(name).alias(f"key_{key}") for key, name in keys.items()]
    return table.select(*names, *(nw.col(name).cast(nw.Float64()).alias(key) for key, name in sums.items()))


def _without_text(table: nw.LazyFrame[Any], columns: list[str]) -> nw.LazyFrame[Any]:
    """Spark's text columns as numbers, null where they are none."""
    native = table.to_native()
    for name in columns:
        native = native.withColumn(name, native[name].try_cast("double"))
    numbers: nw.LazyFrame[Any] = nw.from_native(native)
    return numbers


def _unpivoted(table: nw.LazyFrame[Any], columns: Columns, named: bool) -> nw.LazyFrame[Any]:
    """A wide table as a long one, under the names of `_renamed`."""
    schema = table.collect_schema()
    for name in columns.item:
        _require_numbers(f"column {name!r}" if named else "every category column", schema[name])
    keys = {key: name for key, name in columns.keys().items() if key != "item"}
    names = [f"key_{key}" for key in keys]
    clash = {*names, "key_item", "amount"} & set(columns.item)
    if clash:
        raise TableError(f"a category column must not be called {min(clash)!r}: rename it")
    amounts = [nw.col(name).cast(nw.Float64()) for name in columns.item]
    wide = table.select(*(nw.col(name).alias(f"key_{key}") for key, name in keys.items()), *amounts)
    if wide.implementation.is_duckdb():  # its unpivot works on the default connection only
        wide = wide.collect().lazy()
    return wide.unpivot(list(columns.item), index=names, variable_name="key_item", value_name="amount")


def column_names(table: Any, dialect: Dialect = FOUND) -> list[str]:
    """The names of the columns of a frame or of a file."""
    if isinstance(table, str | Path):
        names: list[str] = ask_reader("files", "columns_of", Path(table), dialect=asdict(dialect))
        return names
    return list(_lazy(table).collect_schema())


def _head(table: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
    """The first rows of a table, by column."""
    rows = table.head(ROWS).collect()
    return {name: rows[name].to_list() for name in rows.columns}


def require(present: Sequence[str], needed: Sequence[str], head: Head | None = None) -> None:
    """Refuse a table without a needed column, listing those it has if they are names and not data."""
    problem = missing_column(present, needed, head)
    if problem is not None:
        raise problem


def _require_numbers(what: str, kind: Any) -> None:
    if not (kind.is_numeric() or kind in _TEXT):
        raise TableError(f"{what} must hold numbers, it holds {_kind(kind)}")


def _kind(kind: Any) -> str:
    """The name of a type without its fields, which are data where a column holds objects."""
    return type(kind).__name__
