"""Users from tables of histories: one distribution per user, and what becomes of what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Required, TypeAlias, TypedDict, Unpack, overload

from .. import checks
from ..errors import ParameterError, Setting, TableError, UserDataError
from ..groups import Groups
from ..records import Categories, Users
from . import tally
from .files import JSONS, Dialect, at_hand, kind_of, prefix_errors
from .reader import Cells, Columns, amount_column, left_unread, opened, ordered_cells
from .tally import Tally


class ReadingKeywords(TypedDict, total=False):
    """The keyword arguments that become `ReadingOptions`."""

    unknown: str
    other: str
    empty: str
    unknown_groups: str
    several_groups: str


class UserKeywords(ReadingKeywords, total=False):
    """The keyword arguments of `read_users`."""

    user: Required[str]
    item: Required[str]
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

    def __post_init__(self) -> None:
        checks.one_of(("error", "drop", "other", "prior"), unknown=self.unknown)
        checks.one_of(("error", "skip"), empty=self.empty)
        checks.one_of(("error", "drop"), unknown_groups=self.unknown_groups)
        checks.one_of(("error", "allow"), several_groups=self.several_groups)


REFUSE_ALL = ReadingOptions()
ByGroup: TypeAlias = Mapping[str, Categories]
Known: TypeAlias = "Categories | ByGroup"


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
    user: str,
    item: str,
    weight: str | None = None,
    by: str | None = None,
    dialect: Dialect | None = None,
    **options: Any,
) -> Users | dict[str, Users]:
    """Turn a table of histories, a row per user and record, into one distribution per user (and group).

    Parameters
        table, user, item, weight, by, dialect: as for `build_prior`.
        prior: whose categories count: a prior or a mechanism, or with `by` one per group.
        unknown: what to do with items the prior does not know: "error", "drop", count them as "other", the
            category `other` of the prior (of each group's), or "prior", as releases do: they count for
            nothing, like rows without an item or an amount, and a user without records has an empty row.
            With the others, who is refused or left out tells what the user has.
        empty: what to do with users who have no usable record: "error" or "skip".
        unknown_groups: what to do with groups that have no prior: "error" or "drop".
        several_groups: what to do with users who have rows in more than one group: "error", or "allow" them
            to count once in each. Who releases publishes the group of every user, and so the set of them.

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
    if isinstance(prior, Mapping) and by is None:
        raise ParameterError("a prior per group needs the group column: by=")
    columns: dict[str, Any] = {"user": user, "item": item, "weight": weight, "by": by}
    settings: dict[str, Any] = {"options": ReadingOptions(**options), "dialect": dialect, "usual": ()}
    with checked_users(table, prior, held=True, **settings, **columns) as users:
        return Groups(next(users.batches), by).returned


def check_one_group(several: int, people: int, by: str | None, several_groups: str) -> None:
    """Refuse users in several groups: the set of their groups would be published."""
    if several and several_groups == "error":
        raise UserDataError(
            f"{several} of {people} users have more than one value in column {by!r}: a user has one group, "
            f"because the set of a user's groups tells about the user; take a column that is the same in all "
            f"rows of a user, or pass ",
            Setting("several_groups", "allow"),
        )


@dataclass
class LeftOut:
    """What did not fit, added up over batches of users: how many, never which."""

    rows: int = 0
    people: int = 0  # users that are read
    dropped: int = 0  # rows without a category
    refused: int = 0  # users without a usable record
    moved: int = 0  # rows that count as another category
    groups: int = 0  # groups without a prior
    same_kind: bool = True

    def read(self, cells: Tally, known: ByGroup, options: ReadingOptions) -> dict[str, Users]:
        """The users of a batch, of every group with rows that is known; its numbers are added."""
        users = {}
        self.rows += int(cells.rows.sum())
        for name, g in cells.filled.items():
            if name not in known:
                continue
            group = tally.users_of(cells, g, known[name], unknown=options.unknown, other=options.other)
            users[name] = group
            self.people += len(group)
            self.dropped += group.dropped
            self.refused += group.refused
            self.moved += group.moved
        self.same_kind = type(cells.items[0]) is type(next(iter(known.values())).categories[0])
        return users

    def check(self, options: ReadingOptions) -> None:
        """Refuse unknown items and users with nothing left, unless they may be left out."""
        if self.dropped and options.unknown == "error":
            advice: tuple[object, ...] = (
                "count them as a category of the prior (", Setting("other", "NAME"), "), leave them out (",
                Setting("unknown", "drop"), "), or add them to the prior",
            )  # fmt: skip
            if self.nearly_all_unknown:
                advice = ("nearly none is a category: is ", Setting("item"), " the right column?")
            if not self.same_kind:
                advice = ("one side has text, the other integers",)
            raise UserDataError(
                "items must be categories of the prior: ",
                f"{self.dropped} of {self.rows} rows do not name one; ",
                *advice,
            )
        if self.refused and options.empty == "error":
            raise UserDataError(
                f"{self.refused} of {self.refused + self.people} users have no usable record; skip them: ",
                Setting("empty", "skip"),
            )
        if not self.people:
            raise TableError("no user has a usable record")

    @property
    def nearly_all_unknown(self) -> bool:
        """Whether so few rows name a category that the column is probably the wrong one."""
        return self.dropped > 0.9 * self.rows

    def unknown_share(self) -> tuple[object, ...]:
        """How many rows count for nothing, as the parts of a message."""
        share = f"{self.dropped:,} of {self.rows:,} rows have no item of this mechanism and count for nothing"
        return (
            (share, ": is ", Setting("item"), " the right column?") if self.nearly_all_unknown else (share,)
        )

    def summary(self, options: ReadingOptions) -> str:
        """What happened to rows and users that are not there as they were."""
        numbers = {
            "groups without a prior left out": self.groups,
            "rows with unknown items dropped": 0 if options.unknown == "prior" else self.dropped,
            f"rows with unknown items counted as {options.other}": self.moved,
            "users with no usable record left out": self.refused,
        }
        return "".join(f"; {number:,} {text}" for text, number in numbers.items() if number)


AMOUNTS = ("weight", "count")  # default names of a file's column of amounts, in any case of letters
BATCH_ROWS = 1_000_000
"""Rows of a file that are held in memory at a time where users are read in batches."""


@dataclass(frozen=True)
class CheckedUsers:
    """The users of an open table, all of them checked."""

    cells: Cells
    left: LeftOut
    how: str
    batches: Iterator[dict[str, Users]]  # by group


def read_user_groups(path: str | Path, known: Known, **settings: Any) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how it was counted; see `checked_users`."""
    with checked_users(path, known, held=True, **settings) as users:
        return next(users.batches), users.how


@contextmanager
def checked_users(
    table: Any,
    known: Known,
    *,
    options: ReadingOptions = REFUSE_ALL,
    dialect: Dialect | None = None,
    held: bool = False,
    usual: Sequence[str] = AMOUNTS,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
) -> Iterator[CheckedUsers]:
    """The users of a table of histories, checked in batches and then read again, or `held` in memory.

    Without `weight` the first column with a name in `usual` has the amounts; not in JSON, whose records bring
    their own names.
    """
    with ExitStack() as stack:
        table = stack.enter_context(at_hand(table))
        if isinstance(table, Path) and kind_of(table) in JSONS:
            # One record of one person could add a column of amounts, or one with the name `none`.
            usual, weight = (), None if weight == "none" else weight
        columns = Columns(
            item, user, weight, by, lenient=options.unknown == "prior", **_about_categories(known)
        )
        with prefix_errors(table):
            source = stack.enter_context(opened(table, dialect, columns))
            columns = replace(columns, weight=amount_column(list(source.types), weight, usual))
            cells = ordered_cells(source, columns)
            by_group = known if isinstance(known, Mapping) else dict.fromkeys(cells.groups, known)
            left, batches = _checked(cells, by_group, options, held)
            how = f"weights from column {columns.weight!r}" if columns.weight else "every row counts once"
            how += left_unread(source, columns) + left.summary(options)
        yield CheckedUsers(cells, left, how, batches)


def _about_categories(known: Known) -> dict[str, Any]:
    """What tells that an item is none of the categories, before it is read."""
    each = list(known.values()) if isinstance(known, Mapping) else [known]
    longest = max((len(str(name)) for one in each for name in one.categories), default=0)
    integers = any(isinstance(one.categories[0], int) for one in each)
    return {"longest": longest, "integers": integers}


def _checked(
    cells: Cells, known: ByGroup, options: ReadingOptions, held: bool
) -> tuple[LeftOut, Iterator[dict[str, Users]]]:
    """Refuse what does not fit, and count what is left out; with the users, read anew unless held."""
    by = cells.columns.by
    tally.check_groups(cells.groups, known, options.unknown_groups)
    for name in cells.groups:
        if options.unknown == "other" and name in known:
            tally.other_category(known[name], options.other, name if by is not None else None)
    check_one_group(cells.in_several_groups(), cells.users, by, options.several_groups)
    left = LeftOut(groups=len(set(cells.groups) - set(known)))
    for batch in cells.batches(None if held else BATCH_ROWS, named=held):
        users = left.read(batch, known, options)
    left.check(options)
    again = (LeftOut().read(batch, known, options) for batch in cells.batches(BATCH_ROWS))
    return left, iter([users]) if held else again
