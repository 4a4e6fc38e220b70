"""The one door for private data: one user's or many users' records, as values, as rows and as integers.

Messages about private data carry counts of rows and the size of a sum: no name, and no coordinate of
anybody's data. Where data enter a release they become integers here, and a user without records has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import checks, listing
from .checks import SUM_TOLERANCE, FloatArray
from .core.engine import Weights
from .errors import UserDataError

if TYPE_CHECKING:
    from scipy import sparse

    from .prior import Prior
    from .release.mechanism import Mechanism

Category: TypeAlias = str | int
"""The name of a category, and of a user."""
UsersLike: TypeAlias = "npt.ArrayLike | sparse.sparray[Any, Any] | sparse.spmatrix[Any]"
"""Rows over the categories, one per user: a vector (one user), an (m, n) array, or scipy.sparse."""
Categories: TypeAlias = "Prior | Mechanism"
"""What users are read against."""


@dataclass(frozen=True, eq=False, repr=False)
class Users:
    """One distribution per user over the categories of a prior. Printing one shows sizes, no data."""

    ids: tuple[Category, ...]
    p: sparse.csr_array[np.float64]
    categories: Sequence[Category]
    dropped: int = 0  # rows left out because the prior does not know their item
    refused: int = 0  # users left out because they have no usable record
    moved: int = 0  # rows whose item the prior does not know, counted as its "other" category
    amounts: FloatArray | None = None  # each user's total, before it became a distribution

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Users({len(self.ids)} users over {self.p.shape[1]} categories)"

    def _repr_html_(self) -> str:
        """What a notebook shows: sizes, and nothing of what anybody holds."""
        rows: list[tuple[str, object]] = [
            ("users", f"{len(self.ids):,}"),
            ("categories", f"{self.p.shape[1]:,}"),
            ("rows left out: their item is no category", f"{self.dropped:,}"),
            ("rows counted as another category", f"{self.moved:,}"),
            ("users left out: no usable record", f"{self.refused:,}"),
        ]
        return listing.facts("Users", rows)


def rows_for(users: UsersLike | Users, known: Categories) -> UsersLike:
    """The rows of `users`, refused if they were read against other categories or another order."""
    if not isinstance(users, Users):
        return users
    mine, theirs = users.categories, known.categories
    if mine is not theirs and (len(mine) != len(theirs) or tuple(mine) != tuple(theirs)):
        raise UserDataError(
            "users were read against other categories than the prior or mechanism has; read them with it"
        )
    return users.p


# --- names as indices ----------------------------------------------------------------------------------


def known_indices(records: Iterable[Any], index: Mapping[Any, int]) -> list[int]:
    """The indices of a user's records among the categories; unknown records count for nothing."""
    return [i for i in _indices(records, index) if i >= 0]


def indices_of(records: Iterable[Any], index: Mapping[Any, int], whose: str, advice: str) -> list[int]:
    """The indices of a user's records; no record, or an unknown one, is refused: how many, never which."""
    indices = _indices(records, index)
    if not indices:
        raise UserDataError("records must not be empty")
    if unknown := indices.count(-1):
        counted = f"{unknown} of {len(indices)} are not"
        raise UserDataError(f"records must be categories of the {whose}: {counted}; {advice}")
    return indices


def unknown_records(records: Iterable[Any], index: Mapping[Any, int]) -> int:
    """How many of a user's records are no category."""
    return _indices(records, index).count(-1)


def _indices(records: Iterable[Any], index: Mapping[Any, int]) -> list[int]:
    """The index of each record among the categories; -1 for an unknown one, whatever it is."""
    listed = _listed(records, index)
    if _is_a_vector(listed, index):
        raise UserDataError(
            "records must be names of categories, got a vector of numbers: pass a distribution or counts as "
            "p=, and integers that became floats beside a missing value as integers"
        )
    if listed and all(isinstance(record, tuple) for record in listed):
        raise UserDataError("records must be names of categories, got tuples: take the names out of them")
    return [_index(record, index) for record in listed]


