"""What commands read: files of public data become priors, files of histories become users.

A file of public data is a table (a row per item, or per record), a JSON object {item: count}, or what
`sottovoce prior -o` wrote, which remembers its groups and whether it was made from the users it serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..errors import ParameterError, PriorError, TableError
from ..prior import Prior
from ..users import Users
from .amounts import PRIVATE_AMOUNTS, PUBLIC_AMOUNTS, amount_column, check_counted
from .dialect import FOUND, Dialect
from .files import kind_of, prefix_errors, read_json
from .frames import ask_reader, column_names, count_table
from .options import AS_COUNTED, REFUSE_ALL, PriorOptions, ReadingOptions
from .people import Recurring, recurring_columns
from .prior_file import PublicData, from_json, merged_said
from .read import priors_from, users_from
from .spool import at_hand
from .tally import SHOWN, Categories, Tally, filled_groups, people, with_minimum_rows
from .workbook import KINDS


def read_priors(
    path: str | Path,
    *,
    item: str = "item",
    count: str | None = None,
    by: str | None = None,
    user: str | None = None,
    wide: bool = False,
    top_by: str | None = None,
    public: bool | None = None,
    options: PriorOptions = AS_COUNTED,
    dialect: Dialect = FOUND,
    ask: bool = False,
) -> PublicData:
    """Priors from a file of public data.

    With `ask`, a column that looks like counts and was not named is an error: rows are not counted then.

    A table with a column named `user`, or with any column whose values recur with several items, looks like
    histories of the users to be served, so its prior carries the mark, unless `public` says that they are
    somebody else.
    """
    with at_hand(path) as path, prefix_errors(path):
        if kind_of(path) == ".json" and path.is_file():
            loaded = read_json(path)
            if isinstance(loaded, dict):
                given = {"top_by": top_by, "count": count, "user": user, "wide": wide, "public": public}
                return from_json(loaded, by, options, {**asdict(options), **given})
        columns = column_names(path, dialect)
        looks_private = (user or "user").casefold() in {name.casefold() for name in columns}
        recurring = Recurring((), ())
        if wide:
            items: str | list[str] = [name for name in columns if name not in (user or "user", by)]
            column, how = None, f"a wide table of {len(items)} categories"
        else:
            items, column = item, amount_column(columns, count, PUBLIC_AMOUNTS)
            how = f"amounts from column {column!r}" if column else "every row counts once"
            how = how if column else f"no column of amounts: {how}"
        if top_by is not None and options.top is None:
            raise ParameterError("--top-by ranks the items for --top: say how many to keep")
        counted = count_table(
            path, item=items, weight=column, by=by, user=user, top_by=top_by, dialect=dialect
        )
        others = [name for name in columns if name not in (item, column, by, top_by)]
        if ask and column is None and not wide:
            beside = [name for name in others if name != (user or "user")]
            distinct = int(counted.rows.max()) == 1
            check_counted(path, beside, distinct=distinct, option="count", dialect=dialect)
        if wide:
            looks_private = looks_private or bool(counted.rows.max() > 1)  # more than one row a group
        elif public is None and not looks_private:
            recurring = recurring_columns(path, item, others, int(counted.rows.sum()), dialect)
            looks_private = bool(recurring.people)
        if column is not None and column.casefold() == "probability" and count is None:
            _check_probabilities(counted, column)
        marked = not public if public is not None else looks_private
        priors, merged = priors_from(counted, options, public=not marked)
        without = len(counted.groups) - len(priors)
        how += f"; {without} of {len(counted.groups)} groups left out: too few users" if without else ""
        how += _zeros_left_out(counted, priors) if options.drop_zero and options.top is None else ""
        how += merged_said(merged, options, public=not marked)
        how += dropped_said(path, [user, item if not wide else None, by], dialect) + sheet_said(path, dialect)
        return PublicData(priors, by, how + _said(recurring))


def _said(recurring: Recurring) -> str:
    """What was concluded from the columns that nobody named."""
    if recurring.people:
        return (
            f"; the rows look like people, because the values of {recurring.people[0]!r} recur with several "
            f"items: say --public if they are not the users to be served"
        )
    if recurring.groups:
        name = recurring.groups[0]
        return f"; all values of {name!r} added up: if they are groups, say --by {name}"
    return ""


def _zeros_left_out(counted: Tally, priors: Mapping[str, Prior]) -> str:
    """Which categories nothing was counted for; only how many, if the table may be about the users."""
    lost = {name for prior in priors.values() for name in set(counted.items) - set(prior.categories)}
    if not lost:
        return ""
    names = [*map(repr, sorted(map(str, lost))[:SHOWN]), *(["…"] if len(lost) > SHOWN else [])]
    private = any(prior.made_from_users for prior in priors.values())
    return f"; {len(lost)} categories without a count left out" + (
        "" if private else f": {', '.join(names)} (users who hold them: --merge rare=NAME or --unknown drop)"
    )


def dropped_said(path: Path, names: Sequence[str | None], dialect: Dialect) -> str:
    """How many rows were left out because a name is missing: said, never silent."""
    if dialect.missing != "drop":
        return ""
    asked = {"columns": [name for name in names if name is not None], "dialect": asdict(dialect)}
    (number,) = ask_reader("frames", "count_missing", path, **asked)
    return f"; {number:,} rows with a missing name dropped" if number else ""


def sheet_said(path: Path, dialect: Dialect) -> str:
    """Which sheet of several was read."""
    if kind_of(path) not in KINDS:
        return ""
    return "".join(f"; {one}" for one in ask_reader("workbook", "sheet_said", path, dialect=asdict(dialect)))


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
    dialect: Dialect = FOUND,
    ask: bool = False,
) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how counted; `ask` as in `read_priors`."""
    with at_hand(path) as path, prefix_errors(path):
        names = column_names(path, dialect)
        items, column, how = private_columns(names, user=user, item=item, weight=weight, by=by, wide=wide)
        counted = count_table(
            path,
            user=user,
            item=items,
            weight=column,
            by=by,
            dialect=dialect,
            lenient=options.unknown == "prior",
        )
        several = int(counted.rows.sum()) > people(counted)  # one row a user: no weight changes anything
        if ask and column is None and not wide and several:
            others = [name for name in names if name not in (user, item, by)]
            distinct = int(counted.rows.max()) == 1
            check_counted(path, others, distinct=distinct, option="weight", dialect=dialect)
        how += dropped_said(path, [user, by, None if wide else item], dialect) + sheet_said(path, dialect)
        users = users_from(counted, known if by is not None else known["all"], options)
        if not any(len(group) for group in users.values()):
            raise TableError("no user has a usable record")
    return users, how + _left_out(counted, users, options)


