"""The command plan: what share of the users should answer a survey."""

from __future__ import annotations

from pathlib import Path

import click

from ..planning.plan import plan
from .app import Command
from .options import json_option, option
from .survey import categories_argument, epsilon_option, read_categories
from .terminal import print_json, print_note, print_table, print_text, step


@click.command("plan", cls=Command)
@categories_argument
@option("--users", type=int, required=True, help="How many users there are in all.")
@epsilon_option
@json_option
def plan_command(categories_file: Path, users: int, epsilon: float, as_json: bool) -> None:
    """Plan a survey: what share of the users should answer it, and how well the others are served then.

    CATEGORIES is a text file with one category a line, or a table with them in its column item. The surveys
    and the users are invented; the population is taken to fall off like rank^-0.9.

    \b
    Examples:
      sottovoce plan genres.txt --users 100000 --epsilon 2
    """
    with step("simulating", categories_file.name, total=1) as going:
        made = plan(read_categories(categories_file), users, epsilon, progress=going.reached)
    if as_json:
        print_json(made.to_dict())
        return
    print_text(made.summary(), style="bold")
    print_table(made.listing().head, made.listing().rows, left=())
    print_note(
        "Means of total variation on invented users; a user who answers is then served by draws of the prior."
    )
