"""`sottovoce help`: every topic is shown from its document, at eighty columns, also from a built wheel."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command import check_refused, run
from rich.console import Console
from typer.main import get_command

from sottovoce.cli.documents import TOPICS, Topic, find_documents, markdown, title
from sottovoce.cli.help import complete_topic
from sottovoce.cli.lazily import COMMANDS
from sottovoce.cli.main import app
from sottovoce.cli.pages import PLAIN, print_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def words(text: str) -> list[str]:
    """The words of a text, whatever stands between them."""
    return re.findall(r"\w+", text)


def document(topic: Topic) -> str:
    return (DOCS / topic.file).read_text(encoding="utf-8")


def test_the_list_has_every_command_and_every_topic_with_its_heading() -> None:
    done = run("help")
    assert done.returncode == 0
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith(" ")]
    shown = {name: said.strip() for name, said in lines}
    assert list(shown) == [*COMMANDS, *TOPICS]
    assert {name: shown[name] for name in COMMANDS} == COMMANDS
    for name, topic in TOPICS.items():
        assert re.search(rf"^#+ (\d+\. )?{re.escape(shown[name])}$", document(topic), re.MULTILINE), name
    assert not set(TOPICS) & set(COMMANDS)


def test_every_topic_is_a_document_or_a_section_of_the_one_before() -> None:
    whole = ""
    for name, topic in TOPICS.items():
        if topic.heading is None:
            whole = topic.file
        assert topic.file == whole, name
        assert title(topic)


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_its_document_within_eighty_columns(name: str) -> None:
    done = run("help", name)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    source = document(TOPICS[name])
    code = {
        line.strip() for block in re.findall(r"```.*?```", source, re.DOTALL) for line in block.splitlines()
    }
    code |= {line.strip() for line in source.splitlines() if line.startswith("    ")}
    for line in done.stdout.splitlines():
        assert len(line) <= PLAIN or line.strip() in code, line
        assert line == line.rstrip()
    assert "](" not in done.stdout
    assert "<!--" not in done.stdout
    # Every word of the document is there: nothing is cut.
    heading = TOPICS[name].heading
    if heading is None:
        kept = set(words(done.stdout))
        missing = [
            word for word in words(re.sub(r"\]\([^)]*\)|<!--.*?-->|```\w*", " ", source)) if word not in kept
        ]
        broken = "".join(done.stdout.split())
        assert [word for word in missing if word not in broken] == []


def test_a_section_ends_where_the_next_one_begins() -> None:
    shown = run("help", "samplers").stdout
    assert shown.startswith("The samplers\n------------\n")
    assert "rr_with_prior" in shown
    assert "Let it choose" not in shown
    inner = markdown(Topic("guarantees.md", "Each promise and its test"))
    assert "### How sure the black box is" in inner
    assert "## An outside judge" not in inner


def test_links_say_what_to_ask_for_and_pictures_what_they_show() -> None:
    tutorial = markdown(TOPICS["tutorial"])
    assert "(help guarantees)" in tutorial or "(help choosing)" in tutorial
    assert "(picture: " in tutorial
    assert "(help reading)" in markdown(TOPICS["tables"])
    assert "SECURITY.md says how" in markdown(TOPICS["guarantees"])


def test_a_command_is_its_own_help() -> None:
    for path in (["release"], ["ledger"], ["ledger", "left"]):
        assert run("help", *path).stdout == run(*path, "--help").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["choosng"], "there is no topic 'choosng'; did you mean choosing? See: sottovoce help"),
        (["ledgr"], "did you mean ledger?"),
        (["exit", "cods"], "did you mean exit-codes?"),
        (["qqq"], "there is no topic 'qqq'. See: sottovoce help"),
        (["ledger", "lft"], "Did you mean 'left'?"),
    ],
)
def test_a_slip_in_a_topic(given: list[str], said: str) -> None:
    check_refused(run("help", *given), said)


def test_names_of_topics_are_forgiving() -> None:
    assert run("help", "Exit_Codes").stdout == run("help", "exit", "codes").stdout != ""
    assert complete_topic("exp") == ["explore"]
    assert complete_topic("EXIT_") == ["exit-codes"]


def test_help_without_its_documents_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PACKAGED", "IN_CHECKOUT"):
        monkeypatch.setattr(f"sottovoce.cli.documents.{name}", tmp_path / "none")
    assert find_documents() is None
    with pytest.raises(Exception, match="not part of this installation"):
        markdown(TOPICS["choosing"])


def shown(text: str, width: int = 80, *, terminal: bool = True) -> str:
    console = Console(width=width, force_terminal=terminal, color_system=None, file=io.StringIO())
    with console.capture() as held:
        print_page(console, text)
    return held.get()


def test_a_table_whose_numbers_do_not_fit_is_shown_row_by_row() -> None:
    table = "|name|first|second|\n|---|---:|---:|\n|a|0.1 / 0.2|0.3 / 0.4|\n|b|0.5 / 0.6|0.7 / 0.8|\n"
    wide, narrow = shown(table, 40), shown(table, 20)
    assert "0.5 / 0.6  0.7 / 0.8" in wide
    assert [" ".join(line.split()) for line in narrow.splitlines() if line.strip()] == [
        "a", "first 0.1 / 0.2", "second 0.3 / 0.4", "b", "first 0.5 / 0.6", "second 0.7 / 0.8",
    ]  # fmt: skip


def test_code_is_neither_wrapped_nor_padded() -> None:
    line = "sottovoce " + "x" * 100
    for terminal in (True, False):
        assert f"    {line}\n" in shown(f"```sh\n{line}\n```\n", terminal=terminal)


def test_a_built_wheel_holds_every_document_and_shows_it(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(made) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(tmp_path / "installed")
    packaged = {Path(name).name for name in names if name.startswith("sottovoce/cli/docs/")}
    assert packaged == {topic.file for topic in TOPICS.values()}
    place = tmp_path / "installed"
    code = "import sys; sys.argv[0] = 'sottovoce'; from sottovoce.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "help", "exit-codes"],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    assert done.stdout == run("help", "exit-codes").stdout != "", done.stderr


def commands() -> list[list[str]]:
    """Every command, and every command of a group."""
    group = get_command(app)
    found: list[list[str]] = []
    for name in COMMANDS:
        inner = getattr(group.commands[name], "commands", {})  # type: ignore[attr-defined]
        found += [[name, one] for one in inner] or [[name]]
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_the_help_of_a_command_fits_eighty_columns(path: list[str]) -> None:
    shown = run(*path, "-h").stdout
    command: Any = get_command(app)
    for name in path:
        command = command.commands[name]
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 80
    for example in command.help.partition("Examples:\n")[2].splitlines():
        assert f" {example}".rstrip() in lines, "an example is broken at the end of the line"
    for option in command.params:
        for name in (one for one in option.opts if one.startswith("--")):
            row = next(line for line in lines if re.match(rf"│[ *]+{name} ", line))
            assert not (option.is_flag and re.search("<bool>|BOOLEAN", row)), row
