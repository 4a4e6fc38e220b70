"""Tables on DuckDB: one engine for files and dataframes, which groups, sorts and spills in bounded memory.

Each table gets a connection of its own, which may read that file and nothing else, loads no extension and
reaches no network. A table becomes records: g, u and i name the group, the user and the item, a and s are the
amounts. Names become codes by their order, and arrays of codes and amounts become a `Tally`.

The text of DuckDB's errors quotes data, so it is never shown: an error tells which kind of problem there is.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt

from .. import _naming
from .._validate import IntArray
from ..errors import ParameterError, SottovoceError, TableError
from ..groups import EVERYBODY
from ..prior import Category
from . import files, workbook
from .files import DETECTED, Dialect
from .tally import Tally, numbered

Result = TypeVar("Result")
MEMORY, WRITER_MEMORY, SPILLED = 2560 << 20, 256 << 20, 200 << 30
"""Bytes that DuckDB may hold of a table before it spills to the disk, of a result, and that it may spill."""
PIECE = 50_000
"""Rows that are inserted at once: fewer than DuckDB has in a row group, so that all but the last are full."""
SAMPLED = 200_000
"""Rows of a public table that are looked at for columns that name people."""
MOST_GROUPS = 100
"""Values of a column that may be groups; more are people."""
LARGEST_NAME = 1 << 53
LOOKED_AT = 10_000
"""Rows below the header that are looked at before its names are shown."""
MOST_SHOWN, LONGEST_SHOWN, LONGEST_LIST = 20, 30, 200
"""Columns in a message, characters of a name, and of all names."""
_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_INTEGERS = frozenset((*_SIZES, *(f"U{size}" for size in _SIZES)))
_INTEGER = "0|-?[1-9][0-9]{0,17}"
_SPACE = r"[\s\pZ\x{b}\x{1c}-\x{1f}\x{85}]"
"""What str.strip takes away, as a regular expression of DuckDB."""
_FORM = f"regexp_replace(nfc_normalize(name), '^{_SPACE}+|{_SPACE}+$', '', 'g')"
"""The one form of a name's spellings."""
_MARKS = {"point": (".", ","), "comma": (",", ".")}
_MIXED = ("mixed", "mixed-integer", "boolean", "bytes")
_PLAIN = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?"
_THOUSANDS = r"[+-]?[1-9][0-9]{0,2}([.][0-9]{3})+(,[0-9]*)?"
FINE, NO_NUMBER, NO_AMOUNT, WITH_COMMA, WITH_THOUSANDS, WITH_EITHER = range(6)
"""What an amount is: fine; text that is no number; missing, negative or not finite; or a number only if the
comma is decimal, if it separates thousands, or in both cases."""


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; several items are the columns of a wide table, one per category.

    With `lenient` a row without an item or an amount counts for nothing, and its user is there all the same.
    """

    item: str | Sequence[str]
    user: str | None = None
    weight: str | None = None
    by: str | None = None
    top_by: str | None = None
    lenient: bool = False
    times: str | None = None  # how many records a row stands for; one, without a column

    def __post_init__(self) -> None:
        if not self.long and (self.weight is not None or self.top_by is not None):
            raise ParameterError("a wide table has its amounts in the category columns: leave the weight out")
        if not self.item:
            raise ParameterError("item must name a column, or the columns of a wide table")
        if self.by is not None:
            _naming.group_column(self.by, self.user, self.weight, self.top_by, *self.items)

    @property
    def long(self) -> bool:
        """Whether there is a row per record, and not a column per category."""
        return isinstance(self.item, str)

    @property
    def items(self) -> tuple[str, ...]:
        """The column of the item, or the columns of a wide table."""
        return (self.item,) if isinstance(self.item, str) else tuple(self.item)

    @property
    def names(self) -> dict[str, str]:
        """The columns that name a group, a user or an item, by their letter."""
        named = {"g": self.by, "u": self.user, "i": self.item if self.long else None}
        return {letter: name for letter, name in named.items() if isinstance(name, str)}

    @property
    def amounts(self) -> dict[str, str]:
        """The columns of a long table that are added up, by their letter."""
        return {letter: name for letter, name in {"a": self.weight, "s": self.top_by}.items() if name}

    @property
    def needed(self) -> list[str]:
        """Every column that has to be there, once."""
        return list(dict.fromkeys([*self.names.values(), *self.amounts.values(), *self.items]))


# --- connections ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """An open table: its connection, where it is the relation `source`, and the type of each column."""

    connection: duckdb.DuckDBPyConnection
    types: Mapping[str, str]
    path: Path | None
    dialect: Dialect
    separator: str | None = None
    sheet: workbook.Sheet | None = None
    stamp: tuple[int, ...] | None = None

    def check_unchanged(self) -> None:
        """Refuse a file that was replaced or written to since it was opened: its scans would differ."""
        if self.path is not None and self.stamp != _stamp(self.path):
            raise TableError(f"{self.path} was changed while it was read; nothing was used of it")

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

    def require(self, needed: Sequence[str]) -> None:
        """Refuse a table without a needed column; its columns are listed if they are names and not data."""
        missing = [name for name in needed if name not in self.types]
        if missing:
            raise no_column(missing[0], needed, list(self.types), self.head)

    def head(self) -> list[tuple[Any, ...]]:
        """The first rows."""
        return self.rows(f"SELECT * FROM source LIMIT {LOOKED_AT}")


@contextmanager
def opened(table: Any, dialect: Dialect = DETECTED) -> Iterator[Source]:
    """A file or a dataframe as the relation `source` of a connection that can reach nothing else."""
    path = files.checked(Path(table)) if isinstance(table, str | Path) else None
    with (
        tempfile.TemporaryDirectory(prefix="sottovoce-", ignore_cleanup_errors=True) as folder,
        closing(_connection(folder)) as connection,
    ):
        sql, separator, sheet, allowed = "SELECT * FROM frame", None, None, None
        stamp = None if path is None else _stamp(path)
        if path is None:
            _translated(lambda: connection.register("frame", _frame(table)))
        elif files.kind_of(path) in workbook.KINDS:
            frame, sheet = workbook.read_sheet(path, dialect.sheet)
            connection.register("frame", frame)
            sql += f" WHERE {' OR '.join(f'{quoted(name)} IS NOT NULL' for name in frame.column_names)}"
        else:
            sql, separator, allowed = _file(connection, path, Path(folder), dialect)
        settings = [
            f"SET allowed_paths = [{text(str(allowed))}]" if allowed else "RESET allowed_paths",
            f"SET allowed_directories = [{text(folder)}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ]
        source = Source(connection, {}, path, dialect, separator, sheet, stamp)
        for setting in settings:
            source.run(setting)
        described = source.rows(f"DESCRIBE {sql}")
        kinds = {name: kind for name, kind, *_ in described}
        if len({name.strip() for name in kinds}) < len(described):
            raise same_name(path)
        shown = ", ".join(f"{quoted(name)} AS {quoted(name.strip())}" for name in kinds)
        source.run(f"CREATE TEMP VIEW source AS SELECT {shown} FROM ({sql})")
        yield replace(
            source, types={name.strip(): kind for name, kind in kinds.items()} | _mixed_types(table)
        )


def _stamp(path: Path) -> tuple[int, ...]:
    """Device, inode, size and time of the last change."""
    try:
        facts = path.stat()
    except OSError:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


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
    connection.execute("SET enable_progress_bar = false")  # in a notebook DuckDB would print one
    return connection


def _frame(table: Any) -> Any:
    """A dataframe as DuckDB takes it; what it does not take is refused by its type."""
    if isinstance(table, duckdb.DuckDBPyRelation):
        if len(set(table.columns)) < len(table.columns):
            raise same_name(None)
        return table.to_arrow_table()
    if type(table).__module__.startswith("pyspark"):
        return table.toArrow()
    if type(table).__name__ == "LazyFrame":
        table = table.collect()
    if type(table).__module__.split(".")[0] not in ("pandas", "polars", "pyarrow") or not hasattr(
        table, "columns"
    ):
        raise TableError(
            f"the table must be a pandas, polars, pyarrow, DuckDB or Spark frame or a path, "
            f"got {type(table).__name__}"
        )
    return table


def _mixed_types(table: Any) -> dict[str, str]:
    """The columns of a pandas frame with values of several types: DuckDB would make text of them."""
    if type(table).__module__.split(".")[0] != "pandas":
        return {}
    from pandas.api.types import infer_dtype

    kinds = {str(name).strip(): infer_dtype(values) for name, values in table.items() if values.dtype == "O"}
    return {name: kind.upper() for name, kind in kinds.items() if kind in _MIXED}


def _file(
    connection: duckdb.DuckDBPyConnection, path: Path, folder: Path, dialect: Dialect
) -> tuple[str, str | None, Path]:
    """The query that reads a file, the separator of a text table, and the path that it reads."""
    kind, packed, actual = files.kind_of(path), files.compression_of(path), Path(os.path.realpath(path))
    if packed == "gzip":
        files.check_gzip(path)
    if kind in files.TEXTS and (encoding := files.encoding_of(path, dialect)) != "utf-8":
        actual, packed = files.as_utf_8(path, encoding, folder), "none"
    if any(character in str(actual) for character in "*?["):  # DuckDB would take it for a pattern
        copy = folder / f"table{kind}"
        with suppress(OSError):
            os.link(actual, copy)
        actual = copy if copy.exists() else Path(shutil.copyfile(actual, copy))
    name = text(str(actual))
    if kind == ".parquet":
        return f"SELECT * FROM read_parquet({name})", None, actual
    if kind not in files.TEXTS:
        form = "array" if kind == ".json" else "newline_delimited"
        options = f"format = '{form}', records = 'true', maximum_depth = 1, sample_size = -1"
        packed = packed.replace("none", "uncompressed")
        return f"SELECT * FROM read_json({name}, {options}, compression = '{packed}')", None, actual
    options = f"auto_detect = false, strict_mode = true, compression = '{packed}'"
    raw = (
        f"SELECT line FROM read_csv({name}, {options}, header = false, delim = chr(1), quote = '', "
        f"escape = '', columns = {{'line': 'VARCHAR'}}) LIMIT 60"
    )
    found = _translated(lambda: connection.execute(raw).fetchall(), path)
    lines = [(line or "").removeprefix("\ufeff") for (line,) in found]
    separator = files.separator_of(lines, kind, dialect)
    header = files.header_of(lines, separator)
    if len(set(header)) < len(header):
        raise same_name(path)
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in header)
    options += (
        f", header = true, delim = {text(separator)}, quote = '\"', escape = '\"', allow_quoted_nulls = false"
    )
    return f"SELECT * FROM read_csv({name}, {options}, columns = {{{columns}}})", separator, actual


_HINTS = {
    "not UTF-8": " (set its encoding, such as --read encoding=cp1252)",
    **dict.fromkeys(
        files.TEXTS,
        " (every line needs the same number of fields; if need be, set the separator: --read separator=…)",
    ),
    ".json": " (a list of records is expected)",
}


def _translated(
    work: Callable[[], Result], path: Path | None = None, what: str = "the table cannot be read"
) -> Result:
    """Do something with DuckDB; its errors become ours, without their words."""
    try:
        return work()
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as problem:
        _raise_signal(problem)
        reason = type(problem).__name__
        if "utf-8 encoded" in str(problem) or "not valid UTF8" in str(problem):
            reason = "not UTF-8"
    if path is None:
        raise TableError(f"{what}: {reason}")
    kind = files.kind_of(path)
    hint = _HINTS.get(reason) or _HINTS.get(kind, "")
    raise TableError(f"{path} cannot be read as {kind[1:]}: {reason}{hint}")


def _raise_signal(problem: Exception) -> None:
    """Raise what a signal raised while DuckDB worked, which it turns into an error of its own."""
    if isinstance(problem.__cause__, KeyboardInterrupt | SystemExit):
        raise problem.__cause__ from None
    if "interrupt" in str(problem)[:40].lower():
        raise KeyboardInterrupt from None


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("'", "''") + "'"


def same_name(path: Path | None) -> TableError:
    """The error for a table two of whose columns have the same name."""
    if path is None:
        return TableError("two columns of the table have the same name")
    return TableError(f"{path} cannot be read: two of its columns have the same name")


Head = Callable[[], Sequence[Sequence[Any]]]
"""Gives the first rows of a table; called only where a column is missing."""


def no_column(
    name: str, needed: Sequence[str], present: Sequence[str], head: Head | None = None
) -> TableError:
    """The error for a missing column, with the columns that there are and the nearest name.

    A table without a header, a damaged or a transposed one has somebody's data where names should be. So the
    columns are listed only if they look like names, no value below is one of them, and either one of them is
    needed or a column holds numbers below its name.
    """
    if not may_be_listed(present, needed, head):
        return TableError(f"there is no column {name!r}: is the first line of the table a header?")
    folded = {column.casefold(): column for column in present}
    near = get_close_matches(name.casefold(), list(folded), n=1)
    meant = f"; did you mean {folded[near[0]]!r}?" if near else ""
    return TableError(f"there is no column {name!r}; the table has {', '.join(present)}{meant}")


def may_be_listed(present: Sequence[str], needed: Sequence[str], head: Head | None) -> bool:
    """Whether these are names that may be shown, where `needed` are names that a column should have."""
    missing = [name for name in needed if name not in present]
    folded = {name.casefold() for name in present}
    nearly = any(name.casefold() in folded for name in missing)
    if head is None or not are_plain(present) or not (nearly or len(missing) < max(len(needed), 2)):
        return False
    try:
        rows = [[str(value).strip() for value in row if value is not None] for row in head()]
    except SottovoceError:  # the message without the list is always right
        return False
    forbidden = {name.strip().casefold() for name in (*present, *needed)}
    if not rows or any(value.casefold() in forbidden for row in rows for value in row):
        return False
    columns = list(zip(*rows, strict=False)) if len({len(row) for row in rows}) == 1 else []
    return nearly or len(missing) < len(needed) or any(all(map(is_number, values)) for values in columns)


def is_number(value: str) -> bool:
    """Whether a text is a number, perhaps with thousands apart or as a percentage."""
    bare = value.removesuffix("%")
    for plain in (bare.replace(",", "."), bare.replace(".", "").replace(",", ".")):
        with suppress(ValueError):
            float(plain)
            return True
    return False


def are_plain(names: Sequence[str]) -> bool:
    """Whether these are few short names that can be printed and are no numbers."""
    return (
        len(names) <= MOST_SHOWN
        and sum(map(len, names)) + 2 * len(names) <= LONGEST_LIST
        and all(name and len(name) <= LONGEST_SHOWN and name.isprintable() for name in names)
        and not any(name[0].isdigit() or is_number(name) for name in names)
    )


# --- records --------------------------------------------------------------------------------------------


def count_table(
    table: Any,
    *,
    item: str | Sequence[str],
    user: str | None = None,
    weight: str | None = None,
    by: str | None = None,
    top_by: str | None = None,
    dialect: Dialect = DETECTED,
    lenient: bool = False,
) -> Tally:
    """Count a table once, for several calls of `build_prior` and `read_users`.

    `dialect` is how a file is written, where that is not to be detected. With `lenient` a row without an item
    or an amount counts for nothing; otherwise it is refused.

    >>> import pandas
    >>> count_table(pandas.DataFrame({"who": ["a", "a"], "genre": ["War", "War"]}), user="who", item="genre")
    Tally(2 rows: 1 groups, 1 users, 1 items)
    """
    columns = Columns(item, user, weight, by, top_by, lenient)
    if type(table).__module__.startswith("pyspark"):  # only what is needed comes to this process
        table = table.select(*(f"`{name}`" for name in columns.needed if name in table.columns))
    with opened(table, dialect) as source:
        return tally_of(source, columns)


def tally_of(source: Source, columns: Columns) -> Tally:
    """The counts of an open table, all in memory."""
    return next(ordered_cells(source, columns).batches())


@dataclass(frozen=True)
class Cells:
    """The records of an open table, which DuckDB holds as codes in the order of group, user and item.

    They are the relation `cells`: p is the number of the group times that of all users, plus the number of
    the user; i is the number of the item. `name_u` has the names of the users.
    """

    source: Source
    columns: Columns
    groups: tuple[str, ...]
    items: tuple[Category, ...]
    users: int
    integers: bool  # whether the column of the user has integers

    def batches(self, rows: int | None = None, *, named: bool = True) -> Iterator[Tally]:
        """The counts in batches of about so many rows: of one group each, with all rows of their users.

        Without a number there is one batch of everything. Unless `named`, users have no names.
        """
        if rows is None:
            yield self._counted(0, len(self.groups) * self.users, named)
            return
        found = self.source.rows(f"SELECT p FROM cells WHERE rowid % {rows} = 0")
        starts = [group * self.users for group in range(len(self.groups) + 1)]
        for low, high in pairwise(sorted({*starts, *(p for (p,) in found)})):
            tally = self._counted(low, high, named)
            if len(tally.rows):
                yield tally

    def _counted(self, low: int, high: int, named: bool) -> Tally:
        """The counts of all cells, or of those of some users of one group."""
        arrays = self.source.arrays(f"SELECT * FROM cells WHERE p >= {low} AND p < {high}")
        p, i = (np.asarray(arrays[letter]) for letter in "pi")
        first = np.ones(len(p), dtype=bool)
        first[1:] = (p[1:] != p[:-1]) | (i[1:] != i[:-1])
        starts = np.flatnonzero(first)
        rows: IntArray = np.diff(starts, append=len(p))
        times: Any = 1
        if "n" in arrays:
            times = np.asarray(arrays["n"])
            rows = np.add.reduceat(times, starts).astype(np.intp)
        added = {
            letter: np.add.reduceat(np.asarray(arrays[letter]) * (1 if self.columns.times else times), starts)
            for letter in _sums(self.columns)
            if len(p)
        }
        amount = added.get("a", rows.astype(np.float64))
        group, user = np.divmod(p[starts].astype(np.intp), self.users)
        users = None
        if self.columns.user is not None:
            if high - low < self.users * len(self.groups):
                user = numbered(user)[1]
            users = self._names(low, high) if named else np.empty(int(user.max(initial=-1)) + 1, dtype=object)
        return Tally(
            groups=self.groups,
            users=users,
            items=self.items,
            group=group,
            user=user,
            item=i[starts].astype(np.intp),
            rows=rows,
            amount=amount,
            score=added.get("s", amount),
            by=self.columns.by,
            long=self.columns.long,
        )

    def _names(self, low: int, high: int) -> npt.NDArray[np.object_]:
        """The names of the users of all cells, or of those of one group from one number up to another."""
        where = ""
        if high - low < self.users * len(self.groups):
            where = f"WHERE rowid BETWEEN {low % self.users} AND {(high - 1) % self.users}"
            if len(self.groups) > 1:
                here = f"SELECT p % {self.users} FROM cells WHERE p >= {low} AND p < {high}"
                where += f" AND rowid IN ({here}) ORDER BY rowid"
        array = self.source.arrays(f"SELECT name FROM name_u {where}")["name"]
        return _objects(array, int if self.integers and self.source.path is None else str)

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
        """Whether users are named by integers where they come from, so that results can name them so.

        In a text table they are if every name is the usual text of an integer (not 007); else the column
        tells.
        """
        source = self.source
        kind = source.types[str(self.columns.user)]
        if not self.integers and (kind != "JSON" and source.kind not in files.TEXTS):
            return False
        if kind == "JSON":
            column = quoted(str(self.columns.user))
            if source.rows(f"SELECT count(*) FROM source WHERE json_type({column}) = 'VARCHAR'")[0][0]:
                return False
        return bool(source.rows(f"SELECT bool_and(regexp_full_match(name, '{_INTEGER}')) FROM name_u")[0][0])


def ordered_cells(source: Source, columns: Columns) -> Cells:
    """Check the records of an open table, and have DuckDB code and order them."""
    integers = make_records(source, columns)
    _check_amounts(source, columns)
    names: dict[str, npt.NDArray[np.object_]] = {}
    for letter, is_integer in integers.items():
        order = "name::HUGEINT" if is_integer and source.path is None else "name"
        source.run(
            f"CREATE OR REPLACE TEMP TABLE name_{letter} AS "
            f"SELECT name FROM (SELECT DISTINCT {letter} AS name FROM records) ORDER BY {order} NULLS LAST"
        )
        if letter != "u":
            array = source.arrays("SELECT name FROM name_" + letter)["name"]
            names[letter] = _objects(array, int if is_integer and source.path is None else str)
    _check_names(source, columns, names)
    users = int(source.rows("SELECT count(*) FROM name_u")[0][0]) if "u" in integers else 1
    person = " + ".join(
        sql
        for letter, sql in {"g": f"name_g.rowid * {users}", "u": "name_u.rowid"}.items()
        if letter in integers
    )
    joins = " ".join(
        f"JOIN name_{letter} ON {letter} IS NOT DISTINCT FROM name_{letter}.name" for letter in integers
    )
    sums = "".join(f", {letter}" for letter in _sums(columns))
    ranks = "".join(f", {letter}" for letter in reversed(_sums(columns)))
    # A user has few equal records, so that grouping them would cost more than it saves.
    counted, grouped = ("", "") if "u" in integers else (", count(*) AS n", "GROUP BY ALL")
    if columns.times is not None:
        counted, grouped = ", n", ""
    source.run(
        f"CREATE OR REPLACE TEMP TABLE cells AS SELECT {person or '0'} AS p, name_i.rowid::INTEGER AS i{sums}"
        f"{counted} FROM records {joins} {grouped} ORDER BY p, i{ranks}"
    )
    source.check_unchanged()  # the cells are a table of our own from here on
    groups = tuple(map(str, names["g"])) if "g" in names else (EVERYBODY,)
    return Cells(source, columns, groups, tuple(names["i"].tolist()), users, integers.get("u", False))


def _objects(array: Any, kind: type) -> npt.NDArray[np.object_]:
    """An array of names as Python has them; None where a name is missing."""
    names = np.empty(len(array), dtype=object)
    missing = np.ma.getmaskarray(array)
    names[:] = [
        None if gone else kind(name) for name, gone in zip(np.ma.getdata(array), missing, strict=True)
    ]
    return names


def _sums(columns: Columns) -> dict[str, str]:
    """What is added up, by letter, with its name for messages."""
    if not columns.long:
        return {"a": "the category columns"}
    return {letter: f"column {name!r}" for letter, name in columns.amounts.items()}


def make_records(source: Source, columns: Columns) -> dict[str, bool]:
    """Make the relation `records`; return whether names are integers, by their letter."""
    source.require(columns.needed)
    workbook.check_amounts(source, list(columns.amounts.values() if columns.long else columns.items))
    integers, named = {}, {}
    for letter, name in columns.names.items():
        named[letter], integers[letter] = _name(source, name)
    if columns.long:
        selected = [f"{sql} AS {letter}" for letter, sql in named.items()]
        for letter, name in columns.amounts.items():
            selected += _amount(source, [name], quoted(name), letter, columns.lenient)
        selected += [f"{quoted(columns.times)} AS n"] if columns.times else []
        query = f"SELECT {', '.join(selected)} FROM source"
    else:
        query = _unpivoted(source, columns, named)
        integers["i"] = False
    if source.dialect.missing == "drop":
        kept = [
            f"{letter} IS NOT NULL" for letter in columns.names if not (columns.lenient and letter == "i")
        ]
        query = f"SELECT * FROM ({query}) WHERE {' AND '.join(kept)}" if kept else query
    # A text is parsed once, a column store and a frame may be scanned several times.
    what = "VIEW" if source.kind in ("", ".parquet") else "TABLE"
    for stale in ("VIEW", "TABLE"):
        with suppress(TableError):
            source.run(f"DROP {stale} IF EXISTS records")
    source.run(f"CREATE TEMP {what} records AS {query}")
    return integers


def _name(source: Source, name: str) -> tuple[str, bool]:
    """The SQL of a column of names as text, and whether they are integers; other types are refused."""
    kind, column = source.types[name].upper(), quoted(name)
    refused = TableError(f"column {name!r} must hold text or integers, it holds {kind.split('(')[0]}")
    if source.kind in workbook.KINDS:
        workbook.check_name(source, name)
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)", False
    if kind in _INTEGERS:
        return f"CAST({column} AS VARCHAR)", True
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        numbers = f"nullif(CAST({column} AS DOUBLE), 'NaN'::DOUBLE)"
        ((fraction, large),) = source.rows(
            f"SELECT coalesce(bool_or(floor(x) != x), false), "
            f"coalesce(bool_or(abs(x) >= {LARGEST_NAME}), false) "
            f"FROM (SELECT {numbers} AS x FROM source)"
        )
        if fraction or large:
            odd = "floats beyond 2^53" if large else "fractions"
            raise TableError(f"column {name!r} must hold text or integers, it holds {odd}")
        return f"CAST(CAST({numbers} AS BIGINT) AS VARCHAR)", True
    if kind == "JSON":
        ((odd,),) = source.rows(
            f"SELECT count(*) FROM source "
            f"WHERE json_type({column}) NOT IN ('VARCHAR', 'UBIGINT', 'BIGINT', 'NULL') "
            f"AND NOT (json_type({column}) = 'DOUBLE' AND TRY_CAST({column} AS DOUBLE) = "
            f"TRY_CAST(TRY_CAST({column} AS DOUBLE) AS BIGINT))"
        )
        if odd:
            raise TableError(f"column {name!r} must hold text or integers, {odd} rows hold something else")
        return (
            f"CASE WHEN json_type({column}) = 'DOUBLE' THEN CAST(CAST(CAST({column} AS DOUBLE) AS BIGINT) AS "
            f"VARCHAR) ELSE {column}->>'$' END",
            False,
        )
    if kind in ('"NULL"', "NULL"):
        return "CAST(NULL AS VARCHAR)", False
    raise refused


def _amount(source: Source, names: Sequence[str], column: str, letter: str, lenient: bool) -> list[str]:
    """The SQL of a column of amounts as doubles, and of what is wrong with each of them."""
    kind = source.types[names[0]].upper()
    unreadable = str(NO_NUMBER)
    if kind in _INTEGERS or kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        number, readable = f"CAST({column} AS DOUBLE)", "true"
    elif kind in ("VARCHAR", "JSON", '"NULL"', "NULL") or kind.startswith("ENUM"):
        value = f"trim({column}->>'$')" if kind == "JSON" else f"trim(CAST({column} AS VARCHAR))"
        number, readable = _parsed(source, names, value)
        if source.dialect.decimal is None and source.path is not None and kind != "JSON":
            comma, thousands = (
                f"regexp_full_match({value}, {text(_form(mark))})" for mark in ("comma", "point")
            )
            unreadable = (
                f"CASE WHEN {comma} AND {thousands} THEN {WITH_EITHER} WHEN {comma} THEN {WITH_COMMA} "
                f"WHEN {thousands} THEN {WITH_THOUSANDS} ELSE {NO_NUMBER} END"
            )
    else:
        what = f"column {names[0]!r}" if len(names) == 1 else "every category column"
        raise TableError(f"{what} must hold numbers, it holds {kind.split('(')[0]}")
    missing = "0.0" if lenient else "NULL"
    fine = f"({number} >= 0 AND {number} < 'inf'::DOUBLE)"
    return [
        f"coalesce({number}, {missing}) AS {letter}",
        f"CASE WHEN {column} IS NULL THEN {FINE if lenient else NO_AMOUNT} "
        f"WHEN NOT {readable} THEN {unreadable} "
        f"WHEN {fine} THEN {FINE} ELSE {NO_AMOUNT} END::TINYINT AS bad_{letter}",
    ]


def _parsed(source: Source, names: Sequence[str], value: str) -> tuple[str, str]:
    """The SQL of amounts that are written as text, and of whether they are numbers under the decimal mark."""
    decimal = source.dialect.decimal
    if decimal is not None and source.kind in files.JSONS:
        raise TableError("numbers in JSON have points: leave the decimal mark out")
    if decimal is None:
        if len(names) == 1:
            _ask_about_thousands(source, [value], f"column {names[0]!r} has")
        readable = f"regexp_full_match({value}, {text(_PLAIN)})"
        return f"CASE WHEN {readable} THEN CAST({value} AS DOUBLE) END", readable
    mark, apart = _MARKS[decimal]
    readable = f"regexp_full_match({value}, {text(_form(decimal))})"
    plain = f"replace(replace({value}, {text(apart)}, ''), {text(mark)}, '.')"
    return f"CASE WHEN {readable} THEN CAST({plain} AS DOUBLE) END", readable


def _form(decimal: str) -> str:
    """How a number looks: digits, or thousands apart, then perhaps the decimal mark and digits."""
    mark, apart = _MARKS[decimal]
    digits = f"([0-9]+|[1-9][0-9]{{0,2}}([{apart}][0-9]{{3}})+)"
    return rf"[+-]?({digits}([{mark}][0-9]*)?|[{mark}][0-9]+)([eE][+-]?[0-9]{{1,3}})?"


def _ask_about_thousands(source: Source, values: Sequence[str], what: str) -> None:
    """In a file with semicolons, as they are written where a comma is decimal, 1.500 may be 1500: ask."""
    if source.separator != ";" or source.dialect.decimal is not None:
        return
    ((pointed, thousands),) = source.rows(
        f"SELECT count(*), count_if(regexp_full_match(x, {text(_THOUSANDS)})) FROM (SELECT "
        f"unnest([{', '.join(values)}]) AS x FROM (SELECT * FROM source LIMIT {SAMPLED})) "
        f"WHERE contains(x, '.')"
    )
    if pointed and pointed == thousands:
        raise TableError(
            f"{what} points that may separate thousands or be decimal: set decimal=comma "
            f"(--read decimal=comma, 1.500 is fifteen hundred) or decimal=point (--read decimal=point, "
            f"1.500 is one and a half)"
        )


def _unpivoted(source: Source, columns: Columns, named: Mapping[str, str]) -> str:
    """A wide table as a long one."""
    items = columns.items
    kinds = {source.types[name].upper() for name in items}
    for name in items:  # refuses types that hold no numbers; in a file the name may be somebody's data
        _amount(source, [name] * (1 if source.path is None else 2), quoted(name), "a", columns.lenient)
    if kinds == {"VARCHAR"}:
        _ask_about_thousands(source, [f"trim({quoted(name)})" for name in items], "the category columns have")
    plain = len(kinds) == 1
    cast = [
        f"{quoted(name) if plain else f'CAST({quoted(name)} AS VARCHAR)'} AS {quoted(f'c{k}')}"
        for k, name in enumerate(items)
    ]
    keys = [f"{sql} AS {letter}" for letter, sql in named.items()]
    inner = f"SELECT {', '.join([*keys, *cast])} FROM source"
    cells = ", ".join(quoted(f"c{k}") for k in range(len(items)))
    long = f"SELECT * FROM ({inner}) UNPIVOT INCLUDE NULLS (v FOR c IN ({cells}))"
    typed = Source(
        source.connection,
        {"v": next(iter(kinds)) if plain else "VARCHAR"},
        source.path,
        source.dialect,
        None,
    )
    amount = _amount(typed, ["v", "v"], "v", "a", columns.lenient)
    listed = ", ".join(f"({text(f'c{k}')}, {text(name)})" for k, name in enumerate(items))
    letters = "".join(f"{letter}, " for letter in named)
    labels = f"(VALUES {listed}) AS n(c, item)"
    return f"SELECT {letters}item AS i, {', '.join(amount)} FROM ({long}) JOIN {labels} USING (c)"


def _check_amounts(source: Source, columns: Columns) -> None:
    """Refuse bad amounts; a message counts rows and shows none, and names the option that would help."""
    for letter, what in _sums(columns).items():
        found = source.rows(f"SELECT bad_{letter}, count(*), sum({letter}) FROM records GROUP BY ALL")
        counts = {bad: count for bad, count, _ in found}
        total, wrong = sum(counts.values()), counts.get(NO_AMOUNT, 0)
        unreadable = total - wrong - counts.get(FINE, 0)
        if unreadable:
            advice = _advice(set(counts) - {FINE, NO_AMOUNT})
            raise TableError(f"{what} must hold numbers: {unreadable} of {total} rows do not{advice}")
        if wrong:
            raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")
        if not all(math.isfinite(added or 0) for _, _, added in found):
            raise TableError(f"{what} adds up to infinity: divide it by a constant first")


def _check_names(source: Source, columns: Columns, names: Mapping[str, npt.NDArray[np.object_]]) -> None:
    """Refuse an empty table and missing names."""
    if not len(names["i"]):
        raise TableError("the table is empty: it has no rows")
    for letter, name in columns.names.items():
        if columns.lenient and letter == "i":
            continue
        if source.rows(f"SELECT count(*) FROM name_{letter} WHERE name IS NULL")[0][0]:
            ((missing,),) = source.rows(f"SELECT count(*) FROM records WHERE {letter} IS NULL")
            advice = ": fill them in, or set missing=drop (--read missing=drop)" if source.path else ""
            raise TableError(f"column {name!r} has {missing} missing values{advice}")


def _advice(found: set[int]) -> str:
    """Which decimal mark would make numbers of all texts that are none."""
    if found == {WITH_EITHER}:
        return (
            "; the commas may be decimal or separate thousands: set decimal=comma "
            "(--read decimal=comma, 1,500 is one and a half) or decimal=point (--read decimal=point, 1,500 "
            "is fifteen hundred)"
        )
    if found <= {WITH_COMMA, WITH_EITHER}:
        return "; for decimal commas set decimal=comma (--read decimal=comma)"
    if found <= {WITH_THOUSANDS, WITH_EITHER}:
        return "; for commas between thousands set decimal=point (--read decimal=point)"
    return ""


# --- questions about public tables ----------------------------------------------------------------------


def count_missing(source: Source, columns: Sequence[str], present: Sequence[str] = ()) -> int:
    """How many rows lack a name in one of these columns, and none in `present`."""
    lacking = " OR ".join(f"{quoted(name)} IS NULL" for name in columns)
    there = "".join(f" AND {quoted(name)} IS NOT NULL" for name in present)
    ((number,),) = source.rows(f"SELECT count(*) FROM source WHERE ({lacking}){there}")
    return int(number)


def recurring(source: Source, item: str, others: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns whose values recur with several items: those like people, and those like groups.

    A column that names people has values that recur with several items: one person, several records. So does
    a column of groups; but groups are few and come as a full cross table, each item once for each value, and
    histories do not. A table with each item in one row is a list of items, whatever its other columns hold.
    """
    people, groups = list[str](), list[str]()
    for name in others:
        ((pairs, values, items, counts, rows),) = source.rows(
            f"SELECT count(*), count(DISTINCT v), count(DISTINCT i), count(DISTINCT n), sum(n) "
            f"FROM (SELECT v, i, count(*) AS n "
            f"FROM (SELECT {quoted(name)} AS v, {quoted(item)} AS i FROM source LIMIT {SAMPLED}) "
            f"WHERE v IS NOT NULL AND i IS NOT NULL GROUP BY v, i)"
        )
        if not pairs or rows == items or pairs <= values or values < 2:
            continue
        crossed = pairs == values * items and counts == 1 and values <= MOST_GROUPS
        (groups if crossed else people).append(name)
    return people, groups


