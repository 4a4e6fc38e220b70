"""Users from tables of histories: one distribution per user, and what becomes of what does not fit.

users = read_users(histories, user="member", item="genre", by="age", prior=prior)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
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
from .query import Cells, Columns, Source, no_column, opened, ordered_cells
from .tally import Categories, Tally


class ReadingKeywords(TypedDict, total=False):
    """The keyword arguments that become `ReadingOptions`."""

    unknown: str
    other: str
    empty: str
    unknown_groups: str
    several_groups: str
    minimum_rows: int


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


class FileColumns(TypedDict, total=False):
    """The columns of a file of histories: `wide` means one column per category."""

    user: str
    item: str
    weight: str | None
    by: str | None
    wide: bool


REFUSE_ALL = ReadingOptions()
"""Whatever does not fit is an error."""


class UserKeywords(ReadingKeywords, total=False):
    """The keyword arguments of `read_users` for a table that is not counted yet."""

    user: Required[str]
    item: Required[str | Sequence[str]]
    weight: str | None
    dialect: Dialect | None


Known: TypeAlias = Categories | Mapping[str, Categories]


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


@overload
def read_users(
    table: Any, *, prior: Known, by: str | None, **options: Unpack[UserKeywords]
) -> Users | dict[str, Users]: ...


def read_users(
    table: Any,
    *,
    prior: Known,
    user: str | None = None,
    item: str | Sequence[str] | None = None,
    weight: str | None = None,
    by: str | None = None,
    unknown: str = "error",
    other: str = "other",
    empty: str = "error",
    unknown_groups: str = "error",
    several_groups: str = "error",
    minimum_rows: int = 0,
    dialect: Dialect | None = None,
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
    options = ReadingOptions(unknown, other, empty, unknown_groups, several_groups, minimum_rows)
    lenient = unknown == "prior"
    cells = counted(table, dialect, lenient=lenient, item=item, weight=weight, by=by, user=user)
    users = users_from(cells, prior, options)[0]
    return Groups(users, cells.by).returned


def users_from(cells: Tally, prior: Known, options: ReadingOptions) -> tuple[dict[str, Users], LeftOut]:
    """The users of a tally by group and what did not fit."""
    if cells.users is None:
        raise ParameterError("read_users needs the column of the user: user=")
    people, cells = cells.people, tally.with_minimum_rows(cells, options.minimum_rows)
    known = known_by_group(prior, cells.groups, cells.by)
    several = tally.in_several_groups(cells)
    check_filled(list(cells.filled), known, several, cells.people, cells.by, options)
    users = users_by_group(cells, known, options)
    left = LeftOut(without_rows=people - cells.people, groups=len(cells.filled) - len(users))
    left.add(cells, users, known, options)
    left.check(options)
    return users, left


def known_by_group(prior: Known, groups: Sequence[str], by: str | None) -> Mapping[str, Categories]:
    """What the users of each group are read against."""
    if not isinstance(prior, Mapping):
        return dict.fromkeys(groups, prior)
    if by is None:
        raise ParameterError("a prior per group needs the group column: by=")
    return prior


def check_filled(
    filled: Sequence[str],
    known: Mapping[str, Categories],
    several: int,
    people: int,
    by: str | None,
    options: ReadingOptions,
) -> None:
    """Refuse groups and users in groups that do not fit, before any user is read."""
    tally.check_groups(filled, known, options.unknown_groups)
    check_one_group(several, people, by, options.several_groups)
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


def users_by_group(
    cells: Tally, known: Mapping[str, Categories], options: ReadingOptions
) -> dict[str, Users]:
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
    without_rows: int = 0  # users with too few rows
    groups: int = 0  # groups without a prior
    items: set[int] = field(default_factory=set)
    same_kind: bool = True

    def add(
        self,
        cells: Tally,
        users: Mapping[str, Users],
        known: Mapping[str, Categories],
        options: ReadingOptions,
    ) -> None:
        """Add the numbers of a batch."""
        self.rows += int(cells.rows.sum())
        for name, group in users.items():
            self.people += len(group)
            self.dropped += group.dropped
            self.refused += group.refused
            self.moved += group.moved
            if group.dropped and options.unknown == "error":
                place = tally.positions_of(cells, cells.filled[name], known[name])
                self.items.update(np.flatnonzero(place == -1).tolist())
        self.same_kind = type(cells.items[0]) is type(next(iter(known.values())).categories[0])

    def check(self, options: ReadingOptions) -> None:
        """Refuse unknown items and users with nothing left, unless they may be left out."""
        if self.dropped and options.unknown == "error":
            different = f", with {len(self.items)} different items" if self.items else ""
            advice = (
                "count them as a category of the prior (--unknown as=NAME; unknown='other', other=NAME), "
                "leave them out (--unknown drop), or add them to the prior"
            )
            raise UserDataError(
                f"items must be categories of the prior: {self.dropped} of {self.rows} rows do not name one"
                f"{different}; {advice if self.same_kind else 'one side has text, the other integers'}"
            )
        if self.refused and options.empty == "error":
            raise UserDataError(
                f"{self.refused} of {self.refused + self.people} users have no usable record; leave them out "
                f"with empty='skip' (--empty skip)"
            )

    def summary(self, options: ReadingOptions) -> str:
        """What happened to rows and users that are not there as they were."""
        nothing = "count for nothing" if options.unknown == "prior" else "dropped"
        numbers = {
            "users with too few rows left out": self.without_rows,
            "groups without a prior left out": self.groups,
            f"rows with unknown items {nothing}": self.dropped,
            f"rows with unknown items counted as {options.other}": self.moved,
            "users with no usable record left out": self.refused,
        }
        return "".join(f"; {number:,} {text}" for text, number in numbers.items() if number)


AMOUNTS = ("weight", "count")
"""Default names of the column of amounts, in any case of letters."""
BATCH_ROWS = 1_000_000
"""Rows of a file that are held in memory at a time where users are read in batches."""


def read_user_groups(
    path: str | Path,
    known: Mapping[str, Categories],
    *,
    options: ReadingOptions = REFUSE_ALL,
    dialect: Dialect = DETECTED,
    **columns: Unpack[FileColumns],
) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how it was counted."""
    with checked_users(path, known, options=options, dialect=dialect, held=True, **columns) as users:
        return next(iter(users)), users.how


