"""Commands on tables: prior and compare. They parse, call and print; no mathematics here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from . import _validate, catalogue, files
from ._parsing import parse_divergence, parse_sampler
from ._terminal import (
    NOT_PRIVATE,
    console,
    errors,
    number,
    plain,
    print_comparison,
    print_json,
    print_note,
    shown_text,
    working,
)
from .commands import AsJson, By, Count, Epsilons, Force, Item, PriorFile, Smoothing, app, public_data
from .comparison import Comparison, compare
from .divergences import FDivergence
from .errors import ParameterError, TableError
from .inputs import PublicData, private_columns, read_user_groups, write_priors
from .prior import FROM_USERS
from .samplers import Sampler

Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="A row per user and a column per category; all columns but user and group count."
    ),
]
Other = Annotated[str, typer.Option(help="The category of --unknown other.")]
MinimumRows = Annotated[
    int, typer.Option(help="Leave out users with fewer rows in the whole table (all groups together).")
]
RowsOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write the rows (.csv, .parquet or .json).")
]
LISTED = 15


@app.command("prior")
def prior_command(
    table: Annotated[
        Path,
        typer.Argument(
            help="Public data: a row per item, or per record (CSV, gzip, Parquet, JSON).", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the prior to this JSON file, for compare and design."),
    ] = None,
    item: Item = "item",
    count: Count = None,
    by: By = None,
    user: Annotated[
        str | None, typer.Option(help="Column of the user; needed for --average users and the minima.")
    ] = None,
    wide: Wide = False,
    smoothing: Smoothing = 0.0,
    top: Annotated[
        int | None, typer.Option(help="Keep so many items per group; each group then has its own.")
    ] = None,
    top_by: Annotated[
        str | None, typer.Option(help="Column whose sum ranks the items for --top; default the counts.")
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
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Count public data into a prior, or into one per group.

    \b
    Examples:
      sottovoce prior survey.csv --by group -o prior.json
      sottovoce prior clicks.csv.gz --user device --item site --by country \\
          --top 100 --other elsewhere --minimum-users 100 --average users -o prior.json
    """
    if output is not None:
        files.check_writable(output, table, force=force)
        if output.suffix.lower() != ".json":
            raise TableError(f"{output} cannot be written: a prior file ends in .json")
    data = public_data(
        table,
        item=item,
        count=count,
        by=by,
        user=user,
        wide=wide,
        smoothing=smoothing,
        top=top,
        top_by=top_by,
        other=other,
        minimum_rows=minimum_rows,
        minimum_users=minimum_users,
        average=average,
        public=True if public else None,
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


@app.command("compare")
def compare_command(
    prior_file: PriorFile,
    users_file: Annotated[
        Path,
        typer.Argument(
            help="Private histories: a row per user and item, a weight or count column if there is one.",
            show_default=False,
        ),
    ],
    epsilon: Epsilons,
    sampler: Annotated[
        list[str] | None,
        typer.Option("--sampler", "-s", help="Such as kernel-clip or blend:weight=0.3; default all of them."),
    ] = None,
    divergence: Annotated[
        list[str] | None,
        typer.Option(
            "--divergence", "-d", help="tv, kl, …, alpha:order=2, hockey-stick:gamma=2; default tv."
        ),
    ] = None,
    user: Annotated[str, typer.Option(help="Column of the user.")] = "user",
    item: Item = "item",
    weight: Annotated[
        str | None,
        typer.Option(help="Column of weights in the users file; default weight or count if there."),
    ] = None,
    count: Count = None,
    by: By = None,
    wide: Wide = False,
    smoothing: Smoothing = 0.0,
    unknown: Annotated[
        str, typer.Option(help="Items that the prior does not know: error, drop their rows, or other.")
    ] = "error",
    other: Other = "other",
    empty: Annotated[str, typer.Option(help="Users with no usable record: error, or skip them.")] = "error",
    unknown_groups: Annotated[
        str, typer.Option(help="Groups of users that have no prior: error, or drop them.")
    ] = "error",
    minimum_rows: MinimumRows = 0,
    output: RowsOutput = None,
    engine: Annotated[
        str,
        typer.Option(help="local: in this process; spark: on a cluster (pip install sottovoce\\[spark])."),
    ] = "local",
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs, such as local[4] or spark://host:7077.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How far each sampler's release is from each user's own data.

    \b
    Examples:
      sottovoce compare survey.csv members.csv -e 1 -e 4
      sottovoce compare survey.csv members.csv -e 2 --by group \\
          -s kernel-clip -s blend:weight=0.3 -o table.csv
      sottovoce compare survey.csv members.csv -e 2 -d tv -d kl --json
    """
    makers = [parse_sampler(text) for text in sampler or list(catalogue.SAMPLERS)]
    measures = [parse_divergence(text) for text in divergence or ["tv"]]
    if output is not None:
        files.check_writable(output, prior_file, users_file, force=force)
    _validate.one_of(("local", "spark"), engine=engine)
    if master is not None and engine != "spark":
        raise ParameterError("--master is for --engine spark")
    public = public_data(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    samplers = {
        group: [make(prior, e, **options) for e in epsilon for make, options in makers]
        for group, prior in public.priors.items()
    }
    reading = {
        "unknown": unknown,
        "other": other,
        "empty": empty,
        "unknown_groups": unknown_groups,
        "minimum_rows": minimum_rows,
        "several_groups": "allow",  # a comparison publishes no user's groups
    }
    columns = {"user": user, "item": item, "weight": weight, "by": public.by, "wide": wide}
    if engine == "spark":
        with working("comparing on Spark"):
            table, private = _compare_on_spark(users_file, master, samplers, measures, columns, reading)
    else:
        with working(f"counting {users_file.name}"):
            groups, private = read_user_groups(users_file, public.priors, **columns, **reading)  # type: ignore[arg-type]
        quiet = as_json or not errors.is_terminal
        with Progress(console=errors, transient=True, disable=quiet) as progress:
            task = progress.add_task("comparing", total=sum(len(samplers[group]) for group in groups))
            table = compare(groups, samplers, measures, progress=lambda: progress.advance(task))
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {private}.")
    if output is not None:
        files.write_rows(table.to_dicts(), output, replace=force)
        print_note(f"written to {output}")
    if as_json:
        note = f"{NOT_PRIVATE} {FROM_USERS}" if table.prior_from_users else NOT_PRIVATE
        print_json({"rows": table.to_dicts(), "note": note})
    else:
        print_comparison(table)
        print_note(NOT_PRIVATE)


def _compare_on_spark(
    path: Path,
    master: str | None,
    samplers: dict[str, list[Sampler]],
    measures: list[FDivergence],
    columns: dict[str, Any],
    reading: dict[str, Any],
) -> tuple[Comparison, str]:
    """The comparison on Spark, and how the file was counted."""
    from . import spark
    from .spark_session import read_file, session

    started = session(master)
    try:
        with files.naming(path):
            frame = read_file(started, str(path))
            item, weight, how = private_columns(frame.columns, **columns)
            by = columns["by"]
            table = spark.compare(
                frame,
                samplers if by is not None else samplers["all"],
                measures,
                user=columns["user"],
                item=item,
                weight=weight,
                by=by,
                as_text=True,
                **reading,
            )
    finally:
        started.stop()
    return table, f"{how}, on Spark"
