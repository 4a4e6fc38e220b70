"""One line per check: each function returns the clean value or raises, naming what was wrong.

Public values (epsilon, options, priors) may be repeated in a message; private ones (a user's p) may not:
their messages carry counts of rows and the size of a sum, no coordinate of anybody's data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import ParameterError, Setting, UserDataError

if TYPE_CHECKING:
    from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]

LARGEST_EPSILON = 100.0
"""Above this a floor q·e^-epsilon could fall below the doubles' range, and nobody would call it privacy."""

SUM_TOLERANCE = 1e-9
"""How far a distribution's sum may be from one: far above rounding, far below a real mistake."""

LARGEST_COUNT = 1 << 53
"""Counts and their sums stay below this, so that no 64-bit arithmetic on them can wrap around."""

REAL = "biuf"
"""The kinds of numpy's real numbers."""

NEGLIGIBLE = 1e-250
"""A private probability below this counts as zero, so that no ratio c/p can overflow."""


def real(**named: object) -> float:
    """Return the one named value as a finite float."""
    ((name, value),) = named.items()
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray):
        raise ParameterError(Setting(name), f" must be a number, got {value!r}")
    given: Any = value  # whether it is a number is what is asked
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(Setting(name), f" must be a number, got {_short(value)}") from None
    if not math.isfinite(number):
        raise ParameterError(Setting(name), f" must be finite, got {number}")
    return number


def positive(**named: object) -> float:
    """Return the one named value as a float greater than zero."""
    return _bounded(named, "be greater than 0", lambda number: number > 0)


def at_least(least: float, **named: object) -> float:
    """Return the one named value as a float no smaller than `least`."""
    return _bounded(named, f"be at least {least}", lambda number: number >= least)


def fraction(**named: object) -> float:
    """Return the one named value as a float in [0, 1]."""
    return _bounded(named, "lie between 0 and 1", lambda number: 0 <= number <= 1)


def _bounded(named: dict[str, object], condition: str, holds: Callable[[float], bool]) -> float:
    number = real(**named)
    if not holds(number):
        raise ParameterError(Setting(next(iter(named))), f" must {condition}, got {number}")
    return number


def whole_at_least(least: int, **named: object) -> int:
    """Return the one named value as an integer no smaller than `least`."""
    ((name, value),) = named.items()
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(Setting(name), f" must be an integer of at least {least}, got {_short(value)}")
    return int(value)


def privacy(epsilon: object) -> float:
    """Return epsilon as a float in (0, LARGEST_EPSILON]."""
    number = positive(epsilon=epsilon)
    if number > LARGEST_EPSILON:
        most = f"at most {LARGEST_EPSILON:g}, got {number}: a larger value protects nothing"
        raise ParameterError(Setting("epsilon"), f" must be {most}")
    return number


def one_of(choices: tuple[str, ...], **named: object) -> str:
    """Return the one named value, which must be among `choices`."""
    ((name, value),) = named.items()
    if value not in choices:
        raise ParameterError(Setting(name), f" must be one of {', '.join(choices)}, got {_short(value)}")
    return str(value)


def users(p: object, categories: int, *, empty: bool = False) -> sparse.csr_array[np.float64]:
    """Return private users as normalised sparse rows, one per user, or refuse without quoting them.

    With `empty` a row without mass is a user without records, and stays.

    `p` is a vector, an (m, n) array or any scipy.sparse matrix or array. The caller's data are never changed;
    sparse rows in canonical form are read where they are, and their indices are shared, not copied.
    """
    from scipy import sparse  # here, because it is half the time of importing the library

    single = getattr(p, "dtype", None) in (np.float32, np.float16)
    rows = _shared_rows(p, np.float64, categories)
    if rows is None or not len(rows.data) or not (NEGLIGIBLE <= rows.data.min() <= rows.data.max() < np.inf):
        rows = _as_rows(p, np.float64, categories)
        _refuse(rows, ~np.isfinite(rows.data), "values that are not finite numbers")
        _refuse(rows, rows.data < 0, "negative values")
        rows.data[rows.data < NEGLIGIBLE] = 0.0
        rows.eliminate_zeros()
    totals = rows.sum(axis=1)
    without = int(np.count_nonzero(totals == 0))
    if without and not empty:
        raise UserDataError(f"p must not be empty: {without} of {len(totals)} users have no mass")
    off = np.where(totals == 0, 0, np.abs(totals - 1))
    tolerance = 1e-5 if single else SUM_TOLERANCE  # the rounding of single precision is 1e-7 a term
    wrong = int(np.count_nonzero(off > tolerance))
    if wrong:
        worst = float(totals[np.argmax(off)] - 1)
        raise UserDataError(
            f"p must sum to 1: {wrong} of {len(totals)} users do not, the furthest sums to "
            f"1 {'+' if worst > 0 else '-'} {abs(worst):.3g}; divide counts by their sum first"
        )
    shares = np.repeat(totals, np.diff(rows.indptr))
    np.divide(rows.data, shares, out=shares)
    return sparse.csr_array((shares, rows.indices, rows.indptr), shape=rows.shape)


