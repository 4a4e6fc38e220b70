"""The command help: the documents in the terminal, and the commands' own help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.table import Table

from .app import app
from .documents import TOPICS, find_documents, find_topic, markdown, title
from .lazily import COMMANDS
from .terminal import console, print_note, shown_text


def complete_topic(incomplete: str) -> list[str]:
    """The names of commands and topics that begin so, for the shell."""
    return [name for name in (*COMMANDS, *TOPICS) if name.startswith(incomplete.lower().replace("_", "-"))]


@app.command("help")
def help_command(
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            help="A command, or a topic; without one, the list of both.",
            show_default=False,
            autocompletion=complete_topic,
        ),
    ] = None,
) -> None:
    """Read about a command or a topic, here in the terminal.

    \b
    Examples:
      sottovoce help
      sottovoce help choosing
      sottovoce help exit-codes
      sottovoce help ledger left
    """
    if not topic:
        _print_list()
    elif topic[0] in COMMANDS:
        typer.main.get_command(app)([*topic, "--help"], prog_name="sottovoce", standalone_mode=False)
    else:
        from .pages import print_page

        print_page(console, markdown(find_topic("-".join(topic))))


def _print_list() -> None:
    """The commands with the first lines of their help, and the topics with the headings of the documents."""
    _print_names("Commands", COMMANDS)
    if find_documents() is None:
        print_note("The documents of the topics are not part of this installation.")
        return
    _print_names("Topics", {"  " * bool(one.heading) + name: title(one) for name, one in TOPICS.items()})
    print_note("Read one: sottovoce help NAME. What is indented is a section of the document above it.")


def _print_names(heading: str, names: Mapping[str, str]) -> None:
    shown = Table.grid(padding=(0, 2, 0, 0))
    for name, words in names.items():
        shown.add_row(f"  [cyan]{name}[/cyan]", shown_text(words))
    console.print(f"[bold]{heading}[/bold]")
    console.print(shown, highlight=False)
    console.print()
