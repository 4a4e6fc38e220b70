"""Tables on DuckDB: one engine for files and dataframes, which groups, sorts and spills in bounded memory.

Each table gets a connection of its own, which may read that file and nothing else, loads no extension and
reaches no network. A table becomes records: g, u and i name the group, the user and the item, a is the
amount. Names become codes by their order, and arrays of codes and amounts become a `Tally`. The text of
DuckDB's errors quotes data, so it is never shown: an error tells which kind of problem there is.
"""

from __future__ import annotations

import codecs
import csv
import glob
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt

from .. import checks
from ..checks import IntArray
from ..errors import ParameterError, Setting, SottovoceError, TableError
from ..groups import EVERYBODY
from ..records import Category
from ..temporary import private_file, private_folder
from . import files, mended, workbook
from .files import DETECTED, SEPARATORS, Dialect
from .tally import Tally, numbered

Result = TypeVar("Result")
MEMORY, WRITER_MEMORY, SPILLED = 2560 << 20, 256 << 20, 200 << 30
"""Bytes that DuckDB may hold of a table before it spills to the disk, of a result, and that it may spill."""
LONGEST_NAME = 4096
"""Characters of the longest name of a user or group; a table with a longer one is refused."""
PIECE = 25_000
"""Rows that are inserted at once: fewer than DuckDB has in a row group, so that all but the last are full."""
LOOKED_AT = 10_000
"""Rows below the header that are looked at before its names are shown."""
MOST_SHOWN, LONGEST_SHOWN, LONGEST_LIST = 20, 30, 200
"""Columns in a message, characters of a name, and of all names."""
_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_INTEGERS = (*_SIZES, *(f"U{size}" for size in _SIZES))
_TEXTS = ("VARCHAR", "ENUM", '"NULL"', "NULL")
_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")
_INTEGER = "0|-?[1-9][0-9]{0,17}"
_SPACE = r"[\s\pZ\x{b}\x{1c}-\x{1f}\x{85}]"  # what str.strip takes away
_FORM = f"regexp_replace(nfc_normalize(name), '^{_SPACE}+|{_SPACE}+$', '', 'g')"
"""The one form of a name's spellings."""


@dataclass(frozen=True)
class Columns:
    """Which columns mean what."""

    item: str
    user: str | None = None
    weight: str | None = None
    by: str | None = None
    lenient: bool = False  # a row without an item or an amount counts for nothing, and its user is there
    times: str | None = None  # how many records a row stands for; one, without a column
    longest: int | None = None  # characters of the longest category: longer items are cut, and stay unknown
    integers: bool = False  # the categories are integers

    def __post_init__(self) -> None:
        if not isinstance(self.item, str) or not self.item:
            raise ParameterError(RESHAPE)
        if self.by is not None:
            checks.group_column(self.by, self.user, self.weight, self.item)

    @property
    def names(self) -> dict[str, str]:
        """The columns that name a group, a user or an item, by their letter."""
        named = {"g": self.by, "u": self.user, "i": self.item}
        return {letter: name for letter, name in named.items() if name is not None}

    @property
    def required(self) -> dict[str, str]:
        """Those that no row may lack."""
        return {k: name for k, name in self.names.items() if not (self.lenient and k == "i")}

    @property
    def needed(self) -> list[str]:
        """Every column that has to be there, once."""
        named = [*self.names.values(), self.weight]
        return list(dict.fromkeys(name for name in named if name is not None))


RESHAPE = (
    "item must name one column; reshape a table with a column for each category first, as DuckDB does: "
    "SELECT * FROM (UNPIVOT wide ON COLUMNS(* EXCLUDE user) INTO NAME item VALUE weight)"
)


# --- connections ----------------------------------------------------------------------------------------


@dataclass
class Source:
    """An open table: its connection, where it is the relation `source`, and the type of each column."""

    connection: duckdb.DuckDBPyConnection
    path: Path | None
    dialect: Dialect
    types: Mapping[str, str] = field(default_factory=dict)  # in SQL, without what they hold
    separator: str | None = None
    sheet: workbook.Sheet | None = None
    replaced: bool = False  # what is not in the file's encoding was replaced

    def __post_init__(self) -> None:
        self._stamp = _stamp(self.path)

    def check_unchanged(self) -> None:
        """Refuse a file that was replaced or written to since it was opened: its scans would differ."""
        if self._stamp != _stamp(self.path):
            raise TableError(f"{self.path} was changed while it was read; nothing was used of it")

    def require(self, needed: Sequence[str]) -> None:
        """Refuse a table without a needed column."""
        if self.kind in files.JSONS:
            self._require_keys(needed)
            return
        try:
            require(needed, list(self.types), lambda: self.rows(f"SELECT * FROM source LIMIT {LOOKED_AT}"))
        except TableError as problem:
            if self.sheet is not None and str(self.sheet):
                problem.args = (*problem.args, f" This is {self.sheet}; another one: ", Setting("sheet"), ".")
            raise

    def _require_keys(self, needed: Sequence[str]) -> None:
        """Refuse a JSON table none of whose records has a needed key; other keys are never shown."""
        for name in needed:
            has = f"json_exists(json, {_pointer(name)})"
            if name not in self.types or not self.rows(f"SELECT 1 FROM objects WHERE {has} LIMIT 1"):
                other = (
                    f" If it has another name, pass --{name} ({name}=)." if name in ("user", "item") else ""
                )
                raise TableError(f"there is no column {name!r}: no record has this key.{other}")

    @property
    def kind(self) -> str:
        """The extension that decides how the file is read; empty for a frame."""
        return "" if self.path is None else files.kind_of(self.path)

    def run(self, sql: str) -> Any:
        """Execute a statement; what fails becomes one line without data."""
        return _translated(lambda: self.connection.execute(sql), self.path)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return _translated(lambda: self.connection.execute(sql).fetchall(), self.path)

    def arrays(self, sql: str) -> dict[str, Any]:
        """The columns of a query as arrays."""
        return _translated(lambda: self.connection.execute(sql).fetchnumpy(), self.path)


