"""How Spark counts: all records of a person in one partition, handed on in batches of complete people.

The table is read once and shuffled once. Spark moves the records by a number of the person's name, so that
counting them needs no second shuffle, and orders the counts by that number within each partition; a worker
then cuts the stream into batches between two people. The batches go into the very functions that run in one
process. What is wrong is counted by the workers, and raised by the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._validate import FloatArray
from ..errors import TableError
from ..tables import tally
from ..tables.query import Columns, check_sum, opened, require, tally_of
from ..tables.tally import Tally
from ..tables.users import REFUSE_ALL, LeftOut, ReadingOptions, check_one_group, users_by_group
from ..users import Users

SUMS_OF_CELLS = ("amount", "fine_amount")

# --- records and cells ---


def record_frame(frame: Any, columns: Columns, *, as_text: bool = False) -> Any:
    """A row per record: key_g, key_u, key_i (with `as_text` as in files), amount and fine_amount."""
    from pyspark.sql import functions as F

    require(columns.needed, frame.columns)
    types = dict(frame.dtypes)
    for name in columns.names.values():
        if types[name] not in ("string", "tinyint", "smallint", "int", "bigint"):
            held = types[name].split("<")[0]
            raise TableError(f"column {name!r} must hold text or integers, it holds {held}")
    keys = {f"key_{letter}": F.col(f"`{name}`") for letter, name in columns.names.items()}
    names = [(key.cast("string") if as_text else key).alias(name) for name, key in keys.items()]
    if columns.long:
        sums = [] if columns.weight is None else [_double(frame, types, columns.weight).alias("amount")]
        table = frame.select(*names, *sums)
    else:
        cells = {f"c{k}": name for k, name in enumerate(columns.items)}
        sums = [_double(frame, types, name).alias(cell) for cell, name in cells.items()]
        wide = frame.select(*names, *sums)
        table = wide.unpivot(list(keys), list(cells), "key_i", "amount").replace(cells, subset=["key_i"])
    if "amount" not in table.columns:
        return table
    table = table.fillna(0.0, subset=["amount"]) if columns.lenient else table
    fine = (F.col("amount") >= 0) & (F.col("amount") < float("inf"))
    return table.withColumn("fine_amount", F.coalesce(fine, F.lit(False)).cast("long"))


def _double(frame: Any, types: Mapping[str, str], name: str) -> Any:
    """A column of amounts as doubles; text that is no number is null, and no cast prints it into a log."""
    column = frame[f"`{name}`"]
    if types[name] == "string":
        return column.try_cast("double")
    if not types[name].startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")):
        raise TableError(f"column {name!r} must hold numbers, it holds {types[name].split('<')[0]}")
    return column.cast("double")


def counts(records: Any) -> list[Any]:
    """What is counted of the records of a cell: how many there are, and their sums."""
    from pyspark.sql import functions as F

    sums = [F.sum(name).alias(name) for name in records.columns if name in SUMS_OF_CELLS]
    return [F.count(F.lit(1)).alias("rows"), *sums]


def count_on_spark(frame: Any, columns: Columns) -> Tally:
    """The tally of a Spark table: grouped there, one row per cell comes back."""
    records = record_frame(frame, columns)
    cells = records.groupBy(*keys_of(records)).agg(*counts(records)).toArrow()
    sums = Sums()
    if len(cells):
        _count_cells(cells, sums, columns)
    _check_table(sums.totals, columns)
    return to_tally(cells, columns)


def keys_of(records: Any) -> list[str]:
    """The columns that name a group, a user or an item."""
    return [name for name in records.columns if name.startswith("key_")]


def to_tally(cells: Any, columns: Columns) -> Tally:
    """The tally of cells that Spark has counted, by the engine that counts tables in one process."""
    user, by, weight = (name if name in cells.column_names else None for name in ("key_u", "key_g", "amount"))
    with opened(cells) as source:
        tally_of_cells = tally_of(source, Columns("key_i", user, weight, by, None, columns.lenient, "rows"))
    return replace(tally_of_cells, by=columns.by, long=columns.long)


# --- batches of complete people ---

CELLS = 1 << 18
"""Counts per batch of complete people: some tens of megabytes in a worker, whatever the table's size."""

PERSON = "person"
"""The column with the number of a person's name: spellings of one name have the same."""


def cells_by_person(frame: Any, columns: Columns, *, as_text: bool = False) -> Any:
    """The counts of a Spark table: all of a person in one partition, one person after the other."""
    records = record_frame(frame, columns, as_text=as_text)
    numbered = records.withColumn(PERSON, person(records, "key_u"))
    together = numbered.repartition(parts_of(records.sparkSession), PERSON)
    cells = together.groupBy(PERSON, *keys_of(records)).agg(*counts(records))
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
    # More than the ends is taken away: only where the records go depends on it.
    bare = F.regexp_replace(composed, r"[\s\p{Z}\p{Cc}]+", "")
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
    """Tables of at least `least` cells (but the last), cut between people, by whom the parts are ordered."""
    rest = None
    for table in at_least(parts, CELLS if least is None else least):
        whole = table if rest is None else pa.concat_tables([rest, table])
        numbers = np.from_dlpack(whole[PERSON].combine_chunks())
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


# --- what workers report ---

SUMS, LEFT_OUT, SEVERAL, TABLE, GROUP = (-1, -2), -3, -4, -5, -6
"""What a partition reports beside each sampler's values (0, 1, …): the users' moments, and counters."""

