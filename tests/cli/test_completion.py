"""What the shell completes: columns of the tables on the command line, topics of the help."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from sottovoce.cli import columns
from sottovoce.tables.header import missing_column

CODE = "import sys; sys.argv = ['sottovoce']; from sottovoce.__main__ import main; main()"
SURVEY = "kind,zahl\nDrama,30\nWar,10\n"
MEMBERS = "who,film,plays\nanna,Drama,3\nben,War,1\n"


def completed(folder: Path, line: str) -> list[str]:
    """What bash is offered at the end of a line; nothing may be said beside it."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_SOTTOVOCE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
        timeout=120,  # a reader of a pipe would wait for ever
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.csv").write_text(SURVEY)
    (tmp_path / "members.csv").write_text(MEMBERS)
    (tmp_path / "members.csv.gz").write_bytes(gzip.compress(MEMBERS.encode()))
    (tmp_path / "members.tsv").write_text(MEMBERS.replace(",", "\t"))
    (tmp_path / "latin.csv").write_bytes("who;œuvre;n\na;b;1\nb;c;2\n".encode("utf-16"))
    records = [dict(zip(("who", "film", "plays"), ("anna", "Drama", 3), strict=True))]
    (tmp_path / "members.json").write_text(json.dumps(records))
    (tmp_path / "members.jsonl").write_text("\n".join(map(json.dumps, records * 2)) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("compare survey.csv members.csv --item ", ["kind", "zahl"]),  # nothing tells of the private one
        ("compare survey.csv members.csv --user who --item f", ["film"]),
        ("compare survey.csv members.csv --item film --user ", ["who", "film", "plays"]),
        ("compare survey.csv members.csv --user ", []),
        ("compare survey.csv members.csv --count ", ["kind", "zahl"]),
        ("compare survey.csv members.csv --user who --item film --weight p", ["plays"]),
        (
            "compare --epsilon 1 survey.csv members.csv --user who --by ",
            ["kind", "zahl", "who", "film", "plays"],
        ),
        ("release mechanism.json members.csv --user who --by f", ["film"]),
        ("estimate mechanism.json members.csv --user ", ["who", "film", "plays"]),
        ("prior survey.csv --top-by ", ["kind", "zahl"]),
        ("choose survey.csv members.csv --weight ", []),  # neither user nor item: nothing tells a header
        ("prior members.csv.gz --item ", ["who", "film", "plays"]),
        ("prior members.tsv --item ", ["who", "film", "plays"]),
        ("prior members.json --item ", ["who", "film", "plays"]),
        ("prior members.jsonl --item ", ["who", "film", "plays"]),
        ("prior latin.csv --item ", ["who", "œuvre", "n"]),
        ("prior survey.csv --separator tab --item ", []),
        ("prior survey.csv --separator nonsense --item ", []),
        ("prior missing.csv --item ", []),
        ("prior - --item ", []),
        ("prior /dev/stdin --item ", []),
        ("prior --item ", []),
        ("help exit", ["exit-codes"]),
        ("help relea", ["release"]),
        ("compare a.csv b.csv --progress j", ["json"]),
    ],
)
def test_the_shell_is_offered(folder: Path, line: str, offered: list[str]) -> None:
    assert completed(folder, f"sottovoce {line}") == offered


@pytest.mark.parametrize(
    "text",
    [
        "anna,Drama\nben,War\n",  # no header: the names would be somebody's row
        "anna,Drama,3\nben,War,1\n",
        "film,plays\nfilm,3\nWar,1\n",  # a value that is a name
        "film,plays\n",  # nothing below
        "film,film\nDrama,3\n",
        "",
    ],
)
def test_what_may_be_data_is_not_offered(folder: Path, text: str) -> None:
    (folder / "t.csv").write_text(text)
    assert completed(folder, "sottovoce prior t.csv --item ") == []


def test_messages_and_completion_follow_one_rule(folder: Path) -> None:
    """Where the message lists the columns, they are offered; where it does not, they are not."""
    tables = {"who,film,plays\nx,Drama,3\n": True, "anna,Drama\nben,War\n": False, "a,b\nb,1\n": False}
    for text, listed in tables.items():
        head, *below = [line.split(",") for line in text.split()]
        rows = {name: [row[k] for row in below] for k, name in enumerate(head)}
        refused = missing_column(head, ["user"], partial(dict, rows))
        assert ("the table has" in str(refused)) == listed
        (folder / "t.csv").write_text(text)
        assert bool(completed(folder, "sottovoce compare t.csv t.csv --weight w --item ")) == listed


def test_a_pipe_is_not_read(folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    os.mkfifo(folder / "pipe.csv")
    assert completed(folder, "sottovoce prior pipe.csv --item ") == []


def test_only_the_beginning_of_a_file_is_read(folder: Path) -> None:
    rows = "".join(f"t{k},{k}\n" for k in range(20_000))
    (folder / "long.csv").write_text(f"kind,zahl\n{rows}")
    assert completed(folder, "sottovoce prior long.csv --item ") == ["kind", "zahl"]
    found = columns._beginning(folder / "long.csv", {})
    assert sum(map(len, ("".join(row) for row in found))) < columns.LOOKED_AT
    (folder / "late.csv").write_text(f"kind,zahl\n{rows}kind,3\n")  # far below: not looked at
    assert completed(folder, "sottovoce prior late.csv --item ") == ["kind", "zahl"]
    first = "zahl,film\n"
    rows = "1,a\n" * ((columns.LOOKED_AT - len(first)) // 4 - 2)
    gap = columns.LOOKED_AT - len(first) - len(rows) - len("3,film") - len("1,\n")
    (folder / "cut.csv").write_text(f"{first}{rows}1,{'b' * gap}\n3,filmstar\n")
    assert (folder / "cut.csv").read_text()[: columns.LOOKED_AT].endswith("\n3,film")  # a name, by the cut
    assert completed(folder, "sottovoce prior cut.csv --item ") == ["zahl", "film"]


def test_names_that_a_shell_would_run_are_not_offered(folder: Path) -> None:
    names = ["film", "$(touch x)", "`id`", "a;b", "release year", "-o", "it's", 'say"so', "a|b", "plays"]
    header = ";".join(f'"{name}"' if ";" in name else name.replace('"', '""') for name in names)
    (folder / "t.csv").write_text(f"{header}\n{';'.join('v' for _ in names[:-1])};3\n")
    assert completed(folder, "sottovoce prior t.csv --separator semicolon --item ") == ["film", "plays"]


@pytest.mark.parametrize("rows", ["alice,drama,NA\nbob,comedy,3\ncarol,horror,4\n", "alice,NA\nbob,3\n"])
def test_the_first_row_of_a_private_table_is_not_offered(folder: Path, rows: str) -> None:
    """A table without a header: numbers below a name look like a header, and are not enough here."""
    (folder / "bare.csv").write_text(rows)
    for option in ("--user", "--item", "--weight", "--by"):
        assert completed(folder, f"sottovoce release m.json bare.csv {option} ") == []
        assert completed(folder, f"sottovoce compare survey.csv bare.csv {option} --item x ") == []
