"""Commands that release and check: release, audit. They parse, call and print; no mathematics here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from . import files
from ._terminal import console, errors, number, print_json, print_note, shown_text, working
from .audit import AuditReport, audit
from .collector import model_prior
from .commands import AsJson, app
from .errors import ParameterError, PriorError
from .inputs import read_user_groups
from .ledger import Ledger, budget_of
from .mechanism import Mechanism
from .mechanism_file import Policy, load_mechanisms
from .prior import FROM_USERS
from .table_commands import Other, Wide
from .users import Users, is_average

BATCH = 1 << 14
"""Users per batch of the command: charged, drawn and shown as one step."""

MechanismFile = Annotated[
    Path, typer.Argument(help="Made by: sottovoce design … -o mechanism.json", show_default=False)
]
ByGroup = Annotated[
    str | None, typer.Option(help="Group column, when the file holds a mechanism per group; default its own.")
]
MaxEpsilon = Annotated[float | None, typer.Option(help="Refuse a mechanism with a larger epsilon.")]


@app.command()
def release(
    mechanism_file: MechanismFile,
    table: Annotated[
        Path,
        typer.Argument(help="Private histories: a row per user and item.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write (.csv, .parquet or .json), whole or not at all."),
    ],
    user: Annotated[str, typer.Option(help="Column of the user.")] = "user",
    item: Annotated[str, typer.Option(help="Column of the category.")] = "item",
    weight: Annotated[
        str | None, typer.Option(help="Column of weights; default weight or count if there.")
    ] = None,
    by: ByGroup = None,
    wide: Wide = False,
    unknown: Annotated[
        str,
        typer.Option(help="Items that the mechanism does not know: error, drop their rows, or other."),
    ] = "error",
    other: Other = "other",
    unknown_groups: Annotated[
        str, typer.Option(help="Groups of users that have no mechanism: error, or drop them.")
    ] = "error",
    ledger: Annotated[
        Path | None, typer.Option(help="Charge every user here first; made if --budget is given too.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Epsilon per user and epoch, for a new ledger.")] = None,
    epoch: Annotated[str, typer.Option(help="The period a charge belongs to, such as 2026-11.")] = "",
    max_epsilon: MaxEpsilon = None,
) -> None:
    """Release one private category per user, in exact arithmetic, from the operating system's randomness.

    \b
    Examples:
      sottovoce release mechanism.json members.csv -o reports.csv --by group
      sottovoce release mechanism.json members.csv -o reports.parquet \\
          --ledger budget.db --budget 4 --epoch 2026-11
    """
    files.check_writable(output, mechanism_file, table)
    if user == item or {user, item, by} & {"epsilon", "mechanism"}:
        raise ParameterError("--user, --item and --by must differ, and not be named epsilon or mechanism")
    mechanisms, grouped_by = load_mechanisms(mechanism_file, policy=_policy(max_epsilon))
    by = group_column(by, grouped_by)
    book = _book(ledger, budget)
    with working(f"reading {table.name}"):
        groups, how = read_user_groups(
            table,
            mechanisms,
            user=user,
            item=item,
            weight=weight,
            by=by,
            wide=wide,
            unknown=unknown,
            other=other,
            empty="skip",
            unknown_groups=unknown_groups,
        )
    print_note(f"{table.name}: {how}.")
    _check_public(mechanisms, groups)
    total = sum(len(users) for users in groups.values())
    several = total - len({who for users in groups.values() for who in users.ids})
    if several:
        print_note(f"{several:,} releases are second ones of users in several groups: their ε adds up.")
    rows: list[dict[str, object]] = []
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("releasing", total=total)
        for group, users in groups.items():
            for begin in range(0, len(users), BATCH):
                part = slice(begin, begin + BATCH)
                answers = _answers(mechanisms[group], users, part, book, epoch)
                about = {"epsilon": str(mechanisms[group].epsilon), "mechanism": mechanisms[group].digest}
                extra = {by: group} if by else {}
                rows += [
                    {user: who, **extra, item: answer, **about}
                    for who, answer in zip(users.ids[part], answers, strict=True)
                ]
                progress.advance(task, len(answers))
    files.write_rows(rows, output)
    print_note(f"{total:,} releases, one category for each user and group, into {output}")
    if book is None:
        print_note("No ledger: nothing stops a second release of the same users, and their ε adds up.")


def group_column(by: str | None, grouped_by: str | None) -> str | None:
    """The group column: the one named, else the one the mechanism file was made with."""
    if by is not None and grouped_by is None:
        raise ParameterError("--by needs a mechanism file made with --by, and only such a file needs it")
    return by or grouped_by


def _check_public(mechanisms: dict[str, Mechanism], groups: dict[str, Users]) -> None:
    """Refuse to release against a prior that is these users' own average, unless the file admits it."""
    for group, users in groups.items():
        if mechanisms[group].prior_from_users:
            print_note(FROM_USERS)
        elif is_average(model_prior(mechanisms[group]), len(users), users.averages()):
            raise PriorError(
                f"{FROM_USERS} These users' average is the prior of the mechanism. Design one from public "
                f"data; for an experiment, design it with --accept-prior-from-users"
            )


