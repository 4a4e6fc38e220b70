"""The command ledger: make one on purpose, and look at what was charged. It parses, calls and prints."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..errors import ParameterError
from ..release.ledger import MICRO, Ledger, epsilon_text
from .app import (
    AsJson,
    app,
)
from .terminal import console, print_json, print_note, shown_text

ledger_app = typer.Typer(
    help="A budget of epsilon per user and epoch: make one on purpose, and see what was charged.",
    no_args_is_help=True,
)
app.add_typer(ledger_app, name="ledger")

LedgerFile = Annotated[
    Path, typer.Argument(help="Made by: sottovoce ledger create budget.db --budget 4", show_default=False)
]
User = Annotated[
    str,
    typer.Argument(
        help="The user's name, as in the table; - reads it from standard input, because everybody on this "
        "machine can read the arguments of a command.",
        show_default=False,
    ),
]
Epoch = Annotated[str | None, typer.Option(help="The period that is meant, such as 2026-11.")]


@ledger_app.command("create")
def create(
    ledger: Annotated[Path, typer.Argument(help="The file to make.", show_default=False)],
    budget: Annotated[str, typer.Option(help="Epsilon per user and epoch, such as 4, 0.5 or 1/3.")],
    lifetime: Annotated[
        str | None, typer.Option(help="Epsilon per user in all epochs together; default no bound.")
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(help="Where its witness stands, best on another volume; default beside the file."),
    ] = None,
) -> None:
    """Start an empty ledger. Nothing that exists is ever overwritten.

    \b
    Examples:
      sottovoce ledger create budget.db --budget 4
      sottovoce ledger create budget.db --budget 2 --lifetime 12 \\
          --witness /other/volume/budget.witness
    """
    made = Ledger.create(ledger, budget=budget, lifetime=lifetime, witness=witness)
    print_note(
        f"a new ledger starts at {made.path} (witness {made.witness}): nobody is charged for anything "
        f"before it"
    )


@ledger_app.command("show")
def show(ledger: LedgerFile, as_json: AsJson = False) -> None:
    """What a ledger allows, and how many users were charged.

    \b
    Examples:
      sottovoce ledger show budget.db
    """
    book = Ledger.open(ledger)
    facts = {
        "path": str(book.path),
        "witness": str(book.witness),
        "budget": _text(book.budget),
        "lifetime": None if book.lifetime is None else _text(book.lifetime),
        "users": book.users(),
        "epochs": len(book.epochs()),
    }
    if as_json:
        print_json(facts)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_row("ledger", shown_text(facts["path"]))
    grid.add_row("witness", shown_text(facts["witness"]))
    grid.add_row("ε per user and epoch", str(facts["budget"]))
    grid.add_row("ε per user in all", str(facts["lifetime"] or "no bound"))
    grid.add_row("users ever charged", f"{facts['users']:,}")
    grid.add_row("epochs", f"{facts['epochs']:,}")
    console.print(grid)


@ledger_app.command("epochs")
def epochs(ledger: LedgerFile, as_json: AsJson = False) -> None:
    """The epochs of a ledger, with what was charged in each.

    \b
    Examples:
      sottovoce ledger epochs budget.db --json
    """
    found = Ledger.open(ledger).epochs()
    rows = [{"epoch": one.epoch, "users": one.users, "epsilon": _text(one.epsilon)} for one in found]
    if as_json:
        print_json(rows)
        return
    shown = Table(box=None, header_style="bold")
    for column in ("epoch", "users", "ε in all"):
        shown.add_column(column, justify="left" if column == "epoch" else "right")
    for row in rows:
        shown.add_row(shown_text(row["epoch"] or "(no name)"), f"{row['users']:,}", str(row["epsilon"]))
    console.print(shown)


@ledger_app.command("left")
def left(ledger: LedgerFile, user: User, epoch: Epoch = None, as_json: AsJson = False) -> None:
    """How much epsilon one user may still spend in an epoch.

    \b
    Examples:
      sottovoce ledger left budget.db member-0001 --epoch 2026-11
      sottovoce ledger left budget.db - < name.txt
    """
    book = Ledger.open(ledger)
    meant = epoch_said(book, epoch)
    where = f" in epoch {meant!r}" if meant else ""
    said = f"of ε = {_text(book.budget)} is left to this user{where}"
    _print_amount("left", _text(book.left(user_said(user), meant)), said, {"epoch": meant}, as_json)


@ledger_app.command("total")
def total(ledger: LedgerFile, user: User, as_json: AsJson = False) -> None:
    """How much epsilon one user has spent in all epochs together.

    \b
    Examples:
      sottovoce ledger total budget.db member-0001
    """
    said = "is what this user has spent, all epochs together"
    _print_amount("total", _text(Ledger.open(ledger).total(user_said(user))), said, {}, as_json)


@ledger_app.command("grant")
def grant(
    ledger: LedgerFile,
    user: User,
    more: Annotated[str, typer.Argument(help="Epsilon to add, such as 1 or 0.5.", show_default=False)],
    epoch: Epoch = None,
) -> None:
    """Allow one user more epsilon in one epoch; their next release there is a new one.

    \b
    Examples:
      sottovoce ledger grant budget.db member-0001 1 --epoch 2026-11
    """
    book = Ledger.open(ledger)
    user, meant = user_said(user), epoch_said(book, epoch)
    book.grant(user, more, meant)
    print_note(f"granted; ε = {_text(book.left(user, meant))} is left to this user")


def user_said(user: str) -> str:
    """The user that is meant; what stands on standard input must be one name."""
    if user != "-":
        return user
    given = b"" if sys.stdin is None else sys.stdin.buffer.read()
    return given.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def epoch_said(book: Ledger, epoch: str | None) -> str:
    """The epoch that is meant; an empty one is an unset variable more often than a wish."""
    if epoch is not None and not epoch.strip():
        raise ParameterError("--epoch is empty: leave it out, or name a period such as 2026-11")
    return book.epoch_meant(epoch)


def _text(amount: Fraction) -> str:
    """A budget as a decimal number, exactly."""
    return epsilon_text(int(amount * MICRO))


def _print_amount(what: str, amount: str, said: str, more: dict[str, str], as_json: bool) -> None:
    """The number alone on standard output, for programs, and beside it what it is."""
    if as_json:
        print_json({what: amount, **more})
    else:
        console.print(amount, highlight=False)
        print_note(f"ε = {amount} {said}")
