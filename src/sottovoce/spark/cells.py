"""How Spark counts: all records of a person in one partition, handed on in batches of complete people.

The table is read once and shuffled once. Spark moves the records by a number of the person's name, so that
counting them needs no second shuffle, and orders the counts by that number within each partition; a worker
then cuts the stream into batches between two people. The batches go into the very functions that run in one
process. What is wrong is counted by the workers, and raised by the driver.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._validate import FloatArray, IntArray
from ..errors import TableError
from ..tables import tally
from ..tables.query import Columns, no_column
from ..tables.tally import Tally
from ..tables.users import REFUSE_ALL, LeftOut, ReadingOptions, check_one_group, users_by_group
from ..users import Users

KEYS = ("group", "user", "item")

# --- records and cells ---


def require(present: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table without a needed column."""
    missing = [name for name in needed if name not in present]
    if missing:
        raise no_column(missing[0], needed, present)


def keys_of(columns: Columns) -> dict[str, str]:
    """The columns that name something, by what they name."""
    shown = {"g": "group", "u": "user", "i": "item"}
    found = {shown[letter]: name for letter, name in columns.names.items()}
    return found if columns.long else {**found, "item": "item"}


def record_frame(frame: Any, columns: Columns) -> Any:
    """The needed columns alone, a row per record: key_group, key_user, key_item, amount and fine_amount."""
    from pyspark.sql import functions as F

    require(frame.columns, columns.needed)
    types = dict(frame.dtypes)
    for name in columns.names.values():
        if types[name] not in ("string", "tinyint", "smallint", "int", "bigint"):
            raise TableError(
                f"column {name!r} must hold text or integers, it holds {types[name].split('<')[0]}"
            )
    shown = {"g": "key_group", "u": "key_user", "i": "key_item"}
    names = [F.col(f"`{name}`").alias(shown[letter]) for letter, name in columns.names.items()]
    numbers = {"amount": columns.weight, "score": columns.top_by} if columns.long else {}
    sums = [_double(frame, types, name).alias(key) for key, name in numbers.items() if name is not None]
    table = frame.select(*names, *sums)
    if not columns.long:
        kept = [
            column.alias(f"c{k}") for k, column in enumerate(_double(frame, types, n) for n in columns.items)
        ]
        wide = frame.select(*names, *kept)
        ids, cells = [shown[letter] for letter in columns.names], [f"c{k}" for k in range(len(columns.items))]
        table = wide.unpivot(ids, cells, "key_item", "amount").replace(
            dict(zip(cells, columns.items, strict=True)), subset=["key_item"]
        )
    keys = [key for key in ("amount", "score") if key in table.columns]
    if columns.lenient and keys:
        table = table.fillna(0.0, subset=keys)
    for key in keys:
        fine = (F.col(key) >= 0) & (F.col(key) < float("inf"))
        table = table.withColumn(f"fine_{key}", F.coalesce(fine, F.lit(False)).cast("long"))
    return table


def _double(frame: Any, types: Mapping[str, str], name: str) -> Any:
    """A column of amounts as doubles; text that is no number is null, and no cast prints it into a log."""
    column = frame[f"`{name}`"]
    if types[name] == "string":
        return column.try_cast("double")
    if not types[name].startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")):
        raise TableError(f"column {name!r} must hold numbers, it holds {types[name].split('<')[0]}")
    return column.cast("double")


def count_on_spark(frame: Any, columns: Columns) -> Tally:
    """The tally of a Spark table: grouped there, one row per cell comes back."""
    from pyspark.sql import functions as F

    records = record_frame(frame, columns)
    sums = [name for name in records.columns if not name.startswith("key_")]
    keys = [name for name in records.columns if name.startswith("key_")]
    counted = [F.count(F.lit(1)).alias("rows"), *(F.sum(name).alias(name) for name in sums)]
    return to_tally(records.groupBy(*keys).agg(*counted).toArrow(), columns, as_text=False)


def to_tally(cells: Any, columns: Columns, *, as_text: bool) -> Tally:
    """The tally of cells that were counted for these columns."""
    names = {"amount": columns.weight if columns.long else "amount", "score": columns.top_by}
    sums = {key: name for key, name in names.items() if name is not None}
    return tally_of(
        cells, keys_of(columns), sums, as_text=as_text, long=columns.long, lenient=columns.lenient
    )


