"""Workbooks (Excel, LibreOffice): one sheet becomes a table, and what is unclear is refused.

The first row names the columns. Excel stores all numbers as doubles; in columns of names, integral doubles
become integers. Errors such as #N/A and cells that look empty are missing values, a formula is the value that
was saved with it, rows and columns without anything are no rows and columns. A workbook may come from
anybody: it is unpacked once, in small pieces that are thrown away, to count how long it is (an archive states
the length of its parts, and may lie), and read by a process of its own, `python -m
sottovoce.tables.workbook`, which gets memory in proportion to that.
"""

from __future__ import annotations

import contextlib
import io
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SottovoceError, TableError

if TYPE_CHECKING:
    from .files import Dialect
    from .query import Source

KINDS = (".xlsx", ".xlsm", ".xls", ".ods")
INSTALL = "pip install 'sottovoce[excel]'"
_ZIP, _COMPOUND, _GZIP = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x1f\x8b"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
LARGEST_NUMBER = 1e15
"""Excel keeps 15 digits: of a longer number the last ones are lost before we see it."""
LEAST_MEMORY, PER_BYTE = 1 << 30, 16
"""Bytes of memory for any workbook, and for each byte it unpacks to: a cell has 20, and takes 32."""
LEAST, RATIO = 256 << 20, 200
"""Bytes that any workbook may unpack to, and times its size that a larger one may."""
_NUMBER = "-?[0-9.]+|true|false"
"""How a number or a truth value looks that stands in a column of text; an exponent is never made of one."""
_ODD = "-?[0-9]*[.][0-9]+|-?[0-9]{16,}|true|false"
"""Those of them that Excel may have made of something else."""
_TABLE = "table.arrow"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"


class Sheet(NamedTuple):
    """A sheet that was read: its table, its number of how many, and the position of each column in it."""

    table: Any
    number: int
    sheets: int
    positions: dict[str, int]


def kind_by_content(beginning: bytes) -> str | None:
    """The extension of a workbook that has no name, by its first bytes."""
    if beginning.startswith(_COMPOUND):
        return ".xls"
    if beginning.startswith(_ZIP):
        return ".ods" if b"opendocument.spreadsheet" in beginning[:200] else ".xlsx"
    return None


def read_sheet(path: Path, dialect: Dialect) -> tuple[Any, str]:
    """The requested sheet as an arrow table, and which sheet of several it is, in words.

    By its number: a name may be that of a person.
    """
    sheet = _sheet(path, dialect)
    return sheet.table, "" if sheet.sheets == 1 else f"sheet {sheet.number} of {sheet.sheets}"


def check_amounts(path: Path, dialect: Dialect, columns: list[str]) -> None:
    """Refuse a decimal comma for a column with numbers among its texts: a number has no mark to be read."""
    if dialect.decimal == "comma" and any(_is_mixed(path, dialect, name) for name in columns):
        which = f"column {columns[0]!r} holds" if len(columns) == 1 else "columns of amounts hold"
        raise TableError(f"{which} numbers and text: make all cells numbers, and leave the decimal mark out")


def check_name(source: Source, name: str) -> None:
    """Refuse a column of names whose cells Excel may have changed: dates, truth values, very long numbers."""
    kind, column = source.types[name].upper(), '"' + name.replace('"', '""') + '"'
    odd = ""
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        odd = "dates or times"
    elif kind == "BOOLEAN":
        odd = "TRUE and FALSE"
    elif kind == "VARCHAR":
        ((dates, others, changed),) = source.rows(
            f"SELECT coalesce(bool_or(d), false), coalesce(bool_or(NOT d), false), "
            f"coalesce(bool_or(o), false) "
            f"FROM (SELECT regexp_full_match(x, '{_DATE}') AS d, regexp_full_match(x, '{_ODD}') AS o "
            f"FROM (SELECT {column} AS x FROM source WHERE {column} IS NOT NULL))"
        )
        if dates and others:
            odd = "text and dates"
        elif changed and source.path is not None and _is_mixed(source.path, source.dialect, name):
            odd = "text and numbers that are fractions or too long, or TRUE and FALSE"
    elif source.rows(f"SELECT coalesce(bool_or(abs({column}) >= {LARGEST_NUMBER}), false) FROM source")[0][0]:
        odd = "numbers of more than 15 digits"
    if odd:
        raise TableError(
            f"column {name!r} holds {odd}, which Excel may have made of something else: store its cells as "
            f"text"
        )


