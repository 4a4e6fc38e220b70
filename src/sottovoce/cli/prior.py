"""The command prior: a prior, or one per group, from public data."""

from __future__ import annotations

from pathlib import Path

import click

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
@options.column("--user", "The user: the prior is then marked as made from its users.")
@option("--smoothing", default=0.0, help="Added to every count, so that none is zero.")
@option(
    "--rare", default="error", metavar="WHAT", stands_for={"merge_rare": "as={}", "drop_zero": "drop"},
    help="Categories without a count or below --rare-below: as=NAME makes them one; drop leaves out those "
    "without a count.",
)  # fmt: skip
@option("--rare-below", type=float, help="Counts below this are rare; default those that are zero.")
@options.provenance_option
@options.output_options("Write the prior to this JSON file.")
def prior_command(
    table: Path,
    item: str,
    count: str | None,
    by: str | None,
    read: tuple[str, ...],
    user: str | None,
    smoothing: float,
    rare: str,
    rare_below: float | None,
    provenance: str | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Count public data into a prior, or into one per group.

    TABLE is CSV (also compressed), Parquet, JSON or Excel: a row per item with a count, or a row per record.
    The result is the prior file of compare, choose and design.

    \b
    Examples:
      sottovoce prior survey.csv --by group -o prior.json
      sottovoce prior visits.csv.gz --item site --by country --count none \\
          --rare as=elsewhere --rare-below 100 -o prior.json
      sottovoce prior survey.xlsx --read sheet=2 --rare as=other --rare-below 5
    """
    columns = Columns(item=item, user=user, count=count, by=by, read=read)
    Output(output, force=force, as_json=as_json).check(table, kinds=JSON)
    kind, name = options.parse_as(rare, "--rare", "error", "drop")
    counted = PriorOptions(smoothing, name, rare_below, drop_zero=kind == "drop")
    (public,) = columns.tables(table)
    data = public.priors(user=user, provenance=provenance, options=counted)
    print_note(f"{table.name}: {plain(data.how)}.")
    if output is not None:
        write_priors(data, output, replace=force)
        print_note(f"written to {output}")
    if not as_json:
        _print_priors(data)
        return
    facts = []
    for name, prior in data.priors.items():
        shares = {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        facts.append({"group": name, "digest": prior.digest, "provenance": prior.provenance, **shares})
    print_json(facts)


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
        print_note(FROM_USERS)
