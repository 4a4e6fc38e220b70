"""What commands read: files of public data become priors, files of histories become users.

A file of public data is a table (a row per item, or per record), a JSON object {item: count}, or what
`sottovoce prior -o` wrote, which remembers its groups and whether it was made from the users it serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _naming
from .._atomic import write_whole
from ..errors import ParameterError, PriorError, TableError
from ..prior import Prior
from ..users import Users
from .amounts import PRIVATE_AMOUNTS, PUBLIC_AMOUNTS, amount_column, check_counted
from .dialect import FOUND, Dialect
from .files import kind_of, prefix_errors, read_json
from .frames import ask_reader, column_names, count_table
from .options import AS_COUNTED, REFUSE_ALL, PriorOptions, ReadingOptions
from .people import Recurring, recurring_columns
from .read import priors_from, users_from
from .spool import at_hand
from .tally import SHOWN, Categories, Tally, filled_groups, people, with_minimum_rows

FORMAT = "sottovoce-prior"


@dataclass(frozen=True)
class PublicData:
    """Priors by group (one, under "all", where there are no groups), the group column, and how counted."""

    priors: dict[str, Prior]
    by: str | None
    how: str


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
            ready = isinstance(loaded, dict) and loaded.get("format") == FORMAT
            if isinstance(loaded, dict):
                given = {"top": options.top, "top_by": top_by, **asdict(options)}
                given |= {"count": count, "user": user, "wide": wide, "public": public}
                smoothing = given.pop("smoothing")
                _only_for_tables({**given, "smoothing": smoothing} if ready else given, ready)
                if ready:
                    return _parsed(loaded, by)
                return PublicData(_from_object(loaded, by, smoothing), by, "amounts from the JSON object")
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
        priors = priors_from(counted, options, public=not marked)
        without = len(counted.groups) - len(priors)
        how += f"; {without} of {len(counted.groups)} groups left out: too few users" if without else ""
        how += _zeros_left_out(counted, priors) if options.drop_zero and options.top is None else ""
        how += _dropped(path, [user, item if not wide else None, by], dialect)
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
        "" if private else f": {', '.join(names)} (users who hold them: --unknown drop or other)"
    )


def _dropped(path: Path, names: Sequence[str | None], dialect: Dialect) -> str:
    """How many rows were left out because a name is missing: said, never silent."""
    if dialect.missing != "drop":
        return ""
    asked = {"columns": [name for name in names if name is not None], "dialect": asdict(dialect)}
    (number,) = ask_reader("frames", "count_missing", path, **asked)
    return f"; {number:,} rows with a missing name dropped" if number else ""


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
        counted = count_table(path, user=user, item=items, weight=column, by=by, dialect=dialect)
        several = int(counted.rows.sum()) > people(counted)  # one row a user: no weight changes anything
        if ask and column is None and not wide and several:
            others = [name for name in names if name not in (user, item, by)]
            distinct = int(counted.rows.max()) == 1
            check_counted(path, others, distinct=distinct, option="weight", dialect=dialect)
        how += _dropped(path, [user, by, None if wide else item], dialect)
        users = users_from(counted, known if by is not None else known["all"], options)
        if not any(len(group) for group in users.values()):
            raise TableError("no user has a usable record")
    return users, how + _left_out(counted, users, options.minimum_rows)


def _left_out(counted: Tally, users: Mapping[str, Users], minimum_rows: int) -> str:
    """What happened to rows and users that are not there as they were: said, never silent."""
    enough = with_minimum_rows(counted, minimum_rows)
    groups = filled_groups(enough)
    numbers = {
        "{:,} users with too few rows left out": people(counted) - people(enough),
        "{:,} groups without a prior left out": len(groups) - len(users),
        "{:,} rows with unknown items dropped": sum(one.dropped for one in users.values()),
        "{:,} rows with unknown items counted as other": sum(one.moved for one in users.values()),
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


def write_priors(data: PublicData, path: Path, *, replace: bool = True) -> None:
    """Write priors as one JSON file that `read_priors` reads again, whole or not at all."""
    groups = {
        name: {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        for name, prior in data.priors.items()
    }
    plain = {
        "format": FORMAT,
        "version": 1,
        "by": data.by,
        "made_from_users": any(prior.made_from_users for prior in data.priors.values()),
        "how": data.how,
        "groups": groups,
    }
    write_whole(json.dumps(plain, ensure_ascii=False, indent=0) + "\n", path, replace=replace)


def _check_probabilities(counted: Tally, column: str) -> None:
    """A column named probability has to be one: its sum is not quietly divided out."""
    for total in np.bincount(counted.group, counted.amount).tolist():
        if abs(total - 1) > 1e-6:
            raise PriorError(
                f"column {column!r} sums to {total:.6g}, not to 1; if it holds counts, say --count {column}"
            )


def _parsed(loaded: dict[str, Any], by: str | None) -> PublicData:
    """The priors of a file that `write_priors` wrote."""
    grouped_by, marked, groups = (loaded.get(key) for key in ("by", "made_from_users", "groups"))
    if not isinstance(groups, dict) or not groups or not all(map(_naming.is_text, groups)):
        raise TableError("this is not a prior file of version 1")
    named = set(groups) == {"all"} if grouped_by is None else isinstance(grouped_by, str)
    if loaded.get("version") != 1 or type(marked) is not bool or not named:
        raise TableError("this is not a prior file of version 1")
    if grouped_by is not None:
        _naming.group_column(grouped_by)
    if by is not None and by != grouped_by:
        have = f"its groups are named by {grouped_by!r}" if grouped_by else "it has no groups"
        raise TableError(f"--by {by} does not fit this prior: {have}")
    priors = {}
    for name, one in groups.items():
        if not isinstance(one, dict) or set(one) != {"categories", "probabilities"}:
            raise TableError("this is not a prior file of version 1")
        priors[name] = Prior(one["categories"], one["probabilities"], made_from_users=marked)
    return PublicData(priors, grouped_by, f"a prior file ({loaded.get('how')})")


def _only_for_tables(options: Mapping[str, Any], ready: bool) -> None:
    """Refuse options that a JSON object of counts, or a ready prior, cannot honour."""
    given = [name for name, value in options.items() if value and value != "rows"]
    if given:
        what = "a prior that is made already" if ready else "a JSON object of counts"
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{flags} is for tables, and this is {what}: make the prior anew from its table")


def _from_object(loaded: dict[str, Any], by: str | None, smoothing: float) -> dict[str, Prior]:
    if not loaded:
        raise TableError("the object is empty")
    if by is not None:
        _naming.group_column(by)
    grouped = all(isinstance(amounts, dict) for amounts in loaded.values())
    if by is not None and not grouped:
        raise TableError("with --by the object must be {group: {category: amount}}")
    if by is None and grouped:
        raise TableError("the object holds groups: say --by with the name of the group column")
    if not all(map(_naming.is_text, loaded)):
        raise TableError("the object has names that are no text")
    if by is None:
        return {"all": Prior.from_counts(loaded, smoothing=smoothing)}
    names = list(dict.fromkeys(name for amounts in loaded.values() for name in amounts))
    return {
        group: Prior.from_counts({name: amounts.get(name, 0) for name in names}, smoothing=smoothing)
        for group, amounts in loaded.items()
    }
