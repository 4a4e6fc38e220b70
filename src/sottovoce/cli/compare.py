"""The command compare: how far each sampler is from each user, and several samples of each user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click

from ..divergences import TV, FDivergence
from ..errors import ParameterError
from ..planning.compare import Comparison, compare, compare_samples
from ..planning.fitted import fitted
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from ..samplers.base import Sampler
from ..tables.priors import PublicData
from ..tables.users import ReadingOptions
from ..users import Users
from . import options, terminal
from .app import Command
from .options import DIVERGENCE_NAMES, SAMPLER_NAMES, Columns, Output, option
from .terminal import (
    NOT_PRIVATE,
    number,
    plain,
    print_json,
    print_note,
    print_table,
    print_text,
    shown_text,
    step,
)

MOST_ROWS = 40
"""With more rows only those of all groups together are printed."""
BLOCK = (0, 1, 3)
"""The columns group, epsilon and divergence of a listing: rows that agree in them are compared."""


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
@option("--samples", metavar="NUMBERS", panel="Samplers", help="Several samples per user, such as 1,2,4.")
@options.all_columns
@options.packed(options.left_out, "misfits")
@options.unknown_option
@options.output_options()
def command(
    prior_file: Path,
    users_file: Path,
    epsilons: list[float],
    samplers: tuple[str, ...],
    divergences: tuple[str, ...],
    limit: bool,
    samples: str | None,
    columns: Columns,
    misfits: ReadingOptions,
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
      sottovoce compare years.csv members.csv -e 2 --near position=item
    """
    every = [*options.SAMPLERS, *(["nearest"] if columns.near else [])]
    parsed = [options.parse_sampler(text) for text in samplers or every]
    named = [options.parse_divergence(text) for text in divergences]
    measures = _plain_measures(named, columns, alone=samples is None)
    numbers = None if samples is None else _parse_samples(samples, samplers, measures)
    if limit and numbers is not None:
        raise ParameterError("--limit and --samples print a table each: name one of them")
    output.check(prior_file, users_file)
    written = options.dialects(columns.read, prior_file, users_file)
    public = columns.public(prior_file, written[0])
    makers = [partial(options.placed(make, public.geometry), **given) for make, given in parsed]
    distances = options.in_place(named, public.geometry)
    groups, how = columns.histories(users_file, public, written[1], misfits)
    if numbers is not None:
        print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
        alone, name = (makers[0], samplers[0]) if samplers else (fitted, "fitted")
        _several_samples(groups, public, epsilons, numbers, alone, name, measures[0], output)
        return
    chosen = {
        group: [make(prior, epsilon) for epsilon in epsilons for make in makers]
        for group, prior in public.priors.items()
    }
    parts = sum(len(chosen[group]) for group in groups) + limit * len(epsilons) * len(groups)
    with step("comparing", users_file.name, total=parts, unit="samplers") as going:
        table = compare(groups, chosen, distances, limit=limit, progress=going.advance)
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
        raise ParameterError("--near is for comparing samplers: leave out --samples")
    return [measure for measure in named if measure is not None] or [TV]


def _print_answers(table: Comparison) -> None:
    """Print which sampler has the lowest mean and which the lowest maximum, of all users together."""
    whole = replace(table, rows=table.all_groups or table.rows)
    if len({row.sampler for row in whole}) < 2 or len({row.group for row in whole}) > 1:
        return
    means, maxima = (
        {(row.epsilon, row.divergence): row for row in reversed(whole.best(statistic).rows)}
        for statistic in ("mean", "maximum")
    )
    for (epsilon, divergence), lowest in reversed(means.items()):
        smallest = maxima[epsilon, divergence]
        print_text(
            f"ε = {epsilon:g}{'' if divergence == TV.name else f', {divergence}'}: lowest mean "
            f"{lowest.sampler} ({number(lowest.mean)}), lowest maximum {smallest.sampler} "
            f"({number(smallest.maximum)})"
        )


def _print_comparison(table: Comparison, *, grouped: bool) -> None:
    """Print a line per row, the best ones bold; on a narrow terminal fewer statistics."""
    wide = terminal.console.width >= 110
    _print_answers(table)
    if len(table.rows) + len(table.all_groups) > MOST_ROWS and table.all_groups:
        print_note(f"{len(table.rows)} rows of single groups are left out here: -o rows.csv has them.")
        table = replace(table, rows=())
    listing = table.listing()
    hidden = set() if wide else {"median", "p90", "p99", "worst_case"}
    hidden |= (set() if grouped else {"group"}) | (set() if any(listing.bold) else {"mark"})
    shown = [k for k, name in enumerate(listing.head) if name not in hidden]
    cells: list[list[str]] = []
    bold = []
    for row, before in zip(listing.rows, [listing.rows[0], *listing.rows], strict=False):
        if "mark" not in hidden and any(row[k] != before[k] for k in BLOCK):
            cells.append([])
        if row[-1] == "lowest mean":
            bold.append(len(cells))
        cells.append([shown_text(row[k]) for k in shown])
    head = [listing.head[k].replace("_", " ") for k in shown]
    left = ("group", "sampler", "divergence", "mark")
    print_table(head, cells, left=left, bold=bold, padding=(0, 1, 0, 0))
    if table.provenance == "users":
        print_note(FROM_USERS)
    if "above_limit" in listing.head:
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


def _several_samples(
    groups: Mapping[str, Users],
    public: PublicData,
    epsilons: list[float],
    numbers: list[int],
    make: Callable[..., Sampler],
    name: str,
    measure: FDivergence,
    output: Output,
) -> None:
    """Compare numbers of samples, together and separately, in every group and at every epsilon."""
    rows = []
    parts = len(groups) * len(epsilons) * sum(1 + (k > 1) for k in numbers)
    shared: Any = {"samples": numbers, "sampler": make, "divergence": measure}
    with step("comparing", "numbers of samples", total=parts, unit="rows") as going:
        for group, epsilon in product(groups, epsilons):
            people, prior = groups[group].p, public.priors[group]
            compared = compare_samples(people, prior, epsilon, **shared, progress=going.advance)
            rows += [(group, row) for row in compared]
    plain_rows = [{"group": group, **asdict(row)} for group, row in rows]
    if output.write_rows(plain_rows):
        return
    if output.as_json:
        print_json({"rows": plain_rows, "note": NOT_PRIVATE})
        return
    head = ["group", "ε", "samples", "released", "users", "mean", "p99", "maximum"]
    cells = [
        [shown_text(group), f"{row.epsilon:g}", str(row.samples), row.way if row.samples > 1 else "one alone",
         f"{row.users:,}", *map(number, (row.mean, row.p99, row.maximum))]
        for group, row in rows
    ]  # fmt: skip
    first = 0 if public.by is not None else 1
    print_table(head[first:], [row[first:] for row in cells], left=("group", "released"))
    print_note(
        f"The distance of one sample, averaged over a user's samples, measured on all "
        f"{sum(map(len, groups.values())):,} users. Together: one release of all samples, simulated. "
        f"Separately, and one alone: {name}, every sample at epsilon/samples."
    )
    print_note(NOT_PRIVATE)
