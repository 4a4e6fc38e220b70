"""The command choose: one recommended sampler, and the command that designs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import click

from ..errors import ParameterError, TargetError
from ..planning.choose import Choice, choose
from ..planning.fitted import PublicUsers
from ..tables.priors import PublicData
from . import options, terminal
from .app import Command
from .options import Columns, option
from .terminal import plain, print_json, print_note, print_text, shown_text


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
@options.unknown_option
@options.all_columns
@options.json_option
def choose_command(
    prior_file: Path,
    public_users: Path | None,
    source: str | None,
    unknown: str,
    user: str,
    item: str,
    weight: str | None,
    count: str | None,
    by: str | None,
    near: str | None,
    read: tuple[str, ...],
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
    columns = Columns(item=item, user=user, weight=weight, count=count, by=by, near=near, read=read)
    misfits = options.reading_options(unknown, unknown_groups="drop")
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
