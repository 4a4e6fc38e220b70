"""How a table file is written: its separator, encoding, decimal mark and sheet, said by somebody or found.

The separator is looked for in the first lines: one that splits all of them into the same number of fields,
first of all the one that the name of the file promises (a comma in .csv, a tab in .tsv), which is also taken
where none does. The encoding is UTF-8, or UTF-16 where the file begins with its mark; others have no mark and
have to be said. A number has a decimal point; one with a comma means two things, and has to be said too.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .. import _validate
from ..errors import ParameterError
from .unpack import is_gzip

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
DECIMALS = ("point", "comma")
_LOOKED_AT = 1 << 16
_LINES = 50
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a table file is written, for the functions that take a path; None means that it is found.

    Parameters
        separator: between the fields of a text table: one character, or comma, semicolon, tab, pipe.
        encoding: of a text table: utf-8, utf-16, latin-1, or cp1252, which Windows writes in Western Europe.
        missing: what to do with rows without a user, item or group: "error" or "drop".
        decimal: the mark in amounts that are written as text: "point" or "comma"; the other one may then
            separate thousands, in groups of three. Without it there are points, and a comma is refused; so
            are points that may separate thousands, in a file with semicolons.
        sheet: of a workbook: its name, or its number from 1; without it the first one that is neither hidden
            nor empty.

    >>> Dialect(separator="semicolon", decimal="comma").separator
    ';'
    """

    separator: str | None = None
    encoding: str | None = None
    missing: str = "error"
    decimal: str | None = None
    sheet: str | int | None = None

    def __post_init__(self) -> None:
        _validate.one_of(("error", "drop"), missing=self.missing)
        if self.decimal is not None:
            _validate.one_of(DECIMALS, decimal=self.decimal)
        number = isinstance(self.sheet, int) and not isinstance(self.sheet, bool)
        if self.sheet is not None and not (self.sheet if isinstance(self.sheet, str) else number):
            raise ParameterError("sheet must be the name of a sheet, or its number from 1")
        if self.separator is not None:
            meant = SEPARATORS.get(self.separator.lower(), self.separator.replace("\\t", "\t"))
            if len(meant) != 1 or meant in '"\r\n' or not meant.isascii():
                names = ", ".join(SEPARATORS)
                raise ParameterError(f"separator must be one character, or one of {names}")
            object.__setattr__(self, "separator", meant)
        if self.encoding is not None:
            known = {codecs.lookup(name).name: name for name in ENCODINGS}
            name = ""
            with suppress(LookupError):
                name = codecs.lookup(self.encoding).name
            if name not in known:
                raise ParameterError(f"encoding must be one of {', '.join(ENCODINGS)}, got {self.encoding!r}")
            object.__setattr__(self, "encoding", known[name])


FOUND = Dialect()
"""Nothing said: everything is found."""


def encoding_of(path: Path, dialect: Dialect) -> str:
    """The encoding that was said, else the one that the file's first bytes tell, else UTF-8."""
    if dialect.encoding is not None:
        return dialect.encoding
    return "utf-16" if _beginning(path, 2) in _UTF_16 else "utf-8"


def separator_of(path: Path, kind: str, dialect: Dialect) -> str:
    """The separator that was said, else the one that the first lines tell."""
    if dialect.separator is not None:
        return dialect.separator
    usual = "\t" if kind == ".tsv" else ","
    encoding = encoding_of(path, dialect)
    text = _beginning(path, _LOOKED_AT).decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace")
    lines = text.splitlines(keepends=True)
    lines = lines[:-1] if len(lines) > 1 and len(text) >= _LOOKED_AT // 2 else lines  # it may be cut off
    for one in (usual, *SEPARATORS.values()):
        widths = _fields(lines, one)
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            return one
    return usual


def _fields(lines: list[str], separator: str) -> list[int]:
    """How many fields each of the first records has, empty lines aside."""
    widths: list[int] = []
    with suppress(csv.Error):
        for record in csv.reader(lines, delimiter=separator):
            if record:
                widths.append(len(record))
            if len(widths) == _LINES:
                break
    return widths


def _beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked; nothing where it cannot be unpacked: its reader will say so."""
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""