@contextmanager
def opened(
    table: Any,
    dialect: Dialect | None = None,
    columns: Columns | None = None,
    wanted: Sequence[str | None] = (),
) -> Iterator[Source]:
    """A file or a dataframe as the relation `source` of a connection that can reach nothing else.

    Of a Spark frame and of JSON only the `columns` are read. Without these, the columns of JSON are the keys
    that half of the records have, and those that are `wanted`, in any case of letters.
    """
    if dialect is not None and not isinstance(dialect, Dialect):
        raise ParameterError("dialect must be a Dialect, such as sottovoce.Dialect(decimal='comma')")
    path = files.checked(Path(table)) if isinstance(table, str | Path) else None
    if dialect not in (None, DETECTED) and path is None:
        raise ParameterError("dialect is for the path of a file: leave it out")
    with private_folder() as folder, closing(_connection(folder)) as connection:
        source = Source(connection, path, dialect or DETECTED)
        sql, allowed, frame = "SELECT * FROM frame", list[str](), None
        if path is None:
            frame = _frame(table, columns)
            _translated(lambda: connection.register("frame", frame))
        elif source.kind in workbook.KINDS:
            as_text = columns.item if columns is not None and columns.lenient else None
            frame, source.sheet = workbook.read_sheet(path, source.dialect.sheet, as_text)
            connection.register("frame", frame)
            sql += f" WHERE {' OR '.join(f'{quoted(name)} IS NOT NULL' for name in frame.column_names)}"
        else:
            sql, allowed = _file(source, path, Path(folder), lenient=columns is not None and columns.lenient)
        source.run(f"SET allowed_paths = [{', '.join(map(text, allowed))}]")
        source.run(f"SET allowed_directories = [{text(folder)}]")
        source.run("SET enable_external_access = false")
        source.run("SET lock_configuration = true")
        if source.kind in files.JSONS:
            source.run(f"CREATE TEMP VIEW objects AS {sql}")
            names = _shared_keys(source, wanted) if columns is None else columns.needed
            source.run(f"CREATE TEMP VIEW source AS {_by_key(names, columns)}")
            source.types = dict.fromkeys(names, "VARCHAR")
            yield source
            return
        types = [(name, kind.split("(")[0].upper()) for name, kind, *_ in source.rows(f"DESCRIBE {sql}")]
        if len({name.strip() for name, _ in types}) < len(types):
            raise same_name(path)
        shown = ", ".join(f"{quoted(name)} AS {quoted(name.strip())}" for name, _ in types)
        source.run(f"CREATE TEMP VIEW source AS SELECT {shown} FROM ({sql})")
        source.types = {name.strip(): kind for name, kind in types} | _mixed_types(frame)
        yield source


MOST_KEYS = 100
"""Keys of JSON that are columns, beside those that are named."""


def _pointer(name: str) -> str:
    """The SQL of a JSON pointer to a key."""
    return text("/" + name.replace("~", "~0").replace("/", "~1"))


def _shared_keys(source: Source, wanted: Sequence[str | None]) -> list[str]:
    """The keys that at least half of the records of a JSON table have, and the wanted ones, as they come.

    A key that one person's records alone bring is never a column, unless it is named.
    """
    folded = ", ".join(text(name.casefold()) for name in wanted if name)
    keys = source.rows(
        "SELECT key, count(*), 2 * count(*) >= (SELECT count(*) FROM objects) AS shared FROM (SELECT "
        "unnest(list_distinct(json_keys(json))) AS key FROM objects WHERE json_type(json) = 'OBJECT') "
        f"GROUP BY key HAVING shared OR lower(key) IN ({folded or 'NULL'}) "
        f"ORDER BY count(*) DESC LIMIT {MOST_KEYS}"
    )
    first = source.rows("SELECT json_keys(json) FROM objects WHERE json_type(json) = 'OBJECT' LIMIT 1")
    order = {key: i for i, key in enumerate(first[0][0] if first else [])}
    alike: dict[str, str] = {}  # to DuckDB names that differ in the case of letters are the same
    for key, *_ in sorted(keys, key=lambda row: (row[0] not in wanted, -row[1])):
        if key.isprintable():
            alike.setdefault(key.casefold(), key)
    return sorted(alike.values(), key=lambda key: order.get(key, len(order)))


def _by_key(names: Sequence[str], columns: Columns | None) -> str:
    """The query that makes columns of the keys of records: values as texts, as in a CSV file."""
    # Lists and objects are refused where they are used; as an item such a value counts for nothing.
    unknown, nested = columns.item if columns is not None and columns.lenient else None, "error('nested')"
    values = ", ".join(
        f"CASE WHEN json_type(x[{i}]) IN ('ARRAY', 'OBJECT') "
        f"THEN {'NULL' if name == unknown else nested} ELSE x[{i}]->>'$' END AS {quoted(name)}"
        for i, name in enumerate(names, 1)
    )
    pointers = ", ".join(map(_pointer, names))
    return f"SELECT {values} FROM (SELECT json_extract(json, [{pointers}]) AS x FROM objects)"


def _stamp(path: Path | None) -> tuple[int, ...]:
    """Device, inode, size and time of the last change."""
    with suppress(OSError):
        facts = os.stat(path or "")
        return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
    return ()