# --- writing --------------------------------------------------------------------------------------------


class Writer:
    """A table that is made part by part in bounded memory, and then written whole or not at all.

    DuckDB holds all values as text until the table is saved, because only then the types are known; of a text
    that stands in every row of a part it holds the number.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sottovoce-", ignore_cleanup_errors=True)
        self._connection = _connection(self._folder.name, WRITER_MEMORY)
        self._types: dict[str, set[type]] = {name: set() for name in columns}
        self._shared: dict[str, dict[str, int]] = {}
        self._run(f"CREATE TABLE written ({', '.join(f'{quoted(name)} VARCHAR' for name in columns)})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._folder.cleanup()

    def _run(self, sql: str, given: Sequence[str] = ()) -> None:
        _translated(lambda: self._connection.execute(sql, list(given)), what="the table cannot be written")

    def add(self, part: Mapping[str, Any]) -> None:
        """Add rows: columns of equally many values; a single text stands in every row."""
        rows = max((len(values) for values in part.values() if not isinstance(values, str)), default=0)
        for begin in range(0, rows, PIECE):
            selected, given = list[str](), list[str]()
            for name, types in self._types.items():
                if isinstance(part[name], str):
                    numbers = self._shared.setdefault(name, {})
                    selected.append(str(numbers.setdefault(part[name], len(numbers) + 1)))
                    continue
                piece = part[name][begin : begin + PIECE]
                types |= _types(piece)
                separator, missing, joined = _joined(piece)
                given.append(joined)
                split = f"unnest(string_split(${len(given)}, {text(separator)}))"
                selected.append(f"nullif({split}, {text(missing)})")
            self._run(f"INSERT INTO written SELECT {', '.join(selected)}", given)

    def save(self, path: Path, mode: int = 0o600, *, replace: bool = True) -> None:
        """Write everything that was added as the kind of file that the path names, or to standard output."""
        kind = ".csv" if files.is_standard(path) else path.suffix.lower()
        form = {".csv": "CSV, HEADER", ".parquet": "PARQUET", ".json": "JSON, ARRAY true"}[kind]
        made = Path(self._folder.name) / f"written{kind}"
        values = {name: f"CAST({quoted(name)} AS {_kind(types)})" for name, types in self._types.items()}
        for name, texts in self._shared.items():
            values[name] = f"[{', '.join(map(text, texts))}][CAST({quoted(name)} AS INTEGER)]"
        selected = ", ".join(f"{value} AS {quoted(name)}" for name, value in values.items())
        self._run(f"COPY (SELECT {selected} FROM written) TO {text(str(made))} (FORMAT {form})")
        files.copy_whole(made, path, mode, replace=replace)


def _types(values: Sequence[Any]) -> set[type]:
    """The types of values; an integer that no 64 bits hold counts as a text."""
    types = set(map(type, values))
    integers = int in types and any(abs(value) >= 1 << 63 for value in values if type(value) is int)
    return types | ({str} if integers else set())


def _kind(types: set[type]) -> str:
    """The SQL type of a column with values of these types."""
    names = {one.__name__.rstrip("_0123456789") for one in types} - {"NoneType"}
    for kind, allowed in {"BOOLEAN": {"bool"}, "BIGINT": {"int"}, "DOUBLE": {"int", "float"}}.items():
        if names and names <= allowed:
            return kind
    return "VARCHAR"


def _joined(values: Sequence[Any]) -> tuple[str, str, str]:
    """Two characters that are in no text, and all texts as one: the first between, the second for None.

    One string, because DuckDB looks for pandas at every object that it is given.
    """
    texts = [None if value is None else str(value) for value in values]
    used = set().union(*(value for value in texts if value is not None))
    separator, missing = islice((c for c in map(chr, range(1, 0x110000)) if c not in used), 2)
    return separator, missing, separator.join(missing if value is None else value for value in texts)
