"""The documents run: the README's example, its tables, its commands and its links."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sottovoce as sv
from experiments import avazu, avazu_like, movielens
from experiments.documents import BLOCKS, rendered, replace_block

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def blocks(path: str, language: str) -> list[str]:
    """The code blocks of a document in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


def printed_by(code: str, page: str, names: dict[str, Any]) -> str:
    """What the code prints, with its names put into `names`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, page, "exec"), names)  # noqa: S102
    return out.getvalue()


def test_the_readme_examples_run_and_print_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, tables = blocks("README.md", "python")
    (shown,) = blocks("README.md", "text")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    names: dict[str, Any] = {}
    *law, released = printed_by(code, "README.md", names).splitlines()
    *stated, example = shown.splitlines()
    assert law == stated
    assert {released, example} <= {f"released now: {genre}" for genre in names["prior"].categories}
    names["survey"] = pl.DataFrame({"genre": ["War", "Drama", "Noir"], "count": [5, 30, 2]})
    names["histories"] = pl.DataFrame({"member": ["a", "a", "b"], "genre": ["War", "Drama", "Noir"]})
    monkeypatch.chdir(tmp_path)
    assert printed_by(tables, "README.md", names).strip() in names["prior"].categories
    assert len(names["table"]) == 2 * (1 + len(sv.SAMPLERS))


def test_the_page_on_ones_own_sampler_runs() -> None:
    names: dict[str, Any] = {}
    printed = printed_by("".join(blocks("docs/own-sampler.md", "python")), "own-sampler.md", names)
    assert "mixed is not private at epsilon 2" in printed
    assert "le-cam" in printed
    assert "mine" in repr(names["mechanism"])


def test_the_example_of_the_page_on_tables_runs() -> None:
    names: dict[str, Any] = {}
    printed = printed_by("".join(blocks("docs/tables.md", "python")), "tables.md", names)
    assert names["prior"].categories == ("Drama", "War", "rest")
    assert printed.count("kernel") == 2
    assert {row.group for row in names["table"]} == {"DE", "FR"}


def test_the_example_of_the_page_on_estimating_runs() -> None:
    (code,) = blocks("docs/estimating.md", "python")
    names: dict[str, Any] = {}
    printed = printed_by(code, "estimating.md", names)
    found = names["found"]
    assert np.abs(found.values - [0.5, 0.25, 1 / 6, 1 / 12]).max() < 6 * found.standard_errors.max()
    assert "50,000 reports" in printed


@pytest.mark.full
def test_the_table_of_the_invented_log_is_what_the_code_prints(tmp_path: Path) -> None:
    log = avazu_like.write(tmp_path / "log.csv.gz", 1_000_000)
    _, rows = avazu.run(log, tmp_path / "out")
    now, anew = replace_block("docs/experiments.md", "avazu-like", avazu.summary(rows))
    assert now == anew


@pytest.mark.skipif(not os.environ.get("SOTTOVOCE_DATA"), reason="set SOTTOVOCE_DATA to the folder of ml-1m")
def test_the_movielens_tables_are_what_the_code_prints() -> None:
    rows = movielens.measure(Path(os.environ["SOTTOVOCE_DATA"]))
    for name, table in (("movielens", movielens.summary(rows)), ("maxima", movielens.maxima(rows))):
        now, anew = replace_block("docs/experiments.md", name, table)
        assert now == anew


@pytest.mark.parametrize("name", BLOCKS)
def test_tables_in_documents_are_what_the_code_prints(name: str) -> None:
    path, now, anew = rendered(name)
    assert now == anew, f"{path.name} is stale: run make figures"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert "://" in target or (path.parent / target).exists(), target


def test_every_make_target_in_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in DOCUMENTS:
        for target in re.findall(r"`make ([a-z-]+)`", path.read_text(encoding="utf-8")):
            assert target in targets, f"{path.name}: make {target}"


def test_every_command_in_documents_exists() -> None:
    import click

    from sottovoce.cli.app import COMMANDS, app

    context = click.Context(app)
    commands: dict[str, Any] = {name: app.get_command(context, name) for name in COMMANDS}
    for path in DOCUMENTS:
        for line in re.findall(
            r"(?:`|^)sottovoce ([a-z]+ [^`\n]*)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            name, *rest = line.split()
            assert name in commands, f"{path.name}: sottovoce {name}"
            command = commands[name]
            if hasattr(command, "commands") and rest:
                assert rest[0] in command.commands, f"{path.name}: {line}"
                command = command.commands[rest[0]]
            known = {option for parameter in command.params for option in parameter.opts}
            for word in rest:
                assert not word.startswith("-") or word in known, f"{path.name}: {line}"


def test_every_option_in_the_pages_of_commands_exists() -> None:
    """Also where a page names an option without its whole command."""
    import click

    from sottovoce.cli.app import COMMANDS, app

    context = click.Context(app)
    known = {"--help", *(text for option in app.params for text in option.opts)}
    for name in COMMANDS:
        command: Any = app.get_command(context, name)
        for one in (command, *getattr(command, "commands", {}).values()):
            known |= {text for option in one.params for text in (*option.opts, *option.secondary_opts)}
    for page in ("tables", "commands", "tutorial", "choosing", "estimating", "collecting"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert not named - known, page


def test_the_numbers_choosing_quotes_are_in_its_table() -> None:
    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    table, prose = text.split("<!-- end choosing -->")
    for number in re.findall(r"\b0\.\d{3}\b", prose):
        assert number in table, number
