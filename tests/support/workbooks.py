"""Workbooks for the tests, written by hand: a zip archive with the few parts that a reader needs."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DOC = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'


@dataclass(frozen=True)
class Raw:
    """A cell as XML: the attributes after its place, and what stands inside."""

    attributes: str
    inside: str


def date(serial: float) -> Raw:
    """A day, counted from 1900, as Excel keeps it: a number with the style of a date."""
    return Raw(' s="1"', f"<v>{serial}</v>")


def duration(days: float) -> Raw:
    """A length of time: a number of days with the style of one."""
    return Raw(' s="2"', f"<v>{days}</v>")


def error(text: str) -> Raw:
    """An error such as #N/A."""
    return Raw(' t="e"', f"<v>{text}</v>")


def formula(text: str, value: float | str | None) -> Raw:
    """A formula with the value that was kept of it, or none."""
    kept = "" if value is None else f"<v>{value}</v>"
    return Raw(' t="str"' if isinstance(value, str) else "", f"<f>{escape(text)}</f>{kept}")


Cell = str | int | float | bool | None | Raw
Rows = Sequence[Sequence[Cell]]


def column(index: int) -> str:
    """0 → A, 26 → AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _cell(value: Cell, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, Raw):
        return f'<c r="{place}"{value.attributes}>{value.inside}</c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def sheet_xml(rows: Rows, *, first_row: int = 1, first_column: int = 0, more: str = "") -> str:
    """The part of one sheet."""
    lines = []
    for r, row in enumerate(rows, first_row):
        cells = "".join(_cell(value, f"{column(c)}{r}") for c, value in enumerate(row, first_column))
        lines.append(f'<row r="{r}">{cells}</row>')
    data = f"<sheetData>{''.join(lines)}</sheetData>"
    return f'{_HEAD}<worksheet xmlns="{_MAIN}">{data}{more}</worksheet>'


def parts(
    sheets: Mapping[str, Rows | str], hidden: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The parts of a workbook by name; a sheet may be given as XML."""
    numbered = list(enumerate(sheets.items(), 1))
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for i, _ in numbered
    )
    states = dict.fromkeys(hidden, ' state="hidden"')
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="rId{i}"{states.get(name, "")}/>'
        for i, (name, _) in numbered
    )
    relations = "".join(
        f'<Relationship Id="rId{i}" Type="{_DOC}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i, _ in numbered
    )
    styles = (
        f'{_HEAD}<styleSheet xmlns="{_MAIN}"><fonts><font/></fonts><fills><fill/></fills><borders><border/>'
        f'</borders><cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf numFmtId="0"/>'
        f'<xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="46" applyNumberFormat="1"/></cellXfs>'
        f"</styleSheet>"
    )
    found = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        f"{types}</Types>",
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_DOC}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_DOC}"><sheets>{listed}</sheets>'
        f"</workbook>",
        "xl/_rels/workbook.xml.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{relations}'
        f'<Relationship Id="rId99" Type="{_DOC}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": styles,
    }
    for i, (_, rows) in numbered:
        found[f"xl/worksheets/sheet{i}.xml"] = rows if isinstance(rows, str) else sheet_xml(rows)
    return {**found, **(more or {})}


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            stored = name == "mimetype"  # as LibreOffice does, so that it can be seen in the first bytes
            archive.writestr(name, text, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write_workbook(path: Path, sheets: Mapping[str, Rows | str] | Rows, hidden: Sequence[str] = ()) -> Path:
    """Write a workbook of these sheets, or of one."""
    several = sheets if isinstance(sheets, Mapping) else {"Sheet1": sheets}
    path.write_bytes(packed(parts(several, hidden)))
    return path


def open_document(rows: Rows) -> bytes:
    """A workbook of LibreOffice (.ods) with one sheet."""
    spaces = ":".join(["urn", "oasis", "names", "tc", "opendocument", "xmlns"])
    lines = []
    for row in rows:
        cells = []
        for value in row:
            if isinstance(value, str):
                inside = f"<text:p>{escape(value)}</text:p>"
                cells.append(f'<table:table-cell office:value-type="string">{inside}</table:table-cell>')
            elif value is None:
                cells.append("<table:table-cell/>")
            else:
                cells.append(f'<table:table-cell office:value-type="float" office:value="{value!r}"/>')
        lines.append(f"<table:table-row>{''.join(cells)}</table:table-row>")
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{spaces}:office:1.0" '
        f'xmlns:table="{spaces}:table:1.0" xmlns:text="{spaces}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet1">{"".join(lines)}</table:table></office:spreadsheet></office:body>'
        f"</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    listed = (
        f'<?xml version="1.0" encoding="UTF-8"?><manifest:manifest xmlns:manifest="{spaces}:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return packed({"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": listed})


def old_workbook(rows: Rows) -> bytes:
    """A workbook of Excel 97 (.xls) with one sheet of texts and numbers: records in a compound file."""
    cells = b""
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            place = struct.pack("<HHH", r, c, 0)
            if isinstance(value, str):
                text = struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")
                cells += _record(0x0204, place + text)
            elif isinstance(value, int | float):
                cells += _record(0x0203, place + struct.pack("<d", float(value)))
    size = struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0)
    sheet = _begin(0x10) + _record(0x0200, size) + cells + _record(0x0A, b"")
    name = b"\x06\x00Sheet1"
    first = len(_begin(5)) + 4 + 6 + len(name) + 4
    book = _begin(5) + _record(0x85, struct.pack("<IBB", first, 0, 0) + name) + _record(0x0A, b"")
    return compound({"Workbook": book + sheet})


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _begin(kind: int) -> bytes:
    return _record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0x0DBB, 0x07CC, 0, 6))


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file with one stream, of at most 60 KB: what old and encrypted workbooks are kept in."""
    ((name, stream),) = streams.items()
    none, end = 0xFFFFFFFF, 0xFFFFFFFE
    stream = stream.ljust(4096, b"\0")
    stream += b"\0" * (-len(stream) % 512)
    sectors = len(stream) // 512
    chain = [0xFFFFFFFD, end, *(i + 3 for i in range(sectors - 1)), end]
    numbers = (0, 1, 1, 0, 4096, end, 0, end, 0)
    head = struct.pack(
        "<8s16xHHHHH6x9I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, *numbers
    )

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        text = f"{name}\0".encode("utf-16-le")
        rest = struct.pack("<HBBIII16xI16xIQ", len(text), kind, 1, none, none, child, 0, start, size)
        return text.ljust(64, b"\0") + rest

    folder = entry("Root Entry", 5, 1, end, 0) + entry(name, 2, none, 2, len(stream))
    folder = folder.ljust(512, b"\0")
    table = struct.pack("<109I", 0, *[none] * 108)
    return head + table + struct.pack("<128I", *chain, *[none] * (128 - len(chain))) + folder + stream
