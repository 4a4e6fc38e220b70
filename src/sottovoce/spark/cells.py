"""How Spark counts: all records of a person in one partition, handed on in batches of complete people.

Spark moves the records by a number of the person's name, so that counting them needs no second shuffle, and
orders the counts by that number within each partition; a worker then cuts the stream into batches between two
people. What is wrong is counted by the workers, and raised by the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TableError
from ..records import Users
from ..tables.reader import Columns, check_sum, opened, ordered_cells, require
from ..tables.tally import check_groups
from ..tables.users import ByGroup, LeftOut, ReadingOptions, check_one_group

CELLS = 1 << 18
"""Counts per batch of complete people: some tens of megabytes in a worker, whatever the table's size."""
PERSON = "person"
"""The column with the number of a person's name: spellings of one name have the same."""
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FRACTIONS = ("float", "double", "decimal")


def cells_by_person(frame: Any, columns: Columns) -> Any:
    """The counts of a Spark table: all of a person in one partition, one person after the other."""
    from pyspark.sql import functions as F

    session, records = frame.sparkSession, _records(frame, columns)
    shuffled = int(session.conf.get("spark.sql.shuffle.partitions"))
    parts = max(shuffled, 2 * int(session.sparkContext.defaultParallelism))
    together = records.withColumn(PERSON, _person(records, "key_u")).repartition(parts, PERSON)
    keys = [name for name in records.columns if name.startswith("key_")]
    sums = [F.sum(name).alias(name) for name in records.columns if name not in keys]
    cells = together.groupBy(PERSON, *keys).agg(F.count(F.lit(1)).alias("rows"), *sums)
    return cells.sortWithinPartitions(PERSON)


def _records(frame: Any, columns: Columns) -> Any:
    """A row per record: key_g, key_u, key_i, and with a weight amount and fine."""
    from pyspark.sql import functions as F

    require(columns.needed, frame.columns)
    types = {name: kind.split("(")[0].split("<")[0] for name, kind in frame.dtypes}
    for name in columns.names.values():
        if types[name] not in ("string", *INTEGERS):
            raise TableError(f"column {name!r} must hold text or integers, it holds {types[name]}")
    selected = [F.col(f"`{name}`").alias(f"key_{letter}") for letter, name in columns.names.items()]
    if columns.weight is None:
        return frame.select(*selected)
    if types[columns.weight] not in ("string", *INTEGERS, *FRACTIONS):
        raise TableError(f"column {columns.weight!r} must hold numbers, it holds {types[columns.weight]}")
    # Of a text that is no number `try_cast` makes null; a cast would print it into a log.
    given = frame[f"`{columns.weight}`"]
    amount = given.try_cast("double")
    if columns.lenient:
        amount = F.when(given.isNull() | F.isnan(amount), F.lit(0.0)).otherwise(amount)
    table = frame.select(*selected, amount.alias("amount"))
    fine = (F.col("amount") >= 0) & (F.col("amount") < float("inf"))
    return table.withColumn("fine", F.coalesce(fine, F.lit(False)).cast("long"))


def _person(records: Any, name: str) -> Any:
    """A number of the user's name that is the same for all spellings that `Cells.in_several_groups` joins.

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
    # More than the ends is taken away: only where the records go depends on it.
    bare = F.regexp_replace(composed, r"[\s\p{Z}\p{Cc}]+", "")
    return F.xxhash64(F.when(column.isNull() | plain, column).otherwise(bare))


def complete_people(parts: Iterable[Any], least: int = CELLS) -> Iterator[Any]:
    """Tables of at least `least` cells (but the last), cut between people, by whom the parts are ordered."""
    rest = None
    for table in at_least(parts, least):
        whole = table if rest is None else pa.concat_tables([rest, table])
        numbers = whole[PERSON].combine_chunks().to_numpy()
        cut = int(np.searchsorted(numbers, numbers[-1]))
        if cut:
            yield whole.slice(0, cut).drop_columns([PERSON])
        rest = whole.slice(cut)
    if rest is not None:
        yield rest.drop_columns([PERSON])


def at_least(parts: Iterable[Any], least: int) -> Iterator[Any]:
    """Arrow batches joined to tables of at least so many rows, but for the last; none without rows."""
    waiting: list[Any] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += part.num_rows
        if size >= least:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if size:
        yield pa.Table.from_batches(waiting)


def read_batch(
    cells: Any, columns: Columns, known: ByGroup, options: ReadingOptions, seen: Counter[str]
) -> dict[str, Users]:
    """The users of a batch by group, none if it is wrong; what the driver must know is added to `seen`."""
    rows = cells["rows"]
    total = pc.sum(rows).as_py()
    fine, amount = total, 0.0
    if columns.weight is not None:
        fine, amount = pc.sum(cells["fine"]).as_py(), pc.sum(cells["amount"]).as_py()
        amount = np.nan if amount is None else float(amount)
    missing = {
        letter: pc.sum(rows.filter(cells[f"key_{letter}"].is_null())).as_py() or 0
        for letter in columns.required
    }
    seen.update({"rows": total, "fine": fine, "amount": amount, **missing})
    if columns.by is not None:
        seen.update(f"group {name}" for name in cells["key_g"].unique().to_pylist())
    if fine < total or not np.isfinite(amount) or any(missing.values()):
        return {}
    user, by, weight = (name if name in cells.column_names else None for name in ("key_u", "key_g", "amount"))
    with opened(cells) as source:
        ordered = ordered_cells(source, Columns("key_i", user, weight, by, columns.lenient, "rows"))
        several, counted = ordered.in_several_groups(), next(ordered.batches())
    left = LeftOut()
    users = left.read(counted, known, options)
    numbers = {"people": left.people, "dropped": left.dropped, "refused": left.refused}
    seen.update({**numbers, "several": several, "everybody": ordered.users})
    return users


def check_seen(seen: Mapping[str, Any], columns: Columns, known: ByGroup, options: ReadingOptions) -> None:
    """Raise what would have been raised in one process."""
    if not seen["rows"]:
        raise TableError("the table is empty: it has no rows")
    if columns.weight is not None:
        check_sum(columns.weight, seen["rows"], seen["fine"], seen["amount"])
    for letter, name in columns.required.items():
        if seen[letter]:
            raise TableError(f"column {name!r} has {seen[letter]} missing values")
    groups = [name.removeprefix("group ") for name in seen if name.startswith("group ")]
    if groups:
        check_groups(groups, known, options.unknown_groups)
    check_one_group(seen["several"], seen["everybody"], columns.by, options.several_groups)
    LeftOut(**{name: seen[name] for name in ("rows", "people", "dropped", "refused")}).check(options)
