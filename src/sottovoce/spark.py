"""The same comparison and the same release on a Spark DataFrame, for tables that need a cluster.

Spark counts the rows and brings all counts of a user to one place; there Arrow batches go into the very
functions that run in one process (`tally`, the samplers, the mechanisms). Nothing is computed twice over.

    from sottovoce import spark
    table = spark.compare(frame, samplers, [sv.TV], user="device", item="site")
    spark.release(frame, mechanism, "reports.parquet", user="device", item="site")

Needs pyspark 4 and Java 17, and sottovoce installed wherever Spark runs Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from . import _validate, tally
from .cells import check_sum
from .collector import model_prior
from .comparison import Comparison, compared, summarise
from .divergences import TV, FDivergence, checked
from .errors import ParameterError, TableError
from .frames import Columns, counted_frame, gathered
from .mechanism import Mechanism
from .prior import FROM_USERS
from .prior_check import check_public, doubt, moments
from .samplers import Sampler
from .spark_session import told, write_for_owner
from .users import Users

CELLS = 1 << 18
"""Counts per batch of complete users: some tens of megabytes in a worker, whatever the table's size."""

SUMS, LEFT_OUT, SEVERAL = (-1, -2), -3, -4
"""What a batch reports beside each sampler's values (0, 1, …): the users' moments, and counters."""

_FOUND = "group string, what int, values array<double>"
_SUMMARY = f"{_FOUND}, users long, mean double, median double, p90 double, p99 double, maximum double"
_Found = list[tuple[str, int, Any]]


@dataclass(frozen=True)
class Reading:
    """How a table becomes users: the options of `read_users`."""

    columns: Columns
    known: Mapping[str, Any]
    unknown: str = "error"
    other: str = "other"
    empty: str = "error"
    unknown_groups: str = "error"
    several_groups: str = "error"
    minimum_rows: int = 0
    as_text: bool = False

    def __post_init__(self) -> None:
        _validate.one_of(("error", "drop", "other"), unknown=self.unknown)
        _validate.one_of(("error", "skip"), empty=self.empty)
        _validate.one_of(("error", "drop"), unknown_groups=self.unknown_groups)
        _validate.one_of(("error", "allow"), several_groups=self.several_groups)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)
        if self.unknown == "other":
            for one in self.known.values():
                tally.other_category(one, self.other)

    def users(self, cells: Any) -> tuple[dict[str, Users], _Found]:
        """The users of a batch by group, in a worker, and what the driver has to know of them all."""
        counted = gathered(cells, self.columns, as_text=self.as_text)
        if np.bincount(counted.user, counted.rows).max() < self.minimum_rows:
            return {}, []
        counted = tally.with_minimum_rows(counted, self.minimum_rows)
        several = [float(tally.in_several_groups(counted)), float(tally.people(counted))]
        users = {
            name: tally.users_of(
                counted, counted.groups.index(name), self.known[name], unknown=self.unknown, other=self.other
            )
            for name in tally.filled_groups(counted)
            if name in self.known
        }
        found: _Found = [("", SEVERAL, several)]
        for name, one in users.items():
            found.append((name, LEFT_OUT, [float(one.dropped), float(one.refused), float(len(one))]))
            found += [(name, what, values) for what, values in zip(SUMS, moments(one), strict=True)]
        return users, found


def compare(
    frame: Any,
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence] = TV,
    *,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None = None,
    **options: Any,
) -> Comparison:
    """`sottovoce.compare` for the users of a Spark DataFrame; `options` are those of `read_users`.

    Guarantees
        The same numbers as in one process, up to the order of adding up; percentiles are exact. What crosses
        the network is one number per user, sampler and divergence.
    """
    grouped = _by_group(samplers, by)
    options = {"several_groups": "allow", **options}  # a comparison publishes no user's groups
    measures = [divergences] if isinstance(divergences, FDivergence) else list(map(checked, divergences))
    if not measures:
        raise ParameterError("divergences must not be empty")
    priors = {name: chosen[0].prior for name, chosen in grouped.items()}
    reading = Reading(_columns(item, user, weight, by), priors, **options)

    def measure(cells: Any) -> Any:
        groups, found = reading.users(cells)
        for name, users in groups.items():
            pairs = [(sampler, f) for sampler in grouped[name] for f in measures]
            if len(users):
                found += [(name, k, s.divergence(users.p, f)) for k, (s, f) in enumerate(pairs)]
        return _arrow(found)

    with _counted(frame, reading) as (cells, rows):
        found = told(lambda: _summaries(_batches(cells, measure, _FOUND)))
    _check_left_out(found, reading, rows)
    parts = []
    for name in sorted({group for group, what in found if what == 0}):
        pairs = [(sampler, f) for sampler in grouped[name] for f in measures]
        sums = [np.array(found[name, what]["values"]) for what in SUMS]
        seen = doubt(priors[name].probabilities, sums)
        gave = seen is not None and seen.certain
        for k, (sampler, f) in enumerate(pairs):
            row = found[name, k]
            summary = {key: row[key] for key in ("mean", "median", "p90", "p99", "maximum")}
            parts.append(compared(name, sampler, f, row["users"], summary, gave))
    return Comparison(tuple(parts))