def _left_out(counted: Tally, users: Mapping[str, Users], options: ReadingOptions) -> str:
    """What happened to rows and users that are not there as they were: said, never silent."""
    enough = with_minimum_rows(counted, options.minimum_rows)
    groups = filled_groups(enough)
    other = options.other.replace("{", "{{").replace("}", "}}")  # the text is formatted below
    nothing = "count for nothing" if options.unknown == "prior" else "dropped"
    numbers = {
        "{:,} users with too few rows left out": people(counted) - people(enough),
        "{:,} groups without a prior left out": len(groups) - len(users),
        f"{{:,}} rows with unknown items {nothing}": sum(one.dropped for one in users.values()),
        f"{{:,}} rows with unknown items counted as {other}": sum(one.moved for one in users.values()),
        "{:,} users with no usable record left out": sum(one.refused for one in users.values()),
    }
    return "".join(f"; {text.format(number)}" for text, number in numbers.items() if number)


def private_columns(
    columns: list[str], *, user: str, item: str, weight: str | None, by: str | None, wide: bool
) -> tuple[str | list[str], str | None, str]:
    """Which columns hold the items and the weights of a file of histories, and how that is said."""
    if wide:
        for name in (user, by):
            if (
                name is not None and name not in columns
            ):  # what is there may be somebody's row: do not list it
                raise TableError(f"there is no column {name!r}: is the first line of the table a header?")
        items = [name for name in columns if name not in (user, by)]
        return items, None, f"a wide table of {len(items)} categories"
    column = amount_column(columns, weight, PRIVATE_AMOUNTS)
    return item, column, f"weights from column {column!r}" if column else "every row counts once"


def _check_probabilities(counted: Tally, column: str) -> None:
    """A column named probability has to be one: its sum is not quietly divided out."""
    for total in np.bincount(counted.group, counted.amount).tolist():
        if abs(total - 1) > 1e-6:
            raise PriorError(
                f"column {column!r} sums to {total:.6g}, not to 1; if it holds counts, say --count {column}"
            )