def _connection(folder: str, memory: int = MEMORY) -> duckdb.DuckDBPyConnection:
    """A private database in memory that spills into a folder of its own."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2),
            "memory_limit": f"{memory}B",
            "temp_directory": f"{folder}/spilled",
            "max_temp_directory_size": f"{SPILLED}B",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
        },
    )
    # In a notebook DuckDB prints a progress bar; where it cannot print one, it refuses this setting.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (True,):
        connection.execute("SET enable_progress_bar = false")
    return connection


def _frame(table: Any, columns: Columns | None) -> Any:
    """A dataframe as DuckDB takes it; what it does not take is refused by its type."""
    library = type(table).__module__.split(".")[0]
    if isinstance(table, duckdb.DuckDBPyRelation):
        if len(set(table.columns)) < len(table.columns):
            raise same_name(None)
        table, library = table.to_arrow_table(), "pyarrow"
    if library == "pyspark":
        needed = table.columns if columns is None else columns.needed
        return table.select(*(f"`{name}`" for name in needed if name in table.columns)).toArrow()
    if type(table).__name__ == "LazyFrame":
        table = table.collect()
    if library not in ("pandas", "polars", "pyarrow") or not hasattr(table, "columns"):
        known = "a pandas, polars, pyarrow, DuckDB or Spark frame or a path"
        raise TableError(f"the table must be {known}, got {type(table).__name__}")
    if columns is None:
        return table
    table = _selected(table, columns)
    if not columns.lenient:
        return table
    return _with_unknown(table, columns) if library == "pandas" else _valid(table, columns)


def _selected(table: Any, columns: Columns) -> Any:
    """The needed columns of a frame, so that no value of another one is looked at; all if one is lacking."""
    of_arrow = type(table).__module__.split(".")[0] == "pyarrow"
    names = [str(name).strip() for name in (table.schema.names if of_arrow else table.columns)]
    if len(set(names)) < len(names):
        raise same_name(None)
    if not set(columns.needed) <= set(names):
        return table  # it will be refused, with the names that it has
    kept = [i for i, name in enumerate(names) if name in columns.needed]
    if of_arrow:
        return table.select(kept)
    return table.iloc[:, kept] if hasattr(table, "iloc") else table[:, kept]


def _with_unknown(frame: Any, columns: Columns) -> Any:
    """A pandas frame whose columns of Python objects hold what is asked of them: other items are unknown.

    What DuckDB takes such a column for would depend on what one person has in it.
    """
    import pandas

    changed: dict[Any, Any] = {}
    for name in frame.columns if frame.columns.is_unique else ():
        values, asked = frame[name], str(name).strip()
        if isinstance(values.array, pandas.arrays.ArrowExtensionArray):
            import pyarrow as pa

            texts = _valid_texts(pa.chunked_array(pa.array(values.array)))
            changed[name] = pandas.arrays.ArrowExtensionArray(texts)
            continue
        if asked not in columns.needed or values.dtype not in ("object", "category", "string"):
            continue
        cells = [
            None if cell is pandas.NA or cell is pandas.NaT or _is_nan(cell) else cell
            for cell in values.tolist()
        ]
        if asked == columns.item:
            kept = [_item(cell, integers=columns.integers) for cell in cells]
            changed[name] = pandas.array(kept, dtype="Int64" if columns.integers else "string")
        elif all(cell is None or isinstance(cell, str) for cell in cells):
            kept = [cell if cell is None else mended.whole_text(cell) for cell in cells]
            changed[name] = pandas.array(kept, dtype="string")
        elif asked == columns.weight and (numbers := _numbers(cells)) is not None:
            changed[name] = numbers
    return frame.assign(**changed) if all(isinstance(name, str) for name in changed) else frame


def _is_nan(cell: Any) -> bool:
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    # A signalling NaN may be compared with nothing.
    return cell.is_nan() if isinstance(cell, Decimal) else isinstance(cell, float) and math.isnan(cell)


_NO_NUMBERS = (bool, np.timedelta64)
"""Types that are integers to Python or numpy, and to nobody else."""


def _item(cell: Any, *, integers: bool) -> str | int | None:
    """An item that can be a category, which are texts or integers; None for any other."""
    if isinstance(cell, str):
        return None if integers else mended.whole_text(cell)
    number = integers and isinstance(cell, int | float | np.integer | np.floating)
    if number and not isinstance(cell, _NO_NUMBERS) and abs(cell) < 1 << 53 and cell == int(cell):
        return int(cell)
    return None


def _numbers(cells: Sequence[Any]) -> list[float] | None:
    """Amounts as doubles, NaN for a missing one; None if they are not all numbers."""
    kinds = (int, float, Decimal, np.integer, np.floating)
    if any(isinstance(cell, _NO_NUMBERS) or not isinstance(cell, (*kinds, type(None))) for cell in cells):
        return None
    with suppress(ValueError, OverflowError):  # a signalling NaN, an integer beyond all doubles
        return [math.nan if cell is None else float(cell) for cell in cells]
    return None


def _valid(table: Any, columns: Columns) -> Any:
    """An arrow table whose texts are UTF-8, which arrow does not look at by itself."""
    if type(table).__module__.split(".")[0] != "pyarrow":
        return table
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        if name.strip() in columns.needed and (texts := _valid_texts(column)) is not column:
            table = table.set_column(i, name, texts)
    return table


def _valid_texts(column: Any) -> Any:
    """An arrow column; if it has a text that is not UTF-8, in any type that arrow has for texts, a copy."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind not in (pa.string(), pa.large_string(), pa.string_view()):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.cast(kind).cast(pa.large_binary()).to_pylist()
        texts = (None if cell is None else cell.decode("utf-8", mended.REPLACED) for cell in cells)
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    return column


def _mixed_types(table: Any) -> dict[str, str]:
    """The columns of a pandas frame with values of several types: DuckDB would make text of them."""
    if type(table).__module__.split(".")[0] != "pandas":
        return {}
    from pandas.api.types import infer_dtype

    kinds = {str(name).strip(): infer_dtype(values) for name, values in table.items() if values.dtype == "O"}
    mixed = ("mixed", "mixed-integer", "boolean", "bytes")
    return {name: kind.upper() for name, kind in kinds.items() if kind in mixed}


_GUESS_NOTHING = "hive_partitioning = false, union_by_name = false, filename = false"
"""A column is one of the file's: no folder on its path, and not its name."""


