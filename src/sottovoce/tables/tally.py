"""A table counted once: how often each user met each item, group by group. Numbers only, no dataframes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..checks import FloatArray, IntArray
from ..errors import Setting, TableError
from ..records import Categories, Category, Users

SHOWN = 12  # names of public groups and categories in a message


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Cells of a counted table, ordered by group, user and item.

    `rows` is how many rows fell into a cell, `amount` their weights added up. Without a user column there is
    one user, and `users` is None.
    """

    groups: tuple[str, ...]
    users: npt.NDArray[np.object_] | None
    items: tuple[Category, ...]
    group: IntArray
    user: IntArray
    item: IntArray
    rows: IntArray
    amount: FloatArray

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


def users_of(tally: Tally, g: int, known: Categories, *, unknown: str, other: str) -> Users:
    """The users of one group as distributions over the known categories, and how much was left out."""
    cells = tally.cells(g)
    rows, amount, item = tally.rows[cells], tally.amount[cells], tally.item[cells]
    people, person = numbered(tally.user[cells])
    position = positions_of(tally, g, known)[item]
    dropped, moved = int(rows[position < 0].sum()), 0
    if unknown == "other":
        position[position < 0] = other_category(known, other)
        dropped, moved = 0, dropped
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
            f"there is no category {other!r} to take unknown items{where}: name one that there is (",
            Setting("other", "NAME"),
            "), or build the prior with one, by merging rare categories",
        )
    return known.index[other]


def check_groups(filled: Sequence[str], known: Mapping[str, object], unknown_groups: str) -> None:
    """Refuse groups without a prior, unless they may be dropped and something is left."""
    missing = len(set(filled) - set(known))
    if missing and (unknown_groups == "error" or missing == len(filled)):
        raise TableError(
            f"{missing} of {len(filled)} groups have no prior (to leave them out, pass ",
            Setting("unknown_groups", "drop"),
            f"); there are priors for {shown(list(known))}",
        )


def shown(names: Sequence[object]) -> str:
    """Public names for a message; the first of them, if they are many."""
    return ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
