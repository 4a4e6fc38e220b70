"""Users from tables of histories: one distribution per user, and what becomes of what does not fit.

users = read_users(histories, user="member", item="genre", by="age", prior=prior)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Required, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from .. import _validate
from ..errors import ParameterError, TableError, UserDataError
from ..groups import Groups
from ..users import Users
from . import tally
from .files import DETECTED, Dialect, at_hand, prefix_errors
from .priors import amount_column, counted, left_unread
from .query import Cells, Columns, opened, ordered_cells, require
from .tally import Categories, Tally


class ReadingKeywords(TypedDict, total=False):
    """The keyword arguments that become `ReadingOptions`."""

    unknown: str
    other: str
    empty: str
    unknown_groups: str
    several_groups: str
    minimum_rows: int


class UserKeywords(ReadingKeywords, total=False):
    """The keyword arguments of `read_users` for a table that is not counted yet."""

    user: Required[str]
    item: Required[str | Sequence[str]]
    weight: str | None
    dialect: Dialect | None


@dataclass(frozen=True)
class ReadingOptions:
    """What to do with items, users and groups that do not fit: see `read_users`."""

    unknown: str = "error"
    other: str = "other"
    empty: str = "error"
    unknown_groups: str = "error"
    several_groups: str = "error"
    minimum_rows: int = 0

    def __post_init__(self) -> None:
        _validate.one_of(("error", "drop", "other", "prior"), unknown=self.unknown)
        _validate.one_of(("error", "skip"), empty=self.empty)
        _validate.one_of(("error", "drop"), unknown_groups=self.unknown_groups)
        _validate.one_of(("error", "allow"), several_groups=self.several_groups)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)

    @property
    def lenient(self) -> bool:
        """Whether a row without an item or an amount counts for nothing."""
        return self.unknown == "prior"


REFUSE_ALL = ReadingOptions()
ByGroup: TypeAlias = Mapping[str, Categories]
Known: TypeAlias = Categories | ByGroup


@overload
def read_users(
    table: Tally, *, prior: Known, **options: Unpack[ReadingKeywords]
) -> Users | dict[str, Users]: ...


@overload
def read_users(
    table: Any, *, prior: Categories, by: None = None, **options: Unpack[UserKeywords]
) -> Users: ...


@overload
def read_users(table: Any, *, prior: Known, by: str, **options: Unpack[UserKeywords]) -> dict[str, Users]: ...


def read_users(
    table: Any,
    *,
    prior: Known,
    user: str | None = None,
    item: str | Sequence[str] | None = None,
    weight: str | None = None,
    by: str | None = None,
    dialect: Dialect | None = None,
    **options: Any,
) -> Users | dict[str, Users]:
    """Turn a table of histories into one distribution per user; with `by`, per group and user.

    Parameters
        table, user, item, weight, by: as for `build_prior`; long tables have a row per user and record.
        prior: whose categories count: a prior or a mechanism, or with `by` one per group.
        unknown: what to do with items the prior does not know: "error", "drop", count them as "other", the
            category `other` of the prior (of each group's), or "prior", as releases do: they count for
            nothing, like rows without an item or an amount, and a user without records has an empty row,
            which a mechanism releases as the public. With the others, who is refused or left out tells what
            the user has: they are for data that you may look at.
        empty: what to do with users who have no usable record: "error" or "skip".
        unknown_groups: what to do with groups that have no prior: "error" or "drop".
        several_groups: what to do with users who have rows in more than one group: "error", or "allow" them
            to count once in each. Who releases publishes the group of every user, and so the set of them.
        minimum_rows: leave out users with fewer rows in the whole table.
        dialect: how a file is written, where that is not to be found by looking.

    Raises
        TableError: a column is missing or malformed.
        UserDataError: unknown items, negative weights, a user without mass. How many, never which.

    >>> import polars
    >>> import sottovoce as sv
    >>> frame = polars.DataFrame({"who": ["ann", "ann", "bob"], "genre": ["War", "Drama", "War"]})
    >>> prior = sv.Prior(["War", "Drama"], [0.5, 0.5])
    >>> read_users(frame, user="who", item="genre", prior=prior).p.toarray().tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    chosen = ReadingOptions(**options)
    cells = counted(table, dialect, lenient=chosen.lenient, item=item, weight=weight, by=by, user=user)
    if cells.users is None:
        raise ParameterError("read_users needs the column of the user: user=")
    if isinstance(prior, Mapping) and cells.by is None:
        raise ParameterError("a prior per group needs the group column: by=")
    known = prior if isinstance(prior, Mapping) else dict.fromkeys(cells.groups, prior)
    return Groups(users_of_tally(cells, known, chosen), cells.by).returned


def users_of_tally(cells: Tally, known: ByGroup, options: ReadingOptions) -> dict[str, Users]:
    """The users of every group of a counted table; what does not fit is refused."""
    cells = tally.with_minimum_rows(cells, options.minimum_rows)
    check_filled(cells.filled, known, cells.by, options)
    check_one_group(tally.in_several_groups(cells), cells.people, cells.by, options.several_groups)
    left = LeftOut()
    users = left.read(cells, known, options)
    left.check(options)
    return users


def check_filled(filled: Iterable[str], known: ByGroup, by: str | None, options: ReadingOptions) -> None:
    """Refuse groups that do not fit, before any user is read."""
    tally.check_groups(list(filled), known, options.unknown_groups)
    if options.unknown == "other":
        for name in filled:
            if name in known:
                tally.other_category(known[name], options.other, name if by is not None else None)


def check_one_group(several: int, people: int, by: str | None, several_groups: str) -> None:
    """Refuse users in several groups: the set of their groups would be published."""
    if several and several_groups == "error":
        raise UserDataError(
            f"{several} of {people} users have more than one value in column {by!r}: a user has one group, "
            f"because the set of a user's groups tells about the user; take a column that is the same in all "
            f"rows of a user, or pass several_groups='allow' (--several-groups allow)"
        )


def users_by_group(cells: Tally, known: ByGroup, options: ReadingOptions) -> dict[str, Users]:
    """The users of every group of a tally that has rows and is known."""
    return {
        name: tally.users_of(cells, g, known[name], unknown=options.unknown, other=options.other)
        for name, g in cells.filled.items()
        if name in known
    }


@dataclass
class LeftOut:
    """What did not fit, added up over batches of users: how many, never which."""

    rows: int = 0
    people: int = 0  # users that are read
    dropped: int = 0  # rows without a category
    refused: int = 0  # users without a usable record
    moved: int = 0  # rows that count as another category
    groups: int = 0  # groups without a prior
    items: set[int] = field(default_factory=set)
    same_kind: bool = True

    def read(self, cells: Tally, known: ByGroup, options: ReadingOptions) -> dict[str, Users]:
        """The users of a batch by group; its numbers are added."""
        users = users_by_group(cells, known, options)
        self.rows += int(cells.rows.sum())
        for name, group in users.items():
            self.people += len(group)
            self.dropped += group.dropped
            self.refused += group.refused
            self.moved += group.moved
            if group.dropped and options.unknown == "error":
                position = tally.positions_of(cells, cells.filled[name], known[name])
                self.items.update(np.flatnonzero(position == -1).tolist())
        self.same_kind = type(cells.items[0]) is type(next(iter(known.values())).categories[0])
        return users

    def check(self, options: ReadingOptions) -> None:
        """Refuse unknown items and users with nothing left, unless they may be left out."""
        if self.dropped and options.unknown == "error":
            different = f", with {len(self.items)} different items" if self.items else ""
            advice = (
                "count them as a category of the prior (--unknown as=NAME; unknown='other', other=NAME), "
                "leave them out (--unknown drop), or add them to the prior"
            )
            if self.dropped > 0.9 * self.rows:
                advice = "nearly none is a category: is it the right column (item=, --item)?"
            raise UserDataError(
                f"items must be categories of the prior: {self.dropped} of {self.rows} rows do not name one"
                f"{different}; {advice if self.same_kind else 'one side has text, the other integers'}"
            )
        if self.refused and options.empty == "error":
            raise UserDataError(
                f"{self.refused} of {self.refused + self.people} users have no usable record; leave them out "
                f"with empty='skip' (--unknown drop)"
            )

    def summary(self, options: ReadingOptions) -> str:
        """What happened to rows and users that are not there as they were."""
        nothing = "count for nothing" if options.lenient else "dropped"
        numbers = {
            "groups without a prior left out": self.groups,
            f"rows with unknown items {nothing}": self.dropped,
            f"rows with unknown items counted as {options.other}": self.moved,
            "users with no usable record left out": self.refused,
        }
        return "".join(f"; {number:,} {text}" for text, number in numbers.items() if number)


# --- from files ---

AMOUNTS = ("weight", "count")  # default names of their column, in any case of letters
BATCH_ROWS = 1_000_000
"""Rows of a file that are held in memory at a time where users are read in batches."""


@dataclass(frozen=True)
class CheckedUsers:
    """The users of an open file, all of them checked; iterating gives them by group, batch by batch."""

    cells: Cells
    known: ByGroup
    options: ReadingOptions
    left: LeftOut
    how: str
    rows: int | None  # of a batch; None is one batch

    def __iter__(self) -> Iterator[dict[str, Users]]:
        return (users_by_group(batch, self.known, self.options) for batch in self.cells.batches(self.rows))


def read_user_groups(path: str | Path, known: ByGroup, **settings: Any) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how it was counted; see `checked_users`."""
    with checked_users(path, known, held=True, **settings) as users:
        return next(iter(users)), users.how


@contextmanager
def checked_users(
    path: str | Path,
    known: ByGroup,
    *,
    options: ReadingOptions = REFUSE_ALL,
    dialect: Dialect = DETECTED,
    held: bool = False,
    **columns: Any,
) -> Iterator[CheckedUsers]:
    """The users of a file of histories, checked in batches; then they are read again, with `held` at once.

    `columns` are those of `private_columns`.
    """
    if options.minimum_rows > 1:
        raise ParameterError("minimum_rows needs all users in memory: pass it to read_users")
    with ExitStack() as stack:
        path = stack.enter_context(at_hand(path))
        with prefix_errors(path):
            source = stack.enter_context(opened(path, dialect))
            read, how = private_columns(list(source.types), lenient=options.lenient, **columns)
            cells = ordered_cells(source, read)
            left = _checked(cells, known, options)
        how += left_unread(source, read) + left.summary(options)
        yield CheckedUsers(cells, known, options, left, how, None if held else BATCH_ROWS)


def _checked(cells: Cells, known: ByGroup, options: ReadingOptions) -> LeftOut:
    """Refuse what does not fit, batch by batch, and count what is left out."""
    by = cells.columns.by
    check_filled(cells.groups, known, by, options)
    check_one_group(cells.in_several_groups(), cells.users, by, options.several_groups)
    left = LeftOut(groups=len(set(cells.groups) - set(known)))
    for batch in cells.batches(BATCH_ROWS, named=False):
        left.read(batch, known, options)
    left.check(options)
    if not left.people:
        raise TableError("no user has a usable record")
    return left


def private_columns(
    present: Sequence[str],
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
    wide: bool = False,
    lenient: bool = False,
) -> tuple[Columns, str]:
    """The columns of a file of histories (`wide`: one per category), and where its amounts are, in words."""
    if wide:
        require([name for name in (user, by) if name is not None], present)
        items = tuple(name for name in present if name not in (user, by))
        return Columns(items, user, None, by, None, lenient), f"a wide table of {len(items)} categories"
    amount = amount_column(present, weight, AMOUNTS)
    how = f"weights from column {amount!r}" if amount else "every row counts once"
    return Columns(item, user, amount, by, None, lenient), how