def _file(source: Source, path: Path, folder: Path, *, lenient: bool) -> tuple[str, list[str]]:
    """The query that reads a file, and the paths that may be read."""
    kind, actual = source.kind, path
    if kind != ".parquet":
        actual = _in_utf_8(source, path, folder, lenient=lenient)
    packed = files.compression_of(actual)
    if kind == ".parquet":
        name, allowed = _pattern(actual)
        return f"SELECT * FROM read_parquet({name}, {_GUESS_NOTHING}, file_row_number = false)", allowed
    if kind in files.JSONS:
        if lenient and packed != "zstd" and mended.has_halves(files.unpacked(actual)):
            actual, packed = _copy(actual, folder / "whole.json", mended.without_halves), "none"
            source.replaced = True
        name, allowed = _pattern(actual)
        first = next(files.unpacked(actual), b"").lstrip()[:1]
        form = {b"[": "array", b"{": "newline_delimited"}.get(first, "auto")
        options = f"format = '{form}', maximum_object_size = {mended.LONGEST}, {_GUESS_NOTHING}"
        packed = packed.replace("none", "uncompressed")
        return f"SELECT json FROM read_json_objects({name}, {options}, compression = '{packed}')", allowed
    name, allowed = _pattern(actual)
    options = (
        f"auto_detect = false, compression = '{packed}', max_line_size = {mended.LONGEST}, "
        f"buffer_size = {mended.LONGEST}, {_GUESS_NOTHING}"
    )
    rows = source.rows(  # whatever stands below the header
        f"SELECT line FROM read_csv({name}, {options}, header = false, delim = chr(1), quote = '', "
        f"escape = '', strict_mode = false, ignore_errors = true, columns = {{'line': 'VARCHAR'}}) LIMIT 60"
    )
    lines = [(line or "").removeprefix("\ufeff") for (line,) in rows]
    source.separator, header = header_of(lines, kind, source.dialect)
    if len({name.casefold() for name in header}) < len(header):  # to DuckDB they are the same
        raise same_name(path)
    if packed != "zstd" and not mended.has_even_lines(files.unpacked(actual)):
        separator = source.separator
        even = _copy(actual, folder / f"even{kind}", lambda pieces: mended.with_even_lines(pieces, separator))
        name, allowed = _pattern(even)
        options = options.replace(f"'{packed}'", "'none'")
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in header)
    options += f", header = true, delim = {text(source.separator)}, quote = '\"', escape = '\"'"
    options += ", strict_mode = true, allow_quoted_nulls = false"
    return f"SELECT * FROM read_csv({name}, {options}, columns = {{{columns}}})", allowed


def _pattern(path: Path) -> tuple[str, list[str]]:
    """The SQL of a path, which DuckDB takes for a pattern, and what it must be allowed to read."""
    actual = os.path.realpath(path)
    pattern = glob.escape(actual)
    return text(pattern), [pattern, actual]


def _in_utf_8(source: Source, path: Path, folder: Path, *, lenient: bool) -> Path:
    """A text file that is UTF-8: itself, or a copy."""
    encoding = encoding_of(path, source.dialect) if source.kind in files.TEXTS else "utf-8"
    packed = files.compression_of(path)
    if encoding == "utf-8" and (packed == "zstd" or mended.is_utf_8(files.unpacked(path))):
        return path
    if encoding == "utf-8" and not lenient:
        kind = source.kind[1:]
        hint = _ENCODING if source.kind in files.TEXTS else ()
        raise TableError(f"{path} cannot be read as {kind}: not UTF-8", *hint)
    return as_utf_8(source, path, encoding, folder, lenient=lenient)


def _copy(path: Path, copy: Path, change: Callable[[Iterator[bytes]], Iterator[bytes]]) -> Path:
    """A changed copy of a file, for its owner alone; an earlier copy of ours is not needed any more."""
    with open(copy, "xb", opener=private_file) as target:
        for piece in change(files.unpacked(path)):
            target.write(piece)
    if path.parent == copy.parent:
        path.unlink()
    return copy


def encoding_of(path: Path, dialect: Dialect) -> str:
    """The encoding that was set, else UTF-16 where the file begins with its mark, else UTF-8."""
    marked = next(files.unpacked(path), b"").startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return dialect.encoding or ("utf-16" if marked else "utf-8")


def as_utf_8(source: Source, path: Path, encoding: str, folder: Path, *, lenient: bool) -> Path:
    """The path of a copy of a text file in UTF-8, which DuckDB reads."""
    # Latin-1 is read as cp1252, which has the same letters, and others where Latin-1 has none.
    if files.compression_of(path) == "zstd":
        raise TableError(f"{path} is packed with zstd, and then UTF-8 is read only: unpack it first (unzstd)")
    codec, copy = "cp1252" if encoding == "latin-1" else encoding, folder / f"text{files.kind_of(path)}"
    with suppress(UnicodeDecodeError):
        return _copy(path, copy, lambda pieces: mended.in_utf_8(pieces, codec))
    copy.unlink()
    if not lenient:  # out of the handler: its error quotes the file
        raise TableError(f"{path} cannot be read as text in {encoding}")
    source.replaced = True
    return _copy(path, copy, lambda pieces: mended.in_utf_8(pieces, codec, mended.REPLACED))


def header_of(lines: Sequence[str], kind: str, dialect: Dialect) -> tuple[str, list[str]]:
    """The separator that was set, else the one that splits the header into most names; and these names."""
    # Of equals the one that the name of the file promises comes first.
    promised = "\t" if kind == ".tsv" else ","
    headers: dict[str, list[str]] = {}
    for separator in [dialect.separator] if dialect.separator else [promised, *SEPARATORS.values()]:
        with suppress(csv.Error):
            reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
            headers[separator] = next(reader, [])
    separator = max(headers, key=lambda key: len(headers[key]), default=dialect.separator or promised)
    return separator, headers.get(separator, [])


_FIELDS = (
    " (every line needs the same number of fields; if need be, set the separator: ", Setting("separator"), ")"
)  # fmt: skip
_RECORDS = (" (records are expected, with texts and numbers in them)",)
_ENCODING = (" (set its encoding: ", Setting("encoding", "cp1252"), ")")
_HINTS = dict.fromkeys(files.TEXTS, _FIELDS) | dict.fromkeys(files.JSONS, _RECORDS)


