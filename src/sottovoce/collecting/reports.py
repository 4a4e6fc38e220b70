"""Reports counted, whatever form they come in, and checked against the mechanism they claim to come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _validate
from .._validate import FloatArray
from ..errors import EstimateError, ParameterError
from ..groups import EVERYBODY, Groups
from ..tables import tally
from ..tables.files import DETECTED, Dialect
from ..tables.tally import Tally
from .model import Model, SurveyKernel
from .store import is_store, stored_counts


def counted(model: Model, reports: Any, item: str, user: str | None, dialect: Dialect) -> FloatArray:
    """How often each answer was reported, from any form that reports come in."""
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
    if not fine or float(counts.sum(dtype=np.float64)) >= _validate.LARGEST_COUNT:
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

    A path may also be that of a store, which `sottovoce collect` may be writing to meanwhile.
    """
    known: Mapping[str, Model] = Groups.of(models, by)
    if is_store(table):
        if item != "item" or user is not None or dialect != DETECTED:
            raise ParameterError("item and user are columns of a table; a store of reports has none")
        return stored_counts(Path(table), known), ""
    from ..tables.reader import Columns, count_missing, left_unread, opened, tally_of

    with opened(table, dialect, wanted=(item, user, by)) as source:
        columns, lacking = list(source.types), 0
        described = "mechanism" in columns and all(model.digest is not None for model in known.values())
        item, user = _named(columns, item, user)
        added_up = user is None and "count" in columns and item != "count"
        read = Columns(item, user, "count" if added_up else None, by)
        items = tally_of(source, read)
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
    counts = {}
    for name, g in items.filled.items():
        cells, model = items.cells(g), known[name]
        indices = model.indices(items.items, as_text=as_text)[items.item[cells]]
        counts[name] = _added_up(indices, items.amount[cells], model)
    return counts, how


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
