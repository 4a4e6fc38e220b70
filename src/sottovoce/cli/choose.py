"""The command choose: one recommendation, in plain words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from ..errors import ParameterError, TargetError
from ..planning.choose import Choice, choose
from ..planning.fitted import PublicUsers
from ..tables.users import read_user_groups
from .app import (
    AsJson,
    By,
    Count,
    Decimal,
    Encoding,
    Item,
    Merge,
    Missing,
    NoCount,
    PriorFile,
    RareBelow,
    Separator,
    Sheets,
    Smoothing,
    Unknown,
    User,
    Weight,
    app,
)
from .progress import reading_of, step
from .tables import dialects_said, read_public, reading_said, said_again
from .terminal import (
    console,
    plain,
    print_json,
    print_note,
    shown_text,
)


@app.command("choose")
def choose_command(
    prior_file: PriorFile,
    public_users: Annotated[
        Path | None,
        typer.Argument(
            help="Histories of PUBLIC users that resemble yours; needs --source. Without them users are "
            "invented from the prior. Never private users: the choice would leak.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="Privacy parameter, if it is settled.")
    ] = None,
    mean_at_most: Annotated[
        float | None, typer.Option(help="Mean distance to a user's own data, at most (0 to 1).")
    ] = None,
    nobody_above: Annotated[
        float | None, typer.Option(help="No possible user further from their own data than this.")
    ] = None,
    share_within: Annotated[
        float | None, typer.Option(help="Estimate each share within ± this; needs --reports.")
    ] = None,
    reports: Annotated[int | None, typer.Option(help="How many reports there will be.")] = None,
    one_record: Annotated[
        bool, typer.Option("--one-record", help="The device may look at one record only.")
    ] = False,
    same_for_everybody: Annotated[
        bool, typer.Option("--same-for-everybody", help="The best worst case, not the best average.")
    ] = False,
    keep_prior: Annotated[
        bool,
        typer.Option("--keep-prior/--any-prior", help="Whether data equal to the prior stay undistorted."),
    ] = True,
    source: Annotated[
        str | None, typer.Option(help="Where the public users come from, in words a reviewer can check.")
    ] = None,
    user: User = "user",
    item: Item = "item",
    weight: Weight = None,
    count: Count = None,
    no_count: NoCount = False,
    by: By = None,
    smoothing: Smoothing = 0.0,
    merge: Merge = None,
    rare_below: RareBelow = None,
    unknown: Unknown = "error",
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
    as_json: AsJson = False,
) -> None:
    """One recommendation: a sampler and, for a target, the smallest epsilon that meets it.

    \b
    Examples:
      sottovoce choose survey.csv --epsilon 2
      sottovoce choose survey.csv --mean-at-most 0.05
      sottovoce choose survey.csv --nobody-above 0.3
      sottovoce choose survey.csv --share-within 0.01 --reports 50000
      sottovoce choose survey.csv published.csv --source "a published panel" -e 2
    """
    if (public_users is None) != (source is None):
        raise ParameterError(
            "public users need --source, which says where they come from and that they are public; "
            "private users must not be used for choosing"
            if source is None
            else "--source describes the file of public users, which is missing"
        )
    if (share_within is None) != (reports is None):
        raise ParameterError("--share-within and --reports belong together: give both, or none")
    if epsilon is None and mean_at_most is None and nobody_above is None and reports is None:
        raise ParameterError(
            "give --epsilon, or a target to find it by: --mean-at-most, --nobody-above, or --share-within "
            "with --reports"
        )
    tables = [prior_file] if public_users is None else [prior_file, public_users]
    written = dialects_said(tables, separator, encoding, missing, decimal, sheet)
    public = read_public(
        prior_file, item=item, count=count, by=by, smoothing=smoothing, merge=merge, rare_below=rare_below,
        dialect=written[0], no_count=no_count,
    )  # fmt: skip
    declared: dict[str, PublicUsers] = {}
    how = ""
    if public_users is not None and source is not None:
        with reading_of(public_users):
            reading = reading_said(
                merge, unknown, empty="skip", unknown_groups="drop", several_groups="allow"
            )
            columns: dict[str, Any] = {"user": user, "item": item, "weight": weight, "by": public.by}
            groups, how = read_user_groups(
                public_users,
                public.priors,
                **columns,
                options=reading,
                dialect=written[1],
            )
        declared = {name: PublicUsers(one.p, source) for name, one in groups.items() if len(one)}
    found: dict[str, Choice] = {}
    with step("choosing", prior_file.name, total=len(public.priors), unit="groups") as going:
        for before, (group, prior) in enumerate(public.priors.items()):

            def shown(part: float, before: int = before) -> None:
                going.reached(before + part)

            try:
                found[group] = choose(
                    prior,
                    epsilon,
                    declared.get(group),
                    mean_at_most=mean_at_most,
                    nobody_above=nobody_above,
                    share_within=share_within,
                    reports=reports,
                    one_record=one_record,
                    same_for_everybody=same_for_everybody,
                    keep_prior=keep_prior,
                    progress=shown,
                )
            except TargetError as problem:
                if public.by is None:
                    raise
                raise TargetError(f"group {plain(group)!r}: {problem}") from problem
    counted = "" if public_users is None else f" {public_users.name}: {how}."
    print_note(f"{prior_file.name}: {plain(public.how)}.{counted}")
    free = not (one_record or same_for_everybody or reports) and keep_prior
    design = _design(found, prior_file, public.by, auto=epsilon is not None and not declared and free)
    if design is not None:
        first = None if sheet is None else sheet[0]
        design += said_again(
            item=None if item == "item" else item, count=count, no_count=no_count, smoothing=smoothing,
            merge=merge, rare_below=rare_below, separator=separator, encoding=encoding,
            missing=None if missing == "error" else missing, decimal=decimal, sheet=first,
        )  # fmt: skip
    if as_json:
        print_json({"choices": [_as_dict(group, one) for group, one in found.items()], "design": design})
        return
    for group, one in found.items():
        if public.by is not None:
            console.print(f"[bold]{shown_text(group)}[/bold]")
        for line in one.words().splitlines():
            console.print(plain(line), markup=False, highlight=False, soft_wrap=True)
        console.print()
    if design is None:
        print_note(
            "The groups would take different samplers, and design takes one name for all: -s fitted fits "
            "each group by itself; or design each group from a prior file of its own."
        )
    else:
        console.print(f"  {design}", markup=False, highlight=False, soft_wrap=True)
        if len({one.epsilon for one in found.values()}) > 1:
            print_note("A file of groups has one epsilon: the largest is taken.")


def _design(found: dict[str, Choice], prior_file: Path, by: str | None, *, auto: bool) -> str | None:
    """The command that designs the choice; for groups one that serves them all, or None."""
    best = max(found.values(), key=lambda one: one.epsilon)
    command = best.command(str(prior_file))
    if by is None:
        return command
    if len({one.as_typed for one in found.values()}) > 1:
        if not auto:
            return None
        command = command.replace(f"-s {best.as_typed} ", "-s auto ")
    return f"{command} --by {quote(by)}"


def _as_dict(group: str, one: Choice) -> dict[str, Any]:
    return {
        "group": group,
        "sampler": one.as_typed,
        "epsilon": one.epsilon,
        "targets": one.targets,
        "reason": one.reason,
        "words": one.words().splitlines(),
        "row": asdict(one.row),
        "runner_up": None if one.runner_up is None else asdict(one.runner_up),
        "limit": None if one.limit is None else asdict(one.limit),
        "above_limit": one.above_limit,
        "measured_on": one.measured_on,
        "considered": one.table.sorted().to_dicts(),
    }
