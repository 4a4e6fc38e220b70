"""The command ledger: create and read a ledger, and allow one user more."""

from __future__ import annotations

import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..release.ledger import MICRO, Ledger, epsilon_text
from .app import Command
from .options import PATH, epoch_option, json_option, option, path_argument
from .terminal import console, print_facts, print_json, print_note, print_table, shown_text

ledger_argument = path_argument("ledger", metavar="LEDGER")


def _user_of(_context: click.Context, _argument: click.Parameter, user: str | None) -> str | None:
    """The user; for - the one name on standard input."""
    if user != "-":
        return user
    given = b"" if sys.stdin is None else sys.stdin.buffer.read()
    return given.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


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
