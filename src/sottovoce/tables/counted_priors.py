"""From a tally to priors: counts per category and group, rare ones merged, zeros refused or left out."""

from __future__ import annotations

import numpy as np

from .._validate import IntArray
from ..errors import PriorError, TableError
from ..prior import Category, Prior
from .merging import Counts, check_merged, listed, merge_rare
from .options import PriorOptions
from .tally import Tally, numbered


def priors_of(
    tally: Tally, options: PriorOptions, *, made_from_users: bool
) -> tuple[dict[str, Prior], tuple[Category, ...]]:
    """One prior per group that has enough users; and the categories that were merged in any of them."""
    groups = _counts_of(tally, options)
    if options.merge_rare is not None:
        groups = merge_rare(groups, options.merge_rare, options.rare_below, shared=options.top is None)
    priors = {}
    for group, one in groups.items():
        try:
            priors[group] = prior_of(one, options, made_from_users=made_from_users)
        except PriorError as problem:
            raise PriorError(
                f"group {group!r}: {problem}" if tally.by is not None else str(problem)
            ) from None
    merged = {name for one in groups.values() for name in one.merged}
    return priors, tuple(name for name in tally.items if name in merged)


def prior_of(one: Counts, options: PriorOptions, *, made_from_users: bool = False) -> Prior:
    """The prior of counts; a category without a count is refused, or left out where that was said."""
    names, counts = one.names, one.counts
    if options.merge_rare is not None:
        check_merged(one, options.merge_rare, smoothing=options.smoothing, public=not made_from_users)
    if options.drop_zero:
        names = [name for name, count in zip(names, counts.tolist(), strict=True) if count]
        counts = counts[counts > 0]
    if not options.smoothing:
        _check_zeros(Counts(names, counts), made_from_users)
    return Prior.from_counts(counts, names, smoothing=options.smoothing, made_from_users=made_from_users)


def _counts_of(tally: Tally, options: PriorOptions) -> dict[str, Counts]:
    """The counts of every group that has enough users.

    Without `top` every group has all items of the table; with it each group has its own best-scoring
    items, ties going to the name that sorts first, and `other` takes the rest.
    """
    top, other = options.top, options.other
    if other is not None and other in tally.items:
        raise TableError(
            f"the table has an item called {other!r} already: give the other category a new name"
        )
    found = {}
    for g, group in enumerate(tally.groups):
        cells = tally.cells(g)
        if cells.stop == cells.start:
            continue
        kept = np.arange(len(tally.items)) if top is None else _top_items(tally, cells, top)
        names = [tally.items[i] for i in kept]
        if other is not None:
            names.append(other)
        position = _positions(tally.item[cells], kept, -1 if other is None else len(kept))
        person, amount = tally.user[cells], tally.amount[cells]
        used = (position >= 0) & (amount > 0)
        person, amount, position = person[used], amount[used], position[used]
        people, person = numbered(person)
        if len(people) == 0 or (tally.users is not None and len(people) < options.minimum_users):
            continue
        if options.average == "users":  # every user weighs the same, as one record spread over their items
            amount = amount / np.bincount(person, amount)[person]
        found[group] = Counts(names, np.bincount(position, amount, len(names)).astype(np.float64))
    if not found:
        least = f"at least {options.minimum_users} users" if options.minimum_users > 1 else "a usable row"
        raise TableError(f"no prior is left: no group has {least}")
    return found


def _check_zeros(one: Counts, made_from_users: bool) -> None:
    """Refuse several categories without a count, and name all of them at once, if they are public."""
    zeros = tuple(name for name, count in zip(one.names, one.counts.tolist(), strict=True) if not count)
    if len(zeros) > 1:
        named = listed(zeros, public=not made_from_users)
        raise PriorError(
            f"counts must be greater than 0: {len(zeros)} of {len(one.names)} categories have none{named}; "
            f"leave them out (sottovoce prior --drop-zero), merge them with other rare ones (merge_rare=, "
            f"--merge rare=NAME --rare-below N), or smooth (smoothing=, --smoothing)"
        )


def _top_items(tally: Tally, cells: slice, top: int) -> IntArray:
    """The items with the largest score in the group, in the order of their names."""
    present, position = np.unique(tally.item[cells], return_inverse=True)
    score = np.bincount(position, tally.score[cells])
    best = np.argsort(-score, kind="stable")[:top]
    return np.sort(present[best])


def _positions(item: IntArray, kept: IntArray, rest: int) -> IntArray:
    """Where each cell's item stands among the kept ones (ascending); `rest` where it is not one of them."""
    place = np.minimum(np.searchsorted(kept, item), len(kept) - 1)
    return np.where(kept[place] == item, place, rest)
