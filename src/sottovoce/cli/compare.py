"""The command compare: how far each sampler is from each user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from ..divergences import FDivergence
from ..errors import ParameterError
from ..groups import Groups
from ..planning.compare import STATISTICS, Comparison, ComparisonRow, compare
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from ..samplers.base import Sampler
from ..tables import files
from ..tables.priors import PublicData
from ..tables.users import ReadingOptions, private_columns
from ..users import Users
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
)
from .terminal import (
    NOT_PRIVATE,
    check_one_result,
    console,
    number,
    plain,
    print_json,
    print_note,
    print_table,
    shown_text,
    step,
)

if TYPE_CHECKING:
    from ..planning.streams import SamplesRow


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
    help="Compare several samples per user, such as 1,2,4, of one sampler.",
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
      sottovoce compare survey.csv members.csv -e 2 --limit --sort maximum
      sottovoce compare survey.csv members.csv -e 2 --by group \\
          -s kernel-clip -s blend:weight=0.3 -d tv -d kl -o table.csv
      sottovoce compare survey.csv members.csv -e 4 -s fitted --samples 1,2,4
    """
    makers = [parse_sampler(text) for text in samplers or SAMPLERS]
    measures = [parse_divergence(text) for text in divergences or ["tv"]]
    numbers = None if samples is None else _parse_samples(samples, samplers, measures)
    if numbers and limit:
        raise ParameterError("--samples prints a table of its own: leave out --limit")
    check_one_result(output, as_json)
    if output is not None:
        files.check_writable(output, prior_file, users_file, force=force)
    if spark is not None and (limit or numbers or read):
        raise ParameterError(
            "--limit and --samples need the users in one process, and Spark reads Parquet and plain CSV by "
            "itself: leave out --limit, --samples and --read, or --spark"
        )
    written = readings(read, prior_file, users_file)
    # A comparison publishes no user's groups, so a user may have several.
    options = reading_options(unknown, empty=empty, unknown_groups=unknown_groups, several_groups="allow")
    public = read_public(prior_file, written[0], item=item, count=count, by=by)
    columns = {"user": user, "item": item, "weight": weight}
    if numbers is not None:
        groups, how = read_histories(users_file, public, written[1], options, **columns)
        print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
        make, parameters = makers[0] if samplers else parse_sampler("fitted")
        rows = _compare_samples(groups, public, epsilons, numbers, make, measures[0], parameters)
        _show_samples(rows, output, force, as_json, grouped=public.by is not None)
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
    if _written(table.to_dicts(), output, force):
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


def _written(rows: list[dict[str, Any]], output: Path | None, force: bool) -> bool:
    """Write the rows where an output is named, and return whether standard output has them now."""
    if output is None:
        return False
    files.write_rows(rows, output, replace=force)
    if not files.is_standard(output):
        print_note(f"written to {output}")
    return files.is_standard(output)


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
            item, weight, how = private_columns(frame.columns, by=by, wide=False, **columns)
            table = spark.compare(
                frame,
                Groups(samplers, by).returned,
                measures,
                user=columns["user"],
                item=item,
                weight=weight,
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


def _parse_samples(text: str, samplers: tuple[str, ...], measures: list[FDivergence]) -> list[int]:
    """1,2,4 → the numbers of samples."""
    if len(samplers) > 1 or len(measures) > 1:
        raise ParameterError("--samples compares numbers of samples, of one sampler and by one divergence")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= 3 for part in parts):
        raise ParameterError(f"--samples must be numbers such as 1,2,4, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))


def _compare_samples(
    groups: Mapping[str, Users],
    public: PublicData,
    epsilons: list[float],
    numbers: list[int],
    make: Any,
    measure: FDivergence,
    parameters: dict[str, Any],
) -> list[tuple[str, SamplesRow]]:
    """Return a row for each group, epsilon, number of samples and way to release them."""
    from ..planning.streams import compare_samples

    rows: list[tuple[str, SamplesRow]] = []
    parts = len(groups) * len(epsilons) * sum(1 + (k > 1) for k in numbers)
    with step("comparing", "numbers of samples", total=parts, unit="rows") as going:
        for group, users in groups.items():
            for epsilon in epsilons:
                compared = compare_samples(
                    users.p,
                    public.priors[group],
                    epsilon,
                    samples=numbers,
                    sampler=make,
                    divergence=measure,
                    provenance="users",  # nothing is released
                    progress=going.advance,
                    **parameters,
                )
                rows += [(group, row) for row in compared]
    return rows


def _show_samples(
    rows: list[tuple[str, SamplesRow]], output: Path | None, force: bool, as_json: bool, *, grouped: bool
) -> None:
    """Write and print what several samples are worth."""
    tidy = [{"group": group, **asdict(row)} for group, row in rows]
    if _written(tidy, output, force):
        return
    if as_json:
        print_json({"rows": tidy, "note": NOT_PRIVATE})
        return
    head = ["ε", "samples", "released", "users", "mean", "p99", "maximum"]
    cells = [
        [
            *([shown_text(group)] if grouped else []),
            f"{row.epsilon:g}",
            str(row.samples),
            row.way if row.samples > 1 else "one alone",
            f"{row.users:,}",
            *map(number, (row.mean, row.p99, row.maximum)),
        ]
        for group, row in rows
    ]
    print_table([*(["group"] if grouped else []), *head], cells, left=("group", "released"))
    print_note(
        "The distance of one sample, averaged over a user's samples. Together: one release of all samples, "
        "simulated. Separately: every sample at epsilon/samples."
    )
    print_note(NOT_PRIVATE)
