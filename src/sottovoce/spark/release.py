"""`release` on Spark: checked everywhere first, then drawn by the workers, or by the driver with a ledger.

Between the checks and the draws Spark holds a row per user and group, with the positions and shares of the
user's categories. Rows are written in the order of the names: where a batch ends depends on the data.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from ..errors import LedgerError, SottovoceError
from ..prior import FROM_USERS
from ..records import Users
from ..release.ledger import Ledger, Receipt, Request, one_form, request
from ..release.mechanism import Mechanism, no_stream
from ..releasing import BATCH, ReportForm, check_terms, checked_mechanisms, spent
from ..tables.reader import Columns
from ..tables.tally import other_category
from ..tables.users import ReadingKeywords, ReadingOptions
from .cells import at_least, cells_by_person, check_seen, complete_people, read_batch
from .writing import check_new, translate_errors, write_for_owner

PEOPLE = "group string, user string, values array<double>, places array<int>, seen string"
"""A row per user with the shares of the user's categories; and one per partition with what it has `seen`."""
_LISTS = {"values": pa.list_(pa.float64()), "places": pa.list_(pa.int32())}
_SCHEMA = pa.schema({"group": pa.string(), "user": pa.string(), **_LISTS, "seen": pa.string()})


def release(
    frame: Any,
    mechanism: Mechanism | Mapping[str, Mechanism],
    output: str,
    *,
    user: str,
    item: str,
    weight: str | None = None,
    by: str | None = None,
    ledger: Ledger | None = None,
    epoch: str | None = None,
    exhausted: str = "error",
    provenance: str = "public",
    **options: Unpack[ReadingKeywords],
) -> int:
    """Release one category per user into a new Parquet folder; returns how many.

    `options` are those of `read_users`, with unknown="prior" by default: every user gets a row, whatever the
    user has. With `by`, the group of every user is published in clear, and a user in several groups is
    refused unless several_groups="allow". A mechanism that says that its prior was made from its users is
    refused unless `provenance="users"`.

    Without a `ledger` the workers draw. With one, the driver does: it charges all users of all groups in one
    commit, and commits the answers batch by batch before it hands them to Spark, which only writes them.
    `epoch` and `exhausted` are those of `Ledger.charge`.

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
        BudgetError: with exhausted="error", a user has too little left. Nobody is charged.
    """
    known = checked_mechanisms(mechanism, by, provenance)
    no_stream(known.values(), "Spark's release")
    check_terms(known, ledger, epoch, exhausted)
    options.setdefault("unknown", "prior")
    reading = ReadingOptions(**options)
    columns = Columns(item, user, weight, by, lenient=reading.unknown == "prior")
    form = ReportForm(known, user, item, by)
    if ledger is not None:
        epoch = ledger.epoch_meant(epoch)  # before the table is read
    if reading.unknown == "other":
        for each in known.values():
            other_category(each, reading.other)
    check_new(frame.sparkSession, output)

    def read(parts: Iterator[Any]) -> Iterator[Any]:
        seen: Counter[str] = Counter()
        for cells in complete_people(parts):
            for name, users in read_batch(cells, columns, known, reading, seen).items():
                if len(users):
                    yield from _people_rows(name, users).to_batches()
        row = {name: [None] for name in ("group", "user", "values", "places")}
        yield pa.RecordBatch.from_pydict({**row, "seen": [json.dumps(seen)]}, _SCHEMA)

    def draw(parts: Iterator[Any]) -> Iterator[Any]:
        for table in at_least(parts, BATCH):
            for name, ids, p in _by_group(table, known):
                yield from _drawn_table(form, name, ids, known[name].release_many(p)).to_batches()

    everybody = translate_errors(lambda: cells_by_person(frame, columns).mapInArrow(read, PEOPLE).persist())
    try:  # used by the checks, by the draws, and with a ledger by the charges
        totals: Counter[str] = Counter()
        for row in translate_errors(lambda: everybody.filter("seen is not null").select("seen").collect()):
            totals.update(json.loads(row[0]))
        check_seen(totals, columns, known, reading)
        if any(each.provenance == "users" for each in known.values()):
            warnings.warn(FROM_USERS, stacklevel=2)
        people = everybody.filter("seen is null").drop("seen")
        if ledger is None:
            schema = ", ".join(f"`{name}` string" for name in form.names)
            released = people.mapInArrow(draw, schema).sortWithinPartitions(
                *(f"`{name}`" for name in form.order)
            )
            write_for_owner(released, output)
            return int(totals["people"])
        drawn, receipt = charge_and_draw(people, form, ledger, epoch, exhausted)
        with costs_told(receipt):
            write_for_owner(drawn, output)
        return receipt.charged + receipt.repeated
    finally:
        everybody.unpersist()


