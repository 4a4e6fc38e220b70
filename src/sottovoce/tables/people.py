"""Whether a table of public data looks like histories of people, whatever its columns are called.

A column that names people has values that recur with several items: one person, several records. So does a
column of groups; but groups come as a full cross table, each item once for each value, and histories do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .files import collecting, scan_table
from .frames import ask_reader

ROWS = 1_000_000
"""Rows that are looked at, the first of the file."""


@dataclass(frozen=True)
class Recurring:
    """Columns whose values recur with several items: those like people, and those like groups."""

    people: tuple[str, ...]
    groups: tuple[str, ...]


def recurring_columns(path: Path, item: str, others: Sequence[str]) -> Recurring:
    """Sort the columns beside items and amounts by what their values look like."""
    found = ask_reader("people", "recurring", path, item=item, others=list(others)) if others else {}
    return Recurring(tuple(found.get("people", ())), tuple(found.get("groups", ())))


def recurring(path: Path, item: str, others: Sequence[str]) -> dict[str, list[str]]:
    """The columns whose values recur, by what they look like; for the reader's process."""
    import polars as pl

    kinds: dict[str, list[str]] = {"people": [], "groups": []}
    table = scan_table(path).head(ROWS)
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
            )
        )
        found = facts.collect(**collecting(path)).row(0, named=True)
        if found["pairs"] > found["values"] > 1:
            crossed = found["pairs"] == found["values"] * found["items"] and found["counts"] == 1
            kinds["groups" if crossed else "people"].append(name)
    return kinds