def _translated(
    work: Callable[[], Result], path: Path | None = None, what: str = "the table cannot be read"
) -> Result:
    """Do something with DuckDB; its errors become ours, without their words."""
    try:
        return work()
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as problem:
        if isinstance(problem.__cause__, KeyboardInterrupt | SystemExit):  # DuckDB wraps what a signal raised
            raise problem.__cause__ from None
        if "interrupt" in str(problem)[:40].lower():
            raise KeyboardInterrupt from None
        reason = type(problem).__name__
        if any(words in str(problem) for words in ("utf-8 encoded", "not valid UTF8", "nvalid unicode")):
            reason = "not UTF-8"
    if path is None:
        raise TableError(f"{what}: {reason}")
    kind = files.kind_of(path)
    if document := files.document_of(path):  # asked only now: nothing in a table may refuse it
        raise TableError(f"{path} is a {document} file, not a table: are the files the other way round?")
    hint: tuple[object, ...] = _ENCODING if reason == "not UTF-8" else _HINTS.get(kind, ())
    raise TableError(f"{path} cannot be read as {kind[1:]}: {reason}", *hint)


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("'", "''") + "'"


def same_name(path: Path | None) -> TableError:
    """The error for a table two of whose columns have the same name."""
    what = "the table" if path is None else path
    return TableError(f"{what} cannot be read: two of its columns have the same name")


USUAL_NAMES = frozenset(
    {"user", "users", "user_id", "userid", "person", "id", "item", "items", "item_id", "genre", "category"}
    | {"count", "weight", "amount", "probability", "rating", "group", "date", "time", "timestamp"}
    | {"mechanism", "epsilon"}
)
"""Names that a message may show beside those that are asked for: any other may be that of a person."""


def require(needed: Sequence[str], present: Sequence[str], head: Callable[[], Any] | None = None) -> None:
    """Refuse a table without a needed column, with the usual and needed names that it has.

    A table without a header, a damaged or a transposed one has somebody's data where names should be. So
    names are listed only if the columns look like names, no value below is one of them, and either one of
    them is needed or a column holds numbers below its name; and of these only usual and needed ones, because
    a table with a column for each person looks like any other.
    """
    name = next((name for name in needed if name not in present), None)
    if name is None:
        return
    known = USUAL_NAMES | {asked.casefold() for asked in needed}
    shown = [column for column in present if column.casefold() in known]
    many = f"{len(present)} column{'s' if len(present) != 1 else ''}"
    if not shown or head is None or not _are_names(present, needed, head):
        first = f"the table has {many}; is the first line of the table a header?"
        raise TableError(f"there is no column {name!r}: {first}{_other_name(name)}")
    folded = {column.casefold(): column for column in shown}
    near = get_close_matches(name.casefold(), list(folded), n=1)
    meant = f"; did you mean {folded[near[0]]!r}?" if near else ""
    if near == [name.casefold()]:
        meant += " (of two tables with different names make a prior of the public one first)"
    others = "" if len(shown) == len(present) else f"{many}, among them "
    raise TableError(f"there is no column {name!r}; the table has {others}{', '.join(shown)}{meant}")


def _other_name(name: str) -> str:
    return f" If it has another name, pass --{name} ({name}=)." if name in ("user", "item") else ""


def _are_names(present: Sequence[str], needed: Sequence[str], head: Callable[[], Any]) -> bool:
    """Whether few short names that can be printed are names of columns, as far as the rows below tell."""
    if len(present) > MOST_SHOWN or len(", ".join(present)) > LONGEST_LIST:
        return False
    if not all(0 < len(name) <= LONGEST_SHOWN and name.isprintable() for name in present):
        return False
    if any(name[0].isdigit() or _NUMBER.fullmatch(name) for name in present):
        return False
    folded, wanted = ({name.strip().casefold() for name in names} for names in (present, needed))
    if not folded & wanted and len(needed) > 1:
        return False
    try:
        rows = [["" if value is None else str(value).strip().casefold() for value in row] for row in head()]
    except SottovoceError:  # the message without the list is always right
        return False
    if not rows or any(value in folded | wanted for row in rows for value in row):
        return False
    return bool(folded & wanted) or any(
        all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=True)
    )


_NUMBER = re.compile(
    "[-+]?[0-9]+([.,][0-9]*)*(e[-+]?[0-9]+)?%?|[-+]?[.,][0-9]+%?|[-+]?(nan|inf)", re.IGNORECASE
)
"""A number, perhaps with thousands apart or as a percentage."""


# --- records --------------------------------------------------------------------------------------------


def count_table(table: Any, columns: Columns, dialect: Dialect | None = None) -> Tally:
    """The counts of a table, all in memory."""
    with opened(table, dialect, columns) as source:
        return tally_of(source, columns)


def tally_of(source: Source, columns: Columns) -> Tally:
    """The counts of an open table, all in memory."""
    return next(ordered_cells(source, columns).batches())


