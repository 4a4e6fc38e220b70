"""Counted cells, as an arrow table, become a tally: names turn into codes, and what is wrong is refused.

A cell is a (group, user, item) combination with its rows and amounts; every library's counts arrive in this
form, so this is the one place where missing names, odd types and bad amounts are looked at.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._validate import IntArray
from ..errors import TableError
from .tally import Tally

KEYS = ("group", "user", "item")
LONG = 1 << 20
"""Entries from which a column's names are looked up on two threads."""


def joined(parts: Sequence[Any]) -> Any:
    """The arrow table that a reader's process sent in parts; nothing is copied."""
    return pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(part)).read_all() for part in parts])


def tally_of(
    cells: Any,
    keys: Mapping[str, str],
    sums: Mapping[str, str],
    *,
    as_text: bool,
    long: bool = True,
    lenient: bool = False,
) -> Tally:
    """The tally of cells whose columns are key_group, key_user, key_item, rows, amount and score.

    `keys` and `sums` say what the table calls them, for messages; `as_text` turns whole numbers into text, as
    files do.
    """
    rows = as_array(cells["rows"]).astype(np.intp)
    if len(rows) == 0:
        raise TableError("the table is empty: it has no rows")
    values = {
        key: _amounts(cells, key, f"column {name!r}" if long else "the category columns", rows)
        for key, name in sums.items()
    }
    coded = {
        key: codes_of(cells[f"key_{key}"], name, rows, as_text, lenient=lenient and key == "item")
        for key, name in keys.items()
    }
    given = [coded[key] for key in KEYS if key in coded]
    order, sorted_codes = _order([codes for _, codes in given], [len(names) for names, _ in given])
    nothing = np.zeros(len(rows), dtype=np.intp)
    found = dict(zip([key for key in KEYS if key in coded], sorted_codes, strict=True))
    counts = rows[order]
    amount = values["amount"][order] if "amount" in sums else counts.astype(np.float64)
    return Tally(
        groups=tuple(map(str, coded["group"][0])) if "group" in coded else ("all",),
        users=coded["user"][0] if "user" in coded else None,
        items=tuple(coded["item"][0].tolist()),
        group=found.get("group", nothing),
        user=found.get("user", nothing),
        item=found["item"],
        rows=counts,
        amount=amount,
        score=values["score"][order] if "score" in values else amount,
        by=keys.get("group"),
        long=long,
    )


def _order(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, list[IntArray]]:
    """The order of the cells by their codes, the first code first, and the codes in that order.

    No two cells have the same codes. Codes and the cell's own number are packed into one whole number where
    63 bits are enough: sorting numbers, and taking them apart again, is several times as fast as sorting by
    several keys and fetching each code from where it stood.
    """
    number = np.arange(len(codes[0]))
    bits = len(number).bit_length()
    if math.prod(sizes) << bits > 1 << 63:
        order = np.lexsort(tuple(reversed(codes)))
        return order, [code[order] for code in codes]
    packed = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        packed = packed * size + code
    packed = (packed << bits) | number
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    ordered: list[IntArray] = []
    for size in reversed(sizes[1:]):
        packed, code = np.divmod(packed, size)
        ordered.insert(0, code)
    return order, [packed, *ordered]


def as_array(column: Any) -> Any:
    """A column of numbers without nulls as an array."""
    # Not arrow's to_numpy: it imports pandas, for a second, and swallows a Ctrl-C that comes meanwhile.
    with warnings.catch_warnings():  # numpy before 2.3 asks in a way that arrow warns of, and gets the same
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.from_dlpack(column.combine_chunks() if hasattr(column, "combine_chunks") else column)


def _amounts(cells: Any, key: str, what: str, rows: IntArray) -> Any:
    """Amounts per cell, refused if a row's was missing, negative or not finite, or if their sum is not."""
    total = int(rows.sum())
    wrong = total - int(pc.sum(cells[f"fine_{key}"]).as_py())
    if wrong:
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")
    amounts = as_array(cells[key]).astype(np.float64)
    with np.errstate(over="ignore"):
        check_sum(what, float(amounts.sum()))
    return amounts


