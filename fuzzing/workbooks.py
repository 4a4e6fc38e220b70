"""Workbooks: the sheet of a sound one replaced by any bytes, or the archive damaged; read or refused.

The first letter of an input says which. What is read is counted again by Python's own reader of XML, where
the sheet is plain: every row a user and an item, both written into their cells.
"""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence

from workbooks import Rows, date, error, formula, open_document, packed, parts, sheet_xml

from sottovoce.tables import reader

from .mutate import bytes_mutated
from .target import Target, holds, refusals, written

_ROWS: Rows = [["user", "item", "weight"], ["u1", "a", 1.5], ["u1", "b", 2], [7, "a", 1], ["u3", "c", None]]
_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_PLAIN = re.compile(r"[a-z][a-z0-9]{0,9}")
"""A text that nobody takes for a number, a date or nothing."""


def check_workbook(data: bytes) -> bool:
    """Count a workbook in the reader's process, and by hand where it leaves no question open."""
    kind, rest = data[:1], data[1:]
    content = packed({**parts({"Sheet1": []}), "xl/worksheets/sheet1.xml": rest}) if kind == b"x" else rest
    tally = None
    with refusals():
        path = written("t.ods" if kind == b"o" else "t.xlsx", content)
        tally = reader.count_table(path, reader.Columns("item", "user"))
    if tally is None:
        return False
    expected = _by_hand(rest) if kind == b"x" else None
    if expected is not None:
        found: Counter[str] = Counter()
        for i, rows in zip(tally.item.tolist(), tally.rows.tolist(), strict=True):
            found[str(tally.items[i])] += rows
        holds(found == expected, f"counted as {dict(found)}, and by hand as {dict(expected)}")
    return True


def _by_hand(xml: bytes) -> Counter[str] | None:
    """Rows of every item of a sheet of plain texts in columns A and B; None for any other sheet."""
    if b"<!" in xml:
        return None
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314  (no entities: looked for above)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    found: Counter[str] = Counter()
    for number, row in enumerate(root.findall(f"{_SPACE}sheetData/{_SPACE}row"), 1):
        cells = {cell.get("r"): cell for cell in row}
        if row.get("r") != str(number) or set(cells) != {f"A{number}", f"B{number}"} or len(row) != 2:
            return None
        texts = []
        for cell in cells.values():
            inside = [part for part in cell.iter() if part is not cell]
            tags = [part.tag.removeprefix(_SPACE) for part in inside]
            if cell.attrib.keys() != {"r", "t"} or cell.get("t") != "inlineStr" or tags != ["is", "t"]:
                return None
            texts.append(inside[1].text or "")
        if not all(map(_PLAIN.fullmatch, texts)) or (number == 1) != (texts == ["user", "item"]):
            return None
        found[texts[1]] += number > 1
    return +found or None


def workbook_seeds() -> Sequence[bytes]:
    """Sheets of texts, numbers, dates, errors and formulas; an archive of each kind."""
    texts: Rows = [["user", "item"], ["u", "a"], ["v", "b"], ["u", "b"]]
    odd: Rows = [
        ["user", "item"],
        ["u", date(45000)],
        ["v", error("#N/A")],
        ["w", formula("A1", "a")],
        ["x", True],
    ]
    sheets = [sheet_xml(rows) for rows in (texts, _ROWS, odd, [["user", "item"]], [])]
    sheets += [sheet_xml(texts, first_row=4, first_column=2), sheet_xml([*texts, [None] * 2, ["w", "a"]])]
    archives = [
        b"z" + packed(parts({"One": texts, "Two": _ROWS}, hidden=["One"])),
        b"o" + open_document(texts),
    ]
    return [*(b"x" + one.encode() for one in sheets), *archives]


WORDS = [
    "<c>", "</c>", "<row/>", ' r="XFD1048576"', ' r="A1"', ' t="s"', ' t="d"', ' t="e"', ' t="inlineStr"',
    ' s="1"', "<v>1e999</v>", "<v>NaN</v>", "<v>-1</v>", "<v>4294967296</v>", "&amp;", "&#0;",
    "<mergeCells/>", "<!DOCTYPE x>",
]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Another sheet or archive of the same kind; now and then another kind."""
    kind = rng.choice([b"x", b"z", b"o"]) if rng.random() < 0.02 else data[:1]
    return kind + bytes_mutated(data[1:], rng, WORDS)


TARGETS = (
    Target(
        "workbooks",
        check_workbook,
        workbook_seeds,
        mutated,
        ("tables/workbook.py", "tables/archive.py"),
        everyday=40,
    ),
)
