"""The commands compare and choose: how far each sampler is from each user, and one recommendation."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from ..divergences import TV, FDivergence
from ..errors import ParameterError, TargetError
from ..planning.choose import Choice, choose
from ..planning.compare import Comparison, compare
from ..planning.fitted import PublicUsers
from ..planning.limit import TAIL
from ..prior import FROM_USERS
from ..tables.priors import PublicData
from ..tables.users import ReadingOptions
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
@options.packed(options.left_out, "misfits")
@options.unknown_option
@options.output_options()
def compare_command(
    prior_file: Path,
    users_file: Path,
    epsilons: list[float],
    samplers: list[partial[Any]],
    divergences: list[FDivergence | None],
    limit: bool,
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
      sottovoce compare years.csv members.csv -e 2 --near position=item
    """
    output.check(prior_file, users_file)
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


@click.command("choose", cls=Command)
@options.prior_argument
@options.path_argument("public_users", metavar="[PUBLIC_USERS]", required=False)
@option("--epsilon", "-e", type=float, panel="Targets", help="Privacy parameter, if it is settled.")
@option("--mean-at-most", type=float, panel="Targets", help="Largest mean distance to a user's own data.")
@option("--nobody-above", type=float, panel="Targets", help="Largest distance of any possible user.")
@option(
    "--share-within", type=float, panel="Targets", help="Estimate each share within ± this; with --reports."
)
@option("--reports", type=int, panel="Targets", help="How many reports there will be.")
@option("--one-record", is_flag=True, panel="Samplers", help="The device may look at one record only.")
@option("--same-for-everybody", is_flag=True, panel="Samplers", help="Best worst case, not best average.")
@option(
    "--keep-prior/--any-prior", default=True, panel="Samplers",
    help="Whether a user equal to the prior releases exactly the prior.",
)  # fmt: skip
@option("--source", panel="Users", help="Where the public users come from, in words that can be checked.")
@options.packed(partial(options.reading_options, unknown_groups="drop"), "misfits")
@options.unknown_option
@options.all_columns
@options.json_option
def choose_command(
    prior_file: Path,
    public_users: Path | None,
    source: str | None,
    misfits: ReadingOptions,
    columns: Columns,
    as_json: bool,
    **wishes: Any,
) -> None:
    """Recommend one sampler and, for a target, the smallest epsilon that meets it.

    PUBLIC_USERS are histories of public users that resemble yours; they need --source. Without them users are
    invented from the prior. Never pass private users here: the choice would reveal something about them.

    \b
    Examples:
      sottovoce choose survey.csv --epsilon 2
      sottovoce choose survey.csv --mean-at-most 0.05
      sottovoce choose survey.csv --nobody-above 0.3
      sottovoce choose survey.csv --share-within 0.01 --reports 50000
      sottovoce choose survey.csv published.csv --source "a published panel" -e 2
      sottovoce choose years.csv --item year --near position=year --mean-at-most 2
    """
    if public_users is not None and source is None:
        raise ParameterError(
            "public users need --source, which says where they come from and that they are public; "
            "private users must not be used for choosing"
        )
    if source is not None and public_users is None:
        raise ParameterError("--source describes the file of public users, which is missing")
    prior_table, *users_tables = columns.tables(prior_file, public_users)
    public = prior_table.priors()
    declared: dict[str, PublicUsers] = {}
    note = f"{prior_file.name}: {plain(public.how)}."
    for table in users_tables:
        groups, how = table.users(public, misfits)
        declared = {name: PublicUsers(users.p, str(source)) for name, users in groups.items() if len(users)}
        note += f" {table.path.name}: {how}."
    choices = _choices(public, prior_file.name, declared, wishes)
    print_note(note)
    free = not (declared or wishes["one_record"] or wishes["same_for_everybody"] or wishes["reports"])
    auto = free and wishes["epsilon"] is not None and wishes["keep_prior"] and columns.near is None
    design = _design(choices, prior_file, public.by, auto=auto)
    if design is not None:  # --near is for the sampler that takes it
        design += prior_table.as_typed(near=" -s nearest" in design)
    if as_json:
        print_json({"choices": list(map(_as_dict, choices, choices.values())), "design": design})
        return
    for group, choice in choices.items():
        if public.by is not None:
            terminal.console.print(f"[bold]{shown_text(group)}[/bold]")
        for line in choice.words().splitlines():
            print_text(plain(line))
        terminal.console.print()
    if design is None:
        print_note(
            "The groups would take different samplers, and design takes one name for all: -s fitted fits "
            "each group by itself; or design each group from a prior file of its own."
        )
        return
    print_text(f"  {design}")
    if len({choice.epsilon for choice in choices.values()}) > 1:
        print_note("A file of groups has one epsilon: the largest is taken.")


def _choices(
    public: PublicData, name: str, declared: dict[str, PublicUsers], wishes: dict[str, Any]
) -> dict[str, Choice]:
    choices: dict[str, Choice] = {}
    with terminal.step("choosing", name, total=len(public.priors), unit="groups") as going:
        for before, (group, prior) in enumerate(public.priors.items()):
            try:
                more = {**wishes, "progress": lambda part, before=before: going.reached(before + part)}
                choices[group] = choose(prior, users=declared.get(group), geometry=public.geometry, **more)
            except TargetError as problem:
                if public.by is None:
                    raise
                raise TargetError(f"group {plain(group)!r}: ", *problem.args) from problem
    return choices


def _design(choices: dict[str, Choice], prior_file: Path, by: str | None, *, auto: bool) -> str | None:
    """Return the command that designs the choice; for groups one that serves them all, or None."""
    best = max(choices.values(), key=lambda choice: choice.epsilon)
    design = best.command(str(prior_file))
    if by is None:
        return design
    if len({choice.as_typed for choice in choices.values()}) > 1:
        if not auto:
            return None
        design = design.replace(f"-s {best.as_typed} ", "-s auto ")
    return f"{design} --by {quote(by)}"


def _as_dict(group: str, choice: Choice) -> dict[str, Any]:
    plain = ("epsilon", "targets", "reason", "above_limit", "measured_on")
    return {
        "group": group,
        "sampler": choice.as_typed,
        **{name: getattr(choice, name) for name in plain},
        "words": choice.words().splitlines(),
        "row": asdict(choice.row),
        "runner_up": None if choice.runner_up is None else asdict(choice.runner_up),
        "limit": None if choice.limit is None else asdict(choice.limit),
        "considered": choice.table.sorted().to_dicts(),
    }