def check_sum(what: str, total: float) -> None:
    """Refuse amounts that add up beyond what a double holds: shares of infinity are no distribution."""
    if not np.isfinite(total):
        raise TableError(f"{what} adds up to infinity: divide it by a constant first")


def codes_of(
    column: Any, name: str, rows: IntArray | None, as_text: bool, *, lenient: bool = False
) -> tuple[Any, IntArray]:
    """The distinct names in sorted order, and the position of each entry's name among them.

    An entry stands for so many `rows`, or for one each. A missing name is refused, or is None where `lenient`
    says so.
    """
    if lenient and column.null_count:
        return with_none(*codes_of(column.drop_null(), name, None, as_text), column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    check_missing(column, name, rows, in_file=as_text)
    values, indices = _distinct(_as_names(column, name).combine_chunks())
    values = values.cast(pa.large_string()) if as_text else values
    order = pc.array_sort_indices(values)
    place = np.empty(len(order), dtype=np.intp)
    place[as_array(order)] = np.arange(len(order))
    names = np.empty(len(order), dtype=object)
    names[:] = values.take(order).to_pylist()
    return names, place[indices]


def with_none(names: Any, codes: IntArray, column: Any) -> tuple[Any, IntArray]:
    """The names and codes of a column, from those of the entries that are not missing."""
    there = ~as_array(column.is_null().cast(pa.uint8())).astype(bool)
    found = np.full(len(column), len(names), dtype=np.intp)
    found[there] = codes
    with_absent = np.empty(len(names) + 1, dtype=object)
    with_absent[:-1] = names
    return with_absent, found


def check_missing(column: Any, name: str, rows: IntArray | None, *, in_file: bool) -> None:
    """Refuse a column with missing names, and say how many rows have none."""
    missing = column.null_count
    if missing and rows is not None:
        missing = int(rows[as_array(column.is_null().cast(pa.uint8())) > 0].sum())
    if missing:
        advice = ": fill them in, or leave those rows out (--missing drop)" if in_file else ""
        raise TableError(f"column {name!r} has {missing} missing values{advice}")


def _distinct(column: Any) -> tuple[Any, IntArray]:
    """The distinct values of a column, and where each entry's stands among them; a long one in two halves."""
    if len(column) < LONG:
        coded = column.dictionary_encode()
        return coded.dictionary, as_array(coded.indices)
    middle = len(column) // 2
    with ThreadPoolExecutor(max_workers=2) as pool:
        halves = list(pool.map(lambda part: part.dictionary_encode(), (column[:middle], column[middle:])))
    both = pa.concat_arrays([half.dictionary for half in halves]).dictionary_encode()
    places, first = as_array(both.indices), len(halves[0].dictionary)
    own = (places[:first], places[first:])
    indices = [place[as_array(half.indices)] for place, half in zip(own, halves, strict=True)]
    return both.dictionary, np.concatenate(indices)


def _as_names(column: Any, name: str) -> Any:
    """A column of text or of whole numbers, whatever it was stored as; anything else is refused."""
    kind = column.type
    if pa.types.is_floating(kind):
        fits = pc.all(pc.less(pc.abs(column), 2.0**53)).as_py()
        if not fits or not pc.all(pc.equal(pc.floor(column), column)).as_py():
            odd = "fractions" if fits else "floats beyond 2^53"
            raise TableError(f"column {name!r} must hold text or whole numbers, it holds {odd}")
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    elif not pa.types.is_integer(kind):
        found = (
            str(kind).split("<")[0].split("(")[0].split("[")[0]
        )  # the rest may be field names, that is, data
        raise TableError(f"column {name!r} must hold text or whole numbers, it holds {found}")
    return column
