"""The command compare: how far each sampler is from each user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..divergences import FDivergence
from ..errors import ParameterError
from ..groups import EVERYBODY, Groups
from ..planning.compare import STATISTICS, Comparison, ComparisonRow, compare
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from ..samplers.base import Sampler
from ..tables import files
from ..tables.users import ReadingOptions, private_columns
from .app import Command
from .options import (
    DIVERGENCE_NAMES,
    SAMPLER_NAMES,
    SAMPLERS,
    all_columns,
    complete_divergence,
    complete_sampler,
    epsilons_option,
    force_option,
    json_option,
    option,
    output_option,
    parse_divergence,
    parse_sampler,
    path_argument,
    prior_argument,
    read_histories,
    read_public,
    reading_options,
    readings,
    unknown_groups_option,
    unknown_option,
    written_rows,
)
from .terminal import (
    NOT_PRIVATE,
    PICTURES,
    check_one_result,
    check_picture,
    console,
    number,
    plain,
    print_json,
    print_note,
    shown_text,
    step,
)


@click.command("compare", cls=Command)
@prior_argument
@path_argument("users_file", metavar="USERS")
@epsilons_option
@option(
    "--sampler", "-s", "samplers", multiple=True, metavar="NAME", panel="Samplers",
    shell_complete=complete_sampler, help=f"{SAMPLER_NAMES}. Default all; repeat for several.",
)  # fmt: skip
@option(
    "--divergence", "-d", "divergences", multiple=True, metavar="NAME", panel="Samplers",
    shell_complete=complete_divergence, help=f"{DIVERGENCE_NAMES}. Default tv; repeat for several.",
)  # fmt: skip
@option("--limit", is_flag=True, panel="Samplers", help="Add the best that any private sampler could do.")
@option(
    "--samples", metavar="NUMBERS", panel="Samplers",
    help="Several samples per user, such as 1,2,4.",
)  # fmt: skip
@option(
    "--over-time", metavar="COLUMN", panel="Samplers",
    help="A stream beside split epsilon; the column of releases.",
)  # fmt: skip
@all_columns
@unknown_option
@unknown_groups_option
@option(
    "--empty", default="error", type=click.Choice(("error", "skip")), panel="Users",
    help="Users without a usable record.",
)  # fmt: skip
@option("--spark", metavar="MASTER", help="Compare on Spark, such as local[4] or spark://host:7077.")
@option(
    "--sort", default="mean", panel="Output",
    type=click.Choice([name.replace("_", "-") for name in STATISTICS]), help="What matters.",
)  # fmt: skip
@output_option
@force_option
@json_option
def command(
    prior_file: Path,
    users_file: Path,
    epsilons: list[float],
    samplers: tuple[str, ...],
    divergences: tuple[str, ...],
    limit: bool,
    samples: str | None,
    over_time: str | None,
    user: str,
    item: str,
    weight: str | None,
    count: str | None,
    by: str | None,
    read: tuple[str, ...],
    unknown: str,
    unknown_groups: str,
    empty: str,
    spark: str | None,
    sort: str,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure how far each sampler's release is from each user's own data.

    PRIOR is a table of public counts, or what `sottovoce prior -o` wrote. USERS are histories: a row per user
    and item, with a weight or count column if there is one. They are private, and so is the result.

    \b
    Examples:
      sottovoce compare survey.csv members.csv -e 1 -e 4
      sottovoce compare survey.csv members.csv -e 2 --by group \\
          -s kernel-clip -s blend:weight=0.3 -d tv -d kl -o table.csv
      sottovoce compare survey.csv members.csv -e 4 -s fitted --samples 1,2,4
      sottovoce compare survey.csv visits.csv -e 8 --over-time week -o weeks.png
    """
    makers = [parse_sampler(text) for text in samplers or SAMPLERS]
    measures = [parse_divergence(text) for text in divergences or ["tv"]]
    numbers = None if samples is None else parse_samples(samples, samplers, measures)
    several = max(len(epsilons), len(measures), len(samplers)) > 1
    if over_time is not None and (several or by is not None):
        raise ParameterError("--over-time takes one epsilon, divergence and sampler, and no --by")
    _check(bool(limit), numbers, over_time, spark, read)
    check_one_result(output, as_json)
    if over_time is not None and output is not None and output.suffix.lower() in PICTURES:
        check_picture(output, force)
    elif output is not None:
        files.check_writable(output, prior_file, users_file, force=force)
    written = readings(read, prior_file, users_file)
    # A comparison publishes no user's groups, so a user may have several.
    options = reading_options(unknown, empty=empty, unknown_groups=unknown_groups, several_groups="allow")
    public = read_public(prior_file, written[0], item=item, count=count, by=by)
    columns = {"user": user, "item": item, "weight": weight}
    make, parameters = makers[0] if samplers else parse_sampler("fitted")
    alone = partial(make, **parameters)
    if over_time is not None:
        from .over_time import compare_weeks

        asked = (public.priors[EVERYBODY], epsilons[0], alone, measures[0])
        compare_weeks(users_file, over_time, written[1], options, columns, asked, output, force, as_json)
        return
    if numbers is not None:
        from .over_time import compare_numbers

        groups, how = read_histories(users_file, public, written[1], options, **columns)
        print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
        compare_numbers(groups, public, epsilons, numbers, alone, measures[0], output, force, as_json)
        return
    made = {
        group: [make(prior, epsilon, **parameters) for epsilon in epsilons for make, parameters in makers]
        for group, prior in public.priors.items()
    }
    if spark is not None:
        with step("comparing", "on Spark"):
            table, how = _compare_on_spark(users_file, spark, made, measures, public.by, options, **columns)
    else:
        groups, how = read_histories(users_file, public, written[1], options, **columns)
        parts = sum(len(made[group]) for group in groups) + limit * len(epsilons) * len(groups)
        with step("comparing", users_file.name, total=parts, unit="samplers") as going:
            table = compare(groups, made, measures, limit=limit, progress=going.advance)
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
    if written_rows(table.to_dicts(), output, force):
        return
    statistic = sort.replace("-", "_")
    shown = table.sorted(statistic)
    if as_json:
        note = f"{NOT_PRIVATE} {FROM_USERS}" if table.provenance == "users" else NOT_PRIVATE
        together = [asdict(row) for row in shown.all_groups]
        print_json({"rows": shown.to_dicts(), "all_groups": together, "note": note})
    else:
        print_comparison(shown, statistic, table.marks(statistic), grouped=public.by is not None)
        print_note(NOT_PRIVATE)


