"""From a table to priors and users: the two verbs most programs need.

    prior = build_prior(survey, item="genre", by="age")
    users = read_users(histories, user="member", item="genre", by="age", prior=prior)

Both take a dataframe, a path, or a tally that was counted before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, overload

from ..errors import ParameterError
from ..prior import Category, Prior
from ..users import Users
from . import tally
from .counted_priors import priors_of
from .dialect import FOUND, Dialect
from .frames import count_table
from .options import PriorKeywords, PriorOptions, ReadingKeywords, ReadingOptions
from .tally import Categories, Tally


@overload
def build_prior(
    table: Tally, *, public: bool | None = None, **options: Unpack[PriorKeywords]
) -> Prior | dict[str, Prior]: ...


@overload
def build_prior(
    table: Any,
    *,
    item: str | Sequence[str],
    weight: str | None = None,
    by: None = None,
    user: str | None = None,
    top_by: str | None = None,
    public: bool | None = None,
    dialect: Dialect | None = None,
    **options: Unpack[PriorKeywords],
) -> Prior: ...


@overload
def build_prior(
    table: Any,
    *,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str,
    user: str | None = None,
    top_by: str | None = None,
    public: bool | None = None,
    dialect: Dialect | None = None,
    **options: Unpack[PriorKeywords],
) -> dict[str, Prior]: ...


@overload
def build_prior(
    table: Any,
    *,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None,
    user: str | None = None,
    top_by: str | None = None,
    public: bool | None = None,
    dialect: Dialect | None = None,
    **options: Unpack[PriorKeywords],
) -> Prior | dict[str, Prior]: ...


def build_prior(
    table: Any,
    *,
    item: str | Sequence[str] | None = None,
    weight: str | None = None,
    by: str | None = None,
    user: str | None = None,
    smoothing: float = 0.0,
    top: int | None = None,
    top_by: str | None = None,
    other: str | None = None,
    minimum_rows: int = 0,
    minimum_users: int = 0,
    average: str = "rows",
    merge_rare: str | None = None,
    rare_below: float | None = None,
    public: bool | None = None,
    dialect: Dialect | None = None,
) -> Prior | dict[str, Prior]:
    """Count the public rows of a table into a Prior, or into one Prior per group.

    Guarantees
        The data must be public: a prior built from the users it will serve reveals them. So with a `user`
        column the prior carries a mark (`made_from_users`), unless you say `public=True`: that these people
        are not the ones to be served. Categories are sorted by name; rows of the same item add up.

    Parameters
        table: a pandas, polars (also lazy), pyarrow, DuckDB or Spark frame, the path of a CSV (also gzip),
            Parquet or JSON file or workbook, or a `Tally` from `count_table`, which then has the columns.
        item: the column of the category; or, for a wide table, the list of the columns that are categories.
        weight: the column to add up; without it every row counts once.
        by: the group column. All groups share the items of the whole table, unless there is a `top`.
        top, top_by: keep so many items per group, those with the largest sum of `top_by` (or of weight).
        other: a category that takes the items beyond the top, and later those the prior does not know.
        minimum_rows, minimum_users: leave out users with fewer rows in the whole table, then groups with
            fewer users; both need `user`.
        average: "rows" pools all rows; "users" is the plain mean of the users' distributions.
        smoothing: added to every count (with average="users", a user counts as one).
        merge_rare, rare_below: add up the categories without a count, or with one below a number, into the
            category of this name, which may be there already; with groups those that are rare in any group.
        dialect: how a file is written, where that is not to be found by looking.

    >>> import polars
    >>> frame = polars.DataFrame({"genre": ["War", "Drama", "Drama", "Drama"]})
    >>> build_prior(frame, item="genre").probabilities.tolist()
    [0.75, 0.25]
    """
    options = PriorOptions(
        smoothing, top, other, minimum_rows, minimum_users, average, False, merge_rare, rare_below
    )
    if top is None and top_by is not None:
        raise ParameterError("top_by ranks the items for top=: say how many to keep")
    counted = _counted(table, dialect, item=item, weight=weight, by=by, user=user, top_by=top_by)
    priors, _ = priors_from(counted, options, public=public)
    return priors if counted.by is not None else priors["all"]


def priors_from(
    counted: Tally, options: PriorOptions, *, public: bool | None
) -> tuple[dict[str, Prior], tuple[Category, ...]]:
    """The priors of a tally by group, or one, under "all"; and the categories that were merged."""
    if counted.users is None and (
        options.average == "users" or options.minimum_users or options.minimum_rows
    ):
        raise ParameterError(
            "average='users', minimum_rows and minimum_users need the user column: user= (--user)"
        )
    enough = tally.with_minimum_rows(counted, options.minimum_rows)
    marked = counted.users is not None if public is None else not public
    return priors_of(enough, options, made_from_users=marked)


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
    >>> frame = polars.DataFrame({"who": ["ann", "ann", "bob"], "genre": ["War", "Drama", "War"]})
    >>> prior = Prior(["War", "Drama"], [0.5, 0.5])
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
    counted = _counted(table, dialect, lenient=options.unknown == "prior", **columns)
    found = users_from(counted, prior, options)
    return found if counted.by is not None else found["all"]


def users_from(
    counted: Tally, prior: Categories | Mapping[str, Categories], options: ReadingOptions
) -> dict[str, Users]:
    """The users of a tally by group; under "all" where there are no groups."""
    if counted.users is None:
        raise ParameterError("read_users needs the column of the user: user=")
    counted = tally.with_minimum_rows(counted, options.minimum_rows)
    if isinstance(prior, Mapping):
        if counted.by is None:
            raise ParameterError("a prior per group needs the group column: by=")
        known = prior
    else:
        known = dict.fromkeys(counted.groups, prior)
    filled = tally.filled_groups(counted)
    tally.check_groups(filled, known, options.unknown_groups)
    tally.check_one_group(
        tally.in_several_groups(counted), tally.people(counted), counted.by, options.several_groups
    )
    there = set(filled)
    if options.unknown == "other":
        for name in filled:
            if name in known:
                tally.other_category(known[name], options.other, name if counted.by is not None else None)
    found = {
        name: tally.users_of(counted, g, known[name], unknown=options.unknown, other=options.other)
        for g, name in enumerate(counted.groups)
        if name in known and name in there
    }
    dropped = sum(users.dropped for users in found.values())
    tally.check_left_out(
        dropped,
        sum(users.refused for users in found.values()),
        sum(map(len, found.values())),
        int(counted.rows.sum()),
        unknown=options.unknown,
        empty=options.empty,
        same_kind=type(counted.items[0]) is type(next(iter(known.values())).categories[0]),
        items=tally.unknown_items(counted, known) if dropped and options.unknown == "error" else None,
    )
    return found


def _counted(table: Any, dialect: Dialect | None, lenient: bool = False, **columns: Any) -> Tally:
    """The tally of a table, or the tally itself."""
    if dialect is not None and not isinstance(dialect, Dialect):
        raise ParameterError("dialect must be a Dialect, such as sottovoce.Dialect(decimal='comma')")
    if dialect is not None and not isinstance(table, str | Path):
        raise ParameterError("dialect is for the path of a file: leave it out")
    if isinstance(table, Tally):
        given = [name for name, column in columns.items() if column is not None]
        if given:
            raise ParameterError(f"a tally has its columns already: leave {', '.join(given)} out")
        return table
    if columns["item"] is None:
        raise ParameterError("which column holds the items? say item=")
    return count_table(table, dialect=dialect or FOUND, lenient=lenient, **columns)