def _sheet(path: Path, dialect: Dialect) -> Sheet:
    facts = path.stat()
    return _read(path, facts.st_size, facts.st_mtime_ns, dialect.sheet)


@lru_cache(maxsize=1)
def _read(path: Path, _size: int, _changed: int, sheet: str | int | None) -> Sheet:
    """The sheet that is meant; read once for each state of a file."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:
        found = _ask(path, sheet, None, folder)
        with pa.OSFile(f"{folder}/{_TABLE}") as file:
            table = pa.ipc.open_file(file).read_all()
            return Sheet(table, found["number"], found["sheets"], found["positions"])


def _ask(path: Path, sheet: str | int | None, strictly: int | None, folder: str) -> Any:
    """What a process of its own reads: the library that reads workbooks ends its process on some of them."""
    command = [sys.executable, "-P", "-m", __name__, str(path), folder, json.dumps([sheet, strictly])]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode == 0:
        found = json.loads(done.stdout)
        if "refused" in found:
            raise TableError(found["refused"])
        return found
    if done.returncode > 0:
        raise TableError(f"{path} cannot be read: the reader of workbooks did not start")
    raise TableError(
        f"{path} cannot be read as {path.suffix[1:].lower()}: its reader broke down, because the file is "
        f"damaged, or needs too much memory: is there a cell very far away from the table?"
    )


def _answer(path: Path, folder: Path, sheet: str | int | None, strictly: int | None) -> dict[str, Any]:
    """Read the sheet that is meant into the folder; or tell whether one of its columns has mixed types."""
    content = path.read_bytes()
    unpacked = _checked(content, path)
    import fastexcel
    import pyarrow as pa

    _limit_memory(unpacked)
    reason = ""
    try:
        book = fastexcel.read_excel(content)
        if strictly is not None:
            return {"mixed": _fails_strictly(book, sheet, strictly)}
        number, head = _chosen(book, sheet, path)
        body = book.load_sheet(number - 1, schema_sample_rows=None, whitespace_as_null=True)
        table, positions = _table(head, body, number, path)
        with pa.ipc.new_file(str(folder / _TABLE), table.schema) as file:
            file.write_table(table)
        return {"number": number, "sheets": len(book.sheet_names), "positions": positions}
    except fastexcel.FastExcelError as problem:
        reason = str(problem)  # only looked at: it may quote a cell
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # its reader panics on some damaged files, which is no Exception
        reason = "panic"
    raise protected(path) if "password" in reason.casefold() else damaged(path)


def _fails_strictly(book: Any, number: Any, position: int) -> bool:
    """Whether a column of a sheet, both by their numbers, holds values of several types."""
    import fastexcel

    try:
        book.load_sheet(number - 1, schema_sample_rows=None, dtype_coercion="strict", use_columns=[position])
    except fastexcel.FastExcelError:
        return True
    return False


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


def _is_mixed(path: Path, dialect: Dialect, name: str) -> bool:
    """Whether a column of text holds numbers too: in the table all are texts, and look alike.

    The sheet is read once more, strictly, if there is any text in it that looks like a number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sheet = _sheet(path, dialect)
    if name not in sheet.positions or not pa.types.is_string(sheet.table[name].type):
        return False
    if not pc.any(pc.match_substring_regex(sheet.table[name], f"^(?:{_NUMBER})$")).as_py():
        return False
    return bool(_ask(path, sheet.number, sheet.positions[name], "")["mixed"])


