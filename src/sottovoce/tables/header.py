"""Whether the names of a table's columns may be shown: only if they are names, and not somebody's data.

A table without a header, a damaged or a transposed one has data where names should be. So names are listed
only where something tells that they are names, and nothing tells that they are values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from ..errors import TableError

ROWS = 10_000
"""Rows below the header that are looked at."""
MOST_NAMES, LONGEST_NAME, LONGEST_LIST = 20, 30, 200

Head = Callable[[], Mapping[str, Sequence[Any]]]
"""Gives the first rows of a table by column; called only where a column is missing."""


def missing_column(present: Sequence[str], needed: Sequence[str], head: Head | None) -> TableError | None:
    """The error for a table without a needed column, or None; it lists the columns if they may be shown."""
    missing = [name for name in needed if name not in present]
    if not missing:
        return None
    if may_be_listed(present, needed, head):
        meant = _meant(missing[0], present)
        return TableError(f"there is no column {missing[0]!r}; the table has {', '.join(present)}{meant}")
    return TableError(f"there is no column {missing[0]!r}: is the first line of the table a header?")


def may_be_listed(present: Sequence[str], needed: Sequence[str], head: Head | None) -> bool:
    """Whether these are names that may be shown, where `needed` are names that a column should have."""
    missing = [name for name in needed if name not in present]
    return are_plain(present) and len(missing) < max(len(needed), 2) and _is_header(present, needed, head)


def _meant(name: str, present: Sequence[str]) -> str:
    """The nearest of the names that are there, where one is near."""
    folded = {one.casefold(): one for one in present}
    near = get_close_matches(name.casefold(), list(folded), n=1)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def are_plain(names: Sequence[str]) -> bool:
    """Whether these are few short names that can be printed and are no numbers."""
    return (
        len(names) <= MOST_NAMES
        and sum(map(len, names)) + 2 * len(names) <= LONGEST_LIST
        and all(name and len(name) <= LONGEST_NAME and name.isprintable() for name in names)
        and not any(_is_number(name) or any(map(str.isdigit, name[:1])) for name in names)
    )


def _is_header(present: Sequence[str], needed: Sequence[str], head: Head | None) -> bool:
    """Whether what lies below tells that these are names; if it cannot be looked at, it does not."""
    try:
        rows = {} if head is None else {name: list(values) for name, values in head().items()}
        if not any(rows.values()):
            return False
        forbidden = {name.strip().casefold() for name in (*present, *needed)}
        if any(str(value).strip().casefold() in forbidden for values in rows.values() for value in values):
            return False
        # A table without a header has a row as its names: none of them is a needed name, and above a column
        # of numbers stands a number.
        return any(name in present for name in needed) or any(map(_are_numbers, rows.values()))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a reader's panic is no Exception; the message without the list is always right
        return False


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(map(_is_number, values))


def _is_number(value: object) -> bool:
    text = str(value).strip().removesuffix("%")
    for one in (text.replace(",", "."), text.replace(".", "").replace(",", ".")):  # with thousands apart
        with suppress(ValueError):
            float(one)
            return True
    return False
