"""The commands release and ledger: one private category per user, and the budget that it is charged to."""

from __future__ import annotations

import sys
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..release.file import MechanismFile, Policy, load_mechanisms
from ..release.ledger import MICRO, Ledger, epsilon_text
from ..releasing import release_file
from ..tables import files
from ..tables.users import ReadingOptions
from . import options
from .app import Command, as_typed, signals
from .options import PATH, Columns, json_option, option, path_argument
from .terminal import (
    console,
    plain,
    print_facts,
    print_json,
    print_note,
    print_table,
    print_text,
    shown_text,
    step,
)

ledger_argument = path_argument("ledger", metavar="LEDGER")


def _user_of(_context: click.Context, _argument: click.Parameter, user: str | None) -> str | None:
    """The user; for - the one name on standard input."""
    if user != "-":
        return user
    given = b"" if sys.stdin is None else sys.stdin.buffer.read()
    return given.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _epoch_of(_context: click.Context, _option: click.Parameter, epoch: str | None) -> str | None:
    """The epoch; an empty one is an unset variable more often than intended."""
    if epoch is not None and not epoch.strip():
        raise ParameterError("--epoch is empty: leave it out, or name a period such as 2026-11")
    return epoch


epoch_option = option("--epoch", panel="Budget", callback=_epoch_of, help="The period, such as 2026-11.")


@click.command("release", cls=Command)
@options.mechanism_argument
@options.path_argument("table", metavar="USERS")
@options.private_columns
@options.column("--by", "Group, for a file of groups. Its values are published in clear.")
@options.packed(partial(options.reading_options, choices=("prior", "error", "drop")), "misfits")
@option(
    "--unknown", default="prior", metavar="WHAT", panel="Users", stands_for={"other": "as={}"},
    help="Items that are no category: prior (they count for nothing, and every user gets a row), error, "
    "drop, or as=NAME. All but prior reveal what users have.",
)  # fmt: skip
@option(
    "--unknown-groups", default="error", type=click.Choice(("error", "drop")), panel="Users",
    help="Groups of users that have no prior.",
)  # fmt: skip
@option(
    "--several-groups", default="error", type=click.Choice(("error", "allow")), panel="Users",
    help="Users with several groups; allow publishes the set of them.",
)  # fmt: skip
@options.packed(
    Policy,
    "policy",
    option(
        "--max-epsilon", type=float, panel="Budget", help="Refuse a mechanism with a larger epsilon.",
        callback=lambda _context, _option, value: "any" if value is None else value,
    ),
    option(
        "--max-learned-epsilon", type=float, panel="Budget",
        help="Refuse a prior that was learned from reports at a larger epsilon, or does not state it.",
    ),
    option("--digest", panel="Budget", help="Refuse any file but the one with this digest (see design -o)."),
    option(
        "--provenance", default="public", type=click.Choice(("public", "users")), panel="Budget",
        help="Accepted provenance of the prior; users: also one made from its users, for an experiment.",
    ),
)  # fmt: skip
@option(
    "--ledger", type=PATH, panel="Budget", help="Charge every user here first; see sottovoce ledger create."
)
@epoch_option
@option(
    "--exhausted", default="error", type=click.Choice(("error", "skip")), panel="Budget",
    help="Users with too little budget left.",
)  # fmt: skip
@option(
    "--output", "-o", type=PATH, panel="Output",
    help="Where to write (.csv, .parquet or .json), whole or not at all.",
)  # fmt: skip
@option(
    "--dry-run", is_flag=True, panel="Output",
    help="Read and check everything and print what would happen: nobody is charged, nothing is drawn.",
)  # fmt: skip
@option(
    "--exact", is_flag=True, panel="Output",
    help="Draw every user alone, by the code that the proofs are about: slower, and the same law.",
)  # fmt: skip
@options.force_option
def release_command(
    mechanism_file: Path,
    table: Path,
    columns: Columns,
    misfits: ReadingOptions,
    policy: Policy,
    ledger: Path | None,
    output: Path | None,
    dry_run: bool,
    force: bool,
    **terms: Any,
) -> None:
    """Release one private category per user, in exact arithmetic, from the operating system's randomness.

    USERS are private histories: a row per user and item. Everything is checked before anybody is charged:
    what is refused has cost nothing.

    \b
    Examples:
      sottovoce release mechanism.json members.csv --by group --max-epsilon 2 \\
          --dry-run
      sottovoce release mechanism.json members.csv -o reports.csv --by group \\
          --max-epsilon 2
      sottovoce ledger create budget.db --budget 4
      sottovoce release mechanism.json members.csv -o reports.parquet \\
          --by group --ledger budget.db --epoch 2026-11
    """
    if output is not None:
        files.check_writable(output, mechanism_file, table, force=force)
    elif not dry_run:
        raise ParameterError("pass --output, where to write, or --dry-run, which writes nothing")
    if policy.max_epsilon == "any" and policy.digest is None and ledger is None:
        raise ParameterError(
            "how much ε may be spent? The file alone must not decide that: pass --max-epsilon, --digest of a "
            "file you know, or --ledger with a budget"
        )
    (users,) = columns.tables(table)
    loaded = load_mechanisms(mechanism_file, policy=policy)
    by = _released_column(columns.by, loaded, pinned=policy.digest is not None)
    done = release_file(
        loaded.mechanisms,
        table,
        output,
        **columns.private,
        by=by,
        options=misfits,
        dialect=users.dialect,
        ledger=None if ledger is None else Ledger.open(ledger),
        force=force,
        dry_run=dry_run,
        **terms,
        progress=step,
        note=lambda text: print_note(plain(text)),
        warn=_print_share,
        signals=signals,
    )
    show = print_text if dry_run else print_note
    show(plain(done))


