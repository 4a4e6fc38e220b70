"""`estimate` on Spark: reports are counted there; the checks and the estimate are those of one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..collecting.estimate import Estimate
from ..collecting.estimate import estimate as estimate_counts
from ..collecting.model import model_of
from ..collecting.reports import checked_counts, weight_of
from ..errors import TableError
from ..groups import Groups
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler
from ..tables.query import Columns, require
from .cells import count_on_spark, keys_of, parts_of, record_frame
from .session import translate_errors


def estimate(
    frame: Any,
    mechanism: Mechanism | Sampler | Mapping[str, Mechanism | Sampler],
    *,
    item: str = "item",
    user: str | None = None,
    by: str | None = None,
    level: float = 0.95,
) -> Estimate | dict[str, Estimate]:
    """`sottovoce.estimate` from a Spark table of reports; with a mechanism per group, one estimate per group.

    `item`, `user` and `by` are the columns of the released category, of the user (default `user` if there is
    one) and of the group. Categories that are numbers may be written as text, as `release` writes them.

    Guarantees
        The counts, the refusals and the estimates of one process: another mechanism's reports, unknown
        categories and users with more than one report are refused. What reaches the driver is one number per
        group and category.
    """
    known: Groups[Mechanism | Sampler] = Groups.of(mechanism, by)
    models = {name: model_of(one) for name, one in known.items()}
    columns = list(frame.columns)
    user = "user" if user is None and "user" in columns else user
    weight = weight_of(columns, item, user)
    described = "mechanism" in columns and all(one.digest is not None for one in models.values())
    named = [by, user, item, weight, "mechanism" if described else None]
    needed = list(dict.fromkeys(name for name in named if name is not None))
    require(needed, columns)
    reports = frame.select(*(f"`{name}`" for name in needed)).persist()
    try:  # counted by item, by mechanism and by user
        counted = count_on_spark(reports, Columns(item, weight=weight, by=by))
        digests = count_on_spark(reports, Columns("mechanism", by=by)) if described else None
        several = None if user is None else translate_errors(lambda: _several(reports, item, user, by))
    finally:
        reports.unpersist()
    counts = checked_counts(counted, digests, several, models, as_text=True)
    estimates = {name: estimate_counts(known[name], one, level=level) for name, one in counts.items()}
    return Groups(estimates, by).returned


def _several(reports: Any, item: str, user: str, by: str | None) -> tuple[int, int]:
    """How many users have more than one report in a group, and how many users there are in all groups."""
    from pyspark.sql import functions as F

    records = record_frame(reports, Columns(item, user, by=by))
    keys = [name for name in keys_of(records) if name != "key_i"]
    people = records.repartition(parts_of(records.sparkSession), "key_u").groupBy(*keys).count()
    several = F.count_if(F.col("count") > 1)
    nobody = F.sum(F.when(F.col("key_u").isNull(), F.col("count")).otherwise(0))
    more, everybody, missing = people.agg(several, F.count(F.lit(1)), nobody).first()
    if missing:
        raise TableError(f"column {user!r} has {missing} missing values")
    return int(more), int(everybody)
