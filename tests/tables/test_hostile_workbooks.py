"""Workbooks from strangers: bombs, damage, lies about what they are. One line each, and no cell of theirs."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
from pathlib import Path

import pytest
from workbooks import Rows, compound, old_workbook, open_document, packed, parts, sheet_xml, write_workbook

import sottovoce as sv
from sottovoce.tables import priors as priors_table
from sottovoce.tables import workbook

pytest.importorskip("fastexcel")
PRIVATE = "Zyklamen"
PUBLIC: Rows = [["item", "count"], [PRIVATE, 30], ["War", 10]]


def refused(path: Path, words: str) -> None:
    with pytest.raises(sv.errors.SottovoceError, match=words) as caught:
        priors_table.read_priors(path)
    message = str(caught.value)
    assert str(path) in message
    assert PRIVATE not in message
    assert "\n" not in message


def book(more: dict[str, str] | None = None) -> bytes:
    return packed(parts({"a": PUBLIC}, more=more))


def with_flags(content: bytes, flag: int) -> bytes:
    """The archive with a flag set for every part, in its list of parts."""
    changed, at = bytearray(content), content.find(b"PK\x01\x02")
    while at >= 0:
        changed[at + 8 : at + 10] = struct.pack("<H", flag)
        at = content.find(b"PK\x01\x02", at + 4)
    return bytes(changed)


def saying(content: bytes, name: str, size: int) -> bytes:
    """The archive with a lie about the unpacked size of one part, in both places."""
    changed = bytearray(content)
    for mark, at_size, at_name in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        at = content.find(mark)
        while at >= 0:
            if content[at + at_name : at + at_name + len(name)] == name.encode():
                changed[at + at_size : at + at_size + 4] = struct.pack("<I", size)
            at = content.find(mark, at + 4)
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xlsx", b"item,count\nZyklamen,30\n", "no workbook, whatever its name says; .* name it .csv"),
        ("t.xlsx", gzip.compress(book()), "unpack it first"),
        ("t.xlsx", compound({"EncryptedPackage": b"x" * 5000}), "protected by a password"),
        ("t.xlsx", old_workbook(PUBLIC), r"no \.xlsx workbook; name it \.xls"),
        ("t.xls", book(), r"no \.xls workbook; name it \.xlsx"),
        ("t.xls", b"item,count\n", "no workbook, whatever its name says"),
        ("t.xls", compound({"Nothing": b"x" * 5000}), "cut off or damaged"),
        ("t.xls", old_workbook(PUBLIC)[:1500], "cut off or damaged"),
        ("t.csv", book(), r"a workbook or an archive; name it \.xlsx"),
        ("t.tsv", old_workbook(PUBLIC), r"a workbook or an archive; name it \.xls"),
        ("t.csv", open_document(PUBLIC), r"a workbook or an archive; name it \.ods"),
        ("t.xlsx", book()[:-30], "cut off or damaged"),
        ("t.xlsx", book()[:400], "cut off or damaged"),
        ("t.xlsx", b"PK\x03\x04", "cut off or damaged"),
        ("t.xlsx", b"PK\x05\x06" + b"\0" * 18, "no workbook, whatever its name says"),
        ("t.xlsx", packed({"a.txt": PRIVATE}), "cut off or damaged"),
        ("t.ods", packed({"a.txt": PRIVATE}), "cut off or damaged"),
        ("t.xlsx", with_flags(book(), 1), "protected by a password"),
        ("t.xlsx", packed(parts({})), "no sheet|cut off or damaged"),
        ("t.xlsx", book({"xl/worksheets/sheet1.xml": f"<worksheet><{PRIVATE}"}), "empty|cut off or damaged"),
        ("t.xlsx", book({"xl/workbook.xml": PRIVATE}), "no sheet|cut off or damaged"),
        ("t.xlsx", book({"xl/_rels/workbook.xml.rels": "<Relationships/>"}), "cut off or damaged|no sheet"),
        ("t.xlsx", b"", "is empty"),
    ],
)  # fmt: skip
def test_what_is_no_readable_workbook_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, words)


def test_a_shared_string_that_is_not_there_shows_nothing(tmp_path: Path) -> None:
    rows = sheet_xml(PUBLIC).replace(
        "</sheetData>", '<row r="4"><c r="A4" t="s"><v>99</v></c></row></sheetData>'
    )
    path = write_workbook(tmp_path / "t.xlsx", {"a": rows})
    refused(path, "cut off or damaged|missing values")


def test_other_ways_to_pack_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as whole:
        for name, text in parts({"a": PUBLIC}).items():
            whole.writestr(name, text)
    (tmp_path / "t.xlsx").write_bytes(buffer.getvalue())
    refused(tmp_path / "t.xlsx", "packed in an unusual way")


def test_bombs_are_refused_by_what_they_say_and_by_what_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are lowered here, and asked in this process, so that the bomb of the test can be small."""
    bomb = packed(parts({"a": PUBLIC}, more={"xl/media/x.bin": "0" * 3_000_000}))
    path = tmp_path / "t.xlsx"
    assert workbook.unpacked_size(bomb, path) == 3_000_000 + workbook.unpacked_size(book(), path)
    monkeypatch.setattr(workbook, "LEAST", 1 << 20)
    monkeypatch.setattr(workbook, "RATIO", 100)
    claim = saying(book(), "xl/workbook.xml", 1 << 30)  # is not even unpacked
    for content in (bomb, saying(bomb, "xl/media/x.bin", 10), claim):
        with pytest.raises(sv.errors.TableError, match=r"t\.xlsx unpacks to more than 1 MiB: refused"):
            workbook.unpacked_size(content, path)
    assert workbook.unpacked_size(book(), path) > 0


