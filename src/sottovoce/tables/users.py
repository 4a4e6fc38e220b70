"""Users from tables of histories: one distribution per user, and what becomes of what does not fit.

users = read_users(histories, user="member", item="genre", by="age", prior=prior)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from .. import _validate
from ..errors import ParameterError, TableError
from ..users import Users
from . import tally
from .files import DETECTED, TEXTS, Dialect, at_hand, kind_of, prefix_errors
from .priors import amount_column, counted, left_unread
from .query import Columns, no_column, opened, quoted, tally_of
from .tally import Categories, Tally, filled_groups, people, with_minimum_rows


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


REFUSE_ALL = ReadingOptions()
"""Whatever does not fit is an error."""


def release_options(**options: Unpack[ReadingKeywords]) -> ReadingOptions:
    """The options of a release: by default every user gets a row, whatever the user has."""
    return ReadingOptions(**{"unknown": "prior", **options})  # type: ignore[arg-type]  # as they are named there


@overload
def read_users(
    table: Tally, *, prior: Categories | Mapping[str, Categories], **options: Unpack[ReadingKeywords]
) -> Users | dict[str, Users]: ...


@overload
def read_users(
    table: Any,
    *,
    prior: Categories,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: None = None,
    dialect: Dialect | None = None,
    **options: Unpack[ReadingKeywords],
) -> Users: ...


@overload
def read_users(
    table: Any,
    *,
    prior: Categories | Mapping[str, Categories],
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str,
    dialect: Dialect | None = None,
    **options: Unpack[ReadingKeywords],
) -> dict[str, Users]: ...


@overload
def read_users(
    table: Any,
    *,
    prior: Categories | Mapping[str, Categories],
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None,
    dialect: Dialect | None = None,
    **options: Unpack[ReadingKeywords],
) -> Users | dict[str, Users]: ...


def read_users(
    table: Any,
    *,
    prior: Categories | Mapping[str, Categories],
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
    return read_with(options, table, dialect, prior, item=item, weight=weight, by=by, user=user)


def read_with(
    options: ReadingOptions,
    table: Any,
    dialect: Dialect | None,
    prior: Categories | Mapping[str, Categories],
    **columns: Any,
) -> Users | dict[str, Users]:
    """What `read_users` does, with its options in one value."""
    cells = counted(table, dialect, lenient=options.unknown == "prior", **columns)
    found = users_from(cells, prior, options)
    return found if cells.by is not None else found["all"]


def users_from(
    cells: Tally, prior: Categories | Mapping[str, Categories], options: ReadingOptions
) -> dict[str, Users]:
    """The users of a tally by group; under "all" where there are no groups."""
    if cells.users is None:
        raise ParameterError("read_users needs the column of the user: user=")
    cells = tally.with_minimum_rows(cells, options.minimum_rows)
    if isinstance(prior, Mapping):
        if cells.by is None:
            raise ParameterError("a prior per group needs the group column: by=")
        known = prior
    else:
        known = dict.fromkeys(cells.groups, prior)
    filled = tally.filled_groups(cells)
    tally.check_groups(filled, known, options.unknown_groups)
    tally.check_one_group(
        tally.in_several_groups(cells), tally.people(cells), cells.by, options.several_groups
    )
    there = set(filled)
    if options.unknown == "other":
        for name in filled:
            if name in known:
                tally.other_category(known[name], options.other, name if cells.by is not None else None)
    found = {
        name: tally.users_of(cells, g, known[name], unknown=options.unknown, other=options.other)
        for g, name in enumerate(cells.groups)
        if name in known and name in there
    }
    dropped = sum(users.dropped for users in found.values())
    tally.check_left_out(
        dropped,
        sum(users.refused for users in found.values()),
        sum(map(len, found.values())),
        int(cells.rows.sum()),
        unknown=options.unknown,
        empty=options.empty,
        same_kind=type(cells.items[0]) is type(next(iter(known.values())).categories[0]),
        items=tally.unknown_items(cells, known) if dropped and options.unknown == "error" else None,
    )
    return found


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
AMOUNTS = ("weight", "count")
"""Default names of the column of amounts, in any case of letters."""


def read_user_groups(
    path: str | Path,
    known: Mapping[str, Categories],
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
    wide: bool = False,
    options: ReadingOptions = REFUSE_ALL,
    dialect: Dialect = DETECTED,
) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how it was counted."""
    with at_hand(path) as path, prefix_errors(path), opened(path, dialect) as source:
        present = list(source.types)
        items, column, how = private_columns(present, user=user, item=item, weight=weight, by=by, wide=wide)
        cells = tally_of(source, Columns(items, user, column, by, lenient=options.unknown == "prior"))
        how += left_unread(source, [user, by, None if wide else item])
        users = users_from(cells, known if by is not None else known["all"], options)
        if not any(len(group) for group in users.values()):
            raise TableError("no user has a usable record")
    return users, how + _left_out(cells, users, options)


def _left_out(cells: Tally, users: Mapping[str, Users], options: ReadingOptions) -> str:
    """What happened to rows and users that are not there as they were: said, never silent."""
    enough = with_minimum_rows(cells, options.minimum_rows)
    groups = filled_groups(enough)
    other = options.other.replace("{", "{{").replace("}", "}}")  # the text is formatted below
    nothing = "count for nothing" if options.unknown == "prior" else "dropped"
    numbers = {
        "{:,} users with too few rows left out": people(cells) - people(enough),
        "{:,} groups without a prior left out": len(groups) - len(users),
        f"{{:,}} rows with unknown items {nothing}": sum(one.dropped for one in users.values()),
        f"{{:,}} rows with unknown items counted as {other}": sum(one.moved for one in users.values()),
        "{:,} users with no usable record left out": sum(one.refused for one in users.values()),
    }
    return "".join(f"; {text.format(number)}" for text, number in numbers.items() if number)


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


def have_integer_names(path: Path, user: str, names: Iterable[object], dialect: Dialect) -> bool:
    """Whether users are named by integers where they come from, so that results can name them so.

    In a text table they are if every name is the usual text of an integer (not 007); else the column tells.
    """
    if not all(isinstance(name, str) and _INTEGER.fullmatch(name) for name in names):
        return False
    if kind_of(path) in TEXTS:
        return True
    with opened(path, dialect) as source:
        if source.types[user] != "JSON":
            return source.types[user] != "VARCHAR"
        ((text,),) = source.rows(f"SELECT count(*) FROM source WHERE json_type({quoted(user)}) = 'VARCHAR'")
        return not text


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
