"""The command compare: how far each sampler is from each user."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..divergences import TV, Distance, FDivergence
from ..errors import ParameterError
from ..groups import EVERYBODY, Groups
from ..planning.compare import STATISTICS, Comparison, compare
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from ..samplers.base import Sampler
from ..tables import files
from ..tables.users import ReadingOptions, private_columns
from . import options, terminal
from .app import Command
from .options import DIVERGENCE_NAMES, SAMPLER_NAMES, Columns, Output, option
from .terminal import NOT_PRIVATE, number, plain, print_json, print_note, print_table, shown_text, step


@click.command("compare", cls=Command)
@options.prior_argument
@options.path_argument("users_file", metavar="USERS")
@options.epsilons_option
@option(
    "--sampler", "-s", "samplers", multiple=True, metavar="NAME", panel="Samplers",
    shell_complete=options.complete_sampler, help=f"{SAMPLER_NAMES}. Default all; repeat for several.",
)  # fmt: skip
@option(
    "--divergence", "-d", "divergences", multiple=True, metavar="NAME", panel="Samplers",
    shell_complete=options.complete_divergence, help=f"{DIVERGENCE_NAMES}. Default tv; repeat for several.",
)  # fmt: skip
@option("--limit", is_flag=True, panel="Samplers", help="Add the best that any private sampler could do.")
@option(
    "--samples", metavar="NUMBERS", panel="Samplers",
    help="Several samples per user, such as 1,2,4.",
)  # fmt: skip
@option(
    "--over-time", metavar="COLUMN", panel="Samplers",
    help="A stream beside split epsilon, by this column.",
)  # fmt: skip
@options.all_columns
@options.packed(options.left_out, "misfits")
@options.unknown_option
@option("--spark", metavar="MASTER", help="Compare on Spark, such as local[4] or spark://host:7077.")
@options.output_options()
def command(
    prior_file: Path,
    users_file: Path,
    epsilons: list[float],
    samplers: tuple[str, ...],
    divergences: tuple[str, ...],
    limit: bool,
    samples: str | None,
    over_time: str | None,
    columns: Columns,
    misfits: ReadingOptions,
    spark: str | None,
    output: Output,
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
      sottovoce compare years.csv members.csv -e 2 --near position=item
    """
    every = [*options.SAMPLERS, *(["nearest"] if columns.near else [])]
    makers = [options.parse_sampler(text) for text in samplers or every]
    named = [options.parse_divergence(text) for text in divergences]
    measures = _plain_measures(named, columns, alone=samples is None and over_time is None)
    numbers = None if samples is None else parse_samples(samples, samplers, measures)
    several = max(len(epsilons), len(measures), len(samplers)) > 1
    if over_time is not None and (several or columns.by is not None):
        raise ParameterError("--over-time takes one epsilon, divergence and sampler, and no --by")
    _check(limit, numbers, over_time, spark, columns)
    if (
        over_time is not None
        and output.output is not None
        and output.output.suffix.lower() in terminal.PICTURES
    ):
        output = replace(output, output=None, picture=output.output)
    output.check(prior_file, users_file)
    written = options.readings(columns.read, prior_file, users_file)
    public = columns.public(prior_file, written[0])
    makers = [(options.placed(make, public.geometry), given) for make, given in makers]
    distances = options.in_place(named, public.geometry)
    make, parameters = makers[0] if samplers else options.parse_sampler("fitted")
    alone = partial(make, **parameters)
    if over_time is not None:
        from .over_time import compare_weeks

        asked = (public.priors[EVERYBODY], epsilons[0], alone, measures[0])
        compare_weeks(users_file, replace(columns, by=over_time), written[1], misfits, asked, output)
        return
    if spark is None:
        groups, how = columns.histories(users_file, public, written[1], misfits)
    if numbers is not None:
        from .over_time import compare_numbers

        print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
        compare_numbers(groups, public, epsilons, numbers, alone, measures[0], output)
        return
    made = {
        group: [make(prior, epsilon, **parameters) for epsilon in epsilons for make, parameters in makers]
        for group, prior in public.priors.items()
    }
    if spark is not None:
        with step("comparing", "on Spark"):
            table, how = _compare_on_spark(users_file, spark, made, distances, public.by, misfits, columns)
    else:
        parts = sum(len(made[group]) for group in groups) + limit * len(epsilons) * len(groups)
        with step("comparing", users_file.name, total=parts, unit="samplers") as going:
            table = compare(groups, made, distances, limit=limit, progress=going.advance)
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
    if output.write_rows(table.to_dicts()):
        return
    shown = table.sorted()
    if output.as_json:
        note = f"{NOT_PRIVATE} {FROM_USERS}" if table.provenance == "users" else NOT_PRIVATE
        together = [asdict(row) for row in shown.all_groups]
        print_json({"rows": shown.to_dicts(), "all_groups": together, "note": note})
    else:
        _print_comparison(shown, grouped=public.by is not None)
        print_note(NOT_PRIVATE)