def tally_of(
    cells: Any,
    keys: Mapping[str, str],
    sums: Mapping[str, str],
    *,
    as_text: bool,
    long: bool = True,
    lenient: bool = False,
) -> Tally:
    """The tally of cells whose columns are key_group, key_user, key_item, rows, amount and score.

    `keys` and `sums` say what the table calls them, for messages; `as_text` turns whole numbers into text, as
    files do.
    """
    rows = as_array(cells["rows"]).astype(np.intp)
    if len(rows) == 0:
        raise TableError("the table is empty: it has no rows")
    values = {
        key: _amounts(cells, key, f"column {name!r}" if long else "the category columns", rows)
        for key, name in sums.items()
    }
    coded = {
        key: codes_of(cells[f"key_{key}"], name, rows, as_text, lenient=lenient and key == "item")
        for key, name in keys.items()
    }
    given = [coded[key] for key in KEYS if key in coded]
    order, sorted_codes = _order([codes for _, codes in given], [len(names) for names, _ in given])
    nothing = np.zeros(len(rows), dtype=np.intp)
    found = dict(zip([key for key in KEYS if key in coded], sorted_codes, strict=True))
    counts = rows[order]
    amount = values["amount"][order] if "amount" in sums else counts.astype(np.float64)
    return Tally(
        groups=tuple(map(str, coded["group"][0])) if "group" in coded else ("all",),
        users=coded["user"][0] if "user" in coded else None,
        items=tuple(coded["item"][0].tolist()),
        group=found.get("group", nothing),
        user=found.get("user", nothing),
        item=found["item"],
        rows=counts,
        amount=amount,
        score=values["score"][order] if "score" in values else amount,
        by=keys.get("group"),
        long=long,
    )


def _order(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, list[IntArray]]:
    """The order of the cells by their codes, the first code first, and the codes in that order.

    No two cells have the same codes. Codes and the cell's own number are packed into one whole number where
    63 bits are enough: sorting numbers, and taking them apart again, is several times as fast as sorting by
    several keys and fetching each code from where it stood.
    """
    number = np.arange(len(codes[0]))
    bits = len(number).bit_length()
    if math.prod(sizes) << bits > 1 << 63:
        order = np.lexsort(tuple(reversed(codes)))
        return order, [code[order] for code in codes]
    packed = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        packed = packed * size + code
    packed = (packed << bits) | number
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    ordered: list[IntArray] = []
    for size in reversed(sizes[1:]):
        packed, code = np.divmod(packed, size)
        ordered.insert(0, code)
    return order, [packed, *ordered]


def as_array(column: Any) -> Any:
    """A column of numbers without nulls as an array."""
    # Not arrow's to_numpy: it imports pandas, for a second, and swallows a Ctrl-C that comes meanwhile.
    with warnings.catch_warnings():  # numpy before 2.3 asks in a way that arrow warns of, and gets the same
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.from_dlpack(column.combine_chunks() if hasattr(column, "combine_chunks") else column)


def _amounts(cells: Any, key: str, what: str, rows: IntArray) -> Any:
    """Amounts per cell, refused if a row's was missing, negative or not finite, or if their sum is not."""
    total = int(rows.sum())
    wrong = total - int(pc.sum(cells[f"fine_{key}"]).as_py())
    if wrong:
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong} of {total} rows do not")
    amounts = as_array(cells[key]).astype(np.float64)
    with np.errstate(over="ignore"):
        check_sum(what, float(amounts.sum()))
    return amounts


def check_sum(what: str, total: float) -> None:
    """Refuse amounts that add up beyond what a double holds: shares of infinity are no distribution."""
    if not np.isfinite(total):
        raise TableError(f"{what} adds up to infinity: divide it by a constant first")


