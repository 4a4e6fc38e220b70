"""Whether a table of public data looks like histories of people, whatever its columns are called.

A column that names people has values that recur with several items: one person, several records. So does a
column of groups; but groups come as a full cross table, each item once for each value, and histories do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .files import collecting, scan_table

ROWS = 1_000_000
"""Rows that are looked at, the first of the file."""


@dataclass(frozen=True)
class Recurring:
    """Columns whose values recur with several items: those like people, and those like groups."""

    people: tuple[str, ...]
    groups: tuple[str, ...]


def recurring_columns(path: Path, item: str, others: Sequence[str]) -> Recurring:
    """Sort the columns beside items and amounts by what their values look like."""
    import polars as pl

    people: list[str] = []
    groups: list[str] = []
    table = scan_table(path).head(ROWS)
    for name in others:
        pairs = table.select(pl.col(name).alias("value"), pl.col(item).alias("item")).drop_nulls()
        counts = pairs.group_by("value", "item").len("rows")
        facts = counts.select(
            pl.len().alias("pairs"),
            pl.col("value").n_unique().alias("values"),
            pl.col("item").n_unique().alias("items"),
            pl.col("rows").n_unique().alias("kinds"),
        )
        found = facts.collect(**collecting(path)).row(0, named=True)
        if found["pairs"] > found["values"] > 1:
            crossed = found["pairs"] == found["values"] * found["items"] and found["kinds"] == 1
            (groups if crossed else people).append(name)
    return Recurring(tuple(people), tuple(groups))
