"""Workbooks (Excel, LibreOffice): one sheet becomes a table of polars, and what is unclear is refused.

The first row names the columns. A workbook has no other numbers than doubles: those that are whole are whole
numbers where they name something (`cells`). Errors such as #N/A and cells that look empty are missing values,
a formula is the value that was saved with it, rows and columns without anything are no rows and columns. All
this happens in the reader's process: a workbook may come from anybody.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SottovoceError, TableError
from .archive import damaged, protected, unpacked_size
from .dialect import Dialect

if TYPE_CHECKING:
    import polars as pl

KINDS = (".xlsx", ".xlsm", ".xls", ".ods")
INSTALL = "pip install 'sottovoce[excel]'"
_ZIP, _COMPOUND, _GZIP = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x1f\x8b"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
LARGEST_NUMBER = 1e15
"""Excel keeps 15 digits: of a longer number the last ones are lost before we see it."""
LEAST_MEMORY, PER_BYTE = 1 << 30, 16
"""Bytes of memory for any workbook, and for each byte it unpacks to: a cell has 20, and takes 32."""
_NUMBER = r"^(?:-?[0-9.]+|true|false)$"
"""How a number or a truth value looks that stands in a column of text; an exponent is never made of one."""
_ODD = r"^(?:-?[0-9]*\.[0-9]+|-?[0-9]{16,}|true|false)$"
"""Those of them that Excel may have made of something else."""
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?$"


class Sheet(NamedTuple):
    """A sheet that was read: its table, its number of how many, and where each column stands in it."""

    table: pl.DataFrame
    number: int
    sheets: int
    places: dict[str, int]


def kind_by_content(beginning: bytes) -> str | None:
    """The extension of a workbook that has no name, by its first bytes."""
    if beginning.startswith(_COMPOUND):
        return ".xls"
    if beginning.startswith(_ZIP):
        return ".ods" if b"opendocument.spreadsheet" in beginning[:200] else ".xlsx"
    return None


def scan_workbook(path: Path, dialect: Dialect) -> pl.LazyFrame:
    """The sheet that is asked for, as a table."""
    return _sheet(path, dialect).table.lazy()


def sheet_said(path: Path, dialect: dict[str, Any]) -> list[str]:
    """Which sheet of several was read, in words; nothing where there is one. For the reader's process.

    By its number: a name may be that of a person.
    """
    sheet = _sheet(path, Dialect(**dialect))
    return [] if sheet.sheets == 1 else [f"sheet {sheet.number} of {sheet.sheets}"]


def check_amounts(path: Path, dialect: Dialect, columns: Sequence[str]) -> None:
    """Refuse a decimal comma for a column with numbers among its texts: a number has no mark to be read."""
    if dialect.decimal == "comma" and _mixed(path, dialect, columns):
        which = f"column {columns[0]!r} holds" if len(columns) == 1 else "columns of amounts hold"
        raise TableError(f"{which} numbers and text: make all cells numbers, and leave --decimal out")


def check_names(path: Path, dialect: Dialect, table: pl.LazyFrame, columns: Sequence[str]) -> None:
    """Refuse columns of names whose cells Excel may have changed: dates, truth values, very long numbers."""
    import polars as pl

    schema = table.collect_schema()
    for name in columns:
        kind, column = schema[name], pl.col(name)
        odd = "dates or times" if kind.is_temporal() else "TRUE and FALSE" if kind == pl.Boolean else ""
        if kind == pl.String:
            dates = column.str.contains(_DATE)
            found = table.select(dates.any().fill_null(False) & ~dates.all()).collect().item()
            odd = "text and dates" if found else ""
            changed = table.select(column.str.contains(_ODD).any()).collect().item()
            if changed and _mixed(path, dialect, [name]):
                odd = "text and numbers that are fractions or too long, or TRUE and FALSE"
        if kind.is_numeric() and table.select((column.abs() >= LARGEST_NUMBER).any()).collect().item():
            odd = "numbers of more than 15 digits"
        if odd:
            raise TableError(
                f"column {name!r} holds {odd}, which Excel may have made of something else: store its cells "
                f"as text"
            )


def _sheet(path: Path, dialect: Dialect) -> Sheet:
    facts = path.stat()
    return _read(path, facts.st_size, facts.st_mtime_ns, dialect.sheet)


@lru_cache(maxsize=1)
def _read(path: Path, _size: int, _changed: int, sheet: str | int | None) -> Sheet:
    """The sheet that is meant; read once for each state of a file."""
    content = path.read_bytes()
    unpacked = _checked(content, path)
    import fastexcel

    reason = ""
    try:
        with _bounded_memory(unpacked):
            book = fastexcel.read_excel(content)
            number, head = _chosen(book, sheet, path)
            body = book.load_sheet(number - 1, schema_sample_rows=None, whitespace_as_null=True)
        table, places = _table(head, body, number, path)
        return Sheet(table, number, len(book.sheet_names), places)
    except fastexcel.FastExcelError as problem:
        reason = str(problem)  # only looked at: it may quote a cell
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # its reader panics on some damaged files, which is no Exception
        reason = "panic"
    if "password" in reason.casefold():
        raise protected(path)
    raise damaged(path)


def _checked(content: bytes, path: Path) -> int:
    """The bytes that a workbook unpacks to, if it is what its name says."""
    kind = path.suffix.lower()
    if content.startswith(_GZIP):
        raise TableError(f"{path} cannot be read: it is a packed workbook; unpack it first (gunzip)")
    if content.startswith(_COMPOUND):
        if kind == ".xls":
            return len(content)
        if _ENCRYPTED in content:
            raise protected(path)
        raise TableError(f"{path} cannot be read: it is no {kind} workbook; is it an old one? name it .xls")
    if not content.startswith(_ZIP):
        raise TableError(
            f"{path} cannot be read: it is no workbook, whatever its name says; if it is a text table, name "
            f"it .csv"
        )
    if kind == ".xls":
        raise TableError(f"{path} cannot be read: it is no old workbook; if it is a new one, name it .xlsx")
    return unpacked_size(content, path)


def _chosen(book: Any, sheet: str | int | None, path: Path) -> tuple[int, Any]:
    """The number of the sheet that is meant, from 1, by name or else by number; and its first row."""
    names: list[str] = list(book.sheet_names)
    if not names:
        raise TableError(f"{path} cannot be read: it has no sheet")
    if sheet is None:
        for i in range(len(names)):
            head = _head(book, i)
            if head.visible == "visible" and head.width:
                return i + 1, head
        return 1, _head(book, 0)
    if isinstance(sheet, str) and sheet in names:
        return names.index(sheet) + 1, _head(book, names.index(sheet))
    with contextlib.suppress(ValueError):
        if 1 <= int(sheet) <= len(names):
            return int(sheet), _head(book, int(sheet) - 1)
    many = (
        "1 sheet" if len(names) == 1 else f"{len(names)} sheets: say a name, or a number up to {len(names)}"
    )
    raise TableError(f"{path} has no sheet {sheet!r}; it has {many}")  # a name may be that of a person


def _head(book: Any, index: int) -> Any:
    """The first row of a sheet, as text."""
    return book.load_sheet(index, header_row=None, n_rows=1, dtypes="string", whitespace_as_null=True)


def _mixed(path: Path, dialect: Dialect, columns: Sequence[str]) -> bool:
    """Whether one of these columns holds numbers among texts: in the table all are texts, and look alike.

    The sheet is read once more, strictly, if there is any text in them that looks like a number.
    """
    import fastexcel
    import polars as pl

    sheet = _sheet(path, dialect)
    texts = [name for name in columns if name in sheet.places and sheet.table.schema[name] == pl.String]
    texts = [name for name in texts if sheet.table[name].str.contains(_NUMBER).any()]
    if not texts:
        return False
    content = path.read_bytes()
    with _bounded_memory(_checked(content, path)):
        try:
            fastexcel.read_excel(content).load_sheet(
                sheet.number - 1,
                schema_sample_rows=None,
                dtype_coercion="strict",
                use_columns=[sheet.places[name] for name in texts],
            )
        except fastexcel.FastExcelError:
            return True
    return False


def _table(head: Any, body: Any, number: int, path: Path) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows of a sheet under the names of its first row; and where each of them stands in the sheet."""
    import polars as pl

    names = list(head.to_polars().row(0)) if head.width else []
    if not names:
        raise TableError(f"{path} is empty: sheet {number} has no cells")
    table: pl.DataFrame = body.to_polars()
    filled = [bool(column.null_count() < len(column)) for column in table]
    kept = [i for i, name in enumerate(names) if name is not None or filled[i]]
    unnamed = sum(names[i] is None for i in kept)
    if unnamed:
        raise TableError(
            f"{path} cannot be read: {unnamed} of {len(kept)} columns have values but no name; the first row "
            f"of the sheet must name them all (is there a title above it, or are cells merged?)"
        )
    given = [str(names[i]).strip() for i in kept]
    if len(set(given)) < len(given):
        raise TableError(f"{path} cannot be read: two of its columns have the same name")
    found = pl.DataFrame([table.to_series(i).alias(name) for i, name in zip(kept, given, strict=True)])
    found = found.with_columns(pl.col(pl.Null).cast(pl.String))  # a column without values
    rows = found.filter(~pl.all_horizontal(pl.all().is_null())) if kept else found
    return rows, dict(zip(given, kept, strict=True))


@contextlib.contextmanager
def _bounded_memory(unpacked: int) -> Iterator[None]:
    """Let a workbook of little content use little memory: its last cell may claim to be very far away."""
    try:
        import resource
    except ImportError:  # a platform without limits has none to set
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _data_held() + LEAST_MEMORY + PER_BYTE * unpacked
    if soft == resource.RLIM_INFINITY or wanted < soft:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_held() -> int:
    """Bytes that count towards the limit already: stacks of threads, and whatever was read before."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split() for line in lines if line.startswith("VmData:"))[1]) << 10
    return 0
