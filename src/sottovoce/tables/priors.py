"""Priors from public tables: counts per category and group, rare ones merged, and the files that carry them.

A file of public data is a table (a row per item, or per record), a JSON object {item: count}, or what
`sottovoce prior -o` wrote, which remembers its groups and whether it was made from the users it serves.
Merging rare categories is a mapping that everybody may know: it looks at one row at a time and is fixed
before any user is read, so privacy is what it was; what changes is p, which then has the merged category.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack, overload

import numpy as np

from .. import _naming, _validate
from .._atomic import write_whole
from .._validate import FloatArray
from ..errors import ParameterError, PriorError, TableError
from ..groups import EVERYBODY, Groups
from ..prior import PROVENANCES, Category, Prior
from . import tally
from .files import DETECTED, Dialect, at_hand, json_object, prefix_errors
from .query import Columns, Source, count_missing, count_table, opened, recurring, tally_of
from .tally import Tally, numbered


class PriorKeywords(TypedDict, total=False):
    """The keyword arguments of `build_prior` beside its columns."""

    provenance: str | None
    smoothing: float
    top: int | None
    other: str | None
    minimum_rows: int
    minimum_users: int
    average: str
    merge_rare: str | None
    rare_below: float | None


class PriorColumns(PriorKeywords, total=False):
    """Those for a table that is not counted yet."""

    item: Required[str | Sequence[str]]
    weight: str | None
    user: str | None
    top_by: str | None
    dialect: Dialect | None


@dataclass(frozen=True)
class PriorOptions:
    """How counts become priors: see `build_prior`."""

    smoothing: float = 0.0
    top: int | None = None
    other: str | None = None
    minimum_rows: int = 0
    minimum_users: int = 0
    average: str = "rows"
    drop_zero: bool = False  # leave out categories that nothing was counted for
    merge_rare: str | None = None
    rare_below: float | None = None

    def __post_init__(self) -> None:
        if self.rare_below is not None:
            _validate.positive(rare_below=self.rare_below)
        if self.merge_rare is not None and not isinstance(self.merge_rare, str):
            raise ParameterError("merge_rare must be the name of a category")
        if self.merge_rare is None and self.rare_below is not None:
            raise ParameterError(
                "rare_below defines what is rare, and needs a category for it: merge_rare=, --rare as=NAME"
            )
        if self.merge_rare is not None and self.drop_zero:
            raise ParameterError(
                "drop_zero and merge_rare both decide what becomes of categories without a count: choose one"
            )
        if None not in (self.merge_rare, self.other) and self.merge_rare != self.other:
            raise ParameterError(
                "the category for rare items and that for items beyond the top have different names: give one"
            )
        _validate.one_of(("rows", "users"), average=self.average)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)
        _validate.whole_at_least(0, minimum_users=self.minimum_users)
        if self.top is not None:
            _validate.whole_at_least(1, top=self.top)


AS_COUNTED = PriorOptions()
"""Nothing added, nothing left out."""


# --- from tables ---


@overload
def build_prior(table: Tally, **options: Unpack[PriorKeywords]) -> Prior | dict[str, Prior]: ...


@overload
def build_prior(table: Any, *, by: None = None, **options: Unpack[PriorColumns]) -> Prior: ...


@overload
def build_prior(table: Any, *, by: str, **options: Unpack[PriorColumns]) -> dict[str, Prior]: ...


@overload
def build_prior(
    table: Any, *, by: str | None, **options: Unpack[PriorColumns]
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
    provenance: str | None = None,
    dialect: Dialect | None = None,
) -> Prior | dict[str, Prior]:
    """Count the public rows of a table into a Prior, or into one Prior per group.

    Guarantees
        The data must be public: a prior built from the users it will serve reveals them. So with a `user`
        column its provenance is "users", unless you pass `provenance="public"`, which states that these
        people are not the ones to be served. Categories are sorted by name; rows of the same item add up.

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
        raise ParameterError("top_by ranks the items for top=: specify how many to keep")
    cells = counted(table, dialect, item=item, weight=weight, by=by, user=user, top_by=top_by)
    origin = provenance or ("public" if cells.users is None else "users")
    priors, _ = priors_of(cells, options, origin)
    return Groups(priors, cells.by).returned


