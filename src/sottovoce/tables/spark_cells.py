"""How Spark brings all records of a person to one place, counts them there, and hands them on in batches.

The table is read once and shuffled once. Spark moves the records by a number of the person's name, so that
counting them needs no second shuffle, and orders the counts by that number within each partition; a worker
then cuts the stream into batches between two people. A batch is small whatever the size of a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import TableError
from .columns import Columns
from .frames import record_frame

CELLS = 1 << 18
"""Counts per batch of complete people: some tens of megabytes in a worker, whatever the table's size."""

PERSON = "person"
"""The column with the number of a person's name: spellings of one name have the same."""


def cells_by_person(frame: Any, columns: Columns) -> Any:
    """The counts of a Spark table: all of a person in one partition, one person after the other."""
    from pyspark.sql import functions as F

    records = record_frame(frame, columns).to_native()
    shown = {"group": columns.by, "user": columns.user, "item": columns.item}
    keys = [key for key in ("group", "user", "item") if f"key_{key}" in records.columns]
    for key in keys:
        kind = records.schema[f"key_{key}"].dataType.typeName()
        if kind in ("float", "double", "decimal"):
            raise TableError(f"column {shown[key]!r} must hold text or whole numbers, it holds {kind}")
    sums = [name for name in records.columns if name in ("amount", "fine_amount")]
    counted = [F.count(F.lit(1)).alias("rows"), *(F.sum(name).alias(name) for name in sums)]
    together = records.withColumn(PERSON, person(records, "key_user")).repartition(
        parts_of(records.sparkSession), PERSON
    )
    cells = together.groupBy(PERSON, *(f"key_{key}" for key in keys)).agg(*counted)
    return cells.sortWithinPartitions(PERSON)


def person(records: Any, name: str) -> Any:
    """A number of the user's name that is the same for all names `tally.in_several_groups` takes for one.

    Those are names that differ in white space at their ends or in the way Unicode spells a letter. Names in
    plain ASCII are taken as they are; the others are brought to NFC by the ICU library that Spark comes with.
    """
    from pyspark.sql import functions as F

    column = F.col(name)
    if records.schema[name].dataType.typeName() != "string":
        return F.xxhash64(column)
    last = F.ascii(F.right(column, F.lit(1)))
    plain = (F.octet_length(column) == F.char_length(column)) & (F.ascii(column) > 32) & (last > 32)
    composed = F.reflect(F.lit("com.ibm.icu.text.Normalizer"), F.lit("compose"), column, F.lit(False))
    bare = F.regexp_replace(
        composed, r"[\s\p{Z}\p{Cc}]+", ""
    )  # more than the ends: only the place depends on it
    return F.xxhash64(F.when(column.isNull() | plain, column).otherwise(bare))


def parts_of(started: Any) -> int:
    """How many partitions: as many as Spark shuffles into, and enough for every core."""
    shuffled = int(started.conf.get("spark.sql.shuffle.partitions"))
    return max(shuffled, 2 * int(started.sparkContext.defaultParallelism))


def in_batches(cells: Any, work: Callable[[Iterator[Any]], Iterable[Any]], schema: str) -> Any:
    """`work` on the batches of each partition, each of them complete; it yields arrow tables."""

    def run(parts: Iterator[Any]) -> Iterator[Any]:
        for table in work(complete_people(parts)):
            yield from table.to_batches()

    return cells.mapInArrow(run, schema)


def complete_people(parts: Iterable[Any], least: int | None = None) -> Iterator[Any]:
    """Arrow tables of at least `least` cells (but the last) that hold all cells of their people.

    The parts are ordered by person; a table ends before the first cell of the part's last person.
    """
    least = enough = CELLS if least is None else least
    held: list[Any] = []
    size = 0
    for part in parts:
        if part.num_rows == 0:
            continue
        held.append(part)
        size += part.num_rows
        if size < enough:
            continue
        whole = pa.Table.from_batches(held)
        numbers = np.from_dlpack(whole[PERSON].combine_chunks())
        cut = int(np.searchsorted(numbers, numbers[-1]))
        if cut:
            yield whole.slice(0, cut).drop_columns([PERSON])
        held = whole.slice(cut).to_batches()
        size -= cut
        enough = max(least, 2 * size)  # one person with very many cells is not looked at part by part
    if held:
        yield pa.Table.from_batches(held).drop_columns([PERSON])
