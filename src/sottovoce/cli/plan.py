"""The command plan: how many users should answer a survey so that the others are served well."""

from __future__ import annotations

from pathlib import Path

import click

from ..planning.plan import plan
from .app import Command
from .options import PATH, force_option, json_option, option
from .survey import categories_argument, epsilon_option, read_categories
from .terminal import check_picture, console, print_json, print_note, print_table, step


@click.command("plan", cls=Command)
@categories_argument
@option("--users", type=int, required=True, help="How many users there are in all.")
@epsilon_option
@option("--picture", type=PATH, panel="Output", help="Draw the means against the size (.png, .pdf, .svg).")
@force_option
@json_option
def command(
    categories_file: Path, users: int, epsilon: float, picture: Path | None, force: bool, as_json: bool
) -> None:
    """Plan a survey: what share of the users should answer it, and how well the others are served then.

    CATEGORIES is a text file with one category a line, or a table with them in its column item. The surveys
    and the users are invented; the population is taken to fall off like rank^-0.9.

    \b
    Examples:
      sottovoce plan genres.txt --users 100000 --epsilon 2
      sottovoce plan genres.txt --users 100000 --epsilon 2 --picture plan.png
    """
    check_picture(picture, force)
    with step("simulating", categories_file.name, total=100, unit="%") as going:
        done = 0

        def shown(part: float) -> None:
            nonlocal done
            going.advance(round(100 * part) - done)
            done = round(100 * part)

        made = plan(read_categories(categories_file), users, epsilon, progress=shown)
    if picture is not None:
        from ..pictures import plots

        figure = plots.new_figure(6.4, 4.4)
        made.plot(figure.subplots())
        plots.save_figure(figure, picture)
        print_note(f"drawn into {picture}")
    if as_json:
        print_json(made.to_dict())
        return
    console.print(made.summary(), style="bold", markup=False, highlight=False, soft_wrap=True)
    print_table(made.listing().head, made.listing().rows, left=())
    print_note(
        "Means of total variation on invented users; a user who answers is then served by draws of the prior."
    )
