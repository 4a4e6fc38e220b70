"""The command compare: how far each sampler's release is from each user's own data."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..divergences import TV, FDivergence
from ..planning.compare import Comparison, compare
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from . import names, options, terminal
from .app import Command
from .options import Columns, Output, option
from .terminal import NOT_PRIVATE, number, plain, print_json, print_note, print_table, print_text, shown_text

MOST_ROWS = 40
"""With more rows only those of all groups together are printed."""


@click.command("compare", cls=Command)
@options.prior_argument
@options.path_argument("users_file", metavar="USERS")
@names.epsilons_option
@option(
    "--sampler", "-s", "samplers", multiple=True, metavar="NAME", panel="Samplers",
    callback=names.each(names.parse_sampler),
    help=f"{names.SAMPLER_NAMES}. Default all; repeat for several.",
)  # fmt: skip
@option(
    "--divergence", "-d", "divergences", multiple=True, metavar="NAME", panel="Samplers",
    callback=names.each(names.parse_divergence),
    help=f"{names.DIVERGENCE_NAMES}. Default tv; repeat for several.",
)  # fmt: skip
@option("--limit", is_flag=True, panel="Samplers", help="Add the best that any private sampler could do.")
@options.all_columns
@options.unknown_option
@options.output_options()
def compare_command(
    prior_file: Path,
    users_file: Path,
    epsilons: list[float],
    samplers: list[partial[Any]],
    divergences: list[FDivergence | None],
    limit: bool,
    user: str,
    item: str,
    weight: str | None,
    count: str | None,
    by: str | None,
    near: str | None,
    read: tuple[str, ...],
    unknown: str,
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
      sottovoce compare years.csv members.csv -e 2 --near position=item
    """
    columns = Columns(item=item, user=user, weight=weight, count=count, by=by, near=near, read=read)
    misfits = options.left_out(unknown)
    result = Output(output, force=force, as_json=as_json)
    result.check(prior_file, users_file)
    prior_table, users_table = columns.tables(prior_file, users_file)
    public = prior_table.priors()
    makers = names.with_geometry(samplers, public.geometry)
    distances = names.in_geometry(divergences, public.geometry)
    groups, how = users_table.users(public, misfits)
    chosen = {
        group: [make(prior, epsilon) for epsilon in epsilons for make in makers]
        for group, prior in public.priors.items()
    }
    parts = sum(len(chosen[group]) for group in groups) + limit * len(epsilons) * len(groups)
    with terminal.step("comparing", users_file.name, total=parts, unit="samplers") as going:
        table = compare(groups, chosen, distances, limit=limit, progress=going.advance)
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
    if all(users.amounts is not None and (users.amounts == 1).all() for users in groups.values()):
        print_note("Every user has one record: is it the right column of users (--user)?")
    if result.write_rows(table.to_dicts()):
        return
    shown = table.sorted()
    if as_json:
        note = f"{NOT_PRIVATE} {FROM_USERS}" if table.provenance == "users" else NOT_PRIVATE
        together = [asdict(row) for row in shown.all_groups]
        print_json({"rows": shown.to_dicts(), "all_groups": together, "note": note})
    else:
        _print_comparison(shown, grouped=public.by is not None)
        print_note(NOT_PRIVATE)


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
    """Print a line per row; on a narrow terminal fewer statistics."""
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
    for row, before in zip(listing.rows, [listing.rows[0], *listing.rows], strict=False):
        if "mark" not in hidden and any(row[k] != before[k] for k in (0, 1, 3)):  # group, ε, divergence
            cells.append([])
        cells.append([shown_text(row[k]) for k in shown])
    head = [listing.head[k].replace("_", " ") for k in shown]
    left = ("group", "sampler", "divergence", "mark")
    print_table(head, cells, left=left, padding=(0, 1, 0, 0))
    if table.provenance == "users":
        print_note(FROM_USERS)
    if "above_limit" in listing.head:
        print_note(
            f"best possible: no private sampler that keeps the prior has a smaller mean + {TAIL:g}·maximum "
            "on these users; above limit: how much larger that sum is, at most (its own: the proof's gap)."
        )
    if not wide:
        print_note("More columns in a wider window, or with --json.")
