"""The ledger of a release on Spark: the driver charges everybody in one commit, then draws and remembers.

Why a repeated task never draws twice for one charge: tasks do not draw. The workers read and count; the
driver takes their users batch by batch, and `Ledger.answers` commits an answer before it returns it. What
Spark writes afterwards is a table of the answers themselves, so that every attempt of a task writes the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import LedgerError, SottovoceError
from ..release.ledger import Ledger, Receipt, Request, one_form, request
from ..release.mechanism import Mechanism
from .cells import at_least
from .people import by_group, drawn_table
from .session import translate_errors

PACKED = "packed binary"


def charge_and_draw(
    people: Any,
    known: Mapping[str, Mechanism],
    ledger: Ledger,
    epoch: str | None,
    *,
    exhausted: str,
    grouped: bool,
    batch: int,
) -> tuple[Any, Receipt]:
    """Charge the users of all groups in one commit, draw what has no answer yet, and give all answers back.

    The answers are a Spark table of values, not of a computation. In the driver's memory are the names of all
    users and, at a time, the rows of about `batch` users.
    """
    names = translate_errors(lambda: people.select("group", "user").toArrow())
    asked = {
        group: Request(known[group], one_form(_names_of(names, group)), None, group if grouped else "")
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
    with spent(receipt):
        parts = [drawn_table("", [], [])]
        for table in at_least(_rows_of(people), batch):
            for group, ids, p in by_group(table, known):
                kept = _kept(ids, payers[group])
                here = request(known[group], [ids[i] for i in kept], p[kept], group=asked[group].group)
                answers = ledger.answers(here, receipt.epoch, np.arange(len(kept)))
                parts.append(drawn_table(group, [ids[i] for i in kept], answers))
        if sum(map(len, parts)) != sum(map(len, receipt.kept)):
            raise LedgerError("the table changed while it was released: some who were charged are gone")
        together = pa.concat_tables(parts)
        return translate_errors(lambda: people.sparkSession.createDataFrame(together)), receipt


@contextmanager
def spent(receipt: Receipt) -> Iterator[None]:
    """Errors say what they have cost."""
    try:
        yield
    except SottovoceError as problem:
        said = "nobody was charged"
        if receipt.charged:
            said = f"{receipt.charged} releases were charged; running again costs nothing more"
        raise type(problem)(f"{problem}; {said}") from None


def _names_of(names: Any, group: str) -> list[str]:
    found: list[str] = names["user"].filter(pc.equal(names["group"], group)).to_pylist()
    return found


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

    packed = people.mapInArrow(pack, PACKED)
    rows = translate_errors(packed.toLocalIterator)
    while (row := translate_errors(lambda: next(rows, None))) is not None:
        yield from pa.ipc.open_stream(pa.py_buffer(bytes(row[0]))).read_all().to_batches()
