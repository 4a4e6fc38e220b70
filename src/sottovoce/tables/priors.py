"""Priors from public tables: counts per category and group, rare ones merged, and the files that carry them.

Merging rare categories is public, and fixed before any user is read: privacy is what it was.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Required, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from .. import checks
from ..atomic import write_whole
from ..errors import ParameterError, PriorError, Setting, TableError
from ..geometry import Geometry, Line, Tree
from ..groups import EVERYBODY, Groups
from ..prior import PROVENANCES, Learned, Prior
from ..records import Category
from . import reader, tally
from .files import LARGEST_JSON, Dialect, at_hand, kind_of, prefix_errors, unpacked
from .reader import Columns, Source, amount_column, left_unread
from .tally import Tally


class PriorKeywords(TypedDict, total=False):
    """The keyword arguments of `build_prior`."""

    item: Required[str]
    weight: str | None
    user: str | None
    provenance: str | None
    dialect: Dialect | None
    smoothing: float
    merge_rare: str | None
    rare_below: float | None


@dataclass(frozen=True)
class PriorOptions:
    """How counts become priors: see `build_prior`."""

    smoothing: float = 0.0
    merge_rare: str | None = None
    rare_below: float | None = None
    drop_zero: bool = False  # leave out categories that nothing was counted for

    def __post_init__(self) -> None:
        if self.rare_below is not None:
            checks.positive(rare_below=self.rare_below)
            if self.merge_rare is None:
                raise ParameterError(
                    Setting("rare_below"), " needs a category for them: ", Setting("merge_rare", "NAME")
                )
        if self.merge_rare is not None and not isinstance(self.merge_rare, str):
            raise ParameterError(Setting("merge_rare"), " must be the name of a category")
        if self.merge_rare is not None and self.drop_zero:
            raise ParameterError("drop_zero and merge_rare are for the same categories: choose one")


AS_COUNTED = PriorOptions()


# --- from tables ---


@overload
def build_prior(table: Any, *, by: None = None, **options: Unpack[PriorKeywords]) -> Prior: ...


@overload
def build_prior(table: Any, *, by: str, **options: Unpack[PriorKeywords]) -> dict[str, Prior]: ...


def build_prior(
    table: Any,
    *,
    item: str,
    weight: str | None = None,
    by: str | None = None,
    user: str | None = None,
    provenance: str | None = None,
    dialect: Dialect | None = None,
    **options: Any,
) -> Prior | dict[str, Prior]:
    """Count the public rows of a table into a Prior, or into one Prior per group.

    Guarantees
        The data must be public: a prior built from the users it will serve reveals them. So with a `user`
        column its provenance is "users", unless you pass `provenance="public"`, which states that these
        people are not the ones to be served. Categories are sorted by name; rows of the same item add up.

    Parameters
        table: a pandas, polars (also lazy), pyarrow, DuckDB or Spark frame, or the path of a CSV (also gzip),
            Parquet or JSON file or workbook.
        item: the column of the category.
        weight: the column to add up; without it every row counts once.
        by: the group column. All groups share the items of the whole table.
        smoothing: added to every count.
        merge_rare, rare_below: add up the categories without a count, or with one below a number, into the
            category of this name, which may be there already; with groups those that are rare in any group.
        dialect: how a file is written, where that is not to be found by looking.

    >>> import polars
    >>> frame = polars.DataFrame({"genre": ["War", "Drama", "Drama", "Drama"]})
    >>> build_prior(frame, item="genre").probabilities.tolist()
    [0.75, 0.25]
    """
    chosen = PriorOptions(**options)
    if provenance is not None:
        checks.one_of(("public", "users"), provenance=provenance)  # a table holds no private reports
    cells = reader.count_table(table, Columns(item, user, weight, by), dialect)
    origin = provenance or ("public" if user is None else "users")
    return Groups(priors_of(cells, chosen, origin)[0], by).returned


def priors_of(
    cells: Tally, options: PriorOptions, provenance: str
) -> tuple[dict[str, Prior], tuple[Category, ...]]:
    """One prior per group that has amounts; and the categories that were merged."""
    groups = {}
    for group, g in cells.filled.items():
        here = cells.cells(g)
        counts = np.bincount(cells.item[here], cells.amount[here], len(cells.items))
        if counts.any():
            groups[group] = dict(zip(cells.items, counts.tolist(), strict=True))
    if not groups:
        raise TableError("no prior is left: no group has a usable row")
    name, below = options.merge_rare, options.rare_below
    rare = {  # those that in any group have no count, or one below a number; but not the one they go into
        category
        for counts in groups.values()
        for category, count in counts.items()
        if name not in (None, category) and (count == 0 if below is None else count < below)
    }
    priors = {}
    for group, counted in groups.items():
        try:
            priors[group] = _prior_of(counted, rare, options, provenance)
        except PriorError as problem:
            where = f"group {group!r}: " if cells.groups != (EVERYBODY,) else ""
            raise PriorError(where, *problem.args) from None
    return priors, tuple(name for name in cells.items if name in rare)


def _prior_of(
    given: Mapping[Category, float], rare: set[Category], options: PriorOptions, provenance: str
) -> Prior:
    """The prior of counts, the rare ones merged; refused with one category, or one without a count."""
    name, public = str(options.merge_rare), provenance != "users"
    merged = tuple(category for category in given if category in rare)
    counts = {category: count for category, count in given.items() if category not in rare}
    if merged:
        counts[name] = counts.get(name, 0.0) + float(np.sum([given[category] for category in merged]))
    if merged and len(counts) == 1:
        raise PriorError(
            f"all {len(merged)} categories are rare, and {name!r} would be the only one left: merge fewer, "
            "by a smaller ",
            Setting("rare_below"),
        )
    if merged and not options.smoothing and not counts[name]:
        more = math.floor(min(filter(None, counts.values()))) + 1 if public and any(counts.values()) else "N"
        raise PriorError(
            f"the {len(merged)} categories to be merged into {name!r}{_listed(merged, public)} have no "
            f"count together: merge more of them (",
            Setting("rare_below", more),
            "), merge them into a category that has one, or smooth (",
            Setting("smoothing"),
            ")",
        )
    if options.drop_zero:
        counts = {category: count for category, count in counts.items() if count}
    zeros = tuple(category for category, count in counts.items() if not count)
    if len(zeros) > 1 and not options.smoothing:  # all of them at once, if they are public
        raise PriorError(
            f"counts must be greater than 0: {len(zeros)} of {len(counts)} categories have none"
            f"{_listed(zeros, public)}; when the prior is made, leave them out (",
            Setting("drop_zero", True),
            "), merge them with other rare ones (",
            Setting("merge_rare", "NAME"),
            ", ",
            Setting("rare_below", "N"),
            "), or smooth (",
            Setting("smoothing"),
            ")",
        )
    return Prior.from_counts(counts, smoothing=options.smoothing, provenance=provenance)


def _listed(names: tuple[Category, ...], public: bool) -> str:
    return f" ({tally.shown(names)})" if public else ""


# --- from files ---

AMOUNTS = ("count", "weight", "probability")  # default names of their column, in any case of letters
FORMAT = "sottovoce-prior"
SAMPLED = 200_000
"""Rows of a public table that are looked at for columns that name people."""
MOST_GROUPS = 100
"""Values of a column that may be groups; more are people."""


@dataclass(frozen=True)
class PublicData:
    """The priors of a file, how they were counted, and which categories are near each other, if named."""

    priors: Groups[Prior]
    how: str
    geometry: Geometry | None = None

    @property
    def by(self) -> str | None:
        """The group column."""
        return self.priors.by


def read_priors(
    path: str | Path,
    *,
    item: str = "item",
    count: str | None = None,
    by: str | None = None,
    user: str | None = None,
    provenance: str | None = None,
    options: PriorOptions = AS_COUNTED,
    dialect: Dialect | None = None,
    ask: bool = False,
    near: Near | None = None,
) -> PublicData:
    """Priors from a file of public data.

    With `ask`, public data of several columns without amounts are an error if their prior would be uniform.
    A table that looks private gets that provenance, unless `provenance` states another.
    """
    with at_hand(path) as file, prefix_errors(file):
        ready = _document(file)
        if ready is not None:
            counted = None if count == "none" else count
            given = {"count": counted, "user": user, **asdict(options)}
            for name in (name for name, value in given.items() if value):
                raise ParameterError(
                    Setting(name),
                    " is for tables, and this is a prior that is made already: make it anew from its table",
                )
            data = _ready(ready, by)
            if any(provenance not in (None, prior.provenance) for prior in data.priors.values()):
                raise ParameterError(
                    "it states another provenance: if that is wrong, make it anew from its table with ",
                    Setting("provenance", provenance),
                )
            return _placed(data, near, item, {})
        wanted = (item, count, by, user or "user", *AMOUNTS, *(() if near is None else near.columns))
        with reader.opened(file, dialect, wanted=wanted) as source:
            columns = Columns(item, user, amount_column(list(source.types), count, AMOUNTS), by)
            cells, how = reader.tally_of(source, columns), "no column of amounts: every row counts once"
            if columns.weight is not None:
                how = f"amounts from column {columns.weight!r}"
                if columns.weight.casefold() == "probability" and count is None:
                    _check_probabilities(cells, columns.weight)
            used = (*columns.needed, columns.user or "user", *(() if near is None else near.columns))
            others = [name for name in source.types if name not in used]
            if ask and columns.weight is None and _is_even(source, columns, cells, others):
                raise TableError(
                    "every item has as many rows as any other, so that all would weigh the same: name the "
                    "column of amounts (",
                    Setting("count"),
                    "), or pass ",
                    Setting("count", "none"),
                    " if that is meant",
                )
            private, seen = provenance == "users", ""
            if provenance is None:
                private, seen = _looks_private(source, columns, others)
            priors, merged = priors_of(cells, options, "users" if private else "public")
            how += _left_out(cells, priors, merged, options) + left_unread(source, columns) + seen
            values = {} if near is None else _near_values(source, item, near)
            return _placed(PublicData(Groups(priors, by), how), near, item, values)


def _document(path: Path) -> dict[str, Any] | None:
    """The content of a prior file; None for a table."""
    beginning = f'\\s*{{\\s*"format"\\s*:\\s*"{FORMAT}"'.encode()
    if kind_of(path) != ".json" or not path.is_file() or not re.match(beginning, next(unpacked(path), b"")):
        return None
    content = b"".join(unpacked(path, LARGEST_JSON))
    try:
        return dict(json.loads(content))
    except (ValueError, RecursionError) as problem:
        reason = type(problem).__name__  # the error itself holds the whole document
    raise TableError(f"{path} cannot be read as json: {reason}")


def _is_even(source: Source, columns: Columns, cells: Tally, others: Sequence[str]) -> bool:
    """Whether the items of each group have equally many rows, beside a column that may hold amounts."""
    if not others or _has_users(source, columns) or len(cells.items) < 2:
        return False
    apart = np.flatnonzero(np.diff(cells.group)) + 1
    return all(np.ptp(rows) == 0 for rows in np.split(cells.rows, apart))


def _has_users(source: Source, columns: Columns) -> bool:
    return (columns.user or "user").casefold() in {name.casefold() for name in source.types}


def _looks_private(source: Source, columns: Columns, others: Sequence[str]) -> tuple[bool, str]:
    """Whether a table looks like histories of the users to be served, and what to tell about that.

    A column that names people has values that recur with several items. So does one of groups; but these are
    few and come as a full cross table, each item once for each value. A table with each item in one row is a
    list of items, whatever its other columns hold.
    """
    if _has_users(source, columns):
        return True, ""
    seen, people = "", (0, "")
    for name in others:
        ((pairs, values, items, counts, rows),) = source.rows(
            f"SELECT count(*), count(DISTINCT v), count(DISTINCT i), count(DISTINCT n), sum(n) "
            f"FROM (SELECT v, i, count(*) AS n FROM (SELECT {reader.quoted(name)} AS v, "
            f"{reader.quoted(columns.item)} AS i FROM source LIMIT {SAMPLED}) "
            f"WHERE v IS NOT NULL AND i IS NOT NULL GROUP BY v, i)"
        )
        if not pairs or rows == items or pairs <= values or values < 2:
            continue
        if not (pairs == values * items and counts == 1 and values <= MOST_GROUPS):
            people = max(people, (values, name))
            continue
        seen = seen or f"; all values of {name!r} added up: if they are groups, count by {name!r}"
    if not people[1]:
        return False, seen
    return True, (
        f"; the rows look like people, because the values of {people[1]!r} recur with several items (if they "
        f"are groups, count by {people[1]!r})"
    )


# --- which categories are near each other ---

Values: TypeAlias = Mapping[str, Mapping[str, object]]  # by column, the value of each category
NEAR_KEYS = ("position", "parent", "latitude", "longitude")


@dataclass(frozen=True)
class Near:
    """The columns that tell it: one position, or a parent and its parents, or latitude and longitude."""

    position: str | None = None
    parents: tuple[str, ...] = ()
    latitude: str | None = None
    longitude: str | None = None

    def __post_init__(self) -> None:
        kinds = [self.position is not None, bool(self.parents), self.latitude is not None]
        if sum(kinds) != 1 or (self.latitude is None) != (self.longitude is None):
            raise ParameterError(
                "near takes position=COLUMN, or parent=COLUMN (once for each level, the lowest first), or "
                "latitude=COLUMN,longitude=COLUMN"
            )

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(name for name in (self.position, self.latitude, self.longitude) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.numbers, *self.parents)


def _near_values(source: Source, item: str, near: Near) -> Values:
    """The value of every category, as text, in each column; one value for each."""
    source.require(near.columns)
    values = {}
    for name in near.columns:
        lacking, value = "no value", f"CAST({reader.quoted(name)} AS VARCHAR)"
        if name in near.numbers:
            text = f"replace({value}, ',', '.')" if source.dialect.decimal == "comma" else value
            lacking, value = "no number", f"nullif(TRY_CAST({text} AS DOUBLE), 'NaN'::DOUBLE)"
        rows = source.rows(
            f"SELECT {reader.name_as_text(source, item)[0]} AS i, min({value}), max({value}), "
            f"count(*) FILTER ({value} IS NULL) "
            f"FROM source WHERE {reader.quoted(item)} IS NOT NULL GROUP BY i"
        )
        several = sum(least != most for _, least, most, _ in rows)
        missing = sum(bool(absent) for _, _, _, absent in rows)
        if several or missing:
            raise TableError(
                f"column {name!r} must hold one value for each category: {missing} have {lacking} in some "
                f"row, {several} have several"
            )
        values[name] = {str(category): value for category, value, _, _ in rows}
    return values


def _placed(data: PublicData, near: Near | None, item: str, values: Values) -> PublicData:
    """The same with the geometry of its categories, if it is told; groups need the same one."""
    if near is None:
        return data
    made = {_geometry_of(prior, near, values, item) for prior in data.priors.values()}
    if len(made) > 1:
        raise TableError(
            "the groups have different categories, and ", Setting("near"), " needs the same ones"
        )
    return replace(data, geometry=made.pop())


def _geometry_of(prior: Prior, near: Near, values: Values, item: str) -> Geometry:
    """The geometry of the categories of a prior; a position may be the category itself."""

    def column(name: str) -> list[object]:
        if name == item and name not in values:
            return list(prior.categories)
        if name not in values:
            raise TableError(f"a prior made already has no column {name!r}: pass its table, or {item!r}")
        lacking = sum(str(category) not in values[name] for category in prior.categories)
        if lacking:
            raise TableError(f"column {name!r} has no value for {lacking} of {len(prior)} categories")
        return [values[name][str(category)] for category in prior.categories]

    def numbers(name: str) -> list[float]:
        texts = map(str, column(name))
        try:
            return [float(text.replace("_", "?")) for text in texts]  # 1_0 is no number
        except ValueError:
            raise TableError(f"column {name!r} must hold numbers") from None

    if near.parents:
        return Tree.from_levels(*map(column, near.parents))
    return (Line if near.position is not None else Tree.from_points)(*map(numbers, near.numbers))


# --- what is told, and what is refused ---


def _left_out(
    cells: Tally, priors: Mapping[str, Prior], merged: tuple[Category, ...], options: PriorOptions
) -> str:
    """Which groups and categories were left out or merged, in words; which, only if they are public."""
    public = all(prior.provenance != "users" for prior in priors.values())
    summary = ""
    if without := len(cells.groups) - len(priors):
        summary = f"; {without} of {len(cells.groups)} groups left out: they have no amounts"
    lost = {name for prior in priors.values() for name in set(cells.items) - set(prior.categories)}
    if lost and options.drop_zero:
        names = f": {tally.shown(sorted(map(str, lost)))}"
        summary += f"; {len(lost)} categories without a count left out{names if public else ''}"
    if options.merge_rare is not None:
        what = "without a count" if options.rare_below is None else f"below {options.rare_below:g}"
        into = f"merged into {options.merge_rare!r}{_listed(merged, public)}"
        nothing = f"; no category {what}: nothing merged"
        summary += f"; {len(merged):,} categories {what} {into}" if merged else nothing
    return summary


def _check_probabilities(cells: Tally, column: str) -> None:
    """A column named probability has to be one: its sum is not quietly divided out."""
    for total in np.bincount(cells.group, cells.amount).tolist():
        if abs(total - 1) > 1e-6:
            raise PriorError(
                f"column {column!r} sums to {total:.6g}, not to 1; if it holds counts, pass ",
                Setting("count", column),
            )


def write_priors(data: PublicData, path: Path, *, replace: bool = True) -> None:
    """Write priors as one JSON file that `read_priors` reads again, whole or not at all."""
    groups = {
        name: {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        | ({} if prior.learned is None else {"learned": asdict(prior.learned)})
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


def _ready(loaded: dict[str, Any], by: str | None) -> PublicData:
    """The priors of a file that `write_priors` wrote."""
    try:
        grouped_by, provenance, groups = loaded["by"], loaded["provenance"], loaded["groups"]
        names_fit = set(groups) == {EVERYBODY} if grouped_by is None else isinstance(grouped_by, str)
        known = loaded["version"] == 1 and provenance in PROVENANCES
        if not known or not groups or not names_fit or not all(map(checks.is_text, groups)):
            raise TypeError
        priors = {name: _prior(provenance, **law) for name, law in groups.items()}
    except (AttributeError, KeyError, TypeError):
        priors = {}
    if not priors:
        raise TableError("this is not a prior file of version 1")
    if grouped_by is not None:
        checks.group_column(grouped_by)
    if by is not None and by != grouped_by:
        have = f"its groups are named by {grouped_by!r}" if grouped_by else "it has no groups"
        raise TableError(Setting("by", by), f" does not fit this prior: {have}")
    return PublicData(Groups(priors, grouped_by), f"a prior file ({loaded.get('how')})")


def _prior(
    provenance: str, categories: Any, probabilities: Any, learned: dict[str, Any] | None = None
) -> Prior:
    """One prior of a file, with what it was learned from if the file says so."""
    if learned is None:
        return Prior(categories, probabilities, provenance=provenance)
    types = {"reports": int, "epsilon": float, "mechanism": str}
    if {key: type(value) for key, value in learned.items()} != types or provenance != "learned":
        raise TypeError
    return Prior(categories, probabilities, learned=Learned(**learned))