@dataclass(frozen=True)
class Cells:
    """The records of an open table, which DuckDB holds as codes in the order of group, user and item."""

    # `cells` has p, the number of the group times that of all users plus that of the user, and i, the item's.
    # `name_u` has the names of the users.
    source: Source
    columns: Columns
    groups: tuple[str, ...]
    items: tuple[Category, ...]
    users: int
    integers: bool  # whether the column of the user has integers

    def batches(self, rows: int | None = None, *, named: bool = True) -> Iterator[Tally]:
        """The counts at once, or in batches of about so many rows, each of whole users of one group."""
        starts = [0, len(self.groups) * self.users]
        if rows is not None:
            starts += [group * self.users for group in range(len(self.groups))]
            starts += [p for (p,) in self.source.rows(f"SELECT p FROM cells WHERE rowid % {rows} = 0")]
        for low, high in pairwise(sorted(set(starts))):
            tally = self._counted(low, high, named)
            if rows is None or len(tally.rows):
                yield tally

    def _counted(self, low: int, high: int, named: bool) -> Tally:
        """The counts of all cells, or of those of some users of one group."""
        arrays = self.source.arrays(f"SELECT * FROM cells WHERE p >= {low} AND p < {high}")
        p, i = (np.asarray(arrays[letter]) for letter in "pi")
        first = np.ones(len(p), dtype=bool)
        first[1:] = (p[1:] != p[:-1]) | (i[1:] != i[:-1])
        starts = np.flatnonzero(first)
        rows: IntArray = np.diff(starts, append=len(p))
        if "n" in arrays:
            rows = np.add.reduceat(np.asarray(arrays["n"]), starts).astype(np.intp)
        amount = rows.astype(np.float64)
        if "a" in arrays:
            amount = np.add.reduceat(np.asarray(arrays["a"]), starts)
        group, user = np.divmod(p[starts].astype(np.intp), self.users)
        users = None
        if self.columns.user is not None:
            where = ""
            if high - low < self.users * len(self.groups):
                user = numbered(user)[1]
                where = f"WHERE rowid BETWEEN {low % self.users} AND {(high - 1) % self.users}"
                if len(self.groups) > 1:
                    here = f"SELECT p % {self.users} FROM cells WHERE p >= {low} AND p < {high}"
                    where += f" AND rowid IN ({here}) ORDER BY rowid"
            users = np.empty(int(user.max(initial=-1)) + 1, dtype=object)
            if named:
                users = _names(self.source, "u", self.integers, where)
        return Tally(self.groups, users, self.items, group, user, i[starts].astype(np.intp), rows, amount)

    def in_several_groups(self) -> int:
        """How many users have rows in more than one group; spellings of one name are one user."""
        if len(self.groups) == 1 or self.columns.user is None:
            return 0
        ((several,),) = self.source.rows(
            f"SELECT count(*) FROM (SELECT {_FORM} AS form FROM (SELECT DISTINCT p FROM cells) "
            f"JOIN name_u ON p % {self.users} = name_u.rowid "
            f"GROUP BY form HAVING count(DISTINCT p // {self.users}) > 1)"
        )
        return int(several)

    def spelled_twice(self) -> int:
        """How many users have a name that occurs in several spellings: blanks around it, or Unicode forms."""
        forms = f"SELECT {_FORM} AS form FROM name_u GROUP BY form HAVING count(*) > 1"
        return int(self.source.rows(f"SELECT count(*) FROM ({forms})")[0][0])

    def named_by_integers(self) -> bool:
        """Whether results can name users by integers: the column has them, or their usual texts (not 007)."""
        if not self.integers and self.source.kind not in (*files.TEXTS, *files.JSONS):
            return False
        usual = f"SELECT bool_and(regexp_full_match(name, '{_INTEGER}')) FROM name_u"
        return bool(self.source.rows(usual)[0][0])


def ordered_cells(source: Source, columns: Columns) -> Cells:
    """Check the records of an open table, and have DuckDB code and order them."""
    integers = _make_records(source, columns)
    if columns.weight is not None:
        _check_amounts(source, columns.weight)
    names: dict[str, npt.NDArray[np.object_]] = {}
    for letter, is_integer in integers.items():
        order = "name::HUGEINT" if is_integer and source.path is None else "name"
        source.run(
            f"CREATE OR REPLACE TEMP TABLE name_{letter} AS "
            f"SELECT name FROM (SELECT DISTINCT {letter} AS name FROM records) ORDER BY {order} NULLS LAST"
        )
        if letter != "u":
            names[letter] = _names(source, letter, is_integer)
    _check_names(source, columns, names)
    users = int(source.rows("SELECT count(*) FROM name_u")[0][0]) if "u" in integers else 1
    numbers = {"g": f"name_g.rowid * {users}", "u": "name_u.rowid"}
    person = " + ".join(sql for letter, sql in numbers.items() if letter in integers) or "0"
    joins = " ".join(f"JOIN name_{k} ON {k} IS NOT DISTINCT FROM name_{k}.name" for k in integers)
    sums = "".join([", a" if columns.weight is not None else "", ", n" if columns.times is not None else ""])
    cells = f"SELECT {person} AS p, name_i.rowid::INTEGER AS i{sums} FROM records {joins}"
    order = f"p, i{sums}"
    if "u" not in integers:  # a user has few equal records: grouping them would cost more than it saves
        cells = f"SELECT p, i{sums and ', k.a * count(*) AS a'}, count(*) AS n FROM ({cells}) AS k"
        order = f"p, i{sums and ', k.a'}"
        cells += f" GROUP BY {order}"
    source.run(f"CREATE OR REPLACE TEMP TABLE cells AS {cells} ORDER BY {order}")
    source.check_unchanged()  # the cells are a table of our own from here on
    _check_all_there(source, "count(*)" if "u" in integers else "coalesce(sum(n), 0)")
    groups = tuple(map(str, names["g"])) if "g" in names else (EVERYBODY,)
    return Cells(source, columns, groups, tuple(names["i"].tolist()), users, integers.get("u", False))


def first_cells(source: Source, users: int) -> dict[int, tuple[int, int]]:
    """Of users with different cells, by their numbers: the group and the item of their first row.

    In the order of the rows, which a tally has lost. The table is the one that `ordered_cells` coded last.
    """
    letters = [letter for (letter,) in source.rows("SELECT column_name FROM (DESCRIBE records)")]
    names = " ".join(
        f"JOIN name_{k} ON {k} IS NOT DISTINCT FROM name_{k}.name" for k in "gui" if k in letters
    )
    group = "name_g.rowid" if "g" in letters else "0"
    rows = source.rows(
        f"SELECT name_u.rowid, arg_min({group}, place), arg_min(name_i.rowid, place) "
        f"FROM (SELECT row_number() OVER () AS place, * FROM records) {names} WHERE name_u.rowid IN "
        f"(SELECT p % {users} FROM cells GROUP BY 1 HAVING min(p) < max(p) OR min(i) < max(i)) GROUP BY 1"
    )
    source.check_unchanged()
    return {user: (group, item) for user, group, item in rows}


def _check_all_there(source: Source, rows: str) -> None:
    """Refuse a table whose cells stand for fewer or more records than it has: somebody would get no row."""
    ((found, expected),) = source.rows(f"SELECT (SELECT {rows} FROM cells), (SELECT count(*) FROM records)")
    if found != expected:
        raise TableError(
            "the table cannot be read: it has names that are not told apart (are its texts UTF-8?)"
        )


