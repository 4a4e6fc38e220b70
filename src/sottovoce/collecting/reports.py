"""Reports counted, whatever form they come in, and checked against the mechanism they claim to come from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..checks import FloatArray, IntArray
from ..errors import EstimateError, ParameterError
from ..groups import EVERYBODY, Groups
from ..records import LARGEST_COUNT
from ..tables import tally
from ..tables.files import DETECTED, Dialect, prefix_errors
from ..tables.tally import Tally
from .model import Model, SurveyKernel
from .store import is_store, stored_counts, stored_reports

if TYPE_CHECKING:
    from ..tables.reader import Source


def counted(model: Model, reports: Any, item: str, user: str | None, dialect: Dialect) -> FloatArray:
    """How often each answer was reported, from any form that reports come in."""
    if isinstance(reports, list | tuple) and reports and all(isinstance(path, Path) for path in reports):
        return read_collection(reports, model, item=item, user=user, dialects=[dialect] * len(reports))[0][
            EVERYBODY
        ]
    if isinstance(reports, str | Path) or hasattr(type(reports), "columns"):  # a path, or any dataframe
        return read_reports(reports, model, item=item, user=user, dialect=dialect)[0][EVERYBODY]
    if (item, user, dialect) != ("item", None, DETECTED):
        raise ParameterError("item, user and dialect are for a table of reports")
    if isinstance(reports, np.ma.MaskedArray):
        raise EstimateError("counts must not be a masked array: fill or drop what is masked")
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iuf":
        if isinstance(model.kernel, SurveyKernel) and reports.dtype.kind != "f":
            raise EstimateError(
                "an array of integers may hold the reports of a survey or their counts: give reports as a "
                "list, and counts as floats"
            )
        return _checked(reports, len(model.answers))
    try:
        names = list(reports)
    except TypeError:
        raise EstimateError("reports must be a list of categories, counts, or a table") from None
    amounts = np.ones(len(names))
    if isinstance(reports, Mapping):
        amounts = _checked(np.array(list(reports.values())), len(names))
    try:
        indices = model.indices(names)
    except TypeError:
        raise EstimateError("reports must be categories of the mechanism, or a table of them") from None
    return _added_up(indices, amounts, model)


def _checked(counts: npt.NDArray[Any], size: int) -> FloatArray:
    """Counts, one per category; fractions are welcome: an expected count is one."""
    if counts.shape != (size,):
        raise EstimateError(
            f"counts must have one number per answer of the mechanism, {size:,}, got {counts.shape}; give "
            f"reports as a list"
        )
    fine = counts.dtype.kind in "iuf" and bool(np.all(np.isfinite(counts)) and np.all(counts >= 0))
    if not fine or float(counts.sum(dtype=np.float64)) >= LARGEST_COUNT:
        raise EstimateError("counts must be finite numbers of at least 0, below 2^53 together")
    return counts.astype(np.float64)


def _added_up(indices: Any, amounts: FloatArray, model: Model) -> FloatArray:
    """The amounts by answer; an unknown category that no report names is none of the reports."""
    known = indices >= 0
    if unknown := amounts[~known].sum():
        raise EstimateError(
            f"reports must be categories of the mechanism: {unknown:g} of {amounts.sum():g} are not; is it "
            f"the mechanism they were released with?"
        )
    return np.bincount(indices[known], amounts[known], minlength=len(model.answers)).astype(np.float64)


def read_reports(
    table: Any,
    models: Model | Mapping[str, Model],
    *,
    item: str = "item",
    user: str | None = None,
    by: str | None = None,
    dialect: Dialect = DETECTED,
) -> tuple[Mapping[str, FloatArray], str]:
    """How often each category was reported, by group, and what was left out or chosen in reading, in words.

    A path may also be that of a store, which `sottovoce collect` may be writing to meanwhile. In a table with
    a column `id`, and no users or counts, a report is what stands beside an id, and counts once.
    """
    known: Mapping[str, Model] = Groups.of(models, by)
    if is_store(table):
        _check_store(item, user, dialect)
        return stored_counts(Path(table), known), ""
    items = _tallied(table, known, item, user, by, dialect)
    if items.by_id:
        with Collection(known) as collection:
            collection.add(items.reports(known))
            return collection.counts(), "; ".join(filter(None, (items.how, collection.repeated())))
    counts = {}
    for name, g in items.tally.filled.items():
        counts[name] = _added_up(
            items.indices(g, known[name]), items.tally.amount[items.tally.cells(g)], known[name]
        )
    return counts, items.how


def read_collection(
    paths: Sequence[Path],
    models: Model | Mapping[str, Model],
    *,
    item: str = "item",
    user: str | None = None,
    by: str | None = None,
    dialects: Sequence[Dialect],
) -> tuple[Mapping[str, FloatArray], str]:
    """How often each answer was reported in several stores and exports; a report counts once."""
    known: Mapping[str, Model] = Groups.of(models, by)
    told = []
    with Collection(known) as collection:
        for path, dialect in zip(paths, dialects, strict=True):
            if is_store(path):
                _check_store(item, user, dialect)
                collection.add(stored_reports(path, known))
                continue
            with prefix_errors(path):
                items = _tallied(path, known, item, user, by, dialect)
                if not items.by_id:
                    raise EstimateError(
                        "it has no column 'id' by which a report is known that stands in several tables "
                        "(beside a column of users or of counts an id is not looked at)"
                    )
            collection.add(items.reports(known))
            told += [f"{path.name}: {items.how}"] if items.how else []
        return collection.counts(), "; ".join(filter(None, (*told, collection.repeated())))


def _check_store(item: str, user: str | None, dialect: Dialect) -> None:
    if item != "item" or user is not None or dialect != DETECTED:
        raise ParameterError("item and user are columns of a table; a store of reports has none")


@dataclass(frozen=True)
class _Items:
    """A table of reports as it was read: its tally, whether users are ids of reports, what was left out.

    `first` has the ids with different contents, by their numbers: group and item of the first row of each.
    """

    tally: Tally
    by_id: bool
    as_text: bool
    how: str
    first: Mapping[int, tuple[int, int]]

    def indices(self, g: int, model: Model) -> IntArray:
        """The answer that each cell of a group names, or -1."""
        known = model.indices(self.tally.items, as_text=self.as_text)
        return np.asarray(known[self.tally.item[self.tally.cells(g)]])

    def reports(self, known: Mapping[str, Model]) -> Iterator[list[tuple[str, str, int]]]:
        """Every row of the table, its id, its group and its answer: the first row of an id comes first."""
        names = np.array(() if self.tally.users is None else self.tally.users, dtype=object)
        later: list[tuple[str, str, int]] = []
        for group, g in self.tally.filled.items():
            cells = self.tally.cells(g)
            indices = self.indices(g, known[group]).tolist()
            part: list[tuple[str, str, int]] = []
            columns = (self.tally.user[cells], self.tally.item[cells], self.tally.rows[cells])
            for user, item, rows, index in zip(
                *(column.tolist() for column in columns), indices, strict=True
            ):
                is_first = self.first.get(user, (g, item)) == (g, item)
                (part if is_first else later).extend([(str(names[user]), group, index)] * rows)
            yield part
        yield later


class Collection:
    """Reports by their ids, from any number of tables and stores, in a temporary database of its own.

    A collector's own store never holds an id twice. So a report with the id of an earlier one and other
    contents was forged, by somebody who sent to several collectors: it counts for nothing, and nothing is
    refused for it. Whoever sends to a later source cancels no report, and to an earlier one replaces one
    report by each that they forge.

    SQLite removes the name of such a file as soon as it is open, and keeps little of it in memory.
    """

    def __init__(self, known: Mapping[str, Model]) -> None:
        self._known, self._groups = known, list(known)
        self._read = 0
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(
            "CREATE TABLE reports (id TEXT PRIMARY KEY, part INTEGER, answer INTEGER, "
            "others INTEGER DEFAULT 0) STRICT, WITHOUT ROWID"
        )

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, parts: Iterable[list[tuple[str, str, int]]]) -> None:
        """Take up the reports of a source: id, group and answer. An id that is there keeps what it has."""
        numbers = {name: number for number, name in enumerate(self._groups)}
        for part in parts:
            self._read += len(part)
            self._database.execute("BEGIN")
            self._database.executemany(
                "INSERT INTO reports (id, part, answer) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET others = others + 1 WHERE part <> excluded.part OR answer <> excluded.answer",
                ((name, numbers[group], answer) for name, group, answer in part),
            )
            self._database.execute("COMMIT")

    def counts(self) -> dict[str, FloatArray]:
        """How often each answer was reported, by group."""
        found: dict[str, list[tuple[int, int]]] = {}
        rows = self._database.execute(
            "SELECT part, answer, count(*) FROM reports GROUP BY part, answer ORDER BY part, answer"
        )
        for part, answer, reports in rows:
            found.setdefault(self._groups[part], []).append((answer, reports))
        if not found:
            raise EstimateError("there is no report yet")
        return {group: self._counted(group, found[group]) for group in sorted(found)}

    def _counted(self, group: str, answers: Sequence[tuple[int, int]]) -> FloatArray:
        indices, amounts = np.array(answers, dtype=np.int64).T
        return _added_up(indices, amounts.astype(np.float64), self._known[group])

    def repeated(self) -> str:
        """How many of the reports that were read do not count, and why, in words."""
        sql = "SELECT count(*), COALESCE(sum(others), 0), count(*) FILTER (WHERE others) FROM reports"
        kept, others, different = self._database.execute(sql).fetchone()
        told = []
        if again := self._read - kept - others:
            told.append(f"{again:,} of {self._read:,} reports are repeated and count once")
        if others:
            told.append(
                f"{others:,} of {self._read:,} reports have the id of an earlier one and other contents, and "
                f"do not count"
            )
        if different * 2 > kept:
            told.append("does the column 'id' name reports, and are these sources of one collection?")
        return "; ".join(told)


def _tallied(
    table: Any, known: Mapping[str, Model], item: str, user: str | None, by: str | None, dialect: Dialect
) -> _Items:
    """Read a table of reports, and check its groups, its mechanism and that no user is in it twice."""
    from ..tables.reader import Columns, count_missing, left_unread, opened, tally_of

    with opened(table, dialect, wanted=(item, user, by)) as source:
        columns, lacking = list(source.types), 0
        described = "mechanism" in columns and all(model.digest is not None for model in known.values())
        item, user = _named(columns, item, user)
        added_up = user is None and "count" in columns and item != "count"
        by_id = user is None and not added_up and "id" in columns and "id" not in (item, by)
        read = Columns(item, "id" if by_id else user, "count" if added_up else None, by)
        items = tally_of(source, read)
        first = _first_contents(source, items) if by_id else {}
        digests = tally_of(source, Columns("mechanism", by=by)) if described else None
        if described and dialect.missing == "drop":  # a row that lacks its mechanism alone would still count
            lacking = count_missing(source, ["mechanism"], list(read.names.values()))
        how = left_unread(source, read).removeprefix("; ")
        as_text = source.path is not None
    if lacking:
        raise EstimateError(
            f"{lacking} reports do not say which mechanism they were released with: remove them, or the "
            f"column 'mechanism'"
        )
    tally.check_groups(list(items.filled), known, "error")
    if digests is not None:
        _check_digests(digests, known)
    if user is not None:
        _check_once(items)
    return _Items(items, by_id, as_text, how, first)


def _first_contents(source: Source, items: Tally) -> Mapping[int, tuple[int, int]]:
    """The group and the item of the first row of each id that stands in a table with different contents.

    Exports of several collectors that were put together look like a table whose column `id` names something
    else, such as users. Where more than half of the ids have different contents it is taken for the latter.
    """
    from ..tables.reader import first_cells

    contents = np.bincount(items.user)
    ids, different = len(contents), int(np.count_nonzero(contents > 1))
    if 2 * different > ids:
        raise EstimateError(
            f"{different} of {ids} ids have different contents: a column 'id' must name reports, which are "
            f"never changed"
        )
    return first_cells(source, ids) if different else {}


def _named(columns: Sequence[str], item: str, user: str | None) -> tuple[str, str | None]:
    """The columns of item and user; without the usual names those that a release has before its epsilon."""
    if user is None and "user" in columns:
        user = "user"
    released = "epsilon" in columns and columns[columns.index("epsilon") + 1 :][:1] == ["mechanism"]
    if item == "item" and item not in columns and released and columns.index("epsilon") > 0:
        item = columns[columns.index("epsilon") - 1]
        user = columns[0] if user is None and columns[0] != item else user
    return item, user


def _check_digests(digests: Tally, known: Mapping[str, Model]) -> None:
    expected = [known[name].digest for name in digests.groups]
    cells = zip(digests.group.tolist(), digests.item.tolist(), strict=True)
    others = np.array([digests.items[i] != expected[g] for g, i in cells], dtype=bool)
    if wrong := int(digests.rows[others].sum()):
        raise EstimateError(
            f"{wrong} of {int(digests.rows.sum())} reports were released with another mechanism: their "
            f"digest differs; take the mechanism file they were made with"
        )


def _check_once(items: Tally) -> None:
    """Refuse users who report more than once within a group: a tally has the cells of a user in a row."""
    first = (np.diff(items.group, prepend=-1) != 0) | (np.diff(items.user, prepend=-1) != 0)
    reports = np.add.reduceat(items.rows, np.flatnonzero(first))
    if more := int(np.count_nonzero(reports > 1)):
        raise EstimateError(
            f"{more} of {len(reports)} users have more than one report: keep one each, or they count twice"
        )