def _listed(records: Iterable[Any], index: Mapping[Any, int]) -> list[Any]:
    """The records as a list; what by its form is no list of one user's names is refused."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise UserDataError("records must be a list of categories; pass counts as p=, an array of integers")
    if getattr(records, "ndim", 1) != 1 or hasattr(records, "columns"):
        raise UserDataError("records must be one user's list of categories, got a table")
    kind = getattr(getattr(records, "dtype", None), "kind", "O")  # of numpy and pandas; others have none
    if kind in "iub" and _are_texts(index) and len(list(records)):
        raise UserDataError("records must be names of categories, which are texts, got an array of integers")
    to_list = getattr(records, "to_pylist", None)  # pyarrow's own values are no names
    return list(records) if to_list is None else list(to_list())


def _is_a_vector(records: list[Any], index: Mapping[Any, int]) -> bool:
    """Whether these are numbers in the place of names: nothing but floats, or one number for each category.

    A missing value is a float to pandas. Where nothing but missing values is left, they are the user's
    content, which refuses nothing; so is an odd number among names.
    """
    named = [record for record in records if record is not None and not _is_missing(record)]
    if not named or not all(map(_is_number, named)):
        return False
    if all(map(_is_float, named)):
        return True
    one_each = len(records) == len(index) > 1
    return one_each and (_are_texts(index) or any(record != _whole(record) for record in named))


def _are_texts(index: Mapping[Any, int]) -> bool:
    return isinstance(next(iter(index)), str)


def _is_number(record: Any) -> bool:
    return isinstance(record, Number | np.number) and not isinstance(record, complex | np.complexfloating)


def _is_float(record: Any) -> bool:
    return isinstance(record, float | np.floating)


def _is_missing(record: Any) -> bool:
    return bool(_is_float(record) and record != record)


def _whole(number: Any) -> int | None:
    """The integer part; of infinity and Decimal's NaN nothing."""
    try:
        return int(number)
    except (ValueError, OverflowError):
        return None


def _index(record: Any, index: Mapping[Any, int]) -> int:
    try:
        return index.get(record, -1)
    except TypeError:  # what has no hash is no name
        return -1


# --- rows of numbers, one per user ---------------------------------------------------------------------

LARGEST_COUNT = 1 << 53
"""Counts and their sums stay below this, so that no 64-bit arithmetic on them can wrap around."""

REAL = "biuf"
"""The kinds of numpy's real numbers."""

NEGLIGIBLE = 1e-250
"""A private probability below this counts as zero, so that no ratio c/p can overflow."""


def distributions(p: object, categories: int, *, empty: bool = False) -> sparse.csr_array[np.float64]:
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


# --- integers, the form in which the release path takes data -------------------------------------------

LAW_BITS = 61
"""Rounding may lift a sum just above 2^61, which still leaves every product below 2^124."""


def weights_of_records(
    records: Iterable[Category], index: Mapping[Category, int], unknown: str = "prior"
) -> Weights:
    """Count one user's records. Unknown ones count for nothing, or are refused: how many, never which."""
    if checks.one_of(("prior", "error"), unknown=unknown) == "prior":
        return sorted(Counter(known_indices(records, index)).items())
    found = indices_of(records, index, "mechanism", "unknown='prior' lets them count for nothing")
    return sorted(Counter(found).items())


def weights_of_law(p: UsersLike, categories: int) -> Weights:
    """One user's distribution in floats as integers."""
    rows = weights_of_rows(p, categories)
    if rows.shape[0] != 1:
        raise UserDataError(f"p must be one user's distribution, got {rows.shape[0]} rows; use release_many")
    return list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))


def check_labels(p: object, categories: Sequence[Category]) -> None:
    """Refuse a labelled distribution (a pandas Series) whose labels are not the categories in their order."""
    if not hasattr(p, "iloc") or getattr(p, "ndim", 1) != 1:
        return
    labels = list(getattr(p, "index", ()))
    if labels != list(range(len(labels))) and labels != list(categories):
        raise UserDataError(
            "p has labels, and they are not the categories in their order: reindex it with the categories"
        )


def weights_of_rows(p: UsersLike, categories: int) -> sparse.csr_array[Any]:
    """Many users: counts stay counts, distributions in floats become integers."""
    from scipy import sparse

    dtype = getattr(p, "dtype", None)
    if dtype is not None and np.issubdtype(dtype, np.integer):
        return count_rows(p, categories)
    laws = distributions(p, categories, empty=True)
    units = np.ldexp(laws.data, LAW_BITS).astype(np.int64)
    # The indices may be the caller's: they are copied.
    rows = sparse.csr_array((units, laws.indices.copy(), laws.indptr.copy()), shape=laws.shape)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def row_of_weights(weights: Weights, categories: int) -> sparse.csr_array[Any]:
    """One user's integers as a sparse row."""
    from scipy import sparse

    places, counts = np.array(weights, dtype=np.int64).reshape(-1, 2).T
    return sparse.csr_array((counts, places, np.array([0, len(places)])), shape=(1, categories))
