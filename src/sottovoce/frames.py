"""Tables of any library or file, counted into a tally. The only file that knows dataframes.

A table is counted where it lives: polars (also lazily, and from files, in streaming batches), pandas,
pyarrow, DuckDB and Spark group the rows themselves, through narwhals, and only the counts arrive here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import files
from ._validate import IntArray
from .errors import ParameterError, SottovoceError, TableError
from .tally import Tally

KEYS = ("group", "user", "item")
_NOT_NUMBERS = ("InvalidOperationError", "ConversionException", "ArrowInvalid", "ValueError")
_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Object)


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; several items are the columns of a wide table, one per category."""

    item: str | tuple[str, ...]
    user: str | None = None
    weight: str | None = None
    by: str | None = None
    top_by: str | None = None

    def keys(self) -> dict[str, str]:
        """The columns that name things; a wide table has no item column."""
        named = {"group": self.by, "user": self.user, "item": self.item}
        return {key: name for key, name in named.items() if isinstance(name, str)}

    def sums(self) -> dict[str, str]:
        """The columns that are added up."""
        named = {"amount": self.weight, "score": self.top_by}
        return {key: name for key, name in named.items() if name is not None}

    def needed(self) -> list[str]:
        """Every column that has to be there, once."""
        items = [] if isinstance(self.item, str) else self.item
        return list(dict.fromkeys([*self.keys().values(), *items, *self.sums().values()]))


def count_table(
    table: Any,
    *,
    item: str | Sequence[str],
    user: str | None = None,
    weight: str | None = None,
    by: str | None = None,
    top_by: str | None = None,
) -> Tally:
    """Count a table once, for several calls of `build_prior` and `read_users`.

    >>> import polars
    >>> count_table(polars.DataFrame({"who": ["a", "a"], "genre": ["War", "War"]}), user="who", item="genre")
    Tally(2 rows: 1 groups, 1 users, 1 items)
    """
    columns = Columns(item if isinstance(item, str) else tuple(item), user, weight, by, top_by)
    if not isinstance(table, str | Path):
        return tally_of(_cells(table, columns, None), columns, as_text=False)
    path = Path(table)
    with files.naming(path):
        return tally_of(_cells(files.scan_table(path), columns, path), columns, as_text=True)


def _cells(frame: Any, columns: Columns, path: Path | None) -> Any:
    """The counts, computed by the frame's own library, as an arrow table."""
    cells: Any = None
    try:
        counted = counted_frame(frame, columns)
        streaming: Any = {"engine": "streaming"} if counted.implementation.is_polars() else {}
        cells = counted.collect(**streaming).to_arrow()
    except SottovoceError:
        raise
    except Exception as problem:  # each library has its own errors, which would quote the data …
        reason = type(problem).__name__
    if cells is not None:
        return cells
    # … and would stay attached to an error raised up there
    wide = None if isinstance(columns.item, str) else "the category columns"
    column = wide or (columns.sums() and f"column {next(iter(columns.sums().values()))!r}")
    if column and reason in _NOT_NUMBERS:
        raise TableError(f"{column} must hold numbers")
    raise files.unreadable(path, reason) if path else TableError(f"the table cannot be counted: {reason}")


def counted_frame(frame: Any, columns: Columns) -> nw.LazyFrame[Any]:
    """The table with a row per group, user and item: rows, amount, score, and how many of these are fine.

    Nothing is computed yet, and columns that were not named are never read.
    """
    table = _native(frame)
    schema = table.collect_schema()
    require(list(schema), columns.needed())
    if isinstance(columns.item, str):
        keys, sums = columns.keys(), columns.sums()
    else:
        for name in columns.item:
            _require_numbers(name, schema[name])
        table, keys, sums = _unpivoted(table, columns)
        schema = table.collect_schema()
    for name in keys.values():
        _require_names(name, schema[name])
    for name in sums.values():
        _require_numbers(name, schema[name])
    chosen = [nw.col(name).alias(f"key_{key}") for key, name in keys.items()]
    numbers = [nw.col(name).cast(nw.Float64()).alias(key) for key, name in sums.items()]
    fine = [
        ((nw.col(key) >= 0) & (nw.col(key) < float("inf")))
        .fill_null(False)
        .cast(nw.Int64())
        .alias(f"fine_{key}")
        for key in sums
    ]
    table = table.select(*chosen, *numbers)
    table = table.with_columns(*fine) if fine else table
    added = [nw.col(name).sum() for name in [*sums, *(f"fine_{key}" for key in sums)]]
    return table.group_by(*(f"key_{key}" for key in keys)).agg(nw.len().alias("rows"), *added)


def _native(frame: Any) -> nw.LazyFrame[Any]:
    try:
        native = nw.from_native(frame)
    except TypeError:
        raise TableError(
            f"the table must be a pandas, polars, pyarrow, DuckDB or Spark frame or a path, "
            f"got {type(frame).__name__}"
        ) from None
    table: nw.LazyFrame[Any] = native.lazy() if isinstance(native, nw.DataFrame) else native
    return table


