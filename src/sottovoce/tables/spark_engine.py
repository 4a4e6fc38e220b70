"""How Spark counts a table and hands it on: batches that hold all counts of their users.

Spark counts the rows and brings all counts of a user to one place; there Arrow batches go into the very
functions that run in one process. What is wrong is counted by the workers, and raised here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .._validate import FloatArray
from ..errors import TableError
from ..users import Users
from . import tally
from .cells import check_sum
from .frames import Columns, counted_frame, to_tally
from .options import REFUSE_ALL, ReadingOptions
from .spark_session import translate_errors

CELLS = 1 << 18
"""Counts per batch of complete users: some tens of megabytes in a worker, whatever the table's size."""

SUMS, LEFT_OUT, SEVERAL = (-1, -2), -3, -4
"""What a batch reports beside each sampler's values (0, 1, …): the users' moments, and counters."""

FOUND = "group string, what int, values array<double>"
_SUMMARY = f"{FOUND}, users long, mean double, median double, p90 double, p99 double, maximum double"
Found = list[tuple[str, int, Any]]


@dataclass(frozen=True)
class Reading:
    """How a table becomes users: its columns, what they are read against, and the options."""

    columns: Columns
    known: Mapping[str, tally.Categories]
    options: ReadingOptions = REFUSE_ALL
    as_text: bool = False

    def __post_init__(self) -> None:
        if self.options.unknown == "other":
            for one in self.known.values():
                tally.other_category(one, self.options.other)

    def users(self, cells: Any) -> tuple[dict[str, Users], Found]:
        """The users of a batch by group, in a worker, and what the driver has to know of them all."""
        options = self.options
        counted = to_tally(cells, self.columns, as_text=self.as_text)
        if np.bincount(counted.user, counted.rows).max() < options.minimum_rows:
            return {}, []
        counted = tally.with_minimum_rows(counted, options.minimum_rows)
        several = [float(tally.in_several_groups(counted)), float(tally.people(counted))]
        users = {
            name: tally.users_of(
                counted,
                counted.groups.index(name),
                self.known[name],
                unknown=options.unknown,
                other=options.other,
            )
            for name in tally.filled_groups(counted)
            if name in self.known
        }
        found: Found = [("", SEVERAL, several)]
        for name, one in users.items():
            found.append((name, LEFT_OUT, [float(one.dropped), float(one.refused), float(len(one))]))
        return users, found


def columns_named(item: str | Sequence[str], user: str, weight: str | None, by: str | None) -> Columns:
    """The columns of a table; several items are those of a wide one."""
    return Columns(item if isinstance(item, str) else tuple(item), user, weight, by)


def to_arrow(found: Found) -> Any:
    """What a batch reports, as the rows that cross the network."""
    return pa.table(
        {
            "group": pa.array([name for name, _, _ in found], pa.string()),
            "what": pa.array([what for _, what, _ in found], pa.int32()),
            "values": pa.array([np.asarray(values) for _, _, values in found], pa.list_(pa.float64())),
        }
    )


@contextmanager
def counted_cells(frame: Any, reading: Reading) -> Iterator[tuple[Any, int]]:
    """The counts, held by Spark while they are needed, checked as in one process; and how many rows."""
    cells = translate_errors(lambda: counted_frame(frame, reading.columns).to_native().persist())
    try:
        rows = translate_errors(lambda: _check_cells(cells, reading))
        yield cells, rows
    finally:
        cells.unpersist()


def _check_cells(cells: Any, reading: Reading) -> int:
    from pyspark.sql import functions as F

    shown = {"group": reading.columns.by, "user": reading.columns.user, "item": reading.columns.item}
    keys = {key: shown[key] for key in ("group", "user", "item") if f"key_{key}" in cells.columns}
    for key, name in keys.items():
        kind = cells.schema[f"key_{key}"].dataType.typeName()
        if kind in ("float", "double", "decimal"):
            raise TableError(f"column {name!r} must hold text or whole numbers, it holds {kind}")
    absent = [F.sum(F.when(F.col(f"key_{key}").isNull(), F.col("rows")).otherwise(0)) for key in keys]
    fine = F.sum("fine_amount" if "fine_amount" in cells.columns else "rows")
    added = F.sum("amount" if "amount" in cells.columns else "rows")
    total, right, amounts, *missing = cells.agg(F.sum("rows"), fine, added, *absent).first()
    if not total:
        raise TableError("the table is empty: it has no rows")
    if right != total:
        what = f"column {reading.columns.weight!r}" if reading.columns.weight else "the category columns"
        wrong = total - right
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")
    check_sum("the weight", float(amounts))
    for (_, name), gone in zip(keys.items(), missing, strict=True):
        if gone:
            raise TableError(f"column {name!r} has {gone} missing values")
    if "group" in keys:
        there = [str(row[0]) for row in cells.select("key_group").distinct().collect()]
        tally.check_groups(there, reading.known, reading.options.unknown_groups)
    return int(total)


def in_batches(cells: Any, work: Callable[[Any], Any], schema: str) -> Any:
    """`work` on batches that hold all counts of their users."""
    from pyspark.sql import functions as F

    least = 2 * cells.sparkSession.sparkContext.defaultParallelism
    number = max(least, cells.count() // CELLS + 1)
    parted = cells.withColumn("batch", F.pmod(F.hash("key_user"), F.lit(number))).repartition(number, "batch")
    return parted.groupBy("batch").applyInArrow(lambda batch: work(batch.drop_columns(["batch"])), schema)


def summaries(
    found: Any, summarise: Callable[[FloatArray], dict[str, float]]
) -> dict[tuple[str, int], dict[str, Any]]:
    """One summary per group and sampler: the function that summarises in one process, run by a worker."""

    def summary(parts: Any) -> Any:
        what = parts["what"][0].as_py()
        row: dict[str, Any] = dict.fromkeys(("mean", "median", "p90", "p99", "maximum"))
        if what >= 0:
            values = parts["values"].combine_chunks().flatten().to_numpy()
            row = {"values": None, "users": len(values), **summarise(values)}
        else:
            sums = np.sum(parts["values"].to_pylist(), axis=0)
            row = {"values": sums.tolist(), "users": 0, **row}
        return pa.Table.from_pylist(
            [{"group": parts["group"][0].as_py(), "what": what, **row}], _arrow_summary()
        )

    rows = found.groupBy("group", "what").applyInArrow(summary, _SUMMARY).toArrow().to_pylist()
    return {(row["group"], row["what"]): row for row in rows}


def _arrow_summary() -> Any:
    numbers = [(name, pa.float64()) for name in ("mean", "median", "p90", "p99", "maximum")]
    head = [("group", pa.string()), ("what", pa.int32()), ("values", pa.list_(pa.float64()))]
    return pa.schema([*head, ("users", pa.int64()), *numbers])


def check_left_out(found: Mapping[tuple[str, int], Mapping[str, Any]], reading: Reading, rows: int) -> int:
    """Raise what would have been raised in one process; return how many users there are."""
    counters = [row["values"] for (_, what), row in found.items() if what == LEFT_OUT]
    dropped, refused, people = (int(sum(one[i] for one in counters)) for i in range(3))
    several = [row["values"] for (_, what), row in found.items() if what == SEVERAL]
    options = reading.options
    for in_several, everybody in several:
        tally.check_one_group(int(in_several), int(everybody), reading.columns.by, options.several_groups)
    tally.check_left_out(dropped, refused, people, rows, unknown=options.unknown, empty=options.empty)
    if not people:
        raise TableError("no user has a usable record")
    return people
