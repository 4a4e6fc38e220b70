"""Dataframes in, priors and sparse users out, whatever library the dataframe comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from . import _validate
from .errors import TableError, UserDataError
from .mechanism import Mechanism
from .prior import Prior
from .users import Users


def build_prior(
    frame: Any,
    *,
    item: str,
    weight: str | None = None,
    by: str | None = None,
    smoothing: float = 0.0,
) -> Prior | dict[str, Prior]:
    """Count the public rows of a dataframe into a Prior, or into one Prior per group.

    Guarantees
        The data must be public: building a prior from the users it will serve reveals them. Categories are
        sorted by name; with `by`, all groups share the same ones, those of the whole table. Rows of the same
        item add up.

    >>> import polars
    >>> frame = polars.DataFrame({"genre": ["War", "Drama", "Drama", "Drama"]})
    >>> build_prior(frame, item="genre").probabilities.tolist()
    [0.75, 0.25]
    """
    table = _columns(frame, item, weight, by)
    amount = _amounts(table, weight)
    names, codes = _codes(table[item], item)
    if by is None:
        return Prior.from_counts(np.bincount(codes, amount, minlength=len(names)), names, smoothing=smoothing)
    groups, group_codes = _codes(table[by], by)
    return {
        str(group): Prior.from_counts(
            np.bincount(codes[group_codes == g], amount[group_codes == g], minlength=len(names)),
            names,
            smoothing=smoothing,
        )
        for g, group in enumerate(groups)
    }


def read_users(
    frame: Any,
    *,
    user: str,
    item: str,
    prior: Prior | Mechanism,
    weight: str | None = None,
    unknown: str = "error",
    empty: str = "error",
) -> Users:
    """Turn a long dataframe (a row per user and record) into one distribution per user.

    Parameters
        user, item, weight: column names; without a weight every row counts once.
        prior: whose categories count; a mechanism will do as well.
        unknown: what to do with items the prior does not know, "error" or "drop".
        empty: what to do with users who have no usable record, "error" or "skip".

    Raises
        TableError: a column is missing or malformed.
        UserDataError: unknown items, negative weights, a user without mass. How many, never which.

    >>> import polars
    >>> frame = polars.DataFrame({"who": ["ann", "ann", "bob"], "genre": ["War", "Drama", "War"]})
    >>> prior = Prior(["War", "Drama"], [0.5, 0.5])
    >>> read_users(frame, user="who", item="genre", prior=prior).p.toarray().tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    _validate.one_of(("error", "drop"), unknown=unknown)
    _validate.one_of(("error", "skip"), empty=empty)
    table = _columns(frame, user, item, weight)
    amount = _amounts(table, weight)
    names, item_codes = _codes(table[item], item)
    ids, user_codes = _codes(table[user], user)
    known = prior.index
    position = np.array([known.get(name, -1) for name in names], dtype=np.intp)[item_codes]
    strange = int(np.count_nonzero(position < 0))
    if strange and unknown == "error":
        raise UserDataError(
            f"column {item!r} must hold categories of the prior: {strange} of {len(position)} rows do "
            f"not; add them to the prior, or drop them (unknown='drop', --unknown drop)"
        )
    keep = position >= 0
    counts = sparse.coo_array(
        (amount[keep], (user_codes[keep], position[keep])), shape=(len(ids), len(prior.categories))
    ).tocsr()
    totals = np.asarray(counts.sum(axis=1)).ravel()
    usable = totals > 0
    without = len(ids) - int(np.count_nonzero(usable))
    if without and empty == "error":
        raise UserDataError(f"{without} of {len(ids)} users have no usable record")
    kept = counts[np.flatnonzero(usable)]
    kept.data /= np.repeat(totals[usable], np.diff(kept.indptr))
    names_kept = tuple(name for name, good in zip(ids, usable.tolist(), strict=True) if good)
    return Users(names_kept, kept, prior.categories, strange, without)


def _columns(frame: Any, *columns: str | None) -> nw.DataFrame[Any]:
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TableError(
            f"frame must be a pandas, polars or pyarrow table, got {type(frame).__name__}"
        ) from None
    named = [column for column in columns if column is not None]
    require(table.columns, named)
    if len(table) == 0:
        raise TableError("the table has no rows")
    return table.select(dict.fromkeys(named))


def require(present: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table without a needed column, listing those it has."""
    missing = [name for name in needed if name not in present]
    odd = any(len(name) > 60 or not name.isprintable() for name in present)
    if missing and (odd or len(missing) == len(needed) > 1):  # the "names" may be somebody's data
        raise TableError(f"there is no column {missing[0]!r}: is the first line of the table a header?")
    if missing:
        raise TableError(f"there is no column {missing[0]!r}; the table has {', '.join(present)}")


def _amounts(table: nw.DataFrame[Any], weight: str | None) -> Any:
    """The weight column as finite non-negative doubles, or ones."""
    if weight is None:
        return np.ones(len(table))
    kind = table[weight].dtype
    if not (kind.is_numeric() or kind in (nw.String, nw.Categorical, nw.Enum)):
        raise TableError(f"column {weight!r} must hold numbers, it holds {kind}")
    try:
        amount = table[weight].cast(nw.Float64()).to_numpy().astype(np.float64)
    except Exception:  # each backend has its own conversion error, which would quote the data …
        amount = None
    if amount is None:  # … and would stay attached to an error raised inside the except clause
        raise TableError(f"column {weight!r} must hold numbers")
    wrong = int(np.count_nonzero(~(np.isfinite(amount) & (amount >= 0))))
    if wrong:
        raise TableError(
            f"column {weight!r} must hold finite numbers of at least 0: {wrong} of {len(amount)} rows do not"
        )
    return amount


def _codes(column: nw.Series[Any], name: str) -> tuple[list[Any], Any]:
    """The distinct values in sorted order, and the position of each row's value among them."""
    missing = int(column.null_count())
    if missing:
        raise TableError(f"column {name!r} has {missing} missing values")
    kind = column.dtype
    if not (kind.is_integer() or kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)):
        raise TableError(f"column {name!r} must hold text or whole numbers, it holds {kind}")
    try:
        values, codes = np.unique(column.to_numpy(), return_inverse=True)
    except TypeError:
        values = None
    if values is None:
        raise TableError(f"column {name!r} must hold text or whole numbers, it holds a mixture")
    return values.tolist(), codes