def _names(source: Source, letter: str, integers: bool, where: str = "") -> npt.NDArray[np.object_]:
    """Names as Python has them: integers where a frame has them, and None where one is missing."""
    kind = int if integers and source.path is None else str
    array = source.arrays(f"SELECT name FROM name_{letter} {where}")["name"]
    cells = zip(np.ma.getdata(array), np.ma.getmaskarray(array), strict=True)
    return np.array([None if missing else kind(name) for name, missing in cells], dtype=object)


def _make_records(source: Source, columns: Columns) -> dict[str, bool]:
    """Make the relation `records`; return whether names are integers, by their letter."""
    source.require(columns.needed)
    named = {
        letter: item_as_text(source, columns) if letter == "i" else _short_name(source, name)
        for letter, name in columns.names.items()
    }
    selected = [f"{sql} AS {letter}" for letter, (sql, _) in named.items()]
    if columns.weight is not None:
        selected.append(f"{_amount(source, columns.weight, columns.lenient)} AS a")
    if columns.times is not None:
        selected.append(f"{quoted(columns.times)} AS n")
    query = f"SELECT {', '.join(selected)} FROM source"
    if source.dialect.missing == "drop" and columns.required:
        present = " AND ".join(f"{letter} IS NOT NULL" for letter in columns.required)
        query = f"SELECT * FROM ({query}) WHERE {present}"
    # A text is parsed once, a column store and a frame may be scanned several times.
    what = "VIEW" if source.kind in ("", ".parquet") else "TABLE"
    source.run(f"CREATE OR REPLACE TEMP {what} records AS {query}")
    _check_lengths(source, columns)
    return {letter: is_integer for letter, (_, is_integer) in named.items()}


def _short_name(source: Source, name: str) -> tuple[str, bool]:
    """The SQL of a user's or group's name, cut where it is refused anyhow: it would fill the memory."""
    sql, integers = name_as_text(source, name)
    # An empty text is no name, whether its writer quoted it or not.
    return (sql if integers else f"left(nullif({sql}, ''), {LONGEST_NAME + 1})"), integers


def _check_lengths(source: Source, columns: Columns) -> None:
    """Refuse long names of users and groups, which all that is done with them later would multiply."""
    for letter, name in columns.names.items():
        if letter != "i" and source.rows(
            f"SELECT 1 FROM records WHERE length({letter}) > {LONGEST_NAME} LIMIT 1"
        ):
            raise TableError(f"column {name!r} has names of more than {LONGEST_NAME:,} characters")


def name_as_text(source: Source, name: str) -> tuple[str, bool]:
    """The SQL of a column of names as text, and whether they are integers; other types are refused."""
    kind, column = source.types[name], quoted(name)
    if source.kind in workbook.KINDS:
        workbook.check_name(source, name)
    if kind in (*_TEXTS, *_INTEGERS):
        return f"CAST({column} AS VARCHAR)", kind in _INTEGERS
    if kind in _FRACTIONS:
        number = f"nullif(CAST({column} AS DOUBLE), 'NaN'::DOUBLE)"
        large = f"count(*) FILTER (abs({number}) >= {1 << 53})"
        ((fractions, large),) = source.rows(
            f"SELECT count(*) FILTER (trunc({number}) != {number}), {large} FROM source"
        )
        if not fractions and not large:
            return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)", True
        kind = "floats beyond 2^53" if large else "fractions"
    raise TableError(f"column {name!r} must hold text or integers, it holds {kind}")


def item_as_text(source: Source, columns: Columns) -> tuple[str, bool]:
    """The SQL of items as text, and whether they are integers.

    Items that can be no category are cut or, where that is lenient, missing.
    """
    kind, column = source.types[columns.item], quoted(columns.item)
    if columns.lenient and kind in _FRACTIONS:
        number = f"CAST({column} AS DOUBLE)"
        fine = f"trunc({number}) = {number} AND abs({number}) < {1 << 53}"
        return f"CAST(CAST(CASE WHEN {fine} THEN {number} END AS BIGINT) AS VARCHAR)", True
    name, integers = f"CAST({column} AS VARCHAR)", False
    if not columns.lenient or kind not in _TEXTS:
        name, integers = name_as_text(source, columns.item)
    if columns.longest is not None and not integers:
        # Still longer than any category, and cut before it takes memory: a small file may hold long texts.
        name = f"left({name}, {columns.longest + 1})"
    return name, integers


def _amount(source: Source, name: str, lenient: bool) -> str:
    """The SQL of amounts as doubles: null where there is no number, NaN (or zero) where there is nothing."""
    kind, column = source.types[name], quoted(name)
    number = f"CAST({column} AS DOUBLE)"
    if kind in _TEXTS:
        value = f"trim(CAST({column} AS VARCHAR))"
        decimal = source.dialect.decimal or ("none" if source.separator == ";" else "point")
        digits = {"none": "[0-9]+", "point": _DIGITS.format("[.]"), "comma": _DIGITS.format("[,]")}[decimal]
        form = f"[+-]?{digits}([eE][+-]?[0-9]{{1,3}})?"
        number = f"TRY_CAST(replace({value}, ',', '.') AS DOUBLE)"
        number = f"CASE WHEN regexp_full_match({value}, {text(form)}) THEN {number} END"
    elif kind not in (*_INTEGERS, *_FRACTIONS):
        raise TableError(f"column {name!r} must hold numbers, it holds {kind}")
    nothing = f"{column} IS NULL"
    if kind in _TEXTS:  # a writer may quote what is empty
        nothing += f" OR {value} = ''"
    elif lenient and kind in _FRACTIONS:
        nothing += f" OR isnan({number})"
    return f"CASE WHEN {nothing} THEN {'0.0' if lenient else _NOTHING} ELSE {number} END"


_DIGITS = "([0-9]+({0}[0-9]*)?|{0}[0-9]+)"
_NOTHING = "'NaN'::DOUBLE"


