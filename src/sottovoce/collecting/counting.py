"""How often each category was reported, from any form that reports come in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _validate
from .._validate import FloatArray
from ..errors import EstimateError, ParameterError
from .joint_reports import JointCounts, of_tuples
from .model import Model, ReportColumns


def counted(model: Model, reports: Any, columns: ReportColumns) -> JointCounts:
    """The counts, Σ over users of the squared share of each category, and the number of users."""
    found = counts_of(model, reports, columns)
    return found if isinstance(found, JointCounts) else JointCounts(found, found, float(found.sum()))


def counts_of(model: Model, reports: Any, columns: ReportColumns) -> FloatArray | JointCounts:
    """How often each category was reported, from any form the reports come in."""
    if isinstance(reports, str | Path) or hasattr(type(reports), "columns"):  # a path, or any dataframe
        from .reports import count_reports

        return count_reports(reports, model, **columns)["all"]
    if columns:
        raise ParameterError(f"{', '.join(columns)} is for a table of reports")
    if isinstance(reports, JointCounts):
        return reports
    if model.samples > 1:
        if isinstance(reports, Mapping):
            raise EstimateError(f"several samples are counted by user: give a tuple of {model.samples} each")
        return of_tuples(reports, model)
    if isinstance(reports, np.ma.MaskedArray):
        raise EstimateError("counts must not be a masked array: fill or drop what is masked")
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iuf":
        return _checked(reports, len(model.categories))
    index = {name: i for i, name in enumerate(model.categories)}
    if isinstance(reports, Mapping):
        names, amounts = list(reports), _checked(np.array(list(reports.values())), len(reports))
    else:
        try:
            names = list(reports)
        except TypeError:
            raise EstimateError("reports must be a list of categories, counts, or a table") from None
        amounts = np.ones(len(names))
    try:
        places = np.array([index.get(name, -1) for name in names], dtype=np.intp)
    except TypeError:
        raise EstimateError("reports must be categories of the mechanism, or a table of them") from None
    strange = amounts[places < 0].sum()
    names_known = places >= 0
    if strange:
        raise EstimateError(
            f"reports must be categories of the mechanism: {strange:g} of {amounts.sum():g} are not; is "
            f"it the mechanism they were released with?"
        )
    return np.bincount(places[names_known], amounts[names_known], minlength=len(index)).astype(np.float64)


def _checked(counts: npt.NDArray[Any], size: int) -> FloatArray:
    """Counts, one per category; fractions are welcome: an expected count is one."""
    if counts.shape != (size,):
        raise EstimateError(
            f"counts must have one number per category: {size} categories, got {counts.shape}"
        )
    fine = counts.dtype.kind in "iuf" and bool(np.all(np.isfinite(counts)) and np.all(counts >= 0))
    if not fine or float(counts.sum(dtype=np.float64)) >= _validate.LARGEST_COUNT:
        raise EstimateError("counts must be finite numbers of at least 0, below 2^53 together")
    return counts.astype(np.float64)
