"""Reports of several samples per user: counted by user, because the samples of one user go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._validate import FloatArray
from ..errors import EstimateError
from ..tables.tally import Tally
from .model import Model


class JointCounts(NamedTuple):
    """How often each category was reported in all, and what intervals by user need besides.

    With s_ui the share of category i among the samples of user u, `squares` is Σ_u s_ui².
    """

    counts: FloatArray
    squares: FloatArray
    users: float  # a number of reports may be an expected one


def joint_counts(places: Any, model: Model) -> JointCounts:
    """From the positions of every user's samples, a row per user."""
    users, k, n = places.shape[0], model.samples, len(model.categories)
    counts = np.bincount(places.ravel(), minlength=n).astype(np.float64)
    cells, times = np.unique(np.arange(users)[:, None] * np.int64(n) + places, return_counts=True)
    squares: FloatArray = np.bincount(cells % n, (times / k) ** 2, minlength=n).astype(np.float64)
    return JointCounts(counts, squares, users)


def of_tuples(reports: Sequence[Any], model: Model) -> JointCounts:
    """From a list of tuples, one per user."""
    index, k = {name: i for i, name in enumerate(model.categories)}, model.samples
    try:
        rows = [[index.get(name, -1) for name in report] for report in _listed(reports)]
    except TypeError:
        raise EstimateError(f"reports must be tuples of {k} categories, one per user") from None
    wrong = sum(len(row) != k for row in rows)
    if wrong:
        raise EstimateError(f"{wrong} of {len(rows)} reports do not have {k} categories, one for each sample")
    strange = sum(-1 in row for row in rows)
    if strange:
        raise EstimateError(
            f"reports must be categories of the mechanism: {strange} of {len(rows)} users have others; is it "
            f"the mechanism they were released with?"
        )
    return joint_counts(np.array(rows, dtype=np.int64).reshape(len(rows), k), model)


def of_cells(counted: Tally, group: int, place: Any, model: Model) -> JointCounts:
    """From the counted cells (user, item) of one group, whose items are at these places."""
    cells, k, n = counted.cells(group), model.samples, len(model.categories)
    user, rows = counted.user[cells], counted.rows[cells]
    _, where = np.unique(user, return_inverse=True)
    samples = np.bincount(where, rows)
    wrong = int(np.count_nonzero(samples != k))
    if wrong:
        raise EstimateError(
            f"{wrong} of {len(samples)} users do not have {k} reports, a row for each sample of the mechanism"
        )
    counts = np.bincount(place, rows, minlength=n).astype(np.float64)
    squares: FloatArray = np.bincount(place, (rows / k) ** 2, minlength=n).astype(np.float64)
    return JointCounts(counts, squares, len(samples))


def _listed(reports: Any) -> list[Any]:
    if isinstance(reports, np.ndarray) and reports.ndim == 2:
        return list(reports.tolist())
    listed = list(reports)
    if any(isinstance(one, str) for one in listed):
        raise TypeError
    return listed