def counted(table: Any, dialect: Dialect | None, lenient: bool = False, **columns: Any) -> Tally:
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
        raise ParameterError("which column holds the items? Pass item=")
    return count_table(table, dialect=dialect or DETECTED, lenient=lenient, **columns)


AMOUNTS = ("count", "weight", "probability")
"""Default names of the column of amounts, in any case of letters."""
_ONCE = "no column of amounts: every row counts once"


def read_priors(
    path: str | Path,
    *,
    item: str = "item",
    count: str | None = None,
    by: str | None = None,
    user: str | None = None,
    wide: bool = False,
    top_by: str | None = None,
    provenance: str | None = None,
    options: PriorOptions = AS_COUNTED,
    dialect: Dialect = DETECTED,
    ask: bool = False,
) -> PublicData:
    """Priors from a file of public data.

    With `ask`, a table with other columns, no amounts and one row for each item is an error: its prior would
    be uniform, which is rarely meant.

    A table with a column named `user`, or with any column whose values recur with several items, looks like
    histories of the users to be served, so that is the provenance of its prior, unless `provenance` states
    another.
    """
    with at_hand(path) as path, prefix_errors(path):
        loaded = json_object(path)
        if loaded is not None:
            given = {
                "top_by": top_by,
                "count": None if count == "none" else count,
                "user": user,
                "wide": wide,
                "provenance": provenance,
            }
            return from_json(loaded, by, options, {**asdict(options), **given})
        if top_by is not None and options.top is None:
            raise ParameterError("--top-by ranks the items for --top: specify how many to keep")
        with opened(path, dialect) as source:
            present = list(source.types)
            if wide:
                items = tuple(name for name in present if name not in (user or "user", by))
                columns, how = Columns(items, user, by=by), f"a wide table of {len(items)} categories"
            else:
                amount = amount_column(present, count, AMOUNTS)
                columns = Columns(item, user, amount, by, top_by)
                how = f"amounts from column {amount!r}" if amount else _ONCE
            cells = tally_of(source, columns)
            if columns.weight is not None and columns.weight.casefold() == "probability" and count is None:
                _check_probabilities(cells, columns.weight)
            private, seen = _looks_private(source, columns, cells, provenance, ask)
            priors, merged = priors_of(cells, options, "users" if private else provenance or "public")
            without = len(cells.groups) - len(priors)
            how += f"; {without} of {len(cells.groups)} groups left out: too few users" if without else ""
            how += _zeros_left_out(cells, priors) if options.drop_zero and options.top is None else ""
            how += merged_said(merged, options, public=not private)
            how += left_unread(source, [user, None if wide else item, by]) + seen
            return PublicData(Groups(priors, by), how)


def _looks_private(
    source: Source, columns: Columns, cells: Tally, provenance: str | None, ask: bool
) -> tuple[bool, str]:
    """Whether a table looks like histories of the users to be served, and what to tell about that."""
    user = columns.user or "user"
    private = user.casefold() in {name.casefold() for name in source.types}
    people, groups = list[str](), list[str]()
    if not columns.long:
        private = private or bool(cells.rows.max() > 1)  # more than one row a group
    else:
        used = (columns.item, columns.weight, columns.by, columns.top_by)
        others = [name for name in source.types if name not in used]
        alone = columns.weight is None and int(cells.rows.max()) == 1 and len(cells.items) > 1
        if ask and alone and any(name != user for name in others):
            raise TableError(
                "every item has one row, so that all would weigh the same: name the column of amounts "
                "(--count), or pass --count none if that is meant"
            )
        if provenance is None and not private:
            people, groups = recurring(source, columns.items[0], others)
            private = bool(people)
    seen = ""
    if people:
        seen = (
            f"; the rows look like people, because the values of {people[0]!r} recur with several items: "
            f"pass --provenance public if they are not the users to be served"
        )
    elif groups:
        seen = f"; all values of {groups[0]!r} added up: if they are groups, pass --by {groups[0]}"
    return (private if provenance is None else provenance == "users"), seen


def amount_column(columns: Sequence[str], given: str | None, usual: Sequence[str]) -> str | None:
    """The column of amounts: the one named, else the first of the usual names, in any case of letters."""
    if given == "none" and given not in columns:
        return None
    if given is not None:
        return given
    folded = {column.casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in usual if name in folded), None)


