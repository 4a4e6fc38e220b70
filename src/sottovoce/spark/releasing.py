"""`release` on Spark: checked everywhere first, then drawn by the workers, or by the driver with a ledger."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from ..errors import ParameterError, PriorError
from ..planning.limit import summarise
from ..prior import FROM_USERS
from ..release.ledger import Ledger
from ..release.mechanism import Mechanism, one_sample_each
from ..tables.users import ReadingKeywords, ReadingOptions
from .cells import (
    Reading,
    Sums,
    at_least,
    cells_by_person,
    check_found,
    columns_named,
    in_batches,
    summaries,
)
from .charging import charge_and_draw, spent
from .people import DRAWN, PEOPLE, by_group, drawn_table, found_rows, people_rows
from .session import check_new, translate_errors, write_for_owner

BATCH = 100_000
"""Users that are drawn at once."""


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
    accept_prior_from_users: bool = False,
    as_text: bool = False,
    **options: Unpack[ReadingKeywords],
) -> int:
    """Release one category per user into a new Parquet folder; returns how many.

    `options` are those of `read_users`, with unknown="prior" by default: every user gets a row, whatever the
    user has. `as_text` is as for `compare`. With `by`, the group of every user is published in clear, and a
    user in several groups is refused unless several_groups="allow". A mechanism that says that its prior was
    made from its users is refused unless `accept_prior_from_users`.

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
    if isinstance(mechanism, Mapping) != (by is not None):
        raise ParameterError("a mechanism per group needs the group column by=, and only then")
    known = dict(mechanism) if isinstance(mechanism, Mapping) else {"all": mechanism}
    one_sample_each(known.values(), "Spark's release")
    if any(one.prior_from_users for one in known.values()) and not accept_prior_from_users:
        raise PriorError(f"{FROM_USERS} For an experiment say accept_prior_from_users=True")
    answer = item if isinstance(item, str) else "item"
    names = [user, *([by] if by is not None else []), answer, "epsilon", "mechanism"]
    if len(set(names)) < len(names):
        raise ParameterError("user, item and by must differ, and not be named epsilon or mechanism")
    if ledger is None and (epoch is not None or exhausted != "error"):
        raise ParameterError("epoch and exhausted need a ledger")
    if ledger is not None:
        epoch = ledger.epoch_meant(epoch)  # before the table is read
    chosen: Any = {"unknown": "prior", **options}
    reading = Reading(columns_named(item, user, weight, by), known, ReadingOptions(**chosen), as_text)
    check_new(frame.sparkSession, output)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        sums = Sums()
        for cells in batches:
            for name, users in reading.users(cells, sums).items():
                if len(users):
                    yield people_rows(name, users)
        yield found_rows(sums)

    def draw(parts: Iterator[Any]) -> Iterator[Any]:
        for table in at_least(parts, BATCH):
            for name, ids, p in by_group(table, known):
                yield from drawn_table(name, ids, known[name].release_many(p)).to_batches()

    everybody = translate_errors(
        lambda: in_batches(cells_by_person(frame, reading.columns), read, PEOPLE).persist()
    )
    try:  # used by the checks, by the draws, and with a ledger by the charges
        found = translate_errors(
            lambda: summaries(everybody.filter("what < 0").select("group", "what", "values"), summarise)
        )
        count = check_found(found, reading)
        if any(one.prior_from_users for one in known.values()):
            warnings.warn(FROM_USERS, stacklevel=2)
        people = everybody.filter("what = 0").drop("what")
        if ledger is None:
            write_for_owner(_described(people.mapInArrow(draw, DRAWN), known, names), output)
            return count
        drawn, receipt = charge_and_draw(
            people, known, ledger, epoch, exhausted=exhausted, grouped=by is not None, batch=BATCH
        )
        with spent(receipt):
            write_for_owner(_described(drawn, known, names), output)
        return receipt.charged + receipt.repeated
    finally:
        everybody.unpersist()


def _described(drawn: Any, known: Mapping[str, Mechanism], names: Sequence[str]) -> Any:
    """The columns of reports: who, perhaps the group, what was released, and with which mechanism."""
    from pyspark.sql import functions as F

    def of_group(values: Mapping[str, str]) -> Any:
        if len(values) == 1:
            return F.lit(next(iter(values.values())))
        pairs = [F.lit(word) for pair in values.items() for word in pair]
        return F.create_map(*pairs)[F.col("group")]

    epsilons = of_group({name: str(one.epsilon) for name, one in known.items()})
    digests = of_group({name: one.digest for name, one in known.items()})
    group = [F.col("group")] if len(names) == 5 else []
    columns = [F.col("user"), *group, F.col("answer"), epsilons, digests]
    return drawn.select(*(column.alias(name) for column, name in zip(columns, names, strict=True)))
