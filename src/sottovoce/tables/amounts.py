"""Which column holds the amounts; and whether one does that nobody has named.

A column of counts under a name of its own would be overlooked, and every row counted once: a wrong answer
without a word. So the commands ask where a column of numbers beside the items looks like counts. It does if
its name has a word for counts, or if no two rows name the same thing, as in a table that was counted already,
and its numbers are whole; but not if its name says that it is something else, such as an id, a time, a rating
or a price, if all its numbers are the same, none is above 1, or they only number the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import TableError
from .decimals import as_doubles
from .dialect import Dialect
from .files import scan_table
from .frames import ask_reader
from .header import ROWS, are_plain

PUBLIC_AMOUNTS = ("count", "weight", "probability")
PRIVATE_AMOUNTS = ("weight", "count")
LARGEST_COUNT = 1e8
"""Larger whole numbers are rather times or ids."""
_COUNTS = """
n counts cnt weights freq frequency frequencies times total totals number num nr quantity qty amount amounts
views plays visits hits clicks purchases sales listens occurrences ratings votes anzahl menge nombre cantidad
"""
_SHARES = "p prob probs probabilities share shares fraction proportion percent percentage"
_NO_COUNTS = """
id ids uid key code index idx row rank position order time timestamp ts date day week month year hour minute
second age zip postcode phone rating score stars grade price cost lat lon lng latitude longitude version label
class cluster group user item
"""
COUNTS, SHARES, NO_COUNTS = (frozenset(words.split()) for words in (_COUNTS, _SHARES, _NO_COUNTS))
"""Words in names of columns: of counts, of shares, and of what is neither."""


def amount_column(columns: list[str], given: str | None, usual: tuple[str, ...]) -> str | None:
    """The column of amounts: the one named, else the first of the usual names, in any case of letters."""
    if given is not None:
        return given
    folded = {column.casefold(): column for column in reversed(columns)}
    return next((folded[name] for name in usual if name in folded), None)


def check_counted(
    path: Path, others: Sequence[str], *, distinct: bool, option: str, dialect: Dialect
) -> None:
    """Refuse to count rows once where one of the other columns looks like counts; `option` names the column.

    `distinct` says that no two rows name the same user and item.
    """
    others = [
        name for name in others if are_plain([name])
    ]  # what may be data is not printed: not asked about
    if not others:
        return
    facts = ask_reader("amounts", "numbers", path, columns=list(others), dialect=asdict(dialect))
    for name in others:
        if name in facts and looks_like_counts(name, facts[name], distinct):
            raise TableError(
                f"column {name!r} looks like counts beside the items: say --{option} {name} to add it up, "
                f"or --no-{option} to count every row once"
            )


def looks_like_counts(name: str, facts: Sequence[Any], distinct: bool) -> bool:
    """Whether a column is one of counts, from its name and from whether its numbers are whole, and so on."""
    whole, largest, several, numbering = facts
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold()))
    if not several or words & NO_COUNTS or name.casefold().endswith("id"):
        return False
    if words & SHARES:
        return True
    if largest <= 1:
        return False
    if words & COUNTS:
        return True
    return bool(distinct and whole and largest < LARGEST_COUNT and not numbering)


def numbers(path: Path, columns: Sequence[str], dialect: dict[str, Any]) -> dict[str, list[Any]]:
    """Of each column whose first rows hold numbers of at least 0 and nothing else: are they whole, the
    largest, are there several, do they only number the rows. For the reader's process.
    """
    import polars as pl

    given = Dialect(**dialect)
    rows = scan_table(path, given).select(*columns).head(ROWS).collect()
    found: dict[str, list[Any]] = {}
    for name in columns:
        column = rows[name]
        if not (column.dtype.is_numeric() or column.dtype == pl.String):
            continue
        text = column.dtype == pl.String
        values = as_doubles(column, given.decimal) if text else column.cast(pl.Float64, strict=False)
        if len(values) == 0 or values.null_count() or not values.is_finite().all() or values.min() < 0:  # type: ignore[operator]  # a number: none is missing
            continue
        whole = bool((values.floor() == values).all())
        first = values.min()
        numbering = values.n_unique() == len(values) and values.max() == first + len(values) - 1  # type: ignore[operator]  # the same
        found[name] = [whole, float(values.max()), values.n_unique() > 1, bool(numbering and first <= 1)]  # type: ignore[arg-type, operator]  # the same
    return found