def count_rows(p: object, categories: int) -> sparse.csr_array[Any]:
    """Return private users' counts as sorted sparse rows of positive 64-bit integers, or refuse.

    A row of zeros is a user without records. No message quotes anything. Rows that are such already are
    returned as they are, sharing the caller's memory: neither the library nor the caller may write to them
    while they are in use.
    """
    shared = _shared_rows(p, np.int64, categories)
    if shared is not None:
        data, longest = shared.data, int(np.diff(shared.indptr).max())
        if not len(data) or (data.min() > 0 and int(data.max()) * longest < LARGEST_COUNT):
            return shared
    rows: sparse.csr_array[Any] = _as_rows(p, np.int64, categories)
    _refuse(rows, rows.data < 0, "negative counts")
    _refuse(rows, rows.data >= LARGEST_COUNT, "counts too large to add up")
    totals = rows.astype(np.float64).sum(axis=1)  # as floats: a sum of integers could wrap around
    if np.any(totals >= LARGEST_COUNT):
        raise UserDataError("p must hold counts whose sum is below 2^53")
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _shared_rows(
    p: object, kind: type[np.float64 | np.int64], categories: int
) -> sparse.csr_array[Any] | None:
    """`p` without a copy if it is sparse rows of that kind, sorted and without duplicates; else None."""
    from scipy import sparse

    given: Any = p
    if not sparse.issparse(p) or given.format != "csr" or given.ndim != 2 or given.dtype != kind:
        return None
    # Built anew, so that what the caller's object says about its own order is not believed.
    stated = (given.data, given.indices, given.indptr)
    rows: sparse.csr_array[Any] = sparse.csr_array(stated, shape=given.shape)
    return rows if _same_categories(rows, categories).has_canonical_format else None


def _same_categories(rows: sparse.csr_array[Any], categories: int) -> sparse.csr_array[Any]:
    """The rows, if every column is one of theirs (scipy believes what it is given) and they fit the prior."""
    if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() < rows.shape[1]:
        raise UserDataError("p names columns that it does not have: it is damaged")
    if rows.shape[0] == 0:
        raise UserDataError("p must hold at least one user, it has no rows")
    if rows.shape[1] != categories:
        sizes = f"the prior has {categories} categories, p has {rows.shape[1]}"
        raise UserDataError(f"p must have one value per category: {sizes}")
    return rows


def _as_rows(p: object, kind: type[np.float64 | np.int64], categories: int) -> sparse.csr_array[Any]:
    """Copy `p` into a canonical csr_array of doubles or of integers."""
    from scipy import sparse

    if sparse.issparse(p):
        given: Any = p
        if given.ndim != 2:
            raise UserDataError("p as a sparse array must have two dimensions, users by categories")
        if given.dtype.kind not in REAL:
            raise UserDataError(f"p must hold real numbers, got dtype {given.dtype}")
        rows: sparse.csr_array[Any] = sparse.csr_array(given.astype(kind, copy=True))
        rows.sum_duplicates()
        return _same_categories(rows, categories)
    if isinstance(p, np.ma.MaskedArray):
        raise UserDataError("p must not be a masked array: fill or drop what is masked")
    try:
        dense = np.asarray(p)
    except Exception:  # whatever a foreign array type raises may quote its data
        dense = np.empty(0, dtype=object)
    if dense.dtype.kind not in REAL:
        raise UserDataError("p must be a vector, an (m, n) array of numbers or a sparse matrix")
    if dense.ndim not in (1, 2):
        raise UserDataError(f"p must have one or two dimensions, got {dense.ndim}")
    return _same_categories(sparse.csr_array(np.atleast_2d(dense).astype(kind)), categories)


def _refuse(rows: sparse.csr_array[np.float64], bad: npt.NDArray[np.bool_], what: str) -> None:
    """Refuse the users with a bad entry, saying how many there are."""
    if bad.any():
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        count = len(np.unique(owner[bad]))
        raise UserDataError(f"p must hold probabilities: {count} of {rows.shape[0]} users have {what}")


def _short(value: object) -> str:
    """A public value for a message, cut so that a wrong argument cannot flood the screen."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
