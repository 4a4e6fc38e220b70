"""The command release: it parses, and calls `release_file`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from .. import _naming
from ..errors import ParameterError
from ..release.file import MechanismFile, Policy, load_mechanisms
from ..release.ledger import Ledger
from ..releasing import Interrupted, release_file
from ..tables import files
from ..tables.users import ReadingOptions
from . import options
from .app import Command, Interruptions
from .ledger import epoch_option, given_epoch
from .options import PATH, Columns, option
from .terminal import plain, print_interruption, print_note, step


@click.command("release", cls=Command)
@options.mechanism_argument
@options.path_argument("table", metavar="USERS")
@options.private_columns
@options.column("--by", "Group, for a file of groups. Its values are published in clear.")
@options.packed(partial(options.reading_options, choices=("prior", "error", "drop")), "misfits")
@option(
    "--unknown", default="prior", metavar="WHAT", panel="Users",
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
@options.policy_options
@option(
    "--ledger", type=PATH, panel="Budget", help="Charge every user here first; see sottovoce ledger create."
)
@epoch_option
@option(
    "--exhausted", default="error", type=click.Choice(("error", "skip")), panel="Budget",
    help="Users with too little budget left.",
)  # fmt: skip
@option(
    "--output", "-o", type=PATH, required=True, panel="Output",
    help="Where to write (.csv, .parquet or .json), whole or not at all.",
)  # fmt: skip
@option(
    "--exact", is_flag=True, panel="Output",
    help="Draw every user alone, by the code that the proofs are about: slower, and the same law.",
)  # fmt: skip
@options.force_option
def command(
    mechanism_file: Path,
    table: Path,
    columns: Columns,
    misfits: ReadingOptions,
    policy: Policy,
    ledger: Path | None,
    epoch: str | None,
    exhausted: str,
    output: Path,
    exact: bool,
    force: bool,
) -> None:
    """Release one private category per user, in exact arithmetic, from the operating system's randomness.

    USERS are private histories: a row per user and item. Everything is checked before anybody is charged:
    what is refused has cost nothing.

    \b
    Examples:
      sottovoce release mechanism.json members.csv -o reports.csv --by group \\
          --max-epsilon 2
      sottovoce ledger create budget.db --budget 4
      sottovoce release mechanism.json members.csv -o reports.parquet \\
          --by group --ledger budget.db --epoch 2026-11
    """
    files.check_writable(output, mechanism_file, table, force=force)
    if policy.max_epsilon == "any" and policy.digest is None and ledger is None:
        raise ParameterError(
            "how much ε may be spent? The file alone must not decide that: pass --max-epsilon, --digest of a "
            "file you know, or --ledger with a budget"
        )
    (reading,) = options.readings(columns.read, table)
    loaded = load_mechanisms(mechanism_file, policy=policy)
    by = _released_column(columns.by, loaded, pinned=policy.digest is not None)
    if by is not None:
        _naming.group_column(by, columns.user, columns.weight, None if reading.wide else columns.item)
    if ledger is None and (epoch is not None or exhausted != "error"):
        raise ParameterError("--epoch and --exhausted need --ledger")
    book = None if ledger is None else Ledger.open(ledger)
    signals = Interruptions()
    try:
        release_file(
            loaded.mechanisms,
            table,
            output,
            **columns.private,
            by=by,
            wide=reading.wide,
            options=misfits,
            dialect=reading.dialect,
            ledger=book,
            epoch=None if book is None else given_epoch(book, epoch),
            exhausted=exhausted,
            exact=exact,
            force=force,
            progress=step,
            note=lambda text: print_note(plain(text)),
            signals=lambda: signals,
        )
    except Interrupted as stopped:
        print_interruption(f"interrupted: {stopped}")
        raise SystemExit(128 + signals.number) from None


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
    return loaded.by if by is None else _naming.group_column(by)
