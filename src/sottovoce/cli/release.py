"""The command release: it parses, checks, charges, draws and writes; no mathematics here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import _naming
from ..errors import ParameterError, SottovoceError, TableError
from ..prior import FROM_USERS
from ..release.file import MechanismFile, load_mechanisms
from ..release.ledger import Ledger, Receipt
from ..releasing import BATCH, SAMPLE, several_samples
from ..tables import files
from ..tables.files import at_hand
from ..tables.users import have_integer_names, read_user_groups
from .app import Command
from .interruption import Interruptions
from .ledger import epoch_option, given_epoch
from .options import (
    PATH,
    force_option,
    item_option,
    mechanism_argument,
    option,
    path_argument,
    policy,
    policy_options,
    provenance_option,
    read_option,
    reading_options,
    readings,
    unknown_groups_option,
    user_option,
    weight_option,
)
from .released_rows import ReleasedRows
from .terminal import INTERRUPTED, plain, print_interruption, print_note, reading_of, step


@click.command("release", cls=Command)
@mechanism_argument
@path_argument("table", metavar="USERS")
@user_option
@item_option
@weight_option
@option(
    "--by", metavar="COLUMN", panel="Columns",
    help="Group, for a file of groups. Its values are published in clear.",
)  # fmt: skip
@read_option
@option(
    "--unknown", default="prior", metavar="WHAT", panel="Users",
    help="Items that are no category: prior (they count for nothing, and every user gets a row), error, "
    "drop, or as=NAME. All but prior reveal what users have.",
)  # fmt: skip
@unknown_groups_option
@option(
    "--several-groups", default="error", type=click.Choice(("error", "allow")), panel="Users",
    help="Users with several groups; allow publishes the set of them.",
)  # fmt: skip
@policy_options
@option(
    "--ledger", type=PATH, panel="Budget", help="Charge every user here first; see sottovoce ledger create."
)
@epoch_option
@option(
    "--exhausted", default="error", type=click.Choice(("error", "skip")), panel="Budget",
    help="Users with too little budget left.",
)  # fmt: skip
@provenance_option
@option(
    "--output", "-o", type=PATH, required=True, panel="Output",
    help="Where to write (.csv, .parquet or .json), whole or not at all.",
)  # fmt: skip
@force_option
def command(
    mechanism_file: Path,
    table: Path,
    user: str,
    item: str,
    weight: str | None,
    by: str | None,
    read: tuple[str, ...],
    unknown: str,
    unknown_groups: str,
    several_groups: str,
    max_epsilon: float | None,
    digest: str | None,
    ledger: Path | None,
    epoch: str | None,
    exhausted: str,
    provenance: str,
    output: Path,
    force: bool,
) -> None:
    """Release one private category per user, in exact arithmetic, from the operating system's randomness.

    USERS are private histories: a row per user and item. Everything is checked before anybody is charged:
    what is refused has cost nothing. A mechanism with several samples writes a row for each of them, numbered
    in the column sample.

    \b
    Examples:
      sottovoce release mechanism.json members.csv -o reports.csv --by group \\
          --max-epsilon 2
      sottovoce ledger create budget.db --budget 4
      sottovoce release mechanism.json members.csv -o reports.parquet \\
          --by group --ledger budget.db --epoch 2026-11
    """
    files.check_writable(output, mechanism_file, table, force=force)
    if max_epsilon is None and digest is None and ledger is None:
        raise ParameterError(
            "how much ε may be spent? The file alone must not decide that: pass --max-epsilon, --digest of a "
            "file you know, or --ledger with a budget"
        )
    (reading,) = readings(read, table)
    wide = reading.wide
    loaded = load_mechanisms(mechanism_file, policy=policy(max_epsilon, digest, provenance))
    by = released_column(by, loaded, pinned=digest is not None)
    if by is not None:
        _naming.group_column(by, user, weight, None if wide else item)
    numbered = [SAMPLE] if several_samples(loaded.mechanisms) else []
    names = [user, item, "epsilon", "mechanism", *numbered, *([by] if by else [])]
    if len(set(names)) < len(names):
        more = f", nor {SAMPLE} with several samples" if numbered else ""
        raise ParameterError(
            f"--user, --item and --by must differ, and not be named epsilon or mechanism{more}"
        )
    if ledger is None and (epoch is not None or exhausted != "error"):
        raise ParameterError("--epoch and --exhausted need --ledger")
    book = None if ledger is None else Ledger.open(ledger)
    if book is not None:
        epoch = given_epoch(book, epoch)  # before the table is read
        files.check_writable(output, book.path, book.witness, force=True)
    options = reading_options(
        unknown, "prior", "error", "drop",
        empty="skip", unknown_groups=unknown_groups, several_groups=several_groups,
    )  # fmt: skip
    with reading_of(table), at_hand(table) as path:
        groups, how = read_user_groups(
            path,
            loaded.mechanisms,
            user=user,
            item=item,
            weight=weight,
            by=by,
            wide=wide,
            options=options,
            dialect=reading.dialect,
        )
        everybody = (name for users in groups.values() for name in users.ids)
        whole_names = have_integer_names(path, user, everybody, reading.dialect)
    print_note(f"{table.name}: {how}.")
    if any(loaded.mechanisms[group].prior_from_users for group in groups):
        print_note(FROM_USERS)
    if by is not None:
        print_note(f"The group of every user, column {plain(by)!r}, is published in clear.")
    rows = ReleasedRows(loaded.mechanisms, groups, (user, by, item), whole_names=whole_names)
    if book is None:
        print_note("No ledger: nothing stops a second release of the same users, and their ε adds up.")
        _run(rows, output, force)
    else:
        _run(rows, output, force, book=book, epoch=epoch, exhausted=exhausted)


def released_column(by: str | None, loaded: MechanismFile, *, pinned: bool) -> str | None:
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


def _run(work: ReleasedRows, output: Path, force: bool, **charging: Any) -> None:
    """Charge, draw and write; whatever stops it, the last line says what it has cost."""
    with Interruptions() as interruptions:
        try:
            _draw(work, interruptions, **charging)
            with step("writing", _named(output)), interruptions.held_back():
                files.write_columns(work.table(), output, replace=force)
                work.written = True
        except KeyboardInterrupt:
            interruptions.ignore()  # a second one must not take the last line away
            done = f"nothing was written, {work.spent()}"
            if work.written:
                done = f"{work.count:,} releases had been written into {output} already"
            print_interruption(f"interrupted: {done}")
            raise SystemExit(INTERRUPTED) from None
        except FileExistsError:
            raise TableError(f"{output} is there already, since a moment ago; {work.spent()}") from None
        except OSError as problem:
            raise TableError(f"{output} cannot be written: {problem.strerror}; {work.spent()}") from None
        except SottovoceError as problem:
            if work.receipt is None:
                raise
            raise type(problem)(f"{problem}; {work.spent()}") from None
    print_note(
        f"{work.count:,} releases, {work.each()} for each user and group, {work.epsilons()} each, into "
        f"{_named(output)}"
    )


def _named(output: Path) -> str:
    return "standard output" if files.is_standard(output) else str(output)


def _draw(
    work: ReleasedRows,
    interruptions: Interruptions,
    book: Ledger | None = None,
    epoch: str = "",
    exhausted: str = "error",
) -> None:
    """Fill the rows, batch by batch; with a ledger everybody is charged first, in one commit."""
    asked = {} if book is None else work.requests()
    kept = {name: np.arange(len(users)) for name, users in work.groups.items()}
    if book is not None:
        if not book.knows(epoch):
            shown = f"epoch {epoch!r}" if epoch else "the epoch without a name"
            within = "" if book.lifetime is None else ", as far as the lifetime allows"
            print_note(f"{shown} is new to this ledger: everybody has the whole budget in it{within}.")
        everybody = sum(map(len, kept.values()))
        with (
            step("charging", f"{everybody:,} releases"),
            interruptions.held_back(),
        ):
            work.receipt = book.charge(list(asked.values()), epoch=epoch, exhausted=exhausted)
        kept = dict(zip(asked, work.receipt.kept, strict=True))
        print_note(_said(work.receipt))
    with step("releasing", total=sum(map(len, kept.values())), unit="releases") as going:
        for name, places in kept.items():
            users = work.groups[name]
            for begin in range(0, len(places), BATCH):
                part = places[begin : begin + BATCH]
                answers = (
                    work.mechanisms[name].release_many(users.p[part])
                    if book is None
                    else book.answers(asked[name], epoch, part)
                )
                work.add(name, [users.ids[i] for i in part.tolist()], list(answers))
                going.advance(len(part))


def _said(receipt: Receipt) -> str:
    """What was charged, repeated and left out, in words."""
    words = f"{receipt.charged:,} releases charged, {receipt.repeated:,} repeated as they were at no cost"
    if receipt.left_out:
        words += f", {receipt.left_out:,} left out: their users have too little budget left"
    return words + "."