@dataclass(frozen=True)
class CheckedUsers:
    """The users of an open file, all of them checked; iterating gives them by group, batch by batch."""

    cells: Cells
    known: Mapping[str, Categories]
    options: ReadingOptions
    left: LeftOut
    how: str
    held: dict[str, Users] | None

    def __iter__(self) -> Iterator[dict[str, Users]]:
        if self.held is not None:
            return iter([self.held])
        batches = self.cells.batches(BATCH_ROWS)
        return (users_by_group(batch, self.known, self.options) for batch in batches)


@contextmanager
def checked_users(
    path: str | Path,
    known: Mapping[str, Categories],
    *,
    options: ReadingOptions = REFUSE_ALL,
    dialect: Dialect = DETECTED,
    held: bool = False,
    **columns: Unpack[FileColumns],
) -> Iterator[CheckedUsers]:
    """The users of a file of histories, all checked; with `held` in memory, else read again in batches."""
    with ExitStack() as stack:
        path = stack.enter_context(at_hand(path))
        with prefix_errors(path):
            source = stack.enter_context(opened(path, dialect))
            users = _checked(source, known, options, held or options.minimum_rows > 1, **columns)
        yield users


def _checked(
    source: Source,
    known: Mapping[str, Categories],
    options: ReadingOptions,
    held: bool,
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
    wide: bool = False,
) -> CheckedUsers:
    """Read and check the users of an open file."""
    items, column, how = private_columns(
        list(source.types), user=user, item=item, weight=weight, by=by, wide=wide
    )
    read = Columns(items, user, column, by, lenient=options.unknown == "prior")
    cells = ordered_cells(source, read)
    how += left_unread(source, read)
    users = None
    if held:
        users, left = users_from(next(cells.batches()), Groups(known, by).returned, options)
    else:
        check_filled(cells.groups, known, cells.in_several_groups(), cells.users, by, options)
        left = LeftOut(groups=len(set(cells.groups) - set(known)))
        for batch in cells.batches(BATCH_ROWS, named=False):
            left.add(batch, users_by_group(batch, known, options), known, options)
        left.check(options)
    if not left.people:
        raise TableError("no user has a usable record")
    return CheckedUsers(cells, known, options, left, how + left.summary(options), users)


def private_columns(
    columns: Sequence[str], *, user: str, item: str, weight: str | None, by: str | None, wide: bool
) -> tuple[str | tuple[str, ...], str | None, str]:
    """Which columns hold the items and the weights of a file of histories, and how that is told."""
    if wide:
        for name in (user, by):
            if name is not None and name not in columns:
                raise no_column(name, [name], columns)  # what is there may be somebody's row
        items = tuple(name for name in columns if name not in (user, by))
        return items, None, f"a wide table of {len(items)} categories"
    column = amount_column(columns, weight, AMOUNTS)
    return item, column, f"weights from column {column!r}" if column else "every row counts once"


def maker_like(frame: Any) -> Callable[[Mapping[str, Sequence[Any]]], Any]:
    """What makes a table of the same kind from columns; refused for anything that is no table in memory."""
    library = type(frame).__module__.split(".")[0]
    if library not in ("pandas", "polars", "pyarrow") or type(frame).__name__ not in ("DataFrame", "Table"):
        raise ParameterError(
            f"frame must be a pandas, polars or pyarrow table, got {type(frame).__name__}; for files there "
            f"is `sottovoce release`, for Spark sottovoce.spark.release"
        )
    module = import_module(library)
    make: Callable[[Mapping[str, Sequence[Any]]], Any] = (
        module.table if library == "pyarrow" else module.DataFrame
    )
    return make
