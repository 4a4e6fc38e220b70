"""The command help: what a command takes, and the documents, in the terminal."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

import click

from ..errors import ParameterError
from .app import COMMANDS, app
from .terminal import console, print_note, print_text

PACKAGED = Path(__file__).with_name("docs")
"""The documents in an installed package: pyproject.toml puts them there."""
IN_CHECKOUT = Path(__file__).resolve().parents[3] / "docs"
TOPICS = (
    "tutorial", "commands", "choosing", "tables", "streams", "learning", "places", "collecting", "estimating",
    "own-sampler", "guarantees", "format", "notation",
)  # fmt: skip
"""The documents that can be read in the terminal, beside the help of the commands."""


@click.command("help")
@click.argument("topic", nargs=-1)
def help_command(topic: tuple[str, ...]) -> None:
    """Read about a command or a topic in the terminal; without TOPIC, list them.

    \b
    Examples:
      sottovoce help
      sottovoce help choosing
      sottovoce help ledger show
    """
    if not topic:
        commands = app.get_help(click.Context(app, info_name="sottovoce"))
        print_text(f"{commands}\n\nTopics:\n  {', '.join(TOPICS)}")
        print_note("Read one: sottovoce help NAME.")
    elif topic[0] in COMMANDS:
        app.main([*topic, "--help"], prog_name="sottovoce", standalone_mode=False)
    else:
        from rich.markdown import Markdown

        page = Markdown(document("-".join(topic)), hyperlinks=False)
        console.print(page, width=min(console.width, 100))


def document(name: str) -> str:
    """Return the text of a topic, without comments and with links as their words."""
    topic = name.strip().lower()
    if topic not in TOPICS:
        near = get_close_matches(topic, [*COMMANDS, *TOPICS], n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise ParameterError(f"there is no topic {name!r}{meant} See: sottovoce help")
    folder = PACKAGED if PACKAGED.is_dir() else IN_CHECKOUT
    try:
        text = (folder / f"{topic}.md").read_text(encoding="utf-8")
    except OSError:
        raise ParameterError("the documents are not part of this installation: install it again") from None
    shown = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    return re.sub(r"!?\[([^\]]*)\]\((?!\w+:)[^)\s]+\)", r"\1", shown)