def _print_share(*parts: object, serious: bool) -> None:
    """What share of the rows counts for nothing, which only the operator sees."""
    text = plain(as_typed(parts, click.get_current_context().command))
    print_note(f"warning: {text}" if serious else f"{text}.")


def _released_column(by: str | None, loaded: MechanismFile, *, pinned: bool) -> str | None:
    """The group column: the one the releasing side names, or the file's own if the whole file is pinned."""
    if loaded.by is None:
        if by is not None:
            raise ParameterError("--by needs a mechanism file made with --by, and only such a file needs it")
        return None
    if by is None and not pinned:
        raise ParameterError(
            f"this file holds a mechanism per group, and it asks for the column {plain(loaded.by)!r}. Each "
            f"user's value in that column is published in clear beside the release. If it may be, name the "
            f"column with --by, or pin the whole file with --digest"
        )
    return loaded.by if by is None else by


@click.group("ledger")
def ledger_command() -> None:
    """Create and read a ledger: a budget of epsilon per user and epoch.

    USER is a name as in the table; - reads it from standard input, because every user of this machine can
    read the arguments of a command.
    """


@ledger_command.command("create", cls=Command)
@ledger_argument
@option("--budget", required=True, panel="Budget", help="Epsilon per user and epoch, such as 4, 0.5 or 1/3.")
@option("--lifetime", panel="Budget", help="Epsilon per user in all epochs together; default no bound.")
@option("--witness", type=PATH, help="The witness file, best on another volume; default beside the ledger.")
def create(ledger: Path, budget: str, lifetime: str | None, witness: Path | None) -> None:
    """Create an empty ledger. Nothing that exists is ever overwritten.

    \b
    Examples:
      sottovoce ledger create budget.db --budget 4
      sottovoce ledger create budget.db --budget 2 --lifetime 12 \\
          --witness /other/volume/budget.witness
    """
    made = Ledger.create(ledger, budget=budget, lifetime=lifetime, witness=witness)
    where = f"{made.path} (witness {made.witness})"
    print_note(f"a new ledger starts at {where}: nobody is charged for anything before it")


@ledger_command.command("show", cls=Command)
@ledger_argument
@click.argument("user", required=False, callback=_user_of)
@epoch_option
@json_option
def show(ledger: Path, user: str | None, epoch: str | None, as_json: bool) -> None:
    """Show what a ledger allows and has charged; with USER, what this user has spent and has left.

    \b
    Examples:
      sottovoce ledger show budget.db --json
      sottovoce ledger show budget.db member-0001 --epoch 2026-11
      sottovoce ledger show budget.db - < name.txt
    """
    book = Ledger.open(ledger)
    if user is None:
        if epoch is not None:
            raise ParameterError("--epoch needs a USER: every epoch of the ledger is shown")
        _show_ledger(book, as_json)
        return
    meant = book.epoch_meant(epoch)
    left, total = _text(book.left(user, meant)), _text(book.total(user))
    if as_json:
        print_json({"epoch": meant, "left": left, "total": total})
        return
    console.print(left, highlight=False)
    where = f" in epoch {meant!r}" if meant else ""
    print_note(f"ε = {left} is left to this user{where}; {total} was spent in all epochs")


def _show_ledger(book: Ledger, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "path": str(book.path),
        "witness": str(book.witness),
        "budget": _text(book.budget),
        "lifetime": None if book.lifetime is None else _text(book.lifetime),
        "users": book.users(),
        "epochs": [{**asdict(row), "epsilon": _text(row.epsilon)} for row in book.epochs()],
    }
    if as_json:
        print_json(facts)
        return
    epochs = facts.pop("epochs")
    print_facts([(name, shown_text(value)) for name, value in facts.items() if value is not None])
    rows = [[shown_text(e["epoch"] or "(no name)"), f"{e['users']:,}", e["epsilon"]] for e in epochs]
    print_table(("epoch", "users", "ε in all"), rows, left=("epoch",))


@ledger_command.command("grant", cls=Command)
@ledger_argument
@click.argument("user", callback=_user_of)
@click.argument("more")
@epoch_option
def grant(ledger: Path, user: str, more: str, epoch: str | None) -> None:
    """Allow one user MORE epsilon in one epoch; their next release there is a new one.

    \b
    Examples:
      sottovoce ledger grant budget.db member-0001 1 --epoch 2026-11
    """
    book = Ledger.open(ledger)
    meant = book.epoch_meant(epoch)
    book.grant(user, more, meant)
    print_note(f"granted; ε = {_text(book.left(user, meant))} is left to this user")


def _text(amount: Fraction) -> str:
    """Return a budget as a decimal number, exactly."""
    return epsilon_text(int(amount * MICRO))
