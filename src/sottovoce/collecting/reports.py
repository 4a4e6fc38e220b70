"""Tables of reports: counted per category, and checked against the mechanism they claim to come from.

`sottovoce release` writes a row per user with the released category, ε and the digest of the mechanism, so
reports describe themselves. What does not fit is refused: another mechanism's reports, an unknown category, a
user who reports twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import FloatArray
from ..errors import EstimateError, ParameterError
from ..groups import Groups
from ..tables import tally
from ..tables.files import DETECTED, Dialect
from ..tables.priors import left_unread
from ..tables.query import Columns, Source, count_missing, opened, tally_of
from ..tables.tally import Tally
from .joint_reports import JointCounts, of_cells
from .model import Model
from .store import is_store, stored_counts


def count_reports(
    table: Any,
    models: Model | Mapping[str, Model],
    *,
    item: str = "item",
    user: str | None = None,
    by: str | None = None,
    dialect: Dialect = DETECTED,
) -> Mapping[str, FloatArray | JointCounts]:
    """How often each category was reported, by group.

    With several samples a user has as many rows, and the counts are kept by user. A path may also be that of
    a store, which `sottovoce collect` may be writing to meanwhile. `dialect` says how a file is written.

    Raises
        TableError: a column is missing or malformed.
        EstimateError: another mechanism's reports, unknown categories, users with more than one report.
    """
    known: Mapping[str, Model] = Groups.of(models, by)
    if is_store(table):
        if item != "item" or user is not None or dialect != DETECTED:
            raise ParameterError("item and user are columns of a table; a store of reports has none")
        return stored_counts(Path(table), known)
    if dialect != DETECTED and not isinstance(table, str | Path):
        raise ParameterError("dialect is for the path of a file: leave it out")
    with opened(table, dialect) as source:
        return _counted(source, known, item, user, by)[0]


def _counted(
    source: Source, known: Mapping[str, Model], item: str, user: str | None, by: str | None
) -> tuple[Mapping[str, FloatArray | JointCounts], str]:
    """The counts of an open table, and what was left out or chosen while it was read, in words."""
    columns = list(source.types)
    described = "mechanism" in columns and all(model.digest is not None for model in known.values())
    user = "user" if user is None and "user" in columns else user
    weight = weight_of(columns, item, user)
    read = Columns(item, user, weight, by)
    counted = tally_of(source, read)
    digests = tally_of(source, Columns("mechanism", by=by)) if described else None
    if described and source.dialect.missing == "drop":
        _check_described(source, list(read.names.values()))
    how = left_unread(source, read).removeprefix("; ")
    joint = any(one.samples > 1 for one in known.values())
    if joint and user is None:
        raise EstimateError(
            "several samples are counted by user: name the column of the user (user=, --user) in the reports"
        )
    several = None if user is None or joint else _several(counted)
    found = ReportCounts(counted, digests, several)
    as_text = source.path is not None
    single = checked_counts(found, known, as_text=as_text)
    if not joint:
        return {**single}, how
    return {
        name: of_cells(
            counted, counted.groups.index(name), _places(counted, name, known[name], as_text), known[name]
        )
        for name in single
    }, how


def read_reports(
    path: Path,
    models: Model | Mapping[str, Model],
    *,
    item: str = "item",
    user: str | None = None,
    by: str | None = None,
    dialect: Dialect = DETECTED,
) -> tuple[Mapping[str, FloatArray | JointCounts], str]:
    """`count_reports` of a file, and what was left out or chosen while it was read, in words."""
    if is_store(path):
        return count_reports(path, models, item=item, user=user, by=by, dialect=dialect), ""
    known: Mapping[str, Model] = Groups.of(models, by)
    with opened(path, dialect) as source:
        return _counted(source, known, item, user, by)


def _check_described(source: Source, names: Sequence[str]) -> None:
    """Where rows with a missing name are dropped, one that lacks its mechanism alone would still count."""
    lacking = count_missing(source, ["mechanism"], names)
    if lacking:
        raise EstimateError(
            f"{lacking} reports do not say which mechanism they were released with: remove them, or the "
            f"column 'mechanism'"
        )


@dataclass(frozen=True)
class ReportCounts:
    """Reports counted where they live: by group and item, by group and mechanism, and who reports twice."""

    items: Tally
    digests: Tally | None  # None where reports or mechanisms do not describe themselves
    several: tuple[int, int] | None  # users with more than one report in a group, of so many; None: no users


def weight_of(columns: Sequence[str], item: str, user: str | None) -> str | None:
    """The column of reports that were added up already, if there is one."""
    return "count" if user is None and "count" in columns and item != "count" else None


def checked_counts(
    found: ReportCounts, known: Mapping[str, Model], *, as_text: bool
) -> dict[str, FloatArray]:
    """How often each category was reported, by group; what does not fit is refused."""
    filled = list(found.items.filled)
    tally.check_groups(filled, known, "error")
    if found.digests is not None:
        _check_digests(found.digests, known)
    if found.several is not None and found.several[0]:
        several, people = found.several
        raise EstimateError(
            f"{several} of {people} users have more than one report: keep one each, or they count twice"
        )
    return {name: _of_group(found.items, name, known[name], as_text) for name in filled}


def _check_digests(counted: Tally, known: Mapping[str, Model]) -> None:
    """Refuse reports that were released with another mechanism than the one at hand."""
    wrong = 0
    for g, name in enumerate(counted.groups):
        cells = counted.cells(g)
        expected = known[name].digest
        named = np.array([counted.items[i] == expected for i in counted.item[cells]], dtype=bool)
        wrong += int(counted.rows[cells][~named].sum())
    if wrong:
        raise EstimateError(
            f"{wrong} of {int(counted.rows.sum())} reports were released with another mechanism: their "
            f"digest differs; take the mechanism file they were made with"
        )


def _several(counted: Tally) -> tuple[int, int]:
    """How many users report more than once within a group, and how many users there are in all groups."""
    first = np.ones(len(counted.rows), dtype=bool)  # of the cells of a user: a tally has them in a row
    first[1:] = (np.diff(counted.group) != 0) | (np.diff(counted.user) != 0)
    reports = np.add.reduceat(counted.rows, np.flatnonzero(first))
    return int(np.count_nonzero(reports > 1)), len(reports)


def _places(counted: Tally, name: str, model: Model, as_text: bool) -> Any:
    """The place of every cell's item among the categories, or -1."""
    cells = counted.cells(counted.groups.index(name))
    return model.indices(counted.items, as_text=as_text)[counted.item[cells]]


def _of_group(counted: Tally, name: str, model: Model, as_text: bool) -> FloatArray:
    place = _places(counted, name, model, as_text)
    rows = counted.amount[counted.cells(counted.groups.index(name))]
    strange = rows[place < 0].sum()
    if strange:
        raise EstimateError(
            f"reports must be categories of the mechanism: {strange:g} of {rows.sum():g} are not; is it the "
            f"mechanism they were released with?"
        )
    known = place >= 0  # an unknown category that nobody reported is none of the reports
    return np.bincount(place[known], rows[known], minlength=len(model.answers)).astype(np.float64)
