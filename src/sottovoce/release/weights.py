"""A user's data as integers, the form in which the release path takes them.

Records become counts. A distribution given in floats becomes ⌊p·2^61⌋: this is the last place where a float
is seen, and privacy does not rest on it, because the release path is ε-private for *any* integers.
A user without records has no weights; every engine releases that user as one whose weights are the prior's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _naming, _validate
from ..core.engine import Weights
from ..errors import UserDataError
from ..prior import Category
from ..users import UsersLike

if TYPE_CHECKING:
    from scipy import sparse

LAW_BITS = 61
"""Rounding may lift a sum just above 2^61, which still leaves every product below 2^124."""


def from_records(
    records: Iterable[Category], index: Mapping[Category, int], unknown: str = "prior"
) -> Weights:
    """Count one user's records. Unknown ones count for nothing, or are refused: how many, never which."""
    if _validate.one_of(("prior", "error"), unknown=unknown) == "prior":
        return sorted(Counter(_naming.known_places(records, index)).items())
    places = _naming.places(records, index, "mechanism", "unknown='prior' lets them count for nothing")
    return sorted(Counter(places).items())


def from_law(p: UsersLike, categories: int) -> Weights:
    """One user's distribution in floats as integers."""
    rows = from_rows(p, categories)
    if rows.shape[0] != 1:
        raise UserDataError(f"p must be one user's distribution, got {rows.shape[0]} rows; use release_many")
    return list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))


def from_rows(p: UsersLike, categories: int) -> sparse.csr_array[Any]:
    """Many users: counts stay counts, distributions in floats become integers."""
    from scipy import sparse

    dtype = getattr(p, "dtype", None)
    if dtype is not None and np.issubdtype(dtype, np.integer):
        return _validate.count_rows(p, categories)
    laws = _validate.users(p, categories, empty=True)
    units = np.ldexp(laws.data, LAW_BITS).astype(np.int64)
    # The indices may be the caller's: they are copied.
    rows = sparse.csr_array((units, laws.indices.copy(), laws.indptr.copy()), shape=laws.shape)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def row_of(weights: Weights, categories: int) -> sparse.csr_array[Any]:
    """One user's integers as a sparse row."""
    from scipy import sparse

    places, counts = np.array(weights, dtype=np.int64).reshape(-1, 2).T
    return sparse.csr_array((counts, places, np.array([0, len(places)])), shape=(1, categories))
