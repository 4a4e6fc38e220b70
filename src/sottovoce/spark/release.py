"""`release` on Spark: checked everywhere first, then drawn by the workers, or by the driver with a ledger.

Between the checks and the draws Spark holds a row per user and group, with the positions and shares of the
user's categories. With a ledger the driver charges everybody in one commit, then draws and remembers. A
repeated task never draws twice for one charge, because tasks do not draw: the driver takes their users batch
by batch, and `Ledger.answers` commits an answer before it returns it. What Spark writes afterwards is a table
of the answers themselves, so that every attempt of a task writes the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from ..errors import LedgerError, SottovoceError
from ..groups import Groups
from ..planning.limit import summarise
from ..prior import FROM_USERS
from ..release.ledger import Ledger, Receipt, Request, one_form, request
from ..release.mechanism import Mechanism, no_stream
from ..releasing import BATCH, ReportForm, check_terms, checked_mechanisms, spent
from ..tables.query import Columns
from ..tables.users import ReadingKeywords, ReadingOptions
from ..users import Users
from .cells import REPORTED, Reading, Sums, at_least, cells_by_person, check_reported, in_batches, summaries
from .session import check_new, translate_errors, write_for_owner

PEOPLE = f"{REPORTED}, user string, places array<int>"
"""Rows with what = 0 are users, `values` their shares; what < 0 are counters for the driver."""
DRAWN = "group string, user string, answer string"


def release(
    frame: Any,
    mechanism: Mechanism | Mapping[str, Mechanism],
    output: str,
    *,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None = None,
    ledger: Ledger | None = None,
    epoch: str | None = None,
    exhausted: str = "error",
    provenance: str = "public",
    as_text: bool = False,
    **options: Unpack[ReadingKeywords],
) -> int:
    """Release one category per user into a new Parquet folder; returns how many.

    `options` are those of `read_users`, with unknown="prior" by default: every user gets a row, whatever the
    user has. `as_text` is as for `compare`. With `by`, the group of every user is published in clear, and a
    user in several groups is refused unless several_groups="allow". A mechanism that says that its prior was
    made from its users is refused unless `provenance="users"`.

    Without a `ledger` the workers draw. With one, the driver does: it charges all users of all groups in one
    commit, draws and remembers batch by batch, and Spark only writes what was drawn. `epoch` and `exhausted`
    are those of `Ledger.charge`.

    Guarantees
        The certified mechanism and the operating system's randomness, as in one process; all data are checked
        before anybody is charged or anything drawn. The releases are written at once, and no DataFrame of
        them is returned: it would be computed again, and draw again, each time somebody looked at it.

        With a ledger: released ⊆ charged, and one draw for one charge. No task draws, so a task that is
        repeated, speculative or lost writes the same answers again. A refusal has charged nobody. If the
        driver fails after the charge, the next run repeats what was drawn, draws what was not, and costs
        nothing more. Several drivers may use one ledger file at a time. The driver holds the names of all
        users in memory, but the data of one batch only.

        Without a ledger: nothing stops a second release. A task that Spark repeats draws again; one
        attempt is committed.

    Raises
        BudgetError: with exhausted="error", somebody has too little left. Nobody is charged.
    """
    known = checked_mechanisms(mechanism, by, provenance)
    no_stream(known.values(), "Spark's release")
    check_terms(known, ledger, epoch, exhausted)
    names = ReportForm(known, user, item if isinstance(item, str) else "item", by).names
    if ledger is not None:
        epoch = ledger.epoch_meant(epoch)  # before the table is read
    options.setdefault("unknown", "prior")
    reading = Reading(Columns(item, user, weight, by), known, ReadingOptions(**options))
    check_new(frame.sparkSession, output)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        sums = Sums()
        for cells in batches:
            for name, users in reading.users(cells, sums).items():
                if len(users):
                    yield people_rows(name, users)
        yield report_rows(sums)

    def draw(parts: Iterator[Any]) -> Iterator[Any]:
        for table in at_least(parts, BATCH):
            for name, ids, p in by_group(table, known):
                yield from drawn_table(name, ids, known[name].release_many(p)).to_batches()

    everybody = translate_errors(
        lambda: in_batches(cells_by_person(frame, reading.columns, as_text=as_text), read, PEOPLE).persist()
    )
    try:  # used by the checks, by the draws, and with a ledger by the charges
        reported = translate_errors(
            lambda: summaries(everybody.filter("what < 0").select("group", "what", "values"), summarise)
        )
        count = check_reported(reported, reading)
        if any(one.provenance == "users" for one in known.values()):
            warnings.warn(FROM_USERS, stacklevel=2)
        people = everybody.filter("what = 0").drop("what")
        if ledger is None:
            write_for_owner(_described(people.mapInArrow(draw, DRAWN), known, names), output)
            return count
        drawn, receipt = charge_and_draw(people, known, ledger, epoch, exhausted)
        with costs_told(receipt):
            write_for_owner(_described(drawn, known, names), output)
        return receipt.charged + receipt.repeated
    finally:
        everybody.unpersist()


def _described(drawn: Any, known: Mapping[str, Mechanism], names: Sequence[str]) -> Any:
    """The columns of reports: who, perhaps the group, what was released, and with which mechanism."""
    from pyspark.sql import functions as F

    def of_group(values: Mapping[str, str]) -> Any:
        return F.create_map(*(F.lit(word) for pair in values.items() for word in pair))[F.col("group")]

    epsilons = of_group({name: str(one.epsilon) for name, one in known.items()})
    digests = of_group({name: one.digest for name, one in known.items()})
    group = [F.col("group")] if len(names) == 5 else []
    columns = [F.col("user"), *group, F.col("answer"), epsilons, digests]
    return drawn.select(*(column.alias(name) for column, name in zip(columns, names, strict=True)))


# --- the ledger ---


def charge_and_draw(
    people: Any, known: Groups[Mechanism], ledger: Ledger, epoch: str | None, exhausted: str
) -> tuple[Any, Receipt]:
    """Charge the users of all groups in one commit, draw what has no answer yet, and give all answers back.

    The answers are a Spark table of values, not of a computation. In the driver's memory are the names of all
    users and, at a time, the rows of about `BATCH` users.
    """
    names = translate_errors(lambda: people.select("group", "user").toArrow())
    asked = {
        group: Request(
            known[group], one_form(_names_of(names, group)), None, group if known.by is not None else ""
        )
        for group in sorted(names["group"].unique().to_pylist())
    }  # without rows: the workers have read them, and each batch below brings its own
    del names
    receipt = ledger.charge(list(asked.values()), epoch=epoch, exhausted=exhausted)
    if receipt.left_out:
        warnings.warn(
            f"{receipt.left_out} releases are left out: their users have too little budget left", stacklevel=4
        )
    payers = {
        group: _paying(one, places) for (group, one), places in zip(asked.items(), receipt.kept, strict=True)
    }
    with costs_told(receipt):
        parts = [drawn_table("", [], [])]
        for table in at_least(_rows_of(people), BATCH):
            for group, ids, p in by_group(table, known):
                kept = _kept(ids, payers[group])
                who = [ids[i] for i in kept]
                here = request(known[group], who, p[kept], group=asked[group].group)
                answers = ledger.answers(here, receipt.epoch, np.arange(len(kept)))
                parts.append(drawn_table(group, who, answers))
        if sum(map(len, parts)) != sum(map(len, receipt.kept)):
            raise LedgerError("the table changed while it was released: some who were charged are gone")
        together = pa.concat_tables(parts)
        return translate_errors(lambda: people.sparkSession.createDataFrame(together)), receipt


@contextmanager
def costs_told(receipt: Receipt) -> Iterator[None]:
    """Errors tell what they have cost."""
    try:
        yield
    except SottovoceError as problem:
        raise type(problem)(f"{problem}; {spent(receipt)}") from None


def _names_of(names: Any, group: str) -> list[str]:
    reported: list[str] = names["user"].filter(pc.equal(names["group"], group)).to_pylist()
    return reported


def _paying(asked: Request, places: Any) -> frozenset[str] | None:
    """Who may be released, by the name that budgets are kept under; None is everybody."""
    if len(places) == len(asked.users):
        return None
    return frozenset(asked.users[i] for i in places.tolist())


def _kept(ids: list[str], payers: frozenset[str] | None) -> Any:
    if payers is None:
        return np.arange(len(ids))
    return np.flatnonzero([name in payers for name in one_form(ids)])


def _rows_of(people: Any) -> Iterator[Any]:
    """The users with their rows, partition by partition, as arrow batches that Spark hands over in bytes."""

    def pack(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, part.schema) as stream:
                stream.write_batch(part)
            yield pa.RecordBatch.from_pydict({"packed": pa.array([out.getvalue().to_pybytes()], pa.binary())})

    packed = people.mapInArrow(pack, "packed binary")
    rows = translate_errors(packed.toLocalIterator)
    while (row := translate_errors(lambda: next(rows, None))) is not None:
        yield from pa.ipc.open_stream(pa.py_buffer(bytes(row[0]))).read_all().to_batches()


# --- users as rows of a Spark table, and back ---


def people_rows(group: str, users: Users) -> Any:
    """The users of a group as rows."""
    p = users.p
    begins = pa.array(p.indptr.astype(np.int32))
    return pa.table(
        {
            "group": _repeated(group, len(users)),
            "what": pa.array(np.zeros(len(users), np.int32)),
            "values": pa.ListArray.from_arrays(begins, pa.array(p.data)),
            "user": pa.array(list(map(str, users.ids)), pa.string()),
            "places": pa.ListArray.from_arrays(begins, pa.array(p.indices.astype(np.int32))),
        }
    )


def report_rows(sums: Sums) -> Any:
    """What the driver has to know, as rows of the same table."""
    reported = sums.to_arrow()
    reported = reported.append_column("user", pa.nulls(len(reported), pa.string()))
    return reported.append_column("places", pa.nulls(len(reported), pa.list_(pa.int32())))


def by_group(table: Any, known: Mapping[str, Mechanism]) -> Iterator[tuple[str, list[str], Any]]:
    """The users of each group in an arrow table of people: group, names and rows of p."""
    for name in table["group"].unique().to_pylist():
        part = table.filter(pc.equal(table["group"], name)).combine_chunks()
        values, places = (part[column].combine_chunks() for column in ("values", "places"))
        lengths = np.from_dlpack(pc.list_value_length(places))
        begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        held = np.from_dlpack(values.flatten()), np.from_dlpack(places.flatten())
        size = len(lengths), len(known[name].categories)
        yield name, part["user"].to_pylist(), sparse.csr_array((*held, begins), shape=size)


def drawn_table(group: str, ids: Sequence[str], answers: Sequence[object]) -> Any:
    """What was drawn for the users of a group, as arrow columns."""
    return pa.table(
        {
            "group": _repeated(group, len(ids)),
            "user": pa.array(ids, pa.string()),
            "answer": pa.array([str(one) for one in answers], pa.string()),
        }
    )


def _repeated(text: str, times: int) -> Any:
    return pa.repeat(pa.scalar(text, pa.string()), times)