def left_unread(source: Source, names: Sequence[str | None]) -> str:
    """How many rows were dropped because a name is missing, and which sheet was read, in words."""
    number = 0
    if source.dialect.missing == "drop":
        number = count_missing(source, [name for name in names if name is not None])
    dropped = f"; {number:,} rows with a missing name dropped" if number else ""
    return dropped + (f"; {source.sheet}" if source.sheet is not None and str(source.sheet) else "")


def _zeros_left_out(counted: Tally, priors: Mapping[str, Prior]) -> str:
    """Which categories nothing was counted for; only how many, if the table may be about the users."""
    lost = {name for prior in priors.values() for name in set(counted.items) - set(prior.categories)}
    if not lost:
        return ""
    names = f": {tally.shown(sorted(map(str, lost)))} (users who hold them: --unknown as=NAME or drop)"
    private = any(prior.provenance == "users" for prior in priors.values())
    return f"; {len(lost)} categories without a count left out{'' if private else names}"


def _check_probabilities(counted: Tally, column: str) -> None:
    """A column named probability has to be one: its sum is not quietly divided out."""
    for total in np.bincount(counted.group, counted.amount).tolist():
        if abs(total - 1) > 1e-6:
            raise PriorError(
                f"column {column!r} sums to {total:.6g}, not to 1; if it holds counts, pass --count {column}"
            )


# --- counts ---


@dataclass(frozen=True)
class Counts:
    """What was counted for each category of one prior, and the categories that were merged into another."""

    names: list[Category]
    counts: FloatArray
    merged: tuple[Category, ...] = ()


def merge_rare(
    groups: Mapping[str, Counts], name: str, below: float | None, *, shared: bool
) -> dict[str, Counts]:
    """The counts with the rare categories added up into `name`: those without a count, or below a number.

    A category called `name` takes the others, however rare it is itself. Groups that share their categories
    (`shared`) still do: what is rare in one of them is merged in all of them.
    """
    rare = {
        group: {
            category
            for category, count in zip(given.names, given.counts.tolist(), strict=True)
            if category != name and (count == 0 if below is None else count < below)
        }
        for group, given in groups.items()
    }
    everywhere = set().union(*rare.values())
    return {
        group: _merged(given, everywhere if shared else rare[group], name) for group, given in groups.items()
    }


def _merged(given: Counts, rare: set[Category], name: str) -> Counts:
    """The counts of one group with these categories merged."""
    gone = tuple(category for category in given.names if category in rare)
    if not gone:
        return given
    counts = dict(zip(given.names, given.counts.tolist(), strict=True))
    added = float(given.counts[[category in rare for category in given.names]].sum())
    kept = {category: count for category, count in counts.items() if category not in rare}
    kept[name] = kept.get(name, 0.0) + added
    return Counts(list(kept), np.array(list(kept.values())), gone)


def check_merged(one: Counts, name: str, *, smoothing: float, public: bool) -> None:
    """Refuse a merged category without a count, and one that took all others; they are named if public."""
    if not one.merged:
        return
    if len(one.names) == 1:
        raise PriorError(
            f"all {len(one.merged)} categories are rare, and {name!r} would be the only one left: merge "
            f"fewer (rare_below=, --rare-below)"
        )
    if one.counts[one.names.index(name)] == 0 and not smoothing:
        more = "N"
        if public and (one.counts > 0).any():
            more = str(math.floor(float(one.counts[one.counts > 0].min())) + 1)
        raise PriorError(
            f"the {len(one.merged)} categories to be merged into {name!r}{listed(one.merged, public)} have "
            f"no count together: merge more of them (rare_below={more}, --rare-below {more}), merge them "
            f"into a category that has one, or smooth (smoothing=, --smoothing)"
        )


def listed(names: tuple[Category, ...], public: bool) -> str:
    """The names in brackets, if they are public."""
    return f" ({tally.shown(names)})" if public else ""


