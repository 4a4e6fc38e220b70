"""The command release: one private category per user, written as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..release.file import MechanismFile, Policy, load_mechanisms
from ..release.ledger import Ledger
from ..releasing import release_file
from ..tables import files
from . import options
from .app import Command, as_typed, signals
from .options import PATH, Columns, epoch_option, option
from .terminal import plain, print_note, print_text, step


@click.command("release", cls=Command)
@options.mechanism_argument
@options.path_argument("table", metavar="USERS")
@options.private_columns
@options.column("--by", "Group, for a file of groups. Its values are published in clear.")
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
@option("--max-epsilon", type=float, panel="Budget", help="Refuse a mechanism with a larger epsilon.")
@option(
    "--max-learned-epsilon", type=float, panel="Budget",
    help="Refuse a prior that was learned from reports at a larger epsilon, or does not state it.",
)  # fmt: skip
@option("--digest", panel="Budget", help="Refuse any file but the one with this digest (see design -o).")
@option(
    "--provenance", default="public", type=click.Choice(("public", "users")), panel="Budget",
    help="Accepted provenance of the prior; users: also one made from its users, for an experiment.",
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
    user: str,
    item: str,
    weight: str | None,
    read: tuple[str, ...],
    by: str | None,
    unknown: str,
    unknown_groups: str,
    several_groups: str,
    max_epsilon: float | None,
    max_learned_epsilon: float | None,
    digest: str | None,
    provenance: str,
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
    columns = Columns(item=item, user=user, weight=weight, by=by, read=read)
    choices = ("prior", "error", "drop")
    misfits = options.reading_options(unknown, unknown_groups, several_groups, choices=choices)
    policy = Policy(
        max_epsilon="any" if max_epsilon is None else max_epsilon,
        provenance=provenance,
        digest=digest,
        max_learned_epsilon=max_learned_epsilon,
    )
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
