"""Workbooks (Excel, LibreOffice): one sheet becomes a table, and what is unclear is refused.

What becomes of the cells is in docs/tables.md. A workbook may come from anybody: it is unpacked once, in
small pieces that are thrown away, to count how long it is (an archive states the length of its parts, and may
lie), and read by a process of its own, `python -m sottovoce.tables.workbook`, because the library that reads
it ends its process on some files; it gets memory in proportion to what was counted.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SottovoceError, TableError
from ..temporary import private_folder

if TYPE_CHECKING:
    from .reader import Source

KINDS = (".xlsx", ".xlsm", ".xls", ".ods")
INSTALL = "pip install 'sottovoce[excel]'"
_ZIP, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
LEAST_MEMORY, PER_BYTE = 1 << 30, 16
"""Bytes of memory for any workbook, and for each byte it unpacks to: a cell has 20, and takes 32."""
LEAST, RATIO = 256 << 20, 200
"""Bytes that any workbook may unpack to, and times its size that a larger one may."""
_NUMBER = "-?[0-9.]+|true|false"
"""How a number or a truth value looks that stands in a column of text; an exponent is never made of one."""
_ODD = "-?[0-9]*[.][0-9]+|-?[0-9]{16,}|true|false"
"""Those of them that Excel may have made of something else."""
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
_TABLE = "table.arrow"
_STEP = 1 << 16


def kind_by_content(beginning: bytes) -> str | None:
    """The extension of a workbook that has no name, by its first bytes."""
    if beginning.startswith(_COMPOUND):
        return ".xls"
    if beginning.startswith(_ZIP):
        return ".ods" if b"opendocument.spreadsheet" in beginning[:200] else ".xlsx"
    return None


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook: its index, of how many, and the positions of columns of numbers among texts."""

    path: Path
    index: int
    sheets: int
    numeric: Mapping[str, int]

    def __str__(self) -> str:
        """Which sheet of several it is, by its number: a name may be that of a person."""
        return "" if self.sheets == 1 else f"sheet {self.index + 1} of {self.sheets}"

    def is_mixed(self, name: str) -> bool:
        """Whether a column holds text and numbers, by reading it strictly: in the table all are texts."""
        return name in self.numeric and bool(_ask(self.path, "", self.index, self.numeric[name])["mixed"])


def read_sheet(path: Path, sheet: str | int | None, as_text: str | None = None) -> tuple[Any, Sheet]:
    """The requested sheet as an arrow table, and what is known about it.

    Each cell of the column `as_text` becomes a text by itself; the type of another depends on all its cells.
    """
    import pyarrow as pa

    with private_folder() as folder:
        answer = _ask(path, folder, sheet, None, as_text)
        with pa.OSFile(f"{folder}/{_TABLE}") as file:
            return pa.ipc.open_file(file).read_all(), Sheet(path, **answer)


