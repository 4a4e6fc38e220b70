"""The command prior: count public data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..prior import FROM_USERS
from ..tables.priors import PriorOptions, PublicData, write_priors
from . import options
from .app import Command
from .options import JSON, Columns, Output, option
from .terminal import number, plain, print_json, print_note, print_table, shown_text

LISTED = 15


@click.command("prior", cls=Command)
@options.path_argument("table", metavar="TABLE")
@options.public_columns
@options.column("--user", "The user; for averages and minimums of users.")
@option("--smoothing", default=0.0, help="Added to every count, so that none is zero.")
@option(
    "--rare", default="error", metavar="WHAT",
    help="Categories without a count or below --rare-below, and items beyond --top: as=NAME makes them one; "
    "drop leaves out those without a count.",
)  # fmt: skip
@option("--rare-below", type=float, help="Counts below this are rare; default those that are zero.")
@option("--top", type=int, help="Keep so many items per group; each group then has its own.")
@option("--minimum-rows", default=0, help="Leave out users with fewer rows in the whole table.")
@option("--minimum-users", default=0, help="Leave out groups with fewer users.")
@option(
    "--average", default="rows", type=click.Choice(("rows", "users")),
    help="Pool all rows, or take the plain mean of the users' distributions.",
)  # fmt: skip
@option(
    "--provenance", type=click.Choice(("public", "users")),
    help="What the table is about: public data, or the users to be served. Default: users if it has users.",
)  # fmt: skip
@options.output_options("Write the prior to this JSON file.")
def prior_command(
    table: Path,
    columns: Columns,
    rare: str,
    rare_below: float | None,
    top: int | None,
    provenance: str | None,
    output: Output,
    **counting: Any,
) -> None:
    """Count public data into a prior, or into one per group.

    TABLE is CSV (also compressed), Parquet, JSON or Excel: a row per item with a count, or a row per record.
    JSON may also be {item: count}. The result is the prior file of compare, choose and design.

    \b
    Examples:
      sottovoce prior survey.csv --by group -o prior.json
      sottovoce prior clicks.csv.gz --user device --item site --by country \\
          --top 100 --rare as=elsewhere --average users -o prior.json
      sottovoce prior survey.xlsx --read sheet=2 --rare as=other --rare-below 5
    """
    output.check(table, kinds=JSON)
    counted = PriorOptions(**_rare(rare, rare_below, top), top=top, **counting)
    (public,) = columns.tables(table)
    data = public.priors(user=columns.user, provenance=provenance, options=counted, wide=public.wide)
    print_note(f"{table.name}: {plain(data.how)}.")
    if output.output is not None:
        write_priors(data, output.output, replace=output.force)
        print_note(f"written to {output.output}")
    if not output.as_json:
        _print_priors(data)
        return
    facts = []
    for name, prior in data.priors.items():
        shares = {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        facts.append({"group": name, "digest": prior.digest, "provenance": prior.provenance, **shares})
    print_json(facts)


def _rare(rare: str, rare_below: float | None, top: int | None) -> dict[str, Any]:
    """Return the settings of `PriorOptions` for rare categories and for items beyond the top."""
    kind, name = options.parse_as(rare, "--rare", "error", "drop")
    if rare_below is not None and name is None:
        raise ParameterError("--rare-below needs a category for what is rare: --rare as=NAME")
    merged = name if top is None or rare_below is not None else None
    other = name if top is not None else None
    return {"drop_zero": kind == "drop", "merge_rare": merged, "rare_below": rare_below, "other": other}


def _print_priors(data: PublicData) -> None:
    """Print one line per group; the categories too where there is only one group."""
    rows = []
    for name, prior in data.priors.items():
        ends = (prior.smallest, float(prior.probabilities.max()))
        rows.append([shown_text(name), f"{len(prior):,}", *map(number, ends), prior.digest[:16]])
    print_table(("group", "categories", "smallest", "largest", "digest"), rows, left=("group", "digest"))
    if len(data.priors) == 1:
        (prior,) = data.priors.values()
        largest = (-prior.probabilities).argsort(kind="stable")[:LISTED].tolist()
        names = [[shown_text(prior.categories[i]), number(float(prior.probabilities[i]))] for i in largest]
        print_table(("category", "probability"), names, left=("category",))
        if len(prior) > LISTED:
            print_note(f"and {len(prior) - LISTED:,} rarer ones")
    if any(prior.provenance == "users" for prior in data.priors.values()):
        print_note(f"{FROM_USERS} If the table is about other people, pass --provenance public.")