def _plain_measures(named: list[FDivergence | None], columns: Columns, *, alone: bool) -> list[FDivergence]:
    """The divergences without W1, which needs --near and is for comparing samplers alone."""
    if columns.near is None:
        options.in_place(named, None)
    elif not alone:
        raise ParameterError("--near is for comparing samplers: leave out --samples and --over-time")
    return [measure for measure in named if measure is not None] or [TV]


def _check(
    limit: bool, numbers: list[int] | None, over_time: str | None, spark: str | None, columns: Columns
) -> None:
    """Refuse options that do not fit together."""
    if limit + (numbers is not None) + (over_time is not None) > 1:
        raise ParameterError("--limit, --samples and --over-time print a table each: name one of them")
    if spark is not None and (limit or numbers or over_time or columns.read):
        raise ParameterError(
            "--limit and --samples need the users in one process, and Spark reads Parquet and plain CSV by "
            "itself: leave out --limit, --samples, --over-time and --read, or --spark"
        )


def _compare_on_spark(
    path: Path,
    master: str,
    samplers: dict[str, list[Sampler]],
    measures: list[Distance],
    by: str | None,
    misfits: ReadingOptions,
    columns: Columns,
) -> tuple[Comparison, str]:
    """Return the comparison on Spark, and how the file was counted."""
    from .. import spark
    from ..spark.session import read_file, session

    started = session(master)
    try:
        with files.prefix_errors(path):
            frame = read_file(started, str(path))
            read, how = private_columns(frame.columns, by=by, **columns.private)
            names: Any = {"user": columns.user, "item": read.item, "weight": read.weight, "by": by}
            made = Groups(samplers, by).returned
            table = spark.compare(frame, made, measures, **names, as_text=True, **asdict(misfits))
    finally:
        started.stop()
    return table, f"{how}, on Spark"


def _print_comparison(table: Comparison, *, grouped: bool) -> None:
    """Print a line per row, the best ones bold; on a narrow terminal fewer statistics."""
    wide = terminal.console.width >= 110
    statistics = STATISTICS if wide else ("mean", "maximum")
    rows, marks = table.rows + table.all_groups, table.marks()
    limited = any(row.above_limit is not None for row in rows)
    head = ["group", "ε", "sampler", "f", "users", *(name.replace("_", " ") for name in statistics)]
    head += [*(["above limit"] if limited else []), "keeps q", *(["best"] if marks else [])]
    cells: list[list[str]] = []
    bold = []
    block: tuple[object, ...] = ()
    for row in rows:
        if marks and block not in ((), (row.group, row.epsilon, row.divergence)):
            cells.append([])
        block = row.group, row.epsilon, row.divergence
        if marks.get(row) == "best":
            bold.append(len(cells))
        cells.append(
            [
                shown_text(row.group),
                f"{row.epsilon:g}",
                shown_text(row.sampler),
                shown_text(row.divergence),
                f"{row.users:,}",
                *(number(getattr(row, name)) for name in statistics),
                *([number(row.above_limit)] if limited else []),
                "yes" if row.keeps_prior else "no",
                *([marks.get(row, "")] if marks else []),
            ]
        )
    if not grouped:
        head, cells = head[1:], [row[1:] for row in cells]
    left = ("group", "sampler", "f", "best")
    print_table(head, cells, left=left, bold=bold, padding=(0, 1, 0, 0))
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
