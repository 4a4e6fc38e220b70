"""The command prior: count public data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..errors import TableError
from ..prior import FROM_USERS
from ..tables import files
from ..tables.priors import PriorOptions, PublicData, read_priors, write_priors
from .app import (
    AsJson,
    By,
    Count,
    Decimal,
    Encoding,
    Force,
    Item,
    MinimumRows,
    Missing,
    NoCount,
    PublicMerge,
    RareBelow,
    Separator,
    Sheets,
    Smoothing,
    Wide,
    app,
)
from .progress import reading_of
from .tables import dialects_said, merged_name
from .terminal import (
    console,
    number,
    plain,
    print_json,
    print_note,
    shown_text,
)

LISTED = 15


@app.command("prior")
def prior_command(
    table: Annotated[
        Path,
        typer.Argument(
            help="Public data: a row per item, or per record (CSV, gzip, Parquet, JSON, Excel).",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the prior to this JSON file, for compare and design."),
    ] = None,
    item: Item = "item",
    count: Count = None,
    no_count: NoCount = False,
    by: By = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Column of the user; for --average users, --minimum-rows and --minimum-users.",
        ),
    ] = None,
    wide: Wide = False,
    smoothing: Smoothing = 0.0,
    drop_zero: Annotated[
        bool, typer.Option("--drop-zero", help="Leave out categories without a count, and say which.")
    ] = False,
    merge: PublicMerge = None,
    rare_below: RareBelow = None,
    top: Annotated[
        int | None, typer.Option(help="Keep so many items per group; each group then has its own.")
    ] = None,
    top_by: Annotated[
        str | None,
        typer.Option(
            help="Column whose sum ranks the items for --top; default the counts.",
        ),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="Name of a category that takes the items beyond --top.")
    ] = None,
    minimum_rows: MinimumRows = 0,
    minimum_users: Annotated[int, typer.Option(help="Leave out groups with fewer users.")] = 0,
    average: Annotated[
        str, typer.Option(help="rows: pool all rows; users: plain mean of the users' distributions.")
    ] = "rows",
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="The table has users, but not those to be served: the prior is public."
        ),
    ] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Count public data into a prior, or into one per group.

    \b
    Examples:
      sottovoce prior survey.csv --by group -o prior.json
      sottovoce prior clicks.csv.gz --user device --item site --by country \\
          --top 100 --other elsewhere --minimum-users 100 \\
          --average users -o prior.json
      sottovoce prior survey.xlsx --sheet 2 --merge rare=other --rare-below 5
    """
    if output is not None:
        files.check_writable(output, table, force=force)
        if output.suffix.lower() != ".json":
            raise TableError(f"{output} cannot be written: a prior file ends in .json")
    options = PriorOptions(
        smoothing=smoothing,
        top=top,
        other=other,
        minimum_rows=minimum_rows,
        minimum_users=minimum_users,
        average=average,
        drop_zero=drop_zero,
        merge_rare=merged_name(merge),
        rare_below=rare_below,
    )
    (dialect,) = dialects_said([table], separator, encoding, missing, decimal, sheet)
    with reading_of(table):
        data = read_priors(
            table,
            item=item,
            count=count,
            by=by,
            user=user,
            wide=wide,
            top_by=top_by,
            public=True if public else None,
            options=options,
            dialect=dialect,
            ask=not no_count,
        )
    print_note(f"{table.name}: {plain(data.how)}.")
    if output is not None:
        write_priors(data, output, replace=force)
        print_note(f"written to {output}")
    if as_json:
        print_json(
            [
                {
                    "group": name,
                    "digest": prior.digest,
                    "made_from_users": prior.made_from_users,
                    "categories": list(prior.categories),
                    "probabilities": prior.probabilities.tolist(),
                }
                for name, prior in data.priors.items()
            ]
        )
        return
    _print_priors(data)


def _print_priors(data: PublicData) -> None:
    """One line per group; the categories too where there is only one group."""
    shown = Table(box=None, header_style="bold")
    for column in ("group", "categories", "smallest", "largest", "digest"):
        shown.add_column(column, justify="left" if column in ("group", "digest") else "right")
    for name, prior in data.priors.items():
        ends = (prior.smallest, float(prior.probabilities.max()))
        shown.add_row(shown_text(name), f"{len(prior):,}", *map(number, ends), prior.digest[:16])
    console.print(shown)
    if len(data.priors) == 1:
        (prior,) = data.priors.values()
        order = (-prior.probabilities).argsort(kind="stable")[:LISTED]
        names = Table(box=None, header_style="bold")
        names.add_column("category")
        names.add_column("probability", justify="right")
        for i in order.tolist():
            names.add_row(shown_text(prior.categories[i]), number(float(prior.probabilities[i])))
        console.print(names)
        if len(prior) > LISTED:
            print_note(f"and {len(prior) - LISTED:,} rarer ones")
    if any(prior.made_from_users for prior in data.priors.values()):
        print_note(f"{FROM_USERS} If the table is about other people, say --public.")