def test_a_real_bomb_is_refused(tmp_path: Path) -> None:
    zeros = sheet_xml(PUBLIC, more="<!--" + "0" * (workbook.LEAST + 1) + "-->")
    path = write_workbook(tmp_path / "t.xlsx", {"a": zeros})
    assert path.stat().st_size < 1 << 20
    refused(path, "unpacks to more than 256 MiB: refused")


@pytest.mark.parametrize(("row", "column"), [(1048576, "XFD"), (100_000, "ALL")], ids=["500 GB", "3 GB"])
def test_a_cell_very_far_away_does_not_fill_the_memory(tmp_path: Path, row: int, column: str) -> None:
    """The reader keeps 32 bytes for every place up to the last cell; the smaller one fits most machines."""
    far = f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row></sheetData>'
    path = write_workbook(tmp_path / "t.xlsx", {"a": sheet_xml(PUBLIC).replace("</sheetData>", far)})
    refused(path, "its reader broke down.*far away from the table")
    assert priors_table.read_priors(
        write_workbook(tmp_path / "u.xlsx", PUBLIC)
    ).priors  # the next one is read


def test_one_long_text_in_very_many_cells_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A text that is shared is kept once in the file, and once for each cell by its reader: here 40 GB."""
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 2001))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    shared = f'<sst xmlns="{main}" count="1" uniqueCount="1"><si><t>{"a" * 20_000_000}</t></si></sst>'
    rows = f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
    files = parts({"a": rows}, more={"xl/sharedStrings.xml": shared})
    relations = files["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        '<Relationship Id="rId98" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        'sharedStrings" Target="sharedStrings.xml"/></Relationships>',
    )
    (tmp_path / "t.xlsx").write_bytes(packed({**files, "xl/_rels/workbook.xml.rels": relations}))
    refused(tmp_path / "t.xlsx", "its reader broke down.*too much memory")


@pytest.mark.parametrize("kind", [".xlsx", ".ods", ".xls"])
def test_random_damage_is_never_a_traceback(tmp_path: Path, kind: str) -> None:
    rng, path = random.Random(f"damage {kind}"), tmp_path / f"t{kind}"
    whole = {".xlsx": book(), ".ods": open_document(PUBLIC), ".xls": old_workbook(PUBLIC)}[kind]
    messages = []
    for _ in range(25):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 4, 40])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(bytes(damaged[: rng.choice([len(damaged), rng.randrange(1, len(damaged))])]))
        try:
            priors_table.read_priors(path)
        except sv.errors.SottovoceError as problem:
            messages.append(str(problem))
    assert messages
    assert not [one for one in messages if "\n" in one or PRIVATE in one]
