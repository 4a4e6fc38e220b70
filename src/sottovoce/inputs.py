"""What commands read: files of public data become priors, files of histories become users.

A file of public data is a table (a row per item, or per record), a JSON object {item: count}, or what
`sottovoce prior -o` wrote, which remembers its groups and whether it was made from the users it serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .document import write_whole
from .errors import PriorError, TableError
from .files import kind_of, naming, read_json
from .frames import column_names, count_table, require
from .mechanism import Mechanism
from .prior import Prior
from .tables import build_prior, read_users
from .tally import Tally
from .users import Users

FORMAT = "sottovoce-prior"
PUBLIC_AMOUNTS = ("count", "weight", "probability")
PRIVATE_AMOUNTS = ("weight", "count")


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
    public: bool | None = None,
    **options: Any,
) -> PublicData:
    """Priors from a file of public data; `options` are those of `build_prior`.

    A table that has a column named `user` looks like histories of the users to be served, so its prior
    carries the mark, unless `public` says that they are somebody else.
    """
    path = Path(path)
    with naming(path):
        if kind_of(path) == ".json" and path.is_file():
            loaded = read_json(path)
            if isinstance(loaded, dict) and loaded.get("format") == FORMAT:
                return _parsed(loaded, by)
            if isinstance(loaded, dict):
                priors = _from_object(loaded, by, options.get("smoothing", 0.0))
                return PublicData(priors, by, "amounts from the JSON object")
        columns = column_names(path)
        looks_private = (user or "user").casefold() in {name.casefold() for name in columns}
        if wide:
            items: Any = [name for name in columns if name not in (user or "user", by)]
            column, how = None, f"a wide table of {len(items)} categories"
        else:
            items, column = item, amount_column(columns, count, PUBLIC_AMOUNTS)
            how = f"amounts from column {column!r}" if column else "every row counts once"
            how = how if column else f"no column of amounts: {how}"
        require(columns, [name for name in (by, user, item if not wide else None, column) if name])
        counted = count_table(
            path, item=items, weight=column, by=by, user=user, top_by=options.pop("top_by", None)
        )
        if column is not None and column.casefold() == "probability" and count is None:
            _check_probabilities(counted, column)
        marked = not public if public is not None else looks_private
        built = build_prior(counted, public=not marked, **options)
        return PublicData(built if isinstance(built, dict) else {"all": built}, by, how)


def read_user_groups(
    path: str | Path,
    known: Mapping[str, Prior] | Mapping[str, Mechanism],
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
    wide: bool = False,
    **options: Any,
) -> tuple[dict[str, Users], str]:
    """The users of every group from a file of histories, and how counted; `options` are of `read_users`."""
    path = Path(path)
    with naming(path):
        items, column, how = private_columns(
            column_names(path), user=user, item=item, weight=weight, by=by, wide=wide
        )
        counted = count_table(path, user=user, item=items, weight=column, by=by)
        read = read_users(counted, prior=known if by is not None else known["all"], **options)
        users = read if isinstance(read, dict) else {"all": read}
        if not any(len(group) for group in users.values()):
            raise TableError("no user has a usable record")
    dropped = sum(group.dropped for group in users.values())
    refused = sum(group.refused for group in users.values())
    how += f"; {dropped} rows with unknown items dropped" if dropped else ""
    return users, how + (f"; {refused} users with no usable record left out" if refused else "")


def private_columns(
    columns: list[str], *, user: str, item: str, weight: str | None, by: str | None, wide: bool
) -> tuple[str | list[str], str | None, str]:
    """Which columns hold the items and the weights of a file of histories, and how that is said."""
    if wide:
        items = [name for name in columns if name not in (user, by)]
        return items, None, f"a wide table of {len(items)} categories"
    column = amount_column(columns, weight, PRIVATE_AMOUNTS)
    return item, column, f"weights from column {column!r}" if column else "every row counts once"


def write_priors(data: PublicData, path: Path) -> None:
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
    write_whole(json.dumps(plain, ensure_ascii=False, indent=0) + "\n", path)


def amount_column(columns: list[str], given: str | None, usual: tuple[str, ...]) -> str | None:
    """The column of amounts: the one named, else the first of the usual names, in any case of letters."""
    if given is not None:
        return given
    folded = {column.casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in usual if name in folded), None)


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
    if loaded.get("version") != 1 or type(marked) is not bool or not isinstance(groups, dict) or not groups:
        raise TableError("this is not a prior file of version 1")
    if by is not None and by != grouped_by:
        have = f"its groups are named by {grouped_by!r}" if grouped_by else "it has no groups"
        raise TableError(f"--by {by} does not fit this prior: {have}")
    priors = {}
    for name, one in groups.items():
        if not isinstance(one, dict) or set(one) != {"categories", "probabilities"}:
            raise TableError("this is not a prior file of version 1")
        priors[name] = Prior(one["categories"], one["probabilities"], made_from_users=marked)
    return PublicData(priors, grouped_by, str(loaded.get("how")))


def _from_object(loaded: dict[str, Any], by: str | None, smoothing: float) -> dict[str, Prior]:
    if not loaded:
        raise TableError("the object is empty")
    grouped = all(isinstance(amounts, dict) for amounts in loaded.values())
    if by is not None and not grouped:
        raise TableError("with --by the object must be {group: {category: amount}}")
    if by is None and grouped:
        raise TableError("the object holds groups: say --by with the name of the group column")
    if by is None:
        return {"all": Prior.from_counts(loaded, smoothing=smoothing)}
    names = list(dict.fromkeys(name for amounts in loaded.values() for name in amounts))
    return {
        group: Prior.from_counts({name: amounts.get(name, 0) for name in names}, smoothing=smoothing)
        for group, amounts in loaded.items()
    }
