"""The command compare: how far each sampler is from each user."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from .. import _validate
from ..divergences import FDivergence
from ..errors import ParameterError
from ..planning.compare import STATISTICS, Comparison, compare
from ..prior import FROM_USERS
from ..samplers.base import Sampler
from ..tables import files
from ..tables.files import DETECTED
from ..tables.users import ReadingOptions, private_columns, read_user_groups
from .app import (
    AsJson,
    By,
    Count,
    Decimal,
    Encoding,
    Epsilons,
    Force,
    Item,
    Merge,
    MinimumRows,
    Missing,
    NoCount,
    Other,
    PriorFile,
    RareBelow,
    RowsOutput,
    Separator,
    Sheets,
    Smoothing,
    Unknown,
    UnknownGroups,
    User,
    Weight,
    Wide,
    app,
)
from .parsing import (
    DIVERGENCE_NAMES,
    SAMPLER_NAMES,
    SAMPLERS,
    check_one_result,
    complete_divergence,
    complete_sampler,
    parse_divergence,
    parse_epsilons,
    parse_sampler,
)
from .progress import reading_of, step, working
from .shown import print_comparison
from .tables import dialects_said, read_public, reading_said
from .terminal import (
    NOT_PRIVATE,
    plain,
    print_json,
    print_note,
)


class _Columns(TypedDict):
    """The columns of the users' file, as they were named."""

    user: str
    item: str
    weight: str | None
    by: str | None
    wide: bool


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
        typer.Option(
            "--sampler",
            "-s",
            metavar="NAME",
            help=f"{SAMPLER_NAMES}; default all of them.",
            autocompletion=complete_sampler,
        ),
    ] = None,
    divergence: Annotated[
        list[str] | None,
        typer.Option(
            "--divergence",
            "-d",
            metavar="NAME",
            help=f"{DIVERGENCE_NAMES}; default tv.",
            autocompletion=complete_divergence,
        ),
    ] = None,
    user: User = "user",
    item: Item = "item",
    weight: Weight = None,
    count: Count = None,
    no_count: NoCount = False,
    by: By = None,
    wide: Wide = False,
    smoothing: Smoothing = 0.0,
    merge: Merge = None,
    rare_below: RareBelow = None,
    unknown: Unknown = "error",
    other: Other = "other",
    empty: Annotated[str, typer.Option(help="Users with no usable record: error, or skip them.")] = "error",
    unknown_groups: UnknownGroups = "error",
    minimum_rows: MinimumRows = 0,
    limit: Annotated[
        bool,
        typer.Option("--limit", help="Add the best that any private sampler could do, and how far each is."),
    ] = False,
    sort: Annotated[
        str, typer.Option(help="What matters: mean, median, p90, p99, maximum or worst-case.")
    ] = "mean",
    best: Annotated[
        bool, typer.Option("--best", help="Show only the best sampler of each group and epsilon.")
    ] = False,
    output: RowsOutput = None,
    engine: Annotated[
        str,
        typer.Option(help="local: in this process; spark: on a cluster (pip install sottovoce\\[spark])."),
    ] = "local",
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs, such as local[4] or spark://host:7077.")
    ] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How far each sampler's release is from each user's own data.

    \b
    Examples:
      sottovoce compare survey.csv members.csv -e 1 -e 4
      sottovoce compare survey.csv members.csv -e 2 --limit --sort maximum
      sottovoce compare survey.csv members.csv -e 1 -e 2 -e 4 --by group --best
      sottovoce compare survey.csv members.csv -e 2 --by group \\
          -s kernel-clip -s blend:weight=0.3 -o table.csv
      sottovoce compare survey.csv members.csv -e 2 -d tv -d kl --json
    """
    epsilons = parse_epsilons(epsilon)
    makers = [parse_sampler(text) for text in sampler or list(SAMPLERS)]
    measures = [parse_divergence(text) for text in divergence or ["tv"]]
    check_one_result(output, as_json)
    if output is not None:
        files.check_writable(output, prior_file, users_file, force=force)
    _validate.one_of(("local", "spark"), engine=engine)
    statistic = _validate.one_of(STATISTICS, sort=sort.replace("-", "_"))
    if limit and engine == "spark":
        raise ParameterError("--limit needs the users in one process: leave out --engine spark")
    if master is not None and engine != "spark":
        raise ParameterError("--master is for --engine spark")
    written = dialects_said([prior_file, users_file], separator, encoding, missing, decimal, sheet)
    if engine == "spark" and written != [DETECTED, DETECTED]:
        raise ParameterError(
            "--separator, --encoding, --missing, --decimal and --sheet are not for --engine spark, which "
            "reads Parquet and plain CSV by itself"
        )
    public = read_public(
        prior_file, item=item, count=count, by=by, smoothing=smoothing, merge=merge, rare_below=rare_below,
        dialect=written[0], no_count=no_count,
    )  # fmt: skip
    samplers = {
        group: [make(prior, e, **options) for e in epsilons for make, options in makers]
        for group, prior in public.priors.items()
    }
    reading = reading_said(
        merge,
        unknown,
        other,
        empty=empty,
        unknown_groups=unknown_groups,
        several_groups="allow",  # a comparison publishes no user's groups
        minimum_rows=minimum_rows,
    )
    columns: _Columns = {"user": user, "item": item, "weight": weight, "by": public.by, "wide": wide}
    if engine == "spark":
        with working("comparing", "on Spark"):
            table, private = _compare_on_spark(users_file, master, samplers, measures, columns, reading)
    else:
        with reading_of(users_file):
            groups, private = read_user_groups(
                users_file, public.priors, **columns, options=reading, dialect=written[1]
            )
        parts = sum(len(samplers[group]) for group in groups) + limit * len(epsilons) * len(groups)
        with step("comparing", users_file.name, total=parts, unit="samplers") as going:
            table = compare(groups, samplers, measures, limit=limit, progress=going.advance)
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {private}.")
    if output is not None:
        files.write_rows(table.to_dicts(), output, replace=force)
        if files.is_standard(output):
            return
        print_note(f"written to {output}")
    shown = (table.best(statistic) + table.limits() if best else table).sorted(statistic)
    if as_json:
        note = f"{NOT_PRIVATE} {FROM_USERS}" if table.prior_from_users else NOT_PRIVATE
        together = [asdict(row) for row in shown.all_groups]
        print_json({"rows": shown.to_dicts(), "all_groups": together, "note": note})
    else:
        print_comparison(shown, statistic, {} if best else table.marks(statistic))
        print_note(NOT_PRIVATE)


def _compare_on_spark(
    path: Path,
    master: str | None,
    samplers: dict[str, list[Sampler]],
    measures: list[FDivergence],
    columns: _Columns,
    reading: ReadingOptions,
) -> tuple[Comparison, str]:
    """The comparison on Spark, and how the file was counted."""
    from .. import spark
    from ..spark.session import read_file, session

    started = session(master)
    try:
        with files.prefix_errors(path):
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
                **asdict(reading),
            )
    finally:
        started.stop()
    return table, f"{how}, on Spark"
