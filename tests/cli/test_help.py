"""Help: of every command within eighty columns, and of every topic from its document, also from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import pytest
from command import check_refused, run

from sottovoce.cli import help as command_line
from sottovoce.cli.app import COMMANDS, app
from sottovoce.cli.help import TOPICS, document
from sottovoce.errors import ParameterError

ROOT = Path(__file__).parents[2]
CONTEXT = click.Context(app)


def commands() -> list[list[str]]:
    """Every command, and every command of a group."""
    paths: list[list[str]] = []
    for name in COMMANDS:
        inner = getattr(app.get_command(CONTEXT, name), "commands", {})
        paths += [[name, one] for one in inner] or [[name]]
    return paths


def command_of(path: list[str]) -> click.Command:
    command: click.Command = app
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(CONTEXT, name)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_the_help_of_a_command_fits_eighty_columns(path: list[str]) -> None:
    lines = [line.rstrip() for line in run(*path, "-h").stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    command = command_of(path)
    examples = (command.help or "").partition("Examples:\n")[2].splitlines()
    assert examples
    shown = [line.strip() for line in lines]
    assert [line.strip() for line in examples if line.strip() not in shown] == []  # none is broken
    for option in command.params:
        for name in (one for one in option.opts if one.startswith("--")):
            assert any(name in line.split() for line in lines), name
            assert isinstance(option, click.Option)
            assert option.help


def test_compare_fits_two_screens_and_there_are_at_most_140_options() -> None:
    assert len(run("compare", "-h").stdout.splitlines()) <= 2 * 32
    options = [
        option
        for path in [[], *commands()]
        for option in command_of(path).params
        if isinstance(option, click.Option)
    ]
    assert len(options) <= 140


def test_the_list_has_every_command_and_every_topic() -> None:
    shown = run("help").stdout
    assert all(f"\n  {name}" in shown for name in COMMANDS)
    assert ", ".join(TOPICS) in shown
    assert not set(TOPICS) & set(COMMANDS)


def test_a_command_is_its_own_help() -> None:
    for path in (["release"], ["ledger"], ["ledger", "show"]):
        assert run("help", *path).stdout == run(*path, "--help").stdout != ""


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_its_document(name: str) -> None:
    done = run("help", name)
    assert done.returncode == 0
    assert "<!--" not in done.stdout
    assert "](" not in done.stdout
    title = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    assert title in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["choosng"], "there is no topic 'choosng'; did you mean choosing? See: sottovoce help"),
        (["ledgr"], "did you mean ledger?"),
        (["qqq"], "there is no topic 'qqq'. See: sottovoce help"),
        (["ledger", "shw"], "Did you mean 'show'?"),
    ],
)
def test_a_slip_in_a_topic(given: list[str], said: str) -> None:
    check_refused(run("help", *given), said)


def test_help_without_its_documents_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PACKAGED", "IN_CHECKOUT"):
        monkeypatch.setattr(command_line, name, tmp_path / "none")
    with pytest.raises(ParameterError, match="not part of this installation"):
        document("choosing")


def test_a_built_wheel_holds_every_document_and_shows_it(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    place = tmp_path / "installed"
    with zipfile.ZipFile(made) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(place)
    packaged = {Path(name).stem for name in names if name.startswith("sottovoce/cli/docs/")}
    assert packaged == set(TOPICS)
    code = "import sys; sys.argv[0] = 'sottovoce'; from sottovoce.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "help", "notation"],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    assert done.stdout == run("help", "notation").stdout != "", done.stderr
