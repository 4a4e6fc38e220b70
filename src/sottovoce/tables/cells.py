"""Counted cells, as an arrow table, become a tally: names turn into codes, and what is wrong is refused.

A cell is a (group, user, item) combination with its rows and amounts; every library's counts arrive in this
form, so this is the one place where missing names, odd types and bad amounts are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._validate import IntArray
from ..errors import TableError
from .tally import Tally

KEYS = ("group", "user", "item")


def joined(parts: Sequence[Any]) -> Any:
    """The arrow table that a reader's process sent in parts; nothing is copied."""
    return pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(part)).read_all() for part in parts])


def tally_of(
    cells: Any, keys: Mapping[str, str], sums: Mapping[str, str], *, as_text: bool, long: bool = True
) -> Tally:
    """The tally of cells whose columns are key_group, key_user, key_item, rows, amount and score.

    `keys` and `sums` say what the table calls them, for messages; `as_text` turns whole numbers into text, as
    files do.
    """
    rows = _array(cells["rows"]).astype(np.intp)
    if len(rows) == 0:
        raise TableError("the table is empty: it has no rows")
    values = {"amount": rows.astype(np.float64)}
    for key, name in sums.items():
        values[key] = _amounts(cells, key, f"column {name!r}" if long else "the category columns", rows)
    coded = {key: _codes(cells[f"key_{key}"], name, rows, as_text) for key, name in keys.items()}
    nothing = np.zeros(len(rows), dtype=np.intp)
    group, user, item = (coded[key][1] if key in coded else nothing for key in KEYS)
    sizes = [len(coded[key][0]) if key in coded else 1 for key in KEYS]
    order = _order([group, user, item], sizes)
    return Tally(
        groups=tuple(map(str, coded["group"][0])) if "group" in coded else ("all",),
        users=coded["user"][0] if "user" in coded else None,
        items=tuple(coded["item"][0].tolist()),
        group=group[order],
        user=user[order],
        item=item[order],
        rows=rows[order],
        amount=values["amount"][order],
        score=values.get("score", values["amount"])[order],
        by=keys.get("group"),
        long=long,
    )


def _order(codes: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """The order of the cells by their codes, the first code first; no two cells have the same codes.

    Codes and the cell's own number are packed into one whole number where 63 bits are enough: sorting numbers
    is several times as fast as sorting by several keys.
    """
    number = np.arange(len(codes[0]))
    bits = len(number).bit_length()
    if math.prod(sizes) << bits > 1 << 63:
        return np.lexsort(tuple(reversed(codes)))
    packed = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        packed = packed * size + code
    packed = (packed << bits) | number
    packed.sort()
    return packed & ((1 << bits) - 1)


def _array(column: Any) -> Any:
    """A column of numbers without nulls as an array."""
    # Not arrow's to_numpy: it imports pandas, for a second, and swallows a Ctrl-C that comes meanwhile.
    return np.from_dlpack(column.combine_chunks() if hasattr(column, "combine_chunks") else column)


def _amounts(cells: Any, key: str, what: str, rows: IntArray) -> Any:
    """Amounts per cell, refused if a row's was missing, negative or not finite, or if their sum is not."""
    total = int(rows.sum())
    wrong = total - int(pc.sum(cells[f"fine_{key}"]).as_py())
    if wrong:
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")
    amounts = _array(cells[key]).astype(np.float64)
    with np.errstate(over="ignore"):
        check_sum(what, float(amounts.sum()))
    return amounts


def check_sum(what: str, total: float) -> None:
    """Refuse amounts that add up beyond what a double holds: shares of infinity are no distribution."""
    if not np.isfinite(total):
        raise TableError(f"{what} adds up to infinity: divide it by a constant first")


def _codes(column: Any, name: str, rows: IntArray, as_text: bool) -> tuple[Any, IntArray]:
    """The distinct names in sorted order, and the position of each cell's name among them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.null_count:
        missing = int(rows[_array(column.is_null().cast(pa.uint8())) > 0].sum())
        raise TableError(f"column {name!r} has {missing} missing values")
    coded = _as_names(column, name, as_text).combine_chunks().dictionary_encode()
    values = coded.dictionary
    order = pc.array_sort_indices(values)
    place = np.empty(len(order), dtype=np.intp)
    place[_array(order)] = np.arange(len(order))
    names = np.empty(len(order), dtype=object)
    names[:] = values.take(order).to_pylist()
    return names, place[_array(coded.indices)]


def _as_names(column: Any, name: str, as_text: bool) -> Any:
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
    return column.cast(pa.large_string()) if as_text else column