def priors_of(
    cells: Tally, options: PriorOptions, provenance: str
) -> tuple[dict[str, Prior], tuple[Category, ...]]:
    """One prior per group that has enough users; and the categories that were merged in any of them."""
    if cells.users is None and (options.average == "users" or options.minimum_users or options.minimum_rows):
        raise ParameterError(
            "average='users', minimum_rows and minimum_users need the user column: user= (--user)"
        )
    cells = tally.with_minimum_rows(cells, options.minimum_rows)
    groups = _counts_of(cells, options)
    if options.merge_rare is not None:
        groups = merge_rare(groups, options.merge_rare, options.rare_below, shared=options.top is None)
    priors = {}
    for group, one in groups.items():
        try:
            priors[group] = prior_of(one, options, provenance)
        except PriorError as problem:
            raise PriorError(
                f"group {group!r}: {problem}" if cells.by is not None else str(problem)
            ) from None
    merged = {name for one in groups.values() for name in one.merged}
    return priors, tuple(name for name in cells.items if name in merged)


def prior_of(one: Counts, options: PriorOptions, provenance: str = "public") -> Prior:
    """The prior of counts; a category without a count is refused, or left out where that was said."""
    names, counts = one.names, one.counts
    if options.merge_rare is not None:
        check_merged(one, options.merge_rare, smoothing=options.smoothing, public=provenance != "users")
    if options.drop_zero:
        names = [name for name, count in zip(names, counts.tolist(), strict=True) if count]
        counts = counts[counts > 0]
    if not options.smoothing:
        _check_zeros(Counts(names, counts), public=provenance != "users")
    return Prior.from_counts(counts, names, smoothing=options.smoothing, provenance=provenance)


def _counts_of(cells: Tally, options: PriorOptions) -> dict[str, Counts]:
    """The counts of every group that has enough users.

    Without `top` every group has all items of the table; with it each group has its own best-scoring
    items, ties going to the name that sorts first, and `other` takes the rest.
    """
    if options.other is not None and options.other in cells.items:
        raise TableError(
            f"the table has an item called {options.other!r} already: give the other category a new name"
        )
    found = {}
    size = len(cells.items)
    for group, g in cells.filled.items():
        here = cells.cells(g)
        item, person, amount = cells.item[here], cells.user[here], cells.amount[here]
        kept = np.arange(size)
        if options.top is not None:
            score = np.bincount(item, cells.score[here], size)
            score[np.bincount(item, minlength=size) == 0] = -np.inf  # not in this group
            best = np.argsort(-score, kind="stable")[: options.top]
            kept = np.sort(best[score[best] >= 0])
        names = [*(cells.items[i] for i in kept), *([] if options.other is None else [options.other])]
        position = np.full(size, -1 if options.other is None else len(kept))
        position[kept] = np.arange(len(kept))
        used = (position[item] >= 0) & (amount > 0)
        item, amount = position[item[used]], amount[used]
        people, person = numbered(person[used])
        if len(people) == 0 or (cells.users is not None and len(people) < options.minimum_users):
            continue
        if options.average == "users":  # every user weighs the same, as one record spread over their items
            amount = amount / np.bincount(person, amount)[person]
        found[group] = Counts(names, np.bincount(item, amount, len(names)).astype(np.float64))
    if not found:
        least = f"at least {options.minimum_users} users" if options.minimum_users > 1 else "a usable row"
        raise TableError(f"no prior is left: no group has {least}")
    return found


def _check_zeros(one: Counts, *, public: bool) -> None:
    """Refuse several categories without a count, and name all of them at once, if they are public."""
    zeros = tuple(name for name, count in zip(one.names, one.counts.tolist(), strict=True) if not count)
    if len(zeros) > 1:
        named = listed(zeros, public)
        raise PriorError(
            f"counts must be greater than 0: {len(zeros)} of {len(one.names)} categories have none{named}; "
            f"leave them out (sottovoce prior --rare drop), merge them with other rare ones (merge_rare=, "
            f"--rare as=NAME --rare-below N), or smooth (smoothing=, --smoothing)"
        )


# --- files ---


FORMAT = "sottovoce-prior"


@dataclass(frozen=True)
class PublicData:
    """The priors of a file, and how they were counted."""

    priors: Groups[Prior]
    how: str

    @property
    def by(self) -> str | None:
        """The group column."""
        return self.priors.by


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
        "provenance": next(iter(data.priors.values())).provenance,
        "how": data.how,
        "groups": groups,
    }
    write_whole(json.dumps(plain, ensure_ascii=False, indent=0) + "\n", path, replace=replace)