def _ask(path: Path, folder: str, *question: str | int | None) -> Any:
    """Have a process of its own read a sheet into a folder, or tell whether a column of it is mixed."""
    command = [sys.executable, "-P", "-m", __name__, str(path), folder, json.dumps(question)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode > 0:
        raise TableError(f"{path} cannot be read: the reader of workbooks did not start")
    if done.returncode < 0:
        raise TableError(
            f"{path} cannot be read as {path.suffix[1:].lower()}: its reader broke down, because the file is "
            f"damaged, or needs too much memory: is there a cell very far away from the table?"
        )
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise TableError(answer["refused"])
    return answer


def check_name(source: Source, name: str) -> None:
    """Refuse a column of names whose cells Excel may have changed: dates, truth values, very long numbers."""
    kind, column = source.types[name].upper(), '"' + name.replace('"', '""') + '"'
    odd = ""
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        odd = "dates or times"
    elif kind == "BOOLEAN":
        odd = "TRUE and FALSE"
    elif kind == "VARCHAR":
        texts = f"(SELECT {column} AS x FROM source WHERE {column} IS NOT NULL)"
        ((rows, dates, changed),) = source.rows(
            f"SELECT count(*), count_if(regexp_full_match(x, '{_DATE}')), "
            f"count_if(regexp_full_match(x, '{_ODD}')) FROM {texts}"
        )
        if dates and dates < rows:
            odd = "text and dates"
        elif changed and source.sheet is not None and source.sheet.is_mixed(name):
            odd = "text and numbers that are fractions or too long, or TRUE and FALSE"
    elif source.rows(f"SELECT count(*) FROM source WHERE abs({column}) >= {1e15}")[0][0]:
        odd = "numbers of more than 15 digits"  # of which Excel keeps the first 15
    if odd:
        made = "which Excel may have made of something else"
        raise TableError(f"column {name!r} holds {odd}, {made}: store its cells as text")


# --- in a process of its own ----------------------------------------------------------------------------


def _answer(
    path: Path, folder: Path, sheet: Any, strictly: int | None, as_text: str | None = None
) -> dict[str, Any]:
    """Read the requested sheet into the folder; or tell whether one of its columns has mixed types."""
    content = path.read_bytes()
    unpacked = _checked(content, path)
    import fastexcel
    import pyarrow as pa

    _limit_memory(unpacked)
    try:
        book = fastexcel.read_excel(content)
        if strictly is not None:
            with contextlib.suppress(fastexcel.FastExcelError):
                strict: Any = {"dtype_coercion": "strict", "use_columns": [strictly]}
                book.load_sheet(sheet, schema_sample_rows=None, **strict)
                return {"mixed": False}
            return {"mixed": True}
        index, head = _chosen(book, sheet, path)
        texts = [i for i, name in enumerate(_names(head)) if name is not None and name.strip() == as_text]
        body = _body(book, index, head.width, texts)
        table, numeric = _table(head, body, index, path)
        with pa.ipc.new_file(str(folder / _TABLE), table.schema) as file:
            file.write_table(table)
        return {"index": index, "sheets": len(book.sheet_names), "numeric": numeric}
    except fastexcel.FastExcelError as problem:
        reason = str(problem)  # only looked at: it may quote a cell
    except (SottovoceError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # its reader panics on some damaged files, which is no Exception
        reason = "panic"
    raise _protected(path) if "password" in reason.casefold() else _damaged(path)


def _checked(content: bytes, path: Path) -> int:
    """The bytes that a workbook unpacks to, if it is what its name says."""
    kind, actual = path.suffix.lower(), kind_by_content(content)
    if actual is None:
        raise TableError(
            f"{path} cannot be read: it is no workbook, whatever its name says; if it is a text table, name "
            f"it .csv, and if it is packed, unpack it first"
        )
    if kind != ".xls" and actual == ".xls" and _ENCRYPTED in content:
        raise _protected(path)
    if (kind == ".xls") != (actual == ".xls"):
        raise TableError(f"{path} cannot be read: it is no {kind} workbook; name it {actual}")
    return len(content) if kind == ".xls" else unpacked_size(content, path)


def unpacked_size(content: bytes, path: Path) -> int:
    """The bytes that all parts of an archive unpack to; refused if they are too many, or not readable."""
    allowed, total = max(LEAST, RATIO * len(content)), 0
    refused = TableError(f"{path} unpacks to more than {allowed >> 20} MiB: refused")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if any(part.flag_bits & 1 for part in parts):
                raise _protected(path)
            if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
                raise TableError(f"{path} cannot be read: it is packed in an unusual way; save it anew")
            if sum(part.file_size for part in parts) > allowed:
                raise refused
            for part in parts:
                part.file_size = allowed + _STEP  # its own statement may be a lie
                with archive.open(part) as file:
                    while total <= allowed and (piece := file.read(_STEP)):
                        total += len(piece)
    except TableError:
        raise
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError, zlib.error, struct.error):
        raise _damaged(path) from None
    if total > allowed:
        raise refused
    return total


def _chosen(book: Any, sheet: str | int | None, path: Path) -> tuple[int, Any]:
    """The index of the requested sheet, by name or else by number from 1; and its first row."""
    names: list[str] = list(book.sheet_names)
    if not names:
        raise TableError(f"{path} cannot be read: it has no sheet")

    def head(index: int) -> Any:
        return book.load_sheet(index, header_row=None, n_rows=1, dtypes="string", whitespace_as_null=True)

    if sheet is None:
        for index in range(len(names)):
            first = head(index)
            if first.visible == "visible" and first.width:
                return index, first
        return 0, head(0)
    with contextlib.suppress(ValueError):
        index = names.index(sheet) if sheet in names else int(sheet) - 1
        if 0 <= index < len(names):
            return index, head(index)
    advice = f"pass a name, or a number up to {len(names)}"  # not the names: they may be those of people
    raise TableError(f"{path} has no sheet {sheet!r}; it has {len(names)} sheets: {advice}")


def _names(head: Any) -> list[Any]:
    """The cells of the first row."""
    return [column[0].as_py() for column in head.to_arrow().columns] if head.width else []


def _body(book: Any, index: int, width: int, as_texts: Sequence[int]) -> Any:
    """The rows of a sheet; a column whose kinds of cells do not fit, as a duration among texts, is text."""
    import fastexcel

    given: dict[str, Any] = {"schema_sample_rows": None, "whitespace_as_null": True}
    texts: dict[str | int, Any] = dict.fromkeys(as_texts, "string")
    with contextlib.suppress(fastexcel.UnsupportedColumnTypeCombinationError):
        return book.load_sheet(index, dtypes=texts, **given)
    for i in set(range(width)) - texts.keys():
        try:
            book.load_sheet(index, use_columns=[i], **given)
        except fastexcel.UnsupportedColumnTypeCombinationError:
            texts[i] = "string"
    return book.load_sheet(index, dtypes=texts, **given)


def _table(head: Any, body: Any, index: int, path: Path) -> tuple[Any, dict[str, int]]:
    """The rows of a sheet under the names of its first row, and where text is that looks like numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = _names(head)
    columns = body.to_arrow().columns if names else []
    kept = [i for i, name in enumerate(names) if name is not None or columns[i].null_count < len(columns[i])]
    if not kept:
        raise TableError(f"{path} is empty: sheet {index + 1} has no cells")
    unnamed = sum(names[i] is None for i in kept)
    if unnamed:
        raise TableError(
            f"{path} cannot be read: {unnamed} of {len(kept)} columns have values but no name; the first row "
            f"of the sheet must name them all (is there a title above it, or are cells merged?)"
        )
    positions = {str(names[i]).strip(): i for i in kept}
    if len(positions) < len(kept):
        raise TableError(f"{path} cannot be read: two of its columns have the same name")
    cells = [columns[i].cast(pa.string()) if pa.types.is_null(columns[i].type) else columns[i] for i in kept]
    table = pa.table(dict(zip(positions, cells, strict=True)))
    texts = {name: i for name, i in positions.items() if pa.types.is_string(table[name].type)}

    def holds_numbers(name: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(table[name], f"^(?:{_NUMBER})$")).as_py())

    return table, {name: i for name, i in texts.items() if holds_numbers(name)}


def _limit_memory(unpacked: int) -> None:
    """Let a workbook of little content use little memory: its last cell may claim to be very far away."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # a platform without limits has none to set
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no image of it on the disk
        present = 0  # stacks of threads, and whatever was read before
        with contextlib.suppress(OSError, StopIteration, ValueError):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            present = int(next(line.split() for line in lines if line.startswith("VmData:"))[1]) << 10
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = present + LEAST_MEMORY + PER_BYTE * unpacked
        if soft == resource.RLIM_INFINITY or wanted < soft:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _damaged(path: Path) -> TableError:
    return TableError(f"{path} cannot be read as {path.suffix[1:].lower()}: it is cut off or damaged")


def _protected(path: Path) -> TableError:
    return TableError(
        f"{path} cannot be read: it is protected by a password; save a copy without one (in Excel: File, "
        f"Info, Protect Workbook), and read that file"
    )


def _main() -> None:
    """Answer one question of `_ask`; what fails is told without data, or not at all."""
    path, folder, question = sys.argv[1:]
    os.umask(0o077)  # of this process alone: the table is for its owner
    try:
        answer = _answer(Path(path), Path(folder), *json.loads(question))
    except SottovoceError as problem:
        answer = {"refused": str(problem)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main()