REPORTED = "group string, what int, values array<double>"
STATISTICS = ("mean", "median", "p90", "p99", "maximum")
Summaries = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass
class Sums:
    """What adds up over the batches of a partition, by group and kind."""

    totals: dict[tuple[str, int], FloatArray] = field(default_factory=dict)

    def add(self, group: str, what: int, values: Sequence[float] | FloatArray) -> None:
        """Add numbers to those of the same group and kind."""
        before = self.totals.get((group, what))
        self.totals[group, what] = np.asarray(values, float) if before is None else before + values

    def to_arrow(self) -> Any:
        """The sums as rows that cross the network."""
        return report_table([(group, what, values) for (group, what), values in self.totals.items()])


@dataclass(frozen=True)
class Reading:
    """How a table becomes users: its columns, what they are read against, and the options."""

    columns: Columns
    known: Mapping[str, tally.Categories]
    options: ReadingOptions = REFUSE_ALL

    def __post_init__(self) -> None:
        if self.options.unknown == "other":
            for known in self.known.values():
                tally.other_category(known, self.options.other)
        if self.options.unknown == "prior":
            object.__setattr__(self, "columns", replace(self.columns, lenient=True))

    def users(self, cells: Any, sums: Sums) -> dict[str, Users]:
        """The users of a batch by group, none if it is wrong; what the driver must know goes into `sums`."""
        options = self.options
        if not _count_cells(cells, sums, self.columns):
            return {}
        counted = to_tally(cells, self.columns)
        if np.bincount(counted.user, counted.rows).max() < options.minimum_rows:
            return {}
        counted = tally.with_minimum_rows(counted, options.minimum_rows)
        sums.add("", SEVERAL, [tally.in_several_groups(counted), counted.people])
        users = users_by_group(counted, self.known, options)
        for name, group in users.items():
            sums.add(name, LEFT_OUT, [group.dropped, group.refused, len(group)])
        return users


def _count_cells(cells: Any, sums: Sums, columns: Columns) -> bool:
    """Count rows, what is wrong with them, and the rows of each group; whether nothing is wrong."""
    rows = cells["rows"]
    total = pc.sum(rows).as_py()
    added, fine = (
        pc.sum(cells[name]).as_py() if name in cells.column_names else total for name in SUMS_OF_CELLS
    )
    needed = [f"key_{letter}" if letter in columns.required else None for letter in "gui"]
    absent = [pc.sum(rows.filter(cells[name].is_null())).as_py() or 0 if name else 0 for name in needed]
    amount = np.nan if added is None else float(added)
    sums.add("", TABLE, [total, fine, amount, *absent])
    for name in cells["key_g"].unique().to_pylist() if columns.by is not None else ():
        sums.add(str(name), GROUP, [1.0])
    return fine == total and bool(np.isfinite(amount)) and not any(absent)


def report_table(reported: Sequence[tuple[str, int, Any]]) -> Any:
    """What a worker reports, as rows that cross the network."""
    return pa.table(
        {
            "group": pa.array([name for name, _, _ in reported], pa.string()),
            "what": pa.array([what for _, what, _ in reported], pa.int32()),
            "values": pa.array([np.asarray(values) for _, _, values in reported], pa.list_(pa.float64())),
        }
    )


def summaries(reported: Any, summarise: Callable[[FloatArray], dict[str, float]]) -> Summaries:
    """One summary per group and sampler: the function that summarises in one process, run by a worker."""

    def summary(parts: Any) -> Any:
        group, what = (parts[name][0].as_py() for name in ("group", "what"))
        values: FloatArray = np.asarray(np.from_dlpack(parts["values"].combine_chunks().flatten()), float)
        row: dict[str, Any] = {"group": group, "what": what, "values": [], "users": 0}
        if what >= 0:
            row |= {"users": len(values), **summarise(values)}
        else:
            row["values"] = values.reshape(len(parts), -1).sum(axis=0).tolist()
        return pa.Table.from_pylist([row], _summary_schema())

    schema = f"{REPORTED}, users long, {', '.join(f'{name} double' for name in STATISTICS)}"
    rows = reported.groupBy("group", "what").applyInArrow(summary, schema).toArrow().to_pylist()
    return {(row["group"], row["what"]): row for row in rows}


def _summary_schema() -> Any:
    kinds = {"group": pa.string(), "what": pa.int32(), "values": pa.list_(pa.float64()), "users": pa.int64()}
    return pa.schema({**kinds, **dict.fromkeys(STATISTICS, pa.float64())})


def check_reported(reported: Summaries, reading: Reading) -> int:
    """Raise what would have been raised in one process; return how many users there are."""
    totals = {key: row["values"] for key, row in reported.items() if key[1] < 0}
    rows, options = _check_table(totals, reading.columns), reading.options
    groups = [name for name, what in totals if what == GROUP]
    if groups:
        tally.check_groups(groups, reading.known, options.unknown_groups)
    counters = [values for (_, what), values in totals.items() if what == LEFT_OUT]
    dropped, refused, people = (int(sum(counter[i] for counter in counters)) for i in range(3))
    if ("", SEVERAL) in totals:
        in_several, everybody = map(int, totals["", SEVERAL])
        check_one_group(in_several, everybody, reading.columns.by, options.several_groups)
    LeftOut(rows=rows, people=people, dropped=dropped, refused=refused).check(options)
    if not people:
        raise TableError("no user has a usable record")
    return people


def _check_table(totals: Mapping[tuple[str, int], Any], columns: Columns) -> int:
    """Refuse missing names and bad amounts; return how many rows the table has."""
    if ("", TABLE) not in totals:
        raise TableError("the table is empty: it has no rows")
    total, fine, amount, *absent = totals["", TABLE]
    what = f"column {columns.weight!r}" if columns.weight else "the category columns"
    check_sum(what, int(total), int(fine), amount)
    for letter, gone in zip("gui", absent, strict=True):
        if gone:
            raise TableError(f"column {columns.required[letter]!r} has {int(gone)} missing values")
    return int(total)