def from_json(
    loaded: dict[str, Any], by: str | None, options: PriorOptions, given: Mapping[str, Any]
) -> PublicData:
    """The priors of a JSON object; `given` are options that only a table can honour, and which are said."""
    ready = loaded.get("format") == FORMAT
    kept = ("merge_rare",) if ready else ("merge_rare", "rare_below", "smoothing")
    _only_for_tables({key: value for key, value in given.items() if key not in kept}, ready)
    return _parsed(loaded, by, options) if ready else _from_object(loaded, by, options)


def merged_said(merged: tuple[Category, ...], options: PriorOptions, *, public: bool) -> str:
    """How many rare categories were merged, and which, if they are public."""
    if options.merge_rare is None:
        return ""
    what = "without a count" if options.rare_below is None else f"below {options.rare_below:g}"
    if not merged:
        return f"; no category {what}: nothing merged"
    return f"; {len(merged):,} categories {what} merged into {options.merge_rare!r}{listed(merged, public)}"


def _parsed(loaded: dict[str, Any], by: str | None, options: PriorOptions) -> PublicData:
    """The priors of a file that `write_priors` wrote."""
    grouped_by, provenance, groups = (loaded.get(key) for key in ("by", "provenance", "groups"))
    if not isinstance(groups, dict) or not groups or not all(map(_naming.is_text, groups)):
        raise TableError("this is not a prior file of version 1")
    named = set(groups) == {EVERYBODY} if grouped_by is None else isinstance(grouped_by, str)
    if loaded.get("version") != 1 or provenance not in PROVENANCES or not named:
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
        priors[name] = Prior(one["categories"], one["probabilities"], provenance=provenance)
    if options.merge_rare is not None and any(
        options.merge_rare not in prior.index for prior in priors.values()
    ):
        raise PriorError(
            f"this is a prior that is made already, and it has no category {options.merge_rare!r}: name one "
            f"that it has, or make it anew from its table (sottovoce prior --rare as=NAME --rare-below N)"
        )
    return PublicData(Groups(priors, grouped_by), f"a prior file ({loaded.get('how')})")


def _only_for_tables(options: Mapping[str, Any], ready: bool) -> None:
    """Refuse options that a JSON object of counts, or a ready prior, cannot honour."""
    given = [name for name, value in options.items() if value and value != "rows"]
    if given:
        what = "a prior that is made already" if ready else "a JSON object of counts"
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{flags} is for tables, and this is {what}: make the prior anew from its table")


def _from_object(loaded: dict[str, Any], by: str | None, options: PriorOptions) -> PublicData:
    """The priors of a JSON object of counts."""
    if not loaded:
        raise TableError("the object is empty")
    if by is not None:
        _naming.group_column(by)
    grouped = all(isinstance(amounts, dict) for amounts in loaded.values())
    if by is not None and not grouped:
        raise TableError("with --by the object must be {group: {category: amount}}")
    if by is None and grouped:
        raise TableError("the object holds groups: pass --by with the name of the group column")
    if not all(map(_naming.is_text, loaded)):
        raise TableError("the object has names that are no text")
    objects = {EVERYBODY: loaded} if by is None else loaded
    names = list(dict.fromkeys(name for amounts in objects.values() for name in amounts))
    groups = {group: {name: amounts.get(name, 0) for name in names} for group, amounts in objects.items()}
    how = "amounts from the JSON object"
    if options.merge_rare is None:
        smoothing = options.smoothing
        priors = {group: Prior.from_counts(one, smoothing=smoothing) for group, one in groups.items()}
        return PublicData(Groups(priors, by), how)
    for one in groups.values():
        Prior.from_counts(one, smoothing=1.0)  # refuses what is no count
    counts = {group: Counts(names, np.array(list(one.values()), float)) for group, one in groups.items()}
    merged = merge_rare(counts, options.merge_rare, options.rare_below, shared=True)
    priors = {group: prior_of(one, options) for group, one in merged.items()}
    gone = next(iter(merged.values())).merged  # the same in all groups
    return PublicData(Groups(priors, by), how + merged_said(gone, options, public=True))
