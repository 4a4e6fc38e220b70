"""Tables in, priors and sparse users out: the only file that knows dataframes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from scipy import sparse

from . import _validate
from .errors import TableError, UserDataError
from .prior import Category, Prior

UNKNOWN = ("error", "drop")


@dataclass(frozen=True, eq=False, repr=False)
class Users:
    """Private users as sparse rows over a prior's categories. Printing one shows sizes, no data."""

    ids: tuple[Category, ...]
    p: sparse.csr_array[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Users({len(self.ids)} users over {self.p.shape[1]} categories)"


def read_table(path: str | Path) -> pl.DataFrame:
    """Read CSV (also gzip), Parquet or JSON records by extension; CSV columns arrive as text.

    Text, because guessing types would turn a category "007" into 7 and a device "1e10" into a float.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    readers: dict[str, Any] = {
        ".csv": lambda: pl.read_csv(path, infer_schema=False),
        ".tsv": lambda: pl.read_csv(path, infer_schema=False, separator="\t"),
        ".parquet": lambda: pl.read_parquet(path),
        ".json": lambda: pl.read_json(path),
    }
    if not path.is_file():
        raise TableError(f"{path} cannot be read: there is no such file")
    if kind not in readers:
        known = ", ".join(readers)
        raise TableError(f"{path} cannot be read: its name must end in one of {known} (or .csv.gz)")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    try:
        table: pl.DataFrame = readers[kind]()
    except Exception as problem:  # every reader has its own errors; their text may quote data
        raise TableError(f"{path} cannot be read as {kind[1:]}: {type(problem).__name__}") from None
    if table.height == 0:
        raise TableError(f"{path} is empty: it has a header and no rows")
    return table


def read_priors(
    path: str | Path, *, item: str, count: str | None, by: str | None, smoothing: float = 0.0
) -> dict[str, Prior]:
    """Read one prior per group (or one, under "all") from a table or a JSON object of public data.

    The table has the column `item` and, if given or named count, weight or probability, a column of
    amounts; without one every row counts once. A JSON file may be {category: amount}, or with `by`
    {group: {category: amount}}.
    """
    path = Path(path)
    if path.suffix.lower() == ".json" and path.is_file():
        loaded = _json(path)
        if isinstance(loaded, dict):
            return _json_priors(loaded, path, by, smoothing)
    table = read_table(path)
    if count is None:
        count = next((c for c in ("count", "weight", "probability") if c in table.columns), None)
    text = _as_text(table, item, by)
    built = build_prior(text, item=item, weight=count, by=by, smoothing=smoothing)
    return built if isinstance(built, dict) else {"all": built}


def read_user_groups(
    path: str | Path,
    priors: Mapping[str, Prior],
    *,
    user: str,
    item: str,
    weight: str | None,
    by: str | None,
    unknown: str = "error",
) -> dict[str, Users]:
    """Read the users of every group from a long table file, against that group's prior."""
    table = _as_text(read_table(path), user, item, by)
    if by is None:
        (prior,) = priors.values()
        return {"all": read_users(table, user=user, item=item, weight=weight, prior=prior, unknown=unknown)}
    if table[by].null_count():
        raise TableError(f"column {by!r} has {table[by].null_count()} missing values")
    groups = {str(name[0]): part for name, part in table.partition_by(by, as_dict=True).items()}
    missing = sorted(set(groups) - set(priors))
    if missing:
        raise TableError(f"no prior for group {missing[0]!r} ({len(missing)} of {len(groups)} groups)")
    return {
        name: read_users(
            groups[name], user=user, item=item, weight=weight, prior=priors[name], unknown=unknown
        )
        for name in priors
        if name in groups
    }


def build_prior(
    frame: Any,
    *,
    item: str,
    weight: str | None = None,
    by: str | None = None,
    smoothing: float = 0.0,
) -> Any:
    """Count the public rows of a dataframe into a Prior, or into one Prior per group.

    Guarantees
        The data must be public: building a prior from the users it will serve reveals them. With
        `by`, all groups share the same categories, those of the whole table.

    >>> frame = pl.DataFrame({"genre": ["War", "Drama", "Drama", "Drama"]})
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
    prior: Prior,
    weight: str | None = None,
    unknown: str = "error",
) -> Users:
    """Turn a long dataframe (a row per user and record) into one distribution per user.

    Parameters
        user, item, weight: column names; without a weight every row counts once.
        unknown: what to do with items the prior does not know, "error" or "drop".

    Raises
        TableError: a column is missing or malformed.
        UserDataError: unknown items, negative weights, a user without mass. How many, never which.

    >>> frame = pl.DataFrame({"who": ["ann", "ann", "bob"], "genre": ["War", "Drama", "War"]})
    >>> prior = Prior(["War", "Drama"], [0.5, 0.5])
    >>> read_users(frame, user="who", item="genre", prior=prior).p.toarray().tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    _validate.one_of(UNKNOWN, unknown=unknown)
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
        (amount[keep], (user_codes[keep], position[keep])), shape=(len(ids), len(prior))
    ).tocsr()
    totals = np.asarray(counts.sum(axis=1)).ravel()
    empty = int(np.count_nonzero(totals <= 0))
    if empty:
        raise UserDataError(f"{empty} of {len(ids)} users have no usable record")
    counts.data /= np.repeat(totals, np.diff(counts.indptr))
    return Users(tuple(ids), counts)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8") or "null")
    except (ValueError, OSError) as problem:
        raise TableError(f"{path} cannot be read as json: {type(problem).__name__}") from None


def _json_priors(loaded: dict[str, Any], path: Path, by: str | None, smoothing: float) -> dict[str, Prior]:
    groups: dict[str, Any] = loaded if by is not None else {"all": loaded}
    if not all(isinstance(amounts, dict) for amounts in groups.values()):
        raise TableError(f"{path} must hold {{group: {{category: amount}}}} when --by is given")
    return {name: Prior.from_counts(amounts, smoothing=smoothing) for name, amounts in groups.items()}


def _as_text(table: pl.DataFrame, *columns: str | None) -> pl.DataFrame:
    """Identifiers as text, so that the same category in CSV and Parquet is the same category."""
    named = [column for column in columns if column is not None]
    _require(table.columns, named)
    return table.with_columns(pl.col(named).cast(pl.String))


def _columns(frame: Any, *columns: str | None) -> nw.DataFrame[Any]:
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TableError(
            f"frame must be a pandas, polars or pyarrow table, got {type(frame).__name__}"
        ) from None
    named = [column for column in columns if column is not None]
    _require(table.columns, named)
    if len(table) == 0:
        raise TableError("the table has no rows")
    return table.select(dict.fromkeys(named))


def _require(present: Sequence[str], needed: Sequence[str]) -> None:
    for name in needed:
        if name not in present:
            raise TableError(f"there is no column {name!r}; the table has {', '.join(present)}")


def _amounts(table: nw.DataFrame[Any], weight: str | None) -> Any:
    """The weight column as finite non-negative doubles, or ones."""
    if weight is None:
        return np.ones(len(table))
    try:
        amount = table[weight].cast(nw.Float64()).to_numpy().astype(np.float64)
    except Exception:  # each backend has its own conversion error, which would quote the data
        raise TableError(f"column {weight!r} must hold numbers") from None
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
    values, codes = np.unique(column.to_numpy(), return_inverse=True)
    return values.tolist(), codes
