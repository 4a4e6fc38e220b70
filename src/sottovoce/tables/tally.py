"""A table counted once: how often each user met each item, group by group. Numbers only, no dataframes.

From a tally on the way to priors and users is plain array code, and costs as much as there are cells.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._validate import FloatArray, IntArray
from ..errors import TableError
from ..prior import Category
from ..users import Named, Users

SHOWN = 12  # names of public groups and categories in a message


class Categories(Named, Protocol):
    """What users are read against: a prior, or a mechanism."""

    @property
    def index(self) -> Mapping[Category, int]:
        """The index of each name."""


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Cells of a counted table, ordered by group, user and item. Printing one shows sizes, no data.

    `rows` is how many rows fell into a cell, `amount` their weights added up, `score` what the top items
    are chosen by (another column added up, or the amount again). Without a user column there is one user.
    """

    groups: tuple[str, ...]
    users: npt.NDArray[np.object_] | None
    items: tuple[Category, ...]
    group: IntArray
    user: IntArray
    item: IntArray
    rows: IntArray
    amount: FloatArray
    score: FloatArray
    by: str | None = None  # the group column, if there is one
    long: bool = True  # whether a row was a record; in a wide table each entry counts as a row

    def __repr__(self) -> str:
        people = f"{len(self.users)} users, " if self.users is not None else ""
        entries = f"{int(self.rows.sum())} {'rows' if self.long else 'entries'}"
        return f"Tally({entries}: {len(self.groups)} groups, {people}{len(self.items)} items)"

    @cached_property
    def _starts(self) -> IntArray:
        return np.searchsorted(self.group, np.arange(len(self.groups) + 1))

    def cells(self, group: int) -> slice:
        """Where the cells of a group are."""
        return slice(int(self._starts[group]), int(self._starts[group + 1]))

    @property
    def filled(self) -> dict[str, int]:
        """The groups that have rows, and their numbers."""
        sizes = np.diff(self._starts)
        return {name: g for g, name in enumerate(self.groups) if sizes[g]}

    @property
    def people(self) -> int:
        """How many users there are."""
        return 0 if self.users is None else len(self.users)


def with_minimum_rows(tally: Tally, least: int) -> Tally:
    """Only the users with at least so many rows in the whole table, all groups together."""
    if least <= 1:
        return tally
    if tally.users is None:
        raise TableError("a minimum of rows per user needs the column of the user")
    if not tally.long:
        raise TableError("a minimum of rows per user needs a long table: a wide one has one row each")
    enough = np.bincount(tally.user, tally.rows, minlength=len(tally.users)) >= least
    if not enough.any():
        raise TableError(f"no user has at least {least} rows")
    kept = enough[tally.user]
    met, item = np.unique(tally.item[kept], return_inverse=True)
    others = {name: getattr(tally, name)[kept] for name in ("group", "rows", "amount", "score")}
    items, user = tuple(tally.items[i] for i in met), (np.cumsum(enough) - 1)[tally.user[kept]]
    return replace(tally, users=tally.users[enough], items=items, user=user, item=item, **others)


def users_of(tally: Tally, g: int, known: Categories, *, unknown: str, other: str) -> Users:
    """The users of one group as distributions over the known categories, and how much was left out."""
    cells = tally.cells(g)
    rows, amount, item = tally.rows[cells], tally.amount[cells], tally.item[cells]
    people, person = numbered(tally.user[cells])
    position = positions_of(tally, g, known)[item]
    strange = int(rows[position < 0].sum())
    if unknown == "other":
        position[position < 0] = other_category(known, other)
    used = (position >= 0) & (amount > 0)
    counts = sparse.coo_array(
        (amount[used], (person[used], position[used])), shape=(len(people), len(known.categories))
    ).tocsr()
    totals: FloatArray = np.asarray(counts.sum(axis=1)).ravel()
    usable = (totals > 0) | (unknown == "prior")
    p = counts[np.flatnonzero(usable)]
    totals = totals[usable]
    p.data /= np.repeat(totals, np.diff(p.indptr))
    ids = () if tally.users is None else tuple(tally.users[people[usable]].tolist())
    dropped, moved = (0, strange) if unknown == "other" else (strange, 0)
    return Users(ids, p, known.categories, dropped, len(people) - len(ids), moved, totals)


def positions_of(tally: Tally, g: int, known: Categories) -> IntArray:
    """The index of each item of a group among the known categories; -1 for others, -2 for other groups'."""
    position = np.full(len(tally.items), -2, dtype=np.intp)
    for i in np.flatnonzero(np.bincount(tally.item[tally.cells(g)])).tolist():
        position[i] = known.index.get(tally.items[i], -1)  # an item that is missing is None, and no category
    return position


def numbered(ascending: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values of an ascending array, and the number of each entry's value among them."""
    first = np.ones(len(ascending), dtype=bool)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first], np.cumsum(first) - 1


def other_category(known: Categories, other: str, group: str | None = None) -> int:
    """The index of the category that takes unknown items."""
    if other not in known.index:
        where = "" if group is None else f" in the prior of group {group!r}"
        raise TableError(
            f"there is no category {other!r} to take unknown items{where}: name one that there is (other=, "
            f"--unknown as=NAME), or build the prior with one (sottovoce prior --rare as=NAME --rare-below N)"
        )
    return known.index[other]


def in_several_groups(tally: Tally) -> int:
    """How many users have rows in more than one group; spellings of one name are one user."""
    if tally.users is None or len(tally.groups) == 1:
        return 0
    user = tally.user
    if any(isinstance(name, str) and not (name.isascii() and name == name.strip()) for name in tally.users):
        forms = [unicodedata.normalize("NFC", str(name)).strip() for name in tally.users]
        user = np.unique(np.array(forms, dtype=object), return_inverse=True)[1][user]
    pairs = np.unique(user * len(tally.groups) + tally.group)
    return int(np.count_nonzero(np.bincount(pairs // len(tally.groups)) > 1))


def check_groups(filled: Sequence[str], known: Mapping[str, object], unknown_groups: str) -> None:
    """Refuse groups without a prior, unless they may be dropped and something is left."""
    missing = len(set(filled) - set(known))
    if missing and (unknown_groups == "error" or missing == len(filled)):
        raise TableError(
            f"{missing} of {len(filled)} groups have no prior (leave them out with unknown_groups='drop', "
            f"--unknown-groups drop, compare --unknown drop); there are priors for {shown(list(known))}"
        )


def shown(names: Sequence[object]) -> str:
    """Public names for a message; the first of them, if they are many."""
    return ", ".join([*map(repr, names[:SHOWN]), *(["…"] if len(names) > SHOWN else [])])