def release(
    frame: Any,
    mechanism: Mechanism | Mapping[str, Mechanism],
    output: str,
    *,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None = None,
    prior_is_public: bool = False,
    **options: Any,
) -> int:
    """Release one category per user into a new Parquet folder, drawn by the workers; returns how many.

    `options` are those of `read_users`. With `by`, the group of every user is published in clear, and a user
    in several groups is refused unless several_groups="allow". A prior that cannot be told from these users'
    average is refused unless `prior_is_public` says that it is public all the same.

    Guarantees
        The certified mechanism and the operating system's randomness, as in one process; all data are checked
        before anything is drawn. The releases are written at once, and no DataFrame of them is returned: it
        would be computed again, and draw again, each time somebody looked at it. When Spark repeats a task,
        one attempt is committed. There is no ledger here: charge the users before you call.
    """
    if isinstance(mechanism, Mapping) != (by is not None):
        raise ParameterError("a mechanism per group needs the group column by=, and only then")
    known = dict(mechanism) if isinstance(mechanism, Mapping) else {"all": mechanism}
    answer = item if isinstance(item, str) else "item"
    names = [user, *([by] if by is not None else []), answer, "epsilon", "mechanism"]
    if len(set(names)) < len(names):
        raise ParameterError("user, item and by must differ, and not be named epsilon or mechanism")
    reading = Reading(_columns(item, user, weight, by), known, **options)

    def inspect(cells: Any) -> Any:
        return _arrow(reading.users(cells)[1])

    def draw(cells: Any) -> Any:
        parts = [pa.schema([(name, pa.string()) for name in names]).empty_table()]
        for name, users in reading.users(cells)[0].items():
            if len(users):
                drawn = [str(category) for category in known[name].release_many(users.p)]
                about = (str(known[name].epsilon), known[name].digest)
                fixed = [[name] * len(drawn)] if by is not None else []
                values = [list(map(str, users.ids)), *fixed, drawn, *([one] * len(drawn) for one in about)]
                parts.append(pa.table(dict(zip(names, values, strict=True))))
        return pa.concat_tables(parts)

    with _counted(frame, reading) as (cells, rows):
        found = told(lambda: _summaries(_batches(cells, inspect, _FOUND)))
        people = _check_left_out(found, reading, rows)
        _check_public(found, known, prior_is_public)
        written = _batches(cells, draw, ", ".join(f"`{name}` string" for name in names))
        write_for_owner(written, output)
    return people


def _columns(item: str | Sequence[str], user: str, weight: str | None, by: str | None) -> Columns:
    return Columns(item if isinstance(item, str) else tuple(item), user, weight, by)


def _by_group(samplers: Any, by: str | None) -> dict[str, list[Sampler]]:
    if isinstance(samplers, Mapping) != (by is not None):
        raise ParameterError("samplers per group need the group column by=, and only then")
    grouped = samplers if isinstance(samplers, Mapping) else {"all": samplers}
    listed = {name: [one] if isinstance(one, Sampler) else list(one) for name, one in grouped.items()}
    if not listed or not all(listed.values()):
        raise ParameterError("samplers must not be empty")
    if any(len({one.prior.digest for one in chosen}) > 1 for chosen in listed.values()):
        raise ParameterError("the samplers of a group must share its prior")
    return listed


def _arrow(found: _Found) -> Any:
    return pa.table(
        {
            "group": pa.array([name for name, _, _ in found], pa.string()),
            "what": pa.array([what for _, what, _ in found], pa.int32()),
            "values": pa.array([np.asarray(values) for _, _, values in found], pa.list_(pa.float64())),
        }
    )


@contextmanager
def _counted(frame: Any, reading: Reading) -> Iterator[tuple[Any, int]]:
    """The counts, held by Spark while they are needed, checked as in one process; and how many rows."""
    cells = told(lambda: counted_frame(frame, reading.columns).to_native().persist())
    try:
        rows = told(lambda: _check_cells(cells, reading))
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
        tally.check_groups(there, reading.known, reading.unknown_groups)
    return int(total)


def _batches(cells: Any, work: Callable[[Any], Any], schema: str) -> Any:
    """`work` on batches that hold all counts of their users."""
    from pyspark.sql import functions as F

    least = 2 * cells.sparkSession.sparkContext.defaultParallelism
    number = max(least, cells.count() // CELLS + 1)
    parted = cells.withColumn("batch", F.pmod(F.hash("key_user"), F.lit(number))).repartition(number, "batch")
    return parted.groupBy("batch").applyInArrow(lambda batch: work(batch.drop_columns(["batch"])), schema)


def _summaries(found: Any) -> dict[tuple[str, int], dict[str, Any]]:
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


def _check_public(
    found: Mapping[tuple[str, int], Mapping[str, Any]], known: Mapping[str, Mechanism], accepted: bool
) -> None:
    """Refuse a prior that seems to be made from these users, as the command does."""
    groups = sorted({name for name, what in found if what == SUMS[0]})
    if any(known[name].prior_from_users for name in groups):
        warnings.warn(FROM_USERS, stacklevel=3)
        return
    together = {
        name: tuple(np.array(found[name, what]["values"]) for what in SUMS)
        for name in groups
        if found[name, SUMS[0]]["values"][0]
    }
    if not accepted:
        priors = {name: model_prior(known[name]) for name in groups}
        doubtful = check_public(priors, together, "prior_is_public=True")
        if doubtful:
            warnings.warn(doubtful, stacklevel=3)


def _check_left_out(found: Mapping[tuple[str, int], Mapping[str, Any]], reading: Reading, rows: int) -> int:
    """Raise what would have been raised in one process; return how many users there are."""
    counters = [row["values"] for (_, what), row in found.items() if what == LEFT_OUT]
    dropped, refused, people = (int(sum(one[i] for one in counters)) for i in range(3))
    several = [row["values"] for (_, what), row in found.items() if what == SEVERAL]
    for in_several, everybody in several:
        tally.check_one_group(int(in_several), int(everybody), reading.columns.by, reading.several_groups)
    tally.check_left_out(dropped, refused, people, rows, unknown=reading.unknown, empty=reading.empty)
    if not people:
        raise TableError("no user has a usable record")
    return people