def codes_of(
    column: Any, name: str, rows: IntArray | None, as_text: bool, *, lenient: bool = False
) -> tuple[Any, IntArray]:
    """The distinct names in sorted order, and the position of each entry's name among them.

    An entry stands for so many `rows`, or for one each. A missing name is refused, or is None where `lenient`
    says so.
    """
    if lenient and column.null_count:
        return with_none(*codes_of(column.drop_null(), name, None, as_text), column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    check_missing(column, name, rows, in_file=as_text)
    values, indices = _distinct(_as_names(column, name).combine_chunks())
    values = values.cast(pa.large_string()) if as_text else values
    order = pc.array_sort_indices(values)
    place = np.empty(len(order), dtype=np.intp)
    place[as_array(order)] = np.arange(len(order))
    names = np.empty(len(order), dtype=object)
    names[:] = values.take(order).to_pylist()
    return names, place[indices]


def with_none(names: Any, codes: IntArray, column: Any) -> tuple[Any, IntArray]:
    """The names and codes of a column, from those of the entries that are not missing."""
    there = ~as_array(column.is_null().cast(pa.uint8())).astype(bool)
    found = np.full(len(column), len(names), dtype=np.intp)
    found[there] = codes
    with_absent = np.empty(len(names) + 1, dtype=object)
    with_absent[:-1] = names
    return with_absent, found


def check_missing(column: Any, name: str, rows: IntArray | None, *, in_file: bool) -> None:
    """Refuse a column with missing names, and say how many rows have none."""
    missing = column.null_count
    if missing and rows is not None:
        missing = int(rows[as_array(column.is_null().cast(pa.uint8())) > 0].sum())
    if missing:
        raise TableError(f"column {name!r} has {missing} missing values")


def _distinct(column: Any) -> tuple[Any, Any]:
    """The distinct values of a column, and the position of each entry among them."""
    coded = column.dictionary_encode()
    return coded.dictionary, as_array(coded.indices)


def _as_names(column: Any, name: str) -> Any:
    """A column of text or of whole numbers, whatever it was stored as; anything else is refused."""
    kind = column.type
    if pa.types.is_floating(kind):
        fits = pc.all(pc.less(pc.abs(column), 2.0**53)).as_py()
        if not fits or not pc.all(pc.equal(pc.floor(column), column)).as_py():
            odd = "fractions" if fits else "floats beyond 2^53"
            raise TableError(f"column {name!r} must hold text or integers, it holds {odd}")
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    elif not pa.types.is_integer(kind):
        found = (
            str(kind).split("<")[0].split("(")[0].split("[")[0]
        )  # the rest may be field names, that is, data
        raise TableError(f"column {name!r} must hold text or integers, it holds {found}")
    return column


# --- batches of complete people ---

CELLS = 1 << 18
"""Counts per batch of complete people: some tens of megabytes in a worker, whatever the table's size."""

PERSON = "person"
"""The column with the number of a person's name: spellings of one name have the same."""


def cells_by_person(frame: Any, columns: Columns) -> Any:
    """The counts of a Spark table: all of a person in one partition, one person after the other."""
    from pyspark.sql import functions as F

    records = record_frame(frame, columns)
    shown = {"group": columns.by, "user": columns.user, "item": columns.item}
    keys = [key for key in ("group", "user", "item") if f"key_{key}" in records.columns]
    for key in keys:
        kind = records.schema[f"key_{key}"].dataType.typeName()
        if kind in ("float", "double", "decimal"):
            raise TableError(f"column {shown[key]!r} must hold text or integers, it holds {kind}")
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


# --- what workers report ---

SUMS, LEFT_OUT, SEVERAL, TABLE, GROUP = (-1, -2), -3, -4, -5, -6
"""What a partition reports beside each sampler's values (0, 1, …): the users' moments, and counters."""

REPORTED = "group string, what int, values array<double>"
_SUMMARY = f"{REPORTED}, users long, mean double, median double, p90 double, p99 double, maximum double"
Summaries = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass
class Sums:
    """What adds up over the batches of a partition, by group and kind."""

    held: dict[tuple[str, int], FloatArray] = field(default_factory=dict)

    def add(self, group: str, what: int, values: Sequence[float] | FloatArray) -> None:
        """Add numbers to those of the same group and kind."""
        before = self.held.get((group, what))
        self.held[group, what] = np.asarray(values, float) if before is None else before + values

    def to_arrow(self) -> Any:
        """The sums as rows that cross the network."""
        return found_table([(group, what, values) for (group, what), values in self.held.items()])


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
        if self.options.unknown == "prior":
            object.__setattr__(self, "columns", replace(self.columns, lenient=True))

    def users(self, cells: Any, sums: Sums) -> dict[str, Users]:
        """The users of a batch by group, in a worker; what the driver has to know of them goes into `sums`.

        A batch that is wrong has no users: the driver refuses the table.
        """
        options = self.options
        if not _count_cells(cells, sums, lenient=self.columns.lenient):
            return {}
        counted = to_tally(cells, self.columns, as_text=self.as_text)
        if np.bincount(counted.user, counted.rows).max() < options.minimum_rows:
            return {}
        counted = tally.with_minimum_rows(counted, options.minimum_rows)
        sums.add("", SEVERAL, [tally.in_several_groups(counted), counted.people])
        users = users_by_group(counted, self.known, options)
        for name, one in users.items():
            sums.add(name, LEFT_OUT, [one.dropped, one.refused, len(one)])
        return users


def _count_cells(cells: Any, sums: Sums, *, lenient: bool) -> bool:
    """Count rows, what is wrong with them, and the rows of each group; whether nothing is wrong."""
    rows = cells["rows"]
    total = pc.sum(rows).as_py()
    fine = pc.sum(cells["fine_amount"]).as_py() if "fine_amount" in cells.column_names else total
    added = pc.sum(cells["amount"]).as_py() if "amount" in cells.column_names else total
    keys = [cells[f"key_{key}"] if f"key_{key}" in cells.column_names else None for key in KEYS]
    absent = [
        0 if key is None or not key.null_count else pc.sum(rows.filter(key.is_null())).as_py()
        for key in keys[: 2 if lenient else 3]
    ]
    amount = np.nan if added is None else float(added)
    sums.add("", TABLE, [total, fine, amount, *absent])
    if keys[0] is not None:
        for name in keys[0].unique().to_pylist():
            sums.add(str(name), GROUP, [1.0])
    return fine == total and bool(np.isfinite(amount)) and not any(absent)


def columns_named(item: str | Sequence[str], user: str, weight: str | None, by: str | None) -> Columns:
    """The columns of a table; several items are those of a wide one."""
    return Columns(item if isinstance(item, str) else tuple(item), user, weight, by)


def found_table(found: Sequence[tuple[str, int, Any]]) -> Any:
    """What a worker reports, as rows that cross the network."""
    return pa.table(
        {
            "group": pa.array([name for name, _, _ in found], pa.string()),
            "what": pa.array([what for _, what, _ in found], pa.int32()),
            "values": pa.array([np.asarray(values) for _, _, values in found], pa.list_(pa.float64())),
        }
    )


def summaries(found: Any, summarise: Callable[[FloatArray], dict[str, float]]) -> Summaries:
    """One summary per group and sampler: the function that summarises in one process, run by a worker."""

    def summary(parts: Any) -> Any:
        what = parts["what"][0].as_py()
        values: FloatArray = np.asarray(np.from_dlpack(parts["values"].combine_chunks().flatten()), float)
        row: dict[str, Any] = dict.fromkeys(("mean", "median", "p90", "p99", "maximum"))
        if what >= 0:
            row = {"values": None, "users": len(values), **summarise(values)}
        else:
            row = {"values": values.reshape(len(parts), -1).sum(axis=0).tolist(), "users": 0, **row}
        group = parts["group"][0].as_py()
        return pa.Table.from_pylist([{"group": group, "what": what, **row}], _arrow_summary())

    rows = found.groupBy("group", "what").applyInArrow(summary, _SUMMARY).toArrow().to_pylist()
    return {(row["group"], row["what"]): row for row in rows}


def _arrow_summary() -> Any:
    numbers = [(name, pa.float64()) for name in ("mean", "median", "p90", "p99", "maximum")]
    head = [("group", pa.string()), ("what", pa.int32()), ("values", pa.list_(pa.float64()))]
    return pa.schema([*head, ("users", pa.int64()), *numbers])


def check_found(found: Summaries, reading: Reading) -> int:
    """Raise what would have been raised in one process; return how many users there are."""
    rows = _check_table(found, reading)
    counters = [row["values"] for (_, what), row in found.items() if what == LEFT_OUT]
    dropped, refused, people = (int(sum(one[i] for one in counters)) for i in range(3))
    options = reading.options
    if ("", SEVERAL) in found:
        in_several, everybody = map(int, found["", SEVERAL]["values"])
        check_one_group(in_several, everybody, reading.columns.by, options.several_groups)
    LeftOut(rows=rows, people=people, dropped=dropped, refused=refused).check(options)
    if not people:
        raise TableError("no user has a usable record")
    return people


def _check_table(found: Summaries, reading: Reading) -> int:
    """Refuse missing names, bad amounts and unknown groups; return how many rows the table has."""
    if ("", TABLE) not in found:
        raise TableError("the table is empty: it has no rows")
    columns = reading.columns
    total, fine, amount, *absent = found["", TABLE]["values"]
    if fine != total:
        what = f"column {columns.weight!r}" if columns.weight else "the category columns"
        wrong = f"{int(total - fine)} of {int(total)} rows do not"
        raise TableError(f"{what} must hold finite numbers of at least 0: {wrong}")
    check_sum("the weight", amount)
    for name, gone in zip((columns.by, columns.user, columns.item), absent, strict=False):
        if gone:
            raise TableError(f"column {name!r} has {int(gone)} missing values")
    groups = [name for name, what in found if what == GROUP]
    if groups:
        tally.check_groups(groups, reading.known, reading.options.unknown_groups)
    return int(total)


def at_least(parts: Iterable[Any], least: int) -> Iterator[Any]:
    """Arrow batches joined to tables of at least so many rows, but for the last."""
    held: list[Any] = []
    for part in parts:
        held.append(part)
        if sum(one.num_rows for one in held) >= least:
            yield pa.Table.from_batches(held)
            held = []
    if any(one.num_rows for one in held):
        yield pa.Table.from_batches(held)
