"""What Spark's workers do with a batch of counts, and what the driver makes of all of them.

The batches go into the very functions that run in one process. What is wrong is counted by the workers, and
raised by the driver.
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
from ..users import Users
from . import tally
from .cells import check_sum
from .columns import Columns
from .frames import to_tally
from .options import REFUSE_ALL, ReadingOptions

SUMS, LEFT_OUT, SEVERAL, TABLE, GROUP = (-1, -2), -3, -4, -5, -6
"""What a partition reports beside each sampler's values (0, 1, …): the users' moments, and counters."""

KEYS = ("group", "user", "item")
FOUND = "group string, what int, values array<double>"
_SUMMARY = f"{FOUND}, users long, mean double, median double, p90 double, p99 double, maximum double"
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
        sums.add("", SEVERAL, [tally.in_several_groups(counted), tally.people(counted)])
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
        tally.check_one_group(in_several, everybody, reading.columns.by, options.several_groups)
    tally.check_left_out(dropped, refused, people, rows, unknown=options.unknown, empty=options.empty)
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
