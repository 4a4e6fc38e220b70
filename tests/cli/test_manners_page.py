"""docs/manners.md: every line of its tables is run, and its exit code and words compared."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from workbooks import Cell, write_workbook

PAGE = (Path(__file__).parents[2] / "docs" / "manners.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| `\$ ([^`]+)` \| (\d+) \| `([^`]+)` \|$", PAGE, re.MULTILINE)
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```text\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL))
RUN = "import sys; sys.argv[0] = 'sottovoce'; from sottovoce.__main__ import main; main()"


def test_the_page_has_its_tables() -> None:
    assert len(ROWS) == PAGE.count("| `$ ") >= 27
    assert set(FILES) == {
        "survey.csv",
        "views.csv",
        "zeros.csv",
        "members.csv",
        "plays.csv",
        "commas.csv",
        "shop.csv",
        "strangers.csv",
    }


def _cell(field: str) -> Cell:
    return int(field) if field.isdigit() else field or None


@pytest.mark.parametrize(
    ("command", "code", "words"), [row[1:] for row in ROWS], ids=[row[1] for row in ROWS]
)
def test_a_line_of_the_page(tmp_path: Path, command: str, code: str, words: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sheets = {
        sheet: [[_cell(field) for field in line.replace(";", ",").split(",")] for line in FILES[name].split()]
        for sheet, name in {"Survey": "survey.csv", "Members": "members.csv"}.items()
    }
    write_workbook(tmp_path / "survey.xlsx", sheets)
    line, _, source = command.partition(" < ")
    program, *arguments = shlex.split(line)
    assert program == "sottovoce"
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        input=FILES[source] if source else "",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert str(done.returncode) == code, said
    assert words in said
    if "--quiet" in arguments:
        assert done.stderr == ""
    if code == "2":
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