def _table(head: Any, body: Any, number: int, path: Path) -> tuple[Any, dict[str, int]]:
    """The rows of a sheet under the names of its first row, and the position of each column in the sheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [column[0].as_py() for column in head.to_arrow().columns] if head.width else []
    if not names:
        raise TableError(f"{path} is empty: sheet {number} has no cells")
    columns = body.to_arrow().columns
    kept = [i for i, name in enumerate(names) if name is not None or columns[i].null_count < len(columns[i])]
    unnamed = sum(names[i] is None for i in kept)
    if unnamed:
        raise TableError(
            f"{path} cannot be read: {unnamed} of {len(kept)} columns have values but no name; the first row "
            f"of the sheet must name them all (is there a title above it, or are cells merged?)"
        )
    given = [str(names[i]).strip() for i in kept]
    if len(set(given)) < len(given):
        raise TableError(f"{path} cannot be read: two of its columns have the same name")
    cells = [columns[i].cast(pa.string()) if pa.types.is_null(columns[i].type) else columns[i] for i in kept]
    table = pa.table(dict(zip(given, cells, strict=True)))
    filled = None
    for column in cells:
        there = pc.is_valid(column)
        filled = there if filled is None else pc.or_(filled, there)
    return table.filter(filled), dict(zip(given, kept, strict=True))


def _limit_memory(unpacked: int) -> None:
    """Let a workbook of little content use little memory: its last cell may claim to be very far away."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # a platform without limits has none to set
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no image of it on the disk
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _data_held() + LEAST_MEMORY + PER_BYTE * unpacked
        if soft == resource.RLIM_INFINITY or wanted < soft:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _data_held() -> int:
    """Bytes that count towards the limit already: stacks of threads, and whatever was read before."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split() for line in lines if line.startswith("VmData:"))[1]) << 10
    return 0


_LOCAL = 30  # bytes of the head of a part, before its name
_STEP = 1 << 16
_RAW = -15  # zlib's number for: without a header
_LOCKED = 1


def unpacked_size(content: bytes, path: Path) -> int:
    """The bytes that all parts of an archive unpack to; refused if they are too many, or not readable."""
    allowed = max(LEAST, RATIO * len(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error):
        raise damaged(path) from None
    if any(part.flag_bits & _LOCKED for part in parts):
        raise protected(path)
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise TableError(f"{path} cannot be read: it is packed in an unusual way; save it again in Excel")
    _refuse_beyond(allowed, sum(part.file_size for part in parts), path)
    total = 0
    for part in parts:
        total += _unpacked(content, part, allowed - total, path)
        _refuse_beyond(allowed, total, path)
    return total


def _unpacked(content: bytes, part: zipfile.ZipInfo, allowed: int, path: Path) -> int:
    """The bytes that one part unpacks to, counted up to a little more than is allowed."""
    head = content[part.header_offset : part.header_offset + _LOCAL]
    if len(head) < _LOCAL:
        raise damaged(path)
    name, extra = struct.unpack("<HH", head[26:])
    begin = part.header_offset + _LOCAL + name + extra
    packed = memoryview(content)[begin : begin + part.compress_size]
    if len(packed) < part.compress_size:
        raise damaged(path)
    if part.compress_type == zipfile.ZIP_STORED:
        return len(packed)
    unpacker, total = zlib.decompressobj(_RAW), 0
    for at in range(0, len(packed), _STEP):
        rest = bytes(packed[at : at + _STEP])
        while rest and not unpacker.eof and total <= allowed:
            try:
                total += len(unpacker.decompress(rest, _STEP))
            except zlib.error:
                raise damaged(path) from None
            rest = unpacker.unconsumed_tail
    if not unpacker.eof and total <= allowed:
        raise damaged(path)
    return total


def _refuse_beyond(allowed: int, total: int, path: Path) -> None:
    if total > allowed:
        raise TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")


def damaged(path: Path) -> TableError:
    """The error for an archive that is cut off, or is none."""
    return TableError(f"{path} cannot be read as {path.suffix[1:].lower()}: it is cut off or damaged")


def protected(path: Path) -> TableError:
    """The error for a workbook that needs a password."""
    return TableError(
        f"{path} cannot be read: it is protected by a password; save a copy without one (in Excel: File, "
        f"Info, Protect Workbook), and read that file"
    )


def _main() -> None:
    """Answer one question of `_ask`; what fails is told in words without data, or not at all."""
    path, folder, asked = sys.argv[1:]
    sheet, strictly = json.loads(asked)
    try:
        found = _answer(Path(path), Path(folder), sheet, strictly)
    except SottovoceError as problem:
        found = {"refused": str(problem)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