def _check(
    limit: bool, numbers: list[int] | None, over_time: str | None, spark: str | None, read: tuple[str, ...]
) -> None:
    """Refuse options that do not fit together."""
    if limit + (numbers is not None) + (over_time is not None) > 1:
        raise ParameterError("--limit, --samples and --over-time print a table each: name one of them")
    if spark is not None and (limit or numbers or over_time or read):
        raise ParameterError(
            "--limit and --samples need the users in one process, and Spark reads Parquet and plain CSV by "
            "itself: leave out --limit, --samples, --over-time and --read, or --spark"
        )


def _compare_on_spark(
    path: Path,
    master: str,
    samplers: dict[str, list[Sampler]],
    measures: list[FDivergence],
    by: str | None,
    options: ReadingOptions,
    **columns: Any,
) -> tuple[Comparison, str]:
    """Return the comparison on Spark, and how the file was counted."""
    from .. import spark
    from ..spark.session import read_file, session

    started = session(master)
    try:
        with files.prefix_errors(path):
            frame = read_file(started, str(path))
            read, how = private_columns(frame.columns, by=by, **columns)
            table = spark.compare(
                frame,
                Groups(samplers, by).returned,
                measures,
                user=columns["user"],
                item=read.item,
                weight=read.weight,
                by=by,
                as_text=True,
                **asdict(options),
            )
    finally:
        started.stop()
    return table, f"{how}, on Spark"


def print_comparison(
    table: Comparison, statistic: str, marks: Mapping[ComparisonRow, str], *, grouped: bool
) -> None:
    """Print a line per row, the marked ones bold; on a narrow terminal fewer statistics: no number is cut."""
    wide = console.width >= 110
    rows = table.rows + table.all_groups
    columns = STATISTICS if wide else tuple(dict.fromkeys(("mean", statistic, "maximum")))
    limited = any(row.above_limit is not None for row in rows)
    shown = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    head = [*(["group"] if grouped else []), "ε", "sampler", "f", "users", *columns]
    head += [*(["above limit"] if limited else []), "keeps q", *(["best"] if marks else [])]
    for column in head:
        text = column in ("group", "sampler", "f", "best")
        shown.add_column(
            column.replace("_", " "), justify="left" if text else "right", no_wrap=not text, overflow="fold"
        )
    block: tuple[object, ...] = ()
    for row in rows:
        if marks and block not in ((), (row.group, row.epsilon, row.divergence)):
            shown.add_row()
        block = row.group, row.epsilon, row.divergence
        shown.add_row(
            *([shown_text(row.group)] if grouped else []),
            f"{row.epsilon:g}",
            shown_text(row.sampler),
            shown_text(row.divergence),
            f"{row.users:,}",
            *(number(getattr(row, column)) for column in columns),
            *([number(row.above_limit)] if limited else []),
            "yes" if row.keeps_prior else "no",
            *([marks.get(row, "")] if marks else []),
            style="bold" if marks.get(row) == "best" else None,
        )
    console.print(shown)
    if table.provenance == "users":
        print_note(FROM_USERS)
    if limited:
        print_note(
            f"best possible: no private sampler that keeps the prior has a smaller mean + {TAIL:g}·maximum "
            "on these users; above limit: how much larger that sum is, at most (its own: the proof's gap)."
        )
    if not wide:
        print_note("More columns in a wider window, or with --json.")


def parse_samples(text: str, samplers: tuple[str, ...], measures: list[FDivergence]) -> list[int]:
    """1,2,4 → the numbers of samples."""
    if len(samplers) > 1 or len(measures) > 1:
        raise ParameterError("--samples compares numbers of samples, of one sampler and by one divergence")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= 3 for part in parts):
        raise ParameterError(f"--samples must be numbers such as 1,2,4, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))