# --- the ledger ---


def charge_and_draw(
    people: Any, form: ReportForm, ledger: Ledger, epoch: str | None, exhausted: str
) -> tuple[Any, Receipt]:
    """Charge all users, draw what has no answer yet, and give the answers as a table of values.

    In the driver's memory are the names of all users and, at a time, the rows of about `BATCH` users.
    """
    known = form.mechanisms
    names = translate_errors(lambda: people.select("group", "user").toArrow())
    asked = {
        group: Request(
            known[group], one_form(_names_of(names, group)), None, "" if form.by is None else group
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
        group: {each.users[i] for i in kept.tolist()}
        for (group, each), kept in zip(asked.items(), receipt.kept, strict=True)
    }
    with costs_told(receipt):
        parts, people_seen = [_drawn_table(form, next(iter(known)), [], [])], 0
        for table in at_least(_rows_of(people), BATCH):
            for group, ids, p in _by_group(table, known):
                people_seen += len(ids)
                kept = np.flatnonzero([name in payers[group] for name in one_form(ids)])
                who = [ids[i] for i in kept]
                here = request(known[group], who, p[kept], group=asked[group].group)
                answers = ledger.answers(here, receipt.epoch, np.arange(len(kept)))
                parts.append(_drawn_table(form, group, who, answers))
        everybody = sum(len(each.users) for each in asked.values())
        if people_seen != everybody or sum(map(len, parts)) != sum(map(len, receipt.kept)):
            raise LedgerError(
                "the table changed while it was released: its users are not those who were charged"
            )
        together = pa.concat_tables(parts).sort_by([(name, "ascending") for name in form.order])
        return translate_errors(lambda: people.sparkSession.createDataFrame(together)), receipt


@contextmanager
def costs_told(receipt: Receipt) -> Iterator[None]:
    """Errors tell what they have cost."""
    try:
        yield
    except SottovoceError as problem:
        raise type(problem)(*problem.args, f"; {spent(receipt)}") from None


def _names_of(names: Any, group: str) -> list[str]:
    return list(names["user"].filter(pc.equal(names["group"], group)).to_pylist())


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


def _people_rows(group: str, users: Users) -> Any:
    begins = pa.array(users.p.indptr.astype(np.int32))
    columns = [
        pa.array([group] * len(users)),
        pa.array(list(map(str, users.ids)), pa.string()),
        pa.ListArray.from_arrays(begins, pa.array(users.p.data)),
        pa.ListArray.from_arrays(begins, pa.array(users.p.indices.astype(np.int32))),
        pa.nulls(len(users), pa.string()),
    ]
    return pa.table(columns, schema=_SCHEMA)


def _by_group(table: Any, known: Mapping[str, Mechanism]) -> Iterator[tuple[str, list[str], Any]]:
    """The users of each group in an arrow table of people: group, names and rows of p."""
    for name in table["group"].unique().to_pylist():
        part = table.filter(pc.equal(table["group"], name)).combine_chunks()
        values, places = (part[column].combine_chunks() for column in ("values", "places"))
        lengths = pc.list_value_length(places).to_numpy()
        begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        held = values.flatten().to_numpy(), places.flatten().to_numpy()
        size = len(lengths), len(known[name].categories)
        yield name, part["user"].to_pylist(), sparse.csr_array((*held, begins), shape=size)


def _drawn_table(form: ReportForm, group: str, ids: Sequence[str], answers: Sequence[object]) -> Any:
    """The reports of users of a group, as arrow columns of text."""
    columns = form.part(group, ids, answers)
    texts = {
        name: [values] * len(ids) if isinstance(values, str) else list(map(str, values))
        for name, values in columns.items()
    }
    return pa.table(texts, schema=pa.schema(dict.fromkeys(columns, pa.string())))
