"""Whether a table of public data looks like histories of people, whatever its columns are called.

A column that names people has values that recur with several items: one person, several records. So does a
column of groups; but groups are few and come as a full cross table, each item once for each value, and
histories do not. A table with each item in one row is a list of items, whatever its other columns say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .dialect import FOUND, Dialect
from .files import collecting, kind_of, scan_table
from .frames import ask_reader

ROWS = 200_000
"""Rows that are looked at, evenly over the file."""
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
MOST_GROUPS = 100
"""Values of a column that may be groups; more are people."""


def have_whole_names(path: Path, user: str, names: Iterable[object], dialect: Dialect = FOUND) -> bool:
    """Whether users are named by whole numbers where they come from, so that results can name them so.

    In a text table they are if every name is the usual text of a whole number (not 007); else the column
    tells.
    """
    if not all(isinstance(name, str) and _WHOLE.fullmatch(name) for name in names):
        return False
    if kind_of(path) in (".csv", ".tsv"):
        return True
    return user in ask_reader("files", "number_columns", path, dialect=asdict(dialect))


@dataclass(frozen=True)
class Recurring:
    """Columns whose values recur with several items: those like people, and those like groups."""

    people: tuple[str, ...]
    groups: tuple[str, ...]


def recurring_columns(
    path: Path, item: str, others: Sequence[str], rows: int, dialect: Dialect = FOUND
) -> Recurring:
    """Sort the columns beside items and amounts by what their values look like; `rows` has the table."""
    every = -(-rows // ROWS)
    asked = {"item": item, "others": list(others), "every": every, "dialect": asdict(dialect)}
    found = ask_reader("people", "recurring", path, **asked) if others else {}
    return Recurring(tuple(found.get("people", ())), tuple(found.get("groups", ())))


def recurring(
    path: Path, item: str, others: Sequence[str], every: int, dialect: dict[str, Any]
) -> dict[str, list[str]]:
    """The columns whose values recur, by what they look like; for the reader's process."""
    import polars as pl

    kinds: dict[str, list[str]] = {"people": [], "groups": []}
    rows = scan_table(path, Dialect(**dialect)).select(item, *others)
    if every > 1:
        rows = rows.with_row_index("row number").filter(pl.col("row number") % every == 0)
    table = rows.collect(**collecting(path)).lazy()  # the file is scanned once, whatever it has of columns
    for name in others:
        pairs = table.select(pl.col(name).alias("value"), pl.col(item).alias("item")).drop_nulls()
        facts = (
            pairs.group_by("value", "item")
            .len("rows")
            .select(
                pl.len().alias("pairs"),
                pl.col("value").n_unique().alias("values"),
                pl.col("item").n_unique().alias("items"),
                pl.col("rows").n_unique().alias("counts"),
                pl.col("rows").sum().alias("rows"),
            )
        )
        found = facts.collect().row(0, named=True)
        if found["pairs"] > found["values"] > 1 and found["items"] < found["rows"]:
            full = found["pairs"] == found["values"] * found["items"] and found["counts"] == 1
            crossed = full and found["values"] <= MOST_GROUPS
            kinds["groups" if crossed else "people"].append(name)
    return kinds