def _policy(max_epsilon: float | None) -> Policy:
    return Policy(max_epsilon=max_epsilon)  # at its exact binary value, like epsilon itself


def _book(path: Path | None, budget: str | None) -> Ledger | None:
    if path is None:
        if budget is not None:
            raise ParameterError("--budget needs --ledger")
        return None
    if budget is not None and not path.exists():
        new = Ledger.create(path, budget=budget)
        print_note(f"a new ledger starts at {path}: nobody is charged for anything before it")
        return new
    if not path.exists():
        raise ParameterError(
            f"there is no ledger at {path}: start one with --budget, the ε per user and epoch"
        )
    book = Ledger(path)
    if budget is not None and budget_of(budget) != budget_of(str(book.budget)):
        raise ParameterError(
            f"the ledger at {path} has a budget of {book.budget}, not {budget}; leave --budget out"
        )
    return book


def _answers(
    mechanism: Mechanism, users: Users, part: slice, book: Ledger | None, epoch: str
) -> list[object]:
    """Release for a batch of users, charged first when there is a ledger."""
    ids, rows = users.ids[part], users.p[part]
    if book is None:
        return list(mechanism.release_many(rows))
    return list(
        book.release_batch(mechanism, ids, lambda new: mechanism.release_many(rows[new]), epoch=epoch)
    )


@app.command("audit")
def audit_command(
    mechanism_file: MechanismFile,
    draws: Annotated[int, typer.Option(help="Releases to look at, per mechanism.")] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="Chance that a sound mechanism passes.")] = 0.999,
    max_epsilon: MaxEpsilon = None,
    as_json: AsJson = False,
) -> None:
    """Check the certificate again in exact arithmetic, and test the releases as a black box.

    \b
    Examples:
      sottovoce audit mechanism.json
      sottovoce audit mechanism.json --draws 10000000 --json
    """
    mechanisms, _ = load_mechanisms(mechanism_file, policy=_policy(max_epsilon))
    reports: dict[str, AuditReport] = {}
    quiet = as_json or not errors.is_terminal
    with Progress(console=errors, transient=True, disable=quiet) as progress:
        for group, mechanism in mechanisms.items():
            task = progress.add_task(f"auditing {shown_text(group)}", total=draws)
            reports[group] = audit(
                mechanism,
                draws=draws,
                confidence=confidence,
                progress=lambda done, task=task: progress.update(task, completed=done),  # type: ignore[misc]
            )
    if as_json:
        print_json([{"group": g, **asdict(r), "passed": r.passed} for g, r in reports.items()])
    else:
        _print_reports(reports)
    if not all(report.passed for report in reports.values()):
        raise typer.Exit(1)


def _print_reports(reports: dict[str, AuditReport]) -> None:
    shown = Table(box=None, header_style="bold")
    for column in ("group", "sampler", "ε", "certificate", "draws", "ε at least", "verdict"):
        shown.add_column(column, justify="right" if column in ("ε", "draws", "ε at least") else "left")
    for group, report in reports.items():
        verdict = "no violation found" if report.passed else "[bold red]VIOLATION[/bold red]"
        shown.add_row(
            shown_text(group),
            shown_text(report.sampler),
            f"{report.epsilon:g}",
            report.certificate,
            f"{report.draws:,}",
            number(report.lower_bound),
            verdict,
        )
    console.print(shown)
    print_note(
        "The certificate is a proof in exact integers. The bound comes from draws alone, with confidence "
        f"{next(iter(reports.values())).confidence:g}: above ε it proves a violation, below it nothing."
    )
