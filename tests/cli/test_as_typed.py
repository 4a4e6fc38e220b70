"""Messages of the library name parameters; a command names its options instead, from click's own table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

import sottovoce
from sottovoce.cli.app import COMMANDS, app, as_typed
from sottovoce.errors import ParameterError, Setting

SOURCE = Path(sottovoce.__file__).parent
ONLY_IN_PYTHON = {"gamma", "weight", "n", "k", "size", "steps", "draws_of_users", "worst_share"}


def commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(app)
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found.update({f"{name} {inner}": each for inner, each in command.commands.items()})
        else:
            found[name] = command
    return found


def settings_in_the_source() -> set[tuple[str, str]]:
    """(module, parameter) of every Setting with a parameter that is written out."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Setting":
                (first, *_) = node.args
                if isinstance(first, ast.Constant):
                    found.add((str(path.relative_to(SOURCE)), str(first.value)))
    return found


def test_no_message_below_the_commands_names_an_option() -> None:
    """An option that is named far from where it is declared is soon one that does not exist."""
    named = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] != "cli":
            texts = texts_of(ast.parse(path.read_text(encoding="utf-8")))
            named += [(str(path.relative_to(SOURCE)), text) for text in texts if OPTION.search(text)]
    assert not named


OPTION = re.compile(r"(^|[ (`])--[a-z]")


def texts_of(tree: ast.Module) -> list[str]:
    """Every text of a module but its docstrings, also those in f-strings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents
    )
    return [node.value for node in constants if isinstance(node.value, str)]


@pytest.mark.parametrize("line", ["raise E('pass --by.')", "x = f'{y} (--force)'", "A = 'two\\n --lines'"])
def test_an_option_in_a_message_is_found(line: str) -> None:
    assert any(map(OPTION.search, texts_of(ast.parse(line))))


@pytest.mark.parametrize(("module", "parameter"), sorted(settings_in_the_source()))
def test_every_parameter_that_a_message_names_has_an_option(module: str, parameter: str) -> None:
    setting = Setting(parameter, "x")
    typed = {as_typed([setting], command) for command in commands().values()}
    options = {text for text in typed if text.startswith("--")}
    assert options or parameter in ONLY_IN_PYTHON, f"{module}: no command has an option for {parameter}"
    declared = {flag for command in commands().values() for each in command.params for flag in each.opts}
    assert {text.split()[0] for text in options} <= declared


@pytest.mark.parametrize(
    ("command", "setting", "typed"),
    [
        ("release", Setting("unknown", "drop"), "--unknown drop"),
        ("release", Setting("other", "NAME"), "--unknown as=NAME"),
        ("release", Setting("exhausted", "skip"), "--exhausted skip"),
        ("release", Setting("force", True), "--force"),
        ("compare", Setting("unknown_groups", "drop"), "--unknown drop"),
        ("prior", Setting("merge_rare", "NAME"), "--rare as=NAME"),
        ("prior", Setting("drop_zero", True), "--rare drop"),
        ("prior", Setting("missing", "drop"), "--read missing=drop"),
        ("prior", Setting("sheet"), "--read sheet=…"),
        ("choose", Setting("mean_at_most"), "--mean-at-most"),
        ("choose", Setting("count", "number of people"), "--count 'number of people'"),
        ("audit", Setting("merge_rare", "NAME"), "sottovoce prior --rare as=NAME"),
        ("ledger grant", Setting("more"), "MORE"),
        ("audit", Setting("gamma", 2), "gamma=2"),
    ],
)
def test_a_parameter_is_what_a_user_types(command: str, setting: Setting, typed: str) -> None:
    assert as_typed(["pass ", setting, "."], commands()[command]) == f"pass {typed}."


def test_an_error_knows_the_parameter_it_is_about() -> None:
    error = ParameterError(Setting("epsilon"), " must be greater than 0, got 0")
    assert (error.parameter, str(error)) == ("epsilon", "epsilon must be greater than 0, got 0")
    assert ParameterError("plain").parameter is None