def _unpivoted(
    table: nw.LazyFrame[Any], columns: Columns
) -> tuple[nw.LazyFrame[Any], dict[str, str], dict[str, str]]:
    """A wide table as a long one, with its keys and sums."""
    if columns.weight is not None or columns.top_by is not None:
        raise ParameterError("a wide table has its amounts in the category columns: leave the weight out")
    named = {"group": columns.by, "user": columns.user}
    kept = {f"wide_{key}": name for key, name in named.items() if name is not None}
    names = [nw.col(name).alias(key) for key, name in kept.items()]
    amounts = [nw.col(name).cast(nw.Float64()) for name in columns.item]
    wide = table.select(*names, *amounts)
    if wide.implementation.is_duckdb():  # its unpivot works on the default connection only
        wide = wide.collect().lazy()
    long = wide.unpivot(
        list(columns.item), index=list(kept), variable_name="wide_item", value_name="wide_amount"
    )
    keys = {key: f"wide_{key}" for key, name in named.items() if name is not None}
    return long, {**keys, "item": "wide_item"}, {"amount": "wide_amount"}


def tally_of(cells: Any, columns: Columns, *, as_text: bool) -> Tally:
    """Turn names into codes, and refuse what is missing or wrong."""
    rows = cells["rows"].to_numpy().astype(np.intp)
    if len(rows) == 0:
        raise TableError("the table is empty: it has no rows")
    long = isinstance(columns.item, str)
    sums = {"amount": rows.astype(np.float64)}
    for key, name in (columns.sums() if long else {"amount": "the category columns"}).items():
        check_amounts(name if not long else f"column {name!r}", cells[f"fine_{key}"], rows)
        sums[key] = cells[key].to_numpy().astype(np.float64)
    keys = columns.keys() if long else {**columns.keys(), "item": "item"}
    coded = {key: _codes(cells[f"key_{key}"], name, rows, as_text) for key, name in keys.items()}
    nothing = np.zeros(len(rows), dtype=np.intp)
    group, user, item = (coded[key][1] if key in coded else nothing for key in KEYS)
    order = np.lexsort((item, user, group))
    return Tally(
        groups=tuple(map(str, coded["group"][0])) if "group" in coded else ("all",),
        users=coded["user"][0] if "user" in coded else None,
        items=tuple(coded["item"][0].tolist()),
        group=group[order],
        user=user[order],
        item=item[order],
        rows=rows[order],
        amount=sums["amount"][order],
        score=sums.get("score", sums["amount"])[order],
        by=columns.by,
    )


def check_amounts(what: str, fine: Any, rows: IntArray) -> None:
    """Refuse amounts that are missing, negative or not finite."""
    total = int(rows.sum())
    wrong = total - int(pc.sum(fine).as_py())
    if wrong:
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")


def _codes(column: Any, name: str, rows: IntArray, as_text: bool) -> tuple[Any, IntArray]:
    """The distinct names in sorted order, and the position of each cell's name among them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.null_count:
        missing = int(rows[column.is_null().to_numpy()].sum())
        raise TableError(f"column {name!r} has {missing} missing values")
    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    values = coded.dictionary
    if pa.types.is_floating(values.type):
        whole = pc.floor(values)
        if (
            not pc.all(pc.equal(whole, values)).as_py()
            or not pc.all(pc.less(pc.abs(values), 2.0**53)).as_py()
        ):
            raise TableError(f"column {name!r} must hold text or whole numbers, it holds fractions")
        values = whole.cast(pa.int64())
    if as_text:
        values = values.cast(pa.string())
    order = pc.array_sort_indices(values)
    place = np.empty(len(order), dtype=np.intp)
    place[order.to_numpy()] = np.arange(len(order))
    names = np.empty(len(order), dtype=object)
    names[:] = values.take(order).to_pylist()
    return names, place[coded.indices.to_numpy()]


def column_names(table: Any) -> list[str]:
    """The names of the columns of a frame or of a file."""
    if isinstance(table, str | Path):
        return list(files.scan_table(table).collect_schema().names())
    return list(_native(table).collect_schema())


def require(present: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table without a needed column, listing those it has."""
    missing = [name for name in needed if name not in present]
    odd = any(len(name) > 60 or not name.isprintable() for name in present)
    if missing and (odd or len(missing) == len(needed) > 1):  # the "names" may be somebody's data
        raise TableError(f"there is no column {missing[0]!r}: is the first line of the table a header?")
    if missing:
        raise TableError(f"there is no column {missing[0]!r}; the table has {', '.join(present)}")


def _require_numbers(name: str, kind: Any) -> None:
    if not (kind.is_numeric() or kind in _TEXT):
        raise TableError(f"column {name!r} must hold numbers, it holds {kind}")


def _require_names(name: str, kind: Any) -> None:
    if not (kind.is_integer() or kind.is_float() or kind in _TEXT):
        raise TableError(f"column {name!r} must hold text or whole numbers, it holds {kind}")