def _check_amounts(source: Source, name: str) -> None:
    """Refuse bad amounts; a message counts rows and shows none, and names the option that would help."""
    ((rows, numbers, added, fine),) = source.rows(
        "SELECT count(*), count(a), sum(a), count(*) FILTER (a >= 0 AND a < 'inf'::DOUBLE) FROM records"
    )
    if numbers < rows:
        advice: list[object] = []
        if source.path is not None and source.dialect.decimal is None:
            advice += ["; for decimal commas set ", Setting("decimal", "comma")]
            advice += [", for decimal points in a file with semicolons ", Setting("decimal", "point")]
        if source.path is not None:
            advice.append("; thousands must not be separated")
        wrong = f"{rows - numbers} of {rows} rows do not"
        raise TableError(f"column {name!r} must hold numbers: {wrong}", *advice)
    check_sum(name, rows, fine, added or 0)


def check_sum(name: str, rows: int, fine: int, added: float) -> None:
    """Refuse amounts that are negative or not finite, or whose sum is not finite."""
    if fine < rows:
        wrong = f"{rows - fine} of {rows} rows do not"
        raise TableError(f"column {name!r} must hold finite numbers of at least 0: {wrong}")
    if not math.isfinite(added):
        raise TableError(f"column {name!r} adds up to infinity: divide it by a constant first")


def _check_names(source: Source, columns: Columns, names: Mapping[str, npt.NDArray[np.object_]]) -> None:
    if not len(names["i"]):
        raise TableError("the table is empty: it has no rows")
    for letter, name in columns.required.items():
        if source.rows(f"SELECT count(*) FROM name_{letter} WHERE name IS NULL")[0][0]:
            ((missing,),) = source.rows(f"SELECT count(*) FROM records WHERE {letter} IS NULL")
            advice = (": fill them in, or set ", Setting("missing", "drop")) if source.path else ()
            raise TableError(f"column {name!r} has {missing} missing values", *advice)


# --- what is told ---------------------------------------------------------------------------------------


def amount_column(present: Sequence[str], given: str | None, usual: Sequence[str]) -> str | None:
    """The column of amounts: the one named, else the first of the usual names, in any case of letters."""
    if given is not None:
        return None if given == "none" and given not in present else given
    folded = {column.casefold(): column for column in reversed(present)}
    return next((folded[name] for name in usual if name in folded), None)


def count_missing(
    source: Source, columns: Iterable[str], present: Iterable[str] = (), empty: Sequence[str] = ()
) -> int:
    """How many rows lack a name in one of these columns, and none in `present`; an `empty` one is lacking."""
    lacking = " OR ".join(
        f"nullif(CAST({quoted(name)} AS VARCHAR), '') IS NULL" if name in empty else f"{quoted(name)} IS NULL"
        for name in columns
    )
    there = "".join(f" AND {quoted(name)} IS NOT NULL" for name in present)
    return int(source.rows(f"SELECT count(*) FROM source WHERE ({lacking}){there}")[0][0])


def left_unread(source: Source, columns: Columns) -> str:
    """How many rows were dropped because a name is missing, and which sheet was read, in words."""
    dropping = source.dialect.missing == "drop" and columns.required
    named = {name: letter for letter, name in columns.required.items()}
    empty = [name for name, letter in named.items() if letter != "i"]
    number = count_missing(source, named, empty=empty) if dropping else 0
    dropped = f"; {number:,} rows with a missing name dropped" if number else ""
    if source.replaced:
        dropped += "; what is not text in the file's encoding was replaced"
    return dropped + (f"; {source.sheet}" if source.sheet is not None and str(source.sheet) else "")


# --- writing --------------------------------------------------------------------------------------------


class Writer(ExitStack):
    """A table that is made part by part in bounded memory, and then written whole or not at all."""

    def __init__(self, columns: Mapping[str, type]) -> None:
        super().__init__()
        self._columns = columns
        self._folder = self.enter_context(private_folder())
        self._connection = self.enter_context(closing(_connection(self._folder, WRITER_MEMORY)))
        declared = ", ".join(f"{quoted(name)} {_SQL_TYPES[kind]}" for name, kind in columns.items())
        self._run(f"CREATE TABLE written ({declared})")

    def _run(self, sql: str, given: Sequence[str] = ()) -> None:
        _translated(lambda: self._connection.execute(sql, list(given)), what="the table cannot be written")

    def add(self, part: Mapping[str, Any]) -> None:
        """Add rows: columns of equally many values; a single text stands in every row."""
        rows = max((len(values) for values in part.values() if not isinstance(values, str)), default=0)
        for begin in range(0, rows, PIECE):
            selected, given = list[str](), list[str]()
            for name in self._columns:
                if isinstance(part[name], str):
                    selected.append(text(part[name]))
                    continue
                piece = part[name][begin : begin + PIECE]
                # One text, because DuckDB looks for pandas at every object that it is given.
                given.append(json.dumps([None if value is None else str(value) for value in piece]))
                selected.append(f"unnest(from_json(${len(given)}, '[\"VARCHAR\"]'))")
            self._run(f"INSERT INTO written SELECT {', '.join(selected)}", given)

    def save(self, path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
        """Write everything that was added as the kind of file that the path names, or to standard output."""
        kind = ".csv" if files.is_standard(path) else path.suffix.lower()
        form = {".csv": "CSV, HEADER", ".parquet": "PARQUET", ".json": "JSON, ARRAY true"}[kind]
        made = Path(self._folder) / f"written{kind}"
        open(made, "xb", opener=private_file).close()  # DuckDB writes into it, and leaves its mode
        self._run(f"COPY written TO {text(str(made))} (FORMAT {form}, USE_TMP_FILE false)")
        files.copy_whole(made, path, mode, replace=replace)


_SQL_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def type_of(values: Sequence[Any]) -> type:
    """The type of a column with these values: text, unless all are numbers of one kind that it can hold."""
    kinds = {type(value).__name__.rstrip("_0123456789") for value in values if value is not None}
    small = all(abs(value) < 1 << 63 for value in values if type(value) is int)
    for kind, allowed in {bool: {"bool"}, int: {"int"}, float: {"int", "float"}}.items():
        if kinds and kinds <= allowed and small:
            return kind
    return str
