"""Runs of rows of the same user, as the reader's process sends them, become a tally.

The other way to a tally is `cells`, for rows that were grouped by their own library. Both refuse the same
tables with the same words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._validate import IntArray
from ..errors import TableError
from .cells import KEYS, as_array, check_missing, codes_of, joined, with_none
from .tally import Tally

SHORT, LARGEST = 1 << 32, 1 << 63
"""Combinations of codes that are packed into 32 bits, and into 64."""


def as_cells(parts: Sequence[Any]) -> Any:
    """The one table that the parts of an answer make, if they are counted cells; None if they are runs."""
    counted = "key_item" in pa.ipc.open_stream(pa.py_buffer(parts[0])).schema.names
    return joined(parts) if counted else None


def tally_of_runs(
    parts: Sequence[Any], keys: Mapping[str, str], *, as_text: bool, lenient: bool = False
) -> Tally:
    """The tally of a file whose rows were sent by `runs.sorted_runs`.

    `keys` say what the table calls its columns, for messages; `as_text` turns whole numbers into text.
    """
    tables = _tables(parts)
    runs, records = tables["key_user"], tables["key_item"]
    rows = as_array(runs["rows"])
    if len(rows) == 0:
        raise TableError("the table is empty: it has no rows")
    names: dict[str, Any] = {}
    codes: dict[str, IntArray] = {}
    for key, name in keys.items():  # group, user, item: the first one that is wrong is named
        if key == "user":
            names[key], codes[key] = codes_of(runs["key_user"], name, rows, as_text)
        else:
            column, known = records[f"key_{key}"], tables.get(f"code_{key}")
            absent = lenient and key == "item"
            names[key], codes[key] = _record_codes(column, known, key, name, as_text, absent)
    given = [key for key in KEYS if key in keys]
    sizes = [len(names[key]) for key in given]
    found, counts = _counted([codes[key] for key in given], sizes, given.index("user"), rows)
    place = dict(zip(given, found, strict=True))
    amount = counts.astype(np.float64)
    return Tally(
        groups=tuple(map(str, names["group"])) if "group" in names else ("all",),
        users=names["user"],
        items=tuple(names["item"].tolist()),
        group=place["group"] if "group" in place else np.zeros(len(counts), dtype=np.intp),
        user=place["user"],
        item=place["item"],
        rows=counts,
        amount=amount,
        score=amount,
        by=keys.get("group"),
    )


def _tables(parts: Sequence[Any]) -> dict[str, Any]:
    """The tables that were sent, each by the first of its columns that says which it is."""
    own = ("key_user", "code_group", "code_item", "key_item")
    found: dict[str, list[Any]] = {}
    for part in parts:
        table = joined([part])
        found.setdefault(next(name for name in own if name in table.column_names), []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _record_codes(
    column: Any, known: Any, key: str, name: str, as_text: bool, lenient: bool
) -> tuple[Any, IntArray]:
    """The distinct names in sorted order, and the position of each record's name among them.

    `known` has the names of a column of codes; without it the column has the names themselves.
    """
    if known is None:
        return codes_of(column, name, None, as_text, lenient=lenient)
    if lenient and column.null_count:
        known = known.filter(known[f"name_{key}"].is_valid())
        return with_none(*_record_codes(column.drop_null(), known, key, name, as_text, False), column)
    check_missing(column, name, None, in_file=as_text)
    names, places = codes_of(known[f"name_{key}"], name, None, as_text)
    sent = as_array(known[f"code_{key}"])
    place = np.zeros(int(sent.max(initial=0)) + 1, dtype=np.uint32)
    place[sent] = places
    return names, place[as_array(column)]


def _counted(
    codes: Sequence[IntArray], sizes: Sequence[int], user: int, rows: IntArray
) -> tuple[list[IntArray], IntArray]:
    """The codes of each distinct combination, in order, and how many records have it.

    The codes of `user` are those of the runs, which are `rows` long, the others those of the records. They
    are packed into one whole number where 64 bits are enough, and into a short one where 32 are: the sort
    is then half the work.
    """
    total = math.prod(sizes)
    kind = np.uint32 if total <= SHORT else np.uint64
    if total > LARGEST:
        spread = [np.repeat(code, rows) if i == user else code for i, code in enumerate(codes)]
        order = np.lexsort(tuple(reversed(spread)))
        spread = [code[order].astype(np.intp) for code in spread]
        first = np.logical_or.reduce([_changes(code) for code in spread])
        return [code[first] for code in spread], _lengths(first)
    packed: npt.NDArray[Any] = np.zeros(1, dtype=kind)
    weight = total
    for i, (code, size) in enumerate(zip(codes, sizes, strict=True)):
        weight //= size
        part: npt.NDArray[Any] = code.astype(kind)
        part *= kind(weight)
        packed = packed + (np.repeat(part, rows) if i == user else part)
    packed.sort()
    first = _changes(packed)
    counts, packed = _lengths(first), packed[first]
    found: list[IntArray] = []
    for size in reversed(sizes[1:]):
        packed, code = np.divmod(packed, kind(size))
        found.insert(0, code.astype(np.intp))
    return [packed.astype(np.intp), *found], counts


def _changes(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where an entry differs from the one before it; the first one does."""
    first = np.ones(len(ascending), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return first


def _lengths(first: npt.NDArray[np.bool_]) -> IntArray:
    """How long each stretch is that begins where `first` says so."""
    return np.diff(np.flatnonzero(first), append=len(first))
